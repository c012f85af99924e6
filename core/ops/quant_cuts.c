// SPDX-License-Identifier: MIT
//
// The rules by which operators are cut, and the table of operators that have one. See quant_cuts.h.
#include "core/ops/quant_cuts.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/ops/op_list.h"

enum {
    TILE_ELEMENTS = 2048,         ///< of an elementwise operator: 8 KiB of each operand
    PLANE_ELEMENTS = 8192,        ///< of operators that take channels one by one
    WEIGHT_ELEMENTS = 16384,      ///< of the weights of a product or a convolution: 64 KiB
    STRIP_ELEMENTS = 16384,       ///< of the input and output of one together, and of the windows that it lays out
    MIN_COLUMNS = 16,             ///< of a product: fewer leave vector registers empty
    MIN_FILTERS = 32,             ///< of a convolution that lays out its windows again for each tile of filters
    MIN_POSITIONS = 64,           ///< of a convolution: a product of fewer columns is slow
    MAX_PLANE_ELEMENTS = 1 << 20, ///< one channel that is larger is a tensor of its own
    SMALL_ELEMENTS = 1 << 18,     ///< tiles of up to so many together may be as large as the tensors
};

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t div_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// All of the tensor in one tile, until a loop moves it.
static void see(tide_cut_operand *o, const tide_shape *shape) {
    *o = (tide_cut_operand){.is_cut = true, .shape = *shape, .tile = *shape};
    memset(o->dim, -1, sizeof o->dim);
}

/// Loop `l` moves the operand by `step` on axis `dim`, where its tile has `extent`.
static void move(tide_cut_operand *o, int32_t l, int32_t dim, int64_t step, int64_t extent) {
    o->dim[l] = (int8_t)dim;
    o->step[l] = step;
    o->tile.dims[dim] = extent;
}

static int32_t add_loop(tide_cut *c, int64_t count) {
    TIDE_ASSERT(c->n_loops < TIDE_CUT_MAX_LOOPS && count > 0);
    c->count[c->n_loops] = count;
    return c->n_loops++;
}

/// Both see `shape`, and each of its axes before `end` is walked: the last of them in steps of `last_tile`, the others
/// one by one.
static bool walk_outer(tide_cut *c, const tide_shape *in, const tide_shape *out, int32_t end, int64_t last_tile) {
    see(&c->in[0], in);
    see(&c->out, out);
    for (int32_t d = 0; d < end; d++) {
        const int64_t tile = d == end - 1 ? last_tile : 1;
        if (tile >= in->dims[d]) continue;
        const int32_t l = add_loop(c, div_up(in->dims[d], tile));
        move(&c->in[0], l, d, tile, tile);
        move(&c->out, l, d, tile, tile);
    }
    return true;
}

// ---- one element by another ----

static void flatten(tide_cut_operand *o, int64_t n, int64_t tile, int32_t loop) {
    see(o, &(tide_shape){1, {n}});
    o->is_reshaped = true;
    move(o, loop, 0, tile, tile);
}

static bool cut_numbers(const tide_infer *x, tide_cut *c) {
    const int64_t n = tide_op_numel(&x->out[0].shape), tile = min_i64(n, TILE_ELEMENTS);
    const int32_t l = add_loop(c, div_up(n, tile));
    flatten(&c->in[0], n, tile, l);
    flatten(&c->out, n, tile, l);
    c->by_number = true;
    return true;
}

// ---- elements of several operands, with broadcasting ----

static bool is_one(const tide_operand *o) { return o->shape.rank <= 1 && tide_op_numel(&o->shape) == 1; }

/// Broadcast as numpy does it, and not as opset 1 or by a rule of the operator's own.
static bool is_numpy(const tide_infer *x) {
    tide_shape all = {0};
    if (x->n_in == 0 || x->n_in > TIDE_CUT_MAX_INPUTS) return false;
    for (size_t i = 0; i < x->n_in; i++) {
        tide_shape next;
        if (!tide_operand_present(&x->in[i]) || x->in[i].dtype != TIDE_F32) return false;
        if (tide_op_broadcast(x->node, &all, &x->in[i].shape, &next, NULL) != TIDE_OK) return false;
        all = next;
    }
    return tide_shape_equal(&all, &x->out[0].shape);
}

static bool cut_flat(const tide_infer *x, tide_cut *c) {
    const int64_t n = tide_op_numel(&x->out[0].shape), tile = min_i64(n, TILE_ELEMENTS);
    const int32_t l = add_loop(c, div_up(n, tile));
    for (size_t i = 0; i < x->n_in; i++) {
        flatten(&c->in[i], tide_op_numel(&x->in[i].shape), tile, l);
        if (!is_one(&x->in[i])) continue;
        c->in[i].tile.dims[0] = 1;
        c->in[i].dim[l] = -1;
    }
    flatten(&c->out, n, tile, l);
    return true;
}

