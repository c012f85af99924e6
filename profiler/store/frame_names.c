// SPDX-License-Identifier: MIT
//
// Names of native frames. See frame_names.h.
//
//     before   scope 7  "sort+0x5601" in 4                   events and other frames refer to 7, which it stays
//     after    scope 7  "get @ a.c:8 [sort]" in 31           f was inlined into main
//              scope 31 "main @ a.c:90 [sort]" in 4          a new row: the one parent that has a larger number
//
// Texts that are used no more stay in table name.
#include "profiler/store/frame_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "profiler/store/sql.h"

enum { BUSY_MS = 10000, MAX_WHY = 256 };

/// A file that frames lie in.
typedef struct object {
    char *label, *path; ///< owned; the path stands behind the build id
    char *build_id;
    void *open;    ///< of the plug-in; NULL: not opened
    bool is_tried; ///< to open it
} object;

typedef struct frame {
    int64_t scope, name, parent;
} frame;

/// What a text that was recorded becomes: names[begin .. begin + n), the innermost first. n 0: it stays.
typedef struct renamed {
    uint64_t key; ///< number of the text
    size_t begin, n;
} renamed;

/// A row of table scope that was made, by what it is.
typedef struct made {
    uint64_t key; ///< parent and name
    int64_t scope;
} made;

typedef struct naming {
    tide__sql sql;
    const tide_symbols_plugin *symbols;
    tide_symbols_report *report;
    object *objects; ///< [n_objects]
    size_t n_objects, cap_objects;
    tide_strmap by_label; ///< place of each
    tide_strmap texts;    ///< all of table name, by their numbers
    frame *frames;        ///< [n_frames]
    size_t n_frames, cap_frames;
    int64_t *names; ///< [n_names]
    size_t n_names, cap_names;
    tide_map renamed, made;
    int64_t last_name, last_scope;
    int64_t n_new_names, n_new_scopes;
    sqlite3_stmt *add_name, *add_scope, *change;
    const object *of; ///< whose names are taken
    tide_status st;   ///< of taking them
    tide_error *err;
} naming;

static tide_status no_memory(const naming *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to name the call stacks of '%s'", m->sql.path);
}

// ---- what is there ----

static tide_status take_object(naming *m, const char *label, const char *value) {
    const char *space = strchr(value, ' ');
    if (space == NULL) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&m->objects, &m->cap_objects, m->n_objects + 1, sizeof *m->objects));
    TIDE_TRY(tide_strmap_put(&m->by_label, label, m->n_objects));
    m->objects[m->n_objects++] = (object){.label = tide_host_strdup(label),
                                          .path = tide_host_strdup(space + 1),
                                          .build_id = tide_host_strndup(value, (size_t)(space - value))};
    const object *o = &m->objects[m->n_objects - 1];
    return o->label != NULL && o->path != NULL && o->build_id != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

/// The rows of a query, each to `take`.
static tide_status each(naming *m, const char *query, tide_status (*take)(naming *m, sqlite3_stmt *row),
                        tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_row = true;
    TIDE_TRY(tide__sql_prepare(&m->sql, query, &stmt, err));
    tide_status st = TIDE_OK;
    while (st == TIDE_OK && has_row) {
        st = tide__sql_step(&m->sql, stmt, &has_row, err);
        if (st != TIDE_OK || !has_row) break;
        st = take(m, stmt);
        if (st == TIDE_ERR_NOMEM) st = no_memory(m, err);
        if (st == TIDE_ERR_BAD_INPUT)
            st = TIDE_FAIL(err, st, "cannot name the call stacks of '%s': a table of it is damaged", m->sql.path);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status take_module(naming *m, sqlite3_stmt *row) {
    return take_object(m, tide__sql_text(row, 0), tide__sql_text(row, 1));
}

static tide_status take_text(naming *m, sqlite3_stmt *row) {
    int64_t id;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &id)) return TIDE_ERR_BAD_INPUT;
    if (id > m->last_name) m->last_name = id;
    return tide_strmap_put(&m->texts, tide__sql_text(row, 1), (uint64_t)id);
}

