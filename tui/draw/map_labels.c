// SPDX-License-Identifier: MIT
//
// Beside the map: where each region lies, its name, its size, its bound. See map_parts.h.
//
//     stream_caching segment 2 2.00 MiB |    a line of the screen belongs to the region that has most of it
//                               2 more -|    and says how many others have no line of their own
//        stream_caching segment 1       |    the longest of several forms that has room, beside the lines of the
//        region:
//                20.00 MiB             -|    "stream_caching segment 1 20.00 MiB", …, "segment 1 20.0M", "segment 1"
//                          pool 1 1.0M  |    of a colouring plan: where each pool begins, and its number
//                          pool 0 4.0M -|
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw/format.h"
#include "tui/draw/map_parts.h"

enum { MOST_LINES = 2048, TEXT_BYTES = 160 };

/// A line of the screen, from below.
typedef struct owned_line {
    size_t region;    ///< SIZE_MAX: none
    uint64_t bytes;   ///< of it that the region has
    uint32_t n_other; ///< regions in it that have no line
} owned_line;

typedef struct labels {
    const tide_tui_view *v;
    tide_tui_rect r;        ///< of the map
    tide_tui_window places; ///< part of the address axis in view
    owned_line lines[MOST_LINES];
} labels;

// ---- which line is whose ----

static tide_tui_window places_in_view(const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    if (st->space_hi > st->space_lo) return (tide_tui_window){st->space_lo, st->space_hi};
    return (tide_tui_window){0, s->space->bytes > 0 ? (int64_t)s->space->bytes : 1};
}

/// Line of the screen at place `at` of the axis: half a line each; -1 below the view, r.h above it.
static int line_of(const labels *l, uint64_t at) {
    const int row = tide_tui_column_of(l->places, 2 * l->r.h, at < INT64_MAX ? (int64_t)at : INT64_MAX);
    return row < 0 ? -1 : row / 2;
}

/// The lines that a region touches; false: it is out of view.
static bool lines_of(const labels *l, const tide_region *region, int *from, int *to) {
    const uint64_t last = region->bytes > 0 ? region->at + region->bytes - 1 : region->at;
    if ((int64_t)region->at >= l->places.end || (int64_t)last < l->places.begin) return false;
    *from = line_of(l, region->at);
    *to = line_of(l, last);
    if (*from < 0) *from = 0;
    if (*to >= l->r.h) *to = l->r.h - 1;
    return *from <= *to;
}

static uint64_t place_of_line(const labels *l, int line) {
    const uint64_t span = tide_tui_window_span(l->places), n = (uint64_t)l->r.h, i = (uint64_t)line;
    return (uint64_t)l->places.begin + span / n * i + span % n * i / n;
}

static uint64_t bytes_in_line(const labels *l, const tide_region *region, int line) {
    const uint64_t lo = place_of_line(l, line), hi = place_of_line(l, line + 1), end = region->at + region->bytes;
    const uint64_t from = region->at > lo ? region->at : lo, to = end < hi ? end : hi;
    return to > from ? to - from : 0;
}

static void own_lines(labels *l, const tide_space *space) {
    int from, to;
    for (int i = 0; i < l->r.h; i++) l->lines[i] = (owned_line){.region = SIZE_MAX};
    for (size_t i = 0; i < space->n; i++) {
        if (!lines_of(l, &space->regions[i], &from, &to)) continue;
        for (int line = from; line <= to; line++) {
            const uint64_t bytes = bytes_in_line(l, &space->regions[i], line);
            owned_line *o = &l->lines[line];
            if (o->region == SIZE_MAX || bytes > o->bytes) *o = (owned_line){.region = i, .bytes = bytes};
        }
    }
    for (size_t i = 0; i < space->n; i++) {
        bool has_line = false;
        if (!lines_of(l, &space->regions[i], &from, &to)) continue;
        for (int line = from; line <= to && !has_line; line++) has_line = l->lines[line].region == i;
        if (!has_line) l->lines[from].n_other++;
    }
}

// ---- words ----

static bool is_labelled(const labels *l, int line) {
    const tide_tui_rect r = l->v->scene->layout->map_labels;
    return tide_tui_get(l->v->grid, r.x + r.w - 2, l->r.y + l->r.h - 1 - line).glyph != ' ';
}

static void put_label(const labels *l, int line, const char *text, tide_tui_role role) {
    const tide_tui_rect r = l->v->scene->layout->map_labels;
    const int room = r.w - 2, w = tide_tui_text_width(l->v->glyphs, text), y = l->r.y + l->r.h - 1 - line;
    if (is_labelled(l, line)) return;
    // What is too long loses its middle: numbers stand at the end.
    tide_tui_text(l->v, w < room ? r.x + r.w - 1 - w : r.x + 1, y, room, text, TIDE_TUI_CUT_MIDDLE, role);
}

