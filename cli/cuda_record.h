// SPDX-License-Identifier: MIT
//
// cuda_record: the CUDA memory of programs under `tidemark record`: the plug-in that the driver loads into them, and
// what the trace says of it at the end.
#ifndef TIDE_CLI_CUDA_RECORD_H
#define TIDE_CLI_CUDA_RECORD_H

#include "cli/recording.h"
#include "tidemark/trace.h"

/**
 * Set the environment of the command so that a CUDA program in it loads the plug-in.
 *
 * @param is_on  out: it does
 * @return with CLI_WHEN_ON: TIDE_ERR_NOT_FOUND for what is missing (the plug-in, a driver), TIDE_ERR_EXISTS where the
 *         user's own CUDA_INJECTION64_PATH is in the way; with CLI_WHEN_AUTO the latter is a note on standard error
 */
tide_status cli_cuda_prepare(cli_when mode, bool *is_on, tide_error *err) TIDE_NODISCARD;
/// Lines on standard error about the processes that used CUDA; nothing where none did. `quiet`: only what went wrong.
tide_status cli_cuda_print(tide_trace *t, bool quiet, tide_error *err) TIDE_NODISCARD;

#endif
