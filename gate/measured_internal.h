// SPDX-License-Identifier: MIT
//
// What the files of gate/ that work on cases share.
#ifndef TIDE_GATE_MEASURED_INTERNAL_H
#define TIDE_GATE_MEASURED_INTERNAL_H

#include "core/base/json.h"
#include "core/base/json_out.h"
#include "gate/measured.h"

/// A copy of `text` (NULL: "") in UTF-8. Other bytes become the four characters "\xff", so that different names
/// stay different. NULL: no memory.
char *tide__case_utf8(const char *text);

/// Order of tensors in a case: by name, then owner.
int tide__case_compare_tensors(const tide_gate_tensor *x, const tide_gate_tensor *y);
void tide__case_sort_tensors(tide_gate_case *c);

/// Checks that the tensors' parts of the peak and the holes sum to held_bytes. TIDE_ERR_INVALID names the case.
tide_status tide__case_check(const tide_gate_case *c, tide_error *err) TIDE_NODISCARD;

/// A share as it is stored and compared.
int64_t tide__case_millionths(double share);
/// Shares of a case lie between this and its negative.
#define TIDE__CASE_MAX_SHARE 999999999999.0
/// Whether both are known and the same, or both unknown.
bool tide__case_same_value(tide_gate_unit unit, tide_gate_value a, tide_gate_value b);
/// The value, with 0 for a kind that was not used: unknown only when no kind of the metric is known.
tide_gate_value tide__case_value(const tide_gate_case *c, tide_gate_metric m, int kind);
/// How many values a metric has: one, or one for each kind.
int tide__case_n_values(tide_gate_metric m);

static inline const char *tide__case_text(const char *text) { return text != NULL ? text : ""; }

/// A case as an object with a fixed order of keys, without times: figures, steps and tensors have a line each.
void tide__case_write_json(tide_json_out *j, const tide_gate_case *c);
/// The same as a tree; the caller's to json_decref. NULL: no memory.
json_t *tide__case_to_json(const tide_gate_case *c);
/// The object `doc`, which `r` is in, as a case. TIDE_ERR_BAD_INPUT with the key that is wrong.
tide_status tide__case_of_json(tide_json_reader *r, const json_t *doc, tide_gate_case *out) TIDE_NODISCARD;

#endif
