// SPDX-License-Identifier: MIT
//
// frame_names: the names of native frames into the tables of a finished trace (profiler/symbols.h). Private to
// profiler/.
#ifndef TIDE_PROFILER_STORE_FRAME_NAMES_H
#define TIDE_PROFILER_STORE_FRAME_NAMES_H

#include "profiler/symbols.h"

/// As tide_trace_name_frames, of a trace that is known to be finished.
tide_status tide__name_frames(const char *path, const tide_symbols_plugin *symbols, tide_symbols_report *out,
                              tide_error *err) TIDE_NODISCARD;

#endif
