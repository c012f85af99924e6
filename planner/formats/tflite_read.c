// SPDX-License-Identifier: MIT
//
// What a TensorFlow Lite model says: operator codes, subgraphs, tensors, operators, and its own plan of offsets. See
// tflite.h. Field numbers are those of schema 3d (tensorflow/compiler/mlir/lite/schema/schema.fbs).
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/formats/tflite.h"

// ---- the schema ----

enum { MODEL_OPERATOR_CODES = 1, MODEL_SUBGRAPHS = 2, MODEL_BUFFERS = 4, MODEL_METADATA = 6 };
enum { CODE_OLD = 0, CODE_CUSTOM = 1, CODE_BUILTIN = 3 };
enum { SUBGRAPH_TENSORS = 0, SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS, SUBGRAPH_NAME };
enum { TENSOR_SHAPE = 0, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_IS_VARIABLE = 5, TENSOR_SIGNATURE = 7 };
enum { TENSOR_EXTERNAL_BUFFER = 10 };
enum { OPERATOR_CODE = 0, OPERATOR_INPUTS, OPERATOR_OUTPUTS, OPERATOR_OPTIONS = 4, OPERATOR_INTERMEDIATES = 8 };
enum { OPERATOR_OPTIONS_2 = 12 };
enum { BUFFER_DATA = 0, BUFFER_OFFSET, BUFFER_SIZE };
enum { METADATA_NAME = 0, METADATA_BUFFER };

/// Bits of an element by TensorType; 0 for STRING, RESOURCE and VARIANT, which the runtime sizes while it runs.
static const uint8_t element_bits[] = {32, 16, 32, 8,  64, 0, 8,  16, 64, 8, 64, 128,
                                       64, 0,  0,  32, 16, 4, 16, 2,  4,  8, 8};
enum { N_TYPES = sizeof element_bits / sizeof element_bits[0] };

tide_status tide__tfl_fault(const tide__tfl *r, tide_status st) {
    tide_error_where(r->err, "%s", r->list.path);
    return st;
}

// ---- operator codes ----

/// The number is in one of two fields: 127 in the old one says that it is in the new one.
static tide_status read_code(tide__tfl *r, size_t i, tide__fb_vector *list) {
    tide__fb_table t;
    tide__fb_text custom;
    uint8_t old;
    int32_t builtin;
    tide__tfl_code *c = &r->codes[i];
    TIDE_TRY(tide__fb_table_at(&r->fb, list, i, &t));
    TIDE_TRY(tide__fb_u8(&r->fb, &t, CODE_OLD, 0, &old));
    TIDE_TRY(tide__fb_i32(&r->fb, &t, CODE_BUILTIN, 0, &builtin));
    TIDE_TRY(tide__fb_string(&r->fb, &t, CODE_CUSTOM, &custom));
    c->builtin = builtin > old ? (uint32_t)builtin : old;
    c->name = tide__tflite_operator_name(c->builtin);
    if (c->name == NULL)
        return TIDE__TFL_BAD(r, "operator code %zu is %" PRIu32 ": there is no such operator", i, c->builtin);
    if (c->builtin != TIDE__TFL_CUSTOM || custom.len == 0) return TIDE_OK;
    c->custom = tide_host_strndup(custom.data, custom.len);
    c->name = c->custom;
    return c->name != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "to read %s", r->list.path);
}

static tide_status read_codes(tide__tfl *r, const tide__fb_table *model) {
    tide__fb_vector list;
    TIDE_TRY(tide__fb_list(&r->fb, model, MODEL_OPERATOR_CODES, 4, &list));
    TIDE_TRY(TIDE_NEW(&r->codes, list.n + 1, r->err, "to read %s", r->list.path));
    r->n_codes = list.n;
    for (size_t i = 0; i < list.n; i++) TIDE_TRY(read_code(r, i, &list));
    return TIDE_OK;
}

// ---- tensors ----

