// SPDX-License-Identifier: MIT
//
// search state: limits, and the parts of a problem: it is cut at the ticks that no item crosses. See search_state.h.
#include "planner/search/search_state.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/cancel.h"

// ---- limits and the best plan ----

uint64_t tide__search_work_of_placing(size_t n) {
    uint64_t doublings = 1;
    for (size_t k = n / 32; k > 1; k /= 2) doublings++;
    return doublings * SEARCH_WORK_PER_PLACE;
}

uint64_t tide__search_nodes_left(const tide_search *s, uint64_t work) {
    const uint64_t nodes = s->n_nodes < s->node_limit ? s->node_limit - s->n_nodes : 0;
    if (s->work_limit == UINT64_MAX) return nodes;
    const uint64_t paid = s->n_work < s->work_limit ? (s->work_limit - s->n_work) / work : 0;
    return nodes < paid ? nodes : paid;
}

void tide__search_spend(tide_search *s, uint64_t n_nodes, uint64_t work_each) {
    s->n_nodes += n_nodes;
    if (s->work_limit != UINT64_MAX) s->n_work += n_nodes * work_each;
}

bool tide__search_is_over(const tide_search *s) {
    if (s->n_nodes >= s->node_limit || s->n_work >= s->work_limit) return true;
    return tide__is_late(s->deadline_ns);
}

bool tide__search_is_done(const tide_search *s) {
    if (s->best->bytes <= s->best->proved_bytes) return true;
    if (s->capacity_bytes == 0) return false;
    return s->best->bytes <= s->capacity_bytes || s->best->proved_bytes > s->capacity_bytes;
}

void tide__search_measure(tide_search *s) {
    const uint64_t before = s->best->bytes;
    s->best->bytes = 0;
    for (size_t k = 0; k < s->n_parts; k++) {
        const search_part *part = &s->parts[k];
        if (part->bytes > s->best->bytes) s->best->bytes = part->bytes;
        if (part->proved_bytes > s->best->proved_bytes) {
            s->best->proved_bytes = part->proved_bytes;
            s->best->proof = TIDE_PROOF_SEARCH;
        }
    }
    TIDE_ASSERT(s->best->bytes <= before);
    (void)before;
}

// ---- parts ----

void tide__search_free_parts(tide_search *s) {
    for (size_t k = 0; k < s->n_parts; k++) {
        if (s->parts[k].sky != NULL) tide__sky_part_deinit(s->parts[k].sky);
        tide_host_free(s->parts[k].sky);
        tide_host_free(s->parts[k].dead_ends);
        tide_host_free(s->parts[k].offsets);
    }
    tide_host_free(s->parts);
    tide_host_free(s->by_part);
    tide_host_free(s->part_of);
    tide_host_free(s->trial);
}

/// part_at[t]: the part that tick t belongs to; ticks at which nothing lives belong to the part before.
static size_t number_ticks(const tide_problem *p, uint32_t *part_at) {
    // First how far the items that begin at each tick reach.
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->end > part_at[item->begin]) part_at[item->begin] = item->end;
    }
    uint32_t reach = 0, n = 0;
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        const uint32_t end = part_at[t];
        if (end > 0 && t >= reach) n++;
        if (end > reach) reach = end;
        part_at[t] = n > 0 ? n - 1 : 0;
    }
    return n;
}

static void fill_parts(tide_search *s, const uint32_t *part_at) {
    const tide_problem *p = s->problem;
    for (size_t i = 0; i < p->n; i++) {
        s->part_of[i] = part_at[p->items[i].begin];
        s->parts[s->part_of[i]].n++;
    }
    uint32_t *next = s->by_part;
    for (size_t k = 0; k < s->n_parts; k++) {
        s->parts[k].items = next;
        s->parts[k].bytes = UINT64_MAX;
        next += s->parts[k].n;
        s->parts[k].n = 0;
    }
    for (size_t i = 0; i < p->n; i++) {
        search_part *part = &s->parts[s->part_of[i]];
        part->items[part->n++] = (uint32_t)i;
    }
}

tide_status tide__search_make_parts(tide_search *s, tide_error *err) {
    const tide_problem *p = s->problem;
    uint32_t *part_at = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *part_at);
    s->by_part = tide_host_calloc(p->n, sizeof *s->by_part);
    s->part_of = tide_host_calloc(p->n, sizeof *s->part_of);
    s->trial = tide_host_calloc(p->n, sizeof *s->trial);
    if (part_at != NULL && s->by_part != NULL && s->part_of != NULL && s->trial != NULL) {
        const size_t n_parts = number_ticks(p, part_at);
        s->parts = tide_host_calloc(n_parts, sizeof *s->parts);
        if (s->parts != NULL) {
            s->n_parts = n_parts;
            fill_parts(s, part_at);
        }
    }
    tide_host_free(part_at);
    return s->parts != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for %zu tensors", p->n);
}
