// SPDX-License-Identifier: MIT
//
// recording: what `run`, `compare` and `record` share about the trace they leave: its options, where it goes, and
// what is printed about it at the end. The recorded program goes on even if its trace fails.
#ifndef TIDE_CLI_RECORDING_H
#define TIDE_CLI_RECORDING_H

#include "cli/cli.h"
#include "core/base/module.h"
#include "profiler/collector.h"

typedef struct cli_recording_options {
    const char *path; ///< -o; NULL: to the collector that runs already, if one does
    tide_recorder_options recorder;
    const char *of_trace; ///< an option was given that is about a trace of one's own: its name
    const char *of_ring;  ///< an option was given that is about being recorded at all
    const char *on_full;  ///< as it was given; NULL: not
    const char *max_wait; ///< the same
    bool is_temporary;    ///< the trace is removed after it was viewed: nothing is printed about it
    bool force;           ///< --force: what has the name may be any file
    const char *above;    ///< trace of a `record` around it that gets nothing of this; NULL: none
} cli_recording_options;

/// Of --cuda and --malloc: record it where that is possible; or it is an error where not; or do not.
typedef enum cli_when { CLI_WHEN_AUTO, CLI_WHEN_ON, CLI_WHEN_OFF } cli_when;
/// False: none of the three words.
bool cli_parse_when(const char *text, cli_when *out);
/// Path from the root of a library that the command's programs shall load: they may change their folder. As
/// tide_module_find.
tide_status cli_library_path(const tide_module *m, char *path, size_t bytes, tide_error *err) TIDE_NODISCARD;

enum {
    CLI_OPT_RECORDER = 1500,
    CLI_OPT_FORM,
    CLI_OPT_RING_EVENTS,
    CLI_OPT_ON_FULL,
    CLI_OPT_MAX_WAIT,
    CLI_OPT_MAX_TRACE,
    CLI_OPT_HOLD_BACK,
    CLI_OPT_FORCE,
};
/// Those of run, compare and record; the first is of run and compare alone.
#define CLI_RECORDER_OPTION                                                                                            \
    { "recorder", required_argument, NULL, CLI_OPT_RECORDER }
#define CLI_RECORDING_OPTIONS                                                                                          \
    {"form", required_argument, NULL, CLI_OPT_FORM}, {"ring-events", required_argument, NULL, CLI_OPT_RING_EVENTS},    \
        {"on-full", required_argument, NULL, CLI_OPT_ON_FULL},                                                         \
        {"max-wait", required_argument, NULL, CLI_OPT_MAX_WAIT},                                                       \
        {"max-trace", required_argument, NULL, CLI_OPT_MAX_TRACE},                                                     \
        {"hold-back", required_argument, NULL, CLI_OPT_HOLD_BACK}, {                                                   \
        "force", no_argument, NULL, CLI_OPT_FORCE                                                                      \
    }
#define CLI_RECORDER_HELP                                                                                              \
    "  --recorder R        who writes the trace: a process of its own (default) or a thread of this one\n"
#define CLI_RECORDING_HELP                                                                                             \
    "  --form F            how the trace keeps events: rows, chunks (a third of the bytes) or auto (default)\n"        \
    "  --ring-events N     room for each thread, in events of 64 bytes (default 65536)\n"                              \
    "  --on-full F         a thread whose ring is full shall wait (default) or drop events; those are counted\n"       \
    "  --max-wait SECONDS  that a full ring is waited for while nothing moves, the collector being stopped, say; "     \
    "then\n"                                                                                                           \
    "                      events are dropped and counted until it goes on (default 30)\n"                             \
    "  --max-trace SIZE    of the file, 8MiB or more: the oldest events go first, totals stay exact (default: all)\n"  \
    "  --hold-back SECONDS that an event may come later than others and still stand by its own time; the trace "       \
    "shows\n"                                                                                                          \
    "                      all so much later (default 2 when times are not of this machine's clock, or late; else "    \
    "0)\n"                                                                                                             \
    "  --force             -o replaces FILE also when it is no tidemark trace\n"

/// Take option `c` if it is one of recording. @return 1 taken, 0 not one of ours, -1 bad value (message printed)
int cli_recording_option(const cli_command *cmd, cli_recording_options *o, int c);
/// All options are known: finds out which process writes the trace. False after a message was printed: an option
/// that has nothing to act on, or a value in the environment that is none.
bool cli_recording_settle(const cli_command *cmd, cli_recording_options *o);

/// Whether a trace may be written to `path`: nothing is there, or a trace, or an empty file. Anything that is no
/// regular file is left to the function that opens it. False after a message was printed.
bool cli_may_replace(const char *path);

/// A recording while it goes on, and its results afterwards. Zero: there is no recording.
typedef struct cli_recording {
    tide_recorder *recorder; ///< NULL: there is no recording, or it is over
    const char *path;        ///< of the trace, borrowed; NULL: there is no recording
    bool attached;           ///< the collector of another process writes it
    bool is_temporary;       ///< as in the options
    const char *above;       ///< as in the options
    bool of_failure;         ///< the runs failed, and this is what was recorded until then
    tide_recorder_stats stats;
    tide_error err; ///< what ended it early
} cli_recording;

/// Open what `o` asks for; nothing without -o and without a collector.
tide_status cli_recording_open(const cli_recording_options *o, cli_recording *out, tide_error *err) TIDE_NODISCARD;
/// The runs are over, with `st`: all events go into the file. When they failed the trace is kept only if it shows
/// what led to a failed allocation. `earlier`: an error of recording met before (may be NULL or no error).
void cli_recording_end(cli_recording *r, tide_status st, const tide_error *earlier);

/// The keys "trace" and "recorder": null when nothing was recorded.
void cli_json_recording(tide_json_out *j, const cli_recording *r);
/// The line about the trace; nothing when nothing was recorded.
void cli_recording_print(const cli_recording *r);
/// Called last: prints on stderr what the trace lacks. @return `code`, or CLI_EXIT_OUTPUT (CLI_EXIT_DOES_NOT_FIT
/// without memory) when recording failed
int cli_recording_report(const cli_recording *r, int code);

#endif
