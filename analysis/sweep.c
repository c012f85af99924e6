// SPDX-License-Identifier: MIT
//
// The table of a sweep: points in order, the series they make, parts of several processes put together. See sweep.h.
#include "analysis/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"

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
    out->needs_bytes = s.good_bytes;
    out->next_value = s.bad;
    out->next_bytes = s.bad != 0 ? s.bad_bytes : 0;
    return TIDE_OK;
}

// ---- reading tidemark.sweep ----
// Every key is known, every value has its type, and what contradicts itself is refused.

typedef tide_json_reader reader;
#define BAD TIDE_JSON_BAD

/// Element i of a list, an object of these keys.
static tide_status enter(reader *r, const json_t *list, const char *name, size_t i, const char *const *keys,
                         json_t **out) {
    TIDE_TRY(tide_json_enter(r, list, name, i, out));
    return tide_json_check_keys(r, *out, keys);
}

/// Null unless `known`, and a number with it.
static tide_status get_number_if(reader *r, const json_t *o, const char *key, bool known, uint64_t *out) {
    json_t *null;
    return known ? tide_json_get_bytes(r, o, key, out) : tide_json_get(r, o, key, JSON_NULL, true, &null);
}

static tide_status get_bool_if(reader *r, const json_t *o, const char *key, bool known, bool *out) {
    json_t *null;
    return known ? tide_json_get_bool(r, o, key, out) : tide_json_get(r, o, key, JSON_NULL, true, &null);
}

static tide_status get_u32(reader *r, const json_t *o, const char *key, uint32_t *out) {
    int64_t n;
    TIDE_TRY(tide_json_get_count(r, o, key, &n));
    if (n > UINT32_MAX) return BAD(r, key, "'%s' is %" PRId64 ": want at most %" PRIu32, key, n, UINT32_MAX);
    *out = (uint32_t)n;
    return TIDE_OK;
}

static bool is_null(const json_t *o, const char *key) { return json_is_null(json_object_get(o, key)); }

// ---- points ----

static tide_status check_point(reader *r, const tide_sweep *s, const tide_sweep_point *p) {
    uint64_t sum = 0;
    if (sizes_besides(s->extent, p) == NULL)
        return BAD(r, "sizes", "'sizes' does not begin with '%.40s=%" PRIu64 "'", s->extent, p->value);
    if (!tide_is_pow2(p->align_bytes)) return BAD(r, "align_bytes", "'align_bytes' is no power of two");
    if (p->error != NULL) return TIDE_OK;
    const bool adds_up = tide_add_u64(p->planned_bytes, p->weights_bytes, &sum) &&
                         tide_add_u64(sum, p->io_bytes, &sum) && tide_add_u64(sum, p->other_bytes, &sum) &&
                         sum == p->total_bytes;
    if (p->process_bytes != 0 && p->process_bytes < p->total_bytes)
        return BAD(r, "process_bytes", "'process_bytes' is less than total_bytes, which are a part of it");
    if (!adds_up) return BAD(r, "total_bytes", "'total_bytes' is not the sum of planned, weights, io and other bytes");
    if (p->proven && p->proved_bytes != p->planned_bytes) return BAD(r, "proven", "'proven' contradicts proved_bytes");
    return TIDE_OK;
}

