// SPDX-License-Identifier: MIT
//
// Points: see the header. A waiting thread sleeps in the kernel (futex).
#include "tests/cuda/driver/sim_point.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POINT_TO_COME, POINT_SLEPT_ON, POINT_THERE };

// Unused points. All orders are relaxed on purpose: see the header.
static sim_point *_Atomic unused;
// Taken from `unused` all at once; only used with the driver's lock held.
static sim_point *at_hand;

static long futex(_Atomic uint32_t *word, int op, uint32_t value) {
    return syscall(SYS_futex, (void *)(uintptr_t)word, op, value, NULL, NULL, 0);
}

static sim_point *reused(void) {
    if (at_hand == NULL) at_hand = atomic_exchange_explicit(&unused, NULL, memory_order_relaxed);
    sim_point *point = at_hand;
    if (point != NULL) at_hand = atomic_load_explicit(&point->next, memory_order_relaxed);
    return point;
}

sim_point *sim_point_new(void) {
    sim_point *point = reused();
    if (point == NULL) point = calloc(1, sizeof *point);
    if (point == NULL) abort();
    atomic_store_explicit(&point->state, POINT_TO_COME, memory_order_relaxed);
    atomic_store_explicit(&point->refs, 1, memory_order_relaxed);
    return point;
}

sim_point *sim_point_ref(sim_point *point) {
    if (point != NULL) atomic_fetch_add_explicit(&point->refs, 1, memory_order_relaxed);
    return point;
}

void sim_point_unref(sim_point *point) {
    if (point == NULL || atomic_fetch_sub_explicit(&point->refs, 1, memory_order_relaxed) != 1) return;
    sim_point *first = atomic_load_explicit(&unused, memory_order_relaxed);
    do {
        atomic_store_explicit(&point->next, first, memory_order_relaxed);
    } while (
        !atomic_compare_exchange_weak_explicit(&unused, &first, point, memory_order_relaxed, memory_order_relaxed));
}

void sim_point_done(sim_point *point) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    atomic_store_explicit(&point->end_ns, (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec, memory_order_relaxed);
    if (atomic_exchange_explicit(&point->state, POINT_THERE, memory_order_release) == POINT_SLEPT_ON)
        futex(&point->state, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

bool sim_point_is_done(sim_point *point) {
    return atomic_load_explicit(&point->state, memory_order_acquire) == POINT_THERE;
}

bool sim_point_looks_done(const sim_point *point) {
    return atomic_load_explicit(&point->state, memory_order_relaxed) == POINT_THERE;
}

void sim_point_wait(sim_point *point) {
    for (;;) {
        uint32_t seen = atomic_load_explicit(&point->state, memory_order_acquire);
        if (seen == POINT_THERE) return;
        if (seen == POINT_TO_COME &&
            !atomic_compare_exchange_strong_explicit(&point->state, &seen, POINT_SLEPT_ON, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        futex(&point->state, FUTEX_WAIT_PRIVATE, POINT_SLEPT_ON);
    }
}

uint64_t sim_point_time(const sim_point *point) { return atomic_load_explicit(&point->end_ns, memory_order_relaxed); }
