// SPDX-License-Identifier: MIT
//
// Einsum: products summed over the labels that the output does not name, "bij,bjk->bik". Each label is a loop:
//
//     for each index of the output but its last label:    row = 0
//         for each index of the labels that are summed:   row[j] += a[.. + j * step] * b[.. + j * step]
//
// The row is the scratch. An ellipsis stands for axes without names, which broadcast; they are labels of their own
// here. Floats multiply and add in double; integers wrap.
#include "core/base/checked.h"
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

enum {
    MAX_TERMS = 8,
    N_LETTERS = 52,
    MAX_LABELS = N_LETTERS + TIDE_MAX_RANK, ///< after the letters the axes of an ellipsis, the last one last
};

/// What one operand, or the output, is called: labels [rank], -1 where its ellipsis stands.
typedef struct term {
    int32_t n;
    int8_t label[TIDE_MAX_RANK + 1];
    bool has_ellipsis;
} term;

typedef struct einsum {
    size_t n_terms;
    term out;
    int64_t extent[MAX_LABELS]; ///< -1: no operand names it
    int32_t n_loops, n_out;     ///< loops of the output first, then those that are summed
    int64_t dims[MAX_LABELS];
    int64_t strides[MAX_TERMS][MAX_LABELS]; ///< elements
} einsum;

// ---- the equation ----

static int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1; }

static tide_status bad_equation(const tide_node *node, const char *equation, const char *why, tide_error *err) {
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "equation '%s': %s", equation, why);
}

/// One term, up to a comma, an arrow or the end; *at is moved there.
static tide_status read_term(const tide_node *node, const char *equation, const char **at, term *t, tide_error *err) {
    *t = (term){0};
    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        if (**at == ' ') continue;
        int label = label_of(**at);
        if (strncmp(*at, "...", 3) == 0 && !t->has_ellipsis) {
            t->has_ellipsis = true;
            *at += 2;
        } else if (label < 0) {
            return bad_equation(node, equation, "a term has letters and one '...'", err);
        }
        if (t->n > TIDE_MAX_RANK) return bad_equation(node, equation, "a term has too many labels", err);
        t->label[t->n++] = (int8_t)label;
    }
    return TIDE_OK;
}

/// The labels of one operand with its ellipsis written out, so that there is one for each axis.
static tide_status spread(const tide_node *node, const char *equation, int32_t rank, term *t, tide_error *err) {
    const int32_t n_unnamed = rank - (t->n - t->has_ellipsis);
    if (n_unnamed < 0 || (n_unnamed > 0 && !t->has_ellipsis))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "equation '%s': a term has %d labels, its operand rank %d",
                            equation, t->n - t->has_ellipsis, rank);
    term full = {.n = rank, .has_ellipsis = t->has_ellipsis};
    for (int32_t i = 0, k = 0; i < t->n; i++) {
        if (t->label[i] >= 0) full.label[k++] = t->label[i];
        for (int32_t u = 0; t->label[i] < 0 && u < n_unnamed; u++)
            full.label[k++] = (int8_t)(MAX_LABELS - n_unnamed + u);
    }
    *t = full;
    return TIDE_OK;
}

static tide_status meet(const tide_node *node, const char *equation, const tide_shape *s, const term *t,
                        int64_t *extent, tide_error *err) {
    for (int32_t i = 0; i < t->n; i++) {
        int64_t *e = &extent[t->label[i]];
        if (*e == -1 || *e == 1) *e = s->dims[i];
        if (s->dims[i] != *e && s->dims[i] != 1)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "equation '%s': a label is both %lld and %lld", equation,
                                (long long)*e, (long long)s->dims[i]);
    }
    return TIDE_OK;
}

/// Without an arrow: the ellipsis, then the letters that occur once, in the order of the alphabet.
static tide_status implied_output(const tide_node *node, const char *equation, const term *terms, size_t n, term *out,
                                  tide_error *err) {
    int times[N_LETTERS] = {0};
    *out = (term){0};
    for (size_t k = 0; k < n; k++) {
        for (int32_t i = 0; i < terms[k].n; i++)
            if (terms[k].label[i] >= 0) times[terms[k].label[i]]++; // no ellipsis is written out yet
        if (terms[k].has_ellipsis && !out->has_ellipsis) {
            out->has_ellipsis = true;
            out->label[out->n++] = -1;
        }
    }
    for (int c = 0; c < N_LETTERS; c++) {
        if (times[c] != 1) continue;
        if (out->n > TIDE_MAX_RANK) return bad_equation(node, equation, "the output has too many labels", err);
        out->label[out->n++] = (int8_t)c;
    }
    return TIDE_OK;
}

