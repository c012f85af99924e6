// SPDX-License-Identifier: MIT
//
// What steps make and free. See step_totals.h.
//
//     step        0     1     2     3         a root and what lies in it take  100  300  300  0
//     makes     100   200     0     0         bytes of the buffer at these steps
//     frees       0     0   300     0
#include "analysis/step_totals.h"

#include <stdlib.h>

#include "analysis/bisect.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

typedef struct totals {
    tide_subject *s;
    const tide_subject_facts *facts;
    tide_step_total *list;
    size_t n;
} totals;

// ---- when steps run ----

/// The last step that has begun at `t`; SIZE_MAX: none of them.
static size_t step_at(const totals *o, int64_t t) {
    size_t lo = 0, hi = o->n;
    TIDE_BISECT(lo, hi, o->list[mid].begin <= t);
    return lo > 0 ? lo - 1 : SIZE_MAX;
}

/// Step that runs at `t`; SIZE_MAX: none of them.
static size_t running_at(const totals *o, int64_t t) {
    const size_t at = step_at(o, t);
    return at != SIZE_MAX && t < o->list[at].end ? at : SIZE_MAX;
}

/// A step of a plan ends where the next one begins, and so does one by which a plan's buffer is used; others when they
/// were left.
static tide_status set_ends(totals *o, tide_error *err) {
    const tide_subject_facts *f = o->facts;
    const bool has_buffer = f->executions != NULL && f->executions->plan != NULL;
    for (size_t i = 0; i < o->n; i++) o->list[i].end = i + 1 < o->n ? o->list[i + 1].begin : f->end;
    if (f->is_trace && o->n > 0) {
        tide_trace_step *steps = NULL;
        size_t n = 0;
        TIDE_TRY(tide_trace_steps(tide_subject_trace(o->s), f->run_id, &steps, &n, err));
        for (size_t i = 0; i < n && i < o->n; i++) {
            const size_t at = step_at(o, (int64_t)steps[i].begin_ns);
            const bool goes_on = has_buffer && at + 1 < o->n;
            if (at != SIZE_MAX && !goes_on && (int64_t)steps[i].end_ns < o->list[at].end)
                o->list[at].end = (int64_t)steps[i].end_ns;
        }
        tide_trace_steps_free(steps, n);
    }
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].end <= o->list[i].begin) o->list[i].end = o->list[i].begin + 1;
    return TIDE_OK;
}

// ---- blocks ----

static void add_block(totals *o, const tide_items *items, uint32_t i) {
    const tide_item_shape *shape = tide_items_shape(items, i);
    if (shape->is_planned || shape->persistent) return;
    const int64_t end = tide_items_end(items, i);
    const size_t made = running_at(o, tide_items_begin(items, i));
    const bool lives_on = tide_items_is_open_ended(items, i) || end >= o->facts->end;
    const size_t freed = lives_on ? SIZE_MAX : running_at(o, end);
    if (made != SIZE_MAX) o->list[made].makes_bytes += shape->size_bytes;
    if (freed != SIZE_MAX) o->list[freed].frees_bytes += shape->size_bytes;
}

