// SPDX-License-Identifier: MIT
//
// context: creating, inputs, running. Its memory is in context_memory.c. See context.h.
#include "core/runtime/context.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/graph/region.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

static const tide_value *input_value(const tide_context *c, size_t i) {
    return &graph_of(c)->values[graph_of(c)->inputs[i]];
}

static bool shares_block(const tide_tensor *a, const tide_block *block) {
    return block != NULL && tide_tensor_storage(a)->block == block;
}

/// A run writes its buffer and its outputs before it may have read an input that lies there. A lazy clone of an output
/// is a block of its own: the output leaves it behind when the run begins.
static bool is_written_by_run(const tide_context *c, const tide_tensor *t) {
    if (shares_block(t, c->buffer) || tide__context_is_in_caller(c, t)) return true;
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (c->plan->needs[graph_of(c)->outputs[i]].dynamic) continue; // each run makes a new one
        if (shares_block(t, tide_tensor_storage(c->outputs[i])->block)) return true;
    }
    return false;
}

/// Kernels read row-major bytes without gaps (LT-6): a strided tensor is refused here and never
/// misread.
static tide_status refuse_strided(const tide_value *v, const tide_tensor *t, tide_error *err) {
    char shape[192], strides[192];
    tide_shape steps = tide_shape_make(tide_tensor_shape(t)->rank, tide_tensor_strides(t));
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID,
                  "input '%s' is not contiguous: shape %s with strides %s, and kernels read rows without gaps", v->name,
                  tide_shape_format(tide_tensor_shape(t), shape, sizeof shape),
                  tide_shape_format(&steps, strides, sizeof strides));
    tide_error_hint(err, "tide_tensor_contiguous makes a tensor without gaps of it");
    return st;
}

/// @param data  out: where the bytes are now
static tide_status check_input(const tide_context *c, size_t i, const tide_tensor *t, const void **data,
                               tide_error *err) {
    const tide_value *v = input_value(c, i);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is missing", v->name);
    if (tide_tensor_dtype(t) != v->dtype)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' wants %s, got %s", v->name, tide_dtype_name(v->dtype),
                         tide_dtype_name(tide_tensor_dtype(t)));
    if (!tide_shape_equal(tide_tensor_shape(t), &v->shape)) {
        char want[192], got[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' wants shape %s, got %s", v->name,
                         tide_shape_format(&v->shape, want, sizeof want),
                         tide_shape_format(tide_tensor_shape(t), got, sizeof got));
    }
    if (!tide_tensor_is_contiguous(t)) return refuse_strided(v, t, err);
    if (!tide_device_equal(tide_tensor_device(t), c->plan->device)) {
        char want[32], got[32];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is wanted on %s, got it on %s", v->name,
                         tide_device_format(c->plan->device, want, sizeof want),
                         tide_device_format(tide_tensor_device(t), got, sizeof got));
    }
    const tide_status st = tide_tensor_read(t, data, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "input '%s'", v->name);
        return st;
    }
    if (tide_tensor_size_bytes(t) > 0 && *data == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' has no memory", v->name);
    if (!is_written_by_run(c, t)) return TIDE_OK;
    TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' lies in memory that the same context writes", v->name);
    tide_error_hint(err, "clone the tensor first");
    return TIDE_ERR_INVALID;
}

static tide_status check_count(const tide_context *c, size_t n, tide_error *err) {
    if (n == graph_of(c)->n_inputs) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s' has %zu inputs, got %zu tensors", graph_of(c)->name,
                     graph_of(c)->n_inputs, n);
}

/// Between two runs an input may have been written, lazily cloned or changed by another owner.
static tide_status read_inputs(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const void *data;
        TIDE_TRY(check_input(c, i, c->inputs[i], &data, err));
        c->data[g->inputs[i]] = (void *)(uintptr_t)data;
    }
    return TIDE_OK;
}

