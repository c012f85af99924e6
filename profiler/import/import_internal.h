// SPDX-License-Identifier: MIT
//
// What the formats share. Private to profiler/import.
//
//     import.c         which format a file has; the new trace's facts
//     pickle.c         Python's pickle format
//     torch_snapshot.c what a snapshot of PyTorch holds
//     torch_sqlite.c   the same as tables of SQLite
//     torch_pool.c     what its blocks hold beyond what was asked for
//     torch_stacks.c   its stacks: a tree, and as scopes
//     torch_trace.c    its events as those of a trace
//     unpack.c         files packed by zstd, gzip or lz4
//     lines.c          lines of a text, for logs and heaptrack
//     rmm_csv.c        logs of RMM
//     nsight.c         exports of Nsight Systems
//     heaptrack.c      text of heaptrack
//     tflm_recording.c what TensorFlow Lite Micro prints of its arena
//     memray.h         captures of memray
#ifndef TIDE_PROFILER_IMPORT_IMPORT_INTERNAL_H
#define TIDE_PROFILER_IMPORT_IMPORT_INTERNAL_H

#include "profiler/import/import.h"
#include "profiler/import/torch_snapshot.h"
#include "profiler/import/unpack.h"
#include "profiler/store/new_trace.h"

/// A text line by line. Zero-initialise but for the first three.
typedef struct tide__lines {
    const tide__unpack *in;
    const char *path;
    bool all_end; ///< each line of the format has an end: a last one without is not whole
    bool is_cut;  ///< out: the last line was not whole, and is left out
    char *text;   ///< the line without its end, at most to its first zero byte; owned
    size_t cap;
    uint64_t number; ///< of the line, from 1
} tide__lines;
/// *has false: there is no further line. TIDE_ERR_BAD_INPUT for one of more than 16 MiB; TIDE_ERR_IO; TIDE_ERR_NOMEM.
tide_status tide__lines_next(tide__lines *l, bool *has, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT with the place of the line.
tide_status tide__lines_bad(const tide__lines *l, tide_error *err, const char *what);
void tide__lines_deinit(tide__lines *l);

/// All of the snapshot into the trace, which is empty.
tide_status tide__torch_trace(tide__torch_snapshot *s, const char *path, tide__new_trace *out,
                              tide_import_report *report, tide_error *err) TIDE_NODISCARD;
/// Whether an SQLite file is a memory snapshot of PyTorch.
bool tide__import_is_torch_sqlite(const char *path);
/// Whether an SQLite file is an export of Nsight Systems.
bool tide__import_is_nsight(const char *path);
/// All memory events of an export; `in` is not used.
tide_status tide__import_nsight(FILE *in, const char *path, tide__new_trace *out, tide_import_report *report,
                                tide_error *err) TIDE_NODISCARD;
/// All lines of heaptrack's text.
tide_status tide__import_heaptrack(const tide__unpack *in, const char *path, tide__new_trace *out,
                                   tide_import_report *report, tide_error *err) TIDE_NODISCARD;
/// Whether a text has the first line of what TensorFlow Lite Micro prints of its arena.
bool tide__import_is_tflm(const char *text);
/// All its lines of a log.
tide_status tide__import_tflm(const tide__unpack *in, const char *path, tide__new_trace *out,
                              tide_import_report *report, tide_error *err) TIDE_NODISCARD;
/// All records of a capture of memray.
tide_status tide__import_memray(const tide__unpack *in, const char *path, tide__new_trace *out,
                                tide_import_report *report, tide_error *err) TIDE_NODISCARD;
/// All lines of a log.
tide_status tide__import_rmm(const tide__unpack *in, const char *path, tide__new_trace *out, tide_import_report *report,
                             tide_error *err) TIDE_NODISCARD;

#endif
