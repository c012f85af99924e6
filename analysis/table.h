// SPDX-License-Identifier: MIT
//
// table: rows and columns with names, units and exact values, declared once and written in five ways. A column says
// where its value is in a row: a member of the row's struct, or a function that computes it. So text, CSV, JSON, HTML
// and Markdown of one table cannot disagree.
//
//     static const tide_column columns[] = {
//         {"name", "Pool", TIDE_UNIT_TEXT, TIDE_AT(tide_pool, name)},
//         {"reserved_bytes", "Reserved", TIDE_UNIT_BYTES, TIDE_AT(tide_pool, reserved_bytes)},
//     };
#ifndef TIDE_ANALYSIS_TABLE_H
#define TIDE_ANALYSIS_TABLE_H

#include <stddef.h>

#include "analysis/subject.h"
#include "core/base/json_out.h"
#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a value is, and what its member of the row is.
typedef enum tide_unit {
    TIDE_UNIT_TEXT,     ///< const char *; "" is the same as none
    TIDE_UNIT_NAME,     ///< const char *; "" is a name too
    TIDE_UNIT_WORDS,    ///< const char *, words with ", " between them: a list in JSON
    TIDE_UNIT_KIND,     ///< tide_memory_kind, written as its name
    TIDE_UNIT_COUNT,    ///< a count, or the number of an item; UINT64_MAX (and -1 of an int64_t): none
    TIDE_UNIT_BYTES,    ///< TIDE_UNKNOWN_BYTES: not known
    TIDE_UNIT_ADDRESS,  ///< TIDE_NO_OFFSET: none
    TIDE_UNIT_DURATION, ///< in ns; UINT64_MAX: not known
    TIDE_UNIT_FLAG,     ///< bool
    TIDE_UNIT_CHANGE,   ///< int64_t, bytes with a sign
    TIDE_UNIT_TIME,     ///< int64_t, a moment of the axis
    TIDE_UNIT_SHARE,    ///< double: 0.25 is 25 %
} tide_unit;

enum { TIDE_CELL_BYTES = 1024, TIDE_ROW_BYTES = 512 };
/// Where a table makes a row.
typedef union tide_row_room {
    max_align_t alignment;
    char bytes[TIDE_ROW_BYTES];
} tide_row_room;
struct tide_table;
/// One cell. A column's function sets what its unit needs, and `known`, which is false before.
typedef struct tide_cell {
    const struct tide_table *table; ///< whose cell it is
    bool known;                     ///< false: an empty cell, null
    const char *text;               ///< TEXT, NAME, WORDS, KIND; borrowed until the next value
    uint64_t u;                     ///< COUNT, BYTES, ADDRESS, DURATION; of a FLAG 0 or 1
    int64_t i;                      ///< CHANGE, TIME
    double real;                    ///< SHARE
    char buf[TIDE_CELL_BYTES];      ///< room for a text that is made
} tide_cell;

typedef struct tide_column {
    const char *key; ///< for programs; of bytes it ends in _bytes, of moments the unit of the axis is added; NULL: the
                     ///< column is for people alone
    const char *title; ///< for people; NULL: the column is for programs alone
    tide_unit unit;
    uint16_t at, n_bytes;                         ///< where in the row: TIDE_AT
    bool is_array;                                ///< a text inside of the row: TIDE_TEXT_AT
    bool is_right;                                ///< words that are aligned like numbers
    bool may_be_cut;                              ///< words that give way where lines would be too long
    void (*get)(const void *row, tide_cell *out); ///< computes it; NULL: it is in the row
    const char *sort; ///< of HTML: how the page's script calls the column; NULL: it does not sort by it
} tide_column;
#define TIDE_AT(type, member) .at = offsetof(type, member), .n_bytes = sizeof(((type *)0)->member)
/// Of a member that is an array of characters.
#define TIDE_TEXT_AT(type, member) TIDE_AT(type, member), .is_array = true

typedef struct tide_table {
    const char *name; ///< for programs: "operators"
    const tide_column *columns;
    size_t n_columns;
    size_t n_rows;
    const void *rows; ///< [n_rows], each of row_bytes
    size_t row_bytes;
    /// Instead of `rows`: makes row `i` in `room`, a tide_row_room, or finds it elsewhere.
    const void *(*row)(const struct tide_table *t, size_t i, void *room);
    const void *data;                ///< for `row` and for columns that compute
    const tide_subject_facts *facts; ///< of the axis of its moments; NULL: it has none
    bool from_origin;                ///< moments count from the origin of the axis
    bool is_exact;                   ///< people read plain numbers of bytes too
    const char *blank;               ///< what people read where nothing is known; NULL: ""
    uint64_t hidden;                 ///< bit c: people do not see column c
} tide_table;
#define TIDE_COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof((list)[0])

// ---- values ----

