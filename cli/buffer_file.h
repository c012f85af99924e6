// SPDX-License-Identifier: MIT
//
// buffer file: memory of the contexts of a run in a file that the user names (`run --buffer-file`), mapped shared: what
// the caller's memory of core/runtime/context.h is for a program, seen from outside.
//
//     file   | context 0: buffer, outputs | context 1 | ... | the rest is not touched |
#ifndef TIDE_CLI_BUFFER_FILE_H
#define TIDE_CLI_BUFFER_FILE_H

#include "core/runtime/context.h"

/// What a run has used of its file.
typedef struct cli_buffer_use {
    uint64_t bytes;         ///< of all contexts
    uint64_t context_bytes; ///< of one: tide_context_need
    uint64_t file_bytes;
    size_t n_contexts; ///< 0: there was no file
    bool created;      ///< there was no such file before
} cli_buffer_use;

/// All zero: none; closing it does nothing, and its parts are NULL.
typedef struct cli_buffer_file {
    char *memory;      ///< of the first context; NULL: none
    size_t part_bytes; ///< from one context to the next: need.bytes rounded up to the alignment
    void *mapping;     ///< what munmap takes; NULL: nothing is needed, nothing is mapped
    size_t mapping_bytes;
    int fd; ///< open as long as it is in use, for its lock
    cli_buffer_use use;
} cli_buffer_file;

/**
 * Map the parts of `n_contexts` contexts. Links are followed. A file that is not there is made as large as they need;
 * one that is there must be a plain file of at least that size, and keeps its size and what lies behind the parts. The
 * system reserves the room on the disk before anything is written.
 *
 * @param out  cli_buffer_file_close after TIDE_OK. On failure `use` alone is filled, as far as it is known, and no file
 *             is left that was not there before
 * @return TIDE_ERR_NO_SPACE when the file is too small (the message has both numbers, the hint the way out);
 *         TIDE_ERR_WRITE when it cannot be made or written, is no plain file, is in use by another run, or is mapped by
 *         this process (weights); TIDE_ERR_OVERFLOW; TIDE_ERR_NOMEM, also for want of addresses
 */
tide_status cli_buffer_file_open(const char *path, const tide_context_need *need, size_t n_contexts,
                                 cli_buffer_file *out, tide_error *err) TIDE_NODISCARD;
/// Memory of context `i`, part_bytes of it; NULL without a file.
void *cli_buffer_file_part(const cli_buffer_file *f, size_t i);
/// After the last context is gone. The file stays.
void cli_buffer_file_close(cli_buffer_file *f);

#endif
