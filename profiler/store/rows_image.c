// SPDX-License-Identifier: MIT
//
// Pages of SQLite's file format, written by hand. See rows_image.h.
#include "profiler/store/rows_image.h"

#include <stdatomic.h>
#include <stdio.h>

#include "core/base/host_alloc.h"
#include "profiler/store/schema.h"

enum {
    PAGE_BYTES = 8192,
    MAX_CELL = TIDE__RECORD_BYTES + 9 + 2, ///< varints of the row's number and of the record's length before it
    LEAF_HEAD = 8,
    INNER_HEAD = 12,
    ROOT = 2, ///< pages count from 1
    FIRST_LEAF = 3,
    ROWS_PER_PAGE = (PAGE_BYTES - LEAF_HEAD) / (MAX_CELL + 2), ///< at least
    N_PAGES = FIRST_LEAF + TIDE__IMAGE_ROWS / ROWS_PER_PAGE,
    INNER_CELL = 4 + 9,
    TABLE_LEAF = 0x0d, ///< types of page
    TABLE_INNER = 0x05,
};
_Static_assert(N_PAGES *(INNER_CELL + 2) + INNER_HEAD <= PAGE_BYTES, "one root leads to all leaves");

struct tide__rows_image {
    const tide__sql *sql;
    char schema[32];
    sqlite3_stmt *insert;
    uint8_t *pages; ///< [N_PAGES][PAGE_BYTES], owned by the schema once that is attached
    uint32_t page;  ///< that is being filled
    size_t n_cells; ///< of it
    size_t begin;   ///< of its cells, which grow from its end
    size_t n_rows;
    int64_t last_ids[N_PAGES + 1]; ///< by page
};

// ---- pages ----

static uint8_t *page_at(tide__rows_image *image, uint32_t page) {
    return image->pages + (size_t)(page - 1) * PAGE_BYTES;
}

static void put_u16(uint8_t *out, size_t v) {
    out[0] = (uint8_t)(v >> 8);
    out[1] = (uint8_t)v;
}

static void put_u32(uint8_t *out, uint32_t v) {
    put_u16(out, v >> 16);
    put_u16(out + 2, v & 0xffff);
}

/// @return bytes, 1 to 9
static size_t put_varint(uint8_t *out, uint64_t v) {
    if (v < 0x80) {
        out[0] = (uint8_t)v;
        return 1;
    }
    if (v >> 56 != 0) { // the ninth byte has eight bits
        out[8] = (uint8_t)v;
        v >>= 8;
        for (int i = 7; i >= 0; i--, v >>= 7) out[i] = (uint8_t)(v & 0x7f) | 0x80;
        return 9;
    }
    const size_t n = (70 - (size_t)__builtin_clzll(v)) / 7;
    for (size_t i = n; i-- > 0; v >>= 7) out[i] = (uint8_t)(v & 0x7f) | 0x80;
    out[n - 1] &= 0x7f;
    return n;
}

static void put_page_head(uint8_t *head, uint8_t type, size_t n_cells, size_t begin) {
    head[0] = type;
    put_u16(head + 1, 0); // no free bytes between cells
    put_u16(head + 3, n_cells);
    put_u16(head + 5, begin);
    head[7] = 0;
}

/// The only row of sqlite_schema.
static void put_schema(uint8_t *page, size_t head_at, const tide__schema_item *table) {
    // Values of text have the type 13 + 2 * length; a length of 58 and more takes two bytes.
    const size_t name = strlen(table->name), sql = strlen(table->sql);
    uint8_t head[1 + 5 * 9], cell[2 * 9];
    size_t n = 1;
    n += put_varint(head + n, 13 + 2 * strlen("table"));
    n += put_varint(head + n, 13 + 2 * name);
    n += put_varint(head + n, 13 + 2 * name);
    n += put_varint(head + n, 1); // a byte: the root
    n += put_varint(head + n, 13 + 2 * sql);
    head[0] = (uint8_t)n;
    size_t n_cell = put_varint(cell, n + strlen("table") + 2 * name + 1 + sql);
    n_cell += put_varint(cell + n_cell, 1); // number of the row
    const size_t begin = PAGE_BYTES - (n_cell + n + strlen("table") + 2 * name + 1 + sql);
    uint8_t *at = page + begin;
#define PUT(from, n_bytes) (memcpy(at, (from), (n_bytes)), at += (n_bytes))
    PUT(cell, n_cell);
    PUT(head, n);
    PUT("table", strlen("table"));
    PUT(table->name, name);
    PUT(table->name, name);
    *at++ = ROOT;
    PUT(table->sql, sql);
#undef PUT
    put_page_head(page + head_at, TABLE_LEAF, 1, begin);
    put_u16(page + head_at + LEAF_HEAD, begin);
}

