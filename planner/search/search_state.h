// SPDX-License-Identifier: MIT
//
// search state: what the strategy `search` works on, its limits and the best plan so far. Private to planner/search.
#ifndef TIDE_PLANNER_SEARCH_SEARCH_STATE_H
#define TIDE_PLANNER_SEARCH_SEARCH_STATE_H

#include "planner/planner.h"
#include "planner/search/skyline.h"

enum {
    SEARCH_SLOTS = 8,         ///< probes that run as one batch
    SEARCH_SLOW_ITEMS = 4000, ///< beyond, one descent of the skyline takes a good part of a second
};

/// Items that share no tick with any other: the plan is as high as the highest part.
typedef struct search_part {
    uint32_t *items; ///< [n] ascending; borrowed from tide_search.by_part
    uint32_t n;
    uint64_t bytes;       ///< height of the best places so far
    uint64_t bound_bytes; ///< its own: largest live sum
    uint64_t proved_bytes;
    tide_sky_part *sky;  ///< owned, made on first use; NULL
    uint32_t *dead_ends; ///< [SEARCH_SLOTS x sections] owned: dead ends that each slot's probes met
    uint32_t *offsets;   ///< [SEARCH_SLOTS x n] owned
    uint32_t n_batches;  ///< how far the sequence of probes has come
    bool has_exhausted;  ///< some tree was searched to its end
    uint64_t lowest;     ///< grains that no tree has ruled out
    bool is_closed;      ///< the skyline can do no more for it
} search_part;

typedef struct tide_search {
    const tide_problem *problem;
    uint64_t seed, capacity_bytes;
    uint64_t deadline_ns;         ///< of tide_now_ns(); 0: none
    uint64_t n_nodes, node_limit; ///< UINT64_MAX: none
    uint64_t n_work, work_limit;  ///< what the nodes cost, in steps; UINT64_MAX: none
    uint32_t n_threads;
    tide_placement *best;
    uint32_t *by_part;  ///< [problem->n] items by part
    uint32_t *part_of;  ///< [problem->n]
    search_part *parts; ///< [n_parts]
    size_t n_parts;
    uint64_t *trial; ///< [problem->n] offsets of one try
} tide_search;

/// What a node costs, in steps of work: a step is about a nanosecond of one thread on the machine on which these were
/// measured. Every machine counts the same, so what a default run does depends on no clock.
enum {
    SEARCH_WORK_PER_VISIT = 6,   ///< an item or section that a node of the skyline visits
    SEARCH_WORK_PER_CLIQUE = 15, ///< an item alive at a tick, for a decision of pairs
    SEARCH_WORK_PER_PLACE = 90,  ///< an item placed, for each doubling of the problem beyond 32
};

/// What placing one item of a problem of `n` costs.
uint64_t tide__search_work_of_placing(size_t n);
/// Nodes of `work` each that may still be spent.
uint64_t tide__search_nodes_left(const tide_search *s, uint64_t work);
void tide__search_spend(tide_search *s, uint64_t n_nodes, uint64_t work_each);

/// No node, no work and no time is left.
bool tide__search_is_over(const tide_search *s);
/// The best plan is as good as asked, or it is proved that none is.
bool tide__search_is_done(const tide_search *s);
/// Set bytes and proved_bytes of the plan from its parts.
void tide__search_measure(tide_search *s);

/// Cut the problem at the ticks that no item crosses. @return TIDE_ERR_NOMEM
tide_status tide__search_make_parts(tide_search *s, tide_error *err) TIDE_NODISCARD;
void tide__search_free_parts(tide_search *s);

/// Skyline probes (probes.c) over all parts until done or over, or until no part is left that it can take.
tide_status tide__search_probe(tide_search *s, tide_error *err) TIDE_NODISCARD;

#endif
