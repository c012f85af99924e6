// SPDX-License-Identifier: MIT
//
// The curves of one model as SVG: a line with markers for each series, dashed the lower bound, budgets across, a ring
// around each answer. Colour is never alone: markers differ too.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/html_text.h"
#include "analysis/sweep_tables.h"
#include "reports/render.h"
#include "reports/sweep_internal.h"

enum { LEFT = 84, RIGHT = 700, TOP = 24, BOTTOM = 324, LABEL_Y = 342, LEGEND_Y = 376, LEGEND_STEP = 20 };
enum { N_COLOURS = 6, N_MARKERS = 5, MAX_MARKED = 80, MAX_CHARS = 76 };

const char tide__sweep_style[] =
    ".sweep text{font-size:13px}.why svg.plot.sweep{min-width:660px;max-width:960px;margin:0 auto}"
    ".sweep .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
    ".sweep .under{stroke-width:7;opacity:.5}"
    ".sweep .dot{fill:currentColor;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}"
    ".sweep .run{fill:var(--bg)}"
    ".sweep .ring{fill:none;stroke:currentColor;stroke-width:2.5}"
    ".sweep .drop{stroke:currentColor;stroke-width:1;stroke-dasharray:2 3}"
    ".sweep .low{fill:none;stroke:var(--bound);stroke-width:1.5;stroke-dasharray:6 4}"
    ".sweep .miss{stroke:var(--peak);stroke-width:2}"
    ".sweep .n{font-weight:600;fill:currentColor;paint-order:stroke;stroke:var(--bg);stroke-width:4px;"
    "stroke-linejoin:round}"
    ".q0{color:var(--f0)}.q1{color:var(--f1)}.q2{color:var(--f2)}.q3{color:var(--f3)}.q4{color:var(--f4)}"
    ".q5{color:var(--f5)}"
    "th.w,td.w{text-align:left;unicode-bidi:plaintext}"
    "@media(max-width:480px){.why svg.plot.sweep{min-width:600px}}";

typedef struct chart {
    const tide_sweep *s;
    const tide__sweep_group *g;
    tide_text *out;
} chart;

static double x_of(const chart *c, uint64_t value) {
    return LEFT + (double)(value - c->g->x_lo) / (double)(c->g->x_hi - c->g->x_lo) * (RIGHT - LEFT);
}

static double y_of(const chart *c, uint64_t bytes) {
    const double at = (double)bytes / (double)c->g->y_top;
    return BOTTOM - (at < 1 ? at : 1) * (BOTTOM - TOP);
}

// ---- axes ----

static void add_y_ticks(const chart *c) {
    const uint64_t each = tide__sweep_step_bytes(c->g->y_top, 6);
    for (uint64_t bytes = 0; bytes <= c->g->y_top; bytes += each) {
        char label[24];
        const double y = y_of(c, bytes);
        tide_text_addf(c->out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, RIGHT, y, y);
        tide_text_addf(c->out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
                       y + 4.0, tide__sweep_bytes(bytes, label, sizeof label));
        if (bytes > UINT64_MAX - each) break;
    }
}

