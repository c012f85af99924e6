// SPDX-License-Identifier: MIT
//
// A tensor of every memory kind on every device it is legal on, each kind from an allocator of its own: who serves it,
// where it lies, what it says of itself; and the kinds a device cannot have.
#include "tests/memory/mock_allocator.h"
#include "tests/tensor/tensor_test.h"

static const tide_device cuda0 = {TIDE_DEVICE_CUDA, 0};

/// The kinds of the house; a build may have more (docs/extending.md).
enum { N_OWN = TIDE_KIND_HOST_PAGEABLE + 1 };

/// The table of LT-17: on the CPU caching, pinned and others, on cuda:0 one for each kind that is legal there.
typedef struct table {
    tide_registry *registry;
    tide_allocator *on_cpu[N_OWN], *on_cuda[N_OWN]; ///< NULL: none
    mock mocks[N_OWN];
} table;

static bool is_host_kind(int kind) { return kind == TIDE_KIND_HOST_PINNED || kind == TIDE_KIND_HOST_PAGEABLE; }

static void table_open(table *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *backing = NULL;
    memset(b, 0, sizeof *b);
    assert_tide_ok(tide_registry_create(&b->registry, &err), &err);
    assert_tide_ok(tide_cpu_allocator_create(&backing, &err), &err);
    assert_tide_ok(tide_cpu_caching_allocator_create(&b->on_cpu[TIDE_KIND_DEFAULT], &err), &err);
    assert_tide_ok(tide_cpu_allocator_create(&b->on_cpu[TIDE_KIND_PERSISTENT], &err), &err);
    assert_tide_ok(tide_arena_create(backing, 1 << 16, 0, &b->on_cpu[TIDE_KIND_WORKSPACE], &err), &err);
    assert_tide_ok(tide_paged_create(backing, 4096, 16, &b->on_cpu[TIDE_KIND_KV_CACHE], &err), &err);
    assert_tide_ok(tide_pinned_create(TIDE_CPU, &b->on_cpu[TIDE_KIND_HOST_PINNED], &err), &err);
    assert_tide_ok(tide_cpu_allocator_create(&b->on_cpu[TIDE_KIND_HOST_PAGEABLE], &err), &err);
    tide_allocator_unref(backing);
    for (int k = 0; k < N_OWN; k++) {
        assert_tide_ok(tide_registry_add(b->registry, (tide_memory_kind)k, b->on_cpu[k], 0, &err), &err);
        if (is_host_kind(k)) continue;
        b->on_cuda[k] = make_mock(&b->mocks[k], cuda0);
        assert_tide_ok(tide_registry_add(b->registry, (tide_memory_kind)k, b->on_cuda[k], 0, &err), &err);
    }
}

static void table_close(table *b) {
    tide_registry_destroy(b->registry);
    for (int k = 0; k < N_OWN; k++) {
        assert_true(stats_of(b->on_cpu[k]).requested_bytes == 0);
        tide_allocator_unref(b->on_cpu[k]);
        if (b->on_cuda[k] == NULL) continue;
        assert_int_equal(b->mocks[k].n_allocs, b->mocks[k].n_releases);
        tide_allocator_unref(b->on_cuda[k]);
    }
}

static tide_tensor_spec spec_at(const table *b, tide_device device, int kind, const int64_t *n) {
    return (tide_tensor_spec){.dtype = TIDE_U8,
                              .shape = tide_shape_make(1, n),
                              .device = device,
                              .kind = (tide_memory_kind)kind,
                              .registry = b->registry,
                              .tag = "t"};
}

/// Several at once and of odd sizes, so that no address is a multiple by luck.
static void assert_kind_serves(const table *b, tide_device device, int kind) {
    enum { MANY = 9 };
    tide_allocator *want = device.type == TIDE_DEVICE_CPU ? b->on_cpu[kind] : b->on_cuda[kind];
    const tide_allocator_stats before = stats_of(want);
    tide_tensor *all[MANY];
    for (int64_t i = 0; i < MANY; i++) {
        const int64_t n = 1 + 37 * i;
        const tide_tensor_spec spec = spec_at(b, device, kind, &n);
        all[i] = make(&spec);
        const tide_block *block = tide_tensor_storage(all[i])->block;
        assert_int_equal(tide_tensor_kind(all[i]), kind);
        assert_true(tide_device_equal(tide_tensor_device(all[i]), device));
        assert_ptr_equal(block->owner, want);
        const size_t align = tide_memory_kind_alignment((tide_memory_kind)kind, device);
        assert_int_equal(block->align_bytes, align);
        assert_int_equal((uintptr_t)block->mem.data % align, 0);
        tide_text text = {0};
        char word[64];
        snprintf(word, sizeof word, "kind %s,", tide_memory_kind_name((tide_memory_kind)kind));
        tide_tensor_describe(all[i], &text);
        assert_text_has(tide_text_str(&text), word);
        tide_text_deinit(&text);
    }
    tide_allocator_stats held;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_registry_stats(b->registry, device, (tide_memory_kind)kind, &held, &err), &err);
    assert_true(held.n_allocs - before.n_allocs == MANY);
    for (int i = 0; i < MANY; i++) tide_tensor_unref(all[i]);
}

