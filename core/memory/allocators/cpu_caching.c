// SPDX-License-Identifier: MIT
//
// cpu_caching: buckets that keep freed blocks for the next request of the same bucket (LT-23, LT-24).
//
// A request is rounded up to a size class (size_classes_internal.h), 64 B at the least and never below its alignment. A
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
// the shards count apart: see core/memory/escrow_internal.h.
//
// Under AddressSanitizer a freed block is off limits but for its link.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/cpu_caching_internal.h"

static tide__shard *shard_of(tide__caching *c, uint32_t thread) { return &c->shards[(thread - 1) % TIDE__N_SHARDS]; }

/// The block that waits in the shard's own bucket, counted; NULL: there is none, or a limit is in the way. Inlined into
/// both ways below. The shard's lock is held.
static inline tide__free_node *take_own(tide__shard *s, size_t size_bytes, size_t align_bytes, tide__size_class class) {
    tide__free_node *node = s->heads[class.index];
    if (__builtin_expect(node == NULL || !tide__part_has_room(&s->requested, size_bytes) ||
                             !tide__part_has_room(&s->active, class.bytes) || class.index == TIDE__CLASS_HUGE ||
                             align_bytes > TIDE__PAGE_BYTES,
                         0))
        return NULL;
    TIDE_ASSERT(class.bytes >= size_bytes && class.index < TIDE__CLASS_HUGE);
    s->heads[class.index] = node->next;
    s->requested.now += (int64_t)size_bytes;
    s->active.now += (int64_t) class.bytes;
    s->n_allocs++;
    return node;
}

static inline void put_own(tide__shard *s, tide__free_node *node, size_t requested_bytes, size_t bytes,
                           unsigned index) {
    TIDE_ASSERT(requested_bytes <= bytes && index <= TIDE__CLASS_HUGE && s->heads[index] != node);
    node->next = s->heads[index];
    if (index == TIDE__CLASS_HUGE) node->bytes = bytes;
    s->heads[index] = node;
    s->requested.now -= (int64_t)requested_bytes;
    s->active.now -= (int64_t)bytes;
    s->n_frees++;
}

static __attribute__((noinline)) tide_status alloc_away(tide__caching *c, const tide_alloc_request *req,
                                                        tide_memory *out, tide_error *err) {
    const size_t size = req->size_bytes, align = req->align_bytes;
    const tide__size_class class = tide__size_class_of(c->sizes, size > align ? size : align);
    tide__shard *s = shard_of(c, tide__thread_number());
    tide__lock_take(&s->lock);
    void *data = take_own(s, size, align, class);
    tide__lock_give(&s->lock);
    if (data == NULL) data = tide__caching_alloc_slow(c, s, req, class);
    if (data == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "allocator 'cpu_caching': the system has no block for %zu B (alignment %zu) of '%s'", size,
                         align, req->tag != NULL ? req->tag : "(no name)");
    if (TIDE__ASAN) tide_asan_unpoison(data, class.bytes);
    out->data = data;
    out->reserved_bytes = class.bytes;
    return TIDE_OK;
}

// The quick ways call nobody but at their end, so that they keep no registers: what a function saves on its stack is a
// good part of such a path.

static tide_status caching_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    tide__caching *c = self;
    const size_t size = req->size_bytes, align = req->align_bytes, need = size > align ? size : align;
    if (__builtin_expect(need > TIDE__CLASS_SMALL_BYTES, 0)) return alloc_away(c, req, out, err);
    const tide__size_class class = tide__size_class_of_small(need);
    const uint32_t me = tide__thread_number_or_none();
    tide__shard *s = shard_of(c, me);
    if (__builtin_expect(me == 0, 0) || !tide__lock_try(&s->lock)) return alloc_away(c, req, out, err);
    tide__free_node *node = take_own(s, size, align, class);
    tide__lock_give(&s->lock);
    if (__builtin_expect(node == NULL, 0)) return alloc_away(c, req, out, err);
    if (TIDE__ASAN) tide_asan_unpoison(node, class.bytes);
    out->data = node;
    out->reserved_bytes = class.bytes;
    return TIDE_OK;
}

static __attribute__((noinline)) void release_away(tide__caching *c, const tide_memory *mem) {
    const unsigned index = tide__size_class_of(c->sizes, mem->reserved_bytes).index;
    tide__shard *s = shard_of(c, tide__thread_number());
    tide__lock_take(&s->lock);
    if (!s->is_used) {
        tide__lock_give(&s->lock);
        tide__caching_lock_all_with(c, s);
        put_own(s, mem->data, mem->requested_bytes, mem->reserved_bytes, index);
        tide__caching_unlock_all(c);
        return;
    }
    put_own(s, mem->data, mem->requested_bytes, mem->reserved_bytes, index);
    tide__lock_give(&s->lock);
}

static void caching_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream; // the calling thread is the CPU's stream: what it did to the memory is done
    tide__caching *c = self;
    const size_t bytes = mem->reserved_bytes;
    if (TIDE__ASAN) tide_asan_poison((tide__free_node *)mem->data + 1, bytes - sizeof(tide__free_node));
    const uint32_t me = tide__thread_number_or_none();
    tide__shard *s = shard_of(c, me);
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
    tide__caching *c = tide__mutable(self);
    tide__caching_lock_all(c);
    tide__caching_sum(c, out);
    TIDE_ASSERT(out->reserved_bytes == out->active_bytes + out->cached_bytes);
    TIDE_ASSERT(out->active_bytes >= out->requested_bytes && out->peak_requested_bytes >= out->requested_bytes);
    tide__caching_unlock_all(c);
}

static void caching_props(const void *self, tide_allocator_props *out) {
    const tide__caching *c = self;
    out->what = c->sizes == TIDE_SIZES_POW2 ? "host memory, freed blocks kept by power of two"
                                            : "host memory, freed blocks kept by size in steps of an eighth";
    out->align_bytes = TIDE__CPU_ALIGN_BYTES;
    out->keeps_freed = true;
}

static void caching_trim(void *self) { tide__caching_drop(self); }

static tide_status caching_check(const void *self, tide_error *err) {
    tide__caching *c = tide__mutable(self);
    tide__caching_lock_all(c);
    const tide_status st = tide__caching_check_locked(c, err);
    tide__caching_unlock_all(c);
    return st;
}

static void caching_destroy(void *self) {
    tide__caching *c = self;
    tide__caching_drop(c);
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
    char *whole = tide_host_calloc(1, sizeof(tide__caching) + TIDE__CACHE_LINE_BYTES);
    if (whole == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of allocator 'cpu_caching'");
    const size_t off = (uintptr_t)whole % TIDE__CACHE_LINE_BYTES;
    tide__caching *c = (void *)(off == 0 ? whole : whole + (TIDE__CACHE_LINE_BYTES - off));
    c->sizes = sizes;
    c->whole = whole;
    return tide_allocator_create(&caching_ops, c, TIDE_CPU, out, err);
}

tide_status tide_cpu_caching_allocator_create(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_POW2, out, err);
}
