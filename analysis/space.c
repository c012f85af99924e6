// SPDX-License-Identifier: MIT
//
// Space: regions laid end to end, and what lies in them. See space.h and space_internal.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/reporter.h"
#include "analysis/space_internal.h"
#include "analysis/subject_internal.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

void tide_space_deinit(tide_space *sp) {
    tide__space_index *x = tide__space_index_of(sp);
    for (size_t i = 0; i < sp->n; i++) {
        tide_host_free(sp->regions[i].label);
        tide_host_free(sp->regions[i].pools);
    }
    tide_host_free(sp->regions);
    if (x != NULL) {
        tide_host_free(x->region_of);
        tide_host_free(x->block_ends);
        tide_host_free(x->rectangles);
        tide_host_free(x->rectangle_ends);
        tide_host_free(x->presences);
        tide_host_free(x);
    }
    *sp = (tide_space){0};
}

// ---- what it is made of ----

// ---- the index ----

static int by_begin(const void *a, const void *b) {
    const tide__rectangle *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->region != y->region) return x->region < y->region ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static tide_status finish(tide_space *sp, const tide_items *items, tide_error *err) {
    tide__space_index *x = tide__space_index_of(sp);
    if (x->n_rectangles > 1) qsort(x->rectangles, x->n_rectangles, sizeof *x->rectangles, by_begin);
    TIDE_TRY(TIDE_NEW(&x->rectangle_ends, x->n_rectangles / TIDE__SPACE_CHUNK + 1, err, "for a map of addresses"));
    for (size_t i = 0; i < x->n_rectangles; i++) {
        int64_t *end = &x->rectangle_ends[i / TIDE__SPACE_CHUNK];
        if (i % TIDE__SPACE_CHUNK == 0 || x->rectangles[i].end > *end) *end = x->rectangles[i].end;
    }
    if (x->region_of == NULL) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&x->block_ends, x->n_items / TIDE__SPACE_CHUNK + 1, err, "for a map of addresses"));
    for (size_t i = 0; i < x->n_items; i++) {
        int64_t *end = &x->block_ends[i / TIDE__SPACE_CHUNK];
        if (i % TIDE__SPACE_CHUNK == 0 || tide_items_end(items, i) > *end) *end = tide_items_end(items, i);
    }
    return TIDE_OK;
}

static tide_status begin(tide_space *out, size_t n_items, tide_error *err) {
    *out = (tide_space){0};
    tide__space_index *x;
    TIDE_TRY(TIDE_NEW(&x, 1, err, "for a map of addresses"));
    out->index = x;
    x->n_items = n_items;
    if (n_items == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&x->region_of, n_items, err, "for a map of addresses"));
    memset(x->region_of, 0xFF, n_items * sizeof *x->region_of);
    return TIDE_OK;
}

static tide_status end(tide_status st, tide_space *sp, const tide_items *items, tide_error *err) {
    if (st == TIDE_OK) st = finish(sp, items, err);
    if (st == TIDE_OK && sp->n == 0)
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "nothing of it has a place in a buffer or an address");
    if (st != TIDE_OK) tide_space_deinit(sp);
    return st;
}

// ---- all of a subject ----

static const tide_item_shape *shape_of(const tide_items *items, size_t i) { return tide_items_shape(items, i); }

/// Blocks that are given their region, one by one; those in no segment are kept until all are known.
typedef struct placing {
    tide_space *sp;
    tide__space_segments segments;
    tide__addressed *loose; // [n], owned
    size_t n, cap;
    tide_error *err;
} placing;

/// *region TIDE__NO_REGION: it is kept.
static tide_status place_block(placing *p, const tide__addressed *b, uint32_t *region) {
    *region = tide__space_segment_of(p->sp, &p->segments, b);
    if (*region != TIDE__NO_REGION) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&p->loose, &p->cap, p->n + 1, p->err, "for a map of addresses"));
    p->loose[p->n++] = *b;
    return TIDE_OK;
}

static void placing_deinit(placing *p) {
    tide_host_free(p->segments.items);
    tide_host_free(p->loose);
}

