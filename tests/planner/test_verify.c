// SPDX-License-Identifier: MIT
//
// planner/verify: a sound plan with everything a plan can have passes; broken by hand in many ways, each is caught with
// exactly its code, and the tensors concerned are named (S23-9).
#include "core/base/assert.h"
#include "tests/planner/verify_test.h"

// The offset plan, Workspace of the CPU, alignment 64:
//
//     bytes
//     1088 +--------------------------------------------+
//          | gappy          | bytes 0..64  | all | none | all     steps 2-4: stays lies above what it keeps
//      896 +--------------------------------------------+         steps 5-7: guest lies where it was
//      512 | fixed (100 bytes as they are)              |
//      448 | apart2, step 8 |
//      384 | apart1, step 0 |                 plain (step 8) at 0
//      256 +--------------------------------------------+
//          |  part1 [2,5)         | whole   | view [5,8)
//      128 +                      | [4,6)   |  slice [7,9) of it, bytes 64..128
//          |  part0 [1,4)         |         |
//        0 +--------------------------------------------+--> steps 0 … 9
enum {
    WHOLE,
    PART0,
    PART1,
    VIEW,
    SLICE,
    FIXED,
    GAPPY,
    STAYS,
    GUEST,
    APART1,
    APART2,
    PLAIN,
    EMPTY,
    WEIGHT,
    CACHE,
    FAR,
    N
};

static void put_item(tide_lifetimes *lt, const char *name, uint64_t bytes, int64_t begin, int64_t end) {
    put_aligned(lt, name, bytes, 64, begin, end);
}

static tide_lifetime *last(tide_lifetimes *lt) { return &lt->items[lt->n - 1]; }

static void lie_inside(tide_lifetimes *lt, uint32_t i, tide_alias_kind kind, uint32_t of, uint64_t offset) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_alias(lt, i, kind, of, offset, &err), &err);
}

static void put_sample(tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    put_item(lt, "whole", 256, 4, 6);
    put_item(lt, "part0", 128, 1, 4);
    put_item(lt, "part1", 128, 2, 5);
    put_item(lt, "view", 256, 5, 8);
    put_item(lt, "slice", 64, 7, 9);
    tide_lifetime fixed = an_item("fixed", 100, 4, 0, 9);
    fixed.unrounded = true;
    fixed.fixed = true;
    fixed.fixed_offset_bytes = 512;
    assert_tide_ok(tide_lifetimes_add(lt, &fixed, &err), &err);
    tide_lifetime gappy = an_item("gappy", 192, 64, 0, 9);
    gappy.gaps = (tide_gap[]){{2, 4, 0, 64}, {5, 7, 0, 0}};
    gappy.n_gaps = 2;
    assert_tide_ok(tide_lifetimes_add(lt, &gappy, &err), &err);
    put_item(lt, "stays", 128, 2, 4);
    put_item(lt, "guest", 180, 5, 7);
    put_item(lt, "apart1", 64, 0, 1);
    last(lt)->apart_set = 7;
    put_item(lt, "apart2", 60, 8, 9);
    last(lt)->apart_set = 7;
    put_item(lt, "plain", 64, 8, 9);
    put_item(lt, "empty", 0, 1, 2);
    put_persistent(lt, "weight", 1000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 9);
    put_item(lt, "cache", 64, 0, 9);
    last(lt)->kind = TIDE_KIND_KV_CACHE;
    put_item(lt, "far", 64, 3, 5);
    last(lt)->device = (tide_device){(tide_device_type)1, 0};
    lie_inside(lt, PART0, TIDE_ALIAS_PART, WHOLE, 0);
    lie_inside(lt, PART1, TIDE_ALIAS_PART, WHOLE, 128);
    lie_inside(lt, VIEW, TIDE_ALIAS_VIEW, WHOLE, 0);
    lie_inside(lt, SLICE, TIDE_ALIAS_SLICE, VIEW, 64);
    assert_int_equal(lt->n, N);
}

