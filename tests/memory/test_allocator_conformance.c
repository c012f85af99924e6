// SPDX-License-Identifier: MIT
//
// One suite for every allocator, through the interface alone (LT-21, LT-39, PT-13): alignment 1 to 4096, sizes 1 B to
// 8 MiB, a plain list as the truth about overlaps, the numbers after every step, eight threads. A new allocator is
// one more row of `candidates`.
#include "memory_test.h"

// The refused requests below are meant to be refused; without this the sanitizers stop the program instead.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

typedef struct candidate {
    const char *name;
    tide_status (*create)(tide_allocator **out, tide_error *err);
    bool frees_by_reset; ///< room comes back with reset alone
} candidate;

static tide_status create_arena(tide_allocator **out, tide_error *err) {
    tide_allocator *cpu = NULL;
    TIDE_TRY(tide_cpu_allocator_create(&cpu, err));
    const tide_status st = tide_arena_create(cpu, (size_t)160 << 20, 64, out, err);
    tide_allocator_unref(cpu);
    return st;
}

static void hear_nothing(void *self, const tide_memory_event *event) {
    (void)self;
    (void)event;
}

static tide_status create_instrumented(tide_allocator **out, tide_error *err) {
    const tide_observer deaf = {.on_memory = hear_nothing};
    tide_allocator *cpu = NULL;
    TIDE_TRY(tide_cpu_allocator_create(&cpu, err));
    const tide_status st = tide_instrumented_create(cpu, &deaf, out, err);
    tide_allocator_unref(cpu);
    return st;
}

static candidate candidates[] = {
    {"cpu", tide_cpu_allocator_create, false},
    {"cpu_caching", tide_cpu_caching_allocator_create, false},
    {"arena", create_arena, true},
    {"instrumented", create_instrumented, false},
};

static tide_allocator *make(const candidate *c) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(c->create(&a, &err), &err);
    return a;
}

/// Sizes over all magnitudes alike: 1 B to 8 MiB.
static size_t any_size(tide_rng *rng) {
    const size_t top = (size_t)1 << tide_rng_below(rng, 24);
    return top + (size_t)tide_rng_below(rng, top);
}

static size_t any_align(tide_rng *rng) { return (size_t)1 << tide_rng_below(rng, 13); }

/// What must hold for every allocator after every step.
static void assert_numbers(const tide_allocator *a, const oracle *o, uint64_t n_allocs, uint64_t n_frees) {
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == o->requested_bytes);
    assert_true(s.active_bytes >= s.requested_bytes);
    assert_true(s.reserved_bytes >= s.active_bytes + s.cached_bytes);
    assert_true(s.largest_free_bytes <= s.cached_bytes);
    assert_true(s.peak_requested_bytes >= s.requested_bytes);
    assert_true(s.peak_active_bytes >= s.active_bytes);
    assert_true(s.peak_reserved_bytes >= s.reserved_bytes);
    assert_true(s.n_allocs == n_allocs);
    assert_true(s.n_frees == n_frees);
    assert_sound(a);
}

