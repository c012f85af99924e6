// SPDX-License-Identifier: MIT
//
// The operators of neural networks, naively. See nn_oracle.h.
#include "tests/ops/nn_oracle.h"

#include <math.h>

static double *zeros(const nn_case *c) {
    double *y = tide_host_calloc((size_t)tide_op_numel(&c->out[0].shape) + 1, sizeof *y);
    assert_non_null(y);
    return y;
}

static bool has(const nn_case *c, size_t i) { return i < c->n_in && c->in[i].dtype != TIDE_DTYPE_UNDEFINED; }

double nn_oracle_act(const tide_activation *act, double v) {
    switch (act->kind) {
    case TIDE_ACT_NONE:
        return v;
    case TIDE_ACT_RELU:
        return fmax(v, 0);
    case TIDE_ACT_CLIP:
        return fmin(fmax(v, (double)act->alpha), (double)act->beta);
    case TIDE_ACT_SIGMOID:
        return 1 / (1 + exp(-v));
    case TIDE_ACT_TANH:
        return tanh(v);
    case TIDE_ACT_LEAKY_RELU:
        return v > 0 ? v : (double)act->alpha * v;
    }
    return NAN;
}

// ---- windows, always as three spatial dimensions ----

typedef struct win {
    int64_t in[3], k[3], s[3], d[3], begin[3], end[3], out[3];
} win;

static int64_t item(const nn_case *c, const char *name, int64_t i, int64_t absent) {
    size_t n;
    const int64_t *list = tide_node_attr_ints(c->node, name, &n);
    return list == NULL ? absent : list[i];
}

static win make_win(const nn_case *c, const int64_t *kernel) {
    win w;
    const int64_t n = c->in[0].shape.rank - 2;
    const char *pad = tide_node_attr_string(c->node, "auto_pad", "NOTSET");
    for (int64_t j = 0; j < 3; j++) {
        const int64_t i = j - (3 - n);
        w.in[j] = i < 0 ? 1 : c->in[0].shape.dims[i + 2];
        w.out[j] = i < 0 ? 1 : c->out[0].shape.dims[i + 2];
        w.k[j] = i < 0 ? 1 : kernel[i];
        w.s[j] = i < 0 ? 1 : item(c, "strides", i, 1);
        w.d[j] = i < 0 ? 1 : item(c, "dilations", i, 1);
        w.begin[j] = w.end[j] = 0;
        if (i < 0 || strcmp(pad, "VALID") == 0) continue;
        w.begin[j] = item(c, "pads", i, 0);
        w.end[j] = item(c, "pads", i + n, 0);
        if (strcmp(pad, "NOTSET") == 0) continue;
        int64_t total = (w.out[j] - 1) * w.s[j] + (w.k[j] - 1) * w.d[j] + 1 - w.in[j];
        total = total < 0 ? 0 : total;
        w.begin[j] = strcmp(pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        w.end[j] = total - w.begin[j];
    }
    return w;
}

// Index of the element under tap (a, b, e) of output (o, p, q), or -1 outside the input.
static int64_t under(const win *w, const int64_t *o, const int64_t *t) {
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t x = o[i] * w->s[i] - w->begin[i] + t[i] * w->d[i];
        if (x < 0 || x >= w->in[i]) return -1;
        at = at * w->in[i] + x;
    }
    return at;
}

static bool under_padded(const win *w, const int64_t *o, const int64_t *t) {
    for (int i = 0; i < 3; i++) {
        const int64_t x = o[i] * w->s[i] - w->begin[i] + t[i] * w->d[i];
        if (x < -w->begin[i] || x >= w->in[i] + w->end[i]) return false;
    }
    return true;
}

#define FOR3(o, limit)                                                                                                 \
    for (int64_t o[3] = {0}; o[0] < (limit)[0]; o[0]++)                                                                \
        for (o[1] = 0; o[1] < (limit)[1]; o[1]++)                                                                      \
            for (o[2] = 0; o[2] < (limit)[2]; o[2]++)

