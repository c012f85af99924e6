// SPDX-License-Identifier: MIT
//
// What is said of all commands together, and finding one. See cli.h; the table of them is command_table.c.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/nearest.h"

static const cli_command *const none[] = {NULL};
const cli_command *const *cli_commands = none;

const cli_exit_meaning cli_exit_meanings[] = {
    {CLI_EXIT_OK, "ok", "all is well"},
    {CLI_EXIT_CHECK_FAILED, "a check failed", "a check was made and failed: worse, leaked, differs, damaged"},
    {CLI_EXIT_USAGE, "usage", "the command line is wrong; also: -o would replace a file that is no trace"},
    {CLI_EXIT_BAD_INPUT, "bad input", "an input cannot be read, or is not what it should be"},
    {CLI_EXIT_NO_BASELINE, "baseline missing or not comparable", "a baseline is missing or not comparable"},
    {CLI_EXIT_INTERNAL, "internal", "a defect of the program"},
    {CLI_EXIT_DOES_NOT_FIT, "does not fit",
     "it does not fit: a limit, a budget, a capacity proved too small, the machine's memory"},
    {CLI_EXIT_NOT_DECIDED, "not decided",
     "a search ended neither with a plan that fits nor with a proof that none does"},
    {CLI_EXIT_OUTPUT, "output not written", "an output could not be written, or not all of it"},
    {0, NULL, NULL},
};

bool cli_command_is_internal(const cli_command *cmd) { return strncmp(cmd->what, "(internal)", 10) == 0; }

const cli_command *cli_command_find(const char *name) {
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) return cli_commands[i];
    }
    return NULL;
}

static const char *command_at(const void *ctx, size_t i) {
    const cli_command *const cmd = ((const cli_command *const *)ctx)[i];
    return cli_command_is_internal(cmd) ? NULL : cmd->name;
}

int cli_no_command(const char *word) {
    char clean[64];
    size_t n = 0;
    while (cli_commands[n] != NULL) n++;
    const char *meant = tide_nearest_word(word, command_at, cli_commands, n);
    fprintf(stderr, "error: there is no command '%s'\nhint: ", cli_clean(word, clean, sizeof clean));
    if (meant != NULL) fprintf(stderr, "did you mean '%s'? ", meant);
    fputs("the commands are", stderr);
    const char *before = "";
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (cli_command_is_internal(cli_commands[i])) continue;
        fprintf(stderr, "%s %s", before, cli_commands[i]->name);
        before = ",";
    }
    fputc('\n', stderr);
    return CLI_EXIT_USAGE;
}

void cli_print_commands(FILE *to) {
    fputs("usage: tidemark COMMAND [OPTION…] FILE…\n\n"
          "Plan a tensor program's memory, run it under instrumented allocators, and look where it went.\n"
          "FILE is an ONNX model, graph text, a list of lifetimes, a plan, a trace or another tool's recording: found "
          "by\n"
          "content, not by name.\n\n",
          to);
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (!cli_command_is_internal(cli_commands[i]))
            fprintf(to, "  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->what);
    }
    fputs("\n  tidemark COMMAND --help    options of one command; man tidemark-COMMAND\n"
          "  tidemark --version [--json] (or -V)\n\n"
          "exit codes:\n",
          to);
    for (const cli_exit_meaning *e = cli_exit_meanings; e->brief != NULL; e++)
        fprintf(to, "  %d %s%s", e->code, e->brief, e[1].brief == NULL ? "\n" : e->code % 4 == 3 ? ",\n" : ",");
}
