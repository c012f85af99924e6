// SPDX-License-Identifier: MIT
//
// Tensors that lie in each other's bytes by a file's own plan. See formats_internal.h.
//
// A walk over the steps keeps what is alive as blocks of an address space that do not touch each other's bytes:
//
//     births of one step come by size, the largest first. One that lies inside a live block is an alias of it; one
//     that holds live blocks takes their place, and they are aliases of it; one that overlaps a block in part stays
//     apart, and out of the walk. A block is alive as long as anything in it is: what comes into the rest of it
//     meanwhile is an alias too, and lies as in the file.
//
// Items that are aliases stay so for all their lifetime: the bytes they share are the ones that the file gives them.
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/block_tree.h"
#include "core/base/host_alloc.h"
#include "planner/formats/formats_internal.h"

typedef struct birth {
    uint32_t item;
    int64_t begin, end;
    uint64_t offset, bytes;
    uint32_t memory;
} birth;

/// By memory, step and size, the largest first; the rest so that the order is one.
static int compare_births(const void *a, const void *b) {
    const birth *x = a, *y = b;
    if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/// A live block: its step of death may move while it waits in the heap.
typedef struct live {
    int64_t end;     ///< of all in it
    bool gone;       ///< an item that holds it has taken its place
    uint32_t holder; ///< birth in which it lies; itself: none
} live;

typedef struct death {
    int64_t end;
    uint32_t k; ///< births[k]
} death;

typedef struct walk {
    tide_lifetimes *lt;
    const birth *births;  // sorted
    live *lives;          // [n] by birth
    tide_block_tree tree; // of births that are blocks; id: which one
    death *heap;          // [n_heap] the earliest on top
    size_t n_heap, cap_heap;
    size_t n_apart;
    tide_error *err;
} walk;

// ---- who dies next ----

static tide_status push(walk *w, int64_t end, uint32_t k) {
    TIDE_TRY(TIDE_GROW(&w->heap, &w->cap_heap, w->n_heap + 1, w->err, "for tensors that share bytes"));
    size_t i = w->n_heap++;
    for (; i > 0 && w->heap[(i - 1) / 2].end > end; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = (death){end, k};
    return TIDE_OK;
}

static death pop(walk *w) {
    const death top = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= w->n_heap) break;
        if (child + 1 < w->n_heap && w->heap[child + 1].end < w->heap[child].end) child++;
        if (w->heap[child].end >= last.end) break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    if (w->n_heap > 0) w->heap[i] = last;
    return top;
}

static tide_block_span span_of(const birth *b, uint32_t k) {
    return (tide_block_span){.begin = b->offset, .bytes = b->bytes, .id = k};
}

static tide_status bury(walk *w, int64_t step) {
    while (w->n_heap > 0 && w->heap[0].end <= step) {
        const death d = pop(w);
        live *l = &w->lives[d.k];
        if (l->gone) continue;
        if (l->end > d.end) {
            TIDE_TRY(push(w, l->end, d.k)); // something in it lives on
            continue;
        }
        tide_block_tree_remove(&w->tree, span_of(&w->births[d.k], d.k));
        l->gone = true;
    }
    return TIDE_OK;
}

// ---- births ----

/// Birth k lies inside that of `of`, which lives as long as it does.
static void put_inside(walk *w, uint32_t k, uint32_t of) {
    const birth *in = &w->births[k], *out = &w->births[of];
    TIDE_ASSERT(out->offset <= in->offset && in->offset + in->bytes <= out->offset + out->bytes);
    w->lives[k].holder = of;
    if (w->lives[of].end < w->lives[k].end) w->lives[of].end = w->lives[k].end;
}

/// Whether no block reaches beyond the end of `b`, behind whose begin all of them begin that touch it.
static bool holds_all(const walk *w, const birth *b) {
    const uint64_t end = b->offset + b->bytes;
    tide_block_span last;
    return !tide_block_tree_before(&w->tree, (tide_block_span){.begin = end}, &last) || last.begin + last.bytes <= end;
}

static void take_in(walk *w, uint32_t k) {
    const birth *b = &w->births[k];
    tide_block_span next;
    while (tide_block_tree_at_least(&w->tree, (tide_block_span){.begin = b->offset}, &next) &&
           next.begin < b->offset + b->bytes) {
        tide_block_tree_remove(&w->tree, next);
        w->lives[next.id].gone = true;
        put_inside(w, next.id, k);
    }
}

static tide_status give_birth(walk *w, uint32_t k) {
    const birth *b = &w->births[k];
    tide_block_span before;
    // The last block that begins at or before it.
    if (tide_block_tree_before(&w->tree, (tide_block_span){.begin = b->offset + 1}, &before) &&
        before.begin + before.bytes > b->offset) {
        if (b->offset + b->bytes <= before.begin + before.bytes) {
            put_inside(w, k, before.id);
            return TIDE_OK;
        }
        if (before.begin < b->offset) {
            w->n_apart++;
            return TIDE_OK;
        }
    }
    if (!holds_all(w, b)) {
        w->n_apart++;
        return TIDE_OK;
    }
    take_in(w, k);
    if (tide_block_tree_insert(&w->tree, span_of(b, k)) != TIDE_OK)
        return TIDE_NO_MEMORY(w->err, "for tensors that share bytes");
    return push(w, w->lives[k].end, k);
}

static tide_status go(walk *w, size_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const birth *b = &w->births[k];
        w->lives[k] = (live){.end = b->end, .holder = k};
        if (k > 0 && w->births[k - 1].memory != b->memory) TIDE_TRY(bury(w, INT64_MAX));
        TIDE_TRY(bury(w, b->begin));
        TIDE_TRY(give_birth(w, k));
    }
    return TIDE_OK;
}

