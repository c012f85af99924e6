// SPDX-License-Identifier: MIT
//
// planner work: lifetimes by chance with the size mix of real traces, for planner benches and tests of scale.
//
// One tensor is born at each step, so the density (how many are alive together, on average) is the mean lifetime. What
// the mix follows: traces of training and inference show many small tensors, few large ones that make up most of the
// bytes, sizes that repeat, lifetimes of a few steps, some skip connections, and a handful of tensors that live long.
//
//     sizes      70 %  256 B … 64 KiB      lifetimes  85 %  short
//                24 %  64 KiB … 8 MiB                 15 %  long: eight times as long on average
//               5.5 %  8 … 64 MiB                    a few  all of the program: two, and one in fifty of the density
//               0.5 %  100 … 512 MiB
#ifndef TIDE_BENCH_PLANNER_WORK_H
#define TIDE_BENCH_PLANNER_WORK_H

#include "core/runtime/memory_plan.h"

/// `n` lifetimes of the mix above, sizes multiples of 256 bytes; the same for the same arguments and libm. `out` is
/// tide_lifetimes_deinit's afterwards, also on error. @return TIDE_ERR_NOMEM
tide_status tide_planner_work_make(uint64_t seed, size_t n, uint32_t density, tide_lifetimes *out,
                                   tide_error *err) TIDE_NODISCARD;

#endif
