// SPDX-License-Identifier: MIT
//
// The blocks of a trace in order. See replay.h.
#include <stdlib.h>
#include <string.h>

#include "cli/replay.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/holdings.h"

// ---- what there is ----

static void note_run(cli_replay_source *s, const tide_trace_run *r) {
    if (s->run_id > 0 && r->id != s->run_id) return;
    if (s->model[0] == '\0') snprintf(s->model, sizeof s->model, "%.63s", r->model);
    if (!r->has_plan || strcmp(r->mode, "planned") != 0) return;
    s->n_planned_runs++;
    if (r->plan_bytes > s->plan_bytes) s->plan_bytes = r->plan_bytes;
}

tide_status cli_replay_source_open(cli_replay_source *s, tide_error *err) {
    tide_trace_info info;
    tide_trace_extent extent;
    tide_trace_run *runs = NULL;
    size_t n_runs = 0;
    uint64_t peak_bytes;
    if (s->of_device != NULL) // one that the trace does not know is no device without blocks
        TIDE_TRY(tide_trace_run_peak(s->trace, s->run_id, -1, s->of_device, &peak_bytes, NULL, NULL, err));
    TIDE_TRY(tide_trace_get_info(s->trace, &info, err));
    TIDE_TRY(tide_trace_get_extent(s->trace, s->run_id, &extent, err));
    TIDE_TRY(tide_trace_runs(s->trace, &runs, &n_runs, err));
    s->first_event = extent.first_event;
    s->last_event = extent.last_event;
    s->begin_ns = info.begin_ns;
    s->n_dropped = info.first_kept_event > 0 ? info.first_kept_event - 1 : 0;
    s->is_unfinished = info.state != TIDE_TRACE_COMPLETE;
    s->n_processes = info.n_processes;
    if (tide_trace_meta(s->trace, "pytorch_settings", s->settings, sizeof s->settings, NULL) != TIDE_OK)
        s->settings[0] = '\0';
    for (size_t i = 0; i < n_runs; i++) note_run(s, &runs[i]);
    tide_trace_runs_free(runs);
    return TIDE_OK;
}

bool cli_replay_kind_of(const char *name, tide_memory_kind *out) {
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const char *known = tide_memory_kind_name((tide_memory_kind)k);
        if (name != known && strcmp(name, known) != 0) continue;
        *out = (tide_memory_kind)k;
        return true;
    }
    return false;
}

/// Whether the event is of a block that is asked for.
static bool is_wanted(const cli_replay_source *s, const tide_trace_event *e) {
    tide_memory_kind kind;
    if (s->of_device != NULL && strcmp(s->of_device, e->device) != 0) return false;
    return s->kinds == 0 || (cli_replay_kind_of(e->kind, &kind) && (s->kinds >> kind & 1u) != 0);
}

// ---- which blocks are alive ----

/// A live block of the trace; small, since each event looks for one.
typedef struct live_block {
    uint64_t key; // first: its number, and never 0
    uint64_t slot;
} live_block;

/// Where it lies, which is asked when a pool goes at once.
typedef struct place {
    uint64_t address;
    const char *device;
    uint32_t process;
} place;

typedef struct giving {
    const cli_replay_source *source;
    cli_replay_fn fn;
    void *ctx;
    tide_map live;  // live_block
    place *places;  // by slot [n_slots], owned
    size_t *unused; // [n_unused] slots, owned
    size_t n_unused, cap_unused, n_slots, cap_slots;
} giving;

static tide_status give_alloc(giving *g, const tide_trace_event *e, tide_error *err) {
    live_block b = {.key = e->block_id + 1, .slot = g->n_slots};
    if (tide_map_find(&g->live, b.key) != NULL) return g->fn(g->ctx, TIDE_MEM_ALLOC, e, CLI_REPLAY_NO_SLOT, err);
    if (g->n_unused > 0) {
        b.slot = g->unused[--g->n_unused];
    } else {
        TIDE_TRY(TIDE_GROW(&g->places, &g->cap_slots, g->n_slots + 1, err, "for the blocks of '%s'", g->source->path));
        g->n_slots++;
    }
    g->places[b.slot] = (place){.address = e->address, .device = e->device, .process = e->process};
    if (!tide_map_put(&g->live, &b)) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", g->source->path);
    return g->fn(g->ctx, TIDE_MEM_ALLOC, e, b.slot, err);
}

static tide_status give_end(giving *g, live_block *b, const tide_trace_event *e, tide_error *err) {
    const size_t slot = b->slot;
    tide_map_take(&g->live, b);
    TIDE_TRY(TIDE_GROW(&g->unused, &g->cap_unused, g->n_unused + 1, err, "for the blocks of '%s'", g->source->path));
    TIDE_TRY(g->fn(g->ctx, TIDE_MEM_FREE_COMPLETED, e, slot, err));
    g->unused[g->n_unused++] = slot;
    return TIDE_OK;
}

static bool ends_block(const tide_trace_event *e, const place *at) {
    if (at->process != e->process) return false;
    return e->code == TIDE_TRACE_PROCESS_END ||
           (at->device == e->device && at->address >= e->address && at->address - e->address < e->reserved_bytes);
}

