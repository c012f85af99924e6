// SPDX-License-Identifier: MIT
//
// host_alloc: counted memory for our own bookkeeping. See host_alloc.h.
#include "core/base/host_alloc.h"

#include <stdatomic.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"

enum { HEADER_BYTES = 16 }; // keeps the user pointer at malloc's own alignment

static _Atomic uint64_t live_bytes, peak_bytes, n_allocs, n_frees, n_live;
static _Atomic int64_t fail_after = -1;

static tide_host_source source; ///< take NULL: malloc and its family

void tide_host_set_source(const tide_host_source *from) {
    TIDE_ASSERT(atomic_load(&n_live) == 0); // else a block goes back to another source than it came from
    source = from != NULL ? *from : (tide_host_source){0};
}

static void *take(size_t bytes, bool is_zero) {
    if (source.take == NULL) return is_zero ? calloc(1, bytes) : malloc(bytes);
    void *block = source.take(source.ctx, bytes);
    if (block != NULL && is_zero) memset(block, 0, bytes);
    return block;
}

static void *resize(void *block, size_t bytes) {
    return source.take == NULL ? realloc(block, bytes) : source.resize(source.ctx, block, bytes);
}

static void give_back(void *block) {
    if (source.take == NULL)
        free(block);
    else
        source.give_back(source.ctx, block);
}

static bool planted_failure(void) {
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) return false;
    return atomic_fetch_sub(&fail_after, 1) == 0;
}

static void count_in(size_t size_bytes) {
    const uint64_t live = atomic_fetch_add(&live_bytes, size_bytes) + size_bytes;
    uint64_t peak = atomic_load(&peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live)) {
    }
    atomic_fetch_add(&n_allocs, 1);
    atomic_fetch_add(&n_live, 1);
}

static void count_out(size_t size_bytes) {
    const uint64_t live = atomic_fetch_sub(&live_bytes, size_bytes), n = atomic_fetch_sub(&n_live, 1);
    TIDE_ASSERT(live >= size_bytes && n > 0); // else a header was written over, or freed before
    atomic_fetch_add(&n_frees, 1);
}

static size_t *header_of(void *ptr) { return (size_t *)(void *)((char *)ptr - HEADER_BYTES); }

static void *host_alloc(size_t size_bytes, bool is_zero) {
    size_t total;
    if (!tide_add_size(size_bytes, HEADER_BYTES, &total) || planted_failure()) return NULL;
    char *raw = take(total, is_zero);
    if (raw == NULL) return NULL;
    void *ptr = raw + HEADER_BYTES;
    *header_of(ptr) = size_bytes;
    count_in(size_bytes);
    return ptr;
}

void *tide_host_alloc(size_t size_bytes) { return host_alloc(size_bytes, false); }

void *tide_host_calloc(size_t n, size_t size_bytes) {
    size_t total;
    if (!tide_mul_size(n, size_bytes, &total)) return NULL;
    // Pages that come from the system are zero: megabytes of which little is used are not touched.
    return host_alloc(total, true);
}

void *tide_host_realloc(void *ptr, size_t size_bytes) {
    if (ptr == NULL) return tide_host_alloc(size_bytes);
    size_t total;
    if (!tide_add_size(size_bytes, HEADER_BYTES, &total) || planted_failure()) return NULL;
    const size_t old_bytes = *header_of(ptr);
    char *raw = resize(header_of(ptr), total);
    if (raw == NULL) return NULL;
    void *fresh = raw + HEADER_BYTES;
    *header_of(fresh) = size_bytes;
    count_out(old_bytes);
    count_in(size_bytes);
    return fresh;
}

char *tide_host_strndup(const char *text, size_t n) {
    size_t room;
    if (!tide_add_size(n, 1, &room)) return NULL;
    char *copy = tide_host_alloc(room);
    if (copy == NULL) return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

char *tide_host_strdup(const char *text) { return tide_host_strndup(text, strlen(text)); }

void tide_host_free(void *ptr) {
    if (ptr == NULL) return;
    count_out(*header_of(ptr));
    give_back(header_of(ptr));
}

tide_status tide_host_grow(void *array, size_t *cap, size_t need, size_t elem_bytes) {
    if (need <= *cap) return TIDE_OK;
    TIDE_ASSERT(elem_bytes > 0);
    size_t fresh_cap = *cap < 8 ? 8 : *cap;
    while (fresh_cap < need) {
        if (!tide_mul_size(fresh_cap, 2, &fresh_cap)) return TIDE_ERR_NOMEM;
    }
    size_t bytes;
    if (!tide_mul_size(fresh_cap, elem_bytes, &bytes)) return TIDE_ERR_NOMEM;
    void *old;
    memcpy(&old, array, sizeof old); // `array` is a pointer to some T*; read it without naming T
    void *fresh = tide_host_realloc(old, bytes);
    if (fresh == NULL) return TIDE_ERR_NOMEM;
    memcpy(array, &fresh, sizeof fresh);
    *cap = fresh_cap;
    return TIDE_OK;
}

static tide_status no_memory(tide_error *err, const char *file, int line, const char *fmt, va_list ap) {
    if (err == NULL) return TIDE_ERR_NOMEM;
    char what[sizeof err->msg];
    vsnprintf(what, sizeof what, fmt, ap);
    return tide_fail_at(err, TIDE_ERR_NOMEM, file, line, "no memory %s", what);
}

tide_status tide_no_memory_at(tide_error *err, const char *file, int line, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = no_memory(err, file, line, fmt, ap);
    va_end(ap);
    return st;
}

tide_status tide_host_new_at(void *out, size_t n, size_t elem_bytes, tide_error *err, const char *file, int line,
                             const char *fmt, ...) {
    void *fresh = tide_host_calloc(n, elem_bytes);
    memcpy(out, &fresh, sizeof fresh); // `out` is a pointer to some T*; written without naming T
    if (fresh != NULL) return TIDE_OK;
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = no_memory(err, file, line, fmt, ap);
    va_end(ap);
    return st;
}

tide_status tide_host_grow_at(void *array, size_t *cap, size_t need, size_t elem_bytes, tide_error *err,
                              const char *file, int line, const char *fmt, ...) {
    if (tide_host_grow(array, cap, need, elem_bytes) == TIDE_OK) return TIDE_OK;
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = no_memory(err, file, line, fmt, ap);
    va_end(ap);
    return st;
}

tide_status tide_host_copy_at(char **out, const char *text, tide_error *err, const char *file, int line,
                              const char *fmt, ...) {
    *out = tide_host_strdup(text);
    if (*out != NULL) return TIDE_OK;
    va_list ap;
    va_start(ap, fmt);
    const tide_status st = no_memory(err, file, line, fmt, ap);
    va_end(ap);
    return st;
}

void tide_host_get_stats(tide_host_stats *out) {
    *out = (tide_host_stats){.live_bytes = atomic_load(&live_bytes),
                             .peak_bytes = atomic_load(&peak_bytes),
                             .n_allocs = atomic_load(&n_allocs),
                             .n_frees = atomic_load(&n_frees),
                             .n_live = atomic_load(&n_live)};
}

void tide_host_reset_peak(void) {
    atomic_store(&peak_bytes, atomic_load(&live_bytes));
    atomic_store(&n_allocs, 0);
    atomic_store(&n_frees, 0);
}

void tide_host_fail_after(int64_t n) { atomic_store(&fail_after, n); }

void tide_host_return_large(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // a value of ours also ends its growing with what is freed
#endif
}
