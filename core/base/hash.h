// SPDX-License-Identifier: MIT
//
// hash: FNV-1a, 64 bits (Fowler, Noll, Vo). Start with TIDE_HASH_START and add what is to be hashed, in order.
#ifndef TIDE_CORE_BASE_HASH_H
#define TIDE_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TIDE_HASH_START UINT64_C(0xCBF29CE484222325)

static inline uint64_t tide_hash_bytes(uint64_t hash, const void *data, size_t n_bytes) {
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ p[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/// The bytes of a number in the order in which this machine keeps them.
static inline uint64_t tide_hash_u64(uint64_t hash, uint64_t x) { return tide_hash_bytes(hash, &x, sizeof x); }

/// A text without its NUL.
static inline uint64_t tide_hash_text(uint64_t hash, const char *text) {
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return hash;
}

#endif
