// SPDX-License-Identifier: MIT
//
// The allocator of weights that stay in their file: what it gives out, what it holds, what it refuses, what is told of
// it.
#include <unistd.h>

#include "core/memory/allocators/allocators.h"
#include "core/memory/meter.h"
#include "tests/tide_test.h"

enum { FILE_BYTES = 40000 };

static tide_block *map_some_file(void) {
    char path[] = "/tmp/tide-mapped-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    char bytes[FILE_BYTES];
    for (int i = 0; i < FILE_BYTES; i++) bytes[i] = (char)i;
    assert_int_equal(write(fd, bytes, sizeof bytes), FILE_BYTES);
    close(fd);
    tide_error err = TIDE_ERROR_INIT;
    tide_block *file;
    assert_tide_ok(tide_block_map_file(path, 0, 0, TIDE_KIND_HOST_PAGEABLE, &file, &err), &err);
    assert_int_equal(remove(path), 0);
    return file;
}

static void parts_of_a_file(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *plain, *a;
    tide_meter *meter;
    assert_tide_ok(tide_mapped_create(&plain, &err), &err);
    assert_tide_ok(tide_meter_create(&meter, &err), &err);
    const tide_observer obs = tide_meter_observer(meter);
    assert_tide_ok(tide_instrumented_create(plain, &obs, &a, &err), &err);
    tide_block *file = map_some_file(), *parts[2];
    const char *bytes = tide_block_address(file);
    for (size_t i = 0; i < 2; i++) {
        assert_tide_ok(
            tide_mapped_block_create(a, file, bytes + 8 + 404 * i, 404, 4, TIDE_KIND_PERSISTENT, "w", &parts[i], &err),
            &err);
        assert_ptr_equal(tide_block_address(parts[i]), bytes + 8 + 404 * i);
    }
    void *data;
    assert_tide_status(tide_block_write(parts[0], &data, &err), TIDE_ERR_BUSY); // a file is not written
    tide_meter_kind seen;
    tide_meter_get(meter, TIDE_KIND_PERSISTENT, &seen);
    assert_int_equal(seen.peak_bytes, 808);
    assert_int_equal(seen.reserved_peak_bytes, 808);
    assert_int_equal(tide_block_use_count(file), 3); // each part holds it
    tide_block_unref(file);
    assert_int_equal(((const char *)tide_block_address(parts[1]))[3], (char)(8 + 404 + 3));
    tide_allocator_stats stats;
    tide_allocator_get_stats(plain, &stats);
    assert_int_equal(stats.active_bytes, 808);
    assert_int_equal(stats.n_system, 0); // nothing is taken from the system
    assert_tide_ok(tide_allocator_check(plain, &err), &err);
    tide_block_unref(parts[0]);
    tide_block_unref(parts[1]);
    tide_allocator_get_stats(plain, &stats);
    assert_int_equal(stats.active_bytes, 0);
    assert_tide_ok(tide_allocator_check(plain, &err), &err);
    tide_allocator_unref(a);
    tide_allocator_unref(plain);
    tide_meter_destroy(meter);
}

/// Also right after a part was refused, and in the thread that offered it.
static void anything_else_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a;
    tide_block *file = map_some_file(), *b;
    const char *bytes = tide_block_address(file);
    assert_tide_ok(tide_mapped_create(&a, &err), &err);
    assert_tide_status(tide_block_create(a, 64, 64, TIDE_KIND_PERSISTENT, 0, "w", &b, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no part of a file for 64 B of 'w'");
    tide_error_clear(&err);
    assert_tide_status(tide_mapped_block_create(a, file, bytes + 2, 64, 4, TIDE_KIND_PERSISTENT, "w", &b, &err),
                       TIDE_ERR_INVALID); // not at an address that 4 bytes may have
    tide_error_clear(&err);
    assert_tide_status(tide_block_create(a, 64, 2, TIDE_KIND_PERSISTENT, 0, "w", &b, &err), TIDE_ERR_INVALID);
    assert_int_equal(tide_block_use_count(file), 1);
    tide_block_unref(file);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(parts_of_a_file),
        tide_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