static tide_status take_frame(naming *m, sqlite3_stmt *row) {
    frame f;
    if (!tide__sql_number(row, 0, 1, INT32_MAX, &f.scope) || !tide__sql_number(row, 1, 1, INT32_MAX, &f.name) ||
        !tide__sql_int_or(row, 2, 1, INT32_MAX, 0, &f.parent))
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&m->frames, &m->cap_frames, m->n_frames + 1, sizeof *m->frames));
    m->frames[m->n_frames++] = f;
    return TIDE_OK;
}

/// Of a merged trace two files may have had one label: what it stands for is not known.
static tide_status read_tables(naming *m, tide_error *err) {
    TIDE_TRY(each(m,
                  "SELECT substr(key, 8), value FROM main.meta WHERE key GLOB 'module.*' AND NOT EXISTS "
                  "(SELECT 1 FROM main.meta o WHERE o.key GLOB 'merged.*' AND o.key LIKE '%.' || meta.key)",
                  take_module, err));
    TIDE_TRY(each(m, "SELECT id, text FROM main.name", take_text, err));
    TIDE_TRY(tide__sql_int(&m->sql, "SELECT max(id) FROM main.scope", 0, &m->last_scope, err));
    return each(m,
                "SELECT s.id, s.name_id, s.parent_id FROM main.scope s JOIN main.name n ON n.id = s.name_id "
                "WHERE s.kind = 'frame' AND n.text LIKE '%+0x%' ORDER BY s.id",
                take_frame, err);
}

// ---- names of an address ----

static tide_status put_text(naming *m, const char *text) {
    uint64_t known;
    if (!tide_strmap_get(&m->texts, text, &known)) {
        if (m->last_name >= INT32_MAX) return TIDE_FAIL(m->err, TIDE_ERR_NO_SPACE, "there are too many names");
        known = (uint64_t)++m->last_name;
        if (tide_strmap_put(&m->texts, text, known) != TIDE_OK) return no_memory(m, m->err);
        sqlite3_bind_int64(m->add_name, 1, (int64_t)known);
        tide__sql_bind_text(m->add_name, 2, text);
        TIDE_TRY(tide__sql_run(&m->sql, m->add_name, m->err));
        m->n_new_names++;
    }
    if (tide_host_grow(&m->names, &m->cap_names, m->n_names + 1, sizeof *m->names) != TIDE_OK)
        return no_memory(m, m->err);
    m->names[m->n_names++] = (int64_t)known;
    return TIDE_OK;
}

/// The plug-in's: one function.
static void take_symbol(void *ctx, const tide_symbol *symbol) {
    naming *m = ctx;
    if (m->st != TIDE_OK) return;
    tide_text text = {0};
    tide_text_add(&text, symbol->function);
    if (symbol->file != NULL) tide_text_addf(&text, " @ %s:%d", symbol->file, symbol->line);
    tide_text_addf(&text, " [%s]", m->of->label);
    m->st = text.failed ? no_memory(m, m->err) : put_text(m, tide_text_str(&text));
    tide_text_deinit(&text);
}

