// SPDX-License-Identifier: MIT
//
// Writes an event into a slot of the calling thread's ring: every allocation of the recorded program comes here. See
// feed.h.
//
// Nothing here takes a lock, makes a system call or allocates, as long as the names of the event are known and the ring
// has room. There are two paths:
//
//     usual    the ring has room, and the thread has used the names of this event lately: no function call, hardly a
//              branch, and nothing is stored before everything is known
//     any      everything else; it starts from the beginning
#include "core/base/assert.h"
#include "core/base/text.h"
#include "core/memory/thread_number.h"
#include "profiler/event.h"
#include "profiler/feed/feed_internal.h"

static inline tide__put_time time_of(const tide__feed *f, uint64_t t_ns) {
    if (t_ns != 0) return (tide__put_time){.time = t_ns, .flags = TIDE__SLOT_NS | TIDE__SLOT_GIVEN};
    if (f->has_ticks) return (tide__put_time){.time = tide__ticks()};
    return (tide__put_time){.time = tide_now_ns(), .flags = TIDE__SLOT_NS};
}

/// Whether the next slot may be written at once.
static inline bool is_ready(const tide__producer *p, uint64_t thread, const _Atomic uint32_t *drain) {
    return p->head != p->limit && p->thread == thread &&
           atomic_load_explicit(drain, memory_order_relaxed) != TIDE__DRAIN_FAILED;
}

static inline bool has_room(tide__feed *f, tide__producer *p, uint64_t thread, tide__put_time when, bool must) {
    if (__builtin_expect(is_ready(p, thread, &f->head->drain), 1)) return true;
    return tide__feed_make_room(f, p, thread, when, must);
}

// ---- what an event is about ----

/// What a sample of a device may say, and what a tensor of a plan may come out as; of other operations nothing.
static inline bool is_true_use(const tide_memory_event *e) {
    if (e->op < TIDE_MEM_DEVICE_USAGE) return true;
    if (e->requested_bytes > e->reserved_bytes) return false;
    return e->op == TIDE_MEM_SIZED || (e->block_id == 0 && e->kind == TIDE_KIND_DEFAULT);
}

static const char *fault_of(const tide_memory_event *e) {
    if ((unsigned)e->op < TIDE_MEM_ALLOC || (unsigned)e->op > TIDE_MEM_SIZED) return "no such operation";
    if ((unsigned)e->kind >= TIDE_N_KINDS) return "no such memory kind";
    if (e->block_id >> TIDE__BLOCK_ID_BITS != 0) return "its block number passes 2^48";
    if (!is_true_use(e) && e->op == TIDE_MEM_SIZED) return "a tensor that takes more bytes than it has";
    if (!is_true_use(e)) return "a device with more bytes in use than it has, or a sample of it with a block or a kind";
    return "a number of it passes 2^63 - 1";
}

static inline bool is_possible(const tide_memory_event *e) {
    return (unsigned)e->op - TIDE_MEM_ALLOC <= TIDE_MEM_SIZED - TIDE_MEM_ALLOC && (unsigned)e->kind < TIDE_N_KINDS &&
           is_true_use(e) && e->block_id >> TIDE__BLOCK_ID_BITS == 0 &&
           (e->t_ns | e->requested_bytes | e->reserved_bytes) >> 63 == 0;
}

static bool device_number(tide__feed *f, tide__producer *p, tide_device device) {
    const tide__log_device payload = {.type = (int32_t)device.type, .index = device.index};
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_DEVICE, &payload, sizeof payload);
    if (r == NULL) return false;
    p->device = device;
    p->device_bits = r->id << TIDE__SHIFT_DEVICE;
    p->totals = p->ring->totals[r->id - 1];
    return true;
}

