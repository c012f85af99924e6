// SPDX-License-Identifier: MIT
//
// cuda_async: memory of the pool that a device's driver keeps itself, given and taken back in the order of streams.
//
//     host:       alloc on A, record_use(B), release              returns at once: the host never waits
//     stream A:   ... | first use | ... | wait for B's event | free |
//     stream B:           ... | last use | event |
//
// The driver knows one stream for each block, the one it was allocated on: the block is freed there. Uses by other
// streams are put in front of that: their streams get an event, the allocating stream waits for it. The price: later
// work of the allocating stream waits for them, too. stream_caching keeps the block back instead.
//
// The free is in order from the release on, so free_completed is told there; the bytes may be in use for some time yet,
// and the driver gives them to nothing that could meet that use. Where a stream takes no event (it is captured), the
// block is pending, and it is tried again with each request and with trim.
//
// Captured streams: memory that is asked for on one would be a part of the capture, and the address one of its launches
// only. The device refuses that (TIDE_ERR_BUSY), and so does this.
//
// Out of memory: what is late is tried again and the pool gives back what it does not use; then the host waits for all
// streams that memory was taken on, and the same again; then it fails with the numbers.
//
// The numbers: requested and active are exact (a request, and what its alignment may need beyond the driver's 256).
// Reserved is what the driver says of its pool, which is one for each device: two of these on a device show the same.
// Cached is reserved less what the pool says it has in use; that includes frees which its streams have not reached yet.
// Largest free is not known: 0. Every request is a call of the driver, so there are no hits; nothing is told of
// segments, for the driver says neither when nor where it takes them.
#include <inttypes.h>
#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/device/backend.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"

enum { POOL_ALIGN_BYTES = 256, POOL_MAX_ALIGN_BYTES = 2 << 20 };

typedef struct pool_use {
    struct pool_use *next; ///< of the same block, or the next spare one
    tide_stream_id stream;
} pool_use;

/// Header of a block, in host memory.
typedef struct pool_block {
    struct pool_block *next; ///< late, or spare
    void *raw;               ///< what the driver gave; mem.data is the first aligned address in it
    tide_stream_id stream;   ///< allocated on
    pool_use *uses;          ///< by other streams
    bool unsure;             ///< a use could not be written down: given back with the allocator
    bool told;               ///< free_completed
    tide_memory mem;         ///< as it was released
    tide_stream_id last_stream;
} pool_block;

typedef struct stream_pool {
    pthread_mutex_t lock; ///< guards what follows `listener`
    tide_device device;
    bool keep_all, no_deferral;
    tide_event_id event; ///< used for every wait: one that is queued does not follow a later record
    tide_stream_listener streams_end;
    tide_allocator_listener listener;
    pool_block *late; ///< released, and not freed yet
    pool_block *spare_blocks;
    pool_use *spare_uses;
    tide_stream_id *streams; ///< that memory was taken on, without those that are gone
    size_t n_streams, cap_streams;
    tide_allocator_stats stats; ///< but for what the driver says
} stream_pool;

// ---- the device's table ----

static tide_status no_pool(tide_device device, tide_error *err) {
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s has no memory pool of its driver",
                     tide_device_format(device, name, sizeof name));
}

/// The table behind the device; NULL when it is gone or has no pool.
static const tide_device_ops *table(tide_device device, void **self) {
    const tide_device_ops *ops = tide_device_find(device, self);
    return ops != NULL && ops->pool_alloc != NULL ? ops : NULL;
}

#define TABLE_OR_FAIL(device, err)                                                                                     \
    void *self = NULL;                                                                                                 \
    const tide_device_ops *ops = table((device), &self);                                                               \
    if (ops == NULL) return no_pool((device), (err))

static tide_status driver_alloc(tide_device d, tide_stream_id stream, size_t size_bytes, void **out, tide_error *err) {
    TABLE_OR_FAIL(d, err);
    return ops->pool_alloc(self, d.index, stream, size_bytes, out, err);
}
static tide_status driver_free(tide_device d, tide_stream_id stream, void *ptr) {
    TABLE_OR_FAIL(d, NULL);
    return ops->pool_free(self, d.index, stream, ptr, NULL);
}
static tide_status driver_keep(tide_device d, uint64_t keep_bytes, tide_error *err) {
    TABLE_OR_FAIL(d, err);
    return ops->pool_keep(self, d.index, keep_bytes, err);
}
static tide_status driver_trim(tide_device d) {
    TABLE_OR_FAIL(d, NULL);
    return ops->pool_trim(self, d.index, 0, NULL);
}
static tide_status driver_stats(tide_device d, tide_device_pool_stats *out) {
    TABLE_OR_FAIL(d, NULL);
    return ops->pool_stats(self, d.index, out, NULL);
}

