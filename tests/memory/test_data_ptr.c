// SPDX-License-Identifier: MIT
//
// core/memory/data_ptr (PT-1: the lowest layer): what is owned is released once, whatever kind of owner it has.
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/text.h"
#include "mock_allocator.h"

typedef struct owner {
    int n_released;
    void *seen;
} owner;

static void release_owner(void *context) {
    owner *o = context;
    o->n_released++;
    o->seen = context;
}

// PT-9: getters return what was given, a default-made one is null on the CPU, a bare pointer is not released.
static void getters_return_what_was_given(void **state) {
    (void)state;
    const tide_device cuda1 = {TIDE_DEVICE_CUDA, 1};
    char bytes[8] = "theirs";
    owner o = {0};
    tide_data_ptr p = tide_data_ptr_make(bytes, &o, release_owner, cuda1);
    assert_ptr_equal(tide_data_ptr_data(&p), bytes);
    assert_ptr_equal(tide_data_ptr_context(&p), &o);
    assert_true(tide_data_ptr_release_fn(&p) == release_owner);
    assert_true(tide_device_equal(tide_data_ptr_device(&p), cuda1));

    tide_data_ptr none = TIDE_DATA_PTR_INIT;
    assert_null(tide_data_ptr_data(&none));
    assert_null(tide_data_ptr_context(&none));
    assert_true(tide_data_ptr_release_fn(&none) == NULL);
    assert_true(tide_device_equal(tide_data_ptr_device(&none), TIDE_CPU));
    tide_data_ptr_reset(&none);

    tide_data_ptr bare = tide_data_ptr_bare(bytes, TIDE_CPU);
    assert_ptr_equal(tide_data_ptr_data(&bare), bytes);
    assert_true(tide_data_ptr_release_fn(&bare) == NULL);
    tide_data_ptr_reset(&bare);
    assert_null(bare.data);
    assert_string_equal(bytes, "theirs");
    tide_data_ptr_reset(&p);
    assert_int_equal(o.n_released, 1);
}

// PT-11: the release is called with the context, once; moving leaves nothing behind; no release is allowed.
static void release_is_called_once(void **state) {
    (void)state;
    const tide_device cuda1 = {TIDE_DEVICE_CUDA, 1};
    owner o = {0};
    char bytes[8];
    tide_data_ptr p = tide_data_ptr_make(bytes, &o, release_owner, cuda1);
    tide_data_ptr moved = tide_data_ptr_take(&p);
    assert_null(p.data);
    assert_true(p.release == NULL && tide_device_equal(p.device, cuda1));
    tide_data_ptr_reset(&p);
    assert_int_equal(o.n_released, 0);
    tide_data_ptr_reset(&moved);
    assert_int_equal(o.n_released, 1);
    assert_ptr_equal(o.seen, &o); // the context, not the data
    tide_data_ptr_reset(&moved);
    assert_int_equal(o.n_released, 1);

    // An owner that counts users, over no bytes at all: still released.
    tide_data_ptr empty = tide_data_ptr_make(NULL, &o, release_owner, TIDE_CPU);
    tide_data_ptr_reset(&empty);
    assert_int_equal(o.n_released, 2);
    tide_data_ptr quiet = tide_data_ptr_make(bytes, &o, NULL, TIDE_CPU);
    tide_data_ptr_reset(&quiet);
    assert_int_equal(o.n_released, 2);
}

// A release that looks at the pointer it belongs to finds it empty.
static tide_data_ptr looked_at;
static int n_looked;
static void release_again(void *context) {
    (void)context;
    n_looked++;
    tide_data_ptr_reset(&looked_at);
}
static void release_may_reset_its_own_pointer(void **state) {
    (void)state;
    char byte;
    looked_at = tide_data_ptr_make(&byte, &byte, release_again, TIDE_CPU);
    tide_data_ptr_reset(&looked_at);
    assert_int_equal(n_looked, 1);
}

// PT-10: the record of an allocator that needs more than the address to free.
static void allocator_record_is_the_context(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    const tide_alloc_request req = {.size_bytes = 100};
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &p, &err), &err);
    tide_allocator_unref(a); // the pointer keeps it
    assert_ptr_equal(p.data, m.given);
    assert_true(p.context != NULL && p.context != p.data);
    assert_false(tide_data_ptr_is_simple(&p));
    memset(p.data, 1, 100);
    void *const address = p.data;
    tide_data_ptr_reset(&p);
    assert_string_equal(m.order, "ard");
    assert_ptr_equal(m.released.data, address);
    assert_int_equal(m.released.requested_bytes, 100);
}

