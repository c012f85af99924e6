// SPDX-License-Identifier: MIT
//
// A snapshot of PyTorch as events of a trace. Its trace of events began at some moment, its segments are the state at
// the end; so what was there before follows from both, and comes first:
//
//     look      the events of each device once: what ends without having begun, and what is left
//     begin     that, and what is in the segments and never began: segments, then blocks, at the first moment
//     events    of all devices in the order of their times, with annotations between them
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"
#include "profiler/import/torch_pool.h"
#include "profiler/import/torch_private.h"
#include "profiler/import/torch_stacks.h"

enum {
    BATCH = 512,
    FIRST_NS = 1,
    MAX_ROWS = 4 * 1000 * 1000, // events that are kept as rows, as of a recording
};

/// A block or segment that was there before the first event.
typedef struct before {
    uint64_t address, bytes, held, stream;
    uint32_t stack;
    bool is_pending;    // its free was requested before the first event too
    bool is_expandable; // of a segment
} before;

/// By address: a live block, or a segment that the events began.
typedef struct live {
    uint64_t key; // address + 1
    int64_t block_id;
    uint64_t bytes, held;
    int32_t scope, name, allocator;
    uint64_t stream;
    bool is_requested;
} live;

/// A device: its events, what is alive, its memory.
typedef struct device {
    int64_t index;
    int16_t id; // in the trace
    int32_t thread;
    tide__torch_track track; // n 0: none
    tide_map live;
    tide__torch_pool pool;
    tide__torch_private private;
    before *blocks, *segments; // [n_...], owned
    size_t n_blocks, cap_blocks, n_segments, cap_segments;
    // where its events are read
    tide__torch_event *batch; // [n_batch]; owned
    size_t at, n_batch;
    uint64_t n_read;
    int64_t last_ns;
    uint32_t metadata;
} device;

typedef struct importer {
    tide__torch_snapshot *s;
    const char *path;
    tide__new_trace *out;
    tide_import_report *report;
    tide__torch_stacks stacks;
    device *devices; // [n_devices]
    size_t n_devices, cap_devices;
    int64_t next_block, allocator;
    size_t next_annotation;
    int64_t begin_ns;
} importer;

static tide_status no_memory(const importer *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->path);
}

// ---- devices ----

static tide_status device_of(importer *m, int64_t index, device **out, tide_error *err) {
    for (size_t i = 0; i < m->n_devices; i++) {
        *out = &m->devices[i];
        if (m->devices[i].index == index) return TIDE_OK;
    }
    if (index < 0 || index > 255) {
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': it has a device %" PRId64, m->path, index);
    }
    TIDE_TRY(TIDE_GROW(&m->devices, &m->cap_devices, m->n_devices + 1, err, "to read '%s'", m->path));
    int64_t id = 0, thread = 0;
    const tide_device named = {.type = TIDE_DEVICE_CUDA, .index = (int)index};
    if (tide__names_device(&m->out->names, named, &id) != TIDE_OK ||
        tide__names_thread(&m->out->names, 1, index + 1, NULL, &thread) != TIDE_OK)
        return no_memory(m, err);
    *out = &m->devices[m->n_devices++];
    **out = (device){.index = index,
                     .id = (int16_t)id,
                     .thread = (int32_t)thread,
                     .live = TIDE_MAP(live),
                     .pool = TIDE__TORCH_POOL(&m->s->settings),
                     .last_ns = FIRST_NS};
    return TIDE_OK;
}

static tide_status find_devices(importer *m, tide_error *err) {
    device *d = NULL;
    for (size_t i = 0; i < m->s->n_tracks; i++) {
        TIDE_TRY(device_of(m, m->s->tracks[i].device, &d, err));
        d->track = m->s->tracks[i];
    }
    for (size_t i = 0; i < m->s->n_segments; i++) TIDE_TRY(device_of(m, m->s->segments[i].device, &d, err));
    for (size_t i = 0; i < m->s->n_annotations; i++) {
        if (m->s->annotations[i].device < 0) m->s->annotations[i].device = 0; // of all devices
        TIDE_TRY(device_of(m, m->s->annotations[i].device, &d, err));
    }
    return TIDE_OK;
}

