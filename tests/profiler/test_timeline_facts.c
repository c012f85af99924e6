// SPDX-License-Identifier: MIT
//
// Timeline facts: classes of items, what persists, how high plan and bound stand and what they are made of.
#include "tests/tide_test.h"

#include "profiler/timeline_facts.h"

static void classes_of_items(void **state) {
    (void)state;
    static const struct {
        tide_memory_kind kind;
        tide_role role;
        bool persistent;
        tide_timeline_fill fill;
        bool persists;
    } cases[] = {
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, false, TIDE_TIMELINE_FILL_INTERMEDIATE, false},
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, false, TIDE_TIMELINE_FILL_SCRATCH, false},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, true, TIDE_TIMELINE_FILL_INOUT, true},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT, false, TIDE_TIMELINE_FILL_INOUT, true},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_INTERMEDIATE, false, TIDE_TIMELINE_FILL_INOUT, false},
        {TIDE_KIND_PERSISTENT, TIDE_ROLE_INTERMEDIATE, false, TIDE_TIMELINE_FILL_WEIGHT, true},
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_WEIGHT, false, TIDE_TIMELINE_FILL_WEIGHT, true},
        {TIDE_KIND_KV_CACHE, TIDE_ROLE_INTERMEDIATE, false, TIDE_TIMELINE_FILL_KV_CACHE, false},
        {TIDE_KIND_HOST_PINNED, TIDE_ROLE_INTERMEDIATE, false, TIDE_TIMELINE_FILL_HOST, false},
        {TIDE_KIND_HOST_PAGEABLE, TIDE_ROLE_INTERMEDIATE, true, TIDE_TIMELINE_FILL_HOST, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tide_timeline_item item = {
            .kind = cases[i].kind, .role = cases[i].role, .persistent = cases[i].persistent, .begin = 2, .end = 4};
        assert_int_equal(tide_timeline_fill_of(&item), cases[i].fill);
        assert_int_equal(tide_timeline_persists(&item), cases[i].persists);
        for (int64_t t = 0; t < 6; t++) assert_int_equal(tide_timeline_alive_at(&item, t), t == 2 || t == 3);
    }
    for (int f = 0; f < TIDE_TIMELINE_N_FILLS; f++)
        assert_true(tide_timeline_fill_text((tide_timeline_fill)f)[0] != '\0');
    assert_string_equal(tide_timeline_fill_text(TIDE_TIMELINE_N_FILLS), "");
}

static void levels_of_a_plan(void **state) {
    (void)state;
    tide_timeline_item items[] = {
        {.kind = TIDE_KIND_WORKSPACE, .size_bytes = 500},
        {.kind = TIDE_KIND_PERSISTENT, .size_bytes = 30, .persistent = true},
        {.kind = TIDE_KIND_DEFAULT, .size_bytes = 4, .persistent = true},
    };
    tide_timeline tl = {
        .axis = TIDE_AXIS_STEPS, .items = items, .n_items = 3, .plan_bytes = 600, .lower_bound_bytes = 550};
    assert_false(tide_timeline_levels_of(&tl).known);
    tl.has_plan = true;
    tide_timeline_levels l = tide_timeline_levels_of(&tl);
    assert_true(l.known);
    assert_int_equal(l.below, 34);
    assert_int_equal(l.plan, 634);
    assert_int_equal(l.bound, 584);
    assert_string_equal(l.words, "weights, inputs, outputs");
    items[1].size_bytes = UINT64_MAX; // the sum does not fit: nothing is claimed
    assert_false(tide_timeline_levels_of(&tl).known);
}

/// In a run the kinds say what lies below, in every combination; one unknown part makes all unknown.
static void levels_of_a_run(void **state) {
    (void)state;
    tide_trace_kind kinds[TIDE_N_KINDS];
    tide_timeline tl = {
        .axis = TIDE_AXIS_NS, .kinds = kinds, .has_plan = true, .plan_bytes = 7, .lower_bound_bytes = 5};
    for (unsigned mask = 0; mask < 1u << TIDE_N_KINDS; mask++) {
        tl.n_kinds = 0;
        uint64_t below = 0;
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            if ((mask & 1u << kind) == 0) continue;
            const uint64_t bytes = UINT64_C(1000) << kind;
            kinds[tl.n_kinds++] = (tide_trace_kind){.kind = (tide_memory_kind)kind, .predicted_bytes = bytes};
            if (kind != TIDE_KIND_WORKSPACE) below += bytes;
        }
        const tide_timeline_levels l = tide_timeline_levels_of(&tl);
        assert_true(l.known);
        assert_int_equal(l.below, below);
        assert_int_equal(l.plan, below + 7);
        assert_int_equal(l.bound, below + 5);
        assert_int_equal(l.words[0] != '\0', below > 0);
        assert_int_equal(strstr(l.words, "weights") != NULL, (mask & 1u << TIDE_KIND_PERSISTENT) != 0);
        assert_int_equal(strstr(l.words, "KV cache") != NULL, (mask & 1u << TIDE_KIND_KV_CACHE) != 0);
        for (int kind = TIDE_KIND_HOST_PAGEABLE + 1; kind < TIDE_N_KINDS; kind++) // that a build has added
            assert_int_equal(strstr(l.words, tide_memory_kind_name((tide_memory_kind)kind)) != NULL,
                             (mask & 1u << kind) != 0);
    }
    kinds[0].predicted_bytes = TIDE_UNKNOWN_BYTES;
    assert_false(tide_timeline_levels_of(&tl).known);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(classes_of_items),
        tide_unit_test(levels_of_a_plan),
        tide_unit_test(levels_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
