// SPDX-License-Identifier: MIT
//
// Memory outside of streams: cuMemAlloc and its kin, managed memory, pinned and registered host memory.
//
// Freeing waits for all work of the device, also that of streams that do not follow the default one (measured for
// cuMemFree and cuMemFreeHost); allocating does not wait.
#include <stdio.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"
#include "tests/cuda/driver/sim_slab.h"

#define HOST_ALIGN 4096U

static sim_entry_info entry_of(const sim_range *range) {
    return (sim_entry_info){.kind = range->kind,
                            .device = range->device,
                            .address = range->address,
                            .bytes = range->bytes,
                            .ctx = range->ctx};
}

static sim_range *range_new(sim_call *call, tidesim_kind kind, uint64_t bytes) {
    sim_range *range = SIM_NEW(sim_range);
    *range = (sim_range){.kind = kind,
                         .bytes = bytes,
                         .device = call->ctx->device,
                         .ctx = call->ctx,
                         .ctx_id = call->ctx->object.id,
                         .readable = true,
                         .writable = true};
    return range;
}

static CUdeviceptr publish(sim_range *range) {
    sim_range_add(range);
    const sim_entry_info entry = entry_of(range);
    sim_ledger_alloc(&entry);
    return range->address;
}

static CUresult device_alloc(sim_call *call, CUdeviceptr *dptr, uint64_t bytes) {
    if (dptr == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    sim_range *range = range_new(call, TIDESIM_DEVICE, bytes);
    if (!sim_slab_alloc(range)) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *dptr = publish(range);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize), (dptr, bytesize)) {
    return device_alloc(call, dptr, bytesize);
}

// Pitch: measured 1024 for rows of 1000 bytes; a multiple of 512 (GUESS beyond that one figure).
SIM_ENTRY(cuMemAllocPitch_v2,
          (CUdeviceptr * dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes),
          (dptr, pPitch, WidthInBytes, Height, ElementSizeBytes)) {
    if (dptr == NULL || pPitch == NULL || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > ((uint64_t)1 << 46) / Height) return CUDA_ERROR_OUT_OF_MEMORY;
    *pPitch = sim_round_up(WidthInBytes, 512);
    return device_alloc(call, dptr, *pPitch * Height);
}

