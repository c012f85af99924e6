// SPDX-License-Identifier: MIT
//
// What keys do to the state of the terminal view, and that the key table is whole.
#include "tests/tide_test.h"

#include "tests/tui/timeline_sample.h"
#include "tui/help.h"
#include "tui/model.h"

typedef struct fixture {
    tide_timeline *tl;
    tide_tui_model m;
    tide_tui_layout layout;
} fixture;

static fixture open_on(tide_timeline *tl) {
    fixture f = {.tl = tl};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_model_init(&f.m, tl, &err), &err);
    tide_tui_layout_make(80, 24, &f.layout);
    tide_tui_settle(&f.m, &f.layout);
    return f;
}

static void close_it(fixture *f) {
    tide_tui_model_deinit(&f->m);
    sample_destroy(f->tl);
}

static unsigned press(fixture *f, uint32_t key) { return tide_tui_press(&f->m, &f->layout, key); }

static const char *selected_name(const fixture *f) { return tide_tui_selected(&f->m)->name; }

static void it_opens_on_the_whole_axis_with_the_cursor_at_the_peak(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    assert_int_equal(f.m.window.begin, 0);
    assert_int_equal(f.m.window.end, 8);
    assert_int_equal(f.m.cursor, 2);
    assert_int_equal(f.m.row, 0);
    assert_string_equal(selected_name(&f), "conv0_out");
    close_it(&f);
}

static void rows_stop_at_both_ends(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    press(&f, 'k');
    assert_int_equal(f.m.row, 0);
    press(&f, TIDE_TUI_KEY_DOWN);
    assert_int_equal(f.m.row, 1);
    press(&f, 'G');
    assert_int_equal(f.m.row, 9);
    press(&f, 'j');
    assert_int_equal(f.m.row, 9);
    assert_true(f.m.row >= f.m.top && f.m.row < f.m.top + (size_t)f.layout.bars.h);
    press(&f, 'g');
    assert_int_equal(f.m.row, 0);
    assert_int_equal(f.m.top, 0);
    close_it(&f);
}

static void pages_scroll_by_a_screen(void **state) {
    (void)state;
    fixture f = open_on(sample_many(200, 3));
    const size_t page = (size_t)f.layout.bars.h - 1;
    press(&f, TIDE_TUI_KEY_PAGE_DOWN);
    assert_int_equal(f.m.row, page);
    press(&f, TIDE_TUI_KEY_PAGE_DOWN);
    assert_int_equal(f.m.row, 2 * page);
    press(&f, TIDE_TUI_KEY_PAGE_UP);
    assert_int_equal(f.m.row, page);
    close_it(&f);
}

static void the_selection_survives_every_sort(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    press(&f, 'j');
    press(&f, 'j');
    const char *name = selected_name(&f);
    for (int i = 0; i < TIDE_TUI_N_SORTS; i++) {
        press(&f, 'o');
        assert_string_equal(selected_name(&f), name);
        assert_true(f.m.row >= f.m.top && f.m.row < f.m.top + (size_t)f.layout.bars.h);
    }
    assert_int_equal(f.m.sort, TIDE_TUI_SORT_BEGIN);
    assert_int_equal(f.m.row, 2);
    close_it(&f);
}

static void every_sort_is_in_order_and_whole(void **state) {
    (void)state;
    fixture f = open_on(sample_many(777, 5));
    for (int s = 0; s < TIDE_TUI_N_SORTS; s++) {
        press(&f, 'o');
        size_t seen_sum = 0;
        for (size_t i = 0; i < f.tl->n_items; i++) {
            seen_sum += f.m.order[i];
            if (i == 0) continue;
            const tide_timeline_item *a = &f.tl->items[f.m.order[i - 1]], *b = &f.tl->items[f.m.order[i]];
            if (f.m.sort == TIDE_TUI_SORT_SIZE) assert_true(a->size_bytes >= b->size_bytes);
            if (f.m.sort == TIDE_TUI_SORT_NAME) assert_true(strcmp(a->name, b->name) <= 0);
            if (f.m.sort == TIDE_TUI_SORT_LIFE) assert_true(a->end - a->begin >= b->end - b->begin);
            if (f.m.sort != TIDE_TUI_SORT_BEGIN) continue;
            assert_true(tide_timeline_persists(a) <= tide_timeline_persists(b));
            if (tide_timeline_persists(a) == tide_timeline_persists(b)) assert_true(a->begin <= b->begin);
        }
        assert_int_equal(seen_sum, f.tl->n_items * (f.tl->n_items - 1) / 2);
    }
    close_it(&f);
}

