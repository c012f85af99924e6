// SPDX-License-Identifier: MIT
//
// What takes long: a plan with edits, a file as B, an SQL query, the worst moment of a pool. The worker thread gets a
// request, and the result is taken when it is there. See app_internal.h.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/app_internal.h"
#include "tui/pane_sql.h"

enum { MAX_SQL_ROWS = 1000 };

static uint64_t next_key(tide_tui_app *app) { return ++app->n_asked; }

static void say_error(tide_tui_app *app, const tide_error *err) {
    const char *more = err->hint[0] != '\0' ? err->hint : err->note;
    tide_tui_say(&app->st, true, "%s%s%s%s%s", err->where, err->where[0] != '\0' ? ": " : "", err->msg,
                 more[0] != '\0' ? "; " : "", more);
}

/// `b` (taken, may be NULL) replaces B.
static void set_own_b(tide_tui_app *app, tide_subject *b, bool is_whatif) {
    tide_tui_state *st = &app->st;
    tide_subject *before = app->own_b;
    app->own_b = b;
    app->own_b_is_whatif = b != NULL && is_whatif;
    st->compares_moments = st->has_a_moment = st->has_b_moment = false;
    st->b = NULL;
    tide__app_show_own_b(app);
    tide__query_b_changed(app->cache);
    app->worker_b = st->a; // a value that is never B: the new B may have the address of the old one
    tide_subject_destroy(before);
}

void tide__app_show_own_b(tide_tui_app *app) {
    app->st.b = app->own_b != NULL ? app->own_b : app->session->b;
    app->st.b_is_whatif = app->own_b != NULL && app->own_b_is_whatif;
}

// ---- a plan with edits ----

typedef struct plan_query {
    const tide_tui_session *session;
    tide_edit edits[TIDE_TUI_MAX_EDITS];
    size_t n;
    tide_memory_plan *plan;
} plan_query;

static void release_plan(void *ctx) {
    plan_query *q = ctx;
    tide_memory_plan_destroy(q->plan);
    tide_host_free(q);
}

