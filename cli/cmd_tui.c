// SPDX-License-Identifier: MIT
//
// tidemark tui: lifetimes and live bytes in the terminal.
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/view.h"
#include "tui/tui.h"

enum { OPT_ONCE = CLI_OPT_FIRST_OWN, OPT_SIZE, OPT_ASCII, OPT_RUN, OPT_PERSISTENT };

static const char help[] =
    CLI_PLANNING_HELP "  --run N             run N of a trace (default: the last)\n"
                      "  --persistent        of a plan or model: show weights, inputs and outputs too\n"
                      "  --once              print one frame and end\n"
                      "  --size WxH          of that frame (default 120x40)\n"
                      "  --ascii             no characters beyond ASCII\n\n"
                      "Colours follow NO_COLOR; glyphs follow the locale. Keys: press ? inside.\n"
                      "Example: tidemark tui sample_graphs/lenet5.json\n";

static int run(int argc, char **argv);
const cli_command cli_command_tui = {"tui", "[OPTION…] FILE", "Look at tensor lifetimes in the terminal", help, run};

typedef struct options {
    cli_view view;
    tide_tui_options tui;
    bool once;
    int width, height;
} options;

static int show(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_timeline *tl = NULL;
    if (cli_timeline_of_file(path, &o->view, &tl, &err) != TIDE_OK) return cli_fail(&err);
    tide_status st;
    if (o->once) {
        tide_text frame = {0};
        st = tide_tui_once(tl, &o->tui, o->width, o->height, &frame, &err);
        if (st == TIDE_OK) fputs(tide_text_str(&frame), stdout);
        tide_text_deinit(&frame);
    } else {
        st = tide_tui_run(tl, &o->tui, &err);
    }
    tide_timeline_destroy(tl);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

static bool parse_frame_size(const char *text, int *width, int *height) {
    char *end = NULL;
    const long w = strtol(text, &end, 10);
    if (end == text || *end != 'x') return false;
    const char *second = end + 1;
    const long h = strtol(second, &end, 10);
    if (end == second || *end != '\0' || w < 1 || h < 1 || w > 2000 || h > 2000) return false;
    *width = (int)w;
    *height = (int)h;
    return true;
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_tui;
    switch (c) {
    case OPT_ONCE:
        o->once = true;
        return CLI_EXIT_OK;
    case OPT_SIZE:
        if (parse_frame_size(optarg, &o->width, &o->height)) return CLI_EXIT_OK;
        return cli_usage(cmd, "--size: '%s' is not of the form 120x40", optarg);
    case OPT_ASCII:
        o->tui.ascii = true;
        return CLI_EXIT_OK;
    case OPT_RUN:
        return cli_parse_count(cmd, "--run", optarg, INT64_MAX, &o->view.run_id) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_PERSISTENT:
        o->view.persistent = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    static const struct option table[] = {CLI_PLANNING_OPTIONS,
                                          {"run", required_argument, NULL, OPT_RUN},
                                          {"persistent", no_argument, NULL, OPT_PERSISTENT},
                                          {"once", no_argument, NULL, OPT_ONCE},
                                          {"size", required_argument, NULL, OPT_SIZE},
                                          {"ascii", no_argument, NULL, OPT_ASCII},
                                          {NULL, 0, NULL, 0}};
    const char *no_colour = getenv("NO_COLOR");
    options o = {.width = 120,
                 .height = 40,
                 .tui = {.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
                         .no_colour = no_colour != NULL && *no_colour != '\0'}};
    int code = cli_parse_options(&cli_command_tui, argc, argv, table, &o.view.planning, take_option, &o);
    if (code == CLI_GO_ON) code = show(argv[optind], &o);
    cli_planning_deinit(&o.view.planning);
    return code;
}
