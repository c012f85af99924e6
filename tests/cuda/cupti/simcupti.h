// SPDX-License-Identifier: MIT
//
// Inside of the simulated CUPTI: what its files share. It is a libcupti.so.13 that makes records in the structs of the
// real header out of what the simulated driver tells through its hooks (tests/cuda/driver/tidesim.h).
//
//     sim_subscribe.c  subscriber, domains, callbacks of calls and of contexts, ids
//     sim_activity.c   buffers of threads, flush, reading, attributes, counts
//     sim_memory.c     records of MEMORY2 and MEMORY_POOL out of the driver's hooks
//
// Environment:
//   TIDECUPTI_OTHER=NAME           another tool has subscribed already; it is called so
//   TIDECUPTI_HANG=forced|all      a flush (of that sort) does not return
//   TIDECUPTI_BUFFER_RECORDS=N     a buffer is full after N records
//   TIDECUPTI_REPORT=FILE          at exit: a line of counts, `misuse=N` among them; %p in the name is the process
#ifndef TIDE_TESTS_CUDA_CUPTI_SIMCUPTI_H
#define TIDE_TESTS_CUDA_CUPTI_SIMCUPTI_H

#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/cuda/driver/tidesim.h"

#define SC_API __attribute__((visibility("default")))

/// What the calling thread is inside of: nothing, a callback of a call or a context, a callback of buffers.
typedef enum sc_place { SC_OUTSIDE, SC_IN_CALLBACK, SC_IN_BUFFER } sc_place;
extern _Thread_local sc_place sc_now_in;

/// A rule of CUPTI's that was broken: said on standard error, and counted.
void sc_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/// The call may not be made where this thread is. False: it was.
bool sc_may_call(const char *name, bool in_callbacks);
/// Environment variable; NULL: not there or empty.
const char *sc_env(const char *name);

extern _Atomic uint64_t sc_n_misuse, sc_n_driver_calls_inside;

// ---- sim_subscribe.c ----

extern CUpti_TimestampCallbackFunc sc_timestamp;
uint64_t sc_now_ns(void);
/// Contexts that are live now, and the id of the first of them.
uint32_t sc_live_contexts(uint32_t *first);
/// CUPTI counts streams in its own way: the first one that is made is 13, where the driver says 14 (measured).
uint32_t sc_stream_id(uint32_t driver_id);

// ---- sim_activity.c ----

bool sc_is_enabled(CUpti_ActivityKind kind);
/// Copies a record into the buffer of the calling thread.
void sc_put_record(const void *record, size_t bytes);
uint64_t sc_n_records(void);

// ---- sim_memory.c ----

void sc_on_memory(void *user, const tidesim_memory *event);
void sc_on_pool(void *user, const tidesim_pool_event *event);
/// After a call: virtual memory, and what a failed request leaves.
void sc_after_call(const tidesim_api *call);

#endif
