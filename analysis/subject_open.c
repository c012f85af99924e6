// SPDX-License-Identifier: MIT
//
// What is known of a subject at once: its axis, its plan, its peak, its steps. See subject.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

static const char *text_or_none(const char *text) { return text != NULL ? text : ""; }

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static tide_status make_title(tide_subject *s, tide_error *err) {
    const tide_subject_facts *f = &s->facts;
    tide_text t = {0};
    tide_text_add(&t, f->model[0] != '\0' ? f->model : base_name(f->path));
    if (f->mode[0] != '\0') tide_text_addf(&t, "%s%s", t.len > 0 ? ": " : "", f->mode);
    if (f->strategy[0] != '\0') tide_text_addf(&t, "%s%s", t.len > 0 ? ", " : "", f->strategy);
    if (t.failed) {
        tide_text_deinit(&t);
        return TIDE_NO_MEMORY(err, "for a subject");
    }
    tide_host_free(s->title);
    s->title = t.data;
    s->facts.title = text_or_none(s->title);
    return TIDE_OK;
}

// ---- what both have ----

static void take_plan(tide_subject_facts *f, const tide_memory_plan *plan) {
    f->plan = plan;
    f->has_plan = plan != NULL;
    f->plan_bytes = plan != NULL ? plan->bytes : 0;
    f->naive_bytes = plan != NULL ? tide_memory_plan_original_bytes(plan) : 0;
    f->lower_bound_bytes = plan != NULL ? plan->lower_bound_bytes : 0;
    f->proved_bytes = plan != NULL ? plan->proved_bytes : 0;
    f->proven = plan != NULL && plan->proven;
}

static tide_status make_steps(tide_subject *s, size_t n, tide_error *err) {
    tide_host_free(s->step_names);
    tide_host_free(s->step_begin);
    s->step_names = tide_host_calloc(n + 1, sizeof *s->step_names);
    s->step_begin = tide_host_calloc(n + 1, sizeof *s->step_begin);
    if (s->step_names == NULL || s->step_begin == NULL) return TIDE_NO_MEMORY(err, "for a subject");
    s->facts.step_names = s->step_names;
    s->facts.step_begin = s->step_begin;
    s->facts.n_steps = n;
    return TIDE_OK;
}

// ---- a plan ----

static tide_status make_devices(tide_subject *s, tide_error *err) {
    size_t cap = 0;
    tide_device last = {0};
    for (size_t i = 0; i < s->plan->lifetimes.n; i++) {
        const tide_device d = s->plan->lifetimes.items[i].device;
        if (s->n_devices > 0 && tide_device_equal(d, last)) continue;
        last = d;
        char text[32];
        tide_device_format(d, text, sizeof text);
        size_t k = 0;
        while (k < s->n_devices && strcmp(s->devices[k], text) != 0) k++;
        if (k < s->n_devices) continue;
        TIDE_TRY(TIDE_GROW(&s->devices, &cap, s->n_devices + 1, err, "for a subject"));
        memcpy(s->devices[s->n_devices++], text, sizeof text);
    }
    return TIDE_OK;
}

const char *tide__subject_device(const tide_subject *s, tide_device device) {
    char text[32];
    tide_device_format(device, text, sizeof text);
    for (size_t i = 0; i < s->n_devices; i++)
        if (strcmp(s->devices[i], text) == 0) return s->devices[i];
    return "";
}

/// Predicted bytes per kind; nothing is measured.
static tide_status make_plan_kinds(tide_subject *s, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&s->kinds, TIDE_N_KINDS, err, "for a subject"));
    s->facts.kinds = s->kinds;
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const uint64_t bytes = tide_memory_plan_predicted(s->plan, (tide_memory_kind)kind);
        if (bytes == 0) continue;
        tide_trace_kind *row = &s->kinds[s->facts.n_kinds++];
        *row = (tide_trace_kind){.kind = (tide_memory_kind)kind,
                                 .requested_bytes = TIDE_UNKNOWN_BYTES,
                                 .peak_bytes = TIDE_UNKNOWN_BYTES,
                                 .peak_reserved_bytes = TIDE_UNKNOWN_BYTES,
                                 .predicted_bytes = bytes,
                                 .n_allocs = TIDE_UNKNOWN_BYTES,
                                 .n_frees = TIDE_UNKNOWN_BYTES,
                                 .live_at_end_bytes = TIDE_UNKNOWN_BYTES};
        for (size_t i = 0; i < s->plan->lifetimes.n; i++) {
            if (s->plan->lifetimes.items[i].kind != row->kind) continue;
            const char *device = tide__subject_device(s, s->plan->lifetimes.items[i].device);
            snprintf(row->device, sizeof row->device, "%s", device);
            break;
        }
    }
    return TIDE_OK;
}

tide_status tide__subject_plan_facts(tide_subject *s, tide_error *err) {
    const tide_lifetimes *lt = &s->plan->lifetimes;
    tide_subject_facts *f = &s->facts;
    f->axis = TIDE_AXIS_STEPS;
    f->begin = f->origin = 0;
    f->end = lt->n_steps > 0 ? lt->n_steps : 1;
    f->path = text_or_none(s->path);
    f->model = text_or_none(lt->model);
    f->mode = "plan";
    f->strategy = text_or_none(s->plan->strategy);
    f->n_items = lt->n;
    take_plan(f, s->plan);
    TIDE_TRY(make_title(s, err));
    TIDE_TRY(make_devices(s, err));
    TIDE_TRY(make_plan_kinds(s, err));
    f->levels = tide_levels_of_plan(s->plan);
    TIDE_TRY(make_steps(s, lt->n_step_names, err));
    for (size_t i = 0; i < lt->n_step_names; i++) {
        s->step_names[i] = lt->step_names[i];
        s->step_begin[i] = (int64_t)i;
    }
    return tide_subject_peak_between(s, (tide_curve_key){TIDE_CURVE_LIVE, -1, NULL}, f->begin, f->end - 1,
                                     &f->peak_bytes, &f->peak, err);
}

