// SPDX-License-Identifier: MIT
//
// One oneDNN primitive as a kernel. See dnnl_prim.h.
#include "core/ops/dnnl_prim.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "core/ops/act.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/op_util.h"
#include "core/ops/ops.h"

tide_status tide_dnnl_fail(tide_error *err, const tide_node *node, dnnl_status_t st, const char *what) {
    const tide_status ours = st == dnnl_out_of_memory ? TIDE_ERR_NOMEM : TIDE_ERR_BACKEND;
    if (ours == TIDE_ERR_NOMEM) return TIDE_OP_FAIL(err, node, ours, "no memory in oneDNN for its %s", what);
    return TIDE_OP_FAIL(err, node, ours, "oneDNN %s: %s", what, tide__dnnl_status2str(st));
}

#define DNNL_TRY(expr, what)                                                                                           \
    do {                                                                                                               \
        const dnnl_status_t dnnl_st_ = (expr);                                                                         \
        if (dnnl_st_ != dnnl_success) return tide_dnnl_fail(err, node, dnnl_st_, what);                                \
    } while (0)

// ---- threads ----
//
// One thread per kernel, unless the user says otherwise (--intra-threads, OMP_NUM_THREADS): contexts are what runs in
// parallel. With oneDNN's default of one thread per core, scratchpads grow with the cores (conv 1x64x56x56 3x3: 295 KB
// with one thread, 613 KB with two), so that a plan would depend on the machine that made it, and so would the last
// bits of the results; and where cores are shared, its spinning barriers made a model of 0.14 ms take 140 ms.

static atomic_uint wanted; // by tide_ops_set_threads; 0: not set

/// The first number of OMP_NUM_THREADS, which may be a list, one for each level; 0: it says nothing.
static uint32_t threads_of_environment(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    const long n = text != NULL ? strtol(text, NULL, 10) : 0;
    return n >= 1 && n <= TIDE_OPS_MAX_THREADS ? (uint32_t)n : 0;
}

uint32_t tide_ops_threads(void) {
    const uint32_t said = atomic_load(&wanted), environment = said > 0 ? 0 : threads_of_environment();
    return said > 0 ? said : environment > 0 ? environment : 1;
}

tide_status tide_ops_set_threads(uint32_t n, tide_error *err) {
    if (n < 1 || n > TIDE_OPS_MAX_THREADS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "kernels cannot use %u threads: 1 to %d", (unsigned)n,
                         TIDE_OPS_MAX_THREADS);
    int now;
    TIDE_TRY(tide__dnnl_open(err));
    if (n > 1 && !tide__omp_get(&now))
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "this oneDNN runs without OpenMP: its threads cannot be set");
    atomic_store(&wanted, n);
    return TIDE_OK;
}

// Both around every creation and execution; the setting is the calling thread's own and is given back.
static int cap_begin(void) {
    int before = 0;
    if (tide__omp_get(&before)) (void)tide__omp_set((int)tide_ops_threads());
    return before;
}

static void cap_end(int before) { (void)tide__omp_set(before); }

// ---- engine ----

static pthread_once_t engine_once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t engine_status;

static void engine_make(void) { engine_status = tide__dnnl_engine_create(&engine, dnnl_cpu, 0); }

/// The one CPU engine of the process, made at the first call, never destroyed. Thread-safe.
static tide_status get_engine(const tide_node *node, dnnl_engine_t *out, tide_error *err) {
    pthread_once(&engine_once, engine_make);
    DNNL_TRY(engine_status, "engine");
    *out = engine;
    return TIDE_OK;
}

// ---- descriptors ----

tide_status tide_dnnl_md(const tide_node *node, int n, const int64_t *dims, const int64_t *strides,
                         dnnl_memory_desc_t *out, tide_error *err) {
    TIDE_TRY(tide__dnnl_open(err));
    dnnl_dims_t d = {0}, s = {0};
    int64_t step = 1;
    for (int i = n - 1; i >= 0; i--) {
        // Inside, oneDNN counts in int and divides by what is left of a longer number: 2^32 rows are a division by 0.
        if (dims[i] > INT32_MAX && n > 1)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED,
                                "an extent of %" PRId64 " is past the 2^31-1 that this kernel can count", dims[i]);
        d[i] = dims[i];
        s[i] = strides != NULL ? strides[i] : step;
        step *= dims[i];
    }
    DNNL_TRY(tide__dnnl_memory_desc_init_by_strides(out, n, d, dnnl_f32, s), "memory descriptor");
    return TIDE_OK;
}