static int64_t product3(const int64_t *v) { return v[0] * v[1] * v[2]; }

double *nn_oracle_conv(const nn_case *c) {
    double *y = zeros(c), *to = y;
    const win w = make_win(c, c->in[1].shape.dims + 2);
    const int64_t group = tide_node_attr_int(c->node, "group", 1), channels = c->in[0].shape.dims[1];
    const int64_t m = c->in[1].shape.dims[0], per = channels / group, taps = product3(w.k), plane = product3(w.in);
    const float *x = nn_f32(&c->in[0]), *f = nn_f32(&c->in[1]);
    for (int64_t b = 0; b < c->in[0].shape.dims[0]; b++) {
        for (int64_t o = 0; o < m; o++) {
            FOR3(at, w.out) {
                double sum = has(c, 2) ? (double)nn_f32(&c->in[2])[o] : 0;
                for (int64_t ci = 0; ci < per; ci++) {
                    int64_t tap = 0;
                    FOR3(t, w.k) {
                        const int64_t from = under(&w, at, t), wi = (o * per + ci) * taps + tap++;
                        if (from < 0) continue;
                        const int64_t channel = o / (m / group) * per + ci;
                        sum += (double)f[wi] * (double)x[(b * channels + channel) * plane + from];
                    }
                }
                *to++ = nn_oracle_act(&c->node->activation, sum);
            }
        }
    }
    return y;
}

