// SPDX-License-Identifier: MIT
//
// The table of a sweep: points in order, the series they make, parts of several processes put together. See sweep.h.
#include "analysis/sweep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/nearest.h"

static void point_deinit(tide_sweep_point *p) {
    tide_host_free(p->model);
    tide_host_free(p->sizes);
    tide_host_free(p->strategy);
    tide_host_free(p->error);
    *p = (tide_sweep_point){0};
}

void tide_sweep_deinit(tide_sweep *s) {
    for (size_t i = 0; i < s->n; i++) point_deinit(&s->points[i]);
    tide_host_free(s->points);
    tide_host_free(s->series);
    tide_host_free(s->answers);
    tide_host_free(s->extent);
    *s = (tide_sweep){0};
}

tide_status tide_sweep_add(tide_sweep *s, tide_sweep_point *p, tide_error *err) {
    if (tide_host_grow(&s->points, &s->cap, s->n + 1, sizeof *s->points) != TIDE_OK) {
        point_deinit(p);
        return TIDE_NO_MEMORY(err, "for %zu points", s->n + 1);
    }
    s->points[s->n++] = *p;
    *p = (tide_sweep_point){0};
    return TIDE_OK;
}

static const char *sizes_besides(const char *extent, const tide_sweep_point *p) {
    if (extent == NULL || extent[0] == '\0') return p->sizes;
    char value[24];
    const size_t name = strlen(extent);
    const size_t digits = (size_t)snprintf(value, sizeof value, "=%" PRIu64, p->value);
    if (strncmp(p->sizes, extent, name) != 0 || strncmp(p->sizes + name, value, digits) != 0) return NULL;
    const char *rest = p->sizes + name + digits;
    return *rest == ' ' ? rest + 1 : *rest == '\0' ? rest : NULL;
}

// ---- order ----

/// Texts with numbers in them as people sort them: "S=64" before "S=128".
static int compare_texts(const char *a, const char *b) {
    const int natural = strverscmp(a, b);
    return natural != 0 ? natural : strcmp(a, b);
}

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/// Of two points, by all but the value.
static int compare_series(const tide_sweep_point *a, const tide_sweep_point *b, const char *extent) {
    const char *rest_a = sizes_besides(extent, a), *rest_b = sizes_besides(extent, b);
    int c = compare_texts(a->model, b->model);
    if (c == 0) c = compare_texts(rest_a != NULL ? rest_a : a->sizes, rest_b != NULL ? rest_b : b->sizes);
    if (c == 0) c = strcmp(a->strategy, b->strategy);
    return c != 0 ? c : compare_u64(a->align_bytes, b->align_bytes);
}

static int compare_points(const void *x, const void *y, void *extent) {
    const tide_sweep_point *a = x, *b = y;
    int c = compare_series(a, b, extent);
    if (c == 0) c = compare_u64(a->value, b->value);
    if (c == 0) c = (a->error != NULL) - (b->error != NULL); // the first one stays: one with figures
    if (c == 0) c = (b->measured != 0) - (a->measured != 0);
    return c != 0 ? c : compare_u64(a->rank, b->rank);
}

static void drop_doubles(tide_sweep *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        tide_sweep_point *p = &s->points[i];
        if (kept > 0 && compare_series(&s->points[kept - 1], p, s->extent) == 0 &&
            s->points[kept - 1].value == p->value) {
            point_deinit(p);
            continue;
        }
        if (kept != i) s->points[kept] = *p;
        kept++;
    }
    s->n = kept;
}

static tide_status make_series(tide_sweep *s, tide_error *err) {
    tide_sweep_series *list;
    TIDE_TRY(TIDE_NEW(&list, s->n + 1, err, "for %zu series", s->n));
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const tide_sweep_point *p = &s->points[i];
        if (i > 0 && compare_series(&s->points[i - 1], p, s->extent) == 0) {
            list[n - 1].n++;
            continue;
        }
        const char *rest = sizes_besides(s->extent, p);
        list[n++] = (tide_sweep_series){.model = p->model,
                                        .sizes = rest != NULL ? rest : p->sizes,
                                        .strategy = p->strategy,
                                        .align_bytes = p->align_bytes,
                                        .from = i,
                                        .n = 1};
    }
    tide_host_free(s->series);
    s->series = list;
    s->n_series = n;
    return TIDE_OK;
}

tide_status tide_sweep_sort(tide_sweep *s, tide_error *err) {
    if (s->n > 0) qsort_r(s->points, s->n, sizeof *s->points, compare_points, s->extent);
    drop_doubles(s);
    return make_series(s, err);
}

