// SPDX-License-Identifier: MIT
//
// memory: devices and kinds of memory, allocators, blocks, scopes, and the observer that is told of them all.
//
//     the house's allocators      tide_block_create -> [instrumented -> [cpu, arena, …]] -> block -> tide_block_unref
//                                                        |
//                                                        v  tide_memory_event
//                                                      observer: the recorder (tidemark/record.h), or one of your own
//                                                        ^
//     allocators of your own      you fill in the event --+
#ifndef TIDEMARK_MEMORY_H
#define TIDEMARK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tidemark/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- devices ----

/// The two types that have a number of their own; others get theirs while the process runs.
typedef enum tide_device_type {
    TIDE_DEVICE_CPU = 0,
    TIDE_DEVICE_CUDA = 1,
    TIDE_DEVICE_FIRST_EXTRA = 2,
} tide_device_type;

/// Where memory lies. A value: all zero is the CPU.
typedef struct tide_device {
    tide_device_type type;
    int32_t index; ///< 0 for the CPU
} tide_device;

#ifdef __cplusplus
#define TIDE_CPU (tide_device{TIDE_DEVICE_CPU, 0})
#else
#define TIDE_CPU ((tide_device){TIDE_DEVICE_CPU, 0})
#endif

/// A stream of its device, unique in the process and never reused; 0 is the default stream (on the CPU: the calling
/// thread itself, where work is done when the call returns).
typedef uint64_t tide_stream_id;

/// "cpu", "cuda:0", "fake:1" into `buf` (32 bytes always suffice); returns `buf`.
char *tide_device_format(tide_device device, char *buf, size_t buf_bytes);

// ---- kinds ----

// A kind more: a header of your own that defines TIDE_EXTRA_MEMORY_KINDS(XX) with lines of the same form, values going
// on from the last one here, and -DTIDE_EXTRA_MEMORY_KINDS_H=\"my_kinds.h\" for the whole build of tidemark
// (docs/extending.md) and of what uses it.
#ifdef TIDE_EXTRA_MEMORY_KINDS_H
#include TIDE_EXTRA_MEMORY_KINDS_H
#else
#define TIDE_EXTRA_MEMORY_KINDS(XX)
#endif

/// enum suffix, value (stable: trace files hold it), printable name, where it is legal, what it is for
#define TIDE_MEMORY_KIND_MAP(XX)                                                                                       \
    XX(DEFAULT, 0, "Default", ANY_DEVICE, "ordinary tensors: graph inputs and outputs")                                \
    XX(PERSISTENT, 1, "Persistent", ANY_DEVICE, "weights: as long as the model")                                       \
    XX(WORKSPACE, 2, "Workspace", ANY_DEVICE, "activations and kernel scratch of one run")                             \
    XX(KV_CACHE, 3, "KVCache", ANY_DEVICE, "attention state that grows from run to run")                               \
    XX(HOST_PINNED, 4, "HostPinned", CPU_ONLY, "page-locked host memory for DMA")                                      \
    XX(HOST_PAGEABLE, 5, "HostPageable", CPU_ONLY, "plain host memory")                                                \
    TIDE_EXTRA_MEMORY_KINDS(XX)

/// What memory is for: TIDE_KIND_DEFAULT, TIDE_KIND_PERSISTENT, … of the list. Host kinds are legal on the CPU alone.
typedef enum tide_memory_kind {
#define XX(name, value, text, place, what) TIDE_KIND_##name = (value),
    TIDE_MEMORY_KIND_MAP(XX)
#undef XX
} tide_memory_kind;

/// "Default", "Persistent", …; "kind ?" outside the list. Static text.
const char *tide_memory_kind_name(tide_memory_kind kind);

// ---- allocators ----

/// Gives memory of one device. Counts its references; each block holds one, so that an allocator outlives what it has
/// given out. Takes calls of several threads.
typedef struct tide_allocator tide_allocator;

/**
 * Make one of the allocators that need no other one:
 *
 *     cpu[:align=64|256]             aligned memory straight from the system, which gets it back at once
 *     cpu_caching[:sizes=pow2|steps] buckets that keep what is freed, by powers of two or in finer steps
 *     stream_caching                 segments that are split and merged and kept when they are free
 *     pinned                         the same, page-locked where a device has such memory
 *
 * @param name  one of them, for example "cpu" or "cpu_caching:sizes=steps"
 * @param out   one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_INVALID for another name or option, with the list as hint; TIDE_ERR_NOMEM
 */
