// SPDX-License-Identifier: MIT
//
// A sweep in every format. See sweep.h.
#include "reports/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/html_text.h"
#include "analysis/sweep_tables.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "reports/render.h"
#include "reports/sweep_internal.h"

// ---- a page, and a picture of its own: nothing is loaded, no script is needed ----

static bool has_one_model(const tide_sweep *s) {
    for (size_t i = 1; i < s->n_series; i++) {
        if (strcmp(s->series[i].model, s->series[0].model) != 0) return false;
    }
    return s->n_series > 0;
}

static void add_title(const tide_sweep *s, tide_text *out) {
    tide_text_add(out, "Memory by ");
    tide_html_add_cut(out, s->extent[0] != '\0' ? s->extent : "model", 60);
    if (!has_one_model(s)) return;
    tide_text_add(out, ": ");
    tide_html_add_cut(out, tide_sweep_model_name(s, s->series[0].model), 120);
}

static void add_head(const tide_sweep *s, tide_text *out) {
    tide_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    add_title(s, out);
    tide_text_add(out, " - tidemark</title>\n<style>\n");
    tide_text_add(out, tide_report_page_style);
    tide_text_add(out, tide__sweep_style);
    tide_text_add(out, "\n</style>\n</head>\n<body>\n<header>\n<h1>");
    add_title(s, out);
    tide_text_add(out, "</h1>\n<p class=\"mute\">tidemark sweep</p>\n</header>\n<main>\n");
}

/// The answers of one model, a paragraph each.
static void add_answers(const tide_sweep *s, const tide__sweep_group *g, tide_text *out) {
    for (size_t i = 0; i < s->n_answers; i++) {
        if (s->answers[i].series < g->from || s->answers[i].series >= g->from + g->n) continue;
        tide_text one = {0};
        tide_sweep_sentence(s, &s->answers[i], &one);
        tide_text_add(out, "<p>");
        tide_html_add_cut(out, tide_text_str(&one), 4000);
        tide_text_add(out, ".</p>\n");
        if (one.failed) out->failed = true;
        tide_text_deinit(&one);
    }
}

/// What is the same at all points has no column.
static void add_common(const tide_sweep *s, tide_text *out) {
    if (s->n == 0) return;
    const tide_sweep_point *first = &s->points[0];
    bool strategy = true, align = true;
    for (size_t i = 1; i < s->n; i++) {
        strategy &= strcmp(s->points[i].strategy, first->strategy) == 0;
        align &= s->points[i].align_bytes == first->align_bytes;
    }
    tide_text_addf(out, "<p class=\"mute\">%zu point%s", s->n, s->n == 1 ? "" : "s");
    if (strategy) {
        tide_text_add(out, "; strategy ");
        tide_html_add_cut(out, first->strategy, 60);
    }
    if (align) tide_text_addf(out, "; aligned to %" PRIu64 " B", first->align_bytes);
    tide_text_add(out, "</p>\n");
}

typedef struct page {
    const tide_sweep *s;
    tide_text *out;
    int n; // pictures so far
    int y; // of a document
} page;

static void add_figure(void *ctx, const tide__sweep_group *g) {
    page *p = ctx;
    if (g->n_figures == 0 || p->s->extent[0] == '\0') return;
    tide_text_addf(p->out, "<section class=\"why\">\n<h2 id=\"m-%d\">", p->n);
    tide_html_add_cut(p->out, tide_sweep_model_name(p->s, p->s->series[g->from].model), 120);
    tide_text_add(p->out, "</h2>\n");
    add_answers(p->s, g, p->out);
    tide_text_addf(p->out, "<div class=\"scroll\" role=\"region\" aria-labelledby=\"m-%d\" tabindex=\"0\">\n", p->n);
    tide__sweep_svg(p->s, g, -1, p->out);
    tide_text_add(p->out, "</div>\n</section>\n");
    p->n++;
}

