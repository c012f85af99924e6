// SPDX-License-Identifier: MIT
//
// The curve of A, the predicted one, the curve of B beside it, the minimap, marks; and what a selected range of time
// [begin, end) holds. See scene_parts.h.
//
// Values of the curve are cheap. Counting births and deaths in a range looks at every item that may be alive there:
// many are counted by the worker thread.
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

/// A trace keeps leaves for each kind on each device: the device is named when a kind is on one device only.
static const char *device_of_kind(const tide_subject_facts *f, int kind) {
    const char *found = NULL;
    if (kind < 0) return NULL;
    for (size_t i = 0; i < f->n_kinds; i++) {
        if ((int)f->kinds[i].kind != kind) continue;
        if (found != NULL) return NULL;
        found = f->kinds[i].device;
    }
    return found;
}

static tide_curve_key curve_of(tide_subject *s, tide_curve_of of, int kind) {
    return (tide_curve_key){of, kind, device_of_kind(tide_subject_get_facts(s), kind)};
}

static tide_status room_for_columns(tide__columns *c, size_t n, tide_error *err) {
    size_t cap = c->cap;
    TIDE_TRY(TIDE_GROW(&c->min, &cap, n, err, "for a frame"));
    TIDE_TRY(TIDE_GROW(&c->max, &c->cap, n, err, "for a frame"));
    c->n = n;
    return TIDE_OK;
}

/// Columns [*from, *to) of `n` that lie on the subject's own axis: before and behind it there is nothing. Zoomed in so
/// far that the last unit fills several columns, all of them are on it.
static void clip(const tide_subject_facts *f, tide_tui_window w, size_t n, size_t *from, size_t *to) {
    const int first = tide_tui_column_of(w, (int)n, f->begin), last = tide_tui_column_of(w, (int)n, f->end - 1);
    const int end = tide_tui_column_of(w, (int)n, f->end), behind = end > last + 1 ? end : last + 1;
    *from = first < 0 ? 0 : (size_t)first;
    *to = last < 0 ? 0 : behind >= (int)n ? n : (size_t)behind;
}

/// Fill columns unless they are there already.
static tide_status columns(tide__columns *c, uint64_t key, tide_subject *s, tide_curve_key of, tide_tui_window w,
                           size_t n, tide_error *err) {
    if (c->is_there && c->key == key) return TIDE_OK;
    TIDE_TRY(room_for_columns(c, n, err));
    tide_error why = TIDE_ERROR_INIT;
    c->error[0] = '\0';
    const tide_status st = tide_subject_columns(s, of, w.begin, w.end, n, c->min, c->max, &why);
    TIDE_TRY(tide__pass_no_memory(st, &why, err));
    c->is_there = true;
    c->key = key;
    if (st != TIDE_OK) {
        c->n = 0;
        tide__error_text(c->error, sizeof c->error, &why);
        return TIDE_OK;
    }
    size_t from, to;
    clip(tide_subject_get_facts(s), w, n, &from, &to);
    for (size_t i = 0; i < n; i++) {
        if (i < from || i >= to) c->min[i] = c->max[i] = 0;
    }
    return TIDE_OK;
}

/// The highest of all but weights, by columns: no peak is lost in them, and where weights do not change they are cheap.
static tide_status highest_without_weights(tide_subject *s, tide_curve_key of, uint64_t *out, tide_error *err) {
    enum { N = 256 };
    const tide_subject_facts *f = tide_subject_get_facts(s);
    uint64_t low[N], high[N];
    TIDE_TRY(tide_subject_columns(s, of, f->begin, f->end, N, low, high, err));
    for (size_t i = 0; i < N; i++)
        if (high[i] > *out) *out = high[i];
    return TIDE_OK;
}

static tide_status highest(tide__held_value *v, uint64_t key, tide_subject *s, tide_curve_key of, tide_error *err) {
    if (v->is_there && v->key == key) return TIDE_OK;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = TIDE_OK;
    v->value = of.kind == -1 ? f->peak_bytes : 0;
    if (of.kind == TIDE_KINDS_BUT_WEIGHTS) st = highest_without_weights(s, of, &v->value, &why);
    if (of.kind >= 0) st = tide_subject_peak_between(s, of, f->begin, f->end, &v->value, NULL, &why);
    TIDE_TRY(tide__pass_no_memory(st, &why, err));
    v->is_there = true;
    v->key = key;
    return TIDE_OK;
}

// ---- B beside A ----

