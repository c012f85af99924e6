// SPDX-License-Identifier: MIT
//
// skyline: is there a plan of at most a given height? An exact tree search over how items stack up, section by
// section, for one part of a problem. The strategy `search` asks it at many capacities with many orders. Private to
// the planner.
//
// Time is cut into sections: spans in which the set of live items is a largest one (what lies between is implied). The
// items placed so far make a skyline: a floor for each section.
//
//     bytes            valley
//       |   +----+   |<----->|    +--+       A valley is a run of sections with the same floor and higher ones on both
//       |   | b  |           +----+  |       sides. An item that starts on its floor lies wholly inside it. One of its
//       | +-+--+-+           |   d   |       sections is taken, and the tree branches on what lies next on it: each
//       | | a  | +-----------+-------+       item that fits the valley there, or none of them. In the last case the
//       +-+----+-+----c------+-------+-->    floor of the section rises to the lowest place where an item can lie.
//         sections
//
// Every plan in which no item can be lowered is on exactly one path, whichever valley and section are taken at each
// node. So those are taken that leave the fewest branches, and waste is found at the node where it arises.
//
// Words: a *section* is as above; a *probe* is one run of the tree at one capacity; a *branch* is an item that can be
// placed next; *waste* is height of a section that no item will use; a section is *blocked* when no item can start on
// its floor; a *dead end* is a node without a solution below it; its *conflict* is the window of sections that caused
// it; *twins* are items with the same sections and size, of which only one order is tried; a *descent* is one path down
// to a complete plan.
//
// Sources: the branching is the one of Côté, Dell'Amico & Iori 2014 (Combinatorial Benders' cuts for the strip packing
// problem, the y-check), here over all valleys instead of the lowest; sections and many static orders in a round robin
// of small node budgets as in Moffitt 2024 (MiniMalloc), doi 10.1145/3623278.3624752; weights by dead ends as in
// Boussemart, Hemery, Lecoutre & Sais 2004 (dom/wdeg); conflict-directed backjumping as in Prosser 1993.
#ifndef TIDE_PLANNER_SEARCH_SKYLINE_H
#define TIDE_PLANNER_SEARCH_SKYLINE_H

#include <stdatomic.h>

#include "planner/problem.h"

/// What a static order goes by; largest first each.
typedef enum tide_sky_trait {
    TIDE_SKY_TOTAL,     ///< largest sum of sizes of a section it lies in
    TIDE_SKY_STEPS,     ///< duration in steps
    TIDE_SKY_AREA,      ///< steps x bytes
    TIDE_SKY_SIZE,      ///< bytes
    TIDE_SKY_CONFLICTS, ///< how many are alive together with it
    TIDE_SKY_SECTIONS,  ///< duration in sections
    TIDE_SKY_TICKS,     ///< duration in ticks
    TIDE_SKY_RANDOM,    ///< drawn from the probe's seed
    TIDE_SKY_N_TRAITS
} tide_sky_trait;

/// Items of a problem that can be packed without regard to the others, ready to be searched.
typedef struct tide_sky_part {
    uint32_t n;      ///< items
    uint32_t *items; ///< [n] indices into the problem's, ascending
    uint32_t n_sections;
    uint32_t *begin, *end;             ///< [n] sections, half-open
    uint32_t *size;                    ///< [n] grains
    double *traits[TIDE_SKY_RANDOM];   ///< [n] each
    uint64_t grain_bytes;              ///< what a unit of height is
    uint32_t bound;                    ///< largest sum of sizes of a section, grains
    struct tide_offset_shapes *shapes; ///< owned; NULL where all items are plain and every grain is aligned
    bool exact;                        ///< sizes are whole grains: an exhausted tree proves something
} tide_sky_part;

/// Heights are counted in 32 bits; parts beyond are counted in coarser grains, and prove nothing.
enum { TIDE_SKY_MAX_ITEMS = 20000, TIDE_SKY_MAX_DEPTH = 2 * TIDE_SKY_MAX_ITEMS };

