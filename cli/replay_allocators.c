// SPDX-License-Identifier: MIT
//
// Which allocators a trace is replayed with, by device and name. See replay.h.
#include <string.h>

#include "cli/replay.h"
#include "core/device/sim_device.h"
#include "core/memory/allocators/allocators.h"

static bool is_named(tide_device device, const char *name) {
    const char *known;
    for (size_t i = 0; (known = tide_allocator_name_on(device, i)) != NULL; i++) {
        if (strcmp(known, name) == 0) return true;
    }
    return false;
}

size_t cli_replay_default_allocators(tide_device device, const char **names, size_t max) {
    static const char *const wanted[] = {"cpu",     "cpu_caching",  "stream_caching", // of the CPU
                                         "pytorch",                                   // simulated
                                         "cuda",    "cuda_caching", "cuda_async",
                                         "cuda_vmm"}; // of any other device
    size_t n = 0;
    // The plain one keeps nothing: on a simulated device its sum is what blocks hold.
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && n < max; i++) {
        if (strcmp(wanted[i], "cuda") == 0 && tide_sim_device_is(device)) continue;
        if (is_named(device, wanted[i])) names[n++] = wanted[i];
    }
    return n;
}
