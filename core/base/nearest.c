// SPDX-License-Identifier: MIT
//
// Three rows of the table of distances. See nearest.h.
#include "core/base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/assert.h"

enum { MAX_LETTERS = 63 };

static int least(int a, int b) { return a < b ? a : b; }

static bool is_same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

/// Of words of at most MAX_LETTERS.
static int distance(const char *a, size_t n, const char *b, size_t m) {
    TIDE_ASSERT(n <= MAX_LETTERS && m <= MAX_LETTERS);
    int row[3][MAX_LETTERS + 1] = {{0}}; // the row before the last one, the last one, this one
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

const char *tide_nearest_word(const char *word, tide_word_at at, const void *ctx, size_t n) {
    const size_t length = strlen(word);
    if (length > MAX_LETTERS) return NULL;
    const char *nearest = NULL;
    const int slips = length > 5 ? (int)length / 3 : 1;
    int best = least(slips, (int)length - 1);
    for (size_t i = 0; i < n; i++) {
        const char *other = at(ctx, i);
        const size_t m = other != NULL ? strlen(other) : 0;
        if (other == NULL || m > MAX_LETTERS) continue;
        if ((m > length ? m - length : length - m) > (size_t)(best > 0 ? best : 0)) continue; // at least so far
        const int d = distance(word, length, other, m);
        if (d > best) continue;
        best = d - 1; // only a nearer one takes its place
        nearest = other;
    }
    return nearest;
}

static const char *in_array(const void *ctx, size_t i) { return ((const char *const *)ctx)[i]; }

const char *tide_nearest_of(const char *word, const char *const *words, size_t n) {
    return tide_nearest_word(word, in_array, words, n);
}
