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

#include "cli/replay.h"
#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"

typedef struct live_block {
    cli_replay_held held; // first
    tide_memory mem;
    tide_stream_id stream; ///< it was allocated on, and filled
} live_block;

/// A stream of the trace and the device's in its place.
typedef struct stream_row {
    uint64_t key; // first; of both below
    uint64_t recorded;
    uint64_t process;
    tide_stream_id here;
} stream_row;

typedef struct replaying {
    const cli_replay_source *source;
    const cli_replay_options *options;
    tide_allocator *a; // the one that is asked: observed, where the replay is recorded
    cli_replay_result *out;
    tide_map live;    // live_block
    tide_map streams; // stream_row
    cli_replay_pattern pattern;
    cli_replay_beside beside;
    cli_replay_times *alloc_times, *free_times; // owned
    uint64_t requested_bytes;
    tide_observer observer;
    tide_scope scope; // that what is allocated now belongs to
    bool in_scope;
} replaying;

// ---- streams ----

static stream_row *find_stream(const replaying *r, uint64_t key, uint32_t process, uint64_t recorded) {
    stream_row *row = tide_map_find(&r->streams, key);
    while (row != NULL && (row->recorded != recorded || row->process != process)) row = tide_map_next(&r->streams, row);
    return row;
}

/// The default stream stays the default stream.
static tide_status stream_of(replaying *r, const tide_trace_event *e, tide_stream_id *out, tide_error *err) {
    *out = 0;
    if (e->stream == 0) return TIDE_OK;
    const uint64_t key = tide_hash_u64(tide_hash_u64(TIDE_HASH_START, e->process), e->stream) | 1;
    const stream_row *known = find_stream(r, key, e->process, e->stream);
    if (known != NULL) {
        *out = known->here;
        return TIDE_OK;
    }
    stream_row row = {.key = key, .recorded = e->stream, .process = e->process};
    TIDE_TRY(tide_stream_create(r->options->device, &row.here, err));
    if (!tide_map_put(&r->streams, &row)) {
        tide_stream_destroy(r->options->device, row.here);
        return TIDE_NO_MEMORY(err, "for the streams of '%s'", r->source->path);
    }
    *out = row.here;
    r->out->n_streams++;
    return TIDE_OK;
}

static void destroy_streams(replaying *r) {
    for (size_t i = 0; i < r->streams.cap; i++) {
        const stream_row *row = tide_map_at(&r->streams, i);
        if (row != NULL) tide_stream_destroy(r->options->device, row->here);
    }
    tide_map_deinit(&r->streams);
}

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
    if (!cli_replay_is_before(&r->beside.before, TIDE_MEM_ALLOC, e))
        raise(&out->worst_idle_bytes, s->reserved_bytes - s->active_bytes);
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
    tide_allocator_stats s;
    tide_allocator_get_stats(r->a, &s);
    r->out->failure = (cli_replay_failure){.event = e->id,
                                           .since_begin_ns = since_begin(r, e),
                                           .asked_bytes = e->requested_bytes,
                                           .requested_bytes = r->requested_bytes,
                                           .active_bytes = s.active_bytes,
                                           .reserved_bytes = s.reserved_bytes};
    snprintf(r->out->failure.name, sizeof r->out->failure.name, "%.63s", e->name);
    snprintf(r->out->failure.why, sizeof r->out->failure.why, "%.511s", why);
}

// ---- frees ----

