// SPDX-License-Identifier: MIT
//
// TensorProto to tensor: initialisers, Constant nodes, tensor attributes, and the .pb files of ONNX's test layout.
//
// Sizes are what the file says and never believed: the bytes must be there before memory for them is taken.
#include <inttypes.h>
#include <string.h>

#include "core/graph/import.h"
#include "core/graph/onnx_internal.h"

tide_status tide__onnx_dtype(int32_t data_type, const char *label, tide_dtype *out, tide_error *err) {
    // tide_dtype has ONNX's own numbers.
    *out = tide_dtype_size((tide_dtype)data_type) > 0 ? (tide_dtype)data_type : TIDE_DTYPE_UNDEFINED;
    if (*out != TIDE_DTYPE_UNDEFINED) return TIDE_OK;
    static const struct {
        int32_t value;
        const char *name;
    } known[] = {{8, "string"},          {14, "complex64"},  {15, "complex128"},     {17, "float8e4m3fn"},
                 {18, "float8e4m3fnuz"}, {19, "float8e5m2"}, {20, "float8e5m2fnuz"}, {21, "uint4"},
                 {22, "int4"},           {23, "float4e2m1"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].value == data_type)
            return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' has the element type %s", label, known[i].name);
    }
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' has the unknown element type %" PRId32, label, data_type);
}

tide_status tide__onnx_tensor_type(const Onnx__TensorProto *t, const char *label, tide_dtype *dtype, tide_shape *shape,
                                   size_t *size_bytes, tide_error *err) {
    TIDE_TRY(tide__onnx_dtype(t->has_data_type ? t->data_type : 0, label, dtype, err));
    if (t->segment != NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "tensor '%s' comes in segments", label);
    if (t->n_dims > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "tensor '%s' has %zu extents, %d are the most", label,
                         t->n_dims, TIDE_MAX_RANK);
    *shape = tide_shape_make((int32_t)t->n_dims, t->dims);
    const tide_status st = tide_shape_bytes(shape, *dtype, size_bytes, err);
    if (st == TIDE_OK) return TIDE_OK;
    tide_error_prefix(err, "tensor '%s'", label);
    return st == TIDE_ERR_NOMEM ? st : TIDE_ERR_BAD_INPUT;
}

// ---- content ----

/// The typed field that holds elements of `dtype` (onnx.proto, TensorProto) and how many are in it.
typedef struct typed_field {
    const void *data;
    size_t n;
    tide_dtype stored; // type of the field's elements
} typed_field;

static typed_field typed_field_of(const Onnx__TensorProto *t, tide_dtype dtype) {
    switch (dtype) {
    case TIDE_F32:
        return (typed_field){t->float_data, t->n_float_data, TIDE_F32};
    case TIDE_F64:
        return (typed_field){t->double_data, t->n_double_data, TIDE_F64};
    case TIDE_I64:
        return (typed_field){t->int64_data, t->n_int64_data, TIDE_I64};
    case TIDE_U32:
    case TIDE_U64:
        return (typed_field){t->uint64_data, t->n_uint64_data, TIDE_U64};
    default:
        return (typed_field){t->int32_data, t->n_int32_data, TIDE_I32};
    }
}

static bool is_external(const Onnx__TensorProto *t) {
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

tide_status tide__onnx_tensor_check(const Onnx__TensorProto *t, const char *label, tide_dtype dtype,
                                    const tide_shape *shape, size_t size_bytes, tide_error *err) {
    if (is_external(t)) return TIDE_OK; // the file is asked when it is read
    size_t there;
    if (t->has_raw_data) {
        there = t->raw_data.len;
    } else {
        there = typed_field_of(t, dtype).n * tide_dtype_size(dtype);
    }
    if (there == size_bytes) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "tensor '%s' claims %s %s = %zu bytes, %zu bytes are there", label,
                     tide_dtype_name(dtype), tide_shape_format(shape, text, sizeof text), size_bytes, there);
}

/// Elements from int32_data or uint64_data, which are wider than the type they stand for.
static tide_status narrow(const typed_field *f, const char *label, tide_dtype dtype, void *dst, tide_error *err) {
    for (size_t i = 0; i < f->n; i++) {
        bool fits;
        if (f->stored == TIDE_U64) {
            const uint64_t v = ((const uint64_t *)f->data)[i];
            fits = v <= UINT32_MAX && tide__number_store_int(dst, dtype, i, (int64_t)v);
        } else {
            const int32_t v = ((const int32_t *)f->data)[i];
            if (dtype == TIDE_F16 || dtype == TIDE_BF16) {
                ((uint16_t *)dst)[i] = (uint16_t)v; // the bits of the number, in the low half
                fits = v >= INT16_MIN && v <= UINT16_MAX;
            } else {
                fits = tide__number_store_int(dst, dtype, i, v);
            }
        }
        if (!fits)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "element %zu of tensor '%s' is no %s", i, label,
                             tide_dtype_name(dtype));
    }
    return TIDE_OK;
}

tide_status tide__onnx_tensor_fill(const Onnx__TensorProto *t, const char *label, const char *path, tide_dtype dtype,
                                   size_t size_bytes, void *dst, tide_error *err) {
    if (size_bytes == 0) return TIDE_OK;
    if (is_external(t)) return tide__onnx_read_external(t, label, path, size_bytes, dst, err);
    const typed_field f = typed_field_of(t, dtype);
    if (t->has_raw_data) {
        memcpy(dst, t->raw_data.data, size_bytes);
    } else if (f.stored == dtype) {
        memcpy(dst, f.data, size_bytes);
    } else {
        return narrow(&f, label, dtype, dst, err);
    }
    return TIDE_OK;
}

// ---- a constant ----

