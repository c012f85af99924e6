// SPDX-License-Identifier: MIT
//
// Virtual memory management (cuda.h, "Virtual Memory Management"): addresses, physical memory and mappings apart.
//
// Measured: granularity 2 MiB (minimum and recommended); sizes that are no multiple of it are CUDA_ERROR_INVALID_VALUE,
// as are mapping twice, freeing addresses that are mapped, unmapping a part, and a handle that was released; memory is
// taken at cuMemCreate, and given back when the handle is released and nothing shows it any more.
//
// Physical memory is a stretch of one anonymous file, so that it can be seen at several addresses. A mapping cannot be
// touched before cuMemSetAccess (cuda.h, cuMemMap), which here is a page fault.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"

struct sim_physical {
    sim_object object;
    sim_device *device;
    CUmemAllocationProp prop;
    uint64_t bytes, offset; ///< in the file
    uint32_t refs;          ///< of the program: cuMemCreate, cuMemRetainAllocationHandle
    uint32_t n_mapped;
};

static int file = -1;
static uint64_t file_end;

// Stretches of the file that are free, for the next handle of the same size.
static struct hole { uint64_t offset, bytes; } * holes;
static size_t n_holes;

static bool file_take(uint64_t bytes, uint64_t *offset) {
    for (size_t i = 0; i < n_holes; i++) {
        if (holes[i].bytes != bytes) continue;
        *offset = holes[i].offset;
        holes[i] = holes[--n_holes];
        return true;
    }
    if (file < 0) file = memfd_create("tidesim", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)(file_end + bytes)) != 0) return false;
    *offset = file_end;
    file_end += bytes;
    return true;
}

static void file_give(uint64_t offset, uint64_t bytes) {
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
    holes = realloc(holes, (n_holes + 1) * sizeof *holes);
    if (holes == NULL) abort();
    holes[n_holes++] = (struct hole){offset, bytes};
}

static bool is_whole(uint64_t bytes) { return bytes != 0 && bytes % sim.granularity == 0; }

