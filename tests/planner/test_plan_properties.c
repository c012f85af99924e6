// SPDX-License-Identifier: MIT
//
// The planner from end to end, on small tables with every feature there is: every strategy's plan is sound by
// definition, no bound is above what brute force finds, and the search finds no less than brute force does.
//
// Brute force: for each height from what is needed at one step on, every offset of every tensor is tried, byte by byte,
// until all fit.
#include "planner/problem.h"
#include "tests/planner/verify_test.h"

enum { MAX_N = 9, N_STEPS = 6, MAX_BYTES = 5, MAX_HEIGHT = 64 };

// ---- brute force over one buffer ----

typedef struct brute {
    const tide_lifetimes *lt;
    size_t roots[MAX_N];
    size_t n;
    uint64_t bytes[MAX_N];
    bool needs[MAX_N][N_STEPS + 1][2 * MAX_BYTES + 8]; // the last row: what is kept apart, all of it
    uint64_t offsets[MAX_N];
    uint64_t height;
    uint64_t n_tried;
} brute;

static bool meet(const brute *b, size_t i, size_t j) {
    const tide_lifetime *x = &b->lt->items[b->roots[i]], *y = &b->lt->items[b->roots[j]];
    const bool apart = x->apart_set != 0 && x->apart_set == y->apart_set;
    for (uint64_t k = 0; k < b->bytes[i]; k++) {
        const uint64_t at = b->offsets[i] + k;
        if (at < b->offsets[j] || at >= b->offsets[j] + b->bytes[j]) continue;
        if (apart) return true;
        for (int64_t step = 0; step < N_STEPS; step++) {
            if (b->needs[i][step][k] && b->needs[j][step][at - b->offsets[j]]) return true;
        }
    }
    return false;
}

/// Tensor `i` and those after it at every offset below the height.
static bool fits_from(brute *b, size_t i) {
    if (i == b->n) return true;
    const tide_lifetime *item = &b->lt->items[b->roots[i]];
    b->n_tried++;
    for (uint64_t at = item->fixed ? item->fixed_offset_bytes : 0; at + b->bytes[i] <= b->height;
         at += item->align_bytes) {
        b->offsets[i] = at;
        bool free = true;
        for (size_t j = 0; j < i && free; j++) free = !meet(b, i, j);
        if (free && fits_from(b, i + 1)) return true;
        if (item->fixed) return false;
    }
    return false;
}

/// The smallest height of one buffer; MAX_HEIGHT + 1 when given offsets stand in each other's way.
static uint64_t smallest_height(const tide_lifetimes *lt, const tide_plan_buffer *buffer) {
    brute b = {.lt = lt};
    for (int given = 1; given >= 0; given--) { // what has no choice first
        for (size_t r = 0; r < lt->n; r++) {
            const tide_lifetime *item = &lt->items[r];
            if (!def_is_root(lt, r) || item->fixed != (given == 1) || !def_in_buffer(item, buffer)) continue;
            if (!def_takes_space(lt, r, NULL, NULL)) continue;
            b.bytes[b.n] = def_own_bytes(item);
            for (int64_t step = 0; step < lt->n_steps; step++) {
                for (uint64_t x = 0; x < b.bytes[b.n]; x++) b.needs[b.n][step][x] = def_class_needs(lt, r, step, x);
            }
            b.roots[b.n++] = r;
        }
    }
    b.height = def_lower_bound(lt, buffer); // so many bytes are needed at once: less cannot do
    while (b.height <= MAX_HEIGHT && !fits_from(&b, 0)) b.height++;
    return b.height;
}

// ---- tables ----

static void random_table(uint64_t seed, tide_lifetimes *lt, bool with_fixed) {
    tide_rng rng = {seed};
    put_all_features(lt, &rng, 1 + tide_rng_below(&rng, MAX_N), N_STEPS, MAX_BYTES);
    for (size_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        if (item->align_bytes > 4 && !item->fixed) item->align_bytes = 4; // so that heights stay small
        if (!with_fixed) item->fixed = false;
    }
}

