// SPDX-License-Identifier: MIT
//
// What the producer's files share. Included by profiler/feed/ only.
//
//     feed.c        life of a feed, statistics, the first error
//     feed_put.c    an event into a slot
//     feed_ring.c   the ring of the calling thread: made, grown, given back; full: wait, drop, or find the drain gone
//     feed_frames.c call stacks
//     feed_names.c  texts, scopes, devices and allocators to numbers; the log that has each once
//     feed_file.c   the file: chunks on disk, maps, locks, whose process it is
#ifndef TIDE_PROFILER_FEED_FEED_INTERNAL_H
#define TIDE_PROFILER_FEED_FEED_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/base/status.h"
#include "profiler/feed/feed.h"
#include "profiler/feed/mapped_file.h"
#include "profiler/feed/text_match.h"

enum {
    TIDE__TEXT_WAYS = 4,      ///< places that an address may have
    TIDE__TEXT_SET_BITS = 9,  ///< of the number of sets, a power of two
    TIDE__SCOPE_BITS = 6,     ///< the same of the scopes that are kept
    TIDE__ALLOCATOR_BITS = 4, ///< and of the allocators
    TIDE__CACHE_LINE = 64,
    TIDE__MAX_SCOPE_DEPTH = 1024,
};

// ---- names that a thread used lately ----

/// A number below 2^bits: the upper bits of a product, which all lower bits of the address have a say in.
static inline size_t tide__address_hash(const void *address, int bits) {
    return (size_t)((uint32_t)(uintptr_t)address * UINT32_C(0x9E3779B1) >> (32 - bits));
}

/// A scope by its address; the same entering when `entry` is the same.
typedef struct tide__scope_entry {
    const tide_scope *key;
    uint64_t entry;
    const char *name; ///< in the log
    uint32_t parent, number;
    int32_t kind, step;
} tide__scope_entry;

/// The scope of the last event, also in `scopes`.
typedef struct tide__last_scope {
    const tide_scope *key; ///< NULL: none; else `scopes_of` is `thread`, so one comparison is enough
    uint64_t entry;        ///< not 0
    uint32_t number;
} tide__last_scope;

// ---- a ring from its producer's side ----

/// Time of an event or a control slot.
typedef struct tide__put_time {
    uint64_t time;
    uint32_t flags; ///< TIDE__SLOT_NS, TIDE__SLOT_GIVEN, or 0
} tide__put_time;

/// At a page. Two cache lines, from `head` on, hold what every event looks at.
typedef struct tide__producer {
    _Alignas(TIDE__CACHE_LINE) tide__text_match allocators[1 << TIDE__ALLOCATOR_BITS];
    uint64_t head;
    uint64_t limit; ///< position that must not be written yet; == head: ask (feed_ring.c), there may be room
    uint64_t mask;
    tide__slot *slots;
    tide__ring_header *ring;
    uint64_t thread;                     ///< whose events follow in the ring; UINT64_MAX: no thread's yet
    tide__ring_total *totals;            ///< [TIDE__FEED_MAX_KINDS], of the last device; NULL: none yet
    const _Atomic uint32_t *usual_drain; ///< the header's; in a feed without ticks one that failed: no event is usual
    tide_device device;                  ///< the last one used
    uint32_t device_bits;                ///< its number, where a slot has it
    tide__last_scope scope;
    _Atomic uint64_t n_lost;     ///< dropped
    _Atomic uint64_t n_control;  ///< slots before `head` that hold no event
    _Atomic uint64_t blocked_ns; ///< waited for room
    uint64_t n_gap;              ///< dropped, and not yet noted in the ring
    tide__put_time gap_when;     ///< of the first of these
    int64_t ended_run;           ///< that is not yet noted in the ring; 0: none
    tide__put_time ended_when;
    uint64_t scopes_of;          ///< thread whose scopes are in here: enterings are numbered by thread
    uint64_t begin;              ///< first position of the room that it has now
    uint32_t number;             ///< of the ring
    bool gave_up;                ///< full when nothing moved
    bool cannot_grow;            ///< it is as large as it may become, or there was no room for more
    struct tide__producer *next; ///< list of the feed
    bool is_taken;               ///< some thread puts into it
    tide__scope_entry scopes[1 << TIDE__SCOPE_BITS];
    _Alignas(TIDE__CACHE_LINE)
        tide__text_match texts[1 << TIDE__TEXT_SET_BITS][TIDE__TEXT_WAYS]; ///< of tags and scopes
} tide__producer;

// ---- everything that has a number, by content ----

/// Open addressing over records of the log, which never move and never change. Read without the lock; a table that
/// became too small stays where it is until the feed goes.
typedef struct tide__name_table {
    struct tide__name_table *smaller;
    size_t cap; ///< a power of two, more than twice the entries
    _Atomic(const tide__log_record *) slots[];
} tide__name_table;

// ---- the feed ----

struct tide__feed {
    _Atomic uint64_t serial; ///< never used twice in a process; what a thread knows its ring by
    tide__feed_header *head;
    bool has_ticks, drops;
    _Atomic bool is_ended; ///< no event follows
    struct tide__feed *next;

