// SPDX-License-Identifier: MIT
//
// Events of made-up programs for the tests of codec, replay, leaves and finish: well-behaved ones, ones that contradict
// themselves, and ones with every field at an extreme.
#ifndef TIDE_TESTS_PROFILER_EVENT_FIXTURE_H
#define TIDE_TESTS_PROFILER_EVENT_FIXTURE_H

#include "core/base/text.h"
#include "profiler/event.h"
#include "tests/tide_test.h"

enum { PROGRAM_MAX_LIVE = 4096 };

/// A program that allocates and frees. Zero-initialise, set what is wanted, then program_next.
typedef struct program {
    tide_rng rng;
    int64_t id, t_ns;                          ///< of the last event
    int64_t n_blocks;                          ///< numbers handed out
    size_t want_live;                          ///< about so many live, below PROGRAM_MAX_LIVE; 0: 50
    int n_devices, n_kinds, n_threads, n_runs; ///< 0: 1; kinds at most 6
    unsigned lies;                             ///< of 1000 events, so many contradict others
    unsigned scopes;                           ///< of 1000 events, so many are of scopes
    unsigned discards;                         ///< of 1000 events, so many end a range of blocks
    unsigned ends;                             ///< of 1000 events, so many end a process
    int64_t n_processes;                       ///< that ended; two others go on
    bool requests;                             ///< frees are requested first, some never complete
    size_t n_live;
    tide__event live[PROGRAM_MAX_LIVE]; ///< allocs; op FREE_REQUESTED once that was asked for
} program;

static inline int64_t program_below(program *p, uint64_t n) { return (int64_t)tide_rng_below(&p->rng, n); }
static inline int64_t program_one_of(program *p, int n) { return 1 + program_below(p, n > 0 ? (uint64_t)n : 1); }

/// What the numbers of the next block count from: with `ends` it is one of two processes'.
static inline int64_t program_base(program *p) {
    return p->ends > 0 ? (p->n_processes + program_below(p, 2)) << TIDE__BLOCK_ID_BITS : 0;
}

static inline tide__event program_alloc(program *p) {
    const int64_t bytes = program_below(p, 5) == 0 ? program_below(p, INT64_C(1) << 32) : program_below(p, 4096);
    tide__event e = {.op = TIDE_MEM_ALLOC,
                     .block_id = program_base(p) + ++p->n_blocks,
                     .kind = (uint8_t)(program_one_of(p, p->n_kinds) - 1),
                     .device = (int16_t)program_one_of(p, p->n_devices),
                     .requested_bytes = bytes,
                     .reserved_bytes = program_below(p, 3) == 0 ? bytes : (bytes + 511) / 512 * 512,
                     .address = 0x7f0000000000 + p->n_blocks * 4096,
                     .stream = program_below(p, 20) == 0 ? program_below(p, 3) : 0,
                     .tag_id = (int32_t)program_below(p, 40),
                     .allocator_id = (int32_t)program_below(p, 3),
                     .scope_id = (int32_t)program_below(p, 9)};
    if (p->n_live < PROGRAM_MAX_LIVE) p->live[p->n_live++] = e;
    return e;
}

static inline void program_forget(program *p, size_t at) { p->live[at] = p->live[--p->n_live]; }

static inline tide__event program_free(program *p) {
    const size_t at = (size_t)program_below(p, p->n_live);
    tide__event e = p->live[at];
    if (p->requests && e.op == TIDE_MEM_ALLOC) {
        e.op = p->live[at].op = TIDE_MEM_FREE_REQUESTED;
    } else {
        e.op = TIDE_MEM_FREE_COMPLETED;
        program_forget(p, at);
    }
    return e;
}

/// All blocks of a device in a range of addresses.
static inline tide__event program_discard(program *p) {
    const int64_t first = 1 + program_below(p, (uint64_t)p->n_blocks + 1), n = program_below(p, 100);
    const tide__event e = {.op = TIDE_MEM_POOL_DISCARD,
                           .device = (int16_t)program_one_of(p, p->n_devices),
                           .address = 0x7f0000000000 + first * 4096,
                           .reserved_bytes = n * 4096};
    for (size_t i = 0; i < p->n_live;) {
        const tide__event *b = &p->live[i];
        if (b->device == e.device && b->block_id >= first && b->block_id < first + n) {
            program_forget(p, i);
        } else {
            i++;
        }
    }
    return e;
}

/// The older one of the two processes that go on.
static inline tide__event program_end(program *p) {
    const tide__event e = {
        .op = TIDE__OP_PROCESS_END, .kind = TIDE__NO_KIND, .block_id = p->n_processes++ << TIDE__BLOCK_ID_BITS};
    for (size_t i = 0; i < p->n_live;) {
        if (p->live[i].block_id >> TIDE__BLOCK_ID_BITS == e.block_id >> TIDE__BLOCK_ID_BITS) {
            program_forget(p, i);
        } else {
            i++;
        }
    }
    return e;
}

static inline tide__event program_lie(program *p) {
    tide__event e = p->n_live > 0 ? p->live[program_below(p, p->n_live)] : program_alloc(p);
    switch (program_below(p, 6)) {
    case 0: // allocated again, as something else
        e.op = TIDE_MEM_ALLOC;
        e.requested_bytes /= 2;
        e.kind = (uint8_t)(program_one_of(p, p->n_kinds) - 1);
        e.device = (int16_t)program_one_of(p, p->n_devices);
        break;
    case 1:
        e.op = TIDE_MEM_FREE_COMPLETED;
        e.block_id = p->n_blocks + 1000;
        break;
    case 2:
        e.op = TIDE_MEM_FREE_REQUESTED;
        e.block_id = 1 + program_below(p, (uint64_t)p->n_blocks);
        break;
    case 3:
        e.op = (uint8_t)(1 + program_below(p, 3));
        e.block_id = 0;
        break;
    case 4:
        e.op = TIDE_MEM_ALLOC;
        e.block_id = ++p->n_blocks;
        e.requested_bytes = INT64_MAX - program_below(p, 100);
        break;
    default:
        e.op = program_below(p, 2) == 0 ? TIDE_MEM_OOM : TIDE_MEM_SEGMENT_ALLOC;
        break;
    }
    return e;
}

