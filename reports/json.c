// SPDX-License-Identifier: MIT
//
// JSON: the whole timeline as "tidemark.report", keys in a fixed order, sizes as integers of bytes, null for what is
// unknown; and the shorter form that the HTML page carries. Times are as on the axis.
#include "reports/render.h"

#include <jansson.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "reports/escape.h"

// ---- values: jansson steals every reference; a NULL among them makes the whole document fail ----

/// jansson's integers end at 2^63 - 1; what is larger keeps its magnitude as a real.
static json_t *bytes_value(uint64_t bytes) {
    return bytes <= INT64_MAX ? json_integer((json_int_t)bytes) : json_real((double)bytes);
}

static json_t *bytes_or_null(uint64_t bytes, uint64_t unknown) {
    return bytes == unknown ? json_null() : bytes_value(bytes);
}

static json_t *text_value(const char *text) {
    tide_text clean = {0};
    tide_report_add_utf8(&clean, text != NULL ? text : "");
    json_t *value = clean.failed ? NULL : json_stringn(tide_text_str(&clean), clean.len);
    tide_text_deinit(&clean);
    return value;
}

static json_t *text_or_null(const char *text) {
    return text != NULL && text[0] != '\0' ? text_value(text) : json_null();
}

static json_t *real_or_null(bool known, double value) { return known ? json_real(value) : json_null(); }

/// Set or append; remembers a failure in *ok.
static void set(json_t *object, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(object, key, value) != 0) *ok = false;
}

static void append(json_t *array, json_t *value, bool *ok) {
    if (json_array_append_new(array, value) != 0) *ok = false;
}

// ---- parts ----

static json_t *peak_part(const tide_timeline *tl, bool *ok) {
    json_t *o = json_object();
    set(o, "bytes", bytes_value(tl->peak_bytes), ok);
    set(o, "t", json_integer(tl->peak_t), ok);
    return o;
}

static json_t *plan_part(const tide_timeline *tl, bool *ok) {
    if (!tl->has_plan) return json_null();
    double gap = 0.0, saving = 0.0;
    const bool has_gap = tide_report_gap(tl, &gap), has_saving = tide_report_saving(tl, &saving);
    json_t *o = json_object();
    set(o, "bytes", bytes_value(tl->plan_bytes), ok);
    set(o, "naive_bytes", bytes_value(tl->naive_bytes), ok);
    set(o, "lower_bound_bytes", bytes_value(tl->lower_bound_bytes), ok);
    set(o, "gap", real_or_null(has_gap, gap), ok);
    set(o, "saving", real_or_null(has_saving, saving), ok);
    return o;
}

static json_t *kinds_part(const tide_timeline *tl, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < tl->n_kinds; i++) {
        const tide_trace_kind *k = &tl->kinds[i];
        const bool both = k->predicted_bytes != TIDE_UNKNOWN_BYTES && k->peak_bytes != TIDE_UNKNOWN_BYTES;
        json_t *o = json_object();
        set(o, "kind", text_value(tide_memory_kind_name(k->kind)), ok);
        set(o, "device", text_value(k->device), ok);
        set(o, "predicted_bytes", bytes_or_null(k->predicted_bytes, TIDE_UNKNOWN_BYTES), ok);
        set(o, "measured_bytes", bytes_or_null(k->peak_bytes, TIDE_UNKNOWN_BYTES), ok);
        set(o, "difference_bytes", both ? json_integer((json_int_t)(k->predicted_bytes - k->peak_bytes)) : json_null(),
            ok);
        set(o, "reserved_peak_bytes", bytes_or_null(k->peak_reserved_bytes, TIDE_UNKNOWN_BYTES), ok);
        append(list, o, ok);
    }
    return list;
}

static json_t *pools_part(const tide_timeline *tl, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; tl->plan != NULL && i < tl->plan->n_pools; i++) {
        const tide_plan_pool *p = &tl->plan->pool_list[i];
        json_t *o = json_object();
        set(o, "pool", json_integer((json_int_t)i), ok);
        set(o, "size_bytes", bytes_value(p->size_bytes), ok);
        set(o, "offset_bytes", bytes_value(p->offset_bytes), ok);
        set(o, "n_members", json_integer((json_int_t)p->n_members), ok);
        append(list, o, ok);
    }
    return list;
}

