// SPDX-License-Identifier: MIT
//
// serve: a program that records itself, and has two troubles that docs/tui.md finds in its trace. An hour of a small
// inference server, simulated: it keeps a clock of its own, so that the hour takes a moment and every trace of it is
// the same but for addresses.
//
//     serve TRACE
//
// Each request takes activations from a caching allocator and pages of a KV cache from another one, and gives them
// back. Two faults are planted: one request with a long prompt makes the first allocator grow, and the allocator keeps
// memory that is not needed again; after half an hour, each request that times out forgets one of its pages.
#include <stdio.h>

#include "tidemark/memory.h"
#include "tidemark/record.h"

enum {
    N_REQUESTS = 120,
    REQUEST_S = 30,     ///< from one to the next
    LONG_PROMPT = 24,   ///< the request that has one
    TIMEOUTS_FROM = 60, ///< and every fifth request from there on
    N_PAGES = 3,
};
#define MIB ((size_t)1 << 20)
#define SECOND_NS UINT64_C(1000000000)
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const tide_status st_ = (call);                                                                                \
        if (st_ != TIDE_OK) return st_;                                                                                \
    } while (0)

typedef struct server {
    tide_recorder *recorder;
    tide_observer to_recorder, observer;
    uint64_t now_ns;
    tide_allocator *weights, *activations, *pages; ///< instrumented: each allocation is recorded
    tide_block *model;
    tide_block *forgotten[N_REQUESTS];
    size_t n_forgotten;
} server;

// ---- a clock of its own ----

static uint64_t server_now(void *ctx) { return ((const server *)ctx)->now_ns; }

static void hear_memory(void *self, const tide_memory_event *event) {
    const server *s = self;
    tide_memory_event copy = *event;
    copy.t_ns = s->now_ns;
    if (s->recorder != NULL) s->to_recorder.on_memory(s->to_recorder.self, &copy);
}

static void hear_scope(void *self, const tide_scope_event *event) {
    const server *s = self;
    tide_scope_event copy = *event;
    copy.t_ns = s->now_ns;
    s->to_recorder.on_scope(s->to_recorder.self, &copy);
}

// ---- serving ----

static tide_status take(tide_allocator *from, size_t bytes, tide_memory_kind kind, const char *tag, tide_block **out,
                        tide_error *err) {
    return tide_block_create(from, bytes, 0, kind, 0, tag, out, err);
}

/// An operator of the model, which is step `step` of a request: its output, and its scratch while it runs.
static tide_status run_operator(server *s, const char *name, int32_t step, size_t out_bytes, size_t scratch_bytes,
                                tide_block **out, tide_error *err) {
    tide_scope scope = {.name = name, .kind = TIDE_SCOPE_OPERATOR, .index = step};
    tide_block *scratch = NULL;
    tide_scope_enter(&scope, &s->observer);
    tide_status st = take(s->activations, out_bytes, TIDE_KIND_WORKSPACE, "output", out, err);
    if (st == TIDE_OK) st = take(s->activations, scratch_bytes, TIDE_KIND_WORKSPACE, "scratch", &scratch, err);
    s->now_ns += SECOND_NS;
    tide_block_unref(scratch);
    tide_scope_leave(&scope, &s->observer);
    return st;
}

