// SPDX-License-Identifier: MIT
//
// Sums per kind, live bytes and peaks of runs. See query.h.
//
// Answers about the whole trace come from its leaves, which also hold for events that were dropped; a run by a replay
// of its events.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "profiler/read/moments_internal.h"

// ---- one number ----

tide_status tide_trace_live_at(tide_trace *t, int kind, uint64_t t_ns, uint64_t *bytes, tide_error *err) {
    tide__curve *c;
    int64_t event, live;
    TIDE_TRY(tide__trace_curve(t, kind, NULL, &c, err));
    TIDE_TRY(tide__trace_event_at(t, t_ns, &event, err));
    TIDE_TRY(tide__curve_value(t, c, event, &live, err));
    *bytes = (uint64_t)live;
    return TIDE_OK;
}

tide_status tide_trace_peak(tide_trace *t, int64_t run_id, int kind, uint64_t *bytes, uint64_t *t_ns, tide_error *err) {
    tide__span span;
    tide__curve *c;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_curve(t, kind, NULL, &c, err));
    if (run_id == 0) span.first_event = 1;
    int64_t high, event, high_ns = (int64_t)span.begin_ns;
    TIDE_TRY(tide__curve_peak(t, c, span.first_event, span.last_event, &high, &event, &high_ns, err));
    *bytes = (uint64_t)high;
    if (t_ns != NULL) *t_ns = (uint64_t)high_ns;
    return TIDE_OK;
}

// ---- the table ----

typedef struct kind_row {
    tide_trace_kind k;
    int16_t device; // number; 0: the run's, of which nothing was allocated
} kind_row;

typedef struct kind_table {
    kind_row *rows; // [n], by kind, then device; owned
    size_t n, cap;
} kind_table;

/// The row of (kind, device), put in its order when it is new; NULL without memory. Valid until the next call.
static tide_trace_kind *table_row(kind_table *k, tide_memory_kind kind, int16_t device) {
    size_t i = 0;
    while (i < k->n && (k->rows[i].k.kind < kind || (k->rows[i].k.kind == kind && k->rows[i].device < device))) i++;
    if (i < k->n && k->rows[i].k.kind == kind && k->rows[i].device == device) return &k->rows[i].k;
    if (tide_host_grow(&k->rows, &k->cap, k->n + 1, sizeof *k->rows) != TIDE_OK) return NULL;
    memmove(&k->rows[i + 1], &k->rows[i], (k->n - i) * sizeof *k->rows);
    k->rows[i] = (kind_row){.k = {.kind = kind, .predicted_bytes = TIDE_UNKNOWN_BYTES}, .device = device};
    k->n++;
    return &k->rows[i].k;
}

// ---- a run: by replay ----

/// Per series of the replay: what it stood at when the run began, and where its row is.
typedef struct run_series {
    int64_t n_allocs, n_frees, requested_bytes;
    tide_trace_kind k;
    bool is_on; // something was live when the run began, or happened in it
} run_series;

typedef struct run_walk {
    run_series *series; // [n], owned
    size_t n, cap;
} run_walk;

static tide_status make_series(run_walk *w, const tide__replay *r) {
    TIDE_TRY(tide_host_grow(&w->series, &w->cap, r->n_series, sizeof *w->series));
    for (; w->n < r->n_series; w->n++) w->series[w->n] = (run_series){0};
    return TIDE_OK;
}

static void see_series(run_series *w, const tide__series *s) {
    const uint64_t bytes = (uint64_t)s->live_bytes, reserved = (uint64_t)s->live_reserved_bytes;
    w->k.live_at_end_bytes = bytes;
    if (w->k.peak_bytes < bytes) w->k.peak_bytes = bytes;
    if (w->k.peak_reserved_bytes < reserved) w->k.peak_reserved_bytes = reserved;
}

