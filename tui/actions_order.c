// SPDX-License-Identifier: MIT
//
// The order of rows, and of lists by one of their columns: by key, by name, by a click on a title. See
// actions_internal.h.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/nearest.h"
#include "tui/actions_internal.h"
#include "tui/draw/draw.h"
#include "tui/draw/panes.h"
#include "tui/scene/tables.h"

enum { MAX_KEYS = 16 }; ///< columns of a list

static tide_tui_list focused_list(const tide__action *act) {
    const tide_tui_list list = tide_tui_list_of(act->st->focus);
    if (list != TIDE_TUI_LIST_POOLS || act->scene == NULL || act->scene->pools == NULL) return list;
    const bool in_leaks = tide_tui_pane_row(act->scene, TIDE_TUI_PANE_POOLS) >= act->scene->pools->n;
    return in_leaks && tide_tui_pane_rows(act->scene, TIDE_TUI_PANE_POOLS) > 0 ? TIDE_TUI_LIST_LEAKS : list;
}

/// The table stays at the selected item, steps at the cursor; the others go to what is first now.
static void go_to_first(tide__action *act, tide_tui_list list) {
    tide_tui_state *st = act->st;
    st->table_item = TIDE_NO_ITEM;
    st->operators_at = INT64_MIN;
    const bool has_pools = act->scene != NULL && act->scene->pools != NULL;
    if (list == TIDE_TUI_LIST_TABLE || list == TIDE_TUI_LIST_OPERATORS) return;
    st->pane_row[tide_tui_pane_of_list(list)] = list == TIDE_TUI_LIST_LEAKS && has_pools ? act->scene->pools->n : 0;
}

/// What a list is sorted by, in words.
static void say_order(tide__action *act, tide_tui_list list) {
    const tide_tui_list_order *order = &act->st->orders[list];
    tide_tui_sheet table;
    const bool is_known = act->scene != NULL && tide_tui_table_of_list(act->scene, list, &table);
    const size_t column = is_known ? tide_tui_column_named(&table, order->column) : SIZE_MAX;
    if (order->column[0] == 0)
        tide_tui_say(act->st, false, "%s: in its own order", tide_tui_list_name(list));
    else
        tide_tui_say(act->st, false, "%s: by %s%s", tide_tui_list_name(list),
                     column != SIZE_MAX ? table.columns[column].title : order->column,
                     order->reverse ? ", reversed" : "");
}

static void sort_list(tide__action *act, tide_tui_list list, const char *key, bool reverse) {
    tide_tui_list_order *order = &act->st->orders[list];
    const size_t n = act->scene != NULL ? tide_tui_pane_rows(act->scene, tide_tui_pane_of_list(list)) : 0;
    if (n > TIDE_TUI_MAX_SORTED && key[0] != 0) {
        tide_tui_say(act->st, true, "more than %d rows are not sorted by a column: filter first", TIDE_TUI_MAX_SORTED);
        return;
    }
    char column[TIDE_TUI_MAX_COLUMN]; // the key may be the one that is replaced
    (void)snprintf(column, sizeof column, "%s", key);
    *order = (tide_tui_list_order){.reverse = reverse && key[0] != 0};
    memcpy(order->column, column, sizeof column);
    go_to_first(act, list);
    say_order(act, list);
}

