// SPDX-License-Identifier: MIT
//
// Building a program: one function per stage, run in the order of one table, so that the first failure stops the build
// with the stage's name before its message, and every stage that passes leaves one log line (S27-31). See program.h.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/pages.h"
#include "core/graph/region.h"
#include "core/memory/allocators/allocators.h"
#include "core/ops/ops.h"
#include "core/runtime/program_sizes.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

enum { DEFAULT_ALIGN_BYTES = 256 };

typedef struct build {
    tide_program *p;
    const tide_program_options *opt;
    const tide_contents *contents; ///< NULL: all, for a program that will run
    char detail[160];              ///< what the stage did, for its log line
} build;

#define DETAIL(b, ...) snprintf((b)->detail, sizeof(b)->detail, __VA_ARGS__)

static size_t count_live(const tide_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i].dead;
    return n;
}

// ---- stages on the graph ----

/// A constant may have other owners too, and may have changed since the graph took it.
static tide_status check_constant(const build *b, const tide_value *v, tide_error *err) {
    const tide_tensor *t = v->constant;
    if (tide_tensor_dtype(t) != v->dtype || !tide_shape_equal(tide_tensor_shape(t), &v->shape)) {
        char took[192], is[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "constant '%s' was changed: the graph has %s %s, it is %s %s", v->name,
                         tide_dtype_name(v->dtype), tide_shape_format(&v->shape, took, sizeof took),
                         tide_dtype_name(tide_tensor_dtype(t)), tide_shape_format(tide_tensor_shape(t), is, sizeof is));
    }
    // Kernels and folding read rows without gaps (LT-6).
    if (!tide_tensor_is_contiguous(t)) {
        TIDE_FAIL(err, TIDE_ERR_INVALID, "constant '%s' is not contiguous: kernels read rows without gaps", v->name);
        tide_error_hint(err, "tide_tensor_contiguous makes a tensor without gaps of it");
        return TIDE_ERR_INVALID;
    }
    if (b->contents != NULL && tide_constant_is_blank(t)) return TIDE_OK;
    const void *data;
    const tide_status st = tide_tensor_read(t, &data, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "constant '%s'", v->name);
        return st;
    }
    if (data == NULL && tide_tensor_size_bytes(t) > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "constant '%s' has no memory", v->name);
    return TIDE_OK;
}

static tide_status check_constants(const build *b, tide_error *err) {
    const tide_graph *g = b->p->graph;
    for (size_t v = 0; v < g->n_values; v++) {
        if (g->values[v].constant != NULL) TIDE_TRY(check_constant(b, &g->values[v], err));
    }
    return TIDE_OK;
}

static tide_status validate(build *b, tide_error *err) {
    TIDE_TRY(tide_graph_validate(b->p->graph, err));
    TIDE_TRY(check_constants(b, err));
    b->p->n_nodes_before = count_live(b->p->graph);
    DETAIL(b, "%zu nodes, %zu values", b->p->n_nodes_before, b->p->graph->n_values);
    return TIDE_OK;
}

static tide_status resolve(build *b, tide_error *err) { return tide_ops_resolve(b->p->graph, err); }

static tide_status bind_inputs(build *b, tide_error *err) {
    DETAIL(b, "%zu bindings, %zu inputs", b->opt->n_shapes, b->p->graph->n_inputs);
    return tide_graph_bind_shapes(b->p->graph, b->opt->shapes, b->opt->n_shapes, err);
}

static tide_status sort(build *b, tide_error *err) {
    tide_order_deinit(&b->p->order);
    TIDE_TRY(tide_graph_sort(b->p->graph, &b->p->order, err));
    DETAIL(b, "%zu steps", b->p->order.n);
    return TIDE_OK;
}