// Scatter every input element; `begin` rows are cut in front.
double *nn_oracle_conv_transpose(const nn_case *c) {
    double *y = zeros(c);
    win w = make_win(c, c->in[1].shape.dims + 2);
    const int64_t n = c->in[0].shape.rank - 2;
    const char *pad = tide_node_attr_string(c->node, "auto_pad", "NOTSET");
    size_t len;
    const bool shaped = tide_node_attr_ints(c->node, "output_shape", &len) != NULL;
    for (int64_t j = 3 - n; j < 3; j++) {
        const int64_t i = j - (3 - n);
        if (!shaped && strncmp(pad, "SAME", 4) != 0) continue;
        int64_t total = w.s[j] * (w.in[j] - 1) + item(c, "output_padding", i, 0) + (w.k[j] - 1) * w.d[j] + 1 - w.out[j];
        if (total < 0) total = 0;
        w.begin[j] = strcmp(pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    }
    const int64_t group = tide_node_attr_int(c->node, "group", 1), channels = c->in[0].shape.dims[1];
    const int64_t per = c->in[1].shape.dims[1], m = per * group, taps = product3(w.k), plane = product3(w.in);
    const float *x = nn_f32(&c->in[0]), *f = nn_f32(&c->in[1]);
    for (int64_t b = 0; b < c->in[0].shape.dims[0]; b++) {
        for (int64_t ci = 0; ci < channels; ci++) {
            int64_t at = 0;
            FOR3(i, w.in) {
                const double v = (double)x[(b * channels + ci) * plane + at++];
                for (int64_t mi = 0; mi < per; mi++) {
                    int64_t tap = 0;
                    FOR3(t, w.k) {
                        const double fv = (double)f[(ci * per + mi) * taps + tap++];
                        int64_t to = b * m + ci / (channels / group) * per + mi;
                        bool inside = true;
                        for (int d = 0; d < 3; d++) {
                            const int64_t o = i[d] * w.s[d] + t[d] * w.d[d] - w.begin[d];
                            inside = inside && o >= 0 && o < w.out[d];
                            to = to * w.out[d] + o;
                        }
                        if (inside) y[to] += v * fv;
                    }
                }
            }
        }
    }
    const int64_t total = tide_op_numel(&c->out[0].shape), out_plane = product3(w.out);
    for (int64_t i = 0; i < total; i++) {
        if (has(c, 2)) y[i] += (double)nn_f32(&c->in[2])[i / out_plane % m];
        y[i] = nn_oracle_act(&c->node->activation, y[i]);
    }
    return y;
}

static double element(const tide_operand *o, int64_t i) {
    if (o->dtype == TIDE_U8) return ((const uint8_t *)o->data)[i];
    if (o->dtype == TIDE_I8) return ((const int8_t *)o->data)[i];
    return (double)((const float *)o->data)[i];
}

double *nn_oracle_pool(const nn_case *c) {
    double *y = zeros(c), *to = y;
    size_t len;
    const win w = make_win(c, tide_node_attr_ints(c->node, "kernel_shape", &len));
    const bool max = c->node->op_type[0] == 'M', include = tide_node_attr_int(c->node, "count_include_pad", 0) != 0;
    const int64_t planes = c->in[0].shape.dims[0] * c->in[0].shape.dims[1];
    for (int64_t p = 0; p < planes; p++) {
        FOR3(at, w.out) {
            double best = -INFINITY, sum = 0, n = 0;
            FOR3(t, w.k) {
                const int64_t from = under(&w, at, t);
                if (from >= 0) {
                    const double v = element(&c->in[0], p * product3(w.in) + from);
                    best = fmax(best, v);
                    sum += v;
                }
                n += from >= 0 || (include && under_padded(&w, at, t)) ? 1 : 0;
            }
            *to++ = max ? best : sum / n;
        }
    }
    return y;
}

double *nn_oracle_global_pool(const nn_case *c) {
    double *y = zeros(c);
    const int64_t planes = tide_op_numel(&c->out[0].shape),
                  len = tide_op_count(&c->in[0].shape, 2, c->in[0].shape.rank);
    for (int64_t p = 0; p < planes; p++) {
        double best = -INFINITY, sum = 0;
        for (int64_t i = 0; i < len; i++) {
            best = fmax(best, element(&c->in[0], p * len + i));
            sum += element(&c->in[0], p * len + i);
        }
        y[p] = strcmp(c->node->op_type, "GlobalMaxPool") == 0 ? best : sum / (double)len;
    }
    return y;
}

// ---- products ----

// Offset of batch `i` (counted in `out` extents) of an operand whose batch extents broadcast to them.
static int64_t batch_offset(const tide_shape *s, int32_t matrix_rank, const tide_shape *out, int32_t out_batch,
                            int64_t i) {
    int64_t offset = 0, step = 1;
    for (int32_t d = s->rank - matrix_rank; d < s->rank; d++) step *= s->dims[d];
    for (int32_t d = out_batch - 1; d >= 0; d--) {
        const int64_t index = i % out->dims[d];
        i /= out->dims[d];
        const int32_t sd = d - (out_batch - (s->rank - matrix_rank));
        if (sd < 0) continue;
        if (s->dims[sd] > 1) offset += index * step;
        step *= s->dims[sd];
    }
    return offset;
}

double *nn_oracle_matmul(const nn_case *c) {
    double *y = zeros(c), *to = y;
    const tide_shape *a = &c->in[0].shape, *b = &c->in[1].shape, *o = &c->out[0].shape;
    const int32_t ar = a->rank == 1 ? 1 : 2, br = b->rank == 1 ? 1 : 2;
    const int64_t m = ar == 1 ? 1 : a->dims[a->rank - 2], k = a->dims[a->rank - 1],
                  n = br == 1 ? 1 : b->dims[b->rank - 1];
    const int32_t out_batch = o->rank - (ar - 1) - (br - 1);
    const int64_t batches = tide_op_count(o, 0, out_batch);
    for (int64_t i = 0; i < batches; i++) {
        const float *pa = nn_f32(&c->in[0]) + batch_offset(a, ar, o, out_batch, i);
        const float *pb = nn_f32(&c->in[1]) + batch_offset(b, br, o, out_batch, i);
        for (int64_t r = 0; r < m; r++) {
            for (int64_t q = 0; q < n; q++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++) sum += (double)pa[r * k + l] * (double)pb[l * n + q];
                *to++ = nn_oracle_act(&c->node->activation, sum);
            }
        }
    }
    return y;
}

