// SPDX-License-Identifier: MIT
//
// A sweep as a page and as a picture of its own. Nothing is loaded, no script is needed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/html_text.h"
#include "analysis/sweep_tables.h"
#include "reports/render.h"
#include "reports/sweep_internal.h"

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

void tide__sweep_html(const tide_sweep *s, tide_text *out) {
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
                       "outputs together. Lower bound: no plan of these lifetimes has smaller buffers.</p>\n"
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

void tide__sweep_document(const tide_sweep *s, tide_text *out) {
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
