// SPDX-License-Identifier: MIT
//
// From ended blocks to rows of table block. See finish_tables.h.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/store/block_pack.h"
#include "profiler/store/cursor.h"
#include "profiler/store/finish_tables.h"

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
    tide__block_pack *pack; ///< NULL: all into rows
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

tide_status tide__block_queue_create(const tide__sql *s, tide__blocks_into into, tide__block_queue **out,
                                     tide_error *err) {
    tide__block_queue *q;
    TIDE_TRY(TIDE_NEW(&q, 1, err, "to finish '%s'", s->path));
    q->in_memory = into == TIDE__BLOCKS_INTO_MEMORY;
    tide_status st = tide__rows_open(s, &q->out, err);
    if (st == TIDE_OK && into == TIDE__BLOCKS_INTO_CHUNKS) st = tide__block_pack_create(s, &q->pack, err);
    if (st != TIDE_OK) {
        tide__block_queue_destroy(q);
        return st;
    }
    *out = q;
    return TIDE_OK;
}

void tide__block_queue_destroy(tide__block_queue *q) {
    if (q == NULL) return;
    tide__rows_close(q->out);
    tide__block_pack_destroy(q->pack);
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

static void count_row(tide__block_queue *q, const tide__block_row *row) {
    q->sums.n++;
    if (!tide_add_i64(q->sums.requested_bytes, row->requested_bytes, &q->sums.requested_bytes))
        q->sums.requested_bytes = INT64_MAX;
    if (row->free_event != 0 && !tide_add_i64(q->sums.freed_bytes, row->requested_bytes, &q->sums.freed_bytes))
        q->sums.freed_bytes = INT64_MAX;
}

static void write_row(tide__block_queue *q, batch *b, const tide__block_row *row) {
    b->rows[b->n++] = *row;
    count_row(q, row);
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

/// Into its chunk, or its place in the queue, or straight to the table when it has none any more.
static void complete(tide__block_queue *q, const tide__block_row *row) {
    if (q->pack != NULL && tide__block_pack_end(q->pack, row)) {
        count_row(q, row);
        return;
    }
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
    if (q->status != TIDE_OK || q->pack == NULL) return q->status;
    return tide__block_pack_status(q->pack, err);
}

tide_status tide__block_queue_events(tide__block_queue *q, const tide__event *events, size_t n, tide_error *err) {
    if (q->pack == NULL) return TIDE_OK;
    if (n > 0) return tide__block_pack_begin(q->pack, events, n, err);
    tide__block_pack_leave(q->pack);
    return TIDE_OK;
}

tide_status tide__block_queue_alloc(tide__block_queue *q, const tide__event *e, tide_error *err) {
    if (q->pack != NULL && tide__block_pack_alloc(q->pack, e)) return TIDE_OK;
    if (q->n == QUEUE) leave(q);
    const size_t place = (q->first + q->n++) % QUEUE;
    q->rows[place].alloc_event = e->id;
    q->ended[place] = false;
    q->place[e->id % WINDOW] = (uint32_t)place;
    return tide__block_queue_status(q, err);
}

/// What goes with its process was never freed: its row is that of a block which lives.
void tide__block_queue_gone(void *queue, const tide__live_block *block, const tide__event *end) {
    tide__block_queue *q = queue;
    const bool is_left = end->op == TIDE__OP_PROCESS_END;
    const tide__block_row row = row_of(block, is_left ? NULL : end);
    if (is_left && !tide_add_i64(q->sums.left_bytes, row.requested_bytes, &q->sums.left_bytes))
        q->sums.left_bytes = INT64_MAX;
    complete(q, &row);
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
    TIDE_TRY(tide__block_queue_status(q, err));
    return q->pack != NULL ? tide__block_pack_finish(q->pack, err) : TIDE_OK;
}

// ---- steps ----
//
// What follows the entering of a scope on its thread is its leaving, or it was not left: then it has no end.

enum { MAX_FOUND = 1 << 18 }; ///< steps in memory; beyond that those of other runs are written

/// The step that a scope executes.
typedef struct tide__step_scope {
    int64_t name_id;
    int64_t step; ///< -1: not an operator's, or without a step
} tide__step_scope;

typedef struct step_entry {
    uint64_t key; ///< see key_of
    int64_t begin_ns, end_ns;
    int32_t thread, scope_id;
    bool on_first_thread;
    bool has_end, waits; ///< waits: nothing of this scope on its thread has come since it was entered
} step_entry;

typedef struct run_entry {
    uint64_t run_id;
    int64_t thread; ///< that began the run's first operator
} run_entry;

static uint64_t key_of(int32_t run_id, int64_t step) { return (uint64_t)run_id << 32 | (uint64_t)step; }

// ---- scopes ----

static tide_status take_scope(tide__steps *t, sqlite3_stmt *stmt, tide_error *err) {
    const int64_t id = sqlite3_column_int64(stmt, 0);
    if (id != (int64_t)t->n_scopes + 1)
        return tide__cursor_bad(t->sql, "scope", id, "scopes are not numbered one by one", err);
    TIDE_TRY(TIDE_GROW(&t->scopes, &t->cap_scopes, t->n_scopes + 1, err, "for the steps of '%s'", t->sql->path));
    const bool has_step = strcmp(tide__sql_text(stmt, 2), "operator") == 0 &&
                          sqlite3_column_type(stmt, 3) == SQLITE_INTEGER && sqlite3_column_int64(stmt, 3) >= 0 &&
                          sqlite3_column_int64(stmt, 3) <= INT32_MAX;
    t->scopes[t->n_scopes++] = (tide__step_scope){.name_id = sqlite3_column_int64(stmt, 1),
                                                  .step = has_step ? sqlite3_column_int64(stmt, 3) : -1};
    return TIDE_OK;
}

tide_status tide__steps_init(tide__steps *t, const tide__sql *s, bool in_memory, tide_error *err) {
    *t = (tide__steps){.sql = s,
                       .found = TIDE_MAP(step_entry),
                       .runs = TIDE_MAP(run_entry),
                       .in_memory = in_memory,
                       .max_found = MAX_FOUND};
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "SELECT id, name_id, kind, step FROM main.scope ORDER BY id", &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row)
        TIDE_TRY_OR(done, st, take_scope(t, stmt, err));
done:
    sqlite3_finalize(stmt);
    return st;
}

void tide__steps_deinit(tide__steps *t) {
    sqlite3_finalize(t->insert);
    tide_host_free(t->scopes);
    tide_map_deinit(&t->found);
    tide_map_deinit(&t->runs);
}

// ---- rows out ----

static int by_key(const void *a, const void *b) {
    const uint64_t x = (*(const step_entry *const *)a)->key, y = (*(const step_entry *const *)b)->key;
    return (x > y) - (x < y);
}

static tide_status write_step(tide__steps *t, const step_entry *e, tide_error *err) {
    sqlite3_bind_int64(t->insert, 1, (int64_t)(e->key >> 32));
    sqlite3_bind_int64(t->insert, 2, (int64_t)(e->key & UINT32_MAX));
    sqlite3_bind_int64(t->insert, 3, t->scopes[e->scope_id - 1].name_id);
    sqlite3_bind_int(t->insert, 4, e->thread);
    sqlite3_bind_int64(t->insert, 5, e->begin_ns);
    if (e->has_end) sqlite3_bind_int64(t->insert, 6, e->end_ns);
    return tide__sql_run(t->sql, t->insert, err);
}

/// Write what was found of all runs but `but_run` (0: of all), in order, and forget it. A step that is there stays.
static tide_status write_found(tide__steps *t, int32_t but_run, tide_error *err) {
    if (t->found.n == 0) return TIDE_OK;
    if (t->insert == NULL)
        TIDE_TRY(tide__sql_prepare(t->sql,
                                   t->in_memory ? "INSERT OR IGNORE INTO temp.step VALUES(?, ?, ?, ?, ?, ?)"
                                                : "INSERT OR IGNORE INTO main.step VALUES(?, ?, ?, ?, ?, ?)",
                                   &t->insert, err));
    step_entry **order = tide_host_calloc(t->found.n, sizeof *order);
    if (order == NULL) return TIDE_NO_MEMORY(err, "for the steps of '%s'", t->sql->path);
    size_t n = 0;
    for (size_t i = 0; i < t->found.cap; i++) {
        step_entry *e = tide_map_at(&t->found, i);
        if (e != NULL && (but_run == 0 || e->key >> 32 != (uint64_t)but_run)) order[n++] = e;
    }
    qsort(order, n, sizeof(step_entry *), by_key);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) st = write_step(t, order[i], err);
    tide_host_free(order);
    return st;
}

