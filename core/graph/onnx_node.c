// SPDX-License-Identifier: MIT
//
// Nodes of an ONNX file: constants, nodes with their attributes, bodies of If, Loop and Scan, which become regions
// (region.h), and calls of the file's own functions, of which each becomes the function's nodes. See onnx_import.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/onnx_import.h"
#include "core/graph/region.h"

// ---- nodes ----

/// Whether attribute `name` is a body of the operator: those are read by find_body, and become regions.
static bool is_body(const Onnx__NodeProto *n, const char *name) {
    if (tide__onnx_domain(n->domain)[0] != '\0') return false;
    if (strcmp(n->op_type, "If") == 0) return strcmp(name, "then_branch") == 0 || strcmp(name, "else_branch") == 0;
    return (strcmp(n->op_type, "Loop") == 0 || strcmp(n->op_type, "Scan") == 0) && strcmp(name, "body") == 0;
}

static tide_status add_attrs(tide__onnx_importer *im, uint32_t node_i, const Onnx__NodeProto *n) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        Onnx__AttributeProto *a;
        const char *name = tide__onnx_str(n->attribute[k]->name);
        TIDE_TRY(tide__onnx_resolve_attr(im, im->g->nodes[node_i].name, n->attribute[k], &a));
        if (a == NULL || is_body(n, name)) continue;
        TIDE_TRY(tide__onnx_attr_add(im->g, node_i, name, a, im->from, im->err));
    }
    return TIDE_OK;
}

/// A name may be given to two Constant nodes, and the last one holds: that is how ONNX Runtime reads such files, and
/// models patched by a script have it (GPT-2 exports with shrunken weights). Any other double use of a name is an
/// error.
static tide_status set_constant(tide__onnx_importer *im, uint32_t value_i, tide_tensor *tensor) {
    const tide_value *v = &im->g->values[value_i];
    const bool is_initializer = im->scope == NULL && value_i < im->proto->n_initializer; // they were added first
    if (is_initializer || v->is_input || v->producer != TIDE_NO_NODE || (im->scope != NULL && v->constant != NULL))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a Constant produces '%s', which is there already", v->name);
    if (v->constant != NULL && im->n_twice++ == 0) im->twice = value_i;
    tide_graph_set_constant(im->g, value_i, tensor);
    return TIDE_OK;
}

static tide_status add_constant_node(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const char *label = n->n_output > 0 ? tide__onnx_str(n->output[0]) : "";
    if (n->n_output != 1 || label[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "Constant '%s' has %zu outputs, it needs one",
                         tide__onnx_str(n->name), n->n_output);
    Onnx__AttributeProto *a = NULL;
    if (n->n_attribute == 1) TIDE_TRY(tide__onnx_resolve_attr(im, label, n->attribute[0], &a));
    if (a == NULL)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the Constant for '%s' has %zu attributes, it needs one", label,
                         n->n_attribute == 1 ? (size_t)0 : n->n_attribute);
    tide_tensor *tensor = NULL;
    TIDE_TRY(tide__onnx_constant(label, tide__onnx_str(n->attribute[0]->name), a, im->from, &tensor, im->err));
    uint32_t value_i;
    tide_status st = tide__onnx_value_named(im, label, &value_i);
    if (st == TIDE_OK) st = set_constant(im, value_i, tensor);
    tide_tensor_unref(tensor);
    return st;
}

static tide_status opset_of(tide__onnx_importer *im, const Onnx__NodeProto *n, int *out) {
    uint64_t opset;
    if (!tide_strmap_get(&im->opsets, tide__onnx_domain(n->domain), &opset))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the model names no opset for the domain '%s' of operator %s",
                         tide__onnx_domain(n->domain), n->op_type);
    if (strcmp(tide__onnx_domain(n->domain), TIDE_REGION_DOMAIN) == 0)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the domain '%s' is tidemark's own", TIDE_REGION_DOMAIN);
    *out = (int)opset;
    return TIDE_OK;
}

