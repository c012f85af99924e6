// SPDX-License-Identifier: MIT
//
// Pictures as elements of the page, and one below the other as a document of their own.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/html_text.h"
#include "reports/render.h"
#include "reports/svg_axis.h"

static void hatch(int id, const char *turn, const char *mark, tide_text *out) {
    tide_text_addf(out,
                   "<pattern id=\"h%d\" class=\"p%d\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"%s>"
                   "<rect width=\"6\" height=\"6\" fill=\"currentColor\" opacity=\".3\"/>%s</pattern>\n",
                   id, id, turn, mark);
}

void tide_report_svg_hatches(tide_text *out) {
    static const char half[] = "<rect width=\"3\" height=\"6\" fill=\"currentColor\"/>";
    tide_text_add(out, "<svg width=\"0\" height=\"0\" class=\"defs\" aria-hidden=\"true\"><defs>\n");
    hatch(1, " patternTransform=\"rotate(45)\"", half, out);
    hatch(2, "", half, out);
    hatch(3, "", "<circle cx=\"3\" cy=\"3\" r=\"1.6\" fill=\"currentColor\"/>", out);
    hatch(4, "", "<rect width=\"6\" height=\"3\" fill=\"currentColor\"/>", out);
    hatch(5, " patternTransform=\"rotate(-45)\"", half, out);
    tide_text_add(out, "</defs></svg>\n");
}

enum { CURVE_HEIGHT = 300, CURVE_TOP = 26, CURVE_BOTTOM = 262, CURVE_LABEL_Y = 280 };
enum { LANE_HEIGHT = 16, MAX_LANES = 8, LANE_CHAR = 7, LABEL_CHARS = 26 };

typedef struct y_scale {
    uint64_t top; // bytes at the upper edge, above 0
} y_scale;

static double y_of(const y_scale *s, uint64_t bytes) {
    return CURVE_BOTTOM - (double)(bytes < s->top ? bytes : s->top) / (double)s->top * (CURVE_BOTTOM - CURVE_TOP);
}

// ---- the curve of live bytes ----
// The smallest and largest value per column, so that no spike is lost; lines for plan, lower bound and capacity, what
// prediction of the plan beside the measurement.

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
static void add_y_ticks(const y_scale *s, tide_text *out) {
    uint64_t each = 1;
    while (s->top / each > 6) each *= 2;
    for (uint64_t bytes = 0; bytes <= s->top; bytes += each) {
        char label[24];
        const double y = y_of(s, bytes);
        tide_text_addf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", PLOT_LEFT, PLOT_RIGHT,
                       y, y);
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", PLOT_LEFT - 8,
                       y + 4.0, round_bytes(bytes, label, sizeof label));
        if (bytes > UINT64_MAX - each) break;
    }
}

/// An outline in tenths of a unit: whole numbers are short, and relative moves add up without drift.
static void add_outline(const char *class, const y_scale *s, const uint64_t *bytes, size_t n, bool area,
                        tide_text *out) {
    const double width = (PLOT_RIGHT - PLOT_LEFT) / (double)n;
    long x = 10L * PLOT_LEFT, y = area || n == 0 ? 10L * CURVE_BOTTOM : lround(10.0 * y_of(s, bytes[0]));
    tide_text_addf(out, "<path class=\"%s\" transform=\"scale(.1)\" d=\"M%ld %ld", class, x, y);
    for (size_t i = 0; i <= n; i++) {
        const bool last = i == n;
        if (!last && i > 0 && bytes[i] == bytes[i - 1]) continue;
        const long to_x = last ? 10L * PLOT_RIGHT : lround(10.0 * (PLOT_LEFT + width * (double)i));
        const long to_y = last ? 10L * CURVE_BOTTOM : lround(10.0 * y_of(s, bytes[i]));
        if (to_x != x) tide_text_addf(out, "h%ld", to_x - x);
        if (to_y != y && (!last || area)) tide_text_addf(out, "v%ld", to_y - y);
        x = to_x;
        y = to_y;
    }
    tide_text_add(out, area ? "z\"/>\n" : "\"/>\n");
}

static bool peak_is_right(const tide_subject_facts *f) {
    return tide__svg_x(f, f->peak.t) > (PLOT_LEFT + PLOT_RIGHT) / 2.0;
}

