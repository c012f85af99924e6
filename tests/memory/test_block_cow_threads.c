// SPDX-License-Identifier: MIT
//
// Copy-on-write under threads (PT-22): counting and copying are one atomic step; no copy is made in a parallel section.
#include <time.h>

#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "cow_test.h"

// PT-22: no copy inside a parallel section; what needs none is allowed there, and sections nest.
static void parallel_sections_do_not_copy(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = make_block(a, "w"), *twin = lazy_clone(b), *plain = make_block(a, NULL);
    void *w = NULL;
    tide_parallel_enter();
    tide_parallel_enter();
    assert_tide_status(tide_block_write(twin, &w, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "parallel");
    tide_parallel_leave();
    assert_tide_status(tide_block_write(twin, &w, &err), TIDE_ERR_BUSY);
    assert_null(w);
    assert_int_equal(tide_block_get_state(twin), TIDE_BLOCK_SHARED);
    const void *r = NULL;
    assert_tide_ok(tide_block_read(twin, &r, &err), &err);
    fill_block(plain, 1);
    tide_block_unref(b);
    fill_block(twin, 2); // the last owner copies nothing
    tide_parallel_leave();

    b = lazy_clone(twin);
    fill_block(twin, 3);
    tide_parallel_leave(); // one too many does no harm
    tide_parallel_enter();
    tide_block *more = lazy_clone(b);
    assert_tide_status(tide_block_write(b, &w, &err), TIDE_ERR_BUSY);
    tide_parallel_leave();
    tide_block_unref(more);
    tide_block_unref(b);
    tide_block_unref(twin);
    tide_block_unref(plain);
    tide_allocator_unref(a);
}

enum { N_THREADS = 8, N_ROUNDS = 50 };

typedef struct worker {
    pthread_barrier_t *start;
    tide_block *mine;
    int byte;
    bool good;
} worker;

static bool all_bytes(const tide_block *b, int byte) {
    const unsigned char *p = tide_block_address(b);
    for (size_t i = 0; i < b->mem.requested_bytes; i++) {
        if (p[i] != byte) return false;
    }
    return true;
}

static bool write_mine(tide_block *b, int byte) {
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    if (!all_bytes(b, 77) || tide_block_write(b, &p, &err) != TIDE_OK || !all_bytes(b, 77)) return false;
    memset(p, byte, b->mem.requested_bytes);
    return all_bytes(b, byte);
}

static void *write_clone(void *arg) {
    worker *w = arg;
    pthread_barrier_wait(w->start);
    w->good = write_mine(w->mine, w->byte);
    return NULL;
}

/// Workers in threads at once, each with a clone of its own of `b`.
static void run_workers(tide_block *b, void *(*work)(void *), bool cloned, worker *workers) {
    pthread_t threads[N_THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
        workers[i] = (worker){.start = &start, .mine = cloned ? lazy_clone(b) : b, .byte = 100 + i};
    if (cloned) tide_block_unref(b);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < N_THREADS; i++) assert_true(workers[i].good);
}

// PT-22: 8 threads write 8 clones at once: each keeps its own bytes, and there are exactly 7 copies, however they meet.
static void clones_are_written_by_threads(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    for (int round = 0; round < N_ROUNDS; round++) {
        worker workers[N_THREADS];
        tide_block *b = NULL;
        assert_tide_ok(tide_block_create(a, 20000, 0, TIDE_KIND_DEFAULT, 0, "w", &b, &err), &err);
        void *p = NULL;
        assert_tide_ok(tide_block_write(b, &p, &err), &err);
        memset(p, 77, 20000);
        const uint64_t copies = tide_block_n_copies();
        run_workers(b, write_clone, true, workers);
        assert_true(tide_block_n_copies() - copies == N_THREADS - 1);
        for (int i = 0; i < N_THREADS; i++) {
            assert_true(all_bytes(workers[i].mine, 100 + i)); // also after the others wrote
            assert_int_equal(tide_block_get_state(workers[i].mine), TIDE_BLOCK_MATERIALIZED);
            tide_block_unref(workers[i].mine);
        }
        assert_int_equal(stats_of(a).reserved_bytes, 0);
    }
    tide_allocator_unref(a);
}

static void *clone_and_write(void *arg) {
    worker *w = arg;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *twin = NULL;
    pthread_barrier_wait(w->start);
    w->good = tide_block_lazy_clone(w->mine, 0, &twin, &err) == TIDE_OK && twin != NULL;
    if (!w->good) return NULL;
    // Every other one dies unwritten, so that deaths and copies meet.
    w->good = w->byte % 2 == 0 ? write_mine(twin, w->byte) : all_bytes(twin, 77);
    tide_block_unref(twin);
    return NULL;
}

// PT-22: threads that clone one block at the same moment share one context with it, and leave it as they please.
static void one_block_is_cloned_by_threads(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    for (int round = 0; round < N_ROUNDS; round++) {
        worker workers[N_THREADS];
        tide_block *b = NULL;
        assert_tide_ok(tide_block_create(a, 5000, 0, TIDE_KIND_DEFAULT, 0, "w", &b, &err), &err);
        void *p = NULL;
        assert_tide_ok(tide_block_write(b, &p, &err), &err);
        memset(p, 77, 5000);
        run_workers(b, clone_and_write, false, workers);
        assert_true(all_bytes(b, 77));
        const uint64_t copies = tide_block_n_copies();
        assert_tide_ok(tide_block_write(b, &p, &err), &err); // alone again
        assert_true(tide_block_n_copies() == copies);
        tide_block_unref(b);
        assert_int_equal(stats_of(a).reserved_bytes, 0);
    }
    tide_allocator_unref(a);
}

static void *write_part(void *arg) {
    worker *w = arg;
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    pthread_barrier_wait(w->start);
    w->good = tide_block_write(w->mine, &p, &err) == TIDE_OK;
    if (w->good) memset((char *)p + (w->byte - 100) * 10, w->byte, 10);
    return NULL;
}

// Threads that write parts of one block, through views, settle it once between them.
static void one_block_is_settled_once(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    for (int round = 0; round < N_ROUNDS; round++) {
        worker workers[N_THREADS];
        tide_block *b = make_block(a, "w");
        fill_block(b, 77);
        tide_block *twin = lazy_clone(b);
        const uint64_t copies = tide_block_n_copies();
        run_workers(twin, write_part, false, workers);
        assert_true(tide_block_n_copies() - copies == 1);
        assert_filled(b, 77);
        const unsigned char *p = tide_block_address(twin);
        for (int i = 0; i < N_THREADS * 10; i++) assert_int_equal(p[i], 100 + i / 10);
        tide_block_unref(b);
        tide_block_unref(twin);
    }
    tide_allocator_unref(a);
}

// ---- a copy that takes its time ----

/// Plain memory; from the second allocation on each stays in the door until another one comes too, or 300 ms are over.
typedef struct door {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_allocs, n_inside, n_releases;
    bool second_fails;
} door;

static void wait_in_door(door *d) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 300 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    d->n_inside++;
    pthread_cond_broadcast(&d->changed);
    while (d->n_inside < 2 && pthread_cond_timedwait(&d->changed, &d->lock, &until) == 0) {
    }
}

