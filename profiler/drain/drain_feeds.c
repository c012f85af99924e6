// SPDX-License-Identifier: MIT
//
// Which feeds there are, what their logs define, how far their rings go. A feed that lies is not an error of the
// recording: the trace and the header of the feed say that it is damaged, and what can be read of it is read.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "profiler/drain/drain_address.h"

enum {
    LIST_AGAIN_NS = 1000 * 1000 * 1000,
    TICK_NS = 20 * 1000 * 1000, ///< more than the clock of a file goes on by at once
    HELD_PATIENCE_S = 30,       ///< seconds that a drain which was killed may take until the system has taken it down
};

// ---- the run of a process ----

/// The run that process `process_id` has open in the file; 0: none.
static tide_status open_run(const tide__drain *d, int64_t process_id, int64_t *run_id, tide_error *err) {
    char query[160];
    snprintf(query, sizeof query,
             "SELECT max(id) FROM run WHERE process_id = %" PRId64 " AND first_event IS NOT NULL AND end_ns IS NULL",
             process_id);
    return tide__sql_int(tide__store_sql(d->store), query, 0, run_id, err);
}

// ---- damage ----

tide_status tide__drain_damage(tide__drain *d, tide__drain_feed *f, tide__drain_ring *ring, const char *what,
                               tide_error *err) {
    if (ring != NULL) ring->is_broken = true;
    if (f->is_damaged) return TIDE_OK; // one line per feed
    f->is_damaged = true;
    const char *name = strrchr(f->path, '/');
    char text[512];
    const int n =
        snprintf(text, sizeof text, "the feed '%.200s' is damaged: %s", name != NULL ? name + 1 : f->path, what);
    if (ring != NULL && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, " (ring %zu, position %" PRIu64 ")", ring->index, ring->position);
    if (f->head != NULL && f->is_alive) {
        snprintf(f->head->error, sizeof f->head->error, "%s", text);
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_FAILED, memory_order_release);
    }
    if (!d->opt.quiet) tide_log(TIDE_LOG_WARN, "recording into '%s': %s", d->path, text);
    return tide__drain_insert_problem(d, text, err);
}

// ---- life of a feed ----

void tide__drain_feed_destroy(tide__drain_feed *f, bool remove) {
    if (f == NULL) return;
    tide__feed_reader_close(f->reader, remove);
    for (size_t i = 0; i < f->n_rings; i++) tide_host_free(f->rings[i]);
    tide_host_free(f->rings);
    tide__drain_addresses_destroy(f->addresses);
    tide__drain_probe_close(f->probe);
    tide_host_free(f->texts);
    tide_host_free(f->scopes);
    tide_host_free(f->frames);
    tide_map_deinit(&f->frame_scopes);
    for (size_t i = 0; i < f->n_modules; i++) tide_host_free(f->modules[i]);
    tide_host_free(f->modules);
    tide_host_free(f->runs);
    tide_host_free(f->path);
    tide_host_free(f);
}

static bool is_known(const tide__drain *d, const char *path) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (strcmp(d->feeds[i]->path, path) == 0) return true;
    for (size_t i = 0; i < d->n_foreign; i++)
        if (strcmp(d->foreign[i], path) == 0) return true;
    return false;
}

