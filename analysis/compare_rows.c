// SPDX-License-Identifier: MIT
//
// compare, rows: who is who on both sides.
//
//     names      "conv1_out" -> 0, "relu1_out" -> 1 …        of both sides
//     ranks      conv1_out, relu1_out, conv1_out …           in order of birth: 0, 0, 1 …
//     A's table  by name, then rank: [0.0 0.1 0.2][1.0 1.1]  where B's items find theirs
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

/// An item of one side.
typedef struct entry {
    const char *name, *owner;
    const tide_lifetime *tensor; // of a planned one; else NULL
    int64_t begin;
    uint64_t id, bytes, at_bytes, place;
    uint32_t item, key, rank;
    bool is_planned, is_matched;
} entry;

typedef struct side_list {
    entry *list; // [n], owned
    size_t n;
} side_list;

static tide_status no_memory(const tide__diff_work *w) {
    return TIDE_FAIL(w->err, TIDE_ERR_NOMEM, "no memory to compare items");
}

// ---- entries ----

static void add_plan(const tide__diff_side *side, entry *e) {
    const tide_memory_plan *plan = side->facts->plan;
    e->place = TIDE_NO_OFFSET;
    if (!e->is_planned || plan == NULL || e->id >= plan->lifetimes.n) return;
    e->tensor = &plan->lifetimes.items[e->id];
    e->place = plan->offsets[e->id];
}

static entry entry_of_live(const tide__diff_side *side, const tide_live_item *x) {
    entry e = {.name = x->site.name,
               .owner = x->site.owner,
               .begin = x->begin,
               .id = x->id,
               .bytes = x->shape.size_bytes,
               .at_bytes = x->counts_bytes,
               .item = x->item,
               .is_planned = x->shape.is_planned};
    add_plan(side, &e);
    return e;
}

static entry entry_of_item(const tide__diff_side *side, uint32_t i) {
    const tide_items *items = side->items;
    const tide_item_site *site = tide_items_site(items, i);
    const tide_item_shape *shape = tide_items_shape(items, i);
    entry e = {.name = site->name,
               .owner = site->owner,
               .begin = tide_items_begin(items, i),
               .id = tide_items_id(items, i),
               .bytes = shape->size_bytes,
               .item = i,
               .is_planned = shape->is_planned};
    add_plan(side, &e);
    return e;
}

static int by_birth(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/// Items, and those alive that are not among them: all that holds bytes has a row.
static tide_status list_side(const tide__diff_work *w, const tide__diff_side *side, side_list *out) {
    const tide_live_items *live = &side->e.live;
    const size_t n_items = w->rows_at ? 0 : side->items->n;
    out->list = tide_host_alloc((n_items + live->n + 1) * sizeof *out->list);
    if (out->list == NULL) return no_memory(w);
    for (uint32_t i = 0; i < n_items; i++) out->list[out->n++] = entry_of_item(side, i);
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *x = &live->items[i];
        if (x->item < n_items)
            out->list[x->item].at_bytes = x->counts_bytes;
        else
            out->list[out->n++] = entry_of_live(side, x);
    }
    // Items are in this order already.
    if (w->rows_at && out->n > 1) qsort(out->list, out->n, sizeof *out->list, by_birth);
    return TIDE_OK;
}

// ---- two subjects: by name and rank ----

/// A number for each name of both sides.
static tide_status number_names(tide_strmap *names, side_list *l) {
    tide_text key = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < l->n; i++) {
        entry *e = &l->list[i];
        uint64_t number = names->map.n;
        key.len = 0;
        tide_text_addf(&key, "%s%s", e->name[0] != '\0' ? "" : "\1", e->name[0] != '\0' ? e->name : e->owner);
        if (key.failed || number >= UINT32_MAX) {
            st = TIDE_ERR_NOMEM;
        } else if (!tide_strmap_get(names, key.data, &number)) {
            st = tide_strmap_put(names, key.data, number);
        }
        e->key = (uint32_t)number;
    }
    tide_text_deinit(&key);
    return st;
}

/// How often each name came before; counts [n_names] ends as how often it is there.
static void rank(side_list *l, uint32_t *counts, size_t n_names) {
    memset(counts, 0, n_names * sizeof *counts);
    for (size_t i = 0; i < l->n; i++) l->list[i].rank = counts[l->list[i].key]++;
}

static tide_status match_names(const tide__diff_work *w, side_list *a, side_list *b, entry **partners) {
    tide_strmap names = {0};
    tide_status st = number_names(&names, a);
    if (st == TIDE_OK) st = number_names(&names, b);
    const size_t n_names = names.map.n;
    tide_strmap_deinit(&names);
    uint32_t *counts = tide_host_alloc((n_names + 1) * sizeof *counts);
    size_t *first = tide_host_alloc((n_names + 1) * sizeof *first);
    entry **table = tide_host_alloc((a->n + 1) * sizeof *table);
    if (counts == NULL || first == NULL || table == NULL) st = TIDE_ERR_NOMEM;
    if (st == TIDE_OK) {
        rank(b, counts, n_names);
        rank(a, counts, n_names);
        size_t at = 0;
        for (size_t k = 0; k < n_names; k++) {
            first[k] = at;
            at += counts[k];
        }
        for (size_t i = 0; i < a->n; i++) table[first[a->list[i].key] + a->list[i].rank] = &a->list[i];
        for (size_t i = 0; i < b->n; i++) {
            const entry *e = &b->list[i];
            partners[i] = e->rank < counts[e->key] ? table[first[e->key] + e->rank] : NULL;
        }
    }
    tide_host_free(counts);
    tide_host_free(first);
    tide_host_free(table);
    return st == TIDE_OK ? TIDE_OK : no_memory(w);
}

