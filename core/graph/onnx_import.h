// SPDX-License-Identifier: MIT
//
// What the files share that make a graph of a ModelProto: the import under way, names and what they mean, nodes.
#ifndef TIDE_CORE_GRAPH_ONNX_IMPORT_H
#define TIDE_CORE_GRAPH_ONNX_IMPORT_H

#include "core/graph/onnx_internal.h"

/// The names of a body, or of one call of a function.
typedef struct tide__onnx_scope {
    const struct tide__onnx_scope *up;   // NULL: the graph itself is around it
    tide_strmap names;                   // -> value index; TIDE_NO_VALUE: an operand that the call leaves out
    const Onnx__FunctionProto *function; // sees no names from outside; NULL: a body, which does
    const Onnx__NodeProto *call;         // of the function
    uint32_t open;                       // of a body: the node that it belongs to
    const char *prefix;                  // of the names of its nodes; "": none
} tide__onnx_scope;

/// An attribute that a function has where its call does not.
typedef struct tide__onnx_default {
    const Onnx__FunctionProto *function;
    Onnx__AttributeProto *attr; // owned
} tide__onnx_default;

typedef struct tide__onnx_importer {
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;
    tide__onnx_bytes *from;
    tide_graph *g;
    const tide__onnx_scope *scope; // of the nodes at hand; NULL: those of the graph
    uint32_t region;               // that they belong to
    tide_strmap inner;             // names of values that belong to some scope: no other one sees them
    tide_strmap opsets;            // domain -> version
    tide_strmap node_names;        // name -> 1 + index of the node of the file that owns it; 0: made up
    uint32_t *ends;                // [cap_ends] inputs, then outputs of the node at hand
    size_t cap_ends;
    tide__onnx_default *defaults; // [n_defaults] of all functions
    size_t n_defaults, cap_defaults;
    tide_strmap sequences;            // name -> one of the following
    struct sequence **made_sequences; // [n_made_sequences] owned
    size_t n_made_sequences, cap_sequences;
    const Onnx__NodeProto *batch_scan; // a Scan inside of one of opset 8: it is as since opset 9
    size_t n_twice;                    // values that two Constant nodes produce
    uint32_t twice;                    // the first of them
    tide_error *err;
} tide__onnx_importer;

/// "ai.onnx" is another name of the standard domain.
static inline const char *tide__onnx_domain(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

// ---- onnx_scope.c ----

/// The opsets of a list into `out`. TIDE_ERR_BAD_INPUT for a version that is none, TIDE_ERR_NOT_IMPLEMENTED for one
/// that is not known yet.
tide_status tide__onnx_read_opsets(tide__onnx_importer *im, Onnx__OperatorSetIdProto *const *list, size_t n,
                                   tide_strmap *out) TIDE_NODISCARD;
/// A value has this type; NULL or an empty one says nothing. TIDE_ERR_NOT_IMPLEMENTED naming it and what it is for all
/// that is no tensor, or a tensor of a type that is not served.
tide_status tide__onnx_declare(tide__onnx_importer *im, uint32_t value_i, const Onnx__TypeProto *type) TIDE_NODISCARD;
/// The value that nodes at hand call `name`; TIDE_NO_VALUE for "". TIDE_ERR_BAD_INPUT or TIDE_ERR_CYCLE for a name that
/// they cannot see.
tide_status tide__onnx_value_named(tide__onnx_importer *im, const char *name, uint32_t *out) TIDE_NODISCARD;
/// The same of `n` names.
tide_status tide__onnx_values_named(tide__onnx_importer *im, char *const *names, size_t n,
                                    uint32_t *out) TIDE_NODISCARD;
/// A value of the graph with this name behind the scope's prefix, or with the next free one.
tide_status tide__onnx_make_value(tide__onnx_importer *im, const tide__onnx_scope *s, const char *name,
                                  uint32_t *out) TIDE_NODISCARD;
/// In the scope `name` means this value from now on.
tide_status tide__onnx_bind_name(tide__onnx_importer *im, tide__onnx_scope *s, const char *name,
                                 uint32_t value_i) TIDE_NODISCARD;
/// What nodes of the scope make has a value before any of them is read: they may stand in any order.
tide_status tide__onnx_bind_results(tide__onnx_importer *im, tide__onnx_scope *s, Onnx__NodeProto *const *nodes,
                                    size_t n) TIDE_NODISCARD;
/// The attribute itself, or the one of the call that it refers to. *out NULL: the call does not have it.
tide_status tide__onnx_resolve_attr(tide__onnx_importer *im, const char *node, Onnx__AttributeProto *a,
                                    Onnx__AttributeProto **out) TIDE_NODISCARD;

// ---- onnx_node.c ----

/// Node `file_i` of the graph, a body or a function: a constant, a node, a body and its nodes, or those of a function.
/// The error says where.
tide_status tide__onnx_node_add(tide__onnx_importer *im, const Onnx__NodeProto *n, size_t file_i) TIDE_NODISCARD;

// ---- onnx_scan.c ----

/// Adds a Scan as it is since opset 9.
typedef tide_status (*tide__onnx_scan_adder)(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name);
/// One of opset 8 with its body, by way of `add`.
tide_status tide__onnx_add_batch_scan(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name,
                                      const Onnx__GraphProto *body, tide__onnx_scan_adder add) TIDE_NODISCARD;

// ---- onnx_sequence.c ----

bool tide__onnx_is_sequence(const Onnx__NodeProto *n);
/// What the node is without sequences. TIDE_ERR_NOT_IMPLEMENTED, TIDE_ERR_BAD_INPUT, TIDE_ERR_NOMEM.
tide_status tide__onnx_add_sequence(tide__onnx_importer *im, const Onnx__NodeProto *n) TIDE_NODISCARD;
void tide__onnx_free_sequences(tide__onnx_importer *im);

#endif
