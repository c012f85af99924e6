// SPDX-License-Identifier: MIT
//
// Normalisations of com.microsoft in front of which something is added up, float32, over the last axis:
//
//     SkipLayerNormalization            norm(input + skip + bias) * gamma + beta
//     SkipSimplifiedLayerNormalization  rms(input + skip + bias) * gamma
//     EmbedLayerNormalization           norm(word[id] + position[p] + segment[s]) * gamma + beta
//
// The sum of a row is made where the output will be, or where it is asked for; nothing else is kept.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static const float *data_of(const tide_kernel_args *a, size_t i) {
    return i < a->n_in && tide_operand_present(&a->in[i]) ? a->in[i].data : NULL;
}
static void *result_of(const tide_kernel_args *a, size_t i) {
    return i < a->n_out && tide_operand_present(&a->out[i]) ? a->out[i].data : NULL;
}

/// One row normalised: y may be x. `beta` may be NULL; `mean` NULL: by the root of the mean square alone.
static void normalise(const float *x, int64_t n, const float *gamma, const float *beta, double epsilon, float *y,
                      float *mean, float *inverse) {
    double sum = 0, square = 0;
    for (int64_t i = 0; mean != NULL && i < n; i++) sum += (double)x[i];
    const double m = sum / (double)n;
    for (int64_t i = 0; i < n; i++) square += ((double)x[i] - m) * ((double)x[i] - m);
    const float centre = (float)m, factor = (float)(1 / sqrt(square / (double)n + epsilon));
    if (beta != NULL)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - centre) * factor * gamma[i] + beta[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - centre) * factor * gamma[i];
    if (mean != NULL) *mean = centre;
    *inverse = factor;
}

/// Operand `i`, where it is there, has one float32 for each of the last axis' `n`.
static tide_status require_row(const tide_infer *x, size_t i, const char *what, int64_t n, tide_error *err) {
    if (!tide_op_has_in(x, i)) return TIDE_OK;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, TIDE_F32, err));
    return tide_op_require_shape(x->node, &x->in[i], what, &(tide_shape){1, {n}}, err);
}

// ---- SkipLayerNormalization, SkipSimplifiedLayerNormalization ----

typedef struct skip_family {
    bool centred;
    size_t beta, bias; ///< inputs; 0: there is none
} skip_family;
static const skip_family layer = {true, 3, 4}, rms = {false, 0, 3};

enum { SKIP_Y, SKIP_MEAN, SKIP_INVERSE, SKIP_SUM };

/// skip: the shape of input, or that of one item of it, with or without a batch of 1.
static tide_status check_skip(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape, *skip = &x->in[1].shape;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "skip", TIDE_F32, err));
    if (s->rank == 3 && (skip->rank == 2 || (skip->rank == 3 && skip->dims[0] == 1))) {
        const tide_shape one = {3, {1, s->dims[1], s->dims[2]}}, item = {2, {s->dims[1], s->dims[2]}};
        return tide_op_require_shape(x->node, &x->in[1], "skip", skip->rank == 2 ? &item : &one, err);
    }
    return tide_op_require_shape(x->node, &x->in[1], "skip", s, err);
}

static tide_status infer_skip(const tide_infer *x, tide_error *err) {
    const skip_family *f = x->node->def->family;
    const tide_shape *s = &x->in[0].shape;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "input", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "input", 2, 3, err));
    TIDE_TRY(check_skip(x, err));
    const int64_t n = s->dims[s->rank - 1];
    TIDE_TRY(require_row(x, 2, "gamma", n, err));
    if (f->beta != 0) TIDE_TRY(require_row(x, f->beta, "beta", n, err));
    TIDE_TRY(require_row(x, f->bias, "bias", n, err));
    TIDE_TRY(tide_op_infer_same(x, err));
    int64_t dims[TIDE_MAX_RANK] = {s->dims[0], s->dims[1], 1};
    dims[s->rank - 1] = 1;
    for (size_t i = SKIP_MEAN; i <= SKIP_INVERSE; i++)
        if (tide_op_has_out(x, i)) TIDE_TRY(tide_op_set_out(x, i, TIDE_F32, s->rank, dims, err));
    return tide_op_has_out(x, SKIP_SUM) ? tide_op_set_out(x, SKIP_SUM, TIDE_F32, s->rank, s->dims, err) : TIDE_OK;
}

