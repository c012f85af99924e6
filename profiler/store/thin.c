// SPDX-License-Identifier: MIT
//
// A trace that stays small however long it is recorded. See store.h.
//
//     events    [ dropped ........ ][ kept: ............................ ]
//     snapshots           P        S         S         S         S        the first S is where a replay begins; P is
//                                                                         of the peak of all, if that was dropped
//     leaves    [ merged, coarse ][ fine ................................ ]   never dropped: peaks stay exact
//
// Events go up to a snapshot, one snapshot after the other, until the pages in use leave room for what comes, and for
// the tables that are made at the end. The freed pages are used again, so that the file does not grow; a call drops a
// bounded number of events, so that the recording does not stand still.
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/store_internal.h"

enum {
    MAX_LEAVES = 65536, // of a series; beyond that the older half is merged in pairs
    END_BYTES = 32,     // half a row of table block
    PACKED_BYTES = 8,   // of a block chunk, for an event: three times what programs were seen to need
    DROP_AT_ONCE = 1 << 18,
};

#define LATE "8" // TIDE__PROBLEM_LATE: a time of an event that goes with the event; meta counts them
_Static_assert((int)TIDE__PROBLEM_LATE == 8, "see LATE");

// ---- how large it is ----

tide_status tide__store_bytes(const tide__store *s, uint64_t *file, uint64_t *wal, tide_error *err) {
    int64_t n_pages, n_free, page_bytes;
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA page_count", 0, &n_pages, err));
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA freelist_count", 0, &n_free, err));
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA page_size", 0, &page_bytes, err));
    *file = n_pages > n_free ? (uint64_t)(n_pages - n_free) * (uint64_t)page_bytes : 0;
    // SQLite's own name of the log: the program may have changed its folder since it was opened.
    struct stat info;
    const char *name = sqlite3_db_filename(s->sql.db, "main");
    *wal = name != NULL && stat(sqlite3_filename_wal(name), &info) == 0 ? (uint64_t)info.st_size : 0;
    return TIDE_OK;
}

static tide_status number(const tide__store *s, const char *text, int64_t value, int64_t *out, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, text, &stmt, err));
    sqlite3_bind_int64(stmt, 1, value);
    bool has_row;
    const tide_status st = tide__sql_step(&s->sql, stmt, &has_row, err);
    *out = has_row ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return st;
}

/// Whether all events are in chunks: then blocks are packed, but those that were live when what is kept begins.
static tide_status is_packed(const tide__store *s, bool *out, tide_error *err) {
    int64_t has_rows;
    TIDE_TRY(tide__sql_int(&s->sql, "SELECT 1 FROM event LIMIT 1", 0, &has_rows, err));
    *out = has_rows == 0;
    return TIDE_OK;
}

/// Bytes of the file if it were finished now. Table block gets a row for each block that was live when what is kept
/// begins, and for each that was allocated since; most of these were freed again, which takes a second event.
static tide_status projected(const tide__store *s, int64_t last_event, uint64_t *bytes, tide_error *err) {
    uint64_t wal;
    int64_t before, now, halves = last_event >= s->first_kept ? last_event - s->first_kept + 1 : 0;
    TIDE_TRY(tide__store_bytes(s, bytes, &wal, err));
    TIDE_TRY(number(s, "SELECT blocks FROM snapshot WHERE event_id < ? ORDER BY event_id DESC LIMIT 1", s->first_kept,
                    &before, err));
    TIDE_TRY(number(s, "SELECT blocks FROM snapshot WHERE event_id > ? ORDER BY event_id DESC LIMIT 1", 0, &now, err));
    if (!tide_add_i64(halves, before, &halves) || !tide_add_i64(halves, now, &halves) || halves < 0 ||
        halves > INT64_MAX / END_BYTES)
        return tide__store_bad(s, "snapshot", err);
    bool packed;
    TIDE_TRY(is_packed(s, &packed, err));
    *bytes += packed ? (uint64_t)(halves - before - now) * PACKED_BYTES + (uint64_t)before * 2 * END_BYTES
                     : (uint64_t)halves * END_BYTES;
    return TIDE_OK;
}

