// SPDX-License-Identifier: MIT
//
// poison: bytes that must not be read, and telling AddressSanitizer about memory that must not be touched.
//
// The pattern is 0xFF: a NaN in every float type, and no plausible index or size. Under AddressSanitizer the calls
// below mark memory inside arenas and pools as off limits, so that a stale pointer traps at the first touch; in other
// builds they are nothing.
#ifndef TIDE_CORE_MEMORY_POISON_H
#define TIDE_CORE_MEMORY_POISON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_POISON_BYTE = 0xFF };

/// Overwrite host memory with the pattern. NULL or 0 bytes: nothing.
void tide_poison_fill(void *data, size_t size_bytes);
/// Offset of the first byte that is not the pattern; `size_bytes` when all are.
size_t tide_poison_find(const void *data, size_t size_bytes);

/// True in builds with AddressSanitizer.
bool tide_asan_active(void);
/// Off limits from now on / usable again. Ends inside an 8-byte granule are rounded so that no usable byte is barred.
void tide_asan_poison(const void *data, size_t size_bytes);
void tide_asan_unpoison(const void *data, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
