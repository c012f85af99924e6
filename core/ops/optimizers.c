// SPDX-License-Identifier: MIT
//
// Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of each tensor, float32 or float64, calculated in
// double.
//
//     inputs   R, T, then X of each tensor, then G of each, then their states: H | V, H | V
//     outputs  new X of each, then new states of each, in the same order
//
// R: learning rate, a float of one element; T: how often it was updated, an int64 of one element.
#include <math.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { R, T, FIRST }; // inputs
enum { MAX_STATES = 2 };

/// What a step needs: numbers of the node and of this run.
typedef struct setting {
    double rate, alpha, beta, epsilon, decay, norm, norm_post;
    bool nesterov, is_first;
} setting;

typedef struct optimizer {
    size_t n_states;
    void (*adjust)(setting *s, double rate, int64_t t);
    double (*step)(const setting *s, double x, double g,
                   double *state); ///< the new x; state[n_states] becomes the new one
} optimizer;

// ---- the three ----

static void adjust_adagrad(setting *s, double rate, int64_t t) { s->rate = rate / (1 + (double)t * s->decay); }
static double step_adagrad(const setting *s, double x, double g, double *state) {
    g += s->norm * x;
    state[0] += g * g;
    return x - s->rate * g / (sqrt(state[0]) + s->epsilon);
}

static void adjust_adam(setting *s, double rate, int64_t t) {
    s->rate = t > 0 ? rate * sqrt(1 - pow(s->beta, (double)t)) / (1 - pow(s->alpha, (double)t)) : rate;
}
static double step_adam(const setting *s, double x, double g, double *state) {
    g += s->norm * x;
    state[0] = s->alpha * state[0] + (1 - s->alpha) * g;
    state[1] = s->beta * state[1] + (1 - s->beta) * g * g;
    return (1 - s->norm_post) * (x - s->rate * state[0] / (sqrt(state[1]) + s->epsilon));
}

static void adjust_momentum(setting *s, double rate, int64_t t) {
    s->rate = rate;
    s->is_first = t <= 0;
}
static double step_momentum(const setting *s, double x, double g, double *state) {
    g += s->norm * x;
    state[0] = s->alpha * state[0] + (s->is_first ? 1 : s->beta) * g;
    return x - s->rate * (s->nesterov ? g + s->alpha * state[0] : state[0]);
}

// ---- shapes ----

/// How many tensors are updated; 0: the inputs or outputs are no such number of lists.
static size_t count_tensors(const tide_op_def *def, size_t n_in, size_t n_out) {
    const optimizer *o = def->family;
    const size_t lists = 2 + o->n_states;
    if (n_in < FIRST + lists || (n_in - FIRST) % lists != 0) return 0;
    const size_t n = (n_in - FIRST) / lists;
    return n_out == n * (1 + o->n_states) ? n : 0;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const optimizer *o = x->node->def->family;
    const size_t n = count_tensors(x->node->def, x->n_in, x->n_out);
    if (n == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu inputs and %zu outputs are none of so many lists",
                            x->n_in, x->n_out);
    const char *mode = tide_node_attr_string(x->node, "mode", "standard");
    if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "mode is '%s', must be standard or nesterov", mode);
    if (x->in[R].dtype != TIDE_F64) TIDE_TRY(tide_op_require_dtype(x->node, &x->in[R], "R", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[T], "T", TIDE_I64, err));
    if (tide_op_numel(&x->in[R].shape) != 1 || tide_op_numel(&x->in[T].shape) != 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "R and T must have one element each");
    for (size_t i = FIRST; i < x->n_in; i++) {
        const tide_operand *own = &x->in[FIRST + (i - FIRST) % n];
        if (own->dtype != TIDE_F32 && own->dtype != TIDE_F64) return tide_data_no_dtype(x->node, own->dtype, err);
        TIDE_TRY(tide_data_same_dtype(x, FIRST + (i - FIRST) % n, i, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[i], "a gradient or state", &own->shape, err));
    }
    for (size_t i = 0; i < n * (1 + o->n_states); i++) {
        const tide_operand *own = &x->in[FIRST + i % n];
        if (tide_op_has_out(x, i)) TIDE_TRY(tide_op_set_out(x, i, own->dtype, own->shape.rank, own->shape.dims, err));
    }
    return TIDE_OK;
}

