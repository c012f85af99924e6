// SPDX-License-Identifier: MIT
//
// RNN, GRU and LSTM, float32: each item of the batch goes through its sequence by itself, direction by direction.
//
//     X [seq, batch, I]   W [D, G*H, I]   R [D, G*H, H]   B [D, 2*G*H]   state [D, batch, H]   (layout 0)
//     X [batch, seq, I]                                                  state [batch, D, H]   (layout 1)
//
// G gates: 1 of RNN; z, r, h of GRU; i, o, f, c of LSTM. D: 2 with both directions. What lies behind the end of a
// shorter sequence is 0 in Y, and its last state is that of its own end. Per item the scratch holds the gates of a
// step, what R makes of the state, and h and c.
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/ops/clones.h"
#include "core/ops/op_util.h"
#include "core/ops/vector_math.h"

enum { X, W, R, B, LENGTHS, H0, C0, P, N_INPUTS };
enum { MAX_DIRECTIONS = 2, MAX_ACTIVATIONS = 3, LANES = 8 };

// ---- activations ----

/// NaN stays what it is, here and in each activation: no comparison may hide it.
static float between(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }

#define RECURRENT_ACTIVATIONS(XX)                                                                                      \
    XX(RELU, "Relu", 0, 0, 0, x < 0 ? 0 : x)                                                                           \
    XX(TANH, "Tanh", 0, 0, 0, tanhf(x))                                                                                \
    XX(SIGMOID, "Sigmoid", 0, 0, 0, 1 / (1 + expf(-x)))                                                                \
    XX(AFFINE, "Affine", 2, 1, 0, a *x + b)                                                                            \
    XX(LEAKY_RELU, "LeakyRelu", 1, 0.01f, 0, x >= 0 ? x : a * x)                                                       \
    XX(THRESHOLDED_RELU, "ThresholdedRelu", 1, 1, 0, x <= a ? 0 : x)                                                   \
    XX(SCALED_TANH, "ScaledTanh", 2, 1, 1, a *tanhf(b *x))                                                             \
    XX(HARD_SIGMOID, "HardSigmoid", 2, 0.2f, 0.5f, between(a *x + b, 0, 1))                                            \
    XX(ELU, "Elu", 1, 1, 0, x >= 0 ? x : a * (expf(x) - 1))                                                            \
    XX(SOFTSIGN, "Softsign", 0, 0, 0, x / (1 + fabsf(x)))                                                              \
    XX(SOFTPLUS, "Softplus", 0, 0, 0, x > 20 ? x : log1pf(expf(x)))

typedef enum activation_kind {
#define XX(name, text, n, a, b, expr) ACT_##name,
    RECURRENT_ACTIVATIONS(XX)
#undef XX
        N_ACTIVATIONS
} activation_kind;

typedef struct activation {
    activation_kind kind;
    float a, b;
} activation;

static float activate(const activation *act, float x) {
    const float a = act->a, b = act->b;
    (void)a;
    (void)b;
    switch (act->kind) {
#define XX(name, text, n, alpha, beta, expr)                                                                           \
    case ACT_##name:                                                                                                   \
        return expr;
        RECURRENT_ACTIVATIONS(XX)
#undef XX
    case N_ACTIVATIONS:
        break;
    }
    return x;
}

/// v[i] = act(v[i]) for n elements.
static void activate_row(const activation *act, float *v, int64_t n) {
    if (act->kind == ACT_SIGMOID)
        tide_sigmoid_row(v, v, n);
    else if (act->kind == ACT_TANH)
        tide_tanh_row(v, v, n);
    else
        for (int64_t i = 0; i < n; i++) v[i] = activate(act, v[i]);
}

/// ONNX does not say whether case matters; files have both.
static tide_status find_activation(const tide_node *node, const char *name, activation *out, int *n_parameters,
                                   tide_error *err) {
    static const struct {
        const char *name;
        int n;
        float a, b;
    } all[N_ACTIVATIONS] = {
#define XX(name, text, n, a, b, expr) [ACT_##name] = {text, n, a, b},
        RECURRENT_ACTIVATIONS(XX)
#undef XX
    };
    for (int i = 0; i < N_ACTIVATIONS; i++) {
        if (strcasecmp(name, all[i].name) != 0) continue;
        *out = (activation){(activation_kind)i, all[i].a, all[i].b};
        *n_parameters = all[i].n;
        return TIDE_OK;
    }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'%s' is no activation", name);
}

// ---- what the node says ----

