// SPDX-License-Identifier: MIT
//
// The screen, the keys, the mouse and the signals of a terminal. See terminal.h.
//
// Frames are painted (paint.h) where the terminal follows ECMA-48, and written by curses where it does not; keys, modes
// and sizes are read through curses everywhere. Drawing characters are literal Unicode from the table of glyphs and
// never ACS, which reads back as letters. Mode 2026 brackets each frame, so that no half of a frame shows.
#include "tui/term/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "tui/term/paint.h"
#include "tui/term/terminal_guard.h"

#include <curses.h>
// Macros of curses that are names here.
#undef lines
#undef columns
#include <term.h> // behind curses.h

enum { MOUSE_CODE = 0x7001, PASTE_BEGIN, PASTE_END };

struct tide_tui_terminal {
    SCREEN *curses;
    WINDOW *keys;          ///< a pad: reading from it leaves the screen alone
    tide_tui_paint *paint; ///< NULL: a terminal that does not follow ECMA-48, for which curses writes the frames
    tide_tui_colour_tier tier;
    tide_tui_ground ground;
    bool synchronised; ///< mode 2026 brackets each frame
    bool mouse, pastes;
    bool in_paste;
    int n_empty;       ///< times that poll reported input and none came: the terminal is gone
    sigset_t waiting;  ///< signals while waiting: those that wake are let through
    tide_tui_grid now; ///< what is on the screen, where curses writes it
};

// ---- colours ----

/// What a capability with one parameter makes of it; "": there is none.
static const char *with(const char *name, int value) {
    const char *control = tigetstr(name);
    const char *made = control != NULL && control != (const char *)-1 ? tiparm(control, value) : NULL;
    return made != NULL ? made : "";
}

static bool is(const char *name, const char *want) {
    const char *control = tigetstr(name);
    return control != NULL && control != (const char *)-1 && strcmp(control, want) == 0;
}

static bool follows_ecma48(void) {
    const char *cup = tigetstr("cup");
    if (cup == NULL || cup == (const char *)-1 || strcmp(tiparm(cup, 4, 6), "\033[5;7H") != 0) return false;
    if (!is("bold", "\033[1m") || !is("rev", "\033[7m") || !is("smul", "\033[4m") || !is("el", "\033[K")) return false;
    if (!is("cud1", "\n") || !is("cub1", "\b") || !is("cuf1", "\033[C")) return false;
    const int n_colours = tigetnum("colors");
    if (n_colours <= 0) return true;
    const bool foregrounds = strcmp(with("setaf", 1), "\033[31m") == 0 && strcmp(with("setab", 1), "\033[41m") == 0;
    const char *of_palette = with("setaf", 200); // terminals that use colons take semicolons, too
    const bool palette =
        n_colours != 256 || strcmp(of_palette, "\033[38;5;200m") == 0 || strcmp(of_palette, "\033[38:5:200m") == 0;
    return is("op", "\033[39;49m") && foregrounds && palette;
}

/// COLORTERM tells what common terminfo entries do not. GNU screen passes the variable on, but not the colours.
static bool says_true_colour(void) {
    const char *says = getenv("COLORTERM"), *term = getenv("TERM"), *tmux = getenv("TMUX");
    if (says == NULL || (strcmp(says, "truecolor") != 0 && strcmp(says, "24bit") != 0)) return false;
    return strncmp(term != NULL ? term : "", "screen", 6) != 0 || (tmux != NULL && tmux[0] != '\0');
}

/// Best tier of the terminal. Through curses, colours by their value need a terminfo entry that has them
/// (xterm-direct, tmux-direct).
static tide_tui_colour_tier best_tier(bool paints) {
    if (!has_colors() || start_color() != OK) return TIDE_TUI_COLOUR_MONO;
    if (paints && COLORS >= 256 && says_true_colour()) return TIDE_TUI_COLOUR_TRUE;
    if (COLORS > 256) return tigetflag("RGB") > 0 || COLORS >= 1 << 24 ? TIDE_TUI_COLOUR_TRUE : TIDE_TUI_COLOUR_256;
    if (COLORS == 256) return TIDE_TUI_COLOUR_256;
    return COLORS >= 16 ? TIDE_TUI_COLOUR_16 : COLORS >= 8 ? TIDE_TUI_COLOUR_8 : TIDE_TUI_COLOUR_MONO;
}

