// SPDX-License-Identifier: MIT
//
// What lifetimes.c and memory_plan.c share; private to core/runtime.
#ifndef TIDE_CORE_RUNTIME_MEMORY_PLAN_INTERNAL_H
#define TIDE_CORE_RUNTIME_MEMORY_PLAN_INTERNAL_H

#include "core/runtime/memory_plan.h"

/// *(T **)out becomes a copy of the n elements at `from`; left alone where there is nothing. @return false without
/// memory
bool tide__copy_array(void *out, const void *from, size_t n, size_t elem_bytes);

#endif
