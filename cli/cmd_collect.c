// SPDX-License-Identifier: MIT
//
// tidemark collect: the process that writes a trace beside the program that is recorded. Started by the recorder.
#include <fcntl.h>

#include "cli/recording.h"

enum {
    OPT_READY_FD = CLI_OPT_MAX_TRACE + 1,
    OPT_PARENT,
    OPT_MAX_BYTES,
    OPT_BATCH_EVENTS,
    OPT_HOLD_BACK,
    OPT_ATTACHED_LATE,
    OPT_QUIET
};

static const char help[] = "Started by run, compare and linked programs: there is no need to call it.\n\n"
                           "  --ready-fd N        write one byte there once events are taken, or why they are not\n"
                           "  --parent PID        of the process that reads it\n"
                           "  --form F            auto (default), rows or chunks\n"
                           "  --max-bytes N       of the file (default: no limit)\n"
                           "  --batch-events N    at most in one transaction\n"
                           "  --hold-back-ms N    see hold_back_ms in tidemark/record.h\n"
                           "  --attached-late     blocks were out before recording began\n"
                           "  --quiet             print nothing when recording ends early\n";

static const struct option option_table[] = {{"ready-fd", required_argument, NULL, OPT_READY_FD},
                                             {"parent", required_argument, NULL, OPT_PARENT},
                                             {"form", required_argument, NULL, CLI_OPT_FORM},
                                             {"max-bytes", required_argument, NULL, OPT_MAX_BYTES},
                                             {"batch-events", required_argument, NULL, OPT_BATCH_EVENTS},
                                             {"hold-back-ms", required_argument, NULL, OPT_HOLD_BACK},
                                             {"attached-late", no_argument, NULL, OPT_ATTACHED_LATE},
                                             {"quiet", no_argument, NULL, OPT_QUIET},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_collect = {
    "collect", "[OPTION…] TRACE", "(internal) Write a trace for a recorded program",
    help,      option_table,      CLI_OPERANDS_FILES,
    run};

/// One option. False after the message was printed.
static bool take(tide_collector_options *o, cli_recording_options *form, int c) {
    const cli_command *cmd = &cli_command_collect;
    uint64_t n;
    switch (c) {
    case OPT_READY_FD:
        if (!cli_parse_count(cmd, "--ready-fd", optarg, 1 << 20, &n)) return false;
        o->ready_fd = (int)n;
        return true;
    case OPT_PARENT:
        if (!cli_parse_count(cmd, "--parent", optarg, INT32_MAX, &n)) return false;
        o->parent = (int)n;
        o->create = n != 0; // a recorder starts us before there is a trace
        return true;
    case OPT_MAX_BYTES:
        return cli_parse_count(cmd, "--max-bytes", optarg, INT64_MAX, &o->max_bytes);
    case OPT_BATCH_EVENTS:
        if (!cli_parse_count(cmd, "--batch-events", optarg, 1 << 26, &n)) return false;
        o->batch_events = (size_t)n;
        return true;
    case OPT_HOLD_BACK:
        if (!cli_parse_count(cmd, "--hold-back-ms", optarg, UINT32_MAX, &n)) return false;
        o->hold_back_ms = (unsigned)n;
        return true;
    case OPT_ATTACHED_LATE:
        o->attached_late = true;
        return true;
    case OPT_QUIET:
        o->quiet = true;
        return true;
    default:
        return cli_recording_option(cmd, form, c) > 0;
    }
}

static int run(int argc, char **argv) {
    tide_collector_options o = {.ready_fd = -1};
    cli_recording_options form = {0};
    int c;
    while ((c = cli_next_option(&cli_command_collect, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == '?' || !take(&o, &form, c)) return CLI_EXIT_USAGE;
    }
    if (optind + 1 != argc) return cli_usage(&cli_command_collect, "one TRACE is needed, %d given", argc - optind);
    o.path = argv[optind];
    o.form = form.recorder.form;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_collect(&o, &err);
    if (st == TIDE_OK) return CLI_EXIT_OK;
    // Errors go through the pipe, and into the feed once the collector is ready: the program that started it prints
    // them.
    const bool was_ready = o.ready_fd >= 0 && fcntl(o.ready_fd, F_GETFD) < 0;
    if (!o.quiet && !was_ready) cli_print_error(&err);
    return cli_exit_code(st);
}
