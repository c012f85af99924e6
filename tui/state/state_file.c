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

static void add_orders(tide_json_out *j, const tide_tui_state *st) {
    tide_json_open(j, "orders", '[');
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) {
        if (st->orders[i].column[0] == 0) continue;
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "list", tide_tui_list_name((tide_tui_list)i));
        tide_json_text(j, "column", st->orders[i].column);
        tide_json_bool(j, "reverse", st->orders[i].reverse);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
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
    tide_json_text(j, "bands", st->bands_by < 0 ? "off" : tide_band_by_name((tide_band_by)st->bands_by));
    tide_json_bool(j, "folds_weights", st->folds_weights);
    tide_json_text(j, "sort", tide_row_sort_name(st->sort));
    tide_json_bool(j, "reverse", st->reverse);
    tide_json_text(j, "group", st->group_chosen ? tide_row_group_name(st->group) : NULL);
    tide_json_bool(j, "hides_persistent", st->hides_persistent);
    tide_json_open(j, "filters", '[');
    for (size_t i = 0; i < st->n_filters; i++) add_text(j, NULL, st->filters[i]);
    tide_json_close(j, ']');
    tide_json_bool(j, "filters_off", st->filters_off);
    add_orders(j, st);
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

typedef tide_json_reader reader;
#define BAD TIDE_JSON_BAD

/// A text that fits into `buf`.
static tide_status get_text(reader *r, const json_t *o, const char *key, char *buf, size_t room) {
    const char *text;
    TIDE_TRY(tide_json_get_text(r, o, key, &text));
    if (strlen(text) >= room) return BAD(r, key, "'%s' has more than %zu bytes", key, room - 1);
    memcpy(buf, text, strlen(text) + 1);
    return TIDE_OK;
}

/// Number of a word.
static tide_status get_word(reader *r, const json_t *o, const char *key, int n, const char *(*name_of)(int i),
                            int *out) {
    const char *word;
    TIDE_TRY(tide_json_get_text(r, o, key, &word));
    for (*out = 0; *out < n; ++*out)
        if (strcmp(word, name_of(*out)) == 0) return TIDE_OK;
    return BAD(r, key, "'%s' is '%.32s', which is not known here", key, word);
}

/// The same, but -1 for null.
static tide_status get_word_or_null(reader *r, const json_t *o, const char *key, int n, const char *(*name_of)(int i),
                                    int *out) {
    *out = -1;
    return json_is_null(json_object_get(o, key)) ? TIDE_OK : get_word(r, o, key, n, name_of, out);
}

static const char *preset_name(int i) { return tide_tui_preset_name((tide_tui_preset)i); }
static const char *pane_name(int i) { return tide_tui_pane_name((tide_tui_pane)i); }
static const char *sort_name(int i) { return tide_row_sort_name((tide_row_sort)i); }
static const char *group_name(int i) { return tide_row_group_name((tide_row_group)i); }
static const char *bands_name(int i) { return i < TIDE_N_BAND_BYS ? tide_band_by_name((tide_band_by)i) : "off"; }
static const char *kind_name(int i) { return tide_memory_kind_name((tide_memory_kind)i); }

/// A filter that cannot be parsed would be an error at every frame.
static tide_status read_filters(reader *r, const json_t *doc, tide_tui_state *st) {
    json_t *list;
    TIDE_TRY(tide_json_get_list(r, doc, "filters", &list));
    const size_t n = json_array_size(list);
    if (n > TIDE_TUI_MAX_FILTERS) return BAD(r, "filters", "%zu filters: at most %d", n, TIDE_TUI_MAX_FILTERS);
    for (size_t i = 0; i < n; i++) {
        const char *text;
        tide_filter *filter = NULL;
        TIDE_TRY(tide_json_text_in(r, list, "filters", i, &text));
        if (strlen(text) >= sizeof st->filters[i]) return BAD(r, "filters", "filters[%zu] is too long", i);
        TIDE_TRY(tide_json_as_bad_input(r, "filters",
                                        tide_filter_parse(text, tide_subject_get_facts(st->a)->axis, &filter, r->err)));
        tide_filter_destroy(filter);
        memcpy(st->filters[i], text, strlen(text) + 1);
    }
    st->n_filters = n;
    return TIDE_OK;
}