static void put_first_page(uint8_t *page, const tide__schema_item *table) {
    enum { HEAD = 100, VERSION = 3037000 };
    memcpy(page, "SQLite format 3", 16);
    put_u16(page + 16, PAGE_BYTES);
    page[18] = page[19] = 1; // no write-ahead log
    page[21] = 64;           // three numbers that are always these
    page[22] = page[23] = 32;
    put_u32(page + 24, 1); // changes
    put_u32(page + 28, N_PAGES);
    put_u32(page + 40, 1); // changes of the schema
    put_u32(page + 44, 4); // format of the schema: 0 and 1 take no byte
    put_u32(page + 56, 1); // UTF-8
    put_u32(page + 92, 1); // changes when the next number was written
    put_u32(page + 96, VERSION);
    put_schema(page, HEAD, table);
}

// ---- rows ----

void tide__rows_image_clear(tide__rows_image *image) {
    image->page = FIRST_LEAF;
    image->n_cells = image->n_rows = 0;
    image->begin = PAGE_BYTES;
}

static void end_page(tide__rows_image *image) {
    put_page_head(page_at(image, image->page), TABLE_LEAF, image->n_cells, image->begin);
}

void tide__rows_image_add(tide__rows_image *image, int64_t id, const tide__record *r) {
    const size_t n_record = (size_t)(r->data - r->bytes);
    uint8_t lengths[2 + 9];
    size_t n = put_varint(lengths, n_record);
    n += put_varint(lengths + n, (uint64_t)id);
    if (image->begin < LEAF_HEAD + 2 * (image->n_cells + 1) + n + n_record) {
        end_page(image);
        image->page++;
        image->n_cells = 0;
        image->begin = PAGE_BYTES;
    }
    uint8_t *page = page_at(image, image->page);
    image->begin -= n + n_record;
    memcpy(page + image->begin, lengths, n);
    memcpy(page + image->begin + n, r->bytes, n_record);
    put_u16(page + LEAF_HEAD + 2 * image->n_cells++, image->begin);
    image->last_ids[image->page] = id;
    image->n_rows++;
}

/// A root that leads to one page only is none.
static void put_root(tide__rows_image *image) {
    uint8_t *root = page_at(image, ROOT);
    if (image->page == FIRST_LEAF) {
        memcpy(root, page_at(image, FIRST_LEAF), PAGE_BYTES);
        return;
    }
    size_t begin = PAGE_BYTES;
    for (uint32_t page = FIRST_LEAF; page < image->page; page++) {
        uint8_t cell[INNER_CELL];
        put_u32(cell, page);
        const size_t n = 4 + put_varint(cell + 4, (uint64_t)image->last_ids[page]);
        begin -= n;
        memcpy(root + begin, cell, n);
        put_u16(root + INNER_HEAD + (size_t)(page - FIRST_LEAF) * 2, begin);
    }
    put_page_head(root, TABLE_INNER, image->page - FIRST_LEAF, begin);
    put_u32(root + LEAF_HEAD, image->page); // behind the last cell
}

static void end_batch(tide__rows_image *image) {
    end_page(image);
    put_root(image);
}

int tide__rows_image_insert(tide__rows_image *image) {
    end_batch(image);
    const int rc = sqlite3_step(image->insert);
    sqlite3_reset(image->insert);
    if (rc != SQLITE_DONE) return rc;
    return sqlite3_changes(image->sql->db) == (int)image->n_rows ? SQLITE_OK : SQLITE_INTERNAL;
}