/// A labelled line. The label stands on the side where the peak's is not.
static void add_level(const tide_subject_facts *f, const y_scale *s, uint64_t height, const char *class,
                      const char *text, bool above, tide_text *out) {
    const double y = y_of(s, height);
    const bool left = peak_is_right(f);
    tide_text_addf(out, "<line class=\"%sl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", class, PLOT_LEFT,
                   PLOT_RIGHT, y, y);
    tide_text_addf(out, "<text class=\"%st\" x=\"%d\" y=\"%.1f\"%s>%s</text>\n", class,
                   left ? PLOT_LEFT + 4 : PLOT_RIGHT - 4, above ? y - 5.0 : y + 14.0,
                   left ? "" : " text-anchor=\"end\"", text);
}

static void add_levels(const tide_subject_facts *f, const y_scale *s, tide_text *out) {
    const tide_levels *l = &f->levels;
    char text[320], size[24], below[24], name[64], rest[192] = "";
    if (!l->known) return;
    if (l->below > 0)
        snprintf(rest, sizeof rest, " + %s %s", tide_format_bytes(l->below, below, sizeof below), l->words);
    snprintf(text, sizeof text, "%s %s%s", tide_levels_bound_name(l, false, name, sizeof name),
             tide_format_bytes(l->bound - l->below, size, sizeof size), rest);
    add_level(f, s, l->bound, "bound", text, false, out);
    if (l->plan == l->bound) return;
    snprintf(text, sizeof text, "%s %s%s", tide_levels_name(l, false, name, sizeof name),
             tide_format_bytes(l->plan - l->below, size, sizeof size), rest);
    add_level(f, s, l->plan, "plan", text, true, out);
}

static void add_peak(const tide_subject_facts *f, const y_scale *s, tide_text *out) {
    char size[24], when[48];
    const double x = tide__svg_x(f, f->peak.t), y = y_of(s, f->peak_bytes);
    const bool left = peak_is_right(f);
    tide__svg_add_peak_line(f, CURVE_TOP - 8, CURVE_BOTTOM, out);
    tide_text_addf(out, "<circle class=\"peakd\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x, y);
    tide_text_addf(out, "<text class=\"peakt\" x=\"%.1f\" y=\"%d\"%s>peak %s at %s</text>\n", left ? x - 6.0 : x + 6.0,
                   CURVE_TOP - 12, left ? " text-anchor=\"end\"" : "",
                   tide_format_bytes(f->peak_bytes, size, sizeof size),
                   tide_report_format_time(f, f->peak.t, true, when, sizeof when));
}

/// A rectangle as a part of a path: a third of what an element takes.
static void add_box(tide_text *out, double x, double y, double width, double height) {
    tide_text_addf(out, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, y, width, height, width);
}

/// When a run executed its program: a bar for each execution, with its number where there is room, a line for each
/// context. Returns the height it takes.
static int add_executions(const tide_subject_facts *f, int top, tide_text *out) {
    const tide_executions *x = f->executions;
    if (x == NULL || x->n == 0) return 0;
    const size_t n_lanes = x->n_lanes < MAX_LANES ? x->n_lanes : MAX_LANES;
    tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">execution</text>\n", PLOT_LEFT - 8,
                   top + 12);
    double free_from[MAX_LANES] = {0};
    tide_text boxes = {0}, names = {0};
    for (size_t i = 0; i < x->n; i++) {
        const tide_execution *e = &x->items[i];
        if (e->lane >= n_lanes) continue;
        const double x0 = tide__svg_x(f, (int64_t)e->begin_ns);
        const double x1 = tide__svg_x(f, e->last_event != UINT64_MAX ? (int64_t)e->end_ns : f->end);
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        const double width = (double)LANE_CHAR * (double)strlen(name) + 6.0;
        if (x1 - x0 < 1.0 && x0 < free_from[e->lane]) continue; // too narrow to be told from the one before
        add_box(&boxes, x0, top + LANE_HEIGHT * (int)e->lane, x1 - x0 < 1.0 ? 1.0 : x1 - x0, LANE_HEIGHT - 2);
        free_from[e->lane] = x0 + 1.0;
        if (x1 - x0 < width) continue;
        tide_text_addf(&names, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x0 + 3.0, top + LANE_HEIGHT * (int)e->lane + 12,
                       name);
    }
    tide_text_addf(out, "<path class=\"run\" d=\"%s\"/>%s", tide_text_str(&boxes), tide_text_str(&names));
    if (boxes.failed || names.failed) out->failed = true;
    tide_text_deinit(&boxes);
    tide_text_deinit(&names);
    return LANE_HEIGHT * (int)n_lanes + 4;
}

