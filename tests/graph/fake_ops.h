// SPDX-License-Identifier: MIT
//
// Operators of the tests' own, with counters: how often each function was called.
#ifndef TIDE_TESTS_GRAPH_FAKE_OPS_H
#define TIDE_TESTS_GRAPH_FAKE_OPS_H

#include "tests/graph/graph_fixture.h"

static struct {
    int infer, prepare, destroy, exec_create, exec_destroy, run;
    tide_status run_status; // what "Scratch" answers
} fake_calls;

FIXTURE tide_status fake_infer_same(const tide_infer *x, tide_error *err) {
    (void)err;
    fake_calls.infer++;
    x->out[0].dtype = x->in[0].dtype;
    x->out[0].shape = x->in[0].shape;
    return TIDE_OK;
}

FIXTURE size_t fake_count(const tide_operand *o) { return o->size_bytes / tide_dtype_size(o->dtype); }

FIXTURE tide_status fake_run_double(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    fake_calls.run++;
    for (size_t i = 0; i < fake_count(&a->out[0]); i++)
        ((float *)a->out[0].data)[i] = 2 * ((const float *)a->in[0].data)[i];
    return TIDE_OK;
}

FIXTURE tide_status fake_infer_shape(const tide_infer *x, tide_error *err) {
    (void)err;
    const int64_t rank = x->in[0].shape.rank;
    x->out[0].dtype = TIDE_I64;
    x->out[0].shape = tide_shape_make(1, &rank);
    return TIDE_OK;
}

FIXTURE tide_status fake_run_shape(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    fake_calls.run++;
    if (a->out[0].size_bytes > 0) memcpy(a->out[0].data, a->in[0].shape.dims, a->out[0].size_bytes);
    return TIDE_OK;
}

/// A float tensor whose extents are the content of input 0.
FIXTURE tide_status fake_infer_fill(const tide_infer *x, tide_error *err) {
    if (x->in[0].data == NULL) return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "the shape operand is not known");
    x->out[0].dtype = TIDE_F32;
    x->out[0].shape = tide_shape_make((int32_t)fake_count(&x->in[0]), x->in[0].data);
    return TIDE_OK;
}

FIXTURE tide_status fake_run_fill(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    fake_calls.run++;
    for (size_t i = 0; i < fake_count(&a->out[0]); i++) ((float *)a->out[0].data)[i] = 7;
    return TIDE_OK;
}

FIXTURE tide_status fake_run_sum(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    fake_calls.run++;
    for (size_t i = 0; i < fake_count(&a->out[0]); i++) {
        float sum = 0;
        for (size_t j = 0; j < a->n_in; j++) {
            if (tide_operand_present(&a->in[j])) sum += ((const float *)a->in[j].data)[i];
        }
        ((float *)a->out[0].data)[i] = sum;
    }
    return TIDE_OK;
}

// "Scratch": all optional functions, to see that each is undone.
FIXTURE tide_status fake_prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    (void)x, (void)err;
    fake_calls.prepare++;
    k->state = tide_host_alloc(8);
    k->workspace_bytes = 100;
    return TIDE_OK;
}
FIXTURE void fake_destroy(tide_kernel *k) {
    fake_calls.destroy++;
    tide_host_free(k->state);
}
FIXTURE tide_status fake_exec_create(const tide_kernel *k, void **exec, tide_error *err) {
    (void)k, (void)err;
    fake_calls.exec_create++;
    *exec = tide_host_alloc(8);
    return TIDE_OK;
}
FIXTURE void fake_exec_destroy(const tide_kernel *k, void *exec) {
    (void)k;
    fake_calls.exec_destroy++;
    tide_host_free(exec);
}
FIXTURE tide_status fake_run_scratch(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    fake_calls.run++;
    assert_non_null(k->state);
    assert_non_null(a->exec);
    assert_non_null(a->workspace);
    assert_int_equal((uintptr_t)a->workspace % 64, 0);
    memset(a->workspace, 0xEE, 100);
    if (fake_calls.run_status != TIDE_OK) return TIDE_FAIL(err, fake_calls.run_status, "no luck");
    memcpy(a->out[0].data, a->in[0].data, a->out[0].size_bytes);
    return TIDE_OK;
}

