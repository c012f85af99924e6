// SPDX-License-Identifier: MIT
//
// Answers about runs, steps, plans and blocks. See query.h; kinds and peaks
// in query_kinds.c.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"
#include "profiler/read/trace_internal.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/plan_rows.h"

static bool i64_column(sqlite3_stmt *stmt, int i, int64_t *out) {
    uint64_t value;
    if (!tide__sql_u64(stmt, i, &value)) return false;
    *out = (int64_t)value;
    return true;
}

// ---- runs ----

/// A run that has not ended ends with the trace.
static bool take_end(const tide_trace *t, sqlite3_stmt *stmt, int i, uint64_t begin_ns, uint64_t *end_ns) {
    if (sqlite3_column_type(stmt, i) != SQLITE_NULL) return tide__sql_u64(stmt, i, end_ns) && *end_ns >= begin_ns;
    *end_ns = (uint64_t)t->end_ns > begin_ns ? (uint64_t)t->end_ns : begin_ns;
    return true;
}

static bool take_run(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_run *run) {
    if (!i64_column(stmt, 0, &run->id) || run->id == 0) return false;
    tide__trace_copy_text(run->model, sizeof run->model, tide__sql_text(stmt, 1));
    tide__trace_copy_text(run->source, sizeof run->source, tide__sql_text(stmt, 2));
    tide__trace_copy_text(run->mode, sizeof run->mode, tide__sql_text(stmt, 3));
    tide__trace_copy_text(run->strategy, sizeof run->strategy, tide__sql_text(stmt, 4));
    tide__trace_copy_text(run->device, sizeof run->device, tide__sql_text(stmt, 5));
    if (!tide__sql_u64(stmt, 6, &run->begin_ns) || !take_end(t, stmt, 7, run->begin_ns, &run->end_ns)) return false;
    if (!tide__sql_u64(stmt, 12, &run->n_contexts) || run->n_contexts == 0) return false;
    run->has_plan = sqlite3_column_type(stmt, 8) != SQLITE_NULL;
    return !run->has_plan ||
           (tide__sql_u64(stmt, 9, &run->plan_bytes) && tide__sql_u64(stmt, 10, &run->plan_naive_bytes) &&
            tide__sql_u64(stmt, 11, &run->plan_lower_bound_bytes));
}

tide_status tide_trace_runs(tide_trace *t, tide_trace_run **out, size_t *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT r.id, r.model, r.source, r.mode, r.strategy, r.device, r.begin_ns, r.end_ns, "
                               "p.run_id, r.plan_bytes, r.plan_naive_bytes, r.plan_lower_bound_bytes, r.contexts "
                               "FROM main.run r LEFT JOIN main.plan p ON p.run_id = r.id ORDER BY r.id",
                               &stmt, err));
    tide_trace_run *runs = NULL;
    size_t n_runs = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&runs, &cap, n_runs + 1, sizeof *runs);
        if (st != TIDE_OK) {
            TIDE_FAIL(err, st, "no memory for the runs of '%s'", t->path);
            break;
        }
        memset(&runs[n_runs], 0, sizeof *runs);
        const bool rises = n_runs == 0 || sqlite3_column_int64(stmt, 0) > runs[n_runs - 1].id;
        if (!take_run(t, stmt, &runs[n_runs++]) || !rises) {
            st = tide__trace_bad_row(t, "run", sqlite3_column_int64(stmt, 0), err);
            break;
        }
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) {
        tide_host_free(runs);
        return st;
    }
    *out = runs;
    *n = n_runs;
    return TIDE_OK;
}

void tide_trace_runs_free(tide_trace_run *runs) { tide_host_free(runs); }

// ---- threads ----

static int64_t number_or_none(sqlite3_stmt *stmt, int i) {
    return sqlite3_column_type(stmt, i) != SQLITE_NULL ? sqlite3_column_int64(stmt, i) : -1;
}

