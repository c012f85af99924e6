// SPDX-License-Identifier: MIT
//
// interference graph, stage 2 of 4: which tensors are alive together and so must not share memory (S23-7, S23-8).
// `plan --dump-stage graph` prints it. Strategies ask for the same relation without building it (placed_index), since
// it grows with the square of the number of tensors; that is also why its size has a limit.
//
// Kept as compressed rows: the neighbours of lifetime a are neighbours[start[a] … start[a + 1]), ascending.
//
//     start:      | 0 | 2 | 3 | 3 | 4 |          4 lifetimes
//     neighbours: | 1 3 | 0 |  | 0 |             edges 0-1, 0-3; number 2 is persistent or alone
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "planner/worklist.h"

struct tide_interference {
    size_t n;             // lifetimes
    size_t n_edges;       // undirected
    size_t *start;        // [n + 1]
    uint32_t *neighbours; // [2 * n_edges]
};

bool tide_lifetimes_conflict(const tide_lifetime *a, const tide_lifetime *b) {
    if (a == b || !tide__takes_space(a) || !tide__takes_space(b)) return false;
    return a->begin_step < b->end_step && b->begin_step < a->end_step;
}

/// What the sweep tells of each pair; `index` numbers lifetimes.
typedef void edge_fn(void *ctx, uint32_t a, uint32_t b);

/// Lifetimes come in order of birth; those still alive then are the new one's conflicts. A lifetime that has ended
/// leaves the list the first time it is met, so the work is n plus the number of edges.
static void sweep(const tide_lifetimes *lt, const tide_worklist *by_birth, uint32_t *live, edge_fn *edge, void *ctx) {
    size_t n_live = 0;
    for (size_t i = 0; i < by_birth->n; i++) {
        const tide_lifetime *born = by_birth->items[i];
        const uint32_t born_i = (uint32_t)(born - lt->items);
        for (size_t k = 0; k < n_live;) {
            if (lt->items[live[k]].end_step <= born->begin_step) {
                live[k] = live[--n_live];
                continue;
            }
            edge(ctx, born_i, live[k++]);
        }
        live[n_live++] = born_i;
    }
}

static void count_edge(void *ctx, uint32_t a, uint32_t b) {
    tide_interference *g = ctx;
    g->start[a + 1]++;
    g->start[b + 1]++;
    g->n_edges++;
}

typedef struct filling {
    tide_interference *g;
    size_t *next; // [n] where the row of each lifetime goes on
} filling;

static void fill_edge(void *ctx, uint32_t a, uint32_t b) {
    filling *f = ctx;
    f->g->neighbours[f->next[a]++] = b;
    f->g->neighbours[f->next[b]++] = a;
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_i64(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// Number of edges without visiting them: each tensor meets those that were born before it and are still alive.
/// `deaths` is scratch [by_birth->n].
static uint64_t count_conflicts(const tide_worklist *by_birth, int64_t *deaths) {
    for (size_t k = 0; k < by_birth->n; k++) deaths[k] = by_birth->items[k]->end_step;
    qsort(deaths, by_birth->n, sizeof *deaths, compare_i64);
    uint64_t n_edges = 0;
    size_t n_dead = 0;
    for (size_t k = 0; k < by_birth->n; k++) {
        while (deaths[n_dead] <= by_birth->items[k]->begin_step) n_dead++; // ends at the tensor's own death
        n_edges += k - n_dead;
    }
    return n_edges;
}

static tide_status check_size(const tide_worklist *by_birth, tide_error *err) {
    int64_t *deaths = tide_host_calloc(by_birth->n, sizeof *deaths);
    if (deaths == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu lifetimes", by_birth->n);
    const uint64_t n_edges = count_conflicts(by_birth, deaths);
    tide_host_free(deaths);
    if (n_edges <= TIDE_INTERFERENCE_MAX_EDGES) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                     "the interference graph of %zu lifetimes has %" PRIu64 " edges, more than the %d that are built",
                     by_birth->n, n_edges, (int)TIDE_INTERFERENCE_MAX_EDGES);
}

/// Count degrees, make room, fill, sort the rows. `live` and `next` are scratch [n].
static tide_status build(tide_interference *g, const tide_lifetimes *lt, const tide_worklist *by_birth, uint32_t *live,
                         size_t *next) {
    sweep(lt, by_birth, live, count_edge, g);
    for (size_t i = 0; i < g->n; i++) g->start[i + 1] += g->start[i];
    size_t room;
    if (!tide_mul_size(g->start[g->n], sizeof *g->neighbours, &room)) return TIDE_ERR_NOMEM;
    g->neighbours = tide_host_alloc(room);
    if (g->neighbours == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < g->n; i++) next[i] = g->start[i];
    sweep(lt, by_birth, live, fill_edge, &(filling){g, next});
    for (size_t i = 0; i < g->n; i++)
        qsort(g->neighbours + g->start[i], g->start[i + 1] - g->start[i], sizeof *g->neighbours, compare_u32);
    return TIDE_OK;
}

tide_status tide_interference_build(const tide_lifetimes *lt, tide_interference **out, tide_error *err) {
    if (lt->n > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu lifetimes are more than an interference graph can number", lt->n);
    tide_worklist by_birth;
    TIDE_TRY(tide__worklist_make(lt, tide__by_birth, &by_birth, err));
    const tide_status fits = check_size(&by_birth, err);
    if (fits != TIDE_OK) {
        tide__worklist_deinit(&by_birth);
        return fits;
    }
    tide_interference *g = tide_host_calloc(1, sizeof *g);
    uint32_t *live = tide_host_calloc(lt->n, sizeof *live);
    size_t *next = tide_host_calloc(lt->n, sizeof *next);
    tide_status st = TIDE_ERR_NOMEM;
    if (g != NULL && live != NULL && next != NULL) {
        g->n = lt->n;
        g->start = tide_host_calloc(lt->n + 1, sizeof *g->start);
        if (g->start != NULL) st = build(g, lt, &by_birth, live, next);
    }
    tide_host_free(live);
    tide_host_free(next);
    tide__worklist_deinit(&by_birth);
    if (st != TIDE_OK) {
        tide_interference_destroy(g);
        return TIDE_FAIL(err, st, "no memory for the interference graph of %zu lifetimes", lt->n);
    }
    *out = g;
    return TIDE_OK;
}

void tide_interference_destroy(tide_interference *g) {
    if (g == NULL) return;
    tide_host_free(g->start);
    tide_host_free(g->neighbours);
    tide_host_free(g);
}

bool tide_interference_has_edge(const tide_interference *g, size_t a, size_t b) {
    if (a >= g->n || b >= g->n) return false;
    size_t lo = g->start[a], hi = g->start[a + 1];
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (g->neighbours[mid] == b) return true;
        if (g->neighbours[mid] < b) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return false;
}

size_t tide_interference_n_edges(const tide_interference *g) { return g->n_edges; }

size_t tide_interference_neighbours(const tide_interference *g, size_t a, const uint32_t **out) {
    if (a >= g->n) {
        *out = NULL;
        return 0;
    }
    *out = g->neighbours + g->start[a];
    return g->start[a + 1] - g->start[a];
}
