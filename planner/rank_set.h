// SPDX-License-Identifier: MIT
//
// rank set: a set of numbers below n that finds the member before and after any number, in O(log n). The verifier
// keeps the live tensors in one, numbered by offset. Private to the verifier.
//
// A pyramid of bit words: level 0 has one bit a number, level k + 1 one bit for each word of level k that is not 0.
//
//     level 1:  |1..........1|
//     level 0:  |..1.1......| 0 | … | 0 |.....1.|
#ifndef TIDE_PLANNER_RANK_SET_H
#define TIDE_PLANNER_RANK_SET_H

#include <stdint.h>

#include "core/base/status.h"

enum { TIDE_RANK_SET_LEVELS = 6 }; // 64^6 = 2^36 numbers

typedef struct tide_rank_set {
    uint64_t *levels[TIDE_RANK_SET_LEVELS]; ///< into `words`
    size_t n_words[TIDE_RANK_SET_LEVELS];
    size_t n_levels;
    uint64_t *words; ///< owned
} tide_rank_set;

/// Empty, for numbers below `n`. @return TIDE_ERR_NOMEM
tide_status tide__rank_set_init(tide_rank_set *s, size_t n) TIDE_NODISCARD;
void tide__rank_set_deinit(tide_rank_set *s);
void tide__rank_set_add(tide_rank_set *s, size_t i);
void tide__rank_set_remove(tide_rank_set *s, size_t i);
/// The largest member below `i` / the smallest above it; SIZE_MAX: none.
size_t tide__rank_set_below(const tide_rank_set *s, size_t i);
size_t tide__rank_set_above(const tide_rank_set *s, size_t i);

#endif
