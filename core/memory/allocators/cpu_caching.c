// SPDX-License-Identifier: MIT
//
// cpu_caching: buckets that keep freed blocks for the next request of the same bucket (LT-23, LT-24).
//
// A request is rounded up to a size class (size_classes.h), 64 B at the least and never below its alignment. A
// freed block goes to the front of its bucket; the link to the next one lies in the freed memory itself:
//
//     bucket  0 (64 B)   -> NULL
//     bucket  1 (128 B)  -> [next, 128|.....] -> [next, 128|.....] -> NULL
//     ...
//     bucket 14 (1 MiB)  -> [next, 1 MiB|...................] -> NULL
//
//     live block of a 100 B request:   |<-- 100 -->|.....|
//                                      |<---- 128 ------>| active; the dots are internal fragmentation
//
// Blocks of a bucket are aligned to a page, smaller ones to their size: that is why any block of it serves any request
// that is rounded into it. Rare requests with more than a page of alignment look for a block that happens to fit.
//
// There are eight such sets of buckets, the shards; a thread uses the one that its number names, so that two threads
// seldom want the same lock or cache line. What its own shard lacks is looked for in the others before the system is
// asked. When the system refuses, all cached blocks are given back and the request is tried once more.
//
// The numbers: active is live blocks at their rounded size, cached is the sum over the free lists, reserved is
// active + cached, largest free is the largest block in any list. All are exact at every moment, peaks too, although
// the shards count apart: see core/memory/escrow.h.
//
// Under AddressSanitizer a freed block is off limits but for its link.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/size_classes.h"
#include "core/memory/escrow.h"
#include "core/memory/poison.h"
#include "core/memory/short_lock.h"
#include "core/memory/thread_number.h"

enum { N_SHARDS = 8, CACHE_LINE_BYTES = 64, PAGE_BYTES = 4096 };

/// Lies in the freed memory itself. `bytes` is the block's size in the last bucket, and nothing in the others.
typedef struct free_node {
    struct free_node *next;
    size_t bytes;
} free_node;

/// What one thread (or every eighth) allocates and frees. A block may be freed in another shard than it came from: the
/// bytes of a shard may go below zero, their sum over all shards is what is out.
typedef struct shard {
    tide__lock lock;              // guards everything below
    bool is_used;                 // counted among the first n_used
    tide__part requested, active; // bytes
    uint64_t n_allocs, n_frees;
    _Alignas(CACHE_LINE_BYTES) free_node *heads[TIDE__N_CLASSES];
} shard;

typedef struct caching {
    tide_size_classes sizes;
    void *whole; // the host memory that this lies in, aligned
    // Changed with `gate` and the locks of all shards in use held, and read with either.
    _Alignas(CACHE_LINE_BYTES) tide__lock gate;
    unsigned n_used; // shards in use are the first n_used
    uint64_t reserved_bytes;
    uint64_t peak_requested_bytes, peak_active_bytes, peak_reserved_bytes;
    uint64_t n_system, n_failed;
    _Alignas(CACHE_LINE_BYTES) shard shards[N_SHARDS];
} caching;

/// Gate and all shards in use, in this order; while they are held no number changes.
static void lock_all(caching *c) {
    tide__lock_take(&c->gate);
    for (unsigned i = 0; i < c->n_used; i++) tide__lock_take(&c->shards[i].lock);
}

static void unlock_all(caching *c) {
    for (unsigned i = c->n_used; i-- > 0;) tide__lock_give(&c->shards[i].lock);
    tide__lock_give(&c->gate);
}

/// The same, with `s` in use afterwards.
static void lock_all_with(caching *c, shard *s) {
    lock_all(c);
    TIDE_ASSERT(s >= c->shards && s < c->shards + N_SHARDS && c->n_used <= N_SHARDS);
    TIDE_ASSERT(s->is_used == (s < c->shards + c->n_used));
    while (!s->is_used) { // the shards between become used too: theirs are zeros
        shard *next = &c->shards[c->n_used++];
        TIDE_ASSERT(!next->is_used && next->n_allocs == 0 && next->requested.now == 0 && next->active.now == 0);
        tide__lock_take(&next->lock);
        next->is_used = true;
    }
}

// ---- limits and peaks: all locks are held ----

