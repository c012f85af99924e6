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

/// What an allocator would have taken with other settings, of a trace that another program recorded: found by a replay,
/// which reports cannot make (cli/replay_settings).
typedef struct tide_report_setting {
    char name[64];                           ///< as the user writes it: "expandable_segments:True"
    char device[16];                         ///< each has an allocator of its own
    uint64_t reserved_bytes, recorded_bytes; ///< the most, TIDE_UNKNOWN_BYTES where requests failed; what was recorded
    uint64_t n_failed;                       ///< requests that found no memory
    enum { TIDE_SETTING_RECORDED, TIDE_SETTING_OTHER, TIDE_SETTING_PLACEMENT } is; ///< the last: no allocator, a plan
    char note[160];
} tide_report_setting;
enum { TIDE_REPORT_MAX_SETTINGS = 8, TIDE_REPORT_MAX_SETTING_DEVICES = 16 };
/// Owned by who found them.
typedef struct tide_report_settings {
    tide_report_setting rows[TIDE_REPORT_MAX_SETTINGS * TIDE_REPORT_MAX_SETTING_DEVICES]; ///< [n], by device
    size_t n;          ///< 0: the trace has no allocator whose settings are known
    char why_not[160]; ///< with n 0: why they were not tried although it has; ""
} tide_report_settings;

typedef struct tide_report_options {
    const tide_report_settings *settings[2]; ///< of A and B; NULL: none
    uint64_t capacity_bytes;                 ///< to fit into; 0: none is given
    const char *table;                       ///< of CSV: which one; NULL: items
    bool exact_names;                        ///< of CSV: what a spreadsheet would take for a formula gets no ' in front
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