static tide_status take_pages(server *s, tide_block *pages[N_PAGES], tide_error *err) {
    tide_scope scope = {.name = "cache pages", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    tide_status st = TIDE_OK;
    tide_scope_enter(&scope, &s->observer);
    for (int i = 0; st == TIDE_OK && i < N_PAGES; i++)
        st = take(s->pages, MIB / 2, TIDE_KIND_KV_CACHE, "page", &pages[i], err);
    tide_scope_leave(&scope, &s->observer);
    return st;
}

static tide_status run_model(server *s, int32_t request, tide_error *err) {
    const size_t prompt = request == LONG_PROMPT ? 24 : 1;
    tide_block *embedded = NULL, *attended = NULL, *answer = NULL;
    tide_status st = run_operator(s, "embed", 1, 2 * MIB, MIB, &embedded, err);
    if (st == TIDE_OK) st = run_operator(s, "attend", 2, 2 * MIB, 6 * prompt * MIB, &attended, err);
    tide_block_unref(embedded);
    if (st == TIDE_OK) st = run_operator(s, "project", 3, MIB, 2 * MIB, &answer, err);
    tide_block_unref(attended);
    tide_block_unref(answer);
    return st;
}

/// A request is one execution of the model: a run with four steps.
static tide_status serve_request(server *s, int32_t request, tide_error *err) {
    tide_block *pages[N_PAGES] = {NULL};
    tide_scope scope = {.name = "serve", .kind = TIDE_SCOPE_RUN, .index = request};
    tide_scope_enter(&scope, &s->observer);
    tide_status st = take_pages(s, pages, err);
    if (st == TIDE_OK) st = run_model(s, request, err);
    const bool times_out = request >= TIMEOUTS_FROM && request % 5 == 0;
    if (times_out) { // the way out of a timeout forgets the last page
        s->forgotten[s->n_forgotten++] = pages[N_PAGES - 1];
        pages[N_PAGES - 1] = NULL;
    }
    for (int i = 0; i < N_PAGES; i++) tide_block_unref(pages[i]);
    tide_scope_leave(&scope, &s->observer);
    return st;
}

static tide_status serve_all(server *s, tide_error *err) {
    int64_t run_id;
    const tide_run_info info = {.model = "serve", .mode = "naive", .device = "cpu"};
    TRY(tide_recorder_begin_run(s->recorder, &info, NULL, &run_id, err));
    TRY(take(s->weights, 12 * MIB, TIDE_KIND_PERSISTENT, "weights", &s->model, err));
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        s->now_ns = (uint64_t)(i + 1) * REQUEST_S * SECOND_NS;
        TRY(serve_request(s, i, err));
    }
    tide_block_unref(s->model);
    s->model = NULL;
    s->now_ns = (uint64_t)(N_REQUESTS + 1) * REQUEST_S * SECOND_NS;
    return tide_recorder_end_run(s->recorder, err);
}

// ---- allocators ----

static tide_status instrument(server *s, tide_status made, tide_allocator *inner, tide_allocator **out,
                              tide_error *err) {
    if (made != TIDE_OK) return made;
    const tide_status st = tide_instrumented_create(inner, &s->observer, out, err);
    tide_allocator_unref(inner); // the instrumented one has it now
    return st;
}

static tide_status open_server(server *s, const char *path, tide_error *err) {
    const tide_recorder_options opt = {.now = server_now, .now_ctx = s};
    tide_allocator *inner = NULL;
    s->now_ns = SECOND_NS;
    TRY(tide_recorder_open(path, &opt, &s->recorder, err));
    s->to_recorder = tide_recorder_observer(s->recorder);
    s->observer = (tide_observer){.self = s, .on_memory = hear_memory, .on_scope = hear_scope};
    tide_status st = tide_allocator_create_by_name("cpu", &inner, err);
    TRY(instrument(s, st, inner, &s->weights, err));
    st = tide_allocator_create_by_name("stream_caching", &inner, err);
    TRY(instrument(s, st, inner, &s->activations, err));
    st = tide_allocator_create_by_name("stream_caching", &inner, err);
    return instrument(s, st, inner, &s->pages, err);
}

static tide_status close_server(server *s, tide_error *err) {
    tide_status st = TIDE_OK;
    if (s->recorder != NULL) st = tide_recorder_close(s->recorder, err);
    s->recorder = NULL; // what is given back from here on is no part of the hour
    for (size_t i = 0; i < s->n_forgotten; i++) tide_block_unref(s->forgotten[i]);
    tide_block_unref(s->model);
    tide_allocator_unref(s->weights);
    tide_allocator_unref(s->activations);
    tide_allocator_unref(s->pages);
    return st;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: serve TRACE\n", stderr);
        return 2;
    }
    server s = {0};
    tide_error err = {0}, late = {0};
    tide_status st = open_server(&s, argv[1], &err);
    if (st == TIDE_OK) st = serve_all(&s, &err);
    const tide_status closed = close_server(&s, &late);
    if (st == TIDE_OK && closed != TIDE_OK) err = late;
    if (st == TIDE_OK) st = closed;
    if (st == TIDE_OK) return 0;
    fprintf(stderr, "error: %s\n", err.msg);
    return 5;
}
