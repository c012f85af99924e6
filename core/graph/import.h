// SPDX-License-Identifier: MIT
//
// Graphs and tensors from files: ONNX (protobuf) and tidemark's own graph text (JSON, docs/graph-text.md).
#ifndef TIDE_CORE_GRAPH_IMPORT_H
#define TIDE_CORE_GRAPH_IMPORT_H

#include "core/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Build a graph from the bytes of an ONNX ModelProto.
 *
 * @param data  borrowed for the call
 * @param path  for messages, and its folder is where external data files are looked for (never outside it)
 * @return TIDE_ERR_BAD_INPUT (truncated, not a model, duplicate names, sizes that overflow or claim more than is there
 *         …) or TIDE_ERR_NOT_IMPLEMENTED (dtype), with file and node or tensor named; TIDE_ERR_NOMEM
 * Constants are CPU tensors outside every instrumented allocator. The graph need not be sorted.
 */
tide_status tide_graph_from_onnx(const char *data, size_t len, const char *path, tide_graph **out,
                                 tide_error *err) TIDE_NODISCARD;

/**
 * The same of a file that is mapped (tide_block_map_file): nothing of its weights is read. Constants of 64 KiB and more
 * stay in the mapping, external ones in one of their own, where their elements may lie at that address, and hold it;
 * the others are copied.
 */
tide_status tide_graph_from_onnx_mapped(tide_block *file, const char *path, tide_graph **out,
                                        tide_error *err) TIDE_NODISCARD;

/// The same for graph text. Errors name line and column, or the node and key.
tide_status tide_graph_from_json(const char *data, size_t len, const char *path, tide_graph **out,
                                 tide_error *err) TIDE_NODISCARD;

/// One TensorProto in a file of its own (input_0.pb of ONNX's test layout) as a tensor of kind `kind` out of
/// `registry` (NULL: the process's). `name` (may be NULL) gets the name in the file, owned by the caller.
tide_status tide_tensor_from_pb_file(const char *path, tide_registry *registry, tide_memory_kind kind,
                                     tide_tensor **out, char **name, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
