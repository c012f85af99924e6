// SPDX-License-Identifier: MIT
//
// Runs with their plans, and facts, as bytes in the log of a feed: all of it comes back, and bytes that no recorder
// wrote are told apart, whatever they are.
#include "planner/plan_live.h"
#include "profiler/feed/registration.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

/// A plan with one of everything: gaps, sizes at points, an alias, a fixed place, pools, bodies, lists of names.
static tide_memory_plan *full_plan(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *p = demo_plan_make();
    tide_lifetimes *lt = &p->lifetimes;
    static const char *const points[] = {"batch=1", "batch=8"};
    lt->point_names = tide_host_calloc(2, sizeof *lt->point_names);
    for (size_t i = 0; i < 2; i++) lt->point_names[i] = tide_host_strdup(points[i]);
    lt->n_points = 2;
    lt->recomputed = tide_host_calloc(1, sizeof *lt->recomputed);
    lt->recomputed[0] = tide_host_strdup("conv");
    lt->n_recomputed = 1;
    lt->dynamic = tide_host_calloc(1, sizeof *lt->dynamic);
    lt->dynamic[0] = tide_host_strdup("");
    lt->n_dynamic = 1;
    lt->regions = tide_host_calloc(1, sizeof *lt->regions);
    lt->regions[0] = (tide_plan_region){.kind = TIDE_BODY_LOOP, .open_step = 0, .begin_step = 1, .end_step = 2};
    lt->n_regions = 1;
    tide_gap gap = {.begin_step = 1, .end_step = 2, .lo_bytes = 0, .hi_bytes = 64};
    uint64_t sizes[] = {128, 512};
    char whole[] = "whole", part[] = "part of it";
    const tide_lifetime items[] = {{.name = whole,
                                    .size_bytes = 512,
                                    .align_bytes = 256,
                                    .begin_step = 0,
                                    .end_step = 3,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = {.type = 1, .index = 3},
                                    .node = TIDE_NO_INDEX,
                                    .port = 4000000000,
                                    .unrounded = true,
                                    .fixed = true,
                                    .fixed_offset_bytes = 0,
                                    .apart_set = 7,
                                    .gaps = &gap,
                                    .n_gaps = 1,
                                    .point_bytes = sizes},
                                   {.name = part,
                                    .size_bytes = 64,
                                    .align_bytes = 1,
                                    .begin_step = 0,
                                    .end_step = 2,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = {.type = 1, .index = 3}}};
    p->offsets = tide_host_realloc(p->offsets, (lt->n + 2) * sizeof *p->offsets);
    p->pools = tide_host_realloc(p->pools, (lt->n + 2) * sizeof *p->pools);
    for (size_t i = 0; i < 2; i++) {
        assert_tide_ok(tide_lifetimes_add(lt, &items[i], &err), &err);
        p->offsets[lt->n - 1] = 0;
        p->pools[lt->n - 1] = (int32_t)i - 1;
    }
    assert_tide_ok(tide_lifetimes_alias(lt, (uint32_t)lt->n - 1, TIDE_ALIAS_SLICE, (uint32_t)lt->n - 2, 64, &err),
                   &err);
    p->pool_list = tide_host_calloc(1, sizeof *p->pool_list);
    p->pool_list[0] = (tide_plan_pool){.size_bytes = 512, .offset_bytes = 256, .n_members = 1, .buffer = 0};
    p->n_pools = 1;
    return p;
}

static const tide_run_info all_of_it = {
    .model = "unet", .source = "", .mode = "planned", .strategy = "search", .device = "cuda:1", .n_contexts = 4};

static tide_text bytes_of(const tide_run_info *info, const tide_memory_plan *plan, int64_t begin_ns) {
    tide_text bytes = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__registration_put_run(&bytes, info, plan, begin_ns, &err), &err);
    return bytes;
}

static void expect_same(const tide_run_info *info, const tide_memory_plan *plan) {
    tide_text bytes = bytes_of(info, plan, 12345);
    tide__run_taken run;
    assert_int_equal(tide__registration_take_run(bytes.data, bytes.len, &run), TIDE_OK);
    assert_int_equal(run.begin_ns, 12345);
    assert_int_equal(run.plan != NULL, plan != NULL);
    tide_text again = bytes_of(&run.info, run.plan, 12345);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.data, bytes.data, bytes.len);
    tide__run_taken_deinit(&run);
    tide_text_deinit(&again);
    tide_text_deinit(&bytes);
}