/// Names of steps below the axis of a plan, where there is room for each of them. Returns the height it takes.
static int add_step_names(const tide_report_side *s, int top, tide_text *out) {
    const tide_subject_facts *f = s->facts;
    if (f->axis != TIDE_AXIS_STEPS || s->n_steps == 0) return 0;
    double end = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) tide_text_add(out, "<g class=\"steps\">\n");
        for (size_t i = 0; i < s->n_steps; i++) {
            const double x = tide__svg_x(f, s->steps[i].begin),
                         width = LANE_CHAR * (double)strlen(s->steps[i].name) + 6.0;
            end = i + 1 < s->n_steps ? tide__svg_x(f, s->steps[i + 1].begin) : PLOT_RIGHT;
            if (pass == 0 && end - x < width) return 0;
            if (pass == 0) continue;
            tide_text_addf(out, "<text class=\"l\" x=\"%.1f\" y=\"%d\">", x + 3.0, top + 12);
            tide_html_add(out, s->steps[i].name);
            tide_text_add(out, "</text>\n");
        }
    }
    tide_text_add(out, "</g>\n");
    return LANE_HEIGHT;
}

int tide_report_svg_curve(const tide_report *r, const tide_report_side *side, tide_text *out) {
    const tide_subject_facts *f = side->facts;
    y_scale s = {.top = f->peak_bytes > 0 ? f->peak_bytes : 1};
    char size[24], label[96];
    if (f->levels.known && f->levels.plan > s.top) s.top = f->levels.plan;
    if (f->levels.known && f->levels.bound > s.top) s.top = f->levels.bound;
    if (side->reserved != NULL && side->reserved_bytes > s.top) s.top = side->reserved_bytes;
    // A capacity far above would leave nothing to see of the curve: it is named instead.
    const uint64_t capacity = tide_report_left_for_tensors(r, side);
    const bool shows_capacity = capacity > 0 && capacity / 4 < s.top;
    if (shows_capacity && capacity > s.top) s.top = capacity;
    add_y_ticks(&s, out);
    tide__svg_add_ticks(f, CURVE_TOP, CURVE_BOTTOM, CURVE_LABEL_Y, out);
    add_outline("max", &s, side->max, side->n_columns, true, out);
    if (!side->steps_are_columns) add_outline("min", &s, side->min, side->n_columns, true, out);
    if (side->predicted != NULL) add_outline("predicted", &s, side->predicted, side->n_columns, false, out);
    if (side->reserved != NULL) add_outline("reserved", &s, side->reserved, side->n_columns, false, out);
    tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", PLOT_LEFT, PLOT_RIGHT,
                   CURVE_BOTTOM, CURVE_BOTTOM);
    add_levels(f, &s, out);
    if (shows_capacity) {
        snprintf(label, sizeof label, "capacity%s %s", side->knows_process ? " less the program" : "",
                 tide_format_bytes(capacity, size, sizeof size));
        const double apart = f->levels.known ? y_of(&s, capacity) - y_of(&s, f->levels.bound) : 100;
        add_level(f, &s, capacity, "peak", label, apart > -18 && apart < 18, out);
    }
    add_peak(f, &s, out);
    return CURVE_HEIGHT + add_executions(f, CURVE_LABEL_Y + 8, out) + add_step_names(side, CURVE_LABEL_Y + 4, out);
}

// ---- pools over time ----
// A band each: what is used, above it what is cached up to what was taken from the system; marks where that changed.

enum { POOL_HEIGHT = 44, POOL_GAP = 12, POOL_TOP = 8, MARK = 4 };

