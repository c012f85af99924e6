// SPDX-License-Identifier: MIT
//
// RoiAlign and MaxRoiPool: for each region of an image a grid of numbers of all its channels.
//
//     RoiAlign    each cell: places inside it, interpolated between four elements; their mean, or the largest
//     MaxRoiPool  each cell: the largest of the elements under it, 0 where there is none
//
// Regions are data: one that names no image, or is too large to be sampled, ends the run.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

enum { MAX_SAMPLES = 4096 }; ///< of a cell in one direction

static tide_status check_images(const tide_infer *x, tide_error *err) {
    if (!tide_dtype_is_float(x->in[0].dtype)) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 4, 4, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[1], "rois", 2, 2, err));
    return tide_data_same_dtype(x, 0, 1, err);
}

static tide_status check_regions(const tide_infer *x, int64_t n, tide_error *err) {
    const tide_shape want = {2, {x->in[1].shape.dims[0], n}};
    return tide_op_require_shape(x->node, &x->in[1], "rois", &want, err);
}

static tide_status set_out(const tide_infer *x, int64_t height, int64_t width, tide_error *err) {
    if (height < 1 || width < 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "an output of %lld by %lld", (long long)height,
                            (long long)width);
    const int64_t dims[] = {x->in[1].shape.dims[0], x->in[0].shape.dims[1], height, width};
    return tide_op_set_out(x, 0, x->in[0].dtype, 4, dims, err);
}

/// The image of region `r`.
static tide_status image_of(const tide_node *node, double asked, int64_t r, int64_t n, int64_t *out, tide_error *err) {
    if (!(asked >= 0 && asked < (double)n))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_RUNTIME, "region %lld is of image %g of %lld", (long long)r, asked,
                            (long long)n);
    *out = (int64_t)asked;
    return TIDE_OK;
}

// ---- RoiAlign ----

typedef struct align_rule {
    bool largest, half_pixel;
    int64_t ratio;
    double scale;
} align_rule;

static tide_status align_rule_of(const tide_node *node, align_rule *r, tide_error *err) {
    const char *mode = tide_node_attr_string(node, "mode", "avg");
    const char *coord = node->opset < 16 ? "output_half_pixel"
                                         : tide_node_attr_string(node, "coordinate_transformation_mode", "half_pixel");
    *r = (align_rule){.largest = strcmp(mode, "max") == 0,
                      .half_pixel = strcmp(coord, "half_pixel") == 0,
                      .ratio = tide_node_attr_int(node, "sampling_ratio", 0),
                      .scale = (double)tide_node_attr_float(node, "spatial_scale", 1.0f)};
    if (!r->largest && strcmp(mode, "avg") != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "mode '%s' is not known", mode);
    if (!r->half_pixel && strcmp(coord, "output_half_pixel") != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "coordinate_transformation_mode '%s' is not known", coord);
    if (r->ratio < 0 || r->ratio > MAX_SAMPLES)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "sampling_ratio is %lld, must be 0 to %d",
                            (long long)r->ratio, (int)MAX_SAMPLES);
    return TIDE_OK;
}

static tide_status align_infer(const tide_infer *x, tide_error *err) {
    align_rule rule;
    TIDE_TRY(check_images(x, err));
    TIDE_TRY(check_regions(x, 4, err));
    const tide_shape one_each = {1, {x->in[1].shape.dims[0]}};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[2], "batch_indices", TIDE_I64, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[2], "batch_indices", &one_each, err));
    TIDE_TRY(align_rule_of(x->node, &rule, err));
    TIDE_TRY(set_out(x, tide_node_attr_int(x->node, "output_height", 1), tide_node_attr_int(x->node, "output_width", 1),
                     err));
    if (tide_op_numel(&x->in[0].shape) == 0 && tide_op_numel(&x->out[0].shape) != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "X has no element to read");
    return TIDE_OK;
}

/// One direction of a region: cell c has `n` places from start + c * cell on, evenly spread.
typedef struct align_span {
    double start, cell;
    int64_t n;
} align_span;

static tide_status span_of(const tide_node *node, const align_rule *r, double begin, double end, int64_t n_cells,
                           align_span *out, tide_error *err) {
    const double offset = r->half_pixel ? 0.5 : 0;
    out->start = begin * r->scale - offset;
    double len = end * r->scale - offset - out->start;
    if (!r->half_pixel && len < 1) len = 1;
    out->cell = len / (double)n_cells;
    const double n = r->ratio > 0 ? (double)r->ratio : ceil(out->cell);
    if (!(n <= MAX_SAMPLES) || !(fabs(out->start) < 0x1p40) || !(fabs(len) < 0x1p40)) // nor is it NaN
        return TIDE_OP_FAIL(err, node, TIDE_ERR_RUNTIME, "a region from %g to %g is too large", begin, end);
    out->n = n > 0 ? (int64_t)n : 0;
    return TIDE_OK;
}

