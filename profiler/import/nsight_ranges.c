// SPDX-License-Identifier: MIT
//
// NVTX ranges in the order of their begins and ends. See nsight_ranges.h.
#include "profiler/import/nsight_ranges.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

#define TABLE "NVTX_EVENTS"

/// Ranges of a thread that are open, the last one begun last; those that are over go when they are the last.
typedef struct tide__nsight_open {
    uint64_t key;    // first: thread + 1
    size_t *numbers; // [n], owned
    size_t n, cap;
} tide__nsight_open;

typedef struct tide__nsight_range range;
typedef struct tide__nsight_end range_end;

static tide_status no_memory(const tide__nsight_ranges *r, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", r->path);
}

static tide_status failed(const tide__nsight_ranges *r, tide_error *err) {
    if (sqlite3_errcode(r->db) == SQLITE_NOMEM) return no_memory(r, err);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", r->path, sqlite3_errmsg(r->db));
}

// ---- the file ----

enum { ROW, START, END, TID, TEXT, DOMAIN_NAME, IS_MARK };

static bool has(const tide__nsight_ranges *r, const char *table, const char *column) {
    return sqlite3_table_column_metadata(r->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/// "IN (…)" of the types of that name; where the file does not name them, their usual number.
static void add_type(const tide__nsight_ranges *r, tide_text *q, const char *name, int usual) {
    if (has(r, "ENUM_NSYS_EVENT_TYPE", "name"))
        tide_text_addf(q, "IN (SELECT id FROM ENUM_NSYS_EVENT_TYPE WHERE name = '%s')", name);
    else
        tide_text_addf(q, "IN (%d)", usual);
}

/// What this version of the schema has. Of ranges that begin at once the longest is the outermost.
static void add_query(const tide__nsight_ranges *r, tide_text *q) {
    enum { MARK = 34, PUSH_POP = 59, START_END = 60, DOMAIN = 75 };
    const bool has_ids = has(r, TABLE, "textId") && has(r, "StringIds", "value"),
               has_domain = has(r, TABLE, "domainId") && has(r, TABLE, "text");
    const char *text = has_ids && has(r, TABLE, "text") ? "coalesce(e.text, s.value)" : has_ids ? "s.value" : "e.text";
    tide_text_addf(q, "SELECT e.rowid, e.start, e.end, e.globalTid, %s, %s, e.eventType ", text,
                   has_domain ? "d.text" : "NULL");
    add_type(r, q, "NvtxMark", MARK);
    tide_text_add(q, " FROM " TABLE " e ");
    if (has_ids) tide_text_add(q, "LEFT JOIN StringIds s ON s.id = e.textId ");
    if (has_domain) {
        tide_text_add(q, "LEFT JOIN (SELECT domainId, globalTid >> 24 AS pid, min(text) AS text FROM " TABLE
                         " WHERE eventType ");
        add_type(r, q, "NvtxDomainCreate", DOMAIN);
        tide_text_add(q, " GROUP BY 1, 2) d ON d.domainId = e.domainId AND d.pid = e.globalTid >> 24 ");
    }
    tide_text_add(q, "WHERE e.eventType ");
    add_type(r, q, "NvtxMark", MARK);
    tide_text_add(q, " OR e.eventType ");
    add_type(r, q, "NvtxPushPopRange", PUSH_POP);
    tide_text_add(q, " OR e.eventType ");
    add_type(r, q, "NvtxStartEndRange", START_END);
    tide_text_add(q, " ORDER BY e.start, e.end IS NOT NULL, e.end DESC, e.rowid");
}

static tide_status bad_row(const tide__nsight_ranges *r, const char *what, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", r->path, what);
    tide_error_where(err, "%s: table " TABLE ", row %" PRId64, r->path, (int64_t)sqlite3_column_int64(r->rows, ROW));
    return st;
}

static tide_status step(tide__nsight_ranges *r, tide_error *err) {
    const int rc = sqlite3_step(r->rows);
    r->has_next = rc == SQLITE_ROW;
    if (rc == SQLITE_DONE) return TIDE_OK;
    if (rc != SQLITE_ROW) return failed(r, err);
    r->next_ns = sqlite3_column_int64(r->rows, START);
    if (sqlite3_column_type(r->rows, START) != SQLITE_INTEGER || r->next_ns < 0 || r->next_ns > INT64_MAX / 2)
        return bad_row(r, "'start' is no time", err);
    const int end = sqlite3_column_type(r->rows, END);
    if (end != SQLITE_NULL && (end != SQLITE_INTEGER || sqlite3_column_int64(r->rows, END) < r->next_ns))
        return bad_row(r, "'end' is no time behind 'start'", err);
    return TIDE_OK;
}

tide_status tide__nsight_ranges_open(tide__nsight_ranges *r, tide_error *err) {
    tide_text query = {0};
    r->open = (tide_map)TIDE_MAP(tide__nsight_open);
    if (!has(r, TABLE, "eventType") || !has(r, TABLE, "end") || !has(r, TABLE, "globalTid") ||
        (!has(r, TABLE, "text") && !has(r, TABLE, "textId")))
        return TIDE_OK;
    add_query(r, &query);
    tide_status st = query.failed ? no_memory(r, err) : TIDE_OK;
    if (st == TIDE_OK && sqlite3_prepare_v2(r->db, tide_text_str(&query), -1, &r->rows, NULL) != SQLITE_OK)
        st = failed(r, err);
    tide_text_deinit(&query);
    return st == TIDE_OK ? step(r, err) : st;
}

// ---- which is open ----

static tide__nsight_open *open_on(const tide__nsight_ranges *r, int32_t thread) {
    tide__nsight_open *o = tide_map_find(&r->open, (uint64_t)thread + 1);
    while (o != NULL && o->n > 0 && r->all[o->numbers[o->n - 1]].is_over) o->n--;
    return o;
}

int32_t tide__nsight_ranges_scope(tide__nsight_ranges *r, int32_t thread) {
    const tide__nsight_open *o = open_on(r, thread);
    return o != NULL && o->n > 0 ? r->all[o->numbers[o->n - 1]].scope : 0;
}

static tide_status open_range(tide__nsight_ranges *r, const range *g, tide_error *err) {
    tide__nsight_open *o = open_on(r, g->thread);
    if (o == NULL) {
        if (!tide_map_put(&r->open, &(tide__nsight_open){.key = (uint64_t)g->thread + 1})) return no_memory(r, err);
        o = tide_map_find(&r->open, (uint64_t)g->thread + 1);
    }
    TIDE_TRY(TIDE_GROW(&r->all, &r->cap, r->n + 1, err, "to read '%s'", r->path));
    TIDE_TRY(TIDE_GROW(&o->numbers, &o->cap, o->n + 1, err, "to read '%s'", r->path));
    r->all[r->n] = *g;
    o->numbers[o->n++] = r->n++;
    return TIDE_OK;
}

// ---- ends, the first on top ----

static bool is_before(const range_end *a, const range_end *b) {
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->number > b->number; // at once the innermost first
}

static tide_status push_end(tide__nsight_ranges *r, range_end end, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&r->ends, &r->cap_ends, r->n_ends + 1, err, "to read '%s'", r->path));
    size_t i = r->n_ends++;
    for (; i > 0 && is_before(&end, &r->ends[(i - 1) / 2]); i = (i - 1) / 2) r->ends[i] = r->ends[(i - 1) / 2];
    r->ends[i] = end;
    return TIDE_OK;
}

