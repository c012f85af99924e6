// SPDX-License-Identifier: MIT
//
// What the files of the ONNX import share.
#ifndef TIDE_CORE_GRAPH_ONNX_INTERNAL_H
#define TIDE_CORE_GRAPH_ONNX_INTERNAL_H

#include <onnx.pb-c.h>

#include "core/graph/graph_internal.h"

// ---- onnx_wire.c ----

/**
 * Walk the protobuf structure of `data` before anybody unpacks it: every length inside its message, every known
 * field in its wire format, no message nested deeper than 100 and none given twice where one is meant.
 *
 * @param need_bytes  out: about what unpacking, and a graph, a program and a plan of it, will take
 * @return TIDE_ERR_BAD_INPUT saying what is wrong at which byte, inside which field
 */
tide_status tide__onnx_check_wire(const ProtobufCMessageDescriptor *type, const char *data, size_t len,
                                  const char *path, size_t *need_bytes, tide_error *err) TIDE_NODISCARD;
/**
 * Check and unpack.
 *
 * @param max_bytes  TIDE_ERR_NOMEM, before anything is unpacked, when it would take more; 0: no limit
 * @param out  freed with tide__onnx_free
 * @return as above, or TIDE_ERR_NOMEM
 */
tide_status tide__onnx_unpack(const ProtobufCMessageDescriptor *type, const char *data, size_t len, const char *path,
                              size_t max_bytes, ProtobufCMessage **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__onnx_free(ProtobufCMessage *message);

// ---- onnx_tensor.c, onnx_external.c ----

/// dtype and shape of a TensorProto, with its claims checked. `label` names it in messages.
tide_status tide__onnx_tensor_type(const Onnx__TensorProto *t, const char *label, tide_dtype *dtype, tide_shape *shape,
                                   size_t *size_bytes, tide_error *err) TIDE_NODISCARD;
/**
 * Check that the content is there: `size_bytes` of it, no more and no less.
 *
 * @return TIDE_ERR_BAD_INPUT, before anything of that size is allocated
 */
tide_status tide__onnx_tensor_check(const Onnx__TensorProto *t, const char *label, tide_dtype dtype,
                                    const tide_shape *shape, size_t size_bytes, tide_error *err) TIDE_NODISCARD;
/// Write the content to `dst`; `path` is the file that external data lies beside.
tide_status tide__onnx_tensor_fill(const Onnx__TensorProto *t, const char *label, const char *path, tide_dtype dtype,
                                   size_t size_bytes, void *dst, tide_error *err) TIDE_NODISCARD;
/// A constant out of a TensorProto. Takes the message's bytes where they can stay as they are.
tide_status tide__onnx_tensor_take(Onnx__TensorProto *t, const char *label, const char *path, tide_tensor **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Read `size_bytes` of external data into `dst`.
tide_status tide__onnx_read_external(const Onnx__TensorProto *t, const char *label, const char *path, size_t size_bytes,
                                     void *dst, tide_error *err) TIDE_NODISCARD;
/// External data as a read-only block over the file itself, one reference; NULL when it is to be read instead: small,
/// at an address its elements may not have, or not to be mapped. Checked before by tide__onnx_read_external.
tide_block *tide__onnx_map_external(const Onnx__TensorProto *t, const char *label, const char *path, size_t size_bytes,
                                    size_t elem_bytes);
/// TIDE_DTYPE_UNDEFINED with TIDE_ERR_NOT_IMPLEMENTED naming `label` for a type outside tide_dtype.
tide_status tide__onnx_dtype(int32_t data_type, const char *label, tide_dtype *out, tide_error *err) TIDE_NODISCARD;

// ---- onnx_attr.c ----

/// Add an attribute to a node. TIDE_ERR_NOT_IMPLEMENTED for subgraphs and the other types that no operator has.
tide_status tide__onnx_add_attr(tide_graph *g, uint32_t node_i, Onnx__AttributeProto *a, const char *path,
                                tide_error *err) TIDE_NODISCARD;
/// The tensor that a Constant node stands for.
tide_status tide__onnx_constant(const Onnx__NodeProto *n, const char *path, tide_tensor **out,
                                tide_error *err) TIDE_NODISCARD;

/// protobuf-c leaves absent strings NULL.
static inline const char *tide__onnx_str(const char *text) { return text != NULL ? text : ""; }

#endif
