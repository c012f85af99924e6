// SPDX-License-Identifier: MIT
//
// Lifetimes as inline SVG: one row per item, colour and hatch by kind and role, a tooltip with name,
// size and life. Beyond TIDE_REPORT_MAX_BARS the largest are drawn, and what is left out is named with its size.
#include "reports/render.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "reports/escape.h"
#include "reports/plot.h"

enum {
    TOP = 24,
    MIN_ROW = 2,
    MAX_ROW = 18,
    AIM_HEIGHT = 1400,
    MIN_LABEL_ROW = 11,
    LABEL_CHARS = 26,
    OPERATORS_HEIGHT = 18,
    MAX_OPERATORS = 1000
};

/// Hatches in the colour of the class around them.
static const char hatches[] =
    "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\n"
    "<pattern id=\"h1\" class=\"p1\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\">"
    "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/><rect width=\"3\" height=\"6\" "
    "fill=\"currentColor\"/></pattern>\n"
    "<pattern id=\"h2\" class=\"p2\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/><rect width=\"3\" height=\"6\" "
    "fill=\"currentColor\"/></pattern>\n"
    "<pattern id=\"h3\" class=\"p3\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/><circle cx=\"3\" cy=\"3\" r=\"1.6\" "
    "fill=\"currentColor\"/></pattern>\n"
    "<pattern id=\"h4\" class=\"p4\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/><rect width=\"6\" height=\"3\" "
    "fill=\"currentColor\"/></pattern>\n"
    "<pattern id=\"h5\" class=\"p5\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(-45)\">"
    "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/><rect width=\"3\" height=\"6\" "
    "fill=\"currentColor\"/></pattern>\n"
    "</defs></svg>\n";

/// Only the fills that occur.
static void add_legend(const tide_timeline *tl, const size_t *items, size_t n, tide_text *out) {
    bool seen[TIDE_TIMELINE_N_FILLS] = {false};
    for (size_t i = 0; i < n; i++) seen[tide_timeline_fill_of(&tl->items[items[i]])] = true;
    tide_text_add(out, "<ul class=\"legend\">\n");
    for (int f = 0; f < TIDE_TIMELINE_N_FILLS; f++) {
        if (!seen[f]) continue;
        tide_text_addf(out,
                       "<li><svg width=\"28\" height=\"12\" aria-hidden=\"true\"><rect class=\"k%d\" width=\"28\" "
                       "height=\"12\"/></svg>%s</li>\n",
                       f, tide_timeline_fill_text((tide_timeline_fill)f));
    }
    tide_text_add(out, "</ul>\n");
}

static void add_tooltip(const tide_timeline *tl, const tide_timeline_item *item, tide_text *out) {
    char size[24], a[32], b[32], life[32];
    tide_text_add(out, "<title>");
    tide_report_add_html(out, item->name);
    if (item->owner[0] != '\0') {
        tide_text_add(out, "\nby ");
        tide_report_add_html(out, item->owner);
    }
    tide_text_addf(out, "\n%s\n%s%s to %s, %s</title>", tide_format_bytes(item->size_bytes, size, sizeof size),
                   tl->axis == TIDE_AXIS_STEPS ? "step " : "", tide_report_format_time(tl, item->begin, a, sizeof a),
                   item->open_ended ? "never freed" : tide_report_format_time(tl, item->end, b, sizeof b),
                   tide_report_format_span(tl, item->begin, item->end, life, sizeof life));
}

/// Rows: those that come and go by begin, then those that persist.
typedef struct rows {
    size_t *items; ///< [n] row to item, owned
    size_t n, n_persistent;
    int top, height; ///< of the first row, of each
} rows;

static tide_status make_rows(const tide_timeline *tl, rows *r, tide_error *err) {
    *r = (rows){0};
    size_t *largest;
    TIDE_TRY(tide_report_largest(tl, TIDE_REPORT_MAX_BARS, &largest, &r->n, err));
    r->items = tide_host_calloc(r->n, sizeof *r->items);
    if (r->items == NULL) {
        tide_host_free(largest);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu rows", r->n);
    }
    size_t row = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!tide_timeline_persists(&tl->items[largest[i]])) r->items[row++] = largest[i];
    }
    r->n_persistent = r->n - row;
    for (size_t i = 0; i < r->n; i++) {
        if (tide_timeline_persists(&tl->items[largest[i]])) r->items[row++] = largest[i];
    }
    tide_host_free(largest);
    const int h = r->n > 0 ? AIM_HEIGHT / (int)r->n : MAX_ROW;
    r->height = h < MIN_ROW ? MIN_ROW : h > MAX_ROW ? MAX_ROW : h;
    return TIDE_OK;
}

static void add_names(const tide_timeline *tl, const rows *r, tide_text *out) {
    if (r->height < MIN_LABEL_ROW) return;
    tide_text_add(out, "<g text-anchor=\"end\">\n");
    for (size_t i = 0; i < r->n; i++) {
        const char *name = tl->items[r->items[i]].name;
        tide_text_addf(out, "<text x=\"%d\" y=\"%d\">", TIDE_PLOT_LEFT - 8,
                       r->top + r->height * (int)i + r->height - 5);
        tide_report_add_html_cut(out, name[0] != '\0' ? name : "(unnamed)", LABEL_CHARS);
        tide_text_add(out, "</text>\n");
    }
    tide_text_add(out, "</g>\n");
}

