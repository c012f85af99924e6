// SPDX-License-Identifier: MIT
//
// "Did you mean": the word with the fewest letters inserted, left out, changed or swapped with their neighbour (optimal
// string alignment). See actions.h.
#include <ctype.h>
#include <string.h>

#include "tui/actions.h"

enum { MAX_LETTERS = 40 };

static int least(int a, int b) { return a < b ? a : b; }

static bool is_same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

/// Letters to change from `a` to `b`; MAX_LETTERS for long words.
static int distance(const char *a, const char *b) {
    const size_t n = strlen(a), m = strlen(b);
    if (n >= MAX_LETTERS || m >= MAX_LETTERS) return MAX_LETTERS;
    int row[3][MAX_LETTERS] = {{0}}; // the row before the last one, the last one, this one
    for (size_t k = 0; k <= m; k++) row[1][k] = (int)k;
    for (size_t i = 1; i <= n; i++) {
        row[2][0] = (int)i;
        for (size_t k = 1; k <= m; k++) {
            const int changed = row[1][k - 1] + !is_same(a[i - 1], b[k - 1]);
            row[2][k] = least(changed, least(row[1][k], row[2][k - 1]) + 1);
            const bool swapped = i > 1 && k > 1 && is_same(a[i - 1], b[k - 2]) && is_same(a[i - 2], b[k - 1]);
            if (swapped) row[2][k] = least(row[2][k], row[0][k - 2] + 1);
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[0]);
    }
    return row[1][m];
}

const char *tide_tui_nearest(const char *word, const char *const *words, size_t n) {
    const int len = (int)strlen(word);
    const char *nearest = NULL;
    int best = len / 3 + 1; // at most a third, and one of short words
    for (size_t i = 0; i < n; i++) {
        if (words[i] == NULL) continue;
        const int d = distance(word, words[i]);
        if (d > best || (d == best && nearest != NULL)) continue;
        if (d >= len) continue; // nothing of it would be left
        best = d;
        nearest = words[i];
    }
    return nearest;
}
