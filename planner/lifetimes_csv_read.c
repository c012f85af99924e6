// SPDX-License-Identifier: MIT
//
// Lifetimes from a CSV in MiniMalloc's form and with columns of ours (docs/lifetimes-format.md): one buffer a line,
// columns found by their heads.
//
//     id,lower,upper,size
//     0,995328,1000448,656384
//
// Aliases name other lines, which may come later: they are made when all lines are read.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/lifetimes_csv.h"
#include "planner/planner.h"

// ---- scanner: lines, fields, heads, numbers, gaps ----

/// A slice of the file; `at` is its column, counted from 1 in bytes.
typedef struct csv_field {
    const char *text;
    size_t len;
    size_t at;
} csv_field;

typedef struct csv_scan {
    const char *path;       ///< for messages
    const char *next, *end; ///< of the data
    size_t line;            ///< of the last line taken, counted from 1
    tide_error *err;
} csv_scan;

/// A fault at a field of the current line.
#define CSV_BAD(s, f, ...) bad_at((s), (f), TIDE_FAIL((s)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

/// For messages that concern a line as a whole.
static inline csv_field whole_line(void) { return (csv_field){"", 0, 1}; }
/// How much of a field a message shows.
static inline int shown(csv_field f) { return (int)(f.len < 40 ? f.len : 40); }

/// Note where the fault just reported lies. @return `st`
static tide_status bad_at(const csv_scan *s, csv_field f, tide_status st) {
    tide_error_where(s->err, "%s:%zu:%zu", s->path, s->line, f.at);
    return st;
}

static bool is_blank(char ch) { return ch == ' ' || ch == '\t'; }

/// Without blanks at both ends.
static csv_field trim(csv_field f) {
    while (f.len > 0 && is_blank(f.text[0])) {
        f.text++;
        f.at++;
        f.len--;
    }
    while (f.len > 0 && is_blank(f.text[f.len - 1])) f.len--;
    return f;
}

/// The next line without its end, a byte order mark at the start of the file left out; false at the end of the data.
static bool next_line(csv_scan *s, csv_field *out) {
    if (s->next == s->end) return false;
    const char *newline = memchr(s->next, '\n', (size_t)(s->end - s->next));
    const char *stop = newline != NULL ? newline : s->end;
    *out = (csv_field){s->next, (size_t)(stop - s->next), 1};
    if (out->len > 0 && out->text[out->len - 1] == '\r') out->len--;
    s->next = newline != NULL ? newline + 1 : s->end;
    s->line++;
    static const char bom[] = "\xEF\xBB\xBF";
    if (s->line == 1 && out->len >= 3 && memcmp(out->text, bom, 3) == 0)
        *out = (csv_field){out->text + 3, out->len - 3, 4};
    return true;
}

/// Fields of a line, trimmed, at most TIDE_N_CSV_COLUMNS.
static tide_status split_line(const csv_scan *s, csv_field line, csv_field *out, size_t *n) {
    *n = 0;
    for (;;) {
        const char *comma = memchr(line.text, ',', line.len);
        const size_t len = comma != NULL ? (size_t)(comma - line.text) : line.len;
        const csv_field f = trim((csv_field){line.text, len, line.at});
        if (*n == TIDE_N_CSV_COLUMNS) return CSV_BAD(s, f, "the line has more than %d fields", (int)TIDE_N_CSV_COLUMNS);
        if (f.len > 0 && f.text[0] == '"') return CSV_BAD(s, f, "quoted fields are not read");
        out[(*n)++] = f;
        if (comma == NULL) return TIDE_OK;
        line = (csv_field){comma + 1, line.len - len - 1, line.at + len + 1};
    }
}

// ---- heads ----

