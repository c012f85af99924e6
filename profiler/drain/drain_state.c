// SPDX-License-Identifier: MIT
//
// Where the file stands, in memory: the drain begins with it, and after a failed batch, whose events are in memory and
// not in the file, it comes back to it.
//
//     leaves     | complete | complete | open          |
//     events     ......S...............|...............| last_event
//     snapshot         ^ live blocks     ^ their leaves are made again
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/drain/drain_internal.h"

enum { LOOK_AGAIN_NS = 500 * 1000 * 1000 };

void tide__drain_unload(tide__drain *d) {
    tide__names_deinit(&d->names);
    tide__replay_deinit(&d->replay);
    tide__leaves_deinit(&d->leaves);
    tide_host_free(d->positions);
    d->names = (tide__names){0};
    d->replay = (tide__replay){0};
    d->leaves = (tide__leaves){0};
    d->positions = NULL;
    d->n_positions = 0;
    d->n_events = 0;
}

static tide_status meta_int(const tide__drain *d, const char *key, int64_t *value, tide_error *err) {
    char query[96];
    snprintf(query, sizeof query, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = '%s'", key);
    return tide__sql_int(tide__store_sql(d->store), query, 0, value, err);
}

static tide_status load(tide__drain *d, tide_error *err) {
    tide__store_state state;
    TIDE_TRY(tide__store_get_state(d->store, &state, err));
    TIDE_TRY(tide__store_load_names(d->store, &d->names, err));
    if (tide__replay_init(&d->replay) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", d->path);
    TIDE_TRY(tide__store_load_replay(d->store, &state, &d->replay, err));
    // Events behind the last complete leaves make leaves again.
    TIDE_TRY(tide__store_replay(d->store, state.last_event, &d->replay, &d->leaves, state.leaf_event, err));
    TIDE_TRY(tide__store_load_positions(d->store, &d->positions, &d->n_positions, err));
    TIDE_TRY(meta_int(d, "n_orphan_frees", &d->n_orphans, err));
    d->n_orphans_stored = d->n_orphans;
    TIDE_TRY(meta_int(d, "n_late", &d->n_late, err));
    d->n_late_stored = d->n_late;
    d->last_event = state.last_event;
    d->last_ns = state.last_ns;
    d->last_snapshot = state.snapshot_event;
    return TIDE_OK;
}

tide_status tide__drain_load(tide__drain *d, tide_error *err) {
    tide__drain_unload(d);
    const tide_status st = load(d, err);
    if (st != TIDE_OK) tide__drain_unload(d);
    return st;
}

tide_status tide__drain_open_run(const tide__drain *d, int64_t process_id, int64_t *run_id, tide_error *err) {
    char query[160];
    snprintf(query, sizeof query,
             "SELECT max(id) FROM run WHERE process_id = %" PRId64 " AND first_event IS NOT NULL AND end_ns IS NULL",
             process_id);
    return tide__sql_int(tide__store_sql(d->store), query, 0, run_id, err);
}

tide_status tide__drain_has_run(const tide__drain *d, int64_t process_id, int64_t run_id, bool *is_there,
                                tide_error *err) {
    char query[120];
    snprintf(query, sizeof query, "SELECT 1 FROM run WHERE id = %" PRId64 " AND process_id = %" PRId64, run_id,
             process_id);
    int64_t found = 0;
    const tide_status st = tide__sql_int(tide__store_sql(d->store), query, 0, &found, err);
    *is_there = found == 1;
    return st;
}

tide_status tide__drain_check_file(tide__drain *d, bool now, tide_error *err) {
    const uint64_t t = tide_now_ns();
    if (!now && t - d->looked_ns < LOOK_AGAIN_NS) return TIDE_OK;
    d->looked_ns = t;
    struct stat info;
    if (stat(d->path, &info) == 0) {
        if (info.st_dev == d->file_dev && info.st_ino == d->file_ino) return TIDE_OK;
    }
    d->is_removed = true;
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write '%s': the trace was removed", d->path);
}