/// Bytes of a buffer that the file holds, in the flatbuffer or behind it; 0: it holds none.
static tide_status buffer_bytes(tide__tfl *r, uint32_t buffer, uint64_t *out) {
    tide__fb_table t;
    tide__fb_vector data;
    uint64_t offset, size, end;
    *out = 0;
    if (buffer >= r->buffer_list.n) {
        if (buffer == 0) return TIDE_OK;
        return TIDE__TFL_BAD(r, "a tensor is in buffer %" PRIu32 " of %zu", buffer, r->buffer_list.n);
    }
    TIDE_TRY(tide__fb_table_at(&r->fb, &r->buffer_list, buffer, &t));
    TIDE_TRY(tide__fb_blob(&r->fb, &t, BUFFER_DATA, &data));
    TIDE_TRY(tide__fb_u64(&r->fb, &t, BUFFER_OFFSET, 0, &offset));
    TIDE_TRY(tide__fb_u64(&r->fb, &t, BUFFER_SIZE, 0, &size));
    *out = data.n;
    if (data.n > 0 || offset <= 1) return TIDE_OK;
    if (!tide_add_u64(offset, size, &end) || end > r->fb.len)
        return TIDE__TFL_BAD(
            r, "buffer %" PRIu32 " has %" PRIu64 " bytes at %" PRIu64 ", outside of the file: it is cut or damaged",
            buffer, size, offset);
    *out = size;
    return TIDE_OK;
}

/// Elements by the shape; one of none has one.
static tide_status shape_bytes(tide__tfl *r, const tide__fb_table *t, const char *name, uint8_t type, uint64_t *out) {
    tide__fb_vector shape, signature;
    uint64_t n = 1, bits;
    bool is_open = false;
    TIDE_TRY(tide__fb_list(&r->fb, t, TENSOR_SHAPE, 4, &shape));
    TIDE_TRY(tide__fb_list(&r->fb, t, TENSOR_SIGNATURE, 4, &signature));
    bool is_empty = false, fits = true;
    for (size_t i = 0; i < shape.n; i++) {
        const int32_t extent = tide__fb_i32_at(&r->fb, &shape, i);
        if (extent < 0) return TIDE__TFL_BAD(r, "tensor '%s' has the extent %" PRId32 " in its shape", name, extent);
        is_empty = is_empty || extent == 0;
        fits = fits && tide_mul_u64(n, extent == 0 ? 1 : (uint64_t)extent, &n);
    }
    for (size_t i = 0; i < signature.n; i++) is_open = is_open || tide__fb_i32_at(&r->fb, &signature, i) < 0;
    if (is_open) r->n_signature++;
    fits = fits && tide_mul_u64(n, element_bits[type], &bits) && bits <= INT64_MAX;
    if (!is_empty && !fits) return TIDE__TFL_BAD(r, "tensor '%s' is too large to be planned", name);
    *out = is_empty ? 0 : (bits + 7) / 8;
    return TIDE_OK;
}

static tide_status read_tensor_name(tide__tfl *r, const tide__tfl_graph *g, size_t i, const tide__fb_table *t,
                                    char **out) {
    tide__fb_text name;
    tide_text text = {0};
    TIDE_TRY(tide__fb_string(&r->fb, t, TENSOR_NAME, &name));
    tide_text_add(&text, g->name);
    if (name.len > 0)
        tide_text_add_n(&text, name.data, name.len);
    else
        tide_text_addf(&text, "tensor %zu", i);
    const tide_status st = text.failed ? TIDE_NO_MEMORY(r->err, "to read %s", r->list.path)
                                       : tide__list_unique(&r->list, tide_text_str(&text), out);
    tide_text_deinit(&text);
    return st;
}

