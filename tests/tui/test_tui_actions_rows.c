// SPDX-License-Identifier: MIT
//
// What keys do to rows and panes: the selection and what it follows, filters, searches, groups, lists, addresses.
#include "tests/tui/view_fixture.h"

// ---- rows ----

static void rows_move_and_the_selection_follows_its_item(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    assert_int_equal(view_rows(&v), 11);
    view_key(&v, "Home");
    assert_int_equal(st->row, 0);
    view_keys(&v, "k");
    assert_int_equal(st->row, 0);
    view_keys(&v, "jjj");
    assert_int_equal(st->row, 3);
    char name[64];
    snprintf(name, sizeof name, "%s", view_selected(&v));
    for (int i = 0; i < TIDE_N_ROW_SORTS; i++) {
        view_keys(&v, i % 2 == 0 ? "o" : "oO");
        assert_string_equal(view_selected(&v), name);
        const tide_rows *rows = v.app->scene.rows;
        assert_int_equal(rows->members[st->row], st->item);
    }
    view_do(&v, "filter size>=1k");
    assert_string_equal(view_selected(&v), name);
    view_key(&v, "End");
    assert_int_equal(st->row, view_rows(&v) - 1);
    view_close(&v);
}

static void filters_are_a_stack(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "\\size>=65536");
    assert_int_equal(st->prompt, TIDE_TUI_PROMPT_FILTER);
    view_key(&v, "Enter");
    assert_int_equal(st->prompt, TIDE_TUI_PROMPT_NONE);
    assert_int_equal(st->n_filters, 1);
    assert_int_equal(view_rows(&v), 8);
    view_do(&v, "filter conv");
    assert_int_equal(view_rows(&v), 4); // conv0_out, conv0.scratch, conv2_out, conv4_out
    view_keys(&v, "|");
    assert_int_equal(view_rows(&v), 11);
    view_keys(&v, "|");
    assert_int_equal(view_rows(&v), 4);
    view_do(&v, "filter");
    assert_int_equal(view_rows(&v), 8);
    view_do(&v, "filter");
    assert_int_equal(view_rows(&v), 11);
    view_do(&v, "filter");
    assert_text_has(view_message(&v), "no filter");
    view_do(&v, "filter sise>4");
    assert_true(st->message_is_error);
    assert_int_equal(st->n_filters, 0);
    view_keys(&v, "i");
    assert_int_equal(view_rows(&v), 9);
    view_keys(&v, "i@");
    assert_int_equal(st->n_filters, 1);
    assert_int_equal(view_rows(&v), 5); // alive at step 2, with what persists
    view_do(&v, "goto 7");
    assert_int_equal(view_rows(&v), 3);
    view_keys(&v, "@");
    assert_int_equal(view_rows(&v), 11);
    for (int i = 0; i < TIDE_TUI_MAX_FILTERS + 1; i++) view_do(&v, "filter size>=1");
    assert_int_equal(st->n_filters, TIDE_TUI_MAX_FILTERS);
    assert_true(st->message_is_error);
    view_close(&v);
}

static void alike_has_the_same_size_and_again_all(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    view_do(&v, "goto conv0_out");
    view_keys(&v, "*");
    assert_int_equal(view_rows(&v), 2); // relu1_out is as large
    view_keys(&v, "*");
    assert_int_equal(view_rows(&v), 11);
    view_close(&v);
}

static void search_goes_round(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    view_key(&v, "Home");
    view_keys(&v, "/scratch");
    view_key(&v, "Enter");
    char first[64];
    snprintf(first, sizeof first, "%s", view_selected(&v));
    assert_text_has(first, "scratch");
    assert_int_equal(v.app->scene.n_matches, 2);
    view_keys(&v, "n");
    assert_text_has(view_selected(&v), "scratch");
    assert_string_not_equal(view_selected(&v), first);
    view_keys(&v, "n");
    assert_string_equal(view_selected(&v), first);
    view_keys(&v, "N");
    assert_string_not_equal(view_selected(&v), first);
    view_do(&v, "search conv");
    size_t rows[4] = {v.app->st.row};
    for (int i = 1; i < 4; i++) {
        view_keys(&v, "n");
        rows[i] = v.app->st.row;
        assert_int_not_equal(rows[i], rows[i - 1]);
    }
    for (int i = 3; i-- > 0;) {
        view_keys(&v, "N"); // the same ones, the other way
        assert_int_equal(v.app->st.row, rows[i]);
    }
    view_do(&v, "search nothing_like_it");
    assert_true(v.app->st.message_is_error);
    view_do(&v, "search (");
    assert_true(v.app->st.message_is_error);
    view_do(&v, "search pool");
    view_do(&v, "filter conv");
    view_keys(&v, "n");
    assert_text_has(view_message(&v), "hidden");
    view_close(&v);
}

