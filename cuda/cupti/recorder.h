// SPDX-License-Identifier: MIT
//
// What the files of the recorder of CUDA memory share. Private to cuda/cupti.
//
//     the program's thread ---- cuMemAlloc ----> driver ----> CUPTI's callback, before and after the call
//                                                                  |  callbacks.c, mapping.c   at once, in order
//                                                                  v
//                                            ledger.c (what is live) -> tell.c -> observer -> ring of the thread
//                                                                  ^
//     the recorder's thread  -- flush, 10 times a second -> buffers.c -> records.c        late, by their own time
//                            -- cuMemGetInfo ------------> samples.c
//
// Two sources of CUPTI, both about the same memory (all of it measured on an H100 with CUDA 13.0, and in the test
// `cupti_rules`):
//
//     callbacks of the driver's memory calls    primary: they come in the calling thread, at once, so that thread and
//                                               scope are known, no event is late, and a kill loses nothing. Calls of
//                                               the runtime (cudaMalloc) show as the driver's
//     activity records MEMORY2, MEMORY_POOL     beside it: what pools have reserved, variables of modules, memory of
//                                               graphs; and a check: each record of memory is held against the calls,
//                                               and one that no call explains is recorded with a mark
//
// One lock guards ledger, log, contexts and counts; an event is told with the lock held, so that events about the same
// memory have their order in time. No call of CUDA and no call of malloc is made in a callback, and of CUPTI only
// cuptiGetStreamIdEx and cuptiGetDeviceId in those of the driver's calls (none in those of the buffers).
#ifndef TIDE_CUDA_CUPTI_RECORDER_H
#define TIDE_CUDA_CUPTI_RECORDER_H

#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/device/cupti_plugin.h"
#include "cuda/cupti/call_log.h"
#include "cuda/cupti/ledger.h"
#include "cuda/cupti/library.h"

enum { TIDE__CUPTI_MAX_CONTEXTS = 256, TIDE__CUPTI_MAX_CAPTURES = 64, TIDE__CUPTI_MAX_POOLS = 256 };

/// Not a device number.
enum { TIDE__CUPTI_HOST = -1, TIDE__CUPTI_UNKNOWN_DEVICE = -2 };

typedef struct tide__cupti_context {
    CUcontext handle; ///< NULL: the entry is free
    int32_t device;
    bool is_primary;
} tide__cupti_context;

typedef struct tide__cupti_pool {
    uint64_t handle; ///< 0: the entry is free
    int32_t device;
} tide__cupti_pool;

typedef struct tide__cupti_state {
    tide__cupti_library lib;
    CUpti_SubscriberHandle subscriber;
    tide_observer observer;
    const tide_cupti_host *host;

    atomic_bool is_on;         ///< what comes is recorded
    atomic_bool in_child;      ///< of fork: it has no part in the recording
    _Atomic uint64_t n_errors; ///< calls of CUPTI that failed
    atomic_uint n_inside;      ///< calls that are being looked at now

    pthread_mutex_t lock; ///< guards all that follows
    tide__cupti_ledger ledger;
    tide__cupti_call_log log;
    tide_cupti_counts counts;
    tide__cupti_context contexts[TIDE__CUPTI_MAX_CONTEXTS];
    CUstream captures[TIDE__CUPTI_MAX_CAPTURES]; ///< streams that are being captured; CU_STREAM_LEGACY is 1
    size_t n_captures;
    tide__cupti_pool pools[TIDE__CUPTI_MAX_POOLS]; ///< those that the program made, with their devices
} tide__cupti_state;

extern tide__cupti_state tide__cupti;

// ---- plugin.c ----

/// A call is to be recorded; then tide__cupti_leave follows. Takes no lock.
bool tide__cupti_enter(void);
void tide__cupti_leave(void);
static inline void tide__cupti_lock(void) { pthread_mutex_lock(&tide__cupti.lock); }
static inline void tide__cupti_unlock(void) { pthread_mutex_unlock(&tide__cupti.lock); }
/// CLOCK_MONOTONIC, of the events.
uint64_t tide__cupti_now_ns(void);
/// Counts a call of CUPTI that failed. @return whether it did not
bool tide__cupti_works(CUptiResult result);

// ---- tell.c: from the ledger to the observer, with the lock held ----

/// The block is live from now on: it gets a number. A block of tidemark's own is only counted.
void tide__cupti_tell_alloc(tide__cupti_block *b, uint64_t t_ns);
/// Its free has begun: its owner has given it up.
void tide__cupti_tell_request(const tide__cupti_block *b);
void tide__cupti_tell_end(const tide__cupti_block *b, uint64_t t_ns);
/// It is the same memory under another address or another name of an allocator: ends it, and announces it again.
void tide__cupti_tell_again(tide__cupti_block *b, uint64_t address, const char *allocator);
/// A request that the device could not meet.
void tide__cupti_tell_oom(int32_t device, uint8_t kind, const char *allocator, const char *tag, uint64_t bytes,
                          uint64_t stream);
