// SPDX-License-Identifier: MIT
//
// dnnl_prim: one oneDNN primitive as a kernel of ours. Used by ConvTranspose, MatMul, Gemm, Softmax, the smooth
// activations and those convolutions that direct_conv.h leaves.
//
// What oneDNN needs, and what may be shared:
//
//     tide_dnnl_prim   description + where its arguments come from   first in kernel->state, shared by contexts
//     exec             primitive, stream, a memory object for each   one per context; a run only sets data handles
//                      argument
//     scratchpad       kernel->workspace_bytes                       the runtime's, so that it is in the memory plan
//
// The description knows the scratchpad: code is generated when a context is made, and never to plan.
//
// Layouts are always plain (row-major, with strides for transposed operands): operands are graph tensors, and a blocked
// copy of the weights would be memory that no plan sees. Measured with oneDNN 2.6.3 on an AVX-512 machine, plain
// layouts run as "gemm:jit" (convolution, deconvolution), "brg:avx512_core" (matmul) and "jit:avx512_core" (eltwise,
// softmax over the last axis), never as the reference. Convolution unfolds its input and packs its weights at each call
// then, in memory that it allocates itself: so it has a kernel of its own.
#ifndef TIDE_CORE_OPS_DNNL_PRIM_H
#define TIDE_CORE_OPS_DNNL_PRIM_H

#include <oneapi/dnnl/dnnl.h>

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// TIDE_ERR_BACKEND with oneDNN's name for the status; TIDE_ERR_NOMEM for its out of memory. `what`: "convolution".
tide_status tide_dnnl_fail(tide_error *err, const tide_node *node, dnnl_status_t st, const char *what);

/// A float32 memory descriptor: row-major when `strides` is NULL. Extents past 2^31-1 are refused
/// (TIDE_ERR_NOT_IMPLEMENTED), except where there is only one.
tide_status tide_dnnl_md(const tide_node *node, int n, const int64_t *dims, const int64_t *strides,
                         dnnl_memory_desc_t *out, tide_error *err) TIDE_NODISCARD;

/// What happens to the result after the primitive: dst = act(scale * result + (sum ? dst : 0)).
///
/// Only Tanh, and Sigmoid of matmul, are handed to oneDNN. Its Relu makes 0 out of a NaN in one primitive and keeps it
/// in another, its Clip makes the lower bound out of it and refuses crossed bounds, its Sigmoid after a convolution
/// gives 0. These run here, over what has just been written, as oneDNN's plain-layout convolution does too.
typedef struct tide_dnnl_post {
    float scale; ///< 1: none
    bool sum;    ///< add to what is in dst already
    tide_activation act;
} tide_dnnl_post;

/// Where an argument of a primitive comes from: input or output `operand` of the kernel.
typedef struct tide_dnnl_bind {
    int arg; ///< DNNL_ARG_…
    bool is_output;
    uint32_t operand;
} tide_dnnl_bind;

enum { TIDE_DNNL_MAX_BINDS = 4 };

typedef struct tide_dnnl_prim {
    dnnl_primitive_desc_t desc; ///< owned; NULL: the kernel runs without a primitive
    tide_dnnl_bind binds[TIDE_DNNL_MAX_BINDS];
    size_t n_binds;
    size_t scratch_bytes;
    tide_activation act; ///< still to be done once the primitive has run; NONE: it does all
    const char *impl;    ///< oneDNN's name of the chosen implementation; its text
} tide_dnnl_prim;

/**
 * Describe a primitive from an operation descriptor, with its scratchpad left to the caller.
 *
 * @param op_desc  a dnnl_…_desc_t; borrowed for the call
 * @param out      zeroed; the beginning of the state of a kernel
 * @return TIDE_ERR_BACKEND, TIDE_ERR_NOMEM; *out untouched then
 */
tide_status tide_dnnl_prim_init(const tide_node *node, const_dnnl_op_desc_t op_desc, const tide_dnnl_post *post,
                                const tide_dnnl_bind *binds, size_t n_binds, tide_dnnl_prim *out,
                                tide_error *err) TIDE_NODISCARD;
/// The same for a kernel whose whole state is the primitive: its state and its workspace.
tide_status tide_dnnl_kernel_set(tide_kernel *k, const_dnnl_op_desc_t op_desc, const tide_dnnl_post *post,
                                 const tide_dnnl_bind *binds, size_t n_binds, tide_error *err) TIDE_NODISCARD;

// The functions of a tide_op_def whose state begins with a tide_dnnl_prim. NULL state: the output has no elements.
void tide_dnnl_kernel_destroy(tide_kernel *k);
tide_status tide_dnnl_kernel_exec_create(const tide_kernel *k, void **exec, tide_error *err);
void tide_dnnl_kernel_exec_destroy(const tide_kernel *k, void *exec);
/// Runs the primitive on the operands of `args`, with args->workspace as its scratch. Allocates nothing of ours.
tide_status tide_dnnl_kernel_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err);

#ifdef __cplusplus
}
#endif
#endif
