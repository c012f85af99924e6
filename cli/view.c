// SPDX-License-Identifier: MIT
//
// A timeline from any FILE. See view.h.
#include "cli/view.h"

static tide_status of_trace(const char *path, const cli_view *view, tide_timeline **out, tide_error *err) {
    tide_trace *trace = NULL;
    TIDE_TRY(cli_trace_open(path, &trace, err));
    const tide_status st = tide_timeline_from_trace(trace, (int64_t)view->run_id, out, err);
    tide_trace_close(trace);
    return st;
}

tide_status cli_timeline_of_file(const char *path, const cli_view *view, tide_timeline **out, tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    tide_memory_plan *plan = NULL;
    tide_status st;
    if (in.kind == CLI_INPUT_TRACE) {
        st = of_trace(path, view, out, err);
    } else {
        st = cli_plan_of_input(&in, &view->planning, &plan, err);
        if (st == TIDE_OK) st = tide_timeline_from_plan(plan, view->persistent, out, err);
    }
    tide_memory_plan_destroy(plan);
    cli_input_close(&in);
    return st;
}
