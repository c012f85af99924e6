// SPDX-License-Identifier: MIT
//
// Content of TensorProto: every element type in raw and typed form, and data in files beside the model.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/graph/onnx_fixture.h"

/// Import the small model with `w` as it now is (nothing else uses it) and hand out its constant, referenced.
static tide_status import_w(model_fixture *m, tide_tensor **out, tide_error *err) {
    tide_graph *g = NULL;
    m->node[0].n_input = 1; // the Add no longer reads w: any shape will do
    const tide_status st = import_fixture(m, &g, err);
    if (st != TIDE_OK) return st;
    *out = tide_tensor_ref(g->values[tide_graph_find_value(g, "w")].constant);
    tide_graph_destroy(g);
    return TIDE_OK;
}

static void set_raw(model_fixture *m, int32_t dtype, int64_t n, const void *bytes, size_t len) {
    model_init(m);
    tensor_init(m, 0, "w", dtype, 1, &n);
    m->tensor[0].has_raw_data = 1;
    m->tensor[0].raw_data.data = (uint8_t *)(uintptr_t)bytes;
    m->tensor[0].raw_data.len = len;
}

static void test_raw_data_of_every_type(void **state) {
    (void)state;
    static const struct {
        tide_dtype dtype;
        size_t size;
    } rows[] = {
#define XX(name, value, text, bytes) {TIDE_##name, bytes},
        TIDE_DTYPE_MAP(XX)
#undef XX
    };
    uint8_t bytes[5 * 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        model_fixture m;
        tide_error err = TIDE_ERROR_INIT;
        tide_tensor *t = NULL;
        set_raw(&m, rows[i].dtype, 5, bytes, 5 * rows[i].size);
        assert_tide_ok(import_w(&m, &t, &err), &err);
        assert_int_equal(tide_tensor_dtype(t), rows[i].dtype);
        assert_int_equal(tide_tensor_size_bytes(t), 5 * rows[i].size);
        assert_memory_equal(tide_tensor_const_data(t), bytes, 5 * rows[i].size);
        tide_tensor_unref(t);
        set_raw(&m, rows[i].dtype, 5, bytes, 5 * rows[i].size - 1);
        assert_tide_status(import_w(&m, &t, &err), TIDE_ERR_BAD_INPUT);
    }
}

static void check_typed(model_fixture *m, const void *want, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    assert_tide_ok(import_w(m, &t, &err), &err);
    assert_int_equal(tide_tensor_size_bytes(t), len);
    assert_memory_equal(tide_tensor_const_data(t), want, len);
    tide_tensor_unref(t);
}

static void start_typed(model_fixture *m, int32_t dtype, int64_t n) {
    model_init(m);
    tensor_init(m, 0, "w", dtype, 1, &n);
}

#define CHECK_INT32_FIELD(dtype, type, ...)                                                                            \
    do {                                                                                                               \
        int32_t stored[] = {__VA_ARGS__};                                                                              \
        const type want[] = {__VA_ARGS__};                                                                             \
        start_typed(&m, dtype, sizeof want / sizeof want[0]);                                                          \
        m.tensor[0].n_int32_data = sizeof want / sizeof want[0];                                                       \
        m.tensor[0].int32_data = stored;                                                                               \
        check_typed(&m, want, sizeof want);                                                                            \
    } while (0)