static tide_status infer_graph(build *b, tide_error *err) {
    const size_t before = count_live(b->p->graph);
    b->p->graph->fold_max_bytes = b->opt->fold_max_bytes;
    b->p->graph->allows_dynamic = b->opt->allow_dynamic;
    b->p->graph->bound_limit_bytes = b->opt->bound_limit_bytes;
    b->p->graph->given = b->opt->bounds;
    b->p->graph->n_given = b->opt->n_bounds;
    TIDE_TRY(b->contents != NULL ? tide_graph_infer_sizes(b->p->graph, &b->p->order, b->contents, err)
                                 : tide_graph_infer(b->p->graph, &b->p->order, true, err));
    b->p->graph->given = NULL;
    b->p->graph->n_given = 0;
    TIDE_ASSERT(count_live(b->p->graph) <= before);
    b->p->n_folded += before - count_live(b->p->graph);
    DETAIL(b, "%zu nodes folded", b->p->n_folded);
    return TIDE_OK;
}

static tide_status infer(build *b, tide_error *err) {
    if (!b->opt->no_qdq) TIDE_TRY(tide_ops_hold_weights(b->p->graph, err));
    return infer_graph(b, err);
}

static tide_status fuse(build *b, tide_error *err) {
    if (b->opt->no_fuse) {
        DETAIL(b, "switched off");
        return TIDE_OK;
    }
    TIDE_TRY(tide_graph_fuse(b->p->graph, &b->p->fused, err));
    DETAIL(b, "%zu Conv + BatchNormalization, %zu activations", b->p->fused.n_conv_bn, b->p->fused.n_activation);
    return TIDE_OK;
}

static tide_status prune(build *b, tide_error *err) {
    size_t n_killed = 0;
    TIDE_TRY(tide_graph_prune(b->p->graph, &n_killed, err));
    DETAIL(b, "%zu nodes removed", n_killed);
    return TIDE_OK;
}

/// What is left of weights that no operator reads quantised is folded now, and what has no reader any more goes.
static tide_status quantise(build *b, tide_error *err) {
    tide_program *p = b->p;
    if (b->opt->no_qdq) {
        DETAIL(b, "switched off");
        return TIDE_OK;
    }
    TIDE_TRY(tide_ops_quantise_count(p->graph, false, &p->quantised, err));
    if (p->quantised.n_nodes == 0) return TIDE_OK;
    const tide_status st = tide_ops_quantise(p->graph, &p->order, &p->quantised, err);
    if (st == TIDE_ERR_UNKNOWN_SIZE && b->contents != NULL) *b->contents->wanted = true;
    TIDE_TRY(st);
    TIDE_TRY(sort(b, err));
    TIDE_TRY(infer_graph(b, err));
    TIDE_TRY(tide_graph_prune(p->graph, NULL, err));
    TIDE_TRY(sort(b, err));
    TIDE_TRY(tide_ops_quantise_count(p->graph, true, &p->quantised, err));
    DETAIL(b, "%zu operators take them, %zu QuantizeLinear and DequantizeLinear are left", p->quantised.n_operators,
           p->quantised.n_left);
    return TIDE_OK;
}

// ---- sizes and weights ----

static tide_status fix_size(const tide_graph *g, uint32_t value_i, tide_error *err) {
    tide_operand unused;
    if (value_i != TIDE_NO_VALUE && g->values[value_i].is_dynamic) return TIDE_OK; // while running
    return tide__value_operand(g, value_i, &unused, err);
}

static tide_status fix_node_sizes(const tide_graph *g, const tide_node *node, tide_error *err) {
    for (size_t i = 0; i < node->n_inputs; i++) TIDE_TRY(fix_size(g, node->inputs[i], err));
    for (size_t i = 0; i < node->n_outputs; i++) TIDE_TRY(fix_size(g, node->outputs[i], err));
    return TIDE_OK;
}

static void count_dynamic(tide_program *p, const tide_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] == TIDE_NO_VALUE) continue;
        const tide_value *v = &p->graph->values[node->outputs[i]];
        p->n_bounded += v->is_bounded;
        p->n_dynamic += v->is_dynamic && !v->is_bounded;
    }
}

