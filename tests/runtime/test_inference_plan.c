// SPDX-License-Identifier: MIT
//
// The inference plan: what it refuses, who owns it, what its weights cost (S27-1, S27-4, S27-7, S27-28, S27-31).
#include <inttypes.h>

#include "rt_util.h"

/// S27-4: no quiet fallback to the CPU.
static void test_device_S27_4(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_diamond());
    const tide_inference_plan_options opt = {.device = {TIDE_DEVICE_CUDA, 0}};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(p, &opt, &ip, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_null(ip);
    assert_text_has(err.msg, "cuda");
    tide_program_unref(p);
}

static void test_alignment(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_diamond());
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .align_bytes = 48};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(p, &opt, &ip, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "48");
    tide_program_unref(p);
}

static void test_plan_only(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_diamond());
    const tide_op_def *def = p->steps[1].kernel.def;
    tide_op_def no_kernel = *def;
    no_kernel.flags |= TIDE_OP_PLAN_ONLY;
    no_kernel.run = NULL;
    p->steps[1].kernel.def = &no_kernel;
    const tide_inference_plan_options opt = {.device = TIDE_CPU};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(p, &opt, &ip, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, p->steps[1].kernel.node->name);
    p->steps[1].kernel.def = def;
    tide_program_unref(p);
}

/// S27-1: the plan lives until its last context is gone, in any order of release.
static void test_lives_with_contexts_S27_1(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_conv());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size");
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    tide_memory_plan_destroy(m); // copied
    tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    rt_feed(c, p, &rig, 1);
    tide_inference_plan_unref(ip);
    tide_program_unref(p);
    rt_run(c);
    assert_true(rt_live(&rig, TIDE_KIND_PERSISTENT) > 0);
    tide_context_destroy(c);
    assert_int_equal(rt_live(&rig, TIDE_KIND_PERSISTENT), 0);
    rt_rig_close(&rig);
}

/// S27-31: number and bytes of the preloaded weights are what the allocator saw, one block each.
static void test_weights(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_conv());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size");
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    size_t n;
    uint64_t bytes;
    tide_inference_plan_weights(ip, &n, &bytes);
    tide_meter_kind k;
    tide_meter_get(rig.meter, TIDE_KIND_PERSISTENT, &k);
    assert_int_equal(n, p->n_weights);
    assert_int_equal(k.n_allocs, n);
    assert_int_equal(k.live_bytes, bytes);
    assert_int_equal(bytes, tide_memory_plan_predicted(m, TIDE_KIND_PERSISTENT));
    assert_true(bytes >= p->weight_bytes);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

/// Bytes held out of the registry of the process: where graphs keep their constants.
static uint64_t held_outside(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a;
    tide_allocator_stats stats;
    assert_tide_ok(tide_registry_get(tide_registry_default(), TIDE_CPU, TIDE_KIND_DEFAULT, &a, &err), &err);
    tide_allocator_get_stats(a, &stats);
    return stats.requested_bytes;
}

/// What it costs not to move the weights: the graph's own copies stay beside the plan's for as long as the program.
static void test_weights_held_twice(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    const uint64_t before = held_outside();
    tide_program *p = rt_build(rt_graph_conv());
    tide_inference_plan *ip = rt_inference(&rig, p, NULL);
    uint64_t bytes;
    tide_inference_plan_weights(ip, NULL, &bytes);
    assert_int_equal(held_outside() - before, bytes);
    assert_int_equal(rt_live(&rig, TIDE_KIND_PERSISTENT), bytes);
    tide_inference_plan_unref(ip);
    tide_program_unref(p);
    assert_int_equal(held_outside(), before);
    rt_rig_close(&rig);
}

