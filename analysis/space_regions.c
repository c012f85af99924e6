// SPDX-License-Identifier: MIT
//
// Planned tensors in space: what a root and the aliases in it occupy, each stretch under the name of the one that is
// alive there.
//
//     root            [ conv_out ==============]             what lies in a root keeps parts of it alive, also when the
//       in place                               [ relu_out ]  root itself is dead: each rectangle of the occupied bytes
//       slice                    [ left ============================]      is cut where a tensor is born or dies
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/space_internal.h"
#include "analysis/subject_internal.h"
#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "profiler/holdings.h"
#include "profiler/query.h"

/// Append a region at the end of the axis; `label` is taken, NULL: no memory.
static tide_status add_region(tide_space *sp, const tide_region *region, char *label, tide_error *err) {
    tide__space_index *x = tide__space_index_of(sp);
    if (label == NULL || tide_host_grow(&sp->regions, &x->cap_regions, sp->n + 1, sizeof *sp->regions) != TIDE_OK) {
        tide_host_free(label);
        return TIDE_NO_MEMORY(err, "for a map of addresses");
    }
    tide_region *r = &sp->regions[sp->n++];
    *r = *region;
    r->label = label;
    r->at = sp->bytes;
    if (!tide_add_u64(sp->bytes, region->bytes, &sp->bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the regions of memory add up to more than 2^64 bytes");
    if (!region->is_guessed) sp->has_holes = true;
    return TIDE_OK;
}

static tide_status add_presence(tide_space *sp, uint32_t region, int64_t begin, int64_t end, tide_error *err) {
    tide__space_index *x = tide__space_index_of(sp);
    TIDE_TRY(TIDE_GROW(&x->presences, &x->cap_presences, x->n_presences + 1, err, "for a map of addresses"));
    x->presences[x->n_presences++] = (tide__presence){region, begin, end};
    return TIDE_OK;
}

tide_status tide__space_add_rectangle(tide_space *sp, const tide__rectangle *r, tide_error *err) {
    tide__space_index *x = tide__space_index_of(sp);
    TIDE_TRY(TIDE_GROW(&x->rectangles, &x->cap_rectangles, x->n_rectangles + 1, err, "for a map of addresses"));
    x->rectangles[x->n_rectangles++] = *r;
    return TIDE_OK;
}

// ---- planned tensors ----
// What a root and the aliases in it occupy, each stretch under the name of the one that is alive there.
//
//     root            [ conv_out ==============]             what lies in a root keeps parts of it alive, also when the
//       in place                               [ relu_out ]  root itself is dead: each rectangle of the occupied bytes
//       slice                    [ left ============================]      is cut where a tensor is born or dies

static uint32_t find_buffer(const tide_space *sp, const tide_plan_buffer *b, uint64_t block_id) {
    char device[16];
    tide_device_format(b->device, device, sizeof device);
    for (size_t i = 0; i < sp->n; i++) {
        const tide_region *r = &sp->regions[i];
        if (!r->is_guessed && r->base == 0 && r->kind == b->kind && r->buffer_block == block_id &&
            strcmp(r->device, device) == 0)
            return (uint32_t)i;
    }
    return TIDE__NO_REGION;
}

/// "Workspace on cpu"; of the second context's "Workspace on cpu, buffer 2".
static char *buffer_label(const tide_space *sp, tide_region *r) {
    size_t n = 1;
    for (size_t i = 0; i < sp->n; i++)
        n += sp->regions[i].buffer_block != 0 && sp->regions[i].kind == r->kind &&
             strcmp(sp->regions[i].device, r->device) == 0;
    tide_text label = {0};
    tide_text_addf(&label, "%s on %s", tide_memory_kind_name(r->kind), r->device);
    if (n > 1) r->tail = label.len + 2;
    if (n > 1) tide_text_addf(&label, ", buffer %zu", n);
    if (!label.failed) return label.data; // moved out
    tide_text_deinit(&label);
    return NULL;
}

/// The pools of a buffer, which lie end to end in it.
static tide_status add_pools(tide_region *r, const tide_memory_plan *plan, const tide_plan_buffer *b, tide_error *err) {
    uint64_t end = 0;
    if (plan->n_pools == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&r->pools, plan->n_pools, err, "for a map of addresses"));
    for (uint32_t i = 0; i < plan->n_pools; i++) {
        const tide_plan_pool *p = &plan->pool_list[i];
        if (&plan->buffers[p->buffer] != b) continue;
        TIDE_ASSERT(p->offset_bytes >= end);
        end = p->offset_bytes + p->size_bytes;
        r->pools[r->n_pools++] = (tide_region_pool){i, p->offset_bytes, p->size_bytes};
    }
    return TIDE_OK;
}

tide_status tide__space_buffer(tide_space *sp, const tide_memory_plan *plan, const tide_plan_buffer *b,
                               uint64_t block_id, int64_t begin, int64_t end, uint32_t *region, tide_error *err) {
    *region = find_buffer(sp, b, block_id);
    if (*region != TIDE__NO_REGION) return TIDE_OK;
    tide_region r = {.bytes = b->bytes,
                     .begin = begin,
                     .end = end,
                     .bound_bytes = b->lower_bound_bytes,
                     .kind = b->kind,
                     .buffer_block = block_id};
    tide_device_format(b->device, r.device, sizeof r.device);
    *region = (uint32_t)sp->n;
    TIDE_TRY(add_region(sp, &r, buffer_label(sp, &r), err));
    TIDE_TRY(add_pools(&sp->regions[*region], plan, b, err));
    return add_presence(sp, *region, begin, end, err);
}

// ---- steps as moments ----

/// When steps ran: of a plan the steps themselves, of a trace those of one execution.
typedef struct clock_of_steps {
    const tide_executions *x; // NULL: a plan
    const tide_execution *e;
    int64_t begin, end; // of the axis
} clock_of_steps;

/// [*begin, *end) in steps becomes moments. False: none of these steps ran.
static bool to_moments(const clock_of_steps *c, int64_t *begin, int64_t *end) {
    uint64_t begin_ns, end_ns;
    if (c->x == NULL) return *begin < *end;
    const tide_lifetime steps = {.begin_step = *begin, .end_step = *end};
    if (!tide__planned_times(c->x, c->e, &steps, &begin_ns, &end_ns)) return false;
    *begin = tide__cut(c->begin, c->end, begin_ns);
    *end = tide__cut(c->begin, c->end, end_ns);
    return *begin < *end;
}

// ---- classes: a root and what lies in it ----

typedef struct member {
    uint32_t root, tensor;
    int64_t begin, end;
    uint64_t lo, hi; // in the root
} member;

typedef struct maker {
    tide_space *sp;
    const tide_items *items;
    const tide_memory_plan *plan;
    clock_of_steps clock;
    member *members; // [n] by root, then begin; owned
    size_t n;
    uint32_t *first;         // [lifetimes.n + 1] of each root; owned
    tide_occupied *occupied; // [n_occupied], owned
    size_t n_occupied;
    uint64_t first_id;    // of tensor 0, in the execution that is drawn
    uint64_t block_id;    // of the buffer that it works in; 0: a plan, or not known
    const member **alive; // scratch of one stretch; owned
    int64_t *cuts;        // scratch; owned
} maker;

static int by_root(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static tide_status make_classes(maker *m, tide_error *err) {
    const tide_lifetimes *lt = &m->plan->lifetimes;
    m->members = tide_host_alloc((lt->n + 1) * sizeof *m->members);
    m->first = tide_host_calloc(lt->n + 1, sizeof *m->first);
    m->alive = tide_host_alloc((lt->n + 1) * sizeof *m->alive);
    m->cuts = tide_host_alloc((2 * lt->n + 2) * sizeof *m->cuts);
    if (m->members == NULL || m->first == NULL || m->alive == NULL || m->cuts == NULL)
        return TIDE_NO_MEMORY(err, "for a map of addresses");
    for (uint32_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->persistent) continue;
        uint64_t at = 0;
        const uint32_t root = tide_lifetimes_root(lt, i, &at);
        const uint64_t bytes = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : l->size_bytes;
        m->members[m->n++] = (member){root, i, l->begin_step, l->end_step, at, at + bytes};
    }
    if (m->n > 1) qsort(m->members, m->n, sizeof *m->members, by_root);
    size_t k = 0;
    for (uint32_t root = 0; root < lt->n; root++) {
        m->first[root] = (uint32_t)k;
        while (k < m->n && m->members[k].root == root) k++;
    }
    m->first[lt->n] = (uint32_t)k;
    return TIDE_OK;
}

static tide_status put(maker *m, uint32_t region, const tide_occupied *o, uint32_t tensor, int64_t begin, int64_t end,
                       uint64_t lo, uint64_t hi, tide_error *err) {
    uint32_t item = tide_items_find(m->items, m->first_id + tensor);
    if (item == TIDE_NO_ITEM) item = tide_items_find(m->items, m->first_id + o->root);
    if (item == TIDE_NO_ITEM || !to_moments(&m->clock, &begin, &end)) return TIDE_OK;
    const uint64_t at = m->plan->offsets[o->root];
    const tide__rectangle r = {begin, end, at + lo, at + hi, item, region};
    return tide__space_add_rectangle(m->sp, &r, err);
}

static int by_place(const void *a, const void *b) {
    const member *x = *(const member *const *)a, *y = *(const member *const *)b;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi) return x->hi > y->hi ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/// The stretch [begin, end) of `o`, in which no tensor is born or dies: the live ones side by side, the root when it
/// is itself. What rounding adds belongs to the tensor before it.
static tide_status put_stretch(maker *m, uint32_t region, const tide_occupied *o, const member *list, size_t n,
                               int64_t begin, int64_t end, tide_error *err) {
    size_t n_alive = 0;
    for (size_t i = 0; i < n; i++) {
        const member *c = &list[i];
        if (c->begin > begin || c->end < end || c->hi <= o->lo_bytes || c->lo >= o->hi_bytes) continue;
        if (c->tensor == o->root) return put(m, region, o, o->root, begin, end, o->lo_bytes, o->hi_bytes, err);
        m->alive[n_alive++] = c;
    }
    if (n_alive > 1) qsort(m->alive, n_alive, sizeof(const member *), by_place);
    uint64_t from = o->lo_bytes;
    uint32_t who = n_alive > 0 ? m->alive[0]->tensor : o->root;
    for (size_t i = 1; i < n_alive; i++) {
        const member *c = m->alive[i];
        // one inside the one before it is not seen
        if (c->lo <= from || c->lo >= o->hi_bytes || c->hi <= m->alive[i - 1]->hi) continue;
        TIDE_TRY(put(m, region, o, who, begin, end, from, c->lo, err));
        from = c->lo;
        who = c->tensor;
    }
    return put(m, region, o, who, begin, end, from, o->hi_bytes, err);
}

static int by_step(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static tide_status put_occupied(maker *m, uint32_t region, const tide_occupied *o, tide_error *err) {
    const member *list = &m->members[m->first[o->root]];
    const size_t n = m->first[o->root + 1] - m->first[o->root];
    if (n == 1) return put(m, region, o, o->root, o->begin_step, o->end_step, o->lo_bytes, o->hi_bytes, err);
    size_t n_cuts = 0;
    m->cuts[n_cuts++] = o->begin_step;
    for (size_t i = 0; i < n && list[i].begin < o->end_step; i++) {
        if (list[i].begin > o->begin_step) m->cuts[n_cuts++] = list[i].begin;
        if (list[i].end > o->begin_step && list[i].end < o->end_step) m->cuts[n_cuts++] = list[i].end;
    }
    m->cuts[n_cuts++] = o->end_step;
    qsort(m->cuts, n_cuts, sizeof *m->cuts, by_step);
    for (size_t i = 0; i + 1 < n_cuts; i++) {
        if (m->cuts[i] == m->cuts[i + 1]) continue;
        TIDE_TRY(put_stretch(m, region, o, list, n, m->cuts[i], m->cuts[i + 1], err));
    }
    return TIDE_OK;
}

/// What lies in one buffer, of a plan or of one execution.
static tide_status put_buffer(maker *m, const tide_plan_buffer *b, tide_error *err) {
    const tide_lifetimes *lt = &m->plan->lifetimes;
    uint32_t region;
    TIDE_TRY(tide__space_buffer(m->sp, m->plan, b, m->block_id, m->clock.begin, m->clock.end, &region, err));
    for (size_t i = 0; i < m->n_occupied; i++) {
        const tide_occupied *o = &m->occupied[i];
        const tide_lifetime *root = &lt->items[o->root];
        if (root->kind == b->kind && tide_device_equal(root->device, b->device) &&
            m->plan->offsets[o->root] != TIDE_NO_OFFSET)
            TIDE_TRY(put_occupied(m, region, o, err));
    }
    return TIDE_OK;
}

/// Whether tensors of that buffer are among the items: a run has those of Workspace alone.
static bool is_drawn(const tide_items *items, const tide_plan_buffer *b) {
    char device[16];
    tide_device_format(b->device, device, sizeof device);
    for (size_t i = 0; i < items->n_shapes; i++) {
        const tide_item_shape *shape = &items->shapes[i];
        if (shape->is_planned && !shape->persistent && shape->kind == b->kind && strcmp(shape->device, device) == 0)
            return true;
    }
    return false;
}

static tide_status put_buffers(maker *m, tide_error *err) {
    for (size_t i = 0; i < m->plan->n_buffers; i++)
        if (m->plan->buffers[i].bytes > 0 && is_drawn(m->items, &m->plan->buffers[i]))
            TIDE_TRY(put_buffer(m, &m->plan->buffers[i], err));
    return TIDE_OK;
}

static tide_status put_executions(maker *m, const tide_executions *x, tide_error *err) {
    m->clock.x = x;
    for (size_t i = 0; i < x->n; i++) {
        m->clock.e = &x->items[i];
        m->block_id = x->items[i].buffer_block;
        if (!tide_planned_id_fits(x->run_id, i, 0)) return TIDE_OK;
        m->first_id = tide_planned_id(x->run_id, i, 0);
        TIDE_TRY(put_buffers(m, err));
    }
    return TIDE_OK;
}

/// A plan alone, or all executions of a run by it.
static tide_status put_plan(maker *m, const tide_executions *x, tide_error *err) {
    tide_status st = tide_lifetimes_occupied(&m->plan->lifetimes, &m->occupied, &m->n_occupied, err);
    if (st == TIDE_OK) st = make_classes(m, err);
    if (st == TIDE_OK) st = x != NULL ? put_executions(m, x, err) : put_buffers(m, err);
    tide_host_free(m->occupied);
    tide_host_free(m->members);
    tide_host_free(m->first);
    tide_host_free(m->alive);
    tide_host_free(m->cuts);
    return st;
}

/// Every planned item knows its region, whether it is drawn under its own name or not.
static tide_status note_regions(tide_subject *s, tide_space *sp, const tide__planned_runs *planned, tide_error *err) {
    tide__space_index *index = tide__space_index_of(sp);
    const tide_items *items = tide_subject_items(s);
    for (size_t i = 0; i < items->n; i++) {
        const tide_item_shape *shape = tide_items_shape(items, i);
        if (!shape->is_planned || items->place[i] == TIDE_NO_OFFSET) continue;
        const uint64_t id = tide_items_id(items, i);
        const tide_memory_plan *plan;
        tide_device device;
        TIDE_TRY(tide__subject_plan_of(s, id, &plan, err));
        TIDE_TRY(tide_device_parse(shape->device, &device, err));
        const tide_plan_buffer *b = plan != NULL ? tide_memory_plan_buffer(plan, device, shape->kind) : NULL;
        const tide_executions *x =
            planned != NULL && tide_id_is_planned(id) ? tide__planned_run(planned, tide_planned_run(id)) : NULL;
        if (b != NULL)
            index->region_of[i] = find_buffer(sp, b, x != NULL ? x->items[tide_planned_execution(id)].buffer_block : 0);
    }
    return TIDE_OK;
}

tide_status tide__space_add_plan(tide_subject *s, tide_space *sp, tide_error *err) {
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    const maker none = {.sp = sp, .items = tide_subject_items(s), .clock = {.begin = facts->begin, .end = facts->end}};
    const tide__planned_runs *planned = NULL;
    if (!facts->is_trace) {
        maker m = none;
        m.plan = facts->plan;
        TIDE_TRY(put_plan(&m, NULL, err));
        return note_regions(s, sp, NULL, err);
    }
    TIDE_TRY(tide__subject_planned(s, &planned, err));
    for (size_t i = 0; i < planned->n; i++) {
        maker m = none;
        m.plan = planned->items[i]->plan;
        TIDE_TRY(put_plan(&m, planned->items[i], err));
    }
    return planned->n > 0 ? note_regions(s, sp, planned, err) : TIDE_OK;
}

// ---- blocks ----
// The segments that allocators recorded, and stretches of addresses that no segment covers.
//
//     segments   one region for all that were taken at one place with one size, there as often as that was
//     stretches  blocks that lie in no segment, by address; a gap as large as its neighbours ends one:
//                [ block ][ block ]   [ block ]                            [ block ]
//                <------- a stretch ---------->  terabytes of nothing      <- another ->

enum { GAP_ALWAYS = 1 << 16, GAP_NEVER = 1 << 20 }; ///< bytes that are, and are not, too few to end a stretch

// ---- segments ----

static int by_segment(const void *a, const void *b) {
    const tide_trace_segment *x = *(const tide_trace_segment *const *)a, *y = *(const tide_trace_segment *const *)b;
    int c = x->process != y->process ? (x->process < y->process ? -1 : 1) : strcmp(x->device, y->device);
    if (c == 0 && x->address != y->address) c = x->address < y->address ? -1 : 1;
    if (c == 0 && x->bytes != y->bytes) c = x->bytes < y->bytes ? -1 : 1;
    if (c == 0) c = strcmp(x->allocator, y->allocator);
    return c != 0 ? c : (x->begin_event > y->begin_event) - (x->begin_event < y->begin_event);
}

static bool same_place(const tide_trace_segment *a, const tide_trace_segment *b) {
    return a->process == b->process && a->address == b->address && a->bytes == b->bytes &&
           strcmp(a->device, b->device) == 0 && strcmp(a->allocator, b->allocator) == 0;
}

/// Places of segments in order of process, device and address; reach: the end of all before it, for overlaps.
typedef struct tide__seg_place {
    const tide_trace_segment *seg;
    uint32_t region;
    uint64_t reach;
} seg_place;

typedef tide__space_segments seg_places;

static tide_status add_segment(tide_space *sp, const tide_trace_segment *seg, size_t number, tide_error *err) {
    tide_region r = {
        .base = seg->address, .bytes = seg->bytes, .begin = INT64_MAX, .end = INT64_MIN, .kind = seg->kind};
    snprintf(r.device, sizeof r.device, "%s", seg->device);
    tide_text label = {0};
    tide_text_addf(&label, "%s segment %zu", seg->allocator, number);
    r.tail = strlen(seg->allocator) + 1;
    return add_region(sp, &r, label.data, err);
}

static tide_status add_segments(tide_space *sp, const tide_trace_segment **list, size_t n, int64_t begin, int64_t end,
                                seg_places *out, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&out->items, n + 1, err, "for a map of addresses"));
    for (size_t i = 0; i < n; i++) {
        const tide_trace_segment *seg = list[i];
        const bool is_first = out->n == 0 || !same_place(out->items[out->n - 1].seg, seg);
        if (is_first) {
            const bool goes_on = out->n > 0 && out->items[out->n - 1].seg->process == seg->process &&
                                 strcmp(out->items[out->n - 1].seg->device, seg->device) == 0;
            uint64_t reach = seg->address + seg->bytes;
            if (goes_on && out->items[out->n - 1].reach > reach) reach = out->items[out->n - 1].reach;
            out->items[out->n++] = (seg_place){seg, (uint32_t)sp->n, reach};
            TIDE_TRY(add_segment(sp, seg, out->n, err));
        }
        tide_region *r = &sp->regions[sp->n - 1];
        const int64_t from = (int64_t)seg->begin_ns > begin ? (int64_t)seg->begin_ns : begin;
        const int64_t to = seg->end_ns < (uint64_t)end ? (int64_t)seg->end_ns : end;
        if (from < r->begin) r->begin = from;
        if (to > r->end) r->end = to;
        TIDE_TRY(add_presence(sp, (uint32_t)sp->n - 1, from, to, err));
    }
    return TIDE_OK;
}