static tide_status read_tensor(tide__tfl *r, tide__tfl_graph *g, size_t i, const tide__fb_vector *list) {
    tide__fb_table t;
    tide__tfl_tensor *x = &g->tensors[i];
    uint8_t type, is_variable;
    uint32_t external;
    uint64_t held;
    *x = (tide__tfl_tensor){.first = TIDE__TFL_NO_STEP,
                            .last = TIDE__TFL_NO_STEP,
                            .own_offset = TIDE__TFL_NO_OFFSET,
                            .role = TIDE_ROLE_INTERMEDIATE};
    TIDE_TRY(tide__fb_table_at(&r->fb, list, i, &t));
    TIDE_TRY(read_tensor_name(r, g, i, &t, &x->name));
    TIDE_TRY(tide__fb_u8(&r->fb, &t, TENSOR_TYPE, 0, &type));
    TIDE_TRY(tide__fb_u8(&r->fb, &t, TENSOR_IS_VARIABLE, 0, &is_variable));
    TIDE_TRY(tide__fb_u32(&r->fb, &t, TENSOR_BUFFER, 0, &x->buffer));
    TIDE_TRY(tide__fb_u32(&r->fb, &t, TENSOR_EXTERNAL_BUFFER, 0, &external));
    if (type >= N_TYPES)
        return TIDE__TFL_BAD(r, "tensor '%s' is of type %u, which is not in the schema", x->name, (unsigned)type);
    TIDE_TRY(shape_bytes(r, &t, x->name, type, &x->bytes));
    TIDE_TRY(buffer_bytes(r, x->buffer, &held));
    x->is_unsized = element_bits[type] == 0;
    x->is_variable = is_variable != 0;
    x->is_constant = held > 0 || external != 0;
    if (held > 0) x->bytes = held;
    if (held == 0) x->buffer = 0;
    return TIDE_OK;
}

// ---- operators ----

/// Where an operator says which subgraphs it calls: fields of its options.
typedef struct caller {
    uint32_t code;
    unsigned options;
    unsigned slots[TIDE__TFL_MAX_BODIES];
    unsigned n;
} caller;
static const caller callers[] = {
    {TIDE__TFL_IF, OPERATOR_OPTIONS, {0, 1}, 2},
    {TIDE__TFL_WHILE, OPERATOR_OPTIONS, {0, 1}, 2},
    {TIDE__TFL_CALL, OPERATOR_OPTIONS, {0}, 1},
    {TIDE__TFL_CALL_ONCE, OPERATOR_OPTIONS, {0}, 1},
    {TIDE__TFL_STABLEHLO_WHILE, OPERATOR_OPTIONS_2, {0, 1}, 2},
    {TIDE__TFL_STABLEHLO_COMPOSITE, OPERATOR_OPTIONS_2, {1}, 1},
};

static tide_status read_bodies(tide__tfl *r, const tide__fb_table *t, tide__tfl_op *o) {
    const tide__tfl_code *c = &r->codes[o->code];
    tide__fb_table options;
    if (c->builtin == TIDE__TFL_STABLEHLO_CASE) return TIDE__TFL_BAD(r, "operator %s is not read", c->name);
    for (size_t k = 0; k < sizeof callers / sizeof callers[0]; k++) {
        if (callers[k].code != c->builtin) continue;
        TIDE_TRY(tide__fb_child(&r->fb, t, callers[k].options, &options));
        for (unsigned i = 0; i < callers[k].n; i++) {
            TIDE_TRY(tide__fb_u32(&r->fb, &options, callers[k].slots[i], 0, &o->bodies[i]));
            if (o->bodies[i] >= r->subgraph_list.n)
                return TIDE__TFL_BAD(r, "operator %s calls subgraph %" PRIu32 " of %zu", c->name, o->bodies[i],
                                     r->subgraph_list.n);
        }
        o->n_bodies = callers[k].n;
    }
    return TIDE_OK;
}

/// Indices of tensors; -1 where `may_miss`: there is none.
static tide_status check_indices(tide__tfl *r, const tide__tfl_graph *g, const tide__fb_vector *v, bool may_miss,
                                 const char *what) {
    for (size_t i = 0; i < v->n; i++) {
        const int32_t k = tide__fb_i32_at(&r->fb, v, i);
        if ((k < 0 && !(may_miss && k == -1)) || (k >= 0 && (size_t)k >= g->n_tensors))
            return TIDE__TFL_BAD(r, "%s is tensor %" PRId32 " of %zu", what, k, g->n_tensors);
    }
    return TIDE_OK;
}

