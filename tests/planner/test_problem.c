// SPDX-License-Identifier: MIT
//
// problem: tables of lifetimes against their own definition, byte by byte and step by step.
#include "planner/problem.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "tests/planner/plan_test.h"

static uint32_t draw(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((*state >> 33) % n);
}

enum { MAX_ITEMS = 9, MAX_STEPS = 12, MAX_BYTES = 32 };

// ---- a table by chance, with everything a lifetime can have ----

static void draw_gaps(uint64_t *rng, tide_lifetime *item, tide_gap gaps[2]) {
    const int64_t length = item->end_step - item->begin_step;
    if (length < 3 || draw(rng, 3) != 0) return;
    const int64_t begin = item->begin_step + 1, end = begin + 1 + draw(rng, (uint32_t)(length - 2));
    const uint64_t lo = draw(rng, (uint32_t)item->size_bytes),
                   hi = lo + draw(rng, (uint32_t)(item->size_bytes - lo + 1));
    gaps[0] = (tide_gap){begin, end, lo, hi};
    item->gaps = gaps;
    item->n_gaps = 1;
}

static void draw_item(uint64_t *rng, tide_lifetimes *lt, size_t i) {
    static char names[MAX_ITEMS][32];
    tide_gap gaps[2];
    snprintf(names[i], sizeof names[i], "t%zu", i);
    const int64_t begin = draw(rng, MAX_STEPS - 1);
    tide_lifetime item = an_item(names[i], 1 + draw(rng, MAX_BYTES - 8), 1u << draw(rng, 4), begin,
                                 begin + 1 + draw(rng, (uint32_t)(MAX_STEPS - begin)));
    if (item.end_step > MAX_STEPS) item.end_step = MAX_STEPS;
    item.unrounded = draw(rng, 2) == 0;
    if (draw(rng, 8) == 0) item.kind = TIDE_KIND_KV_CACHE;
    if (draw(rng, 10) == 0) item.persistent = true;
    if (!item.persistent && draw(rng, 3) == 0) item.apart_set = 1 + draw(rng, 2);
    draw_gaps(rng, &item, gaps);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
}

static void draw_table(uint64_t *rng, tide_lifetimes *lt) {
    *lt = (tide_lifetimes){.n_steps = MAX_STEPS};
    const size_t n = 1 + draw(rng, MAX_ITEMS);
    for (size_t i = 0; i < n; i++) draw_item(rng, lt, i);
    for (uint32_t i = 0; i < n; i++) {
        // What the table refuses is no alias.
        if (draw(rng, 2) == 0)
            (void)!tide_lifetimes_alias(lt, i, TIDE_ALIAS_GIVEN, draw(rng, (uint32_t)n), draw(rng, 8), NULL);
    }
}

// ---- the definition ----

/// Whether byte `b` of the class of root `root` is needed at `step`: where the root is rounded up, in whole multiples
/// of its alignment.
static bool is_needed(const tide_lifetimes *lt, uint32_t root, int64_t step, uint64_t b) {
    for (uint32_t i = 0; i < lt->n; i++) {
        const tide_lifetime *item = &lt->items[i];
        uint64_t at;
        if (item->persistent || tide_lifetimes_root(lt, i, &at) != root) continue;
        if (step < item->begin_step || step >= item->end_step) continue;
        uint64_t lo = 0, hi = i == root ? tide_lifetime_aligned_bytes(item) : item->size_bytes;
        for (uint32_t g = 0; g < item->n_gaps; g++) {
            if (item->gaps[g].begin_step <= step && step < item->gaps[g].end_step) {
                lo = item->gaps[g].lo_bytes;
                hi = item->gaps[g].hi_bytes;
            }
        }
        if (lo == hi) continue;
        const uint64_t cell = lt->items[root].unrounded ? 1 : lt->items[root].align_bytes;
        const uint64_t from = (at + lo) / cell * cell, to = (at + hi + cell - 1) / cell * cell;
        if (from <= b && b < to && b < tide_lifetime_aligned_bytes(&lt->items[root])) return true;
    }
    return false;
}

/// The first step after tick `t`; INT64_MAX: it is the last one, and no table says where it ends.
static int64_t end_of_tick(const tide_problem *p, uint32_t t) {
    return t + 1 < p->n_ticks && p->tick_steps[t + 1] >= 0 ? p->tick_steps[t + 1] : INT64_MAX;
}

