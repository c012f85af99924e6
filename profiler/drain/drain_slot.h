// SPDX-License-Identifier: MIT
//
// What the fields of a slot mean in the file, and the slot that is next in its ring. No field of a slot is read twice:
// who writes it is another process, and may be anybody. Included by drain_event.c, drain_merge.c and drain_stretch.c.
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

#endif