/// The column of a head, by any of its names.
static tide_status find_column(const csv_scan *s, csv_field f, tide_csv_column *out) {
    static const struct {
        const char *head;
        tide_csv_column column;
    } others[] = {{"buffer", TIDE_CSV_COLUMN_ID},
                  {"buffer_id", TIDE_CSV_COLUMN_ID},
                  {"start", TIDE_CSV_COLUMN_BEGIN},
                  {"begin", TIDE_CSV_COLUMN_BEGIN}};
    for (size_t i = 0; i < TIDE_N_CSV_COLUMNS + sizeof others / sizeof others[0]; i++) {
        const bool own = i < TIDE_N_CSV_COLUMNS;
        const char *head = own ? tide__csv_heads[i] : others[i - TIDE_N_CSV_COLUMNS].head;
        if (strlen(head) != f.len || memcmp(head, f.text, f.len) != 0) continue;
        *out = own ? (tide_csv_column)i : others[i - TIDE_N_CSV_COLUMNS].column;
        return TIDE_OK;
    }
    const tide_status st = CSV_BAD(s, f, "there is no column '%.*s'", shown(f), f.text);
    tide_error_hint(s->err, "columns are id, lower, upper or end, size, alignment, hint, gaps, offset, rounded, kind, "
                            "device, role, persistent, alias, alias_kind, apart; see docs/lifetimes-format.md");
    return st;
}

// ---- numbers ----

/// 0 … 2^63 - 1; `what` is the number's name in messages.
static tide_status read_count(const csv_scan *s, csv_field f, const char *what, int64_t *out) {
    size_t i = f.len > 0 && f.text[0] == '-' ? 1 : 0;
    const bool negative = i == 1;
    int64_t v = 0;
    if (i == f.len) return CSV_BAD(s, f, "%s is missing", what);
    for (; i < f.len; i++) {
        const char ch = f.text[i];
        if (ch < '0' || ch > '9') return CSV_BAD(s, f, "%s '%.*s' is no integer", what, shown(f), f.text);
        if (!tide_mul_i64(v, 10, &v) || !tide_add_i64(v, ch - '0', &v))
            return CSV_BAD(s, f, "%s '%.*s' passes 2^63 - 1", what, shown(f), f.text);
    }
    if (negative && v != 0) return CSV_BAD(s, f, "%s is -%" PRId64 ": want 0 or more", what, v);
    *out = v;
    return TIDE_OK;
}

// ---- gaps ----

/// Cut `f` at the first `ch`: the part before it into *head, the rest stays. @return false when there is none
static bool cut(csv_field *f, char ch, csv_field *head) {
    const char *at = f->len > 0 ? memchr(f->text, ch, f->len) : NULL;
    if (at == NULL) return false;
    const size_t len = (size_t)(at - f->text);
    *head = (csv_field){f->text, len, f->at};
    *f = (csv_field){at + 1, f->len - len - 1, f->at + len + 1};
    return true;
}

static tide_status read_gap(const csv_scan *s, csv_field f, int64_t end_shift, tide_gap *out) {
    const csv_field whole = f;
    csv_field begin, end, window = {0}, lo;
    *out = (tide_gap){0};
    if (!cut(&f, '-', &begin))
        return CSV_BAD(s, whole, "the gap '%.*s' is none: want a-b or a-b@lo:hi", shown(whole), whole.text);
    const bool has_window = cut(&f, '@', &end);
    if (has_window)
        window = f;
    else
        end = f;
    TIDE_TRY(read_count(s, begin, "the begin of a gap", &out->begin_step));
    TIDE_TRY(read_count(s, end, "the end of a gap", &out->end_step));
    if (!tide_add_i64(out->end_step, end_shift, &out->end_step))
        return CSV_BAD(s, end, "the end of a gap passes 2^63 - 2");
    if (out->begin_step >= out->end_step) return CSV_BAD(s, whole, "the gap '%.*s' is empty", shown(whole), whole.text);
    if (!has_window) return TIDE_OK;
    int64_t lo_bytes, hi_bytes;
    if (!cut(&window, ':', &lo))
        return CSV_BAD(s, window, "the bytes of a gap are '%.*s': want lo:hi", shown(window), window.text);
    TIDE_TRY(read_count(s, lo, "the first byte of a gap", &lo_bytes));
    TIDE_TRY(read_count(s, window, "the last byte of a gap", &hi_bytes));
    if (lo_bytes > hi_bytes)
        return CSV_BAD(s, lo, "the bytes of a gap go from %" PRId64 " to %" PRId64, lo_bytes, hi_bytes);
    out->lo_bytes = (uint64_t)lo_bytes;
    out->hi_bytes = (uint64_t)hi_bytes;
    return TIDE_OK;
}

