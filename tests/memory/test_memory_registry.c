// SPDX-License-Identifier: MIT
//
// The registry: priorities, replacement, the registry of the process.
#include "core/memory/storage.h"
#include "registry_test.h"

// PT-14: priorities 0, 1, 1, 2 in every order: the one with 2 serves.
static void highest_priority_wins_in_any_order(void **state) {
    (void)state;
    static const int priorities[4] = {0, 1, 1, 2};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *all[4];
    for (int i = 0; i < 4; i++) all[i] = make_cpu();
    int n_orders = 0;
    for (int code = 0; code < 256; code++) {
        const int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15) continue;
        n_orders++;
        tide_registry *r = make();
        int last_of_1 = -1;
        for (int i = 0; i < 4; i++) {
            const int a = order[i];
            if (priorities[a] == 2) break;
            if (priorities[a] == 1) last_of_1 = a;
            assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, all[a], priorities[a], &err), &err);
            tide_allocator *got = NULL;
            assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), &err);
            assert_ptr_equal(got, all[last_of_1 >= 0 ? last_of_1 : a]); // the later one among equals
        }
        for (int i = 0; i < 4; i++)
            assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, all[order[i]], priorities[order[i]], &err), &err);
        tide_registry_row row;
        assert_int_equal(tide_registry_rows(r, &row, 1), 1);
        assert_ptr_equal(row.allocator, all[3]);
        assert_int_equal(row.priority, 2);
        tide_registry_destroy(r);
    }
    assert_int_equal(n_orders, 24);
    for (int i = 0; i < 4; i++) tide_allocator_unref(all[i]);
}

static void missing_allocators_are_reported(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu(), *got = NULL;
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "KVCache");
    assert_text_has(err.msg, "cpu");
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err), &err);
    const tide_device cuda0 = {TIDE_DEVICE_CUDA, 0};
    assert_tide_status(tide_registry_get(r, cuda0, TIDE_KIND_DEFAULT, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_null(got);
    assert_tide_status(tide_registry_add(r, (tide_memory_kind)99, a, 0, &err), TIDE_ERR_INVALID);
    tide_registry_destroy(r);
    tide_registry_destroy(NULL);
    tide_allocator_unref(a);
}

// LT-17, LT-18: the key is (device, kind); rows come in order; more rows than fit into the object itself.
static void rows_are_ordered_by_device_and_kind(void **state) {
    (void)state;
    enum { N_DEVICES = 12 };
    static const int order[N_DEVICES] = {5, 0, 11, 3, 8, 1, 9, 2, 10, 4, 7, 6};
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    int n_destroyed = 0;
    for (int i = 0; i < N_DEVICES; i++) {
        tide_allocator *a = NULL;
        const tide_device device = {TIDE_DEVICE_CUDA, order[i]};
        assert_tide_ok(tide_allocator_create(&named_only, &n_destroyed, device, &a, &err), &err);
        for (int kind = 3; kind >= 0; kind--)
            assert_tide_ok(tide_registry_add(r, (tide_memory_kind)kind, a, i, &err), &err);
        assert_tide_status(tide_registry_add(r, TIDE_KIND_HOST_PINNED, a, 0, &err), TIDE_ERR_INVALID);
        tide_allocator_unref(a);
    }
    tide_allocator *cpu = make_cpu();
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_HOST_PINNED, cpu, 0, &err), &err);
    tide_allocator_unref(cpu);
    tide_registry_row rows[64];
    assert_int_equal(tide_registry_rows(r, rows, 64), 4 * N_DEVICES + 1);
    assert_int_equal(tide_registry_rows(r, NULL, 0), 4 * N_DEVICES + 1);
    assert_int_equal(rows[0].device.type, TIDE_DEVICE_CPU);
    for (int i = 0; i < 4 * N_DEVICES; i++) {
        assert_int_equal(rows[i + 1].device.index, i / 4);
        assert_int_equal(rows[i + 1].kind, i % 4);
        assert_int_equal(tide_allocator_device(rows[i + 1].allocator).index, i / 4);
        assert_int_equal(order[rows[i + 1].priority], i / 4);
    }
    assert_int_equal(n_destroyed, 0);
    tide_registry_destroy(r);
    assert_int_equal(n_destroyed, N_DEVICES);
}

// LT-20, LT-34: another allocator for the KV cache, the same program; blocks of the old one stay whole.
static void swapping_needs_no_other_change(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *old = make_cpu(), *fresh = NULL, *got = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&fresh, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, old, 0, &err), &err);
    tide_allocator_unref(old); // the registry's now
    assert_tide_ok(tide_registry_acquire(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(got, 1000, 0, TIDE_KIND_KV_CACHE, 0, "kv", &b, &err), &err);
    tide_allocator_unref(got);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, fresh, 0, &err), &err);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    assert_ptr_equal(got, fresh);
    memset(b->mem.data, 1, 1000);
    assert_true(stats_of(b->owner).requested_bytes == 1000);
    tide_registry_destroy(r);
    tide_block_unref(b);
    tide_allocator_unref(fresh);
}

