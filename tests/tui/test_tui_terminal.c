// SPDX-License-Identifier: MIT
//
// What the terminal says and is told, without one: mouse reports, the clipboard's control string; and the effects that
// leave the view: plans, SQL, files, the batch line.
#include "core/base/log.h"
#include "tests/tui/view_fixture.h"
#include "tui/app_internal.h"
#include "tui/term/clipboard.h"
#include "tui/term/terminal.h"

static void reports_of_a_mouse(void **state) {
    (void)state;
    static const struct {
        const char *text;
        tide_tui_mouse want;
    } good[] = {
        {"0;1;1M", {.kind = TIDE_TUI_MOUSE_PRESS}},
        {"2;300;41M", {.kind = TIDE_TUI_MOUSE_PRESS, .button = 2, .x = 299, .y = 40}},
        {"0;5;6m", {.kind = TIDE_TUI_MOUSE_RELEASE, .x = 4, .y = 5}},
        {"32;5;6M", {.kind = TIDE_TUI_MOUSE_DRAG, .x = 4, .y = 5}},
        {"64;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_UP, .x = 4, .y = 5}},
        {"65;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_DOWN, .x = 4, .y = 5}},
        {"66;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_LEFT, .x = 4, .y = 5}},
        {"67;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_RIGHT, .x = 4, .y = 5}},
        {"68;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_UP, .x = 4, .y = 5, .shift = true}},
        {"81;5;6M", {.kind = TIDE_TUI_MOUSE_WHEEL_DOWN, .x = 4, .y = 5, .ctrl = true}},
        {"8;5;6M", {.kind = TIDE_TUI_MOUSE_PRESS, .x = 4, .y = 5, .alt = true}},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        tide_tui_mouse got = {0};
        assert_true(tide_tui_mouse_parse(good[i].text, &got));
        assert_int_equal(got.kind, good[i].want.kind);
        assert_int_equal(got.button, good[i].want.button);
        assert_int_equal(got.x, good[i].want.x);
        assert_int_equal(got.y, good[i].want.y);
        assert_int_equal(got.shift, good[i].want.shift);
        assert_int_equal(got.ctrl, good[i].want.ctrl);
        assert_int_equal(got.alt, good[i].want.alt);
    }
    static const char *const bad[] = {
        "",        "0;1M",    "0;1;1",    "0;1;1X",  "0;0;1M",  "0;1;0M", "a;1;1M", "0;1;1MM",
        "0;-1;1M", "35;5;6M", "128;5;6M", " 0;1;1M", "0;1;1;M", "0;;1M",  ";1;1M",  "99999999999999999999;1;1M"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_tui_mouse got;
        if (tide_tui_mouse_parse(bad[i], &got)) fail_msg("'%s' was taken", bad[i]);
    }
}

static void the_clipboard_by_osc_52(void **state) {
    (void)state;
    static const struct {
        const char *text, *term;
        bool tmux;
        const char *want; ///< NULL: nothing is sent
    } rows[] = {
        {"", "xterm-256color", false, "\033]52;c;\a"},
        {"a", "xterm-256color", false, "\033]52;c;YQ==\a"},
        {"ab", "xterm", false, "\033]52;c;YWI=\a"},
        {"abc", "foot", false, "\033]52;c;YWJj\a"},
        {"\xC3\xBF\xC3\xBF!", "xterm", false, "\033]52;c;w7/DvyE=\a"},
        {"a", "tmux-256color", true, "\033]52;c;YQ==\a\033Ptmux;\033\033]52;c;YQ==\a\033\\"},
        {"a", "screen-256color", true, "\033]52;c;YQ==\a\033Ptmux;\033\033]52;c;YQ==\a\033\\"},
        {"a", "screen", false, "\033P\033]52;c;YQ==\a\033\\"},
        {"a", "linux", false, NULL},
        {"a", "vt100", false, NULL},
        {"a", NULL, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_text out = {0};
        assert_int_equal(tide_tui_osc52(rows[i].text, rows[i].term, rows[i].tmux, &out), rows[i].want != NULL);
        assert_string_equal(tide_text_str(&out), rows[i].want != NULL ? rows[i].want : "");
        tide_text_deinit(&out);
    }
    char *large = tide_host_alloc(TIDE_TUI_MAX_OSC52 + 1);
    memset(large, 'x', TIDE_TUI_MAX_OSC52);
    large[TIDE_TUI_MAX_OSC52] = '\0';
    tide_text out = {0};
    assert_false(tide_tui_osc52(large, "xterm", false, &out));
    assert_int_equal(out.len, 0);
    tide_host_free(large);
}

static void take_bytes(void *ctx, const char *bytes, size_t n) { tide_text_add_n(ctx, bytes, n); }

static void copying_goes_to_the_terminal_and_to_a_file(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    setenv("XDG_STATE_HOME", dir.path, 1);
    setenv("TERM", "xterm-256color", 1);
    unsetenv("TMUX");
    view v;
    view_open_small(&v, 100, 30);
    tide_text sent = {0}, want = {0};
    v.app->to_terminal = take_bytes;
    v.app->terminal = &sent;
    view_keys(&v, "y");
    assert_non_null(strstr(view_message(&v), "copied"));
    char path[600], *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    snprintf(path, sizeof path, "%s/tidemark/copied.txt", dir.path);
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_true(len > 0);
    assert_true(tide_tui_osc52(data, "xterm", false, &want));
    assert_string_equal(tide_text_str(&sent), tide_text_str(&want));
    tide_host_free(data);
    tide_text_deinit(&sent);
    tide_text_deinit(&want);
    view_close(&v);
    unlink(path);
    snprintf(path, sizeof path, "%s/tidemark", dir.path);
    rmdir(path);
    tmp_dir_remove(&dir);
}

// ---- what-if ----

static void edits_make_a_plan_that_is_b(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[600], line[700];
    snprintf(path, sizeof path, "%s/p.json", dir.path);
    view v;
    view_open_small(&v, 120, 40);
    view_do(&v, "edit half conv2_out");
    assert_true(v.app->st.b_is_whatif);
    assert_int_equal(v.app->st.preset, TIDE_TUI_PRESET_COMPARISON);
    assert_non_null(v.app->scene.diff);
    const uint64_t before = tide_subject_get_facts(v.a)->plan_bytes;
    const uint64_t after = tide_subject_get_facts(v.app->st.b)->plan_bytes;
    assert_true(after < before);
    assert_non_null(strstr(view_message(&v), "less"));
    // An edit that cannot be made is taken back, with why; the plan stays.
    view_do(&v, "edit half no_such_tensor");
    assert_true(v.app->st.message_is_error);
    assert_non_null(strstr(view_message(&v), "no_such_tensor"));
    assert_int_equal(v.app->st.n_edits, 1);
    assert_int_equal(tide_subject_get_facts(v.app->st.b)->plan_bytes, after);
    // Half a tensor is no plan that a run can follow, and that is said.
    snprintf(line, sizeof line, "save-plan %s", path);
    view_do(&v, line);
    assert_non_null(strstr(view_message(&v), "no run can follow it: 'half conv2_out'"));
    view_keys(&v, "u");
    assert_null(v.app->st.b);
    assert_false(v.app->st.b_is_whatif);
    view_do(&v, "edit align 128");
    view_do(&v, line);
    assert_non_null(strstr(view_message(&v), "run --plan takes it"));
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_plan_from_json(data, len, path, NULL, &plan, &err), &err);
    assert_int_equal(plan->align_bytes, 128);
    assert_int_equal(plan->bytes, tide_subject_get_facts(v.app->st.b)->plan_bytes);
    tide_memory_plan_destroy(plan);
    tide_host_free(data);
    unlink(path);
    view_close(&v);
    tmp_dir_remove(&dir);
}

static void two_moments_and_back_to_the_plan(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    view_do(&v, "edit align 128");
    tide_subject *b = v.app->st.b;
    view_keys(&v, "1A");
    view_keys(&v, "lllllB5");
    assert_true(v.app->st.compares_moments);
    view_keys(&v, "\033");
    view_keys(&v, "\033");
    assert_false(v.app->st.compares_moments);
    assert_ptr_equal(v.app->st.b, b);
    assert_true(v.app->st.b_is_whatif);
    view_close(&v);
}

// ---- SQL, files, the batch line ----

static void sql_answers_in_an_overlay(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[512];
    snprintf(path, sizeof path, "%s/t.db", dir.path);
    demo_record(path, 64);
    view v;
    view_open(&v, subject_of_trace(path, 0), NULL, 100, 30);
    view_do(&v, "sql SELECT id, model, mode FROM run");
    assert_int_equal(v.app->st.overlay, TIDE_TUI_OVERLAY_MESSAGE);
    assert_string_equal(v.app->scene.overlay_text, "SELECT id, model, mode FROM run\n\n"
                                                   "id  model  mode\n"
                                                   "1   demo   naive\n"
                                                   "2   demo   planned\n");
    view_keys(&v, "\033");
    view_do(&v, "sql SELECT nobody FROM run");
    assert_true(v.app->st.message_is_error);
    if (strstr(view_message(&v), "no such column: nobody") == NULL) fail_msg("%s", view_message(&v));
    view_do(&v, "sql");
    assert_int_equal(v.app->st.overlay, TIDE_TUI_OVERLAY_SQL);
    assert_non_null(strstr(v.app->scene.overlay_text, "SELECT"));
    view_close(&v);
    view_open_small(&v, 100, 30);
    view_do(&v, "sql SELECT 1");
    assert_true(v.app->st.message_is_error);
    view_close(&v);
    tmp_dir_remove(&dir);
}

static void the_frame_can_be_written(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[600], line[700], *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    tide_text want = {0};
    snprintf(path, sizeof path, "%s/view.txt", dir.path);
    snprintf(line, sizeof line, "export %s", path);
    view v;
    view_open_small(&v, 100, 30);
    assert_tide_ok(tide_tui_app_frame(v.app, &err), &err);
    tide_tui_grid_to_text(&v.app->grid, &want);
    view_do(&v, line);
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_string_equal(data, tide_text_str(&want));
    tide_host_free(data);
    tide_text_deinit(&want);
    unlink(path);
    view_do(&v, "export picture.gif");
    assert_true(v.app->st.message_is_error);
    view_do(&v, "export /no/such/folder/x.txt");
    assert_true(v.app->st.message_is_error);
    view_close(&v);
    tmp_dir_remove(&dir);
}

/// Exports a file of that ending into `out`; released by the caller.
static char *exported(view *v, const tmp_dir *dir, const char *ending) {
    char path[600], line[700], *data = NULL;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    snprintf(path, sizeof path, "%s/view%s", dir->path, ending);
    snprintf(line, sizeof line, "export %s", path);
    assert_tide_ok(tide_tui_app_frame(v->app, &err), &err);
    view_do(v, line);
    if (v->app->st.message_is_error) fail_msg("%s: %s", line, view_message(v));
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    unlink(path);
    return data;
}

static size_t count_of(const char *text, const char *word) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word)) n++;
    return n;
}

/// A file from inside has what the view shows: its filters, its order, its pane.
static void exports_are_of_what_is_shown(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    view v;
    view_open_small(&v, 100, 30);
    char *all = exported(&v, &dir, ".csv");
    assert_int_equal(count_of(all, "\r\n"), 1 + 11);
    view_do(&v, "filter conv");
    view_do(&v, "sort size");
    char *some = exported(&v, &dir, ".csv"), *json = exported(&v, &dir, ".json");
    assert_int_equal(count_of(some, "\r\n"), 1 + 5);
    assert_non_null(strstr(some, "\r\nconv2_out,Conv_2,")); // the largest first
    assert_null(strstr(some, "pool3_out"));
    assert_non_null(strstr(view_message(&v), "what the pane 'gantt' shows"));
    assert_non_null(strstr(json, "\"schema\": \"tidemark.tui.gantt\""));
    assert_non_null(strstr(json, "\"hidden_items\": 6"));
    assert_null(strstr(json, "pool3_out"));
    view_keys(&v, "3");
    char *why = exported(&v, &dir, ".json");
    assert_non_null(strstr(why, "\"schema\": \"tidemark.tui.explain\""));
    tide_host_free(all);
    tide_host_free(some);
    tide_host_free(json);
    tide_host_free(why);
    view_close(&v);
    tmp_dir_remove(&dir);
}

static void the_frame_is_a_picture(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    view v;
    view_open_small(&v, 100, 30);
    view_do(&v, "filter conv");
    v.app->glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BLOCK, false);
    char *svg = exported(&v, &dir, ".svg");
    assert_int_equal(count_of(svg, "<svg "), 1);
    assert_int_equal(count_of(svg, "</svg>\n"), 1);
    assert_int_equal(count_of(svg, "<text "), count_of(svg, "</text>"));
    assert_non_null(strstr(svg, "width=\"800\" height=\"480\""));
    assert_non_null(strstr(svg, "conv2_out"));
    assert_null(strstr(svg, "pool3_out"));    // the filter hides it
    assert_null(strstr(svg, "\xE2\x96\x88")); // full blocks are shapes
    tide_host_free(svg);
    view_close(&v);
    tmp_dir_remove(&dir);
}

static tide_status take_path(void *ctx, tide_subject *a, tide_subject *b, const char *path, tide_error *err) {
    (void)b;
    (void)err;
    assert_non_null(a);
    snprintf(ctx, 64, "%s", path);
    return TIDE_OK;
}

/// A page is of everything, and that is said where something is hidden.
static void a_page_says_that_it_is_of_everything(void **state) {
    (void)state;
    char path[64] = "";
    view v;
    view_open_small(&v, 100, 30);
    view_do(&v, "export x.html");
    assert_true(v.app->st.message_is_error); // this session has no export of pages
    assert_non_null(strstr(view_message(&v), ".txt, .svg, .csv or .json"));
    v.session.export_view = take_path;
    v.session.ctx = path;
    view_do(&v, "export x.html");
    assert_string_equal(path, "x.html");
    assert_string_equal(view_message(&v), "everything is written to x.html");
    view_do(&v, "filter conv");
    view_do(&v, "export y.html");
    assert_string_equal(view_message(&v), "everything, also what is filtered here, is written to y.html: the page has "
                                          "filters of its own");
    view_do(&v, "messages");
    assert_string_equal(view_message(&v), "nothing was logged");
    view_close(&v);
}

/// Lines that were logged for an action stand behind its message, whichever of the two comes first; the next action has
/// none of them.
static void a_message_tells_what_was_logged(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    view v;
    view_open_small(&v, 100, 30);
    tide_tui_messages *messages = tide_tui_messages_take();
    assert_non_null(messages);
    v.app->messages = messages;
    tide_log(TIDE_LOG_WARN, "first");
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_string_equal(view_message(&v), "first (1 logged: :messages)");
    tide_tui_say(&v.app->st, false, "B is planned"); // the answer of the worker
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_string_equal(view_message(&v), "B is planned (1 logged: :messages)");
    tide_log(TIDE_LOG_WARN, "second");
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_string_equal(view_message(&v), "B is planned (2 logged: :messages)");
    tide_log(TIDE_LOG_ERROR, "third");
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_string_equal(view_message(&v), "third (3 logged: :messages)");
    view_do(&v, "filter conv");
    tide_tui_say(&v.app->st, false, "of another action");
    assert_tide_ok(tide_tui_app_look(v.app, &err), &err);
    assert_string_equal(view_message(&v), "of another action");
    v.app->messages = NULL;
    tide_tui_messages_give_back(messages);
    view_close(&v);
}

/// The commands in the line, as the shell would hand them over, each on a line.
static void commands_of(const char *line, tide_text *out) {
    for (const char *p = line; (p = strstr(p, "--command ")) != NULL;) {
        p += strlen("--command ");
        if (out->len > 0) tide_text_add(out, "\n");
        bool quoted = false;
        for (; *p != '\0' && (quoted || *p != ' '); p++) {
            if (*p == '\'')
                quoted = !quoted;
            else if (!quoted && *p == '\\')
                tide_text_add_n(out, ++p, 1);
            else
                tide_text_add_n(out, p, 1);
        }
    }
}

static void the_batch_line_makes_the_same_view(void **state) {
    (void)state;
    static const char *const views[] = {
        "",
        "sort size\nset reverse on\nfilter size>=64KiB\nfilter !scratch\nview 1",
        "view 2\nrange 2 5\nfit\nrange\ngoto 3\nkind workspace",
        "group owner\nset persistent off\nsearch conv[0-4]\ngoto 1",
        "edit align 128\nview 3\nfilter \"it's\"",
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        view v;
        tide_error err = TIDE_ERROR_INIT;
        view_open_small(&v, 100, 32);
        tide_text lines = {0}, again = {0}, want = {0}, got = {0};
        tide_text_add(&lines, views[i]);
        for (char *p = lines.data; p != NULL && *p != '\0';) {
            const size_t n = strcspn(p, "\n");
            const bool more = p[n] == '\n';
            p[n] = '\0';
            view_do(&v, p);
            if (v.app->st.message_is_error) fail_msg("%s: %s", p, view_message(&v));
            p += n + more;
        }
        view_do(&v, "batch");
        commands_of(v.app->scene.overlay_text, &again);
        view_keys(&v, "\033");
        v.app->st.message[0] = '\0';
        assert_tide_ok(tide_tui_app_frame(v.app, &err), &err);
        tide_tui_grid_to_text(&v.app->grid, &want);
        const tide_tui_options opt = {.glyphs = TIDE_TUI_GLYPHS_ASCII, .commands = tide_text_str(&again)};
        tide_tui_app *other;
        assert_tide_ok(tide_tui_app_open(&v.session, &opt, 100, 32, false, &other, &err), &err);
        other->st.message[0] = '\0';
        assert_tide_ok(tide_tui_app_frame(other, &err), &err);
        tide_tui_grid_to_text(&other->grid, &got);
        if (strcmp(tide_text_str(&want), tide_text_str(&got)) != 0)
            fail_msg("%s\nis not what it was:\n%s\nbut:\n%s", tide_text_str(&again), tide_text_str(&want),
                     tide_text_str(&got));
        tide_tui_app_close(other);
        tide_text_deinit(&lines);
        tide_text_deinit(&again);
        tide_text_deinit(&want);
        tide_text_deinit(&got);
        view_close(&v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(reports_of_a_mouse),
        tide_unit_test(the_clipboard_by_osc_52),
        tide_unit_test(copying_goes_to_the_terminal_and_to_a_file),
        tide_unit_test(edits_make_a_plan_that_is_b),
        tide_unit_test(two_moments_and_back_to_the_plan),
        tide_unit_test(sql_answers_in_an_overlay),
        tide_unit_test(the_frame_can_be_written),
        tide_unit_test(exports_are_of_what_is_shown),
        tide_unit_test(the_frame_is_a_picture),
        tide_unit_test(a_page_says_that_it_is_of_everything),
        tide_unit_test(a_message_tells_what_was_logged),
        tide_unit_test(the_batch_line_makes_the_same_view),
    };
    return cmocka_run_group_tests_name("tui_terminal", tests, NULL, NULL);
}
