// SPDX-License-Identifier: MIT
//
// Constant folding of ONNX's own operator tests, from Debian's libonnx-testdata. Through the real runtime, with inputs
// that are fed, tests/cli/conformance.py runs them.
//
// Every case whose model imports and whose operators are all in the table is served: its inputs become constants and
// constant folding evaluates the whole graph. A served case may be refused in words (NOT_IMPLEMENTED), which is
// counted; a wrong answer, or any other error, fails the test. The number that passes is a ratchet: raise
// passed_floor with every operator that is added, never lower it.
//
// TIDE_CONFORMANCE_VERBOSE=1 lists what is not served and why. TIDE_CONFORMANCE_DIR names another folder of cases.
#include "tests/tide_test.h"

#include <dirent.h>
#include <math.h>

#include "core/graph/import.h"
#include "core/graph/passes.h"
#include "core/ops/data_util.h"
#include "core/ops/ops.h"

static const char default_dir[] = "/usr/lib/python3/dist-packages/onnx/backend/test/data";
static const char *const suites[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};

/// Cases that pass with the package of Debian 12 (ONNX 1.12).
enum { PASSED_FLOOR = 998 };

static const double rel_tol = 1e-3;
static const double abs_tol = 1e-5;

typedef enum outcome { PASSED, FAILED, NO_IMPORT, NO_OPERATOR, REFUSED, DISPUTED, N_OUTCOMES } outcome;
static const char *const outcome_names[N_OUTCOMES] = {"passed",  "failed",  "not imported", "operator not in the table",
                                                      "refused", "disputed"};

/// Cases whose reference contradicts the operator's text; ONNX Runtime differs from them in the same places.
/// test_data_ops shows what comes out here instead. A case of this list that passes is counted as passed.
static const char *const disputed[] = {
    // align_corners divides by the length of the resized axis less 1. The reference takes scale * length (2.4)
    // for that length, and then the last corner is not aligned.
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
    // float32 to bfloat16 rounds to nearest even; the reference of ONNX 1.12 cut the lower half off.
    "test_cast_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
    // The reference calculates with an epsilon of 1e-2, which the model does not say; the text's is 1e-6.
    "test_adam_multiple",
};

typedef struct totals {
    int n[N_OUTCOMES];
    tide_text failures;
    tide_text not_served;
} totals;

// ---- one output against its reference ----

static bool close_enough(tide_dtype dtype, const tide_tensor *got, const tide_tensor *want, int64_t i) {
    const void *const g = tide_tensor_const_data(got);
    const void *const w = tide_tensor_const_data(want);
    if (!tide_dtype_is_float(dtype)) {
        const size_t elem = tide_dtype_size(dtype);
        return memcmp(tide_data_const_at(g, i, elem), tide_data_const_at(w, i, elem), elem) == 0;
    }
    const double a = tide_data_load_f64(dtype, g, i);
    const double b = tide_data_load_f64(dtype, w, i);
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= abs_tol + rel_tol * fabs(b);
}

static bool same_tensor(const tide_tensor *got, const tide_tensor *want, tide_text *why) {
    const tide_dtype dtype = tide_tensor_dtype(want);
    char a[192], b[192];
    if (tide_tensor_dtype(got) != dtype || !tide_shape_equal(tide_tensor_shape(got), tide_tensor_shape(want))) {
        tide_text_addf(why, "%s%s instead of %s%s", tide_dtype_name(tide_tensor_dtype(got)),
                       tide_shape_format(tide_tensor_shape(got), a, sizeof a), tide_dtype_name(dtype),
                       tide_shape_format(tide_tensor_shape(want), b, sizeof b));
        return false;
    }
    const int64_t n = tide_op_numel(tide_tensor_shape(want));
    for (int64_t i = 0; i < n; i++)
        if (!close_enough(dtype, got, want, i)) {
            tide_text_addf(why, "element %lld of %s is %g instead of %g", (long long)i,
                           tide_shape_format(tide_tensor_shape(want), a, sizeof a),
                           tide_data_load_f64(dtype, tide_tensor_const_data(got), i),
                           tide_data_load_f64(dtype, tide_tensor_const_data(want), i));
            return false;
        }
    return true;
}

