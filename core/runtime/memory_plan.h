// SPDX-License-Identifier: MIT
//
// lifetimes and memory plan: names of their parts, copies, and what a finished plan says. The types pass between the
// planner and the runtime, and are public (tidemark/plan.h): a plan is handed to the runtime, which never asks how it
// was made. The seeds' closed birth and death are begin_step and end_step - 1.
#ifndef TIDE_CORE_RUNTIME_MEMORY_PLAN_H
#define TIDE_CORE_RUNTIME_MEMORY_PLAN_H

#include "core/memory/allocator.h"
#include "tidemark/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "intermediate", "scratch", …
const char *tide_role_name(tide_role role);
tide_status tide_role_parse(const char *text, tide_role *out, tide_error *err) TIDE_NODISCARD;

/// "none", "view", …
const char *tide_alias_kind_name(tide_alias_kind kind);
tide_status tide_alias_kind_parse(const char *text, tide_alias_kind *out, tide_error *err) TIDE_NODISCARD;

/// A copy of all there is. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;
/// What the item occupies in memory of its own: size_bytes rounded up to align_bytes, or as they are when unrounded;
/// cannot overflow for items that were added.
uint64_t tide_lifetime_aligned_bytes(const tide_lifetime *item);
/// The item that has the place, and how far item `i` lies inside it (may be NULL). O(length of the chain).
uint32_t tide_lifetimes_root(const tide_lifetimes *lt, uint32_t i, uint64_t *offset_bytes);

/// "live sum", "alignment", …
const char *tide_proof_name(tide_proof proof);
tide_status tide_proof_parse(const char *text, tide_proof *out, tide_error *err) TIDE_NODISCARD;

/// A copy of all there is; `plan` is as it was. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide_memory_plan_copy(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// The plan's buffer of that device and kind; NULL: nothing of it takes space. O(buffers).
const tide_plan_buffer *tide_memory_plan_buffer(const tide_memory_plan *p, tide_device device, tide_memory_kind kind);
/// By the name that tide_plan_region_name gives. @return false: it is none
bool tide_body_kind_parse(const char *name, tide_body_kind *out);
/// The bodies that a step lies in, the innermost first: "else of If_0", "loop of L, then of If_3"; "" for none, and for
/// a step that is none.
char *tide_lifetimes_body_of(const tide_lifetimes *lt, int64_t step, char *buf, size_t buf_bytes);
/// What the tensors of the model as it was given need apart: naive_bytes without what second runs
/// (lifetimes.recomputed) make. O(n).
uint64_t tide_memory_plan_original_bytes(const tide_memory_plan *p);
/// 1 - bytes / tide_memory_plan_original_bytes; 0 when nothing is planned.
double tide_memory_plan_saving(const tide_memory_plan *p);
/// Requested bytes the plan says a run of `planned` mode holds at its peak, per kind: the buffer counts as Workspace;
/// persistent tensors by their own kind, rounded up.
uint64_t tide_memory_plan_predicted(const tide_memory_plan *p, tide_memory_kind kind);
/// The same for any run: weights and inputs once, the rest per context. A naive run has no buffer and frees at the last
/// use, so its Workspace peaks at naive_peak_bytes; when those peaks of several naive contexts meet is not planned, nor
/// which branches and bodies a naive run goes through: TIDE_UNKNOWN_BYTES then.
uint64_t tide_memory_plan_predicted_run(const tide_memory_plan *p, tide_memory_kind kind, bool naive,
                                        uint64_t n_contexts);
/// Workspace at the peak of a naive run that went through the steps that `ran` [lifetimes.n_steps] has.
/// @return TIDE_ERR_NOMEM
tide_status tide_memory_plan_naive_peak(const tide_memory_plan *p, const bool *ran, uint64_t *out,
                                        tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
