// SPDX-License-Identifier: MIT
//
// What recorded processes tell of themselves, as rows: a process by the header of its feed, its runs with their plans
// and its facts by the feed's log. They write nothing but their feeds.
//
//     header        -> table process    once; by the end of the feed's name, pid and begin a later drain finds the row
//     RUN, FACT     -> run, plan, meta  each in a transaction with the number of those that are in the file, so that a
//                                       later drain, which reads the log from its beginning, makes none twice
//
// A run has its number in its process; the n-th of them is the n-th row of that process in table run.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_internal.h"
#include "profiler/feed/registration.h"

// ---- a process ----

static const char *name_of(const tide__drain_feed *f) {
    const char *slash = strrchr(f->path, '/');
    return slash != NULL ? slash + 1 : f->path;
}

/// The end of its name: the trace and its feeds may have another name by now.
static const char *ending_of(const tide__drain_feed *f) {
    const char *ending = name_of(f);
    for (const char *next = ending; (next = strstr(next + 1, TIDE__FEED_INFIX)) != NULL;) ending = next;
    return ending;
}

/// The row that an earlier drain made for this feed; 0: none.
static tide_status find_process(const tide__drain *d, const tide__drain_feed *f, int64_t *id, tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    sqlite3_stmt *stmt;
    bool has_row;
    TIDE_TRY(tide__sql_prepare(
        s, "SELECT id FROM process WHERE substr(feed, -length(?1)) = ?1 AND pid = ? AND begin_ns = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, ending_of(f));
    sqlite3_bind_int64(stmt, 2, f->head->pid);
    sqlite3_bind_int64(stmt, 3, f->head->begin_ns);
    const tide_status st = tide__sql_step(s, stmt, &has_row, err);
    *id = st == TIDE_OK && has_row ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return st;
}

/// The command line, which is the first record of the log if it is there: any other one waits. Owned.
static char *take_command(tide__drain_feed *f) {
    bool bad;
    const tide__log_record *r = tide__feed_reader_next_record(f->reader, &bad);
    f->log_is_bad = bad;
    if (r == NULL) return NULL;
    const tide__log_record *head = tide__feed_reader_record(f->reader);
    if (head->type == TIDE__LOG_COMMAND)
        return tide_host_strndup((const char *)(r + 1), strnlen((const char *)(r + 1), head->payload_bytes));
    f->waiting = r;
    return NULL;
}

static tide_status add_process(tide__drain *d, tide__drain_feed *f, const char *command, tide_error *err) {
    const tide__feed_header *h = f->head;
    char boot_id[TIDE__BOOT_ID_BYTES];
    memcpy(boot_id, h->boot_id, sizeof boot_id);
    boot_id[sizeof boot_id - 1] = '\0';
    const tide__process_row row = {.pid = h->pid,
                                   .rank = h->rank,
                                   .command = command,
                                   .feed = name_of(f),
                                   .boot_id = boot_id[0] != '\0' ? boot_id : NULL,
                                   .has_wall = true,
                                   .wall_ns = h->wall_ns,
                                   .begin_ns = h->begin_ns};
    TIDE_TRY(tide__store_begin(d->store, err));
    tide_status st = tide__store_add_process(d->store, &row, &f->process_id, err);
    if (st == TIDE_OK && f->process_id > TIDE__DRAIN_MAX_PROCESSES)
        st = TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot record into '%s': more than %d processes do", d->path,
                       TIDE__DRAIN_MAX_PROCESSES);
    return tide__store_end(d->store, st, err);
}

static tide_status load_runs(const tide__drain *d, tide__drain_feed *f, tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "SELECT id FROM run WHERE process_id = ? ORDER BY id", &stmt, err));
    sqlite3_bind_int64(stmt, 1, f->process_id);
    bool has_row;
    tide_status st;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = TIDE_GROW(&f->runs, &f->cap_runs, f->n_runs + 1, err, "to record into '%s'", d->path);
        if (st != TIDE_OK) break;
        f->runs[f->n_runs++] = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Whether another feed that is open speaks for the same process.
static bool is_taken(const tide__drain *d, int64_t process_id) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (d->feeds[i]->process_id == process_id) return true;
    return false;
}

tide_status tide__drain_register_process(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    char *command = take_command(f);
    tide_status st = TIDE_OK;
    if (f->head->begin_ns < 0) st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "it does not say whose it is");
    if (st == TIDE_OK) st = find_process(d, f, &f->process_id, err);
    if (st == TIDE_OK && f->process_id == 0) st = add_process(d, f, command, err);
    tide_host_free(command);
    TIDE_TRY(st);
    if (f->process_id > TIDE__DRAIN_MAX_PROCESSES || is_taken(d, f->process_id))
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "its process has another one");
    TIDE_TRY(load_runs(d, f, err));
    for (size_t i = 0; i < d->n_positions; i++)
        if (d->positions[i].process_id == f->process_id && d->positions[i].ring == TIDE__POSITION_LOG)
            f->n_stored = (uint64_t)d->positions[i].position;
    atomic_store_explicit(&f->head->n_registered, f->n_stored, memory_order_release);
    atomic_store_explicit(&f->head->process_id, f->process_id, memory_order_release);
    return TIDE_OK;
}

