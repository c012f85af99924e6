// SPDX-License-Identifier: MIT
//
// The table of commands, in the order in which they are listed. It knows all of them, and nothing but main knows it:
// commands find each other through cli_commands (cli.h).
#include "cli/cli.h"

const cli_command *const cli_command_table[] = {
    &cli_command_demo,      &cli_command_plan,       &cli_command_run,
    &cli_command_compare,   &cli_command_record,     &cli_command_import,
    &cli_command_merge,     &cli_command_trace,      &cli_command_replay,
    &cli_command_tui,       &cli_command_report,     &cli_command_diff,
    &cli_command_check,     &cli_command_sweep,      &cli_command_export,
    &cli_command_help,      &cli_command_allocators, &cli_command_devices,
    &cli_command_operators, &cli_command_collect,    NULL,
};
