// SPDX-License-Identifier: MIT
//
// table: what a column of a table is, said once for the terminal view's panes and for reports: its key for programs,
// its heading for people, its unit; and how a text stands in CSV.
#ifndef TIDE_ANALYSIS_TABLE_H
#define TIDE_ANALYSIS_TABLE_H

#include "analysis/subject.h"
#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_unit {
    TIDE_UNIT_TEXT,
    TIDE_UNIT_COUNT, ///< a number of things, or a number that names one
    TIDE_UNIT_BYTES,
    TIDE_UNIT_CHANGE,  ///< bytes with a sign
    TIDE_UNIT_ADDRESS, ///< for people in hexadecimal digits
    TIDE_UNIT_TIME,    ///< a moment of the axis
    TIDE_UNIT_SHARE,   ///< 0.25 is 25 %
    TIDE_UNIT_FLAG,
} tide_unit;

typedef struct tide_column {
    const char *key;   ///< for programs; of bytes it ends in _bytes, of moments the unit of the axis is added
    const char *title; ///< for people
    tide_unit unit;
} tide_column;

/// "begin_step" or "begin_ns" of a moment's "begin"; else the key itself.
const char *tide_column_key(const tide_column *column, tide_axis axis, char *buf, size_t buf_bytes);

/// A text as a cell of CSV (RFC 4180): quoted where it must be, unsafe characters as U+FFFD.
void tide_csv_add(tide_text *out, const char *text);
/// The same with a ' in front of what a spreadsheet would take for a formula.
void tide_csv_add_guarded(tide_text *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