static bool take_thread(sqlite3_stmt *stmt, tide_trace_thread *out) {
    const int64_t number = sqlite3_column_int64(stmt, 0), process = sqlite3_column_int64(stmt, 1);
    if (number < 1 || number > INT32_MAX || process < 1 || process > UINT16_MAX) return false;
    *out = (tide_trace_thread){.number = (uint32_t)number,
                               .process = (uint32_t)process - 1,
                               .pid = number_or_none(stmt, 3),
                               .rank = number_or_none(stmt, 4)};
    tide__trace_copy_text(out->name, sizeof out->name, tide__sql_text(stmt, 2));
    tide__trace_copy_text(out->command, sizeof out->command, tide__sql_text(stmt, 5));
    return true;
}

tide_status tide_trace_threads(tide_trace *t, tide_trace_thread **out, size_t *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT t.id, p.id, t.name, p.pid, p.rank, p.command FROM main.thread t "
                               "JOIN main.process p ON p.id = t.process_id ORDER BY p.id, t.id",
                               &stmt, err));
    tide_trace_thread *threads = NULL;
    size_t n_threads = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        TIDE_TRY_OR(done, st, TIDE_GROW(&threads, &cap, n_threads + 1, err, "for the threads of '%s'", t->path));
        if (!take_thread(stmt, &threads[n_threads++])) {
            st = tide__trace_bad_row(t, "thread", sqlite3_column_int64(stmt, 0), err);
            goto done;
        }
    }
done:
    sqlite3_finalize(stmt);
    *out = st == TIDE_OK ? threads : NULL;
    *n = st == TIDE_OK ? n_threads : 0;
    if (st != TIDE_OK) tide_host_free(threads);
    return st;
}

static tide_status take_span(const tide_trace *t, sqlite3_stmt *stmt, int64_t run_id, tide__span *out,
                             tide_error *err) {
    bool has_row;
    TIDE_TRY(tide__sql_step(&t->sql, stmt, &has_row, err));
    if (!has_row) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no run %" PRId64, t->path, run_id);
    bool good = tide__sql_u64(stmt, 2, &out->begin_ns) && take_end(t, stmt, 3, out->begin_ns, &out->end_ns);
    out->first_event = t->last_event + 1; // announced, and nothing of it has arrived
    out->last_event = t->last_event;
    if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        good = good && i64_column(stmt, 0, &out->first_event) && out->first_event >= 1;
    if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
        good = good && i64_column(stmt, 1, &out->last_event) && out->last_event >= out->first_event - 1;
    if (!good) return tide__trace_bad_row(t, "run", run_id, err);
    // The row may be younger than what the trace shows: its events are not seen until the next refresh.
    if (out->last_event > t->last_event) out->last_event = t->last_event;
    if (out->first_event > t->last_event + 1) out->first_event = t->last_event + 1;
    if (out->first_event >= t->first_event) return TIDE_OK;
    out->first_event = t->first_event;
    if (out->last_event < t->first_event - 1) out->last_event = t->first_event - 1;
    if (out->begin_ns < (uint64_t)t->begin_ns) out->begin_ns = (uint64_t)t->begin_ns;
    if (out->end_ns < out->begin_ns) out->end_ns = out->begin_ns;
    return TIDE_OK;
}

tide_status tide__trace_span(tide_trace *t, int64_t run_id, tide__span *out, tide_error *err) {
    if (run_id == 0) {
        *out = (tide__span){.first_event = t->first_event,
                            .last_event = t->last_event,
                            .begin_ns = (uint64_t)t->begin_ns,
                            .end_ns = (uint64_t)t->end_ns};
        return TIDE_OK;
    }
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT first_event, last_event, begin_ns, end_ns FROM main.run WHERE id = ?",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    const tide_status st = take_span(t, stmt, run_id, out, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_plan(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    return tide__plan_rows_read(&t->sql, run_id, out, err);
}

tide_status tide__trace_plan_or_null(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_plan(t, run_id, out, &own);
    if (st == TIDE_ERR_NOT_FOUND) {
        *out = NULL;
        return TIDE_OK;
    }
    if (st != TIDE_OK && err != NULL) *err = own;
    return st;
}

