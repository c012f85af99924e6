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
#include "profiler/read/recover_tables.h"
#include "profiler/store/finish.h"

typedef struct recovery {
    const char *path, *out_path;
    tide__patient patient;
    tide__in in;
    tide__out out;
    char **feeds; ///< [n_feeds] beside the trace, owned
    size_t n_feeds;
    uint64_t n_lost;     ///< events that the trace had and that nobody can read
    uint64_t n_restored; ///< that no table gives: out of bare pages, blocks, snapshots
} recovery;

// ---- events of versions 3 and 4 ----

typedef struct teller {
    recovery *r;
    tide__retell retell;
    tide__holes holes;
    tide__source source;
    size_t next_hole, next_found;
    int64_t base; ///< last event before those that are told
} teller;

static tide_status tell(teller *t, const tide__event *e, bool as_chunk, tide_error *err) {
    tide__retell_pass(&t->retell, e->id);
    return tide__retell_event(&t->retell, e, as_chunk ? "event_chunk" : "event", as_chunk, err);
}

/// What was found of the next hole, and a gap for what was not.
static tide_status tell_hole(teller *t, bool as_chunk, tide_error *err) {
    const tide__hole *hole = &t->holes.holes[t->next_hole++];
    uint64_t n_missing = (uint64_t)(hole->last - hole->first) + 1;
    if (hole->last <= t->base) return TIDE_OK;
    if (hole->first <= t->base) n_missing = (uint64_t)(hole->last - t->base);
    for (; t->next_found < t->holes.n_found && t->holes.found[t->next_found].id <= hole->last; t->next_found++) {
        const tide__event *e = &t->holes.found[t->next_found];
        if (e->id <= t->base) continue;
        TIDE_TRY(tell(t, e, as_chunk, err));
        t->r->n_restored++;
        n_missing--;
    }
    tide__retell_pass(&t->retell, hole->last);
    // What is missing counts as the hole's end: what follows may be about it.
    return tide__retell_gap(&t->retell, n_missing, t->r->out.last_ns, as_chunk, err);
}

static tide_status tell_events(teller *t, tide_error *err) {
    TIDE_TRY(tide__source_open(&t->source, &t->r->in, err));
    int64_t last = 0;
    while (t->source.has) {
        const tide__event *e = &t->source.event;
        while (t->next_hole < t->holes.n_holes && t->holes.holes[t->next_hole].last < e->id)
            TIDE_TRY(tell_hole(t, t->source.is_chunk, err));
        // A number that was passed over when holes were looked for is passed over now.
        const bool is_ours = e->id <= t->holes.last_event && e->id > last && e->id > t->base;
        if (is_ours) TIDE_TRY(tell(t, e, t->source.is_chunk, err));
        if (is_ours) last = e->id;
        TIDE_TRY(tide__source_next(&t->source, err));
    }
    while (t->next_hole < t->holes.n_holes) TIDE_TRY(tell_hole(t, false, err));
    return TIDE_OK;
}

