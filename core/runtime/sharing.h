// SPDX-License-Identifier: MIT
//
// sharing (private to core/runtime): which values of a plan lie on each other's bytes, and whether the operators allow
// it. The rule is about bytes, not about the aliases that a plan names, and holds for every plan:
//
//     what a step writes belongs to no live value, but for the input that it may overwrite
//
//     step      x: a view of w       y = Relu(x) in place      z = Concat(y, v)
//     writes    nothing              its output                its output without the parts that are there already
//
// A slot with its red zone belongs to its value alone; an alias's slot is just its bytes.
#ifndef TIDE_CORE_RUNTIME_SHARING_H
#define TIDE_CORE_RUNTIME_SHARING_H

#include "core/runtime/alias_facts.h"
#include "core/runtime/places.h"

/// The aliases of a value: those whose slots overlap its own while both are alive.
typedef struct tide__sharing {
    uint32_t *first; ///< [n_values + 1] those of v are list[first[v]] … list[first[v + 1] - 1]
    uint32_t *list;
    uint64_t copied_bytes;       ///< what views, slices and Concat copy in one planned run
    uint64_t naive_copied_bytes; ///< and in a naive one
} tide__sharing;

/**
 * Check every overlap and note it.
 *
 * @param values   [n_values] places that have been checked one by one; NULL: there is no plan, nothing shares
 * @param scratch  [n_steps]; NULL with `values`
 * @return TIDE_ERR_RUNTIME naming node, tensors and offsets where a step would write what is still needed;
 * TIDE_ERR_NOMEM Cost O(sum over the steps of the values alive there).
 */
tide_status tide__sharing_check(const tide_program *p, const tide__need *needs, const tide__place *values,
                                const tide__place *scratch, tide__sharing *out, tide_error *err) TIDE_NODISCARD;
void tide__sharing_deinit(tide__sharing *s);

#endif
