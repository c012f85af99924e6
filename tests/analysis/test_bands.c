// SPDX-License-Identifier: MIT
//
// Stacked bands, held against live sets at every event: the top is the curve of each column, what lives then is in the
// bands by its name, and of a planned run the moment is the one with most in its buffer.
#include <inttypes.h>

#include "analysis/bands.h"
#include "planner/planner.h"
#include "profiler/executions.h"
#include "profiler/moments.h"
#include "tests/analysis/planned_fixture.h"

enum { MAX_EVENTS = 1024 };

// ---- what each event leaves alive ----

typedef struct history {
    tide_subject *s;
    tide_live_set sets[MAX_EVENTS];  // after each event, buffers expanded
    int64_t t[MAX_EVENTS];           // when
    uint64_t kind_bytes[MAX_EVENTS]; // of the kinds that are asked for
    uint64_t filled[MAX_EVENTS];     // what lies in buffers
    uint64_t n;
} history;

static history all;

static void read_history(tide_subject *s) {
    tide_error err = TIDE_ERROR_INIT;
    all = (history){.s = s, .n = tide_subject_get_facts(s)->n_events};
    assert_true(all.n + 1 < MAX_EVENTS);
    for (uint64_t e = 1; e <= all.n; e++) {
        tide_trace_event event;
        size_t n;
        assert_tide_ok(tide_trace_live_set_after(tide_subject_trace(s), e, &all.sets[e], &err), &err);
        assert_tide_ok(tide_trace_expand_buffers(tide_subject_trace(s), &all.sets[e], &err), &err);
        assert_tide_ok(tide_trace_events(tide_subject_trace(s), e, &event, 1, &n, &err), &err);
        all.t[e] = (int64_t)event.t_ns;
        for (size_t i = 0; i < all.sets[e].n; i++) {
            const tide_live *b = &all.sets[e].items[i];
            if (b->in_buffer && !b->is_unused) all.filled[e] += b->requested_bytes;
        }
    }
}

static void drop_history(void) {
    for (uint64_t e = 1; e <= all.n; e++) tide_live_set_deinit(&all.sets[e]);
}

static bool is_asked(const tide_live *b, int kind) {
    return kind == -1 || (int)b->kind == kind || (kind == TIDE_KINDS_BUT_WEIGHTS && b->kind != TIDE_KIND_PERSISTENT);
}

static void sum_kinds(int kind) {
    for (uint64_t e = 1; e <= all.n; e++) {
        all.kind_bytes[e] = 0;
        for (size_t i = 0; i < all.sets[e].n; i++)
            if (is_asked(&all.sets[e].items[i], kind)) all.kind_bytes[e] += all.sets[e].items[i].requested_bytes;
    }
}

/// The last event before t.
static uint64_t before(int64_t t) {
    uint64_t e = 0;
    while (e < all.n && all.t[e + 1] < t) e++;
    return e;
}

/// The highest value of a column, and the most that lies in buffers where it is so high.
static uint64_t highest(int64_t lo, int64_t hi, uint64_t *filled) {
    uint64_t high = 0, e = before(lo);
    bool is_carried = true;
    for (uint64_t k = e + 1; k <= all.n && all.t[k] == lo; k++)
        if (all.kind_bytes[k] != all.kind_bytes[k - 1]) is_carried = false;
    *filled = 0;
    bool found = false;
    // Events at the begin of the column that change nothing leave what was there before.
    while (!is_carried && all.kind_bytes[e + 1] == all.kind_bytes[e]) e++;
    for (uint64_t k = is_carried ? e : e + 1; k <= all.n && (k == e || all.t[k] < hi); k++) {
        if (!found || all.kind_bytes[k] > high) {
            high = all.kind_bytes[k];
            *filled = all.filled[k];
            found = true;
        }
        if (all.kind_bytes[k] == high && all.filled[k] > *filled) *filled = all.filled[k];
    }
    return high;
}

