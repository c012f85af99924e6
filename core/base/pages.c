// SPDX-License-Identifier: MIT
//
// Giving pages back. See pages.h.
#include "core/base/pages.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