/// The two elements around a place and what the upper one counts. @return false: the place is outside
static bool around(double at, int64_t len, int64_t *low, int64_t *high, double *past) {
    if (at < -1 || at > (double)len) return false;
    const double inside = at <= 0 ? 0 : at >= (double)(len - 1) ? (double)(len - 1) : at;
    *low = (int64_t)inside;
    *high = *low + 1 < len ? *low + 1 : *low;
    *past = inside - (double)*low;
    return true;
}

typedef struct plane {
    tide_dtype dtype;
    const void *data;
    int64_t height, width;
} plane;

static double element(const plane *p, int64_t y, int64_t x) {
    return tide_data_load_f64(p->dtype, p->data, y * p->width + x);
}

/// Interpolated at one place. With `largest` the largest of the four weighted elements, as ONNX's reference has it.
static double sample(const plane *p, double y, double x, bool largest) {
    int64_t y0, y1, x0, x1;
    double v, u;
    if (!around(y, p->height, &y0, &y1, &v) || !around(x, p->width, &x0, &x1, &u)) return 0;
    const double a = (1 - v) * (1 - u) * element(p, y0, x0), b = (1 - v) * u * element(p, y0, x1);
    const double c = v * (1 - u) * element(p, y1, x0), d = v * u * element(p, y1, x1);
    return largest ? fmax(fmax(a, b), fmax(c, d)) : a + b + c + d;
}

static double align_cell(const plane *p, const align_rule *r, const align_span *rows, const align_span *cols,
                         int64_t row, int64_t col) {
    double sum = 0, best = -INFINITY;
    for (int64_t i = 0; i < rows->n; i++) {
        const double y = rows->start + ((double)row + ((double)i + 0.5) / (double)rows->n) * rows->cell;
        for (int64_t j = 0; j < cols->n; j++) {
            const double x = cols->start + ((double)col + ((double)j + 0.5) / (double)cols->n) * cols->cell;
            const double v = sample(p, y, x, r->largest);
            sum += v;
            best = v > best ? v : best;
        }
    }
    const int64_t n = rows->n * cols->n;
    return n == 0 ? 0 : r->largest ? best : sum / (double)n;
}

/// Places of all cells. A region that cannot be sampled ends the run soon.
static double align_work(const tide_infer *x) {
    align_rule rule;
    const int64_t *o = x->out[0].shape.dims, cells = tide_op_count(&x->out[0].shape, 1, 4);
    double n = 0;
    if (align_rule_of(x->node, &rule, NULL) != TIDE_OK) return 0;
    if (rule.ratio > 0 || x->in[1].data == NULL)
        return (double)tide_op_numel(&x->out[0].shape) * (double)(rule.ratio * rule.ratio);
    for (int64_t r = 0; r < o[0]; r++) {
        double at[4];
        align_span rows, cols;
        for (int64_t i = 0; i < 4; i++) at[i] = tide_data_load_f64(x->in[1].dtype, x->in[1].data, r * 4 + i);
        if (span_of(x->node, &rule, at[1], at[3], o[2], &rows, NULL) == TIDE_OK &&
            span_of(x->node, &rule, at[0], at[2], o[3], &cols, NULL) == TIDE_OK)
            n += (double)cells * (double)rows.n * (double)cols.n;
    }
    return n;
}

