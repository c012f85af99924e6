// SPDX-License-Identifier: MIT
//
// boxes: see boxes.h.
#include "planner/strategies/boxes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

typedef struct small_item {
    uint32_t begin, end, item_i;
} small_item;

typedef struct packing {
    const tide_problem *parent;
    uint64_t box_bytes;
    tide_boxes *out;
    uint32_t n_members, n_rects;
} packing;

static int by_begin(const void *a, const void *b) {
    const small_item *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->item_i > y->item_i) - (x->item_i < y->item_i);
}

static int by_end(const void *a, const void *b) {
    const small_item *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->item_i > y->item_i) - (x->item_i < y->item_i);
}

/// Copy an item that is in no box, with all its rectangles.
static void add_alone(packing *k, uint32_t item_i) {
    tide_problem *p = &k->out->problem;
    const tide_item *item = &k->parent->items[item_i];
    tide_item *copy = &p->items[p->n];
    *copy = *item;
    copy->first_rect = k->n_rects;
    TIDE_ASSERT(p->n < k->parent->n && k->n_rects + item->n_rects <= k->parent->n_rects);
    memcpy(p->rects + k->n_rects, tide__rects_of(k->parent, item), item->n_rects * sizeof *p->rects);
    k->n_rects += item->n_rects;
    k->out->within[item_i] = 0;
    k->out->members[k->n_members++] = item_i;
    k->out->first[++p->n] = k->n_members;
}

/// Stack the members. Strict alignments come first, so that sizes which are multiples of them need no padding.
static void add_box(packing *k, const small_item *list, size_t n) {
    tide_problem *p = &k->out->problem;
    tide_item box = {.align_bytes = 1,
                     .fixed_offset = TIDE_NO_OFFSET,
                     .begin = UINT32_MAX,
                     .first_rect = k->n_rects,
                     .n_rects = 1,
                     .lifetime = k->parent->items[list[0].item_i].lifetime};
    uint64_t aligns = 0, top = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_item *item = &k->parent->items[list[i].item_i];
        aligns |= item->align_bytes;
        if (item->begin < box.begin) box.begin = item->begin;
        if (item->end > box.end) box.end = item->end;
    }
    for (uint64_t rest = aligns; rest != 0;) {
        const uint64_t align = UINT64_C(1) << (63 - __builtin_clzll(rest));
        if (align > box.align_bytes) box.align_bytes = align;
        for (size_t i = 0; i < n; i++) {
            const tide_item *item = &k->parent->items[list[i].item_i];
            if (item->align_bytes != align) continue;
            const uint64_t at = (top + align - 1) & ~(align - 1);
            k->out->within[list[i].item_i] = at;
            k->out->members[k->n_members++] = list[i].item_i;
            top = at + item->size_bytes;
        }
        rest &= ~align;
    }
    TIDE_ASSERT(n > 1 && box.begin < box.end && k->n_members <= k->parent->n);
    box.size_bytes = top;
    p->rects[k->n_rects++] = (tide_rect){box.begin, box.end, 0, top};
    p->items[p->n] = box;
    k->out->first[++p->n] = k->n_members;
}

static void cut(packing *k, small_item *list, size_t n) {
    TIDE_ASSERT(n > 0);
    uint64_t sum = 0;
    uint32_t first_begin = UINT32_MAX, last_begin = 0, first_end = UINT32_MAX, last_end = 0;
    for (size_t i = 0; i < n; i++) {
        sum += k->parent->items[list[i].item_i].size_bytes;
        if (list[i].begin < first_begin) first_begin = list[i].begin;
        if (list[i].begin > last_begin) last_begin = list[i].begin;
        if (list[i].end < first_end) first_end = list[i].end;
        if (list[i].end > last_end) last_end = list[i].end;
    }
    if (n == 1) {
        add_alone(k, list[0].item_i);
    } else if (sum <= k->box_bytes) {
        add_box(k, list, n);
    } else {
        qsort(list, n, sizeof *list, last_begin - first_begin > last_end - first_end ? by_begin : by_end);
        cut(k, list, n / 2);
        cut(k, list + n / 2, n - n / 2);
    }
}

