// SPDX-License-Identifier: MIT
//
// The part of the suite in conformance.h that takes many steps: against a plain list, against an observer's sums, with
// another stream, in eight threads. Included by conformance.h only.
#ifndef TIDE_TESTS_CONFORMANCE_STEPS_H
#define TIDE_TESTS_CONFORMANCE_STEPS_H

#include <sched.h>
#include <stdatomic.h>

/// Sizes over all magnitudes alike, from 1 B to about `top`.
static size_t any_size(tide_rng *rng, size_t top) {
    size_t magnitude = 1;
    while ((magnitude << 1) <= top) magnitude <<= 1;
    unsigned bits = 0;
    while (((size_t)1 << bits) < magnitude) bits++;
    const size_t low = (size_t)1 << tide_rng_below(rng, bits + 1);
    const size_t size = low + (size_t)tide_rng_below(rng, low);
    return size < top ? size : top;
}

static size_t any_align(tide_rng *rng, uint64_t max_align_bytes) {
    const size_t align = (size_t)1 << tide_rng_below(rng, 13);
    return align < max_align_bytes ? align : (size_t)max_align_bytes;
}

/// Steps of one allocator with the truth beside it.
typedef struct walk {
    tide_allocator *a;
    tide_allocator_props props;
    size_t top_bytes;
    tide_rng rng;
    oracle o;
    uint64_t n_allocs, n_frees, n_failed, top_requested;
} walk;

static walk *walk_start(const conf_maker *m, tide_allocator *a, uint64_t seed) {
    static walk w;
    memset(&w, 0, sizeof w);
    w.a = a;
    w.props = props_of(a);
    w.top_bytes = size_within(a, m->top_bytes != 0 && m->top_bytes < 8 * MIB ? m->top_bytes : 8 * MIB);
    w.rng.state = seed;
    w.o.device = tide_allocator_device(a);
    return &w;
}

static void walk_give(walk *w, size_t at) {
    const tide_memory mem = oracle_remove(&w->o, at);
    give(w->a, &mem);
    w->n_frees++;
}

/// Give all back; room comes with it, or with the reset.
static void walk_empty(walk *w) {
    while (w->o.n > 0) walk_give(w, (size_t)tide_rng_below(&w->rng, w->o.n));
    if (w->props.needs_reset) assert_tide_status(tide_allocator_reset(w->a, NULL), TIDE_OK);
}

static void walk_take(walk *w) {
    const tide_alloc_request req = {.size_bytes = any_size(&w->rng, w->top_bytes),
                                    .align_bytes = any_align(&w->rng, w->props.max_align_bytes),
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .block_id = w->n_allocs + 1,
                                    .tag = "any"};
    tide_error err = TIDE_ERROR_INIT;
    tide_memory mem = {0};
    const tide_status st = tide_allocator_alloc(w->a, &req, &mem, &err);
    if (st == TIDE_ERR_NO_SPACE && w->props.needs_reset) {
        w->n_failed++;
        walk_empty(w);
        return;
    }
    assert_tide_ok(st, &err);
    w->n_allocs++;
    assert_true((uintptr_t)mem.data % req.align_bytes == 0);
    assert_true((uintptr_t)mem.data % w->props.align_bytes == 0);
    assert_true(mem.requested_bytes == req.size_bytes && mem.reserved_bytes >= req.size_bytes);
    assert_int_equal(mem.kind, TIDE_KIND_WORKSPACE);
    assert_true(mem.block_id == w->n_allocs);
    assert_ptr_equal(mem.tag, req.tag);
    oracle_add(&w->o, &mem, (unsigned char)(w->n_allocs + 1));
    if (w->o.requested_bytes > w->top_requested) w->top_requested = w->o.requested_bytes;
}

static void walk_step(walk *w) {
    const bool full = w->o.n > 60 || w->o.requested_bytes > 120 * MIB;
    if (!full && (w->o.n == 0 || tide_rng_below(&w->rng, 100) < 55)) {
        walk_take(w);
    } else {
        walk_give(w, (size_t)tide_rng_below(&w->rng, w->o.n));
    }
}

/// The allocator's numbers are the list's.
static void walk_assert_numbers(const walk *w) {
    const tide_allocator_stats s = stats_of(w->a);
    assert_true(s.requested_bytes == w->o.requested_bytes);
    assert_true(s.n_allocs == w->n_allocs && s.n_frees == w->n_frees && s.n_failed == w->n_failed);
    assert_true(s.peak_requested_bytes == w->top_requested);
    uint64_t held = 0;
    for (size_t i = 0; i < w->o.n; i++) held += w->o.rows[i].mem.reserved_bytes;
    if (w->props.needs_reset) {
        assert_true(s.active_bytes >= held);
    } else {
        assert_true(s.active_bytes == held);
    }
    assert_invariants(w->a);
}