/// Check the candidates and take them: after the checks nothing can fail. Addresses are taken when a run begins.
static tide_status take_candidates(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const void *unused;
        TIDE_TRY(check_input(c, i, c->next_inputs[i], &unused, err));
    }
    for (size_t i = 0; i < g->n_inputs; i++) {
        tide_tensor *old = c->inputs[i];
        c->inputs[i] = tide_tensor_ref(c->next_inputs[i]); // before the old one goes: they may be the same
        tide_tensor_unref(old);
    }
    c->inputs_set = true;
    return TIDE_OK;
}

tide_status tide_context_set_inputs(tide_context *c, tide_tensor *const *tensors, size_t n, tide_error *err) {
    TIDE_TRY(check_count(c, n, err));
    for (size_t i = 0; i < n; i++) c->next_inputs[i] = tensors[i];
    return take_candidates(c, err);
}

static bool find_input(const tide_context *c, const char *name, size_t *out) {
    for (size_t i = 0; i < graph_of(c)->n_inputs; i++) {
        if (strcmp(input_value(c, i)->name, name) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

tide_status tide_context_set_inputs_by_name(tide_context *c, const char *const *names, tide_tensor *const *tensors,
                                            size_t n, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_inputs; i++) c->next_inputs[i] = NULL;
    for (size_t k = 0; k < n; k++) {
        size_t i;
        if (!find_input(c, names[k], &i))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s' has no input '%s'", graph_of(c)->name, names[k]);
        if (c->next_inputs[i] != NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is given twice", names[k]);
        c->next_inputs[i] = tensors[k];
    }
    return take_candidates(c, err); // names what is missing
}

// ---- steps ----

static size_t count_operands(const tide_program *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_steps; i++) n += p->steps[i].kernel.node->n_inputs + p->steps[i].kernel.node->n_outputs;
    return n;
}

static tide_status name_scratch(tide__context_step *s, const tide_kernel *k, tide_error *err) {
    if (k->workspace_bytes == 0) return TIDE_OK;
    tide_text tag = {0};
    tide_text_addf(&tag, "%s.scratch", k->node->name);
    if (tag.failed) {
        tide_text_deinit(&tag);
        return TIDE_NO_MEMORY(err, "for a name");
    }
    s->scratch_tag = tag.data;
    return TIDE_OK;
}

static tide_status make_exec(tide_context *c, size_t step_i, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    if (c->steps[step_i].dynamic || c->steps[step_i].control)
        return TIDE_OK; // its kernel is made in each run, or never
    if (k->def->exec_create != NULL) TIDE_TRY(k->def->exec_create(k, &c->steps[step_i].args.exec, err));
    return TIDE_OK;
}

/// Lay out the operands of one step from `*at` on, and move `*at` behind them.
static tide_status lay_operands(tide_context *c, size_t step_i, tide_operand **at, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    tide__context_step *s = &c->steps[step_i];
    TIDE_ASSERT(node->n_outputs > 0 || node->closes != 0); // pruning leaves no other step that makes nothing
    s->in = *at;
    s->out = s->in + node->n_inputs;
    *at = s->out + node->n_outputs;
    s->args = (tide_kernel_args){.in = s->in, .n_in = node->n_inputs, .out = s->out, .n_out = node->n_outputs};
    s->scope = (tide_scope){.name = node->name, .kind = TIDE_SCOPE_OPERATOR, .index = (int32_t)step_i};
    s->dynamic = tide_node_is_dynamic(graph_of(c), node);
    s->control = tide_node_is_control(node);
    if (s->dynamic) return TIDE_OK;
    TIDE_TRY(tide__value_operands(graph_of(c), node->inputs, node->n_inputs, s->in, err));
    return tide__value_operands(graph_of(c), node->outputs, node->n_outputs, s->out, err);
}

static tide_status make_step(tide_context *c, size_t step_i, tide_operand **at, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    tide_status st = lay_operands(c, step_i, at, err);
    if (st == TIDE_OK) st = name_scratch(&c->steps[step_i], k, err);
    if (st == TIDE_OK) st = make_exec(c, step_i, err);
    if (st != TIDE_OK) tide_error_prefix(err, "node '%s' (%s)", k->node->name, k->node->op_type);
    return st;
}

static tide_status make_steps(tide_context *c, tide_error *err) {
    tide_operand *at = c->operands;
    for (size_t i = 0; i < c->plan->program->n_steps; i++) TIDE_TRY(make_step(c, i, &at, err));
    TIDE_ASSERT(at == c->operands + count_operands(c->plan->program));
    return TIDE_OK;
}

static void drop_steps(tide_context *c) {
    if (c->steps == NULL) return;
    const tide_program *p = c->plan->program;
    tide__context_drop_kernels(c);
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_kernel *k = &p->steps[i].kernel;
        void *exec = c->steps[i].args.exec;
        if (exec != NULL && k->def->exec_destroy != NULL) k->def->exec_destroy(k, exec);
        tide_host_free(c->steps[i].scratch_tag);
    }
    tide_host_free(c->steps);
}

// ---- creating and destroying ----

static tide_status take_tables(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    // One more than needed: an empty table is then no special case.
    c->values = tide_host_calloc(g->n_values + 1, sizeof *c->values);
    c->data = tide_host_calloc(g->n_values + 1, sizeof *c->data);
    c->inputs = tide_host_calloc(g->n_inputs + 1, sizeof *c->inputs);
    c->next_inputs = tide_host_calloc(g->n_inputs + 1, sizeof *c->next_inputs);
    c->outputs = tide_host_calloc(g->n_outputs + 1, sizeof *c->outputs);
    c->output_blocks = tide_host_calloc(g->n_outputs + 1, sizeof *c->output_blocks);
    c->steps = tide_host_calloc(c->plan->program->n_steps + 1, sizeof *c->steps);
    c->operands = tide_host_calloc(count_operands(c->plan->program) + 1, sizeof *c->operands);
    if (c->plan->program->n_dynamic + c->plan->program->n_bounded > 0) TIDE_TRY(tide__context_open_bounded(c, err));
    TIDE_TRY(tide__context_find_sizes(c, err));
    if (g->n_regions > 0)
        TIDE_TRY(TIDE_NEW(&c->ran, c->plan->program->n_steps + 1, err, "for the tables of %zu values", g->n_values));
    if (c->values == NULL || c->data == NULL || c->inputs == NULL || c->next_inputs == NULL || c->outputs == NULL ||
        c->output_blocks == NULL || c->steps == NULL || c->operands == NULL)
        return TIDE_NO_MEMORY(err, "for the tables of %zu values", g->n_values);
    return TIDE_OK;
}

/// Where the context's memory comes from.
static tide_status find_allocators(tide_context *c, const tide_context_options *opt, tide_error *err) {
    if (c->plan->program->n_dynamic + c->plan->program->n_bounded > 0)
        TIDE_TRY(tide_registry_acquire(c->plan->registry, c->plan->device, TIDE_DYNAMIC_KIND, &c->dynamic, err));
    if (opt->memory != NULL || opt->memory_bytes > 0) return tide__context_open_caller(c, opt, err);
    return tide_registry_acquire(c->plan->registry, c->plan->device, TIDE_KIND_WORKSPACE, &c->workspace, err);
}

static tide_status fill_context(tide_context *c, const tide_context_options *opt, tide_error *err) {
    TIDE_TRY(find_allocators(c, opt, err));
    TIDE_TRY(take_tables(c, err));
    TIDE_TRY(make_steps(c, err));
    TIDE_TRY(tide__context_take_memory(c, err));
    c->inputs_set = graph_of(c)->n_inputs == 0;
    c->run_scope = (tide_scope){.name = graph_of(c)->name, .kind = TIDE_SCOPE_RUN};
    return TIDE_OK;
}

tide_status tide_context_create(tide_inference_plan *plan, const tide_context_options *opt, tide_context **out,
                                tide_error *err) {
    if (opt->places_of != NULL &&
        (opt->mode != TIDE_RUN_PLANNED || opt->memory != NULL || opt->places_of->caller != NULL))
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "context: the places of another one are for planned mode without memory "
                         "of the caller");
    if (opt->mode == TIDE_RUN_PLANNED && plan->memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "context: planned mode, but the inference plan has no memory plan");
    tide_context *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "context: no memory");
    c->plan = tide_inference_plan_ref(plan);
    c->mode = c->stats.mode = opt->mode;
    c->fill = opt->fill;
    c->observer = opt->observer;
    c->places_of = opt->places_of;
    const tide_status st = fill_context(c, opt, err);
    c->places_of = NULL;
    if (st != TIDE_OK) {
        tide_error_prefix(err, "context");
        tide_context_destroy(c);
        return st;
    }
    *out = c;
    return TIDE_OK;
}

