// SPDX-License-Identifier: MIT
//
// help_text: the help of a command read by program, for pages of the manual and for completion. A help text is made of
// lines in one form, which tests/cli/test_help_text.c holds all of them to:
//
//       --option VALUE      what it does: the text begins in column 22, or after two spaces
//                           and goes on in the same column
//                             word    a row of a list inside of it
//     A paragraph about all of them begins in column 0.
//     Example: tidemark command FILE
#ifndef TIDE_CLI_HELP_TEXT_H
#define TIDE_CLI_HELP_TEXT_H

#include "cli/cli.h"

typedef enum cli_help_kind {
    CLI_HELP_OPTION, ///< `head`: one or more options with their values, `text`: what is said behind them, may be empty
    CLI_HELP_TEXT,   ///< more of what is said of an option
    CLI_HELP_ROW,    ///< `head`: a word, `text`: what it means
    CLI_HELP_ROW_TEXT,  ///< more of it
    CLI_HELP_PARAGRAPH, ///< a line of a paragraph
    CLI_HELP_EXIT,      ///< the first line of a paragraph about exit codes
    CLI_HELP_EXAMPLE,   ///< `text`: a command
    CLI_HELP_BLANK,
} cli_help_kind;

/// One line; borrowed from the help text.
typedef struct cli_help_line {
    cli_help_kind kind;
    const char *head, *text;
    int n_head, n_text; ///< bytes
} cli_help_line;

/// The line at `*at`, which moves on to the next one. @return false at the end of the text
bool cli_help_next(const char **at, cli_help_line *out);

/// What the help says of one option; borrowed from the help text.
typedef struct cli_help_option {
    const char *value; ///< what its value is called, "FILE"; empty: it takes none
    int n_value;
    char brief[120]; ///< what it does, up to the first full stop, colon, semicolon or bracket; may be empty
} cli_help_option;

/// @return false: the help does not name the option (it is for tests alone). O(length of the help).
bool cli_help_find(const cli_command *cmd, const struct option *option, cli_help_option *out);
/// The one letter that stands for a long option; '\0': there is none.
char cli_option_letter(const struct option *option);

#endif