static void groups_open_and_close(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    for (int g = 1; g < TIDE_N_ROW_GROUPS; g++) {
        view_do(&v, "group none");
        view_do(&v, "goto conv0_out");
        char line[64];
        snprintf(line, sizeof line, "group %s", tide_row_group_name((tide_row_group)g));
        view_do(&v, line);
        const tide_rows *rows = v.app->scene.rows;
        assert_non_null(rows->first);
        const size_t n_groups = rows->n, n_members = rows->first[st->row + 1] - rows->first[st->row];
        view_key(&v, "Enter");
        assert_int_equal(view_rows(&v), n_members);
        assert_null(v.app->scene.rows->first);
        view_key(&v, "Enter");
        assert_int_equal(view_rows(&v), n_groups);
        assert_int_equal(st->group, g);
        assert_int_equal(st->n_filters, 0);
        view_key(&v, "Enter");
        view_key(&v, "Esc");
        assert_int_equal(view_rows(&v), n_groups);
    }
    view_close(&v);
}

static void in_a_row_means_its_members_or_its_place(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    view_do(&v, "group kind");
    view_do(&v, "goto conv0_out");
    view_keys(&v, "...");
    assert_string_not_equal(view_selected(&v), "conv0_out");
    view_keys(&v, ",,,");
    assert_string_equal(view_selected(&v), "conv0_out");
    view_do(&v, "group none");
    view_do(&v, "goto conv0_out");
    const uint32_t after = v.app->scene.after;
    assert_int_not_equal(after, TIDE_NO_ITEM);
    view_keys(&v, ".");
    assert_int_equal(v.app->st.item, after);
    const uint32_t before = v.app->scene.before;
    assert_int_not_equal(before, TIDE_NO_ITEM);
    view_keys(&v, ",");
    assert_int_equal(v.app->st.item, before);
    view_close(&v);
}

// ---- panes ----

static void tab_goes_round_the_panes_of_the_view(void **state) {
    (void)state;
    for (int size = 0; size < 2; size++) { // the small screen shows one list at a time, and still has them all
        view v;
        view_open_small(&v, size == 0 ? 120 : 40, size == 0 ? 40 : 10);
        for (int k = 1; k <= TIDE_TUI_N_PRESETS; k++) {
            const char key[2] = {(char)('0' + k), 0};
            view_keys(&v, key);
            assert_int_equal(v.app->st.preset, k - 1);
            tide_tui_pane panes[TIDE_TUI_N_PANES];
            const int n = tide_tui_preset_panes((tide_tui_preset)(k - 1), panes);
            const tide_tui_pane first = v.app->st.focus;
            for (int i = 0; i < n; i++) {
                assert_true(v.app->layout.panes[v.app->st.focus].w > 0);
                view_key(&v, "Tab");
                if (i < n - 1) assert_int_not_equal(v.app->st.focus, first);
            }
            assert_int_equal(v.app->st.focus, first);
            view_key(&v, "Tab");
            view_key(&v, "S-Tab");
            assert_int_equal(v.app->st.focus, first);
        }
        view_close(&v);
    }
}

static void lists_select_what_they_are_about(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "2");
    view_do(&v, "pane table");
    view_key(&v, "Home");
    assert_string_equal(view_selected(&v), "conv2_out"); // the largest that is alive at the peak
    view_keys(&v, "j");
    assert_string_equal(view_selected(&v), "relu1_out");
    view_keys(&v, "4");
    view_do(&v, "pane operators");
    view_key(&v, "Home");
    assert_int_equal(st->cursor, 0);
    view_keys(&v, "jj");
    assert_int_equal(st->cursor, 2);
    view_key(&v, "PgDn");
    assert_true(st->pane_row[TIDE_TUI_PANE_OPERATORS] > 3);
    view_do(&v, "goto 4");
    assert_int_equal(st->pane_row[TIDE_TUI_PANE_OPERATORS], 4); // lists follow the cursor and the selection
    view_do(&v, "goto conv2_out");
    view_keys(&v, "2");
    assert_int_equal(st->pane_row[TIDE_TUI_PANE_TABLE], 0);
    view_do(&v, "goto relu1_out");
    view_do(&v, "goto 2");
    assert_int_equal(st->pane_row[TIDE_TUI_PANE_TABLE], 1);
    view_close(&v);
}

