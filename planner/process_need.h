// SPDX-License-Identifier: MIT
//
// process need: what a process takes that loads a model and runs it by a plan, part by part: the answer to *will it
// fit*.
//
//     while it is loaded   | program | own | constants, those of folding with them |
//     while it runs        | program | own | weights | in the file | inputs, outputs | buffer |
//                                                        shared by contexts            each its own: outputs, buffer
//
// Predicted from the model alone; the same on every machine. What the kernel counts (VmHWM) is within 5 % + 20 MB of
// it: tests/cli/process.py, docs/benchmarks.md.
#ifndef TIDE_PLANNER_PROCESS_NEED_H
#define TIDE_PLANNER_PROCESS_NEED_H

#include "core/base/json_out.h"
#include "core/runtime/memory_plan.h"
#include "core/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_process_need {
    uint64_t program_bytes;         ///< code of the program and its libraries, code of kernels, threads
    uint64_t own_bytes;             ///< graph, program, plan: tidemark's own bookkeeping
    uint64_t weights_bytes;         ///< in memory of the process
    uint64_t mapped_bytes;          ///< weights that stay in their file: shared with other processes that map it
    uint64_t inputs_bytes;          ///< shared by contexts
    uint64_t outputs_bytes;         ///< of all contexts
    uint64_t buffer_bytes;          ///< the plan's, of all contexts
    uint64_t constants_bytes;       ///< the most that constants take while the model is loaded
    uint64_t load_bytes, run_bytes; ///< peaks of the two; no sum passes 2^64 - 1
    uint64_t peak_bytes;            ///< the larger one
    uint64_t n_contexts;
    uint64_t context_bytes; ///< what one more context takes
} tide_process_need;

/// Of a model that runs by a plan of it, in `n_contexts` contexts. No memory is taken, O(tensors).
tide_process_need tide_process_need_of(const tide_program *program, const tide_memory_plan *plan, uint64_t n_contexts);
/// The peak if the plan's buffer had so many bytes in each context: a bound, or another plan.
uint64_t tide_process_need_with(const tide_process_need *need, uint64_t buffer_bytes);
/// "process: 24.85 MiB: program 16.00 MiB, …": one line.
void tide_process_need_print(const tide_process_need *need, tide_text *out);
/// As the object "process", keys as the fields.
void tide_process_need_json(tide_json_out *j, const tide_process_need *need);

#ifdef __cplusplus
}
#endif
#endif