static int by_begin(const void *a, const void *b) {
    const tide_gap *x = a, *y = b;
    if (x->begin_step != y->begin_step) return x->begin_step < y->begin_step ? -1 : 1;
    return (x->end_step > y->end_step) - (x->end_step < y->end_step);
}

/// Gaps `a-b` and `a-b@lo:hi`, blanks between them, sorted by begin; ends are moved by `end_shift`. *out is owned by
/// the caller, NULL when there are none.
static tide_status read_gaps(const csv_scan *s, csv_field f, int64_t end_shift, tide_gap **out, uint32_t *n) {
    tide_gap *gaps = NULL;
    size_t count = 0, cap = 0;
    tide_status st = TIDE_OK;
    while ((f = trim(f)).len > 0 && st == TIDE_OK) {
        size_t len = 0;
        while (len < f.len && !is_blank(f.text[len])) len++;
        if (count == UINT32_MAX || tide_host_grow(&gaps, &cap, count + 1, sizeof *gaps) != TIDE_OK) {
            st = TIDE_NO_MEMORY(s->err, "to read %s", s->path);
            break;
        }
        st = read_gap(s, (csv_field){f.text, len, f.at}, end_shift, &gaps[count]);
        count++;
        f = (csv_field){f.text + len, f.len - len, f.at + len};
    }
    if (st != TIDE_OK) {
        tide_host_free(gaps);
        return st;
    }
    if (count > 1) qsort(gaps, count, sizeof *gaps, by_begin);
    *out = gaps;
    *n = (uint32_t)count;
    return TIDE_OK;
}

// ---- reader ----

/// An alias that waits for its target.
typedef struct pending {
    uint32_t item;
    size_t line;
    csv_field target; // as the field has it: NAME or NAME+OFFSET
    tide_alias_kind kind;
    csv_field offset; // of column offset; len 0: not given
} pending;

typedef struct csv {
    csv_scan scan;
    uint64_t align_bytes;                        // where a line has none
    bool rounded;                                // sizes are rounded up where a line says nothing
    tide_csv_column columns[TIDE_N_CSV_COLUMNS]; // what stands at each position
    size_t n_columns;
    bool has[TIDE_N_CSV_COLUMNS];
    tide_strmap items; // id -> index
    size_t *lines;     // [out.n] where each item stands, for "is there twice"
    size_t cap_lines;
    pending *aliases; // [n_aliases]
    size_t n_aliases, cap_aliases;
    tide_strmap sets;  // apart: name -> number by first appearance
    uint32_t *numbers; // [sets.n] what the names say as numbers
    size_t cap_numbers;
    bool named_sets; // some name is no number: numbers are given in order of appearance
    tide_lifetimes out;
    tide_error *err;
} csv;

#define BAD(c, f, ...) bad_at(&(c)->scan, (f), TIDE_FAIL((c)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

/// Report an error of another module as an input error at `f`, with the same words.
static tide_status as_bad_input(csv *c, csv_field f, tide_status st) {
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (c->err != NULL) c->err->status = TIDE_ERR_BAD_INPUT;
    return bad_at(&c->scan, f, TIDE_ERR_BAD_INPUT);
}

// ---- head line ----

static tide_status read_head(csv *c) {
    csv_field line, fields[TIDE_N_CSV_COLUMNS];
    const csv_field all = whole_line();
    if (!next_line(&c->scan, &line)) return BAD(c, all, "the file is empty: want a line of column heads");
    TIDE_TRY(split_line(&c->scan, line, fields, &c->n_columns));
    for (size_t i = 0; i < c->n_columns; i++) {
        TIDE_TRY(find_column(&c->scan, fields[i], &c->columns[i]));
        if (c->has[c->columns[i]])
            return BAD(c, fields[i], "column '%.*s' is there twice", shown(fields[i]), fields[i].text);
        c->has[c->columns[i]] = true;
    }
    const bool *has = c->has;
    if (has[TIDE_CSV_COLUMN_END] && has[TIDE_CSV_COLUMN_LAST])
        return BAD(c, all, "both 'upper' and 'end' are there: one says where a lifetime ends");
    if (!has[TIDE_CSV_COLUMN_ID]) return BAD(c, all, "the column 'id' is missing");
    if (!has[TIDE_CSV_COLUMN_BEGIN]) return BAD(c, all, "the column 'lower' is missing");
    if (!has[TIDE_CSV_COLUMN_END] && !has[TIDE_CSV_COLUMN_LAST]) return BAD(c, all, "the column 'upper' is missing");
    if (!has[TIDE_CSV_COLUMN_SIZE]) return BAD(c, all, "the column 'size' is missing");
    if (has[TIDE_CSV_COLUMN_ALIAS_KIND] && !has[TIDE_CSV_COLUMN_ALIAS])
        return BAD(c, all, "the column 'alias_kind' is there without 'alias'");
    return TIDE_OK;
}

