// SPDX-License-Identifier: MIT
//
// Life of a drain: open, rounds of transactions, the end of the trace. See drain.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "profiler/drain/drain_address.h"
#include "profiler/store/finish.h"

// ---- where the file stands ----
//
// The drain begins with this state. A transaction that failed is its last one.
//
//     leaves     | complete | complete | open          |
//     events     ......S...............|...............| last_event
//     snapshot         ^ live blocks     ^ their leaves are made again

enum { LOOK_AGAIN_NS = 500 * 1000 * 1000 };

static void unload(tide__drain *d) {
    tide__names_deinit(&d->names);
    tide__replay_deinit(&d->replay);
    tide__leaves_deinit(&d->leaves);
    tide_host_free(d->positions);
    tide__process_ends_deinit(&d->ends);
    d->names = (tide__names){0};
    d->replay = (tide__replay){0};
    d->leaves = (tide__leaves){0};
    d->positions = NULL;
    d->n_positions = 0;
    d->n_events = 0;
}

static tide_status meta_int(const tide__drain *d, const char *key, int64_t *value, tide_error *err) {
    char query[96];
    snprintf(query, sizeof query, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = '%s'", key);
    return tide__sql_int(tide__store_sql(d->store), query, 0, value, err);
}

static tide_status load(tide__drain *d, tide_error *err) {
    tide__store_state state;
    TIDE_TRY(tide__store_get_state(d->store, &state, err));
    TIDE_TRY(tide__store_load_names(d->store, &d->names, err));
    if (tide__replay_init(&d->replay) != TIDE_OK) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    TIDE_TRY(tide__store_load_replay(d->store, &state, &d->replay, err));
    // Events behind the last complete leaves make leaves again.
    TIDE_TRY(tide__store_replay(d->store, state.last_event, &d->replay, &d->leaves, state.leaf_event, err));
    TIDE_TRY(tide__store_load_positions(d->store, &d->positions, &d->n_positions, err));
    TIDE_TRY(tide__process_ends_load(&d->ends, tide__store_sql(d->store), err));
    TIDE_TRY(meta_int(d, "n_orphan_frees", &d->n_orphans, err));
    d->n_orphans_stored = d->n_orphans;
    TIDE_TRY(meta_int(d, "n_late", &d->n_late, err));
    d->n_late_stored = d->n_late;
    d->last_event = state.last_event;
    d->last_ns = state.last_ns;
    d->last_snapshot = state.snapshot_event;
    return TIDE_OK;
}

/// Names, live blocks, open leaves and numbers as they are in the file; what the drain had of them is forgotten.
static tide_status load_state(tide__drain *d, tide_error *err) {
    unload(d);
    const tide_status st = load(d, err);
    if (st != TIDE_OK) unload(d);
    return st;
}

/// TIDE_ERR_IO once the name of the trace is not the file's any more. Looks now and then unless `now`.
static tide_status check_file(tide__drain *d, bool now, tide_error *err) {
    const uint64_t t = tide_now_ns();
    if (!now && t - d->looked_ns < LOOK_AGAIN_NS) return TIDE_OK;
    d->looked_ns = t;
    struct stat info;
    if (stat(d->path, &info) == 0) {
        if (info.st_dev == d->file_dev && info.st_ino == d->file_ino) return TIDE_OK;
    }
    d->is_removed = true;
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write '%s': the trace was removed", d->path);
}

// ---- one transaction ----
//
// Events, what follows from them, and the position of each ring. Slots are given back after the COMMIT: a drain that is
// killed before it leaves them to the next one; after it, the positions in the file say that they are there.

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

/// Whether there is something for a transaction.
static bool has_work(const tide__drain *d) {
    if (tide__drain_samples_wait(d)) return true;
    for (size_t i = 0; i < d->n_feeds; i++)
        if (feed_has_work(d->feeds[i])) return true;
    return false;
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

/// Sums over the rings: events that the process counted itself.
static tide_status write_totals(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    for (size_t device = 0; device < f->n_devices; device++) {
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            uint64_t n_allocs = 0, n_frees = 0, requested = 0, freed = 0;
            for (size_t i = 0; i < f->n_rings; i++) {
                tide__ring_total *t = &f->rings[i]->head->totals[device][kind];
                n_allocs += atomic_load_explicit(&t->n_allocs, memory_order_relaxed);
                n_frees += atomic_load_explicit(&t->n_frees, memory_order_relaxed);
                requested += atomic_load_explicit(&t->requested_bytes, memory_order_relaxed);
                freed += atomic_load_explicit(&t->freed_bytes, memory_order_relaxed);
            }
            if ((n_allocs | n_frees) == 0 || f->devices[device] == 0) continue;
            tide__ring_total sum = {n_allocs, n_frees, requested, freed};
            if (f->addresses != NULL && kind == TIDE_KIND_HOST_PAGEABLE)
                tide__drain_addresses_correct(f->addresses, &sum);
            TIDE_TRY(tide__store_write_total(d->store, f->process_id, (int16_t)f->devices[device], (uint8_t)kind, &sum,
                                             err));
        }
    }
    return TIDE_OK;
}

static tide_status write_end(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    TIDE_TRY(close_gaps(d, f, err));
    TIDE_TRY(write_totals(d, f, err));
    TIDE_TRY(tide__drain_write_stacks(d, f, err));
    if (f->run_id != 0) {
        TIDE_TRY(tide__store_run(d->store, false, f->run_id, d->last_event, d->last_ns, err));
        f->run_id = 0;
    }
    return tide__drain_write_end(d, f, err);
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
        tide__drain_feed *f = d->feeds[i];
        if (!f->is_ended) TIDE_TRY(tide__drain_addresses_write(d, f, err));
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

/// For who reads a recording whose oldest events are dropped: no event says what those were.
static tide_status write_totals_so_far(tide__drain *d, tide_error *err) {
    for (size_t i = 0; i < d->n_feeds && d->opt.max_bytes != 0; i++)
        if (!d->feeds[i]->is_ended) TIDE_TRY(write_totals(d, d->feeds[i], err));
    return TIDE_OK;
}

static tide_status write_all(tide__drain *d, size_t *n, tide_error *err) {
    TIDE_TRY(tide__drain_merge(d, d->opt.batch_events, n, err));
    TIDE_TRY(write_totals_so_far(d, err));
    TIDE_TRY(write_ends(d, err));
    TIDE_TRY(tide__drain_write_events(d, err));
    TIDE_TRY(tide__store_write_names(d->store, &d->names, err));
    TIDE_TRY(tide__store_write_leaves(d->store, &d->replay, d->leaves.done, d->leaves.n_done, err));
    d->leaves.n_done = 0;
    if (d->n_orphans != d->n_orphans_stored)
        TIDE_TRY(tide__store_put_meta_int(d->store, "n_orphan_frees", d->n_orphans, err));
    if (d->n_late != d->n_late_stored) TIDE_TRY(tide__store_put_meta_int(d->store, "n_late", d->n_late, err));
    TIDE_TRY(tide__drain_write_samples(d, err));
    return write_positions(d, err);
}

// ---- what is given back ----

/// All of it is in the file: remove it. A damaged one stays, so that a person can look at it.
static bool end_feed(tide__drain *d, tide__drain_feed *f) {
    for (size_t i = 0; i < f->n_rings; i++)
        d->blocked_ns += atomic_load_explicit(&f->rings[i]->head->blocked_ns, memory_order_relaxed);
    struct stat info;
    if (stat(f->path, &info) == 0) d->feed_bytes += (uint64_t)info.st_blocks * 512; // its header has a hole
    f->is_ended = true;
    // Of a feed by address the drain makes other events than its process counted.
    const bool has_counted =
        f->head->by_address == 0 && atomic_load_explicit(&f->head->state, memory_order_acquire) == TIDE__FEED_CLOSED;
    d->has_counted = has_counted;
    d->n_heard = has_counted ? f->head->n_heard : 0;
    d->n_dropped = has_counted ? f->head->n_dropped : 0;
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
        tide__drain_addresses_written(f);
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
    tide__drain_begin_batch(d, tide_now_ns());
    TIDE_TRY(tide__store_begin(d->store, err));
    d->as_chunks = wants_chunks(d);
    const tide_status st = tide__store_end(d->store, write_all(d, n, err), err);
    // Busy means to the caller that nothing was begun.
    if (st != TIDE_OK) return st == TIDE_ERR_BUSY ? TIDE_ERR_WRITE : st;
    d->n_orphans_stored = d->n_orphans;
    d->n_late_stored = d->n_late;
    d->n_samples = 0;
    tide__names_written(&d->names);
    give_back(d);
    return keep_below_limit(d, err);
}

enum {
    BUSY_PATIENCE_S = 30, ///< seconds that another writer may keep the trace to itself
    SLOT_NS = 30,         ///< a ring is looked at often enough for a producer that puts in an event per so many ns
    SHORTEST_NAP_NS = 50 * 1000,
    SHORT_NAP_NS = 2 * 1000 * 1000,
    LONG_NAP_NS = 16 * 1000 * 1000,
    NO_FEED_MS = 4, ///< from one look for feeds to the next, as long as there are none
};

// ---- open, close ----

static tide_status open_store(tide__drain *d, tide_error *err) {
    TIDE_TRY(tide__drain_lock(d->path, &d->lock, err));
    TIDE_TRY(tide__store_open(d->path, &d->store, err));
    struct stat info;
    if (stat(d->path, &info) != 0) return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write '%s': it is gone", d->path);
    d->file_dev = info.st_dev;
    d->file_ino = info.st_ino;
    d->looked_ns = tide_now_ns();
    return load_state(d, err);
}

tide_status tide__drain_open(const tide__drain_options *opt, tide__drain **out, tide_error *err) {
    tide__drain *d;
    TIDE_TRY(TIDE_NEW(&d, 1, err, "to record into '%s'", opt->trace_path));
    d->lock.file.fd = -1;
    d->opt = *opt;
    if (d->opt.batch_events == 0) d->opt.batch_events = TIDE__DRAIN_BATCH_EVENTS;
    if (d->opt.batch_ms == 0) d->opt.batch_ms = TIDE__DRAIN_BATCH_MS;
    d->path = tide_host_strdup(opt->trace_path);
    d->opt.trace_path = d->path;
    d->events = tide_host_calloc(TIDE__DRAIN_BUFFER_EVENTS, sizeof *d->events);
    d->rows = tide_host_calloc(TIDE__DRAIN_USUAL, sizeof *d->rows);
    d->usual_limit = TIDE__DRAIN_USUAL;
    tide_status st = d->path != NULL && d->events != NULL && d->rows != NULL
                         ? open_store(d, err)
                         : TIDE_NO_MEMORY(err, "to record into '%s'", opt->trace_path);
    if (st == TIDE_OK) st = tide__drain_list(d, true, err);
    if (st != TIDE_OK) {
        tide__drain_close(d);
        return st;
    }
    *out = d;
    return TIDE_OK;
}

void tide__drain_close(tide__drain *d) {
    if (d == NULL) return;
    for (size_t i = 0; i < d->n_feeds; i++) tide__drain_feed_destroy(d->feeds[i], false);
    for (size_t i = 0; i < d->n_foreign; i++) tide_host_free(d->foreign[i]);
    tide_host_free(d->feeds);
    tide_host_free(d->foreign);
    tide_host_free(d->active);
    tide_host_free(d->samples);
    unload(d);
    tide__store_close(d->store);
    tide__drain_unlock(&d->lock);
    tide_text_deinit(&d->scratch);
    tide_host_free(d->events);
    tide_host_free(d->rows);
    tide_host_free(d->path);
    tide_host_free(d);
}

// ---- failures ----

/// Producers go quiet; the log has one line; the file says why when it can.
static void fail(tide__drain *d, tide_status st, const tide_error *why) {
    d->failure = *why;
    d->failure.status = st;
    if (why->msg[0] == '\0') TIDE_FAIL(&d->failure, st, "cannot write '%s': %s", d->path, tide_status_text(st));
    for (size_t i = 0; i < d->n_feeds; i++) {
        tide__feed_header *head = d->feeds[i]->head;
        if (d->feeds[i]->is_ended || atomic_load(&head->drain) == TIDE__DRAIN_FAILED) continue;
        snprintf(head->error, sizeof head->error, "%s", d->failure.msg);
        head->has_no_memory = st == TIDE_ERR_NOMEM;
        atomic_store_explicit(&head->drain, TIDE__DRAIN_FAILED, memory_order_release);
    }
    if (d->is_removed) return;
    if (tide__store_begin(d->store, NULL) == TIDE_OK)
        (void)!tide__store_end(d->store, tide__store_put_meta(d->store, "reason", d->failure.msg, NULL), NULL);
}

static tide_status kept_failure(const tide__drain *d, tide_error *err) {
    if (err != NULL && d->failure.status != TIDE_OK) *err = d->failure;
    return d->failure.status;
}

// ---- rounds ----

static tide_status round_of(tide__drain *d, size_t *n_events, tide_error *err) {
    TIDE_TRY(check_file(d, false, err));
    TIDE_TRY(tide__drain_list(d, false, err));
    TIDE_TRY(tide__drain_sample(d, err));
    TIDE_TRY(tide__drain_look_at_feeds(d, err));
    return has_work(d) ? tide__drain_batch(d, n_events, err) : TIDE_OK;
}

/// Another writer that keeps the trace for a while is waited for; events stay in their rings meanwhile.
static bool may_try_again(tide__drain *d, tide_status st) {
    if (st != TIDE_ERR_BUSY) {
        d->busy_since_ns = 0;
        return false;
    }
    const uint64_t now = tide_now_ns();
    if (d->busy_since_ns == 0) d->busy_since_ns = now;
    return now - d->busy_since_ns < (uint64_t)BUSY_PATIENCE_S * 1000000000;
}

tide_status tide__drain_round(tide__drain *d, size_t *n_events, size_t *n_alive, tide_error *err) {
    *n_events = *n_alive = 0;
    TIDE_TRY(kept_failure(d, err));
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = round_of(d, n_events, &why);
    for (size_t i = 0; i < d->n_feeds; i++) *n_alive += !d->feeds[i]->is_ended;
    *n_alive += d->has_held_feed;
    if (st == TIDE_OK || may_try_again(d, st)) return TIDE_OK;
    *n_events = 0;
    fail(d, st, &why);
    // What of the events in memory is in the file, the file says.
    int64_t kept = 0;
    if (tide__sql_int(tide__store_sql(d->store),
                      "SELECT max(coalesce((SELECT max(id) FROM event), 0), coalesce((SELECT max(last_event) FROM "
                      "event_chunk), 0))",
                      0, &kept, NULL) != TIDE_OK)
        kept = 0;
    if (!d->opt.quiet && d->has_seen_feed) // else nothing was recorded, and who waits for it is told
        tide_log(TIDE_LOG_WARN, "recording into '%s' ended early: %s; kept up to event %" PRId64, d->path,
                 d->failure.msg, kept);
    return kept_failure(d, err);
}

bool tide__drain_has_ended(const tide__drain *d, const char *feed_path) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (strcmp(d->feeds[i]->path, feed_path) == 0 && !d->feeds[i]->is_ended) return false;
    return !d->has_held_feed; // it may be that one
}

bool tide__drain_has_seen_feed(const tide__drain *d) { return d->has_seen_feed; }

void tide__drain_look_again(tide__drain *d) { d->listed_ns = 0; }

// ---- pauses ----

uint64_t tide__drain_pause_ns(tide__drain *d, size_t n_events, uint64_t since_ns, unsigned *idle) {
    if (n_events >= d->opt.batch_events) return 0; // there is more
    bool has_some = false;
    uint64_t nap = SHORT_NAP_NS;
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        if (f->is_ended) continue;
        if (f->is_alive && atomic_load_explicit(&f->head->state, memory_order_relaxed) == TIDE__FEED_CLOSED) return 0;
        if (!f->is_alive) return 0; // it has more than one batch
        for (size_t k = 0; k < f->n_rings; k++) {
            const tide__drain_ring *r = f->rings[k];
            const uint64_t n = atomic_load_explicit(&r->head->head, memory_order_relaxed) - r->position;
            const uint64_t n_slots = tide__feed_reader_n_full(f->reader, k);
            if (nap > n_slots * SLOT_NS) nap = n_slots * SLOT_NS;
            if (r->is_broken || n == 0) continue;
            if (n > n_slots / 2) return 0;
            has_some = true;
        }
    }
    // A process that begins to record waits until its feed is seen.
    const unsigned batch_ms = d->n_feeds > 0 ? d->opt.batch_ms : NO_FEED_MS;
    const uint64_t now = tide_now_ns(), passed = now - since_ns, batch_ns = (uint64_t)batch_ms * 1000000;
    const bool samples = d->opt.sample_ms > 0 && d->n_feeds > 0;
    if (passed >= batch_ns || (samples && now >= d->sample_due_ns)) return 0;
    if (nap < SHORTEST_NAP_NS) nap = SHORTEST_NAP_NS;
    *idle = has_some ? 0 : *idle + 1;
    nap = *idle < 10 ? nap << *idle : LONG_NAP_NS;
    if (nap > LONG_NAP_NS) nap = LONG_NAP_NS;
    if (nap > batch_ns - passed) nap = batch_ns - passed;
    return samples && nap > d->sample_due_ns - now ? d->sample_due_ns - now : nap;
}

