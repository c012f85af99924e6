// SPDX-License-Identifier: MIT
//
// json: jansson on our memory, reading documents. See json.h.
#include "core/base/json.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "core/base/utf8.h"

// ---- memory ----

// Jansson's parser does not survive a failed allocation: it drops the end of a string then and copies past it. So the
// parser is left by a jump; what it had allocated until then is leaked.
static _Thread_local jmp_buf *way_out; // while this thread reads

static void *jumping_alloc(size_t size_bytes) {
    void *p = tide_host_alloc(size_bytes);
    if (p != NULL) return p;
    if (way_out != NULL) longjmp(*way_out, 1);
    return NULL;
}

void tide_json_use_host_alloc(void) { json_set_alloc_funcs(jumping_alloc, tide_host_free); }

json_t *tide_json_load(const char *data, size_t len, size_t flags, json_error_t *to) {
    json_error_t own;
    json_error_t *volatile const at = to != NULL ? to : &own;
    jmp_buf here;
    if (setjmp(here) != 0) {
        way_out = NULL;
        *at = (json_error_t){.line = -1, .column = -1};
        at->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; // where json_error_code looks
        return NULL;
    }
    TIDE_ASSERT(way_out == NULL); // one document at a time in one thread
    way_out = &here;
    json_t *doc = json_loadb(data, len, flags, at);
    way_out = NULL;
    return doc;
}

// ---- reading ----

#define NOT_JSON "not a JSON document"

tide_status tide_json_fault_at(tide_json_reader *r, const char *key, tide_status st) {
    const bool in_object = r->at[0] != '\0', at_key = key[0] != '\0';
    tide_error_where(r->err, "%s%s%s%s%s", r->path, in_object || at_key ? ": " : "", r->at,
                     in_object && at_key ? "." : "", key);
    return st;
}

tide_status tide_json_as_bad_input(tide_json_reader *r, const char *key, tide_status st) {
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (r->err != NULL) r->err->status = TIDE_ERR_BAD_INPUT;
    return tide_json_fault_at(r, key, TIDE_ERR_BAD_INPUT);
}

static bool is_blank(const char *data, size_t len) {
    while (len > 0 && memchr(" \t\r\n", data[len - 1], 4) != NULL) len--;
    return len == 0;
}

/// jansson skips a NUL byte behind some tokens.
static tide_status refuse_nul(tide_json_reader *r, const char *data, size_t len, const char *what) {
    const char *nul = len > 0 ? memchr(data, '\0', len) : NULL;
    if (nul == NULL) return TIDE_OK;
    size_t line = 1;
    for (const char *p = data; p < nul; p++) line += *p == '\n';
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s: a NUL byte", what);
    tide_error_where(r->err, "%s:%zu", r->path, line);
    return st;
}

tide_status tide_json_parse(tide_json_reader *r, const char *data, size_t len, size_t flags, const char *what,
                            json_t **out) {
    json_error_t at;
    *out = NULL;
    TIDE_TRY(refuse_nul(r, data, len, what));
    *out = tide_json_load(data, len, flags, &at);
    if (*out != NULL) return TIDE_OK;
    if (json_error_code(&at) == json_error_out_of_memory) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    const char *why = is_blank(data, len) ? "it is empty" : at.text;
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s: %s", what, why);
    tide_error_where(r->err, "%s:%d:%d", r->path, at.line, at.column);
    return st;
}

tide_status tide_json_read_file(tide_json_reader *r, size_t max_bytes, json_t **out) {
    char *data;
    size_t len;
    *out = NULL;
    TIDE_TRY(tide_read_file(r->path, max_bytes, &data, &len, r->err));
    const tide_status st = tide_json_parse(r, data, len, JSON_REJECT_DUPLICATES, NOT_JSON, out);
    tide_host_free(data);
    return st;
}

