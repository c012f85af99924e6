// SPDX-License-Identifier: MIT
//
// Who lies at an address, held against everything that is alive, one by one: in random recordings of planned runs of
// several contexts, in a naive run, in a plan.
#include "analysis/address.h"
#include "tests/analysis/planned_fixture.h"

static const uint64_t BASE = UINT64_C(0x7f0000000000); ///< of the addresses of feed()

static bool has(uint64_t begin, uint64_t bytes, uint64_t address) {
    return begin != TIDE_NO_OFFSET && address >= begin && address - begin < bytes;
}

/// How many are alive there, by address or by offset in a buffer; *named, *inside_named: one of them is called so.
static size_t n_alive(const tide_live_items *live, uint64_t address, bool by_offset, const tide_address *got,
                      bool *named, bool *inside_named) {
    size_t n = 0;
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *it = &live->items[i];
        if (it->is_unused || (by_offset && !it->shape.is_planned)) continue;
        if (!has(by_offset ? it->place : it->address, it->shape.reserved_bytes, address)) continue;
        n++;
        *named = *named || strcmp(it->site.name, got->name) == 0;
        *inside_named = *inside_named || (got->inside != NULL && strcmp(it->site.name, got->inside) == 0);
    }
    return n;
}

/// The answer for one address is the name of something that is alive there, or of nothing where nothing is.
static void check_address(tide_subject *s, tide_moment at, uint64_t address, size_t *n_held) {
    tide_address got;
    tide_live_items live;
    tide_error err = TIDE_ERROR_INIT;
    bool named = false, inside_named = false;
    assert_tide_ok(tide_subject_at_address(s, at, address, &got, &err), &err);
    assert_tide_ok(tide_subject_live(s, at, &live, &err), &err);
    size_t n = n_alive(&live, address, false, &got, &named, &inside_named);
    if (n == 0 && got.is == TIDE_ADDRESS_HELD) n = n_alive(&live, address, true, &got, &named, &inside_named);
    if ((n > 0) != (got.is == TIDE_ADDRESS_HELD) || (n > 0) != named || (got.inside != NULL && !inside_named))
        fail_msg("0x%llx at %lld: '%s' (%d), inside '%s', %zu are alive there", (unsigned long long)address,
                 (long long)at.t, got.name, (int)got.is, got.inside != NULL ? got.inside : "", n);
    *n_held += n > 0;
    tide_live_items_deinit(&live);
}

static void random_runs(void **state) {
    (void)state;
    size_t n_held = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide_memory_plan *plan = random_plan(seed, 20, N_STEPS);
        record_random(d.file, seed, plan);
        tide_subject *s = subject_of_trace(d.file, 1);
        tide_rng rng = {seed};
        const uint64_t n_events = tide_subject_get_facts(s)->n_events;
        for (uint64_t event = 1; event <= n_events; event += 5) {
            tide_trace_event e;
            size_t n;
            tide_error err = TIDE_ERROR_INIT;
            assert_tide_ok(tide_trace_events(tide_subject_trace(s), event, &e, 1, &n, &err), &err);
            const tide_moment at = {(int64_t)e.t_ns, event};
            const uint64_t begin = BASE + 0x1000 * (uint64_t)BUFFER_ID, size = plan->buffers[0].bytes;
            for (int k = 0; k < 4; k++) check_address(s, at, begin + tide_rng_below(&rng, size + 64), &n_held);
            check_address(s, at, BASE + 0x1000 * (1 + tide_rng_below(&rng, 9)), &n_held);
        }
        tide_subject_destroy(s);
        tide_memory_plan_destroy(plan);
        tmp_dir_remove(&d);
    }
    assert_true(n_held > 100);
}

static void a_plan(void **state) {
    (void)state;
    tide_memory_plan *plan = random_plan(7, 200, 40);
    const uint64_t size = plan->buffers[0].bytes;
    tide_subject *s = subject_of_plan(plan);
    tide_rng rng = {3};
    size_t n_held = 0;
    tide_address got;
    tide_error err = TIDE_ERROR_INIT;
    for (int64_t step = 0; step < 40; step++)
        for (int k = 0; k < 20; k++) check_address(s, (tide_moment){step, 0}, tide_rng_below(&rng, size), &n_held);
    assert_tide_ok(tide_subject_at_address(s, (tide_moment){0, 0}, size, &got, &err), &err);
    assert_int_equal(got.is, TIDE_ADDRESS_NOWHERE);
    tide_subject_destroy(s);
}

/// A segment of 64 KiB with one block: the rest of it is free, what lies beside it is nowhere; an offset in the buffer
/// of a run is found as well as its address, and what no tensor uses of it is said.
static void what_is_free(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 64, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {.model = "demo", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    feed_begin_run(&f, 900, &info, plan);
    feed(&f, 910, TIDE_MEM_SEGMENT_ALLOC, 500, TIDE_KIND_DEFAULT, 65536, "");
    feed(&f, 920, TIDE_MEM_ALLOC, 501, TIDE_KIND_DEFAULT, 100, "image");
    feed(&f, 930, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = 0, .block_id = 2};
    feed_scope(&f, 1000, true, &run);
    for (int i = 0; i < N_DEMO_STEPS; i++) {
        const tide_scope op = {.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
        feed_scope(&f, 1050 + 100 * (uint64_t)i, true, &op);
        feed_scope(&f, 1140 + 100 * (uint64_t)i, false, &op);
    }
    feed_scope(&f, 1800, false, &run);
    feed_free(&f, 2000, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed_end_run(&f, 2100);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 1);
    static const struct {
        int64_t t;
        uint64_t address;
        tide_address_is is;
        const char *name;
    } cases[] = {{1060, BASE + 0x1000 * 501 + 99, TIDE_ADDRESS_HELD, "image"},
                 {1060, BASE + 0x1000 * 500 + 4095, TIDE_ADDRESS_FREE, NULL},
                 {1060, BASE + 0x1000 * 500 + 65536, TIDE_ADDRESS_NOWHERE, ""},
                 {915, BASE + 0x1000 * 501, TIDE_ADDRESS_FREE, NULL},
                 {1060, BASE + 0x2000, TIDE_ADDRESS_HELD, "a"},
                 {1060, 0, TIDE_ADDRESS_HELD, "a"},
                 {1060, BASE + 0x2000 + DEMO_BYTES - 1, TIDE_ADDRESS_UNUSED, ""},
                 {1060, DEMO_BYTES - 1, TIDE_ADDRESS_UNUSED, ""},
                 {1900, BASE + 0x2000, TIDE_ADDRESS_UNUSED, ""},
                 {1060, UINT64_MAX, TIDE_ADDRESS_NOWHERE, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_address got;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_subject_at_address(s, (tide_moment){cases[i].t, 0}, cases[i].address, &got, &err), &err);
        if (got.is != cases[i].is) fail_msg("case %zu: %d, '%s'", i, (int)got.is, got.name);
        if (cases[i].name != NULL) assert_string_equal(got.name, cases[i].name);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs),
        cmocka_unit_test(a_plan),
        cmocka_unit_test(what_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