static bool has_byte(const tide_problem *p, const tide_item *item, int64_t step, uint64_t b, bool *at_the_end) {
    size_t n = 0;
    for (uint32_t r = 0; r < item->n_rects; r++) {
        const tide_rect *rect = &tide__rects_of(p, item)[r];
        for (uint32_t t = rect->begin; t < rect->end; t++) {
            if (p->tick_steps[t] < 0 || p->tick_steps[t] > step || step >= end_of_tick(p, t)) continue;
            n += rect->lo_bytes <= b && b < rect->hi_bytes;
            *at_the_end = end_of_tick(p, t) == INT64_MAX;
        }
    }
    assert_in_range(n, 0, 1); // rectangles are disjoint
    return n == 1;
}

static void check_items(const tide_lifetimes *lt, const tide_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        const tide_lifetime *root = &lt->items[item->lifetime];
        assert_int_equal(root->alias, TIDE_ALIAS_NONE);
        assert_int_equal(item->size_bytes, tide_lifetime_aligned_bytes(root));
        uint32_t begin = UINT32_MAX, end = 0;
        for (uint32_t r = 0; r < item->n_rects; r++) {
            const tide_rect *rect = &tide__rects_of(p, item)[r];
            assert_true(rect->begin < rect->end && rect->lo_bytes < rect->hi_bytes);
            assert_true(rect->hi_bytes <= item->size_bytes && rect->end <= p->n_ticks);
            assert_int_equal(rect->lo_bytes % p->grain_bytes, 0);
            assert_int_equal(rect->hi_bytes % p->grain_bytes, 0);
            if (r > 0) assert_true(rect[-1].begin <= rect->begin);
            if (rect->begin < begin) begin = rect->begin;
            if (rect->end > end) end = rect->end;
        }
        assert_int_equal(begin, item->begin);
        assert_int_equal(end, item->end);
    }
}

static void check_bytes(const tide_lifetimes *lt, const tide_problem *p) {
    uint64_t most = 0;
    for (int64_t step = 0; step < MAX_STEPS; step++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < p->n; i++) {
            for (uint64_t b = 0; b < MAX_BYTES + 8; b++) {
                bool at_the_end = false;
                const bool needed = is_needed(lt, p->items[i].lifetime, step, b);
                const bool there = has_byte(p, &p->items[i], step, b, &at_the_end);
                assert_true(there == needed || (there && at_the_end));
                sum += needed;
            }
        }
        if (sum > most) most = sum;
    }
    assert_int_equal(p->lower_bound_bytes, most);
}

static bool ticks_meet(const tide_problem *p, const tide_item *a, const tide_item *b) {
    for (uint32_t i = 0; i < a->n_rects; i++) {
        for (uint32_t k = 0; k < b->n_rects; k++) {
            const tide_rect *r = &tide__rects_of(p, a)[i], *s = &tide__rects_of(p, b)[k];
            if (p->tick_steps[r->begin] < 0 && r->begin == s->begin) return true;
        }
    }
    return false;
}

static void check_apart(const tide_lifetimes *lt, const tide_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < i; k++) {
            const uint32_t a = lt->items[p->items[i].lifetime].apart_set, b = lt->items[p->items[k].lifetime].apart_set;
            assert_int_equal(ticks_meet(p, &p->items[i], &p->items[k]), a != 0 && a == b);
        }
    }
}

static void check_naive(const tide_lifetimes *lt, const tide_problem *p) {
    uint64_t sum = 0, peak = 0;
    for (int64_t step = 0; step < MAX_STEPS; step++) {
        uint64_t live = 0;
        for (size_t i = 0; i < lt->n; i++) {
            const tide_lifetime *item = &lt->items[i];
            if (item->persistent || item->kind != p->kind) continue;
            if (step == 0) sum += tide_lifetime_aligned_bytes(item);
            if (item->begin_step <= step && step < item->end_step) live += tide_lifetime_aligned_bytes(item);
        }
        if (live > peak) peak = live;
    }
    assert_int_equal(p->naive_bytes, sum);
    assert_int_equal(p->naive_peak_bytes, peak);
}

