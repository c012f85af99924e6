// SPDX-License-Identifier: MIT
//
// tidemark demo: the main job on a network that is built in, each step by the command that a user would type.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/folders.h"
#include "cli/tui_view.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"

extern const char tide_demo_graph[]; // sample_graphs/unet.json

enum { OPT_ONCE = 256, MAX_WORDS = 12 };

static const char help[] = "  --once              print one frame at the end, and do not open the terminal view\n\n"
                           "DIR is made, or is an empty folder; without it a fresh one below $TMPDIR, else /tmp. All "
                           "files lie there, and stay:\n"
                           "the network, its plan, the trace of both runs, and the report.\n"
                           "Example: tidemark demo\n"
                           "         tidemark demo --once here\n";
static const struct option option_table[] = {
    {"once", no_argument, NULL, OPT_ONCE}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_demo = {"demo", "[OPTION…] [DIR]", "Show the main job on a network that is built in",
                                      help,   option_table,      CLI_OPERANDS_FOLDER,
                                      run};

/// One command with what it is good for. `terminal`: only with one (1), only without (-1), or in any case (0).
typedef struct step {
    const char *why;
    const char *words[MAX_WORDS]; ///< up to NULL; the first one is a command
    int terminal;
} step;
static const step steps[] = {
    {"How good is the plan that is made for it, beside all others?", {"plan", "--all", "unet.json"}, 0},
    {"Will it fit into 32 MiB, with weights, inputs, outputs and the program itself?",
     {"plan", "unet.json", "--budget", "32MiB", "-o", "unet-plan.json"},
     0},
    {"Is that true? The network is run naive and by the plan, and every block is recorded.",
     {"compare", "unet.json", "-o", "unet.db"},
     0},
    {"Where did the memory go? One page for those who have no tidemark; it loads nothing.",
     {"report", "unet.db", "-o", "unet.html"},
     0},
    {"What would lower the peak? (q leaves, ? shows the keys)",
     {"tui", "unet.json", "--view", "peak", "--no-state"},
     1},
    {"What would lower the peak?",
     {"tui", "unet.json", "--view", "peak", "--no-state", "--once", "--size", "100x34"},
     -1},
};

/// The command as it is typed.
static void print_step(const step *s) {
    printf("\n# %s\n$ tidemark", s->why);
    for (size_t i = 0; s->words[i] != NULL; i++) printf(" %s", s->words[i]);
    putchar('\n');
    fflush(stdout);
}

static int do_step(const step *s) {
    char text[MAX_WORDS][32], *argv[MAX_WORDS + 1] = {0};
    int argc = 0;
    for (; s->words[argc] != NULL; argc++) {
        snprintf(text[argc], sizeof text[argc], "%s", s->words[argc]);
        argv[argc] = text[argc];
    }
    const cli_command *cmd = cli_command_find(s->words[0]);
    TIDE_ASSERT(cmd != NULL);
    print_step(s);
    optind = 0; // getopt begins anew
    const int code = cmd->run(argc, argv);
    fflush(stdout);
    return code;
}

static int do_all(bool has_terminal) {
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if ((steps[i].terminal == 1 && !has_terminal) || (steps[i].terminal == -1 && has_terminal)) continue;
        const int code = do_step(&steps[i]);
        if (code == CLI_EXIT_OK) continue;
        fprintf(stderr, "error: the demo ends here, with exit code %d of 'tidemark %s'\n", code, steps[i].words[0]);
        return code;
    }
    return CLI_EXIT_OK;
}

/// Nothing of the user's may be overwritten, so nothing may be there.
static tide_status require_empty(const char *path, tide_error *err) {
    DIR *dir = opendir(path);
    const int why = errno;
    if (dir == NULL) return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot look into '%s': %s", path, strerror(why));
    const char *other = NULL;
    char name[256] = "";
    for (const struct dirent *e; other == NULL && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s", e->d_name);
        other = name;
    }
    closedir(dir);
    if (other == NULL) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_EXISTS, "'%s' is not empty ('%s' is in it): a demo overwrites nothing", path, other);
    tide_error_hint(err, "name a folder that is not there, or none at all");
    return st;
}

static tide_status enter(const char *dir, char **folder, tide_error *err) {
    if (dir == NULL) {
        TIDE_TRY(cli_make_fresh_folder("tidemark-demo", folder, err));
    } else {
        TIDE_TRY(TIDE_COPY_TEXT(folder, dir, err, "for the name of a folder"));
        TIDE_TRY(cli_make_folders(dir, 0777, err));
        TIDE_TRY(require_empty(dir, err));
    }
    if (chdir(*folder) != 0) return tide_output_failed("enter", *folder, errno, err);
    return tide_write_file("unet.json", tide_demo_graph, strlen(tide_demo_graph), err);
}

static int show(const char *dir, bool once) {
    tide_error err = TIDE_ERROR_INIT, no_terminal = TIDE_ERROR_INIT;
    char *folder = NULL, shown[1024];
    int code = CLI_EXIT_OK;
    if (enter(dir, &folder, &err) != TIDE_OK) {
        code = cli_fail(&err);
    } else {
        const bool has_terminal = !once && cli_tui_need_terminal(&no_terminal) == TIDE_OK;
        tide_text word = {0};
        cli_shell_word(folder, &word);
        cli_clean(tide_text_str(&word), shown, sizeof shown);
        printf("# The main job on a small U-Net, which lies in a file now. All files of this demo are made in that "
               "folder.\n"
               "$ cd %s\n",
               shown);
        code = do_all(has_terminal);
        printf("\n# What is left, in %s:\n"
               "#   unet.json       the network           unet-plan.json  its plan, for tidemark run --plan\n"
               "#   unet.db         the trace of both     unet.html       the report: open it in a browser\n",
               shown);
        tide_text_deinit(&word);
    }
    tide_host_free(folder);
    return code;
}

static int run(int argc, char **argv) {
    bool once = false;
    for (int c; (c = cli_next_option(&cli_command_demo, argc, argv)) != -1;) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c != OPT_ONCE) return CLI_EXIT_USAGE;
        once = true;
    }
    if (argc - optind > 1) return cli_usage(&cli_command_demo, "one DIR at most, %d given", argc - optind);
    return show(optind < argc ? argv[optind] : NULL, once);
}
