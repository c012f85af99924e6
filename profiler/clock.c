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

/// The kernel looked whether all cores count alike, and drops the counter as its clock when they do not.
static bool kernel_trusts_tsc(void) {
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (f == NULL) return false;
    char name[32] = "";
    const bool is_read = fgets(name, sizeof name, f) != NULL;
    fclose(f);
    return is_read && strcmp(name, "tsc\n") == 0;
}

static bool look(void) { return tsc_is_invariant() && kernel_trusts_tsc(); }

#else
static bool look(void) { return false; }
#endif

static bool has_counter(void) {
    enum { NOT_LOOKED, NO, YES };
    static _Atomic int known;
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (k == NOT_LOOKED) { // two threads that look find the same
        k = look() ? YES : NO;
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return k == YES;
}

bool tide__clock_has_ticks(void) {
    const char *no = getenv("TIDE_NO_TICKS");
    return has_counter() && (no == NULL || strcmp(no, "1") != 0);
}

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
