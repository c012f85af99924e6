// SPDX-License-Identifier: MIT
//
// Members of JSON objects with their types checked: an unknown key is an error, since it is nearly always a known
// one misspelt, and a silently ignored "pad" costs an afternoon.
#include <string.h>

#include "core/base/nearest.h"
#include "core/graph/json_internal.h"

static const char *type_name(json_type type) {
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

tide_status tide__json_check_keys(const json_t *object, const char *const *known, const char *what, tide_error *err) {
    if (!json_is_object(object))
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s is %s, it should be an object", what,
                         type_name(json_typeof(object)));
    size_t n_known = 0;
    while (known[n_known] != NULL) n_known++;
    // jansson's iterator wants a mutable object, though it changes nothing.
    void *iter = json_object_iter((json_t *)(uintptr_t)object);
    for (; iter != NULL; iter = json_object_iter_next((json_t *)(uintptr_t)object, iter)) {
        const char *key = json_object_iter_key(iter);
        size_t i = 0;
        while (i < n_known && strcmp(known[i], key) != 0) i++;
        if (i < n_known) continue;
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s has the unknown key '%s'", what, key);
        const char *near = tide_nearest_of(key, known, n_known);
        if (near != NULL) tide_error_hint(err, "did you mean '%s'?", near);
        return st;
    }
    return TIDE_OK;
}

tide_status tide__json_member(const json_t *object, const char *key, json_type type, bool required, const char *what,
                              json_t **out, tide_error *err) {
    *out = json_object_get(object, key);
    if (*out == NULL && !required) return TIDE_OK;
    if (*out == NULL) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s has no '%s'", what, key);
    if (json_typeof(*out) != type)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' of %s is %s, it should be %s", key, what,
                         type_name(json_typeof(*out)), type_name(type));
    return TIDE_OK;
}

tide_status tide__json_string(const json_t *object, const char *key, bool required, const char *what, const char **out,
                              tide_error *err) {
    json_t *member;
    TIDE_TRY(tide__json_member(object, key, JSON_STRING, required, what, &member, err));
    if (member != NULL) *out = json_string_value(member);
    return TIDE_OK;
}
