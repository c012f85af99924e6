// SPDX-License-Identifier: MIT
//
// A case as JSON, and JSON with a layout that people and `diff` can read: a tensor, a step, a figure a line.
//
//     {"key": …, "model": …, "signature": …, "inputs": …, "content": …, "settings": {…}, "figures": {"planned_bytes":
//     4096, …},
//      "peak": {"step": …, "held_bytes": …, "holes_bytes": …}, "steps": [{"name": …, "op": …}, …], "tensors": [{…}, …]}
//
// What is empty, false or 0 in a tensor is left out. Figures that are not known are left out; of metrics per kind so
// are kinds nobody uses, but for one that shows that the metric is known.
#include "gate/measured_internal.h"

#include <inttypes.h>
#include <stdio.h>
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
