// SPDX-License-Identifier: MIT
//
// The one state of the driver: what the environment says, the lock, time, and what fork leaves behind.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"

sim_state sim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;

static uint64_t env_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

// "the CUDA driver API may not be used in a child after cuInit": measured, CUDA_ERROR_NOT_INITIALIZED from every call.
static void in_child(void) { atomic_store(&forked, sim.ready); }

static void configure(void) {
    const uint64_t n = env_number("TIDESIM_DEVICES", 1);
    sim.n_devices = n > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (int)n;
    sim.version = (int)env_number("TIDESIM_VERSION", 13000);
    sim.granularity = env_number("TIDESIM_GRANULARITY", 2 * SIM_MIB);
    sim.context_bytes = env_number("TIDESIM_CONTEXT_BYTES", 0);
    sim.stream_bytes = env_number("TIDESIM_STREAM_BYTES", 0);
    atomic_store(&sim_delay_us, env_number("TIDESIM_DELAY_US", 0));
    for (int i = 0; i < sim.n_devices; i++) {
        sim.devices[i].ordinal = i;
        sim.devices[i].total_bytes = sim.devices[i].first_total_bytes = env_number("TIDESIM_BYTES", (uint64_t)16 << 30);
    }
    pthread_atfork(NULL, NULL, in_child);
}

void sim_configure(void) { pthread_once(&once, configure); }

void sim_lock_take(void) { pthread_mutex_lock(&lock); }
void sim_lock_drop(void) { pthread_mutex_unlock(&lock); }

void sim_wait(sim_point *point) {
    sim_lock_drop();
    sim_point_wait(point);
    sim_lock_take();
}

bool sim_is_forked_child(void) { return atomic_load(&forked); }

uint64_t sim_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint32_t sim_tid(void) {
    static _Thread_local uint32_t tid;
    if (tid == 0) tid = (uint32_t)syscall(SYS_gettid);
    return tid;
}

// The driver's own memory is no part of what it simulates: without it there is no driver.
void *sim_new(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fputs("tidesim: no host memory\n", stderr);
        abort();
    }
    return memory;
}
