// SPDX-License-Identifier: MIT
//
// The numbers that every allocator keeps in the same way, and what must hold between them.
#include <inttypes.h>

#include "core/memory/allocator_internal.h"

static void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak) *peak = now;
}

void tide__count_alloc(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes) {
    s->requested_bytes += requested_bytes;
    s->active_bytes += active_bytes;
    s->n_allocs++;
    raise_peak(&s->peak_requested_bytes, s->requested_bytes);
    raise_peak(&s->peak_active_bytes, s->active_bytes);
}

void tide__count_free(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes) {
    s->requested_bytes -= requested_bytes;
    s->active_bytes -= active_bytes;
    s->n_frees++;
}

void tide__count_reserve(tide_allocator_stats *s, size_t taken_bytes) {
    s->reserved_bytes += taken_bytes;
    s->n_system++;
    raise_peak(&s->peak_reserved_bytes, s->reserved_bytes);
}

static tide_status at_least(const char *name, const char *big_name, uint64_t big, const char *small_name,
                            uint64_t small, tide_error *err) {
    if (big >= small) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %s %" PRIu64 " is below %s %" PRIu64, name, big_name, big,
                     small_name, small);
}

tide_status tide__counters_check(const tide_allocator_stats *s, const char *name, tide_error *err) {
    TIDE_TRY(at_least(name, "active", s->active_bytes, "requested", s->requested_bytes, err));
    TIDE_TRY(at_least(name, "reserved", s->reserved_bytes, "active + cached", s->active_bytes + s->cached_bytes, err));
    TIDE_TRY(at_least(name, "cached", s->cached_bytes, "largest free", s->largest_free_bytes, err));
    TIDE_TRY(at_least(name, "active", s->active_bytes, "pending", s->pending_bytes, err));
    TIDE_TRY(at_least(name, "peak requested", s->peak_requested_bytes, "requested", s->requested_bytes, err));
    TIDE_TRY(at_least(name, "peak active", s->peak_active_bytes, "active", s->active_bytes, err));
    TIDE_TRY(at_least(name, "peak reserved", s->peak_reserved_bytes, "reserved", s->reserved_bytes, err));
    TIDE_TRY(at_least(name, "allocations", s->n_allocs, "frees", s->n_frees, err));
    TIDE_TRY(at_least(name, "allocations", s->n_allocs, "hits", s->n_hits, err));
    if ((s->pending_bytes == 0) != (s->n_pending == 0))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %" PRIu64 " bytes pending in %" PRIu64 " blocks", name,
                         s->pending_bytes, s->n_pending);
    if (s->n_allocs == s->n_frees && s->requested_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %" PRIu64 " bytes requested, yet nothing is out", name,
                         s->requested_bytes);
    return TIDE_OK;
}
