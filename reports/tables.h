// SPDX-License-Identifier: MIT
//
// tables: what a report tells in rows, described once. HTML, CSV, JSON, Markdown and text print the same ones, so that
// a number is the same wherever it stands.
#ifndef TIDE_REPORTS_TABLES_H
#define TIDE_REPORTS_TABLES_H

#include "analysis/table.h"
#include "reports/gather.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_report_value {
    bool known; ///< false: an empty cell, null
    const char *text;
    uint64_t u;
    int64_t i;
    double real;
    char buf[96]; ///< room for a text that is made
} tide_report_value;

enum { TIDE_REPORT_MAX_TABLES = 24, TIDE_REPORT_MAX_COLUMNS = 24 };
typedef struct tide_report_table {
    const char *name;  ///< for programs: "operators"
    const char *title; ///< for people
    const char *what;  ///< a sentence; "" none
    const char *empty; ///< a sentence instead of no rows; NULL: the table is left out then
    const tide_report_side *side;
    const tide_column *columns;
    int n_columns;
    size_t n_rows;
    void (*value)(const struct tide_report_table *t, size_t row, int column, tide_report_value *out);
    const tide_report *report;
    const char *of; ///< "a" or "b": whose it is; "" of both
} tide_report_table;

/// All tables of a report, items last. `what` is borrowed. @return how many
size_t tide_report_tables(const tide_report *r, tide_report_table out[TIDE_REPORT_MAX_TABLES]);
/// "begin_step" or "begin_ns" of a moment's "begin"; else the key itself.
const char *tide_report_key(const tide_report_table *t, int column, char *buf, size_t buf_bytes);
/// Whether any row has a value there: for people, columns that know nothing are left out. Items always have.
bool tide_report_knows(const tide_report_table *t, int column);
/// A value as people read it: "1.50 MiB", "+12 KiB", "25.0 %".
const char *tide_report_say(const tide_report_table *t, int column, const tide_report_value *v, char *buf,
                            size_t buf_bytes);

#ifdef __cplusplus
}
#endif
#endif
