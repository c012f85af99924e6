// SPDX-License-Identifier: MIT
//
// pytorch, inside: segments and their chunks are those of stream_caching (stream_caching_internal.h), which follow
// other rules here. Included by pytorch*.c. All functions are called with the lock held.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_PYTORCH_INTERNAL_H
#define TIDE_CORE_MEMORY_ALLOCATORS_PYTORCH_INTERNAL_H

#include "core/memory/allocators/pytorch.h"
#include "core/memory/allocators/stream_caching_internal.h"

/// Free chunks of a stream.
typedef struct tide__pt_stream {
    tide__free_list list; ///< first
    tide_stream_id id;
    struct tide__pt_stream *next;
} tide__pt_stream;

typedef struct tide__pt {
    pthread_mutex_t lock;
    tide_device device;
    tide_pytorch_options options;
    tide_allocator_listener listener;
    tide__pt_stream *streams; ///< the one asked for last is the first
    tide__segment *segments;  ///< in the order they were taken
    tide__segment *last;      ///< of these
    tide__segment *cursor;    ///< where the place before was found; NULL: nowhere
    tide__chunk *spare;       ///< headers, by `after`
    size_t n_spare;
    uint64_t n_lookups[2]; ///< of free chunks, small [0] and large [1]: the age of a chunk is counted in them
    const char *place;     ///< of the next request; NULL: anywhere
    size_t place_bytes;
    tide_allocator_stats stats;
} tide__pt;

/// What is asked for, in the allocator's own sizes.
typedef struct tide__pt_plan {
    size_t need_bytes;
    bool large;
    tide__free_list *list;
} tide__pt_plan;

// pytorch_chunks.c
/// At least `n` headers are there. False: no host memory.
bool tide__pt_make_spare(tide__pt *a, size_t n);
tide__chunk *tide__pt_new_chunk(tide__pt *a);
void tide__pt_drop_chunk(tide__pt *a, tide__chunk *p);
/// The free chunk that the request gets; it stays free. NULL: none that it may have.
tide__chunk *tide__pt_find(tide__pt *a, const tide__pt_plan *plan);
/// A chunk that is on no list becomes free, together with its free neighbours. @return what it became
tide__chunk *tide__pt_put(tide__pt *a, tide__chunk *p);
/// Off its list.
void tide__pt_take(tide__chunk *p);
/// Cut `p`, which is on no list, at `bytes`. @return the second part, in the state of the first
tide__chunk *tide__pt_cut(tide__pt *a, tide__chunk *p, size_t bytes);
/// `p` takes in what follows it; neither is on a list.
void tide__pt_absorb(tide__pt *a, tide__chunk *p);
/// Take the free chunk for the request, and cut off what the rule of splitting leaves over.
void tide__pt_give_out(tide__pt *a, tide__chunk *p, size_t need_bytes);

void tide__pt_link(tide__pt *a, tide__segment *seg);
void tide__pt_unlink(tide__pt *a, tide__segment *seg);
void tide__pt_count_taken(tide__pt *a, uint64_t id, const void *at, size_t bytes);
void tide__pt_count_given(tide__pt *a, uint64_t id, const void *at, size_t bytes);

// pytorch_segments.c
/// A free chunk that holds the request, of memory that the device gave just now. TIDE_ERR_NOMEM of the device or of the
/// host.
tide_status tide__pt_grow(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out, tide_error *err) TIDE_NODISCARD;
/// Old chunks go back while more is taken than the threshold says.
void tide__pt_collect(tide__pt *a);
/// Chunks too large to be cut go back, of this stream, until the request has room. False: there are not enough.
bool tide__pt_release_oversize(tide__pt *a, const tide__pt_plan *plan);
/// All that is free as a whole segment, and whole pages of ranges.
void tide__pt_release_free(tide__pt *a);
/// All segments, whatever is in them.
void tide__pt_release_all(tide__pt *a);
tide_status tide__pt_adopt(tide__pt *a, tide__free_list *list, void *address, size_t size_bytes,
                           tide_error *err) TIDE_NODISCARD;
/// The chunk that `bytes` at `at` lie in, if it is free. NULL: none.
tide__chunk *tide__pt_free_at(tide__pt *a, const char *at, size_t bytes);

// pytorch_ranges.c: expandable segments
tide_status tide__pt_range_grow(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out,
                                tide_error *err) TIDE_NODISCARD;
/// Free pages of the range go back, and the range with its last one: then it is off the list and gone.
void tide__pt_range_shrink(tide__pt *a, tide__segment *seg);
/// As tide_pytorch_adopt_range.
tide_status tide__pt_range_adopt(tide__pt *a, tide__free_list *list, const tide_pytorch_part *parts, size_t n,
                                 bool is_small, tide_error *err) TIDE_NODISCARD;
/// The range itself; it is off the list.
void tide__pt_range_free(tide__pt *a, tide__segment *seg);

#endif
