// SPDX-License-Identifier: MIT
//
// formats: models and plans of other compilers as lists of lifetimes (docs/interchange.md). What a file says of sizes
// and of the order of its steps becomes the table; where it has a plan of its own, that plan's places are left out, so
// that any strategy may do better, and what it needs is in `given_plan_bytes` of the table.
#ifndef TIDE_PLANNER_FORMATS_FORMATS_H
#define TIDE_PLANNER_FORMATS_FORMATS_H

#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_list_format {
    TIDE_LIST_UNKNOWN,
    TIDE_LIST_TFLITE,     ///< model of TensorFlow Lite
    TIDE_LIST_EXECUTORCH, ///< program of ExecuTorch
    TIDE_LIST_XLA,        ///< texts of XLA's buffer assignment
    TIDE_LIST_SOMAS,      ///< text of MindSpore's planner
} tide_list_format;

/// "a TensorFlow Lite model", …; static text.
const char *tide_list_format_name(tide_list_format format);
/// By the first bytes of the content; `len` is all of it. TIDE_LIST_UNKNOWN: none of these.
tide_list_format tide_list_look(const char *data, size_t len);
/**
 * Read a list of lifetimes out of such a file. What of it takes memory and has no place in the table is counted in
 * notes of the log.
 *
 * @param path  for messages and the table's name; of XLA, which may write two files, also where the other one is
 * looked for
 * @param out   filled on success; tide_lifetimes_deinit
 * @return TIDE_ERR_BAD_INPUT with the place in the file for what is cut, damaged or contradicts itself, and for what
 *         cannot be said as a list; TIDE_ERR_NOMEM
 * Cost O(n log n) in the entries of the file.
 */
tide_status tide_lifetimes_from_format(tide_list_format format, const char *data, size_t len, const char *path,
                                       tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
