// SPDX-License-Identifier: MIT
//
// dnnl_guard: the one way to oneDNN's functions. The library is opened by the first kernel that wants it, and its calls
// are guarded for the time when there is no memory.
//
// Linked, oneDNN costs each start of the program 31,000 relocations and its own libraries (OpenMP, OpenCL), also where
// only a trace is shown. So it is no library of the program's file, and its functions are found by name.
//
// oneDNN 2.6 meets failing allocations in four ways: it returns dnnl_out_of_memory; it lets std::bad_alloc out of a C
// function; it builds an object, or writes code, at NULL; and libgomp, below it, calls exit(1). Each call goes through
// the guard, which makes a status of the first three. What ends the process all the
// same (an exception inside a function that may not throw, libgomp's exit) is told to a handler of the program, so that
// it may end with words.
#ifndef TIDE_CORE_OPS_DNNL_GUARD_H
#define TIDE_CORE_OPS_DNNL_GUARD_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Opens the library (the name that it was built against, where the loader looks), or finds it open: it stays so for as
/// long as the process lives. Before any other call. Threads may call it at once.
/// TIDE_ERR_BACKEND when it is not there, TIDE_ERR_NOMEM.
tide_status tide__dnnl_open(tide_error *err) TIDE_NODISCARD;

/// tide__dnnl_X is dnnl_X, but for exceptions: std::bad_alloc is dnnl_out_of_memory, all others dnnl_runtime_error.
#define TIDE__DNNL_GUARDED(XX)                                                                                         \
    XX(engine_create, (dnnl_engine_t * a, dnnl_engine_kind_t b, size_t c), (a, b, c))                                  \
    XX(primitive_attr_create, (dnnl_primitive_attr_t * a), (a))                                                        \
    XX(primitive_attr_set_output_scales, (dnnl_primitive_attr_t a, dnnl_dim_t b, int c, const float *d), (a, b, c, d)) \
    XX(primitive_attr_set_post_ops, (dnnl_primitive_attr_t a, const_dnnl_post_ops_t b), (a, b))                        \
    XX(post_ops_create, (dnnl_post_ops_t * a), (a))                                                                    \
    XX(post_ops_append_sum, (dnnl_post_ops_t a, float b), (a, b))                                                      \
    XX(post_ops_append_eltwise, (dnnl_post_ops_t a, float b, dnnl_alg_kind_t c, float d, float e), (a, b, c, d, e))    \
    XX(primitive_desc_create,                                                                                          \
       (dnnl_primitive_desc_t * a, const_dnnl_op_desc_t b, const_dnnl_primitive_attr_t c, dnnl_engine_t d,             \
        const_dnnl_primitive_desc_t e),                                                                                \
       (a, b, c, d, e))                                                                                                \
    XX(primitive_create, (dnnl_primitive_t * a, const_dnnl_primitive_desc_t b), (a, b))                                \
    XX(primitive_execute, (const_dnnl_primitive_t a, dnnl_stream_t b, int c, const dnnl_exec_arg_t *d), (a, b, c, d))  \
    XX(stream_create, (dnnl_stream_t * a, dnnl_engine_t b, unsigned c), (a, b, c))                                     \
    XX(stream_wait, (dnnl_stream_t a), (a))                                                                            \
    XX(memory_create, (dnnl_memory_t * a, const dnnl_memory_desc_t *b, dnnl_engine_t c, void *d), (a, b, c, d))        \
    XX(memory_set_data_handle, (dnnl_memory_t a, void *b), (a, b))                                                     \
    XX(memory_desc_init_by_strides,                                                                                    \
       (dnnl_memory_desc_t * a, int b, const dnnl_dims_t c, dnnl_data_type_t d, const dnnl_dims_t e), (a, b, c, d, e)) \
    XX(primitive_attr_set_scratchpad_mode, (dnnl_primitive_attr_t a, dnnl_scratchpad_mode_t b), (a, b))                \
    XX(primitive_desc_query, (const_dnnl_primitive_desc_t a, dnnl_query_t b, int c, void *d), (a, b, c, d))            \
    XX(eltwise_forward_desc_init,                                                                                      \
       (dnnl_eltwise_desc_t * a, dnnl_prop_kind_t b, dnnl_alg_kind_t c, const dnnl_memory_desc_t *d, float e,          \
        float f),                                                                                                      \
       (a, b, c, d, e, f))                                                                                             \
    XX(softmax_v2_forward_desc_init,                                                                                   \
       (dnnl_softmax_v2_desc_t * a, dnnl_prop_kind_t b, dnnl_alg_kind_t c, const dnnl_memory_desc_t *d,                \
        const dnnl_memory_desc_t *e, int f),                                                                           \
       (a, b, c, d, e, f))                                                                                             \
    XX(matmul_desc_init,                                                                                               \
       (dnnl_matmul_desc_t * a, const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c, const dnnl_memory_desc_t *d, \
        const dnnl_memory_desc_t *e),                                                                                  \
       (a, b, c, d, e))                                                                                                \
    XX(dilated_convolution_forward_desc_init,                                                                          \
       (dnnl_convolution_desc_t * a, dnnl_prop_kind_t b, dnnl_alg_kind_t c, const dnnl_memory_desc_t *d,               \
        const dnnl_memory_desc_t *e, const dnnl_memory_desc_t *f, const dnnl_memory_desc_t *g, const dnnl_dims_t h,    \
        const dnnl_dims_t i, const dnnl_dims_t j, const dnnl_dims_t k),                                                \
       (a, b, c, d, e, f, g, h, i, j, k))                                                                              \
    XX(dilated_deconvolution_forward_desc_init,                                                                        \
       (dnnl_deconvolution_desc_t * a, dnnl_prop_kind_t b, dnnl_alg_kind_t c, const dnnl_memory_desc_t *d,             \
        const dnnl_memory_desc_t *e, const dnnl_memory_desc_t *f, const dnnl_memory_desc_t *g, const dnnl_dims_t h,    \
        const dnnl_dims_t i, const dnnl_dims_t j, const dnnl_dims_t k),                                                \
       (a, b, c, d, e, f, g, h, i, j, k))                                                                              \
    XX(post_ops_destroy, (dnnl_post_ops_t a), (a))                                                                     \
    XX(primitive_attr_destroy, (dnnl_primitive_attr_t a), (a))                                                         \
    XX(primitive_desc_destroy, (dnnl_primitive_desc_t a), (a))                                                         \
    XX(primitive_destroy, (dnnl_primitive_t a), (a))                                                                   \
    XX(memory_destroy, (dnnl_memory_t a), (a))                                                                         \
    XX(stream_destroy, (dnnl_stream_t a), (a))

/// tide__dnnl_X is dnnl_X: these only read.
#define TIDE__DNNL_READ(XX)                                                                                            \
    XX(size_t, memory_desc_get_size, (const dnnl_memory_desc_t *a), (a))                                               \
    XX(const dnnl_memory_desc_t *, primitive_desc_query_md, (const_dnnl_primitive_desc_t a, dnnl_query_t b, int c),    \
       (a, b, c))                                                                                                      \
    XX(const char *, status2str, (dnnl_status_t a), (a))                                                               \
    XX(dnnl_cpu_isa_t, get_effective_cpu_isa, (void), ())                                                              \
    XX(const dnnl_version_t *, version, (void), ())

#define XX(name, params, args) dnnl_status_t tide__dnnl_##name params;
TIDE__DNNL_GUARDED(XX)
#undef XX
#define XX(result, name, params, args) result tide__dnnl_##name params;
TIDE__DNNL_READ(XX)
#undef XX

/// omp_set_num_threads and omp_get_max_threads of the OpenMP that came with the library, under the guard, for its first
/// call takes memory. False: there are none (another threading runtime).
bool tide__omp_set(int n);
bool tide__omp_get(int *out);

#ifdef __cplusplus
}
#endif
#endif
