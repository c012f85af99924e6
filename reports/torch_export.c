// SPDX-License-Identifier: MIT
//
// A recorded trace as a memory snapshot of PyTorch. See torch_export.h.
//
// What is live is replayed by the rules of the trace (profiler/store/replay_rules.h), as chrome_trace.c does it, on a
// lane for each device of each process: their addresses have nothing to do with each other.
#include "reports/torch_export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"
#include "profiler/import/import.h"
#include "reports/torch_pen.h"

enum { BATCH = 4096 };

/// A list of device_traces.
typedef struct lane {
    uint32_t process;
    const char *device; ///< borrowed from the trace
    uint32_t number;    ///< of the list
    bool is_mapped;     ///< as the first look found it
    tide__torch_space space;
} lane;

/// What was there when what is written began.
typedef struct older {
    tide_live_set blocks; ///< by allocation
    tide_trace_segment *segments;
    size_t n_segments;
} older;

/// What waits for the event behind it: a failed request for the mark that says how much the device had left, a mark for
/// one called "snapshot", with which it was one event where the trace was made of a snapshot.
typedef struct waiting {
    enum { WAITS_NOT, WAITS_FAILURE, WAITS_MARK } what;
    tide_trace_event event;
} waiting;

typedef struct writer {
    tide_trace *t;
    tide_error *err;
    tide_trace_extent extent;
    tide_torch_export_report report;
    tide__torch_pen pen;
    lane *lanes; ///< [n_lanes], owned
    size_t n_lanes, cap_lanes;
    tide_trace_thread *threads; ///< [n_threads], owned
    size_t n_threads;
    older older;
    bool is_torch;            ///< the trace was made of such a snapshot: names of blocks follow from their stacks
    uint64_t n_before;        ///< its first allocations: blocks that were there before it was recorded
    uint64_t n_marked_scopes; ///< regions and runs that are entered or left
    // while events are read
    lane *only;       ///< NULL: the first look, at all of them, without writing
    bool is_begin;    ///< what comes was there before, and is in the state alone
    uint64_t n_begun; ///< blocks of n_before that came
    lane *now;        ///< of the segment that is told
    uint64_t t_ns;
    uint32_t segment_scope;
    waiting waiting;
    const char *entered; ///< region that was entered last, at t_entered
    uint64_t t_entered;
} writer;

static tide_status no_memory(const writer *w) { return TIDE_NO_MEMORY(w->err, "for the live blocks of a trace"); }

// ---- lanes ----

static tide_status put_event(writer *w, const tide__torch_out_event *e) {
    if (w->only == NULL || w->is_begin) return TIDE_OK;
    return tide__torch_pen_event(&w->pen, e);
}

static tide_status segment_told(void *ctx, bool comes, tide_block_span range, uint64_t stream) {
    writer *w = ctx;
    const tide__torch_out_action actions[2][2] = {{TIDE__TORCH_OUT_SEGMENT_FREE, TIDE__TORCH_OUT_SEGMENT_ALLOC},
                                                  {TIDE__TORCH_OUT_SEGMENT_UNMAP, TIDE__TORCH_OUT_SEGMENT_MAP}};
    return put_event(w, &(tide__torch_out_event){.action = actions[w->now->is_mapped][comes],
                                                 .addr = range.begin,
                                                 .size = range.bytes,
                                                 .stream = stream,
                                                 .t_ns = w->t_ns,
                                                 .scope = w->segment_scope});
}

static lane *find_lane(writer *w, uint32_t process, const char *device) {
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = &w->lanes[i];
        if (l->process == process && (l->device == device || strcmp(l->device, device) == 0)) return l;
    }
    return NULL;
}

