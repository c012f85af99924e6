// SPDX-License-Identifier: MIT
//
// Giving pages back, and handing them on. See pages.h.
#include "core/base/pages.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { PIECE_BYTES = 4 << 20 }; ///< copied before its pages are dropped: what both together take too much at most

void tide_pages_drop(const void *data, size_t size_bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + size_bytes) / page * page;
    if (begin >= end) return;
    (void)madvise((void *)begin, end - begin, MADV_DONTNEED); // NOLINT: an address
}

void tide_copy_dropping(void *dst, const void *src, size_t size_bytes) {
    const char *const from = src;
    size_t dropped = 0; // up to here
    for (size_t done = 0; done < size_bytes;) {
        const size_t n = size_bytes - done < PIECE_BYTES ? size_bytes - done : PIECE_BYTES;
        memcpy((char *)dst + done, from + done, n);
        done += n;
        // A page that a piece ends in is dropped with the next piece.
        tide_pages_drop(from + dropped, done - dropped);
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        const size_t over = (size_t)(((uintptr_t)from + done) % page);
        if (done - dropped > over) dropped = done - over;
    }
}

// ---- pages that are handed on ----

tide_pages *tide_pages_create(size_t size_bytes) {
    TIDE_ASSERT(size_bytes > 0);
    tide_pages *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    void *data = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        tide_host_free(p);
        return NULL;
    }
    p->data = data;
    p->size_bytes = size_bytes;
    p->refs = 1;
    return p;
}

tide_pages *tide_pages_ref(tide_pages *pages) {
    const uint32_t before = __atomic_fetch_add(&pages->refs, 1, __ATOMIC_RELAXED);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return pages;
}

void tide_pages_unref(void *pages) {
    tide_pages *p = pages;
    if (p == NULL) return;
    const uint32_t before = __atomic_fetch_sub(&p->refs, 1, __ATOMIC_ACQ_REL);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    (void)munmap(p->data, p->size_bytes);
    tide_host_free(p);
}
