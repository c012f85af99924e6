// SPDX-License-Identifier: MIT
//
// A recorder behind real, instrumented allocators: the trace, a meter that heard the same, and the allocators' own
// statistics agree, from one thread and from several (LT-32, PT-26).
#include <pthread.h>

#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"
#include "core/memory/meter.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

enum { N_WORKERS = 4, N_ROUNDS = 400, N_SLOTS = 12 };

typedef struct bench {
    tmp_dir dir;
    tide_recorder *rec; ///< NULL once closed: blocks that outlive it are freed unheard
    tide_meter *meter;
    tide_observer to_rec, to_meter, both;
    tide_observer_pair pair;
    tide_allocator *inner, *outer;
} bench;

static void pass_memory(void *self, const tide_memory_event *event) {
    const bench *b = self;
    if (b->rec == NULL) return;
    const tide_observer obs = tide_recorder_observer(b->rec);
    obs.on_memory(obs.self, event);
}

static void pass_scope(void *self, const tide_scope_event *event) {
    const bench *b = self;
    if (b->rec == NULL) return;
    const tide_observer obs = tide_recorder_observer(b->rec);
    obs.on_scope(obs.self, event);
}

static void bench_open(bench *b) {
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&b->dir);
    assert_tide_ok(tide_recorder_open(b->dir.file, NULL, &b->rec, &err), &err);
    assert_tide_ok(tide_meter_create(&b->meter, &err), &err);
    b->to_rec = (tide_observer){.self = b, .on_memory = pass_memory, .on_scope = pass_scope};
    b->to_meter = tide_meter_observer(b->meter);
    b->pair = (tide_observer_pair){&b->to_rec, &b->to_meter};
    b->both = tide_observer_both(&b->pair);
    assert_tide_ok(tide_cpu_caching_allocator_create(&b->inner, &err), &err);
    assert_tide_ok(tide_instrumented_create(b->inner, &b->both, &b->outer, &err), &err);
}

static void bench_close(bench *b) {
    tide_allocator_unref(b->outer);
    tide_allocator_unref(b->inner);
    tide_meter_destroy(b->meter);
    tmp_dir_remove(&b->dir);
}

typedef struct worker {
    bench *b;
    uint64_t seed;
} worker;

static void *work(void *arg) {
    const worker *w = arg;
    tide_rng rng = {w->seed};
    tide_block *slots[N_SLOTS] = {NULL};
    tide_scope scope = {.name = "work", .kind = TIDE_SCOPE_OPERATOR, .index = (int32_t)w->seed};
    tide_scope_enter(&scope, &w->b->both);
    for (int i = 0; i < N_ROUNDS; i++) {
        tide_block **slot = &slots[tide_rng_below(&rng, N_SLOTS)];
        tide_error err = TIDE_ERROR_INIT;
        if (*slot != NULL) {
            tide_block_unref(*slot);
            *slot = NULL;
        } else if (tide_block_create(w->b->outer, 1 + (size_t)tide_rng_below(&rng, 10000), 0,
                                     (tide_memory_kind)tide_rng_below(&rng, TIDE_N_KINDS), 0, "tensor", slot,
                                     &err) != TIDE_OK) {
            return arg;
        }
    }
    // The first slot leaks until the trace is closed: live at its end.
    for (int i = 1; i < N_SLOTS; i++) tide_block_unref(slots[i]);
    tide_scope_leave(&scope, &w->b->both);
    return slots[0];
}

static void check_against_meter(const bench *b, tide_trace *t, bool is_serial) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *k;
    size_t n;
    assert_tide_ok(tide_trace_kinds(t, 1, &k, &n, &err), &err);
    uint64_t live = 0, n_allocs = 0;
    for (size_t i = 0; i < n; i++) {
        tide_meter_kind m;
        tide_meter_get(b->meter, k[i].kind, &m);
        assert_int_equal(k[i].requested_bytes, m.requested_bytes);
        assert_int_equal(k[i].n_allocs, m.n_allocs);
        assert_int_equal(k[i].n_frees, m.n_frees);
        assert_int_equal(k[i].live_at_end_bytes, m.live_bytes);
        // Two observers hear several threads in two orders: only serial peaks are the same to the byte.
        if (is_serial) assert_int_equal(k[i].peak_bytes, m.peak_bytes);
        if (is_serial) assert_int_equal(k[i].peak_reserved_bytes, m.reserved_peak_bytes);
        live += k[i].live_at_end_bytes;
        n_allocs += k[i].n_allocs;
    }
    tide_trace_kinds_free(k);
    tide_allocator_stats s;
    tide_allocator_get_stats(b->inner, &s);
    assert_int_equal(live, s.requested_bytes); // sum over kinds = the allocator's total
    assert_int_equal(n_allocs, s.n_allocs);
    if (!is_serial) return;
    uint64_t peak;
    assert_tide_ok(tide_trace_peak(t, 1, -1, &peak, NULL, &err), &err);
    assert_int_equal(peak, s.peak_requested_bytes);
}

