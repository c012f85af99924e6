// SPDX-License-Identifier: MIT
//
// stream_caching under many threads: what is on its way to or from the device while another thread runs out of memory,
// and everything at once, for the sanitizers.
#include <sched.h>
#include <stdatomic.h>

#include "core/base/text.h"
#include "core/device/device_internal.h"
#include "memory_test.h"
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

#define MIB ((size_t)1 << 20)

static tide_allocator *make_on(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_stream_caching_create(device, NULL, &a, &err), &err);
    return a;
}

// ---- memory on its way ----

static gate source_door;

/// The memory is taken, and yet the allocator does not have it.
static tide_status alloc_then_stand(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                                    tide_error *err) {
    const tide_status st = fake_mem_alloc(self, index, size_bytes, align_bytes, out, err);
    if (st == TIDE_OK) gate_pass(&source_door);
    return st;
}

/// The allocator has let go of the memory, and yet it is not back.
static void stand_then_free(void *self, int32_t index, void *ptr) {
    gate_pass(&source_door);
    fake_mem_free(self, index, ptr);
}

typedef struct asker {
    tide_allocator *a;
    size_t size_bytes;
    tide_memory mem;
    tide_status st;
    tide_error err;
    pthread_t thread;
} asker;

static void *ask(void *arg) {
    asker *x = arg;
    x->st = tide_allocator_alloc(x->a, &(tide_alloc_request){.size_bytes = x->size_bytes}, &x->mem, &x->err);
    return NULL;
}

static void *trim(void *arg) {
    tide_allocator_trim(arg);
    return NULL;
}

/// `x` asks in a thread of its own; returns when the device has refused it, as often as it will for now.
static void start_and_let_fail(asker *x) {
    const uint64_t n_before = fake_calls(FAKE_MEM_ALLOC);
    assert_int_equal(pthread_create(&x->thread, NULL, ask, x), 0);
    while (fake_calls(FAKE_MEM_ALLOC) < n_before + 2) sched_yield();
    pause_briefly();
}

/// An allocator of fake:0's memory, 20 MiB of it, on a device of its own name and calls.
static tide_allocator *make_small(tide_device_ops *ops, tide_device *device) {
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    fake_limit(20 * MIB);
    *device = (tide_device){0};
    assert_tide_ok(tide_device_register(ops, &fake, &device->type, &err), &err);
    source_door = (gate)GATE_INIT;
    return make_on(*device);
}

static void end_small(tide_allocator *a, tide_device device) {
    tide_allocator_unref(a);
    tide_device_unregister(device.type);
    fake_teardown();
}

static void rule_7_memory_on_its_way_back_is_waited_for(void **state) {
    (void)state;
    tide_device device;
    tide_device_ops ops = fake_ops;
    ops.name = "returning";
    ops.mem_free = stand_then_free;
    tide_allocator *a = make_small(&ops, &device);
    asker first = {.a = a, .size_bytes = 20 * MIB}, second = first;
    ask(&first);
    assert_tide_ok(first.st, &first.err);
    tide_allocator_release(a, &first.mem, 0);
    pthread_t trimmer;
    assert_int_equal(pthread_create(&trimmer, NULL, trim, a), 0);
    gate_wait_entered(&source_door);
    start_and_let_fail(&second);
    assert_sound(a);
    gate_open(&source_door);
    pthread_join(trimmer, NULL);
    pthread_join(second.thread, NULL);
    assert_tide_ok(second.st, &second.err);
    tide_allocator_release(a, &second.mem, 0);
    end_small(a, device);
}

static void rule_7_a_segment_that_another_thread_is_taking_serves_both(void **state) {
    (void)state;
    tide_device device;
    tide_device_ops ops = fake_ops;
    ops.name = "taking";
    ops.mem_alloc = alloc_then_stand;
    tide_allocator *a = make_small(&ops, &device);
    asker first = {.a = a, .size_bytes = 2 * MIB}, second = first; // both of the large segment that is all there is
    assert_int_equal(pthread_create(&first.thread, NULL, ask, &first), 0);
    gate_wait_entered(&source_door);
    start_and_let_fail(&second);
    gate_open(&source_door);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    assert_tide_ok(first.st, &first.err);
    assert_tide_ok(second.st, &second.err);
    assert_sound(a);
    tide_allocator_release(a, &first.mem, 0);
    tide_allocator_release(a, &second.mem, 0);
    end_small(a, device);
}

