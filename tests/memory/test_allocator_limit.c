// SPDX-License-Identifier: MIT
//
// limit: what counts, what is said when it does not fit, and a budget that several allocators share. What it shares
// with every allocator is in test_allocator_conformance_wrapped.c.
#include <stdatomic.h>

#include "core/device/backend.h"
#include "memory_test.h"

static tide_allocator *make_limit(tide_allocator *inner, uint64_t budget_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_limit_create(inner, budget_bytes, &a, &err), &err);
    return a;
}

static tide_status try(tide_allocator *a, size_t size_bytes, tide_memory *mem, tide_error *err) {
    const tide_alloc_request req = {.size_bytes = size_bytes, .tag = "conv1.out"};
    return tide_allocator_alloc(a, &req, mem, err);
}

static uint64_t left(const tide_allocator *a) { return stats_of(a).headroom_bytes; }

/// To the byte: the budget can be used up and not a byte more, and inner is not asked for what is refused (S28-4).
static void the_budget_is_exact(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu(), *a = make_limit(cpu, 4096);
    assert_true(left(a) == 4096);
    const tide_memory one = take(a, 3000, 0); // 3008 with its rounding to 64
    assert_true(left(a) == 4096 - 3008);
    const tide_allocator_stats before = stats_of(cpu);
    tide_memory two = {0}, none = {0};
    assert_tide_status(try(a, 1200, &none, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "'conv1.out' needs 1200 B, 1088 B left of a budget of 4096 B (3008 B in use)");
    assert_text_has(err.note, "'cpu'");
    const tide_allocator_stats after = stats_of(cpu);
    assert_memory_equal(&after, &before, sizeof after);
    assert_true(stats_of(a).n_failed == 1);
    assert_tide_ok(try(a, 1088, &two, &err), &err);
    assert_true(left(a) == 0);
    assert_tide_status(try(a, 1, &none, NULL), TIDE_ERR_NOMEM);
    give(a, &one);
    assert_true(left(a) == 3008);
    assert_true(stats_of(a).active_bytes == 1088 && stats_of(a).n_failed == 2);
    give(a, &two);
    assert_true(left(a) == 4096);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

/// 100 bytes take 128 of "cpu": they do not fit into 100, nothing stays charged, and the rounding is named.
static void rounding_counts(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu(), *a = make_limit(cpu, 100);
    tide_memory mem = {0};
    assert_tide_status(try(a, 100, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "needs 128 B, 100 B left of a budget of 100 B");
    assert_text_has(err.note, "100 B were asked for");
    assert_null(mem.data);
    assert_true(left(a) == 100);
    assert_true(stats_of(cpu).requested_bytes == 0 && stats_of(cpu).active_bytes == 0);
    assert_tide_ok(try(a, 64, &mem, &err), &err);
    assert_true(left(a) == 36);
    give(a, &mem);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

/// What inner keeps is not counted, and is not said to be free beyond what is left.
static void cached_bytes_are_not_counted(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *caching = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&caching, &err), &err);
    tide_allocator *a = make_limit(caching, 8192);
    tide_memory big = take(a, 8192, 0);
    give(a, &big);
    assert_true(left(a) == 8192 && stats_of(a).cached_bytes == 8192 && stats_of(a).largest_free_bytes == 8192);
    const tide_memory small = take(a, 4096, 0);
    assert_true(left(a) == 4096 && stats_of(a).largest_free_bytes <= 4096);
    assert_tide_status(try(a, 8192, &big, NULL), TIDE_ERR_NOMEM); // cached, and beyond the budget all the same
    give(a, &small);
    big = take(a, 8192, 0);
    give(a, &big);
    tide_allocator_unref(a);
    tide_allocator_unref(caching);
}

static void one_budget_for_two(void **state) { // LT-40
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu(), *caching = NULL, *second = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&caching, &err), &err);
    tide_allocator *first = make_limit(cpu, 4096);
    assert_tide_ok(tide_limit_create_shared(caching, first, &second, &err), &err);
    const tide_memory one = take(first, 2048, 0), two = take(second, 1024, 0);
    assert_true(left(first) == 1024 && left(second) == 1024);
    tide_memory none = {0};
    assert_tide_status(try(second, 2048, &none, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "1024 B left of a budget of 4096 B (3072 B in use)");
    assert_text_has(err.note, "2 allocators share this budget");
    // The budget lives as long as an allocator uses it.
    give(first, &one);
    tide_allocator_unref(first);
    assert_true(left(second) == 3072);
    give(second, &two);
    assert_true(left(second) == 4096);
    assert_tide_status(tide_limit_create_shared(cpu, cpu, &first, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'cpu' has no budget");
    tide_allocator_unref(second);
    tide_allocator_unref(caching);
    tide_allocator_unref(cpu);
}

/// max_bytes is the smaller of the two; a budget of 0 lets nothing through; an inner limit still holds.
static void limits_nest(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu(), *inner = make_limit(cpu, 1024), *outer = make_limit(inner, 4096);
    tide_allocator *nothing = make_limit(outer, 0);
    tide_allocator_props p;
    tide_allocator_get_props(outer, &p);
    assert_true(p.max_bytes == 1024 && left(outer) == 1024);
    tide_memory mem = {0};
    assert_tide_status(try(outer, 2048, &mem, NULL), TIDE_ERR_NOMEM);
    assert_true(left(outer) == 1024);
    assert_tide_status(try(nothing, 1, &mem, NULL), TIDE_ERR_NOMEM);
    mem = take(outer, 1024, 0);
    assert_true(left(outer) == 0);
    give(outer, &mem);
    assert_true(left(outer) == 1024);
    tide_allocator_unref(nothing);
    tide_allocator_unref(outer);
    tide_allocator_unref(inner);
    tide_allocator_unref(cpu);
}

static void wait_for_the_flag(void *arg) {
    while (!atomic_load((atomic_bool *)arg)) sched_yield();
}

/// A block that a stream still uses is still taken: its bytes come back when the stream is done (LT-35).
static void pending_blocks_count(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *streams = NULL;
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &streams, &err), &err);
    tide_allocator *a = make_limit(streams, 1 << 20);
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    atomic_bool go = false;
    const tide_memory mem = take(a, 600 << 10, 0);
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, wait_for_the_flag, &go, &err), &err);
    tide_allocator_record_use(a, &mem, stream);
    give(a, &mem);
    assert_true(stats_of(a).n_pending == 1);
    assert_true(left(a) == (1 << 20) - mem.reserved_bytes);
    atomic_store(&go, true);
    // A request that needs the room waits for the stream before it is refused.
    const tide_memory next = take(a, 600 << 10, 0);
    assert_true(stats_of(a).n_pending == 0);
    give(a, &next);
    assert_true(left(a) == 1 << 20);
    tide_stream_destroy(TIDE_CPU, stream);
    tide_allocator_unref(a);
    tide_allocator_unref(streams);
}

