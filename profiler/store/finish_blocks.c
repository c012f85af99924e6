// SPDX-License-Identifier: MIT
//
// From ended blocks to rows of table block. See finish_internal.h.
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/store/finish_internal.h"

enum {
    QUEUE = 65536, ///< blocks that may wait for an older one
    /// A waiting block is found by the low bits of its alloc's event, unless that many events have come since.
    WINDOW = 1 << 18,
    BATCH = 4096,
};

typedef struct batch {
    tide__block_row rows[BATCH];
    size_t n;
} batch;

struct tide__block_queue {
    tide__rows *out;
    bool in_memory;
    tide_status status;
    tide_error error;
    tide__block_sums sums;
    size_t first, n;             ///< of `rows`, a ring
    bool ended[QUEUE];           ///< the row is complete
    uint32_t place[WINDOW];      ///< of a row, by alloc_event; to be checked against it
    batch in_order, late;        ///< late: blocks that outlived the queue
    tide__block_row rows[QUEUE]; ///< id, alloc_event until it has ended
};

tide_status tide__block_queue_create(const tide__sql *s, bool in_memory, tide__block_queue **out, tide_error *err) {
    tide__block_queue *q = tide_host_calloc(1, sizeof *q);
    if (q == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to finish '%s'", s->path);
    q->in_memory = in_memory;
    const tide_status st = tide__rows_open(s, &q->out, err);
    if (st != TIDE_OK) {
        tide_host_free(q);
        return st;
    }
    *out = q;
    return TIDE_OK;
}

void tide__block_queue_destroy(tide__block_queue *q) {
    if (q == NULL) return;
    tide__rows_close(q->out);
    tide_host_free(q);
}

tide__block_sums tide__block_queue_sums(const tide__block_queue *q) { return q->sums; }

// ---- rows out ----

static int by_id(const void *a, const void *b) {
    const int64_t x = ((const tide__block_row *)a)->id, y = ((const tide__block_row *)b)->id;
    return (x > y) - (x < y);
}

static void flush(tide__block_queue *q, batch *b) {
    if (b->n > 0 && q->status == TIDE_OK) {
        if (b == &q->late) qsort(b->rows, b->n, sizeof b->rows[0], by_id);
        q->status = tide__rows_insert_blocks(q->out, q->in_memory, b->rows, b->n, &q->error);
    }
    b->n = 0;
}

static void write_row(tide__block_queue *q, batch *b, const tide__block_row *row) {
    b->rows[b->n++] = *row;
    q->sums.n++;
    if (!tide_add_i64(q->sums.requested_bytes, row->requested_bytes, &q->sums.requested_bytes))
        q->sums.requested_bytes = INT64_MAX;
    if (row->free_event != 0 && !tide_add_i64(q->sums.freed_bytes, row->requested_bytes, &q->sums.freed_bytes))
        q->sums.freed_bytes = INT64_MAX;
    if (b->n == BATCH) flush(q, b);
}

static tide__block_row row_of(const tide__live_block *b, const tide__event *end) {
    return (tide__block_row){.id = b->block_id,
                             .run_id = b->run_id,
                             .alloc_event = b->alloc_event,
                             .free_event = end != NULL ? end->id : 0,
                             .alloc_ns = b->alloc_ns,
                             .free_requested_ns = b->free_requested_ns,
                             .free_ns = end != NULL ? end->t_ns : 0,
                             .requested_bytes = b->requested_bytes,
                             .reserved_bytes = b->reserved_bytes,
                             .address = b->address,
                             .stream = b->stream,
                             .thread = b->thread,
                             .scope_id = b->scope_id,
                             .tag_id = b->tag_id,
                             .allocator_id = b->allocator_id,
                             .device = b->device,
                             .kind = b->kind};
}

// ---- the queue ----

/// The oldest leaves: into the table when it has ended; one that lives is written when it ends.
static void leave(tide__block_queue *q) {
    if (q->ended[q->first]) write_row(q, &q->in_order, &q->rows[q->first]);
    q->first = (q->first + 1) % QUEUE;
    q->n--;
}

/// Into its place in the queue, or straight to the table when it has none any more.
static void complete(tide__block_queue *q, const tide__block_row *row) {
    // A block that leaves the queue alive does so because its place is taken: then another one is found there.
    const size_t place = q->place[row->alloc_event % WINDOW];
    if (q->rows[place].alloc_event != row->alloc_event) {
        write_row(q, &q->late, row);
        return;
    }
    q->rows[place] = *row;
    q->ended[place] = true;
    while (q->n > 0 && q->ended[q->first]) leave(q);
}

tide_status tide__block_queue_status(tide__block_queue *q, tide_error *err) {
    if (q->status != TIDE_OK && err != NULL) *err = q->error;
    return q->status;
}

tide_status tide__block_queue_alloc(tide__block_queue *q, const tide__event *e, tide_error *err) {
    if (q->n == QUEUE) leave(q);
    const size_t place = (q->first + q->n++) % QUEUE;
    q->rows[place].alloc_event = e->id;
    q->ended[place] = false;
    q->place[e->id % WINDOW] = (uint32_t)place;
    return tide__block_queue_status(q, err);
}

void tide__block_queue_gone(void *queue, const tide__live_block *block, const tide__event *end) {
    const tide__block_row row = row_of(block, end);
    complete(queue, &row);
}

void tide__block_queue_fetch_place(const tide__block_queue *q, int64_t alloc_event) {
    __builtin_prefetch(&q->place[(uint64_t)alloc_event % WINDOW]);
}

void tide__block_queue_fetch_row(const tide__block_queue *q, int64_t alloc_event) {
    const char *row = (const char *)&q->rows[q->place[(uint64_t)alloc_event % WINDOW]];
    __builtin_prefetch(row, 1);
    __builtin_prefetch(row + 64, 1);
}

tide_status tide__block_queue_end(tide__block_queue *q, const tide__replay *r, tide_error *err) {
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        const tide__block_row row = row_of(b, NULL);
        complete(q, &row);
    }
    while (q->n > 0) leave(q);
    flush(q, &q->in_order);
    flush(q, &q->late);
    return tide__block_queue_status(q, err);
}
