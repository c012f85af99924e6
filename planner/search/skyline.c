// SPDX-License-Identifier: MIT
//
// skyline: from items of a problem to a part (sections, grains, what static orders go by), and the run of one probe.
// See skyline.h; skyline_search.c is the tree.
#include "planner/search/skyline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/search/offset_tree.h"
#include "planner/search/skyline_tree.h"

// ---- parts ----

void tide__sky_part_deinit(tide_sky_part *part) {
    tide_host_free(part->items);
    tide_host_free(part->begin);
    tide_host_free(part->end);
    tide_host_free(part->size);
    for (size_t k = 0; k < TIDE_SKY_RANDOM; k++) tide_host_free(part->traits[k]);
    tide__offset_shapes_destroy(part->shapes);
    *part = (tide_sky_part){0};
}

static bool allocate(tide_sky_part *part, const uint32_t *items, size_t n) {
    part->items = tide_host_calloc(n, sizeof *part->items);
    part->begin = tide_host_calloc(n, sizeof *part->begin);
    part->end = tide_host_calloc(n, sizeof *part->end);
    part->size = tide_host_calloc(n, sizeof *part->size);
    bool ok = part->items != NULL && part->begin != NULL && part->end != NULL && part->size != NULL;
    for (size_t k = 0; k < TIDE_SKY_RANDOM; k++) {
        part->traits[k] = tide_host_calloc(n, sizeof *part->traits[k]);
        ok = ok && part->traits[k] != NULL;
    }
    if (ok) memcpy(part->items, items, n * sizeof *items);
    return ok;
}

/// Number the sections. A tick is one when something has begun since the section before and something ends after it:
/// then its live set is contained in no other's. count[t] is the number of sections before tick `first` + t.
static uint32_t number_sections(const tide_problem *p, const tide_sky_part *part, uint32_t first, uint32_t *count,
                                uint8_t *marks, size_t n_ticks) {
    enum { BEGINS = 1, ENDS = 2 };
    for (uint32_t i = 0; i < part->n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        marks[item->begin - first] |= BEGINS;
        marks[item->end - first] |= ENDS;
    }
    uint32_t n = 0;
    bool begun = false;
    for (size_t t = 0; t < n_ticks; t++) {
        count[t] = n;
        begun = begun || (marks[t] & BEGINS);
        if (!begun || !(marks[t + 1] & ENDS)) continue;
        n++;
        begun = false;
    }
    count[n_ticks] = n;
    return n;
}

static tide_status cut_sections(const tide_problem *p, tide_sky_part *part) {
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        if (item->begin < first) first = item->begin;
        if (item->end > last) last = item->end;
    }
    const size_t n_ticks = last - first;
    uint32_t *count = tide_host_calloc(n_ticks + 1, sizeof *count);
    uint8_t *marks = tide_host_calloc(n_ticks + 1, 1);
    if (count == NULL || marks == NULL) {
        tide_host_free(count);
        tide_host_free(marks);
        return TIDE_ERR_NOMEM;
    }
    part->n_sections = number_sections(p, part, first, count, marks, n_ticks);
    for (uint32_t i = 0; i < part->n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        part->begin[i] = count[item->begin - first];
        part->end[i] = count[item->end - first];
    }
    tide_host_free(count);
    tide_host_free(marks);
    return TIDE_OK;
}

static void sum_sections(const tide_problem *p, const tide_sky_part *part, uint64_t *sums, uint64_t *max) {
    memset(sums, 0, part->n_sections * sizeof *sums);
    *max = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        const uint64_t bytes = p->items[part->items[i]].size_bytes;
        const uint64_t grains = (bytes + part->grain_bytes - 1) / part->grain_bytes;
        for (uint32_t s = part->begin[i]; s < part->end[i]; s++) sums[s] += grains;
        part->size[i] = (uint32_t)grains;
    }
    for (uint32_t s = 0; s < part->n_sections; s++) *max = sums[s] > *max ? sums[s] : *max;
}

/// Sizes in a unit of height in which the bound fits 32 bits with some room above it.
static void choose_grain(const tide_problem *p, tide_sky_part *part, uint64_t *sums) {
    const uint64_t highest = UINT32_MAX - (UINT32_MAX >> 3);
    uint64_t bound;
    part->grain_bytes = p->grain_bytes;
    part->exact = true;
    for (;;) {
        sum_sections(p, part, sums, &bound);
        if (bound <= highest) break;
        part->grain_bytes *= 2;
        part->exact = false;
    }
    part->bound = (uint32_t)bound;
}

