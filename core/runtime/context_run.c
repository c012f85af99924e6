// SPDX-License-Identifier: MIT
//
// Running a context: each step inside its own scope; nothing of ours is allocated here in planned mode. See context.h.
#include <string.h>

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

static tide_status run_step(tide_context *c, size_t step_i, tide_error *err) {
    const bool naive = c->mode == TIDE_RUN_NAIVE;
    tide__context_step *s = &c->steps[step_i];
    tide_scope_enter(&s->scope, c->observer);
    tide_status st = naive ? tide__context_births(c, step_i, err) : TIDE_OK;
    if (st == TIDE_OK) st = call_kernel(c, step_i, err);
    if (naive && st == TIDE_OK) tide__context_deaths(c, step_i);
    if (naive && st != TIDE_OK) tide__context_bury_all(c);
    tide_scope_leave(&s->scope, c->observer);
    if (st != TIDE_OK) {
        const tide_node *node = c->plan->program->steps[step_i].kernel.node;
        tide_error_prefix(err, "node '%s' (%s)", node->name, node->op_type);
    }
    return st;
}

static void copy_output(tide_context *c, size_t i) {
    const uint32_t v = c->plan->program->graph->outputs[i];
    const size_t n = tide_tensor_size_bytes(c->outputs[i]);
    if (n > 0) memcpy(tide_tensor_data(c->outputs[i]), c->data[v], n);
    c->stats.n_copied_bytes += n;
}

/// Outputs that no step writes are inputs or constants handed through.
static void copy_outputs(tide_context *c) {
    const tide_graph *g = c->plan->program->graph;
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (c->values[g->outputs[i]] == NULL) copy_output(c, i);
    }
}

static tide_status run_steps(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < c->plan->program->n_steps; i++) TIDE_TRY(run_step(c, i, err));
    return TIDE_OK;
}

tide_status tide_context_run(tide_context *c, tide_error *err) {
    if (!c->inputs_set)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s': run before its %zu inputs were set",
                         c->plan->program->graph->name, c->plan->program->graph->n_inputs);
    c->run_scope.index = (int32_t)(c->stats.n_runs & INT32_MAX);
    tide_scope_enter(&c->run_scope, c->observer);
    const tide_status st = run_steps(c, err);
    if (st == TIDE_OK) copy_outputs(c);
    tide_scope_leave(&c->run_scope, c->observer);
    if (st == TIDE_OK) c->stats.n_runs++;
    return st;
}
