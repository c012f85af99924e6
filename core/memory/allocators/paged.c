// SPDX-License-Identifier: MIT
//
// paged: blocks of one size, cut from slabs of a backing allocator. For data that grows in equal parts and is freed in
// any order: the KV cache (core/memory/kv_cache.h), whose sequences take page after page. Since all pages are alike,
// any free page serves any request: there is no external fragmentation, only the unused ends of pages.
//
//     slab, 4 pages each                                            slab
//     | page 0        | page 1        | page 2        | page 3    | | page 0 ...
//     |[ block A ]####|     free      |[ block B ...]#|    free   | | ...
//                 ^ waste     ^                             ^
//       first_free -----------+------------ next_free ------+---- none
//
//     slabs with a free page are in the list of open slabs, the one used last first
//
// A page is taken from the first open slab; each slab knows its free pages as a stack of
// numbers kept in host memory, so pages may be of any device. Taking and giving back are O(1). A slab comes from the
// backing as one block when no page is free, and goes back in trim once all its pages are free.
//
// The numbers: requested is what was asked for, active one page per block (the difference is the waste), cached the
// free pages, reserved the slabs, largest free one page while any is free.
//
// A page is aligned to the largest power of two that divides page_bytes, or as far as the backing goes. Freed pages
// serve again at once: a caller that lets several streams work on pages waits for them before freeing. A slab remembers
// these streams and goes back to a stream-aware backing with them. On the CPU, bytes that no request covers are off
// limits under AddressSanitizer.
#include <inttypes.h>
#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/wrap.h"
#include "core/memory/block.h"
#include "core/memory/poison.h"

#define NO_PAGE UINT32_MAX

typedef struct page {
    size_t requested_bytes; // of the block in it; 0: free
    uint32_t next_free;     // in the slab; NO_PAGE: the last one
} page;

typedef struct slab {
    struct slab *next, *prev;           // all slabs
    struct slab *next_open, *prev_open; // those with a free page
    tide_block *block;                  // owned
    uint32_t n_free, first_free;
    page pages[]; // [pages_per_slab]
} slab;

typedef struct paged_state {
    pthread_mutex_t lock; // guards all below
    tide_allocator *backing;
    size_t page_bytes, align_bytes;
    uint32_t pages_per_slab;
    bool host; // the pages can be touched here
    slab *slabs, *open;
    tide_allocator_stats stats; // cached and largest free are filled in when asked for
    uint64_t n_free;            // pages
} paged_state;

// ---- slabs; the caller holds the lock ----

static char *page_data(const paged_state *p, const slab *s, uint32_t page_i) {
    return (char *)s->block->mem.data + (size_t)page_i * p->page_bytes;
}

static void open_slab(paged_state *p, slab *s) {
    TIDE_ASSERT(s->n_free > 0 && p->open != s);
    s->prev_open = NULL;
    s->next_open = p->open;
    if (p->open != NULL) p->open->prev_open = s;
    p->open = s;
}

static void close_slab(paged_state *p, slab *s) {
    TIDE_ASSERT(s->prev_open != NULL || p->open == s);
    if (s->next_open != NULL) s->next_open->prev_open = s->prev_open;
    *(s->prev_open != NULL ? &s->prev_open->next_open : &p->open) = s->next_open;
}

