// SPDX-License-Identifier: MIT
//
// "Output 0 may overwrite input i" is a promise of every row that makes it: the answer in place is the answer
// elsewhere, bit for bit; also when the others are broadcast, when they are the very same value, with a fused
// activation, and on sizes at which kernels work in vectors and in runs.
#include "one_op.h"

enum { ROOM = 48 * 1024, N_VARIANTS = 7 };

typedef union room {
    double align;
    unsigned char bytes[ROOM];
} room;

static room data[ONE_MAX], plain[3], placed[3];

/// How the inputs beside the first look.
typedef enum variant { ALL_ALIKE, ROW, LINE, ONE_NUMBER, COLUMN, FIRST_IS_SMALL, SAME_VALUE } variant;

static const tide_dtype dtypes[] = {TIDE_F32, TIDE_F64, TIDE_F16, TIDE_BF16, TIDE_I8,  TIDE_I16, TIDE_I32,
                                    TIDE_I64, TIDE_U8,  TIDE_U16, TIDE_U32,  TIDE_U64, TIDE_BOOL};

static bool is(const tide_op_def *def, const char *name) { return strcmp(def->name, name) == 0; }

static void number_in(one_op *o, size_t i, tide_dtype dtype, tide_shape shape, tide_rng *rng) {
    one_in(o, i, dtype, shape, data[i].bytes);
    assert_true(o->in[i].size_bytes <= ROOM);
    const int64_t n = tide_op_numel(&shape);
    for (int64_t k = 0; k < n; k++) {
        const double v = dtype == TIDE_BOOL ? (double)tide_rng_below(rng, 2) : 1 + (double)tide_rng_below(rng, 9);
        tide_data_store_f64(dtype, data[i].bytes, k, tide_dtype_is_float(dtype) ? v / 4 - 0.5 : v);
    }
}

static void whole_in(one_op *o, size_t i, const char *shape, int64_t a, int64_t b) {
    one_in(o, i, TIDE_I64, one_shape(shape), data[i].bytes);
    const int64_t n = tide_op_numel(&o->in[i].shape);
    for (int64_t k = 0; k < n; k++) ((int64_t *)(void *)data[i].bytes)[k] = k == 0 ? a : b;
}

static tide_shape shape_of(variant v, size_t i, int64_t rows, int64_t cols) {
    const tide_shape full = tide_shape_make(2, (int64_t[]){rows, cols});
    const bool small = v == FIRST_IS_SMALL ? i == 0 : i > 0;
    if (!small || v == ALL_ALIKE || v == SAME_VALUE) return full;
    switch (v) {
    case ROW:
        return tide_shape_make(2, (int64_t[]){1, cols});
    case LINE:
    case FIRST_IS_SMALL:
        return tide_shape_make(1, (int64_t[]){cols});
    case COLUMN:
        return tide_shape_make(2, (int64_t[]){rows, 1});
    default:
        return tide_shape_make(1, (int64_t[]){1});
    }
}