// ---- finding ----

bool tide_sweep_find(const tide_sweep *s, const char *model, const char *sizes, const char *strategy,
                     uint64_t align_bytes, size_t *series) {
    for (size_t i = 0; i < s->n_series; i++) {
        const tide_sweep_series *one = &s->series[i];
        if (one->align_bytes != align_bytes || strcmp(one->strategy, strategy) != 0 || strcmp(one->sizes, sizes) != 0 ||
            strcmp(one->model, model) != 0)
            continue;
        *series = i;
        return true;
    }
    return false;
}

const tide_sweep_point *tide_sweep_at(const tide_sweep *s, size_t series, uint64_t value) {
    if (series >= s->n_series) return NULL;
    size_t lo = s->series[series].from, hi = lo + s->series[series].n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->points[mid].value == value) return &s->points[mid];
        if (s->points[mid].value < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static int compare_answers(const tide_sweep_answer *a, const tide_sweep_answer *b) {
    const int c = compare_u64(a->series, b->series);
    return c != 0 ? c : compare_u64(a->budget_bytes, b->budget_bytes);
}

tide_status tide_sweep_add_answer(tide_sweep *s, const tide_sweep_answer *a, tide_error *err) {
    tide_sweep_answer *grown = tide_host_realloc(s->answers, (s->n_answers + 1) * sizeof *grown);
    if (grown == NULL) return TIDE_NO_MEMORY(err, "for %zu answers", s->n_answers + 1);
    s->answers = grown;
    size_t at = s->n_answers++;
    for (; at > 0 && compare_answers(&grown[at - 1], a) > 0; at--) grown[at] = grown[at - 1];
    grown[at] = *a;
    return TIDE_OK;
}

// ---- parts ----

static tide_status take_points(tide_sweep *from, tide_sweep *out, tide_error *err) {
    for (size_t i = 0; i < from->n; i++) TIDE_TRY(tide_sweep_add(out, &from->points[i], err));
    return TIDE_OK;
}

/// The names of a series are borrowed from its points: what an answer is about is noted before those move.
typedef struct pending {
    tide_sweep_answer answer;
    const char *model, *sizes, *strategy;
    uint64_t align_bytes;
} pending;

static size_t note_answers(const tide_sweep *from, pending *list) {
    for (size_t i = 0; i < from->n_answers; i++) {
        const tide_sweep_series *of = &from->series[from->answers[i].series];
        list[i] = (pending){from->answers[i], of->model, of->sizes, of->strategy, of->align_bytes};
    }
    return from->n_answers;
}

/// Moves the points; texts stay where they are, so that what `list` borrows remains good unless it was a double.
static tide_status merge(tide_sweep *parts, size_t n, pending *list, tide_sweep *out, tide_error *err) {
    size_t n_pending = 0;
    for (size_t k = 0; k < n; k++) {
        if (parts[k].extent == NULL || strcmp(parts[k].extent, out->extent) != 0)
            return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "part %zu sweeps '%s', the first one '%s'", k,
                             parts[k].extent != NULL ? parts[k].extent : "", out->extent);
        n_pending += note_answers(&parts[k], list + n_pending);
        TIDE_TRY(take_points(&parts[k], out, err));
    }
    // Answers are found before doubles go: sorting alone frees no text.
    if (out->n > 0) qsort_r(out->points, out->n, sizeof *out->points, compare_points, out->extent);
    TIDE_TRY(make_series(out, err));
    for (size_t i = 0; i < n_pending; i++) {
        const pending *p = &list[i];
        tide_sweep_answer a = p->answer;
        if (!tide_sweep_find(out, p->model, p->sizes, p->strategy, p->align_bytes, &a.series))
            return TIDE_FAIL(err, TIDE_ERR_UNKNOWN, "an answer about '%s' has no points", p->model);
        TIDE_TRY(tide_sweep_add_answer(out, &a, err));
    }
    drop_doubles(out);
    return make_series(out, err);
}

tide_status tide_sweep_merge(tide_sweep *parts, size_t n, tide_sweep *out, tide_error *err) {
    *out = (tide_sweep){.n_ranks = (uint32_t)n};
    size_t n_answers = 0;
    for (size_t k = 0; k < n; k++) n_answers += parts[k].n_answers;
    pending *list = tide_host_calloc(n_answers + 1, sizeof *list);
    out->extent = tide_host_strdup(n > 0 && parts[0].extent != NULL ? parts[0].extent : "");
    tide_status st =
        list != NULL && out->extent != NULL ? merge(parts, n, list, out, err) : TIDE_NO_MEMORY(err, "for a sweep");
    for (size_t k = 0; k < n; k++) tide_sweep_deinit(&parts[k]);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    tide_host_free(list);
    return st;
}

