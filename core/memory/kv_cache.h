// SPDX-License-Identifier: MIT
//
// KV cache: sequences that grow token by token in pages of fixed size, each with a table of its pages; forks share
// them.
//
//     sequence A   table [ 3 | 0 | 5 ]     tokens 0…15 in page 3, 16…31 in page 0, 32… in page 5
//     fork of A    table [ 3 | 0 | 7 ]     page 5 was written by one of the two after the fork: copied into 7
//
// A page is a block of a "paged" allocator, of kind KVCache. Shared pages are counted by reference and copied when one
// of their sequences appends into them, so a fork costs no memory until then.
//
// Pages may be of any device: tokens are then copied by the device, in the order of the cache's stream.
#ifndef TIDE_CORE_MEMORY_KV_CACHE_H
#define TIDE_CORE_MEMORY_KV_CACHE_H

#include "core/base/text.h"
#include "core/memory/block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_kv_cache tide_kv_cache;
typedef uint32_t tide_kv_sequence; ///< from 0 on; numbers of freed sequences are given again

typedef struct tide_kv_cache_options {
    size_t token_bytes;     ///< of one token in one page: layers, heads and both K and V as the caller lays them out
    size_t tokens_per_page; ///< >= 1
    tide_stream_id stream;
    const char *tag; ///< copied into every block; may be NULL
} tide_kv_cache_options;

/**
 * A cache whose pages come from `pages` (referenced): a "paged" allocator, or one that wraps one, with pages of at
 * least tokens_per_page * token_bytes.
 *
 * @return TIDE_ERR_INVALID (zero sizes, pages too small for a page), TIDE_ERR_OVERFLOW, TIDE_ERR_NOMEM
 */
tide_status tide_kv_cache_create(tide_allocator *pages, const tide_kv_cache_options *opt, tide_kv_cache **out,
                                 tide_error *err) TIDE_NODISCARD;
/// Gives all pages back. Takes NULL.
void tide_kv_cache_destroy(tide_kv_cache *c);

/// An empty sequence. Not thread-safe: a cache belongs to one thread at a time.
tide_status tide_kv_cache_add(tide_kv_cache *c, tide_kv_sequence *out, tide_error *err) TIDE_NODISCARD;
/// A second sequence with the same tokens, sharing all pages.
tide_status tide_kv_cache_fork(tide_kv_cache *c, tide_kv_sequence from, tide_kv_sequence *out,
                               tide_error *err) TIDE_NODISCARD;
/**
 * Append `n_tokens` of token_bytes each from `data` (NULL: reserved, content undefined). Takes whole pages as they are
 * needed, and copies a shared last page first.
 *
 * @return TIDE_ERR_INVALID (no such sequence), what the allocator returns: the sequence is as it was then
 */
tide_status tide_kv_cache_append(tide_kv_cache *c, tide_kv_sequence s, const void *data, size_t n_tokens,
                                 tide_error *err) TIDE_NODISCARD;
/// Cut to the first `n_tokens`; pages that become empty are given back.
tide_status tide_kv_cache_truncate(tide_kv_cache *c, tide_kv_sequence s, size_t n_tokens,
                                   tide_error *err) TIDE_NODISCARD;
tide_status tide_kv_cache_free(tide_kv_cache *c, tide_kv_sequence s, tide_error *err) TIDE_NODISCARD;

size_t tide_kv_cache_n_tokens(const tide_kv_cache *c, tide_kv_sequence s); ///< 0 for none
/// Address of the bytes of one token on the cache's device, for reading; NULL outside the sequence.
const void *tide_kv_cache_token(const tide_kv_cache *c, tide_kv_sequence s, size_t token);
/// Copy tokens [first, first + n) one behind the other into `out`.
tide_status tide_kv_cache_gather(const tide_kv_cache *c, tide_kv_sequence s, size_t first, size_t n_tokens, void *out,
                                 tide_error *err) TIDE_NODISCARD;
/// The block table: numbers of the pages (block ids), `n_max` at most. @return how many there are
size_t tide_kv_cache_table(const tide_kv_cache *c, tide_kv_sequence s, uint64_t *page_ids, size_t n_max);

typedef struct tide_kv_cache_stats {
    size_t n_sequences;
    size_t n_pages;        ///< taken, shared ones once
    size_t n_shared_pages; ///< in more than one table
    uint64_t page_bytes;   ///< of one page: tokens_per_page * token_bytes (the allocator's numbers have its rounding)
    uint64_t taken_bytes;  ///< n_pages * page_bytes
    uint64_t used_bytes;   ///< of tokens in them, shared ones once
    uint64_t waste_bytes;  ///< taken - used: the unused ends of last pages
    uint64_t saved_bytes;  ///< what the tables would take without sharing, less what they take
    uint64_t n_copied;     ///< pages copied because a sharer appended
} tide_kv_cache_stats;
void tide_kv_cache_get_stats(const tide_kv_cache *c, tide_kv_cache_stats *out);
/// Walks all tables against references and numbers: TIDE_ERR_RUNTIME naming the first that does not fit.
tide_status tide_kv_cache_check(const tide_kv_cache *c, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
