// SPDX-License-Identifier: MIT
//
// view: what tui and report look at, from any FILE.
#ifndef TIDE_CLI_VIEW_H
#define TIDE_CLI_VIEW_H

#include "analysis/subject.h"
#include "cli/planning.h"
#include "reports/reports.h"

typedef struct cli_view {
    cli_planning planning;
    uint64_t run_id;  ///< of a trace; 0: the last
    bool whole;       ///< all of a trace, whatever its runs
    bool is_one_look; ///< tide_trace_hold
} cli_view;

/// A FILE as a subject; a model keeps its bytes, so that its table can be made again.
typedef struct cli_subject {
    tide_subject *subject; ///< owned
    cli_input in;
    bool is_model;
    cli_model model; ///< with is_model
} cli_subject;
/// `view` and `out` stay where they are until close. TIDE_ERR_NOT_FOUND for a run that the trace does not have; what
/// opening and planning return.
tide_status cli_subject_open(const char *path, const cli_view *view, cli_subject *out, tide_error *err) TIDE_NODISCARD;
/// The subject alone: what it came from is let go.
tide_status cli_subject_of_file(const char *path, const cli_view *view, tide_subject **out,
                                tide_error *err) TIDE_NODISCARD;
void cli_subject_close(cli_subject *s);
/// One or two subjects as a file that people open, by the ending of `path`: what `report` writes. `b` and `opt` may be
/// NULL.
tide_status cli_subject_report(tide_subject *a, tide_subject *b, const tide_report_options *opt, const char *path,
                               tide_error *err) TIDE_NODISCARD;

#endif
