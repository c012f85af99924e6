// SPDX-License-Identifier: MIT
//
// tidemark sweep: memory over models, sizes, strategies and alignments, and the largest size that fits.
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/sweep.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "reports/sweep.h"

enum { OPT_EXTENT = CLI_OPT_FIRST_OWN, OPT_BATCH, OPT_FITS, OPT_RUN, OPT_JOBS };

static const char help[] =
    "  --extent NAME=V     sizes of an open extent, by its name in the model: 1,2,4 or 1..64 or 1..64:8 (step)\n"
    "                      or 1..1024*2 (factor); the first one is swept, further ones make a series each\n"
    "  --batch V           the same for the first open extent of every input\n"
    "  --shape NAME=DIMS   extents of a graph input that stay as they are; may be repeated\n"
    "  --strategy A,B      how to plan (default search; a wrong name lists them all)\n"
    "  --align A,B         alignments, powers of two (default 256)\n"
    "  --fits SIZE         the largest value of the swept extent with which the process fits (program, weights,\n"
    "                      inputs, outputs, buffer; of a list the last four); may be repeated.\n"
    "                      A..B without a step is where to look then, and NAME alone means 1 and up\n"
    "  --run[=answers]     run each point too; those that answer --fits and their neighbours within the budget: the\n"
    "                      one goes through, the next runs out of memory. =answers: these alone\n"
    "  -n RUNS             runs of each point (default 3)\n"
    "  --jobs N            threads that plan (default: one for each processor; 1 under mpirun)\n"
    "  --own-memory SIZE, --bound NAME=DIMS, --bound-limit SIZE, --no-fuse, --no-qdq, --no-passes, --no-views,\n"
    "  --no-slices, --no-in-place, --no-parts, --no-order, --allow-recompute P, --seed N, --intra-threads N,\n"
    "  --node-limit N (default 20000)   as of `tidemark plan`\n"
    "  -o FILE             .html, .svg, .csv, .json, .md or .txt, by the ending; may be repeated\n"
    "  --json              print the points as JSON\n\n"
    "Under mpirun each process takes a share, and the first one writes.\n"
    "Example: tidemark sweep --extent batch=1..4096 --fits 8GiB sample_graphs/dynamic_batch.json\n";