static json_t *steps_part(const tide_timeline *tl, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < tl->n_steps; i++) {
        json_t *o = json_object();
        set(o, "begin", json_integer(tl->step_begin[i]), ok);
        set(o, "name", text_value(tl->step_names[i]), ok);
        append(list, o, ok);
    }
    return list;
}

static const char *role_text(const tide_timeline *tl, const tide_timeline_item *item) {
    return tide_report_knows_role(tl, item) ? tide_role_name(item->role) : NULL;
}

static json_t *pool_value(const tide_timeline_item *item) {
    return item->pool == TIDE_NO_POOL ? json_null() : json_integer(item->pool);
}

/// The fields of an item, once for the objects of the report and the rows of the page's data: a value, a time
/// on the axis, a word that many items share, or a flag.
#define ITEM_FIELDS(VALUE, TIME, WORD, FLAG)                                                                           \
    VALUE("id", bytes_value(item->id))                                                                                 \
    VALUE("name", text_value(item->name))                                                                              \
    WORD("owner", item->owner)                                                                                         \
    WORD("kind", tide_memory_kind_name(item->kind))                                                                    \
    WORD("role", role_text(tl, item))                                                                                  \
    VALUE("size_bytes", bytes_value(item->size_bytes))                                                                 \
    VALUE("reserved_bytes", bytes_value(item->reserved_bytes))                                                         \
    TIME("begin", item->begin)                                                                                         \
    TIME("end", item->end)                                                                                             \
    FLAG("open_ended", item->open_ended)                                                                               \
    FLAG("persistent", item->persistent)                                                                               \
    VALUE("pool", pool_value(item))                                                                                    \
    VALUE("offset_bytes", bytes_or_null(item->offset_bytes, TIDE_NO_OFFSET))

static json_t *items_part(const tide_timeline *tl, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < tl->n_items; i++) {
        const tide_timeline_item *item = &tl->items[i];
        json_t *o = json_object();
#define VALUE(key, value) set(o, key, value, ok);
#define TIME(key, t) set(o, key, json_integer(t), ok);
#define WORD(key, text) set(o, key, text_or_null(text), ok);
#define FLAG(key, flag) set(o, key, json_boolean(flag), ok);
        ITEM_FIELDS(VALUE, TIME, WORD, FLAG)
#undef VALUE
#undef TIME
#undef WORD
#undef FLAG
        const char *inside = tide_timeline_inside(tl, item);
        set(o, "alias", inside != NULL ? text_value(tide_alias_kind_name(item->alias)) : json_null(), ok);
        set(o, "inside", text_or_null(inside), ok);
        append(list, o, ok);
    }
    return list;
}

// ---- the page's data: each word once, rows refer to it by its place ----

typedef struct words {
    json_t *list;
    tide_strmap places;
} words;

static json_t *word_value(words *w, const char *text, bool *ok) {
    if (text == NULL || text[0] == '\0') return json_null();
    uint64_t place = w->places.n;
    if (!tide_strmap_get(&w->places, text, &place)) {
        if (tide_strmap_put(&w->places, text, place) != TIDE_OK) *ok = false;
        append(w->list, text_value(text), ok);
    }
    return json_integer((json_int_t)place);
}

static json_t *columns_part(bool *ok) {
    json_t *list = json_array();
#define XX(key, value) append(list, json_string(key), ok);
#define TIME(key, t) append(list, json_string("relative_" key), ok);
    ITEM_FIELDS(XX, TIME, XX, XX)
#undef TIME
#undef XX
    return list;
}

static json_t *word_columns_part(bool *ok) {
    json_t *list = json_array();
#define NONE(key, value)
#define XX(key, value) append(list, json_string(key), ok);
    ITEM_FIELDS(NONE, NONE, XX, NONE)
#undef XX
#undef NONE
    return list;
}

