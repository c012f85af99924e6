// SPDX-License-Identifier: MIT
//
// Records a trace with two faults that users look for: an allocator that keeps unused memory, and a leak that begins in
// the middle and grows. Arguments: the file, and for degenerate.py the name of a nearly empty trace (few, below).
// Contents without such a name, the same on every machine:
//
//     0 … 100 ms    100 steps of 1 ms: "work" takes 64 KiB of arena and gives it back, "cache" 256 KiB of hoarder
//     at 10 ms      hoarder takes a segment of 8 MiB, of which never more than 256 KiB are used
//     from 40 ms    "leaky" takes 1 KiB each step and never gives it back: 60 blocks
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "tidemark/record.h"

typedef struct hand {
    tide_observer observer;
    uint64_t now;
} hand;

static uint64_t hand_now(void *ctx) { return ((const hand *)ctx)->now; }

static void send_event(hand *h, tide_memory_op op, uint64_t t, uint64_t id, const char *allocator, const char *tag,
                       uint64_t bytes, uint64_t address, const tide_scope *scope) {
    const tide_memory_event event = {.op = op,
                                     .t_ns = t,
                                     .block_id = id,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_WORKSPACE,
                                     .requested_bytes = bytes,
                                     .reserved_bytes = bytes,
                                     .address = address,
                                     .thread = 1,
                                     .allocator = allocator,
                                     .tag = tag,
                                     .scope = scope};
    h->now = t;
    h->observer.on_memory(h->observer.self, &event);
}

static void send_scope(hand *h, bool enter, uint64_t t, const tide_scope *scope) {
    const tide_scope_event event = {.enter = enter, .t_ns = t, .thread = 1, .scope = scope};
    h->now = t;
    h->observer.on_scope(h->observer.self, &event);
}

enum { MS = 1000000, N_STEPS = 100, CACHED_AT = 10, LEAKS_FROM = 40 };
static const uint64_t START = 1000000000, SEGMENT = 0x7f0000000000, ARENA = 0x7e0000000000, LEAKS = 0x7d0000000000;

static void one_step(hand *h, int i, uint64_t *id) {
    const uint64_t t = START + (uint64_t)i * MS;
    const tide_scope work = {.name = "work", .kind = TIDE_SCOPE_OPERATOR, .index = i % 4};
    const tide_scope cache = {.name = "cache", .kind = TIDE_SCOPE_OPERATOR, .index = 4};
    send_scope(h, true, t, &work);
    send_event(h, TIDE_MEM_ALLOC, t + 100, ++*id, "arena", "activation", 65536, ARENA, &work);
    if (i >= LEAKS_FROM)
        send_event(h, TIDE_MEM_ALLOC, t + 200, 1000 + (uint64_t)i, "arena", "leaky", 1024, LEAKS + (uint64_t)i * 4096,
                   &work);
    send_event(h, TIDE_MEM_FREE_COMPLETED, t + 300, *id, "arena", "activation", 65536, ARENA, &work);
    send_scope(h, false, t + 400, &work);
    if (i < CACHED_AT) return;
    send_scope(h, true, t + 500, &cache);
    send_event(h, TIDE_MEM_ALLOC, t + 600, ++*id, "hoarder", "key_cache", 262144, SEGMENT, &cache);
    send_event(h, TIDE_MEM_FREE_COMPLETED, t + 700, *id, "hoarder", "key_cache", 262144, SEGMENT, &cache);
    send_scope(h, false, t + 800, &cache);
}

static void whole(hand *h) {
    uint64_t id = 0;
    for (int i = 0; i < N_STEPS; i++) {
        if (i == CACHED_AT)
            send_event(h, TIDE_MEM_SEGMENT_ALLOC, START + (uint64_t)i * MS, 0, "hoarder", NULL, 8388608, SEGMENT, NULL);
        one_step(h, i, &id);
    }
}

static const tide_scope WORK = {.name = "work", .kind = TIDE_SCOPE_OPERATOR, .index = 0};

static void nothing(hand *h) { (void)h; }

static void one_event(hand *h) { send_event(h, TIDE_MEM_ALLOC, START, 1, "arena", "alone", 64, ARENA, NULL); }

static void no_bytes(hand *h) {
    for (uint64_t id = 1; id <= 3; id++)
        send_event(h, TIDE_MEM_ALLOC, START + id, id, "arena", "nothing", 0, ARENA, &WORK);
}

/// All blocks live and die within one tick of the clock.
static void one_tick(hand *h) {
    for (uint64_t id = 1; id <= 3; id++)
        send_event(h, TIDE_MEM_ALLOC, START, id, "arena", "tick", 64, ARENA + id * 64, &WORK);
    for (uint64_t id = 1; id <= 3; id++)
        send_event(h, TIDE_MEM_FREE_COMPLETED, START, id, "arena", "tick", 64, ARENA + id * 64, &WORK);
}

static void frees(hand *h) {
    for (uint64_t id = 1; id <= 3; id++)
        send_event(h, TIDE_MEM_FREE_COMPLETED, START + id, id, "arena", "gone", 64, ARENA + id * 64, NULL);
}

static void scopes(hand *h) {
    for (uint64_t i = 0; i < 3; i++) {
        send_scope(h, true, START + 2 * i, &WORK);
        send_scope(h, false, START + 2 * i + 1, &WORK);
    }
}

static const struct {
    const char *name;
    void (*write)(hand *h);
} few[] = {{"whole", whole},       {"nothing", nothing}, {"one_event", one_event}, {"no_bytes", no_bytes},
           {"one_tick", one_tick}, {"frees", frees},     {"scopes", scopes}};

static tide_status record(const char *path, void (*write_events)(hand *h), tide_error *err) {
    hand h = {.now = START};
    tide_recorder *recorder = NULL;
    const tide_recorder_options opt = {.now = hand_now, .now_ctx = &h};
    TIDE_TRY(tide_recorder_open(path, &opt, &recorder, err));
    h.observer = tide_recorder_observer(recorder);
    write_events(&h);
    return tide_recorder_close(recorder, err);
}

int main(int argc, char **argv) {
    tide_error err = TIDE_ERROR_INIT;
    void (*write_events)(hand * h) = argc == 2 ? whole : NULL;
    for (size_t i = 0; argc == 3 && i < sizeof few / sizeof few[0]; i++)
        if (strcmp(argv[2], few[i].name) == 0) write_events = few[i].write;
    if (write_events == NULL) {
        fprintf(stderr, "usage: scenario_trace FILE [whole|nothing|one_event|no_bytes|one_tick|frees|scopes]\n");
        return 2;
    }
    if (record(argv[1], write_events, &err) == TIDE_OK) return 0;
    fprintf(stderr, "error: %s\n", err.msg);
    return 5;
}
