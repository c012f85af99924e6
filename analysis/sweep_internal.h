// SPDX-License-Identifier: MIT
//
// What the parts of a sweep share. Private to analysis/.
#ifndef TIDE_ANALYSIS_SWEEP_INTERNAL_H
#define TIDE_ANALYSIS_SWEEP_INTERNAL_H

#include "analysis/sweep.h"

void tide__sweep_point_deinit(tide_sweep_point *p);
/// The sizes of a point without the swept extent, borrowed from it; all of them where nothing is swept. NULL: they do
/// not begin with "<extent>=<value>".
const char *tide__sweep_rest(const char *extent, const tide_sweep_point *p);

#endif