static tide_status read_op(tide__tfl *r, tide__tfl_graph *g, size_t i, const tide__fb_vector *list) {
    tide__fb_table t;
    tide__tfl_op *o = &g->ops[i];
    TIDE_TRY(tide__fb_table_at(&r->fb, list, i, &t));
    TIDE_TRY(tide__fb_u32(&r->fb, &t, OPERATOR_CODE, 0, &o->code));
    TIDE_TRY(tide__fb_list(&r->fb, &t, OPERATOR_INPUTS, 4, &o->inputs));
    TIDE_TRY(tide__fb_list(&r->fb, &t, OPERATOR_OUTPUTS, 4, &o->outputs));
    TIDE_TRY(tide__fb_list(&r->fb, &t, OPERATOR_INTERMEDIATES, 4, &o->intermediates));
    if (o->code >= r->n_codes)
        return TIDE__TFL_BAD(r, "operator %zu has the code %" PRIu32 " of %zu", i, o->code, r->n_codes);
    TIDE_TRY(check_indices(r, g, &o->inputs, true, "an input of an operator"));
    TIDE_TRY(check_indices(r, g, &o->outputs, true, "an output of an operator"));
    TIDE_TRY(check_indices(r, g, &o->intermediates, true, "an intermediate of an operator"));
    return read_bodies(r, &t, o);
}

// ---- subgraphs ----

/// "NAME/", "subgraph 2/", and "" for the main one.
static tide_status name_subgraph(tide__tfl *r, size_t i, const tide__fb_table *t, char **out) {
    tide__fb_text name;
    tide_text text = {0};
    TIDE_TRY(tide__fb_string(&r->fb, t, SUBGRAPH_NAME, &name));
    if (i > 0 && name.len > 0) tide_text_add_n(&text, name.data, name.len);
    if (i > 0 && name.len == 0) tide_text_addf(&text, "subgraph %zu", i);
    if (i > 0) tide_text_add(&text, "/");
    const tide_status st = text.failed ? TIDE_NO_MEMORY(r->err, "to read %s", r->list.path)
                                       : TIDE_COPY_TEXT(out, tide_text_str(&text), r->err, "to read %s", r->list.path);
    tide_text_deinit(&text);
    return st;
}

tide_status tide__tfl_read_graph(tide__tfl *r, size_t i) {
    tide__tfl_graph *g = &r->subgraphs[i];
    if (g->is_read) return TIDE_OK;
    tide__fb_table t;
    tide__fb_vector tensors, ops;
    TIDE_TRY(tide__fb_table_at(&r->fb, &r->subgraph_list, i, &t));
    TIDE_TRY(tide__fb_list(&r->fb, &t, SUBGRAPH_TENSORS, 4, &tensors));
    TIDE_TRY(tide__fb_list(&r->fb, &t, SUBGRAPH_OPERATORS, 4, &ops));
    TIDE_TRY(tide__fb_list(&r->fb, &t, SUBGRAPH_INPUTS, 4, &g->inputs));
    TIDE_TRY(tide__fb_list(&r->fb, &t, SUBGRAPH_OUTPUTS, 4, &g->outputs));
    TIDE_TRY(name_subgraph(r, i, &t, &g->name));
    TIDE_TRY(TIDE_NEW(&g->tensors, tensors.n + 1, r->err, "to read %s", r->list.path));
    TIDE_TRY(TIDE_NEW(&g->ops, ops.n + 1, r->err, "to read %s", r->list.path));
    g->n_tensors = tensors.n;
    g->n_ops = ops.n;
    g->is_read = true;
    for (size_t k = 0; k < tensors.n; k++) TIDE_TRY(read_tensor(r, g, k, &tensors));
    TIDE_TRY(check_indices(r, g, &g->inputs, false, "an input of a subgraph"));
    TIDE_TRY(check_indices(r, g, &g->outputs, false, "an output of a subgraph"));
    for (size_t k = 0; k < ops.n; k++) TIDE_TRY(read_op(r, g, k, &ops));
    return TIDE_OK;
}

// ---- the file's own plan ----

