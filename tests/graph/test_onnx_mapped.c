// SPDX-License-Identifier: MIT
//
// The import of a model whose file is mapped: what stays in the file, what is copied, what is left blank.
#include <unistd.h>

#include "core/graph/sizes.h"
#include "core/memory/block.h"
#include "tests/graph/onnx_fixture.h"

enum { N = 1 << 15, N_SMALL = 100 }; // 128 KiB, and too little to stay

/// A model in a file, its weight "w" of `n` floats 0, 1, 2 …; `pad` moves them within the file.
static tide_block *map_model(const char *path, int64_t n, int pad) {
    static float floats[N];
    static char padding[16];
    model_fixture m;
    for (int i = 0; i < N; i++) floats[i] = (float)i;
    memset(padding, 'p', sizeof padding);
    padding[pad] = '\0';
    model_init(&m);
    m.model.producer_name = padding; // packed before the graph
    m.tensor_dims[0][0] = 1;
    m.tensor_dims[0][1] = n;
    m.tensor[0].raw_data.data = (uint8_t *)floats;
    m.tensor[0].raw_data.len = (size_t)n * sizeof floats[0];
    const size_t len = onnx__model_proto__get_packed_size(&m.model);
    uint8_t *data = malloc(len);
    assert_non_null(data);
    assert_int_equal(onnx__model_proto__pack(&m.model, data), len);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    free(data);
    tide_error err = TIDE_ERROR_INIT;
    tide_block *file;
    assert_tide_ok(tide_block_map_file(path, 0, 0, TIDE_KIND_HOST_PAGEABLE, &file, &err), &err);
    return file;
}

static bool lies_in(const tide_block *file, const tide_tensor *t) {
    const char *begin = tide_block_address(file), *at = tide_tensor_const_data(t);
    return at >= begin && at < begin + file->mem.requested_bytes;
}

static void assert_counts_up(const tide_tensor *t) {
    const float *floats = tide_tensor_const_data(t);
    for (size_t i = 0; i < tide_tensor_size_bytes(t) / sizeof *floats; i++) assert_true(floats[i] == (float)i);
}

/// At eight places in turn: floats stay where four bytes are a multiple, the others are copied; none changes.
static void test_what_stays(void **state) {
    (void)state;
    char path[] = "/tmp/tide-mapped-XXXXXX";
    close(mkstemp(path));
    int n_stay = 0;
    for (int pad = 0; pad < 8; pad++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g;
        tide_block *file = map_model(path, N, pad);
        assert_tide_ok(tide_graph_from_onnx_mapped(file, path, &g, &err), &err);
        const tide_tensor *w = g->values[tide_graph_find_value(g, "w")].constant;
        const bool stays = lies_in(file, w);
        n_stay += stays;
        assert_int_equal(tide_block_use_count(file), stays ? 2 : 1);
        assert_int_equal(remove(path), 0); // the mapping keeps the file
        tide_block_unref(file);
        assert_counts_up(w);
        assert_int_equal((uintptr_t)tide_tensor_const_data(w) % sizeof(float), 0);
        tide_graph_destroy(g);
    }
    assert_int_equal(n_stay, 2);
}

static void test_small_ones_are_copied(void **state) {
    (void)state;
    char path[] = "/tmp/tide-mapped-XXXXXX";
    close(mkstemp(path));
    for (int pad = 0; pad < 4; pad++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g;
        tide_block *file = map_model(path, N_SMALL, pad);
        assert_tide_ok(tide_graph_from_onnx_mapped(file, path, &g, &err), &err);
        assert_int_equal(tide_block_use_count(file), 1);
        tide_block_unref(file);
        assert_counts_up(g->values[tide_graph_find_value(g, "w")].constant);
        tide_graph_destroy(g);
    }
    assert_int_equal(remove(path), 0);
}

/// Where the graph will not run, what would be copied is left blank, and nothing of that size is taken.
static void test_sizes_take_nothing(void **state) {
    (void)state;
    char path[] = "/tmp/tide-mapped-XXXXXX";
    close(mkstemp(path));
    int n_blank = 0;
    for (int pad = 0; pad < 4; pad++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g;
        bool wanted = false;
        const tide_contents few = {.one_bytes = 4096, .all_bytes = 1 << 20, .wanted = &wanted};
        tide_block *file = map_model(path, N, pad);
        tide_host_reset_peak();
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        assert_tide_ok(tide_graph_sizes_from_onnx_mapped(file, path, &few, 0, &g, &err), &err);
        tide_host_get_stats(&after);
        assert_true(after.peak_bytes - before.live_bytes < N * sizeof(float) / 2);
        const tide_tensor *w = g->values[tide_graph_find_value(g, "w")].constant;
        assert_int_equal(tide_tensor_size_bytes(w), N * sizeof(float));
        n_blank += tide_constant_is_blank(w);
        assert_true(tide_constant_is_blank(w) || lies_in(file, w));
        tide_block_unref(file);
        tide_graph_destroy(g);
    }
    assert_int_equal(n_blank, 3);
    assert_int_equal(remove(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_what_stays),
        tide_unit_test(test_small_ones_are_copied),
        tide_unit_test(test_sizes_take_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