tide_status tide__space_find_segments(tide_subject *s, tide_space *sp, int64_t begin, int64_t end, seg_places *out,
                                      tide_error *err) {
    const tide_trace_segment *all;
    size_t n_all, n = 0;
    *out = (seg_places){0};
    TIDE_TRY(tide_trace_segments(tide_subject_trace(s), NULL, &all, &n_all, err));
    const tide_trace_segment **list;
    TIDE_TRY(TIDE_NEW(&list, n_all + 1, err, "for a map of addresses"));
    for (size_t i = 0; i < n_all; i++) {
        if (all[i].begin_ns >= (uint64_t)end || all[i].end_ns <= (uint64_t)begin || all[i].bytes == 0) continue;
        list[n++] = &all[i];
    }
    if (n > 1) qsort(list, n, sizeof *list, by_segment);
    const tide_status st = add_segments(sp, list, n, begin, end, out, err);
    tide_host_free(list);
    return st;
}

static bool was_there(const tide_space *sp, uint32_t region, int64_t t) {
    const tide__space_index *x = tide__space_index_of(sp);
    size_t lo = 0,
           hi = x->n_presences; // presences lie in order of regions, then begin: the last that had begun by then
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const tide__presence *presence = &x->presences[mid];
        if (presence->region < region || (presence->region == region && presence->begin <= t))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && x->presences[lo - 1].region == region && x->presences[lo - 1].end >= t;
}

