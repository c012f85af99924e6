// SPDX-License-Identifier: MIT
//
// The cells that differ, written in the order of their pens. See paint.h.
//
//     cells -> inks (glyph, pen) -> runs of inks that differ -> sorted by pen, then place -> bytes
#include "tui/term/paint.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

enum {
    N_MARKS = 4,
    UNKNOWN_PEN = UINT16_MAX,
    SHORT_GAP = 4, ///< cells inside a run that do not differ: writing them is not longer than skipping them
    WORTH_ERASING = 6,
    MAX_MOVE = 32
};

typedef struct pen {
    int32_t colour, ground;
    unsigned attrs;
} pen;

/// What a terminal makes of a cell.
typedef struct ink {
    uint32_t glyph; ///< 0: the right half of a wide one
    uint16_t pen;
} ink;

typedef struct run {
    uint16_t pen;
    int y, x, n;
    bool to_end; ///< blanks up to the end of the row
} run;

struct tide_tui_paint {
    tide_tui_paint_options opt;
    int width, height; ///< 0: nothing is known of the screen
    ink *now, *next;   ///< [height][width]
    run *runs;         ///< [height * width]
    pen *pens;
    size_t n_pens, pens_cap;
    uint16_t pen_of[TIDE_TUI_N_ROLES][TIDE_TUI_N_ROLES][N_MARKS]; ///< by role, ground and marks; UNKNOWN_PEN: not yet
    bool knows_pen;                                               ///< the terminal's pen is known
    pen in_hand;
    int x, y; ///< of the terminal's cursor; -1: not known
};

tide_status tide_tui_paint_create(const tide_tui_paint_options *opt, tide_tui_paint **out, tide_error *err) {
    TIDE_TRY(TIDE_NEW(out, 1, err, "for the screen"));
    tide_tui_paint *p = *out;
    p->opt = *opt;
    memset(p->pen_of, 0xFF, sizeof p->pen_of);
    return TIDE_OK;
}

void tide_tui_paint_destroy(tide_tui_paint *p) {
    if (p == NULL) return;
    tide_host_free(p->now);
    tide_host_free(p->next);
    tide_host_free(p->runs);
    tide_host_free(p->pens);
    tide_host_free(p);
}

void tide_tui_paint_forget(tide_tui_paint *p) {
    p->width = p->height = 0;
    p->knows_pen = false;
    p->x = p->y = -1;
}

// ---- pens ----

static pen look_of(const tide_tui_paint *p, tide_tui_cell cell) {
    const tide_tui_look look = tide_tui_look_of(p->opt.tier, p->opt.ground, (tide_tui_role)cell.role);
    pen out = {look.colour, tide_tui_ground_colour(p->opt.tier, p->opt.ground, (tide_tui_role)cell.ground), look.attrs};
    if (p->opt.tier == TIDE_TUI_COLOUR_MONO) out.colour = out.ground = TIDE_TUI_OWN_COLOUR;
    if (cell.marks & TIDE_TUI_MARK_SELECTED) out.attrs ^= TIDE_TUI_ATTR_REVERSE;
    if (cell.marks & TIDE_TUI_MARK_MATCH) out.attrs |= TIDE_TUI_ATTR_UNDERLINE;
    return out;
}

static bool same_pen(pen a, pen b) { return a.colour == b.colour && a.ground == b.ground && a.attrs == b.attrs; }

/// Its number in p->pens; 0 is the terminal's own look. UNKNOWN_PEN: no memory.
static uint16_t number_of(tide_tui_paint *p, pen want) {
    for (size_t i = 0; i < p->n_pens; i++) {
        if (same_pen(p->pens[i], want)) return (uint16_t)i;
    }
    if (tide_host_grow(&p->pens, &p->pens_cap, p->n_pens + 1, sizeof *p->pens) != TIDE_OK) return UNKNOWN_PEN;
    TIDE_ASSERT(p->n_pens < UNKNOWN_PEN);
    p->pens[p->n_pens] = want;
    return (uint16_t)p->n_pens++;
}

