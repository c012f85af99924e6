// SPDX-License-Identifier: MIT
//
// baseline: the committed file that cases are held against: readable, sorted, versioned, with who changed it and why.
//
//     {"schema": "tidemark.baseline", "version": 2,
//      "updates": [{"date": …, "by": …, "reason": …, "changed": […keys…]}, …],
//      "cases": [ …gate/measured.h, a tensor a line… ]}
#ifndef TIDE_GATE_BASELINE_H
#define TIDE_GATE_BASELINE_H

#include "gate/measured.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_gate_update {
    char *date, *by, *reason; ///< owned; date as 2026-01-31
    char **changed;           ///< [n_changed] keys of cases that were added, removed or changed; owned
    size_t n_changed;
} tide_gate_update;

typedef struct tide_gate_baseline {
    char *path;                ///< owned
    tide_gate_update *updates; ///< [n_updates] oldest first
    size_t n_updates;
    tide_gate_cases cases;
    bool is_partial; ///< no file of baselines but a plan, a model or a trace: what it does not tell is not missed
    int version;     ///< of the file; 0: not read from one
} tide_gate_baseline;

/// TIDE_ERR_INCOMPARABLE for a file that is not there, empty, no baseline, or of a version that is not known: nothing
/// was compared (exit 4), with the hint how one is made.
tide_status tide_gate_baseline_read(const char *path, tide_gate_baseline *out, tide_error *err) TIDE_NODISCARD;
void tide_gate_baseline_deinit(tide_gate_baseline *b);

/// What an update is made with. Everything is given, nothing is taken from the clock or the system.
typedef struct tide_gate_update_info {
    const char *date, *by, *reason;
} tide_gate_update_info;
/// The baseline with these cases in place of its own (those of the baseline alone go), and one more entry in updates;
/// byte-stable. *changed: whether a case differs; the same cases again leave the file as it is. TIDE_ERR_INVALID: an
/// empty reason, a case with an error (nothing is kept of what was not measured).
tide_status tide_gate_baseline_update(tide_gate_baseline *b, const tide_gate_cases *cases,
                                      const tide_gate_update_info *info, bool *changed, tide_error *err) TIDE_NODISCARD;
/// As text of the file.
tide_status tide_gate_baseline_print(const tide_gate_baseline *b, tide_text *out, tide_error *err) TIDE_NODISCARD;

/// Whether this is a CI machine, where a baseline must not be updated: CI is set and neither empty, "0" nor "false", or
/// one of GITHUB_ACTIONS, GITLAB_CI, BUILDKITE, JENKINS_URL, TF_BUILD, TEAMCITY_VERSION is. @return its name, or NULL
const char *tide_gate_ci_name(void);

#ifdef __cplusplus
}
#endif
#endif
