// SPDX-License-Identifier: MIT
//
// What the files of core/device share: the table of device types, and the CPU's own entry in it.
#ifndef TIDE_CORE_DEVICE_DEVICE_INTERNAL_H
#define TIDE_CORE_DEVICE_DEVICE_INTERNAL_H

#include "core/device/backend.h"

/// Longest name of a type; with a colon, an index and the end it fits the 32 bytes of tide_device_format.
enum { TIDE__DEVICE_NAME_CHARS = 15 };

// backend.c
/// The name that stands for `type`, registered or not any more; NULL for a number that was never given.
const char *tide__device_type_name(tide_device_type type);
/// The registered type (or CPU or CUDA, always) whose name is the first `n` characters of `text`; false when none is.
bool tide__device_type_named(const char *text, size_t n, tide_device_type *out);

// cpu_device.c
extern const tide_device_ops tide__cpu_device_ops;

#endif
