// SPDX-License-Identifier: MIT
//
// The drain as a table. See recorder_engine.h.
#include "profiler/recorder_engine.h"

#include "profiler/store/store.h"

static tide_status is_finished(const char *path, bool *finished, tide_error *err) {
    bool unfinished, in_use;
    TIDE_TRY(tide__drain_look(path, &unfinished, &in_use, err));
    *finished = !unfinished;
    if (unfinished) return TIDE_OK;
    tide__drain_sweep(path);
    tide__sql_make_plain(path);
    return TIDE_OK;
}

static const tide__engine engine = {.create = tide__store_create,
                                    .collect = tide_collect,
                                    .check_file = tide__drain_check_file,
                                    .is_finished = is_finished,
                                    .thread_start = tide__drain_thread_start,
                                    .thread_hurry = tide__drain_thread_hurry,
                                    .thread_release = tide__drain_thread_release,
                                    .thread_leave = tide__drain_thread_leave,
                                    .thread_has_ended = tide__drain_thread_has_ended,
                                    .thread_abandon = tide__drain_thread_abandon,
                                    .thread_join = tide__drain_thread_join};

const void *tide_recorder_engine(void) { return &engine; }
