// SPDX-License-Identifier: MIT
//
// The instrumented allocator: every event, with everything in it, in the right order, with one thread and with eight.
#include "memory_test.h"

static tide_allocator *wrap(tide_allocator *inner, const tide_observer *obs) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_instrumented_create(inner, obs, &a, &err), &err);
    return a;
}

static void every_field_of_every_event(void **state) {
    (void)state;
    static listener l;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *cpu = make_cpu(), *a = wrap(cpu, &obs);
    assert_string_equal(tide_allocator_name(a), "instrumented");

    const uint64_t before_ns = tide_now_ns();
    tide_scope conv = {.name = "conv1", .kind = TIDE_SCOPE_OPERATOR, .index = 3};
    tide_block *b = NULL;
    tide_scope_enter(&conv, NULL);
    assert_tide_ok(tide_block_create(a, 1000, 0, TIDE_KIND_WORKSPACE, 9, "conv1.out", &b, &err), &err);
    tide_scope_leave(&conv, NULL);
    const uint64_t id = b->id, address = (uint64_t)(uintptr_t)b->mem.data;
    b->last_stream = 4;
    tide_block_unref(b);
    const uint64_t after_ns = tide_now_ns();

    assert_int_equal(l.n, 3);
    static const tide_memory_op ops[3] = {TIDE_MEM_ALLOC, TIDE_MEM_FREE_REQUESTED, TIDE_MEM_FREE_COMPLETED};
    uint64_t last_ns = before_ns;
    for (int i = 0; i < 3; i++) {
        const heard_event *h = &l.events[i];
        assert_int_equal(h->event.op, ops[i]);
        assert_true(h->event.t_ns >= last_ns && h->event.t_ns <= after_ns);
        last_ns = h->event.t_ns;
        assert_true(h->event.block_id == id);
        assert_true(tide_device_equal(h->event.device, TIDE_CPU));
        assert_int_equal(h->event.kind, TIDE_KIND_WORKSPACE);
        assert_int_equal(h->event.stream, i == 0 ? 9 : 4);
        assert_int_equal(h->event.requested_bytes, 1000);
        assert_int_equal(h->event.reserved_bytes, 1024);
        assert_true(h->event.address == address);
        assert_int_equal(h->event.thread, tide_thread_id());
        assert_string_equal(h->allocator, "cpu"); // the inner one's name
        assert_string_equal(h->tag, "conv1.out");
        assert_string_equal(h->scope, i == 0 ? "conv1" : "(none)");
    }
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

/// Looks at the numbers of an oom while they are there.
typedef struct oom_reader {
    listener *to;
    tide_allocator_stats stats;
    bool has_stats;
} oom_reader;

static void read_oom(void *self, const tide_memory_event *event) {
    oom_reader *r = self;
    r->has_stats = event->stats != NULL;
    if (r->has_stats) r->stats = *event->stats;
    listener_on_memory(r->to, event);
}

static void failed_attempts_are_events_too(void **state) {
    (void)state;
    static listener l;
    tide_error err = TIDE_ERROR_INIT;
    (void)listener_observer(&l);
    oom_reader reader = {.to = &l};
    const tide_observer obs = {.self = &reader, .on_memory = read_oom};
    tide_allocator *cpu = make_cpu(), *arena = NULL;
    assert_tide_ok(tide_arena_create(cpu, 4096, 64, &arena, &err), &err);
    tide_allocator *a = wrap(arena, &obs);
    tide_block *b = NULL;
    assert_tide_status(tide_block_create(a, 5000, 0, TIDE_KIND_KV_CACHE, 2, "greedy", &b, &err), TIDE_ERR_NO_SPACE);
    assert_int_equal(l.n, 1);
    const heard_event *h = &l.events[0];
    assert_int_equal(h->event.op, TIDE_MEM_OOM);
    assert_int_equal(h->event.requested_bytes, 5000);
    assert_int_equal(h->event.kind, TIDE_KIND_KV_CACHE);
    assert_int_equal(h->event.stream, 2);
    assert_true(h->event.block_id == 0 && h->event.address == 0 && h->event.reserved_bytes == 0);
    assert_string_equal(h->allocator, "arena");
    assert_string_equal(h->tag, "greedy");
    assert_true(h->event.align_bytes == tide_memory_kind_alignment(TIDE_KIND_KV_CACHE, TIDE_CPU));
    assert_true(reader.has_stats && reader.stats.n_failed == 1 && reader.stats.largest_free_bytes == 4096);
    tide_memory small = take(a, 100, 64);
    assert_false(reader.has_stats); // for an oom only
    give(a, &small);
    l.n = 1;
    // A request that makes no sense never reached the allocator: no event.
    const tide_alloc_request nothing = {.size_bytes = 0};
    tide_memory mem;
    assert_tide_status(tide_allocator_alloc(a, &nothing, &mem, &err), TIDE_ERR_INVALID);
    assert_int_equal(l.n, 1);
    tide_allocator_unref(a);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

static void the_rest_is_the_inner_allocators(void **state) {
    (void)state;
    static listener l;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *cpu = make_cpu(), *arena = NULL, *caching = NULL;
    assert_tide_ok(tide_arena_create(cpu, 4096, 64, &arena, &err), &err);
    tide_allocator *a = wrap(arena, &obs);
    tide_memory mem = take(a, 100, 64);
    const tide_allocator_stats outer = stats_of(a), inner = stats_of(arena);
    assert_memory_equal(&outer, &inner, sizeof outer);
    assert_tide_status(tide_allocator_reset(a, &err), TIDE_ERR_BUSY);
    give(a, &mem);
    assert_tide_ok(tide_allocator_reset(a, &err), &err);
    assert_true(stats_of(arena).active_bytes == 0);
    tide_allocator_unref(a);
    tide_allocator_unref(arena);

    assert_tide_ok(tide_cpu_caching_allocator_create(&caching, &err), &err);
    a = wrap(caching, &obs);
    assert_tide_status(tide_allocator_reset(a, &err), TIDE_ERR_NOT_IMPLEMENTED);
    mem = take(a, 100, 64);
    give(a, &mem);
    assert_true(stats_of(a).cached_bytes == 128);
    tide_allocator_trim(a);
    assert_true(stats_of(caching).cached_bytes == 0);
    tide_allocator_unref(a);

    const tide_observer mute = {0};
    a = NULL;
    assert_tide_status(tide_instrumented_create(caching, &mute, &a, &err), TIDE_ERR_INVALID);
    assert_null(a);
    tide_allocator_unref(caching);
    tide_allocator_unref(cpu);
}

/// The stream of events, replayed by a plain list, gives what is out after every step: one event dropped, doubled or
/// with another size makes this red.
static void the_events_give_the_live_bytes(void **state) {
    (void)state;
    static listener l;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *cpu = make_cpu(), *a = wrap(cpu, &obs);
    tide_rng rng = {77};
    tide_block *blocks[20] = {0};
    size_t n_blocks = 0, replayed = 0;
    uint64_t out_ids[64] = {0};
    size_t n_out = 0;
    uint64_t out_bytes = 0;
    for (int step = 0; step < 1000; step++) {
        tide_block **slot = &blocks[tide_rng_below(&rng, 20)];
        if (*slot != NULL) {
            tide_block_unref(*slot);
            *slot = NULL;
            n_blocks--;
        } else {
            const size_t size = 1 + (size_t)tide_rng_below(&rng, 5000);
            assert_tide_ok(tide_block_create(a, size, 0, TIDE_KIND_DEFAULT, 0, "t", slot, &err), &err);
            n_blocks++;
        }
        for (; replayed < l.n; replayed++) {
            const tide_memory_event *e = &l.events[replayed].event;
            size_t at = 0;
            while (at < n_out && out_ids[at] != e->block_id) at++;
            if (e->op == TIDE_MEM_ALLOC) {
                assert_int_equal(at, n_out);
                out_ids[n_out++] = e->block_id;
                out_bytes += e->requested_bytes;
            } else {
                assert_true(at < n_out);
                if (e->op == TIDE_MEM_FREE_REQUESTED) {
                    assert_true(replayed + 1 < l.n);
                    assert_int_equal(l.events[replayed + 1].event.op, TIDE_MEM_FREE_COMPLETED);
                    continue;
                }
                assert_int_equal(l.events[replayed - 1].event.op, TIDE_MEM_FREE_REQUESTED);
                out_ids[at] = out_ids[--n_out];
                out_bytes -= e->requested_bytes;
            }
        }
        assert_int_equal(n_out, n_blocks);
        assert_true(out_bytes == stats_of(cpu).requested_bytes);
    }
    for (int i = 0; i < 20; i++) tide_block_unref(blocks[i]);
    assert_true(l.n < HEARD_MAX);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

// ---- order, one thread ----

/// What happened inside (capitals) and what was told of it, as it came.
typedef struct order_log {
    char text[32];
    char bytes[64];
} order_log;

static void log_char(order_log *log, char what) {
    const size_t n = strlen(log->text);
    if (n + 1 < sizeof log->text) log->text[n] = what;
}

static tide_status logging_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    log_char(self, 'A');
    if (req->align_bytes > 4096) return TIDE_FAIL(err, TIDE_ERR_INVALID, "no such alignment");
    if (req->size_bytes > 64) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "too much");
    out->data = ((order_log *)self)->bytes;
    return TIDE_OK;
}
static void logging_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)mem;
    (void)last_stream;
    log_char(self, 'R');
}
static void logging_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){0};
}
static void logging_destroy(void *self) { log_char(self, 'D'); }

