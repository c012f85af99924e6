// SPDX-License-Identifier: MIT
//
// Names that the writer and the reader of the `tidemark.plan` document share. Private to the planner; the document is
// described in docs/plan-format.md.
#ifndef TIDE_PLANNER_PLAN_JSON_H
#define TIDE_PLANNER_PLAN_JSON_H

#define TIDE_PLAN_SCHEMA "tidemark.plan"
enum { TIDE_PLAN_SCHEMA_VERSION = 1 };

#define TIDE_PLAN_FORM_POOLS "pools"
#define TIDE_PLAN_FORM_OFFSETS "offsets"

#endif