static tide_status note_refused(naming *m, const object *o, const char *why, tide_error *err) {
    if (m->report->n_refused++ == 0)
        snprintf(m->report->refused, sizeof m->report->refused, "'%.400s': %s", o->path, why);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&m->sql, "INSERT OR REPLACE INTO main.meta VALUES('symbols.' || ?, ?)", &stmt, err));
    tide__sql_bind_text(stmt, 1, o->label);
    tide__sql_bind_text(stmt, 2, why);
    const tide_status st = tide__sql_run(&m->sql, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status open_object(naming *m, object *o, tide_error *err) {
    if (o->is_tried) return TIDE_OK;
    char why[MAX_WHY] = "it is no file";
    o->is_tried = true;
    m->report->n_files++;
    if (o->path[0] == '/') o->open = m->symbols->open(o->path, o->build_id, why, sizeof why);
    return o->open != NULL ? TIDE_OK : note_refused(m, o, why, err);
}

/// "LABEL+0x1a2b". NULL: it is no such text.
static object *parse(naming *m, const char *text, uint64_t *address) {
    const char *plus = NULL;
    for (const char *at = text; (at = strstr(at, "+0x")) != NULL; at++) plus = at;
    if (plus == NULL || plus[3] == '\0' || strspn(plus + 3, "0123456789abcdef") != strlen(plus + 3) ||
        strlen(plus + 3) > 16)
        return NULL;
    char *label = tide_host_strndup(text, (size_t)(plus - text));
    uint64_t i = 0;
    const bool is_known = label != NULL && tide_strmap_get(&m->by_label, label, &i);
    tide_host_free(label);
    *address = strtoull(plus + 3, NULL, 16);
    return is_known ? &m->objects[i] : NULL;
}

static tide_status find_names(naming *m, const char *text, tide_error *err) {
    uint64_t address;
    object *o = parse(m, text, &address);
    if (o == NULL) return TIDE_OK;
    TIDE_TRY(open_object(m, o, err));
    if (o->open == NULL) return TIDE_OK;
    m->of = o;
    m->st = TIDE_OK;
    m->err = err;
    m->symbols->find(o->open, address, take_symbol, m);
    return m->st;
}

/// What the text of a frame becomes; looked for once.
static tide_status rename_text(naming *m, int64_t name, renamed *out, sqlite3_stmt *text_of, tide_error *err) {
    const renamed *known = tide_map_find(&m->renamed, (uint64_t)name);
    if (known != NULL) {
        *out = *known;
        return TIDE_OK;
    }
    bool has_row;
    *out = (renamed){.key = (uint64_t)name, .begin = m->n_names};
    sqlite3_reset(text_of);
    sqlite3_bind_int64(text_of, 1, name);
    TIDE_TRY(tide__sql_step(&m->sql, text_of, &has_row, err));
    if (has_row) TIDE_TRY(find_names(m, tide__sql_text(text_of, 0), err));
    out->n = m->n_names - out->begin;
    return tide_map_put(&m->renamed, out) ? TIDE_OK : no_memory(m, err);
}

// ---- into the table ----

/// A frame that the innermost one was inlined into, below `parent`.
static tide_status outer_scope(naming *m, int64_t name, int64_t parent, int64_t *scope, tide_error *err) {
    const uint64_t key = ((uint64_t)parent << 31 | (uint64_t)name) + 1;
    const made *known = tide_map_find(&m->made, key);
    if (known != NULL) {
        *scope = known->scope;
        return TIDE_OK;
    }
    if (m->last_scope >= INT32_MAX) return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "there are too many frames");
    const made fresh = {key, ++m->last_scope};
    if (!tide_map_put(&m->made, &fresh)) return no_memory(m, err);
    *scope = fresh.scope;
    m->n_new_scopes++;
    sqlite3_bind_int64(m->add_scope, 1, fresh.scope);
    sqlite3_bind_int64(m->add_scope, 2, name);
    tide__sql_bind_id(m->add_scope, 3, parent);
    return tide__sql_run(&m->sql, m->add_scope, err);
}

static tide_status rename_frame(naming *m, const frame *f, const renamed *to, tide_error *err) {
    int64_t parent = f->parent;
    TIDE_ASSERT(to->begin + to->n <= m->n_names);
    for (size_t i = to->n; i-- > 1;) TIDE_TRY(outer_scope(m, m->names[to->begin + i], parent, &parent, err));
    sqlite3_bind_int64(m->change, 1, m->names[to->begin]);
    tide__sql_bind_id(m->change, 2, parent);
    sqlite3_bind_int64(m->change, 3, f->scope);
    m->report->n_named++;
    return tide__sql_run(&m->sql, m->change, err);
}