static bool new_allocator(tide__feed *f, tide__producer *p, const char *name, uint32_t *bits) {
    const tide__text_match *text = tide__feed_text(f, p, name);
    if (text == NULL) return false;
    const uint32_t text_id = text->number;
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_ALLOCATOR, &text_id, sizeof text_id);
    if (r == NULL) return false;
    *bits = r->id << TIDE__SHIFT_ALLOCATOR;
    tide__text_match_set(&p->allocators[tide__address_hash(name, TIDE__ALLOCATOR_BITS)], name, text->copy, *bits);
    return true;
}

/// Its number, where a slot has it.
static inline bool allocator_bits(tide__feed *f, tide__producer *p, const char *name, uint32_t *bits) {
    *bits = 0;
    if (name == NULL) return true;
    const tide__text_match *a = &p->allocators[tide__address_hash(name, TIDE__ALLOCATOR_BITS)];
    if (!tide__text_match_is(a, name)) return new_allocator(f, p, name, bits);
    *bits = a->number;
    return true;
}

static inline bool tag_number(tide__feed *f, tide__producer *p, const char *tag, uint32_t *number) {
    *number = 0;
    if (tag == NULL) return true;
    const tide__text_match *t = tide__text_cached(p, tag);
    if (__builtin_expect(t == NULL, 0)) t = tide__feed_text(f, p, tag);
    if (__builtin_expect(t == NULL, 0)) return false;
    *number = t->number;
    return true;
}

static inline bool scope_number(tide__feed *f, tide__producer *p, uint64_t thread, const tide_scope *scope,
                                uint32_t *number) {
    *number = 0;
    if (scope == NULL) {
        p->scope = (tide__last_scope){0};
        return true;
    }
    if (__builtin_expect(p->thread != thread || p->scope.key != scope || p->scope.entry != scope->entry, 0))
        return tide__feed_scope_number(f, p, thread, scope, number);
    *number = p->scope.number;
    return true;
}

static inline void count_bytes(tide__producer *p, const tide_memory_event *e) {
    tide__ring_total *t = &p->totals[e->kind];
    if (e->op == TIDE_MEM_ALLOC) {
        tide__add_alone(&t->n_allocs, 1);
        tide__add_alone(&t->requested_bytes, e->requested_bytes);
    } else if (e->op == TIDE_MEM_FREE_COMPLETED) {
        tide__add_alone(&t->n_frees, 1);
        tide__add_alone(&t->freed_bytes, e->requested_bytes);
    }
}

// ---- in ----

static __attribute__((noinline)) void put_any(tide__feed *f, const tide_memory_event *e) {
    tide__producer *p = tide__feed_producer(f);
    if (p == NULL) return;
    if (!is_possible(e)) {
        tide__feed_refuse(f, TIDE_ERR_INVALID, fault_of(e));
        return;
    }
    const tide__put_time when = time_of(f, e->t_ns);
    uint32_t tag, scope, allocator;
    // A known allocator means a known device to the usual way.
    if ((p->totals == NULL || !tide_device_equal(p->device, e->device)) && !device_number(f, p, e->device)) return;
    if (!tag_number(f, p, e->tag, &tag) || !scope_number(f, p, e->thread, e->scope, &scope) ||
        !allocator_bits(f, p, e->allocator, &allocator))
        return;
    count_bytes(p, e);
    if (!has_room(f, p, e->thread, when, false)) return;
    TIDE_ASSERT(p->head != p->limit && p->limit - p->head <= p->mask + 1);
    tide__slot *s = &p->slots[p->head & p->mask];
    s->time = when.time;
    s->block_id = e->block_id;
    s->requested_bytes = e->requested_bytes;
    s->reserved_bytes = e->reserved_bytes;
    s->address = e->address;
    s->stream = e->stream;
    s->tag = tag;
    s->scope = scope;
    const uint32_t kind_flags = (uint32_t)e->kind | when.flags << TIDE__SLOT_FLAG_SHIFT;
    tide__slot_set_small(s, (uint32_t)e->op << TIDE__SHIFT_OP | kind_flags << TIDE__SHIFT_KIND | p->device_bits |
                                allocator);
    tide__producer_publish(p, s);
}