/// The lane of what happens on a device; *out NULL: it is not the one that is written.
static tide_status lane_of(writer *w, uint32_t process, const char *device, lane **out) {
    *out = find_lane(w, process, device);
    if (w->only != NULL) {
        TIDE_ASSERT(*out != NULL); // the first look made all of them
        if (*out != w->only) *out = NULL;
    } else if (*out == NULL) {
        TIDE_TRY(TIDE_GROW(&w->lanes, &w->cap_lanes, w->n_lanes + 1, w->err, "for the devices of a trace"));
        *out = &w->lanes[w->n_lanes++];
        **out = (lane){.process = process, .device = device, .space = TIDE__TORCH_SPACE(segment_told, w)};
    }
    if (*out != NULL) w->now = *out;
    return TIDE_OK;
}

static uint32_t process_of(const writer *w, uint32_t thread) {
    for (size_t i = 0; i < w->n_threads; i++)
        if (w->threads[i].number == thread) return w->threads[i].process;
    return 0;
}

/// The lane of what a thread says and no device: the first one of its process, or else the first of all.
static const lane *lane_of_thread(const writer *w, uint32_t thread) {
    const uint32_t process = process_of(w, thread);
    for (size_t i = 0; i < w->n_lanes; i++)
        if (w->lanes[i].process == process) return &w->lanes[i];
    TIDE_ASSERT(w->n_lanes > 0);
    return &w->lanes[0];
}

static int by_number(const void *a, const void *b) {
    const lane *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_process(const void *a, const void *b) {
    const lane *x = a, *y = b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    return strcmp(x->device, y->device);
}

/// cuda:N of the first process that has it is list N; the others follow behind.
static void number_lanes(writer *w) {
    uint32_t next = 0;
    if (w->n_lanes > 0) qsort(w->lanes, w->n_lanes, sizeof *w->lanes, by_process);
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = &w->lanes[i];
        unsigned n = UINT32_MAX;
        l->number = UINT32_MAX;
        if (sscanf(l->device, "cuda:%3u", &n) != 1 || n > 255) continue;
        bool is_taken = false;
        for (size_t k = 0; k < i; k++) is_taken = is_taken || w->lanes[k].number == n;
        if (is_taken) continue;
        l->number = n;
        if (n >= next) next = n + 1;
    }
    for (size_t i = 0; i < w->n_lanes; i++)
        if (w->lanes[i].number == UINT32_MAX) w->lanes[i].number = next++;
    if (w->n_lanes > 0) qsort(w->lanes, w->n_lanes, sizeof *w->lanes, by_number);
}

// ---- blocks ----

static tide_status put_block(writer *w, lane *l, const tide_trace_event *e, bool is_pending) {
    const tide__torch_item block = {.block_id = e->block_id,
                                    .address = e->address,
                                    .requested = e->requested_bytes,
                                    .bytes = e->reserved_bytes,
                                    .stream = e->stream,
                                    .scope = e->scope_id,
                                    .name = e->name,
                                    .kind = e->kind,
                                    .is_pending = is_pending};
    tide__torch_item *b = NULL;
    const tide_status st = tide__torch_space_put(&l->space, &block, &b);
    if (st == TIDE_ERR_NOT_FOUND) {
        w->report.n_left_out += w->only != NULL;
        return TIDE_OK;
    }
    if (st == TIDE_ERR_NOMEM) return no_memory(w);
    TIDE_TRY(st);
    w->report.n_moved += w->only != NULL && b->is_moved;
    return put_event(w, &(tide__torch_out_event){.action = TIDE__TORCH_OUT_ALLOC,
                                                 .addr = b->address,
                                                 .size = b->requested,
                                                 .stream = b->stream,
                                                 .t_ns = e->t_ns,
                                                 .scope = b->scope,
                                                 .name = w->is_torch ? NULL : b->name,
                                                 .kind = b->kind});
}

static tide_status put_free(writer *w, const tide__torch_item *b, const tide_trace_event *e, bool is_done) {
    return put_event(
        w, &(tide__torch_out_event){.action = is_done ? TIDE__TORCH_OUT_FREE_COMPLETED : TIDE__TORCH_OUT_FREE_REQUESTED,
                                    .addr = b->address,
                                    .size = b->requested,
                                    .stream = b->stream,
                                    .t_ns = e->t_ns,
                                    .scope = e->scope_id});
}

