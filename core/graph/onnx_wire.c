// SPDX-License-Identifier: MIT
//
// The protobuf layer of the ONNX import. protobuf-c answers a broken file with a bare NULL and recurses as deep as
// the file says, so the bytes are walked here first: an error then knows its place, and nesting has an end.
//
// Encoding: https://protobuf.dev/programming-guides/encoding/ (tag = field number << 3 | wire type).
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/pages.h"
#include "core/graph/onnx_internal.h"

enum { MAX_DEPTH = 100, MAX_FIELDS = 32, WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/// A message being walked and the way up from it.
typedef struct frame {
    const struct frame *up;
    const ProtobufCMessageDescriptor *type;
    const ProtobufCFieldDescriptor *field; // at hand in this message; NULL: none yet
    uint32_t seen[MAX_FIELDS];             // occurrences so far, per field of the descriptor
    const char *name;                      // content of the field "name", once it went by; not terminated
    size_t name_len;
    int depth;
    uint32_t list; // of a tensor: number of the field whose content stands for raw_data; 0: none does
} frame;

typedef struct walk {
    const char *data;
    const char *path;
    tide_error *err;
    size_t need_bytes; // what the messages seen so far will take
    size_t max_bytes;  // of that; 0: no limit
    const char *kept;  // of a mapped file: where pages begin that were touched; NULL: it is not mapped
    tide_text lean;    // the bytes as they are unpacked; no longer kept up when too much is needed
} walk;

// ---- memory that is needed ----
//
// A message of two bytes becomes a struct of some hundred, a node a step with operands, lifetimes and a place in every
// order that is tried. Fitted to chains of 3,000 to 100,000 nodes, which take 1.2 KiB a node beside the 12 MiB of an
// empty plan; tests/cli/amplifiers.py holds the limit against what planning takes.

enum { BASE_BYTES = 12 << 20, BLOCK_BYTES = 48, FIELD_BYTES = 48, NODE_BYTES = 400, END_BYTES = 160 };

static void count(walk *w, size_t bytes) {
    if (!tide_add_size(w->need_bytes, bytes, &w->need_bytes)) w->need_bytes = SIZE_MAX;
}

enum { DATA_TYPE = 2, FLOAT_DATA = 4, RAW_DATA = 9, DOUBLE_DATA = 10 }; // fields of a TensorProto

/// Whether the field is the content of a tensor, which is not unpacked.
static bool is_raw_data(const frame *f) {
    return f->type == &onnx__tensor_proto__descriptor && (f->field->id == RAW_DATA || f->field->id == f->list);
}

/// A field of `len` bytes in the message of `f`; what is in an inner message counts when that is walked.
static void count_field(walk *w, const frame *f, size_t len) {
    const ProtobufCFieldDescriptor *field = f->field;
    count(w, FIELD_BYTES);
    if (is_raw_data(f)) return;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessageDescriptor *type = field->descriptor;
        count(w, type->sizeof_message + BLOCK_BYTES);
        if (type == &onnx__node_proto__descriptor) count(w, NODE_BYTES);
    } else if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES) {
        count(w, 2 * len + BLOCK_BYTES); // unpacked, and again in the graph
        if (f->type == &onnx__node_proto__descriptor && field->label == PROTOBUF_C_LABEL_REPEATED) count(w, END_BYTES);
    } else {
        count(w, 8 * len);
    }
}

/// "graph.node[3] 'conv1'.attribute[0]" from the outside in.
static void format_place(const frame *f, tide_text *text) {
    if (f->up != NULL) {
        format_place(f->up, text);
        if (f->name != NULL) tide_text_addf(text, " '%.*s'", (int)(f->name_len < 64 ? f->name_len : 64), f->name);
    }
    if (f->field == NULL) return;
    tide_text_addf(text, "%s%s", f->up != NULL ? "." : "", f->field->name);
    const uint32_t seen = f->seen[f->field - f->type->fields];
    if (f->field->label == PROTOBUF_C_LABEL_REPEATED && seen > 0) tide_text_addf(text, "[%u]", seen - 1);
}

static tide_status broken(const walk *w, const frame *f, const char *at, const char *why) {
    const frame *top = f;
    while (top->up != NULL) top = top->up;
    const char *what = strcmp(top->type->short_name, "TensorProto") == 0 ? "tensor" : "model";
    const tide_status st = TIDE_FAIL(w->err, TIDE_ERR_BAD_INPUT, "not an ONNX %s: %s", what, why);
    tide_text place = {0};
    format_place(f, &place);
    tide_error_where(w->err, "%s: byte %zu%s%s", w->path, (size_t)(at - w->data), place.len > 0 ? ", in " : "",
                     tide_text_str(&place));
    tide_text_deinit(&place);
    return st;
}

