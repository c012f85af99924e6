// SPDX-License-Identifier: MIT
//
// The parts of `tidemark check`: what is measured, what it is held against, what is written.
#ifndef TIDE_CLI_CHECK_H
#define TIDE_CLI_CHECK_H

#include "cli/planning.h"
#include "gate/outputs.h"

typedef struct cli_check_options {
    cli_planning planning;           ///< of FILEs; the configuration says it of its models
    tide_gate_plan_settings running; ///< run, runs, contexts, allocator, input_dir, limit_bytes of FILEs
    const char *of_files;            ///< an option was given that is about FILEs: its name
    const char *of_run;              ///< one that is about running them
    const char *config;              ///< NULL: the current folder's
    const char *baseline;            ///< NULL: the configuration's
    const char *base_ref;            ///< --baseline-of
    const char *reason;              ///< NULL: not given
    const char *by;                  ///< NULL: taken from the environment
    const char *write_json, *markdown, *junit, *sarif, *report; ///< NULL: not wanted
    bool no_baseline, update, json, verbose, annotations, no_summary;
    uint64_t jobs;
    char *const *words; ///< [n_words] of the command line behind "check", in the order in which they were typed
    size_t n_words;
} cli_check_options;

// ---- check_inputs.c ----

/// Measures every target as one case, or as several if its file is a sweep. Targets that are run are measured one
/// after the other, the others by `jobs` threads. Fails only without memory and when two cases have one key.
/// `scratch_apart`: as in tide_gate_plan_settings.
tide_status cli_check_measure(const tide_gate_target *targets, size_t n, bool scratch_apart, uint64_t jobs,
                              tide_gate_cases *out, tide_error *err) TIDE_NODISCARD;

/// Measures the file at `path`, which stands in place of a baseline file, like the target and under its key. If the
/// target is no trace, a trace gives the plan of its last run. *scratch_apart: the file is a model, whose tensors
/// are planned without kernels' scratch; a plan contains scratch, and then the target must contain it too.
/// TIDE_ERR_INCOMPARABLE: the file cannot be measured.
tide_status cli_check_measure_other(const tide_gate_target *target, const char *path, bool *scratch_apart,
                                    tide_gate_cases *out, tide_error *err) TIDE_NODISCARD;
/// Removes from `cases` what the baseline cannot have because it is a plan: the signature and settings. Otherwise
/// they would count as differences. Models are then compared by name.
void cli_check_match_words(const tide_gate_cases *baseline, tide_gate_cases *cases);

// ---- check_baseline.c ----

/// What the cases are compared with.
typedef struct cli_check_baseline {
    bool is_wanted;
    bool is_measured;        ///< it is a plan, a model or a trace, no baseline file
    bool is_with_scratch;    ///< with is_measured: a plan or a trace, whose figures hold the scratch of kernels
    tide_gate_baseline base; ///< with is_wanted
    bool has_tree;           ///< with --baseline-of: the file of the tree differs from that of the other revision
    tide_gate_baseline tree;
} cli_check_baseline;
/// TIDE_ERR_INCOMPARABLE with the reason when there is nothing to compare with. `targets` [n] say how a baseline that
/// is a model, a plan or a trace is measured: with the settings of the one FILE.
tide_status cli_check_baseline_load(const cli_check_options *o, const tide_gate_config *config, cli_check_baseline *out,
                                    tide_error *err) TIDE_NODISCARD;
void cli_check_baseline_deinit(cli_check_baseline *b);
/// Writes the command line that makes or updates the baseline of `o` and `config`: the words of this command line
/// without those about outputs. *out stays empty if there is no such command. `b` may be loaded in part.
void cli_check_command(const cli_check_options *o, const tide_gate_config *config, const cli_check_baseline *b,
                       tide_text *out);
/// Put the cases into the baseline file, with the reason, and say what changed. @return the exit code
int cli_check_baseline_update(const cli_check_options *o, const tide_gate_config *config, const tide_gate_cases *cases);

// ---- check_accept.c ----

/// For a change that rewrites the baseline which judges it. A case that fails against the older baseline becomes a
/// warning if it passes against the newer one, and that one has a new entry with a reason for it. A case that
/// passes against the older baseline fails if it fails against the newer one, and warns if that one allows more.
/// The reasons of the cases say so, and notes on stderr.
tide_status cli_check_accept(const tide_gate_config *config, const cli_check_baseline *baseline,
                             const tide_gate_cases *cases, tide_gate_result *r, tide_error *err) TIDE_NODISCARD;

// ---- check_outputs.c ----

/// False after the message was printed: an output would replace what is read, or another output.
bool cli_check_outputs_differ(const cli_command *cmd, const cli_check_options *o, const tide_gate_config *config);
/// Writes all outputs, even if one of them fails, and prints the result. @return the exit code: the result's, or
/// that of the first output which failed (CLI_EXIT_OUTPUT, without memory CLI_EXIT_DOES_NOT_FIT): r->exit_code then
/// too
int cli_check_write(const cli_check_options *o, tide_gate_result *r);

#endif
