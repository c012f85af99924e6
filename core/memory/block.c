// SPDX-License-Identifier: MIT
//
// block: one allocation with a reference count: creating and releasing it, guards, lazy clones. See block.h.
//
// One allocation of host memory per block; the tag lives behind the fields, so that it is as old as the block and may
// be handed to allocators and observers without a copy:
//
//     | tide_block fields ... , tag --+ | "conv1.out\0" |
//                                     +---^
#include "core/memory/block.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/device/backend.h"

/// In `flags` while a thread changes whose memory the block has: a lock of its own, so that plain access
/// takes the slow way.
#define BLOCK_LOCKED 0x80000000u

/// What errors call a block.
static const char *name_of(const tide_block *b) { return b->tag != NULL ? b->tag : "(no name)"; }

uint64_t tide_block_new_id(void) {
    static uint64_t n_blocks;
    return __atomic_add_fetch(&n_blocks, 1, __ATOMIC_RELAXED);
}

/// A block with one reference and a copy of `tag`, without id and memory; NULL: no host memory.
static tide_block *new_block(tide_device device, tide_memory_kind kind, const char *tag) {
    const size_t tag_bytes = tag != NULL ? strlen(tag) + 1 : 0;
    size_t total;
    if (!tide_add_size(sizeof(tide_block), tag_bytes, &total)) return NULL;
    tide_block *b = tide_host_calloc(1, total);
    if (b == NULL) return NULL;
    b->refs = 1;
    b->device = device;
    b->kind = kind;
    b->foreign.device = device;
    if (tag != NULL) {
        b->tag = (char *)(b + 1);
        memcpy(b->tag, tag, tag_bytes);
    }
    return b;
}

void *tide_block_data(const tide_block *b) { return b->mem.data; }

// ---- memory of an allocator ----