// ---- fields of a row ----

/// A line as it is read: the item, and the fields that are resolved when all fields are there.
typedef struct row {
    tide_lifetime item;
    csv_field fields[TIDE_N_CSV_COLUMNS]; // by column; text NULL: not there
    char word[128];                       // a short field as a C string
} row;

static bool given(const row *r, tide_csv_column column) {
    return r->fields[column].text != NULL && r->fields[column].len > 0;
}

/// A short field as a C string. A field longer than any known word is cut, and still matches none.
static const char *word_of(row *r, tide_csv_column column) {
    const csv_field f = r->fields[column];
    snprintf(r->word, sizeof r->word, "%.*s", (int)(f.len < sizeof r->word ? f.len : sizeof r->word - 1), f.text);
    return r->word;
}

static tide_status read_end(csv *c, row *r) {
    if (c->has[TIDE_CSV_COLUMN_END])
        return read_count(&c->scan, r->fields[TIDE_CSV_COLUMN_END], "the end step", &r->item.end_step);
    int64_t last;
    const csv_field f = r->fields[TIDE_CSV_COLUMN_LAST];
    TIDE_TRY(read_count(&c->scan, f, "the last step", &last));
    if (!tide_add_i64(last, 1, &r->item.end_step)) return BAD(c, f, "the last step passes 2^63 - 2");
    return TIDE_OK;
}

static tide_status read_numbers(csv *c, row *r) {
    int64_t v = 0;
    TIDE_TRY(read_count(&c->scan, r->fields[TIDE_CSV_COLUMN_BEGIN], "the first step", &r->item.begin_step));
    TIDE_TRY(read_end(c, r));
    TIDE_TRY(read_count(&c->scan, r->fields[TIDE_CSV_COLUMN_SIZE], "the size", &v));
    r->item.size_bytes = (uint64_t)v;
    if (given(r, TIDE_CSV_COLUMN_ALIGNMENT)) {
        const csv_field f = r->fields[TIDE_CSV_COLUMN_ALIGNMENT];
        TIDE_TRY(read_count(&c->scan, f, "the alignment", &v));
        if (!tide_is_pow2((uint64_t)v)) return BAD(c, f, "the alignment is %" PRId64 ": want a power of two", v);
        r->item.align_bytes = (uint64_t)v;
    }
    const csv_field hint = r->fields[TIDE_CSV_COLUMN_HINT];
    const bool no_hint = hint.len == 2 && memcmp(hint.text, "-1", 2) == 0;
    if (given(r, TIDE_CSV_COLUMN_HINT) && !no_hint) TIDE_TRY(read_count(&c->scan, hint, "the hint", &v));
    // An alias has its place through its target: its offset is checked there.
    if (given(r, TIDE_CSV_COLUMN_OFFSET)) {
        TIDE_TRY(read_count(&c->scan, r->fields[TIDE_CSV_COLUMN_OFFSET], "the offset", &v));
        r->item.fixed = !given(r, TIDE_CSV_COLUMN_ALIAS);
        r->item.fixed_offset_bytes = r->item.fixed ? (uint64_t)v : 0;
    }
    return TIDE_OK;
}

