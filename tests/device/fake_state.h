// SPDX-License-Identifier: MIT
//
// The fake device, first part: what it knows, planted failures, and memory. Included by fake_device.h.
#ifndef TIDE_TESTS_DEVICE_FAKE_STATE_H
#define TIDE_TESTS_DEVICE_FAKE_STATE_H

#include <inttypes.h>
#include <pthread.h>

#include "core/base/checked.h"
#include "core/device/backend.h"
#include "tests/tide_test.h"

enum { FAKE_MAX_DEVICES = 8 };

/// The calls that are counted, and that can be told to fail.
#define FAKE_CALL_MAP(XX)                                                                                              \
    XX(MEM_ALLOC)                                                                                                      \
    XX(MEM_FREE)                                                                                                       \
    XX(PINNED_ALLOC)                                                                                                   \
    XX(PINNED_FREE)                                                                                                    \
    XX(COPY)                                                                                                           \
    XX(FILL)                                                                                                           \
    XX(CALL)                                                                                                           \
    XX(STREAM_CREATE)                                                                                                  \
    XX(STREAM_DESTROY)                                                                                                 \
    XX(STREAM_SYNC)                                                                                                    \
    XX(STREAM_WAIT_EVENT)                                                                                              \
    XX(EVENT_CREATE)                                                                                                   \
    XX(EVENT_DESTROY)                                                                                                  \
    XX(EVENT_RECORD)                                                                                                   \
    XX(EVENT_QUERY)                                                                                                    \
    XX(EVENT_SYNC)                                                                                                     \
    XX(CAPTURE_BEGIN)                                                                                                  \
    XX(CAPTURE_END)                                                                                                    \
    XX(CAPTURE_LAUNCH)                                                                                                 \
    XX(CAPTURE_DESTROY)                                                                                                \
    XX(POOL_ALLOC)                                                                                                     \
    XX(POOL_FREE)                                                                                                      \
    XX(POOL_STATS)                                                                                                     \
    XX(VM_RESERVE)                                                                                                     \
    XX(VM_RELEASE)                                                                                                     \
    XX(VM_MAP)                                                                                                         \
    XX(VM_UNMAP)                                                                                                       \
    XX(PATTERN_FILL)                                                                                                   \
    XX(PATTERN_CHECK)

typedef enum fake_call_kind {
#define XX(name) FAKE_##name,
    FAKE_CALL_MAP(XX)
#undef XX
        FAKE_N_CALLS
} fake_call_kind;

typedef struct fake_block {
    struct fake_block *next;
    char *real; ///< where the bytes are
    size_t size_bytes;
    int32_t index;
    bool pinned, pool; ///< pool: counted in the device's pool, which takes its memory in steps
} fake_block;

/// What one vm_map gave.
typedef struct fake_mapping {
    struct fake_mapping *next;
    char *real;
    size_t size_bytes;
} fake_mapping;

/// Reserved addresses.
typedef struct fake_range {
    struct fake_range *next;
    char *real;
    size_t size_bytes;
    int32_t index;
    fake_mapping *mappings; ///< in no order
} fake_range;

/// The pool of one device.
typedef struct fake_pool {
    tide_device_pool_stats stats;
    uint64_t keep_bytes;
} fake_pool;

typedef struct fake_work {
    struct fake_work *next;
    enum {
        FAKE_WORK_COPY,
        FAKE_WORK_FILL,
        FAKE_WORK_CALL,
        FAKE_WORK_MARK,
        FAKE_WORK_WAIT,
        FAKE_WORK_POOL_FREE,
        FAKE_WORK_PATTERN,
        FAKE_WORK_CHECK
    } kind;
    tide_copy_direction direction;
    void *dst;
    const void *src;
    size_t size_bytes;
    unsigned char byte;
    void (*fn)(void *arg);
    void *arg;
    uint64_t stream_key, n; ///< WAIT: until that stream has done n pieces
    uint64_t seed, *n_wrong;
} fake_work;

typedef struct fake_list {
    fake_work *first, **last; ///< last: where the next one is hung
} fake_list;

typedef struct fake_stream {
    struct fake_stream *next;
    uint64_t key; ///< its id; for stream 0 of a device FAKE_DEFAULT_KEY + index
    int32_t index;
    fake_list queue;
    uint64_t n_queued, n_done;
    bool busy; ///< a call of its work is running, without the lock
    bool captured;
    fake_list captured_work;
} fake_stream;