static tide_status read_point(reader *r, const json_t *o, const tide_sweep *s, tide_sweep_point *p) {
    const bool known = is_null(o, "error"), measured = known && !is_null(o, "measured_peak_bytes");
    const struct {
        const char *key;
        bool known;
        uint64_t *out;
    } numbers[] = {
        {"align_bytes", true, &p->align_bytes},
        {"value", s->extent[0] != '\0', &p->value},
        {"total_bytes", known, &p->total_bytes},
        {"process_bytes", known && !is_null(o, "process_bytes"), &p->process_bytes},
        {"planned_bytes", known, &p->planned_bytes},
        {"weights_bytes", known, &p->weights_bytes},
        {"io_bytes", known, &p->io_bytes},
        {"other_bytes", known, &p->other_bytes},
        {"naive_bytes", known, &p->naive_bytes},
        {"lower_bound_bytes", known, &p->lower_bound_bytes},
        {"proved_bytes", known, &p->proved_bytes},
        {"plan_time_ns", known, &p->plan_time_ns},
        {"measured_peak_bytes", measured, &p->measured_peak_bytes},
        {"time_ns", measured, &p->time_ns},
    };
    p->measured = measured;
    if (!known) TIDE_TRY(tide_json_copy_text(r, o, "error", &p->error));
    TIDE_TRY(tide_json_copy_text(r, o, "model", &p->model));
    TIDE_TRY(tide_json_copy_text(r, o, "sizes", &p->sizes));
    TIDE_TRY(tide_json_copy_text(r, o, "strategy", &p->strategy));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        TIDE_TRY(get_number_if(r, o, numbers[i].key, numbers[i].known, numbers[i].out));
    TIDE_TRY(get_bool_if(r, o, "proven", known, &p->proven));
    TIDE_TRY(get_u32(r, o, "rank", &p->rank));
    return check_point(r, s, p);
}

static tide_status read_points(reader *r, const json_t *list, tide_sweep *out) {
    static const char *const keys[] = {
        "model",
        "sizes",
        "strategy",
        "align_bytes",
        "value",
        "total_bytes",
        "process_bytes",
        "planned_bytes",
        "weights_bytes",
        "io_bytes",
        "other_bytes",
        "naive_bytes",
        "lower_bound_bytes",
        "proved_bytes",
        "proven",
        "plan_time_ns",
        "time_ns",
        "error",
        "rank",
        "measured_peak_bytes",
        NULL,
    };
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *o;
        tide_sweep_point p = {0};
        TIDE_TRY(enter(r, list, "points", i, keys, &o));
        tide_status st = read_point(r, o, out, &p);
        if (st == TIDE_OK) st = tide_sweep_add(out, &p, r->err);
        point_deinit(&p);
        TIDE_TRY(st);
    }
    r->at[0] = '\0';
    const size_t n = out->n;
    TIDE_TRY(tide_sweep_sort(out, r->err));
    return out->n == n ? TIDE_OK : BAD(r, "points", "'points' has %zu that are there twice", n - out->n);
}

// ---- series and answers ----

/// They follow from the points: what the document says of them has to be the same.
static tide_status check_series(reader *r, const json_t *list, const tide_sweep *s) {
    static const char *const keys[] = {"model", "sizes", "strategy", "align_bytes", "from", "n", NULL};
    if (json_array_size(list) != s->n_series)
        return BAD(r, "series", "'series' has %zu entries, the points make %zu", json_array_size(list), s->n_series);
    for (size_t i = 0; i < s->n_series; i++) {
        const tide_sweep_series *one = &s->series[i];
        json_t *o;
        const char *model, *sizes, *strategy;
        uint64_t align, from, n;
        TIDE_TRY(enter(r, list, "series", i, keys, &o));
        TIDE_TRY(tide_json_get_text(r, o, "model", &model));
        TIDE_TRY(tide_json_get_text(r, o, "sizes", &sizes));
        TIDE_TRY(tide_json_get_text(r, o, "strategy", &strategy));
        TIDE_TRY(tide_json_get_bytes(r, o, "align_bytes", &align));
        TIDE_TRY(tide_json_get_bytes(r, o, "from", &from));
        TIDE_TRY(tide_json_get_bytes(r, o, "n", &n));
        if (strcmp(model, one->model) != 0 || strcmp(sizes, one->sizes) != 0 || strcmp(strategy, one->strategy) != 0 ||
            align != one->align_bytes || from != one->from || n != one->n)
            return BAD(r, "", "series[%zu] is not what the points make of it", i);
    }
    return TIDE_OK;
}