/// Allocations and frees with a time of now, as they can be.
static inline bool is_usual(const tide_memory_event *e) {
    return e->t_ns == 0 && (unsigned)e->op - 1 < 3 && (unsigned)e->kind < TIDE_N_KINDS &&
           e->block_id >> TIDE__BLOCK_ID_BITS == 0 && (int64_t)(e->requested_bytes | e->reserved_bytes) >= 0;
}

/// count_bytes for those. Bit 1 of an operation: a free; bit 0: one that counts. Which it is no processor can guess.
static inline void count_usual(tide__producer *p, const tide_memory_event *e) {
    const unsigned is_free = (unsigned)e->op >> 1, counts = (unsigned)e->op & 1;
    _Atomic uint64_t *n = (_Atomic uint64_t *)&p->totals[e->kind] + is_free;
    tide__add_alone(&n[0], counts);
    tide__add_alone(&n[2], e->requested_bytes & -(uint64_t)counts);
}
_Static_assert(TIDE_MEM_ALLOC == 1 && TIDE_MEM_FREE_REQUESTED == 2 && TIDE_MEM_FREE_COMPLETED == 3, "see count_usual");
_Static_assert(offsetof(tide__ring_total, n_allocs) == 0 && offsetof(tide__ring_total, n_frees) == 8 &&
                   offsetof(tide__ring_total, requested_bytes) == 16 && offsetof(tide__ring_total, freed_bytes) == 24,
               "see count_usual");

/// Both numbers of it at once.
static inline bool is_last_device(const tide__producer *p, const tide_memory_event *e) {
    uint64_t was, is;
    memcpy(&was, &p->device, sizeof was);
    memcpy(&is, &e->device, sizeof is);
    return was == is;
}
_Static_assert(sizeof(tide_device) == 8, "see is_last_device");

enum { AHEAD = 16 }; ///< slots

/// Have the line near and ours before it is written: the drain, on another processor, was the last to read it.
__attribute__((always_inline)) static inline void fetch_to_write(const tide__slot *s) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*s)); // the builtin takes the plain one, which leaves the line shared
#else
    __builtin_prefetch(s, 1);
#endif
}

/// An event that has a place, of the last scope and the last device.
static inline void put_known(tide__producer *p, const tide_memory_event *e, const tide__text_match *tag,
                             const tide__text_match *allocator) {
    tide__ring_header *ring = p->ring;
    TIDE_ASSERT(p->head != p->limit && p->limit - p->head <= p->mask + 1);
    count_usual(p, e);
    tide__slot *s = &p->slots[p->head & p->mask];
    const uint64_t head = p->head + 1;
    s->time = tide__ticks();
    s->block_id = e->block_id;
    s->requested_bytes = e->requested_bytes;
    s->reserved_bytes = e->reserved_bytes;
    s->address = e->address;
    s->stream = e->stream;
    s->tag = tag->number;
    s->scope = p->scope.number;
    tide__slot_set_small(s, (uint32_t)e->op << TIDE__SHIFT_OP | (uint32_t)e->kind << TIDE__SHIFT_KIND | p->device_bits |
                                allocator->number);
    atomic_store_explicit(&s->sequence, (uint32_t)head, memory_order_release);
    __atomic_store_n(&p->head, head, __ATOMIC_RELAXED); // as of tide__producer_publish
    atomic_store_explicit(&ring->head, head, memory_order_release);
    fetch_to_write(&p->slots[(head + AHEAD) & p->mask]);
}

/// The same of an event with a name that is longer than what is compared at once.
static __attribute__((noinline)) void put_long(tide__feed *f, const tide_memory_event *e, tide__producer *p,
                                               const tide__text_match *tag, const tide__text_match *allocator) {
    if (tide__text_match_goes_on(tag, e->tag) && tide__text_match_goes_on(allocator, e->allocator))
        put_known(p, e, tag, allocator);
    else
        put_any(f, e);
}

