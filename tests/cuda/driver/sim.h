// SPDX-License-Identifier: MIT
//
// Inside of the simulated driver: what its files share. One lock (sim_lock_take) guards everything that the calls of
// the host see; every entry point runs with it held and lets go of it while it waits. The threads of streams never take
// it: what passes between them and the host, and from stream to stream, are points (sim_point.h) alone. So under
// ThreadSanitizer two streams are ordered when an event, a wait of the host or the default stream orders them, and not
// by chance because both went through the driver.
//
// Real names of entry points: cuda.h is included with __CUDA_API_VERSION_INTERNAL, which the driver's own build uses,
// so that cuMemAlloc is the old one and cuMemAlloc_v2 the one that programs get.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <generated_cuda_meta.h>

#include "tests/cuda/driver/sim_point.h"
#include "tests/cuda/driver/tidesim.h"

#define SIM_API __attribute__((visibility("default")))
#define SIM_MAX_DEVICES 16
#define SIM_MIB ((uint64_t)1 << 20)

// Objects: every handle is the address of one, and is looked up in a table before it is used (sim_handle.c).

typedef enum sim_sort {
    SIM_CONTEXT,
    SIM_STREAM,
    SIM_EVENT,
    SIM_GRAPH,
    SIM_GRAPH_EXEC,
    SIM_GRAPH_NODE,
    SIM_POOL,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_KERNEL,
    SIM_FUNCTION,
    SIM_PHYSICAL,
    SIM_SORTS
} sim_sort;

typedef struct sim_ctx sim_ctx;
typedef struct sim_stream sim_stream;
typedef struct sim_event sim_event;
typedef struct sim_graph sim_graph;
typedef struct sim_capture sim_capture;
typedef struct sim_pool sim_pool;
typedef struct sim_block sim_block;
typedef struct sim_physical sim_physical;
typedef struct sim_range sim_range;
typedef struct sim_call sim_call;

typedef struct sim_object {
    sim_sort sort;
    uint64_t id;
    struct sim_object *prev, *next; ///< among the live ones of its sort
    bool own;                       ///< a device's own (default pool, primary context): never "left"
} sim_object;

// Devices.

typedef struct sim_device {
    int ordinal;
    uint64_t total_bytes, first_total_bytes;
    uint64_t taken_bytes; ///< given, in steps of the granularity
    sim_ctx *primary;     ///< made by the first retain, then kept
    bool had_context, had_stream;
    sim_pool *default_pool, *pool, *graph_pool;
    struct sim_slab *slabs;
} sim_device;

struct sim_ctx {
    sim_object object;
    sim_device *device;
    bool is_primary, active;
    uint32_t refs; ///< retains of a primary context
    uint32_t flags;
    uint64_t overhead_bytes, stream_bytes; ///< of the device: for itself, for streams
    uint64_t n_streams, most_streams;
    sim_stream *legacy;
    sim_stream *streams; ///< all but legacy
    size_t n_orphans;    ///< ends of streams that were destroyed with work to come
    sim_point **orphans;
};

typedef struct sim_state {
    _Atomic bool ready; ///< cuInit was called
    int n_devices, version;
    uint64_t granularity, context_bytes, stream_bytes;
    sim_device devices[SIM_MAX_DEVICES];
} sim_state;

extern sim_state sim;

/// Reads the environment once.
void sim_configure(void);
void sim_lock_take(void);
void sim_lock_drop(void);
/// Waits without the lock.
void sim_wait(sim_point *point);
/// True in a child that was forked after cuInit.
bool sim_is_forked_child(void);
uint64_t sim_now_ns(void);
uint32_t sim_tid(void);
void *sim_new(size_t bytes);
#define SIM_NEW(type) ((type *)sim_new(sizeof(type)))

// sim_call.c: what every entry point does before and after its own work.

typedef enum sim_need {
    SIM_NEEDS_NOTHING = 0,
    SIM_NEEDS_INIT = 1,
    SIM_NEEDS_CTX = 3,  ///< a live current context
    SIM_UNSAFE = 4,     ///< prohibited while a capture goes on (cuThreadExchangeStreamCaptureMode)
    SIM_PER_THREAD = 8, ///< the _ptsz or _ptds form
    SIM_UNLOCKED = 16,  ///< its body takes the lock itself
} sim_need;

typedef struct sim_row {
    const char *name, *base;
    uint32_t cbid;
    int version;
    unsigned needs;
    void (*fn)(void);
} sim_row;

struct sim_call {
    const sim_row *row;
    const void *params;
    sim_ctx *ctx; ///< current and live, or NULL
    uint32_t correlation;
    uint64_t cookie;
    bool locked;
};

