// SPDX-License-Identifier: MIT
//
// space: see space.h.
#include "planner/strategies/space.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

struct tide_space_note {
    uint64_t lo, hi;
    uint32_t begin, end;
};

typedef struct node {
    tide_free_runs cover, below;
} node;

struct tide_space {
    uint32_t *block_of;     // [n_ticks]
    uint32_t *block_begins; // [n_blocks + 1] first tick of each
    size_t n_blocks, n_leaves;
    node *nodes;            // [2 * n_leaves] root at 1, block b at n_leaves + b
    tide_space_note *notes; // those of one block together, by lo
    size_t *first_note;     // [n_blocks + 1]
    uint32_t *n_notes;      // [n_blocks] taken so far
    tide_run_pool pool;
    uint64_t min_bytes;
    bool failed;
};

// ---- making ----

/// Where blocks begin, so that no more than `block_events` lie strictly inside one.
static tide_status cut_blocks(tide_space *s, const tide_rect *rects, size_t n, uint32_t n_ticks,
                              uint32_t block_events) {
    uint32_t *events = tide_host_calloc((size_t)n_ticks + 1, sizeof *events);
    s->block_of = tide_host_calloc((size_t)n_ticks + 1, sizeof *s->block_of);
    s->block_begins = tide_host_calloc((size_t)n_ticks + 2, sizeof *s->block_begins);
    if (events == NULL || s->block_of == NULL || s->block_begins == NULL) {
        tide_host_free(events);
        return TIDE_ERR_NOMEM;
    }
    for (size_t r = 0; r < n; r++) {
        events[rects[r].begin]++;
        events[rects[r].end]++;
    }
    uint32_t inside = 0;
    s->n_blocks = 1;
    for (uint32_t t = 1; t < n_ticks; t++) {
        if (inside + events[t] > block_events) {
            s->block_begins[s->n_blocks++] = t;
            inside = 0;
        } else {
            inside += events[t];
        }
        s->block_of[t] = (uint32_t)s->n_blocks - 1;
    }
    TIDE_ASSERT(s->n_blocks <= (size_t)n_ticks + 1);
    s->block_begins[s->n_blocks] = n_ticks;
    tide_host_free(events);
    return TIDE_OK;
}

/// Whether the rectangle begins or ends inside its first or last block and is noted there.
typedef struct parts {
    uint32_t first, last; // blocks
    bool notes_first, notes_last;
} parts;

static parts parts_of(const tide_space *s, uint32_t begin, uint32_t end) {
    parts p = {.first = s->block_of[begin], .last = s->block_of[end - 1]};
    TIDE_ASSERT(begin < end && p.first <= p.last && p.last < s->n_blocks);
    p.notes_first = begin > s->block_begins[p.first];
    p.notes_last = end < s->block_begins[p.last + 1];
    if (p.first == p.last) {
        p.notes_first = p.notes_first || p.notes_last;
        p.notes_last = false;
    }
    return p;
}

