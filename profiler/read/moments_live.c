// SPDX-License-Identifier: MIT
//
// Who was live: sets of blocks with their names. See moments.h.
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

void tide_live_set_deinit(tide_live_set *s) {
    tide_host_free(s->items);
    *s = (tide_live_set){0};
}

static tide_live named(const tide_trace *t, const tide__live_block *b) {
    const tide__trace_scope scope = tide__trace_scope_of(t, b->scope_id);
    return (tide_live){.block_id = (uint64_t)b->block_id,
                       .name = tide__trace_text(t, b->tag_id),
                       .scope = scope.name,
                       .scope_index = scope.step,
                       .device = tide__trace_device(t, b->device),
                       .allocator = tide__trace_text(t, b->allocator_id),
                       .kind = (tide_memory_kind)b->kind,
                       .thread = (uint32_t)b->thread,
                       .run_id = b->run_id,
                       .requested_bytes = (uint64_t)b->requested_bytes,
                       .reserved_bytes = (uint64_t)b->reserved_bytes,
                       .address = (uint64_t)b->address,
                       .stream = (uint64_t)b->stream,
                       .alloc_event = (uint64_t)b->alloc_event,
                       .alloc_ns = (uint64_t)b->alloc_ns,
                       .free_requested = b->free_requested_ns != 0};
}

/// A set that is being made: first the blocks, then their order, then names. Large items are moved once.
typedef struct builder {
    const tide_trace *t;
    tide_live_set set;
    tide__live_block *blocks; // [n], owned
    size_t n, cap;
} builder;

static tide_status put(builder *b, const tide__live_block *block) {
    TIDE_TRY(tide_host_grow(&b->blocks, &b->cap, b->n + 1, sizeof *b->blocks));
    b->blocks[b->n++] = *block;
    return TIDE_OK;
}

static tide_status put_live(builder *b, const tide__replay *r) {
    TIDE_TRY(tide_host_grow(&b->blocks, &b->cap, b->n + tide__replay_n_live(r), sizeof *b->blocks));
    const tide__live_block *block;
    for (size_t i = 0; (block = tide__replay_next(r, &i)) != NULL;) b->blocks[b->n++] = *block;
    return TIDE_OK;
}

typedef struct place {
    int64_t block_id, alloc_event;
    size_t i;
} place;

static int by_block(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->block_id != y->block_id) return x->block_id < y->block_id ? -1 : 1;
    return (x->alloc_event > y->alloc_event) - (x->alloc_event < y->alloc_event);
}

/// Items in order of their numbers, with sums.
static tide_status fill(builder *b, tide_error *err) {
    tide_live_set *s = &b->set;
    place *places = tide_host_alloc((b->n + 1) * sizeof *places);
    s->items = tide_host_alloc((b->n + 1) * sizeof *s->items);
    tide_status st = TIDE_OK;
    if (places == NULL || s->items == NULL) st = tide__trace_no_memory(b->t, "live blocks", err);
    for (size_t i = 0; st == TIDE_OK && i < b->n; i++)
        places[i] = (place){b->blocks[i].block_id, b->blocks[i].alloc_event, i};
    if (st == TIDE_OK && b->n > 1) qsort(places, b->n, sizeof *places, by_block);
    for (size_t i = 0; st == TIDE_OK && i < b->n; i++) {
        const tide_live *item = &s->items[s->n];
        s->items[s->n++] = named(b->t, &b->blocks[places[i].i]);
        if (!tide_add_u64(s->requested_bytes, item->requested_bytes, &s->requested_bytes) ||
            !tide_add_u64(s->reserved_bytes, item->reserved_bytes, &s->reserved_bytes))
            st = tide__trace_bad_row(b->t, "event", (int64_t)item->alloc_event, err);
    }
    tide_host_free(places);
    return st;
}

/// `st` is how the making went; the set is handed over or given back.
static tide_status finish(builder *b, tide_status st, tide_live_set *out, tide_error *err) {
    if (st == TIDE_OK) st = fill(b, err);
    tide_host_free(b->blocks);
    if (st == TIDE_OK) {
        *out = b->set;
    } else {
        tide_live_set_deinit(&b->set);
    }
    return st;
}

static tide_status live_after(tide_trace *t, int64_t event_id, uint64_t t_ns, tide_live_set *out, tide_error *err) {
    const tide__replay *r;
    TIDE_TRY(tide__trace_state_after(t, event_id, &r, err));
    builder b = {.t = t, .set = {.t_ns = t_ns, .event_id = (uint64_t)event_id}};
    if (t_ns == UINT64_MAX) b.set.t_ns = (uint64_t)r->last_ns;
    tide_status st = put_live(&b, r);
    if (st != TIDE_OK) tide__trace_no_memory(t, "live blocks", err);
    return finish(&b, st, out, err);
}

tide_status tide_trace_live_set(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) {
    int64_t event_id;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &event_id, err));
    return live_after(t, event_id, t_ns == UINT64_MAX ? UINT64_MAX - 1 : t_ns, out, err);
}

tide_status tide_trace_live_set_after(tide_trace *t, uint64_t event_id, tide_live_set *out, tide_error *err) {
    if (event_id > (uint64_t)t->last_event)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no event %llu", t->path, (unsigned long long)event_id);
    return live_after(t, (int64_t)event_id, UINT64_MAX, out, err);
}

// ---- over a window ----

static tide_status begin_window(void *ctx, const tide__replay *r) { return put_live(ctx, r); }

static tide_status put_alloc(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    (void)series;
    if (e->op != TIDE_MEM_ALLOC) return TIDE_OK;
    const tide__live_block *block = tide__replay_find(r, e->block_id);
    return block != NULL && block->alloc_event == e->id ? put(ctx, block) : TIDE_OK;
}

tide_status tide_trace_alive_between(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out, tide_error *err) {
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    int64_t before, last;
    TIDE_TRY(tide__trace_event_before(t, t0, &before, err));
    TIDE_TRY(tide__trace_event_at(t, t1, &last, err));
    builder b = {.t = t, .set = {.t_ns = t1, .event_id = (uint64_t)last}};
    const tide_status st = tide__trace_walk(t, before + 1, last, begin_window, put_alloc, &b, err);
    return finish(&b, st, out, err);
}
