// SPDX-License-Identifier: MIT
//
// The query API against what the demo holds, against a naive oracle on random traces, and against plain SQL over the
// views of the same file (LT-32, X-7).
#include "profiler/query.h"

#include "core/memory/allocator.h"
#include "tests/planner/lifetimes_test.h"
#include "tests/profiler/trace_fixture.h"

static tide_trace *open_trace(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    return t;
}

// ---- the demo ----

static void test_runs(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_run *runs;
    size_t n;
    assert_tide_ok(tide_trace_runs(t, &runs, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(runs[0].id, 1);
    assert_string_equal(runs[0].mode, "naive");
    assert_string_equal(runs[0].strategy, "");
    assert_int_equal(runs[1].id, 2);
    assert_string_equal(runs[1].model, "demo");
    assert_string_equal(runs[1].source, "demo.json");
    assert_string_equal(runs[1].mode, "planned");
    assert_string_equal(runs[1].strategy, "by_hand");
    assert_string_equal(runs[1].device, "cpu");
    assert_int_equal(runs[1].begin_ns, 2000);
    assert_int_equal(runs[1].end_ns, 2900);
    assert_true(runs[1].has_plan);
    assert_int_equal(runs[1].plan_bytes, DEMO_BYTES);
    assert_int_equal(runs[1].plan_naive_bytes, DEMO_NAIVE_BYTES);
    assert_int_equal(runs[1].plan_lower_bound_bytes, DEMO_BYTES);
    tide_trace_runs_free(runs);
    tide_trace_close(t);
    tide_trace_close(NULL);
    tmp_dir_remove(&d);
}

static void assert_kind(const tide_trace_kind *k, tide_memory_kind kind, uint64_t requested, uint64_t peak,
                        uint64_t reserved, uint64_t predicted, uint64_t allocs, uint64_t frees, uint64_t at_end) {
    assert_int_equal(k->kind, kind);
    assert_string_equal(k->device, "cpu");
    assert_int_equal(k->requested_bytes, requested);
    assert_int_equal(k->peak_bytes, peak);
    assert_int_equal(k->peak_reserved_bytes, reserved);
    assert_int_equal(k->predicted_bytes, predicted);
    assert_int_equal(k->n_allocs, allocs);
    assert_int_equal(k->n_frees, frees);
    assert_int_equal(k->live_at_end_bytes, at_end);
}

/// predicted and measured per kind. In naive mode the workspace is predicted by the lower bound.
static void test_kinds_predicted_and_measured(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *k;
    size_t n;
    assert_tide_ok(tide_trace_kinds(t, 1, &k, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_kind(&k[0], TIDE_KIND_DEFAULT, 2048, 2048, 2048, 2048, 2, 2, 0);
    assert_kind(&k[1], TIDE_KIND_PERSISTENT, 512, 512, 512, 512, 1, 1, 0);
    assert_kind(&k[2], TIDE_KIND_WORKSPACE, 3328, 2560, 2560, 2560, 5, 5, 0);
    tide_trace_kinds_free(k);
    assert_tide_ok(tide_trace_kinds(t, 2, &k, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_kind(&k[0], TIDE_KIND_DEFAULT, 2088, 2088, 2112, 2048, 3, 2, 40); // "kept": 40 B that are not in the plan
    assert_kind(&k[1], TIDE_KIND_PERSISTENT, 512, 512, 512, 512, 1, 1, 0);
    assert_kind(&k[2], TIDE_KIND_WORKSPACE, 2560, 2560, 2560, 2560, 1, 1, 0);
    tide_trace_kinds_free(k);
    assert_tide_ok(tide_trace_kinds(t, 0, &k, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_kind(&k[2], TIDE_KIND_WORKSPACE, 5888, 2560, 2560, TIDE_UNKNOWN_BYTES, 6, 6, 0);
    tide_trace_kinds_free(k);
    assert_tide_status(tide_trace_kinds(t, 3, &k, &n, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "no run 3");
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// A kind that is planned and never allocated has a row: its difference is not hidden. Naive with a plan whose lower
/// naive peak is below its size predicts that peak.
static void test_predicted_but_never_allocated(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    plan->bytes = plan->buffers[0].bytes = 3072; // more than its tensors need: no verifier would pass it
    plan->proven = plan->verified = false;
    const char *const modes[] = {"naive", "planned"};
    for (size_t i = 0; i < 2; i++) {
        const tide_run_info info = {.model = "demo", .mode = modes[i], .device = "cpu"};
        feed_begin_run(&f, 100 * (i + 1), &info, plan);
        feed(&f, 100 * (i + 1) + 10, TIDE_MEM_ALLOC, i + 1, TIDE_KIND_KV_CACHE, 64, "kv");
        feed_end_run(&f, 100 * (i + 1) + 20);
    }
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
    tide_trace *t = open_trace(d.file);
    const uint64_t workspace[] = {DEMO_BYTES, 3072};
    for (int64_t run = 1; run <= 2; run++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_trace_kind *k;
        size_t n;
        assert_tide_ok(tide_trace_kinds(t, run, &k, &n, &err), &err);
        assert_int_equal(n, 4);
        assert_kind(&k[0], TIDE_KIND_DEFAULT, 0, 0, 0, 2048, 0, 0, 0);
        assert_kind(&k[1], TIDE_KIND_PERSISTENT, 0, 0, 0, 512, 0, 0, 0);
        assert_kind(&k[2], TIDE_KIND_WORKSPACE, 0, 0, 0, workspace[run - 1], 0, 0, 0);
        const uint64_t live = 64 * (uint64_t)run; // the first run's block lives on
        assert_kind(&k[3], TIDE_KIND_KV_CACHE, 64, live, live, 0, 1, 0, live);
        tide_trace_kinds_free(k);
    }
    tide_trace_close(t);
    assert_sql(d.file,
               "SELECT run_id, kind, predicted_bytes, measured_bytes, difference_bytes FROM predicted_vs_measured",
               "1|Default|2048|0|2048\n1|Persistent|512|0|512\n1|Workspace|2560|0|2560\n1|KVCache|0|64|-64\n"
               "2|Default|2048|0|2048\n2|Persistent|512|0|512\n2|Workspace|3072|0|3072\n2|KVCache|0|128|-128\n");
    tmp_dir_remove(&d);
}

static void test_blocks(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_block *b;
    size_t n;
    assert_tide_ok(tide_trace_blocks(t, 1, &b, &n, &err), &err);
    assert_int_equal(n, 8);
    const char *const names[] = {"x", "w", "y", "a", "conv.scratch", "b", "c", "conv2.scratch"};
    const char *const scopes[] = {"", "", "", "conv", "conv", "relu", "conv2", "conv2"};
    const int64_t steps[] = {-1, -1, -1, 0, 0, 1, 2, 2};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(b[i].id, i + 1);
        assert_string_equal(b[i].name, names[i]); // PT-26: the tag appears
        assert_string_equal(b[i].scope, scopes[i]);
        assert_int_equal(b[i].scope_index, steps[i]);
        assert_int_equal(b[i].address, 0x7f0000000000u + b[i].id * 4096);
        assert_int_equal(b[i].run_id, 1);
    }
    assert_int_equal(b[4].alloc_ns, 1120);
    assert_int_equal(b[4].free_ns, 1180);
    assert_int_equal(b[4].requested_bytes, 768);
    assert_int_equal(b[4].kind, TIDE_KIND_WORKSPACE);
    tide_trace_blocks_free(b, n);
    assert_tide_ok(tide_trace_blocks(t, 2, &b, &n, &err), &err);
    assert_int_equal(n, 5);
    assert_string_equal(b[4].name, "kept");
    assert_true(b[4].free_ns == UINT64_MAX);
    tide_trace_blocks_free(b, n);
    assert_tide_ok(tide_trace_blocks(t, 0, &b, &n, &err), &err);
    assert_int_equal(n, N_DEMO_BLOCKS);
    tide_trace_blocks_free(b, n);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

static void test_steps_are_the_first_execution(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_step *s;
    size_t n;
    assert_tide_ok(tide_trace_steps(t, 2, &s, &n, &err), &err);
    assert_int_equal(n, N_DEMO_STEPS);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(s[i].index, i);
        assert_string_equal(s[i].name, demo_steps[i]);
        assert_int_equal(s[i].begin_ns, 2100 + 50 * i);
        assert_int_equal(s[i].end_ns, 2140 + 50 * i);
    }
    tide_trace_steps_free(s, n);
    assert_tide_status(tide_trace_steps(t, 9, &s, &n, &err), TIDE_ERR_NOT_FOUND);
    tide_trace_close(t);
    assert_sql(d.file, "SELECT step, name, begin_ns, end_ns FROM steps WHERE run_id = 1",
               "0|conv|1100|1190\n1|relu|1200|1290\n2|conv2|1300|1390\n3|add|1400|1490\n");
    tmp_dir_remove(&d);
}

/// Two contexts side by side: one execution is shown, not a mixture; an operator that was never left ends with the run.
static void test_steps_of_threads_and_unfinished_ones(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    feed_begin_run(&f, 10, &info, NULL);
    const tide_scope a = {.name = "a", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    const tide_scope b = {.name = "b", .kind = TIDE_SCOPE_OPERATOR, .index = 1};
    const tide_scope nameless = {.name = NULL, .kind = TIDE_SCOPE_OPERATOR, .index = -1};
    f.thread = 1, feed_scope(&f, 20, true, &a);
    f.thread = 2, feed_scope(&f, 21, true, &a);
    f.thread = 2, feed_scope(&f, 22, false, &a);
    f.thread = 2, feed_scope(&f, 23, true, &b); // first of its step, but of the other thread
    f.thread = 2, feed_scope(&f, 24, false, &b);
    f.thread = 1, feed_scope(&f, 30, false, &a);
    f.thread = 1, feed_scope(&f, 31, true, &nameless);
    f.thread = 1, feed_scope(&f, 40, true, &b);
    f.thread = 1, feed_scope(&f, 45, true, &b); // again, without having left it
    feed_end_run(&f, 50);
    feeder_close(&f);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_step *s;
    size_t n;
    assert_tide_ok(tide_trace_steps(t, 1, &s, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(s[0].begin_ns, 20);
    assert_int_equal(s[0].end_ns, 30);
    assert_int_equal(s[1].begin_ns, 40);
    assert_int_equal(s[1].end_ns, 50);
    tide_trace_steps_free(s, n);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

static void assert_same_buffers(const tide_memory_plan *a, const tide_memory_plan *b) {
    assert_int_equal(a->n_buffers, b->n_buffers);
    for (size_t i = 0; i < a->n_buffers; i++) {
        const tide_plan_buffer *x = &a->buffers[i], *y = &b->buffers[i];
        assert_true(tide_device_equal(x->device, y->device));
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->align_bytes, y->align_bytes);
        assert_int_equal(x->bytes, y->bytes);
        assert_int_equal(x->naive_bytes, y->naive_bytes);
        assert_int_equal(x->naive_peak_bytes, y->naive_peak_bytes);
        assert_int_equal(x->lower_bound_bytes, y->lower_bound_bytes);
        assert_int_equal(x->proved_bytes, y->proved_bytes);
        assert_int_equal(x->proof, y->proof);
    }
    assert_int_equal(a->n_pools, b->n_pools);
    for (size_t i = 0; i < a->n_pools; i++) {
        assert_int_equal(a->pool_list[i].size_bytes, b->pool_list[i].size_bytes);
        assert_int_equal(a->pool_list[i].offset_bytes, b->pool_list[i].offset_bytes);
        assert_int_equal(a->pool_list[i].n_members, b->pool_list[i].n_members);
        assert_int_equal(a->pool_list[i].buffer, b->pool_list[i].buffer);
    }
}

static void assert_same_plan(const tide_memory_plan *a, const tide_memory_plan *b) {
    assert_string_equal(a->strategy, b->strategy);
    assert_string_equal(a->lifetimes.model, b->lifetimes.model);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->align_bytes, b->align_bytes);
    assert_int_equal(a->naive_bytes, b->naive_bytes);
    assert_int_equal(a->naive_peak_bytes, b->naive_peak_bytes);
    assert_int_equal(a->lower_bound_bytes, b->lower_bound_bytes);
    assert_int_equal(a->proved_bytes, b->proved_bytes);
    assert_int_equal(a->proven, b->proven);
    assert_int_equal(a->verified, b->verified);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_same_lifetimes(&a->lifetimes, &b->lifetimes);
    for (size_t i = 0; i < a->lifetimes.n; i++) {
        assert_true(a->offsets[i] == b->offsets[i]);
        assert_int_equal(a->pools[i], b->pools[i]);
    }
    assert_same_buffers(a, b);
}

/// S23-14: plans of tables that use everything a table can hold: gaps, fixed offsets, sets, aliases, several buffers,
/// sizes at profile points, nodes that run twice.
static void test_every_feature_round_trip(void **state) {
    (void)state;
    enum { N = 20 };
    tide_memory_plan *plans[N];
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "planned", .device = "cpu"};
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 0; seed < N; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        if (seed % 3 == 0) {
            lt.point_names = tide_host_calloc(2, sizeof *lt.point_names);
            for (size_t k = 0; k < 2; k++) lt.point_names[k] = tide_host_strdup(k == 0 ? "x=1" : "x=4");
            lt.n_points = 2;
            lt.recomputed = tide_host_calloc(1, sizeof *lt.recomputed);
            lt.recomputed[0] = tide_host_strdup("conv");
            lt.n_recomputed = 1;
        }
        lt.model = tide_host_strdup("m");
        put_every_feature(&lt, &rng, 20);
        if (seed % 3 == 0) {
            uint64_t sizes[2] = {10, 40};
            tide_lifetime item = an_item("sized", 40, 8, 0, 1);
            item.point_bytes = sizes;
            assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
        }
        plans[seed] = make_plan(&lt, "greedy_by_size");
        tide_lifetimes_deinit(&lt);
        feed_begin_run(&f, 10 * seed, &info, plans[seed]);
        feed_end_run(&f, 10 * seed + 5);
    }
    feeder_close(&f);
    tide_trace *t = open_trace(d.file);
    for (size_t i = 0; i < N; i++) {
        tide_memory_plan *back;
        assert_tide_ok(tide_trace_plan(t, (int64_t)i + 1, &back, &err), &err);
        assert_same_plan(plans[i], back);
        tide_memory_plan_destroy(back);
        tide_memory_plan_destroy(plans[i]);
    }
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// S23-14: a plan goes through a trace unchanged, in both forms, and an empty one too.
static void test_plan_round_trip(void **state) {
    (void)state;
    tide_memory_plan *plans[3] = {demo_plan_make(), demo_plan_make(), tide_host_calloc(1, sizeof **plans)};
    plans[1]->form = TIDE_PLAN_POOLS;
    plans[1]->n_pools = 2;
    plans[1]->pool_list = tide_host_calloc(2, sizeof *plans[1]->pool_list);
    plans[1]->pool_list[0] = (tide_plan_pool){1024, 0, 1, 0};
    plans[1]->pool_list[1] = (tide_plan_pool){768, 1024, 2, 0};
    plans[1]->pools[2] = 0;
    plans[1]->pools[3] = plans[1]->pools[4] = 1;
    plans[1]->lifetimes.items[5].device = (tide_device){TIDE_DEVICE_CUDA, 3};
    plans[1]->proven = plans[1]->verified = false;
    plans[2]->strategy = tide_host_strdup("naïve \"x'");
    plans[2]->lifetimes.model = tide_host_strdup("");
    plans[2]->form = TIDE_PLAN_OFFSETS;
    plans[2]->align_bytes = 1;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "planned", .device = "cpu"};
    for (uint64_t i = 0; i < 3; i++) {
        feed_begin_run(&f, 10 * i, &info, plans[i]);
        feed_end_run(&f, 10 * i + 5);
    }
    feed_begin_run(&f, 40, &info, NULL);
    feed_end_run(&f, 45);
    feeder_close(&f);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    for (int64_t i = 0; i < 3; i++) {
        tide_memory_plan *back;
        assert_tide_ok(tide_trace_plan(t, i + 1, &back, &err), &err);
        assert_same_plan(plans[i], back);
        tide_memory_plan_destroy(back);
        tide_memory_plan_destroy(plans[i]);
    }
    tide_memory_plan *none;
    assert_tide_status(tide_trace_plan(t, 4, &none, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "has no plan");
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// A plan that SQLite's integers cannot hold is refused, nothing of it is written, and recording goes on.
static void test_plan_too_large_to_store(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    plan->naive_bytes = UINT64_MAX;
    const tide_run_info info = {.model = "m", .mode = "planned", .device = "cpu"};
    tide_error err = TIDE_ERROR_INIT;
    int64_t id;
    assert_tide_status(tide_recorder_begin_run(f.rec, &info, plan, &id, &err), TIDE_ERR_OVERFLOW);
    plan->naive_bytes = DEMO_NAIVE_BYTES;
    assert_int_equal(feed_begin_run(&f, 10, &info, plan), 1);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
    assert_sql(d.file, "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM plan_tensor)", "1|8\n");
    tmp_dir_remove(&d);
}

static void test_moments(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    const struct {
        int kind;
        uint64_t t_ns, want;
    } at[] = {
        {-1, 0, 0},
        {-1, 1009, 0},
        {-1, 1010, 1024}, // just after: the block of that moment is there
        {-1, 1320, 5120},
        {TIDE_KIND_WORKSPACE, 1320, 2560},
        {TIDE_KIND_WORKSPACE, 1369, 2560}, // requested, not yet complete
        {TIDE_KIND_WORKSPACE, 1370, 2304},
        {TIDE_KIND_HOST_PINNED, 1320, 0},
        {-1, 1520, 0},
        {-1, UINT64_MAX, 40},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        uint64_t bytes;
        assert_tide_ok(tide_trace_live_at(t, at[i].kind, at[i].t_ns, &bytes, &err), &err);
        assert_int_equal(bytes, at[i].want);
    }
    uint64_t bytes, t_ns;
    assert_tide_ok(tide_trace_peak(t, 1, -1, &bytes, &t_ns, &err), &err);
    assert_int_equal(bytes, 5120);
    assert_int_equal(t_ns, 1320);
    assert_tide_ok(tide_trace_peak(t, 2, -1, &bytes, &t_ns, &err), &err);
    assert_int_equal(bytes, 5160);
    assert_int_equal(t_ns, 2660);
    assert_tide_ok(tide_trace_peak(t, 2, TIDE_KIND_WORKSPACE, &bytes, &t_ns, &err), &err);
    assert_int_equal(bytes, 2560);
    assert_int_equal(t_ns, 2040);
    assert_tide_ok(tide_trace_peak(t, 2, TIDE_KIND_KV_CACHE, &bytes, &t_ns, &err), &err);
    assert_int_equal(bytes, 0);
    assert_int_equal(t_ns, 2000);
    assert_tide_ok(tide_trace_peak(t, 0, -1, &bytes, NULL, &err), &err);
    assert_int_equal(bytes, 5160);
    assert_tide_status(tide_trace_peak(t, 7, -1, &bytes, NULL, &err), TIDE_ERR_NOT_FOUND);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- random traces against a naive oracle ----

typedef struct oracle_block {
    uint64_t id, bytes, alloc_ns, free_ns;
    tide_memory_kind kind;
} oracle_block;

typedef struct oracle {
    oracle_block blocks[400];
    size_t n_blocks;
    uint64_t begin_ns[4], end_ns[4]; ///< [0] the whole; events happen at times of their own
    uint64_t times[1000];
    size_t n_times;
} oracle;

static uint64_t oracle_live(const oracle *o, int kind, uint64_t t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < o->n_blocks; i++) {
        const oracle_block *b = &o->blocks[i];
        if ((kind < 0 || (int)b->kind == kind) && b->alloc_ns <= t && b->free_ns > t) sum += b->bytes;
    }
    return sum;
}

static void oracle_peak(const oracle *o, int run, int kind, uint64_t *bytes, uint64_t *t_ns) {
    *bytes = oracle_live(o, kind, o->begin_ns[run]);
    *t_ns = o->begin_ns[run];
    for (size_t i = 0; i < o->n_times; i++) {
        if (o->times[i] < o->begin_ns[run] || o->times[i] > o->end_ns[run]) continue;
        const uint64_t live = oracle_live(o, kind, o->times[i]);
        if (live <= *bytes) continue;
        *bytes = live;
        *t_ns = o->times[i];
    }
}

/// Three runs with gaps between them, in which blocks come and go too; some blocks live across runs, some for ever.
static void record_random(feeder *f, oracle *o, uint64_t seed) {
    tide_rng rng = {seed};
    uint64_t now = 1000;
    *o = (oracle){0};
    for (int i = 0; i < 700; i++) {
        now += 1 + tide_rng_below(&rng, 20);
        const int run = i / 100;
        if (i % 100 == 0 && run % 2 == 1) {
            const tide_run_info info = {.model = "random", .mode = "naive", .device = "cpu"};
            feed_begin_run(f, now++, &info, NULL);
            o->begin_ns[run / 2 + 1] = now - 1;
        }
        if (tide_rng_below(&rng, 5) < 3 && o->n_blocks < 400) {
            oracle_block *b = &o->blocks[o->n_blocks++];
            *b = (oracle_block){.id = o->n_blocks,
                                .bytes = tide_rng_below(&rng, 10) == 0 ? 0 : tide_rng_below(&rng, 1u << 20),
                                .alloc_ns = now,
                                .free_ns = UINT64_MAX,
                                .kind = (tide_memory_kind)tide_rng_below(&rng, TIDE_N_KINDS)};
            feed(f, now, TIDE_MEM_ALLOC, b->id, b->kind, b->bytes, "block");
            o->times[o->n_times++] = now;
        } else if (o->n_blocks > 0) {
            oracle_block *b = &o->blocks[tide_rng_below(&rng, o->n_blocks)];
            if (b->free_ns == UINT64_MAX) {
                now++;
                feed_free(f, now, b->id, b->kind, b->bytes, "block");
                b->free_ns = now;
                o->times[o->n_times++] = now;
            }
        }
        if (i % 100 == 99 && run % 2 == 1) {
            feed_end_run(f, ++now);
            o->end_ns[run / 2 + 1] = now;
        }
    }
    o->begin_ns[0] = o->times[0];
    o->end_ns[0] = now;
}

static void check_peaks(tide_trace *t, const oracle *o) {
    tide_error err = TIDE_ERROR_INIT;
    for (int run = 0; run <= 3; run++) {
        for (int kind = -1; kind < TIDE_N_KINDS; kind++) {
            uint64_t want, want_ns, got, got_ns;
            oracle_peak(o, run, kind, &want, &want_ns);
            assert_tide_ok(tide_trace_peak(t, run, kind, &got, &got_ns, &err), &err);
            assert_int_equal(got, want);
            assert_int_equal(got_ns, want_ns);
        }
    }
}

static void check_kinds(tide_trace *t, const oracle *o) {
    tide_error err = TIDE_ERROR_INIT;
    for (int run = 0; run <= 3; run++) {
        tide_trace_kind *k;
        size_t n, n_allocs = 0, n_frees = 0;
        assert_tide_ok(tide_trace_kinds(t, run, &k, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            uint64_t peak, peak_ns;
            oracle_peak(o, run, (int)k[i].kind, &peak, &peak_ns);
            assert_int_equal(k[i].peak_bytes, peak);
            assert_int_equal(k[i].live_at_end_bytes, oracle_live(o, (int)k[i].kind, o->end_ns[run]));
            assert_true(k[i].predicted_bytes == TIDE_UNKNOWN_BYTES);
            n_allocs += k[i].n_allocs;
            n_frees += k[i].n_frees;
        }
        tide_trace_kinds_free(k);
        for (size_t i = 0; i < o->n_blocks; i++) {
            const oracle_block *b = &o->blocks[i];
            n_allocs -= b->alloc_ns >= o->begin_ns[run] && b->alloc_ns <= o->end_ns[run];
            n_frees -= b->free_ns >= o->begin_ns[run] && b->free_ns <= o->end_ns[run];
        }
        assert_int_equal(n_allocs, 0);
        assert_int_equal(n_frees, 0);
    }
}

static void check_blocks(tide_trace *t, const oracle *o) {
    tide_error err = TIDE_ERROR_INIT;
    for (int run = 0; run <= 3; run++) {
        tide_trace_block *b;
        size_t n, at = 0;
        assert_tide_ok(tide_trace_blocks(t, run, &b, &n, &err), &err);
        for (size_t i = 0; i < o->n_blocks; i++) {
            const oracle_block *want = &o->blocks[i];
            if (want->alloc_ns > o->end_ns[run] || want->free_ns < o->begin_ns[run]) continue;
            assert_true(at < n);
            assert_int_equal(b[at].id, want->id);
            assert_int_equal(b[at].requested_bytes, want->bytes);
            assert_int_equal(b[at].alloc_ns, want->alloc_ns);
            assert_true(b[at].free_ns == want->free_ns);
            assert_int_equal(b[at].kind, want->kind);
            at++;
        }
        assert_int_equal(at, n);
        tide_trace_blocks_free(b, n);
    }
}

/// The views answer as the API does: another implementation of the same questions, in SQL.
static void check_views(const char *path, tide_trace *t) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text kinds = {0}, peaks = {0}, leaks = {0};
    for (int run = 0; run <= 3; run++) {
        tide_trace_kind *k;
        size_t n;
        assert_tide_ok(tide_trace_kinds(t, run, &k, &n, &err), &err);
        for (size_t i = 0; i < n; i++)
            tide_text_addf(&kinds, "%d|%s|%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n",
                           run, tide_memory_kind_name(k[i].kind), k[i].device, k[i].n_allocs, k[i].n_frees,
                           k[i].requested_bytes, k[i].peak_bytes, k[i].peak_reserved_bytes, k[i].live_at_end_bytes);
        tide_trace_kinds_free(k);
        uint64_t bytes, t_ns;
        assert_tide_ok(tide_trace_peak(t, run, -1, &bytes, &t_ns, &err), &err);
        tide_text_addf(&peaks, "%d|%" PRIu64 "|%" PRIu64 "\n", run, bytes, t_ns);
    }
    assert_sql(path, "SELECT b.* FROM bytes_by_kind b JOIN kind k ON k.name = b.kind ORDER BY run_id, k.id",
               tide_text_str(&kinds));
    assert_sql(path, "SELECT run_id, peak_bytes, t_ns FROM peak ORDER BY run_id", tide_text_str(&peaks));
    assert_sql(path,
               "SELECT run_id, sum(requested_bytes) - (SELECT peak_bytes FROM peak p WHERE p.run_id = l.run_id) "
               "FROM live_at_peak l GROUP BY run_id",
               "0|0\n1|0\n2|0\n3|0\n");
    assert_sql(path,
               "SELECT count(*) FROM peak_by_kind p JOIN bytes_by_kind b USING (run_id, kind, device) "
               "WHERE p.peak_bytes <> b.peak_bytes",
               "0\n");
    tide_trace_block *b;
    size_t n;
    assert_tide_ok(tide_trace_blocks(t, 0, &b, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        if (b[i].free_ns == UINT64_MAX) tide_text_addf(&leaks, "%" PRIu64 "\n", b[i].id);
    }
    tide_trace_blocks_free(b, n);
    assert_sql(path, "SELECT block_id FROM leaks ORDER BY block_id", tide_text_str(&leaks));
    tide_text_deinit(&kinds);
    tide_text_deinit(&peaks);
    tide_text_deinit(&leaks);
}

static void test_random_traces_against_the_oracle(void **state) {
    (void)state;
    oracle *o = tide_host_alloc(sizeof *o);
    assert_non_null(o);
    for (uint64_t seed = 1; seed <= (uint64_t)tide_test_rounds(2, 6); seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        tmp_dir d;
        tmp_dir_make(&d);
        feeder f;
        feeder_open(&f, d.file, seed == 1 ? 1 : 50, false);
        record_random(&f, o, seed);
        feeder_close(&f);
        tide_trace *t = open_trace(d.file);
        tide_error err = TIDE_ERROR_INIT;
        for (uint64_t at = o->begin_ns[0] - 5; at < o->end_ns[0] + 5; at += 7) {
            for (int kind = -1; kind < TIDE_N_KINDS; kind += 3) {
                uint64_t bytes;
                assert_tide_ok(tide_trace_live_at(t, kind, at, &bytes, &err), &err);
                assert_int_equal(bytes, oracle_live(o, kind, at));
            }
        }
        check_peaks(t, o);
        check_kinds(t, o);
        check_blocks(t, o);
        check_views(d.file, t);
        tide_trace_close(t);
        tmp_dir_remove(&d);
    }
    tide_host_free(o);
}

/// Streams, addresses and two devices: all bits come back, kinds are told apart by device.
static void test_wide_numbers_and_devices(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    for (int i = 0; i < 3; i++) {
        const tide_memory_event event = {.op = TIDE_MEM_ALLOC,
                                         .t_ns = 10 + (uint64_t)i,
                                         .block_id = (UINT64_C(1) << 48) - 1 - (uint64_t)i,
                                         .device = {TIDE_DEVICE_CUDA, i},
                                         .kind = TIDE_KIND_WORKSPACE,
                                         .stream = UINT64_MAX - (uint64_t)i,
                                         .requested_bytes = 1ull << 60,
                                         .reserved_bytes = 1ull << 61,
                                         .address = UINT64_MAX - 4095,
                                         .thread = INT32_MAX};
        f.obs.on_memory(f.obs.self, &event);
    }
    feeder_close(&f);
    tide_trace *t = open_trace(d.file);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_block *b;
    size_t n;
    assert_tide_ok(tide_trace_blocks(t, 0, &b, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_true(b[1].id == (UINT64_C(1) << 48) - 2 && b[1].stream == UINT64_MAX - 1);
    assert_true(b[1].address == UINT64_MAX - 4095 && b[1].thread == INT32_MAX);
    assert_string_equal(b[1].device, "cuda:1");
    assert_string_equal(b[1].name, "");
    tide_trace_blocks_free(b, n);
    tide_trace_kind *k;
    assert_tide_ok(tide_trace_kinds(t, 0, &k, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(k[2].device, "cuda:2");
    assert_true(k[2].peak_reserved_bytes == 1ull << 61);
    tide_trace_kinds_free(k);
    uint64_t bytes;
    assert_tide_ok(tide_trace_peak(t, 0, -1, &bytes, NULL, &err), &err);
    assert_true(bytes == 3 * (1ull << 60));
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// Every allocation of ours fails once in every question.
static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    bool done = false;
    int64_t after = 0;
    for (; !done && after < 1000; after++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t = NULL;
        tide_trace_run *runs = NULL;
        tide_trace_kind *kinds = NULL;
        tide_trace_block *blocks = NULL;
        tide_trace_step *steps = NULL;
        tide_memory_plan *plan = NULL;
        size_t n, n_blocks = 0, n_steps = 0;
        uint64_t bytes;
        tide_host_fail_after(after);
        tide_status st = tide_trace_open(d.file, &t, &err);
        if (st == TIDE_OK) st = tide_trace_runs(t, &runs, &n, &err);
        if (st == TIDE_OK) st = tide_trace_kinds(t, 2, &kinds, &n, &err);
        if (st == TIDE_OK) st = tide_trace_blocks(t, 1, &blocks, &n_blocks, &err);
        if (st == TIDE_OK) st = tide_trace_steps(t, 1, &steps, &n_steps, &err);
        if (st == TIDE_OK) st = tide_trace_plan(t, 1, &plan, &err);
        if (st == TIDE_OK) st = tide_trace_peak(t, 1, -1, &bytes, NULL, &err);
        tide_host_fail_after(-1);
        done = st == TIDE_OK;
        if (!done) assert_tide_status(st, TIDE_ERR_NOMEM);
        tide_memory_plan_destroy(plan);
        tide_trace_steps_free(steps, n_steps);
        tide_trace_blocks_free(blocks, n_blocks);
        tide_trace_kinds_free(kinds);
        tide_trace_runs_free(runs);
        tide_trace_close(t);
    }
    assert_true(done);
    print_message("%" PRId64 " allocations failed, one at a time\n", after);
    assert_true(after > 50);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_runs),
        tide_unit_test(test_kinds_predicted_and_measured),
        tide_unit_test(test_predicted_but_never_allocated),
        tide_unit_test(test_blocks),
        tide_unit_test(test_steps_are_the_first_execution),
        tide_unit_test(test_steps_of_threads_and_unfinished_ones),
        tide_unit_test(test_every_feature_round_trip),
        tide_unit_test(test_plan_round_trip),
        tide_unit_test(test_plan_too_large_to_store),
        tide_unit_test(test_moments),
        tide_unit_test(test_random_traces_against_the_oracle),
        tide_unit_test(test_wide_numbers_and_devices),
        tide_unit_test(test_out_of_memory_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
