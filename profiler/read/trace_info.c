// SPDX-License-Identifier: MIT
//
// A trace in numbers. See tide_trace_get_info in query.h.
#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"

static tide_status count(const tide_trace *t, const char *query, uint64_t *out, tide_error *err) {
    int64_t n;
    TIDE_TRY(tide__sql_int(&t->sql, query, 0, &n, err));
    if (n < 0) return tide__trace_bad_row(t, "meta", n, err);
    *out = (uint64_t)n;
    return TIDE_OK;
}

/// The file and its write-ahead log.
static tide_status file_bytes(const tide_trace *t, uint64_t *out, tide_error *err) {
    tide_text log = {0};
    struct stat info;
    *out = stat(t->path, &info) == 0 ? (uint64_t)info.st_size : 0;
    tide_text_addf(&log, "%s-wal", t->path);
    if (log.failed) return TIDE_NO_MEMORY(err, "for the name of '%s'", t->path);
    if (stat(tide_text_str(&log), &info) == 0) *out += (uint64_t)info.st_size;
    tide_text_deinit(&log);
    return TIDE_OK;
}

static tide_status count_events(tide_trace *t, tide_trace_info *out, tide_error *err) {
    uint64_t in_chunks = 0;
    const uint64_t kept = (uint64_t)(t->last_event - t->first_event + 1);
    TIDE_TRY(count(t, "SELECT sum(1) FROM main.event_chunk", &out->n_chunks, err));
    TIDE_TRY(count(t, "SELECT sum(last_event - first_event + 1) FROM main.event_chunk", &in_chunks, err));
    out->n_events = (uint64_t)t->last_event;
    out->n_rows = in_chunks < kept ? kept - in_chunks : 0;
    out->first_kept_event = (uint64_t)t->first_event;
    out->begin_ns = (uint64_t)t->begin_ns;
    out->end_ns = (uint64_t)t->end_ns;
    TIDE_TRY(tide__trace_series_load(t, 0, err));
    if (t->first_event > 1 && t->series[0].n_leaves > 0) out->begin_ns = (uint64_t)t->series[0].leaves[0].begin_ns;
    return TIDE_OK;
}

/// Time 0 of all that is shown. Without an event the runs alone have times.
static tide_status find_origin(tide_trace *t, tide_trace_info *out, tide_error *err) {
    int64_t begin_ns, end_ns;
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT min(begin_ns) FROM main.run", -1, &begin_ns, err));
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT max(max(begin_ns, coalesce(end_ns, 0))) FROM main.run", -1, &end_ns, err));
    if (begin_ns < 0 || end_ns < begin_ns) return TIDE_OK;
    if (out->n_events == 0 || (uint64_t)begin_ns < out->begin_ns) out->begin_ns = (uint64_t)begin_ns;
    if (out->n_events == 0) out->end_ns = (uint64_t)end_ns;
    return TIDE_OK;
}

static tide_status count_shown(tide_trace *t, uint64_t *n_blocks, tide_error *err) {
    tide_trace_kind *kinds;
    size_t n;
    TIDE_TRY(tide_trace_kinds(t, 0, &kinds, &n, err));
    *n_blocks = 0;
    for (size_t i = 0; i < n; i++) *n_blocks += kinds[i].n_allocs;
    tide_host_free(kinds);
    return TIDE_OK;
}

/// Blocks by the table of the end; while that is not there, by the events; where events were dropped, by what the
/// producers counted.
static tide_status count_blocks(tide_trace *t, tide_trace_info *out, tide_error *err) {
    if (t->first_event > 1) {
        TIDE_TRY(count(t, "SELECT sum(n_allocs) FROM main.total", &out->n_blocks, err));
    } else if (t->state == TIDE_TRACE_RECORDING) {
        TIDE_TRY(count_shown(t, &out->n_blocks, err));
    } else {
        int64_t n;
        TIDE_TRY(tide__trace_meta_number(t, "n_blocks", &n, err));
        out->n_blocks = n > 0 ? (uint64_t)n : 0;
    }
    const tide__replay *r;
    TIDE_TRY(tide__trace_state_after(t, t->last_event, &r, err));
    out->n_leaked = tide__replay_n_live(r);
    for (size_t i = 0; i < t->ends.n; i++)
        if (t->ends.items[i].event <= t->last_event) out->n_leaked += (uint64_t)t->ends.items[i].n_blocks;
    return TIDE_OK;
}

tide_status tide_trace_get_info(tide_trace *t, tide_trace_info *out, tide_error *err) {
    tide_trace_info info = {.state = t->state};
    uint64_t n_processes = 0, n_threads = 0, n_runs = 0;
    if (t->state != TIDE_TRACE_COMPLETE) {
        const tide_status st = tide_trace_meta(t, "reason", info.reason, sizeof info.reason, err);
        if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
        if (st == TIDE_ERR_NOT_FOUND && err != NULL) tide_error_clear(err);
    }
    TIDE_TRY(count_events(t, &info, err));
    TIDE_TRY(find_origin(t, &info, err));
    TIDE_TRY(count_blocks(t, &info, err));
    TIDE_TRY(file_bytes(t, &info.file_bytes, err));
    TIDE_TRY(count(t, "SELECT sum(n_lost) FROM main.position", &info.n_lost, err));
    TIDE_TRY(count(t, "SELECT sum(problem <> 8) FROM main.problem", &info.n_problems, err));
    TIDE_TRY(count(t,
                   "SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM main.meta WHERE key = 'n_late'), 0), "
                   "(SELECT count(*) FROM main.problem WHERE problem = 8))",
                   &info.n_late, err));
    TIDE_TRY(count(t, "SELECT sum(1) FROM main.process", &n_processes, err));
    TIDE_TRY(count(t, "SELECT sum(1) FROM main.thread", &n_threads, err));
    TIDE_TRY(count(t, "SELECT sum(1) FROM main.run", &n_runs, err));
    info.n_processes = (uint32_t)n_processes;
    info.n_threads = (uint32_t)n_threads;
    info.n_runs = (uint32_t)n_runs;
    *out = info;
    return TIDE_OK;
}

tide_status tide_trace_shown_run(tide_trace *t, int64_t *run_id, tide_error *err) {
    int64_t n_processes, first_event;
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT sum(1) FROM main.process", 0, &n_processes, err));
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT max(id) FROM main.run", 0, run_id, err));
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT first_event FROM main.run ORDER BY id DESC LIMIT 1", INT64_MAX,
                           &first_event,
                           err)); // none yet: it has only begun
    if (n_processes > 1 || *run_id < 0 || first_event < t->first_event) *run_id = 0;
    return TIDE_OK;
}
