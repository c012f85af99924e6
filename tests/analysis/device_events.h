// SPDX-License-Identifier: MIT
//
// Events of programs on devices, made by hand: one like a training program with libraries beside its allocator (sizes
// as a PyTorch program on a GPU of 80 GB showed them), and random ones. No device is behind them.
#ifndef TIDE_TESTS_DEVICE_EVENTS_H
#define TIDE_TESTS_DEVICE_EVENTS_H

#include <string.h>

#include "tidemark/record.h"

#define DEVICE_KIB (UINT64_C(1) << 10)
#define DEVICE_MIB (UINT64_C(1) << 20)
#define DEVICE_MS UINT64_C(1000000)
static const uint64_t device_total = 85017493504;

typedef struct device_events {
    tide_observer to;
    uint64_t now_ns;
    uint64_t n_blocks;
} device_events;

static inline uint64_t device_now(void *ctx) { return ((const device_events *)ctx)->now_ns; }

typedef struct device_event {
    tide_memory_op op;
    int index;
    uint64_t id, bytes, reserved;
    const char *allocator, *tag;
    uint64_t at; ///< its address; 0: one of its own
} device_event;

/// Far from all others.
static inline uint64_t device_place(uint64_t id) { return 0x7f0000000000 + id * 256 * DEVICE_MIB; }

static inline void device_put(device_events *d, uint64_t after_ns, device_event e) {
    const tide_memory_event event = {.op = e.op,
                                     .t_ns = d->now_ns += after_ns,
                                     .block_id = e.id,
                                     .device = {.type = TIDE_DEVICE_CUDA, .index = e.index},
                                     .requested_bytes = e.bytes,
                                     .reserved_bytes = e.reserved,
                                     .address = e.at != 0   ? e.at
                                                : e.id != 0 ? device_place(e.id)
                                                            : 0,
                                     .thread = 1,
                                     .allocator = e.allocator,
                                     .tag = e.tag};
    d->to.on_memory(d->to.self, &event);
}

/// `at`: in which segment, by its number; 0: in none.
static inline uint64_t device_alloc_in(device_events *d, const char *allocator, const char *tag, uint64_t bytes,
                                       uint64_t at) {
    const uint64_t id = ++d->n_blocks;
    device_put(d, DEVICE_MS,
               (device_event){TIDE_MEM_ALLOC, 0, id, bytes, (bytes + 511) / 512 * 512, allocator, tag,
                              at != 0 ? device_place(at) : 0});
    return id;
}

static inline uint64_t device_alloc(device_events *d, const char *allocator, const char *tag, uint64_t bytes) {
    return device_alloc_in(d, allocator, tag, bytes, 0);
}

static inline void device_free(device_events *d, const char *allocator, const char *tag, uint64_t id, uint64_t bytes) {
    device_put(d, DEVICE_MS,
               (device_event){TIDE_MEM_FREE_COMPLETED, 0, id, bytes, (bytes + 511) / 512 * 512, allocator, tag, 0});
}

static inline uint64_t device_segment(device_events *d, const char *allocator, uint64_t bytes) {
    const uint64_t id = ++d->n_blocks;
    device_put(d, DEVICE_MS, (device_event){TIDE_MEM_SEGMENT_ALLOC, 0, id, bytes, bytes, allocator, NULL, 0});
    return id;
}

static inline void device_sample(device_events *d, int index, uint64_t used, uint64_t total) {
    device_put(d, DEVICE_MS, (device_event){TIDE_MEM_DEVICE_USAGE, index, 0, used, total, NULL, NULL, 0});
}

