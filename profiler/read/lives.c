// SPDX-License-Identifier: MIT
//
// Lives of blocks and peaks between events. See lives.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/lives.h"
#include "profiler/read/moments_internal.h"

static tide_status end_event_of(tide_trace *t, sqlite3_stmt *stmt, const tide_trace_birth *b, uint64_t *out,
                                tide_error *err) {
    bool has_row;
    sqlite3_bind_int64(stmt, 1, (int64_t)b->block_id);
    sqlite3_bind_int64(stmt, 2, (int64_t)b->alloc_event);
    TIDE_TRY(tide__sql_step(&t->sql, stmt, &has_row, err));
    if (!has_row)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no block %" PRIu64 " of event %" PRIu64, t->path,
                         b->block_id, b->alloc_event);
    const int64_t event = sqlite3_column_int64(stmt, 0); // NULL: 0
    *out = event > 0 && event <= t->last_event ? (uint64_t)event : UINT64_MAX;
    if (event > 0) return TIDE_OK;
    const int64_t alloc_ns = sqlite3_column_int64(stmt, 1);
    const tide__process_end *end = tide__trace_process_end(t, b->block_id, alloc_ns > 0 ? (uint64_t)alloc_ns : 0);
    if (end != NULL) *out = (uint64_t)end->event;
    return TIDE_OK;
}

