// SPDX-License-Identifier: MIT
//
// Blocks over foreign memory: borrowed, adopted with its release, mapped from a file.
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/block.h"
#include "core/memory/poison.h"
#include "tests/tide_test.h"

static void count_release(void *ctx) { ++*(int *)ctx; }

// LT-9, LT-12, PT-11: borrowed memory is never freed by us; its release routine runs once, or there is none.
static void borrowed_block_is_never_freed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char bytes[64] = "theirs";
    int n_released = 0;
    tide_block *b = NULL;
    assert_tide_ok(tide_block_borrow(bytes, sizeof bytes, TIDE_CPU, TIDE_KIND_PERSISTENT, count_release, &n_released,
                                     "weights", &b, &err),
                   &err);
    assert_null(b->owner);
    assert_ptr_equal(b->mem.data, bytes);
    assert_int_equal(b->kind, TIDE_KIND_PERSISTENT);
    assert_true(b->id > 0);
    tide_block_ref(b);
    tide_block_unref(b);
    assert_int_equal(n_released, 0);
    tide_block_unref(b);
    assert_int_equal(n_released, 1);

    assert_tide_ok(
        tide_block_borrow(bytes, sizeof bytes, TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, NULL, NULL, NULL, &b, &err), &err);
    assert_int_equal(b->kind, TIDE_KIND_HOST_PAGEABLE);
    tide_block_unref(b);
    assert_string_equal(bytes, "theirs");

    // A refused borrow leaves the memory with its owner: the routine does not run.
    assert_tide_status(
        tide_block_borrow(NULL, 5, TIDE_CPU, TIDE_KIND_DEFAULT, count_release, &n_released, NULL, &b, &err),
        TIDE_ERR_INVALID);
    assert_tide_status(
        tide_block_borrow(bytes, SIZE_MAX, TIDE_CPU, TIDE_KIND_DEFAULT, count_release, &n_released, NULL, &b, &err),
        TIDE_ERR_INVALID);
    assert_tide_status(tide_block_borrow(bytes, 5, (tide_device){TIDE_DEVICE_CUDA, 0}, TIDE_KIND_HOST_PINNED,
                                         count_release, &n_released, NULL, &b, &err),
                       TIDE_ERR_INVALID);
    tide_host_fail_after(0);
    assert_tide_status(
        tide_block_borrow(bytes, 5, TIDE_CPU, TIDE_KIND_DEFAULT, count_release, &n_released, NULL, &b, &err),
        TIDE_ERR_NOMEM);
    assert_int_equal(n_released, 1);
}

static int n_freed_by_host, n_freed_by_device, n_freed_by_runtime;
static void free_by_host(void *context) {
    n_freed_by_host++;
    free(context);
}
static void free_by_device(void *context) {
    n_freed_by_device++;
    free(context);
}
static void free_by_runtime(void *context) {
    n_freed_by_runtime++;
    **(char **)context = 'x'; // a foreign runtime marks its record
}

// S28-5: the buffer is untyped and counted, and carries its own release: three routines, each called once at count 0.
static void buffer_carries_its_release(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char record = ' ', *record_at = &record, bytes[32];
    void *host = malloc(32), *device = malloc(32);
    tide_data_ptr ptrs[3] = {tide_data_ptr_make(host, host, free_by_host, TIDE_CPU),
                             tide_data_ptr_make(device, device, free_by_device, (tide_device){TIDE_DEVICE_CUDA, 0}),
                             tide_data_ptr_make(bytes, &record_at, free_by_runtime, TIDE_CPU)};
    int *const counts[3] = {&n_freed_by_host, &n_freed_by_device, &n_freed_by_runtime};
    for (int i = 0; i < 3; i++) {
        tide_block *b = NULL;
        assert_tide_ok(tide_block_adopt(&ptrs[i], 32, TIDE_KIND_DEFAULT, NULL, &b, &err), &err);
        assert_null(ptrs[i].data); // taken
        tide_block_ref(b);
        tide_block_unref(b);
        assert_int_equal(*counts[i], 0);
        tide_block_unref(b);
        assert_int_equal(*counts[i], 1);
    }
    assert_int_equal(record, 'x');
    assert_int_equal(n_freed_by_host + n_freed_by_device + n_freed_by_runtime, 3);
}

// LT-12: foreign memory is counted by kind, apart from all allocators, as long as a block is over it.
static void foreign_bytes_are_counted_by_kind(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char bytes[96];
    tide_block *plain = NULL, *weights = NULL;
    const uint64_t plain_before = tide_block_external_bytes(TIDE_KIND_DEFAULT);
    const uint64_t weights_before = tide_block_external_bytes(TIDE_KIND_PERSISTENT);
    assert_tide_ok(tide_block_borrow(bytes, 32, TIDE_CPU, TIDE_KIND_DEFAULT, NULL, NULL, NULL, &plain, &err), &err);
    assert_tide_ok(tide_block_borrow(bytes + 32, 64, TIDE_CPU, TIDE_KIND_PERSISTENT, NULL, NULL, NULL, &weights, &err),
                   &err);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_DEFAULT) - plain_before, 32);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_PERSISTENT) - weights_before, 64);
    assert_int_equal(tide_block_external_bytes((tide_memory_kind)77), 0);
    tide_text text = {0};
    tide_block_describe(weights, &text);
    assert_text_has(tide_text_str(&text), "kind Persistent, owner (external)");
    tide_text_deinit(&text);
    tide_block_unref(plain);
    tide_block_unref(weights);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_DEFAULT), plain_before);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_PERSISTENT), weights_before);
}

