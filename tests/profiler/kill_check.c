// SPDX-License-Identifier: MIT
//
// A trace held against the streams of its victim. See kill_check.h.
#include "tests/profiler/kill_check.h"

#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "tests/profiler/kill_replay.h"

typedef struct check {
    const kill_expect *want;
    kill_found *found;
    tide_text *why;
    tide_trace *trace;
    kill_stream *streams; // [n_sources]
    kill_replay replay;
    uint64_t last_ns;
    uint64_t n_lost[KILL_MAX_SOURCES]; // by the gaps that a recording which ended early may note behind the last event
} check;

/// Notes what is wrong; false.
static bool wrong(check *c, const char *fmt, ...) TIDE_PRINTF(2, 3);
static bool wrong(check *c, const char *fmt, ...) {
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    tide_text_add(c->why, line);
    return false;
}

// ---- one event ----

static const char *op_name(uint8_t op) {
    return op == KILL_SCOPE_ENTER   ? "scope_enter"
           : op == KILL_SCOPE_LEAVE ? "scope_leave"
                                    : tide_memory_op_name((tide_memory_op)op);
}

static bool same_block(const kill_step *step, const tide_trace_event *e) {
    const kill_block *b = &step->block;
    char device[32];
    if (step->op == TIDE_MEM_SNAPSHOT) return true;
    if (strcmp(e->device, tide_device_format(kill_device(b->device), device, sizeof device)) != 0) return false;
    if (strcmp(e->allocator, step->allocator) != 0 || e->reserved_bytes != b->reserved_bytes) return false;
    if (e->address != b->address) return false;
    if (step->op == TIDE_MEM_POOL_DISCARD) return true;
    return e->block_id == b->id && strcmp(e->kind, tide_memory_kind_name((tide_memory_kind)b->kind)) == 0 &&
           e->stream == b->stream && e->requested_bytes == b->requested_bytes;
}

bool kill_check_same(const kill_step *step, const tide_trace_event *e) {
    if (strcmp(e->op, op_name(step->op)) != 0 || strcmp(e->scope, step->scope.name) != 0) return false;
    if (e->scope_index != step->scope.index) return false;
    if (step->op == KILL_SCOPE_ENTER || step->op == KILL_SCOPE_LEAVE) return true;
    return strcmp(e->name, step->tag) == 0 && same_block(step, e);
}

static int thread_of(const kill_expect *want, uint64_t number) {
    for (uint32_t i = 0; i < want->n_sources; i++)
        if (want->sources[i].number == number) return (int)i;
    return -1;
}

/// Events that were dropped: heard, so that they count in the totals.
static bool skip(check *c, uint32_t thread, uint64_t n) {
    kill_step step;
    for (uint64_t i = 0; i < n; i++) {
        kill_stream_next(&c->streams[thread], &step);
        kill_total_add(&c->replay.totals[step.block.kind], &step);
    }
    c->n_lost[thread] += n;
    c->found->n_events++;
    return true;
}

static bool take_event(check *c, const tide_trace_event *e) {
    const int thread = thread_of(c->want, e->thread);
    kill_step step;
    if (e->id != c->found->n_events + 1)
        return wrong(c, "event %" PRIu64 " follows %" PRIu64 "\n", e->id, c->found->n_events);
    if (e->t_ns < c->last_ns) return wrong(c, "event %" PRIu64 ": time runs backwards\n", e->id);
    if (thread < 0) return wrong(c, "event %" PRIu64 " (%s): of the unknown thread %u\n", e->id, e->op, e->thread);
    if (c->want->is_prefix && strcmp(e->op, "gap") == 0) {
        c->n_lost[thread] += e->requested_bytes;
        c->found->n_events++;
        return true;
    }
    if (c->want->drops && strcmp(e->op, "gap") == 0) return skip(c, (uint32_t)thread, e->requested_bytes);
    if (c->n_lost[thread] > 0 && !c->want->drops)
        return wrong(c, "event %" PRIu64 ": behind a gap of its thread\n", e->id);
    kill_stream *s = &c->streams[thread];
    const uint64_t n = s->n;
    kill_stream_next(s, &step);
    // A pool is one process's, too: addresses are.
    if (step.block.id != 0 || step.op == TIDE_MEM_POOL_DISCARD) step.block.id += c->want->sources[thread].block_base;
    if (!kill_check_same(&step, e))
        return wrong(c,
                     "event %" PRIu64 ", number %" PRIu64 " of thread %d: got %s block %" PRIu64 " %s %s %" PRIu64
                     "/%" PRIu64 " at %" PRIx64 " '%s' in '%s' %" PRId64 ", want %s block %" PRIu64 " kind %d %" PRIu64
                     "/%" PRIu64 " at %" PRIx64 " '%s' in '%s' %d\n",
                     e->id, n, thread, e->op, e->block_id, e->kind, e->device, e->requested_bytes, e->reserved_bytes,
                     e->address, e->name, e->scope, e->scope_index, op_name(step.op), step.block.id, step.block.kind,
                     step.block.requested_bytes, step.block.reserved_bytes, step.block.address, step.tag,
                     step.scope.name, step.scope.index);
    c->last_ns = e->t_ns;
    c->found->n_events++;
    c->found->of_thread[thread]++;
    if (c->want->drops) {
        kill_total_add(&c->replay.totals[step.block.kind], &step);
        return true;
    }
    const char *fault = kill_replay_take(&c->replay, &step);
    return fault == NULL || wrong(c, "event %" PRIu64 ", block %" PRIu64 ": %s\n", e->id, e->block_id, fault);
}

