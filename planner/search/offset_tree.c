// SPDX-License-Identifier: MIT
//
// offset tree: see offset_tree.h. First the tables that it needs of a part, then the tree.
//
// Items are placed in order of offset, ties in the static order; every plan in which no item can be lowered is reached
// by exactly one such order. Pruned: an item at a place where another one would fit wholly below it (dominance); a node
// that leaves more at some tick than there is room for (section bound).
//
// Source: Moffitt 2024 (MiniMalloc), doi 10.1145/3623278.3624752: canonical order, section bound, monotone floor,
// dominance, lowest offset first; here with shapes of several rectangles and fixed offsets.
#include "planner/search/offset_tree.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/search/skyline_tree.h"

// ---- tables: which items meet in time and how far apart they must be ----

/// One item above another: at least `delta` grains higher.
typedef struct offset_pair {
    uint32_t other;
    int64_t delta;
} offset_pair;

/// Offsets that an item cannot have because of one with a fixed offset: lo < offset < hi.
typedef struct excluded_range {
    int64_t lo, hi;
} excluded_range;

/// What the tree needs to know of a part, in grains.
struct tide_offset_shapes {
    uint32_t *first_pair; ///< [n + 1]
    offset_pair *pairs;
    uint32_t *first_excluded; ///< [n + 1]
    excluded_range *excluded; ///< of one item together, by lo
    uint32_t *first_rect;     ///< [n + 1]
    tide_rect *rects;         ///< ticks from the part's first one; grains
    uint64_t *align;          ///< [n] grains
    uint32_t *fixed;          ///< [n] grains; UINT32_MAX: anywhere
    bool *is_twin;            ///< [n] the same as the item before
    uint32_t n_ticks;
    bool plain;
};

/// With more pairs than this, local search finds better plans.
enum { MAX_PAIRS = 1 << 21 };

void tide__offset_shapes_destroy(tide_offset_shapes *s) {
    if (s == NULL) return;
    tide_host_free(s->first_pair);
    tide_host_free(s->pairs);
    tide_host_free(s->first_excluded);
    tide_host_free(s->excluded);
    tide_host_free(s->first_rect);
    tide_host_free(s->rects);
    tide_host_free(s->align);
    tide_host_free(s->fixed);
    tide_host_free(s->is_twin);
    tide_host_free(s);
}

static tide_status copy_items(const tide_problem *p, const tide_sky_part *part, tide_offset_shapes *s) {
    const size_t n = part->n;
    size_t n_rects = 0;
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        n_rects += item->n_rects;
        if (item->begin < first) first = item->begin;
        if (item->end > last) last = item->end;
    }
    s->n_ticks = last - first;
    s->plain = p->plain;
    s->first_pair = tide_host_calloc(n + 1, sizeof *s->first_pair);
    s->first_excluded = tide_host_calloc(n + 1, sizeof *s->first_excluded);
    s->first_rect = tide_host_calloc(n + 1, sizeof *s->first_rect);
    s->rects = tide_host_calloc(n_rects, sizeof *s->rects);
    s->align = tide_host_calloc(n, sizeof *s->align);
    s->fixed = tide_host_calloc(n, sizeof *s->fixed);
    s->is_twin = tide_host_calloc(n, sizeof *s->is_twin);
    if (s->first_pair == NULL || s->first_excluded == NULL || s->first_rect == NULL || s->rects == NULL ||
        s->align == NULL || s->fixed == NULL || s->is_twin == NULL) {
        return TIDE_ERR_NOMEM;
    }
    const uint64_t grain = part->grain_bytes;
    for (size_t i = 0, r = 0; i < n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        s->first_rect[i] = (uint32_t)r;
        for (uint32_t k = 0; k < item->n_rects; k++) {
            const tide_rect *from = &tide__rects_of(p, item)[k];
            s->rects[r++] =
                (tide_rect){from->begin - first, from->end - first, from->lo_bytes / grain, from->hi_bytes / grain};
        }
        s->first_rect[i + 1] = (uint32_t)r;
        s->align[i] = item->align_bytes > grain ? item->align_bytes / grain : 1;
        s->fixed[i] = UINT32_MAX;
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        if (item->fixed_offset / grain >= UINT32_MAX) return TIDE_ERR_NO_SPACE;
        s->fixed[i] = (uint32_t)(item->fixed_offset / grain);
    }
    return TIDE_OK;
}

static bool are_same(const tide_offset_shapes *s, const tide_sky_part *part, uint32_t a, uint32_t b) {
    const uint32_t n = s->first_rect[a + 1] - s->first_rect[a];
    if (n != s->first_rect[b + 1] - s->first_rect[b] || s->align[a] != s->align[b]) return false;
    if (part->size[a] != part->size[b] || s->fixed[a] != UINT32_MAX || s->fixed[b] != UINT32_MAX) return false;
    for (uint32_t k = 0; k < n; k++) {
        const tide_rect *x = &s->rects[s->first_rect[a] + k], *y = &s->rects[s->first_rect[b] + k];
        if (x->begin != y->begin || x->end != y->end || x->lo_bytes != y->lo_bytes || x->hi_bytes != y->hi_bytes)
            return false;
    }
    return true;
}

