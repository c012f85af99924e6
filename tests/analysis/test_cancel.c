// SPDX-License-Identifier: MIT
//
// Long questions stop when they are cancelled, at any point, and the subject can be used again:
// explanations, addresses of a moment and tables of items, of rows, of chunks, of a trace that is being recorded, of a
// plan.
#include "analysis/explain.h"

#include "analysis/space.h"
#include "tests/analysis/subject_fixture.h"

enum { N_LIVE = 50, N_ROUNDS = 12000, READ_BETWEEN = 10000, OWN_STEPS = 4 };

/// N_LIVE blocks at a time, the oldest of which goes for a new one; a segment now and then. Two share a moment, the
/// larger one behind, so that items do not come in their order.
static void work(feeder *f) {
    static const char *const tags[] = {"conv", "relu", "add"};
    const tide_memory_kind kind = TIDE_KIND_WORKSPACE;
    for (uint64_t i = 1; i <= N_ROUNDS; i++) {
        const uint64_t t = 100 + 10 * (i / 2), gone = i - N_LIVE;
        if (i > N_LIVE) feed(f, t, TIDE_MEM_FREE_REQUESTED, gone, kind, 100 + gone % 900, tags[gone % 3]);
        if (i > N_LIVE) feed(f, t, TIDE_MEM_FREE_COMPLETED, gone, kind, 100 + gone % 900, tags[gone % 3]);
        if (i % 500 == 1) feed(f, t, TIDE_MEM_SEGMENT_ALLOC, 0, kind, 4096 * 64, NULL);
        feed(f, t, TIDE_MEM_ALLOC, i, kind, 100 + i % 900, tags[i % 3]);
    }
}

static void begin(feeder *f, const char *path, tide_record_form form) {
    tide_error err = TIDE_ERROR_INIT;
    *f = (feeder){.thread = 1};
    const tide_recorder_options opt = {.form = form, .now = feeder_now, .now_ctx = f};
    assert_tide_ok(tide_recorder_open(path, &opt, &f->rec, &err), &err);
    f->obs = tide_recorder_observer(f->rec);
}

// ---- a progress that cancels ----

typedef struct impatience {
    int left, n_calls;
    double last;
    bool has_refused;
} impatience;

static bool tell(void *ctx, double share, const char *what) {
    impatience *p = ctx;
    assert_true(what[0] != '\0');
    assert_true(share >= p->last && share <= 1);
    assert_false(p->has_refused); // after a refusal there are no more calls
    p->last = share;
    p->n_calls++;
    p->has_refused = p->left-- == 0;
    return !p->has_refused;
}

/// Asks, and gives the answer back. *bytes: a sum over all of it.
typedef tide_status (*ask_fn)(tide_subject *s, const tide_progress *progress, uint64_t *bytes, tide_error *err);

static tide_status ask_explain(tide_subject *s, const tide_progress *progress, uint64_t *bytes, tide_error *err) {
    tide_explanation e;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    TIDE_TRY(tide_explain(s, f->peak, TIDE_EXPLAIN_DEFAULT_WITHOUT, progress, &e, err));
    *bytes = e.held_bytes + e.second_peak_bytes;
    for (size_t i = 0; i < e.n_without; i++) *bytes = *bytes * 31 + e.without[i].peak_bytes;
    assert_true(e.n_without > 0 && e.knows_ends);
    tide_explanation_deinit(&e);
    return TIDE_OK;
}

static tide_status ask_space(tide_subject *s, const tide_progress *progress, uint64_t *bytes, tide_error *err) {
    tide_live_items live;
    tide_space space;
    TIDE_TRY(tide_subject_live(s, tide_subject_get_facts(s)->peak, &live, err));
    const tide_status st = tide_space_of_live(s, &live, progress, &space, err);
    tide_live_items_deinit(&live);
    TIDE_TRY(st);
    *bytes = space.bytes * 31 + space.n;
    assert_true(space.n > 0);
    tide_space_deinit(&space);
    return TIDE_OK;
}