int64_t tide__on_axis_of_b(const tide__frame *f, int64_t t) {
    const tide_subject_facts *a = f->out->a, *b = f->out->b;
    const int64_t into = t - a->begin;
    if (a->axis == b->axis) return tide_tui_move_time(b->begin, into, INT64_MIN, INT64_MAX);
    const double share = (double)into / (double)(a->end - a->begin);
    return b->begin + (int64_t)(share * (double)(b->end - b->begin) + 0.5);
}

tide_tui_window tide__window_of_b(const tide__frame *f) {
    tide_tui_window w = {tide__on_axis_of_b(f, f->st->window.begin), tide__on_axis_of_b(f, f->st->window.end)};
    if (w.end <= w.begin) w.end = w.begin + 1;
    return w;
}

static tide_status curve_of_b(tide__frame *f, size_t n) {
    tide_tui_query_cache *cache = f->cache;
    const int kind = tide_tui_curve_kinds(f->st);
    if (f->st->b == NULL || f->st->b == f->st->a) return TIDE_OK;
    const uint64_t of_kind = tide__key(tide__key(0, cache->b_serial), (uint64_t)(int64_t)kind);
    const tide_tui_window w = tide__window_of_b(f);
    const uint64_t key = tide__key(tide__key(tide__key(of_kind, n), (uint64_t)w.begin), (uint64_t)w.end);
    const tide_curve_key of = curve_of(f->st->b, TIDE_CURVE_LIVE, kind);
    TIDE_TRY(columns(&cache->b_curve, key, f->st->b, of, w, n, f->err));
    TIDE_TRY(highest(&cache->b_top, of_kind, f->st->b, of, f->err));
    if (cache->b_curve.n == 0) return TIDE_OK;
    f->out->b_min = cache->b_curve.min;
    f->out->b_max = cache->b_curve.max;
    return TIDE_OK;
}

// ---- all of it ----

tide_levels tide_tui_scene_levels(const tide_tui_scene *s) {
    return s->state->folds_weights ? tide_levels_without_weights(&s->a->levels) : s->a->levels;
}

/// The largest of all values that are drawn. A capacity far above them is left out: the curve would be flat.
static uint64_t height(const tide__frame *f) {
    const tide_levels levels = tide_tui_scene_levels(f->out), *l = &levels;
    uint64_t top = f->cache->top.value;
    if (f->out->b_max != NULL && f->cache->b_top.value > top) top = f->cache->b_top.value;
    if (f->st->curve_kind < 0 && l->known && l->plan > top) top = l->plan;
    if (f->st->curve_kind < 0 && l->known && l->bound > top) top = l->bound;
    for (size_t i = 0; f->out->predicted_max != NULL && i < f->out->n_columns; i++) {
        if (f->out->predicted_max[i] > top) top = f->out->predicted_max[i];
    }
    const uint64_t capacity = f->st->capacity_bytes;
    return capacity > top && capacity / 4 <= top ? capacity : top;
}

static tide_status cursor_bytes(tide__frame *f, uint64_t of_kind, tide_curve_key of) {
    tide__held_value *v = &f->cache->cursor_bytes;
    const uint64_t key = tide__key_moment(of_kind, tide_tui_now(f->st));
    if (!v->is_there || v->key != key) {
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = tide_subject_bytes_at(f->st->a, of, tide_tui_now(f->st), &v->value, &why);
        TIDE_TRY(tide__pass_no_memory(st, &why, f->err));
        if (st != TIDE_OK) v->value = 0;
        v->is_there = true;
        v->key = key;
    }
    f->out->cursor_bytes = v->value;
    return TIDE_OK;
}

static tide_status minimap(tide__frame *f, uint64_t of_kind, tide_curve_key of) {
    const int w = f->layout->minimap.w;
    if (w <= 0 || f->layout->minimap.h <= 0) return TIDE_OK;
    const tide_subject_facts *a = f->out->a;
    tide__columns *c = &f->cache->mini;
    TIDE_TRY(columns(c, tide__key(of_kind, (uint64_t)w), f->st->a, of, (tide_tui_window){a->begin, a->end}, (size_t)w,
                     f->err));
    if (c->n > 0) f->out->mini_max = c->max;
    return TIDE_OK;
}

static tide_status predicted(tide__frame *f, uint64_t key, size_t n) {
    if (!f->out->a->is_trace || !f->out->a->has_plan) return TIDE_OK;
    tide__columns *c = &f->cache->predicted;
    const tide_curve_key of = curve_of(f->st->a, TIDE_CURVE_PREDICTED, tide_tui_curve_kinds(f->st));
    TIDE_TRY(columns(c, key, f->st->a, of, f->st->window, n, f->err));
    if (c->n > 0) f->out->predicted_max = c->max;
    return TIDE_OK;
}