typedef struct fake_event {
    struct fake_event *next;
    tide_event_id id;
    int32_t index;
    uint64_t stream_key, n; ///< 0: never recorded
} fake_event;

typedef struct fake_capture {
    struct fake_capture *next;
    tide_capture_id id;
    int32_t index;
    fake_list work;
} fake_capture;

/// The whole fake; tests read and set the upper part.
typedef struct fake_state {
    tide_device_type type;
    int32_t count;
    uint64_t limit_bytes; ///< per device; beyond: TIDE_ERR_NOMEM
    uint64_t live_bytes[FAKE_MAX_DEVICES], peak_bytes[FAKE_MAX_DEVICES];
    uint64_t n_live_blocks;        ///< all devices, pinned ones included
    uint64_t n_mappings, n_ranges; ///< of reserved addresses
    fake_pool pools[FAKE_MAX_DEVICES];
    uint64_t n_faults;                ///< work on memory that is no live block of the device, frees of unknown memory
    char fault[160];                  ///< the first of them
    uint64_t n_calls[FAKE_N_CALLS];   ///< failed ones included
    uint64_t n_copies[3];             ///< that were taken on, by tide_copy_direction
    tide_stream_id copy_stream;       ///< of the last of them
    int64_t fail_after[FAKE_N_CALLS]; ///< see fake_fail
    int64_t fail_times[FAKE_N_CALLS];
    // the rest is the fake's own
    pthread_mutex_t lock;
    pthread_cond_t calm; ///< some stream is no longer busy
    bool registered, held;
    fake_block *blocks;
    fake_stream *streams;
    fake_event *events;
    fake_capture *captures;
    fake_range *ranges;
} fake_state;

#define FAKE_DEFAULT_KEY (UINT64_MAX - FAKE_MAX_DEVICES)

static fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .calm = PTHREAD_COND_INITIALIZER};

// Small helpers. The lock is held in all that do not say otherwise.

static inline tide_device fake_at(int32_t index) { return (tide_device){fake.type, index}; }

/// A real address as device `index` shows it, and back.
static inline void *fake_show(int32_t index, const void *real) {
    return (void *)((uintptr_t)real ^ ((uintptr_t)1 << 62) ^ ((uintptr_t)index << 56));
}

static TIDE_UNUSED void *fake_new(size_t size_bytes) {
    void *p = calloc(1, size_bytes);
    if (p == NULL) abort();
    return p;
}

static TIDE_UNUSED void fake_fault(const char *what, int32_t index, const void *address, size_t size_bytes) {
    if (fake.n_faults++ == 0) {
        snprintf(fake.fault, sizeof fake.fault, "%s: fake:%" PRId32 ", %zu bytes at %p", what, index, size_bytes,
                 address);
    }
}

/// Count the call; true when it must fail.
static TIDE_UNUSED bool fake_planted(fake_call_kind call) {
    fake.n_calls[call]++;
    if (fake.fail_times[call] == 0) return false;
    if (fake.fail_after[call] > 0) {
        fake.fail_after[call]--;
        return false;
    }
    if (fake.fail_times[call] > 0) fake.fail_times[call]--;
    return true;
}

static TIDE_UNUSED tide_status fake_failed(fake_call_kind call, tide_error *err) {
    static const char *const names[] = {
#define XX(name) #name,
        FAKE_CALL_MAP(XX)
#undef XX
    };
    const bool memory = call == FAKE_MEM_ALLOC || call == FAKE_PINNED_ALLOC || call == FAKE_POOL_ALLOC ||
                        call == FAKE_VM_RESERVE || call == FAKE_VM_MAP;
    return TIDE_FAIL(err, memory ? TIDE_ERR_NOMEM : TIDE_ERR_BACKEND, "fake: %s was told to fail", names[call]);
}

// Memory.

