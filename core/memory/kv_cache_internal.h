// SPDX-License-Identifier: MIT
//
// The inside of a KV cache, for kv_cache.c and its tests.
#ifndef TIDE_CORE_MEMORY_KV_CACHE_INTERNAL_H
#define TIDE_CORE_MEMORY_KV_CACHE_INTERNAL_H

#include "core/memory/kv_cache.h"

/// One page, in the list of all pages and in the tables of one or more sequences.
typedef struct tide__kv_page {
    struct tide__kv_page *next, *prev;
    tide_block *block; ///< owned
    size_t refs;       ///< tables it is in, > 0
    size_t seen;       ///< scratch of a walk over the tables
} tide__kv_page;

#define TIDE__KV_NO_NUMBER SIZE_MAX

/// n_pages is n_tokens / tokens_per_page, rounded up: a page that is in a table holds a token.
typedef struct tide__kv_table {
    tide__kv_page **pages; ///< [n_pages], room for cap
    size_t n_pages, cap;
    size_t n_tokens;
    bool used;        ///< false: the number is free
    size_t next_free; ///< of a free number: the next one; TIDE__KV_NO_NUMBER: the last
} tide__kv_table;

struct tide_kv_cache {
    tide_allocator *allocator; ///< referenced
    tide_device device;
    size_t token_bytes, tokens_per_page;
    size_t page_bytes; ///< their product
    tide_stream_id stream;
    char *tag; ///< owned; may be NULL
    tide__kv_table *tables;
    size_t n_tables, cap; ///< tables ever used, and room for more
    size_t first_free;    ///< the number freed last; TIDE__KV_NO_NUMBER: none is free
    tide__kv_page *pages; ///< all of them
    size_t n_pages;       ///< in that list
    size_t n_sequences;   ///< used tables
    uint64_t n_copied;
};

#endif
