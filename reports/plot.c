// SPDX-License-Identifier: MIT
//
// The shared time axis. See plot.h.
#include "reports/plot.h"

#include <string.h>

enum { N_TICKS = 9 };

static uint64_t span_of(const tide_timeline *tl) {
    return tl->end > tl->begin ? (uint64_t)tl->end - (uint64_t)tl->begin : 1;
}

double tide_plot_x(const tide_timeline *tl, int64_t t) {
    if (t <= tl->begin) return TIDE_PLOT_LEFT;
    if (t >= tl->end) return TIDE_PLOT_RIGHT;
    const double at = (double)((uint64_t)t - (uint64_t)tl->begin) / (double)span_of(tl);
    return TIDE_PLOT_LEFT + at * (TIDE_PLOT_RIGHT - TIDE_PLOT_LEFT);
}

static uint64_t tick_time(uint64_t span) {
    uint64_t each = 1;
    for (int i = 0; span / each > N_TICKS && each < UINT64_MAX / 10; i++) each = i % 3 == 1 ? each / 2 * 5 : each * 2;
    return each;
}

void tide_plot_ticks(const tide_timeline *tl, int top, int bottom, int label_y, tide_text *out) {
    const uint64_t span = span_of(tl), each = tick_time(span);
    // Steps count from 0, times from the axis' begin: ticks are multiples of `each` in the reader's numbers.
    const uint64_t past = tl->axis == TIDE_AXIS_STEPS && tl->begin > 0 ? (uint64_t)tl->begin % each : 0;
    for (uint64_t at = past == 0 ? 0 : each - past; at < span; at += each) {
        const int64_t t = (int64_t)((uint64_t)tl->begin + at);
        char label[32];
        const double x = tide_plot_x(tl, t);
        tide_text_addf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, top, bottom);
        // The last label must not leave the picture.
        tide_text_addf(out, "<text class=\"l\" x=\"%.1f\" y=\"%d\"%s>%s</text>\n", x, label_y,
                       x > TIDE_PLOT_RIGHT - 40 ? " text-anchor=\"end\"" : "",
                       tide_report_format_time(tl, t, label, sizeof label));
        if (at > UINT64_MAX - each) break;
    }
    tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", TIDE_PLOT_LEFT - 8,
                   label_y, tl->axis == TIDE_AXIS_STEPS ? "step" : "time");
}

void tide_plot_peak_line(const tide_timeline *tl, int top, int bottom, tide_text *out) {
    const double x = tide_plot_x(tl, tl->peak_t);
    tide_text_addf(out, "<line class=\"peakl\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, top, bottom);
}