/**
 * Make a part of some items of a problem. Those that are not plain, or whose alignments differ, get the slower tree of
 * offset_tree.h.
 *
 * @param items  [n] ascending; copied
 * @return TIDE_ERR_NOMEM; TIDE_ERR_NO_SPACE: more than TIDE_SKY_MAX_ITEMS, or not plain and too large for offset_tree.h
 */
tide_status tide__sky_part_make(const tide_problem *problem, const uint32_t *items, size_t n, tide_sky_part *out,
                                tide_error *err) TIDE_NODISCARD;
void tide__sky_part_deinit(tide_sky_part *part);

/// Which section is taken at a node.
typedef enum tide_sky_rule {
    TIDE_SKY_FEWEST,   ///< fewest branches, then least slack
    TIDE_SKY_LOWEST,   ///< sections without waste first, of those the lowest, of those the one with fewest branches
    TIDE_SKY_WEIGHTED, ///< fewest branches per dead end met there before: the weights of dom/wdeg
    TIDE_SKY_KEY,      ///< under the first item of the static order that fits a valley; of its sections fewest branches
    TIDE_SKY_KEY_LOW,  ///< the same, among the lowest valleys
    TIDE_SKY_N_RULES
} tide_sky_rule;

/// Which of the items that can lie next on it is tried first; ties go by the static order.
typedef enum tide_sky_fit {
    TIDE_SKY_FIT_NONE,  ///< the static order alone
    TIDE_SKY_FIT_EDGES, ///< the one that begins and ends where the valley does, and whose top is level with the floors
                        ///< beside it
    TIDE_SKY_FIT_FILL,  ///< the one that fills the valley from end to end, or is level with a floor beside it
    TIDE_SKY_N_FITS
} tide_sky_fit;

enum { TIDE_SKY_KEY_LENGTH = 3 };

typedef struct tide_sky_probe {
    uint32_t capacity; ///< grains
    tide_sky_rule rule;
    tide_sky_fit fit;
    tide_sky_trait key[TIDE_SKY_KEY_LENGTH]; ///< static order of the items
    uint64_t seed;
    uint32_t
        max_capacity; ///< grains; above `capacity`: after many dead ends the capacity rises, up to this. 0: it does not
    uint32_t relax_after; ///< dead ends from one rise to the next
    uint64_t node_limit;
    uint64_t work_limit;     ///< items and sections looked at; 0: none
    uint32_t *dead_ends;     ///< in and out [part->n_sections]: dead ends at each section; NULL: not kept
    uint64_t deadline_ns;    ///< of tide_now_ns(); 0: none
    const atomic_bool *stop; ///< may be NULL
} tide_sky_probe;

typedef enum tide_sky_result {
    TIDE_SKY_FOUND,
    TIDE_SKY_EXHAUSTED, ///< there is no plan of this capacity
    TIDE_SKY_LIMIT,     ///< nodes or time ran out
    TIDE_SKY_NOMEM
} tide_sky_result;

/// Memory of one search at a time, kept between probes.
typedef struct tide_sky_tree tide_sky_tree;
tide_status tide__sky_tree_create(const tide_sky_part *part, tide_sky_tree **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__sky_tree_destroy(tide_sky_tree *tree);
/// Items and sections that the last run looked at: what it cost, the same on every machine.
uint64_t tide__sky_tree_work(const tide_sky_tree *tree);
/**
 * Search for a plan.
 *
 * @param offsets  out [part->n] in grains, with TIDE_SKY_FOUND
 * @param n_nodes  out, may be NULL
 * Depends on nothing but part and probe where neither deadline nor stop cuts it.
 */
tide_sky_result tide__sky_tree_run(tide_sky_tree *tree, const tide_sky_probe *probe, uint32_t *offsets,
                                   uint64_t *n_nodes);

#endif
