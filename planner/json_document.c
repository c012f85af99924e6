// SPDX-License-Identifier: MIT
//
// json document: typed access to the keys of a JSON document from outside, and strings for a document that is written.
// See json_document.h.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/json_document.h"

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

tide_status tide__doc_bad_at(tide_doc_reader *r, const char *key, tide_status st) {
    const char *dot = r->at[0] != '\0' && key[0] != '\0' ? "." : "";
    tide_error_where(r->err, "%s: %s%s%s", r->path, r->at, dot, key);
    return st;
}

tide_status tide__doc_as_bad_input(tide_doc_reader *r, const char *key, tide_status st) {
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (r->err != NULL) r->err->status = TIDE_ERR_BAD_INPUT;
    return tide__doc_bad_at(r, key, TIDE_ERR_BAD_INPUT);
}

// ---- documents ----

static const char *type_name(const json_t *v) {
    switch (json_typeof(v)) {
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

static tide_status check_schema(tide_doc_reader *r, const char *schema, int version) {
    if (!json_is_object(r->root)) return TIDE_DOC_BAD(r, "", "the document is %s: want an object", type_name(r->root));
    const char *given;
    TIDE_TRY(tide__doc_string(r, r->root, "schema", &given));
    if (strcmp(given, schema) != 0)
        return TIDE_DOC_BAD(r, "schema", "the document is a '%.64s': want '%s'", given, schema);
    int64_t number;
    TIDE_TRY(tide__doc_count(r, r->root, "version", &number));
    if (number != version)
        return TIDE_DOC_BAD(r, "version", "version %" PRId64 " of '%s' is not known here: want %d", number, schema,
                            version);
    return TIDE_OK;
}

tide_status tide__doc_open(tide_doc_reader *r, const char *data, size_t len, const char *schema, int version) {
    json_error_t e;
    r->root = tide_json_load(data, len, JSON_REJECT_DUPLICATES, &e);
    if (r->root != NULL) return check_schema(r, schema, version);
    if (json_error_code(&e) == json_error_out_of_memory) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "not a JSON document: %s", e.text);
    tide_error_where(r->err, "%s:%d:%d", r->path, e.line, e.column);
    return st;
}

void tide__doc_close(tide_doc_reader *r) {
    json_decref(r->root);
    r->root = NULL;
}

// ---- keys ----

static tide_status get(tide_doc_reader *r, const json_t *object, const char *key, json_type type, const char *want,
                       json_t **out) {
    json_t *v = *out = json_object_get(object, key);
    if (v == NULL) return TIDE_DOC_BAD(r, key, "the key '%s' is missing", key);
    if (json_typeof(v) != type) return TIDE_DOC_BAD(r, key, "'%s' is %s: want %s", key, type_name(v), want);
    return TIDE_OK;
}

tide_status tide__doc_string(tide_doc_reader *r, const json_t *object, const char *key, const char **out) {
    json_t *v = NULL;
    TIDE_TRY(get(r, object, key, JSON_STRING, "a string", &v));
    *out = json_string_value(v);
    return TIDE_OK;
}

tide_status tide__doc_count(tide_doc_reader *r, const json_t *object, const char *key, int64_t *out) {
    json_t *v = NULL;
    TIDE_TRY(get(r, object, key, JSON_INTEGER, "an integer", &v));
    if (json_integer_value(v) < 0)
        return TIDE_DOC_BAD(r, key, "'%s' is %" JSON_INTEGER_FORMAT ": want 0 or more", key, json_integer_value(v));
    *out = json_integer_value(v);
    return TIDE_OK;
}

tide_status tide__doc_bytes(tide_doc_reader *r, const json_t *object, const char *key, uint64_t *out) {
    int64_t v = 0;
    TIDE_TRY(tide__doc_count(r, object, key, &v));
    *out = (uint64_t)v;
    return TIDE_OK;
}

tide_status tide__doc_list(tide_doc_reader *r, const json_t *object, const char *key, json_t **out) {
    return get(r, object, key, JSON_ARRAY, "a list", out);
}

tide_status tide__doc_object(tide_doc_reader *r, const json_t *object, const char *key, json_t **out) {
    return get(r, object, key, JSON_OBJECT, "an object", out);
}

tide_status tide__doc_flag(tide_doc_reader *r, const json_t *object, const char *key, bool *out) {
    const json_t *v = json_object_get(object, key);
    if (v == NULL) return TIDE_OK;
    if (!json_is_boolean(v)) return TIDE_DOC_BAD(r, key, "'%s' is %s: want true or false", key, type_name(v));
    *out = json_is_true(v);
    return TIDE_OK;
}

tide_status tide__doc_index(tide_doc_reader *r, const json_t *object, const char *key, uint32_t *out) {
    *out = TIDE_NO_INDEX;
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) return TIDE_OK;
    int64_t index;
    TIDE_TRY(tide__doc_count(r, object, key, &index));
    if (index >= TIDE_NO_INDEX) return TIDE_DOC_BAD(r, key, "'%s' is %" PRId64 ": no such index", key, index);
    *out = (uint32_t)index;
    return TIDE_OK;
}

tide_status tide__doc_enter(tide_doc_reader *r, const json_t *list, const char *name, size_t i, json_t **out) {
    snprintf(r->at, sizeof r->at, "%s[%zu]", name, i);
    json_t *v = json_array_get(list, i);
    if (!json_is_object(v)) return TIDE_DOC_BAD(r, "", "%s is %s: want an object", r->at, type_name(v));
    *out = v;
    return TIDE_OK;
}

size_t tide__doc_go_into(tide_doc_reader *r, const char *fmt, ...) {
    const size_t len = strlen(r->at);
    va_list ap;
    va_start(ap, fmt);
    if (len + 1 < sizeof r->at) {
        r->at[len] = '.';
        vsnprintf(r->at + len + 1, sizeof r->at - len - 1, fmt, ap);
    }
    va_end(ap);
    return len;
}

// ---- writing ----

void tide__doc_add_string(tide_text *out, const char *text) {
    tide_text_add(out, "\"");
    tide_utf8_add_json(out, text);
    tide_text_add(out, "\"");
}

void tide__doc_add_key_string(tide_text *out, const char *key, const char *text) {
    tide_text_addf(out, "\"%s\": ", key);
    tide__doc_add_string(out, text);
}