static tide_status begin_run(void *ctx, const tide__replay *r) {
    run_walk *w = ctx;
    TIDE_TRY(make_series(w, r));
    for (size_t i = 1; i < r->n_series; i++) {
        w->series[i].n_allocs = r->series[i].n_allocs;
        w->series[i].n_frees = r->series[i].n_frees;
        w->series[i].requested_bytes = r->series[i].requested_bytes;
        see_series(&w->series[i], &r->series[i]);
    }
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;)
        w->series[r->series_of[b->device][b->kind]].is_on = true;
    return TIDE_OK;
}

static tide_status run_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    run_walk *w = ctx;
    if (series == 0) return TIDE_OK;
    if (r->n_series > w->n) TIDE_TRY(make_series(w, r));
    for (size_t i = r->n_changed == 1 ? series : 1; i < r->n_series; i++) {
        if (r->series[i].last_event == e->id) {
            w->series[i].is_on = true;
            see_series(&w->series[i], &r->series[i]);
        }
        if (r->n_changed == 1) break;
    }
    return TIDE_OK;
}

/// What the walk saw, added to what was counted before.
static tide_status add_walk(tide_trace *t, const run_walk *w, kind_table *k, tide_error *err) {
    const tide__replay *r = &t->at.replay; // where the walk ended
    for (size_t i = 1; i < w->n; i++) {
        const run_series *s = &w->series[i];
        if (!s->is_on) continue;
        tide_trace_kind *row = table_row(k, (tide_memory_kind)r->series[i].kind, r->series[i].device);
        if (row == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        row->n_allocs += (uint64_t)(r->series[i].n_allocs - s->n_allocs);
        row->n_frees += (uint64_t)(r->series[i].n_frees - s->n_frees);
        row->requested_bytes += (uint64_t)(r->series[i].requested_bytes - s->requested_bytes);
        if (s->k.peak_bytes > row->peak_bytes) row->peak_bytes = s->k.peak_bytes;
        if (s->k.peak_reserved_bytes > row->peak_reserved_bytes) row->peak_reserved_bytes = s->k.peak_reserved_bytes;
        row->live_at_end_bytes = s->k.live_at_end_bytes;
    }
    return TIDE_OK;
}

static tide_status count_more(tide_trace *t, int64_t first, int64_t last, kind_table *k, tide_error *err) {
    run_walk w = {0};
    tide_status st = tide__trace_walk(t, first, last, begin_run, run_event, &w, err);
    if (st == TIDE_OK) st = add_walk(t, &w, k, err);
    tide_host_free(w.series);
    return st;
}

// ---- a run that is most of the trace: all of it, less what lies outside ----
//
//     events   1 ..... first ............................................ last ..... last of the trace
//     counts    - walk - | what the producers counted in all, less the two walks | - walk -
//     peaks              |-walk-| leaf | leaf | leaf | leaf | leaf | leaf |-walk-|

static tide_status take_counts(tide_trace *t, const char *query, kind_table *k, tide_error *err);
static const char counted_query[] = "SELECT kind, device, sum(n_allocs), sum(n_frees), sum(requested_bytes), "
                                    "device << 8 | kind FROM main.total GROUP BY device, kind ORDER BY device, kind";

/// Whether the sums of the producers were found equal to those of the events when the trace was closed.
static tide_status are_totals_equal(tide_trace *t, bool *equal, tide_error *err) {
    char totals[16] = "";
    const tide_status st = tide_trace_meta(t, "totals", totals, sizeof totals, err);
    *equal = st == TIDE_OK && strcmp(totals, "equal") == 0;
    if (st == TIDE_ERR_NOT_FOUND) tide_error_clear(err); // sums that could not be compared
    return st == TIDE_ERR_NOT_FOUND ? TIDE_OK : st;
}

/// Whether what was allocated and not freed is what lives at the end: blocks that a discard ends have no free of their
/// own, and no producer counts them.
static tide_status are_frees_whole(tide_trace *t, kind_table *k, bool *whole, tide_error *err) {
    const tide__replay *r;
    TIDE_TRY(tide__trace_state_after(t, t->last_event, &r, err));
    const tide__live_block *b;
    for (size_t i = 0; i < k->n; i++) k->rows[i].k.live_at_end_bytes = 0; // here the number of blocks
    *whole = true;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        tide_trace_kind *row = table_row(k, (tide_memory_kind)b->kind, b->device);
        if (row == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        row->live_at_end_bytes++;
    }
    for (size_t i = 0; i < k->n; i++) {
        const tide_trace_kind *row = &k->rows[i].k;
        *whole = *whole && row->n_allocs - row->n_frees == row->live_at_end_bytes;
        k->rows[i].k.live_at_end_bytes = 0;
    }
    return TIDE_OK;
}

static tide_status take_away(tide_trace *t, int64_t first, int64_t last, kind_table *k, tide_error *err) {
    kind_table outside = {0};
    tide_status st = count_more(t, first, last, &outside, err);
    for (size_t i = 0; st == TIDE_OK && i < outside.n; i++) {
        const tide_trace_kind *o = &outside.rows[i].k;
        tide_trace_kind *row = table_row(k, o->kind, outside.rows[i].device);
        if (row == NULL) {
            st = TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        } else if (row->n_allocs < o->n_allocs || row->n_frees < o->n_frees ||
                   row->requested_bytes < o->requested_bytes) {
            st = tide__trace_bad_row(t, "total", outside.rows[i].device << 8 | (int)o->kind, err);
        } else {
            row->n_allocs -= o->n_allocs;
            row->n_frees -= o->n_frees;
            row->requested_bytes -= o->requested_bytes;
        }
    }
    tide_host_free(outside.rows);
    return st;
}

/// Where the leaves that reach over an end of the span end within it.
static tide_status find_edges(tide_trace *t, const tide__span *span, int64_t *begins, int64_t *ends, tide_error *err) {
    *begins = span->first_event;
    *ends = span->last_event;
    for (size_t place = 0; place < t->n_series; place++) {
        TIDE_TRY(tide__trace_series_load(t, place, err));
        const tide__trace_series *s = &t->series[place];
        for (size_t i = 0; i < s->n_leaves; i++) {
            const tide__leaf *l = &s->leaves[i];
            if (l->first_event < span->first_event && l->last_event > *begins) *begins = l->last_event;
            if (l->last_event > span->last_event && l->first_event < *ends) *ends = l->first_event;
        }
    }
    return TIDE_OK;
}

/// Peaks, and bytes at the end, of a span: at its edges by replay, between them by leaves. Rows of what lived in it.
static tide_status take_peaks(tide_trace *t, const tide__span *span, int64_t begins, int64_t ends, kind_table *k,
                              tide_error *err) {
    TIDE_TRY(count_more(t, span->first_event, begins, k, err));
    for (size_t i = 0; i < k->n; i++) k->rows[i].k.live_at_end_bytes = 0; // a kind that the second walk does not meet
    TIDE_TRY(count_more(t, ends, span->last_event, k, err));
    for (size_t place = 1; place < t->n_series; place++) {
        const tide__trace_series *s = &t->series[place];
        for (size_t i = 0; i < s->n_leaves; i++) {
            const tide__leaf *l = &s->leaves[i];
            if (l->first_event < span->first_event || l->last_event > span->last_event) continue;
            tide_trace_kind *row = table_row(k, (tide_memory_kind)s->kind, s->device);
            if (row == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
            if ((uint64_t)l->max_bytes > row->peak_bytes) row->peak_bytes = (uint64_t)l->max_bytes;
            if ((uint64_t)l->max_reserved_bytes > row->peak_reserved_bytes)
                row->peak_reserved_bytes = (uint64_t)l->max_reserved_bytes;
        }
    }
    return TIDE_OK;
}

/// The counts of `counts` instead of those that the edges alone had.
static tide_status put_counts(tide_trace *t, const kind_table *counts, kind_table *k, tide_error *err) {
    for (size_t i = 0; i < counts->n; i++) {
        const tide_trace_kind *c = &counts->rows[i].k;
        if (c->n_allocs == 0 && c->n_frees == 0) continue; // it lives here from before, or not at all
        tide_trace_kind *row = table_row(k, c->kind, counts->rows[i].device);
        if (row == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        row->n_allocs = c->n_allocs;
        row->n_frees = c->n_frees;
        row->requested_bytes = c->requested_bytes;
    }
    return TIDE_OK;
}

/// The counts of the span; *known false: what the producers counted does not tell them.
static tide_status count_inside(tide_trace *t, const tide__span *span, kind_table *counts, bool *known,
                                tide_error *err) {
    TIDE_TRY(are_totals_equal(t, known, err));
    if (!*known) return TIDE_OK;
    TIDE_TRY(take_counts(t, counted_query, counts, err));
    TIDE_TRY(are_frees_whole(t, counts, known, err));
    if (!*known) return TIDE_OK;
    TIDE_TRY(take_away(t, 1, span->first_event - 1, counts, err));
    return take_away(t, span->last_event + 1, t->last_event, counts, err);
}

/// *counted false: not in this way, a walk over the span has to.
static tide_status count_most(tide_trace *t, const tide__span *span, kind_table *k, bool *counted, tide_error *err) {
    const int64_t n_inside = span->last_event - span->first_event + 1;
    int64_t begins, ends;
    *counted = false;
    if (t->state == TIDE_TRACE_RECORDING || t->first_event != 1 || n_inside <= (t->last_event - n_inside) * 2)
        return TIDE_OK;
    TIDE_TRY(find_edges(t, span, &begins, &ends, err));
    if (ends <= begins) return TIDE_OK;
    kind_table counts = {0};
    tide_status st = count_inside(t, span, &counts, counted, err);
    if (st == TIDE_OK && *counted) st = take_peaks(t, span, begins, ends, k, err);
    if (st == TIDE_OK && *counted) st = put_counts(t, &counts, k, err);
    tide_host_free(counts.rows);
    return st;
}

// ---- what was counted is kept: a run that goes on is gone on with ----

struct tide__kind_counts {
    int64_t first_event, last_event; // counted
    kind_table table;
};

static void forget_kinds(tide_trace *t) {
    if (t->kind_counts != NULL) tide_host_free(t->kind_counts->table.rows);
    tide_host_free(t->kind_counts);
    t->kind_counts = NULL;
}

static tide_status count_kept(tide_trace *t, const tide__span *span, tide_error *err) {
    struct tide__kind_counts *c = t->kind_counts;
    if (c != NULL && c->first_event == span->first_event && c->last_event == span->last_event) return TIDE_OK;
    if (c != NULL && (c->first_event != span->first_event || c->last_event > span->last_event)) forget_kinds(t);
    if (t->kind_counts == NULL) {
        t->forget[TIDE__KEPT_KINDS] = forget_kinds;
        t->kind_counts = tide_host_alloc(sizeof *t->kind_counts);
        if (t->kind_counts == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        *t->kind_counts =
            (struct tide__kind_counts){.first_event = span->first_event, .last_event = span->first_event - 1};
    }
    c = t->kind_counts;
    bool counted = false;
    tide_status st = TIDE_OK;
    if (c->last_event < span->first_event) st = count_most(t, span, &c->table, &counted, err);
    if (st == TIDE_OK && !counted) st = count_more(t, c->last_event + 1, span->last_event, &c->table, err);
    c->last_event = span->last_event;
    if (st != TIDE_OK) forget_kinds(t); // half of it is none of it
    return st;
}

static tide_status count_walk(tide_trace *t, const tide__span *span, kind_table *k, tide_error *err) {
    TIDE_TRY(count_kept(t, span, err));
    const kind_table *from = &t->kind_counts->table;
    TIDE_TRY(TIDE_GROW(&k->rows, &k->cap, from->n + 1, err, "for the kinds of '%s'", t->path));
    if (from->n > 0) memcpy(k->rows, from->rows, from->n * sizeof *k->rows);
    k->n = from->n;
    return TIDE_OK;
}

// ---- the whole trace: by leaves ----

/// Rows of kind, device, allocations, frees, requested bytes, and a number that rises: added up.
static tide_status take_counts(tide_trace *t, const char *query, kind_table *k, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, query, &stmt, err));
    tide_status st;
    bool has_row;
    tide_trace_kind *row = NULL;
    uint64_t last_kind = 0, last_device = 0;
    int64_t last_id = INT64_MIN;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        uint64_t kind, device, n_allocs, n_frees, bytes;
        if (!tide__sql_u64(stmt, 0, &kind) || kind >= TIDE_N_KINDS || !tide__sql_u64(stmt, 1, &device) || device == 0 ||
            device >= TIDE__MAX_DEVICES || !tide__sql_u64(stmt, 2, &n_allocs) || !tide__sql_u64(stmt, 3, &n_frees) ||
            !tide__sql_u64(stmt, 4, &bytes) || sqlite3_column_int64(stmt, 5) <= last_id) {
            st = tide__trace_bad_row(t, "block", 0, err);
            break;
        }
        if (row == NULL || kind != last_kind || device != last_device)
            row = table_row(k, (tide_memory_kind)kind, (int16_t)device);
        if (row == NULL) {
            st = TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
            break;
        }
        last_id = sqlite3_column_int64(stmt, 5);
        last_kind = kind;
        last_device = device;
        row->n_allocs += n_allocs;
        row->n_frees += n_frees;
        row->requested_bytes += bytes;
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status take_leaves(tide_trace *t, kind_table *k, tide_error *err) {
    for (size_t i = 0; i < k->n; i++) {
        tide_trace_kind *row = &k->rows[i].k;
        const size_t place = tide__trace_series_find(t, k->rows[i].device, (uint8_t)row->kind);
        if (place == SIZE_MAX) continue; // the recorded thread counted it, and every event of it was lost
        TIDE_TRY(tide__trace_series_load(t, place, err));
        const tide__trace_series *s = &t->series[place];
        for (size_t n = 0; n < s->n_leaves; n++) {
            const tide__leaf *l = &s->leaves[n];
            row->live_at_end_bytes = (uint64_t)l->last_bytes;
            if ((uint64_t)l->max_bytes > row->peak_bytes) row->peak_bytes = (uint64_t)l->max_bytes;
            if ((uint64_t)l->max_reserved_bytes > row->peak_reserved_bytes)
                row->peak_reserved_bytes = (uint64_t)l->max_reserved_bytes;
        }
    }
    return TIDE_OK;
}

/// What the producers counted is the shorter way, where it was held against the events; and the only one where events
/// were dropped.
static tide_status count_whole(tide_trace *t, kind_table *k, tide_error *err) {
    static const char blocks[] =
        "SELECT kind, device, 1, free_event IS NOT NULL, requested_bytes, id FROM main.block ORDER BY id";
    // Chunks are read in one order: a number that rises is none of theirs.
    static const char packed[] =
        "SELECT kind, device, count(*), count(free_event), sum(requested_bytes), 1000000 * kind + device "
        "FROM all_blocks GROUP BY kind, device ORDER BY kind, device";
    if (t->first_event == 1 && t->state == TIDE_TRACE_RECORDING) {
        const tide__span span = {.first_event = 1, .last_event = t->last_event};
        return count_walk(t, &span, k, err);
    }
    bool by_totals;
    TIDE_TRY(are_totals_equal(t, &by_totals, err));
    by_totals = by_totals || t->first_event > 1;
    TIDE_TRY(take_counts(t, by_totals ? counted_query : t->is_packed ? packed : blocks, k, err));
    return take_leaves(t, k, err);
}

// ---- predictions and names ----

static tide_status name_devices(const tide_trace *t, kind_table *k, tide_error *err) {
    for (size_t i = 0; i < k->n; i++) {
        const char *name = tide__trace_device(t, k->rows[i].device);
        if (name[0] == '\0') return tide__trace_bad_row(t, "device", k->rows[i].device, err);
        tide__trace_copy_text(k->rows[i].k.device, sizeof k->rows[i].k.device, name);
    }
    return TIDE_OK;
}

static tide_status fill_predicted(const tide_trace *t, const tide_memory_plan *plan, const char *device, bool is_naive,
                                  uint64_t n_contexts, kind_table *k, tide_error *err) {
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const uint64_t bytes = tide_memory_plan_predicted_run(plan, (tide_memory_kind)kind, is_naive, n_contexts);
        bool found = false;
        for (size_t i = 0; i < k->n; i++) {
            if ((int)k->rows[i].k.kind != kind || strcmp(k->rows[i].k.device, device) != 0) continue;
            k->rows[i].k.predicted_bytes = bytes;
            found = true;
        }
        if (found || bytes == 0) continue;
        // Predicted and never allocated: a row with nothing measured. Device number 0 comes before all others.
        tide_trace_kind *row = table_row(k, (tide_memory_kind)kind, 0);
        if (row == NULL) return TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
        row->predicted_bytes = bytes;
        tide__trace_copy_text(row->device, sizeof row->device, device);
    }
    return TIDE_OK;
}

static tide_status add_predictions(tide_trace *t, int64_t run_id, kind_table *k, tide_error *err) {
    tide_memory_plan *plan;
    TIDE_TRY(tide__trace_plan_or_null(t, run_id, &plan, err));
    if (plan == NULL) return TIDE_OK;
    sqlite3_stmt *stmt = NULL;
    char device[16] = "", mode[16] = "";
    bool has_row;
    tide_status st = tide__sql_prepare(&t->sql, "SELECT device, mode, contexts FROM main.run WHERE id = ?", &stmt, err);
    if (st == TIDE_OK) sqlite3_bind_int64(stmt, 1, run_id);
    if (st == TIDE_OK) st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK) {
        tide__trace_copy_text(device, sizeof device, tide__sql_text(stmt, 0));
        tide__trace_copy_text(mode, sizeof mode, tide__sql_text(stmt, 1));
        uint64_t n_contexts;
        st = tide__sql_u64(stmt, 2, &n_contexts) && n_contexts > 0
                 ? fill_predicted(t, plan, device, strcmp(mode, "naive") == 0, n_contexts, k, err)
                 : tide__trace_bad_row(t, "run", run_id, err);
    }
    sqlite3_finalize(stmt);
    tide_memory_plan_destroy(plan);
    return st;
}

// ---- all of it ----

static tide_status fill_table(tide_trace *t, int64_t run_id, kind_table *k, tide_error *err) {
    if (run_id == 0) {
        TIDE_TRY(count_whole(t, k, err));
        return name_devices(t, k, err);
    }
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(count_walk(t, &span, k, err));
    TIDE_TRY(name_devices(t, k, err));
    return add_predictions(t, run_id, k, err);
}

tide_status tide_trace_kinds(tide_trace *t, int64_t run_id, tide_trace_kind **out, size_t *n, tide_error *err) {
    kind_table k = {0};
    tide_trace_kind *rows = NULL;
    tide_status st = fill_table(t, run_id, &k, err);
    if (st == TIDE_OK && k.n > 0) {
        rows = tide_host_alloc(k.n * sizeof *rows);
        if (rows == NULL) st = TIDE_NO_MEMORY(err, "for the kinds of '%s'", t->path);
    }
    for (size_t i = 0; st == TIDE_OK && i < k.n; i++) rows[i] = k.rows[i].k;
    if (st == TIDE_OK) {
        *out = rows;
        *n = k.n;
    }
    tide_host_free(k.rows);
    return st;
}

void tide_trace_kinds_free(tide_trace_kind *kinds) { tide_host_free(kinds); }
