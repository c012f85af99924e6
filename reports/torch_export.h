// SPDX-License-Identifier: MIT
//
// torch export: a recorded trace as a memory snapshot of PyTorch, what torch.cuda.memory._dump_snapshot writes and
// docs.pytorch.org/memory_viz opens. It is written as the trace is read: what is live, and each call stack once, is
// all that is held.
//
//     {"device_traces":        [[{"action", "addr", "size", "stream", "time_us", "frames"}, ...], ...]    a list a
//     device
//      "segments":             [{"device", "address", "total_size", "blocks": [...], ...}, ...]           at the end
//      "allocator_settings":   {...}, "external_annotations": [{"stage", "name", "device", "time_us"}, ...],
//      "tidemark":             {"lists": [{"device", "process", "pid"}, ...]}}                 which list is whose
//
// A first look at all events finds the devices and whether segments ended in parts; then each device's events are gone
// through again. docs/interchange.md has what goes where.
#ifndef TIDE_REPORTS_TORCH_EXPORT_H
#define TIDE_REPORTS_TORCH_EXPORT_H

#include "core/base/output.h"
#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the form does not hold as the trace has it.
typedef struct tide_torch_export_report {
    uint64_t n_moved;    ///< blocks with a made-up address: none was told, or another block lay there
    uint64_t n_left_out; ///< blocks larger than any memory
    uint64_t n_passed;   ///< segments at 2^52 and above, which are numbers and no addresses
} tide_torch_export_report;

/// Write a run of a trace (0: all that is kept); `out` is of tide_output_open, and stays the caller's.
/// @return TIDE_ERR_NOT_FOUND for a run that is not there; TIDE_ERR_WRITE; TIDE_ERR_NOMEM; errors of reading a trace
/// Costs some microseconds an event, and a pass over the trace for each device; memory for live blocks and for scopes.
tide_status tide_torch_export(tide_trace *t, int64_t run_id, tide_output *out, tide_torch_export_report *report,
                              tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
