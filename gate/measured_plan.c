// SPDX-License-Identifier: MIT
//
// A case of a plan. The peak is the first of the steps at which tensors use most of the planned buffers. A run holds
// its buffers as a whole, so bytes that no tensor uses at the peak (holes, slack, room of pools) count as holes.
//
//     buffers  |#a##|##b###|....|#c#|....|     held = a + b + c + holes
#include "gate/measured_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/subject.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "planner/process_need.h"

// ---- the peak ----

/// Bytes whose use begins or ends at a step.
typedef struct change {
    int64_t step;
    bool begins;
    uint64_t bytes;
} change;

/// By step; at the same step, ends come before begins.
static int compare_changes(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return x->begins - y->begins;
}

/// The first of the steps at which most bytes are in use; 0 if none ever are.
static tide_status find_peak(const tide_lifetimes *lt, int64_t *step, tide_error *err) {
    tide_occupied *occupied;
    size_t n, n_changes = 0;
    TIDE_TRY(tide_lifetimes_occupied(lt, &occupied, &n, err));
    change *changes = tide_host_calloc(2 * n + 1, sizeof *changes);
    for (size_t i = 0; changes != NULL && i < n; i++) {
        const uint64_t bytes = occupied[i].hi_bytes - occupied[i].lo_bytes;
        changes[n_changes++] = (change){occupied[i].begin_step, true, bytes};
        changes[n_changes++] = (change){occupied[i].end_step, false, bytes};
    }
    tide_host_free(occupied);
    if (changes == NULL) return TIDE_NO_MEMORY(err, "for a plan's case");
    qsort(changes, n_changes, sizeof *changes, compare_changes);
    uint64_t sum = 0, most = 0;
    *step = 0;
    for (size_t i = 0; i < n_changes; i++) {
        sum = changes[i].begins ? sum + changes[i].bytes : sum - changes[i].bytes;
        const bool is_last = i + 1 == n_changes || changes[i + 1].step != changes[i].step;
        if (!is_last || sum <= most) continue;
        most = sum;
        *step = changes[i].step;
    }
    tide_host_free(changes);
    return TIDE_OK;
}

static const char *step_name(const tide_lifetimes *lt, int64_t step) {
    return step >= 0 && (uint64_t)step < lt->n_step_names ? lt->step_names[step] : "";
}

static tide_status set_peak_step(const tide_lifetimes *lt, int64_t step, tide_gate_case *out, tide_error *err) {
    tide_text text = {0};
    if (lt->n_step_names > 0)
        tide_text_add(&text, step_name(lt, step));
    else
        tide_text_addf(&text, "step %" PRId64, step);
    out->peak_step = text.failed ? NULL : tide__case_utf8(tide_text_str(&text));
    tide_text_deinit(&text);
    return out->peak_step != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for a plan's case");
}

/// Each tensor's part of the peak: counts [lifetimes.n], computed as for all views (subject.h).
static tide_status count_at(const tide_memory_plan *plan, int64_t step, uint64_t *counts, tide_error *err) {
    tide_memory_plan *copy; // a subject takes its plan
    tide_subject *s;
    tide_live_items live;
    TIDE_TRY(tide_memory_plan_copy(plan, &copy, err));
    TIDE_TRY(tide_subject_of_plan(copy, NULL, &s, err));
    const tide_status st = tide_subject_live(s, (tide_moment){.t = step}, &live, err);
    for (size_t i = 0; st == TIDE_OK && i < live.n; i++) {
        const uint64_t id = live.items[i].id;
        if (!plan->lifetimes.items[id].persistent) counts[id] = live.items[i].counts_bytes;
    }
    if (st == TIDE_OK) tide_live_items_deinit(&live);
    tide_subject_destroy(s);
    return st;
}

// ---- tensors and steps ----

static bool fill_tensor(const tide_lifetimes *lt, size_t i, uint64_t at_peak, tide_gate_tensor *t) {
    const tide_lifetime *l = &lt->items[i];
    const bool is_inside = l->alias != TIDE_ALIAS_NONE;
    t->name = tide__case_utf8(l->name);
    t->owner = tide__case_utf8(l->persistent ? "" : step_name(lt, l->begin_step));
    t->inside = tide__case_utf8(is_inside ? lt->items[l->alias_of].name : "");
    t->alias = tide__case_utf8(is_inside ? tide_alias_kind_name(l->alias) : "");
    t->kind = l->kind;
    t->persistent = l->persistent;
    t->bytes = tide_lifetime_aligned_bytes(l);
    t->at_peak_bytes = at_peak;
    return t->name != NULL && t->owner != NULL && t->inside != NULL && t->alias != NULL;
}