static bool is_small(const packing *k, const tide_item *item) {
    const tide_rect *rect = tide__rects_of(k->parent, item);
    return item->n_rects == 1 && rect->lo_bytes == 0 && rect->hi_bytes == item->size_bytes &&
           item->fixed_offset == TIDE_NO_OFFSET && item->size_bytes <= k->box_bytes / 2;
}

static tide_status pack(packing *k) {
    const size_t n = k->parent->n;
    tide_boxes *out = k->out;
    small_item *list = tide_host_calloc(n, sizeof *list);
    out->problem.items = tide_host_calloc(n, sizeof *out->problem.items);
    out->problem.rects = tide_host_calloc(k->parent->n_rects, sizeof *out->problem.rects);
    out->members = tide_host_calloc(n, sizeof *out->members);
    out->first = tide_host_calloc(n + 1, sizeof *out->first);
    out->within = tide_host_calloc(n, sizeof *out->within);
    const bool good = list != NULL && out->problem.items != NULL && out->problem.rects != NULL &&
                      out->members != NULL && out->first != NULL && out->within != NULL;
    size_t n_small = 0;
    for (size_t i = 0; good && i < n; i++) {
        const tide_item *item = &k->parent->items[i];
        if (is_small(k, item)) {
            list[n_small++] = (small_item){item->begin, item->end, (uint32_t)i};
        } else {
            add_alone(k, (uint32_t)i);
        }
    }
    if (good && n_small > 0) cut(k, list, n_small);
    TIDE_ASSERT(!good || out->first[out->problem.n] == n);
    TIDE_ASSERT(!good || k->n_members == n);
    tide_host_free(list);
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

static tide_status measure_load(tide_boxes *boxes) {
    const tide_problem *p = &boxes->problem;
    uint64_t *change = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *change); // modulo 2^64
    if (change == NULL) return TIDE_ERR_NOMEM;
    for (size_t r = 0; r < p->n_rects; r++) {
        change[p->rects[r].begin] += p->rects[r].hi_bytes - p->rects[r].lo_bytes;
        change[p->rects[r].end] -= p->rects[r].hi_bytes - p->rects[r].lo_bytes;
    }
    uint64_t alive = 0;
    for (size_t t = 0; t < p->n_ticks; t++) {
        alive += change[t];
        if (alive > boxes->load_bytes) boxes->load_bytes = alive;
    }
    tide_host_free(change);
    return TIDE_OK;
}

tide_status tide__boxes_make(const tide_problem *parent, uint64_t box_bytes, tide_boxes *out, tide_error *err) {
    *out = (tide_boxes){.problem = *parent};
    out->problem.items = NULL;
    out->problem.rects = NULL;
    out->problem.tick_steps = NULL; // where boxes are placed, apart sets are rectangles like others
    out->problem.n = 0;
    packing k = {.parent = parent, .box_bytes = box_bytes, .out = out};
    tide_status st = pack(&k);
    out->problem.n_rects = k.n_rects;
    if (st == TIDE_OK) st = measure_load(out);
    TIDE_ASSERT(st != TIDE_OK || out->load_bytes >= parent->lower_bound_bytes);
    if (st == TIDE_OK) return TIDE_OK;
    tide__boxes_deinit(out);
    return TIDE_FAIL(err, st, "no memory to box %zu tensors", parent->n);
}

void tide__boxes_deinit(tide_boxes *boxes) {
    tide__problem_deinit(&boxes->problem);
    tide_host_free(boxes->members);
    tide_host_free(boxes->first);
    tide_host_free(boxes->within);
    *boxes = (tide_boxes){0};
}

uint64_t tide__boxes_unpack(const tide_boxes *boxes, const tide_problem *parent, const uint64_t *box_offsets,
                            uint64_t *offsets) {
    uint64_t height = 0;
    for (size_t b = 0; b < boxes->problem.n; b++) {
        for (uint32_t m = boxes->first[b]; m < boxes->first[b + 1]; m++) {
            const uint32_t i = boxes->members[m];
            TIDE_ASSERT(boxes->within[i] + parent->items[i].size_bytes <= boxes->problem.items[b].size_bytes);
            offsets[i] = box_offsets[b] + boxes->within[i];
            const uint64_t end = offsets[i] + parent->items[i].size_bytes;
            if (end > height) height = end;
        }
    }
    TIDE_ASSERT(height >= parent->lower_bound_bytes);
    return height;
}
