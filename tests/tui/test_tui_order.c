// SPDX-License-Identifier: MIT
//
// Lists in the order of a column: by key, by name, by a click on its title; what is selected, exported and remembered.
#include "tests/tui/view_fixture.h"
#include "tui/draw/draw.h"
#include "tui/draw/panes.h"

/// Whether the live items stand by size and then, where sizes are equal, in their own order.
static void assert_by_place(const tide_live_items *live, bool falls) {
    for (size_t i = 1; i < live->n; i++) {
        const uint64_t a = live->items[i - 1].place, b = live->items[i].place;
        if (a == TIDE_NO_OFFSET || b == TIDE_NO_OFFSET)
            assert_int_equal(b, TIDE_NO_OFFSET); // what has no place stands last
        else
            assert_true(falls ? a >= b : a <= b);
    }
}

static void a_key_goes_through_the_columns(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 3000)), NULL, 120, 40);
    view_do(&v, "view 3");
    view_do(&v, "pane table");
    view_keys(&v, "jj"); // a row of it is selected
    const size_t n = v.app->scene.live->n;
    const uint64_t bytes = v.app->scene.live->bytes;
    const char *keys[16];
    const size_t n_keys = tide_tui_list_columns(&v.app->scene, TIDE_TUI_LIST_TABLE, keys, 16);
    assert_int_equal(n_keys, 6);
    assert_string_equal(v.app->scene.sorted[TIDE_TUI_LIST_TABLE].column, "");
    for (size_t i = 0; i < n_keys; i++) {
        const uint32_t item = v.app->st.item;
        view_keys(&v, "o");
        assert_string_equal(v.app->scene.sorted[TIDE_TUI_LIST_TABLE].column, keys[i]);
        assert_int_equal(v.app->scene.live->n, n);
        assert_int_equal(v.app->scene.live->bytes, bytes);
        assert_int_equal(v.app->st.item, item); // the selection goes along
        assert_int_equal(v.app->scene.live->items[v.app->st.pane_row[TIDE_TUI_PANE_TABLE]].item, item);
    }
    assert_by_place(v.app->scene.live, false);
    view_keys(&v, "O");
    assert_by_place(v.app->scene.live, true);
    view_keys(&v, "o"); // its own order again
    assert_string_equal(v.app->scene.sorted[TIDE_TUI_LIST_TABLE].column, "");
    for (size_t i = 1; i < n; i++)
        assert_true(v.app->scene.live->items[i].counts_bytes <= v.app->scene.live->items[i - 1].counts_bytes);
    view_close(&v);
}

/// Column of a list's table that has a title at (x, y), as the screen shows it.
static void a_click_on_a_title_sorts(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 3000)), NULL, 150, 40);
    view_do(&v, "view 3");
    const tide_tui_rect body = tide_tui_body_of(&v.app->scene, TIDE_TUI_PANE_TABLE);
    int n_clicks = 0;
    for (int x = body.x; x < body.x + body.w; x++) {
        int column;
        tide_tui_list_table list;
        if (tide_tui_pane_list_at(&v.app->scene, TIDE_TUI_PANE_TABLE, x, body.y, &column) == TIDE_TUI_N_LISTS) continue;
        assert_true(tide_tui_list_table_of(&v.app->scene, TIDE_TUI_LIST_TABLE, body, &list));
        const char *key = list.t.columns[column].key;
        const bool was = strcmp(v.app->st.orders[TIDE_TUI_LIST_TABLE].column, key != NULL ? key : "") == 0;
        view_mouse(&v,
                   (tide_tui_mouse){.kind = TIDE_TUI_MOUSE_PRESS, .x = x, .y = body.y, .t_ms = 10000 * (uint64_t)x});
        if (key == NULL) continue;
        assert_string_equal(v.app->st.orders[TIDE_TUI_LIST_TABLE].column, key);
        if (!was) assert_false(v.app->st.orders[TIDE_TUI_LIST_TABLE].reverse); // again: turned round
        n_clicks++;
    }
    assert_true(n_clicks > 20);
    view_close(&v);
}

static void every_list_has_its_order(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    static const char *const lines[] = {"view 3", "view 4", "view 5"};
    for (size_t i = 0; i < 3; i++) view_do(&v, lines[i]);
    view_do(&v, "sort table name reversed");
    view_do(&v, "sort operators live");
    view_do(&v, "view 4");
    view_do(&v, "pane operators");
    const tide_tui_scene *s = &v.app->scene;
    for (size_t i = 1; i < s->n_operators; i++)
        assert_true(s->operators[i].live_bytes <= s->operators[i - 1].live_bytes);
    assert_int_equal(s->operators[v.app->st.pane_row[TIDE_TUI_PANE_OPERATORS]].begin, v.app->st.cursor);
    view_do(&v, "view 3");
    for (size_t i = 1; i < s->live->n; i++)
        assert_true(strcmp(s->live->items[i].site.name, s->live->items[i - 1].site.name) <= 0);
    view_do(&v, "sort table own");
    assert_string_equal(v.app->st.orders[TIDE_TUI_LIST_TABLE].column, "");
    view_do(&v, "pane table");
    view_do(&v, "sort bytse");
    assert_true(v.app->st.message_is_error);
    assert_text_has(view_message(&v), "the list 'table' has no column 'bytse'");
    view_do(&v, "sort table name upwards");
    assert_text_has(view_message(&v), "'upwards' is neither");
    view_do(&v, "reset");
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) assert_string_equal(v.app->st.orders[i].column, "");
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_key_goes_through_the_columns),
        tide_unit_test(a_click_on_a_title_sorts),
        tide_unit_test(every_list_has_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
