// SPDX-License-Identifier: MIT
//
// A timeline from a run of a trace: its blocks over time, and in planned mode the tensors inside the buffer. See
// timeline.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"
#include "profiler/timeline_internal.h"

/// What is read of the trace before the timeline is put together.
typedef struct source {
    tide_trace_run run; // id 0: the whole of a trace without runs
    tide__span span;
    tide_trace_block *blocks;
    size_t n_blocks;
    tide_trace_step *steps;
    size_t n_steps;
    tide_memory_plan *plan; // NULL: none
    tide_strmap plan_index; // name of a planned tensor -> index
} source;

static void source_deinit(source *s) {
    tide_trace_blocks_free(s->blocks, s->n_blocks);
    tide_trace_steps_free(s->steps, s->n_steps);
    tide_memory_plan_destroy(s->plan);
    tide_strmap_deinit(&s->plan_index);
}

static tide_status find_run(tide_trace *trace, int64_t run_id, tide_trace_run *out, tide_error *err) {
    tide_trace_run *runs;
    size_t n;
    TIDE_TRY(tide_trace_runs(trace, &runs, &n, err));
    tide_status st = TIDE_OK;
    size_t run_i = 0;
    if (run_id != 0) {
        while (run_i < n && runs[run_i].id != run_id) run_i++;
        if (run_i == n) st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no run %" PRId64, trace->path, run_id);
    } else if (n > 0) {
        run_i = n - 1;
    }
    if (st == TIDE_OK) *out = n > 0 ? runs[run_i] : (tide_trace_run){0};
    tide_host_free(runs);
    return st;
}

static tide_status read_plan(tide_trace *trace, source *s, tide_error *err) {
    TIDE_TRY(tide__trace_plan_or_null(trace, s->run.id, &s->plan, err));
    if (s->plan == NULL) return TIDE_OK;
    for (size_t i = 0; i < s->plan->lifetimes.n; i++) {
        if (tide_strmap_put(&s->plan_index, s->plan->lifetimes.items[i].name, i) != TIDE_OK)
            return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a timeline");
    }
    return TIDE_OK;
}

static tide_status read_source(tide_trace *trace, int64_t run_id, source *s, tide_error *err) {
    TIDE_TRY(find_run(trace, run_id, &s->run, err));
    TIDE_TRY(tide__trace_span(trace, s->run.id, &s->span, err));
    TIDE_TRY(tide_trace_blocks(trace, s->run.id, &s->blocks, &s->n_blocks, err));
    if (s->run.id == 0) return TIDE_OK;
    TIDE_TRY(tide_trace_steps(trace, s->run.id, &s->steps, &s->n_steps, err));
    return read_plan(trace, s, err);
}

// ---- items ----

static int64_t cut_to_axis(const tide_timeline *tl, uint64_t t_ns) {
    if (t_ns <= (uint64_t)tl->begin) return tl->begin;
    return t_ns >= (uint64_t)tl->end ? tl->end : (int64_t)t_ns;
}

static tide_status add_block(tide__timeline_builder *b, const source *s, const tide_trace_block *block,
                             tide_error *err) {
    tide_timeline_item item = {.name = block->name,
                               .owner = block->scope,
                               .size_bytes = block->requested_bytes,
                               .reserved_bytes = block->reserved_bytes,
                               .begin = cut_to_axis(b->tl, block->alloc_ns),
                               .end = cut_to_axis(b->tl, block->free_ns),
                               .open_ended = block->free_ns == UINT64_MAX,
                               .kind = block->kind,
                               .role = TIDE_ROLE_INTERMEDIATE,
                               .pool = TIDE_NO_POOL,
                               .offset_bytes = TIDE_NO_OFFSET,
                               .id = block->id};
    uint64_t tensor_i;
    if (tide_strmap_get(&s->plan_index, block->name, &tensor_i)) {
        item.role = s->plan->lifetimes.items[tensor_i].role;
        item.persistent = s->plan->lifetimes.items[tensor_i].persistent;
    }
    return tide__timeline_add_item(b, &item, err);
}

/// The block that is the buffer of the plan's run: the first Workspace block of exactly the size that the plan has for
/// its device. Further contexts have buffers of their own, which stay blocks. *buffer: the plan's entry for it.
static size_t find_buffer(const source *s, const tide_plan_buffer **buffer) {
    if (s->plan == NULL || s->n_steps == 0 || strcmp(s->run.mode, "naive") == 0) return SIZE_MAX;
    for (size_t i = 0; i < s->n_blocks; i++) {
        const tide_trace_block *block = &s->blocks[i];
        tide_device device;
        if (block->kind != TIDE_KIND_WORKSPACE || tide_device_parse(block->device, &device, NULL) != TIDE_OK) continue;
        *buffer = tide_memory_plan_buffer(s->plan, device, block->kind);
        if (*buffer != NULL && (*buffer)->bytes == block->requested_bytes && block->requested_bytes > 0) return i;
    }
    return SIZE_MAX;
}

