// SPDX-License-Identifier: MIT
//
// What stream-ordered pools have reserved, as segments. The driver does not say where they lie, only how much a pool
// has now: each growth is a segment of so many bytes, at a number that is no address (POOL_PLACES and above); what is
// given back is taken from the last ones, of which one may be split.
//
//     reserved 32 MiB -> 96 MiB -> 64 MiB      segments: 32 | 32, 64 | 32, 32
//
// All with the lock of the recorder held.
#include "cuda/cupti/recorder.h"

#define POOL_PLACES (UINT64_C(1) << 60)
enum { PLACE_BITS = 44 }; // 16 TiB for each pool

typedef struct segment {
    uint64_t id, at, bytes;
} segment;

typedef struct pool {
    uint64_t handle; ///< 0: free
    int32_t device;
    uint64_t reserved;
    segment *segments; ///< [n] pages of the system
    size_t n, cap;
} pool;

static pool pools[TIDE__CUPTI_MAX_POOLS];

static pool *pool_of(uint64_t handle, int32_t device) {
    pool *empty = NULL;
    for (size_t i = 0; i < TIDE__CUPTI_MAX_POOLS; i++) {
        if (pools[i].handle == handle) return &pools[i];
        if (empty == NULL && pools[i].handle == 0) empty = &pools[i];
    }
    if (empty == NULL) {
        tide__cupti.counts.no_room++;
        return NULL;
    }
    empty->handle = handle;
    empty->device = device;
    return empty;
}

static void grow(pool *p, uint64_t bytes, uint64_t t_ns) {
    void *pages = p->segments;
    if (!tide__cupti_pages_grow(&pages, &p->cap, p->n + 1, sizeof *p->segments)) {
        tide__cupti.counts.no_room++;
        return;
    }
    p->segments = pages;
    const uint64_t place = POOL_PLACES + ((uint64_t)(p - pools) << PLACE_BITS) + p->reserved;
    const segment s = {.id = tide__cupti.host->new_block_id(), .at = place, .bytes = bytes};
    p->segments[p->n++] = s;
    p->reserved += bytes;
    tide__cupti_tell_segment(true, s.id, p->device, s.at, s.bytes, t_ns);
}

static void shrink(pool *p, uint64_t reserved, uint64_t t_ns) {
    while (p->n > 0 && p->reserved > reserved) {
        const segment s = p->segments[--p->n];
        tide__cupti_tell_segment(false, s.id, p->device, s.at, s.bytes, t_ns);
        p->reserved -= s.bytes;
    }
    if (p->reserved < reserved) grow(p, reserved - p->reserved, t_ns); // the rest of the one that was split
}

void tide__cupti_pool_is(uint64_t handle, int32_t device, uint64_t reserved, uint64_t t_ns) {
    pool *p = handle != 0 ? pool_of(handle, device) : NULL;
    if (p == NULL) return;
    if (reserved > p->reserved)
        grow(p, reserved - p->reserved, t_ns);
    else
        shrink(p, reserved, t_ns);
    if (reserved == 0) {
        tide__cupti_pages_free(p->segments, p->cap, sizeof *p->segments);
        *p = (pool){0};
    }
}

void tide__cupti_pool_trimmed(uint64_t handle, uint64_t reserved, uint64_t t_ns) {
    for (size_t i = 0; i < TIDE__CUPTI_MAX_POOLS; i++) {
        if (handle == 0 || pools[i].handle != handle) continue;
        if (reserved < pools[i].reserved) tide__cupti_pool_is(handle, pools[i].device, reserved, t_ns);
        return;
    }
}

void tide__cupti_pools_clear(void) {
    for (size_t i = 0; i < TIDE__CUPTI_MAX_POOLS; i++) {
        tide__cupti_pages_free(pools[i].segments, pools[i].cap, sizeof *pools[i].segments);
        pools[i] = (pool){0};
    }
}
