// SPDX-License-Identifier: MIT
//
// cuda_vmm: stream_caching over ranges of addresses that get memory in units and lose it in units, anywhere.
//
//     range of stream a, large:   | unit | unit | unit | unit |  bare ...                                  |
//                                 | out  ....... | idle  .....|  no memory behind it                        |
//     a request for more than the idle chunk:
//                                 | out  ....... | out ............... | bare ...        one more unit, no new segment
//     out of memory, or trim:
//                                 | out | bare | bare | out | bare ...                    idle units went back
//
// What it is for: buffers that grow a little each time. A segment of stream_caching has the size of the request that it
// was taken for; the next larger one does not fit, and the old segment stays (llama.cpp #22107). Here the tail of the
// range grows by what is missing. And one small live block keeps its unit, not its whole segment (PyTorch #35901).
//
// The price: memory comes in units of 2 MiB (small) and 20 MiB (large), each a few calls of the driver, so that a
// request of 1 GiB takes 52 of them; a large request may take up to a unit less one step more than its own segment
// would be; each stream holds addresses (not memory) of the device's whole size and an eighth more for small and again
// for large requests, and 8 B of host memory for each unit of them.
//
// Rules beyond stream_caching's own:
//   - A range belongs to one free list, of a stream or of a pool: what others need does not stand in its way. When the
//     stream goes the range goes with its chunks to the shared list, and to the next stream that must grow.
//   - It grows where the least is missing: between idle neighbours of its list (or of the shared one) if that helps.
//   - Units go when a chunk that the host has waited for covers them; a range without memory gives its addresses back.
//   - A unit that is mapped is a segment to those who listen: one event for each map and each unmap.
//
// PyTorch's expandable segments do this (c10/cuda/CUDACachingAllocator.cpp); sizes of units are theirs.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"

// ---- the device's table ----

static const tide_device_ops *table(tide_device device, void **self) {
    const tide_device_ops *ops = tide_device_find(device, self);
    return ops != NULL && ops->vm_reserve != NULL ? ops : NULL;
}

static tide_status no_mapping(tide_device device, tide_error *err) {
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s cannot map memory into reserved addresses",
                     tide_device_format(device, name, sizeof name));
}

static tide_status reserve(tide_device d, size_t size_bytes, void **out, tide_error *err) {
    void *self = NULL;
    const tide_device_ops *ops = table(d, &self);
    return ops != NULL ? ops->vm_reserve(self, d.index, size_bytes, out, err) : no_mapping(d, err);
}

static tide_status map(tide_device d, void *at, size_t size_bytes, tide_error *err) {
    void *self = NULL;
    const tide_device_ops *ops = table(d, &self);
    return ops != NULL ? ops->vm_map(self, d.index, at, size_bytes, err) : no_mapping(d, err);
}

/// The units of [at, at + size_bytes), one by one as they were mapped.
static void unmap(tide_device d, char *at, size_t size_bytes, size_t unit_bytes) {
    void *self = NULL;
    const tide_device_ops *ops = table(d, &self);
    for (size_t i = 0; ops != NULL && i < size_bytes; i += unit_bytes) ops->vm_unmap(self, d.index, at + i, unit_bytes);
}

/// All of [at, at + size_bytes) or nothing.
static tide_status map_units(tide_device d, char *at, size_t size_bytes, size_t unit_bytes, tide_error *err) {
    tide_status st = TIDE_OK;
    size_t done = 0;
    while (done < size_bytes && (st = map(d, at + done, unit_bytes, err)) == TIDE_OK) done += unit_bytes;
    if (st != TIDE_OK) unmap(d, at, done, unit_bytes);
    return st;
}

// ---- where to grow ----

static size_t round_up(size_t bytes, size_t unit_bytes) { return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes; }

/// Memory for the first `map_bytes` of a bare chunk would do, together with idle neighbours.
typedef struct place {
    tide__chunk *bare, *before, *after; ///< neighbours: NULL when they do not serve
    size_t map_bytes;
} place;

/// The list that requests of the plan's stream are served from.
static tide__free_list *list_for(tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    return s != NULL ? tide__sc_list_of(s) : &a->shared;
}

static tide__sc_pool *pool_for(const tide__sc *a, const tide__sc_plan *plan) {
    const tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    return s != NULL ? s->pool : NULL;
}

static size_t bytes_of(const tide__chunk *p) { return p != NULL ? p->size_bytes : 0; }