/// The program of LT-20: it names a kind and knows no allocator.
static tide_storage keep_keys_and_values(tide_registry *r) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_storage_spec spec = {.device = TIDE_CPU, .kind = TIDE_KIND_KV_CACHE, .registry = r, .tag = "kv"};
    tide_storage s = {0};
    assert_tide_ok(tide_storage_create(&spec, 1000, &s, &err), &err);
    return s;
}

// LT-20: another allocator for the KV cache, the same program, different stats.
static void the_program_does_not_know_the_allocator(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *plain = make_cpu(), *caching = NULL;
    tide_allocator_stats stats;
    assert_tide_ok(tide_cpu_caching_allocator_create(&caching, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, plain, 0, &err), &err);
    tide_storage s = keep_keys_and_values(r);
    assert_tide_ok(tide_registry_stats(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &stats, &err), &err);
    assert_true(stats.n_allocs == 1 && stats.requested_bytes == 1024);
    tide_storage_deinit(&s);
    assert_tide_ok(tide_registry_stats(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &stats, &err), &err);
    assert_true(stats.n_frees == 1 && stats.cached_bytes == 0);

    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, caching, 0, &err), &err);
    s = keep_keys_and_values(r);
    tide_storage_deinit(&s);
    assert_tide_ok(tide_registry_stats(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &stats, &err), &err);
    assert_true(stats.n_allocs == 1 && stats.cached_bytes >= 1024); // the other one's numbers
    assert_true(stats_of(plain).n_allocs == 1);
    assert_tide_status(tide_registry_stats(r, TIDE_CPU, TIDE_KIND_WORKSPACE, &stats, &err), TIDE_ERR_NOT_FOUND);
    tide_registry_destroy(r);
    tide_allocator_unref(plain);
    tide_allocator_unref(caching);
}

/// An allocator that gives one buffer and says when it is destroyed.
typedef struct one_buffer {
    char bytes[256];
    uint64_t n_allocs, n_frees, n_pending;
    int n_destroyed;
} one_buffer;

static tide_status one_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    one_buffer *o = self;
    if (req->size_bytes > sizeof o->bytes) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "too much");
    out->data = o->bytes;
    o->n_allocs++;
    return TIDE_OK;
}
static void one_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)mem;
    (void)last_stream;
    ((one_buffer *)self)->n_frees++;
}
static void one_stats(const void *self, tide_allocator_stats *out) {
    const one_buffer *o = self;
    out->n_allocs = o->n_allocs;
    out->n_frees = o->n_frees;
    out->n_pending = o->n_pending;
    out->requested_bytes = (o->n_allocs - o->n_frees) * 100;
}
static void one_destroy(void *self) { ((one_buffer *)self)->n_destroyed++; }
static const tide_allocator_ops one_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "one_buffer",
                                           .alloc = one_alloc,
                                           .release = one_release,
                                           .stats = one_stats,
                                           .destroy = one_destroy};

// LT-34: unregistering with live blocks is refused with the numbers, and nothing changes; forced, the row goes and the
// allocator lives until its last block is given back.
static void leaving_with_live_blocks_LT_34(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    one_buffer o = {.n_allocs = 0};
    tide_allocator *a = NULL, *got = NULL;
    assert_tide_ok(tide_allocator_create(&one_ops, &o, TIDE_CPU, &a, &err), &err);
    assert_tide_status(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_DEFAULT, true, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_registry_add_device(r, a, 0, &err), &err);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 100, 0, TIDE_KIND_DEFAULT, 0, "held", &b, &err), &err);
    tide_allocator_unref(a); // the registry's and the block's now

    assert_tide_status(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_DEFAULT, false, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "1 blocks");
    assert_text_has(err.msg, "100 bytes");
    assert_text_has(err.msg, "one_buffer");
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), &err);
    assert_ptr_equal(got, a);

    assert_tide_ok(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_DEFAULT, true, &err), &err);
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_registry_acquire_device(r, TIDE_CPU, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_int_equal(tide_registry_rows(r, NULL, 0), 0);
    assert_int_equal(o.n_destroyed, 0);
    memset(b->mem.data, 1, 100);
    tide_block_unref(b);
    assert_int_equal(o.n_frees, 1);
    assert_int_equal(o.n_destroyed, 1);
    tide_registry_destroy(r);
    assert_int_equal(o.n_destroyed, 1);
}

