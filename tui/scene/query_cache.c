// SPDX-License-Identifier: MIT
//
// Asking, at once or aside, and what is kept. See desk.h.
#include "tui/scene/query_cache.h"

#include <string.h>

#include "core/base/host_alloc.h"

// ---- keys ----

uint64_t tide__key(uint64_t key, uint64_t part) {
    key ^= part + 0x9E3779B97F4A7C15U + (key << 6) + (key >> 2);
    key *= 0xBF58476D1CE4E5B9U;
    return key ^ (key >> 29);
}

uint64_t tide__key_text(uint64_t key, const char *text) {
    uint64_t hash = 0xCBF29CE484222325U;
    for (const char *p = text; *p != '\0'; p++) hash = (hash ^ (unsigned char)*p) * 0x100000001B3U;
    return tide__key(key, hash);
}

uint64_t tide__key_moment(uint64_t key, tide_moment at) { return tide__key(tide__key(key, (uint64_t)at.t), at.event); }

tide_moment tide__cursor(const tide_tui_state *st) { return (tide_moment){st->cursor, st->cursor_event}; }

// ---- life ----

tide_status tide_tui_desk_create(struct tide_tui_worker *worker, tide_tui_desk **out, tide_error *err) {
    *out = tide_host_calloc(1, sizeof **out);
    if (*out == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the view");
    (*out)->worker = worker;
    (*out)->item = TIDE_NO_ITEM;
    return TIDE_OK;
}

void tide__desk_forget(tide_tui_desk *desk, int slot) {
    tide__answer *a = &desk->answers[slot];
    if (a->is_there && a->release != NULL && a->ctx != NULL) a->release(a->ctx);
    *a = (tide__answer){0};
}

static void drop_columns(tide__columns *c) {
    tide_host_free(c->min);
    tide_host_free(c->max);
    *c = (tide__columns){0};
}

static void drop_caches(tide_tui_desk *desk) {
    drop_columns(&desk->curve);
    drop_columns(&desk->predicted);
    drop_columns(&desk->b_curve);
    drop_columns(&desk->mini);
    tide_host_free(desk->marks);
    tide_host_free(desk->gantt);
    tide_host_free(desk->spans);
    tide_host_free(desk->match_bits);
    tide_host_free(desk->cells);
}

void tide_tui_desk_destroy(tide_tui_desk *desk) {
    if (desk == NULL) return;
    for (int i = 0; i < TIDE__N_ASKS; i++) {
        if (desk->worker != NULL) tide_tui_worker_cancel(desk->worker, i);
        tide__desk_forget(desk, i);
    }
    drop_caches(desk);
    tide_host_free(desk->text);
    tide_host_free(desk);
}

tide_status tide_tui_desk_set_text(tide_tui_desk *desk, const char *text, tide_error *err) {
    char *copy = tide_host_strdup(text);
    if (copy == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu bytes of text", strlen(text));
    tide_host_free(desk->text);
    desk->text = copy;
    return TIDE_OK;
}

// ---- small helpers of all who fill a scene ----

bool tide__is_shown(const tide__frame *f, tide_tui_pane pane) {
    return !f->layout->too_small && f->layout->panes[pane].w > 0 && f->layout->panes[pane].h > 0;
}

static void copy_text(char *buf, size_t buf_bytes, const char *text) {
    size_t n = strlen(text);
    if (n >= buf_bytes) {
        n = buf_bytes - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--; // no half of a character
    }
    memcpy(buf, text, n);
    buf[n] = '\0';
}

void tide__trouble(tide__frame *f, tide_tui_pane pane, const char *text) {
    if (pane < TIDE_TUI_N_PANES && f->out->trouble[pane][0] == '\0')
        copy_text(f->out->trouble[pane], sizeof f->out->trouble[pane], text);
}

void tide__trouble_of(char *buf, size_t buf_bytes, const tide_error *err) {
    tide_text text = {0};
    tide_text_add(&text, err->msg[0] != '\0' ? err->msg : tide_status_text(err->status));
    if (err->note[0] != '\0') tide_text_addf(&text, ": %s", err->note);
    copy_text(buf, buf_bytes, tide_text_str(&text));
    tide_text_deinit(&text);
}

bool tide__is_small(const tide_subject *s) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    return f->n_items <= TIDE__FEW_ITEMS && f->n_events <= TIDE__FEW_EVENTS && !f->is_recording;
}

tide_status tide__room(void *array, size_t *cap, size_t n, size_t elem_bytes, tide_error *err) {
    if (tide_host_grow(array, cap, n, elem_bytes) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a frame");
    return TIDE_OK;
}

// ---- asking ----

bool tide__desk_wants(const tide_tui_desk *desk, int slot, uint64_t key) {
    if (desk->answers[slot].is_there && desk->answers[slot].key == key) return false;
    return !(desk->pending[slot].is_asked && desk->pending[slot].key == key);
}

static tide_status keep_answer(tide_tui_desk *desk, int slot, uint64_t key, tide_status status, const tide_error *why,
                               void *ctx, void (*release)(void *ctx)) {
    tide__desk_forget(desk, slot);
    tide__answer *a = &desk->answers[slot];
    *a = (tide__answer){.is_there = true, .key = key, .status = status, .ctx = ctx, .release = release};
    // What was asked aside is of the subject as it was then.
    a->a_serial = desk->pending[slot].a_serial;
    if (status == TIDE_ERR_CANCELLED)
        copy_text(a->trouble, sizeof a->trouble, "cancelled");
    else if (status != TIDE_OK)
        tide__trouble_of(a->trouble, sizeof a->trouble, why);
    return status == TIDE_ERR_NOMEM ? TIDE_ERR_NOMEM : TIDE_OK;
}

tide_status tide__desk_ask(tide_tui_desk *desk, int slot, uint64_t key, bool at_once, tide__desk_run run,
                           void (*release)(void *ctx), void *ctx, tide_error *err) {
    if (ctx == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a question");
    if (desk->worker == NULL || (at_once && !desk->asks_aside)) {
        if (desk->worker != NULL) tide_tui_worker_cancel(desk->worker, slot);
        desk->pending[slot] = (tide__pending){.a_serial = desk->a_serial};
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = run(ctx, desk->a, desk->b, NULL, &why);
        const tide_status kept = keep_answer(desk, slot, key, st, &why, ctx, release);
        if (kept != TIDE_OK && err != NULL) *err = why;
        return kept;
    }
    desk->pending[slot] = (tide__pending){.is_asked = true, .key = key, .a_serial = desk->a_serial, .release = release};
    const tide_tui_job job = {
        .slot = slot, .key = key, .run = run, .release = release, .ctx = ctx, .until_ns = desk->until_ns};
    return tide_tui_worker_ask(desk->worker, &job, err);
}

tide_status tide__desk_ask_of_moment(tide__frame *f, int slot, uint64_t key, bool at_once, tide__desk_run run,
                                     void (*release)(void *ctx), void *ctx) {
    TIDE_TRY(tide__desk_ask(f->desk, slot, key, at_once, run, release, ctx, f->err));
    f->desk->pending[slot].moment = tide__key_moment(0, tide__cursor(f->st));
    return TIDE_OK;
}

void *tide__desk_earlier(tide__frame *f, int slot, tide_tui_pane pane) {
    const tide__answer *a = &f->desk->answers[slot];
    if (!f->desk->pending[slot].is_asked || !a->is_there || a->status != TIDE_OK) return NULL;
    if (a->a_serial != f->desk->a_serial) return NULL; // its texts may be gone
    if (pane < TIDE_TUI_N_PANES) f->out->is_earlier[pane] = true;
    return a->ctx;
}

void tide__desk_begin_frame(tide_tui_desk *desk, const tide_tui_state *st) {
    desk->until_ns = tide_now_ns() + (uint64_t)TIDE_TUI_PATIENCE_MS * 1000000U;
    const uint64_t moment = tide__key_moment(0, tide__cursor(st));
    for (int i = 0; desk->worker != NULL && i < TIDE__N_ASKS; i++) {
        tide__pending *p = &desk->pending[i];
        if (!p->is_asked || p->moment == 0 || p->moment == moment) continue;
        tide_tui_worker_cancel(desk->worker, i);
        p->is_asked = false;
    }
}

/// What the worker has of one slot becomes its answer.
static tide_status collect_slot(tide_tui_desk *desk, int slot, tide_error *err) {
    tide__pending *p = &desk->pending[slot];
    if (!p->is_asked) return TIDE_OK;
    void *ctx = NULL;
    tide_status status = TIDE_OK;
    tide_error why = TIDE_ERROR_INIT;
    if (!tide_tui_worker_take(desk->worker, slot, p->key, &ctx, &status, &why)) return TIDE_OK;
    p->is_asked = false;
    const tide_status st = keep_answer(desk, slot, p->key, status, &why, ctx, p->release);
    if (st != TIDE_OK && err != NULL) *err = why;
    return st;
}

tide_status tide__desk_collect(tide_tui_desk *desk, tide_tui_state *st, tide_error *err) {
    tide__desk_see(desk, st);
    if (desk->worker == NULL) return TIDE_OK;
    for (int i = 0; i < TIDE__N_ASKS; i++) TIDE_TRY(collect_slot(desk, i, err));
    return TIDE_OK;
}

void *tide__desk_answer_of(tide__frame *f, int slot, uint64_t key, tide_tui_pane pane) {
    tide_tui_desk *desk = f->desk;
    // Quick answers are there by now. Running out of memory on the worker's thread is said like any other trouble.
    if (desk->worker != NULL && collect_slot(desk, slot, NULL) != TIDE_OK) tide__trouble(f, pane, "out of memory");
    tide__pending *p = &desk->pending[slot];
    if (p->is_asked && p->key == key) {
        tide_tui_worker_progress(desk->worker, slot, p->said, sizeof p->said);
        if (pane < TIDE_TUI_N_PANES) copy_text(f->out->busy[pane], sizeof f->out->busy[pane], p->said);
    }
    tide__answer *a = &desk->answers[slot];
    if (!a->is_there || a->key != key) return NULL;
    if (a->status == TIDE_OK) return a->ctx;
    tide__trouble(f, pane, a->trouble);
    return NULL;
}

void tide__desk_cancel(tide_tui_desk *desk) {
    if (desk->worker == NULL) return;
    for (int i = 0; i < TIDE__N_ASKS; i++) {
        tide__pending *p = &desk->pending[i];
        if (!p->is_asked) continue;
        tide_tui_worker_cancel(desk->worker, i);
        p->is_asked = false;
        if (keep_answer(desk, i, p->key, TIDE_ERR_CANCELLED, NULL, NULL, NULL) != TIDE_OK) return;
    }
}

void tide__desk_drop_questions(tide_tui_desk *desk) {
    for (int i = 0; i < TIDE__N_ASKS; i++) {
        if (desk->pending[i].is_asked) tide_tui_worker_cancel(desk->worker, i);
        desk->pending[i].is_asked = false;
    }
}

bool tide__desk_is_busy(const tide_tui_desk *desk) {
    for (int i = 0; i < TIDE__N_ASKS; i++) {
        if (desk->pending[i].is_asked) return true;
    }
    return false;
}

bool tide_tui_desk_has_news(tide_tui_desk *desk) {
    for (int i = 0; desk->worker != NULL && i < TIDE__N_ASKS; i++) {
        const tide__pending *p = &desk->pending[i];
        if (!p->is_asked) continue;
        if (!tide_tui_worker_is_busy(desk->worker, i, p->key)) return true;
        char now[sizeof p->said];
        tide_tui_worker_progress(desk->worker, i, now, sizeof now);
        if (strcmp(now, p->said) != 0) return true;
    }
    return false;
}

// ---- subjects ----

void tide__desk_see(tide_tui_desk *desk, const tide_tui_state *st) {
    if (desk->a != st->a) desk->a_serial++;
    if (desk->b != st->b) desk->b_serial++;
    desk->a = st->a;
    desk->b = st->b;
}

void tide__desk_b_changed(tide_tui_desk *desk) { desk->b_serial++; }

static tide_status run_refresh(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)ctx;
    (void)b;
    (void)progress;
    return tide_subject_refresh(a, NULL, err);
}

tide_status tide__desk_a_grew(tide_tui_desk *desk, tide_error *err) {
    desk->a_serial++;
    if (desk->worker == NULL) return TIDE_OK;
    return tide__desk_ask(desk, TIDE__ASK_REFRESH, desk->a_serial, false, run_refresh, tide_host_free,
                          tide_host_alloc(1), err);
}

bool tide__same_table(tide__frame *f, int slot, tide_items_hold *hold) {
    const tide_items *now = tide_subject_items(f->st->a);
    if (hold != NULL && now == NULL) tide__desk_give_items(f->desk, f->st, hold);
    if (hold != NULL && now == NULL) return true;
    if (hold != NULL && tide_items_held(hold) == now) return true;
    // While new rows are being made they bring the newer table.
    if (now != NULL && !f->desk->pending[TIDE__ASK_ROWS].is_asked) tide__desk_forget(f->desk, slot);
    return false;
}

void tide__desk_give_items(tide_tui_desk *desk, tide_tui_state *st, tide_items_hold *hold) {
    const tide_items *before = tide_subject_items(st->a), *now = tide_items_held(hold);
    if (before == now) return;
    tide_subject_give_items(st->a, hold);
    desk->items_serial++;
    if (st->item == TIDE_NO_ITEM) return;
    st->item = desk->has_item_id ? tide_items_find(now, desk->item_id) : TIDE_NO_ITEM;
    desk->item = st->item;
}