/// A block ends: PyTorch says both, that it was given up and that it went.
static tide_status end_block(writer *w, lane *l, tide__torch_item *b, const tide_trace_event *e) {
    if (!b->is_pending) TIDE_TRY(put_free(w, b, e, false));
    TIDE_TRY(put_free(w, b, e, true));
    w->now = l;
    const tide_status st = tide__torch_space_take(&l->space, b);
    return st == TIDE_ERR_NOMEM ? no_memory(w) : st;
}

/// The lane that has a block; NULL: none, or another one than is written.
static lane *lane_with(writer *w, const tide_trace_event *e, tide__torch_item **out) {
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = w->only != NULL ? w->only : &w->lanes[i];
        *out = tide__torch_space_find(&l->space, e->block_id);
        if (*out != NULL) return l;
        if (w->only != NULL) break;
    }
    return NULL;
}

static tide_status take_alloc(writer *w, const tide_trace_event *e) {
    tide__torch_item *old;
    lane *l = lane_with(w, e, &old);
    if (e->block_id == 0) return TIDE_OK; // noted as a problem of the trace; it is not counted there either
    if (l != NULL) TIDE_TRY(end_block(w, l, old, e));
    TIDE_TRY(lane_of(w, tide_trace_process_of(e->block_id), e->device, &l));
    return l != NULL ? put_block(w, l, e, false) : TIDE_OK;
}

static tide_status take_end(writer *w, const tide_trace_event *e, bool is_done) {
    tide__torch_item *b;
    lane *l = lane_with(w, e, &b);
    if (l == NULL) return TIDE_OK;
    if (is_done) return end_block(w, l, b, e);
    if (b->is_pending) return TIDE_OK;
    b->is_pending = true;
    return put_free(w, b, e, false);
}

/// The blocks that a discarded pool ends.
static tide_status take_discard(writer *w, const tide_trace_event *e) {
    lane *l;
    TIDE_TRY(lane_of(w, e->process, e->device, &l));
    for (size_t i = 0; l != NULL && i < l->space.n_items; i++) {
        tide__torch_item *b = &l->space.items[i];
        if (b->block_id == 0 || b->is_moved || b->address - e->address >= e->reserved_bytes) continue;
        TIDE_TRY(end_block(w, l, b, e));
    }
    return TIDE_OK;
}

/// What a lane of a process that has ended still had.
static tide_status end_lane(writer *w, lane *l, const tide_trace_event *e) {
    tide_block_span span;
    for (size_t i = 0; i < l->space.n_items; i++)
        if (l->space.items[i].block_id != 0) TIDE_TRY(end_block(w, l, &l->space.items[i], e));
    w->now = l;
    for (uint64_t at = 0; tide_block_tree_at_least(&l->space.segments, (tide_block_span){.begin = at}, &span);
         at = span.begin + span.bytes) {
        const tide_status st = tide__torch_space_shrink(&l->space, span.begin, span.bytes);
        if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? no_memory(w) : st;
    }
    return TIDE_OK;
}

static tide_status take_process_end(writer *w, const tide_trace_event *e) {
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = &w->lanes[i];
        if (l->process == e->process && (w->only == NULL || w->only == l)) TIDE_TRY(end_lane(w, l, e));
    }
    return TIDE_OK;
}

static tide_status take_segment(writer *w, const tide_trace_event *e, bool comes) {
    lane *l;
    TIDE_TRY(lane_of(w, e->process, e->device, &l));
    if (l == NULL) return TIDE_OK;
    w->segment_scope = e->scope_id;
    const tide_status st = comes ? tide__torch_space_grow(&l->space, e->address, e->reserved_bytes, e->stream)
                                 : tide__torch_space_shrink(&l->space, e->address, e->reserved_bytes);
    w->segment_scope = 0;
    return st == TIDE_ERR_NOMEM ? no_memory(w) : st;
}

// ---- moments ----