static tide_status make_notes(tide_space *s, const tide_rect *rects, size_t n) {
    s->first_note = tide_host_calloc(s->n_blocks + 1, sizeof *s->first_note);
    s->n_notes = tide_host_calloc(s->n_blocks, sizeof *s->n_notes);
    if (s->first_note == NULL || s->n_notes == NULL) return TIDE_ERR_NOMEM;
    for (size_t r = 0; r < n; r++) {
        const parts p = parts_of(s, rects[r].begin, rects[r].end);
        s->first_note[p.first + 1] += p.notes_first;
        s->first_note[p.last + 1] += p.notes_last;
    }
    for (size_t b = 0; b < s->n_blocks; b++) s->first_note[b + 1] += s->first_note[b];
    s->notes = tide_host_calloc(s->first_note[s->n_blocks], sizeof *s->notes);
    return s->notes != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

tide_status tide__space_create(const tide_rect *rects, size_t n, uint32_t n_ticks, uint32_t block_events,
                               tide_space **out) {
    tide_space *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return TIDE_ERR_NOMEM;
    tide_status st = cut_blocks(s, rects, n, n_ticks, block_events);
    if (st == TIDE_OK) st = make_notes(s, rects, n);
    if (st == TIDE_OK) {
        s->n_leaves = 1;
        while (s->n_leaves < s->n_blocks) s->n_leaves *= 2;
        s->nodes = tide_host_calloc(s->n_leaves, 2 * sizeof *s->nodes);
        if (s->nodes == NULL) st = TIDE_ERR_NOMEM;
    }
    if (st != TIDE_OK) {
        tide__space_destroy(s);
        return st;
    }
    s->min_bytes = 1;
    *out = s;
    return TIDE_OK;
}

void tide__space_destroy(tide_space *s) {
    if (s == NULL) return;
    tide_host_free(s->block_of);
    tide_host_free(s->block_begins);
    tide_host_free(s->nodes);
    tide_host_free(s->notes);
    tide_host_free(s->first_note);
    tide_host_free(s->n_notes);
    tide__run_pool_deinit(&s->pool);
    tide_host_free(s);
}

void tide__space_reset(tide_space *s, uint64_t min_bytes) {
    memset(s->nodes, 0, 2 * s->n_leaves * sizeof *s->nodes);
    memset(s->n_notes, 0, s->n_blocks * sizeof *s->n_notes);
    tide__run_pool_reset(&s->pool);
    s->min_bytes = min_bytes;
    s->failed = false;
}

// ---- taking ----

static void take_in_list(tide_space *s, tide_free_runs *list, uint64_t lo, uint64_t hi) {
    if (!tide__free_runs_take(list, lo, hi, s->min_bytes, &s->pool)) s->failed = true;
}

static void note(tide_space *s, uint32_t block, tide_space_note entry) {
    tide_space_note *notes = s->notes + s->first_note[block];
    TIDE_ASSERT(s->first_note[block] + s->n_notes[block] < s->first_note[block + 1]); // as many as were announced
    uint32_t i = s->n_notes[block]++;
    for (; i > 0 && notes[i - 1].lo > entry.lo; i--) notes[i] = notes[i - 1];
    notes[i] = entry;
}

/// Blocks [first, end) below `at`, whose own blocks are [at_first, at_end); the ends of the range that are noted count
/// as not covering.
static void cover(tide_space *s, size_t at, uint32_t at_first, uint32_t at_end, const parts *p, uint64_t lo,
                  uint64_t hi) {
    TIDE_ASSERT(at < 2 * s->n_leaves && at_first < at_end);
    take_in_list(s, &s->nodes[at].below, lo, hi);
    const uint32_t full_first = p->first + p->notes_first, full_end = p->last + 1 - p->notes_last;
    if (full_first <= at_first && at_end <= full_end) {
        take_in_list(s, &s->nodes[at].cover, lo, hi);
        return;
    }
    if (at >= s->n_leaves) return; // a noted block
    const uint32_t mid = at_first + (at_end - at_first) / 2;
    if (p->first < mid) cover(s, 2 * at, at_first, mid, p, lo, hi);
    if (p->last >= mid) cover(s, 2 * at + 1, mid, at_end, p, lo, hi);
}

bool tide__space_take(tide_space *s, uint32_t begin, uint32_t end, uint64_t lo, uint64_t hi) {
    const parts p = parts_of(s, begin, end);
    TIDE_ASSERT(lo < hi);
    const tide_space_note entry = {lo, hi, begin, end};
    if (p.notes_first) note(s, p.first, entry);
    if (p.notes_last) note(s, p.last, entry);
    cover(s, 1, 0, (uint32_t)s->n_leaves, &p, lo, hi);
    return !s->failed;
}

// ---- reading ----

static void read_list(tide_space_window *w, const tide_free_runs *list) {
    if (tide__free_runs_untouched(list)) return;
    TIDE_ASSERT(w->n_lists < TIDE_SPACE_MAX_LISTS);
    w->lists[w->n_lists++] = tide__free_runs_first(list);
}

static void collect(const tide_space *s, size_t at, uint32_t at_first, uint32_t at_end, const parts *p,
                    tide_space_window *w) {
    const node *n = &s->nodes[at];
    if (tide__free_runs_untouched(&n->below)) return; // nothing taken in here
    const uint32_t full_first = p->first + p->notes_first, full_end = p->last + 1 - p->notes_last;
    if (full_first <= at_first && at_end <= full_end) {
        read_list(w, &n->below);
        return;
    }
    read_list(w, &n->cover);
    if (at >= s->n_leaves) {
        const size_t block = at - s->n_leaves;
        const tide_space_note *first = s->notes + s->first_note[block];
        TIDE_ASSERT(w->n_notes < 2);
        w->notes[w->n_notes].next = first;
        w->notes[w->n_notes++].end = first + s->n_notes[block];
        return;
    }
    const uint32_t mid = at_first + (at_end - at_first) / 2;
    if (p->first < mid) collect(s, 2 * at, at_first, mid, p, w);
    if (p->last >= mid) collect(s, 2 * at + 1, mid, at_end, p, w);
}

void tide__space_open(const tide_space *s, uint32_t begin, uint32_t end, uint64_t bytes, tide_space_window *w) {
    const parts p = parts_of(s, begin, end);
    w->n_lists = w->n_notes = 0;
    w->bytes = bytes;
    w->begin = begin;
    w->end = end;
    collect(s, 1, 0, (uint32_t)s->n_leaves, &p, w);
}

/// The first place above the notes that meet the window and block `at`. Notes before that end below or do not meet the
/// window.
static uint64_t pass_notes(tide_space_window *w, size_t k, uint64_t at) {
    const tide_space_note *i = w->notes[k].next, *end = w->notes[k].end;
    for (; i < end && i->lo < at + w->bytes; i++) {
        if (i->hi > at && i->begin < w->end && w->begin < i->end) at = i->hi;
    }
    w->notes[k].next = i;
    return at;
}

static uint64_t end_before_notes(const tide_space_window *w, uint64_t run_end) {
    for (size_t k = 0; k < w->n_notes; k++) {
        for (const tide_space_note *i = w->notes[k].next; i < w->notes[k].end && i->lo < run_end; i++) {
            if (i->begin >= w->end || w->begin >= i->end) continue;
            run_end = i->lo;
            break;
        }
    }
    return run_end;
}

/// Lists that reject a place go to the front: a few of them reject nearly every place, so most places are rejected at
/// once.
uint64_t tide__space_next(tide_space_window *w, uint64_t from, uint64_t *run_end) {
    uint64_t at = from, end = UINT64_MAX;
    for (size_t k = 0; k < w->n_lists + w->n_notes;) {
        uint64_t stretch = UINT64_MAX;
        if (k >= w->n_lists) {
            const uint64_t above = pass_notes(w, k - w->n_lists, at);
            k = above == at ? k + 1 : 0;
            if (above != at) end = UINT64_MAX;
            at = above;
            continue;
        }
        const uint64_t to = tide__free_runs_next(&w->lists[k], at, w->bytes, &stretch);
        if (to == at) {
            if (stretch < end) end = stretch;
            k++;
            continue;
        }
        const tide_run_cursor rejecting = w->lists[k];
        w->lists[k] = w->lists[0];
        w->lists[0] = rejecting;
        at = to;
        end = stretch;
        k = 1; // the first one agrees
    }
    TIDE_ASSERT(at >= from && end > at);
    if (run_end != NULL) *run_end = end_before_notes(w, end);
    return at;
}