static void run_workers(size_t n_workers) {
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    int64_t run_id;
    const tide_run_info info = {.model = "allocators", .mode = "naive", .device = "cpu"};
    assert_tide_ok(tide_recorder_begin_run(b.rec, &info, NULL, &run_id, &err), &err);
    worker workers[N_WORKERS];
    pthread_t threads[N_WORKERS];
    void *kept[N_WORKERS];
    for (size_t i = 0; i < n_workers; i++) {
        workers[i] = (worker){&b, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < n_workers; i++) pthread_join(threads[i], &kept[i]);
    for (size_t i = 0; i < n_workers; i++) assert_ptr_not_equal(kept[i], &workers[i]);

    // A request that cannot be met is heard too.
    tide_block *never = NULL;
    assert_tide_status(tide_block_create(b.outer, SIZE_MAX / 2, 0, TIDE_KIND_DEFAULT, 0, "huge", &never, NULL),
                       TIDE_ERR_NOMEM);
    assert_tide_ok(tide_recorder_end_run(b.rec, &err), &err);

    tide_trace *t;
    assert_tide_ok(tide_recorder_close(b.rec, &err), &err);
    b.rec = NULL;
    assert_tide_ok(tide_trace_open(b.dir.file, &t, &err), &err);
    check_against_meter(&b, t, n_workers == 1);
    tide_trace_close(t);
    assert_sql(b.dir.file, "SELECT requested_bytes > 1000000000, name, allocator FROM oom_attempts",
               "1|huge|cpu_caching\n");
    assert_sql(b.dir.file, "SELECT DISTINCT name, scope FROM blocks", "tensor|work\n");
    assert_sql(b.dir.file,
               "SELECT count(*) FROM block a JOIN block b ON b.alloc_event > a.alloc_event AND "
               "b.alloc_event < coalesce(a.free_event, 1 << 60) AND b.address < a.address + "
               "a.reserved_bytes AND a.address < b.address + b.reserved_bytes",
               "0\n"); // no two live blocks share a byte: order in the trace is order in the allocator
    for (size_t i = 0; i < n_workers; i++) tide_block_unref(kept[i]);
    bench_close(&b);
}

static void test_one_thread(void **state) {
    (void)state;
    run_workers(1);
}

static void test_several_threads(void **state) {
    (void)state;
    run_workers(N_WORKERS);
}

/// LT-8: every fact of a block stands in the trace that reports are made from: pointer, bytes, device, kind, owner, and
/// with its free the stream that used it last.
static void test_a_block_in_the_trace_LT_8(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    int64_t run_id;
    tide_stream_id stream;
    const tide_run_info info = {.model = "allocators", .mode = "naive", .device = "cpu"};
    assert_tide_ok(tide_recorder_begin_run(b.rec, &info, NULL, &run_id, &err), &err);
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    tide_block *block = NULL;
    assert_tide_ok(tide_block_create(b.outer, 1000, 0, TIDE_KIND_KV_CACHE, 0, "keys", &block, &err), &err);
    tide_block_record_use(block, stream);
    char blocks[128], frees[64];
    snprintf(blocks, sizeof blocks, "keys|%" PRIu64 "|1000|1024|cpu|KVCache|cpu_caching\n",
             (uint64_t)(uintptr_t)block->mem.data);
    snprintf(frees, sizeof frees, "%" PRIu64 "|%" PRIu64 "\n", block->id, (uint64_t)stream);
    tide_block_unref(block);
    tide_stream_destroy(TIDE_CPU, stream);
    assert_tide_ok(tide_recorder_end_run(b.rec, &err), &err);
    assert_tide_ok(tide_recorder_close(b.rec, &err), &err);
    b.rec = NULL;
    assert_sql(b.dir.file, "SELECT name, address, requested_bytes, reserved_bytes, device, kind, allocator FROM blocks",
               blocks);
    assert_sql(b.dir.file, "SELECT block_id, stream FROM events WHERE op = 'free_requested'", frees);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_one_thread),
        tide_unit_test(test_several_threads),
        tide_unit_test(test_a_block_in_the_trace_LT_8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