/// Whether a mark or a gap stands in the list that is written.
static bool is_here(const writer *w, const tide_trace_event *e) {
    if (w->only == NULL) return false;
    const lane *l = NULL;
    const uint32_t process = process_of(w, e->thread);
    for (size_t i = 0; i < w->n_lanes && l == NULL && e->device[0] != '\0'; i++)
        if (w->lanes[i].process == process && strcmp(w->lanes[i].device, e->device) == 0) l = &w->lanes[i];
    return (l != NULL ? l : lane_of_thread(w, e->thread)) == w->only;
}

static tide_status put_mark(writer *w, uint64_t t_ns, const char *text) {
    const char *metadata = strcmp(text, "snapshot") != 0 ? text : NULL;
    return put_event(w,
                     &(tide__torch_out_event){.action = TIDE__TORCH_OUT_SNAPSHOT, .t_ns = t_ns, .metadata = metadata});
}

/// The bytes that the mark behind a failed request says the device had left.
static bool says_free(const tide_trace_event *e, uint64_t *bytes) {
    static const char begin[] = "out of memory: asked for ", before[] = ", the device had ", behind[] = " free";
    char number[32];
    const char *at = strncmp(e->name, begin, sizeof begin - 1) == 0 ? strstr(e->name, before) : NULL;
    if (at == NULL) return false;
    at += sizeof before - 1;
    const char *end = strstr(at, behind);
    if (end == NULL || end[sizeof behind - 1] != '\0' || (size_t)(end - at) >= sizeof number) return false;
    snprintf(number, sizeof number, "%.*s", (int)(end - at), at);
    return tide_parse_bytes(number, bytes, NULL) == TIDE_OK;
}

/// What waits, if something does: `next` (NULL: nothing comes) may belong to it, and is done with then.
static tide_status put_waiting(writer *w, const tide_trace_event *next, bool *is_done) {
    const waiting it = w->waiting;
    const tide_trace_event *e = &it.event;
    const bool is_mark = next != NULL && strcmp(next->op, "snapshot") == 0;
    uint64_t free_bytes = 0;
    *is_done = false;
    w->waiting.what = WAITS_NOT;
    if (it.what == WAITS_MARK) {
        *is_done = is_mark && next->t_ns == e->t_ns && strcmp(next->name, "snapshot") == 0 && is_here(w, next);
        return put_mark(w, e->t_ns, e->name);
    }
    if (it.what != WAITS_FAILURE) return TIDE_OK;
    *is_done = is_mark && says_free(next, &free_bytes);
    return put_event(w, &(tide__torch_out_event){.action = TIDE__TORCH_OUT_OOM,
                                                 .addr = free_bytes,
                                                 .size = e->requested_bytes,
                                                 .stream = e->stream,
                                                 .t_ns = e->t_ns,
                                                 .scope = e->scope_id});
}

static tide_status take_oom(writer *w, const tide_trace_event *e) {
    lane *l;
    TIDE_TRY(lane_of(w, process_of(w, e->thread), e->device, &l));
    if (l != NULL && w->only != NULL) w->waiting = (waiting){WAITS_FAILURE, *e};
    return TIDE_OK;
}

static bool is_annotation(const writer *w, const tide_trace_event *e) {
    const tide_trace_scope s = tide_trace_scope_at(w->t, e->scope_id);
    return e->scope_id != 0 && !s.is_operator && !s.is_frame;
}

static tide_status take_mark(writer *w, const tide_trace_event *e) {
    // What a region's begin says already.
    if (w->entered != NULL && w->t_entered == e->t_ns && strcmp(w->entered, e->name) == 0) return TIDE_OK;
    if (!is_here(w, e)) return TIDE_OK;
    if (strcmp(e->name, "snapshot") == 0) return put_mark(w, e->t_ns, e->name);
    w->waiting = (waiting){WAITS_MARK, *e};
    return TIDE_OK;
}

static tide_status take_gap(writer *w, const tide_trace_event *e) {
    char text[64];
    if (!is_here(w, e)) return TIDE_OK;
    snprintf(text, sizeof text, "%" PRIu64 " events were lost", e->requested_bytes);
    return put_mark(w, e->t_ns, text);
}

