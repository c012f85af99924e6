// SPDX-License-Identifier: MIT
//
// toy_runtime: a runtime of three operators that records itself. Its tensors come from malloc: it tells of each with
// one line where it takes it and one where it gives it back, and of each operator with a scope.
//
//     toy_runtime [TRACE]      without TRACE nothing is recorded, and the same calls cost a nanosecond each
#include <stdio.h>
#include <stdlib.h>

#include "tidemark/record.h"

static tide_recorder *recorder; // NULL: not recording

static float *take(tide_memory_kind kind, size_t n, const char *name) {
    float *p = malloc(n * sizeof *p);
    tide_recorder_alloc(recorder, kind, p, n * sizeof *p, name);
    return p;
}

static void give_back(float *p) {
    tide_recorder_free(recorder, p); // before the memory is another thread's
    free(p);
}

/// y = max(0, w x), as far as it matters here.
static float *layer(const char *name, int step, const float *w, float *x, size_t n_in, size_t n_out) {
    tide_scope scope = {.name = name, .kind = TIDE_SCOPE_OPERATOR, .index = step};
    tide_recorder_enter(recorder, &scope);
    float *y = take(TIDE_KIND_WORKSPACE, n_out, "output");
    float *sums = take(TIDE_KIND_WORKSPACE, n_out, "sums");
    for (size_t o = 0; y != NULL && sums != NULL && w != NULL && x != NULL && o < n_out; o++) {
        sums[o] = 0;
        for (size_t i = 0; i < n_in; i++) sums[o] += w[i] * x[i];
        y[o] = sums[o] > 0 ? sums[o] : 0;
    }
    give_back(sums);
    give_back(x);
    tide_recorder_leave(recorder, &scope);
    return y;
}

int main(int argc, char **argv) {
    tide_error err;
    if (argc > 1 && tide_recorder_open(argv[1], NULL, &recorder, &err) != TIDE_OK)
        return fprintf(stderr, "toy_runtime: %s\n", err.msg), 1;
    float *w = take(TIDE_KIND_PERSISTENT, 4096, "weights");
    for (int i = 0; w != NULL && i < 4096; i++) w[i] = (float)i / 4096;
    for (int request = 0; request < 3; request++) {
        tide_scope run = {.name = "toy", .kind = TIDE_SCOPE_RUN, .index = request};
        tide_recorder_enter(recorder, &run);
        float *x = take(TIDE_KIND_DEFAULT, 1024, "input");
        for (int i = 0; x != NULL && i < 1024; i++) x[i] = 1;
        x = layer("embed", 0, w, x, 1024, 4096);
        x = layer("mix", 1, w, x, 4096, 2048);
        x = layer("score", 2, w, x, 2048, 16);
        if (request == 2 && x != NULL) printf("score %g\n", x[0]);
        if (request != 1) give_back(x); // the second request forgets its answer: `tidemark trace --leaks` finds it
        tide_recorder_leave(recorder, &run);
        tide_recorder_mark(recorder, "request done");
    }
    give_back(w);
    if (recorder != NULL && tide_recorder_close(recorder, &err) != TIDE_OK)
        return fprintf(stderr, "toy_runtime: %s\n", err.msg), 1;
    return 0;
}
