// SPDX-License-Identifier: MIT
//
// planner/verify: sound plans pass; plans that are broken by hand or by chance are caught, each with its code (S23-9).
#include "tests/planner/plan_test.h"

/// Four tensors and a weight; a, b and c live together at step 1, d only after them.
static void put_sample(tide_lifetimes *lt) {
    put_aligned(lt, "a", 256, 256, 0, 2);
    put_aligned(lt, "b", 512, 256, 1, 3);
    put_aligned(lt, "c", 256, 256, 1, 2);
    put_aligned(lt, "d", 256, 256, 3, 4);
    put_persistent(lt, "w", 1000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 4);
    put_aligned(lt, "empty", 0, 256, 1, 2);
}
enum { A, B, C, D, W, EMPTY };

typedef struct mutation {
    const char *what;
    const char *strategy;
    void (*damage)(tide_memory_plan *p);
    tide_verify_code code;
    const char *words; // in the message
} mutation;

static void overlap(tide_memory_plan *p) { p->offsets[C] = p->offsets[A]; }
static void overlap_by_half(tide_memory_plan *p) { p->offsets[A] = p->offsets[B] + 256; }
static void no_offset(tide_memory_plan *p) { p->offsets[D] = TIDE_NO_OFFSET; }
static void empty_without_offset(tide_memory_plan *p) { p->offsets[EMPTY] = TIDE_NO_OFFSET; }
static void askew(tide_memory_plan *p) { p->offsets[D] = 128; }
static void beyond_the_end(tide_memory_plan *p) { p->offsets[D] = p->bytes; }
static void far_beyond(tide_memory_plan *p) { p->offsets[D] = UINT64_MAX - 255; }
static void buffer_cut(tide_memory_plan *p) { p->bytes -= 256; }
static void buffer_too_large(tide_memory_plan *p) { p->bytes += 256; }
static void weight_placed(tide_memory_plan *p) { p->offsets[W] = 0; }
static void weight_pooled(tide_memory_plan *p) { p->pools[W] = 0; }
static void naive_wrong(tide_memory_plan *p) { p->naive_bytes += 1; }
static void bound_wrong(tide_memory_plan *p) { p->lower_bound_bytes -= 256; }
static void proven_wrong(tide_memory_plan *p) { p->proven = !p->proven; }
static void align_wrong(tide_memory_plan *p) { p->align_bytes = 64; }
static void no_life(tide_memory_plan *p) { p->lifetimes.items[D].end_step = 3; }
static void life_too_long(tide_memory_plan *p) { p->lifetimes.items[D].end_step = 5; }
static void pool_in_offset_plan(tide_memory_plan *p) { p->pools[A] = 0; }
static void pools_in_offset_plan(tide_memory_plan *p) { p->n_pools = 1; }
static void size_grown(tide_memory_plan *p) { p->lifetimes.items[A].size_bytes = 600; }
static void born_earlier(tide_memory_plan *p) { p->lifetimes.items[D].begin_step = 1; }

static void move_to_pool(tide_memory_plan *p, size_t i, int32_t pool) {
    p->pool_list[p->pools[i]].n_members--;
    p->pools[i] = pool;
    p->pool_list[pool].n_members++;
    p->offsets[i] = p->pool_list[pool].offset_bytes;
}
static void one_pool_for_two(tide_memory_plan *p) { move_to_pool(p, C, p->pools[A]); }
static void pool_too_small(tide_memory_plan *p) { p->pool_list[p->pools[B]].size_bytes = 256; }
static void no_pool(tide_memory_plan *p) { p->pools[A] = TIDE_NO_POOL; }
static void no_such_pool(tide_memory_plan *p) { p->pools[A] = 99; }
static void apart_from_its_pool(tide_memory_plan *p) { p->offsets[A] = p->offsets[B]; }
static void members_miscounted(tide_memory_plan *p) { p->pool_list[0].n_members++; }
static void pool_resized(tide_memory_plan *p) { p->pool_list[0].size_bytes += 256; }
static void pools_swapped(tide_memory_plan *p) {
    for (size_t k = 0; k < p->n_pools; k++) p->pool_list[k].offset_bytes += 256;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        if (p->pools[i] != TIDE_NO_POOL) p->offsets[i] += 256;
    }
    p->bytes += 256;
}

