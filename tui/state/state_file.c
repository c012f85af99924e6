// SPDX-License-Identifier: MIT
//
// Writing the state, and reading it: every value is checked before any is used. See state_file.h.
#include "tui/state/state_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/json_out.h"
#include "core/base/output.h"
#include "core/base/utf8.h"

// ---- writing ----

/// Names may have bytes that are not UTF-8, which JSON cannot have: such a text is written as "".
static void add_text(tide_json_out *j, const char *key, const char *text) {
    uint32_t cp = 0;
    for (const char *p = text; cp != TIDE_UTF8_BAD && *p != '\0';) p += tide_utf8_decode(p, &cp);
    tide_json_text(j, key, cp != TIDE_UTF8_BAD ? text : "");
}

static void add_axis(tide_json_out *j, const tide_subject_facts *f) {
    tide_json_open(j, "axis", '{');
    tide_json_text(j, "unit", f->axis == TIDE_AXIS_STEPS ? "steps" : "ns");
    tide_json_i64(j, "begin", f->begin);
    tide_json_i64(j, "end", f->end);
    tide_json_close(j, '}');
}

static void add_moment(tide_json_out *j, tide_moment at) {
    tide_json_i64(j, "t", at.t);
    tide_json_i64(j, "event", (int64_t)at.event);
}

