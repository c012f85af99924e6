// SPDX-License-Identifier: MIT
//
// One input of a merge: its rows and events with the numbers of the new trace. See merge_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/devices.h"
#include "profiler/merge/merge_internal.h"
#include "profiler/store/cursor.h"
#include "profiler/store/plan_rows.h"

enum { MAX_PROCESSES = 1 << (63 - TIDE__BLOCK_ID_BITS) };
static const int64_t low_bits = ((int64_t)1 << TIDE__BLOCK_ID_BITS) - 1;

tide_status tide__merge_bad(const tide__merge_source *s, const char *table, int64_t id, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", tide__merge_name(s));
    tide_error_where(err, "%s: table %s, row %" PRId64, tide__merge_name(s), table, id);
    tide_error_note(err, "damaged: it holds what no recorder writes");
    return st;
}

static tide_status no_memory(const tide__merge_source *s, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to merge '%s'", tide__merge_name(s));
}

// ---- rows ----

typedef tide_status (*row_fn)(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err);

/// `fn` for each row of `query`, whose first column says which one it is; its TIDE_ERR_BAD_INPUT is one of `table`.
static tide_status each_row(tide__merge_source *s, const char *table, const char *query, row_fn fn, void *ctx,
                            tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->t->sql, query, &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&s->t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = fn(s, stmt, ctx, err);
        if (st == TIDE_ERR_NOMEM) st = no_memory(s, err);
        if (st == TIDE_ERR_BAD_INPUT) st = tide__merge_bad(s, table, sqlite3_column_int64(stmt, 0), err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

static const char *text_or_null(sqlite3_stmt *row, int i) {
    return sqlite3_column_type(row, i) == SQLITE_TEXT ? tide__sql_text(row, i) : NULL;
}

tide_status tide__merge_map_put(tide__merge_map *m, int64_t id, int64_t to) {
    TIDE_ASSERT(id > 0 && to > 0);
    if ((size_t)id >= m->n) {
        const size_t n = (size_t)id + 1 > 2 * m->n ? (size_t)id + 1 : 2 * m->n;
        TIDE_TRY(tide_host_grow(&m->to, &(size_t){m->n}, n, sizeof *m->to));
        memset(m->to + m->n, 0, (n - m->n) * sizeof *m->to);
        m->n = n;
    }
    m->to[id] = (int32_t)to;
    return TIDE_OK;
}

int32_t tide__merge_map_get(const tide__merge_map *m, int64_t id) {
    return id > 0 && (uint64_t)id < m->n ? m->to[id] : 0;
}

// ---- what is known before anything is written ----

static tide_status take_clock(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    (void)err;
    bool *is_first = ctx;
    int64_t id, begin, end, wall;
    if (!tide__sql_number(row, 0, 1, MAX_PROCESSES - 1, &id) || !tide__sql_int_or(row, 3, 0, INT64_MAX, -1, &begin) ||
        begin < 0 || !tide__sql_int_or(row, 4, 0, INT64_MAX, INT64_MAX, &end) ||
        !tide__sql_int_or(row, 2, INT64_MIN, INT64_MAX, 0, &wall))
        return TIDE_ERR_BAD_INPUT;
    // A program that gave its events times of its own: those of its process are the machine's, and lie elsewhere.
    const bool is_machines = begin <= s->t->end_ns && end >= s->t->begin_ns;
    const char *boot = is_machines ? tide__sql_text(row, 1) : "";
    const bool has_wall = is_machines && sqlite3_column_type(row, 2) == SQLITE_INTEGER;
    if (*is_first) {
        snprintf(s->boot_id, sizeof s->boot_id, "%s", strlen(boot) < sizeof s->boot_id ? boot : "");
        s->has_wall = has_wall;
        s->wall_ns = wall;
    }
    if (strcmp(boot, s->boot_id) != 0) s->boot_id[0] = '\0';
    s->has_wall = s->has_wall && has_wall;
    *is_first = false;
    s->lane->n_processes++;
    return TIDE_OK;
}

static tide_status take_run(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    (void)ctx;
    (void)err;
    tide__merge_run run = {0};
    const int64_t last = TIDE__MAX_EVENT;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &run.id) ||
        !tide__sql_int_or(row, 1, 0, INT64_MAX, -1, &run.begin_ns) || run.begin_ns < 0 ||
        !tide__sql_int_or(row, 2, run.begin_ns, INT64_MAX, -1, &run.end_ns) ||
        !tide__sql_int_or(row, 3, 1, last, 0, &run.first_event) ||
        !tide__sql_int_or(row, 4, run.first_event > 0 ? run.first_event - 1 : 0, last, -1, &run.last_event) ||
        !tide__sql_number(row, 5, 1, MAX_PROCESSES - 1, &run.process))
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&s->runs, &s->cap_runs, s->n_runs + 1, sizeof *s->runs));
    s->runs[s->n_runs++] = run;
    return TIDE_OK;
}