/// What a pool took from its device, or gave back.
void tide__cupti_tell_segment(bool taken, uint64_t id, int32_t device, uint64_t address, uint64_t bytes, uint64_t t_ns);
/// Bytes in use and in all of a device, of all processes.
void tide__cupti_tell_usage(int32_t device, uint64_t used, uint64_t total, uint64_t t_ns);

// ---- callbacks.c, mapping.c ----

/// One call of the driver, as calls.h has read it out of its parameters.
typedef struct tide__cupti_call {
    uint64_t address, bytes;
    uint64_t asked_bytes;   ///< where the driver gives more than that; 0: `bytes`
    uint64_t handle;        ///< physical memory
    uint64_t pool;          ///< CUmemoryPool; 0: that of the device
    int32_t device;         ///< TIDE__CUPTI_UNKNOWN_DEVICE: that of the context
    CUstream stream;        ///< of calls in the order of a stream
    bool per_thread;        ///< NULL is the stream of the thread
    uint64_t stream_number; ///< CUPTI's
    const char *allocator;
    uint32_t correlation;
    const char *tag;
    bool is_own;
} tide__cupti_call;

/// The callback of the driver's calls and of contexts.
void CUPTIAPI tide__cupti_on_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data);
/// Switches on the callbacks of every row of calls.h and of contexts.
tide_status tide__cupti_enable_callbacks(tide_error *err) TIDE_NODISCARD;

/// With the lock. Physical memory, after the call succeeded (release: before it, see there).
void tide__cupti_created(const tide__cupti_call *c);
void tide__cupti_retained(const tide__cupti_call *c);
/// Before the call: what it is about, by serial; 0: unknown.
uint64_t tide__cupti_releasing(const tide__cupti_call *c);
void tide__cupti_released(const tide__cupti_call *c, uint64_t serial);
void tide__cupti_mapped(const tide__cupti_call *c);
void tide__cupti_unmapped(const tide__cupti_call *c);
/// The driver has given this name of it to something else: the call that took it away has not returned yet.
void tide__cupti_name_lost(tide__cupti_block *b, tide__cupti_space space, uint64_t key);

/// With the lock. Ends what holds this name now (its free has not returned yet, or was never seen).
void tide__cupti_make_room(tide__cupti_space space, uint64_t key);
/// With the lock. A block with one name, of `bytes`, not told yet. NULL: no memory, which is counted.
tide__cupti_block *tide__cupti_new_block(tide__cupti_space space, uint64_t key, uint64_t bytes);
/// With the lock. Ends a block with one name, and forgets it.
void tide__cupti_end_block(tide__cupti_block *b, uint64_t t_ns);
/// With the lock. The number of the device of a context; 0 where it is not known.
int32_t tide__cupti_device_of(CUcontext context);

// ---- caller.c ----

/// Name of the library that called CUDA: the file of the first frame outside of CUDA's own libraries. NULL: not found.
/// Static text. Called in a callback, without the lock.
const char *tide__cupti_caller(void);
/// Once, before the first callback: what the first backtrace needs is loaded.
void tide__cupti_caller_init(void);
/// A copy that stays, the same for the same text. NULL: no room for more, or NULL. Takes a lock of its own.
const char *tide__cupti_keep_text(const char *text);

// ---- buffers.c ----

void CUPTIAPI tide__cupti_give_buffer(uint8_t **buffer, size_t *size, size_t *max_records);
void CUPTIAPI tide__cupti_take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/// A full buffer, oldest first; NULL: none. *valid bytes of it are records. Give it back with tide__cupti_buffer_done.
uint8_t *tide__cupti_full_buffer(size_t *valid);
void tide__cupti_buffer_done(uint8_t *buffer);
uint64_t tide__cupti_refused_buffers(void);

// ---- records.c ----

/// Parse all full buffers, and tell what is in them. `last`: nothing follows, no record waits any longer.
void tide__cupti_take_records(bool last);
/// A usage sample joins the records of the next tide__cupti_take_records, by its time.
void tide__cupti_add_sample(int32_t device, uint64_t used, uint64_t total, uint64_t t_ns);
void tide__cupti_records_clear(void);
/// With the lock. The block ends with its context: the records of that carry no call's number.
void tide__cupti_note_gone(const tide__cupti_block *b);

// ---- reserved.c ----

/// With the lock. What the records say that a pool has reserved now.
void tide__cupti_pool_is(uint64_t pool, int32_t device, uint64_t reserved, uint64_t t_ns);
/// With the lock. A trim can only lower it.
void tide__cupti_pool_trimmed(uint64_t pool, uint64_t reserved, uint64_t t_ns);
void tide__cupti_pools_clear(void);

// ---- samples.c ----

/// On the recorder's thread. Asks the driver for the memory of each device that has a context; what has not changed
/// since the last time is left out unless `all`.
void tide__cupti_sample(bool all);
void tide__cupti_samples_init(void);
/// In a callback, without the lock: a context is about to end, and no sample may use it until release. False: a sample
/// hangs; do not release then.
bool tide__cupti_samples_hold(void);
void tide__cupti_samples_release(void);

#endif
