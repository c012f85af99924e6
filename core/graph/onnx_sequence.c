// SPDX-License-Identifier: MIT
//
// Sequences of tensors, while a file is read: a sequence is a list of values that is known then, so that none is left
// in the graph. What takes one out is an Identity, what joins them a Concat, and a length is a constant.
//
//     SequenceConstruct x y -> s, SequenceErase s 0 -> t, SequenceAt t 0 -> o        becomes     Identity y -> o
//
// So they are served where each place is a constant, where a SplitToSequence splits what has a fixed extent, or into as
// many as its split has, and outside of bodies and functions. All else is refused in words.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/onnx_import.h"

enum { MOST_ITEMS = 4096, OPSET = 13 }; // of the nodes that are made here

typedef struct sequence {
    uint32_t *items; // [n] values
    size_t n, cap;
} sequence;

static tide_status refuse(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *why) {
    return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "operator '%s' of node '%s' is not served: %s", n->op_type,
                     tide__onnx_str(n->name), why);
}

// ---- the table ----

static sequence *find(const tide__onnx_importer *im, const char *name) {
    uint64_t i;
    return tide_strmap_get(&im->sequences, name, &i) ? (sequence *)(uintptr_t)i : NULL;
}

static tide_status input_sequence(tide__onnx_importer *im, const Onnx__NodeProto *n, const sequence **out) {
    const char *name = n->n_input > 0 ? tide__onnx_str(n->input[0]) : "";
    *out = find(im, name);
    if (*out != NULL) return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s reads '%s', which no node before it makes a sequence", n->op_type,
                     name);
}

static tide_status push(tide__onnx_importer *im, sequence *s, size_t at, uint32_t value_i) {
    if (s->n >= MOST_ITEMS)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "a sequence of more than %d tensors is not served",
                         (int)MOST_ITEMS);
    TIDE_TRY(TIDE_GROW(&s->items, &s->cap, s->n + 1, im->err, "for a sequence"));
    memmove(&s->items[at + 1], &s->items[at], (s->n - at) * sizeof *s->items);
    s->items[at] = value_i;
    s->n++;
    return TIDE_OK;
}

static void sequence_free(sequence *s) {
    if (s != NULL) tide_host_free(s->items);
    tide_host_free(s);
}

void tide__onnx_free_sequences(tide__onnx_importer *im) {
    for (size_t i = 0; i < im->n_made_sequences; i++) sequence_free(im->made_sequences[i]);
    tide_host_free(im->made_sequences);
    tide_strmap_deinit(&im->sequences);
}

/// The sequence that output 0 is, with the items of `from` (NULL: none).
static tide_status new_sequence(tide__onnx_importer *im, const Onnx__NodeProto *n, const sequence *from,
                                sequence **out) {
    const char *name = n->n_output == 1 ? tide__onnx_str(n->output[0]) : "";
    if (name[0] == '\0' || find(im, name) != NULL || tide_graph_find_value(im->g, name) != TIDE_NO_VALUE)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s makes '%s', which is no new sequence", n->op_type, name);
    TIDE_TRY(TIDE_GROW(&im->made_sequences, &im->cap_sequences, im->n_made_sequences + 1, im->err, "for a sequence"));
    TIDE_TRY(TIDE_NEW(out, 1, im->err, "for a sequence"));
    im->made_sequences[im->n_made_sequences++] = *out;
    for (size_t i = 0; from != NULL && i < from->n; i++) TIDE_TRY(push(im, *out, i, from->items[i]));
    if (tide_strmap_put(&im->sequences, name, (uintptr_t)*out) == TIDE_OK) return TIDE_OK;
    return TIDE_NO_MEMORY(im->err, "for a sequence");
}

// ---- numbers ----

static int64_t attr_int(const Onnx__NodeProto *n, const char *name, int64_t absent) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        if (strcmp(tide__onnx_str(n->attribute[k]->name), name) == 0) return n->attribute[k]->i;
    }
    return absent;
}

