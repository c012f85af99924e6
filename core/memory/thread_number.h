// SPDX-License-Identifier: MIT
//
// The number of the calling thread without a call, for what is kept by thread. See tide_thread_id.
#ifndef TIDE_CORE_MEMORY_THREAD_NUMBER_H
#define TIDE_CORE_MEMORY_THREAD_NUMBER_H

#include "core/memory/observer.h"

/// What tide_thread_id says in this thread; 0 until it was asked for the first time.
extern _Thread_local uint32_t tide__thread_number_cache __attribute__((tls_model("initial-exec")));

/// 0 when this thread has no number yet: a quick way goes the long way then, and makes no call itself.
static inline uint32_t tide__thread_number_or_none(void) { return tide__thread_number_cache; }

static inline uint32_t tide__thread_number(void) {
    const uint32_t number = tide__thread_number_cache;
    return __builtin_expect(number != 0, 1) ? number : tide_thread_id();
}

#endif
