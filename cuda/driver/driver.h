// SPDX-License-Identifier: MIT
//
// driver: NVIDIA's driver as a table of functions. libcuda.so.1 is opened when it is asked for and never linked; every
// entry point but the first comes through cuGetProcAddress, for the version of the header that this was built with.
#ifndef TIDE_CUDA_DRIVER_DRIVER_H
#define TIDE_CUDA_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdint.h>

#include "core/base/status.h"

/// `cuName` of cuda.h is the member `Name`; its type is the header's, newest form included (cuda.h renames the calls).
typedef struct cuda_driver {
    int version; ///< of CUDA that the driver serves: 13000 is 13.0
#define XX(name) __typeof__(cu##name) *name;
#include "cuda/driver/entries.h"
#undef XX
} cuda_driver;

/**
 * Open the driver and start it (cuInit), or say in words what is missing.
 *
 * @param out  filled; the library stays open for as long as the process lives
 * @return TIDE_OK: there is a driver that is new enough, and a device at the least; TIDE_ERR_NOT_IMPLEMENTED: no
 * driver, a stub in its place, too old, no device, a system that is not ready; TIDE_ERR_BACKEND: anything else
 */
tide_status cuda_driver_open(cuda_driver *out, tide_error *err) TIDE_NODISCARD;

/// The status that a result of the driver means: TIDE_ERR_NOMEM, TIDE_ERR_INVALID, TIDE_ERR_BUSY (what a capture
/// forbids), TIDE_ERR_NOT_IMPLEMENTED (not supported), else TIDE_ERR_BACKEND.
tide_status cuda_status(CUresult result);

/// "cuda:0: cuMemAlloc of 7 B: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"; what follows `err` is printf's and says
/// what was called. @param index  of the device, -1: of none. @return cuda_status(result), which is not TIDE_OK
tide_status cuda_failed(CUresult result, int32_t index, tide_error *err, const char *fmt, ...) TIDE_PRINTF(4, 5);

#endif
