// SPDX-License-Identifier: MIT
//
// Subjects from any FILE. See view.h.
#include "cli/view.h"

#include "core/base/output.h"

/// A recording may drop what is about to be read until it is held.
static tide_status open_and_hold(const char *path, int64_t run_id, tide_subject **out, tide_error *err) {
    enum { TRIES = 5 };
    tide_status st = TIDE_ERR_NOT_FOUND;
    for (int i = 0; i < TRIES && st == TIDE_ERR_NOT_FOUND; i++) {
        tide_subject *s = NULL;
        if (err != NULL) tide_error_clear(err);
        st = tide_subject_of_trace(path, run_id, &s, err);
        if (st != TIDE_OK) continue;
        tide_trace_hold(tide_subject_trace(s));
        st = tide_subject_refresh(s, NULL, err);
        if (st == TIDE_OK)
            *out = s;
        else
            tide_subject_destroy(s);
    }
    return st;
}

static tide_status subject_of_trace(const char *path, const cli_view *view, tide_subject **out, tide_error *err) {
    const int64_t last = -1;
    TIDE_TRY(cli_trace_path(path, &path, err));
    const int64_t run_id = view->whole ? 0 : (view->run_id > 0 ? (int64_t)view->run_id : last);
    cli_log_notes(true); // the trace of a killed program is finished first, with a note
    const tide_status st =
        view->is_one_look ? open_and_hold(path, run_id, out, err) : tide_subject_of_trace(path, run_id, out, err);
    cli_log_notes(false);
    return st;
}

tide_status cli_subject_open(const char *path, const cli_view *view, cli_subject *out, tide_error *err) {
    *out = (cli_subject){0};
    TIDE_TRY(cli_input_open(path, &out->in, err));
    out->is_model = out->in.kind == CLI_INPUT_ONNX || out->in.kind == CLI_INPUT_GRAPH;
    out->in.keep = out->is_model;
    out->model = (cli_model){&out->in, &view->planning};
    tide_memory_plan *plan = NULL;
    tide_status st;
    if (out->in.kind == CLI_INPUT_TRACE) {
        st = subject_of_trace(path, view, &out->subject, err);
    } else {
        st = cli_plan_of_input(&out->in, &view->planning, &plan, err);
        if (st == TIDE_OK) st = tide_subject_of_plan(plan, path, &out->subject, err); // takes the plan
    }
    const tide_whatif model = {.retable = out->is_model ? cli_retable : NULL,
                               .batch = out->is_model ? cli_retable_batch : NULL,
                               .extents = out->is_model ? cli_retable_extents : NULL,
                               .in_place = out->is_model ? cli_retable_in_place : NULL,
                               .ctx = &out->model,
                               .options = cli_strategy_options(&view->planning)};
    if (st == TIDE_OK) tide_subject_set_model(out->subject, &model);
    if (st != TIDE_OK) cli_subject_close(out);
    return st;
}

void cli_subject_close(cli_subject *s) {
    tide_subject_destroy(s->subject);
    cli_input_close(&s->in);
    *s = (cli_subject){0};
}

tide_status cli_subject_of_file(const char *path, const cli_view *view, tide_subject **out, tide_error *err) {
    cli_subject s;
    TIDE_TRY(cli_subject_open(path, view, &s, err));
    *out = s.subject;
    s.subject = NULL; // moved out
    const tide_whatif no_model = {.options = cli_strategy_options(&view->planning)};
    tide_subject_set_model(*out, &no_model);
    cli_subject_close(&s);
    return TIDE_OK;
}

tide_status cli_subject_report(tide_subject *a, tide_subject *b, const tide_report_options *opt, const char *path,
                               tide_error *err) {
    tide_report_format format;
    tide_text text = {0};
    TIDE_TRY(tide_report_format_of_path(path, &format, err));
    tide_status st = tide_report_render(a, b, opt, format, &text, err);
    if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}
