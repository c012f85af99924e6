// SPDX-License-Identifier: MIT
//
// measured: one case (a model at one size, planned one way, perhaps run) as figures, with what explains a later
// change of a figure: settings, inputs, steps, tensors. A baseline stores cases; new cases are compared with them.
#ifndef TIDE_GATE_MEASURED_H
#define TIDE_GATE_MEASURED_H

#include "core/runtime/memory_plan.h"
#include "gate/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "strategy" = "search", "align" = "256", "fuse" = "on", "passes" = "views slices in-place parts order", …
typedef struct tide_gate_setting {
    char *key, *value; ///< owned
} tide_gate_setting;

/// A step of the program in order of execution.
typedef struct tide_gate_step {
    char *name; ///< of the node; owned
    char *op;   ///< operator type, "Conv"; "" if a lifetimes table does not have it; owned
} tide_gate_step;

/// A tensor of the plan; of a trace all blocks of one name and owner.
typedef struct tide_gate_tensor {
    char *name, *owner;     ///< owned; owner: the node that makes it, "" none
    char *inside;           ///< tensor that it lies in (alias), "" none; owned
    char *alias;            ///< why: "in-place", "view", …; "" none; owned
    tide_memory_kind kind;  ///
    bool persistent;        ///
    uint64_t bytes;         ///< rounded up, as it occupies memory; of a trace requested bytes of the largest block
    uint64_t at_peak_bytes; ///< its part of held_bytes: all parts and holes_bytes sum to held_bytes
    uint64_t leaked_bytes;  ///< of a run: never given back
    uint64_t warm_allocations;
} tide_gate_tensor;

typedef struct tide_gate_case {
    char *key;       ///< unique in a document: "models/mnist-8.onnx", "models/gpt.onnx [batch=8]"; owned
    char *model;     ///< name that the file gives itself; owned
    char *signature; ///< names and types of the graph's inputs and outputs, without extents: the same model has the
                     ///< same; "" a lifetimes table or a trace; owned
    char *inputs;    ///< "data 1x3x224x224, mask 1x128"; owned
    char *content;   ///< hash of the file, by which it is known under another name; NULL: not known; owned
    char *error;     ///< one line: why it could not be measured; NULL: it was; owned
    bool skipped;    ///< with `error`: the measurement was not tried (no kernel, no file, no device)
    tide_gate_setting *settings; ///< [n_settings] by key
    size_t n_settings;
    tide_gate_value metrics[TIDE_GATE_N_METRICS];             ///< of metrics per kind unused
    tide_gate_value kinds[TIDE_GATE_N_METRICS][TIDE_N_KINDS]; ///< of metrics per kind
    tide_gate_step *steps;                                    ///< [n_steps]
    size_t n_steps;
    tide_gate_tensor *tensors; ///< [n_tensors] by name, then owner
    size_t n_tensors;
    char *peak_step;      ///< what runs at the peak; owned; "" not known
    uint64_t held_bytes;  ///< at the peak: of a plan its buffers, of a trace the peak
    uint64_t holes_bytes; ///< part of held_bytes that belongs to no tensor: holes and slack of a plan
} tide_gate_case;
void tide_gate_case_deinit(tide_gate_case *c);
/// Settings are sorted by key; a key that is there gets the new value.
tide_status tide_gate_case_set(tide_gate_case *c, const char *key, const char *value, tide_error *err) TIDE_NODISCARD;
/// The setting that names tensors which no figure of the plan has: they are sized while running, without a bound.
#define TIDE_GATE_UNBOUNDED "unbounded"
/// NULL: there is none.
const char *tide_gate_case_setting(const tide_gate_case *c, const char *key);
/// What kernels' scratch depends on, as settings: "instructions", "caches", "threads", "library".
bool tide_gate_setting_is_of_machine(const char *key);
/// Whether the case notes the machine that it was measured on: a model with kernels does.
bool tide_gate_case_has_machine(const tide_gate_case *c);
/// Whether both were measured on machines that size kernels' scratch alike.
bool tide_gate_case_same_machine(const tide_gate_case *a, const tide_gate_case *b);
/// The value of (metric, kind); `kind` is ignored unless the metric has a value per kind.
tide_gate_value tide_gate_case_value(const tide_gate_case *c, tide_gate_metric m, int kind);

/// Fills a case from a plan: the metrics that need no run, tensors with their part of the peak, steps (operator
/// types from `step_ops`, [lifetimes.n_step_names] or NULL), the settings strategy and align. `out` is zero but for
/// its key.
tide_status tide_gate_case_of_plan(const tide_memory_plan *plan, const char *const *step_ops, tide_gate_case *out,
                                   tide_error *err) TIDE_NODISCARD;

/// Cases of one document, by key.
typedef struct tide_gate_cases {
    tide_gate_case *items; ///< [n] owned
    size_t n, cap;
} tide_gate_cases;
void tide_gate_cases_deinit(tide_gate_cases *cases);
/// Takes `c` and zeroes it, also on failure. TIDE_ERR_EXISTS for a key that is there already.
tide_status tide_gate_cases_add(tide_gate_cases *cases, tide_gate_case *c, tide_error *err) TIDE_NODISCARD;
/// NULL: there is none. O(log n).
const tide_gate_case *tide_gate_cases_find(const tide_gate_cases *cases, const char *key);

#ifdef __cplusplus
}
#endif
#endif