static void addresses_have_a_cursor_and_a_zoom(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "2");
    assert_int_equal(st->focus, TIDE_TUI_PANE_MAP);
    assert_non_null(v.app->scene.space);
    view_key(&v, "End");
    assert_int_equal(st->space_cursor, 0);
    view_keys(&v, "k");
    const int64_t up = st->space_cursor;
    assert_true(up > 0);
    view_keys(&v, "j");
    assert_int_equal(st->space_cursor, 0);
    const tide_items *items = tide_subject_items(v.a);
    assert_int_equal(items->place[st->item], 0); // what lies lowest at the cursor is selected
    view_keys(&v, "Z");
    assert_true(st->space_hi > st->space_lo);
    assert_int_equal(st->space_hi - st->space_lo, ((int64_t)v.app->scene.space->bytes + 1) / 2);
    assert_int_equal(st->space_lo, 0);
    view_keys(&v, "z");
    assert_int_equal(st->space_lo, st->space_hi);
    for (int i = 0; i < 8; i++) view_keys(&v, "Z");
    view_keys(&v, "0");
    assert_int_equal(st->space_lo, st->space_hi);
    view_do(&v, "goto 0x10000");
    assert_int_equal(st->space_cursor, 0x10000);
    view_close(&v);
}

/// `goto ADDRESS` says who lies there, whatever the picture's cells show: held against all items.
static void an_address_belongs_to_whom_the_data_say(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 3000)), NULL, 60, 24); // some hundred places in twelve cells
    const tide_items *items = tide_subject_items(v.a);
    size_t n_found = 0, n_free = 0;
    for (uint32_t i = 0; i < items->n; i += 3) {
        char step[32];
        snprintf(step, sizeof step, "view %u", 1 + i % 4); // whatever is on the screen
        view_do(&v, step);
        snprintf(step, sizeof step, "goto %u", i * 10);
        view_do(&v, step);
        for (uint64_t byte = 0; byte < 2; byte++) {
            const uint64_t at = items->place[i] + (byte == 0 ? 0 : tide_items_shape(items, i)->reserved_bytes);
            char line[64];
            snprintf(line, sizeof line, "goto 0x%llx", (unsigned long long)at);
            uint32_t want = TIDE_NO_ITEM;
            for (uint32_t k = 0; k < items->n; k++) {
                const uint64_t bytes = tide_items_shape(items, k)->reserved_bytes;
                const bool lies =
                    items->place[k] != TIDE_NO_OFFSET && at >= items->place[k] && at - items->place[k] < bytes;
                if (lies && tide_items_alive_at(items, k, v.app->st.cursor)) want = k;
            }
            view_do(&v, line);
            if (want == TIDE_NO_ITEM) {
                assert_text_has(view_message(&v), "nothing lies at 0x");
                n_free++;
            } else {
                assert_int_equal(v.app->st.item, want);
                assert_text_has(view_message(&v), " lies at 0x");
                n_found++;
            }
        }
    }
    assert_true(n_found > 20 && n_free > 20);
    view_do(&v, "goto 0x1ffffffffffffffffffff");
    assert_text_has(view_message(&v), "is no address");
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_move_and_the_selection_follows_its_item),
        cmocka_unit_test(filters_are_a_stack),
        cmocka_unit_test(alike_has_the_same_size_and_again_all),
        cmocka_unit_test(search_goes_round),
        cmocka_unit_test(groups_open_and_close),
        cmocka_unit_test(in_a_row_means_its_members_or_its_place),
        cmocka_unit_test(tab_goes_round_the_panes_of_the_view),
        cmocka_unit_test(lists_select_what_they_are_about),
        cmocka_unit_test(addresses_have_a_cursor_and_a_zoom),
        cmocka_unit_test(an_address_belongs_to_whom_the_data_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
