// SPDX-License-Identifier: MIT
//
// A clock that goes a hundred times as fast as the machine's, from its first answer on: preloaded by planning.py.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { TIMES_AS_FAST = 100 };

int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    static int64_t first_ns[16];
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int code = real(id, out);
    if (code != 0 || id < 0 || id >= 16) return code;
    const int64_t now_ns = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec;
    if (first_ns[id] == 0) first_ns[id] = now_ns;
    const int64_t fast_ns = first_ns[id] + (now_ns - first_ns[id]) * TIMES_AS_FAST;
    out->tv_sec = fast_ns / 1000000000;
    out->tv_nsec = fast_ns % 1000000000;
    return 0;
}