static tide_status read_flag(csv *c, row *r, tide_csv_column column, bool *out) {
    if (!given(r, column)) return TIDE_OK;
    const csv_field f = r->fields[column];
    if (f.len != 1 || (f.text[0] != '0' && f.text[0] != '1'))
        return BAD(c, f, "'%s' is '%.*s': want 0 or 1", tide__csv_heads[column], shown(f), f.text);
    *out = f.text[0] == '1';
    return TIDE_OK;
}

static tide_status read_words(csv *c, row *r) {
    tide_lifetime *item = &r->item;
    bool rounded = c->rounded;
    TIDE_TRY(read_flag(c, r, TIDE_CSV_COLUMN_PERSISTENT, &item->persistent));
    TIDE_TRY(read_flag(c, r, TIDE_CSV_COLUMN_ROUNDED, &rounded));
    item->unrounded = !rounded;
    item->kind = item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE;
    if (given(r, TIDE_CSV_COLUMN_KIND))
        TIDE_TRY(as_bad_input(c, r->fields[TIDE_CSV_COLUMN_KIND],
                              tide_memory_kind_parse(word_of(r, TIDE_CSV_COLUMN_KIND), &item->kind, c->err)));
    if (given(r, TIDE_CSV_COLUMN_DEVICE))
        TIDE_TRY(as_bad_input(c, r->fields[TIDE_CSV_COLUMN_DEVICE],
                              tide_device_parse(word_of(r, TIDE_CSV_COLUMN_DEVICE), &item->device, c->err)));
    if (given(r, TIDE_CSV_COLUMN_ROLE))
        TIDE_TRY(as_bad_input(c, r->fields[TIDE_CSV_COLUMN_ROLE],
                              tide_role_parse(word_of(r, TIDE_CSV_COLUMN_ROLE), &item->role, c->err)));
    return as_bad_input(c, whole_line(), tide_memory_kind_check(item->kind, item->device, c->err));
}

/// The number that a set's name is, 0 when it is none.
static uint32_t number_of(const char *name) {
    uint64_t v = 0;
    for (const char *p = name; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || (p == name && *p == '0')) return 0;
        v = v * 10 + (uint64_t)(*p - '0');
        if (v >= UINT32_MAX) return 0;
    }
    return (uint32_t)v;
}

static tide_status read_set(csv *c, row *r) {
    if (!given(r, TIDE_CSV_COLUMN_APART)) return TIDE_OK;
    const csv_field f = r->fields[TIDE_CSV_COLUMN_APART];
    char *name = tide_host_strndup(f.text, f.len);
    if (name == NULL) return TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
    uint64_t set;
    tide_status st = TIDE_OK;
    if (!tide_strmap_get(&c->sets, name, &set)) {
        set = c->sets.map.n + 1;
        st = tide_host_grow(&c->numbers, &c->cap_numbers, c->sets.map.n + 1, sizeof *c->numbers);
        if (st == TIDE_OK) st = tide_strmap_put(&c->sets, name, set);
        if (st == TIDE_OK) {
            c->numbers[set - 1] = number_of(name);
            c->named_sets = c->named_sets || c->numbers[set - 1] == 0;
        }
    }
    tide_host_free(name);
    r->item.apart_set = (uint32_t)set;
    return st == TIDE_OK ? st : TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
}

static tide_status note_alias(csv *c, row *r, uint32_t item) {
    pending p = {.item = item,
                 .line = c->scan.line,
                 .target = r->fields[TIDE_CSV_COLUMN_ALIAS],
                 .offset = r->fields[TIDE_CSV_COLUMN_OFFSET],
                 .kind = TIDE_ALIAS_GIVEN};
    const csv_field kind = r->fields[TIDE_CSV_COLUMN_ALIAS_KIND];
    if (given(r, TIDE_CSV_COLUMN_ALIAS_KIND)) {
        TIDE_TRY(as_bad_input(c, kind, tide_alias_kind_parse(word_of(r, TIDE_CSV_COLUMN_ALIAS_KIND), &p.kind, c->err)));
        if (p.kind == TIDE_ALIAS_NONE && given(r, TIDE_CSV_COLUMN_ALIAS))
            return BAD(c, kind, "the kind of an alias is 'none'");
    }
    if (!given(r, TIDE_CSV_COLUMN_ALIAS)) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->aliases, &c->cap_aliases, c->n_aliases + 1, c->err, "to read %s", c->scan.path));
    c->aliases[c->n_aliases++] = p;
    return TIDE_OK;
}

