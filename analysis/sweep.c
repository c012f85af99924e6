// SPDX-License-Identifier: MIT
//
// The table of a sweep: points in order, the series they make, parts of several processes put together. See sweep.h.
#include "analysis/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/sweep_internal.h"
#include "core/base/host_alloc.h"

void tide__sweep_point_deinit(tide_sweep_point *p) {
    tide_host_free(p->model);
    tide_host_free(p->sizes);
    tide_host_free(p->strategy);
    tide_host_free(p->error);
    *p = (tide_sweep_point){0};
}

void tide_sweep_deinit(tide_sweep *s) {
    for (size_t i = 0; i < s->n; i++) tide__sweep_point_deinit(&s->points[i]);
    tide_host_free(s->points);
    tide_host_free(s->series);
    tide_host_free(s->answers);
    tide_host_free(s->extent);
    *s = (tide_sweep){0};
}

tide_status tide_sweep_add(tide_sweep *s, tide_sweep_point *p, tide_error *err) {
    if (tide_host_grow(&s->points, &s->cap, s->n + 1, sizeof *s->points) != TIDE_OK) {
        tide__sweep_point_deinit(p);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu points", s->n + 1);
    }
    s->points[s->n++] = *p;
    *p = (tide_sweep_point){0};
    return TIDE_OK;
}

const char *tide__sweep_rest(const char *extent, const tide_sweep_point *p) {
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
    const char *rest_a = tide__sweep_rest(extent, a), *rest_b = tide__sweep_rest(extent, b);
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
            tide__sweep_point_deinit(p);
            continue;
        }
        if (kept != i) s->points[kept] = *p;
        kept++;
    }
    s->n = kept;
}

static tide_status make_series(tide_sweep *s, tide_error *err) {
    tide_sweep_series *list = tide_host_calloc(s->n + 1, sizeof *list);
    if (list == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu series", s->n);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const tide_sweep_point *p = &s->points[i];
        if (i > 0 && compare_series(&s->points[i - 1], p, s->extent) == 0) {
            list[n - 1].n++;
            continue;
        }
        const char *rest = tide__sweep_rest(s->extent, p);
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
    if (grown == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu answers", s->n_answers + 1);
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
    tide_status st = list != NULL && out->extent != NULL ? merge(parts, n, list, out, err)
                                                         : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a sweep");
    for (size_t k = 0; k < n; k++) tide_sweep_deinit(&parts[k]);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    tide_host_free(list);
    return st;
}
