// SPDX-License-Identifier: MIT
//
// Kinds of a run that is most of its trace: what the producers counted, less what lies outside, with peaks of leaves.
// A walk over all events of the run has to give the same, to the byte.
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

enum { N_BLOCKS = 30000, N_BEFORE = 700, N_AFTER = 1500, N_RUN = 40000 };

typedef struct stream {
    feeder f;
    tide_rng rng;
    uint64_t now, n_blocks;
    uint64_t bytes[N_BLOCKS + 1]; ///< by number; UINT64_MAX: it is gone
} stream;

/// Kinds by number, so that some are met before the run alone, some in it, some after it.
static tide_memory_kind kind_of(uint64_t id, const tide_memory_kind *kinds, size_t n) { return kinds[id % n]; }

/// More comes than goes, or less.
static void happen(stream *s, int n_events, uint64_t frees_of_10, const tide_memory_kind *kinds, size_t n_kinds,
                   uint64_t first_id) {
    for (int i = 0; i < n_events; i++) {
        s->now += 1 + tide_rng_below(&s->rng, 9);
        const bool wants_free = tide_rng_below(&s->rng, 10) < frees_of_10 && s->n_blocks >= first_id;
        const uint64_t id = wants_free ? first_id + tide_rng_below(&s->rng, s->n_blocks - first_id + 1) : 0;
        if (wants_free && s->bytes[id] != UINT64_MAX) {
            feed_free(&s->f, s->now, id, kind_of(id, kinds, n_kinds), s->bytes[id], "block");
            s->bytes[id] = UINT64_MAX;
        } else if (!wants_free && s->n_blocks < N_BLOCKS) {
            const uint64_t fresh = ++s->n_blocks;
            s->bytes[fresh] = tide_rng_below(&s->rng, 8) == 0 ? 0 : tide_rng_below(&s->rng, 1u << 20);
            feed(&s->f, s->now, TIDE_MEM_ALLOC, fresh, kind_of(fresh, kinds, n_kinds), s->bytes[fresh], "block");
        }
    }
}

/// A large block of one kind that is soon gone.
static void spike(stream *s, tide_memory_kind kind, uint64_t bytes) {
    const uint64_t id = ++s->n_blocks;
    feed(&s->f, ++s->now, TIDE_MEM_ALLOC, id, kind, bytes, "spike");
    s->now += 2;
    feed_free(&s->f, s->now, id, kind, bytes, "spike");
    s->bytes[id] = UINT64_MAX;
}

static void record(const char *path, uint64_t seed, bool discards) {
    static const tide_memory_kind before[] = {TIDE_KIND_PERSISTENT, TIDE_KIND_KV_CACHE},
                                  inside[] = {TIDE_KIND_WORKSPACE, TIDE_KIND_DEFAULT}, after[] = {TIDE_KIND_DEFAULT};
    stream *s = tide_host_calloc(1, sizeof *s);
    assert_non_null(s);
    s->rng = (tide_rng){seed};
    s->now = 1000;
    const tide_run_info info = {.model = "most", .mode = "naive", .device = "cpu"};
    feeder_open(&s->f, path, 0, false);
    happen(s, N_BEFORE, 3, before, 2, 1);
    for (uint64_t id = 1; id <= s->n_blocks; id++) { // all of one kind are gone when the run begins, one byte stays
        if (kind_of(id, before, 2) != TIDE_KIND_KV_CACHE || s->bytes[id] == UINT64_MAX) continue;
        feed_free(&s->f, ++s->now, id, TIDE_KIND_KV_CACHE, s->bytes[id], "block");
        s->bytes[id] = UINT64_MAX;
    }
    spike(s, TIDE_KIND_PERSISTENT, (uint64_t)1 << 41); // in the same leaf as the begin of the run, and outside
    feed_begin_run(&s->f, ++s->now, &info, NULL);
    spike(s, TIDE_KIND_PERSISTENT, (uint64_t)1 << 40); // inside, and higher than all that follows
    const uint64_t first_id = s->n_blocks + 1, early = s->n_blocks + 1;
    s->bytes[++s->n_blocks] = UINT64_MAX;
    feed(&s->f, ++s->now, TIDE_MEM_ALLOC, early, TIDE_KIND_HOST_PINNED, 1000, "early");
    happen(s, N_RUN / 2, 3, inside, 2, first_id);
    feed_free(&s->f, s->now += 2, early, TIDE_KIND_HOST_PINNED, 1000, "early");
    happen(s, N_RUN / 2, 8, inside, 2, first_id);
    if (discards) {
        feed(&s->f, ++s->now, TIDE_MEM_ALLOC, N_BLOCKS + 1, TIDE_KIND_WORKSPACE, 4096, "pool");
        const tide_memory_event end = {.op = TIDE_MEM_POOL_DISCARD,
                                       .t_ns = ++s->now,
                                       .device = TIDE_CPU,
                                       .kind = TIDE_KIND_WORKSPACE,
                                       .reserved_bytes = 4096,
                                       .address = 0x7f0000000000u + (N_BLOCKS + 1) * 4096,
                                       .thread = s->f.thread,
                                       .allocator = "cpu"};
        s->f.now = s->now;
        s->f.obs.on_memory(s->f.obs.self, &end);
    }
    feed_end_run(&s->f, ++s->now);
    happen(s, N_AFTER, 3, after, 1, s->n_blocks + 1);
    feeder_close(&s->f);
    tide_host_free(s);
}