static tide_status add_foreign(tide__drain *d, const char *path, tide_error *err) {
    if (tide_host_grow(&d->foreign, &d->cap_foreign, d->n_foreign + 1, sizeof(char *)) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    char *copy = tide_host_strdup(path);
    if (copy == NULL) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    d->foreign[d->n_foreign++] = copy;
    return TIDE_OK;
}

/// What is no feed, or another trace's, is left as it is, with a line in the file.
static tide_status refuse_feed(tide__drain *d, const char *path, const char *why, tide_error *err) {
    TIDE_TRY(add_foreign(d, path, err));
    char text[512];
    snprintf(text, sizeof text, "'%.200s' is no feed of this trace: %.250s", path, why);
    if (!d->opt.quiet) tide_log(TIDE_LOG_WARN, "recording into '%s': %s", d->path, text);
    TIDE_TRY(tide__store_begin(d->store, err));
    return tide__store_end(d->store, tide__drain_insert_problem(d, text, err), err);
}

/// From now on producers wait for room, and know that the events are taken; or that they are not, and why.
static void say_taken(tide__drain *d, const tide__drain_feed *f) {
    if (d->reason[0] == '\0' && atomic_load_explicit(&f->head->drain, memory_order_acquire) == TIDE__DRAIN_FAILED) {
        memcpy(d->reason, f->head->error, sizeof d->reason);
        d->reason[sizeof d->reason - 1] = '\0';
    } else {
        atomic_store_explicit(&f->head->drain_pid, (uint32_t)getpid(), memory_order_relaxed);
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_RUNNING, memory_order_release);
    }
}

static tide_status add_feed(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&d->feeds, &d->cap_feeds, d->n_feeds + 1, err, "to record into '%s'", d->path));
    TIDE_TRY(tide__drain_register_process(d, f, err));
    TIDE_TRY(open_run(d, f->process_id, &f->run_id, err));
    f->is_late = f->head->by_address != 0 && f->head->is_late != 0;
    if (f->head->by_address != 0) TIDE_TRY(tide__drain_addresses_make(d, f, err));
    tide__drain_clock_init(&f->clock, f->head);
    TIDE_TRY(tide__drain_probe_open(d, f, err));
    say_taken(d, f);
    d->feeds[d->n_feeds++] = f;
    d->has_seen_feed = true;
    return TIDE_OK;
}

/// The reader is given away, or on failure closed.
static tide_status make_feed(tide__drain *d, const char *path, tide__feed_reader *reader, tide_error *err) {
    tide__drain_feed *f;
    tide_status st = TIDE_NEW(&f, 1, err, "to record into '%s'", d->path);
    if (st != TIDE_OK) {
        tide__feed_reader_close(reader, false);
        return st;
    }
    f->reader = reader;
    f->head = tide__feed_reader_head(reader);
    st = TIDE_COPY_TEXT(&f->path, path, err, "to record into '%s'", d->path);
    if (st == TIDE_OK) st = add_feed(d, f, err);
    if (st != TIDE_OK && st != TIDE_ERR_BAD_INPUT && err != NULL) { // its process waits for an answer
        snprintf(f->head->error, sizeof f->head->error, "%s", err->msg);
        f->head->has_no_memory = st == TIDE_ERR_NOMEM;
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_FAILED, memory_order_release);
    }
    if (st != TIDE_OK) tide__drain_feed_destroy(f, false);
    return st;
}

/// The lock on the trace and those on the feeds of a drain that was killed do not go at the same time (feeds are
/// mapped, and a process that looks at another one keeps its memory for a moment longer): who has the one waits for the
/// others. Refused now, the feed would never be drained, and what its program goes on to put in would be lost.
static bool is_held_for_now(tide__drain *d, tide_status st) {
    if (st != TIDE_ERR_BUSY) return false;
    const uint64_t now = tide_now_ns();
    if (d->held_since_ns == 0) d->held_since_ns = now;
    if (now - d->held_since_ns > (uint64_t)HELD_PATIENCE_S * 1000000000) return false;
    d->has_held_feed = true;
    return true;
}

static tide_status open_feed(tide__drain *d, const char *path, tide_error *err) {
    tide__feed_reader *reader;
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__feed_reader_open(path, false, &reader, &why);
    if (st == TIDE_ERR_NOMEM) {
        if (err != NULL) *err = why;
        return st;
    }
    if (st != TIDE_OK && access(path, F_OK) != 0) return TIDE_OK; // gone between the two looks
    if (is_held_for_now(d, st)) return TIDE_OK;
    if (st != TIDE_OK) return refuse_feed(d, path, why.msg, err);
    st = make_feed(d, path, reader, &why);
    if (st == TIDE_ERR_BAD_INPUT || st == TIDE_ERR_NO_SPACE) return refuse_feed(d, path, why.msg, err);
    if (st != TIDE_OK && err != NULL) *err = why;
    return st;
}