static TIDE_UNUSED tide_status fake_take(int32_t index, size_t size_bytes, size_t align_bytes, bool pinned, void **out,
                                         tide_error *err) {
    uint64_t rounded = 0;
    if (size_bytes == 0 || !tide_is_pow2(align_bytes)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "fake: %zu bytes aligned to %zu", size_bytes, align_bytes);
    }
    const bool fits = tide_align_up(size_bytes, align_bytes, &rounded) && rounded <= PTRDIFF_MAX;
    const bool allowed =
        pinned || (size_bytes <= fake.limit_bytes && fake.live_bytes[index] <= fake.limit_bytes - size_bytes);
    char *real = fits && allowed ? aligned_alloc(align_bytes, (size_t)rounded) : NULL;
    if (real == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "fake:%" PRId32 " has no %zu bytes", index, size_bytes);
    fake_block *b = fake_new(sizeof *b);
    *b = (fake_block){.next = fake.blocks, .real = real, .size_bytes = size_bytes, .index = index, .pinned = pinned};
    fake.blocks = b;
    fake.n_live_blocks++;
    if (!pinned) {
        fake.live_bytes[index] += size_bytes;
        if (fake.live_bytes[index] > fake.peak_bytes[index]) fake.peak_bytes[index] = fake.live_bytes[index];
    }
    *out = pinned ? real : fake_show(index, real);
    return TIDE_OK;
}

static TIDE_UNUSED void fake_give(int32_t index, void *ptr, bool pinned) {
    fake_block **at = &fake.blocks;
    const void *real = pinned ? ptr : fake_show(index, ptr);
    while (*at != NULL && !((*at)->real == real && (*at)->index == index && (*at)->pinned == pinned)) at = &(*at)->next;
    fake_block *b = *at;
    if (b == NULL) {
        fake_fault("free of unknown memory", index, ptr, 0);
        return;
    }
    *at = b->next;
    fake.n_live_blocks--;
    if (!pinned && !b->pool) fake.live_bytes[index] -= b->size_bytes;
    if (b->pool) fake.pools[index].stats.used_bytes -= b->size_bytes;
    free(b->real);
    free(b);
}

/// The mapping that an address lies in; NULL when it lies in none.
static TIDE_UNUSED const fake_mapping *fake_mapping_at(const fake_range *r, uintptr_t real) {
    const fake_mapping *m = r->mappings;
    while (m != NULL && !(real >= (uintptr_t)m->real && real < (uintptr_t)m->real + m->size_bytes)) m = m->next;
    return m;
}

/// All bytes lie in mapped parts of one range.
static TIDE_UNUSED bool fake_is_mapped(int32_t index, uintptr_t real, size_t size_bytes) {
    for (const fake_range *r = fake.ranges; r != NULL; r = r->next) {
        const uintptr_t begin = (uintptr_t)r->real;
        if (r->index != index || real < begin || real - begin >= r->size_bytes) continue;
        const uintptr_t end = real + size_bytes;
        const fake_mapping *m = NULL;
        while (real < end && (m = fake_mapping_at(r, real)) != NULL) real = (uintptr_t)m->real + m->size_bytes;
        return real >= end;
    }
    return false;
}

/// The real bytes behind a device address, or NULL (and a fault) when they are not inside one live block.
static TIDE_UNUSED char *fake_bytes(int32_t index, const void *address, size_t size_bytes) {
    const uintptr_t real = (uintptr_t)fake_show(index, address);
    for (const fake_block *b = fake.blocks; b != NULL; b = b->next) {
        const uintptr_t begin = (uintptr_t)b->real;
        if (b->pinned || b->index != index || real < begin || real - begin > b->size_bytes) continue;
        if (size_bytes <= b->size_bytes - (real - begin)) return b->real + (real - begin);
    }
    if (fake_is_mapped(index, real, size_bytes)) return (char *)fake_show(index, address);
    fake_fault("use of memory that is no block", index, address, size_bytes);
    return NULL;
}

static TIDE_UNUSED tide_status fake_mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes,
                                              void **out, tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const tide_status st = fake_planted(FAKE_MEM_ALLOC) ? fake_failed(FAKE_MEM_ALLOC, err)
                                                        : fake_take(index, size_bytes, align_bytes, false, out, err);
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED void fake_mem_free(void *self, int32_t index, void *ptr) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_MEM_FREE]++;
    fake_give(index, ptr, false);
    pthread_mutex_unlock(&fake.lock);
}

static TIDE_UNUSED tide_status fake_pinned_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes,
                                                 void **out, tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const tide_status st = fake_planted(FAKE_PINNED_ALLOC) ? fake_failed(FAKE_PINNED_ALLOC, err)
                                                           : fake_take(index, size_bytes, align_bytes, true, out, err);
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED void fake_pinned_free(void *self, int32_t index, void *ptr) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_PINNED_FREE]++;
    fake_give(index, ptr, true);
    pthread_mutex_unlock(&fake.lock);
}

#endif
