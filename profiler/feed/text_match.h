// SPDX-License-Identifier: MIT
//
// text match: a text by its address, and whether it still is what it was: a dozen instructions instead of a call.
// Included by profiler/feed/ only.
//
// A text begins somewhere in a block of 16 bytes at a multiple of 16. This block and the next one are kept as they
// were, with a bit for each byte that belongs to the text (its zero byte does, too):
//
//     memory    |....conv1.weight|\0..............|       mask  0000 1111 1111 1111 | 1000 0000 0000 0000
//
// Both are looked at without a branch between: which names have one block and which have two no processor can guess. A
// load at a multiple of 16 never crosses into another page, so what stands beside the text is read, never faults and
// does not count. The second block is left out when it begins a page: the text may be another one by now, and end
// before. What two blocks do not hold is compared with the copy block by block, each after the one before was the same.
// Other processors and builds that check each access compare with strcmp.
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

enum {
    TIDE__TEXT_SLACK = 16, ///< bytes that must be readable behind a copy
    TIDE__LEAST_PAGE = 4096,
};

/// A cache line, if it lies at one. All zero: of no text.
typedef struct tide__text_match {
    const char *key;  ///< address of the text
    const char *copy; ///< what it was
    uint32_t number;  ///< of what it names
    uint32_t mask;    ///< low half: bytes of the first block
    uint32_t second;  ///< where the second block lies, seen from the first: 16; 0: nowhere, no byte of it counts
    uint32_t n_rest;  ///< bytes of the text behind these blocks
    _Alignas(16) char blocks[32];
} tide__text_match;
_Static_assert(sizeof(tide__text_match) == 64, "four to a set, a line each");

/// `copy` stays where it is as long as the entry does.
static inline void tide__text_match_set(tide__text_match *m, const char *text, const char *copy, uint32_t number) {
    *m = (tide__text_match){.key = text, .copy = copy, .number = number};
#if TIDE__TEXT_BLOCKS
    const size_t n = strlen(copy) + 1, at = (uintptr_t)text & 15;
    const bool has_second = at + n > 16 && ((uintptr_t)text & (TIDE__LEAST_PAGE - 1)) < TIDE__LEAST_PAGE - 16;
    const size_t room = (has_second ? 32 : 16) - at, n_here = n < room ? n : room;
    m->mask = (uint32_t)(((UINT64_C(1) << n_here) - 1) << at);
    m->second = has_second ? 16 : 0;
    m->n_rest = (uint32_t)(n - n_here);
    memcpy(m->blocks + at, copy, n_here);
#endif
}

#if TIDE__TEXT_BLOCKS
static inline uint32_t tide__same_bytes(__m128i a, __m128i b) {
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
}
#endif

/// Whether `text`, which is m->key, begins as it did.
static inline bool tide__text_match_begins(const tide__text_match *m, const char *text) {
#if TIDE__TEXT_BLOCKS
    const char *now = (const char *)((uintptr_t)text & ~(uintptr_t)15);
    const __m128i *was = (const __m128i *)m->blocks;
    const uint32_t same = tide__same_bytes(_mm_load_si128((const __m128i *)now), _mm_load_si128(was)) |
                          tide__same_bytes(_mm_load_si128((const __m128i *)(now + m->second)), _mm_load_si128(was + 1))
                              << 16;
    return (~same & m->mask) == 0;
#else
    return strcmp(m->copy, text) == 0;
#endif
}

/// Whether a text that begins as it did also goes on so.
static inline bool tide__text_match_goes_on(const tide__text_match *m, const char *text) {
#if TIDE__TEXT_BLOCKS
    if (m->n_rest == 0) return true;
    const char *now = (const char *)((uintptr_t)text & ~(uintptr_t)15) + m->second + 16;
    const char *was = m->copy + (now - text);
    for (size_t left = m->n_rest;; left -= 16, now += 16, was += 16) {
        const uint32_t same =
            tide__same_bytes(_mm_load_si128((const __m128i *)now), _mm_loadu_si128((const __m128i *)was));
        if (left <= 16) return (~same << (16 - left) & 0xFFFF) == 0;
        if (same != 0xFFFF) return false;
    }
#else
    (void)m, (void)text;
    return true;
#endif
}

/// Whether `text`, not NULL, is the one that was set.
static inline bool tide__text_match_is(const tide__text_match *m, const char *text) {
    return m->key == text && tide__text_match_begins(m, text) && tide__text_match_goes_on(m, text);
}

#endif
