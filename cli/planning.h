// SPDX-License-Identifier: MIT
//
// planning: from FILE to plans, as plan, run, compare, tui, report, check and export need it.
#ifndef TIDE_CLI_PLANNING_H
#define TIDE_CLI_PLANNING_H

#include "analysis/whatif.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "planner/plan_json.h"
#include "planner/process_need.h"

/// --profile NAME=DIMS:DIMS:DIMS, any number of times: sizes of open extents for which one plan is made.
typedef struct cli_profile_input {
    char *name;         ///< of a graph input; owned
    tide_shape *shapes; ///< [n_points], owned
} cli_profile_input;
typedef struct cli_profile {
    cli_profile_input *inputs; ///< [n]
    size_t n, cap;
    size_t n_points; ///< the same for all inputs; 0: no profile
} cli_profile;
/// Takes one value of the option; false after the message was printed.
bool cli_profile_add(const cli_command *cmd, cli_profile *profile, const char *text);
void cli_profile_deinit(cli_profile *profile);

/// --weights
typedef enum cli_weights {
    CLI_WEIGHTS_AUTO, ///< what can stay in the file stays there
    CLI_WEIGHTS_MAP,  ///< the same, and what cannot is said
    CLI_WEIGHTS_COPY, ///< all are copied
} cli_weights;

enum { CLI_MIN_FOLD_LIMIT = 64 << 10, CLI_BOUND_LIMIT = 256 << 20 };

/// --bound NAME=DIMS, any number of times: the most that a tensor can be that is sized while running.
typedef struct cli_bounds {
    tide_bound_given *items; ///< [n], names are owned
    const char **texts;      ///< [n] as they were given, borrowed
    size_t n, cap, cap_texts;
} cli_bounds;
/// Takes one "NAME=DIMS", which must live as long. TIDE_ERR_INVALID, TIDE_ERR_NOMEM; nothing has changed then.
tide_status cli_bound_add(cli_bounds *bounds, const char *text, tide_error *err) TIDE_NODISCARD;

/// The options that several commands share; zero-initialise.
typedef struct cli_planning {
    const char *strategy; ///< NULL: the default
    bool all;             ///< every strategy
    bool no_fuse;
    bool no_qdq;                ///< dequantise and quantise tensor by tensor, as the file says it
    uint64_t bound_limit_bytes; ///< such a tensor is planned at a bound of at most so many bytes; with has_bound_limit
    bool has_bound_limit;       ///< false: CLI_BOUND_LIMIT
    cli_bounds bounds;
    bool takes_blocks; ///< a trace without runs is a list of its blocks; else refused
    bool no_kernels;   ///< plan the graph's tensors alone, without any kernel and its scratch
    bool no_pass[TIDE_N_PASSES];
    double recompute_share; ///< extra work that is allowed: 0.1 is 10 %
    uint64_t align_bytes;   ///< 0: the default
    uint64_t seed;
    uint64_t time_limit_ns, node_limit;
    uint64_t begin_ns; ///< with a time limit: when it was given, at the start of the command
    uint32_t n_threads;
    uint64_t capacity_bytes; ///< 0: none; else what strategies aim at
    cli_shapes shapes;
    const char *const *extents; ///< [n_extents] "N=8", borrowed: an open extent by its name, in all inputs
    size_t n_extents;
    const char **extent_list; ///< [n_extents] what --extent has given, owned; `extents` is this then
    size_t cap_extents;
    cli_profile profile;
    uint64_t fold_max_bytes;         ///< constants that folding makes have at most so many bytes; 0: no limit
    uint64_t own_bytes;              ///< what planning a model may take itself; 0: 64 MiB and 20 times the file
    const char *input_dir;           ///< shapes of open extents come from here; NULL: only --shape
    const tide_program *weights_of;  ///< of the same model at another size: equal weights are its own; may be NULL
    tide_registry *weights_registry; ///< where a program that will run puts its weights; NULL: it will not run
    tide_allocator *mapped;          ///< with a weights_registry: of weights that stay in their file
    cli_weights weights;             ///< what is done with weights that lie in a file
} cli_planning;

