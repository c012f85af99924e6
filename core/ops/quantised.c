// SPDX-License-Identifier: MIT
//
// tidemark.Quantised: any operator that can be cut (quant_cuts.h), with operands that are quantised. The node keeps the
// name and attributes of the operator; node->quant says what it is and which operands have a scale.
//
// The kernel of the operator is prepared for one tile. A run goes through all tiles: it dequantises a part of each
// operand into the scratch, runs the kernel there and quantises what it made. A part is made again only where another
// one is wanted, so that the weights of a convolution are read once for each tile of them. Real operands are used where
// they lie, if the tile is a stretch of them.
//
//     workspace   | tile of each operand that is cut | tile of the output | workspace of the kernel |
//
// Where each number depends on one number alone, and that has 8 bits, there are 256 of them: the kernel runs on these
// and the tensor is looked up in the table that it makes.
#include <stdint.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/ops/op_list.h"
#include "core/ops/quant_cuts.h"
#include "core/ops/quant_rows.h"
#include "core/ops/quantised.h"

enum { ALIGN = 64, N_BYTES = 256 };

typedef struct quantised_state {
    tide_cut cut;
    tide_node node;     ///< of the operator on a tile; shares all but `attrs` with the node of the graph
    tide_attr *attrs;   ///< [node.n_attrs] owned, but not what they hold: those of the node, then those of a tile alone
    tide_kernel kernel; ///< of the operator, for one tile
    bool by_table;      ///< 8 bits by 8 bits
    size_t n_in;        ///< of the operator
    size_t at[TIDE_CUT_MAX_INPUTS]; ///< where the tile of an input lies in the workspace
    size_t out_at, kernel_at;
} quantised_state;

static bool is_quantised(const tide_quant_operand *q) { return q->scale != TIDE_NO_VALUE; }

/// Whether an operand is float32 in its tile alone: quantised, or of 16-bit floats (widened.c).
static bool is_converted(const tide_quant_operand *q, tide_dtype dtype) {
    return is_quantised(q) || tide_is_narrow(dtype);
}

// ---- the operator as it sees itself ----

/// The node with the row and the inputs of the operator.
static tide_node inner_node(const tide_node *node) {
    TIDE_ASSERT(node->quant != NULL && node->quant->n_inputs <= node->n_inputs);
    tide_node n = *node;
    n.def = node->quant->def;
    n.n_inputs = node->quant->n_inputs;
    n.quant = NULL;
    return n;
}

/// `real` [n_inputs] becomes the operands `in` as real numbers.
static void make_real(const tide_quant *q, const tide_operand *in, tide_operand *real) {
    for (size_t i = 0; i < q->n_inputs; i++) {
        real[i] = in[i];
        if (!is_converted(&q->in[i], in[i].dtype)) continue;
        real[i].dtype = TIDE_F32;
        real[i].size_bytes = (size_t)tide_op_numel(&in[i].shape) * sizeof(float);
        real[i].data = NULL;
    }
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_quant *q = x->node->quant;
    const tide_node node = inner_node(x->node);
    tide_operand real[TIDE_CUT_MAX_INPUTS];
    TIDE_ASSERT(q->n_inputs <= TIDE_CUT_MAX_INPUTS);
    make_real(q, x->in, real);
    tide_infer inner = *x;
    inner.node = &node;
    inner.in = real;
    inner.n_in = q->n_inputs;
    TIDE_TRY(q->def->infer(&inner, err));
    if (is_quantised(&q->out)) x->out[0].dtype = q->out_dtype;
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    const tide_quant *q = x->node->quant;
    const tide_node node = inner_node(x->node);
    tide_operand real[TIDE_CUT_MAX_INPUTS];
    make_real(q, x->in, real);
    tide_infer inner = *x;
    inner.node = &node;
    inner.in = real;
    inner.n_in = q->n_inputs;
    return q->def->work != NULL ? q->def->work(&inner) : 0;
}

/// The output may lie where an input of the same shape does: a tile is read before it is written, and what is written
/// is no wider than what was read.
static bool overwrites(const tide_infer *x, size_t in_i) {
    const tide_quant *q = x->node->quant;
    if (in_i >= q->n_inputs || (q->def->inplace_inputs >> in_i & 1u) == 0) return false;
    return tide_shape_equal(&x->in[in_i].shape, &x->out[0].shape) &&
           tide_dtype_size(x->out[0].dtype) <= tide_dtype_size(x->in[in_i].dtype);
}