// ---- runs and facts ----

static tide_status write_count(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    const tide__position p = {
        .process_id = f->process_id, .ring = TIDE__POSITION_LOG, .position = (int64_t)f->n_seen + 1};
    return tide__store_write_position(d->store, &p, err);
}

/// The plan of a program that makes it itself may be none: then its run has none, and the trace says so.
static tide_status take_bytes(const void *payload, size_t bytes, tide__run_taken *run, bool *lost_plan) {
    const tide_status st = tide__registration_take_run(payload, bytes, run);
    *lost_plan = st == TIDE_ERR_BAD_INPUT;
    return *lost_plan ? tide__registration_take_head(payload, bytes, run) : st;
}

/// Inside the transaction: the rows, and that they are there.
static tide_status write_run(tide__drain *d, const tide__drain_feed *f, const tide__run_taken *run, bool lost_plan,
                             int64_t *id, tide_error *err) {
    TIDE_TRY(tide__store_add_run(d->store, f->process_id, &run->info, run->plan, run->begin_ns, id, err));
    if (lost_plan) {
        char text[256];
        snprintf(text, sizeof text, "the plan of run %" PRId64 " ('%.100s') contradicts itself, and is left out", *id,
                 run->info.model != NULL ? run->info.model : "");
        TIDE_TRY(tide__drain_insert_problem(d, text, err));
    }
    return write_count(d, f, err);
}

static tide_status take_run(tide__drain *d, tide__drain_feed *f, const void *payload, size_t bytes, bool *bad,
                            tide_error *err) {
    tide__run_taken run;
    bool lost_plan;
    const tide_status taken = take_bytes(payload, bytes, &run, &lost_plan);
    if (taken == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    *bad = taken != TIDE_OK;
    if (*bad) return TIDE_OK;
    int64_t id = 0;
    tide_status st = TIDE_GROW(&f->runs, &f->cap_runs, f->n_runs + 1, err, "to record into '%s'", d->path);
    if (st == TIDE_OK) st = tide__store_begin(d->store, err);
    if (st == TIDE_OK) st = tide__store_end(d->store, write_run(d, f, &run, lost_plan, &id, err), err);
    tide__run_taken_deinit(&run);
    if (st == TIDE_OK) f->runs[f->n_runs++] = id;
    return st;
}

/// The rows of a damaged trace may be fewer than the runs in the log, or more. Then nothing tells which row is which
/// run's: none is, and each that an event names is damage.
static tide_status forget_rows(const tide__drain *d, tide__drain_feed *f, size_t n, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&f->runs, &f->cap_runs, n, err, "to record into '%s'", d->path));
    memset(f->runs, 0, n * sizeof *f->runs);
    f->n_runs = n;
    return TIDE_OK;
}

static tide_status take_fact(tide__drain *d, tide__drain_feed *f, const void *payload, size_t bytes, bool *bad,
                             tide_error *err) {
    char *key, *value;
    const tide_status taken = tide__registration_take_fact(payload, bytes, &key, &value);
    if (taken == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    *bad = taken != TIDE_OK;
    if (*bad) return TIDE_OK;
    tide_status st = tide__store_begin(d->store, err);
    if (st == TIDE_OK) {
        st = tide__store_put_meta(d->store, key, value, err);
        if (st == TIDE_OK) st = write_count(d, f, err);
        st = tide__store_end(d->store, st, err);
    }
    tide_host_free(key);
    tide_host_free(value);
    return st;
}

tide_status tide__drain_register(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload,
                                 bool *bad, tide_error *err) {
    // Runs and facts that were seen are those that were stored, or less while an earlier drain's are read again.
    TIDE_ASSERT(f->n_seen == (uint64_t)f->n_runs_seen + f->n_facts_seen && f->n_seen <= f->n_stored);
    const bool is_run = r->type == TIDE__LOG_RUN;
    uint32_t *n = is_run ? &f->n_runs_seen : &f->n_facts_seen;
    *bad = r->id != *n + 1;
    if (*bad) return TIDE_OK;
    const bool is_new = f->n_seen >= f->n_stored;
    if (is_run && (is_new ? f->n_runs != *n : f->n_runs <= *n))
        TIDE_TRY(forget_rows(d, f, is_new ? *n : (size_t)*n + 1, err));
    if (is_new) {
        // In the file it may change while it is looked at.
        void *copy = tide_host_alloc((size_t)r->payload_bytes + 1);
        if (copy == NULL) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
        memcpy(copy, payload, r->payload_bytes);
        const tide_status st = is_run ? take_run(d, f, copy, r->payload_bytes, bad, err)
                                      : take_fact(d, f, copy, r->payload_bytes, bad, err);
        tide_host_free(copy);
        TIDE_TRY(st);
        if (*bad) return TIDE_OK;
        f->n_stored = f->n_seen + 1;
        atomic_store_explicit(&f->head->n_registered, f->n_stored, memory_order_release);
    }
    ++*n;
    f->n_seen++;
    TIDE_ASSERT(f->n_runs_seen <= f->n_runs);
    return TIDE_OK;
}
