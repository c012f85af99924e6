// SPDX-License-Identifier: MIT
//
// value_operand (private to core/runtime): a value of the graph as kernels see it, and which constants are weights.
#ifndef TIDE_CORE_RUNTIME_VALUE_OPERAND_H
#define TIDE_CORE_RUNTIME_VALUE_OPERAND_H

#include "core/graph/passes.h"

/**
 * Fill `out` with dtype, shape and bytes of `value_i` (TIDE_NO_VALUE: an omitted operand); data is that of the
 * constant, else NULL.
 *
 * @return TIDE_ERR_UNKNOWN_SIZE naming the value when its dtype or an extent is not known; TIDE_ERR_OVERFLOW
 */
tide_status tide__value_operand(const tide_graph *g, uint32_t value_i, tide_operand *out,
                                tide_error *err) TIDE_NODISCARD;
/// The same for a list of `n` values.
tide_status tide__value_operands(const tide_graph *g, const uint32_t *values, size_t n, tide_operand *out,
                                 tide_error *err) TIDE_NODISCARD;
/// The same for one value as large as it can be: of a bounded one its bound, without data.
tide_status tide__value_most(const tide_graph *g, uint32_t value_i, tide_operand *out, tide_error *err) TIDE_NODISCARD;
/// Hold the address of a constant for good: kernels and contexts keep it. The constant gets memory of its own first
/// where it shares it with lazy clones. @return TIDE_ERR_NOMEM, TIDE_ERR_BUSY (a guard), naming the constant
tide_status tide__fix_constant(tide_tensor *constant, const char *name, tide_error *err) TIDE_NODISCARD;
/// Set is_weight[v] for every constant that a node of `order` reads or that is a graph output. @return their number
size_t tide__mark_weights(const tide_graph *g, const tide_order *order, bool *is_weight);

#endif
