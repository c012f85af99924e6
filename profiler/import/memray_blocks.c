// SPDX-License-Identifier: MIT
//
// What memray's captures say of blocks, as events of a trace: blocks that are known by their address alone, and mapped
// ranges, of which any part may be unmapped. See memray.h.
//
//     mapped   [..... A .....]        unmapped  [ A ]      [ A2 ]     A ends, and what is left of it goes on
//     unmap         [####]                                            as blocks of the same stack
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

typedef enum kind { UNKNOWN, ALLOCATES, FREES, MAPS, UNMAPS } kind;

static const struct {
    const char *name;
    kind kind;
} calls[TIDE__MEMRAY_ALLOCATORS] = {
    [TIDE__MEMRAY_PYMALLOC_FREE] = {"pymalloc_free", FREES},
    [TIDE__MEMRAY_PYMALLOC_MALLOC] = {"pymalloc_malloc", ALLOCATES},
    [TIDE__MEMRAY_PYMALLOC_CALLOC] = {"pymalloc_calloc", ALLOCATES},
    [TIDE__MEMRAY_PYMALLOC_REALLOC] = {"pymalloc_realloc", ALLOCATES},
    [TIDE__MEMRAY_FREE] = {"free", FREES},
    [TIDE__MEMRAY_MALLOC] = {"malloc", ALLOCATES},
    [TIDE__MEMRAY_REALLOC] = {"realloc", ALLOCATES},
    [TIDE__MEMRAY_CALLOC] = {"calloc", ALLOCATES},
    [TIDE__MEMRAY_POSIX_MEMALIGN] = {"posix_memalign", ALLOCATES},
    [TIDE__MEMRAY_ALIGNED_ALLOC] = {"aligned_alloc", ALLOCATES},
    [TIDE__MEMRAY_MEMALIGN] = {"memalign", ALLOCATES},
    [TIDE__MEMRAY_VALLOC] = {"valloc", ALLOCATES},
    [TIDE__MEMRAY_PVALLOC] = {"pvalloc", ALLOCATES},
    [TIDE__MEMRAY_MMAP] = {"mmap", MAPS},
    [TIDE__MEMRAY_MUNMAP] = {"munmap", UNMAPS},
};

/// By address + 1.
typedef struct live {
    uint64_t key;
    int64_t block_id, bytes, name;
    uint64_t allocator;
} live;

static tide_status no_memory(const tide__memray_blocks *b, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", b->path);
}

tide_status tide__memray_blocks_begin(tide__memray_blocks *b, tide_error *err) {
    b->live = (tide_map)TIDE_MAP(live);
    return tide__names_device(&b->out->names, TIDE_CPU, &b->device) == TIDE_OK ? TIDE_OK : no_memory(b, err);
}

void tide__memray_blocks_deinit(tide__memray_blocks *b) {
    tide_map_deinit(&b->live);
    tide_block_tree_deinit(&b->mapped);
    tide_host_free(b->ranges);
}

/// c->allocator is the one that gave the block.
static tide_status put(tide__memray_blocks *b, tide_memory_op op, int64_t id, const tide__memray_call *c,
                       tide_error *err) {
    int64_t *allocator = &b->allocators[c->allocator];
    TIDE_ASSERT(c->bytes <= INT64_MAX && (id > 0 || op == TIDE_MEM_OOM));
    if (*allocator == 0 && tide__names_text(&b->out->names, calls[c->allocator].name, allocator) != TIDE_OK)
        return no_memory(b, err);
    const tide__event e = {.t_ns = c->t_ns,
                           .block_id = id,
                           .requested_bytes = (int64_t)c->bytes,
                           .reserved_bytes = op == TIDE_MEM_OOM ? 0 : (int64_t)c->bytes,
                           .address = (int64_t)c->address,
                           .thread = (int32_t)c->thread,
                           .scope_id = op == TIDE_MEM_FREE_COMPLETED ? 0 : (int32_t)c->scope,
                           .tag_id = (int32_t)c->name,
                           .allocator_id = (int32_t)*allocator,
                           .device = (int16_t)b->device,
                           .op = (uint8_t)op,
                           .kind = TIDE_KIND_DEFAULT};
    return tide__new_trace_event(b->out, &e, false, err);
}

// ---- blocks by address ----

static tide_status end_live(tide__memray_blocks *b, live *k, const tide__memray_call *c, tide_error *err) {
    tide__memray_call end = *c;
    end.allocator = (tide__memray_allocator)k->allocator;
    end.bytes = (uint64_t)k->bytes;
    end.name = k->name;
    TIDE_TRY(put(b, TIDE_MEM_FREE_COMPLETED, k->block_id, &end, err));
    tide_map_take(&b->live, k);
    return TIDE_OK;
}

static tide_status allocate(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    if (c->address == 0) return put(b, TIDE_MEM_OOM, 0, c, err); // Python's own allocators gave nothing
    live *old = tide_map_find(&b->live, c->address + 1);
    if (old != NULL) { // its free is not in the file
        TIDE_TRY(end_live(b, old, c, err));
        b->report->n_contradictions++;
    }
    const live k = {.key = c->address + 1,
                    .block_id = ++b->last_block,
                    .bytes = (int64_t)c->bytes,
                    .name = c->name,
                    .allocator = c->allocator};
    if (!tide_map_put(&b->live, &k)) return no_memory(b, err);
    b->report->n_blocks++;
    return put(b, TIDE_MEM_ALLOC, k.block_id, c, err);
}