// ---- the end ----
//
// The next program that opens the trace of a killed process drains and finishes it.

enum { MAX_EXPANDED = 4 << 20 }; ///< events in chunks that form AUTO turns into rows: 170 MB of them

static void remove_feeds(tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++) tide__drain_feed_destroy(d->feeds[i], !d->feeds[i]->is_damaged);
    d->n_feeds = 0;
}

/// Facts for table meta that tide__finish does not know.
static tide_status write_facts(tide__drain *d, tide_error *err) {
    tide_host_stats own;
    tide_host_get_stats(&own);
    TIDE_TRY(tide__store_put_meta_int(d->store, "feed_bytes", (int64_t)d->feed_bytes, err));
    TIDE_TRY(tide__store_put_meta_int(d->store, "blocked_ns", (int64_t)d->blocked_ns, err));
    TIDE_TRY(tide__store_put_meta_int(d->store, "own_peak_bytes", (int64_t)own.peak_bytes, err));
    return tide__store_put_meta_int(d->store, "n_orphan_frees", d->n_orphans_stored, err);
}

/// What is in chunks, and how much; -1 when that is not known.
static int64_t count_chunked(const tide__drain *d) {
    int64_t n;
    return tide__sql_int(tide__store_sql(d->store), "SELECT sum(last_event - first_event + 1) FROM event_chunk", 0, &n,
                         NULL) == TIDE_OK
               ? n
               : -1;
}