// ---- one data set ----

static bool exists(const char *path) {
    FILE *const f = fopen(path, "rb");
    if (f != NULL) fclose(f);
    return f != NULL;
}

/// The data files of ONNX 1.12 hold bfloat16 bits under the name uint16: give them back their type.
static tide_status as_bf16(tide_tensor **t, tide_error *err) {
    const tide_tensor_spec spec = {.dtype = TIDE_BF16, .shape = *tide_tensor_shape(*t), .device = TIDE_CPU};
    tide_tensor *renamed = NULL;
    TIDE_TRY(tide_tensor_create(&spec, &renamed, err));
    memcpy(tide_tensor_data(renamed), tide_tensor_const_data(*t), tide_tensor_size_bytes(*t));
    tide_tensor_unref(*t);
    *t = renamed;
    return TIDE_OK;
}

static tide_status load_tensor(const char *set_dir, const char *what, size_t i, tide_dtype declared, tide_tensor **out,
                               tide_error *err) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s_%zu.pb", set_dir, what, i);
    TIDE_TRY(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_DEFAULT, out, NULL, err));
    const bool renamed = declared == TIDE_BF16 && tide_tensor_dtype(*out) == TIDE_U16;
    return renamed ? as_bf16(out, err) : TIDE_OK;
}

static tide_status feed_inputs(tide_graph *g, const char *set_dir, tide_error *err) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        tide_tensor *t = NULL;
        TIDE_TRY(load_tensor(set_dir, "input", i, g->values[g->inputs[i]].dtype, &t, err));
        tide_graph_set_constant(g, g->inputs[i], t);
        tide_tensor_unref(t);
    }
    return TIDE_OK;
}

static outcome compare_outputs(const tide_graph *g, const char *set_dir, tide_text *why) {
    for (size_t i = 0; i < g->n_outputs; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_tensor *want = NULL;
        const tide_tensor *const got = g->values[g->outputs[i]].constant;
        if (load_tensor(set_dir, "output", i, g->values[g->outputs[i]].dtype, &want, &err) != TIDE_OK) {
            tide_text_addf(why, "output %zu: %s", i, err.msg);
            return NO_IMPORT;
        }
        if (got == NULL) tide_text_addf(why, "output %zu was not evaluated", i);
        const bool same = got != NULL && same_tensor(got, want, why);
        tide_tensor_unref(want);
        if (!same) return FAILED;
    }
    return PASSED;
}

static outcome evaluate(tide_graph *g, const char *set_dir, tide_text *why) {
    tide_error err = TIDE_ERROR_INIT;
    tide_order order = {0};
    if (feed_inputs(g, set_dir, &err) != TIDE_OK) {
        tide_text_add(why, err.msg);
        return NO_IMPORT;
    }
    tide_status st = tide_graph_sort(g, &order, &err);
    if (st == TIDE_OK) st = tide_graph_infer(g, &order, true, &err);
    tide_order_deinit(&order);
    if (st == TIDE_OK) return compare_outputs(g, set_dir, why);
    tide_text_addf(why, "%s: %s", tide_status_name(st), err.msg);
    return st == TIDE_ERR_NOT_IMPLEMENTED ? REFUSED : FAILED;
}

static outcome run_set(const char *model, const char *data, size_t len, const char *set_dir, tide_text *why) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    if (tide_graph_from_onnx(data, len, model, &g, &err) != TIDE_OK) {
        tide_text_add(why, err.msg);
        return NO_IMPORT;
    }
    const tide_status st = tide_ops_resolve(g, &err);
    outcome got = st == TIDE_ERR_NOT_IMPLEMENTED ? NO_OPERATOR : FAILED;
    if (st == TIDE_OK && g->n_regions > 0) {
        tide_text_add(why, "bodies are run, not folded");
        got = REFUSED;
    } else if (st == TIDE_OK)
        got = evaluate(g, set_dir, why);
    else
        tide_text_add(why, err.msg);
    tide_graph_destroy(g);
    return got;
}

