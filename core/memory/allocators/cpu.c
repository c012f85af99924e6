// SPDX-License-Identifier: MIT
//
// cpu: every block is a call to the system, nothing is kept.
//
//     request 100 B, align 64          request 5000 B, align 4096
//     |<- 100 ->|..|                   |<----- 5000 ----->|.......|
//     |<--- 128 -->| active            |<--------- 8192 --------->| active
//     ^ multiple of 64                 ^ multiple of 4096
//
// Raw memory, which its address alone suffices to free (PT-13), has a header before the data that remembers the rest:
//
//     |........| state, size |<- 100 ->|..|
//     |<------- 64 --------->|<--- 128 -->|   192 active
//     ^ from the system      ^ returned
//
// The state counts the raw allocations that are out and lives until the last of them, even when the allocator object is
// gone by then.
//
// The numbers: active is each request rounded up to its alignment (the minimum of the allocator at the least: 64 B, or
// 256 B) and the header of a raw one; reserved is the same as active, cached and largest free are 0. What the system's
// own heap adds around it is not ours and not counted.
#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/short_lock.h"

typedef struct cpu_state {
    size_t min_align_bytes;
    tide__lock lock; // guards everything below
    tide_allocator_stats stats;
    uint64_t n_raw; // raw allocations that are out
    bool is_orphan; // the allocator object is gone
} cpu_state;

typedef struct raw_header {
    cpu_state *state;
    size_t size_bytes;
} raw_header;

static tide_status fail_alloc(cpu_state *c, size_t size_bytes, size_t align_bytes, const char *tag, tide_error *err) {
    tide__lock_take(&c->lock);
    c->stats.n_failed++;
    tide__lock_give(&c->lock);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "allocator 'cpu': the system has no %zu B (alignment %zu) for '%s'",
                     size_bytes, align_bytes, tag != NULL ? tag : "(no name)");
}

/// Of this thread.
static _Thread_local tide_pages *offer;

void tide_cpu_offer(tide_pages *pages) { offer = pages; }

enum { SMALLEST_PAGE_BYTES = 4096 };

/// The pages on offer where they are what is asked for, with a reference; NULL: they are not.
static tide_pages *take_offer(const tide_alloc_request *req, size_t align) {
    tide_pages *pages = offer;
    uint64_t asked;
    offer = NULL;
    // What is rounded up to more than a page does not end within them, wherever they begin.
    if (pages == NULL || align > SMALLEST_PAGE_BYTES) return NULL;
    // A wrapper that puts something around a block asks for more.
    if (!tide_align_up(pages->size_bytes, req->align_bytes, &asked) || req->size_bytes != asked) return NULL;
    return tide_pages_ref(pages);
}

static tide_status cpu_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    cpu_state *c = self;
    const size_t align = req->align_bytes > c->min_align_bytes ? req->align_bytes : c->min_align_bytes;
    uint64_t rounded;
    void *data = NULL;
    tide_pages *pages = offer != NULL ? take_offer(req, align) : NULL;
    if (tide_align_up(req->size_bytes, align, &rounded))
        data = pages != NULL ? pages->data : tide__system_alloc((size_t)rounded, align);
    if (data == NULL) return fail_alloc(c, req->size_bytes, align, req->tag, err);
    out->context = pages;
    out->data = data;
    out->reserved_bytes = (size_t)rounded;
    tide__lock_take(&c->lock);
    tide__count_reserve(&c->stats, out->reserved_bytes);
    tide__count_alloc(&c->stats, req->size_bytes, out->reserved_bytes);
    tide__lock_give(&c->lock);
    return TIDE_OK;
}

static void cpu_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream; // the calling thread is the CPU's stream: what it did to the memory is done
    cpu_state *c = self;
    if (mem->context != NULL)
        tide_pages_unref(mem->context);
    else
        tide__system_free(mem->data);
    tide__lock_take(&c->lock);
    tide__count_free(&c->stats, mem->requested_bytes, mem->reserved_bytes);
    TIDE_ASSERT(c->stats.reserved_bytes >= mem->reserved_bytes);
    c->stats.reserved_bytes -= mem->reserved_bytes;
    TIDE_ASSERT(c->stats.reserved_bytes == c->stats.active_bytes);
    tide__lock_give(&c->lock);
}

/// What a raw allocation takes, header included; 0: more than there can be.
static size_t raw_bytes(const cpu_state *c, size_t size_bytes) {
    uint64_t rounded;
    size_t total;
    if (!tide_align_up(size_bytes, c->min_align_bytes, &rounded)) return 0;
    return tide_add_size((size_t)rounded, c->min_align_bytes, &total) ? total : 0;
}