tide_status tide_block_create(tide_allocator *owner, size_t size_bytes, size_t align_bytes, tide_memory_kind kind,
                              tide_stream_id stream, const char *tag, tide_block **out, tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (owner == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': no allocator", name);
    if (size_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': 0 bytes were asked for", name);
    const tide_device device = tide_allocator_device(owner);
    TIDE_TRY(tide_memory_kind_check(kind, device, err));
    tide_block *b = new_block(device, kind, tag);
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'", name);
    b->id = tide_block_new_id();
    b->align_bytes = align_bytes != 0 ? align_bytes : tide_memory_kind_alignment(kind, device);
    const tide_alloc_request req = {.size_bytes = size_bytes,
                                    .align_bytes = b->align_bytes,
                                    .kind = kind,
                                    .stream = stream,
                                    .block_id = b->id,
                                    .tag = b->tag};
    const tide_status st = tide_allocator_alloc(owner, &req, &b->mem, err);
    if (st != TIDE_OK) {
        tide_host_free(b);
        return st;
    }
    b->owner = tide_allocator_ref(owner);
    TIDE_ASSERT(b->mem.requested_bytes == size_bytes && b->mem.block_id == b->id && b->mem.tag == b->tag);
    b->last_stream = stream;
    *out = b;
    return TIDE_OK;
}

// ---- memory of the caller ----

/// Bytes in blocks over foreign memory, per kind.
static uint64_t external_bytes[TIDE_N_KINDS];

uint64_t tide_block_external_bytes(tide_memory_kind kind) {
    if ((int)kind < 0 || (int)kind >= TIDE_N_KINDS) return 0;
    return __atomic_load_n(&external_bytes[kind], __ATOMIC_RELAXED);
}

static tide_status check_foreign(const tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                                 tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (ptr->data == NULL && size_bytes > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': borrowed %zu bytes at address NULL", name, size_bytes);
    if (size_bytes > UINTPTR_MAX - (uintptr_t)ptr->data)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': %zu bytes at %p go past the end of memory", name,
                         size_bytes, ptr->data);
    return tide_memory_kind_check(kind, ptr->device, err);
}

tide_status tide_block_adopt(tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                             tide_block **out, tide_error *err) {
    TIDE_TRY(check_foreign(ptr, size_bytes, kind, tag, err));
    tide_block *b = new_block(ptr->device, kind, tag);
    if (b == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'",
                         tag != NULL ? tag : "(no name)");
    b->id = tide_block_new_id();
    if (tide_data_ptr_is_read_only(ptr)) b->flags = TIDE_BLOCK_READ_ONLY;
    b->foreign = tide_data_ptr_take(ptr);
    b->mem = (tide_memory){.data = b->foreign.data,
                           .requested_bytes = size_bytes,
                           .reserved_bytes = size_bytes,
                           .context = b->foreign.context,
                           .kind = kind,
                           .block_id = b->id,
                           .tag = b->tag};
    __atomic_fetch_add(&external_bytes[kind], size_bytes, __ATOMIC_RELAXED);
    *out = b;
    return TIDE_OK;
}

tide_status tide_block_borrow(void *data, size_t size_bytes, tide_device device, tide_memory_kind kind,
                              void (*release)(void *ctx), void *ctx, const char *tag, tide_block **out,
                              tide_error *err) {
    // When adopting fails nothing is released: the memory stays the caller's.
    tide_data_ptr ptr = tide_data_ptr_make(data, ctx, release, device);
    return tide_block_adopt(&ptr, size_bytes, kind, tag, out, err);
}

tide_status tide_block_map_file(const char *path, uint64_t offset_bytes, size_t size_bytes, tide_memory_kind kind,
                                tide_block **out, tide_error *err) {
    tide_data_ptr ptr = TIDE_DATA_PTR_INIT;
    size_t mapped_bytes = 0;
    TIDE_TRY(tide_data_ptr_map_file(path, offset_bytes, size_bytes, &ptr, &mapped_bytes, err));
    const tide_status st = tide_block_adopt(&ptr, mapped_bytes, kind, path, out, err);
    tide_data_ptr_reset(&ptr); // empty when it was taken
    return st;
}

// ---- guards ----
//
// The slow way of reading and writing, taken when a flag of the block is set.

static uint32_t flags_of(const tide_block *b) { return __atomic_load_n(&b->flags, __ATOMIC_ACQUIRE); }

tide_status tide_block_read_slow(const tide_block *b, const void **out, tide_error *err) {
    if ((flags_of(b) & TIDE_BLOCK_FAIL_ACCESS) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids all access", name_of(b));
    *out = b->mem.data;
    return TIDE_OK;
}

static tide_status check_write(const tide_block *b, uint32_t flags, tide_error *err) {
    if ((flags & TIDE_BLOCK_FAIL_ACCESS) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids all access", name_of(b));
    if ((flags & TIDE_BLOCK_FAIL_WRITE) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids writing", name_of(b));
    if ((flags & TIDE_BLOCK_READ_ONLY) != 0) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': its memory is read-only", name_of(b));
        tide_error_note(err, "it is a mapping of a file");
        tide_error_hint(err, "clone the tensor first and write to the clone");
        return st;
    }
    return TIDE_OK;
}

tide_status tide_block_write_slow(tide_block *b, void **out, tide_error *err) {
    const uint32_t flags = flags_of(b);
    TIDE_TRY(check_write(b, flags, err));
    if ((flags & (TIDE_BLOCK_COW | BLOCK_LOCKED)) != 0) TIDE_TRY(tide_block_materialize(b, err));
    // The thread that clears the flag writes the line: once, however many threads write.
    if ((flags & TIDE_BLOCK_WARN_WRITE) != 0 &&
        (__atomic_fetch_and(&b->flags, ~(uint32_t)TIDE_BLOCK_WARN_WRITE, __ATOMIC_RELAXED) & TIDE_BLOCK_WARN_WRITE) !=
            0)
        tide_log(TIDE_LOG_WARN, "block '%s' is written to", name_of(b));
    *out = b->mem.data;
    return TIDE_OK;
}

void tide_block_set_guard(tide_block *b, uint32_t set, uint32_t clear) {
    const uint32_t guards = TIDE_BLOCK_FAIL_WRITE | TIDE_BLOCK_FAIL_ACCESS | TIDE_BLOCK_WARN_WRITE;
    __atomic_fetch_and(&b->flags, ~(clear & guards), __ATOMIC_RELEASE);
    __atomic_fetch_or(&b->flags, set & guards, __ATOMIC_RELEASE);
}

void tide_block_record_use(tide_block *b, tide_stream_id stream) {
    __atomic_store_n(&b->last_stream, stream, __ATOMIC_RELAXED);
    if (b->owner != NULL) tide_allocator_record_use(b->owner, &b->mem, stream);
}

// ---- parallel sections ----

static _Thread_local uint32_t parallel_depth;

void tide_parallel_enter(void) { parallel_depth++; }

void tide_parallel_leave(void) {
    if (parallel_depth > 0) parallel_depth--;
}

/// The writes of this thread must not copy (tide_parallel_enter).
static bool in_parallel_section(void) { return parallel_depth > 0; }

// ---- lazy clones ----
//
// Copy-on-write: several blocks over the same memory, and how each gets memory of its own.
//
//     lazy clone                 a is written                  b is written
//
//     a --+                      a ----> | copy of M |         a ----> | copy of M |
//         +--> cow --> | M |     b ----> cow --> | M |         b ----> | M |          the last owner takes it
//     b --+    2 owners                  1 owner
//
// The context counts the blocks that share (*owners*) and those of them that are copying at this moment. A writer waits
// while all other owners copy: if they succeed, it is the last and needs no copy. So n owners that all write make
// n - 1 copies, also when they write at once, and a failed copy leaves its block as it was: still an owner.
//
// Whose memory a block has changes under the block's own lock bit (BLOCK_LOCKED). The context's mutex is taken
// inside it, never the other way, and is not held while bytes are copied.

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
    TIDE_ASSERT(c->n_owners <= 1 && c->n_copying == 0); // a spare one has the owner that it was made for
    pthread_cond_destroy(&c->copied);
    pthread_mutex_destroy(&c->lock);
    tide_host_free(c);
}

// ---- the block's own lock ----

static void lock_block(tide_block *b) {
    while ((__atomic_fetch_or(&b->flags, BLOCK_LOCKED, __ATOMIC_ACQUIRE) & BLOCK_LOCKED) != 0) sched_yield();
}

static void unlock_block(tide_block *b) {
    const uint32_t before = __atomic_fetch_and(&b->flags, ~BLOCK_LOCKED, __ATOMIC_RELEASE);
    TIDE_ASSERT((before & BLOCK_LOCKED) != 0);
}

static cow *cow_of(const tide_block *b) { return __atomic_load_n(&b->cow, __ATOMIC_ACQUIRE); }

// ---- state ----

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
                      name_of(b), (unsigned long long)stream, (unsigned long long)own);
        tide_error_note(err, "the two streams would have to wait for each other at every first write");
        tide_error_hint(err, "copy the block, or clone it on its own stream");
        return st;
    }
    return TIDE_OK;
}