static int order_of(const tide_trace_segment *seg, const tide__addressed *b) {
    if (seg->process != b->process) return seg->process < b->process ? -1 : 1;
    const int c = strcmp(seg->device, b->device);
    return c != 0 ? c : (seg->address > b->address) - (seg->address < b->address);
}

uint32_t tide__space_segment_of(const tide_space *sp, const seg_places *places, const tide__addressed *b) {
    size_t lo = 0, hi = places->n;
    TIDE_BISECT(lo, hi, order_of(places->items[mid].seg, b) <= 0);
    for (size_t i = lo; i-- > 0;) {
        const seg_place *p = &places->items[i];
        if (p->seg->process != b->process || strcmp(p->seg->device, b->device) != 0 || p->reach <= b->address) break;
        if (b->address - p->seg->address < p->seg->bytes &&
            b->bytes <= p->seg->bytes - (b->address - p->seg->address) && was_there(sp, p->region, b->begin))
            return p->region;
    }
    return TIDE__NO_REGION;
}

// ---- stretches of addresses ----

static int by_address(const void *a, const void *b) {
    const tide__addressed *x = a, *y = b;
    int c = x->process != y->process ? (x->process < y->process ? -1 : 1) : strcmp(x->device, y->device);
    if (c == 0 && x->address != y->address) c = x->address < y->address ? -1 : 1;
    return c != 0 ? c : (x->item > y->item) - (x->item < y->item);
}

