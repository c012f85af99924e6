// SPDX-License-Identifier: MIT
//
// Memory as SVG: time across, addresses upwards, a band for each region, holes as holes; and the parts of the peak as a
// bar that sums.
#include "reports/render.h"

#include <stdio.h>

#include "analysis/html_text.h"
#include "reports/plot.h"

enum { TOP = 24, HEIGHT = 420, GAP = 6, MAX_REGIONS = 40, MIN_BAND = 8 };

/// Where a region's band is: lowest addresses at the bottom, as high as its share of all bytes.
typedef struct band {
    double top, height;
} band;

static void make_bands(const tide_space *sp, band *bands, size_t n) {
    const double room = HEIGHT - GAP * (double)(n - 1) - MIN_BAND * (double)n;
    double at = TOP + HEIGHT;
    for (size_t i = 0; i < n; i++) {
        bands[i].height = MIN_BAND + (sp->bytes > 0 ? room * (double)sp->regions[i].bytes / (double)sp->bytes : 0.0);
        bands[i].top = at - bands[i].height;
        at = bands[i].top - GAP;
    }
}

static void add_region(const tide_region *g, const band *b, tide_text *out) {
    char size[24];
    const double y = b->top + b->height / 2.0;
    tide_text_addf(out, "<rect class=\"region\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", TIDE_PLOT_LEFT,
                   b->top, TIDE_PLOT_RIGHT - TIDE_PLOT_LEFT, b->height);
    tide_text_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", TIDE_PLOT_LEFT - 8, y - 2.0);
    tide_html_add_cut(out, g->label, 26);
    tide_text_addf(out, "</text><text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                   TIDE_PLOT_LEFT - 8, y + 12.0, tide_format_bytes(g->bytes, size, sizeof size));
}

static void add_items(const tide_report_side *s, const band *bands, size_t n, int fill, tide_text *out) {
    bool any = false;
    for (size_t k = 0; k < s->n_largest; k++) {
        const uint32_t i = s->largest[k];
        uint64_t lo, hi;
        if ((int)tide_items_shape(s->items, i)->fill != fill) continue;
        if (!tide_space_of_item(&s->space, s->items, i, &lo, &hi)) continue;
        const size_t g = tide_space_region_at(&s->space, lo);
        if (g >= n) continue;
        const tide_region *region = &s->space.regions[g];
        const double scale = region->bytes > 0 ? bands[g].height / (double)region->bytes : 0.0;
        const double y = bands[g].top + bands[g].height - (double)(hi - region->at) * scale;
        const double x0 = tide_plot_x(s->facts, tide_items_begin(s->items, i)),
                     x1 = tide_plot_x(s->facts, tide_items_end(s->items, i));
        if (!any) tide_text_addf(out, "<g class=\"k%d tile\">\n", fill);
        any = true;
        tide_text_addf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x0, y,
                       x1 - x0 < 1.0 ? 1.0 : x1 - x0, (double)(hi - lo) * scale);
    }
    if (any) tide_text_add(out, "</g>\n");
}

int tide_report_svg_memory(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    band bands[MAX_REGIONS];
    const size_t n = s->space.n < MAX_REGIONS ? s->space.n : MAX_REGIONS;
    if (n == 0) return 0;
    make_bands(&s->space, bands, n);
    tide_plot_ticks(s->facts, TOP - 6, TOP + HEIGHT, TOP - 10, out);
    for (size_t i = 0; i < n; i++) add_region(&s->space.regions[i], &bands[i], out);
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) add_items(s, bands, n, f, out);
    for (size_t i = 0; i < n; i++) {
        const tide_region *g = &s->space.regions[i];
        if (g->bound_bytes == 0 || g->bytes == 0) continue;
        const double y = bands[i].top + bands[i].height * (1.0 - (double)g->bound_bytes / (double)g->bytes);
        tide_text_addf(out, "<line class=\"boundl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", TIDE_PLOT_LEFT,
                       TIDE_PLOT_RIGHT, y, y);
    }
    tide_plot_peak_line(s->facts, TOP - 6, TOP + HEIGHT, out);
    return TOP + HEIGHT + 8;
}

// ---- the parts of the peak ----

int tide_report_svg_parts(const tide_report *r, const tide_report_side *s, tide_text *out) {
    enum { Y = 4, BAR = 26 };
    const double width = TIDE_PLOT_WIDTH;
    char size[24];
    (void)r;
    if (s->why.held_bytes == 0) return 0;
    double x = 0.0;
    for (int p = 0; p < TIDE_N_PARTS; p++) {
        const double w = width * (double)s->why.parts[p] / (double)s->why.held_bytes;
        if (s->why.parts[p] == 0) continue;
        tide_text_addf(
            out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s %s</title></rect>\n",
            p, x, Y, w, BAR, tide_part_name((tide_part_kind)p), tide_format_bytes(s->why.parts[p], size, sizeof size));
        if (w > 90.0)
            tide_text_addf(out, "<text class=\"onbar\" x=\"%.1f\" y=\"%d\">%s</text>\n", x + 6.0, Y + 17,
                           tide_part_name((tide_part_kind)p));
        x += w;
    }
    return BAR + 2 * Y;
}
