// SPDX-License-Identifier: MIT
//
// Every key of the table does something, in a view where there is something to do: the state changes beyond its
// counter, or the loop is told to do something. And every name behind ':' does what its key does.
#include "tests/tui/view_fixture.h"

/// Zoomed in, in the middle, with a selection, a filter, a search, marks, an edit.
static void prepare(view *v, tide_tui_action action) {
    view_open(v, subject_of_plan(small_plan(262144)), NULL, 120, 40);
    tide_tui_state *st = &v->app->st;
    view_do(v, "goto 2");
    view_do(v, "mark a here");
    view_do(v, "goto 4");
    view_do(v, "search out");
    view_do(v, "filter size>=1");
    view_do(v, "goto conv4_out");
    if (action == TIDE_TUI_UNDO || action == TIDE_TUI_SAVE_PLAN) view_do(v, "edit gone conv2_out");
    if (action == TIDE_TUI_SPACE_IN || action == TIDE_TUI_SPACE_OUT) {
        view_keys(v, "2");
        if (action == TIDE_TUI_SPACE_OUT) view_keys(v, "Z");
    }
    if (action == TIDE_TUI_APPLY) view_keys(v, "3");
    if (action == TIDE_TUI_VIEW_1) view_keys(v, "2");
    if (action == TIDE_TUI_BACK) view_keys(v, "v");
    if (action == TIDE_TUI_PREVIOUS_CHANGE || action == TIDE_TUI_OPEN) view_do(v, "goto 5");
    st->window = (tide_tui_window){2, 7};
    st->cursor_event = 0;
    if (action == TIDE_TUI_FIRST || action == TIDE_TUI_ROW_UP || action == TIDE_TUI_PAGE_BACK) view_key(v, "End");
    if (action == TIDE_TUI_LAST || action == TIDE_TUI_ROW_DOWN || action == TIDE_TUI_PAGE_ON) view_key(v, "Home");
    view_look(v);
    st->message[0] = 0;
}

/// Whether a turn was more than a count; what is said counts, an error does not.
static bool did_something(const tide_tui_state *before, const tide_tui_state *after, unsigned flags) {
    tide_tui_state same = *before;
    same.seq = after->seq;
    same.rows_wanted = after->rows_wanted;
    const bool changed = memcmp(&same, after, sizeof same) != 0;
    return (changed && !after->message_is_error) ||
           (flags & (TIDE_TUI_EFFECT | TIDE_TUI_LEAVE | TIDE_TUI_REPAINT)) != 0;
}

static void every_key_does_something(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < TIDE_TUI_MAX_KEYS && b[i].keys[k] != 0; k++) {
            view v;
            char label[16];
            prepare(&v, b[i].action);
            const tide_tui_state before = v.app->st;
            const tide_tui_result r = tide_tui_press(&v.app->st, &v.app->scene, b[i].keys[k]);
            if (!did_something(&before, &v.app->st, r.flags)) {
                fail_msg("%s (%s) does nothing: %s", tide_tui_key_label(b[i].keys[k], label, sizeof label), b[i].name,
                         v.app->st.message);
            }
            assert_true(r.flags & TIDE_TUI_HANDLED);
            view_close(&v);
        }
    }
}

/// What the command needs behind its name to be what the key is.
static const char *argument_of(tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_GOTO:
        return "3";
    case TIDE_TUI_PANE:
        return "curve";
    case TIDE_TUI_SEARCH:
        return "conv";
    case TIDE_TUI_FILTER:
        return "conv";
    case TIDE_TUI_EDIT:
        return "gone conv2_out";
    case TIDE_TUI_SAVE_PLAN:
    case TIDE_TUI_EXPORT:
        return "a_file.txt";
    case TIDE_TUI_SET:
        return "sort size";
    default:
        return "";
    }
}

static void every_name_does_something(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n; i++) {
        view v;
        char line[64];
        prepare(&v, b[i].action);
        snprintf(line, sizeof line, "%s %s", b[i].name, argument_of(b[i].action));
        const tide_tui_state before = v.app->st;
        const tide_tui_result r = tide_tui_command(&v.app->st, &v.app->scene, line);
        if (!did_something(&before, &v.app->st, r.flags)) fail_msg(":%s does nothing: %s", line, v.app->st.message);
        view_close(&v);
    }
}

/// Names whose keys ask for what the command line has given already.
static bool asks(tide_tui_action action) {
    return argument_of(action)[0] != 0 || action == TIDE_TUI_MARK || action == TIDE_TUI_COMMAND;
}

/// Clears padding and the bytes behind texts in every edit, so that equal edits have equal bytes.
static void make_plain(tide_tui_state *st) {
    for (size_t i = 0; i < sizeof st->edits / sizeof st->edits[0]; i++) {
        const tide_edit edit = st->edits[i];
        tide_edit *to = &st->edits[i];
        memset(to, 0, sizeof *to);
        to->kind = edit.kind;
        snprintf(to->item, sizeof to->item, "%s", edit.item);
        snprintf(to->other, sizeof to->other, "%s", edit.other);
        to->step = edit.step;
        to->bytes = edit.bytes;
        snprintf(to->text, sizeof to->text, "%s", edit.text);
    }
}

static void a_name_does_what_its_key_does(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n; i++) {
        if (b[i].keys[0] == 0 || asks(b[i].action)) continue;
        view x, y;
        prepare(&x, b[i].action);
        prepare(&y, b[i].action);
        const tide_tui_result by_key = tide_tui_press(&x.app->st, &x.app->scene, b[i].keys[0]);
        const tide_tui_result by_name = tide_tui_command(&y.app->st, &y.app->scene, b[i].name);
        y.app->st.a = x.app->st.a; // the only things that may differ
        y.app->st.b = x.app->st.b;
        make_plain(&x.app->st);
        make_plain(&y.app->st);
        if (memcmp(&x.app->st, &y.app->st, sizeof x.app->st) != 0) fail_msg(":%s is not what its key is", b[i].name);
        assert_int_equal(by_key.flags, by_name.flags);
        assert_int_equal(by_key.effect, by_name.effect);
        view_close(&x);
        view_close(&y);
    }
}

static void keys_that_mean_nothing_change_nothing(void **state) {
    (void)state;
    view v;
    prepare(&v, TIDE_TUI_NOTHING);
    static const uint32_t keys[] = {'Y', '%', '&', 0x1F600, TIDE_TUI_KEY_F12, TIDE_TUI_KEY_DELETE, 1};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        tide_tui_state before = v.app->st;
        const tide_tui_result r = tide_tui_press(&v.app->st, &v.app->scene, keys[i]);
        before.seq = v.app->st.seq;
        before.click_x = before.click_y = -1;
        assert_memory_equal(&before, &v.app->st, sizeof before);
        assert_int_equal(r.flags & TIDE_TUI_HANDLED, 0);
    }
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_does_something),
        cmocka_unit_test(every_name_does_something),
        cmocka_unit_test(a_name_does_what_its_key_does),
        cmocka_unit_test(keys_that_mean_nothing_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
