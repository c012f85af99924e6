// SPDX-License-Identifier: MIT
//
// What the commands share: the table of commands, exit codes, messages, option values.
#ifndef TIDE_CLI_CLI_H
#define TIDE_CLI_CLI_H

#include <getopt.h>
#include <stdio.h>

#include "core/base/json_out.h"
#include "core/base/text.h"
#include "core/graph/passes.h"

/// Exit codes: a contract with users' scripts.
enum {
    CLI_EXIT_OK = 0,
    CLI_EXIT_CHECK_FAILED = 1, ///< a check was made and failed: worse, leaked, differs
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_BAD_INPUT = 3,
    CLI_EXIT_NO_BASELINE = 4,
    CLI_EXIT_INTERNAL = 5,
    CLI_EXIT_DOES_NOT_FIT = 6, ///< a budget, a limit, a capacity proved too small, or the machine's memory
    CLI_EXIT_NOT_DECIDED = 7,  ///< a search ended neither with a plan that fits nor with a proof that none does
    CLI_EXIT_OUTPUT = 8,       ///< an output could not be written, or not all of it: full disk, no right, no folder
};

/// What stands behind the options of a command, for completion.
typedef enum cli_operands {
    CLI_OPERANDS_NONE,
    CLI_OPERANDS_FILES,
    CLI_OPERANDS_FOLDER,
    CLI_OPERANDS_WORDS,    ///< names that only the command knows
    CLI_OPERANDS_COMMANDS, ///< one of tidemark's commands
    CLI_OPERANDS_PROGRAM,  ///< another program and its own arguments
} cli_operands;

typedef struct cli_command {
    const char *name;
    const char *args;             ///< after the name in the usage line
    const char *what;             ///< one phrase for the list of commands
    const char *help;             ///< the options, ready to print; cli/help_text.h reads it
    const struct option *options; ///< up to one without a name; all but a few for tests are in `help`
    cli_operands operands;
    int (*run)(int argc, char **argv); ///< argv[0] is the command's name; returns an exit code
} cli_command;

extern const cli_command cli_command_plan, cli_command_run, cli_command_compare, cli_command_tui, cli_command_report,
    cli_command_diff, cli_command_check, cli_command_sweep, cli_command_export, cli_command_allocators,
    cli_command_devices, cli_command_operators, cli_command_record, cli_command_replay, cli_command_trace,
    cli_command_import, cli_command_merge, cli_command_demo, cli_command_help, cli_command_collect;

/// All commands, in the order in which they are listed; ends with NULL. A command that wants to know others asks
/// cli_commands, which main sets to it.
extern const cli_command *const cli_command_table[];
extern const cli_command *const *cli_commands;
/// Whether the command is one that tidemark starts itself: no page and no completion names it.
bool cli_command_is_internal(const cli_command *cmd);
/// @return NULL: there is none of that name
const cli_command *cli_command_find(const char *name);
/// Print that `word` is no command, and the nearest one that is; returns CLI_EXIT_USAGE.
int cli_no_command(const char *word);
/// The list of commands with what each does.
void cli_print_commands(FILE *to);
/// What an exit code means, in two words and in a sentence.
typedef struct cli_exit_meaning {
    int code;
    const char *brief, *text;
} cli_exit_meaning;
/// All of them; the last one has no words.
extern const cli_exit_meaning cli_exit_meanings[];

/// Log lines go to stderr: warnings, with `notes` also notes, and what $TIDEMARK_LOG asks for. While no other thread
/// runs.
void cli_log_notes(bool notes);
/// Prints how many warnings were left out, if any. With $TIDEMARK_LOG none are.
void cli_log_rest(void);
/// Print `error:`, `  -->`, `note:` and `hint:` to stderr, without the control characters that names may hold.
void cli_print_error(const tide_error *err);
/// Print an error of use and the way to the help; returns CLI_EXIT_USAGE.
int cli_usage(const cli_command *cmd, const char *fmt, ...) TIDE_PRINTF(2, 3);
/// No memory for the value of an option: prints an error and ends the program, which has not begun its work.
_Noreturn void cli_option_no_memory(const char *option);
/// Memory ran out for a part of the work and the rest goes on. Prints an error once; the exit code will be that of
/// memory.
void cli_ran_out(const char *what);
/// The same for a text that was printed to `to`: the cut is noted there too.
void cli_cut(FILE *to);
/// `code`, or what it is after cli_ran_out.
int cli_final_code(int code);
void cli_print_help(const cli_command *cmd);
/// Which exit code a status of the library means.
int cli_exit_code(tide_status st);
/// cli_print_error and cli_exit_code in one.
int cli_fail(const tide_error *err);

/// Next option of `argv`, of those in `cmd->options`, as getopt_long but with our words for an unknown one or a missing
/// argument: those return
/// '?' after the message was printed. `--help` prints and returns 'h'. End: -1; operands start at optind.
int cli_next_option(const cli_command *cmd, int argc, char **argv);
/// The same, but the first operand ends the options: what follows belongs to another program.
int cli_next_own_option(const cli_command *cmd, int argc, char **argv);

/// Of a command that takes --json and nothing else. @return -1: go on; otherwise the exit code
int cli_parse_json_alone(const cli_command *cmd, int argc, char **argv, bool *as_json);

/// Values of options; on failure they print through cli_usage and return false.
bool cli_parse_size(const cli_command *cmd, const char *option, const char *text, uint64_t *out);
bool cli_parse_count(const cli_command *cmd, const char *option, const char *text, uint64_t max, uint64_t *out);
bool cli_parse_real(const cli_command *cmd, const char *option, const char *text, double *out);

/// Whether both are paths of one file that is there; false for NULL and "-".
bool cli_same_file(const char *a, const char *b);
/// Whether what is written to one path would be found under the other: as cli_same_file, and also where no file is
/// there yet, by folder and name.
bool cli_same_place(const char *a, const char *b);

/// --shape NAME=1x3x224x224, any number of times.
typedef struct cli_shapes {
    tide_shape_binding *items; ///< [n]
    char **names;              ///< [n], owned: what items[].name points to
    size_t n, cap, cap_names;
} cli_shapes;
bool cli_shapes_add(const cli_command *cmd, cli_shapes *shapes, const char *text);
void cli_shapes_deinit(cli_shapes *shapes);
/// As --shape takes it: "1x3x224x224". @return `buf`
char *cli_shape_text(const tide_shape *shape, char *buf, size_t buf_bytes);

/// `text` as it can be shown: control characters, marks that turn the direction of text, and bytes that are no UTF-8
/// replaced. For names out of files.
/// @return `buf`, cut at a whole character
char *cli_clean(const char *text, char *buf, size_t buf_bytes);

/// tidemark's own bookkeeping so far: peak bytes and allocations of host_alloc.
void cli_json_own_memory(tide_json_out *j, const char *key);

#endif
