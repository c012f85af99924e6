// SPDX-License-Identifier: MIT
//
// A recording with a limit on its file: the oldest detail goes, and what is said about the whole stays exact. Two
// million events of a program (kill_victim) into eight million bytes; in the suite as many as are a few times that.
#include "profiler/moments.h"
#include "tests/profiler/kill_replay.h"
#include "tests/profiler/kill_run.h"

enum { MAX_BYTES = 8000000 };
/// Rows take several times the bytes of chunks.
static uint64_t n_events(const char *form) {
    return (uint64_t)tide_test_rounds(strcmp(form, "rows") == 0 ? 200000 : 400000, 2000000);
}

// ---- sizes while it records ----

static uint64_t largest_file, largest_log;

static uint64_t file_bytes(const char *path, const char *suffix) {
    char name[340];
    struct stat st;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void look_at_sizes(kill_run *r) {
    const uint64_t file = file_bytes(r->trace, ""), log = file_bytes(r->trace, "-wal");
    if (file > largest_file) largest_file = file;
    if (log > largest_log) largest_log = log;
}

// ---- what must be in it ----

typedef struct rotated {
    tide_trace *trace;
    tide_trace_info info;
    kill_replay all; ///< of every event, those too that are no longer there
    uint64_t n_of_thread;
    uint32_t n_threads;
} rotated;

/// The threads in step with each other: frees follow the allocs of the other thread, as they did in the program.
static void replay_all(rotated *x, uint64_t seed) {
    kill_stream *s = tide_host_calloc(x->n_threads, sizeof *s);
    kill_step step;
    assert_non_null(s);
    kill_replay_init(&x->all);
    for (uint32_t t = 0; t < x->n_threads; t++) kill_stream_init(&s[t], seed, t, x->n_threads);
    for (uint64_t i = 0; i < x->n_of_thread; i++) {
        for (uint32_t t = 0; t < x->n_threads; t++) {
            kill_stream_next(&s[t], &step);
            const char *fault = kill_replay_take(&x->all, &step);
            if (fault != NULL) fail_msg("step %" PRIu64 ": %s", i, fault);
        }
    }
    tide_host_free(s);
}

static void check_totals(const rotated *x, const char *path) {
    tide_text want = {0};
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const kill_total *t = &x->all.totals[k];
        tide_text_addf(&want, "%d|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n", k, t->n_allocs, t->n_frees,
                       t->requested_bytes, t->freed_bytes);
    }
    assert_sql(path,
               "SELECT kind, sum(n_allocs), sum(n_frees), sum(requested_bytes), sum(freed_bytes) FROM total "
               "GROUP BY kind ORDER BY kind",
               tide_text_str(&want));
    tide_text_deinit(&want);
}

static void check_end(const rotated *x) {
    tide_live_set set;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_live_set(x->trace, x->info.end_ns, &set, &err), &err);
    assert_int_equal(set.n, x->all.live.n);
    assert_int_equal(set.requested_bytes, x->all.live_bytes);
    for (size_t i = 0; i < set.n; i++) {
        const kill_live *e = tide_map_find(&x->all.live, set.items[i].block_id);
        assert_non_null(e);
        assert_int_equal(e->requested_bytes, set.items[i].requested_bytes);
    }
    tide_live_set_deinit(&set);
}

