// SPDX-License-Identifier: MIT
//
// The options of planning. See planning.h.
#include <stdlib.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"

// ---- one option ----

/// "25%" or "25": a share of 0.25.
static bool parse_percent(const cli_command *cmd, const char *option, const char *text, double *share) {
    char digits[32];
    const size_t len = strlen(text);
    const size_t n = len > 0 && text[len - 1] == '%' ? len - 1 : len;
    double percent;
    if (n >= sizeof digits) {
        cli_usage(cmd, "%s: '%s' is no percentage", option, text);
        return false;
    }
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (!cli_parse_real(cmd, option, digits, &percent)) return false;
    if (percent > 1e6) {
        cli_usage(cmd, "%s: %s is more than ten thousand times the work", option, text);
        return false;
    }
    *share = percent / 100;
    return true;
}

static int take_strategy(cli_planning *p) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy;
    if (tide_strategy_find(optarg, &strategy, &err) != TIDE_OK) {
        cli_print_error(&err);
        return -1;
    }
    p->strategy = optarg;
    return 1;
}

/// The words live as long as the command line.
static int take_extent(const cli_command *cmd, cli_planning *p) {
    tide_error err = TIDE_ERROR_INIT;
    size_t len;
    int64_t value;
    if (cli_extent_parse(optarg, &len, &value, &err) != TIDE_OK) {
        cli_usage(cmd, "--extent: %s", err.msg);
        return -1;
    }
    if (tide_host_grow(&p->extent_list, &p->cap_extents, p->n_extents + 1, sizeof *p->extent_list) != TIDE_OK)
        cli_option_no_memory("--extent");
    p->extent_list[p->n_extents++] = optarg;
    p->extents = p->extent_list;
    return 1;
}

tide_status cli_bound_add(cli_bounds *bounds, const char *text, tide_error *err) {
    const char *eq = strrchr(text, '=');
    tide_shape shape;
    char clean[96];
    if (eq == NULL || eq == text)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not of the form NAME=300x6",
                         cli_clean(text, clean, sizeof clean));
    TIDE_TRY(tide_shape_parse_open(eq + 1, &shape, err));
    for (size_t i = 0; i < bounds->n; i++) {
        const char *name = bounds->items[i].name;
        if (strlen(name) == (size_t)(eq - text) && strncmp(name, text, (size_t)(eq - text)) == 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is there twice", cli_clean(name, clean, sizeof clean));
    }
    char *name = tide_host_strndup(text, (size_t)(eq - text));
    if (name == NULL || tide_host_grow(&bounds->items, &bounds->cap, bounds->n + 1, sizeof *bounds->items) != TIDE_OK ||
        tide_host_grow(&bounds->texts, &bounds->cap_texts, bounds->n + 1, sizeof *bounds->texts) != TIDE_OK) {
        tide_host_free(name);
        return TIDE_NO_MEMORY(err, "for bound '%s'", text);
    }
    bounds->texts[bounds->n] = text;
    bounds->items[bounds->n++] = (tide_bound_given){.name = name, .most = shape};
    return TIDE_OK;
}

static int take_bound(const cli_command *cmd, cli_planning *p) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = cli_bound_add(&p->bounds, optarg, &err);
    if (st == TIDE_OK) return 1;
    if (st == TIDE_ERR_NOMEM) cli_option_no_memory("--bound");
    cli_usage(cmd, "--bound: %s", err.msg);
    return -1;
}

static int take_kernel_threads(const cli_command *cmd) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n;
    if (!cli_parse_count(cmd, "--intra-threads", optarg, TIDE_OPS_MAX_THREADS, &n)) return -1;
    if (tide_ops_set_threads((uint32_t)n, &err) == TIDE_OK) return 1;
    cli_usage(cmd, "--intra-threads: %s", err.msg);
    return -1;
}

static int take_limit(const cli_command *cmd, cli_planning *p, int c) {
    double seconds;
    uint64_t n;
    if (c == CLI_OPT_NODE_LIMIT)
        return cli_parse_count(cmd, "--node-limit", optarg, UINT64_MAX, &p->node_limit) ? 1 : -1;
    if (c == CLI_OPT_THREADS) {
        if (!cli_parse_count(cmd, "--plan-threads", optarg, 1024, &n)) return -1;
        p->n_threads = (uint32_t)n;
        return 1;
    }
    if (!cli_parse_real(cmd, "--time-limit", optarg, &seconds)) return -1;
    if (seconds > 1e9) {
        cli_usage(cmd, "--time-limit: %s seconds are more than 30 years", optarg);
        return -1;
    }
    p->time_limit_ns = (uint64_t)(seconds * 1e9);
    p->begin_ns = tide_now_ns();
    if (p->time_limit_ns > 0) return 1;
    cli_usage(cmd, "--time-limit: %s seconds are no time at all", optarg);
    return -1;
}

