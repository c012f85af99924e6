// SPDX-License-Identifier: MIT
//
// Addresses first, memory later: ranges are reserved, and pieces of memory mapped into them.
//
//     reserved:  |  mapped  |  mapped  |                           |
//                 one cuMemCreate each; the driver keeps it for as long as it is mapped
#include <inttypes.h>

#include "cuda/device/cuda_device.h"

static tide_status must_map(const cuda_device *d, tide_error *err) {
    if (d->facts.map_step_bytes > 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "cuda:%" PRId32 " cannot map memory", d->index);
}

tide_status cuda_vm_reserve(void *self, int32_t index, size_t size_bytes, void **out, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    CUdeviceptr base = 0;
    TIDE_TRY(must_map(d, err));
    TIDE_TRY(cuda_enter(d, err));
    const CUresult result = d->cu->MemAddressReserve(&base, size_bytes, 0, 0, 0);
    cuda_leave(d);
    if (result != CUDA_SUCCESS) return cuda_failed(result, index, err, "cuMemAddressReserve of %zu B", size_bytes);
    *out = (void *)(uintptr_t)base;
    return TIDE_OK;
}

void cuda_vm_release(void *self, int32_t index, void *base, size_t size_bytes) {
    cuda_device *d = cuda_at(self, index);
    if (d == NULL || base == NULL || !cuda_enter_to_give_back(d)) return;
    CUDA_GIVE_BACK(d, "cuMemAddressFree", d->cu->MemAddressFree((CUdeviceptr)(uintptr_t)base, size_bytes));
    cuda_leave(d);
}

/// Memory that is mapped goes with its mapping: the handle is given back at once, on every way.
static tide_status map_new(cuda_device *d, CUdeviceptr at, size_t size_bytes, tide_error *err) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = cuda_location(d)};
    CUmemGenericAllocationHandle memory;
    CUDA_TRY(d, d->cu->MemCreate(&memory, size_bytes, &prop, 0), err, "cuMemCreate of %zu B", size_bytes);
    const CUresult result = d->cu->MemMap(at, size_bytes, 0, memory, 0);
    CUDA_GIVE_BACK(d, "cuMemRelease", d->cu->MemRelease(memory));
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuMemMap of %zu B", size_bytes);
}

static tide_status map(cuda_device *d, CUdeviceptr at, size_t size_bytes, tide_error *err) {
    const CUmemAccessDesc access = {.location = cuda_location(d), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    TIDE_TRY(map_new(d, at, size_bytes, err));
    const CUresult result = d->cu->MemSetAccess(at, size_bytes, &access, 1);
    if (result == CUDA_SUCCESS) return TIDE_OK;
    CUDA_GIVE_BACK(d, "cuMemUnmap", d->cu->MemUnmap(at, size_bytes));
    return cuda_failed(result, d->index, err, "cuMemSetAccess of %zu B", size_bytes);
}

tide_status cuda_vm_map(void *self, int32_t index, void *at, size_t size_bytes, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    TIDE_TRY(must_map(d, err));
    TIDE_TRY(cuda_enter(d, err));
    const tide_status st = map(d, (CUdeviceptr)(uintptr_t)at, size_bytes, err);
    cuda_leave(d);
    return st;
}

void cuda_vm_unmap(void *self, int32_t index, void *at, size_t size_bytes) {
    cuda_device *d = cuda_at(self, index);
    if (d == NULL || !cuda_enter_to_give_back(d)) return;
    CUDA_GIVE_BACK(d, "cuMemUnmap", d->cu->MemUnmap((CUdeviceptr)(uintptr_t)at, size_bytes));
    cuda_leave(d);
}
