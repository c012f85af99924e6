// SPDX-License-Identifier: MIT
//
// meter: counts per memory kind, by thread. See meter.h.
//
// One cell per kind and one for all of them, so that the peak of the sum is seen as it happens; and such a row of cells
// for every eighth thread, so that threads seldom want the same lock:
//
//     shard 0 (lock)   [Default][Persistent][Workspace]...[all]
//     shard 1 (lock)   [Default][Persistent][Workspace]...[all]
//     ...
//     peaks (gate)     [Default][Persistent][Workspace]...[all]      exact, by escrow: core/memory/escrow.h
//
// What is asked for is the sum over the shards. A block may be freed in another shard than it came from.
#include "core/memory/meter.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/escrow.h"
#include "core/memory/short_lock.h"
#include "core/memory/thread_number.h"

enum { ALL_KINDS = TIDE_N_KINDS, N_CELLS = TIDE_N_KINDS + 1, N_SHARDS = 8 };

typedef struct meter_cell {
    tide__part live, reserved; // bytes
    uint64_t requested_bytes;
    uint64_t n_allocs, n_frees;
    int64_t n_live;
} meter_cell;

typedef struct meter_shard {
    tide__lock lock; // guards everything below
    bool is_used;    // counted among the first n_used
    meter_cell cells[N_CELLS];
} meter_shard;

typedef struct meter_peak {
    uint64_t live_bytes, reserved_bytes;
} meter_peak;

struct tide_meter {
    tide__lock gate; // with it and the locks of all shards in use the rest changes; with either it may be read
    unsigned n_used;
    meter_peak peaks[N_CELLS];
    meter_shard shards[N_SHARDS];
};

tide_status tide_meter_create(tide_meter **out, tide_error *err) {
    tide_meter *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "for a meter"));
    *out = m;
    return TIDE_OK;
}

void tide_meter_destroy(tide_meter *m) { tide_host_free(m); }

// ---- all shards at once ----

static void lock_all(tide_meter *m) {
    tide__lock_take(&m->gate);
    for (unsigned i = 0; i < m->n_used; i++) tide__lock_take(&m->shards[i].lock);
}

static void unlock_all(tide_meter *m) {
    for (unsigned i = m->n_used; i-- > 0;) tide__lock_give(&m->shards[i].lock);
    tide__lock_give(&m->gate);
}

/// The same, with shard `s` in use afterwards.
static void lock_all_with(tide_meter *m, meter_shard *s) {
    lock_all(m);
    TIDE_ASSERT(s->is_used == (s < m->shards + m->n_used) && m->n_used <= N_SHARDS);
    while (!s->is_used) {
        meter_shard *next = &m->shards[m->n_used++];
        tide__lock_take(&next->lock);
        next->is_used = true;
    }
}

static void settle(tide_meter *m, int cell_i, unsigned own_i) {
    TIDE_ASSERT(own_i < m->n_used);
    meter_cell *first = &m->shards[0].cells[cell_i];
    tide__escrow_settle(&first->live, sizeof m->shards[0], m->n_used, own_i, &m->peaks[cell_i].live_bytes);
    tide__escrow_settle(&first->reserved, sizeof m->shards[0], m->n_used, own_i, &m->peaks[cell_i].reserved_bytes);
}

// ---- events ----

static bool has_room(const meter_cell *c, const tide_memory_event *e) {
    return tide__part_has_room(&c->live, e->requested_bytes) && tide__part_has_room(&c->reserved, e->reserved_bytes);
}

static void count_alloc(meter_cell *c, const tide_memory_event *e) {
    TIDE_ASSERT(e->requested_bytes <= INT64_MAX && e->reserved_bytes <= INT64_MAX);
    c->live.now += (int64_t)e->requested_bytes;
    c->reserved.now += (int64_t)e->reserved_bytes;
    c->requested_bytes += e->requested_bytes;
    c->n_live++;
    c->n_allocs++;
}

static void count_free(meter_cell *c, const tide_memory_event *e) {
    c->live.now -= (int64_t)e->requested_bytes;
    c->reserved.now -= (int64_t)e->reserved_bytes;
    c->n_live--;
    c->n_frees++;
}

