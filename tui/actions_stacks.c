// SPDX-License-Identifier: MIT
//
// The tree of call stacks: opening, closing, searching. See actions_internal.h.
#include <regex.h>

#include "tui/actions_internal.h"
#include "tui/draw/panes.h"

static const tide_tui_stack_row *selected(const tide__action *act) {
    const tide_tui_scene *s = act->scene;
    if (s == NULL || s->call_tree == NULL || s->n_stack_rows == 0) return NULL;
    return &s->stack_rows[tide_tui_pane_row(s, TIDE_TUI_PANE_STACKS)];
}

void tide__select_stack(tide__action *act, size_t row) {
    const tide_tui_scene *s = act->scene;
    if (s == NULL || s->call_tree == NULL || row >= s->n_stack_rows) return;
    act->st->pane_row[TIDE_TUI_PANE_STACKS] = row;
    act->st->stack_at = s->call_tree->keys[s->stack_rows[row].head];
}

static void fold(tide__action *act, const tide_tui_stack_row *row, bool is_open) {
    tide_tui_set_fold(act->st, act->scene->call_tree->keys[row->head], is_open);
    tide__select_stack(act, (size_t)(row - act->scene->stack_rows));
}

void tide__open_stack(tide__action *act) {
    const tide_tui_stack_row *row = selected(act);
    if (row == NULL) {
        tide_tui_say(act->st, false, "there are no call stacks here");
    } else if (!row->has_callees) {
        tide_tui_say(act->st, false, "it called nothing that holds memory");
    } else {
        fold(act, row, !row->is_open);
    }
}

void tide__step_in_stacks(tide__action *act, int dir) {
    const tide_tui_stack_row *row = selected(act);
    if (row == NULL) return;
    const size_t i = (size_t)(row - act->scene->stack_rows);
    if (dir > 0 && row->has_callees && !row->is_open) {
        fold(act, row, true);
    } else if (dir > 0) {
        if (row->is_open) tide__select_stack(act, i + 1);
    } else if (row->is_open) {
        fold(act, row, false);
    } else if (row->caller != UINT32_MAX) {
        tide__select_stack(act, row->caller);
    }
}

void tide__close_stacks(tide__action *act) {
    tide_tui_state *st = act->st;
    if (selected(act) == NULL) {
        tide_tui_say(st, false, "there are no call stacks here");
        return;
    }
    st->closes_stacks = !st->closes_stacks || st->n_folds > 0;
    st->n_folds = 0;
    tide__select_stack(act, 0);
    tide_tui_say(st, false, st->closes_stacks ? "closed; again opens what is heavy" : "what is heavy is open");
}

static void show_alone(tide__action *act, uint32_t call) {
    const tide_call_tree *t = act->scene->call_tree;
    act->st->stack_root = act->st->stack_at = t->keys[call];
    tide_tui_set_fold(act->st, t->keys[call], true);
    act->st->pane_row[TIDE_TUI_PANE_STACKS] = 0;
}

void tide__root_stacks(tide__action *act) {
    const tide_tui_stack_row *row = selected(act);
    if (act->st->stack_root != 0 && (row == NULL || row->head == act->scene->stack_root)) {
        act->st->stack_root = 0;
        tide_tui_say(act->st, false, "all calls");
    } else if (row == NULL) {
        tide_tui_say(act->st, false, "there are no call stacks here");
    } else {
        show_alone(act, row->head);
        tide_tui_say(act->st, false, "this call alone; again shows all");
    }
}

// ---- search ----

/// Calls that match, round the tree from the selected row on.
typedef struct matches {
    uint32_t first, last, next, previous; ///< 0: none
    size_t n;
} matches;

static bool call_matches(const tide_call *c, const regex_t *regex) {
    tide_text name = {0};
    tide_call_say(c, &name);
    const bool yes = regexec(regex, tide_text_str(&name), 0, NULL, 0) == 0;
    tide_text_deinit(&name);
    return yes;
}

