// SPDX-License-Identifier: MIT
//
// One allocator serves what a trace asked for: streams of the device in place of the recorded ones, times, sums, what
// was refused. See replay.h.
//
// A limit is on what the allocator has reserved when a request was served: past it, it gives back what it keeps
// (tide_allocator_trim), and if that is not enough the block is given back too and counts as refused. While one request
// is served an allocator may hold more for a moment.
#include <stdio.h>
#include <string.h>

#include "cli/replay_servers.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"

typedef struct live_block {
    tide_memory mem;         // data NULL: not served
    tide_stream_id stream;   ///< it was allocated on, and filled
    uint64_t recorded_bytes; ///< that it held in the recorded program
    size_t server;
} live_block;

typedef struct replaying {
    const cli_replay_source *source;
    const cli_replay_options *options;
    cli_replay_servers servers;
    cli_replay_streams streams;
    cli_replay_before before;
    bool is_before; // the event is of what was there before
    cli_replay_result *out;
    live_block *live; // by slot [n_slots], owned
    size_t n_slots, cap_slots, n_live;
    cli_replay_counting *counting; // NULL: not counted
    cli_replay_pattern pattern;
    cli_replay_times *alloc_times, *free_times; // owned
    uint64_t requested_bytes;
    tide_observer observer;
    tide_scope scope; // that what is allocated now belongs to
    bool in_scope;
} replaying;

static tide_status stream_of(replaying *r, const tide_trace_event *e, tide_stream_id *out, tide_error *err) {
    return cli_replay_stream_of(&r->streams, e->process, e->stream, out, err);
}

static tide_allocator *server_of(const replaying *r, const live_block *b) { return r->servers.items[b->server].a; }

// ---- scopes: the trace of the replay says for whom each block was ----

static void leave_scope(replaying *r) {
    if (r->in_scope) tide_scope_leave(&r->scope, &r->observer);
    r->in_scope = false;
}

static void enter_scope(replaying *r, const tide_trace_event *e) {
    if (r->options->recorder == NULL) return;
    const int32_t index = e->scope_index >= 0 && e->scope_index <= INT32_MAX ? (int32_t)e->scope_index : -1;
    if (r->in_scope && r->scope.name == e->scope && r->scope.index == index) return;
    leave_scope(r);
    if (e->scope[0] == '\0') return;
    r->scope = (tide_scope){.name = e->scope, .kind = TIDE_SCOPE_REGION, .index = index};
    tide_scope_enter(&r->scope, &r->observer);
    r->in_scope = true;
}

// ---- sums ----

static uint64_t since_begin(const replaying *r, const tide_trace_event *e) {
    return e->t_ns > r->source->begin_ns ? e->t_ns - r->source->begin_ns : 0;
}
static void raise(uint64_t *most, uint64_t value) {
    if (value > *most) *most = value;
}

/// A block was given. Sums rise at no other moment.
static void note_moment(replaying *r, const tide_trace_event *e, const tide_allocator_stats *s) {
    cli_replay_result *out = r->out;
    raise(&out->active_peak_bytes, s->active_bytes);
    raise(&out->reserved_peak_bytes, s->reserved_bytes);
    if (!r->is_before) raise(&out->worst_idle_bytes, s->reserved_bytes - s->active_bytes);
    const uint64_t held = s->active_bytes - s->pending_bytes; // by blocks that were not given up
    if (held > r->requested_bytes) raise(&out->worst_rounding_bytes, held - r->requested_bytes);
    if (r->requested_bytes <= out->peak.requested_bytes) return;
    out->peak = (cli_replay_moment){.event = e->id,
                                    .since_begin_ns = since_begin(r, e),
                                    .requested_bytes = r->requested_bytes,
                                    .active_bytes = s->active_bytes,
                                    .reserved_bytes = s->reserved_bytes};
}

static void note_failure(replaying *r, const tide_trace_event *e, const char *why) {
    if (r->out->n_failed++ > 0) return;
    const tide_allocator_stats *s = &r->servers.sum;
    r->out->failure = (cli_replay_failure){.event = e->id,
                                           .since_begin_ns = since_begin(r, e),
                                           .asked_bytes = e->requested_bytes,
                                           .requested_bytes = r->requested_bytes,
                                           .active_bytes = s->active_bytes,
                                           .reserved_bytes = s->reserved_bytes};
    snprintf(r->out->failure.name, sizeof r->out->failure.name, "%.63s", e->name);
    snprintf(r->out->failure.why, sizeof r->out->failure.why, "%.511s", why);
}

