// SPDX-License-Identifier: MIT
//
// table: tables and JSON documents as the command line prints them. On a terminal that is too narrow, columns of names
// give way.
#ifndef TIDE_CLI_TABLE_H
#define TIDE_CLI_TABLE_H

#include <stdio.h>

#include "analysis/table.h"

/// Heading and rows, each line behind `indent`, names cleaned of what a terminal would take as a command.
void cli_table_add(const tide_table *t, const char *indent, tide_text *out);
/// The same, printed; without memory it says that it is cut.
void cli_table_print(const tide_table *t, const char *indent, FILE *to);

/// Columns of the terminal: $COLUMNS, or what standard output says; 0: no limit.
size_t cli_terminal_width(void);

/// A JSON document that is written key by key into `out`: it begins with "schema": "tidemark.<name>", "version": 1.
tide_json_out cli_document_begin(const char *name, tide_text *out);
/// Closes the document, with a newline behind it.
void cli_document_end(tide_json_out *j);
/// Prints a document that ended and drops it; CLI_EXIT_OK or CLI_EXIT_DOES_NOT_FIT.
int cli_document_print(tide_text *text);

#endif
