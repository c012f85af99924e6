// SPDX-License-Identifier: MIT
//
// folders: making those that a command writes files into.
#ifndef TIDE_CLI_FOLDERS_H
#define TIDE_CLI_FOLDERS_H

#include "core/base/status.h"

/// Make the folder and all above it that are not there, with the mode that the umask leaves of `mode`.
/// @return TIDE_OK, also when it is there; TIDE_ERR_WRITE with the path and the system's words; TIDE_ERR_NOMEM
tide_status cli_make_folders(const char *path, unsigned mode, tide_error *err) TIDE_NODISCARD;
/// Make a folder that was not there, for this user alone, whose name cannot be guessed: below $TMPDIR, else /tmp.
/// @param name  what its name begins with
/// @param out   owned by the caller (tide_host_free)
/// @return as cli_make_folders
tide_status cli_make_fresh_folder(const char *name, char **out, tide_error *err) TIDE_NODISCARD;

#endif