// ---- steps ----

static tide_status take_step(const tide_trace *t, sqlite3_stmt *stmt, uint64_t end_ns, tide_trace_step *step,
                             tide_error *err) {
    if (!i64_column(stmt, 0, &step->index) || !tide__sql_u64(stmt, 2, &step->begin_ns))
        return tide__trace_bad_row(t, "step", step->index, err);
    if (sqlite3_column_type(stmt, 3) == SQLITE_NULL) {
        step->end_ns = end_ns > step->begin_ns ? end_ns : step->begin_ns;
    } else if (!tide__sql_u64(stmt, 3, &step->end_ns) || step->end_ns < step->begin_ns) {
        return tide__trace_bad_row(t, "step", step->index, err);
    }
    step->name = tide_host_strdup(tide__trace_text(t, sqlite3_column_int64(stmt, 1)));
    return step->name != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for the steps of '%s'", t->path);
}

tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT step, name_id, begin_ns, end_ns FROM step WHERE run_id = ? ORDER BY step", &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    tide_trace_step *steps = NULL;
    size_t n_steps = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&steps, &cap, n_steps + 1, sizeof *steps);
        if (st != TIDE_OK) {
            TIDE_FAIL(err, st, "no memory for the steps of '%s'", t->path);
            break;
        }
        steps[n_steps] = (tide_trace_step){0};
        st = take_step(t, stmt, span.end_ns, &steps[n_steps++], err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) {
        tide_trace_steps_free(steps, n_steps);
        return st;
    }
    *out = steps;
    *n = n_steps;
    return TIDE_OK;
}

void tide_trace_steps_free(tide_trace_step *steps, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(steps[i].name);
    tide_host_free(steps);
}

// ---- the list of blocks ----

/// A column that is NULL for none; false: it is neither that nor a number.
static bool optional(sqlite3_stmt *stmt, int i, uint64_t if_none, uint64_t *out) {
    *out = if_none;
    return sqlite3_column_type(stmt, i) == SQLITE_NULL || tide__sql_u64(stmt, i, out);
}

static bool take_numbers(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block *b) {
    uint64_t kind, thread, run_id, free_event;
    if (!tide__sql_u64(stmt, 1, &kind) || kind >= TIDE_N_KINDS || !tide__sql_u64(stmt, 4, &b->requested_bytes) ||
        !tide__sql_u64(stmt, 5, &b->reserved_bytes) || !tide__sql_u64(stmt, 7, &b->alloc_ns) ||
        !tide__sql_u64(stmt, 9, &thread) || thread > UINT32_MAX || !optional(stmt, 12, 0, &run_id) ||
        !optional(stmt, 13, UINT64_MAX, &free_event))
        return false;
    b->id = (uint64_t)sqlite3_column_int64(stmt, 0);
    b->kind = (tide_memory_kind)kind;
    b->thread = (uint32_t)thread;
    b->run_id = (int64_t)run_id;
    // Streams and addresses use all 64 bits: negative numbers in the file are large ones here.
    b->stream = (uint64_t)sqlite3_column_int64(stmt, 3);
    b->address = (uint64_t)sqlite3_column_int64(stmt, 6);
    b->free_ns = UINT64_MAX;
    if (free_event > (uint64_t)t->last_event) return true; // not yet, as far as the trace is seen
    return tide__sql_u64(stmt, 8, &b->free_ns) && b->free_ns >= b->alloc_ns;
}

static tide_status take_block(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block *b, tide_error *err) {
    const tide__trace_scope scope = tide__trace_scope_of(t, sqlite3_column_int64(stmt, 11));
    b->name = tide_host_strdup(tide__trace_text(t, sqlite3_column_int64(stmt, 10)));
    b->scope = tide_host_strdup(scope.name);
    b->scope_index = scope.step;
    if (b->name == NULL || b->scope == NULL) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    if (!take_numbers(t, stmt, b)) return tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
    tide__trace_copy_text(b->device, sizeof b->device, tide__trace_device(t, sqlite3_column_int64(stmt, 2)));
    return TIDE_OK;
}

