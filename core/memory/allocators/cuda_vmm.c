// SPDX-License-Identifier: MIT
//
// cuda_vmm: stream_caching over ranges of a device that can map memory. The drawing, what it costs and what it saves
// stand in stream_caching_ranges.c.
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"

/// Of addresses, where a device does not say how much memory it has.
#define UNKNOWN_RANGE_BYTES ((uint64_t)64 << 30)

static tide_status no_mapping(tide_device device, tide_error *err) {
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s cannot map memory into reserved addresses",
                     tide_device_format(device, name, sizeof name));
}

static size_t round_up(size_t bytes, size_t unit_bytes) { return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes; }

tide_status tide_stream_vmm_create(tide_device device, const tide_stream_caching_options *opt, tide_allocator **out,
                                   tide_error *err) {
    void *self = NULL;
    tide_device_facts facts = {0};
    TIDE_TRY(tide_device_require(device, err));
    const tide_device_ops *ops = tide_device_find(device, &self);
    if (ops == NULL || ops->vm_reserve == NULL) return no_mapping(device, err);
    TIDE_TRY(ops->facts(self, device.index, &facts, err));
    if (facts.map_step_bytes == 0) return no_mapping(device, err);
    const size_t step = (size_t)facts.map_step_bytes;
    const uint64_t total = facts.total_bytes;
    const tide__sc_source source = {
        .unit_bytes = {round_up(TIDE__SC_SMALL_SEGMENT, step), round_up(TIDE__SC_LARGE_SEGMENT, step)},
        .range_bytes = total > 0 ? total + total / 8 : UNKNOWN_RANGE_BYTES,
        .total_bytes = total};
    return tide__sc_create(TIDE__SC_VMM, device, &source, opt, out, err);
}