static const mutation mutations[] = {
    {"two live tensors at one offset", "naive", overlap, TIDE_VERIFY_OVERLAP, "'c'"},
    {"two live tensors at one offset", "greedy_by_size", overlap, TIDE_VERIFY_OVERLAP, "step 1"},
    {"half an overlap", "naive", overlap_by_half, TIDE_VERIFY_OVERLAP, "share bytes"},
    {"grown after planning", "naive", size_grown, TIDE_VERIFY_OVERLAP, "share bytes"},
    {"longer alive after planning", "greedy_by_size", born_earlier, TIDE_VERIFY_OVERLAP, "'d'"},
    {"no offset", "greedy_by_size", no_offset, TIDE_VERIFY_MISSING, "'d'"},
    {"empty tensor without offset", "greedy_by_size", empty_without_offset, TIDE_VERIFY_MISSING, "'empty'"},
    {"misaligned", "greedy_by_size", askew, TIDE_VERIFY_MISALIGNED, "128"},
    {"at the buffer's end", "greedy_by_size", beyond_the_end, TIDE_VERIFY_OUT_OF_BUFFER, "'d'"},
    {"offset that wraps around", "greedy_by_size", far_beyond, TIDE_VERIFY_OUT_OF_BUFFER, "'d'"},
    {"buffer cut", "linear_scan", buffer_cut, TIDE_VERIFY_OUT_OF_BUFFER, "outside"},
    {"buffer too large", "linear_scan", buffer_too_large, TIDE_VERIFY_TOTAL, "proven"},
    {"weight has an offset", "greedy_by_size", weight_placed, TIDE_VERIFY_PERSISTENT, "'w'"},
    {"weight has a pool", "greedy_color", weight_pooled, TIDE_VERIFY_PERSISTENT, "'w'"},
    {"naive bytes", "greedy_by_size", naive_wrong, TIDE_VERIFY_TOTAL, "naive_bytes"},
    {"lower bound", "greedy_by_size", bound_wrong, TIDE_VERIFY_TOTAL, "lower_bound_bytes"},
    {"proven", "greedy_by_size", proven_wrong, TIDE_VERIFY_TOTAL, "proven"},
    {"alignment of the buffer", "greedy_by_size", align_wrong, TIDE_VERIFY_TOTAL, "align_bytes"},
    {"empty lifetime", "greedy_by_size", no_life, TIDE_VERIFY_TOTAL, "'d'"},
    {"lifetime past the last step", "greedy_by_size", life_too_long, TIDE_VERIFY_TOTAL, "'d'"},
    {"pool in an offset plan", "greedy_by_size", pool_in_offset_plan, TIDE_VERIFY_POOL_SIZE, "'a'"},
    {"pools in an offset plan", "greedy_by_size", pools_in_offset_plan, TIDE_VERIFY_POOL_SIZE, "1 pools"},
    {"two live tensors in one pool", "greedy_color", one_pool_for_two, TIDE_VERIFY_POOL_CONFLICT, "step 1"},
    {"pool smaller than a member", "greedy_color", pool_too_small, TIDE_VERIFY_POOL_SIZE, "'b'"},
    {"no pool", "greedy_color", no_pool, TIDE_VERIFY_MISSING, "'a'"},
    {"no such pool", "greedy_color", no_such_pool, TIDE_VERIFY_MISSING, "99"},
    {"apart from its pool", "greedy_color", apart_from_its_pool, TIDE_VERIFY_POOL_SIZE, "'a'"},
    {"members miscounted", "greedy_color", members_miscounted, TIDE_VERIFY_POOL_SIZE, "pool 0"},
    {"pool resized", "greedy_color", pool_resized, TIDE_VERIFY_POOL_SIZE, "fill the buffer"},
    {"gap before the pools", "greedy_color", pools_swapped, TIDE_VERIFY_POOL_SIZE, "fill the buffer"},
};

