// SPDX-License-Identifier: MIT
//
// A case back from JSON. The document may come from an editor: every figure is looked at, and what does not add up is
// refused with the key that is wrong. Keys that are not known are passed over, but for figures: one that is not known
// would be one that nobody holds against anything.
#include "gate/measured_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

typedef struct reader {
    const char *where;
    char at[64]; ///< the object inside of the case: "tensors[3]"; "" the case
    tide_error *err;
} reader;

static tide_status fail_at(reader *r, const char *key, tide_status st) {
    const char *dot = r->at[0] != '\0' ? "." : "", *key_dot = key[0] != '\0' ? "." : "";
    tide_error_where(r->err, "%s%s%s%s%s", r->where, dot, r->at, key_dot, key);
    return st;
}
#define BAD(r, key, ...) fail_at((r), (key), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

static tide_status no_memory(reader *r) { return TIDE_FAIL(r->err, TIDE_ERR_NOMEM, "no memory for a case"); }

// ---- values ----

/// Absent: "" when `is_optional`.
static tide_status read_text(reader *r, const json_t *o, const char *key, bool is_optional, char **out) {
    const json_t *v = json_object_get(o, key);
    if (v == NULL && !is_optional) return BAD(r, key, "the key '%s' is missing", key);
    if (v != NULL && !json_is_string(v)) return BAD(r, key, "'%s' is not a text", key);
    *out = tide_host_strdup(v != NULL ? json_string_value(v) : "");
    return *out != NULL ? TIDE_OK : no_memory(r);
}

/// An integer, or its digits as text where JSON's readers have no room for it.
static bool parse_number(const json_t *v, uint64_t *out) {
    if (json_is_integer(v) && json_integer_value(v) >= 0) {
        *out = (uint64_t)json_integer_value(v);
        return true;
    }
    const char *digits = json_string_value(v);
    if (digits == NULL || digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0') return false;
    errno = 0;
    const unsigned long long u = strtoull(digits, NULL, 10);
    *out = u;
    return errno == 0;
}

static tide_status read_number(reader *r, const json_t *o, const char *key, bool is_optional, uint64_t *out) {
    const json_t *v = json_object_get(o, key);
    *out = 0;
    if (v == NULL) return is_optional ? TIDE_OK : BAD(r, key, "the key '%s' is missing", key);
    return parse_number(v, out) ? TIDE_OK : BAD(r, key, "'%s' is not a whole number from 0 on", key);
}

static tide_status read_flag(reader *r, const json_t *o, const char *key, bool *out) {
    const json_t *v = json_object_get(o, key);
    if (v != NULL && !json_is_boolean(v)) return BAD(r, key, "'%s' is neither true nor false", key);
    *out = json_is_true(v);
    return TIDE_OK;
}

static tide_status get_object(reader *r, const json_t *o, const char *key, json_t **out) {
    *out = json_object_get(o, key);
    if (*out == NULL) return BAD(r, key, "the key '%s' is missing", key);
    return json_is_object(*out) ? TIDE_OK : BAD(r, key, "'%s' is not an object", key);
}

static tide_status get_list(reader *r, const json_t *o, const char *key, json_t **out) {
    *out = json_object_get(o, key);
    if (*out == NULL) return BAD(r, key, "the key '%s' is missing", key);
    return json_is_array(*out) ? TIDE_OK : BAD(r, key, "'%s' is not a list", key);
}

/// Element i of a list, which must be an object; messages point into it from here on.
static tide_status enter(reader *r, const json_t *list, const char *name, size_t i, const json_t **out) {
    snprintf(r->at, sizeof r->at, "%s[%zu]", name, i);
    *out = json_array_get(list, i);
    return json_is_object(*out) ? TIDE_OK : BAD(r, "", "%s[%zu] is not an object", name, i);
}

// ---- figures ----

static tide_status read_value(reader *r, const char *id, tide_gate_unit unit, const json_t *v, tide_gate_value *out) {
    *out = (tide_gate_value){.known = true};
    if (unit == TIDE_GATE_SHARE) {
        if (!json_is_number(v)) return BAD(r, id, "'%s' is not a number", id);
        out->real = json_number_value(v);
        return out->real > -1e12 && out->real < 1e12 ? TIDE_OK : BAD(r, id, "'%s' is out of range", id);
    }
    return parse_number(v, &out->u) ? TIDE_OK : BAD(r, id, "'%s' is not a whole number from 0 on", id);
}

static tide_status read_kinds(reader *r, tide_gate_metric m, json_t *kinds, tide_gate_case *out) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    if (!json_is_object(kinds)) return BAD(r, def->id, "'%s' is not an object of kinds", def->id);
    for (void *it = json_object_iter(kinds); it != NULL; it = json_object_iter_next(kinds, it)) {
        tide_memory_kind kind;
        const tide_status st = tide_memory_kind_parse(json_object_iter_key(it), &kind, r->err);
        if (st != TIDE_OK) return BAD(r, def->id, "'%.64s' is no memory kind", json_object_iter_key(it));
        TIDE_TRY(read_value(r, def->id, def->unit, json_object_iter_value(it), &out->kinds[m][kind]));
    }
    return TIDE_OK;
}