static tide_status add_slab(paged_state *p, tide_stream_id stream, tide_error *err) {
    // Both products were checked when the allocator was made.
    slab *s = tide_host_calloc(1, sizeof *s + p->pages_per_slab * sizeof s->pages[0]);
    if (s == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a slab of %" PRIu32 " pages", p->pages_per_slab);
    const size_t slab_bytes = p->page_bytes * p->pages_per_slab;
    // A block and not a raw allocation: it has an id of its own, and it keeps the backing allocator alive.
    const tide_status st = tide_block_create(p->backing, slab_bytes, p->align_bytes, TIDE_KIND_KV_CACHE, stream,
                                             "slab of pages", &s->block, err);
    if (st != TIDE_OK) {
        tide_host_free(s);
        return st;
    }
    for (uint32_t i = 0; i < p->pages_per_slab; i++)
        s->pages[i].next_free = i + 1 < p->pages_per_slab ? i + 1 : NO_PAGE;
    s->n_free = p->pages_per_slab;
    s->next = p->slabs;
    if (p->slabs != NULL) p->slabs->prev = s;
    p->slabs = s;
    open_slab(p, s);
    p->n_free += p->pages_per_slab;
    tide__count_reserve(&p->stats, s->block->mem.reserved_bytes);
    if (p->host) tide_asan_poison(s->block->mem.data, slab_bytes);
    return TIDE_OK;
}

/// All its pages are free.
static void remove_slab(paged_state *p, slab *s) {
    TIDE_ASSERT(s->n_free == p->pages_per_slab && p->n_free >= p->pages_per_slab);
    close_slab(p, s);
    if (s->next != NULL) s->next->prev = s->prev;
    *(s->prev != NULL ? &s->prev->next : &p->slabs) = s->next;
    p->n_free -= p->pages_per_slab;
    TIDE_ASSERT(p->stats.reserved_bytes >= s->block->mem.reserved_bytes);
    p->stats.reserved_bytes -= s->block->mem.reserved_bytes;
    if (p->host) tide_asan_unpoison(s->block->mem.data, p->page_bytes * p->pages_per_slab);
    tide_block_unref(s->block);
    tide_host_free(s);
}

static uint32_t take_page(paged_state *p, slab *s, size_t requested_bytes) {
    const uint32_t page_i = s->first_free;
    TIDE_ASSERT(s->n_free > 0 && page_i < p->pages_per_slab && s->pages[page_i].requested_bytes == 0);
    TIDE_ASSERT(requested_bytes > 0 && requested_bytes <= p->page_bytes);
    s->first_free = s->pages[page_i].next_free;
    s->pages[page_i].requested_bytes = requested_bytes;
    s->n_free--;
    p->n_free--;
    TIDE_ASSERT((s->n_free == 0) == (s->first_free == NO_PAGE));
    if (s->n_free == 0) close_slab(p, s);
    if (p->host) tide_asan_unpoison(page_data(p, s, page_i), requested_bytes);
    return page_i;
}

static void give_page(paged_state *p, slab *s, uint32_t page_i) {
    TIDE_ASSERT(page_i < p->pages_per_slab && s->n_free < p->pages_per_slab);
    TIDE_ASSERT(s->pages[page_i].requested_bytes > 0); // else it is free already
    s->pages[page_i] = (page){.next_free = s->first_free};
    s->first_free = page_i;
    s->n_free++;
    p->n_free++;
    if (s->n_free == 1) open_slab(p, s);
    if (p->host) tide_asan_poison(page_data(p, s, page_i), p->page_bytes);
}

// ---- the table ----

static tide_status check_locked(const paged_state *p, tide_error *err);

static tide_status too_large(paged_state *p, const tide_alloc_request *req, tide_error *err) {
    pthread_mutex_lock(&p->lock);
    p->stats.n_failed++;
    pthread_mutex_unlock(&p->lock);
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "paged: '%s' needs %zu B, a page has %zu B", tide__tag_text(req->tag),
                     req->size_bytes, p->page_bytes);
}

static tide_status paged_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    paged_state *p = self;
    if (req->size_bytes > p->page_bytes) return too_large(p, req, err);
    pthread_mutex_lock(&p->lock);
    const bool hit = p->open != NULL;
    const tide_status st = hit ? TIDE_OK : add_slab(p, req->stream, err);
    if (st != TIDE_OK) {
        p->stats.n_failed++;
        pthread_mutex_unlock(&p->lock);
        tide_error_prefix(err, "paged: no page free for '%s', no other slab", tide__tag_text(req->tag));
        return st;
    }
    slab *s = p->open;
    out->data = page_data(p, s, take_page(p, s, req->size_bytes));
    out->reserved_bytes = p->page_bytes;
    out->context = s;
    tide__count_alloc(&p->stats, req->size_bytes, p->page_bytes);
    TIDE_ASSERT_SLOW(check_locked(p, NULL) == TIDE_OK);
    if (hit) p->stats.n_hits++;
    pthread_mutex_unlock(&p->lock);
    return TIDE_OK;
}