// ---- running ----

static setting read_setting(const tide_node *node) {
    return (setting){.alpha = (double)tide_node_attr_float(node, "alpha", 0.9f),
                     .beta = (double)tide_node_attr_float(node, "beta", 0.999f),
                     .epsilon = (double)tide_node_attr_float(node, "epsilon", 1e-6f),
                     .decay = (double)tide_node_attr_float(node, "decay_factor", 0),
                     .norm = (double)tide_node_attr_float(node, "norm_coefficient", 0),
                     .norm_post = (double)tide_node_attr_float(node, "norm_coefficient_post", 0),
                     .nesterov = strcmp(tide_node_attr_string(node, "mode", "standard"), "nesterov") == 0};
}

static void store(const tide_operand *out, int64_t i, double v) {
    if (tide_operand_present(out)) tide_data_store_f64(out->dtype, out->data, i, v);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const optimizer *o = k->def->family;
    const size_t n = count_tensors(k->def, args->n_in, args->n_out);
    setting s = read_setting(k->node);
    o->adjust(&s, tide_data_load_f64(args->in[R].dtype, args->in[R].data, 0), *(const int64_t *)args->in[T].data);
    for (size_t t = 0; t < n; t++) {
        const tide_operand *x = &args->in[FIRST + t], *g = &args->in[FIRST + n + t];
        const int64_t count = tide_op_numel(&x->shape);
        for (int64_t i = 0; i < count; i++) {
            double state[MAX_STATES] = {0};
            for (size_t j = 0; j < o->n_states; j++) {
                const tide_operand *from = &args->in[FIRST + (2 + j) * n + t];
                state[j] = tide_data_load_f64(from->dtype, from->data, i);
            }
            const double next =
                o->step(&s, tide_data_load_f64(x->dtype, x->data, i), tide_data_load_f64(g->dtype, g->data, i), state);
            store(&args->out[t], i, next);
            for (size_t j = 0; j < o->n_states; j++) store(&args->out[(1 + j) * n + t], i, state[j]);
        }
    }
    return TIDE_OK;
}

#define ROW(row, name_, n_states_, ...)                                                                                \
    static const optimizer row##_family = {n_states_, adjust_##row, step_##row};                                       \
    const tide_op_def tide_op_##row = {.name = name_,                                                                  \
                                       .domain = "ai.onnx.preview.training",                                           \
                                       .since = 1,                                                                     \
                                       .attrs = TIDE_ATTRS(__VA_ARGS__),                                               \
                                       .min_inputs = 4 + n_states_,                                                    \
                                       .max_inputs = 0,                                                                \
                                       .min_outputs = 1 + n_states_,                                                   \
                                       .max_outputs = 0,                                                               \
                                       .family = &row##_family,                                                        \
                                       .infer = infer,                                                                 \
                                       .run = run};
ROW(adagrad, "Adagrad", 1, TIDE_ATTR(FLOAT, "decay_factor"), TIDE_ATTR(FLOAT, "epsilon"),
    TIDE_ATTR(FLOAT, "norm_coefficient"))
ROW(adam, "Adam", 2, TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(FLOAT, "beta"), TIDE_ATTR(FLOAT, "epsilon"),
    TIDE_ATTR(FLOAT, "norm_coefficient"), TIDE_ATTR(FLOAT, "norm_coefficient_post"))
ROW(momentum, "Momentum", 1, TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(FLOAT, "beta"), TIDE_ATTR(STRING, "mode"),
    TIDE_ATTR(FLOAT, "norm_coefficient"))
