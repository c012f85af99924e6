// SPDX-License-Identifier: MIT
//
// space: which bytes are taken at which ticks, and where the lowest room is that is free over a whole span of ticks.
// The placer and the colouring stand on it: they never look at pairs of items. Private to the planner.
//
// Time is cut into blocks of ticks in which few rectangles begin or end. Over the blocks stands a binary tree. A
// rectangle that does not fill its first or last block is noted there as it is; the blocks between are covered by few
// nodes of the tree, as in every segment tree (Bentley 1977). A node knows, as free runs:
//
//     below   what is free at all ticks of the node, of that which its covered nodes and blocks below take
//     cover   what is free of that which covers the node whole
//
//     node          1 [ cover, below ]
//                 /                    \                 a span that begins in block 0 and ends with block 3:
//          2 [ c, b ]                3 [ c, b ]          free is what is free in the notes of block 0 that meet
//           /      \                  /      \           the span, in cover of 4, 2 and 1, and in below of 5 and 3
//       4 [ c, b ] 5 [ c, b ]     6 [ c, b ] 7 [ c, b ]
//     blocks  0 notes   1 notes       2 notes    3 notes
//
// So any span is the meeting of O(log n) lists of free runs and two short lists of notes.
#ifndef TIDE_PLANNER_STRATEGIES_SPACE_H
#define TIDE_PLANNER_STRATEGIES_SPACE_H

#include "planner/problem.h"
#include "planner/strategies/free_runs.h"

typedef struct tide_space tide_space;

/// Beginnings and ends of rectangles inside one block, unless they share one tick. Longer notes and a lower tree; from
/// 256 to 512 measured best at all sizes and densities.
enum { TIDE_SPACE_BLOCK_EVENTS = 384 };

/// For rectangles whose ticks are those of `rects`, borrowed for the call. Empty. O(n) memory. `block_events` is
/// TIDE_SPACE_BLOCK_EVENTS but in tests, which see more of the tree with less. @return TIDE_ERR_NOMEM
tide_status tide__space_create(const tide_rect *rects, size_t n, uint32_t n_ticks, uint32_t block_events,
                               tide_space **out) TIDE_NODISCARD;
/// Takes NULL.
void tide__space_destroy(tide_space *space);
/// Empty again. Nothing smaller than `min_bytes` (>= 1) will be asked for until the next reset.
void tide__space_reset(tide_space *space, uint64_t min_bytes);
/// Take bytes [lo, hi) over ticks [begin, end), which are those of one of the rectangles of the creation, and no
/// rectangle more often than it was there. @return false: no memory; the space must be reset
bool tide__space_take(tide_space *space, uint32_t begin, uint32_t end, uint64_t lo, uint64_t hi);

typedef struct tide_space_note tide_space_note;

enum { TIDE_SPACE_MAX_LISTS = 128 };
/// What is free over one span of ticks, read upwards. Of no use after the next take.
typedef struct tide_space_window {
    tide_run_cursor lists[TIDE_SPACE_MAX_LISTS];
    size_t n_lists;
    struct {
        const tide_space_note *next, *end;
    } notes[2];
    size_t n_notes;
    uint32_t begin, end;
    uint64_t bytes; ///< what is looked for
} tide_space_window;

/// For `bytes` over ticks [begin, end).
void tide__space_open(const tide_space *space, uint32_t begin, uint32_t end, uint64_t bytes, tide_space_window *window);
/**
 * The lowest place at or above `from`, which must not go down from call to call.
 *
 * @param run_end  out, where the free stretch ends that the place lies in; UINT64_MAX: nowhere. May be NULL
 */
uint64_t tide__space_next(tide_space_window *window, uint64_t from, uint64_t *run_end);

#endif
