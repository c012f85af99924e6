// SPDX-License-Identifier: MIT
//
// svg_map: memory at the peak: a box for each region that holds something then, addresses upwards, in it who lies
// where. Regions of nothing but folded weights are one box. See render.h.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/html_text.h"
#include "core/base/host_alloc.h"
#include "reports/render.h"

enum {
    TOP = 8,
    HEIGHT = 420,
    LEFT = 122,
    RIGHT = TIDE_REPORT_MAP_WIDTH - 6,
    GAP = 6,
    MIN_BOX = 15,
    MAX_BOXES = 20,
    LABEL_CHARS = 16,
    NAME_CHARS = 30,
    MIN_LABEL = 14,
};

/// What is drawn: regions in the order of their addresses, and where their boxes are.
typedef struct map {
    const tide_report_side *side;
    size_t regions[MAX_BOXES];
    uint64_t lo[MAX_BOXES], hi[MAX_BOXES]; // of the axis
    double top[MAX_BOXES], height[MAX_BOXES];
    size_t n, n_left_out;
    bool has_weights; // some regions hold nothing but folded weights
    double weights_top;
} map;

typedef struct contents {
    bool weights, other; // folded weights; something else
    uint64_t lo, hi;     // of what else
} contents;

/// Region of a live item and its place in it; SIZE_MAX: it has none.
static size_t place_of(const tide_report_side *s, const tide_live_item *x, uint64_t *lo, uint64_t *hi) {
    if (x->item == TIDE_NO_ITEM || x->is_unused) return SIZE_MAX;
    if (!tide_space_of_item(&s->space, s->items, x->item, lo, hi)) return SIZE_MAX;
    return tide_space_region_at(&s->space, *lo);
}

/// Which regions hold something at the peak. False without memory.
static bool find_regions(map *m) {
    const tide_report_side *s = m->side;
    contents *all = tide_host_calloc(s->space.n, sizeof *all);
    uint64_t lo, hi;
    if (all == NULL) return false;
    for (size_t k = 0; k < s->why.live.n; k++) {
        const tide_live_item *x = &s->why.live.items[k];
        const size_t g = place_of(s, x, &lo, &hi);
        if (g == SIZE_MAX) continue;
        if (s->weights.folded && x->shape.kind == TIDE_KIND_PERSISTENT) {
            all[g].weights = true;
            continue;
        }
        if (!all[g].other || lo < all[g].lo) all[g].lo = lo;
        if (!all[g].other || hi > all[g].hi) all[g].hi = hi;
        all[g].other = true;
    }
    for (size_t g = 0; g < s->space.n; g++) {
        const tide_region *r = &s->space.regions[g];
        const bool narrowed = r->is_guessed && all[g].weights; // holes in it would be guesses
        m->has_weights |= all[g].weights && (narrowed || !all[g].other);
        if (!all[g].other) continue;
        if (m->n == MAX_BOXES) {
            m->n_left_out++;
            continue;
        }
        m->lo[m->n] = narrowed ? all[g].lo : r->at;
        m->hi[m->n] = narrowed ? all[g].hi : r->at + r->bytes;
        m->regions[m->n++] = g;
    }
    tide_host_free(all);
    return true;
}

/// Lowest addresses at the bottom, each box as high as its share of all bytes.
static void place_boxes(map *m) {
    const double fixed = MIN_BOX * (double)(m->n + m->has_weights) + GAP * (double)(m->n + m->has_weights);
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n; i++) bytes += m->hi[i] - m->lo[i];
    double at = TOP + HEIGHT;
    if (m->has_weights) {
        m->weights_top = at - MIN_BOX;
        at = m->weights_top - GAP;
    }
    for (size_t i = 0; i < m->n; i++) {
        const double share = bytes > 0 ? (double)(m->hi[i] - m->lo[i]) / (double)bytes : 0.0;
        m->height[i] = MIN_BOX + (HEIGHT - fixed) * share;
        m->top[i] = at - m->height[i];
        at = m->top[i] - GAP;
    }
}