static void add_y_title(const chart *c) {
    tide_text_addf(c->out, "<text class=\"l\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT, TOP - 6, tide__sweep_what(c->s));
}

static void add_x_ticks(const chart *c) {
    const uint64_t each = tide__sweep_step(c->g->x_hi - c->g->x_lo, 8);
    for (uint64_t v = (c->g->x_lo + each - 1) / each * each; v <= c->g->x_hi; v += each) {
        const double x = x_of(c, v);
        tide_text_addf(c->out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, BOTTOM,
                       BOTTOM + 4);
        tide_text_addf(c->out, "<text class=\"l\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%" PRIu64 "</text>\n", x,
                       LABEL_Y, x > RIGHT - 20 ? "end" : "middle", v);
    }
    tide_text_addf(c->out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, RIGHT, BOTTOM,
                   BOTTOM);
    tide_text_addf(c->out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2,
                   LABEL_Y + 17);
    tide_html_add_cut(c->out, c->s->extent, 60);
    tide_text_add(c->out, "</text>\n");
}

// ---- series ----

static void add_marker(tide_text *out, size_t i, double x, double y, bool run) {
    const char *class = run ? "dot run" : "dot";
    switch (i % N_MARKERS) {
    case 0:
        tide_text_addf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", class, x, y);
        break;
    case 1:
        tide_text_addf(out, "<path class=\"%s\" d=\"M%.1f %.1fh5.6v5.6h-5.6z\"/>", class, x - 2.8, y - 2.8);
        break;
    case 2:
        tide_text_addf(out, "<path class=\"%s\" d=\"M%.1f %.1fl3.8 6.4h-7.6z\"/>", class, x, y - 4.0);
        break;
    case 3:
        tide_text_addf(out, "<path class=\"%s\" d=\"M%.1f %.1fl4 4-4 4-4-4z\"/>", class, x, y - 4.0);
        break;
    default:
        tide_text_addf(out, "<path class=\"%s\" d=\"M%.1f %.1fl3.8-6.4h-7.6z\"/>", class, x, y + 4.0);
    }
}

/// A line through all points with figures, at the height that `of` gives.
static void add_path(const chart *c, const tide_sweep_series *series, const char *class,
                     uint64_t (*of)(const tide_sweep *s, const tide_sweep_point *p)) {
    bool begun = false;
    for (size_t k = series->from; k < series->from + series->n; k++) {
        const tide_sweep_point *p = &c->s->points[k];
        if (p->error != NULL) continue;
        if (!begun) tide_text_addf(c->out, "<path class=\"%s\" d=\"M", class);
        tide_text_addf(c->out, "%s%.1f %.1f", begun ? "L" : "", x_of(c, p->value), y_of(c, of(c->s, p)));
        begun = true;
    }
    if (begun) tide_text_add(c->out, "\"/>\n");
}

/// Series that differ in the strategy alone have one lower bound.
static bool has_new_bound(const chart *c, size_t i) {
    const tide_sweep_series *of = &c->s->series[i];
    for (size_t k = c->g->from; k < i; k++) {
        const tide_sweep_series *other = &c->s->series[k];
        if (strcmp(other->sizes, of->sizes) == 0 && other->align_bytes == of->align_bytes) return false;
    }
    return true;
}

static bool same_points(const chart *c, const tide_sweep_series *a, const tide_sweep_series *b) {
    for (size_t k = 0; a->n == b->n && k < a->n; k++) {
        const tide_sweep_point *p = &c->s->points[a->from + k], *q = &c->s->points[b->from + k];
        if (p->value != q->value || tide__sweep_height(c->s, p) != tide__sweep_height(c->s, q)) return false;
    }
    return a->n == b->n;
}

/// A later series that is drawn on the same line would hide this one.
static bool is_hidden(const chart *c, size_t i) {
    for (size_t k = i + 1; k < c->g->from + c->g->n; k++) {
        if (same_points(c, &c->s->series[i], &c->s->series[k])) return true;
    }
    return false;
}

static void add_series(const chart *c, size_t i) {
    const tide_sweep_series *series = &c->s->series[i];
    const size_t at = i - c->g->from;
    tide_text_addf(c->out, "<g class=\"q%d\">", (int)(at % N_COLOURS));
    add_path(c, series, is_hidden(c, i) ? "line under" : "line", tide__sweep_height);
    for (size_t k = series->from; k < series->from + series->n; k++) {
        const tide_sweep_point *p = &c->s->points[k];
        const double x = x_of(c, p->value);
        if (p->error != NULL)
            tide_text_addf(c->out, "<path class=\"miss\" d=\"M%.1f %dl8 8m0-8l-8 8\"/>", x - 4.0, BOTTOM - 4);
        else if (p->measured || series->n <= MAX_MARKED)
            add_marker(c->out, at, x, y_of(c, (p->measured ? tide__sweep_measured : tide__sweep_height)(c->s, p)),
                       p->measured);
    }
    tide_text_add(c->out, "</g>\n");
}

// ---- answers ----

/// Whether a curve passes where a label above `y` would stand.
static bool is_taken(const chart *c, double from_x, double to_x, double y) {
    for (size_t i = c->g->from; i < c->g->from + c->g->n; i++) {
        const tide_sweep_series *series = &c->s->series[i];
        const tide_sweep_point *before = NULL;
        for (size_t k = series->from; k < series->from + series->n; k++) {
            const tide_sweep_point *p = &c->s->points[k];
            if (p->error != NULL) continue;
            const double x = x_of(c, p->value), at = y_of(c, tide__sweep_height(c->s, p));
            const double x0 = before != NULL ? x_of(c, before->value) : x;
            const double at0 = before != NULL ? y_of(c, tide__sweep_height(c->s, before)) : at;
            const double high = at < at0 ? at : at0, low = at < at0 ? at0 : at; // y grows downwards
            if (x >= from_x && x0 <= to_x && high <= y + 4 && low >= y - 22) return true;
            before = p;
        }
    }
    return false;
}

static void add_budget(const chart *c, uint64_t budget) {
    enum { LABEL_WIDTH = 124 };
    char size[24];
    const double y = y_of(c, budget);
    if (!tide__sweep_shows(c->g, budget)) return;
    const bool right = is_taken(c, LEFT, LEFT + LABEL_WIDTH, y) && !is_taken(c, RIGHT - LABEL_WIDTH, RIGHT, y);
    tide_text_addf(c->out, "<line class=\"peakl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, RIGHT, y, y);
    tide_text_addf(c->out, "<text class=\"peakt\" x=\"%d\" y=\"%.1f\"%s>budget %s</text>\n",
                   right ? RIGHT - 6 : LEFT + 6, y - 5.0, right ? " text-anchor=\"end\"" : "",
                   tide__sweep_bytes(budget, size, sizeof size));
}

static bool is_mine(const chart *c, const tide_sweep_answer *a) {
    return a->series >= c->g->from && a->series < c->g->from + c->g->n;
}

static void add_budgets(const chart *c) {
    for (size_t i = 0; i < c->s->n_answers; i++) {
        const tide_sweep_answer *a = &c->s->answers[i];
        bool drawn = !is_mine(c, a);
        for (size_t k = 0; k < i && !drawn; k++)
            drawn = is_mine(c, &c->s->answers[k]) && c->s->answers[k].budget_bytes == a->budget_bytes;
        if (!drawn) add_budget(c, a->budget_bytes);
    }
}

/// The numbers stand on the axis' side of the ring, one below the other where several answers are near.
static void add_answers(const chart *c) {
    double last_x = -1000, last_y = -1000;
    for (size_t i = 0; i < c->s->n_answers; i++) {
        const tide_sweep_answer *a = &c->s->answers[i];
        if (!is_mine(c, a) || a->none_fits || a->value < c->g->x_lo) continue;
        const double x = x_of(c, a->value), y = y_of(c, a->needs_bytes);
        const bool at_edge = x > RIGHT - 70; // the number stands left then, clear of a line that rises to it
        double text_y = at_edge ? y + 36 : y + 20;
        if (x - last_x < 60 && last_x - x < 60 && text_y - last_y < 16 && last_y - text_y < 16) text_y = last_y + 16;
        if (text_y > BOTTOM - 6) text_y = BOTTOM - 6;
        tide_text_addf(c->out, "<g class=\"q%d\">", (int)((a->series - c->g->from) % N_COLOURS));
        tide_text_addf(c->out, "<line class=\"drop\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%d\"/>", x, x, y, BOTTOM);
        tide_text_addf(c->out, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\"/>", x, y);
        tide_text_addf(c->out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\"%s>%s%" PRIu64 "</text></g>\n",
                       at_edge ? x - 9 : x + 9, text_y, at_edge ? " text-anchor=\"end\"" : "",
                       a->is_open ? "\xE2\x89\xA5 " : "", a->value);
        last_x = x;
        last_y = text_y;
    }
}

// ---- legend ----

static int add_key(const chart *c, int y, const char *drawing, const char *text) {
    tide_text_addf(c->out, "%s<text x=\"%d\" y=\"%d\">%s</text>\n", drawing, LEFT + 44, y + 4, text);
    return y + LEGEND_STEP;
}

static int add_legend(const chart *c) {
    int y = LEGEND_Y;
    char drawing[160];
    for (size_t i = 0; i < c->g->n; i++) {
        tide_text label = {0};
        tide__sweep_label(c->s, c->g->from + i, &label);
        tide_text_addf(c->out, "<g class=\"q%d\"><path class=\"line\" d=\"M%d %dh32\"/>", (int)(i % N_COLOURS), LEFT,
                       y);
        add_marker(c->out, i, LEFT + 16, y, false);
        tide_text_addf(c->out, "</g><text x=\"%d\" y=\"%d\">", LEFT + 44, y + 4);
        tide_html_add_cut(c->out, tide_text_str(&label), MAX_CHARS);
        tide_text_add(c->out, "</text>\n");
        if (label.failed) c->out->failed = true;
        tide_text_deinit(&label);
        y += LEGEND_STEP;
    }
    snprintf(drawing, sizeof drawing, "<path class=\"low\" d=\"M%d %dh32\"/>", LEFT, y);
    y = add_key(c, y, drawing, "lower bound: no plan goes below");
    if (c->g->has_runs) {
        snprintf(drawing, sizeof drawing, "<circle class=\"dot run l\" cx=\"%d\" cy=\"%d\" r=\"3\"/>", LEFT + 16, y);
        y = add_key(c, y, drawing, "hollow: run too, at its measured peak");
    }
    if (c->g->has_errors) {
        snprintf(drawing, sizeof drawing, "<path class=\"miss\" d=\"M%d %dl8 8m0-8l-8 8\"/>", LEFT + 12, y - 4);
        y = add_key(c, y, drawing, "no figures: the table says why");
    }
    return y;
}

// ---- all ----

int tide__sweep_svg(const tide_sweep *s, const tide__sweep_group *g, int y, tide_text *out) {
    tide_text inner = {0};
    const chart c = {s, g, &inner};
    add_y_ticks(&c);
    add_y_title(&c);
    add_x_ticks(&c);
    for (size_t i = g->from; i < g->from + g->n; i++) add_series(&c, i);
    for (size_t i = g->from; i < g->from + g->n; i++)
        if (has_new_bound(&c, i)) add_path(&c, &s->series[i], "low", tide__sweep_bound);
    add_budgets(&c);
    add_answers(&c);
    const int height = add_legend(&c);
    tide_text_add(out, "<svg class=\"plot sweep\"");
    if (y >= 0) tide_text_addf(out, " x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"", y, TIDE__SWEEP_SVG_WIDTH, height);
    tide_text_addf(out, " viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s of ", TIDE__SWEEP_SVG_WIDTH, height,
                   tide__sweep_what(s));
    tide_html_add_cut(out, tide_sweep_model_name(s, s->series[g->from].model), 120);
    tide_text_add(out, " by ");
    tide_html_add_cut(out, s->extent, 60);
    tide_text_add(out, "; the table has the figures\">\n");
    tide_text_add(out, tide_text_str(&inner));
    tide_text_add(out, "</svg>\n");
    if (inner.failed) out->failed = true;
    tide_text_deinit(&inner);
    return height;
}
