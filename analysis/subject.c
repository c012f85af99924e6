// SPDX-License-Identifier: MIT
//
// Making, refreshing and freeing a subject, and its table of items. See subject.h.
#include "analysis/subject.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

// ---- the table of items, which several subjects of one input can share ----

struct tide_items_hold {
    atomic_uint n_holds;
    tide_items items; ///< never changed once there
};

const tide_items *tide_subject_items(const tide_subject *s) { return s->items != NULL ? &s->items->items : NULL; }

const tide_items *tide_items_held(const tide_items_hold *hold) { return &hold->items; }

tide_items_hold *tide_subject_hold_items(const tide_subject *s) {
    if (s->items != NULL) atomic_fetch_add_explicit(&s->items->n_holds, 1, memory_order_relaxed);
    return s->items;
}

void tide_items_let_go(tide_items_hold *hold) {
    if (hold == NULL || atomic_fetch_sub_explicit(&hold->n_holds, 1, memory_order_acq_rel) != 1) return;
    tide_items_deinit(&hold->items);
    tide_host_free(hold);
}

/// The hold becomes the subject's own.
static void put(tide_subject *s, tide_items_hold *hold) {
    tide_items_let_go(s->items);
    s->items = hold;
    s->is_stale = false;
    if (s->facts.run_id != 0) s->facts.n_items = hold->items.n;
}

/// `items` is taken, also on failure.
static tide_status put_items(tide_subject *s, tide_items *items, tide_error *err) {
    tide_items_hold *hold = tide_host_alloc(sizeof *hold);
    if (hold == NULL) {
        tide_items_deinit(items);
        return TIDE_NO_MEMORY(err, "for a table of items");
    }
    atomic_init(&hold->n_holds, 1);
    hold->items = *items;
    *items = (tide_items){0};
    put(s, hold);
    return TIDE_OK;
}

void tide_subject_give_items(tide_subject *s, tide_items_hold *hold) {
    if (hold == s->items) return;
    atomic_fetch_add_explicit(&hold->n_holds, 1, memory_order_relaxed);
    put(s, hold);
}

void tide_subject_take_items(tide_subject *s, tide_subject *from) {
    if (from->items == NULL || s == from) return;
    put(s, from->items);
    from->items = NULL;
}

// ---- what is known at once: axis, plan, peak, steps ----

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
    f->n_bounded = 0;
    for (size_t i = 0; plan != NULL && i < plan->lifetimes.n; i++)
        f->n_bounded += plan->lifetimes.items[i].bound != NULL;
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
    tide_host_free(s->step_number);
    s->step_names = tide_host_calloc(n + 1, sizeof *s->step_names);
    s->step_begin = tide_host_calloc(n + 1, sizeof *s->step_begin);
    s->step_number = tide_host_calloc(n + 1, sizeof *s->step_number);
    if (s->step_names == NULL || s->step_begin == NULL || s->step_number == NULL)
        return TIDE_NO_MEMORY(err, "for a subject");
    s->facts.step_names = s->step_names;
    s->facts.step_begin = s->step_begin;
    s->facts.step_number = s->step_number;
    s->facts.n_steps = n;
    return TIDE_OK;
}

/// Index of step `number`; SIZE_MAX: it never ran.
static size_t index_of_step(const tide_subject_facts *f, int64_t number) {
    size_t lo = 0, hi = f->n_steps;
    TIDE_BISECT(lo, hi, f->step_number[mid] < number);
    return lo < f->n_steps && f->step_number[lo] == number ? lo : SIZE_MAX;
}

/// The execution whose step runs at `t`, of several contexts the one whose step began last, and which of its steps.
/// SIZE_MAX: none.
static size_t running_at(const tide_executions *x, uint64_t t, const tide_execution_step **out) {
    size_t found = SIZE_MAX;
    *out = NULL;
    for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
        const size_t i = tide_executions_at_ns(x, lane, t);
        const size_t step_i = i != SIZE_MAX ? tide_execution_step_at_ns(x, &x->items[i], t) : SIZE_MAX;
        if (step_i == SIZE_MAX) continue;
        const tide_execution_step *step = &tide_execution_steps(x, &x->items[i])[step_i];
        if (*out != NULL && step->t_ns < (*out)->t_ns) continue;
        *out = step;
        found = i;
    }
    return found;
}