// PT-10: a wrapped foreign buffer; data lies inside what the owner holds.
static void foreign_buffer_has_its_own_owner(void **state) {
    (void)state;
    struct {
        owner o;
        char bytes[64];
    } theirs = {{0}, "their bytes"};
    tide_data_ptr p = tide_data_ptr_make(theirs.bytes + 6, &theirs.o, release_owner, TIDE_CPU);
    assert_false(tide_data_ptr_is_simple(&p));
    assert_string_equal(p.data, "bytes");
    tide_data_ptr_reset(&p);
    assert_int_equal(theirs.o.n_released, 1);
    tide_data_ptr self = tide_data_ptr_make(&theirs, &theirs, release_owner, TIDE_CPU);
    assert_true(tide_data_ptr_is_simple(&self));
}

// ---- closures ----

typedef struct note {
    int *n_called;
    void **data;
    char word[24];
    char *out;
} note;

static void write_note(void *data, void *arg) {
    const note *n = arg;
    ++*n->n_called;
    *n->data = data;
    memcpy(n->out, n->word, sizeof n->word);
}

// PT-12: works, with a copy of its argument; costs one host allocation and gives it back.
static void closure_keeps_its_argument(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    int n_called = 0;
    void *data = NULL;
    char out[24] = "", bytes[8];
    note arg = {&n_called, &data, "kept", out};
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    assert_tide_ok(tide_data_ptr_with_closure(bytes, TIDE_CPU, write_note, &arg, sizeof arg, &p, &err), &err);
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs - before.n_allocs, 1);
    assert_false(tide_data_ptr_is_simple(&p));
    memset(&arg, 0xEE, sizeof arg); // the closure has its own
    tide_data_ptr_reset(&p);
    tide_data_ptr_reset(&p);
    assert_int_equal(n_called, 1);
    assert_ptr_equal(data, bytes);
    assert_string_equal(out, "kept");
}

static void closure_needs_memory_and_a_function(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char bytes[8];
    note arg = {0};
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    tide_host_fail_after(0);
    assert_tide_status(tide_data_ptr_with_closure(bytes, TIDE_CPU, write_note, &arg, sizeof arg, &p, &err),
                       TIDE_ERR_NOMEM);
    assert_tide_status(tide_data_ptr_with_closure(bytes, TIDE_CPU, write_note, &arg, SIZE_MAX - 4, &p, &err),
                       TIDE_ERR_NOMEM);
    assert_tide_status(tide_data_ptr_with_closure(bytes, TIDE_CPU, NULL, &arg, sizeof arg, &p, &err), TIDE_ERR_INVALID);
    assert_null(p.data);
    assert_true(p.release == NULL);
}

static int n_sources, n_users;
static int look_for_closures(const char *path, const struct stat *info, int type, struct FTW *ftw) {
    (void)info;
    const char *name = path + ftw->base;
    const size_t n = strlen(name);
    if (type != FTW_F || n < 3 || strcmp(name + n - 2, ".c") != 0 || strcmp(name, "data_ptr.c") == 0) return 0;
    char *text = NULL;
    size_t len = 0;
    n_sources++;
    if (tide_read_file(path, 0, &text, &len, NULL) != TIDE_OK) return -1;
    if (strstr(text, "tide_data_ptr_with_closure") != NULL) {
        print_error("%s makes a closure\n", path);
        n_users++;
    }
    tide_host_free(text);
    return 0;
}

// PT-12: nothing in the runtime makes one, so none can be on the warm path.
static void closures_are_for_others(void **state) {
    (void)state;
    char core[512];
    tide_source_path("core", core, sizeof core);
    n_sources = n_users = 0;
    assert_int_equal(nftw(core, look_for_closures, 16, FTW_PHYS), 0);
    assert_true(n_sources > 50); // it did look
    assert_int_equal(n_users, 0);
}

// ---- mappings ----

/// A file of `n` bytes, byte i being i mod 251.
static void make_file(char *path, size_t n) {
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    unsigned char buf[4096];
    for (size_t done = 0; done < n;) {
        size_t k = 0;
        for (; k < sizeof buf && done + k < n; k++) buf[k] = (unsigned char)((done + k) % 251);
        assert_int_equal(write(fd, buf, k), k);
        done += k;
    }
    close(fd);
}

static bool is_mapped(void *address) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char in_core;
    return mincore((void *)((uintptr_t)address / page * page), page, &in_core) == 0;
}