/// No overlap with anything live, contents kept, numbers exact after every step, check() after every few.
static void any_order_against_the_plain_list(void **state) { // LT-21, LT-39
    tide_allocator *a = conf_make(*state);
    walk *w = walk_start(*state, a, 42);
    for (int step = 0; step < tide_test_rounds(400, 3000); step++) {
        walk_step(w);
        walk_assert_numbers(w);
        if (step % 16 == 0) assert_sound(a);
        if (step % 500 == 499) tide_allocator_trim(a);
    }
    walk_empty(w);
    walk_assert_numbers(w);
    assert_empties(a);
    tide_allocator_unref(a);
}

// ---- an observer ----

typedef struct tally {
    uint64_t n_allocs, n_requested, n_completed, n_oom, n_segments;
    uint64_t requested_bytes, active_bytes, segment_bytes; ///< allocated less freed
} tally;

static void tally_on_memory(void *self, const tide_memory_event *event) {
    tally *t = self;
    switch (event->op) {
    case TIDE_MEM_ALLOC:
        t->n_allocs++;
        t->requested_bytes += event->requested_bytes;
        t->active_bytes += event->reserved_bytes;
        break;
    case TIDE_MEM_FREE_REQUESTED:
        t->n_requested++;
        t->requested_bytes -= event->requested_bytes;
        break;
    case TIDE_MEM_FREE_COMPLETED:
        t->n_completed++;
        t->active_bytes -= event->reserved_bytes;
        break;
    case TIDE_MEM_SEGMENT_ALLOC:
        t->n_segments++;
        t->segment_bytes += event->reserved_bytes;
        break;
    case TIDE_MEM_SEGMENT_FREE:
        t->segment_bytes -= event->reserved_bytes;
        break;
    case TIDE_MEM_OOM:
        t->n_oom++;
        break;
    case TIDE_MEM_POOL_DISCARD:
    case TIDE_MEM_SNAPSHOT:
    case TIDE_MEM_DEVICE_USAGE:
    case TIDE_MEM_SIZED:
        break; // no allocator of ours tells these
    }
}

/// What an observer adds up is what the allocator says of itself, after every step (LT-32).
static void sums_of_an_observer(void **state) {
    tide_error err = TIDE_ERROR_INIT;
    const conf_maker *m = *state;
    tide_allocator *inner = conf_make(m), *a = NULL;
    tally t = {0};
    const tide_observer obs = {.self = &t, .on_memory = tally_on_memory, .no_time = true};
    assert_tide_ok(tide_instrumented_create(inner, &obs, &a, &err), &err);
    tide_allocator_unref(inner);
    walk *w = walk_start(*state, a, 7);
    for (int step = 0; step < tide_test_rounds(140, 800); step++) {
        walk_step(w);
        if (step % 100 == 50) tide_allocator_trim(a);
        const tide_allocator_stats s = stats_of(a);
        assert_true(t.requested_bytes == s.requested_bytes);
        assert_true(w->props.needs_reset || t.active_bytes == s.active_bytes);
        assert_true(t.n_allocs == s.n_allocs && t.n_requested == s.n_frees && t.n_oom == s.n_failed);
        assert_true(t.n_segments == 0 || t.segment_bytes == s.reserved_bytes);
    }
    assert_true(!w->props.stream_aware || m->driver_pool || t.n_segments > 0);
    walk_empty(w);
    assert_empties(a);
    assert_true(t.requested_bytes == 0 && t.active_bytes == 0 && t.segment_bytes == 0);
    assert_true(t.n_completed == t.n_allocs);
    tide_allocator_unref(a);
}

// ---- another stream ----

/// Work of the stream with memory of stream 0, which it waits for: written where it lies there, else copied to `there`.
static void touch_on(tide_stream_id stream, const tide_allocator *a, const tide_memory *mem, void *there) {
    tide_error err = TIDE_ERROR_INIT;
    tide_event_id given = 0;
    assert_tide_ok(tide_event_create(conf_device, &given, &err), &err);
    assert_tide_ok(tide_event_record(conf_device, given, 0, &err), &err);
    assert_tide_ok(tide_stream_wait_event(conf_device, stream, given, &err), &err);
    tide_event_destroy(conf_device, given);
    const size_t n = mem->requested_bytes;
    const tide_status st =
        tide_device_equal(tide_allocator_device(a), conf_device)
            ? tide_device_fill(conf_device, stream, mem->data, 1, n, &err)
            : tide_device_copy(conf_device, stream, TIDE_COPY_HOST_TO_DEVICE, there, mem->data, n, &err);
    assert_tide_ok(st, &err);
}

