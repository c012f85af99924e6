// SPDX-License-Identifier: MIT
//
// judge: compares cases with a baseline by the rules of a configuration. Each figure gets a verdict. Each case that
// changed gets its causes, and a waterfall whose parts sum exactly to the change of the peak.
#ifndef TIDE_GATE_JUDGE_H
#define TIDE_GATE_JUDGE_H

#include "gate/baseline.h"
#include "gate/config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_GATE_VERDICT_MAP(XX)                                                                                      \
    XX(PASS, "pass")                                                                                                   \
    XX(WARN, "warn")                                                                                                   \
    XX(FAIL, "fail")                                                                                                   \
    XX(NOT_COMPARABLE, "not_comparable")
typedef enum tide_gate_verdict {
#define XX(name, text) TIDE_GATE_##name##_VERDICT,
    TIDE_GATE_VERDICT_MAP(XX)
#undef XX
} tide_gate_verdict;
const char *tide_gate_verdict_name(tide_gate_verdict v);

#define TIDE_GATE_STATE_MAP(XX)                                                                                        \
    XX(UNCHANGED, "unchanged") /* no exact figure differs */                                                           \
    XX(CHANGED, "changed")                                                                                             \
    XX(ADDED, "added")             /* the baseline has no such case */                                                 \
    XX(REMOVED, "removed")         /* the baseline alone has it */                                                     \
    XX(UNMEASURED, "unmeasured")   /* it failed or was skipped: always a failure */                                    \
    XX(OTHER_MODEL, "other_model") /* the same key, another signature: not comparable */                               \
    XX(ALONE, "alone")             /* no baseline is wanted: budgets alone */
typedef enum tide_gate_state {
#define XX(name, text) TIDE_GATE_CASE_##name,
    TIDE_GATE_STATE_MAP(XX)
#undef XX
} tide_gate_state;
const char *tide_gate_state_name(tide_gate_state s);

/// One figure of one case.
typedef struct tide_gate_row {
    tide_gate_metric metric;
    int kind; ///< of metrics per kind; else -1
    tide_gate_value baseline, current;
    tide_gate_verdict verdict; ///< NOT_COMPARABLE: it is judged, and the baseline has no such figure
    bool elsewhere;            ///< not judged: it depends on the machine, and the baseline was made on another one
    bool over_budget;          ///< the verdict is about the budget; else about growth or gain
    bool is_gain;              ///< the figure became better by more than the limit of gains
    char limit[160];           ///< "any growth (the default)", "64 KiB and 2 % (tidemark.toml:12)"; "" pass
} tide_gate_row;

#define TIDE_GATE_CAUSE_MAP(XX)                                                                                        \
    XX(MACHINE, "machine") /* measured on another machine: `a` -> `b` */                                               \
    XX(SETTING, "setting") /* strategy, alignment, fusion, a pass, …: `a` -> `b` */                                  \
    XX(INPUTS, "inputs")   /* other extents: `a` -> `b` */                                                             \
    XX(OPERATOR_ADDED, "operator_added")                                                                               \
    XX(OPERATOR_REMOVED, "operator_removed")                                                                           \
    XX(ORDER, "order") /* `name` runs at another place relative to others */                                           \
    XX(TENSOR_ADDED, "tensor_added")                                                                                   \
    XX(TENSOR_REMOVED, "tensor_removed")                                                                               \
    XX(TENSOR_RESIZED, "tensor_resized")                                                                               \
    XX(PLACE_LOST, "place_lost")     /* lay inside another one (in-place, view), has its own bytes now */              \
    XX(PLACE_SHARED, "place_shared") /* the other way */                                                               \
    XX(KIND, "kind")                 /* another memory kind, or persistent now: `a` -> `b` */                          \
    XX(ALIVE, "alive")               /* as it is, but alive at the peak now */                                         \
    XX(NOT_ALIVE, "not_alive")       /* the other way */                                                               \
    XX(LEAK, "leak")                 /* never given back */                                                            \
    XX(STEADY, "steady")             /* allocated in steady state */                                                   \
    XX(SCRATCH, "scratch")           /* kernels ask for more or less of it, on the same machine */                     \
    XX(HOLES, "holes")               /* more or fewer bytes between tensors */                                         \
    XX(UNEXPLAINED, "unexplained")   /* a figure, `name`, changed and nothing of the above can have done it */