/// A bar is a thick line: one group per fill holds what all its bars share, and each says only where it is.
static void add_bars(const tide_timeline *tl, const rows *r, tide_timeline_fill fill, tide_text *out) {
    const int bar_h = r->height > 4 ? r->height - 3 : r->height > 2 ? r->height - 1 : r->height;
    bool any = false;
    for (size_t i = 0; i < r->n; i++) {
        const tide_timeline_item *item = &tl->items[r->items[i]];
        if (tide_timeline_fill_of(item) != fill) continue;
        if (!any) tide_text_addf(out, "<g class=\"b%d\" stroke-width=\"%d\">\n", (int)fill, bar_h);
        any = true;
        const double x0 = tide_plot_x(tl, item->begin), x1 = tide_plot_x(tl, item->end);
        const double y = r->top + r->height * (double)i + bar_h / 2.0;
        tide_text_addf(out, "<path d=\"M%.1f %gh%.1f\">", x0, y, x1 - x0 < 1.0 ? 1.0 : x1 - x0);
        add_tooltip(tl, item, out);
        tide_text_add(out, "</path>\n");
    }
    if (any) tide_text_add(out, "</g>\n");
}

// ---- operators ----

/// A band that says which operator ran when, as far as the trace tells: each from its begin to the next one's; the end
/// of the last is unknown, it gets a mark. A plan needs none: its axis is the operators.
static void add_operators(const tide_timeline *tl, int y, tide_text *out) {
    tide_text_addf(out, "<g class=\"ops\">\n<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">operators</text>\n",
                   TIDE_PLOT_LEFT - 8, y + 4);
    for (size_t i = 0; i < tl->n_steps; i++) {
        const double x0 = tide_plot_x(tl, tl->step_begin[i]);
        const double x1 = i + 1 < tl->n_steps ? tide_plot_x(tl, tl->step_begin[i + 1]) : x0;
        const double width = x1 - x0 < 1.0 ? 1.0 : x1 - x0;
        char when[32];
        tide_text_addf(out, "<path d=\"M%.1f %dh%.1f\"><title>", x0, y, width);
        tide_report_add_html(out, tl->step_names[i]);
        tide_text_addf(out, "\nfrom %s</title></path>\n",
                       tide_report_format_time(tl, tl->step_begin[i], when, sizeof when));
        if (width < 6.5 * (double)strlen(tl->step_names[i]) + 4.0) continue;
        tide_text_addf(out, "<text x=\"%.1f\" y=\"%d\">", x0 + 2.0, y + 4);
        tide_report_add_html(out, tl->step_names[i]);
        tide_text_add(out, "</text>\n");
    }
    tide_text_add(out, "</g>\n");
}

static void add_left_out(const tide_timeline *tl, const size_t *items, size_t n, tide_text *out) {
    uint64_t all = 0, drawn = 0;
    for (size_t i = 0; i < tl->n_items; i++) all += tl->items[i].size_bytes;
    for (size_t i = 0; i < n; i++) drawn += tl->items[items[i]].size_bytes;
    char size[24];
    tide_text_addf(out, "<p>The %zu largest of %zu lifetimes are drawn; the other %zu hold %s in sum.</p>\n", n,
                   tl->n_items, tl->n_items - n, tide_format_bytes(all - drawn, size, sizeof size));
}

static void add_order(const tide_timeline *tl, const rows *r, bool with_operators, tide_text *out) {
    if (r->n_persistent > 0)
        tide_text_addf(
            out, "<p class=\"mute\">In order of begin; the %zu that persist (weights, inputs, outputs) come last.",
            r->n_persistent);
    else
        tide_text_add(out, "<p class=\"mute\">In order of begin.");
    if (with_operators) tide_text_add(out, " Operators are those of the first execution in the run.");
    if (!with_operators && tl->axis == TIDE_AXIS_NS && tl->n_steps > 0)
        tide_text_addf(out, " %zu operators ran, too many to be named here.", tl->n_steps);
    tide_text_add(out, "</p>\n");
}

tide_status tide_report_html_gantt(const tide_timeline *tl, tide_text *out, tide_error *err) {
    rows r;
    TIDE_TRY(make_rows(tl, &r, err));
    const bool with_operators = tl->axis == TIDE_AXIS_NS && tl->n_steps > 0 && tl->n_steps <= MAX_OPERATORS;
    r.top = with_operators ? TOP + OPERATORS_HEIGHT : TOP;
    const int bottom = r.top + r.height * (int)r.n;
    tide_text_add(out, "<section aria-labelledby=\"s-gantt\">\n<h2 id=\"s-gantt\">Lifetimes</h2>\n");
    if (r.n < tl->n_items) add_left_out(tl, r.items, r.n, out);
    add_order(tl, &r, with_operators, out);
    tide_text_add(out, hatches);
    add_legend(tl, r.items, r.n, out);
    tide_text_add(out, "<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-gantt\" tabindex=\"0\">\n");
    tide_text_addf(out,
                   "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Lifetimes of %zu items; the "
                   "table below lists them\">\n",
                   TIDE_PLOT_WIDTH, bottom + 8, r.n);
    tide_plot_ticks(tl, TOP - 6, bottom, TOP - 10, out);
    if (with_operators) add_operators(tl, TOP + OPERATORS_HEIGHT / 2 - 1, out);
    add_names(tl, &r, out);
    for (int f = 0; f < TIDE_TIMELINE_N_FILLS; f++) add_bars(tl, &r, (tide_timeline_fill)f, out);
    tide_plot_peak_line(tl, TOP - 6, bottom, out);
    tide_text_add(out, "</svg>\n</div>\n</section>\n");
    tide_host_free(r.items);
    return TIDE_OK;
}