/// The attributes of a cell that are visible. A blank keeps only its ground, its reverse and its underline.
static bool ink_of(tide_tui_paint *p, tide_tui_cell cell, ink *out) {
    const bool odd = cell.role >= TIDE_TUI_N_ROLES || cell.ground >= TIDE_TUI_N_ROLES || cell.marks >= N_MARKS;
    if (odd) cell.role = cell.ground = cell.marks = 0;
    if (p->opt.ascii && cell.glyph > 0x7E) cell.glyph = '?';
    uint16_t *known = &p->pen_of[cell.role][cell.ground][cell.marks];
    if (*known == UNKNOWN_PEN) *known = number_of(p, look_of(p, cell));
    *out = (ink){cell.glyph, *known};
    if (*known == UNKNOWN_PEN) return false;
    const pen shown = p->pens[*known];
    if (cell.glyph != ' ' || shown.colour == TIDE_TUI_OWN_COLOUR) return true;
    if (shown.attrs & (TIDE_TUI_ATTR_REVERSE | TIDE_TUI_ATTR_UNDERLINE)) return true;
    out->pen = number_of(p, (pen){TIDE_TUI_OWN_COLOUR, shown.ground, 0});
    return out->pen != UNKNOWN_PEN;
}

static void add_code(tide_text *out, const char *code) {
    if (out->len > 0) tide_text_add(out, ";");
    tide_text_add(out, code);
}

static void add_colour(tide_text *out, tide_tui_colour_tier tier, int32_t colour, bool is_ground) {
    char code[32];
    const int shift = is_ground ? 10 : 0;
    if (colour == TIDE_TUI_OWN_COLOUR)
        snprintf(code, sizeof code, "%d", 39 + shift);
    else if (tier == TIDE_TUI_COLOUR_TRUE)
        snprintf(code, sizeof code, "%d;2;%d;%d;%d", 38 + shift, (int)(colour >> 16 & 0xFF), (int)(colour >> 8 & 0xFF),
                 (int)(colour & 0xFF));
    else if (colour < 8)
        snprintf(code, sizeof code, "%d", 30 + shift + (int)colour);
    else if (colour < 16)
        snprintf(code, sizeof code, "%d", 90 + shift + (int)colour - 8);
    else
        snprintf(code, sizeof code, "%d;5;%d", 38 + shift, (int)colour);
    add_code(out, code);
}

/// Codes from one pen to another, attributes that end and those that begin.
static void add_change(tide_text *out, tide_tui_colour_tier tier, pen from, pen to) {
    static const struct {
        unsigned attr;
        const char *on, *off;
    } attrs[] = {
        {TIDE_TUI_ATTR_BOLD, "1", "22"}, {TIDE_TUI_ATTR_UNDERLINE, "4", "24"}, {TIDE_TUI_ATTR_REVERSE, "7", "27"}};
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        if ((from.attrs ^ to.attrs) & attrs[i].attr)
            add_code(out, to.attrs & attrs[i].attr ? attrs[i].on : attrs[i].off);
    }
    if (from.colour != to.colour) add_colour(out, tier, to.colour, false);
    if (from.ground != to.ground) add_colour(out, tier, to.ground, true);
}

/// By what differs, or from the terminal's own look on: whichever is shorter.
static void take_pen(tide_tui_paint *p, tide_text *out, pen want) {
    static const pen own = {TIDE_TUI_OWN_COLOUR, TIDE_TUI_OWN_COLOUR, 0};
    tide_text change = {0}, anew = {0};
    if (p->knows_pen && same_pen(p->in_hand, want)) return;
    if (p->knows_pen) add_change(&change, p->opt.tier, p->in_hand, want);
    if (!same_pen(own, want)) {
        add_code(&anew, "0");
        add_change(&anew, p->opt.tier, own, want);
    }
    const bool shorter = p->knows_pen && change.len <= anew.len;
    tide_text_addf(out, "\033[%sm", tide_text_str(shorter ? &change : &anew));
    out->failed |= change.failed || anew.failed;
    tide_text_deinit(&change);
    tide_text_deinit(&anew);
    p->in_hand = want;
    p->knows_pen = true;
}

// ---- places ----