/// The same when only the rounding lacks room: what is pending is waited for before that is refused, too.
static void rounding_waits_for_pending_blocks(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *streams = NULL;
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &streams, &err), &err);
    tide_allocator *a = make_limit(streams, 1024 + 100); // blocks of 512
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    const tide_memory mem = take(a, 1000, 0);
    assert_true(left(a) == 100);
    atomic_bool go = false;
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, wait_for_the_flag, &go, &err), &err);
    tide_allocator_record_use(a, &mem, stream);
    give(a, &mem);
    assert_true(stats_of(a).n_pending == 1 && left(a) == 100);
    atomic_store(&go, true);
    const tide_memory next = take(a, 100, 0); // 100 are left, 512 are taken
    assert_true(next.reserved_bytes == 512 && left(a) == 1024 + 100 - 512);
    give(a, &next);
    assert_true(left(a) == 1024 + 100);
    tide_stream_destroy(TIDE_CPU, stream);
    tide_allocator_unref(a);
    tide_allocator_unref(streams);
}

enum { N_THREADS = 8, N_ROUNDS = 60000, BUDGET = 64 * 40 };

typedef struct race {
    tide_allocator *a;
    pthread_barrier_t start;
    _Atomic int64_t out_bytes;
    _Atomic int n_refused, n_beyond;
} race;

static void *race_run(void *arg) {
    race *r = arg;
    pthread_barrier_wait(&r->start);
    for (int i = 0; i < N_ROUNDS; i++) {
        tide_memory mem[3] = {{0}};
        for (int j = 0; j < 3; j++) {
            if (try(r->a, (size_t)(1 + (i + j) % 7 * 64), &mem[j], NULL) != TIDE_OK) {
                atomic_fetch_add(&r->n_refused, 1);
                continue;
            }
            const int64_t size = (int64_t)mem[j].reserved_bytes;
            if (atomic_fetch_add(&r->out_bytes, size) + size > BUDGET) atomic_fetch_add(&r->n_beyond, 1);
        }
        for (int j = 0; j < 3; j++) {
            atomic_fetch_sub(&r->out_bytes, (int64_t)mem[j].reserved_bytes);
            if (mem[j].data != NULL) give(r->a, &mem[j]);
        }
    }
    return NULL;
}

/// Eight threads want more than there is: never more than the budget is out, and in the end all of it is there again.
static void threads_never_pass_the_budget(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu();
    static race r;
    memset(&r, 0, sizeof r);
    r.a = make_limit(cpu, BUDGET);
    assert_int_equal(pthread_barrier_init(&r.start, NULL, N_THREADS), 0);
    // What each thread holds is more than its share, so some are refused however they run.
    const tide_memory held = take(r.a, BUDGET / 2, 0);
    atomic_store(&r.out_bytes, (int64_t)held.reserved_bytes);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, race_run, &r), 0);
    for (int i = 0; i < 100; i++) assert_sound(r.a);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&r.start);
    assert_int_equal(r.n_beyond, 0);
    assert_true(stats_of(r.a).n_failed == (uint64_t)r.n_refused);
    give(r.a, &held);
    assert_true(left(r.a) == BUDGET);
    assert_sound(r.a);
    tide_allocator_unref(r.a);
    tide_allocator_unref(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_budget_is_exact),
        tide_unit_test(rounding_counts),
        tide_unit_test(cached_bytes_are_not_counted),
        tide_unit_test(one_budget_for_two),
        tide_unit_test(limits_nest),
        tide_unit_test(pending_blocks_count),
        tide_unit_test(rounding_waits_for_pending_blocks),
        tide_unit_test(threads_never_pass_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