// ---- bands of one moment ----

/// The pool of a tensor that is no weight.
static const char *pool_of(const tide_memory_plan *plan, uint32_t tensor) {
    static char name[64];
    const tide_lifetime *l = &plan->lifetimes.items[tensor];
    const uint32_t root = (uint32_t)tide_lifetimes_root(&plan->lifetimes, tensor, NULL);
    if (plan->n_pools > 0)
        snprintf(name, sizeof name, "pool %" PRId32, plan->pools[root]);
    else
        snprintf(name, sizeof name, "buffer %s", tide_memory_kind_name(l->kind));
    const bool is_outside =
        plan->n_pools > 0 ? plan->pools[root] < 0 : tide_memory_plan_buffer(plan, l->device, l->kind) == NULL;
    return is_outside ? tide_memory_kind_name(l->kind) : name;
}

static const char *pool_in(const tide_live *b) {
    static char name[128];
    tide_error err = TIDE_ERROR_INIT;
    const tide_executions *x;
    if (b->in_buffer) {
        assert_tide_ok(tide_trace_executions(tide_subject_trace(all.s), b->plan_run_id, &x, &err), &err);
        return pool_of(x->plan, b->tensor);
    }
    snprintf(name, sizeof name, "%s %s", b->allocator, tide_memory_kind_name(b->kind));
    return name;
}

/// The process of the block as its threads say.
static const char *process_in(const tide_live *b) {
    static char name[32];
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_thread *threads = NULL;
    size_t n = 0;
    name[0] = '\0';
    assert_tide_ok(tide_trace_threads(tide_subject_trace(all.s), &threads, &n, &err), &err);
    for (size_t i = 0; i < n; i++)
        if (threads[i].process == b->block_id >> 48) snprintf(name, sizeof name, "%" PRId64, threads[i].pid);
    tide_host_free(threads);
    return name;
}

static const char *name_in(const tide_live *b, tide_band_by by) {
    if (by == TIDE_BAND_BY_PROCESS) return process_in(b);
    if (by == TIDE_BAND_BY_POOL) return pool_in(b);
    if (by == TIDE_BAND_BY_KIND) return tide_memory_kind_name(b->kind);
    const char *text = by == TIDE_BAND_BY_TENSOR ? b->name : b->scope;
    return text[0] != '\0' ? text : by == TIDE_BAND_BY_TENSOR ? "(no name)" : "(no operator)";
}

static bool is_in_band(const tide_live *b, const tide_band *band, tide_band_by by) {
    if (by == TIDE_BAND_BY_PROCESS) return band->sort == TIDE_BAND_GROUP && strcmp(band->name, process_in(b)) == 0;
    if (b->is_unused) return band->sort == TIDE_BAND_UNUSED;
    if (b->kind == TIDE_KIND_PERSISTENT) return band->sort == TIDE_BAND_WEIGHTS;
    return band->sort == TIDE_BAND_GROUP && strcmp(band->name, name_in(b, by)) == 0;
}

static const tide_band *band_of(const tide_bands *bands, const tide_live *b) {
    const tide_band *rest = NULL;
    for (size_t i = 0; i < bands->n_items; i++) {
        if (is_in_band(b, &bands->items[i], bands->by)) return &bands->items[i];
        if (bands->items[i].sort == TIDE_BAND_REST) rest = &bands->items[i];
    }
    return rest;
}

static void check_column(const tide_bands *bands, size_t i, int kind) {
    uint64_t sum = 0, by_band[64] = {0};
    const uint64_t e = bands->at[i].event;
    assert_in_range(e, 0, all.n);
    for (size_t k = 0; k < all.sets[e].n && bands->bytes[i] > 0; k++) {
        const tide_live *b = &all.sets[e].items[k];
        if (!is_asked(b, kind) || b->requested_bytes == 0) continue;
        const tide_band *band = band_of(bands, b);
        assert_non_null(band);
        by_band[band - bands->items] += b->requested_bytes;
    }
    for (size_t k = 0; k < bands->n_items; k++) {
        if (bands->items[k].bytes[i] != by_band[k])
            fail_msg("column %d: %s has %d bytes, not %d", (int)i, bands->items[k].name, (int)bands->items[k].bytes[i],
                     (int)by_band[k]);
        sum += by_band[k];
    }
    assert_int_equal(sum, bands->bytes[i]);
}

