// SPDX-License-Identifier: MIT
//
// GridSample, RoiAlign, MaxRoiPool where ONNX's own cases do not go: places that are no numbers, images of one element,
// regions that name no image, nothing to sample.
#include "tests/ops/data_case.h"

#include <math.h>

static const float four[] = {1, 2, 3, 4};

static op_case grid_sample(const char *padding, int64_t n, const float *grid) {
    op_case c = case_begin("GridSample", 16);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(1, 1, n, 2), grid);
    case_string(&c, "mode", "nearest");
    case_string(&c, "padding_mode", padding);
    return c;
}

static void test_places_that_are_nowhere(void **state) {
    (void)state;
    static const float grid[] = {NAN, NAN, INFINITY, -INFINITY, 1e30f, 1e30f, -0.5f, 0.5f};
    op_case c = grid_sample("zeros", 4, grid);
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 4), (const float[]){0, 0, 0, 3});
    c = grid_sample("border", 4, grid);
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 4), (const float[]){1, 2, 4, 3});
    c = grid_sample("reflection", 4, grid);
    assert_tide_ok(case_try(&c, 1), &c.err);
    const float *y = tide_tensor_const_data(case_out(&c, 0)->constant);
    for (int i = 0; i < 4; i++) assert_true(y[i] >= 1 && y[i] <= 4);
    case_end(&c);
}

/// An axis of one element has no room to turn back in.
static void test_one_element(void **state) {
    (void)state;
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"border", "reflection"};
    for (int i = 0; i < 12; i++) {
        op_case c = case_begin("GridSample", 16);
        case_in(&c, TIDE_F32, DIMS(1, 1, 1, 1), four + 2);
        case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), (const float[]){-3, 0.25f, 7, 1});
        case_string(&c, "mode", modes[i % 3]);
        case_string(&c, "padding_mode", paddings[i / 3 % 2]);
        case_int(&c, "align_corners", i / 6);
        assert_tide_ok(case_try(&c, 1), &c.err);
        const float *y = tide_tensor_const_data(case_out(&c, 0)->constant);
        for (int k = 0; k < 2; k++) assert_true(fabsf(y[k] - 3) < 1e-5f);
        case_end(&c);
    }
}

static void test_grids_of_nothing(void **state) {
    (void)state;
    op_case c = grid_sample("zeros", 0, NULL);
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 0), NULL);
    c = case_begin("GridSample", 16);
    case_in(&c, TIDE_F32, DIMS(1, 1, 0, 2), NULL);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1, 2), four);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "no element to read");
    c = case_begin("GridSample", 16);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1, 3), four);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "grid is [1x1x1x3], must be [1x1x1x2]");
    c = case_begin("GridSample", 20);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1, 2), four);
    case_string(&c, "mode", "bilinear"); // its name of before opset 20
    case_refused(&c, TIDE_ERR_BAD_INPUT, "mode 'bilinear'");
}

// ---- regions ----

static op_case roi_align(const float *rois, int64_t n, const int64_t *images) {
    op_case c = case_begin("RoiAlign", 16);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(n, 4), rois);
    case_in(&c, TIDE_I64, DIMS(n), images);
    return c;
}

