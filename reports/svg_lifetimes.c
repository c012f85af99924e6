// SPDX-License-Identifier: MIT
//
// Lifetimes as SVG: a row for each of the largest, colour and hatch by what it is, a tooltip with name, size and life.
#include "reports/render.h"

#include <stdio.h>

#include "analysis/html_text.h"
#include "reports/plot.h"

enum { TOP = 24, MIN_ROW = 3, MAX_ROW = 18, AIM_HEIGHT = 1400, MIN_LABEL_ROW = 11, LABEL_CHARS = 26 };

static const tide_item_shape *shape_of(const tide_report_side *s, uint32_t i) { return tide_items_shape(s->items, i); }

static void add_tooltip(const tide_report_side *s, uint32_t i, tide_text *out) {
    const tide_item_site *site = tide_items_site(s->items, i);
    char size[24], a[48], b[48];
    tide_text_add(out, "<title>");
    tide_html_add(out, site->name);
    if (site->owner[0] != '\0') {
        tide_text_add(out, "\nby ");
        tide_html_add(out, site->owner);
    }
    tide_text_addf(out, "\n%s\n%s to %s</title>", tide_format_bytes(shape_of(s, i)->size_bytes, size, sizeof size),
                   tide_report_format_time(s->facts, tide_items_begin(s->items, i), true, a, sizeof a),
                   tide_items_is_open_ended(s->items, i)
                       ? "never freed"
                       : tide_report_format_time(s->facts, tide_items_end(s->items, i), true, b, sizeof b));
}

/// Those that come and go first, then those that persist.
static void put_in_order(const tide_report_side *s, uint32_t *order) {
    size_t n = 0;
    for (int persistent = 0; persistent < 2; persistent++) {
        for (size_t k = 0; k < s->n_largest; k++)
            if (shape_of(s, s->largest[k])->persistent == (persistent == 1)) order[n++] = s->largest[k];
    }
}

static void add_names(const tide_report_side *s, const uint32_t *order, int height, tide_text *out) {
    if (height < MIN_LABEL_ROW) return;
    tide_text_add(out, "<g text-anchor=\"end\">\n");
    for (size_t i = 0; i < s->n_largest; i++) {
        const char *name = tide_items_site(s->items, order[i])->name;
        tide_text_addf(out, "<text x=\"%d\" y=\"%d\">", TIDE_PLOT_LEFT - 8, TOP + height * (int)i + height - 5);
        tide_html_add_cut(out, name[0] != '\0' ? name : "(no name)", LABEL_CHARS);
        tide_text_add(out, "</text>\n");
    }
    tide_text_add(out, "</g>\n");
}

/// A bar is a thick line: one group per fill holds what all its bars share, and each says only where it is.
static void add_bars(const tide_report_side *s, const uint32_t *order, int height, int fill, tide_text *out) {
    const int bar = height > 4 ? height - 3 : height - 1;
    bool any = false;
    for (size_t i = 0; i < s->n_largest; i++) {
        if ((int)shape_of(s, order[i])->fill != fill) continue;
        if (!any) tide_text_addf(out, "<g class=\"b%d\" stroke-width=\"%d\">\n", fill, bar);
        any = true;
        const double x0 = tide_plot_x(s->facts, tide_items_begin(s->items, order[i]));
        const double x1 = tide_plot_x(s->facts, tide_items_end(s->items, order[i]));
        const double y = TOP + height * (double)i + bar / 2.0;
        tide_text_addf(out, "<path d=\"M%.1f %gh%.1f\">", x0, y, x1 - x0 < 1.0 ? 1.0 : x1 - x0);
        add_tooltip(s, order[i], out);
        tide_text_add(out, "</path>\n");
    }
    if (any) tide_text_add(out, "</g>\n");
}

int tide_report_svg_lifetimes(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    if (s->n_largest == 0) return 0;
    uint32_t order[TIDE_REPORT_MAX_STILL];
    put_in_order(s, order);
    int height = AIM_HEIGHT / (int)s->n_largest;
    height = height < MIN_ROW ? MIN_ROW : height > MAX_ROW ? MAX_ROW : height;
    const int bottom = TOP + height * (int)s->n_largest;
    tide_plot_ticks(s->facts, TOP - 6, bottom, TOP - 10, out);
    add_names(s, order, height, out);
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) add_bars(s, order, height, f, out);
    tide_plot_peak_line(s->facts, TOP - 6, bottom, out);
    return bottom + 8;
}
