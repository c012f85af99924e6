// SPDX-License-Identifier: MIT
//
// Making a table of items. See items_internal.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/items_internal.h"
#include "analysis/items_order.h"
#include "core/base/host_alloc.h"

// ---- names of sites: their order, and their texts in lower case for searches ----

static bool named_before(const void *ctx, uint32_t a, uint32_t b) {
    const tide_item_site *x = &((const tide_items *)ctx)->sites[a], *y = &((const tide_items *)ctx)->sites[b];
    int order = strcmp(x->name, y->name);
    if (order == 0) order = strcmp(x->owner, y->owner);
    return order != 0 ? order < 0 : x->step <= y->step;
}

static char *fold(char *out, const char *text) {
    for (; *text != '\0'; text++) *out++ = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    return out;
}

static tide_status make_folded(const tide_items *items, tide__site_names *n) {
    size_t bytes = 1;
    for (size_t i = 0; i < items->n_sites; i++)
        bytes += strlen(items->sites[i].name) + strlen(items->sites[i].owner) + 2;
    if (bytes > UINT32_MAX) return TIDE_ERR_OVERFLOW;
    n->folded = tide_host_alloc(bytes);
    n->folded_at = tide_host_alloc((items->n_sites + 1) * sizeof *n->folded_at);
    if (n->folded == NULL || n->folded_at == NULL) return TIDE_ERR_NOMEM;
    char *at = n->folded;
    for (size_t i = 0; i < items->n_sites; i++) {
        n->folded_at[i] = (uint32_t)(at - n->folded);
        at = fold(at, items->sites[i].name);
        *at++ = '\n';
        at = fold(at, items->sites[i].owner);
        *at++ = '\0';
    }
    n->folded_at[items->n_sites] = (uint32_t)(at - n->folded);
    return TIDE_OK;
}

static tide_status make_ranks(const tide_items *items, tide__site_names *n) {
    uint32_t *order = tide_host_alloc((items->n_sites + 1) * sizeof *order);
    n->rank = tide_host_alloc((items->n_sites + 1) * sizeof *n->rank);
    tide_status st = order != NULL && n->rank != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (uint32_t i = 0; st == TIDE_OK && i < items->n_sites; i++) order[i] = i;
    if (st == TIDE_OK) st = tide__merge_sort(order, items->n_sites, named_before, items, NULL);
    for (uint32_t i = 0; st == TIDE_OK && i < items->n_sites; i++) n->rank[order[i]] = i;
    tide_host_free(order);
    return st;
}

tide_status tide__site_names_make(const tide_items *items, tide__site_names *out) {
    *out = (tide__site_names){0};
    tide_status st = make_ranks(items, out);
    if (st == TIDE_OK) st = make_folded(items, out);
    if (st != TIDE_OK) tide__site_names_deinit(out);
    return st;
}

enum { TEXT_PAGE = 1 << 16 };

// ---- keys to numbers ----

