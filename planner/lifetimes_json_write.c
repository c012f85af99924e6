// SPDX-License-Identifier: MIT
//
// Writer of a table of lifetimes in JSON: one tensor a line, so that `diff` shows what changed. Keys keep their order;
// those that say nothing new are left out.
#include <inttypes.h>
#include <string.h>

#include "core/base/utf8.h"
#include "planner/lifetimes_json.h"
#include "planner/planner.h"

void tide__doc_add_string(tide_text *out, const char *text) {
    tide_text_add(out, "\"");
    tide_utf8_add_json(out, text);
    tide_text_add(out, "\"");
}

void tide__doc_add_key_string(tide_text *out, const char *key, const char *text) {
    tide_text_addf(out, "\"%s\": ", key);
    tide__doc_add_string(out, text);
}

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
    return failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a document of %zu lifetimes", lt->n) : TIDE_OK;
}
