// SPDX-License-Identifier: MIT
//
// How much of each device is in use, by all processes: cuMemGetInfo, on the recorder's thread, in a context of the
// program's. The recorder makes no context of its own: that would take half a gigabyte of what is measured.
//
// A context must not be destroyed while a sample uses it: its last callback waits for the sample (7 to 19 us,
// measured), but not for ever, because the driver may hold a lock that the sample needs.
#include <dlfcn.h>
#include <time.h>

#include "cuda/cupti/recorder.h"

enum { MAX_DEVICES = 64, HOLD_MS = 50 };

static struct driver {
    bool is_there;
    __typeof__(cuCtxPushCurrent) *push;
    __typeof__(cuCtxPopCurrent) *pop;
    __typeof__(cuMemGetInfo) *info;
    __typeof__(cuThreadExchangeStreamCaptureMode) *capture_mode;
} driver;

static pthread_mutex_t sample_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_used[MAX_DEVICES];

static void *entry(__typeof__(cuGetProcAddress) *get, const char *name) {
    void *fn = NULL;
    CUdriverProcAddressQueryResult how;
    // 12.0 is the version of the interface: every function here is older.
    return get(name, &fn, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &how) == CUDA_SUCCESS ? fn : NULL;
}

void tide__cupti_samples_init(void) {
    driver = (struct driver){0};
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(cuGetProcAddress) *get = NULL;
    if (lib != NULL) *(void **)(void *)&get = dlsym(lib, "cuGetProcAddress_v2");
    if (get == NULL) return;
    *(void **)(void *)&driver.push = entry(get, "cuCtxPushCurrent");
    *(void **)(void *)&driver.pop = entry(get, "cuCtxPopCurrent");
    *(void **)(void *)&driver.info = entry(get, "cuMemGetInfo");
    *(void **)(void *)&driver.capture_mode = entry(get, "cuThreadExchangeStreamCaptureMode");
    driver.is_there = driver.push != NULL && driver.pop != NULL && driver.info != NULL && driver.capture_mode != NULL;
    for (size_t i = 0; i < MAX_DEVICES; i++) last_used[i] = UINT64_MAX;
}

bool tide__cupti_samples_hold(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += HOLD_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    return pthread_mutex_timedlock(&sample_lock, &until) == 0;
}

void tide__cupti_samples_release(void) { pthread_mutex_unlock(&sample_lock); }

/// A context of each device; @return how many.
static size_t find_contexts(tide__cupti_context *out) {
    size_t n = 0;
    tide__cupti_lock();
    for (size_t i = 0; i < TIDE__CUPTI_MAX_CONTEXTS; i++) {
        const tide__cupti_context c = tide__cupti.contexts[i];
        size_t k = 0;
        while (k < n && out[k].device != c.device) k++;
        if (c.handle != NULL && k == n && n < MAX_DEVICES && c.device < MAX_DEVICES) out[n++] = c;
    }
    tide__cupti_unlock();
    return n;
}

static void sample_device(const tide__cupti_context *c, bool all) {
    size_t free_bytes = 0, total = 0;
    CUcontext popped;
    if (driver.push(c->handle) != CUDA_SUCCESS) return;
    const CUresult result = driver.info(&free_bytes, &total);
    const uint64_t t_ns = tide__cupti_now_ns();
    (void)driver.pop(&popped);
    const uint64_t used = total - free_bytes;
    if (result != CUDA_SUCCESS || free_bytes > total || (used == last_used[c->device] && !all)) return;
    last_used[c->device] = used;
    tide__cupti_add_sample(c->device, used, total, t_ns);
}

void tide__cupti_sample(bool all) {
    if (!driver.is_there) return;
    tide__cupti_context contexts[MAX_DEVICES];
    // A capture of the program must not be broken by calls that its mode forbids to other threads.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    pthread_mutex_lock(&sample_lock);
    const size_t n = find_contexts(contexts);
    if (n > 0 && driver.capture_mode(&mode) == CUDA_SUCCESS) {
        for (size_t i = 0; i < n; i++) sample_device(&contexts[i], all);
        (void)driver.capture_mode(&mode);
    }
    pthread_mutex_unlock(&sample_lock);
}
