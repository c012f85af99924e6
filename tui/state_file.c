// SPDX-License-Identifier: MIT
//
// Writing the state. Reading is in state_load.c. See state_file.h.
#include "tui/state_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/base/utf8.h"

/// jansson steals every reference; a NULL among them makes the whole document fail.
static void set(json_t *object, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(object, key, value) != 0) *ok = false;
}

/// Names may hold bytes that are no UTF-8, which no document can: such a text is left out as "".
static json_t *text_value(const char *text) {
    for (const char *p = text; *p != '\0';) {
        uint32_t cp;
        p += tide_utf8_decode(p, &cp);
        if (cp == TIDE_UTF8_BAD) return json_string("");
    }
    return json_string(text);
}

static json_t *axis_part(const tide_subject_facts *f, bool *ok) {
    json_t *o = json_object();
    set(o, "unit", json_string(f->axis == TIDE_AXIS_STEPS ? "steps" : "ns"), ok);
    set(o, "begin", json_integer(f->begin), ok);
    set(o, "end", json_integer(f->end), ok);
    return o;
}

static json_t *moment_part(tide_moment at, bool *ok) {
    json_t *o = json_object();
    set(o, "t", json_integer(at.t), ok);
    set(o, "event", json_integer((json_int_t)at.event), ok);
    return o;
}

static json_t *marks_part(const tide_tui_state *st, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < st->n_marks; i++) {
        const tide_tui_mark *m = &st->marks[i];
        const char name[2] = {m->name, '\0'};
        json_t *o = moment_part(m->at, ok);
        set(o, "name", json_string(name), ok);
        set(o, "text", text_value(m->text), ok);
        if (json_array_append_new(list, o) != 0) *ok = false;
    }
    return list;
}

static json_t *filters_part(const tide_tui_state *st, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < st->n_filters; i++) {
        json_t *text = text_value(st->filters[i]);
        if (text == NULL || json_array_append_new(list, text) != 0) *ok = false;
    }
    return list;
}

static json_t *document(const tide_tui_state *st, bool *ok) {
    json_t *o = json_object(), *window = json_object();
    set(o, "schema", json_string(TIDE_TUI_STATE_SCHEMA), ok);
    set(o, "version", json_integer(TIDE_TUI_STATE_VERSION), ok);
    set(o, "axis", axis_part(tide_subject_get_facts(st->a), ok), ok);
    set(o, "preset", json_string(tide_tui_preset_name(st->preset)), ok);
    set(o, "focus", json_string(tide_tui_pane_name(st->focus)), ok);
    set(window, "begin", json_integer(st->window.begin), ok);
    set(window, "end", json_integer(st->window.end), ok);
    set(o, "window", window, ok);
    set(o, "cursor", moment_part((tide_moment){st->cursor, st->cursor_event}, ok), ok);
    set(o, "kind",
        st->curve_kind < 0 ? json_null() : json_string(tide_memory_kind_name((tide_memory_kind)st->curve_kind)), ok);
    set(o, "sort", json_string(tide_row_sort_name(st->sort)), ok);
    set(o, "reverse", json_boolean(st->reverse), ok);
    set(o, "group", st->group_chosen ? json_string(tide_row_group_name(st->group)) : json_null(), ok);
    set(o, "hides_persistent", json_boolean(st->hides_persistent), ok);
    set(o, "filters", filters_part(st, ok), ok);
    set(o, "filters_off", json_boolean(st->filters_off), ok);
    set(o, "marks", marks_part(st, ok), ok);
    set(o, "search", text_value(st->search), ok);
    set(o, "capacity_bytes", json_integer(st->capacity_bytes <= INT64_MAX ? (json_int_t)st->capacity_bytes : INT64_MAX),
        ok);
    set(o, "mouse", json_boolean(st->mouse), ok);
    return o;
}

tide_status tide_tui_make_folders(const char *path, tide_error *err) {
    char *folder = tide_host_strdup(path);
    if (folder == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a path");
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
    bool ok = true;
    json_t *doc = document(st, &ok);
    char *text = ok ? json_dumps(doc, JSON_INDENT(1)) : NULL;
    json_decref(doc);
    if (text == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of the view");
    tide_status got = tide_tui_make_folders(path, err);
    if (got == TIDE_OK) got = tide_write_file(path, text, strlen(text), err);
    json_free_t release = NULL;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return got;
}

tide_status tide_tui_state_forget(const char *path, tide_error *err) {
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot remove '%s': %s", path, strerror(errno));
}
