// SPDX-License-Identifier: MIT
//
// climb: see local_climb.h. The moves are those of Arm Vela's and TVM's hill climbers (positions of what makes the peak
// and of what lies below it), with the excess instead of the height as the measure.
#include "planner/search/local_climb.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/cancel.h"
#include "planner/strategies/orders.h"

enum { MAX_MOVES = 3 }; // in one step

bool tide__local_is_over(const tide_local_budget *b) {
    if (b->node_limit != 0 && b->n_nodes >= b->node_limit) return true;
    if (b->stop != NULL && atomic_load_explicit(b->stop, memory_order_relaxed)) return true;
    return tide__is_late(b->deadline_ns);
}

static void climber_deinit(tide_climber *c) {
    tide__placer_destroy(c->placer);
    tide_host_free(c->order);
    tide_host_free(c->position);
    tide_host_free(c->offsets);
    tide_host_free(c->list);
    *c = (tide_climber){0};
}

static tide_status climber_init(tide_climber *c, const tide_problem *problem, tide_local_budget *budget,
                                uint64_t target_bytes, uint64_t seed, tide_error *err) {
    const size_t n = problem->n;
    *c = (tide_climber){.problem = problem, .budget = budget, .target_bytes = target_bytes, .rng = {seed}};
    TIDE_TRY(tide__placer_create(problem, &c->placer, err));
    c->order = tide_host_calloc(n, sizeof *c->order);
    c->position = tide_host_calloc(n, sizeof *c->position);
    c->offsets = tide_host_calloc(n, sizeof *c->offsets);
    c->list = tide_host_calloc(n, sizeof *c->list);
    if (c->order != NULL && c->position != NULL && c->offsets != NULL && c->list != NULL) return TIDE_OK;
    climber_deinit(c);
    return TIDE_NO_MEMORY(err, "to search around %zu tensors", n);
}

static void climb_deinit(tide_climb *climb) {
    tide_host_free(climb->order);
    tide_host_free(climb->offsets);
    *climb = (tide_climb){0};
}

static tide_status climb_init(tide_climb *climb, tide_climber *c, uint32_t *order, tide_gap_rule rule, bool *complete,
                              tide_error *err) {
    const size_t n = c->problem->n;
    *climb = (tide_climb){.order = order, .rule = rule, .offsets = tide_host_calloc(n, sizeof *climb->offsets)};
    if (climb->offsets == NULL) {
        climb_deinit(climb);
        return TIDE_NO_MEMORY(err, "to search around %zu tensors", n);
    }
    const tide_placer_limits limits = {.limit_bytes = UINT64_MAX,
                                       .target_bytes = c->target_bytes,
                                       .max_excess = UINT64_MAX,
                                       .deadline_ns = c->budget->deadline_ns,
                                       .stop = c->budget->stop};
    climb->height =
        tide__placer_run_within(c->placer, order, rule, &limits, climb->offsets, &climb->excess, &c->budget->n_nodes);
    *complete = climb->height != UINT64_MAX;
    if (!tide__placer_failed(c->placer)) return TIDE_OK;
    climb_deinit(climb);
    return TIDE_NO_MEMORY(err, "to place %zu tensors", n);
}

// ---- moves ----

static bool is_free(const tide_item *item) { return item->fixed_offset == TIDE_NO_OFFSET; }

/// One of c->list's first `n`; UINT32_MAX: there are none.
static uint32_t draw(tide_climber *c, size_t n) { return n == 0 ? UINT32_MAX : c->list[tide_rng_below(&c->rng, n)]; }

/// An item that ends above the target.
static uint32_t draw_high(tide_climber *c, const tide_climb *climb) {
    const tide_problem *p = c->problem;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (climb->offsets[i] + p->items[i].size_bytes > c->target_bytes && is_free(&p->items[i]))
            c->list[n++] = (uint32_t)i;
    }
    return draw(c, n);
}

/// An item that is placed before `i` and is alive together with it; with `below`, also lies below it.
static uint32_t draw_earlier(tide_climber *c, const tide_climb *climb, uint32_t i, bool below) {
    const tide_problem *p = c->problem;
    const uint32_t begin = p->items[i].begin, end = p->items[i].end, at = c->position[i];
    const uint64_t top = below ? climb->offsets[i] : UINT64_MAX;
    size_t n = 0;
    for (size_t k = 0; k < p->n; k++) {
        const tide_item *other = &p->items[k];
        if (other->begin < end && begin < other->end && c->position[k] < at && climb->offsets[k] < top &&
            is_free(other))
            c->list[n++] = (uint32_t)k;
    }
    return draw(c, n);
}

