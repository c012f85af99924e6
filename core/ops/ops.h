// SPDX-License-Identifier: MIT
//
// The operator registry: one table, one row per operator and range of opset versions.
#ifndef TIDE_CORE_OPS_OPS_H
#define TIDE_CORE_OPS_OPS_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The row that serves (domain, name) at `opset`; NULL when there is none.
const tide_op_def *tide_op_find(const char *domain, const char *name, int opset);
/**
 * Add operators of a program's own: they are found like those of the table, in graphs that are built from now on. While
 * no other thread builds a graph. docs/extending.md shows one.
 *
 * @param rows  [n], each of a domain and name and of versions that are not served yet; the rows are borrowed until
 *              tide_ops_remove_added, the array is not
 * @return TIDE_ERR_INVALID, naming the operator and what is wrong with it; TIDE_ERR_NOMEM. None is added then.
 */
tide_status tide_ops_add(const tide_op_def *const *rows, size_t n, tide_error *err) TIDE_NODISCARD;
/// Take back all that were added. When no graph or program of theirs is left, and no other thread builds one.
void tide_ops_remove_added(void);
/// All rows in table order, behind them those that were added. Borrowed until some are added or taken back. @return
/// their number
size_t tide_op_table(const tide_op_def *const **out);
/// What of a row is served, for people.
typedef struct tide_op_note {
    const tide_op_def *def;
    uint32_t types;      ///< bit t: of the type t may be …
    size_t typed_input;  ///< … this input; others may have other types
    const char *refused; ///< what the text of the operator allows and the row refuses, besides types; NULL: nothing
} tide_op_note;
/// NULL for a row that has none.
const tide_op_note *tide_op_note_of(const tide_op_def *def);
/// The types that are served: those of the row, and 16-bit floats where it takes float32 (widened.h).
uint32_t tide_op_types_served(const tide_op_note *note);
/**
 * Set node->def of every live node.
 *
 * @return TIDE_ERR_NOT_IMPLEMENTED naming operator, node and opset, with the nearest known name or the versions that
 *         are served as a hint; TIDE_ERR_BAD_INPUT for a wrong number of inputs or outputs,
 *         for an attribute that the operator does not have in this version, and for one of another type
 */
tide_status tide_ops_resolve(tide_graph *g, tide_error *err) TIDE_NODISCARD;

/// The instructions that kernels may use here, as oneDNN calls them: "sse41", "avx2", "avx512_core"; "other". Their
/// scratch depends on it, and so does every plan that holds some; ONEDNN_MAX_CPU_ISA holds them to fewer.
const char *tide_ops_instructions(void);
/// The caches of the processor, as CPUID gives them to oneDNN, which sizes the scratch of convolutions by them:
/// "L1d 32 KiB/2, L2 1 MiB/2, L3 33 MiB/32", behind the stroke how many threads may share one; "unknown" where the
/// processor does not say.
const char *tide_ops_caches(char *buf, size_t buf_bytes);
/// The library that kernels are made by, with its version: "oneDNN 2.6.3".
const char *tide_ops_library(char *buf, size_t buf_bytes);

enum { TIDE_OPS_MAX_THREADS = 1024 };
/**
 * How many threads each kernel uses from now on; before the first program is built. Scratch grows with it, and so does
 * every plan that holds some.
 *
 * @param n  1 … TIDE_OPS_MAX_THREADS
 * @return TIDE_ERR_INVALID for another number; TIDE_ERR_NOT_IMPLEMENTED where oneDNN runs without OpenMP
 */
tide_status tide_ops_set_threads(uint32_t n, tide_error *err) TIDE_NODISCARD;
/// How many they use: what was set, else what OMP_NUM_THREADS says, else 1.
uint32_t tide_ops_threads(void);

/// Scratch alignment that every kernel may count on, in bytes.
enum { TIDE_WORKSPACE_ALIGN = 64 };

/**
 * What to call when the process is about to end because memory ran out inside oneDNN, where that gives no other chance
 * (dnnl_guard.h). `words` may end the process itself; it takes no memory and may be called in any thread.
 *
 * @return false when it could not be arranged for all cases
 */
bool tide_ops_on_last_words(void (*words)(void));

#ifdef __cplusplus
}
#endif
#endif