/// Thinning keeps who was live at the peak of all: one snapshot before the first that is kept.
static tide_status tell_peak(teller *t, tide_error *err) {
    int64_t event = 0, t_ns = 0;
    tide__replay *live = tide_host_calloc(1, sizeof *live);
    if (live == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to recover '%s'", t->r->path);
    tide_status st =
        tide__recover_snapshot(&t->r->in, &t->r->out.names, 1, t->holes.first_kept - 2, live, &event, &t_ns, err);
    if (st == TIDE_OK && event > 0) st = tide__out_past_moment(&t->r->out, event, t_ns, live, err);
    tide__replay_deinit(live);
    tide_host_free(live);
    return st;
}

/// Events that were dropped to keep the trace small, or are lost from its begin up to a snapshot: what was live then is
/// where the new trace begins.
static tide_status tell_past(teller *t, tide_error *err) {
    const tide__holes *h = &t->holes;
    tide__hole none = {0};
    const tide__hole *head = h->n_holes > 0 && h->holes[0].first == h->first_kept ? &h->holes[0] : &none;
    uint64_t n_found = 0;
    while (n_found < h->n_found && h->found[n_found].id <= head->last) n_found++;
    // Half of what is missing at the begin, out of pages and blocks, is worth more than a snapshot behind it.
    if (h->first_kept == 1 && 2 * n_found >= (uint64_t)(head->last - head->first)) return TIDE_OK;
    tide__replay *live = tide_host_calloc(1, sizeof *live);
    if (live == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to recover '%s'", t->r->path);
    const int64_t hi = head->last > 0 ? head->last : h->first_kept - 1;
    int64_t t_ns = 0;
    tide__out *out = &t->r->out;
    tide_status st = tide__recover_snapshot(&t->r->in, &out->names, h->first_kept - 1, hi, live, &t->base, &t_ns, err);
    if (st == TIDE_OK && t->base == 0) {
        tide__replay_deinit(live);
        st = tide__replay_init(live);
        if (st != TIDE_OK) TIDE_FAIL(err, st, "no memory to recover '%s'", t->r->path);
        t->base = h->first_kept - 1;
        out->forgive = out->forgive || t->base > 0;
    }
    if (st == TIDE_OK && t->base > 0) {
        t->r->n_lost += (uint64_t)(t->base - (h->first_kept - 1));
        t->retell.unchanged = t->base;
        st = tide__out_begin_at(out, t->base, t_ns, live, err);
        if (st == TIDE_OK) st = tide__recover_past(&t->r->in, out, t->base, err);
        if (st == TIDE_OK) st = tell_peak(t, err);
    }
    tide__replay_deinit(live);
    tide_host_free(live);
    return st;
}

static tide_status tell_all(teller *t, tide_error *err) {
    recovery *r = t->r;
    TIDE_TRY(tide__retell_begin(&t->retell, &r->in, &r->out, err));
    TIDE_TRY(tide__holes_find(&t->holes, &r->in, err));
    TIDE_TRY(tide__recover_pages(&t->holes, r->patient.file, err));
    tide__holes_sort(&t->holes);
    TIDE_TRY(tide__recover_blocks(&t->holes, &t->retell, err));
    TIDE_TRY(tide__holes_place_loose(&t->holes, err));
    TIDE_TRY(tell_past(t, err));
    TIDE_TRY(tell_events(t, err));
    TIDE_TRY(tide__retell_runs(&t->retell, err));
    TIDE_TRY(tide__recover_problems(&r->in, &r->out, t->base, err));
    r->n_lost += t->retell.n_lost;
    return TIDE_OK;
}

static tide_status tell_today(recovery *r, tide_error *err) {
    const tide__sql *s;
    int64_t n_orphans;
    bool has;
    TIDE_TRY(tide__out_sql(&r->out, &s, err));
    TIDE_TRY(tide__in_read_names(&r->in, &r->out.names, s, err));
    TIDE_TRY(tide__recover_processes(&r->in, &r->out, err));
    TIDE_TRY(tide__convert_meta_int(&r->in, "n_orphan_frees", &n_orphans, &has, err));
    r->out.forgive = n_orphans > 0;
    teller t = {.r = r};
    const tide_status st = tell_all(&t, err);
    tide__source_close(&t.source);
    tide__holes_deinit(&t.holes);
    tide__retell_deinit(&t.retell);
    TIDE_TRY(st);
    TIDE_TRY(tide__recover_lost_rows(&r->in, &r->out, err));
    return tide__convert_meta(&r->in, &r->out, err);
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
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot recover '%s': somebody records into it", r->path);
}

/// Beside the new file, where they are drained: those beside the damaged one stay as they are.
static tide_status copy_feeds(const recovery *r, tide_error *err) {
    for (size_t i = 0; i < r->n_feeds; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", r->out.tmp_path, r->feeds[i] + strlen(r->path));
        const tide_status st = name.failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to recover '%s'", r->path)
                                           : tide__copy_file(r->feeds[i], name.data, err);
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

/// Rows that the drain asks for, where they were lost: the process of a feed, and how far each of its rings was taken.
static tide_status add_feed(recovery *r, tide__feed_reader *feed, sqlite3_stmt *process, sqlite3_stmt *position,
                            tide_error *err) {
    const tide__sql *s = tide__store_sql(r->out.store);
    const tide__feed_header *head = tide__feed_reader_head(feed);
    if (head->process_id < 1 || head->process_id > INT16_MAX) return TIDE_OK;
    sqlite3_bind_int64(process, 1, head->process_id);
    sqlite3_bind_int64(process, 2, head->pid);
    if (head->rank >= 0) sqlite3_bind_int64(process, 3, head->rank);
    sqlite3_bind_int64(process, 4, r->out.last_ns);
    TIDE_TRY(tide__sql_run(s, process, err));
    if (tide__feed_reader_refresh(feed, NULL) != TIDE_OK) return TIDE_OK; // the drain says what is wrong with it
    for (size_t i = 0; i < tide__feed_reader_n_rings(feed); i++) {
        const uint64_t tail = atomic_load_explicit(&tide__feed_reader_ring(feed, i)->tail, memory_order_acquire);
        if (tail == 0 || tail > INT64_MAX) continue;
        sqlite3_bind_int64(position, 1, head->process_id);
        sqlite3_bind_int64(position, 2, (int64_t)i);
        sqlite3_bind_int64(position, 3, (int64_t)tail);
        TIDE_TRY(tide__sql_run(s, position, err));
    }
    return TIDE_OK;
}

static tide_status add_feeds(recovery *r, tide_error *err) {
    const tide__sql *s;
    sqlite3_stmt *process = NULL, *position = NULL;
    TIDE_TRY(tide__out_sql(&r->out, &s, err));
    tide_status st = tide__sql_prepare(s, "INSERT OR IGNORE INTO process(id, pid, rank, begin_ns) VALUES(?, ?, ?, ?)",
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
    tide__out *out = &r->out;
    TIDE_TRY(tide__out_meta(out, "recovered_from", r->path, err));
    TIDE_TRY(tide__out_meta_int(out, "recovered_lost", (int64_t)(r->n_lost < INT64_MAX ? r->n_lost : INT64_MAX), err));
    TIDE_TRY(tide__out_meta_int(out, "recovered_lost_rows", (int64_t)r->in.n_lost_rows, err));
    return tide__out_meta_int(out, "recovered_restored", (int64_t)r->n_restored, err);
}

/// Why the recording ended early, as far as the damaged trace says; "" when it did not.
static void find_reason(const recovery *r, char *reason, size_t n) {
    char state[32];
    reason[0] = '\0';
    tide__convert_meta_text(&r->in, "state", state, sizeof state);
    if (strcmp(state, TIDE__STATE_CUT_SHORT) == 0) tide__convert_meta_text(&r->in, "reason", reason, n);
    if (strcmp(state, TIDE__STATE_CUT_SHORT) == 0 && reason[0] == '\0') snprintf(reason, n, "not known any more");
    if (strcmp(state, TIDE__STATE_RECORDING) == 0 && r->n_feeds == 0)
        snprintf(reason, n, "recording had not ended, and what was still under way is not beside the trace");
}

/// Take what feeds hold. One that cannot be drained at all must not cost the rest.
static tide_status finish_with_feeds(recovery *r, const char *reason, tide_error *err) {
    tide__out *out = &r->out;
    TIDE_TRY(add_feeds(r, err));
    TIDE_TRY(tide__out_close(out, err));
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
    return tide__out_replace(out, err);
}

static tide_status finish(recovery *r, tide_error *err) {
    char reason[256];
    find_reason(r, reason, sizeof reason);
    TIDE_TRY(write_report(r, err));
    if (r->n_feeds > 0 && r->in.version >= TIDE__TRACE_OLDEST) return finish_with_feeds(r, reason, err);
    return tide__out_finish(&r->out, reason[0] != '\0' ? reason : NULL, err);
}

// ---- the whole ----

/// Whether the tables that hold events can be found.
static tide_status has_events(recovery *r, bool *has, tide_error *err) {
    const char *const tables[] = {"event", r->in.version >= 3 ? "event_chunk" : "scope_event", "meta", "run", "name"};
    *has = true;
    for (size_t i = 0; *has && i < sizeof tables / sizeof tables[0]; i++)
        TIDE_TRY(tide__in_has_table(&r->in, tables[i], has, err));
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
    const tide_status st = tide__recover_pages(&all, r->patient.file, err);
    *holds = all.n_found > 0;
    tide_host_free(all.found);
    return st;
}

/// Open what there is; first pages that are damaged are put right in a copy.
static tide_status open_patient(recovery *r, tide_error *err) {
    TIDE_TRY(tide__patient_admit(&r->patient, r->path, r->out.tmp_path, err));
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__in_open(&r->in, r->path, r->patient.file, true, &why);
    bool has = false;
    if (st == TIDE_OK) {
        TIDE_TRY(has_events(r, &has, err));
        if (has) return TIDE_OK;
        // Of older versions there is no empty trace to take the list of tables from.
        if (r->in.version < TIDE__TRACE_OLDEST) TIDE_TRY(tide__in_has_table(&r->in, "event", &has, err));
        if (has) return TIDE_OK;
        if (r->in.version < TIDE__TRACE_OLDEST)
            return tide__in_damaged(&r->in, err, "table event is not in the list of its tables");
        tide__in_close(&r->in);
    } else if (st != TIDE_ERR_BAD_INPUT) {
        if (err != NULL) *err = why;
        return st;
    }
    TIDE_TRY(tide__patient_mend(&r->patient, r->path, r->out.tmp_path, err));
    TIDE_TRY(tide__in_open(&r->in, r->path, r->patient.file, true, err));
    if (st == TIDE_OK) return TIDE_OK; // its head says that it is a trace
    // A head that says another version may be damaged, or that of a newer program: the table says it too.
    char version[16];
    tide__convert_meta_text(&r->in, "version", version, sizeof version);
    const long said = strtol(version, NULL, 10);
    if (version[0] == '\0' || (said >= TIDE__TRACE_OLDEST && said <= TIDE__TRACE_VERSION))
        TIDE_TRY(holds_events(r, &has, err));
    if (!has && err != NULL) *err = why;
    return has ? TIDE_OK : st;
}

static tide_status recover(recovery *r, tide_error *err) {
    TIDE_TRY(find_feeds(r, err));
    TIDE_TRY(tide__out_create(&r->out, r->out_path, err)); // copies lie in its folder
    TIDE_TRY(open_patient(r, err));
    if (r->in.version < TIDE__TRACE_OLDEST) {
        TIDE_TRY(tide__convert_old(&r->in, &r->out, &r->n_lost, err));
        TIDE_TRY(tide__recover_lost_rows(&r->in, &r->out, err));
    } else {
        TIDE_TRY(tell_today(r, err));
    }
    return finish(r, err);
}

tide_status tide_trace_recover(const char *path, const char *out_path, uint64_t *n_lost, tide_error *err) {
    if (n_lost != NULL) *n_lost = 0;
    TIDE_TRY(tide__convert_check_names(path, out_path, err));
    recovery *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to recover '%s'", path);
    r->path = path;
    r->out_path = out_path;
    const tide_status st = recover(r, err);
    if (st == TIDE_OK && n_lost != NULL) *n_lost = r->n_lost;
    tide__in_close(&r->in);
    tide__patient_discharge(&r->patient);
    tide__out_deinit(&r->out);
    for (size_t i = 0; i < r->n_feeds; i++) tide_host_free(r->feeds[i]);
    tide_host_free(r->feeds);
    tide_host_free(r);
    return st;
}
