// SPDX-License-Identifier: MIT
//
// Queries that run at once or on the worker thread, and their results. See query_cache.h.
#include "tui/scene/query_cache.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"

// ---- keys ----

uint64_t tide__key(uint64_t key, uint64_t part) {
    key ^= part + 0x9E3779B97F4A7C15U + (key << 6) + (key >> 2);
    key *= 0xBF58476D1CE4E5B9U;
    return key ^ (key >> 29);
}

uint64_t tide__key_text(uint64_t key, const char *text) {
    return tide__key(key, tide_hash_text(TIDE_HASH_START, text));
}

uint64_t tide__key_moment(uint64_t key, tide_moment at) { return tide__key(tide__key(key, (uint64_t)at.t), at.event); }

// ---- life ----

_Static_assert((int)TIDE__N_QUERIES <= (int)TIDE_TUI_MAX_REQUESTS, "the worker has a slot for each sort of query");

tide_status tide_tui_query_cache_create(struct tide_tui_worker *worker, tide_tui_query_cache **out, tide_error *err) {
    TIDE_TRY(TIDE_NEW(out, 1, err, "for the view"));
    (*out)->worker = worker;
    (*out)->item = TIDE_NO_ITEM;
    return TIDE_OK;
}

void tide__query_forget(tide_tui_query_cache *cache, int slot) {
    tide__query_result *a = &cache->results[slot];
    if (a->is_there && a->release != NULL && a->ctx != NULL) a->release(a->ctx);
    *a = (tide__query_result){0};
}

static void drop_columns(tide__columns *c) {
    tide_host_free(c->min);
    tide_host_free(c->max);
    *c = (tide__columns){0};
}

static void drop_caches(tide_tui_query_cache *cache) {
    drop_columns(&cache->curve);
    drop_columns(&cache->predicted);
    drop_columns(&cache->b_curve);
    drop_columns(&cache->mini);
    tide_host_free(cache->marks);
    tide_host_free(cache->gantt);
    tide_host_free(cache->spans);
    tide_host_free(cache->match_bits);
    for (int i = 0; i < 2; i++) tide_host_free(cache->pictures[i].cells);
    tide_host_free(cache->pool_rows);
    tide_host_free(cache->stack_rows);
    tide_host_free(cache->pools_of_b);
}

void tide_tui_query_cache_destroy(tide_tui_query_cache *cache) {
    if (cache == NULL) return;
    for (int i = 0; i < TIDE__N_QUERIES; i++) {
        if (cache->worker != NULL) tide_tui_worker_cancel(cache->worker, i);
        tide__query_forget(cache, i);
    }
    drop_caches(cache);
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) tide_host_free(cache->sorted[i].rows);
    tide_host_free(cache->text);
    tide_host_free(cache);
}

tide_status tide_tui_query_cache_set_text(tide_tui_query_cache *cache, const char *text, tide_error *err) {
    char *copy;
    TIDE_TRY(TIDE_COPY_TEXT(&copy, text, err, "for %zu bytes of text", strlen(text)));
    tide_host_free(cache->text);
    cache->text = copy;
    return TIDE_OK;
}

// ---- helpers of the parts of a scene ----

bool tide__is_shown(const tide__frame *f, tide_tui_pane pane) {
    return !f->layout->too_small && f->layout->panes[pane].w > 0 && f->layout->panes[pane].h > 0;
}

static void copy_text(char *buf, size_t buf_bytes, const char *text) {
    size_t n = strlen(text);
    if (n >= buf_bytes) {
        n = buf_bytes - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--; // not a part of a character
    }
    memcpy(buf, text, n);
    buf[n] = '\0';
}

void tide__set_pane_error(tide__frame *f, tide_tui_pane pane, const char *text) {
    if (pane < TIDE_TUI_N_PANES && f->out->error[pane][0] == '\0')
        copy_text(f->out->error[pane], sizeof f->out->error[pane], text);
}

void tide__error_text(char *buf, size_t buf_bytes, const tide_error *err) {
    tide_text text = {0};
    tide_text_add(&text, err->msg[0] != '\0' ? err->msg : tide_status_text(err->status));
    if (err->note[0] != '\0') tide_text_addf(&text, ": %s", err->note);
    copy_text(buf, buf_bytes, tide_text_str(&text));
    tide_text_deinit(&text);
}

tide_status tide__pass_no_memory(tide_status st, const tide_error *why, tide_error *err) {
    if (st != TIDE_ERR_NOMEM) return TIDE_OK;
    if (err != NULL) *err = *why;
    return st;
}

bool tide__is_small(const tide_subject *s) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    return f->n_items <= TIDE__FEW_ITEMS && f->n_events <= TIDE__FEW_EVENTS && !f->is_recording;
}

// ---- queries ----

bool tide__query_is_needed(const tide_tui_query_cache *cache, int slot, uint64_t key) {
    if (cache->results[slot].is_there && cache->results[slot].key == key) return false;
    return !(cache->pending[slot].is_pending && cache->pending[slot].key == key);
}

