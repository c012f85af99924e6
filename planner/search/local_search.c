// SPDX-License-Identifier: MIT
//
// local search: see local_search.h.
//
//     problem ---------------------> known orders, then climbs around the peak       few items
//        \-> boxes of small items -> known orders, then climbs or neighbourhoods     many: a coarser problem first,
//              \-> neighbourhoods over the items themselves                          what it leaves open afterwards
#include "planner/search/local_search.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/search/local_climb.h"
#include "planner/search/neighbourhood.h"
#include "planner/strategies/boxes.h"

enum {
    FEW_ITEMS = 25000,   // are placed anew as a whole in each step
    QUICK_ITEMS = 50000, // are placed fast enough for a try without boxes first
    QUICK_STARTS = 2,
    BOXED_PERCENT = 70, // boxes are worth it when no more items than that are left
    START_PERCENT = 30, // of what may be spent goes to the known orders at most
};

typedef struct local_search {
    const tide_problem *problem;
    const tide_local_search_options *opt;
    tide_placement *best;
    tide_local_budget budget;
    const tide_boxes *boxes; // NULL: places are the items' own
    uint64_t *unpacked;      // [problem->n] scratch, with boxes
} local_search;

static bool is_done(const local_search *s) { return s->best->bytes <= s->opt->target_bytes; }

/// A plan of the problem or of its boxes.
static void keep_if_better(local_search *s, const uint64_t *offsets) {
    const size_t n = s->problem->n;
    const uint64_t *plain = offsets;
    uint64_t height = 0;
    if (s->boxes != NULL) {
        height = tide__boxes_unpack(s->boxes, s->problem, offsets, s->unpacked);
        plain = s->unpacked;
    } else {
        for (size_t i = 0; i < n; i++) {
            const uint64_t end = offsets[i] + s->problem->items[i].size_bytes;
            if (end > height) height = end;
        }
    }
    if (height >= s->best->bytes) return;
    memcpy(s->best->offsets, plain, n * sizeof *plain);
    s->best->bytes = height;
}

static void keep_plan(void *self, const uint64_t *offsets) { keep_if_better(self, offsets); }

static void keep_climb(void *self, const tide_climb *climb) {
    local_search *s = self;
    if (climb->height < s->best->bytes) keep_if_better(s, climb->offsets);
}

/// What the known orders may spend.
static tide_local_budget share_of(const tide_local_budget *all) {
    tide_local_budget share = *all;
    const uint64_t now = tide_now_ns();
    if (all->deadline_ns > now) share.deadline_ns = now + (all->deadline_ns - now) / 100 * START_PERCENT;
    if (all->node_limit != 0)
        share.node_limit = all->n_nodes + (all->node_limit - all->n_nodes) / 100 * START_PERCENT + 1;
    return share;
}

/// Known orders and climbs on `p`, which is the problem or its boxes; neighbourhoods where it is large.
static tide_status search_on(local_search *s, const tide_problem *p, uint64_t target_bytes, uint64_t seed,
                             tide_error *err) {
    tide_climbs climbs;
    TIDE_TRY(tide__climbs_init(&climbs, p, &s->budget, target_bytes, seed, err));
    climbs.found = keep_climb;
    climbs.self = s;
    tide_status st = tide__climbs_start_all(&climbs, TIDE_MAX_STARTS, share_of(&s->budget), err);
    if (st == TIDE_OK && p->n <= FEW_ITEMS) {
        tide__climbs_run(&climbs, UINT64_MAX);
    } else if (st == TIDE_OK && climbs.n > 0) {
        st = tide__improve_by_neighbourhoods(p, &s->budget, target_bytes, seed, climbs.list[climbs.best].offsets,
                                             keep_plan, s, err);
    }
    tide__climbs_deinit(&climbs);
    return st;
}

static tide_status search_boxes(local_search *s, const tide_boxes *boxes, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&s->unpacked, s->problem->n, err, "for %zu tensors", s->problem->n));
    s->boxes = boxes;
    const uint64_t target = boxes->load_bytes > s->opt->target_bytes ? boxes->load_bytes : s->opt->target_bytes;
    const tide_status st = search_on(s, &boxes->problem, target, s->opt->seed, err);
    s->boxes = NULL;
    tide_host_free(s->unpacked);
    return st;
}

/// Over the items themselves, from the best plan there is.
static tide_status search_neighbourhoods(local_search *s, tide_error *err) {
    uint64_t *offsets;
    TIDE_TRY(TIDE_NEW(&offsets, s->problem->n, err, "for %zu tensors", s->problem->n));
    memcpy(offsets, s->best->offsets, s->problem->n * sizeof *offsets);
    const tide_status st = tide__improve_by_neighbourhoods(s->problem, &s->budget, s->opt->target_bytes, s->opt->seed,
                                                           offsets, keep_plan, s, err);
    tide_host_free(offsets);
    return st;
}

static tide_status try_without_boxes(local_search *s, tide_error *err) {
    tide_climbs climbs;
    TIDE_TRY(tide__climbs_init(&climbs, s->problem, &s->budget, s->opt->target_bytes, s->opt->seed, err));
    climbs.found = keep_climb;
    climbs.self = s;
    const tide_status st = tide__climbs_start_all(&climbs, QUICK_STARTS, share_of(&s->budget), err);
    tide__climbs_deinit(&climbs);
    return st;
}

static tide_status search(local_search *s, tide_error *err) {
    const tide_problem *p = s->problem;
    tide_boxes boxes;
    if (p->n <= QUICK_ITEMS) TIDE_TRY(try_without_boxes(s, err));
    if (is_done(s)) return TIDE_OK;
    TIDE_TRY(tide__boxes_make(p, p->lower_bound_bytes >> TIDE_BOX_SHIFT, &boxes, err));
    const bool worth_it = boxes.problem.n <= p->n / 100 * BOXED_PERCENT;
    tide_status st = TIDE_OK;
    if (worth_it) st = search_boxes(s, &boxes, err);
    tide__boxes_deinit(&boxes);
    if (st != TIDE_OK || is_done(s) || tide__local_is_over(&s->budget)) return st;
    return worth_it ? search_neighbourhoods(s, err) : search_on(s, p, s->opt->target_bytes, s->opt->seed, err);
}

tide_status tide__local_search(const tide_problem *problem, const tide_local_search_options *opt, tide_placement *best,
                               uint64_t *n_nodes, tide_error *err) {
    local_search s = {.problem = problem,
                      .opt = opt,
                      .best = best,
                      .budget = {.deadline_ns = opt->deadline_ns, .node_limit = opt->node_limit, .stop = opt->stop}};
    const uint64_t before = best->bytes;
    const tide_status st = problem->n == 0 || is_done(&s) ? TIDE_OK : search(&s, err);
    TIDE_ASSERT(best->bytes <= before);
    (void)before;
    if (n_nodes != NULL) *n_nodes = s.budget.n_nodes;
    return st;
}