// ---- the largest value that fits ----
// Doubling, then halving the interval, then the neighbours.

typedef struct search {
    uint64_t hi, budget;
    tide_sweep_ask ask;
    void *ctx;
    uint64_t good, good_bytes; // the largest known to fit
    uint64_t bad, bad_bytes;   // one above it that does not; 0: none is known
} search;

/// Ask for one value above `good`; what it is moves good or bad.
static tide_status probe(search *s, uint64_t value, bool *fits, tide_error *err) {
    uint64_t bytes = 0;
    TIDE_TRY(s->ask(s->ctx, value, &bytes, err));
    *fits = bytes <= s->budget;
    if (*fits) {
        s->good = value;
        s->good_bytes = bytes;
    } else {
        s->bad = value;
        s->bad_bytes = bytes;
    }
    return TIDE_OK;
}

/// From `good` up in steps that double, until one does not fit or the end of the range does.
static tide_status reach(search *s, uint64_t step, tide_error *err) {
    s->bad = 0;
    while (s->bad == 0 && s->good < s->hi) {
        bool fits;
        const uint64_t left = s->hi - s->good;
        TIDE_TRY(probe(s, step < left ? s->good + step : s->hi, &fits, err));
        step = step > UINT64_MAX / 2 ? UINT64_MAX : step * 2;
    }
    return TIDE_OK;
}

static tide_status halve(search *s, tide_error *err) {
    while (s->bad != 0 && s->bad - s->good > 1) {
        bool fits;
        TIDE_TRY(probe(s, s->good + (s->bad - s->good) / 2, &fits, err));
    }
    return TIDE_OK;
}

/// The values up to good + n_beyond; `moved`: one of them fits, and is `good` from now on.
static tide_status look_beyond(search *s, unsigned n_beyond, bool *moved, tide_error *err) {
    search beyond = *s;
    *moved = false;
    for (unsigned k = 2; k <= n_beyond && k <= s->hi - s->good; k++) {
        bool fits;
        TIDE_TRY(probe(&beyond, s->good + k, &fits, err));
        *moved |= fits;
    }
    if (*moved) {
        s->good = beyond.good;
        s->good_bytes = beyond.good_bytes;
    }
    return TIDE_OK;
}

tide_status tide_sweep_largest(uint64_t lo, uint64_t hi, uint64_t budget_bytes, unsigned n_beyond, tide_sweep_ask ask,
                               void *ctx, tide_sweep_answer *out, tide_error *err) {
    if (lo == 0 || lo > hi)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%" PRIu64 " to %" PRIu64 " is no range of sizes", lo, hi);
    const size_t series = out->series;
    *out = (tide_sweep_answer){.series = series, .budget_bytes = budget_bytes};
    search s = {.hi = hi, .budget = budget_bytes, .ask = ask, .ctx = ctx};
    bool fits = false, moved = true;
    TIDE_TRY(probe(&s, lo, &fits, err));
    if (!fits) {
        out->none_fits = true;
        out->next_value = lo;
        out->next_bytes = s.bad_bytes;
        return TIDE_OK;
    }
    for (uint64_t step = lo; moved; step = 1) { // from lo: 2 lo, 4 lo, …
        TIDE_TRY(reach(&s, step, err));
        TIDE_TRY(halve(&s, err));
        if (s.bad == 0) break;
        TIDE_TRY(look_beyond(&s, n_beyond, &moved, err));
    }
    out->is_open = s.bad == 0;
    out->value = s.good;
    out->total_bytes = s.good_bytes;
    out->next_value = s.bad;
    out->next_bytes = s.bad != 0 ? s.bad_bytes : 0;
    return TIDE_OK;
}

// ---- reading tidemark.sweep ----
// Every key is known, every value has its type, and what contradicts itself is refused.

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
    const char *unknown = tide_json_unknown_key(object, keys, n_keys);
    if (unknown == NULL) return r;
    wrong(&r, unknown, "is no key that is known here");
    const char *meant = tide_nearest_of(unknown, keys, n_keys);
    if (meant != NULL) tide_error_hint(err, "did you mean '%s'?", meant);
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
    if (copy == NULL) r->st = TIDE_NO_MEMORY(r->err, "for a text");
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
    if (sizes_besides(s->extent, p) == NULL)
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
    point_deinit(&p);
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
