// SPDX-License-Identifier: MIT
//
// The recorder: callbacks fill a batch under one mutex, and the thread that fills it writes it. See recorder.h.
//
// What is heard is counted twice: here, per device and kind, and by SQL over the finished file. They must agree before
// the file gets its name, so that a dropped event is noticed.
#include "profiler/recorder.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/id_map.h"
#include "core/base/text.h"
#include "profiler/plan_rows.h"
#include "profiler/store.h"

enum { DEFAULT_BATCH = 8192, MAX_BATCH = 1 << 20 };

/// Running counters of one (device, kind).
typedef struct kind_total {
    int64_t n_allocs, n_frees;
    int64_t requested_bytes, freed_bytes;
} kind_total;

/// A block that was allocated and is not gone yet: how a free without an alloc is noticed, and what the file's sums are
/// held against at close.
typedef struct live_block {
    uint64_t id;
    int64_t requested_bytes;
    uint16_t device; ///< id in table device
    uint8_t kind;
    bool free_requested; ///< waits for free_completed
} live_block;

struct tide_recorder {
    pthread_mutex_t lock; // guards all below
    tide__store store;
    tide__names names;
    tide_id_map live; // of live_block
    tide_error err;   // the first error while recording; with it the observer is quiet
    bool attached_late;
    uint64_t (*now)(void *ctx);
    void *now_ctx;

    size_t batch_events;
    tide__event_row *events; // [batch_events]
    size_t n_events;
    tide__scope_event_row *scope_events; // [batch_events]
    size_t n_scope_events;

    int64_t run_id, n_runs; // run_id 0: none is open
    int64_t last_event, last_scope_event, last_ns;
    int64_t n_orphan_frees;
    kind_total *totals; // [names.n_devices * TIDE_N_KINDS]
    size_t cap_totals;
};

// ---- errors that are kept ----

static tide_status keep_error(tide_recorder *r, tide_status st) {
    if (st != TIDE_OK && r->err.status == TIDE_OK) r->err.status = st; // a callee without an error context
    return st;
}

static tide_status kept_error(const tide_recorder *r, tide_error *err) {
    if (err != NULL && r->err.status != TIDE_OK) *err = r->err;
    return r->err.status;
}

// ---- batches ----

/// Write what is buffered. Keeps the error.
static tide_status flush(tide_recorder *r) {
    const tide__batch batch = {.events = r->events,
                               .n_events = r->n_events,
                               .scope_events = r->scope_events,
                               .n_scope_events = r->n_scope_events,
                               .names = &r->names};
    TIDE_TRY(keep_error(r, tide__store_write(&r->store, &batch, &r->err)));
    tide__names_written(&r->names);
    r->n_events = 0;
    r->n_scope_events = 0;
    return TIDE_OK;
}

/// The time of the trace: never behind what is already recorded.
static int64_t advance_clock(tide_recorder *r, uint64_t t_ns) {
    if (t_ns > (uint64_t)r->last_ns) r->last_ns = (int64_t)t_ns;
    return r->last_ns;
}

static tide_status refuse(tide_recorder *r, const tide_memory_event *e, const char *why) {
    return TIDE_FAIL(&r->err, TIDE_ERR_INVALID, "cannot record %s of block %" PRIu64 " (event %" PRId64 "): %s",
                     tide_memory_op_name(e->op), e->block_id, r->last_event + 1, why);
}

// ---- what the events add up to ----

static bool add_bytes(int64_t *sum, int64_t bytes) { return tide_add_i64(*sum, bytes, sum); }

static kind_total *total_of(tide_recorder *r, int64_t device, int kind) {
    return &r->totals[(size_t)(device - 1) * TIDE_N_KINDS + (size_t)kind];
}