// GUESS: managed memory takes nothing of the device before it is touched, and the driver does not move it.
SIM_ENTRY(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags), (dptr, bytesize, flags)) {
    if (dptr == NULL || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    sim_range *range = range_new(call, TIDESIM_MANAGED, bytesize);
    range->flags = flags;
    range->span = sim_round_up(bytesize, HOST_ALIGN);
    range->address = bytesize < (uint64_t)1 << 46 ? sim_map_reserve(range->span, sim.granularity, 0) : 0;
    if (range->address == 0 || !sim_map_open(range->address, range->span)) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *dptr = publish(range);
    return CUDA_SUCCESS;
}

// Host memory. Zero bytes: CUDA_SUCCESS (measured); the pointer is then NULL (GUESS).
static CUresult host_alloc(sim_call *call, void **pp, size_t bytes, unsigned flags) {
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pp == NULL || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    *pp = NULL;
    if (bytes == 0) return CUDA_SUCCESS;
    void *memory = NULL;
    if (bytes > (uint64_t)1 << 46 || posix_memalign(&memory, HOST_ALIGN, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    sim_range *range = range_new(call, TIDESIM_PINNED, bytes);
    range->address = (uint64_t)(uintptr_t)memory;
    range->span = bytes;
    range->flags = flags;
    range->device = NULL;
    publish(range);
    *pp = memory;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags)) {
    return host_alloc(call, pp, bytesize, Flags);
}

SIM_ENTRY(cuMemAllocHost_v2, (void **pp, size_t bytesize), (pp, bytesize)) { return host_alloc(call, pp, bytesize, 0); }

// cuda.h, cuMemHostRegister: CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED for memory that is; any overlap (GUESS).
SIM_ENTRY(cuMemHostRegister_v2, (void *p, size_t bytesize, unsigned int Flags), (p, bytesize, Flags)) {
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                           CU_MEMHOSTREGISTER_READ_ONLY;
    if (p == NULL || bytesize == 0 || Flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t address = (uint64_t)(uintptr_t)p;
    if (sim_range_at(address) != NULL || sim_range_at(address + bytesize - 1) != NULL)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    sim_range *range = range_new(call, TIDESIM_REGISTERED, bytesize);
    range->address = address;
    range->span = bytesize;
    range->flags = Flags;
    range->device = NULL;
    publish(range);
    return CUDA_SUCCESS;
}

static void forget(sim_range *range, bool quiet) {
    sim_entry_info entry = entry_of(range);
    entry.quiet = quiet;
    sim_range_remove(range);
    sim_ledger_free(&entry);
    if (range->kind == TIDESIM_DEVICE)
        sim_slab_free(range);
    else if (range->kind == TIDESIM_MANAGED)
        sim_map_free(range->address, range->span);
    else if (range->kind == TIDESIM_PINNED)
        free((void *)(uintptr_t)range->address);
    free(range);
}

// The range that begins at the address, is of one of the kinds and is not on its way out. Anything else is misuse.
static sim_range *to_free(uint64_t address, unsigned kinds, const char *call) {
    sim_range *range = sim_range_at(address);
    if (range == NULL)
        sim_misused("%s(%#llx): no live memory of the driver", call, (unsigned long long)address);
    else if (range->address != address)
        sim_misused("%s(%#llx): lies inside memory at %#llx", call, (unsigned long long)address,
                    (unsigned long long)range->address);
    else if (!(kinds >> range->kind & 1U))
        sim_misused("%s(%#llx): is memory of kind %s", call, (unsigned long long)address,
                    tidesim_kind_name(range->kind));
    else if (range->released)
        sim_misused("%s(%#llx): freed twice", call, (unsigned long long)address);
    else
        return range;
    return NULL;
}

#define KIND(kind) (1U << TIDESIM_##kind)

SIM_ENTRY(cuMemFree_v2, (CUdeviceptr dptr), (dptr)) {
    if (dptr == 0) return CUDA_SUCCESS; // measured
    sim_range *range = to_free(dptr, KIND(DEVICE) | KIND(MANAGED) | KIND(POOL_BLOCK) | KIND(GRAPH), "cuMemFree");
    if (range == NULL) return CUDA_ERROR_INVALID_VALUE;
    range->released = true; // another thread that frees it now is told so
    sim_device_drain(range->device != NULL ? range->device : call->ctx->device);
    if (range->kind == TIDESIM_POOL_BLOCK || range->kind == TIDESIM_GRAPH)
        sim_pool_free_now(range);
    else
        forget(range, false);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemFreeHost, (void *p), (p)) {
    if (p == NULL) return CUDA_SUCCESS;
    sim_range *range = to_free((uint64_t)(uintptr_t)p, KIND(PINNED), "cuMemFreeHost");
    if (range == NULL) return CUDA_ERROR_INVALID_VALUE;
    range->released = true;
    sim_device_drain(call->ctx->device);
    forget(range, false);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemHostUnregister, (void *p), (p)) {
    sim_range *range = to_free((uint64_t)(uintptr_t)p, KIND(REGISTERED), "cuMemHostUnregister");
    if (range == NULL) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    range->released = true;
    sim_device_drain(call->ctx->device);
    forget(range, false);
    return CUDA_SUCCESS;
}

// Unified addressing: the host's own address (cuda.h, "Unified Addressing").
SIM_ENTRY(cuMemHostGetDevicePointer_v2, (CUdeviceptr * pdptr, void *p, unsigned int Flags), (pdptr, p, Flags)) {
    if (pdptr == NULL || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const sim_range *range = sim_range_at((uint64_t)(uintptr_t)p);
    if (range == NULL || (range->kind != TIDESIM_PINNED && range->kind != TIDESIM_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = (uint64_t)(uintptr_t)p;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemHostGetFlags, (unsigned int *pFlags, void *p), (pFlags, p)) {
    const sim_range *range = sim_range_at((uint64_t)(uintptr_t)p);
    if (pFlags == NULL || range == NULL || range->kind != TIDESIM_PINNED) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

// The size is the one asked for (measured).
SIM_ENTRY(cuMemGetAddressRange_v2, (CUdeviceptr * pbase, size_t *psize, CUdeviceptr dptr), (pbase, psize, dptr)) {
    const sim_range *range = sim_range_at(dptr);
    if (range == NULL || range->released || range->kind == TIDESIM_RESERVED) return CUDA_ERROR_NOT_FOUND;
    if (pbase != NULL) *pbase = range->address;
    if (psize != NULL) *psize = range->bytes;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total), (free_bytes, total)) {
    const sim_device *device = call->ctx->device;
    if (free_bytes == NULL || total == NULL) return CUDA_ERROR_INVALID_VALUE;
    *total = device->total_bytes;
    *free_bytes = device->taken_bytes < device->total_bytes ? device->total_bytes - device->taken_bytes : 0;
    return CUDA_SUCCESS;
}

SIM_API void tidesim_set_bytes(int device, uint64_t bytes) {
    sim_configure();
    if (device < 0 || device >= sim.n_devices) return;
    sim_lock_take();
    sim.devices[device].total_bytes = bytes != 0 ? bytes : sim.devices[device].first_total_bytes;
    sim_lock_drop();
}

typedef struct ctx_and_quiet {
    const sim_ctx *ctx;
    bool quiet;
} ctx_and_quiet;

static bool forget_of_ctx(sim_range *range, void *user) {
    const ctx_and_quiet *of = user;
    if (range->ctx == of->ctx && (KIND(DEVICE) | KIND(MANAGED) | KIND(PINNED) | KIND(REGISTERED)) >> range->kind & 1U)
        forget(range, of->quiet);
    return true;
}

// Measured: memory that goes with the last context of a device leaves no record of its release; with another one it
// does.
void sim_memory_of_ctx_free(sim_ctx *ctx, bool is_last) {
    ctx_and_quiet of = {ctx, is_last};
    sim_ranges_each(forget_of_ctx, &of);
}
