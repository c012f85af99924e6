// SPDX-License-Identifier: MIT
//
// whatif, advice: which single edit would make the plan smaller. See whatif.h.
//
//     who is alive at the peak -> edits -> each bounded anew -> of each kind the lowest bounds are planned -> what came
//     out smaller, the smallest first
//
// How much is tried depends on the size of the table and on no clock: the same question has the same answer.
#include <stdlib.h>
#include <string.h>

#include "analysis/whatif_internal.h"
#include "core/base/host_alloc.h"
#include "planner/passes.h"

/// Tensors of a peak that are looked at; tables beyond LARGE, a plan of which takes long.
enum { MAX_TENSORS = 16, MAX_TENSORS_LARGE = 3, LARGE_TABLE = 50000 };
/// Plans that are made of one kind of edit, and of a kind that goes through the model.
enum { MAX_PLANS = 5, MAX_PLANS_LARGE = 1, MAX_REMAKES = 2 };
/// Steps of search for each plan, when the question sets none.
enum { NODE_LIMIT = 2000 };

typedef struct candidate {
    tide_edit edit;
    uint64_t bound_bytes, bytes;
    uint32_t item; // in the table; TIDE_NO_INDEX: of all
} candidate;

typedef struct adviser {
    const tide_whatif *w;
    const tide_strategy *strategy;
    tide_strategy_options options;
    tide_lifetimes lt;               // with the edits that are already made
    uint64_t base_bytes, base_bound; // of the plan that is to be beaten
    candidate *list;                 // [n]
    size_t n, cap;
    tide_error *err;
} adviser;

// ---- candidates ----

static bool set_name(char *out, size_t out_bytes, const char *name) {
    const size_t n = strlen(name);
    if (n >= out_bytes) return false; // no edit can name it
    memcpy(out, name, n + 1);
    return true;
}

static tide_status add(adviser *a, const tide_edit *edit, uint32_t item) {
    TIDE_TRY(TIDE_GROW(&a->list, &a->cap, a->n + 1, a->err, "for advice"));
    a->list[a->n++] = (candidate){.edit = *edit, .item = item};
    return TIDE_OK;
}

static tide_status add_for_tensor(adviser *a, tide_edit_kind kind, uint32_t item, int64_t step) {
    tide_edit edit = {.kind = kind, .step = step};
    if (!set_name(edit.item, sizeof edit.item, a->lt.items[item].name)) return TIDE_OK;
    return add(a, &edit, item);
}

/// What is read or made at the peak must be there; what only waits could be away.
static tide_status try_tensor(adviser *a, uint32_t i, int64_t peak) {
    const tide_lifetime *item = &a->lt.items[i];
    const bool waits = item->begin_step < peak && item->end_step > peak + 1;
    if (waits && item->alias == TIDE_ALIAS_NONE) TIDE_TRY(add_for_tensor(a, TIDE_EDIT_RECOMPUTE, i, 0));
    if (waits) TIDE_TRY(add_for_tensor(a, TIDE_EDIT_FREE_EARLIER, i, peak));
    // Scratch is what a kernel asks for: it has no narrower type.
    if (item->role == TIDE_ROLE_SCRATCH) return TIDE_OK;
    return add_for_tensor(a, TIDE_EDIT_HALF, i, 0);
}

/// What is made at the peak over what dies there.
static tide_status try_in_place(adviser *a, const tide_peak *p) {
    for (size_t k = 0; k < p->n; k++) {
        const tide_lifetime *made = &a->lt.items[p->entries[k].item];
        if (made->begin_step != p->step || made->role == TIDE_ROLE_SCRATCH) continue;
        for (size_t j = 0; j < p->n && j < MAX_TENSORS * 2; j++) {
            const tide_lifetime *dies = &a->lt.items[p->entries[j].item];
            tide_edit edit = {.kind = TIDE_EDIT_IN_PLACE};
            if (dies->end_step != p->step + 1 || dies->begin_step >= p->step || dies->size_bytes < made->size_bytes ||
                !set_name(edit.item, sizeof edit.item, made->name) ||
                !set_name(edit.other, sizeof edit.other, dies->name))
                continue;
            TIDE_TRY(add(a, &edit, p->entries[k].item));
        }
    }
    return TIDE_OK;
}