/// Labels of the output are of the inputs, each once, and the unnamed axes are among them.
static tide_status check_output(const tide_node *node, const char *equation, einsum *e, tide_error *err) {
    int32_t n_unnamed = 0;
    for (int c = N_LETTERS; c < MAX_LABELS; c++) n_unnamed += e->extent[c] >= 0;
    if (n_unnamed > 0 && !e->out.has_ellipsis)
        return bad_equation(node, equation, "the output has no '...', the operands have axes without names", err);
    const int32_t rank = e->out.n - e->out.has_ellipsis + n_unnamed;
    if (rank > TIDE_MAX_RANK) return bad_equation(node, equation, "the output has too many labels", err);
    TIDE_TRY(spread(node, equation, rank, &e->out, err));
    bool seen[MAX_LABELS] = {false};
    for (int32_t i = 0; i < e->out.n; i++) {
        const int8_t c = e->out.label[i];
        if (e->extent[c] < 0) return bad_equation(node, equation, "the output names a label that no operand has", err);
        if (seen[c]) return bad_equation(node, equation, "the output names a label twice", err);
        seen[c] = true;
    }
    return TIDE_OK;
}

static tide_status read_terms(const tide_node *node, const char *equation, size_t n_in, einsum *e, term *terms,
                              tide_error *err) {
    const char *at = equation;
    for (;; at++) {
        if (e->n_terms == n_in) return bad_equation(node, equation, "there are fewer operands than terms", err);
        TIDE_TRY(read_term(node, equation, &at, &terms[e->n_terms++], err));
        if (*at != ',') break;
    }
    if (e->n_terms != n_in) return bad_equation(node, equation, "there are more operands than terms", err);
    if (*at == '\0') return implied_output(node, equation, terms, n_in, &e->out, err);
    if (at[1] != '>') return bad_equation(node, equation, "'-' without '>'", err);
    at += 2;
    TIDE_TRY(read_term(node, equation, &at, &e->out, err));
    return *at == '\0' ? TIDE_OK : bad_equation(node, equation, "there is more than one output", err);
}

/// The loops: the labels of the output in its order, then the others.
static void lay_loops(einsum *e, const term *terms, const tide_operand *in) {
    int32_t loop_of[MAX_LABELS];
    for (int c = 0; c < MAX_LABELS; c++) loop_of[c] = -1;
    for (int32_t i = 0; i < e->out.n; i++) loop_of[e->out.label[i]] = e->n_loops++;
    e->n_out = e->n_loops;
    for (int c = 0; c < MAX_LABELS; c++) {
        if (e->extent[c] < 0) continue;
        if (loop_of[c] < 0) loop_of[c] = e->n_loops++;
        e->dims[loop_of[c]] = e->extent[c];
    }
    for (size_t k = 0; k < e->n_terms; k++) {
        int64_t strides[TIDE_MAX_RANK];
        tide_shape_strides(&in[k].shape, strides);
        for (int32_t i = 0; i < terms[k].n; i++) // a label that repeats walks the diagonal
            if (in[k].shape.dims[i] != 1) e->strides[k][loop_of[terms[k].label[i]]] += strides[i];
    }
}

static tide_status analyse(const tide_node *node, const tide_operand *in, size_t n_in, einsum *e, tide_error *err) {
    const char *equation = tide_node_attr_string(node, "equation", NULL);
    term terms[MAX_TERMS];
    *e = (einsum){0};
    if (equation == NULL) return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "attribute 'equation' is missing");
    if (n_in > MAX_TERMS)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "%zu operands; at most %d are served", n_in,
                            (int)MAX_TERMS);
    TIDE_TRY(read_terms(node, equation, n_in, e, terms, err));
    for (int c = 0; c < MAX_LABELS; c++) e->extent[c] = -1;
    for (size_t k = 0; k < n_in; k++) {
        TIDE_TRY(spread(node, equation, in[k].shape.rank, &terms[k], err));
        TIDE_TRY(meet(node, equation, &in[k].shape, &terms[k], e->extent, err));
    }
    TIDE_TRY(check_output(node, equation, e, err));
    lay_loops(e, terms, in);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    einsum e;
    int64_t dims[TIDE_MAX_RANK];
    if (x->in[0].dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    for (size_t i = 0; i < x->n_in; i++) {
        if (!tide_op_has_in(x, i)) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input %zu is left out", i);
        TIDE_TRY(tide_data_same_dtype(x, 0, i, err));
    }
    TIDE_TRY(analyse(x->node, x->in, x->n_in, &e, err));
    for (int32_t i = 0; i < e.out.n; i++) dims[i] = e.dims[i];
    return tide_op_set_out(x, 0, x->in[0].dtype, e.out.n, dims, err);
}

static double work(const tide_infer *x) {
    einsum e;
    if (analyse(x->node, x->in, x->n_in, &e, NULL) != TIDE_OK) return 0;
    double n = (double)e.n_terms;
    for (int32_t i = 0; i < e.n_loops; i++) n *= (double)e.dims[i];
    return n;
}

// ---- the loops ----

