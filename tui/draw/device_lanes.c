// SPDX-License-Identifier: MIT
//
// Devices in the pane of pools: what is in use of each at the cursor, in words, and below it over time in the columns
// of the curve, one part upon the other. See draw.h.
//
//     cuda:0: 663.00 MiB of 79.18 GiB in use: allocators 37.00 MiB, outside 96.13 MiB (libcublas.so.13 64.13 MiB), …
//     unexplained -              --------------------
//     outside ~       -----------~~~~~~~~~~~~~~~~~~~~    what is there has a cell at least, so that it is seen
//     allocators =    ====================================
//
// Processes that were looked at while they recorded are drawn alike: what is resident, of it blocks and the rest.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/time_axis.h"

enum { MOST_DEVICES = 4, BAND = 3, SENTENCE = 400 };

/// What of the driver's memory has most bytes: ", most of it libcublas.so.13 64.13 MiB"; "": none, or no memory to ask.
static void say_largest(const tide_tui_scene *s, size_t i, char *buf, size_t buf_bytes) {
    tide_device_part *parts = NULL;
    size_t n = 0;
    char size[TIDE_TUI_WORD];
    const tide_moment at = s->state->compares_moments ? s->state->a_moment : tide_tui_now(s->state);
    buf[0] = 0;
    if (tide_device_parts(s->device_memory, i, at, &parts, &n, NULL) != TIDE_OK) return;
    for (size_t k = 0; k < n && buf[0] == 0; k++)
        if (parts[k].of == TIDE_DEVICE_LIBRARY)
            snprintf(buf, buf_bytes, " (%.60s %s)", tide_tui_named(parts[k].name),
                     tide_tui_bytes(parts[k].bytes, size, sizeof size));
    tide_host_free(parts);
}

static void say_device(const tide_tui_scene *s, size_t i, char *buf, size_t buf_bytes) {
    const tide_device_figures *f = &s->devices[i].figures;
    char used[TIDE_TUI_WORD], total[TIDE_TUI_WORD], a[TIDE_TUI_WORD], o[TIDE_TUI_WORD], u[TIDE_TUI_WORD],
        rest[TIDE_TUI_WORD], off[TIDE_TUI_WORD], largest[96];
    say_largest(s, i, largest, sizeof largest);
    tide_tui_bytes(f->allocators_bytes, a, sizeof a);
    tide_tui_bytes(f->outside_bytes, o, sizeof o);
    if (f->used_bytes == TIDE_UNKNOWN_BYTES) {
        if (s->device_memory->lanes[i].is_process)
            snprintf(buf, buf_bytes, "%s: not looked at before", s->devices[i].device);
        else
            snprintf(buf, buf_bytes,
                     "%s: allocators %s, outside %s%s, unexplained unknown: no sample of the driver before",
                     s->devices[i].device, a, o, largest);
        return;
    }
    if (s->device_memory->lanes[i].is_process) {
        const int n = snprintf(buf, buf_bytes, "%s: %s resident, at most %s until then: blocks %s, the rest %s",
                               s->devices[i].device, tide_tui_bytes(f->used_bytes, used, sizeof used),
                               tide_tui_bytes(f->total_bytes, total, sizeof total), a,
                               tide_tui_bytes(f->unexplained_bytes, u, sizeof u));
        if (f->off_bytes > 0 && n > 0 && (size_t)n < buf_bytes)
            snprintf(buf + n, buf_bytes - (size_t)n, "; %s of the blocks are not resident",
                     tide_tui_bytes(f->off_bytes, off, sizeof off));
        return;
    }
    const bool is_cut = tide_device_is_cut(s->device_memory); // then the segments of before are not known
    const int len =
        snprintf(buf, buf_bytes, "%s: %s of %s in use: allocators %s%s, outside %s%s, unexplained %s%s, free %s",
                 s->devices[i].device, tide_tui_bytes(f->used_bytes, used, sizeof used),
                 tide_tui_bytes(f->total_bytes, total, sizeof total), is_cut ? "at least " : "", a, o, largest,
                 is_cut ? "at most " : "", tide_tui_bytes(f->unexplained_bytes, u, sizeof u),
                 tide_tui_bytes(f->free_bytes, rest, sizeof rest));
    if (f->off_bytes > 0 && len > 0 && (size_t)len < buf_bytes)
        snprintf(buf + len, buf_bytes - (size_t)len, "; the sample is %s below both",
                 tide_tui_bytes(f->off_bytes, off, sizeof off));
}

static int n_shown(const tide_tui_scene *s) {
    return s->device_memory->n < MOST_DEVICES ? (int)s->device_memory->n : MOST_DEVICES;
}

/// Lines of one device's words.
static int text_lines(const tide_tui_view *v, size_t i, int w) {
    char text[SENTENCE];
    say_device(v->scene, i, text, sizeof text);
    const size_t n = tide_tui_wrap_count(v, w, text);
    return n < 3 ? (int)n : 3;
}

