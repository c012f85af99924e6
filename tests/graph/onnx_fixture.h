// SPDX-License-Identifier: MIT
//
// Small ONNX models, made with the schema's own structs and packed by protobuf-c, for the tests of the import.
//
//     x [1x4] float32 -> Add(x, w) -> y          w: initialiser, float32 [1x4]
//
// A test changes what it needs, packs, and imports.
#ifndef TIDE_TESTS_GRAPH_ONNX_FIXTURE_H
#define TIDE_TESTS_GRAPH_ONNX_FIXTURE_H

#include <onnx.pb-c.h>

#include "core/graph/import.h"
#include "tests/tide_test.h"

#define FIXTURE static inline TIDE_UNUSED

/// A C string where protobuf-c wants a mutable one; it is only read.
#define TEXT(literal) ((char *)(uintptr_t)(literal))

typedef struct value_fixture {
    Onnx__ValueInfoProto info;
    Onnx__TypeProto type;
    Onnx__TypeProto__Tensor tensor;
    Onnx__TensorShapeProto shape;
    Onnx__TensorShapeProto__Dimension dims[9], *dim_list[9];
} value_fixture;

FIXTURE void value_init(value_fixture *v, const char *name, int32_t dtype, size_t rank, const int64_t *dims) {
    onnx__value_info_proto__init(&v->info);
    onnx__type_proto__init(&v->type);
    onnx__type_proto__tensor__init(&v->tensor);
    onnx__tensor_shape_proto__init(&v->shape);
    v->info.name = TEXT(name);
    v->info.type = &v->type;
    v->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type.tensor_type = &v->tensor;
    v->tensor.has_elem_type = 1;
    v->tensor.elem_type = dtype;
    v->tensor.shape = &v->shape;
    v->shape.n_dim = rank;
    v->shape.dim = v->dim_list;
    for (size_t d = 0; d < rank; d++) {
        onnx__tensor_shape_proto__dimension__init(&v->dims[d]);
        v->dims[d].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        v->dims[d].dim_value = dims[d];
        v->dim_list[d] = &v->dims[d];
    }
}

typedef struct model_fixture {
    Onnx__ModelProto model;
    Onnx__OperatorSetIdProto opset, *opset_list[1];
    Onnx__GraphProto graph;
    Onnx__NodeProto node[4], *node_list[4];
    char *node_in[4][4], *node_out[4][4];
    Onnx__AttributeProto attr[4], *attr_list[4]; // one for each node; not attached
    Onnx__TensorProto tensor[2], *tensor_list[2];
    int64_t tensor_dims[2][10];
    float data[4];
    value_fixture input[3], output[3], info[2];
    Onnx__ValueInfoProto *input_list[3], *output_list[3], *info_list[2];
} model_fixture;

FIXTURE void node_init(model_fixture *m, size_t i, const char *op, const char *name, const char *in0, const char *in1,
                       const char *out) {
    Onnx__NodeProto *n = &m->node[i];
    onnx__node_proto__init(n);
    n->op_type = TEXT(op);
    n->name = TEXT(name);
    n->input = m->node_in[i];
    n->output = m->node_out[i];
    n->input[0] = TEXT(in0);
    n->input[1] = TEXT(in1);
    n->n_input = (size_t)(in0 != NULL) + (in1 != NULL);
    n->output[0] = TEXT(out);
    n->n_output = 1;
    m->node_list[i] = n;
    onnx__attribute_proto__init(&m->attr[i]);
    m->attr_list[i] = &m->attr[i];
}

FIXTURE void tensor_init(model_fixture *m, size_t i, const char *name, int32_t dtype, size_t rank,
                         const int64_t *dims) {
    Onnx__TensorProto *t = &m->tensor[i];
    onnx__tensor_proto__init(t);
    t->name = TEXT(name);
    t->has_data_type = 1;
    t->data_type = dtype;
    t->n_dims = rank;
    t->dims = m->tensor_dims[i];
    for (size_t d = 0; d < rank; d++) m->tensor_dims[i][d] = dims[d];
    m->tensor_list[i] = t;
}

FIXTURE void model_init(model_fixture *m) {
    static const int64_t dims[] = {1, 4};
    memset(m, 0, sizeof *m);
    onnx__model_proto__init(&m->model);
    onnx__operator_set_id_proto__init(&m->opset);
    onnx__graph_proto__init(&m->graph);
    m->model.has_ir_version = 1;
    m->model.ir_version = 8;
    m->opset.has_version = 1;
    m->opset.version = 13;
    m->opset_list[0] = &m->opset;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->opset_list;
    m->model.graph = &m->graph;
    m->graph.name = TEXT("small");
    node_init(m, 0, "Add", "add", "x", "w", "y");
    m->graph.n_node = 1;
    m->graph.node = m->node_list;
    tensor_init(m, 0, "w", 1, 2, dims);
    for (int i = 0; i < 4; i++) m->data[i] = (float)i;
    m->tensor[0].has_raw_data = 1;
    m->tensor[0].raw_data.data = (uint8_t *)m->data;
    m->tensor[0].raw_data.len = sizeof m->data;
    m->graph.n_initializer = 1;
    m->graph.initializer = m->tensor_list;
    value_init(&m->input[0], "x", 1, 2, dims);
    value_init(&m->output[0], "y", 1, 2, dims);
    for (size_t i = 0; i < 3; i++) {
        m->input_list[i] = &m->input[i].info;
        m->output_list[i] = &m->output[i].info;
    }
    for (size_t i = 0; i < 2; i++) m->info_list[i] = &m->info[i].info;
    m->graph.n_input = 1;
    m->graph.input = m->input_list;
    m->graph.n_output = 1;
    m->graph.output = m->output_list;
    m->graph.value_info = m->info_list;
}

/// Give node `i` its attribute, named `name`.
FIXTURE Onnx__AttributeProto *attach_attr(model_fixture *m, size_t i, const char *name,
                                          Onnx__AttributeProto__AttributeType type) {
    m->attr[i].name = TEXT(name);
    m->attr[i].has_type = 1;
    m->attr[i].type = type;
    m->node[i].n_attribute = 1;
    m->node[i].attribute = &m->attr_list[i];
    return &m->attr[i];
}

/// Pack and import. The buffer is exactly as long as the model, so that reading past it is seen by ASan.
FIXTURE tide_status import_fixture(const model_fixture *m, tide_graph **out, tide_error *err) {
    const size_t len = onnx__model_proto__get_packed_size(&m->model);
    uint8_t *data = malloc(len);
    assert_non_null(data);
    assert_int_equal(onnx__model_proto__pack(&m->model, data), len);
    const tide_status st = tide_graph_from_onnx((const char *)data, len, "dir/small.onnx", out, err);
    free(data);
    return st;
}

/// The import fails as said and leaves nothing behind.
FIXTURE void assert_refused(const model_fixture *m, tide_status want, const char *says) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_status(import_fixture(m, &g, &err), want);
    assert_null(g);
    assert_text_has(err.msg, says);
    assert_text_has(err.where, "dir/small.onnx");
}

#endif
