// SPDX-License-Identifier: MIT
//
// planner/verify against the definition of a sound plan, byte by byte and step by step: random tables with every
// feature there is, placed by chance, soundly, and soundly but for one blow.
#include "tests/planner/verify_test.h"

enum { MAX_N = 12, N_STEPS = 6, MAX_BYTES = 10 };

/// Plans of all three kinds are some more than these.
static size_t n_instances(void) { return (size_t)tide_test_rounds(8000, 100000); }

typedef struct tally {
    size_t n, n_sound, n_aliases, n_gaps;
    size_t n_code[TIDE_VERIFY_SPAN + 1];
} tally;

static void hold_against_definition(const tide_memory_plan *p, uint64_t seed, const char *what, tally *t) {
    const uint32_t faults = def_faults(p);
    tide_verify_result result;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_plan_verify(p, &result, &err);
    const bool agree = faults == 0 ? st == TIDE_OK && result.code == TIDE_VERIFY_OK
                                   : st == TIDE_ERR_VERIFY && (faults & UINT32_C(1) << result.code) != 0;
    if (!agree)
        fail_msg("seed %" PRIu64 ", %s: the definition has faults %#" PRIx32 ", the verifier says %s, '%s': %s", seed,
                 what, faults, tide_status_name(st), tide_verify_text(result.code), err.msg);
    t->n++;
    t->n_sound += faults == 0;
    t->n_code[result.code]++;
}

/// Mostly few tensors, which is where everything happens; past 64 the verifier's sets have more than one level.
static tide_memory_plan *random_plan(tide_rng *rng, const char *name, tide_plan_form form, tally *t) {
    tide_lifetimes lt = {0};
    const size_t n = one_in(rng, 5000) ? 80 : 1 + tide_rng_below(rng, MAX_N);
    put_all_features(&lt, rng, n, N_STEPS, MAX_BYTES);
    for (size_t i = 0; i < lt.n; i++) {
        t->n_aliases += lt.items[i].alias != TIDE_ALIAS_NONE;
        t->n_gaps += lt.items[i].n_gaps > 0;
    }
    tide_memory_plan *p = bare_plan(&lt, name, form);
    tide_lifetimes_deinit(&lt);
    return p;
}

/// Roots fall where they will: mostly on each other. With much room they are often sound.
static void by_chance(uint64_t seed, tally *t) {
    tide_rng rng = {seed};
    tide_memory_plan *p = random_plan(&rng, one_in(&rng, 4) ? "sim:chance" : "chance", TIDE_PLAN_OFFSETS, t);
    place_anywhere(p, &rng, one_in(&rng, 2) ? 24 : 160);
    settle(p);
    hold_against_definition(p, seed, "by chance", t);
    tide_memory_plan_destroy(p);
}

/// One blow at a plan that was sound; the numbers follow or do not.
static void strike(tide_memory_plan *p, tide_rng *rng) {
    const size_t i = tide_rng_below(rng, p->lifetimes.n);
    tide_lifetime *item = &p->lifetimes.items[i];
    tide_plan_buffer *b = p->n_buffers > 0 ? &p->buffers[tide_rng_below(rng, p->n_buffers)] : NULL;
    switch (tide_rng_below(rng, 14)) {
    case 0:
        p->offsets[i] = tide_rng_below(rng, 40);
        return;
    case 1: // moved, and what lies in it too
        if (def_is_root(&p->lifetimes, i)) p->offsets[i] = tide_rng_below(rng, 6) * item->align_bytes;
        follow_targets(p);
        settle(p);
        return;
    case 2:
        if (item->end_step < p->lifetimes.n_steps) item->end_step++;
        settle(p);
        return;
    case 3:
        if (item->n_gaps > 0) item->n_gaps--;
        settle(p);
        return;
    case 4:
        if (def_is_root(&p->lifetimes, i)) item->apart_set = 1;
        return;
    case 5:
        if (def_is_root(&p->lifetimes, i)) item->fixed = !item->fixed;
        return;
    case 6: // a view that is none any more
        item->alias = TIDE_ALIAS_NONE;
        settle(p);
        return;
    case 7:
        if (b != NULL) b->bytes += tide_rng_below(rng, 9);
        settle_sums(p);
        return;
    case 8:
        if (b != NULL) b->bytes -= tide_rng_below(rng, b->bytes + 1);
        settle_sums(p);
        return;
    case 9:
        if (b != NULL) b->proved_bytes += tide_rng_below(rng, 3);
        if (b != NULL && one_in(rng, 2)) b->proof = (tide_proof)tide_rng_below(rng, TIDE_PROOF_SEARCH + 1);
        settle_sums(p);
        return;
    case 10:
        if (b != NULL) b->naive_peak_bytes += tide_rng_below(rng, 2);
        if (one_in(rng, 2)) settle_sums(p);
        return;
    case 11:
        if (b != NULL) b->lower_bound_bytes -= tide_rng_below(rng, 2);
        if (one_in(rng, 2)) settle_sums(p);
        return;
    case 12:
        if (b != NULL && one_in(rng, 2)) *b = p->buffers[0];
        if (one_in(rng, 2)) p->proven = one_in(rng, 2);
        if (one_in(rng, 2)) settle_sums(p);
        return;
    default:
        if (one_in(rng, 2) && p->n_pools > 0) {
            p->pools[i] = (int32_t)tide_rng_below(rng, p->n_pools + 1) - 1;
        } else {
            p->offsets[i] = TIDE_NO_OFFSET;
        }
        return;
    }
}