static tide_status try_peak(adviser *a, const tide_peak *p) {
    size_t left = a->lt.n > LARGE_TABLE ? MAX_TENSORS_LARGE : MAX_TENSORS;
    for (size_t k = 0; k < p->n && left > 0; k++, left--) TIDE_TRY(try_tensor(a, p->entries[k].item, p->step));
    return try_in_place(a, p);
}

static tide_status try_alignments(adviser *a) {
    static const uint64_t aligns[] = {64, 16};
    uint64_t now = 1;
    for (size_t i = 0; i < a->lt.n; i++) {
        if (!a->lt.items[i].persistent && a->lt.items[i].align_bytes > now) now = a->lt.items[i].align_bytes;
    }
    for (size_t k = 0; k < sizeof aligns / sizeof aligns[0]; k++) {
        const tide_edit edit = {.kind = TIDE_EDIT_ALIGN, .bytes = aligns[k]};
        if (aligns[k] < now) TIDE_TRY(add(a, &edit, TIDE_NO_INDEX));
    }
    return TIDE_OK;
}

/// Another strategy helps only where the plan is above the bound.
static tide_status try_strategies(adviser *a) {
    const tide_strategy *const *list;
    const size_t n = tide_strategies(&list);
    if (a->base_bytes <= a->base_bound || a->lt.n > LARGE_TABLE) return TIDE_OK;
    for (size_t k = 0; k < n; k++) {
        tide_edit edit = {.kind = TIDE_EDIT_STRATEGY};
        if (list[k] == a->strategy || !set_name(edit.text, sizeof edit.text, list[k]->name)) continue;
        TIDE_TRY(add(a, &edit, TIDE_NO_INDEX));
    }
    return TIDE_OK;
}

// ---- through the model ----

/// Whether the table shows that a pass has been at work. Of the order nothing is seen.
static bool shows_pass(const tide_lifetimes *lt, tide_pass pass) {
    static const tide_alias_kind made[TIDE_N_PASSES] = {[TIDE_PASS_VIEWS] = TIDE_ALIAS_VIEW,
                                                        [TIDE_PASS_SLICES] = TIDE_ALIAS_SLICE,
                                                        [TIDE_PASS_IN_PLACE] = TIDE_ALIAS_IN_PLACE,
                                                        [TIDE_PASS_PARTS] = TIDE_ALIAS_PART};
    if (pass == TIDE_PASS_RECOMPUTE) return lt->n_recomputed > 0;
    for (size_t i = 0; made[pass] != TIDE_ALIAS_NONE && i < lt->n; i++) {
        if (lt->items[i].alias == made[pass]) return true;
    }
    return false;
}

static tide_status try_passes(adviser *a) {
    if (a->w->retable == NULL || a->lt.n > LARGE_TABLE) return TIDE_OK;
    for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
        tide_edit edit = {.kind = TIDE_EDIT_PASS};
        if (shows_pass(&a->lt, (tide_pass)pass) ||
            !set_name(edit.text, sizeof edit.text, tide_pass_name((tide_pass)pass)))
            continue;
        TIDE_TRY(add(a, &edit, TIDE_NO_INDEX));
    }
    return TIDE_OK;
}

static tide_status try_batch(adviser *a) {
    uint64_t batch = 0;
    tide_error own = TIDE_ERROR_INIT;
    if (a->w->retable == NULL || a->w->batch == NULL || a->lt.n > LARGE_TABLE) return TIDE_OK;
    const tide_status st = a->w->batch(a->w->ctx, a->w->edits, a->w->n, &batch, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "for advice");
    if (st != TIDE_OK || batch < 2) return TIDE_OK; // it says so when somebody asks for another one
    const tide_edit edit = {.kind = TIDE_EDIT_BATCH, .bytes = batch / 2};
    return add(a, &edit, TIDE_NO_INDEX);
}

/// Whether a plan with it is made by way of the model.
static bool needs_model(const adviser *a, tide_edit_kind kind) {
    return tide__edit_needs_model(kind) || (kind == TIDE_EDIT_RECOMPUTE && a->w->retable != NULL);
}

/// Whether a plan alone can tell what it is worth.
static bool has_no_bound(tide_edit_kind kind) { return kind == TIDE_EDIT_STRATEGY || tide__edit_needs_model(kind); }

// ---- bounds ----