/// What a device answers for a stream that has no work left because it, or the device itself, is not there.
static bool is_gone(tide_status st) {
    return st == TIDE_ERR_INVALID || st == TIDE_ERR_NOT_FOUND || st == TIDE_ERR_NOT_IMPLEMENTED;
}

// ---- streams ----

static bool note_stream(stream_pool *a, tide_stream_id stream) {
    for (size_t i = a->n_streams; i > 0; i--) {
        if (a->streams[i - 1] == stream) return true;
    }
    if (tide_host_grow(&a->streams, &a->cap_streams, a->n_streams + 1, sizeof *a->streams) != TIDE_OK) return false;
    a->streams[a->n_streams++] = stream;
    return true;
}

static void on_stream_destroyed(void *self, tide_device device, tide_stream_id stream) {
    stream_pool *a = self;
    if (!tide_device_equal(device, a->device)) return;
    pthread_mutex_lock(&a->lock);
    size_t i = 0;
    while (i < a->n_streams && a->streams[i] != stream) i++;
    if (i < a->n_streams) a->streams[i] = a->streams[--a->n_streams];
    pthread_mutex_unlock(&a->lock);
}

/// The host waits for all streams that memory was taken on. Without the lock.
static void sync_streams(stream_pool *a) {
    pthread_mutex_lock(&a->lock);
    const size_t n = a->n_streams;
    tide_stream_id *ids = n > 0 ? tide_host_alloc(n * sizeof *ids) : NULL;
    for (size_t i = 0; ids != NULL && i < n; i++) ids[i] = a->streams[i];
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; ids != NULL && i < n; i++) (void)!tide_stream_sync(a->device, ids[i], NULL);
    tide_host_free(ids);
}

// ---- giving back ----

typedef enum progress { QUEUED, LATER, GONE } progress;

/// Stream `on` waits for all other streams that use the block. GONE: there is no such stream. LATER: one of them takes
/// no event now; waits that were queued do no harm.
static progress order(const stream_pool *a, const pool_block *b, tide_stream_id on) {
    for (const pool_use *u = b->uses; u != NULL; u = u->next) {
        if (u->stream == on) continue;
        const tide_status recorded = tide_event_record(a->device, a->event, u->stream, NULL);
        if (is_gone(recorded)) continue; // its work is done
        if (recorded != TIDE_OK) return LATER;
        const tide_status waits = tide_stream_wait_event(a->device, on, a->event, NULL);
        if (waits != TIDE_OK) return is_gone(waits) ? GONE : LATER;
    }
    return QUEUED;
}

static void drop_uses(stream_pool *a, pool_block *b) {
    for (pool_use *u = b->uses, *next; u != NULL; u = next) {
        next = u->next;
        u->next = a->spare_uses;
        a->spare_uses = u;
    }
    b->uses = NULL;
}

/// Before the free is queued: from then on the address may be given out again.
static void tell(stream_pool *a, pool_block *b) {
    if (b->told) return;
    b->told = true;
    if (a->listener.on_free_completed != NULL) a->listener.on_free_completed(a->listener.self, &b->mem, b->last_stream);
    TIDE_ASSERT(a->stats.active_bytes >= b->mem.reserved_bytes);
    a->stats.active_bytes -= b->mem.reserved_bytes;
}

/// Queue the free behind all uses. False: not now.
static bool give_back(stream_pool *a, pool_block *b) {
    if (b->unsure) return false;
    tide_stream_id on = b->stream;
    progress got = order(a, b, on);
    if (got == GONE) got = order(a, b, on = 0); // a stream that is gone has no work that could meet the uses
    if (got != QUEUED) return false;
    tell(a, b);
    tide_status st = driver_free(a->device, on, b->raw);
    if (is_gone(st) && on != 0) st = driver_free(a->device, 0, b->raw);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_IMPLEMENTED) return false; // without the device there is no memory of it
    drop_uses(a, b);
    b->next = a->spare_blocks;
    a->spare_blocks = b;
    return true;
}

static void count_late(stream_pool *a, const pool_block *b, bool now) {
    if (now) {
        a->stats.pending_bytes += b->mem.reserved_bytes;
        a->stats.n_pending++;
    } else {
        a->stats.pending_bytes -= b->mem.reserved_bytes;
        a->stats.n_pending--;
    }
}

