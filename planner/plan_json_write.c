// SPDX-License-Identifier: MIT
//
// Writer of the `tidemark.plan` document: one plan, buffer, pool and tensor a line, so that `diff` shows what changed.
// Keys keep their order; numbers are integers but for shares (docs/plan-format.md).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/grid.h"
#include "planner/lifetimes_json.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/planner.h"
#include "planner/process_need.h"

// ---- pools ----

typedef struct pooled {
    int32_t pool;
    size_t i;
} pooled;

/// Members in table order.
static int compare_pooled(const void *a, const void *b) {
    const pooled *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static void add_pool(tide_json_out *j, const tide_memory_plan *plan, size_t p, const pooled *members, size_t n) {
    tide_json_open_flat(j, NULL, '{');
    tide_json_u64(j, "id", p);
    tide_json_u64(j, "size_bytes", plan->pool_list[p].size_bytes);
    tide_json_u64(j, "offset_bytes", plan->pool_list[p].offset_bytes);
    if (plan->n_buffers > 1) tide_json_u64(j, "buffer", plan->pool_list[p].buffer);
    tide_json_open(j, "members", '[');
    for (size_t k = 0; k < n; k++) tide_json_text(j, NULL, plan->lifetimes.items[members[k].i].name);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

static void add_pools(tide_json_out *j, const tide_memory_plan *plan) {
    pooled *members = tide_host_calloc(plan->lifetimes.n, sizeof *members);
    if (members == NULL) {
        j->out->failed = true;
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (plan->pools[i] != TIDE_NO_POOL) members[n++] = (pooled){plan->pools[i], i};
    }
    qsort(members, n, sizeof *members, compare_pooled);
    tide_json_open_lines(j, "pools", '[');
    for (size_t p = 0, k = 0; p < plan->n_pools; p++) {
        const size_t first = k;
        while (k < n && (size_t)members[k].pool == p) k++;
        add_pool(j, plan, p, members + first, k - first);
    }
    tide_json_close(j, ']');
    tide_host_free(members);
}

// ---- plans ----

/// A share, with six digits behind the point in every locale.
static void add_share(tide_json_out *j, const char *key, double share) {
    char digits[32];
    tide_json_raw(j, key, tide__format_fixed(share, 6, digits, sizeof digits));
}

static void add_buffer(tide_json_out *j, const tide_plan_buffer *b) {
    char device[16];
    tide_json_open_flat(j, NULL, '{');
    tide_json_text(j, "device", tide_device_format(b->device, device, sizeof device));
    tide_json_text(j, "kind", tide_memory_kind_name(b->kind));
    tide_json_u64(j, "bytes", b->bytes);
    tide_json_u64(j, "naive_bytes", b->naive_bytes);
    tide_json_u64(j, "naive_peak_bytes", b->naive_peak_bytes);
    tide_json_u64(j, "lower_bound_bytes", b->lower_bound_bytes);
    tide_json_u64(j, "proved_bytes", b->proved_bytes);
    tide_json_text(j, "proof", tide_proof_name(b->proof));
    tide_json_bool(j, "proven", b->bytes == b->proved_bytes);
    tide_json_u64(j, "align_bytes", b->align_bytes);
    tide_json_close(j, '}');
}

static void add_plan(tide_json_out *j, const tide_memory_plan *plan, bool no_times) {
    tide_json_open_flat(j, NULL, '{');
    tide_json_text(j, "strategy", plan->strategy);
    tide_json_text(j, "form", plan->form == TIDE_PLAN_POOLS ? TIDE_PLAN_FORM_POOLS : TIDE_PLAN_FORM_OFFSETS);
    tide_json_u64(j, "bytes", plan->bytes);
    tide_json_u64(j, "naive_bytes", plan->naive_bytes);
    tide_json_u64(j, "lower_bound_bytes", plan->lower_bound_bytes);
    add_share(j, "saving", tide_memory_plan_saving(plan));
    tide_json_bool(j, "proven", plan->proven);
    tide_json_bool(j, "verified", plan->verified);
    if (!no_times) tide_json_u64(j, "time_ns", plan->time_ns);
    tide_json_u64(j, "naive_peak_bytes", plan->naive_peak_bytes);
    tide_json_u64(j, "proved_bytes", plan->proved_bytes);
    tide_json_text(j, "proof", tide_proof_name(tide__plan_proof(plan)));
    tide_json_open_lines(j, "buffers", '[');
    for (size_t b = 0; b < plan->n_buffers; b++) add_buffer(j, &plan->buffers[b]);
    tide_json_close(j, ']');
    tide_json_u64(j, "n_pools", plan->n_pools);
    add_pools(j, plan);
    tide_json_close(j, '}');
}

// ---- places ----

static void add_place(tide_json_out *j, const tide_memory_plan *plan, size_t i) {
    tide_json_open(j, NULL, '{');
    tide_json_i64(j, "pool", plan->pools[i]);
    tide_json_u64_if(j, "offset", plan->offsets[i] != TIDE_NO_OFFSET, plan->offsets[i]);
    tide_json_close(j, '}');
}

static void add_tensor(tide_json_out *j, const tide_memory_plan *const *plans, size_t n, size_t i) {
    const tide_lifetime *item = &plans[0]->lifetimes.items[i];
    tide_json_open_flat(j, NULL, '{');
    tide__lifetimes_json_add_tensor(j, &plans[0]->lifetimes, i,
                                    item->fixed ? item->fixed_offset_bytes : TIDE_NO_OFFSET);
    tide_json_open(j, "places", '[');
    for (size_t k = 0; k < n; k++) add_place(j, plans[k], i);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

// ---- what stands beside the plans ----
//
// What the passes gained, which strategies were refused, what is alive at the peak and what to change, what each
// profile point takes. Readers of plans pass over all of it.

static void add_quantised(tide_json_out *j, const tide_quantise_stats *q) {
    if (q->n_nodes == 0) return;
    tide_json_open_flat(j, "quantised", '{');
    tide_json_u64(j, "operators", q->n_operators);
    tide_json_u64(j, "left", q->n_left);
    tide_json_u64(j, "before_bytes", q->bytes_before);
    tide_json_u64(j, "after_bytes", q->bytes_after);
    tide_json_u64(j, "weights_saved_bytes", q->weights_saved);
    tide_json_close(j, '}');
}

static void add_passes(tide_json_out *j, const tide_pass_report *report) {
    add_quantised(j, &report->quantised);
    tide_json_open(j, "passes", '[');
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        const tide_pass_gain *g = &report->gains[p];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "pass", tide_pass_name((tide_pass)p));
        tide_json_bool(j, "ran", g->ran);
        tide_json_u64(j, "before_bytes", g->before_bytes);
        tide_json_u64(j, "after_bytes", g->after_bytes);
        tide_json_u64(j, "n", g->n);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_u64(j, "given_lower_bound_bytes", report->given_bytes);
    add_share(j, "extra_work", report->work > 0 ? report->extra_work / report->work : 0);
    if (!report->gains[TIDE_PASS_RECOMPUTE].ran) return;
    add_share(j, "allowed_work", report->allowed_share);
    tide_json_bool(j, "recompute_is_cut", report->recompute_is_cut);
}

static void add_refused(tide_json_out *j, const tide_plan_refusal *refused, size_t n) {
    tide_json_open(j, "refused", '[');
    for (size_t k = 0; k < n; k++) {
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "strategy", refused[k].strategy);
        tide_json_text(j, "why", refused[k].why);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

// ---- peak and advice ----

/// What runs at `step`, or null.
static void add_step(tide_json_out *j, const char *key, const tide_lifetimes *lt, int64_t step) {
    const bool has_name = step >= 0 && (uint64_t)step < lt->n_step_names;
    tide_json_text(j, key, has_name ? lt->step_names[step] : NULL);
}

static void add_peak_entry(tide_json_out *j, const tide_peak *peak, const tide_lifetimes *lt, size_t k) {
    const tide_peak_entry *e = &peak->entries[k];
    const tide_lifetime *item = &lt->items[e->item];
    tide_json_open_flat(j, NULL, '{');
    tide_json_text(j, "tensor", item->name);
    tide_json_u64(j, "bytes", e->bytes);
    add_share(j, "share", peak->bytes > 0 ? (double)e->bytes / (double)peak->bytes : 0);
    tide_json_text(j, "kind", tide_memory_kind_name(peak->kind));
    tide_json_i64(j, "step", peak->step);
    add_step(j, "made_by", lt, item->begin_step);
    add_step(j, "last_read_by", lt, item->end_step - 1);
    tide_json_text(j, "inside", e->inside ? lt->items[item->alias_of].name : NULL);
    tide_json_close(j, '}');
}

static void add_peaks(tide_json_out *j, const tide_peaks *peaks, const tide_lifetimes *lt) {
    tide_json_open(j, "peak", '[');
    for (size_t b = 0; b < peaks->n; b++) {
        for (size_t k = 0; k < peaks->list[b].n; k++) add_peak_entry(j, &peaks->list[b], lt, k);
    }
    tide_json_close(j, ']');
}

static void add_advice(tide_json_out *j, const tide_advice *a) {
    tide_json_sum(j, "need_bytes", a->need_bytes);
    tide_json_u64(j, "budget_bytes", a->budget_bytes);
    tide_json_sum(j, "persistent_bytes", a->persistent_bytes);
    tide_json_sum(j, "process_bytes", a->process_bytes);
    tide_json_text(j, "largest_part", a->largest);
    tide_json_sum(j, "largest_part_bytes", a->largest_bytes);
    tide_json_open(j, "advice", '[');
    for (size_t k = 0; k < a->n; k++) {
        const tide_advice_row *row = &a->rows[k];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "kind", tide_change_name(row->change.kind));
        tide_json_text(j, "change", row->what);
        tide_json_sum(j, "need_bytes", row->need_bytes);
        tide_json_sum(j, "saves_bytes", row->saves_bytes);
        tide_json_bool(j, "fits", row->fits);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void add_points(tide_json_out *j, const tide_point_need *points, size_t n) {
    tide_json_open(j, "point_needs", '[');
    for (size_t k = 0; k < n; k++) {
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "point", points[k].name);
        tide_json_u64(j, "lower_bound_bytes", points[k].lower_bound_bytes);
        tide_json_u64(j, "bytes", points[k].bytes);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

/// The keys of `extras` that are there.
static void add_extras(tide_json_out *j, const tide_lifetimes *lt, const tide_plan_extras *extras) {
    if (extras == NULL) return;
    if (extras->fits != NULL) tide_json_text(j, "fits", extras->fits);
    if (extras->kernel_threads > 0) tide_json_u64(j, "kernel_threads", extras->kernel_threads);
    if (extras->passes != NULL) add_passes(j, extras->passes);
    if (extras->n_refused > 0) add_refused(j, extras->refused, extras->n_refused);
    if (extras->peaks != NULL) add_peaks(j, extras->peaks, lt);
    if (extras->advice != NULL) add_advice(j, extras->advice);
    if (extras->n_points > 0) add_points(j, extras->points, extras->n_points);
}

// ---- document ----

/// What the process takes that runs the smallest of the plans.
static void add_process(tide_json_out *j, const tide_memory_plan *const *plans, size_t n) {
    const tide_memory_plan *least = plans[0];
    for (size_t k = 1; k < n; k++)
        if (plans[k]->bytes < least->bytes) least = plans[k];
    if (!tide_process_is_known(&least->lifetimes)) return;
    const tide_process_need need = tide_process_need_of(least, 1);
    tide_process_need_json(j, &need);
}

static void add_document(tide_text *out, const tide_memory_plan *const *plans, size_t n,
                         const tide_plan_extras *extras) {
    const tide_lifetimes *lt = &plans[0]->lifetimes;
    tide_json_out doc = {.out = out, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", TIDE_PLAN_SCHEMA);
    tide_json_i64(j, "version", TIDE_PLAN_SCHEMA_VERSION);
    tide_json_text(j, "model", lt->model != NULL ? lt->model : "");
    tide_json_i64(j, "n_steps", lt->n_steps);
    tide_json_u64(j, "align_bytes", plans[0]->align_bytes);
    add_process(j, plans, n);
    add_extras(j, lt, extras);
    tide_json_open(j, "plans", '[');
    for (size_t k = 0; k < n; k++) add_plan(j, plans[k], extras != NULL && extras->no_times);
    tide_json_close(j, ']');
    tide__lifetimes_json_add_names(j, lt);
    tide_json_open(j, "tensors", '[');
    for (size_t i = 0; i < lt->n; i++) add_tensor(j, plans, n, i);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_text_add(out, "\n");
}

static tide_status check_same_tensors(const tide_memory_plan *const *plans, size_t n, tide_error *err) {
    if (n == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a plan document needs at least one plan");
    const tide_lifetimes *first = &plans[0]->lifetimes;
    for (size_t k = 1; k < n; k++) {
        const tide_lifetimes *lt = &plans[k]->lifetimes;
        bool same = lt->n == first->n;
        for (size_t i = 0; same && i < lt->n; i++) same = strcmp(lt->items[i].name, first->items[i].name) == 0;
        if (!same)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "plans '%s' and '%s' are of different tensors", plans[0]->strategy,
                             plans[k]->strategy);
    }
    return TIDE_OK;
}

tide_status tide_plan_to_json_with(const tide_memory_plan *const *plans, size_t n, const tide_plan_extras *extras,
                                   tide_text *out, tide_error *err) {
    TIDE_TRY(check_same_tensors(plans, n, err));
    tide_text document = {0};
    add_document(&document, plans, n, extras);
    if (out->data == NULL && !document.failed && !out->failed) { // a million tensors are some hundred MB of it
        *out = document;
        return TIDE_OK;
    }
    if (!document.failed) tide_text_add_n(out, document.data, document.len);
    const bool failed = document.failed || out->failed;
    tide_text_deinit(&document);
    return failed ? TIDE_NO_MEMORY(err, "for a plan document") : TIDE_OK;
}

tide_status tide_plan_to_json(const tide_memory_plan *const *plans, size_t n, const char *fits, tide_text *out,
                              tide_error *err) {
    const tide_plan_extras extras = {.fits = fits};
    return tide_plan_to_json_with(plans, n, &extras, out, err);
}