/// Whether oneDNN does the activation: dnnl_prim.h says which and why. Every operation descriptor begins with its kind.
static bool left_to_dnnl(const_dnnl_op_desc_t op_desc, const tide_activation *act) {
    if (act->kind == TIDE_ACT_SIGMOID) return *(const dnnl_primitive_kind_t *)op_desc == dnnl_matmul;
    return act->kind == TIDE_ACT_TANH;
}

static dnnl_status_t append_activation(dnnl_post_ops_t ops, const tide_activation *act) {
    const dnnl_alg_kind_t alg = act->kind == TIDE_ACT_TANH ? dnnl_eltwise_tanh : dnnl_eltwise_logistic;
    return tide__dnnl_post_ops_append_eltwise(ops, 1.0f, alg, 0.0f, 0.0f);
}

static tide_status set_attr(const tide_node *node, const_dnnl_op_desc_t op_desc, dnnl_primitive_attr_t attr,
                            dnnl_post_ops_t ops, const tide_dnnl_post *post, tide_error *err) {
    DNNL_TRY(tide__dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "scratchpad mode");
    if (post == NULL) return TIDE_OK;
    if (post->scale != 1.0f)
        DNNL_TRY(tide__dnnl_primitive_attr_set_output_scales(attr, 1, 0, &post->scale), "output scale");
    if (post->sum) DNNL_TRY(tide__dnnl_post_ops_append_sum(ops, 1.0f), "sum");
    if (left_to_dnnl(op_desc, &post->act)) DNNL_TRY(append_activation(ops, &post->act), "activation");
    DNNL_TRY(tide__dnnl_primitive_attr_set_post_ops(attr, ops), "post-operations");
    return TIDE_OK;
}

// ---- primitive ----

static tide_status describe(const tide_node *node, const_dnnl_op_desc_t op_desc, const tide_dnnl_post *post,
                            dnnl_primitive_desc_t *out, tide_error *err) {
    dnnl_engine_t eng = NULL;
    TIDE_TRY(get_engine(node, &eng, err));
    dnnl_primitive_attr_t attr;
    DNNL_TRY(tide__dnnl_primitive_attr_create(&attr), "attributes");
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t ds = tide__dnnl_post_ops_create(&ops);
    tide_status st = ds == dnnl_success ? set_attr(node, op_desc, attr, ops, post, err)
                                        : tide_dnnl_fail(err, node, ds, "post-operations");
    if (st == TIDE_OK) {
        const int threads = cap_begin();
        ds = tide__dnnl_primitive_desc_create(out, op_desc, attr, eng, NULL);
        cap_end(threads);
        if (ds != dnnl_success) st = tide_dnnl_fail(err, node, ds, "primitive descriptor");
    }
    if (ops != NULL) tide__dnnl_post_ops_destroy(ops);
    tide__dnnl_primitive_attr_destroy(attr);
    return st;
}

tide_status tide_dnnl_prim_init(const tide_node *node, const_dnnl_op_desc_t op_desc, const tide_dnnl_post *post,
                                const tide_dnnl_bind *binds, size_t n_binds, tide_dnnl_prim *out, tide_error *err) {
    dnnl_primitive_desc_t pd;
    TIDE_TRY(describe(node, op_desc, post, &pd, err));
    for (size_t i = 0; i < n_binds; i++) out->binds[i] = binds[i];
    out->n_binds = n_binds;
    if (post != NULL && !left_to_dnnl(op_desc, &post->act)) out->act = post->act;
    out->scratch_bytes =
        tide__dnnl_memory_desc_get_size(tide__dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    out->impl = "?";
    (void)tide__dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&out->impl);
    out->desc = pd;
    return TIDE_OK;
}

tide_status tide_dnnl_kernel_set(tide_kernel *k, const_dnnl_op_desc_t op_desc, const tide_dnnl_post *post,
                                 const tide_dnnl_bind *binds, size_t n_binds, tide_error *err) {
    tide_dnnl_prim *p;
    TIDE_TRY(TIDE_OP_NEW(&p, k->node, err));
    const tide_status st = tide_dnnl_prim_init(k->node, op_desc, post, binds, n_binds, p, err);
    if (st != TIDE_OK) {
        tide_host_free(p);
        return st;
    }
    k->state = p;
    k->workspace_bytes = p->scratch_bytes;
    return TIDE_OK;
}

