// SPDX-License-Identifier: MIT
//
// run_sizes: a model that runs at one size after the other, by one plan and in one buffer (`run --profile`).
#ifndef TIDE_CLI_RUN_SIZES_H
#define TIDE_CLI_RUN_SIZES_H

#include "cli/planning.h"
#include "cli/session.h"
#include "core/base/json_out.h"
#include "core/runtime/shape_engine.h"

/// What one size of the profile came to.
typedef struct cli_size_result {
    char *name;                   ///< "x=4x64", owned
    uint64_t first_ns, median_ns; ///< of its first turn, with what the change of size took; of all others, without
    size_t n_runs;
} cli_size_result;

typedef struct cli_sizes_result {
    cli_session_result session; ///< kinds and times; no outputs
    char *model, *strategy;     ///< owned
    cli_size_result *sizes;     ///< [n], owned
    size_t n;
    tide_shape_engine_stats engine;
} cli_sizes_result;

/**
 * Plan for all sizes of `p->profile`, then run them in turn, as often as spec->runs says.
 *
 * @param spec  as for a plain run; program, plan, contexts, input_dir and keep_outputs are not read
 */
tide_status cli_sizes_run(cli_session *s, const char *path, const cli_planning *p, const cli_session_spec *spec,
                          cli_sizes_result *out, tide_error *err) TIDE_NODISCARD;
void cli_sizes_result_deinit(cli_sizes_result *r);

/// What comes after the table of kinds: a line for each size.
void cli_sizes_print(const cli_sizes_result *r);
/// The value of "sizes" in the document of `run`.
void cli_json_sizes(tide_json_out *j, const char *key, const cli_sizes_result *r);

#endif