/// Try again what could not be freed. A block that was told of is in no number any more.
static void settle(stream_pool *a) {
    for (pool_block **at = &a->late; *at != NULL;) {
        pool_block *b = *at, *next = b->next;
        const bool counted = !b->told;
        const bool done = give_back(a, b);
        if (counted && b->told) count_late(a, b, false);
        if (done) {
            *at = next;
        } else {
            at = &b->next;
        }
    }
}

// ---- allocating ----

static pool_block *new_block(stream_pool *a) {
    pool_block *b = a->spare_blocks;
    if (b != NULL) {
        a->spare_blocks = b->next;
    } else {
        b = tide_host_alloc(sizeof *b);
    }
    if (b != NULL) *b = (pool_block){0};
    return b;
}

/// Everything that may bring memory, short of failing. Without the lock.
static tide_status climb(stream_pool *a, tide_stream_id stream, size_t size_bytes, void **out, tide_error *err) {
    tide_status st = TIDE_ERR_NOMEM;
    for (int waits = 0; waits < 2 && st == TIDE_ERR_NOMEM; waits++) {
        if (waits > 0) sync_streams(a);
        pthread_mutex_lock(&a->lock);
        settle(a);
        pthread_mutex_unlock(&a->lock);
        if (waits > 0) sync_streams(a); // what was just settled is freed by work of its stream
        (void)!driver_trim(a->device);
        st = driver_alloc(a->device, stream, size_bytes, out, err);
    }
    return st;
}

static void pool_stats(const void *self, tide_allocator_stats *out);

static tide_status fail_with_numbers(stream_pool *a, const tide_alloc_request *req, size_t align_bytes, tide_status st,
                                     tide_error *err) {
    tide_allocator_stats s;
    pool_stats(a, &s);
    char device[32], bytes[5][24];
#define BYTES(value, i) tide_format_bytes((value), bytes[i], sizeof bytes[i])
    tide_error_prefix(err,
                      "cuda_async on %s: no memory for '%.80s': asked %s (%zu B, alignment %zu) on stream %" PRIu64
                      "; active %s, of these pending %s; the driver's pool: reserved %s, not in use %s",
                      tide_device_format(a->device, device, sizeof device), req->tag != NULL ? req->tag : "(no name)",
                      BYTES(req->size_bytes, 0), req->size_bytes, align_bytes, req->stream, BYTES(s.active_bytes, 1),
                      BYTES(s.pending_bytes, 2), BYTES(s.reserved_bytes, 3), BYTES(s.cached_bytes, 4));
#undef BYTES
    return st;
}

/// A header for the block, its stream noted; NULL with TIDE_ERR_NOMEM.
static pool_block *prepare(stream_pool *a, tide_stream_id stream, tide_error *err) {
    pthread_mutex_lock(&a->lock);
    if (a->late != NULL) settle(a);
    pool_block *b = note_stream(a, stream) ? new_block(a) : NULL;
    pthread_mutex_unlock(&a->lock);
    if (b == NULL) (void)!TIDE_FAIL(err, TIDE_ERR_NOMEM, "cuda_async: no host memory for a block");
    return b;
}

static tide_status take(stream_pool *a, const tide_alloc_request *req, size_t align, pool_block **out,
                        tide_error *err) {
    size_t asked;
    if (!tide_add_size(req->size_bytes, align - POOL_ALIGN_BYTES, &asked) || asked > PTRDIFF_MAX)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "cuda_async: %zu B (alignment %zu) for '%.80s' are more than there can be", req->size_bytes,
                         align, req->tag != NULL ? req->tag : "(no name)");
    pool_block *b = prepare(a, req->stream, err);
    if (b == NULL) return TIDE_ERR_NOMEM;
    tide_status st = driver_alloc(a->device, req->stream, asked, &b->raw, err);
    if (st == TIDE_ERR_NOMEM) st = climb(a, req->stream, asked, &b->raw, err);
    if (st == TIDE_OK) {
        b->stream = req->stream;
        b->mem.reserved_bytes = asked;
        *out = b;
        return TIDE_OK;
    }
    pthread_mutex_lock(&a->lock);
    b->next = a->spare_blocks;
    a->spare_blocks = b;
    pthread_mutex_unlock(&a->lock);
    return fail_with_numbers(a, req, align, st, err);
}

