// SPDX-License-Identifier: MIT
//
// What can be read of a damaged trace, as a new one. See query.h and recover.h.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "profiler/drain/drain.h"
#include "profiler/feed/reader.h"
#include "profiler/read/recover.h"
#include "profiler/store/finish.h"
#include "profiler/store/process_ends.h"

typedef struct recovery {
    const char *path, *out_path;
    tide__readable readable;
    tide__damaged in;
    tide__new_trace out;
    char **feeds; ///< [n_feeds] beside the trace, owned
    size_t n_feeds;
    uint64_t n_lost;     ///< events that the trace had and that cannot be read
    uint64_t n_restored; ///< events that no table holds: out of single pages, blocks, snapshots
} recovery;

// ---- meta ----

typedef struct meta_copy {
    tide__damaged *in;
    tide__new_trace *out;
} meta_copy;

static tide_status take_meta(void *ctx, sqlite3_stmt *row, tide_error *err) {
    meta_copy *c = ctx;
    if (sqlite3_column_type(row, 0) != SQLITE_TEXT || sqlite3_column_type(row, 1) != SQLITE_TEXT)
        return TIDE_ERR_BAD_INPUT;
    const char *key = tide__sql_text(row, 0), *value = tide__sql_text(row, 1);
    tide__process_end end; // one whose event is still to be written is for the drain of what feeds hold
    const bool is_open_end = tide__process_end_parse(key, value, &end) && end.event == 0;
    if (tide__new_trace_makes(key) && !is_open_end) return TIDE_OK;
    return tide__new_trace_meta(c->out, key, value, err);
}

/// Facts of the recorded program and of its recording.
static tide_status copy_meta(tide__damaged *in, tide__new_trace *out, tide_error *err) {
    meta_copy c = {.in = in, .out = out};
    return tide__damaged_each_by_key(in, "meta", "key", "key, value", take_meta, &c, err);
}

// ---- events ----

typedef struct event_copy {
    recovery *r;
    tide__copier copier;
    tide__holes holes;
    tide__event_reader events;
    size_t next_hole, next_found;
    int64_t base; ///< last event before those that are copied
} event_copy;

static tide_status copy_event(event_copy *c, const tide__event *e, bool as_chunk, tide_error *err) {
    tide__copier_pass(&c->copier, e->id);
    return tide__copier_event(&c->copier, e, as_chunk, err);
}

/// What was found of the next hole, and a gap for what was not.
static tide_status copy_hole(event_copy *c, bool as_chunk, tide_error *err) {
    const tide__hole *hole = &c->holes.holes[c->next_hole++];
    uint64_t n_missing = (uint64_t)(hole->last - hole->first) + 1;
    if (hole->last <= c->base) return TIDE_OK;
    if (hole->first <= c->base) n_missing = (uint64_t)(hole->last - c->base);
    for (; c->next_found < c->holes.n_found && c->holes.found[c->next_found].id <= hole->last; c->next_found++) {
        const tide__event *e = &c->holes.found[c->next_found];
        if (e->id <= c->base) continue;
        TIDE_TRY(copy_event(c, e, as_chunk, err));
        c->r->n_restored++;
        n_missing--;
    }
    tide__copier_pass(&c->copier, hole->last);
    // What is missing counts as the hole's end: what follows may be about it.
    return tide__copier_gap(&c->copier, n_missing, c->r->out.last_ns, as_chunk, err);
}

static tide_status copy_events(event_copy *c, tide_error *err) {
    TIDE_TRY(tide__event_reader_open(&c->events, &c->r->in, err));
    int64_t last = 0;
    while (c->events.has) {
        const tide__event *e = &c->events.event;
        while (c->next_hole < c->holes.n_holes && c->holes.holes[c->next_hole].last < e->id)
            TIDE_TRY(copy_hole(c, c->events.is_chunk, err));
        // A number that was passed over when holes were looked for is passed over now.
        const bool is_ours = e->id <= c->holes.last_event && e->id > last && e->id > c->base;
        if (is_ours) TIDE_TRY(copy_event(c, e, c->events.is_chunk, err));
        if (is_ours) last = e->id;
        TIDE_TRY(tide__event_reader_next(&c->events, err));
    }
    while (c->next_hole < c->holes.n_holes) TIDE_TRY(copy_hole(c, false, err));
    return TIDE_OK;
}

