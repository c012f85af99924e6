// SPDX-License-Identifier: MIT
//
// From keys and the mouse to actions. See actions.h.
//
//     key -> prompt: text
//         -> overlay: scrolls, closes
//         -> action -> state, flags, effect
//
//     over            press              drag     wheel              shift + wheel, sideways
//     curve, ruler    cursor             range    zoom at pointer    pan
//     minimap         window there       window   zoom               pan
//     map             cursors, item      range    zoom at pointer    pan
//     gantt bars      row, cursor        range    rows; ctrl: zoom   pan
//     lists           row                         rows
//     help            -                           lines
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/utf8.h"
#include "tui/actions_internal.h"
#include "tui/draw/draw.h"
#include "tui/draw/panes.h"

// ---- the line that takes text ----

// ---- editing ----

static bool is_inside(char byte) { return ((unsigned char)byte & 0xC0U) == 0x80U; }

/// Begin of the character before `at`, and of the one behind it.
static size_t before(const char *text, size_t at) {
    while (at > 0 && is_inside(text[--at])) {
    }
    return at;
}

static size_t behind(const char *text, size_t at) {
    if (text[at] != 0) at++;
    while (is_inside(text[at])) at++;
    return at;
}

static void erase(tide_tui_state *st, size_t from, size_t to) {
    TIDE_ASSERT(from <= to && to <= strlen(st->text));
    memmove(st->text + from, st->text + to, strlen(st->text + to) + 1);
    st->text_at = from;
}

static void insert(tide_tui_state *st, uint32_t cp) {
    char bytes[4];
    const size_t n = tide_utf8_encode(cp, bytes), len = strlen(st->text);
    if (len + n >= sizeof st->text) return;
    memmove(st->text + st->text_at + n, st->text + st->text_at, len - st->text_at + 1);
    memcpy(st->text + st->text_at, bytes, n);
    st->text_at += n;
}

static void erase_word(tide_tui_state *st) {
    size_t at = st->text_at;
    while (at > 0 && st->text[at - 1] == ' ') at--;
    while (at > 0 && st->text[at - 1] != ' ') at--;
    erase(st, at, st->text_at);
}

/// Earlier command lines; behind the newest the line is empty.
static void recall(tide_tui_state *st, int dir) {
    if (st->prompt != TIDE_TUI_PROMPT_COMMAND) return;
    if (dir < 0 ? st->history_at == 0 : st->history_at >= st->n_history) return;
    st->history_at = dir < 0 ? st->history_at - 1 : st->history_at + 1;
    const char *line = st->history_at < st->n_history ? st->history[st->history_at] : "";
    (void)snprintf(st->text, sizeof st->text, "%s", line);
    st->text_at = strlen(st->text);
}

static void remember(tide_tui_state *st, const char *line) {
    if (*line == 0 || (st->n_history > 0 && strcmp(st->history[st->n_history - 1], line) == 0)) return;
    if (st->n_history == TIDE_TUI_MAX_HISTORY) {
        memmove(st->history[0], st->history[1], (TIDE_TUI_MAX_HISTORY - 1) * sizeof st->history[0]);
        st->n_history--;
    }
    (void)snprintf(st->history[st->n_history++], sizeof st->history[0], "%s", line);
}

// ---- Enter ----

static void note(tide__action *act, const char *text) {
    tide_tui_state *st = act->st;
    if (st->n_marks == 0) return;
    tide_tui_mark *mark = &st->marks[st->n_marks - 1];
    size_t n = strlen(text);
    while (n >= sizeof mark->text) n = before(text, n); // whole characters
    memcpy(mark->text, text, n);
    mark->text[n] = 0;
    tide_tui_say(st, false, "mark %c%s%s: ' jumps there", mark->name, n > 0 ? " " : "", mark->text);
}

