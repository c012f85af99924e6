// SPDX-License-Identifier: MIT
//
// program_sizes: a program that is built for its sizes, and never runs.
#ifndef TIDE_CORE_RUNTIME_PROGRAM_SIZES_H
#define TIDE_CORE_RUNTIME_PROGRAM_SIZES_H

#include "core/graph/sizes.h"
#include "core/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/// As tide_program_build, from a graph that may have blank constants (core/graph/sizes.h); more are left blank. An
/// inference plan of such a program is refused.
tide_status tide_program_build_sizes(tide_graph *graph, const tide_program_options *opt, const tide_contents *contents,
                                     tide_program **out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
