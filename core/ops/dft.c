// SPDX-License-Identifier: MIT
//
// DFT of one axis, and STFT of the frames of a signal, on any float type; calculated in double (fourier.h). The last
// axis of an operand holds real numbers (extent 1) or complex ones (2), that of the output complex ones.
//
//     DFT   input [… axis …, 1 | 2], cut or filled with 0 to dft_length; onesided: n / 2 + 1 of real numbers
//     STFT  signal [batch, length(, 1 | 2)], every frame_step elements a frame, times the window
#include <inttypes.h>

#include "core/ops/data_util.h"
#include "core/ops/fourier.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// One number whose content is known: of a length or a step.
static tide_status read_one(const tide_infer *x, size_t i, const char *what, int64_t least, int64_t *out,
                            tide_error *err) {
    size_t n;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[i], what, 1, out, &n, err));
    if (n != 1 || *out < least || *out > TIDE_FOURIER_MAX)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "%s is %" PRId64 ", must be one number from %" PRId64 " to %d", what, n == 1 ? *out : 0,
                            least, TIDE_FOURIER_MAX);
    return TIDE_OK;
}

static tide_status require_float(const tide_infer *x, size_t i, tide_error *err) {
    return tide_dtype_is_float(x->in[i].dtype) ? TIDE_OK : tide_data_no_dtype(x->node, x->in[i].dtype, err);
}

static tide_status set_scratch(int64_t n, const tide_operand *out, tide_kernel *k) {
    if (tide_op_numel(&out->shape) > 0) k->workspace_bytes = TIDE_FOURIER_ARRAYS * (size_t)n * sizeof(tide_complex);
    return TIDE_OK;
}

/// f->in[i] = element `at` of a tensor of `parts` numbers each.
static void load(const tide_fourier *f, int64_t i, const tide_operand *o, int64_t at, int64_t parts, double factor) {
    f->in[i].re = factor * tide_data_load_f64(o->dtype, o->data, at * parts);
    f->in[i].im = parts == 2 ? factor * tide_data_load_f64(o->dtype, o->data, at * parts + 1) : 0;
}

static void store(const tide_fourier *f, int64_t i, const tide_operand *o, int64_t at) {
    tide_data_store_f64(o->dtype, o->data, at * 2, f->out[i].re);
    tide_data_store_f64(o->dtype, o->data, at * 2 + 1, f->out[i].im);
}

// ---- DFT ----

enum { DFT_X, DFT_LENGTH, DFT_AXIS };

/// Before opset 20 the axis is an attribute.
static tide_status read_axis(const tide_infer *x, int32_t *axis, tide_error *err) {
    int64_t asked = x->node->opset < 20 ? tide_node_attr_int(x->node, "axis", 1) : -2;
    size_t n = 1;
    if (x->node->opset >= 20 && tide_op_has_in(x, DFT_AXIS))
        TIDE_TRY(tide_op_read_ints(x->node, &x->in[DFT_AXIS], "axis", 1, &asked, &n, err));
    const int32_t rank = x->in[DFT_X].shape.rank;
    TIDE_TRY(tide_op_axis(x->node, asked, rank, axis, err));
    if (n == 1 && *axis < rank - 1) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                        "the axis must be one, and not the last, which holds the numbers");
}

typedef struct dft {
    int32_t axis;
    int64_t n; ///< length of the transform
} dft;

static tide_status read_dft(const tide_infer *x, dft *d, tide_error *err) {
    TIDE_TRY(read_axis(x, &d->axis, err));
    d->n = x->in[DFT_X].shape.dims[d->axis];
    if (tide_op_has_in(x, DFT_LENGTH)) return read_one(x, DFT_LENGTH, "dft_length", 1, &d->n, err);
    if (d->n <= TIDE_FOURIER_MAX) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "a transform of %" PRId64 " numbers; at most %d", d->n,
                        TIDE_FOURIER_MAX);
}

