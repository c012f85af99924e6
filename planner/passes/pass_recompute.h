// SPDX-License-Identifier: MIT
//
// What the files of recompute share, and the work of a program. Private to planner/passes.
#ifndef TIDE_PLANNER_PASSES_PASS_RECOMPUTE_H
#define TIDE_PLANNER_PASSES_PASS_RECOMPUTE_H

#include "planner/passes/pass_order_facts.h"

/**
 * Work of every step: multiply-adds as its operator says, else elements that it writes; none for a view that is an
 * alias.
 *
 * @param per_step  out [n_steps], may be NULL  @param total  out, may be NULL
 */
tide_status tide__program_work(const tide_program *program, const tide_pass_options *opt, double *per_step,
                               double *total, tide_error *err) TIDE_NODISCARD;

/// What running a sequence costs, as pass_order_model.h counts it.
typedef struct tide__trial {
    uint64_t peak_bytes;
    size_t n_peaks;    ///< steps that cost as much
    size_t first_peak; ///< the first of them
} tide__trial;

static inline bool tide__trial_is_better(const tide__trial *a, const tide__trial *b) {
    return a->peak_bytes < b->peak_bytes || (a->peak_bytes == b->peak_bytes && a->n_peaks < b->n_peaks);
}

/// A program with some steps run twice, as a sequence of its steps.
typedef struct tide__sequence {
    uint32_t *steps; ///< [n], owned
    size_t n;
    double extra_work;
} tide__sequence;

/// @param facts  out, may be NULL: of the sequence; tide__order_facts_deinit
tide_status tide__sequence_try(const tide__fact_source *source, const tide__sequence *s, tide__trial *out,
                               tide__order_facts *facts, tide_error *err) TIDE_NODISCARD;

/// Make the program run the sequence; *done: its lower bound has fallen. Else it is as it was.
tide_status tide__sequence_apply(tide_program *program, const tide_pass_options *opt, const tide__sequence *s,
                                 bool *done, tide_error *err) TIDE_NODISCARD;

/// The tensor to be made again rather than kept: which steps run a second time, right before which position.
typedef struct tide__repeat {
    uint32_t at[4]; ///< positions of their first runs, rising
    size_t n;
    uint32_t before;
    uint64_t bytes; ///< of the tensor, which need not be kept across the peak then
    double work;
} tide__repeat;

/**
 * What could be repeated to take bytes from position `peak`: tensors that are alive there, not touched there, and read
 * later, each made again from what is alive by then, with up to two makers of its inputs.
 *
 * @param is_able  [program->n_steps] whether a step may run a second time
 * @param out      the caller's array, room for `max`; *n: how many there are, most bytes per work first
 */
tide_status tide__repeats_list(const tide__order_facts *f, const uint32_t *sequence, uint32_t peak, const bool *is_able,
                               const double *work, tide__repeat *out, size_t max, size_t *n,
                               tide_error *err) TIDE_NODISCARD;

#endif