static tide_status place_items(placing *p, const tide_items *items) {
    uint32_t *region_of = tide__space_index_of(p->sp)->region_of;
    for (size_t i = 0; i < items->n; i++) {
        const tide_item_shape *shape = shape_of(items, i);
        if (shape->is_planned || items->place[i] == TIDE_NO_OFFSET || shape->reserved_bytes == 0) continue;
        const tide__addressed b = {.address = items->place[i],
                                   .bytes = shape->reserved_bytes,
                                   .device = shape->device,
                                   .begin = tide_items_begin(items, i),
                                   .end = tide_items_end(items, i),
                                   .kind = shape->kind,
                                   .process = tide_trace_process_of(tide_items_id(items, (uint32_t)i)),
                                   .item = (uint32_t)i};
        TIDE_TRY(place_block(p, &b, &region_of[i]));
    }
    TIDE_TRY(tide__space_add_stretches(p->sp, p->loose, p->n, p->err));
    for (size_t i = 0; i < p->n; i++) region_of[p->loose[i].item] = p->loose[i].region;
    return TIDE_OK;
}

static tide_status add_blocks(tide_subject *s, tide_space *sp, const tide_items *items, tide_error *err) {
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    placing p = {.sp = sp, .err = err};
    bool has_blocks = false;
    for (size_t i = 0; !has_blocks && i < items->n; i++) has_blocks = !shape_of(items, i)->is_planned;
    if (!has_blocks || !facts->is_trace) return TIDE_OK;
    tide_status st = tide__space_find_segments(s, sp, facts->begin, facts->end, &p.segments, err);
    if (st == TIDE_OK) st = place_items(&p, items);
    placing_deinit(&p);
    return st;
}

tide_status tide_space_make(tide_subject *s, tide_space *out, tide_error *err) {
    *out = (tide_space){0};
    const tide_items *items = tide_subject_items(s);
    if (items == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a map of addresses needs the table of items");
    if (items->place == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "too many blocks to keep all their addresses");
    tide_status st = begin(out, items->n, err);
    if (st == TIDE_OK) st = tide__space_add_plan(s, out, err);
    if (st == TIDE_OK) st = add_blocks(s, out, items, err);
    return end(st, out, items, err);
}

// ---- one moment ----

static bool is_alias_inside(const tide_live_item *item) {
    return item->shape.alias != TIDE_ALIAS_NONE && item->counts_bytes == 0;
}

/// The buffer that a planned tensor, or the unused rest of one, lies in. *region TIDE__NO_REGION: not known.
static tide_status region_of_live(tide_subject *s, const tide_live_items *live, const tide_live_item *item,
                                  tide_space *sp, uint32_t *region, tide_error *err) {
    const tide_memory_plan *plan = tide__subject_plan(s);
    uint64_t block_id = 0;
    tide_device device;
    *region = TIDE__NO_REGION;
    if (s->trace != NULL) {
        const tide__planned_runs *planned;
        TIDE_TRY(tide__subject_planned(s, &planned, err));
        const tide_executions *x = tide__planned_run(planned, tide_planned_run(item->id));
        if (item->is_unused) x = tide__planned_in(planned, item->id);
        plan = x != NULL ? x->plan : NULL;
        if (x != NULL) block_id = item->is_unused ? item->id : x->items[tide_planned_execution(item->id)].buffer_block;
    }
    TIDE_TRY(tide_device_parse(item->shape.device, &device, err));
    const tide_plan_buffer *b = plan != NULL ? tide_memory_plan_buffer(plan, device, item->shape.kind) : NULL;
    return b != NULL ? tide__space_buffer(sp, plan, b, block_id, live->at.t, live->at.t + 1, region, err) : TIDE_OK;
}

static tide_status add_live_planned(tide_subject *s, const tide_live_items *live, tide_space *sp, tide_error *err) {
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *item = &live->items[i];
        uint32_t region;
        if ((!item->shape.is_planned && !item->is_unused) || item->place == TIDE_NO_OFFSET || is_alias_inside(item))
            continue;
        TIDE_TRY(region_of_live(s, live, item, sp, &region, err));
        if (region == TIDE__NO_REGION || item->is_unused) continue;
        const tide__rectangle r = {.begin = live->at.t,
                                   .end = live->at.t + 1,
                                   .lo = item->place,
                                   .hi = item->place + item->shape.reserved_bytes,
                                   .item = item->item != TIDE_NO_ITEM ? item->item : TIDE_SPACE_OTHER,
                                   .region = region};
        if (r.hi > r.lo) TIDE_TRY(tide__space_add_rectangle(sp, &r, err));
    }
    return TIDE_OK;
}