/// The results of planning; owned.
typedef struct cli_plans {
    tide_program *program; ///< NULL when FILE was no graph, and with a profile
    tide_lifetimes lifetimes;
    tide_memory_plan **plans; ///< [n]
    size_t n;
    tide_plan_refusal *refused; ///< [n_refused] strategies that cannot serve the table, with --all
    size_t n_refused;
    bool has_passes;
    tide_pass_report passes; ///< with has_passes
    tide_point_need *points; ///< [lifetimes.n_points] with a profile; names are the table's
    size_t n_points;
} cli_plans;

/// The graph of FILE for its names and shapes: constants are blank (core/graph/sizes.h). Lets go of the file's bytes as
/// cli_input_graph does.
tide_status cli_graph_of_names(cli_input *in, const cli_planning *p, tide_graph **out, tide_error *err) TIDE_NODISCARD;

/// Long options of planning, for the tables of the commands; values from 1000 on.
enum {
    CLI_OPT_STRATEGY = 1000,
    CLI_OPT_ALL,
    CLI_OPT_NO_FUSE,
    CLI_OPT_NO_QDQ,
    CLI_OPT_ALIGN,
    CLI_OPT_SEED,
    CLI_OPT_TIME_LIMIT,
    CLI_OPT_NODE_LIMIT,
    CLI_OPT_THREADS,
    CLI_OPT_SHAPE,
    CLI_OPT_EXTENT,
    CLI_OPT_INTRA_THREADS, ///< of the process: kept in core/ops, not in cli_planning
    CLI_OPT_INPUT_DIR,
    CLI_OPT_JSON,
    CLI_OPT_NO_PASSES,
    CLI_OPT_OWN_MEMORY,
    CLI_OPT_FOLD_LIMIT,
    CLI_OPT_WEIGHTS,
    CLI_OPT_BOUND,
    CLI_OPT_BOUND_LIMIT,
    CLI_OPT_ALLOW_RECOMPUTE,
    CLI_OPT_NO_PASS, ///< and one for each pass behind it
    CLI_OPT_FIRST_OWN = 2000,
};
#define CLI_PLANNING_OPTIONS                                                                                           \
    {"strategy", required_argument, NULL, CLI_OPT_STRATEGY}, {"no-fuse", no_argument, NULL, CLI_OPT_NO_FUSE},          \
        {"no-qdq", no_argument, NULL, CLI_OPT_NO_QDQ}, {"align", required_argument, NULL, CLI_OPT_ALIGN},              \
        {"seed", required_argument, NULL, CLI_OPT_SEED}, {"time-limit", required_argument, NULL, CLI_OPT_TIME_LIMIT},  \
        {"node-limit", required_argument, NULL, CLI_OPT_NODE_LIMIT},                                                   \
        {"plan-threads", required_argument, NULL, CLI_OPT_THREADS},                                                    \
        {"intra-threads", required_argument, NULL, CLI_OPT_INTRA_THREADS},                                             \
        {"extent", required_argument, NULL, CLI_OPT_EXTENT}, {"shape", required_argument, NULL, CLI_OPT_SHAPE},        \
        {"no-passes", no_argument, NULL, CLI_OPT_NO_PASSES},                                                           \
        {"own-memory", required_argument, NULL, CLI_OPT_OWN_MEMORY},                                                   \
        {"weights", required_argument, NULL, CLI_OPT_WEIGHTS},                                                         \
        {"fold-limit", required_argument, NULL, CLI_OPT_FOLD_LIMIT},                                                   \
        {"bound", required_argument, NULL, CLI_OPT_BOUND},                                                             \
        {"bound-limit", required_argument, NULL, CLI_OPT_BOUND_LIMIT},                                                 \
        {"no-views", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_VIEWS},                                            \
        {"no-slices", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_SLICES},                                          \
        {"no-in-place", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_IN_PLACE},                                      \
        {"no-parts", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_PARTS},                                            \
        {"no-order", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_ORDER},                                            \
        {"allow-recompute", required_argument, NULL, CLI_OPT_ALLOW_RECOMPUTE}, {                                       \
        "help", no_argument, NULL, 'h'                                                                                 \
    }
