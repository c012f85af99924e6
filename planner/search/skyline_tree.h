// SPDX-License-Identifier: MIT
//
// skyline tree: the memory of one tree and the frames of its path, for skyline_search.c and offset_tree.c. Private to
// planner/search.
#ifndef TIDE_PLANNER_SEARCH_SKYLINE_TREE_H
#define TIDE_PLANNER_SEARCH_SKYLINE_TREE_H

#include "planner/search/skyline.h"

/// What is left to place at one node, in sections [first, first + n_sections). Arrays live in the tree's stack and are
/// shared with all nodes below it: backtracking undoes what was changed since.
typedef struct sky_frame {
    uint32_t *id;        ///< [n] items in static order, ascending
    uint32_t *at;        ///< [n] lowest offset each may have; at least the highest floor under it
    uint32_t *floor;     ///< [n_sections] by section - first
    uint32_t *rest;      ///< [n_sections] sum of sizes not placed yet
    uint32_t *below;     ///< [n_sections] the item on which the floor lies; UINT32_MAX: none, or raised above it
    uint32_t *from, *to; ///< [n_sections] sections on which the height of the floor depends, where it was raised
    uint32_t n, first, n_sections;
    uint32_t raised; ///< the height to which floors were raised last
} sky_frame;

/// A growing stack of memory in blocks that never move.
typedef struct sky_block {
    struct sky_block *next;
    size_t size, used;
    uint64_t data[];
} sky_block;

typedef struct sky_mark {
    sky_block *block;
    size_t used, path_bytes;
} sky_mark;

/// A number of a frame as it was before.
typedef struct sky_undo {
    uint32_t *where, before;
} sky_undo;

/// Sections, of the part, half-open. A dead end's conflict is one: it stays a dead end whatever is placed outside.
typedef struct sky_window {
    uint32_t begin, end;
} sky_window;

/// A blocked section, by its index in the frame.
typedef struct sky_blocked {
    uint32_t section, start; ///< the lowest of its items can start there
    sky_window window;       ///< of all its items
} sky_blocked;

/// An item in the probe's static order.
typedef struct sky_item {
    uint32_t begin, end; ///< sections
    uint32_t size;
    uint32_t twin; ///< the item before, when it is the same; else UINT32_MAX
} sky_item;

struct tide_sky_tree {
    const tide_sky_part *part;
    sky_item *items;      ///< [n]
    uint32_t *order;      ///< [n] index in the part of each
    uint32_t *offset;     ///< [n] where each was put last
    uint32_t *list, *fit; ///< [n] the branches of one node, and how well each fits
    // The survey of one node: sections by index in the frame, [n_sections + 1] each.
    uint32_t *run_begin, *run_end; ///< the run of equal floors a section is in
    uint32_t *wall;                ///< the lower of the two floors beside the run
    uint32_t *branches;            ///< items that can be placed on it now
    uint32_t *inside;              ///< sum of sizes of all that fit its run
    uint32_t *above;               ///< sum of sizes of all that cannot start below frame->raised
    uint32_t *dead_ends;           ///< [n_sections of the part] the probe's, or own_dead_ends
    uint32_t *own_dead_ends;
    sky_blocked *blocked;      ///< [n_sections]
    sky_block *stack, *blocks; ///< the block in use and the first one
    size_t path_bytes;         ///< what the path holds beside its trail
    sky_undo *trail;           ///< [n_trail] changes on the path, the last one last
    size_t n_trail, cap_trail;
    uint32_t depth; ///< nodes on the path
    const tide_sky_probe *probe;
    sky_window conflict; ///< of the last dead end
    uint64_t n_nodes, n_work;
    uint32_t capacity;   ///< the probe's, and what it has risen by
    uint32_t n_dead;     ///< dead ends since the last rise
    tide_sky_result cut; ///< why it was cut short
    bool is_cut;
};

/// Count a node. @return whether the probe is at its end; tree->cut says why
bool tide__sky_is_over(tide_sky_tree *tree);
/// Count a dead end: where there are too many, the capacity rises.
void tide__sky_dead_end(tide_sky_tree *tree);
enum { SKY_ARRAYS = 5 }; ///< of a frame: floor, rest, below, from, to, one after the other
/// Change a number of a frame; false as tide__sky_push.
bool tide__sky_set(tide_sky_tree *tree, uint32_t *where, uint32_t value);
/// Backtrack to where the trail had `n_trail` changes.
void tide__sky_undo(tide_sky_tree *tree, size_t n_trail);
/// An empty frame with room for that much; false: no memory.
bool tide__sky_push_frame(tide_sky_tree *tree, uint32_t n, uint32_t n_sections, sky_frame *out);
/// Place what is left in `frame`. With TIDE_SKY_EXHAUSTED tree->conflict is the window that it depends on.
tide_sky_result tide__sky_solve(tide_sky_tree *tree, sky_frame *frame);

/// NULL when there is no memory, or more is needed than a tree may take (tree->cut says which).
void *tide__sky_push(tide_sky_tree *tree, size_t size_bytes);
sky_mark tide__sky_mark(const tide_sky_tree *tree);
void tide__sky_pop(tide_sky_tree *tree, sky_mark mark);

#endif
