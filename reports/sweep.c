// SPDX-License-Identifier: MIT
//
// What is said of a sweep, and which writer says it. See sweep.h.
#include "reports/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/sweep_tables.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "reports/sweep_internal.h"

// ---- names ----

const char *tide__sweep_bytes(uint64_t bytes, char *buf, size_t buf_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t whole = bytes;
    int u = 0;
    while (whole >= 1024 && whole % 1024 == 0 && u < 6) {
        whole /= 1024;
        u++;
    }
    if (whole >= 1024) return tide_format_bytes(bytes, buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64 " %s", whole, units[u]);
    return buf;
}

static void part(tide_text *out, const char *word, const char *text) {
    tide_text_addf(out, "%s%s%s", out->len > 0 ? ", " : "", word, text);
}

void tide__sweep_label(const tide_sweep *s, size_t series, tide_text *out) {
    const tide_sweep_series *of = &s->series[series];
    bool sizes = false, strategies = false, aligns = false;
    for (size_t i = 0; i < s->n_series; i++) {
        const tide_sweep_series *other = &s->series[i];
        if (strcmp(other->model, of->model) != 0) continue;
        sizes |= strcmp(other->sizes, of->sizes) != 0;
        strategies |= strcmp(other->strategy, of->strategy) != 0;
        aligns |= other->align_bytes != of->align_bytes;
    }
    tide_text label = {0};
    if (sizes || of->sizes[0] != '\0') part(&label, "", of->sizes[0] != '\0' ? of->sizes : "as it is");
    if (strategies || (!sizes && !aligns)) part(&label, "", of->strategy);
    if (aligns) {
        char align[24];
        snprintf(align, sizeof align, "%" PRIu64, of->align_bytes);
        part(&label, "align ", align);
    }
    tide_text_add(out, tide_text_str(&label));
    if (label.failed) out->failed = true;
    tide_text_deinit(&label);
}

// ---- answers ----

/// Whose answer: the model, and which of its series where there are several.
static void add_whose(const tide_sweep *s, size_t series, tide_text *out) {
    const tide_sweep_series *of = &s->series[series];
    size_t of_model = 0;
    for (size_t i = 0; i < s->n_series; i++) of_model += strcmp(s->series[i].model, of->model) == 0;
    tide_text_add(out, tide_sweep_model_name(s, of->model));
    if (of_model > 1 || of->sizes[0] != '\0') {
        tide_text_add(out, " (");
        tide__sweep_label(s, series, out);
        tide_text_add(out, ")");
    }
    tide_text_add(out, ": ");
}

/// Sizes that look like the budget when rounded are told by how far they are from it.
static void add_size(uint64_t bytes, uint64_t budget, tide_text *out) {
    char size[24], limit[24], apart[24];
    tide_text_add(out, tide_format_bytes(bytes, size, sizeof size));
    if (strcmp(size, tide_format_bytes(budget, limit, sizeof limit)) != 0 || bytes == budget) return;
    tide_text_addf(out, ", %s %s",
                   tide__sweep_bytes(bytes < budget ? budget - bytes : bytes - budget, apart, sizeof apart),
                   bytes < budget ? "to spare" : "too much");
}

static void add_runs(const tide_sweep_answer *a, tide_text *out) {
    if (!a->tried) return;
    tide_text_add(out, ". Run within the budget: ");
    if (!a->none_fits) tide_text_addf(out, "%" PRIu64 " %s", a->value, a->ran ? "went through" : "FAILED");
    if (!a->none_fits && !a->is_open) tide_text_add(out, ", ");
    if (!a->is_open)
        tide_text_addf(out, "%" PRIu64 " %s", a->next_value,
                       a->next_ran ? "ran out of memory" : "did NOT run out of memory");
}

