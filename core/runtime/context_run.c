// SPDX-License-Identifier: MIT
//
// Running a context: each step inside its own scope; nothing of ours is allocated here in planned mode. See context.h.
#include "core/runtime/context_internal.h"

static void address(const tide_context *c, const uint32_t *values, size_t n, tide_operand *operands) {
    for (size_t i = 0; i < n; i++) {
        if (values[i] != TIDE_NO_VALUE) operands[i].data = c->data[values[i]];
    }
}

static tide_status call_kernel(tide_context *c, size_t step_i, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    tide__context_step *s = &c->steps[step_i];
    address(c, k->node->inputs, k->node->n_inputs, s->in);
    address(c, k->node->outputs, k->node->n_outputs, s->out);
    return k->def->run(k, &s->args, err);
}

static tide_status do_step(tide_context *c, size_t step_i, tide_error *err) {
    if (c->mode == TIDE_RUN_NAIVE) TIDE_TRY(tide__context_births(c, step_i, err));
    TIDE_TRY(tide__poison_births(c, step_i, err));
    TIDE_TRY(call_kernel(c, step_i, err));
    TIDE_TRY(tide__poison_deaths(c, step_i, err));
    if (c->mode == TIDE_RUN_NAIVE) tide__context_deaths(c, step_i);
    return TIDE_OK;
}

static tide_status run_step(tide_context *c, size_t step_i, tide_error *err) {
    tide__context_step *s = &c->steps[step_i];
    tide_scope_enter(&s->scope, c->observer);
    const tide_status st = do_step(c, step_i, err);
    if (st != TIDE_OK) {
        const tide_node *node = c->plan->program->steps[step_i].kernel.node;
        tide_error_prefix(err, "node '%s' (%s)", node->name, node->op_type);
        tide__poison_abandon(c);
        if (c->mode == TIDE_RUN_NAIVE) tide__context_bury_all(c);
    }
    tide_scope_leave(&s->scope, c->observer);
    return st;
}

static tide_status run_steps(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < c->plan->program->n_steps; i++) TIDE_TRY(run_step(c, i, err));
    return TIDE_OK;
}

/// A guard on the buffer's block stands in the way of every tensor in it.
static tide_status take_buffer(tide_context *c, tide_error *err) {
    if (c->buffer == NULL) return TIDE_OK;
    void *unused;
    const tide_status st = tide_block_write(c->buffer, &unused, err);
    if (st != TIDE_OK) tide_error_prefix(err, "plan buffer");
    return st;
}

/// Outputs before inputs: an input may be a lazy clone of an output, and keeps the memory that the output leaves.
static tide_status take_memory(tide_context *c, tide_error *err) {
    TIDE_TRY(take_buffer(c, err));
    TIDE_TRY(tide__context_write_outputs(c, err));
    return tide__context_read_inputs(c, err);
}

static tide_status run_inside_scope(tide_context *c, tide_error *err) {
    TIDE_TRY(take_memory(c, err));
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
    tide_scope_enter(&c->run_scope, c->observer);
    const tide_status st = run_inside_scope(c, err);
    tide_scope_leave(&c->run_scope, c->observer);
    if (st != TIDE_OK) return st;
    c->stats.n_runs++;
    const tide__sharing *s = &c->plan->sharing;
    c->stats.n_view_bytes += c->mode == TIDE_RUN_PLANNED ? s->copied_bytes : s->naive_copied_bytes;
    return st;
}