/// Tables of the end. Gives the store away.
static tide_status finish_store(tide__drain *d, const char *reason, tide_error *err) {
    TIDE_TRY(tide__store_begin(d->store, err));
    TIDE_TRY(tide__store_end(d->store, write_facts(d, err), err));
    const int64_t n_chunked = count_chunked(d);
    tide__store *store = d->store;
    d->store = NULL;
    TIDE_TRY(tide__finish(store, reason, err));
    if (d->opt.form != TIDE_RECORD_AUTO || n_chunked <= 0 || n_chunked > MAX_EXPANDED || d->opt.max_bytes != 0)
        return TIDE_OK;
    tide_error why = TIDE_ERROR_INIT;
    if (tide__finish_expand(d->path, &why) != TIDE_OK && !d->opt.quiet) // as chunks they are no less there
        tide_log(TIDE_LOG_WARN, "'%s': events stay in chunks: %s", d->path, why.msg);
    return TIDE_OK;
}

/// After a failure: what is in the file is what counts, and all that the end of the tables looks at.
static tide_status finish_failed(tide__drain *d, tide_error *err) {
    if (!d->is_removed && check_file(d, true, NULL) == TIDE_OK && finish_store(d, d->failure.msg, NULL) == TIDE_OK)
        remove_feeds(d);
    if (d->is_removed) remove_feeds(d); // what they hold belongs to nothing
    if (err != NULL) *err = d->failure;
    return d->failure.status;
}

