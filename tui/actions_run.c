// SPDX-License-Identifier: MIT
//
// Executions of a run, from one to the next and compared. They count from 0, as in `tidemark trace --at exec:12`. See
// actions_internal.h.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/actions_internal.h"

/// So many events are walked through for the fullest moment of an execution while a key waits.
enum { FEW_EVENTS = 100000 };

/// NULL: there are none, and that is said; of a command that names one it is an error.
static const tide_executions *executions_of(tide__action *act, bool is_named) {
    const tide_executions *x = tide_subject_get_facts(act->st->a)->executions;
    if (x != NULL && x->n > 0) return x;
    tide_tui_say(act->st, is_named, "no executions are known here: they are those of one run of a trace");
    return NULL;
}

/// When it ended, or the end of the axis.
static int64_t end_of(const tide_subject_facts *f, const tide_execution *e) {
    return e->end_ns < (uint64_t)f->end ? (int64_t)e->end_ns : f->end;
}

static void say_execution(tide__action *act, const tide_executions *x, size_t i) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    const tide_execution *e = &x->items[i];
    char when[32], span[32];
    tide_tui_say(act->st, false, "execution %zu of %zu, from %s, %s long", i, x->n,
                 tide_tui_format_time(f, (int64_t)e->begin_ns, when, sizeof when),
                 tide_tui_format_span(f, (int64_t)e->begin_ns, end_of(f, e), span, sizeof span));
}

/// The moment of an execution that stands for it: when most lives in it; of one of many events its begin.
static bool moment_of(tide__action *act, const tide_executions *x, size_t i, tide_moment *out) {
    const tide_execution *e = &x->items[i];
    tide_trace_used fullest;
    tide_error err = TIDE_ERROR_INIT;
    *out = (tide_moment){(int64_t)e->begin_ns, e->first_event};
    if (e->last_event - e->first_event > FEW_EVENTS) return true;
    if (tide_trace_fullest(tide_subject_trace(act->st->a), x->run_id, i, &fullest, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        return false;
    }
    *out = (tide_moment){(int64_t)fullest.t_ns, fullest.event};
    return true;
}

/// Where a context has run already: the first execution that is none's first. x->n: there is none.
static size_t first_warm(const tide_executions *x) {
    size_t i = 0;
    while (i < x->n && x->items[i].number < 1) i++;
    return i;
}

/// "12", "exec:12", "cold", "warm". False: it is none, and the error is shown.
static bool parse_execution(tide__action *act, const tide_executions *x, const char *text, size_t *out) {
    char *end;
    const char *digits = strncmp(text, "exec:", 5) == 0 ? text + 5 : text;
    errno = 0;
    const unsigned long long i = strtoull(digits, &end, 10);
    const bool is_cold = strcmp(text, "cold") == 0, is_warm = strcmp(text, "warm") == 0;
    *out = is_cold ? 0 : is_warm ? first_warm(x) : (size_t)i;
    if (!is_cold && !is_warm && (*digits < '0' || *digits > '9' || *end != '\0' || errno != 0)) {
        tide_tui_say(act->st, true, "'%s' is no execution: a number from 0, exec:12, cold or warm", text);
    } else if (is_warm && *out == x->n) {
        tide_tui_say(act->st, true, "no context ran a second time: none of the run's executions is warm");
    } else if (*out >= x->n) {
        tide_tui_say(act->st, true, "the run has %zu execution%s, 0 is the first: there is no '%s'", x->n,
                     x->n == 1 ? "" : "s", text);
    } else {
        return true;
    }
    return false;
}

// ---- one execution alone: a filter, so that lists, searches and exports have it, and the summary says it ----

static bool is_of_run(const char *filter) { return strncmp(filter, "exec=", 5) == 0 && strchr(filter, ' ') == NULL; }

/// Index of the filter; n_filters: there is none.
static size_t find_run_filter(const tide_tui_state *st) {
    size_t i = 0;
    while (i < st->n_filters && !is_of_run(st->filters[i])) i++;
    return i;
}

/// The first filter, for the last one is what an opened group or an empty filter takes off.
static bool set_run_filter(tide__action *act, size_t execution) {
    tide_tui_state *st = act->st;
    const size_t at = find_run_filter(st);
    if (at == st->n_filters && at == TIDE_TUI_MAX_FILTERS) {
        tide_tui_say(st, true, "there are %d filters already: take one off first (an empty one does)",
                     TIDE_TUI_MAX_FILTERS);
        return false;
    }
    const bool is_new = at == st->n_filters;
    if (is_new) memmove(st->filters[1], st->filters[0], st->n_filters++ * sizeof st->filters[0]);
    (void)snprintf(st->filters[is_new ? 0 : at], sizeof st->filters[0], "exec=%zu", execution);
    st->filters_off = false;
    tide__rows_changed(act);
    return true;
}

/// ":run all".
static void show_all_runs(tide__action *act) {
    tide_tui_state *st = act->st;
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    const size_t at = find_run_filter(st);
    if (at < st->n_filters) {
        memmove(st->filters[at], st->filters[at + 1], (st->n_filters - at - 1) * sizeof st->filters[0]);
        st->n_filters--;
        tide__rows_changed(act);
    }
    st->window = (tide_tui_window){f->begin, f->end};
    st->is_fitted = false;
    tide_tui_say(st, false, "all executions");
}

static bool show_execution(tide__action *act, const tide_executions *x, size_t i, bool is_alone) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    tide_moment at;
    if (!moment_of(act, x, i, &at) || (is_alone && !set_run_filter(act, i))) return false;
    const int64_t begin = (int64_t)x->items[i].begin_ns, end = end_of(f, &x->items[i]);
    if (begin >= f->begin && begin < end) {
        act->st->window = (tide_tui_window){begin, end};
        act->st->is_fitted = false;
    }
    tide__show_moment(act, at);
    say_execution(act, x, i);
    return true;
}

