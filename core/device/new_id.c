// SPDX-License-Identifier: MIT
//
// Numbers of streams, events and captures, of all devices: one count in a process. A plug-in asks the program for them
// (plugin.h).
#include <stdatomic.h>

#include "core/device/backend.h"

uint64_t tide_device_new_id(void) {
    static _Atomic uint64_t last_id;
    return atomic_fetch_add(&last_id, 1) + 1;
}
