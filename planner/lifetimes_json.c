// SPDX-License-Identifier: MIT
//
// lifetimes_json: reader and writer of a table of lifetimes in JSON. See lifetimes_json.h. The writer puts one tensor
// on a line, so that `diff` shows what changed; keys keep their order, and those that say nothing new are left out.
#include "planner/lifetimes_json.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "planner/planner.h"

// ---- reader ----

#define BAD TIDE_DOC_BAD

// ---- names ----

/// A list of strings under `key` of the document; absent: none. *n counts what is there also on failure.
static tide_status read_names(tide_doc_reader *r, const char *key, char ***out, size_t *n_out) {
    r->at[0] = '\0';
    if (!tide__doc_has(r->root, key)) return TIDE_OK;
    json_t *list;
    TIDE_TRY(tide__doc_list(r, r->root, key, &list));
    const size_t n = json_array_size(list);
    if (n == 0) return TIDE_OK;
    *out = tide_host_calloc(n, sizeof **out);
    if (*out == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL) return BAD(r, key, "%s[%zu] is no string", key, i);
        (*out)[i] = tide_host_strdup(name);
        if ((*out)[i] == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
        *n_out = i + 1;
    }
    return TIDE_OK;
}

static tide_status read_head(tide_doc_reader *r, tide_lifetimes *lt) {
    const char *model = "";
    r->at[0] = '\0';
    if (tide__doc_has(r->root, "model")) TIDE_TRY(tide__doc_string(r, r->root, "model", &model));
    lt->model = tide_host_strdup(model);
    if (lt->model == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    TIDE_TRY(read_names(r, "points", &lt->point_names, &lt->n_points));
    TIDE_TRY(read_names(r, "order", &lt->step_names, &lt->n_step_names));
    return read_names(r, "recomputed", &lt->recomputed, &lt->n_recomputed);
}

/// After the tensors, which have raised n_steps as far as they reach.
static tide_status read_n_steps(tide_doc_reader *r, tide_lifetimes *lt) {
    r->at[0] = '\0';
    if (tide__doc_has(r->root, "n_steps")) {
        int64_t n_steps;
        TIDE_TRY(tide__doc_count(r, r->root, "n_steps", &n_steps));
        if (n_steps < lt->n_steps)
            return BAD(r, "n_steps", "'n_steps' is %" PRId64 ", but a tensor lives until step %" PRId64, n_steps,
                       lt->n_steps);
        lt->n_steps = n_steps;
    }
    if (lt->n_step_names != 0 && (uint64_t)lt->n_steps != lt->n_step_names)
        return BAD(r, "order", "'order' names %zu steps of %" PRId64, lt->n_step_names, lt->n_steps);
    return TIDE_OK;
}

// ---- one tensor ----

static tide_status read_words(tide_doc_reader *r, const json_t *t, tide_lifetime *item) {
    const char *word;
    TIDE_TRY(tide__doc_flag(r, t, "persistent", &item->persistent));
    TIDE_TRY(tide__doc_flag(r, t, "unrounded", &item->unrounded));
    item->kind = item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE;
    if (tide__doc_has(t, "kind")) {
        TIDE_TRY(tide__doc_string(r, t, "kind", &word));
        TIDE_TRY(tide__doc_as_bad_input(r, "kind", tide_memory_kind_parse(word, &item->kind, r->err)));
    }
    if (tide__doc_has(t, "role")) {
        TIDE_TRY(tide__doc_string(r, t, "role", &word));
        TIDE_TRY(tide__doc_as_bad_input(r, "role", tide_role_parse(word, &item->role, r->err)));
    }
    item->device = TIDE_CPU;
    if (tide__doc_has(t, "device")) {
        TIDE_TRY(tide__doc_string(r, t, "device", &word));
        TIDE_TRY(tide__doc_as_bad_input(r, "device", tide_device_parse(word, &item->device, r->err)));
    }
    return tide__doc_as_bad_input(r, "kind", tide_memory_kind_check(item->kind, item->device, r->err));
}

static tide_status read_numbers(tide_doc_reader *r, const json_t *t, tide_lifetime *item) {
    TIDE_TRY(tide__doc_bytes(r, t, "size_bytes", &item->size_bytes));
    TIDE_TRY(tide__doc_count(r, t, "begin", &item->begin_step));
    TIDE_TRY(tide__doc_count(r, t, "end", &item->end_step));
    if (tide__doc_has(t, "align_bytes")) TIDE_TRY(tide__doc_bytes(r, t, "align_bytes", &item->align_bytes));
    TIDE_TRY(tide__doc_index(r, t, "node", &item->node));
    TIDE_TRY(tide__doc_index(r, t, "port", &item->port));
    TIDE_TRY(tide__doc_index(r, t, "value", &item->value));
    if (tide__doc_has(t, "apart")) {
        int64_t set;
        TIDE_TRY(tide__doc_count(r, t, "apart", &set));
        if (set < 1 || set > UINT32_MAX)
            return BAD(r, "apart", "'apart' is %" PRId64 ": sets have numbers from 1 to %" PRIu32, set, UINT32_MAX);
        item->apart_set = (uint32_t)set;
    }
    if (!tide__doc_has(t, "fixed_offset")) return TIDE_OK;
    item->fixed = true;
    return tide__doc_bytes(r, t, "fixed_offset", &item->fixed_offset_bytes);
}

static tide_status read_gaps(tide_doc_reader *r, const json_t *t, tide_lifetime *item) {
    if (!tide__doc_has(t, "gaps")) return TIDE_OK;
    json_t *gaps;
    TIDE_TRY(tide__doc_list(r, t, "gaps", &gaps));
    const size_t n = json_array_size(gaps);
    if (n == 0) return TIDE_OK;
    if (n > UINT32_MAX) return BAD(r, "gaps", "%zu gaps are more than a tensor can have", n);
    TIDE_TRY(TIDE_NEW(&item->gaps, n, r->err, "to read %s", r->path));
    item->n_gaps = (uint32_t)n;
    for (size_t k = 0; k < n; k++) {
        const json_t *gap = json_array_get(gaps, k);
        tide_gap *out = &item->gaps[k];
        if (!json_is_object(gap)) return BAD(r, "gaps", "gaps[%zu] is no object", k);
        const size_t outer = tide__doc_go_into(r, "gaps[%zu]", k);
        TIDE_TRY(tide__doc_count(r, gap, "begin", &out->begin_step));
        TIDE_TRY(tide__doc_count(r, gap, "end", &out->end_step));
        if (tide__doc_has(gap, "lo")) TIDE_TRY(tide__doc_bytes(r, gap, "lo", &out->lo_bytes));
        if (tide__doc_has(gap, "hi")) TIDE_TRY(tide__doc_bytes(r, gap, "hi", &out->hi_bytes));
        r->at[outer] = '\0';
    }
    return TIDE_OK;
}

static tide_status read_points(tide_doc_reader *r, const json_t *t, size_t n_points, tide_lifetime *item) {
    if (!tide__doc_has(t, "point_bytes")) return TIDE_OK;
    json_t *list;
    TIDE_TRY(tide__doc_list(r, t, "point_bytes", &list));
    if (json_array_size(list) != n_points || n_points == 0)
        return BAD(r, "point_bytes", "'point_bytes' has %zu sizes, 'points' names %zu", json_array_size(list),
                   n_points);
    TIDE_TRY(TIDE_NEW(&item->point_bytes, n_points, r->err, "to read %s", r->path));
    uint64_t largest = 0;
    for (size_t k = 0; k < n_points; k++) {
        const json_t *v = json_array_get(list, k);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return BAD(r, "point_bytes", "point_bytes[%zu] is no size", k);
        item->point_bytes[k] = (uint64_t)json_integer_value(v);
        if (item->point_bytes[k] > largest) largest = item->point_bytes[k];
    }
    if (largest == item->size_bytes) return TIDE_OK;
    return BAD(r, "point_bytes", "'size_bytes' is %" PRIu64 ", but the largest of its points takes %" PRIu64,
               item->size_bytes, largest);
}

static tide_status read_keys(tide_doc_reader *r, const json_t *t, size_t n_points, tide_lifetime *item) {
    TIDE_TRY(read_numbers(r, t, item));
    TIDE_TRY(read_words(r, t, item));
    TIDE_TRY(read_gaps(r, t, item));
    return read_points(r, t, n_points, item);
}

static tide_status read_tensor(tide_doc_reader *r, const json_t *t, tide_lifetimes *lt, tide_strmap *names) {
    tide_lifetime item = {.align_bytes = 1};
    const char *name;
    TIDE_TRY(tide__doc_string(r, t, "name", &name));
    item.name = tide_host_strdup(name);
    if (item.name == NULL) return TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    tide_status st = read_keys(r, t, lt->n_points, &item);
    uint64_t other;
    if (st == TIDE_OK && tide_strmap_get(names, name, &other))
        st = BAD(r, "name", "tensor '%s' is there twice: tensors[%" PRIu64 "] has the name too", name, other);
    if (st == TIDE_OK) st = tide__doc_as_bad_input(r, "", tide_lifetimes_add(lt, &item, r->err));
    if (st == TIDE_OK && tide_strmap_put(names, name, lt->n - 1) != TIDE_OK)
        st = TIDE_NO_MEMORY(r->err, "to read %s", r->path);
    tide_host_free(item.name);
    tide_host_free(item.gaps);
    tide_host_free(item.point_bytes);
    return st;
}

// ---- aliases, once all tensors are there ----

static tide_status read_alias(tide_doc_reader *r, const json_t *t, uint32_t i, tide_lifetimes *lt,
                              const tide_strmap *names) {
    if (!tide__doc_has(t, "alias")) return TIDE_OK;
    json_t *alias;
    const char *of, *word;
    tide_alias_kind kind = TIDE_ALIAS_GIVEN;
    uint64_t target, offset = 0;
    TIDE_TRY(tide__doc_object(r, t, "alias", &alias));
    const size_t outer = tide__doc_go_into(r, "alias");
    TIDE_TRY(tide__doc_string(r, alias, "of", &of));
    if (tide__doc_has(alias, "offset")) TIDE_TRY(tide__doc_bytes(r, alias, "offset", &offset));
    if (tide__doc_has(alias, "kind")) {
        TIDE_TRY(tide__doc_string(r, alias, "kind", &word));
        TIDE_TRY(tide__doc_as_bad_input(r, "kind", tide_alias_kind_parse(word, &kind, r->err)));
    }
    if (!tide_strmap_get(names, of, &target)) return BAD(r, "of", "there is no tensor '%s' to lie in", of);
    r->at[outer] = '\0';
    return tide__doc_as_bad_input(r, "alias", tide_lifetimes_alias(lt, i, kind, (uint32_t)target, offset, r->err));
}

tide_status tide__lifetimes_json_read(tide_doc_reader *r, tide_lifetimes *out, tide_strmap *names) {
    TIDE_TRY(read_head(r, out));
    json_t *tensors, *t;
    r->at[0] = '\0';
    TIDE_TRY(tide__doc_list(r, r->root, "tensors", &tensors));
    const size_t n = json_array_size(tensors);
    if (n >= TIDE_NO_INDEX) return BAD(r, "tensors", "%zu tensors are more than can be numbered", n);
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(tide__doc_enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_tensor(r, t, out, names));
    }
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(tide__doc_enter(r, tensors, "tensors", i, &t));
        TIDE_TRY(read_alias(r, t, (uint32_t)i, out, names));
    }
    return read_n_steps(r, out);
}

