// SPDX-License-Identifier: MIT
//
// The state file: what is written is read back, what is damaged or of another version is refused and changes nothing,
// moments count for their own axis alone.
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/output.h"
#include "tests/tui/view_fixture.h"
#include "tui/state/state_file.h"

static const char *in(const tmp_dir *dir, const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir->path, name);
    return path;
}

/// A state with something in every field that is kept.
static void fill(tide_tui_state *st) {
    st->preset = TIDE_TUI_PRESET_MEMORY;
    st->focus = TIDE_TUI_PANE_MAP;
    st->window = (tide_tui_window){2, 7};
    st->cursor = 5;
    st->curve_kind = TIDE_KIND_WORKSPACE;
    st->bands_by = TIDE_BAND_BY_TENSOR;
    st->folds_weights = true;
    st->sort = TIDE_ROW_SORT_AREA;
    st->reverse = st->hides_persistent = st->filters_off = true;
    st->group = TIDE_ROW_GROUP_OWNER;
    st->group_chosen = true;
    st->orders[TIDE_TUI_LIST_LEAKS] = (tide_tui_list_order){.column = "bytes", .reverse = true};
    snprintf(st->filters[0], sizeof st->filters[0], "size>=64KiB");
    snprintf(st->filters[1], sizeof st->filters[1], "!conv4 alive@cursor");
    st->n_filters = 2;
    st->marks[0] = (tide_tui_mark){.name = 'k', .at = {3, 0}, .text = "here \"it\" began"};
    st->n_marks = 1;
    snprintf(st->search, sizeof st->search, "conv[0-9]");
    st->capacity_bytes = 1 << 20;
    st->mouse = false;
}

static void assert_same(const tide_tui_state *a, const tide_tui_state *b) {
    assert_int_equal(a->preset, b->preset);
    assert_int_equal(a->focus, b->focus);
    assert_memory_equal(&a->window, &b->window, sizeof a->window);
    assert_int_equal(a->cursor, b->cursor);
    assert_int_equal(a->curve_kind, b->curve_kind);
    assert_int_equal(a->bands_by, b->bands_by);
    assert_int_equal(a->folds_weights, b->folds_weights);
    assert_int_equal(a->sort, b->sort);
    assert_int_equal(a->reverse, b->reverse);
    assert_int_equal(a->hides_persistent, b->hides_persistent);
    assert_int_equal(a->filters_off, b->filters_off);
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->group_chosen, b->group_chosen);
    assert_int_equal(a->n_filters, b->n_filters);
    for (size_t i = 0; i < a->n_filters; i++) assert_string_equal(a->filters[i], b->filters[i]);
    assert_int_equal(a->n_marks, b->n_marks);
    for (size_t i = 0; i < a->n_marks; i++) {
        assert_int_equal(a->marks[i].name, b->marks[i].name);
        assert_int_equal(a->marks[i].at.t, b->marks[i].at.t);
        assert_int_equal(a->marks[i].at.event, b->marks[i].at.event);
        assert_string_equal(a->marks[i].text, b->marks[i].text);
    }
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) {
        assert_string_equal(a->orders[i].column, b->orders[i].column);
        assert_int_equal(a->orders[i].reverse, b->orders[i].reverse);
    }
    assert_string_equal(a->search, b->search);
    assert_int_equal(a->capacity_bytes, b->capacity_bytes);
    assert_int_equal(a->mouse, b->mouse);
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    const char *path = in(&dir, "s.json");
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st, back;
    tide_error err = TIDE_ERROR_INIT;
    bool is_there = true;
    tide_tui_state_init(&back, a, NULL);
    assert_tide_ok(tide_tui_state_load(&back, path, &is_there, &err), &err);
    assert_false(is_there);
    tide_tui_state_init(&st, a, NULL);
    fill(&st);
    assert_tide_ok(tide_tui_state_save(&st, path, &err), &err);
    assert_tide_ok(tide_tui_state_load(&back, path, &is_there, &err), &err);
    assert_true(is_there);
    assert_same(&st, &back);
    // What the command line says of the capacity counts more.
    back.capacity_bytes = 77;
    assert_tide_ok(tide_tui_state_load(&back, path, NULL, &err), &err);
    assert_int_equal(back.capacity_bytes, 77);
    assert_tide_ok(tide_tui_state_forget(path, &err), &err);
    assert_tide_ok(tide_tui_state_forget(path, &err), &err); // twice is no failure
    assert_tide_ok(tide_tui_state_load(&back, path, &is_there, &err), &err);
    assert_false(is_there);
    tide_subject_destroy(a);
    tmp_dir_remove(&dir);
}

