// SPDX-License-Identifier: MIT
//
// search: the best plan that a budget finds, with a certificate: what no plan can go below.
//
//     bounds -> greedy portfolio -> parts in time -> skyline probes at the bound, then between it and the best plan
//
// It stops where the plan meets the bound. See skyline.h for the tree and its sources. Work is counted in steps that
// are the same on every machine, and only a time limit brings in the clock: without one the plan depends on nothing but
// problem, seed and limit.
#include "planner/search/strategy_search.h"

#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/search/local_search.h"
#include "planner/search/pairs.h"
#include "planner/search/search_state.h"
#include "planner/strategies/greedy.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"

// ---- portfolio: greedy orders, one after the other; real inference graphs end here ----

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

/// Also where it is known that no plan meets the capacity, the plan is to be a good one.
static bool is_good(const tide_search *s) {
    return s->best->bytes <= s->best->proved_bytes || s->best->bytes <= s->capacity_bytes;
}

/// Whether the next order, which takes about as long as the longest before, would end within the limits.
static bool has_room_for(const tide_search *s, uint64_t longest_ns, uint64_t work) {
    if (s->work_limit != UINT64_MAX && tide__search_nodes_left(s, work) < s->problem->n) return false;
    return s->deadline_ns == 0 || tide_now_ns() + longest_ns < s->deadline_ns;
}

/// Each part keeps the best it has seen. The first order always runs to its end.
static tide_status run_portfolio(tide_search *s, tide_error *err) {
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
        if (tide__placer_failed(placer)) st = TIDE_NO_MEMORY(err, "to place %zu tensors", s->problem->n);
        if (got != UINT64_MAX) keep_better(s);
        tide__search_spend(s, s->problem->n, work);
        const uint64_t took_ns = tide_now_ns() - begin_ns;
        if (took_ns > longest_ns) longest_ns = took_ns;
    }
    tide__placer_destroy(placer);
    return st;
}

// ---- the strategy ----

/// Whether less than a 20th of the area below the bound is empty: then greedy orders and local search end far above it.
static bool is_tight(const tide_problem *p) {
    const double TIGHT = 0.95;
    double area = 0;
    for (size_t i = 0; i < p->n; i++)
        area += (double)p->items[i].size_bytes * (double)(p->items[i].end - p->items[i].begin);
    return area >= TIGHT * (double)p->lower_bound_bytes * (double)p->n_ticks;
}

/// About a second of one thread, and for large problems as much again as the first greedy order takes, or as one
/// descent of the skyline. Of very large problems a descent takes longer than all else: only those get it that need it.
static uint64_t default_work(const tide_problem *p) {
    enum { SECOND = 1000000000, PER_ITEM = 6500, PER_PAIR = 12, ALWAYS_ITEMS = 8192 };
    const uint64_t n = p->n;
    const bool has_skyline = n <= ALWAYS_ITEMS || (n <= TIDE_SKY_MAX_ITEMS && is_tight(p));
    return SECOND + n * PER_ITEM + (has_skyline ? n * n * PER_PAIR : 0);
}

/// The height of each part in the best plan, after another search has improved it.
static void split_best(tide_search *s) {
    for (size_t k = 0; k < s->n_parts; k++) {
        search_part *part = &s->parts[k];
        part->bytes = 0;
        for (uint32_t i = 0; i < part->n; i++) {
            const uint64_t end = s->best->offsets[part->items[i]] + s->problem->items[part->items[i]].size_bytes;
            if (end > part->bytes) part->bytes = end;
        }
    }
}

/// When a share of the time that is left is over; 0: no clock.
static uint64_t share_of_time(const tide_search *s, uint64_t share) {
    const uint64_t now_ns = tide_now_ns();
    if (s->deadline_ns == 0) return 0;
    return s->deadline_ns > now_ns ? now_ns + (s->deadline_ns - now_ns) / share : s->deadline_ns;
}

/// Local search with a share of what is left of the limits: before the skyline where that is slow, after
/// it with all.
static tide_status search_locally(tide_search *s, uint64_t share, tide_error *err) {
    const uint64_t work = tide__search_work_of_placing(s->problem->n), left = tide__search_nodes_left(s, work);
    if (tide__search_is_done(s) || tide__search_is_over(s) || left < share) return TIDE_OK;
    const tide_local_search_options opt = {
        .seed = s->seed + share - 1,
        .deadline_ns = share_of_time(s, share),
        .node_limit = left == UINT64_MAX ? 0 : left / share,
        .target_bytes = s->capacity_bytes > s->best->proved_bytes ? s->capacity_bytes : s->best->proved_bytes,
    };
    const uint64_t before = s->best->bytes;
    uint64_t n_nodes = 0;
    const tide_status st = tide__local_search(s->problem, &opt, s->best, &n_nodes, err);
    tide__search_spend(s, n_nodes, work);
    if (st == TIDE_OK && s->best->bytes < before) split_best(s);
    return st;
}