static range_end pop_end(tide__nsight_ranges *r) {
    TIDE_ASSERT(r->n_ends > 0);
    const range_end first = r->ends[0], last = r->ends[--r->n_ends];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < r->n_ends; i = child) {
        if (child + 1 < r->n_ends && is_before(&r->ends[child + 1], &r->ends[child])) child++;
        if (!is_before(&r->ends[child], &last)) break;
        r->ends[i] = r->ends[child];
    }
    r->ends[i] = last;
    return first;
}

// ---- events ----

static tide_status put(tide__nsight_ranges *r, int op, int64_t t_ns, int32_t thread, int32_t scope, tide_error *err) {
    const tide__event e = {.t_ns = t_ns, .thread = thread, .scope_id = scope, .op = (uint8_t)op, .kind = TIDE__NO_KIND};
    return tide__new_trace_event(r->out, &e, false, err);
}

/// "DOMAIN: TEXT", or the text alone.
static tide_status name_of(tide__nsight_ranges *r, int64_t *id, tide_error *err) {
    const char *text = (const char *)sqlite3_column_text(r->rows, TEXT);
    const char *domain = (const char *)sqlite3_column_text(r->rows, DOMAIN_NAME);
    tide_text name = {0};
    if (domain != NULL && domain[0] != '\0') tide_text_addf(&name, "%s: ", domain);
    tide_text_add(&name, text != NULL && text[0] != '\0' ? text : "(no name)");
    const bool good = !name.failed && tide__names_text(&r->out->names, tide_text_str(&name), id) == TIDE_OK;
    tide_text_deinit(&name);
    return good ? TIDE_OK : no_memory(r, err);
}

