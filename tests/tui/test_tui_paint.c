// SPDX-License-Identifier: MIT
//
// Frames as bytes: a small terminal of our own takes them, and must show the frame's cells with the looks of their
// roles; and what is sent for a change is counted.
#include "tests/tide_test.h"

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "tui/term/paint.h"

enum { MAX_W = 90, MAX_H = 40 };

/// Codes of a look, as they were set: 0 is the terminal's own.
typedef struct look {
    int colour, ground; ///< -1: own; 0-255; beyond: 256 + RGB
    bool bold, underline, reverse;
} look;
static const look own = {.colour = -1, .ground = -1};

typedef struct screen {
    int w, h, x, y;
    bool wraps; ///< the last column was written: the position of the cursor is then undefined
    look now;
    uint32_t glyphs[MAX_H][MAX_W];
    look looks[MAX_H][MAX_W];
    size_t n_bytes, n_sgr;
} screen;

static void clear(screen *s, int y, int x, int n) {
    for (int i = x; i < x + n && i < s->w; i++) {
        s->glyphs[y][i] = ' ';
        s->looks[y][i] = (look){.colour = -1, .ground = s->now.ground};
    }
}

static void set_colour(const int *codes, int *i, int n, int *out) {
    if (*i + 2 < n && codes[*i + 1] == 5) {
        *out = codes[*i + 2];
        *i += 2;
    } else {
        assert_true(*i + 4 < n && codes[*i + 1] == 2);
        *out = 256 + (codes[*i + 2] << 16 | codes[*i + 3] << 8 | codes[*i + 4]);
        *i += 4;
    }
}

static void take_sgr(screen *s, const int *codes, int n) {
    s->n_sgr++;
    for (int i = 0; i < n; i++) {
        const int c = codes[i];
        if (c == 0)
            s->now = own;
        else if (c == 1 || c == 22)
            s->now.bold = c == 1;
        else if (c == 4 || c == 24)
            s->now.underline = c == 4;
        else if (c == 7 || c == 27)
            s->now.reverse = c == 7;
        else if (c >= 30 && c < 38)
            s->now.colour = c - 30;
        else if (c >= 90 && c < 98)
            s->now.colour = c - 82;
        else if (c == 38)
            set_colour(codes, &i, n, &s->now.colour);
        else if (c == 39)
            s->now.colour = -1;
        else if (c >= 40 && c < 48)
            s->now.ground = c - 40;
        else if (c >= 100 && c < 108)
            s->now.ground = c - 92;
        else if (c == 48)
            set_colour(codes, &i, n, &s->now.ground);
        else if (c == 49)
            s->now.ground = -1;
        else
            fail_msg("SGR %d", c);
    }
}

static void take_control(screen *s, char last, const int *codes, int n) {
    const int first = codes[0];
    if (last == 'm') {
        take_sgr(s, codes, n);
        return;
    }
    if (last == 'H') {
        s->y = first > 0 ? first - 1 : 0;
        s->x = n > 1 ? codes[1] - 1 : 0;
        s->wraps = false;
        return;
    }
    if (last == 'J') {
        assert_int_equal(first, 2);
        for (int y = 0; y < s->h; y++) clear(s, y, 0, s->w);
        return;
    }
    assert_false(s->wraps);
    if (last == 'C')
        s->x += first > 0 ? first : 1;
    else if (last == 'D')
        s->x -= first > 0 ? first : 1;
    else if (last == 'K')
        clear(s, s->y, s->x, s->w - s->x);
    else if (last == 'X')
        clear(s, s->y, s->x, first);
    else
        fail_msg("control %c", last);
    assert_in_range(s->x, 0, s->w - 1);
}

/// A sequence at *p, behind its ESC [.
static void read_control(screen *s, const char **p) {
    int codes[16] = {0}, n = 1;
    for (; **p == ';' || (**p >= '0' && **p <= '9'); (*p)++) {
        if (**p == ';')
            n++;
        else
            codes[n - 1] = 10 * codes[n - 1] + (**p - '0');
        assert_true(n <= 16);
    }
    take_control(s, *(*p)++, codes, n);
}

static bool is_wide(uint32_t glyph) { return glyph >= 0x4E00 && glyph < 0xA000; }

static void print(screen *s, uint32_t glyph) {
    assert_false(s->wraps);
    assert_in_range(s->x, 0, s->w - 1);
    assert_in_range(s->y, 0, s->h - 1);
    const int w = is_wide(glyph) ? 2 : 1;
    for (int i = 0; i < w; i++) { // half of a wide one takes the other half with it
        uint32_t *at = &s->glyphs[s->y][s->x + i];
        if (*at == 0) s->glyphs[s->y][s->x + i - 1] = ' ';
        if (s->x + i + 1 < s->w && at[1] == 0) at[1] = ' ';
    }
    for (int i = 0; i < w; i++) {
        s->glyphs[s->y][s->x] = i == 0 ? glyph : 0;
        s->looks[s->y][s->x++] = s->now;
    }
    s->wraps = s->x >= s->w;
}

