// SPDX-License-Identifier: MIT
//
// Every row of the operator registry, once. A row XX(conv) is the object `tide_op_conv` in the operator's file; the
// table, its look-up and the declarations all come from here. One operator: one file (or a family that is one
// algorithm), one line.
#ifndef TIDE_CORE_OPS_OP_LIST_H
#define TIDE_CORE_OPS_OP_LIST_H

#include "core/graph/op_def.h"

// The tool would set each line of a list further to the right.
// clang-format off

/// Operators of neural networks: on oneDNN, or loops where its plain layouts have no good kernel.
#define TIDE_OP_LIST_NN(XX)                                                                                            \
    XX(conv) XX(conv_transpose) XX(max_pool) XX(average_pool) XX(global_average_pool) XX(global_max_pool) XX(matmul)   \
    XX(gemm) XX(batch_norm) XX(instance_norm) XX(layer_norm) XX(lrn) XX(softmax_1) XX(softmax_13) XX(log_softmax_1)    \
    XX(log_softmax_13) XX(relu) XX(leaky_relu) XX(elu) XX(sigmoid) XX(tanh) XX(hard_swish) XX(softplus) XX(gelu)       \
    XX(hard_sigmoid) XX(clip_6) XX(clip_11) XX(group_norm) XX(lp_norm) XX(global_lp_pool)

/// Operators in plain loops: data movement, shapes, elementwise on any type, reductions.
#define TIDE_OP_LIST_DATA(XX)                                                                                          \
    XX(reshape) XX(flatten) XX(squeeze_1) XX(squeeze_13) XX(unsqueeze_1) XX(unsqueeze_13) XX(identity) XX(dropout_7)   \
    XX(dropout_12) XX(cast) XX(cast_like) XX(shape) XX(size) XX(constant_of_shape) XX(transpose) XX(concat)            \
    XX(split_2) XX(split_13) XX(slice_1) XX(slice_10) XX(gather) XX(gather_elements) XX(gather_nd) XX(scatter_9)       \
    XX(scatter_elements) XX(scatter_nd) XX(expand) XX(tile) XX(pad_2) XX(pad_11) XX(depth_to_space)                    \
    XX(space_to_depth) XX(upsample_7) XX(upsample_9) XX(resize_10) XX(resize_11) XX(where) XX(one_hot) XX(range)       \
    XX(trilu) XX(add) XX(sub) XX(mul) XX(div) XX(prelu) XX(pow) XX(mod) XX(equal) XX(greater) XX(greater_or_equal)     \
    XX(less) XX(less_or_equal) XX(logical_and) XX(logical_or) XX(logical_xor) XX(max) XX(min) XX(sum) XX(mean)         \
    XX(abs) XX(neg) XX(sign) XX(exp) XX(log) XX(sqrt) XX(reciprocal) XX(floor) XX(ceil) XX(round) XX(erf) XX(sin)      \
    XX(cos) XX(tan) XX(asin) XX(acos) XX(atan) XX(sinh) XX(cosh) XX(asinh) XX(acosh) XX(atanh) XX(softsign)            \
    XX(thresholded_relu) XX(selu) XX(celu) XX(logical_not) XX(is_nan) XX(is_inf) XX(reduce_sum_attr) XX(reduce_sum)    \
    XX(reduce_mean_attr) XX(reduce_mean) XX(reduce_max_attr) XX(reduce_max) XX(reduce_min_attr) XX(reduce_min)         \
    XX(reduce_prod_attr) XX(reduce_prod) XX(reduce_sum_square_attr) XX(reduce_sum_square) XX(reduce_l1_attr)           \
    XX(reduce_l1) XX(reduce_l2_attr) XX(reduce_l2) XX(reduce_log_sum_attr) XX(reduce_log_sum)                          \
    XX(reduce_log_sum_exp_attr) XX(reduce_log_sum_exp) XX(arg_max) XX(arg_min) XX(cum_sum) XX(opaque)          \
    XX(quantize_linear) XX(dequantize_linear) XX(dynamic_quantize_linear) XX(nll_loss) XX(softmax_loss)       \
    XX(rnn) XX(gru) XX(lstm) XX(bit_shift) XX(hardmax) XX(shrink) XX(eye_like) XX(det) XX(reverse_sequence)            \
    XX(nonzero) XX(compress) XX(unique) XX(non_max_suppression) XX(einsum) XX(grid_sample) XX(roi_align)               \
    XX(max_roi_pool) XX(matmul_integer) XX(qlinear_matmul) XX(conv_integer) XX(qlinear_conv) XX(if) XX(loop) XX(scan)            \
    XX(bitwise_and) XX(bitwise_or) XX(bitwise_xor) XX(bitwise_not)                                                     \
    XX(merge) XX(next_iteration)

/// Operators of transformers: those of ONNX, and those of com.microsoft that ONNX Runtime makes of others.
#define TIDE_OP_LIST_TRANSFORMER(XX)                                                                                   \
    XX(attention) XX(attention_fused) XX(skip_layer_norm) XX(skip_rms_norm) XX(embed_layer_norm) XX(gelu_fused)        \
    XX(bias_gelu) XX(fast_gelu) XX(quick_gelu) XX(fused_matmul) XX(transpose_matmul) XX(rms_norm)                      \
    XX(rotary_embedding) XX(swish) XX(mish) XX(tensor_scatter) XX(simplified_layer_norm) XX(attention_multi)

/// Signals, training, and what is left.
#define TIDE_OP_LIST_SIGNAL(XX)                                                                                        \
    XX(top_k_1) XX(top_k_10) XX(max_unpool) XX(mean_variance_norm) XX(adagrad) XX(adam) XX(momentum) XX(hann_window)   \
    XX(hamming_window) XX(blackman_window) XX(dft_17) XX(dft_20) XX(stft) XX(mel_weight_matrix) XX(tfidf_vectorizer)

// clang-format on

#define TIDE_OP_LIST(XX) TIDE_OP_LIST_NN(XX) TIDE_OP_LIST_DATA(XX) TIDE_OP_LIST_TRANSFORMER(XX) TIDE_OP_LIST_SIGNAL(XX)

#define XX(name) extern const tide_op_def tide_op_##name;
TIDE_OP_LIST(XX)
#undef XX

#endif
