// SPDX-License-Identifier: MIT
//
// explain, of a trace.
//
//     segment   [####..  ######   ]   # asked for   . what size classes add   the rest: holes
//     segment   [                 ]   no block in it: an idle segment
//     block     ####..                an allocator without segments: what its blocks hold
//
// Without all blocks of a name and scope: one replay. Where that would take too long, without one block: the highest of
// three stretches of events, of which the middle one is lower by its bytes.
//
//     events   first ......... alloc+-------------+free ......... last
#include "analysis/explain_internal.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"
#include "profiler/lives.h"

enum { TELL_BLOCKS = 64 }; // some 20 us each

// ---- the plan's buffer ----

/// What no tensor uses of plans' buffers becomes a part.
static uint64_t take_unused(tide_live_items *l) {
    uint64_t unused = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].is_unused)
            unused += l->items[i].counts_bytes;
        else
            l->items[n++] = l->items[i];
    }
    l->n = n;
    l->bytes -= unused;
    return unused;
}

// ---- segments ----

typedef struct segment {
    const tide_trace_segment *of;
    uint64_t used; // bytes that live blocks hold of it
    bool has_block;
} segment;

/// By process, device and address.
static int compare_places(uint32_t a_process, const char *a_device, uint64_t a, const segment *b) {
    if (a_process != b->of->process) return a_process < b->of->process ? -1 : 1;
    const int order = strcmp(a_device, b->of->device);
    if (order != 0) return order;
    return (a > b->of->address) - (a < b->of->address);
}

static int by_place(const void *a, const void *b) {
    const segment *x = a;
    return compare_places(x->of->process, x->of->device, x->of->address, b);
}

/// The one that holds the block; NULL: none.
static segment *find_segment(segment *list, size_t n, const tide_live *b) {
    const uint32_t process = tide_trace_process_of(b->block_id);
    size_t lo = 0, hi = n;
    while (lo < hi) { // the first one that begins behind it
        const size_t mid = lo + (hi - lo) / 2;
        if (compare_places(process, b->device, b->address, &list[mid]) >= 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == 0) return NULL;
    segment *s = &list[lo - 1];
    if (s->of->process != process || strcmp(s->of->device, b->device) != 0) return NULL;
    return b->address - s->of->address < s->of->bytes ? s : NULL;
}

static tide_status segments_at(tide_trace *t, uint64_t event, segment **out, size_t *n, tide_error *err) {
    const tide_trace_segment *all;
    size_t n_all;
    TIDE_TRY(tide_trace_segments(t, NULL, &all, &n_all, err));
    segment *list;
    TIDE_TRY(TIDE_NEW(&list, n_all + 1, err, "to explain what is held"));
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (all[i].begin_event <= event && event < all[i].end_event) list[(*n)++] = (segment){.of = &all[i]};
    }
    if (*n > 1) qsort(list, *n, sizeof *list, by_place);
    *out = list;
    return TIDE_OK;
}

static tide_status add_parts(tide_subject *s, const tide_live_set *set, uint64_t live, uint64_t parts[TIDE_N_PARTS],
                             tide_error *err) {
    segment *list = NULL;
    size_t n = 0;
    TIDE_TRY(segments_at(s->trace, set->event_id, &list, &n, err));
    for (size_t i = 0; i < set->n; i++) {
        segment *in = find_segment(list, n, &set->items[i]);
        if (in == NULL) continue;
        in->used += set->items[i].reserved_bytes;
        in->has_block = true;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t left = list[i].of->bytes > list[i].used ? list[i].of->bytes - list[i].used : 0;
        parts[list[i].has_block ? TIDE_PART_HOLES : TIDE_PART_CACHED] += left;
    }
    parts[TIDE_PART_LIVE] = live;
    parts[TIDE_PART_ROUNDING] = set->reserved_bytes - set->requested_bytes;
    TIDE_ASSERT(live + parts[TIDE_PART_UNUSED] == set->requested_bytes);
    tide_host_free(list);
    return TIDE_OK;
}

// ---- without one of them ----

/// The highest so far, and the first event that has it.
typedef struct highest {
    uint64_t bytes, event;
    bool found;
} highest;

typedef struct question {
    tide_subject *s;
    tide_trace_extent extent;
    uint64_t most_events; // of a run that is replayed
    tide__reporter *reporter;
    tide_error *err;
} question;

