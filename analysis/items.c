// SPDX-License-Identifier: MIT
//
// Questions to a table of items. See items.h; how it is made is in items_build.c.
#include "analysis/items.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/items_internal.h"
#include "core/base/host_alloc.h"

enum {
    CHUNK = 1 << TIDE_ITEMS_CHUNK_BITS,
    PAGE = 1 << TIDE_ITEMS_PAGE_BITS,
    WIDEST = 3 * 8 + 2 * 4, // bytes of an item
    BEHIND = 8,             // of a page: values are read eight bytes at a time
    TELL_ITEMS = 1 << 16,
};

// ---- a chunk ----

// ---- items into chunks and out of them ----
//
//     waiting   64 items                                       written once, as narrow as they can be
//     page      [chunk][chunk][chunk]......................    room for the widest; cut to what was used when full

/// One value of each column, as it is written.
static void values_of(const tide_items_chunk *c, const tide__item *x, uint64_t out[TIDE_ITEMS_N_COLUMNS]) {
    out[TIDE_ITEMS_BEGIN] = (uint64_t)x->begin - (uint64_t)c->begin;
    out[TIDE_ITEMS_END] = (uint64_t)x->end - (uint64_t)c->end;
    out[TIDE_ITEMS_SHAPE] = x->shape;
    out[TIDE_ITEMS_SITE] = x->site;
    out[TIDE_ITEMS_ID] = x->id - c->id;
}

/// Least values, and how many bytes what is above them takes.
static tide_items_chunk measure(const tide__item *list, size_t n) {
    tide_items_chunk c = {.begin = list[0].begin, .end = list[0].end, .id = list[0].id};
    uint64_t bits[TIDE_ITEMS_N_COLUMNS] = {0}, v[TIDE_ITEMS_N_COLUMNS];
    for (size_t i = 0; i < n; i++) {
        if (list[i].begin < c.begin) c.begin = list[i].begin;
        if (list[i].end < c.end) c.end = list[i].end;
        if (list[i].id < c.id) c.id = list[i].id;
        if (list[i].open_ended) c.open_ended |= UINT64_C(1) << i;
        if (list[i].is_left) c.left |= UINT64_C(1) << i;
    }
    for (size_t i = 0; i < n; i++) {
        values_of(&c, &list[i], v);
        for (int k = 0; k < TIDE_ITEMS_N_COLUMNS; k++) bits[k] |= v[k];
    }
    for (int k = 0; k < TIDE_ITEMS_N_COLUMNS; k++) {
        c.n_bytes[k] = bits[k] == 0 ? 0 : (uint8_t)(8 - __builtin_clzll(bits[k]) / 8);
        c.at[k] = c.item_bytes;
        c.item_bytes = (uint8_t)(c.item_bytes + c.n_bytes[k]);
    }
    return c;
}

static size_t bytes_of(const tide_items_chunk *c) { return (size_t)CHUNK * c->item_bytes; }

static void write_chunk(const tide_items_chunk *c, const tide__item *list, size_t n, uint8_t *data) {
    for (size_t i = 0; i < n; i++) {
        uint64_t v[TIDE_ITEMS_N_COLUMNS];
        values_of(c, &list[i], v);
        for (int k = 0; k < TIDE_ITEMS_N_COLUMNS; k++) {
            const uint64_t value = htole64(v[k]);
            memcpy(data + i * c->item_bytes + c->at[k], &value, c->n_bytes[k]);
        }
    }
}

// ---- pages ----

static size_t chunks_of(size_t n_items) { return (n_items + CHUNK - 1) / CHUNK; }

/// The last page as large as it has to be. Not having it moved is no failure.
static void end_page(tide_items *it, const tide__items_packer *p) {
    if (it->n_pages == 0) return;
    uint8_t **last = &it->pages[it->n_pages - 1];
    uint8_t *smaller = tide_host_realloc(*last, p->page_used + BEHIND);
    if (smaller == NULL) return;
    *last = smaller;
    const uint8_t *data = smaller;
    for (size_t c = (it->n_pages - 1) * (PAGE / CHUNK); c < chunks_of(it->n); c++) {
        it->chunks[c].data = data;
        data += bytes_of(&it->chunks[c]);
    }
}

