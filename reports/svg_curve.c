// SPDX-License-Identifier: MIT
//
// The curve of live bytes as SVG: the smallest and largest value per column, so that no spike is lost; lines for plan,
// lower bound and capacity, what the plan says beside what was measured.
#include "reports/render.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "reports/plot.h"

enum { HEIGHT = 300, TOP = 26, BOTTOM = 262, LABEL_Y = 280 };

typedef struct scale {
    uint64_t top; // bytes at the upper edge, above 0
} scale;

static double y_of(const scale *s, uint64_t bytes) {
    return BOTTOM - (double)(bytes < s->top ? bytes : s->top) / (double)s->top * (BOTTOM - TOP);
}

/// tide_format_bytes() without ".00".
static const char *round_bytes(uint64_t bytes, char *buf, size_t buf_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int u = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && u < 6) {
        bytes /= 1024;
        u++;
    }
    if (bytes >= 1024) return tide_format_bytes(bytes << (10 * u), buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64 " %s", bytes, units[u]);
    return buf;
}

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
                       y + 4.0, round_bytes(bytes, label, sizeof label));
        if (bytes > UINT64_MAX - each) break;
    }
}

/// An outline in tenths of a unit: whole numbers are short, and relative moves add up without drift.
static void add_outline(const char *class, const scale *s, const uint64_t *bytes, size_t n, bool area, tide_text *out) {
    const double width = (TIDE_PLOT_RIGHT - TIDE_PLOT_LEFT) / (double)n;
    long x = 10L * TIDE_PLOT_LEFT, y = area || n == 0 ? 10L * BOTTOM : lround(10.0 * y_of(s, bytes[0]));
    tide_text_addf(out, "<path class=\"%s\" transform=\"scale(.1)\" d=\"M%ld %ld", class, x, y);
    for (size_t i = 0; i <= n; i++) {
        const bool last = i == n;
        if (!last && i > 0 && bytes[i] == bytes[i - 1]) continue;
        const long to_x = last ? 10L * TIDE_PLOT_RIGHT : lround(10.0 * (TIDE_PLOT_LEFT + width * (double)i));
        const long to_y = last ? 10L * BOTTOM : lround(10.0 * y_of(s, bytes[i]));
        if (to_x != x) tide_text_addf(out, "h%ld", to_x - x);
        if (to_y != y && (!last || area)) tide_text_addf(out, "v%ld", to_y - y);
        x = to_x;
        y = to_y;
    }
    tide_text_add(out, area ? "z\"/>\n" : "\"/>\n");
}

static bool peak_is_right(const tide_subject_facts *f) {
    return tide_plot_x(f, f->peak.t) > (TIDE_PLOT_LEFT + TIDE_PLOT_RIGHT) / 2.0;
}

/// A labelled line. The label stands on the side where the peak's is not.
static void add_level(const tide_subject_facts *f, const scale *s, uint64_t height, const char *class, const char *text,
                      bool above, tide_text *out) {
    const double y = y_of(s, height);
    const bool left = peak_is_right(f);
    tide_text_addf(out, "<line class=\"%sl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", class, TIDE_PLOT_LEFT,
                   TIDE_PLOT_RIGHT, y, y);
    tide_text_addf(out, "<text class=\"%st\" x=\"%d\" y=\"%.1f\"%s>%s</text>\n", class,
                   left ? TIDE_PLOT_LEFT + 4 : TIDE_PLOT_RIGHT - 4, above ? y - 5.0 : y + 14.0,
                   left ? "" : " text-anchor=\"end\"", text);
}

static void add_levels(const tide_subject_facts *f, const scale *s, tide_text *out) {
    const tide_levels *l = &f->levels;
    char text[256], size[24], below[24], rest[192] = "";
    if (!l->known) return;
    if (l->below > 0)
        snprintf(rest, sizeof rest, " + %s %s", tide_format_bytes(l->below, below, sizeof below), l->words);
    snprintf(text, sizeof text, "%s %s%s", l->plan == l->bound ? "plan = lower bound" : "lower bound",
             tide_format_bytes(f->lower_bound_bytes, size, sizeof size), rest);
    add_level(f, s, l->bound, "bound", text, false, out);
    if (l->plan == l->bound) return;
    snprintf(text, sizeof text, "plan %s%s", tide_format_bytes(f->plan_bytes, size, sizeof size), rest);
    add_level(f, s, l->plan, "plan", text, true, out);
}

static void add_peak(const tide_subject_facts *f, const scale *s, tide_text *out) {
    char size[24], when[48];
    const double x = tide_plot_x(f, f->peak.t), y = y_of(s, f->peak_bytes);
    const bool left = peak_is_right(f);
    tide_plot_peak_line(f, TOP - 8, BOTTOM, out);
    tide_text_addf(out, "<circle class=\"peakd\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x, y);
    tide_text_addf(out, "<text class=\"peakt\" x=\"%.1f\" y=\"%d\"%s>peak %s at %s</text>\n", left ? x - 6.0 : x + 6.0,
                   TOP - 12, left ? " text-anchor=\"end\"" : "", tide_format_bytes(f->peak_bytes, size, sizeof size),
                   tide_report_format_time(f, f->peak.t, true, when, sizeof when));
}

int tide_report_svg_curve(const tide_report *r, const tide_report_side *side, tide_text *out) {
    const tide_subject_facts *f = side->facts;
    scale s = {.top = f->peak_bytes > 0 ? f->peak_bytes : 1};
    char size[24], label[96];
    if (f->levels.known && f->levels.plan > s.top) s.top = f->levels.plan;
    if (f->levels.known && f->levels.bound > s.top) s.top = f->levels.bound;
    // A capacity far above would leave nothing to see of the curve: it is named instead.
    const uint64_t capacity = r->opt.capacity_bytes;
    const bool shows_capacity = capacity > 0 && capacity / 4 < s.top;
    if (shows_capacity && capacity > s.top) s.top = capacity;
    add_y_ticks(&s, out);
    tide_plot_ticks(f, TOP, BOTTOM, LABEL_Y, out);
    add_outline("max", &s, side->max, side->n_columns, true, out);
    if (!side->steps_are_columns) add_outline("min", &s, side->min, side->n_columns, true, out);
    if (side->predicted != NULL) add_outline("predicted", &s, side->predicted, side->n_columns, false, out);
    tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", TIDE_PLOT_LEFT,
                   TIDE_PLOT_RIGHT, BOTTOM, BOTTOM);
    add_levels(f, &s, out);
    if (shows_capacity) {
        snprintf(label, sizeof label, "capacity %s", tide_format_bytes(capacity, size, sizeof size));
        add_level(f, &s, capacity, "peak", label, false, out);
    }
    add_peak(f, &s, out);
    return HEIGHT;
}
