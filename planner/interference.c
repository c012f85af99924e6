// SPDX-License-Identifier: MIT
//
// interference graph, stage 2 of 4: which tensors may not share bytes (S23-7, S23-8). `plan --dump-stage graph` prints
// it. Strategies ask for the same relation without building it, since it grows with the square of the number of
// tensors; that is also why its size has a limit.
//
// A tensor is needed in stretches of steps: one, or several with gaps that keep nothing of it. Two tensors of one
// device and kind that are needed at one step have an edge; so has all that lies in one member of an apart set with all
// that lies in another. What lies in one tensor shares its bytes: no edges there.
//
// Kept as compressed rows: the neighbours of lifetime a are neighbours[start[a] … start[a + 1]), ascending.
//
//     start:      | 0 | 2 | 3 | 3 | 4 |          4 lifetimes
//     neighbours: | 1 3 | 0 |  | 0 |             edges 0-1, 0-3; number 2 is persistent or alone
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

struct tide_interference {
    size_t n;             // lifetimes
    size_t n_edges;       // undirected
    size_t *start;        // [n + 1]
    uint32_t *neighbours; // [2 * n_edges]
};

// ---- the relation ----

/// Stretches of steps at which a tensor is needed, one after the other.
typedef struct stretches {
    const tide_lifetime *item;
    uint32_t next_gap;
    int64_t from;       // where the next one may begin
    int64_t begin, end; // this one
} stretches;

static bool next_stretch(stretches *s) {
    s->begin = s->from;
    while (s->next_gap < s->item->n_gaps) {
        const tide_gap *g = &s->item->gaps[s->next_gap++];
        if (g->lo_bytes < g->hi_bytes) continue; // it keeps something
        s->end = g->begin_step;
        s->from = g->end_step;
        if (s->begin < s->end) return true;
        s->begin = s->from;
    }
    s->end = s->from = s->item->end_step;
    return s->begin < s->end;
}

static bool first_stretch(stretches *s, const tide_lifetime *item) {
    *s = (stretches){.item = item, .from = item->begin_step};
    return next_stretch(s);
}

static bool takes_space(const tide_lifetime *item) { return !item->persistent && item->size_bytes > 0; }

static bool same_buffer(const tide_lifetime *a, const tide_lifetime *b) {
    return a->kind == b->kind && tide_device_equal(a->device, b->device);
}

enum { NEVER = -1 };

static int64_t first_meeting(const tide_lifetime *a, const tide_lifetime *b) {
    stretches x, y;
    bool more = first_stretch(&x, a) && first_stretch(&y, b);
    while (more) {
        if (x.begin < y.end && y.begin < x.end) return x.begin > y.begin ? x.begin : y.begin;
        more = x.end <= y.begin ? next_stretch(&x) : next_stretch(&y);
    }
    return NEVER;
}

bool tide_lifetimes_conflict(const tide_lifetime *a, const tide_lifetime *b) {
    if (a == b || !takes_space(a) || !takes_space(b) || !same_buffer(a, b)) return false;
    return first_meeting(a, b) != NEVER;
}

static bool kept_apart(const tide_lifetimes *lt, uint32_t a_root, uint32_t b_root) {
    const uint32_t set = lt->items[a_root].apart_set;
    return set != 0 && set == lt->items[b_root].apart_set;
}

bool tide_lifetimes_may_not_share(const tide_lifetimes *lt, size_t a, size_t b) {
    const uint32_t a_root = tide_lifetimes_root(lt, (uint32_t)a, NULL),
                   b_root = tide_lifetimes_root(lt, (uint32_t)b, NULL);
    const tide_lifetime *x = &lt->items[a], *y = &lt->items[b];
    if (a_root == b_root) return false;
    return tide_lifetimes_conflict(x, y) ||
           (takes_space(x) && takes_space(y) && same_buffer(x, y) && kept_apart(lt, a_root, b_root));
}

// ---- sweeps over all pairs ----

typedef struct stretch {
    int64_t begin, end;
    uint32_t item;
} stretch;

/// A tensor that belongs to an apart set, as does all that lies in the set's members.
typedef struct apart_member {
    uint32_t set, item;
} apart_member;

typedef struct builder {
    const tide_lifetimes *lt;
    tide_interference *g;
    uint32_t *roots;    // [lt->n]
    stretch *stretches; // [n_stretches] by begin
    size_t n_stretches;
    uint32_t *live;      // [n_stretches] scratch
    int64_t *deaths;     // [n_stretches] scratch
    apart_member *apart; // [n_apart] by set
    size_t n_apart;
    size_t *next; // [lt->n] where the row of each lifetime goes on
} builder;

