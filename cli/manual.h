// SPDX-License-Identifier: MIT
//
// manual: pages of the manual, in the man macros of roff, made of the table of commands and of their help, of what
// manual_about.c says of each, and of the lines of docs/everyday.md.
#ifndef TIDE_CLI_MANUAL_H
#define TIDE_CLI_MANUAL_H

#include "cli/cli.h"
#include "core/base/text.h"

/// What the help of a command does not say, for its page.
typedef struct cli_about {
    const char *command;  ///< "" for the page of the program
    const char *text;     ///< paragraphs with an empty line between them; words in `` are shown as typed
    const char *see_also; ///< commands, with a space between them
} cli_about;
/// @return NULL: there is none
const cli_about *cli_about_find(const char *command);

/// A variable or a file with what it is for.
typedef struct cli_about_name {
    const char *name;
    const char *commands; ///< those that look at it, with a space between them; NULL: all
    const char *text;
} cli_about_name;
/// All of them; the last one has no name.
extern const cli_about_name cli_about_variables[], cli_about_files[];

/// The page of a command, or with NULL that of the program. Memory: look whether `out` failed.
void cli_manual_page(const cli_command *cmd, tide_text *out);

#endif
