// SPDX-License-Identifier: MIT
//
// What could be repeated. See pass_recompute.h.
//
//     position      peak          before
//     t made        |  t waits    t again | reader of t
//     ----o---------#-------------o-------o-------->      t need not be alive at the peak; its inputs must be there
//                                                         again, or be made again too
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model_internal.h"
#include "planner/passes/pass_recompute.h"

enum { MAX_CHAIN = 3 };

/// Readers of each tensor around the peak.
typedef struct reads {
    uint32_t next; ///< the first behind the peak; TIDE_NO_INDEX
    uint32_t last; ///< of all; 0 with none
    bool at_peak;
} reads;

typedef struct lister {
    const tide__order_facts *f;
    const uint32_t *sequence;
    uint32_t peak;
    const bool *is_able;
    const double *work;
    reads *of;           ///< [n_tensors]
    tide__table read_by; ///< tensors, by step
} lister;

static void note_reads(const lister *l) {
    for (size_t t = 0; t < l->f->n_tensors; t++) l->of[t] = (reads){.next = TIDE_NO_INDEX};
    for (size_t i = 0; i < l->f->reads.n; i++) {
        const uint32_t at = l->f->reads.list[i].step;
        reads *r = &l->of[l->f->reads.list[i].other];
        if (at > l->peak && at < r->next) r->next = at;
        if (at > r->last) r->last = at;
        if (at == l->peak) r->at_peak = true;
    }
}

static bool add_step(const lister *l, tide__repeat *r, uint32_t at) {
    for (size_t i = 0; i < r->n; i++) {
        if (r->at[i] == at) return true;
    }
    if (r->n == sizeof r->at / sizeof r->at[0] || !l->is_able[l->sequence[at]]) return false;
    size_t i = r->n++;
    for (; i > 0 && r->at[i - 1] > at; i--) r->at[i] = r->at[i - 1];
    r->at[i] = at;
    r->work += l->work[l->sequence[at]];
    return true;
}

/// Run the step at `at` again and, down to `depth` makers, those whose results are gone by then. What cannot be made
/// again is kept instead: the trial will tell what that costs.
static bool collect(const lister *l, tide__repeat *r, uint32_t at, int depth) {
    if (!add_step(l, r, at)) return false;
    const tide__span span = tide__table_span(&l->read_by, at);
    for (uint32_t i = 0; i < span.n && depth > 1; i++) {
        const uint32_t t = l->read_by.items[span.first + i];
        if (l->of[t].last >= r->before) continue;
        (void)collect(l, r, l->f->tensors[t].maker, depth - 1);
    }
    return true;
}

static int most_for_least(const void *a, const void *b) {
    const tide__repeat *x = a, *y = b;
    const double x_rate = (double)x->bytes / (x->work + 1), y_rate = (double)y->bytes / (y->work + 1);
    if (x_rate != y_rate) return x_rate > y_rate ? -1 : 1;
    if (x->at[0] != y->at[0]) return x->at[0] < y->at[0] ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->before > y->before) - (x->before < y->before);
}

static bool is_candidate(const lister *l, uint32_t t) {
    const tide__fact_tensor *x = &l->f->tensors[t];
    return x->maker < l->peak && !l->of[t].at_peak && l->of[t].next != TIDE_NO_INDEX;
}

/// All chains of all candidates; `all` has room for them.
static size_t list_all(const lister *l, tide__repeat *all) {
    size_t n = 0;
    for (uint32_t t = 0; t < l->f->n_tensors; t++) {
        if (!is_candidate(l, t)) continue;
        size_t n_before = 0;
        for (int depth = 1; depth <= MAX_CHAIN; depth++) {
            tide__repeat r = {.before = l->of[t].next, .bytes = l->f->tensors[t].size_bytes};
            if (!collect(l, &r, l->f->tensors[t].maker, depth) || r.n == n_before) break;
            n_before = r.n;
            all[n++] = r;
        }
    }
    qsort(all, n, sizeof *all, most_for_least);
    return n;
}

tide_status tide__repeats_list(const tide__order_facts *f, const uint32_t *sequence, uint32_t peak, const bool *is_able,
                               const double *work, tide__repeat *out, size_t max, size_t *n, tide_error *err) {
    lister l = {.f = f, .sequence = sequence, .peak = peak, .is_able = is_able, .work = work};
    l.of = tide_host_calloc(f->n_tensors + 1, sizeof *l.of);
    tide__repeat *all = tide_host_calloc(f->n_tensors + 1, MAX_CHAIN * sizeof *all);
    tide_status st = TIDE_OK;
    if (l.of != NULL && all != NULL && tide__table_make(&l.read_by, f->reads.list, f->reads.n, f->n_steps, true)) {
        note_reads(&l);
        const size_t n_all = list_all(&l, all);
        *n = n_all < max ? n_all : max;
        for (size_t i = 0; i < *n; i++) out[i] = all[i];
    } else {
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to choose what is computed twice");
    }
    tide__table_deinit(&l.read_by);
    tide_host_free(l.of);
    tide_host_free(all);
    return st;
}
