// SPDX-License-Identifier: MIT
//
// poison: an inner allocator whose memory shows forbidden reads and writes. For debugging runs
// (`--fill poison`) and tests; host memory only. A block of n bytes in its inner allocator:
//
//     inner block
//     | red zone ...........| n bytes                 | red zone  |
//     |<- 64 B, or the ---->|<- 0xFF when given out,->|<- 64 B -->|
//        alignment asked     |   0xFF when it is back
//                            ^ data, aligned
//
// 0xFF is a NaN in every float type, so a read of memory that was not written, or was freed, shows in the results. The
// zones have a pattern of their own, since a copy of poisoned bytes that runs too far must not look intact. They are
// looked at when the block is released and by check(). A release that finds damage logs it as an error and remembers
// the first one, and check() says so for as long as the allocator lives; damage of a live block is said until it is
// gone.
//
// Memory of a stream-aware inner allocator may be in use after its release: it is looked at and filled when the streams
// are done with it. Until then its record waits in the list of pending blocks.
//
// The numbers are inner's, except requested, which leaves the zones out: they count as rounding (active - requested).
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/wrap.h"
#include "core/memory/poison.h"

enum { ZONE_BYTES = 64, ZONE_BYTE = 0xA5, TAG_MAX = 128 };

/// One block, in the list of live or of pending ones.
typedef struct record {
    struct record *next, *prev;
    tide_memory inner; // as inner gave it
    tide_memory user;  // as the caller has it
    char tag[];        // a copy, cut: a released block's own is gone
} record;

typedef struct poison_state {
    tide__wrap wrap; // first
    tide_allocator_listener outer;
    size_t align_bytes;   // of inner's blocks at the least
    pthread_mutex_t lock; // guards all below; never held while inner is called
    record *live, *pending;
    uint64_t requested_bytes, peak_requested_bytes, n_failed, n_damaged;
    char first_damage[256]; // found at a release; empty: none
} poison_state;

// ---- records; the caller holds the lock ----

static void put(record **list, record *r) {
    TIDE_ASSERT(*list != r);
    r->prev = NULL;
    r->next = *list;
    if (*list != NULL) (*list)->prev = r;
    *list = r;
}

static void drop(record **list, record *r) {
    TIDE_ASSERT(r->prev != NULL || *list == r);
    if (r->next != NULL) r->next->prev = r->prev;
    *(r->prev != NULL ? &r->prev->next : list) = r->next;
}

// ---- red zones ----

static size_t front_bytes(const record *r) { return (size_t)((char *)r->user.data - (char *)r->inner.data); }
static unsigned char *user_end(const record *r) { return (unsigned char *)r->user.data + r->user.requested_bytes; }

static void paint_zones(const record *r) {
    TIDE_ASSERT(front_bytes(r) >= ZONE_BYTES);
    TIDE_ASSERT(front_bytes(r) + r->user.requested_bytes + ZONE_BYTES <= r->inner.reserved_bytes);
    memset(r->inner.data, ZONE_BYTE, front_bytes(r));
    memset(user_end(r), ZONE_BYTE, ZONE_BYTES);
}

/// The damaged byte that is nearest to the block; says where in words. False: both zones are intact.
static bool find_damage(const record *r, char *text, size_t text_bytes) {
    const unsigned char *const begin = r->user.data, *const end = user_end(r);
    size_t before = 1, behind = 0;
    while (behind < ZONE_BYTES && end[behind] == ZONE_BYTE) behind++;
    while (before <= front_bytes(r) && *(begin - before) == ZONE_BYTE) before++;
    const bool is_behind = behind < ZONE_BYTES;
    if (!is_behind && before > front_bytes(r)) return false;
    const size_t offset = is_behind ? behind + 1 : before;
    const unsigned byte = is_behind ? end[behind] : *(begin - before);
    snprintf(text, text_bytes, "block %" PRIu64 " '%s' (%s, %zu B) was written outside its bounds: %zu B %s, 0x%02X",
             r->user.block_id, r->tag, tide_memory_kind_name(r->user.kind), r->user.requested_bytes, offset,
             is_behind ? "past its end" : "before its start", byte);
    return true;
}