/// Take the bytes out of the message when they already are the tensor's; NULL when they are not.
static void *detach_bytes(Onnx__TensorProto *t, tide_dtype dtype) {
    if (is_external(t)) return NULL;
    void *bytes = NULL;
    if (t->has_raw_data) {
        bytes = t->raw_data.data;
        t->raw_data = (ProtobufCBinaryData){0};
        t->has_raw_data = 0;
        return bytes;
    }
#define DETACH(field)                                                                                                  \
    bytes = t->field;                                                                                                  \
    t->field = NULL;                                                                                                   \
    t->n_##field = 0
    switch (dtype) {
    case TIDE_F32:
        DETACH(float_data);
        break;
    case TIDE_F64:
        DETACH(double_data);
        break;
    case TIDE_I64:
        DETACH(int64_data);
        break;
    case TIDE_U64:
        DETACH(uint64_data);
        break;
    case TIDE_I32:
        DETACH(int32_data);
        break;
    default:
        break;
    }
#undef DETACH
    return bytes;
}

/// A tensor over the whole of `block`, whose reference is taken (also when this fails).
static tide_status over_block(tide_block *block, tide_dtype dtype, const tide_shape *shape, tide_tensor **out,
                              tide_error *err) {
    tide_storage storage = tide_storage_of_block(block);
    const tide_status st = tide_tensor_create_on(&storage, 0, dtype, shape, out, err);
    tide_storage_deinit(&storage);
    tide_block_unref(block);
    return st;
}

/// A tensor around `bytes` of host memory, which are freed with its last reference (also when this fails).
static tide_status adopt_bytes(void *bytes, size_t size_bytes, const char *label, tide_dtype dtype,
                               const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide_block *block = NULL;
    const tide_status st = tide_block_borrow(bytes, size_bytes, TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, tide_host_free,
                                             bytes, label, &block, err);
    if (st == TIDE_OK) return over_block(block, dtype, shape, out, err);
    tide_host_free(bytes);
    return st;
}

tide_status tide__onnx_tensor_take(Onnx__TensorProto *t, const char *label, const char *path, tide_tensor **out,
                                   tide_error *err) {
    tide_dtype dtype;
    tide_shape shape;
    size_t size_bytes;
    TIDE_TRY(tide__onnx_tensor_type(t, label, &dtype, &shape, &size_bytes, err));
    TIDE_TRY(tide__onnx_tensor_check(t, label, dtype, &shape, size_bytes, err));
    void *bytes = size_bytes > 0 ? detach_bytes(t, dtype) : NULL;
    if (bytes != NULL) return adopt_bytes(bytes, size_bytes, label, dtype, &shape, out, err);
    if (is_external(t) && size_bytes > 0) {
        TIDE_TRY(tide__onnx_read_external(t, label, path, size_bytes, NULL, err)); // is it there?
        tide_block *mapped = tide__onnx_map_external(t, label, path, size_bytes, tide_dtype_size(dtype));
        if (mapped != NULL) return over_block(mapped, dtype, &shape, out, err);
    }
    tide_tensor *made = NULL;
    TIDE_TRY(tide__constant_create(dtype, &shape, label, &made, err));
    const tide_status st = tide__onnx_tensor_fill(t, label, path, dtype, size_bytes, tide_tensor_data(made), err);
    if (st == TIDE_OK) {
        *out = made;
    } else {
        tide_tensor_unref(made);
    }
    return st;
}

// ---- a file with one tensor ----

static tide_status tensor_from_proto(const Onnx__TensorProto *t, const char *path, tide_registry *registry,
                                     tide_memory_kind kind, tide_tensor **out, tide_error *err) {
    const char *label = t->name != NULL && t->name[0] != '\0' ? t->name : tide__path_leaf(path);
    tide_tensor_spec spec = {.device = TIDE_CPU, .kind = kind, .registry = registry, .tag = label};
    size_t size_bytes;
    TIDE_TRY(tide__onnx_tensor_type(t, label, &spec.dtype, &spec.shape, &size_bytes, err));
    TIDE_TRY(tide__onnx_tensor_check(t, label, spec.dtype, &spec.shape, size_bytes, err));
    if (is_external(t) && size_bytes > 0) TIDE_TRY(tide__onnx_read_external(t, label, path, size_bytes, NULL, err));
    tide_tensor *made = NULL;
    TIDE_TRY(tide_tensor_create(&spec, &made, err));
    const tide_status st = tide__onnx_tensor_fill(t, label, path, spec.dtype, size_bytes, tide_tensor_data(made), err);
    if (st == TIDE_OK) {
        *out = made;
    } else {
        tide_tensor_unref(made);
    }
    return st;
}

tide_status tide_tensor_from_pb_file(const char *path, tide_registry *registry, tide_memory_kind kind,
                                     tide_tensor **out, char **name, tide_error *err) {
    char *data = NULL;
    size_t len = 0;
    TIDE_TRY(tide_read_file(path, 0, &data, &len, err));
    ProtobufCMessage *message = NULL;
    tide_status st;
    if (len == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX tensor: the file is empty");
    } else {
        st = tide__onnx_unpack(&onnx__tensor_proto__descriptor, data, len, path, 0, &message, err);
    }
    tide_host_free(data);
    char *copy = NULL;
    if (st == TIDE_OK && name != NULL) {
        copy = tide_host_strdup(tide__onnx_str(((Onnx__TensorProto *)message)->name));
        if (copy == NULL) st = TIDE_NO_MEMORY(err, "for a tensor's name");
    }
    if (st == TIDE_OK) st = tensor_from_proto((Onnx__TensorProto *)message, path, registry, kind, out, err);
    if (st == TIDE_OK && name != NULL) {
        *name = copy;
    } else {
        tide_host_free(copy);
    }
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", path);
    tide__onnx_free(message);
    return st;
}
