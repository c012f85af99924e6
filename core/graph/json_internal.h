// SPDX-License-Identifier: MIT
//
// What the files of the graph-text import share.
#ifndef TIDE_CORE_GRAPH_JSON_INTERNAL_H
#define TIDE_CORE_GRAPH_JSON_INTERNAL_H

#include <jansson.h>

#include "core/graph/graph_internal.h"

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
/**
 * A constant from {"dtype", "shape", and one of "values", "fill", "random"}.
 *
 * @param seed_name     whose hash is the seed of "random" without one
 * @param budget_bytes  in/out: what may still be made; a tensor past it is refused before it is allocated
 */
tide_status tide__json_tensor(const json_t *object, const char *what, const char *seed_name, size_t *budget_bytes,
                              tide_tensor **out, tide_error *err) TIDE_NODISCARD;

// ---- json_attr.c ----

/// Add the members of `attrs` to a node. The budget is that of the graph's tensors.
tide_status tide__json_attrs(tide_graph *g, uint32_t node_i, const json_t *attrs, size_t *budget_bytes,
                             const char *what, tide_error *err) TIDE_NODISCARD;
/// Store "output_types" as the attributes tide_dtypes and tide_shapes of an Opaque node.
tide_status tide__json_output_types(tide_graph *g, uint32_t node_i, const json_t *list, const char *what,
                                    tide_error *err) TIDE_NODISCARD;

#endif
