// SPDX-License-Identifier: MIT
//
// op_util: what the operators of this floor have in common: messages that name the node, checks of rank and dtype,
// axes, broadcasting, and sliding windows (Conv, ConvTranspose, the pools).
#ifndef TIDE_CORE_OPS_OP_UTIL_H
#define TIDE_CORE_OPS_OP_UTIL_H

#include "core/base/host_alloc.h"
#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// TIDE_FAIL with "<op type> '<node>': " before the message.
#define TIDE_OP_FAIL(err, node, st, ...) tide_op_fail_at((err), (node), (st), __FILE__, __LINE__, __VA_ARGS__)
tide_status tide_op_fail_at(tide_error *err, const tide_node *node, tide_status st, const char *file, int line,
                            const char *fmt, ...) TIDE_PRINTF(6, 7);
/// `*out` (a T *) becomes the zeroed state of a kernel, freed with tide_host_free; TIDE_ERR_NOMEM naming the node.
#define TIDE_OP_NEW(out, node, err)                                                                                    \
    ((*(out) = tide_host_calloc(1, sizeof **(out))) != NULL                                                            \
         ? TIDE_OK                                                                                                     \
         : TIDE_OP_FAIL((err), (node), TIDE_ERR_NOMEM, "no memory for a kernel"))

/// Optional operands: there are fewer than i + 1, or the i-th is left out.
static inline bool tide_op_has_in(const tide_infer *x, size_t i) {
    return i < x->n_in && tide_operand_present(&x->in[i]);
}
static inline bool tide_op_has_out(const tide_infer *x, size_t i) {
    return i < x->n_out && x->node->outputs[i] != TIDE_NO_VALUE;
}

/// Elements in extents [begin, end) of a shape that is known and was checked for overflow (all operands are).
static inline int64_t tide_op_count(const tide_shape *s, int32_t begin, int32_t end) {
    int64_t n = 1;
    for (int32_t i = begin; i < end; i++) n *= s->dims[i];
    return n;
}
static inline int64_t tide_op_numel(const tide_shape *s) { return tide_op_count(s, 0, s->rank); }

// ---- checks; `what` is the operand's name in the ONNX text: "X", "W", "axes" ----