/// Thinning keeps who was live at the peak of all: one snapshot before the first that is kept.
static tide_status copy_peak(event_copy *c, tide_error *err) {
    int64_t event = 0, t_ns = 0;
    tide__replay *live;
    TIDE_TRY(TIDE_NEW(&live, 1, err, "to recover '%s'", c->r->path));
    tide_status st =
        tide__recover_snapshot(&c->r->in, &c->r->out.names, 1, c->holes.first_kept - 2, live, &event, &t_ns, err);
    if (st == TIDE_OK && event > 0) st = tide__new_trace_past_moment(&c->r->out, event, t_ns, live, err);
    tide__replay_deinit(live);
    tide_host_free(live);
    return st;
}

/// Events that were dropped to keep the trace small, or are lost from its begin up to a snapshot: what was live then is
/// where the new trace begins.
static tide_status copy_past(event_copy *c, tide_error *err) {
    const tide__holes *h = &c->holes;
    tide__hole none = {0};
    const tide__hole *head = h->n_holes > 0 && h->holes[0].first == h->first_kept ? &h->holes[0] : &none;
    uint64_t n_found = 0;
    while (n_found < h->n_found && h->found[n_found].id <= head->last) n_found++;
    // Half of what is missing at the begin, out of pages and blocks, is worth more than a snapshot behind it.
    if (h->first_kept == 1 && 2 * n_found >= (uint64_t)(head->last - head->first)) return TIDE_OK;
    tide__replay *live;
    TIDE_TRY(TIDE_NEW(&live, 1, err, "to recover '%s'", c->r->path));
    const int64_t hi = head->last > 0 ? head->last : h->first_kept - 1;
    int64_t t_ns = 0;
    tide__new_trace *out = &c->r->out;
    tide_status st = tide__recover_snapshot(&c->r->in, &out->names, h->first_kept - 1, hi, live, &c->base, &t_ns, err);
    if (st == TIDE_OK && c->base == 0) {
        tide__replay_deinit(live);
        st = tide__replay_init(live);
        if (st != TIDE_OK) TIDE_NO_MEMORY(err, "to recover '%s'", c->r->path);
        c->base = h->first_kept - 1;
        out->forgive = out->forgive || c->base > 0;
    }
    if (st == TIDE_OK && c->base > 0) {
        c->r->n_lost += (uint64_t)(c->base - (h->first_kept - 1));
        c->copier.unchanged = c->base;
        st = tide__new_trace_begin_at(out, c->base, t_ns, live, err);
        if (st == TIDE_OK) st = tide__recover_past(&c->r->in, out, c->base, err);
        if (st == TIDE_OK) st = copy_peak(c, err);
    }
    tide__replay_deinit(live);
    tide_host_free(live);
    return st;
}

static tide_status copy_in_order(event_copy *c, tide_error *err) {
    recovery *r = c->r;
    TIDE_TRY(tide__copier_begin(&c->copier, &r->in, &r->out, err));
    TIDE_TRY(tide__holes_find(&c->holes, &r->in, err));
    TIDE_TRY(tide__recover_pages(&c->holes, r->readable.file, err));
    tide__holes_sort(&c->holes);
    TIDE_TRY(tide__recover_blocks(&c->holes, &c->copier, err));
    TIDE_TRY(tide__holes_place_loose(&c->holes, err));
    TIDE_TRY(copy_past(c, err));
    TIDE_TRY(copy_events(c, err));
    TIDE_TRY(tide__copier_write_runs(&c->copier, err));
    TIDE_TRY(tide__recover_problems(&r->in, &r->out, c->base, err));
    r->n_lost += c->copier.n_lost;
    return TIDE_OK;
}

