// SPDX-License-Identifier: MIT
//
// text match: a short text by its address, and whether it still is what it was: two instructions instead of a call.
// Included by profiler/feed/ only.
//
// A text lies somewhere in one or two blocks of 16 bytes at multiples of 16, which are kept as they were, with a bit
// for each byte that belongs to the text (its zero byte does, too):
//
//     memory    |....conv1.weight|\0..............|       mask  0000 1111 1111 1111 | 1000 0000 0000 0000
//
// A load at a multiple of 16 never crosses into another page: what stands beside the text is read, never faults and
// does not count. Longer texts, other processors and builds that check each access compare with strcmp.
#ifndef TIDE_PROFILER_FEED_TEXT_MATCH_H
#define TIDE_PROFILER_FEED_TEXT_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TIDE__CHECKS_ACCESS 1
#endif
#endif
#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                            \
    !defined(TIDE__CHECKS_ACCESS)
#define TIDE__TEXT_BLOCKS 1
#include <emmintrin.h>
#else
#define TIDE__TEXT_BLOCKS 0
#endif

/// A cache line, if it lies at one. All zero: of no text.
typedef struct tide__text_match {
    const char *key;  ///< address of the text
    const char *copy; ///< what it was
    uint32_t number;  ///< of what it names
    uint32_t mask;    ///< low half: bytes of the first block; 0: compare with `copy`
    _Alignas(16) char blocks[32];
} tide__text_match;
_Static_assert(sizeof(tide__text_match) == 64, "four to a set, a line each");

/// `copy` stays where it is as long as the entry does.
static inline void tide__text_match_set(tide__text_match *m, const char *text, const char *copy, uint32_t number) {
    *m = (tide__text_match){.key = text, .copy = copy, .number = number};
#if TIDE__TEXT_BLOCKS
    const size_t n = strlen(copy) + 1, at = (uintptr_t)text & 15;
    if (n > sizeof m->blocks - at) return;
    m->mask = (uint32_t)(((UINT64_C(1) << n) - 1) << at);
    memcpy(m->blocks + at, copy, n);
#endif
}

/// Whether `text`, not NULL, is the one that was set.
static inline bool tide__text_match_is(const tide__text_match *m, const char *text) {
    if (m->key != text) return false;
#if TIDE__TEXT_BLOCKS
    if (__builtin_expect(m->mask != 0, 1)) {
        const __m128i *now = (const __m128i *)((uintptr_t)text & ~(uintptr_t)15);
        const __m128i *was = (const __m128i *)m->blocks;
        uint32_t same = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(now), _mm_load_si128(was)));
        if (m->mask >> 16 != 0)
            same |= (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(now + 1), _mm_load_si128(was + 1))) << 16;
        return (same & m->mask) == m->mask;
    }
#endif
    return strcmp(m->copy, text) == 0;
}

#endif