static void sort_by_name(tide__action *act, tide_tui_list list, const char *name, bool reverse) {
    tide_tui_sheet table;
    const char *keys[MAX_KEYS], *words[MAX_KEYS + 1] = {"own"};
    if (strcasecmp(name, "own") == 0) {
        sort_list(act, list, "", false);
        return;
    }
    if (act->scene == NULL || !tide_tui_table_of_list(act->scene, list, &table)) return;
    const size_t column = tide_tui_column_named(&table, name),
                 n = tide_tui_list_columns(act->scene, list, keys, MAX_KEYS);
    if (column != SIZE_MAX) {
        sort_list(act, list, table.columns[column].key, reverse);
        return;
    }
    for (size_t i = 0; i < n; i++) words[i + 1] = keys[i];
    const char *near = tide_nearest_of(name, words, n + 1);
    tide_tui_say(act->st, true, "the list '%s' has no column '%s'%s%s%s", tide_tui_list_name(list), name,
                 near != NULL ? ": did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

void tide__sort_by_column(tide__action *act, tide_tui_list list, int column) {
    tide_tui_list_table table;
    const tide_tui_rect body = tide_tui_body_of(act->scene, tide_tui_pane_of_list(list));
    if (!tide_tui_list_table_of(act->scene, list, body, &table)) return;
    const char *key = table.t.columns[column].key;
    if (key == NULL) return;
    const tide_tui_list_order *order = &act->st->orders[list];
    sort_list(act, list, key, strcmp(order->column, key) == 0 && !order->reverse);
}

/// The column right of the one that the list is sorted by; behind the last one its own order.
static void next_column(tide__action *act, tide_tui_list list) {
    const char *keys[MAX_KEYS];
    const size_t n = act->scene != NULL ? tide_tui_list_columns(act->scene, list, keys, MAX_KEYS) : 0;
    size_t i = 0;
    while (i < n && strcmp(keys[i], act->st->orders[list].column) != 0) i++;
    i = act->st->orders[list].column[0] == 0 ? 0 : i + 1;
    if (n == 0)
        tide_tui_say(act->st, false, "there are no rows to sort");
    else
        sort_list(act, list, i < n ? keys[i] : "", false);
}

void tide__next_sort(tide__action *act) {
    const tide_tui_list list = focused_list(act);
    if (list < TIDE_TUI_N_LISTS) {
        next_column(act, list);
        return;
    }
    act->st->sort = (tide_row_sort)((act->st->sort + 1) % TIDE_N_ROW_SORTS);
    tide__rows_changed(act);
}

void tide__reverse(tide__action *act) {
    const tide_tui_list list = focused_list(act);
    if (list < TIDE_TUI_N_LISTS && act->scene != NULL) {
        const tide_tui_list_order *order = &act->st->orders[list];
        if (order->column[0] == 0)
            tide_tui_say(act->st, false, "%s: sort it by a column first", tide_tui_list_name(list));
        else
            sort_list(act, list, order->column, !order->reverse);
        return;
    }
    act->st->reverse = !act->st->reverse;
    tide__rows_changed(act);
}

/// "table begin", "leaks bytes reversed": a list, its column. @return false: the text begins with no list
static bool sort_named_list(tide__action *act, const char *text) {
    char name[64], column[64], end[64];
    (void)tide__take_word(&text, name, sizeof name);
    if (*tide__take_word(&text, column, sizeof column) == 0) return false;
    (void)tide__take_word(&text, end, sizeof end);
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) {
        if (strcasecmp(name, tide_tui_list_name((tide_tui_list)i)) != 0) continue;
        const bool reversed = strcasecmp(end, "reversed") == 0;
        if (end[0] != 0 && !reversed)
            tide_tui_say(act->st, true, "a list is sorted by a column, 'reversed' or not: '%s' is neither", end);
        else
            sort_by_name(act, (tide_tui_list)i, column, reversed);
        return true;
    }
    return false;
}

bool tide__sort_as_told(tide__action *act, const char *text) {
    const tide_tui_list list = focused_list(act);
    if (sort_named_list(act, text)) return true;
    if (list < TIDE_TUI_N_LISTS) sort_by_name(act, list, text, false);
    return list < TIDE_TUI_N_LISTS;
}

size_t tide__sort_words(const tide__action *act, const char **words, size_t max) {
    const tide_tui_list list = focused_list(act);
    if (list == TIDE_TUI_N_LISTS || act->scene == NULL || max == 0) return 0;
    words[0] = "own";
    return 1 + tide_tui_list_columns(act->scene, list, words + 1, max - 1);
}