/// A node with these operands, in the region at hand.
static tide_status put_node(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name, const uint32_t *in,
                            size_t n_in, const uint32_t *out, size_t n_out, uint32_t *node_i) {
    int opset;
    TIDE_TRY(opset_of(im, n, &opset));
    TIDE_TRY(tide_graph_add_node(im->g, name, n->op_type, tide__onnx_domain(n->domain), opset, in, n_in, out, n_out,
                                 node_i, im->err));
    im->g->nodes[*node_i].region = im->region;
    return TIDE_OK;
}

static tide_status add_plain_node(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    uint32_t node_i;
    TIDE_TRY(TIDE_GROW(&im->ends, &im->cap_ends, n->n_input + n->n_output, im->err, "for %s", name));
    TIDE_TRY(tide__onnx_values_named(im, n->input, n->n_input, im->ends));
    TIDE_TRY(tide__onnx_values_named(im, n->output, n->n_output, im->ends + n->n_input));
    TIDE_TRY(put_node(im, n, name, im->ends, n->n_input, im->ends + n->n_input, n->n_output, &node_i));
    return add_attrs(im, node_i, n);
}

// ---- bodies ----

/// The body of an If, a Loop or a Scan under way.
typedef struct body {
    const Onnx__NodeProto *node; // that it is of
    const char *name;            // of the node
    const Onnx__GraphProto *proto;
    tide_region region;
    uint32_t number;
    uint32_t *results; // [n_output] values
} body;

static tide_status find_body(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *attr,
                             const Onnx__GraphProto **out) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        Onnx__AttributeProto *a;
        if (strcmp(tide__onnx_str(n->attribute[k]->name), attr) != 0) continue;
        TIDE_TRY(tide__onnx_resolve_attr(im, tide__onnx_str(n->name), n->attribute[k], &a));
        if (a == NULL || a->g == NULL) break;
        *out = a->g;
        return TIDE_OK;
    }
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s has no body '%s'", n->op_type, attr);
}

/// The inputs of a body are values that the opening node makes. Their type is what the file says; their shape follows
/// from what is handed in, but that the number of an iteration and a condition may have the shape [1].
static tide_status bind_inputs(tide__onnx_importer *im, body *b, tide__onnx_scope *s) {
    const tide_region *r = &b->region;
    const uint32_t *made = im->g->nodes[r->open].outputs;
    const size_t n_scalars = r->kind == TIDE_REGION_LOOP ? 2 : 0;
    const size_t wanted = tide_region_repeats(r) ? n_scalars + r->n_carried + r->n_items : 0;
    if (b->proto->n_input != wanted)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the body of %s '%s' has %zu inputs, it is handed %zu",
                         b->node->op_type, b->name, b->proto->n_input, wanted);
    for (size_t k = 0; k < wanted; k++) {
        const Onnx__ValueInfoProto *info = b->proto->input[k];
        const char *name = tide__onnx_str(info->name);
        if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "input %zu of the body of '%s' has no name of its own", k,
                             b->name);
        size_t at = k < n_scalars ? tide_region_iteration(r) + k : k - n_scalars;
        if (k >= n_scalars + r->n_carried) at += r->n_collected;
        TIDE_TRY(tide__onnx_bind_name(im, s, name, made[at]));
        if (k < n_scalars) TIDE_TRY(tide__onnx_declare(im, made[at], info->type));
    }
    return TIDE_OK;
}

static tide_status bind_initializers(tide__onnx_importer *im, body *b, tide__onnx_scope *s) {
    if (b->proto->n_sparse_initializer > 0)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "the body of '%s' has a sparse initialiser", b->name);
    for (size_t i = 0; i < b->proto->n_initializer; i++) {
        Onnx__TensorProto *t = b->proto->initializer[i];
        const char *name = tide__onnx_str(t->name);
        uint32_t value_i;
        if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "initialiser %zu of the body of '%s' has no name of its own",
                             i, b->name);
        TIDE_TRY(tide__onnx_make_value(im, s, name, &value_i));
        TIDE_TRY(tide__onnx_bind_name(im, s, name, value_i));
        tide_tensor *tensor = NULL;
        TIDE_TRY(tide__onnx_tensor_take(t, name, im->from, &tensor, im->err));
        tide_graph_set_constant(im->g, value_i, tensor);
        tide_tensor_unref(tensor);
    }
    return TIDE_OK;
}