/// Whether two items meet in time, how far above `a` then `b` must be, and the other way round.
static bool measure_pair(const tide_offset_shapes *s, uint32_t a, uint32_t b, int64_t *b_above, int64_t *a_above) {
    bool meet = false;
    *b_above = *a_above = INT64_MIN;
    for (uint32_t i = s->first_rect[a]; i < s->first_rect[a + 1]; i++) {
        for (uint32_t k = s->first_rect[b]; k < s->first_rect[b + 1]; k++) {
            const tide_rect *x = &s->rects[i], *y = &s->rects[k];
            if (x->end <= y->begin || y->end <= x->begin) continue;
            const int64_t up = (int64_t)x->hi_bytes - (int64_t)y->lo_bytes;
            const int64_t down = (int64_t)y->hi_bytes - (int64_t)x->lo_bytes;
            *b_above = up > *b_above ? up : *b_above;
            *a_above = down > *a_above ? down : *a_above;
            meet = true;
        }
    }
    return meet;
}

/// With `fill` unset, count.
static void list_pairs(tide_offset_shapes *s, uint32_t n, uint32_t *n_of, bool fill) {
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            int64_t b_above, a_above;
            if (!measure_pair(s, a, b, &b_above, &a_above)) continue;
            if (fill) {
                s->pairs[s->first_pair[a] + n_of[a]] = (offset_pair){b, b_above};
                s->pairs[s->first_pair[b] + n_of[b]] = (offset_pair){a, a_above};
            }
            n_of[a]++;
            n_of[b]++;
        }
    }
}

static int compare_excluded(const void *a, const void *b) {
    const excluded_range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/// One for each pair of rectangles, one of them of an item with a fixed offset.
static size_t list_excluded_of(const tide_offset_shapes *s, uint32_t i, excluded_range *out) {
    size_t n = 0;
    if (s->fixed[i] != UINT32_MAX) return 0;
    for (uint32_t k = s->first_pair[i]; k < s->first_pair[i + 1]; k++) {
        const uint32_t other = s->pairs[k].other;
        if (s->fixed[other] == UINT32_MAX) continue;
        for (uint32_t x = s->first_rect[i]; x < s->first_rect[i + 1]; x++) {
            for (uint32_t y = s->first_rect[other]; y < s->first_rect[other + 1]; y++) {
                const tide_rect *mine = &s->rects[x], *its = &s->rects[y];
                if (mine->end <= its->begin || its->end <= mine->begin) continue;
                const int64_t at = s->fixed[other];
                const excluded_range range = {at + (int64_t)its->lo_bytes - (int64_t)mine->hi_bytes,
                                              at + (int64_t)its->hi_bytes - (int64_t)mine->lo_bytes};
                if (out != NULL) out[n] = range;
                n++;
            }
        }
    }
    return n;
}

static tide_status make_excluded(tide_offset_shapes *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        s->first_excluded[i + 1] = s->first_excluded[i] + (uint32_t)list_excluded_of(s, i, NULL);
    s->excluded = tide_host_calloc(s->first_excluded[n], sizeof *s->excluded);
    if (s->excluded == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const size_t got = list_excluded_of(s, i, s->excluded + s->first_excluded[i]);
        qsort(s->excluded + s->first_excluded[i], got, sizeof *s->excluded, compare_excluded);
    }
    return TIDE_OK;
}

static tide_status make_pairs(tide_offset_shapes *s, uint32_t n) {
    uint32_t *n_of = tide_host_calloc(n, sizeof *n_of);
    if (n_of == NULL) return TIDE_ERR_NOMEM;
    list_pairs(s, n, n_of, false);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += n_of[i];
        s->first_pair[i + 1] = (uint32_t)sum;
        n_of[i] = 0;
    }
    tide_status st = sum > MAX_PAIRS ? TIDE_ERR_NO_SPACE : TIDE_OK;
    if (st == TIDE_OK) {
        s->pairs = tide_host_calloc(sum, sizeof *s->pairs);
        if (s->pairs == NULL) {
            st = TIDE_ERR_NOMEM;
        } else {
            list_pairs(s, n, n_of, true);
        }
    }
    tide_host_free(n_of);
    return st;
}