enum { BATCH = 4096 };

static bool take_events(check *c, tide_trace_event *events) {
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t from = 1;;) {
        size_t n = 0;
        if (tide_trace_events(c->trace, from, events, BATCH, &n, &err) != TIDE_OK)
            return wrong(c, "events from %" PRIu64 ": %s %s %s\n", from, err.msg, err.where, err.note);
        for (size_t i = 0; i < n; i++)
            if (!take_event(c, &events[i])) return false;
        if (n == 0) return true;
        from += n;
    }
}

// ---- counts ----

static bool check_counts(check *c) {
    bool ok = true;
    for (uint32_t i = 0; i < c->want->n_sources; i++) {
        const uint64_t sent = c->want->sources[i].n_events;
        const uint64_t got = c->found->of_thread[i] + (c->want->drops ? c->n_lost[i] : 0);
        if (got > sent + c->want->n_over)
            ok = wrong(c, "thread %u: %" PRIu64 " events, and it sent %" PRIu64 "\n", i, got, sent);
        else if (got < sent && !c->want->is_prefix)
            ok = wrong(c, "thread %u: LOST %" PRIu64 " of %" PRIu64 " events\n", i, sent - got, sent);
        else if (!c->want->drops && c->n_lost[i] > 0 && c->n_lost[i] != sent - got)
            ok = wrong(c, "thread %u: %" PRIu64 " events of %" PRIu64 ", and gaps say %" PRIu64 "\n", i, got, sent,
                       c->n_lost[i]);
    }
    return ok;
}

static bool check_info(check *c) {
    tide_trace_info info;
    tide_error err = TIDE_ERROR_INIT;
    if (tide_trace_get_info(c->trace, &info, &err) != TIDE_OK) return wrong(c, "info: %s\n", err.msg);
    c->found->n_chunks = info.n_chunks;
    if (info.state != c->want->state)
        return wrong(c, "state %d (%s), want %d\n", (int)info.state, info.reason, (int)c->want->state);
    if (info.state == TIDE_TRACE_CUT_SHORT && strlen(info.reason) < 8) return wrong(c, "reason '%s'\n", info.reason);
    if (info.n_events != c->found->n_events)
        return wrong(c, "n_events %" PRIu64 ", events %" PRIu64 "\n", info.n_events, c->found->n_events);
    uint64_t n_lost = 0;
    for (uint32_t i = 0; i < c->want->n_sources; i++) n_lost += c->n_lost[i];
    if (info.n_lost != n_lost) return wrong(c, "n_lost %" PRIu64 ", by gaps %" PRIu64 "\n", info.n_lost, n_lost);
    if (info.n_problems != 0) return wrong(c, "n_problems %" PRIu64 "\n", info.n_problems);
    return true;
}

/// The trace's own answers against the replay.
static bool check_answers(check *c) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set set;
    uint64_t peak = 0;
    if (c->found->n_events == 0 || c->want->drops) return true;
    if (tide_trace_live_set_after(c->trace, c->found->n_events, &set, &err) != TIDE_OK)
        return wrong(c, "live set at the end: %s %s\n", err.msg, err.note);
    bool ok = set.n == c->replay.live.n && set.requested_bytes == c->replay.live_bytes;
    if (!ok)
        wrong(c, "live at the end: %zu blocks, %" PRIu64 " bytes; by replay %zu, %" PRIu64 "\n", set.n,
              set.requested_bytes, c->replay.live.n, c->replay.live_bytes);
    for (size_t i = 0; i < set.n && ok; i++) {
        const kill_live *e = tide_map_find(&c->replay.live, set.items[i].block_id);
        ok = e != NULL && e->requested_bytes == set.items[i].requested_bytes && e->address == set.items[i].address;
        if (!ok) wrong(c, "live at the end: block %" PRIu64 " is not\n", set.items[i].block_id);
    }
    tide_live_set_deinit(&set);
    if (tide_trace_peak(c->trace, 0, -1, &peak, NULL, &err) != TIDE_OK) return wrong(c, "peak: %s\n", err.msg);
    if (peak != c->replay.peak_bytes)
        return wrong(c, "peak %" PRIu64 ", by replay %" PRIu64 "\n", peak, c->replay.peak_bytes);
    c->found->n_live = c->replay.live.n;
    c->found->peak_bytes = peak;
    return ok;
}

