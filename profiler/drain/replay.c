// SPDX-License-Identifier: MIT
//
// What events do to memory. See replay.h.
#include "profiler/drain/replay.h"

#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

enum {
    FIRST_INDEX = 64,
    COMPACT_ABOVE = 1024, ///< places: below that, free ones cost nobody anything
    COMPACT_SPARSE = 4,   ///< compact when fewer than 1 in 4 places is taken
};

const char *tide__problem_text(tide__problem p) {
    switch (p) {
#define XX(name, value, text)                                                                                          \
    case TIDE__PROBLEM_##name:                                                                                         \
        return text;
        TIDE__PROBLEM_MAP(XX)
#undef XX
    }
    return "unknown";
}

// ---- the index ----

/// Slot of the index with that block, or the empty one where the search ended. The index is at most half full.
static size_t slot_of(const tide__replay *r, int64_t block_id) {
    const uint32_t key = tide__replay_key(block_id);
    const size_t mask = r->n_index - 1;
    size_t i = tide__replay_home(r, key);
    for (uint64_t at; (at = r->index[i]) != 0; i = (i + 1) & mask)
        if (at >> 32 == key && r->blocks[(uint32_t)at - 1].block_id == block_id) break;
    return i;
}

static void index_place(tide__replay *r, size_t place) {
    const uint32_t key = tide__replay_key(r->blocks[place].block_id);
    size_t i = tide__replay_home(r, key);
    while (r->index[i] != 0) i = (i + 1) & (r->n_index - 1);
    r->index[i] = (uint64_t)key << 32 | (place + 1);
}

/// Followers move back into the hole, so that a search may end at the first empty slot (Knuth, TAOCP 3, 6.4, R).
static void unindex(tide__replay *r, size_t hole) {
    const size_t mask = r->n_index - 1;
    for (size_t i = (hole + 1) & mask; r->index[i] != 0; i = (i + 1) & mask) {
        const size_t home = tide__replay_home(r, (uint32_t)(r->index[i] >> 32));
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        r->index[hole] = r->index[i];
        hole = i;
    }
    r->index[hole] = 0;
}

static void index_all(tide__replay *r) {
    memset(r->index, 0, r->n_index * sizeof *r->index);
    for (size_t i = 0; i < r->n_blocks; i++)
        if (r->blocks[i].block_id != 0) index_place(r, i);
}

/// Room for one block more. False: no memory, nothing changed.
static bool make_room(tide__replay *r) {
    if (2 * (r->n_live + 1) > r->n_index) {
        const size_t n_index = r->n_index == 0 ? FIRST_INDEX : 2 * r->n_index;
        uint64_t *index = tide_host_alloc(n_index * sizeof *index);
        if (index == NULL) return false;
        tide_host_free(r->index);
        r->index = index;
        r->n_index = n_index;
        index_all(r);
    }
    if (r->free_place != 0) return true;
    return r->n_blocks < UINT32_MAX - 1 &&
           tide_host_grow(&r->blocks, &r->cap_blocks, r->n_blocks + 1, sizeof *r->blocks) == TIDE_OK;
}

/// After a time of many blocks: looking at all live ones must not mean looking at all that ever were.
static void compact(tide__replay *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_blocks; i++)
        if (r->blocks[i].block_id != 0) r->blocks[n++] = r->blocks[i];
    r->n_blocks = n;
    r->free_place = 0;
    while (r->n_index > FIRST_INDEX && r->n_index >= 8 * r->n_live) r->n_index /= 2;
    index_all(r);
}

// ---- series ----

size_t tide__replay_series(tide__replay *r, int16_t device, uint8_t kind) {
    if (device <= 0 || device >= TIDE__MAX_DEVICES || kind >= TIDE_N_KINDS) return 0;
    int16_t *of = &r->series_of[device][kind];
    if (*of != 0) return (size_t)*of;
    if (tide_host_grow(&r->series, &r->cap_series, r->n_series + 1, sizeof *r->series) != TIDE_OK) return 0;
    r->series[r->n_series] = (tide__series){.device = device, .kind = kind};
    *of = (int16_t)r->n_series;
    return r->n_series++;
}

static void series_changed(tide__replay *r, tide__series *s, const tide__event *e) {
    if (s->last_event != e->id || r->n_changed == 0) r->n_changed++;
    s->last_event = e->id;
    r->series[0].last_event = e->id;
}

/// Whether the sums hold `b` too. What is live and what was freed together is all that ever came: it bounds the rest.
static bool series_holds(const tide__replay *r, const tide__series *s, int64_t requested, int64_t reserved) {
    const tide__series *all = &r->series[0];
    // Far from it, mostly.
    if (((uint64_t)(s->freed_bytes | s->live_bytes | all->live_bytes | all->live_reserved_bytes) |
         (uint64_t)(requested | reserved)) >>
            61 ==
        0)
        return true;
    int64_t sum;
    return requested >= 0 && reserved >= 0 && tide_add_i64(s->freed_bytes + s->live_bytes, requested, &sum) &&
           tide_add_i64(r->series[0].live_bytes, requested, &sum) &&
           tide_add_i64(r->series[0].live_reserved_bytes, reserved, &sum);
}

