// SPDX-License-Identifier: MIT
//
// Sliding windows: how strides, dilations, pads and auto_pad become output extents. See op_util.h.
#include <inttypes.h>
#include <string.h>

#include "core/ops/op_util.h"

tide_status tide_op_ints_attr(const tide_node *node, const char *name, size_t n, int64_t absent, int64_t least,
                              int64_t *out, tide_error *err) {
    size_t len = 0;
    const int64_t *list = tide_node_attr_ints(node, name, &len);
    if (list == NULL) {
        for (size_t i = 0; i < n; i++) out[i] = absent;
        return TIDE_OK;
    }
    if (len != n)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "attribute '%s' has %zu elements, must have %zu", name, len,
                            n);
    for (size_t i = 0; i < n; i++) {
        if (list[i] < least)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                                "attribute '%s'[%zu] is %" PRId64 ", must be at least %" PRId64, name, i, list[i],
                                least);
        out[i] = list[i];
    }
    return TIDE_OK;
}

tide_status tide_op_auto_pad(const tide_node *node, tide_auto_pad *out, tide_error *err) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *s = tide_node_attr_string(node, "auto_pad", "NOTSET");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(s, names[i]) != 0) continue;
        *out = (tide_auto_pad)i;
        return TIDE_OK;
    }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                        "auto_pad is '%s', must be NOTSET, SAME_UPPER, SAME_LOWER or VALID", s);
}

tide_status tide_op_window_limits(const tide_node *node, const int64_t *all, size_t n, int32_t i, tide_error *err) {
    for (size_t k = 0; k < n; k++)
        if (all[k] > TIDE_WINDOW_LIMIT)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "window of dimension %d: %" PRId64 " is too large",
                                (int)i, all[k]);
    return TIDE_OK;
}

static tide_status check_limits(const tide_node *node, const tide_window *w, int32_t i, tide_error *err) {
    const int64_t all[] = {w->in[i], w->kernel[i], w->stride[i], w->dilation[i], w->pad_begin[i], w->pad_end[i]};
    TIDE_TRY(tide_op_window_limits(node, all, sizeof all / sizeof all[0], i, err));
    if ((w->kernel[i] - 1) * w->dilation[i] > TIDE_WINDOW_LIMIT)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW,
                            "window of dimension %d: kernel %" PRId64 " with dilation %" PRId64 " is too large", (int)i,
                            w->kernel[i], w->dilation[i]);
    return TIDE_OK;
}

// SAME: as many outputs as strides fit into the input; the padding follows from that.
static void pad_same(tide_window *w, int32_t i, bool upper) {
    w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
    int64_t total = (w->out[i] - 1) * w->stride[i] + tide_window_span(w, i) - w->in[i];
    if (total < 0) total = 0;
    w->pad_begin[i] = upper ? total / 2 : total - total / 2;
    w->pad_end[i] = total - w->pad_begin[i];
}

static tide_status slide(const tide_node *node, tide_window *w, int32_t i, bool ceil_mode, tide_error *err) {
    const int64_t padded = w->in[i] + w->pad_begin[i] + w->pad_end[i], span = tide_window_span(w, i);
    if (span > padded)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "spatial dimension %d: window of %" PRId64 " is larger than the padded input of %" PRId64,
                            (int)i, span, padded);
    const int64_t room = padded - span, s = w->stride[i];
    w->out[i] = (ceil_mode ? (room + s - 1) / s : room / s) + 1;
    if (ceil_mode && (w->out[i] - 1) * s >= w->in[i] + w->pad_begin[i]) w->out[i]--;
    return TIDE_OK;
}

tide_status tide_op_window(const tide_node *node, const tide_shape *x_shape, const int64_t *kernel, tide_window *out,
                           tide_error *err) {
    tide_window w = {.n = x_shape->rank - 2};
    const size_t n = (size_t)w.n;
    int64_t pads[2 * TIDE_WINDOW_MAX];
    tide_auto_pad auto_pad;
    TIDE_TRY(tide_op_ints_attr(node, "strides", n, 1, 1, w.stride, err));
    TIDE_TRY(tide_op_ints_attr(node, "dilations", n, 1, 1, w.dilation, err));
    TIDE_TRY(tide_op_ints_attr(node, "pads", 2 * n, 0, 0, pads, err));
    TIDE_TRY(tide_op_auto_pad(node, &auto_pad, err));
    const bool ceil_mode = tide_node_attr_int(node, "ceil_mode", 0) != 0;
    for (int32_t i = 0; i < w.n; i++) {
        w.in[i] = x_shape->dims[i + 2];
        w.kernel[i] = kernel[i];
        if (kernel[i] < 1)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "kernel extent %d is %" PRId64 ", must be at least 1",
                                (int)i, kernel[i]);
        // Files may carry pads beside auto_pad; only NOTSET reads them.
        w.pad_begin[i] = auto_pad == TIDE_AUTO_PAD_NOTSET ? pads[i] : 0;
        w.pad_end[i] = auto_pad == TIDE_AUTO_PAD_NOTSET ? pads[(size_t)i + n] : 0;
        TIDE_TRY(check_limits(node, &w, i, err));
        if (auto_pad == TIDE_AUTO_PAD_SAME_UPPER || auto_pad == TIDE_AUTO_PAD_SAME_LOWER)
            pad_same(&w, i, auto_pad == TIDE_AUTO_PAD_SAME_UPPER);
        else
            TIDE_TRY(slide(node, &w, i, ceil_mode && auto_pad == TIDE_AUTO_PAD_NOTSET, err));
    }
    *out = w;
    return TIDE_OK;
}

tide_window tide_window_widen(const tide_window *w) {
    tide_window r = {.n = TIDE_WINDOW_MAX};
    const int32_t lead = TIDE_WINDOW_MAX - w->n;
    for (int32_t i = 0; i < TIDE_WINDOW_MAX; i++) {
        const bool made_up = i < lead;
        const int32_t j = i - lead;
        r.in[i] = made_up ? 1 : w->in[j];
        r.kernel[i] = made_up ? 1 : w->kernel[j];
        r.stride[i] = made_up ? 1 : w->stride[j];
        r.dilation[i] = made_up ? 1 : w->dilation[j];
        r.pad_begin[i] = made_up ? 0 : w->pad_begin[j];
        r.pad_end[i] = made_up ? 0 : w->pad_end[j];
        r.out[i] = made_up ? 1 : w->out[j];
    }
    return r;
}