typedef struct recurrent {
    int64_t n_gates, n_directions, seq, batch, n_in, hidden;
    bool batch_first, begins_reversed, linear_before_reset, couples_forget, has_clip;
    float clip;
    activation acts[MAX_DIRECTIONS][MAX_ACTIVATIONS];
} recurrent;

static int64_t gates_of(const tide_op_def *def) { return def->name[0] == 'L' ? 4 : def->name[0] == 'G' ? 3 : 1; }
static size_t activations_of(const tide_op_def *def) { return def->name[0] == 'L' ? 3 : def->name[0] == 'G' ? 2 : 1; }

/// Parameters are taken in the order of the activations that have some.
static tide_status read_activations(const tide_node *node, recurrent *r, tide_error *err) {
    static const char *const defaults[][MAX_ACTIVATIONS] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const size_t n_each = activations_of(node->def), n = n_each * (size_t)r->n_directions;
    size_t n_names = 0, n_alpha = 0, n_beta = 0, next_alpha = 0, next_beta = 0;
    const char *const *names = tide_node_attr_strings(node, "activations", &n_names);
    const float *alpha = tide_node_attr_floats(node, "activation_alpha", &n_alpha);
    const float *beta = tide_node_attr_floats(node, "activation_beta", &n_beta);
    if (names != NULL && n_names != n)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "activations has %zu names, must have %zu", n_names, n);
    for (size_t i = 0; i < n; i++) {
        activation *act = &r->acts[i / n_each][i % n_each];
        int n_parameters = 0;
        TIDE_TRY(find_activation(node, names != NULL ? names[i] : defaults[n_each - 1][i % n_each], act, &n_parameters,
                                 err));
        if (n_parameters > 0 && alpha != NULL && next_alpha < n_alpha) act->a = alpha[next_alpha++];
        if (n_parameters > 1 && beta != NULL && next_beta < n_beta) act->b = beta[next_beta++];
    }
    return TIDE_OK;
}

static tide_status read_node(const tide_node *node, const tide_operand *in, recurrent *r, tide_error *err) {
    const char *direction = tide_node_attr_string(node, "direction", "forward");
    *r = (recurrent){.n_gates = gates_of(node->def), .n_directions = 1};
    r->begins_reversed = strcmp(direction, "reverse") == 0;
    if (strcmp(direction, "bidirectional") == 0)
        r->n_directions = 2;
    else if (!r->begins_reversed && strcmp(direction, "forward") != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "direction '%s' is none of forward, reverse, bidirectional",
                            direction);
    r->batch_first = node->opset >= 14 && tide_node_attr_int(node, "layout", 0) != 0;
    r->linear_before_reset = tide_node_attr_int(node, "linear_before_reset", 0) != 0;
    r->couples_forget = tide_node_attr_int(node, "input_forget", 0) != 0;
    r->has_clip = tide_node_attr(node, "clip") != NULL;
    r->clip = tide_node_attr_float(node, "clip", 0);
    if (r->has_clip && !(r->clip > 0))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "clip is %g, must be above 0", (double)r->clip);
    TIDE_TRY(tide_op_require_rank(node, &in[X], "X", 3, 3, err));
    TIDE_TRY(tide_op_require_rank(node, &in[R], "R", 3, 3, err));
    r->seq = in[X].shape.dims[r->batch_first ? 1 : 0];
    r->batch = in[X].shape.dims[r->batch_first ? 0 : 1];
    r->n_in = in[X].shape.dims[2];
    r->hidden = in[R].shape.dims[2];
    return read_activations(node, r, err);
}

// ---- shapes ----

/// An operand that may be left out has this type and shape.
static tide_status must_be(const tide_infer *x, size_t i, const char *what, tide_dtype dtype, int32_t rank,
                           const int64_t *dims, tide_error *err) {
    const tide_shape want = tide_shape_make(rank, dims);
    if (!tide_op_has_in(x, i)) return TIDE_OK;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, dtype, err));
    return tide_op_require_shape(x->node, &x->in[i], what, &want, err);
}

