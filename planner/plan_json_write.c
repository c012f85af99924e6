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

static const char *bool_word(bool b) { return b ? "true" : "false"; }

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

static void add_pool(tide_text *out, const tide_memory_plan *plan, size_t p, const pooled *members, size_t n) {
    tide_text_addf(out, "\n      {\"id\": %zu, \"size_bytes\": %" PRIu64 ", \"offset_bytes\": %" PRIu64, p,
                   plan->pool_list[p].size_bytes, plan->pool_list[p].offset_bytes);
    if (plan->n_buffers > 1) tide_text_addf(out, ", \"buffer\": %" PRIu32, plan->pool_list[p].buffer);
    tide_text_add(out, ", \"members\": [");
    for (size_t k = 0; k < n; k++) {
        if (k > 0) tide_text_add(out, ", ");
        tide__doc_add_string(out, plan->lifetimes.items[members[k].i].name);
    }
    tide_text_add(out, "]}");
}

static void add_pools(tide_text *out, const tide_memory_plan *plan) {
    tide_text_add(out, "\"pools\": [");
    pooled *members = tide_host_calloc(plan->lifetimes.n, sizeof *members);
    if (members == NULL) {
        out->failed = true;
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (plan->pools[i] != TIDE_NO_POOL) members[n++] = (pooled){plan->pools[i], i};
    }
    qsort(members, n, sizeof *members, compare_pooled);
    for (size_t p = 0, k = 0; p < plan->n_pools; p++) {
        const size_t first = k;
        while (k < n && (size_t)members[k].pool == p) k++;
        if (p > 0) tide_text_add(out, ",");
        add_pool(out, plan, p, members + first, k - first);
    }
    tide_host_free(members);
    tide_text_add(out, plan->n_pools > 0 ? "\n    ]" : "]");
}

// ---- plans ----

static void add_buffer(tide_text *out, const tide_plan_buffer *b) {
    char device[16];
    tide_text_addf(out, "\n      {\"device\": \"%s\", \"kind\": \"%s\"",
                   tide_device_format(b->device, device, sizeof device), tide_memory_kind_name(b->kind));
    tide_text_addf(out, ", \"bytes\": %" PRIu64 ", \"naive_bytes\": %" PRIu64 ", \"naive_peak_bytes\": %" PRIu64,
                   b->bytes, b->naive_bytes, b->naive_peak_bytes);
    tide_text_addf(out, ", \"lower_bound_bytes\": %" PRIu64 ", \"proved_bytes\": %" PRIu64 ", \"proof\": \"%s\"",
                   b->lower_bound_bytes, b->proved_bytes, tide_proof_name(b->proof));
    tide_text_addf(out, ", \"proven\": %s, \"align_bytes\": %" PRIu64 "}", bool_word(b->bytes == b->proved_bytes),
                   b->align_bytes);
}

static void add_plan(tide_text *out, const tide_memory_plan *plan, bool no_times) {
    char saving[32];
    tide_text_add(out, "\n    {");
    tide__doc_add_key_string(out, "strategy", plan->strategy);
    tide_text_addf(out, ", \"form\": \"%s\"",
                   plan->form == TIDE_PLAN_POOLS ? TIDE_PLAN_FORM_POOLS : TIDE_PLAN_FORM_OFFSETS);
    tide_text_addf(out, ", \"bytes\": %" PRIu64 ", \"naive_bytes\": %" PRIu64 ", \"lower_bound_bytes\": %" PRIu64,
                   plan->bytes, plan->naive_bytes, plan->lower_bound_bytes);
    tide_text_addf(out, ", \"saving\": %s, \"proven\": %s, \"verified\": %s",
                   tide__format_fixed(tide_memory_plan_saving(plan), 6, saving, sizeof saving), bool_word(plan->proven),
                   bool_word(plan->verified));
    if (!no_times) tide_text_addf(out, ", \"time_ns\": %" PRIu64, plan->time_ns);
    tide_text_addf(out, ", \"naive_peak_bytes\": %" PRIu64 ", \"proved_bytes\": %" PRIu64 ", \"proof\": \"%s\"",
                   plan->naive_peak_bytes, plan->proved_bytes, tide_proof_name(tide__plan_proof(plan)));
    tide_text_add(out, ", \"buffers\": [");
    for (size_t b = 0; b < plan->n_buffers; b++) {
        if (b > 0) tide_text_add(out, ",");
        add_buffer(out, &plan->buffers[b]);
    }
    tide_text_addf(out, "%s], \"n_pools\": %zu, ", plan->n_buffers > 0 ? "\n    " : "", plan->n_pools);
    add_pools(out, plan);
    tide_text_add(out, "}");
}

