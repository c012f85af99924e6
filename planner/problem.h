// SPDX-License-Identifier: MIT
//
// problem: what a strategy sees of a lifetimes table. One problem for each (device, kind); aliases are merged into the
// item that has the place; steps are renumbered so that only those count at which something begins or ends. Private to
// the planner; the verifier does not use it.
//
// An item is a stiff shape: one or more rectangles in ticks x bytes that move up and down together. A plain tensor is
// one rectangle. Gaps, Concat's parts before the whole exists, and aliases that outlive others make several:
//
//     bytes                     hi
//       |            +--------+          item: Concat's output with two parts inside.
//       |     +------+ whole  |          It is placed as one, and other tensors may
//       |     | part 1        |          lie where it has no rectangle.
//       |  +--+------+        |
//       |  | part 0  |        |
//       +--+---------+--------+--> ticks
//          begin              end
//
// Tensors that must stay apart though they are never alive together (apart sets) get one more rectangle each, in a
// tick after all others that belongs to their set: to every strategy they then simply conflict.
#ifndef TIDE_PLANNER_PROBLEM_H
#define TIDE_PLANNER_PROBLEM_H

#include "core/runtime/memory_plan.h"

typedef struct tide_rect {
    uint32_t begin, end;         ///< ticks, half-open, begin < end
    uint64_t lo_bytes, hi_bytes; ///< from the item's offset, half-open, lo < hi
} tide_rect;

typedef struct tide_item {
    uint64_t size_bytes; ///< the item takes [offset, offset + size_bytes) at most; largest hi of its rectangles or more
    uint64_t align_bytes;  ///< power of two; offsets are multiples of it
    uint64_t fixed_offset; ///< where it must lie; TIDE_NO_OFFSET: anywhere
    uint32_t begin, end;   ///< from the first rectangle's begin to the last one's end
    uint32_t first_rect, n_rects;
    uint32_t lifetime; ///< the item in the table that has the place
} tide_item;

typedef struct tide_problem {
    tide_item *items; ///< [n] canonical order: what they are (birth, death, size, alignment, shape), then name; so that
                      ///< plans do not depend on the table's order (S23-11) and equal items (twins) stand together
    size_t n;
    tide_rect *rects; ///< [n_rects], those of one item together, by (begin, lo_bytes), disjoint
    size_t n_rects;
    uint32_t n_ticks;    ///< ticks are 0 … n_ticks-1
    int64_t *tick_steps; ///< [n_ticks] the first step of each; -1: of an apart set. NULL: ticks are steps
    uint32_t peak_tick;  ///< the first one at which lower_bound_bytes are alive
    /// Every item has exactly one rectangle, from byte 0 to size_bytes, and none is fixed: the skyline's rules hold.
    bool plain;
    bool has_fixed;
    tide_device device;
    tide_memory_kind kind;
    uint64_t align_bytes;       ///< the strictest
    uint64_t naive_bytes;       ///< sums over the table's items, aliases too, each rounded up
    uint64_t naive_peak_bytes;  ///< see tide_memory_plan
    uint64_t lower_bound_bytes; ///< largest sum of rectangle heights at one tick that is a step
    uint64_t proved_bytes;      ///< the best bound that needs no search: >= lower_bound_bytes
    tide_proof proof;           ///< why
    /// Sizes and alignments are multiples of this: all sensible offsets and heights are too. >= 1.
    uint64_t grain_bytes;
} tide_problem;

/// Where a strategy puts the items of one problem.
typedef struct tide_placement {
    uint64_t *offsets;         ///< [n]; TIDE_NO_OFFSET before
    int32_t *pools;            ///< [n], pool strategies only; TIDE_NO_POOL before
    tide_plan_pool *pool_list; ///< [n_pools] owned, pool strategies only; laid end to end
    size_t n_pools;
    uint64_t bytes;        ///< what the strategy sets: the end of the highest item, or of the last pool
    uint64_t proved_bytes; ///< starts as the problem's; a strategy that proves more raises it
    tide_proof proof;
} tide_placement;

typedef struct tide_problems {
    tide_problem *list; ///< [n] by device, then kind; those without items are left out
    size_t n;
} tide_problems;

/**
 * Split a table into problems.
 *
 * @return TIDE_ERR_OVERFLOW when the sizes add up to more than 2^63 - 1, or do so with what alignments may skip, above
 *         the highest given offset; TIDE_ERR_INVALID naming both when two tensors with given offsets overlap while both
 *         are alive; TIDE_ERR_NOMEM
 * Cost O(n log n).
 */
tide_status tide__problems_make(const tide_lifetimes *lt, tide_problems *out, tide_error *err) TIDE_NODISCARD;
void tide__problems_deinit(tide_problems *p);

/// A problem of bare rectangles, for tests, benches and parts of a larger problem: items as given (lifetime, first_rect
/// and n_rects are set here, one rectangle each), ticks as they are, canonical order NOT applied.
tide_status tide__problem_of_items(const tide_item *items, size_t n, tide_problem *out, tide_error *err) TIDE_NODISCARD;
void tide__problem_deinit(tide_problem *p);
/// What every problem promises: spans that are not empty, alignments that are powers of two, rectangles inside their
/// item, bounds in order. For assertions and tests.
bool tide__problem_holds(const tide_problem *p);

tide_status tide__placement_init(tide_placement *pl, const tide_problem *p, tide_error *err) TIDE_NODISCARD;
void tide__placement_deinit(tide_placement *pl);
/// Set bytes from offsets: the largest offset + size_bytes.
void tide__placement_measure(tide_placement *pl, const tide_problem *p);
/// Whether every item has an aligned, disjoint place; O(pairs of rectangles): for tests and small problems.
bool tide__placement_is_sound(const tide_placement *pl, const tide_problem *p);

static inline const tide_rect *tide__rects_of(const tide_problem *p, const tide_item *item) {
    return p->rects + item->first_rect;
}
/// TIDE_ERR_NOT_IMPLEMENTED, saying that `what` ("a pool plan") cannot honour given offsets, where there are any.
tide_status tide__refuse_fixed(const tide_problem *problem, const char *what, tide_error *err) TIDE_NODISCARD;

#endif