// ---- preparation ----

static tide_status add_room(const tide_node *node, size_t *total, size_t size_bytes, size_t *at, tide_error *err) {
    *at = *total;
    uint64_t end;
    if (tide_add_u64(*total, size_bytes, &end) && tide_align_up(end, ALIGN, &end) && end <= SIZE_MAX) {
        *total = (size_t)end;
        return TIDE_OK;
    }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "a tile is too large");
}

static size_t tile_bytes(const tide_shape *tile) { return (size_t)tide_op_numel(tile) * sizeof(float); }

/// The attributes of the operator, with those that a tile has of its own behind them.
static tide_status make_attrs(quantised_state *s, const tide_node *node, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&s->attrs, node->n_attrs + 2, err, "for the attributes of '%s'", node->name));
    static char pads[] = "pads", group[] = "group";
    size_t n = 0;
    for (size_t i = 0; i < node->n_attrs; i++) {
        const char *name = node->attrs[i].name;
        if (s->cut.n_pads > 0 && (strcmp(name, "pads") == 0 || strcmp(name, "auto_pad") == 0)) continue;
        if (s->cut.group > 0 && strcmp(name, "group") == 0) continue;
        s->attrs[n++] = node->attrs[i];
    }
    if (s->cut.n_pads > 0)
        s->attrs[n++] = (tide_attr){.name = pads, .type = TIDE_ATTR_INTS, .n = s->cut.n_pads, .ints = s->cut.pads};
    if (s->cut.group > 0) s->attrs[n++] = (tide_attr){.name = group, .type = TIDE_ATTR_INT, .i = s->cut.group};
    s->node.attrs = s->attrs;
    s->node.n_attrs = n;
    return TIDE_OK;
}

/// 8 bits by 8 bits: the tile is all numbers that there are.
static void use_table(quantised_state *s, const tide_quant *q, const tide_prepare *x) {
    s->by_table = s->cut.by_number && is_quantised(&q->in[0]) && q->in[0].axis < 0 && tide_is_8_bit(x->in[0].dtype);
    if (!s->by_table) return;
    const tide_shape all = {1, {N_BYTES}};
    s->cut.in[0].tile = all;
    s->cut.out.tile = all;
}

static tide_operand tile_operand(const tide_cut_operand *c) {
    return (tide_operand){.dtype = TIDE_F32, .shape = c->tile, .size_bytes = tile_bytes(&c->tile)};
}

static tide_status lay_out(quantised_state *s, const tide_node *node, size_t *total, tide_error *err) {
    for (size_t i = 0; i < s->n_in; i++)
        if (s->cut.in[i].is_cut) TIDE_TRY(add_room(node, total, tile_bytes(&s->cut.in[i].tile), &s->at[i], err));
    TIDE_TRY(add_room(node, total, tile_bytes(&s->cut.out.tile), &s->out_at, err));
    return add_room(node, total, s->kernel.workspace_bytes, &s->kernel_at, err);
}

static tide_status fill(quantised_state *s, const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const tide_quant *q = x->node->quant;
    tide_operand real[TIDE_CUT_MAX_INPUTS], out = x->out[0];
    s->node = inner_node(x->node);
    s->n_in = q->n_inputs;
    make_real(q, x->in, real);
    out.dtype = TIDE_F32;
    const tide_infer whole = {.node = &s->node, .in = real, .n_in = s->n_in, .out = &out, .n_out = 1};
    if (!tide_cut_make(q->def, &whole, &s->cut))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "it cannot be cut for quantised operands");
    use_table(s, q, x);
    TIDE_TRY(make_attrs(s, x->node, err));
    for (size_t i = 0; i < s->n_in; i++) {
        if (!s->cut.in[i].is_cut) continue;
        real[i] = tile_operand(&s->cut.in[i]);
    }
    out = tile_operand(&s->cut.out);
    s->kernel = (tide_kernel){.def = q->def, .node = &s->node};
    const tide_prepare tile = {.node = &s->node, .in = real, .n_in = s->n_in, .out = &out, .n_out = 1};
    if (q->def->prepare != NULL) TIDE_TRY(q->def->prepare(&tile, &s->kernel, err));
    const tide_status st = lay_out(s, x->node, &k->workspace_bytes, err);
    if (st != TIDE_OK && q->def->destroy != NULL) q->def->destroy(&s->kernel);
    return st;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    quantised_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    const tide_status st = fill(s, x, k, err);
    if (st != TIDE_OK) {
        tide_host_free(s->attrs);
        tide_host_free(s);
        return st;
    }
    k->state = s;
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    quantised_state *s = k->state;
    if (s == NULL) return;
    if (s->kernel.def->destroy != NULL) s->kernel.def->destroy(&s->kernel);
    tide_host_free(s->attrs);
    tide_host_free(s);
    k->state = NULL;
}

