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
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

// ---- writing ----

/// Sizes are plain integers; what JSON's readers have no room for is their digits as text.
static void add_u64(tide_json_out *j, const char *key, uint64_t u) {
    char digits[24];
    if (u <= INT64_MAX) {
        tide_json_u64(j, key, u);
        return;
    }
    snprintf(digits, sizeof digits, "%" PRIu64, u);
    tide_json_text(j, key, digits);
}

static void add_u64_above_0(tide_json_out *j, const char *key, uint64_t u) {
    if (u > 0) add_u64(j, key, u);
}

static void add_text(tide_json_out *j, const char *key, const char *text) {
    char *clean = tide__case_utf8(text);
    if (clean == NULL) j->out->failed = true;
    tide_json_text(j, key, clean);
    tide_host_free(clean);
}

static void add_text_if_any(tide_json_out *j, const char *key, const char *text) {
    if (tide__case_text(text)[0] != '\0') add_text(j, key, text);
}

/// 15 digits: a share in millionths reads as it was written.
static void add_figure(tide_json_out *j, const char *key, tide_gate_unit unit, tide_gate_value v) {
    if (unit == TIDE_GATE_SHARE)
        tide_json_number(j, key, (double)tide__case_millionths(v.real) / 1e6, 15);
    else
        add_u64(j, key, v.u);
}

static void add_kinds(tide_json_out *j, const tide_gate_case *c, tide_gate_metric m) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    int known = -1;
    bool any = false;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        if (!c->kinds[m][k].known) continue;
        if (known < 0 || k == TIDE_KIND_WORKSPACE) known = k;
        any = any || c->kinds[m][k].u != 0;
    }
    if (known < 0) return;
    tide_json_open_flat(j, def->id, '{');
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_gate_value v = c->kinds[m][k];
        if (v.known && v.u != 0) add_figure(j, tide_memory_kind_name((tide_memory_kind)k), def->unit, v);
    }
    if (!any) tide_json_u64(j, tide_memory_kind_name((tide_memory_kind)known), 0);
    tide_json_close(j, '}');
}

static void add_figures(tide_json_out *j, const tide_gate_case *c) {
    tide_json_open(j, "figures", '{');
    for (int i = 0; i < TIDE_GATE_N_METRICS; i++) {
        const tide_gate_metric m = (tide_gate_metric)i;
        const tide_gate_metric_def *def = tide_gate_metric_get(m);
        if (def->unit == TIDE_GATE_NS) continue;
        if (def->per_kind)
            add_kinds(j, c, m);
        else if (c->metrics[m].known)
            add_figure(j, def->id, def->unit, c->metrics[m]);
    }
    tide_json_close(j, '}');
}

static void add_tensor(tide_json_out *j, const tide_gate_tensor *t) {
    tide_json_open_flat(j, NULL, '{');
    add_text(j, "name", t->name);
    add_text_if_any(j, "owner", t->owner);
    tide_json_text(j, "kind", tide_memory_kind_name(t->kind));
    if (t->persistent) tide_json_bool(j, "persistent", true);
    add_text_if_any(j, "inside", t->inside);
    add_text_if_any(j, "alias", t->alias);
    add_u64(j, "bytes", t->bytes);
    add_u64_above_0(j, "at_peak_bytes", t->at_peak_bytes);
    add_u64_above_0(j, "leaked_bytes", t->leaked_bytes);
    add_u64_above_0(j, "warm_allocations", t->warm_allocations);
    tide_json_close(j, '}');
}

static void add_step(tide_json_out *j, const tide_gate_step *s) {
    tide_json_open_flat(j, NULL, '{');
    add_text(j, "name", s->name);
    add_text_if_any(j, "op", s->op);
    tide_json_close(j, '}');
}

static void add_settings(tide_json_out *j, const tide_gate_case *c) {
    tide_json_open(j, "settings", '{');
    for (size_t i = 0; i < c->n_settings; i++) add_text(j, c->settings[i].key, c->settings[i].value);
    tide_json_close(j, '}');
}

static void add_peak(tide_json_out *j, const tide_gate_case *c) {
    tide_json_open(j, "peak", '{');
    add_text(j, "step", c->peak_step);
    add_u64(j, "held_bytes", c->held_bytes);
    add_u64(j, "holes_bytes", c->holes_bytes);
    tide_json_close(j, '}');
}