static bool take_weights(const cli_command *cmd, cli_planning *p) {
    static const char *const names[] = {"auto", "map", "copy"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(optarg, names[i]) != 0) continue;
        p->weights = (cli_weights)i;
        return true;
    }
    char clean[64];
    cli_usage(cmd, "--weights: '%s' is none of auto, map and copy", cli_clean(optarg, clean, sizeof clean));
    return false;
}

int cli_planning_option(const cli_command *cmd, cli_planning *p, int c) {
    if (c >= CLI_OPT_NO_PASS && c < CLI_OPT_NO_PASS + TIDE_N_PASSES) {
        p->no_pass[c - CLI_OPT_NO_PASS] = true;
        return 1;
    }
    switch (c) {
    case CLI_OPT_STRATEGY:
        return take_strategy(p);
    case CLI_OPT_NO_FUSE:
        p->no_fuse = true;
        return 1;
    case CLI_OPT_NO_QDQ:
        p->no_qdq = true;
        return 1;
    case CLI_OPT_OWN_MEMORY:
        return cli_parse_size(cmd, "--own-memory", optarg, &p->own_bytes) ? 1 : -1;
    case CLI_OPT_FOLD_LIMIT:
        if (!cli_parse_size(cmd, "--fold-limit", optarg, &p->fold_max_bytes)) return -1;
        if (p->fold_max_bytes >= CLI_MIN_FOLD_LIMIT) return 1;
        cli_usage(cmd, "--fold-limit: %s is less than 64KiB: what shapes follow from is always folded", optarg);
        return -1;
    case CLI_OPT_BOUND:
        return take_bound(cmd, p);
    case CLI_OPT_BOUND_LIMIT:
        p->has_bound_limit = true;
        return cli_parse_size(cmd, "--bound-limit", optarg, &p->bound_limit_bytes) ? 1 : -1;
    case CLI_OPT_WEIGHTS:
        return take_weights(cmd, p) ? 1 : -1;
    case CLI_OPT_NO_PASSES:
        for (int k = 0; k < TIDE_N_PASSES; k++) p->no_pass[k] = k != TIDE_PASS_RECOMPUTE || p->no_pass[k];
        return 1;
    case CLI_OPT_ALLOW_RECOMPUTE:
        return parse_percent(cmd, "--allow-recompute", optarg, &p->recompute_share) ? 1 : -1;
    case CLI_OPT_ALIGN:
        if (!cli_parse_size(cmd, "--align", optarg, &p->align_bytes)) return -1;
        if (p->align_bytes != 0 && (p->align_bytes & (p->align_bytes - 1)) == 0) return 1;
        cli_usage(cmd, "--align: %s is not a power of two", optarg);
        return -1;
    case CLI_OPT_SEED:
        return cli_parse_count(cmd, "--seed", optarg, UINT64_MAX, &p->seed) ? 1 : -1;
    case CLI_OPT_TIME_LIMIT:
    case CLI_OPT_NODE_LIMIT:
    case CLI_OPT_THREADS:
        return take_limit(cmd, p, c);
    case CLI_OPT_INTRA_THREADS:
        return take_kernel_threads(cmd);
    case CLI_OPT_EXTENT:
        return take_extent(cmd, p);
    case CLI_OPT_SHAPE:
        return cli_shapes_add(cmd, &p->shapes, optarg) ? 1 : -1;
    default:
        return 0;
    }
}