/// The block is not used any more.
static void settle(poison_state *p, const record *r) {
    char damage[sizeof p->first_damage];
    if (find_damage(r, damage, sizeof damage)) {
        pthread_mutex_lock(&p->lock);
        p->n_damaged++;
        if (p->first_damage[0] == '\0') memcpy(p->first_damage, damage, sizeof damage);
        pthread_mutex_unlock(&p->lock);
        tide_log(TIDE_LOG_ERROR, "poison: %s", damage);
    }
    tide_poison_fill(r->user.data, r->user.requested_bytes);
}

// ---- the table ----

static tide_status fail_alloc(poison_state *p, tide_status st) {
    pthread_mutex_lock(&p->lock);
    p->n_failed++;
    pthread_mutex_unlock(&p->lock);
    return st;
}

static record *new_record(const tide_alloc_request *req) {
    const char *const tag = tide__tag_text(req->tag);
    const size_t len = strnlen(tag, TAG_MAX);
    record *r = tide_host_calloc(1, sizeof *r + len + 1);
    if (r != NULL) memcpy(r->tag, tag, len);
    return r;
}

static tide_status poison_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    poison_state *p = self;
    const size_t align = req->align_bytes > p->align_bytes ? req->align_bytes : p->align_bytes;
    const size_t front = align > ZONE_BYTES ? align : ZONE_BYTES;
    tide_alloc_request wider = *req;
    wider.align_bytes = align;
    if (!tide_add_size(req->size_bytes, front, &wider.size_bytes) ||
        !tide_add_size(wider.size_bytes, ZONE_BYTES, &wider.size_bytes))
        return fail_alloc(p, TIDE_FAIL(err, TIDE_ERR_NOMEM, "poison: '%s' needs %zu B and two red zones",
                                       tide__tag_text(req->tag), req->size_bytes));
    record *r = new_record(req);
    if (r == NULL)
        return fail_alloc(p, TIDE_FAIL(err, TIDE_ERR_NOMEM, "poison: no host memory for the record of '%s'",
                                       tide__tag_text(req->tag)));
    const tide_status st = tide_allocator_alloc(p->wrap.inner, &wider, &r->inner, err);
    if (st != TIDE_OK) {
        tide_host_free(r);
        return st;
    }
    out->data = (char *)r->inner.data + front;
    out->reserved_bytes = r->inner.reserved_bytes;
    out->context = r;
    r->user = *out;
    paint_zones(r);
    tide_poison_fill(out->data, out->requested_bytes);
    pthread_mutex_lock(&p->lock);
    put(&p->live, r);
    p->requested_bytes += out->requested_bytes;
    if (p->requested_bytes > p->peak_requested_bytes) p->peak_requested_bytes = p->requested_bytes;
    pthread_mutex_unlock(&p->lock);
    return TIDE_OK;
}

static void poison_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    poison_state *p = self;
    record *r = mem->context;
    const tide_memory inner = r->inner;
    const bool deferred = p->wrap.deferred;
    pthread_mutex_lock(&p->lock);
    TIDE_ASSERT(r->user.data == mem->data && r->user.requested_bytes == mem->requested_bytes);
    TIDE_ASSERT(p->requested_bytes >= mem->requested_bytes);
    drop(&p->live, r);
    p->requested_bytes -= mem->requested_bytes;
    if (deferred) put(&p->pending, r);
    pthread_mutex_unlock(&p->lock);
    if (!deferred) {
        settle(p, r);
        tide_host_free(r);
    }
    tide_allocator_release(p->wrap.inner, &inner, last_stream);
}

static void hear_completed(void *self, const tide_memory *mem, tide_stream_id stream) {
    poison_state *p = self;
    pthread_mutex_lock(&p->lock);
    record *r = p->pending;
    while (r != NULL && r->inner.data != mem->data) r = r->next;
    if (r != NULL) drop(&p->pending, r);
    pthread_mutex_unlock(&p->lock);
    if (r == NULL) return; // not from here
    settle(p, r);
    r->user.tag = NULL;
    if (p->outer.on_free_completed != NULL) p->outer.on_free_completed(p->outer.self, &r->user, stream);
    tide_host_free(r);
}

static void hear_segment(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes) {
    const poison_state *p = self;
    if (p->outer.on_segment != NULL) p->outer.on_segment(p->outer.self, taken, id, address, size_bytes);
}

