// SPDX-License-Identifier: MIT
//
// tables: what a report has in rows. HTML, CSV, JSON, Markdown and text print the same ones, so that a number is the
// same wherever it stands.
#ifndef TIDE_REPORTS_TABLES_H
#define TIDE_REPORTS_TABLES_H

#include "analysis/table.h"
#include "reports/gather.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_REPORT_MAX_TABLES = 40 };
typedef struct tide_report_table {
    tide_table table;
    const char *title; ///< for people
    const char *what;  ///< a sentence; "" none
    const char *empty; ///< a sentence instead of no rows; NULL: the table is left out then
    const char *of;    ///< "a" or "b": whose it is; "" of both
    const char *side;  ///< " (A)" or " (B)" behind the title, where there are two; else ""
} tide_report_table;

/// All tables of a report, items last; they borrow it. Columns that know nothing are hidden, but for those of the
/// items. @return how many
size_t tide_report_tables(const tide_report *r, tide_report_table out[TIDE_REPORT_MAX_TABLES]);
bool tide_report_is_items(const tide_report_table *t);
/// The items of a side as the page lists them: the largest, sizes as plain numbers.
tide_table tide_report_page_items(const tide_report_side *s);

#ifdef __cplusplus
}
#endif
#endif
