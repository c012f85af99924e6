// SPDX-License-Identifier: MIT
//
// Ticks and CLOCK_MONOTONIC. See clock.h.
//
//     ns                       b
//      |                    .-'        both clocks were read at a and at b: whatever happened between them lies on
//      |              x .-'            the line, and what happened shortly before or behind them nearly does
//      |           .-'
//      |        a
//      +------------------------ ticks
#include "profiler/clock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/base/text.h"

__extension__ typedef unsigned __int128 u128;

// ---- whose clock ----

void tide__clock_boot_id(char out[TIDE__BOOT_ID_BYTES]) {
    memset(out, 0, TIDE__BOOT_ID_BYTES);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, out, TIDE__BOOT_ID_BYTES - 1);
    close(fd);
    const size_t len = n > 0 ? strcspn(out, "\n") : 0;
    memset(out + len, 0, TIDE__BOOT_ID_BYTES - len);
}

int64_t tide__clock_wall_ns(void) {
    struct timespec wall;
    const uint64_t before = tide_now_ns();
    clock_gettime(CLOCK_REALTIME, &wall);
    const uint64_t after = tide_now_ns();
    return (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - (int64_t)(before + (after - before) / 2);
}

// ---- is there a counter ----

#if defined(__x86_64__)

/// Runs at one rate whatever the processor's clock and sleep states do.
static bool tsc_is_invariant(void) {
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0) return false;
    return (edx >> 8 & 1) != 0;
}

/// The kernel looked whether all cores count alike, and drops the counter as its clock when they do not. `name`: its
/// clock.
static void kernel_clock(char name[32]) {
    name[0] = '\0';
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (f == NULL) return;
    if (fgets(name, 32, f) == NULL) name[0] = '\0';
    fclose(f);
    name[strcspn(name, "\n")] = '\0';
}

#else
static bool tsc_is_invariant(void) { return false; }
static void kernel_clock(char name[32]) { name[0] = '\0'; }
#endif

/// A fact of this machine that is looked up once; two threads that look find the same.
typedef enum fact { NOT_LOOKED, NO, YES } fact;
static _Atomic int counter, trust;

static bool has_counter(void) {
    int k = atomic_load_explicit(&counter, memory_order_relaxed);
    if (k == NOT_LOOKED) {
        k = tsc_is_invariant() ? YES : NO;
        atomic_store_explicit(&counter, k, memory_order_relaxed);
    }
    return k == YES;
}

static bool says_one(const char *name) {
    const char *value = getenv(name);
    return value != NULL && strcmp(value, "1") == 0;
}

static bool counts_alike(void) {
    int k = atomic_load_explicit(&trust, memory_order_relaxed);
    if (k == NOT_LOOKED) {
        char name[32];
        kernel_clock(name);
        k = strcmp(name, "tsc") == 0 || says_one(TIDE__TICKS_ENV) ? YES : NO;
        atomic_store_explicit(&trust, k, memory_order_relaxed);
    }
    return k == YES;
}

bool tide__clock_has_ticks(void) { return has_counter() && counts_alike() && !says_one("TIDE_NO_TICKS"); }

// ---- both clocks ----

void tide__clock_pair(tide__tick_pair *out) {
    if (!has_counter()) {
        out->ns = out->ticks = tide_now_ns();
        return;
    }
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8; i++) { // an interrupt between the two readings spoils one of them, seldom all
        const uint64_t before = tide__ticks(), ns = tide_now_ns(), width = tide__ticks() - before;
        if (width >= best) continue;
        best = width;
        *out = (tide__tick_pair){.ticks = before + width / 2, .ns = ns};
    }
}

void tide__clock_two_pairs(tide__tick_pair *a, tide__tick_pair *b) {
    tide__clock_pair(a);
    struct timespec rest = {.tv_nsec = 1000000};
    while (nanosleep(&rest, &rest) != 0) {
    }
    tide__clock_pair(b);
}

// ---- the line ----

/// times * over / under, rounded down; UINT64_MAX when it is larger.
static uint64_t scale(uint64_t times, uint64_t over, uint64_t under) {
    uint64_t product;
    if (!__builtin_mul_overflow(times, over, &product)) return product / under; // a long division costs three of these
    const u128 quotient = (u128)times * over / under;
    return quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

uint64_t tide__clock_ns(const tide__tick_pair *a, const tide__tick_pair *b, uint64_t ticks) {
    uint64_t ns = a->ns;
    if (b->ticks > a->ticks && b->ns > a->ns) {
        const bool is_before = ticks < a->ticks;
        const uint64_t away =
            scale(is_before ? a->ticks - ticks : ticks - a->ticks, b->ns - a->ns, b->ticks - a->ticks);
        if (is_before) {
            ns = away > ns ? 0 : ns - away;
        } else if (__builtin_add_overflow(ns, away, &ns)) {
            ns = INT64_MAX;
        }
    }
    return ns > INT64_MAX ? INT64_MAX : ns;
}

// ---- do the cores count alike ----

bool tide__clock_cores_agree(const tide__tick_pair *pairs, size_t n) {
    enum { APART_NS = 250 };
    if (n < 3) return false;
    const tide__tick_pair *first = &pairs[0], *last = &pairs[n - 1];
    if (last->ticks <= first->ticks || last->ns <= first->ns) return false;
    for (size_t i = 1; i + 1 < n; i++) {
        const uint64_t ns = tide__clock_ns(first, last, pairs[i].ticks);
        if ((ns > pairs[i].ns ? ns - pairs[i].ns : pairs[i].ns - ns) > APART_NS) return false;
    }
    return true;
}

/// Of kernels under a hypervisor: they are computed from the counter, so that the kernel has not found it wrong.
static bool is_of_hypervisor(const char *clock) {
    static const char *const names[] = {"kvm-clock", "hyperv_clocksource_tsc_page", "xen"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(clock, names[i]) == 0) return true;
    return false;
}

/// A reading on core `i`. False: the thread may not go there.
static bool read_core(int i, tide__tick_pair *out) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return false;
    tide__clock_pair(out);
    return true;
}

static bool cores_agree(void) {
    cpu_set_t all;
    tide__tick_pair pairs[CPU_SETSIZE + 1];
    size_t n = 0;
    int first = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return false; // more cores than a set has room for, or not allowed
    bool good = true;
    for (int i = 0; good && i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        if (first < 0) first = i;
        good = read_core(i, &pairs[n++]);
    }
    if (good && n == 1) good = read_core(first, &pairs[n++]);
    good = good && first >= 0 && read_core(first, &pairs[n++]);
    good = sched_setaffinity(0, sizeof all, &all) == 0 && good;
    return good && tide__clock_cores_agree(pairs, n);
}

void tide__clock_check_cores(void) {
    char name[32];
    kernel_clock(name);
    if (!has_counter() || !is_of_hypervisor(name) || counts_alike() || !cores_agree()) return;
    if (setenv(TIDE__TICKS_ENV, "1", 1) == 0) atomic_store_explicit(&trust, YES, memory_order_relaxed);
}