    bool (*watch)(void *ctx);
    void *watch_ctx;
    pthread_mutex_t watch_lock; ///< one thread asks at a time
    void (*stalls)(void *ctx);
    void *stalls_ctx;
    uint64_t max_wait_ns;      ///< UINT64_MAX: without end
    _Atomic bool is_stalled;   ///< nothing has moved for so long: a full ring is not waited for
    _Atomic uint64_t asked_ns; ///< when the watch was asked, while it is

    int64_t begun_run; ///< the last one whose begin is in a ring; of who begins and ends runs, one thread at a time
    _Atomic uint64_t n_refused;
    pthread_mutex_t lock; ///< guards all below, and writing to the log
    tide_error error;     ///< the first refusal
    tide__producer *producers;
    size_t n_producers;
    tide__log_header *log; ///< the last chunk
    size_t log_bytes;      ///< of it
    uint64_t log_used;     ///< behind its header
    _Atomic(tide__name_table *) names;
    size_t n_names;                 ///< in it
    uint32_t n_of[TIDE__LOG_TYPES]; ///< numbers given, by tide__log_type
    uint64_t ring_slots;

    char *path;
    char cut_words[512];    ///< what is said when the file was cut short; as long as the header's error
    tide__mapped_file file; ///< is_child: of a forked process, whose it is not
    uint64_t file_bytes;    ///< with the hole in its header
    uint64_t header_bytes;  ///< of it there is no hole before
};

// ---- long work inside a call of the recorded program ----

/// The program may look at errno afterwards, and must not be cancelled inside: locks would stay held, and an allocation
/// is no cancellation point.
typedef struct tide__caller_state {
    int saved_errno, cancel_state;
} tide__caller_state;
static inline tide__caller_state tide__hold_caller(void) {
    tide__caller_state c = {.saved_errno = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel_state);
    return c;
}
static inline void tide__release_caller(tide__caller_state c) {
    int unused;
    pthread_setcancelstate(c.cancel_state, &unused);
    errno = c.saved_errno;
}

// ---- feed_file.c ----

tide_status tide__feed_file_create(tide__feed *f, const tide__feed_options *opt, tide_error *err) TIDE_NODISCARD;
/// The header is whole: give the file its name.
tide_status tide__feed_file_publish(tide__feed *f, tide_error *err) TIDE_NODISCARD;
/// A chunk is made in three steps, of which the second takes long and needs no lock:
/// a place in the file (with the lock held),
tide_status tide__feed_file_reserve(tide__feed *f, uint64_t bytes, uint64_t *at, tide_error *err) TIDE_NODISCARD;
/// room on disk and in memory for it, zeroed; or the place is given back (with the lock held),
tide_status tide__feed_file_make(tide__feed *f, uint64_t at, uint64_t bytes, void **out,
                                 tide_error *err) TIDE_NODISCARD;
void tide__feed_file_drop(tide__feed *f, uint64_t at, uint64_t bytes);
/// and, once it holds what a reader must find, a line in the header's table (with the lock held). Unmaps `chunk` when
/// there is none.
tide_status tide__feed_file_add(tide__feed *f, const tide__chunk_entry *entry, void *chunk,
                                tide_error *err) TIDE_NODISCARD;
/// Takes the file away, too, when it was not published or `remove` is set.
void tide__feed_file_close(tide__feed *f, bool remove);

// ---- feed_names.c ----

/// The record of (type, payload): found, or made and put into the log. NULL: refused.
const tide__log_record *tide__feed_intern(tide__feed *f, tide__log_type type, const void *payload, size_t bytes);
/// Log the name of the calling thread.
void tide__feed_log_thread(tide__feed *f, uint32_t number);
tide_status tide__feed_names_init(tide__feed *f, tide_error *err) TIDE_NODISCARD;
/// The first chunk of the log, with the command line in it (may be NULL).
tide_status tide__feed_names_begin(tide__feed *f, const char *command, tide_error *err) TIDE_NODISCARD;
void tide__feed_names_deinit(tide__feed *f);

static inline const char *tide__record_text(const tide__log_record *r) { return (const char *)(r + 1); }

// ---- feed_ring.c ----

typedef struct tide__thread_feed {
    uint64_t serial;          ///< 0: none
    tide__producer *producer; ///< NULL: this thread found no room for a ring
} tide__thread_feed;
/// The feed that the calling thread used last; it has a producer, or serial 0, which no feed has.
extern _Thread_local tide__thread_feed tide__thread_feed_hot __attribute__((tls_model("initial-exec")));

/// The calling thread's ring, when it is not the one that it used last; NULL: nothing can be put in.
tide__producer *tide__feed_find_producer(tide__feed *f);
static inline tide__producer *tide__feed_producer(tide__feed *f) {
    const tide__thread_feed *hot = &tide__thread_feed_hot;
    if (__builtin_expect(hot->serial == atomic_load_explicit(&f->serial, memory_order_relaxed), 1))
        return hot->producer;
    return tide__feed_find_producer(f);
}
void tide__producer_free(tide__producer *p);
/// The feed gets its serial number,
tide_status tide__feed_enter(tide__feed *f, tide_error *err) TIDE_NODISCARD;
/// gets another one, by which no thread finds its ring there,
void tide__feed_retire(tide__feed *f);
/// and is not found any more.
void tide__feed_leave(tide__feed *f);