static tide_status take_offsets(tide__tfl *r, const tide__fb_vector *v) {
    size_t n_tensors = 0, at = 3;
    for (size_t i = 0; i < r->subgraph_list.n; i++) n_tensors += r->subgraphs[i].n_tensors;
    if (v->n < 3 || tide__fb_i32_at(&r->fb, v, 2) < 0 || (uint64_t)tide__fb_i32_at(&r->fb, v, 2) != n_tensors ||
        v->n < 3 + n_tensors)
        return TIDE__TFL_BAD(
            r, "the metadata OfflineMemoryAllocation has %zu numbers for %zu tensors: want 3 and one each", v->n,
            n_tensors);
    for (size_t i = 0; i < r->subgraph_list.n; i++) {
        for (size_t k = 0; k < r->subgraphs[i].n_tensors; k++) {
            const int32_t offset = tide__fb_i32_at(&r->fb, v, at++);
            if (offset < TIDE__TFL_NO_OFFSET)
                return TIDE__TFL_BAD(r, "the metadata OfflineMemoryAllocation has the offset %" PRId32, offset);
            r->subgraphs[i].tensors[k].own_offset = offset;
        }
    }
    r->has_plan = true;
    return TIDE_OK;
}

/// The offsets cover all subgraphs, so all are read.
static tide_status read_plan(tide__tfl *r, uint32_t buffer) {
    tide__fb_table t;
    tide__fb_vector data;
    if (buffer >= r->buffer_list.n)
        return TIDE__TFL_BAD(r, "the metadata OfflineMemoryAllocation is in buffer %" PRIu32 " of %zu", buffer,
                             r->buffer_list.n);
    TIDE_TRY(tide__fb_table_at(&r->fb, &r->buffer_list, buffer, &t));
    TIDE_TRY(tide__fb_list(&r->fb, &t, BUFFER_DATA, 1, &data));
    data.n /= 4;
    for (size_t i = 0; i < r->subgraph_list.n; i++) TIDE_TRY(tide__tfl_read_graph(r, i));
    return take_offsets(r, &data);
}

static tide_status find_plan(tide__tfl *r) {
    static const char wanted[] = "OfflineMemoryAllocation";
    for (size_t i = 0; i < r->metadata.n && !r->has_plan; i++) {
        tide__fb_table t;
        tide__fb_text name;
        uint32_t buffer;
        TIDE_TRY(tide__fb_table_at(&r->fb, &r->metadata, i, &t));
        TIDE_TRY(tide__fb_string(&r->fb, &t, METADATA_NAME, &name));
        if (name.len != sizeof wanted - 1 || memcmp(name.data, wanted, name.len) != 0) continue;
        TIDE_TRY(tide__fb_u32(&r->fb, &t, METADATA_BUFFER, 0, &buffer));
        TIDE_TRY(read_plan(r, buffer));
    }
    return TIDE_OK;
}

// ---- entry points ----

tide_status tide__tfl_read(tide__tfl *r) {
    tide__fb_table model;
    TIDE_TRY(tide__fb_root(&r->fb, &model));
    TIDE_TRY(tide__fb_list(&r->fb, &model, MODEL_SUBGRAPHS, 4, &r->subgraph_list));
    TIDE_TRY(tide__fb_list(&r->fb, &model, MODEL_BUFFERS, 4, &r->buffer_list));
    TIDE_TRY(tide__fb_list(&r->fb, &model, MODEL_METADATA, 4, &r->metadata));
    if (r->subgraph_list.n == 0) return TIDE__TFL_BAD(r, "the model has no subgraph");
    TIDE_TRY(TIDE_NEW(&r->subgraphs, r->subgraph_list.n, r->err, "to read %s", r->list.path));
    TIDE_TRY(TIDE_NEW(&r->seen, r->buffer_list.n + 1, r->err, "to read %s", r->list.path));
    TIDE_TRY(read_codes(r, &model));
    TIDE_TRY(tide__tfl_read_graph(r, 0));
    return find_plan(r);
}

void tide__tfl_deinit(tide__tfl *r) {
    for (size_t i = 0; r->subgraphs != NULL && i < r->subgraph_list.n; i++) {
        for (size_t k = 0; k < r->subgraphs[i].n_tensors; k++) tide_host_free(r->subgraphs[i].tensors[k].name);
        tide_host_free(r->subgraphs[i].tensors);
        tide_host_free(r->subgraphs[i].ops);
        tide_host_free(r->subgraphs[i].name);
    }
    for (size_t i = 0; r->codes != NULL && i < r->n_codes; i++) tide_host_free(r->codes[i].custom);
    tide_host_free(r->subgraphs);
    tide_host_free(r->codes);
    tide_host_free(r->seen);
    tide_host_free(r->own);
    tide__list_deinit(&r->list);
}
