// SPDX-License-Identifier: MIT
//
// What the files of the `tidemark.plan` document share; private to them.
#ifndef TIDE_PLANNER_PLAN_JSON_INTERNAL_H
#define TIDE_PLANNER_PLAN_JSON_INTERNAL_H

#include "planner/plan_json.h"

/// Of several buffers the proof that took the most.
tide_proof tide__plan_proof(const tide_memory_plan *plan);
/// The keys of `extras` that are there, a line or more each, with the comma that ends them.
void tide__plan_json_add_extras(tide_text *out, const tide_lifetimes *lt, const tide_plan_extras *extras);

#endif
