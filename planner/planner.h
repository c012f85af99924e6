// SPDX-License-Identifier: MIT
//
// planner: lifetimes in, memory plan out. Pure: no allocation of tensor memory, no kernel, no file but plan and
// lifetime files. Making a plan of a list of lifetimes is public (tidemark/plan.h).
//
//     program | lifetimes file -> liveness -> (interference graph) -> strategy -> memory plan -> verifier
#ifndef TIDE_PLANNER_PLANNER_H
#define TIDE_PLANNER_PLANNER_H

#include "core/base/text.h"
#include "core/runtime/memory_plan.h"
#include "core/runtime/program.h"
#include "tidemark/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_DEFAULT_ALIGN = 256 };

// ---- 1 liveness ----

/**
 * Lifetimes of everything a program touches, in this order: graph inputs, constants that a live node or output uses
 * (weights), then per step its outputs and its scratch. Inputs, outputs and weights are persistent and live for all
 * steps; an output that no node uses lives for one step. Kinds: inputs and outputs Default, weights Persistent,
 * intermediates and scratch Workspace.
 *
 * @param align_bytes  of every item, a power of two (0 and others: TIDE_ERR_INVALID)
 * @param out          filled on success; tide_lifetimes_deinit
 * @return TIDE_ERR_UNKNOWN_SIZE naming the tensor (S23-19); TIDE_ERR_OVERFLOW; TIDE_ERR_NOMEM
 * Cost O(values + uses).
 */
tide_status tide_liveness(const tide_program *program, uint64_t align_bytes, tide_lifetimes *out,
                          tide_error *err) TIDE_NODISCARD;

// ---- 2 interference graph (S23-7, S23-8) ----

typedef struct tide_interference tide_interference;
/// Every pair of 11,000 tensors, or half a GiB: the graph is for looking at, and grows with the square of its tensors.
enum { TIDE_INTERFERENCE_MAX_EDGES = 1 << 26 };
/// Undirected, over the non-persistent lifetimes; built by a sweep, O(n log n + meetings). TIDE_ERR_NO_SPACE when there
/// are more meetings (aliases of one tensor, which have no edge, meet too) than TIDE_INTERFERENCE_MAX_EDGES; plans can
/// be made all the same: no strategy builds the graph.
tide_status tide_interference_build(const tide_lifetimes *lt, tide_interference **out, tide_error *err) TIDE_NODISCARD;
void tide_interference_destroy(tide_interference *g);
bool tide_interference_has_edge(const tide_interference *g, size_t a, size_t b);
size_t tide_interference_n_edges(const tide_interference *g);
/// Neighbours of lifetime `a` in ascending order, borrowed. @return their number
size_t tide_interference_neighbours(const tide_interference *g, size_t a, const uint32_t **out);
/// Whether two lifetimes conflict: both non-persistent, of one device and kind, and needed at one step: their half-open
/// intervals meet outside of gaps that keep nothing.
bool tide_lifetimes_conflict(const tide_lifetime *a, const tide_lifetime *b);
/// Whether items a and b of a table may not share bytes, which is what an edge means: they conflict or what they lie in
/// is to be kept apart, and they do not lie in the same item. O(length of the chains of aliases).
bool tide_lifetimes_may_not_share(const tide_lifetimes *lt, size_t a, size_t b);

// ---- 3 strategies ----

struct tide_problem;
struct tide_placement;

/// A row of the table.
struct tide_strategy {
    const char *name;   ///< as on the command line
    const char *what;   ///< one phrase
    const char *source; ///< paper or text it follows
    tide_plan_form form;
    /**
     * Place the items of one problem (planner/problem.h). In: `out` without places. Out: offsets (and pools, pool_list,
     * n_pools for TIDE_PLAN_POOLS) and bytes. Fixed items lie where they must: strategies that cannot say
     * TIDE_ERR_NOT_IMPLEMENTED.
     */
    tide_status (*place)(const tide_strategy *self, const struct tide_problem *problem,
                         const tide_strategy_options *opt, struct tide_placement *out, tide_error *err);
    const void *rule; ///< what `place` needs to know beside: strategies that share a function differ in it alone. NULL
};