tide_status tide_json_check_schema(tide_json_reader *r, const json_t *doc, const char *schema, int oldest, int newest,
                                   int *version) {
    const char *given;
    int64_t number;
    if (!json_is_object(doc))
        return TIDE_JSON_BAD(r, "", "the document is %s: want an object", tide_json_type_name(json_typeof(doc)));
    TIDE_TRY(tide_json_get_text(r, doc, "schema", &given));
    if (strcmp(given, schema) != 0)
        return TIDE_JSON_BAD(r, "schema", "the document is a '%.64s': want '%s'", given, schema);
    TIDE_TRY(tide_json_get_count(r, doc, "version", &number));
    if (number < oldest || number > newest) {
        char known[24] = "";
        if (oldest < newest) snprintf(known, sizeof known, "%d to ", oldest);
        return TIDE_JSON_BAD(r, "version", "version %" PRId64 " of '%s' is not known here: want %s%d", number, schema,
                             known, newest);
    }
    if (version != NULL) *version = (int)number;
    return TIDE_OK;
}

tide_status tide_json_parse_schema(tide_json_reader *r, const char *data, size_t len, const char *schema, int version,
                                   json_t **out) {
    TIDE_TRY(tide_json_parse(r, data, len, JSON_REJECT_DUPLICATES, NOT_JSON, out));
    const tide_status st = tide_json_check_schema(r, *out, schema, version, version, NULL);
    if (st == TIDE_OK) return TIDE_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}

const char *tide_json_type_name(json_type type) {
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

/// The first key of `object` that is not among the `n` known ones; NULL: all are.
static const char *unknown_key(const json_t *object, const char *const *known, size_t n) {
    json_t *o = (json_t *)(uintptr_t)object; // jansson's iterators want no const, and change nothing
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        size_t i = 0;
        while (i < n && strcmp(known[i], json_object_iter_key(it)) != 0) i++;
        if (i == n) return json_object_iter_key(it);
    }
    return NULL;
}

tide_status tide_json_check_keys(tide_json_reader *r, const json_t *object, const char *const *known) {
    const char *name = r->at[0] != '\0' ? r->at : "the document";
    if (!json_is_object(object))
        return TIDE_JSON_BAD(r, "", "%s is %s: want an object", name, tide_json_type_name(json_typeof(object)));
    size_t n = 0;
    while (known[n] != NULL) n++;
    const char *key = unknown_key(object, known, n);
    if (key == NULL) return TIDE_OK;
    const tide_status st = TIDE_JSON_BAD(r, "", "%s has the unknown key '%.64s'", name, key);
    const char *meant = tide_nearest_of(key, known, n);
    if (meant != NULL) tide_error_hint(r->err, "did you mean '%s'?", meant);
    return st;
}

static tide_status refuse(tide_json_reader *r, const char *key, const json_t *value, json_type want) {
    if (r->refuse != NULL) return r->refuse(r, key, value, want);
    if (value == NULL) return TIDE_JSON_BAD(r, key, "the key '%s' is missing", key);
    if (want == JSON_INTEGER && json_is_integer(value))
        return TIDE_JSON_BAD(r, key, "'%s' is %" JSON_INTEGER_FORMAT ": want 0 or more", key,
                             json_integer_value(value));
    return TIDE_JSON_BAD(r, key, "'%s' is %s: want %s", key, tide_json_type_name(json_typeof(value)),
                         tide_json_type_name(want));
}

tide_status tide_json_get(tide_json_reader *r, const json_t *object, const char *key, json_type want, bool is_required,
                          json_t **out) {
    *out = json_object_get(object, key);
    if (*out == NULL) return is_required ? refuse(r, key, NULL, want) : TIDE_OK;
    return json_typeof(*out) == want ? TIDE_OK : refuse(r, key, *out, want);
}

tide_status tide_json_get_text(tide_json_reader *r, const json_t *object, const char *key, const char **out) {
    json_t *value;
    TIDE_TRY(tide_json_get(r, object, key, JSON_STRING, true, &value));
    *out = json_string_value(value);
    return TIDE_OK;
}

