// SPDX-License-Identifier: MIT
//
// devices: what is known of whole devices: the samples of their drivers, and what blocks and segments took of them.
// analysis/device_memory joins the two.
#ifndef TIDE_PROFILER_DEVICES_H
#define TIDE_PROFILER_DEVICES_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the driver of a device said at one moment: bytes in use by all processes, and all that there are.
typedef struct tide_trace_usage {
    uint64_t event, t_ns;
    const char *device;               ///< borrowed from the trace
    uint64_t used_bytes, total_bytes; ///< used <= total
} tide_trace_usage;
/// All samples in order. *out [*n] is owned: tide_host_free; NULL when there are none. Looks at every event: 0.05 us
/// each.
tide_status tide_trace_device_usage(tide_trace *t, tide_trace_usage **out, size_t *n, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
