// SPDX-License-Identifier: MIT
//
// What the files of the graph-text import share.
#ifndef TIDE_CORE_GRAPH_JSON_INTERNAL_H
#define TIDE_CORE_GRAPH_JSON_INTERNAL_H

#include <jansson.h>

#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

// ---- json_keys.c ----

/// `what` names the object in messages: "nodes[3] 'conv1'". NULL-terminated list of known keys.
tide_status tide__json_check_keys(const json_t *object, const char *const *known, const char *what,
                                  tide_error *err) TIDE_NODISCARD;
/// The member as the wanted type. Absent: NULL in *out when `required` is false, TIDE_ERR_BAD_INPUT otherwise.
tide_status tide__json_member(const json_t *object, const char *key, json_type type, bool required, const char *what,
                              json_t **out, tide_error *err) TIDE_NODISCARD;
/// The same for a string; *out stays as it was when the member is absent.
tide_status tide__json_string(const json_t *object, const char *key, bool required, const char *what, const char **out,
                              tide_error *err) TIDE_NODISCARD;

// ---- json_tensor.c ----

/// `shape` of an object; names of symbolic extents go to *dim_names (owned by the caller, [rank]) when it is not
/// NULL, and are an error otherwise.
tide_status tide__json_shape(const json_t *list, const char *what, tide_shape *out, char ***dim_names,
                             tide_error *err) TIDE_NODISCARD;
tide_status tide__json_dtype(const json_t *object, const char *what, tide_dtype *out, tide_error *err) TIDE_NODISCARD;
/// What the constants of a graph may still take.
typedef struct tide__json_budget {
    size_t bytes;           ///< in all, blank ones too
    bool may_be_blank;      ///< for sizes alone
    tide_contents contents; ///< then: the contents of "random" and "fill" that are made
} tide__json_budget;
/**
 * A constant from {"dtype", "shape", and one of "values", "fill", "random"}.
 *
 * @param seed_name     whose hash is the seed of "random" without one
 * @param budget  in/out: a tensor past it is refused before it is allocated
 */
tide_status tide__json_tensor(const json_t *object, const char *what, const char *seed_name, tide__json_budget *budget,
                              tide_tensor **out, tide_error *err) TIDE_NODISCARD;

// ---- json_attr.c ----

/// Add the members of `attrs` to a node. The budget is that of the graph's tensors.
tide_status tide__json_attrs(tide_graph *g, uint32_t node_i, const json_t *attrs, tide__json_budget *budget,
                             const char *what, tide_error *err) TIDE_NODISCARD;
/// Store "output_types" as the attributes tide_dtypes and tide_shapes of an Opaque node.
tide_status tide__json_output_types(tide_graph *g, uint32_t node_i, const json_t *list, const char *what,
                                    tide_error *err) TIDE_NODISCARD;

#endif
