// SPDX-License-Identifier: MIT
//
// Rows of lists, panes, groups and orders; searching and filtering. See actions_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/actions_internal.h"
#include "tui/draw/panes.h"

// ---- search ----

/// `one_site`: all members of a row have the same name: only the first one is compared.
static bool row_matches(const tide_rows *rows, const tide_items *items, const uint8_t *bits, size_t row, bool one_site,
                        uint32_t *member) {
    const size_t from = rows->first != NULL ? rows->first[row] : row;
    const size_t to = rows->first != NULL && !one_site ? rows->first[row + 1] : from + 1;
    for (size_t i = from; i < to; i++) {
        const uint32_t item = rows->members[i], site = tide_items_site_of(items, item);
        if (((unsigned)bits[site / 8] >> (site % 8) & 1U) == 0) continue;
        *member = item;
        return true;
    }
    return false;
}

/// From the selected row on, round at the end; with `dir` 0 the selected row itself may match.
static bool select_match(tide__action *act, const tide_items *items, const uint8_t *bits, int dir) {
    const tide_rows *rows = act->scene != NULL ? act->scene->rows : NULL;
    if (rows == NULL || rows->n == 0) return false;
    const size_t n = rows->n, at = act->st->row < n ? act->st->row : 0;
    const bool one_site = act->st->group == TIDE_ROW_GROUP_NAME;
    for (size_t k = dir == 0 ? 0 : 1; k <= n; k++) {
        const size_t row = dir < 0 ? (at + n - k) % n : (at + k) % n;
        uint32_t member;
        if (!row_matches(rows, items, bits, row, one_site, &member)) continue;
        act->st->row = row;
        act->st->item = member;
        return true;
    }
    return false;
}

/// Of rows that are not listed before the next frame: those that the view did not open with.
static bool select_first(tide__action *act, const tide_items *items, const uint8_t *bits) {
    for (size_t i = 0; act->st->is_opening && i < items->n; i++) {
        const uint32_t site = tide_items_site_of(items, i);
        if (((unsigned)bits[site / 8] >> (site % 8) & 1U) == 0) continue;
        act->st->item = (uint32_t)i;
        return true;
    }
    return false;
}