static tide_status take_late(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    (void)ctx;
    (void)err;
    tide__merge_late late;
    if (!tide__sql_number(row, 0, 1, TIDE__MAX_EVENT, &late.event) ||
        !tide__sql_int_or(row, 1, 0, INT64_MAX, 0, &late.own_ns))
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&s->late, &s->cap_late, s->n_late + 1, sizeof *s->late));
    s->late[s->n_late++] = late;
    return TIDE_OK;
}

// ---- what was alive before the first event that is kept ----

static int by_event(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->op > y->op) - (x->op < y->op);
}

static int by_time(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    return x->t_ns != y->t_ns ? (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns) : by_event(a, b);
}

static tide__event alloc_of(const tide__live_block *b) {
    tide__event e;
    memcpy(&e, b, sizeof e); // all but the last field of a live block are those of its allocation
    e.op = TIDE_MEM_ALLOC;
    return e;
}

/// Thinning dropped the oldest events: the blocks that were alive then begin the lane, each at its own time.
static tide_status read_before(tide__merge_source *s, tide_error *err) {
    const tide__replay *r;
    const tide__live_block *b;
    s->first_ns = s->t->begin_ns;
    if (s->t->first_event <= 1) return TIDE_OK;
    TIDE_TRY(tide__trace_state_after(s->t, s->t->first_event - 1, &r, err));
    const size_t n = tide__replay_n_live(r);
    TIDE_TRY(TIDE_NEW(&s->before, 2 * n + 1, err, "to merge '%s'", tide__merge_name(s)));
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        const tide__event alloc = alloc_of(b);
        s->before[s->n_before++] = alloc;
        if (b->free_requested_ns == 0) continue;
        tide__event *asked = &s->before[s->n_before++];
        *asked = alloc;
        asked->op = TIDE_MEM_FREE_REQUESTED;
        asked->t_ns = b->free_requested_ns;
    }
    TIDE_ASSERT(s->n_before <= 2 * n);
    if (s->n_before > 1) qsort(s->before, s->n_before, sizeof *s->before, by_time);
    if (s->n_before > 0 && s->before[0].t_ns < s->first_ns) s->first_ns = s->before[0].t_ns;
    s->lane->n_dropped = (uint64_t)(s->t->first_event - 1);
    return TIDE_OK;
}

// ---- opening ----

typedef struct run_key {
    int64_t event;
    size_t run;
} run_key;

