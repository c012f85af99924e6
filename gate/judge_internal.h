// SPDX-License-Identifier: MIT
//
// What the files of the judge share.
#ifndef TIDE_GATE_JUDGE_INTERNAL_H
#define TIDE_GATE_JUDGE_INTERNAL_H

#include "gate/judge.h"

/// One figure by its rule. `has_baseline` false: budgets alone. False: there is nothing to say of it, *out is
/// untouched.
bool tide__judge_row(const tide_gate_rule *rule, tide_gate_metric m, int kind, bool has_baseline, tide_gate_value a,
                     tide_gate_value b, tide_gate_row *out);
/// Whether a figure that both know differs; timed ones never do.
bool tide__judge_differs(tide_gate_metric m, tide_gate_value a, tide_gate_value b);
/// "instructions are avx2 instead of sse41, library is …": what differs of two machines.
void tide__judge_say_machines(tide_text *out, const tide_gate_case *a, const tide_gate_case *b);
/// The worse of two verdicts: FAIL, NOT_COMPARABLE, WARN, PASS.
tide_gate_verdict tide__judge_worse(tide_gate_verdict a, tide_gate_verdict b);

#endif