/// Look at the states after events first to last, each lower by `less`.
static tide_status look(const question *q, uint64_t first, uint64_t last, uint64_t less, highest *h) {
    uint64_t bytes, event;
    if (last < first) return TIDE_OK;
    TIDE_TRY(tide_trace_peak_of_events(q->s->trace, -1, NULL, first, last, &bytes, &event, NULL, q->err));
    bytes = bytes > less ? bytes - less : 0;
    if (h->found && bytes <= h->bytes) return TIDE_OK;
    *h = (highest){bytes, event, true};
    return TIDE_OK;
}

/// The last event before the run is the state that it begins with.
static uint64_t first_of(const question *q) { return q->extent.first_event - 1; }

static tide_status moment_of(const question *q, uint64_t event, tide_moment *out) {
    tide_trace_event e;
    size_t n = 0;
    *out = (tide_moment){.t = q->s->facts.begin, .event = event};
    if (event <= first_of(q)) return TIDE_OK;
    TIDE_TRY(tide_trace_events(q->s->trace, event, &e, 1, &n, q->err));
    if (n == 1) out->t = tide__cut(q->s->facts.begin, q->s->facts.end, e.t_ns);
    return TIDE_OK;
}

static tide_status without_one(const question *q, const tide_live *b, tide_without *out) {
    const uint64_t first = first_of(q), last = q->extent.last_event;
    uint64_t freed;
    highest h = {0};
    TIDE_TRY(tide_trace_end_event(q->s->trace, b->block_id, b->alloc_event, &freed, q->err));
    if (b->alloc_event > first) TIDE_TRY(look(q, first, b->alloc_event - 1, 0, &h));
    TIDE_TRY(look(q, b->alloc_event > first ? b->alloc_event : first, freed <= last ? freed - 1 : last,
                  b->requested_bytes, &h));
    if (freed <= last) TIDE_TRY(look(q, freed, last, 0, &h));
    out->peak_bytes = h.bytes;
    TIDE_TRY(moment_of(q, h.event, &out->at));
    out->step = tide_subject_step_name_at(&q->s->facts, out->at.t);
    return TIDE_OK;
}

static const tide_live *find_live(const tide_live_set *set, uint64_t id) {
    size_t lo = 0, hi = set->n; // sorted by number
    TIDE_BISECT(lo, hi, set->items[mid].block_id < id);
    return lo < set->n && set->items[lo].block_id == id ? &set->items[lo] : NULL;
}

/// The block of a live item that can go; NULL: it cannot.
static const tide_live *block_of(const tide_live_set *set, const tide_live_item *x) {
    return x->shape.is_planned || !tide__can_go(x) ? NULL : find_live(set, x->id);
}

static tide_without block_without(const tide_explanation *e, uint32_t live, uint64_t n_alike) {
    const tide_live_item *x = &e->live.items[live];
    return (tide_without){.live = live,
                          .name = x->site.name,
                          .storage = TIDE_NO_INDEX,
                          .bytes = x->counts_bytes,
                          .n_alike = n_alike,
                          .n_now = 1};
}

/// Those of its name and owner that are alive at the moment go as well.
static void take_those_now(const tide_explanation *e, tide_without *w) {
    const tide_item_site *site = &e->live.items[w->live].site;
    w->n_now = w->bytes = 0;
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        if (x->shape.is_planned || !tide__can_go(x) || strcmp(x->site.name, site->name) != 0 ||
            strcmp(x->site.owner, site->owner) != 0)
            continue;
        w->n_now++;
        w->bytes += x->counts_bytes;
    }
}

static tide_status each_alone(const question *q, const tide_live_set *set, size_t max, tide_explanation *e) {
    for (uint32_t i = 0; i < e->live.n && e->n_without < max; i++) {
        const tide_live *b = block_of(set, &e->live.items[i]);
        tide_without *w = &e->without[e->n_without];
        if (b == NULL) continue;
        TIDE_TRY(tide__report_share(q->reporter, 0.4 + 0.3 * (double)e->n_without / (double)max, q->err));
        *w = block_without(e, i, 1);
        const tide_status st = without_one(q, b, w);
        if (st == TIDE_ERR_NOT_FOUND) e->knows_ends = false; // its events were dropped
        if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
        e->n_without += st == TIDE_OK;
    }
    return TIDE_OK;
}

