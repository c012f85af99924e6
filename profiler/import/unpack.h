// SPDX-License-Identifier: MIT
//
// unpack: the bytes of a file that may be packed, by zstd, gzip or lz4, as a stream that is read once from begin to
// end. A file is known as packed by its first bytes; several frames or members one behind the other are one text. A
// plain file is read as it is.
#ifndef TIDE_PROFILER_IMPORT_UNPACK_H
#define TIDE_PROFILER_IMPORT_UNPACK_H

#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"

typedef struct tide__unpack {
    FILE *file;                  ///< to read from
    bool is_cut;                 ///< once its end was read: the packed data went on, the file did not
    const char *path;            ///< borrowed
    struct tide__packed *packed; ///< NULL: a plain file
} tide__unpack;

/**
 * Open a file.
 *
 * @param path  borrowed until tide__unpack_close
 * @return TIDE_ERR_NOT_FOUND and others of opening, TIDE_ERR_NOMEM
 *
 * Memory: 256 KiB, and what a frame needs to look back: of zstd at most 128 MiB, which is what `zstd -d` takes too, of
 * lz4 two blocks of at most 4 MiB.
 */
tide_status tide__unpack_open(const char *path, tide__unpack *out, tide_error *err) TIDE_NODISCARD;
/// Turns a failed read into words where the packed data was at fault: then TIDE_ERR_BAD_INPUT in `err`, else `st`.
tide_status tide__unpack_fault(const tide__unpack *u, tide_status st, tide_error *err);
void tide__unpack_close(tide__unpack *u);

#endif