int tide_tui_device_lines(const tide_tui_scene *s, int w, int h) {
    if (s->device_memory == NULL || w < 20 || h < 6) return 0;
    const tide_tui_view v = {.scene = s, .glyphs = tide_tui_glyphs_of(false)};
    const tide_tui_locale locale = tide_tui_locale_enter();
    int lines = 0;
    for (int i = 0; i < n_shown(s); i++) lines += text_lines(&v, (size_t)i, w);
    tide_tui_locale_leave(locale);
    const int bands = BAND * n_shown(s);
    if (s->layout->panes[TIDE_TUI_PANE_CURVE].w > 0 && lines + bands <= h / 2) return lines + bands;
    return lines <= h / 2 ? lines : h / 2;
}

// ---- over time ----

typedef struct part {
    uint64_t bytes;
    uint32_t glyph;
    tide_tui_role role;
} part;

enum { N_PARTS = 3 };

static void parts_of(const tide_tui_view *v, const tide_device_figures *f, part out[N_PARTS]) {
    const uint64_t rest = f->unexplained_bytes != TIDE_UNKNOWN_BYTES ? f->unexplained_bytes : 0;
    const tide_tui_glyphs *g = v->glyphs;
    out[0] = (part){f->allocators_bytes, g->bar[TIDE_ITEM_FILL_INTERMEDIATE], TIDE_TUI_ROLE_CURVE};
    out[1] = (part){f->outside_bytes, g->bar[TIDE_ITEM_FILL_SCRATCH], TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_SCRATCH};
    out[2] = (part){rest, g->bar[TIDE_ITEM_FILL_WEIGHT], TIDE_TUI_ROLE_DIM};
}

static void draw_column(const tide_tui_view *v, tide_tui_rect r, int x, const tide_device_figures *f, uint64_t top) {
    part parts[N_PARTS];
    parts_of(v, f, parts);
    int y = 0;
    for (int i = 0; i < N_PARTS; i++) {
        if (parts[i].bytes == 0) continue;
        int cells = (tide_tui_height_of(parts[i].bytes, top, r.h, 8) + 4) / 8;
        if (cells < 1) cells = 1;
        for (; cells > 0 && y < r.h; cells--, y++)
            tide_tui_put(v->grid, r.x + x, r.y + r.h - 1 - y, parts[i].glyph, parts[i].role);
    }
}

static tide_device_figures column_of(const tide_tui_scene *s, const tide_device_lane *lane, int x, int n) {
    const tide_tui_window w = s->state->window;
    const int64_t lo = w.begin + (int64_t)((double)(w.end - w.begin) * x / n);
    const int64_t hi = w.begin + (int64_t)((double)(w.end - w.begin) * (x + 1) / n);
    return tide_device_peak(lane, lo, hi > lo ? hi - 1 : lo, NULL);
}

static uint64_t sum_of(const tide_device_figures *f) {
    const uint64_t rest = f->unexplained_bytes != TIDE_UNKNOWN_BYTES ? f->unexplained_bytes : 0;
    return f->allocators_bytes + f->outside_bytes + rest;
}

static void label_parts(const tide_tui_view *v, tide_tui_rect r) {
    static const char *const names[N_PARTS] = {"allocators", "outside", "unexplained"};
    const int w = v->scene->layout->labels.w - 1;
    const tide_device_figures any = {0};
    part parts[N_PARTS];
    parts_of(v, &any, parts);
    for (int i = 0; i < N_PARTS && i < r.h; i++) {
        const int y = r.y + r.h - 1 - i,
                  used = tide_tui_text(v, 2, y, w - 4, names[i], TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        tide_tui_put(v->grid, 3 + used, y, parts[i].glyph, parts[i].role);
    }
}

static void draw_band(const tide_tui_view *v, tide_tui_rect r, const tide_device_lane *lane) {
    uint64_t top = 1;
    for (int x = 0; x < r.w; x++) {
        const tide_device_figures f = column_of(v->scene, lane, x, r.w);
        if (sum_of(&f) > top) top = sum_of(&f);
    }
    for (int x = 0; x < r.w; x++) {
        const tide_device_figures f = column_of(v->scene, lane, x, r.w);
        draw_column(v, r, x, &f, top);
    }
    tide_tui_draw_time_lines(v, r);
    label_parts(v, r);
}

void tide_tui_draw_devices(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect curve = s->layout->panes[TIDE_TUI_PANE_CURVE];
    if (r.h <= 0 || s->device_memory == NULL) return;
    int lines = 0, y = r.y;
    for (int i = 0; i < n_shown(s); i++) lines += text_lines(v, (size_t)i, r.w);
    const bool has_bands = r.h >= lines + BAND * n_shown(s);
    for (int i = 0; i < n_shown(s) && y < r.y + r.h; i++) {
        char text[SENTENCE];
        const int h = text_lines(v, (size_t)i, r.w), left = r.y + r.h - y;
        say_device(s, (size_t)i, text, sizeof text);
        tide_tui_lines p = {.v = v, .r = {r.x, y, r.w, h < left ? h : left}};
        tide_tui_lines_wrap(&p, 0, text, TIDE_TUI_ROLE_TEXT);
        y += h;
        if (!has_bands) continue;
        draw_band(v, (tide_tui_rect){curve.x, y, curve.w, BAND}, &s->device_memory->lanes[i]);
        y += BAND;
    }
}