static tide_status fix_sizes(build *b, tide_error *err) {
    const tide_graph *g = b->p->graph;
    for (size_t i = 0; i < g->n_inputs; i++) TIDE_TRY(fix_size(g, g->inputs[i], err));
    for (size_t i = 0; i < g->n_outputs; i++) TIDE_TRY(fix_size(g, g->outputs[i], err));
    for (size_t i = 0; i < b->p->order.n; i++) {
        const tide_node *node = &g->nodes[b->p->order.nodes[i]];
        const tide_status st = fix_node_sizes(g, node, err);
        if (st != TIDE_OK) {
            tide_error_prefix(err, "node '%s' (%s)", node->name, node->op_type);
            return st;
        }
        count_dynamic(b->p, node);
    }
    if (b->p->n_dynamic + b->p->n_bounded > 0)
        DETAIL(b, "%zu tensors are sized while running, %zu of them within bounds", b->p->n_dynamic + b->p->n_bounded,
               b->p->n_bounded);
    return TIDE_OK;
}

bool tide_program_is_mapped(const tide_program *p, uint32_t value_i) {
    const tide_tensor *t = p->graph->values[value_i].constant;
    return p->keeps_mapped && t != NULL && tide_tensor_size_bytes(t) > 0 &&
           tide_block_is_mapped(tide_tensor_storage(t)->block);
}

/// The pages that a large constant has to itself; NULL: it lies elsewhere.
static tide_pages *pages_of(const tide_tensor *t) {
    const tide_data_ptr *ptr = &tide_tensor_storage(t)->block->foreign;
    if (tide_data_ptr_release_fn(ptr) != tide_pages_unref) return NULL;
    tide_pages *pages = tide_data_ptr_context(ptr);
    return pages->size_bytes == tide_tensor_size_bytes(t) ? pages : NULL; // not a part of them
}

/// Whether the bytes may go once they are copied: a file has them still, or the memory is ours and nothing else reads
/// it.
static bool is_last_reader(const tide_tensor *t) {
    const tide_block *block = tide_tensor_storage(t)->block;
    if (tide_block_is_mapped(block)) return true;
    const bool is_ours = block->owner != NULL || block->foreign.release == tide_host_free || pages_of(t) != NULL;
    return is_ours && tide_tensor_use_count(t) == 1 && tide_block_use_count(block) == 1 && !tide_block_is_cow(block);
}

/// A block of the file's own bytes, with exactly as many.
static tide_status keep_in_file(build *b, uint32_t value_i, tide_error *err) {
    const tide_value *v = &b->p->graph->values[value_i];
    const size_t size_bytes = tide_tensor_size_bytes(v->constant);
    const void *data;
    TIDE_TRY(tide_tensor_read(v->constant, &data, err));
    tide_block *block;
    TIDE_TRY(tide_mapped_block_create(b->opt->mapped, tide_tensor_storage(v->constant)->block, data, size_bytes,
                                      tide_dtype_size(v->dtype), TIDE_KIND_PERSISTENT, v->name, &block, err));
    tide_storage storage = tide_storage_of_block(block);
    tide_block_unref(block);
    tide_tensor *kept;
    const tide_status st = tide_tensor_create_on(&storage, 0, v->dtype, &v->shape, &kept, err);
    tide_storage_deinit(&storage);
    TIDE_TRY(st);
    tide_graph_set_constant(b->p->graph, value_i, kept);
    tide_tensor_unref(kept);
    return TIDE_OK;
}