static tide_status copy_trace(recovery *r, tide_error *err) {
    const tide__sql *s;
    int64_t n_orphans;
    bool has;
    TIDE_TRY(tide__new_trace_sql(&r->out, &s, err));
    TIDE_TRY(tide__damaged_read_names(&r->in, &r->out.names, s, err));
    TIDE_TRY(tide__recover_processes(&r->in, &r->out, err));
    TIDE_TRY(tide__damaged_meta_int(&r->in, "n_orphan_frees", &n_orphans, &has, err));
    r->out.forgive = n_orphans > 0;
    event_copy c = {.r = r};
    const tide_status st = copy_in_order(&c, err);
    tide__event_reader_close(&c.events);
    tide__holes_deinit(&c.holes);
    tide__copier_deinit(&c.copier);
    TIDE_TRY(st);
    TIDE_TRY(tide__recover_lost_rows(&r->in, &r->out, err));
    return copy_meta(&r->in, &r->out, err);
}

// ---- feeds ----

static tide_status find_feeds(recovery *r, tide_error *err) {
    TIDE_TRY(tide__feed_list(r->path, &r->feeds, &r->n_feeds, err));
    size_t n = 0;
    for (size_t i = 0; i < r->n_feeds; i++) {
        struct stat info; // what else has such a name is no feed
        if (stat(r->feeds[i], &info) == 0 && S_ISREG(info.st_mode)) {
            r->feeds[n++] = r->feeds[i];
        } else {
            tide_host_free(r->feeds[i]);
        }
    }
    r->n_feeds = n;
    bool in_use = tide__drain_is_in_use(r->path);
    for (size_t i = 0; i < r->n_feeds; i++) in_use = in_use || tide__feed_is_in_use(r->feeds[i]);
    if (!in_use) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot recover '%s': another process records into it", r->path);
}