static void on_alloc(tide_meter *m, const tide_memory_event *e) {
    meter_shard *s = &m->shards[(tide__thread_number() - 1) % N_SHARDS];
    meter_cell *cell = &s->cells[e->kind], *all = &s->cells[ALL_KINDS];
    tide__lock_take(&s->lock);
    const bool is_quiet = s->is_used && has_room(cell, e) && has_room(all, e);
    if (is_quiet) {
        count_alloc(cell, e);
        count_alloc(all, e);
    }
    tide__lock_give(&s->lock);
    if (is_quiet) return;
    lock_all_with(m, s);
    count_alloc(cell, e);
    count_alloc(all, e);
    settle(m, (int)e->kind, (unsigned)(s - m->shards));
    settle(m, ALL_KINDS, (unsigned)(s - m->shards));
    unlock_all(m);
}

static void on_free(tide_meter *m, const tide_memory_event *e) {
    meter_shard *s = &m->shards[(tide__thread_number() - 1) % N_SHARDS];
    tide__lock_take(&s->lock);
    const bool is_used = s->is_used;
    if (__builtin_expect(!is_used, 0)) {
        tide__lock_give(&s->lock);
        lock_all_with(m, s);
    }
    count_free(&s->cells[e->kind], e);
    count_free(&s->cells[ALL_KINDS], e);
    if (is_used) {
        tide__lock_give(&s->lock);
    } else {
        unlock_all(m);
    }
}

static void on_memory(void *self, const tide_memory_event *event) {
    if ((int)event->kind < 0 || (int)event->kind >= TIDE_N_KINDS) return;
    // A free counts when it is complete: until then the bytes cannot be used again.
    if (event->op == TIDE_MEM_ALLOC) {
        on_alloc(self, event);
    } else if (event->op == TIDE_MEM_FREE_COMPLETED) {
        on_free(self, event);
    }
}

tide_observer tide_meter_observer(tide_meter *m) {
    return (tide_observer){.self = m, .on_memory = on_memory, .no_time = true};
}

// ---- reading ----

static void read_cells(const tide_meter *meter, int cell_i, tide_meter_kind *out) {
    tide_meter *m = tide__mutable(meter);
    *out = (tide_meter_kind){0};
    int64_t live = 0, reserved = 0, n_live = 0;
    lock_all(m);
    for (unsigned i = 0; i < m->n_used; i++) {
        const meter_cell *c = &m->shards[i].cells[cell_i];
        live += c->live.now;
        reserved += c->reserved.now;
        n_live += c->n_live;
        out->requested_bytes += c->requested_bytes;
        out->n_allocs += c->n_allocs;
        out->n_frees += c->n_frees;
    }
    out->peak_bytes = m->peaks[cell_i].live_bytes;
    out->reserved_peak_bytes = m->peaks[cell_i].reserved_bytes;
    TIDE_ASSERT(live >= 0 && reserved >= 0 && out->peak_bytes >= (uint64_t)live);
    unlock_all(m);
    out->live_bytes = (uint64_t)live;
    out->reserved_bytes = (uint64_t)reserved;
    out->n_live = (uint64_t)n_live;
}

void tide_meter_get(const tide_meter *m, tide_memory_kind kind, tide_meter_kind *out) {
    *out = (tide_meter_kind){0};
    if ((int)kind >= 0 && (int)kind < TIDE_N_KINDS) read_cells(m, (int)kind, out);
}

void tide_meter_total(const tide_meter *m, tide_meter_kind *out) { read_cells(m, ALL_KINDS, out); }

void tide_meter_reset_peaks(tide_meter *m) {
    lock_all(m);
    for (int i = 0; i < N_CELLS; i++) {
        meter_cell *first = &m->shards[0].cells[i];
        tide__escrow_reset(&first->live, sizeof m->shards[0], m->n_used, &m->peaks[i].live_bytes);
        tide__escrow_reset(&first->reserved, sizeof m->shards[0], m->n_used, &m->peaks[i].reserved_bytes);
        for (unsigned k = 0; k < m->n_used; k++) {
            meter_cell *c = &m->shards[k].cells[i];
            c->requested_bytes = c->n_allocs = c->n_frees = 0;
        }
    }
    unlock_all(m);
}
