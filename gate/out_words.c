// SPDX-License-Identifier: MIT
//
// The words that all outputs share: verdicts, figures, causes. See out_internal.h; what can be done about a verdict is
// said by out_advice.c.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate/judge.h"
#include "gate/out_internal.h"

const char *tide__gate_word(tide_gate_verdict v) {
    switch (v) {
    case TIDE_GATE_FAIL_VERDICT:
        return "FAIL";
    case TIDE_GATE_NOT_COMPARABLE_VERDICT:
        return "NOT COMPARABLE";
    case TIDE_GATE_WARN_VERDICT:
        return "WARN";
    default:
        return "pass";
    }
}

tide__gate_rank tide__gate_rank_of(const tide_gate_judged *c) {
    switch (c->verdict) {
    case TIDE_GATE_FAIL_VERDICT:
        return TIDE__GATE_TOLD_FAIL;
    case TIDE_GATE_NOT_COMPARABLE_VERDICT:
        return TIDE__GATE_TOLD_NOT_COMPARABLE;
    case TIDE_GATE_WARN_VERDICT:
        return TIDE__GATE_TOLD_WARN;
    default:
        return c->state == TIDE_GATE_CASE_UNCHANGED || c->state == TIDE_GATE_CASE_ALONE ? TIDE__GATE_QUIET
                                                                                        : TIDE__GATE_TOLD_PASS;
    }
}

/// ", 3 warned" when there are any.
static void add_count(tide_text *out, const char *before, size_t n, const char *what) {
    if (n > 0) tide_text_addf(out, "%s%zu %s", before, n, what);
}

void tide__gate_say_verdict(tide_text *out, const tide_gate_result *r) {
    tide_text_addf(out, "%s: ", tide__gate_word(r->verdict));
    if (r->n == 0) {
        tide_text_add(out, "nothing was compared");
        return;
    }
    if (r->n_fail + r->n_warn + r->n_not_comparable == 0) {
        tide_text_addf(out, r->n == 1 ? "the one case passes" : "all %zu cases pass", r->n);
    } else {
        const char *before = "";
        const struct {
            size_t n;
            const char *what;
        } counts[] = {{r->n_fail, "failed"}, {r->n_not_comparable, "cannot be compared"}, {r->n_warn, "warned"}};
        if (r->n == 1)
            tide_text_add(out, "the one case ");
        else
            tide_text_addf(out, "of %zu cases ", r->n);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            if (r->n == 1 && counts[i].n == 1) tide_text_add(out, counts[i].what);
            if (r->n > 1) add_count(out, before, counts[i].n, counts[i].what);
            if (counts[i].n > 0) before = ", ";
        }
        add_count(out, ", ", r->n_pass, r->n_pass == 1 ? "passes" : "pass");
    }
    add_count(out, "; not measured: ", r->n_unmeasured, r->n_unmeasured == 1 ? "case" : "cases");
    add_count(out, "; added: ", r->n_added, r->n_added == 1 ? "case" : "cases");
    add_count(out, "; removed: ", r->n_removed, r->n_removed == 1 ? "case" : "cases");
}

void tide__gate_say_elsewhere(tide_text *out, const tide_gate_result *r) {
    if (r->n_elsewhere == 0) return;
    tide_text_addf(out, "%zu case%s measured on another machine than the baseline's (", r->n_elsewhere,
                   r->n_elsewhere == 1 ? " was" : "s were");
    tide__gate_clean(out, r->machine != NULL ? r->machine : "", TIDE__GATE_SENTENCE_CHARS);
    tide_text_add(out, "): figures that hold kernels' scratch are not judged");
}

/// Whether there is a change to tell of, or a side that knows less than the other.
static bool differs(const tide_gate_row *row) {
    if (row->baseline.known != row->current.known) return true;
    return tide__judge_differs(row->metric, row->baseline, row->current);
}

bool tide__gate_row_is_told(const tide_gate_row *row) {
    if (row->verdict != TIDE_GATE_PASS_VERDICT) return true;
    if (row->elsewhere) return false; // the machine is what differs
    return tide_gate_metric_get(row->metric)->unit != TIDE_GATE_NS && differs(row);
}

