// SPDX-License-Identifier: MIT
//
// The events of one thread, made from a seed. See kill_stream.h.
#include "tests/profiler/kill_stream.h"

#include <stdio.h>
#include <string.h>

enum { N_ALLOCATORS = 5, N_POOL_BLOCKS = 4, POOL_BLOCK_BYTES = 1 << 20 };
static const char *const allocators[N_ALLOCATORS] = {"cpu", "cpu_caching", "arena", "stream_caching", "pool"};

tide_device kill_device(uint8_t device) { return device == 0 ? TIDE_CPU : (tide_device){TIDE_DEVICE_CUDA, device - 1}; }

void kill_stream_init(kill_stream *s, uint64_t seed, uint32_t thread, uint32_t n_threads) {
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->thread = thread;
    s->peer = (thread + n_threads - 1) % n_threads;
    s->rng.state = seed * 977 + thread;
}

/// Log-uniform up to 1 MiB, and now and then nothing at all or more than any machine has.
static uint64_t some_bytes(tide_rng *rng) {
    const uint64_t r = tide_rng_u64(rng);
    if (r % 509 == 0) return 0;
    if (r % 1021 == 0) return UINT64_C(1) << 40;
    return 1 + (r >> 8) % (UINT64_C(1) << (1 + (r >> 32) % 20));
}

/// The first 2^41 bytes of address space of a thread are its slots', then come what it hands over, pools, segments.
enum { AT_SLOTS = 0, AT_HANDED = 2, AT_POOLS = 3, AT_SEGMENTS = 4 };
static uint64_t address_of(uint32_t thread, int region, uint64_t i) {
    return ((uint64_t)(thread + 1) << 44) + ((uint64_t)region << 41) + (i << 25);
}
/// Numbers of blocks: by thread, and apart what it hands over.
static uint64_t id_of(uint32_t thread, bool handed, uint64_t i) {
    return ((uint64_t)(thread + 1) << 42) + ((uint64_t)handed << 41) + i + 1;
}

static kill_block block_of(tide_rng *rng, uint64_t id, uint64_t address) {
    kill_block b = {.id = id, .address = address, .requested_bytes = some_bytes(rng)};
    const uint64_t r = tide_rng_u64(rng);
    b.reserved_bytes = (b.requested_bytes + 63) / 64 * 64;
    b.device = r % 4 == 0 ? 1 + (r >> 8) % 2 : 0;
    b.kind = (uint8_t)((r >> 16) % (b.device == 0 ? (uint64_t)TIDE_N_KINDS : (uint64_t)TIDE_KIND_HOST_PINNED));
    b.stream = b.device == 0 ? 0 : r >> 32 | UINT64_C(1) << 63;
    return b;
}

/// Block `i` that `thread` hands over: known to both without a word.
static kill_block handed(uint64_t seed, uint32_t thread, uint64_t i) {
    tide_rng rng = {.state = seed ^ ((uint64_t)thread << 56) ^ (i * UINT64_C(0x9e3779b97f4a7c15))};
    return block_of(&rng, id_of(thread, true, i), address_of(thread, AT_HANDED, i % 1024));
}

static void put_scope(const kill_stream *s, kill_step *out) {
    if (s->depth > 0) out->scope = s->scopes[s->depth - 1];
}

/// Texts: some that come back all the time, and one new text in 1024 events.
static void put_tag(kill_stream *s, kill_step *out) {
    const uint64_t r = tide_rng_u64(&s->rng) >> 20;
    if (r % 8 == 0) return; // no tag
    if (r % 8 == 1)
        snprintf(out->tag, sizeof out->tag, "new.%u.%u", (unsigned)s->thread, (unsigned)(s->n / 1024));
    else
        snprintf(out->tag, sizeof out->tag, "tensor_%u", (unsigned)(r >> 8) % 100);
}

static void scope_step(kill_stream *s, kill_step *out) {
    const uint64_t r = tide_rng_u64(&s->rng) >> 11;
    if (s->depth == KILL_DEPTH || (s->depth > 0 && r % 2 == 0)) {
        out->op = KILL_SCOPE_LEAVE;
        out->scope = s->scopes[--s->depth];
        return;
    }
    kill_scope *scope = &s->scopes[s->depth];
    out->op = KILL_SCOPE_ENTER;
    scope->kind = s->depth == 0 ? TIDE_SCOPE_REGION : s->depth == 1 ? TIDE_SCOPE_RUN : TIDE_SCOPE_OPERATOR;
    scope->index = s->depth == 0 ? -1 : (int32_t)((r >> 8) % 8);
    snprintf(scope->name, sizeof scope->name, "%s_%u",
             s->depth == 0   ? "phase"
             : s->depth == 1 ? "model"
                             : "op",
             (unsigned)(r >> 16) % 4);
    s->depth++;
    out->scope = *scope;
}