static bool cut_elements(const tide_infer *x, tide_cut *c) {
    const tide_shape *out = &x->out[0].shape;
    if (x->node->opset < 7 || !is_numpy(x)) return false;
    bool is_flat = true;
    for (size_t i = 0; i < x->n_in; i++)
        is_flat = is_flat && (tide_shape_equal(&x->in[i].shape, out) || (is_one(&x->in[i]) && out->rank > 0));
    if (is_flat) return cut_flat(x, c);
    for (size_t i = 0; i < x->n_in; i++) see(&c->in[i], &x->in[i].shape);
    see(&c->out, out);
    // Whole inner axes as long as they fit, so that tiles are stretches of the output, one behind the other.
    int64_t tile[TIDE_MAX_RANK], inner = 1;
    for (int32_t d = out->rank - 1; d >= 0; inner *= tile[d--])
        tile[d] = min_i64(out->dims[d], max_i64(1, TILE_ELEMENTS / inner));
    for (int32_t d = 0; d < out->rank; d++) {
        if (tile[d] == out->dims[d]) continue;
        const int32_t l = add_loop(c, div_up(out->dims[d], tile[d]));
        move(&c->out, l, d, tile[d], tile[d]);
        for (size_t i = 0; i < x->n_in; i++) {
            const int32_t own = d - (out->rank - x->in[i].shape.rank);
            if (own >= 0 && x->in[i].shape.dims[own] != 1) move(&c->in[i], l, own, tile[d], tile[d]);
        }
    }
    return true;
}

// ---- rows, planes ----

/// What lies before the axis is independent: Softmax and its kin.
static bool cut_rows(const tide_infer *x, tide_cut *c) {
    const tide_shape *s = &x->in[0].shape;
    int32_t axis;
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", x->node->opset < 13 ? 1 : -1), s->rank, &axis,
                     NULL) != TIDE_OK)
        return false;
    const int64_t row = tide_op_count(s, axis, s->rank);
    return row <= MAX_PLANE_ELEMENTS && walk_outer(c, s, &x->out[0].shape, axis, max_i64(1, TILE_ELEMENTS / row));
}

/// Channels are independent: pools.
static bool cut_planes(const tide_infer *x, tide_cut *c) {
    const tide_shape *s = &x->in[0].shape;
    if (s->rank < 3) return false;
    const int64_t plane = tide_op_count(s, 2, s->rank);
    return plane <= MAX_PLANE_ELEMENTS &&
           walk_outer(c, s, &x->out[0].shape, 2, max_i64(1, PLANE_ELEMENTS / max_i64(1, plane)));
}

// ---- products ----

/// How many of `n` columns, each of `each` elements of the weights, are taken at once: `least`, if there are as many.
static int64_t columns_of(int64_t n, int64_t each, int64_t least) {
    if (n <= WEIGHT_ELEMENTS / each) return n;
    const int64_t fit = WEIGHT_ELEMENTS / each / MIN_COLUMNS * MIN_COLUMNS;
    const int64_t most = min_i64(n, max_i64(least, fit)), blocks = div_up(n, most);
    return min_i64(n, div_up(div_up(n, blocks), MIN_COLUMNS) * MIN_COLUMNS); // all about as large
}

/// How many of `n` rows, each of `each` elements of input and output, are taken at once.
static int64_t rows_of(int64_t n, int64_t each) {
    const int64_t most = min_i64(n, max_i64(1, STRIP_ELEMENTS / each));
    return div_up(n, div_up(n, most));
}

/// A matrix product of operands that are seen as [m, k] and [k, n], with these axes in them. -1: the operand does not
/// have it.
static void loop_product(tide_cut *c, int64_t m, int64_t k, int64_t n, const int32_t a[2], const int32_t b[2],
                         const int32_t out[2]) {
    const int64_t columns = columns_of(n, k, MIN_COLUMNS), rows = rows_of(m, k + columns);
    if (columns < n) {
        const int32_t l = add_loop(c, div_up(n, columns));
        move(&c->in[1], l, b[1], columns, columns);
        move(&c->out, l, out[1], columns, columns);
    }
    if (rows < m) {
        const int32_t l = add_loop(c, div_up(m, rows));
        move(&c->in[0], l, a[0], rows, rows);
        move(&c->out, l, out[0], rows, rows);
    }
}