void tide__gate_say_figures(tide_text *out, const tide_gate_row *row) {
    const tide_gate_unit unit = tide_gate_metric_get(row->metric)->unit;
    char a[96], b[96], change[96];
    tide_gate_value_text(unit, row->baseline, a, sizeof a);
    tide_gate_value_text(unit, row->current, b, sizeof b);
    if (row->baseline.known && row->current.known && differs(row)) {
        tide_text_addf(out, "%s -> %s, %s", a, b,
                       tide_gate_change_text(unit, row->baseline, row->current, change, sizeof change));
    } else if (row->baseline.known && !row->current.known) {
        tide_text_addf(out, "%s -> not known", a);
    } else {
        tide_text_add(out, b);
    }
}

const char *tide__gate_breach(const tide_gate_row *row) {
    if (row->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT) return "nothing to compare with";
    if (row->over_budget)
        return tide_gate_metric_get(row->metric)->better == TIDE_GATE_LESS ? "over its budget" : "below its budget";
    return row->is_gain ? "better than the baseline" : "worse than the baseline";
}

void tide__gate_say_row(tide_text *out, const tide_gate_row *row) {
    char id[96];
    tide_text_addf(out, "%s: ", tide_gate_metric_text(row->metric, row->kind, id, sizeof id));
    tide__gate_say_figures(out, row);
    if (row->elsewhere) tide_text_add(out, "; not judged: another machine");
    if (row->verdict == TIDE_GATE_PASS_VERDICT) return;
    tide_text_addf(out, "; %s", tide__gate_breach(row));
    if (row->limit[0] == '\0') return;
    tide_text_add(out, "; limit: ");
    tide__gate_clean(out, row->limit, TIDE__GATE_SENTENCE_CHARS);
}

// ---- why ----

/// "+1.50 KiB", "-12 B".
static void add_signed_bytes(tide_text *out, uint64_t a, uint64_t b) {
    char buf[24];
    tide_text_addf(out, "%c%s", b < a ? '-' : '+', tide_format_bytes(b < a ? a - b : b - a, buf, sizeof buf));
}

/// Nothing where fewer than `least` parts differ. @return whether anything was said
static bool say_waterfall(tide_text *out, const tide_gate_part *parts, size_t n, const char *by, size_t least,
                          size_t max) {
    uint64_t a = 0, b = 0, rest_a = 0, rest_b = 0;
    size_t n_changed = 0;
    for (size_t i = 0; i < n; i++) {
        a += parts[i].a_bytes;
        b += parts[i].b_bytes;
        n_changed += parts[i].a_bytes != parts[i].b_bytes;
    }
    if (n_changed < least) return false;
    tide_text_add(out, "peak ");
    add_signed_bytes(out, a, b);
    tide_text_addf(out, " by %s:", by);
    size_t n_told = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].a_bytes == parts[i].b_bytes) continue;
        if (n_told == max) {
            rest_a += parts[i].a_bytes;
            rest_b += parts[i].b_bytes;
            continue;
        }
        tide_text_add(out, n_told++ > 0 ? ", " : " ");
        tide__gate_clean(out, parts[i].key, TIDE__GATE_NAME_CHARS);
        tide_text_add(out, " ");
        add_signed_bytes(out, parts[i].a_bytes, parts[i].b_bytes);
    }
    if (n_changed > n_told) {
        tide_text_addf(out, ", %zu more ", n_changed - n_told);
        add_signed_bytes(out, rest_a, rest_b);
    }
    return true;
}

static void say_parts(tide_text *out, const tide_gate_part *parts, size_t n, const char *by, size_t least, size_t max,
                      const char *head, const char *tail) {
    tide_text line = {0};
    if (say_waterfall(&line, parts, n, by, least, max)) {
        tide_text_add(out, head);
        tide_text_add(out, tide_text_str(&line));
        tide_text_add(out, tail);
    }
    if (line.failed) out->failed = true;
    tide_text_deinit(&line);
}