static tide_status count_alloc(tide_recorder *r, const tide_memory_event *e, int64_t device) {
    if (e->block_id == 0) return refuse(r, e, "a block has no number");
    if (tide_id_map_find(&r->live, e->block_id) != NULL) return refuse(r, e, "it is already allocated");
    const live_block block = {.id = e->block_id,
                              .requested_bytes = (int64_t)e->requested_bytes,
                              .device = (uint16_t)device,
                              .kind = (uint8_t)e->kind};
    if (!tide_id_map_put(&r->live, &block))
        return TIDE_FAIL(&r->err, TIDE_ERR_NOMEM, "no memory to record block %" PRIu64, e->block_id);
    kind_total *total = total_of(r, device, (int)e->kind);
    total->n_allocs++;
    return add_bytes(&total->requested_bytes, block.requested_bytes) ? TIDE_OK
                                                                     : refuse(r, e, "all requests pass 2^63 - 1 bytes");
}

/// A block is live until its free is complete; a request to free is only noted.
static tide_status count_free(tide_recorder *r, const tide_memory_event *e) {
    live_block *block = tide_id_map_find(&r->live, e->block_id);
    if (block == NULL) {
        if (!r->attached_late) return refuse(r, e, "it is not allocated");
        r->n_orphan_frees++;
        return TIDE_OK;
    }
    if (e->op == TIDE_MEM_FREE_REQUESTED) {
        if (block->free_requested) return refuse(r, e, "its free was requested before");
        block->free_requested = true;
        return TIDE_OK;
    }
    kind_total *total = total_of(r, block->device, block->kind);
    total->n_frees++;
    total->freed_bytes += block->requested_bytes; // a part of what was added to requested_bytes
    tide_id_map_take(&r->live, block);
    return TIDE_OK;
}

static tide_status count_event(tide_recorder *r, const tide_memory_event *e, int64_t device) {
    switch (e->op) {
    case TIDE_MEM_ALLOC:
        return count_alloc(r, e, device);
    case TIDE_MEM_FREE_REQUESTED:
    case TIDE_MEM_FREE_COMPLETED:
        return count_free(r, e);
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
    case TIDE_MEM_OOM:
        return TIDE_OK; // no block begins or ends
    }
    return refuse(r, e, "no such operation");
}

// ---- callbacks ----

static tide_status check_event(tide_recorder *r, const tide_memory_event *e) {
    if ((unsigned)e->kind >= TIDE_N_KINDS) return refuse(r, e, "no such memory kind");
    if (e->t_ns > INT64_MAX) return refuse(r, e, "its time passes 2^63 - 1 ns");
    if (e->block_id > INT64_MAX || e->requested_bytes > INT64_MAX || e->reserved_bytes > INT64_MAX)
        return refuse(r, e, "a number of it passes 2^63 - 1");
    return TIDE_OK;
}

/// The number of the event's device; its counters are there afterwards.
static tide_status device_of(tide_recorder *r, tide_device device, int64_t *id) {
    const size_t before = r->names.n_devices;
    TIDE_TRY(tide__names_device(&r->names, device, id));
    if (r->names.n_devices == before) return TIDE_OK;
    const size_t n = r->names.n_devices * TIDE_N_KINDS;
    TIDE_TRY(tide_host_grow(&r->totals, &r->cap_totals, n, sizeof *r->totals));
    memset(&r->totals[n - TIDE_N_KINDS], 0, TIDE_N_KINDS * sizeof *r->totals);
    return TIDE_OK;
}

static tide_status name_event(tide_recorder *r, const tide_memory_event *e, tide__event_row *row) {
    TIDE_TRY(device_of(r, e->device, &row->device));
    TIDE_TRY(tide__names_text(&r->names, e->allocator, &row->allocator_id));
    TIDE_TRY(tide__names_text(&r->names, e->tag, &row->tag_id));
    return tide__names_scope(&r->names, e->scope, &row->scope_id);
}

static tide_status take_memory(tide_recorder *r, const tide_memory_event *e) {
    TIDE_TRY(check_event(r, e));
    tide__event_row row = {.id = r->last_event + 1, .run_id = r->run_id};
    tide_status st = name_event(r, e, &row);
    if (st != TIDE_OK)
        return TIDE_FAIL(&r->err, st, "cannot record event %" PRId64 ": %s", row.id, tide_status_text(st));
    TIDE_TRY(count_event(r, e, row.device));
    row.t_ns = advance_clock(r, e->t_ns);
    row.op = (int64_t)e->op;
    row.block_id = (int64_t)e->block_id;
    row.kind = (int64_t)e->kind;
    row.stream = (int64_t)e->stream;
    row.requested_bytes = (int64_t)e->requested_bytes;
    row.reserved_bytes = (int64_t)e->reserved_bytes;
    row.address = (int64_t)e->address;
    row.thread = e->thread;
    r->events[r->n_events++] = row;
    r->last_event = row.id;
    return r->n_events == r->batch_events ? flush(r) : TIDE_OK;
}

