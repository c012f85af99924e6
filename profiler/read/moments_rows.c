// SPDX-License-Identifier: MIT
//
// Rows of table event, read at half the price. See tide__trace_each in moments_internal.h.
//
// Fetching a row costs most by its fifteen columns, one call each (330 ns). Here SQLite calls us once per row, with the
// columns that the kind of event is asked for, and the whole range is one step of one statement (150 ns):
//
//     SELECT count(CASE op WHEN <alloc> THEN tide_row(all columns) ELSE tide_row(id, t_ns, op, block_id) END) FROM
//     event
//
// Only where no chunk lies in the range; the cursor reads everything else.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/chunk.h"
#include "profiler/store/schema.h"

enum {
    BATCH = 512,
    N_BRIEF = 4, // columns of a brief row: id, t_ns, op, block_id
    N_FULL = 15, // all, in the order of the table
    N_CHANGE = 7,
};
#define BRIEF "tide_row(id, t_ns, op, block_id)"
#define CHANGE "tide_row(id, t_ns, op, block_id, kind, device, requested_bytes)"
#define FULL "tide_row(" TIDE__EVENT_COLUMNS ")"

struct tide__row_reader {
    tide_trace *t;
    sqlite3_stmt *stmts[TIDE__N_READS];
    sqlite3_stmt *chunk;
    // of the question that runs
    int64_t next_id, last_ns;
    tide_status (*on_events)(void *ctx, const tide__event *events, size_t n);
    void *ctx;
    tide_status st; // TIDE_ERR_BAD_INPUT: the row next_id; TIDE_ERR_NOT_FOUND: there is no such row
    size_t n;
    tide__event events[BATCH];
};

// ---- one row ----

static bool fits(int64_t v, int64_t max) { return v >= 0 && v <= max; }

static bool take_kind(sqlite3_value *v, tide__event *e) {
    const int64_t kind = sqlite3_value_type(v) == SQLITE_NULL ? TIDE__NO_KIND : sqlite3_value_int64(v);
    e->kind = (uint8_t)kind;
    return fits(kind, UINT8_MAX);
}

static bool take_device(sqlite3_value *v, tide__event *e) {
    const int64_t device = sqlite3_value_int64(v);
    e->device = (int16_t)device;
    return fits(device, INT16_MAX);
}

static bool take_full(sqlite3_value **v, tide__event *e) {
    const int64_t run = sqlite3_value_int64(v[1]), op = sqlite3_value_int64(v[3]), thread = sqlite3_value_int64(v[11]);
    const int64_t allocator = sqlite3_value_int64(v[12]), tag = sqlite3_value_int64(v[13]);
    const int64_t scope = sqlite3_value_int64(v[14]);
    *e = (tide__event){.id = sqlite3_value_int64(v[0]),
                       .t_ns = sqlite3_value_int64(v[2]),
                       .block_id = sqlite3_value_int64(v[4]),
                       .requested_bytes = sqlite3_value_int64(v[8]),
                       .reserved_bytes = sqlite3_value_int64(v[9]),
                       .address = sqlite3_value_int64(v[10]),
                       .stream = sqlite3_value_int64(v[7]),
                       .run_id = (int32_t)run,
                       .thread = (int32_t)thread,
                       .scope_id = (int32_t)scope,
                       .tag_id = (int32_t)tag,
                       .allocator_id = (int32_t)allocator,
                       .op = (uint8_t)op};
    return fits(run | thread | allocator | tag | scope, INT32_MAX) && fits(op, UINT8_MAX) && take_kind(v[5], e) &&
           take_device(v[6], e) && tide__event_is_sane(e);
}

/// A row of which the rest is not asked for.
static bool take_brief(sqlite3_value **v, int n, tide__event *e) {
    const int64_t op = sqlite3_value_int64(v[2]);
    *e = (tide__event){.id = sqlite3_value_int64(v[0]),
                       .t_ns = sqlite3_value_int64(v[1]),
                       .block_id = sqlite3_value_int64(v[3]),
                       .op = (uint8_t)op,
                       .kind = TIDE__NO_KIND};
    if (!fits(op, UINT8_MAX) || e->id < 1 || e->t_ns < 0 || e->block_id < 0 || tide__op_name((int)op) == NULL)
        return false;
    if (n < N_CHANGE) return true;
    e->requested_bytes = sqlite3_value_int64(v[6]);
    return e->requested_bytes >= 0 && take_kind(v[4], e) && e->kind < TIDE_N_KINDS && take_device(v[5], e) &&
           e->device > 0;
}

static tide_status give(tide__row_reader *r) {
    const size_t n = r->n;
    r->n = 0;
    if (n == 0) return TIDE_OK;
    TIDE_TRY(r->on_events(r->ctx, r->events, n));
    return tide__trace_heard(r->t, n, NULL);
}

/// The function tide_row of the statements.
static void on_row(sqlite3_context *context, int n, sqlite3_value **v) {
    tide__row_reader *r = sqlite3_user_data(context);
    tide__event *e = &r->events[r->n];
    if (r->st == TIDE_OK) {
        const bool good = (n == N_FULL ? take_full(v, e) : take_brief(v, n, e)) && e->t_ns >= r->last_ns;
        r->st = good && e->id == r->next_id ? TIDE_OK : TIDE_ERR_BAD_INPUT;
        if (good && e->id > r->next_id) r->st = TIDE_ERR_NOT_FOUND;
    }
    if (r->st == TIDE_OK) {
        r->next_id++;
        r->last_ns = e->t_ns;
        if (++r->n == BATCH) r->st = give(r);
    }
    if (r->st != TIDE_OK) sqlite3_result_error(context, "stopped", -1);
}

