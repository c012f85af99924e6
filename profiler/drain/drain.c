// SPDX-License-Identifier: MIT
//
// Life of a drain, and its round. See drain.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "profiler/drain/drain_internal.h"

enum {
    BUSY_PATIENCE_S = 30, ///< seconds that another writer may keep the trace to itself
    SLOT_NS = 30,         ///< a ring is looked at often enough for a producer that puts in an event per so many ns
    SHORTEST_NAP_NS = 50 * 1000,
    SHORT_NAP_NS = 2 * 1000 * 1000,
    LONG_NAP_NS = 16 * 1000 * 1000,
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
    return tide__drain_load(d, err);
}

tide_status tide__drain_open(const tide__drain_options *opt, tide__drain **out, tide_error *err) {
    tide__drain *d = tide_host_calloc(1, sizeof *d);
    if (d == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", opt->trace_path);
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
                         : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", opt->trace_path);
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
    tide__drain_unload(d);
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
    TIDE_TRY(tide__drain_check_file(d, false, err));
    TIDE_TRY(tide__drain_list(d, false, err));
    TIDE_TRY(tide__drain_look_at_feeds(d, err));
    return tide__drain_has_work(d) ? tide__drain_batch(d, n_events, err) : TIDE_OK;
}

/// Another writer that keeps the trace for a while is waited for; events stay in their rings meanwhile.
static bool is_patient(tide__drain *d, tide_status st) {
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
    if (st == TIDE_OK || is_patient(d, st)) return TIDE_OK;
    *n_events = 0;
    fail(d, st, &why);
    // Behind fail: the reloaded state is what the file has, and so what the line says.
    int64_t kept = 0;
    if (tide__sql_int(tide__store_sql(d->store),
                      "SELECT max(coalesce((SELECT max(id) FROM event), 0), coalesce((SELECT max(last_event) FROM "
                      "event_chunk), 0))",
                      0, &kept, NULL) != TIDE_OK)
        kept = 0;
    if (!d->opt.quiet)
        tide_log(TIDE_LOG_WARN, "recording into '%s' ended early: %s; kept up to event %" PRId64, d->path,
                 d->failure.msg, kept);
    return kept_failure(d, err);
}

bool tide__drain_has_ended(const tide__drain *d, int64_t process_id) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (d->feeds[i]->process_id == process_id && !d->feeds[i]->is_ended) return false;
    return !d->has_held_feed; // it may be the feed of that process
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
    const uint64_t passed = tide_now_ns() - since_ns, batch_ns = (uint64_t)d->opt.batch_ms * 1000000;
    if (passed >= batch_ns) return 0;
    if (nap < SHORTEST_NAP_NS) nap = SHORTEST_NAP_NS;
    *idle = has_some ? 0 : *idle + 1;
    nap = *idle < 10 ? nap << *idle : LONG_NAP_NS;
    if (nap > LONG_NAP_NS) nap = LONG_NAP_NS;
    if (nap > batch_ns - passed) nap = batch_ns - passed;
    return nap;
}
