// SPDX-License-Identifier: MIT
//
// Which device memory lives on, and which stream touched it. Streams, events and copies come with the device
// vtable; here are only the names.
#ifndef TIDE_CORE_DEVICE_DEVICE_H
#define TIDE_CORE_DEVICE_DEVICE_H

#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_device_type { TIDE_DEVICE_CPU = 0, TIDE_DEVICE_CUDA = 1 } tide_device_type;

typedef struct tide_device {
    tide_device_type type;
    int32_t index; ///< 0 for the CPU
} tide_device;

/// A stream of its device; 0 is the default stream (the calling thread on the CPU).
typedef uint64_t tide_stream_id;

#define TIDE_CPU ((tide_device){TIDE_DEVICE_CPU, 0})

static inline bool tide_device_equal(tide_device a, tide_device b) { return a.type == b.type && a.index == b.index; }
/// "cpu", "cuda:0" into `buf` (16 bytes suffice); returns `buf`.
char *tide_device_format(tide_device device, char *buf, size_t buf_bytes);
/// "cpu", "cuda", "cuda:1". @return TIDE_ERR_INVALID for anything else
tide_status tide_device_parse(const char *text, tide_device *out, tide_error *err) TIDE_NODISCARD;
/// TIDE_OK when this build can run on `device`; TIDE_ERR_NOT_IMPLEMENTED, never a quiet fallback (S27-4).
tide_status tide_device_require(tide_device device, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
