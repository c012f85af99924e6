// SPDX-License-Identifier: MIT
//
// Lifetimes from a CSV in MiniMalloc's form (docs/plan-format.md): one buffer a line, columns found by their heads.
//
//     id,lower,upper,size
//     0,995328,1000448,656384
//
// A buffer of such a list is an intermediate that lives in the Workspace; steps have no names.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

typedef enum column {
    COLUMN_ID,
    COLUMN_BEGIN,
    COLUMN_END,  // half-open
    COLUMN_LAST, // inclusive
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_HINT, // a wish: MiniMalloc's own solver passes it over too
    COLUMN_GAPS, // these two change the problem and are not served
    COLUMN_OFFSET,
    N_COLUMNS,
} column;

static const struct {
    const char *head;
    column column;
} heads[] = {
    {"id", COLUMN_ID},         {"buffer", COLUMN_ID},   {"buffer_id", COLUMN_ID},        {"lower", COLUMN_BEGIN},
    {"start", COLUMN_BEGIN},   {"begin", COLUMN_BEGIN}, {"upper", COLUMN_END},           {"end", COLUMN_LAST},
    {"size", COLUMN_SIZE},     {"hint", COLUMN_HINT},   {"alignment", COLUMN_ALIGNMENT}, {"gaps", COLUMN_GAPS},
    {"offset", COLUMN_OFFSET},
};

/// A slice of the file; `at` is its column, counted from 1 in bytes.
typedef struct field {
    const char *text;
    size_t len;
    size_t at;
} field;

enum { MAX_FIELDS = N_COLUMNS };

typedef struct csv {
    const char *path;
    const char *next, *end; // of the data
    size_t line;            // counted from 1
    uint64_t align_bytes;
    column columns[MAX_FIELDS]; // what stands at each position
    size_t n_columns;
    bool has[N_COLUMNS];
    tide_strmap lines; // id -> line
    tide_lifetimes out;
    tide_error *err;
} csv;

/// A fault at a field of the current line.
#define BAD(c, f, ...) bad_at((c), (f), TIDE_FAIL((c)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

static tide_status bad_at(const csv *c, field f, tide_status st) {
    tide_error_where(c->err, "%s:%zu:%zu", c->path, c->line, f.at);
    return st;
}

static field whole_line(size_t at) { return (field){"", 0, at}; }

// ---- lines and fields ----

static bool is_blank(char ch) { return ch == ' ' || ch == '\t'; }

static field trim(field f) {
    while (f.len > 0 && is_blank(f.text[0])) {
        f.text++;
        f.at++;
        f.len--;
    }
    while (f.len > 0 && is_blank(f.text[f.len - 1])) f.len--;
    return f;
}

/// The next line without its end; false at the end of the data.
static bool next_line(csv *c, field *out) {
    if (c->next == c->end) return false;
    const char *newline = memchr(c->next, '\n', (size_t)(c->end - c->next));
    const char *stop = newline != NULL ? newline : c->end;
    *out = (field){c->next, (size_t)(stop - c->next), 1};
    if (out->len > 0 && out->text[out->len - 1] == '\r') out->len--;
    c->next = newline != NULL ? newline + 1 : c->end;
    c->line++;
    return true;
}

static tide_status split(csv *c, field line, field *out, size_t *n) {
    *n = 0;
    for (;;) {
        const char *comma = memchr(line.text, ',', line.len);
        const size_t len = comma != NULL ? (size_t)(comma - line.text) : line.len;
        const field f = trim((field){line.text, len, line.at});
        if (*n == MAX_FIELDS) return BAD(c, f, "the line has more than %d fields", MAX_FIELDS);
        if (f.len > 0 && f.text[0] == '"') return BAD(c, f, "quoted fields are not read");
        out[(*n)++] = f;
        if (comma == NULL) return TIDE_OK;
        line = (field){comma + 1, line.len - len - 1, line.at + len + 1};
    }
}

