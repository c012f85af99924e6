// SPDX-License-Identifier: MIT
//
// sizes: graphs read and folded for their sizes alone, as planning needs them.
//
// A constant without content is *blank*: an unbound tensor, of which type and shape are known. A file of one kilobyte
// can ask for a gigabyte of constants ("random" and "fill" of graph text, ConstantOfShape and all that is folded of
// it); a plan needs their sizes and, of a few small ones that shapes hang on, the numbers. What is folded, fused and
// pruned is the same as with contents, so that plan and run see one program. A graph with blank constants cannot run.
#ifndef TIDE_CORE_GRAPH_SIZES_H
#define TIDE_CORE_GRAPH_SIZES_H

#include "core/graph/graph.h"
#include "core/graph/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Which contents are made; what is past either is blank. Contents that a file holds are always read, but for large
/// ones of a mapped file that cannot stay where they are.
typedef struct tide_contents {
    size_t one_bytes; ///< of one constant
    size_t all_bytes; ///< of all together
    bool *wanted;     ///< set when a size hangs on a blank constant; then TIDE_ERR_UNKNOWN_SIZE comes back
} tide_contents;

static inline bool tide_constant_is_blank(const tide_tensor *t) {
    return !tide_tensor_is_bound(t) && tide_tensor_size_bytes(t) > 0;
}

/**
 * As tide_graph_from_json, but for contents, and within a limit.
 *
 * @param max_bytes  what reading and planning may take; 0: no limit
 * @return also TIDE_ERR_NOMEM, before anything is unpacked, when by what the file counts up it would take more; the
 *         message says how much
 */
tide_status tide_graph_sizes_from_json(const char *data, size_t len, const char *path, const tide_contents *contents,
                                       size_t max_bytes, tide_graph **out, tide_error *err) TIDE_NODISCARD;
/// As tide_graph_from_onnx, within a limit as above.
tide_status tide_graph_sizes_from_onnx(const char *data, size_t len, const char *path, size_t max_bytes,
                                       tide_graph **out, tide_error *err) TIDE_NODISCARD;
/// As tide_graph_from_onnx_mapped, within a limit as above, and with large constants that would be copied left blank.
tide_status tide_graph_sizes_from_onnx_mapped(tide_block *file, const char *path, const tide_contents *contents,
                                              size_t max_bytes, tide_graph **out, tide_error *err) TIDE_NODISCARD;
/// As tide_graph_infer with folding, but for contents.
tide_status tide_graph_infer_sizes(tide_graph *g, const tide_order *order, const tide_contents *contents,
                                   tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
