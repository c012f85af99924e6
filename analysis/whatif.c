// SPDX-License-Identifier: MIT
//
// whatif, the plan with all edits. See whatif.h.
//
//     plan's table | the model's table made again (passes, extents, batch) -> edits, one after the other -> strategy
//         -> verifier -> plan
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/whatif.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"
#include "planner/passes.h"
#include "planner/without.h"

// ---- recompute with the model: one tensor of a program is made a second time ----
//
//     uses    made . read . . . peak . . . read         the longest wait, or the one across the peak, goes:
//     steps   top    mean1      wide       top.again join

static bool reads(const tide_program *p, size_t step, uint32_t value) {
    const tide_node *node = &p->graph->nodes[p->steps[step].node];
    for (size_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] == value) return true;
    }
    return false;
}

/// Where the tensor waits while the most bytes of its buffer are alive, or else where it waits longest, it is made
/// again before the first step that reads it afterwards. @return that step; -1: it never waits
static int64_t find_reader(const tide_program *p, const tide_lifetime *item, int64_t peak) {
    int64_t used = item->begin_step, best = -1, longest = 1;
    for (int64_t step = used + 1; step < (int64_t)p->n_steps; step++) {
        if (!reads(p, (size_t)step, item->value)) continue;
        if (used < peak && peak < step) return step;
        if (step - used > longest) {
            longest = step - used;
            best = step;
        }
        used = step;
    }
    return best;
}

static tide_status find_peak(const tide_lifetimes *lt, const tide_lifetime *item, int64_t *step, tide_error *err) {
    tide_peaks peaks;
    TIDE_TRY(tide_peaks_find(lt, &peaks, err));
    *step = -1;
    for (size_t b = 0; b < peaks.n; b++) {
        const tide_peak *p = &peaks.list[b];
        if (p->n > 0 && p->kind == item->kind && tide_device_equal(p->device, item->device)) *step = p->step;
    }
    tide_peaks_deinit(&peaks);
    return TIDE_OK;
}

tide_status tide_whatif_repeat(tide_program *program, const tide_pass_options *passes, const char *tensor,
                               tide_lifetimes *lt, tide_error *err) {
    uint32_t i;
    int64_t peak;
    TIDE_TRY(tide__whatif_find(lt, tensor, &i, err));
    const tide_lifetime *item = &lt->items[i];
    if (item->persistent || item->role == TIDE_ROLE_SCRATCH || item->value == TIDE_NO_INDEX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot recompute '%s': it is no intermediate result", tensor);
    TIDE_TRY(find_peak(lt, item, &peak, err));
    const int64_t reader = find_reader(program, item, peak);
    if (reader < 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "cannot recompute '%s': from step %" PRId64 " on every step uses it until it dies", tensor,
                         item->begin_step);
    TIDE_TRY(tide_program_repeat(program, (uint32_t)item->begin_step, (uint32_t)reader, err));
    // The order is what it is now: sorting anew would move the second run.
    tide_pass_options opt = *passes;
    opt.off[TIDE_PASS_ORDER] = true;
    opt.recompute_share = 0;
    tide_lifetimes now = {0};
    TIDE_TRY(tide_passes_run(program, &opt, &now, NULL, err));
    tide_lifetimes_deinit(lt);
    *lt = now;
    return TIDE_OK;
}

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

/// The table of the plan with all edits.
static tide_status make_table(const tide_whatif *w, tide_lifetimes *out, tide_error *err) {
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

const tide_strategy *tide__strategy_of_plan(const tide_memory_plan *plan) {
    const tide_strategy *found;
    // A plan can come from another planner.
    if (plan->strategy == NULL || tide_strategy_find(plan->strategy, &found, NULL) != TIDE_OK)
        return tide_strategy_default();
    return found;
}

/// The strategy that the edits ask for, else the plan's own, else the default.
static tide_status strategy_of(const tide_whatif *w, const tide_strategy **out, tide_error *err) {
    for (size_t k = w->n; k-- > 0;) {
        if (w->edits[k].kind == TIDE_EDIT_STRATEGY) return tide_strategy_find(w->edits[k].text, out, err);
    }
    *out = tide__strategy_of_plan(w->plan);
    return TIDE_OK;
}

/// Tensors that are gone, one after the other: the plan is never larger than with them, nor than with fewer gone.
static tide_status make_without(const tide_whatif *w, tide_memory_plan **out, tide_error *err) {
    const tide_memory_plan *now = w->plan;
    const tide_strategy *strategy = tide__strategy_of_plan(w->plan);
    tide_status st = TIDE_OK;
    *out = NULL;
    for (size_t k = 0; st == TIDE_OK && k < w->n; k++) {
        tide_memory_plan *rest = NULL;
        bool *gone;
        uint32_t of;
        st = TIDE_NEW(&gone, now->lifetimes.n + 1, err, "to take '%s' out", w->edits[k].item);
        if (st != TIDE_OK) break;
        st = tide__whatif_find(&now->lifetimes, w->edits[k].item, &of, err);
        if (st == TIDE_OK) tide__whatif_inside(&now->lifetimes, of, gone);
        if (st == TIDE_OK) st = tide_plan_without(now, gone, strategy, &w->options, &rest, err);
        tide_host_free(gone);
        if (st != TIDE_OK) break;
        tide_memory_plan_destroy(*out);
        *out = rest;
        now = rest;
    }
    if (st == TIDE_OK) return st;
    tide_memory_plan_destroy(*out);
    *out = NULL;
    return st;
}

/// Whether nothing but planned tensors goes.
static bool is_without(const tide_whatif *w) {
    for (size_t k = 0; k < w->n; k++) {
        uint32_t i;
        if (w->edits[k].kind != TIDE_EDIT_GONE) return false;
        if (tide__whatif_find(&w->plan->lifetimes, w->edits[k].item, &i, NULL) == TIDE_OK &&
            w->plan->lifetimes.items[i].persistent)
            return false;
    }
    return w->n > 0;
}

tide_status tide_whatif_make(const tide_whatif *w, tide_memory_plan **out, tide_error *err) {
    const tide_strategy *strategy;
    if (is_without(w)) return make_without(w, out, err);
    tide_lifetimes lt;
    TIDE_TRY(strategy_of(w, &strategy, err));
    TIDE_TRY(make_table(w, &lt, err));
    const tide_status st = tide_plan_make(&lt, strategy, &w->options, out, err);
    tide_lifetimes_deinit(&lt);
    return st;
}

// ---- whether it could run ----

const char *tide_runs_name(tide_runs runs) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_RUNS_MAP(XX)
#undef XX
    };
    return names[runs];
}

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