tide_status tide_lifetimes_from_json(const char *data, size_t len, const char *path, tide_lifetimes *out,
                                     tide_error *err) {
    tide_doc_reader r = {.path = path, .err = err};
    tide_lifetimes lt = {0};
    tide_strmap names = {0};
    tide_status st = tide__doc_open(&r, data, len, TIDE_LIFETIMES_SCHEMA, TIDE_LIFETIMES_SCHEMA_VERSION);
    if (st == TIDE_OK) st = tide__lifetimes_json_read(&r, &lt, &names);
    if (st == TIDE_OK) {
        *out = lt;
    } else {
        tide_lifetimes_deinit(&lt);
    }
    tide_strmap_deinit(&names);
    tide__doc_close(&r);
    return st;
}

// ---- writer ----

// ---- names ----

/// On one line, for lists that are short.
static void add_short_list(tide_text *out, const char *key, char *const *names, size_t n) {
    if (n == 0) return;
    tide_text_addf(out, "  \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) tide_text_add(out, ", ");
        tide__doc_add_string(out, names[i]);
    }
    tide_text_add(out, "],\n");
}

void tide__lifetimes_json_add_names(tide_text *out, const tide_lifetimes *lt) {
    add_short_list(out, "points", lt->point_names, lt->n_points);
    add_short_list(out, "recomputed", lt->recomputed, lt->n_recomputed);
    tide_text_add(out, "  \"order\": [");
    for (size_t i = 0; i < lt->n_step_names; i++) {
        tide_text_add(out, i == 0 ? "\n    " : ",\n    ");
        tide__doc_add_string(out, lt->step_names[i]);
    }
    tide_text_add(out, lt->n_step_names > 0 ? "\n  ],\n" : "],\n");
}