// LT-12, the rule: the caller keeps borrowed memory alive. A block over memory that its owner gave up still points
// there, and what it reads is whatever the owner left: here the poison of a debug allocator.
static void caller_keeps_borrowed_memory_alive(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char theirs[64];
    memset(theirs, 1, sizeof theirs);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_borrow(theirs, sizeof theirs, TIDE_CPU, TIDE_KIND_DEFAULT, NULL, NULL, NULL, &b, &err),
                   &err);
    tide_poison_fill(theirs, sizeof theirs); // their free, in a debug build
    const void *seen = NULL;
    assert_tide_ok(tide_block_read(b, &seen, &err), &err);
    assert_ptr_equal(seen, theirs);
    assert_int_equal(tide_poison_find(seen, sizeof theirs), sizeof theirs);
    tide_block_unref(b);
}

// PT-10: a mapped file as a block: read-only, tagged with its path, unmapped with the last reference.
static void mapped_file_is_a_block(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_block_XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    tide_block *b = NULL;
    const uint64_t before = tide_block_external_bytes(TIDE_KIND_PERSISTENT);
    assert_tide_ok(tide_block_map_file(path, 3, 5, TIDE_KIND_PERSISTENT, &b, &err), &err);
    assert_string_equal(b->tag, path);
    assert_int_equal(b->mem.requested_bytes, 5);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_PERSISTENT) - before, 5);
    const void *bytes = NULL;
    assert_tide_ok(tide_block_read(b, &bytes, &err), &err);
    assert_memory_equal(bytes, "34567", 5);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *const at = (void *)((uintptr_t)bytes / page * page);
    unsigned char in_core;
    tide_block_unref(b);
    assert_int_not_equal(mincore(at, page, &in_core), 0);

    // Refused where the kind, the range or the memory is not there; nothing stays mapped, nothing leaks.
    b = NULL;
    assert_tide_status(tide_block_map_file(path, 0, 11, TIDE_KIND_DEFAULT, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_map_file(path, 0, 0, (tide_memory_kind)77, &b, &err), TIDE_ERR_INVALID);
    tide_status st;
    int n_failed = 0;
    for (;; n_failed++) {
        tide_host_fail_after(n_failed);
        st = tide_block_map_file(path, 0, 0, TIDE_KIND_DEFAULT, &b, &err);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_null(b);
    }
    tide_host_fail_after(-1);
    assert_int_equal(n_failed, 2); // the mapping's record and the block
    tide_block_unref(b);
    unlink(path);
}

// A mapping cannot be written whichever way it came into the block.
static void adopted_mapping_is_read_only(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_block_XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    tide_block *b = NULL;
    void *unused;
    assert_tide_ok(tide_data_ptr_map_file(path, 0, 0, &p, NULL, &err), &err);
    unlink(path);
    assert_true(tide_data_ptr_is_read_only(&p));
    assert_tide_ok(tide_block_adopt(&p, 10, TIDE_KIND_DEFAULT, "file", &b, &err), &err);
    assert_false(tide_data_ptr_is_read_only(&p)); // taken
    assert_tide_status(tide_block_write(b, &unused, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "'file': its memory is read-only");
    tide_block_unref(b);
}

// A failed adoption leaves the pointer with the caller, to release or to try again.
static void failed_adoption_takes_nothing(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    int n_released = 0;
    char bytes[16];
    tide_data_ptr p = tide_data_ptr_make(bytes, &n_released, count_release, TIDE_CPU);
    tide_block *b = NULL;
    tide_host_fail_after(0);
    assert_tide_status(tide_block_adopt(&p, 16, TIDE_KIND_DEFAULT, "theirs", &b, &err), TIDE_ERR_NOMEM);
    assert_tide_status(tide_block_adopt(&p, 16, (tide_memory_kind)77, "theirs", &b, &err), TIDE_ERR_INVALID);
    assert_null(b);
    assert_ptr_equal(p.data, bytes);
    assert_int_equal(n_released, 0);
    assert_int_equal(tide_block_external_bytes(TIDE_KIND_DEFAULT), 0);
    assert_tide_ok(tide_block_adopt(&p, 16, TIDE_KIND_DEFAULT, "theirs", &b, &err), &err);
    tide_block_unref(b);
    assert_int_equal(n_released, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(borrowed_block_is_never_freed),
        tide_unit_test(buffer_carries_its_release),
        tide_unit_test(foreign_bytes_are_counted_by_kind),
        tide_unit_test(caller_keeps_borrowed_memory_alive),
        tide_unit_test(mapped_file_is_a_block),
        tide_unit_test(adopted_mapping_is_read_only),
        tide_unit_test(failed_adoption_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
