// SPDX-License-Identifier: MIT
//
// skyline tree: the memory of a tree's path, and its limits. See skyline_tree.h.
#include "planner/search/skyline_tree.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/cancel.h"

// ---- memory of the path ----

enum {
    FIRST_BLOCK_BYTES = 1 << 16, ///< each one is twice as large as the one before
    MAX_PATH_BYTES = 96 << 20,   ///< of one tree: a descent where items live long copies more than that
    RISES_PER_BOUND = 512,
};

/// Whether the path may grow by `more`, changes and all. What counts is what it holds, not what blocks take: that
/// depends on the probes before.
static bool may_hold(tide_sky_tree *t, size_t more) {
    if (t->path_bytes + t->n_trail * sizeof *t->trail + more <= MAX_PATH_BYTES) return true;
    t->is_cut = true;
    return false;
}

void *tide__sky_push(tide_sky_tree *t, size_t size_bytes) {
    const size_t need = (size_bytes + 15) & ~(size_t)15;
    if (!may_hold(t, need)) return NULL;
    while (t->stack->size - t->stack->used < need && t->stack->next != NULL) {
        t->stack = t->stack->next;
        t->stack->used = 0;
    }
    if (t->stack->size - t->stack->used < need) {
        const size_t size = 2 * t->stack->size > need ? 2 * t->stack->size : need;
        sky_block *block = tide_host_alloc(sizeof *block + size);
        if (block == NULL) {
            t->is_cut = true;
            t->cut = TIDE_SKY_NOMEM;
            return NULL;
        }
        *block = (sky_block){.size = size};
        t->stack->next = block;
        t->stack = block;
    }
    void *at = (char *)t->stack->data + t->stack->used;
    t->stack->used += need;
    t->path_bytes += need;
    return at;
}

bool tide__sky_set(tide_sky_tree *t, uint32_t *where, uint32_t value) {
    if (!may_hold(t, sizeof *t->trail)) return false;
    if (tide_host_grow(&t->trail, &t->cap_trail, t->n_trail + 1, sizeof *t->trail) != TIDE_OK) {
        t->is_cut = true;
        t->cut = TIDE_SKY_NOMEM;
        return false;
    }
    t->trail[t->n_trail++] = (sky_undo){where, *where};
    *where = value;
    return true;
}

void tide__sky_undo(tide_sky_tree *t, size_t n_trail) {
    TIDE_ASSERT(n_trail <= t->n_trail);
    while (t->n_trail > n_trail) {
        t->n_trail--;
        *t->trail[t->n_trail].where = t->trail[t->n_trail].before;
    }
}

sky_mark tide__sky_mark(const tide_sky_tree *t) { return (sky_mark){t->stack, t->stack->used, t->path_bytes}; }

void tide__sky_pop(tide_sky_tree *t, sky_mark mark) {
    t->stack = mark.block;
    t->stack->used = mark.used;
    t->path_bytes = mark.path_bytes;
}

bool tide__sky_push_frame(tide_sky_tree *t, uint32_t n, uint32_t n_sections, sky_frame *out) {
    uint32_t *room = tide__sky_push(t, (2 * (size_t)n + SKY_ARRAYS * (size_t)n_sections) * sizeof *room);
    if (room == NULL) return false;
    *out = (sky_frame){.id = room, .at = room + n, .floor = room + 2 * n, .rest = room + 2 * n + n_sections};
    out->n_sections = n_sections;
    out->below = out->rest + n_sections;
    out->from = out->below + n_sections;
    out->to = out->from + n_sections;
    return true;
}

// ---- limits ----

/// What was placed stays; items that are still to be placed get more room.
static void relax(tide_sky_tree *t) {
    const uint32_t step = t->part->bound / RISES_PER_BOUND + 1;
    if (t->probe->max_capacity - t->capacity < step) {
        t->is_cut = true;
        return;
    }
    t->capacity += step;
    TIDE_ASSERT(t->capacity <= t->probe->max_capacity);
    t->n_dead = 0;
}

void tide__sky_dead_end(tide_sky_tree *t) {
    t->n_dead++;
    if (t->probe->max_capacity > t->capacity && t->n_dead >= t->probe->relax_after) relax(t);
}

bool tide__sky_is_over(tide_sky_tree *t) {
    enum { LOOK_UP_EVERY = 256 };
    const tide_sky_probe *p = t->probe;
    if (t->is_cut) return true;
    if (t->depth >= TIDE_SKY_MAX_DEPTH) t->is_cut = true;
    if (t->n_nodes >= p->node_limit) t->is_cut = true;
    if (p->work_limit != 0 && t->n_work >= p->work_limit) t->is_cut = true;
    if (t->n_nodes % LOOK_UP_EVERY == 0) {
        if (p->stop != NULL && atomic_load_explicit(p->stop, memory_order_relaxed)) t->is_cut = true;
        if (tide__is_late(p->deadline_ns)) t->is_cut = true;
    }
    if (!t->is_cut) t->n_nodes++;
    return t->is_cut;
}

// ---- begin and end ----

uint64_t tide__sky_tree_work(const tide_sky_tree *t) { return t->n_work; }

tide_status tide__sky_tree_create(const tide_sky_part *part, tide_sky_tree **out, tide_error *err) {
    tide_sky_tree *t = tide_host_calloc(1, sizeof *t);
    const size_t n = part->n, n_sections = (size_t)part->n_sections + 1;
    uint32_t *room = tide_host_calloc(4 * n + 7 * n_sections, sizeof *room);
    sky_item *items = tide_host_calloc(n, sizeof *items);
    sky_blocked *blocked = tide_host_calloc(n_sections, sizeof *blocked);
    sky_block *block = tide_host_alloc(sizeof *block + FIRST_BLOCK_BYTES);
    if (t == NULL || room == NULL || items == NULL || blocked == NULL || block == NULL) {
        tide_host_free(t);
        tide_host_free(items);
        tide_host_free(blocked);
        tide_host_free(room);
        tide_host_free(block);
        return TIDE_NO_MEMORY(err, "for a tree of %zu items", n);
    }
    *block = (sky_block){.size = FIRST_BLOCK_BYTES};
    t->part = part;
    t->items = items;
    t->blocked = blocked;
    t->stack = t->blocks = block;
    uint32_t **of_items[] = {&t->order, &t->offset, &t->list, &t->fit};
    uint32_t **of_sections[] = {&t->run_begin, &t->run_end, &t->wall,         &t->branches,
                                &t->inside,    &t->above,   &t->own_dead_ends};
    for (size_t k = 0; k < sizeof of_items / sizeof *of_items; k++, room += n) *of_items[k] = room;
    for (size_t k = 0; k < sizeof of_sections / sizeof *of_sections; k++, room += n_sections) *of_sections[k] = room;
    *out = t;
    return TIDE_OK;
}

void tide__sky_tree_destroy(tide_sky_tree *t) {
    if (t == NULL) return;
    for (sky_block *b = t->blocks; b != NULL;) {
        sky_block *next = b->next;
        tide_host_free(b);
        b = next;
    }
    tide_host_free(t->order); // with all arrays that follow it
    tide_host_free(t->items);
    tide_host_free(t->blocked);
    tide_host_free(t->trail);
    tide_host_free(t);
}
