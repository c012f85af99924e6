// SPDX-License-Identifier: MIT
//
// search: the best plan that a budget finds, with a certificate: what no plan can go below.
//
//     bounds -> greedy portfolio -> parts in time -> skyline probes at the bound, then between it and the best plan
//
// It stops where the plan meets the bound. See skyline.h for the tree and its sources. Work is counted in steps that
// are the same on every machine, and only a time limit brings in the clock: without one the plan depends on nothing but
// problem, seed and limit.
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/text.h"
#include "planner/search/local_search.h"
#include "planner/search/pairs.h"
#include "planner/search/search_internal.h"
#include "planner/search/strategy_search.h"
#include "planner/strategies/greedy.h"

/// Whether hardly a byte may stay empty at any tick: then greedy orders and local search are far from the bound.
static bool is_tight(const tide_problem *p) {
    const double TIGHT = 0.95;
    double area = 0;
    for (size_t i = 0; i < p->n; i++)
        area += (double)p->items[i].size_bytes * (double)(p->items[i].end - p->items[i].begin);
    return area >= TIGHT * (double)p->lower_bound_bytes * (double)p->n_ticks;
}

/// About a second of one thread, and for large problems as much again as the first greedy order takes, or as a way down
/// the skyline: of very large ones that takes longer than all else, and is for those alone that need it.
static uint64_t default_work(const tide_problem *p) {
    enum { SECOND = 1000000000, PER_ITEM = 6500, PER_PAIR = 12, ALWAYS_ITEMS = 8192 };
    const uint64_t n = p->n;
    const bool has_skyline = n <= ALWAYS_ITEMS || (n <= TIDE_SKY_MAX_ITEMS && is_tight(p));
    return SECOND + n * PER_ITEM + (has_skyline ? n * n * PER_PAIR : 0);
}

uint64_t tide__search_work_of_placing(size_t n) {
    uint64_t doublings = 1;
    for (size_t k = n / 32; k > 1; k /= 2) doublings++;
    return doublings * SEARCH_WORK_PER_PLACE;
}

uint64_t tide__search_nodes_left(const tide_search *s, uint64_t work) {
    const uint64_t nodes = s->n_nodes < s->node_limit ? s->node_limit - s->n_nodes : 0;
    if (s->work_limit == UINT64_MAX) return nodes;
    const uint64_t paid = s->n_work < s->work_limit ? (s->work_limit - s->n_work) / work : 0;
    return nodes < paid ? nodes : paid;
}

void tide__search_spend(tide_search *s, uint64_t n_nodes, uint64_t work_each) {
    s->n_nodes += n_nodes;
    if (s->work_limit != UINT64_MAX) s->n_work += n_nodes * work_each;
}

bool tide__search_is_over(const tide_search *s) {
    if (s->n_nodes >= s->node_limit || s->n_work >= s->work_limit) return true;
    return s->deadline_ns != 0 && tide_now_ns() >= s->deadline_ns;
}

bool tide__search_is_done(const tide_search *s) {
    if (s->best->bytes <= s->best->proved_bytes) return true;
    if (s->capacity_bytes == 0) return false;
    return s->best->bytes <= s->capacity_bytes || s->best->proved_bytes > s->capacity_bytes;
}

void tide__search_measure(tide_search *s) {
    s->best->bytes = 0;
    for (size_t k = 0; k < s->n_parts; k++) {
        const search_part *part = &s->parts[k];
        if (part->bytes > s->best->bytes) s->best->bytes = part->bytes;
        if (part->proved_bytes > s->best->proved_bytes) {
            s->best->proved_bytes = part->proved_bytes;
            s->best->proof = TIDE_PROOF_SEARCH;
        }
    }
}

/// Tell the parts what the places of the best plan, which somebody else has found, mean for them.
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
static bool is_crooked(const tide_problem *p) { return !p->plain || p->grain_bytes % p->align_bytes != 0; }

/// A decision of pairs looks at every crowd anew, which is most of what it costs.
static uint64_t work_of_deciding(const tide_problem *p) {
    uint64_t n_alive = 1; // over all ticks
    for (size_t i = 0; i < p->n; i++) n_alive += p->items[i].end - p->items[i].begin;
    return n_alive * SEARCH_WORK_PER_CROWD;
}

/// Small crooked problems are searched pair by pair, which is exact for them: before the skyline with a share of the
/// limits, after everything else with what is left.
static tide_status search_pairs(tide_search *s, uint64_t share, tide_error *err) {
    if (!is_crooked(s->problem) || s->problem->n > TIDE_PAIRS_MAX_ITEMS) return TIDE_OK;
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
    if (s->problem->n < VERY_LARGE) return tide__search_portfolio(s, err);
    static const tide_greedy_rule rule = {.order = TIDE_ORDER_SIZE, .gap = TIDE_GAP_RULE_FIRST};
    TIDE_TRY(tide__place_in_boxes(s->problem, &rule, s->best, err));
    tide__search_spend(s, s->problem->n, tide__search_work_of_placing(s->problem->n));
    split_best(s);
    return TIDE_OK;
}

/// The skyline will take the problem and need long for each way down: others come first.
static bool is_slow_for_skyline(const tide_search *s) {
    const uint64_t n = s->problem->n;
    if (n <= SEARCH_SLOW_ITEMS || n > TIDE_SKY_MAX_ITEMS) return false;
    return tide__search_nodes_left(s, n * SEARCH_WORK_PER_LOOK) > n;
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
