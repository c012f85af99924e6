// SPDX-License-Identifier: MIT
//
// Copy-on-write: several blocks over one piece of memory, and how each gets memory of its own. See block.h.
//
//     lazy clone                 a is written                  b is written
//
//     a --+                      a ----> | copy of M |         a ----> | copy of M |
//         +--> cow --> | M |     b ----> cow --> | M |         b ----> | M |          the last owner takes it
//     b --+    2 owners                  1 owner
//
// The context counts the blocks that share (*owners*) and those of them that are copying at this moment. A writer whose
// fellows all copy waits for them: if they succeed, it is the last and needs no copy. So n owners that all write make
// n - 1 copies, also when they write at once, and a failed copy leaves its block as it was: still an owner.
//
// Whose memory a block has changes under the block's own lock bit (TIDE__BLOCK_LOCKED). The context's mutex is taken
// inside it, never the other way, and is not held while bytes are copied.
#include <pthread.h>
#include <sched.h>

#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/block_internal.h"

/// Freed by the last owner. The memory itself is described by each owner's `mem`, with that block's own tag.
struct tide__cow {
    pthread_mutex_t lock;
    pthread_cond_t copied; ///< an owner left or stopped copying
    uint32_t n_owners;
    uint32_t n_copying; ///< of the owners
};
typedef struct tide__cow cow;

static cow *cow_create(void) {
    cow *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->copied, NULL);
    c->n_owners = 1;
    return c;
}

static void cow_destroy(cow *c) {
    if (c == NULL) return;
    pthread_cond_destroy(&c->copied);
    pthread_mutex_destroy(&c->lock);
    tide_host_free(c);
}

// ---- the block's own lock ----

static void lock_block(tide_block *b) {
    while ((__atomic_fetch_or(&b->flags, TIDE__BLOCK_LOCKED, __ATOMIC_ACQUIRE) & TIDE__BLOCK_LOCKED) != 0)
        sched_yield();
}

static void unlock_block(tide_block *b) { __atomic_fetch_and(&b->flags, ~TIDE__BLOCK_LOCKED, __ATOMIC_RELEASE); }

static cow *cow_of(const tide_block *b) { return __atomic_load_n(&b->cow, __ATOMIC_ACQUIRE); }

// ---- asking ----

const char *tide_block_state_name(tide_block_state state) {
    switch (state) {
    case TIDE_BLOCK_NORMAL:
        return "normal";
    case TIDE_BLOCK_SHARED:
        return "shared";
    case TIDE_BLOCK_MATERIALIZED:
        return "materialized";
    }
    return "state ?";
}

tide_block_state tide_block_get_state(const tide_block *b) {
    if (tide_block_is_cow(b)) return TIDE_BLOCK_SHARED;
    return __atomic_load_n(&b->materialized, __ATOMIC_RELAXED) ? TIDE_BLOCK_MATERIALIZED : TIDE_BLOCK_NORMAL;
}

bool tide_block_is_simple(const tide_block *b) {
    return b->owner != NULL && (b->mem.context == NULL || b->mem.context == b->mem.data) &&
           !__atomic_load_n(&b->fixed, __ATOMIC_RELAXED);
}

bool tide_block_is_cow(const tide_block *b) {
    return (__atomic_load_n(&b->flags, __ATOMIC_ACQUIRE) & TIDE_BLOCK_COW) != 0;
}

bool tide_block_is_alias(const tide_block *a, const tide_block *b) {
    if (a == NULL || b == NULL) return false;
    return a == b || (cow_of(a) != NULL && cow_of(a) == cow_of(b));
}

// ---- sharing ----

static tide_status check_clone(const tide_block *b, tide_stream_id stream, tide_error *err) {
    const tide_stream_id own = __atomic_load_n(&b->last_stream, __ATOMIC_RELAXED);
    if ((__atomic_load_n(&b->flags, __ATOMIC_RELAXED) & TIDE_BLOCK_FAIL_ACCESS) != 0) {
        const void *unused;
        TIDE_TRY(tide_block_read_slow(b, &unused, err));
    }
    if (stream != own) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': a lazy clone for stream %llu of memory in use on stream %llu",
                      tide__block_name(b), (unsigned long long)stream, (unsigned long long)own);
        tide_error_note(err, "the two streams would have to wait for each other at every first write");
        tide_error_hint(err, "copy the block, or clone it on its own stream");
        return st;
    }
    return TIDE_OK;
}

