// SPDX-License-Identifier: MIT
//
// cuInit, versions and devices. What a device says of itself is that of a Hopper data centre card (compute capability
// 9.0); no figure of it is used by the simulation.
#include <dlfcn.h>
#include <stdio.h>

#include "tests/cuda/driver/sim.h"

// "The driver loads it at cuInit and calls int InitializeInjection(void)": measured, also that a library that cannot be
// loaded does no harm (GUESS: nothing is said). The result is not looked at (measured: 0 lets it be unloaded; not
// here).
static void inject(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL || *path == '\0') return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    int (*initialise)(void) = NULL;
    void *symbol = dlsym(library, "InitializeInjection");
    memcpy(&initialise, &symbol, sizeof symbol);
    if (initialise != NULL) initialise();
}

SIM_ENTRY(cuInit, (unsigned int Flags), (Flags)) {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (sim_is_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
    if (sim.n_devices == 0) return CUDA_ERROR_NO_DEVICE;
    sim_lock_take();
    const bool first = !sim.ready;
    for (int i = 0; first && i < sim.n_devices; i++)
        sim.devices[i].default_pool = sim.devices[i].pool = sim_pool_new(&sim.devices[i], true);
    sim.ready = true;
    sim_lock_drop();
    if (first) inject();
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDriverGetVersion, (int *driverVersion), (driverVersion)) {
    if (driverVersion == NULL) return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = sim.version;
    return CUDA_SUCCESS;
}

sim_device *sim_device_of(CUdevice ordinal) {
    return ordinal >= 0 && ordinal < sim.n_devices ? &sim.devices[ordinal] : NULL;
}

SIM_ENTRY(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal)) {
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_of(ordinal) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetCount, (int *count), (count)) {
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    *count = sim.n_devices;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetName, (char *name, int len, CUdevice dev), (name, len, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (name == NULL || len <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "simulated device");
    return CUDA_SUCCESS;
}

static CUresult uuid_of(CUuuid *uuid, CUdevice dev) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (uuid == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "tidemark-sim\0\0\0", 16);
    uuid->bytes[15] = (char)dev;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetUuid, (CUuuid * uuid, CUdevice dev), (uuid, dev)) { return uuid_of(uuid, dev); }

SIM_ENTRY(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev), (uuid, dev)) { return uuid_of(uuid, dev); }

SIM_ENTRY(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev), (bytes, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (bytes == NULL) return CUDA_ERROR_INVALID_VALUE;
    *bytes = sim_device_of(dev)->total_bytes;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceGetPCIBusId, (char *pciBusId, int len, CUdevice dev), (pciBusId, len, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pciBusId == NULL || len < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", (unsigned)dev + 1);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDeviceCanAccessPeer, (int *canAccessPeer, CUdevice dev, CUdevice peerDev), (canAccessPeer, dev, peerDev)) {
    if (sim_device_of(dev) == NULL || sim_device_of(peerDev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (canAccessPeer == NULL) return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
}

static const struct attribute {
    CUdevice_attribute name;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0},
};

// An attribute that the table lacks is 0: "not supported" in nearly all of them.
SIM_ENTRY(cuDeviceGetAttribute, (int *pi, CUdevice_attribute attrib, CUdevice dev), (pi, attrib, dev)) {
    if (sim_device_of(dev) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pi == NULL || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;
    if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) *pi = dev + 1;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].name == attrib) *pi = attributes[i].value;
    return CUDA_SUCCESS;
}