/// A block that differs from `b` in reference, flags and tag only; a part in the memory is not taken yet.
static tide_block *twin_of(const tide_block *b) {
    tide_block *twin = new_block(b->device, b->kind, b->tag);
    if (twin == NULL) return NULL;
    twin->owner = tide_allocator_ref(b->owner);
    twin->last_stream = __atomic_load_n(&b->last_stream, __ATOMIC_RELAXED);
    twin->align_bytes = b->align_bytes;
    return twin;
}

/// Under the lock of `b`: both are owners of one context now, `*spare` is used up when there was none.
static void share(tide_block *b, tide_block *twin, cow **spare) {
    TIDE_ASSERT((b->flags & BLOCK_LOCKED) != 0 && b->owner != NULL && (b->cow != NULL || *spare != NULL));
    if (b->cow == NULL) {
        __atomic_store_n(&b->cow, *spare, __ATOMIC_RELEASE);
        *spare = NULL;
    }
    pthread_mutex_lock(&b->cow->lock);
    TIDE_ASSERT(b->cow->n_owners > 0 && b->cow->n_copying < b->cow->n_owners);
    b->cow->n_owners++;
    pthread_mutex_unlock(&b->cow->lock);
    twin->cow = b->cow;
    twin->id = b->id;
    twin->mem = b->mem;
    twin->mem.tag = twin->tag;
    twin->flags = TIDE_BLOCK_COW;
    __atomic_fetch_or(&b->flags, TIDE_BLOCK_COW, __ATOMIC_RELEASE);
}