static tide_status take_number(void *ctx, const tide__event *events, size_t n) {
    if (n > 0) *(uint64_t *)ctx = (uint64_t)events[0].block_id;
    return TIDE_OK;
}

/// When a block that was never freed went: with its process, or not yet. False: before event `first`, so that it is
/// none of what is asked for.
static bool find_end(const tide_trace *t, uint64_t id, uint64_t alloc_ns, uint64_t free_ns, int64_t first,
                     uint64_t *end_ns) {
    const tide__process_end *end = free_ns == UINT64_MAX ? tide__trace_process_end(t, id, alloc_ns) : NULL;
    *end_ns = end != NULL ? (uint64_t)end->t_ns : free_ns;
    return end == NULL || end->event >= first;
}

/// Where two blocks have one number, the later one has the number of its event, negative: read its own from there.
static tide_status read_number(tide_trace *t, uint64_t *id, tide_error *err) {
    if (*id <= INT64_MAX) return TIDE_OK;
    if (*id == (uint64_t)INT64_MIN) return tide__trace_bad_row(t, "block", INT64_MIN, err);
    const int64_t event = -(int64_t)*id;
    *id = 0;
    if (event < t->first_event) return TIDE_OK; // its event was dropped
    if (event > t->last_event) return tide__trace_bad_row(t, "block", -event, err);
    return tide__trace_each(t, TIDE__READ_ALL, event, event, take_number, id, err);
}

static tide_status read_blocks(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block **blocks, size_t *n,
                               tide_error *err) {
    size_t cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        if (tide_host_grow(blocks, &cap, *n + 1, sizeof **blocks) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
        (*blocks)[*n] = (tide_trace_block){0};
        TIDE_TRY(take_block(t, stmt, &(*blocks)[(*n)++], err));
    }
    return st;
}

/// Those that were there in or behind event `first`. @return how many
static size_t keep_blocks(const tide_trace *t, tide_trace_block *blocks, size_t n, int64_t first) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        tide_trace_block *b = &blocks[i];
        if (find_end(t, b->id, b->alloc_ns, b->free_ns, first, &b->end_ns)) {
            blocks[n_kept++] = *b;
        } else {
            tide_host_free(b->name);
            tide_host_free(b->scope);
        }
    }
    return n_kept;
}

tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__trace_ask_blocks(
        t,
        "id, kind, device, stream, requested_bytes, reserved_bytes, address, alloc_ns, free_ns, thread, tag_id, "
        "scope_id, run_id, free_event",
        "WHERE alloc_event <= ?2 AND (free_event IS NULL OR free_event >= ?1) ORDER BY alloc_event", &stmt, err));
    sqlite3_bind_int64(stmt, 1, span.first_event);
    sqlite3_bind_int64(stmt, 2, span.last_event);
    tide_trace_block *blocks = NULL;
    size_t n_blocks = 0;
    tide_status st = read_blocks(t, stmt, &blocks, &n_blocks, err);
    sqlite3_finalize(stmt);
    for (size_t i = 0; st == TIDE_OK && i < n_blocks; i++) st = read_number(t, &blocks[i].id, err);
    if (st == TIDE_OK) n_blocks = keep_blocks(t, blocks, n_blocks, span.first_event);
    if (st != TIDE_OK) {
        tide_trace_blocks_free(blocks, n_blocks);
        return st;
    }
    *out = blocks;
    *n = n_blocks;
    return TIDE_OK;
}

void tide_trace_blocks_free(tide_trace_block *blocks, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tide_host_free(blocks[i].name);
        tide_host_free(blocks[i].scope);
    }
    tide_host_free(blocks);
}

// ---- blocks as numbers, in one pass without an array ----

enum { BATCH = 1024 };