static uint64_t mix(uint64_t x) { // splitmix64
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t hash_of_key(const uint64_t key[3]) { return mix(key[0] + mix(key[1] + mix(key[2]))); }

static const uint64_t *key_at(const void *keys, uint32_t i) { return (const uint64_t *)keys + (size_t)i * 3; }
static uint64_t hash_of_row(const void *keys, uint32_t i) { return hash_of_key(key_at(keys, i)); }
static bool is_key(const void *keys, uint32_t i, const void *key) {
    return memcmp(key_at(keys, i), key, 3 * sizeof(uint64_t)) == 0;
}

tide_status tide__intern_put(tide__intern *t, const uint64_t key[3], uint32_t *out, bool *is_new) {
    *out = tide_index_find(&t->index, hash_of_key(key), t->keys, is_key, key);
    *is_new = *out == TIDE_INDEX_NONE;
    if (!*is_new) return TIDE_OK;
    if (t->n >= UINT32_MAX - 1) return TIDE_ERR_OVERFLOW;
    TIDE_TRY(tide_host_grow(&t->keys, &t->cap, t->n + 1, sizeof t->keys[0]));
    memcpy(t->keys[t->n], key, sizeof t->keys[0]);
    TIDE_TRY(tide_index_put(&t->index, (uint32_t)t->n, t->keys, hash_of_row));
    *out = (uint32_t)t->n++;
    return TIDE_OK;
}

static void intern_deinit(tide__intern *t) {
    tide_host_free(t->keys);
    tide_index_deinit(&t->index);
    *t = (tide__intern){0};
}

// ---- begin, end ----

tide_status tide__items_start(tide__items_builder *b, size_t cap, int64_t begin, int64_t end) {
    *b = (tide__items_builder){.packer.cap = cap, .begin = begin, .end = end};
    tide_items *it = &b->items;
    it->inside = b->inside = tide_host_calloc(1, sizeof *b->inside);
    const size_t n_places = cap < TIDE_ITEMS_KEEP_PLACES ? cap : TIDE_ITEMS_KEEP_PLACES;
    it->place = tide_host_alloc((n_places + 1) * sizeof *it->place);
    if (cap >= TIDE_NO_ITEM) return TIDE_ERR_OVERFLOW;
    return it->inside != NULL && it->place != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

void tide__items_abandon(tide__items_builder *b) {
    tide_items_deinit(&b->items);
    intern_deinit(&b->sites);
    intern_deinit(&b->shapes);
    tide_host_free(b->shape_texts);
    *b = (tide__items_builder){0};
}

// ---- texts, sites, shapes ----

const char *tide__items_text(tide__items_builder *b, const char *text) {
    tide__items_inside *in = b->inside;
    const size_t bytes = strlen(text) + 1;
    if (in->n_pages == 0 || bytes > in->page_bytes - in->page_used) {
        if (tide_host_grow(&in->pages, &in->cap_pages, in->n_pages + 1, sizeof *in->pages) != TIDE_OK) return NULL;
        in->page_bytes = bytes > TEXT_PAGE ? bytes : TEXT_PAGE;
        in->page_used = 0;
        in->pages[in->n_pages] = tide_host_alloc(in->page_bytes);
        if (in->pages[in->n_pages] == NULL) {
            in->page_bytes = 0;
            return NULL;
        }
        in->n_pages++;
    }
    char *copy = in->pages[in->n_pages - 1] + in->page_used;
    memcpy(copy, text, bytes);
    in->page_used += bytes;
    return copy;
}

tide_status tide__items_add_site(tide__items_builder *b, const char *name, const char *owner, int64_t step,
                                 uint32_t *out) {
    tide_items *it = &b->items;
    if (it->n_sites >= UINT32_MAX) return TIDE_ERR_OVERFLOW;
    TIDE_TRY(tide_host_grow(&it->sites, &b->cap_sites, it->n_sites + 1, sizeof *it->sites));
    tide_item_site site = {.name = tide__items_text(b, name), .owner = tide__items_text(b, owner), .step = step};
    if (site.name == NULL || site.owner == NULL) return TIDE_ERR_NOMEM;
    *out = (uint32_t)it->n_sites;
    it->sites[it->n_sites++] = site;
    return TIDE_OK;
}

/// Place of a text of shapes in their list: there are as many as devices and allocators.
static tide_status text_number(tide__items_builder *b, const char *text, uint64_t *out) {
    for (size_t i = 0; i < b->n_shape_texts; i++) {
        *out = i;
        if (b->shape_texts[i] == text) return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&b->shape_texts, &b->cap_shape_texts, b->n_shape_texts + 1, sizeof *b->shape_texts));
    *out = b->n_shape_texts;
    b->shape_texts[b->n_shape_texts++] = text;
    return *out < 1 << 15 ? TIDE_OK : TIDE_ERR_OVERFLOW;
}

tide_status tide__items_put_shape(tide__items_builder *b, const tide_item_shape *shape, uint32_t *out) {
    tide_items *it = &b->items;
    uint64_t device, allocator;
    TIDE_TRY(text_number(b, shape->device, &device));
    TIDE_TRY(text_number(b, shape->allocator, &allocator));
    const uint64_t flags = (uint64_t)shape->kind | (uint64_t)shape->role << 8 | (uint64_t)shape->fill << 16 |
                           (uint64_t)shape->alias << 24 | (uint64_t)shape->persistent << 32 |
                           (uint64_t)shape->is_planned << 33 | device << 34 | allocator << 49;
    const uint64_t key[3] = {shape->size_bytes, shape->reserved_bytes, flags};
    bool is_new;
    TIDE_TRY(tide__intern_put(&b->shapes, key, out, &is_new));
    if (!is_new) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&it->shapes, &b->cap_shapes, it->n_shapes + 1, sizeof *it->shapes));
    it->shapes[it->n_shapes++] = *shape;
    return TIDE_OK;
}

