// SPDX-License-Identifier: MIT
//
// What the files of the baseline share.
#ifndef TIDE_GATE_BASELINE_INTERNAL_H
#define TIDE_GATE_BASELINE_INTERNAL_H

#include "gate/baseline.h"

#define TIDE_GATE_BASELINE_SCHEMA "tidemark.baseline"
/// Of version 1 the figures of models hold kernels' scratch, and cases know neither caches nor content.
enum { TIDE_GATE_BASELINE_VERSION = 2, TIDE_GATE_BASELINE_OLDEST = 1 };

void tide__baseline_update_deinit(tide_gate_update *u);

#endif
