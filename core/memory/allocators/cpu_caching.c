// SPDX-License-Identifier: MIT
//
// cpu_caching: power-of-two buckets that keep freed blocks for the next request of the same bucket (LT-23, LT-24).
//
// A request is rounded up to a power of two, 64 B at the least and never below its alignment. A freed block goes
// back to the front of its bucket; the link to the next one lies in the freed memory itself:
//
//     bucket  6 (64 B)   -> NULL
//     bucket  7 (128 B)  -> [next|........] -> [next|........] -> NULL
//     ...
//     bucket 20 (1 MiB)  -> [next|......................] -> NULL
//
//     live block of a 100 B request:   |<-- 100 -->|.....|
//                                      |<---- 128 ------>| active; the dots are internal fragmentation
//
// Blocks of a bucket are aligned to their size, up to a page: that is why any block of it serves any request that
// is rounded into it. Rare requests with more than a page of alignment look for a block that happens to fit.
//
// The numbers: active is live blocks at their rounded size, cached is the sum over the free lists, reserved is
// active + cached, largest free is the size of the highest bucket that is not empty. When the system refuses, all
// cached blocks are given back and the request is tried once more.
#include <pthread.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"

enum { MIN_BUCKET = 6, N_BUCKETS = 63, PAGE_BYTES = 4096 };

typedef struct free_node {
    struct free_node *next;
} free_node;

typedef struct bucket {
    free_node *head;
    uint64_t n;
} bucket;

typedef struct caching_state {
    pthread_mutex_t lock; // guards everything below
    bucket buckets[N_BUCKETS];
    tide_allocator_stats stats;
} caching_state;

static size_t bucket_bytes(unsigned bucket_i) { return (size_t)1 << bucket_i; }

/// The bucket whose blocks have at least `bytes`; N_BUCKETS when there is none.
static unsigned bucket_of(size_t bytes) {
    unsigned bucket_i = MIN_BUCKET;
    while (bucket_i < N_BUCKETS && bucket_bytes(bucket_i) < bytes) bucket_i++;
    return bucket_i;
}

static bool is_aligned(const void *ptr, size_t align_bytes) { return ((uintptr_t)ptr & (align_bytes - 1)) == 0; }

/// Unlink the first free block of the bucket that is aligned; NULL: none. The lock is held.
static void *take_cached(caching_state *c, unsigned bucket_i, size_t align_bytes) {
    bucket *b = &c->buckets[bucket_i];
    for (free_node **link = &b->head; *link != NULL; link = &(*link)->next) {
        if (!is_aligned(*link, align_bytes)) continue;
        free_node *node = *link;
        *link = node->next;
        b->n--;
        c->stats.cached_bytes -= bucket_bytes(bucket_i);
        c->stats.n_hits++;
        return node;
    }
    return NULL;
}

/// Give every cached block back to the system. The lock is held.
static void drop_cached(caching_state *c) {
    for (unsigned bucket_i = MIN_BUCKET; bucket_i < N_BUCKETS; bucket_i++) {
        bucket *b = &c->buckets[bucket_i];
        while (b->head != NULL) {
            free_node *node = b->head;
            b->head = node->next;
            tide__system_free(node);
        }
        b->n = 0;
    }
    c->stats.reserved_bytes -= c->stats.cached_bytes;
    c->stats.cached_bytes = 0;
}

/// A fresh block for the bucket. The lock is held.
static void *take_from_system(caching_state *c, unsigned bucket_i, size_t align_bytes) {
    const size_t bytes = bucket_bytes(bucket_i);
    const size_t natural = bytes < PAGE_BYTES ? bytes : PAGE_BYTES;
    const size_t align = align_bytes > natural ? align_bytes : natural;
    void *data = tide__system_alloc(bytes, align);
    if (data == NULL && c->stats.cached_bytes > 0) {
        drop_cached(c);
        data = tide__system_alloc(bytes, align);
    }
    if (data != NULL) tide__count_reserve(&c->stats, bytes);
    return data;
}

