// SPDX-License-Identifier: MIT
//
// From a slot of a ring to an event of the file: time to ns, numbers of the feed to numbers of the file. A slot may
// hold anything: what no producer writes is recognised here, and a number that the log does not define becomes 0. No
// field of a slot is read twice, because another process can write it. Included by drain_merge.c and drain_usual.c.
#ifndef TIDE_PROFILER_DRAIN_DRAIN_SLOT_H
#define TIDE_PROFILER_DRAIN_DRAIN_SLOT_H

#include <string.h>

#include "profiler/drain/drain_internal.h"

enum { TIDE__SLOT_KIND_MASK = 15 };

/// An address or a stream: a large one is a negative number of the file.
static inline int64_t tide__drain_all_bits(uint64_t v) {
    int64_t number;
    memcpy(&number, &v, sizeof number);
    return number;
}

/// What the file calls number `number` of the feed; 0: none, or one that its log does not define.
static inline int64_t tide__drain_number(const int64_t *map, size_t n, uint32_t number) {
    const uint32_t i = number - 1;
    return i < n ? map[i] : 0;
}

static inline uint64_t tide__drain_ns_of(tide__drain_feed *f, uint64_t time, unsigned kind_flags) {
    return kind_flags >> TIDE__SLOT_FLAG_SHIFT & TIDE__SLOT_NS ? time : tide__drain_clock_ns(&f->clock, time);
}

/// Time of a slot in ns; > INT64_MAX: none that a producer gives.
static inline uint64_t tide__drain_slot_ns(tide__drain_feed *f, const tide__slot *slot) {
    const volatile tide__slot *s = slot;
    return tide__drain_ns_of(f, s->time, s->kind_flags);
}

/// Look at the slot at the ring's position: what says when it is due. No field of a slot is read twice, here or later.
TIDE_NODISCARD static inline tide_status tide__drain_next(tide__drain *d, tide__drain_ring *r, tide_error *err) {
    const uint64_t at = r->position;
    r->has_next = false;
    if (r->is_broken || at >= r->end) return TIDE_OK;
    const tide__slot *slot = tide__drain_slot(r, at);
    if (__builtin_expect(slot == NULL, 0))
        return tide__drain_damage(d, r->feed, r, "a slot is not the one of its position", err);
    const volatile tide__slot *s = slot;
    r->op = s->op;
    r->kind_flags = s->kind_flags;
    r->number = s->block_id;
    const uint64_t ns = tide__drain_ns_of(r->feed, s->time, r->kind_flags);
    if (__builtin_expect(ns > INT64_MAX, 0)) return tide__drain_damage(d, r->feed, r, "a slot has no time", err);
    r->own_ns = (int64_t)ns;
    if ((int64_t)ns > r->t_ns) r->t_ns = (int64_t)ns;
    r->has_next = true;
    return TIDE_OK;
}

/// The memory operation, scope or gap in slot `s` of `r`, all but its number. `op`, `kind_flags` and `number`
/// are fields of the slot that were read before. False: nothing that a producer writes.
__attribute__((always_inline)) static inline bool tide__drain_make_event(const tide__drain_ring *r,
                                                                         const volatile tide__slot *s, uint8_t op,
                                                                         uint8_t kind_flags, uint64_t number,
                                                                         int64_t t_ns, tide__event *e) {
    const tide__drain_feed *f = r->feed;
    const uint64_t requested = s->requested_bytes, reserved = s->reserved_bytes;
    if ((number >> TIDE__BLOCK_ID_BITS | (requested | reserved) >> 63) != 0) return false;
    e->t_ns = t_ns;
    e->run_id = (int32_t)f->run_id;
    e->thread = (int32_t)r->thread;
    e->scope_id = (int32_t)tide__drain_number(f->scopes, f->n_scopes, s->scope);
    e->op = op;
    if (__builtin_expect(op < TIDE_MEM_ALLOC || op > TIDE_MEM_SIZED, 0)) {
        // A run says which block it works in.
        e->block_id = op == TIDE__OP_SCOPE_ENTER && number != 0 ? tide__drain_block_id(f, number) : 0;
        e->reserved_bytes = e->address = e->stream = 0;
        e->tag_id = e->allocator_id = 0;
        e->device = 0;
        e->kind = TIDE__NO_KIND;
        e->requested_bytes = op == TIDE__OP_GAP ? (int64_t)requested : 0;
        if (op == TIDE__OP_GAP) return requested > 0;
        return (op == TIDE__OP_SCOPE_ENTER || op == TIDE__OP_SCOPE_LEAVE) && e->scope_id != 0;
    }
    const unsigned kind = kind_flags & TIDE__SLOT_KIND_MASK;
    const int16_t device = (int16_t)tide__drain_number(f->devices, f->n_devices, s->device);
    // A pool is of its process too: another one may have other blocks at the same addresses.
    e->block_id = number != 0 || op == TIDE_MEM_POOL_DISCARD ? tide__drain_block_id(f, number) : 0;
    e->requested_bytes = (int64_t)requested;
    e->reserved_bytes = (int64_t)reserved;
    e->address = tide__drain_all_bits(s->address);
    e->stream = tide__drain_all_bits(s->stream);
    e->tag_id = (int32_t)tide__drain_number(f->texts, f->n_texts, s->tag);
    e->allocator_id = (int32_t)tide__drain_number(f->allocators, f->n_allocators, s->allocator);
    e->device = device;
    e->kind = kind < TIDE_N_KINDS ? (uint8_t)kind : TIDE__NO_KIND;
    // An alloc without a device or a kind would be in no series; other operations may lack them.
    if (op == TIDE_MEM_ALLOC) return kind < TIDE_N_KINDS && device != 0;
    if (__builtin_expect(op == TIDE_MEM_DEVICE_USAGE, 0)) return tide__event_is_true_usage(e);
    if (__builtin_expect(op == TIDE_MEM_SIZED, 0)) return tide__event_is_true_size(e);
    return kind < TIDE_N_KINDS || kind == TIDE__SLOT_NO_KIND;
}

#endif
