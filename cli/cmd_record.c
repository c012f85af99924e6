// SPDX-License-Identifier: MIT
//
// tidemark record: any command, whose programs all record into one trace. This process writes it.
//
//     record ---- fork, held at a pipe ----> CMD ---- fork ----> programs that record
//       |  TIDEMARK_COLLECT=trace ............................ they make feeds beside it
//       +- collect: takes the feeds, frees CMD once it does, ends when CMD and all feeds have ended
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cuda_record.h"
#include "cli/malloc_record.h"
#include "cli/planning.h"
#include "cli/recording.h"
#include "cli/symbols.h"
#include "cli/torch_record.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "profiler/clock.h"

enum { OPT_QUIET = CLI_OPT_FIRST_OWN, OPT_CUDA, OPT_MALLOC, OPT_SAMPLE, OPT_STACKS, OPT_NO_SYMBOLS, OPT_TORCH };

/// Records of CUDA come 100 ms after the fact; nothing is told later than that.
enum { CUDA_HOLD_BACK_MS = 500 };

static const char help[] =
    "  -o FILE             the trace; needed\n" CLI_RECORDING_HELP
    "  --malloc WHEN       what its programs allocate by malloc, operator new and mmap: auto (the default: of all but\n"
    "                      tidemark and those that link libtidemark-record, which tell of their memory themselves),\n"
    "                      on (of those too; an error where CMD cannot be recorded) or off\n"
    "  --stacks N          with the call stack of each allocation, N calls of it at most (1 to 64): who asked, by\n"
    "                      function, file, line and library (tidemark trace --by function)\n"
    "  --no-symbols        with --stacks: leave the names of functions to tidemark trace FILE --symbols\n"
    "  --torch[=WHAT]      of PyTorch programs what their memory is for: the module that is called, by its name, "
    "forward\n"
    "                      or backward, the optimizer's steps, labels of record_function (modules, the default), or\n"
    "                      each operator in these as well (operators: slower). tidemark trace --by module, --by scope\n"
    "  --cuda WHEN         the CUDA memory of all programs in it, whatever they are: auto (the default: where the\n"
    "                      plug-in and an NVIDIA driver are), on (an error where they are not) or off\n"
    "  --sample MS         how often to look at what the system counts of each process: resident bytes, its share of\n"
    "                      shared pages, page faults (default 10; 0: not at all). It takes at most a hundredth of the\n"
    "                      time: many or large processes are looked at less often\n"
    "  --quiet             say nothing at the end, but for what went wrong\n\n"
    "CMD and whatever it starts finds the trace through $" TIDE_COLLECTOR_ENV ", and a library that records malloc\n"
    "through $LD_PRELOAD (one of yours stays, behind it). Static programs and those that run as another user are not\n"
    "recorded, which is said of CMD. A trace that stays empty is kept, and that is said. Signals are passed on.\n"
    "Exit code: that of CMD (128 + n when signal n ended it);\n"
    "127 or 126 when it cannot be run; 8 when not all could be recorded.\n"
    "Example: tidemark record -o both.db -- sh -c 'tidemark run a.onnx & tidemark run b.onnx & wait'\n";

static const struct option option_table[] = {{"output", required_argument, NULL, 'o'},
                                             CLI_RECORDING_OPTIONS,
                                             {"cuda", required_argument, NULL, OPT_CUDA},
                                             {"malloc", required_argument, NULL, OPT_MALLOC},
                                             {"sample", required_argument, NULL, OPT_SAMPLE},
                                             {"stacks", required_argument, NULL, OPT_STACKS},
                                             {"no-symbols", no_argument, NULL, OPT_NO_SYMBOLS},
                                             {"torch", optional_argument, NULL, OPT_TORCH},
                                             {"quiet", no_argument, NULL, OPT_QUIET},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_record = {"record",
                                        "[OPTION…] -o FILE -- CMD [ARG…]",
                                        "Run a command, with all that record in it, into one trace",
                                        help,
                                        option_table,
                                        CLI_OPERANDS_PROGRAM,
                                        run};

enum { EXIT_CANNOT_RUN = 126, EXIT_NO_COMMAND = 127, NEVER_STARTED = -1 };

typedef struct command {
    char **argv;
    pid_t pid;
    pthread_t watcher; // passes signals on and waits for the end
    atomic_bool ended;
    int status;      // as of waitpid, once it has ended
    int failure;     // errno of exec, NEVER_STARTED, or 0
    int go, report;  // write end: a byte lets it start; read end: `failure` of the child
    sigset_t passed; // signals for it, held back here
    sigset_t before; // mask of this process at the beginning
} command;

// ---- signals ----

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};

