// SPDX-License-Identifier: MIT
//
// alias passes: a program's lifetimes with all alias passes that are on, each kept only where the lower bound does not
// rise. It may: of a root that is rounded up, an alias counts in whole multiples of the alignment, and one that lies
// askew takes one more of them than it would alone. Private to planner/passes.
#ifndef TIDE_PLANNER_PASSES_PASS_ALIAS_H
#define TIDE_PLANNER_PASSES_PASS_ALIAS_H

#include "planner/passes.h"

/**
 * @param gains       out [TIDE_N_PASSES], may be NULL: of the alias passes that are on
 * @param out         filled on success; tide_lifetimes_deinit
 * @param bare_bytes  out, may be NULL: the lower bound without aliases
 * @param bytes       out: the lower bound of *out
 * @return as tide_liveness
 */
tide_status tide__alias_passes_run(const tide_program *program, const tide_pass_options *opt, tide_pass_gain *gains,
                                   tide_lifetimes *out, uint64_t *bare_bytes, uint64_t *bytes,
                                   tide_error *err) TIDE_NODISCARD;

#endif
