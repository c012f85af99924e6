// SPDX-License-Identifier: MIT
//
// core/memory/allocator: the object around an allocator's table, with tables made for the test.
#include "core/memory/allocator_internal.h"
#include "memory_test.h"

typedef struct mock {
    int n_destroyed, n_reset, n_trimmed, n_released, n_used;
    char bytes[64];
    tide_memory released;
    tide_stream_id stream; // of the last release or use
    const tide_allocator_listener *listener;
} mock;

static tide_status mock_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)req;
    (void)err;
    out->data = ((mock *)self)->bytes;
    return TIDE_OK;
}
static void mock_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    mock *m = self;
    m->n_released++;
    m->released = *mem;
    m->stream = last_stream;
}
static void mock_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    out->largest_free_bytes = TIDE_UNKNOWN_BYTES;
}
static void mock_destroy(void *self) { ((mock *)self)->n_destroyed++; }
static tide_status mock_reset(void *self, tide_error *err) {
    (void)err;
    ((mock *)self)->n_reset++;
    return TIDE_OK;
}
static void mock_trim(void *self) { ((mock *)self)->n_trimmed++; }

static const tide_allocator_ops least = {.abi = TIDE_ALLOCATOR_ABI,
                                         .name = "least",
                                         .alloc = mock_alloc,
                                         .release = mock_release,
                                         .stats = mock_stats,
                                         .destroy = mock_destroy};

// PT-1: the layer between data pointers and a device's memory.
static void references_are_counted(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), &err);
    assert_ptr_equal(tide_allocator_self(a), &m);
    assert_ptr_equal(tide_allocator_ref(a), a);
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 0);
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 1);
    tide_allocator_unref(NULL);
}

static void optional_entries_have_defaults(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), &err);
    assert_tide_status(tide_allocator_reset(a, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "least");
    tide_allocator_trim(a);
    assert_tide_ok(tide_allocator_check(a, &err), &err);
    assert_true(stats_of(a).largest_free_bytes == TIDE_UNKNOWN_BYTES);
    tide_allocator_unref(a);

    tide_allocator_ops more = least;
    more.reset = mock_reset;
    more.trim = mock_trim;
    assert_tide_ok(tide_allocator_create(&more, &m, TIDE_CPU, &a, &err), &err);
    assert_tide_ok(tide_allocator_reset(a, &err), &err);
    tide_allocator_trim(a);
    assert_int_equal(m.n_reset, 1);
    assert_int_equal(m.n_trimmed, 1);
    tide_allocator_unref(a);
}

static void wrong_tables_are_refused(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    tide_allocator_ops other = least;
    other.abi = TIDE_ALLOCATOR_ABI + 1;
    assert_tide_status(tide_allocator_create(&other, &m, TIDE_CPU, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "ABI");
    assert_int_equal(m.n_destroyed, 0); // nothing in a table of another ABI can be trusted

    other = least;
    other.release = NULL;
    assert_tide_status(tide_allocator_create(&other, &m, TIDE_CPU, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "least");
    assert_int_equal(m.n_destroyed, 1); // the state was taken

    other = least;
    other.raw_free = free;
    assert_tide_status(tide_allocator_create(&other, &m, TIDE_CPU, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "only one of raw_alloc and raw_free");

    tide_host_fail_after(0);
    assert_tide_status(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), TIDE_ERR_NOMEM);
    assert_int_equal(m.n_destroyed, 3);
    assert_null(a);
}

static void made_by_name(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "cpu_caching"};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < 2; i++) {
        tide_allocator *a = NULL;
        assert_tide_ok(tide_allocator_create_by_name(names[i], &a, &err), &err);
        assert_string_equal(tide_allocator_name(a), names[i]);
        tide_allocator_unref(a);
    }
    tide_allocator *a = NULL;
    assert_tide_status(tide_allocator_create_by_name("buddy", &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "buddy");
    assert_text_has(err.hint, "cpu_caching");
}

static tide_allocator *make(const tide_allocator_ops *ops, mock *m, tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(ops, m, device, &a, &err), &err);
    return a;
}