tide_status tide_allocator_create_by_name(const char *name, tide_allocator **out, tide_error *err) TIDE_NODISCARD;
/// Number `i` of all texts that it takes, an option's values each with their own; NULL past the end. Static text.
const char *tide_allocator_name_at(size_t i);

/**
 * "arena": one block from `backing`, a cursor that only moves up, reset that rewinds.
 *
 * @param backing         borrowed; the arena takes its own reference
 * @param capacity_bytes  taken at once; 0: nothing, and no request fits
 * @param align_bytes     of every block at the least, a power of two; 0: 256
 * @param out             one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_INVALID for an alignment that is no power of two; what `backing` returns; TIDE_ERR_NOMEM
 *
 * Until reset a freed block stays active, so stats.peak_active_bytes is the capacity that was needed. A request that
 * does not fit is TIDE_ERR_NO_SPACE and changes nothing.
 */
tide_status tide_arena_create(tide_allocator *backing, size_t capacity_bytes, size_t align_bytes, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;
/**
 * "paged": blocks of one size, cut from slabs of `backing`, for what grows in equal parts (a KV cache). A request of up
 * to page_bytes takes one page; a larger one is TIDE_ERR_NO_SPACE.
 *
 * @param backing         borrowed; referenced
 * @param page_bytes      a multiple of 256
 * @param pages_per_slab  taken from `backing` at once, at least 1
 * @param out             one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_INVALID for another page size or no pages; TIDE_ERR_OVERFLOW; TIDE_ERR_NOMEM
 */
tide_status tide_paged_create(tide_allocator *backing, size_t page_bytes, size_t pages_per_slab, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;
/**
 * "limit": `inner` with a budget. What would take the sum of active bytes past it is TIDE_ERR_NOMEM with the numbers;
 * nothing is taken from `inner` then, or, when it is the rounding alone that does not fit, given back at once. The
 * budget counts what inner's blocks take, rounding included; what inner keeps cached is not counted. stream_caching and
 * pinned may have no other user than their limit.
 *
 * @param inner         borrowed; referenced
 * @param budget_bytes  0 refuses everything
 * @param out           one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_NOMEM
 */
tide_status tide_limit_create(tide_allocator *inner, uint64_t budget_bytes, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;

/// What hears of memory; see below.
typedef struct tide_observer tide_observer;

/**
 * "instrumented": passes every call to `inner` and tells `obs` of each allocation, free and failed attempt, under the
 * name of `inner`; its numbers are those of `inner`. An allocator around which there is none is not heard. Where one
 * takes its memory from another (an arena, a paged one), instrument one of the two: of both, the same bytes are heard
 * twice.
 *
 * @param inner  borrowed; referenced
 * @param obs    copied; obs->self must outlive the last reference to *out, and so every block of it
 * @param out    one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_INVALID for an observer without on_memory; TIDE_ERR_NOMEM
 *
 * Costs one call of the observer for each event: 12 to 25 ns with the recorder.
 */
tide_status tide_instrumented_create(tide_allocator *inner, const tide_observer *obs, tide_allocator **out,
                                     tide_error *err) TIDE_NODISCARD;

/// One reference more; returns `a`.
tide_allocator *tide_allocator_ref(tide_allocator *a);
/// Give a reference back. Takes NULL. The last one, those of blocks included, destroys the allocator and gives what it
/// keeps back to the system.
void tide_allocator_unref(tide_allocator *a);

/// What is not known, instead of a number of bytes; never 0.
#define TIDE_UNKNOWN_BYTES UINT64_MAX

/// The numbers of an allocator. Between them, at every moment: requested <= active, active + cached <= reserved,
/// largest free <= cached, pending <= active, each peak >= its present value.
typedef struct tide_allocator_stats {
    uint64_t requested_bytes;    ///< asked for and not yet freed
    uint64_t active_bytes;       ///< held by blocks, rounding included; internal fragmentation = active - requested
    uint64_t cached_bytes;       ///< kept for reuse
    uint64_t reserved_bytes;     ///< taken from the system; >= active + cached
    uint64_t largest_free_bytes; ///< largest block that could be given without asking the system
    uint64_t pending_bytes;      ///< part of active: released, but a stream may still use it
    uint64_t n_pending;          ///< blocks behind pending_bytes
    uint64_t headroom_bytes;     ///< what may still be taken from the system; TIDE_UNKNOWN_BYTES: it decides
    uint64_t peak_requested_bytes, peak_active_bytes, peak_reserved_bytes;
    uint64_t n_allocs; ///< successful allocations so far
    uint64_t n_frees;
    uint64_t n_failed; ///< requests that could not be met
    uint64_t n_system; ///< calls to the system or the backing allocator that took memory
    uint64_t n_hits;   ///< allocations served from the cache
} tide_allocator_stats;

/// The numbers as they are now.
void tide_allocator_get_stats(const tide_allocator *a, tide_allocator_stats *out);
/// All memory of an arena serves again. TIDE_ERR_BUSY while a block of it is alive; TIDE_ERR_NOT_IMPLEMENTED where the
/// allocator is not reset.
tide_status tide_allocator_reset(tide_allocator *a, tide_error *err) TIDE_NODISCARD;
/// Give what is cached back to the system; nothing where nothing is kept. Waits for streams that still use it. Costs a
/// call of the system for each segment.
void tide_allocator_trim(tide_allocator *a);

// ---- blocks ----

/// One allocation. Counts its references; the last one gives the memory back. References may be taken and given back by
/// several threads.
typedef struct tide_block tide_block;

/**
 * Allocate `size_bytes` from `owner`.
 *
 * @param owner        borrowed; the block takes a reference
 * @param align_bytes  power of two, or 0 for the rule of the kind: 64 for host kinds, 256 for all others
 * @param stream       that uses the memory first; 0
 * @param tag          what it is for, as traces show it; copied; may be NULL
 * @param out          one reference, owned: tide_block_unref
 * @return TIDE_ERR_INVALID (no owner, a size of 0, an alignment that `owner` does not honour, a kind that is not legal
 *         on its device); TIDE_ERR_NOMEM; TIDE_ERR_NO_SPACE from arenas and pages
 *
 * Costs what the allocator does, and one small allocation of tidemark's own.
 */
tide_status tide_block_create(tide_allocator *owner, size_t size_bytes, size_t align_bytes, tide_memory_kind kind,
                              tide_stream_id stream, const char *tag, tide_block **out, tide_error *err) TIDE_NODISCARD;
/// One reference more; returns `b`.
tide_block *tide_block_ref(tide_block *b);
/// Give a reference back. Takes NULL. The last one gives the memory back to its allocator, once.
void tide_block_unref(tide_block *b);
/// Where its bytes are, to be read and written until the last reference is given back. Not initialised.
void *tide_block_data(const tide_block *b);

// ---- scopes ----

typedef enum tide_scope_kind {
    TIDE_SCOPE_REGION,
    TIDE_SCOPE_RUN,
    TIDE_SCOPE_OPERATOR,
    TIDE_SCOPE_FRAME, ///< of a call stack; its name is "FUNCTION @ FILE:LINE", or the function alone
} tide_scope_kind;

/// A named section of work. Scopes nest per thread; the innermost one owns what is allocated inside it. The struct
/// belongs to the caller that enters the scope and must live until it is left; `name` must outlive the observer's call.
typedef struct tide_scope {
    const char *name;
    tide_scope_kind kind;
    int32_t index;                   ///< step of an operator, number of a run; -1: none
    uint64_t block_id;               ///< of a run: the block that it works in, its plan's buffer; 0: none
    const struct tide_scope *parent; ///< set by tide_scope_enter
    uint64_t entry;                  ///< set by tide_scope_enter: number of this entering on its thread, never 0; an
                                     ///< observer knows a scope again by it. 0: made by hand, compare all fields
} tide_scope;

/// Put `scope` on the calling thread's stack and tell `obs` (may be NULL). Allocates nothing.
void tide_scope_enter(tide_scope *scope, const tide_observer *obs);
/// Take it off, with what was forgotten inside it, and tell `obs` (may be NULL). Nothing when it is not on the stack of
/// this thread.
void tide_scope_leave(tide_scope *scope, const tide_observer *obs);
/// The calling thread's innermost scope, borrowed until it is left; NULL outside every scope.
const tide_scope *tide_scope_current(void);
/// A small number that names the calling thread for as long as the process lives; the first caller is 1.
uint32_t tide_thread_id(void);

// ---- observers ----

/// Values are stable: trace files hold them.
#define TIDE_MEMORY_OP_MAP(XX)                                                                                         \
    XX(ALLOC, 1, "alloc")                                                                                              \
    XX(FREE_REQUESTED, 2, "free_requested")                                                                            \
    XX(FREE_COMPLETED, 3, "free_completed")                                                                            \
    XX(SEGMENT_ALLOC, 4, "segment_alloc")                                                                              \
    XX(SEGMENT_FREE, 5, "segment_free")                                                                                \
    XX(OOM, 6, "oom")                                                                                                  \
    XX(POOL_DISCARD, 7, "pool_discard") /* all blocks in [address, address + reserved_bytes) go at once */             \
    XX(SNAPSHOT, 8, "snapshot")         /* a moment with a name (tag); no block, no bytes */                           \
    XX(DEVICE_USAGE, 9, "device_usage") /* requested_bytes of the device's reserved_bytes are in use */                \
    XX(SIZED, 10, "sized")              /* a tensor of the plan takes requested_bytes of the reserved_bytes it has */

/// What happened: TIDE_MEM_ALLOC, TIDE_MEM_FREE_COMPLETED, … of the list. A block is live from alloc to free_completed;
/// free_requested between them says that its owner has given it up and another stream still uses it. Segments are what
/// an allocator takes from the system. device_usage is a sample of a whole device, all processes included, as its
/// driver counts: of kind DEFAULT, of no block, part of no sum. sized says what came out of a tensor that is sized
/// while running: block_id is the block that it lies in, address its own, `stream` its number in the plan of the run,
/// and the tag its extents ("[12x6]"). It is part of no sum either: the block has its bytes whatever comes out.
typedef enum tide_memory_op {
#define XX(name, value, text) TIDE_MEM_##name = (value),
    TIDE_MEMORY_OP_MAP(XX)
#undef XX
} tide_memory_op;

/// Something that happened to memory. A program with allocators of its own fills one in and hands it to an observer:
/// all zero, then what it knows. A free repeats block, device, kind, bytes and address of the allocation.
typedef struct tide_memory_event {
    tide_memory_op op;
    uint64_t t_ns;     ///< CLOCK_MONOTONIC; 0: now
    uint64_t block_id; ///< unique within the process, never reused, below 2^48 (tide_block_new_id); 0 for oom,
                       ///< pool_discard, snapshot and device_usage
    tide_device device;
    tide_memory_kind kind;
    tide_stream_id stream;
    uint64_t requested_bytes; ///< what the caller asked for
    uint64_t reserved_bytes;  ///< what the allocator set aside for it
    uint64_t address;         ///< 0 for oom
    uint32_t thread;          ///< tide_thread_id
    const char *allocator;    ///< name of the allocator that owns the block; may be NULL
    const char *tag;          ///< what asked for it: tensor or buffer name; may be NULL
    const tide_scope *scope;  ///< innermost scope of the thread (tide_scope_current); NULL: none
    /// Numbers of the allocator at an oom, read before any clean-up; NULL for other events.
    const tide_allocator_stats *stats;
    uint64_t align_bytes; ///< asked for, at an oom; else 0
} tide_memory_event;

/// A scope was entered or left.
typedef struct tide_scope_event {
    bool enter;
    uint64_t t_ns; ///< as in tide_memory_event
    uint32_t thread;
    const tide_scope *scope;
} tide_scope_event;

/// Callbacks may come from several threads at once; they must not allocate from an observed allocator, and what
/// the event points to is borrowed until they return.
struct tide_observer {
    void *self;
    void (*on_memory)(void *self, const tide_memory_event *event);
    void (*on_scope)(void *self, const tide_scope_event *event); ///< optional; NULL: not interested
    bool no_time; ///< the observer does not look at t_ns: reading the clock would cost more than all the rest
};

/// A number for a block of an allocator of your own: one that no other block of the process has, tidemark's included.
/// Never 0.
uint64_t tide_block_new_id(void);

#ifdef __cplusplus
}
#endif
#endif