tide_status tide__offset_shapes_make(const tide_problem *problem, const tide_sky_part *part, tide_offset_shapes **out,
                                     tide_error *err) {
    tide_offset_shapes *s = tide_host_calloc(1, sizeof *s);
    tide_status st = s == NULL ? TIDE_ERR_NOMEM : copy_items(problem, part, s);
    if (st == TIDE_OK) st = make_pairs(s, part->n);
    if (st == TIDE_OK) st = make_excluded(s, part->n);
    if (st == TIDE_OK) {
        for (uint32_t i = 1; i < part->n; i++) s->is_twin[i] = are_same(s, part, i - 1, i);
        *out = s;
        return TIDE_OK;
    }
    tide__offset_shapes_destroy(s);
    if (st == TIDE_ERR_NO_SPACE)
        return TIDE_FAIL(err, st, "skyline: %u tensors have too many pairs, or a given offset is too high", part->n);
    return TIDE_NO_MEMORY(err, "for the pairs of %u tensors", part->n);
}

// ---- the tree ----

typedef struct candidate {
    uint32_t at, rank, i;
} candidate;

typedef struct undo {
    uint32_t *where, before;
} undo;

typedef struct offset_tree {
    tide_sky_tree *t;
    const tide_sky_part *part;
    const tide_offset_shapes *shapes;
    uint32_t *rank;  ///< [n] in the static order
    uint32_t *at;    ///< [n] lowest legal offset, grains
    bool *is_placed; ///< [n]
    uint32_t *floor; ///< [n_ticks]
    uint64_t *rest;  ///< [n_ticks] heights of all rectangles not placed yet
    undo *trail;
    size_t n_trail, cap_trail;
} offset_tree;

enum { OUT_OF_REACH = UINT32_MAX - 1 };

/// The lowest offset from `base` on that is aligned and not excluded.
static uint32_t legal_from(const offset_tree *d, uint32_t i, int64_t base) {
    const tide_offset_shapes *s = d->shapes;
    const int64_t align = (int64_t)s->align[i];
    int64_t at = base <= 0 ? 0 : (base + align - 1) / align * align;
    for (uint32_t k = s->first_excluded[i]; k < s->first_excluded[i + 1]; k++) {
        if (at > s->excluded[k].lo && at < s->excluded[k].hi) at = (s->excluded[k].hi + align - 1) / align * align;
    }
    return at < OUT_OF_REACH ? (uint32_t)at : OUT_OF_REACH;
}

static void set(offset_tree *d, uint32_t *where, uint32_t value) {
    TIDE_ASSERT(d->n_trail < d->cap_trail);
    d->trail[d->n_trail++] = (undo){where, *where};
    *where = value;
}

static void undo_to(offset_tree *d, size_t n) {
    while (d->n_trail > n) {
        d->n_trail--;
        *d->trail[d->n_trail].where = d->trail[d->n_trail].before;
    }
}

/// Put item `i` at its place, raise floors and neighbours. @return false: an item left does not fit
static bool put(offset_tree *d, uint32_t i) {
    const tide_offset_shapes *s = d->shapes;
    const uint32_t at = d->at[i], capacity = d->t->capacity;
    d->is_placed[i] = true;
    for (uint32_t r = s->first_rect[i]; r < s->first_rect[i + 1]; r++) {
        for (uint32_t tick = s->rects[r].begin; tick < s->rects[r].end; tick++) {
            d->rest[tick] -= s->rects[r].hi_bytes - s->rects[r].lo_bytes;
            const uint64_t top = at + s->rects[r].hi_bytes;
            if (top > d->floor[tick] && top <= capacity) set(d, &d->floor[tick], (uint32_t)top);
        }
    }
    if ((uint64_t)at + d->part->size[i] > capacity) return false;
    for (uint32_t k = s->first_pair[i]; k < s->first_pair[i + 1]; k++) {
        const uint32_t j = s->pairs[k].other;
        if (d->is_placed[j] || (int64_t)at + s->pairs[k].delta <= d->at[j]) continue;
        set(d, &d->at[j], legal_from(d, j, at + s->pairs[k].delta));
        if ((uint64_t)d->at[j] + d->part->size[j] > capacity) return false;
    }
    return true;
}

static void take_back(offset_tree *d, uint32_t i, size_t n_trail) {
    const tide_offset_shapes *s = d->shapes;
    undo_to(d, n_trail);
    d->is_placed[i] = false;
    for (uint32_t r = s->first_rect[i]; r < s->first_rect[i + 1]; r++) {
        for (uint32_t tick = s->rects[r].begin; tick < s->rects[r].end; tick++) {
            d->rest[tick] += s->rects[r].hi_bytes - s->rects[r].lo_bytes;
        }
    }
}

/// Items left start at `last` or above.
static bool has_room(const offset_tree *d, uint32_t last) {
    for (uint32_t tick = 0; tick < d->shapes->n_ticks; tick++) {
        if (d->rest[tick] == 0) continue;
        const uint32_t floor = d->floor[tick] > last ? d->floor[tick] : last;
        if (floor + d->rest[tick] > d->t->capacity) return false;
    }
    return true;
}