/// A band between two heights of each column, as one path.
static void add_band(const char *class, double bottom, double scale, const tide_trace_pool_column *c, size_t n,
                     bool reserved, tide_text *out) {
    const double width = (PLOT_RIGHT - PLOT_LEFT) / (double)n;
    long x = 10L * PLOT_LEFT, y = lround(10.0 * bottom);
    tide_text_addf(out, "<path class=\"%s\" transform=\"scale(.1)\" d=\"M%ld %ld", class, x, y);
    for (size_t i = 0; i <= n; i++) {
        const uint64_t bytes = i == n ? 0 : reserved ? c[i].reserved_bytes : c[i].active_bytes;
        const long to_x = i == n ? 10L * PLOT_RIGHT : lround(10.0 * (PLOT_LEFT + width * (double)i));
        const long to_y = lround(10.0 * (bottom - (double)bytes * scale));
        if (to_y == y && i < n) continue;
        if (to_x != x) tide_text_addf(out, "h%ld", to_x - x);
        if (to_y != y) tide_text_addf(out, "v%ld", to_y - y);
        x = to_x;
        y = to_y;
    }
    tide_text_add(out, "z\"/>\n");
}

/// The highest that is reserved, and the worst fragmentation.
static uint64_t extremes_of(const tide_trace_pool_column *c, size_t n, double *fragmentation) {
    uint64_t top = 0;
    *fragmentation = -1;
    for (size_t i = 0; i < n; i++) {
        if (c[i].reserved_bytes > top) top = c[i].reserved_bytes;
        if ((double)c[i].fragmentation > *fragmentation) *fragmentation = (double)c[i].fragmentation;
    }
    return top;
}

static void add_pool_marks(const tide_report_side *s, const tide_pool *p, int y, tide_text *out) {
    for (size_t i = 0; i < s->history.n_marks; i++) {
        const tide_pool_mark *m = &s->history.marks[i];
        char size[24], when[48];
        if (m->pool != p->number || m->t < s->facts->begin) continue;
        tide_text_addf(out, "<path class=\"mark\" d=\"M%.1f %dl%d %dh%dz\"><title>%s %s at %s",
                       tide__svg_x(s->facts, m->t), m->is_growth ? y - MARK : y + MARK, -MARK,
                       m->is_growth ? 2 * MARK : -2 * MARK, 2 * MARK, m->is_growth ? "took" : "gave back",
                       tide_format_bytes(m->bytes, size, sizeof size),
                       tide_report_format_time(s->facts, m->t, true, when, sizeof when));
        if (m->why[0] != '\0') {
            tide_text_add(out, ", for ");
            tide_html_add(out, m->why);
        }
        tide_text_add(out, "</title></path>\n");
    }
}

static void add_pool(const tide_report_side *s, const tide_pool *p, int y, tide_text *out) {
    const size_t n = s->history.n_columns;
    const tide_trace_pool_column *c = &s->history.columns[p->number * n];
    double fragmentation;
    const uint64_t top = extremes_of(c, n, &fragmentation);
    const double scale = top > 0 ? (double)POOL_HEIGHT / (double)top : 0, bottom = y + POOL_HEIGHT;
    char size[24], context[32] = "", worst[64] = "";
    if (p->context > 0) snprintf(context, sizeof context, " #%" PRIu32, p->context);
    tide_text_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", PLOT_LEFT - 8, y + 14);
    tide_html_add_cut(out, p->name, LABEL_CHARS);
    tide_text_addf(out, "%s</text><text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s, %s</text>\n", context,
                   PLOT_LEFT - 8, y + 29, tide_memory_kind_name(p->kind), tide_format_bytes(top, size, sizeof size));
    if (fragmentation >= 0) {
        snprintf(worst, sizeof worst, "fragmented up to %.0f %%", 100 * fragmentation);
        tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", PLOT_LEFT - 8,
                       y + 43, worst);
    }
    add_band("cached", bottom, scale, c, n, true, out);
    add_band("used", bottom, scale, c, n, false, out);
    tide_text_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", PLOT_LEFT, PLOT_RIGHT,
                   bottom, bottom);
    add_pool_marks(s, p, y, out);
}

int tide_report_svg_pools(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    const size_t n = s->pools.n < TIDE_REPORT_MAX_POOLS ? s->pools.n : TIDE_REPORT_MAX_POOLS;
    if (n == 0 || s->history.columns == NULL) return 0;
    const int height = POOL_HEIGHT + POOL_GAP, bottom = POOL_TOP + height * (int)n;
    tide__svg_add_ticks(s->facts, POOL_TOP, bottom, bottom + 14, out);
    for (size_t i = 0; i < n; i++)
        if (s->pools.items[i].number < s->history.n_pools)
            add_pool(s, &s->pools.items[i], POOL_TOP + height * (int)i, out);
    tide__svg_add_peak_line(s->facts, POOL_TOP, bottom, out);
    return bottom + 22;
}