static void leaving_idle(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    one_buffer o = {.n_allocs = 3, .n_frees = 3, .n_pending = 1};
    tide_allocator *a = NULL, *got = NULL;
    assert_tide_ok(tide_allocator_create(&one_ops, &o, TIDE_CPU, &a, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_WORKSPACE, a, 0, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, a, 0, &err), &err);
    tide_allocator_unref(a);
    // Released, but a stream may still use it: not idle yet.
    assert_tide_status(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_WORKSPACE, false, &err), TIDE_ERR_BUSY);
    assert_text_has(err.note, "stream");
    o.n_pending = 0;
    assert_tide_ok(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_WORKSPACE, false, &err), &err);
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_WORKSPACE, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    assert_int_equal(o.n_destroyed, 0);
    assert_tide_ok(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_KV_CACHE, false, &err), &err);
    assert_int_equal(o.n_destroyed, 1);
    tide_registry_destroy(r);
}

static void host_memory_ends_while_adding(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    tide_host_fail_after(0);
    assert_tide_status(tide_registry_create(&r, &err), TIDE_ERR_NOMEM);
    r = make();
    int n_destroyed = 0;
    tide_status st = TIDE_OK;
    size_t n_added = 0;
    while (st == TIDE_OK) {
        tide_allocator *a = NULL;
        const tide_device device = {TIDE_DEVICE_CUDA, (int32_t)n_added};
        assert_tide_ok(tide_allocator_create(&named_only, &n_destroyed, device, &a, &err), &err);
        tide_host_fail_after(0);
        st = tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) n_added++;
        tide_allocator_unref(a);
    }
    assert_tide_status(st, TIDE_ERR_NOMEM);
    assert_int_equal(n_destroyed, 1); // the one that found no room
    assert_int_equal(tide_registry_rows(r, NULL, 0), n_added);
    tide_registry_destroy(r);
    assert_int_equal(n_destroyed, n_added + 1);
}

static void *ask_for_the_default(void *arg) {
    (void)arg;
    return tide_registry_default();
}

// what LT calls ExecutionContext is this one object for the whole process; the word "context" is kept for the
// object of one request (core/runtime/context.h). It takes no host memory and cannot fail.
static void the_registry_of_the_process(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_host_fail_after(0);
    tide_registry *r = tide_registry_default();
    tide_host_fail_after(-1);
    assert_non_null(r);
    pthread_t other;
    void *seen = NULL;
    assert_int_equal(pthread_create(&other, NULL, ask_for_the_default, NULL), 0);
    pthread_join(other, &seen);
    assert_ptr_equal(seen, r);
    tide_allocator *device = NULL;
    assert_tide_ok(tide_registry_acquire_device(r, TIDE_CPU, &device, &err), &err);
    assert_string_equal(tide_allocator_name(device), "cpu");
    tide_allocator_unref(device);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        tide_allocator *a = NULL;
        assert_tide_ok(tide_registry_get(r, TIDE_CPU, (tide_memory_kind)kind, &a, &err), &err);
        assert_string_equal(tide_allocator_name(a), "cpu");
    }
}

static void *swap_for_ever(void *registry) {
    for (int i = 0; i < 500; i++) {
        tide_allocator *a = NULL;
        if (tide_cpu_allocator_create(&a, NULL) != TIDE_OK) return NULL;
        (void)!tide_registry_add(registry, TIDE_KIND_DEFAULT, a, 0, NULL);
        tide_allocator_unref(a);
    }
    return NULL;
}

static void *use_for_ever(void *registry) {
    for (int i = 0; i < 500; i++) {
        tide_allocator *a = NULL;
        tide_block *b = NULL;
        if (tide_registry_acquire(registry, TIDE_CPU, TIDE_KIND_DEFAULT, &a, NULL) != TIDE_OK) return registry;
        if (tide_block_create(a, 64, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, NULL) != TIDE_OK) return registry;
        tide_allocator_unref(a);
        tide_block_unref(b);
    }
    return NULL;
}

// LT-19: set and read from several threads.
static void swapped_while_in_use(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu();
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err), &err);
    tide_allocator_unref(a);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? swap_for_ever : use_for_ever, r), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    tide_registry_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(highest_priority_wins_in_any_order),
        tide_unit_test(missing_allocators_are_reported),
        tide_unit_test(rows_are_ordered_by_device_and_kind),
        tide_unit_test(swapping_needs_no_other_change),
        tide_unit_test(the_program_does_not_know_the_allocator),
        tide_unit_test(leaving_with_live_blocks_LT_34),
        tide_unit_test(leaving_idle),
        tide_unit_test(host_memory_ends_while_adding),
        tide_unit_test(the_registry_of_the_process),
        tide_unit_test(swapped_while_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
