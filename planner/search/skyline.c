// SPDX-License-Identifier: MIT
//
// skyline: a tree's memory and the frame of a probe. See skyline.h; skyline_search.c climbs it.
#include "planner/search/skyline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/search/skyline_internal.h"

// ---- memory of the path ----

enum {
    FIRST_BLOCK_BYTES = 1 << 16, ///< each one is twice as large as the one before
    MAX_PATH_BYTES = 96 << 20,   ///< of one tree: a way down where items live long copies more than that
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

// ---- a probe ----

/// What was placed stays, and all that is still to come gets more room.
static void rise(tide_sky_tree *t) {
    const uint32_t step = t->part->bound / RISES_PER_BOUND + 1;
    if (t->probe->highest - t->capacity < step) {
        t->is_cut = true;
        return;
    }
    t->capacity += step;
    TIDE_ASSERT(t->capacity <= t->probe->highest);
    t->n_dead = 0;
}

void tide__sky_dead_end(tide_sky_tree *t) {
    t->n_dead++;
    if (t->probe->highest > t->capacity && t->n_dead >= t->probe->rise_after) rise(t);
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
        if (p->deadline_ns != 0 && tide_now_ns() >= p->deadline_ns) t->is_cut = true;
    }
    if (!t->is_cut) t->n_nodes++;
    return t->is_cut;
}

typedef struct ranked {
    double key[TIDE_SKY_KEY_LENGTH];
    uint32_t i;
} ranked;

static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    for (int k = 0; k < TIDE_SKY_KEY_LENGTH; k++) {
        if (x->key[k] != y->key[k]) return x->key[k] > y->key[k] ? -1 : 1;
    }
    return x->i < y->i ? -1 : x->i > y->i;
}

static bool are_twins(const tide_sky_part *p, uint32_t a, uint32_t b) {
    return p->begin[a] == p->begin[b] && p->end[a] == p->end[b] && p->size[a] == p->size[b];
}

/// Items in the probe's order. Twins have the same traits: drawn ones come from the first of them.
static bool sort_items(tide_sky_tree *t, const tide_sky_probe *probe) {
    const tide_sky_part *p = t->part;
    ranked *list = tide_host_calloc(p->n, sizeof *list);
    if (list == NULL) return false;
    tide_rng rng = {probe->seed};
    double drawn = 0.0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (i == 0 || !are_twins(p, i - 1, i)) drawn = tide_rng_f64(&rng);
        list[i].i = i;
        for (int k = 0; k < TIDE_SKY_KEY_LENGTH; k++) {
            list[i].key[k] = probe->key[k] == TIDE_SKY_RANDOM ? drawn : p->traits[probe->key[k]][i];
        }
    }
    qsort(list, p->n, sizeof *list, compare_ranked);
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = list[k].i;
        t->order[k] = i;
        const uint32_t twin = k > 0 && are_twins(p, list[k - 1].i, i) ? k - 1 : UINT32_MAX;
        t->items[k] = (sky_item){p->begin[i], p->end[i], p->size[i], twin};
    }
    tide_host_free(list);
    return true;
}

static bool push_root(tide_sky_tree *t, sky_frame *root) {
    const tide_sky_part *p = t->part;
    if (!tide__sky_push_frame(t, p->n, p->n_sections, root)) return false;
    memset(root->floor, 0, p->n_sections * sizeof *root->floor);
    memset(root->rest, 0, p->n_sections * sizeof *root->rest);
    memset(root->below, 0xff, 2 * (size_t)p->n_sections * sizeof *root->below);
    memset(root->to, 0, p->n_sections * sizeof *root->to);
    memset(root->at, 0, p->n * sizeof *root->at);
    root->n = p->n;
    for (uint32_t k = 0; k < p->n; k++) {
        root->id[k] = k;
        for (uint32_t s = t->items[k].begin; s < t->items[k].end; s++) root->rest[s] += t->items[k].size;
    }
    return true;
}

tide_sky_result tide__sky_tree_run(tide_sky_tree *t, const tide_sky_probe *probe, uint32_t *offsets,
                                   uint64_t *n_nodes) {
    const tide_sky_part *p = t->part;
    if (n_nodes != NULL) *n_nodes = 0;
    t->n_nodes = t->n_work = 0;
    t->n_trail = t->depth = 0;
    if (p->bound > probe->capacity) return TIDE_SKY_EXHAUSTED;
    t->probe = probe;
    t->capacity = probe->capacity;
    t->n_dead = 0;
    t->is_cut = false;
    t->cut = TIDE_SKY_LIMIT;
    t->stack = t->blocks;
    t->stack->used = 0;
    t->path_bytes = 0;
    t->dead_ends = probe->dead_ends != NULL ? probe->dead_ends : t->own_dead_ends;
    if (probe->dead_ends == NULL) memset(t->dead_ends, 0, p->n_sections * sizeof *t->dead_ends);
    sky_frame root;
    if (!sort_items(t, probe)) return TIDE_SKY_NOMEM;
    tide_sky_result got;
    if (p->shapes != NULL) {
        got = tide__sky_drop(t);
    } else {
        got = push_root(t, &root) ? tide__sky_solve(t, &root) : t->cut;
    }
    if (n_nodes != NULL) *n_nodes = t->n_nodes;
    if (got == TIDE_SKY_EXHAUSTED && t->capacity > probe->capacity) return TIDE_SKY_LIMIT; // proves nothing
    if (got != TIDE_SKY_FOUND) return got;
    for (uint32_t k = 0; k < p->n; k++) offsets[t->order[k]] = t->offset[k];
    return got;
}

uint64_t tide__sky_tree_work(const tide_sky_tree *t) { return t->n_work; }

tide_status tide__sky_tree_create(const tide_sky_part *part, tide_sky_tree **out, tide_error *err) {
    tide_sky_tree *t = tide_host_calloc(1, sizeof *t);
    const size_t n = part->n, n_sections = (size_t)part->n_sections + 1;
    uint32_t *room = tide_host_calloc(4 * n + 7 * n_sections, sizeof *room);
    sky_item *items = tide_host_calloc(n, sizeof *items);
    sky_stuck *stuck = tide_host_calloc(n_sections, sizeof *stuck);
    sky_block *block = tide_host_alloc(sizeof *block + FIRST_BLOCK_BYTES);
    if (t == NULL || room == NULL || items == NULL || stuck == NULL || block == NULL) {
        tide_host_free(t);
        tide_host_free(items);
        tide_host_free(stuck);
        tide_host_free(room);
        tide_host_free(block);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "skyline: no memory for a tree of %zu items", n);
    }
    *block = (sky_block){.size = FIRST_BLOCK_BYTES};
    t->part = part;
    t->items = items;
    t->stuck = stuck;
    t->stack = t->blocks = block;
    uint32_t **of_items[] = {&t->order, &t->offset, &t->list, &t->snug};
    uint32_t **of_sections[] = {&t->run_begin, &t->run_end, &t->wall,         &t->ways,
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
    tide_host_free(t->stuck);
    tide_host_free(t->trail);
    tide_host_free(t);
}
