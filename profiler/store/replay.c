// SPDX-License-Identifier: MIT
//
// What events do to memory. See replay.h.
#include "profiler/store/replay.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/store/replay_rules.h"

enum {
    FIRST_TABLE = 64,
    FIRST_BLOCKS = 64,
    LINE = 64,
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

// ---- the table ----

static void set_size(tide__replay *r, size_t n_table) {
    TIDE_ASSERT(n_table >= TIDE__GROUP && (n_table & (n_table - 1)) == 0);
    r->n_table = n_table;
    r->shift = 64 - (unsigned)__builtin_ctzll(n_table / TIDE__GROUP);
}

static inline tide__live_entry entry_for(const tide__replay *r, size_t place) {
    const tide__live_block *b = &r->blocks[place];
    return (tide__live_entry){.block_id = b->block_id,
                              .requested_bytes = b->requested_bytes,
                              .reserved_bytes = b->reserved_bytes,
                              .place = (uint32_t)place,
                              .series = (uint32_t)r->series_of[b->device][b->kind]};
}

/// All live blocks into an empty table.
static void fill_table(tide__replay *r) {
    const tide__live_block *b;
    r->n_live = r->n_gone = 0;
    r->looked_for = 0; // what was found lies elsewhere now
    memset(r->tags, TIDE__TAG_NEVER, r->n_table);
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;)
        r->table[tide__replay_take_entry(r, b->block_id)] = entry_for(r, (size_t)(b - r->blocks));
    TIDE_ASSERT(r->n_live <= r->n_table && r->n_gone == 0);
}

/// Twice as many entries. False: no memory, nothing changed.
static bool grow_table(tide__replay *r) {
    const size_t n = r->n_table == 0 ? FIRST_TABLE : 2 * r->n_table;
    if (n > (SIZE_MAX - LINE) / (sizeof(tide__live_entry) + 1)) return false;
    char *memory = tide_host_alloc(n * (sizeof(tide__live_entry) + 1) + LINE);
    if (memory == NULL) return false;
    tide_host_free(r->table_memory);
    r->table_memory = memory;
    r->table = (tide__live_entry *)(void *)(memory + (LINE - (uintptr_t)memory % LINE));
    r->tags = (uint8_t *)(r->table + n);
    set_size(r, n);
    fill_table(r);
    return true;
}

/// Whether n blocks more have room in the table: at most three in four entries are, or were, taken.
static inline bool has_entries(const tide__replay *r, size_t n) {
    return 4 * (r->n_live + r->n_gone + n) <= 3 * r->n_table;
}

/// Room for n blocks more in the table. False: no memory, nothing changed that matters.
static bool make_entries(tide__replay *r, size_t n) {
    if (r->n_gone > 0 && 2 * r->n_live < r->n_table) fill_table(r); // it is full of what has gone
    while (!has_entries(r, n))
        if (!grow_table(r)) return false;
    return true;
}

/// Places for twice as many blocks. False: no memory, nothing that matters changed.
static bool grow_blocks(tide__replay *r) {
    const size_t n = r->cap_blocks == 0 ? FIRST_BLOCKS : 2 * r->cap_blocks;
    if (n > UINT32_MAX || n > SIZE_MAX / sizeof *r->blocks) return false;
    tide__live_block *blocks = tide_host_realloc(r->blocks, n * sizeof *blocks);
    if (blocks == NULL) return false;
    r->blocks = blocks;
    uint32_t *places = tide_host_realloc(r->free_places, n * sizeof *places);
    if (places == NULL) return false;
    r->free_places = places;
    uint64_t *bits = tide_host_realloc(r->is_live, n / 8);
    if (bits == NULL) return false;
    memset((char *)bits + r->cap_blocks / 8, 0, (n - r->cap_blocks) / 8);
    r->is_live = bits;
    r->cap_blocks = n;
    return true;
}

/// Room for one block more. False: no memory, nothing changed.
static inline bool make_room(tide__replay *r) {
    if (__builtin_expect(!has_entries(r, 1), 0) && !make_entries(r, 1)) return false;
    return r->n_free > 0 || r->n_blocks < r->cap_blocks || grow_blocks(r);
}

bool tide__replay_reserve(tide__replay *r, size_t n) {
    if (!has_entries(r, n) && !make_entries(r, n)) return false;
    while (r->n_free + r->cap_blocks - r->n_blocks < n)
        if (!grow_blocks(r)) return false;
    return true;
}