// ---- tensors ----

static const char *bool_word(bool b) { return b ? "true" : "false"; }

static void add_index(tide_text *out, const char *key, uint32_t index) {
    if (index == TIDE_NO_INDEX) {
        tide_text_addf(out, ", \"%s\": null", key);
    } else {
        tide_text_addf(out, ", \"%s\": %" PRIu32, key, index);
    }
}

static void add_gaps(tide_text *out, const tide_lifetime *item) {
    if (item->n_gaps == 0) return;
    tide_text_add(out, ", \"gaps\": [");
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *gap = &item->gaps[k];
        tide_text_addf(out, "%s{\"begin\": %" PRId64 ", \"end\": %" PRId64, k > 0 ? ", " : "", gap->begin_step,
                       gap->end_step);
        if (gap->hi_bytes > 0)
            tide_text_addf(out, ", \"lo\": %" PRIu64 ", \"hi\": %" PRIu64, gap->lo_bytes, gap->hi_bytes);
        tide_text_add(out, "}");
    }
    tide_text_add(out, "]");
}

static void add_point_bytes(tide_text *out, const tide_lifetimes *lt, const tide_lifetime *item) {
    if (item->point_bytes == NULL || lt->n_points == 0) return;
    tide_text_add(out, ", \"point_bytes\": [");
    for (size_t k = 0; k < lt->n_points; k++)
        tide_text_addf(out, "%s%" PRIu64, k > 0 ? ", " : "", item->point_bytes[k]);
    tide_text_add(out, "]");
}

