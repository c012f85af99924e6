// SPDX-License-Identifier: MIT
//
// assert: the switch of the slow ones. See assert.h.
#include "core/base/assert.h"

bool tide__assert_slow;

void tide_assert_slowly(bool on) { tide__assert_slow = on; }