/// What a body hands on must not be overwritten before it is read: a carried value that becomes another one is copied.
static tide_status copy_result(tide__onnx_importer *im, body *b, size_t k) {
    const tide_node *open = &im->g->nodes[b->region.open];
    const size_t first = tide_region_first_next(&b->region);
    if (!tide_region_repeats(&b->region) || k < first || k >= first + b->region.n_carried) return TIDE_OK;
    size_t j = 0;
    while (j < b->region.n_carried && open->outputs[j] != b->results[k]) j++;
    if (j == b->region.n_carried || j == k - first) return TIDE_OK;
    uint32_t copy, node_i;
    TIDE_TRY(tide__onnx_make_value(im, NULL, im->g->values[b->results[k]].name, &copy));
    TIDE_TRY(tide_graph_add_node(im->g, NULL, "Identity", "", 14, &b->results[k], 1, &copy, 1, &node_i, im->err));
    im->g->nodes[node_i].region = b->number;
    b->results[k] = copy;
    return TIDE_OK;
}

static tide_status find_results(tide__onnx_importer *im, body *b, const tide__onnx_scope *s) {
    for (size_t k = 0; k < b->proto->n_output; k++) {
        const Onnx__ValueInfoProto *info = b->proto->output[k];
        const char *name = tide__onnx_str(info->name);
        TIDE_TRY(tide__onnx_value_named(im, name, &b->results[k]));
        if (b->results[k] == TIDE_NO_VALUE)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "result %zu of a body of '%s' has no name", k, b->name);
        const tide_value *v = &im->g->values[b->results[k]];
        const bool is_made_here = v->producer != TIDE_NO_NODE && im->g->nodes[v->producer].region == b->number;
        if (is_made_here && tide_strmap_get(&s->names, name, NULL))
            TIDE_TRY(tide__onnx_declare(im, b->results[k], info->type));
        TIDE_TRY(copy_result(im, b, k));
    }
    return TIDE_OK;
}

static tide_status read_body(tide__onnx_importer *im, body *b, tide__onnx_scope *s) {
    TIDE_TRY(bind_inputs(im, b, s));
    TIDE_TRY(bind_initializers(im, b, s));
    TIDE_TRY(tide__onnx_bind_results(im, s, b->proto->node, b->proto->n_node));
    for (size_t i = 0; i < b->proto->n_node; i++) TIDE_TRY(tide__onnx_node_add(im, b->proto->node[i], i));
    return find_results(im, b, s);
}

/// Add the region of `b`, whose node is there, and all that is in it.
static tide_status add_body(tide__onnx_importer *im, body *b) {
    if (b->proto->n_output != tide_region_n_results(&b->region))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a body of %s '%s' has %zu results, %zu are wanted",
                         b->node->op_type, b->name, b->proto->n_output, tide_region_n_results(&b->region));
    tide__onnx_scope s = {
        .up = im->scope, .prefix = im->scope != NULL ? im->scope->prefix : "", .open = b->region.open};
    const tide__onnx_scope *const outer = im->scope;
    const uint32_t region = im->region;
    TIDE_TRY(TIDE_NEW(&b->results, b->proto->n_output + 1, im->err, "for the results of a body"));
    b->region.parent = region;
    tide_status st = tide_graph_add_region(im->g, &b->region, &b->number, im->err);
    if (st == TIDE_OK) {
        im->scope = &s;
        im->region = b->number;
        st = read_body(im, b, &s);
        im->scope = outer;
        im->region = region;
    }
    if (st == TIDE_OK) st = tide_graph_close_region(im->g, b->number, b->results, b->proto->n_output, im->err);
    tide_strmap_deinit(&s.names);
    tide_host_free(b->results);
    return st;
}

static tide_status add_if(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    static const char *const attrs[] = {"then_branch", "else_branch"};
    uint32_t node_i, numbers[2];
    if (n->n_input != 1)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "If has %zu inputs, it takes the condition", n->n_input);
    TIDE_TRY(add_plain_node(im, n, name));
    node_i = (uint32_t)im->g->n_nodes - 1;
    for (size_t k = 0; k < 2; k++) {
        body b = {
            .node = n,
            .name = name,
            .region = {.kind = k == 0 ? TIDE_REGION_THEN : TIDE_REGION_ELSE, .open = node_i, .n_carried = n->n_output}};
        TIDE_TRY(find_body(im, n, attrs[k], &b.proto));
        TIDE_TRY(add_body(im, &b));
        numbers[k] = b.number;
    }
    im->g->nodes[node_i].opens = numbers[0];
    im->g->regions[numbers[0] - 1].other = numbers[1];
    im->g->regions[numbers[1] - 1].other = numbers[0];
    return TIDE_OK;
}

