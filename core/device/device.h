// SPDX-License-Identifier: MIT
//
// Which device memory lives on, and which stream touched it: the names. What a device can do (memory, streams, events,
// copies) is the table in device_ops.h; calling it is backend.h.
#ifndef TIDE_CORE_DEVICE_DEVICE_H
#define TIDE_CORE_DEVICE_DEVICE_H

#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The two types that have a number of their own; a backend registered under another name gets the next one from
/// TIDE_DEVICE_FIRST_EXTRA on, for as long as the process lives.
typedef enum tide_device_type {
    TIDE_DEVICE_CPU = 0,
    TIDE_DEVICE_CUDA = 1,
    TIDE_DEVICE_FIRST_EXTRA = 2,
} tide_device_type;

enum { TIDE_MAX_DEVICE_TYPES = 16 };

typedef struct tide_device {
    tide_device_type type;
    int32_t index; ///< 0 for the CPU
} tide_device;

/// A stream of its device, unique in the process and never reused; 0 is the default stream (on the CPU: the calling
/// thread itself, where work is done when the call returns).
typedef uint64_t tide_stream_id;

#define TIDE_CPU ((tide_device){TIDE_DEVICE_CPU, 0})

static inline bool tide_device_equal(tide_device a, tide_device b) { return a.type == b.type && a.index == b.index; }
/// "cpu", "cuda:0", "fake:1" into `buf` (32 bytes always suffice); returns `buf`.
char *tide_device_format(tide_device device, char *buf, size_t buf_bytes);
/// "cpu", "cuda", "cuda:1", or the name of a registered backend. @return TIDE_ERR_INVALID for anything else
tide_status tide_device_parse(const char *text, tide_device *out, tide_error *err) TIDE_NODISCARD;
/// TIDE_OK when this process can use `device`; TIDE_ERR_NOT_IMPLEMENTED without a backend for its type,
/// TIDE_ERR_INVALID for an index it does not have; never a quiet fallback (S27-4).
tide_status tide_device_require(tide_device device, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