static tide_status add_blocks(totals *o, const tide_progress *progress, tide_error *err) {
    const tide_items *items = tide_subject_items(o->s);
    for (uint32_t i = 0; i < items->n; i++) {
        add_block(o, items, i);
        if (i % 65536 == 65535 && !tide_progress_goes_on(progress, (double)i / (double)items->n, "adding up steps"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    }
    return TIDE_OK;
}

// ---- tensors of a plan ----

/// At a step a root, and what lies in it, takes more bytes of the buffer, or fewer.
typedef struct change {
    uint32_t root;
    int64_t step;
    uint64_t more, fewer;
} change;

static int by_root_and_step(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/// The step of that number; SIZE_MAX: it did not run.
static size_t step_of_number(const totals *o, int64_t number) {
    size_t lo = 0, hi = o->n;
    TIDE_BISECT(lo, hi, o->facts->step_number[mid] < number);
    return lo < o->n && o->facts->step_number[lo] == number ? lo : SIZE_MAX;
}

/// The changes of one root at one step, together: what of it is freed, the step before had last.
static void add_change(totals *o, const change *c) {
    const bool grows = c->more > c->fewer;
    const size_t step = step_of_number(o, grows ? c->step : c->step - 1);
    if (step == SIZE_MAX) return;
    if (grows)
        o->list[step].makes_bytes += c->more - c->fewer;
    else
        o->list[step].frees_bytes += c->fewer - c->more;
}

static tide_status add_tensors(totals *o, const tide_memory_plan *plan, tide_error *err) {
    tide_occupied *occupied;
    size_t n;
    TIDE_TRY(tide_lifetimes_occupied(&plan->lifetimes, &occupied, &n, err));
    change *list = tide_host_alloc((2 * n + 1) * sizeof *list);
    if (list == NULL) {
        tide_host_free(occupied);
        return TIDE_NO_MEMORY(err, "for %zu changes", 2 * n);
    }
    for (size_t i = 0; i < n; i++) {
        const tide_occupied *x = &occupied[i];
        const uint64_t bytes = x->hi_bytes - x->lo_bytes;
        list[2 * i] = (change){.root = x->root, .step = x->begin_step, .more = bytes};
        list[2 * i + 1] = (change){.root = x->root, .step = x->end_step, .fewer = bytes};
    }
    if (n > 0) qsort(list, 2 * n, sizeof *list, by_root_and_step);
    for (size_t i = 0, k; i < 2 * n; i = k) {
        change c = list[i];
        for (k = i + 1; k < 2 * n && by_root_and_step(&list[k], &c) == 0; k++) {
            c.more += list[k].more;
            c.fewer += list[k].fewer;
        }
        add_change(o, &c);
    }
    tide_host_free(list);
    tide_host_free(occupied);
    return TIDE_OK;
}

// ---- how high it is while a step runs ----
//
//     live of the trace  ________________________    the whole buffer of a planned run, at every step
//     used               __--_---___                 what counts there: what tensors take of it at each step

/// Used bytes from an event on.
typedef struct used_list {
    tide_trace_used *items; // [n] rising, owned
    size_t n, cap;
} used_list;

static tide_status take_used(void *ctx, const tide_trace_used *used) {
    used_list *l = ctx;
    TIDE_TRY(tide_host_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items));
    l->items[l->n++] = *used;
    return TIDE_OK;
}

/// Events [first, end) in which a step of an execution runs.
typedef struct stretch {
    uint64_t first, end;
} stretch;

/// The execution that the times of step `i` are of, from `*x` on: most are of one. false: of none.
static bool find_stretch(const totals *o, size_t i, size_t *x, stretch *out) {
    const tide_executions *all = o->facts->executions;
    for (; *x < all->n; ++*x) {
        const tide_execution *e = &all->items[*x];
        const tide_execution_step *steps = tide_execution_steps(all, e);
        size_t k, behind;
        tide_execution_range(all, e, o->facts->step_number[i], o->facts->step_number[i] + 1, &k, &behind);
        if (k >= behind || (int64_t)steps[k].t_ns != o->list[i].begin) continue;
        const uint64_t idle = e->idle_event < e->last_event ? e->idle_event : e->last_event;
        *out =
            (stretch){e->first_event + steps[k].event, k + 1 < e->n_steps ? e->first_event + steps[k + 1].event : idle};
        return true;
    }
    return false;
}

/// The highest from event `first` on, what holds after it counting too.
static uint64_t highest_of(const used_list *l, const stretch *s) {
    size_t lo = 0, hi = l->n;
    uint64_t most = 0;
    TIDE_BISECT(lo, hi, l->items[mid].event <= s->first);
    for (size_t k = lo > 0 ? lo - 1 : 0; k < l->n && l->items[k].event < s->end; k++)
        if (l->items[k].bytes > most) most = l->items[k].bytes;
    return most;
}

/// Of a planned run: what is live at each step, of the plan's buffers what tensors take.
static tide_status measure_used(totals *o, tide_error *err) {
    tide_trace *trace = tide_subject_trace(o->s);
    tide_trace_extent span;
    used_list l = {0};
    stretch *list;
    TIDE_TRY(tide_trace_get_extent(trace, o->facts->run_id, &span, err));
    TIDE_TRY(TIDE_NEW(&list, o->n + 1, err, "for %zu steps", o->n));
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < o->n; i++) {
        size_t x = 0;
        if (!find_stretch(o, i, &x, &list[i])) continue;
        if (list[i].end > span.last_event + 1) list[i].end = span.last_event + 1;
        if (list[i].first < first) first = list[i].first;
        if (list[i].end > last) last = list[i].end;
    }
    tide_status st = TIDE_OK;
    if (first < last) st = tide_trace_each_used(trace, o->facts->run_id, first, last - 1, take_used, &l, err);
    for (size_t i = 0; st == TIDE_OK && i < o->n; i++) o->list[i].live_bytes = highest_of(&l, &list[i]);
    tide_host_free(l.items);
    tide_host_free(list);
    return st;
}

static tide_status measure(totals *o, const tide_progress *progress, tide_error *err) {
    const tide_curve_key live = {TIDE_CURVE_LIVE, -1, NULL};
    for (size_t i = 0; i < o->n; i++) {
        tide_step_total *t = &o->list[i];
        if (i % 64 == 63 && !tide_progress_goes_on(progress, (double)i / (double)o->n, "measuring steps"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
        TIDE_TRY(tide_subject_peak_between(o->s, live, t->begin, t->end - 1, &t->live_bytes, NULL, err));
    }
    return TIDE_OK;
}

// ---- all ----

static tide_status add_all(totals *o, const tide_progress *progress, tide_error *err) {
    const tide_subject_facts *f = o->facts;
    const tide_memory_plan *ran = f->executions != NULL ? f->executions->plan : NULL;
    const tide_memory_plan *plan = f->is_trace ? ran : f->plan;
    TIDE_TRY(set_ends(o, err));
    TIDE_TRY(add_blocks(o, progress, err));
    if (plan != NULL) TIDE_TRY(add_tensors(o, plan, err));
    return ran != NULL ? measure_used(o, err) : measure(o, progress, err);
}

tide_status tide_step_totals_make(tide_subject *s, const tide_progress *progress, tide_step_total **out,
                                  tide_error *err) {
    totals o = {.s = s, .facts = tide_subject_get_facts(s)};
    o.n = o.facts->n_steps;
    TIDE_TRY(TIDE_NEW(&o.list, o.n + 1, err, "for %zu steps", o.n));
    for (size_t i = 0; i < o.n; i++) o.list[i].begin = o.facts->step_begin[i];
    const tide_status st = add_all(&o, progress, err);
    if (st == TIDE_OK)
        *out = o.list;
    else
        tide_host_free(o.list);
    return st;
}
