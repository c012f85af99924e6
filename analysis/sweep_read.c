// SPDX-License-Identifier: MIT
//
// `tidemark.sweep` read back: every key is known, every value of its type, and what contradicts itself is refused.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/sweep_internal.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"

/// An object at work: where it stands, and what is wrong with it.
typedef struct reader {
    const json_t *object;
    char place[320]; // "old.json: points[3]"
    tide_error *err;
    tide_status st;
} reader;

static void wrong(reader *r, const char *key, const char *fmt, ...) TIDE_PRINTF(3, 4);
static void wrong(reader *r, const char *key, const char *fmt, ...) {
    char why[160];
    va_list ap;
    if (r->st != TIDE_OK) return;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    r->st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s: '%s' %s", r->place, key, why);
}

static reader read_object(const json_t *object, const char *const *keys, size_t n_keys, tide_error *err,
                          const char *fmt, ...) TIDE_PRINTF(5, 6);
/// Refuses what is no object and keys that are not among `keys`.
static reader read_object(const json_t *object, const char *const *keys, size_t n_keys, tide_error *err,
                          const char *fmt, ...) {
    reader r = {.object = object, .err = err, .st = TIDE_OK};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r.place, sizeof r.place, fmt, ap);
    va_end(ap);
    if (!json_is_object(object)) {
        r.st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s: is no object", r.place);
        return r;
    }
    json_t *all =
        json_incref((json_t *)(uintptr_t)object); // iterating wants one that is not const, and changes nothing
    const char *key;
    json_t *value;
    json_object_foreach(all, key, value) {
        size_t k = 0;
        while (k < n_keys && strcmp(keys[k], key) != 0) k++;
        if (k < n_keys || r.st != TIDE_OK) continue;
        wrong(&r, key, "is no key that is known here");
        const char *meant = tide_nearest_of(key, keys, n_keys);
        if (meant != NULL) tide_error_hint(err, "did you mean '%s'?", meant);
    }
    json_decref(all);
    return r;
}

static const json_t *get(reader *r, const char *key) {
    const json_t *value = r->st == TIDE_OK ? json_object_get(r->object, key) : NULL;
    if (value == NULL) wrong(r, key, "is missing");
    return value;
}

static uint64_t get_number(reader *r, const char *key) {
    const json_t *value = get(r, key);
    if (value == NULL) return 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0) return (uint64_t)json_integer_value(value);
    wrong(r, key, "is no whole number of 0 or more");
    return 0;
}

/// Null unless `known`, and a number with it.
static uint64_t get_number_if(reader *r, const char *key, bool known) {
    if (known) return get_number(r, key);
    const json_t *value = get(r, key);
    if (value != NULL && !json_is_null(value)) wrong(r, key, "should be null");
    return 0;
}

static bool get_bool_if(reader *r, const char *key, bool known) {
    const json_t *value = get(r, key);
    if (value == NULL) return false;
    if (known ? !json_is_boolean(value) : !json_is_null(value))
        wrong(r, key, known ? "is neither true nor false" : "should be null");
    return json_is_true(value);
}

static char *get_text(reader *r, const char *key) {
    const json_t *value = get(r, key);
    if (value == NULL) return NULL;
    if (!json_is_string(value)) {
        wrong(r, key, "is no string");
        return NULL;
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        wrong(r, key, "holds a NUL character");
        return NULL;
    }
    char *copy = tide_host_strdup(json_string_value(value));
    if (copy == NULL) r->st = TIDE_FAIL(r->err, TIDE_ERR_NOMEM, "no memory for a text");
    return copy;
}

static bool is_null(const reader *r, const char *key) { return json_is_null(json_object_get(r->object, key)); }

// ---- points ----

static const char *const point_keys[] = {
    "model",         "sizes",         "strategy",     "align_bytes",         "value",       "total_bytes",
    "planned_bytes", "weights_bytes", "io_bytes",     "other_bytes",         "naive_bytes", "lower_bound_bytes",
    "proved_bytes",  "proven",        "plan_time_ns", "measured_peak_bytes", "time_ns",     "error",
    "rank",
};