static tide_status pool_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    stream_pool *a = self;
    const size_t align = req->align_bytes > POOL_ALIGN_BYTES ? req->align_bytes : POOL_ALIGN_BYTES;
    pool_block *b = NULL;
    const tide_status st = take(a, req, align, &b, err);
    pthread_mutex_lock(&a->lock);
    if (st == TIDE_OK) {
        tide__count_alloc(&a->stats, req->size_bytes, b->mem.reserved_bytes);
        a->stats.n_system++;
    } else {
        a->stats.n_failed++;
    }
    pthread_mutex_unlock(&a->lock);
    if (st != TIDE_OK) return st;
    TIDE_ASSERT((uintptr_t)b->raw % POOL_ALIGN_BYTES == 0);
    out->data = (char *)b->raw + (size_t)(-(uintptr_t)b->raw & (align - 1));
    out->reserved_bytes = b->mem.reserved_bytes;
    out->context = b;
    return TIDE_OK;
}

// ---- uses and releasing ----

static bool note_use(stream_pool *a, pool_block *b, tide_stream_id stream) {
    for (const pool_use *u = b->uses; u != NULL; u = u->next) {
        if (u->stream == stream) return true;
    }
    pool_use *u = a->spare_uses;
    if (u != NULL) {
        a->spare_uses = u->next;
    } else if ((u = tide_host_alloc(sizeof *u)) == NULL) {
        return false;
    }
    *u = (pool_use){.next = b->uses, .stream = stream};
    b->uses = u;
    return true;
}

/// Without host memory for the note the host waits for the stream here; where it cannot, the block is kept.
static void declare(stream_pool *a, pool_block *b, tide_stream_id stream) {
    if (stream == b->stream || note_use(a, b, stream)) return;
    pthread_mutex_unlock(&a->lock);
    const tide_status st = tide_stream_sync(a->device, stream, NULL);
    pthread_mutex_lock(&a->lock);
    if (st != TIDE_OK && !is_gone(st)) b->unsure = true;
}

static void pool_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    stream_pool *a = self;
    pthread_mutex_lock(&a->lock);
    declare(a, mem->context, stream);
    pthread_mutex_unlock(&a->lock);
}

static void pool_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    stream_pool *a = self;
    pool_block *b = mem->context;
    pthread_mutex_lock(&a->lock);
    TIDE_ASSERT(!b->told && b->raw != NULL && b->mem.reserved_bytes == mem->reserved_bytes);
    declare(a, b, last_stream);
    tide__count_free(&a->stats, mem->requested_bytes, 0);
    b->mem = *mem;
    b->mem.tag = NULL;
    b->last_stream = last_stream;
    if (a->no_deferral) drop_uses(a, b);
    if (!give_back(a, b)) {
        if (!b->told) count_late(a, b, true);
        b->next = a->late;
        a->late = b;
    }
    pthread_mutex_unlock(&a->lock);
}

// ---- other calls ----

