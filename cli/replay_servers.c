// SPDX-License-Identifier: MIT
//
// Which allocator of a replay serves which block, on which stream, and what they all have reserved beside what was
// recorded. See replay_servers.h.
#include "cli/replay_servers.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/pytorch.h"

// ---- streams ----

static cli_replay_stream *find_stream(const cli_replay_streams *s, uint64_t key, uint32_t process, uint64_t recorded) {
    cli_replay_stream *row = tide_map_find(&s->rows, key);
    while (row != NULL && (row->recorded != recorded || row->process != process)) row = tide_map_next(&s->rows, row);
    return row;
}

tide_status cli_replay_stream_of(cli_replay_streams *s, uint32_t process, uint64_t recorded, tide_stream_id *out,
                                 tide_error *err) {
    *out = 0;
    if (recorded == 0) return TIDE_OK;
    const uint64_t key = tide_hash_u64(tide_hash_u64(TIDE_HASH_START, process), recorded) | 1;
    const cli_replay_stream *known = find_stream(s, key, process, recorded);
    if (known != NULL) {
        *out = known->here;
        return TIDE_OK;
    }
    cli_replay_stream row = {.key = key, .recorded = recorded, .process = process};
    TIDE_TRY(tide_stream_create(s->device, &row.here, err));
    if (!tide_map_put(&s->rows, &row)) {
        tide_stream_destroy(s->device, row.here);
        return TIDE_NO_MEMORY(err, "for the streams of a replay");
    }
    *out = row.here;
    s->n_made++;
    return TIDE_OK;
}

void cli_replay_streams_deinit(cli_replay_streams *s) {
    for (size_t i = 0; i < s->rows.cap; i++) {
        const cli_replay_stream *row = tide_map_at(&s->rows, i);
        if (row != NULL) tide_stream_destroy(s->device, row->here);
    }
    tide_map_deinit(&s->rows);
}

// ---- servers ----

enum { CPU_ALIGN_BYTES = 64 }; // of every block on the CPU, whatever was asked

/// A segment that PyTorch had before.
typedef struct cli_replay_was {
    uint32_t process;
    const char *device, *allocator; ///< texts of the trace
    uint64_t stream, address, bytes;
    bool has_small, has_large; ///< blocks of that pool lie in it
} cli_replay_was;

static bool is_named_pytorch(const char *name) {
    return strcmp(name, "pytorch") == 0 || strncmp(name, "pytorch:", 8) == 0;
}
/// With settings of its own: these would have made other segments, and what was there before is asked for anew.
static bool is_set(const cli_replay_servers *s) { return strncmp(s->name, "pytorch:", 8) == 0; }
static bool is_as_recorded(const cli_replay_servers *s) { return strcmp(s->name, CLI_REPLAY_AS_RECORDED) == 0; }

static bool is_same(const cli_replay_was *w, const cli_replay_server *server) {
    return w->process == server->process && w->device == server->device && w->allocator == server->allocator;
}

// ---- what was there before ----

typedef struct looking {
    cli_replay_servers *servers;
    cli_replay_before before;
    size_t first; ///< segment of the device that is looked at
    bool is_one_process, is_done;
} looking;

/// The segment of before that the block lies in: those of a device come first, by rising address.
static cli_replay_was *was_of(const looking *l, const tide_trace_event *e) {
    cli_replay_was *const all = l->servers->was;
    size_t lo = l->first, hi = l->servers->n_was;
    while (hi > lo + 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (all[mid].address <= e->address)
            lo = mid;
        else
            hi = mid;
    }
    if (lo >= hi || all[lo].device != e->device || all[lo].process != e->process) return NULL;
    return e->address >= all[lo].address && e->address - all[lo].address < all[lo].bytes ? &all[lo] : NULL;
}