static tide_status exec_create(const tide_kernel *k, void **exec, tide_error *err) {
    const quantised_state *s = k->state;
    *exec = NULL;
    return s != NULL && s->kernel.def->exec_create != NULL ? s->kernel.def->exec_create(&s->kernel, exec, err)
                                                           : TIDE_OK;
}

static void exec_destroy(const tide_kernel *k, void *exec) {
    const quantised_state *s = k->state;
    if (s != NULL && s->kernel.def->exec_destroy != NULL) s->kernel.def->exec_destroy(&s->kernel, exec);
}

// ---- tiles ----

/// Scales and zero points of an operand, while running.
typedef struct parameters {
    const float *scale;
    const tide_operand *zero; ///< NULL: 0
} parameters;

static parameters parameters_of(const tide_quant_operand *q, const tide_kernel_args *a) {
    if (!is_quantised(q)) return (parameters){0};
    return (parameters){a->in[q->scale].data, q->zero != TIDE_NO_VALUE ? &a->in[q->zero] : NULL};
}

static int64_t zero_at(const parameters *p, int64_t i) {
    return p->zero != NULL ? tide_data_load_i64(p->zero->dtype, p->zero->data, i) : 0;
}

/// The part of a tile that its tensor has, as stretches that lie without gaps in both. A stretch has one index on
/// `axis`, but where that is the last one: then it goes along it.
typedef struct walk {
    const tide_cut_operand *c;
    const int64_t *start;                         ///< [rank] of the tile in the tensor
    int32_t outer;                                ///< axes before this one are walked
    int64_t lo[TIDE_MAX_RANK], hi[TIDE_MAX_RANK]; ///< [rank] of the tile: the part that is there
    int64_t index[TIDE_MAX_RANK];                 ///< [outer]
    int64_t n;                                    ///< elements of a stretch
    bool is_all;                                  ///< all of the tile is there
} walk;

static bool walk_begin(walk *w, const tide_cut_operand *c, const int64_t *start, int32_t axis) {
    *w = (walk){.c = c, .start = start, .n = 1, .is_all = true};
    bool is_dense = true; // what is behind this axis is a stretch in both
    w->outer = c->shape.rank;
    for (int32_t d = c->shape.rank - 1; d >= 0; d--) {
        const int64_t tile = c->tile.dims[d], n = c->shape.dims[d];
        w->lo[d] = start[d] < 0 ? -start[d] : 0;
        w->hi[d] = n - start[d] < tile ? n - start[d] : tile;
        if (w->hi[d] <= w->lo[d]) return false;
        w->is_all = w->is_all && w->lo[d] == 0 && w->hi[d] == tile;
        w->index[d] = w->lo[d];
        const bool is_last = d == c->shape.rank - 1;
        if (!is_dense || (d <= axis && !is_last)) {
            is_dense = false;
            continue;
        }
        w->n *= w->hi[d] - w->lo[d];
        w->outer = d;
        is_dense = tile == n && w->lo[d] == 0 && w->hi[d] == n;
    }
    return true;
}

/// Where the present stretch begins in the tensor and in the tile, in elements.
static void walk_at(const walk *w, int64_t *in_tensor, int64_t *in_tile) {
    *in_tensor = *in_tile = 0;
    for (int32_t d = 0; d < w->c->shape.rank; d++) {
        const int64_t i = d < w->outer ? w->index[d] : w->lo[d];
        *in_tensor = *in_tensor * w->c->shape.dims[d] + w->start[d] + i;
        *in_tile = *in_tile * w->c->tile.dims[d] + i;
    }
}

static bool walk_next(walk *w) {
    for (int32_t d = w->outer - 1; d >= 0; d--) {
        if (++w->index[d] < w->hi[d]) return true;
        w->index[d] = w->lo[d];
    }
    return false;
}