// ---- advice: which single edit would make the plan smaller ----
//
//     items alive at the peak -> edits -> each bounded anew -> of each kind the lowest bounds are planned -> those that
//     came out smaller, the smallest first
//
// How much is tried depends on the size of the table and on no clock: the same question has the same answer.

/// Tensors of a peak that are looked at; tables beyond LARGE, a plan of which takes long.
enum { MAX_TENSORS = 16, MAX_TENSORS_LARGE = 3, LARGE_TABLE = 10000 };
/// Plans that are made of one kind of edit, and of a kind that goes through the model.
enum { MAX_PLANS = 5, MAX_PLANS_LARGE = 1, MAX_REMAKES = 2 };
/// Steps of search for each plan, when the question sets none.
enum { NODE_LIMIT = 2000 };

typedef struct candidate {
    tide_edit edit;
    uint64_t bound_bytes, bytes;
    uint32_t item; // in the table; TIDE_NO_INDEX: of all
    tide_runs runs;
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
    // The size of scratch is set by the kernel: it has no narrower type.
    if (item->role == TIDE_ROLE_SCRATCH) return TIDE_OK;
    return add_for_tensor(a, TIDE_EDIT_HALF, i, 0);
}

/// What is made at the peak over what dies there.
static tide_status try_over(adviser *a, const tide_peak *p, uint32_t made, uint32_t dies) {
    const tide_lifetime *over = &a->lt.items[dies], *item = &a->lt.items[made];
    tide_edit edit = {.kind = TIDE_EDIT_IN_PLACE};
    if (over->end_step != p->step + 1 || over->begin_step >= p->step || over->size_bytes < item->size_bytes ||
        !set_name(edit.item, sizeof edit.item, item->name) || !set_name(edit.other, sizeof edit.other, over->name))
        return TIDE_OK;
    return add(a, &edit, made);
}

/// The model knows which input the operator may overwrite, if any.
static tide_status ask_for_over(adviser *a, const tide_peak *p, uint32_t made) {
    tide_in_place found = {0};
    tide_error own = TIDE_ERROR_INIT;
    uint32_t over;
    tide_status st = a->w->in_place(a->w->ctx, a->lt.items[made].name, &found, &own);
    tide_text_deinit(&found.why);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "for advice");
    if (st != TIDE_OK || found.other[0] == '\0' || tide__whatif_find(&a->lt, found.other, &over, NULL) != TIDE_OK)
        return TIDE_OK;
    return try_over(a, p, made, over);
}