// ---- places ----

static void add_place(tide_text *out, const tide_memory_plan *plan, size_t i) {
    tide_text_addf(out, "{\"pool\": %" PRId32 ", \"offset\": ", plan->pools[i]);
    if (plan->offsets[i] == TIDE_NO_OFFSET) {
        tide_text_add(out, "null}");
    } else {
        tide_text_addf(out, "%" PRIu64 "}", plan->offsets[i]);
    }
}

static void add_tensor(tide_text *out, const tide_memory_plan *const *plans, size_t n, size_t i) {
    const tide_lifetime *item = &plans[0]->lifetimes.items[i];
    tide__lifetimes_json_add_tensor(out, &plans[0]->lifetimes, i,
                                    item->fixed ? item->fixed_offset_bytes : TIDE_NO_OFFSET);
    tide_text_add(out, ", \"places\": [");
    for (size_t k = 0; k < n; k++) {
        if (k > 0) tide_text_add(out, ", ");
        add_place(out, plans[k], i);
    }
    tide_text_add(out, "]}");
}

// ---- what stands beside the plans ----
//
// What the passes gained, which strategies were refused, what is alive at the peak and what to change, what each
// profile point takes. Readers of plans pass over all of it.

static void add_passes(tide_text *out, const tide_pass_report *report) {
    tide_text_add(out, "  \"passes\": [");
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        const tide_pass_gain *g = &report->gains[p];
        tide_text_addf(out, "%s\n    {\"pass\": \"%s\", \"ran\": %s", p > 0 ? "," : "", tide_pass_name((tide_pass)p),
                       bool_word(g->ran));
        tide_text_addf(out, ", \"before_bytes\": %" PRIu64 ", \"after_bytes\": %" PRIu64 ", \"n\": %zu}",
                       g->before_bytes, g->after_bytes, g->n);
    }
    char work[32];
    const double share = report->work > 0 ? report->extra_work / report->work : 0;
    tide_text_addf(out, "\n  ],\n  \"given_lower_bound_bytes\": %" PRIu64 ",\n  \"extra_work\": %s,\n",
                   report->given_bytes, tide__format_fixed(share, 6, work, sizeof work));
    if (!report->gains[TIDE_PASS_RECOMPUTE].ran) return;
    tide_text_addf(out, "  \"allowed_work\": %s,\n  \"recompute_is_cut\": %s,\n",
                   tide__format_fixed(report->allowed_share, 6, work, sizeof work),
                   bool_word(report->recompute_is_cut));
}

static void add_refused(tide_text *out, const tide_plan_refusal *refused, size_t n) {
    tide_text_add(out, "  \"refused\": [");
    for (size_t k = 0; k < n; k++) {
        tide_text_add(out, k > 0 ? ",\n    {" : "\n    {");
        tide__doc_add_key_string(out, "strategy", refused[k].strategy);
        tide_text_add(out, ", ");
        tide__doc_add_key_string(out, "why", refused[k].why);
        tide_text_add(out, "}");
    }
    tide_text_add(out, "\n  ],\n");
}

// ---- peak and advice ----

/// What runs at `step`, or null.
static void add_step(tide_text *out, const char *key, const tide_lifetimes *lt, int64_t step) {
    tide_text_addf(out, ", \"%s\": ", key);
    if (step >= 0 && (uint64_t)step < lt->n_step_names) {
        tide__doc_add_string(out, lt->step_names[step]);
    } else {
        tide_text_add(out, "null");
    }
}

static void add_peak_entry(tide_text *out, const tide_peak *peak, const tide_lifetimes *lt, size_t k) {
    const tide_peak_entry *e = &peak->entries[k];
    const tide_lifetime *item = &lt->items[e->item];
    char share[32];
    tide_text_add(out, "\n    {");
    tide__doc_add_key_string(out, "tensor", item->name);
    tide_text_addf(
        out, ", \"bytes\": %" PRIu64 ", \"share\": %s, \"kind\": \"%s\", \"step\": %" PRId64, e->bytes,
        tide__format_fixed(peak->bytes > 0 ? (double)e->bytes / (double)peak->bytes : 0, 6, share, sizeof share),
        tide_memory_kind_name(peak->kind), peak->step);
    add_step(out, "made_by", lt, item->begin_step);
    add_step(out, "last_read_by", lt, item->end_step - 1);
    tide_text_add(out, ", \"inside\": ");
    if (e->inside)
        tide__doc_add_string(out, lt->items[item->alias_of].name);
    else
        tide_text_add(out, "null");
    tide_text_add(out, "}");
}