// LT-16: every kind can be made where it is legal, and prints its name. LT-17: by the row of its device and kind. X-3:
// every address obeys the rule of its device and kind. LT-18: pinned memory reports the CPU.
static void every_kind_where_it_is_legal_LT_16(void **state) {
    (void)state;
    static table b;
    table_open(&b);
    for (int kind = 0; kind < N_OWN; kind++) {
        assert_kind_serves(&b, TIDE_CPU, kind);
        if (!is_host_kind(kind)) assert_kind_serves(&b, cuda0, kind);
    }
    tide_registry_row rows[16];
    assert_int_equal(tide_registry_rows(b.registry, rows, 16), 10);
    for (int i = 0; i < 10; i++) {
        const bool cpu = i < N_OWN;
        assert_true(tide_device_equal(rows[i].device, cpu ? TIDE_CPU : cuda0));
        assert_int_equal(rows[i].kind, cpu ? i : i - N_OWN);
        assert_ptr_equal(rows[i].allocator, cpu ? b.on_cpu[rows[i].kind] : b.on_cuda[rows[i].kind]);
    }
    table_close(&b);
}

// LT-18: both host kinds on CUDA are refused with the reason, no allocator is called, and no tensor is made.
static void host_kinds_are_refused_elsewhere_LT_18(void **state) {
    (void)state;
    static table b;
    table_open(&b);
    for (int kind = 0; kind < N_OWN; kind++) {
        if (!is_host_kind(kind)) continue;
        tide_error err = TIDE_ERROR_INIT;
        const tide_tensor_spec spec = spec_at(&b, cuda0, kind, DIMS(100));
        tide_tensor *t = NULL;
        assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_INVALID);
        assert_false(tide_tensor_is_defined(t));
        assert_text_has(err.msg, tide_memory_kind_name((tide_memory_kind)kind));
        assert_text_has(err.msg, "cuda:0");
        assert_true(strlen(err.note) > 0);
    }
    for (int kind = 0; kind < N_OWN; kind++) {
        assert_string_equal(b.mocks[kind].order, "");
        assert_true(stats_of(b.on_cpu[kind]).n_allocs == 0);
    }
    table_close(&b);
}

// LT-10: {0, 3} where there is an allocator that would serve: it hears nothing, and the device is right. LT-11: with
// elements and no allocator for them the reason names what is missing, and no tensor comes out.
static void no_bytes_or_no_allocator_LT_10_LT_11(void **state) {
    (void)state;
    static mock m[2];
    const tide_device devices[2] = {TIDE_CPU, cuda0};
    for (int i = 0; i < 2; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = make_mock(&m[i], devices[i]);
        tide_registry *r = registry_of(a);
        tide_tensor_spec spec = {.dtype = TIDE_F32,
                                 .shape = tide_shape_make(2, DIMS(0, 3)),
                                 .device = devices[i],
                                 .registry = r,
                                 .tag = "none"};
        tide_tensor *t = make(&spec), *missing = NULL;
        assert_null(tide_tensor_data(t));
        assert_true(tide_device_equal(tide_tensor_device(t), devices[i]));
        assert_true(tide_storage_is_empty(tide_tensor_storage(t)));
        tide_tensor_unref(t);
        assert_string_equal(m[i].order, "");
        spec.shape = tide_shape_make(1, DIMS(1)); // one element is all the difference
        t = make(&spec);
        assert_string_equal(m[i].order, "a");
        tide_tensor_unref(t);

        spec.kind = TIDE_KIND_WORKSPACE;
        assert_tide_status(tide_tensor_create(&spec, &missing, &err), TIDE_ERR_NOT_FOUND);
        assert_false(tide_tensor_is_defined(missing));
        assert_text_has(err.msg, "'none'");
        assert_text_has(err.msg, "Workspace");
        char device[24];
        assert_text_has(err.msg, tide_device_format(devices[i], device, sizeof device));
        tide_registry_destroy(r);
        tide_allocator_unref(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_kind_where_it_is_legal_LT_16),
        tide_unit_test(host_kinds_are_refused_elsewhere_LT_18),
        tide_unit_test(no_bytes_or_no_allocator_LT_10_LT_11),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