static tide_status add_was(looking *l, const tide_trace_event *e, tide_error *err) {
    cli_replay_servers *s = l->servers;
    TIDE_TRY(TIDE_GROW(&s->was, &s->cap_was, s->n_was + 1, err, "for segments of '%s'", s->source->path));
    const cli_replay_was *last = s->n_was > 0 ? &s->was[s->n_was - 1] : NULL;
    if (last == NULL || last->device != e->device || last->process != e->process) l->first = s->n_was;
    s->was[s->n_was++] = (cli_replay_was){.process = e->process,
                                          .device = e->device,
                                          .allocator = e->allocator,
                                          .stream = e->stream,
                                          .address = e->address,
                                          .bytes = e->reserved_bytes};
    return TIDE_OK;
}

static tide_status look_at(void *ctx, tide_memory_op op, const tide_trace_event *e, size_t slot, tide_error *err) {
    (void)slot;
    enum { SMALL_REQUEST = 1 << 20 };
    looking *l = ctx;
    bool is_before = false;
    TIDE_TRY(cli_replay_is_before(&l->before, op, e, &is_before, err));
    if (is_before && op == TIDE_MEM_SEGMENT_ALLOC) return add_was(l, e, err);
    cli_replay_was *w = is_before ? was_of(l, e) : NULL;
    if (w != NULL && e->requested_bytes <= SMALL_REQUEST) w->has_small = true;
    if (w != NULL && e->requested_bytes > SMALL_REQUEST) w->has_large = true;
    // Of one process nothing of before comes behind its first moment: the rest of the trace need not be read.
    l->is_done = l->is_one_process && e->t_ns != l->before.items[0].begin_ns;
    return l->is_done ? TIDE_ERR_NOT_FOUND : TIDE_OK;
}

/// Of a part of an expandable segment in which nothing lies: it is of the pool of the part that it touches.
static void take_neighbour(cli_replay_was *w, const cli_replay_was *other) {
    const bool touches = other->address + other->bytes == w->address || w->address + w->bytes == other->address;
    if (w->has_small || w->has_large || !touches || w->stream != other->stream || w->device != other->device ||
        w->process != other->process || w->allocator != other->allocator)
        return;
    w->has_small = other->has_small;
    w->has_large = other->has_large;
}

/// The segments of before, and what lies in them.
static tide_status look(cli_replay_servers *s, tide_error *err) {
    looking l = {.servers = s, .is_one_process = s->source->n_processes <= 1};
    const tide_status st = cli_replay_each(s->source, look_at, &l, err);
    cli_replay_before_deinit(&l.before);
    for (size_t i = 1; i < s->n_was; i++) take_neighbour(&s->was[i], &s->was[i - 1]);
    for (size_t i = s->n_was; i-- > 1;) take_neighbour(&s->was[i - 1], &s->was[i]);
    return l.is_done ? TIDE_OK : st;
}

// ---- begin with it ----

/// Recorded addresses of the first server stay what they are; those of others would be the same.
static uint64_t shift_of(size_t server) { return server == 0 ? 0 : (UINT64_C(1) << 62) + ((uint64_t)server << 48); }

static void *place_of(const cli_replay_server *server, uint64_t address) {
    return (void *)(uintptr_t)(address + server->shift); // wraps for an address that no segment has: nothing lies there
}

/// Whether parts of an expandable segment are pages of the small pool: by what lies in them, or else by their size.
static bool is_small(const cli_replay_was *w) {
    enum { LARGE_PAGE = 20 << 20 };
    if (w->has_small != w->has_large) return w->has_small;
    return w->bytes % LARGE_PAGE != 0;
}

static bool are_one_range(const cli_replay_was *a, const cli_replay_was *b) {
    return a->stream == b->stream && is_small(a) == is_small(b);
}

static void count_adopted(cli_replay_servers *s, const cli_replay_was *w) {
    s->like->n_adopted++;
    s->like->adopted_bytes += w->bytes;
}

