// SPDX-License-Identifier: MIT
//
// The pools of B beside those of A: at the moment that the cursor means in B, and over the same columns. Of two moments
// of one subject: at the one and at the other, over time they are the same. See scene_parts.h.
//
//     A                  B                  rows
//     pool 0             pool 0             A's pools in their order, each with the one of B that has its name, kind,
//     pool 1             caching KVCache    device and context; else with the only one that is left for its kind, where
//     caching Workspace  cpu Workspace      it is the only one of A that is left; or with none. Those that B alone
//                                           has, which hold nothing in A, stand among them by what B has reserved:
//     caching Workspace / cpu Workspace    - / caching KVCache    pool 0 / pool 0    pool 1 / -
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

// ---- which belong together ----

static int by_identity(const void *a, const void *b) {
    const tide_pool *x = *(const tide_pool *const *)a, *y = *(const tide_pool *const *)b;
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    if (x->context != y->context) return x->context < y->context ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    const int c = strcmp(x->device, y->device);
    return c != 0 ? c : strcmp(x->name, y->name);
}

typedef struct b_query {
    uint64_t b_serial;
    bool is_of_a; ///< B is another moment of A
    tide_moment at;
    tide_tui_window window;
    tide_pools pools;
    const tide_pool **sorted; ///< [pools.n] by identity, owned
} b_query;

static void release_b(void *ctx) {
    b_query *q = ctx;
    tide_pools_deinit(&q->pools);
    tide_host_free(q->sorted);
    tide_host_free(q);
}

static tide_status run_b(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress, tide_error *err) {
    b_query *q = ctx;
    if (q->is_of_a) b = a;
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is nothing to compare with");
    TIDE_TRY(tide_pools_at(b, q->at, q->window.begin, q->window.end - 1, progress, &q->pools, err));
    TIDE_TRY(TIDE_NEW(&q->sorted, q->pools.n + 1, err, "for pools"));
    for (size_t i = 0; i < q->pools.n; i++) q->sorted[i] = &q->pools.items[i];
    if (q->pools.n > 1) qsort(q->sorted, q->pools.n, sizeof *q->sorted, by_identity);
    return TIDE_OK;
}

/// Its place among those of B; SIZE_MAX: B has none such.
static size_t place_in_b(const b_query *q, const tide_pool *p) {
    const tide_pool **found =
        q->pools.n > 0 ? bsearch(&p, q->sorted, q->pools.n, sizeof *q->sorted, by_identity) : NULL;
    return found != NULL ? (size_t)(*found - q->pools.items) : SIZE_MAX;
}

/// What B alone has, as a row of A's list: nothing is held there, and it is not known over time.
static tide_pool without_a(const tide_pool *p) {
    tide_pool out = {.name = p->name,
                     .number = SIZE_MAX,
                     .kind = p->kind,
                     .tells_segments = p->tells_segments,
                     .is_planned = p->is_planned,
                     .context = p->context,
                     .colour = TIDE_NO_COLOUR};
    memcpy(out.device, p->device, sizeof out.device);
    return out;
}

static bool is_alike(const tide_pool *x, const tide_pool *y) {
    return x->is_planned == y->is_planned && x->context == y->context && x->kind == y->kind &&
           strcmp(x->device, y->device) == 0;
}

/// The only pool of B without a partner that is of a kind with row `i`, which is the only such of A; SIZE_MAX: none.
static size_t only_one_left(const tide_pools *a, const tide_pool *const *of_b, size_t i, const tide_pools *b,
                            const bool *is_matched) {
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < a->n; k++)
        if (k != i && of_b[k] == NULL && is_alike(&a->items[k], &a->items[i])) return SIZE_MAX;
    for (size_t k = 0; k < b->n; k++) {
        if (is_matched[k] || !is_alike(&b->items[k], &a->items[i])) continue;
        if (found != SIZE_MAX) return SIZE_MAX;
        found = k;
    }
    return found;
}