// ---- events of a device ----

static tide_status read_batch(importer *m, device *d, tide_error *err) {
    const uint64_t left = d->track.n - d->n_read;
    d->at = d->n_batch = 0;
    if (left == 0) return TIDE_OK;
    if (d->batch == NULL) TIDE_TRY(TIDE_NEW(&d->batch, BATCH, err, "to read '%s'", m->path));
    d->n_batch = left < BATCH ? (size_t)left : BATCH;
    const off_t from = (off_t)((d->track.first + d->n_read) * sizeof *d->batch);
    if (fseeko(m->s->spool, from, SEEK_SET) != 0 ||
        fread(d->batch, sizeof *d->batch, d->n_batch, m->s->spool) != d->n_batch)
        return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read the events of '%s' back", m->path);
    d->n_read += d->n_batch;
    return TIDE_OK;
}

static void rewind_events(device *d) { d->n_read = d->at = d->n_batch = 0; }

/// The next event; NULL: there is none.
static tide_status peek(importer *m, device *d, const tide__torch_event **out, tide_error *err) {
    if (d->at == d->n_batch) TIDE_TRY(read_batch(m, d, err));
    TIDE_ASSERT(d->at <= d->n_batch && d->n_read <= d->track.n);
    *out = d->at < d->n_batch ? &d->batch[d->at] : NULL;
    return TIDE_OK;
}

/// One that tells no time stands a microsecond behind the one before it.
static int64_t time_of(const device *d, const tide__torch_event *e) {
    return e->time_us == TIDE__TORCH_NO_TIME ? d->last_ns + 1000 : e->time_us * 1000;
}

// ---- look ----

static tide_status add_before(importer *m, before **list, size_t *n, size_t *cap, const before *b, tide_error *err) {
    TIDE_TRY(TIDE_GROW(list, cap, *n + 1, err, "to read '%s'", m->path));
    (*list)[(*n)++] = *b;
    return TIDE_OK;
}

static tide_status look_at_end(importer *m, device *d, const tide__torch_event *e, tide_error *err) {
    live *b = tide_map_find(&d->live, e->addr + 1);
    const bool is_end = e->action == TIDE__TORCH_FREE_COMPLETED;
    if (b == NULL) {
        const before was = {.address = e->addr,
                            .bytes = e->size,
                            .held = tide_pytorch_round(&m->s->settings, e->size),
                            .stream = e->stream,
                            .is_pending = is_end};
        TIDE_TRY(add_before(m, &d->blocks, &d->n_blocks, &d->cap_blocks, &was, err));
        if (!is_end && !tide_map_put(&d->live, &(live){.key = e->addr + 1})) return no_memory(m, err);
    } else if (is_end) {
        tide_map_take(&d->live, b);
    }
    return TIDE_OK;
}

/// Segments that events began, until they end: whole ones, and parts of expandable ones.
typedef struct begun {
    tide_map whole; // live
    tide__torch_ranges parts;
} begun;

/// What of [address, address + bytes) no event has mapped was there before.
static tide_status add_unmapped(importer *m, device *d, const begun *seen, uint64_t address, uint64_t bytes,
                                uint64_t stream, tide_error *err) {
    const uint64_t behind = address + bytes;
    uint64_t end;
    for (uint64_t at = address; tide__torch_ranges_gap(&seen->parts, &at, behind, &end); at = end) {
        const before b = {.address = at, .bytes = end - at, .stream = stream, .is_expandable = true};
        TIDE_TRY(add_before(m, &d->segments, &d->n_segments, &d->cap_segments, &b, err));
    }
    return TIDE_OK;
}