/// The whole numbers of input `k`, if they are constants; *n 0: they are not. `most` of them.
static tide_status constants_of(tide__onnx_importer *im, const Onnx__NodeProto *n, size_t k, size_t most, int64_t *out,
                                size_t *count) {
    uint32_t value_i;
    const void *data;
    *count = 0;
    TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->input[k]), &value_i));
    const tide_tensor *t = im->g->values[value_i].constant;
    if (t == NULL) return TIDE_OK;
    const tide_dtype dtype = tide_tensor_dtype(t);
    if (dtype != TIDE_I64 && dtype != TIDE_I32)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "input %zu of %s is %s, must be int64 or int32", k, n->op_type,
                         tide_dtype_name(dtype));
    const size_t len = tide_tensor_size_bytes(t) / tide_dtype_size(dtype);
    if (len > most) return refuse(im, n, "it has too many numbers");
    TIDE_TRY(tide_tensor_read(t, &data, im->err));
    for (size_t i = 0; i < len; i++)
        out[i] = dtype == TIDE_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
    *count = len;
    return TIDE_OK;
}

/// A place in a sequence of `n_places` from input `k`, from the end where it is below 0; absent: `absent`.
static tide_status place_of(tide__onnx_importer *im, const Onnx__NodeProto *n, size_t k, size_t n_places, size_t absent,
                            size_t *out) {
    int64_t at;
    size_t count;
    *out = absent;
    const bool is_given = k < n->n_input && tide__onnx_str(n->input[k])[0] != '\0';
    if (is_given) {
        TIDE_TRY(constants_of(im, n, k, 1, &at, &count));
        if (count == 0) return refuse(im, n, "the place is no constant");
        if (at < 0) at += (int64_t)n_places;
        *out = at < 0 ? SIZE_MAX : (size_t)at;
    }
    if (*out < n_places) return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s '%s': there is no such place in a sequence of %zu", n->op_type,
                     tide__onnx_str(n->name), n_places);
}

// ---- nodes ----

static tide_status add_int_attr(tide__onnx_importer *im, uint32_t node_i, const char *name, int64_t i) {
    tide_attr a = {.name = tide_host_strdup(name), .type = TIDE_ATTR_INT, .i = i};
    if (a.name == NULL) return TIDE_NO_MEMORY(im->err, "for an attribute");
    return tide_graph_add_attr(im->g, node_i, &a, im->err);
}

/// A node of the standard domain, named after `n`.
static tide_status make_node(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *op, const uint32_t *in,
                             size_t n_in, const uint32_t *out, size_t n_out, uint32_t *node_i) {
    tide_text made_up = {0};
    TIDE_TRY(tide__node_name_make(op, im->g->n_nodes, &im->node_names, &made_up, im->err));
    (void)n;
    const tide_status st =
        tide_graph_add_node(im->g, made_up.data, op, "", OPSET, in, n_in, out, n_out, node_i, im->err);
    tide_text_deinit(&made_up);
    return st;
}

static tide_status make_constant(tide__onnx_importer *im, uint32_t value_i, int32_t rank, const int64_t *numbers,
                                 int64_t n) {
    const tide_shape shape = tide_shape_make(rank, &n);
    tide_tensor *t;
    TIDE_TRY(tide__constant_create(TIDE_I64, &shape, im->g->values[value_i].name, &t, im->err));
    memcpy(tide_tensor_data(t), numbers, (size_t)n * sizeof *numbers);
    tide_graph_set_constant(im->g, value_i, t);
    tide_tensor_unref(t);
    return TIDE_OK;
}

/// `x` with the axis put in (op Unsqueeze) or taken away (Squeeze).
static tide_status reshape(tide__onnx_importer *im, const Onnx__NodeProto *n, const char *op, uint32_t x, int64_t axis,
                           uint32_t *out) {
    uint32_t in[2] = {x, TIDE_NO_VALUE}, node_i;
    TIDE_TRY(tide__onnx_make_value(im, NULL, "sequence.axis", &in[1]));
    TIDE_TRY(make_constant(im, in[1], 1, &axis, 1));
    TIDE_TRY(tide__onnx_make_value(im, NULL, "sequence.item", out));
    return make_node(im, n, op, in, 2, out, 1, &node_i);
}

static tide_status output_of(tide__onnx_importer *im, const Onnx__NodeProto *n, uint32_t *out) {
    if (n->n_output != 1 || tide__onnx_str(n->output[0])[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s has %zu outputs, it needs one", n->op_type, n->n_output);
    return tide__onnx_value_named(im, n->output[0], out);
}

// ---- each operator ----

static tide_status construct(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    sequence *s;
    TIDE_TRY(new_sequence(im, n, NULL, &s));
    for (size_t k = 0; k < n->n_input; k++) {
        uint32_t value_i;
        TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->input[k]), &value_i));
        if (value_i == TIDE_NO_VALUE) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "input %zu is left out", k);
        TIDE_TRY(push(im, s, k, value_i));
    }
    return TIDE_OK;
}