size_t tide_subject_execution_at(const tide_subject_facts *f, int64_t t) {
    const tide_execution_step *step;
    return f->executions != NULL && t >= 0 ? running_at(f->executions, (uint64_t)t, &step) : SIZE_MAX;
}

bool tide_subject_step_in(const tide_subject_facts *f, size_t execution, size_t step, tide_moment *out) {
    const tide_executions *x = f->executions;
    if (x == NULL || execution >= x->n || step >= f->n_steps) return false;
    const tide_execution *e = &x->items[execution];
    size_t i, behind;
    tide_execution_range(x, e, f->step_number[step], f->step_number[step] + 1, &i, &behind);
    if (i >= behind) return false;
    *out = (tide_moment){(int64_t)tide_execution_steps(x, e)[i].t_ns,
                         e->first_event + tide_execution_steps(x, e)[i].event};
    return true;
}

static size_t step_of_executions(const tide_subject_facts *f, uint64_t t) {
    const tide_execution_step *step;
    return running_at(f->executions, t, &step) != SIZE_MAX ? index_of_step(f, step->step) : SIZE_MAX;
}

size_t tide_subject_step_at(const tide_subject_facts *f, int64_t t) {
    if (f->executions != NULL) return step_of_executions(f, t > 0 ? (uint64_t)t : 0);
    size_t best = SIZE_MAX;
    if (!f->is_trace) {
        size_t lo = 0, hi = f->n_steps;
        TIDE_BISECT(lo, hi, f->step_begin[mid] <= t);
        return lo > 0 ? lo - 1 : SIZE_MAX;
    }
    // Several threads may run steps in another order than their numbers.
    for (size_t i = 0; i < f->n_steps; i++)
        if (f->step_begin[i] <= t && (best == SIZE_MAX || f->step_begin[i] >= f->step_begin[best])) best = i;
    return best;
}

char *tide_subject_body_at(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes) {
    const size_t step = f->plan != NULL && f->plan->lifetimes.n_regions > 0 ? tide_subject_step_at(f, t) : SIZE_MAX;
    buf[0] = '\0';
    return step != SIZE_MAX ? tide_lifetimes_body_of(&f->plan->lifetimes, f->step_number[step], buf, buf_bytes) : buf;
}

const char *tide_subject_step_name_at(const tide_subject_facts *f, int64_t t) {
    const size_t step = tide_subject_step_at(f, t);
    return step != SIZE_MAX ? f->step_names[step] : "";
}

const char *tide_subject_step_words(const tide_subject_facts *f, int64_t t) {
    const tide_executions *x = f->executions;
    const char *name = tide_subject_step_name_at(f, t);
    if (name[0] != '\0' || !f->is_trace || x == NULL || x->n == 0) return name;
    return t < (int64_t)x->items[0].begin_ns ? "before any step" : "in no step";
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

/// How many of the first `most` bytes are whole characters.
static size_t whole_characters(const char *text, size_t most) {
    uint32_t cp;
    size_t n = 0;
    for (size_t k; (k = tide_utf8_decode(text + n, &cp)) > 0 && n + k <= most;) n += k;
    return n;
}

/// A warning: what is sized while running has no place in a plan.
static void note_dynamic(const tide_lifetimes *lt, tide_subject_facts *f) {
    enum { MOST = 3, NAME = 44 };
    tide_text t = {0};
    f->n_dynamic = lt->n_dynamic;
    if (lt->n_dynamic == 0) return;
    tide_text_addf(&t, "%zu tensor%s sized while running, on top of all this: ", lt->n_dynamic,
                   lt->n_dynamic == 1 ? " is" : "s are");
    for (size_t i = 0; i < lt->n_dynamic && i < MOST; i++)
        tide_text_addf(&t, "%s%.*s%s", i > 0 ? ", " : "", (int)whole_characters(lt->dynamic[i], NAME), lt->dynamic[i],
                       strlen(lt->dynamic[i]) > NAME ? "\u2026" : "");
    if (lt->n_dynamic > MOST) tide_text_addf(&t, " and %zu more", lt->n_dynamic - MOST);
    snprintf(f->trouble, sizeof f->trouble, "%s", tide_text_str(&t));
    tide_text_deinit(&t);
}

static tide_status plan_facts(tide_subject *s, tide_error *err) {
    const tide_lifetimes *lt = &s->plan->lifetimes;
    tide_subject_facts *f = &s->facts;
    f->axis = TIDE_AXIS_STEPS;
    f->begin = f->origin = 0;
    f->end = lt->n_steps > 0 ? lt->n_steps : 1;
    f->path = text_or_none(s->path);
    f->model = text_or_none(lt->model);
    f->mode = "plan";
    f->strategy = text_or_none(s->plan->strategy);
    f->n_contexts = 1;
    f->n_items = lt->n;
    take_plan(f, s->plan);
    TIDE_TRY(make_title(s, err));
    TIDE_TRY(make_devices(s, err));
    TIDE_TRY(make_plan_kinds(s, err));
    f->levels = tide_levels_of_plan(s->plan);
    TIDE_TRY(make_steps(s, lt->n_step_names, err));
    for (size_t i = 0; i < lt->n_step_names; i++) {
        s->step_names[i] = lt->step_names[i];
        s->step_begin[i] = s->step_number[i] = (int64_t)i;
    }
    note_dynamic(lt, f);
    return tide_subject_peak_between(s, (tide_curve_key){TIDE_CURVE_LIVE, -1, NULL}, f->begin, f->end - 1,
                                     &f->peak_bytes, &f->peak, err);
}

// ---- a trace ----

/// Warnings about the trace, one after the other.
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
        s->step_number[i] = s->run.steps[i].index;
    }
    return TIDE_OK;
}

