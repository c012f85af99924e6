// SPDX-License-Identifier: MIT
//
// A result for a terminal or a log. See outputs.h. No line begins with a name, and "##" stands in none: what a runner
// takes for a command cannot come out of a model.
#include <string.h>

#include "gate/out_internal.h"

static bool has_breach(const tide_gate_judged *c) {
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].verdict != TIDE_GATE_PASS_VERDICT) return true;
    return false;
}

/// Whether the figure holds kernels' scratch, which is told apart.
static bool is_with_scratch(const tide_gate_judged *c, const tide_gate_row *row) {
    return c->current != NULL && tide_gate_case_has_machine(c->current) &&
           tide_gate_metric_is_of_machine(row->metric, row->kind);
}

/// What a run holds, beside the figures that are judged: "  with kernels' scratch on this machine: 113.50 KiB (116224)
/// planned instead of 95.25 KiB (97536)"; of another machine's baseline what is here alone.
static void add_full_plan(tide_text *out, const tide_gate_judged *c) {
    for (size_t i = 0; i < c->n_rows; i++) {
        const tide_gate_row *row = &c->rows[i];
        char text[96];
        if (row->metric != TIDE_GATE_FULL_PLANNED || !row->current.known) continue;
        tide_text_addf(out, "  with kernels' scratch on this machine: %s planned",
                       tide_gate_value_text(TIDE_GATE_BYTES, row->current, text, sizeof text));
        if (!row->elsewhere && row->baseline.known && row->baseline.u != row->current.u)
            tide_text_addf(out, " instead of %s",
                           tide_gate_value_text(TIDE_GATE_BYTES, row->baseline, text, sizeof text));
        tide_text_add(out, "\n");
    }
}

/// What changed beside the figures that are over their limits, on one line.
static void add_others(tide_text *out, const tide_gate_judged *c) {
    const char *before = "  also: ";
    for (size_t i = 0; i < c->n_rows; i++) {
        const tide_gate_row *row = &c->rows[i];
        if (row->verdict != TIDE_GATE_PASS_VERDICT || !tide__gate_row_is_told(row)) continue;
        if (!row->baseline.known || !row->current.known || is_with_scratch(c, row)) continue;
        char id[96], change[96];
        tide_text_addf(out, "%s%s %s", before, tide_gate_metric_text(row->metric, row->kind, id, sizeof id),
                       tide_gate_change_text(tide_gate_metric_get(row->metric)->unit, row->baseline, row->current,
                                             change, sizeof change));
        before = ", ";
    }
    if (before[0] == ',') tide_text_add(out, "\n");
}

/// Whether both are over the same limit by the same amount: one growth, seen by several figures.
static bool is_alike(const tide_gate_row *x, const tide_gate_row *y) {
    const tide_gate_unit unit = tide_gate_metric_get(x->metric)->unit;
    if (unit == TIDE_GATE_SHARE || unit != tide_gate_metric_get(y->metric)->unit) return false;
    if (!x->baseline.known || !x->current.known || !y->baseline.known || !y->current.known) return false;
    return x->verdict == y->verdict && x->over_budget == y->over_budget && x->is_gain == y->is_gain &&
           x->current.u - x->baseline.u == y->current.u - y->baseline.u && strcmp(x->limit, y->limit) == 0;
}

static bool was_told(const tide_gate_judged *c, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (is_alike(&c->rows[k], &c->rows[i])) return true;
    return false;
}

/// "  by as much: total_bytes, peak_bytes": the figures further on that are like row `i`.
static void add_alike(tide_text *out, const tide_gate_judged *c, size_t i) {
    const char *before = "  by as much: ";
    for (size_t k = i + 1; k < c->n_rows; k++) {
        char id[96];
        if (!is_alike(&c->rows[i], &c->rows[k])) continue;
        tide_text_addf(out, "%s%s", before, tide_gate_metric_text(c->rows[k].metric, c->rows[k].kind, id, sizeof id));
        before = ", ";
    }
    if (before[0] == ',') tide_text_add(out, "\n");
}

static void add_row(tide_text *out, const tide_gate_row *row) {
    tide_text_add(out, "  ");
    tide__gate_say_row(out, row);
    tide_text_add(out, "\n");
}

