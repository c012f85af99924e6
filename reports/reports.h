// SPDX-License-Identifier: MIT
//
// reports: one or two subjects as a file that people open, or other programs read.
#ifndef TIDE_REPORTS_REPORTS_H
#define TIDE_REPORTS_REPORTS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_REPORT_FORMAT_MAP(XX)                                                                                     \
    XX(HTML, ".html", "one page, with everything; loads nothing")                                                      \
    XX(CSV, ".csv", "one table")                                                                                       \
    XX(JSON, ".json", "everything, tidemark.report")                                                                   \
    XX(MARKDOWN, ".md", "summary and the largest, for pasting")                                                        \
    XX(SVG, ".svg", "the pictures alone")                                                                              \
    XX(TEXT, ".txt", "summary and the largest, plain")
typedef enum tide_report_format {
#define XX(name, ending, what) TIDE_REPORT_##name,
    TIDE_REPORT_FORMAT_MAP(XX)
#undef XX
        TIDE_N_REPORT_FORMATS
} tide_report_format;

typedef struct tide_report_options {
    uint64_t capacity_bytes; ///< to fit into; 0: none is given
    const char *table;       ///< of CSV: which one; NULL: items
    bool exact_names;        ///< of CSV: what a spreadsheet would take for a formula gets no ' in front
    const char *script_href; ///< of HTML: the script is a file of that name beside the page, for servers that forbid
                             ///< scripts inside (tide_report_script); NULL: inside
    const char *style_href;  ///< the same for the style (tide_report_style)
    size_t max_rows;         ///< of MARKDOWN and TEXT: rows of a table; 0: 10
} tide_report_options;

/// By the ending of the path (.htm and .markdown too). TIDE_ERR_INVALID listing what there is.
tide_status tide_report_format_of_path(const char *path, tide_report_format *out, tide_error *err) TIDE_NODISCARD;

/**
 * Render into `out`. Byte-stable for equal input: no clock, no path of this machine. Names are escaped for the format.
 * Items of the subjects are loaded.
 *
 * @param b    a second subject that A is compared with; NULL: none
 * @param opt  NULL: as all zero
 * @return what the questions to the subjects return; TIDE_ERR_NOT_FOUND for a table that is not there, with those that
 * are; TIDE_ERR_NOMEM
 */
tide_status tide_report_render(tide_subject *a, tide_subject *b, const tide_report_options *opt,
                               tide_report_format format, tide_text *out, tide_error *err) TIDE_NODISCARD;
/// The script of the page, for a file of its own.
void tide_report_script(tide_text *out);
/// The style of the page, the same way.
void tide_report_style(tide_text *out);
/// A script for any other page with tables: a click on a heading sorts by that column.
void tide_report_sorting(tide_text *out);
/// Names of the tables there are, with a phrase each, as lines for a help text.
void tide_report_table_names(tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
