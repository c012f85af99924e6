// SPDX-License-Identifier: MIT
//
// Lists: what is alive at the cursor, the explanation of its bytes, the comparison of A and B, advice; and what each
// step makes and frees, with the highest value of the curve while it runs. See scene_parts.h.
#include "analysis/step_totals.h"
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

// ---- alive at the cursor ----

typedef struct live_query {
    tide_moment at;
    tide_live_items live;
    bool is_there;
    tide_items_hold *hold; ///< of the table that its indexes are of; NULL: there was none
} live_query;

static void release_live(void *ctx) {
    live_query *l = ctx;
    if (l->is_there) tide_live_items_deinit(&l->live);
    tide_items_let_go(l->hold);
    tide_host_free(l);
}

static tide_status run_live(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    (void)b;
    (void)progress;
    live_query *l = ctx;
    TIDE_TRY(tide_subject_live(a, l->at, &l->live, err));
    l->is_there = true;
    if (tide_subject_items(a) != NULL) l->hold = tide_subject_hold_items(a);
    return TIDE_OK;
}

static bool has_its_table(tide__frame *f, const live_query *l) {
    if (l->hold == NULL) return tide_subject_items(f->st->a) == NULL;
    return tide__query_same_table(f, TIDE__QUERY_LIVE, l->hold);
}

/// This takes some milliseconds with millions of events, so the worker does it; not while the worker still loads the
/// table.
tide_status tide__scene_live(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    if (!tide__is_shown(f, TIDE_TUI_PANE_TABLE)) return TIDE_OK;
    const bool has_items = tide_subject_items(f->st->a) != NULL;
    uint64_t key = tide__key(tide__key(0, cache->a_serial), cache->items_serial);
    key = tide__key_moment(tide__key(key, has_items), tide_tui_now(f->st));
    if (tide__query_is_needed(cache, TIDE__QUERY_LIVE, key)) {
        const bool at_once = tide__is_small(f->st->a) || !has_items || f->out->a->is_recording;
        live_query *l;
        TIDE_TRY(TIDE_NEW(&l, 1, f->err, "for a question"));
        l->at = tide_tui_now(f->st);
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_LIVE, key, at_once, run_live, release_live, l));
    }
    const live_query *l = tide__query_result_of(f, TIDE__QUERY_LIVE, key, TIDE_TUI_PANE_TABLE);
    if (l == NULL) l = tide__query_previous_result(f, TIDE__QUERY_LIVE, TIDE_TUI_PANE_TABLE);
    if (l == NULL || !has_its_table(f, l)) return TIDE_OK;
    void *rows = NULL;
    f->out->live = &l->live;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_TABLE, TIDE__QUERY_LIVE, &rows));
    if (rows == NULL) return TIDE_OK;
    cache->live = l->live;
    cache->live.items = rows;
    f->out->live = &cache->live;
    return TIDE_OK;
}

// ---- explanation ----

/// Without counterfactuals it takes some milliseconds, whatever the plan: that answer is shown until the whole one is
/// there.
typedef struct explain_query {
    tide_moment at;
    size_t n_without;
    tide_explanation explanation;
    bool is_there;
} explain_query;

static void release_explain(void *ctx) {
    explain_query *e = ctx;
    if (e->is_there) tide_explanation_deinit(&e->explanation);
    tide_host_free(e);
}

static tide_status run_explain(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                               tide_error *err) {
    (void)b;
    explain_query *e = ctx;
    TIDE_TRY(tide_explain(a, e->at, e->n_without, progress, &e->explanation, err));
    e->is_there = true;
    return TIDE_OK;
}

/// A plan is made for each counterfactual of a plan.
static bool takes_plans(const tide_subject_facts *facts) {
    return facts->plan != NULL && facts->plan->lifetimes.n > (size_t)TIDE__FEW_PLANNED;
}

/// The query of a slot, started if it is not there yet. NULL: it is not answered.
static tide_status ask_explanation(tide__frame *f, int slot, size_t n_without, bool at_once,
                                   const explain_query **out) {
    tide_tui_query_cache *cache = f->cache;
    const uint64_t key = tide__key_moment(tide__key(tide__key(0, cache->a_serial), 'e'), tide_tui_now(f->st));
    if (tide__query_is_needed(cache, slot, key)) {
        explain_query *e;
        TIDE_TRY(TIDE_NEW(&e, 1, f->err, "for a question"));
        *e = (explain_query){.at = tide_tui_now(f->st), .n_without = n_without};
        TIDE_TRY(tide__query_start_at_cursor(f, slot, key, at_once, run_explain, release_explain, e));
    }
    *out = tide__query_result_of(f, slot, key, TIDE_TUI_PANE_EXPLAIN);
    return TIDE_OK;
}

