// SPDX-License-Identifier: MIT
//
// What the commands share. See cli.h.
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/output.h"
#include "core/base/utf8.h"

char *cli_clean(const char *text, char *buf, size_t buf_bytes) {
    size_t n = 0;
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(text, &cp)) > 0; text += step) {
        char bytes[4];
        // "##[" begins a command to the runners of CI wherever it stands in a line of a log.
        const bool bad = tide_utf8_is_unsafe(cp) || strncmp(text, "##[", 3) == 0;
        const size_t len = tide_utf8_encode(bad ? '?' : cp, bytes);
        if (n + len + 1 > buf_bytes) break;
        memcpy(buf + n, bytes, len);
        n += len;
    }
    buf[n] = '\0';
    return buf;
}

/// So many warnings are printed and the others counted, so that an error after them is seen.
enum { MAX_WARNINGS = 5 };
static atomic_size_t n_warnings;

static void log_to_stderr(void *ctx, tide_log_level level, const char *line) {
    // Errors come back as a status too, and the command prints them: once is enough unless a log was asked for.
    if (level == TIDE_LOG_ERROR && ctx == NULL) return;
    if (level == TIDE_LOG_WARN && ctx == NULL && atomic_fetch_add(&n_warnings, 1) >= MAX_WARNINGS) return;
    static const char *const words[] = {"error", "warning", "note", "debug"};
    char clean[1024];
    fprintf(stderr, "%s: %s\n", words[level], cli_clean(line, clean, sizeof clean));
}

void cli_log_rest(void) {
    const size_t n = atomic_exchange(&n_warnings, 0);
    if (n > MAX_WARNINGS)
        fprintf(stderr, "warning: and %zu more of them (TIDEMARK_LOG=1 prints all)\n", n - MAX_WARNINGS);
}

void cli_log_notes(bool notes) {
    char *log = getenv("TIDEMARK_LOG");
    const tide_log_level level = log == NULL                 ? TIDE_LOG_WARN
                                 : strcmp(log, "debug") == 0 ? TIDE_LOG_DEBUG
                                                             : TIDE_LOG_INFO;
    tide_log_set(log_to_stderr, log, notes && level < TIDE_LOG_INFO ? TIDE_LOG_INFO : level);
}

static void print_part(const char *head, const char *text) {
    char clean[1024];
    if (text[0] != '\0') fprintf(stderr, "%s%s\n", head, cli_clean(text, clean, sizeof clean));
}

void cli_print_error(const tide_error *err) {
    cli_log_rest();
    // Scripts look for these first words wherever memory ran out.
    const char *head = err->status == TIDE_ERR_NOMEM ? "error: out of memory: " : "error: ";
    const size_t skip = strncmp(err->msg, "out of memory: ", 15) == 0 && err->status == TIDE_ERR_NOMEM ? 15 : 0;
    print_part(head, err->msg[0] != '\0' ? err->msg + skip : tide_status_text(err->status));
    print_part("  --> ", err->where);
    print_part("note: ", err->note);
    print_part("hint: ", err->hint);
}

void cli_option_no_memory(const char *option) {
    fprintf(stderr, "error: out of memory: no memory for %s\n", option);
    exit(CLI_EXIT_DOES_NOT_FIT);
}

static atomic_bool ran_out;

void cli_ran_out(const char *what) {
    char clean[1024];
    if (!atomic_exchange(&ran_out, true))
        fprintf(stderr, "error: out of memory: %s\n", cli_clean(what, clean, sizeof clean));
}

void cli_cut(FILE *to) {
    fputs("(cut: out of memory)\n", to);
    cli_ran_out("what was printed is not whole");
}

int cli_final_code(int code) {
    return ran_out && (code == CLI_EXIT_OK || code == CLI_EXIT_CHECK_FAILED) ? CLI_EXIT_DOES_NOT_FIT : code;
}

int cli_usage(const cli_command *cmd, const char *fmt, ...) {
    char text[2048], clean[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "error: %s\nhint: tidemark %s --help\n", cli_clean(text, clean, sizeof clean), cmd->name);
    return CLI_EXIT_USAGE;
}

void cli_print_help(const cli_command *cmd) {
    printf("usage: tidemark %s %s\n\n%s.\n\n%s", cmd->name, cmd->args, cmd->what, cmd->help);
}

