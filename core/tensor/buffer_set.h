// SPDX-License-Identifier: MIT
//
// buffer set: buffers and views of them, declared first and made all at once (LT-29; the seed calls it execution plan).
// For callers that lay out memory by hand; a model's activations go through a memory plan instead.
//
//     add_buffer(x)  add_view(half of x)  add_buffer(y)   ->   prepare   ->   tensors
//
// Buffers of the same (device, kind) become slices of one block, each at a multiple of its alignment (LT-37).
#ifndef TIDE_CORE_TENSOR_BUFFER_SET_H
#define TIDE_CORE_TENSOR_BUFFER_SET_H

#include "core/tensor/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_buffer_set tide_buffer_set;

/// @param registry  where the memory will come from; borrowed until prepare; NULL: the registry of the process
tide_status tide_buffer_set_create(tide_registry *registry, tide_buffer_set **out, tide_error *err) TIDE_NODISCARD;
/// Tensors that others hold keep their memory. Takes NULL.
void tide_buffer_set_destroy(tide_buffer_set *s);
/// Declare a tensor; spec->registry and spec->stream are ignored, an alignment below the element size is raised to it.
/// @return as tide_tensor_create (but for what only prepare can know), TIDE_ERR_BUSY once prepared; *index numbers
/// buffers and views together, from 0
tide_status tide_buffer_set_add_buffer(tide_buffer_set *s, const tide_tensor_spec *spec, size_t *index,
                                       tide_error *err) TIDE_NODISCARD;
/// Declare a view of a buffer (not of a view), `offset_bytes` from its start. TIDE_ERR_INVALID when it does not fit
/// inside, or would lie at an address its elements may not have.
tide_status tide_buffer_set_add_view(tide_buffer_set *s, size_t buffer, size_t offset_bytes, tide_dtype dtype,
                                     const tide_shape *shape, size_t *index, tide_error *err) TIDE_NODISCARD;
/// Bytes of all buffers, each rounded up to its alignment; views take none.
uint64_t tide_buffer_set_total_bytes(const tide_buffer_set *s);
/// Take the memory: one block per (device, kind), exactly as large as its buffers. Once; a second call does nothing. On
/// failure nothing is taken. @return as tide_tensor_create. Cost O(n^2) in the number of buffers.
tide_status tide_buffer_set_prepare(tide_buffer_set *s, tide_error *err) TIDE_NODISCARD;
/// The tensor, borrowed; NULL before prepare and outside the list.
tide_tensor *tide_buffer_set_tensor(const tide_buffer_set *s, size_t index);

#ifdef __cplusplus
}
#endif
#endif
