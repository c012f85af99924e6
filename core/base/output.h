// SPDX-License-Identifier: MIT
//
// output: the one way in which tidemark writes files.
//
// A file is whole or as it was: it is made under another name beside its place and renamed at the end.
//
//     <folder>/.<name>.tidemark-tmp-<16 hex digits>     a file, or a folder where SQLite makes its files
//
// The name cannot be guessed and is made by O_EXCL, so nothing that lies there already is written through; a lock on it
// lives as long as its writer. The next writer of the same file removes temporary files without a writer. A program
// that wants nothing left behind by a signal either calls tide_output_remove_all in its handler (cli/main does).
//
// What has the name before:
//     nothing              the new file gets the mode that the umask leaves
//     a file               keeps its mode, owner and group
//     a symbolic link      what it leads to is written, there already or not; a link of another user in a
//                          folder that all users may write to, as /tmp, is refused, as the kernel does
//     several hard links   written in place, so that they stay one file; also where owner or access list could not be
//                          kept, where the folder takes no new file, and where the file is a mount point
//     a pipe, a terminal, /dev/null, /dev/stdout      written to as it is
//     a file without the right to write it, a folder  an error
#ifndef TIDE_CORE_BASE_OUTPUT_H
#define TIDE_CORE_BASE_OUTPUT_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "-" is standard output. @return TIDE_OK; TIDE_ERR_WRITE with the path and the system's words; TIDE_ERR_NOMEM
tide_status tide_write_file(const char *path, const char *data, size_t len, tide_error *err) TIDE_NODISCARD;
/// Add to the end of a file with one write, so that what several processes append is not mixed. As tide_write_file.
tide_status tide_append_file(const char *path, const char *data, size_t len, tide_error *err) TIDE_NODISCARD;

/// A file that is made by a library which wants its name, and may put others beside it: in a folder that is ours alone.
typedef struct tide_output tide_output;

/// @param out  owned by the caller: tide_output_end or tide_output_drop
/// @return TIDE_OK; TIDE_ERR_WRITE also for what is there and no plain file; TIDE_ERR_NOMEM
tide_status tide_output_begin(const char *path, tide_output **out, tide_error *err) TIDE_NODISCARD;
/// Where the file is to be made. Nothing is there yet.
const char *tide_output_file(const tide_output *o);
/// `path` behind all links: what is going to be replaced.
const char *tide_output_target(const tide_output *o);
/// The file is whole: give it its name and free `o`, on failure without the file.
tide_status tide_output_end(tide_output *o, tide_error *err) TIDE_NODISCARD;
/// Remove the folder with all that is in it. NULL does nothing.
void tide_output_drop(tide_output *o);

/// `path` behind all links, of which the last may lead to nothing yet. Owned by the caller (tide_host_free).
/// @return TIDE_OK; TIDE_ERR_WRITE: links that lead to each other, or that may not be followed; TIDE_ERR_NOMEM
tide_status tide_output_follow(const char *path, char **out, tide_error *err) TIDE_NODISCARD;
/// What an output that cannot be written is called, from errno `why`. @return TIDE_ERR_WRITE, TIDE_ERR_NOMEM
tide_status tide_output_failed(const char *what, const char *path, int why, tide_error *err);

/// A file that is written piece by piece, for what is too large to be held: whole once tide_output_end was called, or
/// as it was. "-" is standard output; that, pipes and devices are written to as the pieces come, and an end that is
/// never called leaves them cut.
/// @param out  owned by the caller: tide_output_end or tide_output_drop
/// @return TIDE_OK; TIDE_ERR_WRITE with the path and the system's words; TIDE_ERR_NOMEM
tide_status tide_output_open(const char *path, tide_output **out, tide_error *err) TIDE_NODISCARD;
/// The next `len` bytes of a file of tide_output_open: one write of the system. @return TIDE_OK, TIDE_ERR_WRITE
tide_status tide_output_put(tide_output *o, const char *data, size_t len, tide_error *err) TIDE_NODISCARD;

/// Remove what this process has not finished. Async-signal-safe.
void tide_output_remove_all(void);

#ifdef __cplusplus
}
#endif
#endif
