// SPDX-License-Identifier: MIT
//
// An event into a slot: the way that every allocation of the recorded program takes. See feed.h.
//
// Nothing here locks, calls the system or allocates as long as the event's names were seen before and the ring has
// room. What is seldom (a new name, a full ring, another thread's event) is a call away, so that the rest stays short.
#include "core/base/text.h"
#include "core/memory/thread_number_internal.h"
#include "profiler/event.h"
#include "profiler/feed/feed_internal.h"

static inline tide__put_time time_of(const tide__feed *f, uint64_t t_ns) {
    if (t_ns != 0) return (tide__put_time){.time = t_ns, .flags = TIDE__SLOT_NS};
    if (f->has_ticks) return (tide__put_time){.time = tide__ticks()};
    return (tide__put_time){.time = tide_now_ns(), .flags = TIDE__SLOT_NS};
}

/// Whether the next slot may be written at once.
static inline bool is_ready(const tide__feed *f, const tide__producer *p, uint64_t thread) {
    return p->head != p->limit && p->thread == thread &&
           atomic_load_explicit(&f->head->drain, memory_order_relaxed) != TIDE__DRAIN_FAILED;
}

static inline bool has_room(tide__feed *f, tide__producer *p, uint64_t thread, tide__put_time when, bool must) {
    if (__builtin_expect(is_ready(f, p, thread), 1)) return true;
    return tide__feed_make_room(f, p, thread, when, must);
}

static void count_event(tide__producer *p) {
    atomic_store_explicit(&p->ring->n_events, ++p->n_events, memory_order_relaxed);
}

// ---- what an event is about ----

static const char *fault_of(const tide_memory_event *e) {
    if ((unsigned)e->op < TIDE_MEM_ALLOC || (unsigned)e->op > TIDE_MEM_SNAPSHOT) return "no such operation";
    if ((unsigned)e->kind >= TIDE_N_KINDS) return "no such memory kind";
    if (e->block_id >> TIDE__BLOCK_ID_BITS != 0) return "its block number passes 2^48";
    return "a number of it passes 2^63 - 1";
}

static inline bool is_possible(const tide_memory_event *e) {
    return (unsigned)e->op - TIDE_MEM_ALLOC <= TIDE_MEM_SNAPSHOT - TIDE_MEM_ALLOC && (unsigned)e->kind < TIDE_N_KINDS &&
           e->block_id >> TIDE__BLOCK_ID_BITS == 0 && (e->t_ns | e->requested_bytes | e->reserved_bytes) >> 63 == 0;
}

static bool device_number(tide__feed *f, tide__producer *p, tide_device device) {
    const tide__log_device payload = {.type = (int32_t)device.type, .index = device.index};
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_DEVICE, &payload, sizeof payload);
    if (r == NULL) return false;
    p->device = device;
    p->device_number = r->id;
    p->totals = p->ring->totals[r->id - 1];
    return true;
}

static bool new_allocator(tide__feed *f, tide__producer *p, const char *name, uint32_t *number) {
    const tide__text_match *text = tide__feed_text(f, p, name);
    if (text == NULL) return false;
    const uint32_t text_id = text->number;
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_ALLOCATOR, &text_id, sizeof text_id);
    if (r == NULL) return false;
    tide__text_match_set(&p->allocators[tide__address_hash(name) & (TIDE__ALLOCATOR_CACHE - 1)], name, text->copy,
                         r->id);
    *number = r->id;
    return true;
}

static inline bool allocator_number(tide__feed *f, tide__producer *p, const char *name, uint32_t *number) {
    *number = 0;
    if (name == NULL) return true;
    const tide__text_match *a = &p->allocators[tide__address_hash(name) & (TIDE__ALLOCATOR_CACHE - 1)];
    if (__builtin_expect(!tide__text_match_is(a, name), 0)) return new_allocator(f, p, name, number);
    *number = a->number;
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
    if (scope == NULL) return true;
    if (__builtin_expect(
            p->scope.key != scope || p->scope.entry != scope->entry || scope->entry == 0 || p->scopes_of != thread, 0))
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

void tide__feed_memory(tide__feed *f, const tide_memory_event *e) {
    tide__producer *p = tide__feed_producer(f);
    if (__builtin_expect(p == NULL, 0)) return;
    if (__builtin_expect(!is_possible(e), 0)) {
        tide__feed_refuse(f, TIDE_ERR_INVALID, fault_of(e));
        return;
    }
    const tide__put_time when = time_of(f, e->t_ns);
    uint32_t tag, scope, allocator;
    if (!tag_number(f, p, e->tag, &tag) || !scope_number(f, p, e->thread, e->scope, &scope) ||
        !allocator_number(f, p, e->allocator, &allocator))
        return;
    if (__builtin_expect(p->device_number == 0 || !tide_device_equal(p->device, e->device), 0) &&
        !device_number(f, p, e->device))
        return;
    count_bytes(p, e);
    count_event(p);
    if (!has_room(f, p, e->thread, when, false)) return;
    tide__slot *s = &p->slots[p->head & p->mask];
    s->time = when.time;
    s->block_id = e->block_id;
    s->requested_bytes = e->requested_bytes;
    s->reserved_bytes = e->reserved_bytes;
    s->address = e->address;
    s->stream = e->stream;
    s->tag = tag;
    s->scope = scope;
    s->op = (uint8_t)e->op;
    s->kind_flags = (uint8_t)((uint32_t)e->kind | when.flags << TIDE__SLOT_FLAG_SHIFT);
    s->device = (uint8_t)p->device_number;
    s->allocator = (uint8_t)allocator;
    tide__producer_publish(p, s);
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
    const tide__put_time when = time_of(f, e->t_ns);
    uint32_t scope;
    if (!scope_number(f, p, e->thread, e->scope, &scope)) return;
    count_event(p);
    if (!has_room(f, p, e->thread, when, false)) return;
    tide__producer_put_plain(p, when, e->enter ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE, 0, 0, scope);
}

void tide__feed_run(tide__feed *f, bool begin, int64_t run_id, uint64_t t_ns) {
    tide__producer *p = tide__feed_producer(f);
    if (p == NULL) return;
    const tide__put_time when = time_of(f, t_ns & INT64_MAX);
    const uint64_t thread = p->thread != UINT64_MAX ? p->thread : tide__thread_number();
    if (!has_room(f, p, thread, when, true)) return;
    tide__producer_put_plain(p, when, begin ? TIDE__SLOT_RUN_BEGIN : TIDE__SLOT_RUN_END, (uint64_t)run_id, 0, 0);
}