static void mock_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->align_bytes = 32;
    out->max_align_bytes = 512;
    out->keeps_freed = true;
}

static void props_have_defaults(void **state) {
    (void)state;
    mock m = {0};
    tide_allocator_props p;
    tide_allocator *a = make(&least, &m, TIDE_CPU);
    tide_allocator_get_props(a, &p);
    assert_string_equal(p.what, "least");
    assert_true(p.align_bytes == 1 && p.max_bytes == TIDE_UNKNOWN_BYTES && p.max_align_bytes == (uint64_t)1 << 63);
    assert_true(!p.keeps_freed && !p.stream_aware && !p.page_locked && !p.needs_reset);
    tide_allocator_unref(a);

    tide_allocator_ops more = least;
    more.props = mock_props;
    a = make(&more, &m, TIDE_CPU);
    tide_allocator_get_props(a, &p);
    assert_string_equal(p.what, "least"); // what a table leaves alone stays as it was
    assert_true(p.align_bytes == 32 && p.keeps_freed && !p.needs_reset);
    tide_allocator_unref(a);
}

// LT-21, S28-23: what cannot be honoured is refused before the allocator is asked, with its name and the numbers.
static void requests_are_checked(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator_ops ops = least;
    ops.props = mock_props;
    tide_allocator *a = make(&ops, &m, TIDE_CPU);
    static const struct {
        size_t size, align;
        tide_status want;
        const char *text;
    } rows[] = {{0, 64, TIDE_ERR_INVALID, "0 bytes"},
                {10, 3, TIDE_ERR_INVALID, "alignment 3 "},
                {10, SIZE_MAX, TIDE_ERR_INVALID, "power"},
                {10, 1024, TIDE_ERR_INVALID, "honours 512 B"},
                {10, 512, TIDE_OK, ""},
                {10, 0, TIDE_OK, ""},
                {10, (size_t)1 << 63, TIDE_ERR_INVALID, "512"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_alloc_request req = {.size_bytes = rows[i].size, .align_bytes = rows[i].align};
        tide_memory mem = {.data = &m}; // what a caller may have left there
        assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), rows[i].want);
        assert_ptr_equal(mem.data, rows[i].want == TIDE_OK ? m.bytes : NULL);
        if (rows[i].want == TIDE_OK) continue;
        assert_text_has(err.msg, "least");
        assert_text_has(err.msg, rows[i].text);
    }
    tide_allocator_unref(a);
}

/// The request's own words come back with the memory; a plain allocator sets nothing but the address.
static void words_of_the_request_come_back(void **state) {
    (void)state;
    mock m = {0};
    tide_allocator *a = make(&least, &m, TIDE_CPU);
    const tide_alloc_request req = {
        .size_bytes = 40, .kind = TIDE_KIND_KV_CACHE, .stream = 3, .block_id = 77, .tag = "k"};
    tide_memory mem;
    memset(&mem, 0xEE, sizeof mem);
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, NULL), TIDE_OK);
    assert_true(mem.requested_bytes == 40 && mem.reserved_bytes == 40 && mem.kind == TIDE_KIND_KV_CACHE);
    assert_true(mem.block_id == 77 && mem.tag == req.tag && mem.context == NULL && mem.data == m.bytes);
    tide_allocator_release(a, &mem, 9);
    assert_true(m.n_released == 1 && m.stream == 9 && m.released.block_id == 77);
    mem.data = NULL;
    tide_allocator_release(a, &mem, 9); // nothing to release
    assert_int_equal(m.n_released, 1);
    tide_allocator_unref(a);
}

/// What an allocator leaves alone in its numbers is unknown or nothing.
static void stats_have_defaults(void **state) {
    (void)state;
    mock m = {0};
    tide_allocator *a = make(&least, &m, TIDE_CPU);
    tide_allocator_stats s;
    memset(&s, 0xEE, sizeof s);
    tide_allocator_get_stats(a, &s);
    assert_true(s.headroom_bytes == TIDE_UNKNOWN_BYTES && s.pending_bytes == 0 && s.n_pending == 0 && s.n_allocs == 0);
    tide_allocator_unref(a);
}

