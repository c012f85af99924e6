// SPDX-License-Identifier: MIT
//
// What the recorded program did with its blocks: sums, peaks, what was reserved. See replay.h.
#include "cli/replay.h"
#include "core/base/host_alloc.h"

/// An allocator of the recorded program: what it took from the system is known when it told of segments.
typedef struct owner {
    const char *device, *name; ///< texts of the trace: one text has one address
    uint32_t process;
    bool has_segments;
    uint64_t active_bytes, segment_bytes;
} owner;

typedef struct live_block {
    uint64_t requested_bytes, reserved_bytes;
    size_t owner;
} live_block;

struct cli_replay_counting {
    const cli_replay_source *source;
    cli_replay_recorded *out;
    live_block *blocks; ///< by slot [cap_blocks], owned
    size_t cap_blocks;
    owner *owners; ///< [n_owners], owned
    size_t n_owners, cap_owners, latest;
    uint64_t requested_bytes, active_bytes, reserved_bytes;
    cli_replay_before before;
};
typedef struct cli_replay_counting counting;

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

static void end_block(counting *c, const live_block *b, bool is_left) {
    change_owner(c, &c->owners[b->owner], 0, b->reserved_bytes, false);
    c->requested_bytes -= b->requested_bytes;
    c->active_bytes -= b->reserved_bytes;
    c->out->n_leaked--;
    c->out->n_frees += !is_left;
    c->out->n_left += is_left;
    c->out->left_bytes += is_left ? b->requested_bytes : 0;
}

static tide_status count_alloc(counting *c, const tide_trace_event *e, size_t slot, bool is_before, tide_error *err) {
    live_block b = {.requested_bytes = e->requested_bytes, .reserved_bytes = e->reserved_bytes};
    if (slot == CLI_REPLAY_NO_SLOT) {
        c->out->n_twice++;
        return TIDE_OK;
    }
    TIDE_TRY(owner_of(c, e, &b.owner, err));
    TIDE_TRY(TIDE_GROW(&c->blocks, &c->cap_blocks, slot + 1, err, "for the blocks of '%s'", c->source->path));
    c->blocks[slot] = b;
    change_owner(c, &c->owners[b.owner], b.reserved_bytes, 0, false);
    c->requested_bytes += b.requested_bytes;
    c->active_bytes += b.reserved_bytes;
    c->out->n_allocs++;
    c->out->n_leaked++;
    c->out->n_live_at_begin += e->id < c->source->first_event;
    c->out->n_empty += b.requested_bytes == 0;
    raise(&c->out->largest_bytes, b.requested_bytes);
    note_moment(c, e, is_before);
    return TIDE_OK;
}

tide_status cli_replay_counting_event(cli_replay_counting *c, tide_memory_op op, const tide_trace_event *e, size_t slot,
                                      tide_error *err) {
    size_t at;
    // Of a snapshot all segments come first: they are not idle because their blocks have not come yet.
    bool is_before = false;
    if (c->source->first_event <= 1) TIDE_TRY(cli_replay_is_before(&c->before, op, e, &is_before, err));
    if (op == TIDE_MEM_ALLOC) return count_alloc(c, e, slot, is_before, err);
    if (op == TIDE_MEM_OOM) c->out->n_failed++;
    if (op == TIDE_MEM_FREE_COMPLETED) {
        if (slot != CLI_REPLAY_NO_SLOT)
            end_block(c, &c->blocks[slot], e->code == TIDE_TRACE_PROCESS_END);
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

tide_status cli_replay_counting_open(const cli_replay_source *s, cli_replay_recorded *out, cli_replay_counting **c,
                                     tide_error *err) {
    *out = (cli_replay_recorded){0};
    TIDE_TRY(TIDE_NEW(c, 1, err, "to count the blocks of '%s'", s->path));
    (*c)->source = s;
    (*c)->out = out;
    return TIDE_OK;
}

void cli_replay_counting_close(cli_replay_counting *c) {
    if (c == NULL) return;
    cli_replay_recorded *out = c->out;
    out->leaked_bytes = c->requested_bytes;
    out->end_reserved_bytes = c->reserved_bytes;
    if (c->source->first_event > 1) { // segments are known from their taking alone
        out->reserved_peak_bytes = out->peak.reserved_bytes = TIDE_UNKNOWN_BYTES;
        out->worst_idle_bytes = out->end_reserved_bytes = TIDE_UNKNOWN_BYTES;
    }
    tide_host_free(c->blocks);
    tide_host_free(c->owners);
    cli_replay_before_deinit(&c->before);
    tide_host_free(c);
}

static tide_status count_event(void *ctx, tide_memory_op op, const tide_trace_event *e, size_t slot, tide_error *err) {
    return cli_replay_counting_event(ctx, op, e, slot, err);
}

tide_status cli_replay_count(const cli_replay_source *s, cli_replay_recorded *out, tide_error *err) {
    cli_replay_counting *c;
    TIDE_TRY(cli_replay_counting_open(s, out, &c, err));
    const tide_status st = cli_replay_each(s, count_event, c, err);
    cli_replay_counting_close(c);
    return st;
}
