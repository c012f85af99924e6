// SPDX-License-Identifier: MIT
//
// whatif: a plan with something changed, planned anew, to be held beside the plan as it is.
#ifndef TIDE_ANALYSIS_WHATIF_H
#define TIDE_ANALYSIS_WHATIF_H

#include "analysis/items.h"
#include "core/runtime/program.h"
#include "planner/advice.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor that others lie in keeps its bytes for as long as one of them lives, also when its own lifetime is changed.
//
// A table holds when a tensor is made and when it is read last, but not what happens in between. So `recompute` on a
// plan alone throws it away right after its birth and has it again at its last use: the most that could be saved, and
// no runtime follows such a plan. With the model it is made a second time where it is read next (tide_whatif_repeat),
// and the plan runs.
#define TIDE_EDIT_MAP(XX)                                                                                              \
    XX(FREE_EARLIER, "free-earlier") /* a tensor dies at `step` (half-open), or after its birth step for step 0 */     \
    XX(IN_PLACE, "in-place")         /* a tensor overwrites `other`, which dies where it is born */                    \
    XX(RECOMPUTE, "recompute")       /* a tensor is not kept but made again */                                         \
    XX(ALIGN, "align")               /* of a tensor, or of all (item ""; scratch not below 64): `bytes` */             \
    XX(PIN, "pin")                   /* a tensor lies at offset `bytes` */                                             \
    XX(UNPIN, "unpin")                                                                                                 \
    XX(HALF, "half")         /* it and what lies in it take half their bytes */                                        \
    XX(GONE, "gone")         /* it and what lies in it are not there at all */                                         \
    XX(STRATEGY, "strategy") /* `text` */                                                                              \
    XX(PASS, "pass")         /* pass `text` on or off ("-order"): needs the model */                                   \
    XX(EXTENT, "extent")     /* `text` as --shape takes it, or an open extent, N=8: needs the model */                 \
    XX(BATCH, "batch")       /* the first open extent of all inputs is `bytes`: needs the model */
typedef enum tide_edit_kind {
#define XX(name, text) TIDE_EDIT_##name,
    TIDE_EDIT_MAP(XX)
#undef XX
        TIDE_N_EDITS
} tide_edit_kind;
const char *tide_edit_name(tide_edit_kind kind);
/// One phrase for help and completion: "free-earlier TENSOR [STEP]".
const char *tide_edit_usage(tide_edit_kind kind);

typedef struct tide_edit {
    tide_edit_kind kind;
    char item[256], other[256]; ///< tensors by name: numbers change when the table is made anew; "": none
    int64_t step;
    uint64_t bytes;
    char text[128];
} tide_edit;
/// "in-place relu1_out conv1_out", "align 64", "batch 8"; a name with blanks in quotes, in which a backslash takes the
/// next character as it is. TIDE_ERR_INVALID with place and hint; *out is as it was then.
tide_status tide_edit_parse(const char *text, tide_edit *out, tide_error *err) TIDE_NODISCARD;
/// Back to text that parses to the same.
void tide_edit_print(const tide_edit *edit, tide_text *out);

/// Make the table again from the model with passes or extents changed; those edits of the list that the table itself
/// can serve are not its matter. NULL: there is no model, only a plan. TIDE_ERR_NOT_FOUND: nothing to change.
///
/// It is asked for passes, extents, batch, and to recompute (tide_whatif_repeat does that); where the table that comes
/// back does not compute the tensor twice, it is asked again without, and the table serves the edit as it can.
typedef tide_status (*tide_retable)(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err);

/// The batch of the model with those edits: what the first open extent of its inputs is bound to. 0: none is open.
typedef tide_status (*tide_retable_batch)(void *ctx, const tide_edit *edits, size_t n, uint64_t *batch,
                                          tide_error *err);

/// Whether the operator that makes a tensor could overwrite an input.
typedef struct tide_in_place {
    char other[256]; ///< in: the one that is asked about, "" any; out: which one: it dies there and is large enough;
                     ///< "": none
    tide_text why;   ///< otherwise: why not, in words. The caller's to free
} tide_in_place;
typedef tide_status (*tide_retable_in_place)(void *ctx, const char *tensor, tide_in_place *out, tide_error *err);
/// For that: the same of a program and the table that tide_passes_run made of it. Nothing for a tensor that no operator
/// makes, or that lies in another one already. TIDE_ERR_NOT_FOUND; as tide_alias_facts_make.
tide_status tide_whatif_in_place(const tide_program *program, const tide_lifetimes *lt, const char *tensor,
                                 tide_in_place *out, tide_error *err) TIDE_NODISCARD;

/// An open extent of the model's inputs and what it is bound to. An edit "extent NAME=VALUE" binds it otherwise.
typedef struct tide_open_extent {
    char name[96];
    uint64_t value;
} tide_open_extent;
/// Open extents of the model with those edits, but for the batch: at most `max`, *n of them.
typedef tide_status (*tide_retable_extents)(void *ctx, const tide_edit *edits, size_t n_edits, tide_open_extent *out,
                                            size_t max, size_t *n, tide_error *err);
enum { TIDE_MAX_EXTENTS = 8 }; ///< that advice looks at