/// A weight and its copy are never there as a whole at the same time: large constants made here become the weight.
static tide_status copy_weight(const tide_tensor *from, const tide_tensor_spec *where, tide_tensor **out,
                               tide_error *err) {
    const size_t size_bytes = tide_tensor_size_bytes(from);
    if (size_bytes == 0 || !is_last_reader(from)) return tide_tensor_clone(from, where, out, err);
    const void *src;
    void *dst;
    TIDE_TRY(tide_tensor_read(from, &src, err));
    tide_cpu_offer(pages_of(from));
    tide_status st = tide_tensor_create(where, out, err);
    tide_cpu_offer(NULL);
    TIDE_TRY(st);
    st = tide_tensor_write(*out, &dst, err);
    if (st != TIDE_OK)
        tide_tensor_unref(*out);
    else if (dst != src)
        tide_copy_dropping(dst, src, size_bytes);
    return st;
}

static tide_status move_weight(build *b, uint32_t value_i, tide_error *err) {
    const tide_value *v = &b->p->graph->values[value_i];
    if (tide_program_is_mapped(b->p, value_i)) return keep_in_file(b, value_i, err);
    const size_t align = b->opt->weights_align_bytes != 0 ? b->opt->weights_align_bytes : DEFAULT_ALIGN_BYTES;
    const tide_tensor_spec where = {.dtype = v->dtype,
                                    .shape = v->shape,
                                    .device = TIDE_CPU,
                                    .kind = TIDE_KIND_PERSISTENT,
                                    .align_bytes = align,
                                    .registry = b->opt->weights_registry,
                                    .tag = v->name};
    tide_tensor *moved;
    const tide_status st = copy_weight(v->constant, &where, &moved, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "weight '%s'", v->name);
        return st;
    }
    tide_graph_set_constant(b->p->graph, value_i, moved);
    tide_tensor_unref(moved);
    return TIDE_OK;
}

/// A tensor of the program's own over the same memory: another owner of the constant may give its tensor another shape
/// or other memory, and kernels keep the address.
static tide_status own_weight(build *b, uint32_t value_i, tide_error *err) {
    const tide_value *v = &b->p->graph->values[value_i];
    if (tide_tensor_use_count(v->constant) == 1) return TIDE_OK;
    tide_tensor *own;
    const tide_status st = tide_tensor_view(v->constant, &v->shape, &own, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "weight '%s'", v->name);
        return st;
    }
    tide_graph_set_constant(b->p->graph, value_i, own);
    tide_tensor_unref(own);
    return TIDE_OK;
}

/// The weight of the same name of another program, where it is the same: then it is this one's too.
static bool share_weight(build *b, uint32_t value_i) {
    const tide_program *other = b->opt->weights_of;
    tide_graph *g = b->p->graph;
    if (other == NULL) return false;
    const uint32_t there = tide_graph_find_value(other->graph, g->values[value_i].name);
    tide_tensor *theirs = there != TIDE_NO_VALUE ? other->graph->values[there].constant : NULL;
    const tide_tensor *own = g->values[value_i].constant;
    const void *a, *c;
    if (theirs == NULL || tide_tensor_dtype(theirs) != tide_tensor_dtype(own)) return false;
    if (!tide_shape_equal(tide_tensor_shape(theirs), tide_tensor_shape(own))) return false;
    if (tide_tensor_read(theirs, &a, NULL) != TIDE_OK || tide_tensor_read(own, &c, NULL) != TIDE_OK) return false;
    if (tide_tensor_size_bytes(own) > 0 && memcmp(a, c, tide_tensor_size_bytes(own)) != 0) return false;
    tide_graph_set_constant(g, value_i, theirs);
    return true;
}

static tide_status place_marked(build *b, const bool *is_weight, tide_error *err) {
    const tide_graph *g = b->p->graph;
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (!is_weight[v]) continue;
        if (!tide_add_u64(b->p->weight_bytes, tide_tensor_size_bytes(g->values[v].constant), &b->p->weight_bytes))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the weights together have more than 2^64 bytes");
        if (tide_constant_is_blank(g->values[v].constant) || share_weight(b, v)) continue;
        TIDE_TRY(b->opt->weights_registry != NULL ? move_weight(b, v, err) : own_weight(b, v, err));
        TIDE_TRY(tide__fix_constant(g->values[v].constant, g->values[v].name, err));
    }
    return TIDE_OK;
}

