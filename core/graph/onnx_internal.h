// SPDX-License-Identifier: MIT
//
// What the files of the ONNX import share.
#ifndef TIDE_CORE_GRAPH_ONNX_INTERNAL_H
#define TIDE_CORE_GRAPH_ONNX_INTERNAL_H

#include <onnx.pb-c.h>

#include "core/graph/graph_internal.h"

// ---- onnx_wire.c ----

/**
 * Check and unpack.
 *
 * @param max_bytes  TIDE_ERR_NOMEM, before anything is unpacked, when it would take more; 0: no limit
 * @param out  freed with tide__onnx_free
 * @return TIDE_ERR_BAD_INPUT saying what is wrong at which byte, inside which field; TIDE_ERR_NOMEM
 */
tide_status tide__onnx_unpack(const ProtobufCMessageDescriptor *type, const char *data, size_t len, const char *path,
                              size_t max_bytes, ProtobufCMessage **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__onnx_free(ProtobufCMessage *message);

// ---- onnx_tensor.c ----

/// A constant out of a TensorProto. Takes the message's bytes where they can stay as they are.
tide_status tide__onnx_tensor_take(Onnx__TensorProto *t, const char *label, const char *path, tide_tensor **out,
                                   tide_error *err) TIDE_NODISCARD;
/// TIDE_DTYPE_UNDEFINED with TIDE_ERR_NOT_IMPLEMENTED naming `label` for a type outside tide_dtype.
tide_status tide__onnx_dtype(int32_t data_type, const char *label, tide_dtype *out, tide_error *err) TIDE_NODISCARD;

/// protobuf-c leaves absent strings NULL.
static inline const char *tide__onnx_str(const char *text) { return text != NULL ? text : ""; }

#endif