static tide_memory_plan *offset_plan(void) {
    static const uint64_t places[N] = {[WHOLE] = 0,    [FIXED] = 512,  [GAPPY] = 896, [STAYS] = 960, [GUEST] = 896,
                                       [APART1] = 384, [APART2] = 448, [PLAIN] = 0,   [EMPTY] = 0,   [CACHE] = 0};
    tide_lifetimes lt = {0};
    put_sample(&lt);
    tide_memory_plan *p = bare_plan(&lt, "by hand", TIDE_PLAN_OFFSETS);
    tide_lifetimes_deinit(&lt);
    for (size_t i = 0; i < N; i++) {
        if (def_is_root(&p->lifetimes, i)) p->offsets[i] = places[i];
    }
    follow_targets(p);
    settle(p);
    assert_int_equal(p->n_buffers, 3);
    return p;
}

/// The same tensors one at a time in pools; no tensor is fixed, and a tensor with gaps has a pool of its own.
static tide_memory_plan *pool_plan(void) {
    static const int32_t pools[N] = {[WHOLE] = 0,  [FIXED] = 1,  [GAPPY] = 2, [STAYS] = 3, [GUEST] = 3,
                                     [APART1] = 3, [APART2] = 4, [PLAIN] = 3, [CACHE] = 5, [FAR] = 6};
    tide_lifetimes lt = {0};
    put_sample(&lt);
    lt.items[FIXED].fixed = false;
    tide_memory_plan *p = bare_plan(&lt, "pools by hand", TIDE_PLAN_POOLS);
    tide_lifetimes_deinit(&lt);
    p->n_pools = 7;
    uint64_t ends[3] = {0};
    for (size_t k = 0; k < p->n_pools; k++) {
        tide_plan_pool *pool = &p->pool_list[k];
        for (size_t i = 0; i < N; i++) {
            if (!def_is_root(&p->lifetimes, i) || i == EMPTY || pools[i] != (int32_t)k) continue;
            const uint64_t bytes = def_rounded(def_own_bytes(&p->lifetimes.items[i]), 64);
            if (bytes > pool->size_bytes) pool->size_bytes = bytes;
            p->pools[i] = pools[i];
            pool->n_members++;
            pool->buffer = (uint32_t)def_buffer_of(p, i);
        }
        pool->offset_bytes = ends[pool->buffer];
        ends[pool->buffer] += pool->size_bytes;
    }
    for (size_t i = 0; i < N; i++) {
        if (def_is_root(&p->lifetimes, i))
            p->offsets[i] = p->pools[i] >= 0 ? p->pool_list[p->pools[i]].offset_bytes : 0;
    }
    follow_targets(p);
    settle(p);
    return p;
}

// ---- blows ----

typedef void blow(tide_memory_plan *p);

// places
static void no_offset(tide_memory_plan *p) { p->offsets[PLAIN] = TIDE_NO_OFFSET; }
static void empty_without_offset(tide_memory_plan *p) { p->offsets[EMPTY] = TIDE_NO_OFFSET; }
static void alias_without_offset(tide_memory_plan *p) { p->offsets[VIEW] = TIDE_NO_OFFSET; }
static void no_offsets_at_all(tide_memory_plan *p) {
    tide_host_free(p->offsets);
    p->offsets = NULL;
}
static void askew(tide_memory_plan *p) { p->offsets[PLAIN] = 32; }
static void target_askew(tide_memory_plan *p) { p->offsets[WHOLE] = 4; }
static void unrounded_askew(tide_memory_plan *p) {
    p->lifetimes.items[FIXED].fixed = false;
    p->offsets[FIXED] = 510;
}
static void odd_alignment(tide_memory_plan *p) { p->lifetimes.items[PLAIN].align_bytes = 48; }
static void beyond_the_end(tide_memory_plan *p) { p->offsets[PLAIN] = 1088; }
static void far_beyond(tide_memory_plan *p) { p->offsets[PLAIN] = UINT64_MAX - 63; }
static void empty_beyond(tide_memory_plan *p) { p->offsets[EMPTY] = UINT64_MAX - 63; }
static void beyond_its_own_buffer(tide_memory_plan *p) { p->offsets[CACHE] = 64; }
static void buffer_cut(tide_memory_plan *p) {
    p->buffers[0].bytes -= 64;
    p->bytes -= 64;
}
static void weight_placed(tide_memory_plan *p) { p->offsets[WEIGHT] = 0; }
static void weight_pooled(tide_memory_plan *p) { p->pools[WEIGHT] = 0; }