static void test_typed_data_of_every_type(void **state) {
    (void)state;
    model_fixture m;
    CHECK_INT32_FIELD(TIDE_I32, int32_t, INT32_MIN, -1, 0, INT32_MAX);
    CHECK_INT32_FIELD(TIDE_I16, int16_t, INT16_MIN, -1, INT16_MAX);
    CHECK_INT32_FIELD(TIDE_I8, int8_t, INT8_MIN, -1, INT8_MAX);
    CHECK_INT32_FIELD(TIDE_U16, uint16_t, 0, 1, UINT16_MAX);
    CHECK_INT32_FIELD(TIDE_U8, uint8_t, 0, 1, UINT8_MAX);
    CHECK_INT32_FIELD(TIDE_BOOL, uint8_t, 0, 1, 1, 0);
    CHECK_INT32_FIELD(TIDE_F16, uint16_t, 0x3C00, 0xC000, 0x7BFF); // bits of 1, -2, 65504
    CHECK_INT32_FIELD(TIDE_BF16, uint16_t, 0x3F80, 0xC000, 0x7F7F);

    float floats[] = {0.5f, -3};
    start_typed(&m, TIDE_F32, 2);
    m.tensor[0].n_float_data = 2, m.tensor[0].float_data = floats;
    check_typed(&m, floats, sizeof floats);
    double doubles[] = {0.1, -1e300};
    start_typed(&m, TIDE_F64, 2);
    m.tensor[0].n_double_data = 2, m.tensor[0].double_data = doubles;
    check_typed(&m, doubles, sizeof doubles);
    int64_t longs[] = {INT64_MIN, INT64_MAX};
    start_typed(&m, TIDE_I64, 2);
    m.tensor[0].n_int64_data = 2, m.tensor[0].int64_data = longs;
    check_typed(&m, longs, sizeof longs);
    uint64_t ulongs[] = {0, UINT64_MAX};
    start_typed(&m, TIDE_U64, 2);
    m.tensor[0].n_uint64_data = 2, m.tensor[0].uint64_data = ulongs;
    check_typed(&m, ulongs, sizeof ulongs);
    uint64_t stored[] = {0, UINT32_MAX};
    const uint32_t want[] = {0, UINT32_MAX};
    start_typed(&m, TIDE_U32, 2);
    m.tensor[0].n_uint64_data = 2, m.tensor[0].uint64_data = stored;
    check_typed(&m, want, sizeof want);
}

