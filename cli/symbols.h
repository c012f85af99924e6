// SPDX-License-Identifier: MIT
//
// Names for call stacks of native code: the plug-in that reads debug information is opened, and says what it found.
#ifndef TIDE_CLI_SYMBOLS_H
#define TIDE_CLI_SYMBOLS_H

#include "profiler/symbols.h"

/// Name the frames of a finished trace that have no name yet. TIDE_ERR_NOT_FOUND without the plug-in; else as
/// tide_trace_name_frames.
tide_status cli_symbols_name(const char *path, tide_symbols_report *out, tide_error *err) TIDE_NODISCARD;
/// What could not be named and why, on standard error; nothing where all is well.
void cli_symbols_print(const tide_symbols_report *r);

#endif
