// SPDX-License-Identifier: MIT
//
// The table of keys: no key bound twice, every action with a name, labels that lead back to their keys.
#include "tests/tide_test.h"

#include "tui/state/keys.h"
#include "tui/tui.h"

static void no_key_is_bound_twice(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (size_t i = 0; i < n * TIDE_TUI_MAX_KEYS; i++) {
        const uint32_t key = b[i / TIDE_TUI_MAX_KEYS].keys[i % TIDE_TUI_MAX_KEYS];
        if (key == 0) continue;
        assert_int_equal(tide_tui_action_of(key), b[i / TIDE_TUI_MAX_KEYS].action);
        for (size_t k = 0; k < i; k++) {
            char label[16];
            if (b[k / TIDE_TUI_MAX_KEYS].keys[k % TIDE_TUI_MAX_KEYS] != key) continue;
            fail_msg("%s is bound to %s and to %s", tide_tui_key_label(key, label, sizeof label),
                     b[k / TIDE_TUI_MAX_KEYS].name, b[i / TIDE_TUI_MAX_KEYS].name);
        }
    }
}

static void every_action_has_a_name_and_says_what_it_does(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    assert_int_equal(n, TIDE_TUI_N_ACTIONS - 1);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(b[i].action, i + 1);
        assert_true(strlen(b[i].name) > 1);
        assert_true(strlen(b[i].what) > 3);
        assert_true(b[i].group < TIDE_TUI_N_KEY_GROUPS);
        assert_int_equal(tide_tui_action_named(b[i].name), b[i].action);
        assert_ptr_equal(tide_tui_binding_of(b[i].action), &b[i]);
        assert_null(strchr(b[i].name, ' '));
        assert_false(b[i].name[0] >= '0' && b[i].name[0] <= '9'); // numbers go to a moment
    }
    assert_int_equal(tide_tui_action_named("no-such"), TIDE_TUI_NOTHING);
    assert_int_equal(tide_tui_action_of('Y'), TIDE_TUI_NOTHING);
    assert_int_equal(tide_tui_action_of(0), TIDE_TUI_NOTHING);
    assert_null(tide_tui_binding_of(TIDE_TUI_NOTHING));
}

static void the_keys_of_the_specification(void **state) {
    (void)state;
    static const struct {
        const char *label;
        tide_tui_action action;
    } want[] = {
        {"h", TIDE_TUI_TIME_LEFT},
        {"j", TIDE_TUI_ROW_DOWN},
        {"k", TIDE_TUI_ROW_UP},
        {"l", TIDE_TUI_TIME_RIGHT},
        {"H", TIDE_TUI_PAN_LEFT},
        {"S-Right", TIDE_TUI_PAN_RIGHT},
        {"w", TIDE_TUI_ZOOM_IN},
        {"s", TIDE_TUI_ZOOM_OUT},
        {"a", TIDE_TUI_PAN_LEFT},
        {"d", TIDE_TUI_PAN_RIGHT},
        {"+", TIDE_TUI_ZOOM_IN},
        {"-", TIDE_TUI_ZOOM_OUT},
        {"0", TIDE_TUI_WHOLE},
        {"=", TIDE_TUI_WHOLE},
        {"f", TIDE_TUI_FIT},
        {"Tab", TIDE_TUI_NEXT_PANE},
        {"1", TIDE_TUI_VIEW_1},
        {"5", TIDE_TUI_VIEW_5},
        {"p", TIDE_TUI_PEAK},
        {"P", TIDE_TUI_PREVIOUS_PEAK},
        {",", TIDE_TUI_PREVIOUS_ITEM},
        {".", TIDE_TUI_NEXT_ITEM},
        {"[", TIDE_TUI_PREVIOUS_CHANGE},
        {"]", TIDE_TUI_NEXT_CHANGE},
        {"/", TIDE_TUI_SEARCH},
        {"n", TIDE_TUI_NEXT_MATCH},
        {"N", TIDE_TUI_PREVIOUS_MATCH},
        {"\\", TIDE_TUI_FILTER},
        {"o", TIDE_TUI_SORT},
        {"v", TIDE_TUI_RANGE},
        {"m", TIDE_TUI_MARK},
        {"'", TIDE_TUI_JUMP},
        {"A", TIDE_TUI_SET_A},
        {"B", TIDE_TUI_SET_B},
        {"c", TIDE_TUI_VIEW_5},
        {"Space", TIDE_TUI_PAUSE},
        {"e", TIDE_TUI_VIEW_3},
        {"y", TIDE_TUI_COPY},
        {"x", TIDE_TUI_EXPORT},
        {":", TIDE_TUI_COMMAND},
        {"?", TIDE_TUI_HELP},
        {"F1", TIDE_TUI_HELP},
        {"F2", TIDE_TUI_SETUP},
        {"F3", TIDE_TUI_SEARCH},
        {"F4", TIDE_TUI_FILTER},
        {"F6", TIDE_TUI_SORT},
        {"F10", TIDE_TUI_QUIT},
        {"q", TIDE_TUI_QUIT},
        {"^L", TIDE_TUI_REDRAW},
        {"M", TIDE_TUI_MOUSE},
        {"g", TIDE_TUI_GOTO},
        {"Enter", TIDE_TUI_OPEN},
        {"Esc", TIDE_TUI_BACK},
        {"*", TIDE_TUI_ALIKE},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const tide_tui_action got = tide_tui_action_of(tide_tui_key_named(want[i].label));
        if (got != want[i].action) fail_msg("%s is action %d", want[i].label, (int)got);
    }
}

static void labels_lead_back_to_their_keys(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    char label[16];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < TIDE_TUI_MAX_KEYS && b[i].keys[k] != 0; k++) {
            assert_int_equal(tide_tui_key_named(tide_tui_key_label(b[i].keys[k], label, sizeof label)), b[i].keys[k]);
        }
    }
    assert_string_equal(tide_tui_key_label(TIDE_TUI_KEY_F12, label, sizeof label), "F12");
    assert_string_equal(tide_tui_key_label(0xE9, label, sizeof label), "\xC3\xA9");
    assert_int_equal(tide_tui_key_named("Leftish"), 0);
    assert_int_equal(tide_tui_key_named(""), 0);
}

static void printed_table_has_everything(void **state) {
    (void)state;
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    tide_text text = {0}, troff = {0};
    tide_tui_print_keys(false, &text);
    tide_tui_print_keys(true, &troff);
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, ":%s", b[i].name);
        assert_text_has(tide_text_str(&text), name);
        assert_text_has(tide_text_str(&text), b[i].what);
    }
    assert_text_has(tide_text_str(&troff), "\\fBEnd G >\\fR  \\fB:last\\fR");
    assert_text_has(tide_text_str(&troff), "\\e F4");
    // A line that begins with a dot or a quote is a request of troff: only its own may.
    for (const char *at = tide_text_str(&troff); *at != 0; at += strcspn(at, "\n") + 1) {
        if (*at == '.') assert_true(strncmp(at, ".TP\n", 4) == 0 || strncmp(at, ".SS ", 4) == 0);
        assert_int_not_equal(*at, '\'');
    }
    tide_text_deinit(&text);
    tide_text_deinit(&troff);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_bound_twice),
        cmocka_unit_test(every_action_has_a_name_and_says_what_it_does),
        cmocka_unit_test(the_keys_of_the_specification),
        cmocka_unit_test(labels_lead_back_to_their_keys),
        cmocka_unit_test(printed_table_has_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
