// SPDX-License-Identifier: MIT
//
// Bounds of values whose size is known only while running: what the operator's rule says of its results, what the file
// says of the value, what the user says of it. The smallest of the three is the value's. Private to core/graph.
#ifndef TIDE_CORE_GRAPH_BOUNDS_H
#define TIDE_CORE_GRAPH_BOUNDS_H

#include "core/graph/op_def.h"

/// What is known of the size of a value.
typedef struct tide__size {
    tide_bound_state state;
    tide_dtype dtype;
    tide_shape most, least; ///< of state COUNT: [n], and nothing
} tide__size;

/// Of a value of a known size the size itself; of a dynamic one its bound.
tide__size tide__size_of(const tide_value *v);
/// The smallest and the largest that a value can be that is sometimes `a` and sometimes `b`.
tide__size tide__size_either(const tide__size *a, const tide__size *b);
/// Whether whatever is at most `a` is at most `b`.
bool tide__size_fits(const tide__size *a, const tide__size *b);
/**
 * Give the dynamic value the bound that follows from `rule`, the file and the user; none, where none of them has one.
 *
 * @return TIDE_ERR_INVALID naming the value where the user says what cannot be; TIDE_ERR_NOMEM
 */
tide_status tide__bound_value(tide_graph *g, uint32_t value_i, const tide__size *rule, tide_error *err) TIDE_NODISCARD;
/// The same for all that the dynamic node makes, by the rule of its operator. `known` [n_values]: contents that are not
/// constants of the graph; may be NULL.
tide_status tide__bound_node(tide_graph *g, tide_node *n, tide_tensor *const *known, tide_error *err) TIDE_NODISCARD;
/// All that the user named are dynamic values. TIDE_ERR_NOT_FOUND naming the first that is none.
tide_status tide__bounds_check_given(const tide_graph *g, tide_error *err) TIDE_NODISCARD;

#endif