static void poison_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    const poison_state *p = self;
    tide_allocator_record_use(p->wrap.inner, &((const record *)mem->context)->inner, stream);
}

static void poison_stats(const void *self, tide_allocator_stats *out) {
    poison_state *p = tide__mutable(self);
    tide_allocator_get_stats(p->wrap.inner, out);
    pthread_mutex_lock(&p->lock);
    // Two calls, between which other threads may have allocated: the numbers of the first must not be below what was
    // requested.
    out->requested_bytes = p->requested_bytes < out->active_bytes ? p->requested_bytes : out->active_bytes;
    out->peak_requested_bytes = p->peak_requested_bytes;
    out->n_failed += p->n_failed;
    pthread_mutex_unlock(&p->lock);
}

static void poison_props(const void *self, tide_allocator_props *out) {
    const poison_state *p = self;
    tide_allocator_get_props(p->wrap.inner, out);
    out->what = "fills memory with NaN, guards both ends";
    const uint64_t zones = ZONE_BYTES + (out->align_bytes > ZONE_BYTES ? out->align_bytes : ZONE_BYTES);
    if (out->max_bytes != TIDE_UNKNOWN_BYTES) out->max_bytes = out->max_bytes > zones ? out->max_bytes - zones : 0;
}

/// Live blocks, then what releases found.
static tide_status check_locked(const poison_state *p, tide_error *err) {
    char damage[sizeof p->first_damage];
    for (const record *r = p->live; r != NULL; r = r->next) {
        if (find_damage(r, damage, sizeof damage)) return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "poison: %s", damage);
    }
    if (p->n_damaged == 0) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "poison: %s", p->first_damage);
    tide_error_note(err, "found when it was released; %" PRIu64 " block%s so far", p->n_damaged,
                    p->n_damaged == 1 ? "" : "s");
    return st;
}

static tide_status poison_check(const void *self, tide_error *err) {
    poison_state *p = tide__mutable(self);
    TIDE_TRY(tide_allocator_check(p->wrap.inner, err));
    pthread_mutex_lock(&p->lock);
    const tide_status st = check_locked(p, err);
    pthread_mutex_unlock(&p->lock);
    return st;
}

static void poison_listen(void *self, const tide_allocator_listener *listener) {
    poison_state *p = self;
    p->outer = listener != NULL ? *listener : (tide_allocator_listener){0};
}

static void poison_destroy(void *self) {
    poison_state *p = self;
    tide__wrap_deinit(&p->wrap);
    // What is pending in an inner allocator that lives on without us is not looked at.
    while (p->pending != NULL) {
        record *const r = p->pending;
        p->pending = r->next;
        tide_host_free(r);
    }
    pthread_mutex_destroy(&p->lock);
    tide_host_free(p);
}

static const tide_allocator_ops poison_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "poison",
                                              .alloc = poison_alloc,
                                              .release = poison_release,
                                              .stats = poison_stats,
                                              .props = poison_props,
                                              .destroy = poison_destroy,
                                              .reset = tide__wrap_reset,
                                              .trim = tide__wrap_trim,
                                              .check = poison_check,
                                              .record_use = poison_record_use,
                                              .listen = poison_listen};

tide_status tide_poison_create(tide_allocator *inner, tide_allocator **out, tide_error *err) {
    const tide_device device = tide_allocator_device(inner);
    if (device.type != TIDE_DEVICE_CPU) {
        char name[32];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "poison: memory of %s cannot be filled and looked at from here",
                         tide_device_format(device, name, sizeof name));
    }
    poison_state *p;
    TIDE_TRY(TIDE_NEW(&p, 1, err, "for the state of allocator 'poison'"));
    pthread_mutex_init(&p->lock, NULL);
    tide__wrap_init(&p->wrap, inner);
    tide_allocator_props props;
    tide_allocator_get_props(inner, &props);
    p->align_bytes = props.align_bytes;
    tide_allocator *a = NULL;
    TIDE_TRY(tide_allocator_create(&poison_ops, p, device, &a, err));
    if (p->wrap.deferred) {
        const tide_allocator_listener ears = {
            .self = p, .on_free_completed = hear_completed, .on_segment = hear_segment};
        tide__wrap_hear(&p->wrap, &ears);
    }
    *out = a;
    return TIDE_OK;
}
