// SPDX-License-Identifier: MIT
//
// placed index: see placed_index.h.
#include "planner/placed_index.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"

static int by_birth(const void *a, const void *b) {
    const tide_placed_rank *x = a, *y = b;
    if (x->begin_step != y->begin_step) return x->begin_step < y->begin_step ? -1 : 1;
    return (x->work_i > y->work_i) - (x->work_i < y->work_i);
}

tide_status tide__placed_index_init(tide_placed_index *index, const tide_worklist *work) {
    *index = (tide_placed_index){.n = work->n, .n_leaves = 1};
    if (work->n > INT32_MAX) return TIDE_ERR_NOMEM; // no plan numbers more tensors
    while (index->n_leaves < work->n) index->n_leaves *= 2;
    index->ranks = tide_host_calloc(work->n, sizeof *index->ranks);
    index->rank_of = tide_host_calloc(work->n, sizeof *index->rank_of);
    index->latest = tide_host_calloc(index->n_leaves, 2 * sizeof *index->latest);
    if (index->ranks == NULL || index->rank_of == NULL || index->latest == NULL) {
        tide__placed_index_deinit(index);
        return TIDE_ERR_NOMEM;
    }
    for (size_t k = 0; k < work->n; k++) index->ranks[k] = (tide_placed_rank){work->items[k]->begin_step, (uint32_t)k};
    qsort(index->ranks, index->n, sizeof *index->ranks, by_birth);
    for (size_t r = 0; r < index->n; r++) index->rank_of[index->ranks[r].work_i] = (uint32_t)r;
    return TIDE_OK;
}

void tide__placed_index_deinit(tide_placed_index *index) {
    tide_host_free(index->ranks);
    tide_host_free(index->rank_of);
    tide_host_free(index->latest);
    *index = (tide_placed_index){0};
}

void tide__placed_index_add(tide_placed_index *index, const tide_worklist *work, size_t work_i) {
    const int64_t end = work->items[work_i]->end_step;
    for (size_t node = index->n_leaves + index->rank_of[work_i]; node > 0 && index->latest[node] < end; node /= 2)
        index->latest[node] = end;
}

/// Number of ranks born before `step`.
static size_t born_before(const tide_placed_index *index, int64_t step) {
    size_t lo = 0, hi = index->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (index->ranks[mid].begin_step < step) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/// The first rank from `rank` on that is placed and dies after `step`; n_leaves: none.
static size_t next_alive(const tide_placed_index *index, size_t rank, int64_t step) {
    size_t node = index->n_leaves + rank;
    while (index->latest[node] <= step) {
        while (node % 2 == 1) node /= 2; // a right child: what follows it follows its parent; the root's is 0
        if (node == 0) return index->n_leaves;
        node++;
    }
    while (node < index->n_leaves) {
        node *= 2;
        if (index->latest[node] <= step) node++;
    }
    return node - index->n_leaves;
}

size_t tide__placed_index_find(const tide_placed_index *index, const tide_lifetime *item, uint32_t *out, size_t max) {
    const size_t stop = born_before(index, item->end_step);
    size_t n = 0;
    for (size_t r = 0; r < stop; r++) {
        r = next_alive(index, r, item->begin_step);
        if (r >= stop) break;
        if (n == max) return max + 1;
        out[n++] = index->ranks[r].work_i;
    }
    return n;
}