/// Every strategy there is, in the order in which tables print them: naive first.
size_t tide_strategies(const tide_strategy *const **out);
/// How often this process has made a plan (tide_plan_make, tide_liveness): running makes none (S23-1).
uint64_t tide_planner_entries(void);
/// Bytes [lo_bytes, hi_bytes) of item `root`, which is no alias, are needed in steps [begin_step, end_step): by it, by
/// aliases inside it, or by several of them.
typedef struct tide_occupied {
    uint32_t root;
    int64_t begin_step, end_step;
    uint64_t lo_bytes, hi_bytes;
} tide_occupied;
/// What the non-persistent items occupy, as disjoint rectangles; *out [*n], tide_host_free. Their sum at a step is what
/// is alive there. O(n log n).
tide_status tide_lifetimes_occupied(const tide_lifetimes *lt, tide_occupied **out, size_t *n,
                                    tide_error *err) TIDE_NODISCARD;
/// The same plan laid end to end: a pool plan as an offset plan of the same bytes.
tide_status tide_plan_pools_to_offsets(const tide_memory_plan *plan, tide_memory_plan **out,
                                       tide_error *err) TIDE_NODISCARD;

// ---- 4 verifier: shares no code with any strategy ----

#define TIDE_VERIFY_MAP(XX)                                                                                            \
    XX(OK, "ok")                                                                                                       \
    XX(MISSING, "a tensor has no place")                                                                               \
    XX(MISALIGNED, "an offset is not a multiple of its alignment")                                                     \
    XX(OUT_OF_BUFFER, "a tensor ends outside its buffer")                                                              \
    XX(OVERLAP, "two live tensors share bytes")                                                                        \
    XX(PERSISTENT, "a persistent tensor was given a reused place")                                                     \
    XX(POOL_CONFLICT, "two live tensors share a pool")                                                                 \
    XX(POOL_SIZE, "a pool does not fit its members or the pools do not fill the buffer")                               \
    XX(TOTAL, "the plan's totals are wrong")                                                                           \
    XX(ALIAS, "an alias does not lie where it should in its target")                                                   \
    XX(FIXED, "a tensor does not lie at the offset that was given for it")                                             \
    XX(APART, "two tensors that must be kept apart share bytes")                                                       \
    XX(BUFFER, "the buffers are not those of the tensors, or do not add up to the plan")                               \
    XX(PROOF, "what the plan says is proved contradicts it")                                                           \
    XX(SPAN, "a lifetime, a gap or a size lies outside of what it belongs to")
typedef enum tide_verify_code {
#define XX(name, text) TIDE_VERIFY_##name,
    TIDE_VERIFY_MAP(XX)
#undef XX
} tide_verify_code;

typedef struct tide_verify_result {
    tide_verify_code code;
    size_t a, b; ///< lifetimes concerned; SIZE_MAX: none
} tide_verify_result;
const char *tide_verify_text(tide_verify_code code);
/// TIDE_OK and code OK for a sound plan; TIDE_ERR_VERIFY with code, tensors and offsets in words otherwise. `result`
/// may be NULL. Sweep over steps, O(n log n) time, O(n) memory.
tide_status tide_plan_verify(const tide_memory_plan *plan, tide_verify_result *result, tide_error *err) TIDE_NODISCARD;

// ---- words and files ----

typedef enum tide_stage { TIDE_STAGE_LIVENESS, TIDE_STAGE_GRAPH, TIDE_STAGE_COLOUR, TIDE_STAGE_PLAN } tide_stage;
/// Print one of the four stages of seed 23 as text, for `plan --dump-stage` (S23-2).
tide_status tide_plan_dump_stage(const tide_memory_plan *plan, tide_stage stage, tide_text *out,
                                 tide_error *err) TIDE_NODISCARD;
/// The boxed report of S23-16: every tensor or pool, then the totals.
void tide_plan_report(const tide_memory_plan *plan, tide_text *out);
/// Its totals alone.
void tide_plan_verdict(const tide_memory_plan *plan, tide_text *out);
/// `plan --all`: one row per plan: strategy, form, bytes, gap to the lower bound, saving, pools, time.
void tide_plan_table(const tide_memory_plan *const *plans, size_t n, tide_text *out);

