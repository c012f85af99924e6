// SPDX-License-Identifier: MIT
//
// The rings of a feed: which one belongs to the calling thread, and what is done when it has no room. See
// feed_internal.h.
//
//     thread        hot [serial 7, ring]     mine [serial 7, ring][serial 9, ring][ ]...     what it may use
//     process       feeds  (serial 7) -> (serial 9) -> NULL                                  what there is
//
// A feed may go before the threads that used it, and another one may be made where it was: threads know feeds by serial
// number, which no two of a process share, and look it up among the living before they touch one. A thread that ends
// gives its rings back. In a forked child all serial numbers are changed: the mapped file is still the parent's.
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/memory/thread_number.h"
#include "profiler/event.h"
#include "profiler/feed/feed_internal.h"

enum { MAX_FEEDS_OF_THREAD = 8 };

_Thread_local tide__thread_feed tide__thread_feed_hot __attribute__((tls_model("initial-exec")));
static _Thread_local tide__thread_feed mine[MAX_FEEDS_OF_THREAD];
static _Thread_local unsigned next_victim;

static struct {
    pthread_mutex_t lock; // guards the rest; taken before the lock of a feed
    tide__feed *feeds;
    uint64_t last_serial;
    pthread_once_t once;
    pthread_key_t key; // its destructor runs when a thread ends
    int error;         // of making it
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static uint64_t serial_of(const tide__feed *f) { return atomic_load_explicit(&f->serial, memory_order_relaxed); }

/// With the process's lock held; NULL: no such feed any more.
static tide__feed *living(uint64_t serial) {
    tide__feed *f = process.feeds;
    while (f != NULL && serial_of(f) != serial) f = f->next;
    return f;
}

// ---- give back ----

static void give_back(tide__thread_feed *t) {
    if (t->serial == 0) return;
    pthread_mutex_lock(&process.lock);
    tide__feed *f = living(t->serial);
    if (f != NULL && t->producer != NULL) {
        pthread_mutex_lock(&f->lock);
        t->producer->is_taken = false;
        atomic_store_explicit(&t->producer->ring->owner, 0, memory_order_release);
        pthread_mutex_unlock(&f->lock);
    }
    pthread_mutex_unlock(&process.lock);
    *t = (tide__thread_feed){0};
}

/// An event that comes later still, from another destructor, takes a ring anew and has this called again.
static void on_thread_end(void *unused) {
    (void)unused;
    tide__thread_feed_hot = (tide__thread_feed){0};
    for (int i = 0; i < MAX_FEEDS_OF_THREAD; i++) give_back(&mine[i]);
}

// ---- fork ----

static void before_fork(void) { pthread_mutex_lock(&process.lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&process.lock); }

/// Only this thread is left; a feed's lock may be held by one that is not, and is not taken again.
static void after_fork_in_child(void) {
    for (tide__feed *f = process.feeds; f != NULL; f = f->next)
        atomic_store_explicit(&f->serial, ++process.last_serial, memory_order_relaxed);
    pthread_mutex_unlock(&process.lock);
}

static void prepare_process(void) {
    process.error = tide__mapped_file_prepare(); // its lock is taken after those of this file, before a fork, too
    if (process.error == 0) process.error = pthread_key_create(&process.key, on_thread_end);
    if (process.error == 0) process.error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// ---- feeds ----

tide_status tide__feed_enter(tide__feed *f, tide_error *err) {
    pthread_once(&process.once, prepare_process);
    if (process.error != 0) return TIDE_NO_MEMORY(err, "to watch for the end of threads");
    pthread_mutex_lock(&process.lock);
    atomic_store_explicit(&f->serial, ++process.last_serial, memory_order_relaxed);
    f->next = process.feeds;
    process.feeds = f;
    pthread_mutex_unlock(&process.lock);
    return TIDE_OK;
}

void tide__feed_retire(tide__feed *f) {
    pthread_mutex_lock(&process.lock);
    atomic_store_explicit(&f->serial, ++process.last_serial, memory_order_relaxed);
    pthread_mutex_unlock(&process.lock);
}

void tide__feed_leave(tide__feed *f) {
    pthread_mutex_lock(&process.lock);
    tide__feed **at = &process.feeds;
    while (*at != NULL && *at != f) at = &(*at)->next;
    if (*at == f) *at = f->next;
    pthread_mutex_unlock(&process.lock);
}

// ---- rings ----

static const _Atomic uint32_t failed_drain = TIDE__DRAIN_FAILED;

/// Written before the file's table says that it is there.
static tide_status make_ring(tide__feed *f, tide__producer *p, uint64_t at, uint64_t bytes, tide_error *err) {
    void *chunk;
    tide_status st = tide__feed_file_make(f, at, bytes, &chunk, err);
    if (st == TIDE_OK) {
        p->ring = chunk;
        p->ring->n_slots = TIDE__FEED_MIN_SLOTS;
        atomic_store_explicit(&p->ring->owner, tide__thread_number(), memory_order_relaxed);
        p->usual_drain = f->has_ticks ? &f->head->drain : &failed_drain;
        p->slots = (tide__slot *)((char *)chunk + TIDE__RING_HEADER_BYTES);
        p->mask = TIDE__FEED_MIN_SLOTS - 1;
    }
    pthread_mutex_lock(&f->lock);
    const tide__chunk_entry entry = {.offset = at, .bytes = bytes, .kind = TIDE__CHUNK_RING};
    if (st == TIDE_OK) st = tide__feed_file_add(f, &entry, chunk, err);
    if (st == TIDE_OK) {
        p->next = f->producers;
        f->producers = p;
        p->number = (uint32_t)f->n_producers++;
    } else {
        tide__feed_file_drop(f, at, bytes);
    }
    pthread_mutex_unlock(&f->lock);
    return st;
}

/// NULL: no memory. It is large and mostly empty for a thread that puts in little: pages that nothing is written to
/// cost nothing, which an allocator that clears what it gives again would not keep so.
static tide__producer *new_producer(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, sizeof(tide__producer), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    tide__producer *p = memory;
    p->allocators[tide__address_hash(NULL, TIDE__ALLOCATOR_BITS)].key = memory; // where no text is: no name is no match
    return p;
}

void tide__producer_free(tide__producer *p) { munmap(p, sizeof *p); }

/// Others go on meanwhile: the disk may take its time. The new ring is taken already.
static tide_status new_ring(tide__feed *f, tide__producer **out, tide_error *err) {
    const uint64_t bytes = TIDE__RING_HEADER_BYTES + TIDE__FEED_MIN_SLOTS * sizeof(tide__slot);
    tide__producer *p = new_producer();
    if (p == NULL) return TIDE_NO_MEMORY(err, "for a thread's ring");
    p->is_taken = true;
    p->thread = p->scopes_of = UINT64_MAX;
    uint64_t at;
    pthread_mutex_lock(&f->lock);
    tide_status st = tide__feed_file_reserve(f, bytes, &at, err);
    pthread_mutex_unlock(&f->lock);
    if (st == TIDE_OK) st = make_ring(f, p, at, bytes, err);
    if (st != TIDE_OK) tide__producer_free(p);
    *out = p;
    return st;
}

static tide_status add_room(tide__feed *f, tide__producer *p, uint64_t n_slots, tide_error *err) {
    const uint64_t bytes = n_slots * sizeof(tide__slot);
    uint64_t at;
    void *slots;
    pthread_mutex_lock(&f->lock);
    tide_status st = tide__feed_file_reserve(f, bytes, &at, err);
    pthread_mutex_unlock(&f->lock);
    TIDE_TRY(st);
    st = tide__feed_file_make(f, at, bytes, &slots, err);
    const tide__chunk_entry entry = {
        .offset = at, .bytes = bytes, .kind = TIDE__CHUNK_MORE, .ring = p->number, .begin = p->head};
    pthread_mutex_lock(&f->lock);
    if (st == TIDE_OK) st = tide__feed_file_add(f, &entry, slots, err);
    if (st != TIDE_OK) tide__feed_file_drop(f, at, bytes);
    pthread_mutex_unlock(&f->lock);
    TIDE_TRY(st);
    if (p->begin > 0) tide__mapped_file_unmap(&f->file, p->slots); // its first room lies behind its header
    p->slots = slots;
    p->mask = n_slots - 1;
    p->begin = p->head;
    return TIDE_OK;
}

/// More room for a ring, from its head on. False: there is none to be had.
static bool grow_ring(tide__feed *f, tide__producer *p) {
    const uint64_t n_slots = p->mask + 1;
    // A tail that cannot be says nothing about how much there is to keep.
    if (p->cannot_grow || atomic_load_explicit(&p->ring->tail, memory_order_relaxed) > p->head) return false;
    p->cannot_grow = n_slots >= f->ring_slots;
    if (p->cannot_grow) return false;
    const tide__caller_state caller = tide__hold_caller();
    const uint64_t more = n_slots * TIDE__RING_GROWTH;
    // Without room on the disk, the ring is as large as it is: full, it waits or drops.
    p->cannot_grow = add_room(f, p, more < f->ring_slots ? more : f->ring_slots, NULL) != TIDE_OK;
    tide__release_caller(caller);
    // The drain goes by how full it is, and has to know what that means from now on.
    if (p->cannot_grow) atomic_store_explicit(&p->ring->n_stuck, n_slots, memory_order_release);
    return !p->cannot_grow;
}

/// One that another thread gave back; NULL: there is none.
static tide__producer *take_free_ring(tide__feed *f) {
    pthread_mutex_lock(&f->lock);
    tide__producer *p = f->producers;
    while (p != NULL && p->is_taken) p = p->next;
    if (p != NULL) {
        p->is_taken = true;
        p->thread = p->scopes_of = UINT64_MAX; // says who it is before its first event; the other's scopes are strange
        atomic_store_explicit(&p->ring->owner, tide__thread_number(), memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    return p;
}

static tide__producer *take_ring(tide__feed *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide__producer *p = take_free_ring(f);
    if (p != NULL) return p;
    const tide_status st = new_ring(f, &p, &err);
    if (st == TIDE_OK) return p;
    tide__feed_refuse(f, st, err.msg);
    return NULL;
}

/// A free place among the thread's feeds; that of a feed that is gone; or that of one that is given up for now.
static tide__thread_feed *free_place(void) {
    for (int i = 0; i < MAX_FEEDS_OF_THREAD; i++) {
        if (mine[i].serial == 0) return &mine[i];
    }
    pthread_mutex_lock(&process.lock);
    tide__thread_feed *gone = NULL;
    for (int i = 0; i < MAX_FEEDS_OF_THREAD && gone == NULL; i++) {
        if (living(mine[i].serial) == NULL) gone = &mine[i];
    }
    pthread_mutex_unlock(&process.lock);
    if (gone == NULL) {
        gone = &mine[next_victim++ % MAX_FEEDS_OF_THREAD];
        give_back(gone);
    }
    *gone = (tide__thread_feed){0};
    return gone;
}

/// The first event of a thread for this feed.
static tide__thread_feed *enter_thread(tide__feed *f, uint64_t serial) {
    const tide__caller_state caller = tide__hold_caller();
    tide__thread_feed *place = free_place();
    *place = (tide__thread_feed){.serial = serial, .producer = take_ring(f)};
    if (place->producer != NULL) tide__feed_log_thread(f, tide__thread_number());
    // Without memory for that the ring is not given back when the thread ends: it stays taken.
    pthread_setspecific(process.key, &process);
    tide__release_caller(caller);
    return place;
}

tide__producer *tide__feed_find_producer(tide__feed *f) {
    if (f->file.is_child || atomic_load_explicit(&f->is_ended, memory_order_relaxed)) return NULL;
    const uint64_t serial = serial_of(f);
    tide__thread_feed *place = NULL;
    for (int i = 0; i < MAX_FEEDS_OF_THREAD && place == NULL; i++) {
        if (mine[i].serial == serial) place = &mine[i];
    }
    if (place == NULL) {
        place = enter_thread(f, serial);
    } else if (place->producer == NULL) { // no room for it once, and the thread has been quiet since
        atomic_fetch_add_explicit(&f->n_refused, 1, memory_order_relaxed);
    }
    tide__thread_feed_hot = place->producer != NULL ? *place : (tide__thread_feed){0};
    return place->producer;
}

// ---- a ring without room, and what must be noted before the next event ----
//
//     [ event ][ GAP 17 events ][ THREAD 4 ][ next event ]
//                ^ dropped, and    ^ the next event is of another thread than those before
//                  now there is room

enum {
    N_SPINS = 200,
    FIRST_NAP_NS = 1000,
    LONGEST_NAP_NS = 1000000,
    PATIENCE_NS = 10000000,    ///< without movement, until the watch is asked
    LAST_WAIT_NS = 1000000000, ///< without movement, at the end of the feed
};

/// Look where the reader is. A tail that cannot be is taken for a full ring.
static bool is_room_for(tide__producer *p, uint64_t n) {
    const uint64_t n_slots = p->mask + 1, tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
    const uint64_t from = tail < p->begin ? p->begin : tail; // what lies before is not in this room
    if (p->head - from > n_slots) return false;
    p->limit = from + n_slots;
    TIDE_ASSERT(p->limit >= p->head && (n_slots & p->mask) == 0);
    return p->limit - p->head >= n;
}

static bool has_failed(const tide__feed *f) {
    return atomic_load_explicit(&f->head->drain, memory_order_acquire) == TIDE__DRAIN_FAILED;
}

/// The drain is known to be gone: say so in its place.
static void mark_failed(tide__feed *f) {
    pthread_mutex_lock(&f->lock);
    if (!has_failed(f)) {
        snprintf(f->head->error, sizeof f->head->error, "no collector takes events out of '%s' any more", f->path);
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_FAILED, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
}

/// One thread asks at a time.
static void ask_watch(tide__feed *f) {
    if (f->watch == NULL || pthread_mutex_trylock(&f->watch_lock) != 0) return;
    if (!has_failed(f) && !f->watch(f->watch_ctx)) mark_failed(f);
    pthread_mutex_unlock(&f->watch_lock);
}

static void pause_briefly(void) {
    for (int i = 0; i < 16; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

/// Wait until there is room for n slots, or until nothing has moved for `give_up_ns`. False: the drain is gone or has
/// stopped.
static bool wait_for_room(tide__feed *f, tide__producer *p, uint64_t n, uint64_t give_up_ns) {
    const tide__caller_state caller = tide__hold_caller();
    const uint64_t since = tide_now_ns();
    uint64_t seen_tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire), moved_ns = since, asked_ns = since;
    long nap_ns = FIRST_NAP_NS;
    bool has_room = false;
    for (unsigned tries = 0; !has_failed(f) && !(has_room = is_room_for(p, n)); tries++) {
        if (tries < N_SPINS) {
            pause_briefly();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
        if (nap_ns < LONGEST_NAP_NS) nap_ns *= 2;
        const uint64_t now = tide_now_ns(), tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
        if (tail != seen_tail) {
            seen_tail = tail;
            moved_ns = asked_ns = now;
        } else if (now - moved_ns >= give_up_ns) {
            break;
        } else if (now - asked_ns >= PATIENCE_NS) {
            ask_watch(f);
            asked_ns = tide_now_ns();
        }
    }
    tide__add_alone(&p->blocked_ns, tide_now_ns() - since);
    atomic_store_explicit(&p->ring->blocked_ns, atomic_load_explicit(&p->blocked_ns, memory_order_relaxed),
                          memory_order_relaxed);
    tide__release_caller(caller);
    return has_room;
}

// ---- a drain that does not move ----

/// It may have been stopped, or its disk hangs. It was waited for once; until it moves, no thread waits again.
static void give_up(tide__feed *f) {
    if (atomic_exchange(&f->is_stalled, true) || f->stalls == NULL) return;
    const tide__caller_state caller = tide__hold_caller();
    f->stalls(f->stalls_ctx);
    tide__release_caller(caller);
}

/// Who does not wait still asks now and then whether it is there at all.
static void ask_watch_seldom(tide__feed *f) {
    const uint64_t now = tide_now_ns();
    uint64_t last = atomic_load_explicit(&f->asked_ns, memory_order_relaxed);
    if (now - last < PATIENCE_NS || !atomic_compare_exchange_strong(&f->asked_ns, &last, now)) return;
    const tide__caller_state caller = tide__hold_caller();
    ask_watch(f);
    tide__release_caller(caller);
}

/// Wait, as long as may be. False: there is none.
static bool wait_or_give_up(tide__feed *f, tide__producer *p, uint64_t n) {
    if (atomic_load_explicit(&f->is_stalled, memory_order_relaxed)) {
        p->gave_up = true;
        ask_watch_seldom(f);
        return !has_failed(f) && is_room_for(p, n);
    }
    if (wait_for_room(f, p, n, f->max_wait_ns)) return true;
    p->gave_up = !has_failed(f);
    if (p->gave_up) give_up(f);
    return false;
}

// ---- before the next event ----

static void lose(tide__producer *p, tide__put_time when) {
    tide__add_alone(&p->n_lost, 1);
    atomic_store_explicit(&p->ring->n_lost, atomic_load_explicit(&p->n_lost, memory_order_relaxed),
                          memory_order_relaxed);
    if (p->n_gap++ == 0) p->gap_when = when;
}

static uint64_t n_pending(const tide__producer *p) { return (uint64_t)(p->n_gap != 0) + (p->ended_run != 0); }

static void put_pending(tide__producer *p) {
    if (p->n_gap != 0) tide__producer_put_control(p, p->gap_when, TIDE__OP_GAP, 0, p->n_gap);
    if (p->ended_run != 0) tide__producer_put_control(p, p->ended_when, TIDE__SLOT_RUN_END, (uint64_t)p->ended_run, 0);
    p->n_gap = 0;
    p->ended_run = 0;
}

bool tide__feed_make_room(tide__feed *f, tide__producer *p, uint64_t thread, tide__put_time when, bool must) {
    const uint64_t n = 1 + n_pending(p) + (p->thread != thread);
    bool has_room = !has_failed(f) && is_room_for(p, n);
    while (!has_room && !has_failed(f) && grow_ring(f, p)) has_room = is_room_for(p, n);
    if (!has_room && (must || !f->drops)) has_room = wait_or_give_up(f, p, n);
    if (!has_room) {
        if (!must) lose(p, when); // what must be put in is no event
        p->limit = p->head;       // whatever comes next comes here again
        return false;
    }
    if (p->gave_up) {
        p->gave_up = false; // a full ring that has room: it moves
        atomic_store_explicit(&f->is_stalled, false, memory_order_relaxed);
    }
    put_pending(p);
    if (p->thread != thread) {
        tide__producer_put_control(p, when, TIDE__SLOT_THREAD, thread, 0);
        p->thread = thread;
        p->scope = (tide__last_scope){0};
    }
    return true;
}

void tide__feed_put_gap(tide__feed *f, tide__producer *p) {
    const uint64_t n = n_pending(p);
    if (n == 0 || has_failed(f)) return;
    const bool is_stalled = atomic_load_explicit(&f->is_stalled, memory_order_relaxed);
    if (is_room_for(p, n) || (!is_stalled && wait_for_room(f, p, n, LAST_WAIT_NS)))
        put_pending(p);
    else
        atomic_store_explicit(&f->is_stalled, true, memory_order_relaxed); // one wait for all rings
}

void tide__feed_check(tide__feed *f) {
    if (f->file.is_child) return;
    ask_watch(f);
}
