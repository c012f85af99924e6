// SPDX-License-Identifier: MIT
//
// Copies events into the new trace and finds where each run begins and ends there; rows and plans of runs. See
// recover.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "profiler/read/recover.h"
#include "profiler/store/plan_rows.h"

// ---- which runs there are ----

static tide__run_place *find(const tide__copier *r, int64_t id) {
    size_t lo = 0, hi = r->n_runs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (r->runs[mid].id == id) return &r->runs[mid];
        if (r->runs[mid].id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

const tide__run_place *tide__copier_run(const tide__copier *r, int64_t id) { return find(r, id); }

/// Put a run in at its place among the others. Runs come in order of their numbers but for those whose row was lost.
static tide_status add(tide__copier *r, const tide__run_place *run, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&r->runs, &r->cap_runs, r->n_runs + 1, err, "for the runs of '%s'", r->in->path));
    size_t at = r->n_runs++;
    for (; at > 0 && r->runs[at - 1].id > run->id; at--) r->runs[at] = r->runs[at - 1];
    r->runs[at] = *run;
    r->last_run = 0;
    return TIDE_OK;
}

static tide_status take_run(void *ctx, sqlite3_stmt *row, tide_error *err) {
    tide__copier *r = ctx;
    tide__run_place run = {.has_row = true};
    bool good = tide__sql_number(row, 0, 1, INT32_MAX, &run.id);
    good = tide__sql_number(row, 1, 0, INT64_MAX, &run.begin_ns) && good;
    good = tide__sql_int_or(row, 2, run.begin_ns, INT64_MAX, -1, &run.end_ns) && good;
    good = tide__sql_int_or(row, 3, 1, INT64_MAX, 0, &run.first_event) && good;
    good = tide__sql_int_or(row, 4, run.first_event - 1, INT64_MAX, -1, &run.last_event) && good;
    if (!good) return TIDE_ERR_BAD_INPUT;
    return add(r, &run, err);
}

typedef struct run_key {
    int64_t event, id;
} run_key;

