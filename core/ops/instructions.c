// SPDX-License-Identifier: MIT
//
// What kernels see of the machine: instructions, caches, and the library that makes them. Their scratch depends on it,
// and so do plans that hold some.
#include <inttypes.h>
#include <stdio.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "core/base/text.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/ops.h"

const char *tide_ops_instructions(void) {
    if (tide__dnnl_open(NULL) != TIDE_OK) return "unknown";
    switch (tide__dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
        return "avx2_vnni";
    case dnnl_cpu_isa_avx512_mic:
        return "avx512_mic";
    case dnnl_cpu_isa_avx512_mic_4ops:
        return "avx512_mic_4ops";
    case dnnl_cpu_isa_avx512_core:
        return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "avx512_core_amx";
    case dnnl_cpu_isa_all: // what it says where it knows none of them
        break;
    }
    return "other";
}

const char *tide_ops_library(char *buf, size_t buf_bytes) {
    if (tide__dnnl_open(NULL) != TIDE_OK) {
        snprintf(buf, buf_bytes, "oneDNN cannot be opened");
        return buf;
    }
    const dnnl_version_t *v = tide__dnnl_version();
    snprintf(buf, buf_bytes, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return buf;
}

// ---- caches ----

#ifdef __x86_64__

/// The leaf that lists caches: Intel's, or that of AMD, which has the same layout; 0: there is none.
static unsigned leaf_of_caches(void) {
    const unsigned intels = 4, amds = 0x8000001D, topology_extensions = 1u << 22;
    unsigned a, b, c, d;
    if (__get_cpuid_count(intels, 0, &a, &b, &c, &d) != 0 && (a & 31) != 0) return intels;
    const bool has_amds = __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & topology_extensions) != 0;
    return has_amds ? amds : 0;
}

/// "L2 1 MiB/2" of one entry of the leaf; nothing of a cache of instructions. False: it was the last one.
static bool add_cache(tide_text *out, unsigned leaf, unsigned entry) {
    enum { NONE = 0, INSTRUCTIONS = 2 };
    unsigned a, b, c, d;
    if (__get_cpuid_count(leaf, entry, &a, &b, &c, &d) == 0 || (a & 31) == NONE) return false;
    if ((a & 31) == INSTRUCTIONS) return true;
    const uint64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
    char size[32];
    tide_format_bytes(ways * partitions * line * ((uint64_t)c + 1), size, sizeof size);
    tide_text_addf(out, "%sL%u%s %s/%u", out->len > 0 ? ", " : "", a >> 5 & 7, (a & 31) == 1 ? "d" : "", size,
                   (a >> 14 & 4095) + 1);
    return true;
}

const char *tide_ops_caches(char *buf, size_t buf_bytes) {
    enum { MOST = 16 };
    tide_text list = {0};
    const unsigned leaf = leaf_of_caches();
    for (unsigned i = 0; leaf != 0 && i < MOST && add_cache(&list, leaf, i); i++) {
    }
    snprintf(buf, buf_bytes, "%s", list.len > 0 && !list.failed ? list.data : "unknown");
    tide_text_deinit(&list);
    return buf;
}

#else

const char *tide_ops_caches(char *buf, size_t buf_bytes) {
    snprintf(buf, buf_bytes, "unknown");
    return buf;
}

#endif