static const tide_allocator_ops logging_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                               .name = "logging",
                                               .alloc = logging_alloc,
                                               .release = logging_release,
                                               .stats = logging_stats,
                                               .destroy = logging_destroy};

static void log_event(void *self, const tide_memory_event *event) {
    static const char letters[] = "?aqcsfo";
    log_char(self, letters[event->op]);
}

/// An allocation is reported after it happened, a free before the memory goes back: otherwise another thread could get
/// the address and report it first.
static void reported_in_the_order_that_threads_need(void **state) {
    (void)state;
    order_log log = {.text = ""};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *inner = NULL;
    assert_tide_ok(tide_allocator_create(&logging_ops, &log, TIDE_CPU, &inner, &err), &err);
    const tide_observer obs = {.self = &log, .on_memory = log_event};
    tide_allocator *a = wrap(inner, &obs);
    tide_allocator_unref(inner);
    const tide_memory mem = take(a, 64, 1);
    assert_string_equal(log.text, "Aa");
    give(a, &mem);
    assert_string_equal(log.text, "AaqcR");
    const tide_alloc_request greedy = {.size_bytes = 65};
    tide_memory none;
    assert_tide_status(tide_allocator_alloc(a, &greedy, &none, &err), TIDE_ERR_NOMEM);
    assert_string_equal(log.text, "AaqcRAo");
    // What the inner allocator finds senseless is no lack of memory: no event.
    const tide_alloc_request odd = {.size_bytes = 8, .align_bytes = 8192};
    assert_tide_status(tide_allocator_alloc(a, &odd, &none, &err), TIDE_ERR_INVALID);
    assert_string_equal(log.text, "AaqcRAoA");
    tide_allocator_unref(a);
    assert_string_equal(log.text, "AaqcRAoAD");
}

