// SPDX-License-Identifier: MIT
//
// resize_map: what a Resize node asks for, where on the input each output position of an axis lies, and which input
// elements with which weights make it. An axis is independent of the others, so that Resize is one pass per axis.
// resize_spec.c reads the node, resize_map.c has the coordinate rules, resize.c moves the data.
#ifndef TIDE_CORE_OPS_RESIZE_MAP_H
#define TIDE_CORE_OPS_RESIZE_MAP_H

#include "core/graph/op_def.h"

typedef enum tide_resize_coord {
    TIDE_RESIZE_HALF_PIXEL,
    TIDE_RESIZE_HALF_PIXEL_SYMMETRIC,
    TIDE_RESIZE_PYTORCH_HALF_PIXEL,
    TIDE_RESIZE_ALIGN_CORNERS,
    TIDE_RESIZE_ASYMMETRIC,
    TIDE_RESIZE_TF_HALF_PIXEL_FOR_NN,
    TIDE_RESIZE_TF_CROP_AND_RESIZE,
} tide_resize_coord;

typedef enum tide_resize_mode { TIDE_RESIZE_NEAREST, TIDE_RESIZE_LINEAR, TIDE_RESIZE_CUBIC } tide_resize_mode;

typedef enum tide_resize_nearest {
    TIDE_RESIZE_ROUND_PREFER_FLOOR,
    TIDE_RESIZE_ROUND_PREFER_CEIL,
    TIDE_RESIZE_FLOOR,
    TIDE_RESIZE_CEIL,
} tide_resize_nearest;

enum { TIDE_RESIZE_MAX_TAPS = 4 };

/// What all axes share.
typedef struct tide_resize_rule {
    tide_resize_coord coord;
    tide_resize_mode mode;
    tide_resize_nearest nearest;
    float cubic_a;
    bool exclude_outside; ///< cubic: elements outside the input get no weight instead of the edge's value
} tide_resize_rule;

typedef struct tide_resize_axis {
    int32_t axis;
    int64_t in, out; ///< extents
    float scale;     ///< out / in, or as given
    float roi_start, roi_end;
} tide_resize_axis;

/// Elements and weights of one output position.
typedef struct tide_resize_tap {
    int64_t at[TIDE_RESIZE_MAX_TAPS];
    float weight[TIDE_RESIZE_MAX_TAPS];
    bool outside; ///< tf_crop_and_resize: beyond the input, takes the extrapolation value
} tide_resize_tap;

/// What a node asks for.
typedef struct tide_resize_spec {
    tide_resize_rule rule;
    tide_resize_axis axes[TIDE_MAX_RANK]; ///< [rank]
} tide_resize_spec;

/// Read Resize (opset 10 on) or Upsample (7, 9): its attributes and the content of roi, scales and sizes.
/// @return TIDE_ERR_UNKNOWN_SIZE naming an operand whose content is not known; TIDE_ERR_BAD_INPUT;
///         TIDE_ERR_NOT_IMPLEMENTED (antialias; linear and cubic on anything but float32)
tide_status tide_resize_read_spec(const tide_infer *x, tide_resize_spec *s, tide_error *err) TIDE_NODISCARD;

/// Taps that a mode uses: 1, 2 or 4.
int tide_resize_n_taps(tide_resize_mode mode);
/// The taps of output position `x`.
void tide_resize_tap_at(const tide_resize_rule *rule, const tide_resize_axis *axis, int64_t x, tide_resize_tap *out);

#endif
