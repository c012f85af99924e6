// SPDX-License-Identifier: MIT
//
// Processes side by side: what each had over time, and as a dashed line the median of all. Drawn are those that differ
// most, in the order of the file.
#include <math.h>
#include <stdlib.h>

#include "analysis/html_text.h"
#include "core/base/host_alloc.h"
#include "reports/render.h"
#include "reports/svg_axis.h"

enum { HEIGHT = 56, GAP = 12, TOP = 8 };

static uint64_t known(uint64_t bytes) { return bytes != TIDE_UNKNOWN_BYTES ? bytes : 0; }

/// Left edge of a column.
static double left_of(const tide_report_side *s, size_t column) {
    const tide_trace_lanes *l = &s->lanes.trace;
    const double share = (double)column / (double)l->n_columns;
    return tide__svg_x(s->facts, (int64_t)(l->begin_ns + (uint64_t)(share * (double)(l->end_ns - l->begin_ns))));
}

/// The curve as steps, one each column; `is_area`: down to the axis where nothing is known, and closed.
static void add_steps(const tide_report_side *s, const uint64_t *bytes, bool is_area, int y, uint64_t top,
                      const char *class, tide_text *out) {
    const size_t n = s->lanes.trace.n_columns;
    double at = -1;
    tide_text_addf(out, "<path class=\"%s\" d=\"M%d %d", class, PLOT_LEFT, y + HEIGHT);
    for (size_t i = 0; i < n; i++) {
        const double height = (double)HEIGHT * (double)known(bytes[i]) / (double)top;
        const double to = round(10.0 * (y + HEIGHT - height)) / 10;
        if (to == at) continue;
        tide_text_addf(out, "H%.1fV%.1f", left_of(s, i), to);
        at = to;
    }
    tide_text_addf(out, is_area ? "H%dV%dz\"/>\n" : "H%d\"/>\n", PLOT_RIGHT, y + HEIGHT);
}

static uint64_t top_of(const tide_lanes *l) {
    uint64_t top = 1;
    for (size_t i = 0; i < l->trace.n; i++)
        if (l->trace.items[i].peak_bytes > top) top = l->trace.items[i].peak_bytes;
    return top;
}

static void add_label(const tide_lane_row *row, int y, tide_text *out) {
    char peak[24], change[32];
    const uint64_t far = row->differs_bytes < 0 ? (uint64_t)-row->differs_bytes : (uint64_t)row->differs_bytes;
    tide_text_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", PLOT_LEFT - 8, y + 14);
    tide_html_add_cut(out, row->lane->name, 24);
    tide_text_addf(out, "</text><text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">peak %s</text>", PLOT_LEFT - 8,
                   y + 30, tide_format_bytes(row->lane->peak_bytes, peak, sizeof peak));
    if (far > 0)
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s %s</text>", PLOT_LEFT - 8,
                       y + 46, tide_format_bytes(far, change, sizeof change), row->differs_bytes > 0 ? "more" : "less");
    tide_text_add(out, "\n");
}

/// Where it is furthest from the others.
static void add_moment(const tide_report_side *s, const tide_lane_row *row, int y, tide_text *out) {
    if (row->differs_ns == UINT64_MAX) return;
    const double x = tide__svg_x(s->facts, (int64_t)row->differs_ns);
    tide_text_addf(out, "<line class=\"planl\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, y, y + HEIGHT);
}

static uint64_t distance(const tide_lane_row *row) {
    return row->differs_bytes < 0 ? (uint64_t)-row->differs_bytes : (uint64_t)row->differs_bytes;
}

/// Whether fewer than TIDE_REPORT_MAX_LANES lie further from the others.
static bool is_drawn(const tide_lanes *l, size_t lane) {
    size_t n_before = 0;
    for (size_t i = 0; i < l->trace.n && n_before < TIDE_REPORT_MAX_LANES; i++) {
        const uint64_t a = distance(&l->rows[i]), b = distance(&l->rows[lane]);
        n_before += a > b || (a == b && i < lane);
    }
    return n_before < TIDE_REPORT_MAX_LANES;
}

int tide_report_svg_lanes(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    const tide_lanes *l = &s->lanes;
    // A run alone has another axis than the trace.
    if (l->trace.n < 2 || s->facts->run_id != 0 || s->facts->end <= s->facts->begin) return 0;
    const size_t n = l->trace.n < TIDE_REPORT_MAX_LANES ? l->trace.n : TIDE_REPORT_MAX_LANES;
    const int bottom = TOP + (HEIGHT + GAP) * (int)n;
    const uint64_t top = top_of(l);
    tide__svg_add_ticks(s->facts, TOP, bottom, bottom + 14, out);
    int y = TOP;
    for (size_t i = 0; i < l->trace.n; i++) {
        if (!is_drawn(l, i)) continue;
        add_steps(s, l->trace.items[i].most, true, y, top, i == l->outlier ? "k1" : "k0", out);
        add_steps(s, l->typical, false, y, top, "boundl", out);
        tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", PLOT_LEFT, PLOT_RIGHT,
                       y + HEIGHT, y + HEIGHT);
        add_moment(s, &l->rows[i], y, out);
        add_label(&l->rows[i], y, out);
        y += HEIGHT + GAP;
    }
    return bottom + 22;
}
