// SPDX-License-Identifier: MIT
//
// The timeline itself: building, reading, freeing. See timeline.h; where it comes from is in timeline_plan.c and
// timeline_trace.c.
#include "profiler/timeline.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/timeline_internal.h"

// ---- building ----

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a timeline"); }

static char *make_title(const char *model, const char *mode, const char *strategy) {
    tide_text title = {0};
    tide_text_add(&title, model);
    if (mode[0] != '\0') tide_text_addf(&title, "%s%s", model[0] != '\0' ? ": " : "", mode);
    if (strategy[0] != '\0') tide_text_addf(&title, "%s%s", title.len > 0 ? ", " : "", strategy);
    if (!title.failed) return title.data;
    tide_text_deinit(&title);
    return NULL;
}

tide_status tide__timeline_begin(tide__timeline_builder *b, tide_axis axis, const char *model, const char *mode,
                                 const char *strategy, tide_error *err) {
    *b = (tide__timeline_builder){.tl = tide_host_calloc(1, sizeof *b->tl)};
    if (b->tl == NULL) return no_memory(err);
    b->tl->axis = axis;
    b->tl->title = make_title(model, mode, strategy);
    b->tl->model = tide_host_strdup(model);
    b->tl->mode = tide_host_strdup(mode);
    b->tl->strategy = tide_host_strdup(strategy);
    if (b->tl->title != NULL && b->tl->model != NULL && b->tl->mode != NULL && b->tl->strategy != NULL) return TIDE_OK;
    tide_timeline_destroy(b->tl);
    b->tl = NULL;
    return no_memory(err);
}

tide_status tide__timeline_add_item(tide__timeline_builder *b, const tide_timeline_item *item, tide_error *err) {
    tide_timeline *tl = b->tl;
    if (tide_host_grow(&tl->items, &b->cap_items, tl->n_items + 1, sizeof *tl->items) != TIDE_OK) return no_memory(err);
    tide_timeline_item *copy = &tl->items[tl->n_items];
    *copy = *item;
    copy->name = tide_host_strdup(item->name);
    copy->owner = tide_host_strdup(item->owner);
    tl->n_items++;
    return copy->name != NULL && copy->owner != NULL ? TIDE_OK : no_memory(err);
}

tide_status tide__timeline_add_point(tide__timeline_builder *b, int64_t t, uint64_t bytes, tide_error *err) {
    tide_timeline *tl = b->tl;
    if (tide_host_grow(&tl->curve, &b->cap_points, tl->n_points + 1, sizeof *tl->curve) != TIDE_OK)
        return no_memory(err);
    tl->curve[tl->n_points++] = (tide_timeline_point){.t = t, .bytes = bytes};
    return TIDE_OK;
}

tide_status tide__timeline_reserve_steps(tide__timeline_builder *b, size_t n, tide_error *err) {
    b->tl->step_names = tide_host_calloc(n, sizeof *b->tl->step_names);
    b->tl->step_begin = tide_host_calloc(n, sizeof *b->tl->step_begin);
    return b->tl->step_names != NULL && b->tl->step_begin != NULL ? TIDE_OK : no_memory(err);
}

tide_status tide__timeline_add_step(tide__timeline_builder *b, const char *name, int64_t begin, tide_error *err) {
    tide_timeline *tl = b->tl;
    char *copy = tide_host_strdup(name);
    if (copy == NULL) return no_memory(err);
    tl->step_names[tl->n_steps] = copy;
    tl->step_begin[tl->n_steps++] = begin;
    return TIDE_OK;
}

void tide__timeline_set_plan(tide__timeline_builder *b, tide_memory_plan *plan) {
    b->tl->plan = plan;
    b->tl->has_plan = true;
    b->tl->plan_bytes = plan->bytes;
    b->tl->naive_bytes = plan->naive_bytes;
    b->tl->lower_bound_bytes = plan->lower_bound_bytes;
}