SIM_ENTRY(cuMemGetAllocationGranularity,
          (size_t * granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option),
          (granularity, prop, option)) {
    if (granularity == NULL || prop == NULL || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device_of(prop->location.id) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    *granularity = sim.granularity;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemAddressReserve,
          (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags),
          (ptr, size, alignment, addr, flags)) {
    const uint64_t align = alignment != 0 ? alignment : sim.granularity;
    if (ptr == NULL || !is_whole(size) || (align & (align - 1)) != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t at_least = align > sim.granularity ? align : sim.granularity;
    const uint64_t address = sim_map_reserve(size, at_least, addr);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    sim_range *range = SIM_NEW(sim_range);
    *range = (sim_range){.kind = TIDESIM_RESERVED, .address = address, .bytes = size, .span = size};
    sim_range_add(range);
    const sim_entry_info entry = {.kind = TIDESIM_RESERVED, .address = address, .bytes = size, .quiet = true};
    sim_ledger_alloc(&entry);
    *ptr = address;
    return CUDA_SUCCESS;
}

static bool is_mapped_in(uint64_t address, uint64_t bytes);

SIM_ENTRY(cuMemAddressFree, (CUdeviceptr ptr, size_t size), (ptr, size)) {
    sim_range *range = sim_reservation_at(ptr);
    if (range == NULL || range->address != ptr || range->bytes != size) {
        sim_misused("cuMemAddressFree(%#llx, %zu): no such reservation", (unsigned long long)ptr, size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_mapped_in(ptr, size)) {
        sim_misused("cuMemAddressFree(%#llx, %zu): something is mapped there", (unsigned long long)ptr, size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const sim_entry_info entry = {.kind = TIDESIM_RESERVED, .address = ptr, .bytes = size, .quiet = true};
    sim_range_remove(range);
    sim_ledger_free(&entry);
    sim_map_free(ptr, size);
    free(range);
    return CUDA_SUCCESS;
}

static sim_entry_info physical_entry(const sim_physical *memory) {
    return (sim_entry_info){.kind = TIDESIM_PHYSICAL,
                            .device = memory->device,
                            .address = (uint64_t)(uintptr_t)memory,
                            .bytes = memory->bytes};
}

SIM_ENTRY(cuMemCreate,
          (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
           unsigned long long flags),
          (handle, size, prop, flags)) {
    if (handle == NULL || prop == NULL || flags != 0 || !is_whole(size) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    // Measured: a handle for other processes over the fabric is refused where there is none.
    if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_PERMITTED;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED; // host memory: not simulated
    sim_device *device = sim_device_of(prop->location.id);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t offset;
    if (!sim_take(device, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!file_take(size, &offset)) {
        sim_give(device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_physical *memory = SIM_NEW(sim_physical);
    memory->device = device;
    memory->prop = *prop;
    memory->bytes = size;
    memory->offset = offset;
    memory->refs = 1;
    sim_object_add(&memory->object, SIM_PHYSICAL);
    const sim_entry_info entry = physical_entry(memory);
    sim_ledger_alloc(&entry);
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static void drop_if_unused(sim_physical *memory) {
    if (memory->refs != 0 || memory->n_mapped != 0) return;
    const sim_entry_info entry = physical_entry(memory);
    sim_ledger_free(&entry);
    file_give(memory->offset, memory->bytes);
    sim_give(memory->device, memory->bytes);
    sim_object_remove(&memory->object);
    free(memory);
}

// A handle whose last reference is gone is no handle any more, even while a mapping keeps its memory.
static sim_physical *physical_of(CUmemGenericAllocationHandle handle) {
    sim_physical *memory = sim_object_of((const void *)(uintptr_t)handle, SIM_PHYSICAL);
    if (memory == NULL || memory->refs != 0) return memory;
    sim_misused("memory handle %#llx is used after its last release", (unsigned long long)handle);
    return NULL;
}

SIM_ENTRY(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle)) {
    sim_physical *memory = physical_of(handle);
    if (memory == NULL) return CUDA_ERROR_INVALID_VALUE;
    memory->refs--;
    drop_if_unused(memory);
    return CUDA_SUCCESS;
}

// The first mapping that begins at or above the address and below its end.
static sim_range *mapping_in(uint64_t address, uint64_t bytes) {
    for (uint64_t at = address; at < address + bytes; at += sim.granularity) {
        sim_range *range = sim_range_at(at);
        if (range != NULL && range->kind == TIDESIM_MAPPED) return range;
    }
    return NULL;
}

static bool is_mapped_in(uint64_t address, uint64_t bytes) {
    const sim_range *all = sim_reservation_at(address);
    return all != NULL && all->n_mapped > 0 && mapping_in(address, bytes) != NULL;
}

SIM_ENTRY(cuMemMap,
          (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags),
          (ptr, size, offset, handle, flags)) {
    sim_physical *memory = physical_of(handle);
    sim_range *all = sim_reservation_at(ptr);
    if (memory == NULL || all == NULL || flags != 0 || !is_whole(size) || ptr % sim.granularity != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // cuda.h, cuMemMap: offset "must be zero"; the whole of the memory is mapped.
    if (offset != 0 || size > memory->bytes || size > all->bytes - (ptr - all->address))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_mapped_in(ptr, size)) {
        sim_misused("cuMemMap(%#llx, %zu): something is mapped there", (unsigned long long)ptr, size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (mmap((void *)(uintptr_t)ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             (off_t)memory->offset) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_range *range = SIM_NEW(sim_range);
    *range = (sim_range){.kind = TIDESIM_MAPPED,
                         .address = ptr,
                         .bytes = size,
                         .span = size,
                         .device = memory->device,
                         .physical = memory};
    sim_range_add(range);
    memory->n_mapped++;
    all->n_mapped++;
    const sim_entry_info entry = {.kind = TIDESIM_MAPPED, .device = memory->device, .address = ptr, .bytes = size};
    sim_ledger_alloc(&entry);
    return CUDA_SUCCESS;
}

static void unmap(sim_range *range) {
    sim_physical *memory = range->physical;
    mmap((void *)(uintptr_t)range->address, range->bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    const sim_entry_info entry = {
        .kind = TIDESIM_MAPPED, .device = memory->device, .address = range->address, .bytes = range->bytes};
    sim_reservation_at(range->address)->n_mapped--;
    sim_range_remove(range);
    sim_ledger_free(&entry);
    memory->n_mapped--;
    drop_if_unused(memory);
    free(range);
}

// cuda.h, cuMemUnmap: whole mappings, one or several side by side that fill the stretch. GUESS: it does not wait for
// work; a program that unmaps what is in use faults here as there.
static bool is_whole_mappings(uint64_t ptr, uint64_t size) {
    uint64_t at = ptr;
    while (at < ptr + size) {
        const sim_range *range = sim_range_at(at);
        if (range == NULL || range->kind != TIDESIM_MAPPED || range->address != at) return false;
        at += range->bytes;
    }
    return at == ptr + size;
}

SIM_ENTRY(cuMemUnmap, (CUdeviceptr ptr, size_t size), (ptr, size)) {
    if (!is_whole(size) || !is_whole_mappings(ptr, size)) {
        sim_misused("cuMemUnmap(%#llx, %zu): not what was mapped", (unsigned long long)ptr, size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint64_t at = ptr; at < ptr + size;) {
        sim_range *range = sim_range_at(at);
        at += range->bytes;
        unmap(range);
    }
    return CUDA_SUCCESS;
}

static bool desc_is_good(const CUmemAccessDesc *desc) {
    return desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device_of(desc->location.id) != NULL &&
           (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
            desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

// One set of rights for all devices of the process: the union of what each gets (GUESS: a peer without rights does not
// fault here).
SIM_ENTRY(cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
          (ptr, size, desc, count)) {
    if (desc == NULL || count == 0 || !is_whole(size) || !is_whole_mappings(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
    int rights = PROT_NONE;
    for (size_t i = 0; i < count; i++) {
        if (!desc_is_good(&desc[i])) return CUDA_ERROR_INVALID_VALUE;
        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) rights |= PROT_READ;
        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) rights |= PROT_READ | PROT_WRITE;
    }
    if (mprotect((void *)(uintptr_t)ptr, size, rights) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint64_t at = ptr; at < ptr + size;) {
        sim_range *range = sim_range_at(at);
        range->readable = (rights & PROT_READ) != 0;
        range->writable = (rights & PROT_WRITE) != 0;
        at += range->bytes;
    }
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr),
          (flags, location, ptr)) {
    const sim_range *range = sim_range_at(ptr);
    if (flags == NULL || location == NULL || range == NULL || range->kind != TIDESIM_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || sim_device_of(location->id) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = range->writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : range->readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                               : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *addr), (handle, addr)) {
    const sim_range *range = sim_range_at((uint64_t)(uintptr_t)addr);
    if (handle == NULL || range == NULL || range->kind != TIDESIM_MAPPED) return CUDA_ERROR_INVALID_VALUE;
    range->physical->refs++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)range->physical;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle),
          (prop, handle)) {
    const sim_physical *memory = physical_of(handle);
    if (prop == NULL || memory == NULL) return CUDA_ERROR_INVALID_VALUE;
    *prop = memory->prop;
    return CUDA_SUCCESS;
}