/// Weights that the program has moved into Persistent memory are shared by every plan, not copied: held once.
static void test_weights_held_once(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    rt_rig rig;
    rt_rig_open(&rig);
    const uint64_t before = held_outside();
    const tide_program_options opt = {.weights_registry = rig.registry};
    tide_program *p;
    assert_tide_ok(tide_program_build(rt_graph_conv(), &opt, &p, &err), &err);
    const uint64_t held = rt_live(&rig, TIDE_KIND_PERSISTENT);
    assert_true(held > 0);
    assert_int_equal(held_outside(), before); // the graph's own copies are gone
    tide_memory_plan *m = rt_plan(p, "greedy_by_size");
    assert_int_equal(held, tide_memory_plan_predicted(m, TIDE_KIND_PERSISTENT));
    tide_inference_plan *one = rt_inference(&rig, p, m), *two = rt_inference(&rig, p, NULL);
    assert_int_equal(rt_live(&rig, TIDE_KIND_PERSISTENT), held);
    tide_context *a = rt_context(one, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    tide_context *b = rt_context(two, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
    const uint32_t w = tide_graph_find_value(p->graph, "w2");
    assert_ptr_equal(tide_tensor_const_data(tide_context_value(a, w)),
                     tide_tensor_const_data(p->graph->values[w].constant));
    assert_ptr_equal(tide_context_value(a, w), tide_context_value(b, w));
    rt_feed(a, p, &rig, 3);
    rt_feed(b, p, &rig, 3);
    rt_run(a);
    rt_run(b);
    rt_assert_same_outputs(a, b);
    tide_context_destroy(a);
    tide_context_destroy(b);
    tide_inference_plan_unref(one);
    // Another alignment needs blocks of its own.
    const tide_inference_plan_options wide = {.device = TIDE_CPU, .registry = rig.registry, .align_bytes = 4096};
    tide_inference_plan *three;
    assert_tide_ok(tide_inference_plan_create(p, &wide, &three, &err), &err);
    assert_int_equal(rt_live(&rig, TIDE_KIND_PERSISTENT), held + 4096 * (p->n_weights + 1)); // w3 takes two
    tide_inference_plan_unref(three);
    tide_inference_plan_unref(two);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

/// S27-28: K contexts cost the weights once and K times the same amount.
static void test_cost_of_contexts_S27_28(void **state) {
    (void)state;
    enum { K = 6 };
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_conv());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size");
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    const uint64_t weights = rt_live(&rig, TIDE_KIND_PERSISTENT);
    tide_context *c[K];
    uint64_t host[K + 1];
    tide_host_stats hs;
    tide_host_get_stats(&hs);
    host[0] = hs.live_bytes;
    for (size_t i = 0; i < K; i++) {
        c[i] = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
        tide_host_get_stats(&hs);
        host[i + 1] = hs.live_bytes;
        assert_int_equal(rt_live(&rig, TIDE_KIND_PERSISTENT), weights);
        assert_int_equal(rt_live(&rig, TIDE_KIND_WORKSPACE), (i + 1) * m->bytes);
        assert_int_equal(rt_live(&rig, TIDE_KIND_DEFAULT), (i + 1) * 256); // the output of 10 floats
        assert_int_equal(host[i + 1] - host[i], host[1] - host[0]);
    }
    print_message("%d contexts: weights %" PRIu64 " B once; each: buffer %" PRIu64 " B, output 256 B, tables %" PRIu64
                  " B\n",
                  K, weights, m->bytes, host[1] - host[0]);
    for (size_t i = 0; i < K; i++) tide_context_destroy(c[i]);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

/// The hash sees what a run reads: another plan, another weight, another order of magnitude of nothing else.
static void test_hash(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_conv());
    tide_memory_plan *m = rt_plan(p, "greedy_by_size"), *wide = rt_plan(p, "naive");
    tide_inference_plan *a = rt_inference(&rig, p, m), *b = rt_inference(&rig, p, m), *c = rt_inference(&rig, p, wide);
    const uint64_t hash = tide_inference_plan_hash(a);
    assert_true(hash == tide_inference_plan_hash(b));
    assert_true(hash != tide_inference_plan_hash(c));
    tide_context *x = rt_context(a, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    float *w = tide_tensor_data(tide_context_value(x, tide_graph_find_value(p->graph, "w2")));
    w[5] += 1.0f;
    assert_true(hash != tide_inference_plan_hash(a));
    w[5] -= 1.0f;
    tide_context_destroy(x);
    tide_inference_plan_unref(a);
    tide_inference_plan_unref(b);
    tide_inference_plan_unref(c);
    tide_memory_plan_destroy(m);
    tide_memory_plan_destroy(wide);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_device_S27_4),
        tide_unit_test(test_alignment),
        tide_unit_test(test_plan_only),
        tide_unit_test(test_lives_with_contexts_S27_1),
        tide_unit_test(test_weights),
        tide_unit_test(test_weights_held_twice),
        tide_unit_test(test_weights_held_once),
        tide_unit_test(test_cost_of_contexts_S27_28),
        tide_unit_test(test_hash),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