// overlap
static void on_the_class(tide_memory_plan *p) { p->offsets[PLAIN] = 64; }
static void on_a_part(tide_memory_plan *p) {
    p->lifetimes.items[PLAIN].begin_step = 2;
    p->lifetimes.items[PLAIN].end_step = 3;
}
static void on_the_gappy(tide_memory_plan *p) { p->offsets[STAYS] = 896; }
static void gap_closed(tide_memory_plan *p) { p->lifetimes.items[GAPPY].n_gaps = 1; }
static void gap_keeps_more(tide_memory_plan *p) { p->lifetimes.items[GAPPY].gaps[0].hi_bytes = 65; }
static void lives_longer(tide_memory_plan *p) { p->lifetimes.items[GUEST].end_step = 8; }
static void born_earlier(tide_memory_plan *p) { p->lifetimes.items[GUEST].begin_step = 4; }
static void grown(tide_memory_plan *p) { p->lifetimes.items[APART1].size_bytes = 200; }
static void class_lives_longer(tide_memory_plan *p) {
    p->offsets[PLAIN] = 192;
    p->lifetimes.items[VIEW].end_step = 9;
}
static void no_alias_any_more(tide_memory_plan *p) { p->lifetimes.items[SLICE].alias = TIDE_ALIAS_NONE; }

// aliases
static void alias_moved(tide_memory_plan *p) { p->offsets[PART1] = 192; }
static void target_moved(tide_memory_plan *p) { p->offsets[WHOLE] = 128; }
static void end_of_chain_moved(tide_memory_plan *p) { p->offsets[SLICE] = 128; }
static void alias_too_long(tide_memory_plan *p) { p->lifetimes.items[PART1].size_bytes = 129; }
static void alias_too_far_in(tide_memory_plan *p) { p->lifetimes.items[SLICE].alias_offset_bytes = UINT64_MAX; }
static void alias_of_nothing(tide_memory_plan *p) { p->lifetimes.items[VIEW].alias_of = N; }
static void alias_of_itself(tide_memory_plan *p) { p->lifetimes.items[VIEW].alias_of = VIEW; }
static void aliases_in_a_ring(tide_memory_plan *p) {
    tide_lifetime *whole = &p->lifetimes.items[WHOLE];
    whole->alias = TIDE_ALIAS_VIEW;
    whole->alias_of = VIEW;
}
static void alias_of_a_weight(tide_memory_plan *p) { p->lifetimes.items[VIEW].alias_of = WEIGHT; }
static void weight_is_alias(tide_memory_plan *p) { p->lifetimes.items[SLICE].persistent = true; }
static void alias_on_another_device(tide_memory_plan *p) { p->lifetimes.items[VIEW].device.index = 1; }
static void alias_of_another_kind(tide_memory_plan *p) { p->lifetimes.items[VIEW].kind = TIDE_KIND_KV_CACHE; }
static void alias_is_fixed(tide_memory_plan *p) { p->lifetimes.items[VIEW].fixed = true; }
static void alias_kept_apart(tide_memory_plan *p) { p->lifetimes.items[VIEW].apart_set = 7; }
static void alias_in_a_pool(tide_memory_plan *p) { p->pools[VIEW] = 0; }

// what the user has given
static void moved_from_where_fixed(tide_memory_plan *p) { p->offsets[FIXED] = 768; }
static void not_apart(tide_memory_plan *p) { p->offsets[APART2] = 384; }
static void half_apart(tide_memory_plan *p) {
    p->lifetimes.items[APART1].size_bytes = 128;
    p->offsets[APART1] = 384;
}
static void one_more_apart(tide_memory_plan *p) {
    p->lifetimes.items[PLAIN].apart_set = 3;
    p->lifetimes.items[WHOLE].apart_set = 3;
    p->offsets[PLAIN] = 192;
}

