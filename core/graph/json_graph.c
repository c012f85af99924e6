// SPDX-License-Identifier: MIT
//
// Graph text to graph: tidemark's own format, for graphs that people write, read and keep in a repository. The
// schema is docs/graph-text.md. Nodes may stand in any order.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/graph/import.h"
#include "core/graph/json_internal.h"

enum { DEFAULT_OPSET = 13, MAX_OPSET = 24, FORMAT_VERSION = 1 };

typedef struct reader {
    tide_json_reader json;
    const json_t *root;
    tide_graph *g;
    tide_strmap node_names;
    uint32_t *ends; // [cap_ends] inputs, then outputs of the node at hand
    size_t cap_ends;
    tide__json_budget budget;
    int opset;
} reader;

// ---- head ----

/// Messages name the graph from here on.
static void name_root(reader *r) { snprintf(r->json.at, sizeof r->json.at, "the graph"); }

static tide_status check_schema(reader *r) {
    const json_t *root = r->root;
    tide_error *err = r->json.err;
    static const char *const known[] = {"schema", "version",      "name",  "comment", "opset",
                                        "inputs", "initializers", "nodes", "outputs", NULL};
    if (!json_is_object(root)) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "a graph text is a JSON object");
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (schema == NULL || strcmp(schema, "tidemark.graph") != 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not a graph text: its 'schema' is %s%s%s", schema != NULL ? "'" : "",
                      schema != NULL ? schema : "missing", schema != NULL ? "'" : "");
        tide_error_hint(err, "a graph text begins with {\"schema\": \"tidemark.graph\", \"version\": 1, …");
        return st;
    }
    json_t *version;
    TIDE_TRY(tide_json_get(&r->json, root, "version", JSON_INTEGER, true, &version));
    if (json_integer_value(version) != FORMAT_VERSION)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "graph text of version %lld, this program reads %d",
                         (long long)json_integer_value(version), FORMAT_VERSION);
    return tide__json_check_keys(&r->json, root, known);
}

static tide_status read_head(reader *r, const char *path) {
    json_t *opset;
    const char *name = NULL, *comment = NULL;
    TIDE_TRY(tide__json_text_if(&r->json, r->root, "name", &name));
    TIDE_TRY(tide__json_text_if(&r->json, r->root, "comment", &comment));
    TIDE_TRY(tide_json_get(&r->json, r->root, "opset", JSON_INTEGER, false, &opset));
    const json_int_t version = opset != NULL ? json_integer_value(opset) : DEFAULT_OPSET;
    if (version < 1 || version > MAX_OPSET)
        return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "opset %lld: 1 to %d are known", (long long)version,
                         MAX_OPSET);
    r->opset = (int)version;
    TIDE_TRY(
        tide_graph_create(name != NULL && name[0] != '\0' ? name : tide__path_leaf(path), path, &r->g, r->json.err));
    if (comment == NULL) return TIDE_OK;
    return TIDE_COPY_TEXT(&r->g->comment, comment, r->json.err, "for a comment");
}

// ---- values ----

/// "inputs[2] 'x'" for messages; the name may be missing.
static void describe(char at[128], const char *list, size_t i, const json_t *item) {
    const char *name = json_string_value(json_object_get(item, "name"));
    if (name == NULL) {
        snprintf(at, 128, "%s[%zu]", list, i);
    } else {
        snprintf(at, 128, "%s[%zu] '%.80s'", list, i, name);
    }
}

static tide_status add_input(reader *r, const json_t *item) {
    static const char *const known[] = {"name", "dtype", "shape", NULL};
    const char *name;
    json_t *extents;
    uint32_t value_i;
    tide_dtype dtype;
    TIDE_TRY(tide__json_check_keys(&r->json, item, known));
    TIDE_TRY(tide_json_get_text(&r->json, item, "name", &name));
    TIDE_TRY(tide__json_dtype(&r->json, item, &dtype));
    TIDE_TRY(tide_json_get(&r->json, item, "shape", JSON_ARRAY, true, &extents));
    TIDE_TRY(tide_graph_add_value(r->g, name, &value_i, r->json.err));
    tide_value *v = &r->g->values[value_i];
    TIDE_TRY(tide__json_shape(&r->json, extents, &v->shape, &v->dim_names));
    v->has_shape = true;
    v->dtype = dtype;
    return tide_graph_add_input(r->g, value_i, r->json.err);
}