static void test_typed_data_outside_its_type(void **state) {
    (void)state;
    static const struct {
        tide_dtype dtype;
        int32_t value;
    } rows[] = {{TIDE_I8, 128},    {TIDE_I8, -129}, {TIDE_U8, -1},  {TIDE_U8, 256},
                {TIDE_I16, 32768}, {TIDE_U16, -1},  {TIDE_BOOL, 2}, {TIDE_F16, 70000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        model_fixture m;
        int32_t stored[] = {1, rows[i].value};
        start_typed(&m, rows[i].dtype, 2);
        m.tensor[0].n_int32_data = 2;
        m.tensor[0].int32_data = stored;
        assert_refused(&m, TIDE_ERR_BAD_INPUT, "element 1 of tensor 'w' is no ");
    }
}

static void test_scalars_and_empty_tensors(void **state) {
    (void)state;
    model_fixture m;
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    model_init(&m);
    tensor_init(&m, 0, "w", 7, 0, NULL);
    int64_t one = 42;
    m.tensor[0].n_int64_data = 1;
    m.tensor[0].int64_data = &one;
    assert_tide_ok(import_w(&m, &t, &err), &err);
    assert_int_equal(tide_tensor_shape(t)->rank, 0);
    assert_int_equal(*(const int64_t *)tide_tensor_const_data(t), 42);
    tide_tensor_unref(t);
    const int64_t dims[] = {0, 3};
    for (int with_raw = 0; with_raw < 2; with_raw++) {
        model_init(&m);
        tensor_init(&m, 0, "w", 1, 2, dims);
        m.tensor[0].has_raw_data = with_raw;
        assert_tide_ok(import_w(&m, &t, &err), &err);
        assert_int_equal(tide_tensor_size_bytes(t), 0);
        assert_null(tide_tensor_const_data(t));
        tide_tensor_unref(t);
    }
}

// ---- external data ----

typedef struct external {
    char folder[128];
    char model[192];
    model_fixture m;
    Onnx__StringStringEntryProto entry[3], *list[3];
} external;

static void external_set(external *e, size_t i, const char *key, const char *value) {
    onnx__string_string_entry_proto__init(&e->entry[i]);
    e->entry[i].key = TEXT(key);
    e->entry[i].value = TEXT(value);
    e->list[i] = &e->entry[i];
    if (e->m.tensor[0].n_external_data < i + 1) e->m.tensor[0].n_external_data = i + 1;
    e->m.tensor[0].external_data = e->list;
}

static void write_bytes(const char *path, const void *bytes, size_t len) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/// A folder with weights.bin: 8 bytes of filler and the four floats 0 1 2 3.
static void external_init(external *e) {
    const float floats[6] = {-1, -1, 0, 1, 2, 3};
    snprintf(e->folder, sizeof e->folder, "/tmp/tide-external-XXXXXX");
    assert_non_null(mkdtemp(e->folder));
    snprintf(e->model, sizeof e->model, "%s/inner", e->folder);
    assert_int_equal(mkdir(e->model, 0700), 0);
    snprintf(e->model, sizeof e->model, "%s/inner/weights.bin", e->folder);
    write_bytes(e->model, floats, sizeof floats);
    snprintf(e->model, sizeof e->model, "%s/secret.bin", e->folder);
    write_bytes(e->model, floats, sizeof floats);
    snprintf(e->model, sizeof e->model, "%s/inner/link.bin", e->folder);
    assert_int_equal(symlink("../secret.bin", e->model), 0);
    snprintf(e->model, sizeof e->model, "%s/inner/pipe", e->folder);
    assert_int_equal(mkfifo(e->model, 0600), 0);
    snprintf(e->model, sizeof e->model, "%s/inner/model.onnx", e->folder);
    model_init(&e->m);
    e->m.tensor[0].has_raw_data = 0;
    e->m.tensor[0].has_data_location = 1;
    e->m.tensor[0].data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static void external_deinit(const external *e) {
    static const char *const files[] = {"inner/weights.bin", "inner/link.bin", "inner/pipe", "secret.bin", "inner", ""};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[192];
        snprintf(path, sizeof path, "%s/%s", e->folder, files[i]);
        assert_int_equal(remove(path), 0);
    }
}

static tide_status import_external(const external *e, const char *path, tide_graph **g, tide_error *err) {
    uint8_t data[1024];
    assert_true(onnx__model_proto__get_packed_size(&e->m.model) < sizeof data);
    const size_t len = onnx__model_proto__pack(&e->m.model, data);
    return tide_graph_from_onnx((const char *)data, len, path, g, err);
}

static void test_external_data(void **state) {
    (void)state;
    external e;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    external_init(&e);
    external_set(&e, 0, "location", "weights.bin");
    external_set(&e, 1, "offset", "8");
    for (int with_length = 0; with_length < 2; with_length++) {
        if (with_length) external_set(&e, 2, "length", "16");
        assert_tide_ok(import_external(&e, e.model, &g, &err), &err);
        const tide_tensor *w = g->values[tide_graph_find_value(g, "w")].constant;
        assert_memory_equal(tide_tensor_const_data(w), e.m.data, sizeof e.m.data);
        tide_graph_destroy(g);
        g = NULL;
    }
    external_deinit(&e);
}

/// Large weights of large files are the file itself, read-only: no allocator is asked, and they stay when the file's
/// name goes. Others, and those at an odd offset, are read: they stay when the file is cut short, too.
static void test_external_data_is_mapped(void **state) {
    (void)state;
    enum { N = 1 << 15 }; // 128 KiB
    static float floats[N + 2];
    static const struct {
        const char *offset;
        int64_t n, file_bytes; // the rest of the file is a hole
        bool mapped;
    } rows[] = {{"8", N, 1 << 28, true}, {"6", N, 1 << 28, false},       {"8", 100, 1 << 28, false},
                {"0", N, 1 << 28, true}, {"0", N, (1 << 28) - 1, false}, {"8", N, sizeof floats, false}};
    tide_allocator *cpu = NULL;
    tide_allocator_stats before, after;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_registry_get(tide_registry_default(), TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, &cpu, &err), &err);
    for (int i = 0; i < N + 2; i++) floats[i] = (float)i;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        external e;
        char path[192];
        tide_graph *g = NULL;
        external_init(&e);
        snprintf(path, sizeof path, "%s/inner/weights.bin", e.folder);
        write_bytes(path, floats, sizeof floats);
        assert_int_equal(truncate(path, rows[i].file_bytes), 0);
        external_set(&e, 0, "location", "weights.bin");
        external_set(&e, 1, "offset", rows[i].offset);
        e.m.tensor_dims[0][0] = rows[i].n / 4; // n/4 x 4
        tide_allocator_get_stats(cpu, &before);
        assert_tide_ok(import_external(&e, e.model, &g, &err), &err);
        tide_allocator_get_stats(cpu, &after);
        tide_tensor *w = g->values[tide_graph_find_value(g, "w")].constant;
        if (!rows[i].mapped) assert_int_equal(truncate(path, 0), 0);
        external_deinit(&e); // the name is gone
        assert_int_equal(after.n_allocs - before.n_allocs, rows[i].mapped ? 0 : 1);
        assert_true((tide_tensor_storage(w)->block->owner == NULL) == rows[i].mapped);
        assert_memory_equal(tide_tensor_const_data(w), (const char *)floats + strtoul(rows[i].offset, NULL, 10),
                            (size_t)rows[i].n * sizeof(float));
        void *unused;
        assert_tide_status(tide_tensor_write(w, &unused, &err), rows[i].mapped ? TIDE_ERR_BUSY : TIDE_OK);
        tide_graph_destroy(g);
    }
}