static tide_status keep_result(tide_tui_query_cache *cache, int slot, uint64_t key, tide_status status,
                               const tide_error *why, void *ctx, void (*release)(void *ctx)) {
    tide__query_forget(cache, slot);
    tide__query_result *a = &cache->results[slot];
    *a = (tide__query_result){.is_there = true, .key = key, .status = status, .ctx = ctx, .release = release};
    // A query of the worker is about the subject as it was when it was started.
    a->a_serial = cache->pending[slot].a_serial;
    if (status == TIDE_ERR_CANCELLED)
        copy_text(a->error, sizeof a->error, "cancelled");
    else if (status != TIDE_OK)
        tide__error_text(a->error, sizeof a->error, why);
    return status == TIDE_ERR_NOMEM ? TIDE_ERR_NOMEM : TIDE_OK;
}

tide_status tide__query_start(tide_tui_query_cache *cache, int slot, uint64_t key, bool at_once, tide__query_run run,
                              void (*release)(void *ctx), void *ctx, tide_error *err) {
    TIDE_ASSERT(ctx != NULL && slot >= 0 && slot < TIDE__N_QUERIES);
    if (cache->worker == NULL || (at_once && !cache->always_async)) {
        if (cache->worker != NULL) tide_tui_worker_cancel(cache->worker, slot);
        cache->pending[slot] = (tide__pending_query){.a_serial = cache->a_serial};
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = run(ctx, cache->a, cache->b, NULL, &why);
        const tide_status kept = keep_result(cache, slot, key, st, &why, ctx, release);
        if (kept != TIDE_OK && err != NULL) *err = why;
        return kept;
    }
    cache->pending[slot] =
        (tide__pending_query){.is_pending = true, .key = key, .a_serial = cache->a_serial, .release = release};
    const tide_tui_request request = {
        .slot = slot, .key = key, .run = run, .release = release, .ctx = ctx, .wait_until_ns = cache->wait_until_ns};
    return tide_tui_worker_submit(cache->worker, &request, err);
}

tide_status tide__query_start_at_cursor(tide__frame *f, int slot, uint64_t key, bool at_once, tide__query_run run,
                                        void (*release)(void *ctx), void *ctx) {
    TIDE_TRY(tide__query_start(f->cache, slot, key, at_once, run, release, ctx, f->err));
    f->cache->pending[slot].moment = tide__key_moment(0, tide_tui_now(f->st));
    return TIDE_OK;
}

void *tide__query_previous_result(tide__frame *f, int slot, tide_tui_pane pane) {
    const tide__query_result *a = &f->cache->results[slot];
    if (!f->cache->pending[slot].is_pending || !a->is_there || a->status != TIDE_OK) return NULL;
    if (a->a_serial != f->cache->a_serial) return NULL; // texts in it may be freed
    if (pane < TIDE_TUI_N_PANES) f->out->is_earlier[pane] = true;
    return a->ctx;
}

void tide__query_begin_frame(tide_tui_query_cache *cache, const tide_tui_state *st) {
    cache->wait_until_ns = tide_now_ns() + (uint64_t)TIDE_TUI_WAIT_MS * 1000000U;
    const uint64_t moment = tide__key_moment(0, tide_tui_now(st));
    for (int i = 0; cache->worker != NULL && i < TIDE__N_QUERIES; i++) {
        tide__pending_query *p = &cache->pending[i];
        if (!p->is_pending || p->moment == 0 || p->moment == moment) continue;
        tide_tui_worker_cancel(cache->worker, i);
        p->is_pending = false;
    }
}

/// The worker's result of a slot, if it is there, becomes the result that is kept.
static tide_status collect_slot(tide_tui_query_cache *cache, int slot, tide_error *err) {
    tide__pending_query *p = &cache->pending[slot];
    if (!p->is_pending) return TIDE_OK;
    void *ctx = NULL;
    tide_status status = TIDE_OK;
    tide_error why = TIDE_ERROR_INIT;
    if (!tide_tui_worker_take(cache->worker, slot, p->key, &ctx, &status, &why)) return TIDE_OK;
    p->is_pending = false;
    TIDE_ASSERT(ctx != NULL);
    if (slot == TIDE__QUERY_REFRESH) cache->worker_is_behind = false;
    const tide_status st = keep_result(cache, slot, p->key, status, &why, ctx, p->release);
    if (st != TIDE_OK && err != NULL) *err = why;
    return st;
}

static tide_status run_refresh(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)ctx;
    (void)b;
    (void)progress;
    return tide_subject_refresh(a, NULL, err);
}

static tide_status start_refresh(tide_tui_query_cache *cache, tide_error *err) {
    char *unused; // a query has a context, which its release frees
    TIDE_TRY(TIDE_NEW(&unused, 1, err, "for a question"));
    return tide__query_start(cache, TIDE__QUERY_REFRESH, cache->a_serial, false, run_refresh, tide_host_free, unused,
                             err);
}