static tide_status add_initializer(reader *r, const json_t *item) {
    static const char *const known[] = {"name", "dtype", "shape", "values", "fill", "random", NULL};
    const char *name;
    uint32_t value_i;
    tide_tensor *tensor = NULL;
    TIDE_TRY(tide__json_check_keys(&r->json, item, known));
    TIDE_TRY(tide_json_get_text(&r->json, item, "name", &name));
    TIDE_TRY(tide_graph_add_value(r->g, name, &value_i, r->json.err));
    TIDE_TRY(tide__json_tensor(&r->json, item, name, &r->budget, &tensor));
    tide_graph_set_constant(r->g, value_i, tensor);
    tide_tensor_unref(tensor);
    return TIDE_OK;
}

// ---- nodes ----

static tide_status intern_ends(reader *r, const json_t *names, uint32_t *ends) {
    for (size_t k = 0; k < json_array_size(names); k++) {
        const char *name = json_string_value(json_array_get(names, k));
        if (name == NULL)
            return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "inputs and outputs of %s are names", r->json.at);
        ends[k] = TIDE_NO_VALUE;
        if (name[0] != '\0') TIDE_TRY(tide_graph_intern_value(r->g, name, &ends[k], r->json.err));
    }
    return TIDE_OK;
}

static tide_status claim_node_name(reader *r, const json_t *item) {
    const char *name = json_string_value(json_object_get(item, "name"));
    if (name == NULL || name[0] == '\0') return TIDE_OK;
    if (tide_strmap_get(&r->node_names, name, NULL))
        return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "the name '%s' is given to two nodes", name);
    return tide_strmap_put(&r->node_names, name, 0) == TIDE_OK ? TIDE_OK
                                                               : TIDE_NO_MEMORY(r->json.err, "for node names");
}

static tide_status add_node(reader *r, const json_t *item) {
    static const char *const known[] = {"op", "name", "domain", "inputs", "outputs", "attrs", "output_types", NULL};
    const char *op, *name = NULL;
    json_t *inputs, *outputs, *attrs, *types;
    TIDE_TRY(tide__json_check_keys(&r->json, item, known));
    TIDE_TRY(tide_json_get_text(&r->json, item, "op", &op));
    TIDE_TRY(tide__json_text_if(&r->json, item, "name", &name));
    TIDE_TRY(tide_json_get(&r->json, item, "inputs", JSON_ARRAY, false, &inputs));
    TIDE_TRY(tide_json_get(&r->json, item, "outputs", JSON_ARRAY, true, &outputs));
    TIDE_TRY(tide_json_get(&r->json, item, "attrs", JSON_OBJECT, false, &attrs));
    TIDE_TRY(tide_json_get(&r->json, item, "output_types", JSON_ARRAY, false, &types));
    const char *domain = types != NULL ? "tidemark" : "";
    TIDE_TRY(tide__json_text_if(&r->json, item, "domain", &domain));
    if (op[0] == '\0') return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "%s has no operator", r->json.at);
    const size_t n_inputs = inputs != NULL ? json_array_size(inputs) : 0;
    const size_t n_outputs = json_array_size(outputs);
    TIDE_TRY(TIDE_GROW(&r->ends, &r->cap_ends, n_inputs + n_outputs, r->json.err, "for %s", r->json.at));
    if (inputs != NULL) TIDE_TRY(intern_ends(r, inputs, r->ends));
    TIDE_TRY(intern_ends(r, outputs, r->ends + n_inputs));
    const bool standard = domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
    tide_text made_up = {0};
    tide_status st = TIDE_OK;
    if (name == NULL || name[0] == '\0') {
        st = tide__node_name_make(op, r->g->n_nodes, &r->node_names, &made_up, r->json.err);
        name = made_up.data;
    }
    uint32_t node_i;
    if (st == TIDE_OK)
        st = tide_graph_add_node(r->g, name, op, domain, standard ? r->opset : 1, r->ends, n_inputs, r->ends + n_inputs,
                                 n_outputs, &node_i, r->json.err);
    tide_text_deinit(&made_up);
    if (st != TIDE_OK) return st;
    if (attrs != NULL) TIDE_TRY(tide__json_attrs(&r->json, r->g, node_i, attrs, &r->budget));
    return types != NULL ? tide__json_output_types(&r->json, r->g, node_i, types) : TIDE_OK;
}

// ---- lists ----

/// Call `add` for every element of a list of the root; an error says which element it was.
static tide_status each(reader *r, const char *key, bool required, tide_status (*add)(reader *r, const json_t *item)) {
    json_t *list;
    name_root(r);
    TIDE_TRY(tide_json_get(&r->json, r->root, key, JSON_ARRAY, required, &list));
    if (required && json_array_size(list) == 0)
        return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "the graph has no %s", key);
    for (size_t i = 0; list != NULL && i < json_array_size(list); i++) {
        describe(r->json.at, key, i, json_array_get(list, i));
        const tide_status st = add(r, json_array_get(list, i));
        if (st == TIDE_OK) continue;
        tide_error_where(r->json.err, "%s: %s", r->g->source, r->json.at);
        return st;
    }
    return TIDE_OK;
}