static void slot_step(kill_stream *s, kill_step *out) {
    const uint64_t r = tide_rng_u64(&s->rng);
    const uint64_t slot = (r >> 8) % KILL_SLOTS;
    kill_block *b = &s->slots[slot];
    if (b->id == 0) {
        *b = block_of(&s->rng, id_of(s->thread, false, s->n_blocks), address_of(s->thread, AT_SLOTS, slot));
        s->n_blocks++;
        out->op = TIDE_MEM_ALLOC;
        out->block = *b;
    } else if (!b->is_requested && r % 2 == 0) {
        b->is_requested = true;
        out->op = TIDE_MEM_FREE_REQUESTED;
        out->block = *b;
    } else {
        out->op = TIDE_MEM_FREE_COMPLETED;
        out->block = *b;
        b->id = 0;
    }
    out->block.is_requested = false;
    if (out->op == TIDE_MEM_ALLOC) b->is_requested = false;
}

static void pool_step(kill_stream *s, kill_step *out, uint64_t at) {
    // two places by turns: in another process's memory a pool may lie there at the same time
    const uint64_t pool = address_of(s->thread, AT_POOLS, (s->n / 1024 - (at == N_POOL_BLOCKS)) % 2);
    out->allocator = "pool";
    if (at == N_POOL_BLOCKS) {
        out->op = TIDE_MEM_POOL_DISCARD;
        out->block = (kill_block){.address = pool, .reserved_bytes = (uint64_t)N_POOL_BLOCKS * POOL_BLOCK_BYTES};
        return;
    }
    out->op = TIDE_MEM_ALLOC;
    out->block = block_of(&s->rng, id_of(s->thread, false, s->n_blocks++), pool + at * POOL_BLOCK_BYTES);
    out->block.device = 0;
    out->block.stream = 0;
}

static void rare_step(kill_stream *s, kill_step *out, uint64_t which) {
    const uint64_t i = s->n / 4096;
    if (which == 0) {
        out->op = TIDE_MEM_OOM;
        out->block = block_of(&s->rng, 0, 0);
        out->block.reserved_bytes = 0;
    } else if (which == 1 || which == 2) {
        out->op = which == 1 ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_SEGMENT_FREE;
        out->block = (kill_block){.address = address_of(s->thread, AT_SEGMENTS, i % 1024),
                                  .reserved_bytes = 1 << 21,
                                  .requested_bytes = 1 << 21};
    } else {
        out->op = TIDE_MEM_SNAPSHOT;
        out->block = (kill_block){0};
        snprintf(out->tag, sizeof out->tag, "mark_%u", (unsigned)(i % 16));
    }
}

void kill_stream_next(kill_stream *s, kill_step *out) {
    const uint64_t n = s->n;
    out->tag[0] = '\0';
    out->scope = (kill_scope){.index = -1};
    out->block = (kill_block){0};
    out->wait_for = 0;
    out->allocator = "";
    if (n % 32 == 20) {
        scope_step(s, out);
        s->n++;
        return;
    }
    put_tag(s, out);
    out->allocator = allocators[tide_rng_below(&s->rng, N_ALLOCATORS)];
    if (n % 16 == 5) {
        out->op = TIDE_MEM_ALLOC;
        out->block = handed(s->seed, s->thread, n / 16);
    } else if (n % 16 == 13 && n / 16 >= KILL_LAG) {
        out->op = TIDE_MEM_FREE_COMPLETED;
        out->block = handed(s->seed, s->peer, n / 16 - KILL_LAG);
        out->wait_for = (n / 16 - KILL_LAG) * 16 + 6;
    } else if (n % 1024 >= 710 && n % 1024 < 710 + N_POOL_BLOCKS) {
        pool_step(s, out, n % 1024 - 710);
    } else if (n % 1024 == 302 && n > 1024) {
        pool_step(s, out, N_POOL_BLOCKS);
    } else if (n % 4096 >= 80 && n % 4096 < 84) {
        rare_step(s, out, n % 4096 - 80);
    } else {
        slot_step(s, out);
    }
    put_scope(s, out);
    s->n++;
}
