// SPDX-License-Identifier: MIT
//
// One suite for every allocator, through the interface alone (LT-21, LT-39, PT-13). What may differ between allocators
// is what their props say. A test program has a table of makers and a main that calls conformance_main; a new allocator
// is one more row in one of them.
//
//     conformance.h             makers, what all tests share, the list of tests
//     conformance_requests.h    one request: sizes, alignments, refusals; reuse, trim, reset, life
//     conformance_failures.h    host memory ends, the memory ends
//     conformance_steps.h       many steps: against a plain list, against an observer's sums, in eight threads
#ifndef TIDE_TESTS_CONFORMANCE_H
#define TIDE_TESTS_CONFORMANCE_H

#include "core/device/backend.h"
#include "memory_test.h"

#define MIB ((size_t)1 << 20)

/// The largest size that is tried. ThreadSanitizer's shadow of a GiB costs seconds and shows nothing more.
/// AddressSanitizer writes an eighth of each block into its shadow, twice, and of memory that is filled every page is
/// there: in the suite 128 MiB, in `make soak` all of it.
#if defined(__SANITIZE_THREAD__)
#define TOP_BYTES (64 * MIB)
#elif defined(__SANITIZE_ADDRESS__)
#define TOP_BYTES ((size_t)tide_test_rounds(128, 1024) * MIB)
#else
#define TOP_BYTES (1024 * MIB)
#endif
/// Up to here all magnitudes are tried, then TOP_BYTES once.
#if defined(__SANITIZE_ADDRESS__)
#define ALL_BYTES ((size_t)tide_test_rounds(16, 1024) * MIB)
#else
#define ALL_BYTES TOP_BYTES
#endif

/// How to make one allocator.
typedef struct conf_maker {
    const char *name;      ///< of this row
    const char *allocator; ///< what it calls itself
    tide_status (*create)(tide_allocator **out, tide_error *err);
    size_t top_bytes;     ///< up to here all magnitudes are tried, and then TOP_BYTES once; 0: ALL_BYTES
    void (*before)(void); ///< optional, around each test
    void (*after)(void);
    bool on_device;   ///< memory of conf_device
    bool driver_pool; ///< what is reserved, cached and a hit is its driver's to decide, and it tells no segments
} conf_maker;

/// Whose streams use the memory; set by `before`.
static TIDE_UNUSED tide_device conf_device;

static void conf_fill(const tide_allocator *a, void *at, int byte, size_t n) {
    assert_true(bytes_fill(tide_allocator_device(a), at, (unsigned char)byte, n));
}

static bool conf_are(const tide_allocator *a, const void *at, int byte, size_t n) {
    return bytes_are(tide_allocator_device(a), at, (unsigned char)byte, n);
}

static tide_allocator *conf_make(const conf_maker *m) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(m->create(&a, &err), &err);
    return a;
}

static tide_allocator_props props_of(const tide_allocator *a) {
    tide_allocator_props p;
    tide_allocator_get_props(a, &p);
    return p;
}

/// The largest request up to `wish` that `a` promises to meet.
static size_t size_within(const tide_allocator *a, size_t wish) {
    const tide_allocator_props p = props_of(a);
    return wish < p.max_bytes ? wish : (size_t)p.max_bytes;
}

/// All numbers alike, but for how often something was refused.
static void assert_same_numbers(const tide_allocator_stats *a, const tide_allocator_stats *b) {
    tide_allocator_stats copy = *a;
    copy.n_failed = b->n_failed;
    assert_memory_equal(&copy, b, sizeof copy);
}

/// What must hold between the numbers of every allocator at every moment, and check().
static void assert_invariants(const tide_allocator *a) {
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.active_bytes >= s.requested_bytes);
    assert_true(s.reserved_bytes >= s.active_bytes + s.cached_bytes);
    assert_true(s.largest_free_bytes <= s.cached_bytes);
    assert_true(s.pending_bytes <= s.active_bytes);
    assert_true((s.n_pending == 0) == (s.pending_bytes == 0));
    assert_true(s.peak_requested_bytes >= s.requested_bytes);
    assert_true(s.peak_active_bytes >= s.active_bytes);
    assert_true(s.peak_reserved_bytes >= s.reserved_bytes);
    assert_true(s.n_allocs >= s.n_frees && s.n_allocs >= s.n_hits);
}

/// Nothing is out any more: after a reset or a trim nothing is left.
static void assert_empties(tide_allocator *a) {
    assert_true(stats_of(a).requested_bytes == 0);
    if (props_of(a).needs_reset) {
        assert_tide_status(tide_allocator_reset(a, NULL), TIDE_OK);
        assert_true(stats_of(a).active_bytes == 0);
        return;
    }
    assert_true(stats_of(a).active_bytes == 0);
    tide_allocator_trim(a);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.cached_bytes == 0 && s.reserved_bytes == 0 && s.largest_free_bytes == 0);
    assert_sound(a);
}

/// A request of `size` is refused, its asker named, and nothing is changed.
static void assert_refuses(tide_allocator *a, size_t size) {
    const tide_allocator_stats before = stats_of(a);
    tide_error err = TIDE_ERROR_INIT;
    tide_memory mem = {0};
    const tide_alloc_request req = {.size_bytes = size, .tag = "greedy"};
    const tide_status st = tide_allocator_alloc(a, &req, &mem, &err);
    assert_true(st == TIDE_ERR_NOMEM || st == TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "greedy");
    assert_null(mem.data); // nothing that could be released
    const tide_allocator_stats after = stats_of(a);
    assert_true(after.n_failed == before.n_failed + 1);
    assert_same_numbers(&after, &before);
    assert_sound(a);
}

#include "conformance_failures.h"
#include "conformance_requests.h"
#include "conformance_steps.h"

// ---- every test for every maker ----

static int conf_setup(void **state) {
    const conf_maker *m = *state;
    if (m->before != NULL) m->before();
    return tide_leak_setup(state);
}

static int conf_teardown(void **state) {
    const conf_maker *m = *state;
    const int leaked = tide_leak_teardown(state);
    if (m->after != NULL) m->after();
    return leaked;
}

static int conformance_main(conf_maker *makers, size_t n_makers) {
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } suite[] = {
#define XX(test) {#test, test},
        XX(name_device_and_props) XX(every_alignment) XX(every_magnitude) XX(refused_requests_change_nothing)
            XX(reuse_after_free) XX(trim_spares_live_blocks) XX(reset_rules) XX(blocks_outlive_the_callers_reference)
                XX(memory_as_a_data_pointer) XX(host_memory_ends_while_making) XX(host_memory_ends_while_allocating)
                    XX(memory_ends) XX(any_order_against_the_plain_list) XX(sums_of_an_observer) XX(use_elsewhere)
                        XX(eight_threads)
#undef XX
    };
    enum { N_SUITE = sizeof suite / sizeof suite[0], MAX_MAKERS = 16 };
    static struct CMUnitTest tests[MAX_MAKERS * N_SUITE];
    static char names[MAX_MAKERS * N_SUITE][80];
    for (size_t i = 0; i < n_makers * N_SUITE; i++) {
        conf_maker *m = &makers[i / N_SUITE];
        snprintf(names[i], sizeof names[i], "%s: %s", m->name, suite[i % N_SUITE].name);
        tests[i] = (struct CMUnitTest){names[i], suite[i % N_SUITE].run, conf_setup, conf_teardown, m};
    }
    // What cmocka_run_group_tests does with an array of known length.
    return _cmocka_run_group_tests("allocators", tests, n_makers * N_SUITE, NULL, NULL);
}

#endif