/// The bound with one more edit; those that the table refuses are worth nothing.
static tide_status bound_one(adviser *a, candidate *c) {
    c->bound_bytes = a->base_bound;
    if (has_no_bound(c->edit.kind)) return TIDE_OK;
    tide_lifetimes copy;
    tide_error own = TIDE_ERROR_INIT;
    TIDE_TRY(tide_lifetimes_copy(&a->lt, &copy, a->err));
    tide_status st = tide__edit_apply(&copy, &c->edit, &own);
    if (st == TIDE_OK) st = tide_lower_bound(&copy, &c->bound_bytes, NULL, &own);
    tide_lifetimes_deinit(&copy);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "for advice");
    if (st != TIDE_OK) c->bound_bytes = UINT64_MAX;
    return TIDE_OK;
}

static int kind_order(const candidate *x) {
    static const int orders[TIDE_N_EDITS] = {
        [TIDE_EDIT_IN_PLACE] = 0,  [TIDE_EDIT_STRATEGY] = 1,     [TIDE_EDIT_PASS] = 2, [TIDE_EDIT_ALIGN] = 3,
        [TIDE_EDIT_RECOMPUTE] = 4, [TIDE_EDIT_FREE_EARLIER] = 5, [TIDE_EDIT_HALF] = 6, [TIDE_EDIT_BATCH] = 7};
    return orders[x->edit.kind];
}

/// Smallest first; of equal ones what changes least, then as they were found.
static int compare(const candidate *x, uint64_t x_bytes, const candidate *y, uint64_t y_bytes) {
    if (x_bytes != y_bytes) return x_bytes < y_bytes ? -1 : 1;
    if (kind_order(x) != kind_order(y)) return kind_order(x) - kind_order(y);
    if (x->edit.bytes != y->edit.bytes) return x->edit.bytes > y->edit.bytes ? -1 : 1;
    const int by_name = strcmp(x->edit.item, y->edit.item);
    if (by_name != 0) return by_name;
    const int by_other = strcmp(x->edit.other, y->edit.other);
    return by_other != 0 ? by_other : strcmp(x->edit.text, y->edit.text);
}

static int by_bound(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return compare(x, x->bound_bytes, y, y->bound_bytes);
}

static int by_bytes(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return compare(x, x->bytes, y, y->bytes);
}

/// `k` of the candidates are dealt with; the second of both rounds makes plans.
static tide_status tell(const adviser *a, size_t k, bool makes_plans) {
    const tide_progress *p = a->w->progress;
    const double share = (double)k / (double)(a->n > 0 ? a->n : 1) / 2 + (makes_plans ? 0.5 : 0);
    if (p == NULL || p->tell(p->ctx, share, makes_plans ? "trying changes" : "bounding changes")) return TIDE_OK;
    return TIDE_FAIL(a->err, TIDE_ERR_CANCELLED, "looking for advice was cancelled");
}

static tide_status bound_all(adviser *a) {
    size_t n = 0;
    for (size_t k = 0; k < a->n; k++) {
        TIDE_TRY(tell(a, k, false));
        TIDE_TRY(bound_one(a, &a->list[k]));
        const bool may_help = a->list[k].bound_bytes < a->base_bound || has_no_bound(a->list[k].edit.kind);
        if (may_help) a->list[n++] = a->list[k];
    }
    a->n = n;
    if (n > 1) qsort(a->list, n, sizeof *a->list, by_bound);
    return TIDE_OK;
}

// ---- plans ----

/// As tide_whatif_make makes it with one more edit.
static tide_status plan_one(adviser *a, candidate *c, tide_memory_plan **out, tide_error *own) {
    const tide_strategy *strategy = a->strategy;
    if (c->edit.kind == TIDE_EDIT_STRATEGY) TIDE_TRY(tide_strategy_find(c->edit.text, &strategy, own));
    if (needs_model(a, c->edit.kind)) {
        tide_whatif with = *a->w;
        tide_edit *edits = tide_host_calloc(a->w->n + 1, sizeof *edits);
        if (edits == NULL) return TIDE_ERR_NOMEM;
        if (a->w->n > 0) memcpy(edits, a->w->edits, a->w->n * sizeof *edits);
        edits[with.n++] = c->edit;
        with.edits = edits;
        with.options = a->options;
        const tide_status st = tide_whatif_make(&with, out, own);
        tide_host_free(edits);
        return st;
    }
    tide_lifetimes copy;
    TIDE_TRY(tide_lifetimes_copy(&a->lt, &copy, own));
    tide_status st = tide__edit_apply(&copy, &c->edit, own);
    if (st == TIDE_OK) st = tide_plan_make(&copy, strategy, &a->options, out, own);
    tide_lifetimes_deinit(&copy);
    return st;
}