static void every_class_is_the_union_of_its_members_X_6(void **state) {
    (void)state;
    uint64_t rng = 4;
    size_t n_aliases = 0, n_rects = 0, n_two = 0;
    const size_t n = (size_t)tide_test_rounds(2200, 20000);
    for (size_t round = 0; round < n; round++) {
        tide_lifetimes lt;
        draw_table(&rng, &lt);
        tide_problems all;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__problems_make(&lt, &all, &err), &err);
        uint64_t bound = 0, told;
        for (size_t k = 0; k < all.n; k++) {
            const tide_problem *p = &all.list[k];
            check_items(&lt, p);
            check_bytes(&lt, p);
            check_apart(&lt, p);
            check_naive(&lt, p);
            assert_true(p->proved_bytes >= p->lower_bound_bytes);
            bound += p->lower_bound_bytes;
            n_rects += p->n_rects - p->n;
        }
        assert_tide_ok(tide_lower_bound(&lt, &told, NULL, &err), &err);
        assert_int_equal(told, bound);
        for (size_t i = 0; i < lt.n; i++) n_aliases += lt.items[i].alias != TIDE_ALIAS_NONE;
        n_two += all.n == 2;
        tide__problems_deinit(&all);
        tide_lifetimes_deinit(&lt);
    }
    // The draw must have made what is tested here.
    assert_true(n_aliases > n / 4 && n_rects > n && n_two > n / 10);
}

// ---- canonical order ----

static void table_order_does_not_matter_S23_11(void **state) {
    (void)state;
    uint64_t rng = 11;
    for (int round = 0; round < 2000; round++) {
        tide_lifetimes lt, turned = {.n_steps = MAX_STEPS};
        draw_table(&rng, &lt);
        for (size_t i = lt.n; i > 0; i--) {
            tide_lifetime item = lt.items[i - 1];
            item.alias = TIDE_ALIAS_NONE;
            if (item.apart_set != 0) item.apart_set = 7 - item.apart_set; // the numbers of sets are only names
            assert_int_equal(tide_lifetimes_add(&turned, &item, NULL), TIDE_OK);
        }
        const uint32_t last = (uint32_t)lt.n - 1;
        for (uint32_t i = 0; i < lt.n; i++) {
            const tide_lifetime *item = &lt.items[i];
            if (item->alias != TIDE_ALIAS_NONE)
                assert_int_equal(tide_lifetimes_alias(&turned, last - i, item->alias, last - item->alias_of,
                                                      item->alias_offset_bytes, NULL),
                                 TIDE_OK);
        }
        tide_problems a, b;
        assert_int_equal(tide__problems_make(&lt, &a, NULL), TIDE_OK);
        assert_int_equal(tide__problems_make(&turned, &b, NULL), TIDE_OK);
        assert_int_equal(a.n, b.n);
        for (size_t k = 0; k < a.n; k++) {
            assert_int_equal(a.list[k].n, b.list[k].n);
            assert_int_equal(a.list[k].n_rects, b.list[k].n_rects);
            assert_memory_equal(a.list[k].rects, b.list[k].rects, a.list[k].n_rects * sizeof *a.list[k].rects);
            for (size_t i = 0; i < a.list[k].n; i++)
                assert_string_equal(lt.items[a.list[k].items[i].lifetime].name,
                                    turned.items[b.list[k].items[i].lifetime].name);
        }
        tide__problems_deinit(&a);
        tide__problems_deinit(&b);
        tide_lifetimes_deinit(&lt);
        tide_lifetimes_deinit(&turned);
    }
}

// ---- bounds ----

/// The smallest height over all offsets, by trying them: items alive together must not overlap.
static uint64_t smallest(const tide_problem *p, uint64_t *offsets, size_t n_placed, uint64_t height, uint64_t best) {
    if (height >= best) return best;
    if (n_placed == p->n) return height;
    const tide_item *item = &p->items[n_placed];
    for (uint64_t at = 0; at + item->size_bytes < best; at += item->align_bytes) {
        bool free = true;
        for (size_t k = 0; k < n_placed && free; k++) {
            const tide_item *other = &p->items[k];
            const bool meet = other->begin < item->end && item->begin < other->end;
            free = !meet || at + item->size_bytes <= offsets[k] || offsets[k] + other->size_bytes <= at;
        }
        if (!free) continue;
        offsets[n_placed] = at;
        const uint64_t end = at + item->size_bytes;
        best = smallest(p, offsets, n_placed + 1, end > height ? end : height, best);
    }
    return best;
}

