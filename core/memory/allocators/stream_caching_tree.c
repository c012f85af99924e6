// SPDX-License-Identifier: MIT
//
// The search tree of stream_caching: pieces in order of size, then address, so that the first one from a size on is the
// best fit.
//
//              (2048, a) rank 9             in order of (size, address) from left to right,
//              /               \            in order of rank from top to bottom
//      (512, c) 7            (4096, b) 8
//             \              /
//        (1024, d) 2    (2048, e) 5
//
// A treap: the rank is a fixed scramble of the header's address, so the tree has the shape of a random one and expected
// depth O(log n), without a state or any rebalancing. Source: Seidel and Aragon, "Randomized Search Trees",
// Algorithmica 16, 1996, section 3; insertion by splitting and removal by joining are their section 3 as well.
#include "core/memory/allocators/stream_caching_internal.h"

static bool is_before(const tide__piece *p, size_t size_bytes, const char *addr) {
    return p->size_bytes != size_bytes ? p->size_bytes < size_bytes : (uintptr_t)p->addr < (uintptr_t)addr;
}

void tide__tree_insert(tide__piece **root, tide__piece *p) {
    tide__piece **at = root;
    while (*at != NULL && (*at)->rank >= p->rank)
        at = is_before(*at, p->size_bytes, p->addr) ? &(*at)->more : &(*at)->less;
    // What is below goes to the left or the right of p.
    tide__piece *below = *at, **less = &p->less, **more = &p->more;
    while (below != NULL) {
        if (is_before(below, p->size_bytes, p->addr)) {
            *less = below;
            less = &below->more;
            below = *less;
        } else {
            *more = below;
            more = &below->less;
            below = *more;
        }
    }
    *less = *more = NULL;
    *at = p;
}

void tide__tree_remove(tide__piece **root, tide__piece *p) {
    tide__piece **at = root;
    while (*at != p) at = is_before(*at, p->size_bytes, p->addr) ? &(*at)->more : &(*at)->less;
    tide__piece *less = p->less, *more = p->more;
    while (less != NULL && more != NULL) {
        if (less->rank >= more->rank) {
            *at = less;
            at = &less->more;
            less = *at;
        } else {
            *at = more;
            at = &more->less;
            more = *at;
        }
    }
    *at = less != NULL ? less : more;
    p->less = p->more = NULL;
}

tide__piece *tide__tree_from(tide__piece *root, size_t size_bytes, const char *addr) {
    tide__piece *found = NULL;
    while (root != NULL) {
        if (is_before(root, size_bytes, addr)) {
            root = root->more;
        } else {
            found = root;
            root = root->less;
        }
    }
    return found;
}

tide__piece *tide__tree_last(tide__piece *root) {
    while (root != NULL && root->more != NULL) root = root->more;
    return root;
}