static const struct option option_table[] = {{"extent", required_argument, NULL, OPT_EXTENT},
                                             {"batch", required_argument, NULL, OPT_BATCH},
                                             {"shape", required_argument, NULL, CLI_OPT_SHAPE},
                                             {"strategy", required_argument, NULL, CLI_OPT_STRATEGY},
                                             {"align", required_argument, NULL, CLI_OPT_ALIGN},
                                             {"fits", required_argument, NULL, OPT_FITS},
                                             {"run", optional_argument, NULL, OPT_RUN},
                                             {"runs", required_argument, NULL, 'n'},
                                             {"jobs", required_argument, NULL, OPT_JOBS},
                                             {"no-fuse", no_argument, NULL, CLI_OPT_NO_FUSE},
                                             {"no-qdq", no_argument, NULL, CLI_OPT_NO_QDQ},
                                             {"no-passes", no_argument, NULL, CLI_OPT_NO_PASSES},
                                             {"own-memory", required_argument, NULL, CLI_OPT_OWN_MEMORY},
                                             {"bound", required_argument, NULL, CLI_OPT_BOUND},
                                             {"bound-limit", required_argument, NULL, CLI_OPT_BOUND_LIMIT},
                                             {"no-views", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_VIEWS},
                                             {"no-slices", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_SLICES},
                                             {"no-in-place", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_IN_PLACE},
                                             {"no-parts", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_PARTS},
                                             {"no-order", no_argument, NULL, CLI_OPT_NO_PASS + TIDE_PASS_ORDER},
                                             {"allow-recompute", required_argument, NULL, CLI_OPT_ALLOW_RECOMPUTE},
                                             {"seed", required_argument, NULL, CLI_OPT_SEED},
                                             {"intra-threads", required_argument, NULL, CLI_OPT_INTRA_THREADS},
                                             {"node-limit", required_argument, NULL, CLI_OPT_NODE_LIMIT},
                                             {"output", required_argument, NULL, 'o'},
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_sweep = {
    "sweep", "[OPTION…] FILE…", "Memory over sizes, strategies and alignments; the largest size that fits",
    help,    option_table,      CLI_OPERANDS_FILES,
    run};

// ---- outputs ----

/// Before anything is planned: every -o has a known ending and replaces no input. False after the message.
static bool outputs_are_good(const cli_command *cmd, const cli_sweep_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_report_format format;
    for (size_t i = 0; i < o->n_outs; i++) {
        if (tide_report_format_of_path(o->outs[i], &format, &err) != TIDE_OK) {
            cli_print_error(&err);
            return false;
        }
        for (size_t k = 0; k < o->n_files; k++) {
            if (!cli_same_file(o->files[k], o->outs[i])) continue;
            cli_usage(cmd, "-o: '%s' is an input; it would be replaced", o->outs[i]);
            return false;
        }
    }
    return true;
}

/// $COLUMNS, or what the terminal says, or 80.
static unsigned width_of_output(void) {
    const char *columns = getenv("COLUMNS");
    const long given = columns != NULL ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (given > 0 && given < 10000) return (unsigned)given;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

static tide_status write_file(const char *path, const tide_sweep *s, tide_error *err) {
    tide_report_format format;
    tide_text text = {0};
    TIDE_TRY(tide_report_format_of_path(path, &format, err));
    tide_status st = tide_report_sweep(s, format, NULL, &text, err);
    if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

/// Each file is written whole or not at all, also when a signal comes; then text or JSON on standard output.
static tide_status emit(const cli_sweep_options *o, const tide_sweep *s, tide_error *err) {
    for (size_t i = 0; i < o->n_outs; i++) TIDE_TRY(write_file(o->outs[i], s, err));
    const tide_sweep_paper paper = {.width = width_of_output(), .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0};
    tide_text text = {0};
    const tide_status st = tide_report_sweep(s, o->json ? TIDE_REPORT_JSON : TIDE_REPORT_TEXT, &paper, &text, err);
    if (st == TIDE_OK) fwrite(tide_text_str(&text), 1, text.len, stdout);
    tide_text_deinit(&text);
    return st;
}

// ---- options ----

static bool take_axis(cli_sweep_options *o, const char *option) {
    const cli_command *cmd = &cli_command_sweep;
    if (o->n_axes == CLI_SWEEP_MAX_AXES) {
        cli_usage(cmd, "%s: more than %d extents", option, CLI_SWEEP_MAX_AXES);
        return false;
    }
    cli_sweep_axis axis;
    if (!cli_sweep_axis_parse(cmd, option, optarg, &axis)) return false;
    for (size_t k = 0; k < o->n_axes; k++) {
        if (strcmp(o->axes[k].name, axis.name) != 0 || o->axes[k].is_batch != axis.is_batch) continue;
        cli_usage(cmd, "%s: '%s' is there twice", option, axis.name);
        cli_sweep_axis_deinit(&axis);
        return false;
    }
    o->axes[o->n_axes++] = axis;
    return true;
}

/// Word `i` of "a,b,c" in a buffer; false: there is none. Too long a word is cut, and is no name then.
static bool word_at(const char *list, size_t i, char *buf, size_t buf_bytes) {
    for (; i > 0; i--) {
        list = strchr(list, ',');
        if (list == NULL) return false;
        list++;
    }
    const size_t n = strcspn(list, ",");
    snprintf(buf, buf_bytes, "%.*s", (int)n, list);
    return true;
}

static bool take_strategies(cli_sweep_options *o) {
    char name[128];
    for (size_t i = 0; word_at(optarg, i, name, sizeof name); i++) {
        const tide_strategy *strategy;
        tide_error err = TIDE_ERROR_INIT;
        if (tide_strategy_find(name, &strategy, &err) != TIDE_OK) {
            cli_print_error(&err);
            return false;
        }
        bool known = false;
        for (size_t k = 0; k < o->n_strategies; k++) known |= strcmp(o->strategies[k], strategy->name) == 0;
        if (!known && o->n_strategies < CLI_SWEEP_MAX_LIST) o->strategies[o->n_strategies++] = strategy->name;
    }
    return true;
}

static bool take_aligns(cli_sweep_options *o) {
    char text[64];
    for (size_t i = 0; word_at(optarg, i, text, sizeof text); i++) {
        uint64_t align;
        if (!cli_parse_size(&cli_command_sweep, "--align", text, &align)) return false;
        if (align == 0 || (align & (align - 1)) != 0) {
            cli_usage(&cli_command_sweep, "--align: %s is not a power of two", text);
            return false;
        }
        bool known = false;
        for (size_t k = 0; k < o->n_aligns; k++) known |= o->aligns[k] == align;
        if (!known && o->n_aligns < CLI_SWEEP_MAX_LIST) o->aligns[o->n_aligns++] = align;
    }
    return true;
}

static bool take_budget(cli_sweep_options *o) {
    uint64_t budget;
    if (!cli_parse_size(&cli_command_sweep, "--fits", optarg, &budget)) return false;
    for (size_t k = 0; k < o->n_budgets; k++) {
        if (o->budgets[k] == budget) return true;
    }
    if (o->n_budgets == CLI_SWEEP_MAX_LIST || budget == 0) {
        cli_usage(&cli_command_sweep, budget == 0 ? "--fits: nothing fits 0 bytes" : "--fits: more than 64 budgets");
        return false;
    }
    o->budgets[o->n_budgets++] = budget;
    return true;
}

static bool take_count(const char *option, uint64_t max, uint64_t *out) {
    if (!cli_parse_count(&cli_command_sweep, option, optarg, max, out)) return false;
    if (*out > 0) return true;
    cli_usage(&cli_command_sweep, "%s: at least 1 is needed", option);
    return false;
}

static bool take_run(cli_sweep_options *o) {
    o->run = optarg == NULL ? CLI_SWEEP_RUN_ALL : CLI_SWEEP_RUN_ANSWERS;
    if (optarg == NULL || strcmp(optarg, "answers") == 0) return true;
    cli_usage(&cli_command_sweep, "--run: '%s' is not 'answers'", optarg);
    return false;
}

static bool take_out(cli_sweep_options *o) {
    if (o->n_outs < CLI_SWEEP_MAX_LIST) {
        o->outs[o->n_outs++] = optarg;
        return true;
    }
    cli_usage(&cli_command_sweep, "-o: more than %d files", CLI_SWEEP_MAX_LIST);
    return false;
}

/// Options whose values are lists here, before planning gets to see them.
static bool take_option(cli_sweep_options *o, int c) {
    switch (c) {
    case OPT_EXTENT:
        return take_axis(o, "--extent");
    case OPT_BATCH:
        return take_axis(o, "--batch");
    case CLI_OPT_STRATEGY:
        return take_strategies(o);
    case CLI_OPT_ALIGN:
        return take_aligns(o);
    case OPT_FITS:
        return take_budget(o);
    case OPT_RUN:
        return take_run(o);
    case OPT_JOBS:
        return take_count("--jobs", 1024, &o->jobs);
    case 'n':
        return take_count("-n", 1000000, &o->runs);
    case 'o':
        return take_out(o);
    case CLI_OPT_JSON:
        o->json = true;
        return true;
    default:
        return cli_planning_option(&cli_command_sweep, &o->planning, c) > 0;
    }
}

static int parse(int argc, char **argv, cli_sweep_options *o) {
    int c;
    while ((c = cli_next_option(&cli_command_sweep, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == '?' || !take_option(o, c)) return CLI_EXIT_USAGE;
    }
    o->files = argv + optind;
    o->n_files = (size_t)(argc - optind);
    return CLI_GO_ON;
}

/// What the options say together; sets what they leave out.
static int settle(cli_sweep_options *o, int n_ranks) {
    const cli_command *cmd = &cli_command_sweep;
    if (o->n_files == 0) return cli_usage(cmd, "at least one FILE is needed");
    if (o->n_budgets > 0 && o->n_axes == 0)
        return cli_usage(cmd, "--fits: which size may grow? --extent NAME=A..B or --batch A..B says it");
    for (size_t k = 0; k < o->n_axes; k++) {
        if (!o->axes[k].is_range_only || (k == 0 && o->n_budgets > 0)) continue;
        if (!cli_sweep_axis_list(cmd, &o->axes[k])) return CLI_EXIT_USAGE;
    }
    if (o->n_strategies == 0) o->strategies[o->n_strategies++] = tide_strategy_default()->name;
    if (o->n_aligns == 0) o->n_aligns = 1;                                   // 0: the default
    const long processors = n_ranks > 1 ? 1 : sysconf(_SC_NPROCESSORS_ONLN); // a launcher starts one for each of them
    if (o->jobs == 0) o->jobs = processors > 0 ? (uint64_t)processors : 1;
    // A plan depends on nothing but model, sizes, strategy and alignment then.
    if (o->planning.node_limit == 0) o->planning.node_limit = CLI_SWEEP_NODE_LIMIT;
    o->planning.n_threads = 1;
    return outputs_are_good(cmd, o) ? CLI_GO_ON : CLI_EXIT_USAGE;
}

// ---- work ----

/// Whether no model can be planned at all: then there is no sweep.
static bool has_nothing(const cli_sweep_job *job, const tide_sweep *s) {
    for (size_t i = 0; i < job->o->n_files; i++) {
        if (job->models[i].err.status == TIDE_OK) return false;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->points[i].error == NULL) return false; // another process could
    }
    return true;
}

static int fail_of_models(const cli_sweep_job *job) {
    int code = CLI_EXIT_OK;
    for (size_t i = 0; i < job->o->n_files; i++) {
        const int mine = cli_fail(&job->models[i].err);
        code = mine > code ? mine : code;
    }
    return code;
}

/// 1 if a point has no figures, or a run contradicts its plan.
static int verdict(const tide_sweep *s) {
    size_t failed = 0;
    bool wrong = false;
    for (size_t i = 0; i < s->n; i++) failed += s->points[i].error != NULL;
    for (size_t i = 0; i < s->n_answers; i++) {
        const tide_sweep_answer *a = &s->answers[i];
        wrong |= a->tried && ((!a->none_fits && !a->ran) || (!a->is_open && !a->next_ran && !a->next_is_untried));
    }
    if (failed > 0) fprintf(stderr, "error: %zu of %zu points have no figures\n", failed, s->n);
    return failed > 0 || wrong ? CLI_EXIT_CHECK_FAILED : CLI_EXIT_OK;
}

static tide_status sweep_own(cli_sweep_job *job, tide_sweep *own, tide_error *err) {
    TIDE_TRY(cli_sweep_plan(job, err));
    TIDE_TRY(cli_sweep_run(job, err));
    return cli_sweep_collect(job, own, err);
}

/// Rank 0 has everything; the others leave with the code that it will share.
static int finish(const cli_sweep_job *job, const tide_sweep *all, tide_error *err) {
    if (has_nothing(job, all)) return fail_of_models(job);
    if (emit(job->o, all, err) != TIDE_OK) return cli_fail(err);
    return verdict(all);
}

static int sweep(const cli_sweep_options *o, const cli_sweep_ranks *ranks) {
    cli_sweep_job job;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep own = {0}, all = {0};
    tide_status st = cli_sweep_job_make(o, (uint32_t)ranks->rank, (uint32_t)ranks->n, &job, &err);
    const bool made = st == TIDE_OK;
    if (made) st = sweep_own(&job, &own, &err);
    st = cli_sweep_ranks_gather(ranks, made ? &job : NULL, &own, st, &all, &err);
    int code = CLI_EXIT_OK;
    if (st != TIDE_OK) // too many points are an error of use
        code = cli_fail(&err) == CLI_EXIT_BAD_INPUT && !made ? CLI_EXIT_USAGE : cli_exit_code(st);
    else if (ranks->rank == 0)
        code = finish(&job, &all, &err);
    tide_sweep_deinit(&all);
    if (made) cli_sweep_job_deinit(&job);
    return code;
}

static int run_rank(int argc, char **argv, const cli_sweep_ranks *ranks) {
    cli_sweep_options o = {.runs = 3};
    o.shows_progress = ranks->rank == 0 && isatty(STDERR_FILENO) == 1;
    int code = parse(argc, argv, &o);
    if (code == CLI_GO_ON) code = settle(&o, ranks->n);
    if (code == CLI_GO_ON) code = sweep(&o, ranks);
    for (size_t k = 0; k < o.n_axes; k++) cli_sweep_axis_deinit(&o.axes[k]);
    cli_planning_deinit(&o.planning);
    return code;
}

static int run(int argc, char **argv) {
    cli_sweep_ranks ranks;
    tide_error err = TIDE_ERROR_INIT;
    // Without MPI each process prints why it ends, because none knows its rank. With MPI only rank 0 prints.
    if (cli_sweep_ranks_open(&ranks, &err) != TIDE_OK) return cli_fail(&err);
    if (ranks.rank > 0 && (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL))
        return cli_sweep_ranks_close(&ranks, CLI_EXIT_INTERNAL);
    return cli_sweep_ranks_close(&ranks, run_rank(argc, argv, &ranks));
}