static tide_status check_inputs(const tide_infer *x, const recurrent *r, tide_error *err) {
    const int64_t d = r->n_directions, h = r->hidden, b = r->batch, g = r->n_gates;
    if (h > TIDE_WINDOW_LIMIT) // gates and scratch are counted in bytes
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "a hidden size of %lld is too large", (long long)h);
    const int64_t asked = tide_node_attr_int(x->node, "hidden_size", h);
    if (asked != h)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "hidden_size is %lld, R has %lld", (long long)asked,
                            (long long)h);
    const int64_t w[] = {d, g * h, r->n_in}, rec[] = {d, g * h, h}, bias[] = {d, 2 * g * h}, peep[] = {d, 3 * h};
    const int64_t state[] = {r->batch_first ? b : d, r->batch_first ? d : b, h};
    TIDE_TRY(must_be(x, W, "W", TIDE_F32, 3, w, err));
    TIDE_TRY(must_be(x, R, "R", TIDE_F32, 3, rec, err));
    TIDE_TRY(must_be(x, B, "B", TIDE_F32, 2, bias, err));
    TIDE_TRY(must_be(x, LENGTHS, "sequence_lens", TIDE_I32, 1, &b, err));
    TIDE_TRY(must_be(x, H0, "initial_h", TIDE_F32, 3, state, err));
    TIDE_TRY(must_be(x, C0, "initial_c", TIDE_F32, 3, state, err));
    return must_be(x, P, "P", TIDE_F32, 2, peep, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    recurrent r;
    for (size_t i = X; i <= R; i++)
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], i == X ? "X" : i == W ? "W" : "R", TIDE_F32, err));
    TIDE_TRY(read_node(x->node, x->in, &r, err));
    TIDE_TRY(check_inputs(x, &r, err));
    const int64_t d = r.n_directions, b = r.batch, s = r.seq;
    const int64_t all[2][4] = {{s, d, b, r.hidden}, {b, s, d, r.hidden}};
    const int64_t state[2][3] = {{d, b, r.hidden}, {b, d, r.hidden}};
    if (tide_op_has_out(x, 0)) TIDE_TRY(tide_op_set_out(x, 0, TIDE_F32, 4, all[r.batch_first], err));
    for (size_t i = 1; i < x->n_out; i++)
        if (tide_op_has_out(x, i)) TIDE_TRY(tide_op_set_out(x, i, TIDE_F32, 3, state[r.batch_first], err));
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    const double rows = (double)tide_op_count(&x->in[X].shape, 0, 2);
    return rows * (double)(tide_op_numel(&x->in[W].shape) + tide_op_numel(&x->in[R].shape));
}

/// Of one item: the gates, what R makes of the state, h, c, and r .* h of GRU.
static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    recurrent *r;
    TIDE_TRY(TIDE_OP_NEW(&r, x->node, err));
    const tide_status st = read_node(x->node, x->in, r, err);
    if (st != TIDE_OK) {
        tide_host_free(r);
        return st;
    }
    k->state = r;
    k->workspace_bytes = (size_t)(2 * r->n_gates + 3) * (size_t)r->hidden * sizeof(float);
    return TIDE_OK;
}

static void destroy(tide_kernel *k) { tide_host_free(k->state); }

// ---- one step of one item ----

typedef struct item {
    const recurrent *r;
    const activation *acts;
    const float *w, *rec, *bias, *peep;     // of the direction; bias and peep may be NULL
    float *gates, *of_state, *h, *c, *some; // scratch: [G*H], [G*H], [H], [H], [H]
} item;

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/// Running sums break the chain of additions; their order is ours, so that it does not depend on the processor. From
/// `i` on there is less than a vector.
static inline float sum_up(const lanes *sums, const float *w, const float *x, int64_t i, int64_t n) {
    float p[LANES];
    for (int k = 0; k < LANES; k++) p[k] = (*sums)[k];
    for (int k = 0; i < n; i++, k++) p[k] += w[i] * x[i];
    return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

/// out[g] = w[g] . x + bias[g] for `rows` rows of n; four at a time read x once.
TIDE_CLONES static void products(float *restrict out, const float *restrict w, const float *restrict x,
                                 const float *restrict bias, int64_t rows, int64_t n) {
    int64_t g = 0;
    for (; g + 4 <= rows; g += 4, w += 4 * n) {
        lanes a = {0}, b = {0}, c = {0}, d = {0};
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) {
            const lanes in = *(const lanes *)(x + i);
            a += *(const lanes *)(w + i) * in;
            b += *(const lanes *)(w + n + i) * in;
            c += *(const lanes *)(w + 2 * n + i) * in;
            d += *(const lanes *)(w + 3 * n + i) * in;
        }
        out[g] = sum_up(&a, w, x, i, n);
        out[g + 1] = sum_up(&b, w + n, x, i, n);
        out[g + 2] = sum_up(&c, w + 2 * n, x, i, n);
        out[g + 3] = sum_up(&d, w + 3 * n, x, i, n);
    }
    for (; g < rows; g++, w += n) {
        lanes a = {0};
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) a += *(const lanes *)(w + i) * *(const lanes *)(x + i);
        out[g] = sum_up(&a, w, x, i, n);
    }
    for (g = 0; bias != NULL && g < rows; g++) out[g] += bias[g];
}