static tide_status take_scope(tide_recorder *r, const tide_scope_event *e) {
    tide__scope_event_row row = {
        .id = r->last_scope_event + 1, .run_id = r->run_id, .enter = e->enter, .thread = e->thread};
    tide_status st = e->t_ns > INT64_MAX ? TIDE_ERR_INVALID : tide__names_scope(&r->names, e->scope, &row.scope_id);
    if (st == TIDE_OK && row.scope_id == 0) st = TIDE_ERR_INVALID;
    if (st != TIDE_OK)
        return TIDE_FAIL(&r->err, st, "cannot record scope event %" PRId64 ": %s", row.id, tide_status_text(st));
    row.t_ns = advance_clock(r, e->t_ns);
    r->scope_events[r->n_scope_events++] = row;
    r->last_scope_event = row.id;
    return r->n_scope_events == r->batch_events ? flush(r) : TIDE_OK;
}

static void on_memory(void *self, const tide_memory_event *event) {
    tide_recorder *r = self;
    pthread_mutex_lock(&r->lock);
    if (r->err.status == TIDE_OK) keep_error(r, take_memory(r, event));
    pthread_mutex_unlock(&r->lock);
}

static void on_scope(void *self, const tide_scope_event *event) {
    tide_recorder *r = self;
    pthread_mutex_lock(&r->lock);
    if (r->err.status == TIDE_OK) keep_error(r, take_scope(r, event));
    pthread_mutex_unlock(&r->lock);
}

tide_observer tide_recorder_observer(tide_recorder *r) {
    return (tide_observer){.self = r, .on_memory = on_memory, .on_scope = on_scope};
}

// ---- life ----

static uint64_t monotonic_now(void *ctx) {
    (void)ctx;
    return tide_now_ns();
}

static void destroy(tide_recorder *r) {
    tide__store_discard(&r->store);
    tide__names_deinit(&r->names);
    tide_id_map_deinit(&r->live);
    tide_host_free(r->events);
    tide_host_free(r->scope_events);
    tide_host_free(r->totals);
    pthread_mutex_destroy(&r->lock);
    tide_host_free(r);
}

tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) {
    static const tide_recorder_options defaults = {0};
    if (opt == NULL) opt = &defaults;
    tide_recorder *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
    pthread_mutex_init(&r->lock, NULL);
    r->live = (tide_id_map)TIDE_ID_MAP(live_block);
    r->attached_late = opt->attached_late;
    r->now = opt->now != NULL ? opt->now : monotonic_now;
    r->now_ctx = opt->now_ctx;
    r->batch_events = opt->batch_events == 0 ? DEFAULT_BATCH : opt->batch_events;
    if (r->batch_events > MAX_BATCH) r->batch_events = MAX_BATCH;
    r->events = tide_host_calloc(r->batch_events, sizeof *r->events);
    r->scope_events = tide_host_calloc(r->batch_events, sizeof *r->scope_events);
    tide_status st = TIDE_OK;
    if (r->events == NULL || r->scope_events == NULL)
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
    if (st == TIDE_OK) st = tide__store_open(&r->store, path, err);
    if (st != TIDE_OK) {
        destroy(r);
        return st;
    }
    *out = r;
    return TIDE_OK;
}

void tide_recorder_abandon(tide_recorder *r) {
    if (r != NULL) destroy(r);
}

// ---- runs ----