static tide_status add_output(reader *r, const json_t *item) {
    const char *name = json_string_value(item);
    if (name == NULL) return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "%s should be a name", r->json.at);
    const uint32_t value_i = tide_graph_find_value(r->g, name);
    if (value_i == TIDE_NO_VALUE)
        return TIDE_FAIL(r->json.err, TIDE_ERR_BAD_INPUT, "nothing produces the graph output '%s'", name);
    return tide_graph_add_output(r->g, value_i, r->json.err);
}

static tide_status read_graph(reader *r, const char *path) {
    name_root(r);
    TIDE_TRY(check_schema(r));
    TIDE_TRY(read_head(r, path));
    TIDE_TRY(each(r, "inputs", false, add_input));
    TIDE_TRY(each(r, "initializers", false, add_initializer));
    // All names first: one that is made up must not take a later node's.
    TIDE_TRY(each(r, "nodes", true, claim_node_name));
    TIDE_TRY(each(r, "nodes", true, add_node));
    TIDE_TRY(each(r, "outputs", true, add_output));
    return tide_graph_validate(r->g, r->json.err);
}

// ---- memory that is needed ----

/// Bytes that reading and planning a graph text take, by what its characters count up: a string is a name with its part
/// in nodes, operands and orders, beside what jansson keeps of it. Fitted to chains and to wide nodes of 30,000 to
/// 1,000,000 strings, of which it is 10 % low to 20 % high; tests/cli/amplifiers.py holds the limit against what
/// planning takes.
static size_t need_of(const char *data, size_t len) {
    enum { BASE_BYTES = 12 << 20, STRING_BYTES = 240, OBJECT_BYTES = 250, ARRAY_BYTES = 30, NUMBER_BYTES = 50 };
    size_t need = BASE_BYTES + len;
    bool in_string = false, in_number = false;
    for (size_t i = 0; i < len; i++) {
        const char c = data[i];
        if (in_string) {
            if (c == '\\') i++;
            if (c != '"') continue;
            in_string = false;
            need += STRING_BYTES;
            continue;
        }
        const bool is_digit = (c >= '0' && c <= '9') || c == '-';
        if (is_digit && !in_number) need += NUMBER_BYTES;
        in_number = is_digit || (in_number && (c == '.' || c == '+' || c == 'e' || c == 'E'));
        in_string = c == '"';
        if (c == '{') need += OBJECT_BYTES;
        if (c == '[') need += ARRAY_BYTES;
    }
    return need;
}

static tide_status check_need(const char *data, size_t len, size_t max_bytes, const char *path, tide_error *err) {
    const size_t need = max_bytes != 0 ? need_of(data, len) : 0;
    if (need <= max_bytes) return TIDE_OK;
    const tide_status st = tide__graph_needs_too_much(need, max_bytes, err);
    tide_error_where(err, "%s", path);
    return st;
}

// ---- the document ----

static tide_status import(const char *data, size_t len, const char *path, const tide_contents *contents,
                          tide_graph **out, tide_error *err) {
    if (path == NULL) path = "";
    json_t *root;
    reader r = {.json = {.path = path, .err = err, .refuse = tide__json_refuse},
                .budget = {.bytes = (size_t)4 << 30, .may_be_blank = contents != NULL}};
    TIDE_TRY(tide_json_parse(&r.json, data, len, JSON_REJECT_DUPLICATES, "not JSON", &root));
    r.root = root;
    if (contents != NULL) r.budget.contents = *contents;
    const tide_status st = read_graph(&r, path);
    if (st == TIDE_OK) {
        *out = r.g;
    } else {
        tide_graph_destroy(r.g);
        if (err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", path);
    }
    tide_strmap_deinit(&r.node_names);
    tide_host_free(r.ends);
    json_decref(root);
    return st;
}

tide_status tide_graph_from_json(const char *data, size_t len, const char *path, tide_graph **out, tide_error *err) {
    return import(data, len, path, NULL, out, err);
}

tide_status tide_graph_sizes_from_json(const char *data, size_t len, const char *path, const tide_contents *contents,
                                       size_t max_bytes, tide_graph **out, tide_error *err) {
    TIDE_TRY(check_need(data, len, max_bytes, path, err));
    return import(data, len, path, contents, out, err);
}