#define COLUMNS                                                                                                        \
    "id, kind, device, requested_bytes, reserved_bytes, address, alloc_ns, free_ns, free_event, allocator_id, "        \
    "tag_id, scope_id"

static bool number(sqlite3_stmt *stmt, int i, uint32_t *out) {
    const int64_t v = sqlite3_column_int64(stmt, i); // NULL: 0
    *out = (uint32_t)v;
    return v >= 0 && v <= UINT32_MAX;
}

static bool bytes(sqlite3_stmt *stmt, int i, uint64_t *out) {
    const int64_t v = sqlite3_column_int64(stmt, i);
    *out = (uint64_t)v;
    return v >= 0 && sqlite3_column_type(stmt, i) == SQLITE_INTEGER;
}

static bool take_row(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block_row *b) {
    uint32_t kind;
    b->id = (uint64_t)sqlite3_column_int64(stmt, 0);
    b->address = (uint64_t)sqlite3_column_int64(stmt, 5); // all 64 bits: a negative number is a large one
    b->free_ns = UINT64_MAX;
    if (!number(stmt, 1, &kind) || kind >= TIDE_N_KINDS || !number(stmt, 2, &b->device) ||
        !bytes(stmt, 3, &b->requested_bytes) || !bytes(stmt, 4, &b->reserved_bytes) || !bytes(stmt, 6, &b->alloc_ns) ||
        !number(stmt, 9, &b->allocator) || !number(stmt, 10, &b->name) || !number(stmt, 11, &b->scope))
        return false;
    b->kind = (tide_memory_kind)kind;
    const int64_t free_event = sqlite3_column_int64(stmt, 8); // NULL: never freed
    if (free_event < 0) return false;
    if (free_event == 0 || free_event > t->last_event) return true; // not yet, as far as the trace is seen
    return bytes(stmt, 7, &b->free_ns) && b->free_ns >= b->alloc_ns;
}

/// Where the rows go.
typedef struct taker {
    tide_trace_block_fn fn;
    void *ctx;
    int64_t first_event; // blocks that were gone before it are left out
} taker;

static tide_status give(tide_trace *t, tide_trace_block_row *rows, size_t n, const taker *to, tide_error *err) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        tide_trace_block_row *b = &rows[i];
        TIDE_TRY(read_number(t, &b->id, err));
        if (find_end(t, b->id, b->alloc_ns, b->free_ns, to->first_event, &b->end_ns)) rows[n_kept++] = *b;
    }
    const tide_status st = n_kept > 0 ? to->fn(to->ctx, rows, n_kept) : TIDE_OK;
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    if (st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, st, "reading '%s' was cancelled", t->path);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "cannot read the blocks of '%s'", t->path);
}

static tide_status read_rows(tide_trace *t, sqlite3_stmt *stmt, const taker *to, tide_error *err) {
    tide_trace_block_row *rows = tide_host_alloc(BATCH * sizeof *rows);
    if (rows == NULL) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    size_t n = 0;
    tide_status st;
    bool has_row;
    int64_t last = INT64_MIN;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0);
        if (!take_row(t, stmt, &rows[n++]) || (id <= last && last != INT64_MIN)) {
            st = tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
            break;
        }
        last = id;
        if (n < BATCH) continue;
        st = give(t, rows, n, to, err);
        n = 0;
        if (st != TIDE_OK) break;
    }
    if (st == TIDE_OK) st = give(t, rows, n, to, err);
    tide_host_free(rows);
    return st;
}

// Of chunks no SQL is asked: they come as arrays.

static tide_trace_block_row row_of(const tide_trace *t, const tide__block_row *b) {
    const bool is_freed = b->free_event != 0 && b->free_event <= t->last_event; // or not yet, as the trace is seen
    return (tide_trace_block_row){.id = (uint64_t)b->id,
                                  .alloc_ns = (uint64_t)b->alloc_ns,
                                  .free_ns = is_freed ? (uint64_t)b->free_ns : UINT64_MAX,
                                  .requested_bytes = (uint64_t)b->requested_bytes,
                                  .reserved_bytes = (uint64_t)b->reserved_bytes,
                                  .address = (uint64_t)b->address,
                                  .name = (uint32_t)b->tag_id,
                                  .scope = (uint32_t)b->scope_id,
                                  .allocator = (uint32_t)b->allocator_id,
                                  .device = (uint32_t)b->device,
                                  .kind = (tide_memory_kind)b->kind};
}