void tide__show_run(tide__action *act, const char *text) {
    const tide_executions *x = executions_of(act, true);
    size_t i;
    if (x == NULL) return;
    if (strcmp(text, "all") == 0)
        show_all_runs(act);
    else if (parse_execution(act, x, text, &i))
        (void)show_execution(act, x, i, true);
}

/// Where one is shown alone, the next one is.
static bool next_alone(tide__action *act, const tide_executions *x, int dir) {
    const tide_tui_state *st = act->st;
    const size_t at = find_run_filter(st);
    if (at == st->n_filters || st->filters_off) return false;
    const size_t i = strtoul(st->filters[at] + strlen("exec="), NULL, 10);
    if (dir > 0 ? i + 1 >= x->n : i == 0)
        tide_tui_say(act->st, false, "no execution begins %s here", dir > 0 ? "after" : "before");
    else
        (void)show_execution(act, x, dir > 0 ? i + 1 : i - 1, true);
    return true;
}

/// Items are by first event, and begins rise with them.
void tide__next_run(tide__action *act, int dir) {
    const tide_executions *x = executions_of(act, false);
    const uint64_t now = act->st->cursor > 0 ? (uint64_t)act->st->cursor : 0;
    if (x == NULL || next_alone(act, x, dir)) return;
    size_t lo = 0, hi = x->n;
    while (lo < hi) { // the first that begins behind the cursor; going back, at it
        const size_t mid = lo + (hi - lo) / 2;
        if (dir > 0 ? x->items[mid].begin_ns <= now : x->items[mid].begin_ns < now) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (dir > 0 ? lo == x->n : lo == 0) {
        tide_tui_say(act->st, false, "no execution begins %s here", dir > 0 ? "after" : "before");
        return;
    }
    const size_t i = dir > 0 ? lo : lo - 1;
    tide__show_moment(act, (tide_moment){(int64_t)x->items[i].begin_ns, x->items[i].first_event});
    say_execution(act, x, i);
}

// ---- a moment of one ----

/// "7", "conv1": index in step_names; SIZE_MAX: there is none.
static size_t find_step(const tide_subject_facts *f, const char *text) {
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool is_number = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
    for (size_t i = 0; i < f->n_steps; i++) {
        if (is_number ? f->step_number[i] == number : strcmp(f->step_names[i], text) == 0) return i;
    }
    return SIZE_MAX;
}

/// `what` of execution `i`: "begin", "end", "peak", or a step.
static bool find_moment(tide__action *act, const tide_executions *x, size_t i, const char *what, tide_moment *out) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    const tide_execution *e = &x->items[i];
    if (strcmp(what, "peak") == 0) return moment_of(act, x, i, out);
    if (strcmp(what, "begin") == 0) {
        *out = (tide_moment){(int64_t)e->begin_ns, e->first_event};
    } else if (strcmp(what, "end") == 0) {
        const bool is_left = e->last_event != UINT64_MAX; // else it goes on to the end
        *out = is_left ? (tide_moment){(int64_t)e->end_ns, e->last_event} : (tide_moment){f->end - 1, 0};
    } else {
        const size_t step = find_step(f, what);
        if (step == SIZE_MAX) {
            tide_tui_say(act->st, true, "the run has no step '%s': a number from 0, or the name of an operator", what);
            return false;
        }
        if (!tide_subject_step_in(f, i, step, out)) {
            tide_tui_say(act->st, true, "execution %zu ended before step '%s'", i, what);
            return false;
        }
    }
    return true;
}