/// By kind, where names differ: another allocator for the same memory.
static void match_by_kind(const tide_pools *a, const tide_pools *b, const tide_pool **of_b, bool *is_matched) {
    enum { MOST = 256 }; // each is looked for among all
    for (size_t i = 0; i < a->n && a->n <= MOST && b->n <= MOST; i++) {
        const size_t k = of_b[i] == NULL ? only_one_left(a, of_b, i, b, is_matched) : SIZE_MAX;
        if (k == SIZE_MAX) continue;
        of_b[i] = &b->items[k];
        is_matched[k] = true;
    }
}

/// Where a pool that B alone has stands among the rows: before the first of its sort that is smaller. Behind all of
/// them where the list was sorted by a column, or is long.
static size_t place_among(const tide__frame *f, const tide_pool *b) {
    enum { MOST = 512 }; // rows behind it are moved
    const tide_tui_query_cache *cache = f->cache;
    const tide_pools *rows = &cache->pools_and_b;
    const char *column = f->out->sorted[TIDE_TUI_LIST_POOLS].column;
    if (rows->n > MOST || (column != NULL && column[0] != 0)) return rows->n;
    for (size_t i = 0; i < rows->n; i++) {
        const tide_pool *p = &rows->items[i], *of_b = cache->pools_of_b[i];
        const uint64_t held =
            of_b != NULL && of_b->reserved_bytes > p->reserved_bytes ? of_b->reserved_bytes : p->reserved_bytes;
        const bool is_other = p->is_planned != b->is_planned || p->context != b->context;
        const bool is_later = p->is_planned != b->is_planned ? p->is_planned : p->context > b->context;
        if (is_other ? is_later : held < b->reserved_bytes) return i;
    }
    return rows->n;
}

static void insert(tide__frame *f, const tide_pool *b) {
    tide_tui_query_cache *cache = f->cache;
    const size_t i = place_among(f, b), n_behind = cache->pools_and_b.n - i;
    memmove(&cache->pool_rows[i + 1], &cache->pool_rows[i], n_behind * sizeof *cache->pool_rows);
    memmove(&cache->pools_of_b[i + 1], &cache->pools_of_b[i], n_behind * sizeof *cache->pools_of_b);
    cache->pool_rows[i] = without_a(b);
    cache->pools_of_b[i] = b;
    cache->pools_and_b.n++;
}

static tide_status put_side_by_side(tide__frame *f, const b_query *q) {
    tide_tui_query_cache *cache = f->cache;
    const tide_pools *a = f->out->pools;
    const size_t most = a->n + q->pools.n + 1;
    bool *is_matched;
    TIDE_TRY(TIDE_GROW(&cache->pool_rows, &cache->pool_rows_cap, most, f->err, "for pools"));
    TIDE_TRY(TIDE_GROW(&cache->pools_of_b, &cache->pools_of_b_cap, most, f->err, "for pools"));
    TIDE_TRY(TIDE_NEW(&is_matched, q->pools.n + 1, f->err, "for pools"));
    for (size_t i = 0; i < a->n; i++) {
        const size_t k = place_in_b(q, &a->items[i]);
        cache->pool_rows[i] = a->items[i];
        cache->pools_of_b[i] = k != SIZE_MAX ? &q->pools.items[k] : NULL;
        if (k != SIZE_MAX) is_matched[k] = true;
    }
    match_by_kind(a, &q->pools, cache->pools_of_b, is_matched);
    cache->pools_and_b = *a;
    cache->pools_and_b.items = cache->pool_rows;
    for (size_t k = 0; k < q->pools.n; k++) {
        if (!is_matched[k]) insert(f, &q->pools.items[k]);
    }
    tide_host_free(is_matched);
    f->out->pools = &cache->pools_and_b;
    f->out->pool_of_b = cache->pools_of_b;
    f->out->b_pools = &q->pools;
    return TIDE_OK;
}

// ---- over time ----

typedef struct b_history_query {
    tide_tui_window window;
    size_t n;
    tide_pool_history history;
} b_history_query;

