// SPDX-License-Identifier: MIT
//
// A result as a page: baseline (A) against current (B) of every case that failed, warned or changed, on one screen:
// what is held at both peaks, tensor by tensor and on one scale, why, the figures, the tensors of both sides; and what
// a baseline does not know. It loads nothing; its only script sorts tables. See outputs.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/html_text.h"
#include "analysis/table.h"
#include "core/base/host_alloc.h"
#include "gate/out_internal.h"

enum { MAX_PARTS = 12, MAX_TENSORS = 300, CELL_CHARS = 90 };

static void add_clean(tide_text *out, const char *text, size_t max_chars) {
    tide_text plain = {0};
    tide__gate_clean(&plain, text, max_chars);
    tide__gate_flush(out, &plain, tide__gate_for_xml);
}

/// A side that was measured; NULL: nothing is known of it.
static const tide_gate_case *measured(const tide_gate_case *c) { return c != NULL && c->error == NULL ? c : NULL; }

/// The data of every table.
typedef struct source {
    const tide_gate_judged *judged;
    bool *failed; // no memory for a cell
} source;

// ---- figures ----

static void set_text(tide_cell *v, const char *text) {
    tide_text clean = {0};
    tide__gate_clean(&clean, text, CELL_CHARS);
    snprintf(v->buf, sizeof v->buf, "%s", tide_text_str(&clean));
    if (clean.failed) *((const source *)v->table->data)->failed = true;
    tide_text_deinit(&clean);
    v->known = v->buf[0] != '\0';
    v->text = v->buf;
}

static void figure_name(const void *row, tide_cell *v) {
    const tide_gate_row *r = row;
    v->known = true;
    v->text = tide_gate_metric_text(r->metric, r->kind, v->buf, sizeof v->buf);
}
static void say_value(const tide_gate_row *r, tide_gate_value value, tide_cell *v) {
    v->known = value.known;
    v->text = tide_gate_value_text(tide_gate_metric_get(r->metric)->unit, value, v->buf, sizeof v->buf);
}
static void figure_a(const void *row, tide_cell *v) { say_value(row, ((const tide_gate_row *)row)->baseline, v); }
static void figure_b(const void *row, tide_cell *v) { say_value(row, ((const tide_gate_row *)row)->current, v); }
static void figure_change(const void *row, tide_cell *v) {
    const tide_gate_row *r = row;
    v->known = r->baseline.known && r->current.known;
    if (v->known)
        v->text = tide_gate_change_text(tide_gate_metric_get(r->metric)->unit, r->baseline, r->current, v->buf,
                                        sizeof v->buf);
}
static void figure_verdict(const void *row, tide_cell *v) {
    const tide_gate_row *r = row;
    tide_cell_text(v, r->elsewhere ? "not judged: another machine" : tide__gate_word(r->verdict));
}
static void figure_limit(const void *row, tide_cell *v) { set_text(v, ((const tide_gate_row *)row)->limit); }

static const tide_column figure_columns[] = {
    {NULL, "Figure", TIDE_UNIT_TEXT, .get = figure_name},
    {NULL, "Baseline (A)", TIDE_UNIT_TEXT, .get = figure_a, .is_right = true},
    {NULL, "Current (B)", TIDE_UNIT_TEXT, .get = figure_b, .is_right = true},
    {NULL, "Change", TIDE_UNIT_TEXT, .get = figure_change, .is_right = true},
    {NULL, "Verdict", TIDE_UNIT_TEXT, .get = figure_verdict},
    {NULL, "Limit", TIDE_UNIT_TEXT, .get = figure_limit},
};

/// Times are told elsewhere: they differ each time, and a page of the same figures is the same bytes.
static bool is_shown(const tide_gate_row *r) { return tide_gate_metric_get(r->metric)->unit != TIDE_GATE_NS; }

static const void *figure_row(const tide_table *t, size_t i, void *room) {
    const tide_gate_judged *c = ((const source *)t->data)->judged;
    (void)room;
    for (size_t k = 0; k < c->n_rows; k++)
        if (is_shown(&c->rows[k]) && i-- == 0) return &c->rows[k];
    return NULL;
}

static tide_table figures_of(const source *s) {
    const tide_gate_judged *c = s->judged;
    tide_table t = {TIDE_COLUMNS(figure_columns), .row = figure_row, .data = s};
    for (size_t k = 0; k < c->n_rows; k++) t.n_rows += is_shown(&c->rows[k]);
    return t;
}

