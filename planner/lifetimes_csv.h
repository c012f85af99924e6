// SPDX-License-Identifier: MIT
//
// lifetimes_csv: what the reader and the writer of lifetime lists share: the columns (docs/lifetimes-format.md), and
// the scanner that takes a file apart into lines, fields and numbers. Private to the planner.
#ifndef TIDE_PLANNER_LIFETIMES_CSV_H
#define TIDE_PLANNER_LIFETIMES_CSV_H

#include "core/base/text.h"
#include "core/runtime/memory_plan.h"

/// Columns by the name the writer gives them. MiniMalloc's come first, then ours.
#define TIDE_CSV_COLUMN_MAP(XX)                                                                                        \
    XX(ID, "id")                                                                                                       \
    XX(BEGIN, "lower")                                                                                                 \
    XX(END, "upper") /* half-open */                                                                                   \
    XX(LAST, "end")  /* inclusive; read, never written */                                                              \
    XX(SIZE, "size")                                                                                                   \
    XX(ALIGNMENT, "alignment")                                                                                         \
    XX(HINT, "hint") /* a wish: read, checked and passed over */                                                       \
    XX(GAPS, "gaps")                                                                                                   \
    XX(OFFSET, "offset")                                                                                               \
    XX(ROUNDED, "rounded") /* takes its size rounded up to its alignment */                                            \
    XX(KIND, "kind")                                                                                                   \
    XX(DEVICE, "device")                                                                                               \
    XX(ROLE, "role")                                                                                                   \
    XX(PERSISTENT, "persistent")                                                                                       \
    XX(ALIAS, "alias")                                                                                                 \
    XX(ALIAS_KIND, "alias_kind")                                                                                       \
    XX(APART, "apart")
typedef enum tide_csv_column {
#define XX(name, head) TIDE_CSV_COLUMN_##name,
    TIDE_CSV_COLUMN_MAP(XX)
#undef XX
        TIDE_N_CSV_COLUMNS
} tide_csv_column;
extern const char *const tide__csv_heads[TIDE_N_CSV_COLUMNS];

/// A slice of the file; `at` is its column, counted from 1 in bytes.
typedef struct tide_csv_field {
    const char *text;
    size_t len;
    size_t at;
} tide_csv_field;

typedef struct tide_csv_scan {
    const char *path;       ///< for messages
    const char *next, *end; ///< of the data
    size_t line;            ///< of the last line taken, counted from 1
    tide_error *err;
} tide_csv_scan;

/// Note where the fault just reported lies. @return `st`
tide_status tide__csv_bad_at(const tide_csv_scan *s, tide_csv_field f, tide_status st);
/// A fault at a field of the current line.
#define TIDE_CSV_BAD(s, f, ...) tide__csv_bad_at((s), (f), TIDE_FAIL((s)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))

/// For messages that concern a line as a whole.
static inline tide_csv_field tide__csv_whole_line(void) { return (tide_csv_field){"", 0, 1}; }
/// How much of a field a message shows.
static inline int tide__csv_shown(tide_csv_field f) { return (int)(f.len < 40 ? f.len : 40); }

/// The next line without its end, a byte order mark at the start of the file left out; false at the end of the data.
bool tide__csv_next_line(tide_csv_scan *s, tide_csv_field *out);
/// Without blanks at both ends.
tide_csv_field tide__csv_trim(tide_csv_field f);
/// Fields of a line, trimmed, at most TIDE_N_CSV_COLUMNS.
tide_status tide__csv_split(const tide_csv_scan *s, tide_csv_field line, tide_csv_field *out, size_t *n) TIDE_NODISCARD;
/// The column of a head, by any of its names.
tide_status tide__csv_find_column(const tide_csv_scan *s, tide_csv_field f, tide_csv_column *out) TIDE_NODISCARD;
/// 0 … 2^63 - 1; `what` is the number's name in messages.
tide_status tide__csv_count(const tide_csv_scan *s, tide_csv_field f, const char *what, int64_t *out) TIDE_NODISCARD;
/// Gaps `a-b` and `a-b@lo:hi`, blanks between them, sorted by begin; ends are moved by `end_shift`. *out is owned by
/// the caller, NULL when there are none.
tide_status tide__csv_gaps(const tide_csv_scan *s, tide_csv_field f, int64_t end_shift, tide_gap **out,
                           uint32_t *n) TIDE_NODISCARD;

/// CSV of this form has no quoting: TIDE_ERR_INVALID naming a tensor whose name would not survive the reader.
tide_status tide__csv_check_names(const tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;
/// Append a finished text to `out`, or say that memory ran out; `own` is gone afterwards.
tide_status tide__csv_hand_over(tide_text *own, tide_text *out, tide_error *err) TIDE_NODISCARD;

#endif