/// Bytes of the varint at `at`; 0 when it does not end within `max` bytes or before `end`.
static size_t read_varint(const char *at, const char *end, size_t max, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < max && at + i < end; i++) {
        const unsigned char byte = (unsigned char)at[i];
        if (7 * i < 64) v |= (uint64_t)(byte & 0x7Fu) << (7 * i);
        if ((byte & 0x80u) != 0) continue;
        *out = v;
        return i + 1;
    }
    return 0;
}

static int wire_of(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_64;
    default:
        return WIRE_VARINT;
    }
}

/// A repeated number may stand packed: many of them in one run of bytes.
static bool packed_is_whole(const ProtobufCFieldDescriptor *field, const char *at, const char *end) {
    const int wire = wire_of(field);
    if (wire == WIRE_32) return (end - at) % 4 == 0;
    if (wire == WIRE_64) return (end - at) % 8 == 0;
    while (at < end) {
        uint64_t ignored;
        const size_t n = read_varint(at, end, 10, &ignored);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

/// Bytes of the field's content at `at`, its length prefix included in *prefix; false: it runs past the end.
static bool measure(int wire, const char *at, const char *end, size_t *prefix, size_t *len) {
    uint64_t v;
    *prefix = 0;
    *len = wire == WIRE_32 ? 4 : 8;
    if (wire == WIRE_VARINT) {
        *len = read_varint(at, end, 10, &v);
        return *len > 0;
    }
    if (wire == WIRE_BYTES) {
        *prefix = read_varint(at, end, 10, &v);
        if (*prefix == 0 || v > (uint64_t)(end - at - (ptrdiff_t)*prefix)) return false;
        *len = (size_t)v;
    }
    return *prefix + *len <= (size_t)(end - at);
}

// ---- what is unpacked ----
//
// The same message without what the schema does not know, and with a span in the place of the content of each tensor.
// The length of a message stands before it and is known behind it: it has the room of five bytes, as many as a length
// may have, of which the last ones may say nothing.
//
//     file   | tag | 9 0 | tag name w | tag raw_data | 4 000 000 bytes ... |
//     lean   | tag | 2E 80 80 80 00 | tag name w | tag raw_data | 16 | offset, length |
//
// One run of packed floats or doubles has the bytes that raw_data would have, and becomes a span of that.

enum { LENGTH_BYTES = 5 };

static void put(walk *w, const char *bytes, size_t n) {
    if (w->max_bytes == 0 || w->need_bytes <= w->max_bytes) tide_text_add_n(&w->lean, bytes, n);
}

static void put_length(char *at, size_t len) {
    TIDE_ASSERT(len >> 7 * LENGTH_BYTES == 0);
    for (int i = 0; i < LENGTH_BYTES; i++)
        at[i] = (char)(((len >> 7 * i) & 0x7Fu) | (i + 1 < LENGTH_BYTES ? 0x80u : 0));
}

/// The number of the field of a tensor that holds all of its content as one run of packed numbers, which are the same
/// bytes as raw_data would have; 0: there is none, or the tensor is too small to be worth a look.
static uint32_t list_of(const char *at, const char *end) {
    uint64_t data_type = 0, tag;
    uint32_t list = 0, n_contents = 0;
    if (end - at < TIDE__ONNX_MAP_FROM_BYTES) return 0;
    while (at < end) {
        const size_t tag_len = read_varint(at, end, 5, &tag);
        size_t prefix, len;
        if (tag_len == 0 || !measure((int)(tag & 7u), at + tag_len, end, &prefix, &len)) return 0; // said by the walk
        at += tag_len + prefix;
        const uint64_t number = tag >> 3;
        if (number == DATA_TYPE && read_varint(at, end, 10, &data_type) == 0) return 0;
        if (number == FLOAT_DATA || number == DOUBLE_DATA || number == RAW_DATA) n_contents++;
        if ((number == FLOAT_DATA || number == DOUBLE_DATA) && (tag & 7u) == WIRE_BYTES) list = (uint32_t)number;
        at += len;
    }
    const uint64_t wanted = list == FLOAT_DATA    ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
                            : list == DOUBLE_DATA ? ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE
                                                  : 0;
    return n_contents == 1 && wanted != 0 && data_type == wanted ? list : 0;
}

static void copy_field(walk *w, const frame *f, const char *begin, const char *content, size_t len) {
    if (!is_raw_data(f)) {
        put(w, begin, (size_t)(content - begin) + len);
        return;
    }
    const tide__onnx_span span = {(uint64_t)(content - w->data), len};
    char bytes[LENGTH_BYTES + sizeof span];
    put_length(bytes, sizeof span);
    memcpy(bytes + LENGTH_BYTES, &span, sizeof span);
    static const char tag = (char)(RAW_DATA << 3 | WIRE_BYTES);
    put(w, &tag, 1);
    put(w, bytes, sizeof bytes);
}

static tide_status walk_message(walk *w, frame *f, const char *at, const char *end);

/// A message inside of another: its tag is copied already.
static tide_status walk_inner(walk *w, frame *inner, const char *at, const char *end) {
    static const char room[LENGTH_BYTES];
    const size_t length_at = w->lean.len;
    put(w, room, sizeof room);
    TIDE_TRY(walk_message(w, inner, at, end));
    if (!w->lean.failed && w->lean.len >= length_at + LENGTH_BYTES)
        put_length(w->lean.data + length_at, w->lean.len - length_at - LENGTH_BYTES);
    return TIDE_OK;
}

/// The content of a length-delimited field that the schema knows.
static tide_status walk_bytes(walk *w, frame *f, const char *at, const char *end) {
    const ProtobufCFieldDescriptor *field = f->field;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (field->label != PROTOBUF_C_LABEL_REPEATED && f->seen[field - f->type->fields] > 1)
            return broken(w, f, at, "a field that may occur once occurs again");
        if (f->depth + 1 >= MAX_DEPTH) return broken(w, f, at, "messages are nested too deep");
        frame inner = {.up = f, .type = field->descriptor, .depth = f->depth + 1};
        if (inner.type == &onnx__tensor_proto__descriptor) inner.list = list_of(at, end);
        return walk_inner(w, &inner, at, end);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING && strcmp(field->name, "name") == 0) {
        f->name = at;
        f->name_len = (size_t)(end - at);
    }
    if (wire_of(field) != WIRE_BYTES && !packed_is_whole(field, at, end))
        return broken(w, f, at, "a packed list ends in the middle of a number");
    return TIDE_OK;
}

/// A touched byte of a mapped file may bring two megabytes of pages with it: they go again behind the walk.
static void drop_behind(walk *w, const char *at) {
    enum { STEP_BYTES = 4 << 20 };
    if (w->kept == NULL || at - w->kept < STEP_BYTES) return;
    tide_pages_drop(w->kept, (size_t)(at - w->kept));
    w->kept = at;
}

/// Attributes with defaults of a function (`attribute_proto`) are newer than the schema that this is built with: they
/// are walked like other attributes, and unpacked where a call leaves one out.
static bool is_default(const frame *f, uint64_t number, int wire) {
    return f->type == &onnx__function_proto__descriptor && f->field == NULL && wire == WIRE_BYTES &&
           number == TIDE__ONNX_ATTRIBUTE_PROTO;
}

static tide_status walk_default(walk *w, frame *f, const char *at, const char *end) {
    if (f->depth + 1 >= MAX_DEPTH) return broken(w, f, at, "messages are nested too deep");
    frame inner = {.up = f, .type = &onnx__attribute_proto__descriptor, .depth = f->depth + 1};
    return walk_inner(w, &inner, at, end);
}

static tide_status walk_message(walk *w, frame *f, const char *at, const char *end) {
    if (f->type->n_fields > MAX_FIELDS) return broken(w, f, at, "the schema has more fields than this reader");
    while (at < end) {
        const char *begin = at;
        f->field = NULL;
        uint64_t tag;
        const size_t tag_len = read_varint(at, end, 5, &tag);
        const int wire = (int)(tag_len > 0 ? tag & 7u : 7u);
        if (tag_len == 0 || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFFu ||
            !(wire == WIRE_VARINT || wire == WIRE_64 || wire == WIRE_BYTES || wire == WIRE_32))
            return broken(w, f, begin, "there is no protobuf field here");
        f->field = protobuf_c_message_descriptor_get_field(f->type, (unsigned)(tag >> 3));
        at += tag_len;
        if (f->field != NULL) f->seen[f->field - f->type->fields]++;
        size_t prefix, len;
        if (!measure(wire, at, end, &prefix, &len))
            return broken(w, f, begin, "the file is truncated: a field runs past the end of what it is in");
        at += prefix;
        if (f->field != NULL) {
            const bool packed = wire == WIRE_BYTES && f->field->label == PROTOBUF_C_LABEL_REPEATED;
            if (wire != wire_of(f->field) && !packed) return broken(w, f, begin, "a field has the wrong wire type");
            count_field(w, f, len);
            if (f->field->type == PROTOBUF_C_TYPE_MESSAGE)
                put(w, begin, tag_len);
            else
                copy_field(w, f, begin, at, len);
            if (wire == WIRE_BYTES) TIDE_TRY(walk_bytes(w, f, at, at + len));
        } else if (is_default(f, tag >> 3, wire)) {
            count(w, len + FIELD_BYTES);
            put(w, begin, tag_len);
            TIDE_TRY(walk_default(w, f, at, at + len));
        }
        at += len;
        drop_behind(w, at);
    }
    return TIDE_OK;
}

/**
 * Walk the protobuf structure of `bytes` before it is unpacked: every length inside its message, every known
 * field in its wire format, no message nested deeper than 100 and none given twice where one is meant.
 *
 * @param w  out: what is unpacked, the caller's to free also when this fails; and need_bytes: about what unpacking, and
 *           a graph, a program and a plan of it, will take
 * @return TIDE_ERR_BAD_INPUT saying what is wrong at which byte, inside which field
 */
static tide_status check_wire(const ProtobufCMessageDescriptor *type, const tide__onnx_bytes *bytes, size_t max_bytes,
                              walk *w, tide_error *err) {
    *w = (walk){.data = bytes->data, .path = bytes->path, .err = err, .need_bytes = BASE_BYTES, .max_bytes = max_bytes};
    if (bytes->file == NULL) count(w, bytes->len);
    if (bytes->file != NULL) w->kept = bytes->data;
    frame top = {.type = type};
    if (type == &onnx__tensor_proto__descriptor) top.list = list_of(bytes->data, bytes->data + bytes->len);
    TIDE_TRY(walk_message(w, &top, bytes->data, bytes->data + bytes->len));
    return w->lean.failed ? TIDE_NO_MEMORY(err, "to unpack %zu bytes of ONNX", bytes->len) : TIDE_OK;
}

// ---- unpacking through our own memory ----

static void *unpack_alloc(void *failed, size_t size) {
    void *p = tide_host_alloc(size);
    if (p == NULL) *(bool *)failed = true;
    return p;
}

static void unpack_free(void *failed, void *p) {
    (void)failed;
    tide_host_free(p);
}

static tide_status unpack(const ProtobufCMessageDescriptor *type, const walk *w, ProtobufCMessage **out,
                          tide_error *err) {
    if (w->max_bytes != 0 && w->need_bytes > w->max_bytes)
        return tide__graph_needs_too_much(w->need_bytes, w->max_bytes, err);
    bool failed = false;
    ProtobufCAllocator allocator = {.alloc = unpack_alloc, .free = unpack_free, .allocator_data = &failed};
    *out = protobuf_c_message_unpack(type, &allocator, w->lean.len, (const uint8_t *)tide_text_str(&w->lean));
    if (*out != NULL) return TIDE_OK;
    const tide_status st = failed ? TIDE_NO_MEMORY(err, "to unpack %zu bytes of ONNX", w->lean.len)
                                  : TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX file");
    tide_error_where(err, "%s", w->path);
    return st;
}

tide_status tide__onnx_unpack(const ProtobufCMessageDescriptor *type, const tide__onnx_bytes *bytes, size_t max_bytes,
                              ProtobufCMessage **out, tide_error *err) {
    walk w;
    tide_status st = check_wire(type, bytes, max_bytes, &w, err);
    if (st == TIDE_OK) st = unpack(type, &w, out, err);
    tide_text_deinit(&w.lean);
    return st;
}

void tide__onnx_free(ProtobufCMessage *message) {
    if (message == NULL) return;
    bool failed = false;
    ProtobufCAllocator allocator = {.alloc = unpack_alloc, .free = unpack_free, .allocator_data = &failed};
    protobuf_c_message_free_unpacked(message, &allocator);
}

tide_status tide__onnx_unpack_default(const ProtobufCMessageUnknownField *field, Onnx__AttributeProto **out,
                                      tide_error *err) {
    const char *at = (const char *)field->data, *const end = at + field->len;
    uint64_t len;
    const size_t prefix = read_varint(at, end, 10, &len);
    bool failed = false;
    ProtobufCAllocator allocator = {.alloc = unpack_alloc, .free = unpack_free, .allocator_data = &failed};
    TIDE_ASSERT(prefix > 0 && len == field->len - prefix); // the walk wrote it
    ProtobufCMessage *message = protobuf_c_message_unpack(&onnx__attribute_proto__descriptor, &allocator,
                                                          field->len - prefix, field->data + prefix);
    *out = (Onnx__AttributeProto *)message;
    if (message != NULL) return TIDE_OK;
    return failed ? TIDE_NO_MEMORY(err, "for the attribute of a function")
                  : TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "an attribute of a function is none");
}