/// NULL where the strategy says that it cannot keep given offsets, or where these contradict each other.
static tide_memory_plan *try_plan(const tide_lifetimes *lt, const tide_strategy *strategy, bool has_fixed,
                                  bool contradiction, uint64_t seed) {
    // Far more than trees of nine tensors have; no clock, so that every run is the same.
    const tide_strategy_options opt = {.seed = seed, .node_limit = 2000000, .n_threads = 1};
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_plan_make(lt, strategy, &opt, &plan, &err);
    if (contradiction) {
        assert_tide_status(st, TIDE_ERR_INVALID);
        return NULL;
    }
    if (st == TIDE_ERR_NOT_IMPLEMENTED && has_fixed) return NULL;
    if (st != TIDE_OK) fail_msg("seed %" PRIu64 ", %s: %s: %s", seed, strategy->name, tide_status_name(st), err.msg);
    return plan;
}

static bool has_fixed_items(const tide_lifetimes *lt) {
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].fixed && !lt->items[i].persistent) return true;
    }
    return false;
}

// ---- every strategy ----

typedef struct counts {
    size_t n_plans, n_best, n_proven, n_refused;
} counts;

static void check_plan(const tide_memory_plan *plan, const uint64_t *heights, uint64_t seed, counts *c) {
    const uint32_t faults = def_faults(plan);
    if (faults != 0 || !plan->verified)
        fail_msg("seed %" PRIu64 ": %s has faults %#" PRIx32, seed, plan->strategy, faults);
    uint64_t best = 0;
    for (size_t b = 0; b < plan->n_buffers; b++) {
        const tide_plan_buffer *x = &plan->buffers[b];
        best += heights[b];
        if (x->lower_bound_bytes > heights[b] || x->bytes < heights[b] || x->proved_bytes > heights[b])
            fail_msg("seed %" PRIu64 ", buffer %zu: %s has %" PRIu64 " bytes, bound %" PRIu64 ", proved %" PRIu64
                     " by %s; the smallest is %" PRIu64,
                     seed, b, plan->strategy, x->bytes, x->lower_bound_bytes, x->proved_bytes,
                     tide_proof_name(x->proof), heights[b]);
    }
    assert_int_equal(plan->proven, plan->bytes == plan->proved_bytes);
    c->n_plans++;
    c->n_best += plan->bytes == best;
    c->n_proven += plan->proven;
}

// S23-17: original is the sum of the aligned sizes of what is not persistent, optimised that of the pools.
static void check_sums(const tide_memory_plan *plan) {
    uint64_t original = 0, pools = 0, buffers = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (!plan->lifetimes.items[i].persistent) original += tide_lifetime_aligned_bytes(&plan->lifetimes.items[i]);
    }
    for (size_t k = 0; k < plan->n_pools; k++) pools += plan->pool_list[k].size_bytes;
    for (size_t b = 0; b < plan->n_buffers; b++) buffers += plan->buffers[b].bytes;
    assert_int_equal(plan->naive_bytes, original);
    assert_int_equal(plan->bytes, buffers);
    if (plan->form == TIDE_PLAN_POOLS) assert_int_equal(plan->bytes, pools);
}

/// Heights by brute force of the buffers of `lt`, in their order; *contradiction: given offsets overlap.
static size_t find_heights(const tide_lifetimes *lt, uint64_t *heights, bool *contradiction) {
    tide_memory_plan *bare = bare_plan(lt, "bare", TIDE_PLAN_OFFSETS);
    *contradiction = false;
    const size_t n = bare->n_buffers;
    for (size_t b = 0; b < n; b++) {
        heights[b] = smallest_height(lt, &bare->buffers[b]);
        if (heights[b] > MAX_HEIGHT) *contradiction = true;
    }
    tide_memory_plan_destroy(bare);
    return n;
}

static void report(const char *what, const counts *c) {
    print_message("%-28s %6zu plans, %6zu smallest, %6zu proven, %6zu refused\n", what, c->n_plans, c->n_best,
                  c->n_proven, c->n_refused);
}

