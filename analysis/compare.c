// SPDX-License-Identifier: MIT
//
// compare: the two sides, the waterfall, and putting it together. Rows are matched in compare_rows.c. See compare.h.
#include "analysis/compare.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare_internal.h"
#include "analysis/explain_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to compare"); }

// ---- waterfall ----

typedef struct waterfall {
    tide_strmap index;
    tide_diff_step *list; // [n], owned
    size_t n, cap;
} waterfall;

static tide_status put(waterfall *w, const char *key, bool is_part, bool is_b, uint64_t bytes) {
    uint64_t i;
    if (bytes == 0) return TIDE_OK;
    // A part and an operator of one name are two steps: no text of a part begins with a control character.
    tide_text whole = {0};
    tide_text_addf(&whole, "%s%s", is_part ? "\1" : "", key);
    tide_status st = whole.failed ? TIDE_ERR_NOMEM : TIDE_OK;
    if (st == TIDE_OK && !tide_strmap_get(&w->index, whole.data, &i)) {
        i = w->n;
        st = tide_host_grow(&w->list, &w->cap, w->n + 1, sizeof *w->list);
        if (st == TIDE_OK) st = tide_strmap_put(&w->index, whole.data, i);
        char *own = st == TIDE_OK ? tide_host_strdup(key) : NULL;
        if (own == NULL) st = TIDE_ERR_NOMEM;
        if (st == TIDE_OK) w->list[w->n++] = (tide_diff_step){.key = own, .is_part = is_part};
    }
    tide_text_deinit(&whole);
    if (st != TIDE_OK) return st;
    uint64_t *side = is_b ? &w->list[i].b_bytes : &w->list[i].a_bytes;
    *side += bytes;
    return TIDE_OK;
}

static bool has_device_but(const tide_explanation *e, const char *device) {
    for (size_t i = 0; i < e->live.n; i++) {
        if (strcmp(e->live.items[i].shape.device, device) != 0) return true;
    }
    return false;
}

/// Keys of both sides must be made alike.
static bool need_devices(const tide_explanation *a, const tide_explanation *b) {
    const tide_explanation *any = a->live.n > 0 ? a : b;
    if (any->live.n == 0) return false;
    const char *device = any->live.items[0].shape.device;
    return has_device_but(a, device) || has_device_but(b, device);
}

static tide_status put_kinds(waterfall *w, const tide_explanation *e, bool with_device, bool is_b) {
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        char buf[128];
        TIDE_TRY(put(w, tide__kind_key(x, with_device, buf, sizeof buf), false, is_b, x->counts_bytes));
    }
    return TIDE_OK;
}

static tide_status put_owners(waterfall *w, const tide_explanation *e, bool is_b) {
    for (size_t i = 0; i < e->n_by_owner; i++) TIDE_TRY(put(w, e->by_owner[i].key, false, is_b, e->by_owner[i].bytes));
    return TIDE_OK;
}

/// Parts that no live item has: of a plan rounding is in what they count.
static tide_status put_parts(waterfall *w, const tide_explanation *e, bool is_b, bool is_trace) {
    for (int k = TIDE_PART_ROUNDING; k < TIDE_N_PARTS; k++) {
        if (k == TIDE_PART_ROUNDING && !is_trace) continue;
        TIDE_TRY(put(w, tide_part_name((tide_part_kind)k), true, is_b, e->parts[k]));
    }
    return TIDE_OK;
}