/// Index of the first step that ran and is not before `step`; n_steps: none. Steps are in order of their index.
static size_t first_step_from(const source *s, int64_t step) {
    size_t lo = 0, hi = s->n_steps;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->steps[mid].index < step) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/// A tensor inside the buffer, at the time at which its steps ran; one whose steps never ran is not drawn.
static tide_status add_tensor(tide__timeline_builder *b, const source *s, size_t tensor_i, tide_error *err) {
    const tide_lifetime *l = &s->plan->lifetimes.items[tensor_i];
    const size_t first = first_step_from(s, l->begin_step), end = first_step_from(s, l->end_step);
    if (first >= end) return TIDE_OK;
    const uint64_t bytes = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : l->size_bytes;
    tide_timeline_item item = {.name = l->name,
                               .owner = s->steps[first].name,
                               .size_bytes = bytes,
                               .reserved_bytes = bytes,
                               .begin = cut_to_axis(b->tl, s->steps[first].begin_ns),
                               .end = cut_to_axis(b->tl, s->steps[end - 1].end_ns),
                               .kind = l->kind,
                               .role = l->role,
                               .pool = s->plan->pools[tensor_i],
                               .offset_bytes = s->plan->offsets[tensor_i],
                               .is_planned = true,
                               .alias = l->alias,
                               .alias_of = l->alias_of,
                               .id = tensor_i};
    if (item.end < item.begin) item.end = item.begin; // steps that ran side by side on several threads
    return tide__timeline_add_item(b, &item, err);
}

static tide_status add_items(tide__timeline_builder *b, const source *s, tide_error *err) {
    const tide_plan_buffer *buffer = NULL;
    const size_t buffer_i = find_buffer(s, &buffer);
    for (size_t i = 0; i < s->n_blocks; i++) {
        if (i != buffer_i) TIDE_TRY(add_block(b, s, &s->blocks[i], err));
    }
    if (buffer_i == SIZE_MAX) return TIDE_OK;
    for (size_t i = 0; i < s->plan->lifetimes.n; i++) {
        const tide_lifetime *l = &s->plan->lifetimes.items[i];
        if (!l->persistent && l->kind == buffer->kind && tide_device_equal(l->device, buffer->device))
            TIDE_TRY(add_tensor(b, s, i, err));
    }
    return TIDE_OK;
}

// ---- curve and steps ----

static tide_status begin_curve(void *ctx, const tide__replay *r) {
    tide__timeline_builder *b = ctx;
    return tide__timeline_add_point(b, b->tl->begin, (uint64_t)r->series[0].live_bytes, NULL);
}

static tide_status add_change(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    tide__timeline_builder *b = ctx;
    if (series == 0) return TIDE_OK;
    return tide__timeline_add_point(b, cut_to_axis(b->tl, (uint64_t)e->t_ns), (uint64_t)r->series[0].live_bytes, NULL);
}

static tide_status add_steps(tide__timeline_builder *b, const source *s, tide_error *err) {
    TIDE_TRY(tide__timeline_reserve_steps(b, s->n_steps, err));
    for (size_t i = 0; i < s->n_steps; i++)
        TIDE_TRY(tide__timeline_add_step(b, s->steps[i].name, cut_to_axis(b->tl, s->steps[i].begin_ns), err));
    return TIDE_OK;
}

static tide_status build(tide_trace *trace, source *s, tide_timeline **out, tide_error *err) {
    tide__timeline_builder b;
    TIDE_TRY(tide__timeline_begin(&b, TIDE_AXIS_NS, s->run.model, s->run.mode, s->run.strategy, err));
    b.tl->begin = (int64_t)s->span.begin_ns;
    b.tl->end = (int64_t)s->span.end_ns;
    if (b.tl->end == b.tl->begin && b.tl->end < INT64_MAX) b.tl->end++; // an axis has a length
    tide_status st = add_items(&b, s, err);
    if (st == TIDE_OK)
        st = tide__trace_walk(trace, s->span.first_event, s->span.last_event, begin_curve, add_change, &b, err);
    if (st == TIDE_OK) st = add_steps(&b, s, err);
    if (st == TIDE_OK) st = tide_trace_kinds(trace, s->run.id, &b.tl->kinds, &b.tl->n_kinds, err);
    if (st != TIDE_OK) {
        tide_timeline_destroy(b.tl);
        return st;
    }
    if (s->plan != NULL) tide__timeline_set_plan(&b, s->plan);
    s->plan = NULL;
    *out = tide__timeline_finish(&b);
    return TIDE_OK;
}

tide_status tide_timeline_from_trace(tide_trace *trace, int64_t run_id, tide_timeline **out, tide_error *err) {
    source s = {0};
    tide_status st = read_source(trace, run_id, &s, err);
    if (st == TIDE_OK) st = build(trace, &s, out, err);
    source_deinit(&s);
    return st;
}
