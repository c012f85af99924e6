// SPDX-License-Identifier: MIT
//
// What of an operator is served: the types of the operand that gives it its type, and what is refused that ONNX allows.
// One line for each row of op_list.h; tests/ops/test_op_notes holds the types against what the rows do.
#include "core/ops/op_list.h"
#include "core/ops/ops.h"

#define T(name) (1u << TIDE_##name)
#define F32 T(F32)
#define FLOATS (T(F32) | T(F64) | T(F16) | T(BF16))
#define SIGNED (T(I8) | T(I16) | T(I32) | T(I64))
#define UNSIGNED (T(U8) | T(U16) | T(U32) | T(U64))
#define INTS (SIGNED | UNSIGNED)
#define NUMBERS (FLOATS | INTS)
#define ALL (NUMBERS | T(BOOL))
#define INDICES (T(I32) | T(I64))
#define BYTES (T(I8) | T(U8))

#define WITHOUT_TRAINING "training mode"

// The tool would set each line of a list further to the right.
// clang-format off

/// XX(row, types, the input that they are of, what is refused; NULL: nothing)
#define NOTES_NN(XX)                                                                                                   \
    XX(conv, F32, 0, NULL) XX(conv_transpose, F32, 0, "output_shape far past what the input reaches")                  \
    XX(max_pool, F32 | BYTES, 0, NULL) XX(average_pool, F32, 0, NULL)                                  \
    XX(global_average_pool, F32, 0, NULL) XX(global_max_pool, F32, 0, NULL) XX(matmul, F32, 0, NULL)                   \
    XX(gemm, F32, 0, NULL) XX(batch_norm, F32, 0, "training mode before opset 14, spatial 0") XX(instance_norm, F32, 0, NULL)      \
    XX(layer_norm, F32, 0, "Scale and B that broadcast, stash_type other than float32") XX(lrn, F32, 0, NULL)          \
    XX(softmax_1, F32, 0, NULL) XX(softmax_13, F32, 0, NULL) XX(log_softmax_1, F32, 0, NULL)                           \
    XX(log_softmax_13, F32, 0, NULL) XX(relu, F32, 0, NULL) XX(leaky_relu, F32, 0, NULL) XX(elu, F32, 0, NULL)         \
    XX(sigmoid, F32, 0, NULL) XX(tanh, F32, 0, NULL) XX(hard_swish, F32, 0, NULL) XX(softplus, F32, 0, NULL)           \
    XX(gelu, F32, 0, NULL) XX(hard_sigmoid, F32, 0, NULL) XX(clip_6, F32, 0, NULL)                                     \
    XX(clip_11, T(F32) | T(F64) | INTS, 0, NULL)                                                                       \
    XX(group_norm, F32, 0, "stash_type other than float32") XX(lp_norm, F32, 0, NULL) XX(global_lp_pool, F32, 0, NULL)

#define NOTES_MOVEMENT(XX)                                                                                             \
    XX(reshape, ALL, 0, NULL) XX(flatten, ALL, 0, NULL) XX(squeeze_1, ALL, 0, NULL) XX(squeeze_13, ALL, 0, NULL)       \
    XX(unsqueeze_1, ALL, 0, NULL) XX(unsqueeze_13, ALL, 0, NULL) XX(identity, ALL, 0, NULL)                            \
    XX(dropout_7, ALL, 0, WITHOUT_TRAINING) XX(dropout_12, ALL, 0, WITHOUT_TRAINING)                                   \
    XX(cast, ALL, 0, "strings, 8-bit and 4-bit floats") XX(cast_like, ALL, 0, "strings, 8-bit and 4-bit floats")       \
    XX(shape, ALL, 0, NULL) XX(size, ALL, 0, NULL) XX(constant_of_shape, INDICES, 0, NULL) XX(transpose, ALL, 0, NULL) \
    XX(concat, ALL, 0, NULL) XX(split_2, ALL, 0, NULL) XX(split_13, ALL, 0, NULL) XX(slice_1, ALL, 0, NULL)            \
    XX(slice_10, ALL, 0, NULL) XX(gather, ALL, 0, NULL) XX(gather_elements, ALL, 0, NULL) XX(gather_nd, ALL, 0, NULL)  \
    XX(scatter_9, ALL, 0, NULL) XX(scatter_elements, ALL, 0, NULL) XX(scatter_nd, ALL, 0, NULL) XX(expand, ALL, 0, NULL) \
    XX(tile, ALL, 0, NULL) XX(pad_2, ALL, 0, "negative pads but in constant mode")                                     \
    XX(pad_11, ALL, 0, "negative pads but in constant mode") XX(depth_to_space, ALL, 0, NULL)                          \
    XX(space_to_depth, ALL, 0, NULL) XX(upsample_7, ALL, 0, NULL) XX(upsample_9, ALL, 0, NULL)                         \
    XX(resize_10, ALL, 0, NULL) XX(resize_11, ALL, 0, "antialias") XX(where, ALL, 1, NULL) XX(one_hot, ALL, 0, NULL)   \
    XX(range, NUMBERS, 0, NULL) XX(trilu, ALL, 0, NULL) XX(opaque, ALL, 0, "to run: it is of sizes alone")             \
    XX(eye_like, ALL, 0, NULL) XX(reverse_sequence, ALL, 0, NULL) XX(nonzero, ALL, 0, NULL)                            \
    XX(compress, ALL, 0, NULL) XX(unique, ALL, 0, NULL) XX(non_max_suppression, F32, 0, NULL)               \
    XX(if, ALL, 0, "sequences and optionals") XX(loop, ALL, 0, "sequences and optionals") XX(scan, ALL, 0, NULL)