// ---- the statements ----

static const char *text_of(tide__read what) {
    static const char *const texts[TIDE__N_READS] = {
        [TIDE__READ_REPLAY] = "SELECT count(CASE op WHEN 1 THEN " FULL " WHEN 7 THEN " FULL " ELSE " BRIEF " END)",
        [TIDE__READ_CHANGES] = "SELECT count(CASE op WHEN 1 THEN " CHANGE " WHEN 3 THEN " CHANGE " ELSE " BRIEF " END)",
        [TIDE__READ_OPS] = "SELECT count(" BRIEF ")",
    };
    return texts[what];
}

_Static_assert(TIDE_MEM_ALLOC == 1 && TIDE_MEM_FREE_COMPLETED == 3 && TIDE_MEM_POOL_DISCARD == 7, "in the statements");

static tide_status prepare(tide_trace *t, tide__row_reader *r, tide__read what, tide_error *err) {
    if (r->stmts[what] != NULL) return TIDE_OK;
    tide_text text = {0};
    tide_text_addf(&text, "%s FROM main.event WHERE id BETWEEN ?1 AND ?2", text_of(what));
    const tide_status st = text.failed ? tide__trace_no_memory(t, "events", err)
                                       : tide__sql_prepare(&t->sql, tide_text_str(&text), &r->stmts[what], err);
    tide_text_deinit(&text);
    return st;
}

static tide_status make_reader(tide_trace *t, tide_error *err) {
    if (t->rows != NULL) return TIDE_OK;
    tide__row_reader *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return tide__trace_no_memory(t, "events", err);
    r->t = t;
    const int rc = sqlite3_create_function_v2(t->sql.db, "tide_row", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, r, on_row,
                                              NULL, NULL, NULL);
    tide_status st = rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(&t->sql, rc, "query", err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(&t->sql,
                               "SELECT last_event FROM main.event_chunk WHERE first_event <= ? "
                               "ORDER BY first_event DESC LIMIT 1",
                               &r->chunk, err);
    if (st != TIDE_OK) {
        tide_host_free(r);
        return st;
    }
    t->rows = r;
    return TIDE_OK;
}

void tide__trace_rows_deinit(tide_trace *t) {
    if (t->rows == NULL) return;
    for (size_t i = 0; i < TIDE__N_READS; i++) sqlite3_finalize(t->rows->stmts[i]);
    sqlite3_finalize(t->rows->chunk);
    tide_host_free(t->rows);
    t->rows = NULL;
}

// ---- a range ----

/// Whether a chunk reaches into events `first` to `last`.
static tide_status has_chunk(tide_trace *t, int64_t first, int64_t last, bool *has, tide_error *err) {
    sqlite3_stmt *stmt = t->rows->chunk;
    sqlite3_bind_int64(stmt, 1, last);
    bool has_row;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    *has = st == TIDE_OK && has_row && sqlite3_column_int64(stmt, 0) >= first;
    sqlite3_reset(stmt);
    return st;
}

static tide_status run(tide_trace *t, sqlite3_stmt *stmt, int64_t last, int64_t *next_id, tide_error *err) {
    tide__row_reader *r = t->rows;
    sqlite3_bind_int64(stmt, 1, r->next_id);
    sqlite3_bind_int64(stmt, 2, last);
    bool has_row;
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, &why);
    sqlite3_reset(stmt);
    if (r->st == TIDE_ERR_NOT_FOUND) { // whoever reads on from there says what that means
        r->st = give(r);
        st = TIDE_OK;
    } else if (r->st == TIDE_OK && st == TIDE_OK) {
        st = r->st = give(r);
    }
    *next_id = r->next_id;
    if (r->st == TIDE_OK) { // nothing of ours: what SQLite says
        if (st != TIDE_OK && err != NULL) *err = why;
        return st;
    }
    if (r->st == TIDE_ERR_NOMEM) return tide__trace_no_memory(t, "blocks", err);
    if (r->st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, r->st, "reading '%s' was cancelled", t->path);
    return tide__trace_bad_row(t, "event", r->next_id, err);
}

tide_status tide__trace_rows(tide_trace *t, tide__read what, int64_t first, int64_t last,
                             tide_status (*on_events)(void *ctx, const tide__event *events, size_t n), void *ctx,
                             int64_t *next_id, tide_error *err) {
    bool chunks;
    *next_id = first;
    if (what == TIDE__READ_ALL || (t->rows != NULL && t->rows->on_events != NULL)) return TIDE_OK; // no use, or in use
    TIDE_TRY(make_reader(t, err));
    TIDE_TRY(has_chunk(t, first, last, &chunks, err));
    if (chunks) return TIDE_OK;
    TIDE_TRY(prepare(t, t->rows, what, err));
    tide__row_reader *r = t->rows;
    r->next_id = first;
    r->last_ns = 0;
    r->on_events = on_events;
    r->ctx = ctx;
    r->st = TIDE_OK;
    r->n = 0;
    const tide_status st = run(t, r->stmts[what], last, next_id, err);
    r->on_events = NULL;
    return st;
}
