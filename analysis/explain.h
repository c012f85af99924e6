// SPDX-License-Identifier: MIT
//
// explain: why it is so much at a moment (the peak, the cursor): a partition that sums exactly, and what would happen
// to the peak without each of the large ones, up to the next binding constraint.
#ifndef TIDE_ANALYSIS_EXPLAIN_H
#define TIDE_ANALYSIS_EXPLAIN_H

#include "analysis/subject.h"
#include "analysis/whatif.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Parts of all bytes that are held at a moment, from the inside out. Each byte is in one of them.
#define TIDE_PART_MAP(XX)                                                                                              \
    XX(LIVE, "live")                   /* what live tensors or blocks asked for; aliases count once */                 \
    XX(ROUNDING, "rounding")           /* what alignment and size classes add to them */                               \
    XX(HOLES, "holes")                 /* plan: unused bytes below the highest live byte of its buffer. Trace: what is \
                                          left of segments that hold live blocks */                                    \
    XX(SLACK, "slack")                 /* plan: of the buffer above that, and of pools above what lies in them */      \
    XX(CACHED, "idle segments")        /* trace: segments that hold no live block */                                   \
    XX(UNUSED, "unused in the buffer") /* of a planned run: bytes of plans' buffers that no tensor needs then */
typedef enum tide_part_kind {
#define XX(name, text) TIDE_PART_##name,
    TIDE_PART_MAP(XX)
#undef XX
        TIDE_N_PARTS
} tide_part_kind;
const char *tide_part_name(tide_part_kind part);

typedef struct tide_explain_group {
    char *key; ///< owned: an operator, a kind
    uint64_t bytes;
    size_t n;
} tide_explain_group;

enum { TIDE_EXPLAIN_ALIKE_EVENTS = 2000000 };
/// What would be without something that is alive. Of a plan, and of tensors in the buffer of a run, a storage goes: a
/// tensor and all that share its bytes (views, in-place results, a Concat's parts), and a plan is made of the rest
/// (tide_plan_without). Of other blocks of a trace all go that have the same name and owner, iteration for iteration.
/// Of a trace of more than TIDE_EXPLAIN_ALIKE_EVENTS events (and where some were dropped) that block alone: see
/// n_alike.
typedef struct tide_without {
    uint32_t live;     ///< index in live.items: the largest of those alive that go stands for all
    const char *name;  ///< of what goes: the tensor that all others lie in, or the block's; borrowed
    uint32_t storage;  ///< that tensor, in its plan; TIDE_NO_INDEX: a block
    uint64_t n_inside; ///< how many lie in it and go as well
    uint64_t bytes;    ///< what of them is alive at the moment: the sum of their counts_bytes
    uint64_t n_alike;  ///< how many blocks of that name and owner are away, of all executions; 1 of a tensor of a plan
    uint64_t n_now;    ///< of them those that are alive at the moment; 1 of a tensor of a plan
    uint64_t peak_bytes; ///< highest of the curve then: nothing else changes. In the buffer of a run: it is as much
                         ///< smaller as its plan
    tide_moment at;      ///< where that is: the next binding constraint
    const char *step;    ///< what runs there; "" unknown; borrowed
    uint64_t plan_bytes; ///< of the plan made without it; 0 where has_plan is false
    uint64_t was_bytes;  ///< of the plan as it is
    char why_not[320]; ///< what stands against recomputing it and against making it in place; "": nothing, or not asked
    bool is_asked;     ///< ways to get there were looked for: of a plan whose model is known, of the first
                       ///< TIDE_EXPLAIN_WAYS
    bool has_way;      ///< one was found: see ways
    bool has_plan;     ///< false: no plan has it, or the table is so long that no more plans were made
} tide_without;

/// How many counterfactuals have their ways looked for: each takes some plans.
enum { TIDE_EXPLAIN_WAYS = 5 };
/// What makes the storage smaller, or be away, where the most is alive: an edit that a runtime could follow, and the
/// plan that was made with it.
typedef struct tide_way {
    size_t without;      ///< index: for which
    tide_edit edit;      ///< as what-if takes it
    uint64_t plan_bytes; ///< less than that of the plan as it is
    size_t n_again;      ///< operators that run twice then
} tide_way;

typedef struct tide_explanation {
    tide_moment at;
    uint64_t held_bytes; ///< the sum of all parts
    uint64_t parts[TIDE_N_PARTS];
    tide_live_items live; ///< who is alive; their counts_bytes sum to parts LIVE + ROUNDING of a plan, to LIVE of
                          ///< a trace: what is unused of buffers is a part, and not among them
    tide_explain_group *by_owner; ///< [n_by_owner] of live, largest first; sums to live.bytes
    size_t n_by_owner;
    tide_explain_group *by_kind; ///< [n_by_kind]
    size_t n_by_kind;
    tide_without *without; ///< [n_without] for the largest live ones that do not persist, by what they save
    size_t n_without;
    tide_way *ways; ///< [n_ways] by without; owned
    size_t n_ways;
    uint64_t second_peak_bytes; ///< highest of the curve without all of them, also those that are not in the list:
                                ///< lowering the peak below it takes more than these. 0: nothing else is alive, ever.
                                ///< Never more than without one of them
    tide_moment second_peak;
    uint64_t second_plan_bytes; ///< of a plan: what a plan without all of them takes, at most as much as without one
    bool has_second_plan;
    bool knows_ends; ///< false: events that would tell of the two before were dropped; n_without and second_peak_bytes
                     ///< are less than there is to say
} tide_explanation;

enum { TIDE_EXPLAIN_DEFAULT_WITHOUT = 20 };
/// n_without: at most so many counterfactuals; 0: nothing of the second peak either; of a trace they take 0.5 us an
/// event the first time. TIDE_ERR_NOT_FOUND for a moment whose events were dropped; TIDE_ERR_CANCELLED, after which the
/// subject can be used again.
tide_status tide_explain(tide_subject *s, tide_moment at, size_t n_without, const tide_progress *progress,
                         tide_explanation *out, tide_error *err) TIDE_NODISCARD;
void tide_explanation_deinit(tide_explanation *e);
/// "recompute r82 (1 operator runs twice)", "batch 4".
void tide_way_print(const tide_way *way, tide_text *out);
/// " and the 10 that lie in it", to stand behind the name of what goes; "" where nothing does. 64 bytes suffice.
const char *tide_without_more(const tide_without *w, char *buf, size_t buf_bytes);
/// As sentences, "\n" after each: what is held, what holds most, the peak without the largest, the next constraint.
void tide_explanation_print(const tide_explanation *e, tide_subject *s, size_t n_rows, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