static tide_status insert_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                              tide_error *err) {
    // Events name devices in one way ("cuda:0"); a run that says "cuda" must still meet them.
    const char *device = info->device != NULL ? info->device : "cpu";
    tide_device parsed;
    char device_name[32];
    if (tide_device_parse(device, &parsed, NULL) == TIDE_OK)
        device = tide_device_format(parsed, device_name, sizeof device_name);
    const tide__sql *s = &r->store.sql;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s,
                               "INSERT INTO run(id, model, source, mode, strategy, device, begin_ns, first_event, "
                               "plan_bytes, plan_naive_bytes, plan_lower_bound_bytes, contexts) "
                               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, r->n_runs + 1);
    tide__sql_bind_text(stmt, 2, info->model != NULL ? info->model : "");
    tide__sql_bind_text(stmt, 3, info->source);
    tide__sql_bind_text(stmt, 4, info->mode != NULL ? info->mode : "");
    tide__sql_bind_text(stmt, 5, info->strategy);
    tide__sql_bind_text(stmt, 6, device);
    sqlite3_bind_int64(stmt, 7, advance_clock(r, r->now(r->now_ctx)));
    sqlite3_bind_int64(stmt, 8, r->last_event + 1);
    // plan_rows refuses what does not fit; here it would only be NULL.
    if (plan != NULL) {
        tide__sql_bind_u64(stmt, 9, plan->bytes);
        tide__sql_bind_u64(stmt, 10, plan->naive_bytes);
        tide__sql_bind_u64(stmt, 11, plan->lower_bound_bytes);
    }
    sqlite3_bind_int64(stmt, 12, info->n_contexts > 0 ? info->n_contexts : 1);
    const tide_status st = tide__sql_run(s, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                             tide_error *err) {
    TIDE_TRY(kept_error(r, err));
    if (r->run_id != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot begin a run of '%s': run %" PRId64 " is still open",
                         info->model != NULL ? info->model : "", r->run_id);
    if (flush(r) != TIDE_OK) return kept_error(r, err);
    TIDE_TRY(tide__store_begin(&r->store, err));
    tide_status st = insert_run(r, info, plan, err);
    if (st == TIDE_OK && plan != NULL) st = tide__plan_rows_write(&r->store.sql, r->n_runs + 1, plan, err);
    st = tide__store_end(&r->store, st, err);
    if (st == TIDE_OK) r->run_id = ++r->n_runs;
    return st;
}

tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) {
    pthread_mutex_lock(&r->lock);
    const tide_status st = begin_run(r, info, plan, err);
    if (st == TIDE_OK && run_id != NULL) *run_id = r->run_id;
    pthread_mutex_unlock(&r->lock);
    return st;
}