static tide_status check_answer(reader *r, const tide_sweep *s, const tide_sweep_answer *a) {
    if (a->series >= s->n_series) return BAD(r, "series", "'series' is %zu, there are %zu", a->series, s->n_series);
    if (a->none_fits && a->is_open) return BAD(r, "is_open", "'is_open' contradicts none_fits");
    if (!a->none_fits && a->needs_bytes > a->budget_bytes)
        return BAD(r, "needs_bytes", "'needs_bytes' does not fit into budget_bytes");
    if (!a->is_open && a->next_bytes <= a->budget_bytes)
        return BAD(r, "next_bytes", "'next_bytes' fits into budget_bytes");
    return TIDE_OK;
}

static tide_status read_answer(reader *r, const json_t *o, tide_sweep_answer *a) {
    uint64_t series;
    TIDE_TRY(tide_json_get_bytes(r, o, "series", &series));
    a->series = (size_t)series;
    TIDE_TRY(tide_json_get_bytes(r, o, "budget_bytes", &a->budget_bytes));
    TIDE_TRY(tide_json_get_bool(r, o, "none_fits", &a->none_fits));
    TIDE_TRY(tide_json_get_bool(r, o, "is_open", &a->is_open));
    TIDE_TRY(get_number_if(r, o, "value", !a->none_fits, &a->value));
    TIDE_TRY(get_number_if(r, o, "needs_bytes", !a->none_fits, &a->needs_bytes));
    TIDE_TRY(get_number_if(r, o, "next_value", !a->is_open, &a->next_value));
    TIDE_TRY(get_number_if(r, o, "next_bytes", !a->is_open, &a->next_bytes));
    a->tried = !is_null(o, a->none_fits ? "next_ran" : "ran");
    a->next_is_untried = a->tried && !a->is_open && is_null(o, "next_ran");
    TIDE_TRY(get_bool_if(r, o, "ran", a->tried && !a->none_fits, &a->ran));
    return get_bool_if(r, o, "next_ran", a->tried && !a->is_open && !a->next_is_untried, &a->next_ran);
}

static tide_status read_answers(reader *r, const json_t *list, tide_sweep *out) {
    static const char *const keys[] = {"series",     "budget_bytes", "none_fits", "is_open",  "value", "needs_bytes",
                                       "next_value", "next_bytes",   "ran",       "next_ran", NULL};
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *o;
        tide_sweep_answer a = {0};
        TIDE_TRY(enter(r, list, "answers", i, keys, &o));
        TIDE_TRY(read_answer(r, o, &a));
        TIDE_TRY(check_answer(r, out, &a));
        TIDE_TRY(tide_sweep_add_answer(out, &a, r->err));
    }
    return TIDE_OK;
}

// ---- document ----

static tide_status read_document(reader *r, const json_t *doc, tide_sweep *out) {
    static const char *const keys[] = {"schema", "version", "extent", "n_ranks", "points", "series", "answers", NULL};
    json_t *points, *series, *answers;
    const tide_status st = tide_json_check_schema(r, doc, "tidemark.sweep", 1, 1, NULL);
    if (st != TIDE_OK) tide_error_hint(r->err, "tidemark sweep … -o sweep.json writes one");
    TIDE_TRY(st);
    TIDE_TRY(tide_json_check_keys(r, doc, keys));
    TIDE_TRY(tide_json_copy_text(r, doc, "extent", &out->extent));
    TIDE_TRY(get_u32(r, doc, "n_ranks", &out->n_ranks));
    if (out->n_ranks == 0) return BAD(r, "n_ranks", "'n_ranks' is 0: want 1 or more");
    TIDE_TRY(tide_json_get_list(r, doc, "points", &points));
    TIDE_TRY(tide_json_get_list(r, doc, "series", &series));
    TIDE_TRY(tide_json_get_list(r, doc, "answers", &answers));
    TIDE_TRY(read_points(r, points, out));
    TIDE_TRY(check_series(r, series, out));
    return read_answers(r, answers, out);
}

tide_status tide_sweep_of_json(const json_t *doc, const char *where, tide_sweep *out, tide_error *err) {
    reader r = {.path = where, .err = err};
    *out = (tide_sweep){0};
    const tide_status st = read_document(&r, doc, out);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    return st;
}