// ---- everything at once ----

enum { N_THREADS = 4, N_SHARED = 3, PER_THREAD = 400, N_HELD = 6, MAX_BYTES = 600 << 10, LIMIT_BYTES = 6 << 20 };
enum { SEGMENT_BYTES = 2 << 20 }; ///< all of them: no block is above 1 MiB

/// The CPU's streams and a few MiB of its memory, as a device type of its own.
static _Atomic int64_t left_bytes;

static tide_status small_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                               tide_error *err) {
    if (atomic_fetch_sub(&left_bytes, (int64_t)size_bytes) >= (int64_t)size_bytes)
        return tide__cpu_device_ops.mem_alloc(self, index, size_bytes, align_bytes, out, err);
    atomic_fetch_add(&left_bytes, (int64_t)size_bytes);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no %zu B left", size_bytes);
}

static void small_free(void *self, int32_t index, void *ptr) {
    tide__cpu_device_ops.mem_free(self, index, ptr);
    atomic_fetch_add(&left_bytes, SEGMENT_BYTES);
}

typedef struct job {
    unsigned char *bytes; ///< NULL: not held
    size_t n_bytes;
    unsigned char number;
    bool read_wrong; ///< written by the reading stream
    tide_memory mem;
    tide_stream_id stream;
} job;

/// Streams that are to go, for the thread that destroys them; those who filled it go on meanwhile.
typedef struct bin {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tide_stream_id streams[64];
    size_t n;
    bool closed;
} bin;

typedef struct crowd {
    tide_device device;
    tide_allocator *a;
    tide_stream_id shared[N_SHARED];
    bin bin;
    job jobs[N_THREADS][PER_THREAD];
    _Atomic uint64_t n_ok, n_refused;
} crowd;

typedef struct worker {
    crowd *c;
    size_t index;
    pthread_t thread;
} worker;

static void must(tide_status st) {
    if (st != TIDE_OK) abort();
}

static void *destroy_streams(void *arg) {
    crowd *c = arg;
    pthread_mutex_lock(&c->bin.lock);
    while (c->bin.n > 0 || !c->bin.closed) {
        if (c->bin.n == 0) {
            pthread_cond_wait(&c->bin.changed, &c->bin.lock);
            continue;
        }
        const tide_stream_id s = c->bin.streams[--c->bin.n];
        pthread_mutex_unlock(&c->bin.lock);
        tide_stream_destroy(c->device, s);
        pthread_mutex_lock(&c->bin.lock);
    }
    pthread_mutex_unlock(&c->bin.lock);
    return NULL;
}

static void throw_away(crowd *c, tide_stream_id s) {
    pthread_mutex_lock(&c->bin.lock);
    const bool fits = c->bin.n < sizeof c->bin.streams / sizeof c->bin.streams[0];
    if (fits) c->bin.streams[c->bin.n++] = s;
    pthread_cond_signal(&c->bin.changed);
    pthread_mutex_unlock(&c->bin.lock);
    if (!fits) tide_stream_destroy(c->device, s);
}

static void read_block(void *arg) {
    job *j = arg;
    for (size_t i = 0; i < j->n_bytes; i += 64) {
        if (j->bytes[i] != j->number) j->read_wrong = true;
    }
}

/// Written on one stream, read on another; then one of the two may be a stream that goes at once.
static void use_block(worker *w, job *j, tide_event_id written, tide_rng *rng) {
    crowd *c = w->c;
    const unsigned dice = (unsigned)tide_rng_below(rng, 8);
    tide_stream_id own = 0;
    if (dice < 2) must(tide_stream_create(c->device, &own, NULL));
    const tide_stream_id other = c->shared[tide_rng_below(rng, N_SHARED)];
    j->stream = dice == 0 ? own : c->shared[tide_rng_below(rng, N_SHARED)];
    const tide_stream_id reader = dice == 1 ? own : other;
    const tide_alloc_request req = {.size_bytes = j->n_bytes, .stream = j->stream};
    const tide_status st = tide_allocator_alloc(c->a, &req, &j->mem, NULL);
    atomic_fetch_add(st == TIDE_OK ? &c->n_ok : &c->n_refused, 1);
    if (st == TIDE_OK) {
        j->bytes = j->mem.data;
        must(tide_device_fill(c->device, j->stream, j->bytes, j->number, j->n_bytes, NULL));
        must(tide_event_record(c->device, written, j->stream, NULL));
        must(tide_stream_wait_event(c->device, reader, written, NULL));
        must(tide_device_call(c->device, reader, read_block, j, NULL));
        tide_allocator_record_use(c->a, &j->mem, reader);
    } else if (st != TIDE_ERR_NOMEM) {
        abort();
    }
    if (own != 0) throw_away(c, own); // from here on it is going; the block is released all the same
}