static void zoom_keeps_the_cursor_in_its_column(void **state) {
    (void)state;
    fixture f = open_on(sample_many(50, 9));
    f.m.cursor = f.tl->begin + 31000000;
    for (int i = 0; i < 12; i++) {
        const int before = tide_tui_column_of(f.m.window, f.layout.bars.w, f.m.cursor);
        press(&f, '+');
        const int after = tide_tui_column_of(f.m.window, f.layout.bars.w, f.m.cursor);
        assert_in_range(after + 1, before, before + 2);
    }
    const uint64_t deep = tide_tui_window_span(f.m.window);
    assert_in_range(deep, 50000000 >> 12, (50000000 >> 12) + 1);
    press(&f, '-');
    assert_int_equal(tide_tui_window_span(f.m.window), 2 * deep);
    press(&f, '0');
    assert_int_equal(f.m.window.begin, f.tl->begin);
    assert_int_equal(f.m.window.end, f.tl->end);
    close_it(&f);
}

static void zoom_stops_at_one_step_and_at_the_whole(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    for (int i = 0; i < 80; i++) press(&f, '+');
    assert_int_equal(tide_tui_window_span(f.m.window), 1);
    assert_int_equal(f.m.window.begin, f.m.cursor);
    for (int i = 0; i < 80; i++) press(&f, '-');
    assert_int_equal(f.m.window.begin, 0);
    assert_int_equal(f.m.window.end, 8);
    close_it(&f);
}

static void pan_moves_half_a_window_and_stops_at_the_ends(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    press(&f, '+'); // [1, 5)
    assert_int_equal(f.m.window.begin, 1);
    press(&f, 'L');
    assert_int_equal(f.m.window.begin, 3);
    assert_int_equal(f.m.cursor, 4);
    press(&f, 'L');
    press(&f, 'L');
    assert_int_equal(f.m.window.end, 8);
    for (int i = 0; i < 5; i++) press(&f, 'H');
    assert_int_equal(f.m.window.begin, 0);
    close_it(&f);
}

static void the_cursor_walks_and_takes_the_window_along(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    for (int i = 0; i < 3; i++) press(&f, '+');
    assert_int_equal(tide_tui_window_span(f.m.window), 1);
    press(&f, 'l');
    assert_int_equal(f.m.cursor, 3);
    assert_int_equal(f.m.window.begin, 3);
    for (int i = 0; i < 20; i++) press(&f, TIDE_TUI_KEY_LEFT);
    assert_int_equal(f.m.cursor, 0);
    assert_int_equal(f.m.window.begin, 0);
    for (int i = 0; i < 20; i++) press(&f, TIDE_TUI_KEY_RIGHT);
    assert_int_equal(f.m.cursor, 7);
    close_it(&f);
}

static void fit_shows_the_whole_lifetime(void **state) {
    (void)state;
    fixture f = open_on(sample_many(300, 21));
    for (int i = 0; i < 300; i += 7) {
        f.m.row = (size_t)i;
        press(&f, 'f');
        const tide_timeline_item *item = tide_tui_selected(&f.m);
        assert_true(f.m.window.begin <= item->begin && f.m.window.end >= item->end);
        assert_true(tide_tui_window_span(f.m.window) <= 2 * (uint64_t)(item->end - item->begin) + 4);
        assert_true(tide_timeline_alive_at(item, f.m.cursor));
    }
    close_it(&f);
}

static void p_brings_the_peak_into_view(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    f.m.cursor = 7;
    for (int i = 0; i < 4; i++) press(&f, '+');
    assert_true(f.m.window.begin > f.tl->peak_t);
    press(&f, 'p');
    assert_int_equal(f.m.cursor, f.tl->peak_t);
    assert_true(f.m.window.begin <= f.tl->peak_t && f.tl->peak_t < f.m.window.end);
    close_it(&f);
}

static void q_leaves_the_help_first(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    press(&f, '?');
    assert_true(f.m.help);
    press(&f, TIDE_TUI_KEY_END);
    assert_int_equal(f.m.help_top, tide_tui_help_lines() - f.layout.help.h);
    assert_int_equal(press(&f, '+'), 0);
    assert_int_equal(press(&f, 'q') & TIDE_TUI_LEAVE, 0);
    assert_false(f.m.help);
    assert_int_equal(press(&f, 'q') & TIDE_TUI_LEAVE, TIDE_TUI_LEAVE);
    close_it(&f);
}