/// Comes before the kernels are prepared: a kernel may keep the address of a constant for as long as it lives.
static tide_status place_weights(build *b, tide_error *err) {
    bool *is_weight;
    TIDE_TRY(TIDE_NEW(&is_weight, b->p->graph->n_values + 1, err, "for %zu values", b->p->graph->n_values));
    b->p->n_weights = tide__mark_weights(b->p->graph, &b->p->order, is_weight);
    const tide_status st = place_marked(b, is_weight, err);
    tide_host_free(is_weight);
    DETAIL(b, "%zu weights, %" PRIu64 " B, %s", b->p->n_weights, b->p->weight_bytes,
           b->opt->weights_registry != NULL ? "moved into Persistent memory" : "left in the graph");
    return st;
}

// ---- kernels ----

static tide_status call_prepare(const tide_graph *g, const tide_node *node, tide_kernel *k, tide_error *err) {
    tide_operand *ops;
    TIDE_TRY(TIDE_NEW(&ops, node->n_inputs + node->n_outputs + 1, err, "for the operands"));
    tide_operand *out = ops + node->n_inputs;
    tide_status st;
    TIDE_TRY_OR(done, st, tide__value_operands(g, node->inputs, node->n_inputs, ops, err));
    TIDE_TRY_OR(done, st, tide__value_operands(g, node->outputs, node->n_outputs, out, err));
    for (size_t i = 0; i < node->n_outputs; i++) out[i].data = NULL;
    const tide_prepare x = {.node = node, .in = ops, .n_in = node->n_inputs, .out = out, .n_out = node->n_outputs};
    st = node->def->prepare(&x, k, err);
done:
    tide_host_free(ops);
    return st;
}

/// Every operand is as large as it can be, and a constant has its content.
static tide_status load_most(const tide_graph *g, const uint32_t *values, size_t n, tide_operand *out,
                             tide_error *err) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__value_most(g, values[i], &out[i], err));
    return TIDE_OK;
}

/// Of a dynamic node: the scratch that a run with the largest operands takes, where that can be known.
static tide_status ask_most_scratch(const tide_graph *g, const tide_node *node, tide_kernel *k, tide_error *err) {
    tide_operand *ops;
    TIDE_TRY(TIDE_NEW(&ops, node->n_inputs + node->n_outputs + 1, err, "for the operands"));
    tide_operand *out = ops + node->n_inputs;
    tide_kernel most = *k;
    if (load_most(g, node->inputs, node->n_inputs, ops, NULL) == TIDE_OK &&
        load_most(g, node->outputs, node->n_outputs, out, NULL) == TIDE_OK) {
        const tide_prepare x = {.node = node, .in = ops, .n_in = node->n_inputs, .out = out, .n_out = node->n_outputs};
        if (node->def->prepare(&x, &most, NULL) == TIDE_OK) {
            k->workspace_bytes = most.workspace_bytes;
            tide__program_destroy_kernel(&most);
        }
    }
    tide_host_free(ops);
    return TIDE_OK;
}

static bool has_place(const tide_graph *g, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (values[i] != TIDE_NO_VALUE && g->values[values[i]].is_dynamic && !g->values[values[i]].is_bounded)
            return false;
    }
    return true;
}

/// Its scratch can be planned: all that it reads and makes has a place, and its largest size is known.
static bool has_most_scratch(const tide_graph *g, const tide_node *node) {
    return node->has_most_scratch && has_place(g, node->inputs, node->n_inputs) &&
           has_place(g, node->outputs, node->n_outputs);
}