static void drop_block(const worker *w, const job *j) {
    if (j->bytes != NULL) tide_allocator_release(w->c->a, &j->mem, j->stream);
}

static void *work(void *arg) {
    worker *w = arg;
    tide_rng rng = {w->index + 1};
    tide_event_id written = 0;
    must(tide_event_create(w->c->device, &written, NULL));
    for (size_t i = 0; i < PER_THREAD; i++) {
        job *j = &w->c->jobs[w->index][i];
        *j = (job){.number = (unsigned char)(1 + tide_rng_below(&rng, 255))};
        j->n_bytes = 1 + (size_t)tide_rng_below(&rng, tide_rng_below(&rng, 4) == 0 ? MAX_BYTES : 4096);
        use_block(w, j, written, &rng);
        if (i >= N_HELD) drop_block(w, &w->c->jobs[w->index][i - N_HELD]);
        if (i % 16 == w->index) must(tide_allocator_check(w->c->a, NULL));
        if (i % 64 == 16 * w->index) tide_allocator_trim(w->c->a);
    }
    for (size_t i = PER_THREAD - N_HELD; i < PER_THREAD; i++) drop_block(w, &w->c->jobs[w->index][i]);
    tide_event_destroy(w->c->device, written);
    return NULL;
}

/// Threads that allocate, read and release, streams that come and go under them, and less memory than they want.
static void four_threads_three_streams_and_some_that_go_LT_26_LT_35(void **state) {
    (void)state;
    static crowd c;
    tide_error err = TIDE_ERROR_INIT;
    c = (crowd){.bin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    tide_device_ops ops = tide__cpu_device_ops;
    ops.name = "crowded";
    ops.mem_alloc = small_alloc;
    ops.mem_free = small_free;
    atomic_store(&left_bytes, LIMIT_BYTES);
    assert_tide_ok(tide_device_register(&ops, NULL, &c.device.type, &err), &err);
    c.a = make_on(c.device);
    for (size_t i = 0; i < N_SHARED; i++) c.shared[i] = new_stream(c.device);
    worker workers[N_THREADS];
    pthread_t destroyer;
    assert_int_equal(pthread_create(&destroyer, NULL, destroy_streams, &c), 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.c = &c, .index = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(workers[i].thread, NULL);
    pthread_mutex_lock(&c.bin.lock);
    c.bin.closed = true;
    pthread_cond_signal(&c.bin.changed);
    pthread_mutex_unlock(&c.bin.lock);
    pthread_join(destroyer, NULL);
    tide_allocator_trim(c.a);
    assert_sound(c.a);
    const tide_allocator_stats s = stats_of(c.a);
    assert_true(s.n_allocs == c.n_ok && s.n_frees == c.n_ok && s.n_failed == c.n_refused);
    assert_true(c.n_ok > 0 && c.n_refused > 0);
    assert_true(s.reserved_bytes == 0 && s.n_pending == 0 && atomic_load(&left_bytes) == LIMIT_BYTES);
    for (size_t i = 0; i < N_SHARED; i++) tide_stream_destroy(c.device, c.shared[i]);
    tide_allocator_unref(c.a);
    tide_device_unregister(c.device.type);
    for (size_t t = 0; t < N_THREADS; t++) {
        for (size_t i = 0; i < PER_THREAD; i++) assert_false(c.jobs[t][i].read_wrong);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_7_memory_on_its_way_back_is_waited_for),
        tide_unit_test(rule_7_a_segment_that_another_thread_is_taking_serves_both),
        tide_unit_test(four_threads_three_streams_and_some_that_go_LT_26_LT_35),
    };
    return cmocka_run_group_tests_name("allocator stream_caching, threads", tests, NULL, NULL);
}
