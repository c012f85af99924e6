// SPDX-License-Identifier: MIT
//
// placement: what a strategy fills for one problem. See problem.h.
#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/problem.h"

tide_status tide__placement_init(tide_placement *pl, const tide_problem *p, tide_error *err) {
    *pl = (tide_placement){.proved_bytes = p->proved_bytes, .proof = p->proof};
    pl->offsets = tide_host_alloc(p->n * sizeof *pl->offsets);
    pl->pools = tide_host_alloc(p->n * sizeof *pl->pools);
    if (pl->offsets == NULL || pl->pools == NULL) {
        tide__placement_deinit(pl);
        return TIDE_NO_MEMORY(err, "for the places of %zu tensors", p->n);
    }
    for (size_t i = 0; i < p->n; i++) {
        pl->offsets[i] = TIDE_NO_OFFSET;
        pl->pools[i] = TIDE_NO_POOL;
    }
    return TIDE_OK;
}

void tide__placement_deinit(tide_placement *pl) {
    tide_host_free(pl->offsets);
    tide_host_free(pl->pools);
    tide_host_free(pl->pool_list);
    *pl = (tide_placement){0};
}

void tide__placement_measure(tide_placement *pl, const tide_problem *p) {
    pl->bytes = 0;
    for (size_t i = 0; i < p->n; i++) {
        const uint64_t end = pl->offsets[i] + p->items[i].size_bytes;
        if (end > pl->bytes) pl->bytes = end;
    }
}

static bool rects_meet(const tide_problem *p, const tide_placement *pl, size_t a, size_t b) {
    const tide_item *x = &p->items[a], *y = &p->items[b];
    if (x->end <= y->begin || y->end <= x->begin) return false;
    for (uint32_t i = 0; i < x->n_rects; i++) {
        const tide_rect *r = &tide__rects_of(p, x)[i];
        for (uint32_t k = 0; k < y->n_rects; k++) {
            const tide_rect *s = &tide__rects_of(p, y)[k];
            if (r->end <= s->begin || s->end <= r->begin) continue;
            if (pl->offsets[a] + r->lo_bytes < pl->offsets[b] + s->hi_bytes &&
                pl->offsets[b] + s->lo_bytes < pl->offsets[a] + r->hi_bytes)
                return true;
        }
    }
    return false;
}

bool tide__placement_is_sound(const tide_placement *pl, const tide_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        uint64_t end;
        if (pl->offsets[i] == TIDE_NO_OFFSET || pl->offsets[i] % item->align_bytes != 0) return false;
        if (item->fixed_offset != TIDE_NO_OFFSET && pl->offsets[i] != item->fixed_offset) return false;
        if (!tide_add_u64(pl->offsets[i], item->size_bytes, &end) || end > pl->bytes) return false;
        for (size_t k = 0; k < i; k++) {
            if (rects_meet(p, pl, i, k)) return false;
        }
    }
    return true;
}

/// Items have no names here: the message can only count them.
tide_status tide__refuse_fixed(const tide_problem *problem, const char *what, tide_error *err) {
    if (!problem->has_fixed) return TIDE_OK;
    size_t n = 0;
    for (size_t i = 0; i < problem->n; i++) n += problem->items[i].fixed_offset != TIDE_NO_OFFSET;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "%s cannot keep given offsets, and %zu of %zu tensors have one", what,
                  n, problem->n);
    tide_error_hint(err, "offset strategies can: greedy_by_size, for one");
    return st;
}
