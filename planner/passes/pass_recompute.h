// SPDX-License-Identifier: MIT
//
// The work of a program's steps, as the passes count it. Private to planner/passes.
#ifndef TIDE_PLANNER_PASSES_PASS_RECOMPUTE_H
#define TIDE_PLANNER_PASSES_PASS_RECOMPUTE_H

#include "planner/passes.h"

/**
 * Work of every step: multiply-adds as its operator says, else elements that it writes; none for a view that is an
 * alias.
 *
 * @param per_step  out [n_steps], may be NULL  @param total  out, may be NULL
 */
tide_status tide__program_work(const tide_program *program, const tide_pass_options *opt, double *per_step,
                               double *total, tide_error *err) TIDE_NODISCARD;

#endif