static tide_tui_colour_tier choose_tier(const tide_tui_options *opt, bool paints) {
    const tide_tui_colour_tier asked = opt != NULL ? opt->colour : TIDE_TUI_COLOUR_AUTO;
    const char *no_color = getenv("NO_COLOR");
    if (asked == TIDE_TUI_COLOUR_MONO) return TIDE_TUI_COLOUR_MONO;
    if (asked == TIDE_TUI_COLOUR_AUTO && no_color != NULL && no_color[0] != '\0') return TIDE_TUI_COLOUR_MONO;
    const tide_tui_colour_tier best = best_tier(paints);
    if (best == TIDE_TUI_COLOUR_MONO || use_default_colors() != OK) return TIDE_TUI_COLOUR_MONO;
    // The user asked for colours by their value: the terminal is trusted to take them.
    if (asked == TIDE_TUI_COLOUR_TRUE && paints && best == TIDE_TUI_COLOUR_256) return asked;
    // Tiers are listed from the most colours to the fewest.
    return asked != TIDE_TUI_COLOUR_AUTO && asked > best ? asked : best;
}

static attr_t attrs_of(const tide_tui_terminal *t, tide_tui_cell cell, int *pair) {
    const tide_tui_look look = tide_tui_look_of(t->tier, t->ground, (tide_tui_role)cell.role);
    const int32_t ground = tide_tui_ground_colour(t->tier, t->ground, (tide_tui_role)cell.ground);
    attr_t attrs = A_NORMAL;
    if (look.attrs & TIDE_TUI_ATTR_BOLD) attrs |= A_BOLD;
    if (look.attrs & TIDE_TUI_ATTR_UNDERLINE) attrs |= A_UNDERLINE;
    if (look.attrs & TIDE_TUI_ATTR_REVERSE) attrs |= A_REVERSE;
    if (cell.marks & TIDE_TUI_MARK_SELECTED) attrs ^= A_REVERSE;
    if (cell.marks & TIDE_TUI_MARK_MATCH) attrs |= A_UNDERLINE;
    *pair = 0;
    if (t->tier != TIDE_TUI_COLOUR_MONO && (look.colour >= 0 || ground >= 0)) {
        const int found = alloc_pair(look.colour, ground);
        if (found > 0) *pair = found;
    }
    return attrs;
}

// ---- keys: those of curses become ours; the mouse in SGR coding; pasted text ----

enum { MAX_MOUSE_TEXT = 32, REST_MS = 50, N_FUNCTION_KEYS = 12 };

static void define_keys(void) {
    define_key("\033[<", MOUSE_CODE);
    define_key("\033[200~", PASTE_BEGIN);
    define_key("\033[201~", PASTE_END);
}

static uint32_t key_of_code(wint_t code) {
    static const struct {
        wint_t code;
        uint32_t key;
    } known[] = {
        {KEY_UP, TIDE_TUI_KEY_UP},
        {KEY_DOWN, TIDE_TUI_KEY_DOWN},
        {KEY_LEFT, TIDE_TUI_KEY_LEFT},
        {KEY_RIGHT, TIDE_TUI_KEY_RIGHT},
        {KEY_SLEFT, TIDE_TUI_KEY_SHIFT_LEFT},
        {KEY_SRIGHT, TIDE_TUI_KEY_SHIFT_RIGHT},
        {KEY_PPAGE, TIDE_TUI_KEY_PAGE_UP},
        {KEY_NPAGE, TIDE_TUI_KEY_PAGE_DOWN},
        {KEY_HOME, TIDE_TUI_KEY_HOME},
        {KEY_END, TIDE_TUI_KEY_END},
        {KEY_BTAB, TIDE_TUI_KEY_SHIFT_TAB},
        {KEY_DC, TIDE_TUI_KEY_DELETE},
        {KEY_BACKSPACE, TIDE_TUI_KEY_BACKSPACE},
        {KEY_ENTER, TIDE_TUI_KEY_ENTER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code) return known[i].key;
    }
    for (int i = 0; i < N_FUNCTION_KEYS; i++) {
        if (code == (wint_t)KEY_F(i + 1)) return TIDE_TUI_KEY_F1 + (uint32_t)i;
    }
    return 0;
}

