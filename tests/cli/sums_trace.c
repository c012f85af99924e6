// SPDX-License-Identifier: MIT
//
// Traces of hardly anything, for sums.py:
//
//     sums_trace one TRACE    one allocation, never freed
//     sums_trace zero TRACE   blocks of no bytes; for one of them the allocator sets some aside
//     sums_trace kind TRACE   a few blocks of one kind, one size and one name, one of them never freed
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "tidemark/record.h"

typedef struct source {
    tide_observer observer;
    uint64_t now_ns;
} source;

static void put(source *s, tide_memory_op op, tide_memory_kind kind, uint64_t block, uint64_t requested,
                uint64_t reserved) {
    const tide_memory_event event = {.op = op,
                                     .t_ns = s->now_ns += 1000,
                                     .block_id = block,
                                     .device = TIDE_CPU,
                                     .kind = kind,
                                     .requested_bytes = requested,
                                     .reserved_bytes = reserved,
                                     .address = 0x7f0000000000 + block * 4096,
                                     .thread = 1,
                                     .allocator = "arena",
                                     .tag = "block"};
    s->observer.on_memory(s->observer.self, &event);
}

static void put_all(source *s, const char *what) {
    const tide_memory_op alloc = TIDE_MEM_ALLOC, freed = TIDE_MEM_FREE_COMPLETED;
    if (strcmp(what, "one") == 0) put(s, alloc, TIDE_KIND_WORKSPACE, 1, 1000, 1024);
    if (strcmp(what, "zero") == 0) {
        put(s, alloc, TIDE_KIND_DEFAULT, 1, 0, 0);
        put(s, alloc, TIDE_KIND_WORKSPACE, 2, 0, 256);
        put(s, freed, TIDE_KIND_DEFAULT, 1, 0, 0);
        put(s, alloc, TIDE_KIND_DEFAULT, 3, 0, 0);
    }
    if (strcmp(what, "kind") == 0) {
        for (uint64_t i = 1; i <= 4; i++) put(s, alloc, TIDE_KIND_KV_CACHE, i, 500, 512);
        for (uint64_t i = 4; i >= 2; i--) put(s, freed, TIDE_KIND_KV_CACHE, i, 500, 512);
    }
}

static tide_status record(const char *path, const char *what, tide_error *err) {
    tide_recorder *recorder = NULL;
    TIDE_TRY(tide_recorder_open(path, &(tide_recorder_options){0}, &recorder, err));
    source s = {.observer = tide_recorder_observer(recorder), .now_ns = 1000000};
    put_all(&s, what);
    return tide_recorder_close(recorder, err);
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    if (argc != 3) return 2;
    if (record(argv[2], argv[1], &err) == TIDE_OK) return 0;
    fprintf(stderr, "%s\n", err.msg);
    return 1;
}
