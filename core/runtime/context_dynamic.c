// SPDX-License-Identifier: MIT
//
// Steps whose operands are sized while running. See runtime_internal.h.
//
//     plan       x [2x3] -> | Reshape(x, n) -> y | -> | Relu(y) -> z |      n is fed: the sizes of y and z hang on it
//     each run   infer y from x and n's numbers, find room for it, prepare the kernel, run it; then the same for z
//
// A *bounded* tensor has its place like any other, with room for its bound: a run sets its shape and nothing else. It
// is asked to stay within the bound before its kernel runs.
//
// Any other one has a block of its own (TIDE_DYNAMIC_KIND) in both modes, from its step to its last reader; a graph
// output until the next run begins, or longer where the caller holds it. That allocates, and so does the scratch of a
// dynamic step that is past what the plan has for it.
//
// A kernel is kept for the next run where the sizes of its operands say all there is to know of it: as long as they
// stay it is not prepared anew, and a run of bounded tensors alone allocates nothing.
#include <stdio.h>

#include "core/base/assert.h"
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

/// Of a known input of 0 bytes: operators know a known operand by its data.
static unsigned char nothing[1];

// ---- operands ----

static void operand_of_tensor(const tide_context *c, uint32_t value_i, tide_operand *out) {
    const tide_tensor *t = c->values[value_i];
    TIDE_ASSERT(t != NULL); // its step has run
    *out = (tide_operand){
        .dtype = tide_tensor_dtype(t), .shape = *tide_tensor_shape(t), .size_bytes = tide_tensor_size_bytes(t)};
}

tide_status tide__context_operand(const tide_context *c, uint32_t value_i, tide_operand *out, tide_error *err) {
    *out = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    if (c->plan->needs[value_i].dynamic || c->plan->needs[value_i].bounded)
        operand_of_tensor(c, value_i, out);
    else
        TIDE_TRY(tide__value_operand(graph_of(c), value_i, out, err));
    out->data = out->size_bytes > 0 ? c->data[value_i] : nothing;
    TIDE_ASSERT(out->data != NULL);
    return TIDE_OK;
}

static bool agrees(const tide_value *v, const tide_operand *o) {
    if (v->dtype != TIDE_DTYPE_UNDEFINED && v->dtype != o->dtype) return false;
    if (v->has_shape && v->shape.rank != o->shape.rank) return false;
    for (int32_t d = 0; v->has_shape && d < o->shape.rank; d++) {
        if (v->shape.dims[d] != TIDE_DIM_UNKNOWN && v->shape.dims[d] != o->shape.dims[d]) return false;
    }
    return true;
}

/// What an operator says of its output, held against what the file says.
static tide_status check_output(const tide_value *v, tide_operand *o, tide_error *err) {
    char is[192], file[192] = "";
    if (o->dtype == TIDE_DTYPE_UNDEFINED || o->shape.rank < 0 || o->shape.rank > TIDE_MAX_RANK ||
        !tide_shape_known(&o->shape))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "output '%s' has no type or size after its inputs are known", v->name);
    const tide_status st = tide_shape_operand_bytes(&o->shape, o->dtype, &o->size_bytes, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "tensor '%s'", v->name);
        return st;
    }
    if (agrees(v, o)) return TIDE_OK;
    tide_shape_format(&o->shape, is, sizeof is);
    if (v->has_shape) tide_shape_format(&v->shape, file, sizeof file);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "output '%s' comes out as %s %s, the file says %s %s", v->name,
                     tide_dtype_name(o->dtype), is,
                     tide_dtype_name(v->dtype != TIDE_DTYPE_UNDEFINED ? v->dtype : o->dtype), file);
}

/// Whether `o` is the operand that it was when the kernel was prepared.
static bool is_as_before(const tide_operand *before, const tide_operand *o) {
    return before->dtype == o->dtype && tide_shape_equal(&before->shape, &o->shape);
}

/// The operands as they are now. *is_same: none has another size than the kernel was prepared for.
static tide_status load(tide_context *c, const tide_node *node, tide__context_step *s, bool *is_same, tide_error *err) {
    *is_same = s->has_kernel;
    for (size_t k = 0; k < node->n_inputs; k++) {
        tide_operand now;
        TIDE_TRY(tide__context_operand(c, node->inputs[k], &now, err));
        *is_same = *is_same && is_as_before(&s->in[k], &now);
        s->in[k] = now;
    }
    return TIDE_OK;
}

