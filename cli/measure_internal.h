// SPDX-License-Identifier: MIT
//
// The parts of measure: from settings to planning and back into words, traces, and who leaked or allocated.
#ifndef TIDE_CLI_MEASURE_INTERNAL_H
#define TIDE_CLI_MEASURE_INTERNAL_H

#include "cli/measure.h"
#include "cli/planning.h"
#include "cli/session.h"

/// Why a case has no figures, kept in it as one line. `skipped`: it was not tried. TIDE_ERR_NOMEM.
tide_status cli__measure_note(tide_gate_case *c, const tide_error *why, bool skipped, tide_error *err) TIDE_NODISCARD;

// ---- measure_settings.c ----

/// What planning wants to know, from the settings of a gate; texts are borrowed from them, cli_planning_deinit.
tide_status cli__measure_planning(const tide_gate_plan_settings *s, cli_planning *out, tide_error *err) TIDE_NODISCARD;
/// Everything that decides the figures of a model beside its file, as settings of the case.
tide_status cli__measure_put_settings(tide_gate_case *c, const tide_gate_plan_settings *s,
                                      tide_error *err) TIDE_NODISCARD;
/// Signature and inputs of a graph whose shapes are known.
tide_status cli__measure_put_graph(tide_gate_case *c, const tide_graph *g, tide_error *err) TIDE_NODISCARD;

// ---- measure_tensors.c ----

/// A value that is known.
tide_gate_value cli__measured(uint64_t u);
/// What a tensor or a block is called: by its name, else by who asked for it.
const char *cli__measure_label(const char *name, const char *owner);

/// A tensor to be added; texts are borrowed.
typedef struct cli__tensor_row {
    const char *name, *owner, *inside, *alias;
    tide_memory_kind kind;
    bool persistent;
    uint64_t bytes;
} cli__tensor_row;
/// Append it; *cap: room in the case's table, its length at first. Order is made by cli__measure_sort.
tide_status cli__measure_add_tensor(tide_gate_case *c, const cli__tensor_row *row, size_t *cap,
                                    tide_error *err) TIDE_NODISCARD;
void cli__measure_sort(tide_gate_case *c);
void cli__measure_drop_tensors(tide_gate_case *c);
/// Hold leaked bytes and allocations in steady state against the tensor of that name (whose owner need not be the
/// same), or against a tensor more.
tide_status cli__measure_blame(tide_gate_case *c, const cli__tensor_row *who, uint64_t leaked_bytes,
                               uint64_t warm_allocations, tide_error *err) TIDE_NODISCARD;

// ---- measure_trace.c ----

/// A finished trace: its last run, or the whole when it has none. TIDE_ERR_BAD_INPUT for one that does not hold all
/// that happened.
tide_status cli__measure_trace(const char *path, tide_gate_case *c, tide_error *err) TIDE_NODISCARD;

#endif