static void paged_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    paged_state *p = self;
    slab *s = mem->context;
    pthread_mutex_lock(&p->lock);
    const size_t offset = (size_t)((char *)mem->data - (char *)s->block->mem.data);
    TIDE_ASSERT(offset % p->page_bytes == 0 &&
                s->pages[offset / p->page_bytes].requested_bytes == mem->requested_bytes);
    tide__count_free(&p->stats, mem->requested_bytes, p->page_bytes);
    if (last_stream != s->block->last_stream) tide_block_record_use(s->block, last_stream);
    give_page(p, s, (uint32_t)(offset / p->page_bytes));
    TIDE_ASSERT_SLOW(check_locked(p, NULL) == TIDE_OK);
    pthread_mutex_unlock(&p->lock);
}

static void paged_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    paged_state *p = self;
    slab *s = mem->context;
    pthread_mutex_lock(&p->lock);
    tide_block_record_use(s->block, stream);
    pthread_mutex_unlock(&p->lock);
}

static void paged_trim(void *self) {
    paged_state *p = self;
    pthread_mutex_lock(&p->lock);
    for (slab *s = p->slabs, *next; s != NULL; s = next) {
        next = s->next;
        if (s->n_free == p->pages_per_slab) remove_slab(p, s);
    }
    TIDE_ASSERT_SLOW(check_locked(p, NULL) == TIDE_OK);
    pthread_mutex_unlock(&p->lock);
}

static void fill_stats(const paged_state *p, tide_allocator_stats *out) {
    *out = p->stats;
    out->cached_bytes = p->n_free * p->page_bytes;
    out->largest_free_bytes = p->n_free > 0 ? p->page_bytes : 0;
    tide_allocator_stats backing;
    tide_allocator_get_stats(p->backing, &backing);
    // Less than a slab of the backing's room cannot be used here.
    const uint64_t slab_bytes = (uint64_t)p->page_bytes * p->pages_per_slab, room = backing.headroom_bytes;
    out->headroom_bytes = room == TIDE_UNKNOWN_BYTES ? room : room - room % slab_bytes;
}

static void paged_stats(const void *self, tide_allocator_stats *out) {
    paged_state *p = tide__mutable(self);
    pthread_mutex_lock(&p->lock);
    fill_stats(p, out);
    pthread_mutex_unlock(&p->lock);
}

static void paged_props(const void *self, tide_allocator_props *out) {
    const paged_state *p = self;
    tide_allocator_props backing;
    tide_allocator_get_props(p->backing, &backing);
    *out = (tide_allocator_props){.what = "blocks of one size, cut from slabs",
                                  .align_bytes = p->align_bytes,
                                  .max_align_bytes = p->align_bytes,
                                  .max_bytes = p->page_bytes,
                                  .keeps_freed = true,
                                  .page_locked = backing.page_locked};
}

/// One slab against itself; adds what it holds to the sums.
static tide_status check_slab(const paged_state *p, const slab *s, tide_allocator_stats *sums, tide_error *err) {
    uint32_t n_used = 0, n_free = 0;
    for (uint32_t i = 0; i < p->pages_per_slab; i++) {
        if (s->pages[i].requested_bytes == 0) continue;
        n_used++;
        sums->requested_bytes += s->pages[i].requested_bytes;
    }
    // A chain that runs in a circle is longer than the slab.
    for (uint32_t i = s->first_free; i != NO_PAGE && n_free <= p->pages_per_slab; i = s->pages[i].next_free) {
        if (i >= p->pages_per_slab || s->pages[i].requested_bytes != 0)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "paged: page %" PRIu32 " of slab %" PRIu64 " is free and in use", i,
                             s->block->id);
        n_free++;
    }
    if (n_free != s->n_free || n_used + n_free != p->pages_per_slab)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "paged: slab %" PRIu64 " has %" PRIu32 " pages in use and %" PRIu32 " free of %" PRIu32
                         ", it counts %" PRIu32 " free",
                         s->block->id, n_used, n_free, p->pages_per_slab, s->n_free);
    sums->active_bytes += (uint64_t)n_used * p->page_bytes;
    sums->cached_bytes += (uint64_t)n_free * p->page_bytes;
    sums->reserved_bytes += s->block->mem.reserved_bytes;
    return TIDE_OK;
}

