// SPDX-License-Identifier: MIT
//
// meter: counts per memory kind, without a lock. See meter.h.
//
// One cell per kind and one for all of them, so that the peak of the sum is seen as it happens:
//
//     cells: [Default][Persistent][Workspace][KVCache][HostPinned][HostPageable][all]
#include "core/memory/meter.h"

#include <stdatomic.h>

#include "core/base/host_alloc.h"

typedef struct meter_cell {
    _Atomic uint64_t live_bytes, peak_bytes;
    _Atomic uint64_t reserved_bytes, reserved_peak_bytes;
    _Atomic uint64_t requested_bytes;
    _Atomic uint64_t n_live, n_allocs, n_frees;
} meter_cell;

enum { ALL_KINDS = TIDE_N_KINDS };

struct tide_meter {
    meter_cell cells[TIDE_N_KINDS + 1];
};

tide_status tide_meter_create(tide_meter **out, tide_error *err) {
    tide_meter *m = tide_host_calloc(1, sizeof *m);
    if (m == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a meter");
    *out = m;
    return TIDE_OK;
}

void tide_meter_destroy(tide_meter *m) { tide_host_free(m); }

static void add_live(_Atomic uint64_t *live, _Atomic uint64_t *peak, uint64_t bytes) {
    const uint64_t now = atomic_fetch_add(live, bytes) + bytes;
    uint64_t seen = atomic_load(peak);
    while (now > seen && !atomic_compare_exchange_weak(peak, &seen, now)) {
    }
}

static void count_alloc(meter_cell *c, const tide_memory_event *e) {
    add_live(&c->live_bytes, &c->peak_bytes, e->requested_bytes);
    add_live(&c->reserved_bytes, &c->reserved_peak_bytes, e->reserved_bytes);
    atomic_fetch_add(&c->requested_bytes, e->requested_bytes);
    atomic_fetch_add(&c->n_live, 1);
    atomic_fetch_add(&c->n_allocs, 1);
}

static void count_free(meter_cell *c, const tide_memory_event *e) {
    atomic_fetch_sub(&c->live_bytes, e->requested_bytes);
    atomic_fetch_sub(&c->reserved_bytes, e->reserved_bytes);
    atomic_fetch_sub(&c->n_live, 1);
    atomic_fetch_add(&c->n_frees, 1);
}

static void on_memory(void *self, const tide_memory_event *event) {
    tide_meter *m = self;
    if ((int)event->kind < 0 || (int)event->kind >= TIDE_N_KINDS) return;
    // A free counts when it is complete: until then the bytes cannot serve anybody else.
    if (event->op == TIDE_MEM_ALLOC) {
        count_alloc(&m->cells[event->kind], event);
        count_alloc(&m->cells[ALL_KINDS], event);
    } else if (event->op == TIDE_MEM_FREE_COMPLETED) {
        count_free(&m->cells[event->kind], event);
        count_free(&m->cells[ALL_KINDS], event);
    }
}

tide_observer tide_meter_observer(tide_meter *m) { return (tide_observer){.self = m, .on_memory = on_memory}; }

static void read_cell(const meter_cell *c, tide_meter_kind *out) {
    *out = (tide_meter_kind){.live_bytes = atomic_load(&c->live_bytes),
                             .peak_bytes = atomic_load(&c->peak_bytes),
                             .reserved_bytes = atomic_load(&c->reserved_bytes),
                             .reserved_peak_bytes = atomic_load(&c->reserved_peak_bytes),
                             .requested_bytes = atomic_load(&c->requested_bytes),
                             .n_live = atomic_load(&c->n_live),
                             .n_allocs = atomic_load(&c->n_allocs),
                             .n_frees = atomic_load(&c->n_frees)};
}

void tide_meter_get(const tide_meter *m, tide_memory_kind kind, tide_meter_kind *out) {
    *out = (tide_meter_kind){0};
    if ((int)kind >= 0 && (int)kind < TIDE_N_KINDS) read_cell(&m->cells[kind], out);
}

void tide_meter_total(const tide_meter *m, tide_meter_kind *out) { read_cell(&m->cells[ALL_KINDS], out); }

void tide_meter_reset_peaks(tide_meter *m) {
    for (int i = 0; i <= ALL_KINDS; i++) {
        meter_cell *c = &m->cells[i];
        atomic_store(&c->peak_bytes, atomic_load(&c->live_bytes));
        atomic_store(&c->reserved_peak_bytes, atomic_load(&c->reserved_bytes));
        atomic_store(&c->requested_bytes, 0);
        atomic_store(&c->n_allocs, 0);
        atomic_store(&c->n_frees, 0);
    }
}