/// The blocks of a pool that goes at once, or of a process, end by one event.
static tide_status give_several(giving *g, const tide_trace_event *e, tide_error *err) {
    uint64_t *keys = NULL;
    size_t n = 0, cap = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < g->live.cap && st == TIDE_OK; i++) {
        const live_block *b = tide_map_at(&g->live, i);
        if (b == NULL || !ends_block(e, &g->places[b->slot])) continue;
        st = TIDE_GROW(&keys, &cap, n + 1, err, "for blocks that end at once");
        if (st == TIDE_OK) keys[n++] = b->key;
    }
    for (size_t i = 0; i < n && st == TIDE_OK; i++) st = give_end(g, tide_map_find(&g->live, keys[i]), e, err);
    tide_host_free(keys);
    return st;
}

/// A process that ends gives back the segments that it had: each as its own event would, by this one.
static tide_status give_segments(giving *g, const tide_trace_event *e, tide_error *err) {
    const tide_trace_segment *segments;
    size_t n;
    TIDE_TRY(tide_trace_segments(g->source->trace, NULL, &segments, &n, err));
    for (size_t i = 0; i < n; i++) {
        const tide_trace_segment *s = &segments[i];
        if (s->end_event != e->id || s->begin_event < g->source->first_event) continue;
        const tide_trace_event back = {.id = e->id,
                                       .t_ns = e->t_ns,
                                       .code = TIDE_MEM_SEGMENT_FREE,
                                       .op = tide_memory_op_name(TIDE_MEM_SEGMENT_FREE),
                                       .reserved_bytes = s->bytes,
                                       .address = s->address,
                                       .kind = tide_memory_kind_name(s->kind),
                                       .device = s->device,
                                       .allocator = s->allocator,
                                       .name = "",
                                       .scope = "",
                                       .scope_index = -1,
                                       .process = s->process};
        if (is_wanted(g->source, &back)) TIDE_TRY(g->fn(g->ctx, TIDE_MEM_SEGMENT_FREE, &back, CLI_REPLAY_NO_SLOT, err));
    }
    return TIDE_OK;
}

// ---- what is alive when it begins ----

static tide_status give_live(giving *g, tide_error *err) {
    tide_trace_event *events;
    size_t n;
    TIDE_TRY(tide_trace_allocs_before(g->source->trace, g->source->first_event, &events, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++)
        if (is_wanted(g->source, &events[i])) st = give_alloc(g, &events[i], err);
    tide_host_free(events);
    return st;
}

// ---- event by event ----

static tide_status give(giving *g, const tide_trace_event *e, tide_error *err) {
    live_block *b;
    switch (e->code) {
    case TIDE_MEM_ALLOC:
        return is_wanted(g->source, e) ? give_alloc(g, e, err) : TIDE_OK;
    case TIDE_MEM_FREE_COMPLETED:
        b = is_wanted(g->source, e) ? tide_map_find(&g->live, e->block_id + 1) : NULL;
        if (b != NULL) return give_end(g, b, e, err);
        return is_wanted(g->source, e) ? g->fn(g->ctx, TIDE_MEM_FREE_COMPLETED, e, CLI_REPLAY_NO_SLOT, err) : TIDE_OK;
    case TIDE_MEM_POOL_DISCARD:
        return give_several(g, e, err);
    case TIDE_TRACE_PROCESS_END:
        TIDE_TRY(give_several(g, e, err));
        return give_segments(g, e, err);
    case TIDE_MEM_OOM:
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
        return is_wanted(g->source, e) ? g->fn(g->ctx, (tide_memory_op)e->code, e, CLI_REPLAY_NO_SLOT, err) : TIDE_OK;
    default:
        return TIDE_OK;
    }
}

static tide_status give_all(giving *g, tide_error *err) {
    enum { BATCH = 4096, AHEAD = 16 };
    const cli_replay_source *s = g->source;
    tide_trace_event *events;
    TIDE_TRY(give_live(g, err));
    TIDE_TRY(TIDE_NEW(&events, BATCH, err, "for the events of '%s'", s->path));
    tide_status st = TIDE_OK;
    size_t n = 0;
    for (uint64_t next = s->first_event; st == TIDE_OK && next <= s->last_event; next += n) {
        const uint64_t left = s->last_event - next + 1;
        st = tide_trace_events(s->trace, next, events, left < BATCH ? (size_t)left : BATCH, &n, err);
        if (st == TIDE_OK && n == 0) break;
        for (size_t i = 0; i < n && st == TIDE_OK; i++) {
            if (i + AHEAD < n) tide_map_prefetch(&g->live, events[i + AHEAD].block_id + 1);
            st = give(g, &events[i], err);
        }
    }
    tide_host_free(events);
    return st;
}

tide_status cli_replay_each(const cli_replay_source *s, cli_replay_fn fn, void *ctx, tide_error *err) {
    giving g = {.source = s, .fn = fn, .ctx = ctx, .live = TIDE_MAP(live_block)};
    const tide_status st = give_all(&g, err);
    tide_map_deinit(&g.live);
    tide_host_free(g.places);
    tide_host_free(g.unused);
    return st;
}
