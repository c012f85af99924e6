// SPDX-License-Identifier: MIT
//
// Rows of a trace that may be damaged, in order. See convert_in.h.
//
// Where a page cannot be read, every search for a number that lies on it fails, and the search for a number behind it
// succeeds: the first number behind is found by doubling steps and halving.
//
//     readable      damaged page       readable
//     ...  39 40 | x  x  x  x  x  x | 87 88 ...
//             ^next --1--2----4--------8       double until a search succeeds, then halve between the last two
#include "profiler/read/convert_in.h"

#include <inttypes.h>

#include "core/base/text.h"

enum { MIN_ROW_BYTES = 6 }; ///< of a key, a value and a place in the page's list

// ---- strict and lenient ----

/// What a lenient reading goes on after: the file is at fault, and not memory or the disk.
static bool is_damage(int rc) {
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_INTERRUPT:
        return false;
    default:
        return true;
    }
}

static tide_status fail(const tide__in *in, int rc, const char *table, tide_error *err) {
    if ((rc & 0xff) == SQLITE_INTERRUPT) return tide__in_damaged(in, err, "table %s has rows without end", table);
    const tide_status st = tide__sql_fail(&in->sql, rc, "read", err);
    tide_error_where(err, "%s: table %s", in->path, table);
    return st;
}

// ---- by number ----

tide_status tide__walk_open(tide__walk *w, tide__in *in, const char *table, const char *key, const char *columns,
                            tide_error *err) {
    *w = (tide__walk){.in = in, .table = table, .next = INT64_MIN};
    bool has;
    TIDE_TRY(tide__in_has_table(in, table, &has, err));
    if (!has && !in->lenient) return tide__in_damaged(in, err, "table %s is missing or none of ours", table);
    if (!has) in->n_lost_spots++;
    w->has_ended = !has;
    if (!has) return TIDE_OK;
    tide_text query = {0};
    // An index of somebody's own must not lead the way.
    tide_text_addf(&query, "SELECT %s FROM %s NOT INDEXED WHERE %s >= ?1 ORDER BY %s", columns, table, key, key);
    tide_status st = query.failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", in->path)
                                  : tide__sql_prepare(&in->sql, query.data, &w->stmt, err);
    tide_text_deinit(&query);
    if (st == TIDE_ERR_NOMEM) return st;
    if (st != TIDE_OK && in->lenient) {
        tide_error_clear(err);
        in->n_lost_spots++;
        w->has_ended = true;
        return TIDE_OK;
    }
    if (st == TIDE_OK) sqlite3_bind_int64(w->stmt, 1, w->next);
    return st;
}

void tide__walk_close(tide__walk *w) {
    sqlite3_finalize(w->stmt);
    *w = (tide__walk){0};
}

/// Whether the rows from number `x` on can be read: on a row whose number is at least that, or at the end.
static bool seek(tide__walk *w, int64_t x, int *rc) {
    sqlite3_reset(w->stmt);
    sqlite3_bind_int64(w->stmt, 1, x);
    *rc = sqlite3_step(w->stmt);
    if (*rc == SQLITE_DONE) return true;
    return *rc == SQLITE_ROW && sqlite3_column_type(w->stmt, 0) == SQLITE_INTEGER &&
           sqlite3_column_int64(w->stmt, 0) >= x;
}

/// Row `next` and those on its page cannot be read: stand on the first one behind, or at the end.
static int skip_damage(tide__walk *w) {
    int rc;
    w->n_spots++;
    int64_t bad = w->next, good = w->next;
    for (int64_t step = 1; !seek(w, good, &rc); step = step <= INT64_MAX / 2 ? 2 * step : INT64_MAX) {
        if (rc != SQLITE_ROW && !is_damage(rc)) return rc;
        bad = good;
        if (good == INT64_MAX) return SQLITE_DONE;
        if (__builtin_add_overflow(good, step, &good)) good = INT64_MAX;
    }
    if (good == w->next) return rc;
    while (bad < good - 1) {
        const int64_t mid = bad + (good - bad) / 2;
        if (seek(w, mid, &rc)) {
            good = mid;
        } else {
            if (rc != SQLITE_ROW && !is_damage(rc)) return rc;
            bad = mid;
        }
    }
    return seek(w, good, &rc) || rc != SQLITE_ROW ? rc : SQLITE_CORRUPT;
}