/// A file that was made since shows in the time of its folder. Clocks of files tick slowly: a folder that changed just
/// before it was listed may have changed after it too.
static bool folder_changed(tide__drain *d) {
    const uint64_t now = tide_now_ns();
    if (d->listed_ns == 0 || now - d->listed_ns > LIST_AGAIN_NS) return true;
    const char *slash = strrchr(d->path, '/');
    char folder[4096] = ".";
    if (slash != NULL && (size_t)(slash - d->path) + 1 < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - d->path) + 1, d->path);
    struct stat info;
    if (stat(folder, &info) != 0) return true;
    const bool changed = info.st_mtim.tv_sec != d->dir_changed.tv_sec || info.st_mtim.tv_nsec != d->dir_changed.tv_nsec;
    d->dir_changed = info.st_mtim;
    return changed ||
           tide__clock_wall_ns() - (info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec) < TICK_NS;
}

tide_status tide__drain_list(tide__drain *d, bool now, tide_error *err) {
    const bool changed = folder_changed(d);
    if (!changed && !now && !d->has_held_feed) return TIDE_OK;
    d->listed_ns = tide_now_ns();
    d->has_held_feed = false;
    char **paths;
    size_t n;
    TIDE_TRY(tide__feed_list(d->path, &paths, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n; i++) {
        if (st == TIDE_OK && !is_known(d, paths[i])) st = open_feed(d, paths[i], err);
        tide_host_free(paths[i]);
    }
    tide_host_free(paths);
    if (!d->has_held_feed) d->held_since_ns = 0;
    return st;
}

// ---- the log ----

static tide_status map_number(int64_t **map, size_t *n, size_t *cap, int64_t value) {
    TIDE_TRY(tide_host_grow(map, cap, *n + 1, sizeof **map));
    (*map)[(*n)++] = value;
    return TIDE_OK;
}

static tide_status take_text(tide__drain *d, const void *payload, size_t bytes, int64_t *id) {
    d->scratch.len = 0;
    d->scratch.failed = false;
    tide_text_add_n(&d->scratch, payload, bytes);
    if (d->scratch.failed) return TIDE_ERR_NOMEM;
    return tide__names_text(&d->names, tide_text_str(&d->scratch), id);
}

static tide_status take_scope(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload) {
    tide__log_scope s;
    if (r->payload_bytes != sizeof s || r->id != f->n_scopes + 1) return TIDE_ERR_BAD_INPUT;
    memcpy(&s, payload, sizeof s);
    if (s.text_id < 1 || s.text_id > f->n_texts || s.parent_id > f->n_scopes) return TIDE_ERR_BAD_INPUT;
    const tide__scope_row row = {.name_id = f->texts[s.text_id - 1],
                                 .parent_id = s.parent_id == 0 ? 0 : f->scopes[s.parent_id - 1],
                                 .kind = s.kind,
                                 .step = s.step};
    int64_t id;
    TIDE_TRY(tide__names_scope_row(&d->names, &row, &id));
    return map_number(&f->scopes, &f->n_scopes, &f->cap_scopes, id);
}

static tide_status take_device(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload) {
    tide__log_device device;
    if (r->payload_bytes != sizeof device || r->id != f->n_devices + 1 || f->n_devices == TIDE__FEED_MAX_DEVICES)
        return TIDE_ERR_BAD_INPUT;
    memcpy(&device, payload, sizeof device);
    if (device.type < 0 || device.type >= TIDE_MAX_DEVICE_TYPES || device.index < 0) return TIDE_ERR_BAD_INPUT;
    int64_t id;
    TIDE_TRY(tide__names_device(&d->names, (tide_device){(tide_device_type)device.type, device.index}, &id));
    f->devices[f->n_devices++] = id < TIDE__MAX_DEVICES ? id : 0;
    return TIDE_OK;
}

static tide_status take_allocator(tide__drain_feed *f, const tide__log_record *r, const void *payload) {
    uint32_t text;
    if (r->payload_bytes != sizeof text || r->id != f->n_allocators + 1 || f->n_allocators == TIDE__FEED_MAX_ALLOCATORS)
        return TIDE_ERR_BAD_INPUT;
    memcpy(&text, payload, sizeof text);
    if (text < 1 || text > f->n_texts) return TIDE_ERR_BAD_INPUT;
    f->allocators[f->n_allocators++] = f->texts[text - 1];
    return TIDE_OK;
}

static tide_status take_thread(tide__drain *d, const tide__drain_feed *f, const tide__log_record *r,
                               const void *payload) {
    if (r->id < 1 || r->id > INT32_MAX) return TIDE_ERR_BAD_INPUT;
    d->scratch.len = 0;
    d->scratch.failed = false;
    tide_text_add_n(&d->scratch, payload, r->payload_bytes);
    if (d->scratch.failed) return TIDE_ERR_NOMEM;
    int64_t id;
    return tide__names_thread(&d->names, f->process_id, r->id, tide_text_str(&d->scratch), &id);
}

/// @return TIDE_OK, TIDE_ERR_NOMEM, anything else: no producer wrote this record
static tide_status take_record(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload) {
    int64_t id;
    switch (r->type) {
    case TIDE__LOG_TEXT:
        if (r->id != f->n_texts + 1) return TIDE_ERR_BAD_INPUT;
        TIDE_TRY(take_text(d, payload, r->payload_bytes, &id));
        return map_number(&f->texts, &f->n_texts, &f->cap_texts, id);
    case TIDE__LOG_SCOPE:
        return take_scope(d, f, r, payload);
    case TIDE__LOG_DEVICE:
        return take_device(d, f, r, payload);
    case TIDE__LOG_ALLOCATOR:
        return take_allocator(f, r, payload);
    case TIDE__LOG_FRAME:
        return tide__drain_take_frame(d, f, r, payload);
    case TIDE__LOG_THREAD:
        return take_thread(d, f, r, payload);
    default:
        return TIDE_ERR_BAD_INPUT;
    }
}

/// A problem is a row, and a row wants a transaction: it is noted by the batch that follows.
static tide_status damage_later(tide__drain *d, tide__drain_feed *f, const char *what, tide_error *err) {
    if (f->is_damaged) return TIDE_OK;
    TIDE_TRY(tide__store_begin(d->store, err));
    return tide__store_end(d->store, tide__drain_damage(d, f, NULL, what, err), err);
}

/// The record that waits. It does so on after an error, and is taken again.
static tide_status take_waiting(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    const tide__log_record *r = tide__feed_reader_record(f->reader);
    bool bad = false;
    if (r->type == TIDE__LOG_RUN || r->type == TIDE__LOG_FACT) {
        TIDE_TRY(tide__drain_register(d, f, r, f->waiting + 1, &bad, err));
    } else if (r->type == TIDE__LOG_MODULE) {
        TIDE_TRY(tide__drain_take_module(d, f, r, f->waiting + 1, &bad, err));
    } else {
        const tide_status st = take_record(d, f, r, f->waiting + 1);
        if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
        bad = st != TIDE_OK;
    }
    if (bad) TIDE_TRY(damage_later(d, f, "its log defines what cannot be", err));
    f->waiting = NULL;
    return TIDE_OK;
}

static tide_status read_log(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    for (;;) {
        if (f->waiting == NULL && !f->log_is_bad) f->waiting = tide__feed_reader_next_record(f->reader, &f->log_is_bad);
        if (f->log_is_bad) TIDE_TRY(damage_later(d, f, "its log", err));
        f->log_is_bad = false;
        if (f->waiting == NULL) return TIDE_OK;
        TIDE_TRY(take_waiting(d, f, err));
    }
}

// ---- rings ----

static const tide__position *position_of(const tide__drain *d, int64_t process_id, size_t ring) {
    for (size_t i = 0; i < d->n_positions; i++)
        if (d->positions[i].process_id == process_id && d->positions[i].ring == (int64_t)ring) return &d->positions[i];
    return NULL;
}

static tide_status add_ring(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    if (tide_host_grow(&f->rings, &f->cap_rings, f->n_rings + 1, sizeof(tide__drain_ring *)) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    tide__drain_ring *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to record into '%s'", d->path));
    r->feed = f;
    r->index = f->n_rings;
    r->head = tide__feed_reader_ring(f->reader, r->index);
    f->rings[f->n_rings++] = r;
    const tide__position *p = position_of(d, f->process_id, r->index);
    if (p == NULL) return TIDE_OK;
    r->position = (uint64_t)p->position;
    r->committed = r->position;
    r->thread = p->thread;
    r->n_gap = p->n_lost;
    r->is_stored = true;
    // What the file has, the ring need not keep; a drain that was killed behind its COMMIT did not come to say so.
    if (atomic_load_explicit(&r->head->tail, memory_order_relaxed) < r->position)
        atomic_store_explicit(&r->head->tail, r->position, memory_order_release);
    return TIDE_OK;
}

static tide_status refresh(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide__feed_reader_refresh(f->reader, &why);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    if (st != TIDE_OK) TIDE_TRY(damage_later(d, f, why.msg, err));
    while (f->n_rings < tide__feed_reader_n_rings(f->reader)) TIDE_TRY(add_ring(d, f, err));
    return TIDE_OK;
}

static tide_status read_heads(tide__drain *d, tide__drain_feed *f, bool first, tide_error *err) {
    TIDE_TRY(refresh(d, f, err));
    f->loses = false;
    for (size_t i = 0; i < f->n_rings; i++) {
        tide__drain_ring *r = f->rings[i];
        if (atomic_load_explicit(&r->head->n_lost, memory_order_relaxed) > 0) f->loses = true;
        if (r->is_broken) continue;
        const uint64_t end = tide__feed_reader_end(f->reader, i, r->position, !f->is_alive || f->has_gone);
        r->room.n = 0; // it may have grown: look again
        if (end < r->position) {
            r->is_broken = true;
            TIDE_TRY(damage_later(d, f, "a ring ends before what was taken from it", err));
        } else if (first) {
            r->sure_end = end;
        } else {
            r->end = end;
            if (r->sure_end < r->position) r->sure_end = r->position; // a ring that came in between
        }
    }
    return TIDE_OK;
}

tide_status tide__drain_look_at_feeds(tide__drain *d, tide_error *err) {
    // Whether a producer lives comes first: what is there after its end is all there is. An event that another process
    // put in behind the end of one is not taken before that end is known: no end comes while heads are read.
    do {
        for (size_t i = 0; i < d->n_feeds; i++) {
            tide__drain_feed *f = d->feeds[i];
            if (f->is_ended) continue;
            f->is_alive = tide__feed_reader_producer_lives(f->reader);
            tide__drain_see_end(d, f); // after it: of one that is not alive the end is known
            TIDE_TRY(read_heads(d, f, true, err));
        }
    } while (d->n_feeds > 1 && tide__drain_misses_an_end(d));
    for (size_t i = 0; i < d->n_feeds; i++) {
        if (!d->feeds[i]->is_ended) TIDE_TRY(read_heads(d, d->feeds[i], false, err));
    }
    for (size_t i = 0; i < d->n_feeds; i++) {
        tide__drain_feed *f = d->feeds[i];
        if (f->is_ended) continue;
        TIDE_TRY(read_log(d, f, err));
        tide__drain_clock_read(&f->clock, f->head);
    }
    return TIDE_OK;
}
