// SPDX-License-Identifier: MIT
//
// What the files of pools share. Private to analysis/.
#ifndef TIDE_ANALYSIS_POOLS_INTERNAL_H
#define TIDE_ANALYSIS_POOLS_INTERNAL_H

#include "analysis/pools.h"

/// out->at says when.
tide_status tide__pools_of_plan(tide_subject *s, int64_t t0, int64_t t1, tide_pools *out,
                                tide_error *err) TIDE_NODISCARD;
tide_status tide__pools_no_memory(tide_error *err);
/// Order and sums.
void tide__pools_finish(tide_pools *p);

#endif
