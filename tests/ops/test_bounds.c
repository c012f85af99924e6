// SPDX-License-Identifier: MIT
//
// Rules of bounds: whatever sizes the operands come in, within what they were said to be, what infer() says of the
// result is within what the rule says.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/bounds.h"
#include "core/ops/ops.h"
#include "tests/tide_test.h"

enum { MAX_IN = 5, MAX_OUT = 3, TRIES = 40, TIMES = 40 };

/// One node with operands that are fed (a range of shapes) or constant.
typedef struct trial {
    tide_graph *g;
    uint32_t node;
    tide_operand in[MAX_IN];
    tide_shape least[MAX_IN];
    tide_bound_state state[MAX_IN];
    tide_intervals numbers[MAX_IN];
    size_t n_in, n_out;
    int64_t content[MAX_IN][2 * TIDE_MAX_RANK];
    float reals[TIDE_MAX_RANK];
} trial;

static uint64_t seed = 1;
static int64_t draw(int64_t lo, int64_t hi) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static void begin(trial *t, const char *op, int opset, size_t n_in, size_t n_out) {
    uint32_t values[MAX_IN + MAX_OUT];
    tide_error err = TIDE_ERROR_INIT;
    char name[24];
    *t = (trial){.n_in = n_in, .n_out = n_out};
    assert_tide_ok(tide_graph_create("bounds", "", &t->g, &err), &err);
    for (size_t k = 0; k < n_in + n_out; k++) {
        snprintf(name, sizeof name, "v%zu", k);
        assert_tide_ok(tide_graph_add_value(t->g, name, &values[k], &err), &err);
        if (k < n_in) assert_tide_ok(tide_graph_add_input(t->g, values[k], &err), &err);
    }
    assert_tide_ok(tide_graph_add_node(t->g, "n", op, "", opset, values, n_in, values + n_in, n_out, &t->node, &err),
                   &err);
}

static void attr_ints(trial *t, const char *name, const int64_t *ints, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.type = TIDE_ATTR_INTS, .name = tide_host_strdup(name), .n = n};
    a.ints = tide_host_calloc(n + 1, sizeof *a.ints);
    assert_non_null(a.ints);
    memcpy(a.ints, ints, n * sizeof *ints);
    assert_tide_ok(tide_graph_add_attr(t->g, t->node, &a, &err), &err);
}

static void attr_int(trial *t, const char *name, int64_t i) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.type = TIDE_ATTR_INT, .name = tide_host_strdup(name), .i = i};
    assert_tide_ok(tide_graph_add_attr(t->g, t->node, &a, &err), &err);
}

static void set_bytes(tide_operand *o) {
    assert_int_equal(tide_shape_bytes(&o->shape, o->dtype, &o->size_bytes, NULL), TIDE_OK);
}

/// An operand of `rank` extents, each of which may be anything from one number to another.
static void fed(trial *t, size_t k, int32_t rank) {
    t->in[k] = (tide_operand){.dtype = TIDE_F32};
    t->in[k].shape.rank = t->least[k].rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        t->in[k].shape.dims[d] = draw(0, 7);
        t->least[k].dims[d] = draw(0, 2) == 0 ? t->in[k].shape.dims[d] : draw(0, t->in[k].shape.dims[d]);
    }
    set_bytes(&t->in[k]);
    t->state[k] = TIDE_BOUND_SHAPE;
}

static void constant(trial *t, size_t k, const int64_t *list, size_t n) {
    memcpy(t->content[k], list, n * sizeof *list);
    t->in[k] =
        (tide_operand){.dtype = TIDE_I64, .shape = tide_shape_make(1, &(int64_t){(int64_t)n}), .data = t->content[k]};
    t->least[k] = t->in[k].shape;
    set_bytes(&t->in[k]);
    t->state[k] = TIDE_BOUND_SHAPE;
    t->numbers[k] = tide_intervals_of(TIDE_I64, list, (int64_t)n);
}

/// Numbers that only a run knows, each from lo to hi; SIZE_MAX: a scalar.
static void calculated(trial *t, size_t k, size_t n, int64_t lo, int64_t hi) {
    constant(t, k, (int64_t[2 * TIDE_MAX_RANK]){0}, n == SIZE_MAX ? 1 : n);
    if (n == SIZE_MAX) t->in[k].shape = t->least[k] = tide_shape_make(0, NULL);
    t->in[k].data = NULL;
    for (size_t i = 0; i < t->numbers[k].n; i++) {
        t->numbers[k].least[i] = draw(lo, hi);
        t->numbers[k].most[i] = draw(t->numbers[k].least[i], hi);
    }
}

