// SPDX-License-Identifier: MIT
//
// metric: the figures that a gate compares with limits. One table describes them: what each counts, which direction
// is worse, whether it is exact or timed, and what a change means unless the configuration says otherwise.
#ifndef TIDE_GATE_METRIC_H
#define TIDE_GATE_METRIC_H

#include "core/base/text.h"
#include "core/memory/kind.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_gate_unit { TIDE_GATE_BYTES, TIDE_GATE_COUNT, TIDE_GATE_SHARE, TIDE_GATE_NS } tide_gate_unit;
typedef enum tide_gate_better { TIDE_GATE_LESS, TIDE_GATE_MORE } tide_gate_better;
/// What a change for the worse does. Timed metrics are never above REPORT.
typedef enum tide_gate_level { TIDE_GATE_REPORT, TIDE_GATE_WARN, TIDE_GATE_FAIL } tide_gate_level;
const char *tide_gate_level_name(tide_gate_level level);

// name, id, unit, better, level of any change for the worse, of each kind, needs a run, what
#define TIDE_GATE_METRIC_MAP(XX)                                                                                       \
    XX(PLANNED, "planned_bytes", BYTES, LESS, FAIL, false, false, "the planned buffers, without kernels' scratch")     \
    XX(TOTAL, "total_bytes", BYTES, LESS, FAIL, false, false, "these buffers, weights, inputs and outputs together")   \
    XX(PROCESS, "process_bytes", BYTES, LESS, REPORT, false, false,                                                    \
       "what the process takes that runs the model: program, weights, inputs, outputs, buffers, scratch; or what "     \
       "loading takes")                                                                                                \
    XX(PREDICTED, "predicted_bytes", BYTES, LESS, FAIL, true, false, "what a run will hold at its peak, by the plan")  \
    XX(LOWER_BOUND, "lower_bound_bytes", BYTES, LESS, REPORT, false, false,                                            \
       "what no plan of these lifetimes goes "                                                                         \
       "below")                                                                                                        \
    XX(NAIVE, "naive_bytes", BYTES, LESS, REPORT, false, false, "every tensor by itself")                              \
    XX(SAVING, "saving", SHARE, MORE, REPORT, false, false, "1 - planned / naive")                                     \
    XX(GAP, "gap", SHARE, LESS, REPORT, false, false, "planned / proved bound - 1")                                    \
    XX(FULL_PLANNED, "full_planned_bytes", BYTES, LESS, REPORT, false, false, "the planned buffers of a run")          \
    XX(FULL_TOTAL, "full_total_bytes", BYTES, LESS, REPORT, false, false, "all that a run holds, by the plan")         \
    XX(FULL_BOUND, "full_lower_bound_bytes", BYTES, LESS, REPORT, false, false, "what no plan of a run goes below")    \
    XX(SCRATCH, "scratch_bytes", BYTES, LESS, REPORT, false, false, "scratch of the kernel that asks for most")        \
    XX(PEAK, "peak_bytes", BYTES, LESS, FAIL, false, true, "measured peak of all kinds together")                      \
    XX(KIND_PEAK, "kind_peak_bytes", BYTES, LESS, FAIL, true, true, "measured peak")                                   \
    XX(RESERVED, "reserved_bytes", BYTES, LESS, FAIL, false, true, "most that allocators took from the system")        \
    XX(UNEXPLAINED, "unexplained_bytes", BYTES, LESS, FAIL, true, true, "|predicted - measured|")                      \
    XX(LEAKED, "leaked_bytes", BYTES, LESS, FAIL, false, true, "never given back")                                     \
    XX(LEAKED_BLOCKS, "leaked_blocks", COUNT, LESS, FAIL, false, true, "blocks never given back")                      \
    XX(WARM, "warm_allocations", COUNT, LESS, FAIL, false, true, "allocations in steady state")                        \
    XX(ALLOCATIONS, "allocations", COUNT, LESS, REPORT, false, true, "allocations of all runs")                        \
    XX(OPERATORS, "operators", COUNT, LESS, REPORT, false, false, "steps of the program")                              \
    XX(TIME, "time_ns", NS, LESS, REPORT, false, true, "median time of a run")                                         \
    XX(PLAN_TIME, "plan_time_ns", NS, LESS, REPORT, false, false, "time that the strategy took")
typedef enum tide_gate_metric {
#define XX(name, id, unit, better, level, kinds, run, what) TIDE_GATE_##name,
    TIDE_GATE_METRIC_MAP(XX)
#undef XX
        TIDE_GATE_N_METRICS
} tide_gate_metric;

typedef struct tide_gate_metric_def {
    const char *id;
    tide_gate_unit unit;
    tide_gate_better better;
    tide_gate_level level;
    bool per_kind;  ///< one value for each memory kind: "kind_peak_bytes.Workspace"
    bool needs_run; ///< false: a plan is enough
    const char *what;
} tide_gate_metric_def;
const tide_gate_metric_def *tide_gate_metric_get(tide_gate_metric m);
/// Whether the figure contains kernels' scratch and so depends on the processor. In a case that notes its machine,
/// such a figure is judged only if a rule asks for it and the machine is the baseline's.
bool tide_gate_metric_is_of_machine(tide_gate_metric m, int kind);
/// "planned_bytes", "kind_peak_bytes.Workspace"; of a metric per kind without one `*kind` is -1 (all kinds).
/// TIDE_ERR_NOT_FOUND with the nearest name as hint.
tide_status tide_gate_metric_parse(const char *text, tide_gate_metric *m, int *kind, tide_error *err) TIDE_NODISCARD;
/// The text that tide_gate_metric_parse reads.
const char *tide_gate_metric_text(tide_gate_metric m, int kind, char *buf, size_t buf_bytes);

/// A figure. Bytes, counts and ns are exact integers, shares are real.
typedef struct tide_gate_value {
    bool known;
    uint64_t u;
    double real;
} tide_gate_value;
/// As people read it, with the unit: "1.50 MiB (1572864)", "12", "25.0 %", "4.5 ms"; "-" for what is not known.
const char *tide_gate_value_text(tide_gate_unit unit, tide_gate_value v, char *buf, size_t buf_bytes);
/// The change from a to b with its sign: "+12 KiB (+3.1 %)".
const char *tide_gate_change_text(tide_gate_unit unit, tide_gate_value a, tide_gate_value b, char *buf,
                                  size_t buf_bytes);

#ifdef __cplusplus
}
#endif
#endif