static uint64_t end_of(const tide__addressed *b) {
    return b->bytes > UINT64_MAX - b->address ? UINT64_MAX : b->address + b->bytes;
}

/// Whether `next` lies too far behind `reach`, where the last block of a stretch (of `last_bytes`) ends.
static bool is_apart(const tide__addressed *before, uint64_t reach, uint64_t last_bytes, const tide__addressed *next) {
    if (before->process != next->process || strcmp(before->device, next->device) != 0) return true;
    if (next->address <= reach) return false;
    uint64_t near = last_bytes > next->bytes ? last_bytes : next->bytes;
    if (near < GAP_ALWAYS) near = GAP_ALWAYS;
    if (near > GAP_NEVER) near = GAP_NEVER;
    return next->address - reach > near;
}

static tide_status add_stretch(tide_space *sp, tide__addressed *blocks, size_t n, uint64_t reach, size_t number,
                               tide_error *err) {
    tide_region r = {.base = blocks[0].address,
                     .bytes = reach - blocks[0].address,
                     .begin = INT64_MAX,
                     .end = INT64_MIN,
                     .kind = blocks[0].kind,
                     .is_guessed = true};
    snprintf(r.device, sizeof r.device, "%s", blocks[0].device);
    for (size_t i = 0; i < n; i++) {
        blocks[i].region = (uint32_t)sp->n;
        if (blocks[i].begin < r.begin) r.begin = blocks[i].begin;
        if (blocks[i].end > r.end) r.end = blocks[i].end;
    }
    tide_text label = {0};
    tide_text_addf(&label, "%s addresses %zu", blocks[0].device, number);
    r.tail = strlen(blocks[0].device) + 1;
    return add_region(sp, &r, label.data, err);
}

tide_status tide__space_add_stretches(tide_space *sp, tide__addressed *blocks, size_t n, tide_error *err) {
    size_t number = 0;
    if (n > 1) qsort(blocks, n, sizeof *blocks, by_address);
    for (size_t first = 0, i; first < n; first = i) {
        uint64_t reach = end_of(&blocks[first]), last_bytes = blocks[first].bytes;
        for (i = first + 1; i < n && !is_apart(&blocks[i - 1], reach, last_bytes, &blocks[i]); i++) {
            if (end_of(&blocks[i]) < reach) continue;
            reach = end_of(&blocks[i]);
            last_bytes = blocks[i].bytes;
        }
        TIDE_TRY(add_stretch(sp, &blocks[first], i - first, reach, ++number, err));
    }
    return TIDE_OK;
}
