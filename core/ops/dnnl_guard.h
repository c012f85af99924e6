// SPDX-License-Identifier: MIT
//
// dnnl_guard: oneDNN's calls that take memory, for the time when there is none. Used by dnnl_prim.
//
// oneDNN 2.6 meets failing allocations in four ways: it returns dnnl_out_of_memory; it lets std::bad_alloc out of a C
// function; it builds an object, or writes code, at NULL; and libgomp, below it, calls exit(1). Each call goes through
// the guard, which makes a status of the first three. What ends the process all the
// same (an exception inside a function that may not throw, libgomp's exit) is told to a handler of the program, so that
// it may end with words.
#ifndef TIDE_CORE_OPS_DNNL_GUARD_H
#define TIDE_CORE_OPS_DNNL_GUARD_H

#include <oneapi/dnnl/dnnl.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    XX(memory_set_data_handle, (dnnl_memory_t a, void *b), (a, b))

#define XX(name, params, args) dnnl_status_t tide__dnnl_##name params;
TIDE__DNNL_GUARDED(XX)
#undef XX

/// omp_set_num_threads and omp_get_max_threads, found by name, under the guard: libgomp's first call takes memory.
void tide__omp_set(void (*set)(int), int n);
int tide__omp_get(int (*get)(void));

#ifdef __cplusplus
}
#endif
#endif
