// SPDX-License-Identifier: MIT
//
// rooms: the memory that each pool has and that blocks or tensors can lie in, so that the page's script can say what
// lies there at any moment, and where a request would fit. See gather.h.
//
//     pool                     its rooms
//     an allocator of a trace  segments that it took from the system: from when to when, and for which block
//     a colour of a plan       a stretch of the plan's buffer
//     a plan without colours   its buffers; in a run once for each context
//
// Blocks in which a run's tensors lie are no items, for the tensors stand in their place: they are listed as buffers.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/query.h"
#include "reports/gather.h"

// ---- segments of a trace ----

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

/// The pool that a segment belongs to, by its place among the pools; SIZE_MAX: none of this run.
static size_t pool_of(const tide_report_side *s, const tide_trace_segment *seg) {
    for (size_t i = 0; i < s->pools.n; i++) {
        const tide_pool *p = &s->pools.items[i];
        if (!p->is_planned && p->tells_segments && p->kind == seg->kind && strcmp(p->name, seg->allocator) == 0 &&
            strcmp(p->device, seg->device) == 0)
            return i;
    }
    return SIZE_MAX;
}

/// What it was taken for; "" not known.
static const char *why_of(const tide_report_side *s, const tide_trace_segment *seg) {
    for (size_t i = 0; i < s->history.n_marks; i++)
        if (s->history.marks[i].is_growth && s->history.marks[i].event == seg->begin_event)
            return s->history.marks[i].why;
    return "";
}

/// Addresses tell where a block lies as long as one process has them.
static bool has_one_process(const tide_report_side *s, const tide_trace_segment *segments, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (segments[i].process != segments[0].process) return false;
    for (uint32_t i = 0; i < s->items->n; i++) {
        const uint64_t id = tide_items_id(s->items, i);
        if (!tide_id_is_planned(id) && tide_trace_process_of(id) != segments[0].process) return false;
    }
    return true;
}

static tide_status add_segments(tide_report_side *s, tide_error *err) {
    const tide_trace_segment *segments;
    size_t n;
    TIDE_TRY(tide_trace_segments(tide_subject_trace(s->subject), NULL, &segments, &n, err));
    if (n == 0 || n > TIDE_REPORT_MAX_ROOMS || !has_one_process(s, segments, n)) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&s->rooms, n + s->pools.n + 1, err, "for the report"));
    for (size_t i = 0; i < n; i++) {
        const tide_trace_segment *seg = &segments[i];
        const size_t pool = pool_of(s, seg);
        const bool went = seg->end_event != UINT64_MAX;
        if (pool == SIZE_MAX || seg->begin_ns >= not_negative(s->facts->end)) continue;
        if (went && seg->end_ns <= not_negative(s->facts->begin)) continue;
        s->rooms[s->n_rooms++] = (tide_report_room){.pool = pool,
                                                    .base = seg->address,
                                                    .bytes = seg->bytes,
                                                    .begin = (int64_t)seg->begin_ns,
                                                    .end = went ? (int64_t)seg->end_ns : INT64_MAX,
                                                    .why = why_of(s, seg)};
    }
    return TIDE_OK;
}

// ---- pools of a plan ----

static tide_status add_plan_pools(tide_report_side *s, const tide_memory_plan *plan, tide_error *err) {
    const size_t n = plan->n_pools > 0 ? plan->n_pools : plan->n_buffers;
    size_t n_others = 0;
    if (n == 0) return TIDE_OK;
    for (size_t i = 0; i < s->pools.n; i++) n_others += !s->pools.items[i].is_planned;
    if (s->rooms == NULL) TIDE_TRY(TIDE_NEW(&s->rooms, s->pools.n + 1, err, "for the report"));
    for (size_t i = 0; i < s->pools.n; i++) {
        const tide_pool *p = &s->pools.items[i];
        if (!p->is_planned) continue;
        const size_t k = (p->number - n_others) % n;
        s->rooms[s->n_rooms++] = (tide_report_room){.pool = i,
                                                    .base = plan->n_pools > 0 ? plan->pool_list[k].offset_bytes : 0,
                                                    .bytes = p->reserved_bytes,
                                                    .begin = s->facts->begin,
                                                    .end = INT64_MAX,
                                                    .why = ""};
    }
    return TIDE_OK;
}

// ---- blocks behind tensors ----

typedef struct collector {
    tide_report_side *side;
    size_t cap;
} collector;

/// What is no item stands behind tensors.
static tide_status on_blocks(void *ctx, const tide_trace_block_row *rows, size_t n) {
    collector *c = ctx;
    tide_report_side *s = c->side;
    const int64_t first = s->facts->begin, last = s->facts->end;
    for (size_t i = 0; i < n; i++) {
        const int64_t from = rows[i].alloc_ns > INT64_MAX ? INT64_MAX : (int64_t)rows[i].alloc_ns;
        const int64_t to = rows[i].end_ns > INT64_MAX ? INT64_MAX : (int64_t)rows[i].end_ns;
        const int64_t begin = from < first ? first : from > last ? last : from;
        if (tide_items_find_at(s->items, rows[i].id, begin, rows[i].requested_bytes) != TIDE_NO_ITEM) continue;
        TIDE_TRY(tide_host_grow(&s->buffers, &c->cap, s->n_buffers + 1, sizeof *s->buffers));
        s->buffers[s->n_buffers++] =
            (tide_report_buffer){.name = tide_trace_text_of(tide_subject_trace(s->subject), rows[i].name),
                                 .kind = rows[i].kind,
                                 .place = rows[i].address,
                                 .size_bytes = rows[i].requested_bytes,
                                 .reserved_bytes = rows[i].reserved_bytes,
                                 .begin = begin,
                                 .end = to > last ? last : to,
                                 .open = rows[i].end_ns == UINT64_MAX};
    }
    return TIDE_OK;
}

tide_status tide_report_find_rooms(tide_report_side *s, tide_error *err) {
    const tide_subject_facts *f = s->facts;
    if (f->is_trace) {
        TIDE_TRY(add_segments(s, err));
        if (f->executions == NULL || f->executions->plan == NULL) return TIDE_OK;
        collector c = {.side = s};
        const tide_status st = tide_trace_each_block(tide_subject_trace(s->subject), f->run_id, on_blocks, &c, err);
        if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "for the report") : st;
        return add_plan_pools(s, f->executions->plan, err);
    }
    return f->plan != NULL ? add_plan_pools(s, f->plan, err) : TIDE_OK;
}