/// The operands of a Loop or Scan: what the file says, and what its body is given besides.
static tide_status list_ends(tide__onnx_importer *im, const body *b, uint32_t *in, size_t n_in, uint32_t *out,
                             size_t n_out) {
    const Onnx__NodeProto *n = b->node;
    const tide_region *r = &b->region;
    for (size_t k = 0; k < n_in; k++) in[k] = TIDE_NO_VALUE;
    TIDE_TRY(tide__onnx_values_named(im, n->input, n->n_input, in));
    for (size_t k = 0; k < n_out; k++) {
        out[k] = TIDE_NO_VALUE;
        if (k < n->n_output && tide__onnx_str(n->output[k])[0] != '\0') {
            TIDE_TRY(tide__onnx_value_named(im, n->output[k], &out[k]));
            continue;
        }
        const bool is_collected = k >= r->n_carried && k < r->n_carried + r->n_collected;
        const char *stem = is_collected ? "collected" : k < r->n_carried ? "carried" : "step";
        tide_text name = {0};
        tide_text_addf(&name, "%s.%s", b->name, stem);
        const tide_status st =
            name.failed ? TIDE_NO_MEMORY(im->err, "for a name") : tide__onnx_make_value(im, NULL, name.data, &out[k]);
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static tide_status open_loop(tide__onnx_importer *im, body *b, size_t n_in, size_t n_out) {
    uint32_t *ends;
    TIDE_TRY(TIDE_NEW(&ends, n_in + n_out + 1, im->err, "for %s", b->name));
    tide_status st = list_ends(im, b, ends, n_in, ends + n_in, n_out);
    if (st == TIDE_OK) st = put_node(im, b->node, b->name, ends, n_in, ends + n_in, n_out, &b->region.open);
    tide_host_free(ends);
    if (st == TIDE_OK) st = add_attrs(im, b->region.open, b->node);
    if (st == TIDE_OK) st = add_body(im, b);
    if (st == TIDE_OK) im->g->nodes[b->region.open].opens = b->number;
    return st;
}

static tide_status check_results(tide__onnx_importer *im, const body *b, size_t n_fixed) {
    const tide_region *r = &b->region;
    if (b->proto->n_output >= n_fixed && b->node->n_output <= r->n_carried + b->proto->n_output - n_fixed)
        return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s carries %zu values and has %zu results, its body has %zu",
                     b->node->op_type, r->n_carried, b->node->n_output, b->proto->n_output);
}

static tide_status add_loop(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    body b = {.node = n, .name = name, .region = {.kind = TIDE_REGION_LOOP}};
    TIDE_TRY(find_body(im, n, "body", &b.proto));
    b.region.n_carried = n->n_input > 2 ? n->n_input - 2 : 0;
    TIDE_TRY(check_results(im, &b, 1 + b.region.n_carried));
    b.region.n_collected = b.proto->n_output - 1 - b.region.n_carried;
    return open_loop(im, &b, 2 + b.region.n_carried, tide_region_iteration(&b.region) + 2);
}

static tide_status add_scan(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    body b = {.node = n, .name = name, .region = {.kind = TIDE_REGION_SCAN}};
    int64_t n_items = 0;
    TIDE_TRY(find_body(im, n, "body", &b.proto));
    for (size_t k = 0; k < n->n_attribute; k++) {
        if (strcmp(tide__onnx_str(n->attribute[k]->name), "num_scan_inputs") == 0) n_items = n->attribute[k]->i;
    }
    if (n_items < 1 || (uint64_t)n_items > n->n_input)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "Scan has %zu inputs and num_scan_inputs %" PRId64, n->n_input,
                         n_items);
    b.region.n_items = (size_t)n_items;
    b.region.n_carried = n->n_input - (size_t)n_items;
    TIDE_TRY(check_results(im, &b, b.region.n_carried));
    b.region.n_collected = b.proto->n_output - b.region.n_carried;
    TIDE_TRY(open_loop(im, &b, n->n_input, tide_region_iteration(&b.region) + 1));
    if (im->g->nodes[b.region.open].opset < 9) im->g->nodes[b.region.open].opset = 9; // onnx_scan.c made it so
    return TIDE_OK;
}

