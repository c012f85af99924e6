// SPDX-License-Identifier: MIT
//
// Programs for planner benches. See planner_models.h.
#include "bench/planner_models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/graph/import.h"

// ---- what there is ----

static int by_name(const void *a, const void *b) {
    return strcmp(((const bench_model *)a)->name, ((const bench_model *)b)->name);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static size_t list_samples(const char *folder, bench_model *out) {
    DIR *dir = opendir(folder);
    size_t n = 0;
    if (dir == NULL) return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL && n < BENCH_MAX_MODELS / 2;) {
        if (!ends_with(e->d_name, ".json")) continue;
        bench_model *m = &out[n++];
        *m = (bench_model){0};
        snprintf(m->name, sizeof m->name, "%.*s", (int)(strlen(e->d_name) - 5), e->d_name);
        snprintf(m->path, sizeof m->path, "%.200s/%.200s", folder, e->d_name);
    }
    closedir(dir);
    qsort(out, n, sizeof *out, by_name);
    return n;
}

static size_t list_shared(const char *shared, bench_model *out) {
    char folder[BENCH_PATH_BYTES];
    snprintf(folder, sizeof folder, "%.200s/models", shared);
    DIR *dir = opendir(folder);
    size_t n = 0;
    if (dir == NULL) return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL && n < BENCH_MAX_MODELS / 2;) {
        bench_model *m = &out[n];
        *m = (bench_model){0};
        snprintf(m->name, sizeof m->name, "%.63s", e->d_name);
        snprintf(m->path, sizeof m->path, "%.200s/models/%.60s/model.onnx", shared, e->d_name);
        snprintf(m->data, sizeof m->data, "%.200s/models/%.60s/test_data_set_0", shared, e->d_name);
        if (e->d_name[0] == '.' || access(m->path, R_OK) != 0) continue;
        if (access(m->data, R_OK) != 0) m->data[0] = '\0';
        n++;
    }
    closedir(dir);
    qsort(out, n, sizeof *out, by_name);
    return n;
}

size_t bench_list_models(const char *samples, const char *shared, bench_model *out) {
    const size_t n = list_samples(samples, out);
    return n + list_shared(shared, out + n);
}

// ---- programs ----

/// Shapes of the inputs that the model's test data has; what is not there stays as the model says.
static size_t shapes_of_data(const bench_model *m, const tide_graph *g, tide_shape_binding *out) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs && m->data[0] != '\0'; i++) {
        char path[BENCH_PATH_BYTES + 32];
        tide_tensor *t = NULL;
        snprintf(path, sizeof path, "%s/input_%zu.pb", m->data, i);
        if (access(path, R_OK) != 0 ||
            tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &t, NULL, NULL) != TIDE_OK)
            continue;
        out[n++] = (tide_shape_binding){.name = g->values[g->inputs[i]].name, .shape = *tide_tensor_shape(t)};
        tide_tensor_unref(t);
    }
    return n;
}

/// Extents that nothing fixes are 8.
static size_t shapes_at_eight(const tide_graph *g, tide_shape_binding *out, size_t n) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *input = &g->values[g->inputs[i]];
        bool open = false, named = false;
        tide_shape shape = input->shape;
        for (int d = 0; input->has_shape && d < shape.rank; d++) {
            if (shape.dims[d] != TIDE_DIM_UNKNOWN) continue;
            shape.dims[d] = 8;
            open = true;
        }
        for (size_t k = 0; k < n; k++) named = named || strcmp(out[k].name, input->name) == 0;
        if (open && !named) out[n++] = (tide_shape_binding){.name = input->name, .shape = shape};
    }
    return n;
}

static tide_status read_graph(const bench_model *m, tide_graph **out, tide_error *err) {
    char *data;
    size_t len;
    TIDE_TRY(tide_read_file(m->path, 0, &data, &len, err));
    const tide_status st = ends_with(m->path, ".json") ? tide_graph_from_json(data, len, m->path, out, err)
                                                       : tide_graph_from_onnx(data, len, m->path, out, err);
    tide_host_free(data);
    return st;
}

tide_status bench_build_model(const bench_model *m, tide_program **out, tide_error *err) {
    tide_graph *g = NULL;
    TIDE_TRY(read_graph(m, &g, err));
    tide_shape_binding *shapes = tide_host_calloc(g->n_inputs + 1, sizeof *shapes);
    if (shapes == NULL) {
        tide_graph_destroy(g);
        return TIDE_NO_MEMORY(err, "for the shapes of '%s'", m->name);
    }
    const size_t n = shapes_at_eight(g, shapes, shapes_of_data(m, g, shapes));
    const tide_program_options opt = {.shapes = shapes, .n_shapes = n};
    const tide_status st = tide_program_build(g, &opt, out, err); // takes the graph
    tide_host_free(shapes);
    return st;
}
