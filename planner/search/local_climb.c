// SPDX-License-Identifier: MIT
//
// climb: see local_climb.h. The moves are those of Arm Vela's and TVM's hill climbers (turns of what makes the peak and
// of what lies below it), with the excess instead of the height as the measure.
#include "planner/search/local_climb.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/host_alloc.h"

enum { MAX_MOVES = 3 }; // in one step

bool tide__local_is_over(const tide_local_budget *b) {
    if (b->node_limit != 0 && b->n_nodes >= b->node_limit) return true;
    if (b->stop != NULL && atomic_load_explicit(b->stop, memory_order_relaxed)) return true;
    return b->deadline_ns != 0 && tide_now_ns() >= b->deadline_ns;
}

tide_status tide__climber_init(tide_climber *c, const tide_problem *problem, tide_local_budget *budget,
                               uint64_t target_bytes, uint64_t seed, tide_error *err) {
    const size_t n = problem->n;
    *c = (tide_climber){.problem = problem, .budget = budget, .target_bytes = target_bytes, .rng = {seed}};
    TIDE_TRY(tide__placer_create(problem, &c->placer, err));
    c->order = tide_host_calloc(n, sizeof *c->order);
    c->turns = tide_host_calloc(n, sizeof *c->turns);
    c->offsets = tide_host_calloc(n, sizeof *c->offsets);
    c->list = tide_host_calloc(n, sizeof *c->list);
    if (c->order != NULL && c->turns != NULL && c->offsets != NULL && c->list != NULL) return TIDE_OK;
    tide__climber_deinit(c);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to search around %zu tensors", n);
}

void tide__climber_deinit(tide_climber *c) {
    tide__placer_destroy(c->placer);
    tide_host_free(c->order);
    tide_host_free(c->turns);
    tide_host_free(c->offsets);
    tide_host_free(c->list);
    *c = (tide_climber){0};
}

tide_status tide__climb_init(tide_climb *climb, tide_climber *c, uint32_t *order, tide_gap_rule rule, bool *complete,
                             tide_error *err) {
    const size_t n = c->problem->n;
    *climb = (tide_climb){.order = order, .rule = rule, .offsets = tide_host_calloc(n, sizeof *climb->offsets)};
    if (climb->offsets == NULL) {
        tide__climb_deinit(climb);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to search around %zu tensors", n);
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
    tide__climb_deinit(climb);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to place %zu tensors", n);
}

void tide__climb_deinit(tide_climb *climb) {
    tide_host_free(climb->order);
    tide_host_free(climb->offsets);
    *climb = (tide_climb){0};
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

/// An item that has its turn before `i` and is alive together with it; with `below`, one that lies below it, too.
static uint32_t draw_earlier(tide_climber *c, const tide_climb *climb, uint32_t i, bool below) {
    const tide_problem *p = c->problem;
    const uint32_t begin = p->items[i].begin, end = p->items[i].end, turn = c->turns[i];
    const uint64_t top = below ? climb->offsets[i] : UINT64_MAX;
    size_t n = 0;
    for (size_t k = 0; k < p->n; k++) {
        const tide_item *other = &p->items[k];
        if (other->begin < end && begin < other->end && c->turns[k] < turn && climb->offsets[k] < top && is_free(other))
            c->list[n++] = (uint32_t)k;
    }
    return draw(c, n);
}

/// Item `i` goes to position `to`, before its own.
static void move_up(tide_climber *c, uint32_t i, uint32_t to) {
    const uint32_t from = c->turns[i];
    memmove(c->order + to + 1, c->order + to, (from - to) * sizeof *c->order);
    c->order[to] = i;
    for (uint32_t k = to; k <= from; k++) c->turns[c->order[k]] = k;
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
        const uint32_t to = c->turns[before];
        move_up(c, i, to);
        if (to < first) first = to;
    }
    return first;
}

bool tide__climb_step(tide_climb *climb, tide_climber *c) {
    const size_t n = c->problem->n;
    memcpy(c->order, climb->order, n * sizeof *c->order);
    for (size_t k = 0; k < n; k++) c->turns[c->order[k]] = (uint32_t)k;
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