/// No other thread has seen it yet.
static void drop_twin(tide_block *twin) {
    if (twin != NULL) tide_allocator_unref(twin->owner);
    tide_host_free(twin);
}

tide_status tide_block_lazy_clone(tide_block *b, tide_stream_id stream, tide_block **out, tide_error *err) {
    TIDE_TRY(check_clone(b, stream, err));
    lock_block(b); // another thread may be giving it other memory
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
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a lazy clone of block '%s'", name_of(b));
}

// ---- materialising: memory of its own ----

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
                                    .block_id = tide_block_new_id(),
                                    .tag = b->tag};
    tide_memory fresh;
    tide_status st = tide_allocator_alloc(b->owner, &req, &fresh, err);
    if (st == TIDE_OK) {
        st = copy_bytes(b, fresh.data, err);
        if (st != TIDE_OK) tide_allocator_release(b->owner, &fresh, b->last_stream);
    }
    if (st != TIDE_OK) {
        tide_error_prefix(err, "block '%s' is shared and needs a copy to be written", name_of(b));
        return st;
    }
    *out = fresh;
    return TIDE_OK;
}

/// One owner less. True when it was the last: the context belongs to the caller then. Unlocks the context.
static bool leave_and_unlock(cow *c) {
    TIDE_ASSERT(c->n_owners > 0 && c->n_copying < c->n_owners); // the one that leaves does not copy
    const bool last = --c->n_owners == 0;
    pthread_cond_broadcast(&c->copied);
    pthread_mutex_unlock(&c->lock);
    return last;
}

/// The context is locked and other owners do not all copy: copy too, without the lock. Unlocks.
static tide_status part_by_copy(tide_block *b, cow *c, tide_error *err) {
    TIDE_ASSERT(c->n_copying + 1 < c->n_owners);
    c->n_copying++;
    pthread_mutex_unlock(&c->lock);
    tide_memory fresh;
    const tide_status st = copy_memory(b, &fresh, err);
    pthread_mutex_lock(&c->lock);
    TIDE_ASSERT(c->n_copying > 0);
    c->n_copying--;
    if (st != TIDE_OK) {
        pthread_cond_broadcast(&c->copied);
        pthread_mutex_unlock(&c->lock);
        return st;
    }
    __atomic_fetch_add(&n_copies, 1, __ATOMIC_RELAXED);
    TIDE_ASSERT(fresh.data != b->mem.data && fresh.requested_bytes == b->mem.requested_bytes);
    const tide_memory shared = b->mem;
    if (leave_and_unlock(c)) {
        // The others were freed while this one copied: the old bytes are not needed any more.
        tide_allocator_release(b->owner, &shared, b->last_stream);
        cow_destroy(c);
    }
    b->mem = fresh;
    b->id = fresh.block_id;
    return TIDE_OK;
}

/// Under the lock of `b`, which has a context.
static tide_status part(tide_block *b, tide_error *err) {
    TIDE_ASSERT((b->flags & (BLOCK_LOCKED | TIDE_BLOCK_COW)) == (BLOCK_LOCKED | TIDE_BLOCK_COW));
    cow *const c = b->cow;
    pthread_mutex_lock(&c->lock);
    TIDE_ASSERT(!b->fixed || c->n_owners == 1);
    while (c->n_owners > 1 && c->n_copying + 1 == c->n_owners) pthread_cond_wait(&c->copied, &c->lock);
    if (c->n_owners == 1) {
        (void)leave_and_unlock(c);
        cow_destroy(c);
        return TIDE_OK;
    }
    if (in_parallel_section()) {
        pthread_mutex_unlock(&c->lock);
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s' is shared and would be copied in a parallel loop", name_of(b));
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

/// A block that is freed leaves the shared memory of lazy clones; the last one gives the memory back to the owner.
static void leave_cow(tide_block *b) {
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
                           name_of(b), n_owners - 1);
    }
    // Alone in its context it may stay there: the next write takes the memory as it is, without a copy.
    if (st == TIDE_OK) __atomic_store_n(&b->fixed, true, __ATOMIC_RELAXED);
    unlock_block(b);
    return st;
}