/// Contents that are no constants: only a node whose sizes hang on them gets to see them before it runs.
static void hide_contents(const tide_context *c, const tide_node *node, tide__context_step *s) {
    for (size_t k = 0; node->is_sized_by_shapes && k < node->n_inputs; k++) {
        if (node->inputs[k] != TIDE_NO_VALUE && graph_of(c)->values[node->inputs[k]].constant == NULL)
            s->in[k].data = NULL;
    }
}

static void show_contents(const tide_context *c, const tide_node *node, tide__context_step *s) {
    for (size_t k = 0; node->is_sized_by_shapes && k < node->n_inputs; k++) {
        if (node->inputs[k] != TIDE_NO_VALUE)
            s->in[k].data = s->in[k].size_bytes > 0 ? c->data[node->inputs[k]] : nothing;
    }
}

static tide_status infer(tide_context *c, const tide_node *node, tide__context_step *s, tide_error *err) {
    for (size_t k = 0; k < node->n_outputs; k++) s->out[k] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    // Under poison scratch is looked at before the kernel runs: it must be as it was.
    const bool lends = s->args.workspace != NULL && c->fill != TIDE_FILL_POISON;
    const size_t step_i = (size_t)s->scope.index;
    const tide_infer x = {.node = node,
                          .in = s->in,
                          .n_in = node->n_inputs,
                          .out = s->out,
                          .n_out = node->n_outputs,
                          .is_running = true,
                          .scratch = lends ? s->args.workspace : NULL,
                          .scratch_bytes = lends ? c->plan->program->steps[step_i].kernel.workspace_bytes : 0};
    TIDE_TRY(node->def->infer(&x, err));
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] != TIDE_NO_VALUE)
            TIDE_TRY(check_output(&graph_of(c)->values[node->outputs[k]], &s->out[k], err));
        else
            s->out[k] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    }
    return TIDE_OK;
}

// ---- memory ----

static tide_status bind_block(tide_context *c, tide_tensor *t, const char *name, void **data, tide_error *err) {
    tide_block *block;
    TIDE_TRY(tide__context_take_block(c, c->dynamic, TIDE_DYNAMIC_KIND, tide_tensor_size_bytes(t), c->plan->align_bytes,
                                      name, &block, err));
    tide_storage whole = tide_storage_of_block(block);
    const tide_status st = tide_tensor_bind(t, &whole, 0, err);
    tide_storage_deinit(&whole);
    tide_block_unref(block); // the tensor holds it now
    if (st == TIDE_OK) *data = tide_tensor_data(t);
    return st;
}

/// Graph outputs are one of the tables' tensors too.
void tide__context_note_output(tide_context *c, uint32_t value_i) {
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (graph_of(c)->outputs[i] != value_i) continue;
        const tide_block *block = tide_tensor_storage(c->values[value_i])->block;
        tide_tensor_unref(c->outputs[i]); // in a body: of the iteration before
        c->outputs[i] = tide_tensor_ref(c->values[value_i]);
        c->output_blocks[i] = block != NULL ? block->id : 0;
    }
}

tide_status tide__context_make_dynamic(tide_context *c, uint32_t value_i, tide_operand *o, tide_error *err) {
    const char *name = graph_of(c)->values[value_i].name;
    TIDE_ASSERT(c->plan->needs[value_i].dynamic && c->values[value_i] == NULL);
    tide_tensor *t;
    TIDE_TRY(tide_tensor_create_unbound(o->dtype, &o->shape, c->plan->device, &t, err));
    tide_status st = o->size_bytes > 0 ? bind_block(c, t, name, &o->data, err) : TIDE_OK;
    if (st != TIDE_OK) {
        tide_tensor_unref(t);
        tide_error_prefix(err, "tensor '%s'", name);
        return st;
    }
    c->values[value_i] = t;
    c->data[value_i] = o->data;
    return TIDE_OK;
}

void tide__context_set_dynamic(tide_context *c, uint32_t value_i, tide_tensor *t) {
    TIDE_ASSERT(c->plan->needs[value_i].dynamic);
    if (t != NULL) tide_tensor_ref(t);
    tide_tensor_unref(c->values[value_i]);
    c->values[value_i] = t;
    c->data[value_i] = t != NULL && tide_tensor_size_bytes(t) > 0 ? tide_tensor_data(t) : NULL;
}

