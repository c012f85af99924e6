// SPDX-License-Identifier: MIT
//
// tidemark: all that another program may use. What holds in all of it (units, ownership, threads) stands in status.h.
//
//     status.h   what every call returns, and what it says when it fails
//     memory.h   devices, kinds, allocators, blocks, scopes; the observer that hears of them
//     record.h   keep what happens to memory in a trace file
//     trace.h    read one: runs, kinds, blocks, who was live when, peaks
//     plan.h     lifetimes in, memory plan out
//     version.h  of the headers and of the library
#ifndef TIDEMARK_TIDEMARK_H
#define TIDEMARK_TIDEMARK_H

#include "tidemark/memory.h"
#include "tidemark/plan.h"
#include "tidemark/record.h"
#include "tidemark/status.h"
#include "tidemark/trace.h"
#include "tidemark/version.h"

#endif
