// SPDX-License-Identifier: MIT
//
// Devices over time: what is in use of each, one area upon the other, up to what it has, or where hardly any of it is
// in use up to a little above the highest.
#include <math.h>
#include <stdio.h>

#include "analysis/html_text.h"
#include "reports/render.h"
#include "reports/svg_axis.h"

enum { HEIGHT = 120, GAP = 16, TOP = 8, N = TIDE_REPORT_POOL_COLUMNS };

/// In the order of the stack, from below: also of the legend.
enum { ALLOCATORS, OUTSIDE, UNEXPLAINED, FREE, N_AREAS };
static const struct {
    const char *class, *words;
} areas[N_AREAS] = {
    [ALLOCATORS] = {"k0", "allocators of the program"},
    [OUTSIDE] = {"k1", "outside of them: taken from the driver itself"},
    [UNEXPLAINED] = {"k3", "unexplained: in use and in no event (contexts, streams, other processes)"},
    [FREE] = {"region", "free"},
};

static uint64_t known(uint64_t bytes) { return bytes != TIDE_UNKNOWN_BYTES ? bytes : 0; }

/// Upper edge of an area.
static uint64_t edge(const tide_device_figures *f, int area, uint64_t top) {
    uint64_t bytes = f->allocators_bytes;
    if (area >= OUTSIDE) bytes += f->outside_bytes;
    if (area >= UNEXPLAINED) bytes += known(f->unexplained_bytes);
    return area == FREE && f->total_bytes != TIDE_UNKNOWN_BYTES && bytes < top ? top : bytes;
}

static void add_area(const tide_device_figures *c, int area, int y, uint64_t top, tide_text *out) {
    const double scale = (double)HEIGHT / (double)top, width = (PLOT_RIGHT - PLOT_LEFT) / (double)N;
    // In tenths, and no transform: that would shrink the hatches.
    long x = 10L * PLOT_LEFT, at = 10L * (y + HEIGHT);
    tide_text_addf(out, "<path class=\"%s\" d=\"M%.1f %.1f", areas[area].class, (double)x / 10, (double)at / 10);
    for (int i = 0; i <= N; i++) {
        const uint64_t bytes = i < N ? edge(&c[i], area, top) : 0;
        const long to_x = lround(10.0 * (PLOT_LEFT + width * i));
        const long to_y = lround(10.0 * (y + HEIGHT - (double)(bytes < top ? bytes : top) * scale));
        if (to_y == at && i < N) continue;
        if (to_x != x) tide_text_addf(out, "h%.1f", (double)(to_x - x) / 10);
        if (to_y != at) tide_text_addf(out, "v%.1f", (double)(to_y - at) / 10);
        x = to_x;
        at = to_y;
    }
    tide_text_add(out, "z\"/>\n");
}

/// What the picture goes up to: all that there is, if a quarter of it is in use.
static uint64_t top_of(const tide_device_figures *c, uint64_t total) {
    uint64_t most = 1;
    for (int i = 0; i < N; i++) {
        const uint64_t bytes = edge(&c[i], UNEXPLAINED, 0);
        if (bytes > most) most = bytes;
    }
    if (total == TIDE_UNKNOWN_BYTES) return most;
    return most >= total / 4 ? (most > total ? most : total) : most + most / 8;
}

static void add_label(const tide_device_row *d, uint64_t top, int y, tide_text *out) {
    char used[24], total[24], upper[24];
    tide_text_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", PLOT_LEFT - 8, y + 14);
    tide_html_add_cut(out, d->device, 24);
    tide_text_addf(out, "</text><text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", PLOT_LEFT - 8, y + 31);
    if (d->figures.used_bytes == TIDE_UNKNOWN_BYTES)
        tide_text_add(out, "the driver was not asked");
    else
        tide_text_addf(out, "%s of %s", tide_format_bytes(d->figures.used_bytes, used, sizeof used),
                       tide_format_bytes(d->figures.total_bytes, total, sizeof total));
    tide_text_addf(out, "</text><text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">drawn up to %s</text>\n",
                   PLOT_LEFT - 8, y + 48, tide_format_bytes(top, upper, sizeof upper));
}

int tide_report_svg_devices(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    const size_t n = s->device_memory.n;
    if (n == 0 || s->facts->end <= s->facts->begin) return 0;
    const int bottom = TOP + (HEIGHT + GAP) * (int)n;
    tide__svg_add_ticks(s->facts, TOP, bottom, bottom + 14, out);
    for (size_t i = 0; i < n; i++) {
        const tide_device_figures *c = &s->device_columns[i * N];
        const int y = TOP + (HEIGHT + GAP) * (int)i;
        const uint64_t top = top_of(c, s->devices[i].figures.total_bytes);
        for (int area = FREE; area >= 0; area--) add_area(c, area, y, top, out);
        tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", PLOT_LEFT, PLOT_RIGHT,
                       y + HEIGHT, y + HEIGHT);
        add_label(&s->devices[i], top, y, out);
    }
    tide__svg_add_peak_line(s->facts, TOP, bottom, out);
    return bottom + 22;
}

void tide_report_devices_legend(tide_text *out) {
    tide_text_add(out, "<ul class=\"legend\">\n");
    for (int i = 0; i < N_AREAS; i++)
        tide_text_addf(out,
                       "<li><svg width=\"28\" height=\"12\" aria-hidden=\"true\"><rect class=\"%s\" width=\"28\" "
                       "height=\"12\"/></svg>%s</li>\n",
                       areas[i].class, areas[i].words);
    tide_text_add(out, "</ul>\n");
}
