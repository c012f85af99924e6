// SPDX-License-Identifier: MIT
//
// The table of strategies and the search by name. The order is that of printed tables: naive first, as what the
// others are measured against; then pools; then offsets; then what run-time allocators would take;
// the search last.
#include "planner/strategies/strategies.h"

#include <string.h>

#include "core/base/nearest.h"
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

static const char *name_at(const void *ctx, size_t i) {
    (void)ctx;
    return table[i]->name;
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
    const char *nearest = tide_nearest_word(name, name_at, NULL, N_STRATEGIES);
    if (nearest != NULL) tide_error_hint(err, "did you mean '%s'?", nearest);
    return st;
}
