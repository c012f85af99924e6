// SPDX-License-Identifier: MIT
//
// What the driver says of an address (cuda.h, cuPointerGetAttribute).
#include "tests/cuda/driver/sim.h"

static bool is_host(const sim_range *range) {
    return range->kind == TIDESIM_PINNED || range->kind == TIDESIM_REGISTERED;
}

// As wide as each attribute is. False: not one of those that are simulated.
static bool value_of(CUpointer_attribute attribute, const sim_range *range, uint64_t ptr, uint64_t *value,
                     size_t *bytes) {
    *bytes = 8;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *value = (uint64_t)(uintptr_t)range->ctx;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = is_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        *bytes = 4;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = ptr;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *value = ptr;
        return is_host(range) || range->kind == TIDESIM_MANAGED;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *value = range->id;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *value = range->kind == TIDESIM_MANAGED;
        *bytes = 4;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = range->device != NULL ? (uint64_t)range->device->ordinal : 0;
        *bytes = 4;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *value = range->address;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *value = range->bytes;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = 1;
        *bytes = 4;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *value = sim_pool_of_range(range);
        return true;
    default:
        return false;
    }
}

static const sim_range *known(uint64_t ptr) {
    const sim_range *range = sim_range_at(ptr);
    return range != NULL && !range->released && range->kind != TIDESIM_RESERVED ? range : NULL;
}

SIM_ENTRY(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr), (data, attribute, ptr)) {
    const sim_range *range = known(ptr);
    uint64_t value;
    size_t bytes;
    if (data == NULL || range == NULL || !value_of(attribute, range, ptr, &value, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &value, bytes); // little endian: the low bytes come first
    return CUDA_SUCCESS;
}

// cuda.h, cuPointerGetAttributes: what is not known of a pointer is 0, and the call succeeds.
SIM_ENTRY(cuPointerGetAttributes,
          (unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr),
          (numAttributes, attributes, data, ptr)) {
    if (numAttributes == 0 || attributes == NULL || data == NULL) return CUDA_ERROR_INVALID_VALUE;
    const sim_range nothing = {0}, *range = known(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        uint64_t value = 0;
        size_t bytes = 0;
        const bool has = value_of(attributes[i], range != NULL ? range : &nothing, ptr, &value, &bytes);
        if (!has && attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) return CUDA_ERROR_INVALID_VALUE;
        if (!has || range == NULL) value = 0;
        memcpy(data[i], &value, bytes);
    }
    return CUDA_SUCCESS;
}
