// SPDX-License-Identifier: MIT
//
// nearest: "did you mean": the known word that is nearest to a mistyped one.
#ifndef TIDE_CORE_BASE_NEAREST_H
#define TIDE_CORE_BASE_NEAREST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Word `i`, or NULL for one that is passed over.
typedef const char *(*tide_word_at)(const void *ctx, size_t i);

/**
 * The word with the fewest letters inserted, left out, changed or swapped with their neighbour, whatever the case; the
 * first of several. NULL when even that one is another word and no slip: more than a third of the letters differ (of
 * short words more than one), or all of them; words of more than 63 bytes are never meant.
 *
 * Optimal string alignment: Wagner and Fischer 1974 (doi 10.1145/321796.321811) and swaps. O(n * length^2).
 */
const char *tide_nearest_word(const char *word, tide_word_at at, const void *ctx, size_t n);
/// The same among `words` [n]; NULLs are passed over.
const char *tide_nearest_of(const char *word, const char *const *words, size_t n);

#ifdef __cplusplus
}
#endif
#endif