static void drop_value(tide_context *c, uint32_t value_i) { tide__context_set_dynamic(c, value_i, NULL); }

void tide__context_drop_dynamic(tide_context *c) {
    if (c->dynamic == NULL) return;
    const tide_graph *g = graph_of(c);
    tide__context_forget_sizes(c);
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (!c->plan->needs[g->outputs[i]].dynamic) continue;
        tide_tensor_unref(c->outputs[i]);
        c->outputs[i] = NULL;
    }
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (c->plan->needs[v].dynamic) drop_value(c, v);
    }
}

/// Behind the last of `n` bytes is poison up to the end of the block.
static tide_status check_zone(const tide_context *c, const tide_block *block, size_t n, const char *what,
                              const char *name, tide_error *err) {
    if (c->fill != TIDE_FILL_POISON || n == 0) return TIDE_OK;
    const size_t zone = block->mem.requested_bytes - n;
    const size_t at = tide_poison_find((const char *)block->mem.data + n, zone);
    if (at == zone) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "%s '%s' of %zu B: byte %zu behind its end was written", what, name, n, at);
}

static tide_status check_end(const tide_context *c, uint32_t value_i, tide_error *err) {
    const tide_tensor *t = c->values[value_i];
    return check_zone(c, tide_tensor_storage(t)->block, tide_tensor_size_bytes(t), "tensor",
                      graph_of(c)->values[value_i].name, err);
}

static tide_status free_if_last(tide_context *c, uint32_t value_i, size_t step_i, tide_error *err) {
    if (value_i == TIDE_NO_VALUE || c->values[value_i] == NULL) return TIDE_OK; // or read twice
    if (!c->plan->needs[value_i].dynamic || !tide__value_ends(c, value_i, step_i)) return TIDE_OK;
    TIDE_TRY(check_end(c, value_i, err));
    drop_value(c, value_i);
    return TIDE_OK;
}

tide_status tide__context_free_dynamic(tide_context *c, size_t step_i, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    for (size_t k = 0; k < node->n_inputs; k++) TIDE_TRY(free_if_last(c, node->inputs[k], step_i, err));
    for (size_t k = 0; k < node->n_outputs; k++) TIDE_TRY(free_if_last(c, node->outputs[k], step_i, err));
    return TIDE_OK;
}

// ---- steps that are left out ----

static tide_status end_skipped(tide_context *c, uint32_t value_i, size_t step_i, size_t skipped, size_t next,
                               tide_error *err) {
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide__need *need = &c->plan->needs[value_i];
    if (need->last_step != (int64_t)skipped || need->birth_step > (int64_t)step_i || need->birth_step < 0)
        return TIDE_OK;
    if (need->dynamic && c->values[value_i] != NULL) {
        TIDE_TRY(check_end(c, value_i, err));
        drop_value(c, value_i);
    }
    if (!need->intermediate) return TIDE_OK;
    TIDE_TRY(tide__poison_end_value(c, value_i, next, err));
    if (c->mode == TIDE_RUN_NAIVE) tide__context_free_value(c, value_i);
    return TIDE_OK;
}

tide_status tide__context_skip(tide_context *c, size_t step_i, size_t next, tide_error *err) {
    for (size_t skipped = step_i + 1; skipped < next; skipped++) {
        const tide_node *node = c->plan->program->steps[skipped].kernel.node;
        c->steps[skipped].again = false; // of a run that failed
        for (size_t k = 0; k < node->n_inputs; k++)
            TIDE_TRY(end_skipped(c, node->inputs[k], step_i, skipped, next, err));
    }
    return TIDE_OK;
}

// ---- the kernel ----

static void drop_kernel(tide__context_step *s) {
    const tide_op_def *def = s->kernel.def;
    if (!s->has_kernel) return;
    if (s->args.exec != NULL && def->exec_destroy != NULL) def->exec_destroy(&s->kernel, s->args.exec);
    tide__program_destroy_kernel(&s->kernel);
    s->args.exec = NULL;
    s->has_kernel = false;
}

void tide__context_drop_kernels(tide_context *c) {
    for (size_t i = 0; i < c->plan->program->n_steps; i++) drop_kernel(&c->steps[i]);
}

