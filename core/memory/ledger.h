// SPDX-License-Identifier: MIT
//
// ledger: an observer that knows every live block by name. What is still in it at the end is a leak; what is in it when
// an allocation fails says where the memory is.
#ifndef TIDE_CORE_MEMORY_LEDGER_H
#define TIDE_CORE_MEMORY_LEDGER_H

#include "core/base/text.h"
#include "core/memory/allocator.h"
#include "core/memory/observer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_ledger tide_ledger;

tide_status tide_ledger_create(tide_ledger **out, tide_error *err) TIDE_NODISCARD;
void tide_ledger_destroy(tide_ledger *l);
/// Valid as long as the ledger. Thread-safe. A block for whose entry there is no host memory is counted as lost, not
/// forgotten: see tide_ledger_n_lost. A pool_discard ends the blocks of its device whose address lies in the pool.
tide_observer tide_ledger_observer(tide_ledger *l);

/// A live block. Texts are the ledger's, valid as long as it lives.
typedef struct tide_live_block {
    uint64_t block_id;
    tide_device device;
    tide_memory_kind kind;
    uint64_t requested_bytes, reserved_bytes;
    uint64_t t_ns;         ///< when it was allocated
    const char *tag;       ///< what asked for it; NULL: not given
    const char *op;        ///< operator or region in whose scope it was allocated; NULL: none
    const char *allocator; ///< name
    bool pending;          ///< released, but a stream may still use it
} tide_live_block;

/**
 * The largest live blocks, largest first, equal ones by id.
 *
 * @param after_id  only blocks with a larger id: those allocated since tide_ledger_last_id was read; 0: all
 * @param out       [n_max]
 * @return how many there are in all, however many fit
 * Cost O(live · log n_max).
 */
size_t tide_ledger_largest(tide_ledger *l, uint64_t after_id, tide_live_block *out, size_t n_max);
/// Largest id so far.
uint64_t tide_ledger_last_id(tide_ledger *l);
/// Allocations that could not be entered.
uint64_t tide_ledger_n_lost(tide_ledger *l);

enum { TIDE_OOM_N_BLOCKS = 10 };

/// What there was when an allocation failed.
typedef struct tide_oom_report {
    uint64_t t_ns;
    uint64_t asked_bytes, align_bytes;
    tide_device device;
    tide_memory_kind kind;
    const char *allocator, *tag, *op; ///< the allocator, and what asked; NULL: not given
    tide_allocator_stats stats;       ///< of the allocator, at that moment
    uint64_t would_fit_bytes;         ///< no larger request would have been met, and this one too unless the allocator
                                      ///< rounds up beyond the alignment; TIDE_UNKNOWN_BYTES: not known
    tide_live_block blocks[TIDE_OOM_N_BLOCKS]; ///< the largest live ones on that device, of any kind
    size_t n_blocks;                           ///< in `blocks`
    size_t n_live;                             ///< in all
    uint64_t live_bytes;                       ///< requested, of all live ones on that device
} tide_oom_report;

/// The largest request that an allocator with these counters would have met; TIDE_UNKNOWN_BYTES: not known. See
/// would_fit_bytes.
uint64_t tide_oom_would_fit(const tide_allocator_stats *s, uint64_t asked_bytes, uint64_t align_bytes);

/// The first failed allocation since the ledger was made or the last call of tide_ledger_clear_oom; false: none. Texts
/// are the ledger's. The first one is kept: what fails after it is a consequence.
bool tide_ledger_oom(tide_ledger *l, tide_oom_report *out);
void tide_ledger_clear_oom(tide_ledger *l);

/// The report for people: several lines, each block with its bytes, kind, tag, operator; the bytes of those listed and
/// of the rest add up to live_bytes.
void tide_oom_report_text(const tide_oom_report *r, tide_text *out);
/// Live blocks for people, one line each: bytes, kind, tag, operator, age at `now_ns`.
void tide_live_blocks_text(const tide_live_block *blocks, size_t n, uint64_t now_ns, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
