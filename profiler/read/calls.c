// SPDX-License-Identifier: MIT
//
// The tree of calls of a live set. See calls.h.
#include "profiler/calls.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/read/moments_internal.h"
#include "profiler/read/trace_internal.h"

/// A call by its caller and its name: two scopes with the same of both are one call.
typedef struct call_place {
    uint64_t key; ///< caller << 32 | name << 1 | is a frame, + 1
    uint32_t call;
    uint32_t unused;
} call_place;
/// The call of a scope.
typedef struct scope_place {
    uint64_t key; ///< scope
    uint32_t call;
    uint32_t unused;
} scope_place;

typedef struct tree {
    const tide_trace *t;
    tide_calls out;
    size_t cap;
    tide_map places; ///< of call_place
    tide_map scopes; ///< of scope_place
    uint32_t *chain; ///< [cap_chain] scopes from a block outwards; owned
    size_t n_chain, cap_chain;
} tree;

static const tide__kept_scope *kept(const tree *b, uint32_t scope) { return &b->t->names.scopes[scope]; }

/// The frame that scope `id` is or lies in; 0: none. A walk outwards ends: tide__trace_names_load sees to it.
static uint32_t frame_from(const tree *b, uint32_t id) {
    while (id > 0 && id < b->t->names.n_scopes && !kept(b, id)->is_frame) {
        id = kept(b, id)->parent;
    }
    return id < b->t->names.n_scopes ? id : 0;
}

static tide_status add_call(tree *b, uint32_t parent, uint32_t scope, uint32_t *out) {
    const uint32_t name = kept(b, scope)->name_id;
    const bool is_frame = kept(b, scope)->is_frame;
    TIDE_ASSERT(parent < b->out.n && name < UINT32_C(1) << 31); // so that no two keys are the same
    const call_place wanted = {.key = ((uint64_t)parent << 32 | (uint64_t)name << 1 | is_frame) + 1,
                               .call = (uint32_t)b->out.n};
    const call_place *found = tide_map_find(&b->places, wanted.key);
    if (found != NULL) {
        *out = found->call;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&b->out.calls, &b->cap, b->out.n + 1, sizeof *b->out.calls));
    if (!tide_map_put(&b->places, &wanted)) return TIDE_ERR_NOMEM;
    *out = wanted.call;
    b->out.calls[b->out.n++] = (tide_call){.name = tide__trace_text(b->t, name),
                                           .name_id = name,
                                           .scope_id = scope,
                                           .is_frame = is_frame,
                                           .parent = parent,
                                           .depth = b->out.calls[parent].depth + 1};
    return TIDE_OK;
}

/// The call of `scope`, made with its callers where it is new; *out 0: it has no frame.
static tide_status call_of(tree *b, uint32_t scope, uint32_t *out) {
    uint32_t at = 0;
    b->n_chain = 0;
    for (uint32_t id = scope; frame_from(b, id) != 0;) {
        const scope_place *found = tide_map_find(&b->scopes, id);
        if (found != NULL) {
            at = found->call;
            break;
        }
        TIDE_TRY(tide_host_grow(&b->chain, &b->cap_chain, b->n_chain + 1, sizeof *b->chain));
        b->chain[b->n_chain++] = id;
        // Inside of the innermost frame only the operator that asked counts.
        id = kept(b, id)->is_frame ? frame_from(b, kept(b, id)->parent) : frame_from(b, id);
    }
    while (b->n_chain > 0) {
        const uint32_t id = b->chain[--b->n_chain];
        TIDE_TRY(add_call(b, at, id, &at));
        const scope_place place = {.key = id, .call = at};
        if (!tide_map_put(&b->scopes, &place)) return TIDE_ERR_NOMEM;
    }
    *out = at;
    return TIDE_OK;
}