static uint32_t key_of_character(wint_t c) {
    if (c == '\n') return TIDE_TUI_KEY_ENTER;
    if (c == '\b') return TIDE_TUI_KEY_BACKSPACE;
    return (uint32_t)c;
}

// ---- mouse ----

/// A number, and what follows it in *text; -1: none.
static int take_number(const char **text) {
    if (**text < '0' || **text > '9') return -1;
    char *end;
    const long n = strtol(*text, &end, 10);
    *text = end;
    return n <= 100000 ? (int)n : -1;
}

bool tide_tui_mouse_parse(const char *text, tide_tui_mouse *out) {
    int numbers[3];
    for (int i = 0; i < 3; i++) {
        numbers[i] = take_number(&text);
        if (numbers[i] < 0 || (i < 2 && *text++ != ';')) return false;
    }
    if ((*text != 'M' && *text != 'm') || text[1] != '\0' || numbers[1] < 1 || numbers[2] < 1) return false;
    const int b = numbers[0];
    static const tide_tui_mouse_kind wheels[4] = {TIDE_TUI_MOUSE_WHEEL_UP, TIDE_TUI_MOUSE_WHEEL_DOWN,
                                                  TIDE_TUI_MOUSE_WHEEL_LEFT, TIDE_TUI_MOUSE_WHEEL_RIGHT};
    *out = (tide_tui_mouse){.button = b & 3,
                            .x = numbers[1] - 1,
                            .y = numbers[2] - 1,
                            .shift = (b & 4) != 0,
                            .alt = (b & 8) != 0,
                            .ctrl = (b & 16) != 0};
    if (b & 64)
        out->kind = wheels[b & 3];
    else if (*text == 'm')
        out->kind = TIDE_TUI_MOUSE_RELEASE;
    else
        out->kind = b & 32 ? TIDE_TUI_MOUSE_DRAG : TIDE_TUI_MOUSE_PRESS;
    if (out->kind != TIDE_TUI_MOUSE_PRESS && out->kind != TIDE_TUI_MOUSE_DRAG && out->kind != TIDE_TUI_MOUSE_RELEASE)
        out->button = 0;
    return b < 128 && !((b & 32) != 0 && (b & 3) == 3); // movement without a button says nothing
}

/// Reads the rest of a mouse report.
static bool read_mouse(const tide_tui_terminal *t, tide_tui_mouse *out) {
    char text[MAX_MOUSE_TEXT];
    size_t n = 0;
    bool ended = false;
    wtimeout(t->keys, REST_MS);
    while (!ended && n + 1 < sizeof text) {
        wint_t c = 0;
        if (wget_wch(t->keys, &c) != OK || c > 0x7E) break;
        text[n++] = (char)c;
        ended = c == 'M' || c == 'm';
    }
    wtimeout(t->keys, 0);
    text[n] = '\0';
    return ended && tide_tui_mouse_parse(text, out);
}

// ---- all of it ----