#define CLI_PLANNING_HELP                                                                                              \
    "  --strategy S        how to plan (default search; a wrong name lists them all)\n"                                \
    "  --shape NAME=DIMS   extents of a graph input, 1x3x224x224; may be repeated\n"                                   \
    "  --extent NAME=N     an open extent by its name, in all inputs; may be repeated\n"                               \
    "  --bound NAME=DIMS   the most that a tensor can be that is sized while running, 300x6 or ?x6; may be "           \
    "repeated\n"                                                                                                       \
    "  --bound-limit SIZE  such a tensor is planned where its bound is at most SIZE (default 256MiB; 0: none is, but " \
    "for\n"                                                                                                            \
    "                      those of --bound)\n"                                                                        \
    "  --align N           alignment of every tensor, a power of two (default 256)\n"                                  \
    "  --no-fuse           leave operators unfused\n"                                                                  \
    "  --no-qdq            make float tensors of quantised ones and back, as the file says it\n"                       \
    "  --fold-limit SIZE   larger constants are not made while the model is loaded, but by their operators in each "   \
    "run\n"                                                                                                            \
    "  --own-memory SIZE   what planning a model may take itself (default: 64MiB and 20 times the file)\n"             \
    "  --weights W         weights in a file: auto (default) maps what lies well for its type, and copies the rest; "  \
    "map\n"                                                                                                            \
    "                      says what that is; copy copies all\n"                                                       \
    "  --no-passes         give every tensor its own life, in the order given\n"                                       \
    "  --no-views, --no-slices, --no-in-place, --no-parts, --no-order\n"                                               \
    "                      leave out one pass\n"                                                                       \
    "  --allow-recompute P compute tensors twice where that saves memory: up to P % more work\n"                       \
    "  --seed N            for strategies and inputs that draw (default 0)\n"                                          \
    "  --time-limit S      let the clock end strategy search, so that the command takes about S seconds with "         \
    "reading\n"                                                                                                        \
    "                      and output (default: a fixed number of steps, the same plan on every machine)\n"            \
    "  --node-limit N      nodes that strategy search may take instead\n"                                              \
    "  --plan-threads N    threads that it may use (default: one for each processor)\n"                                \
    "  --intra-threads N   threads of each kernel (default: $OMP_NUM_THREADS, else 1); scratch grows with them\n"

/// Take option `c` if it is one of planning. @return 1 taken, 0 not one of ours, -1 bad value (message printed)
int cli_planning_option(const cli_command *cmd, cli_planning *p, int c);
void cli_planning_deinit(cli_planning *p);

enum { CLI_GO_ON = -1 };
/// Take the options of a command that plans one FILE: those of planning go into `p`, `take(ctx, c)` gets the command's
/// own and returns CLI_EXIT_OK or CLI_EXIT_USAGE. @return CLI_GO_ON with FILE at argv[optind], or the exit code (also
/// 0, after
/// --help)
int cli_parse_options(const cli_command *cmd, int argc, char **argv, cli_planning *p, int (*take)(void *ctx, int c),
                      void *ctx);

/// The same with one or two FILEs (max_files 2), the first at argv[optind].
int cli_parse_files(const cli_command *cmd, int argc, char **argv, cli_planning *p, int max_files,
                    int (*take)(void *ctx, int c), void *ctx);

/// Options of strategies and passes as they follow from those of the command line.
tide_strategy_options cli_strategy_options(const cli_planning *p);
tide_pass_options cli_pass_options(const cli_planning *p);
/// The strategy that was asked for, or the default.
tide_status cli_strategy(const cli_planning *p, const tide_strategy **out, tide_error *err) TIDE_NODISCARD;

/// Program, lifetimes and plan(s) of a model, graph text or lifetimes file; of a plan file, new plans of its lifetimes.
tide_status cli_plans_make(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) TIDE_NODISCARD;
/// The program of a model in the order of a plan that was made before, with that plan (of a plan file or a trace's last
/// run). TIDE_ERR_INCOMPARABLE when the plan is of another program.
tide_status cli_plans_follow(cli_input *in, const char *plan_path, const cli_planning *p, cli_plans *out,
                             tide_error *err) TIDE_NODISCARD;
