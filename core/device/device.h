// SPDX-License-Identifier: MIT
//
// Names of devices, and whether this process can use one. What a device can do (memory, streams, events, copies) is the
// table in device_ops.h; calling it is backend.h. The types are public (tidemark/memory.h).
#ifndef TIDE_CORE_DEVICE_DEVICE_H
#define TIDE_CORE_DEVICE_DEVICE_H

#include "core/base/status.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_MAX_DEVICE_TYPES = 16 };

static inline bool tide_device_equal(tide_device a, tide_device b) { return a.type == b.type && a.index == b.index; }
/// "cpu", "cuda", "cuda:1", or the name of a registered backend. @return TIDE_ERR_INVALID for anything else
tide_status tide_device_parse(const char *text, tide_device *out, tide_error *err) TIDE_NODISCARD;
/// TIDE_OK when this process can use `device`; TIDE_ERR_NOT_IMPLEMENTED without a backend for its type,
/// TIDE_ERR_INVALID for an index it does not have; never a quiet fallback (S27-4).
tide_status tide_device_require(tide_device device, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