static void all_of_a_run_comes_back(void **state) {
    (void)state;
    tide_memory_plan *demo = demo_plan_make(), *full = full_plan();
    expect_same(&(tide_run_info){0}, NULL);
    expect_same(&all_of_it, NULL);
    expect_same(&all_of_it, demo);
    expect_same(&all_of_it, full);
    expect_same(&all_of_it, &(tide_memory_plan){0});
    // One by one as well: bytes that are the same twice may leave something out twice.
    tide_text bytes = bytes_of(&all_of_it, full, 1);
    tide__run_taken run;
    assert_int_equal(tide__registration_take_run(bytes.data, bytes.len, &run), TIDE_OK);
    const tide_lifetimes *lt = &run.plan->lifetimes;
    const tide_lifetime *whole = &lt->items[lt->n - 2], *part = &lt->items[lt->n - 1];
    assert_string_equal(run.info.device, "cuda:1");
    assert_int_equal(run.info.n_contexts, 4);
    assert_string_equal(whole->name, "whole");
    assert_int_equal(whole->device.index, 3);
    assert_int_equal(whole->node, TIDE_NO_INDEX);
    assert_int_equal(whole->port, 4000000000);
    assert_true(whole->unrounded && whole->fixed && !whole->persistent);
    assert_int_equal(whole->apart_set, 7);
    assert_int_equal(whole->gaps[0].hi_bytes, 64);
    assert_int_equal(whole->point_bytes[1], 512);
    assert_int_equal(part->alias, TIDE_ALIAS_SLICE);
    assert_int_equal(part->alias_offset_bytes, 64);
    assert_int_equal(run.plan->pools[lt->n - 1], 0);
    assert_int_equal(run.plan->offsets[0], full->offsets[0]);
    assert_int_equal(run.plan->pool_list[0].offset_bytes, 256);
    assert_int_equal(lt->regions[0].kind, TIDE_BODY_LOOP);
    assert_string_equal(lt->step_names[1], demo_steps[1]);
    assert_string_equal(run.plan->strategy, "by_hand");
    assert_int_equal(run.plan->time_ns, 4321);
    tide__run_taken_deinit(&run);
    tide_text_deinit(&bytes);
    tide_memory_plan_destroy(demo);
    tide_memory_plan_destroy(full);
}

static void what_no_trace_can_hold_is_refused(void **state) {
    (void)state;
    tide_memory_plan *p = full_plan();
    tide_text bytes = {0};
    tide_error err = TIDE_ERROR_INIT;
    p->lifetimes.items[0].size_bytes = (uint64_t)INT64_MAX + 1;
    assert_tide_status(tide__registration_put_run(&bytes, &all_of_it, p, 1, &err), TIDE_ERR_OVERFLOW);
    p->lifetimes.items[0].size_bytes = 64;
    p->lifetimes.items[0].kind = (tide_memory_kind)TIDE_N_KINDS;
    assert_tide_status(tide__registration_put_run(&bytes, &all_of_it, p, 1, &err), TIDE_ERR_INVALID);
    tide_text_deinit(&bytes);
    tide_memory_plan_destroy(p);
}

/// Of a program that makes its plans itself: one that contradicts itself is left out, and all else is in the trace.
static void a_run_stays_without_a_plan_that_is_none(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r;
    tide_error err = TIDE_ERROR_INIT;
    const tide_recorder_options opt = {.quiet = true};
    assert_tide_ok(tide_recorder_open(d.file, &opt, &r, &err), &err);
    tide_memory_plan *p = full_plan();
    p->offsets[0] = p->bytes; // behind its end
    for (int k = 0; k < 2; k++) {
        static char block[1];
        assert_tide_ok(tide_recorder_begin_run(r, &all_of_it, p, NULL, &err), &err);
        tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, block, 64, "after it");
        tide_recorder_free(r, block);
        assert_tide_ok(tide_recorder_end_run(r, &err), &err);
        p->offsets[0] = 0;
    }
    assert_tide_ok(tide_recorder_close(r, &err), &err);
    tide_trace *t;
    tide_text text = {0};
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_ok(tide_trace_sql(t,
                                  "SELECT (SELECT count(*) FROM event), (SELECT group_concat(id) FROM run), (SELECT "
                                  "group_concat(DISTINCT run_id) FROM plan), (SELECT group_concat(what) FROM problem)",
                                  "|", 0, &text, &err),
                   &err);
    assert_non_null(strstr(tide_text_str(&text), "\n4|1,2|2|the plan of run 1 ("));
    tide_text_deinit(&text);
    tide_trace_close(t);
    tide_memory_plan_destroy(p);
    tmp_dir_remove(&d);
}

