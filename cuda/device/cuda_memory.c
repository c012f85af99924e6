// SPDX-License-Identifier: MIT
//
// Memory of the device, page-locked memory of the host, and what there is of both.
//
// The driver aligns to 256 bytes at the least (CUDA C++ Programming Guide, "Device Memory Accesses"). More is asked for
// by taking more, and the table `moved_to` knows what to give back:
//
//     |......|<-- size_bytes -->|..|     size_bytes + align_bytes from the driver
//     ^ given by the driver
//            ^ handed out: the first multiple of align_bytes
#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "cuda/device/cuda_device.h"

// ---- both sorts of memory ----

/// How a sort of memory is taken and given back.
typedef struct memory_sort {
    const char *take_name, *give_name;
    CUresult (*take)(const cuda_driver *cu, size_t size_bytes, void **out);
    CUresult (*give)(const cuda_driver *cu, void *ptr);
} memory_sort;

static CUresult take_device(const cuda_driver *cu, size_t size_bytes, void **out) {
    CUdeviceptr address = 0;
    const CUresult result = cu->MemAlloc(&address, size_bytes);
    *out = (void *)(uintptr_t)address;
    return result;
}
static CUresult give_device(const cuda_driver *cu, void *ptr) { return cu->MemFree((CUdeviceptr)(uintptr_t)ptr); }

/// Every device may copy from it directly.
static CUresult take_pinned(const cuda_driver *cu, size_t size_bytes, void **out) {
    return cu->MemHostAlloc(out, size_bytes, CU_MEMHOSTALLOC_PORTABLE);
}
static CUresult give_pinned(const cuda_driver *cu, void *ptr) { return cu->MemFreeHost(ptr); }

static const memory_sort of_device = {"cuMemAlloc", "cuMemFree", take_device, give_device};
static const memory_sort of_host = {"cuMemHostAlloc", "cuMemFreeHost", take_pinned, give_pinned};

/// The same memory with room to move, and the move noted. The context is current.
static tide_status take_moved(cuda_device *d, const memory_sort *sort, size_t size_bytes, size_t align_bytes,
                              void **out, tide_error *err) {
    size_t larger;
    void *given = NULL;
    if (!tide_add_size(size_bytes, align_bytes, &larger))
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "cuda:%" PRId32 ": %zu B are more than there can be", d->index,
                         size_bytes);
    CUDA_TRY(d, sort->take(d->cu, larger, &given), err, "%s of %zu B", sort->take_name, larger);
    const uintptr_t at = ((uintptr_t)given + align_bytes - 1) & ~(uintptr_t)(align_bytes - 1);
    TIDE_ASSERT(at + size_bytes <= (uintptr_t)given + larger);
    pthread_mutex_lock(&d->lock);
    const tide_status st = tide__id_table_put(&d->moved_to, at, given);
    pthread_mutex_unlock(&d->lock);
    if (st != TIDE_OK) {
        CUDA_GIVE_BACK(d, sort->give_name, sort->give(d->cu, given));
        return TIDE_FAIL(err, st, "cuda:%" PRId32 ": no host memory to note where %zu B lie", d->index, size_bytes);
    }
    *out = (void *)at;
    return TIDE_OK;
}

static tide_status take(cuda_device *d, const memory_sort *sort, size_t size_bytes, size_t align_bytes, void **out,
                        tide_error *err) {
    void *given = NULL;
    CUDA_TRY(d, sort->take(d->cu, size_bytes, &given), err, "%s of %zu B", sort->take_name, size_bytes);
    if ((uintptr_t)given % align_bytes == 0) {
        *out = given;
        return TIDE_OK;
    }
    CUDA_GIVE_BACK(d, sort->give_name, sort->give(d->cu, given));
    return take_moved(d, sort, size_bytes, align_bytes, out, err);
}