/// What is over a limit, figures that grew by as much on one line, and what else changed; or all with `verbose`.
static void add_rows(tide_text *out, const tide_gate_judged *c, bool verbose) {
    const bool breached = has_breach(c);
    for (size_t i = 0; i < c->n_rows; i++) {
        const tide_gate_row *row = &c->rows[i];
        if (verbose || (!breached && tide__gate_row_is_told(row))) {
            add_row(out, row);
        } else if (breached && row->verdict != TIDE_GATE_PASS_VERDICT && !was_told(c, i)) {
            add_row(out, row);
            add_alike(out, c, i);
        }
    }
    if (breached && !verbose) add_others(out, c);
    if (breached && !verbose) add_full_plan(out, c);
}

static void add_case(tide_text *out, const tide_gate_judged *c, size_t max_causes, bool verbose) {
    tide_text_addf(out, "\n%s  ", tide__gate_word(c->verdict));
    tide__gate_clean(out, c->key, TIDE__GATE_NAME_CHARS);
    if (c->state != TIDE_GATE_CASE_CHANGED && c->state != TIDE_GATE_CASE_UNCHANGED && c->state != TIDE_GATE_CASE_ALONE)
        tide_text_addf(out, "  (%s)", tide_gate_state_name(c->state));
    tide_text_add(out, "\n");
    add_rows(out, c, verbose);
    tide__gate_say_why(out, c, max_causes, "  - ", "\n");
}

static void add_head(tide_text *out, const tide_gate_result *r) {
    tide__gate_say_verdict(out, r);
    tide_text_add(out, "\n");
    if (r->baseline_path[0] != '\0') {
        tide_text_add(out, "  baseline: ");
        tide__gate_clean(out, r->baseline_path, TIDE__GATE_NAME_CHARS);
        if (r->last_update != NULL && r->last_update[0] != '\0') {
            tide_text_add(out, ", last changed ");
            tide__gate_clean(out, r->last_update, TIDE__GATE_SENTENCE_CHARS);
        }
        tide_text_add(out, "\n");
    }
    if (r->config_path[0] != '\0') {
        tide_text_add(out, "  rules: ");
        tide__gate_clean(out, r->config_path, TIDE__GATE_NAME_CHARS);
        tide_text_add(out, "\n");
    }
    if (r->n_elsewhere > 0) {
        tide_text_add(out, "  machine: ");
        tide__gate_say_elsewhere(out, r);
        tide_text_add(out, "\n");
    }
    if (r->reason != NULL) {
        tide_text_add(out, "  - ");
        tide__gate_clean(out, r->reason, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, "\n");
    }
}

static void add_foot(tide_text *out, const tide_gate_result *r, size_t n_quiet, size_t n_left) {
    if (n_left > 0)
        tide_text_addf(out, "\n%zu more case%s: tidemark check --json has all\n", n_left, n_left == 1 ? "" : "s");
    if (n_quiet > 0 && n_quiet < r->n)
        tide_text_addf(out, "\nas before or within budget: %zu case%s\n", n_quiet, n_quiet == 1 ? "" : "s");
    tide_text advice = {0};
    tide__gate_say_advice(&advice, r, tide__gate_advise(r), "", "\n");
    if (advice.len > 0) tide_text_add(out, "\n");
    tide__gate_flush(out, &advice, tide_text_add);
}

void tide_gate_print_text(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out) {
    static const tide_gate_output_options defaults = {0};
    if (opt == NULL) opt = &defaults;
    const size_t max_causes = opt->max_causes > 0 ? opt->max_causes : TIDE__GATE_MAX_CAUSES;
    tide_text text = {0};
    add_head(&text, r);
    size_t n_told = 0, n_left = 0, n_quiet = 0;
    for (int rank = 0; rank < TIDE__GATE_N_RANKS; rank++) {
        for (size_t i = 0; i < r->n; i++) {
            if ((int)tide__gate_rank_of(&r->cases[i]) != rank) continue;
            if (rank == TIDE__GATE_QUIET) {
                n_quiet++;
                if (!opt->verbose) continue;
            }
            if (opt->max_rows > 0 && n_told == opt->max_rows) {
                n_left++;
                continue;
            }
            add_case(&text, &r->cases[i], max_causes, opt->verbose);
            n_told++;
        }
    }
    add_foot(&text, r, opt->verbose ? 0 : n_quiet, n_left);
    tide__gate_flush(out, &text, tide__gate_for_log);
}
