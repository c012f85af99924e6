// SPDX-License-Identifier: MIT
//
// What a sweep found, onto standard output and into files.
#ifndef TIDE_CLI_SWEEP_EMIT_H
#define TIDE_CLI_SWEEP_EMIT_H

#include "cli/sweep.h"

/// Before anything is planned: endings that are no format, an output that is an input. False after the message.
bool cli_sweep_outs_good(const cli_command *cmd, const cli_sweep_options *o);
/// Each file whole or untouched, also when a signal comes; then text or JSON on standard output.
tide_status cli_sweep_emit(const cli_sweep_options *o, const tide_sweep *s, tide_error *err) TIDE_NODISCARD;

#endif
