// SPDX-License-Identifier: MIT
//
// alloc_loop: nothing but allocations and frees, to see what recording them costs. Prints "loop", ns for a pair of
// cuMemAlloc and cuMemFree, ns for a pair in the order of a stream, and the bytes of the device that are in use.
#include <time.h>

#include "tests/cuda/rules.h"

enum { N_PAIRS = 20000, BYTES = 1 << 16 };

static unsigned long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUstream s;
    CUdeviceptr kept, p;
    size_t unused, total;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&kept, BYTES)); // so that the memory behind the loop stays with the process
    unsigned long long begin = now_ns();
    for (int i = 0; i < N_PAIRS; i++) {
        MUST(cuMemAlloc(&p, BYTES));
        MUST(cuMemFree(p));
    }
    const unsigned long long pair = (now_ns() - begin) / N_PAIRS;
    begin = now_ns();
    for (int i = 0; i < N_PAIRS; i++) {
        MUST(cuMemAllocAsync(&p, BYTES, s));
        MUST(cuMemFreeAsync(p, s));
    }
    MUST(cuStreamSynchronize(s));
    const unsigned long long async_pair = (now_ns() - begin) / N_PAIRS;
    MUST(cuMemGetInfo(&unused, &total));
    printf("loop %llu %llu %zu\n", pair, async_pair, total - unused);
    return 0;
}