static void feed(screen *s, const tide_text *bytes) {
    s->n_bytes = bytes->len;
    s->n_sgr = 0;
    for (const char *p = tide_text_str(bytes), *end = p + bytes->len; p < end;) {
        uint32_t glyph;
        if (p[0] == '\033') {
            assert_int_equal(p[1], '[');
            p += 2;
            read_control(s, &p);
            continue;
        }
        p += tide_utf8_decode(p, &glyph);
        assert_int_not_equal(glyph, TIDE_UTF8_BAD);
        if (glyph == '\n')
            s->y++;
        else if (glyph == '\r')
            s->x = 0;
        else if (glyph == '\b')
            s->x--;
        else
            print(s, glyph);
        if (glyph < ' ') assert_false(s->wraps);
    }
}

// ---- what must be there ----

static int coded(tide_tui_colour_tier tier, int32_t colour) {
    return tier == TIDE_TUI_COLOUR_MONO || colour < 0 ? -1
           : tier == TIDE_TUI_COLOUR_TRUE             ? 256 + (int)colour
                                                      : (int)colour;
}

static look wanted(tide_tui_colour_tier tier, tide_tui_cell cell) {
    const tide_tui_look l = tide_tui_look_of(tier, TIDE_TUI_GROUND_DARK, (tide_tui_role)cell.role);
    const int32_t ground = tide_tui_ground_colour(tier, TIDE_TUI_GROUND_DARK, (tide_tui_role)cell.ground);
    look out = {.colour = coded(tier, l.colour),
                .ground = coded(tier, ground),
                .bold = (l.attrs & TIDE_TUI_ATTR_BOLD) != 0,
                .underline = (l.attrs & TIDE_TUI_ATTR_UNDERLINE) != 0 || (cell.marks & TIDE_TUI_MARK_MATCH) != 0,
                .reverse = (l.attrs & TIDE_TUI_ATTR_REVERSE) != 0};
    if (cell.marks & TIDE_TUI_MARK_SELECTED) out.reverse = !out.reverse;
    return out;
}

/// The colour of a blank does not show, unless it is reversed or underlined.
static bool looks_like(look is, look want, uint32_t glyph) {
    const bool blank = glyph == ' ' && !want.reverse && !want.underline;
    return (blank || (is.colour == want.colour && is.bold == want.bold)) && is.ground == want.ground &&
           is.underline == want.underline && is.reverse == want.reverse;
}

static void check(const screen *s, const tide_tui_grid *g, tide_tui_colour_tier tier) {
    for (int y = 0; y < g->height; y++) {
        for (int x = 0; x < g->width; x++) {
            const tide_tui_cell cell = tide_tui_get(g, x, y);
            if (s->glyphs[y][x] != cell.glyph) fail_msg("%d, %d: %x for %x", x, y, s->glyphs[y][x], cell.glyph);
            if (cell.glyph != 0 && !looks_like(s->looks[y][x], wanted(tier, cell), cell.glyph))
                fail_msg("%d, %d: another look, role %d on %d, marks %d", x, y, cell.role, cell.ground, cell.marks);
        }
    }
}

typedef struct fixture {
    tide_tui_paint *paint;
    tide_tui_grid grid;
    screen screen;
    tide_tui_colour_tier tier;
} fixture;

static fixture *open_screen(tide_tui_colour_tier tier, bool erases, int w, int h) {
    fixture *f = tide_host_calloc(1, sizeof *f);
    const tide_tui_paint_options opt = {.tier = tier, .ground = TIDE_TUI_GROUND_DARK, .erases = erases};
    tide_error err = TIDE_ERROR_INIT;
    f->tier = tier;
    f->screen = (screen){.w = w, .h = h, .x = 3, .now = {.colour = 1, .ground = 2, .bold = true}};
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) f->screen.glyphs[y][x] = '?';
    }
    assert_tide_ok(tide_tui_paint_create(&opt, &f->paint, &err), &err);
    assert_tide_ok(tide_tui_grid_resize(&f->grid, w, h, &err), &err);
    return f;
}

static void show(fixture *f) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_paint_frame(f->paint, &f->grid, &out, &err), &err);
    feed(&f->screen, &out);
    tide_text_deinit(&out);
    check(&f->screen, &f->grid, f->tier);
}

