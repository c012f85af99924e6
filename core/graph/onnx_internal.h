// SPDX-License-Identifier: MIT
//
// What the files of the ONNX import share.
#ifndef TIDE_CORE_GRAPH_ONNX_INTERNAL_H
#define TIDE_CORE_GRAPH_ONNX_INTERNAL_H

#include <onnx.pb-c.h>

#include <string.h>

#include "core/base/assert.h"
#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

/// The bytes that a message was unpacked from.
typedef struct tide__onnx_bytes {
    const char *data; ///< [len], borrowed
    size_t len;
    const char *path; ///< for messages, and external data lies beside it
    /// A mapping of a file whose whole bytes `data` are: constants may stay in it, and hold it. NULL: they are copied.
    tide_block *file;
    /// For a graph that will not run: constants of more than its one_bytes that cannot stay in the file are left blank.
    /// NULL: for one that will.
    const tide_contents *contents;
    tide_graph *graph; ///< notes the files beside it that constants come from; NULL: a tensor alone
    /// The message is read again (a function that is called twice): its lists of numbers are copied, not taken over.
    bool is_read_again;
} tide__onnx_bytes;

// ---- onnx_wire.c ----
//
// The contents of tensors stay where they are: in the unpacked message each field `raw_data` says only where they lie
// in the bytes.

/// Where the content of a `raw_data` lies.
typedef struct tide__onnx_span {
    uint64_t offset, len;
} tide__onnx_span;

/// Contents of so many bytes can stay in the file: a mapping takes whole pages, a process may have some 65,000 of them.
enum { TIDE__ONNX_MAP_FROM_BYTES = 1 << 16 };

/**
 * Check and unpack.
 *
 * @param max_bytes  TIDE_ERR_NOMEM, before anything is unpacked, when it would take more; 0: no limit
 * @param out  freed with tide__onnx_free
 * @return TIDE_ERR_BAD_INPUT saying what is wrong at which byte, inside which field; TIDE_ERR_NOMEM
 */
tide_status tide__onnx_unpack(const ProtobufCMessageDescriptor *type, const tide__onnx_bytes *bytes, size_t max_bytes,
                              ProtobufCMessage **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__onnx_free(ProtobufCMessage *message);
/// Number of the field of a FunctionProto that holds attributes with their defaults, which the schema may not know.
enum { TIDE__ONNX_ATTRIBUTE_PROTO = 11 };
/// One of these, as tide__onnx_unpack has left it; freed with tide__onnx_free.
tide_status tide__onnx_unpack_default(const ProtobufCMessageUnknownField *field, Onnx__AttributeProto **out,
                                      tide_error *err) TIDE_NODISCARD;
/// The span of a tensor that has raw_data.
static inline tide__onnx_span tide__onnx_raw(const Onnx__TensorProto *t) {
    tide__onnx_span span;
    TIDE_ASSERT(t->has_raw_data && t->raw_data.len == sizeof span);
    memcpy(&span, t->raw_data.data, sizeof span);
    return span;
}

// ---- onnx_tensor.c ----

/// A constant out of a TensorProto: in the file, or around the message's own list of numbers, where it can stay as it
/// is.
tide_status tide__onnx_tensor_take(Onnx__TensorProto *t, const char *label, const tide__onnx_bytes *from,
                                   tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/// TIDE_DTYPE_UNDEFINED with TIDE_ERR_NOT_IMPLEMENTED naming `label` for a type outside tide_dtype.
tide_status tide__onnx_dtype(int32_t data_type, const char *label, tide_dtype *out, tide_error *err) TIDE_NODISCARD;

// ---- onnx_attr.c ----

/// Add an attribute to a node, under the name `name`. TIDE_ERR_NOT_IMPLEMENTED for bodies and the other types that no
/// operator has.
tide_status tide__onnx_attr_add(tide_graph *g, uint32_t node_i, const char *name, Onnx__AttributeProto *a,
                                const tide__onnx_bytes *from, tide_error *err) TIDE_NODISCARD;
/// The tensor of a Constant node for the value `label`, which has the one attribute `a` under the name `key`.
tide_status tide__onnx_constant(const char *label, const char *key, Onnx__AttributeProto *a,
                                const tide__onnx_bytes *from, tide_tensor **out, tide_error *err) TIDE_NODISCARD;

/// protobuf-c leaves absent strings NULL.
static inline const char *tide__onnx_str(const char *text) { return text != NULL ? text : ""; }

#endif
