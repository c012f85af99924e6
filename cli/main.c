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
#include "core/base/output.h"
#include "core/ops/ops.h"
#include "profiler/collector.h"
#include "profiler/query.h"
#include "tidemark/version.h"

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

/// The command's exit code, or that of a word that is no command.
static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        cli_print_commands(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0)
        return print_version(argc > 2 && strcmp(argv[2], "--json") == 0);
    const bool asks_help = strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0;
    const cli_command *cmd = asks_help ? &cli_command_help : cli_command_find(first);
    return cmd != NULL ? cmd->run(argc - 1, argv + 1) : cli_no_command(first);
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
    cli_commands = cli_command_table;
    tide_collector_hook(0, NULL); // cmd_collect.c is what run and compare start this program as
    const int code = cli_final_code(dispatch(argc, argv));
    cli_log_rest();
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    // A reader that closed the pipe has seen enough; any other failure to write is an error.
    if (errno != EPIPE) fputs("error: cannot write to standard output\n", stderr);
    return code == CLI_EXIT_OK ? CLI_EXIT_OUTPUT : code;
}
