// SPDX-License-Identifier: MIT
//
// engine: what of the drain a recorder calls. All that needs SQLite lies behind this table: where a collector in
// another process drains, it is never asked for.
//
//     tidemark, libtidemark.a    the functions themselves (recorder_engine_here.c)
//     libtidemark-record.so      opens libtidemark-trace.so for them (lib/record_front.c)
#ifndef TIDE_PROFILER_RECORDER_ENGINE_H
#define TIDE_PROFILER_RECORDER_ENGINE_H

#include "profiler/collector.h"
#include "profiler/drain/drain.h"

typedef struct tide__engine {
    tide_status (*create)(const char *path, tide_error *err);
    tide_status (*collect)(const tide_collector_options *opt, tide_error *err);
    tide_status (*check_file)(const char *path, uint64_t n_heard, uint64_t n_dropped, tide_error *err);
    /// Whether the trace at `path`, which no process drains, is finished; if so, what a drain that was killed in its
    /// last steps left beside it goes.
    tide_status (*is_finished)(const char *path, bool *finished, tide_error *err);
    tide_status (*thread_start)(const tide__drain_options *opt, tide__drain_thread **out, tide_error *err);
    void (*thread_hurry)(tide__drain_thread *t);
    void (*thread_release)(tide__drain_thread *t);
    void (*thread_leave)(tide__drain_thread *t, const char *feed_path);
    bool (*thread_has_ended)(tide__drain_thread *t);
    void (*thread_abandon)(tide__drain_thread *t);
    tide_status (*thread_join)(tide__drain_thread *t, tide_error *err);
} tide__engine;

/// *out is static. TIDE_ERR_BACKEND: it is in a library that cannot be opened.
tide_status tide__engine_get(const tide__engine **out, tide_error *err) TIDE_NODISCARD;
/// The table, of type tide__engine, as libtidemark-trace.so hands it over.
const void *tide_recorder_engine(void);

#endif