static float bounded(const recurrent *r, float v) { return r->has_clip ? between(v, -r->clip, r->clip) : v; }

/// gates = W x + Wb, of_state = R h + Rb.
static void add_up(const item *it, const float *x) {
    const int64_t n = it->r->n_gates * it->r->hidden;
    products(it->gates, it->w, x, it->bias, n, it->r->n_in);
    products(it->of_state, it->rec, it->h, it->bias != NULL ? it->bias + n : NULL, n, it->r->hidden);
}

/// The gates [from, to) with what R makes of the state, bounded.
static void join(const item *it, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) it->gates[i] = bounded(it->r, it->gates[i] + it->of_state[i]);
}

static void step_rnn(const item *it) {
    join(it, 0, it->r->hidden);
    activate_row(&it->acts[0], it->gates, it->r->hidden);
    memcpy(it->h, it->gates, (size_t)it->r->hidden * sizeof *it->h);
}

/// z, r, h: with linear_before_reset the reset is of what R makes of the state, else of the state.
static void step_gru(const item *it) {
    const recurrent *r = it->r;
    const int64_t n = r->hidden;
    float *gates = it->gates, *of_state = it->of_state + 2 * n;
    join(it, 0, 2 * n);
    activate_row(&it->acts[0], gates, 2 * n);
    if (r->linear_before_reset) {
        for (int64_t i = 0; i < n; i++) of_state[i] = gates[n + i] * of_state[i];
    } else {
        for (int64_t i = 0; i < n; i++) it->some[i] = gates[n + i] * it->h[i];
        products(of_state, it->rec + 2 * n * n, it->some, it->bias != NULL ? it->bias + 5 * n : NULL, n, n);
    }
    join(it, 2 * n, 3 * n);
    activate_row(&it->acts[1], gates + 2 * n, n);
    for (int64_t i = 0; i < n; i++) it->h[i] = (1 - gates[i]) * gates[2 * n + i] + gates[i] * it->h[i];
}

/// i, o, f, c; peepholes of i, o, f look at the cell, that of o at the new one.
static void step_lstm(const item *it) {
    const recurrent *r = it->r;
    const int64_t n = r->hidden;
    float *in = it->gates, *out = in + n, *forget = in + 2 * n, *cell = in + 3 * n;
    const float *p = it->peep;
    for (int64_t i = 0; i < 4 * n; i++) in[i] += it->of_state[i];
    for (int64_t i = 0; p != NULL && i < n; i++) {
        in[i] += p[i] * it->c[i];
        forget[i] += p[2 * n + i] * it->c[i];
    }
    for (int64_t i = 0; i < n; i++) in[i] = bounded(r, in[i]), forget[i] = bounded(r, forget[i]);
    for (int64_t i = 0; i < n; i++) cell[i] = bounded(r, cell[i]);
    activate_row(&it->acts[0], in, n);
    activate_row(&it->acts[0], forget, n);
    activate_row(&it->acts[1], cell, n);
    for (int64_t i = 0; i < n; i++) it->c[i] = (r->couples_forget ? 1 - in[i] : forget[i]) * it->c[i] + in[i] * cell[i];
    for (int64_t i = 0; i < n; i++) out[i] = bounded(r, out[i] + (p != NULL ? p[n + i] * it->c[i] : 0));
    activate_row(&it->acts[0], out, n);
    memcpy(it->some, it->c, (size_t)n * sizeof *it->some);
    activate_row(&it->acts[2], it->some, n);
    for (int64_t i = 0; i < n; i++) it->h[i] = out[i] * it->some[i];
}

// ---- a sequence ----

static int64_t state_at(const recurrent *r, int64_t d, int64_t b) {
    return (r->batch_first ? b * r->n_directions + d : d * r->batch + b) * r->hidden;
}

static int64_t output_at(const recurrent *r, int64_t t, int64_t d, int64_t b) {
    return (r->batch_first ? (b * r->seq + t) * r->n_directions + d : (t * r->n_directions + d) * r->batch + b) *
           r->hidden;
}

static const float *data_of(const tide_kernel_args *a, size_t i) {
    return i < a->n_in && tide_operand_present(&a->in[i]) ? a->in[i].data : NULL;
}
static float *result_of(const tide_kernel_args *a, size_t i) {
    return i < a->n_out && tide_operand_present(&a->out[i]) ? a->out[i].data : NULL;
}

static void begin_state(const recurrent *r, float *state, const float *initial, int64_t at) {
    if (initial != NULL)
        memcpy(state, initial + at, (size_t)r->hidden * sizeof *state);
    else
        memset(state, 0, (size_t)r->hidden * sizeof *state);
}