static bool is_alike(const tide_trace *t, const tide_trace_alike *site, const tide_trace_block_row *row) {
    int64_t step;
    return site->name == row->name &&
           strcmp(tide_trace_scope_of(t, site->scope, &step), tide_trace_scope_of(t, row->scope, &step)) == 0;
}

/// Sites of the largest that can go, each once; live [n]: the item that stands for it.
static tide_status list_sites(const question *q, const tide_live_set *set, const tide_live_items *l, size_t max,
                              tide_trace_alike *sites, uint32_t *live, size_t *n) {
    *n = 0;
    for (uint32_t i = 0; i < l->n && *n < max; i++) {
        tide_trace_block_row row;
        size_t k = 0;
        if (block_of(set, &l->items[i]) == NULL) continue;
        if (i % TELL_BLOCKS == 0) TIDE_TRY(tide__report_share(q->reporter, 0.4, q->err));
        TIDE_TRY(tide_trace_find_block(q->s->trace, l->items[i].id, &row, q->err));
        while (k < *n && !is_alike(q->s->trace, &sites[k], &row)) k++;
        if (k < *n) continue;
        sites[*n] = (tide_trace_alike){.name = row.name, .scope = row.scope};
        live[(*n)++] = i;
    }
    return TIDE_OK;
}

static tide_status all_alike(const question *q, const tide_live_set *set, size_t max, tide_explanation *e) {
    tide_trace_alike *sites = tide_host_alloc((max + 1) * sizeof *sites);
    uint32_t *live = tide_host_alloc((max + 1) * sizeof *live);
    size_t n = 0;
    tide_status st = sites != NULL && live != NULL ? TIDE_OK : TIDE_NO_MEMORY(q->err, "to explain what is held");
    if (st == TIDE_OK) st = list_sites(q, set, &e->live, max, sites, live, &n);
    if (st == TIDE_OK && n > 0)
        st = tide_trace_peaks_without(q->s->trace, q->extent.first_event, q->extent.last_event, sites, n, q->err);
    for (size_t k = 0; st == TIDE_OK && k < n; k++) {
        tide_without *w = &e->without[k];
        *w = block_without(e, live[k], sites[k].n_blocks);
        take_those_now(e, w);
        w->peak_bytes = sites[k].peak_bytes;
        st = moment_of(q, sites[k].event, &w->at);
        w->step = tide_subject_step_name_at(&q->s->facts, w->at.t);
    }
    if (st == TIDE_OK) e->n_without = n;
    tide_host_free(sites);
    tide_host_free(live);
    return st;
}

static bool is_long(const question *q) { return q->extent.last_event - q->extent.first_event >= q->most_events; }

static tide_status add_without(const question *q, const tide_live_set *set, size_t max, tide_explanation *e) {
    if (is_long(q)) return each_alone(q, set, max, e);
    const tide_status st = all_alike(q, set, max, e);
    if (st != TIDE_ERR_NOT_FOUND) return st;
    e->knows_ends = false; // events were dropped
    return each_alone(q, set, max, e);
}

// ---- the second peak ----

static int by_id(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/// Numbers of the blocks that persist, in order.
static tide_status those_that_persist(const tide_live_items *l, uint64_t **out, size_t *n, tide_error *err) {
    uint64_t *ids;
    TIDE_TRY(TIDE_NEW(&ids, l->n + 1, err, "to explain what is held"));
    *n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].shape.persistent && !l->items[i].shape.is_planned) ids[(*n)++] = l->items[i].id;
    }
    if (*n > 1) qsort(ids, *n, sizeof *ids, by_id);
    *out = ids;
    return TIDE_OK;
}

/// The item of a block that lives.
typedef struct block_item {
    uint64_t id;
    uint32_t item;
} block_item;