/// A size that operand `k` may come in, with numbers that it may have.
static tide_operand smaller(trial *t, size_t k) {
    tide_operand o = t->in[k];
    if (!tide_operand_present(&o)) return o;
    if (o.data == NULL && t->numbers[k].n > 0) {
        for (size_t i = 0; i < t->numbers[k].n; i++)
            t->content[k][i] = draw(t->numbers[k].least[i], t->numbers[k].most[i]);
        o.data = t->content[k];
        return o;
    }
    for (int32_t d = 0; d < o.shape.rank; d++) {
        const int64_t lo = t->least[k].dims[d], hi = t->in[k].shape.dims[d];
        o.shape.dims[d] = draw(0, 2) == 0 ? hi : draw(lo, hi);
    }
    set_bytes(&o);
    return o;
}

static void check_one(const trial *t, const tide_bounds *b, const tide_operand *out) {
    for (size_t k = 0; k < t->n_out; k++) {
        char is[192], most[192], least[192];
        if (b->out_state[k] == TIDE_BOUND_NONE) continue;
        if (b->out_state[k] == TIDE_BOUND_COUNT) {
            int64_t n = 0;
            assert_int_equal(tide_shape_numel(&out[k].shape, &n, NULL), TIDE_OK);
            assert_true(n <= b->out[k].shape.dims[0]);
            continue;
        }
        bool good = out[k].shape.rank == b->out[k].shape.rank && out[k].dtype == b->out[k].dtype;
        for (int32_t d = 0; good && d < out[k].shape.rank; d++)
            good = out[k].shape.dims[d] <= b->out[k].shape.dims[d] && out[k].shape.dims[d] >= b->out_least[k].dims[d];
        if (good) continue;
        fail_msg("%s: output %zu is %s, said to be at most %s and at least %s", b->node->op_type, k,
                 tide_shape_format(&out[k].shape, is, sizeof is),
                 tide_shape_format(&b->out[k].shape, most, sizeof most),
                 tide_shape_format(&b->out_least[k], least, sizeof least));
    }
}

/// @return how often a result was held against its bound
static size_t check(trial *t) {
    tide_operand out[MAX_OUT] = {0}, in[MAX_IN];
    tide_shape out_least[MAX_OUT] = {0};
    tide_bound_state out_state[MAX_OUT] = {0};
    tide_intervals out_numbers[MAX_OUT] = {0};
    tide_error err = TIDE_ERROR_INIT;
    size_t n = 0;
    assert_tide_ok(tide_ops_resolve(t->g, &err), &err);
    const tide_node *node = &t->g->nodes[t->node];
    tide_bounds b = {.node = node,
                     .in = t->in,
                     .least = t->least,
                     .state = t->state,
                     .in_numbers = t->numbers,
                     .n_in = t->n_in,
                     .out = out,
                     .out_least = out_least,
                     .out_state = out_state,
                     .out_numbers = out_numbers,
                     .n_out = t->n_out};
    assert_non_null(node->rule);
    for (size_t i = 0; node->rule(&b) && i < TIMES; i++) {
        tide_operand now[MAX_OUT] = {0};
        for (size_t k = 0; k < t->n_in; k++) in[k] = smaller(t, k);
        const tide_infer x = {.node = node, .in = in, .n_in = t->n_in, .out = now, .n_out = t->n_out};
        if (node->def->infer(&x, NULL) != TIDE_OK) continue; // such operands do not go together
        check_one(t, &b, now);
        n += b.out_state[0] != TIDE_BOUND_NONE;
    }
    tide_graph_destroy(t->g);
    return n;
}

// ---- operators ----

static void make_slice(trial *t) {
    int64_t starts[2], ends[2], axes[2], steps[2];
    const size_t n = (size_t)draw(1, 2);
    for (size_t i = 0; i < n; i++) {
        starts[i] = draw(0, 9) == 0 ? INT64_MAX : draw(-8, 8);
        ends[i] = draw(0, 4) == 0 ? INT64_MAX : draw(0, 4) == 0 ? INT64_MIN : draw(-8, 8);
        axes[i] = draw(0, 1) == 0 ? (int64_t)i : (int64_t)i - 2;
        steps[i] = draw(0, 1) == 0 ? 1 : draw(0, 1) == 0 ? draw(-3, -1) : draw(1, 3);
    }
    begin(t, "Slice", 13, MAX_IN, 1);
    fed(t, 0, 2);
    constant(t, 1, starts, n);
    constant(t, 2, ends, n);
    constant(t, 3, axes, n);
    constant(t, 4, steps, n);
}

static void make_slice_old(trial *t) {
    int64_t starts = draw(-8, 8), ends = draw(0, 3) == 0 ? INT64_MIN : draw(-8, 8);
    begin(t, "Slice", 9, 1, 1);
    fed(t, 0, 2);
    attr_ints(t, "starts", &starts, 1);
    attr_ints(t, "ends", &ends, 1);
}

