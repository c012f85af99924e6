// SPDX-License-Identifier: MIT
//
// Out of memory as a loop: the n-th host allocation between a graph and its outputs fails, for every n, with the right
// status, no crash and nothing left behind.
#include "rt_util.h"

typedef struct pieces {
    tide_program *p;
    tide_lifetimes lt;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c[2];
} pieces;

static tide_status make_all(pieces *x, tide_graph *g, rt_rig *rig, tide_tensor *in, tide_error *err) {
    TIDE_TRY(tide_program_build(g, NULL, &x->p, err));
    TIDE_TRY(tide_liveness(x->p, TIDE_DEFAULT_ALIGN, &x->lt, err));
    const tide_strategy_options sopt = {0};
    TIDE_TRY(tide_plan_make(&x->lt, tide_strategy_default(), &sopt, &x->m, err));
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = rig->registry, .memory_plan = x->m};
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

static void fail_each(tide_graph *(*make)(void), const char *input_shape) {
    tide_tensor *in = rt_tensor(input_shape, 1);
    for (int64_t n = 0;; n++) {
        rt_rig rig;
        rt_rig_open(&rig);
        tide_graph *g = make();
        tide_error err = TIDE_ERROR_INIT;
        pieces x = {0};
        tide_host_fail_after(n);
        const tide_status st = make_all(&x, g, &rig, in, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) rt_assert_same_outputs(x.c[0], x.c[1]);
        drop_all(&x);
        rt_rig_close(&rig);
        if (st == TIDE_OK) {
            print_message("%lld allocations failed one by one\n", (long long)n);
            break;
        }
        if (st != TIDE_ERR_NOMEM) fail_msg("allocation %lld: %s: %s", (long long)n, tide_status_name(st), err.msg);
        assert_true(err.msg[0] != '\0');
        assert_true(n < 5000);
    }
    tide_tensor_unref(in);
}

static void test_diamond(void **state) {
    (void)state;
    fail_each(rt_graph_diamond, "4x64");
}

static void test_conv(void **state) {
    (void)state;
    fail_each(rt_graph_conv, "1x3x16x16");
}

// ---- the device's memory runs out: the k-th tensor allocation fails ----

typedef struct short_allocator {
    tide_allocator *inner;
    int64_t left; ///< successes to go; -1: no limit
} short_allocator;

static tide_status short_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    short_allocator *a = self;
    if (a->left == 0) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "short: '%s' of %zu B", req->tag, req->size_bytes);
    if (a->left > 0) a->left--;
    return tide_allocator_alloc(a->inner, req, out, err);
}
static void short_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    tide_allocator_release(((short_allocator *)self)->inner, mem, last_stream);
}
static void short_stats(const void *self, tide_allocator_stats *out) {
    tide_allocator_get_stats(((const short_allocator *)self)->inner, out);
}
static void short_destroy(void *self) { tide_allocator_unref(((short_allocator *)self)->inner); }

static void test_tensor_memory(void **state) {
    (void)state;
    static const tide_allocator_ops ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "short",
                                           .alloc = short_alloc,
                                           .release = short_release,
                                           .stats = short_stats,
                                           .destroy = short_destroy};
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *in = rt_tensor("1x3x16x16", 1);
    for (int64_t n = 0;; n++) {
        short_allocator state_of = {.left = n};
        assert_tide_ok(tide_cpu_allocator_create(&state_of.inner, &err), &err);
        tide_allocator *a;
        assert_tide_ok(tide_allocator_create(&ops, &state_of, TIDE_CPU, &a, &err), &err);
        rt_rig rig;
        rt_rig_open(&rig);
        for (int kind = 0; kind < TIDE_N_KINDS; kind++)
            assert_tide_ok(tide_registry_add(rig.registry, (tide_memory_kind)kind, a, 10, &err), &err);
        pieces x = {0};
        const tide_status st = make_all(&x, rt_graph_conv(), &rig, in, &err);
        drop_all(&x);
        tide_allocator_stats stats;
        tide_allocator_get_stats(a, &stats);
        assert_int_equal(stats.requested_bytes, 0);
        rt_rig_close(&rig);
        tide_allocator_unref(a);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_text_has(err.msg, "short: '"); // who asked is in the message
        assert_true(n < 200);
    }
    tide_tensor_unref(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(test_diamond), tide_unit_test(test_conv),
                                       tide_unit_test(test_tensor_memory)};
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