/// What older files do not have stays as it is.
static tide_status read_shown(reader *r, const json_t *doc, tide_tui_state *st) {
    int by;
    if (json_object_get(doc, "folds_weights") != NULL)
        TIDE_TRY(tide_json_get_bool(r, doc, "folds_weights", &st->folds_weights));
    if (json_object_get(doc, "bands") == NULL) return TIDE_OK;
    TIDE_TRY(get_word(r, doc, "bands", TIDE_N_BAND_BYS + 1, bands_name, &by));
    st->bands_by = by < TIDE_N_BAND_BYS ? by : -1;
    return TIDE_OK;
}

static tide_status read_words(reader *r, const json_t *doc, tide_tui_state *st) {
    int preset, focus, sort, group;
    TIDE_TRY(get_word(r, doc, "preset", TIDE_TUI_N_PRESETS, preset_name, &preset));
    TIDE_TRY(get_word(r, doc, "focus", TIDE_TUI_N_PANES, pane_name, &focus));
    TIDE_TRY(get_word(r, doc, "sort", TIDE_N_ROW_SORTS, sort_name, &sort));
    TIDE_TRY(get_word_or_null(r, doc, "kind", TIDE_N_KINDS, kind_name, &st->curve_kind));
    TIDE_TRY(get_word_or_null(r, doc, "group", TIDE_N_ROW_GROUPS, group_name, &group));
    TIDE_TRY(read_shown(r, doc, st));
    st->preset = (tide_tui_preset)preset;
    st->focus = (tide_tui_pane)focus;
    st->sort = (tide_row_sort)sort;
    st->group_chosen = group >= 0;
    if (group >= 0) st->group = (tide_row_group)group;
    return get_text(r, doc, "search", st->search, sizeof st->search);
}

static const char *list_name(int i) { return tide_tui_list_name((tide_tui_list)i); }