static inline tide__event program_scope(program *p) {
    return (tide__event){.op = (uint8_t)(TIDE__OP_SCOPE_ENTER + program_below(p, 2)),
                         .kind = TIDE__NO_KIND,
                         .scope_id = (int32_t)(1 + program_below(p, 8))};
}

static inline tide__event program_next(program *p) {
    const size_t want = p->want_live > 0 ? p->want_live : 50;
    const int64_t dice = program_below(p, 1000);
    tide__event e;
    if (dice < p->lies) {
        e = program_lie(p);
    } else if (dice < p->lies + p->scopes) {
        e = program_scope(p);
    } else if (dice < p->lies + p->scopes + p->discards) {
        e = program_discard(p);
    } else if (dice < p->lies + p->scopes + p->discards + p->ends) {
        e = program_end(p);
    } else if (p->n_live == 0 || (uint64_t)program_below(p, 2 * want) >= p->n_live) {
        e = program_alloc(p);
    } else {
        e = program_free(p);
    }
    e.id = ++p->id;
    e.t_ns = p->t_ns += program_below(p, 3) == 0 ? 0 : program_below(p, 2000);
    e.thread = (int32_t)program_one_of(p, p->n_threads);
    e.run_id = p->n_runs > 0 ? (int32_t)(p->id / 2000 % (p->n_runs + 1)) : 0;
    return e;
}

/// 0, 1, the largest, one less, a power of two or one beside it, or anything: of a number with so many bits.
static inline int64_t extreme(tide_rng *rng, unsigned bits) {
    const uint64_t max = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const uint64_t power = UINT64_C(1) << tide_rng_below(rng, bits);
    switch (tide_rng_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return (int64_t)max;
    case 3:
        return (int64_t)(max - 1);
    case 4:
        return (int64_t)power;
    case 5:
        return (int64_t)(power - 1);
    case 6:
        return (int64_t)((power + 1) & max);
    default:
        return (int64_t)(tide_rng_u64(rng) & max);
    }
}

static const uint8_t all_ops[] = {
#define XX(name, value, text) (value),
    TIDE_MEMORY_OP_MAP(XX) TIDE__TRACE_OP_MAP(XX)
#undef XX
};

/// What only a sample of a device must be.
static inline void become_usage(tide__event *e) {
    e->block_id = 0;
    e->kind = TIDE_KIND_DEFAULT;
    if (e->device == 0) e->device = 1;
    if (e->requested_bytes > e->reserved_bytes) e->requested_bytes = e->reserved_bytes / 2;
}

/// What only a tensor that was sized while running must be.
static inline void become_size(tide__event *e) {
    if (e->kind == TIDE__NO_KIND) e->kind = TIDE_KIND_WORKSPACE;
    if (e->device == 0) e->device = 1;
    if (e->requested_bytes > e->reserved_bytes) e->requested_bytes = e->reserved_bytes / 2;
}

/// An event that is allowed and looks like no other.
static inline tide__event extreme_event(tide_rng *rng) {
    tide__event e = {.op = all_ops[tide_rng_below(rng, sizeof all_ops)],
                     .block_id = extreme(rng, 63),
                     .requested_bytes = extreme(rng, 63),
                     .reserved_bytes = extreme(rng, 63),
                     .address = extreme(rng, 64),
                     .stream = extreme(rng, 64),
                     .run_id = (int32_t)extreme(rng, 31),
                     .thread = (int32_t)extreme(rng, 31),
                     .scope_id = (int32_t)extreme(rng, 31),
                     .tag_id = (int32_t)extreme(rng, 31),
                     .allocator_id = (int32_t)extreme(rng, 31),
                     .device = (int16_t)extreme(rng, 10),
                     .kind = (uint8_t)tide_rng_below(rng, TIDE_N_KINDS)};
    if (e.op <= TIDE_MEM_FREE_COMPLETED && e.device == 0) e.device = 1;
    if (e.op > TIDE_MEM_FREE_COMPLETED && tide_rng_below(rng, 2) == 0) e.kind = TIDE__NO_KIND;
    if (e.op == TIDE_MEM_DEVICE_USAGE) become_usage(&e);
    if (e.op == TIDE_MEM_SIZED) become_size(&e);
    return e;
}

/// All fields, with words for the one that differs.
static inline void assert_event_equal(const tide__event *got, const tide__event *want) {
#define SAME(field)                                                                                                    \
    if (got->field != want->field)                                                                                     \
    fail_msg("event %lld: " #field " is %lld, not %lld", (long long)want->id, (long long)got->field,                   \
             (long long)want->field)
    SAME(id);
    SAME(t_ns);
    SAME(block_id);
    SAME(requested_bytes);
    SAME(reserved_bytes);
    SAME(address);
    SAME(stream);
    SAME(run_id);
    SAME(thread);
    SAME(scope_id);
    SAME(tag_id);
    SAME(allocator_id);
    SAME(device);
    SAME(op);
    SAME(kind);
#undef SAME
}

#endif