static tide_status look_at(importer *m, device *d, begun *seen, const tide__torch_event *e, tide_error *err) {
    live entry = {.key = e->addr + 1, .bytes = e->size};
    live *known;
    switch (e->action) {
    case TIDE__TORCH_ALLOC:
        if (tide_map_find(&d->live, entry.key) == NULL && !tide_map_put(&d->live, &entry)) return no_memory(m, err);
        return TIDE_OK;
    case TIDE__TORCH_FREE_REQUESTED:
    case TIDE__TORCH_FREE_COMPLETED:
        return look_at_end(m, d, e, err);
    case TIDE__TORCH_SEGMENT_ALLOC:
        tide__torch_private_count(&d->private, e->addr);
        if (tide_map_find(&seen->whole, entry.key) == NULL && !tide_map_put(&seen->whole, &entry))
            return no_memory(m, err);
        return TIDE_OK;
    case TIDE__TORCH_SEGMENT_FREE:
        known = tide_map_find(&seen->whole, entry.key);
        if (known != NULL) {
            tide_map_take(&seen->whole, known);
            return TIDE_OK;
        }
        return add_before(m, &d->segments, &d->n_segments, &d->cap_segments,
                          &(before){.address = e->addr, .bytes = e->size, .stream = e->stream}, err);
    case TIDE__TORCH_SEGMENT_MAP:
        return tide__torch_ranges_add(&seen->parts, e->addr, e->addr + e->size) == TIDE_OK ? TIDE_OK
                                                                                           : no_memory(m, err);
    case TIDE__TORCH_SEGMENT_UNMAP:
        TIDE_TRY(add_unmapped(m, d, seen, e->addr, e->size, e->stream, err));
        return tide__torch_ranges_cut(&seen->parts, e->addr, e->addr + e->size) == TIDE_OK ? TIDE_OK
                                                                                           : no_memory(m, err);
    default:
        return TIDE_OK;
    }
}

/// What the state at the end has and no event began.
static tide_status look_at_segment(importer *m, device *d, const begun *seen, const tide__torch_segment *g,
                                   tide_error *err) {
    if (g->is_expandable) {
        TIDE_TRY(add_unmapped(m, d, seen, g->address, g->total, g->stream, err));
    } else if (tide_map_find(&seen->whole, g->address + 1) == NULL && g->total > 0) {
        const before b = {.address = g->address, .bytes = g->total, .stream = g->stream};
        TIDE_TRY(add_before(m, &d->segments, &d->n_segments, &d->cap_segments, &b, err));
    }
    for (uint64_t i = g->first_block; i < g->first_block + g->n_blocks; i++) {
        const tide__torch_block *b = &m->s->blocks[i];
        const bool is_live = tide_map_find(&d->live, b->address + 1) != NULL;
        if (b->state == TIDE__TORCH_INACTIVE) continue;
        if (is_live) continue;
        const before was = {.address = b->address,
                            .bytes = b->size,
                            .held = b->size,
                            .stream = g->stream,
                            .stack = b->stack,
                            .is_pending = b->state == TIDE__TORCH_PENDING};
        TIDE_TRY(add_before(m, &d->blocks, &d->n_blocks, &d->cap_blocks, &was, err));
    }
    return TIDE_OK;
}

static tide_status look_at_device(importer *m, device *d, begun *seen, tide_error *err) {
    const tide__torch_event *e;
    for (;; d->at++) {
        TIDE_TRY(peek(m, d, &e, err));
        if (e == NULL) break;
        TIDE_TRY(look_at(m, d, seen, e, err));
        if (e->time_us != TIDE__TORCH_NO_TIME && (m->begin_ns == 0 || e->time_us * 1000 < m->begin_ns))
            m->begin_ns = e->time_us * 1000;
    }
    rewind_events(d);
    for (size_t i = 0; i < m->s->n_segments; i++)
        if (m->s->segments[i].device == d->index) TIDE_TRY(look_at_segment(m, d, seen, &m->s->segments[i], err));
    tide_map_deinit(&d->live);
    return TIDE_OK;
}

// ---- events of the trace ----

static tide__event event_of(const importer *m, const device *d, tide_memory_op op, int64_t t_ns) {
    return (tide__event){.t_ns = t_ns,
                         .thread = d->thread,
                         .device = d->id,
                         .allocator_id = (int32_t)m->allocator,
                         .op = (uint8_t)op,
                         .kind = TIDE_KIND_DEFAULT};
}

static tide_status put(importer *m, const tide__event *e, tide_error *err) {
    return tide__new_trace_event(m->out, e, m->s->n_events > MAX_ROWS, err);
}