/// The outermost birth that holds k; those on the way are made to lie in it at once.
static uint32_t outermost(walk *w, uint32_t k) {
    uint32_t root = k;
    while (w->lives[root].holder != root) root = w->lives[root].holder;
    while (k != root) {
        const uint32_t next = w->lives[k].holder;
        w->lives[k].holder = root;
        k = next;
    }
    return root;
}

/// All aliases lie in the outermost item, so that no chain is long.
static tide_status make_aliases(walk *w, size_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t root = outermost(w, k);
        const birth *in = &w->births[k], *out = &w->births[root];
        if (root == k) continue;
        TIDE_TRY(tide_lifetimes_alias(w->lt, in->item, TIDE_ALIAS_GIVEN, out->item, in->offset - out->offset, w->err));
    }
    return TIDE_OK;
}

tide_status tide__own_places_alias(tide_lifetimes *lt, const tide__own_place *places, size_t n, size_t *n_apart,
                                   tide_error *err) {
    birth *births;
    size_t n_births = 0;
    *n_apart = 0;
    TIDE_TRY(TIDE_NEW(&births, n + 1, err, "for tensors that share bytes"));
    for (size_t i = 0; i < n; i++) {
        const tide_lifetime *item = &lt->items[places[i].item];
        if (places[i].bytes == 0 || item->persistent) continue;
        births[n_births++] = (birth){.item = places[i].item,
                                     .begin = item->begin_step,
                                     .end = item->end_step,
                                     .offset = places[i].offset,
                                     .bytes = places[i].bytes,
                                     .memory = places[i].memory};
    }
    qsort(births, n_births, sizeof *births, compare_births);
    walk w = {.lt = lt, .births = births, .err = err};
    tide_status st = TIDE_NEW(&w.lives, n_births + 1, err, "for tensors that share bytes");
    if (st == TIDE_OK) st = go(&w, n_births);
    if (st == TIDE_OK) st = make_aliases(&w, n_births);
    *n_apart = w.n_apart;
    tide_block_tree_deinit(&w.tree);
    tide_host_free(w.lives);
    tide_host_free(w.heap);
    tide_host_free(births);
    return st;
}