static void check_order(const tide_bands *bands, size_t max_bands) {
    assert_in_range(bands->n_items, 0, max_bands);
    for (size_t k = 0; k < bands->n_items; k++) {
        uint64_t most = 0, sum = 0;
        for (size_t i = 0; i < bands->n; i++) {
            if (bands->items[k].bytes[i] > most) most = bands->items[k].bytes[i];
            sum += bands->items[k].bytes[i];
        }
        assert_int_equal(bands->items[k].most_bytes, most);
        assert_int_equal(bands->items[k].sum_bytes, sum);
        assert_true(most > 0);
        if (k > 0) assert_true(bands->items[k].sort >= bands->items[k - 1].sort);
        // A group with a band of its own is as large as any in the rest.
        if (bands->items[k].sort == TIDE_BAND_REST) assert_int_equal(bands->n_items, max_bands);
    }
}

static int64_t edge(int64_t t0, int64_t t1, size_t i, size_t n) { return t0 + (int64_t)i * (t1 - t0) / (int64_t)n; }

static void check_window(const tide_bands_options *o, bool says_buffers) {
    tide_error err = TIDE_ERROR_INIT;
    tide_bands bands;
    assert_tide_ok(tide_bands_make(all.s, o, NULL, &bands, &err), &err);
    sum_kinds(o->kind);
    for (size_t i = 0; i < o->n; i++) {
        const int64_t lo = edge(o->t0, o->t1, i, o->n), next = edge(o->t0, o->t1, i + 1, o->n);
        uint64_t filled;
        const uint64_t high = highest(lo, next > lo ? next : lo + 1, &filled);
        if (bands.bytes[i] != high)
            fail_msg("column %d of %d: %d bytes, not %d", (int)i, (int)o->n, (int)bands.bytes[i], (int)high);
        assert_int_equal(all.kind_bytes[bands.at[i].event], high);
        if (says_buffers) assert_int_equal(all.filled[bands.at[i].event], filled);
        check_column(&bands, i, o->kind);
    }
    check_order(&bands, o->max_bands);
    tide_bands_deinit(&bands);
}

static void check_subject(tide_subject *s, uint64_t seed, bool says_buffers) {
    static const int kinds[] = {-1, TIDE_KINDS_BUT_WEIGHTS, TIDE_KIND_WORKSPACE, TIDE_KIND_DEFAULT};
    tide_rng rng = {seed};
    const tide_subject_facts *f = tide_subject_get_facts(s);
    read_history(s);
    for (int i = 0; i < 12; i++) {
        tide_bands_options o = {.by = (tide_band_by)(i % TIDE_N_BAND_BYS),
                                .kind = kinds[tide_rng_below(&rng, 4)],
                                .t0 = f->begin,
                                .t1 = f->end,
                                .n = 1 + tide_rng_below(&rng, 40),
                                .max_bands = TIDE_BANDS_LEAST + tide_rng_below(&rng, 5)};
        if (i >= 3) {
            o.t0 += (int64_t)tide_rng_below(&rng, (uint64_t)(f->end - f->begin));
            o.t1 = o.t0 + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(f->end - o.t0));
        }
        check_window(&o, says_buffers);
    }
    drop_history();
}

// ---- traces ----