// buffers
static void buffers_swapped(tide_memory_plan *p) {
    const tide_plan_buffer b = p->buffers[0];
    p->buffers[0] = p->buffers[1];
    p->buffers[1] = b;
}
static void buffer_twice(tide_memory_plan *p) { p->buffers[1].kind = p->buffers[0].kind; }
static void buffer_missing(tide_memory_plan *p) {
    p->n_buffers = 2;
    p->bytes -= p->buffers[2].bytes;
}
static void buffer_of_another_device(tide_memory_plan *p) { p->buffers[2].device.index = 5; }
static void buffer_without_tensors(tide_memory_plan *p) {
    p->buffers[3] = p->buffers[2];
    p->buffers[3].device.index = 5;
    p->n_buffers = 4;
    settle_sums(p);
}
static void bytes_do_not_add_up(tide_memory_plan *p) { p->bytes += 64; }
static void buffers_wrap_around(tide_memory_plan *p) { p->buffers[1].bytes = UINT64_MAX; }
static void naive_does_not_add_up(tide_memory_plan *p) { p->naive_bytes++; }
static void naive_peak_does_not_add_up(tide_memory_plan *p) { p->naive_peak_bytes--; }
static void bound_does_not_add_up(tide_memory_plan *p) { p->lower_bound_bytes++; }
static void proved_does_not_add_up(tide_memory_plan *p) { p->proved_bytes--; }
static void alignment_is_not_the_strictest(tide_memory_plan *p) { p->align_bytes = 128; }

// totals
static void naive_wrong(tide_memory_plan *p) {
    p->buffers[0].naive_bytes++;
    settle_sums(p);
}
static void naive_peak_wrong(tide_memory_plan *p) {
    p->buffers[0].naive_peak_bytes = p->buffers[0].lower_bound_bytes;
    settle_sums(p);
}
static void bound_wrong(tide_memory_plan *p) {
    p->buffers[0].lower_bound_bytes -= 64;
    settle_sums(p);
}
static void aliases_counted_twice(tide_memory_plan *p) {
    p->buffers[0].lower_bound_bytes += 64; // view and slice at step 7
    p->buffers[0].proved_bytes += 64;
    settle_sums(p);
}
static void buffer_alignment_wrong(tide_memory_plan *p) {
    p->buffers[1].align_bytes = 32;
    settle_sums(p);
}
static void buffer_too_large(tide_memory_plan *p) {
    p->buffers[1].bytes += 64;
    settle_sums(p);
}

// proofs
static void proved_below_the_bound(tide_memory_plan *p) {
    p->buffers[0].proved_bytes -= 64;
    p->buffers[0].proof = TIDE_PROOF_SEARCH;
    settle_sums(p);
}
static void proved_more_than_there_is(tide_memory_plan *p) {
    p->buffers[1].proved_bytes += 1;
    p->buffers[1].proof = TIDE_PROOF_SEARCH;
    settle_sums(p);
}
static void proved_by_a_live_sum_there_is_not(tide_memory_plan *p) {
    p->buffers[0].proved_bytes += 64;
    settle_sums(p);
}
static void proved_by_a_fixed_offset_there_is_not(tide_memory_plan *p) {
    p->buffers[0].proved_bytes = 613; // fixed ends at 612
    p->buffers[0].proof = TIDE_PROOF_FIXED;
    settle_sums(p);
}
static void proven_and_is_not(tide_memory_plan *p) { p->proven = true; }
static void proven_and_does_not_say(tide_memory_plan *p) {
    p->buffers[0].proved_bytes = p->buffers[0].bytes;
    p->buffers[0].proof = TIDE_PROOF_SEARCH;
    settle_sums(p);
    p->proven = false;
}

// lives
static void no_life(tide_memory_plan *p) { p->lifetimes.items[PLAIN].end_step = 8; }
static void life_before_all(tide_memory_plan *p) { p->lifetimes.items[PLAIN].begin_step = -1; }
static void life_too_long(tide_memory_plan *p) { p->lifetimes.items[PLAIN].end_step = 10; }
static void weight_lives_too_long(tide_memory_plan *p) { p->lifetimes.items[WEIGHT].end_step = 10; }
static void gap_outside(tide_memory_plan *p) { p->lifetimes.items[GAPPY].gaps[1].end_step = 10; }
static void gap_inside_out(tide_memory_plan *p) { p->lifetimes.items[GAPPY].gaps[1].begin_step = 7; }
static void gaps_out_of_order(tide_memory_plan *p) {
    p->lifetimes.items[GAPPY].gaps[0] = (tide_gap){5, 7, 0, 0};
    p->lifetimes.items[GAPPY].gaps[1] = (tide_gap){2, 4, 0, 64};
}
static void gap_keeps_too_much(tide_memory_plan *p) { p->lifetimes.items[GAPPY].gaps[0].hi_bytes = 193; }
static void gap_keeps_less_than_nothing(tide_memory_plan *p) { p->lifetimes.items[GAPPY].gaps[0].lo_bytes = 65; }
static void size_cannot_be_rounded(tide_memory_plan *p) { p->lifetimes.items[PLAIN].size_bytes = UINT64_MAX - 1; }
static void larger_at_a_profile_point(tide_memory_plan *p) {
    p->lifetimes.n_points = 1;
    p->lifetimes.point_names = tide_host_calloc(1, sizeof(char *));
    p->lifetimes.point_names[0] = tide_host_strdup("batch=8");
    p->lifetimes.items[PLAIN].point_bytes = tide_host_calloc(1, sizeof(uint64_t));
    p->lifetimes.items[PLAIN].point_bytes[0] = 65;
}