typedef struct kinds_of {
    tide_trace_kind *rows;
    size_t n;
} kinds_of;

static kinds_of ask(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    kinds_of k;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_kinds(t, 1, &k.rows, &k.n, &err), &err);
    tide_trace_close(t);
    return k;
}

static void assert_same(const kinds_of *a, const kinds_of *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const tide_trace_kind *x = &a->rows[i], *y = &b->rows[i];
        assert_int_equal(x->kind, y->kind);
        assert_string_equal(x->device, y->device);
        assert_int_equal(x->n_allocs, y->n_allocs);
        assert_int_equal(x->n_frees, y->n_frees);
        assert_int_equal(x->requested_bytes, y->requested_bytes);
        assert_int_equal(x->peak_bytes, y->peak_bytes);
        assert_int_equal(x->peak_reserved_bytes, y->peak_reserved_bytes);
        assert_int_equal(x->live_at_end_bytes, y->live_at_end_bytes);
    }
}

/// Without the note that the sums are equal they are not used: the run is walked through.
static void both_ways(uint64_t seed, bool discards) {
    tmp_dir d;
    tmp_dir_make(&d);
    record(d.file, seed, discards);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'totals'", "equal\n");
    kinds_of by_sums = ask(d.file);
    sql_exec(d.file, "DELETE FROM meta WHERE key = 'totals'");
    kinds_of by_walk = ask(d.file);
    assert_same(&by_sums, &by_walk);
    assert_int_equal(by_walk.n, 4); // of KVCache nothing lived in the run
    tide_trace_kinds_free(by_sums.rows);
    tide_trace_kinds_free(by_walk.rows);
    tmp_dir_remove(&d);
}

static void sums_less_the_outside(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) both_ways(seed, false);
}

/// No producer counts the frees of a discard.
static void discarded_blocks(void **state) {
    (void)state;
    both_ways(7, true);
}

/// That way is taken: sums that were changed in the file show.
static void sums_are_used(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    record(d.file, 5, false);
    const kinds_of before = ask(d.file);
    sql_exec(d.file, "UPDATE total SET requested_bytes = requested_bytes + 1");
    const kinds_of after = ask(d.file);
    assert_int_equal(after.rows[0].requested_bytes, before.rows[0].requested_bytes + 1);
    // Fewer than there are outside of the run: no recorder wrote that.
    sql_exec(d.file, "UPDATE total SET requested_bytes = 0");
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    tide_trace_kind *rows = NULL;
    size_t n;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_status(tide_trace_kinds(t, 1, &rows, &n, &err), TIDE_ERR_BAD_INPUT);
    tide_trace_close(t);
    tide_trace_kinds_free(before.rows);
    tide_trace_kinds_free(after.rows);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(sums_less_the_outside),
        tide_unit_test(discarded_blocks),
        tide_unit_test(sums_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