static void planned_recordings(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    // Ten to fourteen: of one context, with and without the numbers of buffers, of two and of three.
    const uint64_t first = (uint64_t)tide_test_rounds(10, 1), n = (uint64_t)tide_test_rounds(3, 25);
    for (uint64_t seed = first; seed < first + n; seed++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide_memory_plan *plan = random_plan(seed, 5 + seed % 17, N_STEPS);
        record_random(d.file, seed, plan);
        tide_memory_plan_destroy(plan);
        for (int64_t run = 0; run <= 1; run++) {
            tide_subject *s = subject_of_trace(d.file, run);
            const tide_executions *x;
            assert_tide_ok(tide_trace_executions(tide_subject_trace(s), 1, &x, &err), &err);
            check_subject(s, seed, tide_executions_say_buffers(x));
            tide_subject_destroy(s);
        }
        tmp_dir_remove(&d);
    }
}

typedef struct alive {
    uint64_t id, bytes;
    tide_memory_kind kind;
} alive;

static void record_naive(const char *path, uint64_t seed) {
    static const char *const names[] = {"", "conv.out", "relu.out", "w0", "w1", "page", "x", "y", "z", "scratch"};
    tide_rng rng = {seed};
    feeder f;
    feeder_open(&f, path, 64, false);
    tide_scope ops[4];
    for (int i = 0; i < 4; i++) ops[i] = (tide_scope){.name = names[1 + i], .kind = TIDE_SCOPE_OPERATOR, .index = i};
    alive live[300];
    size_t n_live = 0;
    uint64_t t = 50, id = 0;
    for (int i = 0; i < 300; i++) {
        t += tide_rng_below(&rng, 4);
        if (n_live > 0 && tide_rng_below(&rng, 5) < 2) {
            const size_t k = tide_rng_below(&rng, n_live);
            feed_free(&f, t + 1, live[k].id, live[k].kind, live[k].bytes, "");
            t++;
            live[k] = live[--n_live];
            continue;
        }
        const uint64_t op = tide_rng_below(&rng, 6);
        alive *b = &live[n_live++];
        *b = (alive){++id, tide_rng_below(&rng, 8) == 0 ? 0 : 16 * tide_rng_below(&rng, 50),
                     (tide_memory_kind)tide_rng_below(&rng, TIDE_N_KINDS)};
        f.scope = op < 4 ? &ops[op] : NULL;
        feed(&f, t, TIDE_MEM_ALLOC, b->id, b->kind, b->bytes, names[tide_rng_below(&rng, 10)]);
    }
    feeder_close(&f);
}

static void naive_recordings(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)tide_test_rounds(3, 25); seed++) {
        tmp_dir d;
        tmp_dir_make(&d);
        record_naive(d.file, seed);
        tide_subject *s = subject_of_trace(d.file, 0);
        check_subject(s, seed, false);
        tide_subject_destroy(s);
        tmp_dir_remove(&d);
    }
}

// ---- many events ----

/// Steps of live bytes up and down, with a spike now and then. `max_bytes` of the file; 0: as many as there are.
static void record_many(const char *path, uint64_t max_bytes, size_t n) {
    tide_rng rng = {7};
    feeder f = {.thread = 1};
    const tide_recorder_options opt = {.batch_events = 256, .max_bytes = max_bytes, .now = feeder_now, .now_ctx = &f};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &f.rec, &err), &err);
    f.obs = tide_recorder_observer(f.rec);
    uint64_t sizes[64] = {0}, ids[64], t = 1000, id = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t k = tide_rng_below(&rng, 64);
        const tide_memory_kind kind = k % 3 == 0 ? TIDE_KIND_PERSISTENT : TIDE_KIND_WORKSPACE;
        t += 1 + tide_rng_below(&rng, 3);
        if (sizes[k] > 0) {
            feed_free(&f, t, ids[k], kind, sizes[k], "block");
            sizes[k] = 0;
            continue;
        }
        ids[k] = ++id;
        sizes[k] = tide_rng_below(&rng, 900) == 0 ? 1000000 : 1 + tide_rng_below(&rng, 500);
        feed(&f, t, TIDE_MEM_ALLOC, ids[k], kind, sizes[k], "block");
    }
    feeder_close(&f);
}

