// SPDX-License-Identifier: MIT
//
// climbs: see local_climbs.h.
#include "planner/search/local_climbs.h"

#include "core/base/host_alloc.h"
#include "planner/strategies/orders.h"

enum { FIRST_STEPS = 16 }; // of each climb; then twice as many, and so on

static const struct {
    tide_item_order order;
    tide_gap_rule rule;
} starts[TIDE_MAX_STARTS] = {
    {TIDE_ORDER_SPAN, TIDE_GAP_RULE_FIRST},      {TIDE_ORDER_SIZE, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_VOLUME, TIDE_GAP_RULE_FIRST},    {TIDE_ORDER_CONFLICTS, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_BIRTH, TIDE_GAP_RULE_BEST},      {TIDE_ORDER_DURATION, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_SIZE_LONG, TIDE_GAP_RULE_FIRST}, {TIDE_ORDER_AREA, TIDE_GAP_RULE_FIRST},
    {TIDE_ORDER_SIZE, TIDE_GAP_RULE_BEST},       {TIDE_ORDER_BREADTH, TIDE_GAP_RULE_BEST},
    {TIDE_ORDER_DEATH, TIDE_GAP_RULE_BEST},      {TIDE_ORDER_GIVEN, TIDE_GAP_RULE_BEST},
};

tide_status tide__climbs_init(tide_climbs *s, const tide_problem *problem, tide_local_budget *budget,
                              uint64_t target_bytes, uint64_t seed, tide_error *err) {
    *s = (tide_climbs){0};
    return tide__climber_init(&s->climber, problem, budget, target_bytes, seed, err);
}

void tide__climbs_deinit(tide_climbs *s) {
    for (size_t k = 0; k < s->n; k++) tide__climb_deinit(&s->list[k]);
    tide__climber_deinit(&s->climber);
    *s = (tide_climbs){0};
}

static bool is_better(const tide_climb *a, const tide_climb *b) {
    return a->excess != b->excess ? a->excess < b->excess : a->height < b->height;
}

/// Among the climbs if it is good enough; takes it either way.
static void enter(tide_climbs *s, tide_climb climb) {
    if (s->n == TIDE_MAX_CLIMBS) {
        if (!is_better(&climb, &s->list[s->n - 1])) {
            tide__climb_deinit(&climb);
            return;
        }
        tide__climb_deinit(&s->list[--s->n]);
    }
    size_t k = s->n++;
    for (; k > 0 && is_better(&climb, &s->list[k - 1]); k--) s->list[k] = s->list[k - 1];
    s->list[k] = climb;
    s->best = 0;
}

tide_status tide__climbs_start(tide_climbs *s, uint32_t *order, tide_gap_rule rule, tide_error *err) {
    tide_climb climb;
    bool complete;
    TIDE_TRY(tide__climb_init(&climb, &s->climber, order, rule, &complete, err));
    if (!complete) {
        tide__climb_deinit(&climb);
        return TIDE_OK;
    }
    if (s->found != NULL) s->found(s->self, &climb);
    enter(s, climb);
    return TIDE_OK;
}

tide_status tide__climbs_start_all(tide_climbs *s, size_t n_starts, tide_local_budget share, tide_error *err) {
    for (size_t k = 0; k < n_starts && k < TIDE_MAX_STARTS && !tide__climbs_are_done(s); k++) {
        share.n_nodes = s->climber.budget->n_nodes;
        if (k > 0 && tide__local_is_over(&share)) break;
        if (tide__local_is_over(s->climber.budget)) break;
        uint32_t *order;
        TIDE_TRY(tide__order_make(s->climber.problem, starts[k].order, &order, err));
        TIDE_TRY(tide__climbs_start(s, order, starts[k].rule, err));
    }
    return TIDE_OK;
}

void tide__climbs_run(tide_climbs *s, uint64_t max_nodes) {
    const uint64_t begin = s->climber.budget->n_nodes;
    for (uint64_t n_steps = FIRST_STEPS; s->n > 0; n_steps *= 2) {
        for (size_t k = 0; k < s->n; k++) {
            for (uint64_t i = 0; i < n_steps; i++) {
                if (tide__climbs_are_done(s) || tide__local_is_over(s->climber.budget)) return;
                if (s->climber.budget->n_nodes - begin >= max_nodes) return;
                if (!tide__climb_step(&s->list[k], &s->climber)) continue;
                if (s->found != NULL) s->found(s->self, &s->list[k]);
                if (is_better(&s->list[k], &s->list[s->best])) s->best = k;
            }
        }
    }
}