/// A tile of an operand as real numbers.
static void gather(const tide_operand *from, const tide_cut_operand *c, const int64_t *start, int32_t axis,
                   const parameters *p, float *to) {
    walk w;
    const bool any = walk_begin(&w, c, start, axis);
    if (!any || !w.is_all) memset(to, 0, tile_bytes(&c->tile));
    if (!any) return;
    const float scale = p->scale != NULL && axis < 0 ? p->scale[0] : 0;
    const int64_t zero = p->scale != NULL && axis < 0 ? zero_at(p, 0) : 0;
    do {
        int64_t at, tile_at;
        walk_at(&w, &at, &tile_at);
        const void *src = tide_data_const_at(from->data, at, tide_dtype_size(from->dtype));
        if (p->scale == NULL && tide_is_narrow(from->dtype)) {
            tide_widen_row(from->dtype, to + tile_at, src, w.n);
        } else if (p->scale == NULL) {
            memcpy(to + tile_at, src, (size_t)w.n * sizeof *to);
        } else if (axis < 0) {
            tide_dequantize_row(from->dtype, to + tile_at, src, w.n, scale, zero);
        } else if (axis < w.outer) {
            const int64_t k = start[axis] + w.index[axis];
            tide_dequantize_row(from->dtype, to + tile_at, src, w.n, p->scale[k], zero_at(p, k));
        } else {
            const int64_t k = start[axis] + w.lo[axis];
            tide_dequantize_columns(from->dtype, to + tile_at, src, w.n, p->scale + k,
                                    p->zero != NULL ? tide_data_const_at(p->zero->data, k, tide_dtype_size(from->dtype))
                                                    : NULL);
        }
    } while (walk_next(&w));
}

/// What a tile has of the output.
static void scatter(const tide_operand *to, const tide_cut_operand *c, const int64_t *start, const parameters *p,
                    const float *from) {
    walk w;
    if (!walk_begin(&w, c, start, -1)) return;
    const float scale = p->scale != NULL ? p->scale[0] : 0;
    const int64_t zero = p->scale != NULL ? zero_at(p, 0) : 0;
    do {
        int64_t at, tile_at;
        walk_at(&w, &at, &tile_at);
        void *dst = tide_data_at(to->data, at, tide_dtype_size(to->dtype));
        if (p->scale == NULL && tide_is_narrow(to->dtype))
            tide_narrow_row(to->dtype, dst, from + tile_at, w.n);
        else if (p->scale == NULL)
            memcpy(dst, from + tile_at, (size_t)w.n * sizeof *from);
        else
            tide_quantize_row(TIDE_F32, to->dtype, dst, from + tile_at, w.n, scale, zero);
    } while (walk_next(&w));
}

/// Where the tile lies in its tensor, if it is a stretch of it; NULL: it is none.
static void *stretch_of(const tide_operand *o, const tide_cut_operand *c, const int64_t *start) {
    walk w;
    int64_t at, tile_at;
    if (!walk_begin(&w, c, start, -1) || !w.is_all || w.n != tide_op_numel(&c->tile)) return NULL;
    walk_at(&w, &at, &tile_at);
    TIDE_ASSERT(tile_at == 0);
    return tide_data_at(o->data, at, tide_dtype_size(o->dtype));
}

static void start_of(const tide_cut *cut, const tide_cut_operand *c, const int64_t *index, int64_t *start) {
    for (int32_t d = 0; d < c->shape.rank; d++) start[d] = c->base[d];
    for (int32_t l = 0; l < cut->n_loops; l++)
        if (c->dim[l] >= 0) start[c->dim[l]] += index[l] * c->step[l];
}

// ---- a run ----

/// What a run works on.
typedef struct job {
    const quantised_state *s;
    const tide_quant *q;
    const tide_kernel_args *a;
    tide_operand in[TIDE_CUT_MAX_INPUTS], out;
    int64_t index[TIDE_CUT_MAX_LOOPS];
    int64_t last[TIDE_CUT_MAX_INPUTS][TIDE_MAX_RANK]; ///< where the tile that lies in the workspace begins
    bool is_there[TIDE_CUT_MAX_INPUTS];
    char *workspace;
} job;