bool tide_program_has_open_scratch(const tide_program *p, size_t step) {
    const tide_node *node = &p->graph->nodes[p->steps[step].node];
    return !p->no_kernels && tide_node_is_dynamic(p->graph, node) && node->def->prepare != NULL &&
           has_place(p->graph, node->outputs, node->n_outputs) && !has_most_scratch(p->graph, node);
}

tide_status tide__program_prepare_kernel(const tide_graph *g, const tide_node *node, tide_kernel *k, tide_error *err) {
    if (node->def->prepare == NULL) return TIDE_OK;
    if (tide_node_is_dynamic(g, node)) return has_most_scratch(g, node) ? ask_most_scratch(g, node, k, err) : TIDE_OK;
    const tide_status st = call_prepare(g, node, k, err);
    if (st != TIDE_OK) tide_error_prefix(err, "node '%s' (%s)", node->name, node->op_type);
    return st;
}

static tide_status prepare_step(tide_program *p, uint32_t node_i, tide_error *err) {
    const tide_node *node = &p->graph->nodes[node_i];
    TIDE_ASSERT(p->n_steps < p->order.n && !node->dead && node->def != NULL);
    tide_program_step *step = &p->steps[p->n_steps];
    *step = (tide_program_step){.node = node_i, .kernel = {.def = node->def, .node = node}};
    if ((node->def->flags & TIDE_OP_PLAN_ONLY) != 0) p->runnable = false;
    if (!p->no_kernels) TIDE_TRY(tide__program_prepare_kernel(p->graph, node, &step->kernel, err));
    p->n_steps++; // counted once it is whole: only whole kernels are destroyed
    return TIDE_OK;
}

bool tide__program_holds(const tide_program *p) {
    if (p->n_steps != p->order.n) return false;
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_program_step *s = &p->steps[i];
        if (s->node != p->order.nodes[i] || s->node >= p->graph->n_nodes || p->graph->nodes[s->node].dead) return false;
        if (s->kernel.node != &p->graph->nodes[s->node] || s->kernel.def != s->kernel.node->def) return false;
    }
    // A body is a stretch of the steps: between its two ends all belong to it, and none outside.
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_node *n = p->steps[i].kernel.node;
        if (n->closes == 0) continue;
        const tide_region *r = tide_region_of(p->graph, n->closes);
        const bool is_second = r->kind == TIDE_REGION_ELSE && r->other != 0;
        const uint32_t open = p->steps[i].opened_by;
        if (open >= i || p->steps[open].node != r->open || p->steps[open].jump == 0 || p->steps[i].jump == 0)
            return false;
        for (size_t k = is_second ? p->steps[open].jump : open + 1; k <= i; k++) {
            if (!tide_region_holds(p->graph, n->closes, p->steps[k].kernel.node)) return false;
        }
    }
    for (size_t i = 0; i < p->n_twins; i++) {
        if (p->twins[i].first >= p->graph->n_nodes || p->twins[i].again >= p->graph->n_nodes) return false;
    }
    return true;
}

/// Steps of a region are in the order behind the step that opens it.
static void find_jumps(tide_program *p, uint32_t *step_of) {
    for (uint32_t i = 0; i < p->n_steps; i++) step_of[p->steps[i].node] = i;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const tide_node *n = p->steps[i].kernel.node;
        if (!tide_node_is_control(n)) continue;
        const tide_region *r = tide_region_of(p->graph, n->opens != 0 ? n->opens : n->closes);
        const uint32_t open = step_of[r->open], close = step_of[r->close];
        p->steps[i].opened_by = open;
        p->steps[i].jump = n->opens != 0 ? close + 1 : open + 1;
        if (n->closes != 0 && !tide_region_repeats(r))
            p->steps[i].jump = r->kind == TIDE_REGION_THEN && r->other != 0
                                   ? step_of[tide_region_of(p->graph, r->other)->close] + 1
                                   : close + 1;
    }
}

