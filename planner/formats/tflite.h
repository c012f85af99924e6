// SPDX-License-Identifier: MIT
//
// A TensorFlow Lite model between the two files that read one: tflite_read.c takes subgraphs, tensors and operators out
// of the flatbuffer, tflite.c makes a list of lifetimes of them.
#ifndef TIDE_PLANNER_FORMATS_TFLITE_H
#define TIDE_PLANNER_FORMATS_TFLITE_H

#include "planner/formats/flatbuffer.h"
#include "planner/formats/formats_internal.h"

enum {
    TIDE__TFL_NO_STEP = -1,   ///< not yet
    TIDE__TFL_NO_OFFSET = -1, ///< the file's own plan leaves it to the start of the runtime
    TIDE__TFL_MAX_BODIES = 2,
};

/// Of BuiltinOperator: those that are not like the others.
enum {
    TIDE__TFL_CALL = 31,
    TIDE__TFL_CUSTOM = 32,
    TIDE__TFL_IF = 118,
    TIDE__TFL_WHILE = 119,
    TIDE__TFL_CALL_ONCE = 129,
    TIDE__TFL_STABLEHLO_WHILE = 200,
    TIDE__TFL_STABLEHLO_COMPOSITE = 206,
    TIDE__TFL_STABLEHLO_CASE = 209,
};

typedef struct tide__tfl_tensor {
    char *name;      ///< owned; NULL once it is moved into the table
    uint64_t bytes;  ///< of a constant: what the file holds
    uint32_t buffer; ///< that holds them; 0: none
    bool is_constant, is_variable;
    bool is_unsized; ///< of a type that the runtime sizes while it runs
    tide_role role;
    int64_t first, last; ///< steps; TIDE__TFL_NO_STEP
    int32_t own_offset;  ///< of the file's own plan; TIDE__TFL_NO_OFFSET
} tide__tfl_tensor;

typedef struct tide__tfl_op {
    uint32_t code;                                  ///< index of codes
    tide__fb_vector inputs, outputs, intermediates; ///< tensors of its subgraph; -1: none
    uint32_t bodies[TIDE__TFL_MAX_BODIES];          ///< subgraphs that it calls
    uint32_t n_bodies;
} tide__tfl_op;

typedef struct tide__tfl_graph {
    tide__tfl_tensor *tensors; ///< [n_tensors] owned
    tide__tfl_op *ops;         ///< [n_ops] owned
    size_t n_tensors, n_ops;
    tide__fb_vector inputs, outputs;
    char *name; ///< owned; how the names of what is in it begin, "" for the main one
    bool is_read, is_open, is_walked;
} tide__tfl_graph;

typedef struct tide__tfl_code {
    uint32_t builtin;
    const char *name; ///< static, or `custom`
    char *custom;     ///< owned
} tide__tfl_code;

typedef struct tide__tfl {
    tide__fb fb;
    tide__list list;
    tide__fb_vector subgraph_list, buffer_list, metadata;
    tide__tfl_graph *subgraphs; ///< [subgraph_list.n] owned
    tide__tfl_code *codes;      ///< [n_codes] owned
    size_t n_codes;
    size_t n_signature; ///< tensors whose signature leaves an extent open
    bool has_plan;      ///< the file has offsets of its own
    // Of the table in the making.
    bool *seen; ///< [buffer_list.n] owned: the bytes are counted with an earlier tensor
    size_t n_planned, n_own, n_shared, n_unmade;
    tide__own_place *own; ///< [n_own] owned
    size_t cap_own;
    tide_error *err;
} tide__tfl;

#define TIDE__TFL_BAD(r, ...) tide__tfl_fault((r), TIDE_FAIL((r)->err, TIDE_ERR_BAD_INPUT, __VA_ARGS__))
tide_status tide__tfl_fault(const tide__tfl *r, tide_status st);

/// The model's lists and its operator codes, the main subgraph, and of a file with a plan of its own all subgraphs and
/// own_offset of their tensors.
tide_status tide__tfl_read(tide__tfl *r) TIDE_NODISCARD;
/// Subgraph `i` < subgraph_list.n, if it is not read yet.
tide_status tide__tfl_read_graph(tide__tfl *r, size_t i) TIDE_NODISCARD;
void tide__tfl_deinit(tide__tfl *r);

#endif