tide_tui_input tide_tui_terminal_next(tide_tui_terminal *t) {
    for (;;) {
        wint_t code = 0;
        const int got = wget_wch(t->keys, &code);
        tide_tui_input in = {.kind = TIDE_TUI_INPUT_NONE};
        if (got == ERR) return in;
        t->n_empty = 0;
        if (got == KEY_CODE_YES && code == KEY_RESIZE) {
            in.kind = TIDE_TUI_INPUT_RESIZE;
            return in;
        }
        if (got == KEY_CODE_YES && code == MOUSE_CODE) {
            if (!read_mouse(t, &in.mouse)) continue;
            in.mouse.t_ms = tide_now_ns() / 1000000; // two presses make a double click when they are near in time
            in.kind = TIDE_TUI_INPUT_MOUSE;
            return in;
        }
        if (got == KEY_CODE_YES && (code == PASTE_BEGIN || code == PASTE_END)) {
            t->in_paste = code == PASTE_BEGIN;
            continue;
        }
        in.key = got == KEY_CODE_YES ? key_of_code(code) : key_of_character(code);
        if (in.key == 0) continue;
        in.kind = t->in_paste ? TIDE_TUI_INPUT_PASTED : TIDE_TUI_INPUT_KEY;
        return in;
    }
}

// ---- signals that the view survives: stop, continue, resize ----

static volatile sig_atomic_t wants_stop, was_continued;

static struct sigaction before_stop, before_continue;
static sigset_t before_mask;

static void on_stop(int sig) {
    (void)sig;
    wants_stop = 1;
}

static void on_continue(int sig) {
    (void)sig;
    was_continued = 1;
}

static void catch_signals(tide_tui_terminal *t) {
    struct sigaction act;
    memset(&act, 0, sizeof act);
    sigemptyset(&act.sa_mask);
    wants_stop = was_continued = 0;
    sigaction(SIGTSTP, NULL, &before_stop);
    sigaction(SIGCONT, NULL, &before_continue);
    act.sa_handler = on_stop;
    if (before_stop.sa_handler != SIG_IGN) sigaction(SIGTSTP, &act, NULL); // shells without job control ignore it
    act.sa_handler = on_continue;
    sigaction(SIGCONT, &act, NULL);
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTSTP);
    sigaddset(&held, SIGCONT);
    sigaddset(&held, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &held, &before_mask);
    t->waiting = before_mask;
    sigdelset(&t->waiting, SIGTSTP);
    sigdelset(&t->waiting, SIGCONT);
    sigdelset(&t->waiting, SIGWINCH);
}

static void drop_signals(void) {
    sigaction(SIGTSTP, &before_stop, NULL);
    sigaction(SIGCONT, &before_continue, NULL);
    pthread_sigmask(SIG_SETMASK, &before_mask, NULL);
}

static unsigned take_signals(void) {
    unsigned woke = 0;
    if (wants_stop) woke |= TIDE_TUI_WOKE_SUSPEND;
    if (was_continued) woke |= TIDE_TUI_WOKE_RESUME;
    wants_stop = was_continued = 0;
    return woke;
}

static void stop_process(void) {
    struct sigaction act, mine;
    sigset_t stop;
    memset(&act, 0, sizeof act);
    sigemptyset(&act.sa_mask);
    act.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &act, &mine);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    raise(SIGTSTP); // the process stops here, and goes on from here
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    sigaction(SIGTSTP, &mine, NULL);
}

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
    if (t->keys == NULL) return TIDE_NO_MEMORY(err, "for the terminal");
    cbreak();
    noecho();
    nonl();
    intrflush(t->keys, FALSE);
    keypad(t->keys, TRUE);
    nodelay(t->keys, TRUE);
    leaveok(stdscr, TRUE);
    curs_set(0);
    define_keys();
    return TIDE_OK;
}

static tide_status prepare_frames(tide_tui_terminal *t, const tide_tui_options *opt, tide_error *err) {
    const bool paints = follows_ecma48();
    t->tier = choose_tier(opt, paints);
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
    tide_tui_terminal *t;
    TIDE_TRY(TIDE_NEW(&t, 1, err, "for the terminal"));
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
    catch_signals(t);
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
    drop_signals();
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
    stop_process();
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
        const attr_t attrs = attrs_of(t, cell, &pair);
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

/// Through curses: rows that differ are passed whole, and curses chooses what to send.
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
    unsigned woke = take_signals();
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
