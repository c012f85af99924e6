// SPDX-License-Identifier: MIT
//
// Would a pool serve a request, what stands in the way, and when would it be served. See holdings.h.
//
//     segment   [ a ][  free  ][ b ][ free ][     c     ]      a request for     [              ]
//     in the way of a place that begins ...  b alone           at the end of a
//                                            b, c              at the end of b
//
// Any place can be moved down until it begins at the end of a block or of the segment's beginning, and nothing new
// comes in its way: so only these are tried.
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

/// A block in a segment of the pool, as far as it lies in it.
typedef struct stretch {
    size_t place;
    uint64_t begin, end; // in the segment
    uint64_t id, bytes;
} stretch;

/// A place for the request, and what is in its way.
typedef struct candidate {
    bool is_there;
    size_t place; // SIZE_MAX: none
    uint64_t begin, blocked_bytes;
    size_t n_blocks;
} candidate;

typedef struct question {
    tide_trace *t;
    const tide_trace_request_question *of;
    tide__span span;
    tide__pool_sums *sums;
    size_t pool; // as the sums number it
    int64_t at;
    tide__pool_walk walk;
    stretch *list, *by_end; // [n] by begin and by end, owned
    size_t n;
    candidate best;
    uint64_t found_event, found_ns; // the next moment; UINT64_MAX: not found
    tide_trace_request *out;
    tide_error *err;
} question;

// ---- what is in the way ----