static tide_status add_any_scan(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    const Onnx__GraphProto *proto;
    int opset;
    TIDE_TRY(opset_of(im, n, &opset));
    if (opset >= 9 || n == im->batch_scan) return add_scan(im, n, name);
    TIDE_TRY(find_body(im, n, "body", &proto));
    return tide__onnx_add_batch_scan(im, n, name, proto, add_scan);
}

// ---- functions of the file ----

static const Onnx__FunctionProto *find_function(const tide__onnx_importer *im, const Onnx__NodeProto *n) {
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        if (strcmp(tide__onnx_str(f->name), n->op_type) == 0 &&
            strcmp(tide__onnx_domain(f->domain), tide__onnx_domain(n->domain)) == 0)
            return f;
    }
    return NULL;
}

static tide_status check_call(tide__onnx_importer *im, const Onnx__NodeProto *n, const Onnx__FunctionProto *f) {
    enum { MAX_CALLS = 64, MAX_NODES = 1 << 17 };
    size_t depth = 0;
    for (const tide__onnx_scope *s = im->scope; s != NULL; s = s->up) {
        if (s->function == f) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "function '%s' calls itself", f->name);
        if (s->function != NULL && ++depth >= MAX_CALLS)
            return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "more than %d functions call one another",
                             (int)MAX_CALLS);
    }
    if (im->g->n_nodes > im->proto->n_node + MAX_NODES)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "the calls of functions come to more than %d nodes",
                         (int)MAX_NODES);
    if (n->n_input <= f->n_input && n->n_output <= f->n_output) return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT,
                     "the call of function '%s' has %zu inputs and %zu outputs, the function %zu and %zu", f->name,
                     n->n_input, n->n_output, f->n_input, f->n_output);
}

static tide_status bind_call(tide__onnx_importer *im, const Onnx__NodeProto *n, const Onnx__FunctionProto *f,
                             tide__onnx_scope *s) {
    for (size_t k = 0; k < f->n_input; k++) {
        uint32_t value_i = TIDE_NO_VALUE;
        if (k < n->n_input) TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->input[k]), &value_i));
        TIDE_TRY(tide__onnx_bind_name(im, s, tide__onnx_str(f->input[k]), value_i));
    }
    for (size_t k = 0; k < f->n_output; k++) {
        const char *name = tide__onnx_str(f->output[k]);
        uint32_t value_i = TIDE_NO_VALUE;
        if (tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "output '%s' of function '%s' is there already", name,
                             f->name);
        if (k < n->n_output) TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->output[k]), &value_i));
        if (value_i != TIDE_NO_VALUE) TIDE_TRY(tide__onnx_bind_name(im, s, name, value_i));
    }
    return tide__onnx_bind_results(im, s, f->node, f->n_node);
}

static tide_status read_function(tide__onnx_importer *im, const Onnx__FunctionProto *f, tide__onnx_scope *s) {
    const tide__onnx_scope *const outer = im->scope;
    const tide_strmap opsets = im->opsets;
    const bool was_read_again = im->from->is_read_again;
    im->opsets = (tide_strmap){0};
    tide_status st = tide__onnx_read_opsets(im, f->opset_import, f->n_opset_import, &im->opsets);
    im->scope = s;
    im->from->is_read_again = true;
    for (size_t i = 0; i < f->n_node && st == TIDE_OK; i++) st = tide__onnx_node_add(im, f->node[i], i);
    im->from->is_read_again = was_read_again;
    im->scope = outer;
    tide_strmap_deinit(&im->opsets);
    im->opsets = opsets;
    return st;
}