// S23-9, S23-10, S23-21: every strategy, with aliases, gaps, apart sets, given offsets and several buffers.
static void every_strategy_on_tables_with_every_feature(void **state) {
    (void)state;
    enum { MAX_STRATEGIES = 64 };
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    static counts c[MAX_STRATEGIES];
    size_t n_contradictions = 0;
    assert_true(n <= MAX_STRATEGIES);
    for (uint64_t seed = 0; seed < (uint64_t)tide_test_rounds(850, 6000); seed++) {
        tide_lifetimes lt = {0};
        uint64_t heights[MAX_N];
        bool contradiction;
        random_table(seed, &lt, seed % 3 == 0);
        const size_t n_buffers = find_heights(&lt, heights, &contradiction);
        n_contradictions += contradiction;
        uint64_t smallest_pools = UINT64_MAX, found = 0;
        for (size_t s = 0; s < n; s++) {
            tide_memory_plan *plan = try_plan(&lt, all[s], has_fixed_items(&lt), contradiction, seed);
            c[s].n_refused += plan == NULL;
            if (plan == NULL) continue;
            assert_int_equal(plan->n_buffers, n_buffers);
            check_plan(plan, heights, seed, &c[s]);
            check_sums(plan);
            if (plan->form == TIDE_PLAN_POOLS && plan->bytes < smallest_pools) smallest_pools = plan->bytes;
            if (all[s] == tide_strategy_default()) found = plan->bytes;
            if (plan->form == TIDE_PLAN_POOLS) { // X-4
                tide_memory_plan *flat;
                tide_error err = TIDE_ERROR_INIT;
                assert_tide_ok(tide_plan_pools_to_offsets(plan, &flat, &err), &err);
                assert_int_equal(flat->bytes, plan->bytes);
                assert_int_equal(def_faults(flat), 0);
                tide_memory_plan_destroy(flat);
            }
            tide_memory_plan_destroy(plan);
        }
        assert_true(found <= smallest_pools); // S23-21: offsets are never larger
        tide_lifetimes_deinit(&lt);
    }
    for (size_t s = 0; s < n; s++) report(all[s]->name, &c[s]);
    for (size_t s = 0; s < n; s++) assert_true(c[s].n_plans > (size_t)tide_test_rounds(520, 4000) && c[s].n_proven > 0);
    assert_true(n_contradictions > (size_t)tide_test_rounds(1, 15));
}

// Hundreds of tensors, where sets and trees have several levels; the verifier inside tide_plan_make says whether.
static void every_strategy_on_larger_tables(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (uint64_t seed = 0; seed < 20; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_all_features(&lt, &rng, 400, 60, 3000);
        for (size_t i = 0; i < lt.n; i++) lt.items[i].fixed = false; // of so many some would contradict others
        uint64_t bound;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_lower_bound(&lt, &bound, NULL, &err), &err);
        for (size_t s = 0; s < n; s++) {
            const tide_strategy_options opt = {.seed = seed, .node_limit = 2000, .n_threads = 1};
            tide_memory_plan *plan;
            assert_tide_ok(tide_plan_make(&lt, all[s], &opt, &plan, &err), &err);
            assert_int_equal(plan->lower_bound_bytes, bound);
            assert_true(bound <= plan->proved_bytes && plan->proved_bytes <= plan->bytes);
            tide_memory_plan_destroy(plan);
        }
        tide_lifetimes_deinit(&lt);
    }
}

// ---- the search ----

typedef enum features { PLAIN, ALIGNED, EVERYTHING } features;

/// Strip a table of all but lives and sizes, and alignments that sizes are no multiples of.
static void strip(tide_lifetimes *lt, features left) {
    for (size_t i = 0; i < lt->n && left != EVERYTHING; i++) {
        tide_lifetime *item = &lt->items[i];
        item->n_gaps = 0;
        item->alias = TIDE_ALIAS_NONE;
        item->fixed = false;
        item->apart_set = 0;
        item->unrounded = true;
        if (left == PLAIN) item->align_bytes = 1;
    }
}

typedef struct misses {
    size_t n_larger, n_unproven;
    uint64_t first; // seed; 0: none
} misses;

