// SPDX-License-Identifier: MIT
//
// A piece of work of a stream, and running it.
#include <stdatomic.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"
#include "tests/cuda/driver/sim_kernels.h"
#include "tests/cuda/driver/sim_launch.h"

_Atomic uint64_t sim_delay_us;
static _Thread_local bool in_host_func;

bool sim_in_host_func(void) { return in_host_func; }

SIM_API void tidesim_set_delay_us(uint64_t us) { atomic_store(&sim_delay_us, us); }

bool sim_work_is_timed(const sim_work *work) {
    return work->sort == SIM_WORK_COPY || work->sort == SIM_WORK_FILL || work->sort == SIM_WORK_KERNEL;
}

static void *copy_of(const void *bytes, size_t n) {
    void *copy = sim_new(n);
    return memcpy(copy, bytes, n);
}

sim_work sim_work_clone(const sim_work *work) {
    sim_work clone = *work;
    if (work->staged != NULL) {
        clone.staged = copy_of(work->staged, work->bytes);
        clone.src = (uint64_t)(uintptr_t)clone.staged;
    }
    if (work->args != NULL) clone.args = copy_of(work->args, sim_args_bytes(work->kernel));
    return clone;
}

void sim_work_done(sim_work *work) {
    free(work->staged);
    free(work->args);
    work->staged = work->args = NULL;
}

static void run_copy(const sim_work *work) {
    const uint64_t rows = work->height > 1 ? work->height : 1;
    for (uint64_t i = 0; i < rows; i++)
        memcpy((void *)(uintptr_t)(work->dst + i * work->dst_pitch),
               (const void *)(uintptr_t)(work->src + i * work->src_pitch), work->bytes);
}

static void run_fill(const sim_work *work) {
    char *at = (char *)(uintptr_t)work->dst;
    if (work->value_bytes == 1) {
        memset(at, (int)work->value, work->bytes);
        return;
    }
    for (uint64_t i = 0; i < work->bytes; i += work->value_bytes) memcpy(at + i, &work->value, work->value_bytes);
}

static void run_host(const sim_work *work) {
    in_host_func = true;
    if (work->host_fn != NULL) work->host_fn(work->user);
    if (work->callback != NULL) work->callback(work->callback_stream, CUDA_SUCCESS, work->user);
    in_host_func = false;
}

static void run_kernel(const sim_work *work) {
    void *params[TIDE_HOST_MAX_PARAMS];
    sim_args_spread(work->kernel, work->args, params);
    const tide_host_grid grid = {{work->grid[0], work->grid[1], work->grid[2]},
                                 {work->block[0], work->block[1], work->block[2]},
                                 work->shared_bytes};
    work->kernel->run(&grid, params);
}

void sim_work_run(sim_work *work) {
    const uint64_t delay_us = sim_work_is_timed(work) ? atomic_load_explicit(&sim_delay_us, memory_order_relaxed) : 0;
    if (delay_us != 0) usleep((useconds_t)delay_us);
    switch (work->sort) {
    case SIM_WORK_COPY:
        run_copy(work);
        break;
    case SIM_WORK_FILL:
        run_fill(work);
        break;
    case SIM_WORK_KERNEL:
        run_kernel(work);
        break;
    case SIM_WORK_HOST:
        run_host(work);
        break;
    case SIM_WORK_OPEN:
        sim_unpoison(work->dst, work->bytes);
        break;
    case SIM_WORK_CLOSE:
        sim_poison(work->dst, work->bytes);
        break;
    case SIM_WORK_NONE:
    case SIM_WORK_GRAPH_ALLOC:
    case SIM_WORK_GRAPH_FREE:
        break;
    }
}
