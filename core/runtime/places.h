// SPDX-License-Identifier: MIT
//
// places (private to core/runtime): what a program needs of a memory plan, and where that plan puts each tensor.
//
//     buffer  | ... | slot of x: [offset_bytes, offset_bytes + slot_bytes) | ... |
//
// A slot is the capacity of one tensor: its planned bytes rounded up, never the rest of the buffer, so that a tensor
// that grows cannot reach its neighbour (S27-26). An alias lies inside another tensor: its slot is just its bytes.
// Which values may lie on each other is checked by sharing.h.
#ifndef TIDE_CORE_RUNTIME_PLACES_H
#define TIDE_CORE_RUNTIME_PLACES_H

#include "core/runtime/memory_plan.h"
#include "core/runtime/program.h"

/// What a value needs, known without any plan.
typedef struct tide__need {
    bool intermediate;   ///< written by a step and no graph output: has its place in the buffer
    bool dynamic;        ///< written by a step that sizes it: a block of its own, and not intermediate
    bool bounded;        ///< written by a step that sizes it, in a place with room for its bound
    uint64_t size_bytes; ///< of a bounded one: of its bound
    int64_t birth_step;  ///< step that writes it; -1: graph input or constant
    int64_t last_step;   ///< last step that reads it, birth_step when none does; n_steps for graph outputs
} tide__need;

/// Bounded values that `plan` names among those without a place have none.
void tide__needs_leave(const tide_program *p, const tide_memory_plan *plan, tide__need *needs);
/// Fill needs[n_values] from graph, order and sizes.
tide_status tide__needs_of(const tide_program *p, tide__need *needs, tide_error *err) TIDE_NODISCARD;

typedef struct tide__place {
    uint64_t offset_bytes; ///< from the start of the buffer; TIDE_NO_OFFSET: no place
    uint64_t slot_bytes;
} tide__place;

/**
 * Find the place of every intermediate and of every kernel's scratch; the strict rule of tide_inference_plan_create.
 *
 * @param device   where the buffer will be
 * @param values   out [n_values]; the place of each intermediate of more than 0 bytes, no place for the rest
 * @param scratch  out [n_steps]
 * @return TIDE_ERR_RUNTIME, TIDE_ERR_NO_SPACE, both logged too (S27-11); TIDE_ERR_NOMEM
 * Cost O(values + steps + entries) look-ups by name.
 */
tide_status tide__places_find(const tide_program *p, const tide__need *needs, const tide_memory_plan *plan,
                              tide_device device, tide__place *values, tide__place *scratch,
                              tide_error *err) TIDE_NODISCARD;

#endif