void tide_context_destroy(tide_context *c) {
    if (c == NULL) return;
    drop_steps(c);
    tide_host_free(c->operands);
    tide_host_free(c->next_inputs);
    tide_host_free(c->ran);
    tide_host_free(c->sized);
    tide_host_free(c->bounded);
    tide_host_free(c->smaller);
    tide__context_drop_memory(c);
    tide_allocator_unref(c->workspace);
    tide_allocator_unref(c->caller);
    tide_allocator_unref(c->dynamic);
    tide_inference_plan_unref(c->plan);
    tide_host_free(c);
}

// ---- look-ups ----

size_t tide_context_n_outputs(const tide_context *c) { return graph_of(c)->n_outputs; }

tide_tensor *tide_context_output(const tide_context *c, size_t i) {
    if (i >= graph_of(c)->n_outputs) return NULL;
    const uint32_t value_i = graph_of(c)->outputs[i];
    return c->plan->needs[value_i].bounded && !c->sized[value_i] ? NULL : c->outputs[i];
}

tide_tensor *tide_context_output_by_name(const tide_context *c, const char *name) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (strcmp(g->values[g->outputs[i]].name, name) == 0) return tide_context_output(c, i);
    }
    return NULL;
}

void tide_context_get_stats(const tide_context *c, tide_context_stats *out) { *out = c->stats; }

