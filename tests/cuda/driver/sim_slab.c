// SPDX-License-Identifier: MIT
//
// How a device gives memory to cuMemAlloc (measured on an H100, driver 580): requests of up to 1 MiB come out of a slab
// of 2 MiB that several share, in steps of 512 bytes; larger ones have a piece of their own, rounded up to 2 MiB. A
// slab goes back when it is empty. Other granularities keep the proportions.
#include "tests/cuda/driver/sim_slab.h"

#define UNIT 512U

typedef struct sim_slab {
    struct sim_slab *next;
    const sim_ctx *ctx;
    uint64_t address;
    uint32_t n_units, n_free, hint;
    uint8_t used[];
} sim_slab;

static bool open_new(uint64_t bytes, uint64_t *address) {
    *address = sim_map_reserve(bytes, sim.granularity, 0);
    if (*address == 0) return false;
    if (sim_map_open(*address, bytes)) return true;
    sim_map_free(*address, bytes);
    return false;
}

static bool take_piece(sim_device *device, uint64_t bytes, uint64_t *address) {
    if (!sim_take(device, bytes)) return false;
    if (open_new(bytes, address)) return true;
    sim_give(device, bytes);
    return false;
}

static sim_slab *slab_new(sim_device *device, const sim_ctx *ctx) {
    const uint32_t n = (uint32_t)(sim.granularity / UNIT);
    uint64_t address;
    if (!take_piece(device, sim.granularity, &address)) return NULL;
    sim_slab *slab = sim_new(sizeof *slab + n);
    *slab = (sim_slab){device->slabs, ctx, address, n, n, 0};
    device->slabs = slab;
    sim_poison(address, sim.granularity);
    return slab;
}

// First fit from the lowest unit that may be free. n_units: none.
static uint32_t find_run(sim_slab *slab, uint32_t n) {
    for (uint32_t i = slab->hint, run = 0; i < slab->n_units; i++) {
        run = slab->used[i] ? 0 : run + 1;
        if (run == n) return i + 1 - n;
    }
    return slab->n_units;
}

static void take_run(sim_slab *slab, uint32_t first, uint32_t n) {
    memset(slab->used + first, 1, n);
    slab->n_free -= n;
    while (slab->hint < slab->n_units && slab->used[slab->hint]) slab->hint++;
}

static bool from_slab(sim_range *range) {
    const uint32_t n = (uint32_t)((range->bytes + UNIT - 1) / UNIT);
    sim_slab *slab = range->device->slabs;
    uint32_t first = 0;
    for (; slab != NULL; slab = slab->next)
        if (slab->ctx == range->ctx && slab->n_free >= n && (first = find_run(slab, n)) < slab->n_units) break;
    if (slab == NULL) {
        slab = slab_new(range->device, range->ctx);
        first = 0;
    }
    if (slab == NULL) return false;
    take_run(slab, first, n);
    range->slab = slab;
    range->address = slab->address + (uint64_t)first * UNIT;
    range->span = (uint64_t)n * UNIT;
    return true;
}

bool sim_slab_alloc(sim_range *range) {
    if (range->bytes > UINT64_MAX / 2) return false;
    if (range->bytes <= sim.granularity / 2 && sim.granularity % UNIT == 0) {
        if (!from_slab(range)) return false;
    } else {
        range->span = sim_round_up(range->bytes, sim.granularity);
        if (!take_piece(range->device, range->span, &range->address)) return false;
        sim_poison(range->address + range->bytes, range->span - range->bytes);
        return true;
    }
    sim_unpoison(range->address, range->bytes);
    return true;
}

static void slab_delete(sim_device *device, sim_slab *slab) {
    sim_slab **link = &device->slabs;
    while (*link != slab) link = &(*link)->next;
    *link = slab->next;
    sim_unpoison(slab->address, sim.granularity);
    sim_map_free(slab->address, sim.granularity);
    sim_give(device, sim.granularity);
    free(slab);
}

void sim_slab_free(sim_range *range) {
    sim_slab *slab = range->slab;
    if (slab == NULL) {
        sim_unpoison(range->address + range->bytes, range->span - range->bytes);
        sim_map_free(range->address, range->span);
        sim_give(range->device, range->span);
        return;
    }
    const uint32_t first = (uint32_t)((range->address - slab->address) / UNIT), n = (uint32_t)(range->span / UNIT);
    memset(slab->used + first, 0, n);
    slab->n_free += n;
    if (first < slab->hint) slab->hint = first;
    sim_poison(range->address, range->span);
    if (slab->n_free == slab->n_units) slab_delete(range->device, slab);
}