/// On the stream that filled it: another one would have to wait for that first.
static tide_status check_block(replaying *r, const live_block *b, const tide_trace_event *e, tide_error *err) {
    uint64_t n_wrong = 0;
    TIDE_TRY(cli_replay_pattern_check(&r->pattern, b->stream, b->mem.data, b->mem.requested_bytes, b->held.key,
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

/// @param e  NULL: none ended it
static tide_status free_block(replaying *r, live_block *b, tide_stream_id stream, const tide_trace_event *e,
                              tide_error *err) {
    if (r->options->check) TIDE_TRY(check_block(r, b, e, err));
    const tide_memory mem = b->mem;
    tide_map_take(&r->live, b);
    r->requested_bytes -= mem.requested_bytes;
    const uint64_t begin = tide_now_ns();
    tide_allocator_release(r->a, &mem, stream);
    const uint64_t end = tide_now_ns();
    if (e != NULL) cli_replay_times_add(r->free_times, end - begin);
    r->out->n_frees += e != NULL;
    return TIDE_OK;
}

static tide_status discard(replaying *r, const tide_trace_event *e, tide_error *err) {
    uint64_t *keys = NULL;
    size_t n = 0;
    tide_stream_id stream;
    TIDE_TRY(stream_of(r, e, &stream, err));
    TIDE_TRY(cli_replay_discarded(&r->live, e, &keys, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++)
        st = free_block(r, tide_map_find(&r->live, keys[i]), stream, e, err);
    tide_host_free(keys);
    return st;
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
static bool is_within(const replaying *r, tide_allocator_stats *s) {
    tide_allocator_get_stats(r->a, s);
    if (r->options->limit_bytes == 0 || s->reserved_bytes <= r->options->limit_bytes) return true;
    tide_allocator_trim(r->a);
    tide_allocator_get_stats(r->a, s);
    return s->reserved_bytes <= r->options->limit_bytes;
}

static tide_status keep(replaying *r, const tide_trace_event *e, const live_block *b, tide_error *err) {
    tide_allocator_stats s;
    if (!is_within(r, &s)) {
        char why[160], limit[24], reserved[24];
        snprintf(why, sizeof why, "%s would be reserved, the limit is %s",
                 tide_format_bytes(s.reserved_bytes, reserved, sizeof reserved),
                 tide_format_bytes(r->options->limit_bytes, limit, sizeof limit));
        tide_allocator_release(r->a, &b->mem, b->stream);
        tide_allocator_trim(r->a);
        note_failure(r, e, why);
        return TIDE_OK;
    }
    if (!tide_map_put(&r->live, b)) {
        tide_allocator_release(r->a, &b->mem, b->stream);
        return TIDE_NO_MEMORY(err, "for the blocks of '%s'", r->source->path);
    }
    r->requested_bytes += b->mem.requested_bytes;
    r->out->n_allocs++;
    note_moment(r, e, &s);
    if (!r->options->check) return TIDE_OK;
    return cli_replay_pattern_fill(&r->pattern, b->stream, b->mem.data, b->mem.requested_bytes, b->held.key, err);
}

static tide_status alloc_block(replaying *r, const tide_trace_event *e, tide_error *err) {
    live_block b = {.held = cli_replay_held_of(e)};
    if (e->requested_bytes == 0 || tide_map_find(&r->live, b.held.key) != NULL) return TIDE_OK;
    TIDE_TRY(stream_of(r, e, &b.stream, err));
    enter_scope(r, e);
    const tide_alloc_request request = {.size_bytes = e->requested_bytes,
                                        .kind = kind_of(r, e),
                                        .stream = b.stream,
                                        .block_id = tide_block_new_id(),
                                        .tag = e->name};
    tide_error refused = TIDE_ERROR_INIT;
    cli_replay_beside_alloc(&r->beside, e);
    const uint64_t begin = tide_now_ns();
    const tide_status st = tide_allocator_alloc(r->a, &request, &b.mem, &refused);
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
    return keep(r, e, &b, err);
}

static tide_status take_segment(replaying *r, tide_memory_op op, const tide_trace_event *e, tide_error *err) {
    tide_stream_id stream = 0;
    if (r->beside.adopts) TIDE_TRY(stream_of(r, e, &stream, err));
    return cli_replay_beside_segment(&r->beside, op, e, stream, err);
}

static tide_status end_block(replaying *r, const tide_trace_event *e, tide_error *err) {
    live_block *b = tide_map_find(&r->live, cli_replay_key(e));
    if (b == NULL) return TIDE_OK; // refused here, or not known: both are counted
    tide_stream_id stream;
    TIDE_TRY(stream_of(r, e, &stream, err));
    return free_block(r, b, stream, e, err);
}

static tide_status replay_event(void *ctx, tide_memory_op op, const tide_trace_event *e, tide_error *err) {
    replaying *r = ctx;
    switch (op) {
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
        return take_segment(r, op, e, err);
    case TIDE_MEM_POOL_DISCARD:
        return discard(r, e, err);
    case TIDE_MEM_ALLOC:
        TIDE_TRY(alloc_block(r, e, err));
        break;
    case TIDE_MEM_FREE_COMPLETED:
        TIDE_TRY(end_block(r, e, err));
        break;
    default:
        return TIDE_OK;
    }
    cli_replay_beside_compare(&r->beside, op, e);
    return TIDE_OK;
}

// ---- begin and end ----

/// Frees what is alive, also after an error; without contents to check.
static void free_rest(replaying *r) {
    for (size_t i = 0; i < r->live.cap; i++) {
        const live_block *b = tide_map_at(&r->live, i);
        if (b != NULL) tide_allocator_release(r->a, &b->mem, b->stream);
    }
    tide_map_deinit(&r->live);
    tide_allocator_trim(r->a); // what is pending is complete behind it
}

/// What is left is checked too, where it lies.
static tide_status check_rest(replaying *r, tide_error *err) {
    for (size_t i = 0; r->options->check && i < r->live.cap; i++) {
        const live_block *b = tide_map_at(&r->live, i);
        if (b != NULL) TIDE_TRY(check_block(r, b, NULL, err));
    }
    return TIDE_OK;
}

static void take_numbers(replaying *r) {
    tide_allocator_stats s;
    cli_replay_result *out = r->out;
    tide_allocator_get_stats(r->a, &s);
    out->n_system = s.n_system;
    out->n_hits = s.n_hits;
    out->end_active_bytes = s.active_bytes;
    out->end_reserved_bytes = s.reserved_bytes;
    out->end_largest_free_bytes = s.largest_free_bytes;
    out->n_leaked = r->live.n;
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
    if (r->options->check) TIDE_TRY(cli_replay_pattern_open(tide_allocator_device(r->a), &r->pattern, err));
    TIDE_TRY(cli_replay_each(r->source, replay_event, r, err));
    leave_scope(r);
    TIDE_TRY(check_rest(r, err));
    take_numbers(r);
    return TIDE_OK;
}

static tide_status replay_with(replaying *r, tide_error *err) {
    const tide_status st = replay_all(r, err);
    leave_scope(r);
    free_rest(r);
    destroy_streams(r);
    cli_replay_pattern_close(&r->pattern);
    tide_host_free(r->alloc_times);
    tide_host_free(r->free_times);
    return st;
}

/// The replay is a run of the recorder's trace.
static tide_status replay_recorded(replaying *r, const char *name, tide_error *err) {
    char device[32], model[224];
    snprintf(model, sizeof model, "%s%s%s", r->source->model, r->source->model[0] != '\0' ? ", " : "", name);
    const tide_run_info info = {.model = model,
                                .source = r->source->path,
                                .mode = "naive",
                                .device = tide_device_format(r->options->device, device, sizeof device)};
    tide_allocator *inner = r->a, *observed = NULL;
    r->observer = tide_recorder_observer(r->options->recorder);
    TIDE_TRY(tide_instrumented_create(inner, &r->observer, &observed, err));
    // A recording that fails (a full disk) does not end the replay: the first error of it is told at the end.
    tide_error of_run = TIDE_ERROR_INIT;
    const bool has_run =
        tide_recorder_begin_run(r->options->recorder, &info, NULL, &r->out->out_run, &of_run) == TIDE_OK;
    r->a = observed;
    const tide_status st = replay_with(r, err);
    const bool ended = has_run && tide_recorder_end_run(r->options->recorder, &of_run) == TIDE_OK;
    if (!ended && r->options->record_error->status == TIDE_OK) *r->options->record_error = of_run;
    tide_allocator_unref(observed);
    return st;
}

tide_status cli_replay_run(const cli_replay_source *s, const cli_replay_options *o, const char *name, tide_allocator *a,
                           cli_replay_result *out, tide_error *err) {
    *out = (cli_replay_result){0};
    snprintf(out->allocator, sizeof out->allocator, "%s", name);
    replaying r = {
        .source = s, .options = o, .a = a, .out = out, .live = TIDE_MAP(live_block), .streams = TIDE_MAP(stream_row)};
    cli_replay_beside_open(&r.beside, s, a, name, &out->like);
    return o->recorder != NULL ? replay_recorded(&r, name, err) : replay_with(&r, err);
}

tide_status cli_replay_with(const cli_replay_source *s, const cli_replay_options *o, const char *name,
                            cli_replay_result *out, tide_error *err) {
    char full[sizeof s->settings + sizeof "pytorch:"];
    tide_allocator *a = NULL;
    snprintf(full, sizeof full, "pytorch:%s", s->settings);
    const bool as_recorded = strcmp(name, "pytorch") == 0;
    TIDE_TRY(tide_allocator_create_on(o->device, as_recorded ? full : name, &a, err));
    const tide_status st = cli_replay_run(s, o, name, a, out, err);
    tide_allocator_unref(a);
    if (st != TIDE_OK) tide_error_prefix(err, "replay with '%s'", name);
    return st;
}
