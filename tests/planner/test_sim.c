// SPDX-License-Identifier: MIT
//
// planner/strategies/strategy_sim_*: golden runs computed by hand from the rules of the allocators, and long runs
// against the same rules over a plain list of blocks.
#include "core/base/assert.h"
#include "planner/problem.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/plan_test.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static uint64_t offset_of(const tide_memory_plan *p, const char *name) {
    return p->offsets[index_of(&p->lifetimes, name)];
}

// ---- by hand ----

/*
 *   step               0            1            2             3            4
 *   small  1000 B      [0, 1024)                                                     segment 0 of 2 MiB at 0
 *   mid    3 MiB                    [2, 5) MiB                                       segment 1 of 20 MiB, 17 MiB left
 *   large  17 MiB + 1                            [22, 40) MiB                        segment 2 of 18 MiB, not split
 *   again  16 MiB                                              [5, 22) MiB           the 17 MiB whole: 1 MiB to spare
 *   tiny   1 B                                                              [0, 512) small has died: its place
 */
static void caching_by_hand(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "small", 1000, 0, 4);
    put(&lt, "mid", 3 * MIB, 1, 5);
    put(&lt, "large", 17 * MIB + 1, 2, 5);
    put(&lt, "again", 16 * MIB, 3, 5);
    put(&lt, "tiny", 1, 4, 5);
    tide_memory_plan *plan = make_plan(&lt, "sim:caching");
    assert_int_equal(plan->bytes, (2 + 20 + 18) * MIB);
    assert_int_equal(offset_of(plan, "large"), 22 * MIB);
    assert_int_equal(offset_of(plan, "again"), offset_of(plan, "mid") + 3 * MIB);
    assert_int_equal(offset_of(plan, "tiny"), offset_of(plan, "small"));
    assert_true(plan->verified);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// The limits of the rules: 1 MiB is small, 10 MiB - 512 still shares 20 MiB, 10 MiB does not.