static void load(job *j, size_t i) {
    const tide_cut_operand *c = &j->s->cut.in[i];
    if (!c->is_cut) return;
    int64_t start[TIDE_MAX_RANK] = {0};
    start_of(&j->s->cut, c, j->index, start);
    if (j->is_there[i] && memcmp(start, j->last[i], sizeof start) == 0) return;
    j->is_there[i] = true;
    memcpy(j->last[i], start, sizeof start);
    const tide_quant_operand *q = &j->q->in[i];
    void *stretch = is_converted(q, j->a->in[i].dtype) ? NULL : stretch_of(&j->a->in[i], c, start);
    j->in[i].data = stretch != NULL ? stretch : j->workspace + j->s->at[i];
    if (stretch != NULL) return;
    const parameters p = parameters_of(q, j->a);
    gather(&j->a->in[i], c, start, is_quantised(q) ? q->axis : -1, &p, j->in[i].data);
}

static tide_status run_kernel(const job *j, tide_error *err) {
    const quantised_state *s = j->s;
    const tide_kernel_args inner = {.in = j->in,
                                    .n_in = s->n_in,
                                    .out = &j->out,
                                    .n_out = 1,
                                    .exec = j->a->exec,
                                    .workspace = s->kernel.workspace_bytes > 0 ? j->workspace + s->kernel_at : NULL};
    return s->kernel.def->run(&s->kernel, &inner, err);
}

static tide_status run_tile(job *j, tide_error *err) {
    const quantised_state *s = j->s;
    const tide_operand *to = &j->a->out[0];
    const parameters p = parameters_of(&j->q->out, j->a);
    int64_t start[TIDE_MAX_RANK] = {0};
    for (size_t i = 0; i < s->n_in; i++) load(j, i);
    start_of(&s->cut, &s->cut.out, j->index, start);
    void *stretch = !is_converted(&j->q->out, to->dtype) ? stretch_of(to, &s->cut.out, start) : NULL;
    j->out.data = stretch != NULL ? stretch : j->workspace + s->out_at;
    TIDE_TRY(run_kernel(j, err));
    if (stretch == NULL) scatter(to, &s->cut.out, start, &p, j->out.data);
    return TIDE_OK;
}

static bool next_tile(const tide_cut *c, int64_t *index) {
    for (int32_t l = c->n_loops - 1; l >= 0; l--) {
        if (++index[l] < c->count[l]) return true;
        index[l] = 0;
    }
    return false;
}

/// The table has an entry for each byte, whether it has a sign or not.
static tide_status run_table(job *j, tide_error *err) {
    const tide_operand *in = &j->a->in[0], *out = &j->a->out[0];
    const parameters p = parameters_of(&j->q->in[0], j->a), to = parameters_of(&j->q->out, j->a);
    uint8_t all[N_BYTES], table[N_BYTES];
    for (int i = 0; i < N_BYTES; i++) all[i] = (uint8_t)i;
    j->in[0].data = j->workspace + j->s->at[0];
    j->out.data = j->workspace + j->s->out_at;
    tide_dequantize_row(in->dtype, j->in[0].data, all, N_BYTES, p.scale[0], zero_at(&p, 0));
    TIDE_TRY(run_kernel(j, err));
    const uint8_t *x = in->data;
    const int64_t n = tide_op_numel(&in->shape);
    if (to.scale == NULL) {
        const float *reals = j->out.data;
        float *y = out->data;
        for (int64_t i = 0; i < n; i++) y[i] = reals[x[i]];
        return TIDE_OK;
    }
    tide_quantize_row(TIDE_F32, out->dtype, table, j->out.data, N_BYTES, to.scale[0], zero_at(&to, 0));
    uint8_t *y = out->data;
    for (int64_t i = 0; i < n; i++) y[i] = table[x[i]];
    return TIDE_OK;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const quantised_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    job j = {.s = s, .q = k->node->quant, .a = a, .workspace = a->workspace};
    for (size_t i = 0; i < s->n_in; i++) {
        j.in[i] = a->in[i];
        if (s->cut.in[i].is_cut) j.in[i] = tile_operand(&s->cut.in[i]);
    }
    j.out = tile_operand(&s->cut.out);
    if (s->by_table) return run_table(&j, err);
    do TIDE_TRY(run_tile(&j, err));
    while (next_tile(&s->cut, j.index));
    return TIDE_OK;
}

const tide_op_def tide_op_quantised = {
    .domain = TIDE_QUANTISED_DOMAIN,
    .name = "Quantised",
    .since = 1,
    .inplace_inputs = 3u,
    .min_inputs = 1,
    .max_inputs = 0,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .overwrites = overwrites,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .exec_create = exec_create,
    .exec_destroy = exec_destroy,
    .run = run,
};