/// Whether an exhausted skyline proves nothing: shapes of several rectangles, given offsets, sizes that do not suit the
/// alignments.
static bool is_irregular(const tide_problem *p) { return !p->plain || p->grain_bytes % p->align_bytes != 0; }

/// A decision of pairs visits every clique again, which is most of what it costs.
static uint64_t work_of_deciding(const tide_problem *p) {
    uint64_t n_alive = 1; // over all ticks
    for (size_t i = 0; i < p->n; i++) n_alive += p->items[i].end - p->items[i].begin;
    return n_alive * SEARCH_WORK_PER_CLIQUE;
}

/// Small irregular problems are searched pair by pair, which is exact for them: before the skyline with a share of the
/// limits, after it with a larger one.
static tide_status search_pairs(tide_search *s, uint64_t share, tide_error *err) {
    if (!is_irregular(s->problem) || s->problem->n > TIDE_PAIRS_MAX_ITEMS) return TIDE_OK;
    if (tide__search_is_done(s) || tide__search_is_over(s)) return TIDE_OK;
    const uint64_t work = work_of_deciding(s->problem), left = tide__search_nodes_left(s, work);
    if (left < share) return TIDE_OK;
    const uint64_t deadline_ns = share_of_time(s, share);
    const uint64_t before = s->best->bytes;
    uint64_t n_nodes = 0;
    const tide_status st =
        tide__pairs_improve(s->problem, s->capacity_bytes, left / share, deadline_ns, s->best, &n_nodes, err);
    tide__search_spend(s, n_nodes, work);
    if (st == TIDE_OK && s->best->bytes < before) split_best(s);
    return st;
}

/// A first plan. Of very large problems greedy orders take all the time there is: boxes are as good and fast, and leave
/// it to local search.
static tide_status search_greedily(tide_search *s, tide_error *err) {
    enum { VERY_LARGE = 200000 };
    if (s->problem->n < VERY_LARGE) return run_portfolio(s, err);
    static const tide_greedy_rule rule = {.order = TIDE_ORDER_SIZE, .gap = TIDE_GAP_RULE_FIRST};
    TIDE_TRY(tide__place_in_boxes(s->problem, &rule, s->best, err));
    tide__search_spend(s, s->problem->n, tide__search_work_of_placing(s->problem->n));
    split_best(s);
    return TIDE_OK;
}

/// The skyline can take the problem and needs long for each descent: local search comes first.
static bool is_slow_for_skyline(const tide_search *s) {
    const uint64_t n = s->problem->n;
    if (n <= SEARCH_SLOW_ITEMS || n > TIDE_SKY_MAX_ITEMS) return false;
    return tide__search_nodes_left(s, n * SEARCH_WORK_PER_VISIT) > n;
}

static uint32_t count_processors(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

tide_status tide__search_place(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) {
    (void)self;
    static const tide_strategy_options none = {0};
    const uint64_t begin_ns = tide_now_ns();
    if (opt == NULL) opt = &none;
    const uint64_t percent = opt->work_percent == 0 ? 100 : opt->work_percent;
    const bool is_default = opt->time_limit_ns == 0 && opt->node_limit == 0;
    tide_search s = {
        .problem = problem,
        .seed = opt->seed,
        .capacity_bytes = opt->capacity_bytes,
        .deadline_ns = opt->time_limit_ns == 0 ? 0 : begin_ns + opt->time_limit_ns,
        .work_limit = is_default ? default_work(problem) / 100 * percent : UINT64_MAX,
        .node_limit = opt->node_limit == 0 ? UINT64_MAX : opt->node_limit,
        .n_threads = opt->n_threads == 0 ? count_processors() : opt->n_threads,
        .best = out,
    };
    if (opt->time_limit_ns > UINT64_MAX - begin_ns) s.deadline_ns = 0;
    out->bytes = UINT64_MAX;
    tide_status st = tide__search_make_parts(&s, err);
    if (st == TIDE_OK) st = search_greedily(&s, err);
    if (st == TIDE_OK) st = search_pairs(&s, 4, err);
    if (st == TIDE_OK && is_slow_for_skyline(&s)) st = search_locally(&s, 4, err);
    if (st == TIDE_OK) st = tide__search_probe(&s, err);
    if (st == TIDE_OK) st = search_pairs(&s, 2, err);
    if (st == TIDE_OK) st = search_locally(&s, 1, err);
    TIDE_ASSERT(st != TIDE_OK || out->proved_bytes <= out->bytes);
    tide__search_free_parts(&s);
    return st;
}
