// SPDX-License-Identifier: MIT
//
// Pools: what they hold at the cursor and over time, whether a request would be served, which tensors pass through
// them; devices; and leaks. See scene_parts.h.
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

typedef struct pools_query {
    tide_moment at;
    tide_tui_window window;
    tide_pools pools;
    bool is_there;
} pools_query;

static void release_pools(void *ctx) {
    pools_query *p = ctx;
    if (p->is_there) tide_pools_deinit(&p->pools);
    tide_host_free(p);
}

static tide_status run_pools(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)b;
    pools_query *p = ctx;
    TIDE_TRY(tide_pools_at(a, p->at, p->window.begin, p->window.end - 1, progress, &p->pools, err));
    p->is_there = true;
    return TIDE_OK;
}

typedef struct history_query {
    tide_tui_window window;
    size_t n;
    tide_pool_history history;
    bool is_there;
} history_query;

static void release_history(void *ctx) {
    history_query *h = ctx;
    if (h->is_there) tide_pool_history_deinit(&h->history);
    tide_host_free(h);
}

static tide_status run_history(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)b;
    history_query *h = ctx;
    TIDE_TRY(tide_pools_over(a, h->window.begin, h->window.end, h->n, progress, &h->history, err));
    h->is_there = true;
    return TIDE_OK;
}

/// Pools over the window of time.
static tide_status history(tide__frame *f) {
    const tide_tui_window w = f->st->window;
    const int n = f->layout->panes[TIDE_TUI_PANE_CURVE].w;
    if (n <= 0 || w.end <= w.begin) return TIDE_OK;
    uint64_t key = tide__key(tide__key(tide__key(0, f->cache->a_serial), 'h'), (uint64_t)n);
    key = tide__key(tide__key(key, (uint64_t)w.begin), (uint64_t)w.end);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_POOL_HISTORY, key)) {
        history_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        *q = (history_query){.window = w, .n = (size_t)n};
        TIDE_TRY(tide__query_start(f->cache, TIDE__QUERY_POOL_HISTORY, key, tide__is_small(f->st->a), run_history,
                                   release_history, q, f->err));
    }
    const history_query *q = tide__query_result_of(f, TIDE__QUERY_POOL_HISTORY, key, TIDE_TUI_PANE_POOLS);
    if (q != NULL) f->out->pool_history = &q->history;
    return TIDE_OK;
}

typedef struct request_query {
    tide_moment at;
    size_t pool;
    uint64_t bytes;
    tide_pool_request request;
    bool is_there;
} request_query;

static void release_request(void *ctx) {
    request_query *r = ctx;
    if (r->is_there) tide_pool_request_deinit(&r->request);
    tide_host_free(r);
}

static tide_status run_request(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)b;
    request_query *r = ctx;
    TIDE_TRY(tide_pools_request(a, r->at, r->pool, r->bytes, progress, &r->request, err));
    r->is_there = true;
    return TIDE_OK;
}

/// Whether the selected pool would serve the request at the cursor.
static tide_status request(tide__frame *f) {
    const tide_pools *pools = f->out->pools;
    if (f->st->request_bytes == 0 || pools == NULL || pools->n == 0) return TIDE_OK;
    const size_t row = f->st->pane_row[TIDE_TUI_PANE_POOLS], pool = pools->items[row < pools->n ? row : 0].number;
    if (pool == SIZE_MAX) return TIDE_OK; // B alone has it
    uint64_t key = tide__key_moment(tide__key(tide__key(0, f->cache->a_serial), 'r'), tide_tui_now(f->st));
    key = tide__key(tide__key(key, pool), f->st->request_bytes);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_POOL_REQUEST, key)) {
        request_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        *q = (request_query){.at = tide_tui_now(f->st), .pool = pool, .bytes = f->st->request_bytes};
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_POOL_REQUEST, key, tide__is_small(f->st->a), run_request,
                                             release_request, q));
    }
    const request_query *q = tide__query_result_of(f, TIDE__QUERY_POOL_REQUEST, key, TIDE_TUI_PANE_POOLS);
    if (q != NULL) f->out->pool_request = &q->request;
    return TIDE_OK;
}

typedef struct tensors_query {
    tide_pool_tensors tensors;
} tensors_query;

static void release_tensors(void *ctx) {
    tensors_query *t = ctx;
    tide_pool_tensors_deinit(&t->tensors);
    tide_host_free(t);
}

static tide_status run_tensors(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)b;
    (void)progress;
    return tide_pools_tensors(a, &((tensors_query *)ctx)->tensors, err);
}

/// What passes through the pools of a colouring plan.
static tide_status tensors(tide__frame *f) {
    bool is_coloured = false;
    for (size_t i = 0; f->out->pools != NULL && i < f->out->pools->n; i++)
        is_coloured = is_coloured || f->out->pools->items[i].colour != TIDE_NO_COLOUR;
    if (!is_coloured) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(0, f->cache->a_serial), 't');
    if (tide__query_is_needed(f->cache, TIDE__QUERY_POOL_TENSORS, key)) {
        tensors_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        TIDE_TRY(tide__query_start(f->cache, TIDE__QUERY_POOL_TENSORS, key, tide__is_small(f->st->a), run_tensors,
                                   release_tensors, q, f->err));
    }
    const tensors_query *q = tide__query_result_of(f, TIDE__QUERY_POOL_TENSORS, key, TIDE_TUI_PANE_POOLS);
    if (q != NULL) f->out->pool_tensors = &q->tensors;
    return TIDE_OK;
}

typedef struct devices_query {
    tide_device_memory memory;
    tide_device_row *rows; ///< [memory.n] at the cursor
} devices_query;

