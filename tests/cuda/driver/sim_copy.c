// SPDX-License-Identifier: MIT
//
// Copies and memsets. When the host waits is the page "API synchronization behavior" of the driver API:
//   synchronous   host <-> device: the call returns when the copy is done; device -> device: it does not wait;
//   asynchronous  from pageable memory: it is staged, the call returns; to pageable memory: the call returns when the
//                 copy is done; pinned memory and devices: nothing waits;
//   memset        does not wait, but for pinned and managed memory in the synchronous form.
#include "tests/cuda/driver/sim.h"

typedef enum direction { ANY, HTOD, DTOH, DTOD } direction;

typedef struct side {
    bool device, pinned;
    uint32_t ordinal;
} side;

static side side_of(uint64_t address) {
    side at = {0};
    at.device = sim_memory_is_device(address, &at.pinned, &at.ordinal);
    return at;
}

static CUmemorytype type_of(side at) {
    return at.device ? CU_MEMORYTYPE_DEVICE : at.pinned ? CU_MEMORYTYPE_HOST : (CUmemorytype)0;
}

// A device's end of the copy must lie in memory of the driver (cuda.h, unified addressing: a pointer to host memory
// that the driver knows is as good). The measured answer to anything else is CUDA_ERROR_INVALID_VALUE.
static bool ends_are_good(uint64_t dst, uint64_t src, uint64_t bytes, direction way) {
    const bool dst_device = way == HTOD || way == DTOD, src_device = way == DTOH || way == DTOD;
    const bool good = sim_memory_check(dst, bytes, dst_device) && sim_memory_check(src, bytes, src_device);
    if (!good)
        sim_misused("copy of %llu bytes from %#llx to %#llx: not all of it is memory that may be used",
                    (unsigned long long)bytes, (unsigned long long)src, (unsigned long long)dst);
    return good;
}

static CUresult wait_for(sim_point *point) {
    sim_wait(point);
    sim_point_unref(point);
    return CUDA_SUCCESS;
}

static void stage(sim_work *work) {
    work->staged = sim_new(work->bytes);
    memcpy(work->staged, (const void *)(uintptr_t)work->src, work->bytes);
    work->src = (uint64_t)(uintptr_t)work->staged;
}

static CUresult copy(sim_call *call, CUstream handle, bool async, uint64_t dst, uint64_t src, uint64_t bytes,
                     direction way) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, handle, &why);
    if (stream == NULL) return why;
    if (!async && stream->capture == NULL && sim_capture_forbids() != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (bytes == 0) return CUDA_SUCCESS;
    if (!ends_are_good(dst, src, bytes, way)) return CUDA_ERROR_INVALID_VALUE;
    const side from = side_of(src), to = side_of(dst);
    sim_work work = {.sort = SIM_WORK_COPY,
                     .dst = dst,
                     .src = src,
                     .bytes = bytes,
                     .src_type = type_of(from),
                     .dst_type = type_of(to),
                     .src_device = from.ordinal,
                     .dst_device = to.ordinal};
    const bool pageable_src = !from.device && !from.pinned, pageable_dst = !to.device && !to.pinned;
    if (async && pageable_src && stream->capture == NULL) stage(&work);
    const bool waits = async ? pageable_dst && stream->capture == NULL : !(from.device && to.device);
    sim_point *point;
    SIM_TRY(sim_submit(call, stream, work, &point));
    if (point == NULL) return CUDA_SUCCESS;
    if (waits) return wait_for(point);
    sim_point_unref(point);
    return CUDA_SUCCESS;
}

static uint64_t host(const void *p) { return (uint64_t)(uintptr_t)p; }

