// SPDX-License-Identifier: MIT
//
// ModelProto to graph. Nodes may stand in any order: values are found by name, the order is made later.
//
// What the file may do and the graph does not: initialisers also listed as inputs (IR version 3) are constants,
// Constant nodes are constants, omitted optional operands have empty names, node names may be missing or repeated.
// Bodies of If, Loop and Scan become regions of the one graph (region.h), and calls of the file's own functions the
// nodes of the function: names in them belong to a scope, and a value gets its name there, or the next free one.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/import.h"
#include "core/graph/onnx_import.h"
#include "core/graph/region.h"
#include "core/graph/sizes.h"

static tide_status read_opsets(tide__onnx_importer *im) {
    TIDE_TRY(tide__onnx_read_opsets(im, im->model->opset_import, im->model->n_opset_import, &im->opsets));
    // Before IR version 3 there was no such list and one opset.
    const bool old = im->model->has_ir_version && im->model->ir_version < 3;
    if (im->model->n_opset_import == 0 && !old)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "not an ONNX model: it names no opset");
    if (im->model->n_opset_import == 0 && tide_strmap_put(&im->opsets, "", 1) != TIDE_OK)
        return TIDE_NO_MEMORY(im->err, "for opsets");
    return TIDE_OK;
}

// ---- the parts of a graph ----

static tide_status add_initializers(tide__onnx_importer *im) {
    if (im->proto->n_sparse_initializer > 0) {
        const Onnx__TensorProto *t = im->proto->sparse_initializer[0]->values;
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "initialiser '%s' is a sparse tensor",
                         t != NULL ? tide__onnx_str(t->name) : "");
    }
    for (size_t i = 0; i < im->proto->n_initializer; i++) {
        Onnx__TensorProto *t = im->proto->initializer[i];
        if (t->name == NULL || t->name[0] == '\0')
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "initialiser %zu has no name", i);
        uint32_t value_i;
        TIDE_TRY(tide_graph_add_value(im->g, t->name, &value_i, im->err));
        tide_tensor *tensor = NULL;
        const tide_status st = tide__onnx_tensor_take(t, t->name, im->from, &tensor, im->err);
        if (st != TIDE_OK) {
            tide_error_where(im->err, "%s: initialiser '%s'", im->from->path, t->name);
            return st;
        }
        tide_graph_set_constant(im->g, value_i, tensor);
        tide_tensor_unref(tensor);
    }
    return TIDE_OK;
}

static bool has_name(char *const *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(tide__onnx_str(names[i]), name) == 0) return true;
    return false;
}

/// The type of an input, an output or another value of the graph. Where it is refused, the first node that has the
/// value says where.
static tide_status declare(tide__onnx_importer *im, uint32_t value_i, const Onnx__ValueInfoProto *info) {
    const tide_status st = tide__onnx_declare(im, value_i, info->type);
    const char *name = tide__onnx_str(info->name);
    if (st == TIDE_OK || im->err == NULL) return st;
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const Onnx__NodeProto *n = im->proto->node[i];
        if (!has_name(n->input, n->n_input, name) && !has_name(n->output, n->n_output, name)) continue;
        tide_error_where(im->err, "%s: node %zu '%s' (%s)", im->from->path, i, tide__onnx_str(n->name),
                         tide__onnx_str(n->op_type));
        break;
    }
    return st;
}

static tide_status add_inputs(tide__onnx_importer *im) {
    for (size_t i = 0; i < im->proto->n_input; i++) {
        const Onnx__ValueInfoProto *info = im->proto->input[i];
        const char *name = tide__onnx_str(info->name);
        if (name[0] == '\0') return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "graph input %zu has no name", i);
        uint32_t value_i;
        TIDE_TRY(tide_graph_intern_value(im->g, name, &value_i, im->err));
        if (im->g->values[value_i].constant == NULL) TIDE_TRY(tide_graph_add_input(im->g, value_i, im->err));
        TIDE_TRY(declare(im, value_i, info));
    }
    return TIDE_OK;
}

