// SPDX-License-Identifier: MIT
//
// The allocators of the house, one constructor each. All return one reference, owned by the caller. Those that another
// program needs are public (tidemark/memory.h): arena, paged, limit, instrumented, and the rest by name.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_ALLOCATORS_H
#define TIDE_CORE_MEMORY_ALLOCATORS_ALLOCATORS_H

#include "core/base/pages.h"
#include "core/memory/block.h"
#include "core/memory/observer.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- allocators that own memory ----

/// "cpu": aligned host memory straight from the system; at least 64-byte aligned (LT-22).
tide_status tide_cpu_allocator_create(tide_allocator **out, tide_error *err) TIDE_NODISCARD;
/// The same with a minimum alignment of 64 or 256; another is TIDE_ERR_INVALID.
tide_status tide_cpu_allocator_create_aligned(size_t min_align_bytes, tide_allocator **out,
                                              tide_error *err) TIDE_NODISCARD;

/// "device": memory straight from a device's own calls, nothing kept: the plain allocator of any backend.
tide_status tide_device_allocator_create(tide_device device, tide_allocator **out, tide_error *err) TIDE_NODISCARD;

typedef enum tide_size_classes {
    TIDE_SIZES_POW2,  ///< powers of two at every size: up to half of a block is waste
    TIDE_SIZES_STEPS, ///< powers of two to 1 MiB, eighths of one to 64 MiB, then steps of 2 MiB: waste at most 12.5 %
} tide_size_classes;
/// "cpu_caching": buckets that keep freed blocks (LT-23, LT-24). tide_cpu_caching_allocator_create: powers of two.
tide_status tide_cpu_caching_allocator_create(tide_allocator **out, tide_error *err) TIDE_NODISCARD;
tide_status tide_cpu_caching_allocator_create_sized(tide_size_classes sizes, tide_allocator **out,
                                                    tide_error *err) TIDE_NODISCARD;
/// What a block of `size_bytes` takes in that scheme; 0 when none is large enough. Pure.
size_t tide_size_class_bytes(tide_size_classes sizes, size_t size_bytes);

/// The capacity of an arena (LT-28) becomes at least `capacity_bytes`: a new block, the old one given back.
/// TIDE_ERR_BUSY while memory is out or the cursor is not at 0; TIDE_ERR_INVALID when `a` is no arena. Blocks of an
/// arena are not simple. Under AddressSanitizer what is not given out is off limits, and stale use after a reset traps;
/// in debug builds a reset also poisons the bytes (LT-37).
tide_status tide_arena_reserve(tide_allocator *a, size_t capacity_bytes, tide_error *err) TIDE_NODISCARD;

/**
 * "stream_caching": segments from a device, split and merged, freed blocks kept by stream; a block that other streams
 * use is kept back until their work is done. "pinned": the same over page-locked host memory of that device.
 *
 * The rules are in stream_caching.c's head comment.
 */
typedef struct tide_stream_caching_options {
    /// Planted fault for tests: give freed blocks out at once, whatever other streams do with them.
    bool unsafe_no_deferral;
} tide_stream_caching_options;
tide_status tide_stream_caching_create(tide_device device, const tide_stream_caching_options *opt, tide_allocator **out,
                                       tide_error *err) TIDE_NODISCARD;
