// SPDX-License-Identifier: MIT
//
// Regions of a graph: adding, closing, captures, and branches that are known before any run. See region.h.
#include "core/graph/region.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"

tide_status tide_graph_add_region(tide_graph *g, const tide_region *r, uint32_t *number, tide_error *err) {
    TIDE_ASSERT(r->parent <= g->n_regions && r->open < g->n_nodes);
    tide_region added = *r;
    added.depth = r->parent != 0 ? tide_region_of(g, r->parent)->depth + 1 : 1;
    added.close = TIDE_NO_NODE;
    if (added.depth > TIDE_REGION_MAX_DEPTH)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "more than %d bodies lie in one another",
                         (int)TIDE_REGION_MAX_DEPTH);
    TIDE_TRY(TIDE_GROW(&g->regions, &g->cap_regions, g->n_regions + 1, err, "for %zu bodies", g->n_regions + 1));
    g->regions[g->n_regions++] = added;
    *number = (uint32_t)g->n_regions;
    return TIDE_OK;
}

int32_t tide_region_axis(const tide_node *open, const char *attr, size_t k, int32_t rank) {
    size_t len;
    const int64_t *axes = tide_node_attr_ints(open, attr, &len);
    const int64_t axis = k < len ? axes[k] : 0;
    if (axis < -(int64_t)rank || axis >= rank) return -1;
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

// ---- the closing node ----

static const char *close_op(const tide_region *r) { return tide_region_repeats(r) ? "NextIteration" : "Merge"; }

static tide_status close_name(const tide_graph *g, const tide_region *r, tide_text *out, tide_error *err) {
    static const char *const words[] = {"then", "else", "next", "next"};
    tide_text_addf(out, "%s.%s", g->nodes[r->open].name, words[r->kind]);
    return out->failed ? TIDE_NO_MEMORY(err, "for a name") : TIDE_OK;
}

/// The operands of the closing node before any captures.
static size_t list_operands(const tide_graph *g, const tide_region *r, const uint32_t *results, uint32_t *out) {
    const tide_node *open = &g->nodes[r->open];
    size_t n = tide_region_n_results(r);
    if (n > 0) memcpy(out, results, n * sizeof *out);
    for (size_t k = 0; k < open->n_outputs; k++) out[n++] = open->outputs[k];
    if (r->kind == TIDE_REGION_LOOP) out[n++] = open->inputs[0];
    for (size_t k = 0; k < r->n_items; k++) out[n++] = open->inputs[r->n_carried + k];
    return n;
}

/// How many of them there are.
static size_t n_operands(const tide_graph *g, const tide_region *r) {
    return tide_region_n_results(r) + g->nodes[r->open].n_outputs + (r->kind == TIDE_REGION_LOOP ? 1 : 0) + r->n_items;
}

tide_status tide_graph_close_region(tide_graph *g, uint32_t number, const uint32_t *results, size_t n_results,
                                    tide_error *err) {
    const tide_region *r = tide_region_of(g, number);
    TIDE_ASSERT(r->close == TIDE_NO_NODE && n_results == tide_region_n_results(r));
    tide_text name = {0};
    uint32_t *operands;
    TIDE_TRY(TIDE_NEW(&operands, n_operands(g, r) + 1, err, "for the operands of a body"));
    const size_t n = list_operands(g, r, results, operands);
    TIDE_ASSERT(n == n_operands(g, r));
    uint32_t node_i = TIDE_NO_NODE;
    tide_status st = close_name(g, r, &name, err);
    if (st == TIDE_OK)
        st = tide_graph_add_node(g, name.data, close_op(r), TIDE_REGION_DOMAIN, 1, operands, n, NULL, 0, &node_i, err);
    tide_text_deinit(&name);
    tide_host_free(operands);
    TIDE_TRY(st);
    g->nodes[node_i].region = g->nodes[node_i].closes = number;
    g->regions[number - 1].close = node_i;
    return TIDE_OK;
}

// ---- captures ----

bool tide_region_holds(const tide_graph *g, uint32_t number, const tide_node *n) {
    uint32_t at = n->region;
    while (at != 0 && at != number) at = tide_region_of(g, at)->parent;
    return at == number;
}

bool tide_node_is_conditional(const tide_graph *g, const tide_node *n) {
    for (uint32_t at = n->region; at != 0; at = tide_region_of(g, at)->parent) {
        if (!tide_region_repeats(tide_region_of(g, at))) return true;
    }
    return false;
}

static bool is_from_outside(const tide_graph *g, uint32_t number, uint32_t value_i) {
    const tide_value *v = &g->values[value_i];
    if (v->constant != NULL) return false;
    if (v->producer == TIDE_NO_NODE) return true; // a graph input
    return v->producer != tide_region_of(g, number)->open && !tide_region_holds(g, number, &g->nodes[v->producer]);
}

/// The captures of one region that repeats, behind its other operands.
static tide_status find_captures(tide_graph *g, uint32_t number, uint32_t *seen, tide_error *err) {
    const tide_region *r = tide_region_of(g, number);
    tide_node *close = &g->nodes[r->close];
    size_t n = n_operands(g, r), cap = close->n_inputs;
    TIDE_ASSERT(close->n_inputs >= n);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *node = &g->nodes[i];
        if (node->dead || node == close || !tide_region_holds(g, number, node)) continue;
        for (size_t k = 0; k < node->n_inputs; k++) {
            const uint32_t v = node->inputs[k];
            if (v == TIDE_NO_VALUE || seen[v] == number || !is_from_outside(g, number, v)) continue;
            seen[v] = number;
            TIDE_TRY(TIDE_GROW(&close->inputs, &cap, n + 1, err, "for the operands of '%s'", close->name));
            close->inputs[n++] = v;
        }
    }
    close->n_inputs = n;
    return TIDE_OK;
}

