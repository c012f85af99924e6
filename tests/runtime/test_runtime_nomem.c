// SPDX-License-Identifier: MIT
//
// Out of memory as a loop: the n-th allocation between a graph and its outputs fails, for every n, with the right
// status, no crash, nothing left behind and nothing half changed. Once for the memory of our own bookkeeping, once for
// the blocks of the allocators behind the registry.
#include "core/graph/import.h"
#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

enum { MAX_FAILURES = 5000 };

// ---- a rig whose allocator can be made to fail ----

typedef struct scarce {
    rt_rig rig;
    tide_allocator *fail;
} scarce;

static void open_scarce(scarce *s, int64_t n) {
    tide_error err = TIDE_ERROR_INIT;
    rt_rig_open(&s->rig);
    tide_allocator *cpu, *metered;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_fail_nth_create(cpu, n, &s->fail, &err), &err);
    assert_tide_ok(tide_instrumented_create(s->fail, &s->rig.observer, &metered, &err), &err);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++)
        assert_tide_ok(tide_registry_add(s->rig.registry, (tide_memory_kind)kind, metered, 10, &err), &err);
    tide_allocator_unref(metered);
    tide_allocator_unref(cpu);
}

static void arm(scarce *s, int64_t n) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_fail_nth_arm(s->fail, n, &err), &err);
}

/// All three books say that nothing is out: the allocator's, the meter's, and the hosts's (by the test's fixture).
static void close_scarce(scarce *s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator_stats stats;
    tide_allocator_get_stats(s->fail, &stats);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.active_bytes, 0);
    assert_int_equal(stats.n_allocs, stats.n_frees);
    assert_tide_ok(tide_allocator_check(s->fail, &err), &err);
    rt_rig_close(&s->rig);
    tide_allocator_unref(s->fail);
}

// ---- the whole scenario ----

typedef struct pieces {
    tide_program *p;
    tide_lifetimes lt;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c[2];
} pieces;

/// `g` is taken. Weights are moved into the registry's memory, as a program of the command line does.
static tide_status make_all(pieces *x, tide_graph *g, const scarce *s, tide_tensor *in, tide_error *err) {
    const tide_program_options popt = {.weights_registry = s->rig.registry, .allow_dynamic = true};
    TIDE_TRY(tide_program_build(g, &popt, &x->p, err));
    TIDE_TRY(tide_liveness(x->p, TIDE_DEFAULT_ALIGN, &x->lt, err));
    const tide_strategy_options sopt = {0};
    TIDE_TRY(tide_plan_make(&x->lt, tide_strategy_default(), &sopt, &x->m, err));
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = s->rig.registry, .memory_plan = x->m};
    TIDE_TRY(tide_inference_plan_create(x->p, &opt, &x->ip, err));
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        const tide_context_options copt = {.mode = (tide_run_mode)mode, .fill = TIDE_FILL_POISON};
        TIDE_TRY(tide_context_create(x->ip, &copt, &x->c[mode], err));
        TIDE_TRY(tide_context_set_inputs(x->c[mode], &in, 1, err));
        TIDE_TRY(tide_context_run(x->c[mode], err));
    }
    return TIDE_OK;
}

static void drop_all(pieces *x) {
    for (int mode = 0; mode < 2; mode++) tide_context_destroy(x->c[mode]);
    tide_inference_plan_unref(x->ip);
    tide_memory_plan_destroy(x->m);
    tide_lifetimes_deinit(&x->lt);
    tide_program_unref(x->p);
}

/// @return whether that was the last round
static bool judge(int64_t n, tide_status st, const tide_error *err) {
    if (st == TIDE_OK) {
        print_message("%lld allocations failed one by one\n", (long long)n);
        assert_true(n > 0); // a scenario without an allocation would prove nothing
        return true;
    }
    if (st != TIDE_ERR_NOMEM) fail_msg("allocation %lld: %s: %s", (long long)n, tide_status_name(st), err->msg);
    assert_true(err->msg[0] != '\0');
    assert_true(n < MAX_FAILURES);
    return false;
}

static void fail_each_host(tide_graph *(*make)(void), const char *input_shape) {
    tide_tensor *in = rt_tensor(input_shape, 1);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        scarce s;
        open_scarce(&s, -1);
        tide_graph *g = make();
        tide_error err = TIDE_ERROR_INIT;
        pieces x = {0};
        tide_host_fail_after(n);
        const tide_status st = make_all(&x, g, &s, in, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) rt_assert_same_outputs(x.c[0], x.c[1]);
        drop_all(&x);
        close_scarce(&s);
        done = judge(n, st, &err);
    }
    tide_tensor_unref(in);
}

static void test_host_diamond(void **state) {
    (void)state;
    fail_each_host(rt_graph_diamond, "4x64");
}

static void test_host_conv(void **state) {
    (void)state;
    fail_each_host(rt_graph_conv, "1x3x16x16");
}

