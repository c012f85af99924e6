// SPDX-License-Identifier: MIT
//
// Taking the screen, giving it back, frames. See terminal.h. Frames are painted (paint.h) where the terminal follows
// ECMA-48, and left to curses where it does not; keys, modes and sizes are curses' everywhere. Drawing characters are
// literal Unicode from our own table and never ACS, which reads back as letters; mode 2026 brackets each frame so that
// no half of one shows.
#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "tui/terminal_guard.h"
#include "tui/terminal_internal.h"
#include <term.h>

enum { ESC_DELAY_MS = 25 };

#define MOUSE_ON "\033[?1002h\033[?1006h"
#define MOUSE_OFF "\033[?1006l\033[?1002l"
#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define FRAME_BEGIN "\033[?2026h"
#define FRAME_END "\033[?2026l"
#define OWN_LOOK "\033[m"

// ---- which terminal ----

/// Terminals that know private modes or pass over those that they do not know.
static bool takes_private_modes(const char *term) {
    static const char *const known[] = {"xterm", "tmux",    "screen", "alacritty", "foot",
                                        "kitty", "wezterm", "rxvt",   "st-",       "linux"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(term, known[i], strlen(known[i])) == 0) return true;
    }
    return false;
}

tide_status tide_tui_terminal_check(tide_error *err) {
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
    if (st != TIDE_OK)
        tide_error_hint(err, "print one frame as text instead: --once --size 120x40; or in lines: --linear");
    return st;
}

void tide_tui_terminal_ask_size(int *width, int *height) {
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

// ---- opening and closing ----

void tide_tui_terminal_write(tide_tui_terminal *t, const char *bytes, size_t n) {
    (void)t;
    // doupdate() empties curses' buffer, so a direct write keeps its place before and after it.
    for (size_t at = 0; at < n;) {
        const ssize_t did = write(STDOUT_FILENO, bytes + at, n - at);
        if (did < 0 && errno == EINTR) continue;
        if (did <= 0) return; // a terminal that is gone shows when it is read
        at += (size_t)did;
    }
}

static void send(tide_tui_terminal *t, const char *control) { tide_tui_terminal_write(t, control, strlen(control)); }

static void add_reset_capability(const char *name) {
    const char *control = tigetstr(name);
    if (control != (const char *)-1) tide_tui_guard_add_reset(control);
}

static void prepare_resets(const tide_tui_terminal *t) {
    if (t->synchronised) tide_tui_guard_add_reset(FRAME_END MOUSE_OFF PASTE_OFF);
    static const char *const capabilities[] = {"rmkx", "sgr0", "op", "cnorm", "rmcup"};
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) add_reset_capability(capabilities[i]);
}

