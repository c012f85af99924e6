// SPDX-License-Identifier: MIT
//
// A memory snapshot of PyTorch as tables of SQLite, the form that pytorch/pytorch pull request 178670 proposes
// (torch.cuda.memory._dump_snapshot_sqlite), read into what the pickle of the same data becomes:
//
//     device_traces   id, action, addr, size, time_us, frames, ...    an event a row, in the order of their rows
//     segments        id, address, total_size, ...
//     blocks          segment_id, addr, size, state, ...              the state at the end, by address in a segment
//
// Of the columns the proposal's text names these (but for address and total_size); the others are looked for under the
// names that a snapshot has everywhere else (device, stream, requested_size, segment_type, is_expandable,
// user_metadata, device_free), and what is not there is not told. `frames` is JSON: a list of {"name", "filename",
// "line"}, the innermost first.
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "profiler/import/import_internal.h"
#include "profiler/import/torch_stacks.h"

typedef struct reader {
    tide__torch_snapshot *s;
    const char *path;
    sqlite3 *db;
    tide_strmap by_text;   // numbers of texts
    tide_strmap by_frames; // nodes of stacks by their JSON
    size_t cap_texts, cap_segments, cap_blocks, cap_tracks;
    tide__torch_tree tree;
    uint32_t *stack; // [cap_stack] frames of the stack that is read
    size_t cap_stack;
} reader;

/// The row that is read, for messages.
typedef struct row {
    sqlite3_stmt *stmt; // its first column is the number of the row
    const char *table;
} row;

static tide_status no_memory(const reader *k, tide_error *err) { return TIDE_NO_MEMORY(err, "to read '%s'", k->path); }

static tide_status failed(const reader *k, tide_error *err) {
    if (sqlite3_errcode(k->db) == SQLITE_NOMEM) return no_memory(k, err);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", k->path, sqlite3_errmsg(k->db));
}

/// Column `i` of the row, under its name in the file, is not what PyTorch writes.
static tide_status bad(const reader *k, const row *r, int i, const char *what, tide_error *err) {
    const char *column = sqlite3_column_name(r->stmt, i);
    if (column == NULL) return no_memory(k, err);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': '%s' %s", k->path, column, what);
    tide_error_where(err, "%s: table %s, row %" PRId64, k->path, r->table, (int64_t)sqlite3_column_int64(r->stmt, 0));
    return st;
}

// ---- columns ----