int cli_exit_code(tide_status st) {
    switch (st) {
    case TIDE_OK:
        return CLI_EXIT_OK;
    case TIDE_ERR_INVALID:
    case TIDE_ERR_NOT_IMPLEMENTED:
    case TIDE_ERR_BAD_INPUT:
    case TIDE_ERR_IO:
    case TIDE_ERR_NOT_FOUND:
    case TIDE_ERR_OVERFLOW:
    case TIDE_ERR_NO_SPACE:
    case TIDE_ERR_UNKNOWN_SIZE:
    case TIDE_ERR_CYCLE:
    case TIDE_ERR_RUNTIME: // an operator met data it cannot work on: the input's fault, named in the message
    case TIDE_ERR_EXISTS:
        return CLI_EXIT_BAD_INPUT;
    case TIDE_ERR_INCOMPARABLE:
        return CLI_EXIT_NO_BASELINE;
    case TIDE_ERR_WRITE:
        return CLI_EXIT_OUTPUT;
    case TIDE_ERR_NOMEM:
        return CLI_EXIT_DOES_NOT_FIT;
    case TIDE_ERR_BACKEND:
    case TIDE_ERR_UNKNOWN:
    case TIDE_ERR_VERIFY:
    case TIDE_ERR_BUSY:
    case TIDE_ERR_CANCELLED:
        break;
    }
    return CLI_EXIT_INTERNAL;
}

int cli_fail(const tide_error *err) {
    cli_print_error(err);
    return cli_exit_code(err->status);
}

// ---- unknown options ----

static const char *option_at(const void *ctx, size_t i) { return ((const struct option *)ctx)[i].name; }

/// Options that begin with `word` (it is cut short, and says too little), else that end with "-word", as a list; false:
/// there are none.
static bool like_options(const char *word, const struct option *options, tide_text *list) {
    const size_t len = strlen(word);
    for (int at_end = 0; at_end < 2 && list->len == 0 && len > 0; at_end++) {
        for (const struct option *o = options; o->name != NULL; o++) {
            const size_t n = strlen(o->name);
            const bool like = at_end == 0
                                  ? strncmp(o->name, word, len) == 0
                                  : n > len && o->name[n - len - 1] == '-' && strcmp(o->name + n - len, word) == 0;
            if (like) tide_text_addf(list, "%s--%s", list->len > 0 ? " or " : "", o->name);
        }
    }
    return list->len > 0 && !list->failed;
}

/// `given` as it stands in the command line: "--thread=4".
static void unknown_option(const cli_command *cmd, const char *given) {
    const struct option *const options = cmd->options;
    char word[64], clean[128];
    tide_text meant = {0};
    size_t n = 0;
    while (options[n].name != NULL) n++;
    given += strspn(given, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    const char *nearest = tide_nearest_word(word, option_at, options, n);
    if (nearest != NULL) tide_text_addf(&meant, "--%s", nearest);
    const bool known = nearest != NULL || like_options(word, options, &meant);
    cli_usage(cmd, "'--%s' is not an option of %s%s%s%s", cli_clean(word, clean, sizeof clean), cmd->name,
              known ? ": did you mean " : "", known ? tide_text_str(&meant) : "", known ? "?" : "");
    tide_text_deinit(&meant);
}

/// @param order  "+": the first operand ends the options; "": they may stand behind operands too
static int next_option(const cli_command *cmd, int argc, char **argv, const char *order) {
    const struct option *const options = cmd->options;
    opterr = 0;
    // The ':' makes a missing argument distinguishable. One-letter options are those the table knows.
    char shorts[32];
    size_t n = (size_t)snprintf(shorts, sizeof shorts, "%s:h", order);
    for (const struct option *o = options; o->name != NULL && n + 3 < sizeof shorts; o++) {
        if (o->val != 'n' && o->val != 'o' && o->val != 'v') continue;
        shorts[n++] = (char)o->val;
        if (o->has_arg == required_argument) shorts[n++] = ':';
    }
    shorts[n] = '\0';
    const int c = getopt_long(argc, argv, shorts, options, NULL);
    if (c == 'h') {
        cli_print_help(cmd);
        return 'h';
    }
    if (c == ':') {
        cli_usage(cmd, "%s wants a value", argv[optind - 1]);
        return '?';
    }
    if (c == '?') {
        if (optopt > 0 && optopt < 128)
            cli_usage(cmd, "'-%c' is not an option of %s", optopt, cmd->name);
        else
            unknown_option(cmd, argv[optind - 1]);
        return '?';
    }
    return c;
}

int cli_next_option(const cli_command *cmd, int argc, char **argv) { return next_option(cmd, argc, argv, ""); }

int cli_next_own_option(const cli_command *cmd, int argc, char **argv) { return next_option(cmd, argc, argv, "+"); }

int cli_parse_json_alone(const cli_command *cmd, int argc, char **argv, bool *as_json) {
    int c;
    while ((c = cli_next_option(cmd, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c != 'j') return CLI_EXIT_USAGE;
        *as_json = true;
    }
    if (optind != argc) return cli_usage(cmd, "no FILE is wanted here");
    return -1;
}

bool cli_parse_size(const cli_command *cmd, const char *option, const char *text, uint64_t *out) {
    tide_error err = TIDE_ERROR_INIT;
    if (tide_parse_bytes(text, out, &err) != TIDE_OK) {
        cli_usage(cmd, "%s: %s", option, err.msg);
        return false;
    }
    if (*out <= INT64_MAX) return true;
    cli_usage(cmd, "%s: '%s' is more than the %" PRId64 " bytes that JSON and traces can hold", option, text,
              INT64_MAX);
    return false;
}

bool cli_parse_count(const cli_command *cmd, const char *option, const char *text, uint64_t max, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > max) {
        cli_usage(cmd, "%s: '%s' is not a whole number from 0 to %" PRIu64, option, text, max);
        return false;
    }
    *out = value;
    return true;
}

bool cli_parse_real(const cli_command *cmd, const char *option, const char *text, double *out) {
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0.0) {
        cli_usage(cmd, "%s: '%s' is not a number of 0 or more", option, text);
        return false;
    }
    *out = value;
    return true;
}

