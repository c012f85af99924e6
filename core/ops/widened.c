// SPDX-License-Identifier: MIT
//
// Operators on 16-bit floats by their float32 kernels. See widened.h.
//
//     workspace   | each input that is converted | each output that is | workspace of the kernel |      as a whole
#include "core/ops/widened.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/ops/op_list.h"
#include "core/ops/ops.h"
#include "core/ops/quant_cuts.h"
#include "core/ops/quant_rows.h"
#include "core/ops/quantised.h"

enum { ALIGN = 64, MAX_OPERANDS = 16 };

extern const tide_op_def tide_op_widened;

// ---- which nodes ----

static bool is_resize(const tide_op_def *def) {
    return def == &tide_op_resize_10 || def == &tide_op_resize_11 || def == &tide_op_upsample_7 ||
           def == &tide_op_upsample_9;
}

/// A Resize moves elements of any type, and calculates with float32. A DequantizeLinear has the type of its scale.
static bool takes(const tide_node *node, const tide_op_note *note, tide_dtype dtype) {
    if (node->def == &tide_op_dequantize_linear) return false;
    if (is_resize(node->def) && strcmp(tide_node_attr_string(node, "mode", "nearest"), "nearest") != 0) return false;
    return (note->types >> dtype & 1) != 0;
}

void tide_op_widen(tide_node *node, const tide_graph *g) {
    const tide_op_note *note = node->def != NULL ? tide_op_note_of(node->def) : NULL;
    if (note == NULL || node->n_inputs > MAX_OPERANDS || node->n_outputs > MAX_OPERANDS) return;
    const bool dequantises = node->def == &tide_op_dequantize_linear;
    const size_t typed = dequantises ? 1 : note->typed_input;
    if (typed >= node->n_inputs || node->inputs[typed] == TIDE_NO_VALUE) return;
    const tide_dtype dtype = g->values[node->inputs[typed]].dtype;
    const bool takes_f32 = dequantises || (note->types >> TIDE_F32 & 1) != 0;
    if (!tide_is_narrow(dtype) || takes(node, note, dtype) || !takes_f32) return;
    node->narrow = node->def;
    node->def = &tide_op_widened;
}

uint32_t tide_op_types_served(const tide_op_note *note) {
    const uint32_t narrow = 1u << TIDE_F16 | 1u << TIDE_BF16;
    return note->types | ((note->types >> TIDE_F32 & 1) != 0 ? narrow : 0);
}

/// Inputs that may be float32 beside 16-bit floats: parameters that have a type of their own.
static uint32_t own_types(const tide_op_def *def) {
    if (is_resize(def)) return 6u; // where a part is taken, and how it is scaled
    return def == &tide_op_batch_norm                                          ? 0x1eu
           : def == &tide_op_layer_norm                                        ? 6u
           : def == &tide_op_rms_norm || def == &tide_op_simplified_layer_norm ? 2u
                                                                               : 0;
}

/// Outputs that stay float32: mean and deviation.
static uint32_t stays_float(const tide_op_def *def) {
    if (def == &tide_op_simplified_layer_norm) return 2u;
    return def == &tide_op_layer_norm || def == &tide_op_skip_layer_norm || def == &tide_op_skip_rms_norm ? 6u : 0;
}

// ---- the operator as it sees itself ----

static tide_node inner_node(const tide_node *node) {
    TIDE_ASSERT(node->narrow != NULL);
    tide_node n = *node;
    n.def = node->narrow;
    n.narrow = NULL;
    return n;
}

/// `wide` [n] becomes the operands as float32 where they are narrow; *dtype the type of the first of these.
static void widen(const tide_operand *in, size_t n, tide_operand *wide, tide_dtype *dtype) {
    *dtype = TIDE_DTYPE_UNDEFINED;
    for (size_t i = 0; i < n; i++) {
        wide[i] = in[i];
        if (!tide_is_narrow(in[i].dtype)) continue;
        if (*dtype == TIDE_DTYPE_UNDEFINED) *dtype = in[i].dtype;
        wide[i].dtype = TIDE_F32;
        wide[i].size_bytes = (size_t)tide_op_numel(&in[i].shape) * sizeof(float);
        wide[i].data = NULL;
    }
}