/// A block that differs from `b` in reference, flags and tag only; a part in the memory is not taken yet.
static tide_block *twin_of(const tide_block *b) {
    tide_block *twin = tide__block_new(b->device, b->kind, b->tag);
    if (twin == NULL) return NULL;
    twin->owner = tide_allocator_ref(b->owner);
    twin->last_stream = __atomic_load_n(&b->last_stream, __ATOMIC_RELAXED);
    twin->align_bytes = b->align_bytes;
    return twin;
}

/// Under the lock of `b`: both are owners of one context now, `*spare` is used up when there was none.
static void share(tide_block *b, tide_block *twin, cow **spare) {
    if (b->cow == NULL) {
        __atomic_store_n(&b->cow, *spare, __ATOMIC_RELEASE);
        *spare = NULL;
    }
    pthread_mutex_lock(&b->cow->lock);
    b->cow->n_owners++;
    pthread_mutex_unlock(&b->cow->lock);
    twin->cow = b->cow;
    twin->id = b->id;
    twin->mem = b->mem;
    twin->mem.tag = twin->tag;
    twin->flags = TIDE_BLOCK_COW;
    __atomic_fetch_or(&b->flags, TIDE_BLOCK_COW, __ATOMIC_RELEASE);
}

/// Nobody has seen it yet.
static void drop_twin(tide_block *twin) {
    if (twin != NULL) tide_allocator_unref(twin->owner);
    tide_host_free(twin);
}

tide_status tide_block_lazy_clone(tide_block *b, tide_stream_id stream, tide_block **out, tide_error *err) {
    TIDE_TRY(check_clone(b, stream, err));
    lock_block(b); // whose memory it has may be changing
    const bool simple = tide_block_is_simple(b), shared = b->cow != NULL;
    unlock_block(b);
    if (!simple) {
        *out = NULL;
        return TIDE_OK;
    }
    // All host memory is taken before anything is shared, and without the lock.
    tide_block *twin = twin_of(b);
    cow *spare = twin != NULL && !shared ? cow_create() : NULL;
    lock_block(b);
    const bool changed = !tide_block_is_simple(b) || (shared && b->cow == NULL); // fixed or settled since
    const bool enough = twin != NULL && (b->cow != NULL || spare != NULL);
    if (!changed && enough) share(b, twin, &spare);
    unlock_block(b);
    cow_destroy(spare);
    if (!changed && enough) {
        *out = twin;
        return TIDE_OK;
    }
    drop_twin(twin);
    if (changed) return tide_block_lazy_clone(b, stream, out, err);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a lazy clone of block '%s'", tide__block_name(b));
}

// ---- parting ----

static uint64_t n_copies;

uint64_t tide_block_n_copies(void) { return __atomic_load_n(&n_copies, __ATOMIC_RELAXED); }

static tide_status copy_bytes(const tide_block *b, void *to, tide_error *err) {
    // In the order of the stream: what is queued there may still write the bytes.
    TIDE_TRY(tide_device_copy(b->device, b->last_stream, TIDE_COPY_WITHIN_DEVICE, to, b->mem.data,
                              b->mem.requested_bytes, err));
    return tide_stream_sync(b->device, b->last_stream, err);
}

/// Memory like that of `b`, from the same owner, with the same content.
static tide_status copy_memory(const tide_block *b, tide_memory *out, tide_error *err) {
    const tide_alloc_request req = {.size_bytes = b->mem.requested_bytes,
                                    .align_bytes = b->align_bytes,
                                    .kind = b->kind,
                                    .stream = b->last_stream,
                                    .block_id = tide__block_next_id(),
                                    .tag = b->tag};
    tide_memory fresh;
    tide_status st = tide_allocator_alloc(b->owner, &req, &fresh, err);
    if (st == TIDE_OK) {
        st = copy_bytes(b, fresh.data, err);
        if (st != TIDE_OK) tide_allocator_release(b->owner, &fresh, b->last_stream);
    }
    if (st != TIDE_OK) {
        tide_error_prefix(err, "block '%s' is shared and needs a copy to be written", tide__block_name(b));
        return st;
    }
    *out = fresh;
    return TIDE_OK;
}