static void hold_signals(command *c) {
    sigemptyset(&c->passed);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++) sigaddset(&c->passed, passed_on[i]);
    sigprocmask(SIG_BLOCK, &c->passed, &c->before);
}

/// Whether the command has ended.
static bool reap(command *c) {
    pid_t got;
    do got = waitpid(c->pid, &c->status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got < 0) c->status = 0; // no child of this process any more: its end was already waited for
    return got != 0;
}

static void *watch(void *ctx) {
    command *c = ctx;
    siginfo_t info;
    while (!reap(c)) {
        const int number = sigwaitinfo(&c->passed, &info);
        // The terminal sends its signals to the whole group, so the command has this one already.
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(c->pid, number);
    }
    c->ended = true;
    return NULL;
}

/// Asked by the collector between its rounds.
static bool is_over(void *ctx) { return ((command *)ctx)->ended; }

// ---- the command ----

/// In the child: wait until the collector takes feeds, then become the command.
static _Noreturn void exec_command(const command *c, int go, int report) {
    char byte;
    ssize_t n;
    do n = read(go, &byte, 1);
    while (n < 0 && errno == EINTR);
    int failure = NEVER_STARTED;
    if (n == 1) {
        signal(SIGPIPE, SIG_DFL); // this program ignores it; the command must not inherit that
        signal(SIGXFSZ, SIG_DFL);
        sigprocmask(SIG_SETMASK, &c->before, NULL);
        cli_malloc_name_command();
        execvp(c->argv[0], c->argv);
        failure = errno;
    }
    n = write(report, &failure, sizeof failure);
    _exit(n > 0 && failure == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_RUN);
}

static tide_status start(command *c, tide_error *err) {
    int go[2], report[2];
    if (pipe2(go, O_CLOEXEC) != 0) return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot make a pipe: %s", strerror(errno));
    if (pipe2(report, O_CLOEXEC) != 0) {
        const int why = errno;
        close(go[0]);
        close(go[1]);
        return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot make a pipe: %s", strerror(why));
    }
    hold_signals(c);
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        close(report[0]);
        exec_command(c, go[0], report[1]);
    }
    const int why = errno;
    close(go[0]);
    close(report[1]);
    c->go = go[1];
    c->report = report[0];
    if (c->pid > 0 && pthread_create(&c->watcher, NULL, watch, c) == 0) return TIDE_OK;
    close(c->go); // a child that waits there ends
    close(c->report);
    if (c->pid > 0) waitpid(c->pid, NULL, 0);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot start a process: %s", strerror(c->pid > 0 ? EAGAIN : why));
}

enum { MAX_PATH = 4096 };

/// 0, or errno: whether a command of this name can be run at all, and which file it is. Asked before an older trace is
/// replaced.
static int look_for(const char *name, char file[MAX_PATH]) {
    const char *path = getenv("PATH");
    const bool has_place = strchr(name, '/') != NULL;
    int why = ENOENT;
    if (has_place || path == NULL) path = ""; // as execvp: without PATH its own default
    for (const char *at = path;; at++) {
        const int n = (int)strcspn(at, ":");
        struct stat s;
        const int len = has_place ? snprintf(file, MAX_PATH, "%s", name)
                                  : snprintf(file, MAX_PATH, "%.*s%s%s", n, at, n > 0 ? "/" : "", name);
        if (len < MAX_PATH && stat(file, &s) == 0) {
            if (S_ISREG(s.st_mode) && access(file, X_OK) == 0) return 0;
            why = EACCES;
        }
        at += n;
        if (*at == '\0') return getenv("PATH") == NULL && !has_place ? 0 : why;
    }
}

static int cannot_run(const char *name, int why) {
    char clean[512];
    fprintf(stderr, "error: cannot run '%s': %s\n", cli_clean(name, clean, sizeof clean), strerror(why));
    return why == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_RUN;
}

// ---- recording ----

typedef struct options {
    cli_recording_options recording;
    cli_when cuda;
    cli_when malloc;
    uint64_t sample_ms;
    unsigned stacks; // 0: none
    cli_torch torch;
    bool no_symbols;
    bool quiet;
} options;