static void close_screen(fixture *f) {
    tide_tui_paint_destroy(f->paint);
    tide_tui_grid_deinit(&f->grid);
    tide_host_free(f);
}

// ---- tests ----

static void change_anything(fixture *f, tide_rng *rng) {
    static const uint32_t glyphs[] = {' ', ' ', 'a', 'b', '7', 0x2588, 0x2591, 0x4E2D, 0xE9};
    const int n = (int)tide_rng_below(rng, 40);
    for (int i = 0; i < n; i++) {
        const int x = (int)tide_rng_below(rng, (uint64_t)f->grid.width),
                  y = (int)tide_rng_below(rng, (uint64_t)f->grid.height);
        const int len = 1 + (int)tide_rng_below(rng, 12);
        const uint32_t glyph = glyphs[tide_rng_below(rng, sizeof glyphs / sizeof glyphs[0])];
        const tide_tui_role role = (tide_tui_role)tide_rng_below(rng, TIDE_TUI_N_ROLES);
        const tide_tui_role ground =
            tide_rng_below(rng, 3) == 0 ? (tide_tui_role)tide_rng_below(rng, TIDE_TUI_N_ROLES) : TIDE_TUI_ROLE_TEXT;
        for (int k = x; k < x + len && k + is_wide(glyph) < f->grid.width; k += 1 + is_wide(glyph)) {
            // As text is put: halves that are left over become blank.
            for (int half = k; half <= k + is_wide(glyph); half++) {
                if (tide_tui_get(&f->grid, half, y).glyph == 0) tide_tui_put(&f->grid, half - 1, y, ' ', role);
                if (tide_tui_get(&f->grid, half + 1, y).glyph == 0 && half + 1 < f->grid.width)
                    tide_tui_put(&f->grid, half + 1, y, ' ', role);
                tide_tui_put(&f->grid, half, y, half == k ? glyph : 0, role);
                tide_tui_put_ground(&f->grid, half, y, ground);
            }
        }
        if (tide_rng_below(rng, 6) == 0) tide_tui_mark_row(&f->grid, x, y, len, (uint8_t)(1 + tide_rng_below(rng, 3)));
    }
    if (tide_rng_below(rng, 20) == 0) tide_tui_grid_clear(&f->grid);
    if (tide_rng_below(rng, 30) == 0) tide_tui_paint_forget(f->paint);
}

/// Wide glyphs, the last column, any look after any other, blanks of any ground, a screen that is forgotten.
static void the_screen_is_the_frame(void **state) {
    (void)state;
    static const tide_tui_colour_tier tiers[] = {TIDE_TUI_COLOUR_TRUE, TIDE_TUI_COLOUR_256, TIDE_TUI_COLOUR_16,
                                                 TIDE_TUI_COLOUR_8, TIDE_TUI_COLOUR_MONO};
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        tide_rng rng = {i + 1};
        fixture *f = open_screen(tiers[i], i % 2 == 0, 37, 11);
        for (int k = 0; k < 400; k++) {
            change_anything(f, &rng);
            show(f);
        }
        close_screen(f);
    }
}

static void nothing_is_sent_for_nothing(void **state) {
    (void)state;
    fixture *f = open_screen(TIDE_TUI_COLOUR_256, true, 40, 10);
    tide_tui_fill_row(&f->grid, 0, 3, 40, 'x', TIDE_TUI_ROLE_KEY);
    show(f);
    assert_true(f->screen.n_bytes > 40);
    show(f);
    assert_int_equal(f->screen.n_bytes, 0);
    // The colour of a blank is nothing that shows.
    tide_tui_put(&f->grid, 7, 7, ' ', TIDE_TUI_ROLE_PEAK);
    show(f);
    assert_int_equal(f->screen.n_bytes, 0);
    close_screen(f);
}

/// A line of one look across all rows is one switch of colours, and a few bytes a row.
static void a_cursor_line_is_cheap(void **state) {
    (void)state;
    fixture *f = open_screen(TIDE_TUI_COLOUR_256, true, 80, 40);
    for (int y = 0; y < 40; y++)
        tide_tui_fill_row(&f->grid, 0, y, 80, 0x2588, y % 2 ? TIDE_TUI_ROLE_CURVE : TIDE_TUI_ROLE_SPIKE);
    show(f);
    for (int y = 0; y < 40; y++) tide_tui_put(&f->grid, 20, y, 0x2502, TIDE_TUI_ROLE_CURSOR);
    show(f);
    assert_int_equal(f->screen.n_sgr, 1);
    assert_in_range(f->screen.n_bytes, 40 * 3, 40 * 5 + 32);
    // It moves on: two switches more, for what was under it.
    for (int y = 0; y < 40; y++) {
        tide_tui_put(&f->grid, 20, y, 0x2588, y % 2 ? TIDE_TUI_ROLE_CURVE : TIDE_TUI_ROLE_SPIKE);
        tide_tui_put(&f->grid, 21, y, 0x2502, TIDE_TUI_ROLE_CURSOR);
    }
    show(f);
    assert_true(f->screen.n_sgr <= 3);
    assert_in_range(f->screen.n_bytes, 80 * 3, 80 * 6 + 64);
    close_screen(f);
}