static void name_and_device(void **state) {
    const candidate *c = *state;
    tide_allocator *a = make(c);
    assert_string_equal(tide_allocator_name(a), c->name);
    assert_true(tide_device_equal(tide_allocator_device(a), TIDE_CPU));
    assert_non_null(tide_allocator_self(a));
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 0 && s.active_bytes == 0 && s.n_allocs == 0);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void any_order_against_the_plain_list(void **state) {
    const candidate *c = *state;
    const uint64_t seed = 42;
    tide_rng rng = {seed};
    tide_allocator *a = make(c);
    static oracle o;
    o = (oracle){0};
    uint64_t n_allocs = 0, n_frees = 0, n_failed = 0;
    uint64_t top_requested = 0;
    for (int step = 0; step < 4000; step++) {
        const bool full = o.n > 60 || o.requested_bytes > (uint64_t)120 << 20;
        if (!full && (o.n == 0 || tide_rng_below(&rng, 100) < 55)) {
            const tide_alloc_request req = {.size_bytes = any_size(&rng),
                                            .align_bytes = any_align(&rng),
                                            .kind = TIDE_KIND_WORKSPACE,
                                            .block_id = n_allocs + 1,
                                            .tag = "any"};
            tide_error err = TIDE_ERROR_INIT;
            tide_memory mem = {0};
            const tide_status st = tide_allocator_alloc(a, &req, &mem, &err);
            if (st == TIDE_ERR_NO_SPACE && c->frees_by_reset) {
                n_failed++;
                while (o.n > 0) {
                    const tide_memory last = oracle_remove(&o, o.n - 1);
                    give(a, &last);
                    n_frees++;
                }
                assert_tide_ok(tide_allocator_reset(a, &err), &err);
                continue;
            }
            assert_tide_ok(st, &err);
            n_allocs++;
            assert_true((uintptr_t)mem.data % req.align_bytes == 0);
            assert_true(mem.requested_bytes == req.size_bytes);
            assert_true(mem.reserved_bytes >= req.size_bytes);
            assert_int_equal(mem.kind, TIDE_KIND_WORKSPACE);
            assert_true(mem.block_id == n_allocs);
            assert_ptr_equal(mem.tag, req.tag);
            oracle_add(&o, &mem, (unsigned char)step);
        } else {
            const tide_memory mem = oracle_remove(&o, (size_t)tide_rng_below(&rng, o.n));
            give(a, &mem);
            n_frees++;
        }
        if (o.requested_bytes > top_requested) top_requested = o.requested_bytes;
        assert_numbers(a, &o, n_allocs, n_frees);
    }
    while (o.n > 0) {
        const tide_memory mem = oracle_remove(&o, 0);
        give(a, &mem);
        n_frees++;
        assert_numbers(a, &o, n_allocs, n_frees);
    }
    assert_true(stats_of(a).peak_requested_bytes == top_requested);
    assert_true(stats_of(a).n_failed == n_failed);
    if (c->frees_by_reset) assert_tide_status(tide_allocator_reset(a, NULL), TIDE_OK);
    assert_true(stats_of(a).active_bytes == 0);
    tide_allocator_trim(a);
    if (!c->frees_by_reset) assert_true(stats_of(a).reserved_bytes == 0);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void every_alignment_at_every_small_size(void **state) {
    tide_allocator *a = make(*state);
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size = 1; size < 130; size++) {
            const tide_memory mem = take(a, size, align);
            assert_true((uintptr_t)mem.data % align == 0);
            memset(mem.data, 0xAA, size);
            give(a, &mem);
        }
    }
    assert_sound(a);
    tide_allocator_unref(a);
}

static void refused_requests_change_nothing(void **state) {
    tide_allocator *a = make(*state);
    const tide_memory held = take(a, 1000, 64);
    const tide_allocator_stats before = stats_of(a);
    const tide_memory untouched = {.data = NULL, .requested_bytes = 77, .block_id = 99};
    static const struct {
        size_t size_bytes, align_bytes;
        bool asks_for_nonsense; ///< refused before the allocator is asked
    } rows[] = {
        {0, 64, true},
        {100, 3, true},
        {100, 96, true},
        {SIZE_MAX, 64, false},
        {SIZE_MAX - 4095, 4096, false},
        {PTRDIFF_MAX, 64, false},
        {SIZE_MAX / 2 + 2, 0, false},
        {(size_t)1 << 46, 0, false},
        {(size_t)1 << 47, 4096, false},
    };
    uint64_t n_failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_alloc_request req = {
            .size_bytes = rows[i].size_bytes, .align_bytes = rows[i].align_bytes, .tag = "greedy"};
        tide_error err = TIDE_ERROR_INIT;
        tide_memory mem = untouched;
        const tide_status st = tide_allocator_alloc(a, &req, &mem, &err);
        if (rows[i].asks_for_nonsense) {
            assert_tide_status(st, TIDE_ERR_INVALID);
        } else {
            assert_true(st == TIDE_ERR_NOMEM || st == TIDE_ERR_NO_SPACE);
            assert_text_has(err.msg, "greedy");
            n_failed++;
        }
        assert_true(strlen(err.msg) > 0);
        assert_memory_equal(&mem, &untouched, sizeof mem);
    }
    tide_allocator_stats after = stats_of(a);
    assert_true(after.n_failed == before.n_failed + n_failed);
    after.n_failed = before.n_failed;
    assert_memory_equal(&after, &before, sizeof after);
    assert_sound(a);
    give(a, &held);
    tide_allocator_unref(a);
}