// ---- parts of the change ----

static void part_key(const void *row, tide_cell *v) { set_text(v, ((const tide_gate_part *)row)->key); }
static void part_change(const void *row, tide_cell *v) {
    const tide_gate_part *p = row;
    tide_cell_change(v, p->a_bytes, p->b_bytes);
}
static const tide_column operator_columns[] = {
    {NULL, "Operator", TIDE_UNIT_TEXT, .get = part_key},
    {NULL, "Baseline (A)", TIDE_UNIT_BYTES, TIDE_AT(tide_gate_part, a_bytes)},
    {NULL, "Current (B)", TIDE_UNIT_BYTES, TIDE_AT(tide_gate_part, b_bytes)},
    {NULL, "Change", TIDE_UNIT_CHANGE, .get = part_change},
};
static const tide_column kind_columns[] = {
    {NULL, "Kind", TIDE_UNIT_TEXT, .get = part_key},
    {NULL, "Baseline (A)", TIDE_UNIT_BYTES, TIDE_AT(tide_gate_part, a_bytes)},
    {NULL, "Current (B)", TIDE_UNIT_BYTES, TIDE_AT(tide_gate_part, b_bytes)},
    {NULL, "Change", TIDE_UNIT_CHANGE, .get = part_change},
};

// ---- tensors ----

/// A tensor of either side; TIDE_UNKNOWN_BYTES: that side has it not.
typedef struct tensor {
    const char *name, *owner;
    tide_memory_kind kind;
    uint64_t a_bytes, b_bytes, a_peak, b_peak;
} tensor;

typedef struct pair {
    tensor *items; // [n] largest change of the peak first
    size_t n;
    uint64_t a_held, b_held, a_holes, b_holes;
} pair;