static void release_devices(void *ctx) {
    devices_query *d = ctx;
    tide_device_memory_deinit(&d->memory);
    tide_host_free(d->rows);
    tide_host_free(d);
}

static tide_status run_devices(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)b;
    (void)progress;
    devices_query *d = ctx;
    TIDE_TRY(tide_device_memory_make(tide_subject_trace(a), NULL, &d->memory, err));
    return d->memory.n > 0 ? TIDE_NEW(&d->rows, d->memory.n, err, "for devices") : TIDE_OK;
}

/// Where the bytes of devices are: found once, looked up at the cursor.
static tide_status devices(tide__frame *f, tide_moment at) {
    if (!f->out->a->is_trace) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(0, f->cache->a_serial), 'd');
    if (tide__query_is_needed(f->cache, TIDE__QUERY_DEVICES, key)) {
        devices_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        TIDE_TRY(tide__query_start(f->cache, TIDE__QUERY_DEVICES, key, tide__is_small(f->st->a), run_devices,
                                   release_devices, q, f->err));
    }
    devices_query *q = tide__query_result_of(f, TIDE__QUERY_DEVICES, key, TIDE_TUI_PANE_POOLS);
    if (q == NULL || q->memory.n == 0) return TIDE_OK;
    for (size_t i = 0; i < q->memory.n; i++) {
        const tide_device_lane *lane = &q->memory.lanes[i];
        q->rows[i] = (tide_device_row){lane->device, at.t, tide_device_at(lane, at)};
    }
    f->out->device_memory = &q->memory;
    f->out->devices = q->rows;
    return TIDE_OK;
}

typedef struct leaks_query {
    tide_leaks leaks;
    bool is_there;
    tide_items_hold *hold; ///< of the table that they are in
} leaks_query;

static void release_leaks(void *ctx) {
    leaks_query *l = ctx;
    if (l->is_there) tide_leaks_deinit(&l->leaks);
    tide_items_let_go(l->hold);
    tide_host_free(l);
}

static tide_status run_leaks(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)b;
    leaks_query *l = ctx;
    TIDE_TRY(tide_subject_load(a, progress, err));
    TIDE_TRY(tide_leaks_find(a, &l->leaks, err));
    l->is_there = true;
    l->hold = tide_subject_hold_items(a);
    return TIDE_OK;
}

static tide_status leaks(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    if (!f->out->a->is_trace) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(0, cache->a_serial), 'l');
    if (tide__query_is_needed(cache, TIDE__QUERY_LEAKS, key)) {
        leaks_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        TIDE_TRY(tide__query_start(cache, TIDE__QUERY_LEAKS, key, tide__is_small(f->st->a), run_leaks, release_leaks, q,
                                   f->err));
    }
    const leaks_query *l = tide__query_result_of(f, TIDE__QUERY_LEAKS, key, TIDE_TUI_PANE_POOLS);
    if (l == NULL || !tide__query_same_table(f, TIDE__QUERY_LEAKS, l->hold)) return TIDE_OK;
    void *rows = NULL;
    f->out->leaks = &l->leaks;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_LEAKS, TIDE__QUERY_LEAKS, &rows));
    if (rows == NULL) return TIDE_OK;
    cache->leaks = l->leaks;
    cache->leaks.items = rows;
    f->out->leaks = &cache->leaks;
    return TIDE_OK;
}

/// Unused bytes are those of a window of time: whether the result that is kept is about the window of now.
static bool has_same_window(const tide__frame *f) {
    const tide__query_result *a = &f->cache->results[TIDE__QUERY_POOLS];
    const pools_query *p = a->is_there && a->status == TIDE_OK ? a->ctx : NULL;
    return p != NULL && p->window.begin == f->st->window.begin && p->window.end == f->st->window.end;
}

static tide_status show_pools(tide__frame *f, const tide_pools *pools) {
    void *rows = NULL;
    f->out->pools = pools;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_POOLS, TIDE__QUERY_POOLS, &rows));
    if (rows == NULL) return TIDE_OK;
    f->cache->pools = *pools;
    f->cache->pools.items = rows;
    f->out->pools = &f->cache->pools;
    return TIDE_OK;
}

tide_status tide__scene_pools(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    if (!tide__is_shown(f, TIDE_TUI_PANE_POOLS)) return TIDE_OK;
    const tide_moment at = f->st->compares_moments ? f->st->a_moment : tide_tui_now(f->st);
    uint64_t key = tide__key_moment(tide__key(tide__key(0, cache->a_serial), 'p'), at);
    key = tide__key(tide__key(key, (uint64_t)f->st->window.begin), (uint64_t)f->st->window.end);
    if (tide__query_is_needed(cache, TIDE__QUERY_POOLS, key)) {
        pools_query *p;
        TIDE_TRY(TIDE_NEW(&p, 1, f->err, "for a question"));
        *p = (pools_query){.at = at, .window = f->st->window};
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_POOLS, key, tide__is_small(f->st->a), run_pools,
                                             release_pools, p));
    }
    const pools_query *p = tide__query_result_of(f, TIDE__QUERY_POOLS, key, TIDE_TUI_PANE_POOLS);
    if (p == NULL && has_same_window(f)) p = tide__query_previous_result(f, TIDE__QUERY_POOLS, TIDE_TUI_PANE_POOLS);
    if (p != NULL) TIDE_TRY(show_pools(f, &p->pools));
    TIDE_TRY(history(f));
    TIDE_TRY(tide__scene_pools_b(f));
    TIDE_TRY(request(f));
    TIDE_TRY(tensors(f));
    TIDE_TRY(devices(f, at));
    return leaks(f);
}