/// A name in up to three lines.
typedef struct form {
    char lines[3][TEXT_BYTES];
    int n;
} form;

static bool has_room(const labels *l, const form *f, int n_lines) {
    const int room = l->v->scene->layout->map_labels.w - 2;
    if (f->n > n_lines) return false;
    for (int i = 0; i < f->n; i++)
        if (tide_tui_text_width(l->v->glyphs, f->lines[i]) > room) return false;
    return true;
}

static void set_form(form *f, const char *first, const char *second, const char *third) {
    const char *const lines[3] = {first, second, third};
    for (f->n = 0; f->n < 3 && lines[f->n] != NULL; f->n++)
        snprintf(f->lines[f->n], sizeof f->lines[0], "%s", lines[f->n]);
}

/// The longest form that has room in n lines; the last one always has, being cut. `more`: "" or " +2".
static void choose_form(const labels *l, const tide_region *region, int n, const char *more, form *f) {
    const char *label = region->label != NULL ? region->label : "", *tail = label + region->tail;
    char size[TIDE_TUI_WORD], word[TIDE_TUI_WORD], head[TEXT_BYTES], one[5][TEXT_BYTES];
    tide_tui_bytes(region->bytes, size, sizeof size);
    tide_tui_format_short(region->bytes, word, sizeof word);
    snprintf(head, sizeof head, "%.*s", region->tail > 0 ? (int)region->tail - 1 : 0, label);
    snprintf(one[0], sizeof one[0], "%.100s %s%s", label, size, more);
    snprintf(one[1], sizeof one[1], "%.100s%s", label, more);
    snprintf(one[2], sizeof one[2], "%.100s %s%s", tail, size, more);
    snprintf(one[3], sizeof one[3], "%.100s %s%s", tail, word, more);
    snprintf(one[4], sizeof one[4], "%.100s%s", tail, more);
    for (int i = 0; i < 9; i++) {
        switch (i) {
        case 1: // two and three lines, behind all of it in one
            set_form(f, one[1], size, NULL);
            break;
        case 2:
            set_form(f, head, tail, size);
            break;
        case 3:
            set_form(f, one[2], NULL, NULL);
            break;
        case 4:
            set_form(f, one[3], NULL, NULL);
            break;
        case 5:
            set_form(f, one[4], size, NULL);
            break;
        case 6:
            set_form(f, one[4], word, NULL);
            break;
        case 7:
            set_form(f, one[4], NULL, NULL);
            break;
        case 8: // "Workspace" of "Workspace on cpu"
            snprintf(head, sizeof head, "%.*s", (int)strcspn(tail, region->tail > 0 || *more != 0 ? "" : " "), tail);
            set_form(f, *more != 0 ? one[4] : head, NULL, NULL);
            break;
        default:
            set_form(f, one[0], NULL, NULL);
            break;
        }
        if ((i != 2 || region->tail > 0) && has_room(l, f, n)) return;
    }
}

// ---- a region ----

/// The lower bound of a region: a line through what is free of it, and how much it is.
static void draw_bound(const labels *l, size_t i) {
    const tide_tui_view *v = l->v;
    const tide_region *region = &v->scene->space->regions[i];
    if (region->bound_bytes == 0) return;
    const int line = line_of(l, region->at + region->bound_bytes - 1);
    if (line < 0 || line >= l->r.h) return;
    const int y = l->r.y + l->r.h - 1 - line;
    for (int x = l->r.x; x < l->r.x + l->r.w; x++) {
        const uint32_t glyph = tide_tui_get(v->grid, x, y).glyph;
        if (glyph == ' ' || glyph == v->glyphs->vacant)
            tide_tui_put(v->grid, x, y, v->glyphs->bound, TIDE_TUI_ROLE_BOUND);
    }
    char text[64], size[TIDE_TUI_WORD];
    const int room = v->scene->layout->map_labels.w - 2;
    snprintf(text, sizeof text, "bound %s", tide_tui_bytes(region->bound_bytes, size, sizeof size));
    if (tide_tui_text_width(v->glyphs, text) > room)
        snprintf(text, sizeof text, "bound %s", tide_tui_format_short(region->bound_bytes, size, sizeof size));
    if (tide_tui_text_width(v->glyphs, text) > room) snprintf(text, sizeof text, "bound");
    if (l->lines[line].region == i) put_label(l, line, text, TIDE_TUI_ROLE_BOUND);
}

/// How many regions have no line, where the one that has it leaves room.
static void put_others(const labels *l, int line) {
    char text[64];
    snprintf(text, sizeof text, "and %u more", l->lines[line].n_other);
    if (tide_tui_text_width(l->v->glyphs, text) > l->v->scene->layout->map_labels.w - 2)
        snprintf(text, sizeof text, "+%u", l->lines[line].n_other);
    put_label(l, line, text, TIDE_TUI_ROLE_DIM);
}

