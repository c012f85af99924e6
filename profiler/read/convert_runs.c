// SPDX-License-Identifier: MIT
//
// Events told again, with their runs. See convert_runs.h.
#include "profiler/read/convert_runs.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/host_alloc.h"

// ---- which runs there are ----

static tide_status no_memory(const tide__retell *r, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the runs of '%s'", r->in->path);
}

static tide__run_place *find(const tide__retell *r, int64_t id) {
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

const tide__run_place *tide__retell_run(const tide__retell *r, int64_t id) { return find(r, id); }

/// Put a run in at its place among the others. Runs come in order of their numbers but for those whose row was lost.
static tide_status add(tide__retell *r, const tide__run_place *run, tide_error *err) {
    if (tide_host_grow(&r->runs, &r->cap_runs, r->n_runs + 1, sizeof *r->runs) != TIDE_OK) return no_memory(r, err);
    size_t at = r->n_runs++;
    for (; at > 0 && r->runs[at - 1].id > run->id; at--) r->runs[at] = r->runs[at - 1];
    r->runs[at] = *run;
    r->last_run = 0;
    return TIDE_OK;
}

static tide_status take_run(void *ctx, sqlite3_stmt *row, tide_error *err) {
    tide__retell *r = ctx;
    tide__run_place run = {.has_row = true};
    bool good = tide__in_number(row, 0, 1, INT32_MAX, &run.id);
    good = tide__in_number(row, 1, 0, INT64_MAX, &run.begin_ns) && good;
    good = tide__in_int(row, 2, run.begin_ns, INT64_MAX, -1, &run.end_ns) && good;
    good = tide__in_int(row, 3, 1, INT64_MAX, 0, &run.first_event) && good;
    good = tide__in_int(row, 4, run.first_event - 1, INT64_MAX, -1, &run.last_event) && good;
    if (r->in->version < 3 && !r->in->lenient) {
        // A closed recording had ended every run, one after the other.
        const tide__run_place *before = r->n_runs > 0 ? &r->runs[r->n_runs - 1] : NULL;
        good =
            good && run.end_ns >= 0 && run.first_event > 0 && run.last_event >= 0 && run.id == (int64_t)r->n_runs + 1;
        good = good && (before == NULL || (before->last_event < run.first_event && before->end_ns <= run.begin_ns));
    }
    if (!good) return tide__in_bad_row(r->in, "run", sqlite3_column_int64(row, 0), err);
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

/// Runs by their first or by their last event.
static int64_t *sorted_runs(const tide__retell *r, run_key *keys, bool by_last) {
    int64_t *ids = tide_host_calloc(r->n_runs, sizeof *ids);
    if (ids == NULL) return NULL;
    for (size_t i = 0; i < r->n_runs; i++)
        keys[i] = (run_key){by_last ? r->runs[i].last_event : r->runs[i].first_event, r->runs[i].id};
    if (r->n_runs > 1) qsort(keys, r->n_runs, sizeof *keys, by_event);
    for (size_t i = 0; i < r->n_runs; i++) ids[i] = keys[i].id;
    return ids;
}

tide_status tide__retell_begin(tide__retell *r, tide__in *in, tide__out *out, tide_error *err) {
    *r = (tide__retell){.in = in, .out = out};
    const uint64_t n_lost_rows = in->n_lost_rows; // counted when they are copied
    TIDE_TRY(tide__in_each(in, "run", "id", "id, begin_ns, end_ns, first_event, last_event", take_run, r, err));
    in->n_lost_rows = n_lost_rows;
    run_key *keys = tide_host_calloc(r->n_runs, sizeof *keys);
    if (keys == NULL) return no_memory(r, err);
    r->n_rows = r->n_runs;
    r->begins = sorted_runs(r, keys, false);
    r->ends = sorted_runs(r, keys, true);
    tide_host_free(keys);
    return r->begins != NULL && r->ends != NULL ? TIDE_OK : no_memory(r, err);
}

void tide__retell_deinit(tide__retell *r) {
    tide_host_free(r->runs);
    tide_host_free(r->begins);
    tide_host_free(r->ends);
    *r = (tide__retell){0};
}

// ---- events ----

void tide__retell_pass(tide__retell *r, int64_t old_event) {
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

bool tide__retell_run_holds(const tide__retell *r, const tide__event *e) {
    const tide__run_place *run = r->next_begin > 0 ? find(r, r->begins[r->next_begin - 1]) : NULL;
    return e->run_id == (run != NULL && run->last_event >= e->id ? run->id : 0);
}

/// The run that an event belongs to is there, and grows by it.
static tide_status note_run(tide__retell *r, const tide__event *e, int64_t event_id, tide_error *err) {
    const int64_t run_id = e->run_id;
    tide__run_place *run = r->last_run < r->n_runs && r->runs[r->last_run].id == run_id ? &r->runs[r->last_run] : NULL;
    if (run == NULL) run = find(r, run_id);
    if (run == NULL && !r->in->lenient) return TIDE_ERR_BAD_INPUT;
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
    // In older versions runs counted memory events alone.
    const bool is_counted = r->in->version >= 3 || tide__event_is_memory(e);
    if (is_counted && (e->id < run->first_event || (run->last_event >= 0 && e->id > run->last_event)))
        run->contradicts = true;
    return TIDE_OK;
}

tide_status tide__retell_event(tide__retell *r, const tide__event *e, const char *table, bool as_chunk,
                               tide_error *err) {
    tide__event next = *e;
    tide_status st = tide__in_rename_event(r->in, &r->out->names, &next, err);
    if (st == TIDE_ERR_BAD_INPUT) return tide__in_bad_row(r->in, table, e->id, err);
    TIDE_TRY(st);
    TIDE_TRY(tide__out_event(r->out, &next, as_chunk, err));
    r->n_kept++;
    if (e->run_id == 0) return TIDE_OK;
    st = note_run(r, e, r->out->last_event, err);
    return st == TIDE_ERR_BAD_INPUT ? tide__in_bad_row(r->in, table, e->id, err) : st;
}

tide_status tide__retell_gap(tide__retell *r, uint64_t n, int64_t t_ns, bool as_chunk, tide_error *err) {
    if (n == 0) return TIDE_OK;
    r->out->forgive = true; // what follows may end blocks whose alloc is among those
    r->n_lost += n;
    const tide__event gap = {.t_ns = t_ns,
                             .op = TIDE__OP_GAP,
                             .kind = TIDE__NO_KIND,
                             .requested_bytes = n < INT64_MAX ? (int64_t)n : INT64_MAX};
    return tide__out_event(r->out, &gap, as_chunk, err);
}

// ---- rows of runs ----

typedef struct run_writer {
    tide__retell *r;
    const tide__sql *out;
    sqlite3_stmt *insert;
} run_writer;

/// Parameters 6 to 9 of the insert: where the run lies. Its own events tell, and those around it.
static void bind_place(sqlite3_stmt *stmt, const tide__retell *r, const tide__run_place *run) {
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
    if (last < first || (run->new_first == 0 && r->in->version < 3)) last = first - 1;
    const bool has_begun = run->first_event != 0 || run->new_first != 0;
    sqlite3_bind_int64(stmt, 6, run->begin_ns);
    if (run->end_ns >= 0) sqlite3_bind_int64(stmt, 7, run->end_ns);
    if (has_begun) sqlite3_bind_int64(stmt, 8, first);
    if (has_begun && (run->last_event >= 0 || !run->has_row)) sqlite3_bind_int64(stmt, 9, last);
}

static tide_status take_row(void *ctx, sqlite3_stmt *row, tide_error *err) {
    run_writer *w = ctx;
    tide__retell *r = w->r;
    const int64_t id = sqlite3_column_int64(row, 0);
    int64_t contexts, process, bytes[3];
    bool good = sqlite3_column_type(row, 1) == SQLITE_TEXT && sqlite3_column_type(row, 3) == SQLITE_TEXT &&
                sqlite3_column_type(row, 5) == SQLITE_TEXT;
    for (int i = 0; i < 3; i++) good = tide__in_int(row, 6 + i, 0, INT64_MAX, -1, &bytes[i]) && good;
    good = tide__in_number(row, 9, 1, INT32_MAX, &contexts) && good;
    good = tide__in_number(row, 10, 1, INT32_MAX, &process) && good;
    const tide__run_place *run = find(r, id);
    if (run != NULL && !run->has_row) return TIDE_OK; // told from its events below
    if (!good || run == NULL) return tide__in_bad_row(r->in, "run", id, err);
    bool has_plan = bytes[0] >= 0;
    if (has_plan) TIDE_TRY(tide__convert_plan(r->in, r->out, id, &has_plan, err));
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

/// Rows for runs that only their events tell of.
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

tide_status tide__retell_runs(tide__retell *r, tide_error *err) {
    // The first files of version 1 ran one context each and did not say so.
    bool has_contexts;
    TIDE_TRY(tide__in_has_column(r->in, "run", "contexts", &has_contexts, err));
    char columns[160];
    snprintf(columns, sizeof columns,
             "id, model, source, mode, strategy, device, plan_bytes, plan_naive_bytes, plan_lower_bound_bytes, %s, %s",
             has_contexts || r->in->version >= 2 ? "contexts" : "1", r->in->version >= 3 ? "process_id" : "1");
    run_writer w = {.r = r};
    TIDE_TRY(tide__out_sql(r->out, &w.out, err));
    TIDE_TRY(tide__sql_prepare(w.out,
                               "INSERT INTO run(id, model, source, mode, strategy, begin_ns, end_ns, first_event, "
                               "last_event, device, plan_bytes, plan_naive_bytes, plan_lower_bound_bytes, contexts, "
                               "process_id) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               &w.insert, err));
    tide_status st = tide__in_each(r->in, "run", "id", columns, take_row, &w, err);
    if (st == TIDE_OK) st = write_lost(&w, err);
    sqlite3_finalize(w.insert);
    return st;
}
