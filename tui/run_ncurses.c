// SPDX-License-Identifier: MIT
//
// The ncursesw backend: cells out, keys in. It knows nothing of timelines. Drawing characters are literal Unicode from
// our own table and never ACS, which reads back as letters; mode 2026 brackets each frame so that no half of one shows.
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "tui/draw.h"
#include "tui/terminal_guard.h"
#include "tui/tui.h"

enum { ESC_DELAY_MS = 25 };

typedef struct screen {
    SCREEN *curses;
    bool colour;
    bool synchronised;
    attr_t attrs[TIDE_TUI_N_ROLES];
    short pairs[TIDE_TUI_N_ROLES];
} screen;

// ---- roles to attributes ----

typedef struct look {
    short rich, plain; ///< foreground of 256 and of 8 colours; -1: the terminal's own
    attr_t attr, mono_attr;
} look;

/// Middle tones that hold on dark and on light grounds, apart for the common forms of colour blindness (after Okabe and
/// Ito, "Color Universal Design", 2008). Bars differ by glyph as well.
static const look looks[TIDE_TUI_N_ROLES] = {
    [TIDE_TUI_ROLE_TEXT] = {-1, -1, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_TITLE] = {-1, -1, A_BOLD, A_BOLD},
    [TIDE_TUI_ROLE_DIM] = {244, -1, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_LABEL] = {-1, -1, A_UNDERLINE, A_UNDERLINE},
    [TIDE_TUI_ROLE_KEY] = {32, COLOR_CYAN, A_BOLD, A_BOLD},
    [TIDE_TUI_ROLE_CURVE] = {32, COLOR_BLUE, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_SPIKE] = {74, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_PEAK] = {166, COLOR_RED, A_BOLD, A_BOLD},
    [TIDE_TUI_ROLE_BOUND] = {36, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_PLAN] = {172, COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_CURSOR] = {134, COLOR_MAGENTA, A_BOLD, A_BOLD},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_INTERMEDIATE] = {32, COLOR_BLUE, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_SCRATCH] = {172, COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_INOUT] = {36, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_WEIGHT] = {244, -1, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_KV_CACHE] = {134, COLOR_MAGENTA, A_NORMAL, A_NORMAL},
    [TIDE_TUI_ROLE_BAR + TIDE_TIMELINE_FILL_HOST] = {74, COLOR_CYAN, A_NORMAL, A_NORMAL},
};

static void prepare_looks(screen *s) {
    const short ground = s->colour && use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (int role = 0; role < TIDE_TUI_N_ROLES; role++) {
        const look l = looks[role];
        const short fg = COLORS >= 256 ? l.rich : l.plain;
        s->attrs[role] = s->colour ? l.attr : l.mono_attr;
        s->pairs[role] = 0;
        if (!s->colour || (fg < 0 && ground < 0)) continue;
        s->pairs[role] = (short)(role + 1);
        init_pair(s->pairs[role], fg < 0 ? (short)COLOR_WHITE : fg, ground);
    }
}

// ---- opening and closing ----

/// Terminals that know mode 2026 or pass over unknown private modes in silence.
static bool takes_synchronised_output(const char *term) {
    static const char *const known[] = {"xterm", "tmux",    "screen", "alacritty", "foot",
                                        "kitty", "wezterm", "rxvt",   "st-"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(term, known[i], strlen(known[i])) == 0) return true;
    }
    return false;
}

static tide_status check_terminal(tide_error *err) {
    const char *term = getenv("TERM");
    tide_status st = TIDE_OK;
    int found = 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "standard input and output must be a terminal for the interactive view");
    } else if (term == NULL || term[0] == '\0') {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "TERM is not set: the kind of terminal is unknown");
    } else if (setupterm(NULL, STDOUT_FILENO, &found) != OK) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "terminal '%.64s' is not in the terminfo database", term);
    } else {
        const char *cup = tigetstr("cup");
        if (cup == NULL || cup == (const char *)-1)
            st = TIDE_FAIL(err, TIDE_ERR_INVALID, "terminal '%.64s' cannot place its cursor", term);
        del_curterm(cur_term);
    }
    if (st != TIDE_OK) tide_error_hint(err, "print one frame as text instead: --once --size 120x40");
    return st;
}

static void add_reset_capability(const char *name) {
    const char *control = tigetstr(name);
    if (control != (const char *)-1) tide_tui_guard_add_reset(control);
}

static tide_status open_screen(screen *s, const tide_tui_options *opt, tide_error *err) {
    TIDE_TRY(check_terminal(err));
    tide_tui_guard_prepare(STDOUT_FILENO);
    set_escdelay(ESC_DELAY_MS);
    s->curses = newterm(NULL, stdout, stdin);
    if (s->curses == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the terminal cannot be taken over");
    s->synchronised = takes_synchronised_output(getenv("TERM"));
    if (s->synchronised) tide_tui_guard_add_reset("\033[?2026l");
    static const char *const capabilities[] = {"rmkx", "sgr0", "op", "cnorm", "rmcup"};
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) add_reset_capability(capabilities[i]);
    tide_tui_guard_arm();
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    curs_set(0);
    s->colour = !(opt != NULL && opt->no_colour) && has_colors() && start_color() == OK;
    prepare_looks(s);
    return TIDE_OK;
}