static void accept(tide__action *act) {
    char text[TIDE_TUI_MAX_PROMPT];
    (void)snprintf(text, sizeof text, "%s", act->st->text);
    const tide_tui_prompt prompt = act->st->prompt;
    tide__close_prompt(act);
    switch (prompt) {
    case TIDE_TUI_PROMPT_SEARCH:
        tide__search(act, text);
        break;
    case TIDE_TUI_PROMPT_FILTER:
        (void)tide__filter(act, text);
        break;
    case TIDE_TUI_PROMPT_GOTO:
        if (*text != 0) {
            char line[TIDE_TUI_MAX_PROMPT + 8];
            (void)snprintf(line, sizeof line, "goto %s", text);
            tide__action_line(act, line);
        }
        break;
    case TIDE_TUI_PROMPT_NOTE:
        note(act, text);
        break;
    case TIDE_TUI_PROMPT_COMMAND:
        remember(act->st, text);
        tide__action_line(act, text);
        break;
    default:
        break;
    }
}

static void press_in_prompt(tide__action *act, uint32_t key) {
    tide_tui_state *st = act->st;
    if (key == TIDE_TUI_KEY_TAB) {
        tide_tui_complete(st, act->scene);
        return;
    }
    st->completions[0] = 0;
    switch (key) {
    case TIDE_TUI_KEY_ENTER:
        accept(act);
        break;
    case TIDE_TUI_KEY_ESC:
        tide__close_prompt(act);
        break;
    case TIDE_TUI_KEY_LEFT:
        st->text_at = before(st->text, st->text_at);
        break;
    case TIDE_TUI_KEY_RIGHT:
        st->text_at = behind(st->text, st->text_at);
        break;
    case TIDE_TUI_KEY_HOME:
        st->text_at = 0;
        break;
    case TIDE_TUI_KEY_END:
        st->text_at = strlen(st->text);
        break;
    case TIDE_TUI_KEY_UP:
    case TIDE_TUI_KEY_DOWN:
        recall(st, key == TIDE_TUI_KEY_UP ? -1 : 1);
        break;
    case TIDE_TUI_KEY_BACKSPACE:
    case '\b':
        erase(st, before(st->text, st->text_at), st->text_at);
        break;
    case TIDE_TUI_KEY_DELETE: {
        const size_t at = st->text_at;
        erase(st, at, behind(st->text, at));
        break;
    }
    case TIDE_TUI_KEY_CTRL_U:
        erase(st, 0, st->text_at);
        break;
    case TIDE_TUI_KEY_CTRL_W:
        erase_word(st);
        break;
    case TIDE_TUI_KEY_CTRL_L:
        act->result.flags |= TIDE_TUI_REPAINT;
        break;
    default:
        if (key >= ' ' && key <= 0x10FFFF && !tide_utf8_is_control(key)) insert(st, key);
        break;
    }
}

// ---- overlays ----

static void scroll(tide__action *act, int64_t by) {
    tide_tui_state *st = act->st;
    if (st->overlay == TIDE_TUI_OVERLAY_SETUP) {
        st->overlay_row = (int)tide_tui_move_time(st->overlay_row, by, 0, TIDE_TUI_N_SETTINGS - 1);
        return;
    }
    const int last = act->scene != NULL ? tide_tui_overlay_max_top(act->scene, tide_tui_glyphs_of(false)) : 0;
    st->overlay_top = (int)tide_tui_move_time(st->overlay_top, by, 0, last > 0 ? last : 0);
}