/// Operands of a row that wants something else than alike tensors. @return false: it does not
static bool special_inputs(one_op *o, tide_dtype dtype, tide_shape full, tide_rng *rng) {
    const tide_op_def *def = o->node.def;
    const int64_t cols = full.dims[1];
    number_in(o, 0, dtype, full, rng);
    if (is(def, "BatchNormalization")) {
        for (size_t i = 1; i < 5; i++) number_in(o, i, dtype, tide_shape_make(1, &cols), rng);
        for (int64_t c = 0; c < cols && dtype == TIDE_F32; c++) ((float *)(void *)data[4].bytes)[c] += 1.0f;
    } else if (is(def, "MaxPool") || is(def, "AveragePool")) {
        number_in(o, 0, dtype, tide_shape_make(3, (int64_t[]){1, full.dims[0], cols}), rng);
    } else if (is(def, "LRN")) {
        number_in(o, 0, dtype, tide_shape_make(3, (int64_t[]){2, 7, cols / 2}), rng);
    } else if (is(def, "InstanceNormalization") || is(def, "GroupNormalization")) {
        const int64_t one = 3;
        if (is(def, "GroupNormalization")) one_int(o, "num_groups", 3);
        number_in(o, 0, dtype, tide_shape_make(3, (int64_t[]){2, 3, cols}), rng);
        for (size_t i = 1; i < 3; i++) number_in(o, i, dtype, tide_shape_make(1, &one), rng);
    } else if (strncmp(def->name, "Skip", 4) == 0) {
        number_in(o, 1, dtype, full, rng);
        for (size_t i = 2; i < o->node.n_inputs; i++) number_in(o, i, dtype, tide_shape_make(1, &cols), rng);
    } else if (is(def, "RotaryEmbedding")) {
        number_in(o, 0, dtype, tide_shape_make(3, (int64_t[]){1, full.dims[0], cols}), rng);
        for (size_t i = 1; i < 3; i++)
            number_in(o, i, dtype, tide_shape_make(3, (int64_t[]){1, full.dims[0], cols / 2}), rng);
    } else if (is(def, "TensorScatter")) {
        number_in(o, 0, dtype, tide_shape_make(3, (int64_t[]){1, full.dims[0], cols}), rng);
        number_in(o, 1, dtype, tide_shape_make(3, (int64_t[]){1, 1, cols}), rng);
        whole_in(o, 2, "1", full.dims[0] - 1, 0);
    } else if (is(def, "LayerNormalization")) {
        for (size_t i = 1; i < o->node.n_inputs; i++) number_in(o, i, dtype, tide_shape_make(1, &cols), rng);
    } else if (is(def, "Clip")) {
        for (size_t i = 1; i < o->node.n_inputs; i++) number_in(o, i, dtype, (tide_shape){.rank = 0}, rng);
    } else if (is(def, "CumSum") || is(def, "Trilu")) {
        whole_in(o, 1, "1", 1, 1);
    } else if (strncmp(def->name, "Scatter", 7) == 0) {
        whole_in(o, 1, is(def, "ScatterND") ? "2x1" : "2x2", full.dims[0] - 1, 0);
        number_in(o, 2, dtype, is(def, "ScatterND") ? tide_shape_make(2, (int64_t[]){2, cols}) : one_shape("2x2"), rng);
    } else if (is(def, "Reshape")) {
        whole_in(o, 1, "1", -1, 0);
    } else if (is(def, "Squeeze") && o->node.n_inputs > 1) {
        o->in[0].shape = tide_shape_make(3, (int64_t[]){1, full.dims[0], cols});
        whole_in(o, 1, "1", 0, 0);
    } else if (is(def, "Unsqueeze") && o->node.n_inputs > 1) {
        whole_in(o, 1, "1", 0, 0);
    } else if (is(def, "Dropout")) {
        for (size_t i = 1; i < o->node.n_inputs; i++) o->in[i] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    } else {
        return false;
    }
    return true;
}

static void make_inputs(one_op *o, tide_dtype dtype, variant v, int64_t rows, int64_t cols) {
    tide_rng rng = {(uint64_t)dtype * 100 + (uint64_t)v};
    const tide_op_def *def = o->node.def;
    if (special_inputs(o, dtype, shape_of(ALL_ALIKE, 0, rows, cols), &rng)) return;
    for (size_t i = 0; i < o->node.n_inputs; i++) {
        const bool condition = is(def, "Where") && i == 0;
        number_in(o, i, condition ? TIDE_BOOL : dtype, shape_of(v, i, rows, cols), &rng);
    }
    for (size_t i = 1; v == SAME_VALUE && i < o->node.n_inputs; i++) {
        if (o->in[i].dtype == o->in[0].dtype) o->in[i].data = o->in[0].data;
    }
    if (is(def, "Unsqueeze") && o->node.n_attrs == 0) one_ints(o, "axes", 1, (int64_t[]){0});
}

/// All inputs that lie where input `i` does may be overwritten too: the rule of the runtime.
static bool may_run_in_place(one_op *o, size_t i) {
    for (size_t k = 0; k < o->node.n_inputs; k++) {
        if (o->in[k].data == o->in[i].data && !one_may_overwrite(o, k)) return false;
    }
    return true;
}