static tide_status prepare_screen(tide_tui_terminal *t, tide_error *err) {
    t->keys = newpad(1, 1);
    if (t->keys == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the terminal");
    cbreak();
    noecho();
    nonl();
    intrflush(t->keys, FALSE);
    keypad(t->keys, TRUE);
    nodelay(t->keys, TRUE);
    leaveok(stdscr, TRUE);
    curs_set(0);
    tide__terminal_define_keys();
    return TIDE_OK;
}

static tide_status prepare_frames(tide_tui_terminal *t, const tide_tui_options *opt, tide_error *err) {
    const bool paints = tide__terminal_follows_ecma48();
    t->tier = tide__terminal_choose_tier(opt, paints);
    t->ground = tide_tui_ground_of(getenv("COLORFGBG"));
    if (!paints) return TIDE_OK;
    const char *ech = tigetstr("ech");
    const tide_tui_paint_options how = {.tier = t->tier,
                                        .ground = t->ground,
                                        .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
                                        .erases = ech != NULL && ech != (const char *)-1};
    doupdate(); // curses' own first frame, which is empty, so that none comes later
    return tide_tui_paint_create(&how, &t->paint, err);
}

tide_status tide_tui_terminal_open(const tide_tui_options *opt, tide_tui_terminal **out, tide_error *err) {
    *out = NULL;
    TIDE_TRY(tide_tui_terminal_check(err));
    tide_tui_terminal *t = tide_host_calloc(1, sizeof *t);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the terminal");
    tide_tui_guard_prepare(STDOUT_FILENO);
    set_escdelay(ESC_DELAY_MS);
    t->curses = newterm(NULL, stdout, stdin);
    if (t->curses == NULL) {
        tide_host_free(t);
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the terminal cannot be taken over");
    }
    t->synchronised = takes_private_modes(getenv("TERM"));
    prepare_resets(t);
    tide_tui_guard_arm();
    tide__terminal_catch_signals(t);
    tide_status st = prepare_screen(t, err);
    if (st == TIDE_OK) st = prepare_frames(t, opt, err);
    if (st != TIDE_OK) {
        tide_tui_terminal_close(t);
        return st;
    }
    t->pastes = t->synchronised;
    if (t->pastes) send(t, PASTE_ON);
    *out = t;
    return TIDE_OK;
}

static void leave_modes(tide_tui_terminal *t) {
    if (t->mouse) send(t, MOUSE_OFF);
    if (t->pastes) send(t, PASTE_OFF);
    t->in_paste = false;
    if (t->paint == NULL) return;
    tide_tui_paint_forget(t->paint);
    send(t, OWN_LOOK); // curses knows nothing of other colours
}

void tide_tui_terminal_close(tide_tui_terminal *t) {
    if (t == NULL) return;
    leave_modes(t);
    curs_set(1);
    endwin();
    tide__terminal_drop_signals();
    tide_tui_guard_disarm();
    if (t->keys != NULL) delwin(t->keys);
    delscreen(t->curses);
    tide_tui_paint_destroy(t->paint);
    tide_tui_grid_deinit(&t->now);
    tide_host_free(t);
}

void tide_tui_terminal_set_mouse(tide_tui_terminal *t, bool on) {
    if (t->mouse == on) return;
    t->mouse = on;
    send(t, on ? MOUSE_ON : MOUSE_OFF);
}

void tide_tui_terminal_suspend(tide_tui_terminal *t) {
    leave_modes(t);
    curs_set(1);
    endwin();
    tide__terminal_stop();
    reset_prog_mode();
    if (t->paint != NULL) doupdate(); // takes the screen again; what it writes there is painted over
    curs_set(0);
    if (t->pastes) send(t, PASTE_ON);
    if (t->mouse) send(t, MOUSE_ON);
}

void tide_tui_terminal_size(const tide_tui_terminal *t, int *width, int *height) {
    (void)t;
    getmaxyx(stdscr, *height, *width);
}

tide_tui_colour_tier tide_tui_terminal_tier(const tide_tui_terminal *t) { return t->tier; }

// ---- frames ----

static void put_row(const tide_tui_terminal *t, const tide_tui_grid *grid, int y) {
    for (int x = 0; x < grid->width; x++) {
        const tide_tui_cell cell = grid->cells[(size_t)y * (size_t)grid->width + (size_t)x];
        if (cell.glyph == 0) continue;
        const wchar_t text[2] = {(wchar_t)cell.glyph, L'\0'};
        int pair = 0;
        const attr_t attrs = tide__terminal_attrs(t, cell, &pair);
        cchar_t out;
        setcchar(&out, text, attrs, 0, &pair);
        mvadd_wch(y, x, &out);
    }
}

/// Room for what is on the screen of curses; nothing is known of a screen of another size.
static tide_status keep_size(tide_tui_terminal *t, const tide_tui_grid *grid, bool *repaint, tide_error *err) {
    if (t->now.width == grid->width && t->now.height == grid->height) return TIDE_OK;
    *repaint = true;
    return tide_tui_grid_resize(&t->now, grid->width, grid->height, err);
}

/// By curses: rows that differ are handed over whole, what of them is sent is its matter.
static tide_status show_by_curses(tide_tui_terminal *t, const tide_tui_grid *grid, bool repaint, tide_error *err) {
    TIDE_TRY(keep_size(t, grid, &repaint, err));
    const size_t row_bytes = (size_t)grid->width * sizeof *grid->cells;
    for (int y = 0; y < grid->height; y++) {
        tide_tui_cell *before = t->now.cells + (size_t)y * (size_t)grid->width;
        const tide_tui_cell *after = grid->cells + (size_t)y * (size_t)grid->width;
        if (!repaint && memcmp(before, after, row_bytes) == 0) continue;
        put_row(t, grid, y);
        memcpy(before, after, row_bytes);
    }
    if (repaint) clearok(curscr, TRUE);
    wnoutrefresh(stdscr);
    if (t->synchronised) send(t, FRAME_BEGIN);
    doupdate();
    if (t->synchronised) send(t, FRAME_END);
    return TIDE_OK;
}

tide_status tide_tui_terminal_show(tide_tui_terminal *t, const tide_tui_grid *grid, bool repaint, tide_error *err) {
    if (t->paint == NULL) return show_by_curses(t, grid, repaint, err);
    tide_text out = {0};
    if (repaint) tide_tui_paint_forget(t->paint);
    if (t->synchronised) tide_text_add(&out, FRAME_BEGIN);
    const size_t before = out.len;
    const tide_status st = tide_tui_paint_frame(t->paint, grid, &out, err);
    if (st == TIDE_OK && out.len > before) {
        if (t->synchronised) tide_text_add(&out, FRAME_END);
        tide_tui_terminal_write(t, out.data, out.len); // at once: nothing else comes between
    }
    tide_text_deinit(&out);
    return st;
}

// ---- waiting ----

unsigned tide_tui_terminal_wait(tide_tui_terminal *t, int other_fd, int timeout_ms) {
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = other_fd, .events = POLLIN}};
    const struct timespec limit = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    const int n = ppoll(fds, other_fd >= 0 ? 2 : 1, timeout_ms >= 0 ? &limit : NULL, &t->waiting);
    unsigned woke = tide__terminal_signals();
    if (n < 0)
        return woke | (errno == EINTR ? TIDE_TUI_WOKE_INPUT : TIDE_TUI_WOKE_GONE); // curses says if it was a resize
    if (n == 0) return woke;
    if (fds[0].revents & (POLLERR | POLLNVAL)) return woke | TIDE_TUI_WOKE_GONE;
    if ((fds[0].revents & POLLHUP) && !(fds[0].revents & POLLIN)) return woke | TIDE_TUI_WOKE_GONE;
    if (fds[0].revents & POLLIN) woke |= TIDE_TUI_WOKE_INPUT;
    if (other_fd >= 0 && fds[1].revents != 0) woke |= TIDE_TUI_WOKE_OTHER;
    if (!(woke & TIDE_TUI_WOKE_INPUT)) return woke;
    t->n_empty++; // until something is read
    return t->n_empty > 64 ? woke | TIDE_TUI_WOKE_GONE : woke;
}