static tide_status add_live_block(tide_space *sp, const tide__addressed *b, uint32_t region, tide_error *err) {
    const uint64_t lo = b->address - sp->regions[region].base;
    const tide__rectangle r = {b->begin, b->end, lo, lo + b->bytes, b->item, region};
    return tide__space_add_rectangle(sp, &r, err);
}

static tide_status place_live(placing *p, const tide_live_items *live) {
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *item = &live->items[i];
        uint32_t region;
        if (item->shape.is_planned || item->is_unused || item->place == TIDE_NO_OFFSET ||
            item->shape.reserved_bytes == 0)
            continue;
        const tide__addressed b = {.address = item->place,
                                   .bytes = item->shape.reserved_bytes,
                                   .device = item->shape.device,
                                   .begin = live->at.t,
                                   .end = live->at.t + 1,
                                   .kind = item->shape.kind,
                                   .process = tide_trace_process_of(item->id),
                                   .item = item->item != TIDE_NO_ITEM ? item->item : TIDE_SPACE_OTHER};
        TIDE_TRY(place_block(p, &b, &region));
        if (region != TIDE__NO_REGION) TIDE_TRY(add_live_block(p->sp, &b, region, p->err));
    }
    TIDE_TRY(tide__space_add_stretches(p->sp, p->loose, p->n, p->err));
    for (size_t i = 0; i < p->n; i++) TIDE_TRY(add_live_block(p->sp, &p->loose[i], p->loose[i].region, p->err));
    return TIDE_OK;
}

static tide_status add_live_blocks(tide_subject *s, const tide_live_items *live, tide_space *sp, tide_error *err) {
    if (!tide_subject_get_facts(s)->is_trace) return TIDE_OK;
    placing p = {.sp = sp, .err = err};
    tide_status st = tide__space_find_segments(s, sp, live->at.t, live->at.t + 1, &p.segments, err);
    if (st == TIDE_OK) st = place_live(&p, live);
    placing_deinit(&p);
    return st;
}

tide_status tide_space_of_live(tide_subject *s, const tide_live_items *live, const tide_progress *progress,
                               tide_space *out, tide_error *err) {
    tide__reporter reporter;
    tide__reporter_begin(&reporter, progress, tide_subject_trace(s), "laying out addresses");
    tide_status st = begin(out, 0, err);
    if (st == TIDE_OK) st = tide__report_share(&reporter, 0, err);
    if (st == TIDE_OK) st = add_live_planned(s, live, out, err);
    if (st == TIDE_OK) st = add_live_blocks(s, live, out, err);
    tide__reporter_end(&reporter);
    return end(st, out, NULL, err);
}

// ---- where items are ----

bool tide_space_of_item(const tide_space *sp, const tide_items *items, uint32_t item, uint64_t *lo, uint64_t *hi) {
    const tide__space_index *x = tide__space_index_read(sp);
    if (x->region_of == NULL) {
        for (size_t i = 0; i < x->n_rectangles; i++) {
            if (x->rectangles[i].item != item) continue;
            *lo = sp->regions[x->rectangles[i].region].at + x->rectangles[i].lo;
            *hi = sp->regions[x->rectangles[i].region].at + x->rectangles[i].hi;
            return true;
        }
        return false;
    }
    if (item >= x->n_items || x->region_of[item] == TIDE__NO_REGION || items->place == NULL) return false;
    const tide_region *r = &sp->regions[x->region_of[item]];
    *lo = r->at + (items->place[item] - r->base);
    *hi = *lo + shape_of(items, item)->reserved_bytes;
    return true;
}

size_t tide_space_region_at(const tide_space *sp, uint64_t at) {
    size_t lo = 0, hi = sp->n;
    TIDE_BISECT(lo, hi, sp->regions[mid].at + sp->regions[mid].bytes <= at);
    return lo < sp->n ? lo : SIZE_MAX;
}
