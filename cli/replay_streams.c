// SPDX-License-Identifier: MIT
//
// Streams of a replay: one of the device for each that the trace names. See replay_servers.h.
#include "cli/replay_servers.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"

static cli_replay_stream *find(const cli_replay_streams *s, uint64_t key, uint32_t process, uint64_t recorded) {
    cli_replay_stream *row = tide_map_find(&s->rows, key);
    while (row != NULL && (row->recorded != recorded || row->process != process)) row = tide_map_next(&s->rows, row);
    return row;
}

tide_status cli_replay_stream_of(cli_replay_streams *s, uint32_t process, uint64_t recorded, tide_stream_id *out,
                                 tide_error *err) {
    *out = 0;
    if (recorded == 0) return TIDE_OK;
    const uint64_t key = tide_hash_u64(tide_hash_u64(TIDE_HASH_START, process), recorded) | 1;
    const cli_replay_stream *known = find(s, key, process, recorded);
    if (known != NULL) {
        *out = known->here;
        return TIDE_OK;
    }
    cli_replay_stream row = {.key = key, .recorded = recorded, .process = process};
    TIDE_TRY(tide_stream_create(s->device, &row.here, err));
    if (!tide_map_put(&s->rows, &row)) {
        tide_stream_destroy(s->device, row.here);
        return TIDE_NO_MEMORY(err, "for the streams of a replay");
    }
    *out = row.here;
    s->n_made++;
    return TIDE_OK;
}

void cli_replay_streams_deinit(cli_replay_streams *s) {
    for (size_t i = 0; i < s->rows.cap; i++) {
        const cli_replay_stream *row = tide_map_at(&s->rows, i);
        if (row != NULL) tide_stream_destroy(s->device, row->here);
    }
    tide_map_deinit(&s->rows);
}
