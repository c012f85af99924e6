// SPDX-License-Identifier: MIT
//
// MelWeightMatrix: [dft_length / 2 + 1, num_mel_bins], a triangle over the bins of a spectrum for each mel bin. Their
// corners lie evenly between the two edges on the mel scale, and are rounded down to bins of the spectrum.
#include <inttypes.h>
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { N_BINS, DFT_LENGTH, RATE, LOWER, UPPER };

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                        "upper_edge_hertz"};
    const int64_t type = tide_node_attr_int(x->node, "output_datatype", TIDE_F32);
    int64_t v[DFT_LENGTH + 1];
    if (type <= 0 || type >= TIDE_DTYPE_LIMIT || type == TIDE_BOOL || tide_dtype_size((tide_dtype)type) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "output_datatype %" PRId64 " is not served", type);
    for (size_t i = N_BINS; i <= UPPER; i++) {
        size_t n;
        if (tide_op_numel(&x->in[i].shape) != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%s must be one number", names[i]);
        if (i <= DFT_LENGTH) TIDE_TRY(tide_op_read_ints(x->node, &x->in[i], names[i], 1, &v[i], &n, err));
        if (i == RATE && x->in[i].dtype != TIDE_I32)
            TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_I64, err));
        if (i >= LOWER && !tide_dtype_is_float(x->in[i].dtype)) return tide_data_no_dtype(x->node, x->in[i].dtype, err);
    }
    if (v[N_BINS] < 0 || v[DFT_LENGTH] < 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "num_mel_bins is %" PRId64 ", dft_length %" PRId64 ": neither may be negative", v[N_BINS],
                            v[DFT_LENGTH]);
    return tide_op_set_out(x, 0, (tide_dtype)type, 2, (int64_t[]){v[DFT_LENGTH] / 2 + 1, v[N_BINS]}, err);
}

static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double hertz_of(double mel) { return 700 * (pow(10, mel / 2595) - 1); }

typedef struct scale {
    double lower, upper; ///< mel
    double bins_per_hertz;
    int64_t n_bins;
} scale;

/// Corner `i` of 0 … n_bins + 1, a bin of the spectrum.
static double corner(const scale *s, int64_t i) {
    const double mel = s->lower + (double)i * ((s->upper - s->lower) / (double)(s->n_bins + 2));
    return floor(hertz_of(mel) * s->bins_per_hertz);
}

/// The height of mel bin `i` over bin `j` of the spectrum.
static double height(const scale *s, int64_t i, double j) {
    const double low = corner(s, i), centre = corner(s, i + 1), high = corner(s, i + 2);
    if (j >= centre && j < high) return (high - j) / (high - centre);
    if (j == centre) return 1;
    return j >= low && j < centre ? (j - low) / (centre - low) : 0;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *out = &args->out[0];
    const int64_t length = tide_data_load_i64(args->in[DFT_LENGTH].dtype, args->in[DFT_LENGTH].data, 0);
    const int64_t rate = tide_data_load_i64(args->in[RATE].dtype, args->in[RATE].data, 0);
    if (rate <= 0)
        return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "sample_rate is %" PRId64 ", must be above 0", rate);
    const scale s = {.lower = mel_of(tide_data_load_f64(args->in[LOWER].dtype, args->in[LOWER].data, 0)),
                     .upper = mel_of(tide_data_load_f64(args->in[UPPER].dtype, args->in[UPPER].data, 0)),
                     .bins_per_hertz = ((double)length + 1) / (double)rate,
                     .n_bins = out->shape.dims[1]};
    for (int64_t j = 0; out->size_bytes > 0 && j < out->shape.dims[0]; j++)
        for (int64_t i = 0; i < s.n_bins; i++)
            tide_data_store_f64(out->dtype, out->data, j * s.n_bins + i, height(&s, i, (double)j));
    return TIDE_OK;
}

const tide_op_def tide_op_mel_weight_matrix = {.name = "MelWeightMatrix",
                                               .domain = "",
                                               .since = 17,
                                               .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "output_datatype")),
                                               .min_inputs = 5,
                                               .max_inputs = 5,
                                               .min_outputs = 1,
                                               .max_outputs = 1,
                                               .infer = infer,
                                               .run = run};
