// SPDX-License-Identifier: MIT
//
// The control side of the simulated CUDA driver: what a test, or the simulated CUPTI, asks it beside the calls of
// cuda.h. Reached by linking to the library or by dlsym. All of it may be called from any thread, and before cuInit.
//
// Environment, read once, when the library is first used:
//   TIDESIM_DEVICES=1          devices
//   TIDESIM_BYTES=17179869184  memory of each device
//   TIDESIM_GRANULARITY=2097152 bytes of the smallest piece that a device gives
//   TIDESIM_VERSION=13000      what cuDriverGetVersion says
//   TIDESIM_CONTEXT_BYTES=…    device memory that a context takes
//   TIDESIM_STREAM_BYTES=0     device memory that each stream above the 32 first takes, and never gives back (measured:
//   574619) TIDESIM_DELAY_US=0         time that each copy, memset and kernel takes more TIDESIM_FAIL=n[:code][:name]
//   the n-th call (of the function `name`) fails with code (default 2) TIDESIM_LOG=file           a line per call
//   TIDESIM_LEDGER=file        a mapped file with every allocation and free; %p in the name is the process
#ifndef TIDE_TESTS_CUDA_DRIVER_TIDESIM_H
#define TIDE_TESTS_CUDA_DRIVER_TIDESIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a byte of the ledger is. Those marked P are physical memory of a device: their sum is what the driver has given
/// in bytes as asked for; what the device has less is rounded up (tidesim_taken).
typedef enum tidesim_kind {
    TIDESIM_DEVICE,     ///< P cuMemAlloc, cuMemAllocPitch: bytes as asked for
    TIDESIM_MANAGED,    ///< cuMemAllocManaged
    TIDESIM_POOL,       ///< P reserved by a pool from its device
    TIDESIM_POOL_BLOCK, ///< cuMemAllocAsync, cuMemAllocFromPoolAsync: lies inside TIDESIM_POOL; bytes as asked for
    TIDESIM_PHYSICAL,   ///< P cuMemCreate; `address` of its records is the handle
    TIDESIM_RESERVED,   ///< cuMemAddressReserve: addresses, no memory
    TIDESIM_MAPPED,     ///< cuMemMap: lies inside TIDESIM_RESERVED, shows TIDESIM_PHYSICAL
    TIDESIM_PINNED,     ///< host memory: cuMemHostAlloc, cuMemAllocHost
    TIDESIM_REGISTERED, ///< host memory of the caller: cuMemHostRegister
    TIDESIM_CONTEXT,    ///< P what a context takes
    TIDESIM_GRAPH,      ///< P memory of a graph's allocations, from its first launch on
    TIDESIM_KINDS
} tidesim_kind;

/// One kind on one device (host kinds: device 0).
typedef struct tidesim_count {
    uint64_t live_bytes, n_live, n_allocs, n_frees, peak_bytes;
} tidesim_count;

/// What the ledger says now. False: no such device or kind.
bool tidesim_ledger(int device, tidesim_kind kind, tidesim_count *out);
/// Bytes that the device has given, in its granularity: total - taken is what cuMemGetInfo calls free.
uint64_t tidesim_taken(int device);
const char *tidesim_kind_name(tidesim_kind kind);

/// Live objects of one sort: "context" (primary ones are live while retained), "stream", "event", "graph",
/// "graph_exec", "pool" (without the devices' own), "module", "library", "physical", "range" (every address range that
/// the driver knows: allocations of all kinds, reservations), "capture".
uint64_t tidesim_live(const char *sort);
/// Everything that is live but primary contexts and what a device has of its own: 0 when nothing is left. Prints each
/// to stderr when `print`.
uint64_t tidesim_left(bool print);

/// The n-th call from now on (1: the next) of `name` (NULL: of any function) fails with `code`; 0: none fails any more.
void tidesim_fail_nth(uint64_t n, CUresult code, const char *name);
/// Calls so far of `name` (the exported name, "cuMemAlloc_v2"; NULL: of all functions).
uint64_t tidesim_calls(const char *name);
/// Calls that failed by tidesim_fail_nth or TIDESIM_FAIL.
uint64_t tidesim_failed(void);
/// Calls that only a faulty program makes: unknown handles, double frees, use after destroy, the wrong context.
uint64_t tidesim_misuse(void);
/// Sets the memory of a device, at once; more may be in use already. 0: what it had at first.
void tidesim_set_bytes(int device, uint64_t bytes);
void tidesim_set_delay_us(uint64_t us);
/// Clears what counts and what fails (not what is live).
void tidesim_reset_counts(void);

// The ledger file: a tidesim_file_head, then records. A record is whole when its `seq` is its index + 1, written last;
// so the file of a process that was killed is good up to its last whole record.

#define TIDESIM_FILE_MAGIC "TIDESIM"
#define TIDESIM_FILE_VERSION 1U

