// SPDX-License-Identifier: MIT
//
// tidemark: the program. Finds the command and hands over.
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/json.h"
#include "core/base/nearest.h"
#include "core/base/output.h"
#include "core/ops/ops.h"
#include "profiler/collector.h"
#include "profiler/query.h"
#include "tidemark/version.h"

static const cli_command *const commands[] = {
    &cli_command_plan,      &cli_command_run,    &cli_command_compare, &cli_command_record,     &cli_command_import,
    &cli_command_trace,     &cli_command_replay, &cli_command_tui,     &cli_command_report,     &cli_command_diff,
    &cli_command_check,     &cli_command_sweep,  &cli_command_export,  &cli_command_allocators, &cli_command_devices,
    &cli_command_operators, &cli_command_merge,  &cli_command_collect,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_commands(FILE *to) {
    fputs("usage: tidemark COMMAND [OPTION…] FILE…\n\n"
          "Plan a tensor program's memory, run it under instrumented allocators, and look where it went.\n"
          "FILE is an ONNX model, graph text, a list of lifetimes, a plan, a trace or another tool's recording: found "
          "by\n"
          "content, not by name.\n\n",
          to);
    for (size_t i = 0; i < N_COMMANDS; i++) fprintf(to, "  %-11s %s\n", commands[i]->name, commands[i]->what);
    fputs(
        "\n  tidemark COMMAND --help    options of one command\n"
        "  tidemark --version [--json] (or -V)\n\n"
        "exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input, 4 baseline missing or not comparable, 5 internal,\n"
        "6 does not fit (a limit, a budget, memory), 7 not decided in time, 8 an output could not be written\n",
        to);
}

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

static int print_version(bool as_json) {
    if (!as_json) {
        puts("tidemark " TIDE_VERSION);
        return CLI_EXIT_OK;
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("version", &text);
    tide_json_text(&j, "tidemark", TIDE_VERSION);
    tide_json_open(&j, "schemas", '{');
    static const struct {
        const char *name;
        int version;
    } known[] = {{"graph", 1},
                 {"plan", 1},
                 {"lifetimes", 1},
                 {"run", 1},
                 {"compare", 1},
                 {"import", 1},
                 {"merge", 1},
                 {"replay", 1},
                 {"diff", 1},
                 {"check", 3},
                 {"sweep", 1},
                 {"report", 2},
                 {"trace", TIDE_TRACE_VERSION}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) tide_json_i64(&j, known[i].name, known[i].version);
    tide_json_close(&j, '}');
    cli_document_end(&j);
    return cli_document_print(&text);
}

/// Called when memory runs out inside oneDNN and it cannot return an error: allocates nothing, takes no lock,
/// flushes no file.
static void die_out_of_memory(void) {
    static const char text[] = "error: out of memory: no memory in oneDNN, which cannot go on without\n";
    tide_output_remove_all();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(CLI_EXIT_DOES_NOT_FIT);
    _exit(CLI_EXIT_DOES_NOT_FIT);
}

static const char *command_at(const void *ctx, size_t i) { return ((const cli_command *const *)ctx)[i]->name; }

static int no_command(const char *word) {
    char clean[64];
    const char *meant = tide_nearest_word(word, command_at, commands, N_COMMANDS);
    fprintf(stderr, "error: there is no command '%s'\nhint: ", cli_clean(word, clean, sizeof clean));
    if (meant != NULL) fprintf(stderr, "did you mean '%s'? ", meant);
    fputs("the commands are", stderr);
    for (size_t i = 0; i < N_COMMANDS; i++) fprintf(stderr, "%s %s", i == 0 ? "" : ",", commands[i]->name);
    fputc('\n', stderr);
    return CLI_EXIT_USAGE;
}

static int help_of(const char *name) {
    const cli_command *cmd = name != NULL ? find_command(name) : NULL;
    if (name != NULL && cmd == NULL) return no_command(name);
    if (cmd != NULL)
        cli_print_help(cmd);
    else
        print_commands(stdout);
    return CLI_EXIT_OK;
}

/// The command's exit code, or that of a word that is no command.
static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        print_commands(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0)
        return print_version(argc > 2 && strcmp(argv[2], "--json") == 0);
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0)
        return help_of(argc > 2 ? argv[2] : NULL);
    const cli_command *cmd = find_command(first);
    return cmd != NULL ? cmd->run(argc - 1, argv + 1) : no_command(first);
}

// ---- signals ----

/// The signals that end a process by default. SIGXFSZ and SIGPIPE are ignored, so that a write fails instead.
static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGALRM, SIGVTALRM, SIGPROF,
                             SIGUSR1, SIGUSR2, SIGXCPU, SIGSTKFLT, SIGPOLL, SIGPWR,    SIGABRT,
                             SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,    SIGSYS,  SIGTRAP};
enum { N_ENDING = sizeof ending / sizeof ending[0] };
static struct sigaction before[N_ENDING];

/// A model that is mapped became shorter, or its disk fails, while it was read. Allocates nothing, flushes no file.
static void die_of_a_file(void) {
    static const char text[] = "error: a file that is in use was cut short, or cannot be read any more\n"
                               "hint: --weights copy reads the weights once, while the model is loaded\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(CLI_EXIT_BAD_INPUT);
    _exit(CLI_EXIT_BAD_INPUT);
}

/// Removes half-written files, then lets the signal end the process.
static void on_ending(int number, siginfo_t *info, void *context) {
    (void)context;
    tide_output_remove_all();
    if (number == SIGBUS && info->si_code == BUS_ADRERR) die_of_a_file();
    for (size_t i = 0; i < N_ENDING; i++) {
        if (ending[i] == number) sigaction(number, &before[i], NULL);
    }
    raise(number); // delivered once this handler returns
}

/// A signal that was ignored stays ignored (nohup, background jobs of a shell).
static void watch_endings(void) {
    struct sigaction act = {.sa_sigaction = on_ending, .sa_flags = SA_SIGINFO};
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < N_ENDING; i++) {
        if (sigaction(ending[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &act, NULL);
    }
}

int main(int argc, char **argv) {
    tide_json_use_host_alloc(); // jansson's memory is our bookkeeping too
    if (!tide_ops_on_last_words(die_out_of_memory)) {
        fputs("error: out of memory: no memory to begin\n", stderr);
        return CLI_EXIT_DOES_NOT_FIT;
    }
    setlocale(LC_CTYPE, "");  // wide characters in the TUI; numbers stay in the C locale
    signal(SIGPIPE, SIG_IGN); // writing fails instead, and the error is printed
    signal(SIGXFSZ, SIG_IGN); // a file-size limit too: temporary files are removed then
    watch_endings();
    cli_log_notes(false);
    tide_collector_hook(0, NULL); // cmd_collect.c is what run and compare start this program as
    const int code = cli_final_code(dispatch(argc, argv));
    cli_log_rest();
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    // A reader that closed the pipe has seen enough; any other failure to write is an error.
    if (errno != EPIPE) fputs("error: cannot write to standard output\n", stderr);
    return code == CLI_EXIT_OK ? CLI_EXIT_OUTPUT : code;
}
