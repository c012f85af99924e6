// SPDX-License-Identifier: MIT
//
// cpu_caching, the rarer half: what concerns all shards at once. See cpu_caching.c.
#include <inttypes.h>

#include "core/memory/allocators/cpu_caching_internal.h"

void tide__caching_lock_all(tide__caching *c) {
    tide__lock_take(&c->gate);
    for (unsigned i = 0; i < c->n_used; i++) tide__lock_take(&c->shards[i].lock);
}

void tide__caching_unlock_all(tide__caching *c) {
    for (unsigned i = c->n_used; i-- > 0;) tide__lock_give(&c->shards[i].lock);
    tide__lock_give(&c->gate);
}

void tide__caching_lock_all_with(tide__caching *c, tide__shard *s) {
    tide__caching_lock_all(c);
    while (!s->is_used) { // the shards between become used too: theirs are zeros
        tide__shard *next = &c->shards[c->n_used++];
        tide__lock_take(&next->lock);
        next->is_used = true;
    }
}

// ---- limits and peaks: all locks are held ----

static uint64_t total_requested(const tide__caching *c) {
    return tide__escrow_sum(&c->shards[0].requested, sizeof(tide__shard), c->n_used);
}

static uint64_t total_active(const tide__caching *c) {
    return tide__escrow_sum(&c->shards[0].active, sizeof(tide__shard), c->n_used);
}

/// Count an allocation of shard `s`, whatever its limits say.
static void count_alloc(tide__caching *c, tide__shard *s, size_t requested_bytes, size_t active_bytes) {
    const unsigned own_i = (unsigned)(s - c->shards);
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
    return of_size < TIDE__PAGE_BYTES ? of_size : TIDE__PAGE_BYTES;
}

static size_t node_bytes(const tide__caching *c, const tide__free_node *node, unsigned index) {
    return index == TIDE__CLASS_HUGE ? node->bytes : tide__size_class_bytes_at(c->sizes, index);
}

/// Unlink the first block of the list that fits; NULL: none.
static tide__free_node *take_from(tide__shard *s, tide__size_class class, size_t align_bytes) {
    for (tide__free_node **link = &s->heads[class.index]; *link != NULL; link = &(*link)->next) {
        tide__free_node *node = *link;
        if (class.index == TIDE__CLASS_HUGE && node->bytes != class.bytes) continue;
        if (!is_aligned(node, align_bytes)) continue;
        *link = node->next;
        return node;
    }
    return NULL;
}

/// The shard's own block, or another's; all locks are held.
static tide__free_node *take_cached(tide__caching *c, tide__shard *s, tide__size_class class, size_t align_bytes) {
    tide__free_node *node = take_from(s, class, align_bytes);
    for (unsigned i = 0; node == NULL && i < c->n_used; i++) node = take_from(&c->shards[i], class, align_bytes);
    return node;
}

static void *take_from_system(tide__caching *c, size_t bytes, size_t align_bytes) {
    const size_t natural = natural_align(bytes);
    const size_t align = align_bytes > natural ? align_bytes : natural;
    void *data = tide__system_alloc(bytes, align);
    if (data != NULL) return data;
    tide__caching_drop(c);
    return tide__system_alloc(bytes, align);
}

void *tide__caching_alloc_slow(tide__caching *c, tide__shard *s, const tide_alloc_request *req,
                               tide__size_class class) {
    const size_t align = req->align_bytes != 0 ? req->align_bytes : 1;
    tide__caching_lock_all_with(c, s);
    tide__free_node *node = class.bytes != 0 ? take_cached(c, s, class, align) : NULL;
    if (node != NULL) count_alloc(c, s, req->size_bytes, class.bytes);
    tide__caching_unlock_all(c);
    if (node != NULL) return node;
    void *data = class.bytes != 0 ? take_from_system(c, class.bytes, align) : NULL;
    tide__caching_lock_all(c);
    if (data != NULL) {
        c->n_system++;
        c->reserved_bytes += class.bytes;
        if (c->reserved_bytes > c->peak_reserved_bytes) c->peak_reserved_bytes = c->reserved_bytes;
        count_alloc(c, s, req->size_bytes, class.bytes);
    } else {
        c->n_failed++;
    }
    tide__caching_unlock_all(c);
    return data;
}

void tide__caching_drop(tide__caching *c) {
    // The lists are taken under the locks and freed without them: the system may take its time.
    tide__free_node *lists[TIDE__N_SHARDS][TIDE__N_CLASSES];
    tide__caching_lock_all(c);
    const unsigned n_lists = c->n_used;
    for (unsigned i = 0; i < n_lists; i++) {
        for (unsigned k = 0; k < TIDE__N_CLASSES; k++) {
            lists[i][k] = c->shards[i].heads[k];
            c->shards[i].heads[k] = NULL;
        }
    }
    c->reserved_bytes = total_active(c);
    tide__caching_unlock_all(c);
    for (unsigned i = 0; i < n_lists; i++) {
        for (unsigned k = 0; k < TIDE__N_CLASSES; k++) {
            for (tide__free_node *node = lists[i][k]; node != NULL;) {
                tide__free_node *const next = node->next;
                if (TIDE__ASAN) tide_asan_unpoison(node, node_bytes(c, node, k));
                tide__system_free(node);
                node = next;
            }
        }
    }
}

// ---- looking: all locks are held ----

/// 0 when nothing is cached.
static size_t largest_free(const tide__caching *c) {
    size_t largest = 0;
    for (unsigned i = 0; i < c->n_used; i++) {
        // Blocks of one bucket are alike, except for the last one's, and buckets rise in size.
        unsigned k = TIDE__N_CLASSES;
        while (k > 0 && c->shards[i].heads[k - 1] == NULL) k--;
        if (k == 0) continue;
        for (const tide__free_node *node = c->shards[i].heads[k - 1]; node != NULL; node = node->next) {
            const size_t bytes = node_bytes(c, node, k - 1);
            if (bytes > largest) largest = bytes;
            if (k - 1 != TIDE__CLASS_HUGE) break;
        }
    }
    return largest;
}

void tide__caching_sum(const tide__caching *c, tide_allocator_stats *out) {
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
static tide_status walk_list(const tide__caching *c, const tide__free_node *head, unsigned index, uint64_t cached_bytes,
                             uint64_t *sum, tide_error *err) {
    for (const tide__free_node *node = head; node != NULL; node = node->next) {
        const size_t bytes = node_bytes(c, node, index);
        if (tide__size_class_of(c->sizes, bytes).bytes != bytes || !is_aligned(node, natural_align(bytes)) ||
            bytes > cached_bytes - *sum)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu_caching': the free list of %zu B is damaged at %p",
                             bytes, (const void *)node);
        *sum += bytes;
    }
    return TIDE_OK;
}

static tide_status check_limits(const tide__caching *c, tide_error *err) {
    int64_t requested = 0, active = 0;
    for (unsigned i = 0; i < c->n_used; i++) {
        const tide__shard *s = &c->shards[i];
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

tide_status tide__caching_check_locked(const tide__caching *c, tide_error *err) {
    tide_allocator_stats s;
    tide__caching_sum(c, &s);
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
