// SPDX-License-Identifier: MIT
//
// Virtual memory of the simulated driver: sizes, counts of references, what may not be touched, and the ledger.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/cuda/driver/sim_test.h"

#define PIECE (2 * MIB)

// A TiB; ThreadSanitizer and valgrind leave less than that to a program.
static size_t large(void) { return SIM_TSAN || sim_is_valgrind() ? (size_t)1 << 34 : (size_t)1 << 40; }

static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc both = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUmemGenericAllocationHandle create(size_t bytes) {
    CUmemGenericAllocationHandle handle;
    assert_ok(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static void test_sizes(void **state) {
    (void)state;
    sim_open();
    size_t granularity;
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
    assert_ok(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    assert_int_equal(granularity, PIECE);
    assert_cu(cuMemAddressReserve(&p, MIB, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemCreate(&handle, MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemCreate(&handle, (size_t)32 << 30, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemAddressReserve(&p, large(), 0, 0, 0));
    assert_int_equal(p % PIECE, 0);
    assert_cu(cuMemAddressFree(p, PIECE), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAddressFree(p, large()));
    assert_cu(cuMemAddressFree(p, large()), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr high;
    assert_ok(cuMemAddressReserve(&high, PIECE, 0, p, 0)); // the address is a wish
    assert_int_equal(high, p);
    assert_ok(cuMemAddressFree(high, PIECE));
    sim_close(2);
}

static void test_counts(void **state) {
    (void)state;
    sim_open();
    const uint64_t before = sim_free_bytes();
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle = create(2 * PIECE), again;
    assert_int_equal(before - sim_free_bytes(), 2 * PIECE); // taken when it is made
    assert_ok(cuMemAddressReserve(&p, 4 * PIECE, 0, 0, 0));
    assert_ok(cuMemMap(p + PIECE, 2 * PIECE, 0, handle, 0));
    assert_int_equal(sim_count(TIDESIM_MAPPED).live_bytes, 2 * PIECE);
    assert_cu(cuMemMap(p + 2 * PIECE, 2 * PIECE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemMap(p, 2 * PIECE, PIECE, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemSetAccess(p + PIECE, 2 * PIECE, &both, 1));
    assert_ok(cuMemsetD32(p + PIECE, 77, PIECE / 2));
    assert_ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + PIECE + 5)));
    assert_int_equal(again, handle);
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemRelease(handle));
    assert_cu(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(before - sim_free_bytes(), 2 * PIECE); // the mapping keeps it
    unsigned out;
    assert_ok(cuMemcpyDtoH(&out, p + PIECE + 4, 4));
    assert_int_equal(out, 77);
    assert_cu(cuMemAddressFree(p, 4 * PIECE), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuMemUnmap(p + PIECE, PIECE), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemUnmap(p + PIECE, 2 * PIECE));
    assert_int_equal(before, sim_free_bytes());
    assert_cu(cuMemcpyDtoH(&out, p + PIECE, 4), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAddressFree(p, 4 * PIECE));
    sim_close(5);
}

// Two mappings show the same bytes; a copy may go over mappings that lie side by side.
static void test_two_views(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr p;
    CUmemGenericAllocationHandle a = create(PIECE), b = create(PIECE);
    assert_ok(cuMemAddressReserve(&p, 3 * PIECE, 0, 0, 0));
    assert_ok(cuMemMap(p, PIECE, 0, a, 0));
    assert_ok(cuMemMap(p + PIECE, PIECE, 0, b, 0));
    assert_ok(cuMemMap(p + 2 * PIECE, PIECE, 0, a, 0));
    assert_cu(cuMemsetD8(p, 1, 3 * PIECE), CUDA_ERROR_INVALID_VALUE); // no access yet
    assert_ok(cuMemSetAccess(p, 3 * PIECE, &both, 1));
    assert_ok(cuMemsetD8(p, 1, 2 * PIECE));
    assert_ok(cuMemsetD8(p + 2 * PIECE, 9, 3));
    unsigned char out[4];
    assert_ok(cuMemcpyDtoH(out, p, 4));
    assert_int_equal(out[2], 9);
    assert_int_equal(out[3], 1);
    unsigned long long flags;
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    assert_ok(cuMemGetAccess(&flags, &here, p));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_ok(cuMemUnmap(p, 3 * PIECE));
    assert_ok(cuMemAddressFree(p, 3 * PIECE));
    assert_ok(cuMemRelease(a));
    assert_ok(cuMemRelease(b));
    sim_close(1);
}

// Memory that is mapped and has no access yet: touching it is a fault.
static void test_fault(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle = create(PIECE);
    assert_ok(cuMemAddressReserve(&p, PIECE, 0, 0, 0));
    assert_ok(cuMemMap(p, PIECE, 0, handle, 0));
    for (int open = 0; open < 2; open++) {
        if (open) assert_ok(cuMemSetAccess(p, PIECE, &both, 1));
        const pid_t pid = fork();
        if (pid == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            signal(SIGSEGV, SIG_DFL); // not the sanitizer's report
            *(volatile char *)(uintptr_t)p = 1;
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, open ? 0 : SIGSEGV);
    }
    assert_ok(cuMemUnmap(p, PIECE));
    assert_ok(cuMemAddressFree(p, PIECE));
    assert_ok(cuMemRelease(handle));
    sim_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_two_views),
        cmocka_unit_test(test_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