static tide_status insert(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const sequence *from;
    sequence *s;
    size_t at;
    uint32_t value_i = TIDE_NO_VALUE;
    TIDE_TRY(input_sequence(im, n, &from));
    if (n->n_input > 1) TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->input[1]), &value_i));
    if (value_i == TIDE_NO_VALUE) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "there is nothing to insert");
    // From the end the places are those of the sequence as it is.
    int64_t place = 0;
    size_t count = 0;
    if (n->n_input > 2 && tide__onnx_str(n->input[2])[0] != '\0') TIDE_TRY(constants_of(im, n, 2, 1, &place, &count));
    if (count == 1 && place < 0)
        TIDE_TRY(place_of(im, n, 2, from->n, 0, &at));
    else
        TIDE_TRY(place_of(im, n, 2, from->n + 1, from->n, &at));
    TIDE_TRY(new_sequence(im, n, from, &s));
    return push(im, s, at, value_i);
}

static tide_status erase(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const sequence *from;
    sequence *s;
    size_t at;
    TIDE_TRY(input_sequence(im, n, &from));
    TIDE_TRY(place_of(im, n, 1, from->n, from->n - 1, &at));
    TIDE_TRY(new_sequence(im, n, from, &s));
    memmove(&s->items[at], &s->items[at + 1], (s->n - at - 1) * sizeof *s->items);
    s->n--;
    return TIDE_OK;
}

static tide_status take_out(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const sequence *s;
    size_t at;
    uint32_t out, node_i;
    TIDE_TRY(input_sequence(im, n, &s));
    TIDE_TRY(place_of(im, n, 1, s->n, SIZE_MAX, &at));
    TIDE_TRY(output_of(im, n, &out));
    return make_node(im, n, "Identity", &s->items[at], 1, &out, 1, &node_i);
}

static tide_status length(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const sequence *s;
    uint32_t out;
    TIDE_TRY(input_sequence(im, n, &s));
    TIDE_TRY(output_of(im, n, &out));
    const int64_t count = (int64_t)s->n;
    return make_constant(im, out, 0, &count, 1);
}

static tide_status concat(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    const sequence *from;
    sequence with_axis = {0};
    uint32_t out, node_i;
    const int64_t axis = attr_int(n, "axis", 0);
    TIDE_TRY(input_sequence(im, n, &from));
    if (from->n == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a sequence without tensors cannot be joined");
    TIDE_TRY(output_of(im, n, &out));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < from->n; i++) {
        uint32_t item = from->items[i];
        if (attr_int(n, "new_axis", 0) != 0) st = reshape(im, n, "Unsqueeze", item, axis, &item);
        if (st == TIDE_OK) st = push(im, &with_axis, i, item);
    }
    if (st == TIDE_OK) st = make_node(im, n, "Concat", with_axis.items, with_axis.n, &out, 1, &node_i);
    if (st == TIDE_OK) st = add_int_attr(im, node_i, "axis", axis);
    tide_host_free(with_axis.items);
    return st;
}

// ---- SplitToSequence ----

typedef struct split {
    uint32_t in[2];
    int64_t axis;
    int64_t *sizes; // [MOST_ITEMS]; those of `in[1]` where that is no constant
    size_t n;       // parts
    bool is_fed;    // in[1] says the sizes while running
    bool drops_axis;
} split;

/// The extent of what is split, where the file says it.
static tide_status extent_of(tide__onnx_importer *im, const Onnx__NodeProto *n, const split *p, int64_t *out) {
    const tide_value *v = &im->g->values[p->in[0]];
    const int64_t axis = p->axis < 0 ? p->axis + v->shape.rank : p->axis;
    if (!v->has_shape || axis < 0 || axis >= v->shape.rank || v->shape.dims[axis] == TIDE_DIM_UNKNOWN)
        return refuse(im, n, "how many parts there are is known only while running");
    *out = v->shape.dims[axis];
    return TIDE_OK;
}