static void pool_stats(const void *self, tide_allocator_stats *out) {
    stream_pool *a = tide__mutable(self);
    tide_device_pool_stats pool = {0};
    const tide_status st = driver_stats(a->device, &pool);
    pthread_mutex_lock(&a->lock);
    tide_allocator_stats *s = &a->stats;
    // A driver that does not answer leaves what is known for certain: there is as much as is given out.
    if (st != TIDE_OK) pool = (tide_device_pool_stats){0};
    const uint64_t used = pool.used_bytes > s->active_bytes ? pool.used_bytes : s->active_bytes;
    s->reserved_bytes = pool.reserved_bytes > used ? pool.reserved_bytes : used;
    s->cached_bytes = s->reserved_bytes - used;
    if (s->reserved_bytes > s->peak_reserved_bytes) s->peak_reserved_bytes = s->reserved_bytes;
    if (pool.peak_reserved_bytes > s->peak_reserved_bytes) s->peak_reserved_bytes = pool.peak_reserved_bytes;
    *out = *s;
    pthread_mutex_unlock(&a->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static void pool_props(const void *self, tide_allocator_props *out) {
    const stream_pool *a = self;
    out->what = a->keep_all ? "the driver's own pool, in the order of streams; keeps what is freed"
                            : "the driver's own pool, in the order of streams; gives back when a stream is waited for";
    out->align_bytes = POOL_ALIGN_BYTES;
    out->max_align_bytes = POOL_MAX_ALIGN_BYTES;
    out->keeps_freed = a->keep_all;
    out->stream_aware = true;
}

/// Waits for the streams: what is free now shall be gone afterwards.
static void pool_trim(void *self) {
    stream_pool *a = self;
    pthread_mutex_lock(&a->lock);
    settle(a);
    pthread_mutex_unlock(&a->lock);
    sync_streams(a);
    (void)!tide_stream_sync(a->device, 0, NULL); // blocks of streams that are gone were freed there
    (void)!driver_trim(a->device);
}

static tide_status pool_check(const void *self, tide_error *err) {
    tide_allocator_stats s;
    pool_stats(self, &s);
    TIDE_TRY(tide__counters_check(&s, "cuda_async", err));
    stream_pool *a = tide__mutable(self);
    uint64_t n = 0, bytes = 0;
    pthread_mutex_lock(&a->lock);
    for (const pool_block *b = a->late; b != NULL; b = b->next) {
        if (b->told) continue;
        n++;
        bytes += b->mem.reserved_bytes;
    }
    const bool same = n == a->stats.n_pending && bytes == a->stats.pending_bytes;
    pthread_mutex_unlock(&a->lock);
    if (!same) return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cuda_async: blocks that are late and counters disagree");
    return TIDE_OK;
}

static void pool_listen(void *self, const tide_allocator_listener *listener) {
    stream_pool *a = self;
    pthread_mutex_lock(&a->lock);
    a->listener = listener != NULL ? *listener : (tide_allocator_listener){0};
    pthread_mutex_unlock(&a->lock);
}

// ---- creating and destroying ----

static void free_records(stream_pool *a) {
    for (pool_block *b = a->spare_blocks, *next; b != NULL; b = next) {
        next = b->next;
        tide_host_free(b);
    }
    for (pool_use *u = a->spare_uses, *next; u != NULL; u = next) {
        next = u->next;
        tide_host_free(u);
    }
    tide_host_free(a->streams);
}

/// The last try for what is late: the host waits for every use, so nothing has to be ordered.
static void end_late(stream_pool *a) {
    for (pool_block *b = a->late, *next; b != NULL; b = next) {
        next = b->next;
        for (const pool_use *u = b->uses; u != NULL; u = u->next) (void)!tide_stream_sync(a->device, u->stream, NULL);
        tell(a, b);
        (void)!driver_free(a->device, 0, b->raw);
        drop_uses(a, b);
        tide_host_free(b);
    }
    a->late = NULL;
}

static void pool_destroy(void *self) {
    stream_pool *a = self;
    tide_stream_unlisten(&a->streams_end); // without the lock: a call that is running wants it
    sync_streams(a);
    pthread_mutex_lock(&a->lock);
    settle(a);
    end_late(a);
    pthread_mutex_unlock(&a->lock);
    if (a->keep_all) (void)!driver_keep(a->device, 0, NULL); // as the driver has it for others
    pool_trim(a);
    tide_event_destroy(a->device, a->event);
    free_records(a);
    pthread_mutex_destroy(&a->lock);
    tide_host_free(a);
}

static const tide_allocator_ops stream_pool_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                                   .name = "cuda_async",
                                                   .alloc = pool_alloc,
                                                   .release = pool_release,
                                                   .stats = pool_stats,
                                                   .props = pool_props,
                                                   .destroy = pool_destroy,
                                                   .trim = pool_trim,
                                                   .check = pool_check,
                                                   .record_use = pool_record_use,
                                                   .listen = pool_listen};

tide_status tide_stream_pool_create(tide_device device, const tide_stream_pool_options *opt, tide_allocator **out,
                                    tide_error *err) {
    const tide_stream_pool_options o = opt != NULL ? *opt : (tide_stream_pool_options){0};
    void *table_self = NULL;
    TIDE_TRY(tide_device_require(device, err));
    if (table(device, &table_self) == NULL) return no_pool(device, err);
    stream_pool *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "for the state of allocator 'cuda_async'"));
    a->device = device;
    a->keep_all = !o.keep_none;
    a->no_deferral = o.unsafe_no_deferral;
    tide_status st = driver_keep(device, a->keep_all ? UINT64_MAX : 0, err);
    if (st == TIDE_OK) st = tide_event_create(device, &a->event, err);
    if (st != TIDE_OK) {
        tide_host_free(a);
        return st;
    }
    pthread_mutex_init(&a->lock, NULL);
    a->streams_end = (tide_stream_listener){.on_destroyed = on_stream_destroyed, .self = a};
    tide_stream_listen(&a->streams_end);
    return tide_allocator_create(&stream_pool_ops, a, device, out, err);
}
