// SPDX-License-Identifier: MIT
//
// Searching and filtering. See actions_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/actions_internal.h"

// ---- search ----

/// `one_site`: members of a row have one name, and the first tells for all.
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

/// From the selected row on, round at the end; the selected one itself counts for `dir` 0.
static bool select_match(tide__turn *t, const tide_items *items, const uint8_t *bits, int dir) {
    const tide_rows *rows = t->scene != NULL ? t->scene->rows : NULL;
    if (rows == NULL || rows->n == 0) return false;
    const size_t n = rows->n, at = t->st->row < n ? t->st->row : 0;
    const bool one_site = t->st->group == TIDE_ROW_GROUP_NAME;
    for (size_t k = dir == 0 ? 0 : 1; k <= n; k++) {
        const size_t row = dir < 0 ? (at + n - k) % n : (at + k) % n;
        uint32_t member;
        if (!row_matches(rows, items, bits, row, one_site, &member)) continue;
        t->st->row = row;
        t->st->item = member;
        return true;
    }
    return false;
}

static void find(tide__turn *t, const char *regex, int dir) {
    const tide_items *items = tide_subject_items(t->st->a);
    tide_error err = TIDE_ERROR_INIT;
    uint8_t *bits = NULL;
    size_t n = 0;
    if (items == NULL) {
        tide_tui_say(t->st, false, "names are still being read");
        return;
    }
    if (tide_items_search(items, regex, &bits, &n, &err) != TIDE_OK) {
        tide__turn_fail(t, &err);
        t->st->search[0] = 0;
        return;
    }
    if (n == 0) {
        tide_tui_say(t->st, true, "no name or operator matches '%s'", regex);
    } else if (!select_match(t, items, bits, dir)) {
        tide_tui_say(t->st, true, "all %zu matches of '%s' are hidden by filters", n, regex);
    }
    tide_host_free(bits);
}

void tide__search(tide__turn *t, const char *regex) {
    (void)snprintf(t->st->search, sizeof t->st->search, "%s", regex);
    if (*regex == 0) {
        tide_tui_say(t->st, false, "search ended");
    } else {
        find(t, regex, 0);
    }
}

void tide__next_match(tide__turn *t, int dir) {
    if (t->st->search[0] == 0) {
        tide_tui_say(t->st, false, "nothing is searched for: / searches");
        return;
    }
    const tide_items *items = tide_subject_items(t->st->a);
    const uint8_t *bits = t->scene != NULL ? t->scene->match_bits : NULL; // of the frame: names need no second look
    if (items != NULL && bits != NULL && select_match(t, items, bits, dir)) return;
    char regex[TIDE_TUI_MAX_PROMPT]; // find() may end the search
    (void)snprintf(regex, sizeof regex, "%s", t->st->search);
    find(t, regex, dir);
}

// ---- filters ----

bool tide__filter(tide__turn *t, const char *text) {
    tide_tui_state *st = t->st;
    if (*text == 0) {
        if (st->n_filters == 0) {
            tide_tui_say(st, false, "there is no filter");
            return false;
        }
        st->n_filters--;
        st->opened_by_filter = false;
        tide__rows_changed(t);
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
        tide__turn_fail(t, &err);
        return false;
    }
    (void)snprintf(st->filters[st->n_filters++], sizeof st->filters[0], "%s", tide_filter_text(filter));
    tide_filter_destroy(filter);
    st->filters_off = false;
    tide__rows_changed(t);
    return true;
}

/// The form that a filter is kept in; false: it is none.
static bool canonical(const tide__turn *t, const char *text, char *buf, size_t buf_bytes) {
    tide_filter *filter = NULL;
    if (tide_filter_parse(text, tide_subject_get_facts(t->st->a)->axis, &filter, NULL) != TIDE_OK) return false;
    (void)snprintf(buf, buf_bytes, "%s", tide_filter_text(filter));
    tide_filter_destroy(filter);
    return true;
}

void tide__toggle_filter(tide__turn *t, const char *text) {
    tide_tui_state *st = t->st;
    char kept[TIDE_TUI_MAX_PROMPT];
    for (size_t i = 0; i < st->n_filters && canonical(t, text, kept, sizeof kept); i++) {
        if (strcmp(st->filters[i], kept) != 0) continue;
        memmove(st->filters[i], st->filters[i + 1], (st->n_filters - i - 1) * sizeof st->filters[0]);
        st->n_filters--;
        st->opened_by_filter = false;
        tide__rows_changed(t);
        return;
    }
    (void)tide__filter(t, text);
}

void tide__alike(tide__turn *t) {
    const tide_items *items = tide_subject_items(t->st->a);
    if (items == NULL || t->st->item >= items->n) {
        tide_tui_say(t->st, false, "nothing is selected");
        return;
    }
    const uint64_t size = tide_items_shape(items, t->st->item)->size_bytes;
    char filter[96];
    (void)snprintf(filter, sizeof filter, "size>=%" PRIu64 " size<=%" PRIu64, size, size);
    tide__toggle_filter(t, filter);
}
