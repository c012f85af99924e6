// SPDX-License-Identifier: MIT
//
// Lists from pairs: what belongs to each key, one behind the other. See pass_order_model_internal.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model_internal.h"

void tide__table_deinit(tide__table *t) {
    tide_host_free(t->first);
    tide_host_free(t->items);
    *t = (tide__table){0};
}

static int compare_pairs(const void *a, const void *b) {
    const tide__fact_pair *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->other > y->other) - (x->other < y->other);
}

bool tide__table_make(tide__table *t, const tide__fact_pair *pairs, size_t n, size_t n_keys, bool loops) {
    tide__fact_pair *sorted = tide_host_calloc(n + 1, sizeof *sorted);
    t->first = tide_host_calloc(n_keys + 2, sizeof *t->first);
    t->items = tide_host_calloc(n + 1, sizeof *t->items);
    if (sorted == NULL || t->first == NULL || t->items == NULL) {
        tide_host_free(sorted);
        return false;
    }
    if (n > 0) memcpy(sorted, pairs, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_pairs);
    uint32_t n_items = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && compare_pairs(&sorted[i - 1], &sorted[i]) == 0) continue;
        if (!loops && sorted[i].step == sorted[i].other) continue;
        t->items[n_items++] = sorted[i].other;
        t->first[sorted[i].step + 1] = n_items;
    }
    for (size_t k = 1; k <= n_keys; k++) {
        if (t->first[k] < t->first[k - 1]) t->first[k] = t->first[k - 1];
    }
    tide_host_free(sorted);
    return true;
}

bool tide__table_of_nodes(tide__table *t, const tide__fact_pairs *from, const uint32_t *step_key,
                          const uint32_t *other_key, bool turned, size_t n_keys, bool loops) {
    tide__fact_pair *pairs = tide_host_calloc(from->n + 1, sizeof *pairs);
    if (pairs == NULL) return false;
    for (size_t i = 0; i < from->n; i++) {
        const uint32_t step = step_key[from->list[i].step];
        const uint32_t other = other_key != NULL ? other_key[from->list[i].other] : from->list[i].other;
        pairs[i] = turned ? (tide__fact_pair){other, step} : (tide__fact_pair){step, other};
    }
    const bool ok = tide__table_make(t, pairs, from->n, n_keys, loops);
    tide_host_free(pairs);
    return ok;
}