/// Of the pool that the address is of now.
static int32_t allocator_at(const importer *m, const device *d, uint64_t address) {
    const int64_t private = tide__torch_private_of(&d->private, address);
    return (int32_t)(private != 0 ? private : m->allocator);
}

static tide_status put_segment(importer *m, device *d, bool begin, int64_t t_ns, uint64_t address, uint64_t bytes,
                               uint64_t stream, uint32_t stack, tide_error *err) {
    tide__event e = event_of(m, d, begin ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_SEGMENT_FREE, t_ns);
    e.requested_bytes = e.reserved_bytes = (int64_t)bytes;
    e.address = (int64_t)address;
    e.allocator_id = allocator_at(m, d, address);
    e.stream = (int64_t)stream;
    TIDE_TRY(tide__torch_stacks_of(&m->stacks, stack, &e.scope_id, &e.tag_id, err));
    e.tag_id = 0;
    return put(m, &e, err);
}

/// An event of the block `b`.
static tide_status put_block(importer *m, device *d, tide_memory_op op, int64_t t_ns, const live *b, tide_error *err) {
    tide__event e = event_of(m, d, op, t_ns);
    TIDE_ASSERT(b->block_id > 0 && b->bytes <= INT64_MAX && b->held <= INT64_MAX);
    e.block_id = b->block_id;
    e.requested_bytes = (int64_t)b->bytes;
    e.reserved_bytes = (int64_t)b->held;
    e.address = (int64_t)(b->key - 1);
    e.allocator_id = b->allocator;
    e.stream = (int64_t)b->stream;
    e.scope_id = op == TIDE_MEM_ALLOC ? b->scope : 0;
    e.tag_id = b->name;
    return put(m, &e, err);
}

static tide_status put_mark(importer *m, const device *d, int64_t t_ns, const char *name, tide_error *err) {
    int64_t id;
    tide__event e = event_of(m, d, TIDE_MEM_SNAPSHOT, t_ns);
    if (tide__names_text(&m->out->names, name, &id) != TIDE_OK) return no_memory(m, err);
    e.tag_id = (int32_t)id;
    e.allocator_id = 0;
    return put(m, &e, err);
}

// ---- begin ----