static void find(tide__action *act, const char *regex, int dir) {
    const tide_items *items = tide_subject_items(act->st->a);
    tide_error err = TIDE_ERROR_INIT;
    uint8_t *bits = NULL;
    size_t n = 0;
    if (items == NULL) {
        tide_tui_say(act->st, false, "names are still being read");
        return;
    }
    if (tide_items_search(items, regex, &bits, &n, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        act->st->search[0] = 0;
        return;
    }
    if (n == 0) {
        tide_tui_say(act->st, true, "no name or operator matches '%s'", regex);
    } else if (!select_match(act, items, bits, dir) && !select_first(act, items, bits)) {
        tide_tui_say(act->st, true, "all %zu matches of '%s' are hidden by filters", n, regex);
    }
    tide_host_free(bits);
}

void tide__search(tide__action *act, const char *regex) {
    (void)snprintf(act->st->search, sizeof act->st->search, "%s", regex);
    if (*regex != 0 && act->st->focus == TIDE_TUI_PANE_STACKS) {
        tide__search_stacks(act, regex, 1);
        return;
    }
    if (*regex == 0) {
        tide_tui_say(act->st, false, "search ended");
    } else {
        find(act, regex, 0);
    }
    if (act->st->is_opening) tide__rows_changed(act); // any of them may match
}

void tide__next_match(tide__action *act, int dir) {
    if (act->st->search[0] == 0) {
        tide_tui_say(act->st, false, "nothing is searched for: / searches");
        return;
    }
    if (act->st->focus == TIDE_TUI_PANE_STACKS) {
        char expression[TIDE_TUI_MAX_PROMPT]; // a bad one ends the search
        (void)snprintf(expression, sizeof expression, "%s", act->st->search);
        tide__search_stacks(act, expression, dir);
        return;
    }
    const tide_items *items = tide_subject_items(act->st->a);
    const uint8_t *bits = act->scene != NULL ? act->scene->match_bits : NULL; // of the frame: names need no second look
    if (items != NULL && bits != NULL && select_match(act, items, bits, dir)) return;
    char regex[TIDE_TUI_MAX_PROMPT]; // find() may end the search
    (void)snprintf(regex, sizeof regex, "%s", act->st->search);
    find(act, regex, dir);
}

// ---- filters ----

bool tide__filter(tide__action *act, const char *text) {
    tide_tui_state *st = act->st;
    if (*text == 0) {
        if (st->n_filters == 0) {
            tide_tui_say(st, false, "there is no filter");
            return false;
        }
        st->n_filters--;
        st->opened_by_filter = false;
        tide__rows_changed(act);
        return true;
    }
    if (st->n_filters == TIDE_TUI_MAX_FILTERS) {
        tide_tui_say(st, true, "there are %d filters already: take one off first (an empty one does)",
                     TIDE_TUI_MAX_FILTERS);
        return false;
    }
    tide_error err = TIDE_ERROR_INIT;
    tide_filter *filter = NULL;
    if (tide_filter_parse(text, tide_subject_get_facts(st->a)->axis, &filter, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        return false;
    }
    (void)snprintf(st->filters[st->n_filters++], sizeof st->filters[0], "%s", tide_filter_text(filter));
    tide_filter_destroy(filter);
    st->filters_off = false;
    tide__rows_changed(act);
    return true;
}

/// The form that a filter is kept in; false: it is none.
static bool canonical(const tide__action *act, const char *text, char *buf, size_t buf_bytes) {
    tide_filter *filter = NULL;
    if (tide_filter_parse(text, tide_subject_get_facts(act->st->a)->axis, &filter, NULL) != TIDE_OK) return false;
    (void)snprintf(buf, buf_bytes, "%s", tide_filter_text(filter));
    tide_filter_destroy(filter);
    return true;
}

void tide__toggle_filter(tide__action *act, const char *text) {
    tide_tui_state *st = act->st;
    char kept[TIDE_TUI_MAX_PROMPT];
    for (size_t i = 0; i < st->n_filters && canonical(act, text, kept, sizeof kept); i++) {
        if (strcmp(st->filters[i], kept) != 0) continue;
        memmove(st->filters[i], st->filters[i + 1], (st->n_filters - i - 1) * sizeof st->filters[0]);
        st->n_filters--;
        st->opened_by_filter = false;
        tide__rows_changed(act);
        return;
    }
    (void)tide__filter(act, text);
}

void tide__alike(tide__action *act) {
    const tide_items *items = tide_subject_items(act->st->a);
    if (items == NULL || act->st->item >= items->n) {
        tide_tui_say(act->st, false, "nothing is selected");
        return;
    }
    const uint64_t size = tide_items_shape(items, act->st->item)->size_bytes;
    char filter[96];
    (void)snprintf(filter, sizeof filter, "size>=%" PRIu64 " size<=%" PRIu64, size, size);
    tide__toggle_filter(act, filter);
}

// ---- rows ----

static const tide_rows *rows_of(const tide__action *act) { return act->scene != NULL ? act->scene->rows : NULL; }

static uint32_t first_of_row(const tide_rows *rows, size_t row) {
    return rows->members[rows->first != NULL ? rows->first[row] : row];
}

void tide__select_row(tide__action *act, size_t row) {
    const tide_rows *rows = rows_of(act);
    if (rows == NULL || rows->n == 0) return;
    act->st->row = row < rows->n ? row : rows->n - 1;
    act->st->item = first_of_row(rows, act->st->row);
}

void tide__select_in_pane(tide__action *act, tide_tui_pane pane, size_t row) {
    const tide_tui_scene *s = act->scene;
    if (pane == TIDE_TUI_PANE_GANTT) {
        tide__select_row(act, row);
        return;
    }
    if (pane == TIDE_TUI_PANE_STACKS) {
        tide__select_stack(act, row);
        return;
    }
    const size_t n = s != NULL ? tide_tui_pane_rows(s, pane) : 0;
    if (n == 0) return;
    row = row < n ? row : n - 1;
    act->st->pane_row[pane] = row;
    uint32_t item = TIDE_NO_ITEM;
    if (pane == TIDE_TUI_PANE_TABLE && s->live != NULL && row < s->live->n) {
        item = s->live->items[row].item;
    } else if (pane == TIDE_TUI_PANE_OPERATORS && row < s->n_operators) {
        tide__show_step(act, s->operators[row].step);
        act->st->operators_at = act->st->cursor; // several can begin at once: this one stays
    } else if (pane == TIDE_TUI_PANE_POOLS && s->leaks != NULL) {
        const size_t n_pools = s->pools != NULL ? s->pools->n : 0;
        if (row >= n_pools && row - n_pools < s->leaks->n) item = s->leaks->items[row - n_pools].first_item;
    } else if (pane == TIDE_TUI_PANE_COMPARE && s->diff != NULL && row < s->diff->n) {
        item = s->diff->rows[row].a;
    }
    if (item != TIDE_NO_ITEM) tide__select_item(act, item);
    if (pane == TIDE_TUI_PANE_TABLE) { // this one stays, too, also while its item is not known
        act->st->table_at = act->st->cursor;
        act->st->table_item = act->st->item;
    }
}

/// Index moved by `by`, held inside [0, n).
static size_t moved(size_t at, int64_t by, size_t n) {
    return (size_t)tide_tui_move_time((int64_t)at, by, 0, n > 0 ? (int64_t)n - 1 : 0);
}

/// In the curve up and down zoom; the first and the last row are its ends.
static void move_in_curve(tide__action *act, int64_t by) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    if (by == INT64_MIN || by == INT64_MAX) {
        tide__show_moment(act, (tide_moment){by < 0 ? f->begin : f->end - 1, 0});
    } else if (by == 1 || by == -1) {
        tide__zoom(act, by < 0, act->st->cursor);
    } else {
        tide__pan(act, by < 0 ? -1 : 1, tide_tui_window_span(act->st->window));
    }
}

void tide__move_rows(tide__action *act, int64_t by) {
    const tide_tui_pane pane = act->st->focus;
    const tide_rows *rows = rows_of(act);
    if (pane == TIDE_TUI_PANE_CURVE) {
        move_in_curve(act, by);
    } else if (pane == TIDE_TUI_PANE_MAP) {
        tide__move_space(act, by == INT64_MIN ? INT64_MAX : -by);
    } else if (pane == TIDE_TUI_PANE_GANTT) {
        if (rows == NULL || rows->n == 0) {
            tide_tui_say(act->st, false, rows == NULL ? "rows are still being made" : "there are no rows");
            return;
        }
        tide__select_row(act, moved(act->st->row, by, rows->n));
    } else {
        const size_t n = act->scene != NULL ? tide_tui_pane_rows(act->scene, pane) : 0;
        if (n > 0) tide__select_in_pane(act, pane, moved(tide_tui_pane_row(act->scene, pane), by, n));
    }
}

void tide__move_page(tide__action *act, int sign) {
    int64_t page = 2; // more than one row, also before the first frame
    if (act->scene != NULL && act->scene->layout != NULL) {
        const tide_tui_layout *l = act->scene->layout;
        const tide_tui_pane pane = act->st->focus;
        const int h = pane == TIDE_TUI_PANE_GANTT ? l->bars.h - 1 : pane == TIDE_TUI_PANE_MAP ? 2 * l->map.h - 2 : 0;
        const int64_t lines = h > 0 ? h : (int64_t)tide_tui_pane_page(act->scene, pane);
        page = lines > 1 ? lines : 2;
    }
    tide__move_rows(act, sign * page);
}

// ---- within a row ----

/// Index of an item among the members [from, to), which rise.
static size_t member_at(const tide_rows *rows, size_t from, size_t to, uint32_t item) {
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (rows->members[middle] < item) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static uint32_t next_member(const tide__action *act, int dir) {
    const tide_rows *rows = rows_of(act);
    const size_t row = act->st->row;
    if (rows == NULL || rows->first == NULL || row >= rows->n) return TIDE_NO_ITEM;
    const size_t from = rows->first[row], to = rows->first[row + 1];
    const size_t at = member_at(rows, from, to, act->st->item);
    if (dir > 0) {
        const bool is_here = at < to && rows->members[at] == act->st->item;
        return at + is_here < to ? rows->members[at + is_here] : TIDE_NO_ITEM;
    }
    return at > from ? rows->members[at - 1] : TIDE_NO_ITEM;
}

void tide__next_item(tide__action *act, int dir) {
    tide_tui_state *st = act->st;
    const tide_items *items = tide_subject_items(st->a);
    uint32_t to = next_member(act, dir);
    const bool has_place = act->scene != NULL && act->scene->has_selection && act->scene->selection.item == st->item;
    if (to == TIDE_NO_ITEM && has_place) to = dir > 0 ? act->scene->after : act->scene->before;
    if (items == NULL || to >= items->n) {
        tide_tui_say(st, false, dir > 0 ? "nothing comes after it in its row or place" : "nothing was there before it");
        return;
    }
    tide__select_item(act, to);
    if (!tide_items_alive_at(items, to, st->cursor))
        tide__show_moment(act, (tide_moment){tide_items_begin(items, to), 0});
}

// ---- groups ----

bool tide__close_group(tide__action *act) {
    tide_tui_state *st = act->st;
    if (st->only_group_of == TIDE_NO_ITEM && !st->opened_by_filter) return false;
    if (st->opened_by_filter && st->n_filters > 0) st->n_filters--;
    st->only_group_of = TIDE_NO_ITEM;
    st->opened_by_filter = false;
    st->group = st->group_before;
    tide__rows_changed(act);
    return true;
}

/// A regular expression that matches `text` alone. Blanks end a word of a filter: any character stands for them.
static void add_literal(tide_text *out, const char *text) {
    tide_text_add(out, "^");
    for (; *text != 0; text++) {
        if (*text == ' ' || *text == '"') {
            tide_text_add(out, ".");
        } else {
            if (strchr(".^$*+?()[]{}|\\", *text) != NULL) tide_text_add(out, "\\");
            tide_text_add_n(out, text, 1);
        }
    }
    tide_text_add(out, "$");
}

/// The filter that keeps only the group of an item.
static void filter_of_group(const tide_items *items, uint32_t item, tide_row_group group, tide_text *out) {
    const tide_item_shape *shape = tide_items_shape(items, item);
    if (group == TIDE_ROW_GROUP_OWNER) {
        tide_text_add(out, "owner~");
        add_literal(out, tide_items_site(items, item)->owner);
    } else if (group == TIDE_ROW_GROUP_KIND) {
        tide_text_addf(out, "kind=%s", tide_memory_kind_name(shape->kind));
    } else {
        uint64_t low = 1;
        while (low <= shape->size_bytes / 2) low *= 2;
        if (shape->size_bytes == 0) low = 0;
        tide_text_addf(out, "size>=%" PRIu64 " size<%" PRIu64, low, low > 0 ? low * 2 : 1);
    }
}

static void open_group(tide__action *act, const tide_items *items) {
    tide_tui_state *st = act->st;
    const tide_row_group group = st->group != TIDE_ROW_GROUP_NONE ? st->group : TIDE_ROW_GROUP_NAME;
    if (group == TIDE_ROW_GROUP_NAME) {
        st->only_group_of = st->item;
    } else {
        tide_text filter = {0};
        filter_of_group(items, st->item, group, &filter);
        const bool ok = tide__filter(act, tide_text_str(&filter));
        tide_text_deinit(&filter);
        if (!ok) return;
        st->opened_by_filter = true;
    }
    st->group_before = group;
    st->group = TIDE_ROW_GROUP_NONE;
    st->group_chosen = true;
    tide__rows_changed(act);
}

static void open_row(tide__action *act) {
    const tide_items *items = tide_subject_items(act->st->a);
    const tide_rows *rows = rows_of(act);
    if (tide__close_group(act)) return;
    if (items == NULL || act->st->item >= items->n) {
        tide_tui_say(act->st, false, "nothing is selected");
    } else if (rows != NULL && rows->first != NULL) {
        open_group(act, items);
    } else {
        tide__show_moment(act, (tide_moment){tide_items_begin(items, act->st->item), 0});
    }
}

void tide__open(tide__action *act) {
    tide_tui_state *st = act->st;
    const tide_items *items = tide_subject_items(st->a);
    switch (st->focus) {
    case TIDE_TUI_PANE_WHATIF:
        tide__apply(act);
        break;
    case TIDE_TUI_PANE_STACKS:
        tide__open_stack(act);
        break;
    case TIDE_TUI_PANE_POOLS:
    case TIDE_TUI_PANE_TABLE:
    case TIDE_TUI_PANE_COMPARE:
    case TIDE_TUI_PANE_MAP:
        // To where the selected one begins: where a leak began, where a block was made.
        if (act->scene != NULL) tide__select_in_pane(act, st->focus, tide_tui_pane_row(act->scene, st->focus));
        if (items != NULL && st->item < items->n) {
            tide__show_moment(act, (tide_moment){tide_items_begin(items, st->item), 0});
        } else {
            tide_tui_say(st, false, "this row has nothing to go to");
        }
        break;
    default:
        open_row(act);
        break;
    }
}

// ---- groups, panes ----

void tide__set_group(tide__action *act, tide_row_group group) {
    act->st->group = group;
    act->st->group_chosen = true;
    act->st->only_group_of = TIDE_NO_ITEM;
    act->st->opened_by_filter = false;
    tide__rows_changed(act);
}

void tide__next_group(tide__action *act) {
    tide__set_group(act, (tide_row_group)((act->st->group + 1) % TIDE_N_ROW_GROUPS));
}

void tide__next_pane(tide__action *act, int dir) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(act->st->preset, panes);
    int at = dir > 0 ? -1 : 0; // of a pane that is not of the preset
    for (int i = 0; i < n; i++) {
        if (panes[i] == act->st->focus) at = i;
    }
    if (n > 0) act->st->focus = panes[(at + dir + n) % n];
}

void tide__set_preset(tide__action *act, tide_tui_preset preset) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(preset, panes);
    bool keeps_focus = false; // only within one view: another view begins at its own main pane
    for (int i = 0; preset == act->st->preset && i < n; i++) keeps_focus |= panes[i] == act->st->focus;
    act->st->preset = preset;
    if (!keeps_focus) act->st->focus = panes[1];
}

void tide__next_bands(tide__action *act) {
    const int by = act->st->bands_by + 1;
    act->st->bands_by = by < (int)TIDE_N_BAND_BYS ? by : -1;
    tide_tui_say(act->st, false, "bands: %s", by < (int)TIDE_N_BAND_BYS ? tide_band_by_name((tide_band_by)by) : "off");
}

void tide__next_kind(tide__action *act) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    bool has[TIDE_N_KINDS] = {false};
    for (size_t i = 0; i < f->n_kinds; i++) {
        if ((unsigned)f->kinds[i].kind < TIDE_N_KINDS) has[f->kinds[i].kind] = true;
    }
    int kind = act->st->curve_kind + 1;
    while (kind < TIDE_N_KINDS && !has[kind]) kind++;
    act->st->curve_kind = kind < TIDE_N_KINDS ? kind : -1;
    char name[64];
    tide_tui_say(act->st, false, "curve: %s",
                 tide_tui_setting_value(act->st, TIDE_TUI_SETTING_KIND, name, sizeof name));
}