static tide_status prepare(const tide_node *node, tide__context_step *s, tide_error *err) {
    const tide_prepare x = {.node = node, .in = s->in, .n_in = s->args.n_in, .out = s->out, .n_out = s->args.n_out};
    s->kernel = (tide_kernel){.def = node->def, .node = node};
    if (node->def->prepare != NULL) TIDE_TRY(node->def->prepare(&x, &s->kernel, err));
    s->has_kernel = true;
    return node->def->exec_create != NULL ? node->def->exec_create(&s->kernel, &s->args.exec, err) : TIDE_OK;
}

/// What comes out and the kernel for it, anew unless the last run has left them.
static tide_status find_kernel(tide_context *c, const tide_node *node, tide__context_step *s, tide_error *err) {
    bool is_same;
    tide_status st = load(c, node, s, &is_same, err);
    if (st == TIDE_OK && is_same) return TIDE_OK;
    drop_kernel(s);
    if (st != TIDE_OK) return st;
    hide_contents(c, node, s);
    st = infer(c, node, s, err);
    if (st == TIDE_OK) st = prepare(node, s, err); // no output has an address yet
    if (st != TIDE_OK) drop_kernel(s);
    show_contents(c, node, s);
    return st;
}

/// Where the plan has room for the scratch it lies there; else in a block, until the step is done.
static tide_status take_scratch(tide_context *c, size_t step_i, tide_block **block, void **out, tide_error *err) {
    const tide_kernel *k = &c->steps[step_i].kernel;
    *out = c->steps[step_i].args.workspace;
    const size_t room = *out != NULL ? c->plan->program->steps[step_i].kernel.workspace_bytes : 0;
    if (k->workspace_bytes <= room) return TIDE_OK;
    const size_t align = c->plan->align_bytes > TIDE_WORKSPACE_ALIGN ? c->plan->align_bytes : TIDE_WORKSPACE_ALIGN;
    char tag[160];
    snprintf(tag, sizeof tag, "%.150s.scratch", k->node->name);
    TIDE_TRY(tide__context_take_block(c, c->dynamic, TIDE_DYNAMIC_KIND, k->workspace_bytes, align, tag, block, err));
    *out = (*block)->mem.data;
    return TIDE_OK;
}

/// Scratch in a block ends here, and a graph output is not looked at later.
static tide_status check_written(const tide_context *c, const tide__context_step *s, const tide_block *scratch,
                                 tide_error *err) {
    const tide_node *node = s->kernel.node;
    if (scratch != NULL) TIDE_TRY(check_zone(c, scratch, s->kernel.workspace_bytes, "scratch of", node->name, err));
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] != TIDE_NO_VALUE && c->plan->needs[node->outputs[k]].dynamic)
            TIDE_TRY(check_end(c, node->outputs[k], err));
    }
    return TIDE_OK;
}

static tide_status make_values(tide_context *c, const tide_node *node, tide__context_step *s, tide_error *err) {
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] == TIDE_NO_VALUE) continue;
        if (c->plan->needs[node->outputs[k]].bounded) {
            TIDE_TRY(tide__context_size_bounded(c, node->outputs[k], &s->out[k], err));
            continue;
        }
        TIDE_TRY(tide__context_make_dynamic(c, node->outputs[k], &s->out[k], err));
        tide__context_note_output(c, node->outputs[k]);
    }
    return TIDE_OK;
}

static tide_status call(tide_context *c, size_t step_i, tide_error *err) {
    tide__context_step *s = &c->steps[step_i];
    tide_block *scratch = NULL;
    tide_kernel_args args = s->args;
    tide_status st = take_scratch(c, step_i, &scratch, &args.workspace, err);
    if (st == TIDE_OK) st = s->kernel.def->run(&s->kernel, &args, err);
    if (st == TIDE_OK) st = check_written(c, s, scratch, err);
    tide_block_unref(scratch);
    return st;
}

tide_status tide__context_run_dynamic(tide_context *c, size_t step_i, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    tide__context_step *s = &c->steps[step_i];
    TIDE_ASSERT(c->dynamic != NULL && s->dynamic);
    TIDE_TRY(find_kernel(c, node, s, err));
    tide_status st = make_values(c, node, s, err);
    if (st == TIDE_OK) st = tide__poison_before_step(c, step_i, err);
    if (st == TIDE_OK) st = call(c, step_i, err);
    if (st != TIDE_OK || !node->is_sized_by_shapes) drop_kernel(s);
    return st;
}