void tide__gate_say_why(tide_text *out, const tide_gate_judged *c, size_t max_causes, const char *head,
                        const char *tail) {
    if (c->reason != NULL && c->reason[0] != '\0') {
        tide_text_add(out, head);
        tide__gate_clean(out, c->reason, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, tail);
    }
    const size_t n = c->n_causes < max_causes ? c->n_causes : max_causes;
    for (size_t i = 0; i < n; i++) {
        tide_text_add(out, head);
        tide__gate_clean(out, c->causes[i].text, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, tail);
    }
    if (c->n_causes > n)
        tide_text_addf(out, "%s%zu more cause%s: tidemark check --json has all%s", head, c->n_causes - n,
                       c->n_causes - n == 1 ? "" : "s", tail);
    say_parts(out, c->by_operator, c->n_by_operator, "operator", 1, max_causes, head, tail);
    // Mostly it is one kind, which says no more than the line above.
    say_parts(out, c->by_kind, c->n_by_kind, "kind", 2, max_causes, head, tail);
}

// ---- findings ----

/// Whether the case as a whole is a finding: when its verdict is none of its rows'.
static bool whole_is_finding(const tide_gate_judged *c) {
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].verdict == c->verdict) return false;
    return c->verdict != TIDE_GATE_PASS_VERDICT;
}

static void findings_of_case(const tide_gate_judged *c, bool errors,
                             void (*each)(void *ctx, const tide__gate_finding *f), void *ctx) {
    const bool is_error = c->verdict == TIDE_GATE_FAIL_VERDICT || c->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT;
    if (is_error == errors && whole_is_finding(c)) each(ctx, &(tide__gate_finding){c, NULL, errors});
    for (size_t i = 0; i < c->n_rows; i++) {
        const tide_gate_row *row = &c->rows[i];
        const bool is_bad = row->verdict == TIDE_GATE_FAIL_VERDICT || row->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT;
        if (errors ? is_bad : row->verdict == TIDE_GATE_WARN_VERDICT) each(ctx, &(tide__gate_finding){c, row, errors});
    }
}

void tide__gate_each_finding(const tide_gate_result *r, void (*each)(void *ctx, const tide__gate_finding *f),
                             void *ctx) {
    if (r->verdict == TIDE_GATE_NOT_COMPARABLE_VERDICT && r->reason != NULL)
        each(ctx, &(tide__gate_finding){NULL, NULL, true});
    for (int errors = 1; errors >= 0; errors--)
        for (size_t i = 0; i < r->n; i++) findings_of_case(&r->cases[i], errors != 0, each, ctx);
}

void tide__gate_say_title(tide_text *out, const tide__gate_finding *f) {
    if (f->judged == NULL) {
        tide_text_add(out, "baseline: not comparable");
        return;
    }
    char id[96];
    tide__gate_clean(out, f->judged->key, TIDE__GATE_NAME_CHARS);
    tide_text_addf(out, ": %s",
                   f->row != NULL ? tide_gate_metric_text(f->row->metric, f->row->kind, id, sizeof id)
                                  : tide_gate_state_name(f->judged->state));
}

void tide__gate_say_finding(tide_text *out, const tide_gate_result *r, const tide__gate_finding *f, const char *tail) {
    if (f->judged == NULL) {
        tide__gate_clean(out, r->reason, TIDE__GATE_SENTENCE_CHARS);
        if (r->reason[0] != '\0') tide_text_add(out, tail);
    } else {
        if (f->row != NULL) {
            tide__gate_say_row(out, f->row);
            tide_text_add(out, tail);
        } else if (f->judged->reason == NULL || f->judged->reason[0] == '\0') {
            tide_text_addf(out, "%s%s", tide_gate_state_name(f->judged->state), tail);
        }
        tide__gate_say_why(out, f->judged, TIDE__GATE_MAX_CAUSES, "- ", tail);
    }
    tide__gate_say_advice(out, r, tide__gate_advise_finding(r, f), "", tail);
}
