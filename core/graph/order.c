// SPDX-License-Identifier: MIT
//
// Order of execution: Kahn's algorithm (A. B. Kahn, "Topological sorting of large networks", CACM 5(11), 1962) with
// a heap in place of his queue, so that among ready nodes the lowest index goes first.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"
#include "core/graph/region.h"

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
//
// A body is emitted whole, behind the node that opens it. Among the nodes of one region (or of none) the order is
// Kahn's, where the node that opens a region stands for all that is in it: its edges are theirs.

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

static uint32_t depth_of(const tide_graph *g, uint32_t node_i) {
    const uint32_t region = g->nodes[node_i].region;
    return region != 0 ? tide_region_of(g, region)->depth : 0;
}

/// The node that stands for `node_i` one region further out.
static uint32_t opener_of(const tide_graph *g, uint32_t node_i) {
    return tide_region_of(g, g->nodes[node_i].region)->open;
}

/// The two nodes of one region that the edge from `p` to `node_i` joins. @return false: none, as it is an edge from a
/// node that opens a region to one in it, or to the one that closes it, which comes behind all others anyway
static bool lift_edge(const tide_graph *g, uint32_t *p, uint32_t *node_i) {
    while (depth_of(g, *p) > depth_of(g, *node_i)) *p = opener_of(g, *p);
    while (depth_of(g, *node_i) > depth_of(g, *p)) *node_i = opener_of(g, *node_i);
    while (g->nodes[*p].region != g->nodes[*node_i].region) {
        *p = opener_of(g, *p);
        *node_i = opener_of(g, *node_i);
    }
    return *p != *node_i && g->nodes[*node_i].closes == 0;
}

/// The edge because of input `k` of node `node_i`.
static bool edge_of(const tide_graph *g, uint32_t node_i, size_t k, uint32_t *from, uint32_t *to) {
    *from = input_producer(g, &g->nodes[node_i], k);
    *to = node_i;
    if (*from == TIDE_NO_NODE) return false;
    return g->n_regions == 0 || *from == *to || lift_edge(g, from, to); // what reads its own result is a cycle
}

static tide_status edges_init(edges *e, const tide_graph *g, tide_error *err) {
    *e = (edges){.first = tide_host_calloc(g->n_nodes + 2, sizeof *e->first),
                 .n_wait = tide_host_calloc(g->n_nodes, sizeof *e->n_wait)};
    uint32_t from, to;
    if (e->first == NULL || e->n_wait == NULL) return TIDE_NO_MEMORY(err, "for the order of nodes");
    // Counted two places further on, so that the filling below leaves each first[] where it belongs.
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            if (edge_of(g, i, k, &from, &to)) e->first[from + 2]++;
        }
    }
    for (size_t i = 1; i < g->n_nodes + 2; i++) e->first[i] += e->first[i - 1];
    TIDE_TRY(TIDE_NEW(&e->to, e->first[g->n_nodes + 1], err, "for the order of nodes"));
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            if (!edge_of(g, i, k, &from, &to)) continue;
            e->to[e->first[from + 1]++] = to;
            e->n_wait[to]++;
        }
    }
    TIDE_ASSERT(e->first[0] == 0 && (g->n_nodes == 0 || e->first[g->n_nodes] == e->first[g->n_nodes + 1]));
    return TIDE_OK;
}

// ---- cycles ----

static uint32_t waiting_input(const tide_graph *g, const edges *e, uint32_t node_i, uint32_t reader) {
    uint32_t from, to;
    for (size_t k = 0; k < g->nodes[reader].n_inputs; k++) {
        if (edge_of(g, reader, k, &from, &to) && to == node_i && e->n_wait[from] > 0) return from;
    }
    return TIDE_NO_NODE;
}