/// @return whether it was tried
static bool try_in_place(one_op *o, size_t i) {
    if (!may_run_in_place(o, i)) return false;
    for (size_t k = 0; k < o->node.n_outputs; k++) o->out[k].data = plain[k].bytes;
    one_run(o);
    // In a copy, so that the inputs stay for the next trial.
    one_op p = *o;
    memcpy(placed[0].bytes, o->in[i].data, o->in[i].size_bytes);
    for (size_t k = 0; k < p.node.n_inputs; k++) {
        if (p.in[k].data == o->in[i].data) p.in[k].data = placed[0].bytes;
    }
    for (size_t k = 0; k < o->node.n_outputs; k++) p.out[k].data = placed[k].bytes;
    one_run(&p);
    for (size_t k = 0; k < o->node.n_outputs; k++) {
        if (memcmp(plain[k].bytes, placed[k].bytes, o->out[k].size_bytes) != 0)
            fail_msg("%s (opset %d) on %s: output %zu differs in place of input %zu", o->node.op_type, o->node.opset,
                     tide_dtype_name(o->in[0].dtype), k, i);
    }
    return true;
}

/// @return bits of the inputs that were tried
static uint32_t try_row(const tide_op_def *def, tide_dtype dtype, variant v, size_t n_in, int64_t rows, int64_t cols,
                        tide_activation_kind act) {
    one_op o;
    uint32_t tried = 0;
    const bool is_standard = def->domain[0] == '\0';
    const bool old = def->since < 7 && (def->until == 0 || def->until >= 7); // BatchNormalization trains before 7
    one_begin_in(&o, def->domain, def->name, is_standard && old ? 7 : def->since, n_in, 1);
    assert_ptr_equal(o.node.def, def);
    o.node.activation = (tide_activation){act, 0.1f, 0.9f};
    if (is(def, "Cast")) one_int(&o, "to", dtype == TIDE_F32 ? TIDE_I32 : dtype == TIDE_I64 ? TIDE_F64 : TIDE_U16);
    if (is(def, "Mod")) one_int(&o, "fmod", 1);
    if (is(def, "BitShift")) one_attr(&o, "direction", TIDE_ATTR_STRING)->s = tide_host_strdup("LEFT");
    if (is(def, "LRN")) one_int(&o, "size", 5);
    if (is(def, "MaxPool") || is(def, "AveragePool")) one_ints(&o, "kernel_shape", 1, (int64_t[]){2});
    if (is(def, "MeanVarianceNormalization")) one_ints(&o, "axes", 1, (int64_t[]){0});
    if (is(def, "RotaryEmbedding")) one_int(&o, "num_heads", 1);
    if (is(def, "RotaryEmbedding")) one_int(&o, "rotary_embedding_dim", cols / 2 * 2);
    make_inputs(&o, dtype, v, rows, cols);
    for (size_t i = 0; one_infer(&o) == TIDE_OK && i < n_in; i++) tried |= (uint32_t)try_in_place(&o, i) << i;
    one_end(&o);
    return tried;
}

static size_t wanted_inputs(const tide_op_def *def) {
    const bool of_three = is(def, "LayerNormalization") || is(def, "Clip") || is(def, "RotaryEmbedding");
    return def->max_inputs == 0 ? 4 : of_three ? 3 : def->max_inputs;
}

static void test_every_row_in_place(void **state) {
    (void)state;
    static const struct { int64_t rows, cols; } sizes[] = {{3, 5}, {2, 700}, {1, 5}};
    const tide_op_def *const *table;
    const size_t n_rows = tide_op_table(&table);
    size_t n_found = 0;
    for (size_t r = 0; r < n_rows; r++) {
        const tide_op_def *def = table[r];
        if (def->inplace_inputs == 0) continue;
        const size_t n_in = wanted_inputs(def);
        uint32_t tried = 0;
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (int v = 0; v < N_VARIANTS; v++)
                for (size_t s = 0; s < 3; s++)
                    tried |= try_row(def, dtypes[d], (variant)v, n_in, sizes[s].rows, sizes[s].cols, TIDE_ACT_NONE);
        const uint32_t promised = def->inplace_inputs & ((1u << n_in) - 1);
        // PRelu's slope never has the output's elements but when both are alike; all promises can be put to the test.
        if (tried != promised) fail_msg("%s: promises inputs %x, tried %x", def->name, promised, tried);
        n_found++;
    }
    assert_true(n_found > 60);
}

static void test_fused_activation_in_place(void **state) {
    (void)state;
    static const tide_activation_kind kinds[] = {TIDE_ACT_RELU, TIDE_ACT_CLIP, TIDE_ACT_SIGMOID, TIDE_ACT_TANH,
                                                 TIDE_ACT_LEAKY_RELU};
    const tide_op_def *const *table;
    const size_t n_rows = tide_op_table(&table);
    size_t n_found = 0;
    for (size_t r = 0; r < n_rows; r++) {
        const tide_op_def *def = table[r];
        if (def->inplace_inputs == 0 || (def->flags & TIDE_OP_FUSES_ACT) == 0) continue;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (int v = 0; v < N_VARIANTS; v++) {
                // More elements than Add activates at a time.
                if (try_row(def, TIDE_F32, (variant)v, wanted_inputs(def), 2, 5000, kinds[k]) != 0) n_found++;
            }
    }
    assert_true(n_found > 30);
}

