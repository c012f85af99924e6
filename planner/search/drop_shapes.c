// SPDX-License-Identifier: MIT
//
// drop shapes: which items meet in time and how far apart they must be. See drops.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/search/drops.h"

/// Where pairs grow beyond this, local search is the better way.
enum { MAX_PAIRS = 1 << 21 };

void tide__drop_shapes_destroy(tide_drop_shapes *s) {
    if (s == NULL) return;
    tide_host_free(s->first_pair);
    tide_host_free(s->pairs);
    tide_host_free(s->first_ban);
    tide_host_free(s->bans);
    tide_host_free(s->first_rect);
    tide_host_free(s->rects);
    tide_host_free(s->align);
    tide_host_free(s->fixed);
    tide_host_free(s->is_twin);
    tide_host_free(s);
}

static tide_status copy_items(const tide_problem *p, const tide_sky_part *part, tide_drop_shapes *s) {
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
    s->first_ban = tide_host_calloc(n + 1, sizeof *s->first_ban);
    s->first_rect = tide_host_calloc(n + 1, sizeof *s->first_rect);
    s->rects = tide_host_calloc(n_rects, sizeof *s->rects);
    s->align = tide_host_calloc(n, sizeof *s->align);
    s->fixed = tide_host_calloc(n, sizeof *s->fixed);
    s->is_twin = tide_host_calloc(n, sizeof *s->is_twin);
    if (s->first_pair == NULL || s->first_ban == NULL || s->first_rect == NULL || s->rects == NULL ||
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
        s->align[i] = item->align_bytes > grain ? (uint32_t)(item->align_bytes / grain) : 1;
        s->fixed[i] = item->fixed_offset == TIDE_NO_OFFSET ? UINT32_MAX : (uint32_t)(item->fixed_offset / grain);
    }
    return TIDE_OK;
}

static bool are_same(const tide_drop_shapes *s, const tide_sky_part *part, uint32_t a, uint32_t b) {
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
static bool measure_pair(const tide_drop_shapes *s, uint32_t a, uint32_t b, int64_t *b_above, int64_t *a_above) {
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
static void list_pairs(tide_drop_shapes *s, uint32_t n, uint32_t *n_of, bool fill) {
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            int64_t b_above, a_above;
            if (!measure_pair(s, a, b, &b_above, &a_above)) continue;
            if (fill) {
                s->pairs[s->first_pair[a] + n_of[a]] = (tide_drop_pair){b, b_above};
                s->pairs[s->first_pair[b] + n_of[b]] = (tide_drop_pair){a, a_above};
            }
            n_of[a]++;
            n_of[b]++;
        }
    }
}

static int compare_bans(const void *a, const void *b) {
    const tide_drop_ban *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/// One for each pair of rectangles, one of them of an item with a fixed offset.
static size_t list_bans_of(const tide_drop_shapes *s, uint32_t i, tide_drop_ban *out) {
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
                const tide_drop_ban ban = {at + (int64_t)its->lo_bytes - (int64_t)mine->hi_bytes,
                                           at + (int64_t)its->hi_bytes - (int64_t)mine->lo_bytes};
                if (out != NULL) out[n] = ban;
                n++;
            }
        }
    }
    return n;
}

static tide_status make_bans(tide_drop_shapes *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) s->first_ban[i + 1] = s->first_ban[i] + (uint32_t)list_bans_of(s, i, NULL);
    s->bans = tide_host_calloc(s->first_ban[n], sizeof *s->bans);
    if (s->bans == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const size_t got = list_bans_of(s, i, s->bans + s->first_ban[i]);
        qsort(s->bans + s->first_ban[i], got, sizeof *s->bans, compare_bans);
    }
    return TIDE_OK;
}

static tide_status make_pairs(tide_drop_shapes *s, uint32_t n) {
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

tide_status tide__drop_shapes_make(const tide_problem *problem, const tide_sky_part *part, tide_drop_shapes **out,
                                   tide_error *err) {
    tide_drop_shapes *s = tide_host_calloc(1, sizeof *s);
    tide_status st = s == NULL ? TIDE_ERR_NOMEM : copy_items(problem, part, s);
    if (st == TIDE_OK) st = make_pairs(s, part->n);
    if (st == TIDE_OK) st = make_bans(s, part->n);
    if (st == TIDE_OK) {
        for (uint32_t i = 1; i < part->n; i++) s->is_twin[i] = are_same(s, part, i - 1, i);
        *out = s;
        return TIDE_OK;
    }
    tide__drop_shapes_destroy(s);
    if (st == TIDE_ERR_NO_SPACE) return TIDE_FAIL(err, st, "drops: too many pairs among %u tensors", part->n);
    return TIDE_FAIL(err, st, "drops: no memory for %u tensors", part->n);
}