// ---- rows ----

static tide_status add_item(csv *c, row *r) {
    const csv_field id = r->fields[TIDE_CSV_COLUMN_ID];
    uint64_t other;
    if (tide_strmap_get(&c->items, r->item.name, &other))
        return BAD(c, id, "buffer '%s' is there twice: line %zu has it too", r->item.name, c->lines[other]);
    const uint32_t index = (uint32_t)c->out.n;
    TIDE_TRY(TIDE_GROW(&c->lines, &c->cap_lines, c->out.n + 1, c->err, "to read %s", c->scan.path));
    TIDE_TRY(as_bad_input(c, whole_line(), tide_lifetimes_add(&c->out, &r->item, c->err)));
    c->lines[index] = c->scan.line;
    if (tide_strmap_put(&c->items, r->item.name, index) != TIDE_OK)
        return TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
    return note_alias(c, r, index);
}

static tide_status read_bound(csv *c, row *r) {
    if (!given(r, TIDE_CSV_COLUMN_BOUND)) return TIDE_OK;
    const csv_field f = r->fields[TIDE_CSV_COLUMN_BOUND];
    r->item.bound = tide_host_strndup(f.text, f.len);
    return r->item.bound != NULL ? TIDE_OK : TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
}

static tide_status read_named(csv *c, row *r) {
    TIDE_TRY(read_numbers(c, r));
    TIDE_TRY(read_words(c, r));
    TIDE_TRY(read_set(c, r));
    const int64_t shift = c->has[TIDE_CSV_COLUMN_LAST] ? 1 : 0;
    if (given(r, TIDE_CSV_COLUMN_GAPS))
        TIDE_TRY(read_gaps(&c->scan, r->fields[TIDE_CSV_COLUMN_GAPS], shift, &r->item.gaps, &r->item.n_gaps));
    tide_status st = read_bound(c, r);
    if (st == TIDE_OK) st = add_item(c, r);
    tide_host_free(r->item.gaps); // the table has its copies
    tide_host_free(r->item.bound);
    return st;
}

static tide_status read_row(csv *c, csv_field line) {
    csv_field fields[TIDE_N_CSV_COLUMNS];
    size_t n;
    TIDE_TRY(split_line(&c->scan, line, fields, &n));
    if (n != c->n_columns) return BAD(c, whole_line(), "the line has %zu fields, the head line %zu", n, c->n_columns);
    if (c->out.n >= TIDE_NO_INDEX)
        return BAD(c, whole_line(), "there are more than %" PRIu32 " buffers", TIDE_NO_INDEX - 1);
    row r = {.item = {.align_bytes = c->align_bytes,
                      .device = TIDE_CPU,
                      .role = TIDE_ROLE_INTERMEDIATE,
                      .node = TIDE_NO_INDEX,
                      .port = TIDE_NO_INDEX,
                      .value = TIDE_NO_INDEX}};
    for (size_t i = 0; i < n; i++) r.fields[c->columns[i]] = fields[i];
    const csv_field id = r.fields[TIDE_CSV_COLUMN_ID];
    if (id.len == 0) return BAD(c, id, "the id is missing");
    if (memchr(line.text, '\0', line.len) != NULL) return BAD(c, whole_line(), "the line contains a zero byte");
    r.item.name = tide_host_strndup(id.text, id.len);
    if (r.item.name == NULL) return TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
    const tide_status st = read_named(c, &r);
    tide_host_free(r.item.name);
    return st;
}

// ---- aliases ----

/// `text` up to `len` as the name of an item.
static bool find_item(csv *c, const char *text, size_t len, uint64_t *item, tide_status *st) {
    char *name = tide_host_strndup(text, len);
    if (name == NULL) *st = TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
    const bool found = name != NULL && tide_strmap_get(&c->items, name, item);
    tide_host_free(name);
    return found;
}