FIXTURE tide_status fake_infer_nothing(const tide_infer *x, tide_error *err) {
    (void)x, (void)err;
    return TIDE_OK;
}
FIXTURE tide_status fake_infer_open(const tide_infer *x, tide_error *err) {
    (void)err;
    const int64_t open = TIDE_DIM_UNKNOWN;
    x->out[0].dtype = TIDE_F32;
    x->out[0].shape = tide_shape_make(1, &open);
    return TIDE_OK;
}

/// Writes no content: the pages of a large result are never touched.
FIXTURE tide_status fake_run_nothing(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)a, (void)err;
    fake_calls.run++;
    return TIDE_OK;
}

/// A million multiply-adds per element.
FIXTURE double fake_work(const tide_infer *x) { return 1e6 * (double)fake_count(&x->out[0]); }

static const tide_op_def fake_table[] = {
    {.domain = "", .name = "Double", .since = 1, .infer = fake_infer_same, .run = fake_run_double},
    {.domain = "", .name = "Sum", .since = 1, .infer = fake_infer_same, .run = fake_run_sum},
    {.domain = "",
     .name = "Conv",
     .since = 1,
     .flags = TIDE_OP_FUSES_ACT,
     .infer = fake_infer_same,
     .run = fake_run_sum},
    {.domain = "", .name = "BatchNormalization", .since = 1, .infer = fake_infer_same, .run = fake_run_double},
    {.domain = "", .name = "Relu", .since = 1, .infer = fake_infer_same, .run = fake_run_double},
    {.domain = "", .name = "Clip", .since = 1, .infer = fake_infer_same, .run = fake_run_double},
    {.domain = "",
     .name = "Shape",
     .since = 1,
     .flags = TIDE_OP_SHAPE_ONLY,
     .infer = fake_infer_shape,
     .run = fake_run_shape},
    {.domain = "", .name = "Fill", .since = 1, .infer = fake_infer_fill, .run = fake_run_fill},
    {.domain = "", .name = "Blank", .since = 1, .infer = fake_infer_fill, .run = fake_run_nothing},
    {.domain = "", .name = "Heavy", .since = 1, .infer = fake_infer_same, .work = fake_work, .run = fake_run_double},
    {.domain = "",
     .name = "Random",
     .since = 1,
     .flags = TIDE_OP_NO_FOLD,
     .infer = fake_infer_same,
     .run = fake_run_double},
    {.domain = "", .name = "Planned", .since = 1, .flags = TIDE_OP_PLAN_ONLY, .infer = fake_infer_same},
    {.domain = "",
     .name = "Scratch",
     .since = 1,
     .infer = fake_infer_same,
     .prepare = fake_prepare,
     .destroy = fake_destroy,
     .exec_create = fake_exec_create,
     .exec_destroy = fake_exec_destroy,
     .run = fake_run_scratch},
    {.domain = "", .name = "Lazy", .since = 1, .infer = fake_infer_nothing, .run = fake_run_double},
    {.domain = "", .name = "Open", .since = 1, .infer = fake_infer_open, .run = fake_run_double},
};

FIXTURE void resolve_fakes(tide_graph *g) {
    memset(&fake_calls, 0, sizeof fake_calls);
    for (size_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < sizeof fake_table / sizeof fake_table[0]; k++) {
            if (strcmp(g->nodes[i].op_type, fake_table[k].name) == 0) g->nodes[i].def = &fake_table[k];
        }
        assert_non_null(g->nodes[i].def);
    }
}

FIXTURE tide_status sort_and_infer(tide_graph *g, bool fold, tide_error *err) {
    tide_order o = {0};
    resolve_fakes(g);
    assert_tide_ok(tide_graph_sort(g, &o, err), err);
    const tide_status st = tide_graph_infer(g, &o, fold, err);
    tide_order_deinit(&o);
    return st;
}

#endif
