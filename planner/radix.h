// SPDX-License-Identifier: MIT
//
// radix: numbers with what they belong to, sorted in linear time: the verifier sorts steps and offsets of a million
// tensors several times. Private to the verifier.
#ifndef TIDE_PLANNER_RADIX_H
#define TIDE_PLANNER_RADIX_H

#include <stddef.h>
#include <stdint.h>

typedef struct tide_radix_key {
    uint64_t key;
    uint32_t id;
} tide_radix_key;

/// By key, ascending; equal keys keep their order. `room` is scratch [n]. Digits in which all keys agree cost nothing.
void tide__radix_sort(tide_radix_key *keys, tide_radix_key *room, size_t n);

#endif