/// The pool of a region that has most of a line; SIZE_MAX: none.
static size_t pool_of_line(const labels *l, const tide_region *region, int line) {
    size_t best = SIZE_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < region->n_pools; i++) {
        const tide_region_pool *p = &region->pools[i];
        const tide_region own = {.at = region->at + p->offset_bytes, .bytes = p->bytes};
        const uint64_t bytes = bytes_in_line(l, &own, line);
        if (bytes <= most) continue;
        most = bytes;
        best = i;
    }
    return best;
}

static void put_pool(const labels *l, const tide_region_pool *p, int from, int to) {
    const int room = l->v->scene->layout->map_labels.w - 2;
    char text[64], size[TIDE_TUI_WORD];
    int line = from + (to - from) / 2;
    if (is_labelled(l, line)) // by the region: a line above or below
        line = line < to && !is_labelled(l, line + 1) ? line + 1 : line > from ? line - 1 : line;
    snprintf(text, sizeof text, "pool %" PRIu32 " %s", p->number, tide_tui_format_short(p->bytes, size, sizeof size));
    if (tide_tui_text_width(l->v->glyphs, text) > room) snprintf(text, sizeof text, "pool %" PRIu32, p->number);
    put_label(l, line, text, TIDE_TUI_ROLE_DIM);
}

/// Pools of a colouring plan: where each begins, and its number and size where no other words stand.
static void draw_pools(const labels *l, const tide_region *region, int from, int to) {
    const tide_tui_rect r = l->v->scene->layout->map_labels;
    if (region->n_pools < 2) return;
    for (int line = from, last; line <= to; line = last + 1) {
        const size_t i = pool_of_line(l, region, line);
        for (last = line; last < to && pool_of_line(l, region, last + 1) == i; last++) continue;
        if (i == SIZE_MAX) continue;
        tide_tui_put(l->v->grid, r.x + r.w - 1, l->r.y + l->r.h - 1 - line, l->v->glyphs->tick_left, TIDE_TUI_ROLE_DIM);
        put_pool(l, &region->pools[i], line, last);
    }
}

/// Lines [from, to] are the region's.
static void draw_region(const labels *l, size_t i, int from, int to) {
    const tide_tui_view *v = l->v;
    const tide_tui_rect r = v->scene->layout->map_labels;
    for (int line = from; line <= to; line++) {
        const uint32_t glyph = line == from ? v->glyphs->tick_left : v->glyphs->cursor;
        tide_tui_put(v->grid, r.x + r.w - 1, l->r.y + l->r.h - 1 - line, glyph, TIDE_TUI_ROLE_DIM);
    }
    const int first = from;
    // Regions without a line lie at its edges.
    for (; from < to && l->lines[from].n_other > 0; from++) put_others(l, from);
    for (; to > from && l->lines[to].n_other > 0; to--) put_others(l, to);
    char more[24] = "";
    if (l->lines[from].n_other > 0) snprintf(more, sizeof more, " +%u", l->lines[from].n_other);
    form f;
    choose_form(l, &v->scene->space->regions[i], to - from + 1, more, &f);
    // In the middle, so that the line of the bound near the top keeps its own label.
    const int top = to - from >= 3 ? to - (to - from) / 2 : to;
    for (int k = 0; k < f.n; k++) put_label(l, top - k, f.lines[k], TIDE_TUI_ROLE_TEXT);
    draw_bound(l, i);
    draw_pools(l, &v->scene->space->regions[i], first, to);
}

static void draw_pointed_at(const labels *l) {
    const tide_tui_rect r = l->v->scene->layout->map_labels;
    const int64_t at = l->v->scene->state->space_cursor;
    if (at < 0) return;
    const int line = line_of(l, (uint64_t)at);
    if (line >= 0 && line < l->r.h)
        tide_tui_put(l->v->grid, r.x + r.w - 1, l->r.y + l->r.h - 1 - line, '>', TIDE_TUI_ROLE_CURSOR);
}

void tide_tui_draw_regions(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    labels l;
    l.v = v;
    l.r = s->layout->map;
    l.places = places_in_view(s);
    if (l.r.h > MOST_LINES) l.r.h = MOST_LINES;
    own_lines(&l, s->space);
    for (int line = 0, to; line < l.r.h; line = to + 1) {
        const size_t i = l.lines[line].region;
        for (to = line; to + 1 < l.r.h && l.lines[to + 1].region == i; to++) continue;
        if (i != SIZE_MAX) draw_region(&l, i, line, to);
    }
    draw_pointed_at(&l);
}
