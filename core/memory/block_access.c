// SPDX-License-Identifier: MIT
//
// Access to a block: the long way of reading and writing, taken when a flag stands in the way. See block.h.
#include "core/base/log.h"
#include "core/memory/block_internal.h"

static uint32_t flags_of(const tide_block *b) { return __atomic_load_n(&b->flags, __ATOMIC_ACQUIRE); }

tide_status tide_block_read_slow(const tide_block *b, const void **out, tide_error *err) {
    if ((flags_of(b) & TIDE_BLOCK_FAIL_ACCESS) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids all access", tide__block_name(b));
    *out = b->mem.data;
    return TIDE_OK;
}

static tide_status check_write(const tide_block *b, uint32_t flags, tide_error *err) {
    if ((flags & TIDE_BLOCK_FAIL_ACCESS) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids all access", tide__block_name(b));
    if ((flags & TIDE_BLOCK_FAIL_WRITE) != 0)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': a guard forbids writing", tide__block_name(b));
    if ((flags & TIDE_BLOCK_READ_ONLY) != 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BUSY, "block '%s': its memory is read-only", tide__block_name(b));
        tide_error_note(err, "it is a mapping of a file");
        tide_error_hint(err, "clone the tensor first and write to the clone");
        return st;
    }
    return TIDE_OK;
}

tide_status tide_block_write_slow(tide_block *b, void **out, tide_error *err) {
    const uint32_t flags = flags_of(b);
    TIDE_TRY(check_write(b, flags, err));
    if ((flags & (TIDE_BLOCK_COW | TIDE__BLOCK_LOCKED)) != 0) TIDE_TRY(tide_block_materialize(b, err));
    // Whoever clears the flag writes the line: once, however many threads write.
    if ((flags & TIDE_BLOCK_WARN_WRITE) != 0 &&
        (__atomic_fetch_and(&b->flags, ~(uint32_t)TIDE_BLOCK_WARN_WRITE, __ATOMIC_RELAXED) & TIDE_BLOCK_WARN_WRITE) !=
            0)
        tide_log(TIDE_LOG_WARN, "block '%s' is written to", tide__block_name(b));
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

bool tide__in_parallel(void) { return parallel_depth > 0; }