static tide_status check_types(const tide_infer *x, tide_dtype dtype, tide_error *err) {
    const uint32_t own = own_types(x->node->narrow);
    for (size_t i = 0; i < x->n_in; i++) {
        const tide_dtype is = x->in[i].dtype;
        const bool is_float = is == TIDE_F32 || is == TIDE_F64 || tide_is_narrow(is);
        if (!is_float || is == dtype || (is == TIDE_F32 && (own >> i & 1) != 0)) continue;
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input %zu is %s beside inputs of %s", i,
                            tide_dtype_name(is), tide_dtype_name(dtype));
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_node node = inner_node(x->node);
    tide_operand wide[MAX_OPERANDS];
    tide_dtype dtype;
    TIDE_ASSERT(x->n_in <= MAX_OPERANDS);
    widen(x->in, x->n_in, wide, &dtype);
    TIDE_TRY(check_types(x, dtype, err));
    tide_infer inner = *x;
    inner.node = &node;
    inner.in = wide;
    TIDE_TRY(node.def->infer(&inner, err));
    for (size_t k = 0; k < x->n_out; k++) {
        if (x->out[k].dtype == TIDE_F32 && (stays_float(node.def) >> k & 1) == 0) x->out[k].dtype = dtype;
    }
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    const tide_node node = inner_node(x->node);
    tide_operand wide[MAX_OPERANDS];
    tide_dtype dtype;
    widen(x->in, x->n_in, wide, &dtype);
    tide_infer inner = *x;
    inner.node = &node;
    inner.in = wide;
    return node.def->work != NULL ? node.def->work(&inner) : 0;
}

/// The output may lie where an input of the same shape does, if it is written once that was read: as a whole, or tile
/// by tile where the kernel itself may.
static bool overwrites(const tide_infer *x, size_t in_i) {
    return (x->node->narrow->inplace_inputs >> in_i & 1u) != 0 && x->n_out == 1 && tide_is_narrow(x->in[in_i].dtype) &&
           x->in[in_i].dtype == x->out[0].dtype && tide_shape_equal(&x->in[in_i].shape, &x->out[0].shape);
}

// ---- preparation ----

typedef struct widened_state {
    tide_node
        node; ///< of the kernel: the operator's, or tidemark.Quantised on it; shares all but `quant` with the graph's
    tide_kernel kernel;
    tide_quant *quant;                                ///< owned, of the node; NULL: as a whole
    size_t in_at[MAX_OPERANDS], out_at[MAX_OPERANDS]; ///< where converted operands lie in the workspace
    size_t kernel_at;
} widened_state;

static tide_status add_room(const tide_node *node, size_t *total, size_t size_bytes, size_t *at, tide_error *err) {
    *at = *total;
    uint64_t end;
    if (!tide_add_u64(*total, size_bytes, &end) || !tide_align_up(end, ALIGN, &end) || end > SIZE_MAX)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "its operands are too large as float32");
    *total = (size_t)end;
    return TIDE_OK;
}

static bool is_converted(const tide_operand *o) { return tide_is_narrow(o->dtype); }

/// Whether the operator can be cut, with all that is narrow in the tiles.
static bool can_cut(const tide_node *inner, const tide_prepare *x, const tide_operand *wide) {
    if (x->n_out != 1 || x->n_in > TIDE_CUT_MAX_INPUTS || !is_converted(&x->out[0])) return false;
    tide_operand out = x->out[0];
    tide_cut cut;
    out.dtype = TIDE_F32;
    const tide_infer whole = {.node = inner, .in = wide, .n_in = x->n_in, .out = &out, .n_out = 1};
    if (!tide_cut_make(inner->def, &whole, &cut)) return false;
    for (size_t i = 0; i < x->n_in; i++) {
        if (is_converted(&x->in[i]) && !cut.in[i].is_cut) return false;
    }
    return true;
}

static tide_status prepare_tiles(widened_state *s, const tide_prepare *x, tide_kernel *k, tide_error *err) {
    s->quant = tide_host_calloc(1, sizeof *s->quant + x->n_in * sizeof s->quant->in[0]);
    if (s->quant == NULL) return TIDE_NO_MEMORY(err, "for '%s'", x->node->name);
    const tide_quant_operand none = {.scale = TIDE_NO_VALUE, .zero = TIDE_NO_VALUE, .axis = -1};
    *s->quant = (tide_quant){.def = s->node.def, .n_inputs = x->n_in, .out_dtype = x->out[0].dtype, .out = none};
    for (size_t i = 0; i < x->n_in; i++) s->quant->in[i] = none;
    s->node.quant = s->quant;
    s->node.def = &tide_op_quantised;
    s->kernel = (tide_kernel){.def = &tide_op_quantised, .node = &s->node};
    tide_prepare tiles = *x;
    tiles.node = &s->node;
    TIDE_TRY(tide_op_quantised.prepare(&tiles, &s->kernel, err));
    k->workspace_bytes = s->kernel.workspace_bytes;
    return TIDE_OK;
}