static bool has_column(const reader *k, const char *table, const char *column) {
    return sqlite3_table_column_metadata(k->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/// A column under its name, or the other one (NULL: it has none); "NULL" where it is not there.
static const char *column_of(const reader *k, const char *table, const char *name, const char *other) {
    if (has_column(k, table, name)) return name;
    return other != NULL && has_column(k, table, other) ? other : "NULL";
}

static tide_status missing(const reader *k, const char *table, const char *column, tide_error *err) {
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': table %s has no column '%s'", k->path, table, column);
    tide_error_note(err, "a snapshot as torch.cuda.memory._dump_snapshot_sqlite writes it was looked for");
    return st;
}

/// Which columns a query has, each under its first name, and what it is called else.
typedef struct wanted {
    const char *name, *other;
    bool is_needed;
} wanted;

static tide_status prepare(const reader *k, const char *table, const wanted *columns, size_t n, const char *rest,
                           sqlite3_stmt **out, tide_error *err) {
    tide_text q = {0};
    tide_status st = TIDE_OK;
    tide_text_add(&q, "SELECT rowid");
    for (size_t i = 1; i < n && st == TIDE_OK; i++) {
        const char *name = column_of(k, table, columns[i].name, columns[i].other);
        if (columns[i].is_needed && strcmp(name, "NULL") == 0) st = missing(k, table, columns[i].name, err);
        tide_text_addf(&q, ", %s", name);
    }
    tide_text_addf(&q, " FROM %s %s", table, rest);
    if (st == TIDE_OK && q.failed) st = no_memory(k, err);
    if (st == TIDE_OK && sqlite3_prepare_v2(k->db, tide_text_str(&q), -1, out, NULL) != SQLITE_OK) st = failed(k, err);
    tide_text_deinit(&q);
    return st;
}

/// *has: there is a further row.
static tide_status next_row(const reader *k, const row *r, bool *has, tide_error *err) {
    const int rc = sqlite3_step(r->stmt);
    *has = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TIDE_OK : failed(k, err);
}

// ---- values ----

static bool is_null(const row *r, int i) { return sqlite3_column_type(r->stmt, i) == SQLITE_NULL; }

/// A number from 0 to `most`; NULL leaves *out as it is, or is refused where it `is_needed`.
static tide_status take_number(const reader *k, const row *r, int i, bool is_needed, uint64_t most, uint64_t *out,
                               tide_error *err) {
    if (is_null(r, i) && !is_needed) return TIDE_OK;
    if (is_null(r, i)) return bad(k, r, i, "is NULL", err);
    if (sqlite3_column_type(r->stmt, i) != SQLITE_INTEGER) return bad(k, r, i, "is no whole number", err);
    const int64_t v = sqlite3_column_int64(r->stmt, i);
    if (v < 0) return bad(k, r, i, "is below 0", err);
    if ((uint64_t)v > most) return bad(k, r, i, "is too large", err);
    *out = (uint64_t)v;
    return TIDE_OK;
}

/// NULL: *out is "".
static tide_status take_text(const reader *k, const row *r, int i, const char **out, tide_error *err) {
    *out = "";
    if (is_null(r, i)) return TIDE_OK;
    if (sqlite3_column_type(r->stmt, i) != SQLITE_TEXT) return bad(k, r, i, "is no text", err);
    *out = (const char *)sqlite3_column_text(r->stmt, i);
    return *out != NULL ? TIDE_OK : no_memory(k, err);
}

/// Number of a text of the snapshot; "" is 0.
static tide_status put_text(reader *k, const char *text, uint32_t *out, tide_error *err) {
    uint64_t id;
    tide__torch_snapshot *s = k->s;
    if (!tide_strmap_get(&k->by_text, text, &id)) {
        if (s->n_texts >= UINT32_MAX)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': it has more than 2^32 texts", k->path);
        TIDE_TRY(TIDE_GROW(&s->texts, &k->cap_texts, s->n_texts + 1, err, "for the texts of '%s'", k->path));
        TIDE_TRY(TIDE_COPY_TEXT(&s->texts[s->n_texts], text, err, "for the texts of '%s'", k->path));
        id = s->n_texts++;
        if (tide_strmap_put(&k->by_text, text, id) != TIDE_OK) return no_memory(k, err);
    }
    *out = (uint32_t)id;
    return TIDE_OK;
}

// ---- stacks ----

static tide_status put_frame(reader *k, const row *r, int i, const json_t *frame, uint32_t *out, tide_error *err) {
    const json_t *name = json_object_get(frame, "name"), *file = json_object_get(frame, "filename"),
                 *line = json_object_get(frame, "line");
    const bool is_good = json_is_object(frame) && (name == NULL || json_is_null(name) || json_is_string(name)) &&
                         (json_is_null(file) || json_is_string(file)) && (line == NULL || json_is_integer(line));
    tide__torch_frame f = {.line = json_integer_value(line)};
    if (!is_good) return bad(k, r, i, "has a frame that is not {\"name\", \"filename\", \"line\"}", err);
    TIDE_TRY(put_text(k, json_is_string(name) ? json_string_value(name) : "", &f.function, err));
    TIDE_TRY(put_text(k, json_is_string(file) ? json_string_value(file) : "", &f.file, err));
    return tide__torch_tree_frame(&k->tree, k->s, &f, out, err);
}

static tide_status put_stack(reader *k, const row *r, int i, const json_t *frames, uint32_t *out, tide_error *err) {
    if (json_is_null(frames)) return TIDE_OK;
    if (!json_is_array(frames)) return bad(k, r, i, "is no list of frames", err);
    const size_t n = json_array_size(frames);
    TIDE_TRY(TIDE_GROW(&k->stack, &k->cap_stack, n, err, "for the stacks of '%s'", k->path));
    for (size_t at = 0; at < n; at++) TIDE_TRY(put_frame(k, r, i, json_array_get(frames, at), &k->stack[at], err));
    return n > 0 ? tide__torch_tree_stack(&k->tree, k->s, k->stack, n, out, err) : TIDE_OK;
}

/// The node of the stack in column `i`; 0: none. Most rows have one that was there before.
static tide_status take_stack(reader *k, const row *r, int i, uint32_t *out, tide_error *err) {
    const char *text;
    uint64_t node;
    json_error_t at;
    *out = 0;
    TIDE_TRY(take_text(k, r, i, &text, err));
    if (text[0] == '\0') return TIDE_OK;
    if (tide_strmap_get(&k->by_frames, text, &node)) {
        *out = (uint32_t)node;
        return TIDE_OK;
    }
    json_t *frames = tide_json_load(text, strlen(text), JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &at);
    if (frames == NULL && json_error_code(&at) == json_error_out_of_memory) return no_memory(k, err);
    if (frames == NULL) return bad(k, r, i, "is no JSON", err);
    tide_status st = put_stack(k, r, i, frames, out, err);
    json_decref(frames);
    if (st == TIDE_OK && tide_strmap_put(&k->by_frames, text, *out) != TIDE_OK) st = no_memory(k, err);
    return st;
}

// ---- events ----

enum { E_ROW, E_ACTION, E_ADDR, E_SIZE, E_STREAM, E_TIME, E_FRAMES, E_METADATA, E_FREE, E_DEVICE, N_EVENT };
static const wanted event_columns[N_EVENT] = {{"rowid", NULL, true},        {"action", NULL, true},
                                              {"addr", "address", true},    {"size", NULL, true},
                                              {"stream", NULL, false},      {"time_us", NULL, false},
                                              {"frames", NULL, false},      {"user_metadata", NULL, false},
                                              {"device_free", NULL, false}, {"device", "device_id", false}};

static tide__torch_action action_of(const char *word) {
    static const char *const words[] = {"alloc",         "free_requested", "free_completed",
                                        "segment_alloc", "segment_free",   "segment_map",
                                        "segment_unmap", "snapshot",       "oom"};
    _Static_assert(sizeof words / sizeof words[0] == TIDE__TORCH_OTHER, "a word for each action");
    for (size_t i = 0; i < TIDE__TORCH_OTHER; i++)
        if (strcmp(word, words[i]) == 0) return (tide__torch_action)i;
    return TIDE__TORCH_OTHER;
}

static tide_status take_event(reader *k, const row *r, tide_error *err) {
    tide__torch_event e = {.time_us = TIDE__TORCH_NO_TIME};
    const char *word, *metadata;
    if (is_null(r, E_ACTION)) return bad(k, r, E_ACTION, "is NULL", err);
    TIDE_TRY(take_text(k, r, E_ACTION, &word, err));
    e.action = (uint8_t)action_of(word);
    const bool has_place = e.action <= TIDE__TORCH_SEGMENT_UNMAP;
    uint64_t time_us = UINT64_MAX;
    TIDE_TRY(take_number(k, r, E_ADDR, has_place, INT64_MAX, &e.addr, err));
    TIDE_TRY(take_number(k, r, E_SIZE, has_place || e.action == TIDE__TORCH_OOM, TIDE__TORCH_MAX_BYTES, &e.size, err));
    TIDE_TRY(take_number(k, r, E_STREAM, false, INT64_MAX, &e.stream, err));
    TIDE_TRY(take_number(k, r, E_TIME, false, INT64_MAX / 1000 - 1, &time_us, err));
    if (e.action == TIDE__TORCH_OOM) TIDE_TRY(take_number(k, r, E_FREE, false, INT64_MAX, &e.addr, err));
    if (time_us != UINT64_MAX) e.time_us = (int64_t)time_us;
    TIDE_TRY(take_stack(k, r, E_FRAMES, &e.stack, err));
    TIDE_TRY(take_text(k, r, E_METADATA, &metadata, err));
    TIDE_TRY(put_text(k, metadata, &e.metadata, err));
    // With what it may be rounded up to.
    if (has_place && !tide__torch_is_range(e.addr, 2 * e.size + 512)) return bad(k, r, E_SIZE, "is too large", err);
    k->s->has_ranges = k->s->has_ranges || e.action == TIDE__TORCH_SEGMENT_MAP;
    k->s->n_unknown_actions += e.action == TIDE__TORCH_OTHER;
    k->s->n_without_time += e.time_us == TIDE__TORCH_NO_TIME;
    if (fwrite(&e, sizeof e, 1, k->s->spool) != 1)
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot keep the events of '%s': %s", k->path, strerror(errno));
    k->s->n_events++;
    return TIDE_OK;
}

/// The events of one device.
static tide_status take_track(reader *k, const row *r, uint64_t device, tide_error *err) {
    tide__torch_snapshot *s = k->s;
    bool has;
    TIDE_TRY(TIDE_GROW(&s->tracks, &k->cap_tracks, s->n_tracks + 1, err, "for the devices of '%s'", k->path));
    tide__torch_track track = {.first = s->n_events, .device = (int64_t)device};
    for (;;) {
        TIDE_TRY(next_row(k, r, &has, err));
        if (!has) break;
        TIDE_TRY(take_event(k, r, err));
    }
    track.n = s->n_events - track.first;
    if (track.n > 0) s->tracks[s->n_tracks++] = track;
    return TIDE_OK;
}

enum { MAX_DEVICE = 255 };

/// Which devices the events have: each is read by itself, so that nothing has to be sorted.
static tide_status find_devices(reader *k, bool is_there[MAX_DEVICE + 1], tide_error *err) {
    row r = {.table = "device_traces"};
    const wanted device = event_columns[E_DEVICE];
    const wanted columns[] = {event_columns[E_ROW], device};
    char rest[64];
    const char *name = column_of(k, r.table, device.name, device.other);
    bool has = true;
    if (strcmp(name, "NULL") == 0) {
        is_there[0] = true;
        return TIDE_OK;
    }
    snprintf(rest, sizeof rest, "GROUP BY %s", name);
    tide_status st = prepare(k, r.table, columns, 2, rest, &r.stmt, err);
    while (st == TIDE_OK && has) {
        uint64_t number = 0;
        st = next_row(k, &r, &has, err);
        if (st == TIDE_OK && has) st = take_number(k, &r, 1, true, MAX_DEVICE, &number, err);
        if (st == TIDE_OK && has) is_there[number] = true;
    }
    sqlite3_finalize(r.stmt);
    return st;
}

static tide_status take_events(reader *k, tide_error *err) {
    row r = {.table = "device_traces"};
    bool is_there[MAX_DEVICE + 1] = {false};
    TIDE_TRY(find_devices(k, is_there, err));
    const char *name = column_of(k, r.table, event_columns[E_DEVICE].name, event_columns[E_DEVICE].other);
    const bool is_told = strcmp(name, "NULL") != 0;
    char rest[96];
    snprintf(rest, sizeof rest, "%s%s%s ORDER BY rowid", is_told ? "WHERE " : "", is_told ? name : "",
             is_told ? " = ?1" : "");
    tide_status st = prepare(k, r.table, event_columns, N_EVENT, rest, &r.stmt, err);
    for (unsigned i = 0; i <= MAX_DEVICE && st == TIDE_OK; i++) {
        if (!is_there[i]) continue;
        sqlite3_reset(r.stmt);
        if (is_told && sqlite3_bind_int(r.stmt, 1, (int)i) != SQLITE_OK) st = failed(k, err);
        if (st == TIDE_OK) st = take_track(k, &r, i, err);
    }
    sqlite3_finalize(r.stmt);
    return st;
}

// ---- the state at the end ----

enum { S_ROW, S_KEY, S_ADDRESS, S_TOTAL, S_DEVICE, S_STREAM, S_TYPE, S_EXPANDABLE, S_FRAMES, N_SEGMENT };
static const wanted segment_columns[N_SEGMENT] = {
    {"rowid", NULL, true},         {"segment_id", "id", true},     {"address", "addr", true},
    {"total_size", "size", true},  {"device", "device_id", false}, {"stream", NULL, false},
    {"segment_type", NULL, false}, {"is_expandable", NULL, false}, {"frames", NULL, false}};

enum { B_ROW, B_SEGMENT, B_ADDRESS, B_SIZE, B_REQUESTED, B_STATE, B_FRAMES, N_BLOCK };
static const wanted block_columns[N_BLOCK] = {
    {"rowid", NULL, true},           {"segment_id", NULL, true}, {"address", "addr", false}, {"size", NULL, true},
    {"requested_size", NULL, false}, {"state", NULL, true},      {"frames", NULL, false}};

/// Segments and blocks, each in the order of the segments' numbers.
typedef struct state {
    row segments, blocks;
    bool has_block;   // a row of blocks waits
    uint64_t segment; // that it is of
} state;

static tide_status next_block(reader *k, state *t, tide_error *err) {
    TIDE_TRY(next_row(k, &t->blocks, &t->has_block, err));
    if (!t->has_block) return TIDE_OK;
    return take_number(k, &t->blocks, B_SEGMENT, true, INT64_MAX, &t->segment, err);
}

static tide_status take_block(reader *k, const row *r, uint64_t *at, tide_error *err) {
    tide__torch_block b = {.requested = UINT64_MAX, .address = *at, .has_address = true};
    const char *word;
    TIDE_TRY(take_number(k, r, B_ADDRESS, false, INT64_MAX, &b.address, err));
    TIDE_TRY(take_number(k, r, B_SIZE, true, TIDE__TORCH_MAX_BYTES, &b.size, err));
    TIDE_TRY(take_number(k, r, B_REQUESTED, false, TIDE__TORCH_MAX_BYTES, &b.requested, err));
    if (is_null(r, B_STATE)) return bad(k, r, B_STATE, "is NULL", err);
    TIDE_TRY(take_text(k, r, B_STATE, &word, err));
    if (strcmp(word, "active_allocated") == 0) b.state = TIDE__TORCH_ACTIVE;
    if (strcmp(word, "active_pending_free") == 0 || strcmp(word, "active_awaiting_free") == 0)
        b.state = TIDE__TORCH_PENDING;
    TIDE_TRY(take_stack(k, r, B_FRAMES, &b.stack, err));
    if (!tide__torch_is_range(b.address, b.size)) return bad(k, r, B_SIZE, "is too large", err);
    if (b.requested == UINT64_MAX) b.requested = b.size;
    *at = b.address + b.size;
    TIDE_TRY(TIDE_GROW(&k->s->blocks, &k->cap_blocks, k->s->n_blocks + 1, err, "for the blocks of '%s'", k->path));
    k->s->blocks[k->s->n_blocks++] = b;
    return TIDE_OK;
}

static tide_status take_segment(reader *k, state *t, uint64_t key, tide_error *err) {
    const row *r = &t->segments;
    tide__torch_segment g = {.first_block = k->s->n_blocks};
    uint64_t device = 0, is_expandable = 0;
    const char *type;
    TIDE_TRY(take_number(k, r, S_ADDRESS, true, INT64_MAX, &g.address, err));
    TIDE_TRY(take_number(k, r, S_TOTAL, true, TIDE__TORCH_MAX_BYTES, &g.total, err));
    TIDE_TRY(take_number(k, r, S_DEVICE, false, MAX_DEVICE, &device, err));
    TIDE_TRY(take_number(k, r, S_STREAM, false, INT64_MAX, &g.stream, err));
    TIDE_TRY(take_text(k, r, S_TYPE, &type, err));
    TIDE_TRY(take_number(k, r, S_EXPANDABLE, false, 1, &is_expandable, err));
    TIDE_TRY(take_stack(k, r, S_FRAMES, &g.stack, err));
    if (!tide__torch_is_range(g.address, g.total)) return bad(k, r, S_TOTAL, "is too large", err);
    g.device = (int64_t)device;
    g.is_expandable = is_expandable != 0;
    k->s->has_ranges = k->s->has_ranges || g.is_expandable;
    g.is_small = strcmp(type, "small") == 0;
    uint64_t at = g.address;
    for (; t->has_block && t->segment == key; g.n_blocks++) {
        TIDE_TRY(take_block(k, &t->blocks, &at, err));
        TIDE_TRY(next_block(k, t, err));
    }
    TIDE_TRY(TIDE_GROW(&k->s->segments, &k->cap_segments, k->s->n_segments + 1, err, "for '%s'", k->path));
    k->s->segments[k->s->n_segments++] = g;
    return TIDE_OK;
}

static tide_status take_segments(reader *k, state *t, tide_error *err) {
    uint64_t last = UINT64_MAX;
    TIDE_TRY(next_block(k, t, err));
    for (;;) {
        bool has;
        uint64_t key;
        TIDE_TRY(next_row(k, &t->segments, &has, err));
        if (!has) break;
        TIDE_TRY(take_number(k, &t->segments, S_KEY, true, INT64_MAX, &key, err));
        if (key == last) return bad(k, &t->segments, S_KEY, "is there twice", err);
        last = key;
        if (t->has_block && t->segment < key) break;
        TIDE_TRY(take_segment(k, t, key, err));
    }
    return t->has_block ? bad(k, &t->blocks, B_SEGMENT, "is of no segment", err) : TIDE_OK;
}

static tide_status take_state(reader *k, tide_error *err) {
    state t = {.segments = {.table = "segments"}, .blocks = {.table = "blocks"}};
    char rest[64];
    snprintf(rest, sizeof rest, "ORDER BY %s", column_of(k, "segments", "segment_id", "id"));
    tide_status st = prepare(k, "segments", segment_columns, N_SEGMENT, rest, &t.segments.stmt, err);
    if (st == TIDE_OK)
        st = prepare(k, "blocks", block_columns, N_BLOCK, "ORDER BY segment_id, rowid", &t.blocks.stmt, err);
    if (st == TIDE_OK) st = take_segments(k, &t, err);
    sqlite3_finalize(t.segments.stmt);
    sqlite3_finalize(t.blocks.stmt);
    return st;
}

// ---- the whole ----

bool tide__import_is_torch_sqlite(const char *path) {
    static const char *const tables[] = {"device_traces", "blocks", "segments"};
    sqlite3 *db = NULL;
    bool is = tide__sql_open_foreign(path, &db) == SQLITE_OK;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        is = is && sqlite3_table_column_metadata(db, NULL, tables[i], NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return is;
}

tide_status tide__torch_sqlite_read(const char *path, FILE *spool, tide__torch_snapshot *out, tide_error *err) {
    *out = (tide__torch_snapshot){.spool = spool};
    reader k = {.s = out, .path = path};
    uint32_t none;
    tide_status st = tide__sql_open_foreign(path, &k.db) == SQLITE_OK ? TIDE_OK : failed(&k, err);
    if (st == TIDE_OK) st = put_text(&k, "", &none, err);
    if (st == TIDE_OK) st = tide__torch_tree_init(&k.tree, out, path, err);
    if (st == TIDE_OK) st = take_events(&k, err);
    if (st == TIDE_OK) st = take_state(&k, err);
    if (st == TIDE_OK && fflush(spool) != 0)
        st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot keep the events of '%s': %s", path, strerror(errno));
    sqlite3_close(k.db);
    tide_strmap_deinit(&k.by_text);
    tide_strmap_deinit(&k.by_frames);
    tide__torch_tree_deinit(&k.tree);
    tide_host_free(k.stack);
    return st;
}
