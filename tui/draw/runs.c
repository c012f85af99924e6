// SPDX-License-Identifier: MIT
//
// What runs when, on a line under the ruler: operators where they have room, else executions. See draw.h.
//
//     |#0 conv1 |relu1|conv2 ..|pool         |#1 conv1 |relu1         a plan has no executions: conv1 |relu1|...
//     |#0       |#1        |#2        |#3
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

/// What runs in a column: of the first lane, when the column begins.
typedef struct running {
    size_t execution, step; // SIZE_MAX: none; of a plan execution 0
} running;

static running running_at(const tide_subject_facts *f, int64_t t) {
    running r = {SIZE_MAX, SIZE_MAX};
    const tide_executions *x = f->executions;
    if (!f->is_trace) return (running){0, tide_subject_step_at(f, t)};
    if (x == NULL || x->n_lanes == 0 || t < 0) return r;
    r.execution = tide_executions_at_ns(x, 0, (uint64_t)t);
    if (r.execution == SIZE_MAX) return r;
    r.step = tide_execution_step_at_ns(x, &x->items[r.execution], (uint64_t)t);
    return r;
}

static int64_t begin_of(tide_tui_window w, int n, int x) {
    const uint64_t span = tide_tui_window_span(w), part = (uint64_t)x;
    return (int64_t)((uint64_t)w.begin + span / (uint64_t)n * part + span % (uint64_t)n * part / (uint64_t)n);
}

static bool same(running a, running b, bool by_step) {
    return a.execution == b.execution && (!by_step || a.step == b.step);
}

/// "#3 conv1": the execution where it begins, the operator where there is room for operators.
static void words_of(const tide_subject_facts *f, running now, int64_t t, bool is_first, bool by_step, char *buf,
                     size_t buf_bytes) {
    const char *name = by_step && now.step != SIZE_MAX ? tide_subject_step_name_at(f, t) : "";
    buf[0] = '\0';
    if (f->is_trace && is_first) {
        snprintf(buf, buf_bytes, "#%zu%s%.80s", now.execution, name[0] != '\0' ? " " : "", name);
    } else {
        snprintf(buf, buf_bytes, "%.80s", name);
    }
}

void tide_tui_draw_runs(const tide_tui_view *v) {
    enum { ROOM = 5, LEAST = 3, NAME = 4 }; // columns of an operator, on the average; of a name that is cut
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->runs;
    const tide_tui_window w = s->state->window;
    running at[TIDE_TUI_MAX_COLUMNS];
    const int n = r.w < TIDE_TUI_MAX_COLUMNS ? r.w : TIDE_TUI_MAX_COLUMNS;
    int n_steps = 0, n_runs = 0;
    if (n <= 0 || r.h <= 0) return;
    for (int x = 0; x < n; x++) {
        at[x] = running_at(s->a, begin_of(w, n, x));
        n_steps += x == 0 || !same(at[x], at[x - 1], true);
        n_runs += x == 0 || !same(at[x], at[x - 1], false);
    }
    const bool by_step = n_steps * (n_runs > 1 ? ROOM : LEAST) <= n;
    if (!by_step && (!s->a->is_trace || n_runs * 2 > n)) return; // too many to be told apart
    for (int x = 0; x < n;) {
        int end = x + 1;
        while (end < n && same(at[end], at[x], by_step)) end++;
        if (at[x].execution != SIZE_MAX && (!by_step || at[x].step != SIZE_MAX)) {
            char words[128];
            const bool is_first = x == 0 || at[x].execution != at[x - 1].execution || at[x - 1].step == SIZE_MAX;
            words_of(s->a, at[x], begin_of(w, n, x), is_first, by_step, words, sizeof words);
            tide_tui_put(v->grid, r.x + x, r.y, v->glyphs->separator, TIDE_TUI_ROLE_DIM);
            const bool is_cursor = s->state->cursor >= begin_of(w, n, x) && s->state->cursor < begin_of(w, n, end);
            const int room = end - x - 1;
            char *blank = tide_tui_text_width(v->glyphs, words) > room ? strchr(words, ' ') : NULL;
            if (is_first && s->a->is_trace && blank != NULL) *blank = '\0'; // the number alone
            if (room > 1 && ((by_step && room >= NAME) || tide_tui_text_width(v->glyphs, words) <= room))
                tide_tui_text(v, r.x + x + 1, r.y, room, words, TIDE_TUI_CUT_END,
                              is_cursor ? TIDE_TUI_ROLE_CURSOR : TIDE_TUI_ROLE_TEXT);
        }
        x = end;
    }
}