static tide_status add_outputs(tide__onnx_importer *im) {
    if (im->proto->n_output == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the graph has no outputs");
    for (size_t i = 0; i < im->proto->n_output; i++) {
        const Onnx__ValueInfoProto *info = im->proto->output[i];
        uint32_t value_i = tide_graph_find_value(im->g, tide__onnx_str(info->name));
        if (value_i == TIDE_NO_VALUE)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "nothing produces the graph output '%s'",
                             tide__onnx_str(info->name));
        TIDE_TRY(tide_graph_add_output(im->g, value_i, im->err));
        TIDE_TRY(declare(im, value_i, info));
    }
    return TIDE_OK;
}

static tide_status add_value_info(tide__onnx_importer *im) {
    for (size_t i = 0; i < im->proto->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = im->proto->value_info[i];
        const uint32_t value_i = tide_graph_find_value(im->g, tide__onnx_str(info->name));
        if (value_i != TIDE_NO_VALUE) TIDE_TRY(declare(im, value_i, info));
    }
    return TIDE_OK;
}

// ---- nodes ----

/// The first node with a name keeps it.
static tide_status collect_node_names(tide__onnx_importer *im) {
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const char *name = tide__onnx_str(im->proto->node[i]->name);
        if (name[0] == '\0' || tide_strmap_get(&im->node_names, name, NULL)) continue;
        if (tide_strmap_put(&im->node_names, name, i + 1) != TIDE_OK) return TIDE_NO_MEMORY(im->err, "for node names");
    }
    return TIDE_OK;
}

static bool has_bodies(const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
            if (g->node[i]->attribute[k]->g != NULL) return true;
        }
    }
    return false;
}

/// Names of the graph go before names in bodies.
static tide_status reserve_names(tide__onnx_importer *im) {
    if (im->model->n_functions == 0 && !has_bodies(im->proto)) return TIDE_OK;
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const Onnx__NodeProto *n = im->proto->node[i];
        uint32_t unused;
        for (size_t k = 0; k < n->n_output; k++)
            TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->output[k]), &unused));
    }
    return TIDE_OK;
}

static tide_status add_nodes(tide__onnx_importer *im) {
    if (im->proto->n_node == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the graph has no nodes");
    TIDE_TRY(collect_node_names(im));
    TIDE_TRY(reserve_names(im));
    for (size_t i = 0; i < im->proto->n_node; i++) TIDE_TRY(tide__onnx_node_add(im, im->proto->node[i], i));
    return tide_graph_find_captures(im->g, im->err);
}

// ---- the model ----

static tide_status add_comment(tide__onnx_importer *im) {
    const char *producer = tide__onnx_str(im->model->producer_name);
    if (producer[0] == '\0') return TIDE_OK;
    tide_text comment = {0};
    tide_text_addf(&comment, "%s %s", producer, tide__onnx_str(im->model->producer_version));
    if (comment.failed) {
        tide_text_deinit(&comment);
        return TIDE_NO_MEMORY(im->err, "for a comment");
    }
    if (comment.data[comment.len - 1] == ' ') comment.data[--comment.len] = '\0';
    im->g->comment = comment.data;
    return TIDE_OK;
}

static tide_status read_defaults_of(tide__onnx_importer *im, const Onnx__FunctionProto *f) {
    for (size_t k = 0; k < f->base.n_unknown_fields; k++) {
        if (f->base.unknown_fields[k].tag != TIDE__ONNX_ATTRIBUTE_PROTO) continue;
        TIDE_TRY(TIDE_GROW(&im->defaults, &im->cap_defaults, im->n_defaults + 1, im->err, "for a function"));
        tide__onnx_default *d = &im->defaults[im->n_defaults];
        *d = (tide__onnx_default){.function = f};
        TIDE_TRY(tide__onnx_unpack_default(&f->base.unknown_fields[k], &d->attr, im->err));
        im->n_defaults++;
        if (tide__onnx_str(d->attr->name)[0] == '\0' || tide__onnx_str(d->attr->ref_attr_name)[0] != '\0')
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "function '%s' has an attribute without a name or a value",
                             tide__onnx_str(f->name));
    }
    return TIDE_OK;
}

static tide_status read_defaults(tide__onnx_importer *im) {
    for (size_t i = 0; i < im->model->n_functions; i++) TIDE_TRY(read_defaults_of(im, im->model->functions[i]));
    return TIDE_OK;
}