static tide_status infer_dft(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[DFT_X].shape;
    dft d;
    TIDE_TRY(require_float(x, DFT_X, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[DFT_X], "input", 2, TIDE_MAX_RANK, err));
    TIDE_TRY(read_dft(x, &d, err));
    const int64_t parts = s->dims[s->rank - 1];
    const bool onesided = tide_node_attr_int(x->node, "onesided", 0) != 0;
    if (parts != 1 && parts != 2)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "the last extent is %" PRId64 ", must be 1 (real) or 2 (complex)", parts);
    if (onesided && parts == 2) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "onesided is for real input");
    if (onesided && tide_node_attr_int(x->node, "inverse", 0) != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                            "onesided and inverse together are not implemented");
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t i = 0; i < s->rank; i++) dims[i] = s->dims[i];
    dims[d.axis] = onesided && d.n > 0 ? d.n / 2 + 1 : d.n;
    dims[s->rank - 1] = 2;
    return tide_op_set_out(x, 0, x->in[DFT_X].dtype, s->rank, dims, err);
}

static tide_status prepare_dft(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    dft d;
    TIDE_TRY(read_dft(&(tide_infer){.node = x->node, .in = x->in, .n_in = x->n_in}, &d, err));
    return set_scratch(d.n, &x->out[0], k);
}

static tide_status run_dft(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *in = &args->in[DFT_X], *out = &args->out[0];
    const bool inverse = tide_node_attr_int(k->node, "inverse", 0) != 0;
    dft d;
    TIDE_TRY(read_dft(&(tide_infer){.node = k->node, .in = args->in, .n_in = args->n_in}, &d, err));
    if (out->size_bytes == 0) return TIDE_OK;
    const int32_t last = in->shape.rank - 1;
    const int64_t parts = in->shape.dims[last], length = in->shape.dims[d.axis], n_out = out->shape.dims[d.axis];
    const int64_t inner = tide_op_count(&in->shape, d.axis + 1, last), outer = tide_op_count(&in->shape, 0, d.axis);
    tide_fourier f;
    tide_fourier_init(&f, d.n, inverse, args->workspace);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t j = 0; j < inner; j++) {
            for (int64_t i = 0; i < d.n; i++) {
                f.in[i] = (tide_complex){0, 0};
                if (i < length) load(&f, i, in, (o * length + i) * inner + j, parts, 1);
            }
            tide_fourier_run(&f, inverse);
            for (int64_t i = 0; i < n_out; i++) store(&f, i, out, (o * n_out + i) * inner + j);
        }
    }
    return TIDE_OK;
}

static double work_dft(const tide_infer *x) {
    dft d;
    if (read_dft(x, &d, NULL) != TIDE_OK || d.n == 0 || tide_op_numel(&x->out[0].shape) == 0) return 0;
    return (double)tide_op_numel(&x->out[0].shape) / (double)x->out[0].shape.dims[d.axis] / 2 * tide_fourier_work(d.n);
}

#define DFT_ROW(row, since_, until_, most_, axis_attr)                                                                 \
    const tide_op_def tide_op_##row = {                                                                                \
        .name = "DFT",                                                                                                 \
        .domain = "",                                                                                                  \
        .since = since_,                                                                                               \
        .until = until_,                                                                                               \
        .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "inverse"), TIDE_ATTR(INT, "onesided"), TIDE_ATTR(INT, axis_attr)),         \
        .min_inputs = 1,                                                                                               \
        .max_inputs = most_,                                                                                           \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .infer = infer_dft,                                                                                            \
        .work = work_dft,                                                                                              \
        .prepare = prepare_dft,                                                                                        \
        .run = run_dft};
DFT_ROW(dft_17, 17, 19, 2, "axis")
DFT_ROW(dft_20, 20, 0, 3, NULL)

// ---- STFT ----

enum { SIGNAL, STEP, WINDOW, FRAME };

typedef struct stft {
    int64_t step, n, frames, parts;
    bool has_window;
} stft;

