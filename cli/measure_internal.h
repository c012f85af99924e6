// SPDX-License-Identifier: MIT
//
// The parts of measure: the tensors of a case, and traces.
#ifndef TIDE_CLI_MEASURE_INTERNAL_H
#define TIDE_CLI_MEASURE_INTERNAL_H

#include "cli/measure.h"
#include "cli/planning.h"
#include "cli/session.h"

// ---- measure_tensors.c ----

/// A value that is known.
tide_gate_value cli__measured(uint64_t u);
/// The name of a tensor or a block; if it has none, its owner's.
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
/// Adds leaked bytes and allocations in steady state to the tensor of that name and owner, else to one of that
/// name, else to a new tensor.
tide_status cli__measure_charge(tide_gate_case *c, const cli__tensor_row *who, uint64_t leaked_bytes,
                                uint64_t warm_allocations, tide_error *err) TIDE_NODISCARD;

// ---- measure_trace.c ----

/// A finished trace: its last run, or the whole when it has none. TIDE_ERR_BAD_INPUT for one that does not hold all
/// that happened.
tide_status cli__measure_trace(const char *path, tide_gate_case *c, tide_error *err) TIDE_NODISCARD;

#endif