static tide_status begin_page(tide_items *it, tide__items_packer *p) {
    const size_t left = p->cap - it->n, n = chunks_of(left < PAGE ? left : PAGE) * CHUNK;
    end_page(it, p);
    if (it->pages == NULL) { // room for the most there can be: pages that are never written take no memory
        it->pages = tide_host_calloc(p->cap / PAGE + 1, sizeof *it->pages);
        it->chunks = tide_host_alloc(chunks_of(p->cap) * sizeof *it->chunks);
        if (it->pages == NULL || it->chunks == NULL) return TIDE_ERR_NOMEM;
    }
    uint8_t *page = tide_host_alloc(n * WIDEST + BEHIND);
    if (page == NULL) return TIDE_ERR_NOMEM;
    it->pages[it->n_pages++] = page;
    p->page_used = 0;
    return TIDE_OK;
}

static tide_status put_chunk(tide_items *it, tide__items_packer *p) {
    if (it->n % PAGE == 0) TIDE_TRY(begin_page(it, p));
    tide_items_chunk c = measure(p->waiting, p->n_waiting);
    uint8_t *data = it->pages[it->n_pages - 1] + p->page_used;
    write_chunk(&c, p->waiting, p->n_waiting, data);
    c.data = data;
    it->chunks[it->n / CHUNK] = c;
    p->page_used += bytes_of(&c);
    it->n += p->n_waiting;
    p->n_waiting = 0;
    return TIDE_OK;
}

tide_status tide__items_pack(tide_items *it, tide__items_packer *p, const tide__item *item) {
    if (it->n + p->n_waiting == p->cap) return TIDE_ERR_OVERFLOW;
    p->waiting[p->n_waiting++] = *item;
    return p->n_waiting == CHUNK ? put_chunk(it, p) : TIDE_OK;
}

tide_status tide__items_pack_end(tide_items *it, tide__items_packer *p) {
    if (p->n_waiting > 0) TIDE_TRY(put_chunk(it, p));
    end_page(it, p);
    tide_items_chunk *smaller = it->n > 0 ? tide_host_realloc(it->chunks, chunks_of(it->n) * sizeof *it->chunks) : NULL;
    if (smaller != NULL) it->chunks = smaller;
    return TIDE_OK;
}

/// Free chunks and pages.
static void unpack(tide_items *it) {
    for (size_t i = 0; i < it->n_pages; i++) tide_host_free(it->pages[i]);
    tide_host_free(it->pages);
    tide_host_free(it->chunks);
    it->pages = NULL;
    it->chunks = NULL;
    it->n_pages = it->n = 0;
}

// ---- another order ----

/// Everything of it but the place.
static tide__item get_item(const tide_items *it, size_t i) {
    return (tide__item){.begin = tide_items_begin(it, i),
                        .end = tide_items_end(it, i),
                        .site = tide_items_site_of(it, i),
                        .shape = tide_items_shape_of(it, i),
                        .id = tide_items_id(it, i),
                        .open_ended = tide_items_is_open_ended(it, i),
                        .is_left = tide_items_is_left(it, i)};
}

/// Items of each page of the old order that are still to be taken.
static uint32_t *count_pages(const tide_items *it, const uint32_t *order, size_t n) {
    uint32_t *left = tide_host_calloc(it->n_pages + 1, sizeof *left);
    for (size_t k = 0; left != NULL && k < n; k++) left[order[k] / PAGE]++;
    return left;
}

tide_status tide__items_report(const tide_progress *progress, double share) {
    return tide_progress_goes_on(progress, 0.9 + 0.1 * share, "sorting blocks") ? TIDE_OK : TIDE_ERR_CANCELLED;
}

static tide_status repack(tide_items *from, tide_items *to, const uint32_t *order, size_t n, uint32_t *left,
                          const tide_progress *progress) {
    tide__items_packer p = {.cap = n};
    for (size_t k = 0; k < n; k++) {
        if (k % TELL_ITEMS == 0) TIDE_TRY(tide__items_report(progress, 0.4 + 0.4 * (double)k / (double)n));
        const tide__item item = get_item(from, order[k]);
        const size_t page = order[k] / PAGE;
        TIDE_TRY(tide__items_pack(to, &p, &item));
        if (--left[page] > 0) continue;
        tide_host_free(from->pages[page]);
        from->pages[page] = NULL;
    }
    return tide__items_pack_end(to, &p);
}

