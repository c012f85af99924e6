// SPDX-License-Identifier: MIT
//
// block tree: see block_tree.h.
#include "core/base/block_tree.h"

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

void tide_block_tree_deinit(tide_block_tree *t) {
    tide_host_free(t->nodes);
    *t = (tide_block_tree){.by_size = t->by_size};
}

/// Whether `a` stands before `b`.
static bool before(const tide_block_tree *t, tide_block_span a, tide_block_span b) {
    if (t->by_size && a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.begin < b.begin;
}

static uint64_t largest_of(const tide_block_tree *t, uint32_t i) { return i == 0 ? 0 : t->nodes[i].largest; }

static void measure(tide_block_tree *t, uint32_t i) {
    tide_block_node *n = &t->nodes[i];
    const uint64_t left = largest_of(t, n->left), right = largest_of(t, n->right);
    n->largest = n->block.bytes;
    if (left > n->largest) n->largest = left;
    if (right > n->largest) n->largest = right;
}

/// Split tree `i` into nodes before `key` and the others.
static void split(tide_block_tree *t, uint32_t i, tide_block_span key, uint32_t *left, uint32_t *right) {
    if (i == 0) {
        *left = *right = 0;
        return;
    }
    uint32_t part;
    if (before(t, t->nodes[i].block, key)) {
        split(t, t->nodes[i].right, key, &part, right);
        t->nodes[i].right = part;
        *left = i;
    } else {
        split(t, t->nodes[i].left, key, left, &part);
        t->nodes[i].left = part;
        *right = i;
    }
    measure(t, i);
}

/// Join two trees; all of `left` are before all of `right`.
static uint32_t join(tide_block_tree *t, uint32_t left, uint32_t right) {
    if (left == 0 || right == 0) return left + right;
    TIDE_ASSERT(before(t, t->nodes[left].block, t->nodes[right].block));
    uint32_t top;
    if (t->nodes[left].priority > t->nodes[right].priority) {
        top = left;
        t->nodes[left].right = join(t, t->nodes[left].right, right);
    } else {
        top = right;
        t->nodes[right].left = join(t, left, t->nodes[right].left);
    }
    measure(t, top);
    return top;
}

/// Whether the nodes from `i` down stand in order, between two blocks of a tree by address, under parents of higher
/// priority, and know the largest.
static bool tree_holds(const tide_block_tree *t, uint32_t i, uint64_t lo, uint64_t hi) {
    if (i == 0) return true;
    const tide_block_node *n = &t->nodes[i];
    uint64_t largest = n->block.bytes;
    if (n->block.begin < lo || n->block.begin >= hi) return false;
    if (largest_of(t, n->left) > largest) largest = largest_of(t, n->left);
    if (largest_of(t, n->right) > largest) largest = largest_of(t, n->right);
    if (largest != n->largest) return false;
    if (n->left != 0 && (t->nodes[n->left].priority > n->priority || !before(t, t->nodes[n->left].block, n->block)))
        return false;
    if (n->right != 0 && (t->nodes[n->right].priority > n->priority || !before(t, n->block, t->nodes[n->right].block)))
        return false;
    if (t->by_size) return tree_holds(t, n->left, 0, UINT64_MAX) && tree_holds(t, n->right, 0, UINT64_MAX);
    return tree_holds(t, n->left, lo, n->block.begin) && tree_holds(t, n->right, n->block.begin + 1, hi);
}

static uint32_t new_node(tide_block_tree *t) {
    if (t->free_node != 0) {
        const uint32_t i = t->free_node;
        t->free_node = t->nodes[i].left;
        return i;
    }
    const size_t need = t->n_nodes == 0 ? 2 : t->n_nodes + 1; // the first one stands for none
    if (need > UINT32_MAX || tide_host_grow(&t->nodes, &t->cap, need, sizeof *t->nodes) != TIDE_OK) return 0;
    t->n_nodes = need;
    return (uint32_t)need - 1;
}

tide_status tide_block_tree_insert(tide_block_tree *t, tide_block_span block) {
    TIDE_ASSERT(block.bytes > 0);
    const uint32_t i = new_node(t);
    if (i == 0) return TIDE_ERR_NOMEM;
    t->nodes[i] =
        (tide_block_node){.block = block, .largest = block.bytes, .priority = (uint32_t)tide_rng_u64(&t->rng)};
    uint32_t left, right;
    split(t, t->root, block, &left, &right);
    t->root = join(t, join(t, left, i), right);
    TIDE_ASSERT_SLOW(tree_holds(t, t->root, 0, UINT64_MAX));
    return TIDE_OK;
}

void tide_block_tree_remove(tide_block_tree *t, tide_block_span block) {
    const tide_block_span behind = {.begin = block.begin + 1, .bytes = block.bytes};
    uint32_t left, middle, right;
    split(t, t->root, block, &left, &middle);
    split(t, middle, behind, &middle, &right);
    TIDE_ASSERT(middle != 0 && t->nodes[middle].left == 0 && t->nodes[middle].right == 0); // it was there, once
    TIDE_ASSERT(t->nodes[middle].block.begin == block.begin && t->nodes[middle].block.bytes == block.bytes);
    t->nodes[middle].left = t->free_node;
    t->free_node = middle;
    t->root = join(t, left, right);
    TIDE_ASSERT_SLOW(tree_holds(t, t->root, 0, UINT64_MAX));
}

bool tide_block_tree_at_least(const tide_block_tree *t, tide_block_span key, tide_block_span *out) {
    bool found = false;
    for (uint32_t i = t->root; i != 0;) {
        const tide_block_node *n = &t->nodes[i];
        if (before(t, n->block, key)) {
            i = n->right;
            continue;
        }
        *out = n->block;
        found = true;
        i = n->left;
    }
    return found;
}

bool tide_block_tree_before(const tide_block_tree *t, tide_block_span key, tide_block_span *out) {
    bool found = false;
    for (uint32_t i = t->root; i != 0;) {
        const tide_block_node *n = &t->nodes[i];
        if (!before(t, n->block, key)) {
            i = n->left;
            continue;
        }
        *out = n->block;
        found = true;
        i = n->right;
    }
    return found;
}

static bool holds(tide_block_span block, uint64_t bytes, uint64_t align) {
    uint64_t at, end;
    return tide_align_up(block.begin, align, &at) && tide_add_u64(at, bytes, &end) && end <= block.begin + block.bytes;
}

static bool lowest_fit(const tide_block_tree *t, uint32_t i, uint64_t bytes, uint64_t align, tide_block_span *out) {
    if (largest_of(t, i) < bytes || i == 0) return false;
    TIDE_ASSERT(i < t->n_nodes);
    const tide_block_node *n = &t->nodes[i];
    if (lowest_fit(t, n->left, bytes, align, out)) return true;
    if (holds(n->block, bytes, align)) {
        *out = n->block;
        return true;
    }
    return lowest_fit(t, n->right, bytes, align, out);
}

bool tide_block_tree_lowest_fit(const tide_block_tree *t, uint64_t bytes, uint64_t align, tide_block_span *out) {
    TIDE_ASSERT(!t->by_size);
    return lowest_fit(t, t->root, bytes, align, out);
}

uint64_t tide_block_tree_largest(const tide_block_tree *t) { return largest_of(t, t->root); }

// ---- what is free, in blocks that never touch ----

/// Put `to` where `from` is: between the same neighbours, so that the tree keeps its shape.
static void replace(tide_block_tree *t, uint32_t i, tide_block_span from, tide_block_span to) {
    TIDE_ASSERT(i != 0); // it is there
    tide_block_node *n = &t->nodes[i];
    if (n->block.begin == from.begin)
        n->block = to;
    else
        replace(t, from.begin < n->block.begin ? n->left : n->right, from, to);
    measure(t, i);
}

tide_status tide_block_tree_give(tide_block_tree *t, tide_block_span span) {
    TIDE_ASSERT(!t->by_size && span.bytes > 0 && span.bytes <= UINT64_MAX - span.begin);
    const uint64_t end = span.begin + span.bytes;
    tide_block_span left, right;
    const bool joins_left = tide_block_tree_before(t, span, &left) && left.begin + left.bytes == span.begin;
    const bool joins_right = tide_block_tree_at_least(t, span, &right) && right.begin == end;
    tide_block_span whole = span;
    if (joins_left) whole = (tide_block_span){left.begin, left.bytes + span.bytes, span.id};
    if (joins_right) whole.bytes += right.bytes;
    if (joins_left && joins_right) tide_block_tree_remove(t, right);
    if (!joins_left && !joins_right) return tide_block_tree_insert(t, whole);
    replace(t, t->root, joins_left ? left : right, whole);
    TIDE_ASSERT_SLOW(tree_holds(t, t->root, 0, UINT64_MAX));
    return TIDE_OK;
}

tide_status tide_block_tree_take(tide_block_tree *t, tide_block_span span) {
    TIDE_ASSERT(!t->by_size && span.bytes > 0);
    tide_block_span block;
    uint64_t end;
    if (span.begin == UINT64_MAX || !tide_add_u64(span.begin, span.bytes, &end) ||
        !tide_block_tree_before(t, (tide_block_span){.begin = span.begin + 1}, &block) ||
        end > block.begin + block.bytes)
        return TIDE_ERR_NOT_FOUND;
    const tide_block_span left = {block.begin, span.begin - block.begin, block.id};
    const tide_block_span right = {end, block.begin + block.bytes - end, block.id};
    if (left.bytes > 0 && right.bytes > 0) {
        replace(t, t->root, block, left);
        const tide_status st = tide_block_tree_insert(t, right);
        if (st != TIDE_OK) replace(t, t->root, left, block);
        return st;
    }
    if (left.bytes == 0 && right.bytes == 0)
        tide_block_tree_remove(t, block);
    else
        replace(t, t->root, block, left.bytes > 0 ? left : right);
    TIDE_ASSERT_SLOW(tree_holds(t, t->root, 0, UINT64_MAX));
    return TIDE_OK;
}