/// Files from before lists had orders have none.
static tide_status read_orders(reader *r, const json_t *doc, tide_tui_state *st) {
    json_t *list, *o;
    memset(st->orders, 0, sizeof st->orders);
    if (json_object_get(doc, "orders") == NULL) return TIDE_OK;
    TIDE_TRY(tide_json_get_list(r, doc, "orders", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        int which;
        TIDE_TRY(tide_json_enter(r, list, "orders", i, &o));
        TIDE_TRY(get_word(r, o, "list", TIDE_TUI_N_LISTS, list_name, &which));
        tide_tui_list_order *order = &st->orders[which];
        TIDE_TRY(get_text(r, o, "column", order->column, sizeof order->column));
        TIDE_TRY(tide_json_get_bool(r, o, "reverse", &order->reverse));
    }
    r->at[0] = '\0';
    return TIDE_OK;
}

static tide_status read_view(reader *r, const json_t *doc, tide_tui_state *st) {
    uint64_t capacity;
    TIDE_TRY(read_words(r, doc, st));
    TIDE_TRY(tide_json_get_bool(r, doc, "reverse", &st->reverse));
    TIDE_TRY(tide_json_get_bool(r, doc, "hides_persistent", &st->hides_persistent));
    TIDE_TRY(tide_json_get_bool(r, doc, "filters_off", &st->filters_off));
    TIDE_TRY(tide_json_get_bool(r, doc, "mouse", &st->mouse));
    TIDE_TRY(read_orders(r, doc, st));
    TIDE_TRY(tide_json_get_bytes(r, doc, "capacity_bytes", &capacity));
    if (st->capacity_bytes == 0) st->capacity_bytes = capacity; // the command line goes before the file
    return read_filters(r, doc, st);
}

// ---- moments ----

/// Whether moments of the document are moments of this axis.
static tide_status compare_axis(reader *r, const json_t *doc, const tide_subject_facts *f, bool *same) {
    json_t *axis;
    const char *unit;
    int64_t begin, end;
    TIDE_TRY(tide_json_get_object(r, doc, "axis", &axis));
    const size_t outer = tide_json_go_into(r, "axis");
    TIDE_TRY(tide_json_get_text(r, axis, "unit", &unit));
    TIDE_TRY(tide_json_get_i64(r, axis, "begin", &begin));
    TIDE_TRY(tide_json_get_i64(r, axis, "end", &end));
    r->at[outer] = '\0';
    *same = strcmp(unit, f->axis == TIDE_AXIS_STEPS ? "steps" : "ns") == 0 && begin == f->begin &&
            (end == f->end || f->is_recording);
    return TIDE_OK;
}

static tide_status read_moment(reader *r, const json_t *o, int64_t *t, uint64_t *event) {
    int64_t number;
    TIDE_TRY(tide_json_get_i64(r, o, "t", t));
    TIDE_TRY(tide_json_get_i64(r, o, "event", &number));
    *event = (uint64_t)number;
    return TIDE_OK;
}

static tide_status read_marks(reader *r, const json_t *doc, tide_tui_state *st) {
    json_t *list, *o;
    TIDE_TRY(tide_json_get_list(r, doc, "marks", &list));
    const size_t n = json_array_size(list);
    if (n > TIDE_TUI_MAX_MARKS) return BAD(r, "marks", "%zu marks: at most %d", n, TIDE_TUI_MAX_MARKS);
    for (size_t i = 0; i < n; i++) {
        char name[2];
        tide_tui_mark *m = &st->marks[i];
        TIDE_TRY(tide_json_enter(r, list, "marks", i, &o));
        TIDE_TRY(read_moment(r, o, &m->at.t, &m->at.event));
        TIDE_TRY(get_text(r, o, "name", name, sizeof name));
        TIDE_TRY(get_text(r, o, "text", m->text, sizeof m->text));
        m->name = name[0];
        if (m->name < 'a' || m->name > 'z') return BAD(r, "name", "'name' is '%s': want a letter from a to z", name);
    }
    r->at[0] = '\0';
    st->n_marks = n;
    return TIDE_OK;
}

static tide_status read_moments(reader *r, const json_t *doc, tide_tui_state *st) {
    json_t *window, *cursor;
    TIDE_TRY(tide_json_get_object(r, doc, "window", &window));
    size_t outer = tide_json_go_into(r, "window");
    TIDE_TRY(tide_json_get_i64(r, window, "begin", &st->window.begin));
    TIDE_TRY(tide_json_get_i64(r, window, "end", &st->window.end));
    if (st->window.begin >= st->window.end) return BAD(r, "", "the window ends before it begins");
    r->at[outer] = '\0';
    TIDE_TRY(tide_json_get_object(r, doc, "cursor", &cursor));
    outer = tide_json_go_into(r, "cursor");
    TIDE_TRY(read_moment(r, cursor, &st->cursor, &st->cursor_event));
    r->at[outer] = '\0';
    return read_marks(r, doc, st);
}

// ---- document ----

static tide_status read_document(reader *r, const json_t *doc, tide_tui_state *st) {
    bool same_axis;
    TIDE_TRY(
        tide_json_check_schema(r, doc, TIDE_TUI_STATE_SCHEMA, TIDE_TUI_STATE_VERSION, TIDE_TUI_STATE_VERSION, NULL));
    TIDE_TRY(read_view(r, doc, st));
    TIDE_TRY(compare_axis(r, doc, tide_subject_get_facts(st->a), &same_axis));
    return same_axis ? read_moments(r, doc, st) : TIDE_OK;
}

tide_status tide_tui_state_load(tide_tui_state *st, const char *path, bool *is_there, tide_error *err) {
    const bool exists = access(path, F_OK) == 0;
    if (is_there != NULL) *is_there = exists;
    if (!exists) return TIDE_OK;
    reader r = {.path = path, .err = err};
    json_t *doc = NULL;
    tide_tui_state *copy;
    TIDE_TRY(TIDE_NEW(&copy, 1, err, "for the state of the view"));
    *copy = *st;
    tide_status got = tide_json_read_file(&r, MAX_STATE_BYTES, &doc);
    if (got == TIDE_OK) got = read_document(&r, doc, copy);
    if (got == TIDE_OK) {
        *st = *copy;
        st->rows_wanted++;
        tide_tui_state_settle(st);
    }
    if (got == TIDE_ERR_BAD_INPUT) {
        tide_error_prefix(err, "cannot use the saved view '%s'", path);
        tide_error_hint(err, ":reset forgets it");
    }
    json_decref(doc);
    tide_host_free(copy);
    return got;
}
