// SPDX-License-Identifier: MIT
//
// cpu: every block is a call to the system, nothing is kept.
//
//     request 100 B, align 64          request 5000 B, align 4096
//     |<- 100 ->|..|                   |<----- 5000 ----->|.......|
//     |<--- 128 -->| active            |<--------- 8192 --------->| active
//     ^ multiple of 64                 ^ multiple of 4096
//
// The numbers: active is each request rounded up to its alignment (64 at the least), reserved is the same as
// active, cached and largest free are 0. What the system's own heap adds around it is not ours and not counted.
#include <pthread.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"

enum { CPU_ALIGN_BYTES = 64 };

typedef struct cpu_state {
    pthread_mutex_t lock; // guards stats
    tide_allocator_stats stats;
} cpu_state;

static tide_status fail_alloc(cpu_state *c, const tide_alloc_request *req, tide_error *err) {
    pthread_mutex_lock(&c->lock);
    c->stats.n_failed++;
    pthread_mutex_unlock(&c->lock);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "allocator 'cpu': the system has no %zu B (alignment %zu) for '%s'",
                     req->size_bytes, req->align_bytes, req->tag != NULL ? req->tag : "(no name)");
}

static tide_status cpu_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    cpu_state *c = self;
    const size_t align = req->align_bytes > CPU_ALIGN_BYTES ? req->align_bytes : CPU_ALIGN_BYTES;
    uint64_t rounded;
    if (!tide_align_up(req->size_bytes, align, &rounded)) return fail_alloc(c, req, err);
    void *data = tide__system_alloc((size_t)rounded, align);
    if (data == NULL) return fail_alloc(c, req, err);
    out->data = data;
    out->reserved_bytes = (size_t)rounded;
    pthread_mutex_lock(&c->lock);
    tide__count_reserve(&c->stats, out->reserved_bytes);
    tide__count_alloc(&c->stats, req->size_bytes, out->reserved_bytes);
    pthread_mutex_unlock(&c->lock);
    return TIDE_OK;
}

static void cpu_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream; // the calling thread is the CPU's stream: what it did to the memory is done
    cpu_state *c = self;
    tide__system_free(mem->data);
    pthread_mutex_lock(&c->lock);
    tide__count_free(&c->stats, mem->requested_bytes, mem->reserved_bytes);
    c->stats.reserved_bytes -= mem->reserved_bytes;
    pthread_mutex_unlock(&c->lock);
}

static void cpu_stats(const void *self, tide_allocator_stats *out) {
    cpu_state *c = tide__mutable(self);
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    pthread_mutex_unlock(&c->lock);
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
    pthread_mutex_destroy(&c->lock);
    tide_host_free(c);
}

static const tide_allocator_ops cpu_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                           .name = "cpu",
                                           .alloc = cpu_alloc,
                                           .release = cpu_release,
                                           .stats = cpu_stats,
                                           .destroy = cpu_destroy,
                                           .check = cpu_check};

tide_status tide_cpu_allocator_create(tide_allocator **out, tide_error *err) {
    cpu_state *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of allocator 'cpu'");
    pthread_mutex_init(&c->lock, NULL);
    return tide_allocator_create(&cpu_ops, c, TIDE_CPU, out, err);
}

tide_allocator *tide__cpu_allocator_shared(void) {
    static cpu_state state = {.lock = PTHREAD_MUTEX_INITIALIZER};
    // The one reference of the start is never dropped, so destroy is never called on static memory.
    static tide_allocator shared = {.refs = 1, .ops = &cpu_ops, .self = &state, .device = {TIDE_DEVICE_CPU, 0}};
    return &shared;
}
