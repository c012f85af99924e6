// SPDX-License-Identifier: MIT
//
// From FILE to plans. See planning.h.
#include "cli/planning.h"

#include <string.h>

#include "cli/session.h"
#include "core/base/host_alloc.h"

int cli_planning_option(const cli_command *cmd, cli_planning *p, int c) {
    double seconds;
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy;
    switch (c) {
    case CLI_OPT_STRATEGY:
        if (tide_strategy_find(optarg, &strategy, &err) != TIDE_OK) {
            cli_print_error(&err);
            return -1;
        }
        p->strategy = optarg;
        return 1;
    case CLI_OPT_NO_FUSE:
        p->no_fuse = true;
        return 1;
    case CLI_OPT_ALIGN:
        if (!cli_parse_size(cmd, "--align", optarg, &p->align_bytes)) return -1;
        if (p->align_bytes != 0 && (p->align_bytes & (p->align_bytes - 1)) == 0) return 1;
        cli_usage(cmd, "--align: %s is not a power of two", optarg);
        return -1;
    case CLI_OPT_SEED:
        return cli_parse_count(cmd, "--seed", optarg, UINT64_MAX, &p->seed) ? 1 : -1;
    case CLI_OPT_TIME_LIMIT:
        if (!cli_parse_real(cmd, "--time-limit", optarg, &seconds)) return -1;
        if (seconds > 1e9) {
            cli_usage(cmd, "--time-limit: %s seconds are more than 30 years", optarg);
            return -1;
        }
        p->time_limit_ns = (uint64_t)(seconds * 1e9);
        return 1;
    case CLI_OPT_SHAPE:
        return cli_shapes_add(cmd, &p->shapes, optarg) ? 1 : -1;
    default:
        return 0;
    }
}