// PT-10: address and content are right wherever the range begins; the file's pages are unmapped once.
static void mapping_begins_anywhere(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 3 * page + 100;
    char path[] = "/tmp/tide_map_XXXXXX";
    make_file(path, n);
    const struct {
        uint64_t offset;
        size_t size, want;
    } rows[] = {{0, 0, n},     {0, n, n},     {1, 10, 10},     {page, page, page},          {page - 1, 2, 2},
                {n - 1, 0, 1}, {n - 1, 1, 1}, {17, 0, n - 17}, {2 * page + 5, 0, page + 95}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_data_ptr p = TIDE_DATA_PTR_INIT;
        size_t got = 0;
        assert_tide_ok(tide_data_ptr_map_file(path, rows[i].offset, rows[i].size, &p, &got, &err), &err);
        assert_int_equal(got, rows[i].want);
        assert_false(tide_data_ptr_is_simple(&p));
        const unsigned char *bytes = p.data;
        for (size_t k = 0; k < got; k++) assert_int_equal(bytes[k], (rows[i].offset + k) % 251);
        void *const address = p.data;
        assert_true(is_mapped(address));
        tide_data_ptr_reset(&p);
        assert_false(is_mapped(address));
    }
    unlink(path);
}

// PT-10: a second reset must not take away what lives at the address by then.
static void mapping_is_unmapped_once(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_map_XXXXXX";
    make_file(path, 100);
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    size_t got;
    assert_tide_ok(tide_data_ptr_map_file(path, 0, 0, &p, &got, &err), &err);
    unlink(path); // the mapping keeps the file
    assert_int_equal(((const unsigned char *)p.data)[99], 99);
    void *const address = p.data;
    tide_data_ptr_reset(&p);
    void *const other = mmap(address, 100, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(other, address);
    tide_data_ptr_reset(&p);
    assert_true(is_mapped(other));
    munmap(other, 100);
}

static void impossible_mappings_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_map_XXXXXX", empty[] = "/tmp/tide_map_XXXXXX";
    make_file(path, 100);
    make_file(empty, 0);
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    size_t got = 77;
    const struct {
        uint64_t offset;
        size_t size;
    } outside[] = {{0, 101},      {1, 100},           {100, 0},        {100, 1},
                   {99, 2},       {UINT64_MAX, 0},    {UINT64_MAX, 2}, {UINT64_MAX - 4096, 8192},
                   {1, SIZE_MAX}, {50, SIZE_MAX - 49}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_tide_status(tide_data_ptr_map_file(path, outside[i].offset, outside[i].size, &p, &got, &err),
                           TIDE_ERR_INVALID);
        assert_text_has(err.msg, "100 B");
    }
    assert_tide_status(tide_data_ptr_map_file(empty, 0, 0, &p, &got, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "empty");
    assert_tide_status(tide_data_ptr_map_file("/nowhere/at/all", 0, 0, &p, &got, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "No such file");
    assert_tide_status(tide_data_ptr_map_file("/tmp", 0, 0, &p, &got, &err), TIDE_ERR_IO);
    assert_tide_status(tide_data_ptr_map_file("/dev/null", 0, 0, &p, &got, &err), TIDE_ERR_IO);
    tide_host_fail_after(0);
    assert_tide_status(tide_data_ptr_map_file(path, 0, 0, &p, &got, &err), TIDE_ERR_NOMEM);
    assert_null(p.data);
    assert_int_equal(got, 77);
    unlink(path);
    unlink(empty);
}

/// A file of 2^50 bytes, none of them written, is larger than any address space: that is no fault of the file.
static void a_mapping_without_room_is_no_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_data_ptr p = TIDE_DATA_PTR_INIT;
    char path[64];
    const int fd = memfd_create("tide_map", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 50), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_tide_status(tide_data_ptr_map_file(path, 0, 0, &p, NULL, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "Cannot allocate memory");
    assert_null(p.data);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(getters_return_what_was_given),
        tide_unit_test(release_is_called_once),
        tide_unit_test(release_may_reset_its_own_pointer),
        tide_unit_test(allocator_record_is_the_context),
        tide_unit_test(foreign_buffer_has_its_own_owner),
        tide_unit_test(closure_keeps_its_argument),
        tide_unit_test(closure_needs_memory_and_a_function),
        tide_unit_test(closures_are_for_others),
        tide_unit_test(mapping_begins_anywhere),
        tide_unit_test(mapping_is_unmapped_once),
        tide_unit_test(impossible_mappings_are_refused),
        tide_unit_test(a_mapping_without_room_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