/// Item `i` goes to position `to`, before its own.
static void move_up(tide_climber *c, uint32_t i, uint32_t to) {
    const uint32_t from = c->position[i];
    memmove(c->order + to + 1, c->order + to, (from - to) * sizeof *c->order);
    c->order[to] = i;
    for (uint32_t k = to; k <= from; k++) c->position[c->order[k]] = k;
}

/// Change the order on trial. @return the first position that changed; problem->n: none
static size_t move_some(tide_climber *c, const tide_climb *climb) {
    size_t first = c->problem->n;
    for (uint64_t n = 1 + tide_rng_below(&c->rng, MAX_MOVES); n > 0; n--) {
        uint32_t i = draw_high(c, climb);
        if (i != UINT32_MAX && tide_rng_below(&c->rng, 2) == 0) {
            const uint32_t blocker = draw_earlier(c, climb, i, true);
            if (blocker != UINT32_MAX) i = blocker;
        }
        const uint32_t before = i == UINT32_MAX ? UINT32_MAX : draw_earlier(c, climb, i, false);
        if (before == UINT32_MAX) continue;
        const uint32_t to = c->position[before];
        move_up(c, i, to);
        if (to < first) first = to;
    }
    return first;
}

static bool climb_step(tide_climb *climb, tide_climber *c) {
    const size_t n = c->problem->n;
    memcpy(c->order, climb->order, n * sizeof *c->order);
    for (size_t k = 0; k < n; k++) c->position[c->order[k]] = (uint32_t)k;
    const size_t first = move_some(c, climb);
    if (first == n) {
        c->budget->n_nodes++; // so that a limit on nodes ends a search that finds no move
        return false;
    }
    memcpy(c->offsets, climb->offsets, n * sizeof *c->offsets);
    const tide_placer_limits limits = {.limit_bytes = climb->height,
                                       .target_bytes = c->target_bytes,
                                       .max_excess = climb->excess,
                                       .deadline_ns = c->budget->deadline_ns,
                                       .stop = c->budget->stop,
                                       .n_known = first};
    uint64_t excess;
    const uint64_t height =
        tide__placer_run_within(c->placer, c->order, climb->rule, &limits, c->offsets, &excess, &c->budget->n_nodes);
    if (height == UINT64_MAX) return false;
    TIDE_ASSERT(excess <= climb->excess && height <= climb->height);
    uint32_t *order = climb->order;
    uint64_t *offsets = climb->offsets;
    climb->order = c->order;
    climb->offsets = c->offsets;
    climb->height = height;
    climb->excess = excess;
    c->order = order;
    c->offsets = offsets;
    return true;
}

// ---- several climbs over one problem ----

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
    return climber_init(&s->climber, problem, budget, target_bytes, seed, err);
}

void tide__climbs_deinit(tide_climbs *s) {
    for (size_t k = 0; k < s->n; k++) climb_deinit(&s->list[k]);
    climber_deinit(&s->climber);
    *s = (tide_climbs){0};
}

static bool is_better(const tide_climb *a, const tide_climb *b) {
    return a->excess != b->excess ? a->excess < b->excess : a->height < b->height;
}

/// Add it to the climbs if it is good enough; takes ownership either way.
static void enter(tide_climbs *s, tide_climb climb) {
    if (s->n == TIDE_MAX_CLIMBS) {
        if (!is_better(&climb, &s->list[s->n - 1])) {
            climb_deinit(&climb);
            return;
        }
        climb_deinit(&s->list[--s->n]);
    }
    size_t k = s->n++;
    for (; k > 0 && is_better(&climb, &s->list[k - 1]); k--) s->list[k] = s->list[k - 1];
    s->list[k] = climb;
    s->best = 0;
}

tide_status tide__climbs_start(tide_climbs *s, uint32_t *order, tide_gap_rule rule, tide_error *err) {
    tide_climb climb;
    bool complete = false;
    TIDE_TRY(climb_init(&climb, &s->climber, order, rule, &complete, err));
    if (!complete) {
        climb_deinit(&climb);
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
                if (!climb_step(&s->list[k], &s->climber)) continue;
                if (s->found != NULL) s->found(s->self, &s->list[k]);
                if (is_better(&s->list[k], &s->list[s->best])) s->best = k;
            }
        }
    }
}
