// SPDX-License-Identifier: MIT
//
// nearest word: what somebody meant who mistyped one of a few words. Private to analysis/.
#ifndef TIDE_ANALYSIS_NEAREST_WORD_H
#define TIDE_ANALYSIS_NEAREST_WORD_H

#include <stddef.h>

/// The word with the fewest edits from `text`, whatever the case; NULL when even that one is another word: farther than
/// half its length.
const char *tide__word_near(const char *text, const char *const *words, size_t n);

#endif