/// Of the batch extents every matrix by itself; where B has none, A is one matrix.
static bool cut_matmul(const tide_infer *x, tide_cut *c) {
    tide_product p;
    const tide_shape *a = &x->in[0].shape, *b = &x->in[1].shape, *out = &x->out[0].shape;
    if (a->rank < 2 || b->rank < 2 || tide_op_product(x->node, a, b, &p, NULL) != TIDE_OK || p.k == 0) return false;
    see(&c->in[0], a);
    see(&c->in[1], b);
    see(&c->out, out);
    if (b->rank == 2) {
        const int64_t m = tide_op_count(a, 0, a->rank - 1);
        see(&c->in[0], &(tide_shape){2, {m, p.k}});
        see(&c->out, &(tide_shape){2, {m, p.n}});
        c->in[0].is_reshaped = a->rank != 2;
        loop_product(c, m, p.k, p.n, (int32_t[]){0, 1}, (int32_t[]){0, 1}, (int32_t[]){0, 1});
        return true;
    }
    for (int32_t d = 0; d < out->rank - 2; d++) {
        const int32_t in_a = d - (out->rank - a->rank), in_b = d - (out->rank - b->rank);
        if (out->dims[d] == 1) continue;
        const int32_t l = add_loop(c, out->dims[d]);
        move(&c->out, l, d, 1, 1);
        if (in_a >= 0 && a->dims[in_a] != 1) move(&c->in[0], l, in_a, 1, 1);
        if (in_b >= 0 && b->dims[in_b] != 1) move(&c->in[1], l, in_b, 1, 1);
    }
    if (c->n_loops > TIDE_CUT_MAX_LOOPS - 2) return false;
    loop_product(c, p.m, p.k, p.n, (int32_t[]){a->rank - 2, a->rank - 1}, (int32_t[]){b->rank - 2, b->rank - 1},
                 (int32_t[]){out->rank - 2, out->rank - 1});
    return true;
}

/// The rows and columns of C move with those of the output, where it has them.
static void move_c(tide_cut *c, const tide_shape *shape) {
    see(&c->in[2], shape);
    for (int32_t l = 0; l < c->n_loops; l++) {
        if (c->out.dim[l] < 0) continue;
        const int32_t own = c->out.dim[l] - (2 - shape->rank);
        if (own >= 0 && shape->dims[own] != 1) move(&c->in[2], l, own, c->out.step[l], c->out.tile.dims[c->out.dim[l]]);
    }
}

static bool cut_gemm(const tide_infer *x, tide_cut *c) {
    const bool trans_a = tide_node_attr_int(x->node, "transA", 0) != 0;
    const bool trans_b = tide_node_attr_int(x->node, "transB", 0) != 0;
    const tide_shape *a = &x->in[0].shape, *b = &x->in[1].shape, *out = &x->out[0].shape;
    const int64_t k = a->dims[trans_a ? 0 : 1];
    see(&c->in[0], a);
    see(&c->in[1], b);
    see(&c->out, out);
    loop_product(c, out->dims[0], k, out->dims[1], (int32_t[]){trans_a, !trans_a}, (int32_t[]){trans_b, !trans_b},
                 (int32_t[]){0, 1});
    if (x->n_in > 2 && tide_operand_present(&x->in[2])) move_c(c, &x->in[2].shape);
    return k > 0;
}

// ---- convolutions ----

/// Strips of rows: the first spatial axis is cut, and what the window reads past the rows of a strip is read twice. The
/// tile holds its own padding on that axis.
static void cut_strips(tide_cut *c, const tide_window *w, int64_t rows) {
    const int32_t l = add_loop(c, div_up(w->out[0], rows));
    move(&c->out, l, 2, rows, rows);
    move(&c->in[0], l, 2, rows * w->stride[0], (rows - 1) * w->stride[0] + tide_window_span(w, 0));
    c->in[0].base[2] = -w->pad_begin[0];
    c->n_pads = 2 * (size_t)w->n;
    for (int32_t i = 0; i < w->n; i++) {
        c->pads[i] = i == 0 ? 0 : w->pad_begin[i];
        c->pads[i + w->n] = i == 0 ? 0 : w->pad_end[i];
    }
}