/// Row `i`, in `room` or where it is already.
const void *tide_table_row(const tide_table *t, size_t i, tide_row_room *room);
void tide_table_cell(const tide_table *t, const void *row, size_t column, tide_cell *out);
/// The key on the table's axis: "begin_step" or "begin_ns" of a moment's "begin".
const char *tide_table_key(const tide_table *t, size_t column, char *buf, size_t buf_bytes);
/// Appends the value as people read it, names as they are: "1.50 MiB", "+12 KiB", "25.0 %", "yes".
void tide_table_say(const tide_table *t, size_t column, const tide_cell *v, tide_text *out);
/// Whether people see the column.
bool tide_table_shows(const tide_table *t, size_t column);
/// Rows in the order of a column, as numbers of rows into `order` [n_rows]: sizes, counts and flags fall, words, times
/// and addresses rise, `reverse` the other way round; what is not known stands last, and equal rows stay as they were.
/// Fails with TIDE_ERR_NOMEM alone.
tide_status tide_table_order(const tide_table *t, size_t column, bool reverse, uint32_t *order,
                             tide_error *err) TIDE_NODISCARD;
/// Whether the largest value stands first in that order.
bool tide_unit_falls(tide_unit unit);
/// Hides the columns that know nothing in any row.
void tide_table_hide_unknown(tide_table *t);
/// Whether the values are words: aligned at their begin.
bool tide_unit_is_words(tide_unit unit);
/// "+1.50 KiB", "-12 B", "0 B" for b - a. 32 bytes suffice. @return `buf`
char *tide_format_change(uint64_t a, uint64_t b, char *buf, size_t buf_bytes);

// For columns that compute.
static inline void tide_cell_text(tide_cell *v, const char *text) {
    v->known = text != NULL;
    v->text = text;
}
static inline void tide_cell_count(tide_cell *v, uint64_t n) {
    v->known = true;
    v->u = n;
}
/// TIDE_UNKNOWN_BYTES is not known.
static inline void tide_cell_bytes(tide_cell *v, uint64_t bytes) {
    v->known = bytes != TIDE_UNKNOWN_BYTES;
    v->u = bytes;
}
static inline void tide_cell_change(tide_cell *v, uint64_t from, uint64_t to) {
    v->known = from != TIDE_UNKNOWN_BYTES && to != TIDE_UNKNOWN_BYTES;
    v->i = (int64_t)(to - from);
}
/// Unknown where the whole is 0.
static inline void tide_cell_share(tide_cell *v, uint64_t part, uint64_t whole) {
    v->known = whole > 0;
    v->real = whole > 0 ? (double)part / (double)whole : 0.0;
}

// ---- CSV: RFC 4180: header, CRLF, doubled quotes, plain integers, an empty cell for what is not known ----

typedef enum tide_csv_names {
    TIDE_CSV_EXACT,   ///< every name as it is
    TIDE_CSV_GUARDED, ///< with a ' in front of what a spreadsheet would take for a formula
    TIDE_CSV_CLEAN,   ///< the same, without line breaks and what else a terminal would obey
} tide_csv_names;
void tide_table_csv(const tide_table *t, tide_csv_names names, tide_text *out);
/// A text as a cell of CSV: quoted where it must be, unsafe characters as U+FFFD.
void tide_csv_add(tide_text *out, const char *text);

// ---- JSON: an array of objects under the table's name, null for what is not known ----

/// `is_flat`: an object a line.
void tide_table_json(const tide_table *t, bool is_flat, tide_json_out *j);

// ---- HTML: an element <table> ----

typedef struct tide_html_style {
    const char *attributes; ///< of the element; NULL: a class that names the columns of words: "c0 c2 "
    bool marks_words;       ///< cells of words have the class w
    bool heads_numbers;     ///< the first column names the row even where it is a number
    uint64_t exact_from;    ///< sizes of so many bytes have the exact number as their title
    size_t max_head;        ///< characters of a heading, which is foreign text; 0: headings are our own
    size_t max_chars;       ///< characters of a cell
} tide_html_style;
void tide_table_html(const tide_table *t, size_t max_rows, const tide_html_style *style, tide_text *out);

// ---- text and Markdown ----

typedef struct tide_lines_style {
    const char *begin, *between, *end;         ///< of a line: "| ", " | ", " |"
    const char *rule, *rule_right, *rule_end;  ///< of Markdown: below the head, for each column; NULL: none
    bool is_padded;                            ///< cells are as wide as their column
    bool keeps_blanks;                         ///< empty cells at the end of a line are padded too
    size_t max_width;                          ///< columns are no wider, longer cells stand out; 0: as they need to be
    size_t line_width;                         ///< columns that may be cut give way until lines fit; 0: none do
    const char *cut_mark;                      ///< with line_width: in place of what is cut, one character wide
    void (*escape)(tide_text *, const char *); ///< foreign text made safe
} tide_lines_style;
/// Heading and rows. A column that no longer fits is only cut where it may be.
void tide_table_lines(const tide_table *t, size_t max_rows, const tide_lines_style *style, tide_text *out);

/// Foreign text in Markdown: clean, and nothing that formats or ends a cell.
void tide_markdown_add(tide_text *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
