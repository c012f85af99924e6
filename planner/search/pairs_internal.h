// SPDX-License-Identifier: MIT
//
// What pairs_list.c (who meets whom, and how they may lie) and pairs.c (the search) share; private to them.
#ifndef TIDE_PLANNER_SEARCH_PAIRS_INTERNAL_H
#define TIDE_PLANNER_SEARCH_PAIRS_INTERNAL_H

#include "planner/search/pairs.h"

/// One way in which two items may lie: offset of a - offset of b is in [lo, hi].
typedef struct tide_pair_way {
    int64_t lo, hi;
} tide_pair_way;

/// Two items that meet in time. Their ways are disjoint, in ascending order, from "a below b" to "a above b".
typedef struct tide_pair {
    uint32_t a, b;
    uint32_t first_way, n_ways;
} tide_pair;

struct tide_pairs {
    const tide_problem *problem;
    tide_pair *pairs; ///< [n_pairs]
    size_t n_pairs, cap_pairs;
    tide_pair_way *ways; ///< [n_ways]
    size_t n_ways, cap_ways;
    uint32_t *of_item;       ///< pairs of item i: of_item[first_of_item[i]] … up to first_of_item[i + 1]
    uint32_t *first_of_item; ///< [n + 1]
    uint32_t *peaks; ///< [n_peaks] ticks at whose end something dies: the crowd of any other is part of a later one's
    size_t n_peaks, cap_peaks;
    uint32_t *alive; ///< rectangles alive at peak k: alive[first_alive[k]] … up to first_alive[k + 1]
    size_t n_alive, cap_alive;
    uint32_t *first_alive; ///< [n_peaks + 1]
    uint32_t *item_of;     ///< [n_rects]
};

#define TIDE_PAIR_FAR (INT64_MAX / 4) ///< stands for "any distance": no sum of two leaves 64 bits

#endif
