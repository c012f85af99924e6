// SPDX-License-Identifier: MIT
//
// pages: memory given back to the system by whole pages while its owner still has the addresses.
#ifndef TIDE_CORE_BASE_PAGES_H
#define TIDE_CORE_BASE_PAGES_H

#include <stddef.h>

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

#ifdef __cplusplus
}
#endif
#endif
