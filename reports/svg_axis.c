// SPDX-License-Identifier: MIT
//
// One time axis with the same edges and ticks for all still pictures. See svg_axis.h.
#include "reports/svg_axis.h"

#include <inttypes.h>

enum { N_TICKS = 9 };

uint64_t tide__svg_span(const tide_subject_facts *f) {
    return f->end > f->begin ? (uint64_t)f->end - (uint64_t)f->begin : 1;
}

double tide__svg_x(const tide_subject_facts *f, int64_t t) {
    if (t <= f->begin) return PLOT_LEFT;
    if (t >= f->end) return PLOT_RIGHT;
    const double at = (double)((uint64_t)t - (uint64_t)f->begin) / (double)tide__svg_span(f);
    return PLOT_LEFT + at * (PLOT_RIGHT - PLOT_LEFT);
}

static uint64_t tick_time(uint64_t span) {
    uint64_t each = 1;
    for (int i = 0; span / each > N_TICKS && each < UINT64_MAX / 10; i++) each = i % 3 == 1 ? each / 2 * 5 : each * 2;
    return each;
}

void tide__svg_add_ticks(const tide_subject_facts *f, int top, int bottom, int label_y, tide_text *out) {
    const uint64_t span = tide__svg_span(f), each = tick_time(span);
    const uint64_t past = ((uint64_t)f->begin - (uint64_t)f->origin) % each; // round numbers since the origin
    for (uint64_t at = past == 0 ? 0 : each - past; at < span; at += each) {
        const int64_t t = (int64_t)((uint64_t)f->begin + at);
        char label[48];
        const double x = tide__svg_x(f, t);
        tide_text_addf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, top, bottom);
        // The last label must not leave the picture.
        tide_text_addf(out, "<text class=\"l\" x=\"%.1f\" y=\"%d\"%s>%s</text>\n", x, label_y,
                       x > PLOT_RIGHT - 40 ? " text-anchor=\"end\"" : "",
                       tide_report_format_time(f, t, false, label, sizeof label));
        if (at > UINT64_MAX - each) break;
    }
    tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", PLOT_LEFT - 8, label_y,
                   f->axis == TIDE_AXIS_STEPS ? "step" : "time");
}

void tide__svg_add_peak_line(const tide_subject_facts *f, int top, int bottom, tide_text *out) {
    const double x = tide__svg_x(f, f->peak.t);
    tide_text_addf(out, "<line class=\"peakl\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, top, bottom);
}