enum { LIVES_TOP = 24, MIN_ROW = 3, MAX_ROW = 18, AIM_HEIGHT = 1400, MIN_LABEL_ROW = 11 };

// ---- lifetimes ----
// A row each, colour and hatch by what it is, a tooltip with name, size and life; folded weights are one row.

static const tide_item_shape *shape_of(const tide_report_side *s, uint32_t i) { return tide_items_shape(s->items, i); }

/// Rows from top to bottom: the weights together, then these items.
typedef struct lives {
    bool weights;
    const uint32_t *items; // [n - weights]
    size_t n;
    int height; // of a row
} lives;

static const char *when_it_ends(const tide_report_side *s, uint32_t i, char *buf, size_t buf_bytes) {
    if (tide_items_is_open_ended(s->items, i)) return "never freed";
    tide_report_format_time(s->facts, tide_items_end(s->items, i), true, buf, buf_bytes);
    if (tide_items_is_left(s->items, i)) {
        const size_t n = strlen(buf);
        snprintf(buf + n, buf_bytes - n, ", never freed: its process ended");
    }
    return buf;
}

/// Of one that is sized while running: what it is at most, and what came out.
static void add_size(const tide_report_side *s, uint32_t i, tide_text *out) {
    const tide_size x = tide_sizes_find(&s->items->sizes, tide_items_id(s->items, i));
    char bytes[24];
    if (!tide_size_is_bounded(&x)) return;
    tide_text_add(out, " at most: ");
    tide_html_add(out, x.bound);
    if (x.n == 0) return;
    tide_text_add(out, "\ncame out as ");
    tide_html_add(out, x.extents);
    tide_text_addf(out, ", %s", tide_format_bytes(x.bytes, bytes, sizeof bytes));
}

static void add_tooltip(const tide_report_side *s, uint32_t i, tide_text *out) {
    const tide_item_site *site = tide_items_site(s->items, i);
    char size[24], a[48], b[96];
    tide_text_add(out, "<title>");
    tide_html_add(out, site->name);
    if (site->owner[0] != '\0') {
        tide_text_add(out, "\nby ");
        tide_html_add(out, site->owner);
    }
    tide_text_addf(out, "\n%s", tide_format_bytes(shape_of(s, i)->size_bytes, size, sizeof size));
    add_size(s, i, out);
    tide_text_addf(out, "\n%s to %s</title>",
                   tide_report_format_time(s->facts, tide_items_begin(s->items, i), true, a, sizeof a),
                   when_it_ends(s, i, b, sizeof b));
}

static void add_name(const lives *l, size_t row, const char *name, tide_text *out) {
    tide_text_addf(out, "<text x=\"%d\" y=\"%d\">", PLOT_LEFT - 8, LIVES_TOP + l->height * (int)row + l->height - 5);
    tide_html_add_cut(out, name[0] != '\0' ? name : "(no name)", LABEL_CHARS);
    tide_text_add(out, "</text>\n");
}

static void add_names(const tide_report_side *s, const lives *l, tide_text *out) {
    char words[64];
    if (l->height < MIN_LABEL_ROW) return;
    tide_text_add(out, "<g text-anchor=\"end\">\n");
    if (l->weights) add_name(l, 0, tide_report_weights_name(&s->weights, words, sizeof words), out);
    for (size_t i = l->weights; i < l->n; i++)
        add_name(l, i, tide_items_site(s->items, l->items[i - l->weights])->name, out);
    tide_text_add(out, "</g>\n");
}

/// A bar is a thick line.
static void add_bar(const tide_report_side *s, const lives *l, size_t row, int64_t begin, int64_t end, tide_text *out) {
    const int bar = l->height > 4 ? l->height - 3 : l->height - 1;
    const double x0 = tide__svg_x(s->facts, begin), x1 = tide__svg_x(s->facts, end);
    tide_text_addf(out, "<path d=\"M%.1f %gh%.1f\">", x0, LIVES_TOP + l->height * (double)row + bar / 2.0,
                   x1 - x0 < 1.0 ? 1.0 : x1 - x0);
}