static void check_point(reader *r, const tide_sweep *s, const tide_sweep_point *p) {
    if (r->st != TIDE_OK) return;
    uint64_t sum = 0;
    if (tide__sweep_rest(s->extent, p) == NULL)
        wrong(r, "sizes", "does not begin with '%.40s=%" PRIu64 "'", s->extent, p->value);
    if (!tide_is_pow2(p->align_bytes)) wrong(r, "align_bytes", "is no power of two");
    if (p->error != NULL) return;
    const bool adds_up = tide_add_u64(p->planned_bytes, p->weights_bytes, &sum) &&
                         tide_add_u64(sum, p->io_bytes, &sum) && tide_add_u64(sum, p->other_bytes, &sum) &&
                         sum == p->total_bytes;
    if (!adds_up) wrong(r, "total_bytes", "is not the sum of planned, weights, io and other bytes");
    if (p->proven && p->proved_bytes != p->planned_bytes) wrong(r, "proven", "contradicts proved_bytes");
}

static tide_status read_point(const json_t *object, const char *where, size_t i, tide_sweep *s, tide_error *err) {
    reader r =
        read_object(object, point_keys, sizeof point_keys / sizeof point_keys[0], err, "%.250s: points[%zu]", where, i);
    if (r.st != TIDE_OK) return r.st;
    const bool known = is_null(&r, "error"), measured = known && !is_null(&r, "measured_peak_bytes");
    tide_sweep_point p = {.measured = measured};
    p.model = get_text(&r, "model");
    p.sizes = get_text(&r, "sizes");
    p.strategy = get_text(&r, "strategy");
    p.align_bytes = get_number(&r, "align_bytes");
    p.value = get_number_if(&r, "value", s->extent[0] != '\0');
    p.total_bytes = get_number_if(&r, "total_bytes", known);
    p.planned_bytes = get_number_if(&r, "planned_bytes", known);
    p.weights_bytes = get_number_if(&r, "weights_bytes", known);
    p.io_bytes = get_number_if(&r, "io_bytes", known);
    p.other_bytes = get_number_if(&r, "other_bytes", known);
    p.naive_bytes = get_number_if(&r, "naive_bytes", known);
    p.lower_bound_bytes = get_number_if(&r, "lower_bound_bytes", known);
    p.proved_bytes = get_number_if(&r, "proved_bytes", known);
    p.proven = get_bool_if(&r, "proven", known);
    p.plan_time_ns = get_number_if(&r, "plan_time_ns", known);
    p.measured_peak_bytes = get_number_if(&r, "measured_peak_bytes", measured);
    p.time_ns = get_number_if(&r, "time_ns", measured);
    if (!known) p.error = get_text(&r, "error");
    const uint64_t rank = get_number(&r, "rank");
    p.rank = (uint32_t)rank;
    if (rank > UINT32_MAX) wrong(&r, "rank", "is no rank");
    check_point(&r, s, &p);
    if (r.st == TIDE_OK) return tide_sweep_add(s, &p, err);
    tide__sweep_point_deinit(&p);
    return r.st;
}

// ---- series and answers ----

/// They follow from the points: what the document says of them has to be the same.
static tide_status check_series(const json_t *list, const char *where, const tide_sweep *s, tide_error *err) {
    static const char *const keys[] = {"model", "sizes", "strategy", "align_bytes", "from", "n"};
    if (json_array_size(list) != s->n_series)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s: 'series' has %zu entries, the points make %zu", where,
                         json_array_size(list), s->n_series);
    for (size_t i = 0; i < s->n_series; i++) {
        const tide_sweep_series *one = &s->series[i];
        reader r = read_object(json_array_get(list, i), keys, sizeof keys / sizeof keys[0], err, "%.250s: series[%zu]",
                               where, i);
        char *model = get_text(&r, "model"), *sizes = get_text(&r, "sizes"), *strategy = get_text(&r, "strategy");
        const uint64_t align = get_number(&r, "align_bytes"), from = get_number(&r, "from"), n = get_number(&r, "n");
        if (r.st == TIDE_OK &&
            (strcmp(model, one->model) != 0 || strcmp(sizes, one->sizes) != 0 || strcmp(strategy, one->strategy) != 0 ||
             align != one->align_bytes || from != one->from || n != one->n))
            wrong(&r, "from", "is not what the points make of it");
        tide_host_free(model);
        tide_host_free(sizes);
        tide_host_free(strategy);
        TIDE_TRY(r.st);
    }
    return TIDE_OK;
}