static tide_status add_blocks(tree *b, const tide_live_set *s) {
    TIDE_TRY(tide_host_grow(&b->out.calls, &b->cap, 1, sizeof *b->out.calls));
    b->out.calls[b->out.n++] = (tide_call){.name = ""};
    for (size_t i = 0; i < s->n; i++) {
        uint32_t call = 0;
        if (b->t != NULL && !s->items[i].in_buffer) TIDE_TRY(call_of(b, s->items[i].scope_id, &call));
        if (call == 0) {
            b->out.untold_blocks++;
            b->out.untold_bytes += s->items[i].requested_bytes;
        } else {
            b->out.calls[call].own_blocks++;
            b->out.calls[call].own_bytes += s->items[i].requested_bytes;
        }
    }
    return TIDE_OK;
}

// ---- sums and order ----

static void sum_up(tide_calls *c) {
    for (size_t i = c->n; i-- > 0;) {
        tide_call *call = &c->calls[i], *parent = &c->calls[call->parent];
        call->n_blocks += call->own_blocks;
        call->bytes += call->own_bytes;
        if (i == 0) break;
        TIDE_ASSERT(call->parent < i); // callers come before what they called
        parent->n_blocks += call->n_blocks;
        parent->bytes += call->bytes;
    }
}

/// The lightest first, so that each that is linked in front of its siblings is heavier.
static int by_weight(const void *a, const void *b, void *ctx) {
    const tide_call *calls = ctx, *x = &calls[*(const uint32_t *)a], *y = &calls[*(const uint32_t *)b];
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->n_blocks != y->n_blocks) return x->n_blocks < y->n_blocks ? -1 : 1;
    const int names = strcmp(y->name, x->name);
    return names != 0 ? names : (x < y) - (x > y);
}

static tide_status link_children(tide_calls *c) {
    uint32_t *order = tide_host_alloc(c->n * sizeof *order);
    if (order == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < c->n; i++) order[i] = (uint32_t)i;
    qsort_r(order, c->n, sizeof *order, by_weight, c->calls);
    for (size_t i = 0; i < c->n; i++) {
        if (order[i] == 0) continue;
        tide_call *call = &c->calls[order[i]], *parent = &c->calls[call->parent];
        call->next = parent->first_child;
        parent->first_child = order[i];
    }
    tide_host_free(order);
    return TIDE_OK;
}

tide_status tide_live_set_calls(const tide_live_set *s, tide_calls *out, tide_error *err) {
    tree b = {.t = s->trace, .places = TIDE_MAP(call_place), .scopes = TIDE_MAP(scope_place)};
    tide_status st = add_blocks(&b, s);
    if (st == TIDE_OK) {
        sum_up(&b.out);
        TIDE_ASSERT(b.out.calls[0].n_blocks + b.out.untold_blocks == s->n);
        st = link_children(&b.out);
    }
    tide_map_deinit(&b.places);
    tide_map_deinit(&b.scopes);
    tide_host_free(b.chain);
    if (st != TIDE_OK) {
        tide_calls_deinit(&b.out);
        return TIDE_NO_MEMORY(err, "for the call stacks of %zu blocks", s->n);
    }
    *out = b.out;
    return TIDE_OK;
}

void tide_calls_deinit(tide_calls *c) {
    tide_host_free(c->calls);
    *c = (tide_calls){0};
}

uint32_t tide_calls_next(const tide_calls *c, uint32_t i) {
    if (c->calls[i].first_child != 0) return c->calls[i].first_child;
    while (i != 0 && c->calls[i].next == 0) i = c->calls[i].parent;
    return i != 0 ? c->calls[i].next : 0;
}

void tide_call_say(const tide_call *c, tide_text *out) {
    const char *at = strstr(c->name, " @ "), *slash = at != NULL ? strrchr(at, '/') : NULL;
    if (at == NULL) {
        tide_text_add(out, c->name);
        return;
    }
    tide_text_add_n(out, c->name, (size_t)(at - c->name));
    tide_text_addf(out, " %s", slash != NULL ? slash + 1 : at + 3);
}