// ---- frees ----

/// On the stream that filled it: another one would have to wait for that first.
static tide_status check_block(replaying *r, const live_block *b, const tide_trace_event *e, tide_error *err) {
    uint64_t n_wrong = 0;
    TIDE_TRY(cli_replay_pattern_check(&r->pattern, b->stream, b->mem.data, b->mem.requested_bytes, b->mem.block_id,
                                      &n_wrong, err));
    r->out->n_checked++;
    r->out->wrong_bytes += n_wrong;
    if (n_wrong == 0 || r->out->n_wrong_blocks++ > 0) return TIDE_OK;
    r->out->wrong = (cli_replay_failure){.asked_bytes = b->mem.requested_bytes};
    if (e != NULL) r->out->wrong.event = e->id;
    if (e != NULL) r->out->wrong.since_begin_ns = since_begin(r, e);
    snprintf(r->out->wrong.name, sizeof r->out->wrong.name, "%.63s", b->mem.tag);
    return TIDE_OK;
}

static tide_status free_block(replaying *r, live_block *b, tide_stream_id stream, const tide_trace_event *e,
                              tide_error *err) {
    if (r->options->check) TIDE_TRY(check_block(r, b, e, err));
    const live_block was = *b;
    b->mem.data = NULL;
    r->n_live--;
    r->requested_bytes -= was.mem.requested_bytes;
    tide_allocator *const a = server_of(r, &was);
    const uint64_t begin = tide_now_ns();
    tide_allocator_release(a, &was.mem, stream);
    const uint64_t end = tide_now_ns();
    cli_replay_servers_update(&r->servers, was.server);
    cli_replay_servers_compare(&r->servers, was.server, TIDE_MEM_FREE_COMPLETED, e, was.recorded_bytes, r->is_before);
    cli_replay_times_add(r->free_times, end - begin);
    r->out->n_frees++;
    return TIDE_OK;
}

// ---- allocations ----

/// As recorded, where it is legal on the device.
static tide_memory_kind kind_of(const replaying *r, const tide_trace_event *e) {
    tide_memory_kind kind;
    if (!cli_replay_kind_of(e->kind, &kind)) return TIDE_KIND_DEFAULT;
    return tide_memory_kind_check(kind, r->options->device, NULL) == TIDE_OK ? kind : TIDE_KIND_DEFAULT;
}

/// Of an allocator that cannot serve a request, and works on.
static bool is_refusal(tide_status st) {
    return st == TIDE_ERR_NOMEM || st == TIDE_ERR_NO_SPACE || st == TIDE_ERR_OVERFLOW || st == TIDE_ERR_INVALID;
}

/// Whether what is reserved is within the limit, at the worst after giving back what is kept.
static bool is_within(replaying *r) {
    const uint64_t limit = r->options->limit_bytes;
    if (limit == 0 || r->servers.sum.reserved_bytes <= limit) return true;
    cli_replay_servers_trim(&r->servers);
    return r->servers.sum.reserved_bytes <= limit;
}

static void refuse(replaying *r, const tide_trace_event *e, const live_block *b) {
    char why[160], limit[24], reserved[24];
    snprintf(why, sizeof why, "%s would be reserved, the limit is %s",
             tide_format_bytes(r->servers.sum.reserved_bytes, reserved, sizeof reserved),
             tide_format_bytes(r->options->limit_bytes, limit, sizeof limit));
    tide_allocator_release(server_of(r, b), &b->mem, b->stream);
    cli_replay_servers_trim(&r->servers);
    note_failure(r, e, why);
}

static tide_status keep(replaying *r, const tide_trace_event *e, const live_block *b, size_t slot, tide_error *err) {
    cli_replay_servers_update(&r->servers, b->server);
    if (!is_within(r)) {
        refuse(r, e, b);
        return TIDE_OK;
    }
    r->live[slot] = *b;
    r->n_live++;
    r->requested_bytes += b->mem.requested_bytes;
    r->out->n_allocs++;
    note_moment(r, e, &r->servers.sum);
    cli_replay_servers_compare(&r->servers, b->server, TIDE_MEM_ALLOC, e, b->recorded_bytes, r->is_before);
    if (!r->options->check) return TIDE_OK;
    return cli_replay_pattern_fill(&r->pattern, b->stream, b->mem.data, b->mem.requested_bytes, b->mem.block_id, err);
}