static void mock_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)mem;
    ((mock *)self)->n_used++;
    ((mock *)self)->stream = stream;
}
static void mock_listen(void *self, const tide_allocator_listener *who) { ((mock *)self)->listener = who; }

static void use_and_listeners_are_passed_on(void **state) {
    (void)state;
    mock m = {0};
    const tide_allocator_listener who = {0};
    const tide_memory mem = {.data = &m}, none = {0};
    tide_allocator *a = make(&least, &m, TIDE_CPU);
    tide_allocator_record_use(a, &mem, 5);
    tide_allocator_listen(a, &who);
    assert_true(m.n_used == 0 && m.listener == NULL);
    tide_allocator_unref(a);

    tide_allocator_ops more = least;
    more.record_use = mock_use;
    more.listen = mock_listen;
    a = make(&more, &m, TIDE_CPU);
    tide_allocator_record_use(a, &mem, 5);
    tide_allocator_record_use(a, &none, 6);
    assert_true(m.n_used == 1 && m.stream == 5);
    tide_allocator_listen(a, &who);
    assert_ptr_equal(m.listener, &who);
    tide_allocator_listen(a, NULL);
    assert_null(m.listener);
    tide_allocator_unref(a);
}

/// Each rule between the numbers, broken alone.
static void numbers_that_do_not_fit_are_named(void **state) {
    (void)state;
    const tide_allocator_stats sound = {.requested_bytes = 100,
                                        .active_bytes = 128,
                                        .cached_bytes = 64,
                                        .reserved_bytes = 200,
                                        .largest_free_bytes = 64,
                                        .pending_bytes = 28,
                                        .n_pending = 1,
                                        .peak_requested_bytes = 100,
                                        .peak_active_bytes = 128,
                                        .peak_reserved_bytes = 200,
                                        .n_allocs = 3,
                                        .n_frees = 2,
                                        .n_hits = 3};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__counters_check(&sound, "x", &err), &err);
#define BROKEN(field, value, text)                                                                                     \
    do {                                                                                                               \
        tide_allocator_stats s = sound;                                                                                \
        s.field = (value);                                                                                             \
        assert_tide_status(tide__counters_check(&s, "x", &err), TIDE_ERR_RUNTIME);                                     \
        assert_text_has(err.msg, text);                                                                                \
    } while (0)
    BROKEN(requested_bytes, 129, "active 128 is below requested 129");
    BROKEN(reserved_bytes, 191, "reserved 191 is below active + cached 192");
    BROKEN(largest_free_bytes, 65, "cached 64 is below largest free 65");
    BROKEN(pending_bytes, 129, "active 128 is below pending 129");
    BROKEN(pending_bytes, 0, "0 bytes pending in 1 blocks");
    BROKEN(n_pending, 0, "28 bytes pending in 0 blocks");
    BROKEN(peak_requested_bytes, 99, "peak requested");
    BROKEN(peak_active_bytes, 127, "peak active");
    BROKEN(peak_reserved_bytes, 199, "peak reserved");
    BROKEN(n_frees, 4, "below frees 4");
    BROKEN(n_hits, 4, "below hits 4");
    BROKEN(n_frees, 3, "100 bytes requested, yet nothing is out");
#undef BROKEN
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(references_are_counted),
        tide_unit_test(optional_entries_have_defaults),
        tide_unit_test(wrong_tables_are_refused),
        tide_unit_test(made_by_name),
        tide_unit_test(props_have_defaults),
        tide_unit_test(requests_are_checked),
        tide_unit_test(words_of_the_request_come_back),
        tide_unit_test(stats_have_defaults),
        tide_unit_test(use_and_listeners_are_passed_on),
        tide_unit_test(numbers_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