tide_status tide__scene_explain(tide__frame *f) {
    const tide_tui_query_cache *cache = f->cache;
    if (!tide__is_shown(f, TIDE_TUI_PANE_EXPLAIN)) return TIDE_OK;
    const bool is_small = tide__is_small(f->st->a), many = takes_plans(f->out->a) && cache->worker != NULL;
    // A model is made again by one thread at a time: the worker, which gives advice too.
    const bool at_once = is_small && !many && (cache->session == NULL || cache->session->retable == NULL);
    const explain_query *parts = NULL, *e = NULL;
    if (many) TIDE_TRY(ask_explanation(f, TIDE__QUERY_PARTS, 0, is_small, &parts));
    TIDE_TRY(ask_explanation(f, TIDE__QUERY_EXPLAIN, TIDE_EXPLAIN_DEFAULT_WITHOUT, at_once, &e));
    if (e == NULL) e = parts;
    if (e == NULL) e = tide__query_previous_result(f, TIDE__QUERY_EXPLAIN, TIDE_TUI_PANE_EXPLAIN);
    if (e != NULL) f->out->explanation = &e->explanation;
    return TIDE_OK;
}

// ---- A and B ----

typedef struct diff_query {
    bool moments; ///< two moments of A
    bool at_only; ///< only what is alive then, not all items
    tide_moment a_at, b_at;
    tide_diff diff;
    bool is_there;
    tide_items_hold *a_hold, *b_hold; ///< where names and indexes lie
} diff_query;

static void release_diff(void *ctx) {
    diff_query *q = ctx;
    if (q->is_there) tide_diff_deinit(&q->diff);
    tide_items_let_go(q->a_hold);
    tide_items_let_go(q->b_hold);
    tide_host_free(q);
}

static tide_status run_diff(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    diff_query *q = ctx;
    tide_subject *other = q->moments ? a : b;
    if (other == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is nothing to compare with");
    if (!q->at_only) TIDE_TRY(tide_subject_load(a, progress, err));
    if (!q->at_only) TIDE_TRY(tide_subject_load(other, progress, err));
    TIDE_TRY(tide_compare(a, q->moments ? &q->a_at : NULL, other, q->moments ? &q->b_at : NULL, q->at_only, progress,
                          &q->diff, err));
    q->is_there = true;
    q->a_hold = tide_subject_hold_items(a);
    q->b_hold = tide_subject_hold_items(other);
    return TIDE_OK;
}

static bool is_few(const tide_subject_facts *facts) {
    return facts->n_items <= 4 * (uint64_t)TIDE__FEW_ITEMS && !facts->is_recording;
}

tide_status tide__scene_compare(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const tide_tui_state *st = f->st;
    if (!tide__is_shown(f, TIDE_TUI_PANE_COMPARE)) return TIDE_OK;
    if (st->b == NULL && !st->compares_moments) return TIDE_OK;
    uint64_t key = tide__key(tide__key(tide__key(0, cache->a_serial), cache->b_serial), st->compares_moments);
    if (st->compares_moments) key = tide__key_moment(tide__key_moment(key, st->a_moment), st->b_moment);
    if (tide__query_is_needed(cache, TIDE__QUERY_DIFF, key)) {
        diff_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        *q = (diff_query){.moments = st->compares_moments,
                          .at_only = st->compares_moments || !is_few(f->out->a) || !is_few(f->out->b),
                          .a_at = st->a_moment,
                          .b_at = st->b_moment};
        const bool small = tide__is_small(st->a) && (st->b == NULL || tide__is_small(st->b));
        TIDE_TRY(tide__query_start(cache, TIDE__QUERY_DIFF, key, small, run_diff, release_diff, q, f->err));
    }
    const diff_query *q = tide__query_result_of(f, TIDE__QUERY_DIFF, key, TIDE_TUI_PANE_COMPARE);
    if (q == NULL) return TIDE_OK;
    void *rows = NULL;
    f->out->diff = &q->diff;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_COMPARE, TIDE__QUERY_DIFF, &rows));
    if (rows == NULL) return TIDE_OK;
    cache->diff = q->diff;
    cache->diff.rows = rows;
    f->out->diff = &cache->diff;
    return TIDE_OK;
}

// ---- advice ----

enum { MAX_ADVICE = 32 };

typedef struct advice_query {
    const tide_tui_session *session;
    tide_edit edits[TIDE_TUI_MAX_EDITS];
    size_t n_edits;
    tide_edit_advice advice[MAX_ADVICE];
    size_t n;
} advice_query;

