// SPDX-License-Identifier: MIT
//
// Every value inside the shared models against a run of ONNX Runtime without optimisations: the graph inputs of data
// set 0 become constants, constant folding then evaluates each node by itself (nothing is fused), and every line of
// the model's tensors.tsv is held against what came out: dtype, shape and bytes exactly, lowest, highest and mean
// element within the tolerance. Outputs alone would hardly do: those of the light-* models are one number repeated.
//
// A model that does not import or has an operator that is not in the table is skipped by name. The numbers of models
// and of values are ratchets, like those of test_folding. TIDE_MODEL=NAME looks at one model only.
#include "tests/tide_test.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

#include "core/graph/import.h"
#include "core/graph/passes.h"
#include "core/ops/data_util.h"
#include "core/ops/ops.h"

enum { SERVED_FLOOR = 26, VALUES_FLOOR = 8224, N_COLUMNS = 9 };

// The reference has six digits and its own order of additions. The worst value differs by a seventh of this.
static const double rel_tol = 1e-4;
static const double abs_tol = 1e-6;

typedef enum column { NAME, PRODUCER, DTYPE, SHAPE, BYTES, CONSTANT, LOWEST, HIGHEST, MEAN } column;

typedef struct totals {
    int n_served;
    int n_values;
    double worst; ///< largest difference so far, in tolerances
    tide_text failures;
} totals;

typedef struct statistics {
    double lowest, highest, mean;
} statistics;

// ---- one value against its line ----

static statistics statistics_of(const tide_tensor *t) {
    const tide_dtype dtype = tide_tensor_dtype(t);
    const int64_t n = tide_op_numel(tide_tensor_shape(t));
    const void *const data = tide_tensor_const_data(t);
    statistics s = {0};
    for (int64_t i = 0; i < n; i++) {
        const double v = dtype == TIDE_F32 ? (double)((const float *)data)[i] : tide_data_load_f64(dtype, data, i);
        // A NaN makes all three NaN, which no reference equals.
        s.lowest = i == 0 || v < s.lowest || isnan(v) ? v : s.lowest;
        s.highest = i == 0 || v > s.highest || isnan(v) ? v : s.highest;
        s.mean += v;
    }
    if (n > 0) s.mean /= (double)n;
    return s;
}

/// |got - want| in tolerances; infinite for a NaN.
static double distance(double got, double want, double tolerance) {
    const double d = fabs(got - want) / tolerance;
    return isnan(d) ? INFINITY : d;
}

static bool check_type(const tide_tensor *t, char *const *line, tide_text *why) {
    char shape[192];
    tide_shape_format(tide_tensor_shape(t), shape, sizeof shape);
    shape[strlen(shape) - 1] = '\0'; // "[1x3]" is written 1x3, "[]" is written scalar
    const char *const ours = shape[1] == '\0' ? "scalar" : shape + 1;
    const char *const dtype = tide_dtype_name(tide_tensor_dtype(t));
    const size_t bytes = tide_tensor_size_bytes(t);
    if (strcmp(dtype, line[DTYPE]) == 0 && strcmp(ours, line[SHAPE]) == 0 && bytes == strtoull(line[BYTES], NULL, 10))
        return true;
    tide_text_addf(why, "%s %s of %zu bytes instead of %s %s of %s\n", dtype, ours, bytes, line[DTYPE], line[SHAPE],
                   line[BYTES]);
    return false;
}

static bool check_numbers(const tide_tensor *t, char *const *line, double *worst, tide_text *why) {
    const statistics got = statistics_of(t);
    const statistics want = {strtod(line[LOWEST], NULL), strtod(line[HIGHEST], NULL), strtod(line[MEAN], NULL)};
    const double tolerance = rel_tol * fmax(fabs(want.lowest), fabs(want.highest)) + abs_tol;
    const double d =
        fmax(distance(got.lowest, want.lowest, tolerance),
             fmax(distance(got.highest, want.highest, tolerance), distance(got.mean, want.mean, tolerance)));
    *worst = fmax(*worst, d);
    if (d <= 1) return true;
    tide_text_addf(why, "lowest %g, highest %g, mean %g instead of %s, %s, %s\n", got.lowest, got.highest, got.mean,
                   line[LOWEST], line[HIGHEST], line[MEAN]);
    return false;
}

static bool check_value(const tide_graph *g, char *const *line, double *worst, tide_text *why) {
    const uint32_t value_i = tide_graph_find_value(g, line[NAME]);
    const tide_tensor *const t = value_i != TIDE_NO_VALUE ? g->values[value_i].constant : NULL;
    tide_text_addf(why, "  '%s' (%s): ", line[NAME], line[PRODUCER]);
    if (t == NULL) {
        tide_text_add(why, "was not evaluated\n");
        return false;
    }
    return check_type(t, line, why) && check_numbers(t, line, worst, why);
}

// ---- the table ----

static char *read_table(const char *dir, const char *model) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s/tensors.tsv", dir, model);
    tide_error err = TIDE_ERROR_INIT;
    char *data = NULL;
    size_t len;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    return data;
}