static int by_event(const void *a, const void *b) {
    const run_key *x = a, *y = b;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/// Numbers of the runs in order of their first or of their last event.
static tide_status sort_runs(const tide__copier *r, bool by_last, int64_t **out, tide_error *err) {
    run_key *keys;
    TIDE_TRY(TIDE_NEW(out, r->n_runs, err, "for the runs of '%s'", r->in->path));
    TIDE_TRY(TIDE_NEW(&keys, r->n_runs, err, "for the runs of '%s'", r->in->path));
    for (size_t i = 0; i < r->n_runs; i++)
        keys[i] = (run_key){by_last ? r->runs[i].last_event : r->runs[i].first_event, r->runs[i].id};
    if (r->n_runs > 1) qsort(keys, r->n_runs, sizeof *keys, by_event);
    for (size_t i = 0; i < r->n_runs; i++) (*out)[i] = keys[i].id;
    tide_host_free(keys);
    return TIDE_OK;
}

tide_status tide__copier_begin(tide__copier *r, tide__damaged *in, tide__new_trace *out, tide_error *err) {
    *r = (tide__copier){.in = in, .out = out};
    const uint64_t n_lost_rows = in->n_lost_rows; // counted when they are copied
    TIDE_TRY(tide__damaged_each(in, "run", "id", "id, begin_ns, end_ns, first_event, last_event", take_run, r, err));
    in->n_lost_rows = n_lost_rows;
    r->n_rows = r->n_runs;
    TIDE_TRY(sort_runs(r, false, &r->begins, err));
    return sort_runs(r, true, &r->ends, err);
}

void tide__copier_deinit(tide__copier *r) {
    tide_host_free(r->runs);
    tide_host_free(r->begins);
    tide_host_free(r->ends);
    *r = (tide__copier){0};
}

// ---- events ----

void tide__copier_pass(tide__copier *r, int64_t old_event) {
    for (; r->next_begin < r->n_rows; r->next_begin++) {
        tide__run_place *run = find(r, r->begins[r->next_begin]);
        if (run->first_event > old_event) break;
        if (run->first_event > 0) run->place_first = r->out->last_event + 1;
    }
    for (; r->next_end < r->n_rows; r->next_end++) {
        tide__run_place *run = find(r, r->ends[r->next_end]);
        if (run->last_event >= old_event) break;
        run->place_last = r->passed;
    }
    r->passed = r->out->last_event + 1;
}

/// Extend the run of an event by it; a run without a row is added.
static tide_status note_run(tide__copier *r, const tide__event *e, int64_t event_id, tide_error *err) {
    const int64_t run_id = e->run_id;
    tide__run_place *run = r->last_run < r->n_runs && r->runs[r->last_run].id == run_id ? &r->runs[r->last_run] : NULL;
    if (run == NULL) run = find(r, run_id);
    if (run == NULL) {
        r->in->n_lost_rows++;
        TIDE_TRY(
            add(r, &(tide__run_place){.id = run_id, .begin_ns = r->out->last_ns, .end_ns = -1, .last_event = -1}, err));
        run = find(r, run_id);
    }
    r->last_run = (size_t)(run - r->runs);
    if (run->new_first == 0) run->new_first = event_id;
    run->new_last = event_id;
    if (!run->has_row) run->end_ns = r->out->last_ns;
    if (e->id < run->first_event || (run->last_event >= 0 && e->id > run->last_event)) run->contradicts = true;
    return TIDE_OK;
}

tide_status tide__copier_event(tide__copier *r, const tide__event *e, bool as_chunk, tide_error *err) {
    tide__event next = *e;
    const tide_status st = tide__damaged_rename_event(r->in, &r->out->names, &next, err);
    if (st == TIDE_ERR_BAD_INPUT) return TIDE_FAIL(err, st, "cannot read '%s'", r->in->path);
    TIDE_TRY(st);
    TIDE_TRY(tide__new_trace_event(r->out, &next, as_chunk, err));
    return e->run_id == 0 ? TIDE_OK : note_run(r, e, r->out->last_event, err);
}

tide_status tide__copier_gap(tide__copier *r, uint64_t n, int64_t t_ns, bool as_chunk, tide_error *err) {
    if (n == 0) return TIDE_OK;
    r->out->forgive = true; // later events may free blocks whose alloc is among the missing ones
    r->n_lost += n;
    const tide__event gap = {.t_ns = t_ns,
                             .op = TIDE__OP_GAP,
                             .kind = TIDE__NO_KIND,
                             .requested_bytes = n < INT64_MAX ? (int64_t)n : INT64_MAX};
    return tide__new_trace_event(r->out, &gap, as_chunk, err);
}

// ---- plans ----

static tide_status delete_plan(const tide__sql *out, int64_t run_id, tide_error *err) {
    static const char *const deletes[] = {"DELETE FROM plan WHERE run_id = ?",
                                          "DELETE FROM plan_buffer WHERE run_id = ?",
                                          "DELETE FROM plan_tensor WHERE run_id = ?",
                                          "DELETE FROM plan_gap WHERE run_id = ?",
                                          "DELETE FROM plan_point WHERE run_id = ?",
                                          "DELETE FROM plan_point_size WHERE run_id = ?",
                                          "DELETE FROM plan_pool WHERE run_id = ?",
                                          "DELETE FROM plan_step WHERE run_id = ?",
                                          "DELETE FROM plan_recomputed WHERE run_id = ?",
                                          "DELETE FROM plan_dynamic WHERE run_id = ?",
                                          "DELETE FROM plan_region WHERE run_id = ?",
                                          "DELETE FROM plan_part WHERE run_id = ?"};
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        sqlite3_stmt *stmt;
        TIDE_TRY(tide__sql_prepare(out, deletes[i], &stmt, err));
        sqlite3_bind_int64(stmt, 1, run_id);
        const tide_status st = tide__sql_run(out, stmt, err);
        sqlite3_finalize(stmt);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

/// TIDE_ERR_BAD_INPUT, TIDE_ERR_NOT_FOUND: the plan cannot be read.
static tide_status read_and_write_plan(const tide__damaged *in, const tide__sql *out, int64_t run_id, tide_error *err) {
    static const char *const tables[] = {
        "plan",      "plan_buffer", "plan_tensor",     "plan_gap",     "plan_point", "plan_point_size",
        "plan_pool", "plan_step",   "plan_recomputed", "plan_dynamic", "plan_region"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        bool has;
        TIDE_TRY(tide__damaged_has_table(in, tables[i], &has, err));
        if (!has) return TIDE_ERR_BAD_INPUT;
    }
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_rows_read(&in->sql, run_id, &plan, err));
    const tide_status st = tide__plan_rows_write(out, run_id, plan, err);
    tide_memory_plan_destroy(plan);
    return st;
}

/// The plan of a run; *has is false for one that cannot be read.
static tide_status copy_plan(tide__damaged *in, const tide__sql *out, int64_t run_id, bool *has, tide_error *err) {
    const tide_status st = read_and_write_plan(in, out, run_id, err);
    *has = st == TIDE_OK;
    if (st == TIDE_OK || (st != TIDE_ERR_BAD_INPUT && st != TIDE_ERR_NOT_FOUND)) return st;
    tide_error_clear(err);
    in->n_lost_rows++;
    return delete_plan(out, run_id, err);
}

// ---- rows of runs ----

typedef struct run_writer {
    tide__copier *r;
    const tide__sql *out;
    sqlite3_stmt *insert;
} run_writer;

/// Parameters 6 to 9 of the insert: where the run lies, by its own events and those around it.
static void bind_place(sqlite3_stmt *stmt, const tide__copier *r, const tide__run_place *run) {
    int64_t first = run->place_first != 0 ? run->place_first : r->out->last_event + 1;
    int64_t last = run->place_last != 0 ? run->place_last : r->passed;
    if (run->first_event > 0 && run->first_event <= r->unchanged) first = run->first_event;
    if (run->last_event >= 0 && run->last_event <= r->unchanged) last = run->last_event;
    if (run->new_first != 0 && (run->new_first < first || run->first_event == 0)) first = run->new_first;
    if (run->new_last > last || !run->has_row) last = run->new_last;
    if (run->contradicts) {
        first = run->new_first;
        last = run->new_last;
    }
    if (last < first) last = first - 1;
    const bool has_begun = run->first_event != 0 || run->new_first != 0;
    sqlite3_bind_int64(stmt, 6, run->begin_ns);
    if (run->end_ns >= 0) sqlite3_bind_int64(stmt, 7, run->end_ns);
    if (has_begun) sqlite3_bind_int64(stmt, 8, first);
    if (has_begun && (run->last_event >= 0 || !run->has_row)) sqlite3_bind_int64(stmt, 9, last);
}

static tide_status take_row(void *ctx, sqlite3_stmt *row, tide_error *err) {
    run_writer *w = ctx;
    tide__copier *r = w->r;
    const int64_t id = sqlite3_column_int64(row, 0);
    int64_t contexts, process, bytes[3];
    bool good = sqlite3_column_type(row, 1) == SQLITE_TEXT && sqlite3_column_type(row, 3) == SQLITE_TEXT &&
                sqlite3_column_type(row, 5) == SQLITE_TEXT;
    for (int i = 0; i < 3; i++) good = tide__sql_int_or(row, 6 + i, 0, INT64_MAX, -1, &bytes[i]) && good;
    good = tide__sql_number(row, 9, 1, INT32_MAX, &contexts) && good;
    good = tide__sql_number(row, 10, 1, INT32_MAX, &process) && good;
    const tide__run_place *run = find(r, id);
    if (run != NULL && !run->has_row) return TIDE_OK; // written from its events below
    if (!good || run == NULL) return TIDE_ERR_BAD_INPUT;
    bool has_plan = bytes[0] >= 0;
    if (has_plan) TIDE_TRY(copy_plan(r->in, w->out, id, &has_plan, err));
    sqlite3_stmt *stmt = w->insert;
    sqlite3_bind_int64(stmt, 1, id);
    for (int i = 1; i <= 4; i++)
        if (sqlite3_column_type(row, i) == SQLITE_TEXT) tide__sql_bind_text(stmt, 1 + i, tide__sql_text(row, i));
    bind_place(stmt, r, run);
    tide__sql_bind_text(stmt, 10, tide__sql_text(row, 5));
    for (int i = 0; has_plan && i < 3; i++)
        if (bytes[i] >= 0) sqlite3_bind_int64(stmt, 11 + i, bytes[i]);
    sqlite3_bind_int64(stmt, 14, contexts);
    sqlite3_bind_int64(stmt, 15, process);
    return tide__sql_run(w->out, stmt, err);
}

/// Rows for runs that only events refer to.
static tide_status write_lost(run_writer *w, tide_error *err) {
    for (size_t i = 0; i < w->r->n_runs; i++) {
        const tide__run_place *run = &w->r->runs[i];
        if (run->has_row) continue;
        w->r->in->n_lost_rows++;
        sqlite3_bind_int64(w->insert, 1, run->id);
        tide__sql_bind_text(w->insert, 2, "(lost)");
        tide__sql_bind_text(w->insert, 4, "");
        bind_place(w->insert, w->r, run);
        tide__sql_bind_text(w->insert, 10, "cpu");
        sqlite3_bind_int64(w->insert, 14, 1);
        sqlite3_bind_int64(w->insert, 15, 1);
        TIDE_TRY(tide__sql_run(w->out, w->insert, err));
    }
    return TIDE_OK;
}

tide_status tide__copier_write_runs(tide__copier *r, tide_error *err) {
    run_writer w = {.r = r};
    TIDE_TRY(tide__new_trace_sql(r->out, &w.out, err));
    TIDE_TRY(tide__sql_prepare(w.out,
                               "INSERT INTO run(id, model, source, mode, strategy, begin_ns, end_ns, first_event, "
                               "last_event, device, plan_bytes, plan_naive_bytes, plan_lower_bound_bytes, contexts, "
                               "process_id) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               &w.insert, err));
    tide_status st = tide__damaged_each(r->in, "run", "id",
                                        "id, model, source, mode, strategy, device, plan_bytes, plan_naive_bytes, "
                                        "plan_lower_bound_bytes, contexts, process_id",
                                        take_row, &w, err);
    if (st == TIDE_OK) st = write_lost(&w, err);
    sqlite3_finalize(w.insert);
    return st;
}