tide_status tide_graph_find_captures(tide_graph *g, tide_error *err) {
    if (g->n_regions == 0) return TIDE_OK;
    uint32_t *seen; // the last region that was seen to read the value
    TIDE_TRY(TIDE_NEW(&seen, g->n_values + 1, err, "for %zu values", g->n_values));
    tide_status st = TIDE_OK;
    // Inner ones have higher numbers: theirs are among the operands that an outer one looks at.
    for (uint32_t number = (uint32_t)g->n_regions; number > 0 && st == TIDE_OK; number--) {
        const tide_region *r = tide_region_of(g, number);
        if (r->close == TIDE_NO_NODE || g->nodes[r->close].dead || !tide_region_repeats(r)) continue;
        st = find_captures(g, number, seen, err);
    }
    tide_host_free(seen);
    return st;
}

// ---- what ends a Loop ----

static bool always_holds(const tide_value *v) {
    return v->constant != NULL && v->dtype == TIDE_BOOL && tide_tensor_const_data(v->constant) != NULL &&
           *(const unsigned char *)tide_tensor_const_data(v->constant) != 0;
}

bool tide_region_hands_on(const tide_graph *g, const tide_region *r) {
    const uint32_t given = g->nodes[r->open].outputs[tide_region_iteration(r) + 1];
    uint32_t value_i = g->nodes[r->close].inputs[0];
    while (value_i != TIDE_NO_VALUE && value_i != given) {
        const uint32_t producer = g->values[value_i].producer;
        if (producer == TIDE_NO_NODE) return always_holds(&g->values[value_i]);
        if (strcmp(g->nodes[producer].op_type, "Identity") != 0) return false;
        value_i = g->nodes[producer].inputs[0];
    }
    return value_i == given && given != TIDE_NO_VALUE;
}

// ---- branches that are known ----

void tide_region_kill(tide_graph *g, uint32_t number) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (tide_region_holds(g, number, &g->nodes[i])) g->nodes[i].dead = true;
    }
    const uint32_t other = tide_region_of(g, number)->other;
    if (other == 0) return;
    g->regions[number - 1].other = 0;
    g->regions[other - 1].other = 0;
    g->nodes[tide_region_of(g, other)->open].opens = other; // its first region, and its only one
}

static void read_instead(tide_graph *g, uint32_t old, uint32_t now) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++) {
            if (g->nodes[i].inputs[k] == old) g->nodes[i].inputs[k] = now;
        }
    }
}

/// The nodes of the region belong to the one around it.
static void raise_nodes(tide_graph *g, uint32_t number) {
    const uint32_t parent = tide_region_of(g, number)->parent;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].region == number) g->nodes[i].region = parent;
    }
    for (size_t i = 0; i < g->n_regions; i++) {
        if (g->regions[i].parent == number) g->regions[i].parent = parent;
    }
}

/// The graph output `out` is what the branch made as `result`: its node makes the output itself, or it is a constant.
/// @return false: `result` is a graph input or another output
static bool become(tide_graph *g, uint32_t out, uint32_t result) {
    const tide_value *from = &g->values[result];
    if (from->constant != NULL) {
        g->values[out].producer = TIDE_NO_NODE;
        tide_graph_set_constant(g, out, from->constant);
        return true;
    }
    if (from->producer == TIDE_NO_NODE || from->is_output) return false;
    const uint32_t producer = from->producer, port = from->producer_port;
    g->values[result].producer = TIDE_NO_NODE;
    g->values[out].producer = producer;
    g->values[out].producer_port = port;
    g->values[out].is_dynamic = from->is_dynamic;
    g->values[out].is_bounded = g->values[out].is_bounded && from->is_dynamic;
    g->nodes[producer].outputs[port] = out;
    read_instead(g, result, out);
    return true;
}

void tide_region_dissolve(tide_graph *g, uint32_t number) {
    const tide_region *r = tide_region_of(g, number);
    tide_node *open = &g->nodes[r->open], *close = &g->nodes[r->close];
    bool is_needed = false;
    TIDE_ASSERT(!tide_region_repeats(r) && r->other == 0 && open->n_outputs == r->n_carried);
    for (size_t k = 0; k < r->n_carried; k++) {
        const uint32_t out = open->outputs[k], result = close->inputs[k];
        if (out == TIDE_NO_VALUE) continue;
        open->outputs[k] = close->inputs[k] = close->inputs[r->n_carried + k] = TIDE_NO_VALUE;
        if (!g->values[out].is_output) {
            g->values[out].producer = TIDE_NO_NODE;
            read_instead(g, out, result);
        } else if (!become(g, out, result)) {
            open->outputs[k] = close->inputs[r->n_carried + k] = out;
            close->inputs[k] = result;
            is_needed = true;
        }
    }
    if (is_needed) return;
    open->dead = close->dead = true;
    raise_nodes(g, number);
}