static int compare_candidates(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/// What may be placed after an item of rank `last_rank` at `last`, lowest first.
static uint32_t list_candidates(const offset_tree *d, uint32_t last, uint32_t last_rank, candidate *out) {
    uint64_t lowest_top = UINT64_MAX;
    for (uint32_t i = 0; i < d->part->n; i++) {
        const uint64_t top = (uint64_t)d->at[i] + d->part->size[i];
        if (!d->is_placed[i] && top < lowest_top) lowest_top = top;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->part->n; i++) {
        if (d->is_placed[i] || d->at[i] < last || (d->at[i] == last && d->rank[i] < last_rank)) continue;
        if (d->shapes->plain && d->at[i] >= lowest_top) continue;
        if (d->shapes->is_twin[i] && !d->is_placed[i - 1]) continue;
        out[n++] = (candidate){d->at[i], d->rank[i], i};
    }
    qsort(out, n, sizeof *out, compare_candidates);
    return n;
}

static tide_sky_result solve(offset_tree *d, uint32_t n_left, uint32_t last, uint32_t last_rank) {
    if (n_left == 0) return TIDE_SKY_FOUND;
    if (tide__sky_is_over(d->t)) return d->t->cut;
    d->t->n_work += d->shapes->n_ticks + d->part->n;
    if (!has_room(d, last)) return TIDE_SKY_EXHAUSTED;
    const sky_mark mark = tide__sky_mark(d->t);
    candidate *list = tide__sky_push(d->t, d->part->n * sizeof *list);
    if (list == NULL) return d->t->cut;
    tide_sky_result got = TIDE_SKY_EXHAUSTED;
    const uint32_t n = list_candidates(d, last, last_rank, list);
    for (uint32_t k = 0; k < n && got == TIDE_SKY_EXHAUSTED; k++) {
        const size_t n_trail = d->n_trail;
        if (put(d, list[k].i)) got = solve(d, n_left - 1, list[k].at, list[k].rank);
        if (got == TIDE_SKY_EXHAUSTED) take_back(d, list[k].i, n_trail);
    }
    tide__sky_pop(d->t, mark);
    return got;
}

/// Items with a fixed offset are there from the start: the others go over and under them.
static uint32_t start(offset_tree *d) {
    const tide_offset_shapes *s = d->shapes;
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < d->part->n; i++) {
        d->at[i] = s->fixed[i] != UINT32_MAX ? s->fixed[i] : legal_from(d, i, 0);
        d->is_placed[i] = s->fixed[i] != UINT32_MAX;
        if (d->is_placed[i]) continue;
        n_left++;
        for (uint32_t r = s->first_rect[i]; r < s->first_rect[i + 1]; r++) {
            const uint64_t height = s->rects[r].hi_bytes - s->rects[r].lo_bytes;
            for (uint32_t tick = s->rects[r].begin; tick < s->rects[r].end; tick++) d->rest[tick] += height;
        }
    }
    return n_left;
}

/// A path never holds more: each item raises at most its ticks and its neighbours.
static size_t longest_trail(const tide_sky_part *part) {
    const tide_offset_shapes *s = part->shapes;
    size_t n = s->first_pair[part->n];
    for (uint32_t r = 0; r < s->first_rect[part->n]; r++) n += s->rects[r].end - s->rects[r].begin;
    return n;
}

tide_sky_result tide__offset_tree_run(tide_sky_tree *t) {
    const tide_sky_part *part = t->part;
    const uint32_t n_ticks = part->shapes->n_ticks;
    offset_tree d = {.t = t, .part = part, .shapes = part->shapes};
    d.rank = tide__sky_push(t, part->n * sizeof *d.rank);
    d.at = tide__sky_push(t, part->n * sizeof *d.at);
    d.is_placed = tide__sky_push(t, part->n * sizeof *d.is_placed);
    d.floor = tide__sky_push(t, n_ticks * sizeof *d.floor);
    d.rest = tide__sky_push(t, n_ticks * sizeof *d.rest);
    d.cap_trail = longest_trail(part);
    d.trail = tide__sky_push(t, d.cap_trail * sizeof *d.trail);
    if (t->is_cut) return t->cut;
    memset(d.floor, 0, n_ticks * sizeof *d.floor);
    memset(d.rest, 0, n_ticks * sizeof *d.rest);
    for (uint32_t k = 0; k < part->n; k++) d.rank[t->order[k]] = k;
    const tide_sky_result got = solve(&d, start(&d), 0, 0);
    if (got == TIDE_SKY_FOUND) {
        for (uint32_t k = 0; k < part->n; k++) t->offset[k] = d.at[t->order[k]];
    }
    return got;
}