// ---- references ----

tide_block *tide_block_ref(tide_block *b) {
    const uint32_t before = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return b;
}

void tide_block_unref(tide_block *b) {
    if (b == NULL) return;
    const uint32_t before = __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    TIDE_ASSERT((b->flags & BLOCK_LOCKED) == 0);
    TIDE_ASSERT(b->owner != NULL ? b->foreign.release == NULL : b->cow == NULL); // one owner of the memory, not two
    TIDE_ASSERT((b->cow != NULL) == ((b->flags & TIDE_BLOCK_COW) != 0));
    if (b->owner == NULL) {
        const uint64_t sum = __atomic_fetch_sub(&external_bytes[b->kind], b->mem.requested_bytes, __ATOMIC_RELAXED);
        TIDE_ASSERT(sum >= b->mem.requested_bytes);
        tide_data_ptr_reset(&b->foreign);
    } else if (b->cow != NULL) {
        leave_cow(b);
    } else {
        tide_allocator_release(b->owner, &b->mem, b->last_stream);
    }
    tide_allocator_unref(b->owner);
    tide_host_free(b);
}

uint32_t tide_block_use_count(const tide_block *b) { return __atomic_load_n(&b->refs, __ATOMIC_RELAXED); }

// ---- text ----

void tide_block_describe(const tide_block *b, tide_text *out) {
    char device[32];
    tide_text_addf(out,
                   "block %" PRIu64
                   " at %p: requested %zu B, reserved %zu B, %s, kind %s, owner %s, last stream %" PRIu64 ", %" PRIu32
                   " references, %s",
                   b->id, b->mem.data, b->mem.requested_bytes, b->mem.reserved_bytes,
                   tide_device_format(b->device, device, sizeof device), tide_memory_kind_name(b->kind),
                   b->owner != NULL ? tide_allocator_name(b->owner) : "(external)",
                   __atomic_load_n(&b->last_stream, __ATOMIC_RELAXED), tide_block_use_count(b),
                   tide_block_state_name(tide_block_get_state(b)));
    if (b->tag != NULL) tide_text_addf(out, ", '%s'", b->tag);
}

// ---- factories ----
//
// The functions that create blocks for a type of device (PT-23): one entry per type, empty at first.

typedef struct factory_row {
    tide_block_factory make; ///< NULL: tide_block_create
    void *self;
} factory_row;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards rows
static factory_row rows[TIDE_MAX_DEVICE_TYPES];

tide_status tide_block_set_factory(tide_device_type type, tide_block_factory factory, void *self, tide_error *err) {
    if ((int)type < 0 || (int)type >= TIDE_MAX_DEVICE_TYPES)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "device type %d is not one of 0 to %d", (int)type,
                         TIDE_MAX_DEVICE_TYPES - 1);
    pthread_mutex_lock(&lock);
    rows[type] = (factory_row){.make = factory, .self = self};
    pthread_mutex_unlock(&lock);
    return TIDE_OK;
}

static factory_row row_of(const tide_allocator *owner) {
    factory_row row = {0};
    const int type = owner != NULL ? (int)tide_allocator_device(owner).type : -1;
    if (type < 0 || type >= TIDE_MAX_DEVICE_TYPES) return row;
    pthread_mutex_lock(&lock);
    row = rows[type];
    pthread_mutex_unlock(&lock);
    return row;
}

tide_status tide_block_make(const tide_block_request *req, tide_block **out, tide_error *err) {
    const factory_row row = row_of(req->owner);
    if (row.make == NULL)
        return tide_block_create(req->owner, req->size_bytes, req->align_bytes, req->kind, req->stream, req->tag, out,
                                 err);
    tide_block *b = NULL;
    TIDE_TRY(row.make(row.self, req, &b, err));
    if (b == NULL || b->mem.requested_bytes < req->size_bytes) {
        char device[32];
        tide_block_unref(b);
        return TIDE_FAIL(err, TIDE_ERR_BACKEND, "the block factory of %s made no block of %zu B",
                         tide_device_format(tide_allocator_device(req->owner), device, sizeof device), req->size_bytes);
    }
    *out = b;
    return TIDE_OK;
}