/// A use that was declared changes nothing where streams do not matter, and holds nothing for ever where they do.
static void use_elsewhere(void **state) { // LT-35
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = conf_make(*state);
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(conf_device, &stream, &err), &err);
    const size_t size = size_within(a, 4000);
    void *there = NULL;
    assert_tide_ok(tide_device_mem_alloc(conf_device, size, 64, &there, &err), &err);
    for (int i = 0; i < 50; i++) {
        const tide_memory mem = take(a, size, 0);
        const tide_allocator_stats before = stats_of(a);
        tide_allocator_record_use(a, &mem, stream);
        const tide_allocator_stats after = stats_of(a);
        assert_memory_equal(&after, &before, sizeof after);
        touch_on(stream, a, &mem, there);
        // Who is not stream-aware relies on the caller to wait.
        if (!props_of(a).stream_aware) assert_tide_ok(tide_stream_sync(conf_device, stream, &err), &err);
        give(a, &mem);
        assert_invariants(a);
        assert_sound(a);
    }
    assert_tide_ok(tide_stream_sync(conf_device, stream, &err), &err);
    tide_stream_destroy(conf_device, stream);
    tide_device_mem_free(conf_device, there);
    tide_allocator_trim(a);
    assert_true(stats_of(a).n_pending == 0);
    assert_empties(a);
    tide_allocator_unref(a);
}

// ---- threads ----

enum { N_THREADS = 8, N_STEPS = 1500, N_SLOTS = 24 };

typedef struct stress {
    tide_allocator *a;
    uint64_t seed;
    size_t top_bytes;
    uint64_t max_align_bytes;
    uint64_t n_allocs;
    bool good;
    _Atomic int *n_working; ///< threads that are not through yet
} stress;

static bool stress_free(tide_allocator *a, oracle_row *slot) {
    if (slot->mem.data == NULL) return true;
    const bool intact = oracle_intact(tide_allocator_device(a), slot);
    give(a, &slot->mem);
    *slot = (oracle_row){0};
    return intact;
}

/// cmocka's asserts belong to the main thread: this one reports through `good`.
static void *stress_run(void *arg) {
    stress *s = arg;
    tide_rng rng = {s->seed};
    oracle_row slots[N_SLOTS] = {0};
    for (int step = 0; step < N_STEPS; step++) {
        oracle_row *slot = &slots[tide_rng_below(&rng, N_SLOTS)];
        if (!stress_free(s->a, slot)) s->good = false;
        const tide_alloc_request req = {.size_bytes = 1 + (size_t)tide_rng_below(&rng, s->top_bytes),
                                        .align_bytes = any_align(&rng, s->max_align_bytes),
                                        .block_id = s->seed};
        if (tide_allocator_alloc(s->a, &req, &slot->mem, NULL) != TIDE_OK) {
            s->good = false;
            continue;
        }
        s->n_allocs++;
        slot->fill = (unsigned char)s->seed;
        if (!oracle_fill(tide_allocator_device(s->a), slot)) s->good = false;
        if (step % 400 == 399) tide_allocator_trim(s->a);
    }
    for (int i = 0; i < N_SLOTS; i++) {
        if (!stress_free(s->a, &slots[i])) s->good = false;
    }
    atomic_fetch_sub(s->n_working, 1);
    return NULL;
}

static void eight_threads(void **state) { // LT-39
    tide_allocator *a = conf_make(*state);
    static stress all[N_THREADS];
    static _Atomic int n_working;
    pthread_t threads[N_THREADS];
    n_working = N_THREADS;
    for (int i = 0; i < N_THREADS; i++) {
        all[i] = (stress){.a = a,
                          .seed = (uint64_t)i + 1,
                          .top_bytes = size_within(a, 6000),
                          .max_align_bytes = props_of(a).max_align_bytes,
                          .good = true,
                          .n_working = &n_working};
        assert_int_equal(pthread_create(&threads[i], NULL, stress_run, &all[i]), 0);
    }
    // Numbers are read and checked as long as the others work.
    while (n_working > 0) {
        assert_invariants(a);
        assert_sound(a);
        sched_yield();
    }
    uint64_t n_allocs = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(all[i].good);
        n_allocs += all[i].n_allocs;
    }
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.n_allocs == n_allocs && s.n_frees == n_allocs && s.n_failed == 0);
    assert_sound(a);
    assert_empties(a);
    tide_allocator_unref(a);
}

#endif