static tide_status run_skip(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const skip_family *f = k->def->family;
    const tide_shape *s = &args->in[0].shape;
    const int64_t n = s->dims[s->rank - 1], n_skip = tide_op_numel(&args->in[1].shape);
    const float *x = args->in[0].data, *skip = args->in[1].data, *gamma = args->in[2].data;
    const float *beta = f->beta != 0 ? data_of(args, f->beta) : NULL, *bias = data_of(args, f->bias);
    float *y = args->out[SKIP_Y].data, *sums = result_of(args, SKIP_SUM);
    float *means = result_of(args, SKIP_MEAN), *inverses = result_of(args, SKIP_INVERSE);
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-12f);
    const int64_t n_rows = tide_op_count(s, 0, s->rank - 1);
    if (args->out[SKIP_Y].size_bytes == 0 && means == NULL && inverses == NULL) return TIDE_OK;
    for (int64_t r = 0; r < n_rows; r++) {
        float *sum = sums != NULL ? sums + r * n : y + r * n, mean, inverse;
        const float *other = skip + (n_skip > 0 ? r * n % n_skip : 0);
        for (int64_t i = 0; i < n; i++) sum[i] = x[r * n + i] + other[i] + (bias != NULL ? bias[i] : 0);
        normalise(sum, n, gamma, beta, epsilon, y + r * n, f->centred ? &mean : NULL, &inverse);
        if (means != NULL) means[r] = f->centred ? mean : 0;
        if (inverses != NULL) inverses[r] = inverse;
    }
    return TIDE_OK;
}

#define SKIP(row, name_, family_, max_inputs_)                                                                         \
    const tide_op_def tide_op_##row = {.domain = "com.microsoft",                                                      \
                                       .name = name_,                                                                  \
                                       .since = 1,                                                                     \
                                       .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "epsilon")),                               \
                                       .inplace_inputs = 1u << 0 | 1u << 1,                                            \
                                       .min_inputs = 3,                                                                \
                                       .max_inputs = max_inputs_,                                                      \
                                       .min_outputs = 1,                                                               \
                                       .max_outputs = 4,                                                               \
                                       .family = &family_,                                                             \
                                       .infer = infer_skip,                                                            \
                                       .run = run_skip};
SKIP(skip_layer_norm, "SkipLayerNormalization", layer, 5)
SKIP(skip_rms_norm, "SkipSimplifiedLayerNormalization", rms, 4)

// ---- EmbedLayerNormalization ----

enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, EMBED_MASK, POSITIONS };
enum { EMBED_Y, EMBED_LENGTHS, EMBED_SUM };

/// ids of int32, [batch, seq]; those of positions may be one row for all.
static tide_status check_ids(const tide_infer *x, size_t i, const char *what, tide_error *err) {
    if (!tide_op_has_in(x, i)) return TIDE_OK;
    const tide_shape *ids = &x->in[IDS].shape;
    const tide_shape one = {2, {1, ids->dims[1]}};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, TIDE_I32, err));
    if (i == POSITIONS && tide_shape_equal(&x->in[i].shape, &one)) return TIDE_OK;
    return tide_op_require_shape(x->node, &x->in[i], what, ids, err);
}

static tide_status check_table(const tide_infer *x, size_t i, const char *what, int64_t n, tide_error *err) {
    if (!tide_op_has_in(x, i)) return TIDE_OK;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[i], what, 2, 2, err));
    return tide_op_require_shape(x->node, &x->in[i], what, &(tide_shape){2, {x->in[i].shape.dims[0], n}}, err);
}

static tide_status infer_embed(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[IDS], "input_ids", 2, 2, err));
    TIDE_TRY(check_ids(x, IDS, "input_ids", err));
    TIDE_TRY(check_ids(x, SEGMENTS, "segment_ids", err));
    TIDE_TRY(check_ids(x, EMBED_MASK, "mask", err));
    TIDE_TRY(check_ids(x, POSITIONS, "position_ids", err));
    static const size_t needed[] = {WORD, POSITION, GAMMA, BETA};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!tide_op_has_in(x, needed[i]))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input %zu is left out, the operator needs it",
                                needed[i]);
    if (tide_op_has_in(x, SEGMENTS) != tide_op_has_in(x, SEGMENT))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "segment_ids and segment_embedding go together");
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[WORD], "word_embedding", 2, 2, err));
    const int64_t n = x->in[WORD].shape.dims[1], *ids = x->in[IDS].shape.dims;
    TIDE_TRY(check_table(x, WORD, "word_embedding", n, err));
    TIDE_TRY(check_table(x, POSITION, "position_embedding", n, err));
    TIDE_TRY(check_table(x, SEGMENT, "segment_embedding", n, err));
    TIDE_TRY(require_row(x, GAMMA, "gamma", n, err));
    TIDE_TRY(require_row(x, BETA, "beta", n, err));
    const int64_t dims[] = {ids[0], ids[1], n};
    TIDE_TRY(tide_op_set_out(x, EMBED_Y, TIDE_F32, 3, dims, err));
    if (tide_op_has_out(x, EMBED_LENGTHS)) TIDE_TRY(tide_op_set_out(x, EMBED_LENGTHS, TIDE_I32, 1, ids, err));
    return tide_op_has_out(x, EMBED_SUM) ? tide_op_set_out(x, EMBED_SUM, TIDE_F32, 3, dims, err) : TIDE_OK;
}