static tide_status read_figures(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *figures;
    TIDE_TRY(get_object(r, doc, "figures", &figures));
    snprintf(r->at, sizeof r->at, "figures");
    for (void *it = json_object_iter(figures); it != NULL; it = json_object_iter_next(figures, it)) {
        tide_gate_metric m;
        int kind;
        const char *id = json_object_iter_key(it);
        const tide_status st = tide_gate_metric_parse(id, &m, &kind, r->err);
        if (st == TIDE_ERR_NOMEM) return st;
        if (st != TIDE_OK) return fail_at(r, id, TIDE_ERR_BAD_INPUT);
        const tide_gate_metric_def *def = tide_gate_metric_get(m);
        if (strcmp(id, def->id) != 0) return BAD(r, id, "figures of kinds stand inside of '%s'", def->id);
        if (def->per_kind)
            TIDE_TRY(read_kinds(r, m, json_object_iter_value(it), out));
        else
            TIDE_TRY(read_value(r, id, def->unit, json_object_iter_value(it), &out->metrics[m]));
    }
    r->at[0] = '\0';
    return TIDE_OK;
}

static tide_status read_settings(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *settings;
    TIDE_TRY(get_object(r, doc, "settings", &settings));
    for (void *it = json_object_iter(settings); it != NULL; it = json_object_iter_next(settings, it)) {
        const char *value = json_string_value(json_object_iter_value(it));
        if (value == NULL) return BAD(r, "settings", "the setting '%.64s' is not a text", json_object_iter_key(it));
        TIDE_TRY(tide_gate_case_set(out, json_object_iter_key(it), value, r->err));
    }
    return TIDE_OK;
}

// ---- steps and tensors ----

static tide_status read_steps(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *list;
    TIDE_TRY(get_list(r, doc, "steps", &list));
    out->steps = tide_host_calloc(json_array_size(list) + 1, sizeof *out->steps);
    if (out->steps == NULL) return no_memory(r);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o;
        TIDE_TRY(enter(r, list, "steps", i, &o));
        tide_gate_step *s = &out->steps[out->n_steps++];
        TIDE_TRY(read_text(r, o, "name", false, &s->name));
        TIDE_TRY(read_text(r, o, "op", true, &s->op));
    }
    r->at[0] = '\0';
    return TIDE_OK;
}

