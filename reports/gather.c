// SPDX-License-Identifier: MIT
//
// Questions to the subjects. See gather.h.
#include "reports/gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/step_totals.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

// ---- words ----

bool tide_report_gap(const tide_subject_facts *f, double *out) {
    if (!f->has_plan || f->lower_bound_bytes == 0) return false;
    *out = ((double)f->plan_bytes - (double)f->lower_bound_bytes) / (double)f->lower_bound_bytes;
    return true;
}

bool tide_report_saving(const tide_subject_facts *f, double *out) {
    if (!f->has_plan || f->naive_bytes == 0) return false;
    *out = 1.0 - (double)f->plan_bytes / (double)f->naive_bytes;
    return true;
}

uint64_t tide_report_time(const tide_subject_facts *f, int64_t t) { return tide_subject_since(f, t); }

char *tide_report_format_time(const tide_subject_facts *f, int64_t t, bool words, char *buf, size_t buf_bytes) {
    if (f->axis == TIDE_AXIS_STEPS) {
        snprintf(buf, buf_bytes, "%s%" PRIu64, words ? "step " : "", tide_report_time(f, t));
        return buf;
    }
    return tide_subject_format_since(f, t, "\xC2\xB5s", buf, buf_bytes);
}

const char *tide_report_source(const tide_subject_facts *f) {
    const char *slash = strrchr(f->path, '/');
    return slash != NULL ? slash + 1 : f->path;
}

// ---- curve ----

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

/// A page is made once: each column exactly, where a view would be content with what lies near. A trace whose oldest
/// events were dropped keeps their extremes, and the page has these.
static tide_status live_columns(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    const tide_curve_key live = {.of = TIDE_CURVE_LIVE, .kind = -1};
    if (f->is_trace) {
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st =
            tide_trace_columns(tide_subject_trace(s->subject), -1, NULL, not_negative(f->begin), not_negative(f->end),
                               s->n_columns, TIDE_COLUMNS_EXACT, s->min, s->max, &why);
        if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND && err != NULL) *err = why;
        if (st != TIDE_ERR_NOT_FOUND) return st;
    }
    return tide_subject_columns(s->subject, live, f->begin, f->end, s->n_columns, s->min, s->max, err);
}

static tide_status gather_curve(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    const uint64_t span = (uint64_t)f->end - (uint64_t)f->begin;
    s->steps_are_columns = f->axis == TIDE_AXIS_STEPS && span <= TIDE_REPORT_MAX_POINTS;
    s->n_columns = s->steps_are_columns         ? (size_t)span
                   : span < TIDE_REPORT_COLUMNS ? (size_t)span
                                                : TIDE_REPORT_COLUMNS;
    s->min = tide_host_calloc(s->n_columns, sizeof *s->min);
    s->max = tide_host_calloc(s->n_columns, sizeof *s->max);
    if (s->min == NULL || s->max == NULL) return TIDE_NO_MEMORY(err, "for the report");
    TIDE_TRY(live_columns(s, err));
    if (!f->is_trace || !f->has_plan) return TIDE_OK;
    uint64_t *low = tide_host_calloc(s->n_columns, sizeof *low);
    s->predicted = tide_host_calloc(s->n_columns, sizeof *s->predicted);
    tide_status st = low != NULL && s->predicted != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for the report");
    const tide_curve_key predicted = {.of = TIDE_CURVE_PREDICTED, .kind = -1};
    tide_error why = TIDE_ERROR_INIT;
    if (st == TIDE_OK) {
        st = tide_subject_columns(s->subject, predicted, f->begin, f->end, s->n_columns, low, s->predicted, &why);
        if (st == TIDE_ERR_NOT_FOUND) { // the plan's steps did not run
            tide_host_free(s->predicted);
            s->predicted = NULL;
            st = TIDE_OK;
        } else if (st != TIDE_OK && err != NULL) {
            *err = why;
        }
    }
    tide_host_free(low);
    return st;
}

// ---- steps ----

static tide_status gather_bodies(tide_report_side *s, tide_error *err) {
    const tide_memory_plan *plan = s->facts->plan;
    char body[256];
    for (size_t i = 0; plan != NULL && plan->lifetimes.n_regions > 0 && i < s->n_steps; i++) {
        tide_lifetimes_body_of(&plan->lifetimes, s->facts->step_number[i], body, sizeof body);
        if (body[0] != '\0') TIDE_TRY(TIDE_COPY_TEXT(&s->steps[i].body, body, err, "for the report"));
    }
    return TIDE_OK;
}