static tide_status end_run(tide_recorder *r, tide_error *err) {
    TIDE_TRY(kept_error(r, err));
    if (r->run_id == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot end a run: none is open");
    if (flush(r) != TIDE_OK) return kept_error(r, err);
    const tide__sql *s = &r->store.sql;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "UPDATE run SET end_ns = ?, last_event = ? WHERE id = ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, advance_clock(r, r->now(r->now_ctx)));
    sqlite3_bind_int64(stmt, 2, r->last_event);
    sqlite3_bind_int64(stmt, 3, r->run_id);
    const tide_status st = tide__sql_run(s, stmt, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) r->run_id = 0;
    return st;
}

tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) {
    pthread_mutex_lock(&r->lock);
    const tide_status st = end_run(r, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value, tide_error *err) {
    static const char *const own[] = {"schema",   "version",        "created_by",      "created_utc", "clock",
                                      "n_events", "n_scope_events", "n_orphan_frees",  "n_blocks",    "n_runs",
                                      "n_names",  "n_scopes",       "requested_bytes", "freed_bytes"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(key, own[i]) == 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot put '%s' into meta: the recorder writes it itself", key);
    }
    pthread_mutex_lock(&r->lock);
    tide_status st = kept_error(r, err);
    if (st == TIDE_OK) st = tide__store_put_meta(&r->store, key, value, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

// ---- close ----

static tide_status lost(const tide_recorder *r, const char *what, int64_t heard, int64_t found, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "'%s' does not hold what was recorded", r->store.path);
    tide_error_note(err, "%s: %" PRId64 " heard, %" PRId64 " in the file", what, heard, found);
    return st;
}

static tide_status check_count(const tide_recorder *r, const char *what, const char *query, int64_t heard,
                               tide_error *err) {
    int64_t found;
    TIDE_TRY(tide__sql_int(&r->store.sql, query, 0, &found, err));
    return found == heard ? TIDE_OK : lost(r, what, heard, found, err);
}

/// Hold the running counters against sums over the table of blocks.
static tide_status check_totals(tide_recorder *r, kind_total *sum, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&r->store.sql,
                               "SELECT count(*), count(free_event), coalesce(sum(requested_bytes), 0), "
                               "coalesce(sum(CASE WHEN free_event IS NOT NULL THEN requested_bytes END), 0) "
                               "FROM block WHERE device = ? AND kind = ?",
                               &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < r->names.n_devices * TIDE_N_KINDS; i++) {
        const kind_total *t = &r->totals[i];
        const int64_t heard[] = {t->n_allocs, t->n_frees, t->requested_bytes, t->freed_bytes};
        static const char *const what[] = {"allocations", "frees", "requested bytes", "freed bytes"};
        sqlite3_bind_int64(stmt, 1, (int64_t)(i / TIDE_N_KINDS) + 1);
        sqlite3_bind_int64(stmt, 2, (int64_t)(i % TIDE_N_KINDS));
        bool has_row;
        st = tide__sql_step(&r->store.sql, stmt, &has_row, err);
        for (int k = 0; st == TIDE_OK && k < 4; k++) {
            const int64_t found = sqlite3_column_int64(stmt, k);
            if (found != heard[k]) st = lost(r, what[k], heard[k], found, err);
        }
        sqlite3_reset(stmt);
        sum->n_allocs += t->n_allocs;
        sum->n_frees += t->n_frees;
        if (st == TIDE_OK && !add_bytes(&sum->requested_bytes, t->requested_bytes))
            st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "all requests in '%s' pass 2^63 - 1 bytes", r->store.path);
        sum->freed_bytes += t->freed_bytes;
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_totals(tide_recorder *r, const kind_total *sum, tide_error *err) {
    const struct {
        const char *key;
        int64_t value;
    } all[] = {
        {"n_events", r->last_event},
        {"n_scope_events", r->last_scope_event},
        {"n_orphan_frees", r->n_orphan_frees},
        {"n_blocks", sum->n_allocs},
        {"n_runs", r->n_runs},
        {"n_names", r->names.n_texts},
        {"n_scopes", (int64_t)r->names.n_scopes},
        {"requested_bytes", sum->requested_bytes},
        {"freed_bytes", sum->freed_bytes},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        TIDE_TRY(tide__store_put_meta_int(&r->store, all[i].key, all[i].value, err));
    return TIDE_OK;
}

static tide_status finish_tables(tide_recorder *r, tide_error *err) {
    TIDE_TRY(tide__sql_exec(&r->store.sql, tide__schema_fill_blocks, err));
    TIDE_TRY(check_count(r, "events", "SELECT count(*) FROM event", r->last_event, err));
    TIDE_TRY(check_count(r, "scope events", "SELECT count(*) FROM scope_event", r->last_scope_event, err));
    TIDE_TRY(check_count(r, "names", "SELECT count(*) FROM name", r->names.n_texts, err));
    TIDE_TRY(check_count(r, "scopes", "SELECT count(*) FROM scope", (int64_t)r->names.n_scopes, err));
    kind_total sum = {0};
    TIDE_TRY(check_totals(r, &sum, err));
    return write_totals(r, &sum, err);
}

static tide_status finish(tide_recorder *r, tide_error *err) {
    TIDE_TRY(kept_error(r, err));
    if (r->run_id != 0) TIDE_TRY(end_run(r, err));
    if (flush(r) != TIDE_OK) return kept_error(r, err);
    TIDE_TRY(tide__store_begin(&r->store, err));
    TIDE_TRY(tide__store_end(&r->store, finish_tables(r, err), err));
    return tide__store_seal(&r->store, err);
}

tide_status tide_recorder_close(tide_recorder *r, tide_error *err) {
    const tide_status st = finish(r, err);
    destroy(r);
    return st;
}