const char *tide_fill_name(tide_fill fill) {
    return fill == TIDE_FILL_ZERO ? "zero" : fill == TIDE_FILL_NONE ? "none" : "poison";
}

void tide_context_describe(const tide_context *c, tide_text *out) {
    const tide_inference_plan *p = c->plan;
    const tide_program *program = p->program;
    const tide_graph *g = program->graph;
    char device[32];
    tide_text_addf(out, "model        %s, %zu steps, %zu values%s\n", g->name, program->n_steps, g->n_values,
                   program->n_dynamic + program->n_bounded > 0 ? ", some sized while running" : "");
    tide_text_addf(out, "device       %s\n", tide_device_format(p->device, device, sizeof device));
    if (p->memory != NULL)
        tide_text_addf(out, "plan         %s, %" PRIu64 " bytes, shared with the contexts beside this one\n",
                       p->memory->strategy, p->memory->bytes);
    else
        tide_text_add(out, "plan         none\n");
    tide_text_addf(out, "mode         %s, fresh memory: %s\n", c->mode == TIDE_RUN_NAIVE ? "naive" : "planned",
                   tide_fill_name(c->fill));
    if (c->buffer != NULL)
        tide_text_addf(out, "buffer       %" PRIu64 " bytes at %p from %s\n", c->stats.buffer_bytes,
                       tide_context_buffer(c), tide_allocator_name(c->caller != NULL ? c->caller : c->workspace));
    else
        tide_text_addf(out, "buffer       none%s\n",
                       c->mode == TIDE_RUN_NAIVE ? ": tensors are allocated when born" : "");
    tide_text_addf(out, "weights      %zu, %" PRIu64 " bytes, of the plan\n", p->n_weights, p->weight_bytes);
    tide_text_addf(out, "tensors      %zu bound, %zu failed, %zu not tried\n", c->stats.n_bound, c->stats.n_failed,
                   c->stats.n_not_tried);
    tide_text_addf(out, "inputs       %zu, %s\n", g->n_inputs, c->inputs_set ? "set" : "not set");
    tide_text_addf(out, "outputs      %zu\n", g->n_outputs);
    tide_text_addf(out, "runs         %" PRIu64 "\n", c->stats.n_runs);
}

