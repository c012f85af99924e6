// SPDX-License-Identifier: MIT
//
// Running one node now, on constants: the engine of constant folding. The results come from the registry of the
// process, so no instrumented allocator of a run under study ever sees them.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"

typedef struct evaluation {
    tide_kernel kernel;
    bool prepared;
    void *exec;
    tide_tensor *scratch;
    tide_operand *out; // [n_out], with data
    size_t n_out;
} evaluation;

static tide_status make_results(evaluation *e, const tide_operand *out, tide_tensor **results, tide_error *err) {
    for (size_t i = 0; i < e->n_out; i++) {
        e->out[i] = out[i];
        e->out[i].data = NULL;
        if (!tide_operand_present(&out[i])) continue;
        TIDE_TRY(tide__constant_create(out[i].dtype, &out[i].shape, e->kernel.node->name, &results[i], err));
        TIDE_ASSERT(tide_tensor_size_bytes(results[i]) == out[i].size_bytes);
        e->out[i].data = tide_tensor_data(results[i]);
    }
    return TIDE_OK;
}

static tide_status prepare(evaluation *e, const tide_operand *in, size_t n_in, const tide_operand *out,
                           tide_error *err) {
    const tide_op_def *def = e->kernel.def;
    const tide_prepare x = {.node = e->kernel.node, .in = in, .n_in = n_in, .out = out, .n_out = e->n_out};
    if (def->prepare != NULL) TIDE_TRY(def->prepare(&x, &e->kernel, err));
    e->prepared = true;
    if (def->exec_create != NULL) TIDE_TRY(def->exec_create(&e->kernel, &e->exec, err));
    if (e->kernel.workspace_bytes == 0) return TIDE_OK;
    const int64_t bytes = (int64_t)e->kernel.workspace_bytes;
    const tide_shape shape = tide_shape_make(1, &bytes);
    return tide__constant_create(TIDE_U8, &shape, e->kernel.node->name, &e->scratch, err);
}

static void evaluation_deinit(evaluation *e) {
    TIDE_ASSERT(e->prepared || (e->exec == NULL && e->scratch == NULL));
    const tide_op_def *def = e->kernel.def;
    if (e->exec != NULL && def->exec_destroy != NULL) def->exec_destroy(&e->kernel, e->exec);
    if (e->prepared && def->destroy != NULL) def->destroy(&e->kernel);
    tide_tensor_unref(e->scratch);
    tide_host_free(e->out);
}

tide_status tide__node_eval(const tide_node *node, const tide_operand *in, size_t n_in, const tide_operand *out,
                            size_t n_out, tide_tensor **results, tide_error *err) {
    evaluation e = {.kernel = {.def = node->def, .node = node}, .n_out = n_out};
    e.out = tide_host_calloc(n_out, sizeof *e.out);
    tide_tensor **made = tide_host_calloc(n_out, sizeof *made);
    tide_status st = TIDE_OK;
    if (e.out == NULL || made == NULL) {
        st = TIDE_NO_MEMORY(err, "for %s", node->name);
        goto done;
    }
    TIDE_TRY_OR(done, st, prepare(&e, in, n_in, out, err));
    TIDE_TRY_OR(done, st, make_results(&e, out, made, err));
    const tide_kernel_args args = {.in = in,
                                   .n_in = n_in,
                                   .out = e.out,
                                   .n_out = n_out,
                                   .exec = e.exec,
                                   .workspace = e.scratch != NULL ? tide_tensor_data(e.scratch) : NULL};
    TIDE_TRY_OR(done, st, node->def->run(&e.kernel, &args, err));
    for (size_t i = 0; i < n_out; i++) results[i] = tide_tensor_take(&made[i]);
done:
    for (size_t i = 0; made != NULL && i < n_out; i++) tide_tensor_unref(made[i]);
    tide_host_free(made);
    evaluation_deinit(&e);
    return st;
}
