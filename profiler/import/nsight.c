// SPDX-License-Identifier: MIT
//
// An export of NVIDIA Nsight Systems (SQLite) as events of a trace: table CUDA_GPU_MEMORY_USAGE_EVENTS, recorded with
// --cuda-memory-usage=true. Kinds and operations are numbered by tables of the file itself (ENUM_...), not as in CUPTI;
// columns differ by version of the schema. The call behind an event, and its thread, is the row of the runtime's table
// with the same correlation id. Ranges of NVTX are scopes (nsight_ranges.h).
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/import/import_internal.h"
#include "profiler/import/nsight_ranges.h"

#define MEMORY_TABLE "CUDA_GPU_MEMORY_USAGE_EVENTS"

/// By address and process.
typedef struct live {
    uint64_t key;
    uint64_t address;
    tide__event alloc;
} live;

typedef struct importer {
    const char *path;
    sqlite3 *db;
    tide__new_trace *out;
    tide_import_report *report;
    tide_map live;
    tide__nsight_ranges ranges;
    int64_t next_block[TIDE_IMPORT_MAX_PROCESSES];
} importer;

static tide_status no_memory(const importer *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->path);
}

static tide_status bad_row(const importer *m, int64_t row, const char *what, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", m->path, what);
    tide_error_where(err, "%s: table " MEMORY_TABLE ", row %" PRId64, m->path, row);
    return st;
}

static tide_status failed(const importer *m, tide_error *err) {
    if (sqlite3_errcode(m->db) == SQLITE_NOMEM) return no_memory(m, err);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", m->path, sqlite3_errmsg(m->db));
}

static tide_status prepare(const importer *m, const char *query, sqlite3_stmt **out, tide_error *err) {
    return sqlite3_prepare_v2(m->db, query, -1, out, NULL) == SQLITE_OK ? TIDE_OK : failed(m, err);
}