static void search_one(uint64_t seed, const tide_strategy *search, features left, counts *c, misses *m,
                       size_t *n_above_bound) {
    tide_lifetimes lt = {0};
    uint64_t heights[MAX_N], best = 0;
    bool contradiction;
    random_table(seed, &lt, seed % 5 == 0);
    strip(&lt, left);
    const size_t n_buffers = find_heights(&lt, heights, &contradiction);
    for (size_t b = 0; b < n_buffers; b++) best += heights[b];
    tide_memory_plan *plan = try_plan(&lt, search, false, contradiction, seed);
    if (plan != NULL) {
        check_plan(plan, heights, seed, c);
        m->n_larger += plan->bytes != best;
        m->n_unproven += !plan->proven;
        if ((plan->bytes != best || !plan->proven) && m->first == 0) m->first = seed;
        *n_above_bound += best > plan->lower_bound_bytes;
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// @param some_above  one in thirty smallest heights is above the lower bound
static void search_all(features left, const char *what, bool some_above) {
    const tide_strategy *search;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_strategy_find("search", &search, &err), &err);
    counts c = {0};
    misses m = {0};
    size_t n_above_bound = 0;
    const size_t n = (size_t)tide_test_rounds(350, 3000);
    for (uint64_t seed = 10000; seed < 10000 + n; seed++) search_one(seed, search, left, &c, &m, &n_above_bound);
    report(what, &c);
    print_message("%zu smallest heights above the lower bound\n", n_above_bound);
    if (m.first != 0)
        fail_msg("brute force finds less in %zu of %zu tables, %zu plans are not proven; the first is of seed %" PRIu64,
                 m.n_larger, c.n_plans, m.n_unproven, m.first);
    assert_true(c.n_plans > n * 5 / 6 && (!some_above || n_above_bound >= n / 30));
}

// S23-10: what the search returns is the smallest there is, and it says so.
static void the_search_is_as_good_as_brute_force(void **state) {
    (void)state;
    search_all(PLAIN, "search, plain tables", false); // so few plain tensors nearly always reach the bound
}

static void the_search_is_as_good_as_brute_force_with_alignments(void **state) {
    (void)state;
    search_all(ALIGNED, "search, alignments", true);
}

static void the_search_is_as_good_as_brute_force_with_every_feature(void **state) {
    (void)state;
    search_all(EVERYTHING, "search, every feature", true);
}

/// Capacity mode: yes exactly from the smallest height on, and below it a proof that there is none.
static void capacities_around_the_smallest_height(void **state) {
    (void)state;
    const tide_strategy *search;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_strategy_find("search", &search, &err), &err);
    size_t n_asked = 0;
    for (uint64_t seed = 20000; seed < 20500; seed++) {
        tide_lifetimes lt = {0};
        uint64_t heights[MAX_N];
        bool contradiction;
        random_table(seed, &lt, false);
        if (find_heights(&lt, heights, &contradiction) == 1 && heights[0] > 1) {
            for (uint64_t capacity = heights[0] - 1; capacity <= heights[0] + 1; capacity++) {
                const tide_strategy_options opt = {.node_limit = 2000000, .n_threads = 1, .capacity_bytes = capacity};
                tide_memory_plan *plan;
                assert_tide_ok(tide_plan_make(&lt, search, &opt, &plan, &err), &err);
                assert_int_equal(def_faults(plan), 0);
                if (capacity < heights[0] ? plan->proved_bytes <= capacity : plan->bytes > capacity)
                    fail_msg("seed %" PRIu64 ", capacity %" PRIu64 ": %" PRIu64 " bytes, proved %" PRIu64
                             "; the smallest height is %" PRIu64,
                             seed, capacity, plan->bytes, plan->proved_bytes, heights[0]);
                tide_memory_plan_destroy(plan);
                n_asked++;
            }
        }
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_asked > 300);
}

// ---- strategies that are wrong ----

static tide_status place_all_at_zero(const tide_strategy *self, const tide_problem *problem,
                                     const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    (void)self;
    (void)opt;
    (void)err;
    for (size_t i = 0; i < problem->n; i++) out->offsets[i] = 0;
    tide__placement_measure(out, problem);
    return TIDE_OK;
}

static tide_status place_one_on_another(const tide_strategy *self, const tide_problem *problem,
                                        const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    (void)self;
    (void)opt;
    (void)err;
    uint64_t at = 0;
    for (size_t i = 0; i < problem->n; i++) {
        out->offsets[i] = at;
        at += problem->items[i].size_bytes;
    }
    tide__placement_measure(out, problem);
    return TIDE_OK;
}

static tide_status prove_too_much(const tide_strategy *self, const tide_problem *problem,
                                  const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    const tide_status st = place_one_on_another(self, problem, opt, out, err);
    out->proved_bytes = out->bytes + 1;
    out->proof = TIDE_PROOF_SEARCH;
    return st;
}

