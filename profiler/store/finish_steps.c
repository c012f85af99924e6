// SPDX-License-Identifier: MIT
//
// First executions of operator steps. See finish_internal.h.
//
// What follows the entering of a scope on its thread is its leaving, or it was not left: then it has no end.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/cursor.h"
#include "profiler/store/finish_internal.h"

enum { MAX_FOUND = 1 << 18 }; ///< steps in memory; beyond that those of other runs are written

/// Of one scope: the step that it executes.
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

static tide_status no_memory(const tide__steps *t, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the steps of '%s'", t->sql->path);
}

// ---- scopes ----

static tide_status take_scope(tide__steps *t, sqlite3_stmt *stmt, tide_error *err) {
    const int64_t id = sqlite3_column_int64(stmt, 0);
    if (id != (int64_t)t->n_scopes + 1)
        return tide__cursor_bad(t->sql, "scope", id, "scopes are not numbered one by one", err);
    if (tide_host_grow(&t->scopes, &t->cap_scopes, t->n_scopes + 1, sizeof *t->scopes) != TIDE_OK)
        return no_memory(t, err);
    const bool has_step = strcmp(tide__sql_text(stmt, 2), "operator") == 0 &&
                          sqlite3_column_type(stmt, 3) == SQLITE_INTEGER && sqlite3_column_int64(stmt, 3) >= 0 &&
                          sqlite3_column_int64(stmt, 3) <= INT32_MAX;
    t->scopes[t->n_scopes++] = (tide__step_scope){.name_id = sqlite3_column_int64(stmt, 1),
                                                  .step = has_step ? sqlite3_column_int64(stmt, 3) : -1};
    return TIDE_OK;
}

tide_status tide__steps_init(tide__steps *t, const tide__sql *s, bool in_memory, tide_error *err) {
    *t = (tide__steps){.sql = s,
                       .found = TIDE_ID_MAP(step_entry),
                       .runs = TIDE_ID_MAP(run_entry),
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
    tide_id_map_deinit(&t->found);
    tide_id_map_deinit(&t->runs);
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
    if (order == NULL) return no_memory(t, err);
    size_t n = 0;
    for (size_t i = 0; i < t->found.cap; i++) {
        step_entry *e = tide_id_map_at(&t->found, i);
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
    tide_id_map found = TIDE_ID_MAP(step_entry), runs = TIDE_ID_MAP(run_entry);
    bool good = true;
    for (size_t i = 0; good && i < t->found.cap; i++) {
        const step_entry *e = tide_id_map_at(&t->found, i);
        if (e != NULL && e->key >> 32 == (uint64_t)run_id) good = tide_id_map_put(&found, e);
    }
    const run_entry *run = tide_id_map_find(&t->runs, (uint64_t)run_id);
    if (good && run != NULL) good = tide_id_map_put(&runs, run);
    tide_id_map_deinit(&t->found);
    tide_id_map_deinit(&t->runs);
    t->found = found;
    t->runs = runs;
    t->max_found = 2 * found.n > MAX_FOUND ? 2 * found.n : MAX_FOUND; // one run may have more
    return good ? TIDE_OK : no_memory(t, err);
}

tide_status tide__steps_end(tide__steps *t, tide_error *err) { return write_found(t, 0, err); }

// ---- events ----

static tide_status enter(tide__steps *t, const tide__event *e, int64_t step, tide_error *err) {
    const run_entry *run = tide_id_map_find(&t->runs, (uint64_t)e->run_id);
    const run_entry new_run = {.run_id = (uint64_t)e->run_id, .thread = e->thread};
    if (run == NULL && !tide_id_map_put(&t->runs, &new_run)) return no_memory(t, err);
    step_entry entry = {.key = key_of(e->run_id, step),
                        .begin_ns = e->t_ns,
                        .thread = e->thread,
                        .scope_id = e->scope_id,
                        .on_first_thread = run == NULL || run->thread == e->thread,
                        .waits = true};
    step_entry *old = tide_id_map_find(&t->found, entry.key);
    if (old == NULL) {
        if (t->found.n >= t->max_found) TIDE_TRY(make_room(t, e->run_id, err));
        return tide_id_map_put(&t->found, &entry) ? TIDE_OK : no_memory(t, err);
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
    step_entry *found = tide_id_map_find(&t->found, key_of(e->run_id, step));
    if (found != NULL && found->waits && found->thread == e->thread && found->scope_id == e->scope_id) {
        found->waits = false;
        found->has_end = true;
        found->end_ns = e->t_ns;
    }
    return TIDE_OK;
}
