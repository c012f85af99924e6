// SPDX-License-Identifier: MIT
//
// block: one allocation from an allocator, or memory that came as a data pointer; reference-counted.
//
//     tensor  ->  storage (slice, by value)  ->  block  ->  memory of an allocator | data pointer
//
// A block is the state that all storages over it share: guards that forbid access, and copy-on-write. A *lazy clone* is
// a second block over the same memory; the block that is written first gets memory of its own, and every storage and
// tensor over that block moves with it. So an address is good until the block is next written or lazily cloned; a
// caller that must keep one (a planned buffer) says so with tide_block_fix. Making a block, its references and its
// plain address are public (tidemark/memory.h).
#ifndef TIDE_CORE_MEMORY_BLOCK_H
#define TIDE_CORE_MEMORY_BLOCK_H

#include "core/base/text.h"
#include "core/memory/allocator.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Flags that stop plain access; all in one word, so that the usual path pays one test (PT-7).
enum {
    TIDE_BLOCK_COW = 1,         ///< the memory may be shared with lazy clones: the next write settles it
    TIDE_BLOCK_FAIL_WRITE = 2,  ///< writing is refused
    TIDE_BLOCK_FAIL_ACCESS = 4, ///< reading and writing are refused
    TIDE_BLOCK_WARN_WRITE = 8,  ///< the next write is logged as a warning, once
    TIDE_BLOCK_READ_ONLY = 16,  ///< the memory itself cannot be written (file mapping)
};

/// Fields are read-only outside core/memory; `refs`, `flags` and `cow` change under atomic operations.
struct tide_block {
    uint32_t refs;
    uint32_t flags;  ///< TIDE_BLOCK_…
    uint64_t id;     ///< of the allocation, > 0, unique in the process, never reused; lazy clones share it, a copy made
                     ///< by a write has a new one
    tide_memory mem; ///< data, requested and reserved bytes
    tide_device device;
    tide_memory_kind kind;
    tide_allocator *owner; ///< referenced; NULL: the memory is `foreign`'s
    tide_data_ptr foreign; ///< owned; NULL for memory of an allocator
    tide_stream_id last_stream;
    size_t align_bytes;    ///< as asked; a copy made by a write keeps it
    bool fixed;            ///< its address is held elsewhere: never lazily cloned
    bool materialized;     ///< was shared with lazy clones once, has memory of its own since
    struct tide__cow *cow; ///< shared memory of lazy clones; NULL: none
    char *tag;             ///< what asked for it; owned; may be NULL
};

/// A block over memory that came as a data pointer; *ptr is taken (NULL afterwards), and only when this succeeds.
tide_status tide_block_adopt(tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                             tide_block **out, tide_error *err) TIDE_NODISCARD;
/// Wrap memory of the caller's. `release(ctx)` runs once with the last reference; NULL: never freed (LT-12).
tide_status tide_block_borrow(void *data, size_t size_bytes, tide_device device, tide_memory_kind kind,
                              void (*release)(void *ctx), void *ctx, const char *tag, tide_block **out,
                              tide_error *err) TIDE_NODISCARD;
/// A file, or a part of it, as a read-only block of the CPU; see tide_data_ptr_map_file. The tag is the path.
tide_status tide_block_map_file(const char *path, uint64_t offset_bytes, size_t size_bytes, tide_memory_kind kind,
                                tide_block **out, tide_error *err) TIDE_NODISCARD;
uint32_t tide_block_use_count(const tide_block *b);

// ---- access ----

/// Whether its bytes are a file's, which nothing may write; NULL: no. They can be read again when their pages were
/// dropped.
static inline bool tide_block_is_mapped(const tide_block *b) {
    return b != NULL && (__atomic_load_n(&b->flags, __ATOMIC_RELAXED) & TIDE_BLOCK_READ_ONLY) != 0;
}
/// Where the bytes are, without any check: for callers that do not touch the bytes (dumps, alignment checks).
static inline const void *tide_block_address(const tide_block *b) { return b->mem.data; }
/**
 * Address for reading. Never copies (PT-6).
 *
 * @return TIDE_ERR_BUSY naming the block when a guard forbids it
 */
tide_status tide_block_read_slow(const tide_block *b, const void **out, tide_error *err) TIDE_NODISCARD;
static inline TIDE_NODISCARD tide_status tide_block_read(const tide_block *b, const void **out, tide_error *err) {
    if ((__atomic_load_n(&b->flags, __ATOMIC_RELAXED) & TIDE_BLOCK_FAIL_ACCESS) != 0)
        return tide_block_read_slow(b, out, err);
    *out = b->mem.data;
    return TIDE_OK;
}
/**
 * Address for writing: settles copy-on-write first. The usual block pays one test.
 *
 * @return TIDE_ERR_BUSY (guard, read-only memory, or a copy is needed inside a parallel section), what the allocator of
 *         the copy returns; the block is as it was then
 * Cost O(1), or one copy of the block while others share its memory.
 */