static void moments_are_of_their_axis(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    const char *path = in(&dir, "s.json");
    tide_subject *a = subject_of_plan(small_plan(262144)), *other = subject_of_plan(random_plan(1, 30, 12));
    tide_tui_state st, back;
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_state_init(&st, a, NULL);
    fill(&st);
    assert_tide_ok(tide_tui_state_save(&st, path, &err), &err);
    tide_tui_state_init(&back, other, NULL);
    const tide_tui_window whole = back.window;
    const int64_t cursor = back.cursor;
    assert_tide_ok(tide_tui_state_load(&back, path, NULL, &err), &err);
    assert_memory_equal(&back.window, &whole, sizeof whole);
    assert_int_equal(back.cursor, cursor);
    assert_int_equal(back.n_marks, 0);
    assert_int_equal(back.sort, TIDE_ROW_SORT_AREA);
    assert_int_equal(back.n_filters, 2);
    tide_subject_destroy(a);
    tide_subject_destroy(other);
    tmp_dir_remove(&dir);
}

static void refuse(const char *path, const char *text, tide_subject *a, const char *what) {
    tide_tui_state st, before;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_write_file(path, text, strlen(text), &err), &err);
    tide_tui_state_init(&st, a, NULL);
    before = st;
    assert_int_equal(tide_tui_state_load(&st, path, NULL, &err), TIDE_ERR_BAD_INPUT);
    if (strstr(err.msg, what) == NULL) fail_msg("'%s' does not say '%s'", err.msg, what);
    assert_text_has(err.msg, "cannot use the saved view");
    assert_string_equal(err.hint, ":reset forgets it");
    assert_same(&st, &before);
}

/// Keys that files of earlier versions do not have: what they are about stays as it is.
static bool is_newer(const char *key) {
    return strcmp(key, "bands") == 0 || strcmp(key, "orders") == 0 || strcmp(key, "folds_weights") == 0;
}

/// Every key gone, and every key of another type.
static void what_is_damaged_is_refused_whole(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    const char *path = in(&dir, "s.json");
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st;
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_state_init(&st, a, NULL);
    fill(&st);
    assert_tide_ok(tide_tui_state_save(&st, path, &err), &err);
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach(doc, key, value) {
        if (strcmp(key, "schema") == 0 || strcmp(key, "version") == 0) continue;
        for (int form = 0; form < 2; form++) {
            if (form == 0 && is_newer(key)) continue;
            json_t *bad = json_copy(doc);
            if (form == 0)
                assert_int_equal(json_object_del(bad, key), 0);
            else
                assert_int_equal(json_object_set_new(bad, key, json_real(0.5)), 0);
            char *text = json_dumps(bad, 0), what[64];
            snprintf(what, sizeof what, "'%s' is %s", key, form == 0 ? "missing" : "a number with a fraction");
            refuse(path, text, a, what);
            free(text);
            json_decref(bad);
            n++;
        }
    }
    assert_int_equal(n, 2 * 16 + 3);
    json_object_set_new(doc, "filters", json_pack("[s]", "size>>1"));
    char *text = json_dumps(doc, 0);
    refuse(path, text, a, "size>>1");
    free(text);
    json_decref(doc);
    refuse(path, "{\"schema\": \"tidemark.tui-state\", \"version\": 2}", a, "version 2 of");
    refuse(path, "{\"schema\": \"tidemark.plan\", \"version\": 1}", a, "is a 'tidemark.plan'");
    refuse(path, "[]", a, "the document is a list: want an object");
    refuse(path, "", a, "not a JSON document: it is empty");
    refuse(path, "{", a, "not a JSON document");
    tide_subject_destroy(a);
    tmp_dir_remove(&dir);
}

/// One value of a good document changed: what is said of it, and where.
static void damage_is_named(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *what, *where;
    } cases[] = {
        {"preset", "\"sideways\"", "'preset' is 'sideways', which is not known here", "preset"},
        {"focus", "null", "'focus' is null: want a string", "focus"},
        {"kind", "\"Heap\"", "'kind' is 'Heap'", "kind"},
        {"filters", "[\"conv\", 7]", "filters[1] is an integer: want a string", "filters"},
        {"capacity_bytes", "-1", "'capacity_bytes' is -1: want 0 or more", "capacity_bytes"},
        {"axis", "{\"unit\": \"steps\", \"begin\": 0}", "the key 'end' is missing", "axis.end"},
        {"window", "{\"begin\": 3, \"end\": 3}", "the window ends before it begins", "window"},
        {"cursor", "{\"t\": 1.5, \"event\": 0}", "'t' is a number with a fraction", "cursor.t"},
        {"marks", "[7]", "marks[0] is an integer: want an object", "marks[0]"},
        {"marks", "[{\"t\": 1, \"event\": 0, \"name\": \"ab\", \"text\": \"\"}]", "'name' has more than 1 bytes",
         "marks[0].name"},
        {"marks", "[{\"t\": 1, \"event\": 0, \"name\": \"A\", \"text\": \"\"}]",
         "'name' is 'A': want a letter from a to z", "marks[0].name"},
    };
    tmp_dir dir;
    tmp_dir_make(&dir);
    const char *path = in(&dir, "s.json");
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st;
    tide_tui_state_init(&st, a, NULL);
    fill(&st);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        char where[600];
        assert_tide_ok(tide_tui_state_save(&st, path, &err), &err);
        json_t *doc = json_load_file(path, 0, NULL);
        json_object_set_new(doc, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(json_dump_file(doc, path, 0), 0);
        json_decref(doc);
        assert_tide_status(tide_tui_state_load(&st, path, NULL, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, cases[i].what);
        snprintf(where, sizeof where, "%s: %s", path, cases[i].where);
        assert_string_equal(err.where, where);
    }
    tide_subject_destroy(a);
    tmp_dir_remove(&dir);
}

