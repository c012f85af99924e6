// SPDX-License-Identifier: MIT
//
// From a ring to the file in one go: the slot that is next, and the usual event, an alloc or a free that nobody
// contradicts in the middle of a stretch of leaves. Nineteen of twenty are of that kind, and nothing of them is looked
// at twice. Included by drain_event.c and drain_merge.c, which do the rest.
#ifndef TIDE_PROFILER_DRAIN_DRAIN_USUAL_H
#define TIDE_PROFILER_DRAIN_DRAIN_USUAL_H

#include <string.h>

#include "profiler/drain/drain_internal.h"
#include "profiler/drain/replay_usual.h"

enum { TIDE__SLOT_KIND_MASK = 15, TIDE__DRAIN_AHEAD = 16 };

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
    // Blocks of slots further on are on their way to the cache while this one is looked at.
    if (r->end - at > TIDE__DRAIN_AHEAD) {
        const volatile tide__slot *later = &r->slots[(at + TIDE__DRAIN_AHEAD) & r->mask];
        tide__replay_prefetch(&d->replay, tide__drain_block_id(r->feed, later->block_id));
    }
    const volatile tide__slot *s = slot;
    r->op = s->op;
    r->kind_flags = s->kind_flags;
    r->number = s->block_id;
    const uint64_t ns = tide__drain_ns_of(r->feed, s->time, r->kind_flags);
    if (__builtin_expect(ns > INT64_MAX, 0)) return tide__drain_damage(d, r->feed, r, "a slot has no time", err);
    if ((int64_t)ns > r->t_ns) r->t_ns = (int64_t)ns;
    r->has_next = true;
    return TIDE_OK;
}

/// The block of a usual alloc becomes live. @return its series; 0: it is not usual, nothing was changed
static inline size_t tide__drain_usual_alloc(tide__drain *d, const tide__event *e) {
    tide__replay *live = &d->replay;
    const tide__leaves *l = &d->leaves;
    if (e->kind >= TIDE_N_KINDS || !tide__replay_has_room(live)) return 0;
    const size_t series_i = (size_t)live->series_of[e->device][e->kind]; // of no device there is none
    tide__series *s = &live->series[series_i];
    if (series_i == 0 || l->open[series_i].first_event == 0 ||
        !tide__series_holds_easily(live, s, e->requested_bytes, e->reserved_bytes) ||
        tide__replay_entry_of(live, e->block_id) != SIZE_MAX)
        return 0;
    *tide__replay_take_place(live, series_i, e->block_id, e->requested_bytes, e->reserved_bytes) =
        (tide__live_block){.block_id = e->block_id,
                           .alloc_event = e->id,
                           .requested_bytes = e->requested_bytes,
                           .reserved_bytes = e->reserved_bytes,
                           .device = e->device,
                           .kind = e->kind,
                           .run_id = e->run_id,
                           .alloc_ns = e->t_ns,
                           .address = e->address,
                           .stream = e->stream,
                           .thread = e->thread,
                           .scope_id = e->scope_id,
                           .tag_id = e->tag_id,
                           .allocator_id = e->allocator_id};
    tide__series_add(live, s, e->requested_bytes, e->reserved_bytes);
    s->n_allocs++;
    s->requested_bytes += e->requested_bytes;
    tide__leaf_rise(&l->open[0], &live->series[0], e->id, e->t_ns);
    tide__leaf_rise(&l->open[series_i], s, e->id, e->t_ns);
    return series_i;
}

/// The same of a block that a usual free ends.
static inline size_t tide__drain_usual_free(tide__drain *d, const tide__event *e) {
    tide__replay *live = &d->replay;
    const tide__leaves *l = &d->leaves;
    if ((e->kind >= TIDE_N_KINDS && e->kind != TIDE__NO_KIND) || live->n_live == 0 ||
        tide__replay_is_sparse(live, live->n_live - 1))
        return 0;
    const size_t entry_i = tide__replay_entry_of(live, e->block_id);
    if (entry_i == SIZE_MAX) return 0;
    const tide__live_entry *entry = &live->table[entry_i];
    const size_t series_i = entry->series;
    if (l->open[series_i].first_event == 0) return 0;
    tide__series *s = &live->series[series_i];
    tide__series_take(live, s, entry);
    tide__replay_give_place(live, entry_i);
    tide__leaf_fall(&l->open[0], &live->series[0]);
    tide__leaf_fall(&l->open[series_i], s);
    return series_i;
}

/// Take the event at the ring's position if it is usual: as tide__drain_event and tide__drain_take would. False:
/// nothing was changed.
static inline bool tide__drain_take_usual(tide__drain *d, const tide__drain_ring *r) {
    const tide__drain_feed *f = r->feed;
    tide__replay *live = &d->replay;
    tide__leaves *l = &d->leaves;
    const int64_t id = d->last_event + 1;
    if ((r->op != TIDE_MEM_ALLOC && r->op != TIDE_MEM_FREE_COMPLETED) || id >= l->plain_until ||
        live->n_series > l->n_open || d->n_events + 1 >= TIDE__DRAIN_BUFFER_EVENTS || r->number == 0 ||
        r->number >> TIDE__BLOCK_ID_BITS != 0)
        return false;
    const volatile tide__slot *s = &r->slots[r->position & r->mask];
    const uint64_t requested = s->requested_bytes, reserved = s->reserved_bytes;
    if ((requested | reserved) >> 63 != 0) return false;
    const unsigned kind = r->kind_flags & TIDE__SLOT_KIND_MASK;
    const tide__event e = {
        .id = id,
        .t_ns = r->t_ns > d->last_ns ? r->t_ns : d->last_ns,
        .block_id = tide__drain_block_id(f, r->number),
        .requested_bytes = (int64_t)requested,
        .reserved_bytes = (int64_t)reserved,
        .address = tide__drain_all_bits(s->address),
        .stream = tide__drain_all_bits(s->stream),
        .run_id = (int32_t)f->run_id,
        .thread = (int32_t)r->thread,
        .scope_id = (int32_t)tide__drain_number(f->scopes, f->n_scopes, s->scope),
        .tag_id = (int32_t)tide__drain_number(f->texts, f->n_texts, s->tag),
        .allocator_id = (int32_t)tide__drain_number(f->allocators, f->n_allocators, s->allocator),
        .device = (int16_t)tide__drain_number(f->devices, f->n_devices, s->device),
        .op = r->op,
        .kind = kind == TIDE__SLOT_NO_KIND ? TIDE__NO_KIND : (uint8_t)kind,
    };
    const size_t series_i = e.op == TIDE_MEM_ALLOC ? tide__drain_usual_alloc(d, &e) : tide__drain_usual_free(d, &e);
    if (series_i == 0) return false;
    tide__replay_heard(live, &live->series[series_i], e.id, e.t_ns);
    d->last_event = l->last_event = e.id;
    d->last_ns = l->end_ns = e.t_ns;
    d->events[d->n_events++] = e;
    return true;
}

#endif
