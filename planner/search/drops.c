// SPDX-License-Identifier: MIT
//
// drops: the tree. Items go down in order of offset, ties in the static order; every plan in which nothing can drop is
// reached by exactly one such order. Cut off: what comes to lie where another item would fit wholly below it; what
// leaves more at some tick than there is room for above it.
//
// Source: Moffitt 2024 (MiniMalloc), doi 10.1145/3623278.3624752: canonical order, section bound, monotone floor,
// dominance, lowest offset first; here with shapes of several rectangles and fixed offsets.
#include "planner/search/drops.h"

#include <stdlib.h>
#include <string.h>

#include "planner/search/skyline_internal.h"

typedef struct candidate {
    uint32_t at, rank, i;
} candidate;

typedef struct undo {
    uint32_t *where, before;
} undo;

typedef struct drop_tree {
    tide_sky_tree *t;
    const tide_sky_part *part;
    const tide_drop_shapes *shapes;
    uint32_t *rank;  ///< [n] in the static order
    uint32_t *at;    ///< [n] lowest legal offset, grains
    bool *is_placed; ///< [n]
    uint32_t *floor; ///< [n_ticks]
    uint64_t *rest;  ///< [n_ticks] heights of all rectangles not placed yet
    undo *trail;
    size_t n_trail, cap_trail;
} drop_tree;

enum { OUT_OF_REACH = UINT32_MAX - 1 };

/// The lowest offset from `base` on that is aligned and not banned.
static uint32_t legal_from(const drop_tree *d, uint32_t i, int64_t base) {
    const tide_drop_shapes *s = d->shapes;
    const int64_t align = s->align[i];
    int64_t at = base <= 0 ? 0 : (base + align - 1) / align * align;
    for (uint32_t k = s->first_ban[i]; k < s->first_ban[i + 1]; k++) {
        if (at > s->bans[k].lo && at < s->bans[k].hi) at = (s->bans[k].hi + align - 1) / align * align;
    }
    return at < OUT_OF_REACH ? (uint32_t)at : OUT_OF_REACH;
}

static void set(drop_tree *d, uint32_t *where, uint32_t value) {
    d->trail[d->n_trail++] = (undo){where, *where};
    *where = value;
}

static void undo_to(drop_tree *d, size_t n) {
    while (d->n_trail > n) {
        d->n_trail--;
        *d->trail[d->n_trail].where = d->trail[d->n_trail].before;
    }
}

/// Put item `i` at its place, raise floors and neighbours. @return false: something does not fit any more
static bool drop(drop_tree *d, uint32_t i) {
    const tide_drop_shapes *s = d->shapes;
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

static void lift(drop_tree *d, uint32_t i, size_t n_trail) {
    const tide_drop_shapes *s = d->shapes;
    undo_to(d, n_trail);
    d->is_placed[i] = false;
    for (uint32_t r = s->first_rect[i]; r < s->first_rect[i + 1]; r++) {
        for (uint32_t tick = s->rects[r].begin; tick < s->rects[r].end; tick++) {
            d->rest[tick] += s->rects[r].hi_bytes - s->rects[r].lo_bytes;
        }
    }
}

/// Nothing starts below `last` any more.
static bool has_room(const drop_tree *d, uint32_t last) {
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

/// What may be dropped after an item of rank `last_rank` at `last`, lowest first.
static uint32_t list_candidates(const drop_tree *d, uint32_t last, uint32_t last_rank, candidate *out) {
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

static tide_sky_result descend(drop_tree *d, uint32_t n_left, uint32_t last, uint32_t last_rank) {
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
        if (drop(d, list[k].i)) got = descend(d, n_left - 1, list[k].at, list[k].rank);
        if (got == TIDE_SKY_EXHAUSTED) lift(d, list[k].i, n_trail);
    }
    tide__sky_pop(d->t, mark);
    return got;
}

/// Items with a fixed offset are there from the start: the others go over and under them.
static uint32_t start(drop_tree *d) {
    const tide_drop_shapes *s = d->shapes;
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

/// A path never holds more: each drop raises at most its ticks and its neighbours.
static size_t longest_trail(const tide_sky_part *part) {
    const tide_drop_shapes *s = part->shapes;
    size_t n = s->first_pair[part->n];
    for (uint32_t r = 0; r < s->first_rect[part->n]; r++) n += s->rects[r].end - s->rects[r].begin;
    return n;
}

tide_sky_result tide__sky_drop(tide_sky_tree *t) {
    const tide_sky_part *part = t->part;
    const uint32_t n_ticks = part->shapes->n_ticks;
    drop_tree d = {.t = t, .part = part, .shapes = part->shapes};
    d.rank = tide__sky_push(t, part->n * sizeof *d.rank);
    d.at = tide__sky_push(t, part->n * sizeof *d.at);
    d.is_placed = tide__sky_push(t, part->n * sizeof *d.is_placed);
    d.floor = tide__sky_push(t, n_ticks * sizeof *d.floor);
    d.rest = tide__sky_push(t, n_ticks * sizeof *d.rest);
    d.trail = tide__sky_push(t, longest_trail(part) * sizeof *d.trail);
    if (t->is_cut) return t->cut;
    memset(d.floor, 0, n_ticks * sizeof *d.floor);
    memset(d.rest, 0, n_ticks * sizeof *d.rest);
    for (uint32_t k = 0; k < part->n; k++) d.rank[t->order[k]] = k;
    const tide_sky_result got = descend(&d, start(&d), 0, 0);
    if (got == TIDE_SKY_FOUND) {
        for (uint32_t k = 0; k < part->n; k++) t->offset[k] = d.at[t->order[k]];
    }
    return got;
}