static tide_status take_mark(tide__nsight_ranges *r, int32_t thread, int64_t name, tide_error *err) {
    const tide__event e = {
        .t_ns = r->next_ns, .thread = thread, .tag_id = (int32_t)name, .op = TIDE_MEM_SNAPSHOT, .kind = TIDE__NO_KIND};
    return tide__new_trace_event(r->out, &e, false, err);
}

/// The one that the statement stands at.
static tide_status begin(tide__nsight_ranges *r, tide_error *err) {
    range g = {0};
    int64_t name, scope;
    if (sqlite3_column_type(r->rows, TID) != SQLITE_INTEGER) return bad_row(r, "'globalTid' is no thread", err);
    TIDE_TRY(r->thread(r->ctx, sqlite3_column_int64(r->rows, ROW), sqlite3_column_int64(r->rows, TID), &g.thread, err));
    TIDE_TRY(name_of(r, &name, err));
    if (sqlite3_column_int(r->rows, IS_MARK) != 0) return take_mark(r, g.thread, name, err);
    const tide__scope_row row = {
        .name_id = name, .parent_id = tide__nsight_ranges_scope(r, g.thread), .kind = TIDE_SCOPE_REGION, .step = -1};
    if (tide__names_scope_row(&r->out->names, &row, &scope) != TIDE_OK) return no_memory(r, err);
    g.scope = (int32_t)scope;
    TIDE_TRY(open_range(r, &g, err));
    if (sqlite3_column_type(r->rows, END) != SQLITE_NULL) // else it never ended
        TIDE_TRY(push_end(r, (range_end){sqlite3_column_int64(r->rows, END), r->n - 1}, err));
    return put(r, TIDE__OP_SCOPE_ENTER, r->next_ns, g.thread, g.scope, err);
}

tide_status tide__nsight_ranges_until(tide__nsight_ranges *r, int64_t t_ns, tide_error *err) {
    for (;;) {
        const int64_t begins = r->has_next ? r->next_ns : INT64_MAX;
        if (r->n_ends > 0 && r->ends[0].t_ns <= begins && r->ends[0].t_ns <= t_ns) {
            const range_end end = pop_end(r);
            range *g = &r->all[end.number];
            g->is_over = true;
            TIDE_TRY(put(r, TIDE__OP_SCOPE_LEAVE, end.t_ns, g->thread, g->scope, err));
        } else if (r->has_next && begins <= t_ns) {
            TIDE_TRY(begin(r, err));
            TIDE_TRY(step(r, err));
        } else {
            return TIDE_OK;
        }
    }
}

void tide__nsight_ranges_deinit(tide__nsight_ranges *r) {
    for (size_t i = 0; i < r->open.cap; i++) {
        const tide__nsight_open *o = tide_map_at(&r->open, i);
        if (o != NULL) tide_host_free(o->numbers);
    }
    tide_map_deinit(&r->open);
    tide_host_free(r->all);
    tide_host_free(r->ends);
    sqlite3_finalize(r->rows);
}
