// SPDX-License-Identifier: MIT
//
// Names of an open trace: texts, scopes and devices by their numbers. See trace_internal.h.
//
// Texts lie in pages that never move, so a caller may keep a text while the trace grows:
//
//     page -> | next | used, size | a l l o c 0 c o n v 0 ... |
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/read/trace_internal.h"

enum {
    PAGE_BYTES = 65536,
    MAX_LEFT_OUT = 1 << 16, // numbers of a table: a recovered trace has holes
};

typedef struct tide__text_page {
    struct tide__text_page *next;
    size_t used, size;
    char bytes[];
} text_page;

/// A copy that lives as long as the trace; NULL without memory.
static const char *keep_text(tide__trace_names *n, const char *text) {
    const size_t len = strlen(text) + 1;
    if (len == 1) return "";
    text_page *page = n->pages;
    if (page == NULL || page->size - page->used < len) {
        const size_t size = len > PAGE_BYTES ? len : PAGE_BYTES;
        page = tide_host_alloc(sizeof *page + size);
        if (page == NULL) return NULL;
        *page = (text_page){.next = n->pages, .size = size};
        n->pages = page;
    }
    char *copy = memcpy(page->bytes + page->used, text, len);
    page->used += len;
    return copy;
}

tide_status tide__trace_names_close(tide__trace_names *n, tide_error *err) {
    if (n->refs != NULL) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&n->refs, 1, err, "for the names of a trace"));
    *n->refs = 1;
    return TIDE_OK;
}

void tide__trace_names_share(const tide__trace_names *from, tide__trace_names *to) {
    TIDE_ASSERT(from->refs != NULL && to->refs == NULL && to->n_texts == 0 && to->n_scopes == 0);
    __atomic_fetch_add(from->refs, 1, __ATOMIC_RELAXED);
    *to = *from;
}

void tide__trace_names_deinit(tide__trace_names *n) {
    if (n->refs != NULL && __atomic_fetch_sub(n->refs, 1, __ATOMIC_ACQ_REL) > 1) {
        *n = (tide__trace_names){0}; // others have them still
        return;
    }
    tide_host_free(n->refs);
    for (text_page *page = n->pages, *next; page != NULL; page = next) {
        next = page->next;
        tide_host_free(page);
    }
    tide_host_free(n->texts);
    tide_host_free(n->scopes);
    tide_host_free(n->devices);
    *n = (tide__trace_names){0};
}

// ---- one table ----
//
// Rows are taken by a function of SQL, in one step of the statement: of a million scopes, each a row, that is half the
// time of a step for each row.

/// A row: its number, then what the query asks for.
typedef bool (*take_row_fn)(tide__trace_names *n, sqlite3_value *const *row, size_t id);

static bool value_u64(sqlite3_value *value, uint64_t *out) {
    if (sqlite3_value_type(value) != SQLITE_INTEGER || sqlite3_value_int64(value) < 0) return false;
    *out = (uint64_t)sqlite3_value_int64(value);
    return true;
}

static const char *value_text(sqlite3_value *value) {
    const char *text = (const char *)sqlite3_value_text(value);
    return text != NULL ? text : "";
}

static bool take_text(tide__trace_names *n, sqlite3_value *const *row, size_t id) {
    if (tide_host_grow(&n->texts, &n->cap_texts, id + 1, sizeof *n->texts) != TIDE_OK) return false;
    const char *text = keep_text(n, value_text(row[1]));
    if (text == NULL) return false;
    while (n->n_texts < id) n->texts[n->n_texts++] = "";
    n->texts[n->n_texts++] = text;
    n->n_text_rows++;
    return true;
}

static bool take_device(tide__trace_names *n, sqlite3_value *const *row, size_t id) {
    if (tide_host_grow(&n->devices, &n->cap_devices, id + 1, sizeof *n->devices) != TIDE_OK) return false;
    const char *text = keep_text(n, value_text(row[1]));
    if (text == NULL) return false;
    while (n->n_devices < id) n->devices[n->n_devices++] = "";
    n->devices[n->n_devices++] = text;
    return true;
}

enum { IS_OPERATOR = 1, IS_STEP = 2, STEP_SHIFT = 2 };

static tide__trace_scope scope_at(const tide__trace_names *n, size_t id) {
    const tide__kept_scope *kept = &n->scopes[id];
    return (tide__trace_scope){.name = kept->name_id != 0 ? n->texts[kept->name_id] : "",
                               .step = (int64_t)(kept->step_bits >> STEP_SHIFT) - 1,
                               .run = kept->run,
                               .is_operator = (kept->step_bits & IS_OPERATOR) != 0,
                               .is_step = (kept->step_bits & IS_STEP) != 0};
}

