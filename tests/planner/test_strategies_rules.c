// SPDX-License-Identifier: MIT
//
// planner/strategies: each strategy against its own rule, written down as plainly as can be and without regard to time,
// on problems with everything a lifetime can have. Any place that differs is a failure.
#include "planner/strategies/coloring.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/problem_test.h"

typedef struct turn {
    uint64_t first, second; // smaller goes first
    uint32_t item;
} turn;

static int compare_turns(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->second != y->second) return x->second < y->second ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void sort_turns(turn *turns, size_t n, uint32_t *order) {
    qsort(turns, n, sizeof *turns, compare_turns);
    for (size_t k = 0; k < n; k++) order[k] = turns[k].item;
}

// ---- orders ----

static void by_size(const tide_problem *p, turn *t) {
    for (size_t i = 0; i < p->n; i++) t[i] = (turn){~p->items[i].size_bytes, 0, (uint32_t)i};
}
static void as_given(const tide_problem *p, turn *t) {
    for (size_t i = 0; i < p->n; i++) t[i] = (turn){p->items[i].begin, 0, (uint32_t)i};
}

/// The tick with most bytes alive among those the item lives through, the earliest of equals; ticks in that order.
static void by_breadth(const tide_problem *p, turn *t) {
    uint64_t alive[200] = {0};
    assert_true(p->n_ticks < 200);
    for (size_t r = 0; r < p->n_rects; r++) {
        for (uint32_t k = p->rects[r].begin; k < p->rects[r].end; k++)
            alive[k] += p->rects[r].hi_bytes - p->rects[r].lo_bytes;
    }
    for (size_t i = 0; i < p->n; i++) {
        uint32_t best = p->items[i].begin;
        for (uint32_t k = best; k < p->items[i].end; k++) best = alive[k] > alive[best] ? k : best;
        uint64_t before = 0; // ticks that are broader, or as broad and earlier
        for (uint32_t k = 0; k < p->n_ticks; k++)
            before += alive[k] > alive[best] || (alive[k] == alive[best] && k < best);
        t[i] = (turn){before, ~p->items[i].size_bytes, (uint32_t)i};
    }
}

static void by_conflicts(const tide_problem *p, turn *t) {
    for (size_t i = 0; i < p->n; i++) {
        uint64_t n = 0;
        for (size_t k = 0; k < p->n; k++)
            n += p->items[k].begin < p->items[i].end && p->items[i].begin < p->items[k].end;
        t[i] = (turn){~n, ~p->items[i].size_bytes, (uint32_t)i};
    }
}

// ---- offsets ----

static tide_placement placed(const tide_problem *p, const tide_strategy *s) {
    tide_placement pl;
    tide_error err = TIDE_ERROR_INIT;
    static const tide_strategy_options none = {0};
    assert_tide_ok(tide__placement_init(&pl, p, &err), &err);
    assert_tide_ok(s->place(s, p, &none, &pl, &err), &err);
    return pl;
}

static void check_offsets(const tide_problem *p, const tide_strategy *s, void (*rank)(const tide_problem *, turn *),
                          bool best_fit) {
    tide_placement pl = placed(p, s);
    turn turns[64];
    uint32_t order[64];
    uint64_t want[64], top = 0;
    rank(p, turns);
    sort_turns(turns, p->n, order);
    for (size_t i = 0; i < p->n; i++) want[i] = p->items[i].fixed_offset;
    for (size_t k = 0; k < p->n; k++) {
        if (want[order[k]] == TIDE_NO_OFFSET) want[order[k]] = plain_place(p, want, order[k], best_fit);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (pl.offsets[i] != want[i]) fail_msg("%s: item %zu", s->name, i);
        if (want[i] + p->items[i].size_bytes > top) top = want[i] + p->items[i].size_bytes;
    }
    assert_int_equal(pl.bytes, top);
    tide__placement_deinit(&pl);
}

