// SPDX-License-Identifier: MIT
//
// The program's side of the plug-in: what must be one in the process comes from it (core/device/plugin.h).
#ifndef TIDE_CUDA_DEVICE_CUDA_HOST_H
#define TIDE_CUDA_DEVICE_CUDA_HOST_H

#include "core/device/plugin.h"

/// Before anything else here is called. `host` is borrowed for as long as the process lives.
void cuda_host_set(const tide_device_plugin_host *host);

#endif
