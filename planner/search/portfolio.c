// SPDX-License-Identifier: MIT
//
// portfolio: two dozen greedy plans. Real inference graphs end here: some order meets the bound in next to no time.
// See search_internal.h.
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/search/search_internal.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"

/// Those that have turned out best come first: for large problems only the first few run.
static const struct {
    tide_item_order order;
    tide_gap_rule rule;
} TRIES[] = {
    {TIDE_ORDER_SIZE_LONG, TIDE_GAP_RULE_FIRST}, {TIDE_ORDER_CONFLICTS, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_SIZE, TIDE_GAP_RULE_BEST},       {TIDE_ORDER_BIRTH, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_AREA, TIDE_GAP_RULE_FIRST},      {TIDE_ORDER_DURATION, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_BREADTH, TIDE_GAP_RULE_FIRST},   {TIDE_ORDER_DEATH, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_CONFLICTS, TIDE_GAP_RULE_FIRST}, {TIDE_ORDER_SIZE, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_SIZE_LONG, TIDE_GAP_RULE_BEST},  {TIDE_ORDER_BIRTH, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_GIVEN, TIDE_GAP_RULE_BEST},      {TIDE_ORDER_DEATH, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_AREA, TIDE_GAP_RULE_BEST},       {TIDE_ORDER_DURATION, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_BREADTH, TIDE_GAP_RULE_BEST},    {TIDE_ORDER_ALIGN, TIDE_GAP_RULE_FIRST},
};
enum { N_TRIES = sizeof TRIES / sizeof *TRIES };

/// Each part keeps the better of what it has and what the trial gives it.
static void keep_better(tide_search *s) {
    const tide_problem *p = s->problem;
    for (size_t k = 0; k < s->n_parts; k++) {
        search_part *part = &s->parts[k];
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < part->n; i++) {
            const uint64_t end = s->trial[part->items[i]] + p->items[part->items[i]].size_bytes;
            if (end > bytes) bytes = end;
        }
        if (bytes >= part->bytes) continue;
        part->bytes = bytes;
        for (uint32_t i = 0; i < part->n; i++) s->best->offsets[part->items[i]] = s->trial[part->items[i]];
    }
    tide__search_measure(s);
}

/// Also where it is known that nothing meets the capacity, the plan is to be a good one.
static bool is_good(const tide_search *s) {
    return s->best->bytes <= s->best->proved_bytes || s->best->bytes <= s->capacity_bytes;
}

/// Whether the next order, which takes about as long as the longest before, would end within the limits.
static bool has_room_for(const tide_search *s, uint64_t longest_ns, uint64_t work) {
    if (s->work_limit != UINT64_MAX && tide__search_nodes_left(s, work) < s->problem->n) return false;
    return s->deadline_ns == 0 || tide_now_ns() + longest_ns < s->deadline_ns;
}

tide_status tide__search_portfolio(tide_search *s, tide_error *err) {
    tide_placer *placer;
    TIDE_TRY(tide__placer_create(s->problem, &placer, err));
    tide_status st = TIDE_OK;
    uint64_t longest_ns = 0;
    const uint64_t work = tide__search_work_of_placing(s->problem->n);
    for (size_t k = 0; st == TIDE_OK && k < N_TRIES; k++) {
        if (k > 0 && (is_good(s) || tide__search_is_over(s) || !has_room_for(s, longest_ns, work))) break;
        const uint64_t begin_ns = tide_now_ns();
        uint32_t *order;
        st = tide__order_make(s->problem, TRIES[k].order, &order, err);
        if (st != TIDE_OK) break;
        // One part alone can stop early; of several, some may be better than before though the highest is not.
        const uint64_t limit = s->n_parts > 1 || k == 0 ? UINT64_MAX : s->best->bytes - 1;
        const uint64_t got = tide__placer_run(placer, order, TRIES[k].rule, limit, s->trial);
        tide_host_free(order);
        if (got != UINT64_MAX) keep_better(s);
        tide__search_spend(s, s->problem->n, work);
        const uint64_t took_ns = tide_now_ns() - begin_ns;
        if (took_ns > longest_ns) longest_ns = took_ns;
    }
    tide__placer_destroy(placer);
    return st;
}