/// After a time of many blocks: looking at all live ones must not mean looking at all that ever were.
static void compact(tide__replay *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_blocks; i++)
        if (tide__replay_is_live_at(r, i)) r->blocks[n++] = r->blocks[i];
    TIDE_ASSERT(n == r->n_live);
    while (r->n_table > FIRST_TABLE && r->n_table >= 8 * r->n_live) set_size(r, r->n_table / 2);
    memset(r->is_live, 0, r->cap_blocks / 8);
    for (size_t i = 0; i < n; i++) r->is_live[i / 64] |= UINT64_C(1) << i % 64;
    r->n_blocks = n;
    r->n_free = 0;
    r->tags = (uint8_t *)(r->table + r->n_table);
    fill_table(r);
}

void tide__replay_settle(tide__replay *r) {
    if (tide__replay_is_sparse(r, r->n_live)) compact(r);
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

/// Before `e` changes a series: count it among those that `e` changed.
static void count_change(tide__replay *r, size_t series_i, const tide__event *e) {
    r->n_changed += r->series[series_i].last_event != e->id || r->n_changed == 0;
}

/// Whether the sums hold that much more. What is live, what was freed and what ended with its process together is all
/// that ever came: it bounds the rest.
static bool series_holds(const tide__replay *r, const tide__series *s, int64_t requested, int64_t reserved) {
    if (tide__series_holds_easily(r, s, requested, reserved)) return true;
    int64_t sum;
    return requested >= 0 && reserved >= 0 && tide_add_i64(s->freed_bytes + s->left_bytes, s->live_bytes, &sum) &&
           tide_add_i64(sum, requested, &sum) && tide_add_i64(r->series[0].live_bytes, requested, &sum) &&
           tide_add_i64(r->series[0].live_reserved_bytes, reserved, &sum);
}

// ---- blocks ----

/// The block of an entry is no longer live. @return its series
static size_t end_block(tide__replay *r, size_t entry_i, const tide__event *e) {
    if (r->on_gone != NULL) r->on_gone(r->ctx, &r->blocks[r->table[entry_i].place], e);
    count_change(r, r->table[entry_i].series, e);
    const tide__replay_arrays a = tide__replay_arrays_of(r);
    return tide__replay_rule_end(r, &a, entry_i, e);
}

void tide__replay_prefetch_block(const tide__replay *r, int64_t block_id) {
    if (r->n_live == 0 || block_id <= 0) return;
    const size_t i = tide__replay_entry_of(r, block_id);
    if (i == SIZE_MAX) return;
    const tide__live_block *b = &r->blocks[r->table[i].place];
    __builtin_prefetch(b);
    __builtin_prefetch((const char *)(b + 1) - 1);
}

const tide__live_block *tide__replay_find(const tide__replay *r, int64_t block_id) {
    if (r->n_live == 0 || block_id <= 0) return NULL;
    const size_t i = tide__replay_entry_of(r, block_id);
    return i != SIZE_MAX ? &r->blocks[r->table[i].place] : NULL;
}

const tide__live_block *tide__replay_next(const tide__replay *r, size_t *i) {
    while (*i < r->n_blocks) {
        const uint64_t left = r->is_live[*i / 64] >> *i % 64;
        if (left == 0) {
            *i = (*i / 64 + 1) * 64;
            continue;
        }
        const size_t place = *i + (size_t)__builtin_ctzll(left);
        *i = place + 1;
        return &r->blocks[place];
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
    const tide__replay_arrays a = tide__replay_arrays_of(r);
    *tide__replay_add_block(r, &a, tide__replay_take_entry(r, block->block_id), series_i, block->block_id,
                            block->requested_bytes, block->reserved_bytes) = *block;
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
    const size_t older = tide__replay_entry_of(r, e->block_id);
    if (__builtin_expect(older != SIZE_MAX, 0)) {
        *problem = TIDE__PROBLEM_ALLOC_TWICE;
        *series = end_block(r, older, e);
    }
    if (!series_holds(r, &r->series[series_i], e->requested_bytes, e->reserved_bytes)) {
        *problem = TIDE__PROBLEM_TOO_LARGE;
        return TIDE_OK;
    }
    count_change(r, series_i, e);
    const tide__replay_arrays a = tide__replay_arrays_of(r);
    tide__replay_rule_alloc(r, &a, tide__replay_take_entry(r, e->block_id), series_i, e);
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
    const size_t i = looked_for == e->block_id ? r->looked_slot
                     : r->n_live > 0           ? tide__replay_entry_of(r, e->block_id)
                                               : SIZE_MAX;
    TIDE_ASSERT(r->n_live == 0 || i == tide__replay_entry_of(r, e->block_id));
    if (i == SIZE_MAX) {
        *problem = completed ? TIDE__PROBLEM_FREE_UNKNOWN : TIDE__PROBLEM_REQUESTED_UNKNOWN;
        return;
    }
    if (completed) {
        *series = end_block(r, i, e);
        return;
    }
    const tide__replay_arrays a = tide__replay_arrays_of(r);
    if (!tide__replay_rule_request(&a, i, e)) *problem = TIDE__PROBLEM_REQUESTED_TWICE;
}

static void apply_discard(tide__replay *r, const tide__event *e, size_t *series) {
    for (size_t i = 0; i < r->n_blocks; i++) {
        const tide__live_block *b = &r->blocks[i];
        if (!tide__replay_is_live_at(r, i) || b->device != e->device) continue;
        // Addresses are those of one process, and blocks are numbered by process.
        if ((b->block_id ^ (uint64_t)e->block_id) >> TIDE__BLOCK_ID_BITS != 0) continue;
        // Addresses use all 64 bits, and a range may end at the last one.
        if ((uint64_t)b->address - (uint64_t)e->address >= (uint64_t)e->reserved_bytes) continue;
        *series = end_block(r, tide__replay_entry_of(r, b->block_id), e);
    }
}

/// All that is left of a process goes with it: it was not freed, and is no free of the sums.
static void apply_process_end(tide__replay *r, const tide__event *e, size_t *series) {
    for (size_t i = 0; i < r->n_blocks; i++) {
        const tide__live_block *b = &r->blocks[i];
        if (!tide__replay_is_live_at(r, i) || (b->block_id ^ (uint64_t)e->block_id) >> TIDE__BLOCK_ID_BITS != 0)
            continue;
        const int64_t bytes = b->requested_bytes;
        *series = end_block(r, tide__replay_entry_of(r, b->block_id), e);
        tide__series *s = &r->series[*series];
        s->n_frees--;
        s->freed_bytes -= bytes;
        s->left_bytes += bytes;
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
    case TIDE__OP_PROCESS_END:
        apply_process_end(r, e, series);
        break;
    default:
        break;
    }
    if (*problem != TIDE__PROBLEM_NONE) r->n_problems++;
    tide__replay_settle(r);
    r->last_event = e->id;
    r->last_ns = e->t_ns;
    return TIDE_OK;
}

bool tide__replay_is_early(tide__replay *r, uint8_t op, int64_t block_id) {
    if ((op != TIDE_MEM_FREE_REQUESTED && op != TIDE_MEM_FREE_COMPLETED) || block_id <= 0) return false;
    if (r->n_live == 0) return true;
    r->looked_for = block_id;
    r->looked_slot = tide__replay_entry_of(r, block_id);
    return r->looked_slot == SIZE_MAX;
}

tide_status tide__replay_init(tide__replay *r) {
    memset(r, 0, sizeof *r);
    TIDE_TRY(tide_host_grow(&r->series, &r->cap_series, 1, sizeof *r->series));
    r->series[0] = (tide__series){0};
    r->n_series = 1;
    return TIDE_OK;
}

void tide__replay_deinit(tide__replay *r) {
    tide_host_free(r->table_memory);
    tide_host_free(r->blocks);
    tide_host_free(r->is_live);
    tide_host_free(r->free_places);
    tide_host_free(r->series);
    memset(r, 0, sizeof *r);
}

void tide__replay_reset(tide__replay *r) {
    const tide__replay old = *r;
    memset(r, 0, sizeof *r);
    r->table = old.table;
    r->tags = old.tags;
    r->table_memory = old.table_memory;
    r->n_table = old.n_table;
    r->shift = old.shift;
    r->blocks = old.blocks;
    r->is_live = old.is_live;
    r->free_places = old.free_places;
    r->cap_blocks = old.cap_blocks;
    r->series = old.series;
    r->cap_series = old.cap_series;
    r->series[0] = (tide__series){0};
    r->n_series = 1;
    if (r->n_table > 0) memset(r->tags, TIDE__TAG_NEVER, r->n_table);
    if (r->cap_blocks > 0) memset(r->is_live, 0, r->cap_blocks / 8);
}