static int by_begin(const void *a, const void *b) {
    const tide_timeline_item *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (int)y->is_planned - (int)x->is_planned; // a tensor and a block may have one number
}

tide_timeline *tide__timeline_finish(tide__timeline_builder *b) {
    tide_timeline *tl = b->tl;
    if (tl->n_items > 1) qsort(tl->items, tl->n_items, sizeof *tl->items, by_begin);
    tl->peak_t = tl->begin;
    for (size_t i = 0; i < tl->n_points; i++) {
        if (tl->curve[i].bytes <= tl->peak_bytes) continue;
        tl->peak_bytes = tl->curve[i].bytes;
        tl->peak_t = tl->curve[i].t;
    }
    *b = (tide__timeline_builder){0};
    return tl;
}

void tide_timeline_destroy(tide_timeline *t) {
    if (t == NULL) return;
    for (size_t i = 0; i < t->n_items; i++) {
        tide_host_free(t->items[i].name);
        tide_host_free(t->items[i].owner);
    }
    for (size_t i = 0; i < t->n_steps; i++) tide_host_free(t->step_names[i]);
    tide_host_free(t->items);
    tide_host_free(t->curve);
    tide_host_free(t->step_names);
    tide_host_free(t->step_begin);
    tide_host_free(t->kinds);
    tide_host_free(t->title);
    tide_host_free(t->model);
    tide_host_free(t->mode);
    tide_host_free(t->strategy);
    tide_memory_plan_destroy(t->plan);
    tide_host_free(t);
}

// ---- reading ----

/// Number of points with a time below `t`: the index of the first at or behind it.
static size_t points_before(const tide_timeline *tl, int64_t t) {
    size_t lo = 0, hi = tl->n_points;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (tl->curve[mid].t < t) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

const char *tide_timeline_inside(const tide_timeline *t, const tide_timeline_item *item) {
    if (item->alias == TIDE_ALIAS_NONE || t->plan == NULL || item->alias_of >= t->plan->lifetimes.n) return NULL;
    return t->plan->lifetimes.items[item->alias_of].name;
}

uint64_t tide_timeline_at(const tide_timeline *t, int64_t at) {
    const size_t n = at == INT64_MAX ? t->n_points : points_before(t, at + 1);
    return n > 0 ? t->curve[n - 1].bytes : 0;
}

/// begin + part / n of the length, without overflow: both factors of the rest are at most n.
static int64_t column_edge(int64_t begin, uint64_t len, size_t part, size_t n) {
    const uint64_t whole = len / n * part + len % n * part / n;
    return (int64_t)((uint64_t)begin + whole);
}

void tide_timeline_columns(const tide_timeline *t, int64_t begin, int64_t end, size_t n, uint64_t *min_bytes,
                           uint64_t *max_bytes) {
    const uint64_t len = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    size_t point_i = points_before(t, begin);
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = column_edge(begin, len, i, n);
        int64_t hi = column_edge(begin, len, i + 1, n);
        if (hi <= lo) hi = lo == INT64_MAX ? lo : lo + 1;
        // Columns narrower than the unit share points: go back to the first of this one.
        if (point_i > 0 && t->curve[point_i - 1].t >= lo) point_i = points_before(t, lo);
        while (point_i < t->n_points && t->curve[point_i].t < lo) point_i++;
        // What came before holds at `lo` unless a point lies right there.
        const bool is_carried = point_i == t->n_points || t->curve[point_i].t > lo;
        const uint64_t carried = point_i > 0 ? t->curve[point_i - 1].bytes : 0;
        uint64_t low = is_carried ? carried : UINT64_MAX, high = is_carried ? carried : 0;
        for (; point_i < t->n_points && t->curve[point_i].t < hi; point_i++) {
            if (t->curve[point_i].bytes < low) low = t->curve[point_i].bytes;
            if (t->curve[point_i].bytes > high) high = t->curve[point_i].bytes;
        }
        min_bytes[i] = low;
        max_bytes[i] = high;
    }
}