// ---- open, close ----

/// Whether SQLite reads what the pages hold now. One that was built without memory-mapped files keeps copies of them.
static tide_status check_fresh(tide__rows_image *image, const char *table, tide_error *err) {
    char text[128];
    snprintf(text, sizeof text, "SELECT id FROM %s.%s", image->schema, table);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(image->sql, text, &stmt, err));
    tide_status st = TIDE_OK;
    for (int64_t id = 1; st == TIDE_OK && id <= 2; id++) {
        tide__record record;
        tide__record_begin(&record, 1);
        tide__rows_image_clear(image);
        tide__rows_image_add(image, id, &record);
        end_batch(image);
        bool has_row;
        st = tide__sql_step(image->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || sqlite3_column_int64(stmt, 0) != id))
            st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "this SQLite maps no memory");
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Memory becomes the schema's, also on failure.
static tide_status attach(tide__rows_image *image, const char *table, tide_error *err) {
    static atomic_uint n_schemas;
    char text[160];
    snprintf(image->schema, sizeof image->schema, "tide_rows_%u", atomic_fetch_add(&n_schemas, 1));
    snprintf(text, sizeof text, "ATTACH ':memory:' AS %s", image->schema);
    tide_status st = tide__sql_exec(image->sql, text, err);
    if (st != TIDE_OK) {
        sqlite3_free(image->pages);
        image->pages = NULL;
        image->schema[0] = '\0';
        return st;
    }
    // Not read-only, although nobody writes to it: BEGIN IMMEDIATE asks to write to all that is attached.
    const int rc = sqlite3_deserialize(image->sql->db, image->schema, image->pages, N_PAGES * PAGE_BYTES,
                                       N_PAGES * PAGE_BYTES, SQLITE_DESERIALIZE_FREEONCLOSE);
    if (rc != SQLITE_OK) return tide__sql_fail(image->sql, rc, "write", err);
    // With a journal in memory it has no part in the commits of the file.
    snprintf(text, sizeof text, "PRAGMA %s.journal_mode = MEMORY; PRAGMA %s.mmap_size = %d", image->schema,
             image->schema, N_PAGES * PAGE_BYTES);
    TIDE_TRY(tide__sql_exec(image->sql, text, err));
    TIDE_TRY(check_fresh(image, table, err));
    snprintf(text, sizeof text, "INSERT INTO main.%s SELECT * FROM %s.%s", table, image->schema, table);
    return tide__sql_prepare(image->sql, text, &image->insert, err);
}

tide_status tide__rows_image_open(const tide__sql *s, const char *table, tide__rows_image **out, tide_error *err) {
    const tide__schema_item *tables;
    size_t i = 0;
    const size_t n = tide__schema_tables(&tables);
    while (i < n && strcmp(tables[i].name, table) != 0) i++;
    if (i == n) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a trace has no table '%s'", table);
    tide__rows_image *image = tide_host_calloc(1, sizeof *image);
    if (image == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to write '%s'", s->path);
    image->sql = s;
    image->pages = sqlite3_malloc64((sqlite3_uint64)N_PAGES * PAGE_BYTES);
    tide_status st =
        image->pages != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to write '%s'", s->path);
    if (st == TIDE_OK) {
        memset(image->pages, 0, PAGE_BYTES);
        put_first_page(image->pages, &tables[i]);
        tide__rows_image_clear(image);
        st = attach(image, table, err);
    }
    if (st != TIDE_OK) {
        tide__rows_image_close(image);
        return st;
    }
    *out = image;
    return TIDE_OK;
}

void tide__rows_image_close(tide__rows_image *image) {
    if (image == NULL) return;
    sqlite3_finalize(image->insert);
    char text[64];
    snprintf(text, sizeof text, "DETACH %s", image->schema);
    // Inside a transaction that has read it, it stays until the connection is closed.
    if (image->schema[0] != '\0') sqlite3_exec(image->sql->db, text, NULL, NULL, NULL);
    tide_host_free(image);
}
