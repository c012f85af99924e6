// SPDX-License-Identifier: MIT
//
// radix: least significant digit first, 11 bits at a time (Knuth, The Art of Computer Programming 3, 5.2.5); few keys
// by insertion, since clearing 2048 counters would cost more. See radix.h.
#include "planner/radix.h"

#include <string.h>

#include "core/base/assert.h"

enum { DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS, FEW = 48 };

static void sort_few(tide_radix_key *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const tide_radix_key k = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1].key > k.key; at--) keys[at] = keys[at - 1];
        keys[at] = k;
    }
}

static size_t digit_of(uint64_t key, unsigned shift) { return (size_t)(key >> shift) & (N_DIGITS - 1); }

static void deal(const tide_radix_key *from, tide_radix_key *to, size_t n, unsigned shift) {
    size_t at[N_DIGITS] = {0};
    for (size_t i = 0; i < n; i++) at[digit_of(from[i].key, shift)]++;
    size_t sum = 0;
    for (size_t d = 0; d < N_DIGITS; d++) {
        const size_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    TIDE_ASSERT(sum == n);
    for (size_t i = 0; i < n; i++) to[at[digit_of(from[i].key, shift)]++] = from[i];
}

static bool is_sorted(const tide_radix_key *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (keys[i - 1].key > keys[i].key) return false;
    }
    return true;
}

void tide__radix_sort(tide_radix_key *keys, tide_radix_key *room, size_t n) {
    if (n <= FEW) {
        sort_few(keys, n);
        return;
    }
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) differ |= keys[i].key ^ keys[0].key;
    tide_radix_key *from = keys, *to = room;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (digit_of(differ, shift) == 0) continue;
        deal(from, to, n, shift);
        tide_radix_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
    TIDE_ASSERT_SLOW(is_sorted(keys, n));
}
