// SPDX-License-Identifier: MIT
//
// The readers behind formats.h, one file each.
#ifndef TIDE_PLANNER_FORMATS_FORMATS_INTERNAL_H
#define TIDE_PLANNER_FORMATS_FORMATS_INTERNAL_H

#include "planner/formats/formats.h"

/// Whether a file begins like one; and as tide_lifetimes_from_format, but that `out` is untouched after a failure.
bool tide__list_is_xla(const char *data, size_t len);
bool tide__list_is_somas(const char *data, size_t len);
tide_status tide__list_xla(const char *data, size_t len, const char *path, tide_lifetimes *out,
                           tide_error *err) TIDE_NODISCARD;
tide_status tide__list_somas(const char *data, size_t len, const char *path, tide_lifetimes *out,
                             tide_error *err) TIDE_NODISCARD;

#endif