static uint64_t total_requested(const caching *c) {
    return tide__escrow_sum(&c->shards[0].requested, sizeof(shard), c->n_used);
}

static uint64_t total_active(const caching *c) {
    return tide__escrow_sum(&c->shards[0].active, sizeof(shard), c->n_used);
}

/// Count an allocation of shard `s`, whatever its limits say.
static void count_alloc(caching *c, shard *s, size_t requested_bytes, size_t active_bytes) {
    const unsigned own_i = (unsigned)(s - c->shards);
    TIDE_ASSERT(s->is_used && requested_bytes <= active_bytes);
    s->requested.now += (int64_t)requested_bytes;
    s->active.now += (int64_t)active_bytes;
    s->n_allocs++;
    tide__escrow_settle(&c->shards[0].requested, sizeof *s, c->n_used, own_i, &c->peak_requested_bytes);
    tide__escrow_settle(&c->shards[0].active, sizeof *s, c->n_used, own_i, &c->peak_active_bytes);
}

// ---- blocks ----

static bool is_aligned(const void *ptr, size_t align_bytes) { return ((uintptr_t)ptr & (align_bytes - 1)) == 0; }

/// What every block of the class is aligned to: a page, or as much as its size has.
static size_t natural_align(size_t class_bytes) {
    const size_t of_size = class_bytes & (~class_bytes + 1);
    return of_size < PAGE_BYTES ? of_size : PAGE_BYTES;
}

static size_t node_bytes(const caching *c, const free_node *node, unsigned index) {
    return index == TIDE__CLASS_HUGE ? node->bytes : tide__size_class_bytes_at(c->sizes, index);
}

/// Unlink the first block of the list that fits; NULL: none.
static free_node *take_from(shard *s, tide__size_class class, size_t align_bytes) {
    for (free_node **link = &s->heads[class.index]; *link != NULL; link = &(*link)->next) {
        free_node *node = *link;
        if (class.index == TIDE__CLASS_HUGE && node->bytes != class.bytes) continue;
        if (!is_aligned(node, align_bytes)) continue;
        TIDE_ASSERT(is_aligned(node, natural_align(class.bytes)));
        *link = node->next;
        return node;
    }
    return NULL;
}

/// The shard's own block, or another's; all locks are held.
static free_node *take_cached(caching *c, shard *s, tide__size_class class, size_t align_bytes) {
    free_node *node = take_from(s, class, align_bytes);
    for (unsigned i = 0; node == NULL && i < c->n_used; i++) node = take_from(&c->shards[i], class, align_bytes);
    return node;
}

/// Give every cached block back to the system. No lock is held.
static void drop_cached(caching *c) {
    // The lists are taken under the locks and freed without them: the system may take its time.
    free_node *lists[N_SHARDS][TIDE__N_CLASSES];
    lock_all(c);
    const unsigned n_lists = c->n_used;
    for (unsigned i = 0; i < n_lists; i++) {
        for (unsigned k = 0; k < TIDE__N_CLASSES; k++) {
            lists[i][k] = c->shards[i].heads[k];
            c->shards[i].heads[k] = NULL;
        }
    }
    TIDE_ASSERT(total_active(c) <= c->reserved_bytes);
    c->reserved_bytes = total_active(c);
    unlock_all(c);
    for (unsigned i = 0; i < n_lists; i++) {
        for (unsigned k = 0; k < TIDE__N_CLASSES; k++) {
            for (free_node *node = lists[i][k]; node != NULL;) {
                free_node *const next = node->next;
                if (TIDE__ASAN) tide_asan_unpoison(node, node_bytes(c, node, k));
                tide__system_free(node);
                node = next;
            }
        }
    }
}

static void *take_from_system(caching *c, size_t bytes, size_t align_bytes) {
    const size_t natural = natural_align(bytes);
    const size_t align = align_bytes > natural ? align_bytes : natural;
    void *data = tide__system_alloc(bytes, align);
    if (data != NULL) return data;
    drop_cached(c);
    return tide__system_alloc(bytes, align);
}

