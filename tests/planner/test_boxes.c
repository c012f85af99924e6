// SPDX-License-Identifier: MIT
//
// planner/strategies/boxes: every item is in one box, boxes are as long and as high as they must be, and any sound
// placement of the boxes is a sound placement of the items.
#include "planner/strategies/boxes.h"

#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"
#include "tests/planner/problem_test.h"

static void check_boxes(const tide_problem *p, uint64_t box_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_boxes boxes;
    assert_tide_ok(tide__boxes_make(p, box_bytes, &boxes, &err), &err);
    size_t n_seen = 0;
    bool *seen = tide_host_calloc(p->n, sizeof *seen);
    for (size_t b = 0; b < boxes.problem.n; b++) {
        const tide_item *box = &boxes.problem.items[b];
        for (uint32_t m = boxes.first[b]; m < boxes.first[b + 1]; m++) {
            const tide_item *item = &p->items[boxes.members[m]];
            assert_false(seen[boxes.members[m]]);
            seen[boxes.members[m]] = true;
            n_seen++;
            assert_true(box->begin <= item->begin && item->end <= box->end);
            assert_true(boxes.within[boxes.members[m]] + item->size_bytes <= box->size_bytes);
            assert_true(box->align_bytes >= item->align_bytes);
        }
        if (boxes.first[b + 1] - boxes.first[b] > 1) {
            assert_true(box->size_bytes <= box_bytes + 31 * (boxes.first[b + 1] - boxes.first[b]));
            assert_int_equal(box->fixed_offset, TIDE_NO_OFFSET);
        } else {
            assert_int_equal(box->n_rects, p->items[boxes.members[boxes.first[b]]].n_rects);
        }
    }
    assert_int_equal(n_seen, p->n);
    tide_host_free(seen);

    tide_placement in_boxes, pl;
    tide_placer *placer;
    uint32_t *order;
    assert_tide_ok(tide__placement_init(&in_boxes, &boxes.problem, &err), &err);
    assert_tide_ok(tide__placement_init(&pl, p, &err), &err);
    assert_tide_ok(tide__placer_create(&boxes.problem, &placer, &err), &err);
    assert_tide_ok(tide__order_make(&boxes.problem, TIDE_ORDER_SIZE, &order, &err), &err);
    in_boxes.bytes = tide__placer_run(placer, order, TIDE_GAP_RULE_FIRST, UINT64_MAX, in_boxes.offsets);
    assert_true(tide__placement_is_sound(&in_boxes, &boxes.problem));
    assert_true(in_boxes.bytes >= boxes.load_bytes && boxes.load_bytes >= p->lower_bound_bytes);
    pl.bytes = tide__boxes_unpack(&boxes, p, in_boxes.offsets, pl.offsets);
    assert_true(pl.bytes <= in_boxes.bytes);
    assert_true(tide__placement_is_sound(&pl, p));
    tide_host_free(order);
    tide__placer_destroy(placer);
    tide__placement_deinit(&pl);
    tide__placement_deinit(&in_boxes);
    tide__boxes_deinit(&boxes);
}

static void whatever_places_the_boxes_places_the_items(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_problems problems;
        put_random_table(&lt, &rng, 1 + tide_rng_below(&rng, 80), 1 + (int64_t)tide_rng_below(&rng, 40), 40,
                         (unsigned)seed % (RANDOM_ALL + 1));
        assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
        check_boxes(&problems.list[0], tide_rng_below(&rng, 300));
        tide__problems_deinit(&problems);
        tide_lifetimes_deinit(&lt);
    }
}

/// Without strict alignments a box is as high as the sum of its members, and lies close: nothing but time is lost.
static void items_alive_together_lose_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_problems problems;
    tide_boxes boxes;
    for (int i = 0; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put(&lt, name, 4, 10 * (i / 16), 10 * (i / 16) + 5);
    }
    assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
    assert_tide_ok(tide__boxes_make(&problems.list[0], 16 * 4, &boxes, &err), &err);
    assert_int_equal(boxes.problem.n, 4);
    assert_int_equal(boxes.load_bytes, problems.list[0].lower_bound_bytes);
    tide__boxes_deinit(&boxes);
    tide__problems_deinit(&problems);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(whatever_places_the_boxes_places_the_items),
        tide_unit_test(items_alive_together_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