static void add_alias(tide_text *out, const tide_lifetimes *lt, const tide_lifetime *item) {
    if (item->alias == TIDE_ALIAS_NONE) return;
    tide_text_addf(out, ", \"alias\": {\"kind\": \"%s\", ", tide_alias_kind_name(item->alias));
    tide__doc_add_key_string(out, "of", lt->items[item->alias_of].name);
    tide_text_addf(out, ", \"offset\": %" PRIu64 "}", item->alias_offset_bytes);
}

void tide__lifetimes_json_add_tensor(tide_text *out, const tide_lifetimes *lt, size_t i, uint64_t fixed_offset) {
    const tide_lifetime *item = &lt->items[i];
    char device[16];
    tide_text_add(out, "\n    {");
    tide__doc_add_key_string(out, "name", item->name);
    tide_text_addf(out, ", \"size_bytes\": %" PRIu64 ", \"begin\": %" PRId64 ", \"end\": %" PRId64, item->size_bytes,
                   item->begin_step, item->end_step);
    tide_text_addf(out, ", \"birth\": %" PRId64 ", \"death\": %" PRId64, item->begin_step, item->end_step - 1);
    tide_text_addf(out, ", \"kind\": \"%s\", \"persistent\": %s, \"role\": \"%s\"", tide_memory_kind_name(item->kind),
                   bool_word(item->persistent), tide_role_name(item->role));
    tide_text_addf(out, ", \"device\": \"%s\"", tide_device_format(item->device, device, sizeof device));
    tide_text_addf(out, ", \"align_bytes\": %" PRIu64 ", \"aligned_bytes\": %" PRIu64, item->align_bytes,
                   tide_lifetime_aligned_bytes(item));
    add_index(out, "node", item->node);
    add_index(out, "port", item->port);
    add_index(out, "value", item->value);
    add_alias(out, lt, item);
    add_gaps(out, item);
    if (fixed_offset != TIDE_NO_OFFSET) tide_text_addf(out, ", \"fixed_offset\": %" PRIu64, fixed_offset);
    if (item->apart_set != 0) tide_text_addf(out, ", \"apart\": %" PRIu32, item->apart_set);
    if (item->unrounded) tide_text_add(out, ", \"unrounded\": true");
    add_point_bytes(out, lt, item);
}

// ---- the document ----

/// An alias has no place of its own, so that nothing can be fixed about it.
static uint64_t fixed_offset_of(const tide_lifetimes *lt, const tide_memory_plan *plan, size_t i) {
    if (lt->items[i].alias != TIDE_ALIAS_NONE) return TIDE_NO_OFFSET;
    if (plan != NULL) return plan->offsets[i];
    return lt->items[i].fixed ? lt->items[i].fixed_offset_bytes : TIDE_NO_OFFSET;
}

tide_status tide_lifetimes_to_json(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                   tide_error *err) {
    tide_text own = {0};
    tide_text_addf(&own, "{\n  \"schema\": \"%s\",\n  \"version\": %d,\n  ", TIDE_LIFETIMES_SCHEMA,
                   TIDE_LIFETIMES_SCHEMA_VERSION);
    tide__doc_add_key_string(&own, "model", lt->model != NULL ? lt->model : "");
    tide_text_addf(&own, ",\n  \"n_steps\": %" PRId64 ",\n", lt->n_steps);
    tide__lifetimes_json_add_names(&own, lt);
    tide_text_add(&own, "  \"tensors\": [");
    for (size_t i = 0; i < lt->n; i++) {
        if (i > 0) tide_text_add(&own, ",");
        tide__lifetimes_json_add_tensor(&own, lt, i, fixed_offset_of(lt, plan, i));
        tide_text_add(&own, "}");
    }
    tide_text_add(&own, lt->n > 0 ? "\n  ]\n}\n" : "]\n}\n");
    if (!own.failed) tide_text_add_n(out, own.data, own.len);
    const bool failed = own.failed || out->failed;
    tide_text_deinit(&own);
    return failed ? TIDE_NO_MEMORY(err, "for a document of %zu lifetimes", lt->n) : TIDE_OK;
}