static bool take_scope(tide__trace_names *n, sqlite3_value *const *row, size_t id) {
    if (tide_host_grow(&n->scopes, &n->cap_scopes, id + 1, sizeof *n->scopes) != TIDE_OK) return false;
    while (n->n_scopes < id) n->scopes[n->n_scopes++] = (tide__kept_scope){0};
    uint64_t name_id = 0, step = 0, parent_id = 0;
    const bool has_name = value_u64(row[1], &name_id) && name_id < n->n_texts;
    const bool has_step = value_u64(row[2], &step) && step < UINT64_MAX >> (STEP_SHIFT + 1);
    const char *kind = value_text(row[3]);
    const bool is_frame = strcmp(kind, "frame") == 0;
    const bool has_parent =
        value_u64(row[4], &parent_id) && parent_id > 0 && parent_id <= INT32_MAX && (parent_id < id || is_frame);
    n->has_later_parents = n->has_later_parents || (has_parent && parent_id >= id);
    // One that comes later is a frame, which lies in no operator and no run.
    const tide__trace_scope parent = has_parent && parent_id < id ? scope_at(n, parent_id) : (tide__trace_scope){0};
    const bool is_run = strcmp(kind, "run") == 0, is_operator = strcmp(kind, "operator") == 0;
    const int32_t run = is_run ? (int32_t)id : parent.run;
    const bool is_step = is_operator && !parent.is_operator && has_step && step <= INT32_MAX;
    const bool lies_in_operator = is_operator || (parent.is_operator && run == parent.run);
    n->n_scope_rows++;
    n->has_regions = n->has_regions || strcmp(kind, "region") == 0;
    n->has_frames = n->has_frames || is_frame;
    n->scopes[n->n_scopes++] =
        (tide__kept_scope){.step_bits = (has_step ? (step + 1) << STEP_SHIFT : 0) |
                                        (lies_in_operator ? IS_OPERATOR : 0) | (is_step ? IS_STEP : 0),
                           .name_id = has_name ? (uint32_t)name_id : 0,
                           .run = run,
                           .parent = has_parent ? (uint32_t)parent_id : 0,
                           .is_frame = is_frame,
                           .is_region = strcmp(kind, "region") == 0};
    return true;
}

// A frame that was inlined lies in one that was found after the run, and has a larger number (store/frame_names.c). In
// a file that may be anything such a way may lead to no frame, or back to itself.

enum { NOT_SEEN, ON_THE_WAY, ENDS };

/// From `id` outwards: scopes of this walk become `mark`. @return the one that the walk stops before: it has another
/// mark already, or is 0
static uint32_t mark_way(const tide__trace_names *n, uint8_t *marks, uint32_t id, uint8_t mark) {
    while (id != 0 && marks[id] != ENDS && marks[id] != mark) {
        marks[id] = mark;
        id = n->scopes[id].parent;
    }
    return id;
}

/// Every walk outwards ends afterwards. False: no memory.
static bool settle_parents(tide__trace_names *n) {
    if (!n->has_later_parents) return true;
    uint8_t *marks = tide_host_calloc(n->n_scopes, sizeof *marks);
    if (marks == NULL) return false;
    for (uint32_t id = 1; id < n->n_scopes; id++) {
        tide__kept_scope *s = &n->scopes[id];
        if (s->parent >= n->n_scopes || (s->parent >= id && !n->scopes[s->parent].is_frame)) s->parent = 0;
    }
    for (uint32_t id = 1; id < n->n_scopes; id++) {
        const uint32_t end = mark_way(n, marks, id, ON_THE_WAY);
        if (end != 0 && marks[end] == ON_THE_WAY) n->scopes[end].parent = 0; // it came back to itself
        (void)mark_way(n, marks, id, ENDS);
    }
    tide_host_free(marks);
    return true;
}

typedef struct taker {
    tide__trace_names *names;
    take_row_fn take;
    int64_t last;               // number of the row before
    int64_t n_left_out;         // numbers without a row
    bool is_bad, has_no_memory; // row `last` is why
} taker;

#define TAKER_TYPE "tidemark taker of names"

/// An SQL function of a taker, bound as a pointer, and the columns of a row.
static void take_row(sqlite3_context *context, int n_values, sqlite3_value **row) {
    taker *k = n_values > 2 ? sqlite3_value_pointer(row[0], TAKER_TYPE) : NULL;
    if (k == NULL) {
        sqlite3_result_error(context, "tide_take_name is tidemark's own", -1);
        return;
    }
    if (k->is_bad || k->has_no_memory) return;
    const int64_t id = sqlite3_value_int64(row[1]);
    if (id > k->last && id <= INT32_MAX) k->n_left_out += id - k->last - 1;
    k->is_bad = id <= k->last || id > INT32_MAX || k->n_left_out > MAX_LEFT_OUT;
    if (!k->is_bad) k->has_no_memory = !k->take(k->names, row + 1, (size_t)id);
    k->last = id;
    if (k->is_bad || k->has_no_memory) sqlite3_result_error(context, "stopped", -1);
}

