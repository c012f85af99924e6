// SPDX-License-Identifier: MIT
//
// size classes: which bucket serves a request, and how large its blocks are. Used by cpu_caching.
//
//     powers of two      64   128   256  ...  1 MiB   2 MiB           4 MiB  ...  2^62
//     bucket              0     1     2        14      15              16          56
//
//     steps              64   128   256  ...  1 MiB   1.125  1.25 ... 2   2.25 ... 64 MiB   66   68 ...
//     bucket              0     1     2        14      15     16      22   23       62       |- none: by exact size
//
// Each doubling above 1 MiB has eight steps of an eighth of its lower end, so that a block is less than 12.5 % of that
// end too large.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_SIZE_CLASSES_H
#define TIDE_CORE_MEMORY_ALLOCATORS_SIZE_CLASSES_H

#include "core/memory/allocators/allocators.h"

enum {
    TIDE__CLASS_MIN_LOG2 = 6,
    TIDE__CLASS_FINE_LOG2 = 20, ///< above: steps
    TIDE__CLASS_HUGE_LOG2 = 26, ///< above: multiples of 2 MiB
    TIDE__N_CLASSES = 64,
    TIDE__CLASS_HUGE = 63, ///< blocks of several sizes
};

#define TIDE__CLASS_SMALL_BYTES ((size_t)1 << TIDE__CLASS_FINE_LOG2)

typedef struct tide__size_class {
    size_t bytes;   ///< of a block; 0: no class is large enough
    unsigned index; ///< of the bucket
} tide__size_class;

tide__size_class tide__size_class_of_large(tide_size_classes sizes, size_t size_bytes);

/// What the blocks of a bucket have; 0 for the last one, whose blocks differ.
size_t tide__size_class_bytes_at(tide_size_classes sizes, unsigned index);

/// Where both schemes are alike. 0 < size_bytes <= TIDE__CLASS_SMALL_BYTES.
static inline tide__size_class tide__size_class_of_small(size_t size_bytes) {
    const unsigned log2 = 64 - (unsigned)__builtin_clzll((size_bytes - 1) | 63);
    return (tide__size_class){.bytes = (size_t)1 << log2, .index = log2 - TIDE__CLASS_MIN_LOG2};
}

/// `size_bytes` > 0.
static inline tide__size_class tide__size_class_of(tide_size_classes sizes, size_t size_bytes) {
    return size_bytes <= TIDE__CLASS_SMALL_BYTES ? tide__size_class_of_small(size_bytes)
                                                 : tide__size_class_of_large(sizes, size_bytes);
}

#endif