/// One owner less. True when it was the last: the context belongs to the caller then. Unlocks the context.
static bool leave_and_unlock(cow *c) {
    const bool last = --c->n_owners == 0;
    pthread_cond_broadcast(&c->copied);
    pthread_mutex_unlock(&c->lock);
    return last;
}

/// The context is locked and other owners do not all copy: copy too, without the lock. Unlocks.
static tide_status part_by_copy(tide_block *b, cow *c, tide_error *err) {
    c->n_copying++;
    pthread_mutex_unlock(&c->lock);
    tide_memory fresh;
    const tide_status st = copy_memory(b, &fresh, err);
    pthread_mutex_lock(&c->lock);
    c->n_copying--;
    if (st != TIDE_OK) {
        pthread_cond_broadcast(&c->copied);
        pthread_mutex_unlock(&c->lock);
        return st;
    }
    __atomic_fetch_add(&n_copies, 1, __ATOMIC_RELAXED);
    const tide_memory shared = b->mem;
    if (leave_and_unlock(c)) {
        // The others died while this one copied: nobody needs the old bytes.
        tide_allocator_release(b->owner, &shared, b->last_stream);
        cow_destroy(c);
    }
    b->mem = fresh;
    b->id = fresh.block_id;
    return TIDE_OK;
}

/// Under the lock of `b`, which has a context.
static tide_status part(tide_block *b, tide_error *err) {
    cow *const c = b->cow;
    pthread_mutex_lock(&c->lock);
    while (c->n_owners > 1 && c->n_copying + 1 == c->n_owners) pthread_cond_wait(&c->copied, &c->lock);
    if (c->n_owners == 1) {
        (void)leave_and_unlock(c);
        cow_destroy(c);
        return TIDE_OK;
    }
    if (tide__in_parallel()) {
        pthread_mutex_unlock(&c->lock);
        const tide_status st = TIDE_FAIL(
            err, TIDE_ERR_BUSY, "block '%s' is shared and would be copied in a parallel loop", tide__block_name(b));
        tide_error_hint(err, "write to it, or call tide_block_materialize, before the loop");
        return st;
    }
    return part_by_copy(b, c, err);
}

tide_status tide_block_materialize(tide_block *b, tide_error *err) {
    lock_block(b);
    tide_status st = TIDE_OK;
    if (b->cow != NULL) {
        st = part(b, err);
        if (st == TIDE_OK) {
            __atomic_store_n(&b->cow, NULL, __ATOMIC_RELEASE);
            __atomic_store_n(&b->materialized, true, __ATOMIC_RELAXED);
            __atomic_fetch_and(&b->flags, ~(uint32_t)TIDE_BLOCK_COW, __ATOMIC_RELAXED);
        }
    }
    unlock_block(b);
    return st;
}

void tide__cow_leave(tide_block *b) {
    cow *const c = b->cow;
    pthread_mutex_lock(&c->lock);
    if (!leave_and_unlock(c)) return;
    tide_allocator_release(b->owner, &b->mem, b->last_stream);
    cow_destroy(c);
}

tide_status tide_block_fix(tide_block *b, tide_error *err) {
    tide_status st = TIDE_OK;
    lock_block(b);
    if (b->cow != NULL) {
        pthread_mutex_lock(&b->cow->lock);
        const uint32_t n_owners = b->cow->n_owners;
        pthread_mutex_unlock(&b->cow->lock);
        if (n_owners > 1)
            st = TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': its address may change, %u lazy clones share its memory",
                           tide__block_name(b), n_owners - 1);
    }
    // Alone in its context it may stay there: the next write takes the memory as it is, without a copy.
    if (st == TIDE_OK) __atomic_store_n(&b->fixed, true, __ATOMIC_RELAXED);
    unlock_block(b);
    return st;
}