static void take_scope(writer *w, const tide_trace_event *e, bool enters) {
    if (!is_annotation(w, e)) return;
    w->n_marked_scopes += w->only == NULL;
    w->entered = enters ? e->scope : NULL;
    w->t_entered = e->t_ns;
}

// ---- events ----

/// Whether an event is one of those that the import of a snapshot put first: what was there before its recording.
static bool is_of_begin(writer *w, const tide_trace_event *e, int what) {
    if (!w->is_begin || e->t_ns != w->extent.begin_ns) return false;
    if (what == TIDE_MEM_SEGMENT_ALLOC)
        return e->scope_id == 0 && w->n_begun < w->n_before; // the last of them are blocks
    if (what == TIDE_MEM_FREE_REQUESTED) return w->n_begun > 0;
    if (what != TIDE_MEM_ALLOC || w->n_begun >= w->n_before) return false;
    w->n_begun++;
    return true;
}

static tide_status take_event(writer *w, const tide_trace_event *e) {
    const int what = e->code;
    bool is_done = false;
    w->is_begin = is_of_begin(w, e, what);
    w->t_ns = e->t_ns;
    if (w->waiting.what != WAITS_NOT) TIDE_TRY(put_waiting(w, e, &is_done));
    if (is_done) return TIDE_OK;
    switch (what) {
    case TIDE_MEM_ALLOC:
        return take_alloc(w, e);
    case TIDE_MEM_FREE_REQUESTED:
    case TIDE_MEM_FREE_COMPLETED:
        return take_end(w, e, what == TIDE_MEM_FREE_COMPLETED);
    case TIDE_MEM_POOL_DISCARD:
        return take_discard(w, e);
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
        return take_segment(w, e, what == TIDE_MEM_SEGMENT_ALLOC);
    case TIDE_MEM_OOM:
        return take_oom(w, e);
    case TIDE_MEM_SNAPSHOT:
        return take_mark(w, e);
    case TIDE_TRACE_PROCESS_END:
        return take_process_end(w, e);
    case TIDE_TRACE_GAP:
        return take_gap(w, e);
    case TIDE_TRACE_SCOPE_ENTER:
    case TIDE_TRACE_SCOPE_LEAVE:
        take_scope(w, e, what == TIDE_TRACE_SCOPE_ENTER);
        return TIDE_OK;
    default:
        return TIDE_OK;
    }
}

static tide_status each_event(writer *w, tide_status (*take)(writer *w, const tide_trace_event *e)) {
    tide_trace_event *events;
    TIDE_TRY(TIDE_NEW(&events, BATCH, w->err, "for events"));
    tide_status st = TIDE_OK;
    size_t n = 1;
    for (uint64_t next = w->extent.first_event; next <= w->extent.last_event && n > 0 && st == TIDE_OK; next += n) {
        const uint64_t left = w->extent.last_event - next + 1;
        st = tide_trace_events(w->t, next, events, left < BATCH ? (size_t)left : BATCH, &n, w->err);
        for (size_t i = 0; i < n && st == TIDE_OK; i++) st = take(w, &events[i]);
    }
    tide_host_free(events);
    return st;
}

// ---- what was there before ----

static int by_alloc(const void *a, const void *b) {
    const tide_live *x = a, *y = b;
    return (x->alloc_event > y->alloc_event) - (x->alloc_event < y->alloc_event);
}

static tide_status find_older(writer *w) {
    const tide_trace_segment *segments;
    size_t n;
    const uint64_t first = w->extent.first_event;
    if (first <= 1) return TIDE_OK;
    TIDE_TRY(tide_trace_live_set_after(w->t, first - 1, &w->older.blocks, w->err));
    if (w->older.blocks.n > 0) qsort(w->older.blocks.items, w->older.blocks.n, sizeof *w->older.blocks.items, by_alloc);
    TIDE_TRY(tide_trace_segments(w->t, NULL, &segments, &n, w->err));
    TIDE_TRY(TIDE_NEW(&w->older.segments, n, w->err, "for the segments of a trace"));
    for (size_t i = 0; i < n; i++)
        if (segments[i].begin_event < first && segments[i].end_event >= first)
            w->older.segments[w->older.n_segments++] = segments[i];
    return TIDE_OK;
}