static void add_marks(tide_json_out *j, const tide_tui_state *st) {
    tide_json_open(j, "marks", '[');
    for (size_t i = 0; i < st->n_marks; i++) {
        const tide_tui_mark *m = &st->marks[i];
        const char name[2] = {m->name, '\0'};
        tide_json_open(j, NULL, '{');
        add_moment(j, m->at);
        tide_json_text(j, "name", name);
        add_text(j, "text", m->text);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void add_position(tide_json_out *j, const tide_tui_state *st) {
    tide_json_open(j, "window", '{');
    tide_json_i64(j, "begin", st->window.begin);
    tide_json_i64(j, "end", st->window.end);
    tide_json_close(j, '}');
    tide_json_open(j, "cursor", '{');
    add_moment(j, (tide_moment){st->cursor, st->cursor_event});
    tide_json_close(j, '}');
}

static void write_document(const tide_tui_state *st, tide_text *out) {
    const uint64_t capacity = st->capacity_bytes <= INT64_MAX ? st->capacity_bytes : INT64_MAX;
    tide_json_out doc = {.out = out, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", TIDE_TUI_STATE_SCHEMA);
    tide_json_i64(j, "version", TIDE_TUI_STATE_VERSION);
    add_axis(j, tide_subject_get_facts(st->a));
    tide_json_text(j, "preset", tide_tui_preset_name(st->preset));
    tide_json_text(j, "focus", tide_tui_pane_name(st->focus));
    add_position(j, st);
    tide_json_text(j, "kind", st->curve_kind < 0 ? NULL : tide_memory_kind_name((tide_memory_kind)st->curve_kind));
    tide_json_text(j, "sort", tide_row_sort_name(st->sort));
    tide_json_bool(j, "reverse", st->reverse);
    tide_json_text(j, "group", st->group_chosen ? tide_row_group_name(st->group) : NULL);
    tide_json_bool(j, "hides_persistent", st->hides_persistent);
    tide_json_open(j, "filters", '[');
    for (size_t i = 0; i < st->n_filters; i++) add_text(j, NULL, st->filters[i]);
    tide_json_close(j, ']');
    tide_json_bool(j, "filters_off", st->filters_off);
    add_marks(j, st);
    add_text(j, "search", st->search);
    tide_json_u64(j, "capacity_bytes", capacity);
    tide_json_bool(j, "mouse", st->mouse);
    tide_json_close(j, '}');
}

tide_status tide_tui_make_folders(const char *path, tide_error *err) {
    char *folder;
    TIDE_TRY(TIDE_COPY_TEXT(&folder, path, err, "for a path"));
    tide_status st = TIDE_OK;
    for (char *p = strchr(folder + 1, '/'); p != NULL && st == TIDE_OK; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot make the folder '%s': %s", folder, strerror(errno));
        *p = '/';
    }
    tide_host_free(folder);
    return st;
}

tide_status tide_tui_state_save(const tide_tui_state *st, const char *path, tide_error *err) {
    tide_text text = {0};
    write_document(st, &text);
    tide_status got = text.failed ? TIDE_NO_MEMORY(err, "for the state of the view") : tide_tui_make_folders(path, err);
    if (got == TIDE_OK) got = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return got;
}

tide_status tide_tui_state_forget(const char *path, tide_error *err) {
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot remove '%s': %s", path, strerror(errno));
}

// ---- reading ----

enum { MAX_STATE_BYTES = 1 << 20 };

/// A document that is being read; keeps the first key whose value is wrong.
typedef struct reader {
    json_t *doc;
    const char *wrong; ///< key; NULL: nothing
} reader;

static json_t *get(reader *r, const char *key, bool is_right_type(const json_t *v)) {
    json_t *v = json_object_get(r->doc, key);
    if ((v == NULL || !is_right_type(v)) && r->wrong == NULL) r->wrong = key;
    return r->wrong == NULL ? v : NULL;
}

static bool is_text(const json_t *v) { return json_is_string(v); }
static bool is_flag(const json_t *v) { return json_is_boolean(v); }
static bool is_number(const json_t *v) { return json_is_integer(v); }
static bool is_list(const json_t *v) { return json_is_array(v); }
static bool is_object(const json_t *v) { return json_is_object(v); }
static bool is_text_or_null(const json_t *v) { return json_is_string(v) || json_is_null(v); }

static bool get_flag(reader *r, const char *key) {
    const json_t *v = get(r, key, is_flag);
    return v != NULL && json_is_true(v);
}

static int64_t get_number(reader *r, const char *key) {
    const json_t *v = get(r, key, is_number);
    return v != NULL ? json_integer_value(v) : 0;
}

/// A text that fits; else it is wrong.
static void get_text(reader *r, const char *key, char *buf, size_t room) {
    const json_t *v = get(r, key, is_text);
    buf[0] = '\0';
    if (v == NULL) return;
    if (json_string_length(v) >= room)
        r->wrong = key;
    else
        memcpy(buf, json_string_value(v), json_string_length(v) + 1);
}

/// Number of a word; `missing` for null.
static int get_word(reader *r, const char *key, int n, const char *(*name_of)(int i), int missing) {
    const json_t *v = get(r, key, is_text_or_null);
    if (v == NULL || (json_is_null(v) && missing != INT32_MIN)) return missing;
    for (int i = 0; json_is_string(v) && i < n; i++) {
        if (strcmp(json_string_value(v), name_of(i)) == 0) return i;
    }
    if (r->wrong == NULL) r->wrong = key;
    return missing;
}

static const char *preset_name(int i) { return tide_tui_preset_name((tide_tui_preset)i); }
static const char *pane_name(int i) { return tide_tui_pane_name((tide_tui_pane)i); }
static const char *sort_name(int i) { return tide_row_sort_name((tide_row_sort)i); }
static const char *group_name(int i) { return tide_row_group_name((tide_row_group)i); }
static const char *kind_name(int i) { return tide_memory_kind_name((tide_memory_kind)i); }

static tide_moment moment_of(reader *r, const json_t *object) {
    reader in = {(json_t *)(uintptr_t)object, NULL};
    const tide_moment at = {get_number(&in, "t"), (uint64_t)get_number(&in, "event")};
    if (in.wrong != NULL && r->wrong == NULL) r->wrong = in.wrong;
    return at;
}

static void read_marks(reader *r, tide_tui_state *st) {
    const json_t *list = get(r, "marks", is_list);
    const size_t n = list != NULL ? json_array_size(list) : 0;
    if (n > TIDE_TUI_MAX_MARKS) r->wrong = "marks";
    for (size_t i = 0; r->wrong == NULL && i < n; i++) {
        reader in = {json_array_get(list, i), NULL};
        tide_tui_mark *m = &st->marks[i];
        char name[2];
        m->at = moment_of(r, in.doc);
        get_text(&in, "name", name, sizeof name);
        get_text(&in, "text", m->text, sizeof m->text);
        m->name = name[0];
        if (in.wrong != NULL || m->name < 'a' || m->name > 'z') r->wrong = "marks";
    }
    if (r->wrong == NULL) st->n_marks = n;
}

/// A filter that cannot be parsed would be an error at every frame.
static void read_filters(reader *r, tide_tui_state *st) {
    const json_t *list = get(r, "filters", is_list);
    const size_t n = list != NULL ? json_array_size(list) : 0;
    if (n > TIDE_TUI_MAX_FILTERS) r->wrong = "filters";
    for (size_t i = 0; r->wrong == NULL && i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        tide_filter *filter = NULL;
        const bool good = text != NULL && strlen(text) < sizeof st->filters[i] &&
                          tide_filter_parse(text, tide_subject_get_facts(st->a)->axis, &filter, NULL) == TIDE_OK;
        if (good)
            memcpy(st->filters[i], text, strlen(text) + 1);
        else
            r->wrong = "filters";
        tide_filter_destroy(filter);
    }
    if (r->wrong == NULL) st->n_filters = n;
}

/// Whether moments of the document are moments of this axis.
static bool is_same_axis(reader *r, const tide_subject_facts *f) {
    reader in = {get(r, "axis", is_object), NULL};
    if (in.doc == NULL) return false;
    char unit[8];
    get_text(&in, "unit", unit, sizeof unit);
    const int64_t begin = get_number(&in, "begin"), end = get_number(&in, "end");
    if (in.wrong != NULL) r->wrong = "axis";
    const bool same_unit = strcmp(unit, f->axis == TIDE_AXIS_STEPS ? "steps" : "ns") == 0;
    return same_unit && begin == f->begin && (end == f->end || f->is_recording);
}

static void read_moments(reader *r, tide_tui_state *st) {
    reader window = {get(r, "window", is_object), NULL};
    const json_t *cursor = get(r, "cursor", is_object);
    if (window.doc == NULL || cursor == NULL) return;
    st->window = (tide_tui_window){get_number(&window, "begin"), get_number(&window, "end")};
    if (window.wrong != NULL || st->window.begin >= st->window.end) r->wrong = "window";
    const tide_moment at = moment_of(r, cursor);
    st->cursor = at.t;
    st->cursor_event = at.event;
    read_marks(r, st);
}

static void read_view(reader *r, tide_tui_state *st) {
    st->preset = (tide_tui_preset)get_word(r, "preset", TIDE_TUI_N_PRESETS, preset_name, INT32_MIN);
    st->focus = (tide_tui_pane)get_word(r, "focus", TIDE_TUI_N_PANES, pane_name, INT32_MIN);
    st->curve_kind = get_word(r, "kind", TIDE_N_KINDS, kind_name, -1);
    st->sort = (tide_row_sort)get_word(r, "sort", TIDE_N_ROW_SORTS, sort_name, INT32_MIN);
    const int group = get_word(r, "group", TIDE_N_ROW_GROUPS, group_name, -1);
    st->group_chosen = group >= 0;
    if (group >= 0) st->group = (tide_row_group)group;
    st->reverse = get_flag(r, "reverse");
    st->hides_persistent = get_flag(r, "hides_persistent");
    st->filters_off = get_flag(r, "filters_off");
    st->mouse = get_flag(r, "mouse");
    get_text(r, "search", st->search, sizeof st->search);
    const int64_t capacity = get_number(r, "capacity_bytes");
    if (capacity < 0) r->wrong = "capacity_bytes";
    // The command line goes before the file.
    else if (st->capacity_bytes == 0)
        st->capacity_bytes = (uint64_t)capacity;
    read_filters(r, st);
}

static tide_status refuse(const char *path, const char *what, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot use the saved view '%s': %s", path, what);
    tide_error_hint(err, ":reset forgets it");
    return st;
}

static tide_status read_document(json_t *doc, tide_tui_state *st, const char *path, tide_error *err) {
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    if (schema == NULL || strcmp(schema, TIDE_TUI_STATE_SCHEMA) != 0) return refuse(path, "it is something else", err);
    if (json_integer_value(json_object_get(doc, "version")) != TIDE_TUI_STATE_VERSION)
        return refuse(path, "it is of another version", err);
    tide_tui_state *copy;
    TIDE_TRY(TIDE_NEW(&copy, 1, err, "for the state of the view"));
    *copy = *st;
    reader r = {doc, NULL};
    read_view(&r, copy);
    if (is_same_axis(&r, tide_subject_get_facts(st->a))) read_moments(&r, copy);
    tide_status got = TIDE_OK;
    if (r.wrong != NULL) {
        char what[64];
        snprintf(what, sizeof what, "\"%s\" is damaged", r.wrong);
        got = refuse(path, what, err);
    } else {
        *st = *copy;
        st->rows_wanted++;
        tide_tui_state_settle(st);
    }
    tide_host_free(copy);
    return got;
}

tide_status tide_tui_state_load(tide_tui_state *st, const char *path, bool *is_there, tide_error *err) {
    const bool exists = access(path, F_OK) == 0;
    if (is_there != NULL) *is_there = exists;
    if (!exists) return TIDE_OK;
    char *data = NULL;
    size_t len = 0;
    TIDE_TRY(tide_read_file(path, MAX_STATE_BYTES, &data, &len, err));
    json_error_t why;
    json_t *doc = tide_json_load(data, len, JSON_REJECT_DUPLICATES, &why);
    tide_host_free(data);
    if (doc == NULL && json_error_code(&why) == json_error_out_of_memory)
        return TIDE_NO_MEMORY(err, "to read '%s'", path);
    if (!json_is_object(doc)) {
        json_decref(doc);
        return refuse(path, "it is no JSON document", err);
    }
    const tide_status got = read_document(doc, st, path, err);
    json_decref(doc);
    return got;
}