typedef struct tidesim_file_head {
    char magic[8]; ///< "TIDESIM" and 0
    uint32_t version, record_bytes;
    uint64_t capacity;  ///< records that fit
    uint64_t n_records; ///< written so far (atomic)
    uint64_t n_lost;    ///< did not fit
    uint64_t pid;
    uint64_t pad[2];
} tidesim_file_head;

typedef struct tidesim_record {
    uint64_t seq;  ///< index + 1, written last
    uint64_t t_ns; ///< CLOCK_MONOTONIC; the same figure as the hooks get
    uint64_t address, bytes;
    uint32_t kind;  ///< tidesim_kind
    int32_t device; ///< host kinds: 0
    uint32_t op;    ///< 1 alloc, 2 free
    uint32_t tid;
    uint64_t pool; ///< handle of the pool (POOL, POOL_BLOCK), else 0
    uint64_t context;
} tidesim_record;

// Hooks, for the simulated CUPTI. Those of memory, pool, context and stream run with the driver's lock held: of the
// driver and of this header they may call tidesim_correlation and tidesim_kind_name alone. Those of api run without it,
// those of work on the stream's thread. The memory hook is told of device, managed, pool_block, physical, mapped,
// pinned, registered and graph; not of pool (see the pool hook), reserved and context. Memory that goes with the last
// context of a device is not told (measured).

#define TIDESIM_NO_STREAM 0xffffffffU

typedef struct tidesim_api {
    bool enter;         ///< else exit
    const char *name;   ///< exported name
    uint32_t cbid;      ///< CUpti_driver_api_trace_cbid
    const void *params; ///< struct NAME_params of generated_cuda_meta.h; NULL: the function takes none
    CUresult *result;   ///< at exit: what it returns, may be changed; NULL at enter
    uint32_t correlation;
    uint32_t context, device; ///< ids; context 0: none is current
    CUcontext handle;
    uint32_t tid;
    uint64_t t_ns;
    uint64_t *cookie; ///< the same word at enter and exit of one call
} tidesim_api;

typedef struct tidesim_memory {
    bool alloc; ///< else free
    tidesim_kind kind;
    uint64_t address, bytes, t_ns;
    uint32_t device, context;
    uint32_t stream; ///< id, or TIDESIM_NO_STREAM
    bool is_async;
    uint64_t pool; ///< handle, or 0
    uint64_t pool_threshold, pool_reserved, pool_used;
    uint32_t correlation, pid, tid;
} tidesim_memory;

typedef enum tidesim_pool_op {
    TIDESIM_POOL_CREATED = 1,
    TIDESIM_POOL_DESTROYED = 2,
    TIDESIM_POOL_TRIMMED = 3
} tidesim_pool_op;

typedef struct tidesim_pool_event {
    tidesim_pool_op op;
    uint64_t pool, reserved, threshold, used, min_bytes_to_keep, t_ns;
    uint32_t device, correlation, pid;
} tidesim_pool_event;

typedef enum tidesim_work_kind {
    TIDESIM_WORK_KERNEL = 1,
    TIDESIM_WORK_COPY,
    TIDESIM_WORK_MEMSET,
    TIDESIM_WORK_HOST_FUNC
} tidesim_work_kind;

typedef struct tidesim_work {
    tidesim_work_kind kind;
    uint64_t begin_ns, end_ns, bytes, src, dst;
    CUmemorytype src_type, dst_type; ///< copies; 0: pageable host memory
    uint32_t src_device, dst_device;
    uint32_t device, context, stream, correlation;
    uint32_t value;   ///< memsets
    const char *name; ///< kernels
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t graph, node; ///< ids, 0 when not of a graph
} tidesim_work;

typedef struct tidesim_life {
    bool created; ///< else destroyed
    uint32_t context, device, stream;
    CUcontext handle;
    CUstream stream_handle; ///< NULL for contexts and the default stream
    uint64_t t_ns;
    uint32_t flags;
    int32_t priority;
} tidesim_life;

typedef struct tidesim_hooks {
    void (*api)(void *user, const tidesim_api *call);
    void (*memory)(void *user, const tidesim_memory *event);
    void (*pool)(void *user, const tidesim_pool_event *event);
    void (*work)(void *user, const tidesim_work *event);
    void (*context)(void *user, const tidesim_life *event);
    void (*stream)(void *user, const tidesim_life *event);
    void *user;
} tidesim_hooks;

/// NULL takes them away. Borrowed until the next call. A call of the driver that is under way may still use the last
/// ones.
void tidesim_set_hooks(const tidesim_hooks *hooks);
/// Number of the driver call that this thread makes or made last, as in the hooks; 0: none yet.
uint32_t tidesim_correlation(void);
/// Ids as in the hooks, and cuCtxGetId / cuStreamGetId; 0: not a live handle. The stream may be NULL (of the context).
uint32_t tidesim_context_id(CUcontext context);
uint32_t tidesim_stream_id(CUcontext context, CUstream stream);
/// Waits until all work that was handed over so far in every context is done.
void tidesim_drain(void);

#ifdef __cplusplus
}
#endif
#endif
