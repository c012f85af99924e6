// SPDX-License-Identifier: MIT
//
// lives: from which event to which a block lived, and how high a curve was between two events. Many events can share a
// nanosecond, so what would be without a block cannot be asked by time.
#ifndef TIDE_PROFILER_LIVES_H
#define TIDE_PROFILER_LIVES_H

#include "profiler/moments.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The event that ended the life of the block that `alloc_event` gave the number `block_id`: a free, or the end of its
/// process; UINT64_MAX: it lives on, as far as the trace shows. TIDE_ERR_NOT_FOUND: there is no such block.
tide_status tide_trace_end_event(tide_trace *t, uint64_t block_id, uint64_t alloc_event, uint64_t *end_event,
                                 tide_error *err) TIDE_NODISCARD;
/// A block by its number and the event that gave it.
typedef struct tide_trace_birth {
    uint64_t block_id, alloc_event;
} tide_trace_birth;
/// The same of `n` blocks into end_events[n], at a third of the price of each alone.
tide_status tide_trace_end_events(tide_trace *t, const tide_trace_birth *blocks, size_t n, uint64_t *end_events,
                                  tide_error *err) TIDE_NODISCARD;
/// Highest live requested bytes after event `first`, after event `last`, or after any between them, and the first event
/// that reached them. `first` 0: before everything. *t_ns (may be NULL) is the time of that event, untouched where it
/// is `first`. TIDE_ERR_INVALID when last < first.
tide_status tide_trace_peak_of_events(tide_trace *t, int kind, const char *device, uint64_t first, uint64_t last,
                                      uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) TIDE_NODISCARD;

/// Blocks of one name that were allocated in scopes of one name.
typedef struct tide_trace_alike {
    uint32_t name, scope;       ///< of one of them, as of tide_trace_block_row
    uint64_t peak_bytes, event; ///< out: highest live requested bytes without them, and the first event that has it
    uint64_t n_blocks;          ///< out: how many of them lived
} tide_trace_alike;
/// What the peak of events `first` to `last` would be without them: of each of `sites` by itself. What was live before
/// counts. A replay, 0.3 us an event, which finds the answers for up to 256 sites at once and remembers them: who asks
/// again about the same events has them at once. TIDE_ERR_NOT_FOUND when one of the events was dropped.
tide_status tide_trace_peaks_without(tide_trace *t, uint64_t first, uint64_t last, tide_trace_alike *sites, size_t n,
                                     tide_error *err) TIDE_NODISCARD;

/// A block of which some bytes are not there.
typedef struct tide_trace_less {
    uint64_t block_id, alloc_event;
    uint64_t bytes; ///< at most what it asked for
} tide_trace_less;
/// What the peak of events `first` to `last` would be without all blocks of all those sites (n_blocks and peaks of
/// `sites` are not looked at), and with `less` of others: [n_less], none of them of a site. A replay, 0.3 us an event;
/// it is not remembered. TIDE_ERR_NOT_FOUND when one of the events was dropped.
tide_status tide_trace_peak_without_all(tide_trace *t, uint64_t first, uint64_t last, const tide_trace_alike *sites,
                                        size_t n, const tide_trace_less *less, size_t n_less, uint64_t *bytes,
                                        uint64_t *event, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
