// SPDX-License-Identifier: MIT
//
// Memory kinds: what a block is for. The key of the allocator registry is (device, kind).
#ifndef TIDE_CORE_MEMORY_KIND_H
#define TIDE_CORE_MEMORY_KIND_H

#include "core/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// A kind more: a header of your own that defines TIDE_EXTRA_MEMORY_KINDS(XX) with lines of the same form, values going
// on from the last one here, and -DTIDE_EXTRA_MEMORY_KINDS_H=\"my_kinds.h\" for the whole build (docs/extending.md).
#ifdef TIDE_EXTRA_MEMORY_KINDS_H
#include TIDE_EXTRA_MEMORY_KINDS_H
#else
#define TIDE_EXTRA_MEMORY_KINDS(XX)
#endif

/// enum suffix, value (stable: trace files hold it), printable name, where it is legal, what it is for
#define TIDE_MEMORY_KIND_MAP(XX)                                                                                       \
    XX(DEFAULT, 0, "Default", ANY_DEVICE, "ordinary tensors: graph inputs and outputs")                                \
    XX(PERSISTENT, 1, "Persistent", ANY_DEVICE, "weights: as long as the model")                                       \
    XX(WORKSPACE, 2, "Workspace", ANY_DEVICE, "activations and kernel scratch of one run")                             \
    XX(KV_CACHE, 3, "KVCache", ANY_DEVICE, "attention state that grows from run to run")                               \
    XX(HOST_PINNED, 4, "HostPinned", CPU_ONLY, "page-locked host memory for DMA")                                      \
    XX(HOST_PAGEABLE, 5, "HostPageable", CPU_ONLY, "plain host memory")                                                \
    TIDE_EXTRA_MEMORY_KINDS(XX)

typedef enum tide_memory_kind {
#define XX(name, value, text, place, what) TIDE_KIND_##name = (value),
    TIDE_MEMORY_KIND_MAP(XX)
#undef XX
} tide_memory_kind;

/// How many kinds there are; kind.c proves that their values are 0 … TIDE_N_KINDS-1.
enum {
#define XX(name, value, text, place, what) +1
    TIDE_N_KINDS = 0 TIDE_MEMORY_KIND_MAP(XX)
#undef XX
};

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
