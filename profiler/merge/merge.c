// SPDX-License-Identifier: MIT
//
// Several traces as one: the new file, its lanes by time, facts. See merge.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/merge/merge_internal.h"

/// As in a recording: what is larger is written in chunks (docs/trace-format.md).
enum { MAX_ROW_EVENTS = 4000000 };

typedef struct merger {
    const tide_merge_options *opt;
    tide__merge_source *s; ///< [n]
    size_t n;
    size_t *heap; ///< [n_heap] sources that have an event: the one whose event is next comes first
    size_t n_heap;
    tide__merge_devices devices;
    tide__new_trace out;
    tide_merge_clock used;
} merger;

// ---- lanes by time ----

/// Of events at one time those of the earlier input come first.
static bool is_before(const merger *m, size_t a, size_t b) {
    const int64_t x = m->s[a].next.t_ns, y = m->s[b].next.t_ns;
    return x != y ? x < y : a < b;
}

static void sift_down(merger *m, size_t at) {
    for (;;) {
        size_t first = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->n_heap; child++)
            if (is_before(m, m->heap[child], m->heap[first])) first = child;
        if (first == at) return;
        const size_t other = m->heap[first];
        m->heap[first] = m->heap[at];
        m->heap[at] = other;
        at = first;
    }
}

static tide_status copy_events(merger *m, tide_error *err) {
    uint64_t n_events = 0;
    for (size_t i = 0; i < m->n; i++) {
        const tide_trace *t = m->s[i].t;
        if (t->last_event >= t->first_event) n_events += (uint64_t)(t->last_event - t->first_event) + 1;
        TIDE_TRY(tide__merge_source_next(&m->s[i], err));
        if (m->s[i].has) m->heap[m->n_heap++] = i;
    }
    for (size_t i = m->n_heap / 2; i-- > 0;) sift_down(m, i);
    while (m->n_heap > 0) {
        tide__merge_source *s = &m->s[m->heap[0]];
        TIDE_ASSERT(s->has);
        TIDE_TRY(tide__merge_source_copy(s, &m->out, n_events > MAX_ROW_EVENTS, err));
        TIDE_TRY(tide__merge_source_next(s, err));
        if (!s->has) m->heap[0] = m->heap[--m->n_heap];
        sift_down(m, 0);
    }
    return TIDE_OK;
}

// ---- runs ----

typedef struct run_ref {
    int64_t begin_ns;
    size_t source, run;
} run_ref;

static int by_begin(const void *a, const void *b) {
    const run_ref *x = a, *y = b;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

/// Runs get their numbers in the order in which they began.
static tide_status copy_runs(merger *m, tide_error *err) {
    size_t n_runs = 0, next = 0;
    for (size_t i = 0; i < m->n; i++) n_runs += m->s[i].n_runs;
    run_ref *all;
    TIDE_TRY(TIDE_NEW(&all, n_runs + 1, err, "to merge %zu runs", n_runs));
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->s[i].n_runs; k++)
            all[next++] = (run_ref){m->s[i].runs[k].begin_ns + m->s[i].shift_ns, i, k};
    if (n_runs > 1) qsort(all, n_runs, sizeof *all, by_begin);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n_runs; i++) {
        tide__merge_source *s = &m->s[all[i].source];
        st = tide__merge_source_run(s, &s->runs[all[i].run], &m->out, &m->devices, err);
    }
    tide_host_free(all);
    return st;
}

// ---- facts ----

/// Keys of one recording, and those that go with the runs.
static bool is_left_out(const char *key) {
    return tide__new_trace_makes(key) || strncmp(key, "merged", 6) == 0 || strncmp(key, "process_", 8) == 0 ||
           strcmp(key, "created_by") == 0 || strcmp(key, "tool_version") == 0 || strcmp(key, "n_late") == 0;
}