/// Room for a block of that number; it is not served yet.
static tide_status make_room(replaying *r, size_t slot, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&r->live, &r->cap_slots, slot + 1, err, "for the blocks of '%s'", r->source->path));
    while (r->n_slots <= slot) r->live[r->n_slots++].mem.data = NULL;
    return TIDE_OK;
}

static tide_status alloc_block(replaying *r, const tide_trace_event *e, size_t slot, tide_error *err) {
    live_block b = {.recorded_bytes = e->reserved_bytes};
    if (slot == CLI_REPLAY_NO_SLOT) return TIDE_OK;
    TIDE_TRY(make_room(r, slot, err));
    if (e->requested_bytes == 0) return TIDE_OK;
    TIDE_TRY(stream_of(r, e, &b.stream, err));
    TIDE_TRY(cli_replay_server_of(&r->servers, e, &b.server, err));
    enter_scope(r, e);
    const tide_memory_kind kind = kind_of(r, e);
    const tide_alloc_request request = {.size_bytes = e->requested_bytes,
                                        .align_bytes = cli_replay_server_align(&r->servers, e, kind),
                                        .kind = kind,
                                        .stream = b.stream,
                                        .block_id = tide_block_new_id(),
                                        .tag = e->name};
    tide_error refused = TIDE_ERROR_INIT;
    if (r->is_before) cli_replay_server_place(&r->servers.items[b.server], e);
    tide_allocator *const a = server_of(r, &b);
    const uint64_t begin = tide_now_ns();
    const tide_status st = tide_allocator_alloc(a, &request, &b.mem, &refused);
    const uint64_t end = tide_now_ns();
    if (is_refusal(st)) {
        note_failure(r, e, refused.msg);
        return TIDE_OK;
    }
    if (st != TIDE_OK) {
        if (err != NULL) *err = refused;
        return st;
    }
    cli_replay_times_add(r->alloc_times, end - begin);
    return keep(r, e, &b, slot, err);
}

static tide_status end_block(replaying *r, const tide_trace_event *e, size_t slot, tide_error *err) {
    if (slot == CLI_REPLAY_NO_SLOT || r->live[slot].mem.data == NULL) return TIDE_OK; // both are counted
    tide_stream_id stream;
    TIDE_TRY(stream_of(r, e, &stream, err));
    return free_block(r, &r->live[slot], stream, e, err);
}

static tide_status replay_event(void *ctx, tide_memory_op op, const tide_trace_event *e, size_t slot, tide_error *err) {
    replaying *r = ctx;
    r->is_before = false;
    if (r->counting != NULL) TIDE_TRY(cli_replay_counting_event(r->counting, op, e, slot, err));
    if (r->source->first_event <= 1) TIDE_TRY(cli_replay_is_before(&r->before, op, e, &r->is_before, err));
    switch (op) {
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
        return cli_replay_servers_segment(&r->servers, op, e, err);
    case TIDE_MEM_ALLOC:
        return alloc_block(r, e, slot, err);
    case TIDE_MEM_FREE_COMPLETED:
        return end_block(r, e, slot, err);
    default:
        return TIDE_OK;
    }
}

// ---- begin and end ----

/// Frees what is alive, also after an error; without contents to check.
static void free_rest(replaying *r) {
    for (size_t i = 0; i < r->n_slots; i++) {
        const live_block *b = &r->live[i];
        if (b->mem.data != NULL) tide_allocator_release(server_of(r, b), &b->mem, b->stream);
    }
    tide_host_free(r->live);
    cli_replay_servers_trim(&r->servers); // what is pending is complete behind it
}

/// What is left is checked too, where it lies.
static tide_status check_rest(replaying *r, tide_error *err) {
    for (size_t i = 0; r->options->check && i < r->n_slots; i++)
        if (r->live[i].mem.data != NULL) TIDE_TRY(check_block(r, &r->live[i], NULL, err));
    return TIDE_OK;
}