/// How many columns come out hangs on x: everything behind it is sized while running.
static tide_graph *graph_dynamic(void) {
    tide_graph *g = rt_graph("dynamic");
    rt_input(g, "x", "4x6");
    rt_node(g, "Tanh", "tanh", "x", "a");
    rt_node(g, "Unique", "unique", "a", "u,,i");
    rt_node(g, "Relu", "relu", "u", "r");
    rt_node(g, "Add", "add", "r,u", "y");
    rt_output(g, "y");
    rt_output(g, "i");
    return g;
}

/// Kernels with a state, objects of a library and scratch of their own, made anew in each run.
static tide_graph *graph_dynamic_kernels(void) {
    tide_graph *g = rt_graph("dynamic_kernels");
    rt_input(g, "x", "4x6");
    rt_node(g, "Unique", "unique", "x", "u");
    rt_node(g, "Softmax", "softmax", "u", "s");
    rt_node(g, "MatMul", "matmul", "s,u", "m");
    rt_node(g, "NonZero", "nonzero", "u", "n");
    rt_node(g, "Transpose", "turn", "n", "t");
    rt_node(g, "GatherND", "pick", "s,t", "p");
    rt_output(g, "m");
    rt_output(g, "p");
    return g;
}

static void test_host_dynamic(void **state) {
    (void)state;
    fail_each_host(graph_dynamic, "4x6");
    fail_each_host(graph_dynamic_kernels, "4x6");
}

/// The same over the blocks: weights, buffer, outputs, births; the message says who asked.
static void fail_each_block(tide_graph *(*make)(void), const char *input_shape) {
    tide_tensor *in = rt_tensor(input_shape, 1);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        scarce s;
        open_scarce(&s, n);
        tide_error err = TIDE_ERROR_INIT;
        pieces x = {0};
        const tide_status st = make_all(&x, make(), &s, in, &err);
        drop_all(&x);
        close_scarce(&s);
        if (st != TIDE_OK) assert_text_has(err.msg, "B for '");
        done = judge(n, st, &err);
    }
    tide_tensor_unref(in);
}

static void test_blocks(void **state) {
    (void)state;
    fail_each_block(rt_graph_conv, "1x3x16x16");
    fail_each_block(graph_dynamic, "4x6");
    fail_each_block(graph_dynamic_kernels, "4x6");
}

// ---- from the text on ----

static const char text[] =
    "{\"schema\": \"tidemark.graph\", \"version\": 1, \"name\": \"small\","
    " \"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [2, 3]}],"
    " \"initializers\": [{\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [3, 4], \"random\": {\"low\": -1}}],"
    " \"nodes\": [{\"op\": \"MatMul\", \"inputs\": [\"x\", \"w\"], \"outputs\": [\"a\"]},"
    "             {\"op\": \"Relu\", \"inputs\": [\"a\"], \"outputs\": [\"b\"]},"
    "             {\"op\": \"Add\", \"inputs\": [\"a\", \"b\"], \"outputs\": [\"y\"]}],"
    " \"outputs\": [\"y\"]}";

static void test_host_from_text(void **state) {
    (void)state;
    tide_tensor *in = rt_tensor("2x3", 1);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        scarce s;
        open_scarce(&s, -1);
        tide_error err = TIDE_ERROR_INIT;
        pieces x = {0};
        tide_graph *g = NULL;
        tide_host_fail_after(n);
        tide_status st = tide_graph_from_json(text, sizeof text - 1, "small.json", &g, &err);
        if (st == TIDE_OK) st = make_all(&x, g, &s, in, &err);
        tide_host_fail_after(-1);
        drop_all(&x);
        close_scarce(&s);
        done = judge(n, st, &err);
    }
    tide_tensor_unref(in);
}

// ---- one context, run after failed run ----

typedef struct set {
    scarce s;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c;
    char *want; ///< output bytes of a good run
    size_t n_want;
} set;

