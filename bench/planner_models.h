// SPDX-License-Identifier: MIT
//
// planner models: programs of sample_graphs/ and of the shared models, for planner benches.
#ifndef TIDE_BENCH_PLANNER_MODELS_H
#define TIDE_BENCH_PLANNER_MODELS_H

#include "core/runtime/program.h"

enum { BENCH_MAX_MODELS = 128, BENCH_PATH_BYTES = 512 };

typedef struct bench_model {
    char name[64];
    char path[BENCH_PATH_BYTES]; ///< graph text or ONNX
    char data[BENCH_PATH_BYTES]; ///< folder with input_0.pb …, which fix open extents; "": none
} bench_model;

/// Every graph of `samples` and every model of `shared`/models, by name. @return how many
size_t bench_list_models(const char *samples, const char *shared, bench_model *out);
/// Build its program. A model that is not there or not understood: the import's own status.
tide_status bench_build_model(const bench_model *m, tide_program **out, tide_error *err) TIDE_NODISCARD;

#endif