/// The longest list whose every input has a bit, one in the middle overwritten, another value repeated.
static void test_many_inputs_in_place(void **state) {
    (void)state;
    static const char *const names[] = {"Max", "Min", "Sum", "Mean"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        one_op o;
        tide_rng rng = {k};
        one_begin(&o, names[k], 13, ONE_MAX, 1);
        for (size_t i = 0; i < ONE_MAX; i++)
            number_in(&o, i, TIDE_F32, i % 3 == 0 ? one_shape("2x700") : one_shape("700"), &rng);
        o.in[9].data = o.in[3].data;
        assert_tide_ok(one_infer(&o), &o.err);
        assert_true(try_in_place(&o, 3));
        assert_true(try_in_place(&o, 12));
        assert_false(try_in_place(&o, 33)); // no bit
        o.in[33].data = o.in[3].data;
        assert_false(try_in_place(&o, 3)); // a bit, but read once more where there is none
        one_end(&o);
    }
}

// ---- operators that shrink: the output from the input's first byte on ----

static int64_t below(tide_rng *rng, uint64_t n) { return (int64_t)tide_rng_below(rng, n); }

static void random_pool(one_op *o, tide_rng *rng) {
    const int32_t n = 1 + (int32_t)tide_rng_below(rng, 3);
    int64_t dims[5] = {1 + below(rng, 2), 1 + below(rng, 3)}, kernel[3], strides[3], pads[6], dilations[3];
    one_begin(o, tide_rng_below(rng, 2) != 0 ? "MaxPool" : "AveragePool", 19, 1, 1);
    for (int32_t d = 0; d < n; d++) {
        dims[d + 2] = 3 + below(rng, 8);
        kernel[d] = 1 + below(rng, 3);
        strides[d] = 1 + below(rng, 3);
        dilations[d] = 1 + below(rng, 2);
        pads[d] = below(rng, 3);
        pads[n + d] = below(rng, 3);
    }
    one_ints(o, "kernel_shape", (size_t)n, kernel);
    one_ints(o, "strides", (size_t)n, strides);
    one_ints(o, "pads", 2 * (size_t)n, pads);
    one_ints(o, "dilations", (size_t)n, dilations);
    number_in(o, 0, TIDE_F32, tide_shape_make(n + 2, dims), rng);
}

/// A pool whose windows move on writes over what lies behind them; where the row says that it may not, there are
/// windows for which that is so.
static void test_pools_over_their_input(void **state) {
    (void)state;
    size_t n_tried = 0, n_smaller = 0, n_refused = 0, n_different = 0;
    tide_rng rng = {77};
    for (int round = 0; round < 4000; round++) {
        one_op o;
        random_pool(&o, &rng);
        if (one_infer(&o) == TIDE_OK && o.out[0].size_bytes > 0) {
            if (try_in_place(&o, 0)) {
                n_tried++;
                n_smaller += o.out[0].size_bytes < o.in[0].size_bytes;
            } else if (o.out[0].size_bytes <= o.in[0].size_bytes) {
                o.out[0].data = plain[0].bytes;
                one_run(&o);
                memcpy(placed[0].bytes, o.in[0].data, o.in[0].size_bytes);
                o.in[0].data = o.out[0].data = placed[0].bytes;
                one_run(&o);
                n_refused++;
                n_different += memcmp(plain[0].bytes, placed[0].bytes, o.out[0].size_bytes) != 0;
            }
        }
        one_end(&o);
    }
    print_message("pools: %zu in place, %zu of them smaller; refused %zu, of which %zu would be wrong\n", n_tried,
                  n_smaller, n_refused, n_different);
    assert_true(n_smaller > 500 && n_different > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_every_row_in_place),
        tide_unit_test(test_fused_activation_in_place),
        tide_unit_test(test_many_inputs_in_place),
        tide_unit_test(test_pools_over_their_input),
    };
    return cmocka_run_group_tests_name("inplace", tests, NULL, NULL);
}