/// The `tidemark.plan` document (keys: docs/plan-format.md) over plans of the same lifetimes; `fits` may be NULL,
/// else "yes", "no" or "unknown". Ends with a newline.
tide_status tide_plan_to_json(const tide_memory_plan *const *plans, size_t n, const char *fits, tide_text *out,
                              tide_error *err) TIDE_NODISCARD;
/// Read such a document back: the plan of `strategy`, or its first one for NULL (TIDE_ERR_NOT_FOUND: none of that
/// name). Recomputes totals and verifies: what does not hold is TIDE_ERR_BAD_INPUT, with the place in the document.
tide_status tide_plan_from_json(const char *data, size_t len, const char *path, const char *strategy,
                                tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// Lifetimes from a CSV in MiniMalloc's form, with columns of ours for the rest (docs/lifetimes-format.md).
/// `align_bytes` 0 or 1: bytes count as they stand and an alignment constrains offsets alone; else sizes are rounded up
/// to their alignment, which is `align_bytes` where a line has none. TIDE_ERR_BAD_INPUT with line and column.
tide_status tide_lifetimes_from_csv(const char *data, size_t len, const char *path, uint64_t align_bytes,
                                    tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;
/// The same back, columns as they are needed. With `plan` (of these lifetimes; may be NULL) column offset holds its
/// answer. TIDE_ERR_INVALID naming a tensor whose name no such file can hold.
tide_status tide_lifetimes_to_csv(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                  tide_error *err) TIDE_NODISCARD;
/// The same of a list that is too long to be held, in parts without a plan, aliases and offsets: `note` gets each part
/// once, and then `add` each once more, in their order. Zero-initialise.
typedef struct tide_lifetimes_csv {
    bool has[32]; ///< which columns are needed
    bool is_begun;
} tide_lifetimes_csv;
/// TIDE_ERR_INVALID as of tide_lifetimes_to_csv.
tide_status tide_lifetimes_csv_note(tide_lifetimes_csv *c, const tide_lifetimes *part, tide_error *err) TIDE_NODISCARD;
/// Appends its lines to `out`, the first time behind the heading. TIDE_ERR_NOMEM
tide_status tide_lifetimes_csv_add(tide_lifetimes_csv *c, const tide_lifetimes *part, tide_text *out,
                                   tide_error *err) TIDE_NODISCARD;
/// For MiniMalloc itself: its own columns alone. Aliases are merged into what they lie in, sizes are what is taken,
/// persistent tensors are left out. TIDE_ERR_INVALID when there is more than one buffer to plan.
tide_status tide_lifetimes_to_minimalloc(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                         tide_error *err) TIDE_NODISCARD;
/// The `tidemark.lifetimes` document (docs/lifetimes-format.md): everything that a table holds. With `plan` each
/// tensor's place in it is its fixed_offset.
tide_status tide_lifetimes_to_json(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                   tide_error *err) TIDE_NODISCARD;
/// A C header (C99, C++) for firmware: size and alignment of each buffer of the plan, offset and bytes of each tensor
/// that has a place, and a table of both with first and last steps. `prefix` begins all names (tide_c_prefix_is_good);
/// NULL: the model's name does. TIDE_ERR_NOMEM; `out` is as it was then.
tide_status tide_plan_to_c_header(const tide_memory_plan *plan, const char *prefix, tide_text *out,
                                  tide_error *err) TIDE_NODISCARD;
/// Whether names that begin so are identifiers which C and C++ leave to programs: a letter first, then letters, digits
/// and single '_', none of them at the end.
bool tide_c_prefix_is_good(const char *prefix);
/// The offsets as TensorFlow Lite Micro takes them in a model's metadata ("OfflineMemoryAllocation", bytes, no text):
/// [1, 0, n, offset of each tensor], little-endian int32, -1 for what has no place; scratch of kernels is left out.
/// TIDE_ERR_INVALID for more than one buffer; TIDE_ERR_OVERFLOW naming a tensor that lies behind 2^31 - 1;
/// TIDE_ERR_NOMEM.
tide_status tide_plan_to_tflm(const tide_memory_plan *plan, tide_text *out, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT with the place in the document.
tide_status tide_lifetimes_from_json(const char *data, size_t len, const char *path, tide_lifetimes *out,
                                     tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
