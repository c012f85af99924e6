// SPDX-License-Identifier: MIT
//
// Calls are counted, fail where a test planned it, and are written to a log on demand.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/cuda/driver/sim.h"

static _Atomic uint64_t counts[SIM_N_ROWS], n_failed;
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool planned;
static struct plan {
    uint64_t left;
    CUresult code;
    char name[64];
} plan;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE *log_file;

static void set_plan(uint64_t n, CUresult code, const char *name) {
    pthread_mutex_lock(&plan_lock);
    plan = (struct plan){.left = n, .code = code};
    if (name != NULL) snprintf(plan.name, sizeof plan.name, "%s", name);
    atomic_store(&planned, n != 0);
    pthread_mutex_unlock(&plan_lock);
}

// TIDESIM_FAIL=n[:code][:name]
static void read_environment(void) {
    const char *text = getenv("TIDESIM_FAIL");
    if (text != NULL) {
        char *end;
        const uint64_t n = strtoull(text, &end, 10);
        CUresult code = CUDA_ERROR_OUT_OF_MEMORY;
        if (*end == ':' && end[1] >= '0' && end[1] <= '9') code = (CUresult)strtol(end + 1, &end, 10);
        set_plan(n, code, *end == ':' ? end + 1 : NULL);
    }
    const char *log = getenv("TIDESIM_LOG");
    if (log != NULL) log_file = fopen(log, "ae");
}

SIM_API void tidesim_fail_nth(uint64_t n, CUresult code, const char *name) {
    pthread_once(&once, read_environment);
    set_plan(n, code, name);
}

// A plan's name may be the exported one or the base.
static bool is_meant(const sim_row *row) {
    return plan.name[0] == '\0' || strcmp(plan.name, row->name) == 0 || strcmp(plan.name, row->base) == 0;
}

// What tells texts or the version never fails by plan: no program asks whether it did.
static bool may_fail(const sim_row *row) { return strncmp(row->name, "cuGetError", 10) != 0; }

CUresult sim_fail_check(int row_i) {
    pthread_once(&once, read_environment);
    atomic_fetch_add_explicit(&counts[row_i], 1, memory_order_relaxed);
    if (!atomic_load_explicit(&planned, memory_order_relaxed) || !may_fail(&sim_rows[row_i])) return CUDA_SUCCESS;
    CUresult code = CUDA_SUCCESS;
    pthread_mutex_lock(&plan_lock);
    if (plan.left != 0 && is_meant(&sim_rows[row_i]) && --plan.left == 0) {
        code = plan.code;
        atomic_store(&planned, false);
        atomic_fetch_add(&n_failed, 1);
    }
    pthread_mutex_unlock(&plan_lock);
    return code;
}

SIM_API uint64_t tidesim_calls(const char *name) {
    uint64_t n = 0;
    for (int i = 0; i < sim_n_rows; i++)
        if (name == NULL || strcmp(name, sim_rows[i].name) == 0) n += atomic_load(&counts[i]);
    return n;
}

SIM_API uint64_t tidesim_failed(void) { return atomic_load(&n_failed); }

void sim_fail_reset(void) {
    for (int i = 0; i < sim_n_rows; i++) atomic_store(&counts[i], 0);
    atomic_store(&n_failed, 0);
    set_plan(0, CUDA_SUCCESS, NULL);
}

void sim_log_call(const sim_call *call, CUresult result) {
    if (log_file == NULL) return;
    fprintf(log_file, "%llu %u %u %s %d\n", (unsigned long long)sim_now_ns(), sim_tid(), call->correlation,
            call->row->name, (int)result);
    fflush(log_file);
}