static int by_key(const void *a, const void *b) {
    const run_key *x = a, *y = b;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

/// Indices of the runs by their first, or their last event; those that have none come first.
static tide_status sort_runs(const tide__merge_source *s, bool by_last, size_t **out, tide_error *err) {
    run_key *keys;
    TIDE_TRY(TIDE_NEW(out, s->n_runs + 1, err, "to merge '%s'", tide__merge_name(s)));
    TIDE_TRY(TIDE_NEW(&keys, s->n_runs + 1, err, "to merge '%s'", tide__merge_name(s)));
    for (size_t i = 0; i < s->n_runs; i++)
        keys[i] = (run_key){by_last ? s->runs[i].last_event : s->runs[i].first_event, i};
    if (s->n_runs > 1) qsort(keys, s->n_runs, sizeof *keys, by_key);
    for (size_t i = 0; i < s->n_runs; i++) (*out)[i] = keys[i].run;
    tide_host_free(keys);
    return TIDE_OK;
}

static tide_status check_state(const tide__merge_source *s, tide_error *err) {
    if (s->t->state != TIDE_TRACE_RECORDING) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot merge '%s': it is still being recorded", tide__merge_name(s));
    tide_error_hint(err, "merge it when its recording has ended");
    return st;
}

tide_status tide__merge_source_open(tide__merge_source *s, tide_error *err) {
    bool is_first = true;
    int64_t n_orphans = 0;
    TIDE_TRY(tide_trace_open(s->in->path, &s->t, err));
    TIDE_TRY(check_state(s, err));
    TIDE_TRY(each_row(s, "process", "SELECT id, boot_id, wall_ns, begin_ns, end_ns FROM main.process ORDER BY id",
                      take_clock, &is_first, err));
    TIDE_TRY(each_row(s, "run",
                      "SELECT id, begin_ns, end_ns, first_event, last_event, process_id FROM main.run ORDER BY id",
                      take_run, NULL, err));
    TIDE_TRY(each_row(s, "problem",
                      "SELECT event_id, CAST(substr(what, instr(what, 'own time is ') + 12) AS INTEGER) "
                      "FROM main.problem WHERE problem = 8 ORDER BY event_id",
                      take_late, NULL, err));
    TIDE_TRY(sort_runs(s, false, &s->begins, err));
    TIDE_TRY(sort_runs(s, true, &s->ends, err));
    const tide_status st = tide__trace_meta_number(s->t, "n_orphan_frees", &n_orphans, err);
    if (st != TIDE_OK) return st;
    s->has_orphans = n_orphans > 0;
    return read_before(s, err);
}

// ---- its rows in the new trace ----

/// "rank0"; of several processes "hosts/rank 3" or "hosts/4711", and of a trace that was merged "hosts/rank0".
static void add_label(const tide__merge_source *s, sqlite3_stmt *row, int64_t pid, int64_t rank, tide_text *out) {
    tide_text_add(out, s->in->label);
    if (text_or_null(row, 7) != NULL)
        tide_text_addf(out, "/%s", tide__sql_text(row, 7));
    else if (s->lane->n_processes > 1 && rank >= 0)
        tide_text_addf(out, "/rank %" PRId64, rank);
    else if (s->lane->n_processes > 1)
        tide_text_addf(out, "/%" PRId64, pid);
}

static tide_status copy_process(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t id, begin, end, rank, pid, new_id;
    if (!tide__sql_number(row, 0, 1, MAX_PROCESSES - 1, &id) || !tide__sql_int_or(row, 1, 0, INT64_MAX, 0, &pid) ||
        !tide__sql_int_or(row, 2, 0, INT32_MAX, -1, &rank) || !tide__sql_int_or(row, 4, 0, INT64_MAX, 0, &begin) ||
        !tide__sql_int_or(row, 5, 0, INT64_MAX, -1, &end))
        return TIDE_ERR_BAD_INPUT;
    tide_text label = {0};
    add_label(s, row, pid, rank, &label);
    const tide__process_row p = {.pid = pid,
                                 .rank = (int32_t)rank,
                                 .command = text_or_null(row, 3),
                                 .label = tide_text_str(&label),
                                 .boot_id = s->shift_ns == 0 && s->boot_id[0] != '\0' ? s->boot_id : NULL,
                                 .has_wall = s->has_wall,
                                 .wall_ns = s->wall_ns - s->shift_ns,
                                 .begin_ns = begin + s->shift_ns > 0 ? begin + s->shift_ns : 0};
    const tide__sql *sql; // begins a transaction
    tide_status st = label.failed ? TIDE_ERR_NOMEM : tide__new_trace_sql(out, &sql, err);
    if (st == TIDE_OK) st = tide__store_add_process(out->store, &p, &new_id, err);
    tide_text_deinit(&label);
    TIDE_TRY(st);
    if (new_id >= MAX_PROCESSES)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "cannot merge '%s': there are more than %d processes",
                         tide__merge_name(s), MAX_PROCESSES - 1);
    if (s->lane->first_process == 0) s->lane->first_process = new_id;
    TIDE_TRY(tide__merge_map_put(&s->processes, id, new_id));
    return end >= 0 || text_or_null(row, 6) != NULL
               ? tide__store_end_process(out->store, new_id, text_or_null(row, 6),
                                         end + s->shift_ns > 0 ? end + s->shift_ns : 0, err)
               : TIDE_OK;
}