static void series_add(tide__replay *r, tide__series *s, int64_t requested, int64_t reserved) {
    s->live_bytes += requested;
    s->live_reserved_bytes += reserved;
    r->series[0].live_bytes += requested;
    r->series[0].live_reserved_bytes += reserved;
}

// ---- blocks ----

/// Room for a block, which the caller fills in; `slot` of the index is where a search for it ended.
static tide__live_block *take_place(tide__replay *r, size_t slot, int64_t block_id) {
    size_t place = r->n_blocks;
    if (r->free_place != 0) {
        place = r->free_place - 1;
        r->free_place = (size_t)r->blocks[place].alloc_event;
    } else {
        r->n_blocks++;
    }
    r->index[slot] = (uint64_t)tide__replay_key(block_id) << 32 | (place + 1);
    r->n_live++;
    return &r->blocks[place];
}

/// The block in `slot` of the index goes. @return its series
static size_t end_block(tide__replay *r, size_t slot, const tide__event *e) {
    const size_t place = (uint32_t)r->index[slot] - 1;
    tide__live_block *b = &r->blocks[place];
    if (r->on_gone != NULL) r->on_gone(r->ctx, b, e);
    const size_t series_i = (size_t)r->series_of[b->device][b->kind];
    tide__series *s = &r->series[series_i];
    s->live_bytes -= b->requested_bytes;
    s->live_reserved_bytes -= b->reserved_bytes;
    s->freed_bytes += b->requested_bytes;
    s->n_frees++;
    r->series[0].live_bytes -= b->requested_bytes;
    r->series[0].live_reserved_bytes -= b->reserved_bytes;
    series_changed(r, s, e);
    unindex(r, slot);
    b->block_id = 0;
    b->alloc_event = (int64_t)r->free_place;
    r->free_place = place + 1;
    r->n_live--;
    return series_i;
}

const tide__live_block *tide__replay_find(const tide__replay *r, int64_t block_id) {
    if (r->n_live == 0 || block_id <= 0) return NULL;
    const uint64_t at = r->index[slot_of(r, block_id)];
    return at != 0 ? &r->blocks[(uint32_t)at - 1] : NULL;
}

const tide__live_block *tide__replay_next(const tide__replay *r, size_t *i) {
    while (*i < r->n_blocks) {
        const tide__live_block *b = &r->blocks[(*i)++];
        if (b->block_id != 0) return b;
    }
    return NULL;
}

tide_status tide__replay_put(tide__replay *r, const tide__live_block *block) {
    if (block->block_id <= 0 || tide__replay_find(r, block->block_id) != NULL) return TIDE_ERR_BAD_INPUT;
    if (block->device <= 0 || block->device >= TIDE__MAX_DEVICES || block->kind >= TIDE_N_KINDS)
        return TIDE_ERR_BAD_INPUT;
    const size_t series_i = tide__replay_series(r, block->device, block->kind);
    if (series_i == 0) return TIDE_ERR_NOMEM;
    tide__series *s = &r->series[series_i];
    if (!series_holds(r, s, block->requested_bytes, block->reserved_bytes)) return TIDE_ERR_BAD_INPUT;
    if (!make_room(r)) return TIDE_ERR_NOMEM;
    *take_place(r, slot_of(r, block->block_id), block->block_id) = *block;
    series_add(r, s, block->requested_bytes, block->reserved_bytes);
    r->looked_for = 0;
    return TIDE_OK;
}

// ---- events ----

static tide_status apply_alloc(tide__replay *r, const tide__event *e, tide__problem *problem, size_t *series) {
    if (e->device <= 0 || e->device >= TIDE__MAX_DEVICES || e->kind >= TIDE_N_KINDS) return TIDE_ERR_INVALID;
    if (e->block_id <= 0) {
        *problem = TIDE__PROBLEM_NO_NUMBER;
        return TIDE_OK;
    }
    const size_t series_i = tide__replay_series(r, e->device, e->kind);
    if (series_i == 0 || !make_room(r)) return TIDE_ERR_NOMEM;
    size_t slot = slot_of(r, e->block_id);
    if (r->index[slot] != 0) {
        *problem = TIDE__PROBLEM_ALLOC_TWICE;
        *series = end_block(r, slot, e);
        slot = slot_of(r, e->block_id);
    }
    tide__series *s = &r->series[series_i];
    if (!series_holds(r, s, e->requested_bytes, e->reserved_bytes)) {
        *problem = TIDE__PROBLEM_TOO_LARGE;
        return TIDE_OK;
    }
    // Field by field: a whole one made elsewhere and copied would wait for itself to be stored.
    tide__live_block *b = take_place(r, slot, e->block_id);
    b->block_id = e->block_id;
    b->alloc_event = e->id;
    b->requested_bytes = e->requested_bytes;
    b->reserved_bytes = e->reserved_bytes;
    b->device = e->device;
    b->kind = e->kind;
    b->zero = 0;
    b->run_id = e->run_id;
    b->alloc_ns = e->t_ns;
    b->free_requested_ns = 0;
    b->address = e->address;
    b->stream = e->stream;
    b->thread = e->thread;
    b->scope_id = e->scope_id;
    b->tag_id = e->tag_id;
    b->allocator_id = e->allocator_id;
    series_add(r, s, e->requested_bytes, e->reserved_bytes);
    s->n_allocs++;
    s->requested_bytes += e->requested_bytes;
    series_changed(r, s, e);
    *series = series_i;
    return TIDE_OK;
}