static tide_status read_answer(const json_t *object, const char *where, size_t i, tide_sweep *s, tide_error *err) {
    static const char *const keys[] = {"series",      "budget_bytes", "none_fits",  "is_open", "value",
                                       "total_bytes", "next_value",   "next_bytes", "ran",     "next_ran"};
    reader r = read_object(object, keys, sizeof keys / sizeof keys[0], err, "%.250s: answers[%zu]", where, i);
    tide_sweep_answer a = {.series = (size_t)get_number(&r, "series"),
                           .budget_bytes = get_number(&r, "budget_bytes"),
                           .none_fits = get_bool_if(&r, "none_fits", true),
                           .is_open = get_bool_if(&r, "is_open", true)};
    a.value = get_number_if(&r, "value", !a.none_fits);
    a.total_bytes = get_number_if(&r, "total_bytes", !a.none_fits);
    a.next_value = get_number_if(&r, "next_value", !a.is_open);
    a.next_bytes = get_number_if(&r, "next_bytes", !a.is_open);
    a.tried = r.st == TIDE_OK && !is_null(&r, a.none_fits ? "next_ran" : "ran");
    a.ran = get_bool_if(&r, "ran", a.tried && !a.none_fits);
    a.next_ran = get_bool_if(&r, "next_ran", a.tried && !a.is_open);
    if (r.st == TIDE_OK && a.series >= s->n_series) wrong(&r, "series", "is %zu, there are %zu", a.series, s->n_series);
    if (r.st == TIDE_OK && a.none_fits && a.is_open) wrong(&r, "is_open", "contradicts none_fits");
    if (r.st == TIDE_OK && !a.none_fits && a.total_bytes > a.budget_bytes) wrong(&r, "total_bytes", "does not fit");
    if (r.st == TIDE_OK && !a.is_open && a.next_bytes <= a.budget_bytes) wrong(&r, "next_bytes", "fits");
    return r.st == TIDE_OK ? tide_sweep_add_answer(s, &a, err) : r.st;
}

// ---- document ----

static tide_status check_head(const json_t *doc, const char *where, tide_error *err) {
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    if (!json_is_object(doc) || schema == NULL || strcmp(schema, "tidemark.sweep") != 0) {
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s: is no sweep", where);
        tide_error_hint(err, "tidemark sweep … -o sweep.json writes one");
        return TIDE_ERR_BAD_INPUT;
    }
    const json_t *version = json_object_get(doc, "version");
    if (json_is_integer(version) && json_integer_value(version) == 1) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s: is not of version 1, which this program reads", where);
}

static tide_status read_list(reader *r, const char *key, const json_t **list) {
    *list = get(r, key);
    if (r->st == TIDE_OK && !json_is_array(*list)) wrong(r, key, "is no list");
    return r->st;
}

static tide_status read_lists(reader *r, const char *where, tide_sweep *out, tide_error *err) {
    const json_t *points, *series, *answers;
    TIDE_TRY(read_list(r, "points", &points));
    TIDE_TRY(read_list(r, "series", &series));
    TIDE_TRY(read_list(r, "answers", &answers));
    for (size_t i = 0; i < json_array_size(points); i++)
        TIDE_TRY(read_point(json_array_get(points, i), where, i, out, err));
    const size_t n = out->n;
    TIDE_TRY(tide_sweep_sort(out, err));
    if (out->n != n)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s: 'points' has %zu that are there twice", where, n - out->n);
    TIDE_TRY(check_series(series, where, out, err));
    for (size_t i = 0; i < json_array_size(answers); i++)
        TIDE_TRY(read_answer(json_array_get(answers, i), where, i, out, err));
    return TIDE_OK;
}

tide_status tide_sweep_of_json(const json_t *doc, const char *where, tide_sweep *out, tide_error *err) {
    static const char *const keys[] = {"schema", "version", "extent", "n_ranks", "points", "series", "answers"};
    *out = (tide_sweep){0};
    TIDE_TRY(check_head(doc, where, err));
    reader r = read_object(doc, keys, sizeof keys / sizeof keys[0], err, "%.250s", where);
    out->extent = get_text(&r, "extent");
    const uint64_t n_ranks = get_number(&r, "n_ranks");
    if (r.st == TIDE_OK && (n_ranks == 0 || n_ranks > UINT32_MAX)) wrong(&r, "n_ranks", "is no number of processes");
    out->n_ranks = (uint32_t)n_ranks;
    tide_status st = r.st;
    if (st == TIDE_OK) st = read_lists(&r, where, out, err);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    return st;
}
