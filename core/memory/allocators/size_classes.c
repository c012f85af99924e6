// SPDX-License-Identifier: MIT
//
// size classes above 1 MiB, and the public question. See size_classes.h.
#include "core/memory/allocators/size_classes.h"

#include "core/base/assert.h"
#include "core/base/checked.h"

_Static_assert(sizeof(size_t) == 8, "the classes are laid out for 64-bit sizes");

enum { STEPS_LOG2 = 3, TOP_LOG2 = 62, HUGE_STEP_BYTES = 2 << 20 };

/// The last bucket is never served without a look at the size.
static const tide__size_class none = {.bytes = 0, .index = TIDE__CLASS_HUGE};

tide__size_class tide__size_class_of_large(tide_size_classes sizes, size_t size_bytes) {
    TIDE_ASSERT(size_bytes > TIDE__CLASS_SMALL_BYTES);
    const unsigned log2 = 63 - (unsigned)__builtin_clzll(size_bytes - 1); // 2^log2 < size <= 2^(log2 + 1)
    if (sizes == TIDE_SIZES_POW2) {
        if (log2 >= TOP_LOG2) return none;
        return (tide__size_class){.bytes = (size_t)2 << log2, .index = log2 + 1 - TIDE__CLASS_MIN_LOG2};
    }
    uint64_t bytes;
    if (log2 >= TIDE__CLASS_HUGE_LOG2) {
        if (!tide_align_up(size_bytes, HUGE_STEP_BYTES, &bytes) || bytes > PTRDIFF_MAX) return none;
        return (tide__size_class){.bytes = (size_t)bytes, .index = TIDE__CLASS_HUGE};
    }
    const unsigned step_log2 = log2 - STEPS_LOG2;
    const size_t n_steps = (size_bytes - 1 - ((size_t)1 << log2)) >> step_log2; // full steps below the last byte: 0 … 7
    TIDE_ASSERT(n_steps < 1u << STEPS_LOG2);
    return (tide__size_class){.bytes = ((size_t)1 << log2) + ((n_steps + 1) << step_log2),
                              .index = TIDE__CLASS_FINE_LOG2 - TIDE__CLASS_MIN_LOG2 + 1 +
                                       ((log2 - TIDE__CLASS_FINE_LOG2) << STEPS_LOG2) + (unsigned)n_steps};
}

size_t tide__size_class_bytes_at(tide_size_classes sizes, unsigned index) {
    TIDE_ASSERT(index < TIDE__N_CLASSES);
    const unsigned first_fine = TIDE__CLASS_FINE_LOG2 - TIDE__CLASS_MIN_LOG2 + 1;
    if (index == TIDE__CLASS_HUGE) return 0;
    if (sizes == TIDE_SIZES_POW2 || index < first_fine) return (size_t)1 << (index + TIDE__CLASS_MIN_LOG2);
    const unsigned log2 = TIDE__CLASS_FINE_LOG2 + ((index - first_fine) >> STEPS_LOG2);
    const size_t n_steps = ((index - first_fine) & ((1 << STEPS_LOG2) - 1)) + 1;
    return ((size_t)1 << log2) + (n_steps << (log2 - STEPS_LOG2));
}

size_t tide_size_class_bytes(tide_size_classes sizes, size_t size_bytes) {
    return tide__size_class_of(sizes, size_bytes > 0 ? size_bytes : 1).bytes;
}
