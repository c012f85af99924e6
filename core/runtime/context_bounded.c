// SPDX-License-Identifier: MIT
//
// Bounded tensors: those that are sized while running, in a place that has room for their bound. See
// runtime_internal.h.
//
//     place   | y as it came out | room up to the bound |     the address never changes, the shape does in each run
//
// What came out is noted at the end of each run: how much of its place a tensor needed.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/runtime/runtime_internal.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

static bool is_within(const tide_bound *b, const tide_shape *s) {
    int64_t n;
    if (b->is_count) return tide_shape_numel(s, &n, NULL) == TIDE_OK && n <= b->most.dims[0];
    if (s->rank != b->most.rank) return false;
    for (int32_t d = 0; d < s->rank; d++) {
        if (s->dims[d] > b->most.dims[d]) return false;
    }
    return true;
}

static tide_status fail_bound(const tide_value *v, const tide_operand *o, tide_error *err) {
    char is[192], most[192];
    tide_shape_format(&o->shape, is, sizeof is);
    tide_shape_format(&v->bound->most, most, sizeof most);
    const tide_status st = v->bound->by_file || v->bound->by_user ? TIDE_ERR_NO_SPACE : TIDE_ERR_RUNTIME;
    if (v->bound->is_count)
        TIDE_FAIL(err, st, "tensor '%s' comes out as %s %s: its place has room for %" PRId64 " elements", v->name,
                  tide_dtype_name(o->dtype), is, v->bound->most.dims[0]);
    else
        TIDE_FAIL(err, st, "tensor '%s' comes out as %s %s, and its bound is %s", v->name, tide_dtype_name(o->dtype),
                  is, most);
    if (v->bound->by_user)
        tide_error_hint(err, "--bound %s=%.*s makes room for it", v->name, (int)strlen(is) - 2, is + 1);
    else if (v->bound->by_file)
        tide_error_hint(err, "the file says so; --bound-limit 0 leaves it without a bound");
    return st;
}

static int by_value(const void *key, const void *item) {
    const uint32_t value = *(const uint32_t *)key, other = ((const tide_context_bounded *)item)->value;
    return (value > other) - (value < other);
}

/// What came out, for the observer: a trace has it beside the plan.
static void tell(const tide_context *c, uint32_t value_i, uint32_t tensor, uint64_t room_bytes) {
    const tide_tensor *t = c->values[value_i];
    const tide_storage *s = tide_tensor_storage(t);
    const tide_block *block = s->block != NULL ? s->block : c->buffer;
    char extents[192];
    const tide_memory_event e = {.op = TIDE_MEM_SIZED,
                                 .t_ns = c->observer->no_time ? 0 : tide_now_ns(),
                                 .block_id = block != NULL ? block->mem.block_id : 0,
                                 .device = c->plan->device,
                                 .kind = block != NULL ? block->kind : TIDE_KIND_WORKSPACE,
                                 .stream = tensor,
                                 .requested_bytes = tide_tensor_size_bytes(t),
                                 .reserved_bytes = room_bytes,
                                 .address = (uintptr_t)c->data[value_i],
                                 .thread = tide_thread_id(),
                                 .tag = tide_shape_format(tide_tensor_shape(t), extents, sizeof extents),
                                 .scope = tide_scope_current()};
    c->observer->on_memory(c->observer->self, &e);
}

static void tell_size(const tide_context *c, uint32_t value_i) {
    if (c->observer == NULL || c->observer->on_memory == NULL) return;
    const tide_context_bounded *b = bsearch(&value_i, c->bounded, c->n_bounded, sizeof *c->bounded, by_value);
    if (b != NULL && b->tensor != TIDE_NO_INDEX) tell(c, value_i, b->tensor, b->bound_bytes);
}

void tide__context_tell_sizes(const tide_context *c) {
    if (c->observer == NULL || c->observer->on_memory == NULL) return;
    for (size_t i = 0; i < c->n_smaller; i++)
        tell(c, c->smaller[i].value, c->smaller[i].tensor, c->smaller[i].room_bytes);
}