tide_status tide__items_repack(tide_items *it, const uint32_t *order, size_t n, const tide_progress *progress) {
    tide_items to = {0};
    uint32_t *left = count_pages(it, order, n);
    uint64_t *place = it->place != NULL ? tide_host_alloc((n + 1) * sizeof *place) : NULL;
    tide_status st = left != NULL && (place != NULL || it->place == NULL) ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t k = 0; st == TIDE_OK && place != NULL && k < n; k++) place[k] = it->place[order[k]];
    if (st == TIDE_OK) st = repack(it, &to, order, n, left, progress);
    tide_host_free(left);
    if (st != TIDE_OK) {
        unpack(&to);
        tide_host_free(place);
        return st;
    }
    unpack(it);
    tide_host_free(it->place);
    it->place = place;
    it->chunks = to.chunks;
    it->pages = to.pages;
    it->n_pages = to.n_pages;
    it->n = to.n;
    return TIDE_OK;
}

void tide_items_deinit(tide_items *items) {
    tide__items_inside *in = items->inside;
    unpack(items);
    tide_host_free(items->place);
    tide_host_free(items->sites);
    tide_sizes_deinit(&items->sizes);
    tide_host_free(items->shapes);
    if (in != NULL) {
        for (size_t i = 0; i < in->n_pages; i++) tide_host_free(in->pages[i]);
        tide_host_free(in->pages);
        tide_host_free(in->by_id);
        tide_host_free(in->reach);
        tide_host_free(in->site_items);
        tide__site_names_deinit(&in->names);
        tide_host_free(in);
    }
    *items = (tide_items){0};
}

uint32_t tide_items_find(const tide_items *items, uint64_t id) {
    const tide__items_inside *in = items->inside;
    if (in == NULL || in->by_id == NULL) {
        for (uint32_t i = 0; i < items->n; i++)
            if (tide_items_id(items, i) == id) return i;
        return TIDE_NO_ITEM;
    }
    size_t lo = 0, hi = items->n;
    TIDE_BISECT(lo, hi, tide_items_id(items, in->by_id[mid]) < id);
    return lo < items->n && tide_items_id(items, in->by_id[lo]) == id ? in->by_id[lo] : TIDE_NO_ITEM;
}

uint32_t tide_items_find_at(const tide_items *items, uint64_t id, int64_t begin, uint64_t size_bytes) {
    size_t lo = 0, hi = items->n;
    while (lo < hi) { // the first that does not stand before (begin, size, id)
        const size_t mid = lo + (hi - lo) / 2;
        const uint64_t size = tide_items_shape(items, mid)->size_bytes;
        const bool before = tide_items_begin(items, mid) != begin
                                ? tide_items_begin(items, mid) < begin
                                : (size != size_bytes ? size > size_bytes : tide_items_id(items, (uint32_t)mid) < id);
        if (before) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    const bool found = lo < items->n && tide_items_begin(items, lo) == begin &&
                       tide_items_id(items, (uint32_t)lo) == id &&
                       tide_items_shape(items, lo)->size_bytes == size_bytes;
    return found ? (uint32_t)lo : TIDE_NO_ITEM;
}

/// Number of items that begin before `t`.
static uint32_t begun_before(const tide_items *items, int64_t t) {
    size_t lo = 0, hi = items->n;
    TIDE_BISECT(lo, hi, tide_items_begin(items, mid) < t);
    return (uint32_t)lo;
}

void tide_items_range(const tide_items *items, int64_t t0, int64_t t1, uint32_t *from, uint32_t *to) {
    const tide__items_inside *in = items->inside;
    size_t lo = 0, hi = in != NULL && in->reach != NULL ? items->n / TIDE__REACH_ITEMS : 0;
    while (lo < hi) { // the first stretch in which some item lives on to its end
        const size_t mid = lo + (hi - lo) / 2;
        if (in->reach[mid] <= t0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *from = (uint32_t)(lo * TIDE__REACH_ITEMS);
    *to = begun_before(items, t1);
    if (*from > *to) *from = *to;
}

bool tide_items_alive_at(const tide_items *items, uint32_t i, int64_t t) {
    return tide_items_begin(items, i) <= t && t < tide_items_end(items, i);
}

const tide__site_names *tide__items_names(const tide_items *items) {
    const tide__items_inside *in = items->inside;
    return in != NULL ? &in->names : NULL;
}