static tide_status import_graph(tide__onnx_importer *im) {
    TIDE_TRY(read_opsets(im));
    TIDE_TRY(read_defaults(im));
    TIDE_TRY(add_comment(im));
    TIDE_TRY(add_initializers(im));
    TIDE_TRY(add_inputs(im));
    TIDE_TRY(add_nodes(im));
    TIDE_TRY(add_outputs(im));
    TIDE_TRY(add_value_info(im));
    return tide_graph_validate(im->g, im->err);
}

/// One line, however many there are.
static void tell_of_twice(const tide__onnx_importer *im) {
    char more[48] = "";
    if (im->n_twice == 0) return;
    if (im->n_twice > 1) snprintf(more, sizeof more, " (and %zu other values)", im->n_twice - 1);
    tide_log(TIDE_LOG_WARN, "%s: two Constant nodes produce '%s'%s, the last one is taken", im->from->path,
             im->g->values[im->twice].name, more);
}

static tide_status import_model(const Onnx__ModelProto *model, const tide__onnx_bytes *from, tide_graph **out,
                                tide_error *err) {
    if (model->graph == NULL) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX model: there is no graph in it");
    tide__onnx_bytes noted = *from;
    tide__onnx_importer im = {.model = model, .proto = model->graph, .from = &noted, .err = err};
    const char *name = tide__onnx_str(model->graph->name);
    TIDE_TRY(tide_graph_create(name[0] != '\0' ? name : tide__path_leaf(from->path), from->path, &im.g, err));
    noted.graph = im.g;
    const tide_status st = import_graph(&im);
    tell_of_twice(&im);
    tide_strmap_deinit(&im.opsets);
    tide_strmap_deinit(&im.node_names);
    tide_strmap_deinit(&im.inner);
    tide_host_free(im.ends);
    for (size_t i = 0; i < im.n_defaults; i++) tide__onnx_free(&im.defaults[i].attr->base);
    tide_host_free(im.defaults);
    tide__onnx_free_sequences(&im);
    if (st == TIDE_OK) {
        *out = im.g;
    } else {
        tide_graph_destroy(im.g);
    }
    return st;
}

static tide_status from_bytes(const tide__onnx_bytes *from, size_t max_bytes, tide_graph **out, tide_error *err) {
    ProtobufCMessage *message = NULL;
    tide_status st;
    if (from->len == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX model: the file is empty");
    } else {
        st = tide__onnx_unpack(&onnx__model_proto__descriptor, from, max_bytes, &message, err);
    }
    if (st == TIDE_OK) st = import_model((Onnx__ModelProto *)message, from, out, err);
    tide__onnx_free(message);
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", from->path);
    return st;
}

tide_status tide_graph_from_onnx(const char *data, size_t len, const char *path, tide_graph **out, tide_error *err) {
    return tide_graph_sizes_from_onnx(data, len, path, 0, out, err);
}

tide_status tide_graph_sizes_from_onnx(const char *data, size_t len, const char *path, size_t max_bytes,
                                       tide_graph **out, tide_error *err) {
    const tide__onnx_bytes from = {.data = data, .len = len, .path = path != NULL ? path : ""};
    return from_bytes(&from, max_bytes, out, err);
}

static tide__onnx_bytes bytes_of(tide_block *file, const char *path) {
    return (tide__onnx_bytes){.data = tide_block_address(file),
                              .len = file->mem.requested_bytes,
                              .path = path != NULL ? path : "",
                              .file = file};
}

tide_status tide_graph_from_onnx_mapped(tide_block *file, const char *path, tide_graph **out, tide_error *err) {
    const tide__onnx_bytes from = bytes_of(file, path);
    return from_bytes(&from, 0, out, err);
}

tide_status tide_graph_sizes_from_onnx_mapped(tide_block *file, const char *path, const tide_contents *contents,
                                              size_t max_bytes, tide_graph **out, tide_error *err) {
    tide__onnx_bytes from = bytes_of(file, path);
    from.contents = contents;
    return from_bytes(&from, max_bytes, out, err);
}
