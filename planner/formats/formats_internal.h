// SPDX-License-Identifier: MIT
//
// The readers behind formats.h, one file each, and what they have in common: names that are unique in a table, steps,
// and tensors that lie in each other's bytes by the file's own plan.
#ifndef TIDE_PLANNER_FORMATS_FORMATS_INTERNAL_H
#define TIDE_PLANNER_FORMATS_FORMATS_INTERNAL_H

#include "core/base/map.h"
#include "core/base/text.h"
#include "planner/formats/formats.h"

/// As tide_lifetimes_from_format; `out` is empty before and freed by the caller also on failure.
tide_status tide__list_tflite(const char *data, size_t len, const char *path, tide_lifetimes *out,
                              tide_error *err) TIDE_NODISCARD;
tide_status tide__list_executorch(const char *data, size_t len, const char *path, tide_lifetimes *out,
                                  tide_error *err) TIDE_NODISCARD;
/// Whether a file begins like one.
bool tide__list_is_xla(const char *data, size_t len);
bool tide__list_is_somas(const char *data, size_t len);
/// As above, but that `out` is untouched after a failure.
tide_status tide__list_xla(const char *data, size_t len, const char *path, tide_lifetimes *out,
                           tide_error *err) TIDE_NODISCARD;
tide_status tide__list_somas(const char *data, size_t len, const char *path, tide_lifetimes *out,
                             tide_error *err) TIDE_NODISCARD;

/// The name of a builtin operator of TensorFlow Lite as its schema has it; NULL: there is none of that number.
const char *tide__tflite_operator_name(uint32_t code);

// ---- the table ----

/// Steps that a list may have; more are refused.
enum { TIDE__LIST_MAX_STEPS = 1 << 20 };

/// A table in the making. Zero-initialise but for `lt`, `path` and `err`.
typedef struct tide__list {
    tide_lifetimes *lt; ///< borrowed
    const char *path;
    tide_error *err;
    tide_strmap names; ///< of items and dynamic tensors
    size_t cap_steps, cap_dynamic, cap_regions;
} tide__list;

void tide__list_deinit(tide__list *l);
/// `name`, or `name.2`, `name.3`, … where that is taken; it is taken then. Owned by the caller.
tide_status tide__list_unique(tide__list *l, const char *name, char **out) TIDE_NODISCARD;
/// The next step; `name` is taken, also on failure.
tide_status tide__list_add_step(tide__list *l, char *name) TIDE_NODISCARD;
/// A tensor that is sized while running; `name` is taken, also on failure.
tide_status tide__list_add_dynamic(tide__list *l, char *name) TIDE_NODISCARD;
tide_status tide__list_add_region(tide__list *l, const tide_plan_region *region) TIDE_NODISCARD;
/// As tide_lifetimes_add, with what is refused as bad input of this file.
tide_status tide__list_add_item(tide__list *l, const tide_lifetime *item) TIDE_NODISCARD;

// ---- places of the file's own plan ----

/// Where the file's own plan has item `item` of the table, in memory `memory`.
typedef struct tide__own_place {
    uint32_t item, memory;
    uint64_t offset, bytes;
} tide__own_place;

/**
 * Tensors that are needed at one step and lie in each other's bytes are views or overwritten in place: the smaller one
 * becomes an alias (TIDE_ALIAS_GIVEN) of the other. The lifetimes of the table decide; they are not changed.
 *
 * @param places   [n] of items that are planned
 * @param n_apart  out: tensors that overlap another one only in part while both are needed; they are kept apart
 * @return TIDE_ERR_NOMEM
 * Cost O(n log n).
 */
tide_status tide__own_places_alias(tide_lifetimes *lt, const tide__own_place *places, size_t n, size_t *n_apart,
                                   tide_error *err) TIDE_NODISCARD;

#endif
