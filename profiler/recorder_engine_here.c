// SPDX-License-Identifier: MIT
//
// The drain is in this program. libtidemark-record.so has another function of this name. See recorder_engine.h.
#include "profiler/recorder_engine.h"

tide_status tide__engine_get(const tide__engine **out, tide_error *err) {
    (void)err;
    *out = tide_recorder_engine();
    return TIDE_OK;
}