static tide_status door_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    door *d = self;
    pthread_mutex_lock(&d->lock);
    const int n = ++d->n_allocs;
    if (n > 1) wait_in_door(d);
    pthread_mutex_unlock(&d->lock);
    out->data = n == 2 && d->second_fails ? NULL : aligned_alloc(256, 256);
    return out->data != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no %zu B behind the door", req->size_bytes);
}
static void door_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    __atomic_fetch_add(&((door *)self)->n_releases, 1, __ATOMIC_RELAXED);
    free(mem->data);
}
static void door_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){0};
}
static void door_destroy(void *self) { (void)self; }
static const tide_allocator_ops door_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                            .name = "door",
                                            .alloc = door_alloc,
                                            .release = door_release,
                                            .stats = door_stats,
                                            .destroy = door_destroy};

static void *write_slowly(void *arg) {
    worker *w = arg;
    w->good = write_mine(w->mine, w->byte);
    return NULL;
}

/// One of two owners is copying when the other one writes too. @return how many copies were made
static uint64_t two_writers_meet(door *d, tide_block *b, tide_block *twin, worker *first) {
    pthread_t thread;
    const uint64_t copies = tide_block_n_copies();
    *first = (worker){.mine = twin, .byte = 1};
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, first), 0);
    pthread_mutex_lock(&d->lock);
    while (d->n_inside == 0) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    assert_true(write_mine(b, 2));
    pthread_join(thread, NULL);
    assert_true(all_bytes(b, 2));
    return tide_block_n_copies() - copies;
}