static bool has_column(const importer *m, const char *table, const char *column) {
    return sqlite3_table_column_metadata(m->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

// ---- what the file says ----

/// The query of all events, with what this version of the schema has.
static void add_query(const importer *m, tide_text *q) {
    const bool has_calls = has_column(m, "CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId") &&
                           has_column(m, MEMORY_TABLE, "correlationId") && has_column(m, "StringIds", "value");
    tide_text_add(q, "SELECT e.rowid, e.start, e.globalPid, e.deviceId, e.address, e.bytes, k.name, o.name, ");
    tide_text_add(q, has_column(m, MEMORY_TABLE, "name") ? "e.name, " : "NULL, ");
    tide_text_add(q, has_column(m, MEMORY_TABLE, "streamId") ? "e.streamId, " : "NULL, ");
    tide_text_add(q, has_calls ? "r.globalTid, s.value " : "NULL, NULL ");
    tide_text_add(q, "FROM " MEMORY_TABLE " e LEFT JOIN ENUM_CUDA_MEM_KIND k ON k.id = e.memKind "
                     "LEFT JOIN ENUM_CUDA_DEV_MEM_EVENT_OPER o ON o.id = e.memoryOperationType ");
    if (has_calls)
        tide_text_add(q, "LEFT JOIN (SELECT correlationId, min(globalTid) AS globalTid, min(nameId) AS nameId "
                         "FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY correlationId) r "
                         "ON r.correlationId = e.correlationId AND e.correlationId <> 0 "
                         "LEFT JOIN StringIds s ON s.id = r.nameId ");
    tide_text_add(q, "ORDER BY e.start, e.rowid");
}

enum { ROW, START, PID, DEVICE, ADDRESS, BYTES, KIND, OPERATION, NAME, STREAM, TID, CALL };

static const char *text_of(sqlite3_stmt *row, int i) {
    const char *text = (const char *)sqlite3_column_text(row, i);
    return text != NULL ? text : "";
}

/// What stands behind `prefix`; "" where that is not there.
static const char *behind(const char *text, const char *prefix) {
    const size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : "";
}

/// Number of the process in the trace, from 1: made when it is new.
static tide_status process_of(importer *m, int64_t row, int64_t global_pid, size_t *out, tide_error *err) {
    const int64_t pid = global_pid >> 24 & 0xffffff;
    tide_import_report *r = m->report;
    for (*out = 1; *out <= r->n_processes; ++*out)
        if (r->pids[*out - 1] == pid) return TIDE_OK;
    if (r->n_processes == TIDE_IMPORT_MAX_PROCESSES) return bad_row(m, row, "it has more than 64 processes", err);
    r->pids[r->n_processes++] = pid;
    m->next_block[*out - 1] = 1;
    return TIDE_OK;
}

/// "cudaMalloc" of "cudaMalloc_v3020"; where no call is known what the kind is called.
static tide_status allocator_of(importer *m, const char *call, const char *kind, int32_t *out, tide_error *err) {
    char name[96];
    int64_t id;
    const char *version = strstr(call, "_v");
    snprintf(name, sizeof name, "%.*s", version != NULL ? (int)(version - call) : (int)strlen(call), call);
    if (name[0] == '\0') snprintf(name, sizeof name, "%s", strstr(kind, "STATIC") != NULL ? "module" : "cuda");
    if (tide__names_text(&m->out->names, name, &id) != TIDE_OK) return no_memory(m, err);
    *out = (int32_t)id;
    return TIDE_OK;
}

static tide_memory_kind kind_of(const char *kind) {
    if (strcmp(kind, "PINNED") == 0) return TIDE_KIND_HOST_PINNED;
    if (strcmp(kind, "PAGEABLE") == 0) return TIDE_KIND_HOST_PAGEABLE;
    return strstr(kind, "STATIC") != NULL ? TIDE_KIND_PERSISTENT : TIDE_KIND_DEFAULT;
}

// ---- events ----

static tide_status fill_event(importer *m, sqlite3_stmt *row, const char *kind, size_t process, tide__event *e,
                              tide_error *err) {
    const int64_t at = sqlite3_column_int64(row, ROW), tid = sqlite3_column_int64(row, TID) & 0xffffff,
                  device = sqlite3_column_int64(row, DEVICE);
    int64_t device_id, thread_id, name_id = 0;
    const char *name = text_of(row, NAME);
    *e = (tide__event){.t_ns = sqlite3_column_int64(row, START),
                       .requested_bytes = sqlite3_column_int64(row, BYTES),
                       .reserved_bytes = sqlite3_column_int64(row, BYTES),
                       .address = sqlite3_column_int64(row, ADDRESS),
                       .stream = sqlite3_column_int64(row, STREAM),
                       .kind = (uint8_t)kind_of(kind)};
    if (sqlite3_column_type(row, START) != SQLITE_INTEGER || e->t_ns < 0 || e->t_ns > INT64_MAX / 2)
        return bad_row(m, at, "'start' is no time", err);
    if (sqlite3_column_type(row, BYTES) != SQLITE_INTEGER || e->requested_bytes < 0)
        return bad_row(m, at, "'bytes' is no number of bytes", err);
    if (device < 0 || device > 255) return bad_row(m, at, "'deviceId' is no device", err);
    const bool is_host = e->kind == TIDE_KIND_HOST_PINNED || e->kind == TIDE_KIND_HOST_PAGEABLE;
    const tide_device where = is_host ? TIDE_CPU : (tide_device){.type = TIDE_DEVICE_CUDA, .index = (int)device};
    if (tide__names_device(&m->out->names, where, &device_id) != TIDE_OK ||
        tide__names_thread(&m->out->names, (int64_t)process, tid > 0 ? tid : 1, NULL, &thread_id) != TIDE_OK ||
        (name[0] != '\0' && tide__names_text(&m->out->names, name, &name_id) != TIDE_OK))
        return no_memory(m, err);
    e->device = (int16_t)device_id;
    e->thread = (int32_t)thread_id;
    e->tag_id = (int32_t)name_id;
    return allocator_of(m, text_of(row, CALL), kind, &e->allocator_id, err);
}

static uint64_t key_of(uint64_t address, size_t process) {
    TIDE_ASSERT(process >= 1 && process <= TIDE_IMPORT_MAX_PROCESSES);
    const uint64_t h = (address ^ (uint64_t)process << 56) * UINT64_C(0x9E3779B97F4A7C15);
    return (h ^ h >> 31) | 1;
}

static live *find(importer *m, uint64_t address, size_t process) {
    live *b = tide_map_find(&m->live, key_of(address, process));
    while (b != NULL && (b->address != address || (size_t)(b->alloc.block_id >> TIDE__BLOCK_ID_BITS) + 1 != process))
        b = tide_map_next(&m->live, b);
    return b;
}

/// The block ends as it began, but for its time and thread.
static tide_status end(importer *m, live *b, const tide__event *e, tide_error *err) {
    tide__event done = b->alloc;
    done.op = TIDE_MEM_FREE_COMPLETED;
    done.t_ns = e->t_ns;
    done.thread = e->thread;
    done.scope_id = 0;
    tide_map_take(&m->live, b);
    return tide__new_trace_event(m->out, &done, false, err);
}

static tide_status take_alloc(importer *m, tide__event *e, size_t process, tide_error *err) {
    live *old = find(m, (uint64_t)e->address, process);
    if (old != NULL) { // its end is not in the file
        m->report->n_contradictions++;
        TIDE_TRY(end(m, old, e, err));
    }
    e->op = TIDE_MEM_ALLOC;
    e->block_id = (int64_t)(process - 1) << TIDE__BLOCK_ID_BITS | m->next_block[process - 1]++;
    const live b = {.key = key_of((uint64_t)e->address, process), .address = (uint64_t)e->address, .alloc = *e};
    if (!tide_map_put(&m->live, &b)) return no_memory(m, err);
    m->report->n_blocks++;
    return tide__new_trace_event(m->out, e, false, err);
}

static tide_status take_row(importer *m, sqlite3_stmt *row, tide_error *err) {
    const char *kind = behind(text_of(row, KIND), "CUDA_MEMOPR_MEMORY_KIND_"),
               *operation = behind(text_of(row, OPERATION), "CUDA_DEV_MEM_EVENT_OPR_");
    const int64_t at = sqlite3_column_int64(row, ROW);
    size_t process;
    tide__event e;
    if (kind[0] == '\0') return bad_row(m, at, "'memKind' is not in ENUM_CUDA_MEM_KIND", err);
    TIDE_TRY(process_of(m, at, sqlite3_column_int64(row, PID), &process, err));
    TIDE_TRY(fill_event(m, row, kind, process, &e, err));
    m->report->n_events++;
    TIDE_TRY(tide__nsight_ranges_until(&m->ranges, e.t_ns, err));
    e.scope_id = tide__nsight_ranges_scope(&m->ranges, e.thread);
    if (strcmp(operation, "ALLOCATION") == 0) return take_alloc(m, &e, process, err);
    if (strcmp(operation, "DEALLOCATION") != 0)
        return bad_row(m, at, "'memoryOperationType' is not in ENUM_CUDA_DEV_MEM_EVENT_OPER", err);
    live *b = find(m, (uint64_t)e.address, process);
    if (b != NULL) return end(m, b, &e, err);
    m->report->n_unknown_frees++;
    return TIDE_OK;
}

/// The thread of a range, in its process.
static tide_status thread_of(void *ctx, int64_t row, int64_t global_tid, int32_t *out, tide_error *err) {
    importer *m = ctx;
    size_t process;
    int64_t id;
    const int64_t tid = global_tid & 0xffffff;
    TIDE_TRY(process_of(m, row, global_tid, &process, err));
    if (tide__names_thread(&m->out->names, (int64_t)process, tid > 0 ? tid : 1, NULL, &id) != TIDE_OK)
        return no_memory(m, err);
    *out = (int32_t)id;
    return TIDE_OK;
}

/// Rows of tables that a trace has no place for: what runs on a device.
static tide_status count_left_out(importer *m, tide_error *err) {
    static const char *const tables[] = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char query[96];
        sqlite3_stmt *stmt = NULL;
        if (!has_column(m, tables[i], "start")) continue;
        snprintf(query, sizeof query, "SELECT count(*) FROM %s", tables[i]);
        TIDE_TRY(prepare(m, query, &stmt, err));
        const bool is_row = sqlite3_step(stmt) == SQLITE_ROW;
        if (is_row) m->report->n_left_out += (uint64_t)sqlite3_column_int64(stmt, 0);
        sqlite3_finalize(stmt);
        if (!is_row) return failed(m, err);
    }
    return TIDE_OK;
}

static tide_status take_rows(importer *m, tide_error *err) {
    tide_text query = {0};
    sqlite3_stmt *stmt = NULL;
    if (!has_column(m, MEMORY_TABLE, "address")) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot import '%s': it has no table " MEMORY_TABLE, m->path);
        tide_error_note(err, "an export of Nsight Systems has it when the recording asked for it and memory was used");
        tide_error_hint(err, "nsys profile --cuda-memory-usage=true");
        return st;
    }
    TIDE_TRY(count_left_out(m, err));
    m->ranges = (tide__nsight_ranges){.db = m->db, .path = m->path, .out = m->out, .thread = thread_of, .ctx = m};
    TIDE_TRY(tide__nsight_ranges_open(&m->ranges, err));
    add_query(m, &query);
    tide_status st = query.failed ? no_memory(m, err) : prepare(m, tide_text_str(&query), &stmt, err);
    int rc = SQLITE_DONE;
    while (st == TIDE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) st = take_row(m, stmt, err);
    if (st == TIDE_OK && rc != SQLITE_DONE) st = failed(m, err);
    if (st == TIDE_OK) st = tide__nsight_ranges_until(&m->ranges, INT64_MAX, err);
    sqlite3_finalize(stmt);
    tide_text_deinit(&query);
    return st;
}

bool tide__import_is_nsight(const char *path) {
    sqlite3 *db = NULL;
    const bool is =
        tide__sql_open_foreign(path, &db) == SQLITE_OK &&
        (sqlite3_table_column_metadata(db, NULL, MEMORY_TABLE, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK ||
         sqlite3_table_column_metadata(db, NULL, "META_DATA_EXPORT", "value", NULL, NULL, NULL, NULL, NULL) ==
             SQLITE_OK);
    sqlite3_close(db);
    return is;
}

tide_status tide__import_nsight(FILE *in, const char *path, tide__new_trace *out, tide_import_report *report,
                                tide_error *err) {
    (void)in; // SQLite opens it itself
    importer *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to read '%s'", path));
    m->path = path;
    m->out = out;
    m->report = report;
    m->live = (tide_map)TIDE_MAP(live);
    const int rc = tide__sql_open_foreign(path, &m->db);
    const tide_status st = rc == SQLITE_OK ? take_rows(m, err) : failed(m, err);
    tide__nsight_ranges_deinit(&m->ranges);
    sqlite3_close(m->db);
    tide_map_deinit(&m->live);
    tide_host_free(m);
    return st;
}
