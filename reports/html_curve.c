// SPDX-License-Identifier: MIT
//
// The curve of live bytes as inline SVG: exact while it has few points; beyond that the smallest and largest value per
// column, so that no spike is lost.
#include "reports/render.h"

#include <inttypes.h>
#include <math.h>

#include "reports/plot.h"

enum {
    HEIGHT = 300,
    TOP = 26,
    BOTTOM = 262,
    LABEL_Y = 280,
    MAX_EXACT_POINTS = 2000,
    N_COLUMNS = TIDE_PLOT_RIGHT - TIDE_PLOT_LEFT
};

typedef struct scale {
    uint64_t top; // bytes at the upper edge, above 0
} scale;

static double y_of(const scale *s, uint64_t bytes) { return BOTTOM - (double)bytes / (double)s->top * (BOTTOM - TOP); }

/// Grid lines at a power of two, at most six.
static void add_y_ticks(const scale *s, tide_text *out) {
    uint64_t each = 1;
    while (s->top / each > 6) each *= 2;
    for (uint64_t bytes = 0; bytes <= s->top; bytes += each) {
        char label[24];
        const double y = y_of(s, bytes);
        tide_text_addf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", TIDE_PLOT_LEFT,
                       TIDE_PLOT_RIGHT, y, y);
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", TIDE_PLOT_LEFT - 8,
                       y + 4.0, tide_report_format_round(bytes, label, sizeof label));
        if (bytes > UINT64_MAX - each) break;
    }
}

/// The outline of an area in tenths of a unit: whole numbers are short, and relative moves add up without drift.
typedef struct outline {
    tide_text *out;
    long x, y;
} outline;

static outline begin_outline(const char *class, tide_text *out) {
    tide_text_addf(out, "<path class=\"%s\" transform=\"scale(.1)\" d=\"M%d %d", class, 10 * TIDE_PLOT_LEFT,
                   10 * BOTTOM);
    return (outline){out, 10L * TIDE_PLOT_LEFT, 10L * BOTTOM};
}

/// h to the change, v to its value: the steps of a right-continuous function.
static void step_to(outline *o, double x, double y) {
    const long to_x = lround(10.0 * x), to_y = lround(10.0 * y);
    if (to_x != o->x) tide_text_addf(o->out, "h%ld", to_x - o->x);
    if (to_y != o->y) tide_text_addf(o->out, "v%ld", to_y - o->y);
    o->x = to_x;
    o->y = to_y;
}

static void end_outline(outline *o) {
    step_to(o, TIDE_PLOT_RIGHT, BOTTOM);
    tide_text_add(o->out, "z\"/>\n");
}

static void add_exact_path(const tide_timeline *tl, const scale *s, tide_text *out) {
    outline o = begin_outline("max", out);
    for (size_t i = 0; i < tl->n_points; i++) step_to(&o, tide_plot_x(tl, tl->curve[i].t), y_of(s, tl->curve[i].bytes));
    end_outline(&o);
}

static void add_column_path(const char *class, const scale *s, const uint64_t *bytes, tide_text *out) {
    outline o = begin_outline(class, out);
    for (int i = 0; i < N_COLUMNS; i++) {
        if (i == 0 || bytes[i] != bytes[i - 1]) step_to(&o, TIDE_PLOT_LEFT + i, y_of(s, bytes[i]));
    }
    end_outline(&o);
}

static void add_curve(const tide_timeline *tl, const scale *s, tide_text *out) {
    if (tl->n_points <= MAX_EXACT_POINTS) {
        add_exact_path(tl, s, out);
        return;
    }
    uint64_t min[N_COLUMNS], max[N_COLUMNS];
    tide_timeline_columns(tl, tl->begin, tl->end, N_COLUMNS, min, max);
    add_column_path("max", s, max, out);
    add_column_path("min", s, min, out);
}