static tide_status prepare_whole(widened_state *s, const tide_prepare *x, const tide_operand *wide, tide_kernel *k,
                                 tide_error *err) {
    tide_operand out[MAX_OPERANDS];
    tide_dtype dtype;
    widen(x->out, x->n_out, out, &dtype);
    s->kernel = (tide_kernel){.def = s->node.def, .node = &s->node};
    const tide_prepare inner = {.node = &s->node, .in = wide, .n_in = x->n_in, .out = out, .n_out = x->n_out};
    if (s->node.def->prepare != NULL) TIDE_TRY(s->node.def->prepare(&inner, &s->kernel, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < x->n_in; i++) {
        if (is_converted(&x->in[i])) st = add_room(x->node, &k->workspace_bytes, wide[i].size_bytes, &s->in_at[i], err);
    }
    for (size_t i = 0; st == TIDE_OK && i < x->n_out; i++) {
        if (is_converted(&x->out[i]))
            st = add_room(x->node, &k->workspace_bytes, out[i].size_bytes, &s->out_at[i], err);
    }
    if (st == TIDE_OK) st = add_room(x->node, &k->workspace_bytes, s->kernel.workspace_bytes, &s->kernel_at, err);
    if (st != TIDE_OK && s->node.def->destroy != NULL) s->node.def->destroy(&s->kernel);
    return st;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    widened_state *s;
    tide_operand wide[MAX_OPERANDS];
    tide_dtype dtype;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    s->node = inner_node(x->node);
    widen(x->in, x->n_in, wide, &dtype);
    const tide_status st = can_cut(&s->node, x, wide) ? prepare_tiles(s, x, k, err) : prepare_whole(s, x, wide, k, err);
    if (st != TIDE_OK) {
        tide_host_free(s->quant);
        tide_host_free(s);
        return st;
    }
    k->state = s;
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    widened_state *s = k->state;
    if (s == NULL) return;
    if (s->kernel.def->destroy != NULL) s->kernel.def->destroy(&s->kernel);
    tide_host_free(s->quant);
    tide_host_free(s);
    k->state = NULL;
}

static tide_status exec_create(const tide_kernel *k, void **exec, tide_error *err) {
    const widened_state *s = k->state;
    *exec = NULL;
    return s->kernel.def->exec_create != NULL ? s->kernel.def->exec_create(&s->kernel, exec, err) : TIDE_OK;
}

static void exec_destroy(const tide_kernel *k, void *exec) {
    const widened_state *s = k->state;
    if (s->kernel.def->exec_destroy != NULL) s->kernel.def->exec_destroy(&s->kernel, exec);
}

// ---- a run ----

static tide_status run_whole(const widened_state *s, const tide_kernel_args *a, tide_error *err) {
    tide_operand in[MAX_OPERANDS], out[MAX_OPERANDS];
    tide_dtype unused;
    char *const workspace = a->workspace;
    widen(a->in, a->n_in, in, &unused);
    widen(a->out, a->n_out, out, &unused);
    for (size_t i = 0; i < a->n_in; i++) {
        if (!is_converted(&a->in[i]) || in[i].size_bytes == 0) continue;
        in[i].data = workspace + s->in_at[i];
        tide_widen_row(a->in[i].dtype, in[i].data, a->in[i].data, tide_op_numel(&in[i].shape));
    }
    for (size_t i = 0; i < a->n_out; i++) {
        if (is_converted(&a->out[i]) && out[i].size_bytes > 0) out[i].data = workspace + s->out_at[i];
    }
    const tide_kernel_args inner = {.in = in,
                                    .n_in = a->n_in,
                                    .out = out,
                                    .n_out = a->n_out,
                                    .exec = a->exec,
                                    .workspace = s->kernel.workspace_bytes > 0 ? workspace + s->kernel_at : NULL};
    TIDE_TRY(s->kernel.def->run(&s->kernel, &inner, err));
    for (size_t i = 0; i < a->n_out; i++) {
        if (is_converted(&a->out[i]) && out[i].size_bytes > 0)
            tide_narrow_row(a->out[i].dtype, a->out[i].data, out[i].data, tide_op_numel(&out[i].shape));
    }
    return TIDE_OK;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const widened_state *s = k->state;
    return s->quant != NULL ? tide_op_quantised.run(&s->kernel, a, err) : run_whole(s, a, err);
}

const tide_op_def tide_op_widened = {
    .domain = "tidemark.widened",
    .name = "Widened",
    .since = 1,
    .inplace_inputs = UINT32_MAX,
    .min_inputs = 1,
    .max_inputs = 0,
    .min_outputs = 1,
    .max_outputs = 0,
    .infer = infer,
    .overwrites = overwrites,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .exec_create = exec_create,
    .exec_destroy = exec_destroy,
    .run = run,
};
