// SPDX-License-Identifier: MIT
//
// Making pools, asking about them, and which one a device uses (cuda.h, "Stream Ordered Memory Allocator").
#include <stdio.h>

#include "tests/cuda/driver/sim_pool.h"

SIM_ENTRY(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *poolProps), (pool, poolProps)) {
    if (pool == NULL || poolProps == NULL || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED; // host pools: not simulated
    sim_device *device = sim_device_of(poolProps->location.id);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    sim_pool *made = sim_pool_new(device, false);
    made->max_bytes = poolProps->maxSize;
    *pool = (CUmemoryPool)made;
    return CUDA_SUCCESS;
}

static sim_pool *pool_of(CUmemoryPool handle) { return sim_object_of(handle, SIM_POOL); }

// cuda.h: with allocations that are not freed the call returns at once and the pool goes with the last of them; a
// device that uses it goes back to its default pool; the default pool cannot be destroyed.
SIM_ENTRY(cuMemPoolDestroy, (CUmemoryPool handle), (handle)) {
    sim_pool *pool = pool_of(handle);
    if (pool == NULL || pool->object.own) return CUDA_ERROR_INVALID_VALUE;
    if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
    sim_pool_destroy(pool);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemPoolTrimTo, (CUmemoryPool handle, size_t minBytesToKeep), (handle, minBytesToKeep)) {
    sim_pool *pool = pool_of(handle);
    if (pool == NULL) return CUDA_ERROR_INVALID_VALUE;
    sim_pool_trim(pool, minBytesToKeep);
    return CUDA_SUCCESS;
}

static int *flag_of(sim_pool *pool, CUmemPool_attribute attr) {
    return attr == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES     ? &pool->reuse_events
           : attr == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC         ? &pool->reuse_opportunistic
           : attr == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES ? &pool->reuse_dependencies
                                                                       : NULL;
}

// cuda.h: the marks of the highest values can only be set to 0, which makes them what there is now.
SIM_ENTRY(cuMemPoolSetAttribute, (CUmemoryPool handle, CUmemPool_attribute attr, void *value), (handle, attr, value)) {
    sim_pool *pool = pool_of(handle);
    if (pool == NULL || value == NULL) return CUDA_ERROR_INVALID_VALUE;
    int *flag = flag_of(pool, attr);
    if (flag != NULL) {
        memcpy(flag, value, sizeof *flag);
        return CUDA_SUCCESS;
    }
    cuuint64_t number;
    memcpy(&number, value, sizeof number);
    if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = number;
    else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0)
        pool->reserved_high = pool->reserved;
    else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0)
        pool->used_high = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemPoolGetAttribute, (CUmemoryPool handle, CUmemPool_attribute attr, void *value), (handle, attr, value)) {
    sim_pool *pool = pool_of(handle);
    if (pool == NULL || value == NULL) return CUDA_ERROR_INVALID_VALUE;
    const int *flag = flag_of(pool, attr);
    if (flag != NULL) {
        memcpy(value, flag, sizeof *flag);
        return CUDA_SUCCESS;
    }
    const uint64_t *number = attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD      ? &pool->threshold
                             : attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? &pool->reserved
                             : attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH    ? &pool->reserved_high
                             : attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT     ? &pool->used
                             : attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH        ? &pool->used_high
                                                                            : NULL;
    if (number == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(value, number, sizeof *number);
    return CUDA_SUCCESS;
}

// All of a process' memory is open to all of its devices here (GUESS: on hardware a peer without access faults).
SIM_ENTRY(cuMemPoolSetAccess, (CUmemoryPool handle, const CUmemAccessDesc *map, size_t count), (handle, map, count)) {
    const sim_pool *pool = pool_of(handle);
    if (pool == NULL || (map == NULL && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || sim_device_of(map[i].location.id) == NULL)
            return CUDA_ERROR_INVALID_DEVICE;
        // cuda.h: access of the device that the pool lies on cannot be taken away.
        if (map[i].location.id == pool->device->ordinal && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation *location),
          (flags, handle, location)) {
    if (pool_of(handle) == NULL || flags == NULL || location == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice dev), (pool, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pool == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pool = (CUmemoryPool)sim_device_of(dev)->pool;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool_out, CUdevice dev), (pool_out, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pool_out == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pool_out = (CUmemoryPool)sim_device_of(dev)->default_pool;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool handle), (dev, handle)) {
    sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    sim_pool *pool = pool_of(handle);
    if (pool == NULL || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
}
