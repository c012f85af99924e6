// SPDX-License-Identifier: MIT
//
// From a slot of a ring to an event of the file: time to ns, numbers of the feed to numbers of the file. A slot may
// hold anything: what no producer writes is told apart here, and a number that the log does not define becomes none.
#include "profiler/drain/drain_slot.h"

static bool is_scope_op(int op) { return op == TIDE__OP_SCOPE_ENTER || op == TIDE__OP_SCOPE_LEAVE; }
static bool is_memory_op(int op) { return op >= TIDE_MEM_ALLOC && op <= TIDE_MEM_SNAPSHOT; }

/// An alloc must have a device and a kind, or it is in no series; the rest may lack them.
static bool has_place(const tide__event *e) {
    if (e->op == TIDE_MEM_ALLOC) return e->device != 0 && e->kind < TIDE_N_KINDS;
    return e->kind < TIDE_N_KINDS || e->kind == TIDE__NO_KIND;
}

/// Of the slot, where a field may hold anything.
static int64_t block_of(const tide__drain_ring *r) {
    // A pool, too, is of its process: another one may have other blocks at the same addresses.
    return r->number != 0 || r->op == TIDE_MEM_POOL_DISCARD ? tide__drain_block_id(r->feed, r->number) : 0;
}

/// What is no memory operation. False: nothing that a producer writes.
static bool make_other(const tide__drain_ring *r, uint64_t n, uint32_t scope, tide__event *e) {
    *e = (tide__event){.op = r->op, .kind = TIDE__NO_KIND, .t_ns = r->t_ns};
    e->thread = (int32_t)r->thread;
    e->run_id = (int32_t)r->feed->run_id;
    e->scope_id = (int32_t)tide__drain_number(r->feed->scopes, r->feed->n_scopes, scope);
    if (r->op != TIDE__OP_GAP) return is_scope_op(r->op) && e->scope_id != 0;
    e->requested_bytes = (int64_t)n;
    return n > 0;
}

bool tide__drain_event(tide__drain_ring *r, tide__event *e) {
    const tide__drain_feed *f = r->feed;
    const volatile tide__slot *s = tide__drain_place(r, r->position);
    const uint64_t requested = s->requested_bytes, reserved = s->reserved_bytes;
    const uint32_t scope = s->scope;
    if ((requested | reserved) >> 63 != 0 || r->number >> TIDE__BLOCK_ID_BITS != 0) return false;
    if (__builtin_expect(!is_memory_op(r->op), 0)) return make_other(r, requested, scope, e);
    const unsigned kind = r->kind_flags & TIDE__SLOT_KIND_MASK;
    e->t_ns = r->t_ns;
    e->block_id = block_of(r);
    e->requested_bytes = (int64_t)requested;
    e->reserved_bytes = (int64_t)reserved;
    e->address = tide__drain_all_bits(s->address);
    e->stream = tide__drain_all_bits(s->stream);
    e->run_id = (int32_t)f->run_id;
    e->thread = (int32_t)r->thread;
    e->scope_id = (int32_t)tide__drain_number(f->scopes, f->n_scopes, scope);
    e->tag_id = (int32_t)tide__drain_number(f->texts, f->n_texts, s->tag);
    e->allocator_id = (int32_t)tide__drain_number(f->allocators, f->n_allocators, s->allocator);
    e->device = (int16_t)tide__drain_number(f->devices, f->n_devices, s->device);
    e->op = r->op;
    e->kind = kind == TIDE__SLOT_NO_KIND ? TIDE__NO_KIND : (uint8_t)kind;
    return has_place(e);
}

uint64_t tide__drain_slot_ns(tide__drain_feed *f, const tide__slot *slot) {
    const volatile tide__slot *s = slot;
    return tide__drain_ns_of(f, s->time, s->kind_flags);
}
