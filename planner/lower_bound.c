// SPDX-License-Identifier: MIT
//
// lower bound: the largest sum of bytes alive at one step. No plan of these lifetimes is smaller, whatever the
// strategy; a plan that reaches it is proven best (S23-10).
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

typedef struct change {
    int64_t step;
    bool born; // else: dies
    uint64_t bytes;
} change;

/// Deaths before births of the same step: lifetimes are half-open.
static int compare_changes(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (int)x->born - (int)y->born;
}

static size_t list_changes(const tide_lifetimes *lt, change *changes) {
    size_t n = 0;
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *item = &lt->items[i];
        if (item->persistent || item->size_bytes == 0) continue;
        const uint64_t bytes = tide_lifetime_aligned_bytes(item);
        changes[n++] = (change){item->begin_step, true, bytes};
        changes[n++] = (change){item->end_step, false, bytes};
    }
    qsort(changes, n, sizeof *changes, compare_changes);
    return n;
}

tide_status tide_lower_bound(const tide_lifetimes *lt, uint64_t *bytes, int64_t *step, tide_error *err) {
    size_t room;
    change *changes = tide_mul_size(lt->n, 2 * sizeof *changes, &room) ? tide_host_alloc(room) : NULL;
    if (changes == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the lower bound of %zu lifetimes", lt->n);
    const size_t n = list_changes(lt, changes);
    uint64_t live = 0, peak = 0;
    int64_t peak_step = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        if (!changes[i].born) {
            live -= changes[i].bytes;
        } else if (!tide_add_u64(live, changes[i].bytes, &live)) {
            st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bytes alive at step %lld pass 2^64 - 1",
                           (long long)changes[i].step);
        } else if (live > peak) {
            peak = live;
            peak_step = changes[i].step;
        }
    }
    tide_host_free(changes);
    if (st != TIDE_OK) return st;
    *bytes = peak;
    if (step != NULL) *step = peak_step;
    return TIDE_OK;
}