/// What the shard's own bucket cannot serve within the limits: a block of another shard or of the system. NULL: none.
static __attribute__((noinline)) void *alloc_slow(caching *c, shard *s, const tide_alloc_request *req,
                                                  tide__size_class class) {
    const size_t align = req->align_bytes != 0 ? req->align_bytes : 1;
    lock_all_with(c, s);
    free_node *node = class.bytes != 0 ? take_cached(c, s, class, align) : NULL;
    if (node != NULL) count_alloc(c, s, req->size_bytes, class.bytes);
    unlock_all(c);
    if (node != NULL) return node;
    void *data = class.bytes != 0 ? take_from_system(c, class.bytes, align) : NULL;
    lock_all(c);
    if (data != NULL) {
        c->n_system++;
        c->reserved_bytes += class.bytes;
        if (c->reserved_bytes > c->peak_reserved_bytes) c->peak_reserved_bytes = c->reserved_bytes;
        count_alloc(c, s, req->size_bytes, class.bytes);
    } else {
        c->n_failed++;
    }
    unlock_all(c);
    return data;
}

// ---- counters and check: all locks are held ----

/// 0 when nothing is cached.
static size_t largest_free(const caching *c) {
    size_t largest = 0;
    for (unsigned i = 0; i < c->n_used; i++) {
        // Blocks of one bucket are alike, except for the last one's, and buckets rise in size.
        unsigned k = TIDE__N_CLASSES;
        while (k > 0 && c->shards[i].heads[k - 1] == NULL) k--;
        if (k == 0) continue;
        for (const free_node *node = c->shards[i].heads[k - 1]; node != NULL; node = node->next) {
            const size_t bytes = node_bytes(c, node, k - 1);
            if (bytes > largest) largest = bytes;
            if (k - 1 != TIDE__CLASS_HUGE) break;
        }
    }
    return largest;
}

/// The numbers; all locks are held.
static void sum_up(const caching *c, tide_allocator_stats *out) {
    *out = (tide_allocator_stats){.requested_bytes = total_requested(c),
                                  .active_bytes = total_active(c),
                                  .reserved_bytes = c->reserved_bytes,
                                  .largest_free_bytes = largest_free(c),
                                  .headroom_bytes = TIDE_UNKNOWN_BYTES,
                                  .peak_requested_bytes = c->peak_requested_bytes,
                                  .peak_active_bytes = c->peak_active_bytes,
                                  .peak_reserved_bytes = c->peak_reserved_bytes,
                                  .n_failed = c->n_failed,
                                  .n_system = c->n_system};
    out->cached_bytes = out->reserved_bytes - out->active_bytes;
    for (unsigned i = 0; i < c->n_used; i++) {
        out->n_allocs += c->shards[i].n_allocs;
        out->n_frees += c->shards[i].n_frees;
    }
    out->n_hits = out->n_allocs - out->n_system;
}

/// Adds the list's bytes to *sum, which may reach `cached_bytes` and no more: a list bent into a ring ends there.
static tide_status walk_list(const caching *c, const free_node *head, unsigned index, uint64_t cached_bytes,
                             uint64_t *sum, tide_error *err) {
    for (const free_node *node = head; node != NULL; node = node->next) {
        const size_t bytes = node_bytes(c, node, index);
        if (tide__size_class_of(c->sizes, bytes).bytes != bytes || !is_aligned(node, natural_align(bytes)) ||
            bytes > cached_bytes - *sum)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': the free list of %zu B is damaged at %p",
                             bytes, (const void *)node);
        *sum += bytes;
    }
    return TIDE_OK;
}

static tide_status check_limits(const caching *c, tide_error *err) {
    int64_t requested = 0, active = 0;
    for (unsigned i = 0; i < c->n_used; i++) {
        const shard *s = &c->shards[i];
        if (s->requested.now > s->requested.limit || s->active.now > s->active.limit)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': shard %u is past its limit", i);
        requested += s->requested.limit;
        active += s->active.limit;
    }
    if (requested == (int64_t)c->peak_requested_bytes && active == (int64_t)c->peak_active_bytes) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "allocator 'cpu_caching': limits of %" PRId64 " and %" PRId64 " B, peaks of %" PRIu64
                     " and %" PRIu64 " B",
                     requested, active, c->peak_requested_bytes, c->peak_active_bytes);
}

