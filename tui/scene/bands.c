// SPDX-License-Identifier: MIT
//
// What the curve is made of, and the line of what allocators hold above it. See scene_parts.h.
//
// Both can read many events: of large subjects the worker thread does it, and until it has, the curve is there alone.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/holdings.h"
#include "tui/scene/scene_parts.h"

enum {
    MAX_BANDS = 9,     ///< more could not be told apart
    AT_ONCE = 1 << 20, ///< so many items in all columns together take some milliseconds
};

static size_t cells_of(const tide__frame *f) {
    const int w = f->layout->panes[TIDE_TUI_PANE_CURVE].w;
    return (size_t)(w < TIDE_TUI_MAX_COLUMNS ? w : TIDE_TUI_MAX_COLUMNS);
}

static uint64_t key_of(const tide__frame *f, uint64_t what) {
    uint64_t key = tide__key(tide__key(what, f->cache->a_serial), (uint64_t)(int64_t)tide_tui_curve_kinds(f->st));
    key = tide__key(tide__key(key, cells_of(f)), (uint64_t)f->st->window.begin);
    return tide__key(key, (uint64_t)f->st->window.end);
}

// ---- bands ----

typedef struct bands_query {
    tide_bands_options opt;
    tide_bands bands;
} bands_query;

static void release_bands(void *ctx) {
    bands_query *q = ctx;
    tide_bands_deinit(&q->bands);
    tide_host_free(q);
}

static tide_status run_bands(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)b;
    bands_query *q = ctx;
    return tide_bands_make(a, &q->opt, progress, &q->bands, err);
}

static bool takes_little(const tide__frame *f) {
    return tide__is_small(f->st->a) && f->out->a->n_items * cells_of(f) <= AT_ONCE;
}

static tide_status start_bands(tide__frame *f, uint64_t key) {
    bands_query *q;
    TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
    q->opt = (tide_bands_options){.by = (tide_band_by)f->st->bands_by,
                                  .kind = tide_tui_curve_kinds(f->st),
                                  .t0 = f->st->window.begin,
                                  .t1 = f->st->window.end,
                                  .n = cells_of(f),
                                  .max_bands = MAX_BANDS};
    return tide__query_start(f->cache, TIDE__QUERY_BANDS, key, takes_little(f), run_bands, release_bands, q, f->err);
}

/// While a trace grows, new bands are asked for only when the last ones are there.
static bool may_start(const tide__frame *f, int slot) {
    return !(f->out->a->is_recording && f->cache->pending[slot].is_pending);
}

/// The curve has the exact heights of the bands, where it has as many columns.
static void take_heights(tide__frame *f, const tide_bands *b) {
    for (size_t i = 0; f->out->n_columns == b->n && i < b->n; i++) {
        if (f->out->max[i] == 0) continue; // beside the axis
        f->out->max[i] = b->bytes[i];
        if (f->out->min[i] > b->bytes[i]) f->out->min[i] = b->bytes[i];
    }
}

static tide_status bands(tide__frame *f) {
    if (f->st->bands_by < 0 || f->out->n_columns == 0) return TIDE_OK;
    const uint64_t key = tide__key(key_of(f, 'b'), (uint64_t)f->st->bands_by);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_BANDS, key) && may_start(f, TIDE__QUERY_BANDS))
        TIDE_TRY(start_bands(f, key));
    const bands_query *q = tide__query_result_of(f, TIDE__QUERY_BANDS, key, TIDE_TUI_N_PANES);
    if (q == NULL) return TIDE_OK;
    f->out->bands = &q->bands;
    take_heights(f, &q->bands);
    return TIDE_OK;
}

// ---- what allocators hold ----

typedef struct reserved_query {
    int kind;
    int64_t t0, t1;
    size_t n;
    bool is_known;        ///< an allocator records what it takes from the system
    uint64_t *low, *high; ///< [n]
    uint64_t peak;        ///< of the whole axis
    uint64_t whole_peak;  ///< the same of all kinds
} reserved_query;

static void release_reserved(void *ctx) {
    reserved_query *q = ctx;
    tide_host_free(q->low);
    tide_host_free(q->high);
    tide_host_free(q);
}

static tide_status run_reserved(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                tide_error *err) {
    (void)b;
    (void)progress; // the trace hears of it
    reserved_query *q = ctx;
    const tide_subject_facts *f = tide_subject_get_facts(a);
    const tide_trace_segment *segments;
    const tide_curve_key key = {TIDE_CURVE_RESERVED, q->kind, NULL};
    size_t n;
    TIDE_TRY(tide_trace_segments(tide_subject_trace(a), NULL, &segments, &n, err));
    if (n == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&q->low, q->n, err, "for a curve"));
    TIDE_TRY(TIDE_NEW(&q->high, q->n, err, "for a curve"));
    TIDE_TRY(tide_subject_columns(a, key, q->t0, q->t1, q->n, q->low, q->high, err));
    TIDE_TRY(tide_subject_peak_between(a, key, f->begin, f->end, &q->peak, NULL, err));
    const tide_curve_key all = {TIDE_CURVE_RESERVED, -1, NULL};
    TIDE_TRY(tide_subject_peak_between(a, all, f->begin, f->end, &q->whole_peak, NULL, err));
    q->is_known = true;
    return TIDE_OK;
}

static tide_status start_reserved(tide__frame *f, uint64_t key) {
    reserved_query *q;
    TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
    *q = (reserved_query){.kind = tide_tui_curve_kinds(f->st),
                          .t0 = f->st->window.begin,
                          .t1 = f->st->window.end,
                          .n = f->out->n_columns};
    return tide__query_start(f->cache, TIDE__QUERY_RESERVED, key, tide__is_small(f->st->a), run_reserved,
                             release_reserved, q, f->err);
}

static tide_status reserved(tide__frame *f) {
    if (tide_subject_trace(f->st->a) == NULL || f->out->n_columns == 0) return TIDE_OK;
    const uint64_t key = tide__key(key_of(f, 'r'), f->out->n_columns);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_RESERVED, key) && may_start(f, TIDE__QUERY_RESERVED))
        TIDE_TRY(start_reserved(f, key));
    const reserved_query *q = tide__query_result_of(f, TIDE__QUERY_RESERVED, key, TIDE_TUI_N_PANES);
    if (q == NULL || !q->is_known) return TIDE_OK;
    f->out->reserved_max = q->high;
    f->out->peak_reserved = q->peak;
    f->out->whole_reserved = q->whole_peak;
    // Far above the curve it would leave nothing to see of it: the line stays at the upper edge then.
    const uint64_t top = f->out->top_bytes;
    if (q->peak > top && q->peak / 2 <= top) f->out->top_bytes = q->peak;
    return TIDE_OK;
}

tide_status tide__scene_bands(tide__frame *f) {
    if (!tide__is_shown(f, TIDE_TUI_PANE_CURVE)) return TIDE_OK;
    TIDE_TRY(bands(f));
    return reserved(f);
}
