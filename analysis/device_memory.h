// SPDX-License-Identifier: MIT
//
// device memory: where the bytes of a device are, by the driver's samples and by the allocators' events, over time.
//
//     total  +----------------------------------------
//            |                                           free         total - used
//     used   |        ,-------.________________,------
//            |..------'.......                 |......   unexplained  what is in use and in no event: contexts,
//            streams,
//            |::::::::::::::::::::::::::::::::::::::::                other processes, other programs
//            |   ,oooooooooooooooooooooooooooooooooooo   outside      blocks that were taken from the driver itself:
//            |  oo                                                    libraries' workspaces, modules, other allocators
//            |#######,     ,##########################   allocators   what tidemark's own allocators have: their
//            |########|####|###########################               segments, or the blocks of those without
//            +----------------------------------------
//
// A sample says what is in use at its moment; what is left of it, less allocators and outside, is unexplained,
// and it stays so until the next sample. Samples are taken at other moments than events, and a driver may keep memory
// elsewhere than it says: where the rest would be less than 0, it is 0, and off_bytes says by how much. Before the
// first sample, and where there are none, the rest is not known.
//
// Where thinning dropped the oldest events, segments that were taken before are not known: allocators are then what
// they are at least, and the rest what it is at most (tide_device_is_cut).
//
// Processes are lanes too, where the trace has samples of what the system counts of them (tidemark record --sample):
// used is what is resident, total the most that was until then, allocators the blocks of the process that are live, and
// unexplained what is resident beside them: code, stacks, what malloc keeps. Blocks that are not resident are off.
//
// What a process never gave back counts until the process ends, where the trace knows when; else to the end.
#ifndef TIDE_ANALYSIS_DEVICE_MEMORY_H
#define TIDE_ANALYSIS_DEVICE_MEMORY_H

#include "analysis/subject.h"
#include "profiler/devices.h"

#ifdef __cplusplus
extern "C" {
#endif

/// used = allocators + outside + unexplained - off. TIDE_UNKNOWN_BYTES: no sample says.
typedef struct tide_device_figures {
    uint64_t allocators_bytes, outside_bytes;
    uint64_t unexplained_bytes;
    uint64_t off_bytes; ///< 0 where the rest is not known
    uint64_t used_bytes, total_bytes;
    uint64_t free_bytes; ///< total - used, at least 0
} tide_device_figures;

/// After an event that changed a device: of one event the last state.
typedef struct tide_device_point {
    uint64_t event;
    int64_t t;
    uint64_t allocators_bytes, outside_bytes;
    uint64_t total_bytes; ///< of the last sample; TIDE_UNKNOWN_BYTES: there was none
    int64_t rest_bytes;   ///< of the last sample; negative: off
    bool is_sample;
} tide_device_point;

/// One device over time, or one process.
typedef struct tide_device_lane {
    const char *device; ///< "cuda:0", or "4711 python3"; of `texts`
    bool is_process;
    tide_device_point *points; ///< [n] by event; owned
    size_t n, cap;
    size_t n_samples;
} tide_device_lane;

typedef struct tide_device_memory {
    tide_device_lane *lanes; ///< [n] by name; owned
    size_t n, cap;
    tide_trace_taken *takes; ///< [n_takes], owned
    size_t n_takes;
    char **texts; ///< [n_texts] of takes and lanes, so that another thread than the trace's may look; owned
    size_t n_texts, cap_texts;
    uint64_t first_event; ///< the oldest that is there
} tide_device_memory;

/**
 * Every device but the CPU that the trace knows something of, and the processes (at most 12, those that were largest)
 * that were looked at while they recorded.
 *
 * @param t        NULL (a plan): no device
 * @param reading  called while events are read; may be NULL
 * @param out      owned: tide_device_memory_deinit, also after a failure; borrows nothing of the trace
 * @return TIDE_ERR_BAD_INPUT where sums pass 2^63 - 1; TIDE_ERR_CANCELLED; TIDE_ERR_NOMEM; what reading a trace returns
 *
 * Nothing where the trace names no device; else costs a look at each event, and 100 bytes for each change of a device.
 */
tide_status tide_device_memory_make(tide_trace *t, const tide_reading *reading, tide_device_memory *out,
                                    tide_error *err) TIDE_NODISCARD;
void tide_device_memory_deinit(tide_device_memory *m);
/// The oldest events are gone, and with them the segments that were taken then.
static inline bool tide_device_is_cut(const tide_device_memory *m) { return m->first_event > 1; }

/// Just after `at`. O(log n).
tide_device_figures tide_device_at(const tide_device_lane *lane, tide_moment at);
/// When most was in use within [t0, t1], what held at t0 included, and the first event that made it so. Where the rest
/// is not known, it is left out.
tide_device_figures tide_device_peak(const tide_device_lane *lane, int64_t t0, int64_t t1, tide_moment *at);
/// In each of `n` equal columns of [t0, t1), as those of tide_subject_columns, the figures of its peak. out [n].
void tide_device_columns(const tide_device_lane *lane, int64_t t0, int64_t t1, size_t n, tide_device_figures *out);

/// A device at a moment, as tables show it.
typedef struct tide_device_row {
    const char *device; ///< borrowed from the device memory
    int64_t t;
    tide_device_figures figures;
} tide_device_row;

/// Bytes by who has them.
typedef enum tide_device_part_of {
    TIDE_DEVICE_ALLOCATOR, ///< of `allocators`, by the allocator's name
    TIDE_DEVICE_API,       ///< of `outside`, by the driver's function
    TIDE_DEVICE_LIBRARY,   ///< of `outside` again, by who asked; "kept by the driver's pools" is what they have beyond
                           ///< that
} tide_device_part_of;
typedef struct tide_device_part {
    tide_device_part_of of;
    const char *name; ///< "" : not known; borrowed
    uint64_t bytes;
    uint64_t segment_bytes; ///< private
} tide_device_part;
/// The parts at a moment, by sort, largest first. *out [*n], owned: tide_host_free. O(takes) TIDE_ERR_NOMEM.
tide_status tide_device_parts(const tide_device_memory *m, size_t lane, tide_moment at, tide_device_part **out,
                              size_t *n, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