/// Walks all lists; all locks are held.
static tide_status check_locked(const caching *c, tide_error *err) {
    tide_allocator_stats s;
    sum_up(c, &s);
    TIDE_TRY(tide__counters_check(&s, "cpu_caching", err));
    TIDE_TRY(check_limits(c, err));
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->n_used; i++) {
        for (unsigned k = 0; k < TIDE__N_CLASSES; k++)
            TIDE_TRY(walk_list(c, c->shards[i].heads[k], k, s.cached_bytes, &sum, err));
    }
    if (sum == s.cached_bytes) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': %" PRIu64 " B in the lists, %" PRIu64 " B cached",
                     sum, s.cached_bytes);
}

static tide_status check(caching *c, tide_error *err) {
    lock_all(c);
    const tide_status st = check_locked(c, err);
    unlock_all(c);
    return st;
}

static shard *shard_of(caching *c, uint32_t thread) { return &c->shards[(thread - 1) % N_SHARDS]; }

/// The block that waits in the shard's own bucket, counted; NULL: there is none, or a limit is in the way. Inlined into
/// both ways below. The shard's lock is held.
static inline free_node *take_own(shard *s, size_t size_bytes, size_t align_bytes, tide__size_class class) {
    free_node *node = s->heads[class.index];
    if (__builtin_expect(node == NULL || !tide__part_has_room(&s->requested, size_bytes) ||
                             !tide__part_has_room(&s->active, class.bytes) || class.index == TIDE__CLASS_HUGE ||
                             align_bytes > PAGE_BYTES,
                         0))
        return NULL;
    TIDE_ASSERT(class.bytes >= size_bytes && class.index < TIDE__CLASS_HUGE);
    TIDE_ASSERT(is_aligned(node, natural_align(class.bytes)) && s->is_used);
    s->heads[class.index] = node->next;
    s->requested.now += (int64_t)size_bytes;
    s->active.now += (int64_t) class.bytes;
    s->n_allocs++;
    return node;
}

static inline void put_own(shard *s, free_node *node, size_t requested_bytes, size_t bytes, unsigned index) {
    TIDE_ASSERT(requested_bytes <= bytes && index <= TIDE__CLASS_HUGE && s->heads[index] != node);
    TIDE_ASSERT(is_aligned(node, natural_align(bytes)) && s->is_used);
    node->next = s->heads[index];
    if (index == TIDE__CLASS_HUGE) node->bytes = bytes;
    s->heads[index] = node;
    s->requested.now -= (int64_t)requested_bytes;
    s->active.now -= (int64_t)bytes;
    s->n_frees++;
}

static __attribute__((noinline)) tide_status alloc_away(caching *c, const tide_alloc_request *req, tide_memory *out,
                                                        tide_error *err) {
    const size_t size = req->size_bytes, align = req->align_bytes;
    const tide__size_class class = tide__size_class_of(c->sizes, size > align ? size : align);
    shard *s = shard_of(c, tide__thread_number());
    tide__lock_take(&s->lock);
    void *data = take_own(s, size, align, class);
    tide__lock_give(&s->lock);
    if (data == NULL) data = alloc_slow(c, s, req, class);
    if (data == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "allocator 'cpu_caching': the system has no block for %zu B (alignment %zu) of '%s'", size,
                         align, req->tag != NULL ? req->tag : "(no name)");
    if (TIDE__ASAN) tide_asan_unpoison(data, class.bytes);
    out->data = data;
    out->reserved_bytes = class.bytes;
    TIDE_ASSERT_SLOW(check(c, NULL) == TIDE_OK);
    return TIDE_OK;
}

// The quick ways call other functions only at their end, so that they keep no registers: what a function saves on its
// stack is a good part of such a path.

static tide_status caching_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    caching *c = self;
    const size_t size = req->size_bytes, align = req->align_bytes, need = size > align ? size : align;
    if (__builtin_expect(need > TIDE__CLASS_SMALL_BYTES, 0)) return alloc_away(c, req, out, err);
    const tide__size_class class = tide__size_class_of_small(need);
    const uint32_t me = tide__thread_number_or_none();
    shard *s = shard_of(c, me);
    if (__builtin_expect(me == 0, 0) || !tide__lock_try(&s->lock)) return alloc_away(c, req, out, err);
    free_node *node = take_own(s, size, align, class);
    tide__lock_give(&s->lock);
    if (__builtin_expect(node == NULL, 0)) return alloc_away(c, req, out, err);
    if (TIDE__ASAN) tide_asan_unpoison(node, class.bytes);
    out->data = node;
    out->reserved_bytes = class.bytes;
    return TIDE_OK;
}

