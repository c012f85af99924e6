// SPDX-License-Identifier: MIT
//
// run compare: a naive and a planned run of one model, tensor by tensor: the first tensor in which they differ, and
// whether a step of the planned run overwrote what a later one still reads.
#ifndef TIDE_CORE_RUNTIME_RUN_COMPARE_H
#define TIDE_CORE_RUNTIME_RUN_COMPARE_H

#include "core/runtime/context.h"
#include "core/tensor/compare.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Steps are those of the program, values those of its graph.
typedef struct tide_run_difference {
    size_t n_compared; ///< tensors, each counted as often as a step made it
    bool is_equal;     ///< all of them bit for bit, and none was overwritten too early
    // The rest is of the first step at which the runs are known to differ; where is_equal is false.
    size_t step;
    uint64_t nth;          ///< how often that step had run before (bodies of Loop and Scan)
    uint32_t value;        ///< what it made and is not the same in both runs; TIDE_NO_VALUE: it was the same
    tide_tensor_diff diff; ///< of that value, planned against naive, without a tolerance
    /// A tensor that this step read in the planned run, and that was not any more what a step had made.
    uint32_t overwritten;  ///< TIDE_NO_VALUE: there is none
    size_t made_by;        ///< the step that made it
    size_t overwritten_by; ///< the first step behind which its bytes were others; SIZE_MAX: not found
} tide_run_difference;

/**
 * Run a model in both modes, one after the other, and compare what each step makes. What no step and no output reads is
 * not compared, nor what If, Loop and Scan themselves give on: the steps that read it are.
 *
 * @param plan    with a memory plan
 * @param inputs  [n], as for tide_context_set_inputs; referenced during the call
 * @param fill    of both contexts
 * @return as tide_context_create, _set_inputs and _run; TIDE_ERR_NOMEM
 *
 * Two runs where they are equal, up to five where they are not, and one context at a time; 16 bytes of memory for each
 * tensor that is made, and two copies of the one that differs. Operators that draw numbers differ always.
 */
tide_status tide_runs_compare(tide_inference_plan *plan, tide_tensor *const *inputs, size_t n, tide_fill fill,
                              tide_run_difference *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