/// `looked_for`: as it was before the event.
static void apply_free(tide__replay *r, const tide__event *e, int64_t looked_for, tide__problem *problem,
                       size_t *series) {
    const bool completed = e->op == TIDE_MEM_FREE_COMPLETED;
    if (e->block_id <= 0) {
        *problem = TIDE__PROBLEM_NO_NUMBER;
        return;
    }
    const size_t slot = looked_for == e->block_id ? r->looked_slot : r->n_live > 0 ? slot_of(r, e->block_id) : 0;
    if (r->n_live == 0 || r->index[slot] == 0) {
        *problem = completed ? TIDE__PROBLEM_FREE_UNKNOWN : TIDE__PROBLEM_REQUESTED_UNKNOWN;
        return;
    }
    if (completed) {
        *series = end_block(r, slot, e);
        return;
    }
    tide__live_block *b = &r->blocks[(uint32_t)r->index[slot] - 1];
    if (b->free_requested_ns != 0) {
        *problem = TIDE__PROBLEM_REQUESTED_TWICE;
    } else {
        b->free_requested_ns = e->t_ns;
    }
}

static void apply_discard(tide__replay *r, const tide__event *e, size_t *series) {
    for (size_t i = 0; i < r->n_blocks; i++) {
        const tide__live_block *b = &r->blocks[i];
        if (b->block_id == 0 || b->device != e->device) continue;
        // Addresses are those of one process, and blocks are numbered by process.
        if ((b->block_id ^ (uint64_t)e->block_id) >> TIDE__BLOCK_ID_BITS != 0) continue;
        // Addresses use all 64 bits, and a range may end at the last one.
        if ((uint64_t)b->address - (uint64_t)e->address >= (uint64_t)e->reserved_bytes) continue;
        *series = end_block(r, slot_of(r, b->block_id), e);
    }
}

tide_status tide__replay_apply(tide__replay *r, const tide__event *e, tide__problem *problem, size_t *series) {
    *problem = TIDE__PROBLEM_NONE;
    *series = 0;
    r->n_changed = 0;
    const int64_t looked_for = r->looked_for;
    r->looked_for = 0;
    switch (e->op) {
    case TIDE_MEM_ALLOC:
        TIDE_TRY(apply_alloc(r, e, problem, series));
        break;
    case TIDE_MEM_FREE_REQUESTED:
    case TIDE_MEM_FREE_COMPLETED:
        apply_free(r, e, looked_for, problem, series);
        break;
    case TIDE_MEM_POOL_DISCARD:
        apply_discard(r, e, series);
        break;
    default:
        break;
    }
    if (*problem != TIDE__PROBLEM_NONE) r->n_problems++;
    if (r->n_blocks > COMPACT_ABOVE && r->n_blocks > COMPACT_SPARSE * r->n_live) compact(r);
    r->last_event = e->id;
    r->last_ns = e->t_ns;
    return TIDE_OK;
}

bool tide__replay_is_early(tide__replay *r, uint8_t op, int64_t block_id) {
    if ((op != TIDE_MEM_FREE_REQUESTED && op != TIDE_MEM_FREE_COMPLETED) || block_id <= 0) return false;
    if (r->n_live == 0) return true;
    r->looked_for = block_id;
    r->looked_slot = slot_of(r, block_id);
    return r->index[r->looked_slot] == 0;
}

tide_status tide__replay_init(tide__replay *r) {
    memset(r, 0, sizeof *r);
    TIDE_TRY(tide_host_grow(&r->series, &r->cap_series, 1, sizeof *r->series));
    r->series[0] = (tide__series){0};
    r->n_series = 1;
    return TIDE_OK;
}

void tide__replay_deinit(tide__replay *r) {
    tide_host_free(r->blocks);
    tide_host_free(r->index);
    tide_host_free(r->series);
    memset(r, 0, sizeof *r);
}

void tide__replay_reset(tide__replay *r) {
    const tide__replay old = *r;
    memset(r, 0, sizeof *r);
    r->blocks = old.blocks;
    r->cap_blocks = old.cap_blocks;
    r->index = old.index;
    r->n_index = old.n_index;
    r->series = old.series;
    r->cap_series = old.cap_series;
    r->series[0] = (tide__series){0};
    r->n_series = 1;
    if (r->n_index > 0) memset(r->index, 0, r->n_index * sizeof *r->index);
}