/// Rows of a strip, of `in_channels` and `out_channels`, whose windows have `laid_out` elements for each position; 0:
/// the kernel does not lay them out.
static int64_t strip_rows(const tide_window *w, int64_t in_channels, int64_t out_channels, int64_t laid_out) {
    int64_t in_row = in_channels, out_row = out_channels, positions = 1;
    for (int32_t i = 1; i < w->n; i++) {
        in_row *= w->in[i];
        out_row *= w->out[i];
        positions *= w->out[i];
    }
    const int64_t least = min_i64(w->out[0], laid_out > 0 ? div_up(MIN_POSITIONS, positions) : 1);
    int64_t rows = w->out[0];
    for (; rows > least; rows = max_i64(least, rows / 2)) {
        const int64_t in_rows = (rows - 1) * w->stride[0] + tide_window_span(w, 0);
        const bool fits = in_rows * in_row + rows * out_row <= STRIP_ELEMENTS;
        if (fits && rows * positions * laid_out <= STRIP_ELEMENTS) break;
    }
    return div_up(w->out[0], div_up(w->out[0], rows));
}

/// One loop over the images, and one over groups: `per_tile` of them at a time.
static void loop_groups(const tide_infer *x, tide_cut *c, int64_t group, int64_t per_tile) {
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    const int64_t multiplier = w->dims[0] / group, channels = w->dims[1];
    if (in->dims[0] > 1) {
        const int32_t l = add_loop(c, in->dims[0]);
        move(&c->in[0], l, 0, 1, 1);
        move(&c->out, l, 0, 1, 1);
    }
    c->group = per_tile;
    if (per_tile == group) return;
    const int32_t l = add_loop(c, div_up(group, per_tile));
    move(&c->in[0], l, 1, per_tile * channels, per_tile * channels);
    move(&c->in[1], l, 0, per_tile * multiplier, per_tile * multiplier);
    move(&c->out, l, 1, per_tile * multiplier, per_tile * multiplier);
    if (c->in[2].is_cut) move(&c->in[2], l, 0, per_tile * multiplier, per_tile * multiplier);
}

static bool cut_conv(const tide_infer *x, tide_cut *c) {
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    const int64_t group = tide_node_attr_int(x->node, "group", 1);
    tide_window win;
    if (tide_op_window(x->node, in, w->dims + 2, &win, NULL) != TIDE_OK) return false;
    see(&c->in[0], in);
    see(&c->in[1], w);
    see(&c->out, &x->out[0].shape);
    if (x->n_in > 2 && tide_operand_present(&x->in[2])) see(&c->in[2], &x->in[2].shape);
    const int64_t plane = tide_op_count(in, 2, in->rank), multiplier = w->dims[0] / group;
    if (group > 1) {
        // Channel by channel, as many as make a tile; strips where one channel is more than that.
        const int64_t each = plane * w->dims[1] + tide_op_count(&x->out[0].shape, 2, in->rank) * multiplier;
        loop_groups(x, c, group, min_i64(group, max_i64(1, STRIP_ELEMENTS / each)));
        if (each <= 2 * STRIP_ELEMENTS) return true;
        const int64_t rows = strip_rows(&win, w->dims[1] * c->group, multiplier * c->group, 0);
        if (rows < win.out[0]) cut_strips(c, &win, rows);
        return true;
    }
    loop_groups(x, c, 1, 1);
    // Where the kernel of real numbers lays out windows as columns, it does so again for each tile of filters.
    const int64_t window = tide_op_count(w, 2, w->rank);
    const int64_t filters = columns_of(w->dims[0], w->dims[1] * window, window > 1 ? MIN_FILTERS : MIN_COLUMNS);
    if (filters < w->dims[0]) {
        const int32_t l = add_loop(c, div_up(w->dims[0], filters));
        move(&c->in[1], l, 0, filters, filters);
        move(&c->out, l, 1, filters, filters);
        if (c->in[2].is_cut) move(&c->in[2], l, 0, filters, filters);
    }
    const int64_t rows = strip_rows(&win, w->dims[1], filters, window > 1 ? w->dims[1] * window : 1);
    if (rows < win.out[0]) cut_strips(c, &win, rows);
    return true;
}

// ---- the table ----

typedef struct rule {
    const tide_op_def *def;
    tide_quant_role role;
    bool (*cut)(const tide_infer *x, tide_cut *c);
} rule;

// The tool would set each line of a list further to the right.
// clang-format off
#define NUMBERS(XX)                                                                                                    \
    XX(relu) XX(leaky_relu) XX(elu) XX(sigmoid) XX(tanh) XX(hard_swish) XX(softplus) XX(gelu) XX(hard_sigmoid)         \
    XX(clip_6) XX(clip_11) XX(abs) XX(neg) XX(sign) XX(exp) XX(log) XX(sqrt) XX(reciprocal) XX(floor) XX(ceil)         \
    XX(round) XX(erf) XX(sin) XX(cos) XX(softsign) XX(thresholded_relu) XX(selu) XX(celu) XX(swish) XX(mish)
