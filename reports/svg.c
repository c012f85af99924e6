// SPDX-License-Identifier: MIT
//
// Pictures as elements of the page, and one below the other as a document of their own.
#include <stdio.h>

#include "analysis/html_text.h"
#include "reports/plot.h"
#include "reports/render.h"

int tide_report_add_picture(tide_report_picture draw, const tide_report *r, const tide_report_side *s,
                            const char *label, int y, tide_text *out) {
    tide_text inner = {0};
    const int height = draw(r, s, &inner);
    if (inner.failed) out->failed = true;
    if (height > 0) {
        tide_text_add(out, "<svg class=\"plot\"");
        if (y >= 0) tide_text_addf(out, " x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"", y, TIDE_PLOT_WIDTH, height);
        tide_text_addf(out, " viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", TIDE_PLOT_WIDTH, height);
        tide_html_add(out, label);
        tide_text_add(out, "\">\n");
        tide_text_add(out, tide_text_str(&inner));
        tide_text_add(out, "</svg>\n");
    }
    tide_text_deinit(&inner);
    return height;
}

/// The style of the page is inside: a viewer knows nothing of the page.
void tide_report_svg(const tide_report *r, tide_text *out) {
    static const struct {
        tide_report_picture draw;
        const char *label;
    } pictures[] = {{tide_report_svg_curve, "Live bytes over time"},
                    {tide_report_svg_lifetimes, "Lifetimes"},
                    {tide_report_svg_memory, "Memory over time, addresses upwards"}};
    enum { HEAD = 34, GAP = 16 };
    tide_text body = {0};
    int y = 0;
    const tide_report_side *sides[] = {&r->a, &r->b};
    for (int k = 0; k < (r->has_b ? 2 : 1); k++) {
        tide_text_addf(&body, "<text x=\"8\" y=\"%d\" class=\"head\">", y + 22);
        tide_html_add_cut(&body, tide_report_title(sides[k]), 120);
        tide_text_add(&body, "</text>\n");
        y += HEAD;
        for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
            const int height = tide_report_add_picture(pictures[i].draw, r, sides[k], pictures[i].label, y, &body);
            y += height > 0 ? height + GAP : 0;
        }
    }
    tide_text_addf(
        out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>",
        TIDE_PLOT_WIDTH, y, TIDE_PLOT_WIDTH, y);
    tide_text_add(out, tide_report_page_style);
    tide_text_add(out, "svg .head{font-size:16px;font-weight:600}</style>\n<rect width=\"100%\" height=\"100%\" "
                       "fill=\"var(--bg)\"/>\n");
    tide_plot_hatches(out);
    tide_text_add(out, tide_text_str(&body));
    tide_text_add(out, "</svg>\n");
    if (body.failed) out->failed = true;
    tide_text_deinit(&body);
}
