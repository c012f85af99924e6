// SPDX-License-Identifier: MIT
//
// One transaction: events, what is drawn from them, and how far each ring has gone. Slots are given back behind the
// COMMIT: a drain that is killed anywhere before it leaves them to the next one, and behind it, the positions in the
// file say that they are there.
#include <stdio.h>
#include <time.h>

#include "profiler/drain/drain_internal.h"

enum { DESK_PAUSE_NS = 100 * 1000, DESK_PAUSES = 2000 };

// ---- what there is to do ----

static bool is_drained(const tide__drain_feed *f) {
    for (size_t i = 0; i < f->n_rings; i++)
        if (!f->rings[i]->is_broken && f->rings[i]->position < f->rings[i]->end) return false;
    return true;
}

static bool feed_has_work(const tide__drain_feed *f) {
    if (f->is_ended) return false;
    if (!f->is_alive) return true; // its end is to be noted
    for (size_t i = 0; i < f->n_rings; i++) {
        const tide__drain_ring *r = f->rings[i];
        if (!r->is_broken && (r->position < r->end || r->position != r->committed)) return true;
    }
    return false;
}

bool tide__drain_has_work(const tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (feed_has_work(d->feeds[i])) return true;
    return false;
}

/// Those who record wait while we write; those of them who write too would wait for ever if the next batch followed at
/// once. Bounded: the number is anybody's to set.
static void let_desks_write(const tide__drain *d) {
    for (int i = 0; i < DESK_PAUSES; i++) {
        bool waits = false;
        for (size_t k = 0; k < d->n_feeds && !waits; k++)
            waits = d->feeds[k]->is_alive && atomic_load(&d->feeds[k]->head->desk_waits) > 0;
        if (!waits) return;
        nanosleep(&(struct timespec){.tv_nsec = DESK_PAUSE_NS}, NULL);
    }
}

static bool wants_chunks(const tide__drain *d) {
    if (d->opt.form != TIDE_RECORD_AUTO) return d->opt.form == TIDE_RECORD_CHUNKS;
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        for (size_t k = 0; k < f->n_rings; k++) {
            const tide__drain_ring *r = f->rings[k];
            if (r->end - r->position > tide__feed_reader_n_full(f->reader, k) / 2) return true;
        }
    }
    return false;
}

// ---- what is written ----

/// What was dropped and has no gap in the ring: its thread has ended, or was killed, before there was room for one.
static tide_status close_gaps(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    for (size_t i = 0; i < f->n_rings; i++) {
        tide__drain_ring *r = f->rings[i];
        const uint64_t n_lost = atomic_load_explicit(&r->head->n_lost, memory_order_relaxed);
        if (n_lost > TIDE__DRAIN_MAX_LOST || (int64_t)n_lost <= r->n_gap) continue;
        d->events[d->n_events] = (tide__event){.op = TIDE__OP_GAP,
                                               .kind = TIDE__NO_KIND,
                                               .t_ns = r->t_ns,
                                               .requested_bytes = (int64_t)n_lost - r->n_gap,
                                               .run_id = (int32_t)f->run_id,
                                               .thread = (int32_t)r->thread};
        TIDE_TRY(tide__drain_take(d, f, err));
        r->n_gap = (int64_t)n_lost;
    }
    return TIDE_OK;
}

/// Sums over the rings: what the process has heard, by its own count.
static tide_status write_totals(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    for (size_t device = 0; device < f->n_devices; device++) {
        for (uint8_t kind = 0; kind < TIDE_N_KINDS; kind++) {
            uint64_t n_allocs = 0, n_frees = 0, requested = 0, freed = 0;
            for (size_t i = 0; i < f->n_rings; i++) {
                tide__ring_total *t = &f->rings[i]->head->totals[device][kind];
                n_allocs += atomic_load_explicit(&t->n_allocs, memory_order_relaxed);
                n_frees += atomic_load_explicit(&t->n_frees, memory_order_relaxed);
                requested += atomic_load_explicit(&t->requested_bytes, memory_order_relaxed);
                freed += atomic_load_explicit(&t->freed_bytes, memory_order_relaxed);
            }
            if ((n_allocs | n_frees) == 0 || f->devices[device] == 0) continue;
            const tide__ring_total sum = {n_allocs, n_frees, requested, freed};
            TIDE_TRY(tide__store_write_total(d->store, f->process_id, (int16_t)f->devices[device], kind, &sum, err));
        }
    }
    return TIDE_OK;
}