/// The range that segment `first` is a part of, with all its parts.
static tide_status adopt_range(cli_replay_servers *s, const cli_replay_server *server, size_t first,
                               tide_stream_id stream, tide_error *err) {
    tide_pytorch_part *parts;
    size_t n = 0;
    TIDE_TRY(TIDE_NEW(&parts, s->n_was - first, err, "for segments of '%s'", s->source->path));
    for (size_t i = first; i < s->n_was; i++) {
        const cli_replay_was *w = &s->was[i];
        if (is_same(w, server) && are_one_range(w, &s->was[first]))
            parts[n++] = (tide_pytorch_part){place_of(server, w->address), (size_t)w->bytes};
    }
    const tide_status st = tide_pytorch_adopt_range(server->inner, parts, n, is_small(&s->was[first]), stream, err);
    tide_host_free(parts);
    for (size_t i = first; i < s->n_was && st == TIDE_OK; i++)
        if (is_same(&s->was[i], server) && are_one_range(&s->was[i], &s->was[first])) count_adopted(s, &s->was[i]);
    return st;
}

/// Whether a part before it began the range.
static bool is_begun(const cli_replay_servers *s, const cli_replay_server *server, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (is_same(&s->was[k], server) && are_one_range(&s->was[k], &s->was[i])) return true;
    return false;
}

/// What cannot lie where it lay, or has no room in the memory that there is, is asked for anew.
static tide_status adopt_all(cli_replay_servers *s, cli_replay_server *server, tide_error *err) {
    const bool has_ranges = strstr(s->source->settings, "expandable_segments") != NULL;
    for (size_t i = 0; i < s->n_was; i++) {
        const cli_replay_was *w = &s->was[i];
        tide_error one = TIDE_ERROR_INIT;
        tide_stream_id stream;
        if (!is_same(w, server) || (has_ranges && is_begun(s, server, i))) continue;
        TIDE_TRY(cli_replay_stream_of(s->streams, w->process, w->stream, &stream, err));
        const tide_status st = has_ranges ? adopt_range(s, server, i, stream, &one)
                                          : tide_pytorch_adopt(server->inner, place_of(server, w->address),
                                                               (size_t)w->bytes, stream, &one);
        if (st == TIDE_OK && !has_ranges) count_adopted(s, w);
        if (st != TIDE_OK && st != TIDE_ERR_INVALID && st != TIDE_ERR_NOMEM) {
            if (err != NULL) *err = one;
            return st;
        }
    }
    return TIDE_OK;
}

void cli_replay_server_place(const cli_replay_server *server, const tide_trace_event *e) {
    if (server->adopts) tide_pytorch_place_next(server->inner, place_of(server, e->address), (size_t)e->reserved_bytes);
}

// ---- who serves ----

/// What the trace calls an allocator of ours, as it is asked for by name.
static const char *name_on(tide_device device, const char *recorded) {
    if (device.type == TIDE_DEVICE_CPU) return recorded;
    if (strcmp(recorded, "device") == 0) return "cuda";
    return strcmp(recorded, "stream_caching") == 0 ? "cuda_caching" : recorded;
}

static tide_status make_allocator(const cli_replay_servers *s, const tide_trace_event *e, tide_allocator **out,
                                  tide_error *err) {
    char settings[sizeof s->source->settings + sizeof "pytorch:"];
    snprintf(settings, sizeof settings, "pytorch:%s", s->source->settings);
    if (strcmp(s->name, "pytorch") == 0 || (is_as_recorded(s) && cli_replay_is_pytorch(e)))
        return tide_allocator_create_on(s->device, settings, out, err);
    if (!is_as_recorded(s)) return tide_allocator_create_on(s->device, s->name, out, err);
    const tide_status st = tide_allocator_create_on(s->device, name_on(s->device, e->allocator), out, err);
    char device[32];
    if (st == TIDE_ERR_INVALID) {
        tide_error_note(err, "the trace has blocks of '%.60s' on %.30s, which is not there on %s", e->allocator,
                        e->device, tide_device_format(s->device, device, sizeof device));
        tide_error_hint(err, "--kind and --of choose blocks, --device where they are asked for");
        return TIDE_ERR_NOT_IMPLEMENTED;
    }
    return st;
}