/// Its name stands in the middle, above pools at the top.
static void add_box(double top, double height, const char *label, uint64_t bytes, const char *class, bool has_pools,
                    tide_text *out) {
    char size[24];
    const double y = has_pools && height >= 30 ? top + 14.0 : top + height / 2.0;
    tide_text_addf(out, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", class, LEFT, top,
                   RIGHT - LEFT, height);
    tide_text_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, height < 30 ? y + 4.0 : y - 2.0);
    tide_html_add_cut(out, label, LABEL_CHARS);
    tide_text_add(out, "</text>");
    if (height >= 30)
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 8, y + 12.0,
                       tide_format_bytes(bytes, size, sizeof size));
    tide_text_add(out, "\n");
}

static void add_item(const map *m, const tide_live_item *x, tide_text *out) {
    uint64_t lo, hi;
    char size[24];
    const size_t g = place_of(m->side, x, &lo, &hi);
    size_t i = 0;
    while (i < m->n && m->regions[i] != g) i++;
    if (i == m->n) return;
    if (tide_report_is_folded(m->side, x->item) && (lo < m->lo[i] || hi > m->hi[i])) return;
    const uint64_t bytes = m->hi[i] - m->lo[i];
    const double scale = bytes > 0 ? m->height[i] / (double)bytes : 0.0;
    const double y = m->top[i] + m->height[i] - (double)(hi - m->lo[i]) * scale;
    const double height = (double)(hi - lo) * scale;
    tide_text_addf(out,
                   "<g class=\"tile\"><rect class=\"k%d\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/><title>",
                   (int)x->shape.fill, LEFT, y, RIGHT - LEFT, height);
    tide_html_add(out, x->site.name);
    tide_text_addf(out, "\n%s at %" PRIu64 "</title>", tide_format_bytes(x->shape.size_bytes, size, sizeof size),
                   lo - m->side->space.regions[g].at);
    if (height >= MIN_LABEL && !tide_report_is_folded(m->side, x->item)) {
        tide_text_addf(out, "<text class=\"on\" x=\"%d\" y=\"%.1f\">", LEFT + 6, y + height / 2.0 + 4.0);
        tide_html_add_cut(out, x->site.name[0] != '\0' ? x->site.name : "(no name)", NAME_CHARS);
        tide_text_add(out, "</text>");
    }
    tide_text_add(out, "</g>\n");
}

/// Where the pools of a colouring plan meet, and their numbers where they have room.
static void add_pools(const map *m, size_t i, tide_text *out) {
    enum { LEAST = 13, NAME = 30 };
    const tide_region *g = &m->side->space.regions[m->regions[i]];
    const double scale = g->bytes > 0 ? m->height[i] / (double)g->bytes : 0.0, foot = m->top[i] + m->height[i];
    double free = m->top[i] + NAME;
    for (size_t k = g->n_pools; k-- > 0;) {
        const tide_region_pool *p = &g->pools[k];
        const double y = foot - (double)p->offset_bytes * scale, middle = y - (double)p->bytes * scale / 2.0;
        if (p->offset_bytes > 0) tide_text_addf(out, "<path class=\"poolb\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        if (middle - LEAST / 2.0 < free) continue;
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">pool %" PRIu32 "</text>\n",
                       LEFT - 8, middle + 4.0, p->number);
        free = middle + LEAST / 2.0;
    }
}

int tide_report_svg_map(const tide_report *r, const tide_report_side *s, tide_text *out) {
    map m = {.side = s};
    char words[64];
    (void)r;
    if (s->space.n == 0) return 0;
    if (!find_regions(&m)) {
        out->failed = true;
        return 0;
    }
    if (m.n + m.has_weights == 0) return 0;
    place_boxes(&m);
    for (size_t i = 0; i < m.n; i++) {
        const tide_region *g = &s->space.regions[m.regions[i]];
        add_box(m.top[i], m.height[i], g->label, m.hi[i] - m.lo[i], "region", g->n_pools > 1, out);
    }
    if (m.has_weights)
        add_box(m.weights_top, MIN_BOX, tide_report_weights_name(&s->weights, words, sizeof words), s->weights.bytes,
                "k3", false, out);
    for (size_t k = 0; k < s->why.live.n && k < TIDE_REPORT_MAX_STILL; k++) add_item(&m, &s->why.live.items[k], out);
    for (size_t i = 0; i < m.n; i++) add_pools(&m, i, out);
    if (m.n_left_out > 0)
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\">%zu more regions are not drawn</text>\n", LEFT,
                       TOP + HEIGHT + 16, m.n_left_out);
    return TOP + HEIGHT + (m.n_left_out > 0 ? 24 : 8);
}
