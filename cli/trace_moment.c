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

bool cli_duration(const char *text, uint64_t *ns) {
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
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID,
                                     "'%s' is no moment: begin, end, peak, leaked, temporary, 50%%, 12.5ms, #EVENT, "
                                     "exec:NUMBER, exec:NUMBER:STEP or a mark",
                                     text);
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

// ---- executions ----

/// The step that people call by its number or by the name of its operator.
static tide_status find_step(tide_trace *t, int64_t run_id, const char *text, int64_t *step, tide_error *err) {
    tide_trace_step *steps;
    size_t n, i = 0;
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool is_number = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
    TIDE_TRY(tide_trace_steps(t, run_id, &steps, &n, err));
    while (i < n && (is_number ? steps[i].index != number : strcmp(steps[i].name, text) != 0)) i++;
    if (i < n) *step = steps[i].index;
    tide_trace_steps_free(steps, n);
    if (i < n) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "run %" PRId64 " has no step '%s'", run_id, text);
    tide_error_hint(err, "a number from 0, or the name of an operator: exec:0:12, exec:0:conv1");
    return st;
}

static tide_status at_step(const tide_executions *x, size_t i, int64_t step, cli_moment *out, tide_error *err) {
    const tide_execution *e = &x->items[i];
    const tide_execution_step *steps = tide_execution_steps(x, e);
    for (size_t k = 0; k < e->n_steps; k++) {
        if (steps[k].step != step) continue;
        out->event = e->first_event + steps[k].event;
        out->t_ns = steps[k].t_ns;
        return TIDE_OK;
    }
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "execution %zu ended before step %" PRId64, i, step);
}

/// "12", "12:begin", "12:end", "12:peak", "12:7", "12:conv1".
static tide_status of_execution(tide_trace *t, const cli_span *span, const char *text, cli_moment *out,
                                tide_error *err) {
    char *end;
    const tide_executions *x;
    tide_trace_used fullest;
    errno = 0;
    const unsigned long long i = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno != 0 || (*end != '\0' && *end != ':'))
        return no_moment(out->text, NULL, 0, err);
    const char *what = *end == ':' ? end + 1 : "peak";
    if (span->run_id == 0) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s': executions are those of one run", out->text);
        tide_error_hint(err, "name it with --run");
        return st;
    }
    TIDE_TRY(tide_trace_executions(t, span->run_id, &x, err));
    if (i >= x->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND,
                         "run %" PRId64 " has %zu executions, 0 is the first: there is no %llu", span->run_id, x->n, i);
    const tide_execution *e = &x->items[i];
    out->by_event = true;
    if (strcmp(what, "begin") == 0) {
        out->event = e->first_event;
        out->t_ns = e->begin_ns;
    } else if (strcmp(what, "end") == 0) {
        out->by_event = e->last_event != UINT64_MAX; // else it goes on to the end
        out->event = e->last_event;
        out->t_ns = out->by_event ? e->end_ns : span->end_ns;
    } else if (strcmp(what, "peak") == 0) {
        TIDE_TRY(tide_trace_fullest(t, span->run_id, i, &fullest, err));
        out->event = fullest.event;
        out->t_ns = fullest.t_ns;
    } else {
        int64_t step = 0;
        TIDE_TRY(find_step(t, span->run_id, what, &step, err));
        return at_step(x, i, step, out, err);
    }
    return TIDE_OK;
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
    uint64_t ns;
    double share;
    tide_trace_used fullest;
    *out = (cli_moment){.text = text, .t_ns = span->begin_ns, .has_time = true};
    if (strcmp(text, "begin") == 0) return TIDE_OK;
    if (strcmp(text, "end") == 0 || strcmp(text, "leaked") == 0) {
        out->t_ns = span->end_ns;
        out->is_leaked = text[0] == 'l';
    } else if (strcmp(text, "temporary") == 0) {
        out->t_ns = span->end_ns;
        out->from_ns = span->begin_ns;
        out->is_temporary = true;
    } else if (strcmp(text, "peak") == 0) {
        TIDE_TRY(tide_trace_fullest(t, span->run_id, SIZE_MAX, &fullest, err));
        out->event = fullest.event;
        out->t_ns = fullest.t_ns;
        out->by_event = out->event > 0;
    } else if (strncmp(text, "exec:", 5) == 0) {
        return of_execution(t, span, text + 5, out, err);
    } else if (strncmp(text, "mark:", 5) == 0) {
        return of_mark(t, span, text + 5, out, err);
    } else if (parse_event(text, &out->event)) {
        out->by_event = true;
        out->has_time = false;
    } else if (parse_share(text, &share)) {
        out->t_ns = share < 1 ? span->begin_ns + (uint64_t)((double)length * share) : span->end_ns;
    } else if (cli_duration(text, &ns)) {
        return at_time(span, text, ns, out, err);
    } else {
        return of_mark(t, span, text, out, err);
    }
    return TIDE_OK;
}

char *cli_moment_place(const cli_moment *m, const cli_span *span, char *buf, size_t buf_bytes) {
    char text[32], run[32] = "", event[32] = "";
    const uint64_t length = span->end_ns - span->begin_ns;
    if (m->event > 0 || m->by_event) snprintf(event, sizeof event, ", event %" PRIu64, m->event);
    const double at = (double)m->t_ns - (double)span->begin_ns,
                 percent = length > 0 ? 100.0 * at / (double)length : 0.0;
    if (span->run_id > 0) snprintf(run, sizeof run, " of run %" PRId64, span->run_id);
    snprintf(buf, buf_bytes, "%s from the begin (%.1f %%%s)%s",
             tide_format_moment_ns(cli_since(span, m->t_ns), length, "us", text, sizeof text), percent, run, event);
    return buf;
}

tide_status cli_moment_live(tide_trace *t, const cli_moment *m, tide_live_set *out, tide_error *err) {
    if (m->is_temporary) return tide_trace_temporary(t, m->from_ns, m->t_ns, out, err);
    TIDE_TRY(m->is_leaked  ? tide_trace_never_freed(t, m->t_ns, out, err)
             : m->by_event ? tide_trace_live_set_after(t, m->event, out, err)
                           : tide_trace_live_set(t, m->t_ns, out, err));
    const tide_status st = tide_trace_expand_buffers(t, out, err);
    if (st != TIDE_OK) tide_live_set_deinit(out);
    return st;
}