tide_status tide__scene_curve(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const int w = f->layout->panes[TIDE_TUI_PANE_CURVE].w;
    const int kinds = tide_tui_curve_kinds(f->st);
    const uint64_t of_kind = tide__key(tide__key(0, cache->a_serial), (uint64_t)(int64_t)kinds);
    const tide_curve_key of = curve_of(f->st->a, TIDE_CURVE_LIVE, kinds);
    TIDE_TRY(cursor_bytes(f, of_kind, of));
    if (!tide__is_shown(f, TIDE_TUI_PANE_CURVE)) return TIDE_OK;
    const size_t cells = (size_t)(w < TIDE_TUI_MAX_COLUMNS ? w : TIDE_TUI_MAX_COLUMNS);
    const size_t n = f->st->fine_curve ? 2 * cells : cells;
    const uint64_t key =
        tide__key(tide__key(tide__key(of_kind, n), (uint64_t)f->st->window.begin), (uint64_t)f->st->window.end);
    TIDE_TRY(columns(&cache->curve, key, f->st->a, of, f->st->window, n, f->err));
    TIDE_TRY(highest(&cache->top, of_kind, f->st->a, of, f->err));
    if (cache->curve.n == 0) tide__set_pane_error(f, TIDE_TUI_PANE_CURVE, cache->curve.error);
    f->out->n_columns = cache->curve.n;
    f->out->min = cache->curve.min;
    f->out->max = cache->curve.max;
    TIDE_TRY(predicted(f, key, n));
    TIDE_TRY(curve_of_b(f, n));
    TIDE_TRY(minimap(f, of_kind, of));
    f->out->highest_bytes = cache->top.value;
    f->out->top_bytes = height(f);
    return TIDE_OK;
}

// ---- marks ----

/// Marks of a trace: looking for them reads every event.
typedef struct mark_list {
    tide_trace_mark *marks; ///< names lie in `names`
    size_t n;
    char (*names)[64];
} mark_list;

static void release_marks(void *ctx) {
    mark_list *m = ctx;
    tide_trace_marks_free(m->marks);
    tide_host_free(m->names);
    tide_host_free(m);
}

static tide_status find_marks(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                              tide_error *err) {
    (void)b;
    (void)progress;
    mark_list *m = ctx;
    TIDE_TRY(tide_trace_marks(tide_subject_trace(a), &m->marks, &m->n, err));
    TIDE_TRY(TIDE_NEW(&m->names, m->n > 0 ? m->n : 1, err, "for %zu marks", m->n));
    for (size_t i = 0; i < m->n; i++) { // copied: the names belong to the trace, which another thread may close
        const size_t len = strlen(m->marks[i].name), room = sizeof m->names[i] - 1;
        memcpy(m->names[i], m->marks[i].name, len < room ? len : room);
        m->marks[i].name = m->names[i];
    }
    return TIDE_OK;
}

static tide_status add_mark(tide__frame *f, tide_tui_mark mark) {
    tide_tui_query_cache *cache = f->cache;
    if (mark.at.t < f->st->window.begin || mark.at.t >= f->st->window.end) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&cache->marks, &cache->marks_cap, f->out->n_marks + 1, f->err, "for a frame"));
    cache->marks[f->out->n_marks++] = mark;
    return TIDE_OK;
}

tide_status tide__scene_marks(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const mark_list *found = NULL;
    if (tide_subject_trace(f->st->a) != NULL) {
        const uint64_t key = tide__key(tide__key(0, cache->a_serial), 'm');
        if (tide__query_is_needed(cache, TIDE__QUERY_MARKS, key)) {
            mark_list *m;
            TIDE_TRY(TIDE_NEW(&m, 1, f->err, "for a question"));
            TIDE_TRY(tide__query_start(cache, TIDE__QUERY_MARKS, key, tide__is_small(f->st->a), find_marks,
                                       release_marks, m, f->err));
        }
        found = tide__query_result_of(f, TIDE__QUERY_MARKS, key, TIDE_TUI_N_PANES);
    }
    for (size_t i = 0; i < f->st->n_marks; i++) TIDE_TRY(add_mark(f, f->st->marks[i]));
    for (size_t i = 0; found != NULL && i < found->n; i++) {
        tide_tui_mark mark = {.at = {(int64_t)found->marks[i].t_ns, found->marks[i].event_id}};
        memcpy(mark.text, found->marks[i].name, strlen(found->marks[i].name) + 1);
        TIDE_TRY(add_mark(f, mark));
    }
    f->out->marks = cache->marks;
    return TIDE_OK;
}

