// SPDX-License-Identifier: MIT
//
// host_alloc: where tidemark's own bookkeeping lives.
//
// Everything the tool needs for itself (graphs, plans, trace rows, names) comes through here and never from bare
// malloc, so that the profiler can leave itself out of what it measures, the tests can fail the n-th call, and
// our own peak is a figure we can print. Tensor data never comes from here: that is what core/memory is for.
//
// Memory of one call:
//
//     | size header (16 B) | user bytes ...            |
//     ^ from the system    ^ returned, 16-byte aligned
#ifndef TIDE_CORE_BASE_HOST_ALLOC_H
#define TIDE_CORE_BASE_HOST_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// All return NULL when there is no memory (or when a test planted a failure); `n * size` is overflow-checked.
/// Size 0 returns a pointer that may be freed and not read. Thread-safe.
void *tide_host_alloc(size_t size_bytes) TIDE_NODISCARD;
void *tide_host_calloc(size_t n, size_t size_bytes) TIDE_NODISCARD;
/// NULL `ptr` allocates; on failure the old block is untouched and still owned by the caller.
void *tide_host_realloc(void *ptr, size_t size_bytes) TIDE_NODISCARD;
char *tide_host_strdup(const char *text) TIDE_NODISCARD;
char *tide_host_strndup(const char *text, size_t n) TIDE_NODISCARD;
/// Takes NULL, cannot fail.
void tide_host_free(void *ptr);

/**
 * Make room for `need` elements in a growing array: doubles, keeps the content.
 *
 * @param array  in/out, NULL at first; owned by the caller, freed with tide_host_free
 * @param cap    in/out, elements there is room for
 * @return TIDE_OK, TIDE_ERR_NOMEM (array and cap unchanged)
 */
tide_status tide_host_grow(void *array, size_t *cap, size_t need, size_t elem_bytes) TIDE_NODISCARD;

// The same with a message: the one way to report that memory ran out. What follows `err` is printf's and ends
// the sentence "no memory ...": TIDE_TRY(TIDE_NEW(&rows, n, err, "for %zu rows of %s", n, path));

/// TIDE_ERR_NOMEM with its message in `err`: for memory that another library did not give.
#define TIDE_NO_MEMORY(err, ...) tide_no_memory_at((err), __FILE__, __LINE__, __VA_ARGS__)
/// `*out` (a T *) becomes an array of `n` zeroed elements, the caller's to tide_host_free; NULL without memory.
#define TIDE_NEW(out, n, err, ...) tide_host_new_at((out), (n), sizeof **(out), (err), __FILE__, __LINE__, __VA_ARGS__)
/// tide_host_grow of `*array` (a T *).
#define TIDE_GROW(array, cap, need, err, ...)                                                                          \
    tide_host_grow_at((array), (cap), (need), sizeof **(array), (err), __FILE__, __LINE__, __VA_ARGS__)
/// `*out` (a char *) becomes a copy of `text`, the caller's to tide_host_free; NULL without memory.
#define TIDE_COPY_TEXT(out, text, err, ...) tide_host_copy_at((out), (text), (err), __FILE__, __LINE__, __VA_ARGS__)

tide_status tide_no_memory_at(tide_error *err, const char *file, int line, const char *fmt, ...) TIDE_PRINTF(4, 5);
tide_status tide_host_new_at(void *out, size_t n, size_t elem_bytes, tide_error *err, const char *file, int line,
                             const char *fmt, ...) TIDE_PRINTF(7, 8) TIDE_NODISCARD;
tide_status tide_host_grow_at(void *array, size_t *cap, size_t need, size_t elem_bytes, tide_error *err,
                              const char *file, int line, const char *fmt, ...) TIDE_PRINTF(8, 9) TIDE_NODISCARD;
tide_status tide_host_copy_at(char **out, const char *text, tide_error *err, const char *file, int line,
                              const char *fmt, ...) TIDE_PRINTF(6, 7) TIDE_NODISCARD;

/// Where memory comes from; see tide_plan_memory in tidemark/plan.h.
typedef struct tide_host_source {
    void *(*take)(void *ctx, size_t bytes);
    void *(*resize)(void *ctx, void *block, size_t bytes);
    void (*give_back)(void *ctx, void *block);
    void *ctx;
} tide_host_source;
/// From now on memory comes from `source` (copied; NULL: malloc). Nothing may be held, and no other thread may
/// allocate.
void tide_host_set_source(const tide_host_source *source);

/// For a program that holds tables of many megabytes: from now on whatever is a megabyte or larger goes back to the
/// system when it is freed, where the C library can be told so. Left alone it keeps more and more of it.
void tide_host_return_large(void);

typedef struct tide_host_stats {
    uint64_t live_bytes; ///< user bytes held now
    uint64_t peak_bytes; ///< highest live_bytes since the last reset
    uint64_t n_allocs;   ///< calls that returned memory, reallocs included
    uint64_t n_frees;
    uint64_t n_live; ///< blocks held now
} tide_host_stats;

void tide_host_get_stats(tide_host_stats *out);
/// Set peak_bytes to live_bytes and the call counters to 0 (n_live and live_bytes stay).
void tide_host_reset_peak(void);
/// For tests: let `n` calls succeed and fail the one after them, once; a negative n plants nothing.
void tide_host_fail_after(int64_t n);

#ifdef __cplusplus
}
#endif
#endif