static void caching_at_its_limits(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes, reserved;
    } cases[] = {{1, 2 * MIB},         {MIB, 2 * MIB},          {MIB + 1, 20 * MIB}, {10 * MIB - 512, 20 * MIB},
                 {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tide_lifetimes lt = {0};
        put(&lt, "a", cases[k].bytes, 0, 1);
        tide_memory_plan *plan = make_plan(&lt, "sim:caching");
        assert_int_equal(plan->bytes, cases[k].reserved);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
}

/*
 *   region 0  2 MiB   a 1 MiB at 0; b 500 KiB behind it, as 1 MiB is more than twice that; 524 KiB left
 *   region 1  4 MiB   c 3 MiB: 1 MiB to spare is less than c and than 128 MiB: not split
 *   region 2  8 MiB   d 5 MiB: not split
 *   region 3  16 MiB  e 530 KiB: more than the 524 KiB that are left; split
 */
static void bfc_by_hand(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", MIB, 0, 9);
    put(&lt, "b", 500 * KIB, 1, 9);
    put(&lt, "c", 3 * MIB, 2, 9);
    put(&lt, "d", 5 * MIB, 3, 9);
    put(&lt, "e", 530 * KIB, 4, 9);
    put(&lt, "f", 300 * KIB, 5, 9); // the smallest that fits: the 524 KiB of region 0, whole
    tide_memory_plan *plan = make_plan(&lt, "sim:bfc");
    assert_int_equal(offset_of(plan, "a"), 0);
    assert_int_equal(offset_of(plan, "b"), MIB);
    assert_int_equal(offset_of(plan, "c"), 2 * MIB);
    assert_int_equal(offset_of(plan, "d"), 6 * MIB);
    assert_int_equal(offset_of(plan, "e"), 14 * MIB);
    assert_int_equal(offset_of(plan, "f"), MIB + 500 * KIB);
    assert_int_equal(plan->bytes, (2 + 4 + 8 + 16) * MIB);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// A first request of 40 MiB makes a region of 64 MiB, and the next region is of 64 MiB again.
static void bfc_grows_until_the_request_fits(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 40 * MIB, 0, 2);
    put(&lt, "b", 50 * MIB, 1, 2);
    tide_memory_plan *plan = make_plan(&lt, "sim:bfc");
    assert_int_equal(offset_of(plan, "b"), 64 * MIB);
    assert_int_equal(plan->bytes, 128 * MIB);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void arena_by_hand(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 2);
    put(&lt, "b", 50, 1, 3);
    put(&lt, "c", 60, 2, 4); // a is dead, b is not: on top
    put(&lt, "d", 70, 4, 6); // nothing is alive: from the bottom
    put_aligned(&lt, "e", 16, 16, 5, 6);
    tide_memory_plan *plan = make_plan(&lt, "sim:arena");
    assert_int_equal(offset_of(plan, "a"), 0);
    assert_int_equal(offset_of(plan, "b"), 100);
    assert_int_equal(offset_of(plan, "c"), 150);
    assert_int_equal(offset_of(plan, "d"), 0);
    assert_int_equal(offset_of(plan, "e"), 80);
    assert_int_equal(plan->bytes, 210);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// ---- against a plain list ----

enum { MAX_BLOCKS = 4000 };
typedef struct plain_block {
    uint64_t begin, bytes;
    int segment;
    bool small, used;
} plain_block;

/// All blocks by address; a search checks every block.
typedef struct plain_heap {
    plain_block blocks[MAX_BLOCKS];
    size_t n;
    uint64_t reserved, next_region;
    int n_segments;
} plain_heap;

static void insert_block(plain_heap *h, size_t at, plain_block b) {
    assert_true(h->n < MAX_BLOCKS);
    memmove(h->blocks + at + 1, h->blocks + at, (h->n - at) * sizeof b);
    h->blocks[at] = b;
    h->n++;
}

static uint64_t plain_take(plain_heap *h, uint64_t bytes, bool caching) {
    const uint64_t granule = caching ? 512 : 256;
    bytes = (bytes + granule - 1) / granule * granule;
    const bool small = caching && bytes <= MIB;
    size_t best = SIZE_MAX;
    for (size_t k = 0; k < h->n; k++) {
        const plain_block *b = &h->blocks[k];
        if (b->used || b->small != small || b->bytes < bytes) continue;
        if (best == SIZE_MAX || b->bytes < h->blocks[best].bytes) best = k;
    }
    if (best == SIZE_MAX) {
        uint64_t segment = small ? 2 * MIB : bytes < 10 * MIB ? 20 * MIB : (bytes + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
        if (!caching) {
            const bool fits = h->next_region >= bytes;
            while (h->next_region < bytes) h->next_region *= 2;
            segment = h->next_region;
            if (fits) h->next_region *= 2;
        }
        best = h->n;
        insert_block(h, best, (plain_block){h->reserved, segment, h->n_segments++, small, false});
        h->reserved += segment;
    }
    plain_block *b = &h->blocks[best];
    const uint64_t rest = b->bytes - bytes;
    const bool splits = caching ? (small ? rest >= 512 : rest > MIB) : (b->bytes >= 2 * bytes || rest >= 128 * MIB);
    if (splits) {
        const plain_block tail = {b->begin + bytes, rest, b->segment, small, false};
        b->bytes = bytes;
        insert_block(h, best + 1, tail);
        b = &h->blocks[best];
    }
    b->used = true;
    return b->begin;
}

static void plain_give_back(plain_heap *h, uint64_t begin) {
    for (size_t k = 0; k < h->n; k++) {
        if (h->blocks[k].begin == begin) h->blocks[k].used = false;
    }
    for (size_t k = 0; k + 1 < h->n;) {
        plain_block *a = &h->blocks[k], *b = a + 1;
        if (a->used || b->used || a->segment != b->segment) {
            k++;
            continue;
        }
        a->bytes += b->bytes;
        memmove(b, b + 1, (h->n - k - 2) * sizeof *b);
        h->n--;
    }
}

static void check_against_the_list(const tide_problem *p, bool caching) {
    tide_placement pl;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__placement_init(&pl, p, &err), &err);
    const tide_strategy *s =
        caching ? tide__strategy(TIDE_STRATEGY_SIM_CACHING) : tide__strategy(TIDE_STRATEGY_SIM_BFC);
    assert_tide_ok(s->place(s, p, NULL, &pl, &err), &err);
    plain_heap *h = tide_host_calloc(1, sizeof *h);
    assert_non_null(h);
    h->next_region = 2 * MIB;
    for (uint32_t tick = 0; tick < p->n_ticks; tick++) {
        for (size_t i = 0; i < p->n; i++) {
            if (p->items[i].end == tick) plain_give_back(h, pl.offsets[i]);
        }
        for (size_t i = 0; i < p->n; i++) {
            if (p->items[i].begin == tick)
                assert_int_equal(pl.offsets[i], plain_take(h, p->items[i].size_bytes, caching));
        }
    }
    assert_int_equal(pl.bytes, h->reserved);
    tide_host_free(h);
    tide__placement_deinit(&pl);
}

static uint64_t random_size(tide_rng *rng) {
    const uint64_t limits[] = {2000, 200 * KIB, 3 * MIB, 14 * MIB, 300 * MIB};
    return 1 + tide_rng_below(rng, limits[tide_rng_below(rng, 5)]);
}

static void long_runs_follow_the_rules(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        for (int i = 0; i < 400; i++) {
            char name[16];
            snprintf(name, sizeof name, "t%d", i);
            const int64_t begin = (int64_t)tide_rng_below(&rng, 150);
            put(&lt, name, random_size(&rng), begin, begin + 1 + (int64_t)tide_rng_below(&rng, seed % 2 == 0 ? 5 : 60));
        }
        tide_problems problems;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
        check_against_the_list(&problems.list[0], true);
        check_against_the_list(&problems.list[0], false);
        tide__problems_deinit(&problems);
        tide_lifetimes_deinit(&lt);
    }
}

/// An alignment beyond the granule is reached by asking for more.
static void strict_alignments_are_kept(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_aligned(&lt, "a", 512, 512, 0, 2);
    put_aligned(&lt, "b", 4096, 4096, 1, 2);
    static const char *const names[] = {"sim:caching", "sim:bfc", "sim:arena"};
    for (size_t k = 0; k < 3; k++) {
        tide_memory_plan *plan = make_plan(&lt, names[k]);
        assert_int_equal(offset_of(plan, "b"), 4096);
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(caching_by_hand),
        tide_unit_test(caching_at_its_limits),
        tide_unit_test(bfc_by_hand),
        tide_unit_test(bfc_grows_until_the_request_fits),
        tide_unit_test(arena_by_hand),
        tide_unit_test(long_runs_follow_the_rules),
        tide_unit_test(strict_alignments_are_kept),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