/// How many items are alive together with each: all but those that end before it begins or begin after it ends.
static void count_conflicts(tide_sky_part *part, uint32_t *begun, uint32_t *ended) {
    for (uint32_t i = 0; i < part->n; i++) {
        begun[part->begin[i] + 1]++;
        ended[part->end[i]]++;
    }
    for (uint32_t s = 0; s < part->n_sections; s++) {
        begun[s + 1] += begun[s];
        ended[s + 1] += ended[s];
    }
    for (uint32_t i = 0; i < part->n; i++) {
        part->traits[TIDE_SKY_CONFLICTS][i] = begun[part->end[i]] - ended[part->begin[i]] - 1;
    }
}

static double steps_of(const tide_problem *p, const tide_item *item) {
    if (p->tick_steps == NULL) return (double)(item->end - item->begin);
    // The last tick's end is no tick of its own: it counts as one step. Apart ticks are -1 and count as none.
    const int64_t begin = p->tick_steps[item->begin];
    const int64_t end = item->end < p->n_ticks ? p->tick_steps[item->end] : p->tick_steps[item->end - 1] + 1;
    return begin < 0 || end < begin ? (double)(item->end - item->begin) : (double)(end - begin);
}

static void measure_items(const tide_problem *p, tide_sky_part *part, const uint64_t *sums) {
    for (uint32_t i = 0; i < part->n; i++) {
        const tide_item *item = &p->items[part->items[i]];
        uint64_t total = 0;
        for (uint32_t s = part->begin[i]; s < part->end[i]; s++) total = sums[s] > total ? sums[s] : total;
        const double steps = steps_of(p, item);
        part->traits[TIDE_SKY_TOTAL][i] = (double)total;
        part->traits[TIDE_SKY_STEPS][i] = steps;
        part->traits[TIDE_SKY_AREA][i] = steps * part->size[i];
        part->traits[TIDE_SKY_SIZE][i] = part->size[i];
        part->traits[TIDE_SKY_SECTIONS][i] = part->end[i] - part->begin[i];
        part->traits[TIDE_SKY_TICKS][i] = item->end - item->begin;
    }
}

static tide_status measure(const tide_problem *p, tide_sky_part *part) {
    const size_t room = (size_t)part->n_sections + 1;
    uint64_t *sums = tide_host_calloc(room, sizeof *sums);
    uint32_t *counts = tide_host_calloc(2 * room, sizeof *counts);
    if (sums != NULL && counts != NULL) {
        choose_grain(p, part, sums);
        count_conflicts(part, counts, counts + room);
        measure_items(p, part, sums);
    }
    const bool ok = sums != NULL && counts != NULL;
    tide_host_free(sums);
    tide_host_free(counts);
    return ok ? TIDE_OK : TIDE_ERR_NOMEM;
}

tide_status tide__sky_part_make(const tide_problem *problem, const uint32_t *items, size_t n, tide_sky_part *out,
                                tide_error *err) {
    *out = (tide_sky_part){0};
    if (n > TIDE_SKY_MAX_ITEMS) {
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "skyline: %zu items, at most %d", n, TIDE_SKY_MAX_ITEMS);
    }
    out->n = (uint32_t)n;
    tide_status st = TIDE_ERR_NOMEM;
    if (allocate(out, items, n)) {
        st = cut_sections(problem, out);
        if (st == TIDE_OK) st = measure(problem, out);
    }
    if (st != TIDE_OK) {
        tide__sky_part_deinit(out);
        return TIDE_NO_MEMORY(err, "for a skyline of %zu items", n);
    }
    if (problem->plain && problem->grain_bytes % problem->align_bytes == 0) return TIDE_OK;
    // Sizes may be rounded up to coarser grains; shapes that do not end on a grain cannot, they would overlap.
    st = out->exact ? tide__offset_shapes_make(problem, out, &out->shapes, err)
                    : TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "skyline: shapes higher than 2^32 grains");
    // Sections know nothing of gaps, and the offset tree does not find all plans of shapes that fit into each other.
    if (!problem->plain) {
        out->bound = 0;
        out->exact = false;
    }
    if (st != TIDE_OK) tide__sky_part_deinit(out);
    return st;
}

// ---- a probe ----

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
        got = tide__offset_tree_run(t);
    } else {
        got = push_root(t, &root) ? tide__sky_solve(t, &root) : t->cut;
    }
    if (n_nodes != NULL) *n_nodes = t->n_nodes;
    if (got == TIDE_SKY_EXHAUSTED && t->capacity > probe->capacity) return TIDE_SKY_LIMIT; // proves nothing
    if (got != TIDE_SKY_FOUND) return got;
    for (uint32_t k = 0; k < p->n; k++) {
        TIDE_ASSERT((uint64_t)t->offset[k] + t->items[k].size <= t->capacity);
        offsets[t->order[k]] = t->offset[k];
    }
    return got;
}