static bool do_in_overlay(tide__action *act, tide_tui_action action) {
    tide_tui_state *st = act->st;
    const bool is_setup = st->overlay == TIDE_TUI_OVERLAY_SETUP;
    const int h = act->scene != NULL && act->scene->layout != NULL ? act->scene->layout->overlay.h : 0;
    const int64_t page = h > 3 ? h - 2 : 1;
    switch (action) {
    case TIDE_TUI_ROW_UP:
        scroll(act, -1);
        return true;
    case TIDE_TUI_ROW_DOWN:
        scroll(act, 1);
        return true;
    case TIDE_TUI_PAGE_BACK:
        scroll(act, -page);
        return true;
    case TIDE_TUI_PAGE_ON:
        scroll(act, page);
        return true;
    case TIDE_TUI_FIRST:
        scroll(act, INT64_MIN);
        return true;
    case TIDE_TUI_LAST:
        scroll(act, INT64_MAX);
        return true;
    case TIDE_TUI_OPEN:
    case TIDE_TUI_PAUSE: // the space bar
        if (!is_setup) return false;
        tide__toggle_setting(act, (tide_tui_setting)st->overlay_row);
        return true;
    case TIDE_TUI_HELP:
    case TIDE_TUI_SETUP:
    case TIDE_TUI_SQL:
        if (is_setup != (action == TIDE_TUI_SETUP)) return false; // the other one is opened instead
        tide__action_do(act, TIDE_TUI_BACK);
        return true;
    default:
        return false;
    }
}

// ---- keys ----

/// While an overlay is open: only its own actions, and those that close it.
static void press_in_overlay(tide__action *act, tide_tui_action action) {
    if (do_in_overlay(act, action)) return;
    const bool is_known = action == TIDE_TUI_BACK || action == TIDE_TUI_QUIT || action == TIDE_TUI_REDRAW ||
                          action == TIDE_TUI_HELP || action == TIDE_TUI_SETUP || action == TIDE_TUI_COMMAND ||
                          action == TIDE_TUI_MOUSE;
    if (is_known) {
        tide__action_do(act, action);
    } else {
        act->result.flags &= ~(unsigned)TIDE_TUI_HANDLED;
    }
}

tide_tui_result tide_tui_press(tide_tui_state *st, const tide_tui_scene *scene, uint32_t key) {
    tide__action act = tide__action_begin(st, scene);
    st->click_x = st->click_y = -1;
    const tide_tui_action action = tide_tui_action_of(key);
    if (st->prompt != TIDE_TUI_PROMPT_NONE) {
        press_in_prompt(&act, key);
    } else if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        press_in_overlay(&act, action);
    } else {
        tide__action_do(&act, action);
    }
    return tide__action_end(&act);
}

// ---- mouse ----

enum { WHEEL_ROWS = 3, WHEEL_PAN = 8 }; // an eighth of the window

/// The column of a cell that lies over a time axis; -1: it does not.
static int time_column(const tide_tui_scene *s, int x, int y) {
    const tide_tui_layout *l = s->layout;
    const tide_tui_rect curve = l->panes[TIDE_TUI_PANE_CURVE];
    const bool over = tide_tui_rect_has(curve, x, y) || tide_tui_rect_has(l->ruler, x, y) ||
                      tide_tui_rect_has(l->bars, x, y) || (!s->map_is_moment && tide_tui_rect_has(l->map, x, y));
    return over ? x - curve.x : -1;
}

static void set_cursor_at(tide__action *act, int column) {
    const int n = tide__columns(act);
    tide__set_cursor(act, tide__time_of_column(act->st->window, n, column < 0 ? 0 : column >= n ? n - 1 : column));
}

/// Moves the window to the moment that is pointed at.
static void show_in_minimap(tide__action *act, int x) {
    const tide_tui_rect r = act->scene->layout->minimap;
    const tide_tui_window whole = tide_tui_whole(tide_subject_get_facts(act->st->a));
    const int64_t at = tide__time_of_column(whole, r.w, x - r.x < 0 ? 0 : x - r.x >= r.w ? r.w - 1 : x - r.x);
    const uint64_t span = tide_tui_window_span(act->st->window), half = span / 2;
    const int64_t begin =
        tide_tui_move_time(at, -(int64_t)(half > INT64_MAX ? INT64_MAX : half), whole.begin, whole.end);
    const bool is_left = begin < act->st->window.begin;
    tide__pan(act, is_left ? -1 : 1,
              is_left ? (uint64_t)act->st->window.begin - (uint64_t)begin
                      : (uint64_t)begin - (uint64_t)act->st->window.begin);
    tide__set_cursor(act, tide_tui_move_time(at, 0, act->st->window.begin, act->st->window.end - 1));
}