static void bounds_are_never_above_the_optimum(void **state) {
    (void)state;
    uint64_t rng = 5;
    size_t n_alignment = 0, n_tight = 0;
    for (int round = 0; round < 3000; round++) {
        tide_item items[4];
        const size_t n = 1 + draw(&rng, 4);
        for (size_t i = 0; i < n; i++) {
            const uint32_t begin = draw(&rng, 3);
            items[i] = (tide_item){.size_bytes = 1 + draw(&rng, 9),
                                   .align_bytes = 1u << draw(&rng, 4),
                                   .fixed_offset = TIDE_NO_OFFSET,
                                   .begin = begin,
                                   .end = begin + 1 + draw(&rng, 3)};
        }
        tide_problem p;
        assert_int_equal(tide__problem_of_items(items, n, &p, NULL), TIDE_OK);
        uint64_t offsets[4];
        const uint64_t optimum = smallest(&p, offsets, 0, 0, 100);
        assert_true(p.lower_bound_bytes <= p.proved_bytes && p.proved_bytes <= optimum);
        n_alignment += p.proof == TIDE_PROOF_ALIGNMENT;
        n_tight += p.proof == TIDE_PROOF_ALIGNMENT && p.proved_bytes == optimum;
        tide__problem_deinit(&p);
    }
    assert_true(n_alignment > 300);
    assert_true(n_tight > n_alignment / 2);
}

static void given_offsets_and_sets_raise_the_bound(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_lifetime item = an_item("pinned", 10, 2, 0, 1);
    item.fixed = true;
    item.fixed_offset_bytes = 100;
    assert_int_equal(tide_lifetimes_add(&lt, &item, NULL), TIDE_OK);
    put(&lt, "free", 20, 0, 1);
    tide_problems all;
    assert_int_equal(tide__problems_make(&lt, &all, NULL), TIDE_OK);
    assert_int_equal(all.list[0].lower_bound_bytes, 30);
    assert_int_equal(all.list[0].proved_bytes, 110);
    assert_int_equal(all.list[0].proof, TIDE_PROOF_FIXED);
    tide__problems_deinit(&all);
    tide_lifetimes_deinit(&lt);
    for (int i = 0; i < 3; i++) {
        item = an_item((const char *[]){"a", "b", "c"}[i], 7, 1, i, i + 1);
        item.apart_set = 9;
        assert_int_equal(tide_lifetimes_add(&lt, &item, NULL), TIDE_OK);
    }
    assert_int_equal(tide__problems_make(&lt, &all, NULL), TIDE_OK);
    assert_int_equal(all.list[0].lower_bound_bytes, 7);
    assert_int_equal(all.list[0].proved_bytes, 21);
    assert_int_equal(all.list[0].proof, TIDE_PROOF_APART);
    tide__problems_deinit(&all);
    tide_lifetimes_deinit(&lt);
}

static void put_fixed(tide_lifetimes *lt, const char *name, uint64_t bytes, uint64_t at, int64_t begin, int64_t end) {
    tide_lifetime item = an_item(name, bytes, 1, begin, end);
    item.fixed = true;
    item.fixed_offset_bytes = at;
    assert_int_equal(tide_lifetimes_add(lt, &item, NULL), TIDE_OK);
}

static void given_offsets_that_overlap_are_refused(void **state) {
    (void)state;
    uint64_t rng = 8;
    size_t n_refused = 0, n_taken = 0;
    for (int round = 0; round < tide_test_rounds(3300, 20000); round++) {
        tide_lifetimes lt = {0};
        const size_t n = 2 + draw(&rng, 5);
        for (size_t i = 0; i < n; i++) {
            char name[32];
            snprintf(name, sizeof name, "f%zu", i);
            const int64_t begin = draw(&rng, 8);
            put_fixed(&lt, name, 1 + draw(&rng, 6), draw(&rng, 30), begin, begin + 1 + draw(&rng, 5));
        }
        bool overlap = false;
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < i; k++) {
                const tide_lifetime *a = &lt.items[i], *b = &lt.items[k];
                overlap = overlap || (a->begin_step < b->end_step && b->begin_step < a->end_step &&
                                      a->fixed_offset_bytes < b->fixed_offset_bytes + b->size_bytes &&
                                      b->fixed_offset_bytes < a->fixed_offset_bytes + a->size_bytes);
            }
        }
        tide_problems all;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide__problems_make(&lt, &all, &err);
        assert_int_equal(st, overlap ? TIDE_ERR_INVALID : TIDE_OK);
        if (overlap) assert_text_has(err.msg, "share bytes");
        n_refused += overlap;
        n_taken += !overlap;
        if (st == TIDE_OK) tide__problems_deinit(&all);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_refused > 1000 && n_taken > 1000);
}