tide_status tide__drain_finish(tide__drain *d, tide_error *err) {
    if (d->failure.status == TIDE_OK) (void)!check_file(d, true, &d->failure);
    if (d->failure.status != TIDE_OK) return finish_failed(d, err);
    const tide_status st = finish_store(d, d->reason[0] != '\0' ? d->reason : NULL, err);
    if (st == TIDE_OK) remove_feeds(d);
    return st;
}

// ---- what was left behind ----

static tide_status read_state(const char *path, bool *unfinished, tide_error *err) {
    tide__sql s = {.path = path};
    TIDE_TRY(tide__sql_open_to_read(&s, err));
    sqlite3_stmt *stmt = NULL;
    tide_status st = tide__sql_prepare(&s, "SELECT value FROM meta WHERE key = 'state'", &stmt, err);
    bool has_row = false;
    if (st == TIDE_OK) st = tide__sql_step(&s, stmt, &has_row, err);
    *unfinished = st == TIDE_OK && has_row && strcmp(tide__sql_text(stmt, 0), TIDE__STATE_RECORDING) == 0;
    sqlite3_finalize(stmt);
    sqlite3_close(s.db);
    return st;
}

void tide__drain_sweep(const char *path) {
    if (!tide__drain_has_lock(path) || tide__drain_is_in_use(path)) return;
    tide__drain_lock_file *lock = tide_host_calloc(1, sizeof *lock);
    if (lock != NULL && tide__drain_lock(path, lock, NULL) == TIDE_OK) tide__drain_unlock(lock);
    tide_host_free(lock);
}