static tide_status take_older(writer *w) {
    lane *l;
    for (size_t i = 0; i < w->older.n_segments; i++) {
        const tide_trace_segment *g = &w->older.segments[i];
        TIDE_TRY(lane_of(w, g->process, g->device, &l));
        if (l != NULL && tide__torch_space_grow(&l->space, g->address, g->bytes, 0) != TIDE_OK) return no_memory(w);
    }
    for (size_t i = 0; i < w->older.blocks.n; i++) {
        const tide_live *b = &w->older.blocks.items[i];
        const tide_trace_event e = {.block_id = b->block_id,
                                    .requested_bytes = b->requested_bytes,
                                    .reserved_bytes = b->reserved_bytes,
                                    .address = b->address,
                                    .stream = b->stream,
                                    .kind = tide_memory_kind_name(b->kind),
                                    .name = b->name,
                                    .scope_id = b->scope_id};
        TIDE_TRY(lane_of(w, tide_trace_process_of(b->block_id), b->device, &l));
        if (l != NULL) TIDE_TRY(put_block(w, l, &e, b->free_requested));
    }
    return TIDE_OK;
}

/// All of one lane, or of all of them at the first look.
static tide_status take_all(writer *w, lane *only) {
    bool is_done;
    w->only = only;
    w->n_begun = 0;
    w->entered = NULL;
    w->is_begin = true;
    TIDE_TRY(take_older(w));
    w->is_begin = w->is_torch && w->extent.first_event <= 1;
    TIDE_TRY(each_event(w, take_event));
    w->is_begin = false;
    return put_waiting(w, NULL, &is_done);
}

// ---- the whole ----

/// The first look: which devices there are, and how their segments end.
static tide_status look(writer *w) {
    TIDE_TRY(take_all(w, NULL));
    lane *l;
    if (w->n_lanes == 0) TIDE_TRY(lane_of(w, 0, "cpu", &l));
    for (size_t i = 0; i < w->n_lanes; i++) {
        l = &w->lanes[i];
        l->is_mapped = l->space.is_mapped;
        tide__torch_space_deinit(&l->space);
        l->space = (tide__torch_space)TIDE__TORCH_SPACE(segment_told, w);
    }
    number_lanes(w);
    return TIDE_OK;
}

static tide_status put_traces(writer *w) {
    tide_pickle_out *p = &w->pen.pickle;
    tide__torch_pen_key(&w->pen, "device_traces");
    tide_pickle_list(p);
    uint32_t number = 0;
    for (size_t i = 0; i < w->n_lanes; i++, number++) {
        for (; number < w->lanes[i].number; number++) { // devices that are not there
            tide_pickle_list(p);
            tide_pickle_close(p);
        }
        tide_pickle_list(p);
        TIDE_TRY(take_all(w, &w->lanes[i]));
        w->report.n_passed += w->lanes[i].space.n_passed;
        TIDE_ASSERT(w->lanes[i].space.is_mapped == w->lanes[i].is_mapped); // it went as at the first look
        tide_pickle_close(p);
    }
    tide_pickle_close(p);
    return TIDE_OK;
}

static tide_status put_segments(writer *w) {
    tide__torch_pen_key(&w->pen, "segments");
    tide_pickle_list(&w->pen.pickle);
    for (size_t i = 0; i < w->n_lanes; i++)
        TIDE_TRY(tide__torch_pen_state(&w->pen, &w->lanes[i].space, w->lanes[i].number, !w->is_torch));
    tide_pickle_close(&w->pen.pickle);
    return TIDE_OK;
}

static tide_status put_settings(writer *w) {
    char text[512];
    tide_pytorch_options o = {0};
    const bool has = tide_trace_meta(w->t, "pytorch_settings", text, sizeof text, NULL) == TIDE_OK;
    if (has && tide_pytorch_options_parse(text, &o, NULL) != TIDE_OK) o = (tide_pytorch_options){0};
    tide__torch_pen_key(&w->pen, "allocator_settings");
    return tide__torch_pen_settings(&w->pen, &o);
}

