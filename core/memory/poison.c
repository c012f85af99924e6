// SPDX-License-Identifier: MIT
//
// The poison pattern, and AddressSanitizer's own calls where the build has it. See poison.h.
#include "core/memory/poison.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

#if HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

void tide_poison_fill(void *data, size_t size_bytes) {
    if (data != NULL && size_bytes > 0) memset(data, TIDE_POISON_BYTE, size_bytes);
}

size_t tide_poison_find(const void *data, size_t size_bytes) {
    const unsigned char *p = data;
    if (p == NULL || size_bytes == 0) return size_bytes;
    // All alike is the usual case, and memcmp of the bytes with themselves one further is the fast way to see it.
    if (p[0] == TIDE_POISON_BYTE && memcmp(p, p + 1, size_bytes - 1) == 0) return size_bytes;
    size_t i = 0;
    while (i < size_bytes && p[i] == TIDE_POISON_BYTE) i++;
    return i;
}

bool tide_asan_active(void) { return HAS_ASAN; }

void tide_asan_poison(const void *data, size_t size_bytes) {
#if HAS_ASAN
    if (data != NULL && size_bytes > 0) __asan_poison_memory_region(data, size_bytes);
#else
    (void)data;
    (void)size_bytes;
#endif
}

void tide_asan_unpoison(const void *data, size_t size_bytes) {
#if HAS_ASAN
    if (data != NULL && size_bytes > 0) __asan_unpoison_memory_region(data, size_bytes);
#else
    (void)data;
    (void)size_bytes;
#endif
}