void tide_sweep_sentence(const tide_sweep *s, const tide_sweep_answer *a, tide_text *out) {
    char budget[24];
    const char *extent = s->extent != NULL ? s->extent : "";
    add_whose(s, a->series, out);
    tide__sweep_bytes(a->budget_bytes, budget, sizeof budget);
    if (a->none_fits) {
        tide_text_addf(out, "no %s of those asked for fits %s; %" PRIu64 " needs ", extent, budget, a->next_value);
        add_size(a->next_bytes, a->budget_bytes, out);
    } else if (a->is_open) {
        tide_text_addf(out, "%" PRIu64 ", the largest %s asked for, fits %s (", a->value, extent, budget);
        add_size(a->total_bytes, a->budget_bytes, out);
        tide_text_add(out, "); more may");
    } else {
        tide_text_addf(out, "the largest %s that fits %s is %" PRIu64 " (", extent, budget, a->value);
        add_size(a->total_bytes, a->budget_bytes, out);
        tide_text_addf(out, "); %" PRIu64 " needs ", a->next_value);
        add_size(a->next_bytes, a->budget_bytes, out);
    }
    add_runs(a, out);
}

// ---- what a picture spans ----

bool tide__sweep_shows(const tide__sweep_group *g, uint64_t budget_bytes) { return budget_bytes / 4 <= g->y_top; }

uint64_t tide__sweep_bound(const tide_sweep_point *p) {
    return p->total_bytes - p->planned_bytes + p->lower_bound_bytes; // a part of planned_bytes
}

uint64_t tide__sweep_step(uint64_t span, unsigned n) {
    uint64_t each = 1;
    for (int i = 0; span / each > n && each < UINT64_MAX / 10; i++) each = i % 3 == 1 ? each / 2 * 5 : each * 2;
    return each;
}

uint64_t tide__sweep_step_bytes(uint64_t top, unsigned n) {
    uint64_t each = 1;
    while (top / each > n) each *= 2;
    return each;
}

static void widen(const tide_sweep *s, tide__sweep_group *g) {
    uint64_t least = UINT64_MAX, largest = 0;
    for (size_t i = g->from; i < g->from + g->n; i++) {
        for (size_t k = s->series[i].from; k < s->series[i].from + s->series[i].n; k++) {
            const tide_sweep_point *p = &s->points[k];
            least = p->value < least ? p->value : least;
            largest = p->value > largest ? p->value : largest;
            g->has_errors |= p->error != NULL;
            g->has_runs |= p->measured;
            if (p->error != NULL) continue;
            g->n_figures++;
            g->y_top = p->total_bytes > g->y_top ? p->total_bytes : g->y_top;
            if (p->measured && p->measured_peak_bytes > g->y_top) g->y_top = p->measured_peak_bytes;
        }
    }
    g->x_lo = least > largest / 4 && least < largest ? least : 0;
    g->x_hi = largest > g->x_lo ? largest : g->x_lo + 1;
    if (g->y_top == 0) g->y_top = 1;
    for (size_t i = 0; i < s->n_answers; i++) {
        const tide_sweep_answer *a = &s->answers[i];
        const bool mine = a->series >= g->from && a->series < g->from + g->n;
        if (mine && tide__sweep_shows(g, a->budget_bytes) && a->budget_bytes > g->y_top) g->y_top = a->budget_bytes;
    }
}

void tide__sweep_groups(const tide_sweep *s, void (*take)(void *ctx, const tide__sweep_group *g), void *ctx) {
    for (size_t i = 0; i < s->n_series;) {
        tide__sweep_group g = {.from = i};
        while (i < s->n_series && strcmp(s->series[i].model, s->series[g.from].model) == 0) i++;
        g.n = i - g.from;
        widen(s, &g);
        take(ctx, &g);
    }
}

// ---- writers ----

typedef struct paper_of {
    const tide_sweep *s;
    const tide_sweep_paper *paper;
    bool markdown;
    tide_text *out;
} paper_of;

