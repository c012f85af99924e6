// SPDX-License-Identifier: MIT
//
// Moments of a trace as people write them. See trace_view.h.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_view.h"
#include "core/base/host_alloc.h"

tide_status cli_trace_span(tide_trace *t, int64_t run_id, cli_span *out, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(t, &info, err));
    if (run_id < 0) TIDE_TRY(tide_trace_shown_run(t, &run_id, err));
    *out = (cli_span){
        .begin_ns = info.begin_ns, .end_ns = info.end_ns, .origin_ns = info.begin_ns, .last_ns = info.end_ns};
    if (run_id == 0) return TIDE_OK;
    tide_trace_run *runs = NULL;
    size_t n = 0;
    TIDE_TRY(tide_trace_runs(t, &runs, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (runs[i].id != run_id) continue;
        out->run_id = run_id;
        out->begin_ns = runs[i].begin_ns;
        out->end_ns = runs[i].end_ns;
    }
    tide_trace_runs_free(runs);
    if (out->run_id == run_id) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no run %" PRId64 ", the trace has %zu", run_id, n);
}

// ---- times ----

/// "12.5ms" and "12.5 ms" are 12,500,000; false for what is no duration.
static bool parse_duration(const char *text, uint64_t *ns) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end;
    if (*text < '0' || *text > '9') return false;
    const double value = strtod(text, &end);
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        if (!isfinite(value) || value * units[i].ns > 9e18) return false;
        *ns = (uint64_t)llround(value * units[i].ns);
        return true;
    }
    return false;
}

/// "50%" is 0.5; false for what is no share of a whole.
static bool parse_share(const char *text, double *share) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    const double value = strtod(text, &end);
    if (strcmp(end, "%") != 0 || !isfinite(value) || value > 100) return false;
    *share = value / 100;
    return true;
}

static bool parse_event(const char *text, uint64_t *event) {
    char *end;
    if (text[0] != '#' || text[1] < '0' || text[1] > '9') return false;
    errno = 0;
    *event = strtoull(text + 1, &end, 10);
    return *end == '\0' && errno == 0;
}

// ---- marks ----

static const tide_trace_mark *find_mark(const tide_trace_mark *marks, size_t n, const cli_span *span,
                                        const char *name) {
    for (size_t i = 0; i < n; i++) {
        const bool inside = marks[i].t_ns >= span->begin_ns && marks[i].t_ns <= span->end_ns;
        if (inside && strcmp(marks[i].name, name) == 0) return &marks[i];
    }
    return NULL;
}

static tide_status no_moment(const char *text, const tide_trace_mark *marks, size_t n, tide_error *err) {
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no moment: begin, end, peak, 50%%, 12.5ms, #EVENT or a mark", text);
    tide_text list = {0};
    for (size_t i = 0; i < n && i < 8; i++) tide_text_addf(&list, "%s'%s'", i == 0 ? "" : ", ", marks[i].name);
    if (n > 8) tide_text_add(&list, ", …");
    if (n > 0 && !list.failed) tide_error_note(err, "the marks are %s", tide_text_str(&list));
    if (n == 0) tide_error_note(err, "the trace has no marks");
    tide_text_deinit(&list);
    return st;
}

static tide_status of_mark(tide_trace *t, const cli_span *span, const char *name, cli_moment *out, tide_error *err) {
    tide_trace_mark *marks = NULL;
    size_t n = 0;
    TIDE_TRY(tide_trace_marks(t, &marks, &n, err));
    const tide_trace_mark *found = find_mark(marks, n, span, name);
    tide_status st = TIDE_OK;
    if (found != NULL) {
        out->has_time = true;
        out->t_ns = found->t_ns;
        out->event = found->event_id;
        out->by_event = true;
    } else {
        st = no_moment(out->text, marks, n, err);
    }
    tide_trace_marks_free(marks);
    return st;
}

// ---- the whole ----

/// A time since the origin; behind the end there is nothing.
static tide_status at_time(const cli_span *span, const char *text, uint64_t ns, cli_moment *out, tide_error *err) {
    char end[32];
    const uint64_t length = span->last_ns - span->origin_ns;
    if (length > 0 && ns > length)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' lies behind the end of the trace, which is at %s", text,
                         tide_format_moment_ns(length, length, "us", end, sizeof end));
    out->t_ns = span->origin_ns + (ns < length ? ns : length);
    return TIDE_OK;
}

tide_status cli_moment_of(tide_trace *t, const cli_span *span, const char *text, cli_moment *out, tide_error *err) {
    const uint64_t length = span->end_ns - span->begin_ns;
    uint64_t ns, bytes;
    double share;
    *out = (cli_moment){.text = text, .t_ns = span->begin_ns, .has_time = true};
    if (strcmp(text, "begin") == 0) return TIDE_OK;
    if (strcmp(text, "end") == 0) {
        out->t_ns = span->end_ns;
    } else if (strcmp(text, "peak") == 0) {
        TIDE_TRY(tide_trace_run_peak(t, span->run_id, -1, NULL, &bytes, &out->event, &out->t_ns, err));
        out->by_event = out->event > 0;
    } else if (strncmp(text, "mark:", 5) == 0) {
        return of_mark(t, span, text + 5, out, err);
    } else if (parse_event(text, &out->event)) {
        out->by_event = true;
        out->has_time = false;
    } else if (parse_share(text, &share)) {
        out->t_ns = share < 1 ? span->begin_ns + (uint64_t)((double)length * share) : span->end_ns;
    } else if (parse_duration(text, &ns)) {
        return at_time(span, text, ns, out, err);
    } else {
        return of_mark(t, span, text, out, err);
    }
    return TIDE_OK;
}

char *cli_moment_place(const cli_moment *m, const cli_span *span, char *buf, size_t buf_bytes) {
    char text[32], run[32] = "";
    const uint64_t length = span->end_ns - span->begin_ns;
    const double at = (double)m->t_ns - (double)span->begin_ns,
                 percent = length > 0 ? 100.0 * at / (double)length : 0.0;
    if (span->run_id > 0) snprintf(run, sizeof run, " of run %" PRId64, span->run_id);
    snprintf(buf, buf_bytes, "%s from the begin (%.1f %%%s), event %" PRIu64,
             tide_format_moment_ns(cli_since(span, m->t_ns), length, "us", text, sizeof text), percent, run, m->event);
    return buf;
}

tide_status cli_moment_live(tide_trace *t, const cli_moment *m, tide_live_set *out, tide_error *err) {
    return m->by_event ? tide_trace_live_set_after(t, m->event, out, err) : tide_trace_live_set(t, m->t_ns, out, err);
}