void tide_dnnl_kernel_destroy(tide_kernel *k) {
    tide_dnnl_prim *p = k->state;
    if (p == NULL) return;
    if (p->desc != NULL) tide__dnnl_primitive_desc_destroy(p->desc);
    tide_host_free(p);
    k->state = NULL;
}

// ---- execution ----

typedef struct dnnl_exec {
    dnnl_primitive_t prim; // owned; its code is in oneDNN's cache and the same for all contexts
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[TIDE_DNNL_MAX_BINDS + 1]; // the binds in order, then the scratchpad if there is one
    int n_args;
} dnnl_exec;

static tide_status exec_fill(const tide_node *node, const tide_dnnl_prim *p, dnnl_exec *e, tide_error *err) {
    dnnl_engine_t eng = NULL;
    TIDE_TRY(get_engine(node, &eng, err));
    const int threads = cap_begin();
    const dnnl_status_t ds = tide__dnnl_primitive_create(&e->prim, p->desc);
    cap_end(threads);
    DNNL_TRY(ds, "primitive");
    DNNL_TRY(tide__dnnl_stream_create(&e->stream, eng, dnnl_stream_default_flags), "stream");
    const size_t n = p->n_binds + (p->scratch_bytes > 0 ? 1 : 0);
    for (size_t i = 0; i < n; i++) {
        const int arg = i < p->n_binds ? p->binds[i].arg : DNNL_ARG_SCRATCHPAD;
        const dnnl_memory_desc_t *md = tide__dnnl_primitive_desc_query_md(p->desc, dnnl_query_exec_arg_md, arg);
        e->args[i].arg = arg;
        DNNL_TRY(tide__dnnl_memory_create(&e->args[i].memory, md, eng, DNNL_MEMORY_NONE), "memory object");
        e->n_args++;
    }
    return TIDE_OK;
}

static void exec_free(dnnl_exec *e) {
    if (e == NULL) return;
    for (int i = 0; i < e->n_args; i++) tide__dnnl_memory_destroy(e->args[i].memory);
    if (e->stream != NULL) tide__dnnl_stream_destroy(e->stream);
    if (e->prim != NULL) tide__dnnl_primitive_destroy(e->prim);
    tide_host_free(e);
}

tide_status tide_dnnl_kernel_exec_create(const tide_kernel *k, void **exec, tide_error *err) {
    const tide_dnnl_prim *p = k->state;
    *exec = NULL;
    if (p == NULL || p->desc == NULL) return TIDE_OK;
    dnnl_exec *e = tide_host_calloc(1, sizeof *e);
    if (e == NULL) return TIDE_OP_FAIL(err, k->node, TIDE_ERR_NOMEM, "no memory for the kernel of a context");
    const tide_status st = exec_fill(k->node, p, e, err);
    if (st != TIDE_OK) {
        exec_free(e);
        return st;
    }
    *exec = e;
    return TIDE_OK;
}

void tide_dnnl_kernel_exec_destroy(const tide_kernel *k, void *exec) {
    (void)k;
    exec_free(exec);
}

tide_status tide_dnnl_kernel_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_node *node = k->node;
    const tide_dnnl_prim *p = k->state;
    if (p == NULL) return TIDE_OK;
    dnnl_exec *e = args->exec;
    for (size_t i = 0; i < p->n_binds; i++) {
        const tide_operand *o =
            p->binds[i].is_output ? &args->out[p->binds[i].operand] : &args->in[p->binds[i].operand];
        DNNL_TRY(tide__dnnl_memory_set_data_handle(e->args[i].memory, o->data), "data handle");
    }
    if (p->scratch_bytes > 0)
        DNNL_TRY(tide__dnnl_memory_set_data_handle(e->args[p->n_binds].memory, args->workspace), "scratchpad handle");
    const int threads = cap_begin();
    dnnl_status_t ds = tide__dnnl_primitive_execute(e->prim, e->stream, e->n_args, e->args);
    if (ds == dnnl_success) ds = tide__dnnl_stream_wait(e->stream);
    cap_end(threads);
    DNNL_TRY(ds, "execution");
    if (p->act.kind != TIDE_ACT_NONE) tide_act_apply(&p->act, args->out[0].data, tide_op_numel(&args->out[0].shape));
    return TIDE_OK;
}
