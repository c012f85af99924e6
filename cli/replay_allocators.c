// SPDX-License-Identifier: MIT
//
// Which allocators a trace is replayed with, by device and name. See replay.h.
#include <string.h>

#include "cli/replay.h"
#include "core/memory/allocators/allocators.h"

size_t cli_replay_default_allocators(tide_device device, const char *const **names) {
    static const char *const of_cpu[] = {"cpu", "cpu_caching", "stream_caching"};
    static const char *const of_cuda[] = {"cuda", "cuda_caching", "cuda_async", "cuda_vmm"};
    static const char *const of_others[] = {"device", "stream_caching"};
    *names = device.type == TIDE_DEVICE_CPU ? of_cpu : device.type == TIDE_DEVICE_CUDA ? of_cuda : of_others;
    return device.type == TIDE_DEVICE_CPU ? 3 : device.type == TIDE_DEVICE_CUDA ? 4 : 2;
}

tide_status cli_replay_allocator(tide_device device, const char *name, tide_allocator **out, tide_error *err) {
    if (device.type == TIDE_DEVICE_CPU) return tide_allocator_create_by_name(name, out, err);
    if (strcmp(name, "device") == 0) return tide_device_allocator_create(device, out, err);
    if (strcmp(name, "stream_caching") == 0) return tide_stream_caching_create(device, NULL, out, err);
    char text[32];
    TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no allocator '%s' on %s", name,
              tide_device_format(device, text, sizeof text));
    tide_error_hint(err, "one of: device, stream_caching");
    return TIDE_ERR_INVALID;
}