static tide_status check_locked(const paged_state *p, tide_error *err) {
    tide_allocator_stats now, sums = {0};
    size_t n_open = 0, n_with_free = 0;
    for (const slab *s = p->slabs; s != NULL; s = s->next) {
        TIDE_TRY(check_slab(p, s, &sums, err));
        if (s->n_free > 0) n_with_free++;
    }
    for (const slab *s = p->open; s != NULL && n_open <= n_with_free; s = s->next_open) n_open++;
    if (n_open != n_with_free)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "paged: %zu slabs have free pages, the list of them does not",
                         n_with_free);
    fill_stats(p, &now);
    if (now.requested_bytes != sums.requested_bytes || now.active_bytes != sums.active_bytes ||
        now.cached_bytes != sums.cached_bytes || now.reserved_bytes != sums.reserved_bytes)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "paged: requested/active/cached/reserved are %" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64
                         ", the pages say %" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64,
                         now.requested_bytes, now.active_bytes, now.cached_bytes, now.reserved_bytes,
                         sums.requested_bytes, sums.active_bytes, sums.cached_bytes, sums.reserved_bytes);
    return tide__counters_check(&now, "paged", err);
}

static tide_status paged_check(const void *self, tide_error *err) {
    paged_state *p = tide__mutable(self);
    pthread_mutex_lock(&p->lock);
    const tide_status st = check_locked(p, err);
    pthread_mutex_unlock(&p->lock);
    return st;
}

static void paged_destroy(void *self) {
    paged_state *p = self;
    while (p->slabs != NULL) {
        slab *const s = p->slabs;
        p->slabs = s->next;
        if (p->host) tide_asan_unpoison(s->block->mem.data, p->page_bytes * p->pages_per_slab);
        tide_block_unref(s->block);
        tide_host_free(s);
    }
    tide_allocator_unref(p->backing);
    pthread_mutex_destroy(&p->lock);
    tide_host_free(p);
}

static const tide_allocator_ops paged_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                             .name = "paged",
                                             .alloc = paged_alloc,
                                             .release = paged_release,
                                             .stats = paged_stats,
                                             .props = paged_props,
                                             .destroy = paged_destroy,
                                             .trim = paged_trim,
                                             .check = paged_check,
                                             .record_use = paged_record_use};

static tide_status check_sizes(tide_device device, size_t page_bytes, size_t pages_per_slab, tide_error *err) {
    const size_t rule = tide_memory_kind_alignment(TIDE_KIND_KV_CACHE, device);
    size_t slab_bytes, record_bytes;
    if (page_bytes == 0 || page_bytes % rule != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "paged: pages of %zu B; a multiple of %zu is wanted", page_bytes, rule);
    if (pages_per_slab == 0 || pages_per_slab >= NO_PAGE)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "paged: slabs of %zu pages", pages_per_slab);
    if (!tide_mul_size(page_bytes, pages_per_slab, &slab_bytes) ||
        !tide_mul_size(pages_per_slab, sizeof(page), &record_bytes) ||
        !tide_add_size(record_bytes, sizeof(slab), &record_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "paged: a slab of %zu pages of %zu B is beyond all addresses",
                         pages_per_slab, page_bytes);
    return TIDE_OK;
}

/// The largest power of two in page_bytes, as far as the backing honours it.
static size_t page_align(const tide_allocator *backing, size_t page_bytes) {
    tide_allocator_props props;
    tide_allocator_get_props(backing, &props);
    const size_t natural = page_bytes & (~page_bytes + 1);
    return natural < props.max_align_bytes ? natural : (size_t)props.max_align_bytes;
}

tide_status tide_paged_create(tide_allocator *backing, size_t page_bytes, size_t pages_per_slab, tide_allocator **out,
                              tide_error *err) {
    const tide_device device = tide_allocator_device(backing);
    TIDE_TRY(check_sizes(device, page_bytes, pages_per_slab, err));
    paged_state *p;
    TIDE_TRY(TIDE_NEW(&p, 1, err, "for the state of allocator 'paged'"));
    pthread_mutex_init(&p->lock, NULL);
    p->backing = tide_allocator_ref(backing);
    p->page_bytes = page_bytes;
    p->align_bytes = page_align(backing, page_bytes);
    p->pages_per_slab = (uint32_t)pages_per_slab;
    p->host = device.type == TIDE_DEVICE_CPU;
    return tide_allocator_create(&paged_ops, p, device, out, err);
}