static tide_status take_peak(tide_subject *s, tide_error *err) {
    tide_subject_facts *f = &s->facts;
    tide_trace_used fullest;
    TIDE_TRY(tide_trace_fullest(s->trace, f->run_id, SIZE_MAX, &fullest, err));
    f->peak_bytes = fullest.live_bytes;
    f->peak = (tide_moment){(int64_t)fullest.t_ns, fullest.event};
    return TIDE_OK;
}

static tide_status take_numbers(tide_subject *s, tide_error *err) {
    tide_subject_facts *f = &s->facts;
    tide_trace_extent x;
    TIDE_TRY(tide_trace_get_extent(s->trace, f->run_id, &x, err));
    TIDE_TRY(tide__trace_axis(s->trace, f->run_id, &f->begin, &f->end, err));
    tide_trace_kinds_free(s->kinds);
    s->kinds = NULL;
    f->kinds = NULL;
    f->n_kinds = 0;
    TIDE_TRY(tide_trace_kinds(s->trace, f->run_id, &s->kinds, &f->n_kinds, err));
    f->kinds = s->kinds;
    TIDE_TRY(count_items(s, &x, err));
    TIDE_TRY(take_peak(s, err));
    f->executions = NULL;
    if (f->run_id != 0 && (f->has_plan || s->info.n_events <= TIDE_SUBJECT_EXECUTION_EVENTS))
        TIDE_TRY(tide_trace_executions(s->trace, f->run_id, &f->executions, err));
    f->is_recording = s->info.state == TIDE_TRACE_RECORDING;
    f->n_events = s->info.n_events;
    f->n_lost = s->info.n_lost;
    f->n_problems = s->info.n_problems;
    return take_trouble(s, err);
}

/// Again after a refresh.
static tide_status trace_facts(tide_subject *s, int64_t run_id, tide_error *err) {
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
    f->n_contexts = s->run.run.n_contexts > 0 ? s->run.run.n_contexts : 1;
    take_plan(f, s->run.plan);
    TIDE_TRY(make_title(s, err));
    TIDE_TRY(take_numbers(s, err));
    f->levels = tide_levels_of_run(f->plan, f->n_contexts, f->kinds, f->n_kinds);
    return take_steps(s, err);
}

// ---- life ----

/// What the trace knows of its executions grows with it.
static void forget_planned(tide_subject *s) {
    tide__planned_runs_deinit(&s->planned);
    tide_sizes_deinit(&s->sizes);
    s->has_planned = s->has_sizes = false;
}

static void forget_live(tide_subject *s) {
    if (s->has_live) tide_plan_live_deinit(&s->live);
    s->has_live = false;
    if (s->has_pools) tide__plan_pools_deinit(&s->pools);
    s->has_pools = false;
}