// PT-19, PT-22: the last one waits for the copy of the other and takes the bytes; when that copy fails it is not the
// last, copies itself, and the one that failed still has the old bytes.
static void last_owner_waits_for_copiers(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        door d = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .second_fails = fails == 1};
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_ok(tide_allocator_create(&door_ops, &d, TIDE_CPU, &a, &err), &err);
        tide_block *b = make_block(a, "w");
        fill_block(b, 77);
        const void *const old = tide_block_address(b);
        tide_block *twin = lazy_clone(b);
        worker first;
        assert_true(two_writers_meet(&d, b, twin, &first) == 1);
        assert_true(first.good == (fails == 0));
        assert_true(all_bytes(twin, fails == 1 ? 77 : 1));
        assert_ptr_equal(tide_block_address(fails == 1 ? twin : b), old);
        assert_int_equal(tide_block_get_state(twin), fails == 1 ? TIDE_BLOCK_SHARED : TIDE_BLOCK_MATERIALIZED);
        tide_block_unref(b);
        tide_block_unref(twin);
        tide_allocator_unref(a);
        assert_int_equal(d.n_releases, 2);
    }
}

// PT-22: the CPU's streams are real: a copy is made behind what is queued there, and a clone for another stream
// refused.
static void copies_keep_the_order_of_the_stream(void **state) {
    (void)state;
    enum { N_FILLS = 2000, N_FILL_BYTES = 64 * 1024 };
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id stream = 0;
    tide_allocator *cpu = NULL;
    tide_block *b = NULL, *twin = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    assert_tide_ok(tide_block_create(cpu, N_FILL_BYTES, 0, TIDE_KIND_DEFAULT, stream, "w", &b, &err), &err);
    void *w = NULL;
    assert_tide_ok(tide_block_write(b, &w, &err), &err);
    for (int i = 1; i <= N_FILLS; i++)
        assert_tide_ok(
            tide_device_fill(TIDE_CPU, stream, w, (unsigned char)(i == N_FILLS ? 200 : i % 100), N_FILL_BYTES, &err),
            &err);
    assert_tide_status(tide_block_lazy_clone(b, 0, &twin, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_block_lazy_clone(b, stream, &twin, &err), &err);
    assert_tide_ok(tide_block_write(twin, &w, &err), &err);
    assert_true(all_bytes(twin, 200));
    tide_block_unref(b);
    tide_block_unref(twin);
    tide_stream_destroy(TIDE_CPU, stream);
    tide_allocator_unref(cpu);
}

static void *settle_slowly(void *arg) {
    worker *w = arg;
    w->good = tide_block_materialize(w->mine, NULL) == TIDE_OK;
    // With a byte: fix the address too, mostly before a thread that waits for the block's lock has checked again.
    const tide_status st = w->byte != 0 ? tide_block_fix(w->mine, NULL) : TIDE_OK;
    (void)st; // BUSY where the clone came first
    return NULL;
}

// PT-21, PT-22: a clone that begins while another thread settles the block, and perhaps fixes it then, sees what it is
// afterwards: it fails for want of memory only, and a fixed block is never shared.
static void cloned_while_settled_and_fixed(void **state) {
    (void)state;
    for (int fixes = 0; fixes < 2; fixes++) {
        door d = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        pthread_t thread;
        assert_tide_ok(tide_allocator_create(&door_ops, &d, TIDE_CPU, &a, &err), &err);
        tide_block *b = make_block(a, "w"), *first = lazy_clone(b), *twin = NULL;
        worker w = {.mine = b, .byte = fixes};
        assert_int_equal(pthread_create(&thread, NULL, settle_slowly, &w), 0);
        pthread_mutex_lock(&d.lock);
        while (d.n_inside == 0) pthread_cond_wait(&d.changed, &d.lock);
        pthread_mutex_unlock(&d.lock);
        assert_tide_ok(tide_block_lazy_clone(b, 0, &twin, &err), &err); // waits until the copy is made
        pthread_join(thread, NULL);
        assert_true((twin != NULL) == !b->fixed);
        if (fixes == 0) assert_true(w.good && twin != NULL);
        tide_block_unref(first);
        tide_block_unref(twin);
        tide_block_unref(b);
        tide_allocator_unref(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(copies_keep_the_order_of_the_stream), tide_unit_test(parallel_sections_do_not_copy),
        tide_unit_test(clones_are_written_by_threads),       tide_unit_test(one_block_is_cloned_by_threads),
        tide_unit_test(one_block_is_settled_once),           tide_unit_test(last_owner_waits_for_copiers),
        tide_unit_test(cloned_while_settled_and_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