/// The nodes of the function, once for each call.
static tide_status add_call(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name,
                            const Onnx__FunctionProto *f) {
    TIDE_TRY(check_call(im, n, f));
    tide_text prefix = {0};
    tide_text_addf(&prefix, "%s/", name);
    tide__onnx_scope s = {.up = im->scope, .function = f, .call = n, .prefix = tide_text_str(&prefix)};
    tide_status st = prefix.failed ? TIDE_NO_MEMORY(im->err, "for a name") : bind_call(im, n, f, &s);
    if (st == TIDE_OK) st = read_function(im, f, &s);
    tide_strmap_deinit(&s.names);
    tide_text_deinit(&prefix);
    return st;
}

// ---- any node ----

/// The node's own name, or a made-up one that no other node has. *made_up is owned by the caller.
static tide_status pick_node_name(tide__onnx_importer *im, size_t file_i, const char **name, tide_text *made_up) {
    const Onnx__NodeProto *n = im->proto->node[file_i];
    uint64_t owner = 0;
    *name = tide__onnx_str(n->name);
    if (tide_strmap_get(&im->node_names, *name, &owner) && owner == file_i + 1) return TIDE_OK;
    TIDE_TRY(tide__node_name_make(n->op_type, im->g->n_nodes, &im->node_names, made_up, im->err));
    *name = made_up->data;
    return TIDE_OK;
}

/// In a body or a function: the node's own name behind the prefix, or the next free one.
static tide_status pick_inner_name(tide__onnx_importer *im, const Onnx__NodeProto *n, tide_text *out) {
    const char *name = tide__onnx_str(n->name);
    tide_text_add(out, im->scope->prefix);
    if (name[0] != '\0')
        tide_text_add(out, name);
    else
        tide_text_addf(out, "%s_%zu", n->op_type, im->g->n_nodes);
    const size_t len = out->len;
    for (unsigned k = 2; !out->failed && tide_strmap_get(&im->node_names, out->data, NULL); k++) {
        out->len = len;
        tide_text_addf(out, "_%u", k);
    }
    if (out->failed || tide_strmap_put(&im->node_names, out->data, 0) != TIDE_OK)
        return TIDE_NO_MEMORY(im->err, "for node names");
    return TIDE_OK;
}

static tide_status pick_name(tide__onnx_importer *im, const Onnx__NodeProto *n, size_t file_i, const char **name,
                             tide_text *made_up) {
    if (im->scope == NULL) return pick_node_name(im, file_i, name, made_up);
    TIDE_TRY(pick_inner_name(im, n, made_up));
    *name = made_up->data;
    return TIDE_OK;
}

static tide_status add_real_node(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *name) {
    const Onnx__FunctionProto *f = find_function(im, n);
    if (f != NULL) return add_call(im, n, name, f);
    if (tide__onnx_is_sequence(n)) return tide__onnx_add_sequence(im, n);
    if (tide__onnx_domain(n->domain)[0] == '\0') {
        if (strcmp(n->op_type, "If") == 0) return add_if(im, n, name);
        if (strcmp(n->op_type, "Loop") == 0) return add_loop(im, n, name);
        if (strcmp(n->op_type, "Scan") == 0) return add_any_scan(im, n, name);
    }
    return add_plain_node(im, n, name);
}

static bool is_constant(const Onnx__NodeProto *n) {
    return strcmp(n->op_type, "Constant") == 0 && tide__onnx_domain(n->domain)[0] == '\0';
}

tide_status tide__onnx_node_add(tide__onnx_importer *im, const Onnx__NodeProto *n, size_t file_i) {
    if (n->op_type == NULL || n->op_type[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "node %zu '%s' has no operator", file_i, tide__onnx_str(n->name));
    tide_text made_up = {0};
    const char *name = tide__onnx_str(n->name);
    tide_status st;
    if (is_constant(n)) {
        st = add_constant_node(im, n);
    } else {
        st = pick_name(im, n, file_i, &name, &made_up);
        if (st == TIDE_OK) st = add_real_node(im, n, name);
    }
    // The innermost node has said where.
    if (st != TIDE_OK && im->err != NULL && im->err->where[0] == '\0')
        tide_error_where(im->err, "%s: node %zu '%s' (%s)", im->from->path, file_i, name, n->op_type);
    tide_text_deinit(&made_up);
    return st;
}
