// SPDX-License-Identifier: MIT
//
// See diff_words.h.
#include "cli/diff_words.h"

#include <inttypes.h>
#include <string.h>

uint64_t cli_diff_abs(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

const char *cli_diff_change(uint64_t a, uint64_t b, bool percent, char *buf, size_t buf_bytes) {
    char bytes[24], share[32] = "";
    const char *sign = a == b ? "" : b > a ? "+" : "-";
    if (percent && a != 0 && a != b)
        snprintf(share, sizeof share, " (%s%.1f %%)", sign, 100.0 * (double)cli_diff_abs(a, b) / (double)a);
    snprintf(buf, buf_bytes, "%s%s%s", sign, tide_format_bytes(cli_diff_abs(a, b), bytes, sizeof bytes), share);
    return buf;
}

const char *cli_diff_counts(const cli_diff_view *v, char *buf, size_t buf_bytes) {
    const tide_diff *d = v->diff;
    if (v->one_subject)
        snprintf(buf, buf_bytes, "%zu alive at A alone, %zu at B alone, %zu at both", d->n_removed, d->n_added,
                 d->n_unchanged);
    else
        tide_diff_counts(d, buf, buf_bytes);
    return buf;
}

const char *cli_diff_what(const cli_diff_view *v, const tide_diff_row *r, char *buf, size_t buf_bytes) {
    const unsigned what = r->what;
    if (v->one_subject && (what & (TIDE_DIFF_ADDED | TIDE_DIFF_REMOVED)) != 0) {
        snprintf(buf, buf_bytes, "at %s alone", what & TIDE_DIFF_ADDED ? "B" : "A");
        return buf;
    }
    return tide_diff_changes(what, ", ", "unchanged", buf, buf_bytes);
}

const char *cli_diff_step(const cli_diff_side *side) {
    const tide_subject_facts *f = side->facts;
    const char *name = NULL;
    for (size_t i = 0; i < f->n_steps && f->step_begin[i] <= side->at.t; i++) name = f->step_names[i];
    return name != NULL && name[0] != '\0' ? name : NULL;
}

const char *cli_diff_moment(const cli_diff_side *side, char *buf, size_t buf_bytes) {
    const tide_subject_facts *f = side->facts;
    const char *step = cli_diff_step(side);
    char at[64], ns[32];
    if (side->asked == NULL || strcmp(side->asked, "peak") == 0)
        snprintf(at, sizeof at, "at its peak");
    else if (f->is_trace)
        snprintf(at, sizeof at, "%s from the begin", tide_subject_format_since(f, side->at.t, "us", ns, sizeof ns));
    else
        snprintf(at, sizeof at, "at step %" PRId64, side->at.t);
    snprintf(buf, buf_bytes, "%s%s%.80s", at, step != NULL ? ", in " : "", step != NULL ? step : "");
    return buf;
}

const char *cli_diff_key(const tide_diff_step *s, char *buf, size_t buf_bytes) {
    snprintf(buf, buf_bytes, s->is_part ? "(%s)" : "%s", s->key[0] != '\0' ? s->key : "(no operator)");
    return buf;
}

bool cli_diff_row_differs(const tide_diff_row *r) { return r->what != 0 || r->a_at_bytes != r->b_at_bytes; }

size_t cli_diff_n_changed(const tide_diff_step *list, size_t n) { return cli_diff_sum(list, n).n_changed; }

cli_diff_rest cli_diff_sum(const tide_diff_step *list, size_t n) {
    cli_diff_rest rest = {0};
    for (size_t i = 0; i < n; i++) {
        rest.n_changed += list[i].a_bytes != list[i].b_bytes;
        rest.a_bytes += list[i].a_bytes;
        rest.b_bytes += list[i].b_bytes;
    }
    return rest;
}

size_t cli_diff_figures(const cli_diff_view *v, cli_diff_figure out[CLI_DIFF_MAX_FIGURES]) {
    const tide_subject_facts *a = v->a.facts, *b = v->b.facts;
    const tide_diff *d = v->diff;
    const bool plans = a->has_plan && b->has_plan;
    const cli_diff_figure figures[] = {
        {"held_bytes", "held", d->a_bytes, d->b_bytes},
        {"peak_bytes", "peak", d->a_peak_bytes, d->b_peak_bytes},
        {"plan_bytes", "planned buffers", plans ? a->plan_bytes : TIDE_UNKNOWN_BYTES, b->plan_bytes},
        {"naive_bytes", "naive", plans ? a->naive_bytes : TIDE_UNKNOWN_BYTES, b->naive_bytes},
        {"lower_bound_bytes", "lower bound", plans ? a->lower_bound_bytes : TIDE_UNKNOWN_BYTES, b->lower_bound_bytes},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].a == TIDE_UNKNOWN_BYTES || figures[i].b == TIDE_UNKNOWN_BYTES) continue;
        if (v->one_subject && i > 0) break; // one and the same
        out[n++] = figures[i];
    }
    return n;
}