/// Only what belongs to `run_id` stays in memory: runs follow one another, but for those of several processes.
static tide_status make_room(tide__steps *t, int32_t run_id, tide_error *err) {
    TIDE_TRY(write_found(t, run_id, err));
    tide_map found = TIDE_MAP(step_entry), runs = TIDE_MAP(run_entry);
    bool good = true;
    for (size_t i = 0; good && i < t->found.cap; i++) {
        const step_entry *e = tide_map_at(&t->found, i);
        if (e != NULL && e->key >> 32 == (uint64_t)run_id) good = tide_map_put(&found, e);
    }
    const run_entry *run = tide_map_find(&t->runs, (uint64_t)run_id);
    if (good && run != NULL) good = tide_map_put(&runs, run);
    tide_map_deinit(&t->found);
    tide_map_deinit(&t->runs);
    t->found = found;
    t->runs = runs;
    t->max_found = 2 * found.n > MAX_FOUND ? 2 * found.n : MAX_FOUND; // one run may have more
    return good ? TIDE_OK : TIDE_NO_MEMORY(err, "for the steps of '%s'", t->sql->path);
}

tide_status tide__steps_end(tide__steps *t, tide_error *err) { return write_found(t, 0, err); }

// ---- events ----

static tide_status enter(tide__steps *t, const tide__event *e, int64_t step, tide_error *err) {
    const run_entry *run = tide_map_find(&t->runs, (uint64_t)e->run_id);
    const run_entry new_run = {.run_id = (uint64_t)e->run_id, .thread = e->thread};
    if (run == NULL && !tide_map_put(&t->runs, &new_run))
        return TIDE_NO_MEMORY(err, "for the steps of '%s'", t->sql->path);
    step_entry entry = {.key = key_of(e->run_id, step),
                        .begin_ns = e->t_ns,
                        .thread = e->thread,
                        .scope_id = e->scope_id,
                        .on_first_thread = run == NULL || run->thread == e->thread,
                        .waits = true};
    step_entry *old = tide_map_find(&t->found, entry.key);
    if (old == NULL) {
        if (t->found.n >= t->max_found) TIDE_TRY(make_room(t, e->run_id, err));
        return tide_map_put(&t->found, &entry) ? TIDE_OK : TIDE_NO_MEMORY(err, "for the steps of '%s'", t->sql->path);
    }
    if (entry.on_first_thread && !old->on_first_thread) {
        *old = entry;
    } else if (old->thread == e->thread && old->scope_id == e->scope_id) {
        old->waits = false; // entered again without having been left
    }
    return TIDE_OK;
}

tide_status tide__steps_add(tide__steps *t, const tide__event *e, tide_error *err) {
    t->n_scope_events++;
    if (e->run_id <= 0 || e->scope_id <= 0 || (size_t)e->scope_id > t->n_scopes) return TIDE_OK;
    const int64_t step = t->scopes[e->scope_id - 1].step;
    if (step < 0) return TIDE_OK;
    if (e->op == TIDE__OP_SCOPE_ENTER) return enter(t, e, step, err);
    step_entry *found = tide_map_find(&t->found, key_of(e->run_id, step));
    if (found != NULL && found->waits && found->thread == e->thread && found->scope_id == e->scope_id) {
        found->waits = false;
        found->has_end = true;
        found->end_ns = e->t_ns;
    }
    return TIDE_OK;
}