/// What was at the address of a text, not NULL, if that was used lately; NULL: it was not.
static inline const tide__text_match *tide__text_at(const tide__producer *p, const char *text) {
    const tide__text_match *t = p->texts[tide__address_hash(text, TIDE__TEXT_SET_BITS)];
    for (int i = 1; __builtin_expect(t->key != text, 0); i++, t++) { // an address has one place at most
        if (i == TIDE__TEXT_WAYS) return NULL;
    }
    return t;
}
/// A text, not NULL, if it is among those used lately; NULL: it is not.
static inline const tide__text_match *tide__text_cached(const tide__producer *p, const char *text) {
    const tide__text_match *t = tide__text_at(p, text);
    return t != NULL && tide__text_match_is(t, text) ? t : NULL;
}
/// A text, not NULL, from the table of names; it is in the cache from now on, and stays there until the next call.
/// NULL: refused.
const tide__text_match *tide__feed_text(tide__feed *f, tide__producer *p, const char *text);
/// Number of a scope, not NULL, of a thread. False: refused.
bool tide__feed_scope_number(tide__feed *f, tide__producer *p, uint64_t thread, const tide_scope *scope,
                             uint32_t *number);

/// Put in what must stand before the next slot (a gap, whose events follow), and make sure that there is room for it.
/// `must`: wait, also where full rings drop. False: there is none, and there will be none.
bool tide__feed_make_room(tide__feed *f, tide__producer *p, uint64_t thread, tide__put_time when, bool must);
/// Note a pending gap, at the end, if there will be room for it soon.
void tide__feed_put_gap(tide__feed *f, tide__producer *p);

/// The slot at p->head, whose fields but `sequence` the caller has stored, is there for the reader.
static inline void tide__producer_publish(tide__producer *p, tide__slot *s) {
    const uint64_t head = p->head + 1;
    atomic_store_explicit(&s->sequence, (uint32_t)head, memory_order_release);
    __atomic_store_n(&p->head, head, __ATOMIC_RELAXED); // tide__feed_get_stats looks at it, on any thread
    atomic_store_explicit(&p->ring->head, head, memory_order_release);
}

/// A slot that is about no memory, into the room that there is.
static inline void tide__producer_put_plain(tide__producer *p, tide__put_time when, uint8_t op, uint64_t block_id,
                                            uint64_t n, uint32_t scope) {
    tide__slot *s = &p->slots[p->head & p->mask];
    s->time = when.time;
    s->block_id = block_id;
    s->requested_bytes = n;
    s->reserved_bytes = s->address = s->stream = 0;
    s->tag = 0;
    s->scope = scope;
    s->op = op;
    s->kind_flags = (uint8_t)(TIDE__SLOT_NO_KIND | when.flags << TIDE__SLOT_FLAG_SHIFT);
    s->device = s->allocator = 0;
    tide__producer_publish(p, s);
}

/// The same of a slot that is no event. Counted behind `head`: who sees it in the one sees it in the other.
static inline void tide__producer_put_control(tide__producer *p, tide__put_time when, uint8_t op, uint64_t block_id,
                                              uint64_t n) {
    tide__producer_put_plain(p, when, op, block_id, n, 0);
    const uint64_t n_control = atomic_load_explicit(&p->n_control, memory_order_relaxed);
    atomic_store_explicit(&p->n_control, n_control + 1, memory_order_release);
}

/// For fields of the file that one thread writes and others look at: no locked instruction. Compilers make a load, an
/// addition and a store of it, where the processor has one instruction for the three.
static inline void tide__add_alone(_Atomic uint64_t *field, uint64_t n) {
#if defined(__x86_64__)
    __asm__("addq %1, %0" : "+m"(*field) : "er"(n) : "cc");
#else
    atomic_store_explicit(field, atomic_load_explicit(field, memory_order_relaxed) + n, memory_order_relaxed);
#endif
}

// ---- four small fields of a slot as one number ----

enum {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    TIDE__SHIFT_OP = 0,
    TIDE__SHIFT_KIND = 8,
    TIDE__SHIFT_DEVICE = 16,
    TIDE__SHIFT_ALLOCATOR = 24,
#else
    TIDE__SHIFT_OP = 24,
    TIDE__SHIFT_KIND = 16,
    TIDE__SHIFT_DEVICE = 8,
    TIDE__SHIFT_ALLOCATOR = 0,
#endif
};
_Static_assert(offsetof(tide__slot, kind_flags) == offsetof(tide__slot, op) + 1 &&
                   offsetof(tide__slot, device) == offsetof(tide__slot, op) + 2 &&
                   offsetof(tide__slot, allocator) == offsetof(tide__slot, op) + 3,
               "they lie next to each other");
static inline void tide__slot_set_small(tide__slot *s, uint32_t bits) {
    memcpy((char *)s + offsetof(tide__slot, op), &bits, sizeof bits);
}

#endif
