// SPDX-License-Identifier: MIT
//
// PyTorch programs under `tidemark record --torch`: a Python file of ours (preload/python) comes into them by
// $PYTHONPATH, and tells the library that records their malloc what they are at.
#ifndef TIDE_CLI_TORCH_RECORD_H
#define TIDE_CLI_TORCH_RECORD_H

#include "core/base/status.h"
#include "tidemark/trace.h"

/// What is named.
typedef enum cli_torch { CLI_TORCH_OFF, CLI_TORCH_MODULES, CLI_TORCH_OPERATORS } cli_torch;

/// The argument of --torch; NULL: none, which is CLI_TORCH_MODULES. False: it is no such word.
bool cli_torch_parse(const char *text, cli_torch *out);

/// Before the command starts: set what its programs need in this process's environment. What the user has in
/// $PYTHONPATH stays, behind ours. @return TIDE_ERR_NOT_FOUND without the file; TIDE_ERR_INVALID, TIDE_ERR_NOMEM
tide_status cli_torch_prepare(cli_torch what, tide_error *err) TIDE_NODISCARD;

/// After it: in how many programs modules have names, and why not in others, on standard error; with `quiet` the latter
/// alone. @return what reading the trace says
tide_status cli_torch_print(tide_trace *t, bool quiet, tide_error *err) TIDE_NODISCARD;

#endif
