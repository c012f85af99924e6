// SPDX-License-Identifier: MIT
//
// The driver's stream-ordered memory: one pool of our own for each device, so that what others do with the device's
// default pool shows in no figure of ours. It is made with the first call for it and takes nothing until memory is
// asked.
#include <inttypes.h>

#include "cuda/device/cuda_device.h"

/// With the context current. Memory comes and goes with streams, which a capture would make parts of its graph: refused
/// there, by CUDA_USE_LIVE.
static tide_status get_pool(cuda_device *d, CUmemoryPool *out, tide_error *err) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = cuda_location(d)};
    if (!d->facts.has_pool)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "cuda:%" PRId32 " has no memory pools", d->index);
    pthread_mutex_lock(&d->making);
    const CUresult result = d->pool != NULL ? CUDA_SUCCESS : d->cu->MemPoolCreate(&d->pool, &props);
    *out = d->pool;
    pthread_mutex_unlock(&d->making);
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuMemPoolCreate");
}

typedef struct pool_args {
    size_t size_bytes;
    CUdeviceptr address;
} pool_args;

static tide_status put_alloc(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    pool_args *a = args;
    CUmemoryPool pool = NULL;
    TIDE_TRY(get_pool(d, &pool, err));
    CUDA_TRY(d, d->cu->MemAllocFromPoolAsync(&a->address, a->size_bytes, pool, handle), err,
             "cuMemAllocFromPoolAsync of %zu B", a->size_bytes);
    return TIDE_OK;
}

tide_status cuda_pool_alloc(void *self, int32_t index, tide_stream_id stream, size_t size_bytes, void **out,
                            tide_error *err) {
    pool_args a = {.size_bytes = size_bytes};
    if (size_bytes == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "0 bytes were asked of the pool of cuda:%" PRId32, index);
    TIDE_TRY(cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_LIVE, "take memory", put_alloc, &a, err));
    *out = (void *)(uintptr_t)a.address;
    return TIDE_OK;
}

static tide_status put_free(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    CUDA_TRY(d, d->cu->MemFreeAsync((CUdeviceptr)(uintptr_t)args, handle), err, "cuMemFreeAsync");
    return TIDE_OK;
}

tide_status cuda_pool_free(void *self, int32_t index, tide_stream_id stream, void *ptr, tide_error *err) {
    if (ptr == NULL) return TIDE_OK;
    return cuda_on_stream(cuda_at(self, index), stream, CUDA_USE_LIVE, "give memory back", put_free, ptr, err);
}

/// A call that is about the pool and no stream.
typedef tide_status (*on_pool_fn)(const cuda_device *d, CUmemoryPool pool, void *args, tide_error *err);

static tide_status on_pool(cuda_device *d, on_pool_fn fn, void *args, tide_error *err) {
    CUmemoryPool pool = NULL;
    TIDE_TRY(cuda_enter(d, err));
    tide_status st = get_pool(d, &pool, err);
    if (st == TIDE_OK) st = fn(d, pool, args, err);
    cuda_leave(d);
    return st;
}

static tide_status keep(const cuda_device *d, CUmemoryPool pool, void *args, tide_error *err) {
    CUDA_TRY(d, d->cu->MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, args), err,
             "cuMemPoolSetAttribute");
    return TIDE_OK;
}

tide_status cuda_pool_keep(void *self, int32_t index, uint64_t keep_bytes, tide_error *err) {
    cuuint64_t threshold = keep_bytes;
    return on_pool(cuda_at(self, index), keep, &threshold, err);
}

static tide_status trim(const cuda_device *d, CUmemoryPool pool, void *args, tide_error *err) {
    const uint64_t *keep_bytes = args;
    CUDA_TRY(d, d->cu->MemPoolTrimTo(pool, (size_t)*keep_bytes), err, "cuMemPoolTrimTo of %" PRIu64 " B", *keep_bytes);
    return TIDE_OK;
}

tide_status cuda_pool_trim(void *self, int32_t index, uint64_t keep_bytes, tide_error *err) {
    return on_pool(cuda_at(self, index), trim, &keep_bytes, err);
}

static tide_status read_stats(const cuda_device *d, CUmemoryPool pool, void *args, tide_error *err) {
    tide_device_pool_stats *out = args;
    const struct {
        CUmemPool_attribute attribute;
        uint64_t *into;
    } figures[] = {{CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &out->used_bytes},
                   {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &out->reserved_bytes},
                   {CU_MEMPOOL_ATTR_USED_MEM_HIGH, &out->peak_used_bytes},
                   {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &out->peak_reserved_bytes}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        cuuint64_t value = 0;
        CUDA_TRY(d, d->cu->MemPoolGetAttribute(pool, figures[i].attribute, &value), err, "cuMemPoolGetAttribute");
        *figures[i].into = value;
    }
    return TIDE_OK;
}

tide_status cuda_pool_stats(void *self, int32_t index, tide_device_pool_stats *out, tide_error *err) {
    return on_pool(cuda_at(self, index), read_stats, out, err);
}