/// Number 0 and nothing to compare.
static const tide__text_match no_text;

void tide__feed_memory(tide__feed *f, const tide_memory_event *e) {
    const tide__thread_feed *hot = &tide__thread_feed_hot;
    if (hot->serial != atomic_load_explicit(&f->serial, memory_order_relaxed)) goto any;
    tide__producer *p = hot->producer;
    if (!is_usual(e) || !is_ready(p, e->thread, p->usual_drain)) goto any;
    const tide__text_match *tag = &no_text;
    if (e->tag != NULL) {
        tag = tide__text_at(p, e->tag);
        if (tag == NULL || !tide__text_match_begins(tag, e->tag)) goto any;
    }
    const tide__text_match *allocator = &p->allocators[tide__address_hash(e->allocator, TIDE__ALLOCATOR_BITS)];
    __asm__("" : "+r"(allocator)); // or else gcc computes its address three times
    if (allocator->key != e->allocator || !tide__text_match_begins(allocator, e->allocator)) goto any;
    if (p->scope.key != e->scope || (e->scope != NULL && p->scope.entry != e->scope->entry)) goto any;
    if (!is_last_device(p, e)) goto any; // there is one: an allocator is known
    if (__builtin_expect((tag->n_rest | allocator->n_rest) != 0, 0))
        put_long(f, e, p, tag, allocator);
    else
        put_known(p, e, tag, allocator);
    return;
any:
    put_any(f, e);
}

void tide__feed_scope(tide__feed *f, const tide_scope_event *e) {
    tide__producer *p = tide__feed_producer(f);
    if (__builtin_expect(p == NULL, 0)) return;
    if (__builtin_expect(e->t_ns >> 63 != 0, 0)) {
        tide__feed_refuse(f, TIDE_ERR_INVALID, "a number of it passes 2^63 - 1");
        return;
    }
    if (__builtin_expect(e->scope == NULL, 0)) {
        tide__feed_refuse(f, TIDE_ERR_INVALID, "no scope to enter or leave");
        return;
    }
    const uint64_t block_id = e->enter ? e->scope->block_id : 0;
    if (__builtin_expect(block_id >> TIDE__BLOCK_ID_BITS != 0, 0)) {
        tide__feed_refuse(f, TIDE_ERR_INVALID, "the number of its block passes 2^48");
        return;
    }
    const tide__put_time when = time_of(f, e->t_ns);
    uint32_t scope;
    if (!scope_number(f, p, e->thread, e->scope, &scope)) return;
    if (!has_room(f, p, e->thread, when, false)) return;
    tide__producer_put_plain(p, when, e->enter ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE, block_id, 0, scope);
}

void tide__feed_run(tide__feed *f, bool begin, int64_t run_id, uint64_t t_ns) {
    tide__producer *p = tide__feed_producer(f);
    if (p == NULL) return;
    const tide__put_time when = time_of(f, t_ns & INT64_MAX);
    const uint64_t thread = p->thread != UINT64_MAX ? p->thread : tide__thread_number();
    if (!has_room(f, p, thread, when, true)) {
        if (!begin) {
            if (run_id != f->begun_run) return; // its begin found no room: no reader knows of it
            p->ended_run = run_id;              // noted when there is room, or found when the feed has ended
            p->ended_when = when;
        } else if (atomic_load_explicit(&f->is_stalled, memory_order_relaxed)) {
            tide__feed_refuse(f, TIDE_ERR_BUSY, "a run begins, and nothing is taken out of the full ring");
        }
        return;
    }
    if (begin) f->begun_run = run_id;
    tide__producer_put_control(p, when, begin ? TIDE__SLOT_RUN_BEGIN : TIDE__SLOT_RUN_END, (uint64_t)run_id, 0);
}