static tide_status gather_steps(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    tide_step_total *totals;
    if (f->n_steps == 0 || f->step_names == NULL) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&s->steps, f->n_steps, err, "for the report"));
    TIDE_TRY(tide_step_totals_make(s->subject, NULL, &totals, err));
    s->n_steps = f->n_steps;
    for (size_t i = 0; i < s->n_steps; i++) {
        s->steps[i] = (tide_report_step){.name = f->step_names[i],
                                         .begin = totals[i].begin,
                                         .makes_bytes = totals[i].makes_bytes,
                                         .frees_bytes = totals[i].frees_bytes,
                                         .live_bytes = totals[i].live_bytes};
    }
    tide_host_free(totals);
    return gather_bodies(s, err);
}

// ---- all ----

/// Whether a plan says what the process takes: of a model, or of a trace whose run went by it.
static bool knows_process(const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    return f->plan != NULL && tide_process_is_known(&f->plan->lifetimes) &&
           (!f->is_trace || strcmp(f->mode, "planned") == 0);
}

/// What it takes by the plan, or by what was recorded where that is more: of a KV cache, of an allocator that rounds
/// up.
static uint64_t process_needs(const tide_report_side *s, uint64_t recorded_bytes) {
    uint64_t bytes;
    if (!tide_add_u64(s->process.program_bytes, s->process.own_bytes, &bytes) ||
        !tide_add_u64(bytes, recorded_bytes, &bytes))
        return s->process.peak_bytes; // which is above 2^63 then
    return bytes > s->process.peak_bytes ? bytes : s->process.peak_bytes;
}

static uint64_t needs(const tide_report_side *s) {
    const tide_subject_facts *f = s->facts;
    const uint64_t recorded = s->reserved_bytes > f->peak_bytes ? s->reserved_bytes : f->peak_bytes;
    if (s->knows_process) return process_needs(s, f->is_trace ? recorded : 0);
    if (f->is_trace || f->plan == NULL) return recorded;
    return tide_need_bytes(&f->plan->lifetimes, f->plan->bytes);
}

/// Whether a trace knows what was taken from the system: not where an allocator may keep what it does not tell.
static bool knows_reserved(const tide_report_side *s) {
    bool tells = s->reserved_bytes > s->facts->peak_bytes;
    for (size_t i = 0; i < s->pools.n; i++) {
        const tide_pool *p = &s->pools.items[i];
        if (p->reserved_bytes == TIDE_UNKNOWN_BYTES) return false;
        tells |= p->tells_segments && !p->is_planned;
    }
    return tells;
}

/// Of a trace: the peak of what allocators took from the system, where that is known; else of what blocks hold.
static tide_status gather_reserved(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    if (!f->is_trace) return TIDE_OK;
    const tide_curve_key reserved = {.of = TIDE_CURVE_RESERVED, .kind = -1};
    TIDE_TRY(
        tide_subject_peak_between(s->subject, reserved, f->begin, f->end, &s->reserved_bytes, &s->reserved_at, err));
    s->knows_reserved = knows_reserved(s);
    if (!s->knows_reserved) return TIDE_OK;
    uint64_t *low;
    TIDE_TRY(TIDE_NEW(&s->reserved, s->n_columns + 1, err, "for the report"));
    TIDE_TRY(TIDE_NEW(&low, s->n_columns + 1, err, "for the report"));
    const tide_status st =
        tide_subject_columns(s->subject, reserved, f->begin, f->end, s->n_columns, low, s->reserved, err);
    tide_host_free(low);
    return st;
}

/// What the executions of a run come to, where the page knows them.
static tide_status gather_executions(tide_report_side *s, tide_error *err) {
    const tide_executions *x = s->facts->executions;
    if (x == NULL || x->n == 0 || x->n > TIDE_REPORT_MAX_EXECUTIONS) return TIDE_OK;
    return tide_trace_execution_sums(tide_subject_trace(s->subject), x->run_id, &s->sums, err);
}

/// The moment that `goto fragmented` of the terminal view goes to, of each pool.
static tide_status gather_worst(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    if (f->end <= f->begin) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&s->worst, s->pools.n + 1, err, "for the report"));
    for (size_t i = 0; i < s->pools.n; i++) {
        const size_t number = s->pools.items[i].number;
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = tide_pools_worst(s->subject, number, f->begin, f->end, NULL, &s->worst[i].worst, &why);
        if (st == TIDE_ERR_NOT_FOUND) continue;
        if (st != TIDE_OK && err != NULL) *err = why;
        TIDE_TRY(st);
        s->worst[i].is_known = true;
        TIDE_TRY(tide_pools_splits(s->subject, s->worst[i].worst.at, number, &s->worst[i].splits, err));
    }
    return TIDE_OK;
}