static tide_status read_integer(const csv *c, field f, const char *what, int64_t *out) {
    size_t i = f.len > 0 && f.text[0] == '-' ? 1 : 0;
    const bool negative = i == 1;
    int64_t v = 0;
    if (i == f.len) return BAD(c, f, "%s is missing", what);
    for (; i < f.len; i++) {
        const char ch = f.text[i];
        if (ch < '0' || ch > '9')
            return BAD(c, f, "%s '%.*s' is no integer", what, (int)(f.len < 40 ? f.len : 40), f.text);
        if (!tide_mul_i64(v, 10, &v) || !tide_add_i64(v, ch - '0', &v))
            return BAD(c, f, "%s '%.*s' passes 2^63 - 1", what, (int)(f.len < 40 ? f.len : 40), f.text);
    }
    if (negative && v != 0) return BAD(c, f, "%s is -%" PRId64 ": want 0 or more", what, v);
    *out = v;
    return TIDE_OK;
}

// ---- head line ----

static tide_status find_column(const csv *c, field f, column *out) {
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (strlen(heads[i].head) != f.len || memcmp(heads[i].head, f.text, f.len) != 0) continue;
        *out = heads[i].column;
        return TIDE_OK;
    }
    const tide_status st = BAD(c, f, "there is no column '%.*s'", (int)(f.len < 40 ? f.len : 40), f.text);
    tide_error_hint(c->err, "columns are id, lower, upper, size, alignment, hint; see docs/plan-format.md");
    return st;
}

static tide_status read_head(csv *c) {
    field line, fields[MAX_FIELDS];
    if (!next_line(c, &line)) return BAD(c, whole_line(1), "the file is empty: want a line of column heads");
    static const char bom[] = "\xEF\xBB\xBF";
    if (line.len >= 3 && memcmp(line.text, bom, 3) == 0) line = (field){line.text + 3, line.len - 3, 4};
    TIDE_TRY(split(c, line, fields, &c->n_columns));
    for (size_t i = 0; i < c->n_columns; i++) {
        TIDE_TRY(find_column(c, fields[i], &c->columns[i]));
        if (c->has[c->columns[i]])
            return BAD(c, fields[i], "column '%.*s' is there twice", (int)fields[i].len, fields[i].text);
        c->has[c->columns[i]] = true;
    }
    if (c->has[COLUMN_END] && c->has[COLUMN_LAST])
        return BAD(c, whole_line(1), "both 'upper' and 'end' are there: one says where a lifetime ends");
    if (!c->has[COLUMN_ID]) return BAD(c, whole_line(1), "the column 'id' is missing");
    if (!c->has[COLUMN_BEGIN]) return BAD(c, whole_line(1), "the column 'lower' is missing");
    if (!c->has[COLUMN_END] && !c->has[COLUMN_LAST]) return BAD(c, whole_line(1), "the column 'upper' is missing");
    if (!c->has[COLUMN_SIZE]) return BAD(c, whole_line(1), "the column 'size' is missing");
    return TIDE_OK;
}

// ---- rows ----

static tide_status read_field(csv *c, column which, field f, tide_lifetime *item) {
    int64_t v = 0;
    switch (which) {
    case COLUMN_BEGIN:
        return read_integer(c, f, "the first step", &item->begin_step);
    case COLUMN_END:
        return read_integer(c, f, "the end step", &item->end_step);
    case COLUMN_LAST:
        TIDE_TRY(read_integer(c, f, "the last step", &v));
        if (!tide_add_i64(v, 1, &item->end_step)) return BAD(c, f, "the last step passes 2^63 - 2");
        return TIDE_OK;
    case COLUMN_SIZE:
        TIDE_TRY(read_integer(c, f, "the size", &v));
        item->size_bytes = (uint64_t)v;
        return TIDE_OK;
    case COLUMN_ALIGNMENT:
        if (f.len == 0) return TIDE_OK;
        TIDE_TRY(read_integer(c, f, "the alignment", &v));
        if (!tide_is_pow2((uint64_t)v)) return BAD(c, f, "the alignment is %" PRId64 ": want a power of two", v);
        item->align_bytes = (uint64_t)v;
        return TIDE_OK;
    case COLUMN_GAPS:
        return f.len == 0 ? TIDE_OK : BAD(c, f, "gaps in a lifetime are not served yet");
    case COLUMN_OFFSET:
        return f.len == 0 ? TIDE_OK : BAD(c, f, "fixed offsets are not served yet");
    default:
        return TIDE_OK; // the id is read by the row; a hint changes nothing
    }
}

