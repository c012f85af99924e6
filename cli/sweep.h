// SPDX-License-Identifier: MIT
//
// The parts of `tidemark sweep`: options, models, tasks and their ranks, runs, several processes.
//
//     options -> models (read once) -> tasks (dealt to ranks, done by threads) -> points and answers -> runs
//             -> sweep of each rank -> one sweep -> text, JSON, files
#ifndef TIDE_CLI_SWEEP_H
#define TIDE_CLI_SWEEP_H

#include "analysis/sweep.h"
#include "cli/planning.h"

enum { CLI_SWEEP_MAX_AXES = 8, CLI_SWEEP_MAX_LIST = 64, CLI_SWEEP_MAX_POINTS = 100000 };
/// Steps that strategy search takes at each point unless --node-limit says otherwise.
enum { CLI_SWEEP_NODE_LIMIT = 20000 };

/// One --extent or --batch: what is varied.
typedef struct cli_sweep_axis {
    char *name;       ///< owned; "batch" of --batch
    bool is_batch;    ///< the first open extent of all inputs
    uint64_t *values; ///< [n] ascending, each once; owned
    size_t n;
    uint64_t lo, hi;    ///< the range that a search looks in
    bool is_range_only; ///< A..B without a step: with --fits a range to search, not a list
} cli_sweep_axis;
/// "1,2,4", "1..64", "1..64:8", "1..1024*2", and lists of these, of --extent NAME=… or --batch …; an extent without
/// values is a range for a search. False after the message was printed.
bool cli_sweep_axis_parse(const cli_command *cmd, const char *option, const char *text, cli_sweep_axis *out);
void cli_sweep_axis_deinit(cli_sweep_axis *axis);
/// List the values of a range that is not searched. False after the message was printed.
bool cli_sweep_axis_list(const cli_command *cmd, cli_sweep_axis *axis);

typedef enum cli_sweep_runs { CLI_SWEEP_RUN_NONE, CLI_SWEEP_RUN_ALL, CLI_SWEEP_RUN_ANSWERS } cli_sweep_runs;

typedef struct cli_sweep_options {
    cli_planning planning; ///< but for strategy, align_bytes and extents, which tasks set
    const char *strategies[CLI_SWEEP_MAX_LIST];
    uint64_t aligns[CLI_SWEEP_MAX_LIST];
    uint64_t budgets[CLI_SWEEP_MAX_LIST];
    const char *outs[CLI_SWEEP_MAX_LIST];
    size_t n_strategies, n_aligns, n_budgets, n_outs;
    cli_sweep_axis axes[CLI_SWEEP_MAX_AXES]; ///< [n_axes], the first one is swept
    size_t n_axes;
    cli_sweep_runs run;
    uint64_t runs; ///< of each point
    uint64_t jobs;
    bool json;
    char **files; ///< [n_files], borrowed
    size_t n_files;
    bool shows_progress;
} cli_sweep_options;
/// The swept extent; NULL: there is none.
static inline const cli_sweep_axis *cli_sweep_swept(const cli_sweep_options *o) {
    return o->n_axes > 0 ? &o->axes[0] : NULL;
}

// ---- models ----

/// A FILE, read once.
typedef struct cli_sweep_model {
    const char *path; ///< borrowed
    cli_input in;     ///< keeps its bytes: each point makes a graph of them
    char **extents;   ///< [n_extents] open ones by name
    size_t n_extents;
    char **batch; ///< [n_batch] the first open extent of each input, each once
    size_t n_batch;
    tide_error err; ///< why there is nothing to plan; status TIDE_OK: there is
} cli_sweep_model;

// ---- tasks ----

/// The values of the axes other than the swept one.
typedef struct cli_sweep_place {
    uint64_t others[CLI_SWEEP_MAX_AXES]; ///< others[k] of axes[k]; others[0] unused
} cli_sweep_place;

/// An answer before the series have numbers.
typedef struct cli_sweep_found {
    tide_sweep_answer answer;
    const char *strategy; ///< borrowed
} cli_sweep_found;