// ---- all cases ----

static outcome run_case(const char *case_dir, tide_text *why) {
    char model[768], set_dir[1000];
    tide_error err = TIDE_ERROR_INIT;
    char *data = NULL;
    size_t len = 0;
    snprintf(model, sizeof model, "%s/model.onnx", case_dir);
    if (tide_read_file(model, 0, &data, &len, &err) != TIDE_OK) {
        tide_text_add(why, err.msg);
        return FAILED;
    }
    outcome got = NO_IMPORT;
    for (int set = 0;; set++) {
        snprintf(set_dir, sizeof set_dir, "%s/test_data_set_%d/output_0.pb", case_dir, set);
        if (!exists(set_dir)) break;
        snprintf(set_dir, sizeof set_dir, "%s/test_data_set_%d", case_dir, set);
        got = run_set(model, data, len, set_dir, why);
        if (got != PASSED) break;
    }
    tide_host_free(data);
    return got;
}

static void count_case(totals *t, const char *dir, const char *suite, const char *name) {
    char case_dir[700];
    snprintf(case_dir, sizeof case_dir, "%s/%s/%s", dir, suite, name);
    tide_text why = {0};
    outcome got = run_case(case_dir, &why);
    for (size_t i = 0; i < sizeof disputed / sizeof *disputed; i++)
        if (got == FAILED && strcmp(name, disputed[i]) == 0) got = DISPUTED;
    t->n[got]++;
    if (got == FAILED) tide_text_addf(&t->failures, "  %s/%s: %s\n", suite, name, tide_text_str(&why));
    if (got > FAILED)
        tide_text_addf(&t->not_served, "  %s/%s: %s: %s\n", suite, name, outcome_names[got], tide_text_str(&why));
    tide_text_deinit(&why);
}

static void count_suite(totals *t, const char *dir, const char *suite) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, suite);
    struct dirent **entries = NULL;
    const int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') count_case(t, dir, suite, entries[i]->d_name);
        free(entries[i]); // scandir's memory
    }
    free(entries);
}

static const char *cases_dir(void) {
    const char *const dir = getenv("TIDE_CONFORMANCE_DIR");
    return dir != NULL ? dir : default_dir;
}

static void test_folding(void **state) {
    (void)state;
    totals t = {.n = {0}};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) count_suite(&t, cases_dir(), suites[i]);
    int n_all = 0;
    for (int i = 0; i < N_OUTCOMES; i++) n_all += t.n[i];
    if (getenv("TIDE_CONFORMANCE_VERBOSE") != NULL) fputs(tide_text_str(&t.not_served), stdout);
    printf("folding: %d cases", n_all);
    for (int i = 0; i < N_OUTCOMES; i++) printf(", %d %s", t.n[i], outcome_names[i]);
    printf("\n%s", tide_text_str(&t.failures));
    fflush(stdout);
    const int passed = t.n[PASSED];
    const int failed = t.n[FAILED];
    tide_text_deinit(&t.failures);
    tide_text_deinit(&t.not_served);
    assert_int_equal(failed, 0);
    if (passed < PASSED_FLOOR) fail_msg("%d cases passed, %d did before", passed, PASSED_FLOOR);
}

int main(void) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cases_dir(), suites[0]);
    DIR *const dir = opendir(path);
    if (dir == NULL) {
        printf("[  SKIPPED ] %s is not here (package libonnx-testdata)\n", path);
        return 77;
    }
    closedir(dir);
    const struct CMUnitTest tests[] = {tide_unit_test(test_folding)};
    return cmocka_run_group_tests_name("folding", tests, NULL, NULL);
}
