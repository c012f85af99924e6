// SPDX-License-Identifier: MIT
//
// whatif, the plan with all edits. See whatif.h.
//
//     plan's table | the model's table made again (passes, extents, batch) -> edits, one after the other -> strategy
//         -> verifier -> plan
#include <string.h>

#include "analysis/whatif_internal.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"

// ---- the table ----

static bool has_kind(const tide_whatif *w, tide_edit_kind kind) {
    for (size_t k = 0; k < w->n; k++) {
        if (w->edits[k].kind == kind) return true;
    }
    return false;
}

/// The first edit that only a model can serve; NULL: none.
static const tide_edit *first_for_model(const tide_whatif *w) {
    for (size_t k = 0; k < w->n; k++) {
        if (tide__edit_needs_model(w->edits[k].kind)) return &w->edits[k];
    }
    return NULL;
}

/// Whether the table computes every tensor twice that is to be recomputed.
static bool recomputes_all(const tide_whatif *w, const tide_lifetimes *lt) {
    for (size_t k = 0; k < w->n; k++) {
        uint32_t i;
        if (w->edits[k].kind != TIDE_EDIT_RECOMPUTE) continue;
        if (tide__whatif_find(lt, w->edits[k].item, &i, NULL) != TIDE_OK || !tide__is_recomputed(lt, i)) return false;
    }
    return true;
}

static tide_status retable_without_recompute(const tide_whatif *w, tide_lifetimes *out, tide_error *err) {
    tide_edit *rest;
    TIDE_TRY(TIDE_NEW(&rest, w->n, err, "for %zu edits", w->n));
    size_t n = 0;
    for (size_t k = 0; k < w->n; k++) {
        if (w->edits[k].kind != TIDE_EDIT_RECOMPUTE) rest[n++] = w->edits[k];
    }
    const tide_status st = w->retable(w->ctx, rest, n, out, err);
    tide_host_free(rest);
    return st;
}

/// Tensors that are to be recomputed: the model tries. What computes others instead is not what was asked for.
static tide_status retable_with_recompute(const tide_whatif *w, tide_lifetimes *out, bool *done, tide_error *err) {
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = w->retable(w->ctx, w->edits, w->n, out, &own);
    *done = st == TIDE_OK && recomputes_all(w, out);
    if (st == TIDE_OK && !*done) tide_lifetimes_deinit(out);
    return st == TIDE_ERR_NOMEM ? TIDE_FAIL(err, st, "%s", own.msg) : TIDE_OK;
}

/// The table before the edits that it can serve itself.
static tide_status base_table(const tide_whatif *w, tide_lifetimes *out, tide_error *err) {
    const tide_edit *needs = first_for_model(w);
    bool done = false;
    if (needs != NULL && w->retable == NULL) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID,
                                         "cannot change %s: that needs the model, and there is "
                                         "only a plan",
                                         tide_edit_name(needs->kind));
        tide_error_hint(err, "open the model itself");
        return st;
    }
    if (w->retable != NULL && has_kind(w, TIDE_EDIT_RECOMPUTE)) TIDE_TRY(retable_with_recompute(w, out, &done, err));
    if (done) return TIDE_OK;
    if (needs == NULL) return tide_lifetimes_copy(&w->plan->lifetimes, out, err);
    if (has_kind(w, TIDE_EDIT_RECOMPUTE)) return retable_without_recompute(w, out, err);
    return w->retable(w->ctx, w->edits, w->n, out, err);
}

tide_status tide__whatif_table(const tide_whatif *w, tide_lifetimes *out, tide_error *err) {
    tide_lifetimes lt = {0};
    TIDE_TRY(base_table(w, &lt, err));
    for (size_t k = 0; k < w->n; k++) {
        const tide_status st = tide__edit_apply(&lt, &w->edits[k], err);
        if (st == TIDE_OK) continue;
        tide_lifetimes_deinit(&lt);
        return st;
    }
    *out = lt;
    return TIDE_OK;
}

// ---- the plan ----

tide_status tide__whatif_strategy(const tide_whatif *w, const tide_strategy **out, tide_error *err) {
    for (size_t k = w->n; k-- > 0;) {
        if (w->edits[k].kind == TIDE_EDIT_STRATEGY) return tide_strategy_find(w->edits[k].text, out, err);
    }
    // A plan can come from a planner of somebody else's.
    if (w->plan->strategy == NULL || tide_strategy_find(w->plan->strategy, out, NULL) != TIDE_OK)
        *out = tide_strategy_default();
    return TIDE_OK;
}

tide_status tide_whatif_make(const tide_whatif *w, tide_memory_plan **out, tide_error *err) {
    const tide_strategy *strategy;
    tide_lifetimes lt;
    TIDE_TRY(tide__whatif_strategy(w, &strategy, err));
    TIDE_TRY(tide__whatif_table(w, &lt, err));
    const tide_status st = tide_plan_make(&lt, strategy, &w->options, out, err);
    tide_lifetimes_deinit(&lt);
    return st;
}

// ---- whether it could run ----

/// Elements of the widest type: kernels read them where they are aligned to themselves.
enum { WIDEST_ELEMENT = 8 };

static bool align_keeps_meaning(const tide_memory_plan *plan, const tide_edit *edit) {
    uint32_t i;
    if (edit->bytes < WIDEST_ELEMENT) return false;
    if (edit->item[0] == '\0' || tide__whatif_find(&plan->lifetimes, edit->item, &i, NULL) != TIDE_OK) return true;
    return plan->lifetimes.items[i].role != TIDE_ROLE_SCRATCH || edit->bytes >= TIDE_WORKSPACE_ALIGN;
}

bool tide_edit_keeps_meaning(const tide_memory_plan *plan, const tide_edit *edit) {
    uint32_t i;
    switch (edit->kind) {
    case TIDE_EDIT_FREE_EARLIER: // a lifetime ends with its last use: any earlier is too early
    case TIDE_EDIT_HALF:
    case TIDE_EDIT_GONE:
        return false;
    case TIDE_EDIT_RECOMPUTE:
        return tide__whatif_find(&plan->lifetimes, edit->item, &i, NULL) == TIDE_OK &&
               tide__is_recomputed(&plan->lifetimes, i);
    case TIDE_EDIT_ALIGN:
        return align_keeps_meaning(plan, edit);
    default:
        return true;
    }
}