static tide_status place_jumps(tide_program *p, tide_error *err) {
    if (p->graph->n_regions == 0) return TIDE_OK;
    uint32_t *step_of;
    TIDE_TRY(TIDE_NEW(&step_of, p->graph->n_nodes + 1, err, "for %zu steps", p->n_steps));
    find_jumps(p, step_of);
    tide_host_free(step_of);
    return TIDE_OK;
}

static tide_status prepare(build *b, tide_error *err) {
    tide_program *p = b->p;
    TIDE_TRY(TIDE_NEW(&p->steps, p->order.n + 1, err, "for %zu steps", p->order.n));
    p->no_kernels = b->opt->no_kernels;
    p->runnable = !p->no_kernels;
    for (size_t i = 0; i < p->order.n; i++) TIDE_TRY(prepare_step(p, p->order.nodes[i], err));
    TIDE_TRY(place_jumps(p, err));
    TIDE_ASSERT(tide__program_holds(p));
    DETAIL(b, "%zu kernels%s", p->no_kernels ? 0 : p->n_steps,
           p->runnable     ? ""
           : p->no_kernels ? ", the sizes alone are wanted"
                           : ", some operators can only be planned");
    return TIDE_OK;
}

// ---- building ----

typedef struct stage {
    const char *name;
    tide_status (*run)(build *b, tide_error *err);
} stage;

static const stage stages[] = {
    {"validate", validate},
    {"resolve operators", resolve},
    {"bind inputs", bind_inputs},
    {"sort", sort},
    {"infer shapes", infer},
    {"fuse", fuse},
    {"prune", prune},
    {"sort again", sort},
    {"quantised tensors", quantise},
    {"fix sizes", fix_sizes},
    {"place weights", place_weights},
    {"prepare kernels", prepare},
};

static tide_status run_stages(build *b, tide_error *err) {
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        b->detail[0] = '\0';
        const tide_status st = stages[i].run(b, err);
        if (st != TIDE_OK) {
            tide_error_prefix(err, "program: %s", stages[i].name);
            return st;
        }
        tide_log(TIDE_LOG_INFO, "program '%s': %s%s%s", b->p->graph->name, stages[i].name,
                 b->detail[0] != '\0' ? ": " : "", b->detail);
    }
    return TIDE_OK;
}

static tide_status build_program(tide_graph *graph, const tide_program_options *opt, const tide_contents *contents,
                                 tide_program **out, tide_error *err) {
    static const tide_program_options defaults = {0};
    tide_program *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) {
        tide_graph_destroy(graph);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "program: no memory");
    }
    atomic_init(&p->refs, 1);
    p->graph = graph;
    p->keeps_mapped = opt != NULL && opt->keeps_mapped && (opt->weights_registry == NULL || opt->mapped != NULL);
    build b = {.p = p, .opt = opt != NULL ? opt : &defaults, .contents = contents};
    const tide_status st = run_stages(&b, err);
    if (st != TIDE_OK) {
        tide_program_unref(p);
        return st;
    }
    *out = p;
    return TIDE_OK;
}

tide_status tide_program_build(tide_graph *graph, const tide_program_options *opt, tide_program **out,
                               tide_error *err) {
    return build_program(graph, opt, NULL, out, err);
}

tide_status tide_program_build_sizes(tide_graph *graph, const tide_program_options *opt, const tide_contents *contents,
                                     tide_program **out, tide_error *err) {
    return build_program(graph, opt, contents, out, err);
}

tide_program *tide_program_ref(tide_program *p) {
    const uint32_t before = atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return p;
}

void tide_program_unref(tide_program *p) {
    if (p == NULL) return;
    const uint32_t before = atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    for (size_t i = 0; i < p->n_steps; i++) tide__program_destroy_kernel(&p->steps[i].kernel);
    tide_host_free(p->steps);
    tide_host_free(p->twins);
    tide_order_deinit(&p->order);
    tide_graph_destroy(p->graph);
    tide_host_free(p);
}