/// Whether all inputs say the same of `key`.
static tide_status is_common(const merger *m, const char *key, const char *value, bool *is, tide_error *err) {
    *is = true;
    for (size_t i = 0; *is && i < m->n; i++) {
        sqlite3_stmt *stmt;
        const tide__sql *sql = &m->s[i].t->sql;
        TIDE_TRY(tide__sql_prepare(sql, "SELECT 1 FROM main.meta WHERE key = ? AND value = ?", &stmt, err));
        tide__sql_bind_text(stmt, 1, key);
        tide__sql_bind_text(stmt, 2, value);
        const tide_status st = tide__sql_step(sql, stmt, is, err);
        sqlite3_finalize(stmt);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

/// "merged.2.created_utc" of the second input's "created_utc"; what all say alike keeps its key.
static tide_status put_fact(merger *m, size_t number, const char *key, const char *value, tide_error *err) {
    bool common;
    TIDE_TRY(is_common(m, key, value, &common, err));
    if (common) return number == 1 ? tide__new_trace_meta(&m->out, key, value, err) : TIDE_OK;
    tide_text name = {0};
    tide_text_addf(&name, "merged.%zu.%s", number, key);
    const tide_status st = name.failed ? TIDE_NO_MEMORY(err, "to write '%s'", m->out.path)
                                       : tide__new_trace_meta(&m->out, tide_text_str(&name), value, err);
    tide_text_deinit(&name);
    return st;
}

static tide_status copy_facts(merger *m, size_t i, tide_error *err) {
    sqlite3_stmt *stmt;
    const tide__sql *sql = &m->s[i].t->sql;
    TIDE_TRY(tide__sql_prepare(sql, "SELECT key, value FROM main.meta ORDER BY key", &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const char *key = tide__sql_text(stmt, 0);
        if (!is_left_out(key)) st = put_fact(m, i + 1, key, tide__sql_text(stmt, 1), err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status put_lane(merger *m, size_t i, tide_error *err) {
    const tide__merge_source *s = &m->s[i];
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, s->lane->offset_ns);
    const char *const facts[][2] = {
        {"", s->in->label}, {".path", tide__merge_name(s)}, {".offset_ns", number}, {".devices", s->lane->devices}};
    for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++) {
        char key[64];
        snprintf(key, sizeof key, "merged.%zu%s", i + 1, facts[k][0]);
        if (facts[k][1][0] != '\0') TIDE_TRY(tide__new_trace_meta(&m->out, key, facts[k][1], err));
    }
    return copy_facts(m, i, err);
}

static tide_status put_facts(merger *m, tide_error *err) {
    TIDE_TRY(tide__new_trace_meta(&m->out, "merged_clock", tide_merge_clock_name(m->used), err));
    for (size_t i = 0; i < m->n; i++) TIDE_TRY(put_lane(m, i, err));
    return TIDE_OK;
}

static tide_status insert_devices(merger *m, tide_error *err) {
    const tide__sql *sql;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__new_trace_sql(&m->out, &sql, err));
    TIDE_TRY(tide__sql_prepare(sql, "INSERT INTO device(id, name) VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < m->devices.n; i++) {
        sqlite3_bind_int64(stmt, 1, (int64_t)i + 1);
        tide__sql_bind_text(stmt, 2, m->devices.items[i].name);
        st = tide__sql_run(sql, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Why the first input that was cut short was; NULL: none was. `text` keeps it.
static tide_status cut_short(const merger *m, tide_text *text, tide_error *err) {
    char reason[256];
    for (size_t i = 0; i < m->n; i++) {
        if (m->s[i].t->state != TIDE_TRACE_CUT_SHORT) continue;
        const tide_status st = tide_trace_meta(m->s[i].t, "reason", reason, sizeof reason, err);
        if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
        tide_text_addf(text, "%s: %s", m->s[i].in->label, st == TIDE_OK ? reason : "cut short");
        break;
    }
    return text->failed ? TIDE_NO_MEMORY(err, "to write '%s'", m->out.path) : TIDE_OK;
}

// ---- devices ----

/// Where its number begins: "cuda:" of "cuda:0"; 0 for the CPU and for a name without one.
static size_t type_length(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1)
               ? (size_t)(colon - name) + 1
               : 0;
}

static size_t find_device(const tide__merge_devices *d, const char *name) {
    size_t i = 0;
    while (i < d->n && strcmp(d->items[i].name, name) != 0) i++;
    return i;
}

/// Whether a source before this one has one of the devices of that type under the same name.
static bool type_is_taken(const tide__merge_source *s, size_t number, const tide__merge_devices *d, const char *type,
                          size_t len) {
    for (size_t i = 1; i < s->t->names.n_devices; i++) {
        const char *name = s->t->names.devices[i];
        if (type_length(name) != len || strncmp(name, type, len) != 0) continue;
        const size_t at = find_device(d, name);
        if (at < d->n && d->items[at].source != number) return true;
    }
    return false;
}

/// The name that the device gets: its own, or that type with the lowest number that is free.
static void new_name(const tide__merge_source *s, size_t number, bool apart, const tide__merge_devices *d,
                     const char *name, char out[32]) {
    const size_t len = type_length(name);
    snprintf(out, 32, "%s", name);
    if (!apart || len == 0 || !type_is_taken(s, number, d, name, len)) return;
    for (int i = 0; find_device(d, out) < d->n || i == 0; i++) snprintf(out, 32, "%.*s%d", (int)len, name, i);
}

static void note_device(tide_merge_lane *lane, const char *name, const char *now) {
    const size_t n = strlen(lane->devices);
    if (strcmp(name, now) == 0) return;
    snprintf(lane->devices + n, sizeof lane->devices - n, "%s%s as %s", n > 0 ? ", " : "", name, now);
}

/// Its devices as those of the new trace, behind what is there: `apart` from those of other sources, or the same.
static tide_status take_devices(tide__merge_source *s, size_t number, bool apart, tide__merge_devices *devices,
                                tide_error *err) {
    for (size_t i = 1; i < s->t->names.n_devices; i++) {
        char now[32];
        const char *name = s->t->names.devices[i];
        if (name[0] == '\0' || strlen(name) >= sizeof now) return tide__merge_bad(s, "device", (int64_t)i, err);
        new_name(s, number, apart, devices, name, now);
        size_t at = find_device(devices, now);
        if (at == devices->n) {
            TIDE_TRY(TIDE_GROW(&devices->items, &devices->cap, devices->n + 1, err, "for the devices of '%s'",
                               tide__merge_name(s)));
            snprintf(devices->items[at].name, sizeof now, "%s", now);
            devices->items[at].source = number;
            devices->n++;
        }
        if (devices->n >= TIDE__MAX_DEVICES)
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "cannot merge '%s': there are more than %d devices",
                             tide__merge_name(s), TIDE__MAX_DEVICES - 1);
        if (tide__merge_map_put(&s->devices, (int64_t)i, (int64_t)at + 1) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "to merge '%s'", tide__merge_name(s));
        note_device(s->lane, name, now);
    }
    return TIDE_OK;
}

// ---- the whole ----

static tide_status open_all(merger *m, tide_error *err) {
    for (size_t i = 0; i < m->n; i++) TIDE_TRY(tide__merge_source_open(&m->s[i], err));
    TIDE_TRY(tide__merge_align(m->s, m->n, m->opt->clock, &m->used, err));
    const bool apart = m->opt->devices_apart || (!m->opt->devices_same && !tide__merge_of_one_boot(m->s, m->n));
    for (size_t i = 0; i < m->n; i++) TIDE_TRY(take_devices(&m->s[i], i, apart, &m->devices, err));
    return TIDE_OK;
}

static tide_status merge(merger *m, const char *out_path, tide_error *err) {
    tide_text reason = {0};
    TIDE_TRY(open_all(m, err));
    TIDE_TRY(tide__new_trace_create(&m->out, out_path, err));
    TIDE_TRY(insert_devices(m, err));
    for (size_t i = 0; i < m->n; i++) TIDE_TRY(tide__merge_source_begin(&m->s[i], &m->out, err));
    TIDE_TRY(copy_runs(m, err));
    TIDE_TRY(copy_events(m, err));
    // What the threads counted can be held against the events where all of these are there.
    bool is_whole = true;
    for (size_t i = 0; i < m->n; i++) is_whole = is_whole && m->s[i].lane->n_dropped == 0;
    for (size_t i = 0; i < m->n; i++) TIDE_TRY(tide__merge_source_end(&m->s[i], is_whole, &m->out, err));
    TIDE_TRY(put_facts(m, err));
    tide_status st = cut_short(m, &reason, err);
    if (st == TIDE_OK) st = tide__new_trace_finish(&m->out, reason.len > 0 ? tide_text_str(&reason) : NULL, err);
    tide_text_deinit(&reason);
    return st;
}

static tide_status check_count(size_t n, tide_error *err) {
    if (n < 2) return TIDE_FAIL(err, TIDE_ERR_INVALID, "to merge takes at least two traces");
    if (n > TIDE_MERGE_MAX_LANES)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot merge %zu traces: at most %d", n, TIDE_MERGE_MAX_LANES);
    return TIDE_OK;
}

tide_status tide_merge_traces(const tide_merge_input *in, size_t n, const tide_merge_options *opt, const char *out_path,
                              tide_merge_lane *lanes, tide_merge_clock *used, tide_error *err) {
    TIDE_TRY(check_count(n, err));
    merger *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to merge %zu traces", n));
    *m = (merger){.opt = opt, .n = n};
    tide_status st = TIDE_NEW(&m->s, n, err, "to merge %zu traces", n);
    if (st == TIDE_OK) st = TIDE_NEW(&m->heap, n, err, "to merge %zu traces", n);
    memset(lanes, 0, n * sizeof *lanes);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        m->s[i].in = &in[i];
        m->s[i].lane = &lanes[i];
    }
    if (st == TIDE_OK) st = merge(m, out_path, err);
    *used = m->used;
    for (size_t i = 0; m->s != NULL && i < n; i++) tide__merge_source_close(&m->s[i]);
    tide__new_trace_deinit(&m->out);
    tide_host_free(m->devices.items);
    tide_host_free(m->heap);
    tide_host_free(m->s);
    tide_host_free(m);
    return st;
}
