// SPDX-License-Identifier: MIT
//
// The blocks of a trace in order, and what the recorded program did with them. See replay.h.
#include <stdlib.h>
#include <string.h>

#include "cli/replay.h"
#include "core/base/host_alloc.h"

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

// ---- what is alive when it begins ----

static tide_status give_live(const cli_replay_source *s, cli_replay_fn fn, void *ctx, tide_error *err) {
    tide_trace_event *events;
    size_t n;
    TIDE_TRY(tide_trace_allocs_before(s->trace, s->first_event, &events, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++)
        if (is_wanted(s, &events[i])) st = fn(ctx, TIDE_MEM_ALLOC, &events[i], err);
    tide_host_free(events);
    return st;
}

// ---- event by event ----

/// 0: nothing about a block, a segment or a request.
static tide_memory_op op_of(const tide_trace_event *e) {
    static const tide_memory_op known[] = {TIDE_MEM_ALLOC,         TIDE_MEM_FREE_COMPLETED, TIDE_MEM_OOM,
                                           TIDE_MEM_SEGMENT_ALLOC, TIDE_MEM_SEGMENT_FREE,   TIDE_MEM_POOL_DISCARD};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(e->op, tide_memory_op_name(known[i])) == 0) return known[i];
    }
    return (tide_memory_op)0;
}

tide_status cli_replay_each(const cli_replay_source *s, cli_replay_fn fn, void *ctx, tide_error *err) {
    enum { BATCH = 4096 };
    TIDE_TRY(give_live(s, fn, ctx, err));
    tide_trace_event *events;
    TIDE_TRY(TIDE_NEW(&events, BATCH, err, "for the events of '%s'", s->path));
    tide_status st = TIDE_OK;
    size_t n = 0;
    for (uint64_t next = s->first_event; st == TIDE_OK && next <= s->last_event; next += n) {
        const uint64_t left = s->last_event - next + 1;
        st = tide_trace_events(s->trace, next, events, left < BATCH ? (size_t)left : BATCH, &n, err);
        if (st == TIDE_OK && n == 0) break;
        for (size_t i = 0; i < n && st == TIDE_OK; i++) {
            const tide_memory_op op = op_of(&events[i]);
            if (op != 0 && (op == TIDE_MEM_POOL_DISCARD || is_wanted(s, &events[i]))) st = fn(ctx, op, &events[i], err);
        }
    }
    tide_host_free(events);
    return st;
}

// ---- pools ----

tide_status cli_replay_discarded(const tide_map *live, const tide_trace_event *e, uint64_t **keys, size_t *n,
                                 tide_error *err) {
    size_t cap = 0;
    *keys = NULL;
    *n = 0;
    for (size_t i = 0; i < live->cap; i++) {
        const cli_replay_held *b = tide_map_at(live, i);
        if (b == NULL || b->process != e->process || b->device != e->device || b->address < e->address ||
            b->address - e->address >= e->reserved_bytes)
            continue;
        const tide_status st = TIDE_GROW(keys, &cap, *n + 1, err, "for blocks that are discarded at once");
        if (st != TIDE_OK) {
            tide_host_free(*keys);
            return st;
        }
        (*keys)[(*n)++] = b->key;
    }
    return TIDE_OK;
}

// ---- what was recorded ----

/// An allocator of the recorded program: what it took from the system is known when it told of segments.
typedef struct owner {
    const char *device, *name; ///< texts of the trace: one text has one address
    uint32_t process;
    bool has_segments;
    uint64_t active_bytes, segment_bytes;
} owner;

typedef struct live_block {
    cli_replay_held held; // first
    uint64_t requested_bytes, reserved_bytes;
    size_t owner;
} live_block;

typedef struct counting {
    const cli_replay_source *source;
    cli_replay_recorded *out;
    tide_map live; ///< live_block
    owner *owners; ///< [n_owners], owned
    size_t n_owners, cap_owners, latest;
    uint64_t requested_bytes, active_bytes, reserved_bytes;
    cli_replay_before before;
} counting;

static bool is_owner(const owner *o, const tide_trace_event *e) {
    return o->name == e->allocator && o->device == e->device && o->process == e->process;
}

static tide_status owner_of(counting *c, const tide_trace_event *e, size_t *out, tide_error *err) {
    *out = c->latest;
    if (c->n_owners > 0 && is_owner(&c->owners[c->latest], e)) return TIDE_OK;
    for (*out = 0; *out < c->n_owners && !is_owner(&c->owners[*out], e);) ++*out;
    if (*out == c->n_owners) {
        TIDE_TRY(
            TIDE_GROW(&c->owners, &c->cap_owners, c->n_owners + 1, err, "for allocators of '%s'", c->source->path));
        c->owners[c->n_owners++] = (owner){.device = e->device, .name = e->allocator, .process = e->process};
    }
    c->latest = *out;
    return TIDE_OK;
}

static uint64_t held_of(const owner *o) { return o->has_segments ? o->segment_bytes : o->active_bytes; }

/// Adds `add` and takes `take` of what an owner's blocks hold, or its segments.
static void change_owner(counting *c, owner *o, uint64_t add, uint64_t take, bool is_segment) {
    const uint64_t before = held_of(o);
    if (is_segment)
        o->segment_bytes = o->segment_bytes + add > take ? o->segment_bytes + add - take : 0;
    else
        o->active_bytes = o->active_bytes + add - take;
    o->has_segments = o->has_segments || is_segment;
    c->reserved_bytes = c->reserved_bytes - before + held_of(o);
}