void tide__case_write_json(tide_json_out *j, const tide_gate_case *c) {
    tide_json_open(j, NULL, '{');
    add_text(j, "key", c->key);
    add_text(j, "model", c->model);
    add_text(j, "signature", c->signature);
    add_text(j, "inputs", c->inputs);
    if (c->content != NULL) add_text(j, "content", c->content);
    if (c->error != NULL) add_text(j, "error", c->error);
    if (c->skipped) tide_json_bool(j, "skipped", true);
    add_settings(j, c);
    add_figures(j, c);
    add_peak(j, c);
    tide_json_open(j, "steps", '[');
    for (size_t i = 0; i < c->n_steps; i++) add_step(j, &c->steps[i]);
    tide_json_close(j, ']');
    tide_json_open(j, "tensors", '[');
    for (size_t i = 0; i < c->n_tensors; i++) add_tensor(j, &c->tensors[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

json_t *tide__case_to_json(const tide_gate_case *c) {
    tide_text text = {0};
    tide_json_out j = {.out = &text};
    tide__case_write_json(&j, c);
    json_t *doc = text.failed ? NULL : tide_json_load(text.data, text.len, 0, NULL);
    tide_text_deinit(&text);
    return doc;
}

// ---- reading ----

typedef tide_json_reader reader;
#define BAD TIDE_JSON_BAD

static tide_status refuse(reader *r, const char *key, const json_t *value, json_type want) {
    if (value == NULL) return BAD(r, key, "the key '%s' is missing", key);
    if (want == JSON_STRING) return BAD(r, key, "'%s' is not a text", key);
    if (want == JSON_OBJECT) return BAD(r, key, "'%s' is not an object", key);
    if (want == JSON_ARRAY) return BAD(r, key, "'%s' is not a list", key);
    return BAD(r, key, "'%s' is neither true nor false", key);
}

// ---- values ----

/// Absent: "" when `is_optional`.
static tide_status read_text(reader *r, const json_t *o, const char *key, bool is_optional, char **out) {
    json_t *v;
    TIDE_TRY(tide_json_get(r, o, key, JSON_STRING, !is_optional, &v));
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

/// Element i of a list, which must be an object; it is the object being read until r->at[*outer] = '\0'.
static tide_status enter(reader *r, const json_t *list, const char *name, size_t i, const json_t **out, size_t *outer) {
    *outer = tide_json_go_into(r, "%s[%zu]", name, i);
    *out = json_array_get(list, i);
    return json_is_object(*out) ? TIDE_OK : BAD(r, "", "%s[%zu] is not an object", name, i);
}

// ---- figures ----

static tide_status read_value(reader *r, const char *id, tide_gate_unit unit, const json_t *v, tide_gate_value *out) {
    *out = (tide_gate_value){.known = true};
    if (unit == TIDE_GATE_SHARE) {
        if (!json_is_number(v)) return BAD(r, id, "'%s' is not a number", id);
        out->real = json_number_value(v);
        return fabs(out->real) <= TIDE__CASE_MAX_SHARE ? TIDE_OK : BAD(r, id, "'%s' is out of range", id);
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
    TIDE_TRY(tide_json_get_object(r, doc, "figures", &figures));
    const size_t outer = tide_json_go_into(r, "figures");
    for (void *it = json_object_iter(figures); it != NULL; it = json_object_iter_next(figures, it)) {
        tide_gate_metric m;
        int kind;
        const char *id = json_object_iter_key(it);
        const tide_status st = tide_gate_metric_parse(id, &m, &kind, r->err);
        if (st == TIDE_ERR_NOMEM) return st;
        if (st != TIDE_OK) return tide_json_fault_at(r, id, TIDE_ERR_BAD_INPUT);
        const tide_gate_metric_def *def = tide_gate_metric_get(m);
        if (strcmp(id, def->id) != 0) return BAD(r, id, "figures of kinds stand inside of '%s'", def->id);
        if (def->per_kind)
            TIDE_TRY(read_kinds(r, m, json_object_iter_value(it), out));
        else
            TIDE_TRY(read_value(r, id, def->unit, json_object_iter_value(it), &out->metrics[m]));
    }
    r->at[outer] = '\0';
    return TIDE_OK;
}

static tide_status read_settings(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *settings;
    TIDE_TRY(tide_json_get_object(r, doc, "settings", &settings));
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
    TIDE_TRY(tide_json_get_list(r, doc, "steps", &list));
    TIDE_TRY(TIDE_NEW(&out->steps, json_array_size(list) + 1, r->err, "for a case"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o;
        size_t outer;
        TIDE_TRY(enter(r, list, "steps", i, &o, &outer));
        tide_gate_step *s = &out->steps[out->n_steps++];
        TIDE_TRY(read_text(r, o, "name", false, &s->name));
        TIDE_TRY(read_text(r, o, "op", true, &s->op));
        r->at[outer] = '\0';
    }
    return TIDE_OK;
}

static tide_status read_tensor(reader *r, const json_t *o, tide_gate_tensor *t) {
    TIDE_TRY(read_text(r, o, "name", false, &t->name));
    TIDE_TRY(read_text(r, o, "owner", true, &t->owner));
    TIDE_TRY(read_text(r, o, "inside", true, &t->inside));
    TIDE_TRY(read_text(r, o, "alias", true, &t->alias));
    TIDE_TRY(tide_json_get_flag(r, o, "persistent", &t->persistent));
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
    TIDE_TRY(tide_json_get_list(r, doc, "tensors", &list));
    TIDE_TRY(TIDE_NEW(&out->tensors, json_array_size(list) + 1, r->err, "for a case"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o;
        size_t outer;
        TIDE_TRY(enter(r, list, "tensors", i, &o, &outer));
        TIDE_TRY(read_tensor(r, o, &out->tensors[out->n_tensors++]));
        r->at[outer] = '\0';
    }
    tide__case_sort_tensors(out);
    return TIDE_OK;
}

// ---- the whole ----

static tide_status read_peak(reader *r, const json_t *doc, tide_gate_case *out) {
    json_t *peak;
    TIDE_TRY(tide_json_get_object(r, doc, "peak", &peak));
    const size_t outer = tide_json_go_into(r, "peak");
    TIDE_TRY(read_text(r, peak, "step", false, &out->peak_step));
    TIDE_TRY(read_number(r, peak, "held_bytes", false, &out->held_bytes));
    TIDE_TRY(read_number(r, peak, "holes_bytes", false, &out->holes_bytes));
    r->at[outer] = '\0';
    return TIDE_OK;
}

static tide_status read_case(reader *r, const json_t *doc, tide_gate_case *out) {
    TIDE_TRY(read_text(r, doc, "key", false, &out->key));
    if (out->key[0] == '\0') return BAD(r, "key", "the key of a case is empty");
    TIDE_TRY(read_text(r, doc, "model", false, &out->model));
    TIDE_TRY(read_text(r, doc, "signature", false, &out->signature));
    TIDE_TRY(read_text(r, doc, "inputs", false, &out->inputs));
    if (json_object_get(doc, "content") != NULL) TIDE_TRY(read_text(r, doc, "content", false, &out->content));
    if (json_object_get(doc, "error") != NULL) TIDE_TRY(read_text(r, doc, "error", false, &out->error));
    TIDE_TRY(tide_json_get_flag(r, doc, "skipped", &out->skipped));
    TIDE_TRY(read_settings(r, doc, out));
    TIDE_TRY(read_figures(r, doc, out));
    TIDE_TRY(read_peak(r, doc, out));
    TIDE_TRY(read_steps(r, doc, out));
    TIDE_TRY(read_tensors(r, doc, out));
    const tide_status st = tide__case_check(out, r->err);
    return st == TIDE_OK ? st : tide_json_fault_at(r, "tensors", TIDE_ERR_BAD_INPUT);
}

tide_status tide__case_of_json(tide_json_reader *r, const json_t *doc, tide_gate_case *out) {
    r->refuse = refuse;
    *out = (tide_gate_case){0};
    const tide_status st = read_case(r, doc, out);
    if (st != TIDE_OK) tide_gate_case_deinit(out);
    if (st != TIDE_OK && r->err != NULL) r->err->status = st;
    return st;
}