/// Without --fits: one value with all strategies. With it: one strategy with all values and budgets, one after another.
typedef struct cli_sweep_task {
    size_t model, place, align; ///< indices
    size_t strategy;            ///< with --fits
    uint64_t value;             ///< without it
    uint32_t rank;              ///< who does it
    // Results:
    tide_sweep_point *points; ///< [n_points]
    size_t n_points, cap_points;
    cli_sweep_found *found; ///< [n_found]
    size_t n_found, cap_found;
    tide_status last; ///< of the point that was planned last
} cli_sweep_task;

typedef struct cli_sweep_job {
    const cli_sweep_options *o;
    cli_sweep_model *models; ///< [o->n_files]
    cli_sweep_place *places; ///< [n_places]
    size_t n_places;
    cli_sweep_task *tasks; ///< [n_tasks]
    size_t n_tasks;
    uint32_t rank, n_ranks;
} cli_sweep_job;
/// Makes models, places and tasks and deals the tasks to the ranks, the same in all processes. TIDE_ERR_INVALID for
/// too many points.
tide_status cli_sweep_job_make(const cli_sweep_options *o, uint32_t rank, uint32_t n_ranks, cli_sweep_job *out,
                               tide_error *err) TIDE_NODISCARD;
void cli_sweep_job_deinit(cli_sweep_job *job);
/// Plans the tasks of this rank in o->jobs threads. The result does not depend on their number.
tide_status cli_sweep_plan(cli_sweep_job *job, tide_error *err) TIDE_NODISCARD;
/// Run what o->run asks for, one at a time.
tide_status cli_sweep_run(cli_sweep_job *job, tide_error *err) TIDE_NODISCARD;
/// Points and answers of the tasks that are this rank's; the tasks are left without.
tide_status cli_sweep_collect(cli_sweep_job *job, tide_sweep *out, tide_error *err) TIDE_NODISCARD;
/// Makes the sweep of a rank that failed: each of its tasks is a point with an error.
tide_status cli_sweep_lost(const cli_sweep_job *job, uint32_t rank, const char *why, tide_sweep *out,
                           tide_error *err) TIDE_NODISCARD;

// ---- parts of tasks ----

/// The extents of a point as "N=8", for cli_planning.extents; *list [*n], freed with cli_extents_free.
tide_status cli__sweep_extents(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, char ***list,
                               size_t *n, tide_error *err) TIDE_NODISCARD;
/// The planning of a task at those extents.
cli_planning cli__sweep_planning(const cli_sweep_job *job, const cli_sweep_task *task, char **extents, size_t n,
                                 const char *strategy);
/// Names, sizes and strategy of a point of the task, nothing else.
tide_status cli__sweep_point(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, const char *strategy,
                             tide_sweep_point *out, tide_error *err) TIDE_NODISCARD;
void cli__sweep_point_free(tide_sweep_point *p);
/// The point has no figures, for that reason.
tide_status cli__sweep_set_error(tide_sweep_point *p, const tide_error *why, tide_error *err) TIDE_NODISCARD;

// ---- several processes ----

/// The processes of a launcher; zero: this one alone.
typedef struct cli_sweep_ranks {
    const struct tide_mpi_plugin *mpi; ///< NULL: alone
    int rank, n;
} cli_sweep_ranks;
/// Under a launcher of MPI with more than one process: load the plug-in and begin. TIDE_ERR_NOT_FOUND with what to
/// do when it is not there.
tide_status cli_sweep_ranks_open(cli_sweep_ranks *out, tide_error *err) TIDE_NODISCARD;
/// Put the sweeps of all ranks together on rank 0, `own` (taken) among them, or what kept this rank from one (`failed`
/// not OK; without a job then, NULL, it has no points at all). `*out` is empty on other ranks. All ranks call it.
tide_status cli_sweep_ranks_gather(const cli_sweep_ranks *r, const cli_sweep_job *job, tide_sweep *own,
                                   tide_status failed, tide_sweep *out, tide_error *err) TIDE_NODISCARD;
/// All ranks leave with the code of rank 0; the end of MPI.
int cli_sweep_ranks_close(cli_sweep_ranks *r, int code);

#endif
