// SPDX-License-Identifier: MIT
//
// cuda_record: the CUDA memory of programs under `tidemark record`: the plug-in that the driver loads into them, and
// what the trace says of it at the end.
#ifndef TIDE_CLI_CUDA_RECORD_H
#define TIDE_CLI_CUDA_RECORD_H

#include "core/base/status.h"
#include "tidemark/trace.h"

/// --cuda: where the plug-in and a driver are; or an error; or never.
typedef enum cli_cuda_mode { CLI_CUDA_AUTO, CLI_CUDA_ON, CLI_CUDA_OFF } cli_cuda_mode;

/// False: none of the words.
bool cli_cuda_parse_mode(const char *text, cli_cuda_mode *out);
/**
 * Set the environment of the command so that a CUDA program in it loads the plug-in.
 *
 * @param is_on  out: it does
 * @return with CLI_CUDA_ON: TIDE_ERR_NOT_FOUND for what is missing (the plug-in, a driver), TIDE_ERR_EXISTS where the
 *         user's own CUDA_INJECTION64_PATH is in the way; with CLI_CUDA_AUTO the latter is a note on standard error
 */
tide_status cli_cuda_prepare(cli_cuda_mode mode, bool *is_on, tide_error *err) TIDE_NODISCARD;
/// Lines on standard error about the processes that used CUDA; nothing where none did. `quiet`: only what went wrong.
tide_status cli_cuda_print(tide_trace *t, bool quiet, tide_error *err) TIDE_NODISCARD;

#endif