bool cli_same_file(const char *a, const char *b) {
    struct stat x, y;
    if (a == NULL || b == NULL || strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return false;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/// The last name of a path, and whether its folder is there.
static const char *name_in_folder(const char *path, struct stat *folder, bool *is_there) {
    char text[4096] = ".";
    const char *slash = strrchr(path, '/');
    if (slash != NULL) snprintf(text, sizeof text, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    *is_there = stat(text, folder) == 0;
    return slash != NULL ? slash + 1 : path;
}

static bool is_one_place(const char *a, const char *b) {
    struct stat x, y;
    bool has_x, has_y;
    const char *const name_a = name_in_folder(a, &x, &has_x), *const name_b = name_in_folder(b, &y, &has_y);
    return strcmp(name_a, name_b) == 0 && has_x && has_y && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool cli_same_place(const char *a, const char *b) {
    char *behind_a = NULL, *behind_b = NULL;
    if (a == NULL || b == NULL || strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return false;
    // A link that leads to nothing yet is as good as what it leads to.
    const bool same =
        cli_same_file(a, b) || (tide_output_follow(a, &behind_a, NULL) == TIDE_OK &&
                                tide_output_follow(b, &behind_b, NULL) == TIDE_OK && is_one_place(behind_a, behind_b));
    tide_host_free(behind_a);
    tide_host_free(behind_b);
    return same;
}

bool cli_shapes_add(const cli_command *cmd, cli_shapes *shapes, const char *text) {
    const char *eq = strrchr(text, '=');
    tide_error err = TIDE_ERROR_INIT;
    tide_shape shape;
    if (eq == NULL || eq == text) {
        cli_usage(cmd, "--shape: '%s' is not of the form NAME=1x3x224x224", text);
        return false;
    }
    if (tide_shape_parse(eq + 1, &shape, &err) != TIDE_OK) {
        cli_usage(cmd, "--shape: %s", err.msg);
        return false;
    }
    char *name = tide_host_strndup(text, (size_t)(eq - text));
    if (name == NULL || tide_host_grow(&shapes->items, &shapes->cap, shapes->n + 1, sizeof *shapes->items) != TIDE_OK ||
        tide_host_grow(&shapes->names, &shapes->cap_names, shapes->n + 1, sizeof *shapes->names) != TIDE_OK) {
        tide_host_free(name);
        cli_option_no_memory("--shape");
        return false;
    }
    shapes->names[shapes->n] = name;
    shapes->items[shapes->n++] = (tide_shape_binding){.name = name, .shape = shape};
    return true;
}

void cli_shapes_deinit(cli_shapes *shapes) {
    for (size_t i = 0; i < shapes->n; i++) tide_host_free(shapes->names[i]);
    tide_host_free(shapes->names);
    tide_host_free(shapes->items);
    *shapes = (cli_shapes){0};
}

char *cli_shape_text(const tide_shape *shape, char *buf, size_t buf_bytes) {
    size_t n = 0;
    buf[0] = '\0';
    for (int d = 0; d < shape->rank && n < buf_bytes; d++)
        n += (size_t)snprintf(buf + n, buf_bytes - n, "%s%" PRId64, d > 0 ? "x" : "", shape->dims[d]);
    return buf;
}

void cli_json_own_memory(tide_json_out *j, const char *key) {
    tide_host_stats stats;
    tide_host_get_stats(&stats);
    tide_json_open(j, key, '{');
    tide_json_u64(j, "peak_bytes", stats.peak_bytes);
    tide_json_u64(j, "allocations", stats.n_allocs);
    tide_json_close(j, '}');
}