/// For a retable: let a program (which has no other owner) compute `tensor` a second time before the first step that
/// reads it after the peak; where it is not waiting then, after its longest wait. `lt` is the table that
/// tide_passes_run made of it, and becomes the one that holds then. TIDE_ERR_NOT_FOUND, TIDE_ERR_INVALID with why: as
/// it was; of other failures the program may run the tensor's node twice, and `lt` is as it was.
tide_status tide_whatif_repeat(tide_program *program, const tide_pass_options *passes, const char *tensor,
                               tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;

typedef struct tide_whatif {
    const tide_memory_plan *plan; ///< as it is; borrowed
    tide_retable retable;
    tide_retable_batch batch;       ///< NULL: advice says nothing of the batch
    tide_retable_extents extents;   ///< NULL: advice says nothing of other extents
    tide_retable_in_place in_place; ///< NULL: explanations say nothing of it, advice does not know what may be in place
    void *ctx;                      ///< of all four
    tide_strategy_options options;  ///< of strategies
    const tide_edit *edits;         ///< [n]
    size_t n;
    const tide_progress *progress; ///< of tide_whatif_advise, called between plans; NULL: none. TIDE_ERR_CANCELLED
} tide_whatif;

/**
 * The plan with all edits, verified like any other. Where they do nothing but take tensors away it is never larger than
 * with fewer of them. A plan file made of it runs (`run --plan`) as long as the edits
 * keep what operators need: free-earlier below the last use, gone and half do not, and the runtime refuses them.
 *
 * @return TIDE_ERR_NOT_FOUND naming a tensor that is not there; TIDE_ERR_INVALID for an edit that makes no sense for it
 * (with why); TIDE_ERR_VERIFY; what the strategy returns
 */
tide_status tide_whatif_make(const tide_whatif *w, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// Whether a runtime could follow `plan`, which was made with the edit: it takes away nothing that an operator needs.
/// An in-place edit the runtime holds against the operators' own rules, which are not in a plan: ask
/// tide_retable_in_place.
bool tide_edit_keeps_meaning(const tide_memory_plan *plan, const tide_edit *edit);

/// Whether a plan can be followed by a run: unknown where that depends on an operator and there is only a plan.
#define TIDE_RUNS_MAP(XX) XX(NO, "no") XX(YES, "yes") XX(UNKNOWN, "unknown")
typedef enum tide_runs {
#define XX(name, text) TIDE_RUNS_##name,
    TIDE_RUNS_MAP(XX)
#undef XX
} tide_runs;
const char *tide_runs_name(tide_runs runs);

/// One more edit, and what came of it.
typedef struct tide_edit_advice {
    tide_edit edit;
    uint64_t bytes, bound_bytes; ///< of the plan made
    tide_runs runs;
} tide_edit_advice;
/// Single edits that make the plan smaller than it is with the edits of `w`, best first: for tensors alive at the peak
/// (recompute, free earlier, half), in-place, alignments, strategies; with a model also passes of which the table shows
/// nothing, half the batch, and half of each other open extent. A plan was made with each: tide_whatif_make with
/// the edit behind those of `w` gives as many bytes. With w->in_place an operator is asked before in-place is advised.
/// Strategy search gets w->options.node_limit for each, 2000 where none is set, and no time limit; with more it may
/// find less. How much is tried depends on the table's size alone: a thousand tensors take 0.1 s, a hundred thousand
/// some seconds. `out` [max].
tide_status tide_whatif_advise(const tide_whatif *w, tide_edit_advice *out, size_t max, size_t *n,
                               tide_error *err) TIDE_NODISCARD;

// ---- private to analysis/ ----

/// TIDE_ERR_NOT_FOUND with the nearest name as a hint.
tide_status tide__whatif_find(const tide_lifetimes *lt, const char *name, uint32_t *out, tide_error *err);
/// Whether the edit is one that only a model can serve.
bool tide__edit_needs_model(tide_edit_kind kind);
/// Make one edit on a table; those that the table cannot serve (strategy, pass, extent, batch) leave it as it is. After
/// a failure the table is as it was. TIDE_ERR_NOT_FOUND, TIDE_ERR_INVALID with why, TIDE_ERR_NOMEM.
tide_status tide__edit_apply(tide_lifetimes *lt, const tide_edit *edit, tide_error *err) TIDE_NODISCARD;
/// Mark the tensor and all that lies in it: inside [lt->n].
void tide__whatif_inside(const tide_lifetimes *lt, uint32_t of, bool *inside);
/// Edits that halve each open extent but the batch; *n.
tide_status tide__half_extents(const tide_whatif *w, tide_edit out[TIDE_MAX_EXTENTS], size_t *n,
                               tide_error *err) TIDE_NODISCARD;
/// Whether the table shows that a pass has run. The order pass leaves no sign.
bool tide__shows_pass(const tide_lifetimes *lt, tide_pass pass);
/// The strategy that made the plan, where it is one of ours; else the default.
const tide_strategy *tide__strategy_of_plan(const tide_memory_plan *plan);
/// Whether the table computes the tensor a second time.
bool tide__is_recomputed(const tide_lifetimes *lt, uint32_t item);

#ifdef __cplusplus
}
#endif
#endif
