// SPDX-License-Identifier: MIT
//
// The work of a program's steps. See pass_recompute.h.
#include "core/base/host_alloc.h"
#include "planner/passes/pass_recompute.h"

static tide_operand operand_of(const tide_graph *g, uint32_t value_i) {
    tide_operand o = {.dtype = TIDE_DTYPE_UNDEFINED};
    if (value_i == TIDE_NO_VALUE) return o;
    const tide_value *v = &g->values[value_i];
    const void *data = NULL;
    if (v->dtype == TIDE_DTYPE_UNDEFINED || !v->has_shape || !tide_shape_known(&v->shape)) return o;
    o.dtype = v->dtype;
    o.shape = v->shape;
    if (tide_shape_bytes(&o.shape, o.dtype, &o.size_bytes, NULL) != TIDE_OK)
        return (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    if (v->constant != NULL && tide_tensor_read(v->constant, &data, NULL) == TIDE_OK) o.data = (void *)(uintptr_t)data;
    return o;
}

static double work_of(const tide_infer *x, bool views_are_free) {
    const tide_op_def *def = x->node->def;
    if (def != NULL && def->work != NULL) return def->work(x);
    if (def != NULL && views_are_free && tide_op_alias_of(def, x, 0, 0).kind == TIDE_OP_ALIAS_VIEW) return 0;
    double elements = 0;
    for (size_t k = 0; k < x->n_out; k++) {
        if (tide_operand_present(&x->out[k]))
            elements += (double)(x->out[k].size_bytes / tide_dtype_size(x->out[k].dtype));
    }
    return elements;
}

tide_status tide__program_work(const tide_program *program, const tide_pass_options *opt, double *per_step,
                               double *total, tide_error *err) {
    const tide_graph *g = program->graph;
    double sum = 0;
    for (size_t step = 0; step < program->n_steps; step++) {
        const tide_node *n = &g->nodes[program->steps[step].node];
        tide_operand *in = tide_host_calloc(n->n_inputs + n->n_outputs + 1, sizeof *in);
        if (in == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the work of node '%s'", n->name);
        tide_operand *out = in + n->n_inputs;
        for (size_t k = 0; k < n->n_inputs; k++) in[k] = operand_of(g, n->inputs[k]);
        for (size_t k = 0; k < n->n_outputs; k++) out[k] = operand_of(g, n->outputs[k]);
        const tide_infer x = {.node = n, .in = in, .n_in = n->n_inputs, .out = out, .n_out = n->n_outputs};
        const double work = work_of(&x, !opt->off[TIDE_PASS_VIEWS]);
        tide_host_free(in);
        if (per_step != NULL) per_step[step] = work;
        sum += work;
    }
    if (total != NULL) *total = sum;
    return TIDE_OK;
}