static json_t *rows_part(const tide_timeline *tl, const size_t *items, size_t n, words *w, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const tide_timeline_item *item = &tl->items[items[i]];
        json_t *row = json_array();
#define VALUE(key, value) append(row, value, ok);
#define TIME(key, t) append(row, bytes_value((uint64_t)(t) - (uint64_t)tl->begin), ok);
#define WORD(key, text) append(row, word_value(w, text, ok), ok);
#define FLAG(key, flag) append(row, json_integer(flag), ok);
        ITEM_FIELDS(VALUE, TIME, WORD, FLAG)
#undef VALUE
#undef TIME
#undef WORD
#undef FLAG
        append(list, row, ok);
    }
    return list;
}

static json_t *curve_part(const tide_timeline *tl, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < tl->n_points; i++) {
        json_t *o = json_object();
        set(o, "t", json_integer(tl->curve[i].t), ok);
        set(o, "bytes", bytes_value(tl->curve[i].bytes), ok);
        append(list, o, ok);
    }
    return list;
}

/// What both documents begin with.
static json_t *document(const tide_timeline *tl, const char *schema, bool *ok) {
    json_t *doc = json_object();
    set(doc, "schema", json_string(schema), ok);
    set(doc, "version", json_integer(1), ok);
    set(doc, "title", text_value(tl->title), ok);
    set(doc, "model", text_or_null(tl->model), ok);
    set(doc, "mode", text_or_null(tl->mode), ok);
    set(doc, "strategy", text_or_null(tl->strategy), ok);
    set(doc, "axis", json_string(tl->axis == TIDE_AXIS_STEPS ? "steps" : "ns"), ok);
    set(doc, "begin", json_integer(tl->begin), ok);
    set(doc, "end", json_integer(tl->end), ok);
    set(doc, "n_items", json_integer((json_int_t)tl->n_items), ok);
    set(doc, "peak", peak_part(tl, ok), ok);
    set(doc, "plan", plan_part(tl, ok), ok);
    set(doc, "kinds", kinds_part(tl, ok), ok);
    set(doc, "pools", pools_part(tl, ok), ok);
    return doc;
}

// ---- out ----

static int add_chunk(const char *bytes, size_t n, void *text) {
    tide_text_add_n(text, bytes, n);
    return ((tide_text *)text)->failed ? -1 : 0;
}

static tide_status finish(const tide_timeline *tl, json_t *doc, bool ok, size_t flags, tide_text *out,
                          tide_error *err) {
    if (ok && doc != NULL) ok = json_dump_callback(doc, add_chunk, out, flags | JSON_REAL_PRECISION(6)) == 0;
    json_decref(doc);
    return ok ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a JSON report of %zu items", tl->n_items);
}

tide_status tide_report_json(const tide_timeline *tl, tide_text *out, tide_error *err) {
    bool ok = true;
    json_t *doc = document(tl, "tidemark.report", &ok);
    set(doc, "steps", steps_part(tl, &ok), &ok);
    set(doc, "items", items_part(tl, &ok), &ok);
    set(doc, "curve", curve_part(tl, &ok), &ok);
    TIDE_TRY(finish(tl, doc, ok, JSON_INDENT(2), out, err));
    tide_text_add(out, "\n");
    return TIDE_OK;
}

tide_status tide_report_json_data(const tide_timeline *tl, tide_text *out, tide_error *err) {
    size_t *items, n;
    TIDE_TRY(tide_report_largest(tl, TIDE_REPORT_MAX_ROWS, &items, &n, err));
    bool ok = true;
    json_t *doc = document(tl, "tidemark.report.data", &ok);
    words w = {.list = json_array()};
    json_t *rows = rows_part(tl, items, n, &w, &ok);
    set(doc, "columns", columns_part(&ok), &ok);
    set(doc, "word_columns", word_columns_part(&ok), &ok);
    set(doc, "words", w.list, &ok);
    set(doc, "rows", rows, &ok);
    tide_strmap_deinit(&w.places);
    tide_host_free(items);
    return finish(tl, doc, ok, JSON_COMPACT, out, err);
}