/// Within a row that the cursor is in. @return bytes
static int along(char buf[MAX_MOVE], int from, int to) {
    if (to == from) return 0;
    if (to > from + 1) return snprintf(buf, MAX_MOVE, "\033[%dC", to - from);
    if (to > from) return snprintf(buf, MAX_MOVE, "\033[C");
    if (to == 0) return snprintf(buf, MAX_MOVE, "\r");
    if (from - to > 4) return snprintf(buf, MAX_MOVE, "\033[%dD", from - to);
    memset(buf, '\b', (size_t)(from - to));
    return from - to;
}

static void go_to(tide_tui_paint *p, tide_text *out, int x, int y) {
    char best[MAX_MOVE], other[MAX_MOVE];
    int n = x > 0   ? snprintf(best, sizeof best, "\033[%d;%dH", y + 1, x + 1)
            : y > 0 ? snprintf(best, sizeof best, "\033[%dH", y + 1)
                    : snprintf(best, sizeof best, "\033[H");
    if (p->x >= 0 && y >= p->y && y - p->y <= 3) {
        const int down = y - p->y;
        memset(other, '\n', (size_t)down);
        char within[MAX_MOVE];
        const int m = along(within, p->x, x);
        if (down + m < n) {
            memcpy(other + down, within, (size_t)m);
            n = down + m;
            memcpy(best, other, (size_t)n);
        }
    }
    if (p->x != x || p->y != y) tide_text_add_n(out, best, (size_t)n);
    p->x = x;
    p->y = y;
}

// ---- runs ----

static const ink *next_at(const tide_tui_paint *p, int x, int y) {
    return &p->next[(size_t)y * (size_t)p->width + (size_t)x];
}
static const ink *now_at(const tide_tui_paint *p, int x, int y) {
    return &p->now[(size_t)y * (size_t)p->width + (size_t)x];
}

/// A cell is as it should be; of a wide glyph both halves are, or neither.
static bool is_there(const tide_tui_paint *p, int x, int y) {
    const ink *a = now_at(p, x, y), *b = next_at(p, x, y);
    if (a->glyph != b->glyph || a->pen != b->pen) return false;
    if (b->glyph == 0 && x > 0) {
        const ink *c = now_at(p, x - 1, y), *d = next_at(p, x - 1, y);
        return c->glyph == d->glyph && c->pen == d->pen;
    }
    return x + 1 >= p->width || next_at(p, x + 1, y)->glyph != 0 || now_at(p, x + 1, y)->glyph == 0;
}

static bool is_blank(const ink *i) { return i->glyph == ' ' && i->pen == 0; }

/// First column from which on the row is blank to its end.
static int blank_from(const tide_tui_paint *p, int y) {
    int x = p->width;
    while (x > 0 && is_blank(next_at(p, x - 1, y))) x--;
    return x;
}

static int bytes_of(uint32_t glyph) { return glyph < 0x80 ? 1 : glyph < 0x800 ? 2 : glyph < 0x10000 ? 3 : 4; }

/// Where a run that begins at x ends: at another pen, or where what is there already is longer than the way over it.
static int end_of_run(const tide_tui_paint *p, int x, int y, int limit) {
    const uint16_t number = next_at(p, x, y)->pen;
    int end = x + 1, gap = 0;
    for (int i = end; i < limit && next_at(p, i, y)->pen == number && gap <= SHORT_GAP; i++) {
        gap = is_there(p, i, y) ? gap + bytes_of(next_at(p, i, y)->glyph) : 0;
        if (gap == 0) end = i + 1;
    }
    return end;
}

static size_t find_runs(tide_tui_paint *p) {
    size_t n = 0;
    for (int y = 0; y < p->height; y++) {
        const int tail = blank_from(p, y);
        int n_wrong = 0, first = p->width;
        for (int x = p->width - 1; x >= tail; x--) {
            if (is_there(p, x, y)) continue;
            n_wrong++;
            first = x;
        }
        const bool erases = n_wrong > 3;
        for (int x = 0; x < (erases ? tail : p->width); x++) {
            if (is_there(p, x, y)) continue;
            const int end = end_of_run(p, x, y, erases ? tail : p->width);
            p->runs[n++] = (run){.pen = next_at(p, x, y)->pen, .y = y, .x = x, .n = end - x};
            x = end - 1;
        }
        if (erases) p->runs[n++] = (run){.y = y, .x = first, .n = p->width - first, .to_end = true};
    }
    return n;
}

