// SPDX-License-Identifier: MIT
//
// cover tree: see cover_tree.h. A stretch is cut into the fewest nodes that make it up, at most two a level; they and
// the nodes above its two ends are all that is touched.
//
// Where a node is covered whole, the nodes below it are not read: its owner is the class that covers it, and classes
// below must be the same. Counts below stay as they are, for the time when the node is no longer covered whole.
#include "planner/cover_tree.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

tide_status tide__cover_tree_init(tide_cover_tree *t, const uint64_t *positions, size_t n_positions) {
    *t = (tide_cover_tree){.positions = positions, .n_positions = n_positions, .n_leaves = 1};
    while (t->n_leaves + 1 < n_positions) t->n_leaves *= 2;
    t->nodes = tide_host_calloc(t->n_leaves, 2 * sizeof *t->nodes);
    if (t->nodes == NULL) return TIDE_ERR_NOMEM;
    for (size_t k = 0; k < 2 * t->n_leaves; k++) t->nodes[k].owner = TIDE_COVER_NONE;
    return TIDE_OK;
}

void tide__cover_tree_deinit(tide_cover_tree *t) {
    tide_host_free(t->nodes);
    *t = (tide_cover_tree){0};
}

static uint32_t both(uint32_t a, uint32_t b) {
    if (a == b || b == TIDE_COVER_NONE) return a;
    return a == TIDE_COVER_NONE ? b : TIDE_COVER_SEVERAL;
}

uint32_t tide__cover_tree_owner(const tide_cover_tree *t, size_t from, size_t to) {
    TIDE_ASSERT(from < to && to < t->n_positions);
    uint32_t owner = TIDE_COVER_NONE;
    size_t lo = from + t->n_leaves, hi = to + t->n_leaves;
    size_t a = lo / 2, b = (hi - 1) / 2; // every node above a part of the stretch is above one of its ends
    for (; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2 == 1) owner = both(owner, t->nodes[lo++].owner);
        if (hi % 2 == 1) owner = both(owner, t->nodes[--hi].owner);
    }
    for (; a != b; a /= 2, b /= 2) {
        if (t->nodes[a].n_whole > 0) owner = both(owner, t->nodes[a].owner);
        if (t->nodes[b].n_whole > 0) owner = both(owner, t->nodes[b].owner);
    }
    for (; a > 0; a /= 2) {
        if (t->nodes[a].n_whole > 0) owner = both(owner, t->nodes[a].owner);
    }
    return owner;
}

/// The first position above `byte`, as an index.
static size_t position_above(const tide_cover_tree *t, uint64_t byte) {
    size_t lo = 0, hi = t->n_positions;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->positions[mid] <= byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    TIDE_ASSERT(lo == 0 || t->positions[lo - 1] <= byte);
    return lo;
}

uint32_t tide__cover_tree_owner_of_bytes(const tide_cover_tree *t, uint64_t lo, uint64_t hi) {
    size_t from = position_above(t, lo), to = position_above(t, hi - 1);
    if (from > 0) from--;
    if (to == t->n_positions) to--;
    return from < to ? tide__cover_tree_owner(t, from, to) : TIDE_COVER_NONE;
}

/// Bytes between the first and the last position of node `k`; `leaf` and `n` are its leaves.
static uint64_t length_of(const tide_cover_tree *t, size_t leaf, size_t n) {
    const size_t last = t->n_positions - 1, end = leaf + n < last ? leaf + n : last;
    TIDE_ASSERT(leaf < last && t->positions[leaf] < t->positions[end]);
    return t->positions[end] - t->positions[leaf];
}

/// What a node that is not whole has below it.
static void sum_up(tide_cover_tree *t, size_t k) {
    tide_cover_node *node = &t->nodes[k];
    if (node->n_whole > 0) return;
    const bool is_leaf = k >= t->n_leaves;
    TIDE_ASSERT(k > 0 && k < 2 * t->n_leaves);
    node->covered = is_leaf ? 0 : t->nodes[2 * k].covered + t->nodes[2 * k + 1].covered;
    node->owner = is_leaf ? TIDE_COVER_NONE : both(t->nodes[2 * k].owner, t->nodes[2 * k + 1].owner);
}

/// All that is above the two ends of a stretch.
static void sum_up_above(tide_cover_tree *t, size_t from, size_t to) {
    size_t a = (from + t->n_leaves) / 2, b = (to - 1 + t->n_leaves) / 2;
    for (; a != b; a /= 2, b /= 2) {
        sum_up(t, a);
        sum_up(t, b);
    }
    for (; a > 0; a /= 2) sum_up(t, a);
}

static void cover(tide_cover_tree *t, size_t k, size_t leaf, size_t n, uint32_t owner) {
    tide_cover_node *node = &t->nodes[k];
    node->n_whole++;
    node->owner = owner;
    node->covered = length_of(t, leaf, n);
}

static void uncover(tide_cover_tree *t, size_t k) {
    TIDE_ASSERT(t->nodes[k].n_whole > 0);
    t->nodes[k].n_whole--;
    sum_up(t, k);
}

void tide__cover_tree_add(tide_cover_tree *t, size_t from, size_t to, uint32_t owner) {
    TIDE_ASSERT(from < to && to < t->n_positions && owner < TIDE_COVER_SEVERAL);
    size_t lo = from + t->n_leaves, hi = to + t->n_leaves;
    for (size_t n = 1; lo < hi; lo /= 2, hi /= 2, n *= 2) {
        if (lo % 2 == 1) {
            cover(t, lo, lo * n - t->n_leaves, n, owner);
            lo++;
        }
        if (hi % 2 == 1) {
            --hi;
            cover(t, hi, hi * n - t->n_leaves, n, owner);
        }
    }
    sum_up_above(t, from, to);
}

void tide__cover_tree_remove(tide_cover_tree *t, size_t from, size_t to) {
    TIDE_ASSERT(from < to && to < t->n_positions);
    size_t lo = from + t->n_leaves, hi = to + t->n_leaves;
    for (; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2 == 1) uncover(t, lo++);
        if (hi % 2 == 1) uncover(t, --hi);
    }
    sum_up_above(t, from, to);
}