static tide_status feeds_in_use(const char *path, bool *in_use, tide_error *err) {
    char **paths;
    size_t n;
    TIDE_TRY(tide__feed_list(path, &paths, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (tide__feed_is_in_use(paths[i])) *in_use = true;
        tide_host_free(paths[i]);
    }
    tide_host_free(paths);
    return TIDE_OK;
}

tide_status tide__drain_look(const char *path, bool *unfinished, bool *in_use, tide_error *err) {
    *unfinished = *in_use = false;
    if (access(path, F_OK) != 0) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot open '%s': no such file", path);
    TIDE_TRY(read_state(path, unfinished, err));
    *in_use = tide__drain_is_in_use(path);
    return *in_use ? TIDE_OK : feeds_in_use(path, in_use, err);
}

static tide_status drain_all(tide__drain *d, tide_error *err) {
    for (;;) {
        size_t n_events, n_alive;
        TIDE_TRY(tide__drain_round(d, &n_events, &n_alive, err));
        for (size_t i = 0; i < d->n_feeds; i++) {
            if (!d->feeds[i]->is_ended && d->feeds[i]->is_alive)
                return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': '%s' still records into it", d->path,
                                 d->feeds[i]->path);
        }
        if (n_alive == 0) return TIDE_OK;
        if (d->has_held_feed)
            return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': another process takes events out of a feed",
                             d->path);
    }
}

tide_status tide__drain_recover(const char *path, tide_error *err) {
    bool in_use = false;
    TIDE_TRY(feeds_in_use(path, &in_use, err));
    if (in_use) return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': another process records into it", path);
    const tide__drain_options opt = {.trace_path = path, .quiet = true, .after_all = true};
    tide__drain *d;
    TIDE_TRY(tide__drain_open(&opt, &d, err));
    tide_status st = drain_all(d, err);
    if (st == TIDE_OK) tide__store_remove_strays(path);
    if (st == TIDE_OK) st = tide__drain_finish(d, err);
    tide__drain_close(d);
    return st;
}