void tide__shape_classify(tide_item_shape *shape, bool persistent_in_plan) {
    shape->fill = tide_item_fill_of(shape->kind, shape->role);
    shape->persistent = tide_item_persists(shape->kind, shape->role, persistent_in_plan);
}

int64_t tide__cut(int64_t begin, int64_t end, uint64_t t) {
    if (t > INT64_MAX) return end;
    return (int64_t)t < begin ? begin : ((int64_t)t > end ? end : (int64_t)t);
}

// ---- items ----

tide_status tide__items_add(tide__items_builder *b, const tide__item *item) {
    tide_items *it = &b->items;
    const size_t i = it->n + b->packer.n_waiting;
    if (i == TIDE_ITEMS_KEEP_PLACES) { // too many to keep them
        tide_host_free(it->place);
        it->place = NULL;
    }
    TIDE_TRY(tide__items_pack(it, &b->packer, item));
    if (it->place != NULL) it->place[i] = item->place;
    return TIDE_OK;
}

/// Give back what was not needed. Not having it moved is no failure.
static void shrink(tide_items *it) {
    uint64_t *smaller = it->place != NULL ? tide_host_realloc(it->place, (it->n + 1) * sizeof *smaller) : NULL;
    if (smaller != NULL) it->place = smaller;
}

static tide_status make_reach(tide_items *it, tide__items_inside *in) {
    const size_t n = it->n / TIDE__REACH_ITEMS;
    in->reach = tide_host_alloc((n + 1) * sizeof *in->reach);
    if (in->reach == NULL) return TIDE_ERR_NOMEM;
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < n * TIDE__REACH_ITEMS; i++) {
        // one that lives shorter than the clock can tell is there at its begin
        const int64_t begin = tide_items_begin(it, i), gone = tide_items_end(it, i);
        const int64_t end = gone > begin ? gone : begin + 1;
        if (end > latest) latest = end;
        if (i % TIDE__REACH_ITEMS == TIDE__REACH_ITEMS - 1) in->reach[i / TIDE__REACH_ITEMS] = latest;
    }
    return TIDE_OK;
}

static tide_status count_sites(const tide_items *it, tide__items_inside *in) {
    in->site_items = tide_host_calloc(it->n_sites + 1, sizeof *in->site_items);
    if (in->site_items == NULL) return TIDE_ERR_NOMEM;
    tide__items_some sites;
    for (size_t i = 0; i < it->n; i++) in->site_items[tide__items_each(it, i, TIDE_ITEMS_SITE, &sites)]++;
    return TIDE_OK;
}

tide_status tide__items_finish(tide__items_builder *b, const tide_progress *progress, tide_items *out) {
    intern_deinit(&b->sites);
    intern_deinit(&b->shapes);
    tide_host_free(b->shape_texts);
    b->shape_texts = NULL;
    TIDE_TRY(tide__items_pack_end(&b->items, &b->packer));
    TIDE_TRY(tide__items_report(progress, 0));
    TIDE_TRY(tide__items_sort(&b->items, progress));
    TIDE_TRY(tide__items_report(progress, 0.8));
    shrink(&b->items);
    TIDE_TRY(tide__items_index(&b->items, &b->inside->by_id));
    TIDE_TRY(make_reach(&b->items, b->inside));
    TIDE_TRY(count_sites(&b->items, b->inside));
    TIDE_TRY(tide__site_names_make(&b->items, &b->inside->names));
    *out = b->items;
    *b = (tide__items_builder){0};
    return TIDE_OK;
}
