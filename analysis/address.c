// SPDX-License-Identifier: MIT
//
// Who lies at an address. See address.h.
#include "analysis/address.h"

#include "analysis/subject_internal.h"
#include "profiler/holdings.h"

static bool has(uint64_t begin, uint64_t bytes, uint64_t address) {
    return begin != TIDE_NO_OFFSET && address >= begin && address - begin < bytes;
}

/// Of those that lie there the one that shares its bytes with nothing larger, and the smallest that lies in it. The
/// first of a chain in place may be gone while the next still has its bytes.
static void look_among(const tide_live_items *live, uint64_t address, bool by_offset, tide_address *out) {
    const tide_live_item *holder = NULL, *smallest = NULL;
    for (size_t i = 0; i < live->n; i++) {
        const tide_live_item *it = &live->items[i];
        if (it->is_unused || (by_offset && !it->shape.is_planned)) continue;
        if (!has(by_offset ? it->place : it->address, it->shape.reserved_bytes, address)) continue;
        const bool is_alias = it->shape.alias != TIDE_ALIAS_NONE;
        const bool was_alias = holder != NULL && holder->shape.alias != TIDE_ALIAS_NONE;
        if (holder == NULL || (was_alias && (!is_alias || it->shape.size_bytes > holder->shape.size_bytes)))
            holder = it;
        if (is_alias && (smallest == NULL || it->shape.size_bytes < smallest->shape.size_bytes)) smallest = it;
    }
    if (holder == NULL) return;
    out->is = TIDE_ADDRESS_HELD;
    out->item = holder->item;
    out->name = holder->site.name;
    out->bytes = holder->shape.size_bytes;
    if (smallest != NULL && smallest != holder) out->inside = smallest->site.name;
}

// ---- nothing lies there ----

static void look_in_buffers(const tide_memory_plan *plan, uint64_t offset, tide_address *out) {
    for (size_t i = 0; i < plan->n_buffers; i++) {
        if (!has(0, plan->buffers[i].bytes, offset)) continue;
        out->is = TIDE_ADDRESS_UNUSED;
        out->bytes = plan->buffers[i].bytes;
        return;
    }
}

/// In a run each buffer stands among what is alive by what no tensor uses of it.
static tide_status look_in_blocks(tide_subject *s, const tide_live_items *live, uint64_t address, tide_address *out,
                                  tide_error *err) {
    for (size_t i = 0; i < live->n; i++) {
        tide_trace_block_row row;
        if (!live->items[i].is_unused) continue;
        TIDE_TRY(tide_trace_find_block(s->trace, live->items[i].id, &row, err));
        if (!has(row.address, row.reserved_bytes, address)) continue;
        out->is = TIDE_ADDRESS_UNUSED;
        out->bytes = row.reserved_bytes;
        return TIDE_OK;
    }
    return TIDE_OK;
}

static tide_status look_in_segments(tide_subject *s, tide_moment at, uint64_t address, tide_address *out,
                                    tide_error *err) {
    const tide_trace_segment *list;
    size_t n;
    if (s->facts.n_events > TIDE_SUBJECT_EXECUTION_EVENTS) return TIDE_OK;
    TIDE_TRY(tide_trace_segments(s->trace, NULL, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        const tide_trace_segment *g = &list[i];
        if (g->begin_event > at.event || g->end_event <= at.event || !has(g->address, g->bytes, address)) continue;
        out->is = TIDE_ADDRESS_FREE;
        out->name = g->allocator;
        out->bytes = g->bytes;
        return TIDE_OK;
    }
    return TIDE_OK;
}

static tide_status look(tide_subject *s, const tide_live_items *live, uint64_t address, tide_address *out,
                        tide_error *err) {
    const tide__planned_runs *planned = NULL;
    look_among(live, address, s->trace == NULL, out);
    if (out->is == TIDE_ADDRESS_HELD) return TIDE_OK;
    if (s->trace != NULL) {
        TIDE_TRY(look_in_blocks(s, live, address, out, err));
        if (out->is == TIDE_ADDRESS_NOWHERE) TIDE_TRY(look_in_segments(s, live->at, address, out, err));
        if (out->is != TIDE_ADDRESS_NOWHERE) return TIDE_OK;
        look_among(live, address, true, out);
        TIDE_TRY(tide__subject_planned(s, &planned, err));
    }
    const tide_memory_plan *plan = s->trace == NULL ? s->plan : planned->n > 0 ? planned->items[0]->plan : NULL;
    if (out->is == TIDE_ADDRESS_NOWHERE && plan != NULL) look_in_buffers(plan, address, out);
    return TIDE_OK;
}

tide_status tide_subject_at_address(tide_subject *s, tide_moment at, uint64_t address, tide_address *out,
                                    tide_error *err) {
    tide_live_items live;
    *out = (tide_address){.is = TIDE_ADDRESS_NOWHERE, .item = TIDE_NO_ITEM, .name = ""};
    TIDE_TRY(tide_subject_live(s, at, &live, err));
    const tide_status st = look(s, &live, address, out, err);
    tide_live_items_deinit(&live); // names are the subject's
    return st;
}
