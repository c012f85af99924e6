// SPDX-License-Identifier: MIT
//
// direct_conv: float32 convolution over one or two extents on plain layouts, without unfolding its input and without
// packing its weights. One thread.
//
// A block of a few filters times some ten outputs is held in registers while all channels and taps are gone through: a
// tap is a vector load of neighbouring inputs, a weight is one number for all of them. Both come as they lie in memory:
//
//     weights [filter][channel][tap]   a row for each filter of the block, read from front to back
//     inputs  [channel][position]      position + offset of the tap: the same for all outputs
//
// The second line holds for a kernel of 1 x 1 as it is. Else a *tile* of the input is copied into the scratch first,
// with zeros for the padding, and for strides with every s-th row and column beside each other (a *phase*), so that
// outputs which are neighbours read neighbours again. Outputs are numbered through the rows of the tile, which are
// longer than those of the output: what is calculated for the rest is thrown away, and narrow images fill vectors all
// the same.
//
//     tile of one channel, kernel 3 x 3, padding 1:       0 0 0 0 0 0
//                                                         0 a b c d 0     outputs 0 1 2 3 . .
//                                                         0 e f g h 0             6 7 8 9 . .
//
// Each output is one sum in the order of channels and taps, whatever the blocks and tiles are: the same bits in any
// cut. Instructions differ in whether they round between product and sum, so bits are those of one kind of processor.
#ifndef TIDE_CORE_OPS_DIRECT_CONV_H
#define TIDE_CORE_OPS_DIRECT_CONV_H

#include "core/ops/op_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What is calculated, and how it is cut. Filled by tide_direct_conv_init, immutable then.
typedef struct tide_direct_conv {
    int64_t batch, groups;
    int64_t channels, filters;                   ///< of each group
    int64_t in[2], out[2], kernel[2], stride[2]; ///< rows, columns
    int64_t dilation[2], pad[2];
    tide_activation act;
    int64_t *taps;            ///< [n_taps] owned; where a tap lies from its output's position, in elements
    int64_t n_taps;           ///< kernel[0] * kernel[1]
    int64_t phases[2];        ///< of the tile; at most the strides
    int64_t rows, cols;       ///< of the tile, in outputs
    int64_t tile_rows, pitch; ///< of a phase, in elements
    int64_t channel_step;     ///< from one channel to the next, in elements
    bool in_place;            ///< no tile: the input is read where it lies, `cols` outputs at a time
    size_t scratch_bytes;     ///< of a run
} tide_direct_conv;

/// Instructions that a run may use.
typedef enum tide_direct_conv_kind {
    TIDE_DIRECT_CONV_PLAIN,
    TIDE_DIRECT_CONV_AVX2,
    TIDE_DIRECT_CONV_AVX512,
} tide_direct_conv_kind;

/**
 * Decide how a convolution is cut.
 *
 * @param w     the window, widened to three extents (tide_window_widen)
 * @param c     batch, groups, channels, filters and act are filled in by the caller; the rest is set here
 * @param ours  false: it is none of ours (three extents, or taps so far apart that a tile would be large); c owns
 * nothing
 * @return TIDE_ERR_NOMEM naming the node; c owns nothing then
 */
tide_status tide_direct_conv_init(tide_direct_conv *c, const tide_window *w, const tide_node *node, bool *ours,
                                  tide_error *err) TIDE_NODISCARD;
void tide_direct_conv_deinit(tide_direct_conv *c);

/// Convolve [batch, groups * channels, in…] with [groups * filters, channels, kernel…]; `bias` [groups * filters] may
/// be NULL, `scratch` (scratch_bytes, aligned to 64) where there is none. Allocates nothing.
void tide_direct_conv_run(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y,
                          float *scratch);

/// The best kind that this processor has; a lower one for tests, which stays until the next call. False: not here.
tide_direct_conv_kind tide_direct_conv_best(void);
bool tide_direct_conv_use(tide_direct_conv_kind kind);

// The same run, written for each kind (direct_conv_body.h).
void tide__direct_conv_plain(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y,
                             float *scratch);
void tide__direct_conv_avx2(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y,
                            float *scratch);
void tide__direct_conv_avx512(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y,
                              float *scratch);

enum {
    TIDE_DIRECT_CONV_SLACK = 128, ///< elements behind the tile that a block may read: a row of its vectors
    TIDE_DIRECT_CONV_STEP = 48,   ///< outputs of the largest block: a part of an input in place has as many at least
};

#ifdef __cplusplus
}
#endif
#endif