tide_status tide_block_write_slow(tide_block *b, void **out, tide_error *err) TIDE_NODISCARD;
static inline TIDE_NODISCARD tide_status tide_block_write(tide_block *b, void **out, tide_error *err) {
    if (__builtin_expect(__atomic_load_n(&b->flags, __ATOMIC_ACQUIRE) != 0, 0))
        return tide_block_write_slow(b, out, err);
    *out = b->mem.data;
    return TIDE_OK;
}
/// Set and clear guards (FAIL_WRITE, FAIL_ACCESS, WARN_WRITE; others are ignored) (PT-8).
void tide_block_set_guard(tide_block *b, uint32_t set, uint32_t clear);
/// The address is held from now on: lazy clones of it are refused. TIDE_ERR_BUSY while the memory is shared.
tide_status tide_block_fix(tide_block *b, tide_error *err) TIDE_NODISCARD;
/// `stream` uses the block too: last_stream becomes it and the owner is told (rule 1 of stream-aware memory).
void tide_block_record_use(tide_block *b, tide_stream_id stream);

// ---- copy-on-write (PT-17 … PT-22) ----

/// The state of a block's memory: its own; shared with lazy clones; its own again after a write (PT-20).
typedef enum tide_block_state { TIDE_BLOCK_NORMAL, TIDE_BLOCK_SHARED, TIDE_BLOCK_MATERIALIZED } tide_block_state;
tide_block_state tide_block_get_state(const tide_block *b);
const char *tide_block_state_name(tide_block_state state); ///< "normal", "shared", "materialized"
/// The memory is an allocator's and its address is enough to free it, and the address is held nowhere: a lazy clone can
/// be made. False for file mappings, arena spans, foreign buffers with a context of their own, fixed blocks.
bool tide_block_is_simple(const tide_block *b);
bool tide_block_is_cow(const tide_block *b);
/// The two are over the same memory: one block, or lazy clones of each other (PT-3).
bool tide_block_is_alias(const tide_block *a, const tide_block *b);
/**
 * A second block over the same memory; `b` becomes copy-on-write too. No byte is copied.
 *
 * @param stream  the stream of the caller; must be the block's own (PT-22): copies are made in its order
 * @param out     NULL when the block is not simple: the caller must copy (PT-21)
 * @return TIDE_OK; TIDE_ERR_INVALID for another stream, TIDE_ERR_BUSY when a guard forbids reading; TIDE_ERR_NOMEM
 * Cost O(1), two small host allocations at most. Thread-safe against lazy clones and writes of other clones.
 */
tide_status tide_block_lazy_clone(tide_block *b, tide_stream_id stream, tide_block **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Give `b` memory of its own now: a copy while others share it, none for the last owner (PT-19). OK when it has it.
tide_status tide_block_materialize(tide_block *b, tide_error *err) TIDE_NODISCARD;
/// Copies made by writes since the process began (PT-6, PT-19).
uint64_t tide_block_n_copies(void);
/// Between the two, writes of this thread that would have to copy are refused with TIDE_ERR_BUSY: the threads of a
/// parallel loop must settle before it. They nest.
void tide_parallel_enter(void);
void tide_parallel_leave(void);

// ---- text and counters ----

/// One line: id, address, requested and reserved bytes, device, kind, owner, last stream, references, state, tag
/// (LT-8).
void tide_block_describe(const tide_block *b, tide_text *out);
/// Bytes of `kind` that live in blocks over foreign memory now (LT-12): they are in no allocator's numbers.
uint64_t tide_block_external_bytes(tide_memory_kind kind);

// ---- factory (PT-23) ----

/// What a block is made from, for factories.
typedef struct tide_block_request {
    tide_allocator *owner;
    size_t size_bytes, align_bytes;
    tide_memory_kind kind;
    tide_stream_id stream;
    const char *tag;
} tide_block_request;
typedef tide_status (*tide_block_factory)(void *self, const tide_block_request *req, tide_block **out, tide_error *err);
/// Blocks of tensors on devices of `type` are made by `factory(self, …)`, from now on; NULL: tide_block_create again
/// (before `self` dies). @return TIDE_ERR_INVALID for a type outside the list
tide_status tide_block_set_factory(tide_device_type type, tide_block_factory factory, void *self,
                                   tide_error *err) TIDE_NODISCARD;
/// A block made as the factory of the owner's device type says.
tide_status tide_block_make(const tide_block_request *req, tide_block **out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