// ---- one subject: by number ----

static int compare_numbers(const entry *x, const entry *y) {
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin); // a number that was given twice
}

static int by_number(const void *a, const void *b) { return compare_numbers(a, b); }

static void match_numbers(side_list *a, side_list *b, entry **partners) {
    if (a->n > 1) qsort(a->list, a->n, sizeof *a->list, by_number);
    if (b->n > 1) qsort(b->list, b->n, sizeof *b->list, by_number);
    for (size_t i = 0, k = 0; i < b->n; i++) {
        while (k < a->n && compare_numbers(&a->list[k], &b->list[i]) < 0) k++;
        partners[i] = k < a->n && compare_numbers(&a->list[k], &b->list[i]) == 0 ? &a->list[k] : NULL;
    }
}

// ---- rows ----

static bool same_step(const tide_lifetimes *a, int64_t a_step, const tide_lifetimes *b, int64_t b_step) {
    const bool named = (uint64_t)a_step < a->n_step_names && (uint64_t)b_step < b->n_step_names;
    return named ? strcmp(a->step_names[a_step], b->step_names[b_step]) == 0 : a_step == b_step;
}

/// What persists lives for all steps, whatever they are.
static bool is_retimed(const tide__diff_work *w, const entry *a, const entry *b) {
    if (a->tensor == NULL || b->tensor == NULL || (a->tensor->persistent && b->tensor->persistent)) return false;
    const tide_lifetimes *x = &w->a.facts->plan->lifetimes, *y = &w->b.facts->plan->lifetimes;
    return !same_step(x, a->tensor->begin_step, y, b->tensor->begin_step) ||
           !same_step(x, a->tensor->end_step - 1, y, b->tensor->end_step - 1);
}

static tide_diff_row row_of(const tide__diff_work *w, const entry *a, const entry *b) {
    const entry *any = a != NULL ? a : b;
    tide_diff_row r = {.name = any->name, .owner = any->owner, .a = TIDE_NO_ITEM, .b = TIDE_NO_ITEM};
    if (a != NULL) {
        r.a = a->item;
        r.a_bytes = a->bytes;
        r.a_at_bytes = a->at_bytes;
    }
    if (b != NULL) {
        r.b = b->item;
        r.b_bytes = b->bytes;
        r.b_at_bytes = b->at_bytes;
    }
    if (a == NULL) r.what = TIDE_DIFF_ADDED;
    if (b == NULL) r.what = TIDE_DIFF_REMOVED;
    if (a == NULL || b == NULL) return r;
    if (a->bytes != b->bytes) r.what |= TIDE_DIFF_RESIZED;
    if (a->tensor != NULL && b->tensor != NULL && a->place != b->place) r.what |= TIDE_DIFF_MOVED;
    if (is_retimed(w, a, b)) r.what |= TIDE_DIFF_RETIMED;
    return r;
}

static tide_status make_rows(const tide__diff_work *w, side_list *a, side_list *b, entry **partners, tide_diff *d) {
    d->rows = tide_host_alloc((a->n + b->n + 1) * sizeof *d->rows);
    if (d->rows == NULL) return no_memory(w);
    for (size_t i = 0; i < b->n; i++) {
        if (partners[i] != NULL) partners[i]->is_matched = true;
        d->rows[d->n++] = row_of(w, partners[i], &b->list[i]);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!a->list[i].is_matched) d->rows[d->n++] = row_of(w, &a->list[i], NULL);
    }
    return TIDE_OK;
}

tide_status tide__diff_rows(tide__diff_work *w, tide_diff *d) {
    side_list a = {0}, b = {0};
    entry **partners = NULL;
    tide_status st = list_side(w, &w->a, &a);
    if (st == TIDE_OK) st = list_side(w, &w->b, &b);
    if (st == TIDE_OK) st = tide__diff_tell(w, 0.6, "matching");
    if (st == TIDE_OK) {
        partners = tide_host_alloc((b.n + 1) * sizeof *partners);
        if (partners == NULL) st = no_memory(w);
    }
    if (st == TIDE_OK && w->is_same) match_numbers(&a, &b, partners);
    if (st == TIDE_OK && !w->is_same) st = match_names(w, &a, &b, partners);
    if (st == TIDE_OK) st = tide__diff_tell(w, 0.8, "matching");
    if (st == TIDE_OK) st = make_rows(w, &a, &b, partners, d);
    tide_host_free(a.list);
    tide_host_free(b.list);
    tide_host_free(partners);
    return st;
}
