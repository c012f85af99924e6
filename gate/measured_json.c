// SPDX-License-Identifier: MIT
//
// A case as JSON and back. The text has a layout that people and `diff` can read: one tensor, step or figure in a line.
//
//     {"key": …, "model": …, "signature": …, "inputs": …, "content": …, "settings": {…},
//      "figures": {"planned_bytes": 4096, …}, "peak": {"step": …, "held_bytes": …, "holes_bytes": …},
//      "steps": [{"name": …, "op": …}, …], "tensors": [{…}, …]}
//
// Members of a tensor that are empty, false or 0 are left out, and so are figures that are not known. Of a metric per
// kind, kinds with 0 bytes are left out too, except one that shows that the metric is known.
//
// The reader takes documents that people have edited: it checks every figure and names the key that is wrong. It skips
// unknown keys, but refuses an unknown figure, because no rule would ever check that one.
#include "gate/measured_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

// ---- layout ----

static int append(const char *buffer, size_t size, void *data) {
    tide_text_add_n(data, buffer, size);
    return 0;
}

/// On one line. 15 digits: a share in millionths reads as it was written.
static void add_line(tide_text *out, const json_t *value) {
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(15), begin = out->len;
    if (json_dump_callback(value, append, out, flags) != 0) out->failed = true;
    if (out->failed) return;
    uint32_t cp = 0;
    bool misleads = false;
    const char *at = tide_text_str(out) + begin;
    for (size_t n; !misleads && (n = tide_utf8_decode(at, &cp)) > 0; at += n) misleads = tide_utf8_is_unsafe(cp);
    if (!misleads) return;
    out->len = begin;
    if (json_dump_callback(value, append, out, flags | JSON_ENSURE_ASCII) != 0) out->failed = true;
}

static void add_indent(tide_text *out, int indent) { tide_text_addf(out, "\n%*s", 2 * indent, ""); }

static void add_key(tide_text *out, const char *key) {
    json_t *text = json_string(key);
    if (text == NULL) out->failed = true;
    if (text != NULL) add_line(out, text);
    json_decref(text);
    tide_text_add(out, ": ");
}

void tide__case_add_json(tide_text *out, const json_t *value, int indent, int levels) {
    const size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (levels <= 0 || n == 0) { // also what is neither list nor object
        add_line(out, value);
        return;
    }
    const char *comma = "";
    if (json_is_array(value)) {
        tide_text_add(out, "[");
        for (size_t i = 0; i < n; i++, comma = ",") {
            tide_text_add(out, comma);
            add_indent(out, indent + 1);
            tide__case_add_json(out, json_array_get(value, i), indent + 1, levels - 1);
        }
        add_indent(out, indent);
        tide_text_add(out, "]");
        return;
    }
    json_t *object = (json_t *)(uintptr_t)value; // jansson's iterators want no const
    tide_text_add(out, "{");
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it), comma = ",") {
        tide_text_add(out, comma);
        add_indent(out, indent + 1);
        add_key(out, json_object_iter_key(it));
        tide__case_add_json(out, json_object_iter_value(it), indent + 1, levels - 1);
    }
    add_indent(out, indent);
    tide_text_add(out, "}");
}

// ---- writing ----

/// Sizes are plain integers; what JSON's readers have no room for is their digits as text.
static json_t *number(uint64_t u) {
    if (u <= INT64_MAX) return json_integer((json_int_t)u);
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, u);
    return json_string(digits);
}

/// Puts a value that was made just so; a failure of either is remembered.
static void put(json_t *object, const char *key, json_t *value, bool *good) {
    if (json_object_set_new(object, key, value) != 0) *good = false;
}

static void put_text(json_t *object, const char *key, const char *text, bool *good) {
    json_t *value = json_string(tide__case_text(text));
    if (value == NULL) { // no UTF-8, or no memory
        char *clean = tide__case_utf8(text);
        if (clean != NULL) value = json_string(clean);
        tide_host_free(clean);
    }
    put(object, key, value, good);
}

static json_t *figure(tide_gate_unit unit, tide_gate_value v) {
    return unit == TIDE_GATE_SHARE ? json_real((double)tide__case_millionths(v.real) / 1e6) : number(v.u);
}

static void put_kinds(json_t *figures, const tide_gate_case *c, tide_gate_metric m, bool *good) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    json_t *kinds = json_object();
    int known = -1;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_gate_value v = c->kinds[m][k];
        if (!v.known) continue;
        if (known < 0 || k == TIDE_KIND_WORKSPACE) known = k;
        if (v.u != 0) put(kinds, tide_memory_kind_name((tide_memory_kind)k), figure(def->unit, v), good);
    }
    if (known >= 0 && json_object_size(kinds) == 0)
        put(kinds, tide_memory_kind_name((tide_memory_kind)known), number(0), good);
    if (known >= 0)
        put(figures, def->id, kinds, good);
    else
        json_decref(kinds);
}