int cli_parse_files(const cli_command *cmd, int argc, char **argv, cli_planning *p, int max_files,
                    int (*take)(void *ctx, int c), void *ctx) {
    int c;
    while ((c = cli_next_option(cmd, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        const int taken = cli_planning_option(cmd, p, c);
        if (taken < 0 || (taken == 0 && take(ctx, c) != CLI_EXIT_OK)) return CLI_EXIT_USAGE;
    }
    const int given = argc - optind;
    if (given >= 1 && given <= max_files) return CLI_GO_ON;
    return cli_usage(cmd, max_files == 1 ? "one FILE is needed, %d given" : "one or two FILEs are needed, %d given",
                     given);
}

int cli_parse_options(const cli_command *cmd, int argc, char **argv, cli_planning *p, int (*take)(void *ctx, int c),
                      void *ctx) {
    return cli_parse_files(cmd, argc, argv, p, 1, take, ctx);
}

void cli_planning_deinit(cli_planning *p) {
    cli_shapes_deinit(&p->shapes);
    cli_profile_deinit(&p->profile);
    for (size_t i = 0; i < p->bounds.n; i++) tide_host_free((char *)(uintptr_t)p->bounds.items[i].name);
    tide_host_free(p->bounds.items);
    tide_host_free(p->bounds.texts);
    tide_host_free(p->extent_list);
}

/// What is left for planning when all is read: writing is taken to need as long as reading has.
static uint64_t time_left_ns(const cli_planning *p) {
    if (p->time_limit_ns == 0) return 0;
    const uint64_t spent_ns = 2 * (tide_now_ns() - p->begin_ns);
    return spent_ns < p->time_limit_ns ? p->time_limit_ns - spent_ns : 1;
}

tide_strategy_options cli_strategy_options(const cli_planning *p) {
    return (tide_strategy_options){.seed = p->seed,
                                   .time_limit_ns = time_left_ns(p),
                                   .node_limit = p->node_limit,
                                   .capacity_bytes = p->capacity_bytes,
                                   .n_threads = p->n_threads};
}

tide_pass_options cli_pass_options(const cli_planning *p) {
    tide_pass_options opt = {.recompute_share = p->recompute_share,
                             .align_bytes = p->align_bytes != 0 ? p->align_bytes : TIDE_DEFAULT_ALIGN};
    memcpy(opt.off, p->no_pass, sizeof opt.off);
    return opt;
}

tide_status cli_strategy(const cli_planning *p, const tide_strategy **out, tide_error *err) {
    *out = tide_strategy_default();
    return p->strategy != NULL ? tide_strategy_find(p->strategy, out, err) : TIDE_OK;
}

// ---- profiles ----

static size_t count_points(const char *text, char separator) {
    size_t n = 1;
    for (; *text != '\0'; text++) n += *text == separator;
    return n;
}

static bool parse_points(const cli_command *cmd, const char *text, char separator, tide_shape *out, size_t n) {
    for (size_t k = 0; k < n; k++) {
        const char *end = strchr(text, separator);
        char *one = end != NULL ? tide_host_strndup(text, (size_t)(end - text)) : tide_host_strdup(text);
        tide_error err = TIDE_ERROR_INIT;
        if (one == NULL) TIDE_FAIL(&err, TIDE_ERR_NOMEM, "out of memory");
        // A scalar has no extents to choose.
        if (one != NULL && one[0] == '\0') TIDE_FAIL(&err, TIDE_ERR_INVALID, "a size is empty");
        const bool good = one != NULL && one[0] != '\0' && tide_shape_parse(one, &out[k], &err) == TIDE_OK;
        tide_host_free(one);
        if (!good) {
            cli_usage(cmd, "--profile: %s", err.msg);
            return false;
        }
        if (end != NULL) text = end + 1;
    }
    return true;
}

static bool add_input(const cli_command *cmd, cli_profile *profile, const char *text, const char *eq) {
    const char separator = strchr(eq, ':') != NULL ? ':' : ',';
    const size_t n = count_points(eq + 1, separator);
    if (n < 2 || n > 64 || (separator == ':' && n > 3)) {
        cli_usage(cmd, "--profile: '%s' is not of the form NAME=MIN:OPT:MAX, nor a list NAME=DIMS,DIMS,…", text);
        return false;
    }
    if (profile->n > 0 && n != profile->n_points) {
        cli_usage(cmd, "--profile: '%s' has %zu sizes, the one before it %zu", text, n, profile->n_points);
        return false;
    }
    cli_profile_input input = {.name = tide_host_strndup(text, (size_t)(eq - text)),
                               .shapes = tide_host_calloc(n, sizeof *input.shapes)};
    bool good = input.name != NULL && input.shapes != NULL &&
                tide_host_grow(&profile->inputs, &profile->cap, profile->n + 1, sizeof input) == TIDE_OK;
    if (!good)
        cli_option_no_memory("--profile");
    else
        good = parse_points(cmd, eq + 1, separator, input.shapes, n);
    if (!good) {
        tide_host_free(input.name);
        tide_host_free(input.shapes);
        return false;
    }
    profile->inputs[profile->n++] = input;
    profile->n_points = n;
    return true;
}

bool cli_profile_add(const cli_command *cmd, cli_profile *profile, const char *text) {
    const char *eq = strrchr(text, '=');
    if (eq == NULL || eq == text) {
        cli_usage(cmd, "--profile: '%s' is not of the form NAME=1x3x32x32:1x3x64x64:1x3x224x224", text);
        return false;
    }
    for (size_t i = 0; i < profile->n; i++) {
        if (strlen(profile->inputs[i].name) != (size_t)(eq - text) ||
            strncmp(profile->inputs[i].name, text, (size_t)(eq - text)) != 0)
            continue;
        cli_usage(cmd, "--profile: '%s' is there twice", profile->inputs[i].name);
        return false;
    }
    return add_input(cmd, profile, text, eq);
}

void cli_profile_deinit(cli_profile *profile) {
    for (size_t i = 0; i < profile->n; i++) {
        tide_host_free(profile->inputs[i].name);
        tide_host_free(profile->inputs[i].shapes);
    }
    tide_host_free(profile->inputs);
    *profile = (cli_profile){0};
}