// pools
static void pool_in_offset_plan(tide_memory_plan *p) { p->pools[PLAIN] = 0; }
static void pools_in_offset_plan(tide_memory_plan *p) { p->n_pools = 1; }
static void move_to_pool(tide_memory_plan *p, size_t i, int32_t pool) {
    p->pool_list[p->pools[i]].n_members--;
    p->pools[i] = pool;
    p->pool_list[pool].n_members++;
    p->offsets[i] = p->pool_list[pool].offset_bytes;
    follow_targets(p);
}
static void two_in_a_pool(tide_memory_plan *p) { move_to_pool(p, GUEST, 0); }
static void in_a_gap_of_its_pool(tide_memory_plan *p) { move_to_pool(p, GUEST, 2); }
/// plain lives at step 8 only, long after whole, but slice of view of whole is still there.
static void when_the_class_is_not_dead(tide_memory_plan *p) { move_to_pool(p, PLAIN, 0); }
static void before_the_class_is_born(tide_memory_plan *p) {
    p->lifetimes.items[APART1].end_step = 2;
    move_to_pool(p, APART1, 0);
}
static void one_pool_for_two_apart(tide_memory_plan *p) {
    move_to_pool(p, PLAIN, 4);
    move_to_pool(p, APART2, 3);
}
static void pool_too_small(tide_memory_plan *p) { p->pool_list[2].size_bytes = 128; }
static void pool_too_large(tide_memory_plan *p) {
    p->pool_list[4].size_bytes += 64; // the last one of its buffer
    settle(p);
}
static void no_pool(tide_memory_plan *p) { p->pools[PLAIN] = TIDE_NO_POOL; }
static void no_such_pool(tide_memory_plan *p) { p->pools[PLAIN] = 99; }
static void apart_from_its_pool(tide_memory_plan *p) { p->offsets[PLAIN] = 0; }
static void members_miscounted(tide_memory_plan *p) { p->pool_list[0].n_members++; }
static void pools_leave_a_gap(tide_memory_plan *p) {
    for (size_t k = 0; k < 5; k++) p->pool_list[k].offset_bytes += 64;
    for (size_t i = 0; i < N; i++) {
        if (p->pools[i] >= 0 && p->pools[i] < 5) p->offsets[i] += 64;
    }
    follow_targets(p);
    settle(p);
}
/// The last pool on the one before it: sizes still add up, and no tensors would conflict.
static void pools_on_each_other(tide_memory_plan *p) {
    p->pool_list[4].offset_bytes = p->offsets[APART2] = p->pool_list[3].offset_bytes + 64;
}
static void pools_do_not_fill(tide_memory_plan *p) {
    p->buffers[0].bytes += 64;
    p->bytes += 64;
}
static void pool_of_another_buffer(tide_memory_plan *p) { p->pool_list[4].buffer = 1; }
static void pool_of_no_buffer(tide_memory_plan *p) { p->pool_list[p->n_pools++] = (tide_plan_pool){.buffer = 3}; }

typedef struct mutation {
    const char *what;
    blow *damage;
    tide_verify_code code;
    const char *words; // in the message
} mutation;