// ---- edges ----

static void an_empty_table_has_no_problem(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_problems all;
    assert_int_equal(tide__problems_make(&lt, &all, NULL), TIDE_OK);
    assert_int_equal(all.n, 0);
    tide__problems_deinit(&all);
    put(&lt, "empty", 0, 0, 3);
    put_persistent(&lt, "weight", 50, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    assert_int_equal(tide__problems_make(&lt, &all, NULL), TIDE_OK);
    assert_int_equal(all.n, 0);
    tide__problems_deinit(&all);
    tide_lifetimes_deinit(&lt);
}

static void sizes_past_63_bits_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", (uint64_t)INT64_MAX - 5, 0, 1);
    put(&lt, "b", 6, 1, 2);
    tide_problems all;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__problems_make(&lt, &all, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "'b'");
    tide_lifetimes_deinit(&lt);
}

/// Sizes that fit, at offsets that do not: a search for a place would go past 2^64 and come back to 0.
static void offsets_past_63_bits_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_problems all;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetime item = an_item("low", 1, UINT64_C(1) << 62, 0, 2);
    item.unrounded = true;
    assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    assert_tide_ok(tide__problems_make(&lt, &all, &err), &err);
    tide__problems_deinit(&all);
    item = an_item("zenith", 1, UINT64_C(1) << 62, 0, 2);
    item.unrounded = true;
    assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    assert_tide_status(tide__problems_make(&lt, &all, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "'zenith'");
    tide_lifetimes_deinit(&lt);

    item = an_item("given", 64, 64, 0, 2);
    item.fixed = true;
    item.fixed_offset_bytes = (UINT64_C(1) << 63) - 128;
    assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    put(&lt, "fits", 63, 0, 2);
    assert_tide_ok(tide__problems_make(&lt, &all, &err), &err);
    tide__problems_deinit(&all);
    put(&lt, "other", 1, 0, 2);
    assert_tide_status(tide__problems_make(&lt, &all, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "'other'");
    tide_lifetimes_deinit(&lt);

    const tide_item bare = {
        .size_bytes = 1, .align_bytes = UINT64_C(1) << 62, .fixed_offset = TIDE_NO_OFFSET, .begin = 0, .end = 1};
    tide_problem p;
    assert_tide_status(tide__problem_of_items((tide_item[]){bare, bare}, 2, &p, &err), TIDE_ERR_OVERFLOW);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    uint64_t rng = 21;
    tide_lifetimes lt;
    draw_table(&rng, &lt);
    while (lt.n < 5) {
        tide_lifetimes_deinit(&lt);
        draw_table(&rng, &lt);
    }
    tide_status st = TIDE_ERR_NOMEM;
    for (uint64_t n = 0; st != TIDE_OK; n++) {
        assert_true(n < 500);
        tide_problems all;
        tide_host_fail_after((int64_t)n);
        st = tide__problems_make(&lt, &all, NULL);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            assert_true(n > 5);
            tide__problems_deinit(&all);
        } else {
            assert_int_equal(st, TIDE_ERR_NOMEM);
        }
    }
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_class_is_the_union_of_its_members_X_6),
        tide_unit_test(table_order_does_not_matter_S23_11),
        tide_unit_test(bounds_are_never_above_the_optimum),
        tide_unit_test(given_offsets_and_sets_raise_the_bound),
        tide_unit_test(given_offsets_that_overlap_are_refused),
        tide_unit_test(an_empty_table_has_no_problem),
        tide_unit_test(sizes_past_63_bits_are_refused),
        tide_unit_test(offsets_past_63_bits_are_refused),
        tide_unit_test(every_failed_allocation_is_reported_and_leaks_nothing),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
