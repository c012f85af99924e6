// SPDX-License-Identifier: MIT
//
// Blocks in space: the segments that allocators told of, and stretches of addresses where nobody told anything.
//
//     segments   one region for all that were taken at one place with one size, there as often as that was
//     stretches  blocks that lie in no segment, by address; a gap as large as its neighbours ends one:
//                [ block ][ block ]   [ block ]                            [ block ]
//                <------- a stretch ---------->  terabytes of nothing      <- another ->
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/space_internal.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

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
typedef struct seg_place {
    const tide_trace_segment *seg;
    uint32_t region;
    uint64_t reach;
} seg_place;

typedef struct seg_places {
    seg_place *items; // [n], owned
    size_t n;
} seg_places;

static tide_status add_segment(tide_space *sp, const tide_trace_segment *seg, size_t number, tide_error *err) {
    tide_region r = {
        .base = seg->address, .bytes = seg->bytes, .begin = INT64_MAX, .end = INT64_MIN, .kind = seg->kind};
    snprintf(r.device, sizeof r.device, "%s", seg->device);
    tide_text label = {0};
    tide_text_addf(&label, "%s segment %zu", seg->allocator, number);
    return tide__space_add_region(sp, &r, label.data, err);
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
        TIDE_TRY(tide__space_add_spell(sp, (uint32_t)sp->n - 1, from, to, err));
    }
    return TIDE_OK;
}

/// Those that were there at some time of [begin, end).
static tide_status find_segments(tide_subject *s, tide_space *sp, int64_t begin, int64_t end, seg_places *out,
                                 tide_error *err) {
    const tide_trace_segment *all;
    size_t n_all, n = 0;
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
    size_t lo = 0, hi = x->n_spells; // spells lie in order of regions, then begin: the last that had begun by then
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const tide__spell *spell = &x->spells[mid];
        if (spell->region < region || (spell->region == region && spell->begin <= t))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && x->spells[lo - 1].region == region && x->spells[lo - 1].end >= t;
}

static int order_of(const tide_trace_segment *seg, const tide__addressed *b) {
    if (seg->process != b->process) return seg->process < b->process ? -1 : 1;
    const int c = strcmp(seg->device, b->device);
    return c != 0 ? c : (seg->address > b->address) - (seg->address < b->address);
}

static uint32_t segment_of(const tide_space *sp, const seg_places *places, const tide__addressed *b) {
    size_t lo = 0, hi = places->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (order_of(places->items[mid].seg, b) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
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
    const bool x_has = x->region != TIDE__NO_REGION, y_has = y->region != TIDE__NO_REGION;
    if (x_has != y_has) return x_has ? 1 : -1;
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
    return tide__space_add_region(sp, &r, label.data, err);
}

static tide_status add_stretches(tide_space *sp, tide__addressed *blocks, size_t n, tide_error *err) {
    size_t number = 0;
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

tide_status tide__space_add_blocks(tide_subject *s, tide_space *sp, tide__addressed *blocks, size_t n, int64_t begin,
                                   int64_t end, tide_error *err) {
    seg_places places = {0};
    tide_status st = find_segments(s, sp, begin, end, &places, err);
    size_t n_loose = 0;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        blocks[i].region = segment_of(sp, &places, &blocks[i]);
        n_loose += blocks[i].region == TIDE__NO_REGION;
    }
    if (st == TIDE_OK && n > 1) qsort(blocks, n, sizeof *blocks, by_address);
    if (st == TIDE_OK) st = add_stretches(sp, blocks, n_loose, err);
    tide_host_free(places.items);
    return st;
}