static tide_status copy_text(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t id, new_id;
    (void)err;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &id) || sqlite3_column_type(row, 1) != SQLITE_TEXT)
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_text(&out->names, tide__sql_text(row, 1), &new_id));
    return tide__merge_map_put(&s->texts, id, new_id);
}

/// Each behind its parent, which has a larger number where frames were named after the run.
static const char *scopes_of(const tide__merge_source *s) {
    if (!s->t->names.has_later_parents) return "SELECT id, name_id, kind, step, parent_id FROM main.scope ORDER BY id";
    return "WITH RECURSIVE way(id, depth) AS (SELECT id, 0 FROM main.scope WHERE parent_id IS NULL UNION ALL\n"
           "  SELECT s.id, w.depth + 1 FROM way w JOIN main.scope s ON s.parent_id = w.id)\n"
           "SELECT s.id, s.name_id, s.kind, s.step, s.parent_id FROM way w JOIN main.scope s ON s.id = w.id\n"
           "ORDER BY w.depth, s.id";
}

static tide_status copy_scope(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t id, name, step, parent, new_id;
    (void)err;
    tide__scope_row scope = {0};
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &id) || !tide__sql_number(row, 1, 1, INT32_MAX, &name) ||
        !tide__names_scope_kind(tide__sql_text(row, 2), &scope.kind) ||
        !tide__sql_int_or(row, 3, 0, INT32_MAX, -1, &step) || !tide__sql_int_or(row, 4, 1, INT32_MAX, 0, &parent))
        return TIDE_ERR_BAD_INPUT;
    scope.step = (int32_t)step;
    scope.name_id = tide__merge_map_get(&s->texts, name);
    scope.parent_id = tide__merge_map_get(&s->scopes, parent);
    if (scope.name_id == 0 || (parent != 0 && scope.parent_id == 0)) return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_scope_row(&out->names, &scope, &new_id));
    return tide__merge_map_put(&s->scopes, id, new_id);
}

static tide_status copy_thread(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t id, process, number, new_id;
    (void)err;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &id) || !tide__sql_number(row, 1, 1, MAX_PROCESSES - 1, &process) ||
        !tide__sql_number(row, 2, 1, INT32_MAX, &number) || tide__merge_map_get(&s->processes, process) == 0)
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_thread(&out->names, tide__merge_map_get(&s->processes, process), number, text_or_null(row, 3),
                                &new_id));
    return tide__merge_map_put(&s->threads, id, new_id);
}

// ---- runs ----

/// Devices of the plan by the names that they have in the new trace. One that the trace does not have keeps its own.
static tide_status rename_devices(const tide__merge_source *s, const tide__merge_devices *devices,
                                  tide_memory_plan *plan) {
    tide_lifetimes *lt = &plan->lifetimes;
    for (size_t i = 0; i < lt->n + plan->n_buffers; i++) {
        tide_device *d = i < lt->n ? &lt->items[i].device : &plan->buffers[i - lt->n].device;
        char name[32];
        const int64_t id = tide__trace_device_find(s->t, tide_device_format(*d, name, sizeof name));
        const int32_t number = tide__merge_map_get(&s->devices, id);
        if (number > 0) TIDE_TRY(tide_device_parse(devices->items[number - 1].name, d, NULL));
    }
    return TIDE_OK;
}

