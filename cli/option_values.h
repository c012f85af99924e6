// SPDX-License-Identifier: MIT
//
// option_values: what the value of an option can be, for completion in shells. The lists are those that the program
// tells of when a value is wrong (tests/cli/manual.py holds the two together).
#ifndef TIDE_CLI_OPTION_VALUES_H
#define TIDE_CLI_OPTION_VALUES_H

#include "cli/help_text.h"
#include "core/base/text.h"

typedef enum cli_value_kind {
    CLI_VALUE_FREE, ///< a number, a size, a name: nothing to propose
    CLI_VALUE_FILE,
    CLI_VALUE_FOLDER,
    CLI_VALUE_WORDS,
    CLI_VALUE_LIST, ///< words with commas between them
} cli_value_kind;

/// The kind of value that `option` of `cmd` takes, by `help`, what the help says of it. `words` gets the words with a
/// space between them, where there are some; its owner frees it, and looks whether it failed (memory).
cli_value_kind cli_option_values(const cli_command *cmd, const struct option *option, const cli_help_option *help,
                                 tide_text *words);

#endif
