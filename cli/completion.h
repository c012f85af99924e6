// SPDX-License-Identifier: MIT
//
// completion: what a shell needs to complete a command line of tidemark, made of the table of commands (cli.h), their
// options, and the values of those (option_values.h).
#ifndef TIDE_CLI_COMPLETION_H
#define TIDE_CLI_COMPLETION_H

#include "core/base/text.h"

/// A script of bash, zsh or fish; where the shell looks for it says `tidemark help --help`. Memory: look whether `out`
/// failed.
void cli_completion_bash(tide_text *out);
void cli_completion_zsh(tide_text *out);
void cli_completion_fish(tide_text *out);

#endif