static tide_status insert_run(tide__merge_source *s, tide__merge_run *run, sqlite3_stmt *row, tide__new_trace *out,
                              const tide__merge_devices *devices, tide_error *err) {
    int64_t contexts;
    if (!tide__sql_int_or(row, 4, 1, INT32_MAX, 1, &contexts) || tide__merge_map_get(&s->processes, run->process) == 0)
        return tide__merge_bad(s, "run", run->id, err);
    tide_memory_plan *plan = NULL;
    tide_status st = tide__plan_rows_read(&s->t->sql, run->id, &plan, err);
    if (st == TIDE_ERR_NOT_FOUND) {
        tide_error_clear(err);
        st = TIDE_OK;
    }
    TIDE_TRY(st);
    const int32_t device = tide__merge_map_get(&s->devices, tide__trace_device_find(s->t, tide__sql_text(row, 5)));
    const tide_run_info info = {.model = tide__sql_text(row, 0),
                                .source = text_or_null(row, 1),
                                .mode = tide__sql_text(row, 2),
                                .strategy = text_or_null(row, 3),
                                .n_contexts = (uint32_t)contexts,
                                .device = device > 0 ? devices->items[device - 1].name : tide__sql_text(row, 5)};
    if (plan != NULL && rename_devices(s, devices, plan) != TIDE_OK) st = tide__merge_bad(s, "plan", run->id, err);
    if (st == TIDE_OK)
        st = tide__store_add_run(out->store, tide__merge_map_get(&s->processes, run->process), &info, plan,
                                 run->begin_ns + s->shift_ns, &run->new_id, err);
    tide_memory_plan_destroy(plan);
    return st;
}

