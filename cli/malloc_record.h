// SPDX-License-Identifier: MIT
//
// The malloc of foreign programs under `tidemark record`: the library preload/ is put into them by the loader.
#ifndef TIDE_CLI_MALLOC_RECORD_H
#define TIDE_CLI_MALLOC_RECORD_H

#include "cli/recording.h"
#include "tidemark/trace.h"

/**
 * Before the command starts: set what its programs need in this process's environment, which they get. $LD_PRELOAD of
 * the user stays, behind ours.
 *
 * @param stacks  calls of a call stack at most; 0: none. Others are an error where nothing would be recorded
 * @param torch   PyTorch programs are to tell of their modules: the same
 * @param file  of the command: a program whose malloc cannot be recorded is told in one line (AUTO), or refused (ON)
 * @return TIDE_OK; with ON, `stacks` or `torch`: TIDE_ERR_NOT_FOUND without the library, TIDE_ERR_INVALID for such a
 * program; TIDE_ERR_NOMEM
 */
tide_status cli_malloc_prepare(cli_when mode, unsigned stacks, bool torch, const char *file,
                               tide_error *err) TIDE_NODISCARD;

/// In the child that becomes the command: by this its programs know whether it lives. Nothing where there is no
/// library.
void cli_malloc_name_command(void);

/// After it: what was not recorded and why, on standard error. @return what reading the trace says
tide_status cli_malloc_print(tide_trace *t, tide_error *err) TIDE_NODISCARD;

#endif