static tide_status release(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    live *k = tide_map_find(&b->live, c->address + 1);
    if (k != NULL) return end_live(b, k, c, err);
    b->report->n_unknown_frees++;
    return TIDE_OK;
}

// ---- mapped ranges ----

static tide_status take_place(tide__memray_blocks *b, uint32_t *place, tide_error *err) {
    if (b->free_range > 0) {
        *place = b->free_range - 1;
        b->free_range = b->ranges[*place].free_next;
        return TIDE_OK;
    }
    if (b->n_ranges >= UINT32_MAX - 1) return no_memory(b, err);
    TIDE_TRY(TIDE_GROW(&b->ranges, &b->cap_ranges, b->n_ranges + 1, err, "to read '%s'", b->path));
    *place = (uint32_t)b->n_ranges++;
    return TIDE_OK;
}

static tide_status begin_range(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    tide_block_span span = {.begin = c->address, .bytes = c->bytes};
    TIDE_ASSERT(c->bytes > 0 && c->address <= UINT64_MAX - c->bytes);
    TIDE_TRY(take_place(b, &span.id, err));
    b->ranges[span.id] =
        (tide__memray_range){.block_id = ++b->last_block, .scope = c->scope, .name = c->name, .thread = c->thread};
    if (tide_block_tree_insert(&b->mapped, span) != TIDE_OK) return no_memory(b, err);
    return put(b, TIDE_MEM_ALLOC, b->last_block, c, err);
}

/// A range that has bytes of [begin, end).
static bool find_range(const tide__memray_blocks *b, uint64_t begin, uint64_t end, tide_block_span *out) {
    const tide_block_span key = {.begin = begin};
    if (tide_block_tree_before(&b->mapped, key, out) && out->begin + out->bytes > begin) return true;
    return tide_block_tree_at_least(&b->mapped, key, out) && out->begin < end;
}

/// [begin, end) is mapped no more. *n: ranges that had a part of it.
static tide_status cut(tide__memray_blocks *b, uint64_t begin, uint64_t end, const tide__memray_call *c, uint64_t *n,
                       tide_error *err) {
    tide_block_span old;
    for (*n = 0; find_range(b, begin, end, &old); ++*n) {
        const tide__memray_range r = b->ranges[old.id];
        const uint64_t old_end = old.begin + old.bytes;
        tide__memray_call part = {.allocator = TIDE__MEMRAY_MMAP,
                                  .address = old.begin,
                                  .bytes = old.bytes,
                                  .t_ns = c->t_ns,
                                  .name = r.name,
                                  .thread = c->thread};
        TIDE_TRY(put(b, TIDE_MEM_FREE_COMPLETED, r.block_id, &part, err));
        tide_block_tree_remove(&b->mapped, old);
        b->ranges[old.id].free_next = b->free_range;
        b->free_range = old.id + 1;
        part.scope = r.scope;
        part.thread = r.thread;
        part.bytes = begin - old.begin;
        if (old.begin < begin) TIDE_TRY(begin_range(b, &part, err));
        part.address = end;
        part.bytes = old_end - end;
        if (end < old_end) TIDE_TRY(begin_range(b, &part, err));
    }
    return TIDE_OK;
}

static tide_status map(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    uint64_t n;
    TIDE_TRY(cut(b, c->address, c->address + c->bytes, c, &n, err)); // put in the place of others
    b->report->n_contradictions += n;
    b->report->n_blocks++;
    return begin_range(b, c, err);
}

static tide_status unmap(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    uint64_t n = 0;
    const uint64_t end = c->bytes <= UINT64_MAX - c->address ? c->address + c->bytes : UINT64_MAX;
    if (end > c->address) TIDE_TRY(cut(b, c->address, end, c, &n, err));
    b->report->n_unknown_frees += n == 0;
    return TIDE_OK;
}

tide_status tide__memray_take_call(tide__memray_blocks *b, const tide__memray_call *c, tide_error *err) {
    b->report->n_events++;
    switch (calls[c->allocator].kind) {
    case ALLOCATES:
        return allocate(b, c, err);
    case FREES:
        return release(b, c, err);
    case MAPS:
        return map(b, c, err);
    default:
        TIDE_ASSERT(calls[c->allocator].kind == UNMAPS);
        return unmap(b, c, err);
    }
}

bool tide__memray_gives(uint64_t allocator) {
    return allocator < TIDE__MEMRAY_ALLOCATORS && (calls[allocator].kind == ALLOCATES || calls[allocator].kind == MAPS);
}

// ---- sums ----

tide_status tide__memray_begin_sum(tide__memray_blocks *b, const tide__memray_call *c, int64_t *id, tide_error *err) {
    *id = ++b->last_block;
    b->report->n_blocks++;
    return put(b, TIDE_MEM_ALLOC, *id, c, err);
}

tide_status tide__memray_end_sum(tide__memray_blocks *b, int64_t id, const tide__memray_call *c, tide_error *err) {
    return put(b, TIDE_MEM_FREE_COMPLETED, id, c, err);
}
