// SPDX-License-Identifier: MIT
//
// context: made, asked and destroyed. Its memory is in context_memory.c, inputs in context_inputs.c, running in
// context_run.c. See context.h.
#include "core/runtime/context.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/runtime/context_internal.h"
#include "core/runtime/value_operand.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

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
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a name");
    }
    s->scratch_tag = tag.data;
    return TIDE_OK;
}

static tide_status make_exec(tide_context *c, size_t step_i, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    if (k->def->exec_create != NULL) TIDE_TRY(k->def->exec_create(k, &c->steps[step_i].args.exec, err));
    return TIDE_OK;
}

/// Lay out the operands of one step from `*at` on, and move `*at` behind them.
static tide_status lay_operands(tide_context *c, size_t step_i, tide_operand **at, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    tide__context_step *s = &c->steps[step_i];
    s->in = *at;
    s->out = s->in + node->n_inputs;
    *at = s->out + node->n_outputs;
    s->args = (tide_kernel_args){.in = s->in, .n_in = node->n_inputs, .out = s->out, .n_out = node->n_outputs};
    s->scope = (tide_scope){.name = node->name, .kind = TIDE_SCOPE_OPERATOR, .index = (int32_t)step_i};
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
    return TIDE_OK;
}

static void drop_steps(tide_context *c) {
    if (c->steps == NULL) return;
    const tide_program *p = c->plan->program;
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_kernel *k = &p->steps[i].kernel;
        void *exec = c->steps[i].args.exec;
        if (exec != NULL && k->def->exec_destroy != NULL) k->def->exec_destroy(k, exec);
        tide_host_free(c->steps[i].scratch_tag);
    }
    tide_host_free(c->steps);
}

// ---- the whole ----

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
    if (c->values == NULL || c->data == NULL || c->inputs == NULL || c->next_inputs == NULL || c->outputs == NULL ||
        c->output_blocks == NULL || c->steps == NULL || c->operands == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the tables of %zu values", g->n_values);
    return TIDE_OK;
}

static tide_status fill_context(tide_context *c, tide_error *err) {
    TIDE_TRY(tide_registry_acquire(c->plan->registry, c->plan->device, TIDE_KIND_WORKSPACE, &c->workspace, err));
    TIDE_TRY(take_tables(c, err));
    TIDE_TRY(make_steps(c, err));
    TIDE_TRY(tide__context_take_memory(c, err));
    c->inputs_set = graph_of(c)->n_inputs == 0;
    c->run_scope = (tide_scope){.name = graph_of(c)->name, .kind = TIDE_SCOPE_RUN};
    return TIDE_OK;
}

tide_status tide_context_create(tide_inference_plan *plan, const tide_context_options *opt, tide_context **out,
                                tide_error *err) {
    if (opt->mode == TIDE_RUN_PLANNED && plan->memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "context: planned mode, but the inference plan has no memory plan");
    tide_context *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "context: no memory");
    c->plan = tide_inference_plan_ref(plan);
    c->mode = c->stats.mode = opt->mode;
    c->fill = opt->fill;
    c->observer = opt->observer;
    const tide_status st = fill_context(c, err);
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
    tide__context_drop_memory(c);
    tide_allocator_unref(c->workspace);
    tide_inference_plan_unref(c->plan);
    tide_host_free(c);
}

// ---- questions ----

size_t tide_context_n_outputs(const tide_context *c) { return graph_of(c)->n_outputs; }

tide_tensor *tide_context_output(const tide_context *c, size_t i) {
    return i < graph_of(c)->n_outputs ? c->outputs[i] : NULL;
}

tide_tensor *tide_context_output_by_name(const tide_context *c, const char *name) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (strcmp(g->values[g->outputs[i]].name, name) == 0) return c->outputs[i];
    }
    return NULL;
}

void tide_context_get_stats(const tide_context *c, tide_context_stats *out) { *out = c->stats; }

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
