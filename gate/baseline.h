// SPDX-License-Identifier: MIT
//
// baseline: the committed file with which cases are compared: readable, sorted, versioned, with a list of who
// changed it and why.
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
    bool is_partial; ///< made of a plan, a model or a trace: figures that it lacks are not missed
    int version;     ///< of the file; 0: not read from one
} tide_gate_baseline;

/// TIDE_ERR_INCOMPARABLE for a file that is not there, empty, no baseline, or of a version that is not known: nothing
/// was compared (exit 4), with the hint how one is made.
tide_status tide_gate_baseline_read(const char *path, tide_gate_baseline *out, tide_error *err) TIDE_NODISCARD;
void tide_gate_baseline_deinit(tide_gate_baseline *b);

/// What an update is made of. Clock and system are not read: the caller gives all values.
typedef struct tide_gate_update_info {
    const char *date, *by, *reason;
} tide_gate_update_info;
/// Replaces the cases of the baseline and adds an entry to its updates. Cases that only the baseline had are
/// removed. *changed: whether any case differs; the same cases again leave the file byte for byte as it is.
/// TIDE_ERR_INVALID: an empty reason, a case with an error (nothing is kept of what was not measured).
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