/// One process has none to be held against.
static tide_status gather_lanes(tide_report_side *s, tide_error *err) {
    tide_trace_info info;
    tide_trace *t = tide_subject_trace(s->subject);
    if (t == NULL) return TIDE_OK;
    TIDE_TRY(tide_trace_get_info(t, &info, err));
    return info.n_processes > 1 ? tide_lanes_make(t, &s->lanes, err) : TIDE_OK;
}

static tide_status gather_side(tide_subject *subject, tide_report_side *s, tide_error *err) {
    s->subject = subject;
    TIDE_TRY(tide_subject_load(subject, NULL, err));
    s->facts = tide_subject_get_facts(subject);
    s->items = tide_subject_items(subject);
    TIDE_TRY(gather_curve(s, err));
    TIDE_TRY(gather_steps(s, err));
    TIDE_TRY(tide_explain(subject, s->facts->peak, TIDE_EXPLAIN_DEFAULT_WITHOUT, NULL, &s->why, err));
    TIDE_TRY(tide_report_choose(s, err));
    TIDE_TRY(tide_report_find_repeats(s, err));
    TIDE_TRY(gather_executions(s, err));
    TIDE_TRY(tide_pools_at(subject, s->why.at, s->facts->begin, s->facts->end, NULL, &s->pools, err));
    TIDE_TRY(gather_worst(s, err));
    TIDE_TRY(gather_reserved(s, err));
    if (s->facts->end > s->facts->begin)
        TIDE_TRY(
            tide_pools_over(subject, s->facts->begin, s->facts->end, TIDE_REPORT_POOL_COLUMNS, NULL, &s->history, err));
    TIDE_TRY(tide_report_find_rooms(s, err));
    TIDE_TRY(tide_report_find_devices(s, err));
    TIDE_TRY(tide_report_find_stacks(s, err));
    TIDE_TRY(gather_lanes(s, err));
    s->knows_process = knows_process(s);
    if (s->knows_process) s->process = tide_process_need_of(s->facts->plan, s->facts->n_contexts);
    s->needs_bytes = needs(s);
    if (s->facts->is_trace) TIDE_TRY(tide_leaks_find(subject, &s->leaks, err));
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide_space_make(subject, &s->space, &why);
    if (st == TIDE_ERR_NOT_FOUND) return TIDE_OK;
    if (st != TIDE_OK && err != NULL) *err = why;
    return st;
}

uint64_t tide_report_left_for_tensors(const tide_report *r, const tide_report_side *s) {
    const uint64_t program = s->knows_process ? s->process.program_bytes + s->process.own_bytes : 0;
    return r->opt.capacity_bytes > program ? r->opt.capacity_bytes - program : 0;
}

tide_status tide_report_gather(tide_subject *a, tide_subject *b, const tide_report_options *opt, tide_report *out,
                               tide_error *err) {
    *out = (tide_report){.has_b = b != NULL};
    if (opt != NULL) out->opt = *opt;
    if (out->opt.max_rows == 0) out->opt.max_rows = 10;
    out->a.settings = out->opt.settings[0];
    out->b.settings = out->opt.settings[1];
    tide_status st = gather_side(a, &out->a, err);
    if (st == TIDE_OK && b != NULL) st = gather_side(b, &out->b, err);
    if (st == TIDE_OK && b != NULL) st = tide_compare(a, NULL, b, NULL, false, NULL, &out->diff, err);
    if (st != TIDE_OK) tide_report_deinit(out);
    return st;
}

static void side_deinit(tide_report_side *s) {
    tide_host_free(s->min);
    tide_host_free(s->max);
    tide_host_free(s->predicted);
    tide_host_free(s->reserved);
    for (size_t i = 0; s->steps != NULL && i < s->n_steps; i++) tide_host_free(s->steps[i].body);
    tide_host_free(s->steps);
    tide_host_free(s->largest);
    tide_host_free(s->live);
    tide_report_repeats_deinit(s);
    tide_host_free(s->sums);
    tide_host_free(s->rooms);
    tide_host_free(s->buffers);
    tide_explanation_deinit(&s->why);
    for (size_t i = 0; s->worst != NULL && i < s->pools.n; i++) tide_pool_splits_deinit(&s->worst[i].splits);
    tide_host_free(s->worst);
    tide_pools_deinit(&s->pools);
    tide_pool_history_deinit(&s->history);
    tide_report_devices_deinit(s);
    tide_report_stacks_deinit(s);
    tide_lanes_deinit(&s->lanes);
    tide_leaks_deinit(&s->leaks);
    tide_space_deinit(&s->space);
}

void tide_report_deinit(tide_report *r) {
    side_deinit(&r->a);
    side_deinit(&r->b);
    tide_diff_deinit(&r->diff);
    *r = (tide_report){0};
}
