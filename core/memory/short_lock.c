// SPDX-License-Identifier: MIT
//
// short lock: waiting while another thread has it. See short_lock.h.
#include "core/memory/short_lock.h"

#include <sched.h>
#include <time.h>

enum { N_SPINS = 64, N_YIELDS = 16, FIRST_SLEEP_NS = 20000, LONGEST_SLEEP_NS = 1280000, N_DOUBLINGS = 6 };

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/// Between two looks at the lock: a moment at first, more with every turn.
static void pause_for(uint32_t turn) {
    if (turn < N_SPINS) {
        relax();
    } else if (turn < N_SPINS + N_YIELDS) {
        sched_yield();
    } else {
        const uint32_t doublings = turn - N_SPINS - N_YIELDS;
        const long sleep_ns = doublings < N_DOUBLINGS ? (long)FIRST_SLEEP_NS << doublings : LONGEST_SLEEP_NS;
        nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
    }
}

void tide__lock_wait(tide__lock *lock) {
    for (uint32_t turn = 0;; turn++) {
        // Reading first: an exchange would take the cache line away from the holder each time.
        if (atomic_load_explicit(&lock->held, memory_order_relaxed) == 0 &&
            atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0)
            return;
        pause_for(turn);
    }
}