static __attribute__((noinline)) void release_away(caching *c, const tide_memory *mem) {
    const unsigned index = tide__size_class_of(c->sizes, mem->reserved_bytes).index;
    TIDE_ASSERT(tide__size_class_of(c->sizes, mem->reserved_bytes).bytes == mem->reserved_bytes);
    shard *s = shard_of(c, tide__thread_number());
    tide__lock_take(&s->lock);
    if (!s->is_used) {
        tide__lock_give(&s->lock);
        lock_all_with(c, s);
        put_own(s, mem->data, mem->requested_bytes, mem->reserved_bytes, index);
        unlock_all(c);
        return;
    }
    put_own(s, mem->data, mem->requested_bytes, mem->reserved_bytes, index);
    tide__lock_give(&s->lock);
    TIDE_ASSERT_SLOW(check(c, NULL) == TIDE_OK);
}

static void caching_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream; // the calling thread is the CPU's stream: what it did to the memory is done
    caching *c = self;
    const size_t bytes = mem->reserved_bytes;
    if (TIDE__ASAN) tide_asan_poison((free_node *)mem->data + 1, bytes - sizeof(free_node));
    const uint32_t me = tide__thread_number_or_none();
    shard *s = shard_of(c, me);
    if (__builtin_expect(me == 0 || bytes > TIDE__CLASS_SMALL_BYTES, 0) || !tide__lock_try(&s->lock)) {
        release_away(c, mem);
        return;
    }
    if (__builtin_expect(!s->is_used, 0)) {
        tide__lock_give(&s->lock);
        release_away(c, mem);
        return;
    }
    put_own(s, mem->data, mem->requested_bytes, bytes, tide__size_class_of_small(bytes).index);
    tide__lock_give(&s->lock);
}

static void caching_stats(const void *self, tide_allocator_stats *out) {
    caching *c = tide__mutable(self);
    lock_all(c);
    sum_up(c, out);
    TIDE_ASSERT(out->reserved_bytes == out->active_bytes + out->cached_bytes);
    TIDE_ASSERT(out->active_bytes >= out->requested_bytes && out->peak_requested_bytes >= out->requested_bytes);
    unlock_all(c);
}

static void caching_props(const void *self, tide_allocator_props *out) {
    const caching *c = self;
    out->what = c->sizes == TIDE_SIZES_POW2 ? "host memory, freed blocks kept by power of two"
                                            : "host memory, freed blocks kept by size in steps of an eighth";
    out->align_bytes = TIDE__CPU_ALIGN_BYTES;
    out->keeps_freed = true;
}

static void caching_trim(void *self) { drop_cached(self); }

static tide_status caching_check(const void *self, tide_error *err) { return check(tide__mutable(self), err); }

static void caching_destroy(void *self) {
    caching *c = self;
    drop_cached(c);
    tide_host_free(c->whole);
}

static const tide_allocator_ops caching_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                               .name = "cpu_caching",
                                               .alloc = caching_alloc,
                                               .release = caching_release,
                                               .stats = caching_stats,
                                               .props = caching_props,
                                               .destroy = caching_destroy,
                                               .trim = caching_trim,
                                               .check = caching_check};

tide_status tide_cpu_caching_allocator_create_sized(tide_size_classes sizes, tide_allocator **out, tide_error *err) {
    if (sizes != TIDE_SIZES_POW2 && sizes != TIDE_SIZES_STEPS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'cpu_caching': size classes %d are not known", (int)sizes);
    char *whole = tide_host_calloc(1, sizeof(caching) + CACHE_LINE_BYTES);
    if (whole == NULL) return TIDE_NO_MEMORY(err, "for the state of allocator 'cpu_caching'");
    const size_t off = (uintptr_t)whole % CACHE_LINE_BYTES;
    caching *c = (void *)(off == 0 ? whole : whole + (CACHE_LINE_BYTES - off));
    c->sizes = sizes;
    c->whole = whole;
    return tide_allocator_create(&caching_ops, c, TIDE_CPU, out, err);
}

tide_status tide_cpu_caching_allocator_create(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_POW2, out, err);
}