static uint64_t known(uint64_t bytes) { return bytes == TIDE_UNKNOWN_BYTES ? 0 : bytes; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static int by_change(const void *x, const void *y) {
    const tensor *a = x, *b = y;
    const uint64_t change_a = difference(known(a->a_peak), known(a->b_peak));
    const uint64_t change_b = difference(known(b->a_peak), known(b->b_peak));
    if (change_a != change_b) return change_a < change_b ? 1 : -1;
    const uint64_t peak_a = larger(known(a->a_peak), known(a->b_peak));
    const uint64_t peak_b = larger(known(b->a_peak), known(b->b_peak));
    if (peak_a != peak_b) return peak_a < peak_b ? 1 : -1;
    const uint64_t size_a = larger(known(a->a_bytes), known(a->b_bytes));
    const uint64_t size_b = larger(known(b->a_bytes), known(b->b_bytes));
    if (size_a != size_b) return size_a < size_b ? 1 : -1;
    const int names = strcmp(a->name, b->name);
    return names != 0 ? names : strcmp(a->owner, b->owner);
}

static int by_peak(const void *x, const void *y) {
    const tensor *a = x, *b = y;
    const uint64_t peak_a = larger(known(a->a_peak), known(a->b_peak));
    const uint64_t peak_b = larger(known(b->a_peak), known(b->b_peak));
    if (peak_a != peak_b) return peak_a < peak_b ? 1 : -1;
    return by_change(x, y);
}

/// Both lists are by name, then owner.
static bool make_pair(const tide_gate_judged *c, pair *out) {
    const tide_gate_case *of_a = measured(c->baseline), *of_b = measured(c->current);
    const size_t n_a = of_a != NULL ? of_a->n_tensors : 0, n_b = of_b != NULL ? of_b->n_tensors : 0;
    *out = (pair){.items = tide_host_calloc(n_a + n_b + 1, sizeof *out->items)};
    if (out->items == NULL) return false;
    for (size_t a = 0, b = 0; a < n_a || b < n_b;) {
        const tide_gate_tensor *x = a < n_a ? &of_a->tensors[a] : NULL;
        const tide_gate_tensor *y = b < n_b ? &of_b->tensors[b] : NULL;
        int order = x == NULL ? 1 : y == NULL ? -1 : strcmp(x->name, y->name);
        if (order == 0) order = strcmp(x->owner, y->owner);
        const tide_gate_tensor *either = order <= 0 ? x : y;
        out->items[out->n++] = (tensor){either->name,
                                        either->owner,
                                        either->kind,
                                        order <= 0 ? x->bytes : TIDE_UNKNOWN_BYTES,
                                        order >= 0 ? y->bytes : TIDE_UNKNOWN_BYTES,
                                        order <= 0 ? x->at_peak_bytes : TIDE_UNKNOWN_BYTES,
                                        order >= 0 ? y->at_peak_bytes : TIDE_UNKNOWN_BYTES};
        a += order <= 0;
        b += order >= 0;
    }
    if (of_a != NULL) out->a_held = of_a->held_bytes, out->a_holes = of_a->holes_bytes;
    if (of_b != NULL) out->b_held = of_b->held_bytes, out->b_holes = of_b->holes_bytes;
    return true;
}

static void tensor_name(const void *row, tide_cell *v) { set_text(v, ((const tensor *)row)->name); }
static void tensor_owner(const void *row, tide_cell *v) { set_text(v, ((const tensor *)row)->owner); }
static void tensor_change(const void *row, tide_cell *v) {
    const tensor *t = row;
    const tide_gate_judged *c = ((const source *)v->table->data)->judged;
    v->known = measured(c->baseline) != NULL && measured(c->current) != NULL;
    v->i = (int64_t)(known(t->b_peak) - known(t->a_peak));
}
static const tide_column tensor_columns[] = {
    {NULL, "Tensor", TIDE_UNIT_TEXT, .get = tensor_name},
    {NULL, "Operator", TIDE_UNIT_TEXT, .get = tensor_owner},
    {NULL, "Kind", TIDE_UNIT_KIND, TIDE_AT(tensor, kind)},
    {NULL, "Size (A)", TIDE_UNIT_BYTES, TIDE_AT(tensor, a_bytes)},
    {NULL, "Size (B)", TIDE_UNIT_BYTES, TIDE_AT(tensor, b_bytes)},
    {NULL, "At the peak (A)", TIDE_UNIT_BYTES, TIDE_AT(tensor, a_peak)},
    {NULL, "At the peak (B)", TIDE_UNIT_BYTES, TIDE_AT(tensor, b_peak)},
    {NULL, "Change", TIDE_UNIT_CHANGE, .get = tensor_change},
};

/// A table under its heading; `id` is unique in the page.
static void add_table(tide_text *out, const char *title, const char *id, size_t n, const tide_table *t, size_t max) {
    static const tide_html_style style = {.exact_from = 1024, .max_chars = 1000};
    if (t->n_rows == 0) return;
    tide_text_addf(out,
                   "<h3 id=\"%s%zu\">%s</h3>\n<div class=\"scroll\" role=\"region\" aria-labelledby=\"%s%zu\" "
                   "tabindex=\"0\">\n",
                   id, n, title, id, n);
    tide_table_html(t, max, &style, out);
    tide_text_add(out, "</div>\n");
    if (t->n_rows > max)
        tide_text_addf(out, "<p class=\"mute\">%zu more rows: tidemark check --json has all.</p>\n", t->n_rows - max);
}

// ---- the two peaks ----

static void add_rect(tide_text *out, uint64_t bytes, uint64_t whole, double *x, size_t number, const char *name) {
    const double width = whole > 0 ? 100.0 * (double)bytes / (double)whole : 0.0;
    char size[24];
    if (bytes == 0) return;
    tide_text_addf(out, "<g><rect class=\"%s\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"34\"/>",
                   number > 0 ? "k0" : "rest", *x, width);
    if (number > 0 && width >= 2.5)
        tide_text_addf(out, "<text x=\"%.2f%%\" y=\"22\">%zu</text>", *x + width / 2.0, number);
    tide_text_add(out, "<title>");
    add_clean(out, name, CELL_CHARS);
    tide_text_addf(out, " %s</title></g>\n", tide_format_bytes(bytes, size, sizeof size));
    *x += width;
}

/// One side: the same tensors in the same order on both, so that the eye finds what changed.
static void add_bar(tide_text *out, const pair *p, bool is_b, const tide_gate_case *of) {
    const uint64_t whole = larger(p->a_held, p->b_held), held = is_b ? p->b_held : p->a_held;
    const uint64_t holes = is_b ? p->b_holes : p->a_holes;
    char size[24];
    double x = 0.0;
    uint64_t rest = held - (holes <= held ? holes : held);
    tide_text_addf(out, "<p><b>%s</b> ", is_b ? "Current (B)" : "Baseline (A)");
    if (of == NULL) {
        tide_text_add(out, "is not known.</p>\n");
        return;
    }
    tide_text_addf(out, "%s held at the peak", tide_format_bytes(held, size, sizeof size));
    if (of->peak_step[0] != '\0') {
        tide_text_add(out, ", ");
        add_clean(out, of->peak_step, CELL_CHARS);
    }
    tide_text_add(out, "</p>\n<svg class=\"bar\" width=\"100%\" height=\"34\" aria-hidden=\"true\">\n");
    for (size_t i = 0; i < p->n && i < MAX_PARTS; i++) {
        const uint64_t bytes = known(is_b ? p->items[i].b_peak : p->items[i].a_peak);
        add_rect(out, bytes, whole, &x, i + 1, p->items[i].name);
        rest -= bytes <= rest ? bytes : rest;
    }
    add_rect(out, rest, whole, &x, 0, "other tensors");
    add_rect(out, holes, whole, &x, 0, "holes");
    tide_text_add(out, "</svg>\n");
}

static void add_peaks(tide_text *out, const tide_gate_judged *c, pair *p) {
    char a[24], b[24];
    if (larger(p->a_held, p->b_held) == 0) return;
    qsort(p->items, p->n, sizeof *p->items, by_peak);
    add_bar(out, p, false, measured(c->baseline));
    add_bar(out, p, true, measured(c->current));
    tide_text_add(out, "<ol class=\"parts\">\n");
    for (size_t i = 0; i < p->n && i < MAX_PARTS; i++) {
        const tensor *t = &p->items[i];
        if (larger(known(t->a_peak), known(t->b_peak)) == 0) break;
        tide_text_add(out, "<li><bdi>");
        add_clean(out, t->name, CELL_CHARS);
        tide_text_addf(out, "</bdi> A %s, <b>B %s</b></li>\n",
                       measured(c->baseline) != NULL ? tide_format_bytes(known(t->a_peak), a, sizeof a) : "not known",
                       measured(c->current) != NULL ? tide_format_bytes(known(t->b_peak), b, sizeof b) : "not known");
    }
    tide_text_add(out, "</ol>\n");
}

// ---- one case ----

static void add_causes(tide_text *out, const tide_gate_judged *c, size_t n) {
    if (c->reason == NULL && c->n_causes == 0) return;
    tide_text_addf(out, "<h3 id=\"why%zu\">Why</h3>\n<ul>\n", n);
    if (c->reason != NULL) {
        tide_text_add(out, "<li>");
        add_clean(out, c->reason, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, "</li>\n");
    }
    for (size_t i = 0; i < c->n_causes; i++) {
        tide_text_add(out, "<li>");
        add_clean(out, c->causes[i].text, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, "</li>\n");
    }
    tide_text_add(out, "</ul>\n");
}

/// What stands nowhere, and where to look instead.
static void add_unknown(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c) {
    tide_text command = {0};
    tide_text_add(out, "<p class=\"mute\">");
    if (measured(c->baseline) == NULL)
        tide_text_add(out, "There is no baseline of this case: nothing is known of A. ");
    else if (!r->is_final)
        tide_text_add(out, "A baseline holds figures, steps and tensors, and no plan: when the tensors of A live and "
                           "where they lie is not known. ");
    if (measured(c->current) == NULL) tide_text_add(out, "It was not measured: nothing is known of B. ");
    if (measured(c->current) != NULL && c->path != NULL) {
        tide_text_add(out, "Over time: <code>");
        tide_text_add(&command, "tidemark report ");
        if (r->is_final && r->baseline_path[0] != '\0') {
            tide_gate_add_word(&command, r->baseline_path);
            tide_text_add(&command, " ");
        }
        tide_gate_add_word(&command, c->path);
        tide_text_add(&command, " -o page.html");
        add_clean(out, tide_text_str(&command), TIDE__GATE_SENTENCE_CHARS);
        tide_text_addf(out, "</code> shows %s.", r->is_final ? "both" : "B, with the options of this case");
    }
    tide_text_add(out, "</p>\n");
    if (command.failed) out->failed = true;
    tide_text_deinit(&command);
}

static void add_case(tide_text *out, const tide_gate_result *r, const tide_gate_judged *c, size_t n) {
    pair p;
    const source s = {c, &out->failed};
    tide_text_addf(out, "<section>\n<h2 id=\"case%zu\">%s <code>", n, tide__gate_word(c->verdict));
    add_clean(out, c->key, TIDE__GATE_NAME_CHARS);
    tide_text_add(out, "</code></h2>\n");
    if (!make_pair(c, &p)) {
        out->failed = true;
        return;
    }
    add_peaks(out, c, &p);
    add_causes(out, c, n);
    const tide_table figures = figures_of(&s);
    add_table(out, "Figures", "figures", n, &figures, SIZE_MAX);
    add_table(out, "Change of the peak by operator", "operators", n,
              &(tide_table){TIDE_COLUMNS(operator_columns), .data = &s, .rows = c->by_operator,
                            .row_bytes = sizeof *c->by_operator, .n_rows = c->n_by_operator},
              MAX_TENSORS);
    add_table(out, "Change of the peak by kind", "kinds", n,
              &(tide_table){TIDE_COLUMNS(kind_columns), .data = &s, .rows = c->by_kind, .row_bytes = sizeof *c->by_kind,
                            .n_rows = c->n_by_kind},
              SIZE_MAX);
    qsort(p.items, p.n, sizeof *p.items, by_change);
    add_table(out, "Tensors of both, largest change first", "tensors", n,
              &(tide_table){TIDE_COLUMNS(tensor_columns), .data = &s, .rows = p.items, .row_bytes = sizeof *p.items,
                            .n_rows = p.n},
              MAX_TENSORS);
    add_unknown(out, r, c);
    tide_text_add(out, "</section>\n");
    tide_host_free(p.items);
}

// ---- the page ----

static void add_head(tide_text *out, const tide_gate_result *r, const char *style) {
    tide_text plain = {0};
    tide_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>tidemark check: ");
    tide__gate_say_verdict(&plain, r);
    add_clean(out, tide_text_str(&plain), TIDE__GATE_SENTENCE_CHARS);
    tide_text_add(out, "</title>\n<style>\n");
    tide_text_add(out, style);
    tide_text_add(out, "</style>\n</head>\n<body>\n<header>\n<h1>tidemark check: ");
    tide__gate_flush(out, &plain, tide__gate_for_xml);
    tide_text_add(out, "</h1>\n<p class=\"mute\">");
    if (r->baseline_path[0] != '\0') {
        tide_text_add(out, "baseline (A): ");
        add_clean(out, r->baseline_path, TIDE__GATE_NAME_CHARS);
        if (r->last_update != NULL && r->last_update[0] != '\0') {
            tide_text_add(out, ", last changed ");
            add_clean(out, r->last_update, TIDE__GATE_SENTENCE_CHARS);
        }
    }
    if (r->config_path[0] != '\0') {
        tide_text_add(out, " \xC2\xB7 rules: ");
        add_clean(out, r->config_path, TIDE__GATE_NAME_CHARS);
    }
    tide_text_add(out, "</p>\n</header>\n<main>\n");
    if (r->reason != NULL) {
        tide_text_add(out, "<p>");
        add_clean(out, r->reason, TIDE__GATE_SENTENCE_CHARS);
        tide_text_add(out, "</p>\n");
    }
}

void tide_gate_print_html(const tide_gate_result *r, const tide_gate_output_options *opt, tide_text *out) {
    tide_text advice = {0};
    size_t n = 0, n_quiet = 0;
    add_head(out, r, opt != NULL && opt->style != NULL ? opt->style : "");
    for (int rank = 0; rank < TIDE__GATE_QUIET; rank++)
        for (size_t i = 0; i < r->n && !out->failed; i++)
            if ((int)tide__gate_rank_of(&r->cases[i]) == rank) add_case(out, r, &r->cases[i], n++);
    for (size_t i = 0; i < r->n; i++) n_quiet += tide__gate_rank_of(&r->cases[i]) == TIDE__GATE_QUIET;
    if (n_quiet > 0) tide_text_addf(out, "<p>As before or within budget: %zu of %zu.</p>\n", n_quiet, r->n);
    tide__gate_say_advice(&advice, r, tide__gate_advise(r), "", "\n");
    if (advice.len > 0) {
        tide_text_add(out, "<pre>");
        tide__gate_flush(out, &advice, tide__gate_for_xml);
        tide_text_add(out, "</pre>\n");
    }
    if (advice.failed) out->failed = true;
    tide_text_deinit(&advice);
    tide_text_add(out, "</main>\n<footer>\n<p>1 KiB is 1024 B. A is the baseline, B what is measured now.</p>\n"
                       "</footer>\n");
    if (opt != NULL && opt->script != NULL) {
        tide_text_add(out, "<script>\n");
        tide_text_add(out, opt->script);
        tide_text_add(out, "</script>\n");
    }
    tide_text_add(out, "</body>\n</html>\n");
}