// ---- the file, as any SQLite sees it ----

static bool near(uint64_t a, uint64_t b, uint64_t n) { return a > b ? a - b <= n : b - a <= n; }

static bool check_totals(check *c, sqlite3 *db) {
    sqlite3_stmt *stmt = NULL;
    kill_total got[TIDE_N_KINDS] = {0};
    const uint64_t slack = c->want->n_over * c->want->n_sources;
    static const char query[] = "SELECT kind, sum(n_allocs), sum(n_frees), sum(requested_bytes), sum(freed_bytes) FROM "
                                "total GROUP BY kind";
    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK) return wrong(c, "total: %s\n", sqlite3_errmsg(db));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const int64_t kind = sqlite3_column_int64(stmt, 0);
        if (kind >= 0 && kind < TIDE_N_KINDS)
            got[kind] = (kill_total){(uint64_t)sqlite3_column_int64(stmt, 1), (uint64_t)sqlite3_column_int64(stmt, 2),
                                     (uint64_t)sqlite3_column_int64(stmt, 3), (uint64_t)sqlite3_column_int64(stmt, 4)};
    }
    sqlite3_finalize(stmt);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const kill_total *t = &c->replay.totals[kind];
        if (!near(got[kind].n_allocs, t->n_allocs, slack) || !near(got[kind].n_frees, t->n_frees, slack))
            return wrong(
                c, "totals of kind %d: %" PRIu64 " allocs %" PRIu64 " frees, by events %" PRIu64 " and %" PRIu64 "\n",
                kind, got[kind].n_allocs, got[kind].n_frees, t->n_allocs, t->n_frees);
        const bool same_count = got[kind].n_allocs == t->n_allocs && got[kind].n_frees == t->n_frees;
        if (same_count && (got[kind].requested_bytes != t->requested_bytes || got[kind].freed_bytes != t->freed_bytes))
            return wrong(c, "totals of kind %d: %" PRIu64 " bytes, by events %" PRIu64 "\n", kind,
                         got[kind].requested_bytes, t->requested_bytes);
    }
    return true;
}

static bool check_file(check *c) {
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    // Nothing is left for it to roll back: our own reader has been here.
    bool ok = sqlite3_open_v2(c->want->trace, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK &&
              sqlite3_step(stmt) == SQLITE_ROW;
    if (!ok) {
        wrong(c, "integrity_check: %s\n", sqlite3_errmsg(db));
    } else if (strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0) {
        ok = wrong(c, "integrity_check: %s\n", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    ok = ok && (c->want->is_prefix || check_totals(c, db));
    sqlite3_close(db);
    return ok;
}

bool kill_check_folder(const char *trace, tide_text *why) {
    char path[512];
    bool ok = true;
    snprintf(path, sizeof path, "%s", trace);
    char *slash = strrchr(path, '/');
    if (slash == NULL) return true;
    *slash = '\0';
    DIR *dir = opendir(path);
    if (dir == NULL) return true;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, slash + 1, strlen(slash + 1)) != 0 || strcmp(e->d_name, slash + 1) == 0) continue;
        tide_text_addf(why, "left beside the trace: %s\n", e->d_name);
        ok = false;
    }
    closedir(dir);
    return ok;
}

bool kill_check_trace(const kill_expect *want, kill_found *found, tide_text *why) {
    tide_error err = TIDE_ERROR_INIT;
    check c = {.want = want, .found = found, .why = why};
    kill_replay_init(&c.replay);
    const uint64_t t0 = tide_now_ns();
    *found = (kill_found){0};
    if (tide_trace_open(want->trace, &c.trace, &err) != TIDE_OK)
        return wrong(&c, "open: %s [%s] %s\n", err.msg, err.where, err.note);
    c.streams = tide_host_calloc(want->n_sources, sizeof *c.streams);
    tide_trace_event *events = tide_host_calloc(BATCH, sizeof *events);
    bool ok = c.streams != NULL && events != NULL;
    for (uint32_t i = 0; i < want->n_sources && ok; i++)
        kill_stream_init(&c.streams[i], want->sources[i].seed, want->sources[i].index, want->sources[i].n_threads);
    ok = ok && take_events(&c, events);
    ok = ok && check_counts(&c) && check_info(&c) && check_answers(&c);
    if (ok && tide_trace_check(c.trace, &err) != TIDE_OK)
        ok = wrong(&c, "check: %s [%s] %s\n", err.msg, err.where, err.note);
    tide_trace_close(c.trace);
    ok = ok && check_file(&c);
    kill_replay_deinit(&c.replay);
    tide_host_free(events);
    tide_host_free(c.streams);
    found->check_s = (double)(tide_now_ns() - t0) / 1e9;
    return ok;
}