static tide_status equal_parts(tide__onnx_importer *im, const Onnx__NodeProto *n, split *p, int64_t size) {
    int64_t extent = 0;
    TIDE_TRY(extent_of(im, n, p, &extent));
    if (size < 1) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a part of %" PRId64 " is none", size);
    if ((extent + size - 1) / size > MOST_ITEMS) return refuse(im, n, "there are too many parts");
    for (int64_t left = extent; left > 0; left -= size) p->sizes[p->n++] = left < size ? left : size;
    return TIDE_OK;
}

/// Into how many parts, and how large they are.
static tide_status read_parts(tide__onnx_importer *im, const Onnx__NodeProto *n, split *p) {
    if (n->n_input < 2 || tide__onnx_str(n->input[1])[0] == '\0') {
        p->drops_axis = attr_int(n, "keepdims", 1) == 0;
        return equal_parts(im, n, p, 1);
    }
    size_t count;
    TIDE_TRY(tide__onnx_value_named(im, n->input[1], &p->in[1]));
    TIDE_TRY(constants_of(im, n, 1, MOST_ITEMS, p->sizes, &count));
    const tide_value *v = &im->g->values[p->in[1]];
    const bool is_list = v->has_shape && v->shape.rank == 1;
    if (v->constant != NULL && !is_list) return equal_parts(im, n, p, count == 1 ? p->sizes[0] : 0);
    if (!is_list || v->shape.dims[0] == TIDE_DIM_UNKNOWN || v->shape.dims[0] > MOST_ITEMS)
        return refuse(im, n, "how many parts there are is known only while running");
    p->n = (size_t)v->shape.dims[0];
    p->is_fed = v->constant == NULL;
    return TIDE_OK;
}

static tide_status add_split(tide__onnx_importer *im, const Onnx__NodeProto *n, split *p, sequence *s) {
    uint32_t node_i;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t item;
        TIDE_TRY(tide__onnx_make_value(im, NULL, "sequence.part", &item));
        TIDE_TRY(push(im, s, i, item));
    }
    if (p->n == 0) return TIDE_OK;
    if (!p->is_fed) {
        TIDE_TRY(tide__onnx_make_value(im, NULL, "sequence.split", &p->in[1]));
        TIDE_TRY(make_constant(im, p->in[1], 1, p->sizes, (int64_t)p->n));
    }
    TIDE_TRY(make_node(im, n, "Split", p->in, 2, s->items, s->n, &node_i));
    TIDE_TRY(add_int_attr(im, node_i, "axis", p->axis));
    for (size_t i = 0; p->drops_axis && i < s->n; i++)
        TIDE_TRY(reshape(im, n, "Squeeze", s->items[i], p->axis, &s->items[i]));
    return TIDE_OK;
}

static tide_status split_up(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    split p = {.axis = attr_int(n, "axis", 0), .in = {TIDE_NO_VALUE, TIDE_NO_VALUE}};
    sequence *s;
    if (n->n_input < 1) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "there is nothing to split");
    TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(n->input[0]), &p.in[0]));
    if (p.in[0] == TIDE_NO_VALUE) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "there is nothing to split");
    TIDE_TRY(new_sequence(im, n, NULL, &s));
    TIDE_TRY(TIDE_NEW(&p.sizes, MOST_ITEMS, im->err, "for a sequence"));
    tide_status st = read_parts(im, n, &p);
    if (st == TIDE_OK) st = add_split(im, n, &p, s);
    tide_host_free(p.sizes);
    return st;
}

// ---- any of them ----

static const struct {
    const char *op;
    tide_status (*add)(tide__onnx_importer *im, const Onnx__NodeProto *n);
} operators[] = {{"SequenceEmpty", construct},   {"SequenceConstruct", construct}, {"SequenceInsert", insert},
                 {"SequenceErase", erase},       {"SequenceAt", take_out},         {"SequenceLength", length},
                 {"ConcatFromSequence", concat}, {"SplitToSequence", split_up}};

bool tide__onnx_is_sequence(const Onnx__NodeProto *n) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (tide__onnx_domain(n->domain)[0] == '\0' && strcmp(n->op_type, operators[i].op) == 0) return true;
    }
    return false;
}

tide_status tide__onnx_add_sequence(tide__onnx_importer *im, const Onnx__NodeProto *n) {
    if (im->scope != NULL) return refuse(im, n, "sequences are served outside of bodies and functions alone");
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(n->op_type, operators[i].op) == 0) return operators[i].add(im, n);
    }
    return refuse(im, n, "it is none of the operators on sequences");
}