static tide_status ask_items(tide_subject *s, const tide_progress *progress, uint64_t *bytes, tide_error *err) {
    TIDE_TRY(tide_subject_load(s, progress, err));
    const tide_items *items = tide_subject_items(s);
    *bytes = items->n;
    for (size_t i = 0; i < items->n; i++)
        *bytes = *bytes * 31 + (uint64_t)tide_items_end(items, i) + tide_items_shape(items, i)->size_bytes;
    return TIDE_OK;
}

/// A subject that was not used yet.
typedef struct source {
    const char *path;       ///< of a trace; NULL: a plan
    uint64_t seed;          ///< of the plan
    int n_explain, n_space; ///< how often each of the two questions tells at least
} source;

static tide_subject *open(const source *from) {
    return from->path != NULL ? subject_of_trace(from->path, 0) : subject_of_plan(random_plan(from->seed, 60, 20));
}

/// Refused at each moment in turn: each time cancelled, and the same answer when asked again. What is left
/// behind is found at the end of the test, as of all tests: until then the drain's thread may have blocks of its own.
static void give_up_everywhere(const source *from, ask_fn ask, int n_least) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t want = 0;
    tide_subject *fresh = open(from);
    assert_tide_ok(ask(fresh, NULL, &want, &err), &err);
    tide_subject_destroy(fresh);
    tide_status st = TIDE_ERR_CANCELLED;
    for (int n = 0; st != TIDE_OK; n++) {
        tide_subject *s = open(from);
        impatience p = {.left = n};
        const tide_progress progress = {tell, &p};
        uint64_t got = 0;
        tide_error why = TIDE_ERROR_INIT;
        st = ask(s, &progress, &got, &why);
        if (st == TIDE_OK) {
            assert_int_equal(p.n_calls, n);
            assert_true(n >= n_least);
        } else {
            assert_tide_status(st, TIDE_ERR_CANCELLED);
            assert_text_has(why.msg, "cancelled");
            assert_tide_ok(ask(s, NULL, &got, &err), &err);
        }
        assert_int_equal(got, want);
        tide_subject_destroy(s);
        assert_true(n < 300);
    }
}

static void give_up(const source *from) {
    give_up_everywhere(from, ask_explain, from->n_explain);
    give_up_everywhere(from, ask_space, from->n_space);
    give_up_everywhere(from, ask_items, from->path != NULL ? 4 : 0); // before, in and after the sorting
}

/// Every event of the trace is looked at, so that there is no longer silence than so many of them.
static int tells_of(uint64_t n_events) { return (int)(n_events / READ_BETWEEN); }

static void of_a_trace(tide_record_form form) {
    tmp_dir d;
    feeder f;
    tmp_dir_make(&d);
    begin(&f, d.file, form);
    work(&f);
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const int n = tells_of(tide_subject_get_facts(s)->n_events);
    assert_true(n >= 2);
    tide_subject_destroy(s);
    // Segments in rows are found by SQLite alone, without reading the others.
    give_up(&(source){.path = d.file, .n_explain = n + OWN_STEPS, .n_space = form == TIDE_RECORD_CHUNKS ? n : 1});
    tmp_dir_remove(&d);
}

static void of_rows(void **state) {
    (void)state;
    of_a_trace(TIDE_RECORD_ROWS);
}

static void of_chunks(void **state) {
    (void)state;
    of_a_trace(TIDE_RECORD_CHUNKS);
}

/// The table of blocks is made for the question, by statements that are counted here alone.
static void of_a_trace_that_goes_on(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    feeder f;
    tmp_dir_make(&d);
    begin(&f, d.file, TIDE_RECORD_CHUNKS);
    work(&f);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    tide_subject *s = subject_of_trace(d.file, 0);
    assert_true(tide_subject_get_facts(s)->is_recording);
    const int n = tells_of(tide_subject_get_facts(s)->n_events);
    tide_subject_destroy(s);
    give_up(&(source){.path = d.file, .n_explain = 3 * n + OWN_STEPS + 2, .n_space = n});
    feeder_close(&f);
    tmp_dir_remove(&d);
}

static void of_a_plan(void **state) {
    (void)state;
    give_up(&(source){.seed = 3, .n_explain = 6, .n_space = 1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(of_rows),
        tide_unit_test(of_chunks),
        tide_unit_test(of_a_trace_that_goes_on),
        tide_unit_test(of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
