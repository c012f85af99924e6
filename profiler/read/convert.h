// SPDX-License-Identifier: MIT
//
// convert: the steps that converting and recovering share. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_CONVERT_H
#define TIDE_PROFILER_READ_CONVERT_H

#include "profiler/read/convert_merge.h"

/// TIDE_ERR_INVALID when both names are of one file.
tide_status tide__convert_check_names(const char *path, const char *out_path, tide_error *err) TIDE_NODISCARD;
/// Facts of meta that the recorded program told, or that are of its recording; not the counts and the state, which are
/// made anew.
tide_status tide__convert_meta(tide__in *in, tide__out *out, tide_error *err) TIDE_NODISCARD;
/// A number of meta. TIDE_ERR_BAD_INPUT without one (strict); *has is false then (lenient).
tide_status tide__convert_meta_int(tide__in *in, const char *key, int64_t *value, bool *has,
                                   tide_error *err) TIDE_NODISCARD;
/// Text of meta, cut to fit into `buf`; "" when there is none or it cannot be read.
void tide__convert_meta_text(const tide__in *in, const char *key, char *buf, size_t buf_bytes);
/// A trace of version 3 at `path` as one of this version: the same but for that number.
tide_status tide__convert_copy(const char *path, const char *out_path, tide_error *err) TIDE_NODISCARD;
/// All of a trace of version 1 or 2; counts against meta when the reading is strict.
tide_status tide__convert_old(tide__in *in, tide__out *out, uint64_t *n_lost, tide_error *err) TIDE_NODISCARD;

#endif
