// SPDX-License-Identifier: MIT
//
// Traces with what a replay has to get right, for replay.py:
//
//     replay_trace streams TRACE   two streams, blocks given up before they are free, a block of 0 bytes, leaks
//     replay_trace discard TRACE   a pool whose blocks go at once, one block outside of it
//     replay_trace frees TRACE     frees alone, of blocks that were never there
//     replay_trace twice TRACE     a block that is allocated twice
//     replay_trace huge TRACE      a small block, one of 2^62 bytes, a small one
//     replay_trace many TRACE      20000 allocations, of 500 live blocks at most, in an order that a generator decides
//     replay_trace some TRACE      1000 of 100, the same way
//     replay_trace aligned TRACE   the same of the allocator cpu, each aligned to 256
//     replay_trace asked TRACE     a block whose free is requested at the begin and completed at the end, and so many
//                                  between that of 8 MiB the oldest events are dropped; for merge.py
//     replay_trace oom TRACE       a request that failed
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "tidemark/record.h"

typedef struct source {
    tide_observer observer;
    uint64_t now_ns;
    const char *allocator;
} source;

static void put(source *s, tide_memory_op op, uint64_t block, uint64_t bytes, tide_stream_id stream) {
    const tide_memory_event event = {.op = op,
                                     .t_ns = s->now_ns += 1000,
                                     .block_id = block,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_WORKSPACE,
                                     .stream = stream,
                                     .requested_bytes = bytes,
                                     .reserved_bytes = (bytes + 255) / 256 * 256,
                                     .address = op == TIDE_MEM_OOM ? 0 : 0x7f0000000000 + block * 65536,
                                     .thread = 1,
                                     .allocator = s->allocator,
                                     .tag = "block"};
    s->observer.on_memory(s->observer.self, &event);
}

static void streams(source *s) {
    for (uint64_t i = 1; i <= 6; i++) put(s, TIDE_MEM_ALLOC, i, 1000 * i, i % 2 + 7);
    put(s, TIDE_MEM_FREE_REQUESTED, 2, 2000, 8);
    put(s, TIDE_MEM_ALLOC, 7, 3000, 7);
    put(s, TIDE_MEM_FREE_COMPLETED, 2, 2000, 8);
    put(s, TIDE_MEM_FREE_COMPLETED, 3, 3000, 7);
    put(s, TIDE_MEM_ALLOC, 8, 0, 0);
    put(s, TIDE_MEM_ALLOC, 9, 500, 0);
    put(s, TIDE_MEM_FREE_REQUESTED, 9, 500, 0);
}

static void discard(source *s) {
    for (uint64_t i = 1; i <= 4; i++) put(s, TIDE_MEM_ALLOC, i, 100, 0);
    const tide_memory_event event = {.op = TIDE_MEM_POOL_DISCARD,
                                     .t_ns = s->now_ns += 1000,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_WORKSPACE,
                                     .reserved_bytes = 3 * 65536,
                                     .address = 0x7f0000000000 + 65536,
                                     .thread = 1,
                                     .allocator = "arena"};
    s->observer.on_memory(s->observer.self, &event);
    put(s, TIDE_MEM_ALLOC, 5, 100, 0);
}

static void generated(source *s, uint64_t n, size_t n_live) {
    static uint64_t ids[500], sizes[500];
    uint64_t x = 88172645463325252;
    for (uint64_t id = 1; id <= n; id++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const size_t at = x % n_live;
        if (ids[at] != 0) put(s, TIDE_MEM_FREE_COMPLETED, ids[at], sizes[at], 0);
        ids[at] = id;
        sizes[at] = 1 + (x >> 20) % 20000;
        put(s, TIDE_MEM_ALLOC, id, sizes[at], 0);
    }
}

static void put_all(source *s, const char *what) {
    if (strcmp(what, "streams") == 0) streams(s);
    if (strcmp(what, "discard") == 0) discard(s);
    if (strcmp(what, "many") == 0) generated(s, 20000, 500);
    if (strcmp(what, "some") == 0) generated(s, 1000, 100);
    if (strcmp(what, "aligned") == 0) {
        s->allocator = "cpu";
        generated(s, 1000, 100);
    }
    if (strcmp(what, "asked") == 0) {
        const uint64_t first = 1000000;
        put(s, TIDE_MEM_ALLOC, first, 4000, 0);
        put(s, TIDE_MEM_FREE_REQUESTED, first, 4000, 0);
        generated(s, 150000, 100);
        put(s, TIDE_MEM_FREE_COMPLETED, first, 4000, 0);
    }
    if (strcmp(what, "frees") == 0)
        for (uint64_t i = 1; i <= 3; i++) put(s, TIDE_MEM_FREE_COMPLETED, i, 64, 0);
    if (strcmp(what, "twice") == 0)
        for (uint64_t i = 0; i < 2; i++) put(s, TIDE_MEM_ALLOC, 1, 64, 0);
    if (strcmp(what, "oom") == 0) {
        put(s, TIDE_MEM_ALLOC, 1, 64, 0);
        put(s, TIDE_MEM_OOM, 0, 1 << 20, 0);
    }
    if (strcmp(what, "huge") == 0) {
        put(s, TIDE_MEM_ALLOC, 1, 64, 0);
        put(s, TIDE_MEM_ALLOC, 2, UINT64_C(1) << 62, 0);
        put(s, TIDE_MEM_ALLOC, 3, 64, 0);
        for (uint64_t i = 1; i <= 3; i++) put(s, TIDE_MEM_FREE_COMPLETED, i, i == 2 ? UINT64_C(1) << 62 : 64, 0);
    }
}

static tide_status record(const char *what, const char *path, tide_error *err) {
    tide_recorder *recorder = NULL;
    const tide_recorder_options limited = {.form = TIDE_RECORD_ROWS, .max_bytes = 8 << 20}, usual = {0};
    TIDE_TRY(tide_recorder_open(path, strcmp(what, "asked") == 0 ? &limited : &usual, &recorder, err));
    source s = {.observer = tide_recorder_observer(recorder), .now_ns = 1000000, .allocator = "arena"};
    put_all(&s, what);
    return tide_recorder_close(recorder, err);
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    if (argc != 3) return 2;
    if (record(argv[1], argv[2], &err) == TIDE_OK) return 0;
    fprintf(stderr, "error: %s\n", err.msg);
    return 5;
}