/// Whichever allocation fails, it is said so and the state is as it was.
static void reading_without_memory(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    const char *path = in(&dir, "s.json");
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st, back, before;
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_state_init(&st, a, NULL);
    tide_tui_state_init(&back, a, NULL);
    before = back;
    fill(&st);
    assert_tide_ok(tide_tui_state_save(&st, path, &err), &err);
    tide_status got = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; got != TIDE_OK; n++) {
        assert_same(&back, &before);
        tide_host_fail_after(n);
        got = tide_tui_state_load(&back, path, NULL, &err);
        tide_host_fail_after(-1);
        if (got != TIDE_OK) assert_tide_status(got, TIDE_ERR_NOMEM);
    }
    assert_true(n > 3);
    assert_same(&back, &st);
    tide_subject_destroy(a);
    tmp_dir_remove(&dir);
}

static void folders_are_made_and_leaving_saves(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[700], folder[600];
    snprintf(folder, sizeof folder, "%s/a", dir.path);
    snprintf(path, sizeof path, "%s/b/s.json", folder);
    tide_subject *a = subject_of_plan(small_plan(262144));
    const tide_tui_session session = {.a = a};
    const tide_tui_options opt = {.state_file = path, .commands = "sort life\nmark q why"};
    const tide_tui_options again = {.state_file = path};
    tide_tui_app *app;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_open(&session, &opt, 80, 24, false, &app, &err), &err);
    assert_tide_ok(tide_tui_app_save(app, &err), &err);
    tide_tui_app_close(app);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_tide_ok(tide_tui_app_open(&session, &again, 80, 24, false, &app, &err), &err);
    assert_int_equal(app->st.sort, TIDE_ROW_SORT_LIFE);
    assert_int_equal(app->st.n_marks, 1);
    assert_string_equal(app->st.marks[0].text, "why");
    (void)tide_tui_app_line(app, "reset");
    assert_int_equal(access(path, F_OK), -1);
    tide_tui_app_close(app);
    // What was said for this once is not kept.
    const tide_tui_session rich = {.a = a, .capacity_bytes = 4096};
    const tide_tui_options quiet = {.state_file = path, .no_mouse = true};
    assert_tide_ok(tide_tui_app_open(&rich, &quiet, 80, 24, false, &app, &err), &err);
    assert_false(app->st.mouse);
    assert_int_equal(app->st.capacity_bytes, 4096);
    assert_tide_ok(tide_tui_app_save(app, &err), &err);
    tide_tui_app_close(app);
    assert_tide_ok(tide_tui_app_open(&session, &again, 80, 24, false, &app, &err), &err);
    assert_true(app->st.mouse);
    assert_int_equal(app->st.capacity_bytes, 0);
    tide_tui_app_close(app);
    // A damaged one is said in the bottom line, and the view opens.
    assert_tide_ok(tide_write_file(path, "{", 1, &err), &err);
    assert_tide_ok(tide_tui_app_open(&session, &again, 80, 24, false, &app, &err), &err);
    assert_true(app->st.message_is_error);
    assert_text_has(app->st.message, "not a JSON document");
    assert_text_has(app->st.message, "; :reset forgets it");
    tide_tui_app_close(app);
    tide_subject_destroy(a);
    unlink(path);
    snprintf(path, sizeof path, "%s/b", folder);
    rmdir(path);
    rmdir(folder);
    tmp_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_is_written_is_read_back),     tide_unit_test(moments_are_of_their_axis),
        tide_unit_test(what_is_damaged_is_refused_whole), tide_unit_test(damage_is_named),
        tide_unit_test(reading_without_memory),           tide_unit_test(folders_are_made_and_leaving_saves),
    };
    return cmocka_run_group_tests_name("tui_settings", tests, NULL, NULL);
}