static tide_status first_kept(tide__store *s, tide_error *err) {
    if (s->first_kept != 0) return TIDE_OK;
    int64_t event;
    TIDE_TRY(tide__sql_int(&s->sql, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_kept_event'", 1, &event,
                           err));
    if (event < 1) return tide__store_bad(s, "meta", err);
    s->first_kept = event;
    return TIDE_OK;
}

// ---- events ----

/// Run a statement with one number for its parameter.
static tide_status run_once(const tide__store *s, const char *text, int64_t value, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, text, &stmt, err));
    sqlite3_bind_int64(stmt, 1, value);
    const tide_status st = tide__sql_run(&s->sql, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

/// The events behind `last` of the chunk that holds it become a chunk of their own; the older one can go whole.
static tide_status split_chunk(tide__store *s, int64_t last, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &s->sql, "SELECT last_event, data FROM event_chunk WHERE first_event <= ? ORDER BY first_event DESC LIMIT 1",
        &stmt, err));
    sqlite3_bind_int64(stmt, 1, last);
    bool has_row;
    tide_status st = tide__sql_step(&s->sql, stmt, &has_row, err);
    tide__event *events = NULL;
    size_t n = 0, n_dropped = 0;
    if (st == TIDE_OK && has_row && sqlite3_column_int64(stmt, 0) > last) {
        events = tide_host_calloc(TIDE__CHUNK_MAX_EVENTS, sizeof *events);
        const void *data = sqlite3_column_blob(stmt, 1);
        if (events == NULL) {
            st = TIDE_NO_MEMORY(err, "to write '%s'", s->path);
        } else if (!tide__chunk_decode(data, (size_t)sqlite3_column_bytes(stmt, 1), events, &n)) {
            st = tide__store_bad(s, "event_chunk", err);
        }
    }
    sqlite3_finalize(stmt);
    while (n_dropped < n && events[n_dropped].id <= last) n_dropped++;
    if (st == TIDE_OK) st = tide__store_write_events(s, &events[n_dropped], n - n_dropped, true, err);
    tide_host_free(events);
    return st;
}

// ---- the peak ----

static tide_status write_peak(tide__store *s, int64_t before, int64_t event, tide_error *err) {
    tide__replay *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL || tide__replay_init(r) != TIDE_OK) {
        tide_host_free(r);
        return TIDE_NO_MEMORY(err, "to write '%s'", s->path);
    }
    const tide__store_state base = {.snapshot_event = before};
    tide_status st = tide__store_load_replay(s, &base, r, err);
    if (st == TIDE_OK) st = tide__store_replay(s, event, r, NULL, 0, err);
    if (st == TIDE_OK && r->last_event != event) st = tide__store_bad(s, "event", err);
    if (st == TIDE_OK) st = tide__store_write_snapshot(s, r, err);
    tide__replay_deinit(r);
    tide_host_free(r);
    return st;
}

/// Who was live at the first highest moment so far stays known when its events go, up to `last`.
static tide_status keep_peak(tide__store *s, int64_t last, int64_t *peak, tide_error *err) {
    int64_t before;
    TIDE_TRY(number(s,
                    "SELECT max_event FROM leaf WHERE series = 0 AND last_event >= ? ORDER BY max_bytes DESC, "
                    "first_event LIMIT 1",
                    0, peak, err));
    if (*peak < s->first_kept || *peak > last) return TIDE_OK; // it stays, or its snapshot is there
    TIDE_TRY(number(s, "SELECT max(event_id) FROM snapshot WHERE event_id <= ?", *peak, &before, err));
    return before == *peak ? TIDE_OK : write_peak(s, before, *peak, err);
}