/// What was believed can be written: into rows, and into the list of what each tensor holds.
static void use(tide__run_taken *run) {
    if (run->plan != NULL) {
        tide_plan_live live;
        tide_plan_part *parts = NULL;
        size_t n;
        if (tide_plan_live_make(run->plan, &live, NULL) == TIDE_OK) {
            (void)!tide_plan_live_parts(run->plan, &live, &parts, &n, NULL);
            tide_host_free(parts);
            tide_plan_live_deinit(&live);
        }
    }
    tide__run_taken_deinit(run);
}

static void bytes_that_end_early_are_none(void **state) {
    (void)state;
    tide_memory_plan *p = full_plan();
    tide_text bytes = bytes_of(&all_of_it, p, 1);
    tide__run_taken run;
    for (size_t n = 0; n < bytes.len; n++) {
        char *copy = tide_host_alloc(n + 1); // of just that size: reading on is seen
        memcpy(copy, bytes.data, n);
        assert_int_equal(tide__registration_take_run(copy, n, &run), TIDE_ERR_BAD_INPUT);
        tide_host_free(copy);
    }
    tide_text_add_n(&bytes, "\0", 1);
    assert_int_equal(tide__registration_take_run(bytes.data, bytes.len, &run), TIDE_ERR_BAD_INPUT);
    tide_text_deinit(&bytes);
    tide_memory_plan_destroy(p);
}

/// Each byte as several others, and runs of the largest numbers: taken or refused, and what is taken can be used.
static void bytes_that_are_others_harm_nothing(void **state) {
    (void)state;
    static const unsigned char others[] = {0, 1, 2, 3, 7, 16, 0x7f, 0x80, 0xff};
    tide_memory_plan *p = full_plan();
    tide_text bytes = bytes_of(&all_of_it, p, 1);
    size_t n_taken = 0, n_refused = 0;
    for (size_t at = 0; at < bytes.len; at++) {
        for (size_t k = 0; k <= sizeof others; k++) {
            tide__run_taken run;
            char *copy = tide_host_alloc(bytes.len);
            memcpy(copy, bytes.data, bytes.len);
            if (k < sizeof others)
                copy[at] = (char)others[k];
            else
                memset(copy + at, 0xff, bytes.len - at < 9 ? bytes.len - at : 9);
            const tide_status st = tide__registration_take_run(copy, bytes.len, &run);
            assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT);
            if (st == TIDE_OK) use(&run);
            n_taken += st == TIDE_OK;
            n_refused += st != TIDE_OK;
            tide_host_free(copy);
        }
    }
    assert_true(n_taken > 100 && n_refused > 100);
    tide_text_deinit(&bytes);
    tide_memory_plan_destroy(p);
}

static void facts_come_back(void **state) {
    (void)state;
    tide_text bytes = {0};
    tide_error err = TIDE_ERROR_INIT;
    char *key, *value;
    assert_tide_ok(tide__registration_put_fact(&bytes, "a", "b c", &err), &err);
    assert_int_equal(tide__registration_take_fact(bytes.data, bytes.len, &key, &value), TIDE_OK);
    assert_string_equal(key, "a");
    assert_string_equal(value, "b c");
    tide_host_free(key);
    tide_host_free(value);
    for (size_t n = 0; n < bytes.len; n++)
        assert_int_equal(tide__registration_take_fact(bytes.data, n, &key, &value), TIDE_ERR_BAD_INPUT);
    bytes.len = 0;
    assert_tide_ok(tide__registration_put_fact(&bytes, "state", "complete", &err), &err);
    assert_int_equal(tide__registration_take_fact(bytes.data, bytes.len, &key, &value), TIDE_ERR_BAD_INPUT);
    tide_text_deinit(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(all_of_a_run_comes_back),
        tide_unit_test(what_no_trace_can_hold_is_refused),
        tide_unit_test(a_run_stays_without_a_plan_that_is_none),
        tide_unit_test(bytes_that_end_early_are_none),
        tide_unit_test(bytes_that_are_others_harm_nothing),
        tide_unit_test(facts_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
