// SPDX-License-Identifier: MIT
//
// passes over a program that make the lower bound itself smaller, before any strategy packs: what lies inside what
// (views, in-place, slices, Concat's parts), in which order operators run, what is computed twice. Each can be switched
// off; the report says what each one gained.
#ifndef TIDE_PLANNER_PASSES_H
#define TIDE_PLANNER_PASSES_H

#include "core/runtime/alias_facts.h"
#include "planner/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_PASS_MAP(XX)                                                                                              \
    XX(VIEWS, "views")         /* Reshape, Squeeze, Flatten, Identity: one lifetime for all aliases (X-6) */           \
    XX(SLICES, "slices")       /* outputs of Split and Slice that lie in the input without gaps */                     \
    XX(IN_PLACE, "in-place")   /* the output overwrites an input that dies there */                                    \
    XX(PARTS, "parts")         /* inputs of Concat are made where the output has them */                               \
    XX(ORDER, "order")         /* the order of operators with the smallest peak */                                     \
    XX(RECOMPUTE, "recompute") /* tensors made twice instead of kept */
typedef enum tide_pass {
#define XX(name, text) TIDE_PASS_##name,
    TIDE_PASS_MAP(XX)
#undef XX
        TIDE_N_PASSES
} tide_pass;
const char *tide_pass_name(tide_pass pass);
tide_status tide_pass_parse(const char *text, tide_pass *out, tide_error *err) TIDE_NODISCARD;

typedef struct tide_pass_options {
    bool off[TIDE_N_PASSES];
    double recompute_share; ///< extra work allowed, as a share of the program's own (0.1: 10 %); 0: no recompute
    uint64_t align_bytes;   ///< as of tide_liveness
    uint64_t order_states;  ///< how much the order pass may look at; 0: its default. Decides alone, no clock does
} tide_pass_options;

/// What one pass did.
typedef struct tide_pass_gain {
    bool ran;                           ///< false: switched off, or nothing to do for it
    uint64_t before_bytes, after_bytes; ///< lower bound of the Workspace before it and with it
    size_t n;                           ///< tensors that became aliases; steps that moved; nodes that run twice
} tide_pass_gain;

typedef struct tide_pass_report {
    tide_pass_gain gains[TIDE_N_PASSES];
    uint64_t given_bytes;    ///< lower bound without any pass
    uint64_t final_bytes;    ///< with all of them
    double work, extra_work; ///< multiply-adds (or elements moved) of the program as given, and what recompute adds
    double allowed_share;    ///< of the work, that recompute might have added, had it run
    tide_quantise_stats quantised; ///< what the program has of it, whichever passes ran
    bool has_bodies;               ///< of If, Loop or Scan: recompute left it alone
    bool recompute_is_cut;         ///< it ended at its own limit of steps, not for want of anything that helps
} tide_pass_report;

/**
 * Lifetimes of `program` after all passes that are on. The order pass and recompute change `program`, which must have
 * no other holder (tide_program_reorder). Recompute leaves programs with bodies of If, Loop or Scan alone. Never worse
 * than without passes: one that would raise the lower bound is undone. Deterministic.
 *
 * @param report  may be NULL
 * @return as tide_liveness
 */
tide_status tide_passes_run(tide_program *program, const tide_pass_options *opt, tide_lifetimes *out,
                            tide_pass_report *report, tide_error *err) TIDE_NODISCARD;

/// One alias pass over a table that tide_liveness has made of `program`: VIEWS, SLICES, IN_PLACE or PARTS. Marks what
/// it finds with tide_lifetimes_alias and leaves what others have marked. @param n  out, may be NULL: how many
tide_status tide_pass_alias(const tide_program *program, tide_pass pass, tide_lifetimes *lt, size_t *n,
                            tide_error *err) TIDE_NODISCARD;

/**
 * The alias passes that are on over a table of several sizes (points.h) that has no aliases yet: only what the
 * operators allow at every size, at the same offsets, so that the plan serves a run at each of them.
 *
 * @param program  at one of the sizes; the table's nodes and values are its
 * @param others   [n_others] what the operators say at the rest, with the steps in the same order
 * @return TIDE_ERR_INCOMPARABLE when they have other steps; TIDE_ERR_NOMEM
 */
tide_status tide_passes_at_points(const tide_program *program, const tide_alias_facts *others, size_t n_others,
                                  const tide_pass_options *opt, tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;

/// Steps of `program` in the order with the smallest peak that `opt` lets it find: out[k] is the present step that runs
/// k-th; [program->n_steps]. *peak_bytes is what the pass itself counts for it.
tide_status tide_pass_order(const tide_program *program, const tide_pass_options *opt, uint32_t *out,
                            uint64_t *peak_bytes, tide_error *err) TIDE_NODISCARD;

/// Make `program` compute tensors twice where that lowers its peak within opt->recompute_share. *n: nodes that run
/// twice. *is_cut: it ended at its limit, a number of steps that it may look at: no clock decides.
tide_status tide_pass_recompute(tide_program *program, const tide_pass_options *opt, size_t *n, double *extra_work,
                                bool *is_cut, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
