// SPDX-License-Identifier: MIT
//
// pickle: Python's pickle format, protocols 2 to 5, read for its data alone. Opcodes that name a class or call
// something are refused; no object is built here. What is read goes to a sink, container by container, so that a file
// of gigabytes leaves nothing behind but what the sink keeps, the stack and the memo:
//
//     bytes -> opcode -> stack [ d1 ( "addr" 4096 "size" 64 ] --SETITEMS--> sink.pairs(d1, {"addr": 4096, "size": 64})
//                        memo  [ 0: d1, 1: "addr", ... ]                     (the stack is back at d1)
//
// What stack, memo and sink hold may not be more than 64 MiB and what was read of the file, or reading ends: two bytes
// cannot become a thousand. Private to profiler/import.
#ifndef TIDE_PROFILER_IMPORT_PICKLE_H
#define TIDE_PROFILER_IMPORT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"

typedef enum tide__pickle_type {
    TIDE__PICKLE_NONE,
    TIDE__PICKLE_BOOL,
    TIDE__PICKLE_INT,   ///< v as int64_t, or as uint64_t with TIDE__PICKLE_UINT
    TIDE__PICKLE_UINT,  ///< from 2^63 on
    TIDE__PICKLE_FLOAT, ///< v has the bits of a double
    TIDE__PICKLE_TEXT,  ///< v is the sink's number of it; so with the next three
    TIDE__PICKLE_LIST,
    TIDE__PICKLE_DICT,
    TIDE__PICKLE_TUPLE,
    TIDE__PICKLE_OTHER, ///< bytes, and integers of more than 64 bits: there, and not told
} tide__pickle_type;

typedef struct tide__pickle_value {
    uint64_t type : 8; ///< tide__pickle_type
    uint64_t : 56;
    uint64_t v;
} tide__pickle_value;

/// What is done with what is read. Containers and texts get their numbers from the sink; a container may get items
/// several times. Any error ends the reading; the reader adds the place in the file to its `where`.
typedef struct tide__pickle_sink {
    void *ctx;
    tide_status (*text)(void *ctx, const char *bytes, size_t n, uint64_t *id, tide_error *err);
    tide_status (*new_list)(void *ctx, uint64_t *id, tide_error *err);
    tide_status (*new_dict)(void *ctx, uint64_t *id, tide_error *err);
    tide_status (*items)(void *ctx, uint64_t list, const tide__pickle_value *items, size_t n, tide_error *err);
    /// `n` pairs: key, value, key, value.
    tide_status (*pairs)(void *ctx, uint64_t dict, const tide__pickle_value *pairs, size_t n, tide_error *err);
    tide_status (*tuple)(void *ctx, const tide__pickle_value *items, size_t n, uint64_t *id, tide_error *err);
    /// Bytes of memory that the sink holds for what it was given.
    size_t (*held_bytes)(void *ctx);
} tide__pickle_sink;

/**
 * Read one pickle from `in`, which is called `path` in errors.
 *
 * @param root  out: what the file holds
 * @return TIDE_ERR_BAD_INPUT with the byte where it is: no pickle, cut short, an opcode that is not data, a reference
 * to nothing, more held than the file can account for; TIDE_ERR_IO, TIDE_ERR_NOMEM; what the sink returns
 */
tide_status tide__pickle_read(FILE *in, const char *path, const tide__pickle_sink *sink, tide__pickle_value *root,
                              tide_error *err) TIDE_NODISCARD;

#endif