static void press_in_gantt(tide__action *act, int y) {
    const tide_tui_rect bars = act->scene->layout->bars;
    const tide_rows *rows = act->scene->rows;
    if (rows == NULL || y < bars.y || y >= bars.y + bars.h) return;
    const size_t row = act->st->top + (size_t)(y - bars.y);
    if (row < rows->n) tide__select_row(act, row);
}

static void press_in_map(tide__action *act, int y) {
    const tide_tui_rect map = act->scene->layout->map;
    tide_tui_window view, whole;
    if (map.h <= 0 || y < map.y || y >= map.y + map.h || !tide__space_window(act, &view, &whole)) return;
    tide__set_space_cursor(act, tide__time_of_column(view, 2 * map.h, 2 * (map.y + map.h - 1 - y)));
}

/// A row is selected; a title sorts.
static void press_in_list(tide__action *act, tide_tui_pane pane, const tide_tui_mouse *m) {
    int column;
    const tide_tui_list list = tide_tui_pane_list_at(act->scene, pane, m->x, m->y, &column);
    const size_t row = tide_tui_pane_row_at(act->scene, pane, m->y);
    if (list < TIDE_TUI_N_LISTS)
        tide__sort_by_column(act, list, column);
    else if (row != SIZE_MAX)
        tide__select_in_pane(act, pane, row);
}

static bool is_double(const tide__action *act, const tide_tui_mouse *m) {
    const tide_tui_state *st = act->st;
    if (m->x != st->click_x || m->y != st->click_y) return false;
    return m->t_ms < st->click_ms + TIDE_TUI_DOUBLE_CLICK_MS;
}

static void press(tide__action *act, const tide_tui_mouse *m) {
    tide_tui_state *st = act->st;
    const tide_tui_layout *l = act->scene->layout;
    const tide_tui_pane pane = tide_tui_layout_pane_at(l, m->x, m->y);
    const bool twice = is_double(act, m);
    st->drags = false;
    st->click_x = twice ? -1 : m->x;
    st->click_y = twice ? -1 : m->y;
    st->click_ms = m->t_ms;
    if (pane == TIDE_TUI_N_PANES) return;
    st->focus = pane;
    if (tide_tui_rect_has(l->minimap, m->x, m->y)) {
        show_in_minimap(act, m->x);
        return;
    }
    const int column = time_column(act->scene, m->x, m->y);
    if (column >= 0) {
        set_cursor_at(act, column);
        st->drags = true;
        st->drag_x = column;
        if (!twice && st->shows_range && pane == TIDE_TUI_PANE_CURVE) st->shows_range = st->range_follows = false;
    }
    if (pane == TIDE_TUI_PANE_GANTT) {
        press_in_gantt(act, m->y);
    } else if (pane == TIDE_TUI_PANE_MAP) {
        press_in_map(act, m->y);
    } else if (pane != TIDE_TUI_PANE_CURVE) {
        press_in_list(act, pane, m);
    }
    if (twice || m->button == 1) tide__fit(act);
}

static void drag(tide__action *act, const tide_tui_mouse *m) {
    tide_tui_state *st = act->st;
    const tide_tui_layout *l = act->scene->layout;
    if (!st->drags) {
        if (tide_tui_rect_has(l->minimap, m->x, m->y)) show_in_minimap(act, m->x);
        return;
    }
    const int n = tide__columns(act), x = m->x - l->panes[TIDE_TUI_PANE_CURVE].x;
    const int to = x < 0 ? 0 : x >= n ? n - 1 : x;
    if (to == st->drag_x && !st->shows_range) return; // a click, with a small movement
    st->click_x = st->click_y = -1;                   // what follows is no second click
    const int first = to < st->drag_x ? to : st->drag_x, last = to < st->drag_x ? st->drag_x : to;
    tide__set_range(act, tide__time_of_column(st->window, n, first), tide__time_of_column(st->window, n, last + 1));
    set_cursor_at(act, to);
}

