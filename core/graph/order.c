// SPDX-License-Identifier: MIT
//
// Order of execution: Kahn's algorithm (A. B. Kahn, "Topological sorting of large networks", CACM 5(11), 1962) with
// a heap in place of his queue, so that among ready nodes the lowest index goes first.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"

void tide_order_deinit(tide_order *o) {
    tide_host_free(o->nodes);
    *o = (tide_order){0};
}

// ---- a heap of node indices, lowest on top ----

typedef struct heap {
    uint32_t *items; // [n_nodes]: never overflows, each node enters once
    size_t n;
} heap;

static void heap_push(heap *h, uint32_t item) {
    size_t i = h->n++;
    for (; i > 0 && h->items[(i - 1) / 2] > item; i = (i - 1) / 2) h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = item;
}

static uint32_t heap_pop(heap *h) {
    TIDE_ASSERT(h->n > 0);
    const uint32_t top = h->items[0];
    const uint32_t last = h->items[--h->n];
    size_t i = 0;
    for (size_t child = 1; child < h->n; child = 2 * i + 1) {
        if (child + 1 < h->n && h->items[child + 1] < h->items[child]) child++;
        if (h->items[child] >= last) break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    TIDE_ASSERT(h->n == 0 || top < h->items[0]); // each node once, the lowest first
    return top;
}

// ---- edges ----

/// Consumers of each node, flattened: those of node i are to[first[i]] … to[first[i + 1] - 1].
typedef struct edges {
    size_t *first;    // [n_nodes + 1]
    uint32_t *to;     // [n_edges]; a consumer stands there once per input position
    uint32_t *n_wait; // [n_nodes] edges into the node from nodes not yet placed
} edges;

static void edges_deinit(edges *e) {
    tide_host_free(e->first);
    tide_host_free(e->to);
    tide_host_free(e->n_wait);
}

/// The live node that must run before `n` because of input `k`; TIDE_NO_NODE when none must.
static uint32_t input_producer(const tide_graph *g, const tide_node *n, size_t k) {
    if (n->inputs[k] == TIDE_NO_VALUE) return TIDE_NO_NODE;
    const tide_value *v = &g->values[n->inputs[k]];
    if (v->constant != NULL || v->producer == TIDE_NO_NODE || g->nodes[v->producer].dead) return TIDE_NO_NODE;
    return v->producer;
}

static tide_status edges_init(edges *e, const tide_graph *g, tide_error *err) {
    *e = (edges){.first = tide_host_calloc(g->n_nodes + 2, sizeof *e->first),
                 .n_wait = tide_host_calloc(g->n_nodes, sizeof *e->n_wait)};
    if (e->first == NULL || e->n_wait == NULL) return TIDE_NO_MEMORY(err, "for the order of nodes");
    // Counted two places further on, so that the filling below leaves each first[] where it belongs.
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            const uint32_t p = input_producer(g, n, k);
            if (p != TIDE_NO_NODE) e->first[p + 2]++;
        }
    }
    for (size_t i = 1; i < g->n_nodes + 2; i++) e->first[i] += e->first[i - 1];
    TIDE_TRY(TIDE_NEW(&e->to, e->first[g->n_nodes + 1], err, "for the order of nodes"));
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            const uint32_t p = input_producer(g, n, k);
            if (p == TIDE_NO_NODE) continue;
            e->to[e->first[p + 1]++] = (uint32_t)i;
            e->n_wait[i]++;
        }
    }
    TIDE_ASSERT(e->first[0] == 0 && (g->n_nodes == 0 || e->first[g->n_nodes] == e->first[g->n_nodes + 1]));
    return TIDE_OK;
}

// ---- cycles ----

/// A producer of `node_i` that is itself still waiting: there is one for every node that Kahn left over.
static uint32_t waiting_producer(const tide_graph *g, const edges *e, uint32_t node_i) {
    const tide_node *n = &g->nodes[node_i];
    for (size_t k = 0; k < n->n_inputs; k++) {
        const uint32_t p = input_producer(g, n, k);
        if (p != TIDE_NO_NODE && e->n_wait[p] > 0) return p;
    }
    return TIDE_NO_NODE;
}