/// Row `id` of a table; TIDE_ERR_RUNTIME when it has no such row.
static tide_status row_at(const tide_kernel *k, const tide_operand *table, const char *what, int64_t id,
                          const float **row, tide_error *err) {
    if (id < 0 || id >= table->shape.dims[0])
        return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "%s %lld is outside of a table of %lld", what,
                            (long long)id, (long long)table->shape.dims[0]);
    *row = table->data != NULL ? (const float *)table->data + id * table->shape.dims[1] : NULL;
    return TIDE_OK;
}

/// sum = what the tables hold for token `t` of the batch.
static tide_status embed(const tide_kernel *k, const tide_kernel_args *args, int64_t t, float *sum, tide_error *err) {
    const int32_t *ids = args->in[IDS].data, *segments = NULL, *positions = NULL;
    const int64_t seq = args->in[IDS].shape.dims[1], n = args->in[WORD].shape.dims[1];
    const float *word = NULL, *position = NULL, *segment = NULL;
    if (data_of(args, SEGMENTS) != NULL) segments = args->in[SEGMENTS].data;
    if (data_of(args, POSITIONS) != NULL) positions = args->in[POSITIONS].data;
    const int64_t at = positions == NULL ? t % seq : positions[args->in[POSITIONS].shape.dims[0] == 1 ? t % seq : t];
    TIDE_TRY(row_at(k, &args->in[WORD], "word", ids[t], &word, err));
    TIDE_TRY(row_at(k, &args->in[POSITION], "position", at, &position, err));
    if (segments != NULL) TIDE_TRY(row_at(k, &args->in[SEGMENT], "segment", segments[t], &segment, err));
    for (int64_t i = 0; i < n; i++) sum[i] = word[i] + position[i] + (segment != NULL ? segment[i] : 0);
    return TIDE_OK;
}

/// The number of tokens that are not masked; 0 without a mask.
static void write_lengths(const tide_kernel_args *args, int32_t *lengths) {
    const int32_t *mask = args->n_in > EMBED_MASK ? args->in[EMBED_MASK].data : NULL;
    const int64_t *dims = args->in[IDS].shape.dims;
    for (int64_t b = 0; lengths != NULL && b < dims[0]; b++) {
        lengths[b] = 0;
        for (int64_t t = 0; mask != NULL && t < dims[1]; t++) lengths[b] += mask[b * dims[1] + t] == 1;
    }
}

static tide_status run_embed(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const int64_t n = args->in[WORD].shape.dims[1], n_tokens = tide_op_numel(&args->in[IDS].shape);
    float *y = args->out[EMBED_Y].data, *sums = result_of(args, EMBED_SUM);
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-12f);
    write_lengths(args, result_of(args, EMBED_LENGTHS));
    if (args->out[EMBED_Y].size_bytes == 0) return TIDE_OK;
    for (int64_t t = 0; t < n_tokens; t++) {
        float *sum = sums != NULL ? sums + t * n : y + t * n, mean, inverse;
        TIDE_TRY(embed(k, args, t, sum, err));
        normalise(sum, n, args->in[GAMMA].data, args->in[BETA].data, epsilon, y + t * n, &mean, &inverse);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_embed_layer_norm = {
    .domain = "com.microsoft",
    .name = "EmbedLayerNormalization",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "mask_index_type")),
    .min_inputs = 1, // and those that inference asks for: optional ones stand between them
    .max_inputs = 9,
    .min_outputs = 1,
    .max_outputs = 3,
    .infer = infer_embed,
    .run = run_embed,
};
