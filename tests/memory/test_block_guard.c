// SPDX-License-Identifier: MIT
//
// Access to a block: guards, and the one test that the usual path pays.
//
// block.h is read here with another name for the long way of writing, so that each time its inline part takes that way
// is counted; the count then calls the real one.
#include "core/base/status.h"

#define tide_block_write_slow counted_write_slow
#include "core/memory/block.h"
#undef tide_block_write_slow

#include <unistd.h>

#include "core/base/log.h"
#include "mock_allocator.h"

tide_status tide_block_write_slow(tide_block *b, void **out, tide_error *err);

static int n_slow;
tide_status counted_write_slow(tide_block *b, void **out, tide_error *err) {
    n_slow++;
    return tide_block_write_slow(b, out, err);
}

typedef struct log_lines {
    int n;
    tide_log_level level;
    char last[256];
} log_lines;

static void keep_line(void *ctx, tide_log_level level, const char *line) {
    log_lines *l = ctx;
    __atomic_fetch_add(&l->n, 1, __ATOMIC_RELAXED);
    l->level = level;
    snprintf(l->last, sizeof l->last, "%s", line);
}

static tide_block *make_block(mock *m) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(m, TIDE_CPU);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 100, 0, TIDE_KIND_DEFAULT, 0, "w", &b, &err), &err);
    tide_allocator_unref(a);
    return b;
}

// PT-7: all write checks sit behind one word; a plain block has none set and never takes the long way. Each check alone
// brings it there.
static void plain_block_takes_the_short_way(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = make_block(&m);
    void *p = NULL;
    assert_int_equal(b->flags, 0);
    n_slow = 0;
    for (int i = 0; i < 1000; i++) {
        assert_tide_ok(tide_block_write(b, &p, &err), &err);
        assert_ptr_equal(p, m.given);
    }
    assert_int_equal(n_slow, 0);
    static const uint32_t guards[] = {TIDE_BLOCK_FAIL_WRITE, TIDE_BLOCK_FAIL_ACCESS, TIDE_BLOCK_WARN_WRITE};
    for (int i = 0; i < 3; i++) {
        tide_block_set_guard(b, guards[i], 0);
        (void)!tide_block_write(b, &p, &err);
        assert_int_equal(n_slow, i + 1);
        tide_block_set_guard(b, 0, guards[i]);
        assert_int_equal(b->flags, 0);
    }
    tide_block *twin = NULL;
    assert_tide_ok(tide_block_lazy_clone(b, 0, &twin, &err), &err);
    assert_tide_ok(tide_block_write(b, &p, &err), &err);
    assert_int_equal(n_slow, 4);
    // Settled: the short way again.
    assert_int_equal(b->flags, 0);
    assert_tide_ok(tide_block_write(b, &p, &err), &err);
    assert_int_equal(n_slow, 4);
    tide_block_unref(twin);
    tide_block_unref(b);
}

// PT-6: reading and writing are different calls; reading never copies, also where writing would.
static void reading_never_copies(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = make_block(&m), *twin = NULL;
    assert_tide_ok(tide_block_lazy_clone(b, 0, &twin, &err), &err);
    const uint64_t copies = tide_block_n_copies();
    const void *p = NULL, *q = NULL;
    for (int i = 0; i < 10; i++) {
        assert_tide_ok(tide_block_read(b, &p, &err), &err);
        assert_tide_ok(tide_block_read(twin, &q, &err), &err);
        assert_ptr_equal(p, q);
    }
    assert_true(tide_block_n_copies() == copies);
    assert_int_equal(m.n_allocs, 1);
    void *w = NULL;
    assert_tide_ok(tide_block_write(twin, &w, &err), &err);
    assert_true(tide_block_n_copies() == copies + 1);
    assert_int_equal(m.n_allocs, 2);
    assert_tide_ok(tide_block_write(twin, &w, &err), &err); // settled
    assert_true(tide_block_n_copies() == copies + 1);
    tide_block_unref(b);
    tide_block_unref(twin);
}