/// Called by the sweeps once for each pair.
typedef void edge_fn(builder *b, uint32_t x, uint32_t y);

/// Stretches come in order of birth; those still alive then meet the new one. One that has ended leaves the list the
/// first time it is met, so the work is the number of stretches plus that of meetings.
static void sweep_steps(builder *b, edge_fn *edge) {
    const tide_lifetime *items = b->lt->items;
    size_t n_live = 0;
    for (size_t k = 0; k < b->n_stretches; k++) {
        const stretch *born = &b->stretches[k];
        for (size_t l = 0; l < n_live;) {
            const stretch *other = &b->stretches[b->live[l]];
            if (other->end <= born->begin) {
                b->live[l] = b->live[--n_live];
                continue;
            }
            l++;
            const tide_lifetime *x = &items[born->item], *y = &items[other->item];
            if (b->roots[born->item] == b->roots[other->item] || !same_buffer(x, y)) continue;
            // Those with gaps may meet several times: the first one counts.
            if (x->n_gaps + y->n_gaps > 0 && first_meeting(x, y) != born->begin) continue;
            edge(b, born->item, other->item);
        }
        TIDE_ASSERT(n_live <= k && born->begin < born->end);
        b->live[n_live++] = (uint32_t)k;
    }
}

/// Pairs of apart sets that have not met in time.
static void sweep_sets(builder *b, edge_fn *edge) {
    for (size_t k = 0; k < b->n_apart; k++) {
        const uint32_t x = b->apart[k].item;
        for (size_t l = k + 1; l < b->n_apart && b->apart[l].set == b->apart[k].set; l++) {
            const uint32_t y = b->apart[l].item;
            if (b->roots[x] == b->roots[y] || !same_buffer(&b->lt->items[x], &b->lt->items[y])) continue;
            if (first_meeting(&b->lt->items[x], &b->lt->items[y]) == NEVER) edge(b, x, y);
        }
    }
}

static void count_edge(builder *b, uint32_t x, uint32_t y) {
    b->g->start[x + 1]++;
    b->g->start[y + 1]++;
    b->g->n_edges++;
}

static void fill_edge(builder *b, uint32_t x, uint32_t y) {
    TIDE_ASSERT(x != y && b->next[x] < b->g->start[x + 1] && b->next[y] < b->g->start[y + 1]);
    b->g->neighbours[b->next[x]++] = y;
    b->g->neighbours[b->next[y]++] = x;
}

// ---- size ----

static int compare_i64(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// Count meetings without visiting them: each stretch meets those that began before it and are still alive.
static uint64_t count_meetings(builder *b) {
    for (size_t k = 0; k < b->n_stretches; k++) b->deaths[k] = b->stretches[k].end;
    qsort(b->deaths, b->n_stretches, sizeof *b->deaths, compare_i64);
    uint64_t n = 0;
    size_t n_dead = 0;
    for (size_t k = 0; k < b->n_stretches; k++) {
        while (b->deaths[n_dead] <= b->stretches[k].begin) n_dead++; // ends at the stretch's own death
        TIDE_ASSERT(n_dead <= k);
        n += k - n_dead;
    }
    for (size_t k = 0, first = 0; k < b->n_apart; k++) {
        if (b->apart[k].set != b->apart[first].set) first = k;
        n += k - first;
    }
    return n;
}

static tide_status check_size(builder *b, tide_error *err) {
    const uint64_t n = count_meetings(b);
    if (n <= TIDE_INTERFERENCE_MAX_EDGES) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                     "the interference graph of %zu lifetimes has up to %" PRIu64
                     " edges, more than the %d that are built",
                     b->lt->n, n, (int)TIDE_INTERFERENCE_MAX_EDGES);
}

// ---- building ----

