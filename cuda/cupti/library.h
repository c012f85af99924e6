// SPDX-License-Identifier: MIT
//
// library: libcupti as a table of functions. It is opened by name and not linked to, although a link would be checked
// by the loader: whether the driver can load an injected library decides whether the program starts at all on some
// drivers, and libcupti is in no library path on most machines (measured: neither the toolkit's nor PyTorch's is known
// to ldconfig). Opened by hand, what is missing is one line and the program runs on.
#ifndef TIDE_CUDA_CUPTI_LIBRARY_H
#define TIDE_CUDA_CUPTI_LIBRARY_H

#include <cupti.h>

#include "core/base/status.h"

#define TIDE__CUPTI_SONAME "libcupti.so.13"

/// Every call of CUPTI that the recorder makes; the types are those of the header.
#define TIDE__CUPTI_CALLS(XX)                                                                                          \
    XX(cuptiGetVersion)                                                                                                \
    XX(cuptiGetResultString)                                                                                           \
    XX(cuptiSubscribe_v2)                                                                                              \
    XX(cuptiUnsubscribe)                                                                                               \
    XX(cuptiEnableCallback)                                                                                            \
    XX(cuptiActivityRegisterTimestampCallback)                                                                         \
    XX(cuptiActivityRegisterCallbacks)                                                                                 \
    XX(cuptiActivitySetAttribute)                                                                                      \
    XX(cuptiActivityEnable)                                                                                            \
    XX(cuptiActivityDisable)                                                                                           \
    XX(cuptiActivityFlushAll)                                                                                          \
    XX(cuptiActivityGetNextRecord)                                                                                     \
    XX(cuptiActivityGetNumDroppedRecords)                                                                              \
    XX(cuptiGetStreamIdEx)                                                                                             \
    XX(cuptiGetDeviceId)

typedef struct tide__cupti_library {
    void *handle; ///< of dlopen; NULL: not open. Never closed: its callbacks may still come
#define XX(name) __typeof__(name) *name;
    TIDE__CUPTI_CALLS(XX)
#undef XX
} tide__cupti_library;

/**
 * Find libcupti.so.13: what the program has loaded already under that name, then $TIDEMARK_CUPTI (a file), then the
 * loader's own search, then beside a CUDA library that the program has loaded (PyTorch's packages), then the toolkit's
 * usual places.
 *
 * @param out  filled in when this succeeds
 * @return TIDE_ERR_NOT_FOUND with the places; TIDE_ERR_BACKEND for one that is too old or lacks a function
 */
tide_status tide__cupti_library_open(tide__cupti_library *out, tide_error *err) TIDE_NODISCARD;
/// CUPTI's own name of a result: "CUPTI_ERROR_UNKNOWN". Static text.
const char *tide__cupti_result(const tide__cupti_library *lib, CUptiResult result);

#endif
