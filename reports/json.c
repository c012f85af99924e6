// SPDX-License-Identifier: MIT
//
// JSON: "tidemark.report": facts, curve, pictures' regions and every table of each input, keys in a fixed order, sizes
// as integers of bytes, null for what is not known (docs/schemas/report.json). The page carries the same with its items
// in columns, words once.
#include <string.h>

#include "analysis/answer_tables.h"
#include "reports/json_items.h"
#include "reports/render.h"

// ---- facts ----

static void peak_part(tide_json_out *j, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    tide_json_open_flat(j, "peak", '{');
    tide_json_u64(j, "bytes", f->peak_bytes);
    tide_json_u64(j, "t", tide_report_time(f, f->peak.t));
    if (f->is_trace)
        tide_json_u64(j, "event", f->peak.event);
    else
        tide_json_null(j, "event");
    tide_json_text_or_null(j, "step", tide_report_step_at(f, f->peak.t));
    tide_json_u64(j, "held_bytes", s->why.held_bytes);
    tide_json_u64(j, "explained_t", tide_report_time(f, s->why.at.t));
    tide_json_close(j, '}');
}

static void plan_part(tide_json_out *j, const tide_subject_facts *f) {
    double share;
    if (!f->has_plan) {
        tide_json_null(j, "plan");
        return;
    }
    tide_json_open_flat(j, "plan", '{');
    tide_json_u64(j, "bytes", f->plan_bytes);
    tide_json_u64(j, "naive_bytes", f->naive_bytes);
    tide_json_u64(j, "lower_bound_bytes", f->lower_bound_bytes);
    tide_json_u64(j, "proved_bytes", f->proved_bytes);
    tide_json_bool(j, "proven", f->proven);
    if (tide_report_gap(f, &share))
        tide_json_real(j, "gap", share);
    else
        tide_json_null(j, "gap");
    if (tide_report_saving(f, &share))
        tide_json_real(j, "saving", share);
    else
        tide_json_null(j, "saving");
    tide_json_close(j, '}');
}

static void levels_part(tide_json_out *j, const tide_subject_facts *f) {
    if (!f->levels.known) {
        tide_json_null(j, "levels");
        return;
    }
    tide_json_open_flat(j, "levels", '{');
    tide_json_u64(j, "below_bytes", f->levels.below);
    tide_json_u64(j, "plan_bytes", f->levels.plan);
    tide_json_u64(j, "bound_bytes", f->levels.bound);
    tide_json_text(j, "below", f->levels.words);
    tide_json_close(j, '}');
}

static void fit_part(tide_json_out *j, const tide_report *r, const tide_report_side *s) {
    if (r->opt.capacity_bytes == 0) {
        tide_json_null(j, "fit");
        return;
    }
    tide_json_open_flat(j, "fit", '{');
    tide_json_u64(j, "capacity_bytes", r->opt.capacity_bytes);
    tide_json_u64(j, "needs_bytes", s->needs_bytes);
    tide_json_bool(j, "fits", s->needs_bytes <= r->opt.capacity_bytes);
    tide_json_close(j, '}');
}

static void facts_part(tide_json_out *j, const tide_report *r, const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    tide_json_text(j, "title", tide_report_title(s));
    tide_json_text_or_null(j, "source", tide_report_source(f));
    tide_json_text_or_null(j, "model", f->model);
    tide_json_text_or_null(j, "mode", f->mode);
    tide_json_text_or_null(j, "strategy", f->strategy);
    tide_json_text(j, "axis", f->axis == TIDE_AXIS_STEPS ? "steps" : "ns");
    tide_json_i64(j, "origin", f->origin);
    tide_json_i64(j, "begin", f->begin);
    tide_json_i64(j, "end", f->end);
    if (f->is_trace)
        tide_json_i64(j, "run", f->run_id);
    else
        tide_json_null(j, "run");
    tide_json_u64(j, "n_items", s->items->n);
    peak_part(j, s);
    plan_part(j, f);
    levels_part(j, f);
    fit_part(j, r, s);
    tide_json_bytes(j, "needs_bytes", s->needs_bytes);
    if (f->is_trace)
        tide_json_u64(j, "lost_events", f->n_lost);
    else
        tide_json_null(j, "lost_events");
    tide_json_text_or_null(j, "trouble", f->trouble);
}

// ---- curve and regions ----