static tide_status prepare_taking(tide_trace *t, const char *query, sqlite3_stmt **stmt, tide_error *err) {
    // A function that is in use cannot be replaced: it is made when there is none yet.
    if (sqlite3_prepare_v2(t->sql.db, query, -1, stmt, NULL) == SQLITE_OK) return TIDE_OK;
    const int rc = sqlite3_create_function_v2(t->sql.db, "tide_take_name", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                              take_row, NULL, NULL, NULL);
    return rc == SQLITE_OK ? tide__sql_prepare(&t->sql, query, stmt, err) : tide__sql_fail(&t->sql, rc, "read", err);
}

/// The rows behind number n_known - 1, where 0 stands for none. The query gives them to take_row, in their order.
static tide_status take_rows(tide_trace *t, const char *table, const char *query, size_t n_known, take_row_fn take,
                             tide_error *err) {
    taker k = {.names = &t->names, .take = take, .last = n_known > 0 ? (int64_t)n_known - 1 : 0};
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_taking(t, query, &stmt, err));
    sqlite3_bind_pointer(stmt, 1, &k, TAKER_TYPE, NULL);
    sqlite3_bind_int64(stmt, 2, k.last);
    bool has_row;
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, &why);
    sqlite3_finalize(stmt);
    if (k.is_bad) return tide__trace_bad_row(t, table, k.last, err);
    if (k.has_no_memory) return TIDE_NO_MEMORY(err, "for the names of '%s'", t->path);
    if (st != TIDE_OK && err != NULL) *err = why;
    return st;
}

tide_status tide__trace_names_load(tide_trace *t, tide_error *err) {
    const tide__trace_names *n = &t->names;
    if (n->refs != NULL) return TIDE_OK;
    TIDE_TRY(take_rows(t, "name", "SELECT count(tide_take_name(?1, id, text)) FROM main.name WHERE id > ?2", n->n_texts,
                       take_text, err));
    TIDE_TRY(
        take_rows(t, "scope",
                  "SELECT count(tide_take_name(?1, id, name_id, step, kind, parent_id)) FROM main.scope WHERE id > ?2",
                  n->n_scopes, take_scope, err));
    if (!settle_parents(&t->names)) return TIDE_NO_MEMORY(err, "for the names of '%s'", t->path);
    return take_rows(t, "device", "SELECT count(tide_take_name(?1, id, name)) FROM main.device WHERE id > ?2",
                     n->n_devices, take_device, err);
}

// ---- by number ----

const char *tide__trace_text(const tide_trace *t, int64_t id) {
    return id > 0 && (uint64_t)id < t->names.n_texts ? t->names.texts[id] : "";
}

const char *tide__trace_device(const tide_trace *t, int64_t id) {
    return id > 0 && (uint64_t)id < t->names.n_devices ? t->names.devices[id] : "";
}

int64_t tide__trace_device_find(const tide_trace *t, const char *name) {
    for (size_t i = 1; i < t->names.n_devices; i++)
        if (strcmp(t->names.devices[i], name) == 0) return (int64_t)i;
    return 0;
}

tide__trace_scope tide__trace_scope_of(const tide_trace *t, int64_t id) {
    if (id > 0 && (uint64_t)id < t->names.n_scopes) return scope_at(&t->names, (size_t)id);
    return (tide__trace_scope){.name = "", .step = -1};
}

// ---- errors ----

tide_status tide__trace_damaged(const tide_trace *t, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", t->path);
    tide_error_where(err, "%s", t->path);
    return st;
}

tide_status tide__trace_bad_row(const tide_trace *t, const char *table, int64_t id, tide_error *err) {
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_where(err, "%s: table %s, id %" PRId64, t->path, table, id);
    tide_error_note(err, "damaged: a value is outside its range");
    return st;
}

tide_status tide__trace_dropped(const tide_trace *t, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' does not hold these events any more", t->path);
    tide_error_note(err, "the oldest were dropped to keep the file small: the first one left is number %" PRId64,
                    t->first_event);
    return st;
}

// ---- meta ----

void tide__trace_copy_text(char *out, size_t out_bytes, const char *text) {
    if (out_bytes == 0) return;
    size_t n = strlen(text);
    if (n >= out_bytes) {
        n = out_bytes - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--; // not inside a character of UTF-8
    }
    memcpy(out, text, n);
    out[n] = '\0';
}

tide_status tide_trace_meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT value FROM main.meta WHERE key = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        tide__trace_copy_text(buf, buf_bytes, tide__sql_text(stmt, 0));
    } else if (st == TIDE_OK) {
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no meta '%s'", t->path, key);
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