/// One group per fill holds what all its bars share, and each says only where it is.
static void add_bars(const tide_report_side *s, const lives *l, int fill, tide_text *out) {
    const bool folded = l->weights && fill == TIDE_ITEM_FILL_WEIGHT;
    char size[24], words[64];
    bool any = folded;
    for (size_t i = l->weights; i < l->n; i++) any |= (int)shape_of(s, l->items[i - l->weights])->fill == fill;
    if (!any) return;
    tide_text_addf(out, "<g class=\"b%d\" stroke-width=\"%d\">\n", fill, l->height > 4 ? l->height - 3 : l->height - 1);
    if (folded) {
        add_bar(s, l, 0, s->weights.begin, s->weights.end, out);
        tide_text_addf(out, "<title>%s\n%s</title></path>\n",
                       tide_report_weights_name(&s->weights, words, sizeof words),
                       tide_format_bytes(s->weights.bytes, size, sizeof size));
    }
    for (size_t i = l->weights; i < l->n; i++) {
        const uint32_t item = l->items[i - l->weights];
        if ((int)shape_of(s, item)->fill != fill) continue;
        add_bar(s, l, i, tide_items_begin(s->items, item), tide_items_end(s->items, item), out);
        add_tooltip(s, item, out);
        tide_text_add(out, "</path>\n");
    }
    tide_text_add(out, "</g>\n");
}

static int draw_lives(const tide_report_side *s, bool weights, const uint32_t *items, size_t n, tide_text *out) {
    lives l = {.weights = weights, .items = items, .n = n + weights};
    if (l.n == 0) return 0;
    l.height = AIM_HEIGHT / (int)l.n;
    l.height = l.height < MIN_ROW ? MIN_ROW : l.height > MAX_ROW ? MAX_ROW : l.height;
    const int bottom = LIVES_TOP + l.height * (int)l.n;
    tide__svg_add_ticks(s->facts, LIVES_TOP - 6, bottom, LIVES_TOP - 10, out);
    add_names(s, &l, out);
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) add_bars(s, &l, f, out);
    tide__svg_add_peak_line(s->facts, LIVES_TOP - 6, bottom, out);
    return bottom + 8;
}

int tide_report_svg_alive(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    return draw_lives(s, s->weights.folded, s->largest, s->n_alive, out);
}
int tide_report_svg_not_alive(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    return draw_lives(s, false, s->largest + s->n_alive, s->n_not_alive, out);
}
int tide_report_svg_weights(const tide_report *r, const tide_report_side *s, tide_text *out) {
    const size_t before = s->n_alive + s->n_not_alive;
    (void)r;
    return draw_lives(s, false, s->largest + before, s->n_largest - before, out);
}

enum { MEMORY_TOP = 24, MEMORY_HEIGHT = 420, REGION_GAP = 6, MAX_REGIONS = 40, MIN_BAND = 8 };

// ---- memory over time ----
// Time across, addresses upwards, a band for each region, holes as holes.

/// Where a region's band is: lowest addresses at the bottom, as high as its share of all bytes.
typedef struct band {
    double top, height;
} band;

static void make_bands(const tide_space *sp, band *bands, size_t n) {
    const double room = MEMORY_HEIGHT - REGION_GAP * (double)(n - 1) - MIN_BAND * (double)n;
    double at = MEMORY_TOP + MEMORY_HEIGHT;
    for (size_t i = 0; i < n; i++) {
        bands[i].height = MIN_BAND + (sp->bytes > 0 ? room * (double)sp->regions[i].bytes / (double)sp->bytes : 0.0);
        bands[i].top = at - bands[i].height;
        at = bands[i].top - REGION_GAP;
    }
}

static void add_region(const tide_region *g, const band *b, tide_text *out) {
    char size[24];
    const double y = b->top + b->height / 2.0;
    tide_text_addf(out, "<rect class=\"region\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", PLOT_LEFT,
                   b->top, PLOT_RIGHT - PLOT_LEFT, b->height);
    tide_text_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", PLOT_LEFT - 8,
                   b->height + REGION_GAP < 26.0 ? y + 4.0 : y - 2.0);
    tide_html_add_cut(out, g->label, 26);
    tide_text_add(out, "</text>\n");
    if (b->height + REGION_GAP < 26.0) return; // the label of the next band stands where the size would
    tide_text_addf(out, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", PLOT_LEFT - 8,
                   y + 12.0, tide_format_bytes(g->bytes, size, sizeof size));
}