/// TIDE_ERR_NOT_IMPLEMENTED naming the dtype when operand `o` is not of `want`.
tide_status tide_op_require_dtype(const tide_node *node, const tide_operand *o, const char *what, tide_dtype want,
                                  tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT with the shape when the rank is not in [min, max].
tide_status tide_op_require_rank(const tide_node *node, const tide_operand *o, const char *what, int32_t min,
                                 int32_t max, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT with both shapes when they differ.
tide_status tide_op_require_shape(const tide_node *node, const tide_operand *o, const char *what,
                                  const tide_shape *want, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_UNKNOWN_SIZE when the content of `o` is not known at inference (it depends on data).
tide_status tide_op_require_const(const tide_node *node, const tide_operand *o, const char *what,
                                  tide_error *err) TIDE_NODISCARD;

/// Fill out[i] of `x`: refuses negative extents and sizes that overflow (TIDE_ERR_BAD_INPUT, TIDE_ERR_OVERFLOW),
/// with the node named. `dims` may alias x->out[i].shape.dims.
tide_status tide_op_set_out(const tide_infer *x, size_t i, tide_dtype dtype, int32_t rank, const int64_t *dims,
                            tide_error *err) TIDE_NODISCARD;

/// Same dtype and shape as input 0: the whole inference of most elementwise operators.
tide_status tide_op_infer_same(const tide_infer *x, tide_error *err) TIDE_NODISCARD;

/// -rank … rank-1 to 0 … rank-1. TIDE_ERR_BAD_INPUT outside; `rank` 0 takes 0 and -1 as 0.
tide_status tide_op_axis(const tide_node *node, int64_t axis, int32_t rank, int32_t *out,
                         tide_error *err) TIDE_NODISCARD;

/**
 * Read a list of integers out of an operand whose content is known: int64 or int32, rank 0 or 1.
 *
 * @param out  [max]; *n elements written
 * @return TIDE_ERR_BAD_INPUT (rank, dtype, more than max), TIDE_ERR_UNKNOWN_SIZE (content not known)
 */
tide_status tide_op_read_ints(const tide_node *node, const tide_operand *o, const char *what, size_t max, int64_t *out,
                              size_t *n, tide_error *err) TIDE_NODISCARD;

// ---- broadcasting (numpy's rule) ----

/// *out = the broadcast of a and b; `out` may be one of them. TIDE_ERR_BAD_INPUT with both shapes when they do not
/// meet.
tide_status tide_op_broadcast(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_shape *out,
                              tide_error *err) TIDE_NODISCARD;
/// Element strides of a dense `in` walked in the shape of `out` (in broadcasts to it): 0 where an extent is stretched.
void tide_op_broadcast_strides(const tide_shape *in, const tide_shape *out, int64_t *strides);

/// Before opset 7: the extents of `b` are some of `a` that follow each other, from attribute `axis` on (without it the
/// last ones), and it needs attribute `broadcast`. *out: b in the rank of a, extents of 1 elsewhere; from opset 7 on b.
/// PRelu has one slope, or one for each channel. TIDE_ERR_BAD_INPUT with both shapes when they do not meet.
tide_status tide_op_second_shape(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_shape *out,
                                 tide_error *err) TIDE_NODISCARD;

// ---- products of matrices (numpy's rule) ----

/// The product in terms of matrices: [batch…, m, k] x [batch…, k, n].
typedef struct tide_product {
    int64_t m, k, n;
    tide_shape a, b, out; ///< batch extents only; of equal rank, those of a and b are 1 or out's
    bool a_vector, b_vector;
} tide_product;

/// `a` and `b` are of rank 1 at least. TIDE_ERR_BAD_INPUT with both shapes when they do not meet.
tide_status tide_op_product(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_product *p,
                            tide_error *err) TIDE_NODISCARD;
/// Fill output 0: vectors lose the extent that they were given.
tide_status tide_op_set_product(const tide_infer *x, tide_dtype dtype, const tide_product *p,
                                tide_error *err) TIDE_NODISCARD;

// ---- sliding windows ----

enum {
    TIDE_WINDOW_MAX = 3,
    /// Extents, strides, dilations and pads go up to here: their sums and products stay within 63 bits, and sums of a
    /// few of them within the int that oneDNN counts in.
    TIDE_WINDOW_LIMIT = 1 << 28,
};

/// A window over the spatial extents, all pads explicit. Extents are in elements.
typedef struct tide_window {
    int32_t n; ///< spatial dimensions, 1 … TIDE_WINDOW_MAX
    int64_t in[TIDE_WINDOW_MAX];
    int64_t kernel[TIDE_WINDOW_MAX];
    int64_t stride[TIDE_WINDOW_MAX];
    int64_t dilation[TIDE_WINDOW_MAX]; ///< 1: dense
    int64_t pad_begin[TIDE_WINDOW_MAX];
    int64_t pad_end[TIDE_WINDOW_MAX];
    int64_t out[TIDE_WINDOW_MAX];
} tide_window;

/**
 * Read strides, dilations, pads, auto_pad (and ceil_mode) of `node` and work out the output extents.
 *
 * @param x_shape   [N, C, spatial …], rank 3 … 5, checked by the caller
 * @param kernel    [rank - 2] extents of the window
 * @return TIDE_ERR_BAD_INPUT naming attribute and value: a list of wrong length, stride or dilation < 1, negative pad,
 *         unknown auto_pad, a window larger than the padded input; TIDE_ERR_OVERFLOW past TIDE_WINDOW_LIMIT
 *
 * ceil_mode: a last window that would start in the end padding is dropped (the rule of PyTorch, in ONNX's words since
 * opset 19; no older text contradicts it).
 */
tide_status tide_op_window(const tide_node *node, const tide_shape *x_shape, const int64_t *kernel, tide_window *out,
                           tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_OVERFLOW when one of `all` [n], which belong to spatial dimension `i`, is past TIDE_WINDOW_LIMIT.
tide_status tide_op_window_limits(const tide_node *node, const int64_t *all, size_t n, int32_t i,
                                  tide_error *err) TIDE_NODISCARD;
/// A window of `w->n` dimensions as one of TIDE_WINDOW_MAX: extents of 1 in front.
tide_window tide_window_widen(const tide_window *w);
/// The window's extent with dilation: (kernel - 1) * dilation + 1.
static inline int64_t tide_window_span(const tide_window *w, int32_t i) {
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}
/// One integer list attribute of exactly `n` elements, each at least `least`, into out[n]; all `absent` when the node
/// has none.
tide_status tide_op_ints_attr(const tide_node *node, const char *name, size_t n, int64_t absent, int64_t least,
                              int64_t *out, tide_error *err) TIDE_NODISCARD;

typedef enum tide_auto_pad {
    TIDE_AUTO_PAD_NOTSET,
    TIDE_AUTO_PAD_SAME_UPPER,
    TIDE_AUTO_PAD_SAME_LOWER,
    TIDE_AUTO_PAD_VALID,
} tide_auto_pad;
tide_status tide_op_auto_pad(const tide_node *node, tide_auto_pad *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