tide_status tide_json_copy_text(tide_json_reader *r, const json_t *object, const char *key, char **out) {
    const char *text;
    TIDE_TRY(tide_json_get_text(r, object, key, &text));
    return TIDE_COPY_TEXT(out, text, r->err, "to read %s", r->path);
}

tide_status tide_json_get_i64(tide_json_reader *r, const json_t *object, const char *key, int64_t *out) {
    json_t *value;
    TIDE_TRY(tide_json_get(r, object, key, JSON_INTEGER, true, &value));
    *out = json_integer_value(value);
    return TIDE_OK;
}

tide_status tide_json_get_count(tide_json_reader *r, const json_t *object, const char *key, int64_t *out) {
    int64_t count;
    TIDE_TRY(tide_json_get_i64(r, object, key, &count));
    if (count < 0) return refuse(r, key, json_object_get(object, key), JSON_INTEGER);
    *out = count;
    return TIDE_OK;
}

tide_status tide_json_get_bytes(tide_json_reader *r, const json_t *object, const char *key, uint64_t *out) {
    int64_t count;
    TIDE_TRY(tide_json_get_count(r, object, key, &count));
    *out = (uint64_t)count;
    return TIDE_OK;
}

tide_status tide_json_get_list(tide_json_reader *r, const json_t *object, const char *key, json_t **out) {
    return tide_json_get(r, object, key, JSON_ARRAY, true, out);
}

tide_status tide_json_get_object(tide_json_reader *r, const json_t *object, const char *key, json_t **out) {
    return tide_json_get(r, object, key, JSON_OBJECT, true, out);
}

tide_status tide_json_get_bool(tide_json_reader *r, const json_t *object, const char *key, bool *out) {
    return tide_json_has(object, key) ? tide_json_get_flag(r, object, key, out) : refuse(r, key, NULL, JSON_TRUE);
}

tide_status tide_json_get_flag(tide_json_reader *r, const json_t *object, const char *key, bool *out) {
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return TIDE_OK;
    if (!json_is_boolean(value)) return refuse(r, key, value, JSON_TRUE);
    *out = json_is_true(value);
    return TIDE_OK;
}

tide_status tide_json_text_in(tide_json_reader *r, const json_t *list, const char *name, size_t i, const char **out) {
    const json_t *value = json_array_get(list, i);
    *out = json_string_value(value);
    if (*out != NULL) return TIDE_OK;
    return TIDE_JSON_BAD(r, name, "%s[%zu] is %s: want a string", name, i, tide_json_type_name(json_typeof(value)));
}

tide_status tide_json_enter(tide_json_reader *r, const json_t *list, const char *name, size_t i, json_t **out) {
    snprintf(r->at, sizeof r->at, "%s[%zu]", name, i);
    json_t *value = json_array_get(list, i);
    if (!json_is_object(value))
        return TIDE_JSON_BAD(r, "", "%s is %s: want an object", r->at, tide_json_type_name(json_typeof(value)));
    *out = value;
    return TIDE_OK;
}

size_t tide_json_go_into(tide_json_reader *r, const char *fmt, ...) {
    const size_t len = strlen(r->at);
    TIDE_ASSERT(len < sizeof r->at);
    va_list ap;
    va_start(ap, fmt);
    if (len + 1 < sizeof r->at) {
        const size_t dot = len > 0;
        if (dot) r->at[len] = '.';
        vsnprintf(r->at + len + dot, sizeof r->at - len - dot, fmt, ap);
    }
    va_end(ap);
    return len;
}

// ---- printing ----

static int add_chunk(const char *chunk, size_t n, void *out) {
    tide_text *text = out;
    tide_text_add_n(text, chunk, n);
    return text->failed ? -1 : 0;
}

bool tide_json_print_safe(const json_t *value, size_t flags, tide_text *out) {
    tide_text raw = {0};
    if (json_dump_callback(value, add_chunk, &raw, flags) != 0) out->failed = true;
    tide_utf8_add_json_document(out, tide_text_str(&raw), raw.len);
    tide_text_deinit(&raw);
    return !out->failed;
}
