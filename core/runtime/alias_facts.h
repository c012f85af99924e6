// SPDX-License-Identifier: MIT
//
// alias facts: what the operators of a program say about operands that may share bytes. One table, from which the
// planner's alias passes choose, and against which the runtime checks every plan it is given.
#ifndef TIDE_CORE_RUNTIME_ALIAS_FACTS_H
#define TIDE_CORE_RUNTIME_ALIAS_FACTS_H

#include "core/graph/op_def.h"
#include "core/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One input and one output of one step that may share bytes; neither is a constant.
typedef struct tide_alias_fact {
    uint32_t step;
    uint32_t in_i, out_i;         ///< which input and output of its node
    uint32_t in_value, out_value; ///< in the graph
    tide_op_alias alias;          ///< kind NONE when only the next is true
    bool may_overwrite;           ///< out_i is 0 and may overwrite the input
    uint64_t bytes;               ///< of the operand that lies inside the other, or overwrites it
    /// Of kind NEXT (out_value is what the region makes): the last step of the body that reads out_value, -1: none
    /// does. Behind it nothing needs the bytes of out_value until the body ends.
    int64_t last_read;
} tide_alias_fact;

typedef struct tide_alias_facts {
    tide_alias_fact *list; ///< [n] by step, then output, then input
    size_t n, cap;
    size_t *first; ///< [n_steps + 1] those of step s are list[first[s]] … list[first[s + 1] - 1]
    size_t n_steps;
} tide_alias_facts;

/// @return TIDE_ERR_UNKNOWN_SIZE or TIDE_ERR_OVERFLOW naming a tensor, TIDE_ERR_BUSY (a guarded constant),
/// TIDE_ERR_NOMEM
tide_status tide_alias_facts_make(const tide_program *p, tide_alias_facts *out, tide_error *err) TIDE_NODISCARD;
/// The fact by which `value_i` gets other content at the end of the body that `step` belongs to; NULL: there is none.
const tide_alias_fact *tide_alias_fact_next(const tide_program *p, const tide_alias_facts *f, uint32_t value_i,
                                            int64_t step);
/// Keep what both say: the same alias, at the same offset, and overwriting that both allow. For one program at several
/// sizes, its steps in the same order each time. @return TIDE_ERR_INCOMPARABLE when the numbers of steps differ
tide_status tide_alias_facts_narrow(tide_alias_facts *f, const tide_alias_facts *other, tide_error *err) TIDE_NODISCARD;
void tide_alias_facts_deinit(tide_alias_facts *f);

#ifdef __cplusplus
}
#endif
#endif