static int by_block(const void *a, const void *b) {
    const block_item *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/// Blocks that can be the last ones to go: where items are loaded those that end last, and those that are no items.
/// *never: one of them is never freed.
static tide_status find_last_ones(const question *q, const tide_live_set *set, const tide_live_items *live,
                                  const uint64_t *ids, size_t n_ids, tide_trace_birth *out, size_t *n, bool *never) {
    const tide_items *items = tide_subject_items(q->s);
    block_item *list;
    size_t n_list = 0;
    int64_t last = INT64_MIN;
    TIDE_TRY(TIDE_NEW(&list, live->n + 1, q->err, "to explain what is held"));
    for (size_t i = 0; items != NULL && i < live->n; i++) {
        const tide_live_item *x = &live->items[i];
        if (x->item == TIDE_NO_ITEM || x->shape.is_planned || x->shape.persistent) continue;
        list[n_list++] = (block_item){x->id, x->item};
        if (tide_items_is_open_ended(items, x->item)) *never = true;
        if (tide_items_end(items, x->item) > last) last = tide_items_end(items, x->item);
    }
    if (n_list > 1) qsort(list, n_list, sizeof *list, by_block);
    for (size_t i = 0; i < set->n; i++) {
        const block_item key = {.id = set->items[i].block_id};
        if (bsearch(&key.id, ids, n_ids, sizeof *ids, by_id) != NULL) continue;
        const block_item *found = n_list > 0 ? bsearch(&key, list, n_list, sizeof *list, by_block) : NULL;
        if (found == NULL || tide_items_end(items, found->item) == last)
            out[(*n)++] = (tide_trace_birth){set->items[i].block_id, set->items[i].alloc_event};
    }
    tide_host_free(list);
    return TIDE_OK;
}

/// When the last of them was freed.
static tide_status last_freed(const question *q, const tide_trace_birth *blocks, size_t n, uint64_t *to) {
    uint64_t freed[TELL_BLOCKS];
    for (size_t i = 0; i < n && *to <= q->extent.last_event; i += TELL_BLOCKS) { // else no event is left
        const size_t some = n - i < TELL_BLOCKS ? n - i : TELL_BLOCKS;
        TIDE_TRY(tide__report_share(q->reporter, 0.7 + 0.3 * (double)i / (double)n, q->err));
        TIDE_TRY(tide_trace_end_events(q->s->trace, blocks + i, some, freed, q->err));
        for (size_t k = 0; k < some; k++)
            if (freed[k] > *to) *to = freed[k];
    }
    return TIDE_OK;
}

/// All that are alive and can go are alive at one moment: they leave a stretch before them and one behind.
static tide_status find_stretch(const question *q, const tide_live_set *set, const tide_live_items *live,
                                const uint64_t *ids, size_t n_ids, uint64_t *from, uint64_t *to) {
    tide_trace_birth *blocks;
    size_t n = 0;
    bool never = false;
    *from = UINT64_MAX;
    *to = 0;
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i].alloc_event < *from &&
            bsearch(&set->items[i].block_id, ids, n_ids, sizeof *ids, by_id) == NULL)
            *from = set->items[i].alloc_event;
    TIDE_TRY(TIDE_NEW(&blocks, set->n + 1, q->err, "to explain what is held"));
    tide_status st = find_last_ones(q, set, live, ids, n_ids, blocks, &n, &never);
    if (never) *to = UINT64_MAX;
    if (st == TIDE_OK) st = last_freed(q, blocks, n, to);
    tide_host_free(blocks);
    return st;
}

/// While none of them is alive.
static tide_status second_of_stretches(const question *q, const tide_live_set *set, tide_explanation *e) {
    const uint64_t first = first_of(q), last = q->extent.last_event;
    uint64_t *ids = NULL, from, to;
    size_t n_ids = 0;
    highest h = {0};
    TIDE_TRY(those_that_persist(&e->live, &ids, &n_ids, q->err));
    tide_status st = find_stretch(q, set, &e->live, ids, n_ids, &from, &to);
    tide_host_free(ids);
    if (st == TIDE_OK && from > first) st = look(q, first, from > last ? last : from - 1, 0, &h);
    if (st == TIDE_OK && from != UINT64_MAX && to <= last) st = look(q, to, last, 0, &h);
    if (st == TIDE_OK && h.found) {
        e->second_peak_bytes = h.bytes;
        st = moment_of(q, h.event, &e->second_peak);
    }
    return st;
}