static tide_status read_chunk(tide_trace *t, const tide__block_row *blocks, size_t n_blocks, const tide__span *span,
                              const taker *to, tide_error *err) {
    tide_trace_block_row rows[BATCH];
    size_t n = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        const tide__block_row *b = &blocks[i];
        if (b->alloc_event > span->last_event || (b->free_event != 0 && b->free_event < span->first_event)) continue;
        rows[n++] = row_of(t, b);
        if (n < BATCH) continue;
        TIDE_TRY(give(t, rows, n, to, err));
        n = 0;
    }
    return give(t, rows, n, to, err);
}

static tide_status read_chunks(tide_trace *t, const tide__span *span, const taker *to, tide_error *err) {
    tide__block_reader *r;
    TIDE_TRY(tide__block_reader_open(&t->sql, &r, err));
    tide__block_question all = tide__all_blocks();
    all.last_alloc = span->last_event;
    tide_status st = tide__block_reader_ask(r, &all, err);
    const tide__block_row *blocks;
    size_t n;
    while (st == TIDE_OK && (st = tide__block_reader_next(r, &blocks, &n, err)) == TIDE_OK && n > 0)
        st = read_chunk(t, blocks, n, span, to, err);
    tide__block_reader_close(r);
    return st;
}

tide_status tide_trace_each_block(tide_trace *t, int64_t run_id, tide_trace_block_fn fn, void *ctx, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT " COLUMNS " FROM block WHERE alloc_event <= ?2 AND "
                               "(free_event IS NULL OR free_event >= ?1) ORDER BY id",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, span.first_event);
    sqlite3_bind_int64(stmt, 2, span.last_event);
    const taker to = {.fn = fn, .ctx = ctx, .first_event = span.first_event};
    const tide_status st = read_rows(t, stmt, &to, err);
    sqlite3_finalize(stmt);
    return st == TIDE_OK && t->is_packed ? read_chunks(t, &span, &to, err) : st;
}

tide_status tide_trace_find_block(tide_trace *t, uint64_t id, tide_trace_block_row *out, tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_row;
    TIDE_TRY(tide__trace_ask_blocks(t, COLUMNS, "WHERE id = ?1", &stmt, err));
    sqlite3_bind_int64(stmt, 1, (int64_t)id);
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && (!has_row || id == 0 || id > INT64_MAX))
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no block %" PRIu64, t->path, id);
    if (st == TIDE_OK && !take_row(t, stmt, out)) st = tide__trace_bad_row(t, "block", (int64_t)id, err);
    if (st == TIDE_OK) (void)find_end(t, id, out->alloc_ns, out->free_ns, 0, &out->end_ns);
    sqlite3_finalize(stmt);
    return st;
}

const char *tide_trace_text_of(const tide_trace *t, uint32_t name) { return tide__trace_text(t, name); }

const char *tide_trace_scope_of(const tide_trace *t, uint32_t scope, int64_t *step) {
    const tide__trace_scope s = tide__trace_scope_of(t, scope);
    *step = s.step;
    return s.name;
}

const char *tide_trace_device_of(const tide_trace *t, uint32_t device) { return tide__trace_device(t, device); }

tide_trace_scope tide_trace_scope_at(const tide_trace *t, uint32_t scope) {
    const tide__trace_scope s = tide__trace_scope_of(t, scope);
    tide_trace_scope out = {.name = s.name, .step = s.step, .is_operator = s.is_operator};
    if (scope == 0 || scope >= t->names.n_scopes) return out;
    out.parent = t->names.scopes[scope].parent;
    out.is_frame = t->names.scopes[scope].is_frame;
    return out;
}
