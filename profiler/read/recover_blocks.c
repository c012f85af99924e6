// SPDX-License-Identifier: MIT
//
// Events that are gone, out of what was made of them: table block knows the alloc and the free of each block with
// their numbers and times, a snapshot the alloc of each block that was live then. See recover.h.
//
// Of a request to free the number is not known, but its time is. What neither has: scopes, moments, segments; and of a
// free its thread and scope.
#include "profiler/read/recover.h"
#include "profiler/store/schema.h"
#include "profiler/store/snapshot.h"

typedef struct block_reader {
    tide__holes *h;
    const tide__retell *runs;
} block_reader;

/// The run of a free is the one of its block, while that lasts.
static int32_t run_at(const block_reader *r, int32_t run_id, int64_t event) {
    const tide__run_place *run = run_id != 0 ? tide__retell_run(r->runs, run_id) : NULL;
    if (run == NULL || run->first_event == 0 || event < run->first_event) return 0;
    return run->last_event < 0 || event <= run->last_event ? run_id : 0;
}

/// Columns as in TIDE__BLOCK_COLUMNS.
static tide_status take_block(void *ctx, sqlite3_stmt *row, tide_error *err) {
    block_reader *r = ctx;
    int64_t id, run, alloc, freed, alloc_ns, requested_ns, free_ns, kind, device, thread, allocator, tag, scope;
    bool good = tide__in_number(row, 0, INT64_MIN, INT64_MAX, &id);
    good = tide__in_int(row, 1, 1, INT32_MAX, 0, &run) && good;
    good = tide__in_number(row, 2, 1, INT64_MAX - 1, &alloc) && good;
    good = tide__in_int(row, 3, alloc + 1, INT64_MAX - 1, 0, &freed) && good;
    good = tide__in_number(row, 4, 0, INT64_MAX, &alloc_ns) && good;
    good = tide__in_int(row, 5, alloc_ns, INT64_MAX, -1, &requested_ns) && good;
    good = tide__in_int(row, 6, alloc_ns, INT64_MAX, 0, &free_ns) && good;
    good = tide__in_number(row, 7, 0, TIDE_N_KINDS - 1, &kind) && good;
    good = tide__in_number(row, 8, 1, TIDE__MAX_DEVICES - 1, &device) && good;
    good = tide__in_number(row, 13, 0, INT32_MAX, &thread) && good;
    good = tide__in_int(row, 14, 1, INT32_MAX, 0, &allocator) && good;
    good = tide__in_int(row, 15, 1, INT32_MAX, 0, &tag) && good;
    good = tide__in_int(row, 16, 1, INT32_MAX, 0, &scope) && good;
    tide__event e = {.id = alloc,
                     .t_ns = alloc_ns,
                     .block_id = id,
                     .run_id = (int32_t)run,
                     .thread = (int32_t)thread,
                     .scope_id = (int32_t)scope,
                     .tag_id = (int32_t)tag,
                     .allocator_id = (int32_t)allocator,
                     .device = (int16_t)device,
                     .op = TIDE_MEM_ALLOC,
                     .kind = (uint8_t)kind};
    good = tide__in_number(row, 9, INT64_MIN, INT64_MAX, &e.stream) && good;
    good = tide__in_number(row, 10, 0, INT64_MAX, &e.requested_bytes) && good;
    good = tide__in_number(row, 11, 0, INT64_MAX, &e.reserved_bytes) && good;
    good = tide__in_number(row, 12, INT64_MIN, INT64_MAX, &e.address) && good;
    if (!good) return TIDE_ERR_BAD_INPUT;
    if (id <= 0) return TIDE_OK; // the second block of one number: which it was is not said
    TIDE_TRY(tide__holes_offer(r->h, &e, err));
    e.scope_id = 0;
    if (requested_ns >= 0) {
        e.id = 0;
        e.t_ns = requested_ns;
        e.op = TIDE_MEM_FREE_REQUESTED;
        e.run_id = freed != 0 ? run_at(r, (int32_t)run, freed) : 0;
        TIDE_TRY(tide__holes_offer_loose(r->h, &e, err));
    }
    if (freed == 0) return TIDE_OK;
    e.id = freed;
    e.t_ns = free_ns;
    e.op = TIDE_MEM_FREE_COMPLETED;
    e.run_id = run_at(r, (int32_t)run, freed);
    return tide__holes_offer(r->h, &e, err);
}

static tide_status take_snapshot(void *ctx, sqlite3_stmt *row, tide_error *err) {
    block_reader *r = ctx;
    tide__replay live;
    if (sqlite3_column_type(row, 1) != SQLITE_BLOB) return TIDE_ERR_BAD_INPUT;
    if (tide__replay_init(&live) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to recover '%s'", r->h->in->path);
    const void *data = sqlite3_column_blob(row, 1);
    tide_status st = tide__snapshot_decode(data, (size_t)sqlite3_column_bytes(row, 1), &live);
    if (st == TIDE_ERR_NOMEM) TIDE_FAIL(err, st, "no memory to recover '%s'", r->h->in->path);
    const tide__live_block *b;
    for (size_t i = 0; st == TIDE_OK && (b = tide__replay_next(&live, &i)) != NULL;) {
        const tide__event e = {.id = b->alloc_event,
                               .t_ns = b->alloc_ns,
                               .block_id = b->block_id,
                               .requested_bytes = b->requested_bytes,
                               .reserved_bytes = b->reserved_bytes,
                               .address = b->address,
                               .stream = b->stream,
                               .run_id = b->run_id,
                               .thread = b->thread,
                               .scope_id = b->scope_id,
                               .tag_id = b->tag_id,
                               .allocator_id = b->allocator_id,
                               .device = b->device,
                               .op = TIDE_MEM_ALLOC,
                               .kind = b->kind};
        st = tide__holes_offer(r->h, &e, err);
    }
    tide__replay_deinit(&live);
    return st;
}

tide_status tide__recover_blocks(tide__holes *h, const tide__retell *runs, tide_error *err) {
    if (h->n_missing == 0) return TIDE_OK;
    block_reader r = {.h = h, .runs = runs};
    const tide__in before = *h->in; // both are made anew: nothing is lost with them
    tide_status st = tide__in_each(h->in, "block", "id", TIDE__BLOCK_COLUMNS, take_block, &r, err);
    if (st == TIDE_OK) st = tide__in_each(h->in, "snapshot", "event_id", "event_id, data", take_snapshot, &r, err);
    h->in->n_lost_rows = before.n_lost_rows;
    h->in->n_lost_spots = before.n_lost_spots;
    return st;
}