/// Without all blocks that are like one of them, and with the buffers that are left without the tensors in them.
static tide_status second_of_all(const question *q, const tide_live_set *set, const tide__buffer_less *less,
                                 tide_explanation *e) {
    const size_t max = e->live.n;
    tide_trace_alike *sites;
    uint64_t event;
    size_t n = 0;
    TIDE_TRY(TIDE_NEW(&sites, max + 1, q->err, "to explain what is held"));
    tide_status st = TIDE_OK;
    for (uint32_t i = 0; st == TIDE_OK && i < e->live.n; i++) {
        tide_trace_block_row row;
        if (block_of(set, &e->live.items[i]) == NULL) continue;
        if (i % TELL_BLOCKS == 0) st = tide__report_share(q->reporter, 0.7, q->err);
        if (st == TIDE_OK) st = tide_trace_find_block(q->s->trace, e->live.items[i].id, &row, q->err);
        if (st == TIDE_OK) sites[n++] = (tide_trace_alike){.name = row.name, .scope = row.scope};
    }
    if (st == TIDE_OK)
        st = tide_trace_peak_without_all(q->s->trace, q->extent.first_event, q->extent.last_event, sites, n, less->less,
                                         less->n, &e->second_peak_bytes, &event, q->err);
    if (st == TIDE_OK) st = moment_of(q, event, &e->second_peak);
    tide_host_free(sites);
    return st;
}

// ---- the whole ----

static tide_status add_second_peak(const question *q, const tide_live_set *set, const tide__buffer_less *less,
                                   tide_explanation *e) {
    const tide_status st = is_long(q) || !e->knows_ends ? TIDE_ERR_NOT_FOUND : second_of_all(q, set, less, e);
    return st != TIDE_ERR_NOT_FOUND ? st : second_of_stretches(q, set, e);
}

static tide_status counterfactuals(const question *q, const tide_live_set *set, size_t n_without, tide_explanation *e) {
    tide__buffer_less less;
    const uint64_t first = q->extent.first_event, last = q->extent.last_event;
    const size_t max = n_without < e->live.n ? n_without : e->live.n;
    TIDE_TRY(TIDE_NEW(&e->without, e->live.n + max + 1, q->err, "to explain what is held"));
    if (last < first || n_without == 0) return TIDE_OK;
    TIDE_TRY(add_without(q, set, max, e));
    tide_status st = tide__explain_buffers(q->s, set, first, last, max, q->reporter, e, &less, q->err);
    for (size_t k = 0; st == TIDE_OK && k < e->n_without; k++) {
        tide_without *w = &e->without[k];
        if (w->storage != TIDE_NO_INDEX && w->has_plan) st = moment_of(q, w->at.event, &w->at);
        w->step = tide_subject_step_name_at(&q->s->facts, w->at.t);
    }
    if (st == TIDE_OK) st = add_second_peak(q, set, &less, e);
    tide__buffer_less_deinit(&less);
    return st;
}

static tide_status explain(const question *q, const tide_live_set *set, size_t n_without, tide_explanation *out) {
    out->parts[TIDE_PART_UNUSED] = take_unused(&out->live);
    TIDE_TRY(add_parts(q->s, set, out->live.bytes, out->parts, q->err));
    TIDE_TRY(tide__report_share(q->reporter, 0.4, q->err));
    out->knows_ends = true;
    const tide_status st = counterfactuals(q, set, n_without, out);
    if (st != TIDE_ERR_NOT_FOUND) return st;
    out->knows_ends = false;
    return TIDE_OK;
}

tide_status tide__explain_trace(tide_subject *s, size_t n_without, uint64_t most_events, tide__reporter *reporter,
                                tide_explanation *out, tide_error *err) {
    question q = {.s = s, .most_events = most_events, .reporter = reporter, .err = err};
    tide_live_set set;
    TIDE_TRY(tide_trace_get_extent(s->trace, s->facts.run_id, &q.extent, err));
    if (s->facts.run_id == 0 || q.extent.first_event == 0) q.extent.first_event = 1;
    const tide_moment at = out->live.at;
    TIDE_TRY(at.event > 0 ? tide_trace_live_set_after(s->trace, at.event, &set, err)
                          : tide_trace_live_set(s->trace, at.t > 0 ? (uint64_t)at.t : 0, &set, err));
    const tide_status st = explain(&q, &set, n_without, out);
    tide_live_set_deinit(&set);
    return st;
}