const bool *tide_context_ran(const tide_context *c) { return c->ran; }

const void *tide_context_buffer(const tide_context *c) { return c->buffer != NULL ? c->buffer->mem.data : NULL; }

tide_tensor *tide_context_value(const tide_context *c, uint32_t value_i) {
    const tide_graph *g = graph_of(c);
    if (value_i >= g->n_values) return NULL;
    if (c->plan->weights[value_i] != NULL) return c->plan->weights[value_i];
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i] == value_i) return c->inputs[i];
    }
    tide_tensor *t = c->values[value_i];
    const bool has_data = t != NULL && (tide_tensor_is_bound(t) || tide_tensor_size_bytes(t) == 0);
    return has_data ? t : NULL;
}

static void address(const tide_context *c, const uint32_t *values, size_t n, tide_operand *operands) {
    for (size_t i = 0; i < n; i++) {
        if (values[i] != TIDE_NO_VALUE) operands[i].data = c->data[values[i]];
    }
}

/// Whether every operand with bytes has an address.
static bool operands_are_there(const tide_context *c, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (values[i] == TIDE_NO_VALUE || c->plan->needs[values[i]].size_bytes == 0) continue;
        if (c->data[values[i]] == NULL) return false;
    }
    return true;
}

static tide_status call_kernel(tide_context *c, size_t step_i, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    tide__context_step *s = &c->steps[step_i];
    address(c, k->node->inputs, k->node->n_inputs, s->in);
    address(c, k->node->outputs, k->node->n_outputs, s->out);
    TIDE_ASSERT(operands_are_there(c, k->node->outputs, k->node->n_outputs));
    return k->def->run(k, &s->args, err);
}

/// What is sized while running has a block of its own in both modes, or its place like all others.
static tide_status do_dynamic_step(tide_context *c, size_t step_i, tide_error *err) {
    if (c->mode == TIDE_RUN_NAIVE) TIDE_TRY(tide__context_alloc_step(c, step_i, err));
    TIDE_TRY(tide__context_run_dynamic(c, step_i, err));
    TIDE_TRY(tide__poison_after_step(c, step_i, err));
    TIDE_TRY(tide__context_free_dynamic(c, step_i, err));
    if (c->mode == TIDE_RUN_NAIVE) tide__context_free_step(c, step_i);
    return TIDE_OK;
}

/// The step decides with which one the run goes on.
static tide_status do_control_step(tide_context *c, size_t step_i, size_t *next, tide_error *err) {
    c->steps[step_i].again = false;
    if (c->mode == TIDE_RUN_NAIVE) TIDE_TRY(tide__context_alloc_step(c, step_i, err));
    TIDE_TRY(tide__poison_before_step(c, step_i, err));
    TIDE_TRY(tide__context_run_control(c, step_i, next, err));
    c->steps[step_i].again = *next <= step_i;
    TIDE_TRY(tide__poison_after_step(c, step_i, err));
    TIDE_TRY(tide__context_free_dynamic(c, step_i, err));
    if (c->mode == TIDE_RUN_NAIVE) tide__context_free_step(c, step_i);
    return tide__context_skip(c, step_i, *next, err);
}