/// Where the pools of a colouring plan meet.
static void add_pool_borders(const tide_region *g, const band *b, tide_text *out) {
    if (g->n_pools < 2 || g->bytes == 0) return;
    tide_text_add(out, "<path class=\"poolb\" d=\"");
    for (size_t i = 0; i < g->n_pools; i++) {
        if (g->pools[i].offset_bytes == 0) continue;
        const double share = (double)g->pools[i].offset_bytes / (double)g->bytes;
        tide_text_addf(out, "M%d %.1fH%d", PLOT_LEFT, b->top + b->height * (1.0 - share), PLOT_RIGHT);
    }
    tide_text_add(out, "\"/>\n");
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
        const double x0 = tide__svg_x(s->facts, tide_items_begin(s->items, i)),
                     x1 = tide__svg_x(s->facts, tide_items_end(s->items, i));
        if (!any) tide_text_addf(out, "<path class=\"k%d tile\" d=\"", fill);
        any = true;
        add_box(out, x0, y, x1 - x0 < 1.0 ? 1.0 : x1 - x0, (double)(hi - lo) * scale);
    }
    if (any) tide_text_add(out, "\"/>\n");
}

int tide_report_svg_memory(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    band bands[MAX_REGIONS];
    const size_t n = s->space.n < MAX_REGIONS ? s->space.n : MAX_REGIONS;
    if (n == 0) return 0;
    make_bands(&s->space, bands, n);
    tide__svg_add_ticks(s->facts, MEMORY_TOP - 6, MEMORY_TOP + MEMORY_HEIGHT, MEMORY_TOP - 10, out);
    for (size_t i = 0; i < n; i++) add_region(&s->space.regions[i], &bands[i], out);
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) add_items(s, bands, n, f, out);
    for (size_t i = 0; i < n; i++) {
        const tide_region *g = &s->space.regions[i];
        add_pool_borders(g, &bands[i], out);
        if (g->bound_bytes == 0 || g->bytes == 0) continue;
        const double y = bands[i].top + bands[i].height * (1.0 - (double)g->bound_bytes / (double)g->bytes);
        tide_text_addf(out, "<line class=\"boundl\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", PLOT_LEFT,
                       PLOT_RIGHT, y, y);
    }
    tide__svg_add_peak_line(s->facts, MEMORY_TOP - 6, MEMORY_TOP + MEMORY_HEIGHT, out);
    return MEMORY_TOP + MEMORY_HEIGHT + 8;
}

int tide_report_add_picture(tide_report_picture draw, const tide_report *r, const tide_report_side *s,
                            const char *label, int y, tide_text *out) {
    tide_text inner = {0};
    const bool is_map = draw == tide_report_svg_map;
    const int height = draw(r, s, &inner), width = is_map ? TIDE_REPORT_MAP_WIDTH : PLOT_WIDTH;
    if (inner.failed) out->failed = true;
    if (height > 0) {
        tide_text_addf(out, "<svg class=\"%s\"", is_map ? "plot map" : "plot");
        if (y >= 0) tide_text_addf(out, " x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"", y, width, height);
        tide_text_addf(out, " viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", width, height);
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
                    {tide_report_svg_pools, "Pools over time"},
                    {tide_report_svg_devices, "Devices over time"},
                    {tide_report_svg_lanes, "Processes side by side"},
                    {tide_report_svg_stacks, "The peak by call stack"},
                    {tide_report_svg_alive, "Lifetimes, alive at the peak"},
                    {tide_report_svg_map, "Memory at the peak, addresses upwards"},
                    {tide_report_svg_not_alive, "Lifetimes, not alive at the peak"},
                    {tide_report_svg_weights, "Lifetimes, weights"},
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
        PLOT_WIDTH, y, PLOT_WIDTH, y);
    tide_text_add(out, tide_report_page_style);
    tide_text_add(out, "svg .head{font-size:16px;font-weight:600}</style>\n<rect width=\"100%\" height=\"100%\" "
                       "fill=\"var(--bg)\"/>\n");
    tide_report_svg_hatches(out);
    tide_text_add(out, tide_text_str(&body));
    tide_text_add(out, "</svg>\n");
    if (body.failed) out->failed = true;
    tide_text_deinit(&body);
}