static void test_external_data_refused(void **state) {
    (void)state;
    static const struct {
        const char *location, *offset, *length;
        tide_status st;
        const char *says;
    } rows[] = {
        {"/etc/passwd", "0", NULL, TIDE_ERR_BAD_INPUT, "outside the model's folder: '/etc/passwd'"},
        {"../secret.bin", "8", NULL, TIDE_ERR_BAD_INPUT, "outside the model's folder: '../secret.bin'"},
        {"x/../../secret.bin", "8", NULL, TIDE_ERR_BAD_INPUT, "outside the model's folder"},
        {"..", "8", NULL, TIDE_ERR_BAD_INPUT, "outside the model's folder"},
        {"link.bin", "8", NULL, TIDE_ERR_BAD_INPUT, "'link.bin' is a link"},
        {"missing.bin", "0", NULL, TIDE_ERR_IO, "missing.bin"},
        {".", "0", NULL, TIDE_ERR_BAD_INPUT, "'w'"},
        {"pipe", "0", NULL, TIDE_ERR_IO, "'pipe' is not a file"}, // and the reader does not wait for its other end
        {"weights.bin", "9", NULL, TIDE_ERR_BAD_INPUT, "needs 16 bytes from byte 9 of 'weights.bin', which has 24"},
        {"weights.bin", "18446744073709551615", NULL, TIDE_ERR_BAD_INPUT, "which has 24"},
        {"weights.bin", "18446744073709551616", NULL, TIDE_ERR_BAD_INPUT, "is no number"},
        {"weights.bin", "-8", NULL, TIDE_ERR_BAD_INPUT, "offset '-8' is no number"},
        {"weights.bin", "8", "12", TIDE_ERR_BAD_INPUT, "needs 16 bytes, its external data has 12"},
        {"", "8", NULL, TIDE_ERR_BAD_INPUT, "names no file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        external e;
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = NULL;
        external_init(&e);
        external_set(&e, 0, "location", rows[i].location);
        external_set(&e, 1, "offset", rows[i].offset);
        if (rows[i].length != NULL) external_set(&e, 2, "length", rows[i].length);
        assert_tide_status(import_external(&e, e.model, &g, &err), rows[i].st);
        assert_null(g);
        assert_text_has(err.msg, rows[i].says);
        assert_text_has(err.where, "initialiser 'w'");
        external_deinit(&e);
    }
}

static void test_external_data_that_is_claimed_but_not_there(void **state) {
    (void)state;
    external e;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    external_init(&e);
    external_set(&e, 0, "location", "weights.bin");
    e.m.tensor_dims[0][0] = INT64_C(1) << 27; // 2 GiB out of a file of 24 bytes
    tide_allocator *cpu = NULL;
    tide_allocator_stats before, after;
    assert_tide_ok(tide_registry_get(tide_registry_default(), TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, &cpu, &err), &err);
    tide_allocator_get_stats(cpu, &before);
    assert_tide_status(import_external(&e, e.model, &g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "needs 2147483648 bytes");
    tide_allocator_get_stats(cpu, &after);
    assert_int_equal(after.n_allocs, before.n_allocs);
    external_deinit(&e);
}

static void test_external_data_of_standard_input(void **state) {
    (void)state;
    external e;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    external_init(&e);
    external_set(&e, 0, "location", "weights.bin");
    assert_tide_status(import_external(&e, "-", &g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.hint, "file name");
    external_deinit(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_raw_data_of_every_type),
        tide_unit_test(test_typed_data_of_every_type),
        tide_unit_test(test_typed_data_outside_its_type),
        tide_unit_test(test_scalars_and_empty_tensors),
        tide_unit_test(test_external_data),
        tide_unit_test(test_external_data_is_mapped),
        tide_unit_test(test_external_data_refused),
        tide_unit_test(test_external_data_that_is_claimed_but_not_there),
        tide_unit_test(test_external_data_of_standard_input),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