void cli_plans_deinit(cli_plans *plans);
/// For an answer that holds for all that a run takes: nothing in the table is left out. TIDE_ERR_UNKNOWN_SIZE naming
/// tensors that are sized while running and have no bound, with what would give them one.
tide_status cli_must_be_bounded(const tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;
/// "u, where and 3 more": the first of them, cut to fit.
const char *cli_unbounded_names(const tide_lifetimes *lt, char *buf, size_t buf_bytes);

/// The lifetimes alone, of any FILE that has some; `plan` (may be NULL) gets the plan they came with, if they did.
tide_status cli_lifetimes_of_input(cli_input *in, const cli_planning *p, tide_lifetimes *out,
                                   tide_error *err) TIDE_NODISCARD;
/// One plan of any FILE that has one: model, graph text, lifetimes, plan JSON, or a trace's last run.
tide_status cli_plan_of_input(cli_input *in, const cli_planning *p, tide_memory_plan **out,
                              tide_error *err) TIDE_NODISCARD;
tide_status cli_plan_of_file(const char *path, const cli_planning *p, tide_memory_plan **out,
                             tide_error *err) TIDE_NODISCARD;

// ---- open extents (planning_extents.c) ----

/// The graph's open extents, each once: "N", "batch"; one without a symbol is "INPUT.AXIS". *names [*n], owned.
tide_status cli_extents_of_graph(const tide_graph *g, char ***names, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Sets both to nothing.
void cli_extents_free(char ***names, size_t *n);
/// "N=8": how long the name is, and the number. TIDE_ERR_INVALID.
tide_status cli_extent_parse(const char *text, size_t *name_len, int64_t *value, tide_error *err) TIDE_NODISCARD;

// ---- for the parts of planning ----

/// Append shapes of inputs as p->extents make them to `bindings` ([*n], room for one of each input more).
/// TIDE_ERR_NOT_FOUND naming an extent that the graph does not leave open, with those that it does; TIDE_ERR_INVALID
/// for one that contradicts a shape that is there.
tide_status cli__extents_bind(const tide_graph *g, const cli_planning *p, tide_shape_binding *bindings, size_t *n,
                              tide_error *err) TIDE_NODISCARD;

/// What extent `d` of `v` is called: its symbol, or "INPUT.D" where the file leaves it nameless. @return `buf`, or it
const char *cli__extent_name(const tide_value *v, int32_t d, char *buf, size_t buf_bytes);

/// The program of a model with `shapes` ([n_shapes], borrowed for the call) on top of those that `p` has.
tide_status cli__program_make(cli_input *in, const cli_planning *p, const tide_shape_binding *shapes, size_t n_shapes,
                              tide_program **out, tide_error *err) TIDE_NODISCARD;

/// What to change so that what `plan` needs (tide_need_bytes) fits `budget_bytes`. `in` keeps its bytes
/// (cli_input_keep).
tide_status cli_advise(cli_input *in, const cli_planning *p, const tide_memory_plan *plan, uint64_t budget_bytes,
                       tide_advice *out, tide_error *err) TIDE_NODISCARD;

/// A model that was planned on the spot, for what-if. `in` keeps its bytes (cli_input_keep).
typedef struct cli_model {
    cli_input *in;
    const cli_planning *planning;
} cli_model;
/// What work a pass that is switched on may add: as much again as --allow-recompute 10.
#define CLI_RETABLE_RECOMPUTE 0.1
/// A tide_retable over a cli_model. Other threads that ask wait.
tide_status cli_retable(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out,
                        tide_error *err) TIDE_NODISCARD;
/// A tide_retable_batch, the same way: builds the program to see what its inputs are bound to.
tide_status cli_retable_batch(void *ctx, const tide_edit *edits, size_t n, uint64_t *batch,
                              tide_error *err) TIDE_NODISCARD;

/// A tide_retable_in_place, the same way: builds the program, and the table of it.
tide_status cli_retable_in_place(void *ctx, const char *tensor, tide_in_place *out, tide_error *err) TIDE_NODISCARD;
/// A tide_retable_extents, the same way.
tide_status cli_retable_extents(void *ctx, const tide_edit *edits, size_t n_edits, tide_open_extent *out, size_t max,
                                size_t *n, tide_error *err) TIDE_NODISCARD;

#endif