int cli_parse_options(const cli_command *cmd, int argc, char **argv, const struct option *table, cli_planning *p,
                      int (*take)(void *ctx, int c), void *ctx) {
    int c;
    while ((c = cli_next_option(cmd, argc, argv, table)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        const int taken = cli_planning_option(cmd, p, c);
        if (taken < 0 || (taken == 0 && take(ctx, c) != CLI_EXIT_OK)) return CLI_EXIT_USAGE;
    }
    if (optind + 1 != argc) return cli_usage(cmd, "one FILE is needed, %d given", argc - optind);
    return CLI_GO_ON;
}

void cli_planning_deinit(cli_planning *p) { cli_shapes_deinit(&p->shapes); }

/// --shape wins over what the input files say.
static tide_status merge_shapes(const cli_planning *p, tide_shape_binding *of_dir, size_t n_of_dir,
                                tide_shape_binding **out, size_t *n, tide_error *err) {
    tide_shape_binding *all = tide_host_calloc(p->shapes.n + n_of_dir + 1, sizeof *all);
    if (all == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu shapes", p->shapes.n + n_of_dir);
    if (p->shapes.n > 0) memcpy(all, p->shapes.items, p->shapes.n * sizeof *all);
    *n = p->shapes.n;
    for (size_t i = 0; i < n_of_dir; i++) {
        bool named = false;
        for (size_t k = 0; k < p->shapes.n && !named; k++) named = strcmp(all[k].name, of_dir[i].name) == 0;
        if (!named) all[(*n)++] = of_dir[i];
    }
    *out = all;
    return TIDE_OK;
}

static tide_status make_program(cli_input *in, const cli_planning *p, tide_program **out, tide_error *err) {
    tide_graph *graph = NULL;
    TIDE_TRY(cli_input_graph(in, &graph, err));
    tide_shape_binding *of_dir = NULL, *shapes = NULL;
    size_t n_of_dir = 0, n = 0;
    tide_status st = TIDE_OK;
    if (p->input_dir != NULL) st = cli_session_shapes_of_dir(p->input_dir, graph, &of_dir, &n_of_dir, err);
    if (st == TIDE_OK) st = merge_shapes(p, of_dir, n_of_dir, &shapes, &n, err);
    if (st == TIDE_OK) {
        const tide_program_options opt = {.no_fuse = p->no_fuse,
                                          .shapes = shapes,
                                          .n_shapes = n,
                                          .weights_registry = p->weights_registry,
                                          .weights_align_bytes = p->align_bytes};
        st = tide_program_build(graph, &opt, out, err); // takes the graph
        if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", in->path);
    } else {
        tide_graph_destroy(graph);
    }
    tide_host_free(of_dir);
    tide_host_free(shapes);
    return st;
}

static tide_status lifetimes_of_plan(const cli_input *in, tide_lifetimes *out, tide_error *err) {
    tide_memory_plan *plan = NULL;
    TIDE_TRY(tide_plan_from_json(in->data, in->len, in->path, NULL, &plan, err));
    const tide_status st = tide_lifetimes_copy(&plan->lifetimes, out, err);
    tide_memory_plan_destroy(plan);
    return st;
}

static tide_status make_lifetimes(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    if (in->kind == CLI_INPUT_PLAN) return lifetimes_of_plan(in, &out->lifetimes, err);
    if (in->kind == CLI_INPUT_LIFETIMES) {
        // A bare list says itself how things are aligned: bytes count as they stand unless --align asks for more.
        return tide_lifetimes_from_csv(in->data, in->len, in->path, p->align_bytes != 0 ? p->align_bytes : 1,
                                       &out->lifetimes, err);
    }
    TIDE_TRY(make_program(in, p, &out->program, err));
    return tide_liveness(out->program, p->align_bytes != 0 ? p->align_bytes : TIDE_DEFAULT_ALIGN, &out->lifetimes, err);
}

static tide_status make_plans(const cli_planning *p, cli_plans *out, tide_error *err) {
    const tide_strategy_options opt = {.seed = p->seed, .time_limit_ns = p->time_limit_ns};
    const tide_strategy *const *all = NULL;
    const size_t n_all = tide_strategies(&all);
    const size_t n = p->all ? n_all : 1;
    out->plans = tide_host_calloc(n, sizeof(tide_memory_plan *));
    if (out->plans == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu plans", n);
    for (size_t i = 0; i < n; i++) {
        const tide_strategy *strategy = p->all ? all[i] : tide_strategy_default();
        if (!p->all && p->strategy != NULL) TIDE_TRY(tide_strategy_find(p->strategy, &strategy, err));
        TIDE_TRY(tide_plan_make(&out->lifetimes, strategy, &opt, &out->plans[i], err));
        out->n = i + 1;
    }
    return TIDE_OK;
}

tide_status cli_plans_make(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    *out = (cli_plans){0};
    tide_status st = make_lifetimes(in, p, out, err);
    if (st == TIDE_OK) st = make_plans(p, out, err);
    if (st != TIDE_OK) cli_plans_deinit(out);
    return st;
}

void cli_plans_deinit(cli_plans *plans) {
    for (size_t i = 0; i < plans->n; i++) tide_memory_plan_destroy(plans->plans[i]);
    tide_host_free(plans->plans);
    tide_lifetimes_deinit(&plans->lifetimes);
    tide_program_unref(plans->program);
    *plans = (cli_plans){0};
}

static tide_status plan_of_trace(const char *path, tide_memory_plan **out, tide_error *err) {
    tide_trace *trace = NULL;
    TIDE_TRY(tide_trace_open(path, &trace, err));
    tide_trace_run *runs = NULL;
    size_t n = 0;
    tide_status st = tide_trace_runs(trace, &runs, &n, err);
    if (st == TIDE_OK) {
        st = n == 0 ? TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the trace '%s' holds no run", path)
                    : tide_trace_plan(trace, runs[n - 1].id, out, err);
    }
    tide_host_free(runs);
    tide_trace_close(trace);
    return st;
}

tide_status cli_plan_of_input(cli_input *in, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    if (in->kind == CLI_INPUT_TRACE) return plan_of_trace(in->path, out, err);
    if (in->kind == CLI_INPUT_PLAN) return tide_plan_from_json(in->data, in->len, in->path, p->strategy, out, err);
    cli_plans plans;
    TIDE_TRY(cli_plans_make(in, p, &plans, err));
    *out = plans.plans[0];
    plans.plans[0] = NULL; // moved out; destroy takes NULL
    cli_plans_deinit(&plans);
    return TIDE_OK;
}

tide_status cli_plan_of_file(const char *path, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    const tide_status st = cli_plan_of_input(&in, p, out, err);
    cli_input_close(&in);
    return st;
}

uint64_t cli_plan_total_bytes(const tide_memory_plan *plan) {
    uint64_t total = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) total += tide_memory_plan_predicted(plan, (tide_memory_kind)k);
    return total;
}