/// The serials count up when the state shows another A or B.
static void note_subjects(tide_tui_query_cache *cache, const tide_tui_state *st) {
    if (cache->a != st->a) {
        cache->a_serial++;
        cache->worker_is_behind = false; // it opens the other one anew
    }
    if (cache->b != st->b) cache->b_serial++;
    cache->a = st->a;
    cache->b = st->b;
}

tide_status tide__query_collect(tide_tui_query_cache *cache, tide_tui_state *st, tide_error *err) {
    note_subjects(cache, st);
    if (cache->worker == NULL) return TIDE_OK;
    for (int i = 0; i < TIDE__N_QUERIES; i++) TIDE_TRY(collect_slot(cache, i, err));
    const bool is_lost = cache->worker_is_behind && !cache->pending[TIDE__QUERY_REFRESH].is_pending;
    return is_lost ? start_refresh(cache, err) : TIDE_OK;
}

void *tide__query_result_of(tide__frame *f, int slot, uint64_t key, tide_tui_pane pane) {
    tide_tui_query_cache *cache = f->cache;
    // Quick results are there by now. If the worker thread ran out of memory, that is shown like any other error.
    if (cache->worker != NULL && collect_slot(cache, slot, NULL) != TIDE_OK)
        tide__set_pane_error(f, pane, "out of memory");
    tide__pending_query *p = &cache->pending[slot];
    if (p->is_pending && p->key == key) {
        tide_tui_worker_progress(cache->worker, slot, p->progress, sizeof p->progress);
        if (pane < TIDE_TUI_N_PANES) copy_text(f->out->busy[pane], sizeof f->out->busy[pane], p->progress);
    }
    tide__query_result *a = &cache->results[slot];
    if (!a->is_there || a->key != key) return NULL;
    if (a->status == TIDE_OK) return a->ctx;
    tide__set_pane_error(f, pane, a->error);
    return NULL;
}

void tide__query_cancel_all(tide_tui_query_cache *cache) {
    if (cache->worker == NULL) return;
    for (int i = 0; i < TIDE__N_QUERIES; i++) {
        tide__pending_query *p = &cache->pending[i];
        if (!p->is_pending) continue;
        tide_tui_worker_cancel(cache->worker, i);
        p->is_pending = false;
        if (keep_result(cache, i, p->key, TIDE_ERR_CANCELLED, NULL, NULL, NULL) != TIDE_OK) return;
    }
}

void tide__query_drop_pending(tide_tui_query_cache *cache) {
    for (int i = 0; i < TIDE__N_QUERIES; i++) {
        if (cache->pending[i].is_pending) tide_tui_worker_cancel(cache->worker, i);
        cache->pending[i].is_pending = false;
    }
}

bool tide__query_is_pending(const tide_tui_query_cache *cache) {
    for (int i = 0; i < TIDE__N_QUERIES; i++) {
        if (cache->pending[i].is_pending) return true;
    }
    return false;
}

bool tide_tui_query_cache_has_news(tide_tui_query_cache *cache) {
    for (int i = 0; cache->worker != NULL && i < TIDE__N_QUERIES; i++) {
        const tide__pending_query *p = &cache->pending[i];
        if (!p->is_pending) continue;
        if (!tide_tui_worker_is_busy(cache->worker, i, p->key)) return true;
        char now[sizeof p->progress];
        tide_tui_worker_progress(cache->worker, i, now, sizeof now);
        if (strcmp(now, p->progress) != 0) return true;
    }
    return false;
}

// ---- subjects ----

void tide__query_b_changed(tide_tui_query_cache *cache) { cache->b_serial++; }

tide_status tide__query_a_grew(tide_tui_query_cache *cache, tide_error *err) {
    cache->a_serial++;
    if (cache->worker == NULL) return TIDE_OK;
    cache->worker_is_behind = true;
    return start_refresh(cache, err);
}

bool tide__query_same_table(tide__frame *f, int slot, tide_items_hold *hold) {
    const tide_items *now = tide_subject_items(f->st->a);
    if (hold != NULL && now == NULL) tide__query_share_items(f->cache, f->st, hold);
    if (hold != NULL && now == NULL) return true;
    if (hold != NULL && tide_items_held(hold) == now) return true;
    // While new rows are made: their result brings the newer table.
    if (now != NULL && !f->cache->pending[TIDE__QUERY_ROWS].is_pending) tide__query_forget(f->cache, slot);
    return false;
}

void tide__query_share_items(tide_tui_query_cache *cache, tide_tui_state *st, tide_items_hold *hold) {
    const tide_items *before = tide_subject_items(st->a), *now = tide_items_held(hold);
    if (before == now) return;
    tide_subject_give_items(st->a, hold);
    cache->items_serial++;
    if (st->item == TIDE_NO_ITEM) return;
    st->item = cache->has_item_id ? tide_items_find(now, cache->item_id) : TIDE_NO_ITEM;
    cache->item = st->item;
}
