// SPDX-License-Identifier: MIT
//
// The last pass over a trace, and chunks that become rows. See finish.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/block_chunk.h"
#include "profiler/store/block_pack.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/chunk.h"
#include "profiler/store/cursor.h"
#include "profiler/store/finish.h"
#include "profiler/store/finish_tables.h"
#include "profiler/store/process_ends.h"
#include "profiler/store/replay_rules.h"
#include "profiler/store/rows.h"
#include "profiler/store/snapshot.h"
#include "profiler/store/store_internal.h"

// ---- totals ----
//
// What is in the file against what the recorded threads counted: two ways to the same sums.

typedef struct total_sums {
    int64_t n_allocs, n_frees, requested_bytes, freed_bytes;
} total_sums;

/// Blocks that a discard ended have no free event.
static bool are_equal(const total_sums *counted, const total_sums *kept, bool discarded) {
    return counted->n_allocs == kept->n_allocs && counted->requested_bytes == kept->requested_bytes &&
           (discarded || (counted->n_frees == kept->n_frees && counted->freed_bytes == kept->freed_bytes));
}

static void say(char *what, size_t what_bytes, int64_t device, int64_t kind, const total_sums *counted,
                const total_sums *kept) {
    snprintf(what, what_bytes,
             "%s: device %" PRId64 ", kind %" PRId64 ": %" PRId64 " of %" PRId64 " allocs, %" PRId64 " of %" PRId64
             " frees",
             tide__problem_text(TIDE__PROBLEM_TOTALS), device, kind, kept->n_allocs, counted->n_allocs, kept->n_frees,
             counted->n_frees);
}

/// The total_sums of one series; none when nothing of it is in the file.
static total_sums kept_of(const tide__replay *r, int64_t device, int64_t kind) {
    for (size_t i = 1; i < r->n_series; i++) {
        const tide__series *s = &r->series[i];
        if (s->device == device && s->kind == kind)
            return (total_sums){s->n_allocs, s->n_frees, s->requested_bytes, s->freed_bytes};
    }
    return (total_sums){0};
}

/// Compare what `r` says of the whole trace with table total. *equal false: they differ, and `what` says where.
static tide_status match_totals(const tide__sql *s, const tide__replay *r, bool discarded, bool *equal, char *what,
                                size_t what_bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s,
                               "SELECT device, kind, sum(n_allocs), sum(n_frees), sum(requested_bytes), "
                               "sum(freed_bytes) FROM main.total GROUP BY device, kind",
                               &stmt, err));
    int64_t n_counted = 0, n_kept = 0;
    tide_status st;
    bool has_row;
    *equal = true;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t device = sqlite3_column_int64(stmt, 0), kind = sqlite3_column_int64(stmt, 1);
        const total_sums counted = {sqlite3_column_int64(stmt, 2), sqlite3_column_int64(stmt, 3),
                                    sqlite3_column_int64(stmt, 4), sqlite3_column_int64(stmt, 5)};
        const total_sums kept = kept_of(r, device, kind);
        n_counted += counted.n_allocs;
        if (are_equal(&counted, &kept, discarded)) continue;
        *equal = false;
        say(what, what_bytes, device, kind, &counted, &kept);
        break;
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK || !*equal) return st;
    for (size_t i = 1; i < r->n_series; i++) n_kept += r->series[i].n_allocs;
    if (n_kept == n_counted) return TIDE_OK;
    *equal = false; // of a device or kind that no thread counted
    snprintf(what, what_bytes, "%s: %" PRId64 " of %" PRId64 " allocs", tide__problem_text(TIDE__PROBLEM_TOTALS),
             n_kept, n_counted);
    return TIDE_OK;
}