// ---- a selected range ----

typedef struct count {
    tide_items_hold *items;
    int64_t begin, end;
    tide_tui_range_facts facts; ///< counts alone
} count;

static void release_count(void *ctx) {
    count *c = ctx;
    tide_items_let_go(c->items);
    tide_host_free(c);
}

/// Bytes that an alias shares with what it lies in count once, there.
static void count_item(const tide_items *items, uint32_t i, count *c) {
    const tide_item_shape *shape = tide_items_shape(items, i);
    const uint64_t bytes = shape->alias == TIDE_ALIAS_NONE ? shape->size_bytes : 0;
    const bool ends = !tide_items_is_never_freed(items, i);
    const bool is_born = tide_items_begin(items, i) >= c->begin && tide_items_begin(items, i) < c->end;
    const bool dies = ends && tide_items_end(items, i) >= c->begin && tide_items_end(items, i) < c->end;
    if (is_born) {
        c->facts.n_allocs++;
        c->facts.alloc_bytes += bytes;
    }
    if (dies) {
        c->facts.n_frees++;
        c->facts.free_bytes += bytes;
    }
    if (is_born && !dies) {
        c->facts.n_left++;
        c->facts.left_bytes += bytes;
    }
}

static tide_status run_count(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)a;
    (void)b;
    count *c = ctx;
    const tide_items *items = tide_items_held(c->items);
    uint32_t from, to;
    // An item that ends at the begin of the range is not alive in it, but its end counts.
    tide_items_range(items, c->begin > INT64_MIN ? c->begin - 1 : c->begin, c->end, &from, &to);
    for (uint32_t i = from; i < to; i++) {
        count_item(items, i, c);
        const bool reports = progress != NULL && (i - from) % 65536 == 65535;
        if (reports && !progress->tell(progress->ctx, (double)(i - from) / (double)(to - from), "counting"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    }
    c->facts.known = true;
    return TIDE_OK;
}

static tide_status start_count(tide__frame *f, uint64_t key) {
    tide_items_hold *hold = tide_subject_hold_items(f->st->a);
    if (hold == NULL) return TIDE_OK;
    count *c;
    const tide_status st = TIDE_NEW(&c, 1, f->err, "for a question");
    if (st != TIDE_OK) {
        tide_items_let_go(hold);
        return st;
    }
    *c = (count){.items = hold, .begin = f->st->range_begin, .end = f->st->range_end};
    uint32_t from, to;
    tide_items_range(tide_items_held(hold), c->begin, c->end, &from, &to);
    const bool few = to - from <= 4 * (uint32_t)TIDE__FEW_ITEMS;
    return tide__query_start(f->cache, TIDE__QUERY_RANGE, key, few, run_count, release_count, c, f->err);
}

/// Zero where it is not known.
static uint64_t bytes_at(tide_subject *s, int64_t t) {
    const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
    uint64_t bytes;
    return tide_subject_bytes_at(s, all, (tide_moment){t, 0}, &bytes, NULL) == TIDE_OK ? bytes : 0;
}

tide_status tide__scene_range(tide__frame *f) {
    tide_tui_state *st = f->st;
    if (!st->shows_range || st->range_end <= st->range_begin) return TIDE_OK;
    tide_tui_range_facts *out = &f->out->range;
    const uint64_t of_items = tide__key(tide__key(0, f->cache->a_serial), f->cache->items_serial);
    const uint64_t key = tide__key(tide__key(of_items, (uint64_t)st->range_begin), (uint64_t)st->range_end);
    if (tide__query_is_needed(f->cache, TIDE__QUERY_RANGE, key)) TIDE_TRY(start_count(f, key));
    const count *c = tide__query_result_of(f, TIDE__QUERY_RANGE, key, TIDE_TUI_N_PANES);
    if (c != NULL) *out = c->facts;
    const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
    tide_error why = TIDE_ERROR_INIT;
    const tide_status got =
        tide_subject_peak_between(st->a, all, st->range_begin, st->range_end - 1, &out->peak_bytes, NULL, &why);
    if (got != TIDE_OK) out->peak_bytes = 0;
    out->begin_bytes = bytes_at(st->a, st->range_begin);
    out->end_bytes = bytes_at(st->a, st->range_end - 1);
    return TIDE_OK;
}
