// SPDX-License-Identifier: MIT
//
// rank set: see rank_set.h.
#include "planner/rank_set.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { WORD_BITS = 64 };

tide_status tide__rank_set_init(tide_rank_set *s, size_t n) {
    *s = (tide_rank_set){0};
    size_t total = 0, words = n;
    do {
        if (s->n_levels == TIDE_RANK_SET_LEVELS) return TIDE_ERR_NOMEM;
        words = words / WORD_BITS + (words % WORD_BITS != 0);
        if (words == 0) words = 1;
        s->n_words[s->n_levels++] = words;
        total += words;
    } while (words > 1);
    s->words = tide_host_calloc(total, sizeof *s->words);
    if (s->words == NULL) return TIDE_ERR_NOMEM;
    uint64_t *at = s->words;
    for (size_t k = 0; k < s->n_levels; k++) {
        s->levels[k] = at;
        at += s->n_words[k];
    }
    return TIDE_OK;
}

void tide__rank_set_deinit(tide_rank_set *s) {
    tide_host_free(s->words);
    *s = (tide_rank_set){0};
}

static bool has(const tide_rank_set *s, size_t i) {
    return i / WORD_BITS < s->n_words[0] && (s->levels[0][i / WORD_BITS] >> i % WORD_BITS & 1) != 0;
}

void tide__rank_set_add(tide_rank_set *s, size_t i) {
    TIDE_ASSERT(i / WORD_BITS < s->n_words[0]);
    for (size_t k = 0; k < s->n_levels; k++) {
        s->levels[k][i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
        i /= WORD_BITS;
    }
}

void tide__rank_set_remove(tide_rank_set *s, size_t i) {
    TIDE_ASSERT(has(s, i));
    for (size_t k = 0; k < s->n_levels; k++) {
        s->levels[k][i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
        if (s->levels[k][i / WORD_BITS] != 0) return;
        i /= WORD_BITS;
    }
}

static size_t highest_bit(uint64_t w) { return WORD_BITS - 1 - (size_t)__builtin_clzll(w); }
static size_t lowest_bit(uint64_t w) { return (size_t)__builtin_ctzll(w); }

size_t tide__rank_set_below(const tide_rank_set *s, size_t i) {
    for (size_t k = 0; k < s->n_levels; k++) {
        const uint64_t word = s->levels[k][i / WORD_BITS] & ((UINT64_C(1) << i % WORD_BITS) - 1);
        i /= WORD_BITS;
        if (word == 0) continue;
        size_t found = i * WORD_BITS + highest_bit(word);
        while (k-- > 0) found = found * WORD_BITS + highest_bit(s->levels[k][found]);
        TIDE_ASSERT(has(s, found));
        return found;
    }
    return SIZE_MAX;
}

size_t tide__rank_set_above(const tide_rank_set *s, size_t i) {
    for (size_t k = 0; k < s->n_levels; k++) {
        // Two shifts: one by 64 would be undefined.
        const uint64_t word = s->levels[k][i / WORD_BITS] & (~UINT64_C(0) << i % WORD_BITS << 1);
        i /= WORD_BITS;
        if (word == 0) continue;
        size_t found = i * WORD_BITS + lowest_bit(word);
        while (k-- > 0) found = found * WORD_BITS + lowest_bit(s->levels[k][found]);
        TIDE_ASSERT(has(s, found));
        return found;
    }
    return SIZE_MAX;
}
