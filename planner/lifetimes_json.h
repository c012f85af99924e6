// SPDX-License-Identifier: MIT
//
// lifetimes_json: a table of lifetimes as JSON, which the documents `tidemark.lifetimes` (the table alone) and
// `tidemark.plan` (the table with places) share.
// Private to the planner; docs/lifetimes-format.md and docs/plan-format.md describe the documents.
#ifndef TIDE_PLANNER_LIFETIMES_JSON_H
#define TIDE_PLANNER_LIFETIMES_JSON_H

#include "core/base/json.h"
#include "core/base/json_out.h"
#include "core/base/map.h"
#include "core/runtime/memory_plan.h"

#define TIDE_LIFETIMES_SCHEMA "tidemark.lifetimes"
enum { TIDE_LIFETIMES_SCHEMA_VERSION = 1 };

/// Model, points, order, recomputed nodes and tensors of a document; `names` gets tensor name -> index.
tide_status tide__lifetimes_json_read(tide_json_reader *r, const json_t *root, tide_lifetimes *out,
                                      tide_strmap *names) TIDE_NODISCARD;

/// "points" and "recomputed" where there are any, then "order".
void tide__lifetimes_json_add_names(tide_json_out *j, const tide_lifetimes *lt);
/// The keys of one tensor, into the open object. `fixed_offset` is what the key of that name says; TIDE_NO_OFFSET: the
/// key is left out.
void tide__lifetimes_json_add_tensor(tide_json_out *j, const tide_lifetimes *lt, size_t i, uint64_t fixed_offset);

#endif