static int by_begin(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_end(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static tide_status list_blocks(question *q, const tide__replay *r) {
    const tide__pool_walk *w = &q->walk;
    const size_t n = tide__replay_n_live(r);
    const tide__live_block *b;
    TIDE_TRY(TIDE_NEW(&q->list, n + 1, q->err, "for the blocks of '%s'", q->t->path));
    TIDE_TRY(TIDE_NEW(&q->by_end, n + 1, q->err, "for the blocks of '%s'", q->t->path));
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        const size_t at = tide__pool_place_of(w, b);
        if (at == SIZE_MAX || w->places[at].pool != q->pool || b->reserved_bytes == 0) continue;
        const uint64_t size = w->places[at].seg->bytes, begin = (uint64_t)b->address - w->places[at].seg->address;
        const uint64_t bytes = (uint64_t)b->reserved_bytes, left = size - begin;
        q->list[q->n] = (stretch){at, begin, begin + (bytes < left ? bytes : left), (uint64_t)b->block_id, bytes};
        q->by_end[q->n] = q->list[q->n];
        q->n++;
    }
    if (q->n > 1) qsort(q->list, q->n, sizeof *q->list, by_begin);
    if (q->n > 1) qsort(q->by_end, q->n, sizeof *q->by_end, by_end);
    return TIDE_OK;
}

static void try_place(question *q, const candidate *c) {
    const candidate *b = &q->best;
    if (b->is_there && c->blocked_bytes > b->blocked_bytes) return;
    if (b->is_there && c->blocked_bytes == b->blocked_bytes && c->n_blocks >= b->n_blocks) return;
    q->best = *c;
}

/// Places of one segment, whose blocks are list[lo, hi): in the way is what begins before the place's end, but for what
/// ends before its begin.
static void try_segment(question *q, size_t place, size_t lo, size_t hi) {
    const uint64_t size = q->walk.places[place].seg->bytes, bytes = q->of->bytes;
    candidate c = {.is_there = true, .place = place};
    size_t begun = lo, ended = lo;
    while (bytes <= size && c.begin <= size - bytes) {
        for (; begun < hi && q->list[begun].begin < c.begin + bytes; begun++) {
            c.blocked_bytes += q->list[begun].bytes;
            c.n_blocks++;
        }
        for (; ended < hi && q->by_end[ended].end <= c.begin; ended++) {
            c.blocked_bytes -= q->by_end[ended].bytes;
            c.n_blocks--;
        }
        try_place(q, &c);
        if (ended == hi) break;
        c.begin = q->by_end[ended].end;
    }
}

static tide_status list_in_the_way(question *q) {
    tide_trace_request *out = q->out;
    TIDE_TRY(TIDE_NEW(&out->blocks, q->best.n_blocks + 1, q->err, "for blocks of '%s'", q->t->path));
    const uint64_t begin = q->best.begin, end = begin + q->of->bytes;
    for (size_t i = 0; i < q->n; i++) {
        const stretch *s = &q->list[i];
        if (s->place == q->best.place && s->begin < end && s->end > begin) out->blocks[out->n_blocks++] = s->id;
    }
    TIDE_ASSERT(out->n_blocks == q->best.n_blocks);
    return TIDE_OK;
}

/// From the blocks and segments that are there after the walk.
static tide_status find_place(question *q) {
    const tide__pool_walk *w = &q->walk;
    for (size_t place = 0, i = 0; place < w->n_places; place++) {
        const size_t lo = i;
        while (i < q->n && q->list[i].place == place) i++;
        if (w->places[place].pool == q->pool) try_segment(q, place, lo, i);
    }
    tide_trace_request *out = q->out;
    out->fit = TIDE_FIT_GROW;
    if (!q->best.is_there) return TIDE_OK;
    const tide_trace_segment *seg = w->places[q->best.place].seg;
    out->fit = q->best.n_blocks == 0 ? TIDE_FIT_FREE : TIDE_FIT_BLOCKED;
    out->address = seg->address + q->best.begin;
    out->segment_bytes = seg->bytes;
    out->blocked_bytes = q->best.blocked_bytes;
    return list_in_the_way(q);
}

// ---- the next moment ----

static tide_status on_change(tide__pool_walk *w) {
    question *q = w->ctx;
    if (w->now_event == 0 || q->found_event != UINT64_MAX)
        return TIDE_OK; // the begin of an interval ended the last one
    const uint64_t free = tide__pool_largest_free(&w->pools[q->pool]);
    if (free == TIDE_UNKNOWN_BYTES || free < q->of->bytes) return TIDE_OK;
    q->found_event = w->now_event;
    q->found_ns = w->now_ns;
    return TIDE_OK;
}

/// The first event behind the moment, in interval `k`, after which the request would be served.
static tide_status look_through(question *q, int64_t k) {
    const int64_t from = q->sums->first_event + k * q->sums->interval_events, end = from + q->sums->interval_events - 1;
    const int64_t after = from - 1 > q->at ? from - 1 : q->at;
    const int64_t last = end < q->sums->last_event ? end : q->sums->last_event;
    if (last <= after) return TIDE_OK;
    tide__pool_walk_reset(&q->walk);
    q->walk.on_change = on_change;
    q->walk.ctx = q;
    return tide__pool_walk_to(&q->walk, after, last, NULL, q->err);
}

static tide_status find_next(question *q) {
    const tide__kept_pool *p = &q->sums->pools[q->pool];
    const int64_t here = q->at >= q->sums->first_event ? tide__interval_of(q->sums, q->at) : 0;
    for (size_t k = (size_t)here; k < p->n_intervals && q->found_event == UINT64_MAX; k++)
        if (p->intervals[k].most_free_bytes >= q->of->bytes) TIDE_TRY(look_through(q, (int64_t)k));
    return TIDE_OK;
}

// ---- the question ----

static tide_status prepare(question *q, const tide_reading *reading) {
    size_t *order;
    if (q->of->bytes == 0) return TIDE_FAIL(q->err, TIDE_ERR_INVALID, "a request of no bytes");
    TIDE_TRY(tide__pool_sums_of(q->t, q->of->run_id, reading, &q->span, &q->sums, q->err));
    if (q->of->pool >= q->sums->n)
        return TIDE_FAIL(q->err, TIDE_ERR_NOT_FOUND, "there is no pool %zu: the run has %zu", q->of->pool, q->sums->n);
    TIDE_TRY(tide__pool_order(q->sums, &order, q->err));
    q->pool = order[q->of->pool];
    tide_host_free(order);
    q->at = tide__cut_to_span(q->of->at_event > INT64_MAX ? INT64_MAX : (int64_t)q->of->at_event, &q->span);
    TIDE_TRY(tide__pool_walk_init(q->t, q->sums, &q->walk, q->err));
    q->walk.keeps_free = true;
    return TIDE_OK;
}

static tide_status answer(question *q) {
    const tide__replay *r;
    TIDE_TRY(tide__pool_walk_to(&q->walk, q->at, q->at, NULL, q->err));
    TIDE_TRY(tide__trace_state_after(q->t, q->at, &r, q->err));
    TIDE_TRY(list_blocks(q, r));
    TIDE_TRY(find_place(q));
    return q->out->fit == TIDE_FIT_FREE ? TIDE_OK : find_next(q);
}

tide_status tide_trace_pool_request(tide_trace *t, const tide_trace_request_question *of, const tide_reading *reading,
                                    tide_trace_request *out, tide_error *err) {
    question q = {.t = t, .of = of, .out = out, .err = err, .found_event = UINT64_MAX, .found_ns = UINT64_MAX};
    *out = (tide_trace_request){0};
    tide_status st = prepare(&q, reading);
    if (st == TIDE_OK) st = answer(&q);
    out->next_event = q.found_event;
    out->next_ns = q.found_ns;
    tide__pool_walk_deinit(&q.walk);
    tide_host_free(q.list);
    tide_host_free(q.by_end);
    if (st != TIDE_OK) tide_trace_request_deinit(out);
    return st;
}

void tide_trace_request_deinit(tide_trace_request *r) {
    tide_host_free(r->blocks);
    *r = (tide_trace_request){0};
}