void tide__go_to_execution(tide__action *act, const char *text) {
    const char *what = strchr(text + strlen("exec:"), ':');
    char name[32];
    const tide_executions *x = executions_of(act, true);
    size_t i;
    tide_moment at;
    if (what == NULL) { // the window of it, and no filter
        if (x != NULL && parse_execution(act, x, text, &i)) (void)show_execution(act, x, i, false);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(what - text), text);
    if (x != NULL && parse_execution(act, x, name, &i) && find_moment(act, x, i, what + 1, &at))
        tide__show_moment(act, at);
}

bool tide__names_runs(const char *text) {
    return strncmp(text, "exec:", 5) == 0 || strncmp(text, "cold", 4) == 0 || strncmp(text, "warm", 4) == 0;
}

void tide__compare_runs(tide__action *act, const char *text) {
    tide_tui_state *st = act->st;
    const tide_executions *x = executions_of(act, true);
    char first[64] = "", second[64] = "", more[2];
    size_t a, b;
    tide_moment a_at, b_at;
    if (x == NULL) return;
    if (sscanf(text, "%63s %63s %1s", first, second, more) != 2) {
        tide_tui_say(st, true, "two executions are compared: 'compare exec:1 exec:12', 'compare cold warm'");
        return;
    }
    if (!parse_execution(act, x, first, &a) || !parse_execution(act, x, second, &b) || !moment_of(act, x, a, &a_at) ||
        !moment_of(act, x, b, &b_at))
        return;
    tide__compare_moments(act, a_at, b_at);
    if (st->preset != TIDE_TUI_PRESET_ALLOCATORS) tide__set_preset(act, TIDE_TUI_PRESET_COMPARISON);
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    const tide_execution *x_a = &x->items[a], *x_b = &x->items[b];
    char a_long[32], b_long[32];
    tide_tui_say(st, false, "A is execution %zu (%s), B is %zu (%s), each when most lives in it", a,
                 tide_tui_format_span(f, (int64_t)x_a->begin_ns, end_of(f, x_a), a_long, sizeof a_long), b,
                 tide_tui_format_span(f, (int64_t)x_b->begin_ns, end_of(f, x_b), b_long, sizeof b_long));
}

// ---- the moment at which a pool is fragmented most ----

void tide__go_to_worst(tide__action *act) {
    const tide_tui_scene *s = act->scene;
    if (s == NULL || s->pools == NULL || s->pools->n == 0)
        tide_tui_say(act->st, true, "which pool is fragmented is shown by the view 'allocators': key 4");
    else
        tide__action_effect(act, TIDE_TUI_EFFECT_WORST, "");
}

// ---- a request ----

/// Free bytes of the pool that the view of allocators has selected; 0: none are known.
static uint64_t cached_of_selected_pool(const tide__action *act) {
    const tide_pools *pools = act->scene != NULL ? act->scene->pools : NULL;
    if (pools == NULL || pools->n == 0) return 0;
    const size_t row = act->st->pane_row[TIDE_TUI_PANE_POOLS];
    const uint64_t bytes = pools->items[row < pools->n ? row : 0].cached_bytes;
    return bytes != TIDE_UNKNOWN_BYTES ? bytes : 0;
}

void tide__request(tide__action *act, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes = 0;
    if (strcasecmp(text, "all") == 0) {
        bytes = cached_of_selected_pool(act);
        if (bytes == 0) {
            tide_tui_say(act->st, false, "the selected pool has no free bytes at the cursor, or none that are known");
            return;
        }
    } else if (tide_parse_bytes(text, &bytes, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        return;
    }
    act->st->request_bytes = bytes;
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(act->st->preset, panes);
    for (int i = 0; i < n; i++)
        if (panes[i] == TIDE_TUI_PANE_POOLS) return;
    tide__set_preset(act, TIDE_TUI_PRESET_ALLOCATORS);
}