static tide_status run_advice(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                              tide_error *err) {
    (void)b;
    advice_query *q = ctx;
    const tide_memory_plan *plan = tide_subject_get_facts(a)->plan;
    if (plan == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan to change: a trace without one");
    tide_whatif w = {.plan = plan, .edits = q->edits, .n = q->n_edits, .progress = progress};
    if (q->session != NULL) {
        w.retable = q->session->retable;
        w.batch = q->session->retable_batch;
        w.extents = q->session->retable_extents;
        w.in_place = q->session->retable_in_place;
        w.ctx = q->session->retable_ctx;
        w.options = q->session->strategy_options;
    }
    return tide_whatif_advise(&w, q->advice, MAX_ADVICE, &q->n, err);
}

tide_status tide__scene_advice(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const tide_tui_state *st = f->st;
    if (!tide__is_shown(f, TIDE_TUI_PANE_WHATIF)) return TIDE_OK;
    uint64_t key = tide__key(tide__key(0, cache->a_serial), st->n_edits);
    for (size_t i = 0; i < st->n_edits; i++) {
        tide_text text = {0};
        tide_edit_print(&st->edits[i], &text);
        key = tide__key_text(key, tide_text_str(&text));
        tide_text_deinit(&text);
    }
    if (tide__query_is_needed(cache, TIDE__QUERY_ADVICE, key)) {
        advice_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        q->session = cache->session;
        q->n_edits = st->n_edits;
        for (size_t i = 0; i < st->n_edits; i++) q->edits[i] = st->edits[i];
        TIDE_TRY(tide__query_start(cache, TIDE__QUERY_ADVICE, key, false, run_advice, tide_host_free, q, f->err));
    }
    const advice_query *q = tide__query_result_of(f, TIDE__QUERY_ADVICE, key, TIDE_TUI_PANE_WHATIF);
    if (q == NULL) return TIDE_OK;
    void *rows = NULL;
    f->out->advice = q->advice;
    f->out->n_advice = q->n;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_WHATIF, TIDE__QUERY_ADVICE, &rows));
    if (rows != NULL) f->out->advice = rows;
    return TIDE_OK;
}

// ---- steps ----

typedef struct operators_query {
    tide_tui_operator *list; ///< [n]; names are set when the result is shown
    size_t n;
} operators_query;

static void release_operators(void *ctx) {
    operators_query *o = ctx;
    tide_host_free(o->list);
    tide_host_free(o);
}

static tide_status run_operators(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                 tide_error *err) {
    (void)b;
    operators_query *o = ctx;
    tide_step_total *totals;
    TIDE_TRY(tide_subject_load(a, progress, err));
    o->n = tide_subject_get_facts(a)->n_steps;
    TIDE_TRY(TIDE_NEW(&o->list, o->n + 1, err, "for %zu steps", o->n));
    TIDE_TRY(tide_step_totals_make(a, progress, &totals, err));
    for (size_t i = 0; i < o->n; i++) {
        o->list[i] = (tide_tui_operator){.step = i,
                                         .begin = totals[i].begin,
                                         .makes_bytes = totals[i].makes_bytes,
                                         .frees_bytes = totals[i].frees_bytes,
                                         .live_bytes = totals[i].live_bytes};
    }
    tide_host_free(totals);
    return TIDE_OK;
}

tide_status tide__scene_operators(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    if (!tide__is_shown(f, TIDE_TUI_PANE_OPERATORS)) return TIDE_OK;
    const uint64_t key = tide__key(tide__key(0, cache->a_serial), 'o');
    if (tide__query_is_needed(cache, TIDE__QUERY_OPERATORS, key)) {
        operators_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        TIDE_TRY(tide__query_start(cache, TIDE__QUERY_OPERATORS, key, tide__is_small(f->st->a), run_operators,
                                   release_operators, q, f->err));
    }
    const operators_query *o = tide__query_result_of(f, TIDE__QUERY_OPERATORS, key, TIDE_TUI_PANE_OPERATORS);
    if (o == NULL) return TIDE_OK;
    const size_t n = o->n < f->out->a->n_steps ? o->n : f->out->a->n_steps;
    for (size_t i = 0; i < n; i++) o->list[i].name = f->out->a->step_names[i];
    void *rows = NULL;
    f->out->operators = o->list;
    f->out->n_operators = n;
    TIDE_TRY(tide__scene_sort(f, TIDE_TUI_LIST_OPERATORS, TIDE__QUERY_OPERATORS, &rows));
    if (rows != NULL) f->out->operators = rows;
    return TIDE_OK;
}