static int by_pen(const void *a, const void *b) {
    const run *p = a, *q = b;
    if (p->pen != q->pen) return p->pen < q->pen ? -1 : 1;
    if (p->y != q->y) return p->y < q->y ? -1 : 1;
    return p->x < q->x ? -1 : p->x > q->x;
}

/// Blanks from column x on, as many as ECH is shorter for; 0: write them.
static int blanks_at(const tide_tui_paint *p, const run *r, int x) {
    int n = 0;
    while (r->pen == 0 && p->opt.erases && x + n < r->x + r->n && next_at(p, x + n, r->y)->glyph == ' ') n++;
    return n >= WORTH_ERASING ? n : 0;
}

static void write_run(tide_tui_paint *p, tide_text *out, const run *r) {
    for (int x = r->x; x < r->x + r->n; x++) {
        const ink *i = next_at(p, x, r->y);
        if (i->glyph == 0) continue;
        go_to(p, out, x, r->y);
        const int blanks = blanks_at(p, r, x);
        if (blanks > 0) {
            tide_text_addf(out, "\033[%dX", blanks);
            x += blanks - 1;
            continue;
        }
        char bytes[4];
        tide_text_add_n(out, bytes, tide_utf8_encode(i->glyph, bytes));
        p->x = x + 1;
        // Not known after the last column, nor after a glyph of which terminals do not agree how wide it is.
        const bool wide = x + 1 < p->width && next_at(p, x + 1, r->y)->glyph == 0;
        if (p->x >= p->width || wide) p->x = p->y = -1;
    }
}

static void write_runs(tide_tui_paint *p, tide_text *out, size_t n) {
    qsort(p->runs, n, sizeof *p->runs, by_pen);
    for (size_t i = 0; i < n; i++) {
        const run *r = &p->runs[i];
        take_pen(p, out, p->pens[r->pen]);
        if (!r->to_end) {
            write_run(p, out, r);
            continue;
        }
        go_to(p, out, r->x, r->y);
        tide_text_add(out, "\033[K");
    }
}

// ---- frames ----

/// Room for a screen of another size, which is cleared.
static tide_status begin_anew(tide_tui_paint *p, const tide_tui_grid *grid, tide_text *out, tide_error *err) {
    size_t n;
    tide_host_free(p->now);
    tide_host_free(p->next);
    tide_host_free(p->runs);
    p->now = p->next = NULL;
    p->runs = NULL;
    tide_tui_paint_forget(p);
    if (tide_mul_size((size_t)grid->width, (size_t)grid->height, &n)) {
        p->now = tide_host_calloc(n, sizeof *p->now);
        p->next = tide_host_calloc(n, sizeof *p->next);
        p->runs = tide_host_calloc(n, sizeof *p->runs);
    }
    const pen own = {TIDE_TUI_OWN_COLOUR, TIDE_TUI_OWN_COLOUR, 0};
    if (p->now == NULL || p->next == NULL || p->runs == NULL || (p->n_pens == 0 && number_of(p, own) != 0))
        return TIDE_NO_MEMORY(err, "for a screen of %dx%d cells", grid->width, grid->height);
    for (size_t i = 0; i < n; i++) p->now[i] = (ink){' ', 0};
    take_pen(p, out, own);
    tide_text_add(out, "\033[H\033[2J");
    p->width = grid->width;
    p->height = grid->height;
    p->x = p->y = 0;
    return TIDE_OK;
}

tide_status tide_tui_paint_frame(tide_tui_paint *p, const tide_tui_grid *grid, tide_text *out, tide_error *err) {
    if (p->width != grid->width || p->height != grid->height) TIDE_TRY(begin_anew(p, grid, out, err));
    const size_t n = (size_t)grid->width * (size_t)grid->height;
    bool all = true;
    for (size_t i = 0; i < n && all; i++) all = ink_of(p, grid->cells[i], &p->next[i]);
    if (all) write_runs(p, out, find_runs(p));
    if (!all || out->failed) {
        tide_tui_paint_forget(p);
        return TIDE_NO_MEMORY(err, "for a frame of %dx%d cells", grid->width, grid->height);
    }
    ink *shown = p->next;
    p->next = p->now;
    p->now = shown;
    return TIDE_OK;
}