static tide_status read_stft(const tide_infer *x, stft *s, tide_error *err) {
    const tide_shape *signal = &x->in[SIGNAL].shape;
    *s = (stft){.parts = signal->rank == 3 ? signal->dims[2] : 1, .has_window = tide_op_has_in(x, WINDOW)};
    TIDE_TRY(read_one(x, STEP, "frame_step", 1, &s->step, err));
    if (s->has_window) s->n = x->in[WINDOW].shape.dims[0];
    if (tide_op_has_in(x, FRAME)) TIDE_TRY(read_one(x, FRAME, "frame_length", 1, &s->n, err));
    if (s->has_window)
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[WINDOW], "window", &(tide_shape){1, {s->n}}, err));
    if (s->n < 1 || s->n > TIDE_FOURIER_MAX || s->n > signal->dims[1])
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "frames of %" PRId64 " in a signal of %" PRId64 " (at most %d)", s->n, signal->dims[1],
                            TIDE_FOURIER_MAX);
    s->frames = (signal->dims[1] - s->n) / s->step + 1;
    return TIDE_OK;
}

static tide_status infer_stft(const tide_infer *x, tide_error *err) {
    const bool onesided = tide_node_attr_int(x->node, "onesided", 1) != 0;
    stft s;
    TIDE_TRY(require_float(x, SIGNAL, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[SIGNAL], "signal", 2, 3, err));
    if (tide_op_has_in(x, WINDOW)) {
        TIDE_TRY(tide_data_same_dtype(x, SIGNAL, WINDOW, err));
        TIDE_TRY(tide_op_require_rank(x->node, &x->in[WINDOW], "window", 1, 1, err));
    } else if (!tide_op_has_in(x, FRAME)) {
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "neither window nor frame_length says how long a frame is");
    }
    TIDE_TRY(read_stft(x, &s, err));
    if (s.parts != 1 && s.parts != 2)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "the last extent is %" PRId64 ", must be 1 (real) or 2 (complex)", s.parts);
    if (onesided && s.parts == 2) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "onesided is for real input");
    const int64_t dims[] = {x->in[SIGNAL].shape.dims[0], s.frames, onesided ? s.n / 2 + 1 : s.n, 2};
    return tide_op_set_out(x, 0, x->in[SIGNAL].dtype, 4, dims, err);
}

static tide_status prepare_stft(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    stft s;
    TIDE_TRY(read_stft(&(tide_infer){.node = x->node, .in = x->in, .n_in = x->n_in}, &s, err));
    return set_scratch(s.n, &x->out[0], k);
}

static double work_stft(const tide_infer *x) {
    stft s;
    if (read_stft(x, &s, NULL) != TIDE_OK) return 0;
    return (double)x->in[SIGNAL].shape.dims[0] * (double)s.frames * tide_fourier_work(s.n);
}

static tide_status run_stft(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *in = &args->in[SIGNAL], *out = &args->out[0];
    stft s;
    TIDE_TRY(read_stft(&(tide_infer){.node = k->node, .in = args->in, .n_in = args->n_in}, &s, err));
    if (out->size_bytes == 0) return TIDE_OK;
    const int64_t bins = out->shape.dims[2], length = in->shape.dims[1];
    const tide_operand *window = s.has_window ? &args->in[WINDOW] : NULL;
    tide_fourier f;
    tide_fourier_init(&f, s.n, false, args->workspace);
    for (int64_t t = 0; t < in->shape.dims[0] * s.frames; t++) {
        const int64_t first = t / s.frames * length + t % s.frames * s.step;
        for (int64_t i = 0; i < s.n; i++)
            load(&f, i, in, first + i, s.parts,
                 window != NULL ? tide_data_load_f64(window->dtype, window->data, i) : 1);
        tide_fourier_run(&f, false);
        for (int64_t i = 0; i < bins; i++) store(&f, i, out, t * bins + i);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_stft = {.name = "STFT",
                                  .domain = "",
                                  .since = 17,
                                  .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "onesided")),
                                  .min_inputs = 2,
                                  .max_inputs = 4,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .infer = infer_stft,
                                  .work = work_stft,
                                  .prepare = prepare_stft,
                                  .run = run_stft};