static tide_status add_row(csv *c, field id, const tide_lifetime *item) {
    uint64_t other;
    if (tide_strmap_get(&c->lines, item->name, &other))
        return BAD(c, id, "buffer '%s' is there twice: line %" PRIu64 " has it too", item->name, other);
    if (item->begin_step >= item->end_step)
        return BAD(c, whole_line(1), "buffer '%s' lives from step %" PRId64 " to %" PRId64 ": want begin < end",
                   item->name, item->begin_step, item->end_step);
    tide_status st = tide_lifetimes_add(&c->out, item, c->err);
    if (st == TIDE_ERR_INVALID)
        return BAD(c, whole_line(1), "buffer '%s' of %" PRIu64 " bytes cannot be rounded up to %" PRIu64, item->name,
                   item->size_bytes, item->align_bytes);
    if (st == TIDE_OK) st = tide_strmap_put(&c->lines, item->name, c->line);
    return st == TIDE_OK ? st : TIDE_FAIL(c->err, st, "no memory to read %s", c->path);
}

static tide_status read_row(csv *c, field line) {
    field fields[MAX_FIELDS], id = {0};
    size_t n;
    TIDE_TRY(split(c, line, fields, &n));
    if (n != c->n_columns) return BAD(c, whole_line(1), "the line has %zu fields, the head line %zu", n, c->n_columns);
    tide_lifetime item = {.align_bytes = c->align_bytes,
                          .kind = TIDE_KIND_WORKSPACE,
                          .device = TIDE_CPU,
                          .role = TIDE_ROLE_INTERMEDIATE,
                          .node = TIDE_NO_INDEX,
                          .port = TIDE_NO_INDEX,
                          .value = TIDE_NO_INDEX};
    for (size_t i = 0; i < n; i++) {
        if (c->columns[i] == COLUMN_ID) id = fields[i];
        TIDE_TRY(read_field(c, c->columns[i], fields[i], &item));
    }
    if (id.len == 0) return BAD(c, id, "the id is missing");
    if (memchr(id.text, '\0', id.len) != NULL) return BAD(c, id, "the id contains a zero byte");
    item.name = tide_host_strndup(id.text, id.len);
    if (item.name == NULL) return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to read %s", c->path);
    const tide_status st = add_row(c, id, &item);
    tide_host_free(item.name);
    return st;
}

static tide_status read_rows(csv *c) {
    field line;
    while (next_line(c, &line)) {
        if (trim(line).len > 0) TIDE_TRY(read_row(c, line));
    }
    if (c->out.n == 0) return BAD(c, whole_line(1), "the file lists no buffer");
    return TIDE_OK;
}

/// The file's name without folders and ending.
static tide_status name_model(csv *c) {
    const char *slash = strrchr(c->path, '/');
    const char *base = slash != NULL ? slash + 1 : c->path;
    const char *dot = strrchr(base, '.');
    const size_t len = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
    c->out.model = tide_host_strndup(base, len);
    return c->out.model != NULL ? TIDE_OK : TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to read %s", c->path);
}

tide_status tide_lifetimes_from_csv(const char *data, size_t len, const char *path, uint64_t align_bytes,
                                    tide_lifetimes *out, tide_error *err) {
    if (!tide_is_pow2(align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment of %" PRIu64 " bytes: want a power of two", align_bytes);
    csv c = {.path = path, .next = data, .end = data + len, .align_bytes = align_bytes, .err = err};
    tide_status st = name_model(&c);
    if (st == TIDE_OK) st = read_head(&c);
    if (st == TIDE_OK) st = read_rows(&c);
    if (st == TIDE_OK) {
        *out = c.out;
    } else {
        tide_lifetimes_deinit(&c.out);
    }
    tide_strmap_deinit(&c.lines);
    return st;
}