// PT-8: each guard alone: fail on write, fail on any access, warn on write (once).
static void each_guard_does_its_part(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = make_block(&m);
    const void *r = NULL;
    void *w = NULL;

    tide_block_set_guard(b, TIDE_BLOCK_FAIL_WRITE, 0);
    assert_tide_ok(tide_block_read(b, &r, &err), &err);
    assert_ptr_equal(r, m.given);
    assert_tide_status(tide_block_write(b, &w, &err), TIDE_ERR_BUSY);
    assert_null(w);
    assert_text_has(err.msg, "'w'");
    assert_text_has(err.msg, "writing");

    tide_block_set_guard(b, TIDE_BLOCK_FAIL_ACCESS, TIDE_BLOCK_FAIL_WRITE);
    r = NULL;
    assert_tide_status(tide_block_read(b, &r, &err), TIDE_ERR_BUSY);
    assert_null(r);
    assert_text_has(err.msg, "'w'");
    assert_tide_status(tide_block_write(b, &w, &err), TIDE_ERR_BUSY);
    assert_null(w);
    tide_block *twin = NULL;
    assert_tide_status(tide_block_lazy_clone(b, 0, &twin, &err), TIDE_ERR_BUSY); // a clone reads
    assert_null(twin);

    log_lines lines = {0};
    tide_log_set(keep_line, &lines, TIDE_LOG_WARN);
    tide_block_set_guard(b, TIDE_BLOCK_WARN_WRITE, TIDE_BLOCK_FAIL_ACCESS);
    assert_tide_ok(tide_block_read(b, &r, &err), &err);
    assert_int_equal(lines.n, 0);
    for (int i = 0; i < 3; i++) assert_tide_ok(tide_block_write(b, &w, &err), &err);
    assert_ptr_equal(w, m.given);
    assert_int_equal(lines.n, 1);
    assert_int_equal(lines.level, TIDE_LOG_WARN);
    assert_text_has(lines.last, "'w'");
    assert_int_equal(b->flags, 0);
    // Set again it warns again; a write that is refused is no write.
    tide_block_set_guard(b, TIDE_BLOCK_WARN_WRITE | TIDE_BLOCK_FAIL_WRITE, 0);
    assert_tide_status(tide_block_write(b, &w, &err), TIDE_ERR_BUSY);
    assert_int_equal(lines.n, 1);
    tide_block_set_guard(b, 0, TIDE_BLOCK_FAIL_WRITE);
    assert_tide_ok(tide_block_write(b, &w, &err), &err);
    assert_int_equal(lines.n, 2);
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    tide_block_unref(b);
}

// What is no guard cannot be set or cleared from outside.
static void only_guards_can_be_set(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = make_block(&m), *twin = NULL;
    tide_block_set_guard(b, UINT32_MAX & ~(uint32_t)TIDE_BLOCK_FAIL_ACCESS, 0);
    assert_int_equal(b->flags, TIDE_BLOCK_FAIL_WRITE | TIDE_BLOCK_WARN_WRITE);
    tide_block_set_guard(b, 0, UINT32_MAX);
    assert_int_equal(b->flags, 0);
    assert_tide_ok(tide_block_lazy_clone(b, 0, &twin, &err), &err);
    tide_block_set_guard(b, 0, UINT32_MAX);
    assert_true(tide_block_is_cow(b));
    // Guards are the block's own, the memory's lazy clones have theirs.
    tide_block_set_guard(b, TIDE_BLOCK_FAIL_ACCESS, 0);
    const void *r = NULL;
    assert_tide_ok(tide_block_read(twin, &r, &err), &err);
    tide_block_unref(b);
    tide_block_unref(twin);
}

// A file mapping cannot be written, and says what to do; its guards cannot be taken away.
static void mapping_refuses_writes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_guard_XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_map_file(path, 0, 0, TIDE_KIND_DEFAULT, &b, &err), &err);
    unlink(path);
    const void *r = NULL;
    void *w = NULL;
    assert_tide_ok(tide_block_read(b, &r, &err), &err);
    tide_block_set_guard(b, 0, UINT32_MAX);
    assert_tide_status(tide_block_write(b, &w, &err), TIDE_ERR_BUSY);
    assert_null(w);
    assert_text_has(err.msg, path);
    assert_text_has(err.msg, "read-only");
    assert_text_has(err.hint, "clone");
    tide_block_unref(b);
}

static void *write_once(void *arg) {
    tide_error err = TIDE_ERROR_INIT;
    void *w = NULL;
    return tide_block_write_slow(arg, &w, &err) == TIDE_OK ? arg : NULL;
}

// PT-8: once, however many threads write.
static void warning_is_given_once_under_threads(void **state) {
    (void)state;
    static mock m;
    tide_block *b = make_block(&m);
    log_lines lines = {0};
    tide_log_set(keep_line, &lines, TIDE_LOG_WARN);
    tide_block_set_guard(b, TIDE_BLOCK_WARN_WRITE, 0);
    pthread_t threads[8];
    void *good = NULL;
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, write_once, b), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &good);
        assert_ptr_equal(good, b);
    }
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    assert_int_equal(lines.n, 1);
    tide_block_unref(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(plain_block_takes_the_short_way), tide_unit_test(reading_never_copies),
        tide_unit_test(each_guard_does_its_part),        tide_unit_test(only_guards_can_be_set),
        tide_unit_test(mapping_refuses_writes),          tide_unit_test(warning_is_given_once_under_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