/// Takes `inner`, and is listened to.
static tide_status add_server(cli_replay_servers *s, cli_replay_server *made, tide_error *err) {
    made->a = tide_allocator_ref(made->inner);
    tide_status st = TIDE_OK;
    if (s->observer.on_memory != NULL) {
        tide_allocator_unref(made->a);
        made->a = NULL;
        st = tide_instrumented_create(made->inner, &s->observer, &made->a, err);
    }
    if (st == TIDE_OK) st = TIDE_GROW(&s->items, &s->cap, s->n + 1, err, "for the allocators of a replay");
    if (st != TIDE_OK) {
        tide_allocator_unref(made->a);
        tide_allocator_unref(made->inner);
        return st;
    }
    s->latest = s->n;
    s->items[s->n++] = *made;
    return TIDE_OK;
}

static tide_status make_server(cli_replay_servers *s, const tide_trace_event *e, tide_error *err) {
    const bool is_own = s->by == CLI_REPLAY_EACH || (s->by == CLI_REPLAY_PYTORCH && cli_replay_is_pytorch(e));
    cli_replay_server made = {.shift = shift_of(s->n)};
    if (is_own) {
        made.process = e->process;
        made.device = e->device;
        made.allocator = e->allocator;
        if (!cli_replay_is_pytorch(e)) made.kind = e->kind;
    }
    TIDE_TRY(make_allocator(s, e, &made.inner, err));
    made.adopts = tide_pytorch_is(made.inner) && is_own && s->source->first_event <= 1 && !is_set(s);
    TIDE_TRY(add_server(s, &made, err));
    if (!made.adopts) return TIDE_OK;
    TIDE_TRY(adopt_all(s, &s->items[s->n - 1], err));
    cli_replay_servers_update(s, s->n - 1);
    return TIDE_OK;
}

static bool serves(const cli_replay_servers *s, const cli_replay_server *server, const tide_trace_event *e) {
    if (s->by == CLI_REPLAY_ONE) return true;
    if (server->device == NULL) return !cli_replay_is_pytorch(e);
    return server->process == e->process && server->device == e->device && server->allocator == e->allocator &&
           (server->kind == NULL || server->kind == e->kind);
}

tide_status cli_replay_server_of(cli_replay_servers *s, const tide_trace_event *e, size_t *out, tide_error *err) {
    *out = s->latest;
    if (s->n > 0 && serves(s, &s->items[s->latest], e)) return TIDE_OK;
    for (*out = 0; *out < s->n && !serves(s, &s->items[*out], e);) ++*out;
    if (*out == s->n) TIDE_TRY(make_server(s, e, err));
    s->latest = *out;
    return TIDE_OK;
}

size_t cli_replay_server_align(const cli_replay_servers *s, const tide_trace_event *e, tide_memory_kind kind) {
    uint64_t plain;
    // A trace has no alignments. What a block holds tells whether it had that of its kind.
    const bool is_plain = tide_align_up(e->requested_bytes, CPU_ALIGN_BYTES, &plain) && plain == e->reserved_bytes;
    if (s->by != CLI_REPLAY_EACH || is_plain || s->device.type != TIDE_DEVICE_CPU) return 0;
    return tide_memory_kind_alignment(kind, s->device);
}

// ---- all of them ----

void cli_replay_servers_update(cli_replay_servers *s, size_t i) {
    cli_replay_server *x = &s->items[i];
    const tide_allocator_stats was = x->stats;
    tide_allocator_get_stats(x->a, &x->stats);
    s->sum.active_bytes += x->stats.active_bytes - was.active_bytes;
    s->sum.pending_bytes += x->stats.pending_bytes - was.pending_bytes;
    s->sum.reserved_bytes += x->stats.reserved_bytes - was.reserved_bytes;
    s->sum.n_system += x->stats.n_system - was.n_system;
    s->sum.n_hits += x->stats.n_hits - was.n_hits;
    if (s->n == 1 || x->stats.largest_free_bytes > s->sum.largest_free_bytes)
        s->sum.largest_free_bytes = x->stats.largest_free_bytes;
}