static tide_status run_plan(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    (void)b;
    plan_query *q = ctx;
    const tide_memory_plan *plan = tide_subject_get_facts(a)->plan;
    if (plan == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan to change");
    if (progress != NULL && !progress->tell(progress->ctx, 0, "planning anew"))
        return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    const tide_whatif w = {.plan = plan,
                           .retable = q->session->retable,
                           .ctx = q->session->retable_ctx,
                           .options = q->session->strategy_options,
                           .edits = q->edits,
                           .n = q->n};
    return tide_whatif_make(&w, &q->plan, err);
}

void tide__effect_plan(tide_tui_app *app) {
    tide_tui_state *st = &app->st;
    if (st->n_edits == 0) {
        app->plan_key = 0;
        set_own_b(app, NULL, false);
        tide_tui_say(st, false, "no edits: the plan as it is");
        return;
    }
    plan_query *q;
    tide_error err = TIDE_ERROR_INIT;
    if (TIDE_NEW(&q, 1, &err, "for a question") != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    q->session = app->session;
    q->n = st->n_edits;
    memcpy(q->edits, st->edits, st->n_edits * sizeof st->edits[0]);
    app->plan_key = next_key(app);
    if (tide__query_start(app->cache, TIDE__QUERY_PLAN, app->plan_key, false, run_plan, release_plan, q, &err) !=
        TIDE_OK)
        say_error(app, &err);
}

/// "12.0 KiB less than without"
static void say_change(tide_tui_app *app) {
    const tide_subject_facts *a = tide_subject_get_facts(app->st.a), *b = tide_subject_get_facts(app->st.b);
    char now[24], by[24];
    const bool less = b->plan_bytes < a->plan_bytes;
    const uint64_t change = less ? a->plan_bytes - b->plan_bytes : b->plan_bytes - a->plan_bytes;
    tide_format_bytes(b->plan_bytes, now, sizeof now);
    tide_format_bytes(change, by, sizeof by);
    if (change == 0)
        tide_tui_say(&app->st, false, "planned anew: %s, as much as before", now);
    else
        tide_tui_say(&app->st, false, "planned anew: %s, %s %s", now, by, less ? "less" : "more");
}

static void take_plan(tide_tui_app *app, const tide__query_result *result) {
    tide_tui_state *st = &app->st;
    plan_query *q = result->ctx;
    app->plan_key = 0;
    if (result->status != TIDE_OK) {
        // An edit that fails is removed.
        if (q != NULL && q->n == st->n_edits) st->n_edits--;
        tide_tui_say(st, true, "%s", result->error);
        return;
    }
    tide_memory_plan *plan = q->plan;
    q->plan = NULL;
    tide_subject *b = NULL;
    tide_error err = TIDE_ERROR_INIT;
    if (tide_subject_of_plan(plan, NULL, &b, &err) != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    const bool is_first = !app->own_b_is_whatif;
    set_own_b(app, b, true);
    if (is_first) {
        st->preset = TIDE_TUI_PRESET_COMPARISON;
        st->focus = TIDE_TUI_PANE_COMPARE;
    }
    say_change(app);
}

// ---- a file as B ----

typedef struct open_query {
    const tide_tui_session *session;
    char path[TIDE_TUI_MAX_PROMPT];
    tide_subject *subject;
} open_query;

static void release_open(void *ctx) {
    open_query *q = ctx;
    tide_subject_destroy(q->subject);
    tide_host_free(q);
}

static tide_status run_open(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    (void)a;
    (void)b;
    open_query *q = ctx;
    if (progress != NULL && !progress->tell(progress->ctx, 0, "opening"))
        return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    return q->session->open(q->session->ctx, q->path, &q->subject, err);
}

void tide__effect_open(tide_tui_app *app, const char *path) {
    if (app->session->open == NULL) {
        tide_tui_say(&app->st, true, "another file cannot be opened here");
        return;
    }
    open_query *q;
    tide_error err = TIDE_ERROR_INIT;
    if (TIDE_NEW(&q, 1, &err, "for a question") != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    q->session = app->session;
    snprintf(q->path, sizeof q->path, "%s", path);
    app->open_key = next_key(app);
    if (tide__query_start(app->cache, TIDE__QUERY_OPEN, app->open_key, false, run_open, release_open, q, &err) !=
        TIDE_OK)
        say_error(app, &err);
}

static void take_file(tide_tui_app *app, const tide__query_result *result) {
    open_query *q = result->ctx;
    app->open_key = 0;
    if (result->status != TIDE_OK) {
        tide_tui_say(&app->st, true, "%s", result->error);
        return;
    }
    tide_subject *b = q->subject;
    q->subject = NULL;
    app->st.n_edits = 0; // they made the B that goes now
    set_own_b(app, b, false);
    if (app->st.preset != TIDE_TUI_PRESET_ALLOCATORS) { // there the pools of both stand beside each other
        app->st.preset = TIDE_TUI_PRESET_COMPARISON;
        app->st.focus = TIDE_TUI_PANE_COMPARE;
    }
    tide_tui_say(&app->st, false, "B is %s", tide_subject_get_facts(b)->title);
}

// ---- SQL ----

typedef struct sql_query {
    char query[TIDE_TUI_MAX_PROMPT];
    tide_text rows; ///< cells separated by SEPARATOR
} sql_query;

#define SEPARATOR "\x1f"

static void release_sql(void *ctx) {
    sql_query *q = ctx;
    tide_text_deinit(&q->rows);
    tide_host_free(q);
}

static tide_status run_sql(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                           tide_error *err) {
    (void)b;
    sql_query *q = ctx;
    if (progress != NULL && !progress->tell(progress->ctx, 0, "asking"))
        return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    return tide_trace_sql(tide_subject_trace(a), q->query, SEPARATOR, MAX_SQL_ROWS, &q->rows, err);
}

static void show_text(tide_tui_app *app, tide_tui_overlay overlay, const tide_text *text) {
    tide_error err = TIDE_ERROR_INIT;
    if (text->failed) {
        tide_tui_say(&app->st, true, "no memory for the text");
    } else if (tide_tui_query_cache_set_text(app->cache, tide_text_str(text), &err) != TIDE_OK) {
        say_error(app, &err);
    } else {
        app->st.overlay = overlay;
        app->st.overlay_top = 0;
    }
}

void tide__effect_sql(tide_tui_app *app, const char *query) {
    tide_text text = {0};
    if (query[0] == '\0') {
        tide_tui_pane_sql(&app->scene, app->st.focus, &text);
        show_text(app, TIDE_TUI_OVERLAY_SQL, &text);
        tide_text_deinit(&text);
        return;
    }
    if (tide_subject_trace(app->st.a) == NULL) {
        tide_tui_say(&app->st, true, "a plan has no events to ask: SQL needs a trace");
        return;
    }
    sql_query *q;
    tide_error err = TIDE_ERROR_INIT;
    if (TIDE_NEW(&q, 1, &err, "for a question") != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    snprintf(q->query, sizeof q->query, "%s", query);
    app->sql_key = next_key(app);
    if (tide__query_start(app->cache, TIDE__QUERY_SQL, app->sql_key, false, run_sql, release_sql, q, &err) != TIDE_OK)
        say_error(app, &err);
}

enum { MAX_SQL_COLUMNS = 64, MAX_CELL = 60 };

/// Length of the cell at `p`, and what ends it.
static size_t cell_length(const char *p) { return strcspn(p, SEPARATOR "\n"); }

/// Rows of cells as a table with columns as wide as their widest cell (in bytes, up to MAX_CELL).
static void align_rows(const char *rows, tide_text *out) {
    size_t width[MAX_SQL_COLUMNS] = {0};
    int column = 0;
    for (const char *p = rows; *p != '\0'; p++) {
        const size_t n = cell_length(p);
        if (column < MAX_SQL_COLUMNS && n > width[column]) width[column] = n < MAX_CELL ? n : MAX_CELL;
        p += n;
        if (*p == '\0') break;
        column = *p == '\n' ? 0 : column + 1;
    }
    column = 0;
    for (const char *p = rows; *p != '\0'; p++) {
        const size_t n = cell_length(p);
        const bool is_last = p[n] == '\n' || p[n] == '\0';
        const size_t pad = !is_last && column < MAX_SQL_COLUMNS && n < width[column] ? width[column] - n : 0;
        tide_text_addf(out, "%.*s%*s%s", (int)n, p, (int)pad, "", is_last ? "\n" : "  ");
        p += n;
        if (*p == '\0') break;
        column = is_last ? 0 : column + 1;
    }
}

static void take_sql(tide_tui_app *app, const tide__query_result *result) {
    app->sql_key = 0;
    if (result->status != TIDE_OK) {
        tide_tui_say(&app->st, true, "%s", result->error);
        return;
    }
    const sql_query *q = result->ctx;
    tide_text text = {0};
    tide_text_addf(&text, "%s\n\n", q->query);
    align_rows(tide_text_str(&q->rows), &text);
    show_text(app, TIDE_TUI_OVERLAY_MESSAGE, &text);
    tide_text_deinit(&text);
}

// ---- the moment at which a pool is fragmented most ----

typedef struct worst_query {
    size_t pool;
    char name[64];
    int64_t t0, t1; ///< the window
    tide_pool_worst found;
} worst_query;

static tide_status run_worst(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)b;
    worst_query *q = ctx;
    return tide_pools_worst(a, q->pool, q->t0, q->t1, progress, &q->found, err);
}

static void take_worst(tide_tui_app *app, const tide__query_result *result) {
    const worst_query *q = result->ctx;
    app->worst_key = 0;
    if (result->status == TIDE_ERR_NOT_FOUND) {
        tide_tui_say(&app->st, false, "nothing is known of free bytes of %s in this window", q->name);
    } else if (result->status != TIDE_OK) {
        tide_tui_say(&app->st, true, "%s", result->error);
    } else {
        tide_tui_show_moment(&app->st, q->found.at);
        tide_tui_say(&app->st, false, "%s: %.0f %% fragmented", q->name, 100 * (double)q->found.share);
    }
}

/// In small traces it is there at once, so that the next command sees it.
void tide__effect_worst(tide_tui_app *app) {
    const tide_tui_scene *s = &app->scene;
    worst_query *q;
    tide_error err = TIDE_ERROR_INIT;
    if (s->pools == NULL || s->pools->n == 0) return;
    if (TIDE_NEW(&q, 1, &err, "for a question") != TIDE_OK) {
        say_error(app, &err);
        return;
    }
    const tide_pool *p = &s->pools->items[tide_tui_scene_row(s, TIDE_TUI_PANE_POOLS) % s->pools->n];
    *q = (worst_query){.pool = p->number, .t0 = app->st.window.begin, .t1 = app->st.window.end};
    snprintf(q->name, sizeof q->name, "%s", p->name);
    app->worst_key = next_key(app);
    if (tide__query_start(app->cache, TIDE__QUERY_WORST, app->worst_key, tide__is_small(app->st.a), run_worst,
                          tide_host_free, q, &err) != TIDE_OK)
        say_error(app, &err);
    tide__app_take_results(app);
}

// ---- taking ----

static const tide__query_result *result_of(const tide_tui_app *app, int slot, uint64_t key) {
    const tide__query_result *a = &app->cache->results[slot];
    return key != 0 && a->is_there && a->key == key ? a : NULL;
}

bool tide__app_has_results(const tide_tui_app *app) {
    return result_of(app, TIDE__QUERY_PLAN, app->plan_key) != NULL ||
           result_of(app, TIDE__QUERY_OPEN, app->open_key) != NULL ||
           result_of(app, TIDE__QUERY_SQL, app->sql_key) != NULL ||
           result_of(app, TIDE__QUERY_WORST, app->worst_key) != NULL;
}

void tide__app_take_results(tide_tui_app *app) {
    const tide__query_result *a = result_of(app, TIDE__QUERY_PLAN, app->plan_key);
    if (a != NULL) {
        take_plan(app, a);
        tide__query_forget(app->cache, TIDE__QUERY_PLAN);
    }
    a = result_of(app, TIDE__QUERY_OPEN, app->open_key);
    if (a != NULL) {
        take_file(app, a);
        tide__query_forget(app->cache, TIDE__QUERY_OPEN);
    }
    a = result_of(app, TIDE__QUERY_SQL, app->sql_key);
    if (a != NULL) {
        take_sql(app, a);
        tide__query_forget(app->cache, TIDE__QUERY_SQL);
    }
    a = result_of(app, TIDE__QUERY_WORST, app->worst_key);
    if (a != NULL) {
        take_worst(app, a);
        tide__query_forget(app->cache, TIDE__QUERY_WORST);
    }
}

static void say_in(tide_tui_app *app, int slot, uint64_t key, tide_tui_pane pane) {
    if (key == 0) return;
    tide__frame f = {app->cache, &app->st, &app->layout, &app->scene, NULL};
    (void)tide__query_result_of(&f, slot, key, pane);
}

void tide__app_show_progress(tide_tui_app *app) {
    say_in(app, TIDE__QUERY_PLAN, app->plan_key, TIDE_TUI_PANE_COMPARE);
    say_in(app, TIDE__QUERY_OPEN, app->open_key, TIDE_TUI_PANE_COMPARE);
    if (app->sql_key != 0 && app->st.message[0] == '\0') tide_tui_say(&app->st, false, "asking …");
    say_in(app, TIDE__QUERY_SQL, app->sql_key, TIDE_TUI_N_PANES);
    if (app->worst_key != 0 && app->st.message[0] == '\0') tide_tui_say(&app->st, false, "looking for the moment …");
    say_in(app, TIDE__QUERY_WORST, app->worst_key, TIDE_TUI_PANE_POOLS);
}