static void run_item(const item *it, const tide_kernel_args *a, int64_t d, int64_t b, int64_t length) {
    const recurrent *r = it->r;
    const size_t bytes = (size_t)r->hidden * sizeof(float);
    const bool reversed = r->n_directions == 2 ? d == 1 : r->begins_reversed;
    const int64_t at = state_at(r, d, b);
    float *y = result_of(a, 0), *last_h = result_of(a, 1), *last_c = result_of(a, 2);
    begin_state(r, it->h, data_of(a, H0), at);
    begin_state(r, it->c, data_of(a, C0), at);
    for (int64_t i = 0; i < length; i++) {
        const int64_t t = reversed ? length - 1 - i : i;
        add_up(it, (const float *)a->in[X].data + (r->batch_first ? b * r->seq + t : t * r->batch + b) * r->n_in);
        if (r->n_gates == 1) step_rnn(it);
        if (r->n_gates == 3) step_gru(it);
        if (r->n_gates == 4) step_lstm(it);
        if (y != NULL) memcpy(y + output_at(r, t, d, b), it->h, bytes);
    }
    for (int64_t t = length; y != NULL && t < r->seq; t++) memset(y + output_at(r, t, d, b), 0, bytes);
    if (last_h != NULL) memcpy(last_h + at, it->h, bytes);
    if (last_c != NULL) memcpy(last_c + at, it->c, bytes);
}

static tide_status length_of(const tide_kernel *k, const tide_kernel_args *a, int64_t b, int64_t *out,
                             tide_error *err) {
    const recurrent *r = k->state;
    *out = r->seq;
    if (LENGTHS >= a->n_in || !tide_operand_present(&a->in[LENGTHS])) return TIDE_OK;
    *out = ((const int32_t *)a->in[LENGTHS].data)[b];
    if (*out >= 0 && *out <= r->seq) return TIDE_OK;
    return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "sequence_lens[%lld] is %lld, sequences have %lld steps",
                        (long long)b, (long long)*out, (long long)r->seq);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const recurrent *r = k->state;
    const int64_t n = r->n_gates * r->hidden;
    float *scratch = a->workspace;
    if (r->hidden == 0) return TIDE_OK; // all results are of 0 bytes
    for (int64_t d = 0; d < r->n_directions; d++) {
        const float *bias = data_of(a, B), *peep = data_of(a, P);
        const item it = {.r = r,
                         .acts = r->acts[d],
                         .w = data_of(a, W) + d * n * r->n_in,
                         .rec = data_of(a, R) + d * n * r->hidden,
                         .bias = bias != NULL ? bias + d * 2 * n : NULL,
                         .peep = peep != NULL ? peep + d * 3 * r->hidden : NULL,
                         .gates = scratch,
                         .of_state = scratch + n,
                         .h = scratch + 2 * n,
                         .c = scratch + 2 * n + r->hidden,
                         .some = scratch + 2 * n + 2 * r->hidden};
        for (int64_t b = 0; b < r->batch; b++) {
            int64_t length;
            TIDE_TRY(length_of(k, a, b, &length, err));
            run_item(&it, a, d, b, length);
        }
    }
    return TIDE_OK;
}

/// `own_attr`: the attribute that this one has alone.
#define OP_DEF(row_name, text, inputs, outputs, own_attr)                                                              \
    const tide_op_def tide_op_##row_name = {                                                                           \
        .name = text,                                                                                                  \
        .domain = "",                                                                                                  \
        .since = 7,                                                                                                    \
        .attrs = TIDE_ATTRS(TIDE_ATTR(FLOATS, "activation_alpha"), TIDE_ATTR(FLOATS, "activation_beta"),               \
                            TIDE_ATTR(STRINGS, "activations"), TIDE_ATTR(FLOAT, "clip"),                               \
                            TIDE_ATTR(STRING, "direction"), TIDE_ATTR(INT, "hidden_size"),                             \
                            TIDE_ATTR(INT, "layout", .since = 14), TIDE_ATTR(INT, own_attr)),                          \
        .min_inputs = 3,                                                                                               \
        .max_inputs = inputs,                                                                                          \
        .min_outputs = 0,                                                                                              \
        .max_outputs = outputs,                                                                                        \
        .infer = infer,                                                                                                \
        .work = work,                                                                                                  \
        .prepare = prepare,                                                                                            \
        .destroy = destroy,                                                                                            \
        .run = run};
OP_DEF(rnn, "RNN", H0 + 1, 2, NULL)
OP_DEF(gru, "GRU", H0 + 1, 2, "linear_before_reset")
OP_DEF(lstm, "LSTM", N_INPUTS, 3, "input_forget")