/// A context of 526 MiB; an allocator with segments of 2 and 30 MiB; modules; cuBLAS with 1 KiB, 128 KiB and 64 MiB; a
/// pool of the driver; at the end most of it is given back. `samples`: the driver was asked.
static inline void device_program(device_events *d, bool samples) {
    const uint64_t context = 526 * DEVICE_MIB, slab = 2 * DEVICE_MIB;
    if (samples) device_sample(d, 0, context, device_total);
    for (int i = 0; i < 3; i++) device_alloc(d, "module", "libtorch_cuda.so", 3 * DEVICE_KIB);
    const uint64_t small = device_segment(d, "cuda_caching", 2 * DEVICE_MIB);
    const uint64_t x = device_alloc_in(d, "cuda_caching", "x", 400 * DEVICE_KIB, small);
    const uint64_t large = device_segment(d, "cuda_caching", 30 * DEVICE_MIB);
    const uint64_t y = device_alloc_in(d, "cuda_caching", "activations", 25 * DEVICE_MIB, large);
    if (samples) device_sample(d, 0, context + 32 * DEVICE_MIB, device_total);
    device_alloc(d, "cuMemAlloc", "libcublas.so.13", 1024);
    device_alloc(d, "cuMemAlloc", "libcublas.so.13", 131072);
    const uint64_t workspace = device_alloc(d, "cuMemAlloc", "libcublas.so.13", 64 * DEVICE_MIB);
    if (samples) device_sample(d, 0, context + 32 * DEVICE_MIB + 64 * DEVICE_MIB + slab, device_total);
    const uint64_t segment = device_segment(d, "cuMemAllocAsync", 32 * DEVICE_MIB);
    const uint64_t k = device_alloc_in(d, "cuMemAllocAsync", "libcudnn.so.9", 20 * DEVICE_MIB, segment);
    device_alloc(d, "device", "table", 5 * DEVICE_MIB);
    if (samples) device_sample(d, 0, context + 135 * DEVICE_MIB + slab, device_total);
    device_free(d, "cuMemAllocAsync", "libcudnn.so.9", k, 20 * DEVICE_MIB);
    device_put(d, DEVICE_MS,
               (device_event){TIDE_MEM_SEGMENT_FREE, 0, segment, 32 * DEVICE_MIB, 32 * DEVICE_MIB, "cuMemAllocAsync",
                              NULL, 0});
    device_free(d, "cuda_caching", "activations", y, 25 * DEVICE_MIB);
    device_free(d, "cuMemAlloc", "libcublas.so.13", workspace, 64 * DEVICE_MIB);
    device_free(d, "cuda_caching", "x", x, 400 * DEVICE_KIB);
    if (samples) device_sample(d, 0, context + 39 * DEVICE_MIB, device_total);
}

// ---- at random ----

enum { DEVICE_OWNERS = 6, DEVICE_SLOTS = 64 };

static inline uint64_t device_random(uint64_t *state, uint64_t below) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407; // of Knuth
    return (*state >> 33) % below;
}

/// Two devices, allocators with segments and without, functions of the driver; samples that may be below what is known.
static inline void device_at_random(device_events *d, uint64_t seed, int n_events) {
    static const char *const owners[DEVICE_OWNERS] = {"cuda_caching",    "device",   "cuMemAlloc",
                                                      "cuMemAllocAsync", "cuMemMap", "module"};
    static const char *const tags[3] = {"libcublas.so.13", "libnccl.so.2", NULL};
    device_event live[DEVICE_SLOTS] = {{0}};
    for (int i = 0; i < n_events; i++) {
        device_event *slot = &live[device_random(&seed, DEVICE_SLOTS)];
        if (device_random(&seed, 8) == 0) {
            const uint64_t used = device_random(&seed, 2 * 1024 * DEVICE_MIB);
            device_sample(d, (int)device_random(&seed, 2), used, device_total);
        } else if (slot->id != 0) {
            slot->op = slot->op == TIDE_MEM_ALLOC ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_SEGMENT_FREE;
            device_put(d, device_random(&seed, 3), *slot); // some share a moment
            *slot = (device_event){0};
        } else {
            const size_t owner = (size_t)device_random(&seed, DEVICE_OWNERS);
            const bool may_tell = owner == 0 || owner == 3, segment = may_tell && device_random(&seed, 2) == 0;
            const uint64_t bytes = 1 + device_random(&seed, (segment ? 64 : 16) * DEVICE_MIB);
            *slot = (device_event){.op = segment ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_ALLOC,
                                   .index = (int)device_random(&seed, 2),
                                   .id = ++d->n_blocks,
                                   .bytes = bytes,
                                   .reserved = (bytes + 511) / 512 * 512,
                                   .allocator = owners[owner],
                                   .tag = tags[device_random(&seed, 3)]};
            device_put(d, device_random(&seed, 3), *slot);
        }
    }
}

#endif
