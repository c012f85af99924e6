// SPDX-License-Identifier: MIT
//
// What the tests of the simulated driver share: a context, checks of results, and gates that hold a stream.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_TEST_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_TEST_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/cuda/driver/sim_sanitizers.h"
#include "tests/cuda/driver/tidesim.h"
#include "tests/tide_test.h"

#define MIB ((size_t)1 << 20)

static TIDE_UNUSED const char *result_name(CUresult result) {
    const char *name = NULL;
    return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "unknown";
}

#define assert_cu(expr, want)                                                                                          \
    do {                                                                                                               \
        const CUresult got_ = (expr);                                                                                  \
        if (got_ != (want)) fail_msg("%s: got %s, want %s", #expr, result_name(got_), result_name(want));              \
    } while (0)
#define assert_ok(expr) assert_cu(expr, CUDA_SUCCESS)

/// valgrind holds 500 threads at most.
static TIDE_UNUSED bool sim_is_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/// The primary context of device 0, current.
static TIDE_UNUSED CUcontext sim_open(void) {
    CUcontext ctx;
    assert_ok(cuInit(0));
    assert_ok(cuDevicePrimaryCtxRetain(&ctx, 0));
    assert_ok(cuCtxSetCurrent(ctx));
    return ctx;
}

/// Gives the primary context back; nothing may be left, and `misuses` calls were faulty.
static TIDE_UNUSED void sim_close(uint64_t misuses) {
    assert_int_equal(tidesim_left(true), 0);
    assert_ok(cuDevicePrimaryCtxRelease(0));
    assert_ok(cuCtxSetCurrent(NULL));
    assert_int_equal(tidesim_live("context"), 0);
    assert_int_equal(tidesim_taken(0), 0);
    assert_int_equal(tidesim_misuse(), misuses);
    tidesim_reset_counts();
}

/// A host function of a stream that waits until it is opened.
typedef struct sim_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    _Atomic int n_passed;
} sim_gate;

static TIDE_UNUSED void sim_gate_pass(void *user) {
    sim_gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open) pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    atomic_fetch_add(&gate->n_passed, 1);
}

static TIDE_UNUSED void sim_gate_init(sim_gate *gate) {
    *gate = (sim_gate){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

static TIDE_UNUSED void sim_hold(CUstream stream, sim_gate *gate) {
    sim_gate_init(gate);
    assert_ok(cuLaunchHostFunc(stream, sim_gate_pass, gate));
}

static TIDE_UNUSED void sim_let_go(sim_gate *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static TIDE_UNUSED void *sim_let_go_late(void *gate) {
    usleep(20000);
    sim_let_go(gate);
    return NULL;
}

/// Opens the gate from another thread, a while later: what returns before did not wait.
static TIDE_UNUSED pthread_t sim_let_go_later(sim_gate *gate) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sim_let_go_late, gate), 0);
    return thread;
}

/// Long enough for work that nothing holds up. No test fails because it was too short; an error may stay unseen.
static TIDE_UNUSED void sim_settle(void) { usleep(20000); }

static TIDE_UNUSED CUstream sim_stream_create(void) {
    CUstream stream;
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static TIDE_UNUSED CUevent sim_event_create(void) {
    CUevent event;
    assert_ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
    return event;
}

static TIDE_UNUSED tidesim_count sim_count(tidesim_kind kind) {
    tidesim_count count;
    assert_true(tidesim_ledger(0, kind, &count));
    return count;
}

static TIDE_UNUSED uint64_t sim_free_bytes(void) {
    size_t free_bytes, total;
    assert_ok(cuMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

#endif