/// NAME+OFFSET; where there is no such NAME, the whole of it as a name.
static tide_status find_target(csv *c, csv_field f, uint64_t *item, int64_t *offset) {
    size_t plus = f.len;
    while (plus > 0 && f.text[plus - 1] >= '0' && f.text[plus - 1] <= '9') plus--;
    tide_status st = TIDE_OK;
    *offset = 0;
    if (plus > 1 && plus < f.len && f.text[plus - 1] == '+' && find_item(c, f.text, plus - 1, item, &st))
        return read_count(&c->scan, (csv_field){f.text + plus, f.len - plus, f.at + plus}, "the offset of an alias",
                          offset);
    if (st != TIDE_OK || find_item(c, f.text, f.len, item, &st) || st != TIDE_OK) return st;
    return BAD(c, f, "there is no buffer '%.*s' to lie in", shown(f), f.text);
}

/// The place of an alias follows from its target: what the line says must be the same.
static tide_status check_offset(csv *c, const pending *p) {
    if (p->offset.text == NULL || p->offset.len == 0) return TIDE_OK;
    int64_t given;
    uint64_t at, is;
    TIDE_TRY(read_count(&c->scan, p->offset, "the offset", &given));
    const tide_lifetime *root = &c->out.items[tide_lifetimes_root(&c->out, p->item, &at)];
    if (!root->fixed)
        return BAD(c, p->offset, "an alias has an offset, but '%s', in which it lies, has none", root->name);
    if (tide_add_u64(root->fixed_offset_bytes, at, &is) && is == (uint64_t)given) return TIDE_OK;
    return BAD(c, p->offset, "the offset is %" PRId64 ", but '%s', in which it lies, makes it %" PRIu64, given,
               root->name, is);
}

static tide_status make_aliases(csv *c) {
    for (size_t k = 0; k < c->n_aliases; k++) {
        const pending *p = &c->aliases[k];
        uint64_t target = 0;
        int64_t offset = 0;
        c->scan.line = p->line;
        TIDE_TRY(find_target(c, p->target, &target, &offset));
        TIDE_TRY(as_bad_input(
            c, p->target, tide_lifetimes_alias(&c->out, p->item, p->kind, (uint32_t)target, (uint64_t)offset, c->err)));
    }
    for (size_t k = 0; k < c->n_aliases; k++) {
        c->scan.line = c->aliases[k].line;
        TIDE_TRY(check_offset(c, &c->aliases[k]));
    }
    return TIDE_OK;
}

// ---- entry points ----

static tide_status read_rows(csv *c) {
    csv_field line;
    while (next_line(&c->scan, &line)) {
        if (trim(line).len > 0) TIDE_TRY(read_row(c, line));
    }
    if (c->out.n == 0) return BAD(c, whole_line(), "the file lists no buffer");
    for (size_t i = 0; i < c->out.n && !c->named_sets; i++) {
        uint32_t *set = &c->out.items[i].apart_set;
        if (*set != 0) *set = c->numbers[*set - 1];
    }
    return make_aliases(c);
}

static tide_status name_model(csv *c) {
    c->out.model = tide_path_stem(c->scan.path);
    return c->out.model != NULL ? TIDE_OK : TIDE_NO_MEMORY(c->err, "to read %s", c->scan.path);
}

tide_status tide_lifetimes_from_csv(const char *data, size_t len, const char *path, uint64_t align_bytes,
                                    tide_lifetimes *out, tide_error *err) {
    if (align_bytes != 0 && !tide_is_pow2(align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment of %" PRIu64 " bytes: want a power of two", align_bytes);
    csv c = {.scan = {.path = path, .next = data, .end = data + len, .err = err},
             .align_bytes = align_bytes > 1 ? align_bytes : 1,
             .rounded = align_bytes > 1,
             .err = err};
    tide_status st = name_model(&c);
    if (st == TIDE_OK) st = read_head(&c);
    if (st == TIDE_OK) st = read_rows(&c);
    if (st == TIDE_OK) {
        *out = c.out;
    } else {
        tide_lifetimes_deinit(&c.out);
    }
    tide_strmap_deinit(&c.items);
    tide_strmap_deinit(&c.sets);
    tide_host_free(c.numbers);
    tide_host_free(c.lines);
    tide_host_free(c.aliases);
    return st;
}
