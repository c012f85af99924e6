// SPDX-License-Identifier: MIT
//
// What `run`, `compare` and `allocators` say about blocks and allocators, as text and as JSON: leaks, the report of a
// failed allocation, properties and numbers of an allocator.
#ifndef TIDE_CLI_MEMORY_REPORT_H
#define TIDE_CLI_MEMORY_REPORT_H

#include <stdio.h>

#include "cli/cli.h"
#include "cli/session.h"

/// One object per block: kind, device, bytes, tag, operator, age_ns, block_id, allocator, found ("session": alive when
/// it ended; "run": alive when the contexts of its run were gone, given back later).
void cli_json_leaks(tide_json_out *j, const char *key, const cli_leaks *leaks);
/// Every block; nothing when there is none.
void cli_leaks_print(const cli_leaks *leaks, FILE *to);

void cli_oom_print(const tide_oom_report *r, FILE *to);

/**
 * A command failed in its session: print the error and, when an allocation had failed, the report on it: as text to
 * stderr, and with `json_command` also as a document of that command on stdout, with the error in words.
 *
 * @param s             may be NULL: it could not be opened
 * @param json_command  NULL: no document is wanted
 * @return the exit code of the error
 */
int cli_fail_in_session(const cli_session *s, const char *json_command, uint64_t limit_bytes, const tide_error *err);

/// Keys of tide_allocator_props and of tide_allocator_stats into the open object; what is unknown is null.
void cli_json_props(tide_json_out *j, const tide_allocator_props *p);
void cli_json_stats(tide_json_out *j, const tide_allocator_stats *s);

/// --allocator: TIDE_OK when `name` names one that can be made here; else printed through cli_usage, and false.
bool cli_parse_allocator(const cli_command *cmd, const char *name);
/// --limit: a size of 1 byte or more.
bool cli_parse_limit(const cli_command *cmd, const char *text, uint64_t *out);

#endif
