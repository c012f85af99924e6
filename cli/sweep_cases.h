// SPDX-License-Identifier: MIT
//
// The points of a sweep as cases of a gate: `tidemark check sweep.json --baseline old-sweep.json`.
#ifndef TIDE_CLI_SWEEP_CASES_H
#define TIDE_CLI_SWEEP_CASES_H

#include "gate/measured.h"

/// Whether the file is a `tidemark.sweep`; false also for one that cannot be read.
bool cli_sweep_cases_is(const char *path);
/// A case for each point, keyed "<model> [N=8, strategy=search]", with ", align=64" where it is not the default. A
/// point with an error is a case with one. TIDE_ERR_IO; TIDE_ERR_BAD_INPUT with the place for what is no sweep;
/// TIDE_ERR_EXISTS when `out` has one of the keys.
tide_status cli_sweep_cases_read(const char *path, tide_gate_cases *out, tide_error *err) TIDE_NODISCARD;

#endif