/// Foreign text: no line breaks, no marks that turn the direction of what follows, and in Markdown nothing that formats
/// or ends a cell.
static void add_foreign(const char *text, bool markdown, tide_text *out) {
    (markdown ? tide_markdown_add : tide_utf8_add_clean)(out, text);
}

static void add_rows(const tide_sweep *s, bool markdown, tide_text *out) {
    static const tide_lines_style text_style = {
        .begin = "", .between = "  ", .end = "", .is_padded = true, .escape = tide_utf8_add_clean};
    static const tide_lines_style markdown_style = {.begin = "| ",
                                                    .between = " | ",
                                                    .end = " |",
                                                    .rule = "|---",
                                                    .rule_right = "|---:",
                                                    .rule_end = "|",
                                                    .is_padded = true,
                                                    .escape = tide_markdown_add};
    tide_sweep_points points;
    tide_sweep_points_of(s, &points);
    tide_table_lines(&points.table, SIZE_MAX, markdown ? &markdown_style : &text_style, out);
}

static void plot(void *ctx, const tide__sweep_group *g) {
    paper_of *p = ctx;
    if (g->n_figures == 0 || p->s->extent[0] == '\0') return;
    if (p->markdown) tide_text_add(p->out, "```text\n");
    tide__sweep_plot(p->s, g, p->paper, p->out);
    tide_text_add(p->out, p->markdown ? "```\n\n" : "\n");
}

static void add_sentences(const tide_sweep *s, bool markdown, tide_text *out) {
    for (size_t i = 0; i < s->n_answers; i++) {
        tide_text one = {0};
        tide_sweep_sentence(s, &s->answers[i], &one);
        if (markdown) tide_text_add(out, "- ");
        add_foreign(tide_text_str(&one), markdown, out);
        tide_text_add(out, "\n");
        if (one.failed) out->failed = true;
        tide_text_deinit(&one);
    }
    if (s->n_answers > 0) tide_text_add(out, "\n");
}

/// Plain text: curves, table, and the answers last, where the eye is. Markdown: the answers first.
static void words(const tide_sweep *s, bool markdown, const tide_sweep_paper *paper, tide_text *out) {
    paper_of p = {s, paper, markdown, out};
    if (markdown) {
        tide_text_add(out, "# Memory by ");
        add_foreign(s->extent[0] != '\0' ? s->extent : "model", true, out);
        tide_text_add(out, "\n\n");
        add_sentences(s, true, out);
    }
    tide__sweep_groups(s, plot, &p);
    add_rows(s, markdown, out);
    if (markdown) return;
    tide_text_add(out, "\n");
    add_sentences(s, false, out);
}

static void write_csv(const tide_sweep *s, tide_text *out) {
    tide_sweep_points points;
    tide_sweep_points_of(s, &points);
    tide_table_csv(&points.table, TIDE_CSV_GUARDED, out);
}

tide_status tide_report_sweep(const tide_sweep *s, tide_report_format format, const tide_sweep_paper *paper,
                              tide_text *out, tide_error *err) {
    static const tide_sweep_paper plain = {.width = 80};
    switch (format) {
    case TIDE_REPORT_HTML:
        tide__sweep_html(s, out);
        break;
    case TIDE_REPORT_CSV:
        write_csv(s, out);
        break;
    case TIDE_REPORT_JSON:
        tide_sweep_write_json(s, true, out);
        tide_text_add(out, "\n");
        break;
    case TIDE_REPORT_MARKDOWN:
        words(s, true, &plain, out);
        break;
    case TIDE_REPORT_SVG:
        tide__sweep_document(s, out);
        break;
    case TIDE_REPORT_TEXT:
        words(s, false, paper != NULL ? paper : &plain, out);
        break;
    case TIDE_N_REPORT_FORMATS:
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "no such report format");
    }
    return out->failed ? TIDE_NO_MEMORY(err, "for the sweep's report") : TIDE_OK;
}