SIM_ENTRY_PT(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), (dst, src, ByteCount)) {
    return copy(call, NULL, false, dst, src, ByteCount, ANY);
}
SIM_ENTRY_PT(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
             (dstDevice, srcHost, ByteCount)) {
    return copy(call, NULL, false, dstDevice, host(srcHost), ByteCount, HTOD);
}
SIM_ENTRY_PT(cuMemcpyDtoH_v2, _ptds, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
             (dstHost, srcDevice, ByteCount)) {
    return copy(call, NULL, false, host(dstHost), srcDevice, ByteCount, DTOH);
}
SIM_ENTRY_PT(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
             (dstDevice, srcDevice, ByteCount)) {
    return copy(call, NULL, false, dstDevice, srcDevice, ByteCount, DTOD);
}
SIM_ENTRY_PT(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
             (dst, src, ByteCount, hStream)) {
    return copy(call, hStream, true, dst, src, ByteCount, ANY);
}
SIM_ENTRY_PT(cuMemcpyHtoDAsync_v2, _ptsz,
             (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
             (dstDevice, srcHost, ByteCount, hStream)) {
    return copy(call, hStream, true, dstDevice, host(srcHost), ByteCount, HTOD);
}
SIM_ENTRY_PT(cuMemcpyDtoHAsync_v2, _ptsz, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
             (dstHost, srcDevice, ByteCount, hStream)) {
    return copy(call, hStream, true, host(dstHost), srcDevice, ByteCount, DTOH);
}
SIM_ENTRY_PT(cuMemcpyDtoDAsync_v2, _ptsz,
             (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
             (dstDevice, srcDevice, ByteCount, hStream)) {
    return copy(call, hStream, true, dstDevice, srcDevice, ByteCount, DTOD);
}

static CUresult peer_contexts(CUcontext dst, CUcontext src) {
    return sim_ctx_of(dst) != NULL && sim_ctx_of(src) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_ENTRY_PT(cuMemcpyPeer, _ptds,
             (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
              size_t ByteCount),
             (dstDevice, dstContext, srcDevice, srcContext, ByteCount)) {
    SIM_TRY(peer_contexts(dstContext, srcContext));
    return copy(call, NULL, false, dstDevice, srcDevice, ByteCount, DTOD);
}
SIM_ENTRY_PT(cuMemcpyPeerAsync, _ptsz,
             (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
              size_t ByteCount, CUstream hStream),
             (dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream)) {
    SIM_TRY(peer_contexts(dstContext, srcContext));
    return copy(call, hStream, true, dstDevice, srcDevice, ByteCount, DTOD);
}

static CUresult fill(sim_call *call, CUstream handle, bool async, uint64_t dst, uint32_t value, uint32_t value_bytes,
                     uint64_t n) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, handle, &why);
    if (stream == NULL) return why;
    if (n > UINT64_MAX / 4 || dst % value_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    if (n == 0) return CUDA_SUCCESS;
    const uint64_t bytes = n * value_bytes;
    if (!sim_memory_check(dst, bytes, true)) {
        sim_misused("memset of %llu bytes at %#llx: not all of it is memory that may be used",
                    (unsigned long long)bytes, (unsigned long long)dst);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const side to = side_of(dst);
    const sim_range *range = sim_range_at(dst);
    const sim_work work = {.sort = SIM_WORK_FILL,
                           .dst = dst,
                           .bytes = bytes,
                           .value = value,
                           .value_bytes = value_bytes,
                           .dst_type = type_of(to),
                           .dst_device = to.ordinal};
    const bool waits = !async && (!to.device || range->kind == TIDESIM_MANAGED);
    sim_point *point;
    SIM_TRY(sim_submit(call, stream, work, &point));
    if (point != NULL && waits) return wait_for(point);
    sim_point_unref(point);
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuMemsetD8_v2, _ptds, (CUdeviceptr dstDevice, unsigned char uc, size_t N), (dstDevice, uc, N)) {
    return fill(call, NULL, false, dstDevice, uc, 1, N);
}
SIM_ENTRY_PT(cuMemsetD16_v2, _ptds, (CUdeviceptr dstDevice, unsigned short us, size_t N), (dstDevice, us, N)) {
    return fill(call, NULL, false, dstDevice, us, 2, N);
}
SIM_ENTRY_PT(cuMemsetD32_v2, _ptds, (CUdeviceptr dstDevice, unsigned int ui, size_t N), (dstDevice, ui, N)) {
    return fill(call, NULL, false, dstDevice, ui, 4, N);
}
SIM_ENTRY_PT(cuMemsetD8Async, _ptsz, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
             (dstDevice, uc, N, hStream)) {
    return fill(call, hStream, true, dstDevice, uc, 1, N);
}
SIM_ENTRY_PT(cuMemsetD16Async, _ptsz, (CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream),
             (dstDevice, us, N, hStream)) {
    return fill(call, hStream, true, dstDevice, us, 2, N);
}
SIM_ENTRY_PT(cuMemsetD32Async, _ptsz, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
             (dstDevice, ui, N, hStream)) {
    return fill(call, hStream, true, dstDevice, ui, 4, N);
}