static void make_reshape(trial *t) {
    const int32_t rank = (int32_t)draw(1, 3);
    int64_t want[4];
    const size_t n = (size_t)draw(1, 4);
    for (size_t i = 0; i < n; i++) want[i] = draw(0, 2) == 0 && (int32_t)i < rank ? 0 : draw(1, 4);
    want[draw(0, (int64_t)n - 1)] = -1;
    begin(t, "Reshape", 14, 2, 1);
    fed(t, 0, rank);
    constant(t, 1, want, n);
}

static void make_reshape_unknown(trial *t) {
    begin(t, "Reshape", 14, 2, 1);
    fed(t, 0, 2);
    constant(t, 1, (int64_t[]){-1}, 1);
    if (draw(0, 1) == 0) t->state[0] = TIDE_BOUND_COUNT;
    if (t->state[0] == TIDE_BOUND_COUNT) {
        t->in[0].shape = t->least[0] = tide_shape_make(1, (int64_t[]){draw(0, 40)});
        t->least[0].dims[0] = 0;
    }
}

static void make_split(trial *t) {
    const int32_t rank = (int32_t)draw(1, 3);
    begin(t, "Split", 18, 1, 3);
    fed(t, 0, rank);
    attr_int(t, "axis", draw(-rank, rank - 1));
    attr_int(t, "num_outputs", 3);
}

static void make_concat(trial *t) {
    const int32_t rank = (int32_t)draw(1, 3);
    begin(t, "Concat", 13, 2, 1);
    fed(t, 0, rank);
    fed(t, 1, rank);
    attr_int(t, "axis", draw(0, rank - 1));
}

static void make_add(trial *t) {
    begin(t, "Add", 14, 2, 1);
    fed(t, 0, (int32_t)draw(0, 3));
    fed(t, 1, (int32_t)draw(0, 3));
}

static void make_pool(trial *t) {
    static const char *const ops[] = {"MaxPool", "AveragePool"};
    int64_t kernel = draw(1, 3), stride = draw(1, 3), pads[2] = {draw(0, kernel - 1), draw(0, kernel - 1)};
    begin(t, ops[draw(0, 1)], 19, 1, 1);
    fed(t, 0, 3);
    attr_ints(t, "kernel_shape", &kernel, 1);
    attr_ints(t, "strides", &stride, 1);
    attr_ints(t, "pads", pads, 2);
    attr_int(t, "ceil_mode", draw(0, 1));
}

static void make_tile(trial *t) {
    begin(t, "Tile", 13, 2, 1);
    fed(t, 0, 2);
    constant(t, 1, (int64_t[]){draw(0, 3), draw(1, 3)}, 2);
}

static void make_expand(trial *t) {
    begin(t, "Expand", 13, 2, 1);
    fed(t, 0, 2);
    constant(t, 1, (int64_t[]){draw(1, 2), draw(1, 7)}, 2);
}

static void make_pad(trial *t) {
    begin(t, "Pad", 13, 2, 1);
    fed(t, 0, 1);
    constant(t, 1, (int64_t[]){draw(-2, 3), draw(-2, 3)}, 2);
}

static void make_squeeze(trial *t) {
    begin(t, "Squeeze", 13, 1, 1);
    fed(t, 0, (int32_t)draw(1, 3));
}

static void make_gather(trial *t) {
    begin(t, "Gather", 13, 2, 1);
    fed(t, 0, 2);
    fed(t, 1, (int32_t)draw(0, 2));
    t->in[1].dtype = TIDE_I64;
    set_bytes(&t->in[1]);
    attr_int(t, "axis", draw(-2, 1));
}

static void make_gather_nd(trial *t) {
    begin(t, "GatherND", 13, 2, 1);
    fed(t, 0, 3);
    fed(t, 1, 2);
    t->in[1].dtype = TIDE_I64;
    set_bytes(&t->in[1]);
}

static void make_matmul(trial *t) {
    begin(t, "MatMul", 13, 2, 1);
    fed(t, 0, (int32_t)draw(1, 3));
    fed(t, 1, (int32_t)draw(1, 3));
    const int32_t last = t->in[0].shape.rank - 1, row = t->in[1].shape.rank > 1 ? t->in[1].shape.rank - 2 : 0;
    t->in[1].shape.dims[row] = t->in[0].shape.dims[last];
    t->least[1].dims[row] = t->least[0].dims[last];
    set_bytes(&t->in[1]);
}

static void make_reduce(trial *t) {
    begin(t, "ReduceMax", 13, 1, 1);
    fed(t, 0, 3);
    attr_ints(t, "axes", (int64_t[]){draw(-3, 2)}, 1);
    attr_int(t, "keepdims", draw(0, 1));
}