static void add_peaks(tide_text *out, const tide_peaks *peaks, const tide_lifetimes *lt) {
    bool first = true;
    tide_text_add(out, "  \"peak\": [");
    for (size_t b = 0; b < peaks->n; b++) {
        for (size_t k = 0; k < peaks->list[b].n; k++) {
            if (!first) tide_text_add(out, ",");
            first = false;
            add_peak_entry(out, &peaks->list[b], lt, k);
        }
    }
    tide_text_add(out, first ? "],\n" : "\n  ],\n");
}

static void add_advice(tide_text *out, const tide_advice *a) {
    tide_text_addf(out, "  \"need_bytes\": %" PRIu64 ",\n  \"budget_bytes\": %" PRIu64 ",\n", a->need_bytes,
                   a->budget_bytes);
    tide_text_addf(out, "  \"persistent_bytes\": %" PRIu64 ",\n  \"advice\": [", a->persistent_bytes);
    for (size_t k = 0; k < a->n; k++) {
        const tide_advice_row *row = &a->rows[k];
        tide_text_addf(out, "%s\n    {\"kind\": \"%s\", ", k > 0 ? "," : "", tide_change_name(row->change.kind));
        tide__doc_add_key_string(out, "change", row->what);
        tide_text_addf(out, ", \"need_bytes\": %" PRIu64 ", \"saves_bytes\": %" PRIu64 ", \"fits\": %s}",
                       row->need_bytes, row->saves_bytes, bool_word(row->fits));
    }
    tide_text_add(out, a->n > 0 ? "\n  ],\n" : "],\n");
}

static void add_points(tide_text *out, const tide_point_need *points, size_t n) {
    tide_text_add(out, "  \"point_needs\": [");
    for (size_t k = 0; k < n; k++) {
        tide_text_add(out, k > 0 ? ",\n    {" : "\n    {");
        tide__doc_add_key_string(out, "point", points[k].name);
        tide_text_addf(out, ", \"lower_bound_bytes\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
                       points[k].lower_bound_bytes, points[k].bytes);
    }
    tide_text_add(out, "\n  ],\n");
}

/// The keys of `extras` that are there, a line or more each, with the comma that ends them.
static void add_extras(tide_text *out, const tide_lifetimes *lt, const tide_plan_extras *extras) {
    if (extras == NULL) return;
    if (extras->fits != NULL) {
        tide_text_add(out, "  ");
        tide__doc_add_key_string(out, "fits", extras->fits);
        tide_text_add(out, ",\n");
    }
    if (extras->kernel_threads > 0) tide_text_addf(out, "  \"kernel_threads\": %" PRIu32 ",\n", extras->kernel_threads);
    if (extras->passes != NULL) add_passes(out, extras->passes);
    if (extras->n_refused > 0) add_refused(out, extras->refused, extras->n_refused);
    if (extras->peaks != NULL) add_peaks(out, extras->peaks, lt);
    if (extras->advice != NULL) add_advice(out, extras->advice);
    if (extras->n_points > 0) add_points(out, extras->points, extras->n_points);
}

// ---- document ----

static void add_document(tide_text *out, const tide_memory_plan *const *plans, size_t n,
                         const tide_plan_extras *extras) {
    const tide_lifetimes *lt = &plans[0]->lifetimes;
    tide_text_addf(out, "{\n  \"schema\": \"%s\",\n  \"version\": %d,\n  ", TIDE_PLAN_SCHEMA, TIDE_PLAN_SCHEMA_VERSION);
    tide__doc_add_key_string(out, "model", lt->model != NULL ? lt->model : "");
    tide_text_addf(out, ",\n  \"n_steps\": %" PRId64 ",\n  \"align_bytes\": %" PRIu64 ",\n", lt->n_steps,
                   plans[0]->align_bytes);
    add_extras(out, lt, extras);
    tide_text_add(out, "  \"plans\": [");
    for (size_t k = 0; k < n; k++) {
        if (k > 0) tide_text_add(out, ",");
        add_plan(out, plans[k], extras != NULL && extras->no_times);
    }
    tide_text_add(out, "\n  ],\n");
    tide__lifetimes_json_add_names(out, lt);
    tide_text_add(out, "  \"tensors\": [");
    for (size_t i = 0; i < lt->n; i++) {
        if (i > 0) tide_text_add(out, ",");
        add_tensor(out, plans, n, i);
    }
    tide_text_add(out, lt->n > 0 ? "\n  ]\n}\n" : "]\n}\n");
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
