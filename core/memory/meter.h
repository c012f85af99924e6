// SPDX-License-Identifier: MIT
//
// meter: an observer that only counts, per memory kind. It is the "measured" beside the plan's "predicted".
//
// It counts alloc and free_completed and nothing else. A pool_discard ends blocks that it cannot count, for it knows no
// block by its address: what went with a pool stays live in its figures (the ledger and a trace are right there;
// tidemark's own allocators report the free of each block). A snapshot marks a moment and has no bytes.
#ifndef TIDE_CORE_MEMORY_METER_H
#define TIDE_CORE_MEMORY_METER_H

#include "core/memory/observer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_meter_kind {
    uint64_t live_bytes;     ///< requested bytes alive now
    uint64_t peak_bytes;     ///< highest live_bytes
    uint64_t reserved_bytes; ///< the same for reserved bytes
    uint64_t reserved_peak_bytes;
    uint64_t requested_bytes; ///< sum of all requests so far
    uint64_t n_live;          ///< blocks alive now
    uint64_t n_allocs, n_frees;
} tide_meter_kind;

typedef struct tide_meter tide_meter;
tide_status tide_meter_create(tide_meter **out, tide_error *err) TIDE_NODISCARD;
void tide_meter_destroy(tide_meter *m);
/// Valid as long as the meter. Thread-safe.
tide_observer tide_meter_observer(tide_meter *m);
/// Numbers of `kind`, summed over devices. Of all kinds together (peak of the sum, not sum of peaks): tide_meter_total.
void tide_meter_get(const tide_meter *m, tide_memory_kind kind, tide_meter_kind *out);
void tide_meter_total(const tide_meter *m, tide_meter_kind *out);
/// Peaks become the live bytes of now, counters 0.
void tide_meter_reset_peaks(tide_meter *m);

#ifdef __cplusplus
}
#endif
#endif