static void placed_soundly(uint64_t seed, tally *t) {
    tide_rng rng = {seed};
    tide_memory_plan *p = random_plan(&rng, "lowest", TIDE_PLAN_OFFSETS, t);
    if (place_lowest(p)) {
        settle(p);
        const size_t n_sound = t->n_sound;
        hold_against_definition(p, seed, "placed soundly", t);
        assert_int_equal(t->n_sound, n_sound + 1);
        strike(p, &rng);
        hold_against_definition(p, seed, "struck", t);
    }
    tide_memory_plan_destroy(p);
}

/// Each root joins the first pool of its own buffer in which no tensor is needed at the same time or must be apart
/// from it.
static void pool_soundly(tide_memory_plan *p) {
    const tide_lifetimes *lt = &p->lifetimes;
    for (size_t i = 0; i < lt->n; i++) {
        int64_t begin = 0, end = 0;
        if (!def_is_root(lt, i)) continue;
        p->offsets[i] = 0;
        if (!def_takes_space(lt, i, &begin, &end)) continue;
        const uint32_t buffer = (uint32_t)def_buffer_of(p, i);
        size_t k = 0;
        for (size_t j = 0; j < i && k < p->n_pools;) {
            int64_t b = 0, e = 0;
            const bool same_set = lt->items[i].apart_set != 0 && lt->items[i].apart_set == lt->items[j].apart_set;
            const bool bars =
                p->pools[j] == (int32_t)k && def_takes_space(lt, j, &b, &e) && ((b < end && begin < e) || same_set);
            if (!bars && p->pool_list[k].buffer == buffer) {
                j++;
                continue;
            }
            k++;
            j = 0;
        }
        if (k < p->n_pools && p->pool_list[k].buffer != buffer) k = p->n_pools;
        if (k == p->n_pools) p->pool_list[p->n_pools++] = (tide_plan_pool){.buffer = buffer};
        p->pools[i] = (int32_t)k;
        p->pool_list[k].n_members++;
        if (def_own_bytes(&lt->items[i]) > p->pool_list[k].size_bytes)
            p->pool_list[k].size_bytes = def_own_bytes(&lt->items[i]);
    }
}

/// Sizes are rounded up to 8, the strictest alignment there is, where that is no waste: all are then of alignment 8.
static void lay_end_to_end(tide_memory_plan *p) {
    for (size_t b = 0; b < p->n_buffers; b++) {
        uint64_t at = 0;
        for (size_t k = 0; k < p->n_pools; k++) {
            tide_plan_pool *pool = &p->pool_list[k];
            if (pool->buffer != b) continue;
            pool->size_bytes = def_rounded(pool->size_bytes, def_align(&p->lifetimes, &p->buffers[b]));
            pool->offset_bytes = at;
            at += pool->size_bytes;
        }
    }
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        if (p->pools[i] != TIDE_NO_POOL) p->offsets[i] = p->pool_list[p->pools[i]].offset_bytes;
    }
    follow_targets(p);
}