/// A producer of `node_i` that is itself still waiting: there is one for every node that Kahn left over. Of a node
/// that opens a region also what nodes of the region wait for.
static uint32_t waiting_producer(const tide_graph *g, const edges *e, uint32_t node_i) {
    uint32_t found = waiting_input(g, e, node_i, node_i);
    for (uint32_t i = 0; found == TIDE_NO_NODE && g->nodes[node_i].opens != 0 && i < g->n_nodes; i++) {
        if (!g->nodes[i].dead) found = waiting_input(g, e, node_i, i);
    }
    return found;
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

typedef struct sorter {
    const tide_graph *g;
    edges e;
    size_t n_live;
    uint32_t *members; // [n_nodes] nodes by region, rising; closing nodes are left out
    size_t *first;     // [n_regions + 2] those of region r are members[first[r]] … members[first[r + 1] - 1]
    tide_order order;
} sorter;

static bool is_member(const tide_node *n) { return !n->dead && n->closes == 0; }

static tide_status group_by_region(sorter *s, tide_error *err) {
    const tide_graph *g = s->g;
    s->first = tide_host_calloc(g->n_regions + 3, sizeof *s->first);
    s->members = tide_host_calloc(g->n_nodes + 1, sizeof *s->members);
    if (s->first == NULL || s->members == NULL) return TIDE_NO_MEMORY(err, "for the order of nodes");
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (is_member(&g->nodes[i])) s->first[g->nodes[i].region + 2]++;
    }
    for (size_t r = 1; r < g->n_regions + 3; r++) s->first[r] += s->first[r - 1];
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (is_member(&g->nodes[i])) s->members[s->first[g->nodes[i].region + 1]++] = (uint32_t)i;
    }
    return TIDE_OK;
}

static void emit(sorter *s, uint32_t node_i) {
    TIDE_ASSERT(s->order.n < s->n_live && !s->g->nodes[node_i].dead);
    s->order.nodes[s->order.n++] = node_i;
}

static tide_status sort_region(sorter *s, uint32_t region, tide_error *err);

/// The regions that a node opens, one behind the other.
static tide_status sort_bodies(sorter *s, uint32_t node_i, tide_error *err) {
    const tide_graph *g = s->g;
    for (uint32_t r = g->nodes[node_i].opens; r != 0;) {
        const tide_region *region = tide_region_of(g, r);
        TIDE_TRY(sort_region(s, r, err));
        emit(s, region->close);
        r = region->kind == TIDE_REGION_THEN ? region->other : 0;
    }
    return TIDE_OK;
}

/// Kahn's algorithm on the nodes of one region. Its depth is that of regions in regions: TIDE_REGION_MAX_DEPTH at most.
static tide_status sort_region(sorter *s, uint32_t region, tide_error *err) {
    const uint32_t *members = s->members + s->first[region];
    const size_t n = s->first[region + 1] - s->first[region];
    size_t n_done = 0;
    heap ready = {0};
    TIDE_TRY(TIDE_NEW(&ready.items, n + 1, err, "for the order of nodes"));
    for (size_t i = 0; i < n; i++) {
        if (s->e.n_wait[members[i]] == 0) heap_push(&ready, members[i]);
    }
    tide_status st = TIDE_OK;
    for (; ready.n > 0 && st == TIDE_OK; n_done++) {
        const uint32_t node_i = heap_pop(&ready);
        TIDE_ASSERT(s->e.n_wait[node_i] == 0);
        emit(s, node_i);
        if (s->g->nodes[node_i].opens != 0) st = sort_bodies(s, node_i, err);
        for (size_t k = s->e.first[node_i]; st == TIDE_OK && k < s->e.first[node_i + 1]; k++) {
            TIDE_ASSERT(s->e.n_wait[s->e.to[k]] > 0);
            if (--s->e.n_wait[s->e.to[k]] == 0) heap_push(&ready, s->e.to[k]);
        }
    }
    tide_host_free(ready.items);
    if (st == TIDE_OK && n_done < n) st = report_cycle(s->g, &s->e, err);
    return st;
}

tide_status tide_graph_sort(const tide_graph *g, tide_order *out, tide_error *err) {
    sorter s = {.g = g, .n_live = count_live(g)};
    tide_status st = edges_init(&s.e, g, err);
    if (st == TIDE_OK) st = group_by_region(&s, err);
    if (st == TIDE_OK) st = TIDE_NEW(&s.order.nodes, s.n_live + 1, err, "for the order of nodes");
    if (st == TIDE_OK) st = sort_region(&s, 0, err);
    TIDE_ASSERT(st != TIDE_OK || s.order.n == s.n_live);
    edges_deinit(&s.e);
    tide_host_free(s.members);
    tide_host_free(s.first);
    if (st == TIDE_OK) {
        *out = s.order;
    } else {
        tide_order_deinit(&s.order);
    }
    return st;
}
