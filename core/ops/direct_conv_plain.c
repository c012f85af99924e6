// SPDX-License-Identifier: MIT
//
// The direct convolution in instructions of any processor's, vectors of four. See direct_conv.h.
#define KIND
#define RUN tide__direct_conv_plain
#define LANES 4
#define WIDE 4
#define ADD_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#define BLOCKS XX(4, 2) XX(4, 1) XX(2, 4) XX(2, 2) XX(2, 1) XX(1, 8) XX(1, 4) XX(1, 2) XX(1, 1)

#include "core/ops/direct_conv_body.h"