enum {
    MANY_LIVE = 4096, ///< more than a processor keeps near
    // What an event will look at lies behind one another: tag, entry, block, its place in the queue, its row there.
    // Each is asked for that many events ahead, when the one before it has come.
    TAG_AHEAD = 40,
    ENTRY_AHEAD = 32,
    BLOCK_AHEAD = 24,
    PLACE_AHEAD = 16,
    ROW_AHEAD = 8,
    N_AHEAD = 32, ///< power of two above BLOCK_AHEAD
};
#define NO_PLACE UINT32_MAX

/// What one pass keeps.
typedef struct pass {
    const tide__sql *sql;
    tide__store *store; ///< NULL: tables only
    tide__replay replay;
    tide__leaves leaves;
    tide__steps steps;
    tide__block_queue *blocks;
    tide__store_state state; ///< where leaves and snapshots end
    tide__process_ends ends; ///< that the events tell of
    int64_t first_event;     ///< that is there; 0: none
    int64_t n_orphans, n_discarded;
} pass;

// ---- where it begins ----

/// Series of the file keep their numbers: its leaves refer to them.
static tide_status load_series(pass *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(p->sql, "SELECT id, device, kind FROM main.series WHERE id <> 0 ORDER BY id", &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(p->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0), device = sqlite3_column_int64(stmt, 1);
        const int64_t kind = sqlite3_column_int64(stmt, 2), next = (int64_t)p->replay.n_series;
        const bool fits = device > 0 && device < TIDE__MAX_DEVICES && kind >= 0 && kind < TIDE_N_KINDS;
        const size_t got = fits ? tide__replay_series(&p->replay, (int16_t)device, (uint8_t)kind) : 0;
        if (fits && got == 0) st = TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
        if (st == TIDE_OK && (id != next || got != (size_t)id))
            st = tide__cursor_bad(p->sql, "series", id, "a series that is none", err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Thinning dropped what lies before the first event: the blocks that were live then are in a snapshot.
static tide_status load_base(pass *p, tide_error *err) {
    TIDE_TRY(tide__sql_int(p->sql,
                           "SELECT min(coalesce((SELECT min(id) FROM main.event), 9223372036854775807), "
                           "coalesce((SELECT min(first_event) FROM main.event_chunk), 9223372036854775807))",
                           INT64_MAX, &p->first_event, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(p->sql,
                               "SELECT event_id, t_ns, data FROM main.snapshot WHERE event_id < ? "
                               "ORDER BY event_id DESC LIMIT 1",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, p->first_event);
    bool has_row;
    tide_status st = tide__sql_step(p->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        const int64_t event_id = sqlite3_column_int64(stmt, 0);
        const void *data = sqlite3_column_blob(stmt, 2);
        st = tide__snapshot_decode(data, (size_t)sqlite3_column_bytes(stmt, 2), &p->replay);
        p->replay.last_event = event_id;
        p->replay.last_ns = sqlite3_column_int64(stmt, 1);
        if (st == TIDE_ERR_NOMEM) st = TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
        if (st == TIDE_ERR_BAD_INPUT) st = tide__cursor_bad(p->sql, "snapshot", event_id, "a damaged snapshot", err);
        if (st == TIDE_OK && p->first_event == INT64_MAX) p->first_event = event_id + 1;
    }
    sqlite3_finalize(stmt);
    if (p->first_event == INT64_MAX) p->first_event = 1;
    return st;
}

// ---- leaves and snapshots that are not in the file yet ----

static tide_status write_leaves(pass *p, tide_error *err) {
    TIDE_TRY(tide__store_write_leaves(p->store, &p->replay, p->leaves.done, p->leaves.n_done, err));
    p->leaves.n_done = 0;
    return TIDE_OK;
}

static tide_status add_leaf_event(pass *p, const tide__event *e, size_t series, tide_error *err) {
    if (tide__leaves_add(&p->leaves, &p->replay, e, series) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
    if (p->leaves.n_done > 0) TIDE_TRY(write_leaves(p, err));
    if (e->id % TIDE__LEAF_EVENTS != 0) return TIDE_OK;
    if (e->id - p->state.snapshot_event < tide__snapshot_distance(p->replay.n_live, false)) return TIDE_OK;
    p->state.snapshot_event = e->id;
    return tide__store_write_snapshot(p->store, &p->replay, err);
}

// ---- the pass ----

/// `n_live`, `bytes`: what lived before it.
static tide_status take_process_end(pass *p, const tide__event *e, size_t n_live, int64_t bytes, tide_error *err) {
    const tide__process_end end = {.process_id = tide__process_of_block(e->block_id),
                                   .event = e->id,
                                   .t_ns = e->t_ns,
                                   .n_blocks = (int64_t)(n_live - p->replay.n_live),
                                   .bytes = bytes - p->replay.series[0].live_bytes};
    return tide__process_ends_put(&p->ends, &end) == TIDE_OK ? TIDE_OK
                                                             : TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
}

static tide_status take_event(pass *p, const tide__event *e, tide_error *err) {
    if (e->op == TIDE__OP_SCOPE_ENTER || e->op == TIDE__OP_SCOPE_LEAVE) TIDE_TRY(tide__steps_add(&p->steps, e, err));
    const size_t n_live = p->replay.n_live;
    const int64_t bytes = p->replay.series[0].live_bytes;
    tide__problem problem;
    size_t series;
    if (tide__replay_apply(&p->replay, e, &problem, &series) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
    if (e->op == TIDE_MEM_ALLOC && (problem == TIDE__PROBLEM_NONE || problem == TIDE__PROBLEM_ALLOC_TWICE))
        TIDE_TRY(tide__block_queue_alloc(p->blocks, e, err));
    if (e->op == TIDE_MEM_POOL_DISCARD) p->n_discarded += (int64_t)(n_live - p->replay.n_live);
    if (e->op == TIDE__OP_PROCESS_END) TIDE_TRY(take_process_end(p, e, n_live, bytes, err));
    if (problem == TIDE__PROBLEM_FREE_UNKNOWN) p->n_orphans++;
    return p->store != NULL && e->id > p->state.leaf_event ? add_leaf_event(p, e, series, err) : TIDE_OK;
}

// ---- what comes next ----

/// Places, in the replay, of the blocks that the next events end: by event.
typedef struct ahead {
    uint32_t place[N_AHEAD];
} ahead;

static inline bool has_block(const tide__event *e) { return e->op <= TIDE_MEM_FREE_COMPLETED && e->block_id > 0; }

/// Where the block of event `i` lies, as far as that is known.
static inline const tide__live_block *block_ahead(const tide__replay *r, const ahead *a, size_t i) {
    const uint32_t place = a->place[i % N_AHEAD];
    return place < r->n_blocks ? &r->blocks[place] : NULL; // another one by now, perhaps: to no harm
}

// A compiler takes a function that does nothing but this for one without effect, and drops its calls.
__attribute__((always_inline)) static inline void fetch_ahead(const pass *p, ahead *a, const tide__event *events,
                                                              size_t i, size_t n) {
    const tide__replay *r = &p->replay;
    if (i + TAG_AHEAD >= n) return;
    const tide__event *e = &events[i + TAG_AHEAD];
    if (has_block(e)) __builtin_prefetch(&r->tags[tide__replay_group(r, tide__replay_hash(e->block_id))]);
    e = &events[i + ENTRY_AHEAD];
    if (has_block(e)) {
        const uint64_t hash = tide__replay_hash(e->block_id);
        const size_t group = tide__replay_group(r, hash);
        unsigned at = tide__group_match(&r->tags[group], tide__replay_tag(r, hash));
        if (at == 0) at = tide__group_match(&r->tags[group], TIDE__TAG_NEVER); // one that will be put in
        __builtin_prefetch(&r->table[group + (at != 0 ? (unsigned)__builtin_ctz(at) : 0)], 1);
    }
    e = &events[i + BLOCK_AHEAD];
    a->place[(i + BLOCK_AHEAD) % N_AHEAD] = NO_PLACE;
    if (has_block(e) && e->op != TIDE_MEM_ALLOC) {
        const size_t entry = tide__replay_entry_of(r, e->block_id);
        if (entry != SIZE_MAX) {
            const uint32_t place = r->table[entry].place;
            __builtin_prefetch(&r->blocks[place], 1);
            __builtin_prefetch((const char *)&r->blocks[place + 1] - 1, 1);
            if (e->op == TIDE_MEM_FREE_COMPLETED) a->place[(i + BLOCK_AHEAD) % N_AHEAD] = place;
        }
    }
    const tide__live_block *b = block_ahead(r, a, i + PLACE_AHEAD);
    if (b != NULL) tide__block_queue_fetch_place(p->blocks, b->alloc_event);
    b = block_ahead(r, a, i + ROW_AHEAD);
    if (b != NULL) tide__block_queue_fetch_row(p->blocks, b->alloc_event);
}

static tide_status take_events(pass *p, tide_error *err) {
    tide__cursor *c;
    TIDE_TRY(tide__cursor_open(p->sql, p->replay.last_event + 1, INT64_MAX, &c, err));
    tide_status st;
    const tide__event *events;
    size_t n;
    while ((st = tide__cursor_next(c, &events, &n, err)) == TIDE_OK && n > 0) {
        ahead next;
        for (size_t i = 0; i < N_AHEAD; i++) next.place[i] = NO_PLACE;
        const tide__event *chunk = NULL;
        size_t n_chunk = 0;
        if (!tide__cursor_chunk(c, &chunk, &n_chunk)) n_chunk = 0;
        st = tide__block_queue_events(p->blocks, chunk, n_chunk, err);
        for (size_t i = 0; st == TIDE_OK && i < n; i++) {
            if (p->replay.n_live > MANY_LIVE) fetch_ahead(p, &next, events, i, n);
            st = take_event(p, &events[i], err);
        }
        if (st == TIDE_OK) st = tide__block_queue_status(p->blocks, err);
        if (st != TIDE_OK) break;
    }
    tide__cursor_close(c);
    return st;
}

static void pass_deinit(pass *p) {
    tide__replay_deinit(&p->replay);
    tide__leaves_deinit(&p->leaves);
    tide__steps_deinit(&p->steps);
    tide__block_queue_destroy(p->blocks);
    tide__process_ends_deinit(&p->ends);
}

static tide_status pass_init(pass *p, const tide__sql *s, tide__blocks_into into, tide__store *store, tide_error *err) {
    memset(p, 0, sizeof *p);
    p->sql = s;
    p->store = store;
    if (tide__replay_init(&p->replay) != TIDE_OK) return TIDE_NO_MEMORY(err, "to finish '%s'", s->path);
    TIDE_TRY(tide__block_queue_create(s, into, &p->blocks, err));
    TIDE_TRY(tide__steps_init(&p->steps, s, into == TIDE__BLOCKS_INTO_MEMORY, err));
    TIDE_TRY(load_series(p, err));
    TIDE_TRY(load_base(p, err));
    p->replay.on_gone = tide__block_queue_gone;
    p->replay.ctx = p->blocks;
    return store != NULL ? tide__store_get_state(store, &p->state, err) : TIDE_OK;
}

static tide_status pass_run(pass *p, tide_error *err) {
    TIDE_TRY(take_events(p, err));
    TIDE_TRY(tide__block_queue_end(p->blocks, &p->replay, err));
    TIDE_TRY(tide__steps_end(&p->steps, err));
    if (p->store == NULL) return TIDE_OK;
    if (tide__leaves_end(&p->leaves) != TIDE_OK) return TIDE_NO_MEMORY(err, "to finish '%s'", p->sql->path);
    return write_leaves(p, err);
}

// ---- tables ----

/// New TEMP tables.
static tide_status make_temp_tables(const tide__sql *s, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tables[i].name, "block") != 0 && strcmp(tables[i].name, "step") != 0) continue;
        char text[2048];
        snprintf(text, sizeof text, "DROP TABLE IF EXISTS temp.%s; CREATE TEMP %s", tables[i].name,
                 tables[i].sql + strlen("CREATE "));
        TIDE_TRY(tide__sql_exec(s, text, err));
    }
    return TIDE_OK;
}

/// Empty tables, and which of them blocks go into: what lies in chunks stays there.
static tide_status make_room(const tide__sql *s, bool in_memory, tide__blocks_into *into, tide_error *err) {
    *into = TIDE__BLOCKS_INTO_MEMORY;
    if (in_memory) return make_temp_tables(s, err);
    TIDE_TRY(tide__sql_exec(s, "DELETE FROM main.block; DELETE FROM main.step", err));
    int64_t has_chunks;
    TIDE_TRY(tide__sql_int(s, "SELECT 1 FROM main.event_chunk LIMIT 1", 0, &has_chunks, err));
    *into = has_chunks != 0 ? TIDE__BLOCKS_INTO_CHUNKS : TIDE__BLOCKS_INTO_ROWS;
    return has_chunks != 0 ? tide__block_pack_make_table(s, err) : TIDE_OK;
}

static tide_status fill_tables(const tide__sql *s, bool in_memory, tide__store *store, pass *p, tide_error *err) {
    tide__blocks_into into;
    TIDE_TRY(make_room(s, in_memory, &into, err));
    TIDE_TRY(pass_init(p, s, into, store, err));
    return pass_run(p, err);
}

tide_status tide__finish_tables(const tide__sql *s, bool in_memory, tide_error *err) {
    const bool own = sqlite3_get_autocommit(s->db) != 0;
    if (own) TIDE_TRY(tide__sql_exec(s, in_memory ? "BEGIN" : "BEGIN IMMEDIATE", err));
    pass *p = tide_host_calloc(1, sizeof *p);
    tide_status st =
        p != NULL ? fill_tables(s, in_memory, NULL, p, err) : TIDE_NO_MEMORY(err, "to finish '%s'", s->path);
    if (p != NULL) pass_deinit(p);
    tide_host_free(p);
    if (own && st == TIDE_OK) st = tide__sql_exec(s, "COMMIT", err);
    if (own && st != TIDE_OK && sqlite3_get_autocommit(s->db) == 0) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

// ---- counts and sums ----

static tide_status put_count(tide__store *s, const char *key, const char *query, int64_t *out, tide_error *err) {
    TIDE_TRY(tide__sql_int(tide__store_sql(s), query, 0, out, err));
    return tide__store_put_meta_int(s, key, *out, err);
}

/// Totals of producers that were killed, and of events that are not there, cannot be equal. An event that came late is
/// in the sums as any other.
static tide_status totals_can_be_equal(const pass *p, int64_t n_lost, bool *can, tide_error *err) {
    int64_t n_totals, n_open, n_problems;
    TIDE_TRY(tide__sql_int(p->sql, "SELECT sum(problem <> 8) FROM main.problem", 0, &n_problems, err));
    TIDE_TRY(tide__sql_int(p->sql, "SELECT sum(1) FROM main.total", 0, &n_totals, err));
    TIDE_TRY(tide__sql_int(p->sql, "SELECT count(*) FROM main.process WHERE how IS NOT 'closed'", 0, &n_open, err));
    *can = n_totals > 0 && n_open == 0 && n_lost == 0 && n_problems == 0 && p->first_event == 1 && p->n_orphans == 0;
    return TIDE_OK;
}

static tide_status compare_totals(const pass *p, int64_t n_lost, int64_t *n_problems, tide_error *err) {
    bool can, equal;
    TIDE_TRY(totals_can_be_equal(p, n_lost, &can, err));
    if (!can) return TIDE_OK;
    char what[256];
    TIDE_TRY(match_totals(p->sql, &p->replay, p->n_discarded > 0, &equal, what, sizeof what, err));
    TIDE_TRY(tide__store_put_meta(p->store, "totals", equal ? "equal" : "different", err));
    if (equal) return TIDE_OK;
    (*n_problems)++;
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(p->sql, "INSERT INTO main.problem(event_id, problem, what) VALUES(?, ?, ?)", &stmt, err));
    sqlite3_bind_int64(stmt, 1, p->replay.last_event);
    sqlite3_bind_int(stmt, 2, TIDE__PROBLEM_TOTALS);
    tide__sql_bind_text(stmt, 3, what);
    const tide_status st = tide__sql_run(p->sql, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

/// By the numbers that events have here: those of a trace that was made of others are new.
static tide_status write_ends(const pass *p, tide_error *err) {
    for (size_t i = 0; i < p->ends.n; i++) TIDE_TRY(tide__process_end_write(p->sql, &p->ends.items[i], err));
    return TIDE_OK;
}

static tide_status write_meta(const pass *p, const char *reason, tide_error *err) {
    tide__store *s = p->store;
    const tide__block_sums sums = tide__block_queue_sums(p->blocks);
    int64_t n, n_lost, n_problems, has_orphans;
    TIDE_TRY(put_count(s, "n_runs", "SELECT sum(1) FROM main.run", &n, err));
    TIDE_TRY(put_count(s, "n_names", "SELECT sum(1) FROM main.name", &n, err));
    TIDE_TRY(put_count(s, "n_scopes", "SELECT sum(1) FROM main.scope", &n, err));
    TIDE_TRY(put_count(s, "n_lost", "SELECT coalesce(sum(n_lost), 0) FROM main.position", &n_lost, err));
    TIDE_TRY(tide__sql_int(p->sql, "SELECT sum(1) FROM main.problem", 0, &n_problems, err));
    TIDE_TRY(compare_totals(p, n_lost, &n_problems, err));
    TIDE_TRY(tide__store_put_meta_int(s, "n_problems", n_problems, err));
    TIDE_TRY(tide__store_put_meta_int(s, "n_events", p->replay.last_event, err));
    TIDE_TRY(tide__store_put_meta_int(s, "first_kept_event", p->first_event, err));
    TIDE_TRY(tide__store_put_meta_int(s, "n_scope_events", p->steps.n_scope_events, err));
    TIDE_TRY(tide__store_put_meta_int(s, "n_blocks", sums.n, err));
    TIDE_TRY(tide__store_put_meta_int(s, "requested_bytes", sums.requested_bytes, err));
    TIDE_TRY(tide__store_put_meta_int(s, "freed_bytes", sums.freed_bytes, err));
    if (sums.left_bytes > 0) TIDE_TRY(tide__store_put_meta_int(s, "left_bytes", sums.left_bytes, err));
    TIDE_TRY(write_ends(p, err));
    TIDE_TRY(tide__sql_int(p->sql, "SELECT 1 FROM main.meta WHERE key = 'n_orphan_frees'", 0, &has_orphans, err));
    if (has_orphans == 0) TIDE_TRY(tide__store_put_meta_int(s, "n_orphan_frees", p->n_orphans, err));
    if (reason != NULL) TIDE_TRY(tide__store_put_meta(s, "reason", reason, err));
    return tide__store_put_meta(s, "state", reason != NULL ? TIDE__STATE_CUT_SHORT : TIDE__STATE_COMPLETE, err);
}

// ---- one plain file ----

/// It is no harm when a reader is in the way.
static void leave_wal(const tide__sql *s) {
    enum { PATIENCE_MS = 100 };
    sqlite3_busy_timeout(s->db, PATIENCE_MS);
    sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_exec(s->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
}

static tide_status finish_inside(tide__store *s, pass *p, const char *reason, tide_error *err) {
    TIDE_TRY(fill_tables(tide__store_sql(s), false, s, p, err));
    return write_meta(p, reason, err);
}

tide_status tide__finish(tide__store *s, const char *reason, tide_error *err) {
    char *path = tide_host_strdup(tide__store_sql(s)->path);
    pass *p = tide_host_calloc(1, sizeof *p);
    tide_status st = p != NULL && path != NULL ? tide__store_begin(s, err)
                                               : TIDE_NO_MEMORY(err, "to finish '%s'", tide__store_sql(s)->path);
    if (st == TIDE_OK) {
        st = finish_inside(s, p, reason, err);
        pass_deinit(p); // no statement of it reads when the transaction ends
        st = tide__store_end(s, st, err);
    }
    tide_host_free(p);
    if (st == TIDE_OK) {
        tide__store_finalize(s);
        leave_wal(tide__store_sql(s));
    }
    tide__store_close(s);
    // A reader that was in the way, and has closed since, found the store still open.
    if (st == TIDE_OK) tide__sql_make_plain(path);
    tide_host_free(path);
    return st;
}

// ---- chunks become rows ----

enum { PER_TRANSACTION = 1 << 20, BUSY_MS = 10000 };

typedef struct expansion {
    tide__sql sql;
    tide__rows *rows;
    sqlite3_stmt *next, *drop;
    sqlite3_stmt *next_blocks, *drop_blocks; ///< NULL: no blocks are packed
    tide__event events[TIDE__CHUNK_MAX_EVENTS];
    tide__block_ends ends;
    tide__block_row blocks[TIDE__CHUNK_MAX_EVENTS];
} expansion;

static int by_id(const void *a, const void *b) {
    const int64_t x = ((const tide__block_row *)a)->id, y = ((const tide__block_row *)b)->id;
    return (x > y) - (x < y);
}

/// The blocks of the chunk x->events [n].
static tide_status expand_blocks(expansion *x, size_t n, tide_error *err) {
    if (x->next_blocks == NULL) return TIDE_OK;
    const int64_t first = x->events[0].id;
    bool has_row;
    sqlite3_bind_int64(x->next_blocks, 1, first);
    tide_status st = tide__sql_step(&x->sql, x->next_blocks, &has_row, err);
    if (st == TIDE_OK && has_row) {
        const uint8_t *data = sqlite3_column_blob(x->next_blocks, 0);
        if (data == NULL ||
            !tide__block_chunk_decode(data, (size_t)sqlite3_column_bytes(x->next_blocks, 0), &x->ends) ||
            !tide__block_chunk_rows(&x->ends, x->events, n, x->blocks))
            st = tide__cursor_bad(&x->sql, "block_chunk", first, "a chunk of blocks is damaged", err);
    }
    sqlite3_reset(x->next_blocks);
    if (st != TIDE_OK || !has_row) return st;
    sqlite3_bind_int64(x->drop_blocks, 1, first);
    TIDE_TRY(tide__sql_run(&x->sql, x->drop_blocks, err));
    qsort(x->blocks, x->ends.n, sizeof x->blocks[0], by_id); // in this order they go fastest
    return tide__rows_insert_blocks(x->rows, false, x->blocks, x->ends.n, err);
}

/// All chunks are rows.
static tide_status expand_end(expansion *x, tide_error *err) {
    if (x->next_blocks == NULL) return TIDE_OK;
    int64_t first;
    TIDE_TRY(tide__sql_int(&x->sql, "SELECT first_event FROM main.block_chunk LIMIT 1", 0, &first, err));
    if (first != 0) return tide__cursor_bad(&x->sql, "block_chunk", first, "a chunk of blocks without its events", err);
    return tide__block_pack_leave_table(&x->sql, err);
}

/// The oldest chunk becomes rows. *n 0: there is none.
static tide_status expand_one(expansion *x, size_t *n, tide_error *err) {
    *n = 0;
    bool has_row;
    int64_t first = 0;
    tide_status st = tide__sql_step(&x->sql, x->next, &has_row, err);
    if (st == TIDE_OK && has_row) {
        first = sqlite3_column_int64(x->next, 0);
        const void *data = sqlite3_column_blob(x->next, 1);
        if (!tide__chunk_decode(data, (size_t)sqlite3_column_bytes(x->next, 1), x->events, n) ||
            x->events[0].id != first)
            st = tide__cursor_bad(&x->sql, "event_chunk", first, "a chunk of events is damaged", err);
    }
    sqlite3_reset(x->next);
    if (st != TIDE_OK || *n == 0) return st;
    // First away with it: its pages serve the rows.
    sqlite3_bind_int64(x->drop, 1, first);
    TIDE_TRY(tide__sql_run(&x->sql, x->drop, err));
    TIDE_TRY(expand_blocks(x, *n, err));
    return tide__rows_insert_events(x->rows, x->events, *n, err);
}

/// One transaction. *n 0: nothing was left to do.
static tide_status expand_some(expansion *x, size_t *n_done, tide_error *err) {
    *n_done = 0;
    TIDE_TRY(tide__sql_exec(&x->sql, "BEGIN IMMEDIATE", err));
    tide_status st = TIDE_OK;
    size_t n = 1;
    while (st == TIDE_OK && n > 0 && *n_done < PER_TRANSACTION) {
        st = expand_one(x, &n, err);
        *n_done += n;
    }
    if (st == TIDE_OK && n == 0) st = expand_end(x, err);
    if (st == TIDE_OK) st = tide__sql_exec(&x->sql, "COMMIT", err);
    if (st != TIDE_OK && sqlite3_get_autocommit(x->sql.db) == 0) sqlite3_exec(x->sql.db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

static tide_status expansion_open(expansion *x, tide_error *err) {
    char *plain = tide__sql_file_name(x->sql.path);
    if (plain == NULL) return TIDE_NO_MEMORY(err, "to expand '%s'", x->sql.path);
    const int rc = sqlite3_open_v2(plain, &x->sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    if (rc != SQLITE_OK) return tide__sql_fail(&x->sql, rc, "open", err);
    sqlite3_busy_timeout(x->sql.db, BUSY_MS);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    TIDE_TRY(tide__sql_exec(&x->sql, "PRAGMA cache_size = -8192; PRAGMA secure_delete = OFF", err));
    TIDE_TRY(tide__rows_open(&x->sql, &x->rows, err));
    TIDE_TRY(tide__sql_prepare(&x->sql, "SELECT first_event, data FROM main.event_chunk ORDER BY first_event LIMIT 1",
                               &x->next, err));
    TIDE_TRY(tide__sql_prepare(&x->sql, "DELETE FROM main.event_chunk WHERE first_event = ?", &x->drop, err));
    bool is_packed;
    TIDE_TRY(tide__blocks_are_packed(&x->sql, &is_packed, err));
    if (!is_packed) return TIDE_OK;
    TIDE_TRY(
        tide__sql_prepare(&x->sql, "SELECT data FROM main.block_chunk WHERE first_event = ?", &x->next_blocks, err));
    return tide__sql_prepare(&x->sql, "DELETE FROM main.block_chunk WHERE first_event = ?", &x->drop_blocks, err);
}

static void expansion_close(expansion *x) {
    sqlite3_finalize(x->next);
    sqlite3_finalize(x->drop);
    sqlite3_finalize(x->next_blocks);
    sqlite3_finalize(x->drop_blocks);
    tide__rows_close(x->rows);
    sqlite3_close(x->sql.db);
    tide_host_free(x);
}

tide_status tide__finish_expand(const char *path, tide_error *err) {
    expansion *x;
    TIDE_TRY(TIDE_NEW(&x, 1, err, "to expand '%s'", path));
    x->sql.path = path;
    tide_status st = expansion_open(x, err);
    for (size_t n = 1; st == TIDE_OK && n > 0;) st = expand_some(x, &n, err);
    expansion_close(x);
    return st;
}