static void what_is_left_of_a_row_is_erased(void **state) {
    (void)state;
    for (int erases = 0; erases < 2; erases++) {
        fixture *f = open_screen(TIDE_TUI_COLOUR_256, erases != 0, 80, 4);
        tide_tui_fill_row(&f->grid, 0, 1, 80, 'x', TIDE_TUI_ROLE_TEXT);
        tide_tui_fill_row(&f->grid, 0, 2, 80, 'y', TIDE_TUI_ROLE_TEXT);
        show(f);
        tide_tui_fill_row(&f->grid, 10, 1, 70, ' ', TIDE_TUI_ROLE_TEXT); // to the end: any terminal can
        show(f);
        assert_in_range(f->screen.n_bytes, 4, 16);
        tide_tui_fill_row(&f->grid, 10, 2, 50, ' ', TIDE_TUI_ROLE_TEXT);
        show(f);
        assert_in_range(f->screen.n_bytes, 4, erases ? 16 : 64);
        close_screen(f);
    }
}

/// Whether the bytes of the next frame have `text` in them.
static bool sends(fixture *f, const char *text) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_paint_frame(f->paint, &f->grid, &out, &err), &err);
    feed(&f->screen, &out);
    check(&f->screen, &f->grid, f->tier);
    const bool does = strstr(tide_text_str(&out), text) != NULL;
    tide_text_deinit(&out);
    return does;
}

/// Up to four characters that are there already are written again, where moving over them takes as many bytes; up to
/// three blanks at the end of a row are written, where erasing takes three bytes.
static void the_shorter_way_is_sent(void **state) {
    (void)state;
    fixture *f = open_screen(TIDE_TUI_COLOUR_256, true, 40, 2);
    for (int x = 0; x < 26; x++) tide_tui_put(&f->grid, x, 0, 'a' + (uint32_t)x, TIDE_TUI_ROLE_TEXT);
    show(f);
    tide_tui_put(&f->grid, 2, 0, 'X', TIDE_TUI_ROLE_TEXT);
    tide_tui_put(&f->grid, 7, 0, 'Y', TIDE_TUI_ROLE_TEXT);
    assert_true(sends(f, "XdefgY"));
    tide_tui_put(&f->grid, 12, 0, 'X', TIDE_TUI_ROLE_TEXT);
    tide_tui_put(&f->grid, 18, 0, 'Y', TIDE_TUI_ROLE_TEXT);
    assert_false(sends(f, "n"));
    tide_tui_fill_row(&f->grid, 23, 0, 3, ' ', TIDE_TUI_ROLE_TEXT);
    assert_false(sends(f, "\033[K"));
    tide_tui_fill_row(&f->grid, 19, 0, 4, ' ', TIDE_TUI_ROLE_TEXT);
    assert_true(sends(f, "\033[K"));
    close_screen(f);
}

static void ascii_alone_where_nothing_else_is_understood(void **state) {
    (void)state;
    const tide_tui_paint_options opt = {.tier = TIDE_TUI_COLOUR_MONO, .ascii = true};
    tide_tui_paint *p;
    tide_tui_grid g = {0};
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_paint_create(&opt, &p, &err), &err);
    assert_tide_ok(tide_tui_grid_resize(&g, 10, 2, &err), &err);
    tide_tui_fill_row(&g, 0, 0, 10, 0x2588, TIDE_TUI_ROLE_CURVE);
    assert_tide_ok(tide_tui_paint_frame(p, &g, &out, &err), &err);
    assert_non_null(strstr(tide_text_str(&out), "??????????"));
    for (size_t i = 0; i < out.len; i++) assert_true((unsigned char)out.data[i] < 0x80);
    tide_text_deinit(&out);
    tide_tui_grid_deinit(&g);
    tide_tui_paint_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_screen_is_the_frame), tide_unit_test(nothing_is_sent_for_nothing),
        tide_unit_test(a_cursor_line_is_cheap),  tide_unit_test(what_is_left_of_a_row_is_erased),
        tide_unit_test(the_shorter_way_is_sent), tide_unit_test(ascii_alone_where_nothing_else_is_understood),
    };
    return cmocka_run_group_tests_name("tui_paint", tests, NULL, NULL);
}
