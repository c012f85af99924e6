// SPDX-License-Identifier: MIT
//
// Memory kinds: names, legality and the alignment table. See kind.h.
#include "core/memory/kind.h"

#include <assert.h>
#include <strings.h>

const char *tide_memory_kind_name(tide_memory_kind kind) {
    switch (kind) {
#define XX(name, value, text, place, what)                                                                             \
    case TIDE_KIND_##name:                                                                                             \
        return text;
        TIDE_MEMORY_KIND_MAP(XX)
#undef XX
    }
    return "kind ?";
}

const char *tide_memory_kind_purpose(tide_memory_kind kind) {
    switch (kind) {
#define XX(name, value, text, place, what)                                                                             \
    case TIDE_KIND_##name:                                                                                             \
        return what;
        TIDE_MEMORY_KIND_MAP(XX)
#undef XX
    }
    return "unknown";
}

tide_status tide_memory_kind_parse(const char *text, tide_memory_kind *out, tide_error *err) {
    static const tide_memory_kind kinds[] = {
#define XX(name, value, text, place, what) TIDE_KIND_##name,
        TIDE_MEMORY_KIND_MAP(XX)
#undef XX
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcasecmp(text, tide_memory_kind_name(kinds[i])) != 0) continue;
        *out = kinds[i];
        return TIDE_OK;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not a memory kind", text);
    tide_error_hint(err, "kinds: "
#define XX(name, value, name_text, place, what) name_text " "
                    TIDE_MEMORY_KIND_MAP(XX)
#undef XX
    );
    return st;
}

#define XX(name, value, text, place, what)                                                                             \
    static_assert((value) >= 0 && (value) < TIDE_N_KINDS, "values of memory kinds go on from the last one: " text);
TIDE_MEMORY_KIND_MAP(XX)
#undef XX

/// Legal on the CPU device only (LT-18).
static bool is_host_kind(tide_memory_kind kind) {
    enum { ANY_DEVICE, CPU_ONLY };
    static const int places[TIDE_N_KINDS] = {
#define XX(name, value, text, place, what) [TIDE_KIND_##name] = place,
        TIDE_MEMORY_KIND_MAP(XX)
#undef XX
    };
    return (int)kind >= 0 && (int)kind < TIDE_N_KINDS && places[kind] == CPU_ONLY;
}

tide_status tide_memory_kind_check(tide_memory_kind kind, tide_device device, tide_error *err) {
    if ((int)kind < 0 || (int)kind >= TIDE_N_KINDS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory kind %d is outside the list", (int)kind);
    if (is_host_kind(kind) && device.type != TIDE_DEVICE_CPU) {
        char name[32];
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "memory kind %s is legal on the CPU only, not on %s",
                                         tide_memory_kind_name(kind), tide_device_format(device, name, sizeof name));
        tide_error_note(err, "host memory belongs to the CPU device even when a GPU copies from it");
        return st;
    }
    return TIDE_OK;
}

/// The alignment table. Several rules may hold for one (device, kind): the strictest wins.
///
///     64   every kind: a cache line, and one AVX-512 register (LT-22, PT-16)
///     256  what tensors live in, on every device: also the alignment of CUDA's and TensorRT's own buffers, so that
///          one plan serves all devices (S28-17)
size_t tide_memory_kind_alignment(tide_memory_kind kind, tide_device device) {
    enum { CACHE_LINE_RULE = 64, TENSOR_RULE = 256 };
    size_t strictest = CACHE_LINE_RULE;
    const bool holds_tensors = !is_host_kind(kind) || device.type != TIDE_DEVICE_CPU;
    if (holds_tensors && strictest < TENSOR_RULE) strictest = TENSOR_RULE;
    return strictest;
}
