// SPDX-License-Identifier: MIT
//
// What the two files of the graph-text import share: json_graph.c reads the document with its values and nodes,
// json_tensor.c types, shapes, constants and attributes. In messages `at` of the reader names the object:
// "nodes[3] 'conv1'".
#ifndef TIDE_CORE_GRAPH_JSON_INTERNAL_H
#define TIDE_CORE_GRAPH_JSON_INTERNAL_H

#include "core/base/json.h"
#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

/// The words in which graph text is refused: tide_json_reader.refuse.
tide_status tide__json_refuse(tide_json_reader *r, const char *key, const json_t *value, json_type want);
/// Refuses what is no object and keys that are not in `known`, a list that ends with NULL.
tide_status tide__json_check_keys(tide_json_reader *r, const json_t *object, const char *const *known) TIDE_NODISCARD;
/// *out stays as it was when the key is absent.
tide_status tide__json_text_if(tide_json_reader *r, const json_t *object, const char *key,
                               const char **out) TIDE_NODISCARD;

/// `shape` of an object; names of symbolic extents go to *dim_names (owned by the caller, [rank]) when it is not
/// NULL, and are an error otherwise.
tide_status tide__json_shape(tide_json_reader *r, const json_t *list, tide_shape *out,
                             char ***dim_names) TIDE_NODISCARD;
tide_status tide__json_dtype(tide_json_reader *r, const json_t *object, tide_dtype *out) TIDE_NODISCARD;
/// What the constants of a graph may still take.
typedef struct tide__json_budget {
    size_t bytes;           ///< in all, blank ones too
    bool may_be_blank;      ///< for sizes alone
    tide_contents contents; ///< then: the contents of "random" and "fill" that are made
} tide__json_budget;
/**
 * A constant from {"dtype", "shape", and one of "values", "fill", "random"}.
 *
 * @param seed_name  its hash is the seed of "random" without one
 * @param budget     in/out: a tensor past it is refused before it is allocated
 */
tide_status tide__json_tensor(tide_json_reader *r, const json_t *object, const char *seed_name,
                              tide__json_budget *budget, tide_tensor **out) TIDE_NODISCARD;

/// Add the members of `attrs` to a node. The budget is that of the graph's tensors.
tide_status tide__json_attrs(tide_json_reader *r, tide_graph *g, uint32_t node_i, const json_t *attrs,
                             tide__json_budget *budget) TIDE_NODISCARD;
/// Store "output_types" as the attributes tide_dtypes and tide_shapes of an Opaque node.
tide_status tide__json_output_types(tide_json_reader *r, tide_graph *g, uint32_t node_i,
                                    const json_t *list) TIDE_NODISCARD;

#endif