// S23-9: the checker fails on a hand-corrupted plan, each fault with its code, and names who is concerned.
static void every_fault_is_caught(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        const mutation *m = &mutations[i];
        tide_lifetimes lt = {0};
        put_sample(&lt);
        tide_memory_plan *plan = make_plan(&lt, m->strategy);
        tide_verify_result result;
        assert_tide_status(tide_plan_verify(plan, &result, NULL), TIDE_OK);
        assert_int_equal(result.code, TIDE_VERIFY_OK);
        m->damage(plan);
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_plan_verify(plan, &result, &err);
        if (st != TIDE_ERR_VERIFY || result.code != m->code)
            fail_msg("%s (%s): status %s, code '%s', want '%s'; %s", m->what, m->strategy, tide_status_name(st),
                     tide_verify_text(result.code), tide_verify_text(m->code), err.msg);
        assert_text_has(err.msg, m->words);
        assert_string_equal(err.note, tide_verify_text(m->code));
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
}

static void the_tensors_concerned_are_named(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    tide_memory_plan *plan = make_plan(&lt, "naive");
    overlap(plan);
    tide_verify_result result;
    assert_tide_status(tide_plan_verify(plan, &result, NULL), TIDE_ERR_VERIFY);
    assert_true((result.a == A && result.b == C) || (result.a == C && result.b == A));
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Random plans with one random offset: the verifier says what the O(n^2) definition says.
static void it_agrees_with_the_definition(void **state) {
    (void)state;
    size_t n_sound = 0, n_faulty = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        // Past 64 tensors the live set has more than one level.
        put_random(&lt, &rng, 2 + tide_rng_below(&rng, seed % 10 == 0 ? 200 : 30), 12, 100, true);
        tide_memory_plan *plan = make_plan(&lt, seed % 2 == 0 ? "greedy_by_size" : "naive");
        size_t i;
        do {
            i = tide_rng_below(&rng, lt.n);
        } while (lt.items[i].persistent && tide_rng_below(&rng, 20) != 0);
        if (!lt.items[i].persistent)
            plan->offsets[i] = tide_rng_below(&rng, plan->bytes + 1) & ~(lt.items[i].align_bytes - 1);
        // The total may have become too large; that is not what is asked here.
        uint64_t end = 0;
        for (size_t k = 0; k < lt.n; k++) {
            if (lt.items[k].persistent) continue;
            const uint64_t e = plan->offsets[k] + tide_lifetime_aligned_bytes(&lt.items[k]);
            if (e > end) end = e;
        }
        if (end < plan->bytes) plan->bytes = end;
        plan->proven = plan->bytes == plan->lower_bound_bytes;
        const char *fault = find_fault(plan);
        const tide_status st = tide_plan_verify(plan, NULL, NULL);
        if ((fault == NULL) != (st == TIDE_OK))
            fail_msg("seed %" PRIu64 ": definition says %s, verifier %s", seed, fault != NULL ? fault : "sound",
                     tide_status_name(st));
        n_sound += fault == NULL;
        n_faulty += fault != NULL;
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
    print_message("%zu sound, %zu faulty\n", n_sound, n_faulty);
    assert_true(n_sound > 300 && n_faulty > 300);
}

static tide_status place_all_at_zero(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    (void)err;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (item->persistent) continue;
        plan->offsets[i] = 0;
        if (tide_lifetime_aligned_bytes(item) > plan->bytes) plan->bytes = tide_lifetime_aligned_bytes(item);
    }
    return TIDE_OK;
}

// A strategy that overlaps tensors gives no plan at all: the verifier runs on every plan, in every build.
static void a_broken_strategy_gives_no_plan(void **state) {
    (void)state;
    static const tide_strategy broken = {.name = "broken", .form = TIDE_PLAN_OFFSETS, .place = place_all_at_zero};
    tide_lifetimes lt = {0};
    put_sample(&lt);
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_plan_make(&lt, &broken, NULL, &plan, &err), TIDE_ERR_VERIFY);
    assert_null(plan);
    assert_text_has(err.msg, "broken");
    assert_text_has(err.msg, "share bytes");
    tide_lifetimes_deinit(&lt);
}

static void no_memory_is_no_fault(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_sample(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    tide_status st = TIDE_ERR_NOMEM;
    for (int64_t n = 0; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = tide_plan_verify(plan, NULL, NULL);
        tide_host_fail_after(-1);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_fault_is_caught),         tide_unit_test(the_tensors_concerned_are_named),
        tide_unit_test(it_agrees_with_the_definition), tide_unit_test(a_broken_strategy_gives_no_plan),
        tide_unit_test(no_memory_is_no_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
