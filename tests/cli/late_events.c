// SPDX-License-Identifier: MIT
//
// A program for recording.py that records into the trace of a `tidemark record` around it (argument: its path) and
// gives its events times of its own: 100 allocations of one thread, one each millisecond; then, when these have been
// taken out or, with the argument `at-once`, without waiting, five of another thread with times between them.
//
// With the argument `frees` the five late events free the first five blocks. With `frees-first` the first thread frees
// five blocks more, whose allocations are the five late events: the trace has each of their frees before its
// allocation.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "tidemark/record.h"

enum { N_FIRST = 100, N_LATE = 5, MS = 1000000 };

typedef struct source {
    tide_observer observer;
    tide_memory_op op;
    uint64_t first_block, first_ns, step_ns, thread;
    int n;
} source;

static void put(const source *s) {
    for (int i = 0; i < s->n; i++) {
        const tide_memory_event event = {.op = s->op,
                                         .t_ns = s->first_ns + (uint64_t)i * s->step_ns,
                                         .block_id = s->first_block + (uint64_t)i,
                                         .device = TIDE_CPU,
                                         .requested_bytes = 64,
                                         .reserved_bytes = 64,
                                         .address = 0x7f0000000000 + (s->first_block + (uint64_t)i) * 64,
                                         .thread = s->thread,
                                         .allocator = "arena"};
        s->observer.on_memory(s->observer.self, &event);
    }
}

static void *put_aside(void *ctx) {
    put(ctx);
    return NULL;
}

static tide_status record(const char *path, const char *how, tide_error *err) {
    const bool frees = strcmp(how, "frees") == 0, frees_first = strcmp(how, "frees-first") == 0;
    tide_recorder *recorder = NULL;
    const tide_recorder_options opt = {.drain = TIDE_RECORD_ATTACH};
    TIDE_TRY(tide_recorder_open(path, &opt, &recorder, err));
    source s = {.observer = tide_recorder_observer(recorder), .op = TIDE_MEM_ALLOC, .thread = 1, .n = N_FIRST};
    s.first_block = 1;
    s.first_ns = UINT64_C(1000000000000000000);
    s.step_ns = MS;
    put(&s);
    source late = s;
    late.thread = 2;
    late.first_block = frees ? 1 : N_FIRST + 1;
    if (frees) late.op = TIDE_MEM_FREE_COMPLETED;
    if (frees_first) {
        source ends = s;
        ends.op = TIDE_MEM_FREE_COMPLETED;
        ends.first_block = N_FIRST + 1;
        ends.first_ns += N_FIRST * MS;
        ends.n = N_LATE;
        put(&ends);
    }
    tide_status st = strcmp(how, "at-once") != 0 ? tide_recorder_flush(recorder, err) : TIDE_OK;
    late.first_ns += MS / 2;
    late.n = N_LATE;
    pthread_t thread;
    if (pthread_create(&thread, NULL, put_aside, &late) == 0) pthread_join(thread, NULL);
    tide_error of_close = TIDE_ERROR_INIT;
    const tide_status closed = tide_recorder_close(recorder, st == TIDE_OK ? err : &of_close);
    return st == TIDE_OK ? closed : st;
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    if (argc < 2) return 2;
    if (record(argv[1], argc > 2 ? argv[2] : "", &err) == TIDE_OK) return 0;
    fprintf(stderr, "%s\n", err.msg);
    return 1;
}
