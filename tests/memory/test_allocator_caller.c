// SPDX-License-Identifier: MIT
//
// caller: blocks lie in the memory that was brought, one behind the other, at any address it begins at; nothing outside
// it is touched, and what does not fit changes nothing.
#include "memory_test.h"

enum { BYTES = 1000, EDGE = 64, GUARD = 0xA5 };

/// Memory of BYTES at an odd address, between two edges that must stay as they are.
typedef struct brought {
    _Alignas(4096) unsigned char all[4096 + 1 + EDGE + BYTES + EDGE];
} brought;

static unsigned char *bring(brought *b) {
    memset(b->all, GUARD, sizeof b->all);
    return b->all + 1 + EDGE;
}

static void assert_edges(const brought *b) {
    for (size_t i = 0; i < 1 + EDGE; i++) assert_int_equal(b->all[i], GUARD);
    for (size_t i = 1 + EDGE + BYTES; i < sizeof b->all; i++) assert_int_equal(b->all[i], GUARD);
}

static tide_allocator *make(void *memory, size_t size_bytes, size_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_caller_create(memory, size_bytes, align_bytes, &a, &err), &err);
    return a;
}

static void fill(const tide_memory *mem, int byte) { memset(mem->data, byte, mem->requested_bytes); }

/// At an odd address too every block is aligned, and the padding belongs to the block behind it.
static void one_behind_the_other(void **state) {
    (void)state;
    static brought b;
    unsigned char *const memory = bring(&b);
    tide_allocator *a = make(memory, BYTES, 1);
    const tide_memory x = take(a, 10, 1), y = take(a, 100, 64), z = take(a, 7, 1);
    assert_ptr_equal(x.data, memory);
    assert_int_equal(x.reserved_bytes, 10);
    assert_true((uintptr_t)y.data % 64 == 0 && (unsigned char *)y.data - (memory + 10) < 64);
    assert_int_equal(y.reserved_bytes, (size_t)((unsigned char *)y.data - (memory + 10)) + 100);
    assert_ptr_equal(z.data, (unsigned char *)y.data + 100);
    fill(&x, 1);
    fill(&y, 2);
    fill(&z, 3);
    const tide_allocator_stats s = stats_of(a);
    assert_int_equal(s.requested_bytes, 117);
    assert_int_equal(s.active_bytes, (size_t)((unsigned char *)z.data + 7 - memory));
    assert_int_equal(s.reserved_bytes, BYTES);
    assert_int_equal(s.cached_bytes, BYTES - s.active_bytes);
    assert_int_equal(s.n_system, 0); // nothing is taken from the system
    assert_edges(&b);
    give(a, &y);
    give(a, &x);
    assert_tide_status(tide_allocator_reset(a, NULL), TIDE_ERR_BUSY);
    give(a, &z);
    assert_int_equal(stats_of(a).active_bytes, s.active_bytes);
    assert_tide_status(tide_allocator_reset(a, NULL), TIDE_OK);
    assert_int_equal(stats_of(a).largest_free_bytes, BYTES);
    assert_sound(a);
    tide_allocator_unref(a);
    assert_edges(&b);
}

/// To the last byte; one byte more is refused with both numbers.
static void all_of_it_and_no_more(void **state) {
    (void)state;
    static brought b;
    unsigned char *const memory = bring(&b);
    tide_allocator *a = make(memory, BYTES, 1);
    const tide_memory all = take(a, BYTES, 1);
    fill(&all, 7);
    const tide_alloc_request more = {.size_bytes = 1, .align_bytes = 1, .tag = "more"};
    tide_memory mem = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_allocator_alloc(a, &more, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "'more' needs 1 B (alignment 1), 0 B left of 1000");
    assert_edges(&b);
    give(a, &all);
    assert_tide_status(tide_allocator_reset(a, NULL), TIDE_OK);
    // The padding alone does not fit.
    const tide_alloc_request aligned = {.size_bytes = 1, .align_bytes = 8192, .tag = "aligned"};
    tide_error_clear(&err);
    const uintptr_t begin = (uintptr_t)memory;
    if ((begin + BYTES) / 8192 == begin / 8192)
        assert_tide_status(tide_allocator_alloc(a, &aligned, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_int_equal(stats_of(a).active_bytes, 0);
    tide_allocator_unref(a);
    a = make(NULL, 0, 64); // no memory at all
    assert_tide_status(tide_allocator_alloc(a, &more, &mem, NULL), TIDE_ERR_NO_SPACE);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void what_is_no_memory_is_refused(void **state) {
    (void)state;
    static char memory[64];
    static const struct {
        void *memory;
        size_t size_bytes, align_bytes;
        const char *says;
    } bad[] = {{memory, 64, 0, "alignment 0"},
               {memory, 64, 48, "alignment 48"},
               {NULL, 1, 64, "1 B at address NULL"},
               {memory, SIZE_MAX, 64, "past the end"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_status(tide_caller_create(bad[i].memory, bad[i].size_bytes, bad[i].align_bytes, &a, &err),
                           TIDE_ERR_INVALID);
        assert_text_has(err.msg, bad[i].says);
        assert_null(a);
    }
}

/// Observers hear of its blocks under its name; a lazy clone is a copy, which must lie elsewhere.
static void blocks_are_ordinary(void **state) {
    (void)state;
    static brought b;
    static listener heard;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&heard);
    tide_allocator *plain = make(bring(&b), 4 * EDGE, 1), *a = NULL;
    assert_tide_ok(tide_instrumented_create(plain, &obs, &a, &err), &err);
    tide_allocator_unref(plain);
    tide_block *block = NULL;
    assert_tide_ok(tide_block_create(a, 2 * EDGE, 1, TIDE_KIND_DEFAULT, 0, "y", &block, &err), &err);
    tide_allocator_unref(a);
    assert_int_equal(heard.n, 1);
    assert_string_equal(heard.events[0].allocator, "caller");
    assert_string_equal(heard.events[0].tag, "y");
    assert_int_equal(heard.events[0].event.reserved_bytes, 2 * EDGE);
    assert_false(tide_block_is_simple(block));
    tide_block *twin = block;
    assert_tide_ok(tide_block_lazy_clone(block, 0, &twin, &err), &err);
    assert_null(twin); // the caller must copy
    tide_block *second = NULL;
    assert_tide_status(tide_block_create(block->owner, 2 * EDGE + 1, 1, TIDE_KIND_DEFAULT, 0, "copy", &second, &err),
                       TIDE_ERR_NO_SPACE);
    assert_text_has(err.hint, "say device and kind");
    assert_int_equal(heard.events[heard.n - 1].event.op, TIDE_MEM_OOM);
    tide_block_unref(block);
    assert_int_equal(heard.events[heard.n - 1].event.op, TIDE_MEM_FREE_COMPLETED);
    assert_edges(&b);
    pthread_mutex_destroy(&heard.lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(one_behind_the_other),
        tide_unit_test(all_of_it_and_no_more),
        tide_unit_test(what_is_no_memory_is_refused),
        tide_unit_test(blocks_are_ordinary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