/// Cut the line at *at into its columns and move *at behind it. @return false at the end of the table
static bool next_line(char **at, char *columns[N_COLUMNS]) {
    while (**at == '#') *at += strcspn(*at, "\n") + 1;
    if (**at == '\0') return false;
    for (int i = 0; i < N_COLUMNS; i++) {
        columns[i] = *at;
        *at += strcspn(*at, "\t\n");
        assert_int_equal(**at, i + 1 < N_COLUMNS ? '\t' : '\n');
        *(*at)++ = '\0';
    }
    return true;
}

// ---- one model ----

static tide_status load_model(const char *dir, const char *model, tide_graph **g, tide_error *err) {
    char path[1200];
    char *data = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s/model.onnx", dir, model);
    TIDE_TRY(tide_read_file(path, 0, &data, &len, err));
    const tide_status st = tide_graph_from_onnx(data, len, path, g, err);
    tide_host_free(data);
    if (st != TIDE_OK) return st;
    const tide_status resolved = tide_ops_resolve(*g, err);
    if (resolved != TIDE_OK) tide_graph_destroy(*g);
    return resolved;
}

static tide_status evaluate(tide_graph *g, const char *dir, const char *model, tide_error *err) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        char path[1200];
        tide_tensor *t = NULL;
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%zu.pb", dir, model, i);
        TIDE_TRY(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_DEFAULT, &t, NULL, err));
        tide_graph_set_constant(g, g->inputs[i], t);
        tide_tensor_unref(t);
    }
    // What nothing reads any more is dropped while it is folded; outputs stay.
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].producer != TIDE_NO_NODE && !g->values[i].is_output)
            TIDE_TRY(tide_graph_add_output(g, (uint32_t)i, err));
    tide_order order = {0};
    TIDE_TRY(tide_graph_sort(g, &order, err));
    const tide_status st = tide_graph_infer(g, &order, true, err);
    tide_order_deinit(&order);
    return st;
}

static void check_values(totals *all, const tide_graph *g, const char *dir, const char *model) {
    enum { MAX_NAMED = 5 };
    char *const data = read_table(dir, model);
    char *columns[N_COLUMNS];
    int n = 0, n_wrong = 0;
    double worst = 0;
    const bool tied = tide_rounding_decides(model);
    for (char *at = data; next_line(&at, columns); n++) {
        if (tied && strcmp(columns[0], "softmaxout_1") == 0) continue;
        tide_text why = {0};
        if (!check_value(g, columns, &worst, &why) && n_wrong++ < MAX_NAMED)
            tide_text_addf(&all->failures, "%s:%s", model, tide_text_str(&why));
        tide_text_deinit(&why);
    }
    if (n_wrong > MAX_NAMED) tide_text_addf(&all->failures, "%s: and %d more\n", model, n_wrong - MAX_NAMED);
    printf("%-24s %4d values, worst %.3f of the tolerance\n", model, n, worst);
    all->n_values += n;
    all->worst = fmax(all->worst, worst);
    tide_host_free(data);
}

static void check_model(totals *all, const char *dir, const char *model) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    const tide_status st = load_model(dir, model, &g, &err);
    if (st == TIDE_ERR_NOT_IMPLEMENTED) {
        printf("%-24s skipped: %s\n", model, err.msg);
        return;
    }
    assert_tide_ok(st, &err);
    if (g->n_regions > 0) {
        printf("%-24s skipped: bodies are run, not folded\n", model);
        tide_graph_destroy(g);
        return;
    }
    all->n_served++;
    if (evaluate(g, dir, model, &err) == TIDE_OK)
        check_values(all, g, dir, model);
    else
        tide_text_addf(&all->failures, "%s: %s\n", model, err.msg);
    tide_graph_destroy(g);
}

// ---- all models ----

static char models_dir[512];

static void test_model_values(void **state) {
    (void)state;
    const char *const only = getenv("TIDE_MODEL");
    totals all = {0};
    struct dirent **entries = NULL;
    const int n = scandir(models_dir, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char table[1200];
        snprintf(table, sizeof table, "%s/%s/tensors.tsv", models_dir, entries[i]->d_name);
        FILE *const f = fopen(table, "rb");
        if (f != NULL) fclose(f);
        if (f != NULL && (only == NULL || strcmp(only, entries[i]->d_name) == 0))
            check_model(&all, models_dir, entries[i]->d_name);
        free(entries[i]); // scandir's memory
    }
    free(entries);
    printf("model values: %d models, %d values, worst %.3f of the tolerance\n%s", all.n_served, all.n_values, all.worst,
           tide_text_str(&all.failures));
    fflush(stdout);
    const bool good = all.failures.len == 0;
    tide_text_deinit(&all.failures);
    assert_true(good);
    if (only != NULL) return;
    if (all.n_served < SERVED_FLOOR || all.n_values < VALUES_FLOOR)
        fail_msg("%d models with %d values, there were %d with %d", all.n_served, all.n_values, SERVED_FLOOR,
                 VALUES_FLOOR);
}

int main(void) {
    if (tide_shared_path("models/README.md", models_dir, sizeof models_dir) == NULL) return 77;
    *strrchr(models_dir, '/') = '\0';
    const struct CMUnitTest tests[] = {tide_unit_test(test_model_values)};
    return cmocka_run_group_tests_name("model values", tests, NULL, NULL);
}
