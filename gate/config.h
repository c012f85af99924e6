// SPDX-License-Identifier: MIT
//
// config: what is measured and what it may cost, from tidemark.toml or tidemark.json (docs/gate.md describes the file).
#ifndef TIDE_GATE_CONFIG_H
#define TIDE_GATE_CONFIG_H

#include "gate/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "64KiB", "2 %", "64KiB and 2 %": with both, both must be exceeded. `given` and all else zero: any change exceeds
/// it.
typedef struct tide_gate_limit {
    bool given;
    bool has_amount, has_percent;
    uint64_t amount; ///< bytes or a count; of shares in millionths
    double percent;  ///< of the baseline: 2 is 2 %
} tide_gate_limit;

/// The limits for one metric of one case. Texts belong to the configuration.
typedef struct tide_gate_rule {
    tide_gate_limit warn, fail;           ///< growth (what is worse) over the baseline
    tide_gate_limit gain_warn, gain_fail; ///< improvement over the baseline: beyond this the baseline is out of date
    bool has_max, has_warn_max;           ///< budgets, without a baseline (of SHARE metrics with MORE: the least)
    tide_gate_value max, warn_max;
    bool off;        ///< the metric is ignored
    bool is_default; ///< no configuration sets the limits: they are the metric's defaults
    /// "tidemark.toml:12", "the default": where each limit comes from; "" none
    char warn_origin[160], fail_origin[160], gain_warn_origin[160], gain_fail_origin[160], max_origin[160],
        warn_max_origin[160];
} tide_gate_rule;

enum {
    TIDE_GATE_NODE_LIMIT = 20000, ///< of strategy search where none is given
    TIDE_GATE_MAX_CASES = 10000,  ///< of one configuration
};

/// How cases are planned and run; 0, NULL and false are the defaults of `plan` and `run`, but for node_limit.
typedef struct tide_gate_plan_settings {
    const char *strategy;
    uint64_t align_bytes, seed;
    uint64_t node_limit; ///< of strategy search; targets of a configuration always have one. A time limit would not
                         ///< give the same plan twice
    bool no_fuse, no_qdq;
    unsigned no_passes; ///< bit p: pass p is left out (planner/passes.h)
    double recompute_share;
    const char *const *shapes; ///< [n_shapes] "data=1x3x224x224" as --shape takes it
    size_t n_shapes;
    const char *const *extents; ///< [n_extents] "N=8": an open extent by its name, in all inputs
    size_t n_extents;
    const char *const *bounds; ///< [n_bounds] "u=200x?" as --bound takes it
    size_t n_bounds;
    uint64_t bound_limit_bytes; ///< with has_bound_limit, as --bound-limit takes it
    bool has_bound_limit;
    bool scratch_apart; ///< of models: the figures are those of the graph's tensors alone, and figures with the
                        ///< kernels' scratch are added beside them. Else there is one plan with everything
    bool run;           ///< true: the plan is run too, for metrics that need it
    uint64_t runs, contexts;
    const char *allocator;
    const char *input_dir;
    uint64_t limit_bytes;
} tide_gate_plan_settings;

/// A file to measure, planned one way.
typedef struct tide_gate_target {
    const char *path; ///< of the model, plan or trace, ready to open
    const char *key;  ///< path as the configuration says it, and " [label]" where one file gives several cases
    tide_gate_plan_settings settings;
    const char *why_empty; ///< "no file matches this pattern": the entry has no file any more and `path` is its
                           ///< pattern; the case cannot be measured. NULL: there is a file
    const char *origin;    ///< "tidemark.toml:20"
} tide_gate_target;

typedef struct tide_gate_config tide_gate_config;

/// TIDE_ERR_IO; TIDE_ERR_BAD_INPUT with file and line for what cannot be parsed, unknown keys (with the nearest
/// known one), wrong types, rules that contradict each other, patterns if no pattern matches any file. If others
/// do, an entry without files becomes a target that cannot be measured. TOML unless the path ends in .json; "-" is
/// standard input.
tide_status tide_gate_config_read(const char *path, tide_gate_config **out, tide_error *err) TIDE_NODISCARD;
/// A configuration for files of the command line, with the default rules.
tide_status tide_gate_config_of_files(const char *const *paths, size_t n, const tide_gate_plan_settings *settings,
                                      tide_gate_config **out, tide_error *err) TIDE_NODISCARD;
void tide_gate_config_destroy(tide_gate_config *c);

const tide_gate_target *tide_gate_config_targets(const tide_gate_config *c, size_t *n);
/// NULL: there is none of that key.
const tide_gate_target *tide_gate_config_find(const tide_gate_config *c, const char *key);
/// Ready to open; a file that names none has tidemark-baseline.json beside it; NULL: there is no file. `is_wanted`
/// false: the file says `baseline = false`, budgets alone.
const char *tide_gate_config_baseline(const tide_gate_config *c, bool *is_wanted);
/// "tidemark.toml", or "" without a file.
const char *tide_gate_config_path(const tide_gate_config *c);
/// The level of a case that only the baseline has, and of one that the baseline lacks.
tide_gate_level tide_gate_config_removed(const tide_gate_config *c);
tide_gate_level tide_gate_config_added(const tide_gate_config *c);
/// The rule for a metric of a case: default of the metric, [rules], the model's own, overrides in the order of the
/// file; a later rule for all kinds of a metric replaces an earlier one for one kind. A key that is no target (a
/// removed case) has no rules of a model. O(log of targets + layers that hold for the key).
void tide_gate_config_rule(const tide_gate_config *c, const char *key, tide_gate_metric m, int kind,
                           tide_gate_rule *out);

#ifdef __cplusplus
}
#endif
#endif