static void make_top_k(trial *t) {
    begin(t, "TopK", 11, 2, 2);
    fed(t, 0, 2);
    constant(t, 1, (int64_t[]){draw(0, 5)}, 1);
    attr_int(t, "axis", draw(0, 1));
}

static void make_resize(trial *t) {
    begin(t, "Resize", 10, 2, 1);
    fed(t, 0, 2);
    t->reals[0] = (float)draw(1, 40) / 10;
    t->reals[1] = (float)draw(1, 40) / 10;
    t->in[1] = (tide_operand){.dtype = TIDE_F32, .shape = tide_shape_make(1, &(int64_t){2}), .data = t->reals};
    t->least[1] = t->in[1].shape;
    set_bytes(&t->in[1]);
    t->state[1] = TIDE_BOUND_SHAPE;
}

static void make_flatten(trial *t) {
    begin(t, "Flatten", 13, 1, 1);
    fed(t, 0, 3);
    attr_int(t, "axis", draw(0, 3));
}

static void make_depth(trial *t) {
    begin(t, "SpaceToDepth", 13, 1, 1);
    fed(t, 0, 4);
    attr_int(t, "blocksize", draw(1, 2));
}

// ---- sizes by numbers that only a run knows ----

static void make_range(trial *t) {
    const bool is_down = draw(0, 1) == 0;
    begin(t, "Range", 13, 3, 1);
    calculated(t, 0, SIZE_MAX, -5, 20);
    calculated(t, 1, SIZE_MAX, -5, 20);
    calculated(t, 2, SIZE_MAX, is_down ? -4 : 1, is_down ? -1 : 4);
}

static void make_constant(trial *t) {
    begin(t, "ConstantOfShape", 13, 1, 1);
    calculated(t, 0, (size_t)draw(1, 3), 0, 9);
}

static void make_expand_by_numbers(trial *t) {
    begin(t, "Expand", 13, 2, 1);
    fed(t, 0, (int32_t)draw(0, 2));
    calculated(t, 1, (size_t)draw(1, 3), 1, draw(1, 7));
}

static void make_tile_by_numbers(trial *t) {
    begin(t, "Tile", 13, 2, 1);
    fed(t, 0, 2);
    calculated(t, 1, 2, 0, 4);
}

static void make_pad_by_numbers(trial *t) {
    begin(t, "Pad", 13, 2, 1);
    fed(t, 0, 1);
    calculated(t, 1, 2, -2, 5);
}

static void make_one_hot(trial *t) {
    begin(t, "OneHot", 13, 3, 1);
    fed(t, 0, 1);
    t->in[0].dtype = TIDE_I64;
    set_bytes(&t->in[0]);
    calculated(t, 1, SIZE_MAX, 1, 9);
    constant(t, 2, (int64_t[]){0, 1}, 2);
}

static void make_resize_by_numbers(trial *t) {
    begin(t, "Resize", 13, 4, 1);
    fed(t, 0, 2);
    t->in[1] = t->in[2] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    t->state[1] = t->state[2] = TIDE_BOUND_SHAPE;
    calculated(t, 3, 2, 1, 9);
}

static void make_reshape_by_numbers(trial *t) {
    const size_t n = (size_t)draw(1, 3), open = (size_t)draw(0, 3);
    begin(t, "Reshape", 14, 2, 1);
    fed(t, 0, 2);
    calculated(t, 1, n, 1, 4);
    if (open < n) t->numbers[1].least[open] = t->numbers[1].most[open] = -1;
}

static void results_are_within_bounds(void **state) {
    (void)state;
    static void (*const makers[])(trial *) = {
        make_slice,
        make_slice_old,
        make_reshape,
        make_reshape_unknown,
        make_split,
        make_concat,
        make_add,
        make_pool,
        make_tile,
        make_expand,
        make_pad,
        make_squeeze,
        make_gather,
        make_gather_nd,
        make_matmul,
        make_reduce,
        make_top_k,
        make_resize,
        make_flatten,
        make_depth,
        make_range,
        make_constant,
        make_expand_by_numbers,
        make_tile_by_numbers,
        make_pad_by_numbers,
        make_one_hot,
        make_resize_by_numbers,
        make_reshape_by_numbers,
    };
    for (size_t m = 0; m < sizeof makers / sizeof *makers; m++) {
        size_t n = 0;
        for (int i = 0; i < TRIES * 10; i++) {
            trial t;
            makers[m](&t);
            n += check(&t);
        }
        if (n < 100) fail_msg("maker %zu: %zu results were held against a bound", m, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(results_are_within_bounds)};
    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