static tide_status place_nothing(const tide_strategy *self, const tide_problem *problem,
                                 const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    (void)self;
    (void)problem;
    (void)opt;
    (void)out;
    (void)err;
    return TIDE_OK;
}

// S23-9: a strategy that is wrong gives no plan at all: the verifier runs on every plan, in every build.
static void a_broken_strategy_gives_no_plan(void **state) {
    (void)state;
    static const struct {
        tide_strategy strategy;
        const char *words;
    } broken[] = {
        {{.name = "broken", .form = TIDE_PLAN_OFFSETS, .place = place_all_at_zero}, "share bytes"},
        {{.name = "braggart", .form = TIDE_PLAN_OFFSETS, .place = prove_too_much}, "proved_bytes 385"},
        {{.name = "idle", .form = TIDE_PLAN_OFFSETS, .place = place_nothing}, "has no offset"},
    };
    tide_lifetimes lt = {0};
    put_aligned(&lt, "a", 100, 128, 0, 2);
    put_aligned(&lt, "b", 200, 128, 1, 3);
    for (size_t k = 0; k < sizeof broken / sizeof broken[0]; k++) {
        tide_memory_plan *plan = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_plan_make(&lt, &broken[k].strategy, NULL, &plan, &err), TIDE_ERR_VERIFY);
        assert_null(plan);
        assert_text_has(err.msg, broken[k].strategy.name);
        assert_text_has(err.msg, broken[k].words);
    }
    // The same one without bragging is sound, and on a lifetime file's word that sizes stand as they are it is askew.
    static const tide_strategy stack = {.name = "stack", .form = TIDE_PLAN_OFFSETS, .place = place_one_on_another};
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_make(&lt, &stack, NULL, &plan, &err), &err);
    tide_memory_plan_destroy(plan);
    lt.items[0].unrounded = lt.items[1].unrounded = true;
    assert_tide_status(tide_plan_make(&lt, &stack, NULL, &plan, &err), TIDE_ERR_VERIFY);
    assert_text_has(err.msg, "no multiple of 128");
    tide_lifetimes_deinit(&lt);
}

// ---- what is persistent ----

// S23-6: in the plans of 1,000 random tables no graph input, output or weight shares a byte with an intermediate: it
// has no byte of any buffer, nothing lies inside it, and a plan that gives it one is refused.
static void nothing_persistent_is_in_a_buffer(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    size_t n_persistent = 0;
    for (uint64_t seed = 30000; seed < 31000; seed++) {
        tide_lifetimes lt = {0};
        random_table(seed, &lt, false);
        static const tide_role roles[] = {TIDE_ROLE_INPUT, TIDE_ROLE_OUTPUT, TIDE_ROLE_WEIGHT};
        for (size_t i = 0; i < lt.n; i++) {
            if (lt.items[i].persistent) lt.items[i].role = roles[i % 3];
        }
        const tide_strategy *strategy = all[seed % n];
        tide_memory_plan *plan = try_plan(&lt, strategy, false, false, seed);
        for (size_t i = 0; i < lt.n; i++) {
            if (!lt.items[i].persistent) {
                assert_false(lt.items[tide_lifetimes_root(&lt, (uint32_t)i, NULL)].persistent);
                continue;
            }
            n_persistent++;
            assert_true(plan->offsets[i] == TIDE_NO_OFFSET && plan->pools[i] == TIDE_NO_POOL);
            tide_verify_result result;
            plan->offsets[i] = 0;
            assert_tide_status(tide_plan_verify(plan, &result, NULL), TIDE_ERR_VERIFY);
            assert_int_equal(result.code, TIDE_VERIFY_PERSISTENT);
            assert_int_equal(result.a, i);
            plan->offsets[i] = TIDE_NO_OFFSET;
        }
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_persistent > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_strategy_on_tables_with_every_feature),
        tide_unit_test(every_strategy_on_larger_tables),
        tide_unit_test(the_search_is_as_good_as_brute_force),
        tide_unit_test(the_search_is_as_good_as_brute_force_with_alignments),
        tide_unit_test(the_search_is_as_good_as_brute_force_with_every_feature),
        tide_unit_test(capacities_around_the_smallest_height),
        tide_unit_test(a_broken_strategy_gives_no_plan),
        tide_unit_test(nothing_persistent_is_in_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
