// SPDX-License-Identifier: MIT
//
// sweep: memory as a function of sizes and settings: a table of points, the series that they make, and the largest
// value of an extent that fits. Points are made (planned, run) by a higher floor.
#ifndef TIDE_ANALYSIS_SWEEP_H
#define TIDE_ANALYSIS_SWEEP_H

#include <jansson.h>

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One model at one size, planned one way.
typedef struct tide_sweep_point {
    char *model;    ///< path as given; owned
    char *sizes;    ///< all extents and shapes that were given, the swept one first: "N=8 S=128"; "" none; owned
    char *strategy; ///< owned
    uint64_t align_bytes;
    uint64_t value;                                               ///< of the swept extent; 0 without one
    uint64_t planned_bytes, weights_bytes, io_bytes, other_bytes; ///< buffers; Persistent; Default; all other kinds
    uint64_t total_bytes;                                         ///< of the four
    uint64_t process_bytes; ///< peak of the process that runs it: total_bytes, the program and its bookkeeping, or
                            ///< what loading takes, where that is more; 0: FILE is no model
    uint64_t base_bytes;    ///< of process_bytes: the program and its bookkeeping; in no file
    uint64_t naive_bytes, lower_bound_bytes, proved_bytes;
    bool proven;
    bool measured;                  ///< it was run too
    uint64_t measured_peak_bytes;   ///< with `measured`
    uint64_t plan_time_ns, time_ns; ///< time_ns with `measured`: median of a run
    char *error;                    ///< why there are no figures; NULL: there are; owned
    uint32_t rank;                  ///< the process that made it
} tide_sweep_point;

/// What "does it fit" asks about: the process of a model, else the total.
static inline uint64_t tide_sweep_needs(const tide_sweep_point *p) {
    return p->process_bytes > 0 ? p->process_bytes : p->total_bytes;
}

/// Points that differ in the value alone, by value.
typedef struct tide_sweep_series {
    const char *model, *sizes, *strategy; ///< borrowed; sizes without the swept extent
    uint64_t align_bytes;
    size_t from, n; ///< points [from, from + n)
} tide_sweep_series;

/// "the largest N that fits 8 GiB", of one series.
typedef struct tide_sweep_answer {
    size_t series;
    uint64_t budget_bytes;
    bool none_fits;                  ///< not even the smallest value
    bool is_open;                    ///< the largest value asked for fits: it may be more
    uint64_t value;                  ///< the largest that fits
    uint64_t needs_bytes;            ///< at it: tide_sweep_needs
    uint64_t next_value, next_bytes; ///< the next larger one, which was planned too and does not fit; 0 with is_open
    bool tried;                      ///< it and the next one were run within the budget as a limit
    bool ran, next_ran;              ///< with `tried`: it went through; the next one ran out of memory, as it should
    bool next_is_untried;            ///< with `tried`: not the next one: a limit on blocks says nothing about it
} tide_sweep_answer;

typedef struct tide_sweep {
    char *extent;             ///< what is swept, "N", "batch"; "" nothing; owned
    tide_sweep_point *points; ///< [n] by model, sizes, strategy, alignment, value
    size_t n, cap;
    tide_sweep_series *series; ///< [n_series]; made by tide_sweep_sort
    size_t n_series;
    tide_sweep_answer *answers; ///< [n_answers] by series, budget
    size_t n_answers;
    uint32_t n_ranks;
} tide_sweep;
void tide_sweep_deinit(tide_sweep *s);
/// `p` is taken and zeroed, also on failure.
tide_status tide_sweep_add(tide_sweep *s, tide_sweep_point *p, tide_error *err) TIDE_NODISCARD;
/// Puts the points in order, drops the second of two that are the same, makes the series.
tide_status tide_sweep_sort(tide_sweep *s, tide_error *err) TIDE_NODISCARD;
/// The series of a sorted sweep with that model, sizes (without the swept extent), strategy and alignment; false: there
/// is none. O(n_series).
bool tide_sweep_find(const tide_sweep *s, const char *model, const char *sizes, const char *strategy,
                     uint64_t align_bytes, size_t *series);
/// To the others, by series, then budget; of a sorted sweep.
tide_status tide_sweep_add_answer(tide_sweep *s, const tide_sweep_answer *a, tide_error *err) TIDE_NODISCARD;
/// The points and answers of all `parts` ([n] of one extent, each sorted) in one sorted sweep; the parts are left
/// empty, also on failure. n_ranks becomes n. TIDE_ERR_INCOMPARABLE when they sweep different extents.
tide_status tide_sweep_merge(tide_sweep *parts, size_t n, tide_sweep *out, tide_error *err) TIDE_NODISCARD;
/// The point of a series with that value; NULL: there is none. O(log n).
const tide_sweep_point *tide_sweep_at(const tide_sweep *s, size_t series, uint64_t value);

/// Asked for what one value needs, for the same one perhaps twice; TIDE_ERR_CANCELLED ends the search. Figures
/// go into the sweep by the callee.
typedef tide_status (*tide_sweep_ask)(void *ctx, uint64_t value, uint64_t *needs_bytes, tide_error *err);
/// The largest value of [lo, hi] that needs no more than the budget, when needs grow with the value: doubling, then
/// halving the interval, then the neighbours: memory need not grow at each single step (rounding, another plan), so the
/// next `n_beyond` values above the answer are asked too, and the answer moves when one of them fits. O(log(answer /
/// lo) + n_beyond) questions. TIDE_ERR_INVALID for lo 0 or above hi; else what `ask` returns.
tide_status tide_sweep_largest(uint64_t lo, uint64_t hi, uint64_t budget_bytes, unsigned n_beyond, tide_sweep_ask ask,
                               void *ctx, tide_sweep_answer *out, tide_error *err) TIDE_NODISCARD;

/// Reads `tidemark.sweep`, version 1 (docs/schemas/sweep.json), which tide_sweep_write_json writes. `where` is what
/// messages call the document; TIDE_ERR_BAD_INPUT with the key that is wrong.
tide_status tide_sweep_of_json(const json_t *doc, const char *where, tide_sweep *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