static void release_history(void *ctx) {
    b_history_query *h = ctx;
    tide_pool_history_deinit(&h->history);
    tide_host_free(h);
}

static tide_status run_history(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    b_history_query *h = ctx;
    (void)a;
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is nothing to compare with");
    return tide_pools_over(b, h->window.begin, h->window.end, h->n, progress, &h->history, err);
}

static bool is_small(const tide__frame *f) {
    return tide__is_small(f->st->a) && (f->st->compares_moments || tide__is_small(f->st->b));
}

static tide_status history(tide__frame *f) {
    const tide_tui_window w = f->out->b_window;
    const int n = f->layout->panes[TIDE_TUI_PANE_CURVE].w;
    if (n <= 0) return TIDE_OK;
    uint64_t key = tide__key(tide__key(tide__key(0, f->cache->b_serial), 'H'), (uint64_t)n);
    key = tide__key(tide__key(key, (uint64_t)w.begin), (uint64_t)w.end);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_B_POOL_HISTORY, key)) {
        b_history_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        *q = (b_history_query){.window = w, .n = (size_t)n};
        TIDE_TRY(tide__query_start(f->cache, TIDE__QUERY_B_POOL_HISTORY, key, is_small(f), run_history, release_history,
                                   q, f->err));
    }
    const b_history_query *q = tide__query_result_of(f, TIDE__QUERY_B_POOL_HISTORY, key, TIDE_TUI_N_PANES);
    if (q != NULL) f->out->b_pool_history = &q->history;
    return TIDE_OK;
}

// ---- at the cursor ----

/// The same event where both are the same run; else what the time says.
static tide_moment moment_of_b(const tide__frame *f) {
    const tide_subject_facts *a = f->out->a, *b = f->out->b;
    const tide_moment now = tide_tui_now(f->st);
    const bool is_same = a->is_trace && b->is_trace && a->path != NULL && b->path != NULL && a->path[0] != 0 &&
                         strcmp(a->path, b->path) == 0 && a->run_id == b->run_id;
    return is_same ? now : (tide_moment){.t = tide__on_axis_of_b(f, now.t)};
}

/// The result before, of the same B, while this one is made.
static const b_query *previous(tide__frame *f) {
    const b_query *q = tide__query_previous_result(f, TIDE__QUERY_B_POOLS, TIDE_TUI_PANE_POOLS);
    return q != NULL && q->b_serial == f->cache->b_serial && q->is_of_a == f->st->compares_moments ? q : NULL;
}

tide_status tide__scene_pools_b(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const bool has_moments = f->st->compares_moments, has_b = f->st->b != NULL && f->st->b != f->st->a;
    if ((!has_moments && !has_b) || f->out->pools == NULL) return TIDE_OK;
    const tide_moment at = has_moments ? f->st->b_moment : moment_of_b(f);
    f->out->b_window = has_moments ? f->st->window : tide__window_of_b(f);
    uint64_t key = tide__key(tide__key(0, cache->a_serial), cache->b_serial);
    key = tide__key_moment(tide__key(key, has_moments ? 'm' : 'P'), at);
    key = tide__key(tide__key(key, (uint64_t)f->out->b_window.begin), (uint64_t)f->out->b_window.end);
    if (tide__query_is_needed(cache, TIDE__QUERY_B_POOLS, key)) {
        b_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        *q = (b_query){.b_serial = cache->b_serial, .is_of_a = has_moments, .at = at, .window = f->out->b_window};
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_B_POOLS, key, is_small(f), run_b, release_b, q));
    }
    const b_query *q = tide__query_result_of(f, TIDE__QUERY_B_POOLS, key, TIDE_TUI_N_PANES);
    const tide__query_result *result = &cache->results[TIDE__QUERY_B_POOLS];
    if (result->is_there && result->key == key && result->status != TIDE_OK) f->out->b_pools_error = result->error;
    if (q == NULL) q = previous(f);
    if (q != NULL) TIDE_TRY(put_side_by_side(f, q));
    return has_moments ? TIDE_OK : history(f);
}
