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
    size_t batch_events; ///< events per transaction; 0: 8192; more than 2^20 counts as 2^20
    bool attached_late;  ///< the observer was attached while blocks were already out: a free whose alloc was not heard
                         ///< is kept as an event, counted in meta.n_orphan_frees, and is no error
    uint64_t (*now)(
        void *ctx); ///< clock of begin_run and end_run, the same as that of the events; NULL: CLOCK_MONOTONIC
    void *now_ctx;
} tide_recorder_options;

/**
 * Create `path` anew and record into it. The file grows under a temporary name beside it and gets its own name at
 * close, so that there is never half a trace under the real one; an existing file of that name is replaced then.
 *
 * @param opt  NULL: all defaults
 * @return TIDE_ERR_IO with SQLite's words (also when `path` is a directory); TIDE_ERR_INVALID for "" and "-": a trace
 *         cannot be streamed; TIDE_ERR_NOMEM
 */
tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) TIDE_NODISCARD;
/**
 * End an open run, write what is buffered, check, rename. All callbacks must have returned and none may follow. The
 * recorder is gone afterwards, also on failure: then the first error that happened while recording is returned and no
 * file is left under `path` that was not there before.
 *
 * @return the first error of recording; TIDE_ERR_IO; TIDE_ERR_RUNTIME when what is in the file is not what was heard
 */
tide_status tide_recorder_close(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// Give up: remove the temporary file. Takes NULL.
void tide_recorder_abandon(tide_recorder *r);

/**
 * Valid until close. Thread-safe. After the first error the observer goes quiet and the recorded program is unharmed;
 * the error is kept and returned by each later call that can return one. Errors are those of the disk, and an event
 * that cannot be true: a kind or operation outside the list, a number beyond 2^63 - 1, a block that is allocated twice,
 * freed twice or (unless attached_late) freed without having been allocated.
 *
 * A block is live until free_completed; free_requested is noted beside it.
 * Events get their number in order of arrival. Time never runs backwards in a trace: an event that waited for the
 * recorder and arrives behind a younger one gets the younger one's time.
 */
tide_observer tide_recorder_observer(tide_recorder *r);

typedef struct tide_run_info {
    const char *model;    ///< name of the graph
    const char *source;   ///< file; may be NULL
    const char *mode;     ///< "naive" or "planned"
    const char *strategy; ///< of the plan; NULL in naive mode
    const char *device;   ///< "cpu"
    uint32_t n_contexts;  ///< that run at the same time, each with a buffer and outputs of its own; 0 means 1
} tide_run_info;

/// Begin a run: events from now on belong to it. *run_id counts from 1. `plan` (may be NULL) is stored with it: also
/// with a naive run, so that its lifetimes can be shown and its peak be predicted. TIDE_ERR_INVALID while a run is
/// open.
tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_INVALID when no run is open.
tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// A fact for the table `meta`; overwrites. The keys that the recorder writes itself (docs/trace-format.md) are
/// refused: TIDE_ERR_INVALID.
tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value,
                                   tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
