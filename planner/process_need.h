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
//
// Code of the program and weights in the file are pages of files: every process that runs the model shares them, and
// the system may drop them and read them again. A limit on addresses (ulimit -v) counts them, and some more addresses
// that nothing lies at; a cgroup has to have room for what is private alone.
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
    uint64_t own_bytes;             ///< graph, program, plan, contexts: tidemark's own bookkeeping
    uint64_t weights_bytes;         ///< in memory of the process
    uint64_t mapped_bytes;          ///< weights that stay in their file: shared with other processes that map it
    uint64_t inputs_bytes;          ///< shared by contexts
    uint64_t outputs_bytes;         ///< of all contexts
    uint64_t buffer_bytes;          ///< the plan's, of all contexts
    uint64_t constants_bytes;       ///< the most that constants take while the model is loaded
    uint64_t load_bytes, run_bytes; ///< peaks of the two; no sum passes 2^64 - 1
    uint64_t peak_bytes;            ///< the larger one
    uint64_t n_contexts;
    uint64_t context_bytes;     ///< what one more context takes: buffer and outputs,
    uint64_t context_own_bytes; ///< and its bookkeeping and its thread, which are a part of own_bytes
    /// Of peak_bytes: N processes on one file take shared_bytes and N times private_bytes.
    uint64_t shared_bytes, private_bytes;
} tide_process_need;

/// What goes into the `process` of a program's table, which has all its tensors; it may have been read. O(tensors).
tide_process_facts tide_process_facts_of(const tide_program *program, const tide_lifetimes *lt);
/// Whether a table says it: it was made of a model.
static inline bool tide_process_is_known(const tide_lifetimes *lt) { return lt->process.program_bytes > 0; }
/// Of a plan whose table knows it, run in `n_contexts` contexts. No memory is taken, O(tensors).
tide_process_need tide_process_need_of(const tide_memory_plan *plan, uint64_t n_contexts);
/// What "will it fit" asks about a table whose buffers have so many bytes: the peak of the process where the table
/// knows it, else buffers, weights, inputs and outputs.
uint64_t tide_need_bytes(const tide_lifetimes *lt, uint64_t buffer_bytes);
/// "program 17.00 MiB, own 532.00 KiB, …": the parts while it runs, those of 0 bytes left out.
void tide_process_need_parts(const tide_process_need *need, tide_text *out);
/// "process: 24.85 MiB: program 16.00 MiB, …": one line.
void tide_process_need_print(const tide_process_need *need, tide_text *out);
/// As the object "process", keys as the fields; bytes above 2^63 - 1 as that.
void tide_process_need_json(tide_json_out *j, const tide_process_need *need);

#ifdef __cplusplus
}
#endif
#endif
