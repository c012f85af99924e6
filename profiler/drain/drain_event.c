// SPDX-License-Identifier: MIT
//
// From a slot of a ring to an event of the file: time to ns, numbers of the feed to numbers of the file. A slot may
// hold anything: what no producer writes is told apart here, and a number that the log does not define becomes none.
#include <string.h>

#include "profiler/drain/drain_internal.h"

enum { KIND_MASK = 15, NO_KIND = 15, FLAGS_SHIFT = 4, SOON = 4, LATER = 10 };

static bool is_scope_op(int op) { return op == TIDE__OP_SCOPE_ENTER || op == TIDE__OP_SCOPE_LEAVE; }
static bool is_memory_op(int op) { return op >= TIDE_MEM_ALLOC && op <= TIDE_MEM_SNAPSHOT; }

static int64_t number_in(const int64_t *map, size_t n, uint32_t number) {
    return number >= 1 && number <= n ? map[number - 1] : 0;
}

/// An alloc must have a device and a kind, or it is in no series; the rest may lack them.
static bool has_place(const tide__event *e) {
    if (e->op == TIDE_MEM_ALLOC) return e->device != 0 && e->kind < TIDE_N_KINDS;
    return e->kind < TIDE_N_KINDS || e->kind == TIDE__NO_KIND;
}

static bool has_good_numbers(const tide__slot *s) {
    return s->requested_bytes <= INT64_MAX && s->reserved_bytes <= INT64_MAX &&
           s->block_id < UINT64_C(1) << TIDE__BLOCK_ID_BITS;
}

/// The plain fields once each: a producer that is out of its mind may write while they are read.
static void copy_slot(const tide__slot *from, tide__slot *to) {
    const volatile tide__slot *s = from;
    to->time = s->time;
    to->block_id = s->block_id;
    to->requested_bytes = s->requested_bytes;
    to->reserved_bytes = s->reserved_bytes;
    to->address = s->address;
    to->stream = s->stream;
    to->tag = s->tag;
    to->scope = s->scope;
    to->op = s->op;
    to->kind_flags = s->kind_flags;
    to->device = s->device;
    to->allocator = s->allocator;
}

/// All but number, time, thread and run. False: nothing that a producer writes.
static bool make_event(const tide__drain_feed *f, const tide__slot *s, tide__event *e) {
    const unsigned kind = s->kind_flags & KIND_MASK;
    *e = (tide__event){.op = s->op,
                       .kind = kind == NO_KIND ? TIDE__NO_KIND : (uint8_t)kind,
                       .requested_bytes = (int64_t)s->requested_bytes};
    if (!has_good_numbers(s)) return false;
    if (s->op == TIDE__OP_GAP || is_scope_op(s->op)) {
        e->kind = TIDE__NO_KIND;
        e->scope_id = (int32_t)number_in(f->scopes, f->n_scopes, s->scope);
        if (s->op == TIDE__OP_GAP) return e->requested_bytes > 0;
        e->requested_bytes = 0;
        return e->scope_id != 0;
    }
    if (!is_memory_op(s->op)) return false;
    e->reserved_bytes = (int64_t)s->reserved_bytes;
    // A pool, too, is of its process: another one may have other blocks at the same addresses.
    if (s->block_id != 0 || s->op == TIDE_MEM_POOL_DISCARD)
        e->block_id = (int64_t)s->block_id + ((f->process_id - 1) << TIDE__BLOCK_ID_BITS);
    memcpy(&e->address, &s->address, sizeof e->address); // all 64 bits
    memcpy(&e->stream, &s->stream, sizeof e->stream);
    e->device = (int16_t)number_in(f->devices, f->n_devices, s->device);
    e->allocator_id = (int32_t)number_in(f->allocators, f->n_allocators, s->allocator);
    e->tag_id = (int32_t)number_in(f->texts, f->n_texts, s->tag);
    e->scope_id = (int32_t)number_in(f->scopes, f->n_scopes, s->scope);
    return has_place(e);
}

static uint64_t ns_of(tide__drain_feed *f, uint64_t time, unsigned kind_flags) {
    return kind_flags >> FLAGS_SHIFT & TIDE__SLOT_NS ? time : tide__drain_clock_ns(&f->clock, time);
}

uint64_t tide__drain_slot_ns(tide__drain_feed *f, const tide__slot *slot) {
    const volatile tide__slot *s = slot;
    return ns_of(f, s->time, s->kind_flags);
}

/// Blocks of slots further on are on their way to the cache while this one is looked at.
static void fetch_ahead(const tide__drain *d, const tide__drain_ring *r) {
    const uint64_t at = r->position;
    if (r->end - at <= LATER) return;
    const int64_t base = (r->feed->process_id - 1) << TIDE__BLOCK_ID_BITS;
    const volatile tide__slot *soon = &r->slots[(at + SOON) & r->mask], *later = &r->slots[(at + LATER) & r->mask];
    tide__replay_prefetch(&d->replay, (int64_t)soon->block_id + base, (int64_t)later->block_id + base);
}

tide_status tide__drain_next(tide__drain *d, tide__drain_ring *r, tide_error *err) {
    r->has_next = false;
    if (r->is_broken || r->position >= r->end) return TIDE_OK;
    const tide__slot *slot = tide__drain_slot(r, r->position);
    if (slot == NULL) return tide__drain_damage(d, r->feed, r, "a slot is not the one of its position", err);
    fetch_ahead(d, r);
    tide__slot s;
    copy_slot(slot, &s);
    const uint64_t ns = ns_of(r->feed, s.time, s.kind_flags);
    if (ns > INT64_MAX) return tide__drain_damage(d, r->feed, r, "a slot has no time", err);
    if ((int64_t)ns > r->t_ns) r->t_ns = (int64_t)ns;
    r->op = s.op;
    r->number = s.block_id;
    r->is_good = tide__drain_is_control(s.op) || make_event(r->feed, &s, &r->event);
    r->has_next = true;
    return TIDE_OK;
}