#define BLOW(f, code, words)                                                                                           \
    { #f, f, TIDE_VERIFY_##code, words }
static const mutation on_offsets[] = {
    BLOW(no_offset, MISSING, "'plain'"),
    BLOW(empty_without_offset, MISSING, "'empty'"),
    BLOW(alias_without_offset, MISSING, "'view'"),
    BLOW(no_offsets_at_all, MISSING, "no places"),
    BLOW(askew, MISALIGNED, "32"),
    BLOW(target_askew, MISALIGNED, "'whole'"),
    BLOW(unrounded_askew, MISALIGNED, "no multiple of 4"),
    BLOW(odd_alignment, MISALIGNED, "48"),
    BLOW(beyond_the_end, OUT_OF_BUFFER, "'plain'"),
    BLOW(far_beyond, OUT_OF_BUFFER, "'plain'"),
    BLOW(empty_beyond, OUT_OF_BUFFER, "'empty'"),
    BLOW(beyond_its_own_buffer, OUT_OF_BUFFER, "'cache'"),
    BLOW(buffer_cut, OUT_OF_BUFFER, "'gappy'"),
    BLOW(weight_placed, PERSISTENT, "'weight'"),
    BLOW(weight_pooled, PERSISTENT, "'weight'"),
    BLOW(on_the_class, OVERLAP, "'slice'"),
    BLOW(on_a_part, OVERLAP, "'part0'"),
    BLOW(on_the_gappy, OVERLAP, "'gappy'"),
    BLOW(gap_closed, OVERLAP, "'guest'"),
    BLOW(gap_keeps_more, OVERLAP, "896..1024"),
    BLOW(lives_longer, OVERLAP, "step 7"),
    BLOW(born_earlier, OVERLAP, "step 4"),
    BLOW(grown, OVERLAP, "'apart1'"),
    BLOW(class_lives_longer, OVERLAP, "'view'"),
    BLOW(no_alias_any_more, OVERLAP, "'slice'"),
    BLOW(alias_moved, ALIAS, "'part1'"),
    BLOW(target_moved, ALIAS, "'part0'"),
    BLOW(end_of_chain_moved, ALIAS, "'slice'"),
    BLOW(alias_too_long, ALIAS, "ends outside"),
    BLOW(alias_too_far_in, ALIAS, "ends outside"),
    BLOW(alias_of_nothing, ALIAS, "number 16"),
    BLOW(alias_of_itself, ALIAS, "come back"),
    BLOW(aliases_in_a_ring, ALIAS, "come back"),
    BLOW(alias_of_a_weight, ALIAS, "persistent"),
    BLOW(weight_is_alias, ALIAS, "persistent"),
    BLOW(alias_on_another_device, ALIAS, "device or kind"),
    BLOW(alias_of_another_kind, ALIAS, "device or kind"),
    BLOW(alias_is_fixed, ALIAS, "of its own"),
    BLOW(alias_kept_apart, ALIAS, "of its own"),
    BLOW(alias_in_a_pool, ALIAS, "pool 0"),
    BLOW(moved_from_where_fixed, FIXED, "fixed at 512"),
    BLOW(not_apart, APART, "set 7"),
    BLOW(half_apart, APART, "'apart1'"),
    BLOW(one_more_apart, APART, "set 3"),
    BLOW(buffers_swapped, BUFFER, "not in order"),
    BLOW(buffer_twice, BUFFER, "same device and kind"),
    BLOW(buffer_missing, BUFFER, "'far'"),
    BLOW(buffer_of_another_device, BUFFER, "'far'"),
    BLOW(buffer_without_tensors, BUFFER, "buffer 3"),
    BLOW(bytes_do_not_add_up, BUFFER, "together"),
    BLOW(buffers_wrap_around, BUFFER, "pass 2^64"),
    BLOW(naive_does_not_add_up, BUFFER, "naive_bytes"),
    BLOW(naive_peak_does_not_add_up, BUFFER, "naive_peak_bytes"),
    BLOW(bound_does_not_add_up, BUFFER, "lower_bound_bytes"),
    BLOW(proved_does_not_add_up, BUFFER, "proved_bytes"),
    BLOW(alignment_is_not_the_strictest, BUFFER, "align_bytes"),
    BLOW(naive_wrong, TOTAL, "naive_bytes"),
    BLOW(naive_peak_wrong, TOTAL, "naive_peak_bytes"),
    BLOW(bound_wrong, TOTAL, "lower_bound_bytes"),
    BLOW(aliases_counted_twice, TOTAL, "lower_bound_bytes"),
    BLOW(buffer_alignment_wrong, TOTAL, "align_bytes"),
    BLOW(buffer_too_large, TOTAL, " bytes 128"),
    BLOW(proved_below_the_bound, PROOF, "below the lower bound"),
    BLOW(proved_more_than_there_is, PROOF, "more than the buffer"),
    BLOW(proved_by_a_live_sum_there_is_not, PROOF, "live sum"),
    BLOW(proved_by_a_fixed_offset_there_is_not, PROOF, "given offset"),
    BLOW(proven_and_is_not, PROOF, "says that it is proven"),
    BLOW(proven_and_does_not_say, PROOF, "not proven"),
    BLOW(no_life, SPAN, "'plain'"),
    BLOW(life_before_all, SPAN, "'plain'"),
    BLOW(life_too_long, SPAN, "9 steps"),
    BLOW(weight_lives_too_long, SPAN, "'weight'"),
    BLOW(gap_outside, SPAN, "gap 1"),
    BLOW(gap_inside_out, SPAN, "gap 1"),
    BLOW(gaps_out_of_order, SPAN, "gap 1"),
    BLOW(gap_keeps_too_much, SPAN, "193"),
    BLOW(gap_keeps_less_than_nothing, SPAN, "gap 0"),
    BLOW(size_cannot_be_rounded, SPAN, "rounded up"),
    BLOW(larger_at_a_profile_point, SPAN, "profile point"),
    BLOW(pool_in_offset_plan, POOL_SIZE, "'plain'"),
    BLOW(pools_in_offset_plan, POOL_SIZE, "1 pools"),
};

static const mutation on_pools[] = {
    BLOW(two_in_a_pool, POOL_CONFLICT, "step 5"),
    BLOW(in_a_gap_of_its_pool, POOL_CONFLICT, "'gappy'"),
    BLOW(when_the_class_is_not_dead, POOL_CONFLICT, "'whole'"),
    BLOW(before_the_class_is_born, POOL_CONFLICT, "step 1"),
    BLOW(one_pool_for_two_apart, APART, "'apart1'"),
    BLOW(pool_too_small, POOL_SIZE, "pool 2"),
    BLOW(pool_too_large, POOL_SIZE, "pool 4"),
    BLOW(no_pool, MISSING, "'plain'"),
    BLOW(no_such_pool, MISSING, "99"),
    BLOW(apart_from_its_pool, POOL_SIZE, "'plain'"),
    BLOW(members_miscounted, POOL_SIZE, "pool 0"),
    BLOW(pools_leave_a_gap, POOL_SIZE, "fill buffer 0"),
    BLOW(pools_on_each_other, POOL_SIZE, "fill buffer 0"),
    BLOW(pools_do_not_fill, POOL_SIZE, "fill buffer 0"),
    BLOW(pool_of_another_buffer, BUFFER, "'apart2'"),
    BLOW(pool_of_no_buffer, BUFFER, "the plan has 3"),
    BLOW(alias_in_a_pool, ALIAS, "'view'"),
    BLOW(weight_pooled, PERSISTENT, "'weight'"),
};

// ---- tests ----

static void assert_is_sound(const tide_memory_plan *p) {
    tide_verify_result result;
    tide_error err = TIDE_ERROR_INIT;
    assert_int_equal(def_faults(p), 0);
    assert_tide_ok(tide_plan_verify(p, &result, &err), &err);
    assert_int_equal(result.code, TIDE_VERIFY_OK);
    assert_true(result.a == SIZE_MAX && result.b == SIZE_MAX);
}

static void strike_all(tide_memory_plan *(*make)(void), const mutation *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const mutation *m = &list[i];
        tide_memory_plan *plan = make();
        assert_is_sound(plan);
        m->damage(plan);
        tide_verify_result result;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_plan_verify(plan, &result, &err);
        if (st != TIDE_ERR_VERIFY || result.code != m->code || strstr(err.msg, m->words) == NULL)
            fail_msg("%s: status %s, code '%s', want '%s' and \"%s\"; %s", m->what, tide_status_name(st),
                     tide_verify_text(result.code), tide_verify_text(m->code), m->words, err.msg);
        assert_string_equal(err.note, tide_verify_text(m->code));
        assert_tide_status(tide_plan_verify(plan, NULL, NULL), TIDE_ERR_VERIFY);
        tide_memory_plan_destroy(plan);
    }
    print_message("%zu ways\n", n);
}

