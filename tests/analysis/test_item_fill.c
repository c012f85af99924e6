// SPDX-License-Identifier: MIT
//
// Classes of items, what persists; how high plan and bound stand and what they are made of.
#include "analysis/item_fill.h"
#include "analysis/levels.h"
#include "tests/analysis/subject_fixture.h"

static void classes_of_items(void **state) {
    (void)state;
    static const struct {
        tide_memory_kind kind;
        tide_role role;
        bool persistent;
        tide_item_fill fill;
        bool persists;
    } cases[] = {
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, false, TIDE_ITEM_FILL_INTERMEDIATE, false},
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, false, TIDE_ITEM_FILL_SCRATCH, false},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, true, TIDE_ITEM_FILL_INOUT, true},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT, false, TIDE_ITEM_FILL_INOUT, true},
        {TIDE_KIND_DEFAULT, TIDE_ROLE_INTERMEDIATE, false, TIDE_ITEM_FILL_INOUT, false},
        {TIDE_KIND_PERSISTENT, TIDE_ROLE_INTERMEDIATE, false, TIDE_ITEM_FILL_WEIGHT, true},
        {TIDE_KIND_WORKSPACE, TIDE_ROLE_WEIGHT, false, TIDE_ITEM_FILL_WEIGHT, true},
        {TIDE_KIND_KV_CACHE, TIDE_ROLE_INTERMEDIATE, false, TIDE_ITEM_FILL_KV_CACHE, false},
        {TIDE_KIND_HOST_PINNED, TIDE_ROLE_INTERMEDIATE, false, TIDE_ITEM_FILL_HOST, false},
        {TIDE_KIND_HOST_PAGEABLE, TIDE_ROLE_INTERMEDIATE, true, TIDE_ITEM_FILL_HOST, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tide_item_fill_of(cases[i].kind, cases[i].role), cases[i].fill);
        assert_int_equal(tide_item_persists(cases[i].kind, cases[i].role, cases[i].persistent), cases[i].persists);
    }
    for (int f = 0; f < TIDE_N_ITEM_FILLS; f++) assert_true(tide_item_fill_text((tide_item_fill)f)[0] != '\0');
    assert_string_equal(tide_item_fill_text(TIDE_N_ITEM_FILLS), "");
}

static void levels_of_a_plan(void **state) {
    (void)state;
    char name[] = "t";
    tide_lifetime items[] = {
        {.name = name, .kind = TIDE_KIND_WORKSPACE, .size_bytes = 500, .align_bytes = 1},
        {.name = name, .kind = TIDE_KIND_PERSISTENT, .size_bytes = 30, .align_bytes = 16, .persistent = true},
        {.name = name, .kind = TIDE_KIND_DEFAULT, .size_bytes = 4, .align_bytes = 1, .persistent = true},
        {.name = name, .kind = TIDE_KIND_KV_CACHE, .align_bytes = 1, .persistent = true}, // of nothing: not named
    };
    tide_memory_plan plan = {.lifetimes = {.items = items, .n = 4}, .bytes = 600, .lower_bound_bytes = 550};
    const tide_levels l = tide_levels_of_plan(&plan);
    assert_true(l.known);
    assert_int_equal(l.below, 32 + 4);
    assert_int_equal(l.plan, 636);
    assert_int_equal(l.bound, 586);
    assert_string_equal(l.words, "weights, inputs, outputs");
    plan.bytes = UINT64_MAX; // the sum does not fit: nothing is claimed
    assert_false(tide_levels_of_plan(&plan).known);
}

/// In a run the kinds say what lies below, in every combination; one unknown part makes all unknown.
static void levels_of_a_run(void **state) {
    (void)state;
    tide_trace_kind kinds[TIDE_N_KINDS];
    const tide_memory_plan plan = {.bytes = 7, .lower_bound_bytes = 5};
    size_t n = 0;
    for (unsigned mask = 0; mask < 1u << TIDE_N_KINDS; mask++) {
        n = 0;
        uint64_t below = 0;
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            if ((mask & 1u << kind) == 0) continue;
            const uint64_t bytes = UINT64_C(1000) << kind;
            kinds[n++] = (tide_trace_kind){.kind = (tide_memory_kind)kind, .predicted_bytes = bytes};
            if (kind != TIDE_KIND_WORKSPACE) below += bytes;
        }
        const uint64_t contexts = 1 + mask % 3;
        const tide_levels l = tide_levels_of_run(&plan, contexts, kinds, n);
        char name[64];
        assert_true(l.known);
        assert_int_equal(l.below, below);
        assert_int_equal(l.plan, below + contexts * 7);
        assert_int_equal(l.bound, below + contexts * 5);
        assert_int_equal(strcmp(tide_levels_name(&l, false, name, sizeof name), "plan") == 0, contexts == 1);
        assert_int_equal(l.words[0] != '\0', below > 0);
        assert_int_equal(strstr(l.words, "weights") != NULL, (mask & 1u << TIDE_KIND_PERSISTENT) != 0);
        assert_int_equal(strstr(l.words, "KV cache") != NULL, (mask & 1u << TIDE_KIND_KV_CACHE) != 0);
        for (int kind = TIDE_KIND_HOST_PAGEABLE + 1; kind < TIDE_N_KINDS; kind++) // that a build has added
            assert_int_equal(strstr(l.words, tide_memory_kind_name((tide_memory_kind)kind)) != NULL,
                             (mask & 1u << kind) != 0);
    }
    kinds[0].predicted_bytes = TIDE_UNKNOWN_BYTES;
    assert_false(tide_levels_of_run(&plan, 1, kinds, n).known);
    assert_false(tide_levels_of_run(NULL, 1, kinds, 0).known);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(classes_of_items),
        tide_unit_test(levels_of_a_plan),
        tide_unit_test(levels_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
