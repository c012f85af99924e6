// SPDX-License-Identifier: MIT
//
// A module that says of itself that it belongs to another version of tidemark, for tests/cli/devices.py.
#include "core/device/plugin.h"

static const tide_device_plugin plugin = {.abi = TIDE_DEVICE_PLUGIN_ABI + 41};

const tide_device_plugin *tidemark_device_plugin(void);
const tide_device_plugin *tidemark_device_plugin(void) { return &plugin; }