static json_t *figures_of(const tide_gate_case *c, bool exact_only, bool *good) {
    json_t *figures = json_object();
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const tide_gate_metric_def *def = tide_gate_metric_get(m);
        if (exact_only && def->unit == TIDE_GATE_NS) continue;
        if (def->per_kind)
            put_kinds(figures, c, m, good);
        else if (c->metrics[m].known)
            put(figures, def->id, figure(def->unit, c->metrics[m]), good);
    }
    return figures;
}

static json_t *tensor_to_json(const tide_gate_tensor *t, bool *good) {
    json_t *o = json_object();
    put_text(o, "name", t->name, good);
    if (tide__case_text(t->owner)[0] != '\0') put_text(o, "owner", t->owner, good);
    put_text(o, "kind", tide_memory_kind_name(t->kind), good);
    if (t->persistent) put(o, "persistent", json_true(), good);
    if (tide__case_text(t->inside)[0] != '\0') put_text(o, "inside", t->inside, good);
    if (tide__case_text(t->alias)[0] != '\0') put_text(o, "alias", t->alias, good);
    put(o, "bytes", number(t->bytes), good);
    if (t->at_peak_bytes > 0) put(o, "at_peak_bytes", number(t->at_peak_bytes), good);
    if (t->leaked_bytes > 0) put(o, "leaked_bytes", number(t->leaked_bytes), good);
    if (t->warm_allocations > 0) put(o, "warm_allocations", number(t->warm_allocations), good);
    return o;
}

static json_t *step_to_json(const tide_gate_step *s, bool *good) {
    json_t *o = json_object();
    put_text(o, "name", s->name, good);
    if (tide__case_text(s->op)[0] != '\0') put_text(o, "op", s->op, good);
    return o;
}

static json_t *settings_of(const tide_gate_case *c, bool *good) {
    json_t *o = json_object();
    for (size_t i = 0; i < c->n_settings; i++) put_text(o, c->settings[i].key, c->settings[i].value, good);
    return o;
}

static json_t *peak_of(const tide_gate_case *c, bool *good) {
    json_t *o = json_object();
    put_text(o, "step", c->peak_step, good);
    put(o, "held_bytes", number(c->held_bytes), good);
    put(o, "holes_bytes", number(c->holes_bytes), good);
    return o;
}

json_t *tide_gate_case_to_json(const tide_gate_case *c, bool exact_only) {
    bool good = true;
    json_t *doc = json_object(), *steps = json_array(), *tensors = json_array();
    put_text(doc, "key", c->key, &good);
    put_text(doc, "model", c->model, &good);
    put_text(doc, "signature", c->signature, &good);
    put_text(doc, "inputs", c->inputs, &good);
    if (c->content != NULL) put_text(doc, "content", c->content, &good);
    if (c->error != NULL) put_text(doc, "error", c->error, &good);
    if (c->skipped) put(doc, "skipped", json_true(), &good);
    put(doc, "settings", settings_of(c, &good), &good);
    put(doc, "figures", figures_of(c, exact_only, &good), &good);
    put(doc, "peak", peak_of(c, &good), &good);
    for (size_t i = 0; i < c->n_steps; i++)
        good = json_array_append_new(steps, step_to_json(&c->steps[i], &good)) == 0 && good;
    for (size_t i = 0; i < c->n_tensors; i++)
        good = json_array_append_new(tensors, tensor_to_json(&c->tensors[i], &good)) == 0 && good;
    put(doc, "steps", steps, &good);
    put(doc, "tensors", tensors, &good);
    if (good) return doc;
    json_decref(doc);
    return NULL;
}

// ---- reading ----

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

// ---- values ----

/// Absent: "" when `is_optional`.
static tide_status read_text(reader *r, const json_t *o, const char *key, bool is_optional, char **out) {
    const json_t *v = json_object_get(o, key);
    if (v == NULL && !is_optional) return BAD(r, key, "the key '%s' is missing", key);
    if (v != NULL && !json_is_string(v)) return BAD(r, key, "'%s' is not a text", key);
    return TIDE_COPY_TEXT(out, v != NULL ? json_string_value(v) : "", r->err, "for a case");
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
    TIDE_TRY(TIDE_NEW(&out->steps, json_array_size(list) + 1, r->err, "for a case"));
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
    TIDE_TRY(TIDE_NEW(&out->tensors, json_array_size(list) + 1, r->err, "for a case"));
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