static void take_numbers(replaying *r) {
    cli_replay_result *out = r->out;
    const tide_allocator_stats *s = &r->servers.sum;
    for (size_t i = 0; i < r->servers.n; i++) {
        const uint64_t largest = r->servers.items[i].stats.largest_free_bytes;
        if (largest > out->end_largest_free_bytes) out->end_largest_free_bytes = largest;
    }
    out->n_system = s->n_system;
    out->n_hits = s->n_hits;
    out->end_active_bytes = s->active_bytes;
    out->end_reserved_bytes = s->reserved_bytes;
    out->n_streams = r->streams.n_made;
    out->n_leaked = r->n_live;
    out->leaked_bytes = r->requested_bytes;
    out->alloc_median_ns = cli_replay_times_at(r->alloc_times, 0.5);
    out->alloc_p99_ns = cli_replay_times_at(r->alloc_times, 0.99);
    out->free_median_ns = cli_replay_times_at(r->free_times, 0.5);
    out->free_p99_ns = cli_replay_times_at(r->free_times, 0.99);
    if (!r->options->check) out->wrong_bytes = TIDE_UNKNOWN_BYTES;
}

static tide_status replay_all(replaying *r, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&r->alloc_times, 1, err, "for the times of a replay"));
    TIDE_TRY(TIDE_NEW(&r->free_times, 1, err, "for the times of a replay"));
    if (r->options->check) TIDE_TRY(cli_replay_pattern_open(r->servers.device, &r->pattern, err));
    TIDE_TRY(cli_replay_each(r->source, replay_event, r, err));
    leave_scope(r);
    TIDE_TRY(check_rest(r, err));
    take_numbers(r);
    return TIDE_OK;
}

/// @param given  NULL: allocators are made by name
static tide_status replay_with(replaying *r, tide_allocator *given, tide_error *err) {
    tide_status st = cli_replay_servers_open(&r->servers, given, err);
    if (st == TIDE_OK && r->options->count != NULL)
        st = cli_replay_counting_open(r->source, r->options->count, &r->counting, err);
    if (st == TIDE_OK) st = replay_all(r, err);
    cli_replay_counting_close(r->counting);
    leave_scope(r);
    free_rest(r);
    cli_replay_servers_deinit(&r->servers);
    cli_replay_before_deinit(&r->before);
    cli_replay_streams_deinit(&r->streams);
    cli_replay_pattern_close(&r->pattern);
    tide_host_free(r->alloc_times);
    tide_host_free(r->free_times);
    return st;
}

/// The replay is a run of the recorder's trace.
static tide_status replay_recorded(replaying *r, tide_allocator *given, tide_error *err) {
    char device[32], model[224];
    snprintf(model, sizeof model, "%s%s%s", r->source->model, r->source->model[0] != '\0' ? ", " : "",
             r->out->allocator);
    const tide_run_info info = {.model = model,
                                .source = r->source->path,
                                .mode = "naive",
                                .device = tide_device_format(r->options->device, device, sizeof device)};
    r->observer = tide_recorder_observer(r->options->recorder);
    r->servers.observer = r->observer;
    // A recording that fails (a full disk) does not end the replay: the first error of it is told at the end.
    tide_error of_run = TIDE_ERROR_INIT;
    const bool has_run =
        tide_recorder_begin_run(r->options->recorder, &info, NULL, &r->out->out_run, &of_run) == TIDE_OK;
    const tide_status st = replay_with(r, given, err);
    const bool ended = has_run && tide_recorder_end_run(r->options->recorder, &of_run) == TIDE_OK;
    if (!ended && r->options->record_error->status == TIDE_OK) *r->options->record_error = of_run;
    return st;
}

static tide_status replay(const cli_replay_source *s, const cli_replay_options *o, const char *name,
                          tide_allocator *given, cli_replay_result *out, tide_error *err) {
    const tide_device device = given != NULL ? tide_allocator_device(given) : o->device;
    *out = (cli_replay_result){0};
    snprintf(out->allocator, sizeof out->allocator, "%s", name);
    replaying r = {.source = s,
                   .options = o,
                   .servers = {.source = s, .name = name, .device = device, .like = &out->like},
                   .streams = {.device = o->device, .rows = TIDE_MAP(cli_replay_stream)},
                   .out = out};
    r.servers.streams = &r.streams;
    return o->recorder != NULL ? replay_recorded(&r, given, err) : replay_with(&r, given, err);
}

tide_status cli_replay_run(const cli_replay_source *s, const cli_replay_options *o, const char *name, tide_allocator *a,
                           cli_replay_result *out, tide_error *err) {
    return replay(s, o, name, a, out, err);
}

tide_status cli_replay_with(const cli_replay_source *s, const cli_replay_options *o, const char *name,
                            cli_replay_result *out, tide_error *err) {
    const tide_status st = replay(s, o, name, NULL, out, err);
    if (st != TIDE_OK) tide_error_prefix(err, "replay with '%s'", name);
    return st;
}