#define NOTES_NUMBERS(XX)                                                                                              \
    XX(add, NUMBERS, 0, NULL) XX(sub, NUMBERS, 0, NULL) XX(mul, NUMBERS, 0, NULL) XX(div, NUMBERS, 0, NULL)            \
    XX(prelu, NUMBERS, 0, NULL) XX(pow, NUMBERS, 0, NULL) XX(mod, NUMBERS, 0, NULL) XX(equal, ALL, 0, NULL)            \
    XX(greater, NUMBERS, 0, NULL) XX(greater_or_equal, NUMBERS, 0, NULL) XX(less, NUMBERS, 0, NULL)                    \
    XX(less_or_equal, NUMBERS, 0, NULL) XX(logical_and, T(BOOL), 0, NULL) XX(logical_or, T(BOOL), 0, NULL)             \
    XX(logical_xor, T(BOOL), 0, NULL) XX(max, NUMBERS, 0, NULL) XX(min, NUMBERS, 0, NULL) XX(sum, FLOATS, 0, NULL)     \
    XX(mean, FLOATS, 0, NULL) XX(abs, NUMBERS, 0, NULL) XX(neg, NUMBERS, 0, NULL) XX(sign, NUMBERS, 0, NULL)           \
    XX(exp, FLOATS, 0, NULL) XX(log, FLOATS, 0, NULL) XX(sqrt, FLOATS, 0, NULL) XX(reciprocal, FLOATS, 0, NULL)        \
    XX(floor, FLOATS, 0, NULL) XX(ceil, FLOATS, 0, NULL) XX(round, FLOATS, 0, NULL) XX(erf, FLOATS, 0, NULL)           \
    XX(sin, FLOATS, 0, NULL) XX(cos, FLOATS, 0, NULL) XX(tan, FLOATS, 0, NULL) XX(asin, FLOATS, 0, NULL)               \
    XX(acos, FLOATS, 0, NULL) XX(atan, FLOATS, 0, NULL) XX(sinh, FLOATS, 0, NULL) XX(cosh, FLOATS, 0, NULL)            \
    XX(asinh, FLOATS, 0, NULL) XX(acosh, FLOATS, 0, NULL) XX(atanh, FLOATS, 0, NULL) XX(softsign, FLOATS, 0, NULL)     \
    XX(thresholded_relu, FLOATS, 0, NULL) XX(selu, FLOATS, 0, NULL) XX(celu, FLOATS, 0, NULL)                          \
    XX(logical_not, T(BOOL), 0, NULL) XX(is_nan, FLOATS, 0, NULL) XX(is_inf, FLOATS, 0, NULL)                          \
    XX(reduce_sum_attr, NUMBERS, 0, NULL) XX(reduce_sum, NUMBERS, 0, NULL) XX(reduce_mean_attr, NUMBERS, 0, NULL)      \
    XX(reduce_mean, NUMBERS, 0, NULL) XX(reduce_max_attr, NUMBERS, 0, NULL) XX(reduce_max, NUMBERS, 0, "bool")         \
    XX(reduce_min_attr, NUMBERS, 0, NULL) XX(reduce_min, NUMBERS, 0, "bool") XX(reduce_prod_attr, NUMBERS, 0, NULL)    \
    XX(reduce_prod, NUMBERS, 0, NULL) XX(reduce_sum_square_attr, NUMBERS, 0, NULL)                                     \
    XX(reduce_sum_square, NUMBERS, 0, NULL) XX(reduce_l1_attr, NUMBERS, 0, NULL) XX(reduce_l1, NUMBERS, 0, NULL)       \
    XX(reduce_l2_attr, NUMBERS, 0, NULL) XX(reduce_l2, NUMBERS, 0, NULL) XX(reduce_log_sum_attr, NUMBERS, 0, NULL)     \
    XX(reduce_log_sum, NUMBERS, 0, NULL) XX(reduce_log_sum_exp_attr, NUMBERS, 0, NULL)                                 \
    XX(reduce_log_sum_exp, NUMBERS, 0, NULL) XX(arg_max, NUMBERS, 0, NULL) XX(arg_min, NUMBERS, 0, NULL)               \
    XX(bitwise_and, INTS, 0, NULL) XX(bitwise_or, INTS, 0, NULL) XX(bitwise_xor, INTS, 0, NULL)                        \
    XX(bitwise_not, INTS, 0, NULL) XX(cum_sum, NUMBERS, 0, NULL) XX(bit_shift, UNSIGNED, 0, NULL) XX(hardmax, FLOATS, 0, NULL)                        \
    XX(shrink, NUMBERS, 0, NULL) XX(det, FLOATS, 0, NULL) XX(einsum, NUMBERS, 0, "more than a few operands")           \
    XX(nll_loss, FLOATS, 0, NULL) XX(softmax_loss, FLOATS, 0, NULL) XX(grid_sample, FLOATS, 0, NULL)                   \
    XX(roi_align, FLOATS, 0, NULL) XX(max_roi_pool, FLOATS, 0, NULL)

