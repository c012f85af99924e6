// SPDX-License-Identifier: MIT
//
// Memory kinds: what a block is for. The key of the allocator registry is (device, kind).
#ifndef TIDE_CORE_MEMORY_KIND_H
#define TIDE_CORE_MEMORY_KIND_H

#include "core/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/// enum suffix, value (stable: trace files hold it), printable name, what it is for
#define TIDE_MEMORY_KIND_MAP(XX)                                                                                       \
    XX(DEFAULT, 0, "Default", "ordinary tensors: graph inputs and outputs")                                            \
    XX(PERSISTENT, 1, "Persistent", "weights: as long as the model")                                                   \
    XX(WORKSPACE, 2, "Workspace", "activations and kernel scratch of one run")                                         \
    XX(KV_CACHE, 3, "KVCache", "attention state that grows from run to run")                                           \
    XX(HOST_PINNED, 4, "HostPinned", "page-locked host memory for DMA")                                                \
    XX(HOST_PAGEABLE, 5, "HostPageable", "plain host memory")

typedef enum tide_memory_kind {
#define XX(name, value, text, what) TIDE_KIND_##name = (value),
    TIDE_MEMORY_KIND_MAP(XX)
#undef XX
} tide_memory_kind;

enum { TIDE_N_KINDS = 6 };

/// "Default", "Persistent", …; "kind ?" outside the list.
const char *tide_memory_kind_name(tide_memory_kind kind);
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