/// Names of a cycle in the direction of the data, lowest index first: "a -> b -> a".
static void format_cycle(const tide_graph *g, const uint32_t *path, size_t begin, size_t end, tide_text *text) {
    enum { MAX_NAMES = 8 };
    const size_t len = end - begin;
    size_t low = begin;
    for (size_t i = begin; i < end; i++) {
        if (path[i] < path[low]) low = i;
    }
    // `path` was walked against the data, so the next node of the cycle stands before.
    for (size_t i = 0; i < len && i < MAX_NAMES; i++) {
        const size_t at = begin + (low - begin + len - i) % len;
        tide_text_addf(text, "%s -> ", g->nodes[path[at]].name);
    }
    if (len > MAX_NAMES) tide_text_addf(text, "(%zu more) -> ", len - MAX_NAMES);
    tide_text_add(text, g->nodes[path[low]].name);
}

static tide_status report_cycle(const tide_graph *g, const edges *e, tide_error *err) {
    uint32_t *path = tide_host_calloc(g->n_nodes, sizeof *path);
    size_t *place = tide_host_calloc(g->n_nodes, sizeof *place); // 1 + index in path; 0: not there
    if (path == NULL || place == NULL) {
        tide_host_free(path);
        tide_host_free(place);
        return TIDE_NO_MEMORY(err, "for the report of a cycle");
    }
    uint32_t at = 0;
    while (g->nodes[at].dead || e->n_wait[at] == 0) at++;
    size_t len = 0;
    while (place[at] == 0) {
        TIDE_ASSERT(at < g->n_nodes); // what waits has a producer that waits
        path[len++] = at;
        place[at] = len;
        at = waiting_producer(g, e, at);
    }
    TIDE_ASSERT(len <= g->n_nodes && path[place[at] - 1] == at);
    tide_text text = {0};
    format_cycle(g, path, place[at] - 1, len, &text);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_CYCLE, "the graph has a cycle: %s", tide_text_str(&text));
    tide_error_where(err, "%s: node '%s'", g->source, g->nodes[at].name);
    tide_text_deinit(&text);
    tide_host_free(path);
    tide_host_free(place);
    return st;
}

// ---- the sort ----

static size_t count_live(const tide_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i].dead;
    return n;
}

tide_status tide_graph_sort(const tide_graph *g, tide_order *out, tide_error *err) {
    edges e;
    heap ready = {0};
    tide_order order = {0};
    tide_status st = edges_init(&e, g, err);
    if (st != TIDE_OK) goto done;
    const size_t n_live = count_live(g);
    ready.items = tide_host_calloc(g->n_nodes, sizeof *ready.items);
    order.nodes = tide_host_calloc(n_live, sizeof *order.nodes);
    if (ready.items == NULL || order.nodes == NULL) {
        st = TIDE_NO_MEMORY(err, "for the order of nodes");
        goto done;
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!g->nodes[i].dead && e.n_wait[i] == 0) heap_push(&ready, (uint32_t)i);
    }
    while (ready.n > 0) {
        const uint32_t node_i = heap_pop(&ready);
        TIDE_ASSERT(order.n < n_live && !g->nodes[node_i].dead && e.n_wait[node_i] == 0);
        order.nodes[order.n++] = node_i;
        for (size_t k = e.first[node_i]; k < e.first[node_i + 1]; k++) {
            TIDE_ASSERT(e.n_wait[e.to[k]] > 0);
            if (--e.n_wait[e.to[k]] == 0) heap_push(&ready, e.to[k]);
        }
    }
    if (order.n < n_live) st = report_cycle(g, &e, err);
done:
    edges_deinit(&e);
    tide_host_free(ready.items);
    if (st == TIDE_OK) {
        *out = order;
    } else {
        tide_order_deinit(&order);
    }
    return st;
}