/// Columns that end inside of a leaf are as exact as all others.
static void edges_of_leaves(void **state) {
    (void)state;
    enum { N = 100 };
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tide_bands bands;
    uint64_t low[N], high[N];
    tmp_dir_make(&d);
    record_many(d.file, 0, 15000);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    for (int by = 0; by < TIDE_N_BAND_BYS; by++) {
        const tide_bands_options o = {.by = (tide_band_by)by,
                                      .kind = by == 1 ? TIDE_KINDS_BUT_WEIGHTS : -1,
                                      .t0 = f->begin,
                                      .t1 = f->end,
                                      .n = N,
                                      .max_bands = TIDE_BANDS_LEAST};
        assert_tide_ok(tide_trace_columns(tide_subject_trace(s), o.kind, NULL, (uint64_t)f->begin, (uint64_t)f->end, N,
                                          TIDE_COLUMNS_EXACT, low, high, &err),
                       &err);
        assert_tide_ok(tide_bands_make(s, &o, NULL, &bands, &err), &err);
        for (size_t i = 0; i < N; i++) {
            uint64_t sum = 0;
            for (size_t k = 0; k < bands.n_items; k++) sum += bands.items[k].bytes[i];
            assert_int_equal(bands.bytes[i], high[i]);
            assert_int_equal(sum, high[i]);
        }
        tide_bands_deinit(&bands);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Of what a small file has no room for, the height is known, and not of what it was.
static void dropped_events(void **state) {
    (void)state;
    enum { N = 20 };
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tide_bands bands;
    tmp_dir_make(&d);
    record_many(d.file, 1 << 19, 60000);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_trace_info info;
    assert_tide_ok(tide_trace_get_info(tide_subject_trace(s), &info, &err), &err);
    assert_true(info.first_kept_event > 1);
    const tide_bands_options o = {.kind = -1, .t0 = f->begin, .t1 = f->end, .n = N, .max_bands = TIDE_BANDS_LEAST};
    assert_tide_ok(tide_bands_make(s, &o, NULL, &bands, &err), &err);
    const tide_band *last = &bands.items[bands.n_items - 1];
    assert_int_equal(last->sort, TIDE_BAND_DROPPED);
    assert_true(last->bytes[0] > 0 && last->bytes[0] == bands.bytes[0]);
    assert_int_equal(last->bytes[N - 1], 0);
    for (size_t i = 0; i < N; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < bands.n_items; k++) sum += bands.items[k].bytes[i];
        assert_int_equal(sum, bands.bytes[i]);
    }
    tide_bands_deinit(&bands);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

// ---- plans ----

static const char *owner_of(const tide_live_item *x) {
    if (x->site.owner[0] != '\0') return x->site.owner;
    return x->shape.role == TIDE_ROLE_INPUT    ? "(inputs)"
           : x->shape.role == TIDE_ROLE_OUTPUT ? "(outputs)"
                                               : "(no operator)";
}

static uint64_t bytes_in(const tide_memory_plan *plan, const tide_live_items *l, const tide_band *band,
                         const tide_bands_options *o) {
    uint64_t sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        const tide_live_item *x = &l->items[i];
        const char *name = o->by == TIDE_BAND_BY_KIND      ? tide_memory_kind_name(x->shape.kind)
                           : o->by == TIDE_BAND_BY_TENSOR  ? x->site.name
                           : o->by == TIDE_BAND_BY_PROCESS ? "the program"
                           : o->by == TIDE_BAND_BY_POOL    ? pool_of(plan, (uint32_t)tide_planned_tensor(x->id))
                                                           : owner_of(x);
        const bool is_weight = x->shape.kind == TIDE_KIND_PERSISTENT && o->by != TIDE_BAND_BY_PROCESS;
        if (o->by == TIDE_BAND_BY_PROCESS && !tide_kind_is_among(o->kind, (int)x->shape.kind)) continue;
        if (is_weight ? band->sort == TIDE_BAND_WEIGHTS
                      : band->sort == TIDE_BAND_GROUP && strcmp(name, band->name) == 0)
            sum += x->counts_bytes;
    }
    return sum;
}

static void check_plan(tide_subject *s, const tide_bands_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_bands bands;
    uint64_t low[64], high[64];
    assert_tide_ok(tide_bands_make(s, o, NULL, &bands, &err), &err);
    const tide_curve_key key = {TIDE_CURVE_LIVE, o->kind, NULL};
    assert_tide_ok(tide_subject_columns(s, key, o->t0, o->t1, o->n, low, high, &err), &err);
    for (size_t i = 0; i < o->n; i++) {
        tide_live_items l;
        uint64_t sum = 0;
        assert_int_equal(bands.bytes[i], high[i]);
        assert_tide_ok(tide_subject_live(s, bands.at[i], &l, &err), &err);
        for (size_t k = 0; k < bands.n_items; k++) {
            const tide_band *band = &bands.items[k];
            if (band->sort != TIDE_BAND_REST)
                assert_int_equal(band->bytes[i], bytes_in(tide_subject_get_facts(s)->plan, &l, band, o));
            sum += band->bytes[i];
        }
        assert_int_equal(sum, high[i]);
        if (o->kind == -1) assert_int_equal(l.bytes, high[i]);
        tide_live_items_deinit(&l);
    }
    check_order(&bands, o->max_bands);
    tide_bands_deinit(&bands);
}

/// The same lifetimes in a plan that has pools.
static tide_memory_plan *in_pools(tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy = NULL;
    tide_memory_plan *out = NULL;
    assert_tide_ok(tide_strategy_find("greedy_color", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&plan->lifetimes, strategy, NULL, &out, &err), &err);
    tide_memory_plan_destroy(plan);
    return out;
}

static void plans(void **state) {
    (void)state;
    static const int kinds[] = {-1, TIDE_KINDS_BUT_WEIGHTS, TIDE_KIND_WORKSPACE, TIDE_KIND_DEFAULT};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        tide_rng rng = {seed};
        const int64_t n_steps = 1 + (int64_t)(seed % 23);
        tide_memory_plan *plan = random_plan(seed, seed % 60, n_steps);
        tide_subject *s = subject_of_plan(seed % 2 == 0 ? plan : in_pools(plan));
        for (int i = 0; i < 6; i++) {
            const int64_t t0 = (int64_t)tide_rng_below(&rng, (uint64_t)n_steps);
            const tide_bands_options o = {.by = (tide_band_by)(i % TIDE_N_BAND_BYS),
                                          .kind = kinds[tide_rng_below(&rng, 4)],
                                          .t0 = t0,
                                          .t1 = t0 + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(n_steps - t0)),
                                          .n = 1 + tide_rng_below(&rng, 60),
                                          .max_bands = TIDE_BANDS_LEAST + tide_rng_below(&rng, 5)};
            check_plan(s, &o);
        }
        tide_subject_destroy(s);
    }
}