typedef enum tide_gate_cause_kind {
#define XX(name, text) TIDE_GATE_CAUSE_##name,
    TIDE_GATE_CAUSE_MAP(XX)
#undef XX
} tide_gate_cause_kind;
const char *tide_gate_cause_name(tide_gate_cause_kind k);

typedef struct tide_gate_cause {
    tide_gate_cause_kind kind;
    char *name, *owner;        ///< owned; tensor, operator or setting; owner "" none
    char *a, *b;               ///< owned; texts of both sides; "" none
    uint64_t a_bytes, b_bytes; ///< bytes held at the two peaks (all bytes of what persists); its size if none are held
                               ///< at either; of leaks the leaked bytes; 0 of settings, inputs and steady state
    size_t n;   ///< how many equal differences this cause groups ("45 tensors grew to 2.00 times their size")
    char *text; ///< the sentence; owned
} tide_gate_cause;

/// A part of the change of the held bytes at the peak.
typedef struct tide_gate_part {
    char *key; ///< operator or kind, "holes"; owned
    uint64_t a_bytes, b_bytes;
} tide_gate_part;

typedef struct tide_gate_judged {
    const char *key;           ///< borrowed
    const char *path, *origin; ///< of the file that was measured, and of its entry ("tidemark.toml:20"); NULL: there is
                               ///< no such file, entry; borrowed
    const char *renamed_from;  ///< key in the baseline, where the same file has another name there; else NULL; borrowed
    const tide_gate_case *baseline, *current; ///< borrowed; NULL: there is none
    tide_gate_state state;
    tide_gate_verdict verdict;
    char *reason; ///< a sentence, for all states but CHANGED and UNCHANGED, for a rename, and for figures that the
                  ///< baseline lacks; owned; else NULL
    tide_gate_row *rows; ///< [n_rows] by metric, then kind; without figures that neither side has
    size_t n_rows;
    tide_gate_cause *causes; ///< [n_causes] settings, inputs, operators, then tensors by bytes
    size_t n_causes;
    tide_gate_part *by_operator, *by_kind; ///< [n_…] largest change first; each sums to the change of held_bytes
    size_t n_by_operator, n_by_kind;
} tide_gate_judged;

typedef struct tide_gate_result {
    tide_gate_verdict verdict; ///< the worst; NOT_COMPARABLE before FAIL only where nothing failed
    int exit_code;             ///< 0 pass or warn, 1 fail, 4 not comparable
    tide_gate_judged *cases;   ///< [n] by key
    size_t n, n_pass, n_warn, n_fail, n_not_comparable, n_added, n_removed, n_unmeasured;
    size_t n_elsewhere; ///< cases with figures that are not judged, because the baseline was made on another machine
    char *machine;      ///< how the machines of the first of them differ; NULL; owned
    const char *baseline_path, *config_path; ///< borrowed; "" none
    const char
        *command;      ///< the command line that makes or updates the baseline; NULL: derived from the paths; borrowed
    bool is_final;     ///< there is no such command, because the file compared with is no baseline
    char *reason;      ///< why no case could be compared; NULL: one could; owned
    char *last_update; ///< "2026-01-31 Ann: new fusion"; of the baseline; "" none; owned
} tide_gate_result;

/// `baseline` NULL: only budgets are checked. All arguments are borrowed and must outlive the result. The verdict
/// is NOT_COMPARABLE when baseline and measurement share no key or one of them has no cases, unless a case failed.
tide_status tide_gate_judge(const tide_gate_config *config, const tide_gate_baseline *baseline,
                            const tide_gate_cases *current, tide_gate_result *out, tide_error *err) TIDE_NODISCARD;
/// A result that says why there was nothing to compare with (`why` of tide_gate_baseline_read).
tide_status tide_gate_nothing(const char *baseline_path, const char *config_path, const tide_error *why,
                              tide_gate_result *out, tide_error *err) TIDE_NODISCARD;
void tide_gate_result_deinit(tide_gate_result *r);

/// Causes and parts alone, of any two cases: for `diff` and tests. Fills causes, by_operator, by_kind of `out`.
tide_status tide_gate_causes(const tide_gate_case *a, const tide_gate_case *b, tide_gate_judged *out,
                             tide_error *err) TIDE_NODISCARD;

// ---- private to gate/ ----

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

#ifdef __cplusplus
}
#endif
#endif