static void open_set(set *x, tide_graph *g, tide_run_mode mode) {
    open_scarce(&x->s, -1);
    x->p = rt_build(g);
    x->m = rt_plan_aliased(x->p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    x->ip = rt_inference(&x->s.rig, x->p, x->m);
    x->c = rt_context(x->ip, mode, TIDE_FILL_POISON);
    rt_feed(x->c, x->p, &x->s.rig, 7);
    rt_run(x->c);
    x->want = rt_output_bytes(x->c, &x->n_want);
}

static void close_set(set *x) {
    tide_host_free(x->want);
    tide_context_destroy(x->c);
    tide_inference_plan_unref(x->ip);
    tide_memory_plan_destroy(x->m);
    tide_program_unref(x->p);
    close_scarce(&x->s);
}

static void assert_runs_right(set *x) {
    size_t n;
    rt_run(x->c);
    char *got = rt_output_bytes(x->c, &n);
    assert_int_equal(n, x->n_want);
    assert_memory_equal(got, x->want, n);
    tide_host_free(got);
}

/// A naive run that fails at its n-th birth holds nothing afterwards, and the same context runs right at once.
static void fail_births(bool host) {
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        set x;
        open_set(&x, g, TIDE_RUN_NAIVE);
        bool done = false;
        for (int64_t n = 0; !done; n++) {
            tide_error err = TIDE_ERROR_INIT;
            if (host) tide_host_fail_after(n);
            if (!host) arm(&x.s, n);
            const tide_status st = tide_context_run(x.c, &err);
            tide_host_fail_after(-1);
            arm(&x.s, -1);
            assert_int_equal(rt_live(&x.s.rig, TIDE_KIND_WORKSPACE), 0);
            assert_null(tide_scope_current());
            if (st != TIDE_OK) assert_text_has(err.msg, "node '");
            assert_runs_right(&x);
            done = judge(n, st, &err);
        }
        close_set(&x);
    }
}

static void test_same_context_after_failed_births(void **state) {
    (void)state;
    fail_births(false);
}

static void test_same_context_after_failed_births_host(void **state) {
    (void)state;
    fail_births(true);
}

/// A planned run allocates only where an output was lazily cloned, and there one block and nothing of ours. When that
/// copy fails, output and clone are as they were, and the run can be tried again.
static void test_failed_copy_by_write(void **state) {
    (void)state;
    set x;
    open_set(&x, rt_graph_early_output(), TIDE_RUN_PLANNED);
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_tensor *y = tide_context_output(x.c, 1), *clone;
        assert_tide_ok(tide_tensor_lazy_clone(y, NULL, &clone, NULL, &err), &err);
        const void *before = tide_tensor_const_data(y);
        arm(&x.s, n);
        tide_host_fail_after(0);
        const tide_status st = tide_context_run(x.c, &err);
        tide_host_fail_after(-1);
        arm(&x.s, -1);
        if (st != TIDE_OK) {
            assert_text_has(err.msg, "output 'late'");
            assert_ptr_equal(tide_tensor_const_data(y), before);
            assert_true(tide_tensor_is_alias(y, clone));
        }
        assert_memory_equal(tide_tensor_const_data(clone), x.want + x.n_want / 2, x.n_want / 2);
        assert_runs_right(&x);
        assert_ptr_equal(tide_tensor_const_data(clone), before);
        tide_tensor_unref(clone);
        done = judge(n, st, &err);
    }
    close_set(&x);
}

/// S27-3: whichever step of making a context fails, its status comes back and nothing is left; the inference plan
/// serves on.
static void test_plan_after_failed_contexts(void **state) {
    (void)state;
    set x;
    open_set(&x, rt_graph_conv(), TIDE_RUN_PLANNED);
    const uint64_t hash = tide_inference_plan_hash(x.ip), live = rt_live(&x.s.rig, TIDE_KIND_WORKSPACE);
    const tide_context_options opt = {.mode = TIDE_RUN_PLANNED};
    for (int host = 0; host < 2; host++) {
        bool done = false;
        for (int64_t n = 0; !done; n++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_context *c = NULL;
            if (host) tide_host_fail_after(n);
            if (!host) arm(&x.s, n);
            const tide_status st = tide_context_create(x.ip, &opt, &c, &err);
            tide_host_fail_after(-1);
            arm(&x.s, -1);
            tide_context_destroy(c);
            assert_int_equal(rt_live(&x.s.rig, TIDE_KIND_WORKSPACE), live);
            done = judge(n, st, &err);
        }
    }
    assert_int_equal(tide_inference_plan_hash(x.ip), hash);
    assert_runs_right(&x);
    close_set(&x);
}

/// Feeding and a warm planned run take nothing at all.
static void test_nothing_to_fail_while_warm(void **state) {
    (void)state;
    set x;
    open_set(&x, rt_graph_diamond(), TIDE_RUN_PLANNED);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *in = rt_tensor("4x64", 1);
    tide_host_fail_after(0);
    arm(&x.s, 0);
    tide_status st = tide_context_set_inputs(x.c, &in, 1, &err);
    if (st == TIDE_OK) st = tide_context_run(x.c, &err);
    tide_host_fail_after(-1);
    arm(&x.s, -1);
    assert_tide_ok(st, &err);
    tide_tensor_unref(in);
    close_set(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_host_diamond),
        tide_unit_test(test_host_conv),
        tide_unit_test(test_host_dynamic),
        tide_unit_test(test_host_from_text),
        tide_unit_test(test_blocks),
        tide_unit_test(test_same_context_after_failed_births),
        tide_unit_test(test_same_context_after_failed_births_host),
        tide_unit_test(test_failed_copy_by_write),
        tide_unit_test(test_plan_after_failed_contexts),
        tide_unit_test(test_nothing_to_fail_while_warm),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