static void an_unknown_key_changes_nothing(void **state) {
    (void)state;
    fixture f = open_on(sample_small());
    const tide_tui_model before = f.m;
    assert_int_equal(press(&f, 'Z'), 0);
    assert_int_equal(press(&f, 0), 0);
    assert_int_equal(press(&f, UINT32_MAX), 0);
    assert_memory_equal(&before, &f.m, sizeof before);
    close_it(&f);
}

static void an_empty_timeline_takes_every_key(void **state) {
    (void)state;
    fixture f = open_on(sample_empty());
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 3 && b[i].keys[k] != 0; k++) press(&f, b[i].keys[k]);
        assert_null(tide_tui_selected(&f.m));
        assert_true(f.m.cursor >= f.m.window.begin && f.m.cursor < f.m.window.end);
    }
    close_it(&f);
}

// ---- persistent rows ----

static void it_opens_on_what_comes_and_goes(void **state) {
    (void)state;
    fixture f = open_on(sample_weights());
    assert_string_equal(f.tl->items[0].name, "conv0_out"); // by begin, then by size: weights0 is next
    static const char *const order[] = {"conv0_out", "relu1_out", "gemm2_out",    "weights0",
                                        "input",     "weights2",  "probabilities"};
    assert_int_equal(f.m.n_rows, 7);
    assert_int_equal(f.m.n_persistent, 4);
    assert_string_equal(selected_name(&f), "conv0_out");
    for (size_t i = 0; i < 7; i++) assert_string_equal(f.tl->items[f.m.order[i]].name, order[i]);
    close_it(&f);
}

static void what_persists(void **state) {
    (void)state;
    static const struct {
        tide_timeline_item item;
        bool persists;
    } cases[] = {
        {{.kind = TIDE_KIND_WORKSPACE, .role = TIDE_ROLE_INTERMEDIATE}, false},
        {{.kind = TIDE_KIND_WORKSPACE, .role = TIDE_ROLE_SCRATCH}, false},
        {{.kind = TIDE_KIND_KV_CACHE, .role = TIDE_ROLE_INTERMEDIATE}, false},
        {{.kind = TIDE_KIND_DEFAULT, .role = TIDE_ROLE_INTERMEDIATE}, false},
        {{.kind = TIDE_KIND_WORKSPACE, .role = TIDE_ROLE_INTERMEDIATE, .persistent = true}, true},
        {{.kind = TIDE_KIND_PERSISTENT, .role = TIDE_ROLE_INTERMEDIATE}, true},
        {{.kind = TIDE_KIND_DEFAULT, .role = TIDE_ROLE_WEIGHT}, true},
        {{.kind = TIDE_KIND_DEFAULT, .role = TIDE_ROLE_INPUT}, true},
        {{.kind = TIDE_KIND_DEFAULT, .role = TIDE_ROLE_OUTPUT}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tide_timeline_persists(&cases[i].item), cases[i].persists);
}

static void w_hides_and_shows_persistent_rows_in_every_sort(void **state) {
    (void)state;
    fixture f = open_on(sample_weights());
    for (int s = 0; s < TIDE_TUI_N_SORTS; s++) {
        press(&f, 'g');
        press(&f, 'w');
        assert_int_equal(f.m.n_rows, 3);
        assert_int_equal(tide_tui_n_hidden(&f.m), 4);
        for (size_t i = 0; i < 3; i++) assert_false(tide_timeline_persists(&f.tl->items[f.m.order[i]]));
        press(&f, 'G');
        assert_int_equal(f.m.row, 2);
        const char *name = selected_name(&f);
        press(&f, 'w');
        assert_int_equal(f.m.n_rows, 7);
        assert_int_equal(tide_tui_n_hidden(&f.m), 0);
        assert_string_equal(selected_name(&f), name); // shown before and after
        press(&f, 'o');
    }
    close_it(&f);
}

static void hiding_the_selected_row_selects_the_next_that_stays(void **state) {
    (void)state;
    fixture f = open_on(sample_weights());
    press(&f, 'o'); // by size: relu1_out, conv0_out, weights0, input, weights2, gemm2_out, probabilities
    f.m.row = 2;
    assert_string_equal(selected_name(&f), "weights0");
    press(&f, 'w');
    assert_string_equal(selected_name(&f), "gemm2_out");
    press(&f, 'w');
    press(&f, 'G');
    assert_string_equal(selected_name(&f), "probabilities");
    press(&f, 'w');
    assert_string_equal(selected_name(&f), "gemm2_out"); // none follows: the last
    press(&f, 'w');
    press(&f, 'o');
    press(&f, 'o'); // by life: the persistent ones first
    press(&f, 'g');
    assert_string_equal(selected_name(&f), "weights0");
    press(&f, 'w');
    assert_string_equal(selected_name(&f), "conv0_out");
    close_it(&f);
}

static void all_rows_may_be_hidden(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    for (size_t i = 0; i < tl->n_items; i++) tl->items[i].persistent = true;
    fixture f = open_on(tl);
    press(&f, 'w');
    assert_int_equal(f.m.n_rows, 0);
    assert_null(tide_tui_selected(&f.m));
    static const uint32_t keys[] = {'j', 'k', 'G', 'g', 'f', 'o', TIDE_TUI_KEY_PAGE_DOWN, TIDE_TUI_KEY_PAGE_UP};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        press(&f, keys[i]);
        assert_int_equal(f.m.row, 0);
    }
    press(&f, 'w');
    assert_int_equal(f.m.n_rows, 7);
    assert_non_null(tide_tui_selected(&f.m));
    close_it(&f);
}