static bool peak_is_right(const tide_timeline *tl) {
    return tide_plot_x(tl, tl->peak_t) > (TIDE_PLOT_LEFT + TIDE_PLOT_RIGHT) / 2.0;
}

/// A labelled line for the plan or the bound of `bytes`. The label says what the height is made of, and stands on the
/// side where the peak's is not.
static void add_level(const tide_timeline *tl, const scale *s, const tide_timeline_levels *l, bool planned,
                      tide_text *out) {
    char size[24];
    const double y = y_of(s, planned ? l->plan : l->bound);
    const char *class = planned ? "plan" : "bound";
    const char *name = planned ? "plan" : l->plan == l->bound ? "plan = lower bound" : "lower bound";
    const uint64_t bytes = planned ? tl->plan_bytes : tl->lower_bound_bytes;
    const bool left = peak_is_right(tl);
    tide_text_addf(out, "<line class=\"%sl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", class, TIDE_PLOT_LEFT,
                   TIDE_PLOT_RIGHT, y, y);
    tide_text_addf(out, "<text class=\"%st\" x=\"%d\" y=\"%.1f\"%s>%s %s", class,
                   left ? TIDE_PLOT_LEFT + 4 : TIDE_PLOT_RIGHT - 4, planned ? y - 5.0 : y + 14.0,
                   left ? "" : " text-anchor=\"end\"", name, tide_format_bytes(bytes, size, sizeof size));
    if (l->below > 0) tide_text_addf(out, " + %s %s", tide_format_bytes(l->below, size, sizeof size), l->words);
    tide_text_add(out, "</text>\n");
}

static void add_peak(const tide_timeline *tl, const scale *s, tide_text *out) {
    char size[24], when[32];
    const double x = tide_plot_x(tl, tl->peak_t), y = y_of(s, tl->peak_bytes);
    const bool left = peak_is_right(tl);
    tide_plot_peak_line(tl, TOP - 8, BOTTOM, out);
    tide_text_addf(out, "<circle class=\"peakd\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x, y);
    tide_text_addf(out, "<text class=\"peakt\" x=\"%.1f\" y=\"%d\"%s>peak %s at %s%s</text>\n",
                   left ? x - 6.0 : x + 6.0, TOP - 12, left ? " text-anchor=\"end\"" : "",
                   tide_format_bytes(tl->peak_bytes, size, sizeof size), tl->axis == TIDE_AXIS_STEPS ? "step " : "",
                   tide_report_format_time(tl, tl->peak_t, when, sizeof when));
}

void tide_report_html_curve(const tide_timeline *tl, tide_text *out) {
    const tide_timeline_levels levels = tide_timeline_levels_of(tl);
    scale s = {.top = tl->peak_bytes > 0 ? tl->peak_bytes : 1};
    if (levels.plan > s.top) s.top = levels.plan;
    if (levels.bound > s.top) s.top = levels.bound;
    char size[24];
    tide_text_add(out, "<section aria-labelledby=\"s-curve\">\n<h2 id=\"s-curve\">Live bytes</h2>\n"
                       "<div class=\"scroll\" role=\"region\" aria-labelledby=\"s-curve\" tabindex=\"0\">\n");
    tide_text_addf(
        out, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Live bytes over time, peak %s\">\n",
        TIDE_PLOT_WIDTH, HEIGHT, tide_format_bytes(tl->peak_bytes, size, sizeof size));
    add_y_ticks(&s, out);
    tide_plot_ticks(tl, TOP, BOTTOM, LABEL_Y, out);
    add_curve(tl, &s, out);
    tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", TIDE_PLOT_LEFT,
                   TIDE_PLOT_RIGHT, BOTTOM, BOTTOM);
    if (levels.known) {
        add_level(tl, &s, &levels, false, out);
        if (levels.plan != levels.bound) add_level(tl, &s, &levels, true, out);
    }
    add_peak(tl, &s, out);
    tide_text_add(out, "</svg>\n</div>\n</section>\n");
}
