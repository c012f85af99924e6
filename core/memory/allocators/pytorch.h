// SPDX-License-Identifier: MIT
//
// pytorch: what PyTorch's caching allocator makes of a sequence of requests, with its settings, on the simulated device
// alone: it gives addresses without memory. pytorch.c's head comment has the rules.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_PYTORCH_H
#define TIDE_CORE_MEMORY_ALLOCATORS_PYTORCH_H

#include "core/base/text.h"
#include "core/device/device_ops.h"
#include "core/memory/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_PYTORCH_ROUNDUPS = 16 };

/// All zero: as PyTorch is without PYTORCH_CUDA_ALLOC_CONF.
typedef struct tide_pytorch_options {
    uint64_t max_split_bytes;                ///< blocks of this size and above are never cut; 0: no limit. Above 20 MiB
    uint32_t roundup[TIDE_PYTORCH_ROUNDUPS]; ///< steps between two powers of two that requests are rounded up to, [i]
                                             ///< of 2^i MiB and more, [0] of all below 2 MiB; 0, 1: steps of 512 B
    double gc_threshold; ///< share of the device's memory above which old blocks are given back; 0: never
    bool expandable_segments;
} tide_pytorch_options;

/**
 * Options from a text, any of these in any order, with commas between them; "" has none:
 *
 *     max_split_size=512MiB,roundup_power2_divisions=4,garbage_collection_threshold=0.8,expandable_segments
 *     roundup_power2_divisions=[256:1,512:2,>:8]    by size in MiB, as PyTorch reads such a list
 *
 * @return TIDE_ERR_INVALID for another text or a value that PyTorch refuses, with what there is as hint
 */
tide_status tide_pytorch_options_parse(const char *text, tide_pytorch_options *out, tide_error *err) TIDE_NODISCARD;
/// How much of `text` is one list of options: what stands behind a comma is one of them, or another allocator. The
/// first is taken for an option whatever it is.
size_t tide_pytorch_options_len(const char *text);
/// The text that tide_pytorch_options_parse reads as these; "" none.
void tide_pytorch_options_text(const tide_pytorch_options *opt, tide_text *out);
/// Whether PyTorch takes it for roundup_power2_divisions: a power of two, or 0.
bool tide_pytorch_takes_divisions(uint64_t n);
/// What a request of `bytes` is rounded up to. Pure.
uint64_t tide_pytorch_round(const tide_pytorch_options *opt, uint64_t bytes);

/// What a request of `need_bytes` (rounded) holds of a free chunk of `chunk_bytes`, at least as many: what is left over
/// stays with it where it is too little to be cut off. `is_large`: of the large pool. Pure.
uint64_t tide_pytorch_held(const tide_pytorch_options *opt, uint64_t chunk_bytes, uint64_t need_bytes, bool is_large);

/// @param opt  NULL: none set. @return TIDE_ERR_NOT_IMPLEMENTED for a device that is not simulated; TIDE_ERR_NOMEM
tide_status tide_pytorch_create(tide_device device, const tide_pytorch_options *opt, tide_allocator **out,
                                tide_error *err) TIDE_NODISCARD;
bool tide_pytorch_is(const tide_allocator *a);

// What was there before the first request. `a` is such an allocator.

/// A segment that the recorded program had, at its address: empty, of `stream`. What tide_sim_device_take_at returns.
tide_status tide_pytorch_adopt(tide_allocator *a, void *address, size_t size_bytes, tide_stream_id stream,
                               tide_error *err) TIDE_NODISCARD;
/// Pages of an expandable segment.
typedef struct tide_pytorch_part {
    void *address;
    size_t bytes;
} tide_pytorch_part;
/// The expandable segment that the recorded program had of `stream` and one pool, as far as it had memory: `parts` [n],
/// by rising address. It begins with the first of them and may grow up to where another range was adopted.
/// TIDE_ERR_INVALID for parts that are no whole pages of one range; TIDE_ERR_NOMEM of the device or the host.
tide_status tide_pytorch_adopt_range(tide_allocator *a, const tide_pytorch_part *parts, size_t n, bool is_small,
                                     tide_stream_id stream, tide_error *err) TIDE_NODISCARD;
/// The next request gets the `held_bytes` at `address` if they lie free in what was adopted; if not it is served
/// like any other. Fast for addresses that rise.
void tide_pytorch_place_next(tide_allocator *a, const void *address, size_t held_bytes);

#ifdef __cplusplus
}
#endif
#endif
