// SPDX-License-Identifier: MIT
//
// alias live (private to planner/passes): bytes alive at each step of a table as its aliases are now. What aliases
// share counts once.
#ifndef TIDE_PLANNER_PASSES_ALIAS_LIVE_H
#define TIDE_PLANNER_PASSES_ALIAS_LIVE_H

#include "core/runtime/memory_plan.h"

/// @param out  owned, [lt->n_steps] of the Workspace; tide_host_free
tide_status tide__alias_live_bytes(const tide_lifetimes *lt, uint64_t **out, tide_error *err) TIDE_NODISCARD;

#endif