static void scroll_list(tide__action *act, tide_tui_pane pane, int by) {
    tide_tui_state *st = act->st;
    if (pane == TIDE_TUI_PANE_GANTT) {
        const size_t h = (size_t)(act->scene->layout->bars.h > 0 ? act->scene->layout->bars.h : 1);
        const size_t n = act->scene->rows != NULL ? act->scene->rows->n : 0;
        st->top = (size_t)tide_tui_move_time((int64_t)st->top, by, 0, n > h ? (int64_t)(n - h) : 0);
        return;
    }
    const size_t n = pane < TIDE_TUI_N_PANES ? tide_tui_pane_rows(act->scene, pane) : 0;
    if (n == 0) return;
    const size_t row = tide_tui_pane_row(act->scene, pane);
    st->pane_row[pane] = (size_t)tide_tui_move_time((int64_t)row, by, 0, (int64_t)n - 1);
}

static void wheel(tide__action *act, const tide_tui_mouse *m) {
    const tide_tui_layout *l = act->scene->layout;
    const tide_tui_pane pane = tide_tui_layout_pane_at(l, m->x, m->y);
    const bool back = m->kind == TIDE_TUI_MOUSE_WHEEL_UP || m->kind == TIDE_TUI_MOUSE_WHEEL_LEFT;
    const bool sideways = m->kind == TIDE_TUI_MOUSE_WHEEL_LEFT || m->kind == TIDE_TUI_MOUSE_WHEEL_RIGHT || m->shift;
    const bool in_gantt = pane == TIDE_TUI_PANE_GANTT, in_minimap = tide_tui_rect_has(l->minimap, m->x, m->y);
    const int column = time_column(act->scene, m->x, m->y);
    if ((column >= 0 || in_minimap) && sideways) {
        const uint64_t by = tide_tui_window_span(act->st->window) / WHEEL_PAN;
        tide__pan(act, back ? -1 : 1, by > 0 ? by : 1);
    } else if (in_minimap) {
        tide__zoom(act, back, act->st->cursor);
    } else if (column >= 0 && (!in_gantt || m->ctrl)) {
        tide__zoom(act, back, tide__time_of_column(act->st->window, tide__columns(act), column));
    } else if (!sideways) {
        scroll_list(act, pane, back ? -WHEEL_ROWS : WHEEL_ROWS);
    }
}

/// Over an overlay the wheel scrolls; other events are ignored.
static void point_at_overlay(tide__action *act, const tide_tui_mouse *m) {
    if (m->kind != TIDE_TUI_MOUSE_WHEEL_UP && m->kind != TIDE_TUI_MOUSE_WHEEL_DOWN) return;
    for (int i = 0; i < WHEEL_ROWS; i++) {
        (void)do_in_overlay(act, m->kind == TIDE_TUI_MOUSE_WHEEL_UP ? TIDE_TUI_ROW_UP : TIDE_TUI_ROW_DOWN);
    }
}

tide_tui_result tide_tui_point(tide_tui_state *st, const tide_tui_scene *scene, const tide_tui_mouse *mouse) {
    const bool is_usable = scene != NULL && scene->layout != NULL && !scene->layout->too_small;
    if (!is_usable || st->prompt != TIDE_TUI_PROMPT_NONE) return (tide_tui_result){0};
    tide__action act = tide__action_begin(st, scene);
    if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        point_at_overlay(&act, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_PRESS && mouse->button < 2) {
        press(&act, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_DRAG) {
        drag(&act, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_RELEASE) {
        st->drags = false;
    } else if (mouse->kind >= TIDE_TUI_MOUSE_WHEEL_UP) {
        wheel(&act, mouse);
    }
    return tide__action_end(&act);
}