static tide_status put_annotation(writer *w, const tide_trace_event *e) {
    const int what = e->code;
    if ((what != TIDE_TRACE_SCOPE_ENTER && what != TIDE_TRACE_SCOPE_LEAVE) || !is_annotation(w, e)) return TIDE_OK;
    tide__torch_pen_annotation(&w->pen, what == TIDE_TRACE_SCOPE_LEAVE, e->scope, lane_of_thread(w, e->thread)->number,
                               e->t_ns);
    return tide__torch_pen_flush(&w->pen, false);
}

static tide_status put_annotations(writer *w) {
    tide__torch_pen_key(&w->pen, "external_annotations");
    tide_pickle_list(&w->pen.pickle);
    if (w->n_marked_scopes > 0) TIDE_TRY(each_event(w, put_annotation));
    tide_pickle_close(&w->pen.pickle);
    return TIDE_OK;
}

/// Which list is whose: a snapshot of PyTorch knows nothing but numbers.
static void put_lists(writer *w) {
    tide_pickle_out *p = &w->pen.pickle;
    tide__torch_pen_key(&w->pen, "tidemark");
    tide_pickle_dict(p);
    tide__torch_pen_key(&w->pen, "lists");
    tide_pickle_list(p);
    for (size_t i = 0; i < w->n_lanes; i++) {
        int64_t pid = -1;
        for (size_t k = 0; k < w->n_threads; k++)
            if (w->threads[k].process == w->lanes[i].process) pid = w->threads[k].pid;
        tide_pickle_dict(p);
        tide__torch_pen_key(&w->pen, "number");
        tide_pickle_u64(p, w->lanes[i].number);
        tide__torch_pen_key(&w->pen, "device_name");
        tide_pickle_text(p, w->lanes[i].device);
        tide__torch_pen_key(&w->pen, "process");
        tide_pickle_u64(p, w->lanes[i].process);
        tide__torch_pen_key(&w->pen, "pid");
        tide_pickle_i64(p, pid);
        tide_pickle_close(p);
    }
    tide_pickle_close(p);
    tide_pickle_close(p);
}

static tide_status write_all(writer *w, int64_t run_id) {
    char format[64] = "", before[32] = "";
    TIDE_TRY(tide_trace_get_extent(w->t, run_id, &w->extent, w->err));
    TIDE_TRY(tide_trace_threads(w->t, &w->threads, &w->n_threads, w->err));
    w->is_torch = tide_trace_meta(w->t, "imported_format", format, sizeof format, NULL) == TIDE_OK &&
                  tide_import_is_torch(format);
    if (w->is_torch && tide_trace_meta(w->t, "imported_blocks_before", before, sizeof before, NULL) == TIDE_OK)
        w->n_before = strtoull(before, NULL, 10);
    TIDE_TRY(find_older(w));
    TIDE_TRY(look(w));
    tide_pickle_dict(&w->pen.pickle);
    TIDE_TRY(put_traces(w));
    TIDE_TRY(put_segments(w));
    TIDE_TRY(put_settings(w));
    TIDE_TRY(put_annotations(w));
    put_lists(w);
    tide_pickle_close(&w->pen.pickle);
    tide_pickle_end(&w->pen.pickle);
    return tide__torch_pen_flush(&w->pen, true);
}

tide_status tide_torch_export(tide_trace *t, int64_t run_id, tide_output *out, tide_torch_export_report *report,
                              tide_error *err) {
    writer w = {.t = t, .err = err};
    tide__torch_pen_begin(&w.pen, t, out, err);
    const tide_status st = write_all(&w, run_id);
    *report = w.report;
    for (size_t i = 0; i < w.n_lanes; i++) tide__torch_space_deinit(&w.lanes[i].space);
    tide_host_free(w.lanes);
    tide_host_free(w.threads);
    tide_host_free(w.older.segments);
    tide_live_set_deinit(&w.older.blocks);
    tide__torch_pen_deinit(&w.pen);
    return st;
}