static void test_regions(void **state) {
    (void)state;
    static const int64_t images[] = {0, 0}, wrong[] = {0, 1}, before[] = {0, -1};
    static const float whole[] = {0, 0, 2, 2, 5, 5, 5, 5}; // the second has no extent: nothing to sample
    op_case c = roi_align(whole, 2, images);
    case_want(&c, TIDE_F32, DIMS(2, 1, 1, 1), (const float[]){2.5f, 0});
    c = roi_align(whole, 2, wrong);
    case_refused(&c, TIDE_ERR_RUNTIME, "region 1 is of image 1 of 1");
    c = roi_align(whole, 2, before);
    case_refused(&c, TIDE_ERR_RUNTIME, "region 1 is of image -1 of 1");
    c = roi_align((const float[]){0, 0, 1e9f, 1}, 1, images);
    case_refused(&c, TIDE_ERR_RUNTIME, "too large");
    c = roi_align((const float[]){0, NAN, 1, 1}, 1, images);
    case_refused(&c, TIDE_ERR_RUNTIME, "too large");
    for (int i = 0; i < 2; i++) { // how many places are sampled does not hang on the region's end
        c = roi_align((const float[]){0, 0, 1, i == 0 ? NAN : INFINITY}, 1, images);
        case_int(&c, "sampling_ratio", 1);
        case_refused(&c, TIDE_ERR_RUNTIME, "too large");
    }
    for (int i = 0; i < 2; i++) { // no row, no column
        c = case_begin("RoiAlign", 16);
        case_in(&c, TIDE_F32, DIMS(1, 1, i, 1 - i), NULL);
        case_in(&c, TIDE_F32, DIMS(1, 4), (const float[]){0, 0, 1, 1});
        case_in(&c, TIDE_I64, DIMS(1), images);
        case_refused(&c, TIDE_ERR_BAD_INPUT, "no element to read");
    }
    c = roi_align(NULL, 0, NULL);
    case_want(&c, TIDE_F32, DIMS(0, 1, 1, 1), NULL);
    c = roi_align(whole, 2, images);
    case_int(&c, "output_height", 0);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "an output of 0 by 1");
    c = roi_align(whole, 2, images);
    case_string(&c, "mode", "median");
    case_refused(&c, TIDE_ERR_BAD_INPUT, "median");
    c = roi_align(whole, 2, images);
    case_int(&c, "sampling_ratio", 1 << 20);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "sampling_ratio");
}

static op_case roi_pool(const float *rois, int64_t n) {
    op_case c = case_begin("MaxRoiPool", 1);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(n, 5), rois);
    case_ints(&c, "pooled_shape", DIMS(1, 1));
    return c;
}

static void test_pooled_regions(void **state) {
    (void)state;
    static const float rois[] = {0, 0, 0, 1, 0, 0, 9, 9, 12, 12}; // the first row; beyond the image
    op_case c = roi_pool(rois, 2);
    case_want(&c, TIDE_F32, DIMS(2, 1, 1, 1), (const float[]){2, 0});
    c = roi_pool((const float[]){1, 0, 0, 1, 1}, 1);
    case_refused(&c, TIDE_ERR_RUNTIME, "image 1 of 1");
    c = roi_pool((const float[]){0, NAN, -INFINITY, INFINITY, NAN}, 1);
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 1), (const float[]){0});
    c = case_begin("MaxRoiPool", 1); // of an image of nothing: 0 as elsewhere where nothing lies under a cell
    case_in(&c, TIDE_F32, DIMS(1, 1, 0, 2), NULL);
    case_in(&c, TIDE_F32, DIMS(1, 5), rois);
    case_ints(&c, "pooled_shape", DIMS(1, 1));
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 1), (const float[]){0});
    c = roi_pool(NULL, 0);
    case_want(&c, TIDE_F32, DIMS(0, 1, 1, 1), NULL);
    c = case_begin("MaxRoiPool", 1);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2), four);
    case_in(&c, TIDE_F32, DIMS(2, 5), rois);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "an output of 0 by 0");
}

/// What would take hours is not folded while a model is loaded, however few bytes say it.
static void test_regions_that_take_long_are_not_folded(void **state) {
    (void)state;
    static const int64_t image = 0;
    static const float small[] = {0, 0, 1, 1}, large[] = {0, 0, 4e6f, 4e6f}, pooled[] = {0, 0, 0, 9e6f, 9e6f};
    for (int i = 0; i < 2; i++) {
        op_case c = roi_align(i == 0 ? small : large, 1, &image);
        case_int(&c, "sampling_ratio", i == 0 ? 4096 : 0);
        case_int(&c, "output_height", 1000);
        case_int(&c, "output_width", 1000);
        assert_tide_ok(case_try(&c, 1), &c.err);
        assert_null(case_out(&c, 0)->constant);
        case_end(&c);
    }
    op_case c = case_begin("MaxRoiPool", 1);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1000, 1000), NULL);
    case_in(&c, TIDE_F32, DIMS(1, 5), pooled);
    case_ints(&c, "pooled_shape", DIMS(200, 200));
    assert_tide_ok(case_try(&c, 1), &c.err);
    assert_null(case_out(&c, 0)->constant);
    case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_places_that_are_nowhere), tide_unit_test(test_one_element),
        tide_unit_test(test_grids_of_nothing),        tide_unit_test(test_regions),
        tide_unit_test(test_pooled_regions),          tide_unit_test(test_regions_that_take_long_are_not_folded),
    };
    return cmocka_run_group_tests_name("sampling operators", tests, NULL, NULL);
}
