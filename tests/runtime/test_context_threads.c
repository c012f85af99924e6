// SPDX-License-Identifier: MIT
//
// Many contexts of one plan at the same time: same bytes as alone, plan unchanged (S27-1, S27-27). Every second one has
// its buffer and outputs in a part of one memory of the caller's, where the parts touch. Under the thread
// sanitizer run with OMP_NUM_THREADS=1: the kernels' own worker threads are not instrumented.
#include <pthread.h>

#include "rt_util.h"

enum { N_THREADS = 16, N_RUNS = 500 };

typedef struct worker {
    tide_context *c;
    const char *want; ///< output bytes of the serial run
    size_t n;
    size_t n_wrong; ///< runs whose output differed, or that failed
} worker;

static bool run_and_compare(const worker *w) {
    if (tide_context_run(w->c, NULL) != TIDE_OK) return false;
    const char *at = w->want;
    for (size_t i = 0; i < tide_context_n_outputs(w->c); i++) {
        const tide_tensor *t = tide_context_output(w->c, i);
        if (memcmp(tide_tensor_const_data(t), at, tide_tensor_size_bytes(t)) != 0) return false;
        at += tide_tensor_size_bytes(t);
    }
    return true;
}

static void *work(void *arg) {
    worker *w = arg;
    for (int i = 0; i < N_RUNS; i++) w->n_wrong += !run_and_compare(w);
    return NULL;
}

/// Memory of the caller's for half of the contexts.
typedef struct parts {
    char *memory;
    size_t part_bytes;
} parts;

static parts bring_parts(const tide_inference_plan *ip) {
    tide_error err = TIDE_ERROR_INIT;
    tide_context_need need;
    assert_tide_ok(tide_context_need_of(ip, &need, &err), &err);
    assert_true(need.bytes > 0 && need.bytes % need.align_bytes == 0);
    parts p = {.part_bytes = need.bytes};
    p.memory = aligned_alloc(need.align_bytes, N_THREADS / 2 * p.part_bytes);
    assert_non_null(p.memory);
    return p;
}

static tide_context *context_in(tide_inference_plan *ip, const parts *memory, size_t i, const tide_observer *observer) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_context_options opt = {.mode = TIDE_RUN_PLANNED,
                                      .fill = TIDE_FILL_POISON,
                                      .observer = observer,
                                      .memory = memory->memory + i * memory->part_bytes,
                                      .memory_bytes = memory->part_bytes};
    tide_context *c;
    assert_tide_ok(tide_context_create(ip, &opt, &c, &err), &err);
    return c;
}

static void open_worker(worker *w, tide_inference_plan *ip, const tide_program *p, rt_rig *rig, const parts *memory,
                        size_t i) {
    // The last thread runs naive beside the others: births and deaths while they compute.
    const bool naive = i + 1 == N_THREADS;
    w->c = i % 2 == 0 ? context_in(ip, memory, i / 2, &rig->observer)
                      : rt_context(ip, naive ? TIDE_RUN_NAIVE : TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    rt_feed(w->c, p, rig, i); // each its own numbers
    rt_run(w->c);
    char *want = rt_output_bytes(w->c, &w->n);
    w->want = want;
    w->n_wrong = 0;
}

static void run_graph(tide_graph *g) {
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(g);
    tide_memory_plan *m = rt_plan_aliased(p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    const parts memory = bring_parts(ip);
    worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) open_worker(&workers[i], ip, p, &rig, &memory, i);
    const uint64_t hash = tide_inference_plan_hash(ip);
    for (size_t i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (size_t i = 0; i < N_THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(hash == tide_inference_plan_hash(ip));
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(workers[i].n_wrong, 0);
        tide_context_destroy(workers[i].c);
        tide_host_free((char *)(uintptr_t)workers[i].want);
    }
    free(memory.memory);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

static void test_small_S27_1_S27_27(void **state) {
    (void)state;
    run_graph(rt_graph_long());
}

static void test_conv_S27_1_S27_27(void **state) {
    (void)state;
    run_graph(rt_graph_conv());
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(test_small_S27_1_S27_27), tide_unit_test(test_conv_S27_1_S27_27)};
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