void cli_replay_servers_trim(cli_replay_servers *s) {
    for (size_t i = 0; i < s->n; i++) {
        tide_allocator_trim(s->items[i].a);
        cli_replay_servers_update(s, i);
    }
}

// ---- beside what was recorded ----

/// Of these events the replay follows what the recorded program took and gave back.
static bool is_followed(const cli_replay_servers *s, const tide_trace_event *e) {
    return s->by == CLI_REPLAY_EACH || cli_replay_is_pytorch(e);
}

tide_status cli_replay_servers_segment(cli_replay_servers *s, tide_memory_op op, const tide_trace_event *e,
                                       tide_error *err) {
    size_t i;
    if (!is_followed(s, e)) return TIDE_OK;
    TIDE_TRY(cli_replay_server_of(s, e, &i, err));
    cli_replay_server *x = &s->items[i];
    const bool is_taken = op == TIDE_MEM_SEGMENT_ALLOC;
    x->tells_segments = true;
    if (is_taken)
        x->recorded_segments += e->reserved_bytes;
    else
        x->recorded_segments -= e->reserved_bytes < x->recorded_segments ? e->reserved_bytes : x->recorded_segments;
    if (!is_taken && !x->is_emptying) {
        s->like->n_emptied++;
        tide_allocator_trim(x->a);
        cli_replay_servers_update(s, i);
    }
    x->is_emptying = !is_taken;
    return TIDE_OK;
}

static uint64_t between(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

void cli_replay_servers_compare(cli_replay_servers *s, size_t i, tide_memory_op op, const tide_trace_event *e,
                                uint64_t held, bool is_before) {
    cli_replay_like *out = s->like;
    cli_replay_server *x = &s->items[i];
    x->is_emptying = false;
    x->recorded_blocks = op == TIDE_MEM_ALLOC ? x->recorded_blocks + held : x->recorded_blocks - held;
    if (s->by == CLI_REPLAY_ONE || is_before || s->source->first_event > 1) return;
    if (s->by == CLI_REPLAY_PYTORCH && !x->tells_segments) return;
    // Of the one that served alone: another one may have taken a segment for a block that comes next.
    const uint64_t recorded = x->tells_segments ? x->recorded_segments : x->recorded_blocks;
    const uint64_t replayed = x->tells_segments ? x->stats.reserved_bytes : x->stats.active_bytes;
    const uint64_t apart = between(replayed, recorded);
    out->n_moments++;
    if (apart == 0) return;
    const cli_replay_apart now = {.event = e->id, .recorded_bytes = recorded, .replayed_bytes = replayed};
    if (out->n_apart++ == 0) out->first = now;
    if (apart > between(out->worst.recorded_bytes, out->worst.replayed_bytes)) out->worst = now;
}

// ---- begin and end ----

tide_status cli_replay_servers_open(cli_replay_servers *s, tide_allocator *given, tide_error *err) {
    s->by = given != NULL               ? CLI_REPLAY_ONE
            : is_named_pytorch(s->name) ? CLI_REPLAY_PYTORCH
            : is_as_recorded(s)         ? CLI_REPLAY_EACH
                                        : CLI_REPLAY_ONE;
    if (given != NULL) {
        cli_replay_server made = {.inner = tide_allocator_ref(given)};
        return add_server(s, &made, err);
    }
    const tide_trace_event any = {.allocator = "", .device = "", .kind = ""};
    if (s->by == CLI_REPLAY_ONE) return make_server(s, &any, err);
    return is_set(s) || s->source->first_event > 1 ? TIDE_OK : look(s, err);
}

void cli_replay_servers_deinit(cli_replay_servers *s) {
    for (size_t i = 0; i < s->n; i++) {
        tide_allocator_unref(s->items[i].a);
        tide_allocator_unref(s->items[i].inner);
    }
    tide_host_free(s->items);
    tide_host_free(s->was);
}
