// SPDX-License-Identifier: MIT
//
// recorder: an observer that writes what it hears into a trace file (SQLite, docs/trace-format.md).
//
// This is the seam behind which recording becomes fast and crash-proof: callers see an observer, runs and a close.
#ifndef TIDE_PROFILER_RECORDER_H
#define TIDE_PROFILER_RECORDER_H

#include "core/memory/observer.h"
#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_recorder tide_recorder;

typedef struct tide_recorder_options {
    size_t batch_events; ///< events per transaction; 0: 8192
} tide_recorder_options;

/**
 * Create `path` anew and record into it. The file grows under a temporary name beside it and gets its own name at
 * close, so that there is never half a trace under the real one; an existing file of that name is replaced then.
 *
 * @return TIDE_ERR_IO with SQLite's words
 */
tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) TIDE_NODISCARD;
/// Write what is buffered, check, rename. The recorder is gone afterwards, also on failure: then the first error that
/// happened while recording is returned and no file is left under `path`.
tide_status tide_recorder_close(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// Give up: remove the temporary file. Takes NULL.
void tide_recorder_abandon(tide_recorder *r);

/// Valid until close. Thread-safe; errors are kept and returned by the next call that can return one.
tide_observer tide_recorder_observer(tide_recorder *r);

typedef struct tide_run_info {
    const char *model;    ///< name of the graph
    const char *source;   ///< file; may be NULL
    const char *mode;     ///< "naive" or "planned"
    const char *strategy; ///< of the plan; NULL in naive mode
    const char *device;   ///< "cpu"
} tide_run_info;

/// Begin a run: events from now on belong to it. *run_id counts from 1. `plan` (may be NULL) is stored with it.
tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) TIDE_NODISCARD;
tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// A fact for the table `meta`; overwrites.
tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
