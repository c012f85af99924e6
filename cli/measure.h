// SPDX-License-Identifier: MIT
//
// measure: one target of a gate or one point of a sweep, planned and perhaps run, as a case.
#ifndef TIDE_CLI_MEASURE_H
#define TIDE_CLI_MEASURE_H

#include "gate/config.h"
#include "gate/measured.h"

/// Where settings say 0: steps of strategy search, which has no time limit here; runs per context; contexts.
enum { CLI_MEASURE_NODE_LIMIT = 20000, CLI_MEASURE_RUNS = 3, CLI_MEASURE_CONTEXTS = 1 };
uint64_t cli_measure_runs(const tide_gate_plan_settings *s);
uint64_t cli_measure_contexts(const tide_gate_plan_settings *s);

/// Plan, and with settings.run run, what lies at `path` (model, graph text, lifetimes, plan JSON, trace) into a case
/// with that key. What cannot be measured is no failure of this function but a case with `error`, and is judged as one;
/// the status is that of lack of memory alone. Thread-safe without settings.run. A run counts all of the process'
/// blocks: one at a time.
///
/// A plan file is taken as it is, by its strategy where it has several; what has no kernels at all (plan files,
/// lifetimes, traces) is not run whatever the settings say, a model whose operators have none is `skipped`. A trace is
/// its last run, or the whole where it has none; leaks are those of the whole.
tide_status cli_measure(const char *path, const char *key, const tide_gate_plan_settings *settings, tide_gate_case *out,
                        tide_error *err) TIDE_NODISCARD;
/// The model's open extents by name ("N", "batch", "seq_len"), as `--extent` takes them; one without a symbol is
/// "INPUT.AXIS". Names owned.
tide_status cli_measure_extents(const char *path, char ***names, size_t *n, tide_error *err) TIDE_NODISCARD;

#endif
