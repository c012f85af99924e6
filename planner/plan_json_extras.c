// SPDX-License-Identifier: MIT
//
// What stands in a `tidemark.plan` document beside the plans: what the passes gained, who was refused, who is alive at
// the peak and what to change, what each profile point takes. Readers of plans pass over all of it.
#include <inttypes.h>

#include "planner/grid.h"
#include "planner/lifetimes_json.h"
#include "planner/plan_json_internal.h"

static const char *bool_word(bool b) { return b ? "true" : "false"; }

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

void tide__plan_json_add_extras(tide_text *out, const tide_lifetimes *lt, const tide_plan_extras *extras) {
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
