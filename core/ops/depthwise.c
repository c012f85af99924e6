// SPDX-License-Identifier: MIT
//
// Depthwise convolution in plain loops. See depthwise.h.
//
// oneDNN's plain layout runs these as one tiny matrix product per channel: 3 to 6 GFLOP/s here, and an im2col scratch
// of its own; its fast kernel wants channels last, that is two reorders and a second copy of both operands. The loop
// takes one output row at a time and adds kernel taps as shifted rows, which the compiler turns into vector code.
#include "core/ops/depthwise.h"

#include "core/ops/act.h"

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

void tide_depthwise_init(tide_depthwise *d, int64_t batch, int64_t groups, int64_t multiplier, const tide_window *w,
                         const tide_activation *act) {
    *d = (tide_depthwise){batch, groups, multiplier, tide_window_widen(w), *act};
}

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

// Outputs ow whose tap reads inside the row: 0 <= ow * stride + shift < in.
static void tap_range(const tide_window *w, int64_t shift, int64_t *begin, int64_t *end) {
    const int64_t s = w->stride[2], last = w->in[2] - 1 - shift;
    *begin = shift >= 0 ? 0 : (-shift + s - 1) / s;
    *end = last < 0 ? 0 : min_i64(w->out[2], last / s + 1);
}

// y[ow] += f * x[ow * stride + shift] wherever that is inside.
static void add_tap(const tide_window *w, const float *restrict x, float f, int64_t shift, float *restrict y) {
    int64_t begin, end;
    tap_range(w, shift, &begin, &end);
    const int64_t s = w->stride[2];
    if (s == 1) {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[i + shift];
    } else if (s == 2) {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[2 * i + shift];
    } else {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[i * s + shift];
    }
}

// Three neighbouring taps in one pass over the interior: a third of the loads and stores of y. The order of additions
// per element is that of three add_tap calls.
static void add_taps_3(const tide_window *w, const float *restrict x, const float *f, int64_t shift,
                       float *restrict y) {
    const int64_t s = w->stride[2], d = w->dilation[2];
    int64_t begin, end, unused;
    tap_range(w, shift, &begin, &unused);
    tap_range(w, shift + 2 * d, &unused, &end);
    begin = min_i64(begin, w->out[2]);
    end = max_i64(begin, end);
    const float f0 = f[0], f1 = f[1], f2 = f[2];
    if (s == 1)
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[i + shift]) + f1 * x[i + shift + d]) + f2 * x[i + shift + 2 * d];
    else if (s == 2)
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[2 * i + shift]) + f1 * x[2 * i + shift + d]) + f2 * x[2 * i + shift + 2 * d];
    else
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[i * s + shift]) + f1 * x[i * s + shift + d]) + f2 * x[i * s + shift + 2 * d];
    for (int64_t i = 0; i < w->out[2]; i++) {
        if (i == begin) i = end;
        if (i >= w->out[2]) break;
        for (int64_t t = 0; t < 3; t++) {
            const int64_t at = i * s + shift + t * d;
            if (at >= 0 && at < w->in[2]) y[i] += f[t] * x[at];
        }
    }
}

static void add_row(const tide_window *w, const float *x, const float *f, float *y) {
    int64_t k = 0;
    for (; k + 3 <= w->kernel[2]; k += 3) add_taps_3(w, x, f + k, k * w->dilation[2] - w->pad_begin[2], y);
    for (; k < w->kernel[2]; k++) add_tap(w, x, f[k], k * w->dilation[2] - w->pad_begin[2], y);
}

static void plane(const tide_depthwise *d, const float *x, const float *f, float bias, float *y) {
    const tide_window *w = &d->window;
    for (int64_t od = 0; od < w->out[0]; od++) {
        for (int64_t oh = 0; oh < w->out[1]; oh++, y += w->out[2]) {
            for (int64_t i = 0; i < w->out[2]; i++) y[i] = bias;
            for (int64_t kd = 0; kd < w->kernel[0]; kd++) {
                const int64_t id = od * w->stride[0] + kd * w->dilation[0] - w->pad_begin[0];
                if (id < 0 || id >= w->in[0]) continue;
                for (int64_t kh = 0; kh < w->kernel[1]; kh++) {
                    const int64_t ih = oh * w->stride[1] + kh * w->dilation[1] - w->pad_begin[1];
                    if (ih < 0 || ih >= w->in[1]) continue;
                    add_row(w, x + (id * w->in[1] + ih) * w->in[2], f + (kd * w->kernel[1] + kh) * w->kernel[2], y);
                }
            }
            tide_act_apply(&d->act, y, w->out[2]);
        }
    }
}

void tide_depthwise_run(const tide_depthwise *d, const float *x, const float *w, const float *bias, float *y) {
    const tide_window *v = &d->window;
    const int64_t in_len = v->in[0] * v->in[1] * v->in[2], out_len = v->out[0] * v->out[1] * v->out[2];
    const int64_t taps = v->kernel[0] * v->kernel[1] * v->kernel[2], n_out = d->groups * d->multiplier;
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t c = 0; c < n_out; c++) {
            const float *plane_x = x + (b * d->groups + c / d->multiplier) * in_len;
            plane(d, plane_x, w + c * taps, bias != NULL ? bias[c] : 0.0f, y + (b * n_out + c) * out_len);
        }
    }
}