tide_status tide__walk_next(tide__walk *w, sqlite3_stmt **row, tide_error *err) {
    *row = NULL;
    if (w->has_ended) return TIDE_OK;
    int rc = sqlite3_step(w->stmt);
    bool rises = rc != SQLITE_ROW ||
                 (sqlite3_column_type(w->stmt, 0) == SQLITE_INTEGER && sqlite3_column_int64(w->stmt, 0) >= w->next);
    if (!rises && !w->in->lenient) return tide__in_bad_row(w->in, w->table, sqlite3_column_int64(w->stmt, 0), err);
    if (w->in->lenient && (!rises || (rc != SQLITE_ROW && rc != SQLITE_DONE && is_damage(rc)))) {
        // Numbers count from 1; what claims less is not looked for.
        if (w->next < 0) w->next = 0;
        rc = skip_damage(w);
    }
    if (rc == SQLITE_ROW) {
        const int64_t id = sqlite3_column_int64(w->stmt, 0);
        w->has_ended = id == INT64_MAX;
        w->next = w->has_ended ? id : id + 1;
        *row = w->stmt;
        return TIDE_OK;
    }
    w->has_ended = true;
    w->in->n_lost_spots += w->n_spots;
    return rc == SQLITE_DONE ? TIDE_OK : fail(w->in, rc, w->table, err);
}

static tide_status take_one(tide__in *in, sqlite3_stmt *row, tide__take_row take, void *ctx, tide_error *err) {
    const tide_status st = take(ctx, row, err);
    if (st != TIDE_ERR_BAD_INPUT || !in->lenient) return st;
    tide_error_clear(err);
    in->n_lost_rows++;
    return TIDE_OK;
}

tide_status tide__in_each(tide__in *in, const char *table, const char *key, const char *columns, tide__take_row take,
                          void *ctx, tide_error *err) {
    tide__walk w;
    tide_status st = tide__walk_open(&w, in, table, key, columns, err);
    while (st == TIDE_OK) {
        sqlite3_stmt *row;
        st = tide__walk_next(&w, &row, err);
        if (st != TIDE_OK || row == NULL) break;
        st = take_one(in, row, take, ctx, err);
    }
    tide__walk_close(&w);
    return st;
}

// ---- by key ----

/// *met_damage: the walk ended before the end of the table.
static tide_status walk_by_key(tide__in *in, const char *table, const char *order, bool backwards, const char *columns,
                               tide__take_row take, void *ctx, bool *met_damage, tide_error *err) {
    tide_text query = {0};
    sqlite3_stmt *stmt = NULL;
    *met_damage = false;
    tide_text_addf(&query, "SELECT %s FROM %s NOT INDEXED ORDER BY ", columns, table);
    for (const char *c = order; *c != '\0'; c++) { // every column of it turns round
        if (*c == ',' && backwards) tide_text_add(&query, " DESC");
        tide_text_add_n(&query, c, 1);
    }
    if (backwards) tide_text_add(&query, " DESC");
    tide_status st = query.failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", in->path)
                                  : tide__sql_prepare(&in->sql, query.data, &stmt, err);
    tide_text_deinit(&query);
    int rc = SQLITE_OK;
    // No row takes less than some bytes: more rows than that are pages that lead to themselves.
    uint64_t room = in->file_bytes / MIN_ROW_BYTES;
    while (st == TIDE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (room-- == 0) rc = SQLITE_CORRUPT;
        if (rc != SQLITE_ROW) break;
        st = take_one(in, stmt, take, ctx, err);
    }
    if (st == TIDE_OK && rc != SQLITE_DONE) st = fail(in, rc, table, err);
    sqlite3_finalize(stmt);
    if (!in->lenient || st == TIDE_OK || st == TIDE_ERR_NOMEM || (rc == SQLITE_ROW && st != TIDE_ERR_BAD_INPUT))
        return st;
    tide_error_clear(err);
    *met_damage = true;
    return TIDE_OK;
}

tide_status tide__in_each_by_key(tide__in *in, const char *table, const char *order, const char *columns,
                                 tide__take_row take, void *ctx, tide_error *err) {
    bool has, met_damage;
    TIDE_TRY(tide__in_has_table(in, table, &has, err));
    if (!has && !in->lenient) return tide__in_damaged(in, err, "table %s is missing or none of ours", table);
    if (!has) in->n_lost_spots++;
    if (!has) return TIDE_OK;
    TIDE_TRY(walk_by_key(in, table, order, false, columns, take, ctx, &met_damage, err));
    if (!met_damage) return TIDE_OK;
    in->n_lost_spots++;
    return walk_by_key(in, table, order, true, columns, take, ctx, &met_damage, err);
}
