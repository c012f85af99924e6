// SPDX-License-Identifier: MIT
//
// table: rows of text in columns as wide as they need to be; on a terminal that is too narrow, columns of names give
// way.
#ifndef TIDE_CLI_TABLE_H
#define TIDE_CLI_TABLE_H

#include <stdio.h>

#include "core/base/text.h"

typedef struct cli_column {
    const char *head;
    bool right;      ///< numbers: aligned at their end
    bool may_be_cut; ///< names: shortened when lines would be longer than the terminal is wide
} cli_column;

/// Zero but for the columns.
typedef struct cli_table {
    const cli_column *columns; ///< [n_columns]
    size_t n_columns;
    char **cells; ///< [n], row by row, owned
    size_t n, cap;
    bool failed; ///< out of memory: the table says so at its end
} cli_table;

/// The next cell, cleaned of what a terminal would take as a command. "" leaves it empty.
void cli_table_add(cli_table *t, const char *text);
void cli_table_addf(cli_table *t, const char *fmt, ...) TIDE_PRINTF(2, 3);
void cli_table_add_bytes(cli_table *t, uint64_t bytes); ///< "1.50 KiB"
void cli_table_add_ns(cli_table *t, uint64_t ns);       ///< "12.3 us"
/// Print head and rows, each line behind `indent`, and forget them.
void cli_table_print(cli_table *t, const char *indent, FILE *to);

/// Columns of the terminal: $COLUMNS, or what standard output says; 0: no limit.
size_t cli_terminal_width(void);

#endif