static uint64_t change(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static int by_change(const void *a, const void *b) {
    const tide_diff_step *x = a, *y = b;
    const uint64_t x_change = change(x->a_bytes, x->b_bytes), y_change = change(y->a_bytes, y->b_bytes);
    if (x_change != y_change) return x_change > y_change ? -1 : 1;
    if (x->is_part != y->is_part) return x->is_part ? 1 : -1;
    return strcmp(x->key, y->key);
}

static void free_steps(tide_diff_step *list, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(list[i].key);
    tide_host_free(list);
}

static tide_status make_waterfall(const tide__diff_side *a, const tide__diff_side *b, bool by_kind,
                                  tide_diff_step **out, size_t *n) {
    waterfall w = {0};
    const bool with_device = by_kind && need_devices(&a->e, &b->e);
    tide_status st = by_kind ? put_kinds(&w, &a->e, with_device, false) : put_owners(&w, &a->e, false);
    if (st == TIDE_OK) st = by_kind ? put_kinds(&w, &b->e, with_device, true) : put_owners(&w, &b->e, true);
    if (st == TIDE_OK) st = put_parts(&w, &a->e, false, a->facts->is_trace);
    if (st == TIDE_OK) st = put_parts(&w, &b->e, true, b->facts->is_trace);
    tide_strmap_deinit(&w.index);
    if (st != TIDE_OK) {
        free_steps(w.list, w.n);
        return st;
    }
    if (w.n > 1) qsort(w.list, w.n, sizeof *w.list, by_change);
    *out = w.list;
    *n = w.n;
    return TIDE_OK;
}

// ---- rows in order ----

static uint64_t larger(const tide_diff_row *r) { return r->a_bytes > r->b_bytes ? r->a_bytes : r->b_bytes; }

static int by_weight(const void *a, const void *b) {
    const tide_diff_row *x = a, *y = b;
    const uint64_t x_change = change(x->a_at_bytes, x->b_at_bytes), y_change = change(y->a_at_bytes, y->b_at_bytes);
    if (x_change != y_change) return x_change > y_change ? -1 : 1;
    if (larger(x) != larger(y)) return larger(x) > larger(y) ? -1 : 1;
    const int by_name = strcmp(x->name, y->name);
    if (by_name != 0) return by_name;
    const uint32_t x_item = x->a != TIDE_NO_ITEM ? x->a : x->b, y_item = y->a != TIDE_NO_ITEM ? y->a : y->b;
    return (x_item > y_item) - (x_item < y_item);
}

static void count(tide_diff *d) {
    for (size_t i = 0; i < d->n; i++) {
        const unsigned what = d->rows[i].what;
        d->n_added += (what & TIDE_DIFF_ADDED) != 0;
        d->n_removed += (what & TIDE_DIFF_REMOVED) != 0;
        d->n_resized += (what & TIDE_DIFF_RESIZED) != 0;
        d->n_moved += (what & TIDE_DIFF_MOVED) != 0;
        d->n_retimed += (what & TIDE_DIFF_RETIMED) != 0;
        d->n_unchanged += what == 0;
    }
}

// ---- the whole ----

tide_status tide__diff_tell(const tide__diff_work *w, double share, const char *what) {
    if (w->progress == NULL || w->progress->tell == NULL || w->progress->tell(w->progress->ctx, share, what))
        return TIDE_OK;
    return TIDE_FAIL(w->err, TIDE_ERR_CANCELLED, "comparing was cancelled");
}

/// The share of the whole that explaining one side is.
typedef struct side_share {
    const tide__diff_work *w;
    double from;
    const char *what;
} side_share;

static bool tell_side(void *ctx, double share, const char *what) {
    const side_share *x = ctx;
    (void)what;
    return x->w->progress->tell(x->w->progress->ctx, x->from + 0.2 * share, x->what);
}

static tide_status open_side(const tide__diff_work *w, tide__diff_side *side, tide_subject *s, const tide_moment *at,
                             const side_share *share) {
    const bool rows_at = w->rows_at;
    tide_error *err = w->err;
    TIDE_TRY(tide__diff_tell(w, share->from, share->what));
    side->s = s;
    side->facts = tide_subject_get_facts(s);
    side->items = tide_subject_items(s);
    if (!rows_at && side->items == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot compare '%s': its items are not loaded", side->facts->title);
    if (!rows_at && side->items->n > TIDE_COMPARE_MAX_ITEMS) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot compare all %zu items of '%s': more than %d",
                                         side->items->n, side->facts->title, (int)TIDE_COMPARE_MAX_ITEMS);
        tide_error_hint(err, "compare what is alive at two moments");
        return st;
    }
    side_share own = *share;
    const tide_progress progress = {.tell = tell_side, .ctx = &own};
    const bool is_told = w->progress != NULL && w->progress->tell != NULL;
    return tide_explain(s, at != NULL ? *at : side->facts->peak, 0, is_told ? &progress : NULL, &side->e, err);
}

static tide_status fill(tide__diff_work *w, tide_diff *d) {
    const tide__diff_side *a = &w->a, *b = &w->b;
    d->a_at = a->e.at;
    d->b_at = b->e.at;
    d->a_bytes = a->e.held_bytes;
    d->b_bytes = b->e.held_bytes;
    d->a_peak_bytes = a->facts->peak_bytes;
    d->b_peak_bytes = b->facts->peak_bytes;
    d->a_plan_bytes = a->facts->has_plan ? a->facts->plan_bytes : TIDE_UNKNOWN_BYTES;
    d->b_plan_bytes = b->facts->has_plan ? b->facts->plan_bytes : TIDE_UNKNOWN_BYTES;
    if (make_waterfall(a, b, false, &d->by_owner, &d->n_by_owner) != TIDE_OK ||
        make_waterfall(a, b, true, &d->by_kind, &d->n_by_kind) != TIDE_OK)
        return no_memory(w->err);
    TIDE_TRY(tide__diff_rows(w, d));
    TIDE_TRY(tide__diff_tell(w, 0.9, "sorting"));
    if (d->n > 1) qsort(d->rows, d->n, sizeof *d->rows, by_weight);
    count(d);
    return TIDE_OK;
}

/// Whether the numbers of their items mean the same.
static bool is_same(const tide_subject *a, const tide_subject *b) {
    const tide_subject_facts *x = tide_subject_get_facts(a), *y = tide_subject_get_facts(b);
    return a == b || (x->is_trace && y->is_trace && x->path[0] != '\0' && strcmp(x->path, y->path) == 0 &&
                      x->run_id == y->run_id);
}

tide_status tide_compare(tide_subject *a, const tide_moment *a_at, tide_subject *b, const tide_moment *b_at,
                         bool rows_at, const tide_progress *progress, tide_diff *out, tide_error *err) {
    tide__diff_work w = {.rows_at = rows_at, .progress = progress, .err = err};
    tide_diff d = {0};
    w.is_same = is_same(a, b);
    w.rows_at = w.rows_at || w.is_same;
    tide_status st = open_side(&w, &w.a, a, a_at, &(side_share){&w, 0, "explaining A"});
    if (st == TIDE_OK) st = open_side(&w, &w.b, b, b_at, &(side_share){&w, 0.2, "explaining B"});
    if (st == TIDE_OK) st = tide__diff_tell(&w, 0.4, "matching");
    if (st == TIDE_OK) st = fill(&w, &d);
    tide_explanation_deinit(&w.a.e);
    tide_explanation_deinit(&w.b.e);
    if (st != TIDE_OK) {
        tide_diff_deinit(&d);
        return st;
    }
    *out = d;
    return TIDE_OK;
}

void tide_diff_deinit(tide_diff *d) {
    tide_host_free(d->rows);
    free_steps(d->by_owner, d->n_by_owner);
    free_steps(d->by_kind, d->n_by_kind);
    *d = (tide_diff){0};
}