// S23-9: the checker fails on a hand-corrupted plan, each fault with its code, and names who is concerned.
static void every_fault_is_caught(void **state) {
    (void)state;
    strike_all(offset_plan, on_offsets, sizeof on_offsets / sizeof on_offsets[0]);
    strike_all(pool_plan, on_pools, sizeof on_pools / sizeof on_pools[0]);
}

/// Every code there is has a blow that shows it.
static void every_code_is_met(void **state) {
    (void)state;
    uint32_t met = FAULT_BIT(OK);
    for (size_t i = 0; i < sizeof on_offsets / sizeof on_offsets[0]; i++) met |= UINT32_C(1) << on_offsets[i].code;
    for (size_t i = 0; i < sizeof on_pools / sizeof on_pools[0]; i++) met |= UINT32_C(1) << on_pools[i].code;
#define XX(name, text)                                                                                                 \
    assert_true((met & FAULT_BIT(name)) != 0);                                                                         \
    assert_string_equal(tide_verify_text(TIDE_VERIFY_##name), text);
    TIDE_VERIFY_MAP(XX)
#undef XX
    assert_string_equal(tide_verify_text((tide_verify_code)99), "fault ?");
}

static void the_tensors_concerned_are_named(void **state) {
    (void)state;
    tide_memory_plan *plan = offset_plan();
    plan->offsets[GUEST] = 0; // both begin at step 5
    tide_verify_result result;
    assert_tide_status(tide_plan_verify(plan, &result, NULL), TIDE_ERR_VERIFY);
    assert_true(result.a == GUEST || result.b == GUEST);
    assert_true(result.a == VIEW || result.b == VIEW || result.a == WHOLE || result.b == WHOLE);
    tide_memory_plan_destroy(plan);
    plan = offset_plan();
    end_of_chain_moved(plan);
    assert_tide_status(tide_plan_verify(plan, &result, NULL), TIDE_ERR_VERIFY);
    assert_int_equal(result.a, SLICE);
    assert_int_equal(result.b, VIEW);
    tide_memory_plan_destroy(plan);
}

/// What a run-time allocator reserves may be any amount beyond the last tensor, and nothing else of it may be wrong.
static void a_simulated_allocator_may_reserve_more(void **state) {
    (void)state;
    tide_memory_plan *plan = offset_plan();
    plan->buffers[0].bytes += 1 << 20;
    settle_sums(plan);
    assert_tide_status(tide_plan_verify(plan, NULL, NULL), TIDE_ERR_VERIFY);
    tide_host_free(plan->strategy);
    plan->strategy = tide_host_strdup("sim:caching");
    assert_is_sound(plan);
    on_the_class(plan);
    assert_tide_status(tide_plan_verify(plan, NULL, NULL), TIDE_ERR_VERIFY);
    tide_memory_plan_destroy(plan);
}

static void rounding_up_is_no_waste(void **state) {
    (void)state;
    tide_memory_plan *plan = offset_plan();
    plan->buffers[1].bytes += 63;
    settle_sums(plan);
    assert_is_sound(plan);
    tide_memory_plan_destroy(plan);
}

static void nothing_is_sound(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = bare_plan(&lt, "nothing", TIDE_PLAN_OFFSETS);
    settle(plan);
    assert_is_sound(plan);
    plan->form = TIDE_PLAN_POOLS;
    assert_is_sound(plan);
    tide_memory_plan_destroy(plan);
    put_persistent(&lt, "w", 8, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 1);
    put(&lt, "empty", 0, 0, 1);
    plan = bare_plan(&lt, "nothing", TIDE_PLAN_OFFSETS);
    plan->offsets[1] = 0;
    settle(plan);
    assert_is_sound(plan);
    plan->offsets[1] = 1; // there is no buffer, not even for nothing
    assert_tide_status(tide_plan_verify(plan, NULL, NULL), TIDE_ERR_VERIFY);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void fail_each_allocation(tide_memory_plan *plan, int64_t at_least) {
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = tide_plan_verify(plan, NULL, NULL);
        tide_host_fail_after(-1);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > at_least);
    tide_memory_plan_destroy(plan);
}

static void no_memory_is_no_fault(void **state) {
    (void)state;
    fail_each_allocation(offset_plan(), 15);
    fail_each_allocation(pool_plan(), 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_fault_is_caught),           tide_unit_test(every_code_is_met),
        tide_unit_test(the_tensors_concerned_are_named), tide_unit_test(a_simulated_allocator_may_reserve_more),
        tide_unit_test(rounding_up_is_no_waste),         tide_unit_test(nothing_is_sound),
        tide_unit_test(no_memory_is_no_fault),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