double *nn_oracle_gemm(const nn_case *c) {
    double *y = zeros(c);
    const int64_t *ad = c->in[0].shape.dims, *bd = c->in[1].shape.dims;
    const bool ta = tide_node_attr_int(c->node, "transA", 0) != 0, tb = tide_node_attr_int(c->node, "transB", 0) != 0;
    const double alpha = (double)tide_node_attr_float(c->node, "alpha", 1),
                 beta = (double)tide_node_attr_float(c->node, "beta", 1);
    const int64_t m = ta ? ad[1] : ad[0], k = ta ? ad[0] : ad[1], n = tb ? bd[0] : bd[1];
    const float *a = nn_f32(&c->in[0]), *b = nn_f32(&c->in[1]);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)a[ta ? l * m + i : i * k + l] * (double)b[tb ? j * k + l : l * n + j];
            sum *= alpha;
            if (has(c, 2)) {
                const tide_shape *s = &c->in[2].shape;
                const int64_t cols = s->rank > 0 ? s->dims[s->rank - 1] : 1, rows = s->rank > 1 ? s->dims[0] : 1;
                sum += beta * (double)nn_f32(&c->in[2])[(rows > 1 ? i : 0) * cols + (cols > 1 ? j : 0)];
            }
            y[i * n + j] = nn_oracle_act(&c->node->activation, sum);
        }
    }
    return y;
}

// ---- normalisation ----

double *nn_oracle_batch_norm(const nn_case *c) {
    double *y = zeros(c);
    const tide_shape *s = &c->in[0].shape;
    const int64_t total = tide_op_numel(s), len = tide_op_count(s, 2, s->rank);
    const double eps = (double)tide_node_attr_float(c->node, "epsilon", 1e-5f);
    for (int64_t i = 0; i < total; i++) {
        const int64_t ch = i / len % s->dims[1];
        const double v = element(&c->in[0], i) - element(&c->in[3], ch);
        y[i] = v / sqrt(element(&c->in[4], ch) + eps) * element(&c->in[1], ch) + element(&c->in[2], ch);
        y[i] = nn_oracle_act(&c->node->activation, y[i]);
    }
    return y;
}

static void moments(const nn_case *c, int64_t begin, int64_t n, double *mean, double *var) {
    *mean = *var = 0;
    for (int64_t i = 0; i < n; i++) *mean += element(&c->in[0], begin + i) / (double)n;
    for (int64_t i = 0; i < n; i++) *var += pow(element(&c->in[0], begin + i) - *mean, 2) / (double)n;
}

double *nn_oracle_instance_norm(const nn_case *c) {
    double *y = zeros(c);
    const tide_shape *s = &c->in[0].shape;
    const int64_t total = tide_op_numel(s), len = tide_op_count(s, 2, s->rank);
    for (int64_t i = 0; i < total; i++) {
        double mean, var;
        moments(c, i / len * len, len, &mean, &var);
        const int64_t ch = i / len % s->dims[1];
        y[i] = (element(&c->in[0], i) - mean) / sqrt(var + (double)tide_node_attr_float(c->node, "epsilon", 1e-5f));
        y[i] = y[i] * element(&c->in[1], ch) + element(&c->in[2], ch);
    }
    return y;
}

double *nn_oracle_layer_norm(const nn_case *c) {
    double *y = zeros(c);
    const tide_shape *s = &c->in[0].shape;
    int64_t axis = tide_node_attr_int(c->node, "axis", -1);
    if (axis < 0) axis += s->rank;
    const int64_t total = tide_op_numel(s), len = tide_op_count(s, (int32_t)axis, s->rank);
    for (int64_t i = 0; i < total; i++) {
        double mean, var;
        moments(c, i / len * len, len, &mean, &var);
        y[i] = (element(&c->in[0], i) - mean) / sqrt(var + (double)tide_node_attr_float(c->node, "epsilon", 1e-5f));
        y[i] = y[i] * element(&c->in[1], i % len) + (has(c, 2) ? element(&c->in[2], i % len) : 0);
    }
    return y;
}

