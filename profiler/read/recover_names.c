// SPDX-License-Identifier: MIT
//
// Names and events of a damaged trace, checked, with the numbers of the new file. See recover_read.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/recover_read.h"
#include "profiler/store/replay.h"

tide_status tide__damaged_rename(tide_map *map, int64_t id, int64_t to, tide_error *err) {
    const tide__renamed entry = {.id = (uint64_t)id, .to = to};
    if (id <= 0 || tide_map_find(map, (uint64_t)id) != NULL) return TIDE_ERR_BAD_INPUT;
    return tide_map_put(map, &entry) ? TIDE_OK : TIDE_NO_MEMORY(err, "for the names of a trace");
}

int64_t tide__damaged_renamed(const tide_map *map, int64_t id) {
    if (id <= 0 || map->n == 0) return 0;
    const tide__renamed *entry = tide_map_find(map, (uint64_t)id);
    return entry != NULL ? entry->to : 0;
}

// ---- names ----

/// A scope whose parent is not there yet: it may come, for frames that were named after the run have a larger number.
typedef struct waiting {
    int64_t id, parent;
    tide__scope_row row; ///< all but the parent
} waiting;

typedef struct names_reader {
    tide__damaged *in;
    tide__names *names;
    const tide__sql *out;
    sqlite3_stmt *insert_device;
    waiting *waiting; ///< [n_waiting]
    size_t n_waiting, cap_waiting;
} names_reader;

/// A text without a zero byte inside: it would come back shorter than it is.
static bool is_text(sqlite3_stmt *row, int i) {
    return sqlite3_column_type(row, i) == SQLITE_TEXT &&
           strlen(tide__sql_text(row, i)) == (size_t)sqlite3_column_bytes(row, i);
}

static tide_status take_name(void *ctx, sqlite3_stmt *row, tide_error *err) {
    names_reader *r = ctx;
    int64_t id, to;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &id) || !is_text(row, 1)) return TIDE_ERR_BAD_INPUT;
    if (tide__names_text(r->names, tide__sql_text(row, 1), &to) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the names of '%s'", r->in->path);
    return tide__damaged_rename(&r->in->names, id, to, err);
}