tide_status tide__context_size_bounded(tide_context *c, uint32_t value_i, tide_operand *o, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[value_i];
    TIDE_ASSERT(c->plan->needs[value_i].bounded && o->dtype == v->dtype);
    if (!is_within(v->bound, &o->shape)) return fail_bound(v, o, err);
    const tide_status st = tide_tensor_set_shape(c->values[value_i], &o->shape, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "tensor '%s'", v->name);
        return st;
    }
    c->sized[value_i] = true;
    o->size_bytes = tide_tensor_size_bytes(c->values[value_i]);
    o->data = o->size_bytes > 0 ? c->data[value_i] : NULL;
    TIDE_ASSERT(o->size_bytes <= c->plan->needs[value_i].size_bytes && (o->size_bytes == 0 || o->data != NULL));
    tell_size(c, value_i);
    return TIDE_OK;
}

void tide__context_forget_sizes(tide_context *c) { memset(c->sized, 0, graph_of(c)->n_values * sizeof *c->sized); }

// ---- what came out ----

tide_status tide__context_find_sizes(tide_context *c, tide_error *err) {
    const tide_memory_plan *plan = c->plan->memory;
    size_t cap = 0;
    for (size_t i = 0; plan != NULL && i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        const uint32_t v = l->bound != NULL ? tide_graph_find_value(graph_of(c), l->name) : TIDE_NO_VALUE;
        if (v == TIDE_NO_VALUE || c->plan->needs[v].birth_step < 0 || c->plan->needs[v].dynamic) continue;
        tide_context_bounded *b =
            c->n_bounded > 0 ? bsearch(&v, c->bounded, c->n_bounded, sizeof *c->bounded, by_value) : NULL;
        if (b != NULL) b->tensor = (uint32_t)i;
        if (b != NULL || c->mode == TIDE_RUN_NAIVE || c->plan->needs[v].size_bytes > l->size_bytes) continue;
        TIDE_TRY(TIDE_GROW(&c->smaller, &cap, c->n_smaller + 1, err, "for the sizes of tensors"));
        c->smaller[c->n_smaller++] = (tide__planned_size){v, (uint32_t)i, l->size_bytes};
    }
    return TIDE_OK;
}

tide_status tide__context_open_bounded(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    TIDE_TRY(TIDE_NEW(&c->sized, g->n_values + 1, err, "for the tables of %zu values", g->n_values));
    TIDE_TRY(TIDE_NEW(&c->bounded, c->plan->program->n_bounded + 1, err, "for the tables of bounded tensors"));
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (!c->plan->needs[v].bounded || c->plan->needs[v].birth_step < 0) continue;
        TIDE_ASSERT(c->n_bounded < c->plan->program->n_bounded);
        const tide_bound *b = g->values[v].bound;
        c->bounded[c->n_bounded++] = (tide_context_bounded){.value = v,
                                                            .tensor = TIDE_NO_INDEX,
                                                            .name = g->values[v].name,
                                                            .dtype = g->values[v].dtype,
                                                            .bound = b->most,
                                                            .is_count = b->is_count,
                                                            .bound_bytes = c->plan->needs[v].size_bytes};
    }
    return TIDE_OK;
}

void tide__context_note_sizes(tide_context *c) {
    for (size_t i = 0; i < c->n_bounded; i++) {
        tide_context_bounded *b = &c->bounded[i];
        if (!c->sized[b->value]) continue; // in a branch that was not taken
        b->last = *tide_tensor_shape(c->values[b->value]);
        b->last_bytes = tide_tensor_size_bytes(c->values[b->value]);
        if (b->n_runs == 0 || b->last_bytes < b->least_bytes) b->least_bytes = b->last_bytes;
        if (b->last_bytes > b->most_bytes) b->most_bytes = b->last_bytes;
        b->n_runs++;
    }
}

size_t tide_context_list_bounded(const tide_context *c, const tide_context_bounded **out) {
    *out = c->bounded;
    return c->n_bounded;
}
