// SPDX-License-Identifier: MIT
//
// pages: memory by whole pages: given back to the system piece by piece, or handed on as a whole.
#ifndef TIDE_CORE_BASE_PAGES_H
#define TIDE_CORE_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Drop the pages that lie wholly in [data, data + size_bytes). A private mapping of a file that was never written has
 * its bytes again when it is next read; any other memory reads as zeros from then on. Nothing happens where the system
 * does not do it. Thread-safe for threads that touch none of these bytes.
 */
void tide_pages_drop(const void *data, size_t size_bytes);

/**
 * Copy, and drop the pages of the source behind the copy, so that both together take hardly more than one of them.
 *
 * @param src  never read again, or a mapping of a file that was never written
 * No overlap.
 */
void tide_copy_dropping(void *dst, const void *src, size_t size_bytes);

/// Memory of whole pages, with several owners one after the other: it changes hands and is never copied.
typedef struct tide_pages {
    char *data; ///< zeroed
    size_t size_bytes;
    uint32_t refs; ///< changes under atomic operations
} tide_pages;
/// With one reference. @return NULL: the system has not so much. size_bytes > 0. Costs a call of the system, and a page
/// when it is first touched.
tide_pages *tide_pages_create(size_t size_bytes);
tide_pages *tide_pages_ref(tide_pages *pages);
/// Takes NULL; as tide_release_fn.
void tide_pages_unref(void *pages);

#ifdef __cplusplus
}
#endif
#endif