double *nn_oracle_lrn(const nn_case *c) {
    double *y = zeros(c);
    const tide_shape *s = &c->in[0].shape;
    const int64_t channels = s->dims[1], len = tide_op_count(s, 2, s->rank), total = tide_op_numel(s);
    const int64_t size = tide_node_attr_int(c->node, "size", 0);
    const double alpha = (double)tide_node_attr_float(c->node, "alpha", 1e-4f);
    for (int64_t i = 0; i < total; i++) {
        const int64_t ch = i / len % channels, item_at = i / (len * channels) * channels;
        double sum = 0;
        for (int64_t o = ch - (int64_t)floor((double)(size - 1) / 2); o <= ch + (int64_t)ceil((double)(size - 1) / 2);
             o++)
            if (o >= 0 && o < channels) sum += pow(element(&c->in[0], (item_at + o) * len + i % len), 2);
        const double base = (double)tide_node_attr_float(c->node, "bias", 1) + alpha / (double)size * sum;
        y[i] = element(&c->in[0], i) / pow(base, (double)tide_node_attr_float(c->node, "beta", 0.75f));
    }
    return y;
}

double *nn_oracle_softmax(const nn_case *c) {
    double *y = zeros(c);
    const tide_shape *s = &c->in[0].shape;
    const bool old = c->node->opset < 13, log_it = c->node->op_type[0] == 'L';
    int64_t axis = tide_node_attr_int(c->node, "axis", old ? 1 : -1);
    if (axis < 0) axis += s->rank;
    const int64_t n = old ? tide_op_count(s, (int32_t)axis, s->rank) : s->dims[axis];
    const int64_t inner = old ? 1 : tide_op_count(s, (int32_t)axis + 1, s->rank), total = tide_op_numel(s);
    for (int64_t i = 0; i < total; i++) {
        const int64_t first = i / (n * inner) * n * inner + i % inner;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += exp(element(&c->in[0], first + j * inner));
        y[i] = log_it ? element(&c->in[0], i) - log(sum) : exp(element(&c->in[0], i)) / sum;
    }
    return y;
}

static double activate(const tide_node *n, double v) {
    const char *op = n->op_type;
    if (strcmp(op, "Relu") == 0) return fmax(v, 0);
    if (strcmp(op, "LeakyRelu") == 0) return v < 0 ? (double)tide_node_attr_float(n, "alpha", 0.01f) * v : v;
    if (strcmp(op, "Elu") == 0) return v < 0 ? (double)tide_node_attr_float(n, "alpha", 1) * (exp(v) - 1) : v;
    if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + exp(-v));
    if (strcmp(op, "Tanh") == 0) return tanh(v);
    if (strcmp(op, "HardSwish") == 0) return v * fmax(0, fmin(1, v / 6 + 0.5));
    if (strcmp(op, "Softplus") == 0) return log(exp(v) + 1);
    if (strcmp(op, "HardSigmoid") == 0)
        return fmax(0, fmin(1, (double)tide_node_attr_float(n, "alpha", 0.2f) * v +
                                   (double)tide_node_attr_float(n, "beta", 0.5f)));
    if (strcmp(op, "Gelu") == 0 && strcmp(tide_node_attr_string(n, "approximate", "none"), "tanh") == 0)
        return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    if (strcmp(op, "Gelu") == 0) return 0.5 * v * (1 + erf(v / sqrt(2)));
    return NAN;
}

double *nn_oracle_activation(const nn_case *c) {
    double *y = zeros(c);
    const int64_t total = tide_op_numel(&c->in[0].shape);
    for (int64_t i = 0; i < total; i++) y[i] = activate(c->node, element(&c->in[0], i));
    return y;
}