/// What thinning took says so instead of answering wrongly.
static void check_refusals(const rotated *x) {
    tide_live_set set;
    tide_error err = TIDE_ERROR_INIT;
    assert_true(x->info.first_kept_event > 1);
    assert_tide_status(tide_trace_live_set_after(x->trace, 1, &set, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_live_set_after(x->trace, x->info.first_kept_event / 2, &set, &err),
                       TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_live_set(x->trace, x->info.begin_ns, &set, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_trace_live_set_after(x->trace, x->info.first_kept_event, &set, &err), &err);
    tide_live_set_deinit(&set);
}

/// All events from the first that was kept, each thread's the end of its stream. `visit` NULL: only count.
static void walk(const rotated *x, const kill_expect *want, kill_stream *streams, uint64_t *of_thread) {
    enum { N = 4096 };
    tide_trace_event *events = tide_host_calloc(N, sizeof *events);
    tide_error err = TIDE_ERROR_INIT;
    uint64_t next = x->info.first_kept_event;
    assert_non_null(events);
    for (size_t n = 1; n > 0;) {
        assert_tide_ok(tide_trace_events(x->trace, next, events, N, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            uint32_t t = 0;
            while (t < want->n_sources && want->sources[t].number != events[i].thread) t++;
            assert_true(t < want->n_sources);
            assert_int_equal(events[i].id, next++);
            of_thread[t]++;
            kill_step step;
            if (streams == NULL) continue;
            kill_stream_next(&streams[t], &step);
            if (!kill_check_same(&step, &events[i])) fail_msg("event %" PRIu64 " is another one", events[i].id);
        }
    }
    assert_int_equal(next, x->info.n_events + 1);
    tide_host_free(events);
}

static void check_kept(const rotated *x, const kill_expect *want) {
    uint64_t kept[KILL_MAX_THREADS] = {0}, again[KILL_MAX_THREADS] = {0};
    kill_stream *s = tide_host_calloc(x->n_threads, sizeof *s);
    kill_step step;
    assert_non_null(s);
    walk(x, want, NULL, kept);
    for (uint32_t t = 0; t < x->n_threads; t++) {
        kill_stream_init(&s[t], want->sources[t].seed, t, x->n_threads);
        while (s[t].n < x->n_of_thread - kept[t]) kill_stream_next(&s[t], &step);
    }
    walk(x, want, s, again);
    tide_host_free(s);
}

static void rotate(const char *drain, const char *form, uint32_t n_threads) {
    kill_run r;
    tide_error err = TIDE_ERROR_INIT;
    rotated x = {.n_of_thread = n_events(form) / n_threads, .n_threads = n_threads};
    char events[24], max_bytes[24], threads[16];
    snprintf(events, sizeof events, "%" PRIu64, x.n_of_thread);
    snprintf(max_bytes, sizeof max_bytes, "%d", MAX_BYTES);
    snprintf(threads, sizeof threads, "%u", (unsigned)n_threads);
    kill_run_init(&r, drain);
    r.n_threads = n_threads;
    kill_run_arg(&r, "--events", events);
    kill_run_arg(&r, "--form", form);
    kill_run_arg(&r, "--max-bytes", max_bytes);
    kill_run_arg(&r, "--threads", threads);
    largest_file = largest_log = 0;
    kill_run_start(&r);
    kill_run_wait(&r, look_at_sizes);
    const kill_expect want = kill_run_expect(&r, TIDE_TRACE_COMPLETE);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0);
    assert_int_equal(atomic_load(&r.shadow->status), TIDE_OK + 1);
    print_message("%s, %s, %u threads: file %" PRIu64 ", log %" PRIu64 " at most\n", drain, form, (unsigned)n_threads,
                  largest_file, largest_log);
    assert_in_range(largest_file, 1, MAX_BYTES);
    assert_in_range(largest_log, 1, MAX_BYTES);
    assert_in_range(file_bytes(r.trace, ""), 1, MAX_BYTES);

    replay_all(&x, r.seed);
    assert_tide_ok(tide_trace_open(r.trace, &x.trace, &err), &err);
    assert_tide_ok(tide_trace_get_info(x.trace, &x.info, &err), &err);
    assert_int_equal(x.info.state, TIDE_TRACE_COMPLETE);
    assert_int_equal(x.info.n_events, n_events(form));
    assert_int_equal(x.info.n_lost, 0);
    assert_int_equal(x.info.n_problems, 0);
    check_totals(&x, r.trace);
    check_end(&x);
    check_refusals(&x);
    check_kept(&x, &want);
    if (n_threads == 1) { // one order, one peak, whether its events are there or not
        uint64_t peak = 0;
        assert_tide_ok(tide_trace_peak(x.trace, 0, -1, &peak, NULL, &err), &err);
        assert_int_equal(peak, x.all.peak_bytes);
    }
    assert_tide_ok(tide_trace_check(x.trace, &err), &err);
    tide_trace_close(x.trace);
    kill_replay_deinit(&x.all);
    kill_run_deinit(&r);
}

static void chunks_are_thinned(void **state) {
    (void)state;
    rotate("thread", "chunks", 2);
}
static void rows_are_thinned(void **state) {
    (void)state;
    rotate("process", "rows", 1);
}
static void either_is_thinned(void **state) {
    (void)state;
    rotate("process", "auto", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(chunks_are_thinned), tide_unit_test(rows_are_thinned),
                                       tide_unit_test(either_is_thinned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