/// Where two blocks have one number, the later one is kept under the number of its event, negative.
tide_status tide_trace_end_events(tide_trace *t, const tide_trace_birth *blocks, size_t n, uint64_t *end_events,
                                  tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__trace_ask_blocks(t, "free_event, alloc_ns", "WHERE id IN (?1, -?2) AND alloc_event = ?2", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        st = end_event_of(t, stmt, &blocks[i], &end_events[i], err);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_end_event(tide_trace *t, uint64_t block_id, uint64_t alloc_event, uint64_t *end_event,
                                 tide_error *err) {
    const tide_trace_birth b = {block_id, alloc_event};
    return tide_trace_end_events(t, &b, 1, end_event, err);
}

tide_status tide_trace_peak_of_events(tide_trace *t, int kind, const char *device, uint64_t first, uint64_t last,
                                      uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) {
    tide__curve *c;
    int64_t high, high_event, high_ns = -1;
    if (last < first)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "events %" PRIu64 " to %" PRIu64 ": there are none", first, last);
    if (last > (uint64_t)t->last_event)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no event %" PRIu64, t->path, last);
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    TIDE_TRY(tide__curve_peak(t, c, (int64_t)first + 1, (int64_t)last, &high, &high_event, &high_ns, err));
    *bytes = (uint64_t)high;
    if (event != NULL) *event = (uint64_t)high_event;
    if (t_ns != NULL && high_ns >= 0) *t_ns = (uint64_t)high_ns;
    return TIDE_OK;
}

// ---- what a peak would be without all blocks of a site ----
//
// One replay answers for many sites at once: for those that are asked for, and for others that it meets, which a user
// who scrolls will ask for next.
//
//     all          ___/\\__/\\___      highest so far
//     without k    ___/\\__ _ ___      all - what k has alive, noted whenever something is allocated
//
// Before its first block a site has nothing alive: what the peak was then without it is what it was with it.

/// Sites of one replay, and the table that finds them: twice as many places, a power of two.
enum { MAX_SITES = 256, N_PLACES = 4 * MAX_SITES };

typedef struct place {
    uint32_t name;
    uint32_t site; // + 1; 0: nothing here
    const char *scope;
} place;

typedef struct walk {
    tide_trace *t;
    size_t n, n_places;
    int64_t high_bytes, high_event; // of everything
    int64_t live[MAX_SITES], peak[MAX_SITES], event[MAX_SITES];
    uint64_t n_blocks[MAX_SITES];
    uint32_t name[MAX_SITES], scope[MAX_SITES];
    place places[N_PLACES];
} walk;

static const char *scope_text(const walk *w, uint32_t scope) { return tide__trace_scope_of(w->t, scope).name; }

/// An operator's scope has another number in each run, so scopes go by their texts.
static size_t search(const walk *w, uint32_t name, const char *scope) {
    for (size_t i = 0; i < w->n; i++) {
        if (w->name[i] == name && strcmp(scope_text(w, w->scope[i]), scope) == 0) return i;
    }
    return SIZE_MAX;
}

static size_t add_site(walk *w, uint32_t name, uint32_t scope) {
    if (w->n == MAX_SITES) return SIZE_MAX;
    w->name[w->n] = name;
    w->scope[w->n] = scope;
    w->peak[w->n] = w->high_bytes;
    w->event[w->n] = w->high_event;
    return w->n++;
}

/// The place of a block's site, a new one while there is room; SIZE_MAX: it has none. Texts are found again by where
/// they lie: the trace has each of them once, or a few times.
static size_t site_of(walk *w, uint32_t name, uint32_t scope) {
    const char *text = scope_text(w, scope);
    const uint64_t hash =
        ((uint64_t)(uintptr_t)text + name * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
    size_t at = (size_t)(hash >> 40) % N_PLACES;
    for (; w->places[at].site != 0; at = (at + 1) % N_PLACES) {
        if (w->places[at].name == name && w->places[at].scope == text) return w->places[at].site - 1;
    }
    size_t i = search(w, name, text);
    if (i == SIZE_MAX) i = add_site(w, name, scope);
    if (i == SIZE_MAX || w->n_places == N_PLACES / 2) return i;
    w->n_places++;
    w->places[at] = (place){name, (uint32_t)i + 1, text};
    return i;
}

static void on_gone(void *ctx, const tide__live_block *block, const tide__event *end) {
    walk *w = ctx;
    const size_t i = site_of(w, (uint32_t)block->tag_id, (uint32_t)block->scope_id);
    (void)end;
    if (i != SIZE_MAX) w->live[i] -= block->requested_bytes;
}

static void add(walk *w, const tide__live_block *b) {
    const size_t i = site_of(w, (uint32_t)b->tag_id, (uint32_t)b->scope_id);
    if (i == SIZE_MAX) return;
    w->live[i] += b->requested_bytes;
    w->n_blocks[i]++;
}

/// Only what is allocated raises any of the sums.
static void note(walk *w, int64_t live_bytes, int64_t event) {
    for (size_t i = 0; i < w->n; i++) {
        if (live_bytes - w->live[i] <= w->peak[i]) continue;
        w->peak[i] = live_bytes - w->live[i];
        w->event[i] = event;
    }
    if (live_bytes <= w->high_bytes) return;
    w->high_bytes = live_bytes;
    w->high_event = event;
}

static tide_status on_begin(void *ctx, const tide__replay *r) {
    walk *w = ctx;
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) add(w, b);
    for (size_t i = 0; i < w->n; i++) w->peak[i] = -1; // nothing has been seen yet
    w->high_bytes = -1;
    note(w, r->series[0].live_bytes, r->last_event);
    w->t->at.replay.on_gone = on_gone;
    w->t->at.replay.ctx = w;
    return TIDE_OK;
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    walk *w = ctx;
    if (e->op != TIDE_MEM_ALLOC || series == 0) return TIDE_OK;
    const tide__live_block *b = tide__replay_find(r, e->block_id);
    if (b != NULL && b->alloc_event == e->id) add(w, b);
    note(w, r->series[0].live_bytes, e->id);
    return TIDE_OK;
}

static tide_status replay(walk *w, uint64_t first, uint64_t last, tide_error *err) {
    const tide_status st = tide__trace_walk(w->t, (int64_t)first, (int64_t)last, on_begin, on_event, w, err);
    w->t->at.replay.on_gone = NULL;
    w->t->at.replay.ctx = NULL;
    return st;
}

// ---- answers are kept ----

enum { MAX_KEPT = 4 * MAX_SITES };

static void forget_peaks(tide_trace *t) {
    tide_host_free(t->alike);
    t->alike = NULL;
    t->n_alike = t->cap_alike = 0;
}

static const tide_trace_alike *find_kept(const tide_trace *t, const tide_trace_alike *site) {
    const char *scope = tide__trace_scope_of(t, site->scope).name;
    for (size_t i = 0; i < t->n_alike; i++) {
        const tide_trace_alike *kept = &t->alike[i];
        if (kept->name == site->name && strcmp(tide__trace_scope_of(t, kept->scope).name, scope) == 0) return kept;
    }
    return NULL;
}

/// Some of them may be there already, with the same answer.
static tide_status keep(tide_trace *t, const walk *w, tide_error *err) {
    t->forget[TIDE__KEPT_PEAKS] = forget_peaks;
    TIDE_TRY(TIDE_GROW(&t->alike, &t->cap_alike, t->n_alike + w->n, err, "for the peaks of '%s'", t->path));
    for (size_t i = 0; i < w->n; i++)
        t->alike[t->n_alike++] = (tide_trace_alike){.name = w->name[i],
                                                    .scope = w->scope[i],
                                                    .peak_bytes = (uint64_t)w->peak[i],
                                                    .event = (uint64_t)w->event[i],
                                                    .n_blocks = w->n_blocks[i]};
    return TIDE_OK;
}

/// One replay for those of at most MAX_SITES sites that have no answer yet.
static tide_status find(tide_trace *t, uint64_t first, uint64_t last, const tide_trace_alike *sites, size_t n,
                        tide_error *err) {
    walk *w;
    TIDE_TRY(TIDE_NEW(&w, 1, err, "for the peaks of '%s'", t->path));
    w->t = t;
    for (size_t i = 0; i < n; i++) {
        if (find_kept(t, &sites[i]) == NULL) (void)site_of(w, sites[i].name, sites[i].scope);
    }
    tide_status st = TIDE_OK;
    if (w->n > 0) st = replay(w, first, last, err);
    if (st == TIDE_OK && w->n > 0) st = keep(t, w, err);
    tide_host_free(w);
    return st;
}

tide_status tide_trace_peaks_without(tide_trace *t, uint64_t first, uint64_t last, tide_trace_alike *sites, size_t n,
                                     tide_error *err) {
    if (t->alike_first != first || t->alike_last != last || t->n_alike > MAX_KEPT) t->n_alike = 0;
    t->alike_first = first;
    t->alike_last = last;
    for (size_t i = 0; i < n; i += MAX_SITES) {
        const size_t some = n - i < MAX_SITES ? n - i : MAX_SITES;
        TIDE_TRY(find(t, first, last, sites + i, some, err));
        for (size_t k = i; k < i + some; k++) {
            const tide_trace_alike *kept = find_kept(t, &sites[k]);
            sites[k].peak_bytes = kept->peak_bytes;
            sites[k].event = kept->event;
            sites[k].n_blocks = kept->n_blocks;
        }
    }
    return TIDE_OK;
}
