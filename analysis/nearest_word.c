// SPDX-License-Identifier: MIT
//
// Levenshtein's distance, one row of the table at a time. See nearest_word.h.
#include "analysis/nearest_word.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { MAX_CHARS = 63 };

static size_t min3(size_t a, size_t b, size_t c) {
    const size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/// Single-character edits from `a` to `b`; SIZE_MAX for words too long to be a slip.
static size_t distance(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > MAX_CHARS || n_b > MAX_CHARS) return SIZE_MAX;
    size_t row[MAX_CHARS + 1];
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t above = row[j];
            const int differ = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (size_t)differ);
            diagonal = above;
        }
    }
    return row[n_b];
}

const char *tide__word_near(const char *text, const char *const *words, size_t n) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const size_t d = distance(text, words[i]);
        if (d >= best_distance) continue;
        best_distance = d;
        best = words[i];
    }
    return best != NULL && 2 * best_distance <= strlen(best) ? best : NULL;
}