#define NOTES_OTHERS(XX)                                                                                               \
    XX(quantize_linear, T(F32) | T(I32), 0, "4-bit integers, 8-bit floats, precision other than float32")                                             \
    XX(dequantize_linear, BYTES | T(U16) | T(I16) | T(I32), 0, "4-bit integers, 8-bit floats")                         \
    XX(dynamic_quantize_linear, F32, 0, NULL) XX(matmul_integer, BYTES, 0, NULL)                                        \
    XX(qlinear_matmul, BYTES, 0, "y_scale and y_zero_point for each row")                                               \
    XX(conv_integer, BYTES, 0, NULL) XX(qlinear_conv, BYTES, 0, NULL) XX(rnn, F32, 0, NULL) XX(gru, F32, 0, NULL)      \
    XX(lstm, F32, 0, NULL)                                                                                             \
    XX(attention, F32, 0, "softmax_precision other than float32, windows of keys")                                                      \
    XX(attention_fused, F32, 0, "do_rotary, past_present_share_buffer, a mask_index of rank 4")                        \
    XX(skip_layer_norm, F32, 0, NULL) XX(skip_rms_norm, F32, 0, NULL) XX(embed_layer_norm, F32, 2, NULL)               \
    XX(gelu_fused, F32, 0, NULL) XX(bias_gelu, F32, 0, NULL) XX(fast_gelu, F32, 0, NULL) XX(quick_gelu, F32, 0, NULL)  \
    XX(fused_matmul, F32, 0, NULL) XX(transpose_matmul, F32, 0, NULL)                                                  \
    XX(rms_norm, F32, 0, "stash_type other than float32") XX(rotary_embedding, F32, 0, NULL) XX(swish, F32, 0, NULL)   \
    XX(mish, F32, 0, NULL) XX(tensor_scatter, ALL, 0, NULL)                                                            \
    XX(simplified_layer_norm, F32, 0, "stash_type other than float32")                                                 \
    XX(attention_multi, F32, 0, "packed or transposed operands, a cache that is written in place, key_padding_mask of 3 * batch + 2")

#define NOTES_SIGNAL(XX)                                                                                               \
    XX(top_k_1, NUMBERS, 0, NULL) XX(top_k_10, NUMBERS, 0, NULL) XX(max_unpool, ALL, 0, NULL)                          \
    XX(mean_variance_norm, F32, 0, NULL) XX(adagrad, T(F32) | T(F64), 2, NULL) XX(adam, T(F32) | T(F64), 2, NULL)      \
    XX(momentum, T(F32) | T(F64), 2, NULL) XX(hann_window, INDICES, 0, NULL) XX(hamming_window, INDICES, 0, NULL)      \
    XX(blackman_window, INDICES, 0, NULL) XX(dft_17, FLOATS, 0, "onesided and inverse together")                       \
    XX(dft_20, FLOATS, 0, "onesided and inverse together") XX(stft, FLOATS, 0, NULL)                                   \
    XX(mel_weight_matrix, INDICES, 0, NULL) XX(tfidf_vectorizer, INDICES, 0, "strings")

// clang-format on

static const tide_op_note notes[] = {
#define XX(row, types, input, refused) {&tide_op_##row, (types), (input), (refused)},
    NOTES_NN(XX) NOTES_MOVEMENT(XX) NOTES_NUMBERS(XX) NOTES_OTHERS(XX) NOTES_SIGNAL(XX)
#undef XX
};

const tide_op_note *tide_op_note_of(const tide_op_def *def) {
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        if (notes[i].def == def) return &notes[i];
    return NULL;
}