/// Name `id` in the new file. A name that was lost becomes a text that says so.
static tide_status name_of(names_reader *r, int64_t id, int64_t *to, tide_error *err) {
    *to = tide__damaged_renamed(&r->in->names, id);
    if (*to != 0) return TIDE_OK;
    char text[48];
    snprintf(text, sizeof text, "(name %" PRId64 " is lost)", id);
    if (tide__names_text(r->names, text, to) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the names of '%s'", r->in->path);
    r->in->n_lost_rows++;
    return id > 0 ? tide__damaged_rename(&r->in->names, id, *to, err) : TIDE_OK;
}

/// Below its parent; outermost when that was lost.
static tide_status put_scope(names_reader *r, int64_t id, int64_t parent, const tide__scope_row *row, tide_error *err) {
    tide__scope_row scope = *row;
    scope.parent_id = tide__damaged_renamed(&r->in->scopes, parent);
    int64_t to;
    tide_status st = tide__names_scope_row(r->names, &scope, &to);
    if (st == TIDE_OK) st = tide__damaged_rename(&r->in->scopes, id, to, err);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the names of '%s'", r->in->path);
    return st == TIDE_OK ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}

static tide_status take_scope(void *ctx, sqlite3_stmt *row, tide_error *err) {
    names_reader *r = ctx;
    int64_t id, name, step, parent;
    tide__scope_row scope = {.step = -1};
    bool good = tide__sql_number(row, 0, 1, INT32_MAX, &id);
    good = tide__sql_number(row, 1, 1, INT32_MAX, &name) && good;
    good = tide__names_scope_kind(tide__sql_text(row, 2), &scope.kind) && good;
    good = tide__sql_int_or(row, 3, 0, INT32_MAX, -1, &step) && good;
    good = tide__sql_int_or(row, 4, 1, INT32_MAX, 0, &parent) && good &&
           (parent < id || (scope.kind == TIDE_SCOPE_FRAME && parent != id));
    if (!good) return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(name_of(r, name, &scope.name_id, err));
    scope.step = (int32_t)step;
    if (parent == 0 || tide__damaged_renamed(&r->in->scopes, parent) != 0) return put_scope(r, id, parent, &scope, err);
    TIDE_TRY(TIDE_GROW(&r->waiting, &r->cap_waiting, r->n_waiting + 1, err, "for the names of '%s'", r->in->path));
    r->waiting[r->n_waiting++] = (waiting){id, parent, scope};
    return TIDE_OK;
}

/// Those whose parents came meanwhile, until none is left or none of them is helped: then what they lie in is lost.
static tide_status put_waiting(names_reader *r, tide_error *err) {
    bool any = true;
    while (any) {
        size_t n_left = 0;
        for (size_t i = 0; i < r->n_waiting; i++) {
            const waiting *w = &r->waiting[i];
            if (tide__damaged_renamed(&r->in->scopes, w->parent) != 0)
                TIDE_TRY(put_scope(r, w->id, w->parent, &w->row, err));
            else
                r->waiting[n_left++] = *w;
        }
        any = n_left < r->n_waiting;
        r->n_waiting = n_left;
    }
    for (size_t i = 0; i < r->n_waiting; i++)
        TIDE_TRY(put_scope(r, r->waiting[i].id, r->waiting[i].parent, &r->waiting[i].row, err));
    return TIDE_OK;
}

/// Devices keep their numbers, and their names as text: this program need not have a backend for each.
static tide_status insert_device(names_reader *r, int64_t id, const char *name, tide_error *err) {
    const tide_status st = tide__damaged_rename(&r->in->devices, id, id, err);
    if (st != TIDE_OK) return st;
    sqlite3_bind_int64(r->insert_device, 1, id);
    tide__sql_bind_text(r->insert_device, 2, name);
    return tide__sql_run(r->out, r->insert_device, err);
}

static tide_status take_device(void *ctx, sqlite3_stmt *row, tide_error *err) {
    names_reader *r = ctx;
    int64_t id;
    if (!tide__sql_number(row, 0, 1, TIDE__MAX_DEVICES - 1, &id) || !is_text(row, 1) ||
        tide__sql_text(row, 1)[0] == '\0')
        return TIDE_ERR_BAD_INPUT;
    return insert_device(r, id, tide__sql_text(row, 1), err);
}

static tide_status take_thread(void *ctx, sqlite3_stmt *row, tide_error *err) {
    names_reader *r = ctx;
    int64_t id, process, number;
    bool good = tide__sql_number(row, 0, 1, INT32_MAX, &id);
    good = tide__sql_number(row, 1, 1, INT32_MAX, &process) && good;
    good = tide__sql_number(row, 2, 1, INT32_MAX, &number) && good;
    tide_status st =
        good ? tide__names_put_thread(r->names, id, process, number, is_text(row, 3) ? tide__sql_text(row, 3) : NULL)
             : TIDE_ERR_BAD_INPUT;
    if (st == TIDE_OK) st = tide__damaged_rename(&r->in->threads, id, id, err);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the names of '%s'", r->in->path);
    return st == TIDE_OK ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}

tide_status tide__damaged_read_names(tide__damaged *in, tide__names *names, const tide__sql *out, tide_error *err) {
    names_reader r = {.in = in, .names = names, .out = out};
    TIDE_TRY(tide__sql_prepare(out, "INSERT INTO device(id, name) VALUES(?, ?)", &r.insert_device, err));
    tide_status st = tide__damaged_each(in, "name", "id", "id, text", take_name, &r, err);
    if (st == TIDE_OK)
        st = tide__damaged_each(in, "scope", "id", "id, name_id, kind, step, parent_id", take_scope, &r, err);
    if (st == TIDE_OK) st = put_waiting(&r, err);
    tide_host_free(r.waiting);
    if (st == TIDE_OK) st = tide__damaged_each(in, "device", "id", "id, name", take_device, &r, err);
    // Without its table, the first device is the one that every machine has.
    if (st == TIDE_OK && tide__damaged_renamed(&in->devices, 1) == 0) st = insert_device(&r, 1, "cpu", err);
    if (st == TIDE_OK)
        st = tide__damaged_each(in, "thread", "id", "id, process_id, number, name", take_thread, &r, err);
    sqlite3_finalize(r.insert_device);
    return st;
}

// ---- events ----

bool tide__damaged_event_of(const int64_t *values, const bool *is_null, tide__event *out) {
    // Columns as in TIDE__EVENT_COLUMNS: what each may be, and what NULL says of it.
    static const struct {
        int64_t lo, hi, if_null;
        bool required;
    } columns[TIDE__N_EVENT_COLUMNS] = {
        {1, TIDE__MAX_EVENT, 0, true},               // id
        {1, INT32_MAX, 0, false},                    // run_id
        {0, INT64_MAX, 0, true},                     // t_ns
        {1, UINT8_MAX, 0, true},                     // op
        {0, INT64_MAX, 0, false},                    // block_id
        {0, TIDE_N_KINDS - 1, TIDE__NO_KIND, false}, // kind
        {1, TIDE__MAX_DEVICES - 1, 0, false},        // device
        {INT64_MIN, INT64_MAX, 0, false},            // stream
        {0, INT64_MAX, 0, false},                    // requested_bytes
        {0, INT64_MAX, 0, false},                    // reserved_bytes
        {INT64_MIN, INT64_MAX, 0, false},            // address
        {0, INT32_MAX, 0, true},                     // thread
        {1, INT32_MAX, 0, false},                    // allocator_id
        {1, INT32_MAX, 0, false},                    // tag_id
        {1, INT32_MAX, 0, false},                    // scope_id
    };
    int64_t v[TIDE__N_EVENT_COLUMNS];
    for (int i = 0; i < TIDE__N_EVENT_COLUMNS; i++) {
        v[i] = is_null[i] ? columns[i].if_null : values[i];
        if (is_null[i] ? columns[i].required : v[i] < columns[i].lo || v[i] > columns[i].hi) return false;
    }
    *out = (tide__event){.id = v[0],
                         .run_id = (int32_t)v[1],
                         .t_ns = v[2],
                         .op = (uint8_t)v[3],
                         .block_id = v[4],
                         .kind = (uint8_t)v[5],
                         .device = (int16_t)v[6],
                         .stream = v[7],
                         .requested_bytes = v[8],
                         .reserved_bytes = v[9],
                         .address = v[10],
                         .thread = (int32_t)v[11],
                         .allocator_id = (int32_t)v[12],
                         .tag_id = (int32_t)v[13],
                         .scope_id = (int32_t)v[14]};
    return tide__damaged_event_is_sound(out);
}

bool tide__damaged_event_row(sqlite3_stmt *row, tide__event *out) {
    int64_t values[TIDE__N_EVENT_COLUMNS];
    bool is_null[TIDE__N_EVENT_COLUMNS];
    for (int i = 0; i < TIDE__N_EVENT_COLUMNS; i++) {
        const int type = sqlite3_column_type(row, i);
        if (type != SQLITE_INTEGER && type != SQLITE_NULL) return false;
        is_null[i] = type == SQLITE_NULL;
        values[i] = sqlite3_column_int64(row, i);
    }
    return tide__damaged_event_of(values, is_null, out);
}

bool tide__damaged_event_is_sound(const tide__event *e) {
    if (tide__op_name(e->op) == NULL || e->id <= 0 || e->id > TIDE__MAX_EVENT || e->t_ns < 0 || e->block_id < 0 ||
        e->requested_bytes < 0 || e->reserved_bytes < 0 || e->run_id < 0 || e->thread < 0 || e->scope_id < 0 ||
        e->tag_id < 0 || e->allocator_id < 0 || e->device < 0 || e->device >= TIDE__MAX_DEVICES)
        return false;
    if (e->op == TIDE__OP_SCOPE_ENTER || e->op == TIDE__OP_SCOPE_LEAVE)
        return e->scope_id > 0 && e->kind == TIDE__NO_KIND;
    if (e->op == TIDE__OP_GAP) return e->kind == TIDE__NO_KIND && e->requested_bytes > 0;
    if (e->op == TIDE__OP_PROCESS_END) return e->kind == TIDE__NO_KIND;
    if (e->op == TIDE_MEM_DEVICE_USAGE) return tide__event_is_true_usage(e);
    if (e->op == TIDE_MEM_SIZED) return tide__event_is_true_size(e);
    if (e->kind == TIDE__NO_KIND || e->device == 0) return e->op == TIDE_MEM_SNAPSHOT;
    return e->kind < TIDE_N_KINDS;
}

/// A thread without a row keeps its number as its number in process 1.
static tide_status rename_thread(tide__damaged *in, tide__names *names, tide__event *e, tide_error *err) {
    if (e->thread == 0 && (e->op == TIDE__OP_GAP || e->op == TIDE__OP_PROCESS_END)) return TIDE_OK;
    int64_t to = tide__damaged_renamed(&in->threads, e->thread);
    if (to == 0) {
        const int64_t number = e->thread > 0 ? e->thread : in->next_thread;
        TIDE_TRY(tide__names_thread(names, 1, number, NULL, &to));
        if (e->thread > 0) TIDE_TRY(tide__damaged_rename(&in->threads, e->thread, to, err));
    }
    e->thread = (int32_t)to;
    return TIDE_OK;
}

static tide_status rename_text(tide__damaged *in, tide__names *names, int32_t *id, tide_error *err) {
    if (*id == 0) return TIDE_OK;
    names_reader r = {.in = in, .names = names};
    int64_t to;
    TIDE_TRY(name_of(&r, *id, &to, err));
    *id = (int32_t)to;
    return TIDE_OK;
}

static tide_status rename_scope(tide__damaged *in, tide__names *names, tide__event *e, tide_error *err) {
    if (e->scope_id == 0) return TIDE_OK;
    int64_t to = tide__damaged_renamed(&in->scopes, e->scope_id);
    if (to == 0) {
        char text[48];
        tide__scope_row scope = {.kind = TIDE_SCOPE_REGION, .step = -1};
        snprintf(text, sizeof text, "(scope %" PRId32 " is lost)", e->scope_id);
        TIDE_TRY(tide__names_text(names, text, &scope.name_id));
        TIDE_TRY(tide__names_scope_row(names, &scope, &to));
        TIDE_TRY(tide__damaged_rename(&in->scopes, e->scope_id, to, err));
        in->n_lost_rows++;
    }
    e->scope_id = (int32_t)to;
    return TIDE_OK;
}

static tide_status rename_device(tide__damaged *in, const tide__event *e, tide_error *err) {
    if (e->device == 0 || tide__damaged_renamed(&in->devices, e->device) != 0) return TIDE_OK;
    return tide__damaged_rename(&in->devices, e->device, e->device, err);
}

tide_status tide__damaged_rename_event(tide__damaged *in, tide__names *names, tide__event *e, tide_error *err) {
    tide_status st = rename_thread(in, names, e, err);
    if (st == TIDE_OK) st = rename_text(in, names, &e->allocator_id, err);
    if (st == TIDE_OK) st = rename_text(in, names, &e->tag_id, err);
    if (st == TIDE_OK) st = rename_scope(in, names, e, err);
    if (st == TIDE_OK) st = rename_device(in, e, err);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the names of '%s'", in->path);
    return st == TIDE_OK ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}
