// SPDX-License-Identifier: MIT
//
// What judge.c, judge_row.c and the causes share.
#ifndef TIDE_GATE_JUDGE_INTERNAL_H
#define TIDE_GATE_JUDGE_INTERNAL_H

#include "gate/judge.h"

/// Judges one figure by its rule; without `has_baseline` only its budgets. False: the figure gets no row, and *out
/// is not changed.
bool tide__judge_row(const tide_gate_rule *rule, tide_gate_metric m, int kind, bool has_baseline, tide_gate_value a,
                     tide_gate_value b, tide_gate_row *out);
/// Whether both values are known and differ; times never count as different.
bool tide__judge_differs(tide_gate_metric m, tide_gate_value a, tide_gate_value b);
/// Writes how two machines differ: "instructions: avx2 instead of sse41; library: …".
void tide__judge_say_machines(tide_text *out, const tide_gate_case *a, const tide_gate_case *b);
/// The worse of two verdicts: FAIL, NOT_COMPARABLE, WARN, PASS.
tide_gate_verdict tide__judge_worse(tide_gate_verdict a, tide_gate_verdict b);

#endif
