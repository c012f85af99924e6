// SPDX-License-Identifier: MIT
//
// The shared time axis and hatches. See plot.h.
#include "reports/plot.h"

enum { N_TICKS = 9 };

static uint64_t span_of(const tide_subject_facts *f) {
    return f->end > f->begin ? (uint64_t)f->end - (uint64_t)f->begin : 1;
}

double tide_plot_x(const tide_subject_facts *f, int64_t t) {
    if (t <= f->begin) return TIDE_PLOT_LEFT;
    if (t >= f->end) return TIDE_PLOT_RIGHT;
    const double at = (double)((uint64_t)t - (uint64_t)f->begin) / (double)span_of(f);
    return TIDE_PLOT_LEFT + at * (TIDE_PLOT_RIGHT - TIDE_PLOT_LEFT);
}

static uint64_t tick_time(uint64_t span) {
    uint64_t each = 1;
    for (int i = 0; span / each > N_TICKS && each < UINT64_MAX / 10; i++) each = i % 3 == 1 ? each / 2 * 5 : each * 2;
    return each;
}

void tide_plot_ticks(const tide_subject_facts *f, int top, int bottom, int label_y, tide_text *out) {
    const uint64_t span = span_of(f), each = tick_time(span);
    const uint64_t past = ((uint64_t)f->begin - (uint64_t)f->origin) % each; // round numbers since the origin
    for (uint64_t at = past == 0 ? 0 : each - past; at < span; at += each) {
        const int64_t t = (int64_t)((uint64_t)f->begin + at);
        char label[48];
        const double x = tide_plot_x(f, t);
        tide_text_addf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, top, bottom);
        // The last label must not leave the picture.
        tide_text_addf(out, "<text class=\"l\" x=\"%.1f\" y=\"%d\"%s>%s</text>\n", x, label_y,
                       x > TIDE_PLOT_RIGHT - 40 ? " text-anchor=\"end\"" : "",
                       tide_report_format_time(f, t, false, label, sizeof label));
        if (at > UINT64_MAX - each) break;
    }
    tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", TIDE_PLOT_LEFT - 8,
                   label_y, f->axis == TIDE_AXIS_STEPS ? "step" : "time");
}

void tide_plot_peak_line(const tide_subject_facts *f, int top, int bottom, tide_text *out) {
    const double x = tide_plot_x(f, f->peak.t);
    tide_text_addf(out, "<line class=\"peakl\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, top, bottom);
}

static void hatch(int id, const char *turn, const char *mark, tide_text *out) {
    tide_text_addf(out,
                   "<pattern id=\"h%d\" class=\"p%d\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"%s>"
                   "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/>%s</pattern>\n",
                   id, id, turn, mark);
}

void tide_plot_hatches(tide_text *out) {
    static const char half[] = "<rect width=\"3\" height=\"6\" fill=\"currentColor\"/>";
    tide_text_add(out, "<svg width=\"0\" height=\"0\" class=\"defs\" aria-hidden=\"true\"><defs>\n");
    hatch(1, " patternTransform=\"rotate(45)\"", half, out);
    hatch(2, "", half, out);
    hatch(3, "", "<circle cx=\"3\" cy=\"3\" r=\"1.6\" fill=\"currentColor\"/>", out);
    hatch(4, "", "<rect width=\"6\" height=\"3\" fill=\"currentColor\"/>", out);
    hatch(5, " patternTransform=\"rotate(-45)\"", half, out);
    tide_text_add(out, "</defs></svg>\n");
}