/// Beside the new file, where they are drained: those beside the damaged one stay as they are.
static tide_status copy_feeds(const recovery *r, tide_error *err) {
    for (size_t i = 0; i < r->n_feeds; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", r->out.tmp_path, r->feeds[i] + strlen(r->path));
        const tide_status st = name.failed ? TIDE_NO_MEMORY(err, "to recover '%s'", r->path)
                                           : tide__copy_file(r->feeds[i], name.data, err);
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static tide_status add_position(const tide__sql *s, sqlite3_stmt *stmt, int64_t process_id, int64_t ring, uint64_t n,
                                tide_error *err) {
    if (n == 0 || n > INT64_MAX) return TIDE_OK;
    sqlite3_bind_int64(stmt, 1, process_id);
    sqlite3_bind_int64(stmt, 2, ring);
    sqlite3_bind_int64(stmt, 3, (int64_t)n);
    return tide__sql_run(s, stmt, err);
}

/// Rows that the drain asks for, where they were lost: the process of a feed, and how far its log and each of its rings
/// were taken.
static tide_status add_feed(recovery *r, tide__feed_reader *feed, sqlite3_stmt *process, sqlite3_stmt *position,
                            tide_error *err) {
    const tide__sql *s = tide__store_sql(r->out.store);
    const tide__feed_header *head = tide__feed_reader_head(feed);
    const int64_t id = atomic_load_explicit(&head->process_id, memory_order_acquire);
    if (id < 1 || id > INT16_MAX || head->begin_ns < 0) return TIDE_OK; // its row is still to be made
    const char *slash = strrchr(tide__feed_reader_path(feed), '/');
    sqlite3_bind_int64(process, 1, id);
    sqlite3_bind_int64(process, 2, head->pid);
    if (head->rank >= 0) sqlite3_bind_int64(process, 3, head->rank);
    sqlite3_bind_int64(process, 4, head->begin_ns);
    tide__sql_bind_text(process, 5, slash != NULL ? slash + 1 : tide__feed_reader_path(feed));
    TIDE_TRY(tide__sql_run(s, process, err));
    TIDE_TRY(add_position(s, position, id, TIDE__POSITION_LOG,
                          atomic_load_explicit(&head->n_registered, memory_order_acquire), err));
    if (tide__feed_reader_refresh(feed, NULL) != TIDE_OK) return TIDE_OK; // the drain says what is wrong with it
    for (size_t i = 0; i < tide__feed_reader_n_rings(feed); i++) {
        const uint64_t tail = atomic_load_explicit(&tide__feed_reader_ring(feed, i)->tail, memory_order_acquire);
        TIDE_TRY(add_position(s, position, id, (int64_t)i, tail, err));
    }
    return TIDE_OK;
}

static tide_status add_feeds(recovery *r, tide_error *err) {
    const tide__sql *s;
    sqlite3_stmt *process = NULL, *position = NULL;
    TIDE_TRY(tide__new_trace_sql(&r->out, &s, err));
    // A row that was lost may be there by what other tables say of it, and nothing in it.
    tide_status st = tide__sql_prepare(s,
                                       "INSERT INTO process(id, pid, rank, begin_ns, feed) VALUES(?, ?, ?, ?, ?) "
                                       "ON CONFLICT(id) DO UPDATE SET pid = excluded.pid, rank = excluded.rank, "
                                       "begin_ns = excluded.begin_ns, feed = excluded.feed WHERE process.feed IS NULL",
                                       &process, err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(
            s, "INSERT OR IGNORE INTO position(process_id, ring, position, thread, n_lost) VALUES(?, ?, ?, 0, 0)",
            &position, err);
    for (size_t i = 0; st == TIDE_OK && i < r->n_feeds; i++) {
        tide__feed_reader *feed;
        if (tide__feed_reader_open(r->feeds[i], true, &feed, NULL) != TIDE_OK) continue;
        st = add_feed(r, feed, process, position, err);
        tide__feed_reader_close(feed, false);
    }
    sqlite3_finalize(process);
    sqlite3_finalize(position);
    return st;
}

// ---- the end ----

static tide_status write_report(recovery *r, tide_error *err) {
    tide__new_trace *out = &r->out;
    TIDE_TRY(tide__new_trace_meta(out, "recovered_from", r->path, err));
    TIDE_TRY(
        tide__new_trace_meta_int(out, "recovered_lost", (int64_t)(r->n_lost < INT64_MAX ? r->n_lost : INT64_MAX), err));
    TIDE_TRY(tide__new_trace_meta_int(out, "recovered_lost_rows", (int64_t)r->in.n_lost_rows, err));
    return tide__new_trace_meta_int(out, "recovered_restored", (int64_t)r->n_restored, err);
}

/// Why the recording ended early, as far as the damaged trace says; "" when it did not.
static void find_reason(const recovery *r, char *reason, size_t n) {
    char state[32];
    reason[0] = '\0';
    tide__damaged_meta_text(&r->in, "state", state, sizeof state);
    if (strcmp(state, TIDE__STATE_CUT_SHORT) == 0) tide__damaged_meta_text(&r->in, "reason", reason, n);
    if (strcmp(state, TIDE__STATE_CUT_SHORT) == 0 && reason[0] == '\0') snprintf(reason, n, "not known any more");
    if (strcmp(state, TIDE__STATE_RECORDING) == 0 && r->n_feeds == 0)
        snprintf(reason, n, "recording had not ended, and what was still under way is not beside the trace");
}

/// Take what feeds hold. One that cannot be drained at all must not cost the rest.
static tide_status finish_with_feeds(recovery *r, const char *reason, tide_error *err) {
    tide__new_trace *out = &r->out;
    TIDE_TRY(add_feeds(r, err));
    TIDE_TRY(tide__new_trace_close(out, err));
    TIDE_TRY(copy_feeds(r, err));
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide__drain_recover(out->tmp_path, &why);
    if (st == TIDE_ERR_NOMEM && err != NULL) *err = why;
    if (st == TIDE_ERR_NOMEM) return st;
    if (st != TIDE_OK) {
        char text[256];
        snprintf(text, sizeof text, "its feed cannot be read: %.200s", why.msg);
        tide__store *store;
        TIDE_TRY(tide__store_open(out->tmp_path, &store, err));
        TIDE_TRY(tide__finish(store, reason[0] != '\0' ? reason : text, err));
    }
    return tide__new_trace_replace(out, err);
}

static tide_status finish(recovery *r, tide_error *err) {
    char reason[256];
    find_reason(r, reason, sizeof reason);
    TIDE_TRY(write_report(r, err));
    if (r->n_feeds > 0) return finish_with_feeds(r, reason, err);
    return tide__new_trace_finish(&r->out, reason[0] != '\0' ? reason : NULL, err);
}

// ---- the whole ----

/// TIDE_ERR_INVALID when both names are of one file.
static tide_status check_names(const char *path, const char *out_path, tide_error *err) {
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(out_path, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot write '%s': it is the file that is read", out_path);
    tide_error_hint(err, "name another file");
    return st;
}

/// Whether the tables that hold events can be found.
static tide_status has_events(recovery *r, bool *has, tide_error *err) {
    const char *const tables[] = {"event", "event_chunk", "meta", "run", "name"};
    *has = true;
    for (size_t i = 0; *has && i < sizeof tables / sizeof tables[0]; i++)
        TIDE_TRY(tide__damaged_has_table(&r->in, tables[i], has, err));
    return TIDE_OK;
}

/// Whether anything in the file looks like an event.
static tide_status holds_events(recovery *r, bool *holds, tide_error *err) {
    tide__holes all = {.in = &r->in, .first_kept = 1};
    tide__hole everything = {1, INT64_MAX - 1, 0, INT64_MAX};
    all.holes = &everything;
    all.n_holes = 1;
    all.n_missing = 1;
    all.one_is_enough = true;
    const tide_status st = tide__recover_pages(&all, r->readable.file, err);
    *holds = all.n_found > 0;
    tide_host_free(all.found);
    return st;
}

/// Open what there is; first pages that are damaged are repaired in a copy.
static tide_status open_damaged(recovery *r, tide_error *err) {
    TIDE_TRY(tide__readable_open(&r->readable, r->path, r->out.tmp_path, err));
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__damaged_open(&r->in, r->path, r->readable.file, &why);
    bool has = false;
    if (st == TIDE_OK) {
        TIDE_TRY(has_events(r, &has, err));
        if (has) return TIDE_OK;
        tide__damaged_close(&r->in);
    } else if (st != TIDE_ERR_BAD_INPUT) {
        if (err != NULL) *err = why;
        return st;
    }
    TIDE_TRY(tide__readable_repair(&r->readable, r->path, r->out.tmp_path, err));
    TIDE_TRY(tide__damaged_open(&r->in, r->path, r->readable.file, err));
    if (st == TIDE_OK) return TIDE_OK; // its head says that it is a trace
    // A head with another version may be damaged, or that of a newer program: table meta has the version too.
    char version[16];
    tide__damaged_meta_text(&r->in, "version", version, sizeof version);
    const long n = strtol(version, NULL, 10);
    if (version[0] == '\0' || n == TIDE_TRACE_VERSION || n == TIDE_TRACE_VERSION_PACKED)
        TIDE_TRY(holds_events(r, &has, err));
    if (!has && err != NULL) *err = why;
    return has ? TIDE_OK : st;
}

static tide_status recover(recovery *r, tide_error *err) {
    TIDE_TRY(find_feeds(r, err));
    TIDE_TRY(tide__new_trace_create(&r->out, r->out_path, err)); // copies lie in its folder
    TIDE_TRY(open_damaged(r, err));
    TIDE_TRY(copy_trace(r, err));
    return finish(r, err);
}

tide_status tide_trace_recover(const char *path, const char *out_path, uint64_t *n_lost, tide_error *err) {
    if (n_lost != NULL) *n_lost = 0;
    TIDE_TRY(check_names(path, out_path, err));
    recovery *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to recover '%s'", path));
    r->path = path;
    r->out_path = out_path;
    const tide_status st = recover(r, err);
    if (st == TIDE_OK && n_lost != NULL) *n_lost = r->n_lost;
    tide__damaged_close(&r->in);
    tide__readable_close(&r->readable);
    tide__new_trace_deinit(&r->out);
    for (size_t i = 0; i < r->n_feeds; i++) tide_host_free(r->feeds[i]);
    tide_host_free(r->feeds);
    tide_host_free(r);
    return st;
}