static tide_status read_tensor(reader *r, const json_t *o, tide_gate_tensor *t) {
    TIDE_TRY(read_text(r, o, "name", false, &t->name));
    TIDE_TRY(read_text(r, o, "owner", true, &t->owner));
    TIDE_TRY(read_text(r, o, "inside", true, &t->inside));
    TIDE_TRY(read_text(r, o, "alias", true, &t->alias));
    TIDE_TRY(read_flag(r, o, "persistent", &t->persistent));
    TIDE_TRY(read_number(r, o, "bytes", false, &t->bytes));
    TIDE_TRY(read_number(r, o, "at_peak_bytes", true, &t->at_peak_bytes));
    TIDE_TRY(read_number(r, o, "leaked_bytes", true, &t->leaked_bytes));
    TIDE_TRY(read_number(r, o, "warm_allocations", true, &t->warm_allocations));
    const char *kind = json_string_value(json_object_get(o, "kind"));
    if (kind == NULL) return BAD(r, "kind", "the key 'kind' is missing or not a text");
    if (tide_memory_kind_parse(kind, &t->kind, r->err) != TIDE_OK)
        return BAD(r, "kind", "'%.64s' is no memory kind", kind);
    return TIDE_OK;
}

static tide_status read_tensors(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *list;
    TIDE_TRY(get_list(r, doc, "tensors", &list));
    out->tensors = tide_host_calloc(json_array_size(list) + 1, sizeof *out->tensors);
    if (out->tensors == NULL) return no_memory(r);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o;
        TIDE_TRY(enter(r, list, "tensors", i, &o));
        TIDE_TRY(read_tensor(r, o, &out->tensors[out->n_tensors++]));
    }
    r->at[0] = '\0';
    tide__case_sort_tensors(out);
    return TIDE_OK;
}

// ---- the whole ----

static tide_status read_peak(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *peak;
    TIDE_TRY(get_object(r, doc, "peak", &peak));
    snprintf(r->at, sizeof r->at, "peak");
    TIDE_TRY(read_text(r, peak, "step", false, &out->peak_step));
    TIDE_TRY(read_number(r, peak, "held_bytes", false, &out->held_bytes));
    TIDE_TRY(read_number(r, peak, "holes_bytes", false, &out->holes_bytes));
    r->at[0] = '\0';
    return TIDE_OK;
}

static tide_status read_case(reader *r, const json_t *doc, tide_gate_case *out) {
    if (!json_is_object(doc)) return BAD(r, "", "a case is not an object");
    TIDE_TRY(read_text(r, doc, "key", false, &out->key));
    if (out->key[0] == '\0') return BAD(r, "key", "the key of a case is empty");
    TIDE_TRY(read_text(r, doc, "model", false, &out->model));
    TIDE_TRY(read_text(r, doc, "signature", false, &out->signature));
    TIDE_TRY(read_text(r, doc, "inputs", false, &out->inputs));
    if (json_object_get(doc, "content") != NULL) TIDE_TRY(read_text(r, doc, "content", false, &out->content));
    if (json_object_get(doc, "error") != NULL) TIDE_TRY(read_text(r, doc, "error", false, &out->error));
    TIDE_TRY(read_flag(r, doc, "skipped", &out->skipped));
    TIDE_TRY(read_settings(r, doc, out));
    TIDE_TRY(read_figures(r, doc, out));
    TIDE_TRY(read_peak(r, doc, out));
    TIDE_TRY(read_steps(r, doc, out));
    TIDE_TRY(read_tensors(r, doc, out));
    const tide_status st = tide__case_check(out, r->err);
    return st == TIDE_OK ? st : fail_at(r, "tensors", TIDE_ERR_BAD_INPUT);
}

tide_status tide_gate_case_of_json(const json_t *doc, const char *where, tide_gate_case *out, tide_error *err) {
    reader r = {.where = where, .err = err};
    *out = (tide_gate_case){0};
    const tide_status st = read_case(&r, doc, out);
    if (st != TIDE_OK) tide_gate_case_deinit(out);
    if (st != TIDE_OK && err != NULL) err->status = st;
    return st;
}
