// SPDX-License-Identifier: MIT
//
// Memory kinds: how many there are, where each is legal, how memory of it is aligned. The key of the allocator registry
// is (device, kind). The list is public (tidemark/memory.h).
#ifndef TIDE_CORE_MEMORY_KIND_H
#define TIDE_CORE_MEMORY_KIND_H

#include "core/device/device.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How many kinds there are; kind.c proves that their values are 0 … TIDE_N_KINDS-1.
enum {
#define XX(name, value, text, place, what) +1
    TIDE_N_KINDS = 0 TIDE_MEMORY_KIND_MAP(XX)
#undef XX
};

/// What the kind is for, one phrase.
const char *tide_memory_kind_purpose(tide_memory_kind kind);
/// By printable name, case ignored. @return TIDE_ERR_INVALID when no kind has it
tide_status tide_memory_kind_parse(const char *text, tide_memory_kind *out, tide_error *err) TIDE_NODISCARD;
/// Host kinds are legal on the CPU device only (LT-18): TIDE_ERR_INVALID with the reason otherwise.
tide_status tide_memory_kind_check(tide_memory_kind kind, tide_device device, tide_error *err) TIDE_NODISCARD;
/// The strictest of the rules that hold for (device, kind), in bytes, a power of two.
size_t tide_memory_kind_alignment(tide_memory_kind kind, tide_device device);

#ifdef __cplusplus
}
#endif
#endif
