// SPDX-License-Identifier: MIT
//
// What the tests of tensors share: a registry of the test's own with a meter in it, and shorthands.
#ifndef TIDE_TESTS_TENSOR_TEST_H
#define TIDE_TESTS_TENSOR_TEST_H

#include "core/base/log.h"
#include "core/memory/meter.h"
#include "core/tensor/tensor.h"
#include "tests/memory/memory_test.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

typedef struct bench {
    tide_meter *meter;
    tide_observer obs;
    tide_allocator *a;   ///< instrumented, over `nth`
    tide_allocator *nth; ///< fails when told to
    tide_registry *registry;
} bench;

/// With `poisoned`, fresh memory is full of 0xFF, and its blocks are not simple.
static inline void bench_open_with(bench *b, bool poisoned) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL;
    assert_tide_ok(tide_meter_create(&b->meter, &err), &err);
    b->obs = tide_meter_observer(b->meter);
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    if (poisoned) {
        tide_allocator *plain = cpu;
        assert_tide_ok(tide_poison_create(plain, &cpu, &err), &err);
        tide_allocator_unref(plain);
    }
    assert_tide_ok(tide_fail_nth_create(cpu, -1, &b->nth, &err), &err);
    assert_tide_ok(tide_instrumented_create(b->nth, &b->obs, &b->a, &err), &err);
    tide_allocator_unref(cpu);
    assert_tide_ok(tide_registry_create(&b->registry, &err), &err);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++)
        assert_tide_ok(tide_registry_add(b->registry, (tide_memory_kind)kind, b->a, 0, &err), &err);
}

static inline void bench_open(bench *b) { bench_open_with(b, false); }

static inline tide_meter_kind bench_total(const bench *b) {
    tide_meter_kind k;
    tide_meter_total(b->meter, &k);
    return k;
}
static inline uint64_t bench_live_bytes(const bench *b) { return bench_total(b).live_bytes; }
static inline uint64_t bench_n_allocs(const bench *b) { return bench_total(b).n_allocs; }

/// Closing says whether every tensor gave its memory back.
static inline void bench_close(bench *b) {
    assert_true(bench_live_bytes(b) == 0);
    tide_registry_destroy(b->registry);
    tide_allocator_unref(b->a);
    tide_allocator_unref(b->nth);
    tide_meter_destroy(b->meter);
}

static inline tide_tensor_spec spec_of(const bench *b, tide_dtype dtype, int32_t rank, const int64_t *dims) {
    return (tide_tensor_spec){.dtype = dtype,
                              .shape = tide_shape_make(rank, dims),
                              .kind = TIDE_KIND_WORKSPACE,
                              .registry = b->registry,
                              .tag = "t"};
}

static inline tide_tensor *make(const tide_tensor_spec *spec) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create(spec, &t, &err), &err);
    return t;
}

/// Element i is i, in a type of 1, 2, 4 or 8 bytes.
static inline tide_tensor *make_counting(const bench *b, tide_dtype dtype, int32_t rank, const int64_t *dims) {
    const tide_tensor_spec spec = spec_of(b, dtype, rank, dims);
    tide_tensor *t = make(&spec);
    unsigned char *data = tide_tensor_data(t);
    const size_t size = tide_dtype_size(dtype);
    for (size_t i = 0; i * size < tide_tensor_size_bytes(t); i++) {
        const uint64_t value = i;
        memcpy(data + i * size, &value, size); // little-endian, as everything we run on
    }
    return t;
}

/// Element i of contiguous memory as a number.
static inline uint64_t element_at(const void *data, size_t size, size_t i) {
    uint64_t value = 0;
    memcpy(&value, (const char *)data + i * size, size);
    return value;
}

/// A storage of `size_bytes` of the bench's own allocator; its bytes count up.
static inline tide_storage storage_of(const bench *b, size_t size_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_block *block = NULL;
    assert_tide_ok(tide_block_create(b->a, size_bytes, 0, TIDE_KIND_PERSISTENT, 0, "buffer", &block, &err), &err);
    const tide_storage s = tide_storage_of_block(block);
    tide_block_unref(block);
    unsigned char *bytes = tide_storage_data(&s);
    for (size_t i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)i;
    return s;
}

/// The last line that was logged.
typedef struct last_line {
    char text[512];
    int n;
} last_line;
static inline void keep_line(void *ctx, tide_log_level level, const char *line) {
    (void)level;
    last_line *l = (last_line *)ctx;
    snprintf(l->text, sizeof l->text, "%s", line);
    l->n++;
}

#endif