/// "cuda_vmm": the same over addresses that are reserved at once and get memory in units, and lose it in units where
/// they are idle (stream_caching_ranges.c). TIDE_ERR_NOT_IMPLEMENTED where the device cannot map memory.
tide_status tide_stream_vmm_create(tide_device device, const tide_stream_caching_options *opt, tide_allocator **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Memory allocated on `stream` from now on comes from a private pool, until tide_stream_caching_end_pool: for work
/// that is captured and will be launched again. *pool is never 0.
tide_status tide_stream_caching_begin_pool(tide_allocator *a, tide_stream_id stream, uint64_t *pool,
                                           tide_error *err) TIDE_NODISCARD;
tide_status tide_stream_caching_end_pool(tide_allocator *a, uint64_t pool, tide_error *err) TIDE_NODISCARD;
/// The last captured graph that uses the pool is gone, and what it launched is done: its idle segments serve all
/// streams again, its live blocks as they are freed.
tide_status tide_stream_caching_release_pool(tide_allocator *a, uint64_t pool, tide_error *err) TIDE_NODISCARD;

/**
 * "cuda_async": the pool that the driver of `device` keeps itself, in the order of streams. free_completed is told at
 * the release, from when on the driver orders it. The head comment of stream_pool.c says what the numbers mean.
 *
 * @param opt  NULL: keeps what is freed
 * @return TIDE_ERR_NOT_IMPLEMENTED where the device has no such pool; what the device returns; TIDE_ERR_NOMEM
 */
typedef struct tide_stream_pool_options {
    bool keep_none; ///< the pool gives back what is not in use when the device is synchronised
    /// Planted fault for tests: free in the order of the allocating stream alone, whatever other streams do.
    bool unsafe_no_deferral;
} tide_stream_pool_options;
tide_status tide_stream_pool_create(tide_device device, const tide_stream_pool_options *opt, tide_allocator **out,
                                    tide_error *err) TIDE_NODISCARD;

/**
 * "pinned": host memory for copies to and from `device` (LT-27). Page-locked where the device has such memory, aligned
 * host memory otherwise: props.page_locked says which. The allocator's own device is the CPU.
 */
tide_status tide_pinned_create(tide_device device, tide_allocator **out, tide_error *err) TIDE_NODISCARD;

/// What the next request of this thread to an allocator "cpu" gets in place of memory of the system, if it asks for
/// just as many bytes (rounded up to its alignment) and no stricter alignment than a page: the bytes stay as they are,
/// and change hands without a copy. Borrowed until it is taken; NULL, or any request: there is no offer any more.
void tide_cpu_offer(tide_pages *pages);

/// "mapped": parts of files that are mapped already, by tide_mapped_block_create alone: any other request is
/// TIDE_ERR_INVALID.
tide_status tide_mapped_create(tide_allocator **out, tide_error *err) TIDE_NODISCARD;
/// A read-only block over [data, data + size_bytes) of `file`, a mapped file, which it holds. @param a  such an
/// allocator, or one around it
tide_status tide_mapped_block_create(tide_allocator *a, tide_block *file, const void *data, size_t size_bytes,
                                     size_t align_bytes, tide_memory_kind kind, const char *tag, tide_block **out,
                                     tide_error *err) TIDE_NODISCARD;

/**
 * "caller": blocks out of [memory, memory + size_bytes), which its owner keeps until the last block is given back. It
 * takes no memory. Like an arena: a cursor that only moves up, and a reset.
 *
 * @param memory       borrowed; on the host; NULL with 0 bytes only
 * @param align_bytes  of every block at the least, a power of two
 * @return TIDE_ERR_INVALID for another alignment, NULL, or memory that would end past the last address; TIDE_ERR_NOMEM
 */
tide_status tide_caller_create(void *memory, size_t size_bytes, size_t align_bytes, tide_allocator **out,
                               tide_error *err) TIDE_NODISCARD;

// ---- by name, on a device ----

/**
 * Make an allocator of `device` from a text. On the CPU: tide_allocator_create_by_name. On any other device:
 *
 *     cuda                        the plain one: each block a call to the device, nothing kept
 *     cuda_caching                stream_caching over the device's memory
 *     cuda_async[:keep=all|none]  the driver's own pool; what it keeps when the device is synchronised
 *     cuda_vmm                    stream_caching over ranges that get and lose memory in units
 *     pinned                      page-locked host memory for copies to and from the device
 *
 * and of the simulated device (core/device/sim_device.h) cuda, cuda_caching, cuda_vmm and
 *
 *     pytorch[:OPTION,…]          what PyTorch's caching allocator would take (pytorch.h)
 *
 * @param out  one reference, owned: tide_allocator_unref
 * @return TIDE_ERR_INVALID for another name or option, with the list as hint, and for an index that the device's type
 *         does not have; TIDE_ERR_NOT_IMPLEMENTED where the device is not there, or lacks what the allocator is made
 *         over; TIDE_ERR_NOMEM
 */
tide_status tide_allocator_create_on(tide_device device, const char *name, tide_allocator **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Number `i` of all texts that it takes for a device of that type, whether this one has what they need or not; NULL
/// past the end. Static text.
const char *tide_allocator_name_on(tide_device device, size_t i);

// ---- allocators around another one ----

/// One budget over several allocators: `shared` limits share what `first` has left. TIDE_ERR_INVALID when `first` is no
/// limit.
tide_status tide_limit_create_shared(tide_allocator *inner, tide_allocator *first, tide_allocator **out,
                                     tide_error *err) TIDE_NODISCARD;

/// "fail_nth": lets `n` allocations through and fails the one after them with TIDE_ERR_NOMEM, once; a negative n fails
/// none. For tests.
tide_status tide_fail_nth_create(tide_allocator *inner, int64_t n, tide_allocator **out,
                                 tide_error *err) TIDE_NODISCARD;
/// Plant anew, counting from now. TIDE_ERR_INVALID when `a` is no fail_nth.
tide_status tide_fail_nth_arm(tide_allocator *a, int64_t n, tide_error *err) TIDE_NODISCARD;

/// "poison": fills host memory of `inner` with the poison pattern when it is given out and again when it comes back,
/// and holds a red zone of 64 B at both ends of each block; check() and every release say which block was written
/// outside its bounds. TIDE_ERR_INVALID for memory that is not the host's.
tide_status tide_poison_create(tide_allocator *inner, tide_allocator **out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