static tide_status alloc(cuda_device *d, const memory_sort *sort, size_t size_bytes, size_t align_bytes, void **out,
                         tide_error *err) {
    if (size_bytes == 0 || !tide_is_pow2(align_bytes)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cuda:%" PRId32 " memory: %zu bytes aligned to %zu were asked for",
                         d->index, size_bytes, align_bytes);
    }
    TIDE_TRY(cuda_enter(d, err));
    const tide_status st = take(d, sort, size_bytes, align_bytes, out, err);
    cuda_leave(d);
    return st;
}

static void release(cuda_device *d, const memory_sort *sort, void *ptr) {
    if (d == NULL || ptr == NULL) return;
    pthread_mutex_lock(&d->lock);
    void *given = tide__id_table_remove(&d->moved_to, (uintptr_t)ptr);
    pthread_mutex_unlock(&d->lock);
    if (given == NULL) given = ptr;
    if (!cuda_enter_to_give_back(d)) return;
    CUDA_GIVE_BACK(d, sort->give_name, sort->give(d->cu, given));
    cuda_leave(d);
}

tide_status cuda_mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                           tide_error *err) {
    return alloc(cuda_at(self, index), &of_device, size_bytes, align_bytes, out, err);
}

void cuda_mem_free(void *self, int32_t index, void *ptr) { release(cuda_at(self, index), &of_device, ptr); }

tide_status cuda_pinned_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                              tide_error *err) {
    return alloc(cuda_at(self, index), &of_host, size_bytes, align_bytes, out, err);
}

void cuda_pinned_free(void *self, int32_t index, void *ptr) { release(cuda_at(self, index), &of_host, ptr); }

// ---- what there is ----

CUmemLocation cuda_location(const cuda_device *d) {
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->handle};
}

static tide_status has(const cuda_device *d, CUdevice_attribute ability, const char *name, bool *out, tide_error *err) {
    int value = 0;
    CUDA_TRY(d, d->cu->DeviceGetAttribute(&value, ability, d->handle), err, "cuDeviceGetAttribute of %s", name);
    *out = value != 0;
    return TIDE_OK;
}

/// 0 when the device cannot map.
static tide_status read_map_step(const cuda_device *d, uint64_t *out, tide_error *err) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = cuda_location(d)};
    bool can = false;
    size_t step = 0;
    TIDE_TRY(has(d, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory", &can, err));
    if (can) {
        CUDA_TRY(d, d->cu->MemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), err,
                 "cuMemGetAllocationGranularity");
    }
    *out = step;
    return TIDE_OK;
}

tide_status cuda_read_facts(cuda_device *d, tide_error *err) {
    tide_device_facts *f = &d->facts;
    size_t total = 0;
    CUDA_TRY(d, d->cu->DeviceGetName(f->name, (int)sizeof f->name, d->handle), err, "cuDeviceGetName");
    CUDA_TRY(d, d->cu->DeviceTotalMem(&total, d->handle), err, "cuDeviceTotalMem");
    f->total_bytes = total;
    snprintf(f->driver, sizeof f->driver, "CUDA %d.%d", d->cu->version / 1000, d->cu->version % 1000 / 10);
    TIDE_TRY(read_map_step(d, &f->map_step_bytes, err));
    return has(d, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "memory pools", &f->has_pool, err);
}

tide_status cuda_facts(void *self, int32_t index, tide_device_facts *out, tide_error *err) {
    (void)err;
    *out = cuda_at(self, index)->facts;
    return TIDE_OK;
}

tide_status cuda_memory_info(void *self, int32_t index, uint64_t *free_bytes, uint64_t *total_bytes, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    size_t n_free = 0, n_total = 0;
    TIDE_TRY(cuda_enter(d, err));
    const CUresult result = d->cu->MemGetInfo(&n_free, &n_total);
    cuda_leave(d);
    if (result != CUDA_SUCCESS) return cuda_failed(result, index, err, "cuMemGetInfo");
    *free_bytes = n_free;
    *total_bytes = n_total;
    return TIDE_OK;
}