static tide_status add_tensors(const tide_memory_plan *plan, tide_gate_case *out, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    int64_t step = 0;
    TIDE_TRY(find_peak(lt, &step, err));
    TIDE_TRY(set_peak_step(lt, step, out, err));
    uint64_t *counts = tide_host_calloc(lt->n + 1, sizeof *counts);
    out->tensors = tide_host_calloc(lt->n + 1, sizeof *out->tensors);
    if (counts == NULL || out->tensors == NULL) {
        tide_host_free(counts);
        return TIDE_NO_MEMORY(err, "for a plan's case");
    }
    tide_status st = count_at(plan, step, counts, err);
    out->held_bytes = out->holes_bytes = plan->bytes;
    for (size_t i = 0; st == TIDE_OK && i < lt->n; i++) {
        out->n_tensors++;
        if (!fill_tensor(lt, i, counts[i], &out->tensors[i])) st = TIDE_NO_MEMORY(err, "for a plan's case");
        out->holes_bytes -= counts[i]; // cannot wrap: a verified plan has room for all tensors
    }
    tide_host_free(counts);
    if (st == TIDE_OK) tide__case_sort_tensors(out);
    return st == TIDE_OK ? tide__case_check(out, err) : st;
}

static tide_status add_steps(const tide_lifetimes *lt, const char *const *step_ops, tide_gate_case *out,
                             tide_error *err) {
    TIDE_TRY(TIDE_NEW(&out->steps, lt->n_step_names + 1, err, "for a plan's case"));
    for (size_t i = 0; i < lt->n_step_names; i++) {
        tide_gate_step *s = &out->steps[out->n_steps++];
        s->name = tide__case_utf8(lt->step_names[i]);
        s->op = tide__case_utf8(step_ops != NULL ? step_ops[i] : NULL);
        if (s->name == NULL || s->op == NULL) return TIDE_NO_MEMORY(err, "for a plan's case");
    }
    return TIDE_OK;
}

// ---- figures ----

static tide_gate_value exact(uint64_t u) { return (tide_gate_value){.known = true, .u = u}; }

static tide_gate_value share(double real) {
    const double bounded = fmax(-TIDE__CASE_MAX_SHARE, fmin(real, TIDE__CASE_MAX_SHARE));
    return (tide_gate_value){.known = true, .real = (double)tide__case_millionths(bounded) / 1e6};
}

static tide_status add_figures(const tide_memory_plan *plan, tide_gate_case *out, tide_error *err) {
    uint64_t total = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const uint64_t bytes = tide_memory_plan_predicted(plan, (tide_memory_kind)k);
        if (bytes == UINT64_MAX || !tide_add_u64(total, bytes, &total))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the tensors of the plan add up to more than 2^64 bytes");
        out->kinds[TIDE_GATE_PREDICTED][k] = exact(bytes);
    }
    out->metrics[TIDE_GATE_TOTAL] = exact(total);
    if (tide_process_is_known(&plan->lifetimes))
        out->metrics[TIDE_GATE_PROCESS] = exact(tide_process_need_of(plan, 1).peak_bytes);
    out->metrics[TIDE_GATE_PLANNED] = exact(plan->bytes);
    out->metrics[TIDE_GATE_LOWER_BOUND] = exact(plan->lower_bound_bytes);
    out->metrics[TIDE_GATE_NAIVE] = exact(tide_memory_plan_original_bytes(plan));
    out->metrics[TIDE_GATE_SAVING] = share(tide_memory_plan_saving(plan));
    if (plan->proved_bytes > 0)
        out->metrics[TIDE_GATE_GAP] = share((double)plan->bytes / (double)plan->proved_bytes - 1);
    else if (plan->bytes == 0)
        out->metrics[TIDE_GATE_GAP] = share(0);
    if (plan->lifetimes.n_step_names > 0) out->metrics[TIDE_GATE_OPERATORS] = exact(plan->lifetimes.n_step_names);
    out->metrics[TIDE_GATE_PLAN_TIME] = exact(plan->time_ns);
    return TIDE_OK;
}

tide_status tide_gate_case_of_plan(const tide_memory_plan *plan, const char *const *step_ops, tide_gate_case *out,
                                   tide_error *err) {
    char align[24];
    snprintf(align, sizeof align, "%" PRIu64, plan->align_bytes);
    TIDE_TRY(add_figures(plan, out, err));
    TIDE_TRY(add_steps(&plan->lifetimes, step_ops, out, err));
    TIDE_TRY(add_tensors(plan, out, err));
    out->model = tide__case_utf8(plan->lifetimes.model);
    if (out->model == NULL) return TIDE_NO_MEMORY(err, "for a plan's case");
    TIDE_TRY(tide_gate_case_set(out, "strategy", plan->strategy, err));
    return tide_gate_case_set(out, "align", align, err);
}
