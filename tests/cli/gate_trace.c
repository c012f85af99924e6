// SPDX-License-Identifier: MIT
//
// Records a trace for gate.py: a model that holds one buffer and computes twenty steps, the mark "warm" behind the
// first four. Arguments: the file, and any of these faults:
//
//     leak     step 7 takes 4096 bytes named "scratch" in operator "conv" and never gives them back
//     steady   each step behind the mark takes 2048 bytes named "temp" in operator "softmax", and gives them back
//     larger   the buffer takes 1 KiB more
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "tidemark/record.h"

enum { N_STEPS = 20, WARM_AT = 4, LEAKS_AT = 7, STEP_NS = 1000000 };

typedef struct event_source {
    tide_observer observer;
    uint64_t now, last_id;
} event_source;

static uint64_t time_of(void *ctx) { return ((const event_source *)ctx)->now; }

static void send_event(event_source *t, tide_memory_op op, uint64_t id, const char *tag, uint64_t bytes,
                       const tide_scope *scope) {
    const tide_memory_event event = {.op = op,
                                     .t_ns = t->now,
                                     .block_id = id,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_WORKSPACE,
                                     .requested_bytes = bytes,
                                     .reserved_bytes = bytes,
                                     .address = 0x7f0000000000 + id * (1 << 20),
                                     .thread = 1,
                                     .allocator = "arena",
                                     .tag = tag,
                                     .scope = scope};
    t->observer.on_memory(t->observer.self, &event);
    t->now += 100;
}

static void step(event_source *t, int i, bool leaks, bool allocates) {
    const tide_scope conv = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    const tide_scope softmax = {.name = "softmax", .kind = TIDE_SCOPE_OPERATOR, .index = 1};
    t->now = (uint64_t)(i + 1) * STEP_NS;
    if (leaks && i == LEAKS_AT) send_event(t, TIDE_MEM_ALLOC, ++t->last_id, "scratch", 4096, &conv);
    if (!allocates || i < WARM_AT) return;
    send_event(t, TIDE_MEM_ALLOC, ++t->last_id, "temp", 2048, &softmax);
    send_event(t, TIDE_MEM_FREE_COMPLETED, t->last_id, "temp", 2048, &softmax);
}

static bool wants(int argc, char **argv, const char *fault) {
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], fault) == 0) return true;
    }
    return false;
}

static tide_status record(int argc, char **argv, tide_error *err) {
    event_source t = {.now = 1};
    tide_recorder *recorder = NULL;
    const tide_recorder_options opt = {.now = time_of, .now_ctx = &t};
    TIDE_TRY(tide_recorder_open(argv[1], &opt, &recorder, err));
    t.observer = tide_recorder_observer(recorder);
    const uint64_t buffer = ++t.last_id, bytes = wants(argc, argv, "larger") ? 66560 : 65536;
    send_event(&t, TIDE_MEM_ALLOC, buffer, "buffer", bytes, NULL);
    for (int i = 0; i < N_STEPS; i++) {
        if (i == WARM_AT) tide_recorder_mark(recorder, "warm");
        step(&t, i, wants(argc, argv, "leak"), wants(argc, argv, "steady"));
    }
    send_event(&t, TIDE_MEM_FREE_COMPLETED, buffer, "buffer", bytes, NULL);
    return tide_recorder_close(recorder, err);
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    if (argc < 2) {
        fprintf(stderr, "usage: gate_trace FILE [leak] [steady] [larger]\n");
        return 2;
    }
    if (record(argc, argv, &err) == TIDE_OK) return 0;
    fprintf(stderr, "error: %s\n", err.msg);
    return 5;
}