/// LT-34: the block keeps its allocator alive.
static void blocks_outlive_the_callers_reference(void **state) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make(*state);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 5000, 0, TIDE_KIND_DEFAULT, 0, "late", &b, &err), &err);
    tide_allocator_unref(a);
    memset(b->mem.data, 1, 5000);
    assert_true(stats_of(b->owner).requested_bytes == 5000);
    tide_block_unref(b);
}

/// Fail the 1st, 2nd, 3rd … piece of host memory until the allocator can be made.
static void host_memory_ends_while_making(void **state) {
    const candidate *c = *state;
    tide_status st = TIDE_ERR_NOMEM;
    int n_failures = 0;
    while (st == TIDE_ERR_NOMEM) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        tide_host_fail_after(n_failures);
        st = c->create(&a, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) {
            assert_null(a);
            assert_true(strlen(err.msg) > 0);
            n_failures++;
        }
        tide_allocator_unref(a);
    }
    assert_tide_status(st, TIDE_OK);
    assert_true(n_failures >= 2); // state and object at the least
}

// ---- threads ----

enum { N_THREADS = 8, N_STEPS = 1500, N_SLOTS = 24 };

typedef struct stress {
    tide_allocator *a;
    uint64_t seed;
    uint64_t n_allocs;
    bool good;
} stress;

static bool stress_free(tide_allocator *a, oracle_row *slot) {
    if (slot->mem.data == NULL) return true;
    const bool intact = oracle_intact(slot);
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
        const tide_alloc_request req = {.size_bytes = 1 + (size_t)tide_rng_below(&rng, 6000),
                                        .align_bytes = (size_t)1 << tide_rng_below(&rng, 9),
                                        .block_id = s->seed};
        if (tide_allocator_alloc(s->a, &req, &slot->mem, NULL) != TIDE_OK) {
            s->good = false;
            continue;
        }
        s->n_allocs++;
        slot->fill = (unsigned char)s->seed;
        oracle_fill(slot);
    }
    for (int i = 0; i < N_SLOTS; i++) {
        if (!stress_free(s->a, &slots[i])) s->good = false;
    }
    return NULL;
}

static void eight_threads(void **state) {
    tide_allocator *a = make(*state);
    stress all[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        all[i] = (stress){.a = a, .seed = (uint64_t)i + 1, .good = true};
        assert_int_equal(pthread_create(&threads[i], NULL, stress_run, &all[i]), 0);
    }
    // Numbers are read and checked while the others work.
    for (int i = 0; i < 50; i++) assert_sound(a);
    uint64_t n_allocs = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(all[i].good);
        n_allocs += all[i].n_allocs;
    }
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 0);
    assert_true(s.n_allocs == n_allocs && s.n_frees == n_allocs && s.n_failed == 0);
    assert_sound(a);
    tide_allocator_unref(a);
}

// ---- every test for every candidate ----

static const struct {
    const char *name;
    CMUnitTestFunction run;
} suite[] = {
    {"name_and_device", name_and_device},
    {"any_order_against_the_plain_list", any_order_against_the_plain_list},
    {"every_alignment_at_every_small_size", every_alignment_at_every_small_size},
    {"refused_requests_change_nothing", refused_requests_change_nothing},
    {"blocks_outlive_the_callers_reference", blocks_outlive_the_callers_reference},
    {"host_memory_ends_while_making", host_memory_ends_while_making},
    {"eight_threads", eight_threads},
};

enum { N_CANDIDATES = sizeof candidates / sizeof candidates[0], N_SUITE = sizeof suite / sizeof suite[0] };

int main(void) {
    struct CMUnitTest tests[N_CANDIDATES * N_SUITE];
    static char names[N_CANDIDATES * N_SUITE][80];
    for (size_t i = 0; i < N_CANDIDATES * N_SUITE; i++) {
        candidate *c = &candidates[i / N_SUITE];
        snprintf(names[i], sizeof names[i], "%s: %s", c->name, suite[i % N_SUITE].name);
        tests[i] = (struct CMUnitTest){names[i], suite[i % N_SUITE].run, tide_leak_setup, tide_leak_teardown, c};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