/// Sets the environment of the command: where it records, and whether its programs may note the counter. The path is
/// absolute, because its programs may change their folder.
static tide_status set_environment(const options *o, tide_error *err) {
    char path[8192], number[24];
    char here[4096];
    const char *trace = o->recording.path;
    if (trace[0] == '/')
        snprintf(path, sizeof path, "%s", trace);
    else if (getcwd(here, sizeof here) != NULL)
        snprintf(path, sizeof path, "%s/%s", here, trace);
    else
        return TIDE_FAIL(err, TIDE_ERR_IO, "cannot tell the current folder: %s", strerror(errno));
    snprintf(number, sizeof number, "%zu", o->recording.recorder.ring_events);
    tide__clock_check_cores();
    bool good = setenv(TIDE_COLLECTOR_ENV, path, 1) == 0;
    if (o->recording.recorder.ring_events > 0) good = good && setenv(TIDE_RING_EVENTS_ENV, number, 1) == 0;
    if (o->recording.on_full != NULL) good = good && setenv(TIDE_ON_FULL_ENV, o->recording.on_full, 1) == 0;
    if (o->recording.max_wait != NULL) good = good && setenv(TIDE_MAX_WAIT_ENV, o->recording.max_wait, 1) == 0;
    return good ? TIDE_OK : TIDE_NO_MEMORY(err, "for the command's environment");
}

/// Warns about an empty trace, also if the command itself succeeded.
static void print_empty(const char *path, const tide_trace_info *info) {
    char name[4096];
    fprintf(stderr, "warning: the trace is empty: %s: ", cli_clean(path, name, sizeof name));
    if (info->n_processes > 0) {
        fprintf(stderr, "the process%s that recorded into it used no memory that tidemark sees\n",
                info->n_processes == 1 ? "" : "es");
        return;
    }
    fputs("no process that the command started spoke to tidemark\n", stderr);
    fputs("note: recorded are programs that are linked dynamically (--malloc), those that link tidemark's recorder, "
          "and\n"
          "      tidemark run and compare without -o; of others their CUDA memory (--cuda), and nothing else\n",
          stderr);
}

/// Prints a line about the trace; with `quiet` only if it is empty.
static tide_status print_summary(const char *path, bool quiet, cli_torch torch, tide_error *err) {
    tide_trace *t = NULL;
    tide_trace_info info;
    uint64_t peak;
    char bytes[24], name[4096];
    TIDE_TRY(cli_trace_open(path, &t, err));
    tide_status st = tide_trace_get_info(t, &info, err);
    if (st == TIDE_OK) st = tide_trace_peak(t, 0, -1, &peak, NULL, err);
    if (st == TIDE_OK && info.n_events == 0) print_empty(path, &info);
    if (st == TIDE_OK && !quiet)
        fprintf(stderr, "trace: %s: %" PRIu64 " event%s of %u process%s, %" PRIu64 " lost, peak %s\n",
                cli_clean(path, name, sizeof name), info.n_events, info.n_events == 1 ? "" : "s", info.n_processes,
                info.n_processes == 1 ? "" : "es", info.n_lost, tide_format_bytes(peak, bytes, sizeof bytes));
    if (st == TIDE_OK) st = cli_cuda_print(t, quiet, err);
    if (st == TIDE_OK && !quiet) st = cli_malloc_print(t, err);
    if (st == TIDE_OK && torch != CLI_TORCH_OFF) st = cli_torch_print(t, quiet, err);
    tide_trace_close(t);
    return st;
}