static size_t most_plans(const adviser *a, tide_edit_kind kind) {
    if (has_no_bound(kind)) return SIZE_MAX;
    if (kind == TIDE_EDIT_RECOMPUTE && a->w->retable != NULL) return MAX_REMAKES;
    return a->lt.n > LARGE_TABLE ? MAX_PLANS_LARGE : MAX_PLANS;
}

/// Leaves those of which a smaller plan was made.
static tide_status plan_all(adviser *a) {
    size_t n = 0, n_made[TIDE_N_EDITS] = {0};
    for (size_t k = 0; k < a->n; k++) {
        candidate c = a->list[k];
        tide_error own = TIDE_ERROR_INIT;
        tide_memory_plan *plan = NULL;
        TIDE_TRY(tell(a, k, true));
        if (n_made[c.edit.kind] >= most_plans(a, c.edit.kind)) continue;
        n_made[c.edit.kind]++;
        const tide_status st = plan_one(a, &c, &plan, &own);
        if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "for advice");
        if (st != TIDE_OK) continue; // a strategy that cannot serve the table
        c.bytes = plan->bytes;
        c.bound_bytes = plan->lower_bound_bytes;
        tide_memory_plan_destroy(plan);
        if (c.bytes < a->base_bytes) a->list[n++] = c;
    }
    a->n = n;
    if (n > 1) qsort(a->list, n, sizeof *a->list, by_bytes);
    return TIDE_OK;
}

/// What to free earlier and still to use later is to be made again: where that is as good, it says enough.
static bool is_said(const adviser *a, size_t k) {
    if (a->list[k].edit.kind != TIDE_EDIT_FREE_EARLIER) return false;
    for (size_t j = 0; j < k; j++) {
        if (a->list[j].edit.kind == TIDE_EDIT_RECOMPUTE && a->list[j].item == a->list[k].item) return true;
    }
    return false;
}

// ---- the whole ----

/// What is to be beaten: the plan as it is, or with the edits that are already made.
static tide_status find_base(adviser *a) {
    TIDE_TRY(tide__whatif_strategy(a->w, &a->strategy, a->err));
    TIDE_TRY(tide__whatif_table(a->w, &a->lt, a->err));
    TIDE_TRY(tide_lower_bound(&a->lt, &a->base_bound, NULL, a->err));
    a->base_bytes = a->w->plan->bytes;
    if (a->w->n == 0) return TIDE_OK;
    tide_memory_plan *plan;
    TIDE_TRY(tide_plan_make(&a->lt, a->strategy, &a->options, &plan, a->err));
    a->base_bytes = plan->bytes;
    tide_memory_plan_destroy(plan);
    return TIDE_OK;
}

static tide_status advise(adviser *a) {
    tide_peaks peaks;
    TIDE_TRY(find_base(a));
    TIDE_TRY(tide_peaks_find(&a->lt, &peaks, a->err));
    tide_status st = TIDE_OK;
    for (size_t b = 0; b < peaks.n && st == TIDE_OK; b++) st = try_peak(a, &peaks.list[b]);
    tide_peaks_deinit(&peaks);
    if (st == TIDE_OK) st = try_alignments(a);
    if (st == TIDE_OK) st = try_strategies(a);
    if (st == TIDE_OK) st = try_passes(a);
    if (st == TIDE_OK) st = try_batch(a);
    if (st == TIDE_OK) st = bound_all(a);
    return st == TIDE_OK ? plan_all(a) : st;
}

tide_status tide_whatif_advise(const tide_whatif *w, tide_edit_advice *out, size_t max, size_t *n, tide_error *err) {
    adviser a = {.w = w, .options = w->options, .err = err};
    if (w->options.node_limit == 0) a.options.node_limit = NODE_LIMIT;
    a.options.time_limit_ns = 0;
    const tide_status st = advise(&a);
    *n = 0;
    for (size_t k = 0; st == TIDE_OK && k < a.n && *n < max; k++) {
        const candidate *c = &a.list[k];
        if (is_said(&a, k)) continue;
        out[(*n)++] = (tide_edit_advice){.edit = c->edit, .bytes = c->bytes, .bound_bytes = c->bound_bytes};
    }
    tide_lifetimes_deinit(&a.lt);
    tide_host_free(a.list);
    return st;
}