static tide_status cpu_raw_alloc(void *self, size_t size_bytes, void **out, tide_error *err) {
    cpu_state *c = self;
    const size_t total = raw_bytes(c, size_bytes);
    char *const base = total != 0 ? tide__system_alloc(total, c->min_align_bytes) : NULL;
    if (base == NULL) return fail_alloc(c, size_bytes, c->min_align_bytes, "raw memory", err);
    char *const data = base + c->min_align_bytes;
    TIDE_ASSERT(sizeof(raw_header) <= c->min_align_bytes && (uintptr_t)data % c->min_align_bytes == 0);
    *((raw_header *)(void *)data - 1) = (raw_header){.state = c, .size_bytes = size_bytes};
    tide__lock_take(&c->lock);
    tide__count_reserve(&c->stats, total);
    tide__count_alloc(&c->stats, size_bytes, total);
    c->n_raw++;
    tide__lock_give(&c->lock);
    *out = data;
    return TIDE_OK;
}

static void cpu_raw_free(void *data) {
    if (data == NULL) return;
    const raw_header header = *((raw_header *)data - 1);
    cpu_state *c = header.state;
    tide__system_free((char *)data - c->min_align_bytes);
    const size_t total = raw_bytes(c, header.size_bytes);
    tide__lock_take(&c->lock);
    tide__count_free(&c->stats, header.size_bytes, total);
    c->stats.reserved_bytes -= total;
    TIDE_ASSERT(c->n_raw > 0 && c->stats.reserved_bytes == c->stats.active_bytes);
    const bool was_last = --c->n_raw == 0 && c->is_orphan;
    tide__lock_give(&c->lock);
    if (was_last) tide_host_free(c);
}

static void cpu_stats(const void *self, tide_allocator_stats *out) {
    cpu_state *c = tide__mutable(self);
    tide__lock_take(&c->lock);
    *out = c->stats;
    tide__lock_give(&c->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static void cpu_props(const void *self, tide_allocator_props *out) {
    const cpu_state *c = self;
    out->what = "aligned host memory straight from the system";
    out->align_bytes = c->min_align_bytes;
}

static tide_status cpu_check(const void *self, tide_error *err) {
    tide_allocator_stats s;
    cpu_stats(self, &s);
    TIDE_TRY(tide__counters_check(&s, "cpu", err));
    if (s.reserved_bytes != s.active_bytes || s.cached_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'cpu' keeps bytes that no block holds");
    return TIDE_OK;
}

static void cpu_destroy(void *self) {
    cpu_state *c = self;
    tide__lock_take(&c->lock);
    c->is_orphan = true;
    const bool is_alone = c->n_raw == 0;
    tide__lock_give(&c->lock);
    if (is_alone) tide_host_free(c);
}

static const tide_allocator_ops cpu_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "cpu",
                                           .alloc = cpu_alloc,
                                           .release = cpu_release,
                                           .stats = cpu_stats,
                                           .props = cpu_props,
                                           .destroy = cpu_destroy,
                                           .check = cpu_check,
                                           .raw_alloc = cpu_raw_alloc,
                                           .raw_free = cpu_raw_free};

tide_status tide_cpu_allocator_create_aligned(size_t min_align_bytes, tide_allocator **out, tide_error *err) {
    if (min_align_bytes != 64 && min_align_bytes != 256)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'cpu': a minimum alignment of %zu B; 64 and 256 are known",
                         min_align_bytes);
    cpu_state *c;
    TIDE_TRY(TIDE_NEW(&c, 1, err, "for the state of allocator 'cpu'"));
    c->min_align_bytes = min_align_bytes;
    return tide_allocator_create(&cpu_ops, c, TIDE_CPU, out, err);
}

tide_status tide_cpu_allocator_create(tide_allocator **out, tide_error *err) {
    return tide_cpu_allocator_create_aligned(TIDE__CPU_ALIGN_BYTES, out, err);
}

tide_allocator *tide__cpu_allocator_shared(void) {
    static cpu_state state = {.min_align_bytes = TIDE__CPU_ALIGN_BYTES};
    // The one reference of the start is never dropped, so destroy is never called on static memory.
    static tide_allocator shared = {.refs = 1,
                                    .ops = &cpu_ops,
                                    .self = &state,
                                    .device = {TIDE_DEVICE_CPU, 0},
                                    .max_align_bytes = (uint64_t)1 << 63};
    return &shared;
}
