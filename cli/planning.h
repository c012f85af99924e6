// SPDX-License-Identifier: MIT
//
// planning: from FILE to plans, as plan, run, compare, tui, report and check need it.
#ifndef TIDE_CLI_PLANNING_H
#define TIDE_CLI_PLANNING_H

#include "cli/cli.h"
#include "cli/input.h"

/// The options that several commands share; zero-initialise.
typedef struct cli_planning {
    const char *strategy; ///< NULL: the default
    bool all;             ///< every strategy
    bool no_fuse;
    uint64_t align_bytes; ///< 0: the default
    uint64_t seed;
    uint64_t time_limit_ns;
    cli_shapes shapes;
    const char *input_dir;           ///< shapes of open extents come from here; NULL: only --shape
    tide_registry *weights_registry; ///< where a program that will run puts its weights; NULL: it will not run
} cli_planning;

/// What planning gave; owned.
typedef struct cli_plans {
    tide_program *program; ///< NULL when FILE was no graph
    tide_lifetimes lifetimes;
    tide_memory_plan **plans; ///< [n]
    size_t n;
} cli_plans;

/// Long options of planning, for the tables of the commands; values from 1000 on.
enum {
    CLI_OPT_STRATEGY = 1000,
    CLI_OPT_ALL,
    CLI_OPT_NO_FUSE,
    CLI_OPT_ALIGN,
    CLI_OPT_SEED,
    CLI_OPT_TIME_LIMIT,
    CLI_OPT_SHAPE,
    CLI_OPT_INPUT_DIR,
    CLI_OPT_JSON,
    CLI_OPT_FIRST_OWN = 2000,
};
#define CLI_PLANNING_OPTIONS                                                                                           \
    {"strategy", required_argument, NULL, CLI_OPT_STRATEGY}, {"no-fuse", no_argument, NULL, CLI_OPT_NO_FUSE},          \
        {"align", required_argument, NULL, CLI_OPT_ALIGN}, {"seed", required_argument, NULL, CLI_OPT_SEED},            \
        {"time-limit", required_argument, NULL, CLI_OPT_TIME_LIMIT},                                                   \
        {"shape", required_argument, NULL, CLI_OPT_SHAPE}, {                                                           \
        "help", no_argument, NULL, 'h'                                                                                 \
    }
#define CLI_PLANNING_HELP                                                                                              \
    "  --strategy S        how to plan (default greedy_by_size; a wrong name lists them all)\n"                        \
    "  --shape NAME=DIMS   extents of a graph input, 1x3x224x224; may be repeated\n"                                   \
    "  --align N           alignment of every tensor, a power of two (default 256)\n"                                  \
    "  --no-fuse           leave operators unfused\n"                                                                  \
    "  --seed N            for strategies and inputs that draw (default 0)\n"                                          \
    "  --time-limit S      seconds a searching strategy may take\n"

/// Take option `c` if it is one of planning. @return 1 taken, 0 not one of ours, -1 bad value (message printed)
int cli_planning_option(const cli_command *cmd, cli_planning *p, int c);
void cli_planning_deinit(cli_planning *p);

enum { CLI_GO_ON = -1 };
/// Take the options of a command that plans one FILE: those of planning go into `p`, `take(ctx, c)` gets the command's
/// own and returns CLI_EXIT_OK or CLI_EXIT_USAGE. @return CLI_GO_ON with FILE at argv[optind], or the exit code (also
/// 0, after
/// --help)
int cli_parse_options(const cli_command *cmd, int argc, char **argv, const struct option *table, cli_planning *p,
                      int (*take)(void *ctx, int c), void *ctx);

/// Program, lifetimes and plan(s) of a model, graph text or lifetimes file; of a plan file, new plans of its lifetimes.
tide_status cli_plans_make(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) TIDE_NODISCARD;
void cli_plans_deinit(cli_plans *plans);
/// One plan of any FILE that has one: model, graph text, lifetimes CSV, plan JSON, or a trace's last run.
tide_status cli_plan_of_input(cli_input *in, const cli_planning *p, tide_memory_plan **out,
                              tide_error *err) TIDE_NODISCARD;
tide_status cli_plan_of_file(const char *path, const cli_planning *p, tide_memory_plan **out,
                             tide_error *err) TIDE_NODISCARD;

/// Bytes of everything a planned run holds: buffer, weights, inputs, outputs.
uint64_t cli_plan_total_bytes(const tide_memory_plan *plan);

#endif