static int code_of(const command *c) {
    return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

/// The collector has returned: waits for the end of the command and reads how it went.
static void wait_for_end(command *c) {
    // An open pipe would keep the command waiting if the collector has failed.
    if (fcntl(c->go, F_GETFD) >= 0) close(c->go);
    pthread_join(c->watcher, NULL);
    if (read(c->report, &c->failure, sizeof c->failure) != (ssize_t)sizeof c->failure) c->failure = 0;
    close(c->report);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

/// The trace is whole without names, and they can be found later: what is wrong with them is a note.
static void name_frames(const char *path, bool quiet) {
    tide_error err = TIDE_ERROR_INIT;
    tide_symbols_report report;
    char clean[1024];
    if (cli_symbols_name(path, &report, &err) != TIDE_OK)
        fprintf(stderr, "warning: %s\n", cli_clean(err.msg, clean, sizeof clean));
    else if (!quiet)
        cli_symbols_print(&report);
}

static int record(const options *o, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    command c = {.argv = argv};
    char file[MAX_PATH];
    const int why = look_for(argv[0], file);
    if (why != 0) return cannot_run(argv[0], why);
    bool has_cuda;
    if (cli_malloc_prepare(o->malloc, o->stacks, o->torch != CLI_TORCH_OFF, file, &err) != TIDE_OK ||
        cli_torch_prepare(o->torch, &err) != TIDE_OK)
        return cli_fail(&err);
    if (cli_cuda_prepare(o->cuda, &has_cuda, &err) != TIDE_OK) return cli_fail(&err);
    if (set_environment(o, &err) != TIDE_OK || start(&c, &err) != TIDE_OK) return cli_fail(&err);
    const unsigned hold_back_ms = o->recording.recorder.hold_back_ms;
    const tide_collector_options opt = {.path = o->recording.path,
                                        .create = true,
                                        .form = o->recording.recorder.form,
                                        .max_bytes = o->recording.recorder.max_bytes,
                                        .hold_back_ms =
                                            hold_back_ms == 0 && has_cuda ? CUDA_HOLD_BACK_MS : hold_back_ms,
                                        .sample_ms = (unsigned)o->sample_ms,
                                        .ready_fd = c.go,
                                        .is_over = is_over,
                                        .ctx = &c};
    tide_status st = tide_collect(&opt, &err);
    wait_for_end(&c);
    if (c.failure == NEVER_STARTED) {
        cli_print_error(&err);
        // A trace that another records into is a wrong name, no fault of ours.
        return st == TIDE_ERR_BUSY ? CLI_EXIT_BAD_INPUT : cli_exit_code(st);
    }
    if (c.failure > 0) {
        unlink(o->recording.path); // it is empty
        return cannot_run(argv[0], c.failure);
    }
    if (st == TIDE_OK && o->stacks > 0 && !o->no_symbols) name_frames(o->recording.path, o->quiet);
    if (st == TIDE_OK) st = print_summary(o->recording.path, o->quiet, o->torch, &err);
    if (st == TIDE_OK) return code_of(&c);
    cli_print_error(&err);
    fprintf(stderr, "note: the command itself ended with code %d\n", code_of(&c));
    return cli_exit_code(st) == CLI_EXIT_DOES_NOT_FIT ? CLI_EXIT_DOES_NOT_FIT : CLI_EXIT_OUTPUT;
}

static bool take_stacks(options *o, const char *text) {
    uint64_t n;
    if (!cli_parse_count(&cli_command_record, "--stacks", text, UINT32_MAX, &n)) return false;
    o->stacks = (unsigned)n;
    if (n >= 1 && n <= TIDE_MAX_STACK_DEPTH) return true;
    cli_usage(&cli_command_record, "--stacks: %" PRIu64 " is not between 1 and %d", n, (int)TIDE_MAX_STACK_DEPTH);
    return false;
}

static int run(int argc, char **argv) {
    const cli_command *cmd = &cli_command_record;
    options o = {.sample_ms = 10};
    int c;
    while ((c = cli_next_own_option(cmd, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == 'o')
            o.recording.path = optarg;
        else if (c == OPT_QUIET)
            o.quiet = true;
        else if (c == OPT_SAMPLE && !cli_parse_count(cmd, "--sample", optarg, 60000, &o.sample_ms))
            return CLI_EXIT_USAGE;
        else if (c == OPT_NO_SYMBOLS)
            o.no_symbols = true;
        else if (c == OPT_CUDA && !cli_parse_when(optarg, &o.cuda))
            return cli_usage(cmd, "--cuda: '%s' is none of auto, on and off", optarg);
        else if (c == OPT_MALLOC && !cli_parse_when(optarg, &o.malloc))
            return cli_usage(cmd, "--malloc: '%s' is none of auto, on and off", optarg);
        else if (c == OPT_STACKS && !take_stacks(&o, optarg))
            return CLI_EXIT_USAGE;
        else if (c == OPT_TORCH && !cli_torch_parse(optarg, &o.torch))
            return cli_usage(cmd, "--torch: '%s' is none of modules and operators", optarg);
        else if (c == OPT_CUDA || c == OPT_MALLOC || c == OPT_SAMPLE || c == OPT_STACKS || c == OPT_TORCH)
            continue;
        else if (cli_recording_option(cmd, &o.recording, c) <= 0)
            return CLI_EXIT_USAGE;
    }
    if (o.recording.path == NULL) return cli_usage(cmd, "-o FILE is needed: where the trace goes");
    if (optind == argc) return cli_usage(cmd, "a command is needed: what to run");
    if (o.no_symbols && o.stacks == 0) return cli_usage(cmd, "--no-symbols is of use with --stacks");
    if (o.stacks > 0 && o.malloc == CLI_WHEN_OFF) return cli_usage(cmd, "--stacks and --malloc off: one of them");
    if (o.torch != CLI_TORCH_OFF && o.malloc == CLI_WHEN_OFF)
        return cli_usage(cmd, "--torch and --malloc off: one of them");
    if (!o.recording.force && !cli_may_replace(o.recording.path)) return CLI_EXIT_USAGE;
    tide_error err = TIDE_ERROR_INIT;
    char *path = NULL; // programs that record find the trace by it: not by a link to it
    if (tide_output_follow(o.recording.path, &path, &err) != TIDE_OK) return cli_fail(&err);
    o.recording.path = path;
    const int code = record(&o, argv + optind);
    tide_host_free(path);
    return code;
}
