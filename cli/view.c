// SPDX-License-Identifier: MIT
//
// A timeline from any FILE. See view.h.
#include "cli/view.h"

static tide_status of_trace(const char *path, const cli_view *view, tide_timeline **out, tide_error *err) {
    tide_trace *trace = NULL;
    TIDE_TRY(tide_trace_open(path, &trace, err));
    const tide_status st = tide_timeline_from_trace(trace, (int64_t)view->run_id, out, err);
    tide_trace_close(trace);
    return st;
}

tide_status cli_timeline_of_file(const char *path, const cli_view *view, tide_timeline **out, tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    const bool is_trace = in.kind == CLI_INPUT_TRACE;
    cli_input_close(&in);
    if (is_trace) return of_trace(path, view, out, err);
    tide_memory_plan *plan = NULL;
    TIDE_TRY(cli_plan_of_file(path, &view->planning, &plan, err));
    const tide_status st = tide_timeline_from_plan(plan, view->persistent, out, err);
    tide_memory_plan_destroy(plan);
    return st;
}
