// SPDX-License-Identifier: MIT
//
// Scan of opset 8, whose operands have a batch in front: one Scan over the items of the batch, which carries nothing,
// around a Scan as it is since opset 9.
//
//     Scan-8   lens?, state [B, ..] …, sequence [B, S, ..] …    out  state [B, ..] …, collected [B, S, ..] …
//     Scan     over B: state …, sequence …                      its body: Scan over S: state …, sequence … -> state …,
//     collected …
//
// Sequences of several lengths (lens) are refused.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/onnx_import.h"

/// The two nodes and the body between them, as a file would have them. All but texts of the file is owned.
typedef struct batch_scan {
    Onnx__NodeProto outer, inner;
    Onnx__GraphProto body;
    Onnx__AttributeProto body_attr, count_attr, inner_count, inner_body, directions;
    Onnx__AttributeProto *outer_attrs[2], *inner_attrs[3];
    Onnx__NodeProto *nodes[1];
    Onnx__ValueInfoProto *values; // [n] inputs of the body, then its outputs
    Onnx__ValueInfoProto **ends;  // [n] the same
    char **names;                 // [n] the same
    size_t n_in, n_out;
} batch_scan;

static void deinit(batch_scan *s) {
    for (size_t k = 0; s->names != NULL && k < s->n_in + s->n_out; k++) tide_host_free(s->names[k]);
    tide_host_free(s->names);
    tide_host_free(s->values);
    tide_host_free(s->ends);
}

static const Onnx__AttributeProto *attr_of(const Onnx__NodeProto *n, const char *name) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        if (strcmp(tide__onnx_str(n->attribute[k]->name), name) == 0) return n->attribute[k];
    }
    return NULL;
}

static tide_status name_ends(batch_scan *s, const char *name, tide_error *err) {
    const size_t n = s->n_in + s->n_out;
    TIDE_TRY(TIDE_NEW(&s->names, n + 1, err, "for %s", name));
    TIDE_TRY(TIDE_NEW(&s->values, n + 1, err, "for %s", name));
    TIDE_TRY(TIDE_NEW(&s->ends, n + 1, err, "for %s", name));
    for (size_t k = 0; k < n; k++) {
        tide_text text = {0};
        tide_text_addf(&text, "%s.%s_%zu", name, k < s->n_in ? "item" : "result", k < s->n_in ? k : k - s->n_in);
        if (text.failed) {
            tide_text_deinit(&text);
            return TIDE_NO_MEMORY(err, "for %s", name);
        }
        s->names[k] = text.data;
        onnx__value_info_proto__init(&s->values[k]);
        s->values[k].name = s->names[k];
        s->ends[k] = &s->values[k];
    }
    return TIDE_OK;
}

static Onnx__AttributeProto attr_named(const char *name) {
    Onnx__AttributeProto a = ONNX__ATTRIBUTE_PROTO__INIT;
    a.name = (char *)(uintptr_t)name; // a text of the program's own, read only
    return a;
}

static void make_inner(batch_scan *s, const Onnx__NodeProto *n) {
    onnx__node_proto__init(&s->inner);
    s->inner.op_type = n->op_type;
    s->inner.domain = n->domain;
    s->inner.name = n->name;
    s->inner.input = s->names;
    s->inner.n_input = s->n_in;
    s->inner.output = s->names + s->n_in;
    s->inner.n_output = s->n_out;
    s->inner_body = *attr_of(n, "body");
    s->inner_count = *attr_of(n, "num_scan_inputs");
    s->inner_attrs[s->inner.n_attribute++] = &s->inner_body;
    s->inner_attrs[s->inner.n_attribute++] = &s->inner_count;
    if (attr_of(n, "directions") != NULL) {
        static char directions[] = "scan_input_directions";
        s->directions = *attr_of(n, "directions");
        s->directions.name = directions;
        s->inner_attrs[s->inner.n_attribute++] = &s->directions;
    }
    s->inner.attribute = s->inner_attrs;
}

static void make_outer(batch_scan *s, const Onnx__NodeProto *n) {
    onnx__graph_proto__init(&s->body);
    s->nodes[0] = &s->inner;
    s->body.node = s->nodes;
    s->body.n_node = 1;
    s->body.input = s->ends;
    s->body.n_input = s->n_in;
    s->body.output = s->ends + s->n_in;
    s->body.n_output = s->n_out;
    s->body_attr = attr_named("body");
    s->body_attr.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    s->body_attr.has_type = true;
    s->body_attr.g = &s->body;
    s->count_attr = attr_named("num_scan_inputs");
    s->count_attr.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    s->count_attr.has_type = s->count_attr.has_i = true;
    s->count_attr.i = (int64_t)s->n_in;
    s->outer_attrs[0] = &s->body_attr;
    s->outer_attrs[1] = &s->count_attr;
    s->outer = *n;
    s->outer.input = n->input + 1;
    s->outer.n_input = s->n_in;
    s->outer.attribute = s->outer_attrs;
    s->outer.n_attribute = 2;
}

tide_status tide__onnx_add_batch_scan(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name,
                                      const Onnx__GraphProto *body, tide__onnx_scan_adder add) {
    if (n->n_input < 2 || attr_of(n, "num_scan_inputs") == NULL)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "Scan of opset 8 has %zu inputs and %s num_scan_inputs",
                         n->n_input, attr_of(n, "num_scan_inputs") == NULL ? "no" : "a");
    if (tide__onnx_str(n->input[0])[0] != '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED,
                         "operator 'Scan' of node '%s' has sequences of several lengths, which are not served", name);
    batch_scan s = {.n_in = n->n_input - 1, .n_out = body->n_output};
    const Onnx__NodeProto *const before = im->batch_scan;
    tide_status st = name_ends(&s, name, im->err);
    if (st == TIDE_OK) {
        make_inner(&s, n);
        make_outer(&s, n);
        im->batch_scan = &s.inner;
        st = add(im, &s.outer, name);
        im->batch_scan = before;
    }
    deinit(&s);
    return st;
}
