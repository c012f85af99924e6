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
    const char *by;                  ///< NULL: the environment tells
    const char *write_json, *markdown, *junit, *sarif; ///< NULL: not wanted
    bool no_baseline, update, json, verbose, annotations, no_summary;
    uint64_t jobs;
    char *const *words; ///< [n_words] of the command line behind "check", in the order in which they were typed
    size_t n_words;
} cli_check_options;

// ---- check_inputs.c ----

/// Every target as a case, or several: what a FILE is is decided here, of those that are measured and of a baseline.
/// Targets that are run are measured one after the other, the rest by `jobs` threads. Only lack of memory and two cases
/// of one key are failures. `scratch_apart`: as of tide_gate_plan_settings.
tide_status cli_check_measure(const tide_gate_target *targets, size_t n, bool scratch_apart, uint64_t jobs,
                              tide_gate_cases *out, tide_error *err) TIDE_NODISCARD;

/// What lies at `path` in place of a baseline file, measured as the target is and under its key. Of a trace that is
/// held against something else the plan of its last run. *scratch_apart: it is a model, whose tensors are planned
/// apart; a plan has the scratch of kernels in it, and so must have what is held against it. TIDE_ERR_INCOMPARABLE: it
/// cannot be measured.
tide_status cli_check_measure_other(const tide_gate_target *target, const char *path, bool *scratch_apart,
                                    tide_gate_cases *out, tide_error *err) TIDE_NODISCARD;
/// What a plan does not tell (types of inputs, so a signature; settings) is taken out of the cases that are held
/// against it: that it does not is no difference. The model's name tells then whether it is the same one.
void cli_check_match_words(const tide_gate_cases *baseline, tide_gate_cases *cases);

// ---- check_baseline.c ----

/// What the cases are held against.
typedef struct cli_check_baseline {
    bool is_wanted;
    bool is_measured;        ///< it is no file of baselines but a plan, a model or a trace
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
/// The command that makes or updates the baseline which `o` and `config` name, as it can be typed: the words of this
/// command line without those that say how a result is written. *out is left empty where there is none. `b` as far as
/// it was loaded.
void cli_check_command(const cli_check_options *o, const tide_gate_config *config, const cli_check_baseline *b,
                       tide_text *out);
/// Put the cases into the baseline file, with the reason, and say what changed. @return the exit code
int cli_check_baseline_update(const cli_check_options *o, const tide_gate_config *config, const tide_gate_cases *cases);

// ---- check_accept.c ----

/// A baseline that was rewritten together with what it judges: cases that fail against the older one are warnings
/// where the newer one has an entry for them, with a reason, that the older one does not have, and they pass by it.
/// Those that are well by the older one fail where they fail by the newer, and warn where that one allows more. Says so
/// in their reasons and, as notes, on stderr.
tide_status cli_check_accept(const tide_gate_config *config, const cli_check_baseline *baseline,
                             const tide_gate_cases *cases, tide_gate_result *r, tide_error *err) TIDE_NODISCARD;

// ---- check_outputs.c ----

/// False after the message was printed: an output would replace what is read, or another output.
bool cli_check_outputs_differ(const cli_command *cmd, const cli_check_options *o, const tide_gate_config *config);
/// Write all that was asked for, whether or not one of them fails, and print. @return the exit code: the result's, or
/// that of the first output which failed (CLI_EXIT_OUTPUT, without memory CLI_EXIT_DOES_NOT_FIT): r->exit_code then too
int cli_check_write(const cli_check_options *o, tide_gate_result *r);

#endif