static int compare_stretches(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int compare_apart(const void *a, const void *b) {
    const apart_member *x = a, *y = b;
    if (x->set != y->set) return x->set < y->set ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/// Follow each chain of aliases once, and set the root of all items on the way.
static void find_roots(builder *b) {
    enum { UNKNOWN = UINT32_MAX };
    const tide_lifetime *items = b->lt->items;
    for (size_t i = 0; i < b->lt->n; i++) b->roots[i] = UNKNOWN;
    for (uint32_t i = 0; i < b->lt->n; i++) {
        uint32_t at = i;
        while (b->roots[at] == UNKNOWN && items[at].alias != TIDE_ALIAS_NONE) at = items[at].alias_of;
        const uint32_t root = b->roots[at] == UNKNOWN ? at : b->roots[at];
        for (at = i; b->roots[at] == UNKNOWN && at != root; at = items[at].alias_of) b->roots[at] = root;
        TIDE_ASSERT(items[root].alias == TIDE_ALIAS_NONE);
        b->roots[root] = root;
    }
}

static void list_members(builder *b) {
    for (uint32_t i = 0; i < b->lt->n; i++) {
        const tide_lifetime *item = &b->lt->items[i];
        stretches s;
        if (!takes_space(item)) continue;
        for (bool more = first_stretch(&s, item); more; more = next_stretch(&s))
            b->stretches[b->n_stretches++] = (stretch){s.begin, s.end, i};
        const uint32_t set = b->lt->items[b->roots[i]].apart_set;
        if (set != 0) b->apart[b->n_apart++] = (apart_member){set, i};
    }
    qsort(b->stretches, b->n_stretches, sizeof *b->stretches, compare_stretches);
    qsort(b->apart, b->n_apart, sizeof *b->apart, compare_apart);
}

static tide_status gather(builder *b, tide_error *err) {
    size_t n = b->lt->n, room = n;
    for (size_t i = 0; i < n; i++) room += b->lt->items[i].n_gaps;
    b->roots = tide_host_calloc(n, sizeof *b->roots);
    b->stretches = tide_host_calloc(room, sizeof *b->stretches);
    b->live = tide_host_calloc(room, sizeof *b->live);
    b->deaths = tide_host_calloc(room, sizeof *b->deaths);
    b->apart = tide_host_calloc(n, sizeof *b->apart);
    if (b->roots == NULL || b->stretches == NULL || b->live == NULL || b->deaths == NULL || b->apart == NULL)
        return TIDE_NO_MEMORY(err, "for the interference graph of %zu lifetimes", n);
    find_roots(b);
    list_members(b);
    return check_size(b, err);
}

/// Whether the rows are full and rising, and every edge stands in both.
static bool rows_hold(const tide_interference *g) {
    for (size_t a = 0; a < g->n; a++) {
        for (size_t k = g->start[a]; k < g->start[a + 1]; k++) {
            if (k > g->start[a] && g->neighbours[k - 1] >= g->neighbours[k]) return false;
            if (g->neighbours[k] >= g->n || !tide_interference_has_edge(g, g->neighbours[k], a)) return false;
        }
    }
    return true;
}

/// Count degrees, make room, fill, sort the rows.
static tide_status fill(builder *b) {
    tide_interference *g = b->g;
    size_t room;
    g->n = b->lt->n;
    g->start = tide_host_calloc(g->n + 1, sizeof *g->start);
    b->next = tide_host_calloc(g->n, sizeof *b->next);
    if (g->start == NULL || b->next == NULL) return TIDE_ERR_NOMEM;
    sweep_steps(b, count_edge);
    sweep_sets(b, count_edge);
    for (size_t i = 0; i < g->n; i++) g->start[i + 1] += g->start[i];
    if (!tide_mul_size(g->start[g->n], sizeof *g->neighbours, &room)) return TIDE_ERR_NOMEM;
    g->neighbours = tide_host_alloc(room);
    if (g->neighbours == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < g->n; i++) b->next[i] = g->start[i];
    sweep_steps(b, fill_edge);
    sweep_sets(b, fill_edge);
    for (size_t i = 0; i < g->n; i++)
        qsort(g->neighbours + g->start[i], g->start[i + 1] - g->start[i], sizeof *g->neighbours, compare_u32);
    TIDE_ASSERT(g->start[g->n] == 2 * g->n_edges && g->n_edges <= TIDE_INTERFERENCE_MAX_EDGES);
    TIDE_ASSERT_SLOW(rows_hold(g));
    return TIDE_OK;
}

static tide_status build(builder *b, tide_error *err) {
    TIDE_TRY(gather(b, err));
    b->g = tide_host_calloc(1, sizeof *b->g);
    const tide_status st = b->g != NULL ? fill(b) : TIDE_ERR_NOMEM;
    if (st == TIDE_OK) return TIDE_OK;
    tide_interference_destroy(b->g);
    return TIDE_FAIL(err, st, "no memory for the interference graph of %zu lifetimes", b->lt->n);
}

tide_status tide_interference_build(const tide_lifetimes *lt, tide_interference **out, tide_error *err) {
    if (lt->n > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu lifetimes are more than an interference graph can number", lt->n);
    builder b = {.lt = lt};
    const tide_status st = build(&b, err);
    tide_host_free(b.roots);
    tide_host_free(b.stretches);
    tide_host_free(b.live);
    tide_host_free(b.deaths);
    tide_host_free(b.apart);
    tide_host_free(b.next);
    if (st == TIDE_OK) *out = b.g;
    return st;
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