/// Every byte of the buffer is either taken or free; a dead tensor's bytes are free again. Fixed offsets are never
/// freed.
static void check_linear_scan(const tide_problem *p) {
    enum { BYTES = 8000 };
    static bool taken[BYTES];
    memset(taken, 0, sizeof taken);
    tide_placement pl = placed(p, tide__strategy(TIDE_STRATEGY_LINEAR_SCAN));
    uint64_t end = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].fixed_offset == TIDE_NO_OFFSET) continue;
        assert_int_equal(pl.offsets[i], p->items[i].fixed_offset);
        const uint64_t to = p->items[i].fixed_offset + p->items[i].size_bytes;
        memset(taken + p->items[i].fixed_offset, 1, p->items[i].size_bytes);
        if (to > end) end = to;
    }
    turn turns[64];
    uint32_t order[64];
    for (size_t i = 0; i < p->n; i++) turns[i] = (turn){p->items[i].begin, ~p->items[i].size_bytes, (uint32_t)i};
    sort_turns(turns, p->n, order);
    for (uint32_t tick = 0; tick <= p->n_ticks; tick++) {
        for (size_t i = 0; i < p->n; i++) {
            if (p->items[i].end == tick && p->items[i].fixed_offset == TIDE_NO_OFFSET)
                memset(taken + pl.offsets[i], 0, p->items[i].size_bytes);
        }
        for (size_t k = 0; k < p->n; k++) {
            const tide_item *item = &p->items[order[k]];
            if (item->begin != tick || item->fixed_offset != TIDE_NO_OFFSET) continue;
            // The lowest place inside the buffer, else the lowest one that reaches beyond its end.
            uint64_t at = 0;
            for (bool free = false; !free; at += free ? 0 : item->align_bytes) {
                assert_true(at + item->size_bytes < BYTES);
                free = true;
                for (uint64_t b = at; b < at + item->size_bytes; b++) free = free && !taken[b];
            }
            if (pl.offsets[order[k]] != at) fail_msg("linear_scan: item %u", order[k]);
            memset(taken + at, 1, item->size_bytes);
            if (at + item->size_bytes > end) end = at + item->size_bytes;
        }
    }
    assert_int_equal(pl.bytes, end);
    tide__placement_deinit(&pl);
}

/// No two tensors share a byte, at any tick.
static void check_naive(const tide_problem *p) {
    tide_placement pl = placed(p, tide__strategy(TIDE_STRATEGY_NAIVE));
    for (size_t i = 0; i < p->n; i++) {
        assert_int_equal(pl.offsets[i] % p->items[i].align_bytes, 0);
        assert_true(pl.offsets[i] + p->items[i].size_bytes <= pl.bytes);
        for (size_t k = 0; k < i; k++) {
            if (p->items[i].fixed_offset != TIDE_NO_OFFSET && p->items[k].fixed_offset != TIDE_NO_OFFSET) continue;
            assert_true(pl.offsets[i] + p->items[i].size_bytes <= pl.offsets[k] ||
                        pl.offsets[k] + p->items[k].size_bytes <= pl.offsets[i]);
        }
    }
    tide__placement_deinit(&pl);
}

// ---- pools ----

/// Whether two items may not share a pool: both hold one at some tick, gaps included, or they belong to one apart set.
static bool hold_at_once(const tide_problem *p, const tide_item *a, const tide_item *b) {
    for (uint32_t tick = 0; tick < p->n_ticks; tick++) {
        bool a_holds = false, b_holds = false, apart = p->tick_steps != NULL && p->tick_steps[tick] < 0;
        for (int side = 0; side < 2; side++) {
            const tide_item *item = side == 0 ? a : b;
            bool before = false, after = false;
            for (uint32_t r = 0; r < item->n_rects; r++) {
                const tide_rect *rect = &p->rects[item->first_rect + r];
                if (p->tick_steps != NULL && p->tick_steps[rect->begin] < 0 && !apart) continue;
                before = before || (apart ? rect->begin == tick : rect->begin <= tick);
                after = after || (apart ? rect->begin == tick : rect->end > tick);
            }
            *(side == 0 ? &a_holds : &b_holds) = before && after;
        }
        if (a_holds && b_holds) return true;
    }
    return false;
}

static bool is_better_pool(uint64_t size, uint64_t than, uint64_t bytes) {
    const bool holds = size >= bytes, other_holds = than >= bytes;
    if (holds != other_holds) return holds;
    return holds ? size <= than : size >= than; // of equals the newest
}

