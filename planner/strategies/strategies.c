// SPDX-License-Identifier: MIT
//
// The table of strategies and the search by name. The order is that of printed tables: naive first, as what the
// others are measured against; then pools; then offsets; then what run-time allocators would take;
// the search last.
#include "planner/strategies/strategies.h"

#include <string.h>

#include "planner/search/strategy_search.h"

static const tide_strategy *const table[] = {
    &tide__strategy_naive,
    &tide__strategy_greedy_color,
    &tide__strategy_greedy_color_best,
    &tide__strategy_greedy_color_given,
    &tide__strategy_linear_scan,
    &tide__strategy_greedy_by_breadth,
    &tide__strategy_greedy_by_size,
    &tide__strategy_greedy_by_size_best,
    &tide__strategy_greedy_by_conflicts,
    &tide__strategy_boxed,
    &tide__strategy_sim_caching,
    &tide__strategy_sim_bfc,
    &tide__strategy_sim_arena,
    &tide__strategy_search,
};
enum { N_STRATEGIES = sizeof table / sizeof table[0] };

size_t tide_strategies(const tide_strategy *const **out) {
    *out = table;
    return N_STRATEGIES;
}

const tide_strategy *tide_strategy_default(void) { return &tide__strategy_search; }

enum { MAX_NAME = 63 };

static size_t min3(size_t a, size_t b, size_t c) {
    const size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/// Levenshtein's distance: single-character edits from `a` to `b`, one row of the table at a time. SIZE_MAX for names
/// too long to be a slip of anything here.
static size_t edit_distance(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > MAX_NAME || n_b > MAX_NAME) return SIZE_MAX;
    size_t row[MAX_NAME + 1];
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n_b];
}

static const char *nearest_name(const char *name) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < N_STRATEGIES; i++) {
        const size_t d = edit_distance(name, table[i]->name);
        if (d >= best_distance) continue;
        best_distance = d;
        best = table[i]->name;
    }
    // Farther than half its length a name is another word, not a slip.
    return best != NULL && 2 * best_distance <= strlen(best) ? best : NULL;
}

tide_status tide_strategy_find(const char *name, const tide_strategy **out, tide_error *err) {
    for (size_t i = 0; i < N_STRATEGIES; i++) {
        if (strcmp(name, table[i]->name) != 0) continue;
        *out = table[i];
        return TIDE_OK;
    }
    tide_text all = {0};
    for (size_t i = 0; i < N_STRATEGIES; i++) tide_text_addf(&all, "%s%s", i == 0 ? "" : ", ", table[i]->name);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no strategy '%s'", name);
    tide_error_note(err, "strategies are %s", tide_text_str(&all));
    tide_text_deinit(&all);
    const char *nearest = nearest_name(name);
    if (nearest != NULL) tide_error_hint(err, "did you mean '%s'?", nearest);
    return st;
}