static void write_html(const tide_sweep *s, tide_text *out) {
    static const tide_html_style style = {
        .attributes = "", .marks_words = true, .heads_numbers = true, .max_head = 60, .max_chars = 200};
    tide_sweep_points points;
    page p = {.s = s, .out = out};
    add_head(s, out);
    tide__sweep_groups(s, add_figure, &p);
    tide_text_add(out, "<h2 id=\"points\">All points</h2>\n");
    add_common(s, out);
    tide_text_add(out, "<div class=\"scroll\" role=\"region\" aria-labelledby=\"points\" tabindex=\"0\">\n");
    tide_sweep_points_of(s, &points);
    tide_table_html(&points.table, SIZE_MAX, &style, out);
    tide_text_add(out, "</div>\n</main>\n<footer>\n<p>1 KiB is 1024 B. Total: the planned buffers, weights, inputs and "
                       "outputs together. Process: the program and its bookkeeping too, or what loading takes, where "
                       "that is more. Lower bound: no plan of these lifetimes has smaller buffers.</p>\n"
                       "</footer>\n</body>\n</html>\n");
}

// ---- a picture of its own ----

static void add_picture(void *ctx, const tide__sweep_group *g) {
    enum { HEAD = 34, GAP = 16 };
    page *p = ctx;
    if (g->n_figures == 0 || p->s->extent[0] == '\0') return;
    tide_text_addf(p->out, "<text x=\"8\" y=\"%d\" class=\"head\">", p->y + 22);
    tide_html_add_cut(p->out, tide_sweep_model_name(p->s, p->s->series[g->from].model), 80);
    tide_text_add(p->out, "</text>\n");
    p->y += HEAD;
    p->y += tide__sweep_svg(p->s, g, p->y, p->out) + GAP;
    p->n++;
}

static void write_svg(const tide_sweep *s, tide_text *out) {
    tide_text body = {0};
    page p = {.s = s, .out = &body};
    tide__sweep_groups(s, add_picture, &p);
    if (p.n == 0) {
        tide_text_add(&body, "<text x=\"8\" y=\"22\" class=\"head\">No extent is swept: there is no curve</text>\n");
        p.y = 40;
    }
    tide_text_addf(
        out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>",
        TIDE__SWEEP_SVG_WIDTH, p.y, TIDE__SWEEP_SVG_WIDTH, p.y);
    tide_text_add(out, tide_report_page_style);
    tide_text_add(out, tide__sweep_style);
    tide_text_add(out, "svg .head{font-size:16px;font-weight:600}</style>\n<rect width=\"100%\" height=\"100%\" "
                       "fill=\"var(--bg)\"/>\n");
    tide_text_add(out, tide_text_str(&body));
    tide_text_add(out, "</svg>\n");
    if (body.failed) out->failed = true;
    tide_text_deinit(&body);
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

/// Sizes that look like the budget when rounded get how far they are from it.
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
    if (!a->is_open && a->next_is_untried)
        tide_text_addf(out, "%" PRIu64 " was not run: what is too large of it is the program, or what loading takes",
                       a->next_value);
    else if (!a->is_open)
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
        add_size(a->needs_bytes, a->budget_bytes, out);
        tide_text_add(out, "); more may");
    } else {
        tide_text_addf(out, "the largest %s that fits %s is %" PRIu64 " (", extent, budget, a->value);
        add_size(a->needs_bytes, a->budget_bytes, out);
        tide_text_addf(out, "); %" PRIu64 " needs ", a->next_value);
        add_size(a->next_bytes, a->budget_bytes, out);
    }
    add_runs(a, out);
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
        write_html(s, out);
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
        write_svg(s, out);
        break;
    case TIDE_REPORT_TEXT:
        words(s, false, paper != NULL ? paper : &plain, out);
        break;
    case TIDE_N_REPORT_FORMATS:
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "no such report format");
    }
    return out->failed ? TIDE_NO_MEMORY(err, "for the sweep's report") : TIDE_OK;
}