static tide_status rename_frames(naming *m, tide_error *err) {
    sqlite3_stmt *text_of;
    TIDE_TRY(tide__sql_prepare(&m->sql, "SELECT text FROM main.name WHERE id = ?", &text_of, err));
    tide_status st = TIDE_OK;
    m->report->n_frames = m->n_frames;
    for (size_t i = 0; st == TIDE_OK && i < m->n_frames; i++) {
        renamed to;
        st = rename_text(m, m->frames[i].name, &to, text_of, err);
        if (st == TIDE_OK && to.n > 0) st = rename_frame(m, &m->frames[i], &to, err);
    }
    sqlite3_finalize(text_of);
    return st;
}

static tide_status add_to_meta(const naming *m, const char *key, int64_t n, tide_error *err) {
    char text[160];
    snprintf(text, sizeof text, "UPDATE main.meta SET value = CAST(value AS INTEGER) + %" PRId64 " WHERE key = '%s'", n,
             key);
    return tide__sql_exec(&m->sql, text, err);
}

static tide_status prepare(naming *m, tide_error *err) {
    TIDE_TRY(tide__sql_prepare(&m->sql, "INSERT INTO main.name VALUES(?, ?)", &m->add_name, err));
    TIDE_TRY(tide__sql_prepare(&m->sql, "INSERT INTO main.scope VALUES(?, ?, 'frame', NULL, ?)", &m->add_scope, err));
    return tide__sql_prepare(&m->sql, "UPDATE main.scope SET name_id = ?, parent_id = ? WHERE id = ?", &m->change, err);
}

static tide_status change_tables(naming *m, tide_error *err) {
    TIDE_TRY(tide__sql_exec(&m->sql, "DELETE FROM main.meta WHERE key GLOB 'symbols.*'", err));
    TIDE_TRY(read_tables(m, err));
    TIDE_TRY(prepare(m, err));
    TIDE_TRY(rename_frames(m, err));
    TIDE_TRY(add_to_meta(m, "n_names", m->n_new_names, err));
    return add_to_meta(m, "n_scopes", m->n_new_scopes, err);
}

// ---- all of it ----

static tide_status open_sql(naming *m, tide_error *err) {
    char *plain = tide__sql_file_name(m->sql.path);
    if (plain == NULL) return no_memory(m, err);
    const int rc = sqlite3_open_v2(plain, &m->sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    if (rc != SQLITE_OK) return tide__sql_fail(&m->sql, rc, "open", err);
    sqlite3_busy_timeout(m->sql.db, BUSY_MS);
    sqlite3_db_config(m->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(m->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(m->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(m->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return TIDE_OK;
}

static void deinit(naming *m) {
    sqlite3_finalize(m->add_name);
    sqlite3_finalize(m->add_scope);
    sqlite3_finalize(m->change);
    sqlite3_close(m->sql.db);
    for (size_t i = 0; i < m->n_objects; i++) {
        if (m->objects[i].open != NULL) m->symbols->close(m->objects[i].open);
        tide_host_free(m->objects[i].label);
        tide_host_free(m->objects[i].path);
        tide_host_free(m->objects[i].build_id);
    }
    tide_host_free(m->objects);
    tide_host_free(m->frames);
    tide_host_free(m->names);
    tide_strmap_deinit(&m->by_label);
    tide_strmap_deinit(&m->texts);
    tide_map_deinit(&m->renamed);
    tide_map_deinit(&m->made);
}

tide_status tide__name_frames(const char *path, const tide_symbols_plugin *symbols, tide_symbols_report *out,
                              tide_error *err) {
    naming m = {
        .sql.path = path, .symbols = symbols, .report = out, .renamed = TIDE_MAP(renamed), .made = TIDE_MAP(made)};
    *out = (tide_symbols_report){0};
    tide_status st = open_sql(&m, err);
    if (st == TIDE_OK) st = tide__sql_exec(&m.sql, "BEGIN IMMEDIATE", err);
    if (st == TIDE_OK) st = change_tables(&m, err);
    if (st == TIDE_OK) st = tide__sql_exec(&m.sql, "COMMIT", err);
    deinit(&m); // what is not committed goes with the connection
    return st;
}
