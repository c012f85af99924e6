// SPDX-License-Identifier: MIT
//
// plan_rows: a memory plan as rows of a trace, in and out. Private to profiler/.
#ifndef TIDE_PROFILER_PLAN_ROWS_H
#define TIDE_PROFILER_PLAN_ROWS_H

#include "core/runtime/memory_plan.h"
#include "profiler/store/sql.h"

/// Write `plan` as the plan of a run; inside the caller's transaction. TIDE_ERR_OVERFLOW when a number of it does not
/// fit into SQLite's integers.
tide_status tide__plan_rows_write(const tide__sql *s, int64_t run_id, const tide_memory_plan *plan,
                                  tide_error *err) TIDE_NODISCARD;
/// Read it back. TIDE_ERR_NOT_FOUND when the run has none; TIDE_ERR_BAD_INPUT when the rows make no plan.
tide_status tide__plan_rows_read(const tide__sql *s, int64_t run_id, tide_memory_plan **out,
                                 tide_error *err) TIDE_NODISCARD;

#endif