static tide_status try_in_place(adviser *a, const tide_peak *p) {
    const bool asks = a->w->in_place != NULL && a->lt.n <= LARGE_TABLE;
    for (size_t k = 0; k < p->n; k++) {
        const uint32_t i = p->entries[k].item;
        const tide_lifetime *made = &a->lt.items[i];
        if (made->begin_step != p->step || made->role == TIDE_ROLE_SCRATCH) continue;
        if (asks) TIDE_TRY(ask_for_over(a, p, i));
        for (size_t j = 0; !asks && j < p->n && j < MAX_TENSORS * 2; j++)
            TIDE_TRY(try_over(a, p, i, p->entries[j].item));
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

bool tide__shows_pass(const tide_lifetimes *lt, tide_pass pass) {
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
        if (tide__shows_pass(&a->lt, (tide_pass)pass) ||
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
    if (st != TIDE_OK || batch < 2) return TIDE_OK; // the command reports it when another batch is asked for
    const tide_edit edit = {.kind = TIDE_EDIT_BATCH, .bytes = batch / 2};
    return add(a, &edit, TIDE_NO_INDEX);
}

tide_status tide__half_extents(const tide_whatif *w, tide_edit out[TIDE_MAX_EXTENTS], size_t *n, tide_error *err) {
    tide_open_extent open[TIDE_MAX_EXTENTS];
    size_t n_open = 0;
    tide_error own = TIDE_ERROR_INIT;
    *n = 0;
    if (w->retable == NULL || w->extents == NULL) return TIDE_OK;
    const tide_status st = w->extents(w->ctx, w->edits, w->n, open, TIDE_MAX_EXTENTS, &n_open, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for advice");
    if (st != TIDE_OK) return TIDE_OK; // the command reports it when another extent is asked for
    for (size_t i = 0; i < n_open; i++) {
        if (open[i].value < 2) continue;
        tide_edit *edit = &out[(*n)++];
        *edit = (tide_edit){.kind = TIDE_EDIT_EXTENT};
        (void)snprintf(edit->text, sizeof edit->text, "%.95s=%" PRIu64, open[i].name, open[i].value / 2);
    }
    return TIDE_OK;
}

static tide_status try_extents(adviser *a) {
    tide_edit edits[TIDE_MAX_EXTENTS];
    size_t n = 0;
    if (a->lt.n > LARGE_TABLE) return TIDE_OK;
    TIDE_TRY(tide__half_extents(a->w, edits, &n, a->err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(add(a, &edits[i], TIDE_NO_INDEX));
    return TIDE_OK;
}

/// Whether a plan with it is made by way of the model.
static bool needs_model(const adviser *a, tide_edit_kind kind) {
    return tide__edit_needs_model(kind) || (kind == TIDE_EDIT_RECOMPUTE && a->w->retable != NULL);
}

/// Whether the plan alone shows what the edit saves.
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
        [TIDE_EDIT_IN_PLACE] = 0, [TIDE_EDIT_STRATEGY] = 1,  [TIDE_EDIT_PASS] = 2,
        [TIDE_EDIT_ALIGN] = 3,    [TIDE_EDIT_RECOMPUTE] = 4, [TIDE_EDIT_FREE_EARLIER] = 5,
        [TIDE_EDIT_HALF] = 6,     [TIDE_EDIT_BATCH] = 7,     [TIDE_EDIT_EXTENT] = 8};
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
static tide_status report(const adviser *a, size_t k, bool makes_plans) {
    const double share = (double)k / (double)(a->n > 0 ? a->n : 1) / 2 + (makes_plans ? 0.5 : 0);
    if (tide_progress_goes_on(a->w->progress, share, makes_plans ? "trying changes" : "bounding changes"))
        return TIDE_OK;
    return TIDE_FAIL(a->err, TIDE_ERR_CANCELLED, "looking for advice was cancelled");
}

static tide_status bound_all(adviser *a) {
    size_t n = 0;
    for (size_t k = 0; k < a->n; k++) {
        TIDE_TRY(report(a, k, false));
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

static tide_runs runs_of(const adviser *a, const tide_memory_plan *plan, const tide_edit *edit) {
    if (!tide_edit_keeps_meaning(plan, edit)) return TIDE_RUNS_NO;
    const bool is_asked = a->w->in_place != NULL && a->lt.n <= LARGE_TABLE;
    return edit->kind == TIDE_EDIT_IN_PLACE && !is_asked ? TIDE_RUNS_UNKNOWN : TIDE_RUNS_YES;
}

/// Leaves those of which a smaller plan was made.
static tide_status plan_all(adviser *a) {
    size_t n = 0, n_made[TIDE_N_EDITS] = {0};
    for (size_t k = 0; k < a->n; k++) {
        candidate c = a->list[k];
        tide_error own = TIDE_ERROR_INIT;
        tide_memory_plan *plan = NULL;
        TIDE_TRY(report(a, k, true));
        if (n_made[c.edit.kind] >= most_plans(a, c.edit.kind)) continue;
        n_made[c.edit.kind]++;
        const tide_status st = plan_one(a, &c, &plan, &own);
        if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(a->err, "for advice");
        if (st != TIDE_OK) continue; // a strategy that cannot serve the table
        c.bytes = plan->bytes;
        c.bound_bytes = plan->lower_bound_bytes;
        c.runs = runs_of(a, plan, &c.edit);
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
    TIDE_TRY(strategy_of(a->w, &a->strategy, a->err));
    TIDE_TRY(make_table(a->w, &a->lt, a->err));
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
    if (st == TIDE_OK) st = try_extents(a);
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
        out[(*n)++] =
            (tide_edit_advice){.edit = c->edit, .bytes = c->bytes, .bound_bytes = c->bound_bytes, .runs = c->runs};
    }
    tide_lifetimes_deinit(&a.lt);
    tide_host_free(a.list);
    return st;
}