static tide_status do_step(tide_context *c, size_t step_i, size_t *next, tide_error *err) {
    TIDE_ASSERT(step_i < c->plan->program->n_steps && c->scratch == NULL);
    *next = step_i + 1;
    if (c->steps[step_i].control) return do_control_step(c, step_i, next, err);
    if (c->steps[step_i].dynamic) return do_dynamic_step(c, step_i, err);
    if (c->mode == TIDE_RUN_NAIVE) TIDE_TRY(tide__context_alloc_step(c, step_i, err));
    TIDE_TRY(tide__poison_before_step(c, step_i, err));
    TIDE_TRY(call_kernel(c, step_i, err));
    TIDE_TRY(tide__poison_after_step(c, step_i, err));
    if (c->mode == TIDE_RUN_NAIVE) tide__context_free_step(c, step_i);
    return TIDE_OK;
}

static tide_status run_step(tide_context *c, size_t step_i, size_t *next, tide_error *err) {
    tide__context_step *s = &c->steps[step_i];
    tide_scope_enter(&s->scope, c->observer);
    const tide_status st = do_step(c, step_i, next, err);
    if (st != TIDE_OK) {
        const tide_node *node = c->plan->program->steps[step_i].kernel.node;
        tide_error_prefix(err, "node '%s' (%s)", node->name, node->op_type);
        tide__poison_abandon(c);
        tide__context_drop_dynamic(c);
        if (c->mode == TIDE_RUN_NAIVE) tide__context_free_rest(c);
    }
    tide_scope_leave(&s->scope, c->observer);
    return st;
}

static tide_status run_steps(tide_context *c, tide_error *err) {
    const size_t n = c->plan->program->n_steps;
    if (c->ran != NULL) memset(c->ran, 0, n * sizeof *c->ran);
    for (size_t i = 0, next; i < n; i = next) {
        TIDE_TRY(run_step(c, i, &next, err));
        if (c->ran != NULL) c->ran[i] = true;
    }
    return TIDE_OK;
}

/// A guard on the buffer's block blocks every tensor in it.
static tide_status take_buffer(tide_context *c, tide_error *err) {
    if (c->buffer == NULL) return TIDE_OK;
    void *unused;
    const tide_status st = tide_block_write(c->buffer, &unused, err);
    if (st != TIDE_OK) tide_error_prefix(err, "plan buffer");
    return st;
}

/// Outputs before inputs: an input may be a lazy clone of an output, and keeps the memory that the output leaves.
static tide_status take_memory(tide_context *c, tide_error *err) {
    tide__context_drop_dynamic(c);
    TIDE_TRY(take_buffer(c, err));
    TIDE_TRY(tide__context_write_outputs(c, err));
    return read_inputs(c, err);
}

static tide_status run_inside_scope(tide_context *c, tide_error *err) {
    TIDE_TRY(take_memory(c, err));
    TIDE_ASSERT(c->scratch == NULL);
    tide__poison_begin(c);
    TIDE_TRY(run_steps(c, err));
    TIDE_TRY(tide__context_copy_outputs(c, err));
    return tide__poison_end(c, err);
}

tide_status tide_context_run(tide_context *c, tide_error *err) {
    if (!c->inputs_set)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s': run before its %zu inputs were set",
                         c->plan->program->graph->name, c->plan->program->graph->n_inputs);
    c->run_scope.index = (int32_t)(c->stats.n_runs & INT32_MAX);
    c->run_scope.block_id = c->buffer != NULL ? c->buffer->mem.block_id : 0;
    tide_scope_enter(&c->run_scope, c->observer);
    tide__context_tell_sizes(c);
    const tide_status st = run_inside_scope(c, err);
    tide_scope_leave(&c->run_scope, c->observer);
    if (st != TIDE_OK) return st;
    c->stats.n_runs++;
    tide__context_note_sizes(c);
    const tide__sharing *s = &c->plan->sharing;
    c->stats.n_view_bytes += c->mode == TIDE_RUN_PLANNED ? s->copied_bytes : s->naive_copied_bytes;
    return st;
}