static void pooled(uint64_t seed, tally *t) {
    tide_rng rng = {seed};
    tide_memory_plan *p = random_plan(&rng, "pools", TIDE_PLAN_POOLS, t);
    for (size_t i = 0; i < p->lifetimes.n; i++) p->lifetimes.items[i].fixed = false; // pools lie where they lie
    pool_soundly(p);
    lay_end_to_end(p);
    settle(p);
    hold_against_definition(p, seed, "pooled", t);
    if (one_in(&rng, 2) && p->n_pools > 0) {
        const size_t i = tide_rng_below(&rng, p->lifetimes.n);
        tide_plan_pool *pool = &p->pool_list[tide_rng_below(&rng, p->n_pools)];
        switch (tide_rng_below(&rng, 5)) {
        case 4: // moved with all its members
            pool->offset_bytes = 8 * tide_rng_below(&rng, 4);
            for (size_t k = 0; k < p->lifetimes.n; k++) {
                if (p->pools[k] == (int32_t)(pool - p->pool_list)) p->offsets[k] = pool->offset_bytes;
            }
            follow_targets(p);
            break;
        case 0: // joins another
            if (p->pools[i] == TIDE_NO_POOL) break;
            p->pool_list[p->pools[i]].n_members--;
            p->pools[i] = (int32_t)(pool - p->pool_list);
            p->offsets[i] = pool->offset_bytes;
            pool->n_members++;
            follow_targets(p);
            break;
        case 1:
            pool->size_bytes += tide_rng_below(&rng, 3);
            break;
        case 2:
            pool->buffer = (uint32_t)tide_rng_below(&rng, p->n_buffers + 1);
            break;
        default:
            pool->n_members += tide_rng_below(&rng, 2);
            break;
        }
    } else {
        strike(p, &rng);
    }
    hold_against_definition(p, seed, "pooled and struck", t);
    tide_memory_plan_destroy(p);
}

static void report(const char *what, const tally *t) {
    print_message("%s: %zu plans, %zu sound, %zu aliases, %zu tensors with gaps;", what, t->n, t->n_sound, t->n_aliases,
                  t->n_gaps);
    for (size_t k = 0; k <= TIDE_VERIFY_SPAN; k++) {
        if (t->n_code[k] > 0) print_message(" %s %zu;", tide_verify_text((tide_verify_code)k), t->n_code[k]);
    }
    print_message("\n");
}

// S23-7, S23-9: tensors that are needed at one step never share a byte. Places are random here.
static void random_places(void **state) {
    (void)state;
    const size_t n = n_instances();
    tally t = {0};
    for (uint64_t seed = 0; seed < n / 2; seed++) by_chance(seed, &t);
    report("by chance", &t);
    assert_true(t.n_sound > n / 100 && t.n - t.n_sound > n / 10 && t.n_aliases > n / 100 && t.n_gaps > n / 100);
}

static void sound_places_and_one_blow(void **state) {
    (void)state;
    const size_t n = n_instances();
    tally t = {0};
    for (uint64_t seed = 0; seed < n / 2; seed++) placed_soundly(seed, &t);
    report("sound and struck", &t);
    assert_true(t.n_sound > n / 5 && t.n - t.n_sound > n / 10);
    static const tide_verify_code seen[] = {TIDE_VERIFY_MISSING, TIDE_VERIFY_MISALIGNED, TIDE_VERIFY_OUT_OF_BUFFER,
                                            TIDE_VERIFY_OVERLAP, TIDE_VERIFY_PERSISTENT, TIDE_VERIFY_TOTAL,
                                            TIDE_VERIFY_ALIAS,   TIDE_VERIFY_FIXED,      TIDE_VERIFY_APART,
                                            TIDE_VERIFY_BUFFER,  TIDE_VERIFY_PROOF};
    for (size_t k = 0; k < sizeof seen / sizeof seen[0]; k++) {
        if (t.n_code[seen[k]] < n / 5000) fail_msg("'%s' was hardly met", tide_verify_text(seen[k]));
    }
}

// S23-9: conflicting tensors never get the same pool.
static void pools_and_one_blow(void **state) {
    (void)state;
    const size_t n = n_instances();
    tally t = {0};
    for (uint64_t seed = 0; seed < n / 8; seed++) pooled(seed, &t);
    report("pooled and struck", &t);
    assert_true(t.n_sound > n / 20 && t.n_code[TIDE_VERIFY_POOL_CONFLICT] > n / 1000 &&
                t.n_code[TIDE_VERIFY_POOL_SIZE] > n / 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(random_places),
        tide_unit_test(sound_places_and_one_blow),
        tide_unit_test(pools_and_one_blow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
