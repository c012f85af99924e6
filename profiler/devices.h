// SPDX-License-Identifier: MIT
//
// devices: what is known of whole devices: the samples of their drivers, and what blocks and segments took of them;
// and of whole processes: what the system counted. analysis/device_memory joins them.
#ifndef TIDE_PROFILER_DEVICES_H
#define TIDE_PROFILER_DEVICES_H

#include "profiler/holdings.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Whether the trace names a device beside the CPU. Costs nothing.
bool tide_trace_has_devices(const tide_trace *t);
/// The oldest event that is there: 1, or what thinning (max_bytes) left. Blocks that are live there are known, segments
/// that were taken before are not.
uint64_t tide_trace_first_kept(const tide_trace *t);

/// What the driver of a device said at one moment: bytes in use by all processes, and all that there are.
typedef struct tide_trace_usage {
    uint64_t event, t_ns;
    const char *device;               ///< borrowed from the trace
    uint64_t used_bytes, total_bytes; ///< used <= total
} tide_trace_usage;
/// All samples in order. *out [*n] is owned: tide_host_free; NULL when there are none. Looks at every event: 0.05 us
/// each.
tide_status tide_trace_device_usage(tide_trace *t, tide_trace_usage **out, size_t *n, tide_error *err) TIDE_NODISCARD;

/// Whether an allocator's name is one that the recorder of CUDA memory gives what a program took from the driver
/// itself: that of the function ("cuMemAlloc", "cuMemMap", ...), or "module".
bool tide_allocator_is_driver(const char *name);

/// A device's memory was taken, or given back. Texts are borrowed from the trace; "" for none.
typedef struct tide_trace_taken {
    uint64_t event, t_ns;
    const char *device, *allocator;
    const char *tag; ///< of a block: who asked
    uint64_t bytes;  ///< set aside
    bool is_segment; ///< that an allocator took, else a block
    bool is_back;    ///< given back
} tide_trace_taken;
/// What segments and blocks took of all devices but the CPU, in order of events. Blocks of an allocator that tells its
/// segments on that device are left out: they lie in them; those of the driver's functions are all there. *out [*n] is
/// owned: tide_host_free; NULL when there is none. Costs what tide_trace_segments costs, then 0.5 us a block.
tide_status tide_trace_device_takes(tide_trace *t, const tide_reading *reading, tide_trace_taken **out, size_t *n,
                                    tide_error *err) TIDE_NODISCARD;

/// What the system counted of a process at a moment.
typedef struct tide_trace_process_sample {
    uint32_t process; ///< from 0, as events have it
    uint64_t t_ns;
    uint64_t resident_bytes, swapped_bytes;
    uint64_t peak_bytes;  ///< the most that was resident until then
    uint64_t share_bytes; ///< resident, each page by how many processes have it (PSS); TIDE_UNKNOWN_BYTES: not asked
    uint64_t minor_faults, major_faults; ///< since it began
} tide_trace_process_sample;
/// The name of its program, without folders: of the first word of its command; "": not known. Cut to `bytes`.
tide_status tide_trace_program(const tide_trace *t, uint32_t process, char *buf, size_t bytes,
                               tide_error *err) TIDE_NODISCARD;
/// Whether there is any. Costs a query.
tide_status tide_trace_has_process_memory(tide_trace *t, bool *has, tide_error *err) TIDE_NODISCARD;
/// By process and time, in each of `n_columns` equal columns of the trace's time the one with most resident bytes. *out
/// [*n] is owned: tide_host_free; NULL when there are none. Reads them all: 1 us each.
tide_status tide_trace_process_samples(tide_trace *t, size_t n_columns, tide_trace_process_sample **out, size_t *n,
                                       tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