/// Whether it is `root`, or lies below it; 0: all do.
static bool is_below(const tide_call_tree *t, uint32_t call, uint32_t root) {
    while (call != 0 && call != root) call = t->calls.calls[call].parent;
    return call == root;
}

static matches find_calls(const tide_tui_scene *s, const tide_tui_stack_row *from, const regex_t *regex) {
    const tide_call_tree *t = s->call_tree;
    matches m = {0};
    bool is_before = true, is_behind = false;
    for (uint32_t i = tide_calls_next(&t->calls, 0); i != 0; i = tide_calls_next(&t->calls, i)) {
        if (i == from->head) is_before = false;
        if (is_below(t, i, s->stack_root) && call_matches(&t->calls.calls[i], regex)) {
            m.n++;
            m.last = i;
            if (m.first == 0) m.first = i;
            if (is_before) m.previous = i;
            if (is_behind && m.next == 0) m.next = i;
        }
        if (i == from->tail) is_behind = true;
    }
    return m;
}

/// Opens all that the call lies in.
static void show_call(tide__action *act, uint32_t call) {
    const tide_call_tree *t = act->scene->call_tree;
    const uint32_t root = act->scene->stack_root;
    uint32_t head = tide_call_tree_head(t, call);
    if (!is_below(t, head, root)) head = root; // the row of the root begins in the middle of one
    for (uint32_t up = t->calls.calls[head].parent; head != root && up != 0; up = t->calls.calls[up].parent) {
        up = tide_call_tree_head(t, up);
        tide_tui_set_fold(act->st, t->keys[up], true);
        if (up == root) break;
    }
    act->st->stack_at = t->keys[head];
}

static bool compile(tide__action *act, const char *expression, regex_t *regex) {
    char words[128];
    const int rc = regcomp(regex, expression, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (rc == 0) return true;
    (void)regerror(rc, regex, words, sizeof words);
    tide_tui_say(act->st, true, "cannot read the expression '%s': %s", expression, words);
    return false;
}

void tide__root_stacks_named(tide__action *act, const char *expression) {
    const tide_tui_scene *s = act->scene;
    regex_t regex;
    act->st->stack_root = 0;
    if (s == NULL || s->call_tree == NULL || s->call_tree->calls.n <= 1) {
        tide_tui_say(act->st, false, "there are no call stacks here");
        return;
    }
    if (!compile(act, expression, &regex)) return;
    const tide_call_tree *t = s->call_tree;
    uint32_t best = 0; // the heaviest; of equal ones the outermost
    for (uint32_t i = tide_calls_next(&t->calls, 0); i != 0; i = tide_calls_next(&t->calls, i))
        if ((best == 0 || t->calls.calls[i].bytes > t->calls.calls[best].bytes) &&
            call_matches(&t->calls.calls[i], &regex))
            best = i;
    regfree(&regex);
    if (best == 0)
        tide_tui_say(act->st, true, "no call matches '%s'", expression);
    else
        show_alone(act, best);
}

void tide__search_stacks(tide__action *act, const char *expression, int dir) {
    const tide_tui_stack_row *row = selected(act);
    regex_t regex;
    if (row == NULL) {
        tide_tui_say(act->st, false, "there are no call stacks here");
        return;
    }
    if (!compile(act, expression, &regex)) {
        act->st->search[0] = 0;
        return;
    }
    const matches m = find_calls(act->scene, row, &regex);
    regfree(&regex);
    if (m.n == 0) {
        tide_tui_say(act->st, true, "no call matches '%s'", expression);
        return;
    }
    show_call(act, dir < 0 ? (m.previous != 0 ? m.previous : m.last) : m.next != 0 ? m.next : m.first);
    tide_tui_say(act->st, false, "%zu call%s match%s '%s'", m.n, m.n == 1 ? "" : "s", m.n == 1 ? "es" : "", expression);
}
