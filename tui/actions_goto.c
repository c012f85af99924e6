// SPDX-License-Identifier: MIT
//
// Going to what a person types: a step, a time, an event, an address, a name. See actions_internal.h.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/checked.h"
#include "core/base/nearest.h"
#include "profiler/moments.h"
#include "tui/actions_internal.h"

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", UINT64_C(60000000000)}};
enum { N_UNITS = sizeof units / sizeof units[0] };

/// The ns of a unit; 0: there is no such unit.
static uint64_t unit_ns(const char *name) {
    for (size_t i = 0; i < N_UNITS; i++) {
        if (strcmp(units[i].name, name) == 0) return units[i].ns;
    }
    return 0;
}

/// "12", "1.5": the part before the point, and the one behind it in billionths. `*rest`: what follows, blanks skipped.
static bool read_decimal(const char *text, uint64_t *whole, uint64_t *billionths, const char **rest) {
    const char *at = text;
    *whole = *billionths = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (!tide_mul_u64(*whole, 10, whole) || !tide_add_u64(*whole, (uint64_t)(*at - '0'), whole)) return false;
    }
    if (at == text) return false;
    if (*at == '.') {
        uint64_t worth = 100000000;
        for (at++; *at >= '0' && *at <= '9'; at++, worth /= 10) *billionths += worth * (uint64_t)(*at - '0');
    }
    while (*at == ' ') at++;
    *rest = at;
    return true;
}

bool tide__parse_time(const tide_subject_facts *f, const char *text, int64_t *out, tide_error *err) {
    uint64_t whole, billionths, ns;
    const char *rest;
    if (!read_decimal(text, &whole, &billionths, &rest)) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is neither a number nor a time", text);
        return false;
    }
    if (*rest == 0 && billionths == 0 && f->axis == TIDE_AXIS_STEPS) {
        *out = whole > INT64_MAX ? INT64_MAX : (int64_t)whole;
        return true;
    }
    if (*rest == 0 && billionths == 0 && whole < f->n_steps) {
        *out = f->step_begin[whole];
        return true;
    }
    const uint64_t unit = unit_ns(rest);
    if (f->axis == TIDE_AXIS_STEPS) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no step: a plan counts in steps, from 0", text);
        return false;
    }
    if (unit == 0) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, *rest == 0 ? "'%s' needs a unit" : "'%s' has no unit of time", text);
        tide_error_hint(err, "as 1.5ms; units are ns, us, ms, s, min");
        return false;
    }
    if (!tide_mul_u64(whole, unit, &ns) || !tide_add_u64(ns, billionths / 1000 * unit / 1000000, &ns)) ns = INT64_MAX;
    *out = tide_tui_move_time(f->origin, ns > INT64_MAX ? INT64_MAX : (int64_t)ns, f->origin, INT64_MAX);
    return true;
}

/// "#123": an event.
static void go_to_event(tide__turn *t, const char *digits) {
    uint64_t number, billionths;
    const char *rest;
    tide_trace *trace = tide_subject_trace(t->st->a);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_event event;
    size_t n = 0;
    if (trace == NULL || !read_decimal(digits, &number, &billionths, &rest) || *rest != 0) {
        tide_tui_say(t->st, true, trace == NULL ? "a plan has no events" : "'#%s' is no event", digits);
    } else if (tide_trace_events(trace, number, &event, 1, &n, &err) != TIDE_OK) {
        tide__turn_fail(t, &err);
    } else if (n == 0 || event.t_ns > INT64_MAX) {
        tide_tui_say(t->st, true, "there is no event %" PRIu64 ": the last is %" PRIu64, number,
                     tide_subject_get_facts(t->st->a)->n_events);
    } else {
        tide__show_moment(t, (tide_moment){(int64_t)event.t_ns, event.id});
    }
}

static void go_to_address(tide__turn *t, const char *text) {
    char *rest;
    const unsigned long long address = strtoull(text, &rest, 16);
    int64_t at;
    if (*rest != 0) {
        tide_tui_say(t->st, true, "'%s' is no address", text);
    } else if (t->scene == NULL || t->scene->space == NULL) {
        tide_tui_say(t->st, true, "addresses are shown by the view 'memory': key 2");
    } else if (!tide__space_of_address(t, address, &at)) {
        tide_tui_say(t->st, true, "nothing that is shown lies at %s", text);
    } else {
        tide__set_space_cursor(t, at);
    }
}

/// A step, or an item, by name; else the nearest name of a step.
static void go_to_name(tide__turn *t, const char *name) {
    const tide_subject_facts *f = tide_subject_get_facts(t->st->a);
    for (size_t i = 0; i < f->n_steps; i++) {
        if (strcmp(f->step_names[i], name) != 0) continue;
        tide__show_moment(t, (tide_moment){f->step_begin[i], 0});
        return;
    }
    const tide_items *items = tide_subject_items(t->st->a);
    const size_t n = items != NULL ? items->n : 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tide_items_site(items, i)->name, name) != 0) continue;
        tide__select_item(t, (uint32_t)i);
        tide__show_moment(t, (tide_moment){tide_items_begin(items, i), 0});
        return;
    }
    const char *near = tide_nearest_of(name, f->step_names, f->n_steps);
    tide_tui_say(t->st, true, "there is no step, time or name '%s'%s%s%s", name, near != NULL ? ": did you mean " : "",
                 near != NULL ? near : "", near != NULL ? "?" : "");
}

void tide__go_to(tide__turn *t, const char *text) {
    const tide_subject_facts *f = tide_subject_get_facts(t->st->a);
    tide_error err = TIDE_ERROR_INIT;
    int64_t at;
    if (*text == 0) {
        tide__open_prompt(t, TIDE_TUI_PROMPT_GOTO, "");
    } else if (strcmp(text, "peak") == 0) {
        tide__highest(t);
    } else if (strcmp(text, "begin") == 0) {
        tide__show_moment(t, (tide_moment){f->begin, 0});
    } else if (strcmp(text, "end") == 0) {
        tide__show_moment(t, (tide_moment){f->end - 1, 0});
    } else if (*text == '#') {
        go_to_event(t, text + 1);
    } else if (strncasecmp(text, "0x", 2) == 0) {
        go_to_address(t, text);
    } else if (*text >= '0' && *text <= '9') {
        if (!tide__parse_time(f, text, &at, &err)) {
            tide__turn_fail(t, &err);
        } else if (at < f->begin || at >= f->end) {
            char last[32];
            tide_tui_say(t->st, true, "%s lies behind the end, which is at %s", text,
                         tide_tui_format_time(f, f->end - 1, last, sizeof last));
        } else {
            tide__show_moment(t, (tide_moment){at, 0});
        }
    } else {
        go_to_name(t, text);
    }
}