/// What growing at the bare chunk takes; false when there is no room.
static bool measure(tide__sc *a, const tide__sc_plan *plan, const tide__free_list *list, tide__chunk *bare,
                    place *out) {
    const size_t need = plan->need_bytes + plan->slack_bytes, unit = bare->segment->unit_bytes;
    tide__chunk *const sides[2] = {bare->before, bare->after};
    tide__chunk *serves[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const bool idle = sides[i] != NULL && sides[i]->state == TIDE__CHUNK_IDLE;
        if (idle && (sides[i]->home == list || (bare->segment->pool == NULL && sides[i]->home == &a->shared)))
            serves[i] = sides[i];
    }
    const size_t have = bytes_of(serves[0]);
    const size_t more = have < need ? round_up(need - have, unit) : unit;
    *out = (place){.bare = bare, .before = serves[0], .map_bytes = more};
    if (more < bare->size_bytes) return true;
    out->map_bytes = bare->size_bytes;
    out->after = serves[1];
    return have + bare->size_bytes + bytes_of(serves[1]) >= need;
}

/// The place that takes the least memory, the lowest address of these.
static bool find_place(tide__sc *a, const tide__sc_plan *plan, place *out) {
    const tide__free_list *list = list_for(a, plan);
    const tide__sc_pool *pool = pool_for(a, plan);
    *out = (place){0};
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->unit_bytes == 0 || seg->large != plan->large || seg->pool != pool) continue;
        if (seg->owner != list && seg->owner != &a->shared) continue;
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            place at;
            if (p->state != TIDE__CHUNK_BARE || !measure(a, plan, list, p, &at)) continue;
            if (out->bare == NULL || at.map_bytes < out->map_bytes) *out = at;
        }
    }
    return out->bare != NULL;
}

// ---- a new range ----

static tide__segment *new_header(const tide__sc *a, const tide__sc_plan *plan) {
    const size_t unit = a->source.unit_bytes[plan->large];
    const size_t need = plan->need_bytes + plan->slack_bytes;
    const size_t wish = a->source.range_bytes > need ? (size_t)a->source.range_bytes : need;
    tide__segment *seg = tide_host_calloc(1, sizeof *seg);
    if (seg == NULL) return NULL;
    seg->size_bytes = round_up(wish, unit);
    seg->unit_bytes = unit;
    seg->large = plan->large;
    seg->units = tide_host_calloc(seg->size_bytes / unit, sizeof *seg->units);
    if (seg->units != NULL) return seg;
    tide_host_free(seg);
    return NULL;
}

static void free_header(tide__segment *seg) {
    if (seg != NULL) tide_host_free(seg->units);
    tide_host_free(seg);
}

static bool is_too_much(const tide__sc *a, const tide__sc_plan *plan) {
    return a->source.total_bytes > 0 && plan->need_bytes + plan->slack_bytes > a->source.total_bytes;
}

bool tide__sc_take_headers(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h) {
    place at;
    *h = (tide__sc_headers){0};
    if (is_too_much(a, plan)) return true;
    h->one = tide__sc_new_chunk(a);
    if (h->one != NULL && find_place(a, plan, &at)) return true;
    h->two = h->one != NULL ? tide__sc_new_chunk(a) : NULL;
    h->range = h->two != NULL ? new_header(a, plan) : NULL;
    if (h->range != NULL) return true;
    tide__sc_drop_headers(a, h);
    return false;
}

void tide__sc_drop_headers(tide__sc *a, tide__sc_headers *h) {
    if (h->one != NULL) tide__sc_drop_chunk(a, h->one);
    if (h->two != NULL) tide__sc_drop_chunk(a, h->two);
    free_header(h->range);
    *h = (tide__sc_headers){0};
}

/// A chunk header of those that were set aside, or a fresh one.
static tide__chunk *chunk_header(tide__sc *a, tide__sc_headers *h) {
    tide__chunk **from = h->one != NULL ? &h->one : &h->two;
    tide__chunk *p = *from;
    *from = NULL;
    return p != NULL ? p : tide__sc_new_chunk(a);
}

/// Addresses for the plan's list, all bare. Opens the lock meanwhile.
static tide_status add_range(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h, tide_error *err) {
    tide__segment *seg = h->range != NULL ? h->range : new_header(a, plan);
    tide__chunk *whole = seg != NULL ? chunk_header(a, h) : NULL;
    h->range = NULL;
    void *base = NULL;
    tide_status st = TIDE_ERR_NOMEM;
    if (whole == NULL) {
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a range", a->name);
    } else {
        tide__sc_leave(a);
        st = reserve(a->device, seg->size_bytes, &base, err);
        tide__sc_come_back(a, false); // addresses are no memory: who waits for some need not try again
    }
    if (st != TIDE_OK) {
        if (whole != NULL) tide__sc_drop_chunk(a, whole);
        free_header(seg);
        return st;
    }
    seg->base = base;
    seg->id = tide__sc_new_ids(1);
    tide__sc_list_segment(a, plan, seg, whole);
    seg->owner = whole->home;
    whole->state = TIDE__CHUNK_BARE;
    return TIDE_OK;
}