static int64_t row_length(const einsum *e) { return e->n_out > 0 ? e->dims[e->n_out - 1] : 1; }

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    einsum e, *kept;
    size_t bytes = 0;
    TIDE_TRY(analyse(x->node, x->in, x->n_in, &e, err));
    if (tide_op_numel(&x->out[0].shape) != 0 && !tide_mul_size((size_t)row_length(&e), sizeof(double), &bytes))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "a row of the output is too long");
    TIDE_TRY(TIDE_OP_NEW(&kept, x->node, err));
    *kept = e;
    k->state = kept;
    k->workspace_bytes = bytes;
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

/// row[0..n) += the product of the terms, each from `at` on with its own step.
typedef void (*add_fn)(void *row, int64_t n, size_t n_terms, const void *const *at, const int64_t *step);
typedef void (*store_fn)(void *out, const void *row, int64_t n);

#define DEFINE_ROWS(sfx, S, C, SUM_T)                                                                                  \
    static void add_##sfx(void *row, int64_t n, size_t n_terms, const void *const *at, const int64_t *step) {          \
        SUM_T *const r = row;                                                                                          \
        const S *const a = at[0];                                                                                      \
        if (n_terms == 2) {                                                                                            \
            const S *const b = at[1];                                                                                  \
            for (int64_t j = 0; j < n; j++)                                                                            \
                r[j] += (SUM_T)TIDE_LOAD_##sfx(a[j * step[0]]) * (SUM_T)TIDE_LOAD_##sfx(b[j * step[1]]);               \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            SUM_T v = (SUM_T)TIDE_LOAD_##sfx(a[j * step[0]]);                                                          \
            for (size_t k = 1; k < n_terms; k++) v *= (SUM_T)TIDE_LOAD_##sfx(((const S *)at[k])[j * step[k]]);         \
            r[j] += v;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void store_##sfx(void *out, const void *row, int64_t n) {                                                   \
        S *const o = out;                                                                                              \
        const SUM_T *const r = row;                                                                                    \
        for (int64_t j = 0; j < n; j++) o[j] = TIDE_STORE_##sfx((C)r[j]);                                              \
    }
#define XX(DT, sfx, S, C) DEFINE_ROWS(sfx, S, C, double)
TIDE_TYPES_FLOAT(XX)
#undef XX
#define XX(DT, sfx, S, C) DEFINE_ROWS(sfx, S, C, uint64_t)
TIDE_TYPES_INT(XX)
#undef XX

static const struct {
    add_fn add;
    store_fn store;
} rows[TIDE_DTYPE_LIMIT] = {
#define XX(DT, sfx, S, C) [TIDE_##DT] = {add_##sfx, store_##sfx},
    TIDE_TYPES_NUMERIC(XX)
#undef XX
};

/// Step the loops [begin, end) of `index`, and with them `at`, in elements. @return false past the last
static bool step_loops(const einsum *e, int32_t begin, int32_t end, int64_t *index, int64_t *at) {
    for (int32_t d = end - 1; d >= begin; d--) {
        const bool wraps = ++index[d] == e->dims[d];
        for (size_t k = 0; k < e->n_terms; k++)
            at[k] += wraps ? -(e->dims[d] - 1) * e->strides[k][d] : e->strides[k][d];
        if (!wraps) return true;
        index[d] = 0;
    }
    return false;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const einsum *e = k->state;
    const tide_dtype dtype = a->in[0].dtype;
    const size_t elem = tide_dtype_size(dtype);
    const int64_t n = row_length(e), n_rows = n > 0 ? tide_op_numel(&a->out[0].shape) / n : 0;
    const int32_t last = e->n_out - 1;
    int64_t index[MAX_LABELS] = {0}, at[MAX_TERMS] = {0}, step[MAX_TERMS] = {0};
    bool empty = false;
    (void)err;
    for (size_t t = 0; t < e->n_terms && last >= 0; t++) step[t] = e->strides[t][last];
    for (int32_t d = 0; d < e->n_loops; d++) empty = empty || e->dims[d] == 0;
    if (empty && a->out[0].size_bytes != 0) memset(a->out[0].data, 0, a->out[0].size_bytes);
    for (int64_t r = 0; r < n_rows && !empty; r++) {
        memset(a->workspace, 0, (size_t)n * sizeof(double));
        do {
            const void *from[MAX_TERMS];
            for (size_t t = 0; t < e->n_terms; t++) from[t] = tide_data_const_at(a->in[t].data, at[t], elem);
            rows[dtype].add(a->workspace, n, e->n_terms, from, step);
        } while (step_loops(e, e->n_out, e->n_loops, index, at));
        rows[dtype].store(tide_data_at(a->out[0].data, r * n, elem), a->workspace, n);
        step_loops(e, 0, last, index, at);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_einsum = {.name = "Einsum",
                                    .domain = "",
                                    .since = 12,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "equation")),
                                    .min_inputs = 1,
                                    .max_inputs = 0,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = infer,
                                    .work = work,
                                    .prepare = prepare,
                                    .destroy = destroy,
                                    .run = run};
