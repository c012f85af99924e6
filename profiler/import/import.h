// SPDX-License-Identifier: MIT
//
// import: recordings of other tools, as traces. A file is known by its content, also where it is packed (zstd, gzip,
// lz4); what it says becomes events in their order, and all that a trace answers is answered of it. docs/interchange.md
// says what of each format goes where.
#ifndef TIDE_PROFILER_IMPORT_IMPORT_H
#define TIDE_PROFILER_IMPORT_IMPORT_H

#include <stdint.h>

#include "core/base/status.h"

typedef enum tide_import_format {
    TIDE_IMPORT_UNKNOWN,
    TIDE_IMPORT_TORCH,        ///< memory snapshot of PyTorch, a pickle of protocols 2 to 5
    TIDE_IMPORT_TORCH_SQLITE, ///< the same as tables of SQLite
    TIDE_IMPORT_NSIGHT,       ///< export of Nsight Systems, SQLite
    TIDE_IMPORT_HEAPTRACK,    ///< text of heaptrack
    TIDE_IMPORT_RMM,          ///< log of RMM's logging adaptor, a CSV
    TIDE_IMPORT_TFLM,         ///< log with what TensorFlow Lite Micro prints of its arena
    TIDE_IMPORT_MEMRAY,       ///< capture of memray
} tide_import_format;

/// What a format is called in messages: "a memory snapshot of PyTorch".
const char *tide_import_format_name(tide_import_format format);
/// Whether that is what a snapshot of PyTorch is called, in either form.
bool tide_import_is_torch(const char *format_name);
/// What the file at `path` looks like by its first bytes; TIDE_IMPORT_UNKNOWN also for what cannot be opened, is no
/// plain file, or is no format that is read here. Reads some bytes; of a text that may be a log the first MiB.
tide_import_format tide_import_look(const char *path);

enum { TIDE_IMPORT_MAX_PROCESSES = 64 };
/// What came of it.
typedef struct tide_import_report {
    tide_import_format format;
    uint64_t n_events;                  ///< of the file
    uint64_t n_blocks;                  ///< allocated while it was recorded
    uint64_t n_blocks_before;           ///< alive before that: their allocation is not in the file
    uint64_t bytes_before;              ///< of these
    uint64_t n_unknown, n_without_time; ///< events of a kind, or without a time, that is not known
    uint64_t n_inexact;                 ///< blocks whose real size does not follow from where they lie
    uint64_t n_unknown_frees;  ///< of blocks whose allocation is not in the file, and that are not in the trace
    uint64_t n_left_out;       ///< kernels, copies and fills of devices, which a trace has no place for
    uint64_t n_native_frames;  ///< of native code, which are not in the trace's stacks
    uint64_t n_objects;        ///< begins and ends of Python's objects, which are no blocks
    uint64_t n_contradictions; ///< blocks at the end that events and state tell differently
    int64_t pids[TIDE_IMPORT_MAX_PROCESSES]; ///< [n_processes] of the system; none where the file tells none
    size_t n_processes;
    bool has_sums; ///< the file has no events: a block is all that one call stack held, at the peak or at the end
    bool is_cut;   ///< the file ends in the middle: what stands before is in the trace
} tide_import_report;

/**
 * Write the recording at `path` as a trace to `out_path`, which is whole or as it was.
 *
 * @param report  out; may be NULL
 * @return TIDE_ERR_BAD_INPUT with the place in the file; TIDE_ERR_IO; TIDE_ERR_WRITE; TIDE_ERR_BUSY while another
 * process records into `out_path`; TIDE_ERR_NOMEM
 *
 * Costs a pass over the file; memory for names, stacks and what was alive, and 40 bytes of disk for an event, beside
 * `out_path`, until the end.
 */
tide_status tide_import_file(const char *path, const char *out_path, tide_import_report *report,
                             tide_error *err) TIDE_NODISCARD;

#endif