/// Columns of equal width; only those that differ from the one before: `at` says which.
static void columns(tide_json_out *j, const char *key, const uint64_t *min, const uint64_t *max, size_t n) {
    const uint64_t *const arrays[] = {min, max};
    static const char *const keys[] = {"min", "max"};
#define CHANGES(i) ((i) == 0 || max[i] != max[(i)-1] || (min != NULL && min[i] != min[(i)-1]))
    tide_json_open(j, key, '{');
    tide_json_u64(j, "columns", n);
    tide_json_open_flat(j, "at", '[');
    for (size_t i = 0; i < n; i++)
        if (CHANGES(i)) tide_json_u64(j, NULL, i);
    tide_json_close(j, ']');
    for (int k = 0; k < 2; k++) {
        if (arrays[k] == NULL) continue;
        tide_json_open_flat(j, keys[k], '[');
        for (size_t i = 0; i < n; i++)
            if (CHANGES(i)) tide_json_u64(j, NULL, arrays[k][i]);
        tide_json_close(j, ']');
    }
    tide_json_close(j, '}');
#undef CHANGES
}

/// Of steps only those at which it changes.
static void points(tide_json_out *j, const char *key, const uint64_t *values, size_t n) {
    tide_json_open(j, key, '{');
    tide_json_open_flat(j, "t", '[');
    for (size_t i = 0; i < n; i++)
        if (i == 0 || values[i] != values[i - 1]) tide_json_u64(j, NULL, i);
    tide_json_close(j, ']');
    tide_json_open_flat(j, "bytes", '[');
    for (size_t i = 0; i < n; i++)
        if (i == 0 || values[i] != values[i - 1]) tide_json_u64(j, NULL, values[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

static void curve_part(tide_json_out *j, const tide_report_side *s) {
    if (s->steps_are_columns) {
        points(j, "curve", s->max, s->n_columns);
    } else {
        columns(j, "curve", s->min, s->max, s->n_columns);
    }
    if (s->predicted == NULL)
        tide_json_null(j, "predicted");
    else
        columns(j, "predicted", NULL, s->predicted, s->n_columns);
}

static void regions_part(tide_json_out *j, const tide_report_side *s) {
    tide_json_open(j, "regions", '[');
    for (size_t i = 0; i < s->space.n; i++) {
        const tide_region *g = &s->space.regions[i];
        tide_json_open_flat(j, NULL, '{');
        tide_json_text(j, "label", g->label);
        tide_json_text(j, "kind", tide_memory_kind_name(g->kind));
        tide_json_text(j, "device", g->device);
        tide_json_u64(j, "base", g->base);
        tide_json_u64(j, "bytes", g->bytes);
        if (g->bound_bytes > 0)
            tide_json_u64(j, "bound_bytes", g->bound_bytes);
        else
            tide_json_null(j, "bound_bytes");
        tide_json_bool(j, "guessed", g->is_guessed);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

// ---- tables ----

/// Those of one input ("a", "b"), or of both ("").
static void tables(tide_json_out *j, const tide_report *r, const char *of) {
    tide_report_table all[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, all);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].of, of) == 0) tide_table_json(&all[i].table, true, j);
}

// ---- documents ----

static void side(tide_json_out *j, const tide_report *r, const tide_report_side *s, const char *of, bool columns) {
    tide_json_open(j, NULL, '{');
    facts_part(j, r, s);
    curve_part(j, s);
    regions_part(j, s);
    if (columns)
        tide_report_json_items(j, s);
    else
        tables(j, r, of);
    tide_json_close(j, '}');
}

static void comparison(tide_json_out *j, const tide_report *r, bool with_tables) {
    const tide_diff *d = &r->diff;
    if (!r->has_b) {
        tide_json_null(j, "comparison");
        return;
    }
    tide_json_open(j, "comparison", '{');
    tide_json_u64(j, "a_held_bytes", d->a_bytes);
    tide_json_u64(j, "b_held_bytes", d->b_bytes);
    tide_json_i64(j, "change_bytes", (int64_t)(d->b_bytes - d->a_bytes));
    tide_diff_json(d, j);
    if (with_tables) tables(j, r, "");
    tide_json_close(j, '}');
}

static void document(tide_json_out *j, const tide_report *r, const char *schema, bool columns) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", schema);
    tide_json_i64(j, "version", 2);
    tide_json_open(j, "sides", '[');
    side(j, r, &r->a, "a", columns);
    if (r->has_b) side(j, r, &r->b, "b", columns);
    tide_json_close(j, ']');
    comparison(j, r, !columns);
    tide_json_close(j, '}');
}

void tide_report_json(const tide_report *r, tide_text *out) {
    tide_json_out j = {.out = out, .indent = true};
    document(&j, r, "tidemark.report", false);
    tide_text_add(out, "\n");
}

void tide_report_json_data(const tide_report *r, tide_text *out) {
    tide_json_out j = {.out = out};
    document(&j, r, "tidemark.report.data", true);
}