static tide_status drop_snapshots(tide__store *s, int64_t last, int64_t peak, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "DELETE FROM snapshot WHERE event_id < ? AND event_id <> ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, last);
    sqlite3_bind_int64(stmt, 2, peak);
    const tide_status st = tide__sql_run(&s->sql, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

/// Nothing up to `last` is kept but what the snapshots there and of the peak hold.
static tide_status drop_until(tide__store *s, int64_t last, tide_error *err) {
    int64_t peak;
    TIDE_TRY(keep_peak(s, last, &peak, err));
    TIDE_TRY(split_chunk(s, last, err));
    TIDE_TRY(run_once(s, "DELETE FROM event_chunk WHERE first_event <= ?", last, err));
    TIDE_TRY(run_once(s, "DELETE FROM event WHERE id <= ?", last, err));
    TIDE_TRY(drop_snapshots(s, last, peak, err));
    TIDE_TRY(run_once(s, "DELETE FROM problem WHERE problem = " LATE " AND event_id <= ?", last, err));
    s->first_kept = last + 1;
    return tide__store_put_meta_int(s, "first_kept_event", s->first_kept, err);
}

static uint64_t high_mark(uint64_t max_bytes) { return max_bytes - max_bytes / 16; }

static tide_status drop_events(tide__store *s, int64_t last_event, uint64_t max_bytes, tide_error *err) {
    const uint64_t low = high_mark(max_bytes) - max_bytes / 16;
    uint64_t bytes;
    TIDE_TRY(projected(s, last_event, &bytes, err));
    for (const int64_t before = s->first_kept; bytes > low && s->first_kept - before < DROP_AT_ONCE;) {
        int64_t event;
        TIDE_TRY(number(s, "SELECT event_id FROM snapshot WHERE event_id >= ? ORDER BY event_id LIMIT 1", s->first_kept,
                        &event, err));
        if (event == 0) break;
        TIDE_TRY(drop_until(s, event, err));
        TIDE_TRY(projected(s, last_event, &bytes, err));
    }
    return tide__sql_exec(
        &s->sql, "DELETE FROM process_memory WHERE t_ns < (SELECT t_ns FROM snapshot ORDER BY event_id LIMIT 1)", err);
}

// ---- leaves ----

static tide__leaf merged(const tide__leaf *a, const tide__leaf *b) {
    tide__leaf m = *a;
    m.last_event = b->last_event;
    m.end_ns = b->end_ns;
    if (b->min_bytes < m.min_bytes) m.min_bytes = b->min_bytes;
    if (b->max_bytes > m.max_bytes) { // the first that reached it stays
        m.max_bytes = b->max_bytes;
        m.max_event = b->max_event;
        m.max_ns = b->max_ns;
    }
    if (b->max_reserved_bytes > m.max_reserved_bytes) m.max_reserved_bytes = b->max_reserved_bytes;
    m.last_bytes = b->last_bytes;
    m.last_reserved_bytes = b->last_reserved_bytes;
    return m;
}

static void take_leaf(sqlite3_stmt *stmt, tide__leaf *l) {
    *l = (tide__leaf){
        .series = sqlite3_column_int(stmt, 0),
        .first_event = sqlite3_column_int64(stmt, 1),
        .last_event = sqlite3_column_int64(stmt, 2),
        .begin_ns = sqlite3_column_int64(stmt, 3),
        .end_ns = sqlite3_column_int64(stmt, 4),
        .min_bytes = sqlite3_column_int64(stmt, 5),
        .max_bytes = sqlite3_column_int64(stmt, 6),
        .max_event = sqlite3_column_int64(stmt, 7),
        .max_ns = sqlite3_column_int64(stmt, 8),
        .max_reserved_bytes = sqlite3_column_int64(stmt, 9),
        .last_bytes = sqlite3_column_int64(stmt, 10),
        .last_reserved_bytes = sqlite3_column_int64(stmt, 11),
    };
}

/// The `n` oldest leaves of a series, in order. *out [*n], owned.
static tide_status oldest_leaves(const tide__store *s, int64_t series, size_t n, tide__leaf **out, size_t *n_out,
                                 tide_error *err) {
    tide__leaf *leaves;
    TIDE_TRY(TIDE_NEW(&leaves, n, err, "to write '%s'", s->path));
    sqlite3_stmt *stmt = NULL;
    tide_status st =
        tide__sql_prepare(&s->sql, "SELECT * FROM leaf WHERE series = ? ORDER BY first_event LIMIT ?", &stmt, err);
    if (st == TIDE_OK) sqlite3_bind_int64(stmt, 1, series);
    if (st == TIDE_OK) sqlite3_bind_int64(stmt, 2, (int64_t)n);
    bool has_row;
    size_t i = 0;
    while (st == TIDE_OK && i < n && (st = tide__sql_step(&s->sql, stmt, &has_row, err)) == TIDE_OK && has_row)
        take_leaf(stmt, &leaves[i++]);
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) {
        tide_host_free(leaves);
        return st;
    }
    *out = leaves;
    *n_out = i;
    return TIDE_OK;
}

static tide_status write_merged(tide__store *s, tide__leaf *leaves, size_t n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "DELETE FROM leaf WHERE series = ? AND first_event <= ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, leaves[0].series);
    sqlite3_bind_int64(stmt, 2, leaves[n - 1].first_event);
    const tide_status st = tide__sql_run(&s->sql, stmt, err);
    sqlite3_finalize(stmt);
    TIDE_TRY(st);
    for (size_t i = 0; i < n / 2; i++) leaves[i] = merged(&leaves[2 * i], &leaves[2 * i + 1]);
    if (n % 2 == 1) leaves[n / 2] = leaves[n - 1];
    return tide__store_write_known_leaves(s, leaves, (n + 1) / 2, err);
}

static tide_status merge_series(tide__store *s, int64_t series, size_t n_leaves, tide_error *err) {
    tide__leaf *leaves = NULL;
    size_t n = 0;
    TIDE_TRY(oldest_leaves(s, series, n_leaves / 2, &leaves, &n, err));
    const tide_status st = n >= 2 ? write_merged(s, leaves, n, err) : TIDE_OK;
    tide_host_free(leaves);
    return st;
}

static tide_status merge_leaves(tide__store *s, tide_error *err) {
    while (true) {
        int64_t series, n;
        TIDE_TRY(tide__sql_int(&s->sql, "SELECT series FROM leaf GROUP BY series ORDER BY count(*) DESC LIMIT 1", -1,
                               &series, err));
        TIDE_TRY(tide__sql_int(&s->sql, "SELECT count(*) FROM leaf GROUP BY series ORDER BY count(*) DESC LIMIT 1", 0,
                               &n, err));
        if (n <= MAX_LEAVES) return TIDE_OK;
        TIDE_TRY(merge_series(s, series, (size_t)n, err));
    }
}

// ---- both ----

/// The log is kept as small as the file, from the first call on.
static void limit_log(const tide__store *s, uint64_t max_bytes) {
    const uint64_t pages = max_bytes / 8192 / 8;
    if (pages < TIDE__STORE_CHECKPOINT_PAGES) sqlite3_wal_autocheckpoint(s->sql.db, pages < 64 ? 64 : (int)pages);
}

static tide_status thin(tide__store *s, bool leaves, int64_t last_event, uint64_t max_bytes, tide_error *err) {
    if (leaves) TIDE_TRY(merge_leaves(s, err));
    return max_bytes > 0 ? drop_events(s, last_event, max_bytes, err) : TIDE_OK;
}

tide_status tide__store_thin(tide__store *s, uint64_t max_bytes, int64_t *kept_from, tide_error *err) {
    static const char last[] = "SELECT max(coalesce((SELECT id FROM event ORDER BY id DESC LIMIT 1), 0), coalesce("
                               "(SELECT last_event FROM event_chunk ORDER BY first_event DESC LIMIT 1), 0))";
    const bool leaves = s->n_leaves_since >= TIDE__STORE_COUNT_LEAVES;
    int64_t last_event = 0;
    uint64_t bytes = 0;
    TIDE_TRY(first_kept(s, err));
    *kept_from = s->first_kept;
    if (max_bytes > 0) {
        limit_log(s, max_bytes);
        TIDE_TRY(tide__sql_int(&s->sql, last, 0, &last_event, err));
        TIDE_TRY(projected(s, last_event, &bytes, err));
    }
    if (!leaves && bytes <= high_mark(max_bytes)) return TIDE_OK;
    if (leaves) s->n_leaves_since = 0;
    TIDE_TRY(tide__store_begin(s, err));
    TIDE_TRY(tide__store_end(s, thin(s, leaves, last_event, max_bytes, err), err));
    if (s->first_kept == *kept_from) return TIDE_OK;
    *kept_from = s->first_kept;
    // Without a wait for readers: what one of them holds back is taken in later.
    sqlite3_wal_checkpoint_v2(s->sql.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return TIDE_OK;
}
