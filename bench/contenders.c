// SPDX-License-Identifier: MIT
//
// Our allocators as contenders, one line each.
#include <stdio.h>

#include "bench/bench.h"
#include "core/base/host_alloc.h"

enum { PAGE_BYTES = 64 << 10, PAGES_PER_SLAB = 64 };
static const size_t arena_bytes = (size_t)1 << 30; // address space: its pages are never touched

typedef tide_status (*make_fn)(tide_allocator **out, tide_error *err);

static tide_status make_caching_pow2(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_POW2, out, err);
}
static tide_status make_caching_steps(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_STEPS, out, err);
}
static tide_status make_stream_caching(tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(TIDE_CPU, NULL, out, err);
}
static tide_status make_pinned(tide_allocator **out, tide_error *err) { return tide_pinned_create(TIDE_CPU, out, err); }

// What the interface costs before an allocator does anything: request, checks, two indirect calls.
static tide_status nothing_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)req;
    (void)err;
    out->data = self;
    return TIDE_OK;
}
static void nothing_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)self;
    (void)mem;
    (void)last_stream;
}
static void nothing_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    (void)out;
}
static void nothing_destroy(void *self) { (void)self; }

static tide_status make_nothing(tide_allocator **out, tide_error *err) {
    static const tide_allocator_ops ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "nothing",
                                           .alloc = nothing_alloc,
                                           .release = nothing_release,
                                           .stats = nothing_stats,
                                           .destroy = nothing_destroy};
    static char somewhere[64];
    return tide_allocator_create(&ops, somewhere, TIDE_CPU, out, err);
}

static tide_status wrap_arena(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_arena_create(inner, arena_bytes, BENCH_ALIGN_BYTES, out, err);
}
static tide_status wrap_paged(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_paged_create(inner, PAGE_BYTES, PAGES_PER_SLAB, out, err);
}
static tide_status wrap_limit(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    return tide_limit_create(inner, TIDE_UNKNOWN_BYTES, out, err);
}

static void hear_nothing(void *self, const tide_memory_event *event) {
    (void)self;
    (void)event;
}

static tide_status wrap_deaf(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    const tide_observer obs = {.on_memory = hear_nothing, .no_time = true};
    return tide_instrumented_create(inner, &obs, out, err);
}
static tide_status wrap_timed(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    const tide_observer obs = {.on_memory = hear_nothing};
    return tide_instrumented_create(inner, &obs, out, err);
}

typedef tide_status (*wrap_fn)(tide_allocator *inner, tide_allocator **out, tide_error *err);

static const struct {
    const char *name;
    make_fn make;
    wrap_fn wrap; // NULL: `make` alone
    size_t max_bytes;
    bool needs_reset;
} ours[] = {
    {"(interface alone)", make_nothing, NULL, 0, false},
    {"cpu", tide_cpu_allocator_create, NULL, 0, false},
    {"cpu_caching pow2", make_caching_pow2, NULL, 0, false},
    {"cpu_caching steps", make_caching_steps, NULL, 0, false},
    {"arena", tide_cpu_allocator_create, wrap_arena, 0, true},
    {"stream_caching", make_stream_caching, NULL, 0, false},
    {"pinned", make_pinned, NULL, 0, false},
    {"paged 64 KiB", tide_cpu_allocator_create, wrap_paged, PAGE_BYTES, false},
    {"limit(cpu_caching)", make_caching_pow2, wrap_limit, 0, false},
    {"poison(cpu)", tide_cpu_allocator_create, tide_poison_create, 0, false},
    {"instrumented, no time", make_caching_pow2, wrap_deaf, 0, false},
    {"instrumented, time", make_caching_pow2, wrap_timed, 0, false},
};

static bool open_ours(size_t i, bench_contender *out) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *inner = NULL, *a = NULL;
    tide_status st = ours[i].make(&inner, &err);
    if (st == TIDE_OK && ours[i].wrap != NULL) {
        st = ours[i].wrap(inner, &a, &err);
        tide_allocator_unref(inner);
    } else {
        a = inner;
    }
    if (st != TIDE_OK) {
        fprintf(stderr, "bench: %s is left out: %s\n", ours[i].name, err.msg);
        return false;
    }
    *out = (bench_contender){
        .name = ours[i].name, .a = a, .max_bytes = ours[i].max_bytes, .needs_reset = ours[i].needs_reset};
    return true;
}

/// The meter lives beside its allocator.
static bool open_metered(bench_contender *out) {
    tide_error err = TIDE_ERROR_INIT;
    *out = (bench_contender){.name = "instrumented, meter"};
    if (tide_meter_create(&out->meter, &err) != TIDE_OK) return false;
    const tide_observer obs = tide_meter_observer(out->meter);
    tide_allocator *inner = NULL;
    tide_status st = make_caching_pow2(&inner, &err);
    if (st == TIDE_OK) st = tide_instrumented_create(inner, &obs, &out->a, &err);
    tide_allocator_unref(inner);
    if (st == TIDE_OK) return true;
    fprintf(stderr, "bench: %s is left out: %s\n", out->name, err.msg);
    tide_meter_destroy(out->meter);
    return false;
}

size_t bench_open_all(bench_contender *out) {
    size_t n = 0;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) n += open_ours(i, &out[n]);
    n += open_metered(&out[n]);
    return n + bench_open_rivals(&out[n]);
}

void bench_close_all(bench_contender *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tide_allocator_unref(all[i].a);
        tide_meter_destroy(all[i].meter);
    }
}