static int by_address(const void *a, const void *b) {
    const before *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static tide_status begin_block(importer *m, device *d, const before *b, uint64_t free_begin, int64_t name,
                               tide_error *err) {
    live entry = {.key = b->address + 1,
                  .block_id = m->next_block++,
                  .bytes = b->bytes,
                  .held = b->held,
                  .stream = b->stream,
                  .name = (int32_t)name,
                  .allocator = allocator_at(m, d, b->address),
                  .is_requested = b->is_pending};
    if (b->stack != 0) TIDE_TRY(tide__torch_stacks_of(&m->stacks, b->stack, &entry.scope, &entry.name, err));
    if (tide__torch_pool_put(&d->pool, free_begin, b->address, b->held) != TIDE_OK || !tide_map_put(&d->live, &entry))
        return no_memory(m, err);
    TIDE_TRY(put_block(m, d, TIDE_MEM_ALLOC, m->begin_ns, &entry, err));
    m->report->n_blocks_before++;
    m->report->bytes_before += b->bytes;
    return b->is_pending ? put_block(m, d, TIDE_MEM_FREE_REQUESTED, m->begin_ns, &entry, err) : TIDE_OK;
}

/// Where the free block begins that the next block of before lies in: blocks and segments come by rising address.
typedef struct free_cursor {
    const before *segments; // [n]
    size_t n, at;
    uint64_t begin; // in segment `at`, or in those before that it goes on from
} free_cursor;

static bool lies_in(const before *segment, uint64_t address) {
    return address >= segment->address && address - segment->address < segment->bytes;
}

/// Where it begins; behind the block it goes on. A block outside of all segments has none.
static uint64_t free_before(free_cursor *c, const before *b) {
    while (c->at < c->n && !lies_in(&c->segments[c->at], b->address) && c->segments[c->at].address <= b->address) {
        if (++c->at == c->n) break;
        const before *last = &c->segments[c->at - 1], *next = last + 1;
        const bool goes_on = next->is_expandable && last->is_expandable && // they are one
                             next->address == last->address + last->bytes;
        if (!goes_on) c->begin = next->address;
    }
    if (c->at == c->n || !lies_in(&c->segments[c->at], b->address)) return b->address;
    const uint64_t begin = c->begin;
    c->begin = b->address + b->held;
    return begin;
}

static tide_status begin_device(importer *m, device *d, tide_error *err) {
    int64_t name;
    if (tide__names_text(&m->out->names, "before recording", &name) != TIDE_OK) return no_memory(m, err);
    if (d->n_segments > 0) qsort(d->segments, d->n_segments, sizeof *d->segments, by_address);
    if (d->n_blocks > 0) qsort(d->blocks, d->n_blocks, sizeof *d->blocks, by_address);
    for (size_t i = 0; i < d->n_segments; i++) {
        const before *g = &d->segments[i];
        if (tide__torch_pool_add(&d->pool, g->address, g->bytes, g->is_expandable) != TIDE_OK) return no_memory(m, err);
        TIDE_TRY(put_segment(m, d, true, m->begin_ns, g->address, g->bytes, g->stream, 0, err));
    }
    free_cursor free = {
        .segments = d->segments, .n = d->n_segments, .begin = d->n_segments > 0 ? d->segments[0].address : 0};
    for (size_t i = 0; i < d->n_blocks; i++) {
        // Two that were at one address one after the other: the second was allocated where no event tells.
        if (tide_map_find(&d->live, d->blocks[i].address + 1) != NULL) continue;
        TIDE_TRY(begin_block(m, d, &d->blocks[i], free_before(&free, &d->blocks[i]), name, err));
    }
    d->last_ns = m->begin_ns;
    return TIDE_OK;
}

// ---- one event ----

static tide_status take_alloc(importer *m, device *d, const tide__torch_event *e, int64_t t_ns, tide_error *err) {
    live b = {.key = e->addr + 1,
              .block_id = m->next_block++,
              .bytes = e->size,
              .allocator = allocator_at(m, d, e->addr),
              .stream = e->stream};
    TIDE_TRY(tide__torch_stacks_of(&m->stacks, e->stack, &b.scope, &b.name, err));
    live *old = tide_map_find(&d->live, b.key);
    if (old != NULL) { // its free is not in the file
        TIDE_TRY(put_block(m, d, TIDE_MEM_FREE_COMPLETED, t_ns, old, err));
        if (tide__torch_pool_free(&d->pool, e->addr) != TIDE_OK) return no_memory(m, err);
        tide_map_take(&d->live, old);
        m->report->n_contradictions++;
    }
    if (tide__torch_pool_alloc(&d->pool, e->addr, e->size, &b.held) != TIDE_OK || !tide_map_put(&d->live, &b))
        return no_memory(m, err);
    m->report->n_blocks++;
    return put_block(m, d, TIDE_MEM_ALLOC, t_ns, &b, err);
}

static tide_status take_end(importer *m, device *d, const tide__torch_event *e, int64_t t_ns, tide_error *err) {
    live *b = tide_map_find(&d->live, e->addr + 1);
    const bool is_end = e->action == TIDE__TORCH_FREE_COMPLETED;
    if (b == NULL || (!is_end && b->is_requested)) {
        m->report->n_contradictions++;
        return TIDE_OK;
    }
    TIDE_TRY(put_block(m, d, is_end ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_FREE_REQUESTED, t_ns, b, err));
    b->is_requested = true;
    if (!is_end) return TIDE_OK;
    tide_map_take(&d->live, b);
    return tide__torch_pool_free(&d->pool, e->addr) == TIDE_OK ? TIDE_OK : no_memory(m, err);
}

static tide_status take_segment(importer *m, device *d, const tide__torch_event *e, int64_t t_ns, tide_error *err) {
    const bool begin = e->action == TIDE__TORCH_SEGMENT_ALLOC || e->action == TIDE__TORCH_SEGMENT_MAP;
    const bool is_expandable = e->action == TIDE__TORCH_SEGMENT_MAP || e->action == TIDE__TORCH_SEGMENT_UNMAP;
    const tide_status st = begin ? tide__torch_pool_add(&d->pool, e->addr, e->size, is_expandable)
                                 : tide__torch_pool_remove(&d->pool, e->addr, e->size);
    if (st != TIDE_OK) return no_memory(m, err);
    if (e->action == TIDE__TORCH_SEGMENT_ALLOC) tide__torch_private_take(&d->private, e->addr);
    return put_segment(m, d, begin, t_ns, e->addr, e->size, e->stream, e->stack, err);
}

/// The request that failed, and a moment that says how much the device had left.
static tide_status take_oom(importer *m, device *d, const tide__torch_event *e, int64_t t_ns, tide_error *err) {
    char asked[24], left[24], name[96];
    tide__event out = event_of(m, d, TIDE_MEM_OOM, t_ns);
    out.requested_bytes = (int64_t)e->size;
    out.stream = (int64_t)e->stream;
    TIDE_TRY(tide__torch_stacks_of(&m->stacks, e->stack, &out.scope_id, &out.tag_id, err));
    TIDE_TRY(put(m, &out, err));
    snprintf(name, sizeof name, "out of memory: asked for %s, the device had %s free",
             tide_format_bytes(e->size, asked, sizeof asked), tide_format_bytes(e->addr, left, sizeof left));
    return put_mark(m, d, t_ns, name, err);
}

static tide_status take_event(importer *m, device *d, const tide__torch_event *e, tide_error *err) {
    const int64_t t_ns = time_of(d, e);
    d->last_ns = t_ns;
    if (e->metadata != d->metadata) {
        d->metadata = e->metadata;
        if (e->metadata != 0) TIDE_TRY(put_mark(m, d, t_ns, m->s->texts[e->metadata], err));
    }
    switch (e->action) {
    case TIDE__TORCH_ALLOC:
        return take_alloc(m, d, e, t_ns, err);
    case TIDE__TORCH_FREE_REQUESTED:
    case TIDE__TORCH_FREE_COMPLETED:
        return take_end(m, d, e, t_ns, err);
    case TIDE__TORCH_OOM:
        return take_oom(m, d, e, t_ns, err);
    case TIDE__TORCH_SNAPSHOT:
        return put_mark(m, d, t_ns, "snapshot", err);
    case TIDE__TORCH_OTHER:
        return TIDE_OK;
    default:
        return take_segment(m, d, e, t_ns, err);
    }
}

/// A range that the program named: it is entered and left, and its begin is a moment with its name.
static tide_status take_annotation(importer *m, const tide__torch_annotation *a, tide_error *err) {
    device *d = NULL;
    int64_t id, scope;
    TIDE_TRY(device_of(m, a->device, &d, err));
    const char *name = m->s->texts[a->name];
    tide__event e =
        event_of(m, d, (tide_memory_op)(a->is_end ? TIDE__OP_SCOPE_LEAVE : TIDE__OP_SCOPE_ENTER), a->time_us * 1000);
    if (tide__names_text(&m->out->names, name[0] != '\0' ? name : "?", &id) != TIDE_OK) return no_memory(m, err);
    const tide__scope_row row = {.name_id = id, .kind = TIDE_SCOPE_REGION, .step = -1};
    if (tide__names_scope_row(&m->out->names, &row, &scope) != TIDE_OK) return no_memory(m, err);
    e.scope_id = (int32_t)scope;
    e.device = 0;
    e.allocator_id = 0;
    e.kind = TIDE__NO_KIND;
    TIDE_TRY(put(m, &e, err));
    return a->is_end ? TIDE_OK : put_mark(m, d, a->time_us * 1000, name, err);
}

// ---- all of them ----

static int by_time(const void *a, const void *b) {
    const tide__torch_annotation *x = a, *y = b;
    if (x->time_us != y->time_us) return x->time_us < y->time_us ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/// The device whose next event is the earliest; NULL: none has one.
static tide_status next_device(importer *m, device **out, int64_t *t_ns, tide_error *err) {
    *out = NULL;
    for (size_t i = 0; i < m->n_devices; i++) {
        const tide__torch_event *e;
        device *d = &m->devices[i];
        TIDE_TRY(peek(m, d, &e, err));
        if (e == NULL || (*out != NULL && time_of(d, e) >= *t_ns)) continue;
        *out = d;
        *t_ns = time_of(d, e);
    }
    return TIDE_OK;
}

static tide_status take_all(importer *m, tide_error *err) {
    const tide__torch_snapshot *s = m->s;
    for (;;) {
        device *d;
        int64_t t_ns = INT64_MAX;
        TIDE_TRY(next_device(m, &d, &t_ns, err));
        for (; m->next_annotation < s->n_annotations; m->next_annotation++) {
            const tide__torch_annotation *a = &s->annotations[m->next_annotation];
            if (d != NULL && a->time_us * 1000 > t_ns) break;
            TIDE_TRY(take_annotation(m, a, err));
        }
        if (d == NULL) return TIDE_OK;
        TIDE_TRY(take_event(m, d, &d->batch[d->at++], err));
    }
}

/// What the events leave alive, held against the state that the file has.
static void compare_with_state(importer *m) {
    for (size_t i = 0; i < m->s->n_segments; i++) {
        const tide__torch_segment *g = &m->s->segments[i];
        const device *d = NULL;
        for (size_t k = 0; k < m->n_devices; k++)
            if (m->devices[k].index == g->device) d = &m->devices[k];
        for (uint64_t k = g->first_block; d != NULL && k < g->first_block + g->n_blocks; k++) {
            const tide__torch_block *b = &m->s->blocks[k];
            const live *known = tide_map_find(&d->live, b->address + 1);
            const bool is_active = b->state != TIDE__TORCH_INACTIVE;
            m->report->n_contradictions += is_active != (known != NULL);
            m->report->n_inexact += is_active && known != NULL && known->held != b->size;
        }
    }
}

static tide_status import_all(importer *m, tide_error *err) {
    tide_status st = find_devices(m, err);
    if (st == TIDE_OK && tide__names_text(&m->out->names, "pytorch", &m->allocator) != TIDE_OK) st = no_memory(m, err);
    for (size_t i = 0; st == TIDE_OK && i < m->n_devices; i++) {
        begun seen = {.whole = TIDE_MAP(live)};
        device *d = &m->devices[i];
        st = tide__torch_private_init(&d->private, m->s, d->index, &m->out->names, m->path, err);
        if (st == TIDE_OK) st = look_at_device(m, d, &seen, err);
        tide_map_deinit(&seen.whole);
        tide__torch_ranges_deinit(&seen.parts);
    }
    TIDE_TRY(st);
    if (m->s->n_annotations > 0) {
        qsort(m->s->annotations, m->s->n_annotations, sizeof *m->s->annotations, by_time);
        const int64_t first_ns = m->s->annotations[0].time_us * 1000;
        if (m->begin_ns == 0 || first_ns < m->begin_ns) m->begin_ns = first_ns;
    }
    if (m->begin_ns == 0) m->begin_ns = FIRST_NS;
    for (size_t i = 0; i < m->n_devices; i++) TIDE_TRY(begin_device(m, &m->devices[i], err));
    TIDE_TRY(take_all(m, err));
    compare_with_state(m);
    for (size_t i = 0; i < m->n_devices; i++) m->report->n_inexact += m->devices[i].pool.n_elsewhere;
    return TIDE_OK;
}

tide_status tide__torch_trace(tide__torch_snapshot *s, const char *path, tide__new_trace *out,
                              tide_import_report *report, tide_error *err) {
    importer m = {.s = s, .path = path, .out = out, .report = report, .next_block = 1};
    tide_status st = tide__torch_stacks_init(&m.stacks, s, &out->names, err);
    if (st == TIDE_OK) st = import_all(&m, err);
    for (size_t i = 0; i < m.n_devices; i++) {
        tide_map_deinit(&m.devices[i].live);
        tide__torch_pool_deinit(&m.devices[i].pool);
        tide__torch_private_deinit(&m.devices[i].private);
        tide_host_free(m.devices[i].blocks);
        tide_host_free(m.devices[i].segments);
        tide_host_free(m.devices[i].batch);
    }
    tide_host_free(m.devices);
    tide__torch_stacks_deinit(&m.stacks);
    return st;
}