CUresult sim_enter(sim_call *call, int row_i, const void *params);
CUresult sim_leave(sim_call *call, CUresult result);
uint32_t sim_correlation_now(void);
extern const sim_row sim_rows[];
extern const int sim_n_rows;

#define SIM_PARENS(...) __VA_ARGS__
#define SIM_WRAP(name, sig, args, body)                                                                                \
    SIM_API CUresult CUDAAPI name sig {                                                                                \
        const name##_params params_ = {SIM_PARENS args};                                                               \
        sim_call call_;                                                                                                \
        CUresult got_ = sim_enter(&call_, SIM_ROW_##name, &params_);                                                   \
        sim_call *const call = &call_;                                                                                 \
        if (got_ == CUDA_SUCCESS) got_ = body SIM_WITH_CALL args;                                                      \
        return sim_leave(&call_, got_);                                                                                \
    }
#define SIM_WITH_CALL(...) (call, __VA_ARGS__)

/// SIM_ENTRY(name, (parameters), (arguments)) { body }: an entry point. The body sees `call` and the parameters.
#define SIM_ENTRY(name, sig, args)                                                                                     \
    static CUresult body_##name(sim_call *call, SIM_PARENS sig);                                                       \
    SIM_WRAP(name, sig, args, body_##name)                                                                             \
    static CUresult body_##name(sim_call *call, SIM_PARENS sig)
/// The same for a function that has a form for the per-thread default stream, of that suffix (_ptsz, _ptds).
#define SIM_ENTRY_PT(name, suffix, sig, args)                                                                          \
    static CUresult body_##name(sim_call *call, SIM_PARENS sig);                                                       \
    SIM_WRAP(name, sig, args, body_##name)                                                                             \
    SIM_WRAP(name##suffix, sig, args, body_##name)                                                                     \
    static CUresult body_##name(sim_call *call, SIM_PARENS sig)

enum {
#define X(name, base, version, needs) SIM_ROW_##name,
#include "tests/cuda/driver/sim_entries.h"
#undef X
    SIM_N_ROWS
};

#define SIM_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        const CUresult try_ = (expr);                                                                                  \
        if (try_ != CUDA_SUCCESS) return try_;                                                                         \
    } while (0)

// sim_handle.c

void sim_object_add(sim_object *object, sim_sort sort);
void sim_object_remove(sim_object *object);
/// The object, if the handle is live and of that sort; else NULL. Says on stderr what is wrong with it, and counts it.
void *sim_object_of(const void *handle, sim_sort sort);
/// The same, quietly.
void *sim_object_find(const void *handle, sim_sort sort);
/// A misuse that is no matter of handles.
void sim_misused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/// `each` may remove the object that it is given. @return how many there were
uint64_t sim_objects_each(sim_sort sort, void (*each)(sim_object *, void *), void *user);
uint64_t sim_next_id(void);
const char *sim_sort_name(sim_sort sort);
void sim_misuse_reset(void);

// sim_ledger.c

typedef struct sim_entry_info {
    tidesim_kind kind;
    const sim_device *device; ///< NULL: host
    uint64_t address, bytes;
    const sim_ctx *ctx;
    const sim_stream *stream;
    const sim_pool *pool;
    bool is_async, quiet; ///< quiet: no memory hook
} sim_entry_info;

void sim_ledger_alloc(const sim_entry_info *what);
void sim_ledger_free(const sim_entry_info *what);
/// Physical memory of the device, in whole granules. False: not enough is left.
bool sim_take(sim_device *device, uint64_t bytes);
void sim_give(sim_device *device, uint64_t bytes);
tidesim_count sim_ledger_count(int device, tidesim_kind kind);
uint64_t sim_round_up(uint64_t bytes, uint64_t to);

// sim_hooks.c

extern const tidesim_hooks *_Atomic sim_hooks;
void sim_hook_life(bool is_stream, bool created, const sim_ctx *ctx, const sim_stream *stream);
void sim_hook_pool(tidesim_pool_op op, const sim_pool *pool, uint64_t min_bytes);

// sim_fail.c

/// Counts the call; the error that it is to fail with, or CUDA_SUCCESS.
CUresult sim_fail_check(int row_i);
void sim_fail_reset(void);
void sim_log_call(const sim_call *call, CUresult result);

// sim_context.c

sim_ctx *sim_ctx_current(CUresult *why);
/// The context of a handle; NULL: misuse.
sim_ctx *sim_ctx_of(CUcontext handle);
/// Waits for all work of the context, also of streams that were destroyed.
void sim_ctx_drain(sim_ctx *ctx);
void sim_device_drain(const sim_device *device);

// sim_device.c

sim_device *sim_device_of(CUdevice ordinal);

// sim_memory.c, sim_range.c

struct sim_range {
    tidesim_kind kind;
    uint64_t address, bytes; ///< as asked for
    uint64_t span;           ///< bytes of addresses that belong to it
    uint64_t id;
    sim_device *device;
    sim_ctx *ctx; ///< NULL: of the device or the process
    uint64_t ctx_id;
    struct sim_slab *slab;  ///< small cuMemAlloc
    sim_block *block;       ///< of a pool
    sim_physical *physical; ///< TIDESIM_MAPPED
    uint32_t flags;         ///< of the call that made it
    bool readable, writable;
    uint32_t n_mapped; ///< TIDESIM_RESERVED: mappings in it
    bool released;     ///< a freed block of a pool, or memory of a graph that holds none
};

/// The innermost range that holds the address, or NULL.
sim_range *sim_range_at(uint64_t address);
/// The innermost range that holds all of [address, +bytes), or NULL.
sim_range *sim_range_holding(uint64_t address, uint64_t bytes);
void sim_range_add(sim_range *range);
void sim_range_remove(sim_range *range);
/// Walks over all ranges from the lowest address. `each` may remove the one it is given.
void sim_ranges_each(bool (*each)(sim_range *, void *), void *user);
uint64_t sim_n_ranges(void);
/// Address space without memory: 0 when there is none. `align` a power of two.
uint64_t sim_map_reserve(uint64_t bytes, uint64_t align, uint64_t want);
bool sim_map_open(uint64_t address, uint64_t bytes);
/// The memory goes, the addresses stay reserved.
void sim_map_close(uint64_t address, uint64_t bytes);
/// Nothing of it may be poisoned.
void sim_map_free(uint64_t address, uint64_t bytes);
void sim_poison(uint64_t address, uint64_t bytes);
void sim_unpoison(uint64_t address, uint64_t bytes);
/// Frees what belongs to the context (it is going away).
void sim_memory_of_ctx_free(sim_ctx *ctx, bool is_last);
/// True when the memory is device memory; *pinned: host memory that the driver knows.
bool sim_memory_is_device(uint64_t address, bool *pinned, uint32_t *device);
/// Whether [address, +bytes) may be copied from or to: not when it begins in a known range and ends outside.
bool sim_memory_check(uint64_t address, uint64_t bytes, bool must_be_known);

// sim_vmm.c

sim_range *sim_reservation_at(uint64_t address);

// sim_pool.c

uint64_t sim_pool_threshold(const sim_pool *pool);
uint64_t sim_pool_reserved(const sim_pool *pool);
uint64_t sim_pool_used(const sim_pool *pool);
sim_device *sim_pool_device(const sim_pool *pool);
/// Handle of the pool that a block is of; 0: the range is none.
uint64_t sim_pool_of_range(const sim_range *range);
sim_pool *sim_pool_new(sim_device *device, bool own);
/// Frees at once, outside of any stream (cuMemFree of a pool's block).
void sim_pool_free_now(sim_range *range);
/// After the host waited for something: pools give back what is above their threshold.
void sim_pools_synchronised(void);
/// The device is reset: nothing that a pool gave is left.
void sim_pools_of_device_free(sim_device *device);

// sim_work.c: a piece of work of a stream.

typedef enum sim_work_sort {
    SIM_WORK_NONE, ///< a marker: orders only
    SIM_WORK_COPY,
    SIM_WORK_FILL,
    SIM_WORK_KERNEL,
    SIM_WORK_HOST,
    SIM_WORK_OPEN,  ///< a pool's block is given: its bytes may be touched
    SIM_WORK_CLOSE, ///< … and given back
    SIM_WORK_GRAPH_ALLOC,
    SIM_WORK_GRAPH_FREE
} sim_work_sort;

struct tide_host_kernel;

typedef struct sim_work {
    sim_work_sort sort;
    uint64_t dst, src, bytes;
    uint64_t dst_pitch, src_pitch, height; ///< height 0: one row
    void *staged;                          ///< owned copy of pageable memory: the source
    uint32_t value, value_bytes;
    const struct tide_host_kernel *kernel;
    uint32_t grid[3], block[3], shared_bytes;
    void *args; ///< owned [TIDE_HOST_MAX_PARAMS * 8 and more], laid out by sim_work.c
    CUhostFn host_fn;
    CUstreamCallback callback;
    CUstream callback_stream;
    void *user;
    CUmemorytype src_type, dst_type;
    uint32_t src_device, dst_device;
    uint32_t graph_id, node_id;
} sim_work;

sim_work sim_work_clone(const sim_work *work);
void sim_work_done(sim_work *work);
/// Runs on the stream's thread.
void sim_work_run(sim_work *work);
/// The calling thread runs a host function now.
bool sim_in_host_func(void);
bool sim_work_is_timed(const sim_work *work);
extern _Atomic uint64_t sim_delay_us;

// sim_queue.c: the thread of a stream.

typedef struct sim_op sim_op;
typedef struct sim_queue sim_queue;

sim_queue *sim_queue_new(void);
/// What is queued is still done; then the queue goes.
void sim_queue_close(sim_queue *queue);
/// Takes `work`; `deps` are borrowed. @return the point at which it is done: a reference of the caller's.
sim_point *sim_queue_push(sim_queue *queue, sim_work work, sim_point *const *deps, size_t n_deps,
                          const sim_stream *stream, uint32_t correlation);

// sim_stream.c

/// What a stream is known to come after: of each other stream, the last piece of work.
typedef struct sim_clock {
    size_t n, cap;
    struct sim_tick {
        uint64_t stream_id, seq;
    } * ticks;
} sim_clock;

struct sim_stream {
    sim_object object;
    uint64_t id; ///< as cuStreamGetId says
    sim_ctx *ctx;
    sim_stream *next;
    uint32_t flags;
    int priority;
    bool is_legacy, is_per_thread;
    uint32_t owner_tid; ///< per-thread ones
    sim_queue *queue;
    sim_point *tail; ///< the last piece of work; NULL: none yet
    uint64_t seq;    ///< number of it
    uint64_t legacy_seen, seen_by_legacy;
    sim_clock clock;
    sim_capture *capture;
    uint32_t capture_lane;
    size_t n_capture_deps;
    uint32_t *capture_deps; ///< nodes that the next captured work follows
};

/// The stream of a handle (NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, too); why not: *why.
sim_stream *sim_stream_of(sim_call *call, CUstream handle, CUresult *why);
/// Hands over or captures the work. `work` is taken in every case. `point` (optional): a reference, NULL when captured.
CUresult sim_submit(sim_call *call, sim_stream *stream, sim_work work, sim_point **point);
CUresult sim_submit_after(sim_call *call, sim_stream *stream, sim_work work, sim_point *const *deps, size_t n_deps,
                          sim_point **point);
void sim_clock_join(sim_clock *clock, uint64_t stream_id, uint64_t seq);
void sim_clock_join_all(sim_clock *clock, const sim_clock *other);
bool sim_clock_has(const sim_clock *clock, uint64_t stream_id, uint64_t seq);
void sim_clock_done(sim_clock *clock);
sim_stream *sim_stream_new(sim_ctx *ctx, uint32_t flags, int priority);
/// A per-thread default stream's thread ends, or a program destroys a stream: work that is to come is still done.
void sim_stream_destroy(sim_stream *stream);
/// All of a context's streams go, after their work is done.
void sim_streams_of_ctx_free(sim_ctx *ctx);

// sim_event.c

struct sim_event {
    sim_object object;
    sim_ctx *ctx;
    uint32_t flags;
    sim_point *point; ///< of the last record; NULL: none
    uint64_t stream_id, seq;
    sim_clock clock;
    uint64_t capture_id; ///< recorded in that capture; 0: not
    size_t n_nodes;
    uint32_t *nodes;
};

/// Makes it an event that was never recorded.
void sim_event_forget(sim_event *event);
void sim_events_of_ctx_free(sim_ctx *ctx);

// sim_capture.c, sim_graph.c

/// CUDA_SUCCESS, or the error that an unsafe call gets now; invalidates captures in that case.
CUresult sim_capture_forbids(void);
/// Invalidates the capture of the stream (or, for the legacy stream, all of the context) and returns `why`.
CUresult sim_capture_break(sim_stream *stream, CUresult why);
CUresult sim_capture_add(sim_stream *stream, sim_work work);
/// Whether work on the legacy stream would depend on a capture.
bool sim_capture_blocks_legacy(const sim_ctx *ctx);
CUresult sim_capture_record(sim_event *event, sim_stream *stream);
CUresult sim_capture_wait(sim_stream *stream, sim_event *event);
/// The live capture of that number, or NULL.
sim_capture *sim_capture_find(uint64_t id);
void sim_capture_invalidate(sim_capture *capture);
void sim_capture_leave(sim_stream *stream);
uint64_t sim_n_captures(void);
void sim_captures_of_ctx_free(const sim_ctx *ctx);

// sim_launch.c

void sim_modules_of_ctx_free(sim_ctx *ctx);

#endif