static tide_status caching_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    caching_state *c = self;
    const size_t align = req->align_bytes != 0 ? req->align_bytes : 1;
    const unsigned bucket_i = bucket_of(req->size_bytes > align ? req->size_bytes : align);
    void *data = NULL;
    pthread_mutex_lock(&c->lock);
    if (bucket_i < N_BUCKETS) {
        data = take_cached(c, bucket_i, align);
        if (data == NULL) data = take_from_system(c, bucket_i, align);
    }
    if (data != NULL) {
        tide__count_alloc(&c->stats, req->size_bytes, bucket_bytes(bucket_i));
    } else {
        c->stats.n_failed++;
    }
    pthread_mutex_unlock(&c->lock);
    if (data == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "allocator 'cpu_caching': the system has no block for %zu B (alignment %zu) of '%s'",
                         req->size_bytes, align, req->tag != NULL ? req->tag : "(no name)");
    }
    out->data = data;
    out->reserved_bytes = bucket_bytes(bucket_i);
    return TIDE_OK;
}

static void caching_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream; // the calling thread is the CPU's stream: what it did to the memory is done
    caching_state *c = self;
    const unsigned bucket_i = bucket_of(mem->reserved_bytes);
    free_node *node = mem->data;
    pthread_mutex_lock(&c->lock);
    bucket *b = &c->buckets[bucket_i];
    node->next = b->head;
    b->head = node;
    b->n++;
    tide__count_free(&c->stats, mem->requested_bytes, mem->reserved_bytes);
    c->stats.cached_bytes += mem->reserved_bytes;
    pthread_mutex_unlock(&c->lock);
}

static size_t largest_free(const caching_state *c) {
    for (unsigned bucket_i = N_BUCKETS; bucket_i-- > MIN_BUCKET;) {
        if (c->buckets[bucket_i].n > 0) return bucket_bytes(bucket_i);
    }
    return 0;
}

static void caching_stats(const void *self, tide_allocator_stats *out) {
    caching_state *c = tide__mutable(self);
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    out->largest_free_bytes = largest_free(c);
    pthread_mutex_unlock(&c->lock);
}

static void caching_trim(void *self) {
    caching_state *c = self;
    pthread_mutex_lock(&c->lock);
    drop_cached(c);
    pthread_mutex_unlock(&c->lock);
}

/// The list of one bucket: as long as its count says, every node aligned. The lock is held.
static tide_status check_bucket(const bucket *b, unsigned bucket_i, tide_error *err) {
    const size_t bytes = bucket_bytes(bucket_i);
    const size_t natural = bytes < PAGE_BYTES ? bytes : PAGE_BYTES;
    uint64_t n = 0;
    for (const free_node *node = b->head; node != NULL; node = node->next) {
        // Counting stops past n, so that a list bent into a ring is found and not followed for ever.
        if (++n > b->n || !is_aligned(node, natural)) break;
    }
    if (n == b->n) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': the free list of %zu B is damaged", bytes);
}

static tide_status check_locked(const caching_state *c, tide_error *err) {
    uint64_t cached_bytes = 0;
    for (unsigned bucket_i = 0; bucket_i < N_BUCKETS; bucket_i++) {
        TIDE_TRY(check_bucket(&c->buckets[bucket_i], bucket_i, err));
        cached_bytes += c->buckets[bucket_i].n * bucket_bytes(bucket_i);
    }
    tide_allocator_stats s = c->stats;
    s.largest_free_bytes = largest_free(c);
    TIDE_TRY(tide__counters_check(&s, "cpu_caching", err));
    if (cached_bytes != s.cached_bytes || s.reserved_bytes != s.active_bytes + s.cached_bytes)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': lists and counters disagree");
    return TIDE_OK;
}

static tide_status caching_check(const void *self, tide_error *err) {
    caching_state *c = tide__mutable(self);
    pthread_mutex_lock(&c->lock);
    const tide_status st = check_locked(c, err);
    pthread_mutex_unlock(&c->lock);
    return st;
}

static void caching_destroy(void *self) {
    caching_state *c = self;
    drop_cached(c);
    pthread_mutex_destroy(&c->lock);
    tide_host_free(c);
}

static const tide_allocator_ops caching_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                               .name = "cpu_caching",
                                               .alloc = caching_alloc,
                                               .release = caching_release,
                                               .stats = caching_stats,
                                               .destroy = caching_destroy,
                                               .trim = caching_trim,
                                               .check = caching_check};

tide_status tide_cpu_caching_allocator_create(tide_allocator **out, tide_error *err) {
    caching_state *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of allocator 'cpu_caching'");
    pthread_mutex_init(&c->lock, NULL);
    return tide_allocator_create(&caching_ops, c, TIDE_CPU, out, err);
}