/// Reading the clock costs more than all the rest: who does not want the time does not pay for it.
static void no_clock_for_observers_without_time(void **state) {
    (void)state;
    static listener l;
    tide_observer obs = listener_observer(&l);
    obs.no_time = true;
    tide_allocator *cpu = make_cpu(), *a = wrap(cpu, &obs);
    tide_memory mem = take(a, 10, 1);
    give(a, &mem);
    assert_int_equal(l.n, 3);
    for (int i = 0; i < 3; i++) assert_true(l.events[i].event.t_ns == 0);
    tide_allocator_unref(a);

    // Two as one: one of them is enough.
    static listener other;
    const tide_observer wants = listener_observer(&other);
    const tide_observer_pair pair = {&obs, &wants}, pair_without = {&obs, NULL};
    const tide_observer both = tide_observer_both(&pair), without = tide_observer_both(&pair_without);
    assert_false(both.no_time);
    assert_true(without.no_time);
    a = wrap(cpu, &both);
    mem = take(a, 10, 1);
    give(a, &mem);
    assert_true(other.n == 3 && other.events[0].event.t_ns > 0);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

// ---- eight threads ----

enum { N_TRACKED = 1 << 14 };

/// What a listener may rely on while threads race: an address is never heard as allocated while it is still heard as
/// out, and the running sum is never above what the allocator really has out.
typedef struct watcher {
    pthread_mutex_t lock;
    uint64_t out[N_TRACKED]; ///< addresses heard as out, open addressing; 1: a grave
    const tide_allocator *inner;
    uint64_t sum_bytes, n_events;
    bool good;
} watcher;

static size_t slot_of(const watcher *w, uint64_t address) {
    size_t i = (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 50);
    while (w->out[i] != 0 && w->out[i] != address) i = (i + 1) % N_TRACKED;
    return i;
}

static void watch(void *self, const tide_memory_event *event) {
    watcher *w = self;
    pthread_mutex_lock(&w->lock);
    w->n_events++;
    size_t i = slot_of(w, event->address);
    if (event->op == TIDE_MEM_ALLOC) {
        if (w->out[i] == event->address) w->good = false;
        w->out[i] = event->address;
        w->sum_bytes += event->requested_bytes;
    } else if (event->op == TIDE_MEM_FREE_COMPLETED) {
        if (w->out[i] != event->address) w->good = false;
        w->out[i] = 1;
        w->sum_bytes -= event->requested_bytes;
    }
    if (w->sum_bytes > stats_of(w->inner).requested_bytes) w->good = false;
    pthread_mutex_unlock(&w->lock);
}

static void *churn(void *arg) {
    tide_allocator *a = arg;
    tide_rng rng = {(uint64_t)tide_thread_id()};
    tide_memory held[8] = {0};
    for (int step = 0; step < 700; step++) {
        tide_memory *m = &held[tide_rng_below(&rng, 8)];
        give(a, m);
        // Few sizes: addresses come back soon, in other threads too.
        const tide_alloc_request req = {.size_bytes = 64 + (size_t)tide_rng_below(&rng, 3) * 64};
        if (tide_allocator_alloc(a, &req, m, NULL) != TIDE_OK) return a;
    }
    for (int i = 0; i < 8; i++) give(a, &held[i]);
    return NULL;
}

static void order_holds_under_eight_threads(void **state) {
    (void)state;
    static watcher w;
    memset(&w, 0, sizeof w);
    pthread_mutex_init(&w.lock, NULL);
    w.good = true;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *caching = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&caching, &err), &err);
    w.inner = caching;
    const tide_observer obs = {.self = &w, .on_memory = watch};
    tide_allocator *a = wrap(caching, &obs);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, churn, a), 0);
    for (int i = 0; i < 8; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(w.good);
    assert_true(w.sum_bytes == 0);
    assert_true(w.n_events == 3 * stats_of(caching).n_allocs);
    tide_allocator_unref(a);
    tide_allocator_unref(caching);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(no_clock_for_observers_without_time), tide_unit_test(every_field_of_every_event),
        tide_unit_test(failed_attempts_are_events_too),      tide_unit_test(the_rest_is_the_inner_allocators),
        tide_unit_test(the_events_give_the_live_bytes),      tide_unit_test(reported_in_the_order_that_threads_need),
        tide_unit_test(order_holds_under_eight_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