static void raise(uint64_t *most, uint64_t value) {
    if (value > *most) *most = value;
}
static uint64_t above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static void note_moment(counting *c, const tide_trace_event *e, bool is_before) {
    cli_replay_recorded *r = c->out;
    raise(&r->active_peak_bytes, c->active_bytes);
    raise(&r->reserved_peak_bytes, c->reserved_bytes);
    if (!is_before) raise(&r->worst_idle_bytes, above(c->reserved_bytes, c->active_bytes));
    raise(&r->worst_rounding_bytes, above(c->active_bytes, c->requested_bytes));
    if (c->requested_bytes <= r->peak.requested_bytes) return;
    r->peak = (cli_replay_moment){.event = e->id,
                                  .since_begin_ns = above(e->t_ns, c->source->begin_ns),
                                  .requested_bytes = c->requested_bytes,
                                  .active_bytes = c->active_bytes,
                                  .reserved_bytes = c->reserved_bytes};
}

static void end_block(counting *c, live_block *b) {
    change_owner(c, &c->owners[b->owner], 0, b->reserved_bytes, false);
    c->requested_bytes -= b->requested_bytes;
    c->active_bytes -= b->reserved_bytes;
    c->out->n_frees++;
    tide_map_take(&c->live, b);
}

static tide_status count_alloc(counting *c, const tide_trace_event *e, bool is_before, tide_error *err) {
    live_block b = {
        .held = cli_replay_held_of(e), .requested_bytes = e->requested_bytes, .reserved_bytes = e->reserved_bytes};
    if (tide_map_find(&c->live, b.held.key) != NULL) {
        c->out->n_twice++;
        return TIDE_OK;
    }
    TIDE_TRY(owner_of(c, e, &b.owner, err));
    if (!tide_map_put(&c->live, &b)) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", c->source->path);
    change_owner(c, &c->owners[b.owner], b.reserved_bytes, 0, false);
    c->requested_bytes += b.requested_bytes;
    c->active_bytes += b.reserved_bytes;
    c->out->n_allocs++;
    c->out->n_live_at_begin += e->id < c->source->first_event;
    c->out->n_empty += b.requested_bytes == 0;
    raise(&c->out->largest_bytes, b.requested_bytes);
    note_moment(c, e, is_before);
    return TIDE_OK;
}

static tide_status count_discard(counting *c, const tide_trace_event *e, tide_error *err) {
    uint64_t *keys = NULL;
    size_t n = 0;
    TIDE_TRY(cli_replay_discarded(&c->live, e, &keys, &n, err));
    for (size_t i = 0; i < n; i++) end_block(c, tide_map_find(&c->live, keys[i]));
    tide_host_free(keys);
    return TIDE_OK;
}

static tide_status count_event(void *ctx, tide_memory_op op, const tide_trace_event *e, tide_error *err) {
    counting *c = ctx;
    size_t at;
    // Of a snapshot all segments come first: they are not idle because their blocks have not come yet.
    bool is_before = false;
    if (c->source->first_event <= 1) TIDE_TRY(cli_replay_is_before(&c->before, op, e, &is_before, err));
    if (op == TIDE_MEM_ALLOC) return count_alloc(c, e, is_before, err);
    if (op == TIDE_MEM_POOL_DISCARD) return count_discard(c, e, err);
    if (op == TIDE_MEM_OOM) c->out->n_failed++;
    if (op == TIDE_MEM_FREE_COMPLETED) {
        live_block *b = tide_map_find(&c->live, cli_replay_key(e));
        if (b != NULL)
            end_block(c, b);
        else
            c->out->n_unknown_frees++;
    }
    if (op != TIDE_MEM_SEGMENT_ALLOC && op != TIDE_MEM_SEGMENT_FREE) return TIDE_OK;
    TIDE_TRY(owner_of(c, e, &at, err));
    const bool taken = op == TIDE_MEM_SEGMENT_ALLOC;
    change_owner(c, &c->owners[at], taken ? e->reserved_bytes : 0, taken ? 0 : e->reserved_bytes, true);
    c->out->n_segments += taken;
    return TIDE_OK;
}

tide_status cli_replay_count(const cli_replay_source *s, cli_replay_recorded *out, tide_error *err) {
    *out = (cli_replay_recorded){0};
    counting c = {.source = s, .out = out, .live = TIDE_MAP(live_block)};
    const tide_status st = cli_replay_each(s, count_event, &c, err);
    out->n_leaked = c.live.n;
    out->leaked_bytes = c.requested_bytes;
    out->end_reserved_bytes = c.reserved_bytes;
    if (s->first_event > 1) { // segments are known from their taking alone
        out->reserved_peak_bytes = out->peak.reserved_bytes = TIDE_UNKNOWN_BYTES;
        out->worst_idle_bytes = out->end_reserved_bytes = TIDE_UNKNOWN_BYTES;
    }
    tide_map_deinit(&c.live);
    tide_host_free(c.owners);
    cli_replay_before_deinit(&c.before);
    return st;
}
