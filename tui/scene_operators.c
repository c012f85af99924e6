// SPDX-License-Identifier: MIT
//
// What each step makes and frees, and how high the curve is while it runs. One pass over the items, aside when there
// are many. See desk.h.
#include "core/base/host_alloc.h"
#include "tui/desk.h"

typedef struct operators_answer {
    tide_tui_operator *list; ///< [n]; names are set by who shows them
    size_t n;
    int64_t *begins; ///< [n] ascending
    int64_t *ends;   ///< [n] of its first execution: what later executions make belongs to none of them
} operators_answer;

static void release_operators(void *ctx) {
    operators_answer *o = ctx;
    tide_host_free(o->list);
    tide_host_free(o->begins);
    tide_host_free(o->ends);
    tide_host_free(o);
}

/// The last step that has begun at `t`; SIZE_MAX: none of them.
static size_t step_at(const operators_answer *o, int64_t t) {
    size_t lo = 0, hi = o->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (o->begins[mid] <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? lo - 1 : SIZE_MAX;
}

/// A step of a plan ends where the next one begins, one of a trace when it was left.
static tide_status set_ends(operators_answer *o, tide_subject *a, tide_error *err) {
    const tide_subject_facts *facts = tide_subject_get_facts(a);
    for (size_t i = 0; i < o->n; i++) o->ends[i] = i + 1 < o->n ? o->begins[i + 1] : facts->end;
    if (facts->is_trace && o->n > 0) {
        tide_trace_step *steps = NULL;
        size_t n = 0;
        TIDE_TRY(tide_trace_steps(tide_subject_trace(a), facts->run_id, &steps, &n, err));
        for (size_t i = 0; i < n && i < o->n; i++) {
            const size_t at = step_at(o, (int64_t)steps[i].begin_ns);
            if (at != SIZE_MAX && (int64_t)steps[i].end_ns < o->ends[at]) o->ends[at] = (int64_t)steps[i].end_ns;
        }
        tide_trace_steps_free(steps, n);
    }
    for (size_t i = 0; i < o->n; i++)
        if (o->ends[i] <= o->begins[i]) o->ends[i] = o->begins[i] + 1;
    return TIDE_OK;
}

/// Step that runs at `t`; SIZE_MAX: none of them.
static size_t running_at(const operators_answer *o, int64_t t) {
    const size_t at = step_at(o, t);
    return at != SIZE_MAX && t < o->ends[at] ? at : SIZE_MAX;
}

/// Bytes of an alias are those of what it lies in. What dies at the end of a step was read by it last.
static void add_item(operators_answer *o, const tide_items *items, uint32_t i, bool is_trace, int64_t axis_end) {
    const tide_item_shape *shape = tide_items_shape(items, i);
    if (shape->alias != TIDE_ALIAS_NONE || shape->persistent) return;
    const uint64_t bytes = is_trace ? shape->size_bytes : shape->reserved_bytes;
    const size_t made = running_at(o, tide_items_begin(items, i));
    if (made != SIZE_MAX) o->list[made].makes_bytes += bytes;
    const bool lives_on = tide_items_is_open_ended(items, i) || (is_trace && tide_items_end(items, i) >= axis_end);
    const size_t freed = lives_on ? SIZE_MAX
                                  : running_at(o, is_trace && !shape->is_planned ? tide_items_end(items, i)
                                                                                 : tide_items_end(items, i) - 1);
    if (freed != SIZE_MAX) o->list[freed].frees_bytes += bytes;
}

static tide_status add_items(operators_answer *o, tide_subject *a, const tide_progress *progress, tide_error *err) {
    const tide_items *items = tide_subject_items(a);
    const tide_subject_facts *facts = tide_subject_get_facts(a);
    for (uint32_t i = 0; i < items->n; i++) {
        add_item(o, items, i, facts->is_trace, facts->end);
        const bool tells = progress != NULL && i % 65536 == 65535;
        if (tells && !progress->tell(progress->ctx, (double)i / (double)items->n, "adding up steps"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    }
    return TIDE_OK;
}

static tide_status run_operators(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                 tide_error *err) {
    (void)b;
    operators_answer *o = ctx;
    TIDE_TRY(tide_subject_load(a, progress, err));
    const tide_subject_facts *facts = tide_subject_get_facts(a);
    o->n = facts->n_steps;
    o->list = tide_host_calloc(o->n + 1, sizeof *o->list);
    o->begins = tide_host_calloc(o->n + 1, sizeof *o->begins);
    o->ends = tide_host_calloc(o->n + 1, sizeof *o->ends);
    if (o->list == NULL || o->begins == NULL || o->ends == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu steps", o->n);
    for (size_t i = 0; i < o->n; i++) {
        o->begins[i] = facts->step_begin[i];
        o->list[i] = (tide_tui_operator){.step = i, .begin = facts->step_begin[i]};
    }
    TIDE_TRY(set_ends(o, a, err));
    TIDE_TRY(add_items(o, a, progress, err));
    const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
    for (size_t i = 0; i < o->n; i++) {
        if (progress != NULL && i % 64 == 63 &&
            !progress->tell(progress->ctx, (double)i / (double)o->n, "measuring steps"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
        TIDE_TRY(tide_subject_peak_between(a, all, o->begins[i], o->ends[i] - 1, &o->list[i].live_bytes, NULL, err));
    }
    return TIDE_OK;
}

tide_status tide__scene_operators(tide__frame *f) {
    tide_tui_desk *d = f->desk;
    if (!tide__is_shown(f, TIDE_TUI_PANE_OPERATORS)) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(0, d->a_serial), 'o');
    if (tide__desk_wants(d, TIDE__ASK_OPERATORS, key))
        TIDE_TRY(tide__desk_ask(d, TIDE__ASK_OPERATORS, key, tide__is_small(f->st->a), run_operators, release_operators,
                                tide_host_calloc(1, sizeof(operators_answer)), f->err));
    const operators_answer *o = tide__desk_answer_of(f, TIDE__ASK_OPERATORS, key, TIDE_TUI_PANE_OPERATORS);
    if (o == NULL) return TIDE_OK;
    const size_t n = o->n < f->out->a->n_steps ? o->n : f->out->a->n_steps;
    for (size_t i = 0; i < n; i++) o->list[i].name = f->out->a->step_names[i];
    f->out->operators = o->list;
    f->out->n_operators = n;
    return TIDE_OK;
}
