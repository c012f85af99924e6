// SPDX-License-Identifier: MIT
//
// Copies between two devices, waited for. What no single device can do goes through a staging buffer, piece by piece:
//
//     from:     | piece 0 | piece 1 | piece 2 |
//                    |
//     staging:  | piece |                          at most STAGING_BYTES of host memory
//                    |
//     to:       | piece 0 | piece 1 | piece 2 |
#include "core/base/host_alloc.h"
#include "core/device/device_internal.h"

enum { STAGING_BYTES = 1 << 20 };

/// Copy on one device and wait.
static tide_status copy_sync(tide_device d, tide_stream_id stream, tide_copy_direction direction, void *dst,
                             const void *src, size_t size_bytes, tide_error *err) {
    TIDE_TRY(tide_device_copy(d, stream, direction, dst, src, size_bytes, err));
    return tide_stream_sync(d, stream, err);
}

static tide_status copy_staged(tide_device to, char *dst, tide_device from, const char *src, size_t size_bytes,
                               tide_stream_id stream, char *staging, tide_error *err) {
    for (size_t at = 0; at < size_bytes; at += STAGING_BYTES) {
        const size_t left = size_bytes - at;
        const size_t n = left < STAGING_BYTES ? left : STAGING_BYTES;
        TIDE_TRY(copy_sync(from, stream, TIDE_COPY_DEVICE_TO_HOST, staging, src + at, n, err));
        TIDE_TRY(copy_sync(to, 0, TIDE_COPY_HOST_TO_DEVICE, dst + at, staging, n, err));
    }
    return TIDE_OK;
}

static tide_status through_host(tide_device to, void *dst, tide_device from, const void *src, size_t size_bytes,
                                tide_stream_id stream, tide_error *err) {
    TIDE_TRY(tide_device_require(to, err));
    TIDE_TRY(tide_device_require(from, err));
    const size_t staging_bytes = size_bytes < STAGING_BYTES ? size_bytes : STAGING_BYTES;
    char *staging = tide_host_alloc(staging_bytes);
    if (staging == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no %zu bytes to stage a copy of %zu bytes between two devices",
                         staging_bytes, size_bytes);
    }
    const tide_status st = copy_staged(to, dst, from, src, size_bytes, stream, staging, err);
    tide_host_free(staging);
    return st;
}

tide_status tide_device_transfer(tide_device to, void *dst, tide_device from, const void *src, size_t size_bytes,
                                 tide_stream_id stream, tide_error *err) {
    // Waiting first refuses a captured stream while nothing is on it yet.
    TIDE_TRY(tide_stream_sync(from.type == TIDE_DEVICE_CPU ? to : from, stream, err));
    if (size_bytes == 0) return tide_device_require(from.type == TIDE_DEVICE_CPU ? from : to, err);
    if (tide_device_equal(to, from)) return copy_sync(to, stream, TIDE_COPY_WITHIN_DEVICE, dst, src, size_bytes, err);
    if (from.type == TIDE_DEVICE_CPU) {
        TIDE_TRY(tide_device_require(from, err));
        return copy_sync(to, stream, TIDE_COPY_HOST_TO_DEVICE, dst, src, size_bytes, err);
    }
    if (to.type == TIDE_DEVICE_CPU) {
        TIDE_TRY(tide_device_require(to, err));
        return copy_sync(from, stream, TIDE_COPY_DEVICE_TO_HOST, dst, src, size_bytes, err);
    }
    return through_host(to, dst, from, src, size_bytes, stream, err);
}