tide_status tide__merge_source_run(tide__merge_source *s, tide__merge_run *run, tide__new_trace *out,
                                   const tide__merge_devices *devices, tide_error *err) {
    sqlite3_stmt *stmt;
    const tide__sql *sql;
    bool has_row;
    TIDE_TRY(tide__new_trace_sql(out, &sql, err));
    TIDE_TRY(tide__sql_prepare(
        &s->t->sql, "SELECT model, source, mode, strategy, contexts, device FROM main.run WHERE id = ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, run->id);
    tide_status st = tide__sql_step(&s->t->sql, stmt, &has_row, err);
    if (st == TIDE_OK)
        st = has_row ? insert_run(s, run, stmt, out, devices, err) : tide__merge_bad(s, "run", run->id, err);
    sqlite3_finalize(stmt);
    return st;
}

static int by_id(const void *a, const void *b) {
    const tide__merge_run *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static tide__merge_run *find_run(const tide__merge_source *s, int64_t id) {
    const tide__merge_run key = {.id = id};
    return s->n_runs > 0 ? bsearch(&key, s->runs, s->n_runs, sizeof *s->runs, by_id) : NULL;
}

tide_status tide__merge_source_begin(tide__merge_source *s, tide__new_trace *out, tide_error *err) {
    TIDE_TRY(each_row(s, "process",
                      "SELECT id, pid, rank, command, begin_ns, end_ns, how, label FROM main.process ORDER BY id",
                      copy_process, out, err));
    TIDE_TRY(each_row(s, "name", "SELECT id, text FROM main.name ORDER BY id", copy_text, out, err));
    TIDE_TRY(each_row(s, "scope", scopes_of(s), copy_scope, out, err));
    return each_row(s, "thread", "SELECT id, process_id, number, name FROM main.thread ORDER BY id", copy_thread, out,
                    err);
}

// ---- events ----

/// What the trace does not have any more, between what was alive then and its first event.
static tide__event gap_of(const tide__merge_source *s) {
    return (tide__event){.t_ns = s->t->begin_ns,
                         .op = TIDE__OP_GAP,
                         .kind = TIDE__NO_KIND,
                         .requested_bytes = (int64_t)s->lane->n_dropped};
}

static tide_status fetch(tide__merge_source *s, tide_error *err) {
    if (s->cursor == NULL)
        TIDE_TRY(tide__cursor_open(&s->t->sql, s->t->first_event, s->t->last_event, &s->cursor, err));
    s->next_event = 0;
    return tide__cursor_next(s->cursor, &s->events, &s->n_events, err);
}

tide_status tide__merge_source_next(tide__merge_source *s, tide_error *err) {
    const bool has_gap = s->lane->n_dropped > 0;
    s->has = true;
    if (s->next_before < s->n_before) {
        s->next = s->before[s->next_before++];
    } else if (has_gap && s->next_before == s->n_before) {
        s->next = gap_of(s);
        s->next_before++;
    } else {
        if (s->next_event == s->n_events) TIDE_TRY(fetch(s, err));
        s->has = s->n_events > 0;
        if (!s->has) return TIDE_OK;
        s->next = s->events[s->next_event++];
    }
    s->next.t_ns += s->shift_ns;
    TIDE_ASSERT(s->next.t_ns >= 0);
    return TIDE_OK;
}

/// Runs that begin with this event, and those that ended with the one before it.
static tide_status pass_runs(tide__merge_source *s, int64_t event, tide__new_trace *out, tide_error *err) {
    for (; s->next_end < s->n_runs; s->next_end++) {
        const tide__merge_run *run = &s->runs[s->ends[s->next_end]];
        if (run->last_event >= event) break;
        if (run->last_event < 0 || run->first_event > run->last_event || run->new_id == 0) continue;
        TIDE_TRY(tide__store_run(out->store, false, run->new_id, s->passed, run->end_ns + s->shift_ns, err));
    }
    for (; s->next_begin < s->n_runs; s->next_begin++) {
        const tide__merge_run *run = &s->runs[s->begins[s->next_begin]];
        if (run->first_event > event) break;
        if (run->first_event == 0 || run->new_id == 0) continue;
        TIDE_TRY(tide__store_run(out->store, true, run->new_id, out->last_event, run->begin_ns + s->shift_ns, err));
        if (run->first_event > run->last_event && run->last_event >= 0) // nothing happened in it
            TIDE_TRY(tide__store_run(out->store, false, run->new_id, out->last_event, run->end_ns + s->shift_ns, err));
    }
    return TIDE_OK;
}

static bool runs_are_due(const tide__merge_source *s, int64_t event) {
    return (s->next_begin < s->n_runs && s->runs[s->begins[s->next_begin]].first_event <= event) ||
           (s->next_end < s->n_runs && s->runs[s->ends[s->next_end]].last_event < event);
}

/// Whether an event without a number of a block is of the addresses of a process: segments that another tool recorded
/// have none.
static bool has_process(const tide__event *e) {
    return tide__event_is_of_process(e) || e->op == TIDE_MEM_SEGMENT_ALLOC || e->op == TIDE_MEM_SEGMENT_FREE;
}

/// Numbers of the new trace. False: it has one that no table has.
static bool rename_event(const tide__merge_source *s, tide__event *e) {
    const tide__event old = *e;
    const tide__merge_run *run = old.run_id != 0 ? find_run(s, old.run_id) : NULL;
    e->run_id = run != NULL ? (int32_t)run->new_id : 0;
    e->thread = tide__merge_map_get(&s->threads, old.thread);
    e->scope_id = tide__merge_map_get(&s->scopes, old.scope_id);
    e->tag_id = tide__merge_map_get(&s->texts, old.tag_id);
    e->allocator_id = tide__merge_map_get(&s->texts, old.allocator_id);
    e->device = (int16_t)tide__merge_map_get(&s->devices, old.device);
    if (old.block_id != 0 || has_process(&old)) {
        const int64_t process = tide__merge_map_get(&s->processes, (old.block_id >> TIDE__BLOCK_ID_BITS) + 1);
        if (process == 0) return false;
        e->block_id = (process - 1) << TIDE__BLOCK_ID_BITS | (old.block_id & low_bits);
    }
    return (run != NULL) == (old.run_id != 0) && (e->thread != 0) == (old.thread != 0) &&
           (e->scope_id != 0) == (old.scope_id != 0) && (e->tag_id != 0) == (old.tag_id != 0) &&
           (e->allocator_id != 0) == (old.allocator_id != 0) && (e->device != 0) == (old.device != 0);
}

tide_status tide__merge_source_copy(tide__merge_source *s, tide__new_trace *out, bool as_chunk, tide_error *err) {
    const tide__sql *sql;
    tide__event e = s->next;
    // Blocks from before the first event that is kept, and the gap, have no place among its events.
    const int64_t event = s->next_before <= s->n_before && s->lane->n_dropped > 0 ? 0 : e.id;
    if (event > 0 && runs_are_due(s, event)) {
        TIDE_TRY(tide__new_trace_sql(out, &sql, err));
        TIDE_TRY(pass_runs(s, event, out, err));
    }
    if (!rename_event(s, &e)) return tide__merge_bad(s, "event", e.id, err);
    out->forgive = s->has_orphans || s->lane->n_dropped > 0;
    TIDE_TRY(tide__new_trace_event(out, &e, as_chunk, err));
    s->passed = out->last_event;
    s->lane->n_events++;
    if (s->lane->n_events == 1) s->lane->begin_ns = (uint64_t)e.t_ns;
    s->lane->end_ns = (uint64_t)e.t_ns;
    for (; event > 0 && s->next_late < s->n_late && s->late[s->next_late].event <= event; s->next_late++) {
        if (s->late[s->next_late].event < event) continue; // dropped
        TIDE_TRY(tide__new_trace_sql(out, &sql, err));
        TIDE_TRY(tide__store_write_late(out->store, &(tide__event){.id = out->last_event},
                                        s->late[s->next_late].own_ns + s->shift_ns, err));
    }
    return TIDE_OK;
}

// ---- what is known at the end ----

static tide_status copy_position(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    tide__position p;
    if (!tide__sql_number(row, 0, 1, MAX_PROCESSES - 1, &p.process_id) ||
        !tide__sql_int_or(row, 1, TIDE__POSITION_LOG, INT32_MAX, 0, &p.ring) ||
        !tide__sql_int_or(row, 2, 0, INT64_MAX, 0, &p.position) ||
        !tide__sql_int_or(row, 3, 0, INT32_MAX, 0, &p.thread) ||
        !tide__sql_int_or(row, 4, 0, INT64_MAX, 0, &p.n_lost) || tide__merge_map_get(&s->processes, p.process_id) == 0)
        return TIDE_ERR_BAD_INPUT;
    p.process_id = tide__merge_map_get(&s->processes, p.process_id);
    p.thread = tide__merge_map_get(&s->threads, p.thread);
    return tide__store_write_position(out->store, &p, err);
}

static tide_status copy_process_memory(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t n[8];
    bool good = tide__sql_number(row, 0, 1, MAX_PROCESSES - 1, &n[0]);
    for (int i = 1; i < 8; i++)
        good = tide__sql_int_or(row, i, 0, INT64_MAX, -1, &n[i]) && (n[i] >= 0 || i == 5) && good;
    if (!good || tide__merge_map_get(&s->processes, n[0]) == 0) return TIDE_ERR_BAD_INPUT;
    const int64_t t_ns = n[1] + s->shift_ns;
    const tide__process_memory m = {.process_id = tide__merge_map_get(&s->processes, n[0]),
                                    .t_ns = t_ns > 0 ? t_ns : 0,
                                    .resident_bytes = n[2],
                                    .peak_bytes = n[3],
                                    .swapped_bytes = n[4],
                                    .share_bytes = n[5],
                                    .minor_faults = n[6],
                                    .major_faults = n[7]};
    return tide__store_write_process_memory(out->store, &m, err);
}

static tide_status copy_total(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    int64_t process = 0, device = 0, kind = 0, n[4];
    bool good = tide__sql_number(row, 0, 1, MAX_PROCESSES - 1, &process) &&
                tide__sql_number(row, 1, 1, TIDE__MAX_DEVICES - 1, &device) &&
                tide__sql_int_or(row, 2, 0, TIDE_N_KINDS - 1, 0, &kind);
    for (int i = 0; i < 4; i++) good = tide__sql_int_or(row, 3 + i, 0, INT64_MAX, 0, &n[i]) && good;
    if (!good || tide__merge_map_get(&s->processes, process) == 0 || tide__merge_map_get(&s->devices, device) == 0)
        return TIDE_ERR_BAD_INPUT;
    const tide__ring_total total = {.n_allocs = (uint64_t)n[0],
                                    .n_frees = (uint64_t)n[1],
                                    .requested_bytes = (uint64_t)n[2],
                                    .freed_bytes = (uint64_t)n[3]};
    return tide__store_write_total(out->store, tide__merge_map_get(&s->processes, process),
                                   (int16_t)tide__merge_map_get(&s->devices, device), (uint8_t)kind, &total, err);
}

/// What went wrong while it was recorded; what is wrong with its events was found again when they were copied.
static tide_status copy_problem(tide__merge_source *s, sqlite3_stmt *row, void *ctx, tide_error *err) {
    tide__new_trace *out = ctx;
    sqlite3_stmt *stmt;
    const tide__sql *sql = tide__store_sql(out->store);
    tide_text what = {0};
    tide_text_addf(&what, "%s: %s", s->in->label, tide__sql_text(row, 2));
    tide_status st = what.failed ? TIDE_ERR_NOMEM : TIDE_OK;
    if (st == TIDE_OK)
        st = tide__sql_prepare(sql, "INSERT INTO problem(event_id, problem, what) VALUES(?, ?, ?)", &stmt, err);
    if (st == TIDE_OK) {
        sqlite3_bind_int64(stmt, 1, s->passed);
        sqlite3_bind_int64(stmt, 2, sqlite3_column_int64(row, 1));
        tide__sql_bind_text(stmt, 3, tide_text_str(&what));
        st = tide__sql_run(sql, stmt, err);
        sqlite3_finalize(stmt);
    }
    tide_text_deinit(&what);
    return st;
}

tide_status tide__merge_source_end(tide__merge_source *s, bool with_totals, tide__new_trace *out, tide_error *err) {
    const tide__sql *sql;
    TIDE_TRY(tide__new_trace_sql(out, &sql, err));
    if (runs_are_due(s, INT64_MAX)) TIDE_TRY(pass_runs(s, INT64_MAX, out, err));
    TIDE_TRY(each_row(s, "position",
                      "SELECT process_id, ring, position, thread, n_lost FROM main.position ORDER BY process_id, ring",
                      copy_position, out, err));
    bool has_samples;
    TIDE_TRY(tide_trace_has_process_memory(s->t, &has_samples, err));
    if (has_samples)
        TIDE_TRY(each_row(s, "process_memory",
                          "SELECT process_id, t_ns, resident_bytes, peak_bytes, swapped_bytes, share_bytes, "
                          "minor_faults, major_faults FROM main.process_memory ORDER BY process_id, t_ns",
                          copy_process_memory, out, err));
    if (with_totals)
        TIDE_TRY(each_row(s, "total",
                          "SELECT process_id, device, kind, n_allocs, n_frees, requested_bytes, freed_bytes "
                          "FROM main.total ORDER BY process_id, device, kind",
                          copy_total, out, err));
    return each_row(s, "problem",
                    "SELECT id, problem, what FROM main.problem WHERE problem = 7 OR problem > 8 ORDER BY id",
                    copy_problem, out, err);
}

void tide__merge_source_close(tide__merge_source *s) {
    tide__cursor_close(s->cursor);
    tide_trace_close(s->t);
    tide__merge_map *const maps[] = {&s->texts, &s->scopes, &s->threads, &s->devices, &s->processes};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) tide_host_free(maps[i]->to);
    tide_host_free(s->runs);
    tide_host_free(s->begins);
    tide_host_free(s->ends);
    tide_host_free(s->late);
    tide_host_free(s->before);
    *s = (tide__merge_source){0};
}