// ---- growing ----

/// The idle neighbour is set aside for `list`: no other thread may get it meanwhile.
static void hold(tide__chunk *p, tide__free_list *list) {
    if (p == NULL) return;
    tide__tree_remove(&p->home->idle[p->segment->large], p);
    p->state = TIDE__CHUNK_HELD;
    p->home = list;
    p->segment->n_busy++;
}

/// @return what it became
static tide__chunk *let_go(tide__sc *a, tide__chunk *p) {
    p->state = TIDE__CHUNK_IDLE;
    p->segment->n_busy--;
    return tide__sc_put_idle(a, p);
}

/// Take bare neighbours into a bare chunk.
static void merge_bare(tide__sc *a, tide__chunk *p) {
    if (p->after != NULL && p->after->state == TIDE__CHUNK_BARE) tide__sc_absorb_next(a, p);
    if (p->before != NULL && p->before->state == TIDE__CHUNK_BARE) tide__sc_absorb_next(a, p->before);
}

static void tell_unit(const tide__sc *a, const tide__segment *seg, size_t i, bool taken) {
    if (a->listener.on_segment != NULL)
        a->listener.on_segment(a->listener.self, taken, seg->units[i], seg->base + i * seg->unit_bytes,
                               seg->unit_bytes);
}

/// The units under the chunk are mapped from now on.
static void count_mapped(tide__sc *a, const tide__chunk *p) {
    tide__segment *seg = p->segment;
    const size_t first = (size_t)(p->addr - seg->base) / seg->unit_bytes, n = p->size_bytes / seg->unit_bytes;
    uint64_t id = tide__sc_new_ids(n);
    for (size_t i = first; i < first + n; i++) {
        TIDE_ASSERT(seg->units[i] == 0);
        seg->units[i] = id++;
        tide__count_reserve(&a->stats, seg->unit_bytes);
        tell_unit(a, seg, i, true);
    }
    seg->mapped_bytes += p->size_bytes;
    a->stats.cached_bytes += p->size_bytes;
}

/// And not any more.
static void count_unmapped(tide__sc *a, const tide__chunk *p) {
    tide__segment *seg = p->segment;
    const size_t first = (size_t)(p->addr - seg->base) / seg->unit_bytes, n = p->size_bytes / seg->unit_bytes;
    for (size_t i = first; i < first + n; i++) {
        TIDE_ASSERT(seg->units[i] != 0);
        tell_unit(a, seg, i, false);
        seg->units[i] = 0;
    }
    TIDE_ASSERT(a->stats.cached_bytes >= p->size_bytes && a->stats.reserved_bytes >= p->size_bytes);
    seg->mapped_bytes -= p->size_bytes;
    a->stats.reserved_bytes -= p->size_bytes;
    a->stats.cached_bytes -= p->size_bytes;
}

/// Map what the place lacks. Opens the lock meanwhile: the chunks of the place are set aside until it is done.
static tide_status fill(tide__sc *a, place *at, tide__free_list *list, tide__chunk **out, tide_error *err) {
    tide__chunk *p = at->bare;
    const size_t unit = p->segment->unit_bytes;
    TIDE_ASSERT(at->map_bytes == p->size_bytes && p->size_bytes % unit == 0);
    p->state = TIDE__CHUNK_MOVING;
    p->home = list;
    p->idle_since = 0; // no work has touched it
    p->segment->n_busy++;
    p->segment->owner = list;
    hold(at->before, list);
    hold(at->after, list);
    tide__sc_leave(a);
    const tide_status st = map_units(a->device, p->addr, p->size_bytes, unit, err);
    tide__sc_come_back(a, st == TIDE_OK);
    if (st == TIDE_OK) {
        count_mapped(a, p);
        p = let_go(a, p);
    }
    if (at->before != NULL) p = let_go(a, at->before);
    if (at->after != NULL) p = let_go(a, at->after);
    if (st == TIDE_OK) {
        *out = p;
        return TIDE_OK;
    }
    at->bare->state = TIDE__CHUNK_BARE;
    at->bare->segment->n_busy--;
    merge_bare(a, at->bare);
    return st;
}