#define ELEMENTS(XX) XX(add) XX(sub) XX(mul) XX(div) XX(max) XX(min) XX(sum) XX(mean) XX(prelu)
#define ROWS(XX) XX(softmax_1) XX(softmax_13) XX(log_softmax_1) XX(log_softmax_13) XX(layer_norm)
#define PLANES(XX) XX(average_pool) XX(global_average_pool) XX(global_max_pool)
#define MOVES(XX)                                                                                                      \
    XX(reshape) XX(flatten) XX(squeeze_1) XX(squeeze_13) XX(unsqueeze_1) XX(unsqueeze_13) XX(dropout_7)                \
    XX(dropout_12) XX(transpose) XX(split_2) XX(split_13) XX(slice_1) XX(slice_10) XX(gather) XX(gather_elements)      \
    XX(gather_nd) XX(expand) XX(tile) XX(depth_to_space) XX(space_to_depth) XX(upsample_7) XX(upsample_9)              \
    XX(resize_10) XX(resize_11) XX(reverse_sequence) XX(pad_11) XX(max_pool)

static const rule rules[] = {
#define XX(name) {&tide_op_##name, TIDE_QUANT_CUTS, cut_numbers},
    NUMBERS(XX)
#undef XX
#define XX(name) {&tide_op_##name, TIDE_QUANT_CUTS, cut_elements},
    ELEMENTS(XX)
#undef XX
#define XX(name) {&tide_op_##name, TIDE_QUANT_CUTS, cut_rows},
    ROWS(XX)
#undef XX
#define XX(name) {&tide_op_##name, TIDE_QUANT_CUTS, cut_planes},
    PLANES(XX)
#undef XX
#define XX(name) {&tide_op_##name, TIDE_QUANT_MOVES, NULL},
    MOVES(XX)
#undef XX
    {&tide_op_identity, TIDE_QUANT_MOVES, cut_numbers}, // cut between two ways to quantise
    {&tide_op_concat, TIDE_QUANT_JOINS, NULL},
    {&tide_op_conv, TIDE_QUANT_CUTS, cut_conv},
    {&tide_op_matmul, TIDE_QUANT_CUTS, cut_matmul},
    {&tide_op_gemm, TIDE_QUANT_CUTS, cut_gemm},
};
// clang-format on

static const rule *find(const tide_op_def *def) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].def == def) return &rules[i];
    return NULL;
}

tide_quant_role tide_quant_role_of(const tide_op_def *def) {
    const rule *r = find(def);
    return r != NULL ? r->role : TIDE_QUANT_NONE;
}

bool tide_quant_moves(const tide_node *node) {
    const tide_op_def *d = node->def;
    if (tide_quant_role_of(d) != TIDE_QUANT_MOVES) return false;
    const bool resizes =
        d == &tide_op_resize_10 || d == &tide_op_resize_11 || d == &tide_op_upsample_7 || d == &tide_op_upsample_9;
    if (!resizes) return true;
    const char *where = tide_node_attr_string(node, "coordinate_transformation_mode", "");
    return strcmp(tide_node_attr_string(node, "mode", "nearest"), "nearest") == 0 &&
           strcmp(where, "tf_crop_and_resize") != 0; // which has a number for what lies outside
}

/// Elements of all tiles of a cut, and of the operands that they are cut from.
static void count(const tide_cut *c, size_t n_in, double *tiles, double *wholes) {
    *tiles = (double)tide_op_numel(&c->out.tile);
    *wholes = (double)tide_op_numel(&c->out.shape);
    for (size_t i = 0; i < n_in && i < TIDE_CUT_MAX_INPUTS; i++) {
        if (!c->in[i].is_cut) continue;
        *tiles += (double)tide_op_numel(&c->in[i].tile);
        *wholes += (double)tide_op_numel(&c->in[i].shape);
    }
}

bool tide_cut_make(const tide_op_def *def, const tide_infer *x, tide_cut *out) {
    const rule *r = find(def);
    if (r == NULL || r->cut == NULL || x->n_in > TIDE_CUT_MAX_INPUTS) return false;
    for (size_t i = 0; i < x->n_in; i++)
        if (tide_operand_present(&x->in[i]) && tide_op_numel(&x->in[i].shape) == 0) return false;
    if (tide_op_numel(&x->out[0].shape) == 0) return false;
    *out = (tide_cut){0};
    if (!r->cut(x, out)) return false;
    // What is small is cut all the same, into one tile; what is large must become smaller.
    double tiles, wholes;
    count(out, x->n_in, &tiles, &wholes);
    return tiles <= SMALL_ELEMENTS || tiles <= wholes / 2;
}
