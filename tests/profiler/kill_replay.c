// SPDX-License-Identifier: MIT
//
// What the steps do to memory. See kill_replay.h.
#include "tests/profiler/kill_replay.h"

void kill_replay_init(kill_replay *r) { *r = (kill_replay){.live = TIDE_MAP(kill_live)}; }
void kill_replay_deinit(kill_replay *r) { tide_map_deinit(&r->live); }

static void end_block(kill_replay *r, kill_live *e) {
    r->live_bytes -= e->requested_bytes;
    tide_map_take(&r->live, e);
}

static const char *discard(kill_replay *r, const kill_step *step) {
    uint64_t ids[16];
    size_t n = 0;
    for (size_t i = 0; i < r->live.cap; i++) {
        const kill_live *e = tide_map_at(&r->live, i);
        if (e == NULL || (e->id ^ step->block.id) >> 48 != 0 || e->device != step->block.device ||
            e->address < step->block.address || e->address - step->block.address >= step->block.reserved_bytes)
            continue;
        if (n == sizeof ids / sizeof ids[0]) return "a pool of too many blocks";
        ids[n++] = e->id;
    }
    for (size_t i = 0; i < n; i++) end_block(r, tide_map_find(&r->live, ids[i]));
    return NULL;
}

const char *kill_replay_take(kill_replay *r, const kill_step *step) {
    const kill_block *b = &step->block;
    kill_live *e = b->id != 0 ? tide_map_find(&r->live, b->id) : NULL;
    kill_total_add(&r->totals[b->kind], step);
    if (step->op == TIDE_MEM_POOL_DISCARD) return discard(r, step);
    if (step->op == TIDE_MEM_ALLOC) {
        const kill_live block = {b->id, b->requested_bytes, b->address, b->device};
        if (e != NULL) return "a block is allocated twice";
        if (!tide_map_put(&r->live, &block)) return "no memory";
        r->live_bytes += b->requested_bytes;
        if (r->live_bytes > r->peak_bytes) r->peak_bytes = r->live_bytes;
    } else if (step->op == TIDE_MEM_FREE_COMPLETED || step->op == TIDE_MEM_FREE_REQUESTED) {
        if (e == NULL) return "a free stands before its alloc";
        if (step->op == TIDE_MEM_FREE_COMPLETED) end_block(r, e);
    }
    return NULL;
}