tide_status tide__sc_grow(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h, tide__chunk **out,
                          tide_error *err) {
    place at;
    if (is_too_much(a, plan)) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the device has less memory than that");
    if (!find_place(a, plan, &at)) {
        TIDE_TRY(add_range(a, plan, h, err));
        if (!find_place(a, plan, &at)) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the stream went meanwhile");
    }
    if (at.map_bytes < at.bare->size_bytes) {
        tide__chunk *rest = chunk_header(a, h);
        if (rest == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a chunk", a->name);
        tide__sc_cut_at(at.bare, at.map_bytes, rest)->state = TIDE__CHUNK_BARE;
    }
    return fill(a, &at, list_for(a, plan), out, err);
}

// ---- shrinking ----

/// Where the whole units of the chunk begin, from its own begin; and how many bytes they are.
static size_t units_in(const tide__chunk *p, size_t *front_bytes) {
    const size_t unit = p->segment->unit_bytes, at = (size_t)(p->addr - p->segment->base);
    const size_t begin = round_up(at, unit), end = (at + p->size_bytes) / unit * unit;
    *front_bytes = begin - at;
    return end > begin ? end - begin : 0;
}

bool tide__sc_has_units(const tide__chunk *p) {
    size_t front;
    return units_in(p, &front) > 0;
}

/// Take the whole units out of an idle chunk: what is before and behind stays idle. NULL: no host memory for that.
static tide__chunk *take_units(tide__sc *a, tide__chunk *p) {
    size_t front;
    const size_t units = units_in(p, &front);
    tide__chunk **list = &p->home->idle[p->segment->large];
    tide__chunk *middle = front > 0 ? tide__sc_new_chunk(a) : NULL;
    tide__chunk *back = front + units < p->size_bytes ? tide__sc_new_chunk(a) : NULL;
    if ((front > 0 && middle == NULL) || (front + units < p->size_bytes && back == NULL)) {
        if (middle != NULL) tide__sc_drop_chunk(a, middle);
        if (back != NULL) tide__sc_drop_chunk(a, back);
        return NULL;
    }
    tide__tree_remove(list, p);
    tide__chunk *taken = p;
    if (middle != NULL) {
        taken = tide__sc_cut_at(p, front, middle);
        tide__tree_insert(list, p);
    }
    if (back != NULL) tide__tree_insert(list, tide__sc_cut_at(taken, units, back));
    taken->state = TIDE__CHUNK_MOVING;
    taken->segment->n_busy++;
    count_unmapped(a, taken);
    return taken;
}

/// All units that can go, linked by `more`.
static tide__chunk *take_all_units(tide__sc *a) {
    tide__chunk *list = NULL;
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->unit_bytes == 0 || seg->pool != NULL) continue;
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            const bool goes = p->state == TIDE__CHUNK_IDLE && tide__sc_has_units(p) && tide__sc_is_quiet(p);
            tide__chunk *taken = goes ? take_units(a, p) : NULL;
            if (taken == NULL) continue;
            taken->more = list;
            list = taken;
            p = taken;
        }
    }
    return list;
}

static void unmap_all(tide__sc *a, tide__chunk *list) {
    if (list == NULL) return;
    tide__sc_leave(a);
    for (const tide__chunk *p = list; p != NULL; p = p->more)
        unmap(a->device, p->addr, p->size_bytes, p->segment->unit_bytes);
    tide__sc_come_back(a, true);
    for (tide__chunk *p = list, *next; p != NULL; p = next) {
        next = p->more;
        p->more = NULL;
        p->state = TIDE__CHUNK_BARE;
        p->segment->n_busy--;
        merge_bare(a, p);
    }
}

static bool is_empty(const tide__segment *seg) {
    return seg->unit_bytes > 0 && seg->mapped_bytes == 0 && seg->n_busy == 0 && seg->pool == NULL;
}

/// Ranges without memory give their addresses back.
static void free_empty(tide__sc *a) {
    tide__segment *list = NULL;
    for (tide__segment *seg = a->segments, *next; seg != NULL; seg = next) {
        next = seg->next;
        if (!is_empty(seg)) continue;
        TIDE_ASSERT(seg->first->state == TIDE__CHUNK_BARE && seg->first->after == NULL);
        tide__sc_drop_chunk(a, seg->first);
        tide__sc_unlist_segment(a, seg);
        seg->next = list;
        list = seg;
    }
    if (list == NULL) return;
    tide__sc_leave(a);
    for (tide__segment *seg = list, *next; seg != NULL; seg = next) {
        next = seg->next;
        tide__sc_free_range(a, seg);
    }
    tide__sc_come_back(a, true);
}

void tide__sc_shrink(tide__sc *a) {
    if (a->source.unit_bytes[0] == 0) return;
    unmap_all(a, take_all_units(a));
    free_empty(a);
}

void tide__sc_free_range(const tide__sc *a, tide__segment *seg) {
    void *self = NULL;
    const tide_device_ops *ops = table(a->device, &self);
    for (size_t i = 0; i < seg->size_bytes / seg->unit_bytes; i++) {
        if (seg->units[i] != 0) unmap(a->device, seg->base + i * seg->unit_bytes, seg->unit_bytes, seg->unit_bytes);
    }
    if (ops != NULL) ops->vm_release(self, a->device.index, seg->base, seg->size_bytes);
    free_header(seg);
}