static tide_status write_end(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    TIDE_TRY(close_gaps(d, f, err));
    TIDE_TRY(write_totals(d, f, err));
    if (f->run_id != 0) {
        TIDE_TRY(tide__store_run(d->store, false, f->run_id, d->last_event, d->last_ns, err));
        f->run_id = 0;
    }
    const bool closed = atomic_load_explicit(&f->head->state, memory_order_acquire) == TIDE__FEED_CLOSED;
    return tide__store_end_process(d->store, f->process_id, closed ? "closed" : "killed", d->last_ns, err);
}

static tide_status write_ends(tide__drain *d, tide_error *err) {
    for (size_t i = 0; i < d->n_feeds; i++) {
        tide__drain_feed *f = d->feeds[i];
        if (!f->is_ended && !f->is_alive && is_drained(f)) TIDE_TRY(write_end(d, f, err));
    }
    return TIDE_OK;
}

static tide_status write_positions(tide__drain *d, tide_error *err) {
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        for (size_t k = 0; !f->is_ended && k < f->n_rings; k++) {
            const tide__drain_ring *r = f->rings[k];
            if (r->is_stored && r->position == r->committed && f->is_alive) continue;
            const tide__position p = {.process_id = f->process_id,
                                      .ring = (int64_t)k,
                                      .position = (int64_t)r->position,
                                      .thread = r->thread,
                                      .n_lost = r->n_gap};
            TIDE_TRY(tide__store_write_position(d->store, &p, err));
        }
    }
    return TIDE_OK;
}

static tide_status write_all(tide__drain *d, size_t *n, tide_error *err) {
    TIDE_TRY(tide__drain_merge(d, d->opt.batch_events, n, err));
    TIDE_TRY(write_ends(d, err));
    TIDE_TRY(tide__drain_write_events(d, err));
    TIDE_TRY(tide__store_write_names(d->store, &d->names, err));
    TIDE_TRY(tide__store_write_leaves(d->store, &d->replay, d->leaves.done, d->leaves.n_done, err));
    d->leaves.n_done = 0;
    if (d->n_orphans != d->n_orphans_stored)
        TIDE_TRY(tide__store_put_meta_int(d->store, "n_orphan_frees", d->n_orphans, err));
    if (d->n_late != d->n_late_stored) TIDE_TRY(tide__store_put_meta_int(d->store, "n_late", d->n_late, err));
    return write_positions(d, err);
}

// ---- what is given back ----

/// All of it is in the file: take it away. A damaged one stays, for whoever wants to know.
static bool end_feed(tide__drain *d, tide__drain_feed *f) {
    for (size_t i = 0; i < f->n_rings; i++)
        d->blocked_ns += atomic_load_explicit(&f->rings[i]->head->blocked_ns, memory_order_relaxed);
    struct stat info;
    if (stat(f->path, &info) == 0) d->feed_bytes += (uint64_t)info.st_blocks * 512; // its header has a hole
    f->is_ended = true;
    if (f->is_damaged) return false;
    if (atomic_load_explicit(&f->head->drain, memory_order_relaxed) != TIDE__DRAIN_FAILED)
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_DONE, memory_order_release);
    tide__drain_feed_destroy(f, true);
    return true;
}

static void give_back(tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++) {
        tide__drain_feed *f = d->feeds[i];
        if (f->is_ended) continue;
        for (size_t k = 0; k < f->n_rings; k++) {
            tide__drain_ring *r = f->rings[k];
            if (!r->is_broken && r->position != r->committed)
                atomic_store_explicit(&r->head->tail, r->position, memory_order_release);
            r->committed = r->position;
            r->is_stored = true;
        }
        if (!f->is_alive && is_drained(f) && end_feed(d, f)) d->feeds[i--] = d->feeds[--d->n_feeds];
    }
}

static tide_status keep_below_limit(tide__drain *d, tide_error *err) {
    int64_t kept_from;
    return tide__store_thin(d->store, d->opt.max_bytes, &kept_from, err);
}

tide_status tide__drain_batch(tide__drain *d, size_t *n, tide_error *err) {
    *n = 0;
    let_desks_write(d);
    d->batch_began_ns = tide_now_ns();
    TIDE_TRY(tide__store_begin(d->store, err));
    d->as_chunks = wants_chunks(d);
    const tide_status st = tide__store_end(d->store, write_all(d, n, err), err);
    // Busy means to the caller that nothing was begun.
    if (st != TIDE_OK) return st == TIDE_ERR_BUSY ? TIDE_ERR_WRITE : st;
    d->n_orphans_stored = d->n_orphans;
    d->n_late_stored = d->n_late;
    tide__names_written(&d->names);
    give_back(d);
    return keep_below_limit(d, err);
}
