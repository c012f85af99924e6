// SPDX-License-Identifier: MIT
//
// Whether a trace holds what its recorder noted: tables, counts, sums. See tide_trace_open in query.h.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/read/moments_internal.h"
#include "profiler/store/schema.h"

enum {
    COUNT_ALL = 1000000, // events up to which rows are counted when a trace is opened
};

tide_status tide__trace_check_tables(const tide_trace *t, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(&t->sql, "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide__sql_bind_text(stmt, 1, tables[i].name);
        bool has_row;
        st = tide__sql_step(&t->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), tables[i].sql) != 0)) {
            st = tide__trace_damaged(t, err);
            tide_error_note(err, "damaged: table %s is %s", tables[i].name,
                            has_row ? "not the one of this version" : "missing");
        }
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__trace_meta_number(tide_trace *t, const char *key, int64_t *out, tide_error *err) {
    char text[32];
    const tide_status st = tide_trace_meta(t, key, text, sizeof text, err);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
    char *end = text;
    errno = 0;
    if (st == TIDE_OK) *out = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) return TIDE_OK;
    tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: meta has no number '%s'", key);
    return TIDE_ERR_BAD_INPUT;
}

static tide_status check_number(tide_trace *t, const char *key, const char *what, int64_t found, tide_error *err) {
    int64_t recorded;
    TIDE_TRY(tide__trace_meta_number(t, key, &recorded, err));
    if (recorded == found) return TIDE_OK;
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: %" PRId64 " %s recorded, %" PRId64 " found", recorded, what, found);
    return st;
}

typedef struct counted {
    const char *key, *what, *query;
} counted;

static tide_status check_counts(tide_trace *t, const counted *all, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        int64_t found;
        TIDE_TRY(tide__sql_int(&t->sql, all[i].query, 0, &found, err));
        TIDE_TRY(check_number(t, all[i].key, all[i].what, found, err));
    }
    return TIDE_OK;
}

// ---- events ----

static tide_status count_scope_events(void *ctx, const tide__event *events, size_t n) {
    int64_t *n_scope_events = ctx;
    for (size_t i = 0; i < n; i++)
        *n_scope_events += events[i].op == TIDE__OP_SCOPE_ENTER || events[i].op == TIDE__OP_SCOPE_LEAVE;
    return TIDE_OK;
}

/// Every event is read: each one that is left is there.
static tide_status check_events(tide_trace *t, tide_error *err) {
    int64_t n_scope_events = 0;
    TIDE_TRY(
        tide__trace_each(t, TIDE__READ_OPS, t->first_event, t->last_event, count_scope_events, &n_scope_events, err));
    return check_number(t, "n_scope_events", "scope events", n_scope_events, err);
}

// ---- sums ----

/// What is live at the end: as the last leaves say, and as the sums of meta say.
static tide_status check_leaves(tide_trace *t, tide_error *err) {
    int64_t requested, freed, live = 0;
    TIDE_TRY(tide__trace_meta_number(t, "requested_bytes", &requested, err));
    TIDE_TRY(tide__trace_meta_number(t, "freed_bytes", &freed, err));
    const tide__trace_series *sum = &t->series[0];
    if (sum->n_leaves > 0) live = sum->leaves[sum->n_leaves - 1].last_bytes;
    if (requested >= freed && freed >= 0 && requested - freed == live) return TIDE_OK;
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: %" PRId64 " bytes requested and %" PRId64 " freed, but %" PRId64 " live at the end",
                    requested, freed, live);
    return st;
}

tide_status tide__trace_check_content(tide_trace *t, bool every, tide_error *err) {
    static const counted small[] = {
        {"n_runs", "runs", "SELECT sum(1) FROM main.run"},
        {"n_names", "names", "SELECT sum(1) FROM main.name"},
        {"n_scopes", "scopes", "SELECT sum(1) FROM main.scope"},
        {"n_problems", "problems", "SELECT sum(1) FROM main.problem"},
        {"n_lost", "lost events", "SELECT sum(n_lost) FROM main.position"},
    };
    static const counted blocks[] = {
        {"n_blocks", "blocks", "SELECT sum(1) FROM main.block"},
        {"requested_bytes", "requested bytes", "SELECT sum(requested_bytes) FROM main.block"},
        {"freed_bytes", "freed bytes", "SELECT sum(requested_bytes) FROM main.block WHERE free_event IS NOT NULL"},
    };
    char schema[32];
    const tide_status st = tide_trace_meta(t, "schema", schema, sizeof schema, err);
    if (st == TIDE_ERR_NOT_FOUND || (st == TIDE_OK && strcmp(schema, TIDE__TRACE_SCHEMA) != 0)) {
        tide__trace_damaged(t, err);
        tide_error_note(err, "damaged: meta does not say '%s'", TIDE__TRACE_SCHEMA);
        return TIDE_ERR_BAD_INPUT;
    }
    TIDE_TRY(st);
    if (t->state == TIDE_TRACE_RECORDING) return TIDE_OK; // the counts come at the end
    TIDE_TRY(check_counts(t, small, sizeof small / sizeof small[0], err));
    TIDE_TRY(check_number(t, "n_events", "events", t->last_event, err));
    TIDE_TRY(check_number(t, "first_kept_event", "as first event", t->first_event, err));
    TIDE_TRY(check_leaves(t, err));
    if (!every && t->last_event - t->first_event >= COUNT_ALL) return TIDE_OK;
    TIDE_TRY(check_counts(t, blocks, sizeof blocks / sizeof blocks[0], err));
    return check_events(t, err);
}