static void compare_pools(const tide_problem *p, const char *name, const tide_placement *pl, const turn *turns,
                          tide_pool_rule rule) {
    int32_t want[64];
    uint64_t sizes[64] = {0};
    int32_t n_pools = 0;
    for (size_t k = 0; k < p->n; k++) {
        const tide_item *item = &p->items[turns[k].item];
        int32_t best = TIDE_NO_POOL;
        for (int32_t pool = 0; pool < n_pools; pool++) {
            bool free = true;
            for (size_t j = 0; j < k; j++)
                free = free && (want[turns[j].item] != pool || !hold_at_once(p, item, &p->items[turns[j].item]));
            if (!free) continue;
            const bool better = best != TIDE_NO_POOL && rule == TIDE_POOL_RULE_BEST &&
                                is_better_pool(sizes[pool], sizes[best], item->size_bytes);
            if (best == TIDE_NO_POOL || better) best = pool;
        }
        if (best == TIDE_NO_POOL) best = n_pools++;
        want[turns[k].item] = best;
        if (item->size_bytes > sizes[best]) sizes[best] = item->size_bytes;
    }
    assert_int_equal(pl->n_pools, n_pools);
    for (size_t i = 0; i < p->n; i++) {
        if (pl->pools[i] != want[i]) fail_msg("%s: item %zu in pool %d, not %d", name, i, pl->pools[i], want[i]);
        assert_int_equal(pl->offsets[i], pl->pool_list[want[i]].offset_bytes);
    }
    for (int32_t k = 0; k < n_pools; k++) assert_true(pl->pool_list[k].size_bytes - sizes[k] < 32);
}

static void check_pools(const tide_problem *p, const tide_strategy *s, void (*rank)(const tide_problem *, turn *),
                        tide_pool_rule rule) {
    turn turns[64];
    uint32_t order[64];
    rank(p, turns);
    sort_turns(turns, p->n, order);
    tide_placement pl;
    tide_error err = TIDE_ERROR_INIT;
    if (s != NULL) {
        pl = placed(p, s);
    } else { // no strategy takes the best pool in an order in which pools grow
        assert_tide_ok(tide__placement_init(&pl, p, &err), &err);
        assert_tide_ok(tide__color(p, order, rule, &pl, &err), &err);
    }
    compare_pools(p, s != NULL ? s->name : "best pool in given order", &pl, turns, rule);
    tide__placement_deinit(&pl);
}

static void every_strategy_follows_its_rule(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const unsigned what = (unsigned)seed % (RANDOM_ALL + 1);
        put_random_table(&lt, &rng, 1 + tide_rng_below(&rng, seed % 50 == 0 ? 60 : 14),
                         1 + (int64_t)tide_rng_below(&rng, 14), 24, what);
        tide_problems problems;
        assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
        assert_int_equal(problems.n, 1);
        const tide_problem *p = &problems.list[0];
        check_naive(p);
        check_linear_scan(p);
        check_offsets(p, tide__strategy(TIDE_STRATEGY_GREEDY_BY_SIZE), by_size, false);
        check_offsets(p, tide__strategy(TIDE_STRATEGY_GREEDY_BY_SIZE_BEST), by_size, true);
        check_offsets(p, tide__strategy(TIDE_STRATEGY_GREEDY_BY_BREADTH), by_breadth, true);
        check_offsets(p, tide__strategy(TIDE_STRATEGY_GREEDY_BY_CONFLICTS), by_conflicts, false);
        if (!(what & RANDOM_FIXED)) {
            check_pools(p, tide__strategy(TIDE_STRATEGY_GREEDY_COLOR), by_size, TIDE_POOL_RULE_FIRST);
            check_pools(p, tide__strategy(TIDE_STRATEGY_GREEDY_COLOR_BEST), by_size, TIDE_POOL_RULE_BEST);
            check_pools(p, tide__strategy(TIDE_STRATEGY_GREEDY_COLOR_GIVEN), as_given, TIDE_POOL_RULE_FIRST);
            check_pools(p, NULL, as_given, TIDE_POOL_RULE_BEST);
        }
        tide__problems_deinit(&problems);
        tide_lifetimes_deinit(&lt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_strategy_follows_its_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