static void close_screen(screen *s) {
    curs_set(1);
    endwin();
    tide_tui_guard_disarm();
    delscreen(s->curses);
    s->curses = NULL;
}

// ---- out ----

static void bracket_frame(const screen *s, const char *control) {
    // doupdate() empties curses' buffer, so a direct write keeps its place before and after it.
    if (s->synchronised && write(STDOUT_FILENO, control, strlen(control)) < 0) return;
}

static void show(const screen *s, const tide_tui_grid *grid) {
    for (int y = 0; y < grid->height; y++) {
        for (int x = 0; x < grid->width; x++) {
            const tide_tui_cell cell = tide_tui_get(grid, x, y);
            if (cell.glyph == 0) continue;
            const wchar_t text[2] = {(wchar_t)cell.glyph, L'\0'};
            attr_t attrs = s->attrs[cell.role];
            if (cell.marks & TIDE_TUI_MARK_SELECTED) attrs |= A_REVERSE;
            cchar_t out;
            setcchar(&out, text, attrs, s->pairs[cell.role], NULL);
            mvadd_wch(y, x, &out);
        }
    }
    wnoutrefresh(stdscr);
    bracket_frame(s, "\033[?2026h");
    doupdate();
    bracket_frame(s, "\033[?2026l");
}

// ---- in ----

static uint32_t key_of_code(wint_t code) {
    switch (code) {
    case KEY_UP:
        return TIDE_TUI_KEY_UP;
    case KEY_DOWN:
        return TIDE_TUI_KEY_DOWN;
    case KEY_LEFT:
        return TIDE_TUI_KEY_LEFT;
    case KEY_RIGHT:
        return TIDE_TUI_KEY_RIGHT;
    case KEY_SLEFT:
        return TIDE_TUI_KEY_SHIFT_LEFT;
    case KEY_SRIGHT:
        return TIDE_TUI_KEY_SHIFT_RIGHT;
    case KEY_PPAGE:
        return TIDE_TUI_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TIDE_TUI_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TIDE_TUI_KEY_HOME;
    case KEY_END:
        return TIDE_TUI_KEY_END;
    case KEY_F(1):
        return TIDE_TUI_KEY_F1;
    case KEY_F(6):
        return TIDE_TUI_KEY_F6;
    case KEY_F(10):
        return TIDE_TUI_KEY_F10;
    default:
        return 0;
    }
}

typedef enum input { INPUT_KEY, INPUT_RESIZE, INPUT_GONE } input;

static input next_input(uint32_t *key) {
    for (;;) {
        wint_t code = 0;
        errno = 0;
        const int got = get_wch(&code);
        if (got == KEY_CODE_YES && code == KEY_RESIZE) return INPUT_RESIZE;
        if (got != ERR) {
            *key = got == KEY_CODE_YES ? key_of_code(code) : (uint32_t)code;
            return INPUT_KEY;
        }
        if (errno != EINTR) return INPUT_GONE;
    }
}

// ---- the loop ----

static tide_status draw_anew(const screen *s, tide_tui_view *v, tide_tui_model *model, tide_tui_layout *layout,
                             tide_error *err) {
    int width, height;
    getmaxyx(stdscr, height, width);
    if (width != v->grid->width || height != v->grid->height)
        TIDE_TRY(tide_tui_grid_resize(v->grid, width, height, err));
    tide_tui_layout_make(width, height, layout);
    tide_tui_settle(model, layout);
    tide_tui_draw(v);
    show(s, v->grid);
    return TIDE_OK;
}

static tide_status loop(const screen *s, tide_tui_view *v, tide_tui_model *model, tide_tui_layout *layout,
                        tide_error *err) {
    for (;;) {
        TIDE_TRY(draw_anew(s, v, model, layout, err));
        unsigned flags = 0;
        while ((flags & (TIDE_TUI_REDRAWN | TIDE_TUI_REPAINT)) == 0) {
            uint32_t key = 0;
            const input got = next_input(&key);
            if (got == INPUT_GONE) return TIDE_FAIL(err, TIDE_ERR_IO, "the terminal is gone");
            if (got == INPUT_RESIZE) break;
            flags = tide_tui_press(model, layout, key);
            if (flags & TIDE_TUI_LEAVE) return TIDE_OK;
        }
        if (flags & TIDE_TUI_REPAINT) clearok(curscr, TRUE);
    }
}

tide_status tide_tui_run(const tide_timeline *tl, const tide_tui_options *opt, tide_error *err) {
    screen s = {0};
    tide_tui_model model;
    tide_tui_layout layout;
    tide_tui_grid grid = {0};
    TIDE_TRY(tide_tui_model_init(&model, tl, err));
    tide_status st = open_screen(&s, opt, err);
    if (st == TIDE_OK) {
        // Wide characters vanish without a word where the locale is not UTF-8.
        const bool ascii = (opt != NULL && opt->ascii) || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
        tide_tui_view view = {&model, &layout, tide_tui_glyphs_of(ascii), &grid};
        st = loop(&s, &view, &model, &layout, err);
        close_screen(&s);
    }
    tide_tui_grid_deinit(&grid);
    tide_tui_model_deinit(&model);
    return st;
}