static tide_status align_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *x = &a->in[0], *rois = &a->in[1], *out = &a->out[0];
    const int64_t *s = x->shape.dims, *o = out->shape.dims, *images = a->in[2].data;
    align_rule rule;
    TIDE_TRY(align_rule_of(k->node, &rule, err));
    if (out->size_bytes == 0) return TIDE_OK;
    for (int64_t r = 0; r < o[0]; r++) {
        double corner[4];
        align_span rows, cols;
        int64_t image = 0;
        TIDE_TRY(image_of(k->node, (double)images[r], r, s[0], &image, err));
        for (int64_t i = 0; i < 4; i++) corner[i] = tide_data_load_f64(rois->dtype, rois->data, r * 4 + i);
        TIDE_TRY(span_of(k->node, &rule, corner[1], corner[3], o[2], &rows, err));
        TIDE_TRY(span_of(k->node, &rule, corner[0], corner[2], o[3], &cols, err));
        for (int64_t c = 0; c < s[1]; c++) {
            const size_t elem = tide_dtype_size(x->dtype);
            const plane p = {x->dtype, tide_data_const_at(x->data, (image * s[1] + c) * s[2] * s[3], elem), s[2], s[3]};
            for (int64_t i = 0; i < o[2] * o[3]; i++)
                tide_data_store_f64(out->dtype, out->data, (r * s[1] + c) * o[2] * o[3] + i,
                                    align_cell(&p, &rule, &rows, &cols, i / o[3], i % o[3]));
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_roi_align = {
    .name = "RoiAlign",
    .domain = "",
    .since = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "mode"), TIDE_ATTR(INT, "output_height"), TIDE_ATTR(INT, "output_width"),
                        TIDE_ATTR(INT, "sampling_ratio"), TIDE_ATTR(FLOAT, "spatial_scale"),
                        TIDE_ATTR(STRING, "coordinate_transformation_mode", .since = 16)),
    .min_inputs = 3,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = align_infer,
    .work = align_work,
    .run = align_run};

// ---- MaxRoiPool ----

static tide_status pool_infer(const tide_infer *x, tide_error *err) {
    int64_t pooled[2];
    TIDE_TRY(check_images(x, err));
    TIDE_TRY(check_regions(x, 5, err));
    TIDE_TRY(tide_op_ints_attr(x->node, "pooled_shape", 2, 0, 1, pooled, err));
    return set_out(x, pooled[0], pooled[1], err);
}

/// Elements [*begin, *end) of `len` under cell `c` of `n` of a region from `from` to `to`, both in whole elements.
static void pool_span(double from, double to, int64_t c, int64_t n, int64_t len, int64_t *begin, int64_t *end) {
    const double size = fmax(to - from + 1, 1), cell = size / (double)n;
    const double lo = from + floor((double)c * cell), hi = from + ceil((double)(c + 1) * cell);
    *begin = lo >= 0 ? (lo < (double)len ? (int64_t)lo : len) : 0;
    *end = hi >= 0 ? (hi < (double)len ? (int64_t)hi : len) : 0;
}

/// At most: cells may share elements.
static double pool_work(const tide_infer *x) {
    return (double)tide_op_numel(&x->out[0].shape) * (double)tide_op_count(&x->in[0].shape, 2, 4);
}

static double pool_cell(const plane *p, const double *corner, int64_t row, int64_t n_rows, int64_t col,
                        int64_t n_cols) {
    int64_t y0, y1, x0, x1;
    double best = -INFINITY;
    pool_span(corner[1], corner[3], row, n_rows, p->height, &y0, &y1);
    pool_span(corner[0], corner[2], col, n_cols, p->width, &x0, &x1);
    if (y0 >= y1 || x0 >= x1) return 0;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) best = fmax(best, element(p, y, x));
    return best;
}

static tide_status pool_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *x = &a->in[0], *rois = &a->in[1], *out = &a->out[0];
    const int64_t *s = x->shape.dims, *o = out->shape.dims;
    const double scale = (double)tide_node_attr_float(k->node, "spatial_scale", 1.0f);
    if (out->size_bytes == 0) return TIDE_OK;
    for (int64_t r = 0; r < o[0]; r++) {
        double corner[4];
        int64_t image = 0;
        TIDE_TRY(image_of(k->node, tide_data_load_f64(rois->dtype, rois->data, r * 5), r, s[0], &image, err));
        for (int64_t i = 0; i < 4; i++)
            corner[i] = round(tide_data_load_f64(rois->dtype, rois->data, r * 5 + 1 + i) * scale);
        for (int64_t c = 0; c < s[1]; c++) {
            const size_t elem = tide_dtype_size(x->dtype);
            const plane p = {x->dtype, tide_data_const_at(x->data, (image * s[1] + c) * s[2] * s[3], elem), s[2], s[3]};
            for (int64_t i = 0; i < o[2] * o[3]; i++)
                tide_data_store_f64(out->dtype, out->data, (r * s[1] + c) * o[2] * o[3] + i,
                                    pool_cell(&p, corner, i / o[3], o[2], i % o[3], o[3]));
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_max_roi_pool = {
    .name = "MaxRoiPool",
    .domain = "",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "pooled_shape"), TIDE_ATTR(FLOAT, "spatial_scale")),
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = pool_infer,
    .work = pool_work,
    .run = pool_run};
