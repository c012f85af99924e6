// SPDX-License-Identifier: MIT
//
// formats: plans of other compilers as lists of lifetimes. A file is known by its content; what it says of when each
// buffer is needed becomes a table, without the places that it gives them, so that a plan of the house can do better.
// What its own plan takes is the table's given_plan_bytes. docs/interchange.md says what of each format goes where.
#ifndef TIDE_PLANNER_FORMATS_FORMATS_H
#define TIDE_PLANNER_FORMATS_FORMATS_H

#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_list_format {
    TIDE_LIST_UNKNOWN,
    TIDE_LIST_XLA,   ///< texts of XLA's buffer assignment
    TIDE_LIST_SOMAS, ///< text of MindSpore's planner
} tide_list_format;

/// What a format is called in messages: "a buffer assignment of XLA".
const char *tide_list_format_name(tide_list_format format);
/// What a file looks like by the first bytes of its content, some hundred of which are enough.
tide_list_format tide_list_look(const char *data, size_t len);
/**
 * The lifetimes of such a file.
 *
 * @param path  for messages and the table's name; of XLA, which may write two files, also where the other one is
 * looked for
 * @param out   filled on success; tide_lifetimes_deinit
 * @return TIDE_ERR_BAD_INPUT with the line, for what is damaged, contradicts itself or does not say when its buffers
 *         are needed; TIDE_ERR_NOMEM
 *
 * What takes memory and has no place in the table is counted in a log line. Costs O(n log n).
 */
tide_status tide_lifetimes_from_format(tide_list_format format, const char *data, size_t len, const char *path,
                                       tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
