// SPDX-License-Identifier: MIT
//
// Memory of the simulated driver outside of streams: what each call gives and refuses, and the ledger to the byte.
#include "tests/cuda/driver/sim_test.h"

// Small requests share a slab of 2 MiB; what the device gives falls in those steps.
static void test_steps(void **state) {
    (void)state;
    sim_open();
    const uint64_t before = sim_free_bytes();
    CUdeviceptr a, b, c, d, large;
    assert_ok(cuMemAlloc(&a, 1));
    assert_int_equal(before - sim_free_bytes(), 2 * MIB);
    assert_ok(cuMemAlloc(&b, 512));
    assert_ok(cuMemAlloc(&c, 513));
    assert_ok(cuMemAlloc(&d, MIB));
    assert_int_equal(a % 512, 0);
    assert_int_equal(b - a, 512);
    assert_int_equal(c - a, 1024);
    assert_int_equal(d - a, 2048);
    assert_int_equal(before - sim_free_bytes(), 2 * MIB);
    assert_ok(cuMemAlloc(&large, MIB + 1));
    assert_int_equal(before - sim_free_bytes(), 4 * MIB);
    assert_int_equal(sim_count(TIDESIM_DEVICE).live_bytes, 1 + 512 + 513 + MIB + MIB + 1);
    assert_int_equal(tidesim_taken(0), sim_count(TIDESIM_CONTEXT).live_bytes + 4 * MIB);
    CUdeviceptr base;
    size_t bytes;
    assert_ok(cuMemGetAddressRange(&base, &bytes, c + 512));
    assert_int_equal(base, c);
    assert_int_equal(bytes, 513);
    assert_cu(cuMemGetAddressRange(&base, &bytes, c + 513), CUDA_ERROR_NOT_FOUND);
    for (int i = 0; i < 5; i++) assert_ok(cuMemFree((CUdeviceptr[]){c, a, d, large, b}[i]));
    assert_int_equal(before, sim_free_bytes());
    sim_close(0);
}

static void test_refusals(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr p, pool_block;
    void *host, *none = &host;
    assert_cu(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemAlloc(&p, (size_t)17 << 30), CUDA_ERROR_OUT_OF_MEMORY);
    assert_cu(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree(0));
    assert_ok(cuMemHostAlloc(&none, 0, 0));
    assert_null(none);
    assert_ok(cuMemAlloc(&p, 4096));
    assert_ok(cuMemHostAlloc(&host, 4096, 0));
    assert_ok(cuMemAllocAsync(&pool_block, 4096, NULL));
    assert_cu(cuMemFree(p + 1), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemFree((CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemFree((CUdeviceptr)(uintptr_t)&p), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemFreeHost(&p), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree(pool_block));
    assert_ok(cuMemFree(p));
    assert_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeHost(host));
    assert_cu(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuCtxSynchronize());
    sim_close(7);
}

static void test_host_memory(void **state) {
    (void)state;
    sim_open();
    char *pinned, *mine = malloc(10000);
    CUdeviceptr mapped;
    assert_ok(cuMemAllocHost((void **)&pinned, 5000));
    assert_int_equal(sim_count(TIDESIM_PINNED).live_bytes, 5000);
    assert_ok(cuMemHostGetDevicePointer(&mapped, pinned + 7, 0));
    assert_int_equal(mapped, (CUdeviceptr)(uintptr_t)pinned + 7);
    assert_cu(cuMemHostGetDevicePointer(&mapped, mine, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemHostRegister(mine, 10000, 0));
    assert_cu(cuMemHostRegister(mine + 10, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_ok(cuMemHostGetDevicePointer(&mapped, mine, 0));
    assert_int_equal(sim_count(TIDESIM_REGISTERED).live_bytes, 10000);
    assert_cu(cuMemFreeHost(mine), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemHostUnregister(mine));
    assert_cu(cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_ok(cuMemFreeHost(pinned));
    free(mine);
    sim_close(2);
}

static void test_pitch_and_managed(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr p, managed;
    size_t pitch;
    assert_ok(cuMemAllocPitch(&p, &pitch, 1000, 100, 4));
    assert_int_equal(pitch, 1024);
    assert_int_equal(sim_count(TIDESIM_DEVICE).live_bytes, 102400);
    assert_cu(cuMemAllocPitch(&p, &pitch, 1000, 100, 3), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)managed, 1, 100);
    int is_managed;
    assert_ok(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
    assert_int_equal(is_managed, 1);
    assert_ok(cuMemFree(managed));
    assert_ok(cuMemFree(p));
    sim_close(0);
}

// All that is left but 100 MB goes in one piece, and the last byte too many is refused.
static void test_out_of_memory(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr all, p;
    const uint64_t left = sim_free_bytes() / (2 * MIB) * (2 * MIB);
    assert_cu(cuMemAlloc(&p, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemAlloc(&all, left));
    assert_true(sim_free_bytes() < 2 * MIB);
    assert_cu(cuMemAlloc(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree(all));
    tidesim_set_bytes(0, tidesim_taken(0) + 3 * MIB);
    assert_ok(cuMemAlloc(&p, 2 * MIB));
    assert_cu(cuMemAlloc(&all, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    tidesim_set_bytes(0, 0);
    assert_ok(cuMemFree(p));
    sim_close(0);
}

static void test_copies(void **state) {
    (void)state;
    sim_open();
    unsigned char out[1000], in[1000];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)i;
    CUdeviceptr a, b;
    assert_ok(cuMemAlloc(&a, sizeof in));
    assert_ok(cuMemAlloc(&b, sizeof in));
    assert_ok(cuMemcpyHtoD(a, in, sizeof in));
    assert_ok(cuMemcpyDtoD(b, a, sizeof in));
    assert_ok(cuMemcpyDtoH(out, b, sizeof out));
    assert_memory_equal(in, out, sizeof in);
    assert_ok(cuMemsetD32(a, 0x01020304, 250));
    assert_ok(cuMemsetD16Async(a, 0x5555, 1, NULL));
    assert_ok(cuMemsetD8(a + 999, 9, 1));
    assert_ok(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, sizeof out));
    assert_int_equal(out[0], 0x55);
    assert_int_equal(out[2], 2);
    assert_int_equal(out[998], 2);
    assert_int_equal(out[999], 9);
    assert_cu(cuMemcpyDtoH(out, a, 1001), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)out, in, 1), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemsetD8(a + 500, 0, 501), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree(a));
    assert_cu(cuMemcpyDtoD(b, a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree(b));
    sim_close(4);
}

static void test_pointers(void **state) {
    (void)state;
    CUcontext ctx = sim_open(), got;
    CUdeviceptr p, start;
    unsigned type, ordinal;
    assert_ok(cuMemAlloc(&p, 100));
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    void *values[] = {&got, &type, &ordinal, &start};
    assert_ok(cuPointerGetAttributes(4, names, values, p + 99));
    assert_ptr_equal(got, ctx);
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(ordinal, 0);
    assert_int_equal(start, p);
    assert_ok(cuPointerGetAttributes(4, names, values, (CUdeviceptr)(uintptr_t)&p));
    assert_null(got);
    assert_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&p),
              CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree(p));
    sim_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_host_memory),   cmocka_unit_test(test_pitch_and_managed),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_copies),
        cmocka_unit_test(test_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