// ---- little of anything ----

static void nothing_lives(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    feeder f;
    tide_bands bands;
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 64, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 0, "empty");
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    tide_bands_options o = {.kind = -1, .t0 = facts->begin, .t1 = facts->end, .n = 3, .max_bands = TIDE_BANDS_LEAST};
    assert_tide_ok(tide_bands_make(s, &o, NULL, &bands, &err), &err);
    assert_int_equal(bands.n_items, 0);
    for (size_t i = 0; i < 3; i++) assert_int_equal(bands.bytes[i], 0);
    tide_bands_deinit(&bands);
    o.n = 0;
    assert_tide_status(tide_bands_make(s, &o, NULL, &bands, &err), TIDE_ERR_INVALID);
    tide_error_clear(&err);
    o.n = 3;
    o.max_bands = TIDE_BANDS_LEAST - 1;
    assert_tide_status(tide_bands_make(s, &o, NULL, &bands, &err), TIDE_ERR_INVALID);
    tide_error_clear(&err);
    o.max_bands = TIDE_BANDS_LEAST;
    o.t1 = o.t0;
    assert_tide_status(tide_bands_make(s, &o, NULL, &bands, &err), TIDE_ERR_INVALID);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Of twenty tensors that live at once, the three largest have bands with their names.
static void the_largest_have_names(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    feeder f;
    tide_bands bands;
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 64, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 99, TIDE_KIND_PERSISTENT, 7, "w");
    for (uint64_t i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%02d", (int)i);
        feed(&f, 101 + i, TIDE_MEM_ALLOC, 1 + i, TIDE_KIND_WORKSPACE, 1 + i, name);
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_bands_options o = {
        .by = TIDE_BAND_BY_TENSOR, .kind = -1, .t0 = 100, .t1 = 121, .n = 1, .max_bands = TIDE_BANDS_LEAST};
    assert_tide_ok(tide_bands_make(s, &o, NULL, &bands, &err), &err);
    static const char *const names[] = {"weights", "t19", "t18", "t17", "17 others"};
    static const uint64_t bytes[] = {7, 20, 19, 18, 153};
    assert_int_equal(bands.n_items, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(bands.items[i].name, names[i]);
        assert_int_equal(bands.items[i].bytes[0], bytes[i]);
    }
    assert_int_equal(bands.items[4].n_names, 17);
    assert_int_equal(bands.bytes[0], 217);
    tide_bands_deinit(&bands);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static bool tell_at_most(void *ctx, double share, const char *what) {
    (void)share;
    (void)what;
    int *left = ctx;
    return (*left)-- > 0;
}

static void cancelled(void **state) {
    (void)state;
    tmp_dir d;
    tide_bands bands;
    tmp_dir_make(&d);
    record_naive(d.file, 3);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    const tide_bands_options o = {
        .by = TIDE_BAND_BY_TENSOR, .kind = -1, .t0 = f->begin, .t1 = f->end, .n = 20, .max_bands = TIDE_BANDS_LEAST};
    for (int n = 0; n < 20; n++) {
        tide_error err = TIDE_ERROR_INIT;
        int left = n;
        const tide_progress progress = {tell_at_most, &left};
        assert_tide_status(tide_bands_make(s, &o, &progress, &bands, &err), TIDE_ERR_CANCELLED);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static void out_of_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_memory_plan *plan = random_plan(5, 12, N_STEPS);
    record_random(d.file, 5, plan);
    tide_memory_plan_destroy(plan);
    bool failed = true;
    for (int64_t n = 0; failed; n = tide_test_next_failure(n)) {
        tide_error err = TIDE_ERROR_INIT;
        tide_bands bands;
        tide_subject *s = subject_of_trace(d.file, 1);
        const tide_subject_facts *f = tide_subject_get_facts(s);
        const tide_bands_options o = {.by = TIDE_BAND_BY_OPERATOR,
                                      .kind = -1,
                                      .t0 = f->begin,
                                      .t1 = f->end,
                                      .n = 9,
                                      .max_bands = TIDE_BANDS_LEAST};
        tide_host_fail_after(n);
        const tide_status st = tide_bands_make(s, &o, NULL, &bands, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_bands_deinit(&bands);
        tide_subject_destroy(s);
        assert_true(n < 20000);
    }
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(planned_recordings),     tide_unit_test(naive_recordings), tide_unit_test(plans),
        tide_unit_test(nothing_lives),          tide_unit_test(cancelled),        tide_unit_test(out_of_memory),
        tide_unit_test(the_largest_have_names), tide_unit_test(edges_of_leaves),  tide_unit_test(dropped_events),
    };
    return cmocka_run_group_tests_name("bands", tests, NULL, NULL);
}