// ---- a trace ----

tide_status tide__trace_axis(tide_trace *trace, int64_t run_id, int64_t *begin, int64_t *end, tide_error *err) {
    tide_trace_extent x;
    TIDE_TRY(tide_trace_get_extent(trace, run_id, &x, err));
    *begin = (int64_t)x.begin_ns;
    *end = (int64_t)x.end_ns;
    if ((run_id == 0 || *end == *begin) && *end < INT64_MAX) ++*end;
    if (run_id != 0) return TIDE_OK;
    // Where the first events were dropped, their leaves are there and the curve goes back as far.
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    if ((int64_t)info.begin_ns < *begin) *begin = (int64_t)info.begin_ns;
    return TIDE_OK;
}

/// What else must be said of the trace, one after the other.
static tide_status take_trouble(tide_subject *s, tide_error *err) {
    char from[128];
    tide_text t = {0};
    if (s->info.state == TIDE_TRACE_CUT_SHORT) tide_text_addf(&t, "cut short: %s", s->info.reason);
    const tide_status st = tide_trace_meta(s->trace, "recovered_from", from, sizeof from, err);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
    if (st == TIDE_ERR_NOT_FOUND && err != NULL) tide_error_clear(err);
    if (st == TIDE_OK) tide_text_addf(&t, "%srecovered from '%s'", t.len > 0 ? "; " : "", from);
    if (s->info.first_kept_event > 1)
        tide_text_addf(&t, "%sdetail before event %" PRIu64 " was dropped to keep the file small",
                       t.len > 0 ? "; " : "", s->info.first_kept_event);
    snprintf(s->facts.trouble, sizeof s->facts.trouble, "%s", tide_text_str(&t));
    tide_text_deinit(&t);
    return TIDE_OK;
}

/// Blocks of the run: allocated in it, or alive when it began.
static tide_status count_items(tide_subject *s, const tide_trace_extent *x, tide_error *err) {
    s->facts.n_items = s->info.n_blocks;
    if (s->facts.run_id == 0) return TIDE_OK;
    s->facts.n_items = 0;
    for (size_t i = 0; i < s->facts.n_kinds; i++) s->facts.n_items += s->kinds[i].n_allocs;
    if (x->first_event <= 1) return TIDE_OK;
    tide_live_set before;
    TIDE_TRY(tide_trace_live_set_after(s->trace, x->first_event - 1, &before, err));
    s->facts.n_items += before.n;
    tide_live_set_deinit(&before);
    return TIDE_OK;
}

static tide_status take_steps(tide_subject *s, tide_error *err) {
    TIDE_TRY(make_steps(s, s->run.n_steps, err));
    for (size_t i = 0; i < s->run.n_steps; i++) {
        s->step_names[i] = s->run.steps[i].name;
        s->step_begin[i] = tide__cut(s->facts.begin, s->facts.end, s->run.steps[i].begin_ns);
    }
    return TIDE_OK;
}

static tide_status take_numbers(tide_subject *s, tide_error *err) {
    tide_subject_facts *f = &s->facts;
    tide_trace_extent x;
    TIDE_TRY(tide_trace_get_extent(s->trace, f->run_id, &x, err));
    TIDE_TRY(tide__trace_axis(s->trace, f->run_id, &f->begin, &f->end, err));
    tide_host_free(s->kinds);
    s->kinds = NULL;
    f->kinds = NULL;
    f->n_kinds = 0;
    TIDE_TRY(tide_trace_kinds(s->trace, f->run_id, &s->kinds, &f->n_kinds, err));
    f->kinds = s->kinds;
    TIDE_TRY(count_items(s, &x, err));
    uint64_t event, t_ns;
    TIDE_TRY(tide_trace_run_peak(s->trace, f->run_id, -1, NULL, &f->peak_bytes, &event, &t_ns, err));
    f->peak = (tide_moment){(int64_t)t_ns, event};
    f->is_recording = s->info.state == TIDE_TRACE_RECORDING;
    f->n_events = s->info.n_events;
    f->n_lost = s->info.n_lost;
    f->n_problems = s->info.n_problems;
    return take_trouble(s, err);
}

tide_status tide__subject_trace_facts(tide_subject *s, int64_t run_id, tide_error *err) {
    tide_subject_facts *f = &s->facts;
    tide__run_plan run;
    TIDE_TRY(tide__run_plan_read(s->trace, run_id, &run, err));
    tide__run_plan_deinit(&s->run);
    s->run = run;
    TIDE_TRY(tide_trace_get_info(s->trace, &s->info, err));
    f->is_trace = true;
    f->axis = TIDE_AXIS_NS;
    f->origin = (int64_t)s->info.begin_ns;
    f->path = text_or_none(s->path);
    f->run_id = run_id;
    f->model = s->run.run.model;
    f->mode = s->run.run.mode;
    f->strategy = s->run.run.strategy;
    take_plan(f, s->run.plan);
    TIDE_TRY(make_title(s, err));
    TIDE_TRY(take_numbers(s, err));
    f->levels = tide_levels_of_run(f->plan, f->kinds, f->n_kinds);
    return take_steps(s, err);
}
