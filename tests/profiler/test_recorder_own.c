// SPDX-License-Identifier: MIT
//
// profiler/recorder_own: what a program tells of memory of its own. An address finds its block again; a double free, a
// free of nothing and an address that is live twice are problems of the trace; NULL records nothing; several threads
// tell at once; a child of fork tells nothing.
#include <pthread.h>
#include <sys/wait.h>

#include "tests/profiler/trace_fixture.h"

static tide_recorder *open_at(const tmp_dir *d) {
    tide_recorder *r;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(d->file, NULL, &r, &err), &err);
    return r;
}

static void close_it(tide_recorder *r) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_close(r, &err), &err);
}

static void an_address_finds_its_block_again(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r = open_at(&d);
    tide_scope scope = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = 3};
    tide_recorder_enter(r, &scope);
    tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, (void *)0x1000, 100, "a");
    tide_recorder_alloc(r, TIDE_KIND_PERSISTENT, (void *)0x2000, 200, "b");
    tide_recorder_free(r, (void *)0x1000);
    tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, (void *)0x1000, 0, NULL); // the same place, of no bytes
    tide_recorder_leave(r, &scope);
    tide_recorder_free(r, (void *)0x2000);
    close_it(r);
    assert_sql(d.file,
               "SELECT n.text, k.name, requested_bytes, reserved_bytes, address, free_ns IS NOT NULL FROM block "
               "LEFT JOIN name n ON n.id = tag_id JOIN kind k ON k.id = block.kind ORDER BY block.id",
               "a|Workspace|100|100|4096|1\nb|Persistent|200|200|8192|1\n|Workspace|0|0|4096|0\n");
    assert_sql(d.file,
               "SELECT DISTINCT n.text, s.step FROM event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = "
               "s.name_id WHERE e.op = 1",
               "op|3\n");
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    tmp_dir_remove(&d);
}

static void what_cannot_be_is_a_problem(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r = open_at(&d);
    tide_recorder_alloc(r, TIDE_KIND_DEFAULT, (void *)0x1000, 100, "a");
    tide_recorder_free(r, (void *)0x1000);
    tide_recorder_free(r, (void *)0x1000);                              // twice
    tide_recorder_free(r, (void *)0x9000);                              // never allocated
    tide_recorder_alloc(r, TIDE_KIND_DEFAULT, (void *)0x3000, 30, "b"); // live twice at one address
    tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, (void *)0x3000, 50, "c");
    tide_recorder_free(r, (void *)0x3000);
    tide_recorder_alloc(r, TIDE_KIND_DEFAULT, NULL, 8, "failed"); // and what is nothing at all
    tide_recorder_free(r, NULL);
    close_it(r);
    assert_sql(d.file, "SELECT p.problem, count(*) FROM problem p GROUP BY 1", "1|1\n2|2\n");
    assert_sql(d.file, "SELECT count(*) FROM event WHERE op = 1", "3\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'n_problems'", "3\n");
    tmp_dir_remove(&d);
}

static void blocks_and_segments_by_their_event(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r = open_at(&d);
    tide_memory_event segment = {.requested_bytes = 4096, .address = 0x10000, .allocator = "pool", .t_ns = 77};
    tide_memory_event block = {.kind = TIDE_KIND_KV_CACHE,
                               .device = {TIDE_DEVICE_CUDA, 1},
                               .stream = 5,
                               .requested_bytes = 1000,
                               .reserved_bytes = 1024,
                               .address = 0x10000,
                               .allocator = "pool",
                               .tag = "page"};
    tide_recorder_tell(r, TIDE_MEM_SEGMENT_ALLOC, &segment);
    tide_recorder_tell(r, TIDE_MEM_ALLOC, &block);
    assert_true(block.block_id > segment.block_id && segment.block_id > 0);
    assert_int_equal(segment.t_ns, 0);
    tide_recorder_tell(r, TIDE_MEM_FREE_REQUESTED, &block);
    tide_recorder_tell(r, TIDE_MEM_FREE_COMPLETED, &block);
    tide_recorder_tell(r, TIDE_MEM_SEGMENT_FREE, &segment);
    close_it(r);
    assert_sql(d.file,
               "SELECT o.name, d.name, e.stream, e.requested_bytes, e.reserved_bytes FROM event e JOIN op o ON o.id = "
               "e.op JOIN device d ON d.id = e.device ORDER BY e.id",
               "segment_alloc|cpu|0|4096|4096\nalloc|cuda:1|5|1000|1024\nfree_requested|cuda:1|5|1000|1024\n"
               "free_completed|cuda:1|5|1000|1024\nsegment_free|cpu|0|4096|4096\n");
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    tmp_dir_remove(&d);
}

static void null_records_nothing(void **state) {
    (void)state;
    tide_memory_event e = {.block_id = 7};
    tide_scope scope = {.name = "op"};
    tide_recorder_alloc(NULL, TIDE_KIND_DEFAULT, &e, 1, "x");
    tide_recorder_free(NULL, &e);
    tide_recorder_tell(NULL, TIDE_MEM_ALLOC, &e);
    assert_int_equal(e.block_id, 7);
    tide_recorder_enter(NULL, &scope);
    assert_null(tide_scope_current());
    tide_recorder_leave(NULL, &scope);
    tide_recorder_mark(NULL, "m");
    const tide_observer deaf = tide_recorder_observer(NULL);
    deaf.on_memory(deaf.self, &e);
    assert_null(deaf.on_scope);
}

// ---- several threads, and a child ----

enum { N_THREADS = 8, N_ROUNDS = 2000, N_OWN = 16 };

typedef struct work {
    tide_recorder *r;
    uintptr_t base;
} work;

/// Addresses of its own, N_OWN live ones at most.
static void *tell_much(void *arg) {
    const work *t = arg;
    for (uintptr_t i = 0; i < N_ROUNDS; i++) {
        const uintptr_t address = t->base + i % N_OWN * 64;
        if (i >= N_OWN) tide_recorder_free(t->r, (void *)address);
        tide_recorder_alloc(t->r, TIDE_KIND_WORKSPACE, (void *)address, i, "x");
    }
    return NULL;
}

static void threads_tell_at_once(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r = open_at(&d);
    pthread_t threads[N_THREADS];
    work works[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        works[i] = (work){r, 0x100000 * (i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, tell_much, &works[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    close_it(r);
    char expected[64];
    snprintf(expected, sizeof expected, "%d|%d\n", N_THREADS * N_ROUNDS, N_THREADS * (N_ROUNDS - N_OWN));
    assert_sql(d.file, "SELECT sum(op = 1), sum(op = 3) FROM event", expected);
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM block WHERE free_event IS NULL", "128\n");
    tmp_dir_remove(&d);
}

static void a_child_tells_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_recorder *r = open_at(&d);
    tide_recorder_alloc(r, TIDE_KIND_DEFAULT, (void *)0x1000, 10, "a");
    const pid_t child = fork();
    if (child == 0) {
        tide_recorder_free(r, (void *)0x1000);
        tide_recorder_alloc(r, TIDE_KIND_DEFAULT, (void *)0x2000, 10, "b");
        tide_recorder_mark(r, "m");
        _exit(0);
    }
    int how = 1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    close_it(r);
    assert_sql(d.file, "SELECT count(*) FROM event", "1\n");
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_address_finds_its_block_again),
                                       cmocka_unit_test(what_cannot_be_is_a_problem),
                                       cmocka_unit_test(blocks_and_segments_by_their_event),
                                       cmocka_unit_test(null_records_nothing),
                                       cmocka_unit_test(threads_tell_at_once),
                                       cmocka_unit_test(a_child_tells_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