// ---- the table ----

static void no_key_is_bound_twice_and_every_action_is_bound_once(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    assert_int_equal(n, TIDE_TUI_N_ACTIONS - 1);
    for (size_t i = 0; i < n; i++) {
        assert_true(b[i].keys[0] != 0 && b[i].label[0] != '\0' && b[i].what[0] != '\0' && b[i].name[0] != '\0');
        for (int k = 0; k < 3 && b[i].keys[k] != 0; k++)
            assert_int_equal(tide_tui_action_of(b[i].keys[k]), b[i].action);
        for (size_t j = 0; j < i; j++) assert_int_not_equal(b[i].action, b[j].action);
    }
}

/// From the middle of everything, each documented key changes the state, asks for a repaint, or quits.
static void every_key_of_the_table_does_something(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 3 && b[i].keys[k] != 0; k++) {
            fixture f = open_on(sample_many(400, 2));
            f.m.row = f.m.top = 100;
            f.m.cursor = f.tl->begin + 20000000;
            press(&f, '+');
            press(&f, '+');
            f.m.help = b[i].action == TIDE_TUI_BACK;
            const tide_tui_model before = f.m;
            const unsigned flags = press(&f, b[i].keys[k]);
            assert_true(flags & TIDE_TUI_HANDLED);
            if ((flags & (TIDE_TUI_REPAINT | TIDE_TUI_LEAVE)) == 0 && memcmp(&before, &f.m, sizeof before) == 0)
                fail_msg("key '%s' (%s) changes nothing", b[i].label, b[i].name);
            close_it(&f);
        }
    }
}

static void no_memory_is_an_error_and_not_a_crash(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_tui_model m;
    tide_error err = TIDE_ERROR_INIT;
    tide_host_fail_after(0);
    assert_tide_status(tide_tui_model_init(&m, tl, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    tide_tui_model_deinit(&m);
    sample_destroy(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_opens_on_the_whole_axis_with_the_cursor_at_the_peak),
        tide_unit_test(rows_stop_at_both_ends),
        tide_unit_test(pages_scroll_by_a_screen),
        tide_unit_test(the_selection_survives_every_sort),
        tide_unit_test(every_sort_is_in_order_and_whole),
        tide_unit_test(zoom_keeps_the_cursor_in_its_column),
        tide_unit_test(zoom_stops_at_one_step_and_at_the_whole),
        tide_unit_test(pan_moves_half_a_window_and_stops_at_the_ends),
        tide_unit_test(the_cursor_walks_and_takes_the_window_along),
        tide_unit_test(fit_shows_the_whole_lifetime),
        tide_unit_test(p_brings_the_peak_into_view),
        tide_unit_test(q_leaves_the_help_first),
        tide_unit_test(an_unknown_key_changes_nothing),
        tide_unit_test(an_empty_timeline_takes_every_key),
        tide_unit_test(it_opens_on_what_comes_and_goes),
        tide_unit_test(what_persists),
        tide_unit_test(w_hides_and_shows_persistent_rows_in_every_sort),
        tide_unit_test(hiding_the_selected_row_selects_the_next_that_stays),
        tide_unit_test(all_rows_may_be_hidden),
        tide_unit_test(no_key_is_bound_twice_and_every_action_is_bound_once),
        tide_unit_test(every_key_of_the_table_does_something),
        tide_unit_test(no_memory_is_an_error_and_not_a_crash),
    };
    return cmocka_run_group_tests_name("tui_model", tests, NULL, NULL);
}