void tide_subject_destroy(tide_subject *s) {
    if (s == NULL) return;
    tide__subject_forget_curves(s);
    forget_live(s);
    forget_planned(s);
    tide_items_let_go(s->items);
    tide__run_plan_deinit(&s->run);
    tide_trace_close(s->trace);
    tide__common_ways_deinit(&s->ways);
    tide_memory_plan_destroy(s->plan);
    tide_trace_kinds_free(s->kinds);
    tide_host_free(s->step_names);
    tide_host_free(s->step_begin);
    tide_host_free(s->step_number);
    tide_host_free(s->devices);
    tide_host_free(s->path);
    tide_host_free(s->title);
    tide_host_free(s);
}

static tide_status create(const char *path, tide_subject **out, tide_error *err) {
    tide_subject *s = tide_host_calloc(1, sizeof *s);
    if (s != NULL && path != NULL) s->path = tide_host_strdup(path);
    if (s == NULL || (path != NULL && s->path == NULL)) {
        tide_host_free(s);
        return TIDE_NO_MEMORY(err, "for a subject");
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_of_plan(tide_memory_plan *plan, const char *path, tide_subject **out, tide_error *err) {
    tide_subject *s = NULL;
    tide_status st = create(path, &s, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    s->plan = plan;
    st = plan_facts(s, err);
    if (st != TIDE_OK) {
        tide_subject_destroy(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_of_shared(const char *path, const tide_trace_shared *shared, int64_t run_id,
                                   tide_subject **out, tide_error *err) {
    tide_subject *s = NULL;
    TIDE_TRY(create(path, &s, err));
    tide_status st = tide_trace_open_shared(path, shared, &s->trace, err);
    if (st == TIDE_OK && run_id < 0) st = tide_trace_shown_run(s->trace, &run_id, err);
    if (st == TIDE_OK) st = trace_facts(s, run_id, err);
    if (st != TIDE_OK) {
        tide_subject_destroy(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_subject_of_trace(const char *path, int64_t run_id, tide_subject **out, tide_error *err) {
    return tide_subject_of_shared(path, NULL, run_id, out, err);
}

tide_status tide_subject_share(const tide_subject *s, tide_trace_shared **out, tide_error *err) {
    *out = NULL;
    return s->trace != NULL ? tide_trace_share(s->trace, out, err) : TIDE_OK;
}

tide_status tide_subject_again(const tide_subject *s, tide_subject **out, tide_error *err) {
    tide_memory_plan *copy;
    if (s->facts.is_trace) {
        tide_trace_shared *shared;
        TIDE_TRY(tide_subject_share(s, &shared, err));
        const tide_status st = tide_subject_of_shared(s->path, shared, s->facts.run_id, out, err);
        tide_trace_shared_drop(shared);
        TIDE_TRY(st);
    } else {
        TIDE_TRY(tide_memory_plan_copy(s->plan, &copy, err));
        TIDE_TRY(tide_subject_of_plan(copy, s->path, out, err));
    }
    tide_subject_set_model(*out, &s->model);
    return TIDE_OK;
}

void tide_subject_set_model(tide_subject *s, const tide_whatif *model) {
    tide__common_ways_deinit(&s->ways);
    s->model = (tide_whatif){.retable = model->retable,
                             .batch = model->batch,
                             .extents = model->extents,
                             .in_place = model->in_place,
                             .ctx = model->ctx,
                             .options = model->options};
}

char *tide_subject_format_since(const tide_subject_facts *f, int64_t t, const char *us, char *buf, size_t buf_bytes) {
    return tide_format_moment_ns(tide_subject_since(f, t), (uint64_t)f->end - (uint64_t)f->begin, us, buf, buf_bytes);
}

const tide_subject_facts *tide_subject_get_facts(const tide_subject *s) { return &s->facts; }

tide_trace *tide_subject_trace(tide_subject *s) { return s->trace; }

tide_status tide_subject_refresh(tide_subject *s, bool *grew, tide_error *err) {
    bool has_grown = false;
    if (s->trace != NULL) TIDE_TRY(tide_trace_refresh(s->trace, &has_grown, err));
    if (grew != NULL) *grew = has_grown;
    if (!has_grown) return TIDE_OK;
    s->is_stale = true;
    tide__subject_forget_curves(s);
    forget_live(s);
    forget_planned(s);
    return trace_facts(s, s->facts.run_id, err);
}

// ---- items ----

tide_status tide_subject_load(tide_subject *s, const tide_progress *progress, tide_error *err) {
    if (s->items != NULL && !s->is_stale) return TIDE_OK;
    tide_items items;
    TIDE_TRY(s->trace == NULL ? tide_items_of_plan(s->plan, &items, err)
                              : tide_items_of_trace(s->trace, s->facts.run_id, progress, &items, err));
    return put_items(s, &items, err);
}

tide_status tide__subject_planned(tide_subject *s, const tide__planned_runs **out, tide_error *err) {
    if (!s->has_planned) TIDE_TRY(tide__planned_runs_read(s->trace, s->facts.run_id, &s->planned, err));
    s->has_planned = true;
    *out = &s->planned;
    return TIDE_OK;
}

tide_status tide__subject_sizes(tide_subject *s, const tide_sizes **out, tide_error *err) {
    const tide_items *items = tide_subject_items(s);
    *out = items != NULL ? &items->sizes : &s->sizes;
    if (items != NULL || s->has_sizes) return TIDE_OK;
    const tide__planned_runs *planned;
    if (s->trace == NULL) {
        TIDE_TRY(tide_sizes_of_plan(s->plan, &s->sizes, err));
    } else {
        TIDE_TRY(tide__subject_planned(s, &planned, err));
        TIDE_TRY(tide_sizes_of_trace(s->trace, s->facts.run_id, planned, s->run.plan, &s->sizes, err));
    }
    s->has_sizes = true;
    return TIDE_OK;
}

tide_status tide__subject_plan_of(tide_subject *s, uint64_t id, const tide_memory_plan **out, tide_error *err) {
    *out = tide__subject_plan(s);
    if (!tide_id_is_planned(id) || s->trace == NULL) return TIDE_OK;
    const tide__planned_runs *planned;
    TIDE_TRY(tide__subject_planned(s, &planned, err));
    const tide_executions *x = tide__planned_run(planned, tide_planned_run(id));
    *out = x != NULL ? x->plan : NULL;
    return TIDE_OK;
}

/// The address of a block whose place was not kept; not known of one whose number was given twice.
static tide_status look_up_place(tide_subject *s, tide_item_facts *out, tide_error *err) {
    tide_trace_block_row row;
    const tide_status st = tide_trace_find_block(s->trace, out->id, &row, err);
    if (st == TIDE_ERR_NOT_FOUND) {
        if (err != NULL) tide_error_clear(err);
        return TIDE_OK;
    }
    TIDE_TRY(st);
    if (tide__cut(s->facts.begin, s->facts.end, row.alloc_ns) == out->begin) out->place = row.address;
    return TIDE_OK;
}

tide_status tide_subject_item(tide_subject *s, uint32_t item, tide_item_facts *out, tide_error *err) {
    const tide_items *it = tide_subject_items(s);
    if (it == NULL || item >= it->n) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no item %u", item);
    *out = (tide_item_facts){.item = item,
                             .id = tide_items_id(it, item),
                             .site = *tide_items_site(it, item),
                             .shape = *tide_items_shape(it, item),
                             .begin = tide_items_begin(it, item),
                             .end = tide_items_end(it, item),
                             .open_ended = tide_items_is_open_ended(it, item),
                             .is_left = tide_items_is_left(it, item),
                             .place = it->place != NULL ? it->place[item] : TIDE_NO_OFFSET,
                             .pool = TIDE_NO_POOL,
                             .alias_of = TIDE_NO_ITEM,
                             .size = tide_sizes_find(&it->sizes, tide_items_id(it, item))};
    const tide_memory_plan *plan;
    const uint64_t tensor = tide_planned_tensor(out->id);
    TIDE_TRY(tide__subject_plan_of(s, out->id, &plan, err));
    if (out->shape.is_planned && plan != NULL && tensor < plan->lifetimes.n) {
        const tide_lifetime *l = &plan->lifetimes.items[tensor];
        out->pool = plan->pools[tensor];
        out->place = plan->offsets[tensor];
        if (l->alias != TIDE_ALIAS_NONE) out->alias_of = tide_items_find(it, out->id - tensor + l->alias_of);
        return TIDE_OK;
    }
    return it->place == NULL && s->trace != NULL ? look_up_place(s, out, err) : TIDE_OK;
}
